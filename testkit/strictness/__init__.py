"""Schemas for strict mode: its rules, values made at random, and spoiled ones."""
