"""The view server."""
