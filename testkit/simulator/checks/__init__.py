"""What the API refuses of a request."""
