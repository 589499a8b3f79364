"""The Responses API in plain Python; knows no host."""
