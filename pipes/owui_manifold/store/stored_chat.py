"""What the row of a chat holds when an answer begins."""

from typing import NamedTuple

from openai_responses.json_input import JsonBudget, JsonObject, as_mapping, value_at
from openai_responses.long_work import count_entries, run_work
from openai_responses.repairs.chat_repairs import ChatRepair
from owui_chat.input.prefix import MAX_UNPACKED_TURNS, SentContext, read_sent_context
from owui_chat.storage.output_carrier import output_records, parse_output_records
from owui_chat.storage.records import (
    Record,
    is_pipe_key,
    message_key,
    read_records,
    stored_repairs,
)
from owui_manifold.call.context import Caller
from owui_manifold.host.open_webui import read_chat
from owui_manifold.store.keys import ChatKeys

_HISTORY = "history"
_COUNTED_LEVELS = 3
"""Levels of the row that are counted: down to the texts and lists in a message."""
_BYTES_OF_AN_ENTRY = 200
"""Of the tools and settings of a turn."""


class StoredChat(NamedTuple):
    """A chat as the host stores it, with what earlier answers recorded."""

    messages: JsonObject
    """The host's messages, by id."""
    records: dict[str, Record]
    repairs: tuple[ChatRepair, ...]
    """What refusals of this chat showed."""
    sent: dict[str, SentContext]
    """What earlier runs sent in addition, by the ids of the answers."""
    answer_repairs: tuple[ChatRepair, ...]
    """Those of the `repairs` that earlier runs of this answer stored."""
    row_values: JsonObject
    """The values in keys of the row; those in answers are the host's to remove."""
    size: int
    """About how many entries the chat has, with what was packed in it."""


async def read_stored_chat(caller: Caller, keys: ChatKeys) -> StoredChat | None:
    """Return what is stored of the caller's own chat, or None if it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    read_keys = [key for key in chat if is_pipe_key(key) or key == _HISTORY]
    read_part = {key: chat[key] for key in read_keys}
    messages = as_mapping(value_at(chat, _HISTORY, "messages"))
    in_answers = output_records(messages)
    size = count_entries([read_part, messages], _COUNTED_LEVELS)
    size += count_entries([record.kept for record in in_answers.values()], 1)

    def parse() -> StoredChat:
        everything = {**read_part, **parse_output_records(in_answers)}
        values = {key: everything[key] for key in everything if is_pipe_key(key)}
        own_value = values.get(message_key(caller.message_id))
        unpacked_left = JsonBudget(MAX_UNPACKED_TURNS)
        sent = read_sent_context(values, keys.unseal, unpacked_left)
        unpacked = MAX_UNPACKED_TURNS - unpacked_left.left
        return StoredChat(
            messages=messages,
            records=read_records(values, keys.sign),
            repairs=stored_repairs(values.values()),
            sent=sent,
            answer_repairs=stored_repairs([own_value]),
            row_values={key: values[key] for key in values if key not in in_answers},
            size=size + unpacked // _BYTES_OF_AN_ENTRY,
        )

    return await run_work(size, parse)
