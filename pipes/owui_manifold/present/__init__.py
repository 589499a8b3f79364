"""What the log and people are told of a run."""
