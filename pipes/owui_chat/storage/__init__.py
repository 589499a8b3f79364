"""What of an answer is stored, and how it is found again."""
