"""Effects on Open WebUI, and what the pipe asks of its filter."""
