"""Tools that the agent brings itself, one kind a group of modules."""
