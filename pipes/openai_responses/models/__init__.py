"""Models: the catalog, what a name means, which model answers, what it costs."""
