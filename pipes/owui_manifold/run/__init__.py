"""A prepared request is run, with what happens beside it."""
