"""Signatures of what is stored in a chat, which its owner can read and change.

A signature tells that this pipe, or another one with the same secret, wrote a value.
Keys are derived from the secret with HKDF-SHA256 (RFC 5869), one for each purpose, so
that no key can be used for anything else.

A signature has two halves: of the value with its names in their order, which is quick to
check, and of the value with sorted names, because a database may change the order.
"""

import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

from openai_responses.json_input import compact_json

Sign = Callable[[object, bool], str]
"""Returns a half of the signature of a JSON value, as hexadecimal digits.

The flag says whether names are sorted.
"""

_FIELD = "signature"
_HALF = 32
"""Hexadecimal digits: 128 bits."""
_NO_SALT = bytes(32)
_ONE_BLOCK = b"\x01"
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


def derive_key(secret: str, purpose: str) -> bytes:
    """Return a key of 32 bytes; without the secret no one can derive it."""
    seed = hmac.digest(_NO_SALT, secret.encode("utf-8", "replace"), "sha256")
    # An id that a client chose may have half a character.
    info = purpose.encode("utf-8", "surrogatepass") + _ONE_BLOCK
    return hmac.digest(seed, info, "sha256")


def signer(secret: str, purpose: str) -> Sign:
    """Return what signs values for one purpose."""
    keyed = hmac.new(derive_key(secret, purpose), digestmod="sha256")

    def sign(value: object, is_sorted: bool) -> str:
        """Return half of the signature of a JSON value."""
        if is_sorted:
            text = _sorted_json(value)
        else:
            try:
                text = compact_json(value)
            except ValueError:  # UTF-8 has no lone surrogates; sorted, they are escaped
                text = _sorted_json(value)
        signature = keyed.copy()
        signature.update(text)
        return signature.hexdigest()[:_HALF]

    return sign


def sign_object(
    fields: Mapping[str, Any], sign: Sign | None, *scope: object
) -> dict[str, Any]:
    """Return an object with its signature, which holds in one `scope` only."""
    bare = _without_signature(fields)
    if sign is None:
        return bare
    value = [*scope, bare]
    in_order = sign(value, False)
    with_sorted_names = sign(value, True)
    return {**bare, _FIELD: in_order + with_sorted_names}


def ordered_half(signature: str) -> str:
    """Return the half of a signature that holds as long as names are in their order."""
    return signature[:_HALF]


def is_signed(fields: Mapping[str, Any], sign: Sign | None, *scope: object) -> bool:
    """Say whether an object has its signature; without `sign` none has.

    Earlier versions wrote the second half alone. What cannot be encoded is nothing that
    this pipe wrote.
    """
    signature = fields.get(_FIELD)
    if sign is None or not isinstance(signature, str):
        return False
    value = [*scope, _without_signature(fields)]
    try:
        in_order = sign(value, False)
        if hmac.compare_digest(in_order, signature[:_HALF]):
            return True
        with_sorted_names = sign(value, True)
        return hmac.compare_digest(with_sorted_names, signature[-_HALF:])
    except (RecursionError, TypeError, ValueError):
        return False


def _without_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != _FIELD}


def _sorted_json(value: object) -> bytes:
    return _SORTED.encode(value).encode()
