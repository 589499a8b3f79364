"""The agent strategies."""
