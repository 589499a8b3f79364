"""The request for a chat or a task."""
