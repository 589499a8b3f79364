"""Shows run events to Open WebUI and to other clients."""
