"""Calls of the pipe as Open WebUI makes them, and what came of them."""
