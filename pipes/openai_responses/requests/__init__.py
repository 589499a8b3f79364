"""Builds a request: from what a chat asks for to the fields that are sent."""
