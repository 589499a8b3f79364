"""Where the records of a chat are written and read, encrypted if wanted.

Encryption is Fernet (AES-128-CBC with HMAC-SHA256) of the package `cryptography`, which
every Open WebUI has. It is imported when it is used, so a server without it still loads
the pipe.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, TypeGuard

from openai_responses.clock import new_ulid
from openai_responses.errors import InvalidRequest
from openai_responses.items import is_encrypted
from openai_responses.json_input import as_mapping
from owui_chat.events import StoredRecord
from owui_chat.input.prefix import SentContext, add_sent_context, read_sent_context
from owui_chat.messages import ChatPart
from owui_chat.storage.output_carrier import (
    output_values,
    restore_from_outputs,
    stored_outputs,
)
from owui_chat.storage.recorder import Carrier
from owui_chat.storage.records import (
    MAX_STORED_KB,
    Record,
    invalid_ids,
    is_pipe_key,
    message_key,
    prune,
    read_records,
    stored_size,
    write_records,
)
from owui_manifold.context import Caller
from owui_manifold.host import read_chat, server_secret, write_chat_keys
from owui_manifold.valves import Valves

_ENCRYPTED = "sealed"
_PURPOSE = b"openai_responses_pipe kept items\x00"
"""The key may be the server's own secret, which also signs its sessions. A digest with
this text is used, so the derived key is useless for sessions."""


class _Encryption:
    """Encrypts and decrypts the values of message keys."""

    def __init__(self, valves: Valves) -> None:
        """Derive the key; raises InvalidRequest if there can be none."""
        secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
        if not secret:
            raise InvalidRequest(
                "STORE_ENCRYPTION needs a key. An administrator has to set "
                "STORE_ENCRYPTION_KEY in the valves of this pipe."
            )
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

    def encrypt(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return `value` in its stored form."""
        token = self._fernet.encrypt(json.dumps(value).encode("utf-8"))
        return {"__v": value.get("__v"), _ENCRYPTED: token.decode("ascii")}

    def decrypt(self, value: object) -> object:
        """Return a stored value decrypted; empty if it has another key."""
        if not _is_encrypted_value(value):
            return value
        try:
            return json.loads(self._fernet.decrypt(str(value[_ENCRYPTED]).encode()))
        except (self._unreadable, ValueError):
            return {}


