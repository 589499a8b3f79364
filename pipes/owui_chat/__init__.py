"""Open WebUI's chat forms translated to the API's items, with no host in sight."""
