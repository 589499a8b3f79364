"""The Open WebUI pipe around the engine."""
