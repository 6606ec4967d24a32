"""The dispatch_agent server: a read-only sub-agent that comes back with one report of checked findings."""
