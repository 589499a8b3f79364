"""Counts of steps and of kept memory, the same on every machine."""
