"""Event loops in which a test does not wait."""
