"""Calls of tools: guarded, confirmed, executed."""
