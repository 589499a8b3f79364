"""Runs a prepared request: failover, limits, records and status lines."""
