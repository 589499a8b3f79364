"""Where records of a chat are written to and read from, encrypted if wanted.

Kept items, encrypted at rest.

Fernet (AES-128-CBC with HMAC-SHA256) of the package `cryptography`, which every Open
WebUI has; it is looked up at use, so that a server without it still loads the pipe.

Kept items, written to and read from the chat's row.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, TypeGuard

from openai_responses.clock import new_ulid
from openai_responses.errors import InvalidRequest
from openai_responses.items import Item, is_encrypted
from owui_chat.input.prefix import SentContext, add_sent_context, read_sent_context
from owui_chat.storage.output_carrier import StoredRecord, output_values, stored_outputs
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
"""The key may be the server's own secret, which also signs its sessions: the digest
that is used here is of no use there."""


class Encryption:
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

    def encrypt(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return `value` as it is stored."""
        token = self._fernet.encrypt(json.dumps(value).encode("utf-8"))
        return {"__v": value.get("__v"), _ENCRYPTED: token.decode("ascii")}

    def decrypt(self, value: object) -> object:
        """Return a stored value in clear; one sealed with another key is empty."""
        if not is_encrypted_value(value):
            return value
        try:
            return json.loads(self._fernet.decrypt(str(value[_ENCRYPTED]).encode()))
        except (self._unreadable, ValueError):
            return {}


def is_encrypted_value(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Say whether a stored value is encrypted."""
    return isinstance(value, Mapping) and _ENCRYPTED in value


_HISTORY = "history"
_LAST_TRIES = 3  # the host waits five seconds for SQLite in each (env.py:342)


class ChatStore:
    """What is kept of one chat; writes go to the key of one message.

    With the first of them goes what is to be tidied up of messages that are over.

    `messages` are the chat's own, as the host stores them, by their ids; `sent` is
    what earlier runs sent beside them, by the ids of the answers; `marks` says whether
    a marker names what was written.
    """

    marks = True

    def __init__(
        self, caller: Caller, chat: Mapping[str, Any], seal: Encryption | None = None
    ) -> None:
        """Begin with what `chat` holds; with a `seal`, what is written is encrypted."""
        self.records = read_records(chat)
        self.messages = _messages_of(chat)
        self.sent = read_sent_context(chat)
        self._is_behind = False
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

    async def write(self, record: Record) -> None:
        """Store `record`; where the host refuses, it waits for the next write.

        Its marker is shown all the same, because later it would stand at another
        place; one that names nothing in the end vanishes when it is read.
        """
        self._own = {**self._own, record.ulid: record}
        await self._write()

    def set_sent(self, sent: SentContext) -> None:
        """Take what this run sends beside the chat; the next write stores it."""
        if sent != SentContext():
            self.sent[self._caller.message_id] = sent
            self._is_behind = True

    async def flush(self) -> bool:
        """Store what no write has stored so far; say whether that is all now.

        It is tried more than once: another process may hold SQLite's lock for longer
        than the host waits for it, and the answer has been shown by now.
        """
        for _ in range(_LAST_TRIES):
            if not self._is_behind:
                break
            await self._write()
        return not self._is_behind

    async def invalidate_reasoning(self) -> None:
        """Note that no reasoning kept so far in this chat is to be sent again."""
        dying = _encrypted_ids(self.records)
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
        """Return what the answer's own output is to hold and does not yet."""
        return []

    def stored_outputs(self, rewritten: str) -> list[list[Item]]:
        """Return the stored output of each run of this branch.

        `rewritten` names the answer that is asked for anew, if the model is shown it.
        """
        return stored_outputs(self.messages, self._caller.message_id, rewritten)


class OutputStore(ChatStore):
    """Leaves the row alone: what is kept goes into the answer's own output."""

    marks = False

    def __init__(
        self, caller: Caller, chat: Mapping[str, Any], seal: Encryption | None = None
    ) -> None:
        """Begin with what `chat` holds, of either carrier."""
        super().__init__(caller, chat, seal)
        self._unshown: list[StoredRecord] = []

    async def write(self, record: Record) -> None:
        """Give `record` to the answer."""
        self._give(record.ulid, {record.ulid: record})

    async def flush(self) -> bool:
        """Give the answer what no record took with it; nobody can refuse."""
        if self._is_behind:
            self._give(new_ulid(), {})
        return True

    async def invalidate_reasoning(self) -> None:
        """Note in the answer what is not to be sent again."""
        dying = _encrypted_ids(self.records)
        self._dead |= dying
        if dying:
            self._give(new_ulid(), {})

    def take_unsent(self) -> list[StoredRecord]:
        """Return what was given since this was asked last."""
        given, self._unshown = self._unshown, []
        return given

    def _give(self, ulid: str, records: Mapping[str, Record]) -> None:
        value = write_records(records, self._dead)
        if self._is_behind:
            value = {**self._with_sent(value), "message_id": self._caller.message_id}
            self._is_behind = False
        self._unshown.append(StoredRecord(ulid, self._closed(value)))


async def open_store(caller: Caller, valves: Valves) -> ChatStore | None:
    """Return the store of the caller's own chat, or None when it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {k: v for k, v in chat.items() if is_pipe_key(k) or k == _HISTORY}
    kept |= output_values(_messages_of(chat))
    store = OutputStore if valves.HISTORY_CARRIER == "output" else ChatStore
    if valves.STORE_ENCRYPTION == "on":
        seal = _encryption(valves)
        return store(caller, _decrypt_values(kept, seal), seal)
    if not any(map(is_encrypted_value, kept.values())):
        return store(caller, kept)
    try:
        return store(caller, _decrypt_values(kept, _encryption(valves)))
    except InvalidRequest:  # unreadable items are no reason to stop a chat
        return store(caller, kept)


def _encrypted_ids(records: Mapping[str, Record]) -> set[str]:
    """Return the ids of the records that only their maker can read."""
    return {
        ulid
        for ulid, record in records.items()
        if any(map(is_encrypted, record.payload))
    }


def _messages_of(chat: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the messages of a chat as the host stores them, by their ids."""
    history = chat.get(_HISTORY)
    messages = history.get("messages") if isinstance(history, Mapping) else None
    return messages if isinstance(messages, Mapping) else {}


def _decrypt_values(kept: Mapping[str, Any], seal: Encryption) -> dict[str, Any]:
    return {key: seal.decrypt(value) for key, value in kept.items()}


def _encryption(valves: Valves) -> Encryption:
    """Return the seal of this server; raises InvalidRequest where there can be none."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    if not secret:
        raise InvalidRequest(
            "STORE_ENCRYPTION needs a key. An administrator has to set "
            "STORE_ENCRYPTION_KEY in the valves of this pipe."
        )
    return Encryption(secret)
