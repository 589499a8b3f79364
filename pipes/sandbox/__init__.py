"""A sandbox for code, with its backends and its workspaces."""
