"""Edit: change one place of a file and no byte besides."""
