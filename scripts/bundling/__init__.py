"""Makes one file out of many modules."""
