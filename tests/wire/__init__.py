"""The wire: the conformance statement, lifecycles, other people's clients."""
