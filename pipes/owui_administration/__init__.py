"""What administrators of many users ask for, in a filter next to the pipe."""