def _is_encrypted_value(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Say whether a stored value is encrypted."""
    return isinstance(value, Mapping) and _ENCRYPTED in value


_HISTORY = "history"
_LAST_TRIES = 3  # in each the host waits five seconds for SQLite


class ChatStore:
    """The records of one chat; writes go to the key of one message.

    The first write also cleans up the values of older messages.

    `messages` are those of the chat as the host stores them, by id. `sent` is what
    earlier runs sent in addition, by the ids of the answers.
    """

    carrier: Carrier = "markers"

    def __init__(
        self, caller: Caller, chat: Mapping[str, Any], seal: _Encryption | None = None
    ) -> None:
        """Begin with what `chat` holds; with a `seal`, what is written is encrypted."""
        self.records = read_records(chat)
        self.messages = _messages_of(chat)
        self.sent = read_sent_context(chat)
        self._is_behind = False
        self._unshown: list[StoredRecord] = []
        self._caller = caller
        self._seal = seal
        self._key = message_key(caller.message_id)
        in_answers = output_values(self.messages)  # the host takes those along
        keys = [key for key in chat if is_pipe_key(key) and key not in in_answers]
        self._untidy = {key: chat[key] for key in keys}
        self._dead = set(invalid_ids(chat.get(self._key)))
        self._own = {
            ulid: record
            for ulid, record in self.records.items()
            if record.message_id == caller.message_id
        }

    async def write(self, record: Record, output_index: int | None = None) -> None:
        """Store `record`; if the host refuses it, it waits for the next write.

        Its marker is shown anyway, because later it would have another place. A marker
        that names nothing in the end is removed when it is read.
        """
        del output_index  # the marker tells the place
        self._own = {**self._own, record.ulid: record}
        await self._write()

    def set_sent(self, sent: SentContext) -> None:
        """Take what this run sends in addition to the chat, for the next write."""
        if sent != SentContext():
            self.sent[self._caller.message_id] = sent
            self._is_behind = True

    async def flush(self) -> bool:
        """Store everything that is not stored yet; say whether that succeeded.

        It is tried several times: another process may hold SQLite's lock for longer
        than the host waits, and the answer has been shown by now.
        """
        for _ in range(_LAST_TRIES):
            if not self._is_behind:
                break
            await self._write()
        return not self._is_behind

    async def invalidate_reasoning(self) -> None:
        """Note that the stored reasoning of this chat is not sent again."""
        dying = {
            ulid
            for ulid, record in self.records.items()
            if any(map(is_encrypted, record.payload))
        }
        if dying:
            self._dead |= dying
            await self._write()

    async def _write(self) -> None:
        value = self._with_sent(write_records(self._own, self._dead))
        room = MAX_STORED_KB * 1024 - stored_size(value)
        others = prune(self._untidy, self.messages, self._key, room)
        values = {**others, self._key: value}
        stored = {key: self._closed(one) for key, one in values.items()}
        self._is_behind = not await write_chat_keys(self._caller.chat_id, stored)
        if not self._is_behind:
            self._untidy = {}

    def _with_sent(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return add_sent_context(value, self.sent.get(self._caller.message_id))

    def _closed(self, value: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._seal.encrypt(value) if self._seal else value

    def take_unsent(self) -> list[StoredRecord]:
        """Return the records that the answer's own output still needs, each once."""
        given, self._unshown = self._unshown, []
        return given

    def restore(self, parts: list[ChatPart], replaced_id: str) -> list[ChatPart]:
        """Return a chat with the outputs that earlier answers of its branch stored.

        `replaced_id` names the answer that is asked for anew, if the model is shown it.
        """
        outputs = stored_outputs(self.messages, self._caller.message_id, replaced_id)
        return restore_from_outputs(parts, outputs)


class _OutputStore(ChatStore):
    """Writes no row: records go into the answer's own output."""

    carrier = "output"

    async def write(self, record: Record, output_index: int | None = None) -> None:
        """Give `record` to the answer, before the text of an item."""
        self._give(record.ulid, {record.ulid: record}, output_index)

    async def _write(self) -> None:
        self._give(new_ulid(), {})

    def _give(
        self, ulid: str, records: Mapping[str, Record], index: int | None = None
    ) -> None:
        value = write_records(records, self._dead)
        if self._is_behind:
            value = {**self._with_sent(value), "message_id": self._caller.message_id}
            self._is_behind = False
        self._unshown.append(StoredRecord(ulid, self._closed(value), index))


async def open_store(caller: Caller, valves: Valves) -> ChatStore | None:
    """Return the store of the caller's own chat, or None if it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {k: v for k, v in chat.items() if is_pipe_key(k) or k == _HISTORY}
    kept |= output_values(_messages_of(chat))
    store = _OutputStore if valves.HISTORY_CARRIER == "output" else ChatStore
    if valves.STORE_ENCRYPTION == "on":
        seal = _Encryption(valves)
        return store(caller, _decrypt_values(kept, seal), seal)
    if any(map(_is_encrypted_value, kept.values())):
        with suppress(InvalidRequest):  # unreadable items must not stop a chat
            kept = _decrypt_values(kept, _Encryption(valves))
    return store(caller, kept)


def _messages_of(chat: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the messages of a chat as the host stores them, by their ids."""
    return as_mapping(as_mapping(chat.get(_HISTORY)).get("messages"))


def _decrypt_values(kept: Mapping[str, Any], seal: _Encryption) -> dict[str, Any]:
    return {key: seal.decrypt(value) for key, value in kept.items()}
