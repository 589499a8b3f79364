"""The loop: responses, retries, tools, until the run ends."""
