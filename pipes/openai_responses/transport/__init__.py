"""Connections and the stream of a response."""
