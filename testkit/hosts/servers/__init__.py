"""Open WebUI, Pipelines, databases and tool servers as processes of the tests."""
