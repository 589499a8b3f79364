"""Two-turn chats with built files, written down so that two revisions can be compared."""
