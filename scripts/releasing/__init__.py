"""What people download: files that Open WebUI takes without long work."""
