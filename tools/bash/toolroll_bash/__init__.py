"""Bash: commands in persistent shells that cannot be wedged and leave nothing behind."""
