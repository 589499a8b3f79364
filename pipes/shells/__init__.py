"""What the shells of the pipe and of the agents share: caller, valves, messages."""
