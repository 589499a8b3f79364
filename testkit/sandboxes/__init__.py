"""Sandboxes for tests: a real one, and one that only pretends."""
