"""The GlobTool server: finds files by the pattern of their paths, newest first."""
