"""Schemas for strict mode: its rules, values made at random, and spoilt ones."""
