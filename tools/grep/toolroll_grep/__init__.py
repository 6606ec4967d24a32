"""The GrepTool server: searches the contents of files for a model."""
