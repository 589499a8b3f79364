"""The agent in a terminal and over HTTP."""
