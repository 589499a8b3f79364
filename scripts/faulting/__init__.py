"""Small faults in a copy of the sources, and the tests that see them."""
