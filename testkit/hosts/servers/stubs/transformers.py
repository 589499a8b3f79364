"""Keeps a machine-learning package out of the test server."""

raise ImportError("transformers is kept out of the test server")
