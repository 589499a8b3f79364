"""Kept items, encrypted at rest.

Fernet (AES-128-CBC with HMAC-SHA256) of the package `cryptography`, which every Open
WebUI has; it is looked up at use, so that a server without it still loads the pipe.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeGuard

from openai_responses.errors import InvalidRequest

_SEALED = "sealed"
_PURPOSE = b"openai_responses_pipe kept items\x00"
"""The key may be the server's own secret, which also signs its sessions: the digest
that is used here is of no use there."""


class Seal:
    """Encrypts and reads back the values of message keys."""

    def __init__(self, secret: str) -> None:
        """Derive the key from `secret`; raises InvalidRequest without `cryptography`."""
        try:
            fernet = import_module("cryptography.fernet")
        except ImportError:
            raise InvalidRequest(
                "STORE_ENCRYPTION is on, but this server lacks the package "
                "cryptography. An administrator has to install it or turn the valve "
                "off."
            ) from None
        digest = hashlib.sha256(_PURPOSE + secret.encode("utf-8")).digest()
        self._fernet = fernet.Fernet(base64.urlsafe_b64encode(digest))
        self._unreadable = fernet.InvalidToken

    def close(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return `value` as it is stored."""
        token = self._fernet.encrypt(json.dumps(value).encode("utf-8"))
        return {"__v": value.get("__v"), _SEALED: token.decode("ascii")}

    def open(self, value: object) -> object:
        """Return a stored value in clear; one sealed with another key is empty."""
        if not is_sealed(value):
            return value
        try:
            return json.loads(self._fernet.decrypt(str(value[_SEALED]).encode()))
        except (self._unreadable, ValueError):
            return {}


def is_sealed(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Say whether a stored value is encrypted."""
    return isinstance(value, Mapping) and _SEALED in value
