"""The keys of a chat: what is stored is signed, and in part encrypted.

They come from STORE_ENCRYPTION_KEY or the server's own secret. What is encrypted is
bound to its user, chat and message, so that a copy in another chat, or a clone of a
shared one, does not open. Encryption is AES-GCM of the package `cryptography`, which every
Open WebUI has. It is imported when it is used, so a server without it still loads the
pipe, and stores less.
"""

import base64
import json
import os
from contextlib import suppress
from importlib import import_module
from typing import Any

from owui_chat.storage.signature import derive_key, signer
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.host.open_webui import server_secret

_PURPOSE = "openai_responses_pipe "
_NONCE_BYTES = 12
_END_OF_JSON = b"\0"
"""No JSON text has this byte."""


class ChatKeys:
    """Signs what is stored for one user, and encrypts what is stored in one chat."""

    def __init__(self, secret: str, user_id: str, chat_id: str) -> None:
        """Derive the keys; without a secret nothing is signed or encrypted."""
        self.sign = signer(secret, f"{_PURPOSE}records {user_id}") if secret else None
        self._cipher: Any = None
        """AES-GCM, if the server has the package."""
        if secret:
            key = derive_key(secret, f"{_PURPOSE}sent")
            with suppress(ImportError):  # the server lacks the package
                aead = import_module("cryptography.hazmat.primitives.ciphers.aead")
                self._cipher = aead.AESGCM(key)
        self._user_id = user_id
        self._chat_id = chat_id

    def seal(self, value: object, message_id: str, packed: bytes = b"") -> str:
        """Return a JSON value, and bytes after it, encrypted for a message of the chat.

        Empty if that is impossible.
        """
        if self._cipher is None:
            return ""
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps(value).encode()
        if packed:
            text += _END_OF_JSON + packed
        sealed = self._cipher.encrypt(nonce, text, self._scope(message_id))
        return base64.b64encode(nonce + sealed).decode("ascii")

    def unseal(self, sealed: str, message_id: str) -> tuple[object, bytes]:
        """Return the value and the bytes that were encrypted for a message.

        None and no bytes for anything else: what is not ours, or was changed, raises
        exceptions of the package's own.
        """
        if self._cipher is None:
            return None, b""
        try:
            whole = base64.b64decode(sealed, validate=True)
            nonce = whole[:_NONCE_BYTES]
            encrypted = whole[_NONCE_BYTES:]
            text = self._cipher.decrypt(nonce, encrypted, self._scope(message_id))
            value, _, packed = text.partition(_END_OF_JSON)
            return json.loads(value), packed
        except Exception:
            return None, b""

    def _scope(self, message_id: str) -> bytes:
        """Return what a value is bound to: a client chooses the ids of its messages."""
        return json.dumps([self._user_id, self._chat_id, message_id]).encode()


def chat_keys(valves: Valves, caller: Caller) -> ChatKeys:
    """Return the keys for the caller's chat on this server."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    return ChatKeys(secret, caller.user_id, caller.chat_id)
