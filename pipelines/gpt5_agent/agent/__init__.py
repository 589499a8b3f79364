"""The agent: policy, memory, rounds and answers."""
