"""Digests of texts, to compare or to name them without keeping them."""

import hashlib


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text.

    A text may have lone surrogates, which UTF-8 does not have.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
