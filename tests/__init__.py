"""The suite; it mirrors the code."""
