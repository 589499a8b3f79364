"""A request, from what a chat asks to the fields that are sent."""
