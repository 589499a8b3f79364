"""A server between the pipe and the simulator that disturbs each answer."""
