"""Repairs: what a refusal names, what is changed after it, what is remembered of it."""
