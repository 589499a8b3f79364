"""The response object and the events of its stream."""
