"""The Open WebUI pipe around `openai_responses` and `owui_chat`."""
