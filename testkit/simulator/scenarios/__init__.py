"""What the simulator answers, by the words of the question."""
