"""Replace: create or overwrite a whole file."""
