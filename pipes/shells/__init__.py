"""What the pipe and the agents have in common in front of the API and the chat."""
