"""What a tool's author needs from the shared package; knows no tool."""

__version__ = "0.1.0"
