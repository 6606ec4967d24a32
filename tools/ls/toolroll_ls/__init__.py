"""The LS server: lists a directory for a model."""
