"""The shared package, module by module."""
