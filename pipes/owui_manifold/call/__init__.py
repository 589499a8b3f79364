"""Who asks, what is allowed, and what the valves say."""
