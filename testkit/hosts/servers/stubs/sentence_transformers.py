"""Keeps a machine-learning package out of the test server."""

raise ImportError("sentence_transformers is kept out of the test server")
