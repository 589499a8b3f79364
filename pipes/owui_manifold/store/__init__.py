"""What an answer leaves: records and files."""
