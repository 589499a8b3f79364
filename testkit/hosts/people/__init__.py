"""People who use Open WebUI: over HTTP, and in a tab with a live session."""
