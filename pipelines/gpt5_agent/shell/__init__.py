"""The Pipelines server around the agent: valves, tools, views and the bridge."""
