"""Where the records of a chat are written and read, signed and in part encrypted.

The keys come from STORE_ENCRYPTION_KEY or the server's own secret. What is encrypted is
bound to its user, chat and message, so that a copy in another chat, or a clone of a
shared one, does not open. Encryption is AES-GCM of the package `cryptography`, which every
Open WebUI has. It is imported when it is used, so a server without it still loads the
pipe, and stores less.
"""

import asyncio
import base64
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from openai_responses.json_input import JsonObject, as_mapping, count_entries, value_at
from openai_responses.long_work import run_work
from openai_responses.repairs.chat_repairs import MAX_CHAT_REPAIRS, ChatRepair
from openai_responses.ulid import new_ulid
from owui_chat.events import StoredRecord
from owui_chat.input.prefix import SentContext, add_sent_context, read_sent_context
from owui_chat.messages import ChatPart
from owui_chat.storage.output_carrier import (
    output_values,
    record_item,
    restore_from_outputs,
    stored_outputs,
)
from owui_chat.storage.recorder import Carrier
from owui_chat.storage.records import (
    MAX_STORED_KB,
    Record,
    is_pipe_key,
    message_key,
    prune,
    read_records,
    stored_repairs,
    stored_size,
    write_records,
)
from owui_chat.storage.signature import derive_key, signer
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.host.open_webui import read_chat, server_secret, write_chat_keys

_PURPOSE = "openai_responses_pipe "
_NONCE_BYTES = 12


class ChatKeys:
    """Signs what is stored for one user, and encrypts what is stored in one chat."""

    def __init__(self, secret: str, user_id: str, chat_id: str) -> None:
        """Derive the keys; without a secret nothing is signed or encrypted."""
        self.sign = signer(secret, f"{_PURPOSE}records {user_id}") if secret else None
        self._cipher = _cipher(secret) if secret else None
        self._user_id = user_id
        self._chat_id = chat_id

    def seal(self, value: object, message_id: str) -> str:
        """Return a JSON value encrypted for a message of the chat.

        Empty if that is impossible.
        """
        if self._cipher is None:
            return ""
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps(value).encode()
        sealed = self._cipher.encrypt(nonce, text, self._scope(message_id))
        return base64.b64encode(nonce + sealed).decode("ascii")

    def unseal(self, sealed: str, message_id: str) -> object:
        """Return the value that was encrypted for a message; None for anything else.

        What is not ours, or was changed, raises exceptions of the package's own.
        """
        if self._cipher is None:
            return None
        try:
            whole = base64.b64decode(sealed, validate=True)
            nonce = whole[:_NONCE_BYTES]
            rest = whole[_NONCE_BYTES:]
            text = self._cipher.decrypt(nonce, rest, self._scope(message_id))
            return json.loads(text)
        except Exception:
            return None

    def _scope(self, message_id: str) -> bytes:
        """Return what a value is bound to: a client chooses the ids of its messages."""
        return json.dumps([self._user_id, self._chat_id, message_id]).encode()


def _cipher(secret: str) -> Any:
    key = derive_key(secret, f"{_PURPOSE}sent")
    try:
        return import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)
    except ImportError:
        return None


_HISTORY = "history"
_FEW = 32
"""Records of one message: each is written at once."""
_LAST_TRIES = 3
"""In each the host waits five seconds for SQLite."""


