"""Both doors to the models: Open WebUI and the Pipelines server, asked the same."""
