"""The server that is asked: one of a test's own, its events and their types."""
