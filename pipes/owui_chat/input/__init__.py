"""Open WebUI's chat forms as the API's input."""
