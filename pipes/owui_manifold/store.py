"""Kept items, written to and read from the chat's row."""

from collections.abc import Mapping

from owui_chat.stored import Record, message_key, read_records, write_records
from owui_manifold.caller import Caller
from owui_manifold.host import read_chat, write_chat_key


class ChatStore:
    """What is kept of one chat; writes go to the key of one message alone."""

    def __init__(self, caller: Caller, records: Mapping[str, Record]) -> None:
        """Begin with the `records` of the chat; those of this message are kept on."""
        self.records = records
        self._caller = caller
        self._own = {
            ulid: record
            for ulid, record in records.items()
            if record.message_id == caller.message_id
        }

    async def write(self, record: Record) -> bool:
        """Store `record` and say whether the host did; only then show its marker."""
        own = {**self._own, record.ulid: record}
        key = message_key(self._caller.message_id)
        if not await write_chat_key(self._caller.chat_id, key, write_records(own)):
            return False
        self._own = own
        return True


async def open_store(caller: Caller) -> ChatStore | None:
    """Return the store of the caller's own chat, or None when it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    return None if chat is None else ChatStore(caller, read_records(chat))
