"""The sandbox as a tool of Open WebUI."""
