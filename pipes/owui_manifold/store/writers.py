"""Where the records of an answer are written: the chat's row, or the answer itself."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from openai_responses.json_input import JsonObject
from openai_responses.long_work import run_work
from openai_responses.repairs.chat_repairs import MAX_CHAT_REPAIRS, ChatRepair
from openai_responses.ulid import new_ulid
from owui_chat.events import StoredRecord
from owui_chat.input.prefix import SentContext, add_sent_context
from owui_chat.storage.output_carrier import record_item
from owui_chat.storage.recorder import NewRecord
from owui_chat.storage.records import (
    MAX_STORED_KB,
    Record,
    message_key,
    prune,
    storable_record,
    stored_size,
    write_records,
)
from owui_manifold.call.log import RunLog
from owui_manifold.host.open_webui import write_chat_keys
from owui_manifold.store.keys import ChatKeys
from owui_manifold.store.stored_chat import StoredChat

_FEW = 32
"""Up to so many records of one message, each is written at once; then in groups.

Each write holds all records of the message: writing each of a thousand at once would
write half a million.
"""
_LAST_TRIES = 3
"""Attempts at the end of an answer; in each the host waits five seconds for SQLite."""
_NOT_WRITTEN = (
    "Open WebUI could not store this chat's hidden data: later turns continue without "
    "it. Its database may be locked or full."
)


class StoredAnswer(NamedTuple):
    """The answer that records belong to."""

    chat_id: str
    message_id: str
    chat: StoredChat
    keys: ChatKeys
    sent: SentContext | None = None
    """What its run sends in addition to the chat; None keeps what an earlier run sent."""

    def changes_sent(self) -> bool:
        """Say whether what is stored as sent has to be written."""
        if self.sent is None:
            return False
        return self.message_id in self.chat.sent or self.sent != SentContext()

    def with_sent(self, value: JsonObject) -> dict[str, Any]:
        """Return the value of the answer's key, with what its run sends."""
        sent = self.sent
        if sent is None:
            sent = self.chat.sent.get(self.message_id)
        elif sent == SentContext():
            sent = None
        sealed = ""
        if sent:
            packed = sent.packed_turn()
            sealed = self.keys.seal(sent.wire(), self.message_id, packed)
        return add_sent_context(value, sealed)


class RecordWriter(Protocol):
    """Stores the records of one answer; what it returns has to be shown."""

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Take a record; it may replace one with the same id."""

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Store what made this chat acceptable to the server, for later turns."""

    async def finish(self) -> list[StoredRecord]:
        """Store what is not stored yet."""


class RowWriter:
    """Writes into the key of the answer's message in the chat's row."""

    def __init__(self, answer: StoredAnswer, log: RunLog) -> None:
        """Begin with the records that earlier runs of the answer stored."""
        self._answer = answer
        self._log = log
        self._key = message_key(answer.message_id)
        self._records = {
            ulid: record
            for ulid, record in answer.chat.records.items()
            if record.message_id == answer.message_id
        }
        self._repairs = answer.chat.answer_repairs
        self._stale_values = answer.chat.row_values
        """What the first write cleans up: keys of the row, of older messages too."""
        self._has_unstored = answer.changes_sent()
        """Whether something is not stored yet."""
        self._writing: asyncio.Task[None] | None = None
        """The last write in the background; it waits for those before it."""
        self._due = 0
        """How many records the answer must have for the next write."""

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Store a record in the background; its marker in the text says where it belongs.

        The text does not wait for it, and a stop does not end it. `finish` waits for it,
        and writes what could not be stored because of an error.
        """
        earlier = self._writing

        async def store() -> None:
            if earlier:
                await earlier
            with suppress(Exception):
                await self.write(new.record)

        self._writing = asyncio.create_task(store())
        return []

    async def write(self, record: Record) -> None:
        """Store `record`; if the host refuses it, it waits for the next write.

        Its marker is shown anyway, because later it would have another place. A marker
        that names nothing in the end is removed when it is read. As each write has all
        records of the message, some of many wait, too.
        """
        self._records[record.ulid] = storable_record(record)
        self._has_unstored = True
        if len(self._records) >= self._due:
            await self._write_value()

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Store a repair at once, with the records."""
        await self._settle()
        self._repairs = _with_newest(self._repairs, repair)
        await self._write_value()
        return []

    async def finish(self) -> list[StoredRecord]:
        """Store everything that is not stored yet; the log says if that failed.

        It is tried several times: another process may hold SQLite's lock for longer
        than the host waits, and the answer has been shown by now.
        """
        await self._settle()
        for _ in range(_LAST_TRIES):
            if not self._has_unstored:
                return []
            await self._write_value()
        if self._has_unstored:
            self._log.warn(_NOT_WRITTEN)
        return []

    async def _settle(self) -> None:
        if self._writing:
            await asyncio.shield(self._writing)

    async def _write_value(self) -> None:
        """Write the whole value of the answer, and note whether the host took it."""
        self._due = len(self._records) + len(self._records) // _FEW
        values = await run_work(self._answer.chat.size, self._values)
        self._has_unstored = not await write_chat_keys(self._answer.chat_id, values)
        if not self._has_unstored:
            self._stale_values = {}

    def _values(self) -> dict[str, Any]:
        """Return the keys to write: the answer's, and those that are cleaned up."""
        sign = self._answer.keys.sign
        value = write_records(self._records, sign, self._repairs)
        value = self._answer.with_sent(value)
        characters_left = MAX_STORED_KB * 1024 - stored_size(value)
        messages = self._answer.chat.messages
        cleaned = prune(self._stale_values, messages, self._key, characters_left)
        return {**cleaned, self._key: value}


class OutputWriter:
    """Writes no row: records go into the answer's own output."""

    def __init__(self, answer: StoredAnswer) -> None:
        """Begin with nothing: what earlier runs of the answer noted is in its output."""
        self._answer = answer
        self._repairs: tuple[ChatRepair, ...] = ()
        self._has_unstored = answer.changes_sent()
        """Whether what was sent still has to be stored."""
        self._context_record_id = ""
        """The record that holds what was sent."""

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Return the item of a record, at the place of the text that follows."""
        ulid = new.record.ulid
        return [self._item(ulid, {ulid: new.record}, new.output_index)]

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Return an item that holds the repairs."""
        self._repairs = _with_newest(self._repairs, repair)
        return [self._item(new_ulid(), {})]

    async def finish(self) -> list[StoredRecord]:
        """Return an item of what was sent, if no record holds it."""
        return [self._item(new_ulid(), {})] if self._has_unstored else []

    def _item(
        self, ulid: str, records: Mapping[str, Record], index: int | None = None
    ) -> StoredRecord:
        """Return the item that holds `records`, the repairs, and once what was sent.

        `index` is that of the output item that follows it; None means the
        end of the answer.
        """
        value = write_records(records, self._answer.keys.sign, self._repairs)
        # The record that holds what was sent may be written again, and keeps it.
        if self._has_unstored or ulid == self._context_record_id:
            message_id = self._answer.message_id
            value = {**self._answer.with_sent(value), "message_id": message_id}
            self._has_unstored = False
            self._context_record_id = ulid
        return StoredRecord(record_item(ulid, value), index)


def _with_newest(
    repairs: tuple[ChatRepair, ...], newest: ChatRepair
) -> tuple[ChatRepair, ...]:
    """Return `repairs` with one more, each once, without the oldest of too many."""
    if newest in repairs:
        return repairs
    return (*repairs, newest)[-MAX_CHAT_REPAIRS:]
