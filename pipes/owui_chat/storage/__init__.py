"""Storage: what is stored of an answer, and how it is found again."""
