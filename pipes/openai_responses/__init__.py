"""The Responses API in plain Python, with no host in sight."""
