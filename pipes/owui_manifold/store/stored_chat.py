"""What the row of a chat holds when an answer begins."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    as_mapping,
    value_at,
)
from openai_responses.long_work import count_entries, run_work
from openai_responses.repairs.chat_repairs import ChatRepair
from owui_chat.input.prefix import (
    MAX_UNPACKED_TURNS,
    SentContext,
    read_sent_context,
)
from owui_chat.storage.output_carrier import (
    StoredText,
    output_records,
    parse_output_records,
)
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
    messages = _messages_of(chat)
    in_answers = output_records(messages)
    size = count_entries([read_part, messages], _COUNTED_LEVELS)
    size += count_entries([text.kept for text in in_answers.values()], 1)
    parse = partial(_parse_chat, read_part, in_answers, keys, caller.message_id, size)
    return await run_work(size, parse)


def _parse_chat(
    chat: JsonObject,
    in_answers: Mapping[str, StoredText],
    keys: ChatKeys,
    message_id: str,
    size: int,
) -> StoredChat:
    """Return what a chat holds in keys of its row and in its answers."""
    everything = {**chat, **parse_output_records(in_answers)}
    values = {key: value for key, value in everything.items() if is_pipe_key(key)}
    in_row = {key: value for key, value in values.items() if key not in in_answers}
    own_value = values.get(message_key(message_id))
    unpacked_left = JsonBudget(MAX_UNPACKED_TURNS)
    sent = read_sent_context(values, keys.unseal, unpacked_left)
    unpacked = MAX_UNPACKED_TURNS - unpacked_left.left
    return StoredChat(
        messages=_messages_of(chat),
        records=read_records(values, keys.sign),
        repairs=stored_repairs(values.values()),
        sent=sent,
        answer_repairs=stored_repairs([own_value]),
        row_values=in_row,
        size=size + unpacked // _BYTES_OF_AN_ENTRY,
    )


def _messages_of(chat: JsonObject) -> JsonObject:
    """Return the messages of a chat as the host stores them, by their ids."""
    return as_mapping(value_at(chat, _HISTORY, "messages"))
