"""Translates Open WebUI's chat forms to the API's items and back; imports no host."""
