"""Runs of the loop for tests: made up, replayed, against a server, and as text."""
