"""What the log and people learn about a run."""
