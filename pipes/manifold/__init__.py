"""What the pipe and the agents of the Pipelines server do with a chat, once for both."""
