"""Questions to the agent, and the chats that they are asked in."""
