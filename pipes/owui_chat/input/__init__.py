"""Open WebUI's chat forms as input of the API."""
