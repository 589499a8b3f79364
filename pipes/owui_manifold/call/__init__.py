"""The call: who asks, what is allowed, and what the valves say."""
