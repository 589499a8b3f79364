"""Chats that several tests of the host hold."""
