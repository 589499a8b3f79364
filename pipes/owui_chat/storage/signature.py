"""Signatures of what is stored in a chat, which its owner can read and change.

A signature tells that this pipe, or another one with the same secret, wrote a value.
Keys are derived from the secret with HKDF-SHA256 (RFC 5869), one for each purpose, so
that no key can be used for anything else.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Sign = Callable[[object], str]
"""Returns the signature of a JSON value, as 32 hexadecimal digits (128 bits)."""

_FIELD = "signature"
_NO_SALT = bytes(32)
_ONE_BLOCK = b"\x01"
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)
"""A database may return the keys of an object in another order."""


def derive_key(secret: str, purpose: str) -> bytes:
    """Return a key of 32 bytes; without the secret nobody can derive it."""
    seed = hmac.digest(_NO_SALT, secret.encode("utf-8", "replace"), "sha256")
    return hmac.digest(seed, purpose.encode() + _ONE_BLOCK, "sha256")


def signer(secret: str, purpose: str) -> Sign:
    """Return what signs values for one purpose."""
    return partial(_signature, derive_key(secret, purpose))


def sign_object(
    fields: Mapping[str, Any], sign: Sign | None, *scope: object
) -> dict[str, Any]:
    """Return an object with its signature, which holds in one `scope` only."""
    bare = _without_signature(fields)
    return {**bare, _FIELD: sign([*scope, bare])} if sign else bare


def is_signed(fields: Mapping[str, Any], sign: Sign | None, *scope: object) -> bool:
    """Say whether an object has its signature; without `sign` none has.

    What cannot be encoded is nothing that this pipe wrote.
    """
    signature = fields.get(_FIELD)
    if sign is None or not isinstance(signature, str) or not signature.isascii():
        return False
    try:
        expected = sign([*scope, _without_signature(fields)])
    except (RecursionError, TypeError, ValueError):
        return False
    return hmac.compare_digest(expected, signature)


def _without_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    bare = dict(fields)
    bare.pop(_FIELD, None)
    return bare


def _signature(key: bytes, value: object) -> str:
    return hmac.digest(key, _ENCODER.encode(value).encode(), "sha256").hex()[:32]
