"""Kept items, written to and read from the chat's row."""

from collections.abc import Mapping
from typing import Any

from openai_responses.errors import InvalidRequest
from openai_responses.items import is_reasoning
from owui_chat.stored import (
    Record,
    dead_in,
    is_pipe_key,
    message_key,
    read_records,
    write_records,
)
from owui_manifold.caller import Caller
from owui_manifold.host import read_chat, server_secret, write_chat_key
from owui_manifold.sealing import Seal, is_sealed
from owui_manifold.valves import Valves


class ChatStore:
    """What is kept of one chat; writes go to the key of one message alone."""

    def __init__(
        self, caller: Caller, chat: Mapping[str, Any], seal: Seal | None = None
    ) -> None:
        """Begin with what `chat` holds; with a `seal`, what is written is encrypted."""
        self.records = read_records(chat)
        self._caller = caller
        self._seal = seal
        self._key = message_key(caller.message_id)
        self._dead = set(dead_in(chat.get(self._key)))
        self._own = {
            ulid: record
            for ulid, record in self.records.items()
            if record.message_id == caller.message_id
        }

    async def write(self, record: Record) -> bool:
        """Store `record` and say whether the host did; only then show its marker."""
        own = {**self._own, record.ulid: record}
        if not await self._write(write_records(own, self._dead)):
            return False
        self._own = own
        return True

    async def bury_reasoning(self) -> None:
        """Note that no reasoning kept so far in this chat is to be sent again."""
        dying = {
            ulid
            for ulid, record in self.records.items()
            if any(map(is_reasoning, record.payload))
        }
        if dying:
            self._dead |= dying
            await self._write(write_records(self._own, self._dead))

    async def _write(self, value: Mapping[str, Any]) -> bool:
        stored = self._seal.close(value) if self._seal else value
        return await write_chat_key(self._caller.chat_id, self._key, stored)


async def open_store(caller: Caller, valves: Valves) -> ChatStore | None:
    """Return the store of the caller's own chat, or None when it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {key: value for key, value in chat.items() if is_pipe_key(key)}
    if valves.STORE_ENCRYPTION == "on":
        seal = _seal(valves)
        return ChatStore(caller, _opened(kept, seal), seal)
    if not any(map(is_sealed, kept.values())):
        return ChatStore(caller, kept)
    try:
        return ChatStore(caller, _opened(kept, _seal(valves)))
    except InvalidRequest:  # unreadable items are no reason to stop a chat
        return ChatStore(caller, kept)


def _opened(kept: Mapping[str, Any], seal: Seal) -> dict[str, Any]:
    return {key: seal.open(value) for key, value in kept.items()}


def _seal(valves: Valves) -> Seal:
    """Return the seal of this server; raises InvalidRequest where there can be none."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    if not secret:
        raise InvalidRequest(
            "STORE_ENCRYPTION needs a key. An administrator has to set "
            "STORE_ENCRYPTION_KEY in the valves of this pipe."
        )
    return Seal(secret)
