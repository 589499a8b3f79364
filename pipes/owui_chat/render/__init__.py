"""Run events as Open WebUI and its clients show them."""
