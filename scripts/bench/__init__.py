"""Benchmarks of what the project builds."""
