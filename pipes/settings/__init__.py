"""Every setting once: its name, type, default, bounds, its words, and who has it."""
