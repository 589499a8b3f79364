"""Keeps a machine-learning package out of the test server."""

raise ImportError("torch is kept out of the test server")