class ChatStore:
    """The records of one chat; writes go to the key of one message.

    The first write also cleans up the values of older messages.

    `messages` are those of the chat as the host stores them, by id. `sent` is what
    earlier runs sent in addition, by the ids of the answers; `repairs` is what refusals
    of this chat showed.
    """

    carrier: Carrier = "markers"
    size = 0
    """About how many entries the chat has."""

    def __init__(self, caller: Caller, chat: JsonObject, keys: ChatKeys) -> None:
        """Begin with what `chat` holds; the host takes the records in answers along."""
        self.messages = _messages_of(chat)
        in_answers = output_values(self.messages)
        rows = [key for key in chat if is_pipe_key(key) and key not in in_answers]
        chat = {**chat, **in_answers}
        self.records = read_records(chat, keys.sign)
        self.repairs = stored_repairs(chat[key] for key in chat if is_pipe_key(key))
        self.sent = read_sent_context(chat, keys.unseal)
        self._is_behind = False
        self._writing: asyncio.Task[None] | None = None
        self._due = 0
        self._unshown: list[StoredRecord] = []
        self._caller = caller
        self._keys = keys
        self._key = message_key(caller.message_id)
        self._stale_values = {key: chat[key] for key in rows}
        self._repairs = stored_repairs([chat.get(self._key)])
        self._own = {
            ulid: record
            for ulid, record in self.records.items()
            if record.message_id == caller.message_id
        }

    def write_beside(self, record: Record, output_index: int | None = None) -> None:
        """Store `record`, whose marker tells its place, beside what goes on.

        The text need not wait for it, and a stop does not end it. `flush` waits for it,
        and writes what an error kept from being stored.
        """
        del output_index
        self._writing = asyncio.create_task(self._write_after(self._writing, record))

    async def _write_after(
        self, earlier: asyncio.Task[None] | None, record: Record
    ) -> None:
        if earlier:
            await earlier
        with suppress(Exception):
            await self.write(record)

    async def write(self, record: Record) -> None:
        """Store `record`; if the host refuses it, it waits for the next write.

        Its marker is shown anyway, because later it would have another place. A marker
        that names nothing in the end is removed when it is read. As each write has all
        records of the message, some of many wait, too.
        """
        self._own[record.ulid] = record
        self._is_behind = True
        if len(self._own) >= self._due:
            await self._write()

    def set_sent(self, sent: SentContext) -> None:
        """Take what this run sends in addition to the chat, for the next write.

        It replaces what an earlier run of the same message sent.
        """
        message_id = self._caller.message_id
        has_earlier = self.sent.pop(message_id, None) is not None
        is_empty = sent == SentContext()
        if not is_empty:
            self.sent[message_id] = sent
        if has_earlier or not is_empty:
            self._is_behind = True

    async def flush(self) -> bool:
        """Store everything that is not stored yet; say whether that succeeded.

        It is tried several times: another process may hold SQLite's lock for longer
        than the host waits, and the answer has been shown by now.
        """
        await self._settle()
        for _ in range(_LAST_TRIES):
            if not self._is_behind:
                break
            await self._write()
        return not self._is_behind

    async def _settle(self) -> None:
        """Wait for the writes that have begun."""
        if self._writing:
            await asyncio.shield(self._writing)

    async def add_repair(self, repair: ChatRepair) -> None:
        """Store what made this chat acceptable to the server, for later turns."""
        await self._settle()
        self._repairs = _with_newest(self._repairs, repair)
        self.repairs = _with_newest(self.repairs, repair)
        await self._write()

    async def _write(self) -> None:
        self._due = len(self._own) + len(self._own) // _FEW
        values = await run_work(self.size, self._values)
        self._is_behind = not await write_chat_keys(self._caller.chat_id, values)
        if not self._is_behind:
            self._stale_values = {}

    def _values(self) -> dict[str, Any]:
        sign = self._keys.sign
        value = self._with_sent(write_records(self._own, sign, self._repairs))
        room = MAX_STORED_KB * 1024 - stored_size(value)
        others = prune(self._stale_values, self.messages, self._key, room)
        return {**others, self._key: value}

    def _with_sent(self, value: JsonObject) -> JsonObject:
        message_id = self._caller.message_id
        sent = self.sent.get(message_id)
        sealed = self._keys.seal(sent.wire(), message_id) if sent else ""
        return add_sent_context(value, sealed)

    def take_unsent(self) -> list[StoredRecord]:
        """Return the records that the answer's own output still needs, each once."""
        unsent = self._unshown
        self._unshown = []
        return unsent

    def restore(self, parts: list[ChatPart], replaced_id: str) -> list[ChatPart]:
        """Return a chat with the outputs that earlier answers of its branch stored.

        `replaced_id` names the answer that is asked for anew, if the model is shown it.
        """
        outputs = stored_outputs(self.messages, self._caller.message_id, replaced_id)
        return restore_from_outputs(parts, outputs)


def _with_newest(
    repairs: tuple[ChatRepair, ...], newest: ChatRepair
) -> tuple[ChatRepair, ...]:
    """Return `repairs` with one more, each once, without the oldest of too many."""
    if newest in repairs:
        return repairs
    return (*repairs, newest)[-MAX_CHAT_REPAIRS:]


class _OutputStore(ChatStore):
    """Writes no row: records go into the answer's own output."""

    carrier = "output"
    _context_record_id = ""
    """The record that holds what was sent."""

    def write_beside(self, record: Record, output_index: int | None = None) -> None:
        """Give `record` to the answer, which says the item that it belongs to."""
        self._give(record.ulid, {record.ulid: record}, output_index)

    async def _write(self) -> None:
        self._give(new_ulid(), {})

    def _give(
        self, ulid: str, records: Mapping[str, Record], index: int | None = None
    ) -> None:
        value = write_records(records, self._keys.sign, self._repairs)
        if (
            self._is_behind or ulid == self._context_record_id
        ):  # which may be written again
            value = {**self._with_sent(value), "message_id": self._caller.message_id}
            self._is_behind = False
            self._context_record_id = ulid
        self._unshown.append(StoredRecord(record_item(ulid, value), index))


def chat_keys(valves: Valves, caller: Caller) -> ChatKeys:
    """Return the keys for the caller's chat on this server."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    return ChatKeys(secret, caller.user_id, caller.chat_id)


async def open_store(
    caller: Caller, valves: Valves, keys: ChatKeys
) -> ChatStore | None:
    """Return the store of the caller's own chat, or None if it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {k: v for k, v in chat.items() if is_pipe_key(k) or k == _HISTORY}
    size = count_entries([kept, _messages_of(chat)], 3)
    store = _OutputStore if valves.HISTORY_CARRIER == "output" else ChatStore
    opened = await run_work(size, lambda: store(caller, kept, keys))
    opened.size = size
    return opened


def _messages_of(chat: JsonObject) -> JsonObject:
    """Return the messages of a chat as the host stores them, by their ids."""
    return as_mapping(value_at(chat, _HISTORY, "messages"))
