"""What an answer leaves behind: records and files."""
