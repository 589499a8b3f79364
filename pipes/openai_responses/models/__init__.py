"""Models: the catalog, the meaning of a name, automatic models, and costs."""
