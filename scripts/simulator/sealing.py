"""Encrypted content: sealed on the way out, opened on the way back.

It looks like a Fernet token (``gAAAA...``), as the real one does. The key is fixed, so a
chat that was kept on disk still opens after a restart.
"""

import base64
import binascii
import hashlib
import hmac
import itertools
import json
from dataclasses import asdict, dataclass

KEY = b"the stand-in's own sealing key"
VERSION = b"\x80"
STAMP = (1_790_000_000).to_bytes(8, "big")
HEAD = len(VERSION) + len(STAMP) + 16
TAG = 32
LEAST = 288


@dataclass(frozen=True)
class Seal:
    """What a piece of encrypted content knows about its making."""

    item: str
    organisation: str
    family: str
    prefix: str
    end_user: str | None
    tokens: int


class NotOurs(Exception):
    """Content that this stand-in did not seal, or not in this form."""


def seal(what: Seal) -> str:
    """Return the opaque text of a seal, at least 400 characters long."""
    plain = json.dumps(asdict(what)).encode().ljust(LEAST)
    nonce = hashlib.sha256(plain).digest()[:16]
    head = VERSION + STAMP + nonce
    body = head + _mask(plain, nonce)
    tag = hmac.digest(KEY, body, "sha256")
    return base64.urlsafe_b64encode(body + tag).decode()


def unseal(text: str) -> Seal:
    """Open an opaque text, or raise :class:`NotOurs`."""
    try:
        raw = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise NotOurs from error
    body, tag = raw[:-TAG], raw[-TAG:]
    if not hmac.compare_digest(hmac.digest(KEY, body, "sha256"), tag):
        raise NotOurs
    plain = _mask(body[HEAD:], body[HEAD - 16 : HEAD])
    return Seal(**json.loads(plain))


def _mask(text: bytes, nonce: bytes) -> bytes:
    stream = itertools.chain.from_iterable(
        hashlib.sha256(KEY + nonce + count.to_bytes(4, "big")).digest()
        for count in itertools.count()
    )
    return bytes(one ^ other for one, other in zip(text, stream, strict=False))


def shorten(text: str) -> str:
    """Show the ends of encrypted content, as error messages do."""
    return text if len(text) <= 16 else f"{text[:4]}...{text[-4:]}"
