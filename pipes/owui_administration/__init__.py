"""What administrators of many users ask for, in a filter of its own beside the pipe."""
