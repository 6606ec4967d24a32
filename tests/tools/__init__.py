"""The tools, each through its function and its real process."""
