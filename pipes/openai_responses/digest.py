"""Digests of texts, to compare or to name them without keeping them."""

import hashlib


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text; a lone surrogate is none of UTF-8's characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
