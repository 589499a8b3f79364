"""Projects for the bundler."""
