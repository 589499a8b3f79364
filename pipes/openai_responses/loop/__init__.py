"""The loop: responses, retries and tools, until the run ends."""
