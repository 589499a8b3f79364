"""What the log and users learn about a run."""
