"""Recorded exchanges with the API, and what ours makes of them."""
