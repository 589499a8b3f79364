"""Open WebUI, as the pipe, its filter and its tool all use it."""
