"""Switches in Open WebUI's composer for the pipe; knows nothing of it but one key."""
