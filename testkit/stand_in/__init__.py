"""What stands in for Open WebUI: its names, signature, database, telemetry."""
