"""
title: GPT-5 Agent Strategies
author: The authors of OpenAI Responses Manifold
version: 1.0.0
license: MIT
description: Agents over the Responses API, with policies, limits and approvals.

Built by scripts/bundle.py from pipes/ and pipelines/; do not edit. Each module follows those that
it imports; the last one has the class Pipeline.
"""

import asyncio
import base64
import errno
import hashlib
import hmac
import html
import inspect
import json
import logging
import math
import mimetypes
import os
import platform
import random
import re
import secrets
import shutil
import signal
import ssl
import stat
import struct
import sys
import tempfile
import time
import zlib
from abc import ABC, abstractmethod
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter, Task
from base64 import b64encode
from bisect import bisect, bisect_left
from collections import Counter, defaultdict, deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache, partial
from importlib import import_module
from itertools import accumulate, chain, count, groupby, pairwise
from mimetypes import guess_type
from operator import attrgetter, itemgetter
from os.path import commonpath, getsize, join, realpath
from pathlib import Path
from posixpath import basename, normpath
from queue import Empty, SimpleQueue
from reprlib import repr as short_repr
from secrets import token_hex
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Thread, current_thread, main_thread
from traceback import extract_tb
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    IO,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
)
from urllib.parse import SplitResult, quote, quote_plus, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass
from zipfile import BadZipFile, ZipFile

import aiohttp
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    SkipValidation,
    StrictBool,
    StrictStr,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_serializer,
)
from pydantic.alias_generators import to_camel

# --------------------------------------------------------------------------------------
# openai_responses.digest
#
# Digests of texts, to compare or to name them without keeping them.
# --------------------------------------------------------------------------------------


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text; a lone surrogate is none of UTF-8's characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --------------------------------------------------------------------------------------
# openai_responses.json_input
#
# JSON that others wrote, which may be invalid.
# --------------------------------------------------------------------------------------


JsonObject = Mapping[str, Any]
"""One that is only read."""

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of an event or a body: each can be a whole response with its images."""
MAX_JSON_DEPTH = 128
"""Recursive code, ours and the host's, fails at some hundreds."""
_VALUE_BYTES = 32
"""About what a value takes in memory beside its text: `[],` becomes 64 bytes."""


def load_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text; raises ValueError, also if it is too deep."""
    with suppress(RecursionError):
        value = json.loads(text)
        # Most texts have fewer brackets than levels are allowed, which is quick to see.
        if _count_marks(text, "[{") <= MAX_JSON_DEPTH or not is_too_deep(value):
            return value
    raise ValueError("too deep")


def _count_marks(text: str | bytes | bytearray, marks: str) -> int:
    """Return how many of the marks a JSON text has, those in its strings among them."""
    if isinstance(text, str):
        return sum(text.count(mark) for mark in marks)
    return len(text) - len(text.translate(None, marks.encode()))


def is_too_deep(value: object) -> bool:
    """Say whether a value has more levels than MAX_JSON_DEPTH."""
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value)))


def _levels(value: object) -> Iterator[list[Any]]:
    """Yield the values of each level, names of objects among them.

    A value that contains itself has levels without end.
    """
    level = [value]
    while level:
        yield level
        below: list[Any] = []
        for parent in level:
            if isinstance(parent, dict):
                below += parent
                below += parent.values()
            elif isinstance(parent, list):
                below += parent
        level = below


def json_weight(text: str | bytes | bytearray) -> int:
    """Return about how many bytes a JSON text takes once it is parsed."""
    # A value stands behind a comma, or is the first behind an opening.
    return len(text) + _VALUE_BYTES * _count_marks(text, "[{,")


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        value = load_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_string_map(text: str) -> Mapping[str, str] | None:
    """Return the JSON object of texts in a text; None for anything else.

    An empty text stands for an empty object.
    """
    texts = parse_json_object(text.strip() or "{}")
    if texts is None:
        return None
    for value in texts.values():
        if not isinstance(value, str):
            return None
    return texts


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; anything else is the default."""
    try:
        number = float(str(value).strip())
        clamped = min(max(number, least), most)
        return int(clamped)
    except ValueError:  # no number, or NaN
        return default


_KILOBYTE = 1024


def count_entries(value: object, depth: int) -> int:
    """Return about how large a JSON value is: entries and kilobytes, to a depth."""
    if isinstance(value, str):
        return len(value) // _KILOBYTE
    rows = as_list(value)
    if isinstance(value, Mapping):
        rows = list(value.values())
    count = len(rows)
    if depth <= 0:
        return count
    for row in rows:
        # Most values are short texts and numbers; a call for each would be half the time.
        if isinstance(row, str):
            count += len(row) // _KILOBYTE
        elif isinstance(row, (dict, list)):
            count += count_entries(row, depth - 1)
    return count


_VALUE_SIZE = 10
"""What each value adds to a size; a walk takes about as long for ten characters."""
_MAX_VALUE_DEPTH = 64


class JsonTooLarge(ValueError):
    """What others sent is more than is read."""


class JsonBudget:
    """The work that may still be done on what others sent."""

    def __init__(self, left: int) -> None:
        """Begin with the size that may be read."""
        self.left = left

    def spend(self, size: int) -> None:
        """Take a size away; raises JsonTooLarge if there is not so much."""
        if size > self.left:
            raise JsonTooLarge
        self.left -= size


def json_size(value: object, most: int) -> int:
    """Return the size of a JSON value: its characters, and ten for each value.

    Raises JsonTooLarge for more than `most`, and for too many levels.
    """
    size = _VALUE_SIZE
    for depth, level in enumerate(_levels(value)):
        for part in level:
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, dict | list):
                size += _VALUE_SIZE * len(part)
            if size > most:
                raise JsonTooLarge
        if depth >= _MAX_VALUE_DEPTH:
            raise JsonTooLarge
    return size


def matches_schema(value: object, schema: Any) -> bool:
    """Say whether a JSON value matches a schema of ours.

    A text is a pattern, a type itself, a tuple has schemas of which one matches, a list
    the schema of its values, an object the schemas of its keys; anything else is called.
    """
    match schema:
        case str():
            return isinstance(value, str) and bool(re.fullmatch(schema, value, re.S))
        case type():
            return isinstance(value, schema)
        case tuple():
            return any(matches_schema(value, option) for option in schema)
        case [schema_of_rows]:
            return _rows_match(value, schema_of_rows)
        case dict():
            return _entries_match(value, schema)
    return bool(schema(value))


def _rows_match(value: object, schema: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(matches_schema(row, schema) for row in value)


def _entries_match(value: object, schemas: JsonObject) -> bool:
    """Say whether a value is an object with no other keys, and matching values."""
    if not isinstance(value, Mapping) or not value.keys() <= schemas.keys():
        return False
    return all(matches_schema(value[key], schemas[key]) for key in value)


def as_mapping(value: object) -> JsonObject:
    """Return a JSON object, an empty one for anything else."""
    # A dict is a Mapping, too, but to find that out takes several times as long.
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    """Return what stands in objects in each other; None where one is missing."""
    for key in keys:
        value = as_mapping(value).get(key)
    return value


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


# --------------------------------------------------------------------------------------
# openai_responses.tool_kinds
#
# The kinds of tools that OpenAI runs, and the items that they make.
#
# `TOOL_KINDS` is the one list of them: what a caller may set, what a limit can forbid and
# what a call costs, what a request offers and what goes back follow it. What only a host
# knows stands in tables of the same kinds: `TOOL_SETTINGS` of the pipe and
# `HOSTED_CARDS` of the page (cards). tests/test_tool_kinds.py fails for a kind that one of
# them lacks.
# --------------------------------------------------------------------------------------


class ItemKind(NamedTuple):
    """What all items of one type have in common."""

    parts: tuple[tuple[str, str], ...] = ()
    """Lists of texts that deltas grow: kind and field."""
    text: tuple[str, str] | None = None
    """The one text that deltas grow: kind and field."""
    is_encrypted: bool = False
    """Only the account and model family that made it can read it."""
    returned: Literal["always", "same_run", "never"] = "always"
    """The later requests that a hosted item goes into."""
    required: tuple[str, ...] = ()
    """Fields without which the API refuses a hosted item."""
    nullable: tuple[str, ...] = ()
    """Fields that the API demands even if they are null."""
    is_call: bool = False
    """It belongs to a call of a hosted tool."""


class ToolKind(NamedTuple):
    """A kind of tools that OpenAI runs, itself or at another server."""

    type: str
    """As the API calls it; the types of older and dated versions begin with it."""
    older_types: tuple[str, ...] = ()
    """Versions that a caller can be allowed on their own."""
    closed_fields: tuple[str, ...] = ()
    """Fields that name what belongs to somebody, or where a chat is sent."""
    items: Mapping[str, ItemKind] = MappingProxyType({})
    """The items that it makes, by their types; none if it is not offered."""
    least: Mapping[str, Any] = MappingProxyType({})
    """What the API demands beside the type."""
    include: str = ""
    """What a request must ask for to get all of its items."""
    refused_at_minimal: bool = False
    """It cannot be used with the effort `minimal`."""
    is_cited: bool = False
    """Answers cite what it found."""
    fee: float = 0
    """US dollars for a call, where a source says it."""
    container_fee: float = 0
    """US dollars for each container in which its calls run."""

    @property
    def types(self) -> tuple[str, ...]:
        """The names by which a caller can be allowed it."""
        return (self.type, *self.older_types)


_KINDS = (
    ToolKind(
        "web_search",
        older_types=("web_search_preview",),
        # "The following tools cannot be used with reasoning.effort 'minimal':
        # web_search." (openai/codex 3559); of the others no refusal was reported.
        items={"web_search_call": ItemKind(required=("action",), is_call=True)},
        include="web_search_call.action.sources",
        refused_at_minimal=True,
        is_cited=True,
        fee=0.01,
    ),
    ToolKind(
        "file_search",
        closed_fields=("vector_store_ids",),
        items={"file_search_call": ItemKind(required=("queries",), is_call=True)},
        refused_at_minimal=True,
        is_cited=True,
    ),
    ToolKind(
        "mcp",
        closed_fields=(
            "server_url",
            "connector_id",
            "tunnel_id",
            "authorization",
            "headers",
        ),
        items={
            # Without the list the API asks the server again at each request.
            "mcp_list_tools": ItemKind(required=("server_label", "tools")),
            "mcp_call": ItemKind(
                required=("server_label", "name", "arguments"),
                text=("arguments", "arguments"),
                is_call=True,
            ),
            # An approval holds for one response; without it the API would make the call
            # again.
            "mcp_approval_request": ItemKind(
                required=("id", "server_label", "name", "arguments"),
                returned="same_run",
                is_call=True,
            ),
            "mcp_approval_response": ItemKind(
                required=("approval_request_id", "approve"),
                returned="same_run",
                is_call=True,
            ),
        },
    ),
    ToolKind(
        "code_interpreter",
        closed_fields=("container",),
        items={
            "code_interpreter_call": ItemKind(
                required=("container_id",),
                nullable=("code", "outputs"),
                text=("code", "code"),
                is_call=True,
            )
        },
        least={"container": {"type": "auto"}},
        include="code_interpreter_call.outputs",
        # A container of 1 GB for 20 minutes. OpenAI may bill it by the minute, at least
        # five: this is the most (OpenAI's page of prices, by simonw/llm 1592, 2026-08).
        container_fee=0.03,
    ),
    ToolKind(
        "image_generation",
        closed_fields=("input_image_mask",),
        # The API looks it up by its id, even if the image is in it (pydantic-ai
        # 2.68.0).
        items={"image_generation_call": ItemKind(returned="never")},
        refused_at_minimal=True,
    ),
    # Known so that no caller and no limit lets them pass; nothing offers them.
    ToolKind("shell", closed_fields=("environment",)),
    ToolKind("local_shell"),
    ToolKind("apply_patch"),
    ToolKind(
        "computer",
        older_types=("computer_use_preview",),
        closed_fields=("environment",),
    ),
    ToolKind("programmatic_tool_calling"),
)
"""In the order in which a request offers them: the prompt cache depends on it.

The types are those of openai-python 3.54.0, the fee is from LiteLLM 1.109.1
(2026-11-21), what is refused at `minimal` from openai-agents.
"""

TOOL_KINDS: Mapping[str, ToolKind] = {kind.type: kind for kind in _KINDS}

TOOL_OF_ITEM: Mapping[str, ToolKind] = {
    name: tool for tool in _KINDS for name in tool.items
}
"""The kind of tools that makes an item, by the item's type."""

HOSTED_ITEM_KINDS: Mapping[str, ItemKind] = {
    name: tool.items[name] for name, tool in TOOL_OF_ITEM.items()
}
"""What is known of the items that tools make, by their types."""


# --------------------------------------------------------------------------------------
# openai_responses.items
#
# The API's items: their kinds, their texts, and pairs of calls and outputs.
#
# An item stays the dict that the API sent; unknown fields are sent back unchanged. What
# the API wants of them then: docs/reference/responses-api.md, "Items in later requests".
# --------------------------------------------------------------------------------------


Item = dict[str, Any]

ADDED_TOOLS = "additional_tools"
CONFIGURATION = "configuration_update"
"""Input items that change the request from their place on."""


ITEM_KINDS: Mapping[str, ItemKind] = {
    "message": ItemKind(parts=(("text", "content"),)),
    "reasoning": ItemKind(
        parts=(("summary", "summary"), ("reasoning", "content")), is_encrypted=True
    ),
    "compaction": ItemKind(is_encrypted=True),
    CONFIGURATION: ItemKind(),
    "function_call": ItemKind(text=("arguments", "arguments")),
    "function_call_output": ItemKind(),
    "custom_tool_call": ItemKind(text=("arguments", "input")),
    "custom_tool_call_output": ItemKind(),
    **HOSTED_ITEM_KINDS,
}
"""Known types of items."""

_OTHER_KIND = ItemKind()
_NO_TOOL = ToolKind("")

CALL_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that we answer, and the types of their answers."""
_CALLS = tuple(CALL_OUTPUTS)
"""A tuple compares: a stored `type` may be a list, which no set can look up."""
_OUTPUTS = tuple(CALL_OUTPUTS.values())


def item_type(item: JsonObject) -> str:
    """Return the type; a message in its short form has none."""
    kind = item.get("type")
    # The type `EasyInputMessage` of openai-python 3.54.0 has no `type`.
    if kind is None and "role" in item:
        return "message"
    return kind if isinstance(kind, str) else ""


def json_digest(value: object) -> str:
    """Return a short name for an item or a tool, the same for the same JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hex_digest(text)[:32]


def tool_name(tool: JsonObject) -> str:
    """Return what names a tool: its name, its label, or its type."""
    return str(tool.get("name") or tool.get("server_label") or tool.get("type"))


def kind_of(item: JsonObject) -> ItemKind:
    """Return what is known of its type."""
    return ITEM_KINDS.get(item_type(item), _OTHER_KIND)


def maker_of(item: JsonObject) -> ToolKind:
    """Return the kind of tools that makes such items; one without a type if none does."""
    return TOOL_OF_ITEM.get(item_type(item), _NO_TOOL)


def tool_kind(tool: JsonObject) -> ToolKind:
    """Return the kind of a tool; one without a type for those that OpenAI does not run.

    The types of older and dated versions begin with that of their kind.
    """
    name = as_text(tool.get("type"))
    for kind in TOOL_KINDS.values():
        if name.startswith(kind.type):
            return kind
    return _NO_TOOL


def call_fee(item: JsonObject) -> float:
    """Return the US dollars that a call of a hosted tool costs beside its tokens."""
    return maker_of(item).fee if kind_of(item).is_call else 0


def container_ids(items: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the containers in which code ran."""
    return set(_texts([item.get("container_id") for item in items]))


def container_fees(items: Iterable[JsonObject]) -> float:
    """Return the US dollars of the containers in which code ran, each paid once."""
    fee = TOOL_KINDS["code_interpreter"].container_fee
    return fee * len(container_ids(items))


def is_call(item: JsonObject) -> bool:
    """Say whether our side has to answer `item`."""
    return item.get("type") in _CALLS


def is_call_output(item: JsonObject) -> bool:
    """Say whether `item` answers a call."""
    return item.get("type") in _OUTPUTS


def is_paired(item: JsonObject) -> bool:
    """Say whether `item` is one of a call and its output."""
    return is_call(item) or is_call_output(item)


def is_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is a reasoning item."""
    return item.get("type") == "reasoning"


def is_commentary(item: JsonObject) -> bool:
    """Say whether `item` is a message about the work on the answer."""
    # Models up to gpt-5.2 have no phase, and other servers none at all.
    return item.get("phase") == "commentary" and item_type(item) == "message"


def has_encrypted_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is reasoning that the model can read again."""
    return is_reasoning(item) and bool(item.get("encrypted_content"))


def has_plain_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is reasoning of which its server gave the words alone.

    LiteLLM gives them as the summary, and models behind it demand them
    (docs/servers.md).
    """
    is_plain = is_reasoning(item) and not item.get("encrypted_content")
    return is_plain and has_text(item)


def is_encrypted(item: JsonObject) -> bool:
    """Say whether only those who made `item` can read it."""
    return kind_of(item).is_encrypted


def is_compaction(item: JsonObject) -> bool:
    """Say whether `item` replaces all items before it."""
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    """Return `items` from the last compaction on, behind instructions and added tools.

    Tools that earlier items added stay in force, and their calls have to name them.

    The API compacts at the end of a response (in all eight recordings), which may be
    one that calls tools. What waits for an answer there moves behind the compaction and
    the configuration update of the API that may follow it: an answer is refused without
    its call.
    """
    # A compaction stands for all in front of it; a chat may hold several.
    indexes = [index for index, item in enumerate(items) if is_compaction(item)]
    if not indexes:
        return list(items)
    start = indexes[-1]
    end = start + 1 + count_updates(items[start + 1 :])
    # Instructions are sent as the first developer message; a compaction lacks them.
    instructions = [item for item in items[:1] if item.get("role") == "developer"]
    waiting = _waiting_items(items[:start])
    added = [item for item in items[:start] if item_type(item) == ADDED_TOOLS]
    return [*instructions, *added, *items[start:end], *waiting, *items[end:]]


def count_updates(items: Iterable[Item]) -> int:
    """Return how many configuration updates `items` begin with."""
    count = 0
    for item in items:
        if item_type(item) != CONFIGURATION:
            break
        count += 1
    return count


def _waiting_items(items: Sequence[Item]) -> list[Item]:
    """Return the calls and the approval requests that `items` do not answer."""
    answered = {item.get("approval_request_id") for item in items}
    calls = {id(call) for call in open_calls(items)}
    waiting: list[Item] = []
    for item in items:
        is_request = item_type(item) == "mcp_approval_request"
        if id(item) in calls or (is_request and item.get("id") not in answered):
            waiting.append(item)
    return waiting


def text_message(role: object, text: str) -> Item:
    """Return a message with one text, in the form that the API has for its role."""
    if role == "assistant":
        part: Item = {"type": "output_text", "text": text, "annotations": []}
    else:
        part = {"type": "input_text", "text": text}
    return {"type": "message", "role": role, "content": [part]}


def message_text(item: JsonObject) -> str:
    """Return the text and the refusals of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(part_text(part) for part in content_parts(content))


def has_text(item: JsonObject) -> bool:
    """Say whether `item` holds a text that deltas grow."""
    return bool(message_text(item)) or any(text for _, text in item_texts(item))


def content_parts(content: object) -> list[Item]:
    """Return the objects in a content."""
    return [part for part in as_list(content) if isinstance(part, dict)]


def part_text(part: JsonObject) -> str:
    """Return the text of a content part."""
    return as_text(part.get("text") or part.get("refusal"))


def find_call_ids(items: Iterable[Item]) -> set[str]:
    """Return the ids of all calls that our side has to answer."""
    return {as_text(item.get("call_id")) for item in items if is_call(item)}


def distinct_call_id(call_id: str, taken: Container[str]) -> str:
    """Return `call_id`, with the first number behind it that makes it a free one."""
    own_id = call_id
    number = 1
    while own_id in taken:
        number += 1
        own_id = f"{call_id}_{number}"
    return own_id


def open_calls(items: Sequence[Item]) -> list[Item]:
    """Return the calls without an output."""
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [
        item for item in items if is_call(item) and item.get("call_id") not in answered
    ]


def _find_pairs(items: Sequence[JsonObject]) -> set[int]:
    """Return the indexes of the calls that have an output, and of these outputs.

    An output answers an earlier call of its own kind; a `call_id` counts once.
    """
    paired: set[int] = set()
    waiting: dict[str, int | None] = {}  # the index of each call; None once answered
    turn_start = 0
    for index, item in enumerate(items):
        if item.get("role") == "user":
            turn_start = index
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            continue
        kind = item.get("type")
        if kind in _CALLS:
            _wait_for_output(waiting, items, index, turn_start)
            continue
        # No such call, or it has its output already.
        call_index = waiting.get(call_id)
        if call_index is None:
            continue
        if kind == CALL_OUTPUTS[items[call_index]["type"]]:
            paired |= {call_index, index}
            waiting[call_id] = None
    return paired


def _wait_for_output(
    waiting: dict[str, int | None],
    items: Sequence[JsonObject],
    index: int,
    turn_start: int,
) -> None:
    """Note the call at an index, unless its id is that of an earlier one.

    Of some calls only the place is known, not the name: they have no pair. A call
    that was stopped gets no output. Some servers give its id again to a call of a later
    turn, which counts instead (recorded at Bedrock, whose first call is always
    `call_0`).
    """
    if not items[index].get("name"):
        return
    call_id = items[index]["call_id"]
    earlier = waiting.get(call_id)
    was_stopped = earlier is not None and earlier < turn_start
    if was_stopped or call_id not in waiting:
        waiting[call_id] = index


def move_messages_behind_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` without messages between calls and their outputs.

    They follow the last of the outputs. A call without an output moves nothing.
    """
    ordered: list[Item] = []
    moved: list[Item] = []
    waiting: set[str] = set()
    paired = _find_pairs(items)
    for index, item in enumerate(items):
        if waiting and item_type(item) == "message":
            moved.append(item)
            continue
        ordered.append(item)
        if index not in paired:
            continue
        if is_call(item):
            waiting.add(item["call_id"])
        else:
            waiting.discard(item["call_id"])
        if not waiting:
            ordered += moved
            moved = []
    return ordered


_INPUT_ROLES = ("user", "system", "developer")


def drop_orphans(items: Sequence[Item]) -> list[Item]:
    """Return `items` without half pairs, and without the reasoning that produced them.

    The API refuses all three (docs/reference/responses-api.md, "Refusals of input
    items", 5). `dangling` is reasoning whose product has not come yet. Reasoning before
    several calls stays as long as one of them stays.
    """
    kept: list[Item] = []
    dangling: list[Item] = []
    has_lost_call = False
    paired = _find_pairs(items)
    for index, item in enumerate(items):
        kind = item.get("type")
        if is_paired(item) and index not in paired:
            has_lost_call = has_lost_call or kind in _CALLS
            continue
        # Reasoning without its product is a 400 (recorded, 986 and 1009), and its
        # product may be the lost call.
        if _is_no_product(item) or (has_lost_call and kind not in _CALLS):
            dangling = []
        has_lost_call = False
        if kind == "reasoning":
            dangling.append(item)
            continue
        # `item` is what the reasoning led to.
        kept += dangling
        dangling = []
        kept.append(item)
    return kept


def _is_no_product(item: Item) -> bool:
    """Say whether reasoning in front of `item` led to something else, or to nothing."""
    kind = item.get("type")
    if kind in _OUTPUTS or kind == CONFIGURATION:
        return True
    return item.get("role") in _INPUT_ROLES


TextPlace = tuple[str, int]
"""A kind of text and the number of its part."""


def item_texts(item: JsonObject) -> Iterator[tuple[TextPlace, str]]:
    """Yield place and text of everything in `item` that deltas grow."""
    kind = kind_of(item)
    for text_kind, field in kind.parts:
        for index, part in enumerate(as_list(item.get(field))):
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "refusal":
                yield ("refusal", index), as_text(part.get("refusal"))
            else:
                yield (text_kind, index), as_text(part.get("text"))
    if kind.text:
        text_kind, field = kind.text
        yield (text_kind, 0), as_text(item.get(field))


_TEXT_PARTS: Mapping[str, Item] = {
    "text": {"type": "output_text", "text": "", "annotations": []},
    "refusal": {"type": "refusal", "refusal": ""},
    "summary": {"type": "summary_text", "text": ""},
    "reasoning": {"type": "reasoning_text", "text": ""},
}
"""The API's parts of the texts that deltas grow."""


def text_part(kind: str, text: str) -> Item:
    """Return a part with a text of a kind, as the API writes it."""
    return {**_TEXT_PARTS[kind], _text_field(kind): text}


def _text_field(kind: str) -> str:
    return "refusal" if kind == "refusal" else "text"


def with_texts(item: Item, texts: Mapping[TextPlace, str]) -> Item:
    """Return an item with these texts at their places, the inverse of `item_texts`.

    Those whose part it lacks become new parts at the end.
    """
    changed = dict(item)
    kind = kind_of(item)
    if kind.text:
        text_kind, field = kind.text
        if (text_kind, 0) in texts:
            changed[field] = texts[text_kind, 0]
    known_places = dict(item_texts(item))
    for text_kind, field in kind.parts:
        kinds = ("text", "refusal") if text_kind == "text" else (text_kind,)
        parts = list(as_list(item.get(field)))
        for place, text in texts.items():
            own_kind, number = place
            if own_kind not in kinds:
                continue
            if place in known_places:
                parts[number] = {**parts[number], _text_field(own_kind): text}
            else:
                parts.append(text_part(own_kind, text))
            changed[field] = parts
    return changed


def arguments_text(arguments: object) -> str:
    """Return the arguments of a call as the API has them: a JSON object in a text.

    Gateways give the object itself, or null for none.
    """
    if isinstance(arguments, str):
        return arguments
    if arguments is None:
        return ""
    return json.dumps(arguments, ensure_ascii=False)


def is_image_call(item: JsonObject) -> bool:
    """Say whether `item` is an image that the model generated."""
    return item.get("type") == "image_generation_call"


def has_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image that the model can read."""
    is_generated = is_image_call(item) and bool(item.get("result"))
    # As input the API takes neither SVG nor moving GIF.
    return is_generated and _image_format(item) in ("png", "jpeg", "webp")


def _image_format(item: JsonObject) -> str:
    return str(item.get("output_format") or "png")


def image_url(item: JsonObject) -> str:
    """Return a generated image as a data URL."""
    subtype = _image_format(item)
    if subtype == "svg":
        # The media type of RFC 6838; the API says `svg`.
        subtype = "svg+xml"
    return f"data:image/{subtype};base64,{item['result']}"


def image_message(item: JsonObject) -> Item:
    """Return a generated image as an input message.

    The API would look the item itself up by an id that it never stored.
    """
    part = {"type": "input_image", "detail": "auto", "image_url": image_url(item)}
    return {"type": "message", "role": "user", "content": [part]}


def is_code(item: JsonObject) -> bool:
    """Say whether `item` is code that the API ran."""
    return item.get("type") == "code_interpreter_call"


def code_output(item: JsonObject) -> str:
    """Return what code printed, or that it failed."""
    if item.get("status") in ("failed", "incomplete"):
        return "The code did not run to its end."
    outputs = content_parts(item.get("outputs"))
    return "".join(str(part.get("logs") or "") for part in outputs)


_UNFINISHED = ("in_progress", "searching", "interpreting", "calling", "incomplete")
_ACTIONS = ("search", "open_page", "find_in_page")


def is_hosted(item: JsonObject) -> bool:
    """Say whether the API made or answered `item` itself."""
    return item_type(item) in TOOL_OF_ITEM


def is_host_returned(item: JsonObject) -> bool:
    """Say whether `item` is a hosted one that a later request can contain.

    Without a list of a server's tools the API asks the server again.
    """
    kind = kind_of(item)
    tool = maker_of(item)
    if not tool.type or kind.returned == "never":
        return False
    if item.get("status") in _UNFINISHED:
        return False
    action = as_mapping(item.get("action")).get("type")
    if tool.type == "web_search" and action not in _ACTIONS:
        return False
    if item_type(item) == "mcp_list_tools" and item.get("error"):
        return False
    return all(item.get(key) is not None for key in kind.required)


def is_kept_hosted(item: JsonObject) -> bool:
    """Say whether later turns send `item`, a hosted one."""
    return is_host_returned(item) and kind_of(item).returned == "always"


def is_replayed(item: JsonObject, *, is_ours: bool) -> bool:
    """Say whether later turns send `item`, which an answer stored.

    `is_ours` says whether its maker is the model family, server and account that will
    read it: no other item can be decrypted, or configures the model. Unknown types are
    never sent, nor are messages that are not the model's.
    """
    kind = kind_of(item)
    if is_hosted(item):
        return is_kept_hosted(item) or has_image(item)
    if kind.is_encrypted:
        return is_ours and bool(item.get("encrypted_content"))
    # The effort may be one that this model does not have.
    if item_type(item) == CONFIGURATION and not is_ours:
        return False
    is_of_the_model = item.get("role", "assistant") == "assistant"
    return is_of_the_model and kind is not _OTHER_KIND


def drop_tool_items(items: Iterable[Item]) -> list[Item]:
    """Return `items` without calls, their outputs, and the reasoning that led to them.

    It is dropped at the end as well: reasoning without its product is refused.
    """
    kept: list[Item] = []
    for item in items:
        if is_paired(item) or kind_of(item).is_call:
            _drop_last_reasoning(kept)
        else:
            kept.append(item)
    _drop_last_reasoning(kept)
    return kept


def _drop_last_reasoning(items: list[Item]) -> None:
    """Take the reasoning at the end out of `items`."""
    while items and is_reasoning(items[-1]):
        items.pop()


def search_queries(item: JsonObject) -> list[str]:
    """Return the queries of a search."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = as_mapping(item.get("action"))
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: JsonObject) -> list[str]:
    """Return the addresses of the pages that a search found, each once."""
    sources = content_parts(as_mapping(item.get("action")).get("sources"))
    addresses = _texts([source.get("url") for source in sources])
    return list(dict.fromkeys(addresses))


def _texts(values: object) -> list[str]:
    """Return the texts of a list that are not empty."""
    return [value for value in as_list(values) if isinstance(value, str) and value]


# --------------------------------------------------------------------------------------
# openai_responses.errors
#
# The exceptions of this package, and the API's own error.
#
# ResponsesError
#  ├─ InvalidRequest         our own check refused it; nothing was sent
#  │   └─ InvalidSetting     because of a field of the endpoint
#  ├─ ConnectionFailed       no connection, or it broke before an answer
#  ├─ TimedOut               the server or the run took too long
#  ├─ ResponseLost           a background response whose rest cannot be had
#  ├─ ApiRefused             an HTTP status of 400 or more
#  ├─ UnreadableAnswer       an answer that is not what the API sends
#  ├─ AnswerTooLarge         an answer that is not read on
#  └─ MalformedEvent         one event of a stream that cannot be read
#
# `str(error)` is our own sentence for a person, without body, header or key. What an
# administrator has to look at is in `fault`, for a shell to say with its own names.
# --------------------------------------------------------------------------------------


_PLACE_SOMEWHERE = re.compile(r"\b(input|tools)\[\d{1,6}\]")


REASON_GIVEN = " The reason given: "
"""In the text of an error, before what only administrators are shown of its cause."""
UNREADABLE_STREAM = "unreadable_stream"
"""Our code for a stream of which no event could be read."""


class SafetyNotice(NamedTuple):
    """What OpenAI's monitoring has to say about an answer that it stopped.

    A model wrote `explanation` and `advice` about the chat, for people to read: they are
    data, never instructions. `review_target` is what a review by OpenAI names.
    """

    explanation: str = ""
    advice: str = ""
    category: str = ""
    review_target: str = ""


class ApiError(NamedTuple):
    """The error that the API reports (docs/reference/responses-api.md, "Errors").

    `message` is never shown: it can quote a key or a prompt. `notice` is shown, because
    OpenAI asks for it (guide "Safety checks: misalignment monitoring").
    """

    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""
    notice: SafetyNotice = SafetyNotice()
    is_relayed: bool = False
    """Whether it was found in a text, where words of the request may stand."""
    is_page: bool = False
    """Whether a page came in place of the API's answer: something in front of the API
    sent it, such as a firewall, a proxy or a gateway."""

    def is_any_of(self, words: Container[str | None]) -> bool:
        """Say whether its code or its type is one of the `words`."""
        return self.code in words or self.type in words

    @property
    def text(self) -> str:
        """The place and the words."""
        return f"{self.param} {self.message}"

    @property
    def names_a_place(self) -> bool:
        """Whether a place in the request is named anywhere, maybe in a quote from it."""
        return _PLACE_SOMEWHERE.search(self.text) is not None

    @property
    def status(self) -> int:
        """The HTTP status that other servers send as the code, else 0."""
        code = self.code or ""
        return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


class Failure(NamedTuple):
    """A failure before the first event.

    `status` is None without an HTTP answer, 200 if the stream began with an error.
    `retry_after` is in seconds; `should_retry` is what the server says.
    """

    status: int | None = None
    error: ApiError = ApiError()
    retry_after: float | None = None
    should_retry: bool | None = None


SettingName = Literal[
    "api_key",
    "base_url",
    "ca_bundle",
    "extra_headers",
    "organization",
    "project",
    "proxy",
    "verify_ssl",
]
"""Fields of `Endpoint` that can be the cause of a failure."""


class SettingFault(NamedTuple):
    """The settings that can be the cause of a failure; none if it has another one.

    Settings have other names where an administrator sees them, and who can change them
    depends on the host, so what to do is worded by the shells.
    """

    settings: tuple[SettingName, ...] = ()
    certainty: Literal["certain", "likely", "possible"] = "likely"
    """`certain`: the value cannot be used. `possible`: the failure may also pass."""


NO_FAULT = SettingFault()


class ResponsesError(Exception):
    """What this package raises on purpose."""

    failure: Failure | None = None
    """Why the request may be sent again; None if it may not."""
    is_final = False
    """Whether nothing more of the response is read."""
    was_sent = False
    """Whether the server may be working on the request."""
    status = 0
    """That of HTTP, if there was an answer."""

    def __init__(self, sentence: str = "", fault: SettingFault = NO_FAULT) -> None:
        """Keep the settings that can be the cause."""
        super().__init__(sentence)
        self.fault = fault


class InvalidRequest(ResponsesError):
    """A request that is not sent."""


class InvalidSetting(InvalidRequest):
    """A field of the endpoint has a value that cannot be used."""

    def __init__(self, name: SettingName, reason: str) -> None:
        """Keep the name of the field; `reason` is a sentence that does not name it."""
        super().__init__(reason, SettingFault((name,), "certain"))


class ConnectionFailed(ResponsesError):
    """The server could not be reached, or went away before it answered."""

    failure = Failure()

    def __init__(
        self, sentence: str, *, was_sent: bool = True, fault: SettingFault = NO_FAULT
    ) -> None:
        """Note whether the server may have got the request."""
        super().__init__(sentence, fault)
        self.was_sent = was_sent


TimeoutKind = Literal["first_event_timeout", "idle_timeout", "total_timeout"]


class TimedOut(ResponsesError):
    """A time limit of the run was exceeded."""

    was_sent = True

    def __init__(self, kind: TimeoutKind) -> None:
        """Note which limit it was."""
        super().__init__("The model's server did not answer in time. Try again.")
        self.kind: TimeoutKind = kind
        self.is_final = kind == "total_timeout"
        self.failure = None if self.is_final else Failure()


class ResponseLost(ResponsesError):
    """A background response that can no longer be read."""


class UnreadableAnswer(ResponsesError):
    """The answer does not have the form of the Responses API."""


class AnswerTooLarge(ResponsesError):
    """The answer is larger than what is accepted."""

    is_final = True

    def __init__(self) -> None:
        """Use one sentence for all parts."""
        super().__init__("The model's server sent more data than is accepted.")


class MalformedEvent(ResponsesError):
    """An event of a stream cannot be read."""

    failure = Failure(error=ApiError(UNREADABLE_STREAM, param="stream"))


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status of 400 or more, or with an error."""

    def __init__(
        self,
        sentence: str,
        failure: Failure,
        request_id: str = "",
        fault: SettingFault = NO_FAULT,
    ) -> None:
        """Keep the `failure`, its status and error, and OpenAI's id of the request."""
        super().__init__(sentence, fault)
        self.failure: Failure = failure
        self.status = failure.status or 0
        self.error = failure.error
        self.request_id = request_id


CONTENT_FILTER = "content_filter"
"""Azure's code for a chat that its filter refused, and ours for other filters."""

_PAGE = re.compile(r"\s*(?:<|error code: \d{3,4}\s*\Z)", re.IGNORECASE)
"""How a page begins. Cloudflare tells programs only `error code: 1020`."""
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)


def read_error_body(body: bytes | bytearray) -> ApiError:
    """Return the error of the body of a refusal.

    The API sends JSON. Of a page only the title is kept, for administrators.
    """
    try:
        return read_api_error(load_json(body))
    except ValueError:
        text = body.decode("utf-8", errors="replace")
    if not _PAGE.match(text):
        return ApiError()
    title = _TITLE.search(text)
    return ApiError(message=html.unescape(title[1]) if title else "", is_page=True)


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, a response, or either form of the event.

    A gateway may hold the API's own body as a text.
    """
    fields = _error_fields(wire)
    metadata = as_mapping(fields.get("metadata"))
    message = as_text(fields.get("message") or fields.get("detail"))
    # OpenRouter has the API's body as a text in `metadata.raw` (tailcallhq/forgecode
    # 892), LiteLLM in its own message (BerriAI/litellm 34788). A gateway's own error
    # names no place; the API's may quote what looks like a body.
    raw = as_text(metadata.get("raw"))
    if not fields.get("param"):
        inner = _inner_error(raw) or _inner_error(message)
        if inner is not None:
            return inner._replace(is_relayed=True)
    code = _read_code(fields.get("code"))
    # What follows is in OpenRouter's guides "Errors and Debugging" and, of the
    # Responses API, "Error Handling". Moderation is a 403 with its reasons.
    if metadata.get("reasons") or metadata.get("flagged_input"):
        code = CONTENT_FILTER
    # There, `invalid_prompt` is also the code of a chat that is too long, and of a field
    # that is not known.
    exact = metadata.get("error_type") or as_mapping(wire).get("error_type")
    if code == "invalid_prompt":
        code = as_text(exact) or code
    return ApiError(
        code=code,
        type=as_text(fields.get("type")) or as_text(exact) or None,
        param=as_text(fields.get("param")) or None,
        message=f"{message} {raw}".strip(),
        notice=_read_notice(fields.get("misalignment")),
    )


def _error_fields(wire: object) -> JsonObject:
    """Return the fields of an error, wherever a server puts them."""
    # Bodies and the live event nest the error, the documented event is flat. FastAPI
    # puts what a server raised in `detail`.
    while isinstance(wire, Mapping):
        inner = wire.get("error") or wire.get("detail")
        if not isinstance(inner, Mapping):
            break
        wire = inner
    if isinstance(wire, str):
        return {"message": wire}
    fields = as_mapping(wire)
    # FastAPI, and so vLLM, lists what does not fit its types.
    if isinstance(fields.get("detail"), list):
        return _read_detail(fields["detail"])
    if isinstance(fields.get("error"), str):  # xAI: the code stands beside the words
        return {**fields, "message": fields["error"]}
    return fields


def _read_code(code: object) -> str | None:
    """Return the code of an error; gateways send an HTTP status as a number."""
    if isinstance(code, int) and 400 <= code < 600:
        return str(code)
    return as_text(code) or None


def _read_notice(wire: object) -> SafetyNotice:
    """Return the notice in the `misalignment` of an error, an empty one without it."""
    fields = as_mapping(wire)
    return SafetyNotice(
        explanation=as_text(fields.get("detailed_explanation")),
        advice=as_text(as_mapping(fields.get("steer")).get("message")),
        category=as_text(fields.get("error_type")),
        review_target=as_text(fields.get("review_target")),
    )


def _read_detail(rows: Iterable[object]) -> dict[str, Any]:
    """Return words and place of what FastAPI's servers found, the most exact row.

    Its `loc` is like `["body", "input", "list[Item]", 3, "Item", "id"]`: each form that
    a value could have has a row, and names of types are in between.
    """
    entries = [as_mapping(row) for row in rows]
    most_exact = max(entries, key=_length_of_location, default={})
    path = ""
    for key in as_list(most_exact.get("loc"))[1:]:
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        if _PATH_STEP.fullmatch(step):
            path += step
    return {"message": most_exact.get("msg"), "param": path[1:]}


_PATH_STEP = re.compile(r"\[\d+]|\.[a-z_\d]+")


def _length_of_location(row: Mapping[str, Any]) -> int:
    return len(as_list(row.get("loc")))


def _inner_error(text: str) -> ApiError | None:
    """Return the error of a body inside of a text, None if there is none."""
    begin = text.find("{", 0, _MAX_PREFIX)
    try:
        body, _ = json.JSONDecoder().raw_decode(text[:_MAX_INNER_BODY], begin)
    except (ValueError, RecursionError):
        return None
    inner = as_mapping(body).get("error")
    if not isinstance(inner, Mapping):
        return None
    error = read_api_error(inner)
    return error if error.message else None


_MAX_PREFIX = 1000
_MAX_INNER_BODY = 100_000
"""Characters of a text in which a body is looked for."""


# --------------------------------------------------------------------------------------
# openai_responses.redaction
#
# Removes secrets from text: known values, then what looks like a secret.
#
# Text that is already `[redacted]` is left alone. No rule may look behind a character
# that another rule can take, and none may end in front of a letter or digit, so a second
# pass finds nothing new. What repeats without limit is possessive, or starts with a
# character that it cannot repeat, so the time is linear.
# --------------------------------------------------------------------------------------


_REDACTED = "[redacted]"

_SHORTEST_SECRET = 6

_SPACE = r"[^\S\r\n]*+"
_NAME_ENDS = rf"""["'\\]*+{_SPACE}(?:[:=]|,(?={_SPACE}b?["'])){_SPACE}"""
_VALUE_OPENS = r"""(?:b(?=["'])|["'\\(\[])*+"""
_ASSIGNED = _NAME_ENDS + _VALUE_OPENS

_LOOKS_SECRET = re.compile(
    "|".join(
        [
            # Authorization: Bearer sk-..., {"cookie": "a=b; c=d"}
            rf"(?P<header>(?:authorization|cookies?){_ASSIGNED})"
            r"""[^\s"'\\](?:[^\r\n"'\\]|\\[^"'nr\r\n])*+""",
            # api_key=..., "client_secret": "...", Incorrect API key provided: sk-...
            r"(?P<name>(?:api[-_ ]?key(?:\ provided)?|client[-_]?secret|passw(?:or)?d|"
            r"(?:access|auth|refresh|session)[-_]?token|encrypted_content)"
            rf"""{_ASSIGNED})(?:(?<=["'])[^\r\n"'\\]++|[^\s"'\\&,;)}}\]>]++)""",
            # https://host/path?access_token=...&sig=...
            r"(?P<query>[?&][\w.-]{0,32}?(?:key|token|secret|password|signature|sig)=)"
            r"""[^\s"'\\&#;)}\]>]++""",
            # https://user:password@host
            r"(?P<scheme>://)[^\s/?#\"'<>]*@",
            # The two schemes on their own, as in a message about a header.
            r"(?P<bearer>bearer(?:\s|%20){1,4})[A-Za-z0-9._~+/=*-]{6,}+",
            r"(?P<basic>basic\s{1,4}(?-i:(?=[A-Za-z]*+[0-9+/=]|[A-Za-z]*?[a-z][A-Z])))"
            r"[A-Za-z0-9+/]{8,}+={0,2}",
            # Keys of OpenAI and GitHub, by how they begin; they may be masked with stars.
            r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_)[A-Za-z0-9_*-]{6,}+",
            # A JSON Web Token, with its signature or without.
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+"
            r"(?:\.[A-Za-z0-9_-]*+)?",
            # Encrypted reasoning, and what Fernet encrypts.
            r"gAAAA[A-Za-z0-9_-]{20,}+={0,2}",
        ]
    ),
    re.IGNORECASE,
)
"""What looks like a secret.

- The value of a header goes on to the end of the line or of the quotes, that of another
  name (`name`) is one word or in quotes; then parameters of a query (`query`).
- `Basic` is a word, too: base64 has digits, or a capital inside a word.
- A JSON Web Token begins with `{"` in base64, a Fernet token with its version and four
  bytes of a time that are zero for a while yet.
"""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `[redacted]` in place of `secrets` and of what looks like one.

    Secrets of less than six characters are ignored: usual words contain them.
    """
    known: set[str] = set()
    for secret in secrets:
        known.update(_forms(secret.strip()))
    for form in sorted(known, key=_longest_first):
        parts = [_redact_text(part, form) for part in text.split(_REDACTED)]
        text = _REDACTED.join(parts)
    parts = [_LOOKS_SECRET.sub(_keep_name, part) for part in text.split(_REDACTED)]
    return _REDACTED.join(parts)


def _longest_first(form: str) -> tuple[int, str]:
    return -len(form), form


def _redact_text(text: str, secret: str) -> str:
    """Replace a secret in any case.

    No pattern is made of it: `re` keeps the last 512 of a process, in which the keys of
    users would stay, with some 100 kB for each long one.
    """
    folded = _fold_case(text)
    wanted = _fold_case(secret)
    pieces: list[str] = []
    done = 0
    start = folded.find(wanted)
    while start >= 0:
        pieces += [text[done:start], _REDACTED]
        done = start + len(wanted)
        start = folded.find(wanted, done)
    return "".join([*pieces, text[done:]])


def _fold_case(text: str) -> str:
    """Return a text in lower case, in which each character stays one character."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(sign.lower()[:1] for sign in text)


def header_secrets(value: str) -> list[str]:
    """Return a header's value and its further words, like the key behind `Bearer`."""
    return [value, *value.split()[1:]]


def redact_line(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line of printable characters, for a log."""
    line = "\\n".join(redact(text, secrets).splitlines())
    if line.isprintable():
        return line
    return "".join(_escape_unprintable(character) for character in line)


def _escape_unprintable(character: str) -> str:
    if character.isprintable():
        return character
    return ascii(character)[1:-1]  # without its quotes


def hide_paths(text: str, roots: Iterable[str]) -> str:
    """Return `text` with only the last name of each path below one of the `roots`.

    A path ends at a space or a quotation mark, so the name of a file may lose its end.
    """
    longest_first = sorted((root for root in roots if root), key=_longest_first)
    if not longest_first:
        return text
    # A path in quotation marks has each backslash twice.
    below = "|".join(
        re.escape(root[0])
        + r"[/\\]++".join(re.escape(name) for name in re.split(r"[/\\]", root[1:]))
        for root in longest_first
    )
    # `/app` is a root, but not in https://host/app, in /application or in /app.log.
    pattern = (
        rf"(?:(?<![\w.~/\\-])|(?<=file://))(?:{below})(?![\w-]|\.\w)"
        r"(?:[/\\]++[^\s/\\\"'`<>()\[\],;:]*+)*+"
    )
    return re.sub(pattern, _keep_last_name, text, flags=re.IGNORECASE)


def _keep_last_name(match: re.Match[str]) -> str:
    names = [name for name in re.split(r"[/\\]", match.group()) if name]
    return f"[path]/{names[-1]}"


def describe_exception(error: BaseException) -> str:
    """Return type and place of an exception; its text may quote a header or a prompt."""
    frames = extract_tb(error.__traceback__)
    name = type(error).__name__
    if not frames:
        return f"{name} at nowhere"
    last = frames[-1]
    return f"{name} at line {last.lineno} in {last.name}"


def _keep_name(match: re.Match[str]) -> str:
    """Return what takes the place of a match; the name in front of a value stays."""
    if match.lastgroup is None:
        return _REDACTED
    name = match[match.lastgroup]
    if match.lastgroup == "scheme":
        return f"{name}{_REDACTED}@"
    return f"{name}{_REDACTED}"


def _forms(secret: str) -> Iterator[str]:
    """Yield `secret` as it appears in headers, addresses, JSON and base64."""
    if len(secret) < _SHORTEST_SECRET:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield quote(raw)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield json.dumps(secret, ensure_ascii=True)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for offset in range(_BYTES_OF_BASE64_GROUP):
        encoded = _inside_base64(raw, offset)
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


_BYTES_OF_BASE64_GROUP = 3
_BITS_OF_BYTE = 8
_BITS_OF_BASE64_CHARACTER = 6


def _inside_base64(raw: bytes, offset: int) -> str:
    """Return the characters that `raw` alone decides when `offset` bytes precede it.

    The password of a `Basic` header follows a user name of unknown length.
    """
    encoded = b64encode(bytes(offset) + raw).decode()
    first_bit = offset * _BITS_OF_BYTE
    end_bit = (offset + len(raw)) * _BITS_OF_BYTE
    first = math.ceil(first_bit / _BITS_OF_BASE64_CHARACTER)
    end = end_bit // _BITS_OF_BASE64_CHARACTER
    return encoded[first:end]


# --------------------------------------------------------------------------------------
# openai_responses.endings
#
# How a run can end, and the sentence for each ending.
#
# `{code}`, `{param}` and `{status}` are words of the API, `{model}` is the id that was
# asked for. No text of the server is shown, because it may quote a key or a prompt.
#
# The sentences are for whoever chats. Which setting can be the cause is in FAULTS: only a
# shell knows what an administrator calls it.
# --------------------------------------------------------------------------------------


_UNUSABLE_IMAGE = (
    "The model's server could not use an image in this chat{code}. Remove it, or "
    "attach it again as PNG, JPEG, WEBP or GIF of a moderate size."
)
_UNUSABLE_FILE = (
    "The model's server could not use a file in this chat{code}. Remove it, or attach "
    "it again as a PDF or as text."
)
_POLICY = (
    "OpenAI stopped this answer under its usage policies{code}. Rephrase the question."
)
_WRONG_KEY = "OpenAI does not accept the API key."
_NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to check its billing."
)
_OVERLOADED = "OpenAI is overloaded. Try again in a moment."
_SERVER_ERROR = "OpenAI reported an internal error. Try again in a moment."
_WRONG_ORGANIZATION = "The API key does not belong to the organization in the settings."
_RATE_LIMIT = (
    "This API key has reached OpenAI's rate limit. Wait a minute, then try again."
)
_ARRIVED = "Everything received so far is kept"
_CONTINUE = f"{_ARRIVED}; regenerate the answer, or ask the model to continue."


MISALIGNMENT = "misalignment_policy_violation"
"""OpenAI's monitoring stopped what a model was about to do: nothing of it may go on,
neither by another attempt nor elsewhere nor without its reasoning."""
FLEX_UNAVAILABLE = "flex_unavailable"
REQUEST_TOO_LARGE = "request_too_large"
"""Our word for a `rate_limit_exceeded` that no wait removes: the request alone is larger
than the limit of a minute (recorded in a stream that tells of a limit of 1)."""
WRONG_KEY = "invalid_api_key"
MISSING_SCOPE = "missing_scope"
UNSUPPORTED_COUNTRY = "unsupported_country_region_territory"
UNVERIFIED = "unverified_organization"
"""Our word: OpenAI says so with a code that other causes have, too, or with none."""
DENIED_MODEL = "denied_model"
"""Our word for a 401 or 403 whose `param` is the model."""
FIREWALL_PAGE = "firewall_page"
GATEWAY_PAGE = "gateway_page"
"""Our words for a page that came in place of the API's answer."""
REJECTED = "rejected"
"""Our word for a stream that says that the request cannot be answered."""

SAFETY_STOPS = frozenset(
    {
        MISALIGNMENT,
        "cyber_policy",
        "bio_policy",
        "invalid_prompt",
        "image_content_policy_violation",
        "content_policy_violation",
        CONTENT_FILTER,
    }
)
"""Codes of refusals for what a chat is about. No other server is asked instead."""

FINAL_CODES = SAFETY_STOPS | {FLEX_UNAVAILABLE, REQUEST_TOO_LARGE, WRONG_KEY}
"""Codes of refusals that neither a second attempt nor a repair of the request removes."""

NO_CREDIT_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
        "billing_not_active",
        "billing_hard_limit_reached",
        # LiteLLM's type, also of a 400 (BerriAI/litellm 4606, 37000)
        "budget_exceeded",
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""

_FILE_CODES = frozenset({"unsupported_file"})
IMAGE_CODES = _FILE_CODES | frozenset(
    {
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
"""Codes of refusals of an image, or of another file in the chat."""

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer reached its length limit. Raise the maximum "
        "number of output tokens, or ask the model to continue.",
        "content_filter": "OpenAI's content filter interrupted the answer. Rephrase the "
        "question.",
        "max_messages": "The answer reached the limit of messages per answer. Ask the "
        "model to continue.",
        "cancelled": "This answer was canceled on OpenAI's side. Regenerate it, or ask "
        "the model to continue.",
        "steered": "A newer message replaced this request. Ask again.",
        "no_answer": "The model ended without an answer. Regenerate it, or rephrase the "
        "question.",
        "only_calls": "The model requested more tool calls than one answer may make, but "
        "gave no answer. Ask it to answer with what it has.",
        "used_up": "The model has used up the time or the tokens of this answer, but gave "
        "no answer. Ask it to answer with what it has.",
        "only_tokens": "The model spent all tokens of this answer on reasoning. Raise "
        "the maximum number of output tokens, or choose a lower effort.",
        "": "The answer is incomplete{code}. Ask the model to continue.",
    },
    "failed": {
        "server_error": _SERVER_ERROR,
        "rate_limit_exceeded": _RATE_LIMIT,
        "slow_down": _RATE_LIMIT,
        **dict.fromkeys(sorted(NO_CREDIT_CODES), _NO_CREDIT),
        "too_many_requests": _RATE_LIMIT,
        "rate_limit_error": _RATE_LIMIT,
        "server_is_overloaded": _OVERLOADED,
        "service_unavailable_error": _OVERLOADED,
        "overloaded_error": _OVERLOADED,
        "internal_error": _SERVER_ERROR,
        "upstream_error": _SERVER_ERROR,
        "timeout": "OpenAI took too long to answer. Try again in a moment.",
        "context_length_exceeded": "This chat is longer than the model can read. "
        "Start a new chat, or choose a model with a larger context.",
        "invalid_prompt": _POLICY,
        "bio_policy": _POLICY,
        "image_content_policy_violation": _POLICY,
        MISALIGNMENT: "OpenAI's safety monitoring stopped this answer{code}, because it "
        "may do something nobody asked for. Its last tool calls were not run; earlier "
        "actions are not undone. Start a new chat to continue.",
        "cyber_policy": "OpenAI declined to answer, because the answer could help attack "
        "computers{code}. Rephrase the question, or start a new chat. For security work, "
        "an administrator can apply to OpenAI for access.",
        "content_policy_violation": "OpenAI's content filter stopped this answer{code}. "
        "Rephrase the question, or start a new chat.",
        CONTENT_FILTER: "OpenAI's content filter rejected this chat{code}, so it was "
        "not answered. Rephrase the question, or start a new chat.",
        REQUEST_TOO_LARGE: "This chat is larger than the key's rate limit allows for "
        "one request, so waiting does not help. Start a new chat, leave out large "
        "files, or ask an administrator to raise the account's usage tier.",
        FLEX_UNAVAILABLE: "OpenAI has no flex capacity at the moment. Try again later, "
        "or choose the standard service tier, which costs twice as much.",
        "data_residency_mismatch": "This model is not available in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(sorted(IMAGE_CODES), _UNUSABLE_IMAGE),
        **dict.fromkeys(sorted(_FILE_CODES), _UNUSABLE_FILE),
        REJECTED: "The model's server rejected the request{code}{param}. Sending it "
        "again does not help; an administrator can find the details in the log.",
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, has been shut down, or is "
        "not available to this API key. Choose another model.",
        "invalid_encrypted_content": "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        UNVERIFIED: "OpenAI does this only for verified organizations. An administrator "
        "has to verify the organization in its settings at OpenAI, or choose another "
        "model.",
        UNSUPPORTED_COUNTRY: "OpenAI does not answer requests from the country or region "
        "where this server is. The API key is not the cause.",
        MISSING_SCOPE: "The API key is valid, but has no permission for this request: "
        "a scope, or a role in its project, is missing.",
        "mismatched_organization": _WRONG_ORGANIZATION,
        "invalid_organization": _WRONG_ORGANIZATION,
        "mismatched_project": "The API key does not belong to the project in the "
        "settings.",
        "ip_not_authorized": "OpenAI accepts requests for this account only from listed "
        "IP addresses, and this server's address is not among them. An administrator "
        "has to add it to the list at OpenAI.",
        "account_deactivated": "OpenAI has deactivated the account of the API key.",
        DENIED_MODEL: "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key.",
        FIREWALL_PAGE: "A firewall or proxy in front of the model's server did not let "
        "this request through (HTTP {status}). The API key is not the cause.",
        GATEWAY_PAGE: "A gateway in front of the model's server answered in its place "
        "(HTTP {status}), so the server may be down. Try again in a moment.",
        "3": "The model's server redirects requests (HTTP {status}). Redirects are not "
        "followed, because they would send the key to another address.",
        WRONG_KEY: _WRONG_KEY,
        "401": _WRONG_KEY,
        "402": _NO_CREDIT,
        "403": "The model's server does not allow this request: HTTP {status}{code}. An "
        "administrator can find the reason in the log.",
        "404": "There is no Responses API at the address of the model's server.",
        "407": "The HTTP proxy rejected the request.",
        "408": "The model's server gave up, because the request took too long (HTTP "
        "{status}). Try again; if that does not help, leave out large files.",
        "409": "This request conflicts with something else that the model's server is "
        "doing (HTTP {status}). Try again in a moment.",
        "413": "This chat is too large for the model's server. Start a new chat, or "
        "leave out large files and images.",
        "421": "The address of the model's server leads to a server that does not serve "
        "it (HTTP {status}).",
        "429": _RATE_LIMIT,
        "451": "The model's server may not answer this request for legal reasons (HTTP "
        "{status}). Rephrase the question, or choose another model.",
        "503": _OVERLOADED,
        "529": _OVERLOADED,
        "5": "OpenAI reported an internal error (HTTP {status}). Try again in a moment.",
        "": "The model's server rejected the request with HTTP {status}{code}{param}. "
        "An administrator can find the details in the log.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was complete. "
        + _CONTINUE,
        "lost": "The connection to the model broke, and the rest of the answer could "
        "not be fetched. " + _CONTINUE,
    },
    "unreadable": {
        "": "The model's server did not answer like the Responses API.",
        "chat_completions": "The model's server answered like the Chat Completions API, "
        "not like the Responses API.",
        "compressed": "The model's server sent a compressed answer, which cannot be "
        "read.",
        "queued": "The model's server has only queued the request, and sent no answer. "
        "Try again later, or choose another model.",
    },
    "malformed": {
        "": "The model's server sent data that cannot be read. " + _CONTINUE,
        "too_large": "The model's server sent more data than is accepted for one "
        "answer. " + _CONTINUE,
    },
    "first_event_timeout": {
        "": "The model's server accepted the request, but sent nothing for too long. "
        "Try again, perhaps with a lower effort.",
    },
    "idle_timeout": {
        "": "The model's server stopped sending in the middle of the answer. "
        + _CONTINUE,
    },
    "total_timeout": {
        "": "The answer took longer than the administrator allows. "
        f"{_ARRIVED}; ask the model to continue, or choose a lower effort.",
    },
}
"""The sentences, by kind of ending, then by code or HTTP status. "" stands for all other
codes, "3" for 300 to 399, "5" for all other statuses from 500 up. Other kinds use their
exception's text."""

_WRONG_ADDRESS = SettingFault(("base_url",))

FAULTS: Mapping[tuple[str, str], SettingFault] = {
    ("refused", "3"): _WRONG_ADDRESS,
    ("refused", WRONG_KEY): SettingFault(("api_key",)),
    ("refused", "401"): SettingFault(("api_key",)),
    ("refused", MISSING_SCOPE): SettingFault(("api_key",)),
    ("refused", "account_deactivated"): SettingFault(("api_key",)),
    ("refused", "mismatched_organization"): SettingFault(("organization", "api_key")),
    ("refused", "invalid_organization"): SettingFault(("organization", "api_key")),
    ("refused", "mismatched_project"): SettingFault(("project", "api_key")),
    ("refused", UNSUPPORTED_COUNTRY): SettingFault(("proxy",)),
    ("refused", "ip_not_authorized"): SettingFault(("proxy",), "possible"),
    ("refused", FIREWALL_PAGE): SettingFault(("base_url", "proxy"), "possible"),
    ("refused", GATEWAY_PAGE): SettingFault(("base_url",), "possible"),
    ("refused", "421"): SettingFault(("base_url", "proxy")),
    ("refused", "404"): _WRONG_ADDRESS,
    ("refused", "407"): SettingFault(("proxy",)),
    ("unreadable", ""): _WRONG_ADDRESS,
    ("unreadable", "chat_completions"): _WRONG_ADDRESS,
    ("unreadable", "compressed"): SettingFault(("base_url", "extra_headers")),
}
"""The settings that can be the cause, by kind of ending and word of SENTENCES."""


class Ending(NamedTuple):
    """How a run ended; `code` is the API's word for the cause.

    `kind` is "completed" or "incomplete", "failed" (the response), "error" (its event),
    "refused" (its status), "invalid" (nothing was sent), "unreachable", "unreadable",
    "malformed", "cut", or the kind of a TimedOut.
    """

    kind: str
    code: str | None = None
    sentence: str = ""
    fault: SettingFault = NO_FAULT
    """The settings that can be the cause."""

    @property
    def is_failure(self) -> bool:
        """Say whether the answer is not what the person asked for."""
        return self.kind != "completed"

    def without_text(self) -> Self:
        """Return the ending of an answer of which nothing arrived."""
        before, _, advice = self.sentence.partition(_ARRIVED)
        if not advice:
            return self
        return self._replace(sentence=f"{before}Try again.")


def _ending_without_code(kind: str, word: str = "") -> Ending:
    """Return the ending of a kind whose cause has no code; `word` finds its sentence."""
    fault = FAULTS.get((kind, word), NO_FAULT)
    return Ending(kind, sentence=SENTENCES[kind][word], fault=fault)


COMPLETED = Ending("completed")
CUT = _ending_without_code("cut")
UNREADABLE = _ending_without_code("unreadable")
CHAT_COMPLETIONS = _ending_without_code("unreadable", "chat_completions")
QUEUED = _ending_without_code("unreadable", "queued")
COMPRESSED = _ending_without_code("unreadable", "compressed")

ASKED_MODEL = "this model"
"""Stands in a sentence for the id that was asked for, until a run puts it in."""

_WORD_OF_API = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")
_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def ending_of_incomplete(reason: str | None) -> Ending:
    """Return the ending of a `response.incomplete`."""
    code = api_word(reason)
    sentences = SENTENCES["incomplete"]
    sentence = sentences.get(code or "", sentences[""])
    return Ending("incomplete", code, sentence.format(code=_fill_in(code)))


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    """Return the ending of a `response.failed` or an `error` event."""
    code = _find_code(error)
    return Ending(kind, code, failure_sentence(error), failure_fault(error))


_OWN_SENTENCE = "-"
"""In the place of a word of SENTENCES: the exception's own text is shown."""
_EXCEPTIONS: Mapping[type[ResponsesError], tuple[str, str]] = {
    MalformedEvent: ("malformed", ""),
    AnswerTooLarge: ("malformed", "too_large"),
    ResponseLost: ("cut", "lost"),
    UnreadableAnswer: ("unreadable", _OWN_SENTENCE),
    InvalidRequest: ("invalid", _OWN_SENTENCE),
    InvalidSetting: ("invalid", _OWN_SENTENCE),
}
"""Kind and word of the sentence for each exception."""


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return the ending of a run that `error` stopped, after its first event or not."""
    if isinstance(error, TimedOut):
        return _ending_without_code(error.kind)
    if isinstance(error, ApiRefused):
        return Ending("refused", _find_code(error.error), str(error), error.fault)
    connection_lost = ("cut", "") if has_begun else ("unreachable", _OWN_SENTENCE)
    kind, word = _EXCEPTIONS.get(type(error), connection_lost)
    if word == _OWN_SENTENCE:
        return Ending(kind, sentence=str(error), fault=error.fault)
    return _ending_without_code(kind, word)


def _find_code(error: ApiError) -> str | None:
    """Return the word of the API that says most about the cause, to be shown."""
    return api_word(_find_certain_cause(error) or error.code or error.type)


def is_final(error: ApiError) -> bool:
    """Say whether neither a second attempt nor a repair of the request helps."""
    return any(code in FINAL_CODES for code in _list_codes(error))


_MAX_NOTICE = 600
_MARKUP = str.maketrans({"<": "(", ">": ")", "[": "(", "]": ")", "`": "'", "|": "/"})
"""What begins links, images, HTML and code of Markdown, and what replaces it."""


def notice_text(notice: SafetyNotice, secrets: Iterable[str]) -> str:
    """Return what OpenAI says about an answer that it stopped, as words to show.

    Redacted, in one line, of bounded length, and without what renders or links.
    """
    parts = [
        ("The server explains", notice.explanation),
        ("It advises", notice.advice),
    ]
    quotes: list[str] = []
    for lead, text in parts:
        if text:
            quotes.append(f"{lead}: “{_plain_line(text, secrets)}”")
    return " ".join(quotes)


def _plain_line(text: str, secrets: Iterable[str]) -> str:
    """Return a text of the server as one plain line, without secrets and markup."""
    line = " ".join(redact(text[: 2 * _MAX_NOTICE], secrets).split())
    printable = "".join(letter for letter in line if letter.isprintable())
    plain = printable.translate(_MARKUP).replace("://", ": //")
    return plain if len(plain) <= _MAX_NOTICE else f"{plain[:_MAX_NOTICE]}…"


def failure_sentence(error: ApiError) -> str:
    """Return the sentence for an error after the request was accepted."""
    if error.status:
        return refusal_sentence(error.status, error)
    word = _first_known(_list_failure_words(error), _SENTENCES_BY_CODE)
    sentence = _SENTENCES_BY_CODE[word] if word else SENTENCES["failed"][""]
    return sentence.format(
        code=_fill_in(_find_code(error)),
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=200,
    )


def failure_fault(error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an error like that."""
    if error.status:
        return refusal_fault(error.status, error)
    word = _first_known(_list_failure_words(error), _SENTENCES_BY_CODE)
    return FAULTS.get(("refused", word), NO_FAULT)


_SENTENCES_BY_CODE = {**SENTENCES["failed"], **SENTENCES["refused"]}
"""A code means the same in a refusal and in a stream."""
_REJECTED_CODES = (
    "invalid_request_error",
    "invalid_value",
    "invalid_type",
    "unknown_parameter",
    "unsupported_parameter",
    "unsupported_value",
    "missing_required_parameter",
)
"""Codes and types that say that the request itself cannot be answered."""


def _list_failure_words(error: ApiError) -> list[str]:
    """Return the words that a sentence can be found by without a status."""
    words = [*_list_codes(error), _find_attachment(error)]
    if error.is_any_of(_REJECTED_CODES):
        words.append(REJECTED)
    return words


def refusal_sentence(status: int, error: ApiError) -> str:
    """Return the sentence for an HTTP status of 300 or more."""
    word = _first_known(_list_refusal_words(status, error), _SENTENCES_BY_CODE)
    code = ""
    # A sentence for a code says what the code means.
    if error.code != str(status) and (not word or word.isdecimal()):
        code = _fill_in(error.code)
    return _SENTENCES_BY_CODE[word].format(
        code=code,
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=status,
    )


def refusal_fault(status: int, error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an HTTP status of 300 or more."""
    word = _first_known(_list_refusal_words(status, error), _SENTENCES_BY_CODE)
    return FAULTS.get(("refused", word), NO_FAULT)


_UNCERTAIN_STATUSES = (403, 429)
"""A page with one of these comes from a firewall, which knows no key; those from 500 on
come from a gateway."""


def _list_refusal_words(status: int, error: ApiError) -> list[str]:
    """Return the words that a sentence can be found by, the most certain first."""
    if status < 400:
        return ["3"]
    own_word = str(status)
    if error.is_page:
        page = FIREWALL_PAGE if status < 500 else GATEWAY_PAGE
        is_uncertain = status in _UNCERTAIN_STATUSES or status >= 500
        return [page] if is_uncertain else [own_word, page]
    codes = [code for code in _list_codes(error) if code != own_word]
    if status in (401, 403) and error.param == "model":
        # LiteLLM: type `key_model_access_denied`, and others for teams and users
        # (BerriAI/litellm 39660).
        codes.append(DENIED_MODEL)
    if status == 401:
        # Only what is about keys: a type like `server_error` tells nothing here.
        about_keys = {error.code, _find_certain_cause(error), *_ABOUT_KEYS}
        return [*(code for code in codes if code in about_keys), own_word]
    words = [*codes, _find_attachment(error)]
    if status == 404:
        # Gateways send no code: "The model `x` does not exist"; Azure: "The API
        # deployment for this resource does not exist".
        if _ABOUT_A_MODEL.search(error.message):
            words.append("model_not_found")
        if not _is_about_address(error):
            own_word = ""
    words.append(own_word)
    if status >= 500:
        words.append("5")
    return words


_ABOUT_KEYS = (MISSING_SCOPE, DENIED_MODEL, *NO_CREDIT_CODES)
_UNKNOWN_ADDRESS = "Invalid URL"
"""How OpenAI's 404 for an unknown path begins; that of an unknown response has the same
type and names no place, either."""


def _is_about_address(error: ApiError) -> bool:
    """Say whether a 404 may mean that there is no Responses API."""
    if error.param or error.names_a_place:
        return False
    is_of_the_api = error.type == "invalid_request_error"
    return not is_of_the_api or error.message.startswith(_UNKNOWN_ADDRESS)


def names_model(status: int, error: ApiError) -> bool:
    """Say whether a refusal says that the model is not there, or is not for this key.

    Below 400, `status` is that of a stream with an error.
    """
    status = status if status >= 400 else error.status
    words = _list_failure_words(error)
    if status:
        words = _list_refusal_words(status, error)
    word = _first_known(words, _SENTENCES_BY_CODE)
    return word in ("model_not_found", DENIED_MODEL, UNVERIFIED)


_ATTACHMENT = re.compile(
    r"input\[\d{1,6}\]\.(?:content|output)\[\d{1,6}\]"
    r"\.(?:(?P<image>image_url)|file_data|file_url|filename)(?:\.\w{1,64})?"
)
"""The `param` of a refused image or file: only such parts have these fields."""
_UNKNOWN_FIELD_CODES = ("unknown_parameter", "unsupported_parameter")


def _find_attachment(error: ApiError) -> str:
    """Return the code for the kind of attachment that `param` names; empty for none."""
    match = _ATTACHMENT.fullmatch(error.param or "")
    if match is None or error.is_any_of(_UNKNOWN_FIELD_CODES):
        return ""
    return "invalid_image" if match["image"] else "unsupported_file"


def _first_known(words: Iterable[str], sentences: Mapping[str, str]) -> str:
    """Return the first word that has a sentence of its own, "" if none has."""
    for word in words:
        if word and word in sentences:
            return word
    return ""


_BUSY = frozenset({"rate_limit_exceeded", "slow_down", "too_many_requests"})
"""Codes of a rate limit."""


def failure_status(failure: Failure) -> str:
    """Return the status line before the request is sent again."""
    causes = {
        None: "did not answer",
        200: "reported an error",
        429: "is busy with this key's requests",
    }
    status = failure.status
    if status == 200:  # in a stream, only the error says more
        is_busy = failure.error.is_any_of(_BUSY)
        status = 429 if is_busy else failure.error.status or status
    cause = causes.get(status, f"has trouble (HTTP {status})")
    return f"The model's server {cause}."


_PHRASES = (
    (r"\bmissing scopes?:|insufficient permissions for this operation", MISSING_SCOPE),
    (r"country, region, or territory not supported", UNSUPPORTED_COUNTRY),
    (r"\borganization must be verified to", UNVERIFIED),
    (
        # LiteLLM's `ContextWindowExceededError`; of more than 16,384 items, or of a text
        # above 10,485,760 characters: "Invalid 'input': array too long".
        r"maximum context length|context (size|window)|ContextWindow"
        r"|'input(\S*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (r"\bmodel\b.{0,200}(does not exist|not found)|invalid model", "model_not_found"),
    (r"RateLimitError", "rate_limit_exceeded"),
)
"""What other servers say instead of a code, and LiteLLM of the servers behind it."""


_MAX_SEARCHED = 2000
_CERTAIN_PHRASES = (
    (
        # "Request too large for ... Limit 1, Requested 30." (recorded in a stream)
        r"request too large for .{1,500}\blimit \d+, requested \d+",
        REQUEST_TOO_LARGE,
    ),
    (r"\AIncorrect API key provided", WRONG_KEY),
    # 403, code "The caller does not have permission to execute the specified operation"
    # (theopenco/llmgateway 1785)
    (r"\AContent violates usage guidelines", CONTENT_FILTER),
    # OpenAI's 403 and 404 of an unverified organization can have `model_not_found`,
    # its 400 has `unsupported_value` (openai/codex 1982, continuedev/continue 9948)
    (r"\AYour organization must be verified to", UNVERIFIED),
)
"""Words that say more than the code: xAI's of a wrong key is `invalid-argument`."""


def _find_certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says."""
    text = error.message[:_MAX_SEARCHED]
    for phrase, code in _CERTAIN_PHRASES:
        if re.search(phrase, text, re.IGNORECASE | re.DOTALL):
            return code
    return None


def _list_codes(error: ApiError) -> list[str]:
    """Return the codes of an error, the most certain first."""
    text = error.message[:_MAX_SEARCHED]
    codes = [_find_certain_cause(error), error.code, error.type]
    for phrase, code in _PHRASES:
        if re.search(phrase, text, re.IGNORECASE):
            codes.append(code)
    # "3" and "5" are words for many statuses, which no server sends.
    return [code for code in codes if code and len(code) > 1]


def _fill_in(word: str | None, form: str = " ({})") -> str:
    """Return a word of the API as a part of a sentence; nothing for any other word."""
    return form.format(word) if api_word(word) else ""


def api_word(word: str | None) -> str | None:
    """Return `word` if it can be a word of the API, and no key; else None."""
    if not word:
        return None
    for sentences in SENTENCES.values():
        if word in sentences:
            return word
    return word if _WORD_OF_API.fullmatch(word) else None


# --------------------------------------------------------------------------------------
# openai_responses.models.facts
#
# What is known about a model: what it accepts, its limits and its prices.
# --------------------------------------------------------------------------------------


class ModelPrices(NamedTuple):
    """US dollars for a million tokens, and how often they are paid at other tiers."""

    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None
    fast: float | None = None
    ultrafast: float | None = None
    ultrafast_until: str | None = None
    """The last day of `ultrafast`, an ISO date; then `ultrafast_later` holds."""
    ultrafast_later: float | None = None


class ModelFacts(NamedTuple):
    """What a model accepts, its limits and its prices; None where unknown.

    The defaults are for gpt-4 and for ids that say nothing (another vendor, an Azure
    deployment): a model that does not reason refuses `reasoning` and its `include` with
    a 400, and a reasoning model works without them. So they are sent only if an effort
    is asked for.
    """

    id: str = ""
    """The id in the catalog; empty if the facts are assumed."""
    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    """Lowest first; empty: none, or unknown."""
    default_effort: str | None = None
    """What the API uses when none is sent."""
    sampling: str = "always"
    """Or "with_none", "never": temperature, top_p, logprobs."""
    summary: bool = False
    verbosity: bool = False
    functions: bool = True
    hosted: bool = False
    """It takes the tools that OpenAI itself runs."""
    lacks: tuple[str, ...] = ()
    """Types of such tools that it does not take."""
    vision: bool = True
    appends_tools: bool = False
    """It takes `additional_tools` items, and `allowed_tools` that name their tools."""
    appends_configuration: bool = False
    """It takes `configuration_update` items."""
    pro_mode: bool = False
    """It takes the `reasoning.mode` pro."""
    all_turns: bool = False
    """It takes the `reasoning.context` all_turns."""
    diagnostics: bool = False
    """It says why a prompt was not found in the cache."""
    long_prices: bool = False
    """Above 272,000 tokens of input the whole request costs more."""
    regional: bool = False
    """It costs 10 % more at OpenAI's hosts of a region."""
    context_window: int | None = None
    """The tokens of input and output together."""
    max_output_tokens: int | None = None
    shutdown: str | None = None
    """The day on which OpenAI switches the model off, an ISO date."""
    successor: str | None = None
    prices: ModelPrices | None = None
    known_family: bool = True
    """False: the name says nothing, the facts are cautious."""


# --------------------------------------------------------------------------------------
# openai_responses.models.usage
#
# The tokens that a run used, and what they cost.
#
# Costs are in US dollars, by the prices of the model's facts, response
# by response: the tier that the server named and the length of the input count
# (docs/reference/responses-api.md, "Prices"). Without a price the cost is unknown, never
# estimated.
# --------------------------------------------------------------------------------------


class Usage(NamedTuple):
    """Counts of one response, or of several added together.

    `cached` is part of `input`, `reasoning` of `output`
    (docs/reference/responses-api.md, "Usage").
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0
    tier: str = ""
    """That served the response; a sum has none."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum, field by field."""
    if first is None or second is None:
        return first or second
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        total=first.total + second.total,
        cached=first.cached + second.cached,
        cache_writes=first.cache_writes + second.cache_writes,
        reasoning=first.reasoning + second.reasoning,
    )


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Return the sum of several responses, None for none."""
    total: Usage | None = None
    for usage in usages:
        total = add_usage(total, usage)
    return total


def read_usage(wire: object, tier: object = "") -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none."""
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    outputs = as_mapping(wire.get("output_tokens_details"))
    input_tokens = _read_count(wire.get("input_tokens"))
    output_tokens = _read_count(wire.get("output_tokens"))
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total=_read_count(wire.get("total_tokens")) or input_tokens + output_tokens,
        cached=_read_count(inputs.get("cached_tokens")),
        cache_writes=_read_count(inputs.get("cache_write_tokens")),
        reasoning=_read_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
    )


_MAX_TOKENS = 10**12
"""A count above that is none."""


def _read_count(value: Any) -> int:
    """Return a count of tokens; gateways write `3.0` and `"3"` as well."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if 0 < number < _MAX_TOKENS and number.is_integer() else 0


def window_share(last: Usage | None, facts: ModelFacts) -> int:
    """Return how much of a model's context window a chat fills, in percent.

    `last` is that of the chat's last response: its input and output are the beginning
    of the next one. 0 if either is unknown.
    """
    if last is None or not facts.context_window:
        return 0
    return min(100, 100 * last.total // facts.context_window)


_MILLION = 1_000_000


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    host: str = "",
) -> float | None:
    """Return the cost of a run: its responses, searches and containers of code.

    None if it is unknown.
    """
    cost = 0.0
    for usage in usages:
        tokens = _cost_of_tokens(usage, facts, today)
        if tokens is None:
            return None
        cost += tokens
    if facts.regional and host.endswith(_REGIONAL_HOST_SUFFIX):
        cost *= _REGIONAL_FACTOR
    items = list(output)
    return cost + sum(call_fee(item) for item in items) + container_fees(items)


_REGIONAL_HOST_SUFFIX = ".api.openai.com"
_REGIONAL_FACTOR = 1.1
"""OpenAI's guide "Data residency": 10 % more at the hosts of a region."""


def format_money(dollars: float) -> str:
    """Return an amount with its first two digits, even if it is tiny."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    rounded = Decimal(f"{dollars:.2g}")
    return f"${rounded:f}"


_LONG_INPUT = 272_000
_LONG_INPUT_FACTOR = 2
_LONG_OUTPUT_FACTOR = 1.5
"""Above that, from gpt-5.4 on, the whole request costs more, also what was cached
(OpenAI's pages of the models; LiteLLM 1.109.1)."""


def _cost_of_tokens(usage: Usage, facts: ModelFacts, today: date) -> float | None:
    """Return what a response costs; None if a price or the tier is unknown.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices = facts.prices
    if prices is None or prices.input is None or prices.output is None:
        return None
    factor = _tier_factor(usage.tier, prices, today)
    if not factor:
        return None
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    # A token is billed as input, as read or as written, never twice (guide "Prompt
    # caching"). The counts of a server may not add up.
    uncached_tokens = max(0, usage.input - usage.cached - usage.cache_writes)
    input_cost = uncached_tokens * prices.input
    input_cost += usage.cached * cached
    input_cost += usage.cache_writes * written
    output_cost = usage.output * prices.output
    if facts.long_prices and usage.input > _LONG_INPUT:
        input_cost *= _LONG_INPUT_FACTOR
        output_cost *= _LONG_OUTPUT_FACTOR
    return factor * (input_cost + output_cost) / _MILLION


_TIER_FACTORS = {"": 1, "auto": 1, "default": 1, "flex": 0.5}
"""Factors that all models have in common; the empty tier is that of a sum, or of a
server that names none."""


def _tier_factor(tier: str, prices: ModelPrices, today: date) -> float | None:
    """Return how often the standard price is paid; None if nobody says it."""
    # `priority` was renamed `fast` on 2026-07-30; either may come back.
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        last_day = prices.ultrafast_until
        if last_day and today.isoformat() > last_day:
            return prices.ultrafast_later
        return prices.ultrafast
    return _TIER_FACTORS.get(tier)


# --------------------------------------------------------------------------------------
# openai_responses.appended
#
# Items that say at their place in a chat what fields of a request say.
#
# A chat that only grows changes its tools, its effort and its format with such items. A
# server that does not have them gets the same in the fields.
# --------------------------------------------------------------------------------------


APPENDED = frozenset({ADDED_TOOLS, CONFIGURATION})
"""The types of these items."""

_CONFIGURED = ("reasoning", "text")
"""The fields that a configuration update can change."""


def declared_tools(payload: Mapping[str, Any]) -> list[Item]:
    """Return the tools of a request and of its items, in this order."""
    tools = list(payload.get("tools") or ())
    for item in payload["input"]:
        if item_type(item) == ADDED_TOOLS:
            tools += item["tools"]
    return tools


def lower_payload(payload: Mapping[str, Any], kinds: Set[str]) -> dict[str, Any]:
    """Return a request whose own fields say what items of these `kinds` said."""
    lowered = dict(payload)
    if not kinds:
        return lowered
    items = payload["input"]
    lowered["input"] = [item for item in items if item_type(item) not in kinds]
    if CONFIGURATION in kinds:
        lowered |= _configured_fields(payload)
    if ADDED_TOOLS in kinds:
        tools = declared_tools(payload)
        if tools:
            lowered["tools"] = tools
    return lowered


def _configured_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that updates change, as they are behind the last update."""
    fields: dict[str, Any] = {}
    for item in payload["input"]:
        if item_type(item) != CONFIGURATION:
            continue
        for key in _CONFIGURED:
            if key in item:
                before = fields.get(key, payload.get(key, {}))
                fields[key] = {**before, **item[key]}
    return fields


# --------------------------------------------------------------------------------------
# openai_responses.models.catalog
#
# The catalog of models; generated, do not edit.
#
# Source: `scripts/catalog/models.json`, which names the source and the date of each fact.
# Edit it and run `python scripts/catalog/generate.py`; with `--check` it reports whether
# this module is current, as do the tests.
#
# Facts as of 2026-11-24. Prices are US dollars for a million tokens at the standard tier.
# A fact that is not stated has the default of ModelFacts. A dated snapshot has an entry
# only where it differs from its model.
# --------------------------------------------------------------------------------------


CATALOG_MODELS = (
    ModelFacts(
        id="chatgpt-image-latest",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-4.1",
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=2,
            cached=0.5,
            cache_write=None,
            output=8,
            fast=1.75,
        ),
    ),
    ModelFacts(
        id="gpt-4.1-mini",
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.4,
            cached=0.1,
            cache_write=None,
            output=1.6,
        ),
    ),
    ModelFacts(
        id="gpt-4o",
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=2.5,
            cached=1.25,
            cache_write=None,
            output=10,
        ),
    ),
    ModelFacts(
        id="gpt-4o-mini",
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.15,
            cached=0.075,
            cache_write=None,
            output=0.6,
        ),
    ),
    ModelFacts(
        id="gpt-5",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25,
            cached=0.125,
            cache_write=None,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5-mini",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-terra",
        prices=ModelPrices(
            input=0.25,
            cached=0.025,
            cache_write=None,
            output=2,
            fast=1.8,
        ),
    ),
    ModelFacts(
        id="gpt-5-nano",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        lacks=("web_search",),
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.05,
            cached=0.005,
            cache_write=None,
            output=0.4,
        ),
    ),
    ModelFacts(
        id="gpt-5-pro",
        reasoning=True,
        efforts=("high",),
        default_effort="high",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        lacks=("code_interpreter",),
        context_window=400_000,
        max_output_tokens=272_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(
            input=15,
            cached=None,
            cache_write=None,
            output=120,
        ),
    ),
    ModelFacts(
        id="gpt-5.1",
        reasoning=True,
        efforts=("none", "low", "medium", "high"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25,
            cached=0.125,
            cache_write=None,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.2",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1.75,
            cached=0.175,
            cache_write=None,
            output=14,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.2-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=21,
            cached=None,
            cache_write=None,
            output=168,
        ),
    ),
    ModelFacts(
        id="gpt-5.3-codex",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.75,
            cached=0.175,
            cache_write=None,
            output=14,
        ),
    ),
    ModelFacts(
        id="gpt-5.4",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2.5,
            cached=0.25,
            cache_write=None,
            output=15,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-mini",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.75,
            cached=0.075,
            cache_write=None,
            output=4.5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-nano",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.2,
            cached=0.02,
            cache_write=None,
            output=1.25,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=30,
            cached=None,
            cache_write=None,
            output=180,
        ),
    ),
    ModelFacts(
        id="gpt-5.5",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=5,
            cached=0.5,
            cache_write=None,
            output=30,
            fast=2.5,
        ),
    ),
    ModelFacts(
        id="gpt-5.5-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=30,
            cached=None,
            cache_write=None,
            output=180,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-cyber",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=12.5,
            cached=1.25,
            cache_write=15.625,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-luna",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.2,
            cached=0.02,
            cache_write=0.25,
            output=1.2,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-sol",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=4,
            cached=0.4,
            cache_write=5,
            output=20,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-terra",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.2,
            cache_write=2.5,
            output=12,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6-astra",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10,
            cached=1,
            cache_write=12.5,
            output=50,
            fast=2,
            ultrafast=6,
        ),
    ),
    ModelFacts(
        id="gpt-6-astra-law",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10,
            cached=1,
            cache_write=None,
            output=50,
        ),
    ),
    ModelFacts(
        id="gpt-6-cyber",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
    ),
    ModelFacts(
        id="gpt-6-luna",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.1,
            cached=0.01,
            cache_write=0.125,
            output=0.5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6-rosalind",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=15,
            cached=1.5,
            cache_write=18.75,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-6-sol",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.2,
            cache_write=2.5,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.1-sol",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.1,
            cache_write=2.5,
            output=10,
            fast=2,
            ultrafast=6,
        ),
    ),
    ModelFacts(
        id="gpt-6.1-terra",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1,
            cached=0.05,
            cache_write=1.25,
            output=5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.2-astra",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=8,
            cached=0.4,
            cache_write=10,
            output=40,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.2-astra-law",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
    ),
    ModelFacts(
        id="gpt-6.2-sol",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.1,
            cache_write=2.5,
            output=10,
            fast=2,
            ultrafast=3,
            ultrafast_until="2027-02-28",
            ultrafast_later=6,
        ),
    ),
    ModelFacts(
        id="gpt-daybreak-blue-latest",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=4,
            cached=0.4,
            cache_write=5,
            output=20,
        ),
    ),
    ModelFacts(
        id="gpt-daybreak-red-latest",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=12.5,
            cached=1.25,
            cache_write=15.625,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-image-1-mini",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-image-1.5",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-rosalind-research",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        prices=ModelPrices(
            input=5,
            cached=0.5,
            cache_write=None,
            output=25,
        ),
    ),
    ModelFacts(
        id="o3",
        reasoning=True,
        efforts=("low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=2,
            cached=0.5,
            cache_write=None,
            output=8,
        ),
    ),
    ModelFacts(
        id="o3-pro",
        reasoning=True,
        efforts=("low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        lacks=("code_interpreter",),
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(
            input=20,
            cached=None,
            cache_write=None,
            output=80,
        ),
    ),
)

CATALOG_SUCCESSORS = {
    "chatgpt-4o-latest": "gpt-5.5",
    "codex-mini-latest": "gpt-5.4-mini",
    "gpt-3.5-turbo": "gpt-5.6-terra",
    "gpt-3.5-turbo-0125": "gpt-5.6-terra",
    "gpt-3.5-turbo-1106": "gpt-5.6-terra",
    "gpt-4": "gpt-5.6-sol",
    "gpt-4-0125-preview": "gpt-5.6-sol",
    "gpt-4-0314": "gpt-5.6-sol",
    "gpt-4-0613": "gpt-5.6-sol",
    "gpt-4-1106-preview": "gpt-5.6-sol",
    "gpt-4-turbo": "gpt-5.6-sol",
    "gpt-4-turbo-preview": "gpt-5.6-sol",
    "gpt-4.1-nano": "gpt-5.6-luna",
    "gpt-4o-2024-05-13": "gpt-5.6-sol",
    "gpt-5-chat-latest": "gpt-5.5",
    "gpt-5-codex": "gpt-5.4",
    "gpt-5.1-chat-latest": "gpt-5.5",
    "gpt-5.1-codex": "gpt-6.1-sol",
    "gpt-5.1-codex-max": "gpt-5.4",
    "gpt-5.1-codex-mini": "gpt-5.4-mini",
    "gpt-5.2-chat-latest": "gpt-5.5",
    "gpt-5.2-codex": "gpt-5.4",
    "gpt-5.3-chat-latest": "gpt-5.5",
    "o1": "gpt-5.6-sol",
    "o1-pro": "gpt-5.6-sol-pro",
    "o3-deep-research": "gpt-5.4-pro",
    "o3-mini": "gpt-5.6-sol",
    "o4-mini": "gpt-5.6-terra",
    "o4-mini-deep-research": "gpt-5.4-pro",
}
"""Models that OpenAI has switched off, with what it recommends instead."""

CATALOG_SERVED_AS = {
    "gpt-5.6": "gpt-5.6-sol",
}
"""Ids that the API itself serves with another model.

gpt-5.6: OpenAI resolves the short id itself (openai-docs).
"""

CATALOG_ALIASES = {
    "gpt-5-auto": "gpt-6.1-sol",
}
"""Names of ours that are never sent.

gpt-5-auto: gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations).
"""


# --------------------------------------------------------------------------------------
# openai_responses.models.resolve
#
# Resolves a model name to an id and to the facts about the model.
#
# The first that fits, so that a real id always has priority:
#
# 1. an id of the catalog, with or without a date at its end (the date is sent as given);
# 2. one of our names: an alias of the catalog, `gpt-5-thinking-mini`, `gpt-5.2-instant`;
# 3. one of both with an effort at its end: `o3-mini-high`, `gpt-5-thinking-minimal`;
# 4. one of these with `-pro`, in front of an effort, of a model that has the mode pro:
#    `gpt-6.1-sol-pro`, `gpt-6.1-sol-pro-high`;
# 5. one of these with `-research` at its end: `gpt-6.1-sol-research`;
# 6. any other name, with the facts of its family, or with cautious facts.
#
# Models that are described elsewhere (`overrides`) have priority over all of these.
# --------------------------------------------------------------------------------------


REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# gpt-5.4-2026-03-05
_SNAPSHOT_DATE = re.compile(r"-(?P<date>\d{4}-\d{2}-\d{2})$")
_GPT_VERSION = re.compile(r"gpt-(?P<major>\d)(?:\.(?P<minor>\d{1,2}))?(?!\d)")
"""One digit, because Azure spells gpt-3.5 as gpt-35."""
# o3, o4-mini
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_THINKING_NAME = re.compile(
    r"(?P<model>gpt-\d(?:\.\d+)?)-thinking(?P<size>-mini|-nano)?$"
)
_INSTANT_NAME = re.compile(r"(?P<model>gpt-\d(?:\.\d+)?)-instant$")
# gpt-6.1-sol-pro, gpt-6.1-sol-pro-high
_PRO_NAME = re.compile(r"(?P<model>gpt-[\w.-]+)-pro(?P<effort>-[a-z]+)?$")
# openai/gpt-5.4 of OpenRouter, ft:gpt-4.1:... of OpenAI
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


CATALOG_FACTS = {facts.id: facts for facts in CATALOG_MODELS}
"""The facts of each model of the catalog, by id."""

_PLAIN_FACTS = ModelFacts()


class ResolvedModel(NamedTuple):
    """What a name stands for."""

    id: str
    """Sent as `model`."""
    family: str
    """Encrypted reasoning is readable inside one family."""
    effort: str | None
    """The one in the name, if any."""
    facts: ModelFacts
    name: str
    """For people."""
    pro: bool = False
    """Whether the name asks for the pro mode."""
    research: bool = False
    """Whether the name asks for research."""

    def lowest_effort(self) -> str | None:
        """Return the cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Say whether the model accepts an effort; if unknown, it may be tried."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    """Resolve any name, one of `overrides` first; an unknown one is sent as it is.

    An effort at the end of an overridden name counts if the model accepts it.
    """
    if name in overrides:
        return overrides[name]
    in_research_mode = _resolve_research_mode(name, overrides)
    if in_research_mode is not None:
        return in_research_mode
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    known = _named_model(name)
    if known is None:
        in_pro_mode = _resolve_pro_mode(name, overrides)
        if in_pro_mode is not None:
            return in_pro_mode
        known = _model_with_effort(name)
    if known is None:
        known = (name, None)
    model_id, stated_effort = known
    return ResolvedModel(
        id=model_id,
        family=_model_family(model_id),
        effort=stated_effort,
        facts=_model_facts(model_id),
        name=_shown_name(model_id, stated_effort),
    )


_RESEARCH = "-research"
_RESEARCH_EFFORTS = ("high", "xhigh", "max")


def _resolve_research_mode(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-research` behind a known model; None for any other.

    The effort is high if the name has none (OpenAI's guide "Web search" recommends
    `high` or `xhigh`). Retired models and those of other vendors have such names, too.
    """
    if not name.endswith(_RESEARCH) or _is_model_id(name):
        return None
    model = resolve_model(name.removesuffix(_RESEARCH), overrides)
    if not model.facts.known_family:
        return None
    effort = model.effort
    if effort not in _RESEARCH_EFFORTS and model.takes_effort("high"):
        effort = "high"
    return model._replace(effort=effort, name=f"{model.name} Research", research=True)


def _is_model_id(name: str) -> bool:
    """Say whether OpenAI has, or had, a model of that name."""
    return name in CATALOG_FACTS or name in CATALOG_SUCCESSORS


def takes_hosted_tool(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model takes a type of OpenAI's tools.

    Of the types that it lacks the beginnings are compared: one that lacks `web_search`
    lacks `web_search_preview`, too.
    """
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def takes_search_budget(model: ResolvedModel) -> bool:
    """Say whether a model's web search takes a `return_token_budget`.

    It is for "GPT-5+ reasoning web search runs" (OpenAI's changelog, 2026-05-11).
    """
    version = read_gpt_version(model.facts.id or model.family)
    if version is None or not model.facts.reasoning:
        return False
    return version >= _FIRST_WITH_BUDGET


_FIRST_WITH_BUDGET = (5, 0)


def _resolve_pro_mode(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-pro` behind a model, where that is a mode and no model."""
    match = _PRO_NAME.match(name)
    if match is None:
        return None
    model = resolve_model(match["model"] + (match["effort"] or ""), overrides)
    if not model.facts.pro_mode:
        return None
    shown = _shown_name(f"{model.id}-pro", model.effort)
    return model._replace(name=shown, pro=True)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS or _model_family(name) in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    return _thinking_or_instant(name)


def _thinking_or_instant(name: str) -> tuple[str, str | None] | None:
    """Resolve ChatGPT's words for a model that thinks, or does not.

    From gpt-5.1 to 5.4 the default is not to think at all.
    """
    thinking = _THINKING_NAME.match(name)
    if thinking:
        model_id = thinking["model"] + (thinking["size"] or "")
        if model_id not in CATALOG_FACTS:
            return None
        if CATALOG_FACTS[model_id].default_effort == "none":
            return model_id, "medium"
        return model_id, None
    instant = _INSTANT_NAME.match(name)
    if instant:
        model_id = instant["model"]
        facts = CATALOG_FACTS.get(model_id)
        if facts and "none" in facts.efforts:
            return model_id, "none"
    return None


def _model_with_effort(name: str) -> tuple[str, str | None] | None:
    """Resolve a name with an effort at its end.

    gpt-5.1-codex-max was a model: a newer one of that name is not the effort max.
    """
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    is_accepted = facts.reasoning
    if facts.efforts:
        is_accepted = effort in facts.efforts
    return (model_id, effort) if is_accepted else None


def _model_family(model_id: str) -> str:
    """Return the id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    """Return the facts of an id, with or without a date, or those of its family.

    Fine-tuned models and routers have prices of their own. A deployment can have any
    name: only its administrator knows its facts.
    """
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    wrapped = _WRAPPED_ID.match(model_id)
    if wrapped:
        return _model_facts(wrapped[1])._replace(prices=None)
    if _O_SERIES_ID.match(model_id):
        return _ASSUMED_OF_O_SERIES
    version = read_gpt_version(model_id)
    if version:
        return _facts_of_version(version)
    return _PLAIN_FACTS._replace(hosted=True, known_family=False)


def read_gpt_version(model_id: str) -> tuple[int, int] | None:
    """Return the version of a gpt, like (5, 4) for `gpt-5.4-mini`; else None."""
    match = _GPT_VERSION.match(model_id)
    if match is None:
        return None
    return int(match["major"]), int(match["minor"] or 0)


_ASSUMED_OF_O_SERIES = ModelFacts(
    reasoning=True,
    efforts=("low", "medium", "high"),
    sampling="never",
    summary=True,
    hosted=True,
)


def _facts_of_version(version: tuple[int, int]) -> ModelFacts:
    """Return what is assumed of a gpt that the catalog does not have.

    What all models have from a version on, newer ones have, too
    (docs/reference/responses-api.md, "Unknown models").
    """
    if version < (5, 0):
        return _PLAIN_FACTS
    return ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=version >= (5, 4),
        long_prices=version >= (5, 4),
        regional=version >= (5, 4),
        appends_tools=version >= (5, 6),
        diagnostics=version >= (5, 6),
        appends_configuration=version >= (6, 0),
    )


def successor_of(model_id: str) -> ResolvedModel | None:
    """Return what OpenAI recommends instead of a model that it has switched off."""
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_SUCCESSORS:
            return resolve_model(CATALOG_SUCCESSORS[name])
    return None


_SIZES = ("mini", "nano", "pro")


def _shown_name(model_id: str, effort: str | None) -> str:
    """Return `GPT-5.6 Sol (high)` for `gpt-5.6-sol` with effort high; other ids stay."""
    name = model_id
    notes: list[str] = []
    if _GPT_VERSION.match(model_id):
        snapshot = _SNAPSHOT_DATE.search(model_id)
        if snapshot:
            notes.append(snapshot["date"])
        name = _capitalized_id(_SNAPSHOT_DATE.sub("", model_id))
    if effort:
        notes.append(effort)
    return f"{name} ({', '.join(notes)})" if notes else name


def _capitalized_id(model_id: str) -> str:
    _, version, *words = model_id.split("-")
    shown = [f"GPT-{version}"]
    for word in words:
        if word in _SIZES:
            shown.append(word)
        elif word != "latest":
            shown.append(word.capitalize())
    return " ".join(shown)


# --------------------------------------------------------------------------------------
# openai_responses.repairs.refusal
#
# What a refusal names: a place in the request, a parameter, ids, tools, efforts.
#
# The server names a place in `param`. Gateways hide it and repeat the API's words, so the
# words are read, too (docs/reference/responses-api.md, "Finding the refused part"). But
# the API quotes what it refuses: an image's address, the name of a tool, a key of a
# schema. What anybody can write into a request must not decide what is repaired, so
# nothing is believed of the words that the request itself could have said: `OwnTexts`.
# --------------------------------------------------------------------------------------


MAX_MESSAGE = 8000
"""Characters of a message that are read."""
_MAX_OWN_CHARACTERS = 64_000_000
_MAX_OWN_TEXTS = 500_000
"""Of a larger request no words are believed."""
_MAX_PATH = 200
"""Characters of a parameter's path."""
_MAX_CANDIDATES = 3
"""Places in the words that are compared with the request; one is usual."""

# input[3].content[0].image_url, tools[5].parameters
_LIST_AND_NUMBER = r"(input|tools)\[(\d{1,6})\]"
_PATH_IN_LIST = r"((?:\.\w{1,64}|\[\d{1,6}\]){0,12})"
_NAMED_PLACE = re.compile(_LIST_AND_NUMBER + _PATH_IN_LIST)
_PLACE_IN_WORDS = re.compile(r"(?<![\w.\])}/$>-])" + _LIST_AND_NUMBER + _PATH_IN_LIST)
"""Behind a name, a dot or a bracket stands the end of another path."""
_ENDS_LIKE_A_PLACE = re.compile(r"\W(?:input|tools)(?:\[\d*)?\Z")
"""A text that the server could complete: it writes a number behind a key."""
_MAX_END_OF_PLACE = 20
"""Characters of a text in which it is looked for: a sign, the name, some digits."""
_ESCAPED = re.compile(r"(?<!\\)\\+(?:u00|x)([0-9a-fA-F]{2})")
"""Begins with the first backslash: from each of many the rest would be read again."""

_PARAMETER_IN_WORDS = re.compile(
    r"\b(?:unknown|unsupported|unrecognized|unexpected|invalid)"
    r"(?: request)? (?:parameter|argument|field|key)s?(?: supplied)?:? "
    r"[\"'`]([a-z_]{2,40}(?:\.[a-z_]{2,40})?)[\"'`]",
    re.IGNORECASE,
)
"""OpenAI's own sentences, which gateways repeat."""
_PARAMETER_IN_LOC = re.compile(
    r"'loc': \('body', '([a-z_]{2,40})'(?:, '([a-z_]{2,40})')?\)"
)
"""What pydantic writes, which servers of vLLM's kind use."""

# "Invalid schema for function 'get_weather'", "Hosted tool 'web_search' is not supported"
_QUOTED_NAME = r"[\"'`]([\w.-]{1,64})[\"'`]"
_FUNCTION_IN_WORDS = re.compile(rf"\bfunction:? {_QUOTED_NAME}", re.IGNORECASE)
_HOSTED_TOOL_IN_WORDS = re.compile(rf"\btool:? {_QUOTED_NAME}", re.IGNORECASE)
_SERVER_IN_WORDS = re.compile(rf"\bserver:? {_QUOTED_NAME}", re.IGNORECASE)
_VECTOR_STORE = re.compile(r"\bvs_[\w-]{2,128}")
_ID_IN_WORDS = re.compile(r"[\w-]{5,128}")
_QUOTED = re.compile(r"[\"'`]([\w.-]{1,64})[\"'`]")
_UNKNOWN = re.compile(
    r"unknown[ _](parameter|field|argument|key)|unrecogni[sz]ed|unexpected (field|key)"
    r"|extra_?(forbidden| inputs are not permitted| fields not permitted)"
    r"|additional properties",
    re.IGNORECASE,
)


class OwnTexts:
    """Every key and every text of a request, at every depth.

    The fields of the request itself are ours. The work is bounded: a request is walked
    once, and each of its texts is searched once for each of few candidates.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        """Collect the texts; a request that is too large could have said anything."""
        self._texts: list[str] = []
        self._is_complete = True
        left = _MAX_OWN_CHARACTERS
        for text in _texts_in(payload.values()):
            self._texts.append(text)
            left -= len(text)
            if left < 0 or len(self._texts) > _MAX_OWN_TEXTS:
                self._is_complete = False
                break

    def could_say(self, words: str) -> bool:
        """Say whether `words` may be a quote from the request, whole or cut off."""
        if not self._is_complete:
            return True
        return any(words in reading for reading in self._readings())

    def could_say_place(self, list_name: str, number: str) -> bool:
        """Say whether a place in the words may be a quote, or be completed from one."""
        if self.could_say(f"{list_name}[{number}"):
            return True
        for reading in self._readings():
            if _ENDS_LIKE_A_PLACE.search(reading[-_MAX_END_OF_PLACE:]):
                return True
        return False

    def could_say_parameter(self, path: str) -> bool:
        """Say whether a body in the request could name `path` as its `param`.

        A longer path than those of the API makes no pattern, because `re` keeps the
        last 512 patterns in memory.
        """
        if not self._is_complete or len(path) > _MAX_PATH:
            return True
        named = re.compile(rf"param\W{{1,12}}{re.escape(path)}")
        for text in self._texts:
            if path not in text:
                continue
            for reading in _readings(text):
                if named.search(reading):
                    return True
        return False

    def _readings(self) -> Iterator[str]:
        """Yield all texts in all forms in which a server may show them."""
        for text in self._texts:
            yield from _readings(text)


def _texts_in(values: Iterable[object]) -> Iterator[str]:
    """Yield all texts and keys in JSON values, without recursion."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (str(key) for key in value)
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def _readings(text: str) -> Iterator[str]:
    """Yield a text as it is, and as a server shows it that decodes it.

    Addresses are read with their escapes, arguments of calls are JSON in a text.
    """
    yield text
    if "%" in text:
        yield unquote(text)
    if "\\" in text:
        yield _ESCAPED.sub(_unescape, text)
    if "&" in text:
        yield html.unescape(text)


def _unescape(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _open_quote(words: str) -> str:
    """Return words without their last character, which may be the server's own.

    A server may quote a text and then close the quotation, so the closing mark is not
    searched in the request.
    """
    return words[:-1]


class NamedItem(NamedTuple):
    """An item as it is sent, behind the name of the one that it was made of."""

    name: str
    item: Item


class SentRequest(NamedTuple):
    """What was sent, and what it was made of."""

    payload: dict[str, Any]
    """The body that was sent."""
    items: Sequence[NamedItem]
    """The items of its input, with their names."""
    asked: Mapping[str, Any]
    """The body before repairs."""
    repairs: Sequence[object]
    """What was done to that body (`request_repairs.Repair`), in this order."""

    @property
    def last_name(self) -> str:
        """The name of the last item."""
        return self.items[-1].name if self.items else ""


class Place(NamedTuple):
    """A place that a refusal names, and the item or tool that stands there."""

    list_name: str
    number: int
    path: str
    """What follows the number, like `.content[0].text`."""
    value: Item

    @property
    def keys(self) -> tuple[str, ...]:
        """The names in the path, without numbers."""
        return tuple(re.findall(r"\.(\w+)", self.path))

    @property
    def subject(self) -> str:
        """What the log calls it: nobody can count the items of a request."""
        named = {"type": item_type(self.value), **self.value}
        return f"{self.list_name}[{self.number}] ({tool_name(named)}):"

    @property
    def inner_tool(self) -> Item | None:
        """The tool of an item with tools, if the path leads to one."""
        match = re.match(r"\.tools\[(\d{1,6})\]", self.path)
        if match is None or item_type(self.value) != ADDED_TOOLS:
            return None
        tools = content_parts(self.value.get("tools"))
        number = int(match[1])
        return tools[number] if number < len(tools) else None


class Refusal:
    """What a server said about a request that it refused."""

    def __init__(self, error: ApiError, sent: SentRequest) -> None:
        """Read nothing yet."""
        self.error = error
        self.sent = sent
        self.words = error.message[:MAX_MESSAGE]

    @cached_property
    def _own(self) -> OwnTexts:
        return OwnTexts(self.sent.asked)

    @property
    def named_parameter(self) -> str:
        """What the server itself names in `param`, like a place or a parameter's path.

        Not what a body inside of its words names.
        """
        if self.error.is_relayed:
            return ""
        return self.error.param or ""

    @property
    def is_unknown(self) -> bool:
        """Whether the server does not know what it names."""
        if self.error.code == "unknown_parameter":
            return True
        return bool(_UNKNOWN.search(self.words))

    def is_own_phrase(self, phrase: str) -> bool:
        """Say whether a phrase of the words is the server's own, and no quote."""
        return not self._own.could_say(phrase)

    @cached_property
    def place(self) -> Place | None:
        """The item or tool that is named, by `param` or by words that are its own."""
        match = _NAMED_PLACE.fullmatch(self.named_parameter) or self._place_in_words()
        if match is None:
            return None
        list_name = match[1]
        number = int(match[2])
        rows = as_list(self.sent.payload.get(list_name))
        if number >= len(rows):
            return None
        return Place(list_name, number, match[3], rows[number])

    @property
    def has_named_place(self) -> bool:
        """Whether the server's own `param` names the place."""
        return _NAMED_PLACE.fullmatch(self.named_parameter) is not None

    def _place_in_words(self) -> re.Match[str] | None:
        """Return the first place in the words that the request could not have said.

        A `param` that names something else is more certain than words.
        """
        if self.named_parameter not in ("", "input", "tools"):
            return None
        words = self.words
        if self.error.is_relayed:
            words = f"{self.error.param or ''} {words}"
        candidates: dict[tuple[str, str], re.Match[str]] = {}
        for match in _PLACE_IN_WORDS.finditer(words):
            candidates.setdefault((match[1], match[2]), match)
            if len(candidates) == _MAX_CANDIDATES:
                break
        for (list_name, number), match in candidates.items():
            if not self._own.could_say_place(list_name, number):
                return match
        return None

    @cached_property
    def parameter(self) -> str:
        """The path of the parameter that `param` or the words name; empty for none."""
        if self.named_parameter:
            return self.named_parameter
        relayed = self.error.param or ""
        if relayed and not self._own.could_say_parameter(relayed):
            return relayed
        match = _PARAMETER_IN_WORDS.search(self.words)
        match = match or _PARAMETER_IN_LOC.search(self.words)
        if match is None or self._own.could_say(_open_quote(match[0])):
            return ""
        return ".".join(group for group in match.groups() if group)

    @property
    def tools(self) -> Iterator[Item]:
        """The tools that the words name by what they are, one after the other."""
        functions = self._find_names(_FUNCTION_IN_WORDS)
        kinds = self._find_names(_HOSTED_TOOL_IN_WORDS)
        labels = self._find_names(_SERVER_IN_WORDS)
        named_stores = set(_VECTOR_STORE.findall(self.words))
        if self.error.code == "invalid_value":
            # A tool's own error, as `image_generation_user_error`.
            kinds.add(str(self.error.type).removesuffix("_user_error"))
        for tool in declared_tools(self.sent.payload):
            kind = tool.get("type")
            is_named = kind in kinds or tool.get("server_label") in labels
            if kind in ("function", "custom"):
                is_named = tool.get("name") in functions
            elif kind == "file_search":
                store_ids = as_list(tool.get("vector_store_ids"))
                own_stores = {str(store_id) for store_id in store_ids}
                is_named = is_named or bool(named_stores & own_stores)
            if is_named:
                yield tool

    def _find_names(self, pattern: re.Pattern[str]) -> set[str]:
        """Return the names behind a noun that the request could not have said."""
        names: dict[str, str] = {}
        for match in pattern.finditer(self.words):
            names.setdefault(match[1], match[0])
            if len(names) == _MAX_CANDIDATES:
                break
        return {
            name
            for name, phrase in names.items()
            if not self._own.could_say(_open_quote(phrase))
        }

    @property
    def numbers_of_ids(self) -> Iterator[int]:
        """The numbers of the items that have an id which the words name."""
        named = set(_ID_IN_WORDS.findall(self.words))
        for number, row in enumerate(self.sent.items):
            ids = (row.item.get("id"), row.item.get("call_id"))
            if any(isinstance(own_id, str) and own_id in named for own_id in ids):
                yield number

    @property
    def quoted_words(self) -> set[str]:
        """The single words that the message quotes."""
        return set(_QUOTED.findall(self.words))


def named_subject(sent: SentRequest, error: ApiError) -> str:
    """Return the item or tool that an error names, for the log; empty for none."""
    place = Refusal(error, sent).place
    return place.subject if place else ""


# --------------------------------------------------------------------------------------
# openai_responses.repairs.chat_repairs
#
# Repairs of one chat: which of its items are left out, or sent as plain text.
#
# A chat stores them, so that its later turns do not meet the refusal again and begin with
# the same bytes. An item is named by a digest, because its place changes. What people and
# administrators wrote always stays.
# --------------------------------------------------------------------------------------


MAX_CHAT_REPAIRS = 100
"""A chat remembers no more of them; of a longer list the newest count."""

_MAX_ROWS_READ = 1000
_NAME_FORM = re.compile(r"[0-9a-f]{32}(\.\d{1,6})?")
_TYPE_FORM = re.compile(r"[a-z_]{1,64}")
_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "[An image or file was here. It could not be sent.]"
_MAX_WORDS_OF_PAIR = 20_000
"""Characters of a call or an output that is sent as words of the model."""
_PLAIN_FIELDS_OF_PAIR = ("type", "call_id", "name", "arguments", "input", "output")
"""What is left of a call or an output in its plainest form."""

ItemChange = Literal["none", "plain", "leave_out"]
"""What a repair does to an item: only its words are sent, or nothing of it."""


class ChatRepair(ABC):
    """One change of the items of a chat."""

    __slots__ = ()

    is_about_chat: ClassVar = True
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the person who waits."""

    @abstractmethod
    def stored(self) -> list[str]:
        """Return the form that a chat stores; `read_chat_repairs` reads it."""

    @abstractmethod
    def change_of(self, row: NamedItem) -> ItemChange:
        """Return what becomes of an item; of calls and outputs words always stay."""

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about; empty for all items.

        What comes later may be accepted.
        """
        return ""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent, beside the repairs that it had."""
        items = sent.asked["input"]
        sent_before = name_items(items, sent.repairs)
        sent_with_this = name_items(items, [*sent.repairs, self])
        return sent_with_this != sent_before


@dataclass(frozen=True, slots=True)
class LeaveOutItem(ChatRepair):
    """One item is left out, with the reasoning in front of it.

    A call and its output become words: without them the model would call again.
    """

    name: str
    noun: str = field(default="item", compare=False)
    keeps_words: bool = field(default=False, compare=False)
    """Whether it is a call or an output."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.keeps_words:
            return f"One earlier {self.noun} was sent as plain text."
        return f"One earlier {self.noun} could not be sent again and was left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["item", self.name]

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave the one item out."""
        return "leave_out" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class SendAsText(ChatRepair):
    """The words of one item stay; images and files become a line of text."""

    name: str
    noun: str = field(default="item", compare=False)
    had_media: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.had_media:
            return "An image or file could not be sent to the model and was left out."
        return f"One earlier {self.noun} was sent as plain text."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["text", self.name]

    def change_of(self, row: NamedItem) -> ItemChange:
        """Send the words of the one item."""
        return "plain" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class LeaveOutKind(ChatRepair):
    """All items of a type are left out, up to the item `until`."""

    kind: str
    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.kind == "code_interpreter_call":
            return "Earlier code runs are no longer available: answering without them."
        noun = self.kind.replace("_", " ")
        return f"Earlier items of the type {noun} were left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["kind", self.kind, self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item of the type out."""
        return "leave_out" if item_type(row.item) == self.kind else "none"


@dataclass(frozen=True, slots=True)
class LeaveOutReasoning(ChatRepair):
    """Encrypted items are left out, up to the item `until`.

    The error does not say which of them cannot be read.
    """

    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return (
            "The server could not read earlier reasoning in this chat: answering "
            "without it."
        )

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["reasoning", self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an encrypted item out."""
        return "leave_out" if is_encrypted(row.item) else "none"


@dataclass(frozen=True, slots=True)
class PlainItems(ChatRepair):
    """Only texts, calls and outputs stay, in their plainest form, up to `until`."""

    until: str
    had_media: bool = field(default=False, compare=False)
    """Whether images or files were sent until now."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        refused = "with its images and files" if self.had_media else "as it was"
        return (
            f"The server rejected this chat {refused}: only its texts and tool results "
            "were sent."
        )

    def stored(self) -> list[str]:
        """Return nothing: a blind step is not remembered."""
        return []

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that has no words."""
        has_words = is_paired(row.item) or _is_message_with_text(row.item)
        return "plain" if has_words or is_from_people(row.item) else "leave_out"


@dataclass(frozen=True, slots=True)
class WordsAlone(ChatRepair):
    """Only messages stay, up to `until`; of calls and outputs words stay."""

    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return "The server rejected this chat again: only its text was sent."

    def stored(self) -> list[str]:
        """Return nothing: a blind step is not remembered."""
        return []

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that is no message with words."""
        has_words = _is_message_with_text(row.item)
        return "plain" if has_words or is_from_people(row.item) else "leave_out"


@dataclass(frozen=True, slots=True)
class LeaveOutPlainReasoning(ChatRepair):
    """Reasoning of which only the words came is not sent again.

    It is the way of a server, not of a chat.
    """

    is_about_chat: ClassVar = False

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return "The server does not accept its own reasoning: answering without it."

    def stored(self) -> list[str]:
        """Return nothing that a chat stores."""
        return []

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave such reasoning out."""
        return "leave_out" if has_plain_reasoning(row.item) else "none"


def _is_message_with_text(item: Item) -> bool:
    return item_type(item) == "message" and bool(message_text(item))


def read_chat_repairs(rows: Sequence[object]) -> list[ChatRepair]:
    """Return the repairs of their stored form, each once; anything else is skipped.

    The owner of a chat can write anything there.
    """
    repairs: dict[ChatRepair, None] = {}
    for row in rows[-_MAX_ROWS_READ:]:
        repair = _read_chat_repair(as_list(row))
        if repair is not None:
            repairs[repair] = None
    return list(repairs)[-MAX_CHAT_REPAIRS:]


_BY_NAME = {
    "item": LeaveOutItem,
    "text": SendAsText,
    "reasoning": LeaveOutReasoning,
}
"""The repairs whose stored form is a word and the name of an item.

Chats of 1.0.0 may also hold `plain` and `words`: blind steps, which are not read, so that
the chat gets its reasoning back.
"""


def _read_chat_repair(row: list[Any]) -> ChatRepair | None:
    """Return the repair of a stored form, None for anything else."""
    if not all(isinstance(word, str) for word in row):
        return None
    match row:
        case [action, name] if action in _BY_NAME and _NAME_FORM.fullmatch(name):
            repair: ChatRepair = _BY_NAME[action](name)
            return repair
        case ["kind", kind, name] if _TYPE_FORM.fullmatch(kind) and (
            _NAME_FORM.fullmatch(name)
        ):
            return LeaveOutKind(kind, name)
    return None


def item_names(items: Iterable[Item]) -> list[str]:
    """Return the names of items: a digest, and a number where the same item comes again.

    What is appended to a chat changes no name.
    """
    counts = Counter[str]()
    names: list[str] = []
    for item in items:
        digest = json_digest(item)
        name = digest
        if counts[digest]:
            name = f"{digest}.{counts[digest]}"
        names.append(name)
        counts[digest] += 1
    return names


class _JoinedChanges(NamedTuple):
    """What several repairs do to the items of a chat, by the names of the items."""

    left_out: Set[str]
    plain: Set[str]
    calls_as_words: Set[object]
    """The ids of the calls of which a part is left out: words stay of both parts."""

    def keep_words_of(self, item: Item) -> bool:
        """Say whether an item is a part of a call that is sent as words."""
        return is_paired(item) and item.get("call_id") in self.calls_as_words


def name_items(items: Sequence[Item], repairs: Iterable[object]) -> list[NamedItem]:
    """Return the items that are sent, each with the name of what it was made of.

    Repairs of requests are not applied here. Calls and outputs stay in pairs.
    """
    rows = _rows_of(items)
    own = [repair for repair in repairs if isinstance(repair, ChatRepair)]
    if not own:
        return rows
    changed = _apply_changes(rows, _join_changes(rows, own))
    whole = drop_orphans([row.item for row in changed])
    kept = {id(item) for item in whole}
    return [row for row in changed if id(row.item) in kept]


def _apply_changes(
    rows: Iterable[NamedItem], changes: _JoinedChanges
) -> list[NamedItem]:
    """Return the items with what the repairs change; half pairs are still there."""
    sent: list[NamedItem] = []
    for row in rows:
        if changes.keep_words_of(row.item):
            _drop_last_reasoning_rows(sent)
            sent.append(row._replace(item=_words_of_pair(row.item)))
        elif row.name in changes.left_out and not is_from_people(row.item):
            _drop_last_reasoning_rows(sent)
        elif row.name in changes.plain and _has_plain_form(row.item):
            sent.append(row._replace(item=plain_item(row.item)))
        else:
            sent.append(row)
    return sent


def _rows_of(items: Sequence[Item]) -> list[NamedItem]:
    rows = zip(item_names(items), items, strict=True)
    return [NamedItem(name, item) for name, item in rows]


def _join_changes(
    rows: Sequence[NamedItem], repairs: Iterable[ChatRepair]
) -> _JoinedChanges:
    """Return what `repairs` do together; leaving an item out wins (`_apply_changes`)."""
    left_out: set[str] = set()
    plain: set[str] = set()
    for repair in repairs:
        for row in _rows_up_to(rows, repair.last_name):
            change = repair.change_of(row)
            if change == "leave_out":
                left_out.add(row.name)
            elif change == "plain":
                plain.add(row.name)
    calls_as_words: set[object] = set()
    for row in rows:
        if row.name in left_out and is_paired(row.item):
            calls_as_words.add(row.item.get("call_id"))
    return _JoinedChanges(left_out, plain, calls_as_words)


def _rows_up_to(rows: Sequence[NamedItem], last_name: str) -> Sequence[NamedItem]:
    """Return the rows up to the one with `last_name`, itself included.

    An empty name means all rows. If no row has the name, none is returned: the item is
    not in the chat any more.
    """
    if not last_name:
        return rows
    for index, row in enumerate(rows):
        if row.name == last_name:
            return rows[: index + 1]
    return ()


def _drop_last_reasoning_rows(rows: list[NamedItem]) -> None:
    while rows and is_reasoning(rows[-1].item):
        rows.pop()


def _has_plain_form(item: Item) -> bool:
    return is_paired(item) or item_type(item) == "message"


def is_from_people(item: Item) -> bool:
    """Say whether a person or the administrator wrote `item`, which always stays.

    Items without a role, such as calls, are the model's or its tools'.
    """
    return bool(item.get("role", "assistant") != "assistant")


def _words_of_pair(item: Item) -> Item:
    """Return a call or an output as words of the model."""
    if is_call(item):
        arguments = item.get("arguments") or item.get("input")
        text = f"I called {item.get('name')}: {arguments}"
    else:
        text = f"I got this result: {plain_item(item).get('output')}"
    return text_message("assistant", text[:_MAX_WORDS_OF_PAIR])


def has_media(item: Item) -> bool:
    """Say whether `item` holds an image or a file."""
    for key in ("content", "output"):
        for part in content_parts(item.get(key)):
            if part.get("type") in _MEDIA:
                return True
    return False


def plain_item(item: Item) -> Item:
    """Return a message, a call or an output with its words alone."""
    bare = _without_media(item)
    if item_type(item) == "message":
        return text_message(item.get("role"), message_text(bare))
    if isinstance(bare.get("output"), list):
        texts = [part_text(part) for part in content_parts(bare["output"])]
        bare["output"] = "\n".join(texts)
    return {key: bare[key] for key in _PLAIN_FIELDS_OF_PAIR if key in bare}


def _without_media(item: Item) -> Item:
    changed = dict(item)
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            changed[key] = [_part_without_media(part) for part in item[key]]
    return changed


def _part_without_media(part: object) -> object:
    if isinstance(part, dict) and part.get("type") in _MEDIA:
        return {"type": "input_text", "text": _MEDIA_GONE}
    return part


# --------------------------------------------------------------------------------------
# openai_responses.repairs.request_repairs
#
# Repairs of requests to one model: tools, parameters and fields that are left out.
#
# They are remembered for a user or for all users (`memory`). What guards is never
# repaired away: only the parameters in `MAY_BE_LEFT_OUT` go, only fields that say nothing
# of what an item means, and a tool goes whole, because without its filters, its allowed
# tools or its approvals it would do more than its administrator permits.
# --------------------------------------------------------------------------------------


MAY_BE_LEFT_OUT = frozenset(
    {
        "access_programs",
        "context_management",
        "image",
        "include",
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "reasoning",
        "reasoning.context",
        "reasoning.effort",
        "reasoning.mode",
        "reasoning.summary",
        "service_tier",
        "stream",
        "temperature",
        "text",
        "text.verbosity",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
"""Parameters that guard nothing. Not `store`, `safety_identifier`, `instructions`,
`moderation`, `prompt_cache_retention`, the limits `max_output_tokens` and
`max_tool_calls`, nor what the person asked for: the model, the input, the format."""

_FIELDS_WITH_A_MEANING = frozenset(
    {
        "action",
        "approval_request_id",
        "approve",
        "arguments",
        "call_id",
        "code",
        "container_id",
        "content",
        "encrypted_content",
        "file_data",
        "file_id",
        "file_url",
        "filename",
        "image_url",
        "input",
        "name",
        "output",
        "queries",
        "refusal",
        "result",
        "role",
        "server_label",
        "text",
        "tools",
        "type",
    }
)
"""An item without one of them would say something else: it is left out whole."""
_ITEMS_THAT_STAY_WHOLE = APPENDED | {"mcp_approval_request", "mcp_approval_response"}
_MAX_KEYS = 6
"""Names in the path of a field that a repair remembers."""
_MAX_TYPE = 64
"""Characters of an item's type, and of a field's name in a message."""


class RequestRepair(ABC):
    """One change of a request."""

    __slots__ = ()

    is_about_chat: ClassVar = False
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the person who waits."""

    @abstractmethod
    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the changed body; the same object if there is nothing to change."""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent."""
        return self.apply(sent.payload) != sent.payload


Repair = ChatRepair | RequestRepair


def _refused_message(refused: str) -> str:
    """Return what a person is told of something that is left out."""
    return f"The model's server does not accept {refused}: answering without it."


@dataclass(frozen=True, slots=True)
class LeaveOutParameter(RequestRepair):
    """A parameter goes that has the refused value, or whatever value it has."""

    path: str
    value_digest: str = ""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.path == "stream":
            return "The model cannot stream here: the answer arrives all at once."
        return _refused_message(self.path)

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the parameter."""
        if self.path not in MAY_BE_LEFT_OUT:
            return payload
        value = value_at(payload, *self.path.split("."))
        if value is None or self._is_about_another(value):
            return payload
        if self.path == "text" and "format" in value:
            return payload  # the person asked for it
        return _with_parameter(payload, self.path, None)

    def _is_about_another(self, value: object) -> bool:
        """Say whether only another value was refused; without a digest all were."""
        return bool(self.value_digest) and self.value_digest != json_digest(value)


@dataclass(frozen=True, slots=True)
class ReplaceEffort(RequestRepair):
    """An effort that the model does not have becomes the nearest that it has."""

    refused: str
    allowed: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return f"The model does not have this effort: using {self.allowed}."

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the other effort."""
        if value_at(payload, "reasoning", "effort") != self.refused:
            return payload
        return _with_parameter(payload, "reasoning.effort", self.allowed)


def _with_parameter(
    payload: dict[str, Any], path: str, value: object
) -> dict[str, Any]:
    """Return a body with another value at a path of one or two names; None for none."""
    outer, _, inner = path.partition(".")
    changed = dict(payload)
    if inner:
        changed[outer] = _with_key(payload[outer], inner, value)
    else:
        changed[outer] = value
    if changed[outer] in (None, {}):
        del changed[outer]
    return changed


def _with_key(fields: Mapping[str, Any], key: str, value: object) -> dict[str, Any]:
    changed = {**fields, key: value}
    if value is None:
        del changed[key]
    return changed


@dataclass(frozen=True, slots=True)
class LeaveOutToolChoice(RequestRepair):
    """The choice of tools goes, and with it each tool that it forbids."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return _refused_message("tool_choice")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the choice, offering no more than it allowed."""
        choice = payload.get("tool_choice")
        if choice is None:
            return payload
        tools = declared_tools(payload)
        if choice == "none":
            tools = []
        elif isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
            allowed = {tool_name(tool) for tool in as_list(choice.get("tools"))}
            tools = [tool for tool in tools if tool_name(tool) in allowed]
        return _with_tools(lower_payload(payload, {ADDED_TOOLS}), tools, None)


@dataclass(frozen=True, slots=True)
class LeaveOutTool(RequestRepair):
    """A tool goes whole, and a choice that may have meant it."""

    digest: str
    name: str = field(default="", compare=False)

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return _refused_message(f"the tool {self.name[:64]}")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the tool, also without an item that added it."""
        declared = declared_tools(payload)
        remaining = self._other_tools(declared)
        if len(remaining) == len(declared):
            return payload
        changed = dict(payload)
        if self._is_added(payload):
            changed = lower_payload(payload, {ADDED_TOOLS})
        choice = _remaining_choice(payload.get("tool_choice"), remaining)
        return _with_tools(changed, self._other_tools(changed["tools"]), choice)

    def _other_tools(self, tools: Sequence[Item]) -> list[Item]:
        return [tool for tool in tools if json_digest(tool) != self.digest]

    def _is_added(self, payload: Mapping[str, Any]) -> bool:
        """Say whether only an item declares the tool, not the request itself."""
        tools = as_list(payload.get("tools"))
        return len(self._other_tools(tools)) == len(tools)


def _with_tools(
    payload: dict[str, Any], tools: Sequence[Item], choice: object
) -> dict[str, Any]:
    """Return a body with these tools and this choice; no empty list, no idle choice."""
    changed = {**payload, "tools": list(tools), "tool_choice": choice}
    if not tools:
        del changed["tools"]
    if choice is None or not declared_tools(changed):
        del changed["tool_choice"]
    return changed


def _remaining_choice(choice: object, tools: Sequence[Item]) -> object:
    """Return a choice among the `tools` that are left; None if it may mean another."""
    # A call may have been demanded of the tool that is gone.
    if choice == "required":
        return None
    if not isinstance(choice, Mapping):
        return choice
    names: set[object] = set()
    for tool in tools:
        names |= {tool_name(tool), tool.get("type")}
    allowed = choice.get("tools")
    if not isinstance(allowed, list):
        return choice if tool_name(choice) in names else None
    still_allowed = [tool for tool in allowed if tool_name(tool) in names]
    if not still_allowed:
        return "none"
    return {**choice, "tools": still_allowed}


@dataclass(frozen=True, slots=True)
class LeaveOutField(RequestRepair):
    """A field that a server does not know goes from all items of a type."""

    kind: str
    keys: tuple[str, ...]

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return _refused_message(self.keys[-1][:_MAX_TYPE])

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body whose items do not have the field."""
        if not may_lose_field(self.kind, self.keys):
            return payload
        items: list[Item] = []
        for item in payload["input"]:
            if item_type(item) == self.kind:
                items.append(_without_key(item, self.keys))
            else:
                items.append(item)
        return {**payload, "input": items}


def may_lose_field(kind: str, keys: Sequence[str]) -> bool:
    """Say whether items of a type mean the same without the field at a path."""
    if not 0 < len(keys) <= _MAX_KEYS or len(kind) > _MAX_TYPE:
        return False
    if kind == "message" and tuple(keys) == ("type",):
        return True  # its role tells what it is
    return kind not in _ITEMS_THAT_STAY_WHOLE and keys[-1] not in _FIELDS_WITH_A_MEANING


def _without_key(value: Any, keys: Sequence[str]) -> Any:
    """Return a value without the field at a path of names; each row of a list alike."""
    if isinstance(value, list):
        return [_without_key(row, keys) for row in value]
    if not isinstance(value, dict) or keys[0] not in value:
        return value
    if len(keys) > 1:
        return {**value, keys[0]: _without_key(value[keys[0]], keys[1:])}
    return {key: inner for key, inner in value.items() if key != keys[0]}


@dataclass(frozen=True, slots=True)
class LeaveOutStrict(RequestRepair):
    """No function says whether it is strict, for servers that do not know the field."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return _refused_message("strict")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body whose functions do not have the field."""
        changed = dict(payload)
        if payload.get("tools"):
            changed["tools"] = _without_strict(payload["tools"])
        changed["input"] = [_item_without_strict(item) for item in payload["input"]]
        return changed


def _item_without_strict(item: Item) -> Item:
    """Return an item in whose tools no function says whether it is strict."""
    if item_type(item) != ADDED_TOOLS:
        return item
    return {**item, "tools": _without_strict(item["tools"])}


def _without_strict(tools: Iterable[Item]) -> list[Item]:
    """Return tools of which no function says whether it is strict."""
    changed: list[Item] = []
    for tool in tools:
        if tool.get("type") == "function":
            changed.append(_without_key(tool, ("strict",)))
        else:
            changed.append(tool)
    return changed


@dataclass(frozen=True, slots=True)
class LowerItems(RequestRepair):
    """Fields of the request say what items of a type said."""

    kind: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return _refused_message(self.kind)

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the items."""
        if self.kind not in APPENDED:
            return payload
        return lower_payload(payload, {self.kind})


@dataclass(frozen=True, slots=True)
class MoveMessages(RequestRepair):
    """Messages between calls and their outputs stand behind the outputs.

    Recorded at DeepSeek: there an output has to follow the calls at once.
    """

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return (
            "The model's server does not accept text between a tool call and its result: "
            "moving the text after it."
        )

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body with its items in the other order."""
        return {**payload, "input": move_messages_behind_outputs(payload["input"])}


def repair_request(
    payload: dict[str, Any], repairs: Sequence[Repair]
) -> dict[str, Any]:
    """Return the body of a request with all `repairs`; `payload` itself with none."""
    if not repairs:
        return payload
    if any(isinstance(repair, ChatRepair) for repair in repairs):
        return sent_request(payload, repairs).payload
    # The names of all items take a while in a long chat, and nobody needs them here.
    lowered = lower_payload(payload, lowered_kinds(repairs))
    return _apply_all(lowered, repairs)


def sent_request(payload: dict[str, Any], repairs: Sequence[Repair]) -> SentRequest:
    """Return what is sent for a body before its repairs, with the names of its items.

    What is lowered is lowered first: tools of an item are then left out like others.
    Items are moved before they get names, so that a name stays with its item.
    """
    lowered = lower_payload(payload, lowered_kinds(repairs))
    if MoveMessages() in repairs:
        lowered = MoveMessages().apply(lowered)
    rows = name_items(lowered["input"], repairs)
    lowered["input"] = [row.item for row in rows]
    repaired = _apply_all(lowered, repairs)
    if len(repaired["input"]) < len(rows):  # a repair of tools took their items along
        rows = [row for row in rows if item_type(row.item) != ADDED_TOOLS]
    sent = zip(rows, repaired["input"], strict=True)
    items = [row._replace(item=item) for row, item in sent]
    return SentRequest(repaired, items, payload, tuple(repairs))


def _apply_all(payload: dict[str, Any], repairs: Sequence[Repair]) -> dict[str, Any]:
    for repair in repairs:
        if isinstance(repair, RequestRepair):
            payload = repair.apply(payload)
    return payload


def lowered_kinds(repairs: Iterable[Repair]) -> Set[str]:
    """Return the types of items that a server does not take."""
    return {repair.kind for repair in repairs if isinstance(repair, LowerItems)}


def refused_tools(repairs: Iterable[Repair]) -> Set[str]:
    """Return the digests of the tools that a server does not take."""
    return {repair.digest for repair in repairs if isinstance(repair, LeaveOutTool)}


def effort_of(payload: Mapping[str, Any]) -> object:
    """Return the effort that a request asks for."""
    return value_at(payload, "reasoning", "effort")


def value_digest(payload: Mapping[str, Any], path: str) -> str:
    """Return the digest of a parameter's value."""
    return json_digest(value_at(payload, *path.split(".")))


# --------------------------------------------------------------------------------------
# openai_responses.retries
#
# Which failures may pass if the same request is sent again, and how long to wait.
#
# Requests are sent again as OpenAI's Python client does it
# (docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
# retrying cannot restore.
#
#     the failure                               the same request again
#     passes by itself: a status, a code        as often as the policy says
#     says nothing of its cause                 once
#     refuses the request                       never
# --------------------------------------------------------------------------------------


PASSING_CODES = frozenset(
    {
        "bad_gateway",
        "gateway_timeout",
        "internal",
        "internal_server",
        "overloaded",
        "rate_limit",
        "rate_limit_exceeded",
        "server",
        "server_is_overloaded",
        "service_unavailable",
        "slow_down",
        "timeout",
        "too_many_requests",
        "upstream",
    }
)
"""Codes and types of trouble that passes, without the ending `_error`.

`service_unavailable_error` is OpenAI's own, as the first event of a stream (reported by
users of other clients); gateways have the others.
"""
_CAMEL_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_RETRIED_STATUS = frozenset({408, 409, 423, 425, 429, 499})
_UNCLEAR_STATUS = frozenset({200, 400, 405, 422})
"""Statuses that also proxies and firewalls send, for reasons of their own."""
_UNCERTAIN_STATUS = frozenset({None, 200, 400})
"""Statuses that say less than a passing code; all others are more certain than it."""
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of the codes of a 429 that no wait removes, also of those that nobody listed."""
_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 8.0
"""Seconds, like those of OpenAI's client (`_constants.py`)."""


class RetryPolicy(NamedTuple):
    """How often to retry, and the longest wait in seconds."""

    max_retries: int = 2
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    """Return the seconds before the next attempt; None if there is none.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    most = policy.max_retries
    if not is_transient(failure):
        most = min(most, 1) if says_no_cause(failure) else 0
    if attempt >= most:
        return None
    wait = failure.retry_after
    if wait is None:
        # In a stream there is no header; the words have it everywhere.
        wait = wait_in_words(failure.error.message)
    if wait is None:
        # Up to a quarter less, so that many clients do not come back at once.
        wait = min(_FIRST_BACKOFF * 2**attempt, _MAX_BACKOFF) * (1 - 0.25 * jitter)
    return wait if wait <= policy.max_wait else None


def is_passing(error: ApiError) -> bool:
    """Say whether an error names trouble of the server that passes.

    Gateways send the HTTP status as the code, or as the type.
    """
    for word in (error.code, error.type):
        if not word:
            continue
        name = _CAMEL_HUMP.sub("_", word).lower().removesuffix("_error")
        if name in PASSING_CODES:
            return True
        if name.isdecimal() and _is_retried_status(int(name)):
            return True
    return False


def _is_retried_status(status: int) -> bool:
    return status in _RETRIED_STATUS or 500 <= status < 600


def is_transient(failure: Failure) -> bool:
    """Say whether the same request may succeed later."""
    error = failure.error
    is_out_of_credit = (error.code or "").endswith(_NO_CREDIT_SUFFIXES)
    if is_out_of_credit or error.is_any_of(NO_CREDIT_CODES):
        return False
    # The header `x-should-retry` decides against the status, in both directions.
    if failure.should_retry is not None:
        return failure.should_retry
    if failure.status in _UNCERTAIN_STATUS and is_passing(error):
        return True
    # No answer, or a stream that began with an error: only words tell what it was. One
    # without any words may pass.
    if failure.status in (None, 200):
        has_words = error.code is not None or error.type is not None
        return not has_words and not error.names_a_place
    return _is_retried_status(failure.status)


def says_no_cause(failure: Failure) -> bool:
    """Say whether nothing tells if the request is the cause, or passing trouble.

    A refusal of the API names a code, its type or a parameter. The page of a proxy names
    nothing; a stream can end in an error of a type that is unknown here.
    """
    error = failure.error
    if failure.should_retry is not None:
        return False
    if error.code == UNREADABLE_STREAM:
        return True
    if failure.status not in _UNCLEAR_STATUS or error.param or error.names_a_place:
        return False
    if failure.status == 200:
        return not error.is_any_of(_KNOWN_REFUSALS)
    return error.code is None and error.type is None


_KNOWN_REFUSALS = (
    {"invalid_request_error", "BadRequestError"}  # OpenAI; vLLM
    | SENTENCES["failed"].keys()
    | SENTENCES["refused"].keys()
)
"""Codes and types after which the same request fails again, or has passed already."""

_MAX_WORDS = 2000
_SECONDS_OF_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|h|m|s)[a-z]{0,8},? ?")
_WAIT_IN_WORDS = re.compile(
    r"\b(?:try again|retry) (?:in|after) "
    r"((?:\d{1,9}(?:\.\d{1,9})? ?(?:ms|milli|h|m|s)[a-z]{0,8},? ?){1,4})",
    re.IGNORECASE,
)


def wait_in_words(message: str) -> float | None:
    """Return the seconds that a message asks to wait, None if it names none.

    "Please try again in 6m0s." (OpenAI), "Please retry after 20 seconds." (Azure).
    """
    match = _WAIT_IN_WORDS.search(message[:_MAX_WORDS])
    return read_duration(match[1]) if match else None


def read_duration(text: str) -> float | None:
    """Return the seconds in a text like `6m0s`, `250ms` or `20 seconds`."""
    times = _TIME.findall(text.lower())
    if not times:
        return None
    return sum(
        float(number) * _SECONDS_OF_UNIT["ms" if unit == "milli" else unit]
        for number, unit in times
    )


# --------------------------------------------------------------------------------------
# openai_responses.repairs.finding
#
# Finds the repair of a request that was refused.
#
# Nobody knows all that a server may refuse, so what to change is found from what the
# refusal names (`refusal`). Only few refusals name nothing and are known by their words
# (docs/reference/responses-api.md, "Refusals of input items" and "Errors").
#
# If nothing is named, less and less of the chat is sent (`blind_repair`). Such a step may
# coincide with a server that recovers, so it helps one request and teaches nothing:
# `Trial.is_lasting` is true only for what rests on a code, a parameter or a place that
# exists in the request, or on words that the request could not have said.
# --------------------------------------------------------------------------------------


MAX_REPAIRS = 3
"""Of one response, before plain words are sent."""

_OTHER_CAUSES = frozenset(
    {*range(300, 400), 401, 402, 403, 405, 407, 408, 409, 413, 421, 423, 425, 429}
    | {451, 499}
)
"""Statuses that are not about what the request says."""
_UNCLEAR_CAUSES = frozenset({200, 400, 404, 422})
"""Statuses of refusals that may be about the chat although nothing is named."""
_UNREAD = "invalid_encrypted_content"
"""Of another organization, provider or deployment, or damaged (openai/codex 8145)."""
_CAUSES_THAT_STAY = (
    NO_CREDIT_CODES | SENTENCES["failed"].keys() | SENTENCES["refused"].keys()
) - {*IMAGE_CODES, _UNREAD, "404"}
"""Codes of causes that no change of the request removes."""
_UNREADABLE = re.compile(
    # Reasoning without what it led to, or the other way round (continuedev/continue
    # 8933, 11994; recorded, 986).
    r"provided without its required"
    # An id that would have to be looked up (anomalyco/opencode 7724).
    r"|Items are not persisted when"
    r"|encrypted content .{0,400} could not be verified"
    # A model that does not reason (openai/openai-python 2364).
    r"|reasoning input items can only be provided",
    re.IGNORECASE | re.DOTALL,
)
_CONTAINER = re.compile(r"\bcontainer(?:_id|s? is expired)?", re.IGNORECASE)
"""What the API says of the container of earlier code."""
_UNVERIFIED = re.compile(r"must be verified to stream", re.IGNORECASE)
_TEXT_BEFORE_OUTPUT = re.compile(r"No tool output found for (tool|function) call\b")
"""What DeepSeek says of a text between a call and its output (recorded), and of nothing
that a request lacks: calls and outputs are sent in pairs."""
_MAX_NAME = 64
"""Characters of a name that are kept for the message."""
_UNREACHED = "retrieving tool list"
"""What the API writes of a remote MCP server that may be there again soon."""


class Trial(NamedTuple):
    """A repair on trial, which is remembered if it is seen to help."""

    repair: Repair
    error: ApiError = ApiError()
    """The refusal that it answers."""
    is_named: bool = False
    """Whether the server's own `param` names what is changed, and no person wrote it."""
    is_lasting: bool = True
    """Whether it is known that later requests would be refused as well."""
    helped_at_once: bool = False
    """Whether the request with this repair was accepted."""


def may_be_repaired(failure: Failure) -> bool:
    """Say whether a failure is about what the request says."""
    if failure.status in _OTHER_CAUSES or is_passing(failure.error):
        return False
    return not failure.error.is_any_of(_CAUSES_THAT_STAY)


def find_repair(sent: SentRequest, failure: Failure, done: int = 0) -> Trial | None:
    """Return what a refusal of `sent` names; None if that is nothing to change.

    `done` is how many repairs the same response has cost.
    """
    if not may_be_repaired(failure) or done >= MAX_REPAIRS:
        return None
    if failure.status is None:  # no server said anything
        return None
    refusal = Refusal(failure.error, sent)
    for trial in _candidates(refusal):
        if _is_worth_trying(trial.repair, sent):
            return trial._replace(error=failure.error)
    return None


def blind_repair(sent: SentRequest, failure: Failure) -> Trial | None:
    """Return the next step that may help although nothing is named, None after the last.

    It is taken when the same request was refused again. No step of it is remembered:
    the server may have been in trouble, and recovered meanwhile.
    """
    if not may_be_repaired(failure):
        return None
    error = failure.error
    steps: tuple[Repair, ...] = ()
    if error.code == UNREADABLE_STREAM:
        steps = (LeaveOutParameter("stream"),)
    elif failure.status in _UNCLEAR_CAUSES and _may_be_about_chat(failure):
        # The step that keeps most of the chat comes first.
        last = sent.last_name
        plain = PlainItems(last, any(has_media(row.item) for row in sent.items))
        steps = (LeaveOutPlainReasoning(), plain, WordsAlone(last))
    for repair in steps:
        if _is_worth_trying(repair, sent):
            return Trial(repair, error, is_lasting=False)
    return None


def _may_be_about_chat(failure: Failure) -> bool:
    """Say whether a 404 is about the request: else the address or the model is wrong."""
    error = failure.error
    if failure.status != 404 or error.names_a_place:
        return True
    is_of_the_api = error.type == "invalid_request_error"
    return is_of_the_api and "model" not in error.message.lower()


def _is_worth_trying(repair: Repair, sent: SentRequest) -> bool:
    """Say whether a repair is new, and changes what was sent.

    An effort that an earlier repair took away is not given back.
    """
    if repair in sent.repairs:
        return False
    if isinstance(repair, ReplaceEffort):
        for earlier in sent.repairs:
            if isinstance(earlier, ReplaceEffort) and earlier.refused == repair.allowed:
                return False
    return repair.applies(sent)


def _candidates(refusal: Refusal) -> Iterator[Trial]:
    """Yield what may help, the best first."""
    # A server that names its `reasoning` field may mean what it is sent back, or what it
    # is asked for: the first costs a chat less. Words alone are no knowledge.
    if "reasoning" in refusal.error.text.lower():
        is_named = "reasoning" in refusal.named_parameter
        yield Trial(LeaveOutPlainReasoning(), is_lasting=is_named)
    for find in (
        _by_code_or_words,
        _by_place,
        _by_image_code,
        _by_id,
        _by_unreadable_reasoning,
        _by_parameter,
        _by_tool,
    ):
        yield from find(refusal)


def _by_code_or_words(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair for refusals whose place is not what has to be changed."""
    words = refusal.words
    kinds = {item_type(row.item) for row in refusal.sent.items}
    last = refusal.sent.last_name
    if refusal.error.code == _UNREAD:
        yield Trial(LeaveOutReasoning(last))
    # "Container is expired." names no place; "Expected container_id: cntr_..." a chat
    # met in every further turn (pydantic/pydantic-ai 7461).
    container = _CONTAINER.search(words)
    if container and "code_interpreter_call" in kinds:
        repair: Repair = LeaveOutKind("code_interpreter_call", last)
        yield Trial(repair, is_lasting=refusal.is_own_phrase(container[0]))
    unanswered = _TEXT_BEFORE_OUTPUT.search(words)
    if unanswered:
        yield Trial(MoveMessages(), is_lasting=refusal.is_own_phrase(unanswered[0]))
    # Behind "Supported values are" stand the types that the server does take.
    refused = words.partition("upported values")[0]
    for kind in sorted(APPENDED & kinds):
        if kind in refused:
            # Every request with the item has its bare type.
            is_lasting = refusal.is_own_phrase(f"'{kind}'")
            yield Trial(LowerItems(kind), is_lasting=is_lasting)
    # Before gpt-5.6 a choice cannot name a tool that only an item declares: "Tool choice
    # 'x' not found in 'tools' parameter." (pydantic-ai 2.68.0)
    if "not found in 'tools'" in words:
        is_lasting = refusal.is_own_phrase("not found in 'tools'")
        yield Trial(LowerItems(ADDED_TOOLS), is_lasting=is_lasting)
    # "Your organization must be verified to stream this model." (continuedev/continue
    # 8209)
    unverified = _UNVERIFIED.search(words)
    if unverified:
        yield Trial(
            LeaveOutParameter("stream"),
            is_named=refusal.named_parameter == "stream",
            is_lasting=refusal.is_own_phrase(unverified[0]),
        )


def _by_place(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repairs of the item or the tool that is named."""
    place = refusal.place
    if place is None:
        return
    is_named = refusal.has_named_place
    tool = place.value if place.list_name == "tools" else place.inner_tool
    if tool is not None:
        is_about_strict = bool(place.keys) and place.keys[-1] == "strict"
        if refusal.is_unknown and is_about_strict:
            yield Trial(LeaveOutStrict(), is_named=is_named)
        yield _without_tool(refusal, tool, is_named=is_named)
        return
    yield from _without_field(refusal, place)
    yield from _without_item(refusal, place.number, is_named=is_named)


def _without_tool(refusal: Refusal, tool: Item, *, is_named: bool = False) -> Trial:
    """Return the repair of a tool; a server that is not reached may be back soon."""
    is_lasting = _UNREACHED not in refusal.words
    repair = LeaveOutTool(json_digest(tool), tool_name(tool)[:_MAX_NAME])
    return Trial(repair, is_named=is_named, is_lasting=is_lasting)


def _without_field(refusal: Refusal, place: Place) -> Iterator[Trial]:
    """Yield the repair of a field that the server does not know.

    What a person wrote may have it by that person's choice.
    """
    kind = item_type(place.value)
    if refusal.is_unknown and may_lose_field(kind, place.keys):
        is_named = refusal.has_named_place and not is_from_people(place.value)
        yield Trial(LeaveOutField(kind, place.keys), is_named=is_named)


def _without_item(
    refusal: Refusal, number: int, *, is_named: bool = False
) -> Iterator[Trial]:
    """Yield the repairs of one item; what people wrote always stays."""
    name, item = refusal.sent.items[number]
    kind = item_type(item)
    if kind in APPENDED:
        yield Trial(LowerItems(kind), is_named=is_named)
        return
    if has_plain_reasoning(item):
        yield Trial(LeaveOutPlainReasoning())
        return
    noun = kind.replace("_", " ")[:_MAX_NAME]
    if has_media(item):
        yield Trial(SendAsText(name, noun, had_media=True))
    elif kind == "message" and plain_item(item) != item:
        yield Trial(SendAsText(name, noun))
    has_left_out = any(
        isinstance(repair, LeaveOutItem) for repair in refusal.sent.repairs
    )
    if is_hosted(item) and has_left_out:  # a known type, so its name is short
        # One after the other would be refused; a long chat may have many.
        yield Trial(LeaveOutKind(kind, refusal.sent.last_name))
    if not is_from_people(item):
        yield Trial(LeaveOutItem(name, noun, keeps_words=is_paired(item)))


def _by_image_code(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of the newest image: its refusal names no place."""
    if refusal.error.code not in IMAGE_CODES:
        return
    numbers = [
        number for number, row in enumerate(refusal.sent.items) if has_media(row.item)
    ]
    if numbers:
        # Of several images the newest is a guess, which must not cost the chat another.
        for trial in _without_item(refusal, numbers[-1]):
            yield trial._replace(is_lasting=len(numbers) == 1)


def _by_id(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repairs of the items that have an id which the server names."""
    for number in refusal.numbers_of_ids:
        yield from _without_item(refusal, number)


def _by_unreadable_reasoning(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair for encrypted reasoning that the server's words are about."""
    has_encrypted = any(is_encrypted(row.item) for row in refusal.sent.items)
    unreadable = _UNREADABLE.search(refusal.words)
    if has_encrypted and unreadable:
        repair = LeaveOutReasoning(refusal.sent.last_name)
        yield Trial(repair, is_lasting=refusal.is_own_phrase(unreadable[0]))


def _by_parameter(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of a parameter; one that guards stays."""
    payload = refusal.sent.payload
    is_named = refusal.named_parameter == refusal.parameter
    path = _whole_parameter(refusal.parameter)
    if path == "tool_choice":
        yield Trial(LeaveOutToolChoice(), is_named=is_named)
    if path not in MAY_BE_LEFT_OUT:
        return
    if path == "reasoning.effort" and not refusal.is_unknown:
        nearest = _nearest_effort(effort_of(payload), refusal.quoted_words)
        if nearest:
            repair = ReplaceEffort(str(effort_of(payload)), nearest)
            yield Trial(repair, is_named=is_named)
    refused_value = "" if refusal.is_unknown else value_digest(payload, path)
    yield Trial(LeaveOutParameter(path, refused_value), is_named=is_named)


def _whole_parameter(path: str) -> str:
    """Return what is left out for a place inside of a parameter, like `include[1]`.

    Only what `reasoning` and `text` hold goes on its own.
    """
    outer = re.split(r"[.\[]", path)[0]
    return path if outer in ("reasoning", "text") else outer


def _nearest_effort(asked: object, quoted: set[str]) -> str | None:
    """Return the effort that is nearest to the one that was asked for."""
    if asked not in REASONING_EFFORTS:
        return None
    wanted = REASONING_EFFORTS.index(str(asked))
    nearest = None
    least_distance = len(REASONING_EFFORTS)
    # The API lists what the model has: "Supported values are: 'low', 'medium', ..."
    for rank, effort in enumerate(REASONING_EFFORTS):
        distance = abs(rank - wanted)
        if effort in quoted and effort != asked and distance < least_distance:
            nearest = effort
            least_distance = distance
    return nearest


def _by_tool(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of a tool that the words name by its name, label or type."""
    for tool in refusal.tools:
        yield _without_tool(refusal, tool)


# --------------------------------------------------------------------------------------
# openai_responses.requests.parameters
#
# The caller's parameters, in the names and forms of the API.
#
# Callers use the names of Chat Completions or of the API, or `enable_stream`; null means
# not given. A value that no API takes is left out, and the log says it: a chat must
# not fail because of one.
# --------------------------------------------------------------------------------------


ANSWER_KEYS = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
)
"""What shapes the caller's own answer and nothing else."""

ACCOUNT_KEYS: Mapping[str, str] = {
    "access_programs": "a right of the organization",
    "context_management": "billed",
    "image": "changes the cost",
    "max_tool_calls": "limits the cost",
    "metadata": "stored at OpenAI",
    "moderation": "a rule",
    "prompt_cache_key": "shared with others",
    "prompt_cache_options": "billed",
    "prompt_cache_retention": "stored at OpenAI",
    "safety_identifier": "names who is to blame",
    "service_tier": "changes the price",
}
"""What concerns whoever pays for the account, and why (docs/parameters.md)."""

_KeyTree = Mapping[str, Any]
"""The keys of an object, each with those of its value; none where any value passes."""

_ANY: _KeyTree = {}
_MODE: _KeyTree = {"mode": _ANY}
_CHOSEN_TOOL: _KeyTree = {"type": _ANY, "name": _ANY, "server_label": _ANY}
_KNOWN_KEYS: Mapping[str, _KeyTree] = {
    "access_programs": {"cyber": _ANY},
    "context_management": {"type": _ANY, "compact_threshold": _ANY},
    "image": {"context_compression": _ANY},
    "moderation": {"model": _ANY, "policy": {"input": _MODE, "output": _MODE}},
    "prompt_cache_options": {
        "comparison_response_id": _ANY,
        "mode": _ANY,
        "prewarm": _ANY,
        "ttl": _ANY,
    },
    "reasoning": {"context": _ANY, "effort": _ANY, "mode": _ANY, "summary": _ANY},
    "text": {"format": _ANY, "verbosity": _ANY},
    "tool_choice": {**_CHOSEN_TOOL, "mode": _ANY, "tools": _CHOSEN_TOOL},
}
"""The keys that the API has inside of its parameters (types of openai-python 3.54.0).

No other key leaves: the API quotes an unknown one in its refusal, so whoever writes a
key would write a part of what is read to repair the request.
"""


def with_known_keys(name: str, value: object) -> Any:
    """Return the value of a parameter without keys that the API does not have."""
    return _only_keys(value, _KNOWN_KEYS.get(name, _ANY))


def _only_keys(value: object, known: _KeyTree) -> Any:
    """Return a value without unknown keys at any depth; each row of a list alike."""
    if isinstance(value, list):
        return [_only_keys(row, known) for row in value]
    if not known or not isinstance(value, Mapping):
        return value
    return {key: _only_keys(value[key], known[key]) for key in value if key in known}


_OBJECTS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields that Chat Completions has beside the API's objects, and their names there."""

_MAX_FORMAT = 300_000
"""As `json_size` counts, like the schema of a tool. A user can store a format with a
model or a chat, and each short question then sends it."""
_ANSWER_FORMATS = ("text", "json_object", "json_schema")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_FORMAT_NAME = 64
"""Characters of a format's name; the API refuses longer ones, and other signs."""


def read_parameters(body: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys with the API's names, and what is wrong with others.

    `reasoning` and `text` hold what Chat Completions has beside them. Keys that the API
    does not have stay. `stop` implies `truncation: "disabled"` (docs/parameters.md).
    """
    given = given_values(body)
    errors: list[str] = []
    for name in ("max_tokens", "max_completion_tokens"):
        if name in given:
            given.setdefault("max_output_tokens", given.pop(name))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    if "response_format" in given:
        given["response_format"] = _with_schema(given)
    _read_values(given, "", errors)
    for key, fields in _OBJECTS.items():
        own = given_values(given.get(key, {}))
        for field, name in fields.items():
            beside = given.pop(name, None)
            value = own.pop(field, None) or beside
            if value:
                own[field] = value
        _read_values(own, f"{key}.", errors)
        given[key] = own
    return given, errors


def given_values(values: JsonObject) -> dict[str, Any]:
    """Return what is not null."""
    return {key: value for key, value in values.items() if value is not None}


def _read_values(values: dict[str, Any], prefix: str, errors: list[str]) -> None:
    """Replace values by what they mean; those without a meaning are left out.

    `prefix` is that of the names of these values, like `text.`.
    """
    for name, read in _VALUE_READERS.items():
        key = name.removeprefix(prefix)
        value = values.pop(key, None)
        if value is None:
            continue
        try:
            values[key] = read(name, value)
        except InvalidRequest as error:
            errors.append(str(error))


def read_bool(name: str, value: object) -> bool:
    """Return the value of true, false, 1 or 0, also as text; raises InvalidRequest."""
    if isinstance(value, bool | int | str):
        if value in (True, "true", "1"):
            return True
        if value in (False, "false", "0"):
            return False
    raise parameter_error(name, "it must be true or false")


def _read_object(name: str, value: object) -> JsonObject:
    if not isinstance(value, Mapping):
        raise parameter_error(name, "it must be a JSON object")
    return value


def _read_word(name: str, value: object) -> str:
    """Return a word of the API, written in any case; raises InvalidRequest."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise parameter_error(name, f"it must be one of {words}")
    return word


def _with_schema(given: dict[str, Any]) -> Any:
    """Return the `response_format` with the `json_schema` that may stand beside it."""
    form = given["response_format"]
    beside = given.pop("json_schema", None)
    if isinstance(form, str):
        form = {"type": form}
    if isinstance(form, Mapping) and form.get("json_schema") is None:
        return {**form, "json_schema": beside}
    return form


def _read_format(name: str, value: object) -> dict[str, Any]:
    """Return the API's flat `text.format`; Chat Completions nests the schema."""
    form = _read_object(name, value)
    try:
        json_size(form, _MAX_FORMAT)
    except JsonTooLarge:
        raise parameter_error(name, "it is too large") from None
    kind = form.get("type")
    if kind not in _ANSWER_FORMATS:
        words = ", ".join(_ANSWER_FORMATS)
        raise parameter_error(name, f"its type is none of {words}")
    if kind != "json_schema":
        return {"type": kind}
    described = form.get("json_schema")
    if described is None and "schema" in form:  # the API's own, flat form
        described = form
    return {"type": kind, **_schema_fields(name, described)}


def _schema_fields(name: str, value: object) -> dict[str, Any]:
    """Return the fields of a `json_schema` format.

    `strict` is always among them: the Responses API makes a schema that does not say it
    strict, and each of its properties required, while Chat Completions does not
    (recorded: 8 of 8).
    """
    if isinstance(value, str):
        value = parse_json_object(value)
    if not isinstance(value, Mapping) or not isinstance(value.get("schema"), Mapping):
        why = 'json_schema has to be a JSON object with the schema under "schema"'
        raise parameter_error(name, why)
    own_name = str(value.get("name") or "response")
    format_name = _NOT_IN_A_NAME.sub("_", own_name)[:_MAX_FORMAT_NAME]
    fields: dict[str, Any] = {"name": format_name, "schema": value["schema"]}
    if value.get("description"):
        fields["description"] = value["description"]
    strict = value.get("strict")
    fields["strict"] = strict is not None and read_bool("json_schema.strict", strict)
    return fields


def parameter_error(name: str, why: str) -> InvalidRequest:
    """Return the error of a parameter that cannot be sent."""
    return InvalidRequest(f"The setting {name} cannot be sent: {why}.")


_WORDS: Mapping[str, tuple[str, ...]] = {
    "reasoning.effort": REASONING_EFFORTS,
    "reasoning.summary": ("auto", "concise", "detailed"),
    "text.verbosity": ("low", "medium", "high"),
}
_VALUE_READERS: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("enable_stream", "parallel_tool_calls"), read_bool),
    **dict.fromkeys(_OBJECTS, _read_object),
    **dict.fromkeys(_WORDS, _read_word),
    "text.format": _read_format,
}
"""What reads a value that more than its type is known of."""


def hash_ids(kind: str, user_id: str, chat_id: str) -> dict[str, str | None]:
    """Return the parameters that name the user and, by the kind of key, the cache."""
    cache_key = None
    if kind == "chat":
        cache_key = _hash_id("chat", chat_id)
    if cache_key is None and kind != "off":  # a chat without an id has its user's key
        cache_key = _hash_id("cache", user_id)
    return {
        "safety_identifier": _hash_id("user", user_id),
        "prompt_cache_key": cache_key,
    }


def _hash_id(kind: str, value: str) -> str | None:
    """Return a stable name for an id, which is random and cannot be guessed.

    A cache key has at most 64 characters.
    """
    if not value:
        return None
    return hex_digest(f"openai_responses:{kind}:{value}")[:48]


# --------------------------------------------------------------------------------------
# openai_responses.callbacks
#
# The callback of a caller that wants to hear nothing.
# --------------------------------------------------------------------------------------


def ignore_report(_value: object) -> None:
    """Do nothing with what is reported."""


# --------------------------------------------------------------------------------------
# openai_responses.requests.strict_schema
#
# The strict form of a function's parameters.
#
# In strict mode the API makes a model keep to the schema. Every object is closed and
# every property required; optional ones become nullable, and `check_arguments` takes the
# nulls away again. The limits are those of OpenAI's guide "Structured outputs",
# "Supported schemas".
# --------------------------------------------------------------------------------------


Schema = dict[str, Any]

_JSON_TYPES = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)


def json_types(stated: object) -> list[str]:
    """Return the types that a `type` names; none if it names anything else, too."""
    words = stated if isinstance(stated, list) else [stated]
    for word in words:
        if not isinstance(word, str) or word not in _JSON_TYPES:
            return []
    return list(dict.fromkeys(words))


class NoStrictForm(ValueError):
    """Strict mode cannot express a schema, or only with more work."""


_KEPT_IN_STRICT_MODE = frozenset(
    {
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
    }
)
"""Keywords that strict mode takes as they are."""

_DROPPED_IN_STRICT_MODE = frozenset(
    {
        "$comment",
        "$defs",
        "contentEncoding",
        "contentMediaType",
        "default",
        "definitions",
        "deprecated",
        "examples",
        "maxLength",
        "maxProperties",
        "minLength",
        "minProperties",
        "readOnly",
        "title",
        "uniqueItems",
        "writeOnly",
    }
)
"""Keywords that the guide does not list, and that only remark on values or limit them.

`default` and `minLength` are accepted all the same (recorded); of the others nobody says
it. Definitions are among them: a schema that refers to one has no strict form.
"""

_CHANGED_IN_STRICT_MODE = frozenset(
    {
        "additionalProperties",
        "anyOf",
        "const",
        "format",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
    }
)
_SIMPLE_KEYWORDS = (
    _KEPT_IN_STRICT_MODE | _DROPPED_IN_STRICT_MODE | _CHANGED_IN_STRICT_MODE
)

_STRICT_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uuid",
    }
)
_STRICT_NUMBER_FORMATS = frozenset({"double", "int64", "uint8"})
"""Formats that the guide does not list, but OpenAI took with numbers (recorded)."""
_MAX_STRICT_DEPTH = 10
"""Levels of nesting (guide "Structured outputs")."""
_ROOT_DEPTH = 1


def strict_schema_form(root: Schema) -> Schema:
    """Return the strict form of a valid schema; raises NoStrictForm if it has none.

    Simple are single values, enums, arrays, objects whose properties are all listed,
    and choices of these. Whatever else narrows values down (references, `allOf`, `not`,
    conditions) is not simple, and neither is an open object. The strict form allows
    only what the schema allows, except nulls of optional properties and what violates
    keywords that strict mode does not have (`minLength`).
    """
    return _strict_form(root, _ROOT_DEPTH)


def _strict_form(node: Any, depth: int) -> Schema:
    if not isinstance(node, dict) or depth > _MAX_STRICT_DEPTH:
        raise NoStrictForm
    if not node.keys() <= _SIMPLE_KEYWORDS:
        raise NoStrictForm
    if "anyOf" in node or "oneOf" in node:
        return _strict_choice(node, depth)
    return _strict_value(node, depth)


def _strict_value(node: Schema, depth: int) -> Schema:
    """Return the strict form of a schema that is no choice."""
    strict = {key: node[key] for key in node if key in _KEPT_IN_STRICT_MODE}
    # The guide has no `const`; an enum of one value is the same.
    if "const" in node:
        strict["enum"] = [node["const"]]
    types = _types_of(node, strict.get("enum"))
    strict["type"] = types[0] if len(types) == 1 else types
    # Some other formats, `uri` for one, make the API refuse the whole request.
    known = _STRICT_FORMATS
    if set(types) <= {"integer", "null", "number"}:
        known = _STRICT_NUMBER_FORMATS
    if node.get("format") in known:
        strict["format"] = node["format"]
    if "object" in types:
        strict |= _strict_object(node, depth)
    if "array" in types:
        strict["items"] = _strict_form(node.get("items"), depth + 1)
    return strict


def _strict_choice(node: Schema, depth: int) -> Schema:
    """Return a choice; strict mode has only `anyOf`, with nothing beside it."""
    if node.keys() & {"properties", "items", "enum", "const", "required"}:
        raise NoStrictForm
    if "anyOf" in node and "oneOf" in node:
        raise NoStrictForm
    options = node["anyOf"] if "anyOf" in node else node["oneOf"]
    return _choice_of([_strict_form(option, depth + 1) for option in options], node)


def _strict_object(node: Schema, depth: int) -> Schema:
    properties = node.get("properties", {})
    required = set(node.get("required", ()))
    if not _is_closed(node, depth) or not required <= properties.keys():
        raise NoStrictForm
    # Strict mode knows no optional property: left to itself, the API would make each a
    # required one (recorded, 219 of 219), and the model would invent values.
    forms: Schema = {}
    for name, part in properties.items():
        form = _strict_form(part, depth + 1)
        forms[name] = form if name in required else _make_nullable(form)
    return {
        "properties": forms,
        "required": list(forms),
        "additionalProperties": False,
    }


def _is_closed(node: Schema, depth: int) -> bool:
    """Say whether an object may have only the properties that it lists.

    Servers seldom say so; an object that lists none, except a function's own
    parameters, is meant as a map.
    """
    if "additionalProperties" in node:
        return node["additionalProperties"] is False
    return depth == _ROOT_DEPTH or bool(node.get("properties"))


def _make_nullable(form: Schema) -> Schema:
    """Return a form that also allows null, which stands for a value left out."""
    types = form.get("type")
    if types is None or types in ("object", "array"):
        return _nullable_choice(form)
    names = types if isinstance(types, list) else [types]
    nullable = {**form, "type": names}
    if "null" not in names:
        nullable["type"] = [*names, "null"]
    # A type allows only what its enum lists, too.
    if "enum" in form and None not in form["enum"]:
        nullable["enum"] = [*form["enum"], None]
    return nullable


def _nullable_choice(form: Schema) -> Schema:
    """Return a choice between a form, or its options, and null."""
    undescribed = {key: form[key] for key in form if key != "description"}
    options = [undescribed]
    if undescribed.keys() == {"anyOf"}:
        options = undescribed["anyOf"]
    null = {"type": "null"}
    if null not in options:
        options = [*options, null]
    return _choice_of(options, form)


def _choice_of(options: list[Any], node: Schema) -> Schema:
    """Return a choice with the description of `node`."""
    choice: Schema = {"anyOf": options}
    if "description" in node:
        choice["description"] = node["description"]
    return choice


def _types_of(node: Schema, enum: list[Any] | None) -> list[str]:
    """Return the types that a node states, or those of the values that it lists."""
    if "type" in node:
        return json_types(node["type"])
    if "properties" in node:
        return ["object"]
    if enum is None:
        raise NoStrictForm
    types = [_type_of_scalar(value) for value in enum]
    return list(dict.fromkeys(types))


def _type_of_scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
    raise NoStrictForm


# --------------------------------------------------------------------------------------
# openai_responses.requests.json_schema
#
# JSON Schemas of functions, as the API takes them.
#
# Tool servers send schemas of every draft and of OpenAPI, and some that are not schemas
# at all. One that the API refuses makes every message of a chat fail. So each is copied
# once: the copy has the keywords of draft 2020-12 that have valid values, at every depth.
# Nothing is guessed; what is left out allows more than before, never something else. The
# tool's own schema stays as it is, and arguments are checked against that one.
#
# The API demands more than the draft (docs/reference/responses-api.md, "Function tools"):
#
# - The root is an object with `properties`, and not a choice.
# - An object has `properties`, an array has `items`.
# - A reference names a definition at the root.
# - A pattern is one that Python's `re` compiles, and that other engines read alike.
# --------------------------------------------------------------------------------------


LARGEST_SCHEMA = 300_000
"""The size of the largest schema that is read, as `json_size` counts it."""
MAX_STRICT_WORK = 300_000
"""The size of all schemas of a request that get a strict form."""
_MAX_STRICT_SCHEMA = 10_000
"""As `json_size` counts, ten for each value. Strict mode takes 5,000 properties, 1,000
values of enums, 120,000 characters of both, and 15,000 of one long enum (guide
"Structured outputs", "Supported schemas")."""


def function_parameters(
    schema: JsonObject, strict_left: JsonBudget | None = None
) -> tuple[Schema, bool]:
    """Return a function's parameters as the API takes them, and whether for strict mode.

    With `strict_left`, the work that may still be done, simple ones get their strict
    form; see `strict_schema_form`. Raises JsonTooLarge for a schema above
    LARGEST_SCHEMA or of more than 64 levels.
    """
    # Whoever runs a tool server chooses the size; each of its schemas is walked in each
    # request.
    json_size(schema, LARGEST_SCHEMA)
    copy = _SchemaCopy(schema)
    # Without `type: object` at the root, or with a choice there, the whole request is
    # refused (vercel/ai 7005, janhq/jan 7017).
    parameters = _object_without_choice(copy.schema)
    is_plain_object = (
        not copy.schema.keys() & _REFUSED_AT_THE_ROOT
        and schema.get("type", "object") == "object"
    )
    if strict_left is None or not copy.is_exact or not is_plain_object:
        return parameters, False
    try:
        strict_left.spend(json_size(parameters, _MAX_STRICT_SCHEMA))
        return strict_schema_form(parameters), True
    except (JsonTooLarge, NoStrictForm):
        return parameters, False


# ---------------------------------------------------------------- valid values


def _is_json_value(value: object) -> bool:
    """Say whether JSON can express a value; it has no NaN and no infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def is_json_number(value: object) -> bool:
    """Say whether a value is a number that JSON has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return _is_json_value(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, Mapping | bool)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_filled_list(value: object) -> bool:
    return isinstance(value, list) and value != []


def _is_json_list(value: object) -> bool:
    return _is_filled_list(value) and _is_json_value(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_length(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_divisor(value: Any) -> bool:
    return is_json_number(value) and value > 0


_MAX_PATTERN_CHARACTERS = 500
_READ_DIFFERENTLY = re.compile(
    r"""
    \(\?(?!:)       # lookaround, flags, named groups
    | \\[1-9AZ]     # back references, anchors of Python alone
    | \[\^?\[       # sets in sets
    | -- | && | ~~ | \|\|
    | [*+?}]\+      # possessive repeats
    """,
    re.VERBOSE,
)
"""Parts of a pattern that Python, ECMAScript and Rust read differently, or refuse."""


def _is_portable_pattern(pattern: object) -> bool:
    """Say whether a pattern can be sent: the API refuses what `re` does not compile."""
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN_CHARACTERS:
        return False
    # gpt-5.5 and gpt-5.6 answer 400 "regex lookaround is not supported", gpt-5.4 ends
    # the stream with a bare `server_error` (anomalyco/opencode 32073, vercel/ai 20021).
    if _READ_DIFFERENTLY.search(pattern):
        return False
    try:
        # OpenAI's validator is Python's `jsonschema`: `\p{L}` "is not a 'regex'"
        # (Alishahryar1/free-claude-code 1730).
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_json_type(value: object) -> bool:
    return json_types(value) != []


_SCHEMA_KEYWORDS = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAP_KEYWORDS = frozenset(
    {
        "$defs",
        "definitions",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)

_VALID_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_SCHEMA_KEYWORDS, _is_schema),
    **dict.fromkeys(_SCHEMA_LIST_KEYWORDS, _is_filled_list),
    **dict.fromkeys(_SCHEMA_MAP_KEYWORDS, _is_mapping),
    "$comment": _is_text,
    "const": _is_json_value,
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
    "default": _is_json_value,
    "deprecated": _is_flag,
    "description": _is_text,
    "enum": _is_json_list,
    "examples": _is_json_list,
    "exclusiveMaximum": is_json_number,
    "exclusiveMinimum": is_json_number,
    "format": _is_text,
    "maxContains": _is_length,
    "maxItems": _is_length,
    "maxLength": _is_length,
    "maxProperties": _is_length,
    "maximum": is_json_number,
    "minContains": _is_length,
    "minItems": _is_length,
    "minLength": _is_length,
    "minProperties": _is_length,
    "minimum": is_json_number,
    "multipleOf": _is_divisor,
    "pattern": _is_portable_pattern,
    "readOnly": _is_flag,
    "required": _is_list,
    "title": _is_text,
    "type": _is_json_type,
    "uniqueItems": _is_flag,
    "writeOnly": _is_flag,
}
"""The keywords that are sent, with the check of their values.

They are those of draft 2020-12, and `definitions`, which it still knows. Left out are
`$schema`, which is no longer true of the copy, words that give a part another name or
base (`$id`, `$anchor`, `$dynamicRef`), and `dependentRequired`, a map of lists that
nobody sends. `$ref` has a check of its own.
"""

_NEEDED_FOR_STRICT_MODE = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "dependencies",
        "dependentRequired",
        "enum",
        "items",
        "nullable",
        "properties",
        "required",
        "type",
    }
)
"""Words without which a strict form would be a guess, if they are left out."""


# ---------------------------------------------------------------- copy


class _SchemaCopy:
    """A schema with its valid keywords; each node is read once.

    `is_exact` is false if a word was left out that strict mode would have to express.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.is_exact = True
        self.schema = self._copy_keywords(root)

    def _copy(self, node: object) -> Schema | bool:
        """Return the copy of a node; what is not a schema allows everything."""
        if isinstance(node, bool):
            return node
        if isinstance(node, Mapping):
            return self._copy_keywords(node)
        return {}

    def _copy_keywords(self, node: JsonObject) -> Schema:
        copy: Schema = {}
        for keyword, value in node.items():
            if self._is_valid(keyword, value):
                copy[keyword] = self._copy_value(keyword, value)
            elif keyword in _NEEDED_FOR_STRICT_MODE:
                self.is_exact = False
        types = json_types(copy.get("type"))
        # An object without `properties` is refused, also without strict mode (forgecode
        # 1359), and so is an array without `items`.
        if "object" in types:
            copy.setdefault("properties", {})
        if "array" in types:
            copy.setdefault("items", {})
        return copy

    def _is_valid(self, keyword: object, value: object) -> bool:
        if keyword == "$ref":
            return self._is_definition(value)
        if not isinstance(keyword, str) or keyword not in _VALID_VALUES:
            return False
        return _VALID_VALUES[keyword](value)

    def _is_definition(self, reference: object) -> bool:
        """Say whether a reference names a definition at the root, or the root."""
        if not isinstance(reference, str) or not _DEFINITION.fullmatch(reference):
            return False
        return _is_schema(resolve_reference(self._root, reference))

    def _copy_value(self, keyword: str, value: Any) -> Any:
        if keyword in _SCHEMA_KEYWORDS:
            return self._copy(value)
        if keyword in _SCHEMA_LIST_KEYWORDS:
            return [self._copy(part) for part in value]
        if keyword in _SCHEMA_MAP_KEYWORDS:
            return self._copy_map(keyword, value)
        if keyword == "required":
            return _unique_texts(value)
        if keyword == "type" and isinstance(value, list):
            return _unique_texts(value)
        return value

    def _copy_map(self, keyword: str, parts: JsonObject) -> Schema:
        is_name: Callable[[Any], bool] = _is_text
        if keyword == "patternProperties":
            is_name = _is_portable_pattern
        return {name: self._copy(part) for name, part in parts.items() if is_name(name)}


def _unique_texts(values: list[Any]) -> list[str]:
    """Return the texts of a list, each once, as the draft wants it."""
    texts = [value for value in values if isinstance(value, str)]
    return list(dict.fromkeys(texts))


# ---------------------------------------------------------------- root

_REFUSED_AT_THE_ROOT = frozenset(
    {"$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"}
)


def _object_without_choice(root: Schema) -> Schema:
    """Return an object with all properties of the options that the root offers.

    The API refuses a choice at the root, and a model that knew none of its properties
    could not call the function.
    """
    plain = {key: root[key] for key in root if key not in _REFUSED_AT_THE_ROOT}
    return {**plain, "type": "object", "properties": _all_properties(root)}


def _all_properties(root: Schema) -> Schema:
    """Return the properties of the root and its options; those of the first count."""

    def parts_of(node: JsonObject) -> list[Any]:
        return schema_parts(root, node, _choose_all)

    properties: Schema = {}
    for part in reversed(joined_schemas(root, parts_of)):
        properties.update(as_mapping(part.get("properties")))
    return properties


def _choose_all(options: list[Any]) -> list[Any]:
    return options


# ---------------------------------------------------------------- reading

_DEFINITION = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
_MAX_REFERENCE_CHARACTERS = 300


def resolve_reference(root: JsonObject, reference: object) -> Any:
    """Return the part of `root` that a `$ref` names, or None.

    The reference is a JSON pointer behind a `#`; `#` alone is the root (RFC 6901).
    """
    # A reference of megabytes would be split into as many steps.
    if not isinstance(reference, str) or len(reference) > _MAX_REFERENCE_CHARACTERS:
        return None
    start, *steps = reference.split("/")
    if start != "#":
        return None
    part: Any = root
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        part = _step_into(part, name)
    return part


def _step_into(part: object, name: str) -> Any:
    if not isinstance(part, list):
        return as_mapping(part).get(name)
    if name.isdecimal() and int(name) < len(part):
        return part[int(name)]
    return None


def joined_schemas(
    node: Any, parts_of: Callable[[JsonObject], list[Any]]
) -> list[JsonObject]:
    """Return a schema and all that `parts_of` joins to it, in their order.

    Each comes once, because references may lead to the same part many times.
    """
    joined: dict[int, JsonObject] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in joined:
            joined[id(part)] = part
            ahead += reversed(parts_of(part))
    return list(joined.values())


def schema_parts(
    root: JsonObject, node: JsonObject, choose: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """Return what a part of a schema joins to itself; of a choice, what is chosen."""
    parts: list[Any] = []
    if "$ref" in node:
        parts.append(resolve_reference(root, node["$ref"]))
    parts += as_list(node.get("allOf"))
    parts += choose(as_list(node.get("anyOf")))
    parts += choose(as_list(node.get("oneOf")))
    return parts


# --------------------------------------------------------------------------------------
# openai_responses.requests.tools
#
# Tools in the API's form, with names that it allows.
# --------------------------------------------------------------------------------------


_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names of tools; any other is refused (openai/codex 1289)."""
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_SHOWN_OF_NAME = 64
_STEM = 51
"""Of 64; the rest is `_` and the digest."""
_DIGEST = 12


@dataclass(frozen=True)
class ToolNames:
    """Translates the names of tools for the API and back; `known` are their own names.

    A translation depends only on the name, to be the same in later requests, unless
    another known tool has that name.
    """

    known: tuple[str, ...] = ()

    def sent_name(self, name: str) -> str:
        """Return the name that the API gets: 1 to 64 letters, digits, `_` and `-`."""
        return self._sent_names.get(name) or _allowed_name(name, self._sent_names)

    def own_name(self, called: str, others: Collection[str] = ()) -> str:
        """Return the tool's own name for the name that the model used.

        A name that neither a tool nor one of the `others` has means the only tool that
        is spelled like it.
        """
        own = self._own_names.get(called)
        if own is None and called not in others:
            own = self._names_by_spelling.get(_normalize_spelling(called))
        return own or called

    @cached_property
    def _sent_names(self) -> Mapping[str, str]:
        known = dict.fromkeys(self.known)
        return {name: _allowed_name(name, known) for name in known}

    @cached_property
    def _own_names(self) -> Mapping[str, str]:
        # Of two with one name, the first counts.
        return {self._sent_names[name]: name for name in reversed(self.known)}

    @cached_property
    def _names_by_spelling(self) -> Mapping[str, str]:
        """The known names by their spelling; empty where two are spelled alike."""
        names: dict[str, str] = {}
        for name in dict.fromkeys(self.known):
            spelling = _normalize_spelling(name)
            if spelling in names:
                names[spelling] = ""  # neither of the two can be meant
            else:
                names[spelling] = name
        return names

    def rename_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        renamed: list[Item] = []
        for tool in tools:
            if is_hosted_tool(tool):
                renamed.append(tool)
            else:
                renamed.append({**tool, "name": self.sent_name(tool["name"])})
        return renamed


def _allowed_name(name: str, taken: Collection[str]) -> str:
    """Return a name that the API allows and that is not taken; it has a digest."""
    if _ALLOWED.fullmatch(name):
        return name
    stem = _FORBIDDEN.sub("_", name)[:_STEM]
    seed = name
    while True:
        seed = hex_digest(seed)
        sent = f"{stem}_{seed[:_DIGEST]}"
        if sent not in taken:
            return sent


_MODELS_PREFIX = "functions."
"""Models know functions in this namespace, and some write it."""
_MAX_CALL_ID = 64
"""Codex's own server issued longer ones, which the API refuses (hermes-agent 72006)."""


def _normalize_spelling(name: str) -> str:
    """Return what two spellings of a name have in common: case and signs do not count."""
    return _FORBIDDEN.sub("_", _bare_name(name)).lower()


def _bare_name(name: str) -> str:
    """Return the name of a tool without what models write around it."""
    return name.strip().removeprefix(_MODELS_PREFIX)


def added_tool_names(items: Iterable[Item]) -> set[str]:
    """Return the names of the tools that items of the input declare."""
    names: set[str] = set()
    for item in items:
        if item_type(item) == ADDED_TOOLS:
            tools = content_parts(item.get("tools"))
            names.update(as_text(tool.get("name")) for tool in tools)
    return names


def fit_calls(items: Sequence[Item]) -> list[Item]:
    """Return `items` with calls in the form that the API takes.

    A tool that an item added lies in a namespace of its own name, so its calls go back
    with that namespace. gpt-5.4 names it in the call; gpt-5.6 and gpt-6 leave it out, and
    accepted is the call with it (recordings of pydantic-ai). Any other namespace is of
    an earlier answer: tools lay in namespaces once, and are now declared without.
    """
    added = added_tool_names(items)
    return [clean_call(_with_own_namespace(item, added)) for item in items]


def _with_own_namespace(item: Item, added: Collection[str]) -> Item:
    """Return a call of an `added` tool with its namespace, any other call without one."""
    if not is_call(item):
        return item
    name = as_text(item.get("name"))
    namespace = name if name in added else None
    if item.get("namespace") == namespace:
        return item
    changed = {key: value for key, value in item.items() if key != "namespace"}
    if namespace:
        changed["namespace"] = namespace
    return changed


def clean_call(item: Item) -> Item:
    """Return an item with a name, a `call_id` and arguments that the API takes.

    Calls of other servers and models can have any. The same ones always become the
    same, so that a call, its output and its tool still fit.
    """
    name = item.get("name")
    call_id = item.get("call_id")
    arguments = item.get("arguments")
    changed: Item = {}
    if item_type(item) == "function_call" and not isinstance(arguments, str):
        changed["arguments"] = arguments_text(arguments) or "{}"
    if is_call(item) and isinstance(name, str) and not _ALLOWED.fullmatch(name):
        changed["name"] = ToolNames().sent_name(_bare_name(name))
    if isinstance(call_id, str) and not 0 < len(call_id) <= _MAX_CALL_ID:
        changed["call_id"] = f"call_{hex_digest(call_id)[:32]}"
    return {**item, **changed} if changed else item


_MODES = ("auto", "none", "required")
CALLED_BY_NAME = ("function", "custom")
"""Types of tools that the caller runs, and not the API."""

_OF_THE_API = ("allowed_callers", "async", "output_schema")
_KEYS_OF_CUSTOM = ("name", "description", "allowed_callers", "async")
_KEYS_OF_FORMAT = ("type", "definition", "syntax")
"""No other key of a caller's tool leaves: a refusal would quote it."""


_MAX_SIZE_OF_TOOLS = 500_000
"""The size of all tools of a request; about 700 usual ones."""
_NAMED_IN_LOG = 10


def responses_tools(
    specs: Sequence[JsonObject],
    *,
    strict: bool = False,
    log: Callable[[str], object] = ignore_report,
) -> list[Item]:
    """Return the tools of a chat body, or of the host, in the API's form.

    Chat Completions nests a function under `function`, the host has no `type`; the API
    needs it flat, with `parameters` and `strict`. With `strict` every function becomes
    strict whose schema allows it. Tools that are too large, alone or with those before
    them, are left out, and `log` gets a line.
    """
    size_left = JsonBudget(_MAX_SIZE_OF_TOOLS)
    strict_left = JsonBudget(MAX_STRICT_WORK)
    tools: list[Item] = []
    left_out: list[object] = []
    for spec in specs:
        try:
            size_left.spend(json_size(spec, min(size_left.left, LARGEST_SCHEMA)))
        except JsonTooLarge:
            left_out.append(spec)
        else:
            tools.append(_responses_tool(spec, strict, strict_left))
    if left_out:
        names = [_spec_name(spec) for spec in left_out[:_NAMED_IN_LOG]]
        log(
            "Tools are left out, because their schemas are too large or too deep: "
            f"{', '.join(names)} ({len(left_out)} in all). Make the schemas smaller, or "
            "offer fewer tools."
        )
    return tools


def _spec_name(spec: object) -> str:
    """Return the quoted name of a tool for the log; the spec may be anything."""
    outer = as_mapping(spec)
    inner = as_mapping(outer.get("function") or outer.get("custom"))
    return repr(as_text(inner.get("name") or outer.get("name"))[:_MAX_SHOWN_OF_NAME])


def is_hosted_tool(tool: JsonObject) -> bool:
    """Say whether the API runs a tool, itself or on another server."""
    return tool.get("type") not in CALLED_BY_NAME


def merge_tools(*groups: Sequence[Item]) -> list[Item]:
    """Return the tools of all groups; a later one replaces an earlier one of its name.

    MCP servers are compared by label, other hosted tools by type.
    """
    merged: dict[object, Item] = {}
    for group in groups:
        for tool in group:
            merged[tool_identity(tool)] = tool
    return list(merged.values())


def responses_tool_choice(
    choice: object, tools: Sequence[Item], names: ToolNames
) -> object:
    """Return `tool_choice` in the API's form, where a named function is not nested.

    A bare name is accepted; what is neither a word nor an object is left out, as any
    value of the wrong type is (docs/parameters.md). Raises InvalidRequest for a tool that
    is not among `tools`.
    """
    if isinstance(choice, str):
        if choice in _MODES:
            return choice
        wanted = _choice_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _flatten_choice(choice, names)
    else:
        return None
    chosen = [wanted]
    if wanted["type"] == "allowed_tools":
        chosen = wanted["tools"]
    _check_offered(chosen, tools)
    return wanted


def next_tool_choice(choice: object) -> object:
    """Return the choice after the first calls; what it forbids stays forbidden."""
    # A choice that demands a call would make the model call again and again.
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    if choice == "none":
        return choice
    return None


def _responses_tool(spec: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    """Return one tool in the API's form; raises InvalidRequest if it has no name."""
    if not isinstance(spec, Mapping) or not as_text(spec.get("type", "function")):
        raise InvalidRequest(
            "A tool is not described by a JSON object, or its type is not a text."
        )
    kind = spec.get("type", "function")
    if kind not in CALLED_BY_NAME:
        return dict(spec)
    nested = spec.get(kind)
    flat: JsonObject = nested if isinstance(nested, Mapping) else spec
    if not as_text(flat.get("name")):
        raise InvalidRequest(
            "A tool has no name. Every function or custom tool needs one."
        )
    if kind == "function":
        return _function_tool(flat, strict, strict_left)
    known = {key: flat[key] for key in _KEYS_OF_CUSTOM if key in flat}
    return {**known, **_custom_format(flat), "type": kind}


def _function_tool(function: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    own = function.get("strict")
    wanted = own if isinstance(own, bool) else strict
    parameters = as_mapping(function.get("parameters"))
    tool: Item = {"type": "function", "name": function["name"]}
    description = as_text(function.get("description"))
    if description:
        tool["description"] = description
    tool |= {key: function[key] for key in _OF_THE_API if key in function}
    strict_budget = strict_left if wanted else None
    schema, is_strict = function_parameters(parameters, strict_budget)
    # `strict` is always stated: without it the API makes the function strict, and each
    # optional property a required one (recorded, 219 of 219).
    return {**tool, "parameters": schema, "strict": is_strict}


def _custom_format(custom: JsonObject) -> Item:
    """Return the `format` of a custom tool; Chat Completions nests the grammar."""
    given = as_mapping(custom.get("format"))
    grammar = given.get("grammar")
    if isinstance(grammar, Mapping):
        given = {"type": "grammar", **grammar}
    known = {key: given[key] for key in _KEYS_OF_FORMAT if key in given}
    return {"format": known} if known else {}


def tool_identity(tool: JsonObject) -> tuple[str, object]:
    """Return what no two tools of a request have in common."""
    kind = tool.get("type")
    if kind in CALLED_BY_NAME:
        return "name", tool.get("name")
    if kind == "mcp":
        return "server", tool.get("server_label")
    return "type", kind


def _choice_by_name(choice: str, tools: Sequence[Item], names: ToolNames) -> Item:
    """Return the choice of a function, else of a hosted tool or a server."""
    sent = names.sent_name(choice)
    types = {
        tool.get("name"): tool["type"] for tool in tools if not is_hosted_tool(tool)
    }
    if sent in types:
        return {"type": types[sent], "name": sent}
    # A name that is none of a function may be that of a server, or a hosted tool's type.
    for tool in tools:
        if choice in (tool.get("type"), tool.get("server_label")):
            return {key: tool[key] for key in ("type", "server_label") if key in tool}
    return {"type": "function", "name": sent}


def _flatten_choice(choice: JsonObject, names: ToolNames) -> Item:
    """Return a choice that is an object in the flat form, with the names as sent."""
    kind = choice.get("type", "function")
    wanted: Item = dict(choice)
    if isinstance(kind, str) and isinstance(choice.get(kind), Mapping):
        wanted = dict(choice[kind])
    wanted["type"] = kind
    if kind in CALLED_BY_NAME:
        if not isinstance(wanted.get("name"), str):
            raise InvalidRequest("The tool choice names no tool.")
        wanted["name"] = names.sent_name(wanted["name"])
    if kind == "allowed_tools":
        chosen = content_parts(wanted.get("tools"))
        wanted["tools"] = [_flatten_choice(tool, names) for tool in chosen]
    return wanted


def _check_offered(chosen: Sequence[Item], tools: Sequence[Item]) -> None:
    """Raise InvalidRequest for a choice that none of the `tools` answers to."""
    offered: set[_ChoiceKey] = set()
    for tool in tools:
        key = _choice_key(tool)
        offered.add(key)
        offered.add(key._replace(label=""))  # a choice may leave it out
    for wanted in chosen:
        if _choice_key(wanted) not in offered:
            raise InvalidRequest(
                f"The tool choice asks for {tool_name(wanted)}, which this chat does not have."
            )


class _ChoiceKey(NamedTuple):
    """What identifies a tool in a choice."""

    kind: str
    label: str
    name: str


def _choice_key(tool: Item) -> _ChoiceKey:
    name = "" if is_hosted_tool(tool) else as_text(tool.get("name"))
    return _ChoiceKey(
        kind=as_text(tool.get("type")),
        label=as_text(tool.get("server_label")),
        name=name,
    )


# --------------------------------------------------------------------------------------
# openai_responses.requests.build
#
# The fields of a request, and how they are built for a model.
#
# The caller's own keys have priority over the settings. Keys that the API does not have
# are dropped, and so are parameters that the model rejects
# (docs/reference/responses-api.md, "Parameters" and "Sampling and effort").
#
# Other servers are stricter: an unknown key or `include` is an error there, a reasoning
# item or a call needs an id, and a message of the assistant must be plain text
# (docs/reference/responses-api.md, "Other servers").
# --------------------------------------------------------------------------------------


SAMPLING = {"temperature", "top_p", "top_logprobs"}
"""What reasoning models reject, or accept only with the effort `none`."""

_MAX_OUTPUT_TOKENS = 128_000
"""For models of which it is not known."""

_Positive = Annotated[int, Field(gt=0)]
_ShortText = Annotated[str, Field(max_length=64)]
_LongerText = Annotated[str, Field(max_length=512)]
_Metadata = Annotated[dict[_ShortText, _LongerText], Field(max_length=16)]
_ServiceTier = Literal[
    "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"
]


class ResponsesRequest(BaseModel):
    """The body of `POST /responses`, with the API's field names and values."""

    # JSON has no NaN and no infinity.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,  # repairs are no models
    )

    model: str
    input: SkipValidation[list[Item]]  # it may be very large
    instructions: str | None = None
    stream: bool = True
    store: bool = False  # the API's default keeps a response for 30 days or more
    background: bool | None = None
    include: list[str] | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Item] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: _Positive | None = None
    max_tool_calls: _Positive | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: _ServiceTier | None = None
    prompt_cache_key: _ShortText | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: Annotated[str, Field(max_length=128)] | None = None
    context_management: list[dict[str, Any]] | None = None
    metadata: _Metadata | None = None
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None
    repairs: tuple[Repair, ...] = ()
    """What earlier refusals showed; no field of the API."""

    def payload(self) -> dict[str, Any]:
        """Return the JSON object to send, repaired, without fields that are not set."""
        return repair_request(self._unrepaired(), self.repairs)

    def sent(self) -> SentRequest:
        """Return what is sent, with a name of each item."""
        return sent_request(self._unrepaired(), self.repairs)

    def _unrepaired(self) -> dict[str, Any]:
        """Return the fields that are set, as they are before any repair."""
        fields: dict[str, Any] = {}
        for name, value in self:
            if value is not None and name != "repairs":
                fields[name] = value
        # Names and ids of calls become what the API accepts.
        fields["input"] = fit_calls(self.input)
        return fields


_PASSED_ON = {*ANSWER_KEYS, *ACCOUNT_KEYS}
"""Keys of a caller that are sent unchanged; no others may store something, or name
something stored, at the server. `user` is deprecated."""


class Settings(NamedTuple):
    """What the administrator and the user chose; the caller's keys have priority.

    None means that nothing was chosen. `defaults` are further parameters by name.
    """

    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    stream: bool = True
    background: bool = False
    encrypted_reasoning: bool = True
    tools: Sequence[Item] = ()
    parallel_tool_calls: bool | None = None
    defaults: JsonObject = MappingProxyType({})


def build_request(
    model: ResolvedModel,
    instructions: str,
    items: Sequence[Item],
    body: JsonObject,
    settings: Settings,
) -> ResponsesRequest:
    """Return the request for a chat; raises InvalidRequest for one without a message.

    `body` holds the caller's keys, with the names of Chat Completions or of the API;
    values that no API takes are left out. The effort is the caller's, else the user's,
    else the one in the model's name.
    """
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    given, _ = read_parameters(body)
    passed_on, _ = _check_passed_on(given)
    facts = model.facts
    effort = _choose_effort(model, given, settings)
    effort_in_use = effort or facts.default_effort
    tools = [tool for tool in settings.tools if _takes_tool(effort_in_use, tool)]
    fields: dict[str, Any] = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream and given.get("enable_stream", True),
        "text": _build_text(model, given, settings),
        "tools": tools or None,
        "parallel_tool_calls": settings.parallel_tool_calls,
    }
    if settings.background:
        fields["background"] = True
        fields["store"] = True  # background mode requires it
    # An unknown model reasons if an effort is set.
    with_reasoning = False
    if facts.reasoning or effort is not None:
        fields["reasoning"] = _build_reasoning(model, effort, given, settings)
        with_reasoning = settings.encrypted_reasoning
    fields["include"] = _list_includes(tools, with_reasoning)
    fields |= {**settings.defaults, **passed_on}
    _keep_what_fits(fields, facts, effort_in_use)
    return ResponsesRequest(**fields)


def _keep_what_fits(
    fields: dict[str, Any], facts: ModelFacts, effort: str | None
) -> None:
    """Remove the sampling that the model rejects, and limit the length of the answer."""
    # "logprobs are not supported with reasoning models." (recorded, 630)
    if not _takes_sampling(facts.sampling, effort):
        for name in SAMPLING:
            fields.pop(name, None)
    length = fields.get("max_output_tokens")
    if length is not None:
        # Below 16, or above the model's maximum, the API refuses the request.
        longest = facts.max_output_tokens or _MAX_OUTPUT_TOKENS
        fields["max_output_tokens"] = clamp_number(length, 16, longest, longest)


def _choose_effort(
    model: ResolvedModel, given: JsonObject, settings: Settings
) -> str | None:
    """Return the effort that is asked for, None if the model does not take it.

    `max` means the highest of the model.
    """
    asked = given["reasoning"].get("effort") or settings.effort or model.effort
    if asked == "max" and model.facts.efforts:
        return model.facts.efforts[-1]
    return asked if asked and model.takes_effort(asked) else None


def _check_passed_on(given: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys that the API takes, and what is wrong with others."""
    kept: dict[str, Any] = {}
    for name, value in given.items():
        if name in _PASSED_ON:
            kept[name] = with_known_keys(name, value)
    try:
        ResponsesRequest(model="", input=[], **kept)
    except ValidationError as error:
        reasons = {str(row["loc"][0]): row["msg"] for row in error.errors()}
        complaints: list[str] = []
        for name, reason in reasons.items():
            del kept[name]
            complaints.append(str(parameter_error(name, reason)))
        return kept, complaints
    return kept, []


def _takes_tool(effort: str | None, tool: Item) -> bool:
    return effort != "minimal" or not tool_kind(tool).refused_at_minimal


def _takes_sampling(sampling: str, effort: str | None) -> bool:
    return sampling == "always" or (sampling == "with_none" and effort == "none")


def _list_includes(tools: Sequence[Item], with_reasoning: bool) -> list[str] | None:
    """Return what the response is to hold beside its output; None for nothing."""
    wanted: list[str] = []
    if with_reasoning:
        wanted.append("reasoning.encrypted_content")
    for tool in tools:
        name = tool_kind(tool).include
        if name:
            wanted.append(name)
    return wanted or None


def _build_reasoning(
    model: ResolvedModel, effort: str | None, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    """Return the `reasoning` of a request; the caller's own keys have priority."""
    facts = model.facts
    chosen: dict[str, str] = {}
    if effort:
        chosen["effort"] = effort
    # An effort of `none` has no reasoning to sum up.
    thinks = (effort or facts.default_effort) != "none"
    if settings.summary and facts.summary and thinks:
        chosen["summary"] = settings.summary
    # `auto` means `all_turns` on gpt-5.6 and gpt-6-astra, and the current turn before
    # (recorded).
    if facts.all_turns and settings.encrypted_reasoning:
        chosen["context"] = "all_turns"
    if model.pro:
        chosen["mode"] = "pro"
    own = with_known_keys("reasoning", given["reasoning"])
    own.pop("effort", None)
    return {**chosen, **own} or None


def _build_text(
    model: ResolvedModel, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    """Return the `text` of a request; only a model that has a verbosity gets one."""
    own: dict[str, Any] = with_known_keys("text", given["text"])
    verbosity = own.pop("verbosity", None) or settings.verbosity
    if verbosity and model.facts.verbosity:
        own["verbosity"] = verbosity
    return own or None


_READ_OTHERWISE = (
    "messages",
    "model",
    "stream",
    "enable_stream",
    "stream_options",
    "tools",
    "extra_tools",
)
"""Keys that are not parameters, or that are sent under other names."""

_MAX_PARAMETER_NAME = 40


def unsent_parameters(
    asked: JsonObject, request: ResponsesRequest
) -> tuple[list[str], list[str]]:
    """Return the caller's parameters that are not sent, and complaints about values.

    The former are names like `reasoning.effort`, the latter a sentence for each value
    that no API takes.
    """
    given, errors = read_parameters(asked)
    sent = _sent_settings(request)
    passed_on, complaints = _check_passed_on(given)
    asked_length = passed_on.get("max_output_tokens")
    sent_length = request.max_output_tokens
    if asked_length and str(asked_length) != str(sent_length):
        error = parameter_error("max_output_tokens", f"{sent_length} is sent")
        complaints.append(str(error))
    names: list[str] = []
    for key in ("reasoning", "text"):
        for inner in given.pop(key):
            if inner not in sent.get(key, {}):
                names.append(f"{key}.{inner}")
    names += [key for key in given if key not in sent and key not in _READ_OTHERWISE]
    shown_names = sorted(name[:_MAX_PARAMETER_NAME] for name in names)
    return shown_names, errors + complaints


def is_api_parameter(name: str) -> bool:
    """Say whether the API has a parameter; `name` may be that of a field in one."""
    key, _, field = name.partition(".")
    if key not in ResponsesRequest.model_fields or key == "repairs":
        return False
    return not field or bool(with_known_keys(key, {field: True}))


def _sent_settings(request: ResponsesRequest) -> dict[str, Any]:
    """Return the fields of a request, with what its items change of them.

    The rest of the input says nothing of settings, and takes long to prepare.
    """
    appended = [item for item in request.input if item_type(item) in APPENDED]
    without_history = request.model_copy(update={"input": appended})
    return lower_payload(without_history.payload(), APPENDED)


_OPENAI_ONLY = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt_cache_",
    "safety_identifier",
)
"""How the names begin."""

_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids begin that other servers ask for."""


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` for other servers: without OpenAI's own keys, items with ids."""
    kept: dict[str, Any] = {}
    for name, value in payload.items():
        if not name.startswith(_OPENAI_ONLY):
            kept[name] = value
    kept["input"] = [_strict_item(item) for item in payload["input"]]
    return kept


def _strict_item(item: Item) -> Item:
    """Return an item for other servers: an answer as plain text, others with an id."""
    if item_type(item) == "message" and item.get("role") == "assistant":
        text = message_text(item)
        return {"type": "message", "role": "assistant", "content": text}
    prefix = _ID_PREFIXES.get(item_type(item))
    if prefix is None:
        return item
    return {"id": f"{prefix}_{json_digest(item)}", **item}


# --------------------------------------------------------------------------------------
# openai_responses.transport.delta_runs
#
# Runs of deltas, joined to one event before they are parsed.
#
# A server that is faster than its reader sends hundreds of deltas in one chunk. Each
# repeats 250 bytes of JSON around a word:
#
#     event: response.output_text.delta
#     data: {"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_1",
#     "output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"xIR"}
#
# (without the line break in its data). A run is such an event and those directly behind
# it that are the same, byte for byte, except for the values of `delta`, `sequence_number`
# and `obfuscation`. All of them add to the same text, so the run becomes its first event
# with the texts of all. The parser reads that one with all its checks, and what it says of
# the first is true of the others. This takes a third of the time of parsing each.
#
# What might mean anything else stays as it is, for the parser: an event with an object
# inside (the `logprobs` of those who ask for some), with a backslash outside of the three
# values, with spaces between the tokens, with two types or two deltas, of another type
# than its name, or with `\u` in a text: halves of a character in two deltas would become
# one.
# --------------------------------------------------------------------------------------


# Each `*+`, `++` and `{…}+` is possessive: it gives back nothing that it matched, so that
# no text of a server makes a search slow.

_TEXT_PIECE = r'[^"\\\x00-\x1f]*+'
_TEXT_INSIDE = rf'{_TEXT_PIECE}(?:\\["\\/bfnrt]{_TEXT_PIECE})*+'
"""Between the quotation marks of a text in JSON."""
_WHOLE_NUMBER = r'(?<!"delta":)(?:0|[1-9][0-9]{0,17}+)'
"""Of up to 18 digits; not of a delta, which is a text."""

_VARYING = r'"(?:delta|sequence_number|obfuscation)":'
"""The names of what differs in a run."""
_VALUE = rf'(?:"{_TEXT_INSIDE}"|{_WHOLE_NUMBER})'
_SHARED = rf'[^"\n\\{{]*+(?:(?!{_VARYING})"[^"\n\\{{]*+)*+'
"""What all events of a run repeat, up to the next name of what differs."""

_FIRST_EVENT = (
    # Where the pattern begins with plain letters, `re` finds an event fast. It has to
    # begin a line.
    r"event:(?<!.event:) (?P<name>response\.[a-z_.]++)\n"
    rf"data: \{{(?P<begin>{_SHARED}{_VARYING}){_VALUE}"
    rf"(?:(?P<second>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?:(?P<third>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?P<end>{_SHARED}\n\n)"
)
"""An event with one to three of the names of `_VARYING`; the groups hold the rest."""
_NEXT_EVENT = (
    # `(?(second)…)` matches only if the first event has a second value.
    r"event: (?P=name)\n"
    rf"data: \{{(?P=begin){_VALUE}"
    rf"(?(second)(?P=second){_VALUE})"
    rf"(?(third)(?P=third){_VALUE})"
    r"(?P=end)"
)
_DELTA_RUN = re.compile(rf"(?P<first>{_FIRST_EVENT})(?:{_NEXT_EVENT})++")
_DELTA = re.compile(rf'"delta":"({_TEXT_INSIDE})"')


def join_delta_runs(text: str) -> str:
    """Return the text of whole events, with each run of deltas joined to one event."""
    return _DELTA_RUN.sub(_join_run, text)


def _join_run(run: re.Match[str]) -> str:
    """Return the first event of a run with the texts of all; else the run as it is."""
    first = run["first"]
    has_one_text = first.count('"delta":') == 1
    has_one_type = first.count('"type":') == 1 and f'"type":"{run["name"]}"' in first
    if not has_one_text or not has_one_type:
        return run[0]
    texts = _DELTA.findall(run[0])
    joined = "".join(texts)
    return first.replace(f'"delta":"{texts[0]}"', f'"delta":"{joined}"')


# --------------------------------------------------------------------------------------
# openai_responses.transport.stream
#
# The stream of a response: bytes in, typed events out.
#
# Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
# stream". A line can exceed a megabyte, which is too long for aiohttp's own line reader
# (docs/reference/responses-api.md, "Stream events").
#
# The `type` alone identifies an event. Those that are not used here only show that the
# connection is alive. Gateways send errors that have no type, and other events.
# --------------------------------------------------------------------------------------


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline."""

    event: str
    data: str


_LINE_BYTES = 64
"""What a line of an event takes in memory beside its text."""
_BLANK_LINE = b"\n\n"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_USUAL_EVENT = re.compile(r"^event: ([!-~]+)\ndata: (.*)\n\n", re.MULTILINE)
"""An event as OpenAI and most other servers write it."""
_USUAL_LINES = 3
"""Of such an event. If a text has no others, nothing stands between the events."""


class EventStreamDecoder:
    """Turns chunks of any size into events.

    The bytes of an unfinished line are copied once, when the line ends, so the work is
    linear in the length of the stream.
    """

    def __init__(
        self, most_bytes: int = MAX_JSON_BYTES, *, joins_deltas: bool = False
    ) -> None:
        """Start before the first byte; an event can have `most_bytes`.

        With `joins_deltas`, deltas of one text that come together may be one event, for
        readers who need the texts alone.
        """
        self._most_bytes = most_bytes
        self._joins_deltas = joins_deltas
        self._partial_line = bytearray()
        """The beginning of a line whose end has not come."""
        self._is_first_line = True
        """Whether no line has ended yet: the first may begin with a byte-order mark."""
        self._after_cr = False
        """Whether the last chunk ended with CR: an LF then belongs to the same line."""
        self._event = b""
        """The name of the event whose lines are being read."""
        self._lines: list[bytes] = []
        """The data of that event so far."""
        self._size = 0
        """About what its lines take in memory, other fields and comments included."""

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes; it may begin inside of a CRLF.

        Raises AnswerTooLarge for the event after those that were returned.
        """
        if len(self._partial_line) + self._size > self._most_bytes:
            raise AnswerTooLarge
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._partial_line.extend(chunk)
            return []
        return self._take(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event whose final blank line is missing at the end of the stream.

        The standard drops it, but without its terminal event a finished answer would
        count as cut.
        """
        return self._take(_BLANK_LINE)

    def _take(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end in `chunk`.

        Those that lie in it whole are found at once; the event at each of its ends is
        read line by line.
        """
        text = b"".join((self._partial_line, chunk))
        self._partial_line = bytearray()
        if self._is_first_line:
            self._is_first_line = False
            text = text.removeprefix(_BYTE_ORDER_MARK)
        if b"\r" in text:
            return self._take_lines(text)
        events: list[ServerSentEvent] = []
        if self._event or self._lines:
            first, blank_line, text = text.partition(_BLANK_LINE)
            events += self._take_lines(first + blank_line)
        whole, blank_line, last = text.rpartition(_BLANK_LINE)
        events += self._take_whole(whole + blank_line)
        events += self._take_lines(last)
        return events

    def _take_whole(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events of a text that begins and ends between two of them.

        If all of them are written as usual, no line needs a look of its own: one search
        takes a third of the time. Each is made as a plain tuple, in half the time.
        """
        decoded = text.decode("utf-8", "replace")
        if self._joins_deltas:
            decoded = join_delta_runs(decoded)
        rows = _USUAL_EVENT.findall(decoded)
        if len(rows) * _USUAL_LINES < decoded.count("\n"):
            return self._take_lines(text)
        return [tuple.__new__(ServerSentEvent, row) for row in rows]

    def _take_lines(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events that end; id, retry and unknown fields are not used."""
        # Bytes are split at CR, LF and CRLF alone, as the standard wants it; text would
        # be split at U+2028 as well, which may stand inside of JSON.
        lines = text.splitlines()
        self._size += len(text) + _LINE_BYTES * len(lines)
        # A line may end with CR, LF or both; the LF may come with the next chunk.
        if text.endswith(b"\r"):
            self._after_cr = True
        elif lines and not text.endswith(b"\n"):
            self._partial_line.extend(lines.pop())
            self._size -= len(self._partial_line)
        events = []
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            # A blank line ends an event; without data there is none to dispatch. A line
            # that begins with a colon is a comment: its field has no name.
            elif not line:
                if self._lines:
                    events.append(self._event_of_lines())
                self._event = b""
                self._lines = []
                self._size = 0
        return events

    def _event_of_lines(self) -> ServerSentEvent:
        """Return the event whose lines were read."""
        name = self._event.decode("utf-8", "replace")
        data = b"\n".join(self._lines).decode("utf-8", "replace")
        return ServerSentEvent(name, data)


NO_CARD: JsonObject = MappingProxyType({})


class TextDelta(NamedTuple):
    """An addition to a text that grows.

    `kind` is the "text" or "refusal" of a message, the "summary" or raw "reasoning" of
    a reasoning item, the "arguments" of a call, or the "code" that the API runs. `part`
    is the content or summary index, 0 for arguments and code.
    """

    output_index: int
    kind: str
    part: int
    text: str
    item_id: str = ""


class TextDone(TextDelta):
    """A text that has ended: it replaces the deltas of the same kind and place."""


class AnnotationAdded(NamedTuple):
    """What a place in a text refers to."""

    output_index: int
    annotation: Item
    item_id: str = ""


class PartialImage(NamedTuple):
    """An image as far as it is generated.

    `image` is base64; `form` is its format, if the server tells it.
    """

    output_index: int
    image: str
    form: str
    item_id: str = ""


class ItemAdded(NamedTuple):
    """An item began; its content is still missing."""

    output_index: int
    item: Item


class ItemDone(NamedTuple):
    """The item as it counts, byte for byte.

    Its encrypted content is whole only here, not in `response.output_item.added` (types
    of openai-python 3.54.0, `response_reasoning_item_param.py`).

    `card` holds what a host shows beside it (`files`, `links`, `notes`).
    """

    output_index: int
    item: Item
    card: JsonObject = NO_CARD
    shown: str = ""
    """The text of a message as a host shows it."""


class FinalResponse(NamedTuple):
    """The end of a response, with its final snapshot.

    `status` is "completed", "incomplete" or "failed"; also "cancelled" if the response
    itself was requested.
    """

    status: str
    response: JsonObject


class StreamError(NamedTuple):
    """The request failed; no response object comes with it."""

    error: ApiError


ItemEvent = ItemAdded | TextDelta | AnnotationAdded | PartialImage | ItemDone
"""What happens to one output item.

On the wire `item_id` and `output_index` name the item, or one of them: "" and -1 stand
for none. Behind `loop.response` the index alone does, and counts over the whole run.
"""

StreamEvent = ItemEvent | FinalResponse | StreamError | None
"""None stands for all other events."""


def join_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events`, with neighboring deltas of one text joined to one delta.

    Of each delta only the text is kept, so a batch of thousands takes little memory.
    """
    joined: list[StreamEvent] = []
    for identity, neighbors in groupby(events, _text_identity):
        if identity is None:
            joined += neighbors
            continue
        index, kind, part, item_id = identity
        text = "".join(
            [delta.text for delta in neighbors if isinstance(delta, TextDelta)]
        )
        joined.append(TextDelta(index, kind, part, text, item_id))
    return joined


def _text_identity(event: StreamEvent) -> tuple[int, str, int, str] | None:
    """Return the text that a delta adds to; None for any other event."""
    if type(event) is not TextDelta:  # a TextDone is one, too
        return None
    return event.output_index, event.kind, event.part, event.item_id


_SCAN_JSON = vars(json.JSONDecoder())["scan_once"]
"""What `raw_decode` calls; without its frame it is a tenth faster."""

END_OF_STREAM = "[DONE]"
"""Of Chat Completions; no recorded stream of OpenAI has it."""
_JSON_SPACE = " \t\n\r"
"""RFC 8259, section 2."""

_Reader = Callable[[JsonObject], StreamEvent]


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent if it is not a JSON object.

    Other servers end their streams with `[DONE]`. Thousands of brackets are a
    RecursionError, no value a StopIteration. Raises UnreadableAnswer for a chunk of
    Chat Completions.
    """
    if event.data == END_OF_STREAM:
        return None
    text = event.data.strip(_JSON_SPACE)
    try:
        wire, end = _SCAN_JSON(text, 0)
        if end != len(text):
            raise ValueError
        if _may_be_deep(text) and is_too_deep(wire):
            raise ValueError
        read = _READERS.get(wire.get("type") or event.event)
        return read(wire) if read else _read_unknown(wire, event.event)
    except _ODD_EVENT:
        if event.event == "error" and text:  # a proxy's own words
            return StreamError(read_api_error(text))
        raise MalformedEvent from None


def _read_unknown(wire: JsonObject, name: str) -> StreamEvent:
    """Return the error that an event of no known type is, None for any other event.

    The API's own events may have an `error`, too, as that of an MCP call.
    """
    if as_text(wire.get("type")).startswith("response."):
        return None
    error = find_error(wire, name)
    if error is not None:
        return StreamError(error)
    refuse_completion(wire)
    return None


def find_error(wire: JsonObject, name: str = "") -> ApiError | None:
    """Return the error that a body or an event of this name is, None if it is none.

    The flat form of the event is documented (types of openai-python 3.54.0), the nested
    one comes (openai/openai-dotnet 881, Effect-TS/effect 7262). LiteLLM, OpenRouter and
    other gateways send `{"error": {...}}` without a type, vLLM `{"object": "error",
    "message": ...}`.
    """
    if not wire.get("error") and "error" not in (
        name,
        wire.get("type"),
        wire.get("object"),
    ):
        return None
    # In the flat form `type` is only "error".
    return read_api_error(
        {key: value for key, value in wire.items() if (key, value) != ("type", "error")}
    )


def refuse_completion(wire: JsonObject) -> None:
    """Raise UnreadableAnswer for an answer, or a part of one, of Chat Completions."""
    if as_text(wire.get("object")).startswith("chat.completion"):
        raise UnreadableAnswer(CHAT_COMPLETIONS.sentence, CHAT_COMPLETIONS.fault)


def describe_unreadable(event: ServerSentEvent) -> str:
    """Return what a malformed event is, without a word of it."""
    if not event.data.strip():
        return "empty"
    try:
        wire = load_json(event.data)
    except ValueError:
        return "no JSON"
    return "with odd fields" if isinstance(wire, dict) else "no object"


def _may_be_deep(text: str) -> bool:
    """Say whether a JSON text has brackets enough to be too deep.

    A level takes two characters at least, so a delta needs no look at its depth.
    """
    if len(text) <= 2 * MAX_JSON_DEPTH:
        return False
    return text.count("[") + text.count("{") > MAX_JSON_DEPTH


_ODD_EVENT = (
    StopIteration,
    ValueError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)
"""Errors of text that is not JSON, and of JSON that is not an event."""


_Kind = TypeVar("_Kind")


def _check_type(value: object, kind: type[_Kind]) -> _Kind:
    """Return a value of a type; raises TypeError for any other."""
    if not isinstance(value, kind):
        raise TypeError
    return value


_NO_INDEX = -1


def _read_index(wire: JsonObject) -> int:
    index = wire.get("output_index")
    if index is None:
        return _NO_INDEX
    return _check_type(index, int)


def _text_reader(event: type[TextDelta], kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a text in `field`, whose place is the field `part`.

    The tuple is made in half the time of the named tuple's own `__new__`.
    """
    new = partial(tuple.__new__, event)

    def read(wire: JsonObject) -> StreamEvent:
        text = wire[field]
        part_index = wire.get(part, 0)
        item_id = wire.get("item_id")
        index = wire.get("output_index")
        if index is None:
            index = _NO_INDEX
        if not isinstance(text, str):
            if text is None:
                return None  # the item, or the deltas, have the text
            if kind != "arguments":
                raise TypeError
            text = arguments_text(text)
        if not isinstance(part_index, int) or not isinstance(index, int):
            raise TypeError
        if not isinstance(item_id, str):
            item_id = ""
        return new((index, kind, part_index, text, item_id))

    return read


def _read_annotation(wire: JsonObject) -> StreamEvent:
    """Return a citation; the type allows none, the final item has all of them."""
    annotation = wire.get("annotation")
    if annotation is None:
        return None
    item_id = as_text(wire.get("item_id"))
    return AnnotationAdded(_read_index(wire), _check_type(annotation, dict), item_id)


def _read_partial_image(wire: JsonObject) -> StreamEvent:
    return PartialImage(
        _read_index(wire),
        _check_type(wire["partial_image_b64"], str),
        str(wire.get("output_format") or ""),
        as_text(wire.get("item_id")),
    )


def _read_item_added(wire: JsonObject) -> StreamEvent:
    return ItemAdded(_read_index(wire), _check_type(wire["item"], dict))


def _read_item_done(wire: JsonObject) -> StreamEvent:
    return ItemDone(_read_index(wire), _check_type(wire["item"], dict))


def _read_final(status: str, wire: JsonObject) -> StreamEvent:
    """Return the end of a response; some gateways leave the response itself out."""
    return FinalResponse(status, as_mapping(wire.get("response")))


class _TextEvent(NamedTuple):
    """A text that grows, in the words of the wire."""

    name: str
    kind: str
    part: str
    """The field of the text's place."""
    whole: str
    """The field of the whole text, in the event that ends it."""


_PART_EVENTS = (
    _TextEvent("output_text", "text", "content_index", "text"),
    _TextEvent("refusal", "refusal", "content_index", "refusal"),
    _TextEvent("reasoning_summary_text", "summary", "summary_index", "text"),
    _TextEvent("reasoning_text", "reasoning", "content_index", "text"),
)
"""Texts of which an item has a list."""


def _text_events() -> Iterator[_TextEvent]:
    """Yield all texts that grow.

    The events of the one text of a call are named for its item and its field, as
    `function_call_arguments`; they name no place.
    """
    yield from _PART_EVENTS
    for name, kind in ITEM_KINDS.items():
        if kind.text:
            text_kind, field = kind.text
            yield _TextEvent(f"{name}_{field}", text_kind, "part", field)


def _text_readers(form: str) -> dict[str, _Reader]:
    """Return the readers of all texts that grow, by the type of their events.

    `form` says of which events: "delta" or "done".
    """
    readers: dict[str, _Reader] = {}
    for name, kind, part, whole in _text_events():
        if form == "delta":
            reader = _text_reader(TextDelta, kind, part, "delta")
        else:
            reader = _text_reader(TextDone, kind, part, whole)
        readers[f"response.{name}.{form}"] = reader
    return readers


_READERS: Mapping[str, _Reader] = {
    **_text_readers("delta"),
    **_text_readers("done"),
    "response.output_text.annotation.added": _read_annotation,
    "response.image_generation_call.partial_image": _read_partial_image,
    "response.output_item.added": _read_item_added,
    "response.output_item.done": _read_item_done,
    "response.completed": partial(_read_final, "completed"),
    "response.incomplete": partial(_read_final, "incomplete"),
    "response.failed": partial(_read_final, "failed"),
}


# --------------------------------------------------------------------------------------
# openai_responses.loop.events
#
# What a run reports to those who show it or record it.
#
# The events of output items are those of the stream, renumbered over the whole run.
# --------------------------------------------------------------------------------------


NO_THOUGHT: Item = {"type": "reasoning", "summary": []}
"""Ends the thought of an attempt that failed."""


class ToolOutput(NamedTuple):
    """A call got its output; `item` is the input item that gives it to the model.

    `card` is that of the tool's result.
    """

    output_index: int
    item: Item
    failed: bool = False
    card: JsonObject = NO_CARD


class ResponseDone(NamedTuple):
    """One response ended."""

    status: str


class Status(NamedTuple):
    """A status line for the person who waits."""

    sentence: str
    trial: Trial | None = None
    """The repair that is tried after a refusal."""
    reason: str = ""
    """For the log."""
    is_retry: bool = False
    """Whether the same request failed and is sent again."""
    is_note: bool = True
    """Whether the line is worth reading later: the last line counts those."""


class Trace(NamedTuple):
    """What the log needs to know about the last response."""

    request_id: str = ""
    """OpenAI's own."""
    model: str = ""
    """The one that answered."""
    status: int | None = None
    """That of HTTP."""
    error: ApiError = ApiError()
    removed: Mapping[str, int] = MappingProxyType({})
    """How many items the API took out of the input, by its reasons."""
    skipped: Mapping[str, int] = MappingProxyType({})
    """How many events of the run could not be read, by what they are."""
    subject: str = ""
    """The item or tool that the error names, with its place."""
    response_id: str = ""
    """For later requests, which are to be compared with this response."""
    cache: JsonObject = MappingProxyType({})
    """The server's diagnosis of the prompt cache, if it was asked for one."""


class HiddenMessage(NamedTuple):
    """A message of the model that is sent again but shown to nobody."""

    output_index: int
    item: Item


class RunWork(NamedTuple):
    """What a run took that people see as several rounds.

    `seconds` are those of the model and of tools, without the time of people.
    """

    rounds: int
    tool_calls: int
    seconds: float


SpentLimit = Literal["rounds", "calls", "seconds", "tokens"]
"""The limit of a run that is reached."""


class RunDone(NamedTuple):
    """The last event of every run, however it ended."""

    ending: Ending
    usage: Usage | None = None
    """The sum of all responses."""
    last_usage: Usage | None = None
    """That of the last response."""
    output: tuple[Item, ...] = ()
    """The finished items of the whole run, outputs of calls among them."""
    trace: Trace = Trace()
    cost: float | None = None
    """In US dollars, None if unknown."""
    usages: tuple[Usage, ...] = ()
    """Those of all responses."""
    usage_note: str = ""
    """What explains the tokens."""
    window_share: int = 0
    """How full the model's context window is, in percent."""
    work: RunWork | None = None
    """Of an agent."""
    metadata: JsonObject = MappingProxyType({})
    """What a host stores with the last line."""
    limit: SpentLimit | None = None
    """What kept the model from calling more tools."""


class ModelAnswer(NamedTuple):
    """One answer of a model, the last thing that a provider yields."""

    ending: Ending
    request: ResponsesRequest
    """The one that was answered, with its repairs."""
    items: tuple[tuple[int, Item], ...] = ()
    """The finished ones, each with its index in the run."""
    usages: tuple[Usage, ...] = ()
    """Those of all attempts."""
    last_usage: Usage | None = None
    """That of the last attempt."""
    trace: Trace = Trace()
    has_shown: bool = True
    """Whether there is something to see."""

    @property
    def output(self) -> list[Item]:
        """The finished items."""
        return [item for _, item in self.items]


RunEvent = ItemEvent | ToolOutput | HiddenMessage | ResponseDone | Status | RunDone
RunEvents = AsyncGenerator[RunEvent, None]


# --------------------------------------------------------------------------------------
# openai_responses.endpoint
#
# Where requests go: address, headers, certificates and proxy.
# --------------------------------------------------------------------------------------


DEFAULT_BASE_URL = "https://api.openai.com/v1"

Compatibility = Literal["auto", "openai", "strict"]
"""`openai`: the server takes whatever OpenAI takes. `strict`: it takes only what every
server of the Responses API takes. `auto`: its address says which."""

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key of a server; an address can contain a password.

    An empty `ca_bundle` (a file) or `proxy` means what the system has set. A `token` is
    sent instead of the key, always as a bearer's; it is no part of the account.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    organization: str = ""
    project: str = ""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify_ssl: bool = True
    ca_bundle: str = ""
    proxy: str = field(default="", repr=False)
    compatibility: Compatibility = "auto"
    token: str = field(default="", repr=False)

    def url(self, path: str) -> str:
        """Return the address of `path`, with Azure's `api-version`.

        Raises InvalidRequest.
        """
        address = _normalize_base_url(self.base_url) + path
        query = urlsplit(self.base_url.strip()).query
        if not query:
            return address
        separator = "&" if "?" in path else "?"
        return f"{address}{separator}{query}"

    @property
    def host(self) -> str:
        """The server's name; raises the same error as `url`."""
        return urlsplit(_normalize_base_url(self.base_url)).hostname or ""

    def name_server(self, sentence: str) -> str:
        """Return `sentence` about OpenAI as one about this server."""
        # First, because `host` raises for an invalid address, and the sentence about
        # such an address has to pass.
        if "OpenAI" not in sentence:
            return sentence
        if self._has_openai_host:
            return sentence
        return sentence.replace("OpenAI", self.host)

    @property
    def _has_openai_host(self) -> bool:
        return f".{self.host}".endswith(".openai.com")

    @property
    def is_strict(self) -> bool:
        """Whether requests have a form that every server accepts."""
        return self.compatibility == "strict"

    @property
    def is_openai(self) -> bool:
        """Whether it takes OpenAI's own kinds of input."""
        if self._has_openai_host and not self.is_strict:
            return True
        return self.compatibility == "openai" and not self.is_azure

    @property
    def has_own_services(self) -> bool:
        """Whether it has web search, containers and files, as OpenAI and Azure do."""
        return self.is_openai or (self.is_azure and not self.is_strict)

    @property
    def is_gateway(self) -> bool:
        """Whether it is neither OpenAI's nor Azure's."""
        return not (self._has_openai_host or self.is_azure)

    @property
    def is_azure(self) -> bool:
        """Whether it is one of Azure."""
        return self.host.endswith(_AZURE_HOSTS)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no text that the server sends back."""
        headers = self.extra_headers.values()
        return connection_secrets(headers, self.proxy, self.api_key, self.token)

    def account(self) -> str:
        """Return a name of the account, without the key."""
        identity = f"{self.base_url}\n{self.organization}\n{self.api_key}"
        return hex_digest(identity)

    def reasoning_scope_id(self) -> str:
        """Return an id of those who can read encrypted reasoning, without the key.

        Keys of one organization can read each other's.
        """
        identity = f"{self.host}\n{self.organization or self.api_key.strip()}"
        return hex_digest(identity)[:16]

    def headers(self) -> dict[str, str]:
        """Return the headers of a request; `extra_headers` have priority."""
        key = self.api_key.strip()
        headers: dict[str, str] = {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.is_azure:
            headers["api-key"] = key
        else:
            headers["Authorization"] = f"Bearer {key}"
        headers["Content-Type"] = "application/json"
        if self.organization:
            headers["OpenAI-Organization"] = self.organization
        if self.project:
            headers["OpenAI-Project"] = self.project
        replaced = {name.lower() for name in self.extra_headers}
        for name in list(headers):
            if name.lower() in replaced:
                del headers[name]
        return {**headers, **self.extra_headers}


@lru_cache(maxsize=32)  # an answer asks for the server's name about ten times
def _normalize_base_url(text: str) -> str:
    """Return an address that paths like `/responses` can be added to.

    Administrators leave out the path, or write a slash behind it, or the whole address
    of the Responses API. Raises InvalidSetting.
    """
    parts = url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server is not an http or https address.",
        )
    if "@" in parts.netloc:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server contains a user name or a password.",
        )
    stated_path = parts.path.rstrip("/")
    path = stated_path.removesuffix("/responses").rstrip("/")
    if not stated_path:
        is_azure = str(parts.hostname).endswith(_AZURE_HOSTS)
        path = "/openai/v1" if is_azure else "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def connection_secrets(
    headers: Iterable[str], proxy: str, *keys: str
) -> tuple[str, ...]:
    """Return the texts that must be in no line of a log."""
    secrets = [*keys, proxy]
    parts = url_parts(proxy.strip())
    if parts and parts.password:
        secrets.append(unquote(parts.password))
    for value in headers:
        secrets += header_secrets(value)
    return tuple(secret for secret in secrets if secret.strip())


def url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else.

    Brackets without an address and a port that is no number are a ValueError.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return None
    return parts


def proxy_for(endpoint: Endpoint, url: str) -> str | None:
    """Return the proxy on the way to `url`, or None; its scheme may be left out."""
    stated = endpoint.proxy.strip()
    proxy = stated or _environment_proxy(url)
    if not proxy:
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is not None:
        return address
    if stated:
        raise InvalidSetting("proxy", "The proxy is not an http or https address.")
    raise InvalidRequest(
        "The proxy that this server's environment names is not an http or https "
        "address. An administrator has to correct the environment."
    )


def _environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`.

    Each call reads the whole environment. If it names no proxy, one call is enough.
    """
    proxies = getproxies()
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    return proxy


# --------------------------------------------------------------------------------------
# openai_responses.clock
#
# Time and chance: what a test has to replace.
# --------------------------------------------------------------------------------------


def unix_seconds() -> int:
    """Return the seconds since 1970, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that never goes back, for measuring durations."""
    return time.monotonic()


def random_fraction() -> float:
    """Return a number from 0 to 1, to spread waits."""
    return random.random()


def utc_today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()


# --------------------------------------------------------------------------------------
# openai_responses.loop.growing_parts
#
# The texts of one output item while they grow, part by part.
#
# A part is named by its kind and its `content_index` or `summary_index`. Some servers
# number parts in another way than the finished item does: Bedrock and vLLM's gpt-oss send
# `content_index` 1 for the text that ends at `content[0]` (recordings; vllm 45742), older
# vLLM gives each delta a number of its own (vllm 35184). So a part whose number the
# finished item does not have is matched by its order and by its text.
# --------------------------------------------------------------------------------------


Rest = tuple[TextPlace, str]
"""A part, and the text of it that no delta brought."""


class _Match(NamedTuple):
    """Parts whose deltas begin a text."""

    parts: list[TextPlace]
    shown: int
    """How many characters of the text they account for."""
    start: int = 0
    """Where the last of them begins."""
    is_longer: bool = False
    """Whether the last of them goes on after the text."""


class GrowingParts:
    """What the deltas of one item have brought so far."""

    def __init__(self, texts: Iterable[Rest] = ()) -> None:
        """Start with the texts that have ended before, if there are any."""
        self._deltas: dict[TextPlace, list[str]] = {
            part: [text] for part, text in texts if text
        }
        self._unended: dict[str, dict[TextPlace, None]] = defaultdict(dict)
        """The parts of each kind whose end has not come, in their order."""

    @property
    def has_text(self) -> bool:
        """Whether anything has come."""
        return any(any(deltas) for deltas in self._deltas.values())

    def grow(self, part: TextPlace, text: str) -> None:
        """Take one delta."""
        deltas = self._deltas.get(part)
        if deltas is None:
            self._deltas[part] = [text]
            self._unended[part[0]][part] = None
        else:
            deltas.append(text)

    def end_part(self, part: TextPlace, text: str) -> list[Rest]:
        """Take the whole text of one part; return what is still to be shown of it."""
        unended = self._unended[part[0]]
        own = [part] if part in self._deltas else []
        had_deltas = bool(own or unended)
        match = self._match(own, text)
        if match.shown < len(text):
            in_order = self._match(unended, text)
            if in_order.shown > match.shown:
                match = in_order
        unended.pop(part, None)
        for other in match.parts:
            unended.pop(other, None)
        if match.is_longer:
            return []
        for other in match.parts:
            del self._deltas[other]
        self._deltas[part] = [text]
        return self._rest(part, text, match, had_deltas=had_deltas)

    def end_item(
        self, texts: Sequence[Rest]
    ) -> tuple[list[Rest], dict[TextPlace, str]]:
        """Take all parts of the finished item.

        Returns what is still to be shown, and the whole texts: those of the item, longer
        where more came, and those that only deltas brought.
        """
        numbered = {part for part, _ in texts}
        strays: dict[str, deque[TextPlace]] = defaultdict(deque)
        for part in self._deltas:
            if part not in numbered:
                strays[part[0]].append(part)
        rests: list[Rest] = []
        whole: dict[TextPlace, str] = {}
        for part, text in texts:
            match, had_deltas = self._end_numbered(part, text, strays[part[0]])
            whole[part] = text
            if match.is_longer:
                last = "".join(self._deltas[match.parts[-1]])
                whole[part] = text[: match.start] + last
            rests += self._rest(part, text, match, had_deltas=had_deltas)
        # Some servers end a thought as another kind of text than it grew.
        own_texts = {"", *whole.values()}
        for part in chain.from_iterable(strays.values()):
            text = "".join(self._deltas[part])
            if text not in own_texts:
                whole[part] = text
        return rests, whole

    def _end_numbered(
        self, part: TextPlace, text: str, strays: deque[TextPlace]
    ) -> tuple[_Match, bool]:
        """Return what came of one part of the finished item, and whether anything did.

        `strays` are parts of its kind whose numbers the item does not have, in their
        order. Those that this text accounts for are removed.
        """
        own = [part] if part in self._deltas else []
        had_deltas = bool(own or strays)
        match = self._match(chain(own, strays), text)
        for matched_part in match.parts:
            if matched_part != part:
                strays.popleft()  # they match in their order
        if strays and not own and not match.parts:
            strays.popleft()  # it contradicts this text, and belongs to no other
        return match, had_deltas

    def _match(self, candidates: Iterable[TextPlace], text: str) -> _Match:
        """Return the first candidates whose deltas, joined, begin `text`.

        If the last of them goes on after `text`, the end is shorter than what came, and
        takes nothing away (gateways end a message with an empty text). The deltas are
        compared one by one: joined again and again, they would take the square of the
        stream.
        """
        matched: list[TextPlace] = []
        shown = 0
        start = 0
        for candidate in candidates:
            end = shown
            for delta in self._deltas[candidate]:
                if text.startswith(delta, end):
                    end += len(delta)
                elif delta.startswith(text[end:]):
                    return _Match([*matched, candidate], len(text), shown, True)
                else:
                    return _Match(matched, shown, start)
            matched.append(candidate)
            start = shown
            shown = end
            if shown == len(text):
                break
        return _Match(matched, shown, start)

    @staticmethod
    def _rest(
        part: TextPlace, text: str, match: _Match, *, had_deltas: bool
    ) -> list[Rest]:
        """Return what is to be shown of a text.

        A text that contradicts its deltas is corrected by the finished item alone.
        """
        contradicts_deltas = had_deltas and not match.parts
        if contradicts_deltas or match.shown == len(text):
            return []
        return [(part, text[match.shown :])]


# --------------------------------------------------------------------------------------
# openai_responses.loop.repeated_messages
#
# Messages that the API sends twice in one response, shown once.
#
# OpenAI's models sometimes end a response with two messages of the same text and phase,
# under two ids (pipecat-ai/pipecat 4852: gpt-4.1 to gpt-5.5). The second one grows unseen
# for as long as it repeats the first. It stays in the output of the response and is sent
# again, because the next request has to begin with the bytes of this one.
# --------------------------------------------------------------------------------------


class RepeatedMessages:
    """Hides the messages of one response that repeat the message before them."""

    def __init__(self) -> None:
        """Start before the first item."""
        self._last: ItemDone | None = None
        """The end of the last message."""
        self.held: list[ItemEvent] = []
        """The events of the next item, a message that may repeat it."""
        self._text = ""
        """The text of the last message."""
        self._length = 0
        """How much of it has been repeated."""

    def show(self, events: Iterable[RunEvent]) -> list[RunEvent]:
        """Return what is shown of some events."""
        shown: list[RunEvent] = []
        for event in events:
            if self.held:
                shown += self._hold(event)
            elif isinstance(event, ItemAdded) and self._may_repeat(event):
                self.held = [event]
            else:
                shown.append(event)
            if isinstance(event, ItemDone) and item_type(event.item) == "message":
                self._last = event
        return shown

    def _may_repeat(self, event: ItemAdded) -> bool:
        """Say whether a message directly follows another one of its phase."""
        last = self._last
        if last is None or event.output_index != last.output_index + 1:
            return False
        self._text = message_text(last.item)
        self._length = 0
        is_message = item_type(event.item) == "message"
        has_same_phase = event.item.get("phase") == last.item.get("phase")
        return is_message and has_same_phase and bool(self._text)

    def _hold(self, event: RunEvent) -> list[RunEvent]:
        """Return nothing of a message while it repeats the last one, else all of it."""
        index = self.held[0].output_index
        if isinstance(event, ItemEvent) and event.output_index == index:
            repeats = True
            if isinstance(event, TextDelta):
                repeats = self._text.startswith(event.text, self._length)
                self._length += len(event.text)
            elif isinstance(event, ItemDone):
                if message_text(event.item) == self._text:
                    self.held = []
                    return [HiddenMessage(index, event.item)]
                repeats = False
            if repeats:
                self.held.append(event)
                return []
        held = self.held
        self.held = []
        return [*held, event]


def without_repetitions(items: Iterable[Item]) -> list[Item]:
    """Return `items` without messages that repeat the message directly before them."""
    kept: list[Item] = []
    last: Item = {}
    for item in items:
        is_repeated = (
            item_type(last) == item_type(item) == "message"
            and message_text(item) == message_text(last) != ""
            and item.get("phase") == last.get("phase")
        )
        if not is_repeated:
            kept.append(item)
        last = item
    return kept


# --------------------------------------------------------------------------------------
# openai_responses.ulid
#
# ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's alphabet.
#
# They sort by time. A package for them would have to be installed on the user's server;
# tests compare these with ulid-py.
# --------------------------------------------------------------------------------------


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_DIGITS = 26
_RANDOM_BITS = 80
_NANOSECONDS_OF_MILLISECOND = 1_000_000


def new_ulid() -> str:
    """Return a fresh id."""
    milliseconds = time.time_ns() // _NANOSECONDS_OF_MILLISECOND
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    digits: list[str] = []
    for _ in range(_ULID_DIGITS):
        number, digit = divmod(number, len(_CROCKFORD))
        digits.append(_CROCKFORD[digit])
    return "".join(reversed(digits))


# --------------------------------------------------------------------------------------
# openai_responses.loop.response
#
# The state machine of one response.
#
# Events in, run events out, no side effects. An item is *unknown* until an event opens
# it, then *open*, and *ended* from its `output_item.done` on:
#
#     event \ state    unknown            open              ended
#     delta            opens, shown (1)   shown             shown (2)
#     whole text       opens, shown (1)   the rest shown    the rest shown (2)
#     added            opened             ignored           ignored
#     done             opened and ended   ended             the rest shown (2)
#     final snapshot   opened and ended   ended             the rest shown (2)
#     citation, sketch ignored            shown             ignored
#
# (1) Text opens a message, reasoning a reasoning item. Arguments and code are kept until
# the item is known: only the item has the name of a call (docs/reference/responses-api.md,
# "Stream events").
# (2) The item then ends a second time, with the longer text. Some gateways end a message
# after its first character, and go on (diegosouzapw/OmniRoute 13693).
#
# Nothing that came is taken away. A text that has ended is authoritative where it says
# something else than its deltas: the part that was not shown yet is shown, and the final
# item is the wire's own dict. An end that is shorter than what came, or that has no text
# at all, keeps the longer text, in the final item too. Items that only deltas brought end
# with the response, unless it failed. Events after the end of the response are ignored,
# unless it had no items: a gateway may ask its model once more, in the same stream.
#
# An item is found by its ids: `item_id` of a part, `id` and `call_id` of an item. Where
# they are unknown, it is the last item that came with the same `output_index`, if the
# event can be about it: the type is the same, and it is open or the event has no id. An
# item of the final snapshot is found by its ids, else it is the first of its type that no
# other item of the snapshot is. Items are numbered as they come: other servers leave
# `output_index` out, reuse it, or change it (docs/servers.md). A call without a `call_id`
# opens when it ends, with an id of ours. Some servers number the calls of each response
# anew; such a call leaves here under an id that no earlier response has.
# --------------------------------------------------------------------------------------


class ResponseState:
    """One response, from its first event to its last.

    A *position* is that of an item in `_items`; its index in the run is `_first` more.
    """

    def __init__(
        self,
        first_index: int = 0,
        taken_call_ids: Collection[str] = (),
        tool_names: Collection[str] | None = None,
    ) -> None:
        """Number items from `first_index` on.

        `taken_call_ids` are those of the calls of earlier responses, `tool_names` those
        of the tools that the request declares; None if they are not known.
        """
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        self._known_call_ids = set(taken_call_ids)
        """Those of all calls so far, earlier responses included."""
        self._ended_empty = False
        """Whether it was complete without any item: another one may follow."""
        self._tool_names: ToolNames | None = None
        """Those of the tools that our side runs."""
        if tool_names is not None:
            self._tool_names = ToolNames(tuple(tool_names))
        self._repeated_messages = RepeatedMessages()
        self._own_call_ids: dict[str, str] = {}
        """The ids that calls leave with, by those of the wire."""
        self._items: list[Item] = []
        """The items as they were announced."""
        self._ids: dict[str, int] = {}
        """Positions by the ids of the wire."""
        self._latest: dict[int, int] = {}
        """The position of the last item that came with an `output_index`."""
        self._early: dict[str | int, list[TextDelta]] = {}
        """Deltas whose item is not known yet, by its id, or by its `output_index` if the
        delta has none."""
        self._open: dict[int, GrowingParts] = {}
        """The texts of the items that grow, by position."""
        self._growing = _NO_TEXT
        """The text that the last delta belongs to, and the position of its item."""
        self._ended: dict[int, Item] = {}
        """The final items, by position."""
        self._ended_lengths: dict[int, int] = {}
        """How many characters their texts have: most ends of an item that come again
        have no more, and need no comparison."""

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The finished items with their indexes, in the order of the API."""
        positions = sorted(self._ended)
        return [
            (self._first + position, self._ended[position]) for position in positions
        ]

    @property
    def output(self) -> list[Item]:
        """The finished items, in the order of the API."""
        return [item for _, item in self.items]

    @property
    def is_over(self) -> bool:
        """Whether nothing more of the response is read."""
        return self.ending is not None and not self._ended_empty

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event and return the run events that it causes."""
        self.event_count += 1
        take = self._take_reason if self.ending and self.is_over else self._take
        events = take(event)
        if type(event) is TextDelta and not self._repeated_messages.held:
            return events  # most events need no second look
        return self._repeated_messages.show(events)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta():
                return self._grow(event) if event.text else []
            case AnnotationAdded() | PartialImage():
                position = self._find(event.output_index, [event.item_id], _has_fields)
                if position in self._open:
                    index = self._first + position
                    return [event._replace(output_index=index, item_id="")]
            case ItemAdded(index, item):
                item = _in_api_form(item)
                if _lacks_call_id(item) or self._is_of_server(item):
                    return []
                if self._find_item(index, item) is None:
                    return self._start(index, item, _ids(item))
            case ItemDone(index, item):
                item = _in_api_form(item)
                if not self._is_of_server(item):
                    return self._end(self._find_item(index, item), index, item)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self._fail("error", event.error)
        return []

    def _take_reason(self, event: StreamEvent) -> list[RunEvent]:
        """Take the second of the two events with which a stream is refused.

        OpenAI sends `error`, then `response.failed` (recorded); Azure's filter sends them
        the other way round, and only the second one has the reason.
        """
        kind = self.ending.kind if self.ending else ""
        match event:
            case StreamError() if kind == "failed":
                self._fail("failed", event.error)
            case FinalResponse(status="failed") if kind == "error":
                return self._finish(event)
        return []

    def _fail(self, kind: Literal["failed", "error"], error: ApiError) -> None:
        """End with `error`, or with what an earlier event named as the reason."""
        first = self.refusal or ApiError()
        if first != ApiError():
            notice = first.notice if any(first.notice) else error.notice
            error = first._replace(notice=notice)
        self.refusal = error
        self.trace = self.trace._replace(error=error)
        self.ending = ending_of_failure(kind, error)

    def _is_of_server(self, item: Item) -> bool:
        """Say whether the server has run a call itself: the request has no such tool.

        xAI reports its searches as custom calls, `x_keyword_search` for one, and goes on
        to the answer. With an output for each, it would answer once more.
        """
        if item_type(item) != "custom_tool_call" or self._tool_names is None:
            return False
        own_name = self._tool_names.own_name(as_text(item.get("name")))
        return own_name not in self._tool_names.known

    def _find(
        self, index: int, ids: Sequence[str], fits: Callable[[Item], bool]
    ) -> int | None:
        """Return the position of the item that an event is about, if it is known.

        The module says how: by its ids, else by the `output_index`.
        """
        for item_id in ids:
            position = self._ids.get(item_id)
            if position is not None and fits(self._items[position]):
                return position
        position = self._latest.get(index)
        if position is None or not fits(self._items[position]):
            return None
        has_id = any(ids)
        if has_id and position not in self._open:
            return None
        return position

    def _find_item(self, index: int, item: Item) -> int | None:
        """Return the position of an item, if it is known.

        Two calls of one `call_id` stay two; the snapshot only repeats what came.
        """
        kind = item_type(item)
        call_id = as_text(item.get("call_id"))

        def fits(known: Item) -> bool:
            """Say whether it has the same type, and no other `call_id`."""
            if item_type(known) != kind:
                return False
            known_call_id = as_text(known.get("call_id"))
            return call_id == known_call_id or not call_id or not known_call_id

        position = self._find(index, _ids(item), fits)
        if position not in self._ended or index == _NOWHERE:
            return position
        is_same = item.get("id") in (None, self._ended[position].get("id"))
        return position if is_same else None

    def _start(self, index: int, item: Item, ids: Sequence[str]) -> list[RunEvent]:
        """Open an item, and show what came for it before it was known."""
        position = len(self._items)
        self._growing = _NO_TEXT
        self._items.append(item)
        self._open[position] = GrowingParts()
        for item_id in ids:
            self._ids[item_id] = position
        self._latest[index] = position
        shown = self._with_own_call_id(item)
        events: list[RunEvent] = [ItemAdded(self._first + position, shown)]
        names: list[str | int] = [*ids, index]
        for name in names:
            for early in self._early.pop(name, ()):
                if _can_grow(item, early.kind):
                    events += self._grow(early)
        return events

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        """Show a delta; the next one of the same part needs no search for its item."""
        index = event.output_index
        kind = event.kind
        item_id = event.item_id
        last_text, position = self._growing
        events: list[RunEvent] = []
        if last_text != (index, kind, item_id):
            position = self._find(index, [item_id], lambda item: _can_grow(item, kind))
        if position is None:
            if kind not in _OPENED_BY:
                self._early.setdefault(item_id or index, []).append(event)
                return []
            position = len(self._items)
            item = {**_OPENED_BY[kind], "id": item_id or f"item_{position}"}
            events = self._start(index, item, [item_id])
        if position not in self._open:
            ended = item_texts(self._ended[position])
            self._open[position] = GrowingParts(ended)
        self._growing = ((index, kind, item_id), position)
        text_place = (kind, event.part)
        if isinstance(event, TextDone):
            rest = self._open[position].end_part(text_place, event.text)
            own_index = self._first + position
            return events + [
                TextDelta(own_index, kind, event.part, text) for _, text in rest
            ]
        self._open[position].grow(text_place, event.text)
        shown = TextDelta(self._first + position, kind, event.part, event.text)
        return [*events, shown]

    def _end(self, position: int | None, index: int, item: Item) -> list[RunEvent]:
        """Take the final form of an item, and show what its deltas left out."""
        if position in self._ended:
            return self._end_again(position, item)
        if _lacks_call_id(item):
            item = {**item, "call_id": f"call_{new_ulid()}"}
        events: list[RunEvent] = []
        if position is None:
            position = len(self._items)
            events = self._start(index, item, _ids(item))
        for item_id in _ids(item):
            self._ids[item_id] = position
        rests, whole = self._open.pop(position).end_item(_telling_texts(item))
        missing = _missing_arguments(item, whole)
        rests += missing.items()
        longer = _changed_texts(dict(item_texts(item)), {**whole, **missing})
        if longer:
            item = with_texts(item, longer)
        return events + self._tell_end(position, rests, self._with_own_call_id(item))

    def _end_again(self, position: int, item: Item | None) -> list[RunEvent]:
        """Take what a later event has more of an item that has ended.

        Without such an event the item ends with the deltas that came since.
        """
        if item is not None and _text_length(item) <= self._ended_lengths[position]:
            return []
        ended = self._ended[position]
        known = dict(_telling_texts(ended))
        grown = self._open.pop(position, None) or GrowingParts(known.items())
        rests, whole = grown.end_item(_telling_texts(item) if item else [])
        # LiteLLM ends a thought with a summary, and repeats it as another kind of text.
        kinds = {kind for (kind, _), text in known.items() if text}
        longer: dict[TextPlace, str] = {}
        for place, text in whole.items():
            before = known.get(place, "")
            is_more = text != before and text.startswith(before)
            if is_more and (not kinds or place[0] in kinds):
                longer[place] = text
        if not longer:
            return []
        newer = {} if item is None else _text_fields(item, longer)
        longest = {**dict(item_texts(ended)), **longer}
        rests = [rest for rest in rests if rest[0] in longer]
        whole_item = with_texts({**ended, **newer}, longest)
        return self._tell_end(position, rests, whole_item)

    def _tell_end(
        self, position: int, rests: Iterable[tuple[TextPlace, str]], item: Item
    ) -> list[RunEvent]:
        """Return what the wire's own deltas did not bring of an item, then its end."""
        self._growing = _NO_TEXT
        self._ended[position] = item
        self._ended_lengths[position] = _text_length(item)
        index = self._first + position
        events: list[RunEvent] = [
            TextDelta(index, kind, part, text) for (kind, part), text in rests
        ]
        return [*events, ItemDone(index, item)]

    def _with_own_call_id(self, item: Item) -> Item:
        """Return a call under an id that no earlier response has.

        Bedrock begins with `call_0` in each response (recorded by pydantic-ai), and an
        output would answer the first call of that name. The id is a function of the ids
        before it; once stored, it is sent again as it is. A call that comes twice in
        this response has one id.
        """
        call_id = as_text(item.get("call_id"))
        if not is_call(item) or not call_id:
            return item
        own_id = self._own_call_ids.get(call_id)
        if own_id is None:
            own_id = distinct_call_id(call_id, self._known_call_ids)
            self._known_call_ids.add(own_id)
            self._own_call_ids[call_id] = own_id
        return item if own_id == call_id else {**item, "call_id": own_id}

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        response = event.response
        if not response and not self._items and event.status != "failed":
            return []  # an end that says nothing of a response that has brought nothing
        self.usage = read_usage(response.get("usage"), response.get("service_tier"))
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            removed=_removals(response.get("input_transformations")),
            response_id=as_text(response.get("id")),
            cache=as_mapping(response.get("prompt_cache_diagnostics")),
        )
        if event.status == "failed":
            # Azure has the reason in `status_details` (can1357/oh-my-pi 907).
            details = as_mapping(response.get("status_details"))
            error = response.get("error") or details.get("error")
            self._fail("failed", read_api_error(error))
        else:
            self.ending = _ending_of(event.status, response)
        events: list[RunEvent] = []
        output: list[Item] = []
        for item in map(_in_api_form, content_parts(response.get("output"))):
            if not self._is_of_server(item):
                output.append(item)
        for position, item in self._match(output):
            events += self._end(position, _NOWHERE, item)
        if event.status != "failed":
            events += self._end_open(event.status, has_snapshot=bool(output))
        self._ended_empty = self.ending == COMPLETED and not self._items
        return [*events, ResponseDone(event.status)]

    def _end_open(self, status: str, *, has_snapshot: bool) -> list[RunEvent]:
        """End the items that neither an event nor the final snapshot has ended.

        A call without arguments counts only where there is no snapshot to name it. Of
        reasoning that was only announced, the encrypted content may not be whole.
        """
        events: list[RunEvent] = []
        for position, grown in sorted(self._open.items()):
            if position in self._ended:
                events += self._end_again(position, None)
                continue
            item = self._items[position]
            has_come = grown.has_text or any(text for _, text in _telling_texts(item))
            if is_call(item):
                has_come = bool(item.get("name")) and (has_come or not has_snapshot)
            if has_come and not is_hosted(item):
                final = {**item, "status": _STATUS_OF_ITEMS.get(status, "completed")}
                final.pop("encrypted_content", None)
                events += self._end(position, _NOWHERE, final)
        return events

    def _match(self, items: Sequence[Item]) -> Iterator[tuple[int | None, Item]]:
        """Yield the positions of the items of the final snapshot, if they are known."""
        positions = [self._find_item(_NOWHERE, item) for item in items]
        taken = set(positions)
        unmatched: dict[str, deque[int]] = defaultdict(deque)
        for known_position, known_item in enumerate(self._items):
            if known_position not in taken:
                unmatched[item_type(known_item)].append(known_position)
        for position, item in zip(positions, items, strict=True):
            same_type = unmatched[item_type(item)]
            if position is None and same_type:
                yield same_type.popleft(), item
            else:
                yield position, item


_NO_TEXT: tuple[object, int | None] = (None, None)
"""The next delta has to search for its item."""
_NOWHERE = -2
"""An `output_index` that no event has."""

_EMPTY_MESSAGE: Item = {"type": "message", "role": "assistant", "content": []}
_OPENED_BY = {
    "text": _EMPTY_MESSAGE,
    "refusal": _EMPTY_MESSAGE,
    "summary": NO_THOUGHT,
    "reasoning": NO_THOUGHT,
}
"""Items that their texts alone open."""


def _has_fields(item: Item) -> bool:
    """Say whether there is an item: citations and sketches fit one of any type."""
    return bool(item)


_STATUS_OF_ITEMS = {"incomplete": "incomplete", "cancelled": "incomplete"}
"""The status of items that a response has not ended, by its own."""


def _in_api_form(item: Item) -> Item:
    """Return an item as the API writes it; other servers write some fields otherwise.

    Texts may have no part around them, arguments may be an object or null, and the name
    of a call may have spaces around it. Ids are keys here, so those that are not texts
    go.
    """
    changed: Item = {}
    for kind, field in kind_of(item).parts:
        content = item.get(field)
        rows = [content] if isinstance(content, str) else as_list(content)
        if any(isinstance(row, str) for row in rows):
            changed[field] = [
                text_part(kind, row) if isinstance(row, str) else row
                for row in rows
                if row != ""
            ]
    if not isinstance(item.get("arguments", ""), str):
        changed["arguments"] = arguments_text(item["arguments"])
    if is_call(item) and as_text(item.get("name")):
        changed["name"] = item["name"].strip()
    kept: Item = {}
    for key, value in item.items():
        is_malformed = value is not None and not as_text(value)
        if is_malformed and key.endswith("id"):
            continue
        kept[key] = changed.get(key, value)
    return kept


_ARGUMENTS: TextPlace = ("arguments", 0)


def _telling_texts(item: Item) -> list[tuple[TextPlace, str]]:
    """Return the texts of an item; arguments that say nothing as no text.

    Gateways write `{}` in a call whose arguments come as deltas.
    """
    texts = dict(item_texts(item))
    if texts.get(_ARGUMENTS, "").strip() in ("", "{}") and _ARGUMENTS in texts:
        texts[_ARGUMENTS] = ""
    return list(texts.items())


def _text_length(item: Item) -> int:
    """Return how many characters the texts of an item have."""
    return sum(len(text) for _, text in _telling_texts(item))


def _missing_arguments(
    item: Item, whole: Mapping[TextPlace, str]
) -> dict[TextPlace, str]:
    """Return the arguments of a call of which none came: those of a function are `{}`.

    A call that was cut off has none yet.
    """
    if whole.get(_ARGUMENTS) != "":
        return {}
    text = dict(item_texts(item))[_ARGUMENTS]
    if item_type(item) == "function_call" and item.get("status") != "incomplete":
        text = text.strip() or "{}"
    return {_ARGUMENTS: text} if text else {}


def _changed_texts(
    texts: Mapping[TextPlace, str], whole: Mapping[TextPlace, str]
) -> dict[TextPlace, str]:
    """Return the texts of `whole` that are others than in `texts`."""
    return {place: text for place, text in whole.items() if text != texts.get(place)}


def _text_fields(item: Item, places: Iterable[TextPlace]) -> Item:
    """Return the fields of an item that hold the texts at these places."""
    texts = kind_of(item).parts
    kinds = {"text" if kind == "refusal" else kind for kind, _ in places}
    return {field: item[field] for kind, field in texts if kind in kinds}


def _can_grow(item: Item, kind: str) -> bool:
    """Say whether deltas of a kind belong to an item of this type."""
    if kind in _OPENED_BY:
        return item_type(item) == item_type(_OPENED_BY[kind])
    text_field = kind_of(item).text
    return text_field is not None and text_field[0] == kind


def _ids(item: Item) -> list[str]:
    """Return the ids that an event can name an item by."""
    ids = (as_text(item.get("id")), as_text(item.get("call_id")))
    return [item_id for item_id in ids if item_id]


def _lacks_call_id(item: Item) -> bool:
    """Say whether `item` is a call that gets its `call_id` here, when it has ended."""
    return is_call(item) and not as_text(item.get("call_id"))


def _removals(transformations: object) -> Mapping[str, int]:
    """Return how many items the API left out of the input, by its reasons."""
    return Counter(
        api_word(str(row.get("reason"))) or "unknown"
        for row in content_parts(transformations)
        if row.get("action") == "removed"
    )


def _ending_of(status: str, response: JsonObject) -> Ending:
    """Return how a response ended that did not fail.

    One that is `cancelled` was cancelled by another client: after our own cancellation
    no answer is read.
    """
    if status == "incomplete":
        details = as_mapping(response.get("incomplete_details"))
        other_details = as_mapping(response.get("status_details"))
        reason = details.get("reason") or other_details.get("reason")
        return ending_of_incomplete(as_text(reason))
    if status == "cancelled":
        return ending_of_incomplete(status)
    return COMPLETED


# --------------------------------------------------------------------------------------
# openai_responses.models.choice
#
# Which models are offered, chosen by an automatic name, and retired.
#
# If nobody listed models, the newest of each family is offered. The family is the part of
# the id behind the version: `gpt-6.2-sol` and `gpt-5.6-sol` are two versions of sol.
# Models for selected customers, retired models and models with a successor are offered
# only if an administrator lists them.
#
# An automatic name is resolved by the first rule that fits:
#
# 1. A chat stays with the model that began it: its reasoning and cache belong to it.
# 2. Files, images, chosen tools, code and long questions go to the large model.
# 3. Everything else goes to the small model.
#
# Only the first message of a chat counts, so a chat always gets the same answer.
# --------------------------------------------------------------------------------------


_VERSIONED_ID = re.compile(r"gpt-(?P<version>\d+(?:\.\d+)?)(?:-(?P<family>[a-z]+))?")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
    r"|^(?:text-|whisper|dall-e|davinci|babbage|sora|omni-)"
)
"""Parts of the ids of models for something else than a chat, and of too old ones."""
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})
"""Families for selected customers, whose administrators list them."""


def read_models(answer: object) -> dict[str, str]:
    """Return the ids of `GET /models`, of chat models alone, with their last days.

    The day is an ISO date, or nothing. Ids of other servers, which follow no rule of
    OpenAI's, count as chat models. The list is remembered for an hour, so it has an
    end, and so has each name.
    """
    days: dict[str, str] = {}
    for entry in as_list(as_mapping(answer).get("data")):
        row = as_mapping(entry)
        name = as_text(row.get("id"))
        day = as_text(row.get("shutdown_date"))[:_ISO_DATE_LENGTH]
        if _is_chat_model(name):
            days[name] = day if _parse_date(day) else ""
        if len(days) >= _MAX_MODELS:
            break
    return days


_ISO_DATE_LENGTH = 10
_MAX_MODEL_ID = 200
_MAX_MODELS = 1000


def _is_chat_model(name: str) -> bool:
    if name in CATALOG_FACTS:
        return True
    has_usual_length = 0 < len(name) <= _MAX_MODEL_ID
    return has_usual_length and not _NO_CHAT.search(name)


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    """Return the newest model of each family, newest first.

    `today` is an ISO date; `usable` holds the ids that the key can use, if known.
    """
    if usable is None:
        usable = CATALOG_FACTS.keys()
    versioned: list[re.Match[str]] = []
    for name in usable:
        match = _VERSIONED_ID.fullmatch(name)
        if match and _is_offered(match, today):
            versioned.append(match)
    newest: dict[str, re.Match[str]] = {}
    for match in sorted(versioned, key=_age_key):
        newest[match["family"]] = match  # replaces an older one
    newest_first = sorted(newest.values(), key=_age_key, reverse=True)
    return [match.string for match in newest_first]


def _is_offered(match: re.Match[str], today: str) -> bool:
    if match["family"] in _CLOSED_CIRCLES:
        return False
    facts = CATALOG_FACTS.get(match.string)
    if facts is None:
        return True
    if facts.successor:
        return False
    return facts.shutdown is None or today < facts.shutdown


def _age_key(match: re.Match[str]) -> tuple[tuple[int, ...], str]:
    """Return a key that sorts ids by age; a plain name comes after a longer one."""
    numbers = [int(number) for number in match["version"].split(".")]
    return tuple(numbers), match.string


_NOTICE_DAYS = 30
"""Before the last day of a model, from which on its answers say so."""


def retirement_notice(
    model: ResolvedModel, today: date, answering: ResolvedModel | None = None
) -> str:
    """Return a sentence about the end of a model if it is near.

    `answering` is the one that answered, if it was not asked for.
    """
    last_day = _parse_date(model.facts.shutdown)
    if last_day is None or today < last_day - timedelta(days=_NOTICE_DAYS):
        return ""
    verb = "is" if today < last_day else "was"
    sentence = f"{model.name} {verb} switched off on {last_day.isoformat()}."
    if answering and answering.id != model.id:
        return f"{sentence} {answering.name} answers instead."
    successor = model.facts.successor
    if successor:
        sentence += f" Use {resolve_model(successor).name} instead."
    return sentence


def replacement(model: ResolvedModel, today: date) -> ResolvedModel | None:
    """Return what answers for a pro model that was switched off, None for any other.

    Its successor is the pro mode of another model, which people would not find in
    the list of models by the name that they used.
    """
    last_day = _parse_date(model.facts.shutdown)
    if last_day is None or today < last_day:
        return None
    successor = resolve_model(model.facts.successor or "")
    return successor if successor.pro else None


def name_asked_model(sentence: str, model_id: str) -> str:
    """Return a sentence with the id that was asked for in the place of ASKED_MODEL.

    If OpenAI has switched that model off, the sentence names the successor, too.
    """
    if ASKED_MODEL not in sentence:
        return sentence
    named = sentence.replace(ASKED_MODEL, model_id)
    successor = successor_of(model_id)
    if successor is None:
        return named
    return f"{named} OpenAI has shut it down and recommends {successor.name}."


def _parse_date(text: str | None) -> date | None:
    """Return the day of an ISO date; None for anything else."""
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


_AUTO_MODELS = {"gpt-5-auto": ("gpt-6.1-terra", "gpt-6.1-sol")}
"""The small and the large model for each automatic name."""

_LONG_QUESTION = 600
"""Characters from which on the large model answers."""
_ATTACHED = ("input_file", "input_image")


def choose_auto_model(
    name: str, first: JsonObject | None, tools: bool, earlier: Collection[str]
) -> tuple[str, str] | None:
    """Return the model that an automatic name means, and why; None for other names.

    `first` is the user's first message, `tools` says whether the user chose some,
    `earlier` holds the families of the models that answered in this chat.
    """
    if name not in _AUTO_MODELS:
        return None
    small, large = _AUTO_MODELS[name]
    for model in (small, large):
        if model in earlier:
            return model, "it began this chat"
    reason = _reason_for_large(first, tools)
    if reason:
        return large, reason
    return small, "the question is short, without files or tools"


def _reason_for_large(first: JsonObject | None, tools: bool) -> str:
    """Return why the large model answers; empty if the small one is enough."""
    if first is None:
        return "there is no question to judge by"
    parts: list[Item] = content_parts(first.get("content"))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    text = "".join(part_text(part) for part in parts)
    if "```" in text:
        return "the question holds code"
    if len(text) > _LONG_QUESTION:
        return "the question is long"
    return ""


# --------------------------------------------------------------------------------------
# openai_responses.requests.replay
#
# Output items of earlier responses, as they are sent again.
#
# The API refuses or silently drops encrypted reasoning of another model family, server or
# organization, so the origin of an item is stored with it
# (docs/reference/responses-api.md, "Refusals of input items", 4, 10 and 11).
#
# What the model produced stays byte for byte, without ids, which the API would look up
# and not find, and without `status`, which Azure refuses on reasoning (the same section,
# 1 to 3, 6, 7 and 9). Hosted items need both. They get a new id, always the same for the
# same item: the API's own id would require the reasoning before the item, which a chat
# may have lost.
#
# The API accepts an `mcp_call` but does not show it to the model (seen live in 2026), so
# later requests contain a function call with its output instead; it is also what a host
# makes of the card. An approval belongs to one response: without it the API would make
# the call again. An approval that the model has acted on becomes a pair, too.
#
# Code that the API ran is itself within its run only: its container is dead after 20 idle
# minutes, and the chat with it (docs/reference/responses-api.md, "Hosted items again").
# --------------------------------------------------------------------------------------


class Origin(NamedTuple):
    """The model family, the server, and the account that produced an item.

    Earlier writers stored neither of the latter two.
    """

    family: str
    endpoint: str = ""
    account: str = ""

    def can_decrypt(self, maker: Self) -> bool:
        """Say whether reasoning of `maker` can be sent here."""
        same_server = maker.endpoint in ("", self.endpoint)
        same_account = maker.account in ("", self.account)
        return same_server and same_account and maker.family == self.family

    def wire(self) -> dict[str, str]:
        """Return the form in which it is stored."""
        fields = {"family": self.family, "endpoint": self.endpoint}
        if self.account:
            fields["account"] = self.account
        return fields


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    """Return the origin of items of `family` from `endpoint`."""
    return Origin(family, endpoint.host, endpoint.reasoning_scope_id())


def read_origin(wire: object, model: str) -> Origin:
    """Return a stored origin, or the one that the name of the model implies."""
    fields = as_mapping(wire)
    family = fields.get("family")
    if family:
        endpoint = str(fields.get("endpoint") or "")
        account = str(fields.get("account") or "")
        return Origin(str(family), endpoint, account)
    return Origin(resolve_model(model).family)


_REMOTE_PREFIX = "mcp"
"""How the ids of remote calls begin, and no others."""


def is_remote_id(call_id: str) -> bool:
    """Say whether the API made the call itself, at a remote server."""
    return call_id.startswith(_REMOTE_PREFIX)


def remote_name(item: JsonObject) -> str:
    """Return the label of the server and the name of the tool, as one name."""
    return ToolNames().sent_name(f"{item.get('server_label')}_{item.get('name')}")


def remote_pair(item: JsonObject) -> list[Item]:
    """Return the call that `item` made, with its output or error."""
    output = _remote_error(item)
    if not output:
        output = str(item.get("output") or "")
    return _remote_call_pair(item, output)


def refused_pair(request: JsonObject, why: str) -> list[Item]:
    """Return a call that was denied, with its output."""
    return _remote_call_pair(request, f"Error: {why}")


def _remote_call_pair(item: JsonObject, output: str) -> list[Item]:
    """Return the call that `item` made or requested, with an output."""
    arguments = arguments_text(item.get("arguments")) or "{}"
    return _call_pair(_remote_call_id(item), remote_name(item), arguments, output)


def _call_pair(call_id: str, name: str, arguments: str, output: str) -> list[Item]:
    call = {"type": "function_call", "call_id": call_id, "name": name}
    return [
        {**call, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def remote_failed(item: JsonObject) -> bool:
    """Say whether an `mcp_call` failed."""
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: JsonObject) -> bool:
    """Say whether the API asks for permission to make a call."""
    return item.get("type") == "mcp_approval_request"


def drop_settled_approvals(items: Sequence[Item]) -> list[Item]:
    """Return `items` without approvals that were acted on, or that have no answer."""
    answers = {
        item.get("approval_request_id"): item for item in items if _is_response(item)
    }
    open_ids = _open_approvals(items)
    open_items: list[Item] = []
    for item in items:
        request_id = _approval_id(item)
        if request_id is None or request_id in open_ids:
            open_items.append(item)
        elif is_approval_request(item):
            answer = answers.get(request_id, {})
            if answer.get("approve") is False:
                open_items += refused_pair(item, str(answer.get("reason") or ""))
    return open_items


def _open_approvals(items: Sequence[Item]) -> set[object]:
    """Return the ids of the approvals behind which the model has done nothing yet.

    A call with the id of a request is none of its acts: the host makes one of the card
    of a request that was denied.
    """
    requests = {_remote_call_id(item) for item in items if is_approval_request(item)}
    open_ids: set[object] = set()
    for item in items:
        if _is_response(item):
            open_ids.add(item.get("approval_request_id"))
        elif not is_call_output(item) and item.get("call_id") not in requests:
            open_ids.clear()
    return open_ids


def _approval_id(item: JsonObject) -> object:
    """Return the id of a request for approval, or the one that an answer names."""
    if is_approval_request(item):
        return item["id"]
    return item.get("approval_request_id") if _is_response(item) else None


def reorder_remote_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` with the output of each remote call directly behind it."""
    # In the host's messages all outputs of a round stand behind all of its calls.
    outputs = {
        item["call_id"]: item
        for item in items
        if _is_remote(item, "function_call_output")
    }
    ordered: list[Item] = []
    for item in items:
        if not _is_remote(item, "function_call_output"):
            ordered.append(item)
        if _is_remote(item, "function_call") and item["call_id"] in outputs:
            ordered.append(outputs[item["call_id"]])
    return ordered


def _is_response(item: JsonObject) -> bool:
    return item.get("type") == "mcp_approval_response"


def _is_remote(item: JsonObject, kind: str) -> bool:
    return item_type(item) == kind and is_remote_id(str(item.get("call_id")))


def _remote_call_id(item: JsonObject) -> str:
    own = str(item.get("id") or "")
    return own if is_remote_id(own) else f"{_REMOTE_PREFIX}_{own}"


def _remote_error(item: JsonObject) -> str:
    error = item.get("error")
    if not error:
        return ""
    text = error
    if isinstance(error, Mapping):
        content = error.get("content")
        text = error.get("message") or content
        if isinstance(content, list):
            texts = [part_text(part) for part in content_parts(content)]
            text = "\n".join(texts)
    return f"Error: {text or 'the server did not say what went wrong.'}"


_NEVER_REPLAYED = ("id", "status", "created_by")
_MADE_HERE = "replayed"


def strip_for_replay(item: Item) -> Item:
    """Return `item` in the form that is sent again: without ids, status and nulls.

    `logprobs` of a message and `action.sources` of a search are removed, too.
    """
    kept = _without(item, _NEVER_REPLAYED)
    if is_hosted(item):
        if is_host_returned(item):
            kept = {**kept, **_required_fields(item)}
        return kept
    # "Invalid 'input[39].content': array too long. Expected an array with maximum
    # length 0" (musistudio/claude-code-router 1783, of other servers' reasoning).
    if is_encrypted(item) and kept.get("content"):
        return _without(kept, ("content",))
    if isinstance(kept.get("content"), list) and item_type(item) == "message":
        parts = content_parts(kept["content"])
        kept = {**kept, "content": [_without(part, ("logprobs",)) for part in parts]}
    return kept


def _without(fields: Item, names: Sequence[str]) -> Item:
    """Return an object without nulls and `names`: if it has none, itself."""
    if fields.keys().isdisjoint(names) and None not in fields.values():
        return fields
    return {
        key: value
        for key, value in fields.items()
        if key not in names and value is not None
    }


def replay_items(item: Item) -> list[Item]:
    """Return the items that represent `item` in later requests."""
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    if has_plain_reasoning(item):  # its server wants it as it was
        return [{key: value for key, value in item.items() if value not in (None, "")}]
    if has_image(item):
        return [image_message(item)]
    return [strip_for_replay(item)]


_MAX_CODE_LENGTH = 20_000
_CODE_IS_GONE = "[The container of this code is gone, with its files.]"


CHANGED_LATER = {"code_interpreter_call", "image_generation_call"}
"""The types of items that later requests show as other items."""


def past_items(item: Item) -> list[Item]:
    """Return the items that represent `item` when its run is over.

    A request that names a dead container is refused. So code becomes a call with its
    output, always the same for the same item.
    """
    if has_image(item):
        return [image_message(item)]
    if not is_code(item):
        return [item]
    code = as_text(item.get("code"))
    call_id = _new_id(as_text(item.get("id")) or f"ci_{code}")
    arguments = json.dumps({"code": code[:_MAX_CODE_LENGTH]})
    text = f"{code_output(item)[:_MAX_CODE_LENGTH]}\n{_CODE_IS_GONE}"
    return _call_pair(call_id, "code_interpreter", arguments, text)


def replay_output(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a response for the next request of its run."""
    replayed: list[Item] = []
    for item in output:
        if _goes_back(item, with_reasoning):
            replayed += replay_items(item)
    return replayed


def _goes_back(item: Item, with_reasoning: bool) -> bool:
    if is_reasoning(item):
        return with_reasoning and (
            has_encrypted_reasoning(item) or has_plain_reasoning(item)
        )
    return not is_hosted(item) or is_host_returned(item) or has_image(item)


def _required_fields(item: Item) -> Item:
    kind = kind_of(item)
    fields = {key: item.get(key) for key in kind.nullable}
    for key in ("id", "status"):
        if item.get(key):
            fields[key] = item[key]
    if fields.get("outputs"):  # images are large and only people need them
        parts = content_parts(fields["outputs"])
        fields["outputs"] = [part for part in parts if part.get("type") != "image"]
    # "Unknown parameter: 'input[n].action.sources'", although the API itself sent them
    # (pydantic-ai 2.68.0).
    if item_type(item) == "web_search_call":
        fields["action"] = _without_sources(item["action"])
    # Only what later turns send gets another id: within a run an approval names the id
    # of the request for it.
    if "id" in fields and kind.returned == "always":
        fields["id"] = _new_id(str(item["id"]))
    return fields


def _without_sources(action: JsonObject) -> Item:
    """Return the action of a search without its sources and without nulls."""
    return {
        key: value
        for key, value in action.items()
        if key != "sources" and value is not None
    }


def _new_id(own: str) -> str:
    """Return an id of the kind of `own`, always the same for the same item."""
    # An id has at most 64 characters and the prefix of its kind, else it is refused
    # (cockpit-tools 2090).
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    return f"{prefix[:8]}_{_MADE_HERE}{hex_digest(own)[:40]}"


# --------------------------------------------------------------------------------------
# openai_responses.transport.unpacking
#
# Compressed bodies, unpacked piece by piece.
#
# Nothing compressed is asked for, but proxies compress all the same, or an administrator's
# header asks for it. 1.5 MB of gzip can become 1.5 GB, so no piece is large: a reader that
# counts what it takes stops in time.
# --------------------------------------------------------------------------------------


_PIECE_BYTES = 1 << 18
"""The most that one piece of a text has."""
_ZSTD_INPUT = 32
"""Bytes that a decompressor of zstd gets at once, because it has no limit of its output:
a block of 4 bytes becomes 128 kB (RFC 8878, 3.1.1.2.2)."""
_ZSTD_WINDOW = 1 << 23
"""The memory that a sender may ask for (RFC 9659)."""

_TELLING_BYTES = 10
"""Those by which packed bytes are told from a text: the length of gzip's header."""
_TEXT_BEGIN = re.compile(rb"(?:\xef\xbb\xbf)?\s*+(?:[{<:]|data:|event:|id:|retry:|\Z)")
"""How JSON, a page and an event stream begin. No packed text of that kind does: read as
deflate or Brotli, these bytes end at once, or their first letter is none of ASCII's."""
_PACKED_MARKS = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "zstd": re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),
}
"""How packed bytes of these kinds begin."""
_SYNONYMS = {"x-gzip": "gzip", "": "identity", "none": "identity"}


class UnpackingError(Exception):
    """Bytes that cannot be unpacked, or in a way that is not known here."""


class Unpacker:
    """Unpacks one body, whose header `Content-Encoding` is `encoding`.

    What is not packed at all is passed on: proxies forget to remove the header.
    """

    def __init__(self, encoding: str) -> None:
        """Start before the first byte."""
        names: set[str] = set()
        for name in encoding.lower().split(","):
            names.add(_SYNONYMS.get(name.strip(), name.strip()))
        names.discard("identity")
        self._name = " ".join(names)
        self._begin = b""
        self._unpack: Callable[[bytes], Iterator[bytes]] | None = None
        if not names:
            self._unpack = _pass_on

    def feed(self, packed: bytes) -> Iterator[bytes]:
        """Yield the next pieces of the text; no bytes mean the end of the body.

        Raises UnpackingError.
        """
        if self._unpack is None:
            self._begin += packed
            if packed and len(self._begin) < _TELLING_BYTES:
                return
            packed, self._begin = self._begin, b""
            self._unpack = _choose(self._name, packed)
        try:
            yield from self._unpack(packed)
        except Exception:  # each package has its own
            raise UnpackingError from None


def _pass_on(text: bytes) -> Iterator[bytes]:
    """Yield a text that is not packed."""
    if text:
        yield text


def _choose(name: str, begin: bytes) -> Callable[[bytes], Iterator[bytes]]:
    """Return what unpacks a body that begins so; raises UnpackingError."""
    mark = _PACKED_MARKS.get(name)
    is_packed = mark.match(begin) if mark else not _TEXT_BEGIN.match(begin)
    if not is_packed:
        return _pass_on
    match name:
        case "gzip":
            return _Inflation(partial(zlib.decompressobj, 31)).unpack
        case "deflate":
            # Some servers leave out the header of zlib (RFC 9110, 8.4.1.2).
            has_header = begin[0] & 15 == 8 and int.from_bytes(begin[:2]) % 31 == 0
            return _Inflation(
                partial(zlib.decompressobj, 15 if has_header else -15)
            ).unpack
        case "br":
            return _brotli()
        case "zstd":
            return _zstd()
    raise UnpackingError


class _Inflation:
    """Unpacks gzip and deflate; of gzip, any number of members in a row."""

    def __init__(self, start: Callable[[], Any]) -> None:
        self._start = start
        self._inflater = start()
        self._is_whole = False
        """Whether a member has ended: what then comes may be padding."""

    def unpack(self, packed: bytes) -> Iterator[bytes]:
        while True:
            try:
                text = self._inflater.decompress(packed, _PIECE_BYTES)
            except zlib.error:
                if self._is_whole:
                    return
                raise
            if text:
                yield text
            packed = self._inflater.unconsumed_tail
            if self._inflater.eof:
                self._is_whole = True
                packed = self._inflater.unused_data
                self._inflater = self._start()
            # A full piece may have left a part of a repetition behind.
            if not packed and len(text) < _PIECE_BYTES:
                return


def _brotli() -> Callable[[bytes], Iterator[bytes]]:
    """Return what unpacks Brotli, if a package for it is there; raises UnpackingError.

    Before version 1.2 they have no limit for what they unpack at once.
    """
    decompressor = _import_first("brotli", "brotlicffi").Decompressor()
    if not hasattr(decompressor, "can_accept_more_data"):
        raise UnpackingError

    def unpack(packed: bytes) -> Iterator[bytes]:
        while not decompressor.is_finished():
            text = decompressor.process(packed, output_buffer_limit=_PIECE_BYTES)
            if text:
                yield text
            packed = b""
            if not text or decompressor.can_accept_more_data():
                return

    return unpack


def _zstd() -> Callable[[bytes], Iterator[bytes]]:
    """Return what unpacks zstd, if a package for it is there; raises UnpackingError."""
    package = _import_first("zstandard")

    def start() -> Any:
        limited = package.ZstdDecompressor(max_window_size=_ZSTD_WINDOW)
        return limited.decompressobj()

    decompressor = start()

    def unpack(packed: bytes) -> Iterator[bytes]:
        nonlocal decompressor
        for at in range(0, len(packed), _ZSTD_INPUT):
            part = packed[at : at + _ZSTD_INPUT]
            while part:
                text = decompressor.decompress(part)
                if text:
                    yield text
                part = b""
                if decompressor.eof:
                    part = decompressor.unused_data
                    decompressor = start()

    return unpack


def _import_first(*names: str) -> Any:
    """Return the first of these packages that is there; raises UnpackingError."""
    for name in names:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise UnpackingError


# --------------------------------------------------------------------------------------
# openai_responses.transport.connections
#
# Pooled HTTP sessions; the only module that opens a connection.
#
# Each event loop has one session. The first run that borrows it opens it. It is closed
# when no run has used it for a while, or when its owner is gone: a host that replaces a
# client does not tell the old one. Errors of aiohttp become errors of this package here.
# --------------------------------------------------------------------------------------


_KEEPALIVE_SECONDS = 180.0
"""How long a connection waits for the next question, because a new one costs two round
trips. Cloudflare, in front of OpenAI, closes an idle connection after 400 seconds;
gateways of Azure and Amazon forget one without a word after 240 and 350."""
_IDLE_SECONDS = 190.0
"""After that, an unused session has no connection left."""
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; with fewer, busy servers would wait."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up delays the first words."""


class _Pool:
    """The session of one event loop, lent to the active runs."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if needed; the last return starts the idle time."""
        if self._timer is not None:
            self._timer.cancel()
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=_MAX_CONNECTIONS,
                keepalive_timeout=_KEEPALIVE_SECONDS,
                ttl_dns_cache=_DNS_SECONDS,
            )
            self._session = new_session(connector)
        self._lent += 1
        try:
            yield self._session
        finally:
            self._lent -= 1
            if self._lent == 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(_IDLE_SECONDS, self.close_later)

    def close_later(self) -> None:
        """Close the session, which no run can borrow from now on, in a task.

        Closing a connector from a timer itself warns "never awaited" on aiohttp 3.14.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self.start(self._session.close())
            self._session = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task that is referenced until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the session when all tasks are done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        self.close_later()
        await asyncio.gather(*self._tasks)


_MAX_HEADER_LINE = 64 * 1024
_MAX_HEADERS = 500
"""A proxy's content-security policy alone can have 12 kB; aiohttp takes lines of 8 kB,
and 128 of them (3.14.5)."""
_HEADER_LIMITS = {
    "max_line_size": _MAX_HEADER_LINE,
    "max_field_size": _MAX_HEADER_LINE,
    "max_headers": _MAX_HEADERS,
}


def new_session(
    connector: aiohttp.BaseConnector | None = None,
    timeout: aiohttp.ClientTimeout | None = None,
) -> aiohttp.ClientSession:
    """Return a session that reads no settings of the system and keeps nothing.

    Proxies of the environment are looked up by this package, because trust_env would
    also send the contents of a .netrc file. Cookies that a gateway sets for one user
    must not be sent for another.
    """
    known = inspect.signature(aiohttp.ClientSession).parameters
    limits: dict[str, Any] = {}
    for name, limit in _HEADER_LIMITS.items():
        if name in known:  # aiohttp 3.9 counts no headers
            limits[name] = limit
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout or aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        # aiohttp inflates without a limit: 1.5 MB of gzip became 1.5 GB (tried with
        # 3.14.5). HttpResponse unpacks.
        auto_decompress=False,
        **limits,
    )


class Timeouts(NamedTuple):
    """Limits in seconds; a `total` of 0 means no limit.

    They limit silences: until the first event `first_event`, then `idle`. Any byte ends
    a silence: some servers send comments alone while they read a long prompt. The time
    of tools and of people does not count in `total`.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()


class Deadlines:
    """The limit that is active now, over all attempts of one run.

    `set_waiting` is called with True when a wait for the server begins, and with False
    when something else takes the time, as people who are asked.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        set_waiting: Callable[[bool], object] = ignore_report,
    ) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        self._set_waiting = set_waiting
        self._end = float("inf")
        """When the total limit is exceeded, by the event loop's clock."""
        if timeouts.total:
            self._end = _now() + timeouts.total
        self.start_attempt()

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        self._silence = self.timeouts.first_event
        """The longest silence now."""
        self._kind: TimeoutKind = "first_event_timeout"
        """The limit that this is."""
        self._set_waiting(True)
        self.bytes_arrived()

    def bytes_arrived(self) -> None:
        """Wait for more bytes from now on."""
        self._bytes_due = _now() + self._silence
        """When the next bytes have to be there, by the same clock."""

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        self._silence = self.timeouts.idle
        self._kind = "idle_timeout"
        self._set_waiting(True)
        self.bytes_arrived()

    def allow(self, seconds: float) -> bool:
        """Say whether the total limit leaves enough time for a wait."""
        return _now() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the total limit for a while."""
        self._set_waiting(False)
        began = _now()
        try:
            yield
        finally:
            self._end += _now() - began

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._bytes_due, self._end))

    def timeout_error(self) -> TimedOut:
        """Return the error of the limit that was exceeded."""
        if self._end <= self._bytes_due:
            return TimedOut("total_timeout")
        return TimedOut(self._kind)


_DRAIN_SECONDS = 1.0
"""For the body of a refusal, or the rest of an answer that has ended: people wait."""
_MAX_ERROR_BODY = 64 * 1024
"""Bytes of such a body, or rest, that are read."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Of one response, by `json_weight`: four times 128,000 tokens with an event for each."""

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word, because the log shows the id."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)
_BROKE = "The connection to the model's server broke."


_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")
"""How a line of an event stream begins; the last is a comment."""
_BEFORE_TEXT = b"\xef\xbb\xbf \t\r\n"
"""A byte-order mark and white space: neither JSON nor an event stream needs them."""


class HttpResponse:
    """A response with a good status whose body is still arriving."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Read nothing yet."""
        self._response = response
        self._deadlines = deadlines
        encodings = response.headers.getall("Content-Encoding", [])
        self._unpacker = Unpacker(",".join(encodings))
        self._pieces: Iterator[bytes] = iter(())
        """The pieces of the text that arrived and were not read yet."""
        self._begin = b""
        """What `is_stream` has read."""
        self._arrived = 0
        """How many bytes arrived, packed as they were."""
        self._has_arrived = False
        """Whether that is the whole body."""
        self._has_text = False
        self._broke = False
        self.is_read = False
        self.request_id = response.headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(self.request_id):
            self.request_id = ""

    async def is_stream(self) -> bool:
        """Say whether the body is an event stream, by its first bytes.

        Gateways label streams as `text/plain`, `application/json` or not at all, and
        errors as streams. Only a body that begins like neither is what its label says.
        """
        begin = b""
        size = 0
        while any(field.startswith(begin) for field in _FIELDS):
            text = await self.read_any()
            size += len(text)
            if size > MAX_JSON_BYTES:
                raise AnswerTooLarge
            begin = (begin + text).lstrip(_BEFORE_TEXT)
            if not text:
                break
        self._begin = begin
        self.is_read = self.is_read and not begin
        if begin.startswith(_FIELDS):
            return True
        is_labeled = self._response.content_type == "text/event-stream"
        return is_labeled and not begin.startswith((b"{", b"[", b"<"))

    async def read_any(self) -> bytes:
        """Return the next piece of the body that has arrived; empty at its end."""
        text, self._begin = self._begin, b""
        if not text:
            text = next(self._pieces, b"")
            if text:  # of a packed chunk, which can have thousands: others run, too
                await asyncio.sleep(0)
        while not (text or self._has_arrived):
            self._pieces = self._unpack(await self._receive_chunk())
            text = next(self._pieces, b"")
        self.is_read = not text
        return text

    async def _receive_chunk(self) -> bytes:
        """Return the bytes that have arrived; empty at the end of the body.

        aiohttp puts the exception in front of the bytes that arrived before it.
        """
        content = self._response.content
        chunk = b""
        if not self._broke:
            scope = self._deadlines.scope()
            try:
                async with scope:
                    chunk = await content.readany()
                self._has_arrived = not chunk
            except _NETWORK_ERRORS:
                if scope.expired():
                    raise self._deadlines.timeout_error() from None
                self._broke = True
                # Without the exception the reader gives out what had arrived.
                content.set_exception(None)  # type: ignore[arg-type]
                chunk = content.read_nowait()
        if self._broke and not chunk:
            raise ConnectionFailed(_BROKE)
        self._arrived += len(chunk)
        if self._arrived > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        self._deadlines.bytes_arrived()
        return chunk

    def _unpack(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the pieces of the text that a chunk has; none is empty."""
        try:
            for text in self._unpacker.feed(chunk):
                self._has_text = True
                yield text
        except UnpackingError:
            if self._has_text:  # damaged on its way
                raise ConnectionFailed(_BROKE) from None
            raise _unreadable_answer(COMPRESSED) from None

    async def read_all(self, most_bytes: int) -> bytearray:
        """Return the body; raises AnswerTooLarge for more than `most_bytes`."""
        body = bytearray()
        chunk = await self.read_any()
        while chunk:
            body += chunk
            if len(body) > most_bytes:
                raise AnswerTooLarge
            chunk = await self.read_any()
        return body

    async def read_json(self, most_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the body as JSON."""
        body = await self.read_all(most_bytes)
        if json_weight(body) > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        try:
            return load_json(body)
        except ValueError:
            error = _unreadable_answer(UNREADABLE)
            if not body.strip():  # maybe a proxy whose server went away: it may pass
                error.failure = Failure()
            raise error from None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave arriving bytes with the operating system for a while.

        Otherwise the event loop wakes up for every packet although nothing is read. If
        aiohttp has stopped reading, because its buffer is full, it stays so. A body
        that has ended has no connection.
        """
        connection = self._response.connection
        transport = connection.transport if connection else None
        if transport is None or not transport.is_reading():
            yield
            return
        transport.pause_reading()
        try:
            yield
        finally:
            if not transport.is_closing():
                transport.resume_reading()

    async def drain(self) -> bytes:
        """Read the rest after the last event, so that the connection can be reused.

        Returns its beginning: a refused stream may tell its reason there.
        """
        rest = bytearray()
        with suppress(TimeoutError, ResponsesError):
            async with asyncio.timeout(_DRAIN_SECONDS):
                while not self.is_read:
                    text = await self.read_any()
                    if len(rest) < _MAX_ERROR_BODY:
                        rest += text
        return bytes(rest)

    async def response_object(self) -> JsonObject:
        """Return the body as the API's response object."""
        wire = as_mapping(await self.read_json())
        if isinstance(wire.get("output"), list):
            return wire
        error = find_error(wire)
        if error is not None:
            failure = Failure(self._response.status, error)
            raise ApiRefused(
                failure_sentence(error),
                failure,
                self.request_id,
                failure_fault(error),
            )
        refuse_completion(wire)
        raise _unreadable_answer(UNREADABLE)

    async def refusal(self) -> ApiRefused:
        """Return the error of a response with a bad status, with or without a body."""
        status = self._response.status
        headers = self._response.headers
        error = ApiError()
        if status >= 400:
            with suppress(TimeoutError, ResponsesError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    error = read_error_body(await self.read_all(_MAX_ERROR_BODY))
        should_retry = _SHOULD_RETRY.get(headers.get("x-should-retry", "").lower())
        retry_after = _retry_after(headers)
        if retry_after is None:
            retry_after = wait_in_words(error.message)
        if retry_after is None and status == _TOO_MANY_REQUESTS:
            retry_after = _reset_of_used_up(headers)
        failure = Failure(status, error, retry_after, should_retry)
        sentence = refusal_sentence(status, error)
        fault = refusal_fault(status, error)
        return ApiRefused(sentence, failure, self.request_id, fault)


_SHOULD_RETRY = {"true": True, "false": False}
_UNITS_OF_A_SECOND = {"retry-after-ms": 1000, "retry-after": 1}
"""The headers that state a wait as a number, the more exact one first."""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server wants us to wait: a number, or a date."""
    for name, units in _UNITS_OF_A_SECOND.items():
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / units
            if 0 <= seconds < float("inf"):
                return seconds
    with suppress(ValueError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - unix_seconds())
    return None


def _reset_of_used_up(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a rate limit is reset of which nothing remains.

    OpenAI's headers ("Rate limits in headers"): the reset of a limit of which something
    remains tells when all of it is there again, which nobody has to wait for.
    """
    waits: list[float] = []
    for limit in ("requests", "tokens"):
        remaining = headers.get(f"x-ratelimit-remaining-{limit}", "0")
        wait = read_duration(headers.get(f"x-ratelimit-reset-{limit}", ""))
        if remaining == "0" and wait:
            waits.append(wait)
    return max(waits, default=None)


_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ServerTimeoutError,
)
"""The last is of connecting: aiohttp is given no other limit."""


_STATUS_OK = 200
_FIRST_BAD_STATUS = 300
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500

_MAX_CERTIFICATES = 8
"""Files of certificates that are remembered; a client usually has one."""


class _Certificates(NamedTuple):
    """What was read of a file, and when that was changed, in nanoseconds."""

    changed: int
    context: ssl.SSLContext


class EncodedBody(NamedTuple):
    """A body that is no JSON object, and its media type."""

    content: bytes
    media_type: str


class Connections:
    """Sends requests; has one session for each event loop."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._certificates: dict[str, _Certificates] = {}

    def __del__(self) -> None:
        """Close open sessions: the last run that referenced this object has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def _pool(self) -> _Pool:
        """Return the pool of the running loop; drop those of closed loops."""
        running = asyncio.get_running_loop()
        if running not in self._pools:
            for loop in list(self._pools):
                if loop.is_closed():
                    self._pools.pop(loop, None)  # other threads do the same
            self._pools[running] = _Pool()
        return self._pools[running]

    @asynccontextmanager
    async def request(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any] | EncodedBody | None,
        deadlines: Deadlines,
    ) -> AsyncIterator[HttpResponse]:
        """Send `payload`, or a GET without one, and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut, UnreadableAnswer or
        InvalidRequest. Leaving early closes the connection, which stops the work at the
        server; to close a response that was read to its end has no effect. A
        redirection is a refusal, because the key would be sent along.
        """
        headers = endpoint.headers()
        method = "POST"
        body: bytes | bytearray | None = None
        if payload is None:
            method = "GET"
        elif isinstance(payload, EncodedBody):
            body = payload.content
            headers["Content-Type"] = payload.media_type
        else:
            body = await _encode(payload)
        url = endpoint.url(path)
        with self._pool().lend() as session:
            sent = session.request(
                method,
                url,
                # aiohttp would send `api-key` and a gateway's own header to another
                # origin; it drops `Authorization` alone (client.py, 3.14.5).
                allow_redirects=False,
                data=body,
                headers=headers,
                ssl=self._ssl_context(endpoint),
                proxy=proxy_for(endpoint, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
            with closing(await _receive(sent, endpoint, deadlines)) as response:
                body = None  # a large one must not stay while the answer streams
                answer = HttpResponse(response, deadlines)
                is_good = response.status < _FIRST_BAD_STATUS
                if method == "GET":  # one that has nothing to return has failed
                    is_good = response.status == _STATUS_OK
                if not is_good:
                    raise await answer.refusal()
                yield answer

    def _ssl_context(self, endpoint: Endpoint) -> ssl.SSLContext | bool:
        """Return the certificates to trust: True for those of the system, False for all.

        A file of certificates has one context, because connections are reused only for
        the same. A file that was changed replaces what was read of it.
        """
        path = endpoint.ca_bundle
        if not (endpoint.verify_ssl and path):
            return endpoint.verify_ssl
        try:
            changed = Path(path).stat().st_mtime_ns
            known = self._certificates.get(path)
            if known is None or known.changed != changed:
                context = ssl.create_default_context(cafile=path)
                known = _Certificates(changed, context)
                if len(self._certificates) >= _MAX_CERTIFICATES:
                    self._certificates.clear()
                self._certificates[path] = known
        except (OSError, ValueError):
            raise InvalidSetting(
                "ca_bundle", "The file of certificates to trust cannot be read."
            ) from None
        return known.context

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that may last longer than its run."""
        self._pool().start(work)

    async def post_quietly(self, endpoint: Endpoint, path: str) -> None:
        """Send an empty request, up to three times; ignore the result.

        Nobody waits for it, and a cancellation that does not arrive costs money.
        """
        for wait in (0.0, 0.5, 2.0):
            await asyncio.sleep(wait)
            limits = Deadlines(Timeouts(connect=10, first_event=20))
            try:
                async with self.request(endpoint, path, {}, limits):
                    return
            except ResponsesError as error:
                if _is_final_status(error.status):
                    return

    async def close(self) -> None:
        """Close the session of the running loop, after the work of `do_later`."""
        await self._pool().close()


def _is_final_status(status: int) -> bool:
    """Say whether another attempt would be answered alike; 0: there was no answer."""
    if status == _TOO_MANY_REQUESTS:
        return False
    return 0 < status < _SERVER_ERRORS


_ITEMS_AT_ONCE = 1000
"""Items that are encoded before others get the event loop."""


async def _encode(payload: JsonObject) -> bytearray:
    """Return a request as JSON; others run between the pieces of a long input.

    A lone surrogate, as of a broken copy, must not stop the request. An empty request
    has no body. What is written is copied into the body piece by piece: with copies of
    the whole text, a document of 45 MB took 240 MB.
    """
    if not payload:
        return bytearray()
    whole = _JSON.encode({**payload, "input": []})
    before, opening, after = whole.partition('"input": [')
    body = bytearray(f"{before}{opening}".encode(errors="replace"))
    items = payload["input"]
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        if start > 0:
            await asyncio.sleep(0)
            body += b", "
        text = _JSON.encode(items[start : start + _ITEMS_AT_ONCE])
        last = len(text) - 1  # without its brackets
        for begin in range(1, last, _CHARACTERS_AT_ONCE):
            piece = text[begin : min(begin + _CHARACTERS_AT_ONCE, last)]
            body += piece.encode(errors="replace")
    body += after.encode(errors="replace")
    return body


_JSON = json.JSONEncoder(ensure_ascii=False)
_CHARACTERS_AT_ONCE = 1024 * 1024


async def _receive(
    answer: Awaitable[aiohttp.ClientResponse], endpoint: Endpoint, deadlines: Deadlines
) -> aiohttp.ClientResponse:
    """Return the response, or raise our error for aiohttp's.

    A line break in the key or an odd host is a ValueError there.
    """
    scope = deadlines.scope()
    try:
        async with scope:
            return await answer
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.timeout_error() from None
        raise _connection_failed(error, endpoint.host) from None
    except ValueError:
        raise InvalidRequest(
            "The key, the address, the proxy or a header of the model's server contains "
            "an invalid character.",
            SettingFault(("api_key", "base_url", "proxy", "extra_headers")),
        ) from None


def _connection_failed(error: Exception, host: str) -> ConnectionFailed:
    """Return our error for one of aiohttp's."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            sentence = SENTENCES["refused"]["407"]
            fault = SettingFault(("proxy",))
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            sentence = f"The certificate of {host} is not trusted."
            fault = SettingFault(("base_url", "ca_bundle", "verify_ssl"))
        case _:
            sentence = f"The model's server at {host} cannot be reached. Try again."
            fault = SettingFault(("base_url",), "possible")
    was_sent = not isinstance(error, _NEVER_CONNECTED)
    return ConnectionFailed(sentence, was_sent=was_sent, fault=fault)


def _unreadable_answer(ending: Ending) -> UnreadableAnswer:
    """Return the error that ends a run so."""
    return UnreadableAnswer(ending.sentence, ending.fault)


def _path_step(text: str) -> str:
    """Return a text as one step of a path; a lone surrogate becomes a question mark."""
    return quote(text, safe="", errors="replace")


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    ids: tuple[str, str],
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    """Return the bytes of a file in a container; raises the same errors as `request`.

    `ids` are those of the container and of the file. More than `most_bytes` is an
    AnswerTooLarge; the rest is not read.
    """
    container_id, file_id = ids
    path = f"/containers/{_path_step(container_id)}/files/{_path_step(file_id)}/content"
    async with connections.request(endpoint, path, None, deadlines) as answer:
        return bytes(await answer.read_all(most_bytes))


# --------------------------------------------------------------------------------------
# openai_responses.loop.attempts
#
# One response: a request that is sent, then sent again, resumed or polled if that helps.
#
# A request is sent again only before something of its answer was shown: repaired, if the
# cause of the refusal is found, or unchanged, if waiting may help.
#
# A background response continues at the server when a connection breaks, so its stream is
# resumed behind the last event (OpenAI's guide "Background mode"). The response itself is
# requested if a stream brought nothing new, because there is no event for a cancelled
# response, and if the API refuses to resume, five minutes after the beginning.
# --------------------------------------------------------------------------------------


_THOUGHT_SHARE = 0.02
"""The part of `Limits.join_seconds` for which deltas of reasoning are joined: the answer
behind them must not wait."""


def _never_spent(_usages: Sequence[Usage], _output: Sequence[Item]) -> str:
    """Return no reason to end a run: without a budget nothing is used up."""
    return ""


class Limits(NamedTuple):
    """How a run behaves towards viewers and towards the server."""

    join_seconds: float = 0.05
    """The shortest time between two events that show more of an answer."""
    timeouts: Timeouts = Timeouts()
    retries: RetryPolicy = RetryPolicy()
    resuming: RetryPolicy = RetryPolicy(max_retries=12)
    """Of the requests in a row for the rest of a background response."""
    poll_seconds: float = 5.0
    """The wait while the server is still working on a background response."""
    most_bytes: int = MAX_ANSWER_BYTES
    """Of one response, counted by `json_weight`."""
    set_waiting: Callable[[bool], object] = ignore_report
    """Called with true when the server is waited for or speaks, else with false."""
    spent: Callable[[Sequence[Usage], Sequence[Item]], str] = _never_spent
    """Takes the usages of the run so far and the output of each response; returns why
    the run ends although tools are called, or nothing."""
    flex_falls_back: bool = False
    """Whether the standard tier, which costs twice as much, may answer where the flex
    tier has no capacity."""


class Attempts:
    """The attempts at each response of a run.

    This is the provider of the Responses API (`loop/run.py`).
    """

    def __init__(
        self, endpoint: Endpoint, connections: Connections, limits: Limits
    ) -> None:
        """Start the total limit of the run."""
        self.endpoint = endpoint
        self.connections = connections
        self.limits = limits
        self.deadlines = Deadlines(limits.timeouts, limits.set_waiting)
        self.usages: list[Usage] = []
        """Those of all attempts of the run."""
        self.skipped = Counter[str]()
        """The events of the run that cannot be read, by what they are."""
        self._call_ids: set[str] = set()
        """Those of all calls of the run."""

    async def generate(
        self, request: ResponsesRequest, first_index: int = 0
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send `request` and yield its events, until there is nothing more to try.

        The items of the response are numbered from `first_index`.
        """
        earlier_usages = len(self.usages)
        self.request = request
        self._call_ids |= find_call_ids(request.input)
        tool_names = added_tool_names(request.input)
        tool_names.update(as_text(tool.get("name")) for tool in request.tools or ())
        self._retries = 0
        self._repaired = 0
        self._thought: ItemAdded | None = None
        """The thought that is on the page before anything else of the response."""
        self._thought_parts = 0
        """How many parts of it are on the page."""
        while True:
            self.response = ResponseState(first_index, self._call_ids, tool_names)
            async with aclosing(self._attempt()) as events:
                async for event in events:
                    yield event
            status, wait = self._prepare_next_attempt()
            if status is None or not self.deadlines.allow(wait):
                break
            yield status
            self.limits.set_waiting(False)
            await asyncio.sleep(wait)
        if not self.has_shown:
            for event in (*self._end_thought(), *self._held):
                yield event
        self._end_if_used_up()
        yield ModelAnswer(
            ending=self.ending,
            request=self.request,
            items=tuple(self.response.items),
            usages=tuple(self.usages[earlier_usages:]),
            last_usage=self.response.usage,
            trace=self.trace,
            has_shown=self.has_shown,
        )

    async def _attempt(self) -> RunEvents:
        """Send the request once; yield what is shown of its answer.

        `error` then says why there is no answer, or only a part of it.
        """
        self.error: ResponsesError | None = None
        self.has_shown = False
        """Whether the attempt has shown more than a thought."""
        self._thinks = False
        """Whether the thought on the page is also that of this attempt."""
        self._earlier_parts = self._thought_parts
        """How many parts of that thought came from earlier attempts."""
        self._held: list[RunEvent] = []
        """The events of the attempt that are not shown yet."""
        try:
            async with aclosing(self._send(self.request)) as events:
                async for event in events:
                    for shown in self._show_or_hold(event):
                        yield shown
        except ResponsesError as caught:
            if self.response.ending is None:  # what follows the end is not missed
                self.error = caught
        if self.response.usage:
            self.usages.append(self.response.usage)

    def paused(self) -> AbstractContextManager[None]:
        """Stop the total limit while tools run or people decide."""
        return self.deadlines.paused()

    def _end_if_used_up(self) -> None:
        """End a run that wants to continue but has used up what `limits.spent` counts.

        Every response counts, also one that calls nothing.
        """
        output = self.response.output
        used_up = self.limits.spent(self.usages, output)
        wants_to_continue = any(
            is_call(item) or is_approval_request(item) for item in output
        )
        if used_up and wants_to_continue:
            self.response.ending = Ending("incomplete", sentence=used_up)

    def _show_or_hold(self, event: RunEvent) -> list[RunEvent]:
        """Return what is shown now; the rest waits for the first visible event.

        What waits leaves no trace if the request is sent again. Only the first thought is
        shown at once, up to its end: people see that the model is at work. Thinking takes
        longest, so most connections break there; another attempt then thinks on in the
        same place.
        """
        if self.has_shown or isinstance(event, Status):
            return [event]
        if not self._held:
            if isinstance(event, ItemAdded) and is_reasoning(event.item):
                if self._thought is None:
                    self._thought = event
                    self._thinks = True
                    return [event]
                if self._thought.output_index == event.output_index:
                    self._thinks = True
                    return []
            if self._is_of_thought(event) and isinstance(event, TextDelta):
                part = self._earlier_parts + event.part
                self._thought_parts = max(self._thought_parts, part + 1)
                return [event._replace(part=part)]
        self._held.append(event)
        # The end of the thought waits for what follows: it would be stored, and an
        # attempt that thinks again brings another one.
        if self._is_of_thought(event) or not _is_visible(event):
            return []
        self.has_shown = True
        shown = [*self._end_thought(), *self._held]
        self._held = []
        return shown

    def _is_of_thought(self, event: RunEvent) -> bool:
        """Say whether an event grows or ends the thought on the page."""
        if not self._thinks or not isinstance(event, TextDelta | ItemDone):
            return False
        return self._thought is not None and (
            event.output_index == self._thought.output_index
        )

    def _end_thought(self) -> list[RunEvent]:
        """Return the end of a thought that only an earlier attempt began."""
        if self._thought is None or self._thinks:
            return []
        return [ItemDone(self._thought.output_index, NO_THOUGHT)]

    def count_bytes(self, chunk: bytes) -> None:
        """Count what arrived of this response; raises AnswerTooLarge."""
        self.response.byte_count += json_weight(chunk)
        if self.response.byte_count > self.limits.most_bytes:
            raise AnswerTooLarge

    @property
    def ending(self) -> Ending:
        """How the response ended."""
        ending = self.response.ending or self._ending_without_event()
        sentence = self.endpoint.name_server(ending.sentence)
        sentence = name_asked_model(sentence, self.request.model)
        notice = notice_text(self._api_error.notice, self.endpoint.secrets)
        return ending._replace(sentence=f"{sentence} {notice}".strip())

    def _ending_without_event(self) -> Ending:
        """Return the ending of a response whose stream did not say how it ends."""
        has_begun = self.response.event_count > 0
        if self.error:
            return ending_of_exception(self.error, has_begun)
        return CUT if has_begun else UNREADABLE

    @property
    def _api_error(self) -> ApiError:
        """What the API said last: as the status of its answer, or in the stream."""
        if isinstance(self.error, ApiRefused):
            return self.error.error
        return self.response.trace.error

    @property
    def trace(self) -> Trace:
        """What the log needs to know about the last answer."""
        error = self.error
        trace = self.response.trace
        if isinstance(error, ApiRefused):
            trace = Trace(error.request_id, "", error.failure.status, error.error)
        trace = trace._replace(skipped=dict(self.skipped))
        if not trace.error.names_a_place:  # most runs, and a request may be large
            return trace
        subject = named_subject(self.request.sent(), trace.error)
        return trace._replace(subject=subject)

    def _send(self, request: ResponsesRequest) -> RunEvents:
        """Return the events of one attempt, which begins when they are read."""
        payload = request.payload()
        if self.endpoint.is_strict:
            payload = strict_payload(payload)
        if request.background:
            return _Background(self).events(payload)
        return _stream_response("/responses", payload, self)

    def _prepare_next_attempt(self) -> tuple[Status | None, float]:
        """Change the request if that may help.

        Returns the status to show before the next attempt, None if there is none, and
        the seconds to wait.
        """
        failure = _retriable_failure(self.error, self.response)
        if failure is None or self.has_shown:
            return None, 0.0
        is_unrefused_background = self.request.background and not self.response.refusal
        if is_unrefused_background and _may_run_on_server(self.error):
            return None, 0.0
        if self._may_leave_flex(failure.error):
            update = {"service_tier": "default"}
            self.request = self.request.model_copy(update=update)
            return Status(_STANDARD_TIER), 0.0
        if is_final(failure.error):
            return None, 0.0
        # What the refusal names is changed at once. Else the same bytes are sent again,
        # and only if that did not help less of the chat: a step that coincides with a
        # server's recovery must not look like a cure.
        sent = self.request.sent()
        trial = find_repair(sent, failure, self._repaired)
        if trial is not None:
            return self._repair(sent, trial), 0.0
        limits = self.limits.retries
        wait = retry_wait(limits, self._retries, failure, random_fraction())
        if wait is None:
            if not self._thinks:  # else the request was accepted
                trial = blind_repair(sent, failure)
            return (self._repair(sent, trial) if trial else None), 0.0
        self._retries += 1
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        sentence = f"{failure_status(failure)} Trying again in {seconds}."
        return Status(sentence, is_retry=True), wait

    def _may_leave_flex(self, error: ApiError) -> bool:
        """Say whether the standard tier may answer what the flex tier cannot."""
        is_flex = self.request.service_tier == "flex"
        allowed = self.limits.flex_falls_back
        return is_flex and allowed and error.code == FLEX_UNAVAILABLE

    def _repair(self, sent: SentRequest, trial: Trial) -> Status:
        """Change the request; return the status that tells it."""
        subject = named_subject(sent, trial.error)
        self._repaired += 1
        repairs = (*self.request.repairs, trial.repair)
        self.request = self.request.model_copy(update={"repairs": repairs})
        reason = f"{subject} {trial.error.message}".strip()
        return Status(trial.repair.message, trial, reason)


_STANDARD_TIER = (
    "The model's server has no flex capacity: answering at the standard tier, which costs "
    "twice as much."
)
_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
"""Ids that are safe in a path; other servers use base64 in their ids."""
_MAX_WAIT_FOR_ID = 60.0
"""Seconds that a response which nobody reads any more has to name its id."""
_FETCHING_REST = (
    "The connection to the model was lost: fetching the rest of the answer."
)


class _Background:
    """A background response, and how far it was read."""

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        loop = asyncio.get_running_loop()
        self._response_id: asyncio.Future[str] = loop.create_future()
        """Done as soon as the server has named the response."""
        self._last_sequence = -1
        """The number of the last event; -1 before the first."""
        self._last_seen_sequence = -1
        """What that was when the last request ended."""
        self._error: ResponsesError | None = None
        """That of the last request."""
        self._failures = 0
        """The requests in a row that brought nothing new."""
        self._resumable = True
        """Whether the API may still resume the stream."""
        self._is_polling = False
        """Whether the next request is for the response itself, not for its stream."""
        self._is_cancelled = False
        """Whether nothing is left to cancel, also of a response that is unknown now."""
        self._is_ignored = False
        """Whether the server answers as if it were asked for no background response."""

    def take(self, event: ServerSentEvent) -> bool:
        """Note an event that could be read; say whether it is new.

        The event is parsed twice; a background run has few events a second.
        """
        if event.data == END_OF_STREAM:
            return True
        wire = json.loads(event.data)
        self.note(wire.get("response"))
        # OpenAI and Azure repeat the parameter; vLLM answers with false.
        if as_mapping(wire.get("response")).get("background", True) is not True:
            self._is_ignored = True
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        if number <= self._last_sequence:
            return False
        self._last_sequence = number
        return True

    def note(self, response: object) -> None:
        """Remember the id of a response object, if it is a valid id."""
        response_id = as_text(as_mapping(response).get("id"))
        if _ID.fullmatch(response_id) and not self._response_id.done():
            self._response_id.set_result(response_id)

    async def events(self, payload: dict[str, Any] | None) -> RunEvents:
        """Send the request, feed its response to the state, and yield its run events.

        Once the response has an id, raises only ResponseLost, and TimedOut for the total
        limit. If the caller leaves before the end, the response is cancelled, because
        it would continue to cost money without a reader.
        """
        path = "/responses"
        try:
            while True:
                async with aclosing(self._request(path, payload)) as events:
                    async for event in events:
                        yield event
                if self._is_over(self._error):
                    break
                has_news = self._last_sequence != self._last_seen_sequence
                self._last_seen_sequence = self._last_sequence
                wait = self._wait_after(self._error, has_news)
                if not self._attempts.deadlines.allow(wait):
                    raise TimedOut("total_timeout")
                if has_news:
                    yield Status(_FETCHING_REST)
                await asyncio.sleep(wait)
                path = self._next_path()
                payload = None
        finally:
            self._abandon()

    async def _request(self, path: str, payload: dict[str, Any] | None) -> RunEvents:
        """Send one request and yield its run events; `_error` says why it failed."""
        self._error = None
        part = _stream_response(path, payload, self._attempts, self)
        try:
            first = await self._first_event(part)
            async with aclosing(part) as events:
                if first is not None:
                    yield first
                async for event in events:
                    yield event
        except ResponsesError as caught:
            self._error = caught

    def _is_over(self, error: ResponsesError | None) -> bool:
        """Say whether nothing more is requested; raises `error` if it is the reason."""
        if self._attempts.response.ending:
            return True
        if self._is_ignored:
            # The work ended with the connection, so it may be asked for again.
            error = error or ConnectionFailed(CUT.sentence)
            error.was_sent = False
            raise error
        if error is None:
            return not self._response_id.done()
        if error.is_final or not self._response_id.done():
            raise error
        return False

    def _next_path(self) -> str:
        """Return the path of the response, or of the rest of its stream."""
        path = f"/responses/{self._response_id.result()}"
        if self._is_polling:
            return path
        return f"{path}?stream=true&starting_after={self._last_sequence}"

    async def _first_event(self, part: RunEvents) -> RunEvent | None:
        """Return the first event of `part`, None if it has none.

        A response without an id could not be cancelled, so a `part` that is left before
        is read until there is one.
        """
        if self._response_id.done():
            return await anext(part, None)
        first = asyncio.ensure_future(anext(part, None))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self._attempts.connections.do_later(self._close(part, first))
            raise

    async def _close(self, part: RunEvents, first: asyncio.Future[Any]) -> None:
        """Wait until the response has an id, then close its stream and cancel it."""
        await asyncio.wait(
            {first, self._response_id},
            timeout=_MAX_WAIT_FOR_ID,
            return_when=asyncio.FIRST_COMPLETED,
        )
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await part.aclose()
        self._abandon()

    def _wait_after(self, error: ResponsesError | None, has_news: bool) -> float:
        """Return the seconds until the next request; raises ResponseLost.

        An answer without an end means that the server is still working on it. A stream
        that is too old to be resumed is followed by a request for the response itself.
        """
        was_polling = self._is_polling
        limits = self._attempts.limits
        if was_polling and error is None:
            self._failures = 0
            self._is_polling = not self._can_resume
            return limits.poll_seconds
        self._failures = 0 if has_news else self._failures + 1
        failure = Failure()
        if error and error.status and error.failure:
            failure = error.failure
        wait = retry_wait(limits.resuming, self._failures, failure, random_fraction())
        if wait is None and self._resumable and not was_polling:
            self._resumable = False
            wait = 0.0
        self._is_polling = not (has_news and self._can_resume)
        if wait is None:
            # The API does not know the response (any more): there is nothing to cancel.
            self._is_cancelled = error is not None and error.status == 404
            raise ResponseLost
        return wait

    @property
    def _can_resume(self) -> bool:
        """Whether the stream can be requested again behind its last event."""
        return self._resumable and self._last_sequence >= 0

    def _abandon(self) -> None:
        """Cancel the response once, unless it has ended or does not exist."""
        attempts = self._attempts
        if attempts.response.ending or self._is_cancelled or self._is_ignored:
            return
        if self._response_id.done():
            self._is_cancelled = True
            path = f"/responses/{self._response_id.result()}/cancel"
            connections = attempts.connections
            connections.do_later(connections.post_quietly(attempts.endpoint, path))


async def _stream_response(
    path: str,
    payload: dict[str, Any] | None,
    attempts: Attempts,
    background: _Background | None = None,
) -> RunEvents:
    """Send a request, feed the answer to its response, and yield its run events.

    Without a `payload` it requests a response, or the rest of its stream. A response
    that is still in progress yields nothing. Raises what `Connections.request` raises,
    AnswerTooLarge, and MalformedEvent if nothing of a stream can be read. Cancelling or
    closing it closes the connection.
    """
    state = attempts.response
    attempts.deadlines.start_attempt()
    async with attempts.connections.request(
        attempts.endpoint, path, payload, attempts.deadlines
    ) as answer:
        state.trace = Trace(answer.request_id, status=200)
        if not await answer.is_stream():
            response = await answer.response_object()
            for event in _feed_whole(response, state, background):
                yield event
            return
        reader = _StreamReader(answer, attempts, background)
        earlier_events = state.event_count
        while not (answer.is_read or state.is_over):
            try:
                async with asyncio.timeout(_SECOND_ANSWER if state.ending else None):
                    events, unreadable = await reader.read_batch()
            except TimeoutError:
                break
            for event in events:
                yield event
            if unreadable:
                raise unreadable
            await reader.gather_deltas(events)
        if reader.has_skipped and state.event_count == earlier_events:
            raise MalformedEvent
        for event in await reader.read_reason():
            yield event


_SECOND_ANSWER = 10.0
"""Seconds that a stream may be silent after the end of a response without any item."""


class _StreamReader:
    """Reads one streamed answer, batch by batch, and feeds it to its response.

    A batch is what has arrived meanwhile. Reading less often makes long answers cheap:
    one pass handles all its deltas. No bytes of the wire are held between two batches.
    """

    def __init__(
        self,
        answer: HttpResponse,
        attempts: Attempts,
        background: _Background | None,
    ) -> None:
        self._answer = answer
        self._attempts = attempts
        self._background = background
        # A background response is resumed behind the number of its last event.
        self._decoder = EventStreamDecoder(joins_deltas=background is None)
        self.has_skipped = False
        """Whether an event was left out that cannot be read."""
        self._unreadable: UnreadableAnswer | None = None
        self._now = asyncio.get_running_loop().time
        self._read_at = self._now()

    async def read_batch(self) -> tuple[list[RunEvent], UnreadableAnswer | None]:
        """Wait for bytes; return their run events, up to what is of another API."""
        chunk = await self._answer.read_any()
        self._attempts.count_bytes(chunk)
        self._read_at = self._now()
        batch = self._decoder.feed(chunk) if chunk else self._decoder.close()
        earlier_events = self._attempts.response.event_count
        fed = self._feed(batch)
        if self._attempts.response.event_count > earlier_events:
            self._attempts.deadlines.event_arrived()
        return fed

    async def gather_deltas(self, events: Sequence[RunEvent]) -> None:
        """Wait for a moment if the last event is a delta: more of them will follow.

        The first delta after a pause is never delayed.
        """
        last = events[-1] if events else None
        if not isinstance(last, TextDelta):
            return
        share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
        spent = self._now() - self._read_at
        seconds = self._attempts.limits.join_seconds * share - spent
        with self._answer.paused():
            await asyncio.sleep(max(0.0, seconds))

    async def read_reason(self) -> list[RunEvent]:
        """Return the run events behind the last event of a refused stream: its reason.

        Nothing else of an answer that has ended is read.
        """
        rest = await self._answer.drain()
        if self._attempts.response.refusal is None:
            return []
        batch = [*self._decoder.feed(rest), *self._decoder.close()]
        events, _ = self._feed(batch)
        return events

    def _feed(
        self, batch: Sequence[ServerSentEvent]
    ) -> tuple[list[RunEvent], UnreadableAnswer | None]:
        """Return the run events of `batch`, up to the first one of another API."""
        self._unreadable = None
        run_events: list[RunEvent] = []
        for event in join_deltas(self._parse(batch)):
            run_events += self._attempts.response.feed(event)
        return run_events, self._unreadable

    def _parse(self, batch: Iterable[ServerSentEvent]) -> Iterator[StreamEvent]:
        """Yield the new events of `batch`; `_unreadable` says why it ends early.

        An event that cannot be read is left out: proxies keep a connection alive with
        an empty `data:` or a word, and the last snapshot repeats what one lost line had.
        """
        for wire_event in batch:
            try:
                parsed = parse_event(wire_event)
            except MalformedEvent:
                self.has_skipped = True
                self._attempts.skipped[describe_unreadable(wire_event)] += 1
                continue
            except UnreadableAnswer as error:
                self._unreadable = error
                return
            if self._background is None or self._background.take(wire_event):
                yield parsed


def _feed_whole(
    response: JsonObject, state: ResponseState, background: _Background | None
) -> list[RunEvent]:
    """Feed an answer in one piece to its response; return its run events.

    While the server is working on it, there are none.
    """
    status = str(response.get("status") or "completed")
    is_in_progress = status in ("queued", "in_progress")
    if background is not None:
        background.note(response)
    elif is_in_progress:
        # Sent again, it would be paid twice; without a background request, the server
        # need not keep the response.
        raise UnreadableAnswer(QUEUED.sentence)
    if is_in_progress:
        return []
    return state.feed(FinalResponse(status, response))


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})
"""Statuses of a gateway in front of the API that got no answer in time.

520 to 524 are Cloudflare's own.
"""


def _retriable_failure(
    error: ResponsesError | None, state: ResponseState
) -> Failure | None:
    """Return why a response that showed nothing may be requested again.

    A stream without any event is one that cannot be read.
    """
    if state.refusal:
        return Failure(200, state.refusal)
    if error:
        return error.failure
    if state.ending:
        return None
    if state.event_count == 0:
        return MalformedEvent.failure
    return Failure()


def _is_visible(event: RunEvent) -> bool:
    """Say whether the page draws something for an event."""
    if isinstance(event, ResponseDone):
        return False
    if not isinstance(event, ItemAdded | ItemDone):
        return True
    is_text = item_type(event.item) in ("message", "reasoning")
    return not is_text or has_text(event.item)


def _may_run_on_server(error: ResponsesError | None) -> bool:
    """Say whether the server may be working on the request in spite of `error`.

    A background response whose id is unknown continues; sent again, it would be billed
    twice. So it is sent again only if nothing arrived at the server or the API itself
    refused it. The answer of a gateway does not tell what happened behind it.
    """
    if error is None or error.was_sent:
        return True
    is_asked_to_retry = error.failure and error.failure.should_retry
    return error.status in _GATEWAY_STATUS and not is_asked_to_retry


# --------------------------------------------------------------------------------------
# openai_responses.loop.arguments
#
# Checks the arguments that a model gives a function against the function's schema.
#
# Only keywords that models get wrong are checked: types, required properties, enums,
# items and choices. The tool itself checks the others.
# --------------------------------------------------------------------------------------


_ODD_SCHEMA = (TypeError, AttributeError, ValueError)
"""Errors of reading a schema that is not valid; servers send such schemas."""

_MAX_DEPTH = 40
"""Levels of a value that are checked; deeper ones are the tool's to check."""
_MAX_WORK = 200_000
"""Characters, entries and steps that one check may read or take (`JsonBudget`).

Arguments that need more are given to the tool as they are.
"""
_STEP = 20
"""The work of a comparison in addition to what it reads."""
_MAX_SHOWN_CHOICES = 20
_MAX_SHOWN_CHARACTERS = 60
_READ_KEYWORDS = ("properties", "required", "enum", "type", "allOf", "anyOf", "oneOf")


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_json_number,
    "integer": lambda value: is_json_number(value) and value == int(value),
}


class _Comparison(NamedTuple):
    """A value, the part of the schema that it has to match, and its path."""

    value: Any
    node: Any
    path: str


class _SchemaCheck(NamedTuple):
    """Checks values against the parts of one schema, as long as the budget lasts.

    Each value may be compared with each part, which is why there is a budget. A schema
    can refer to the same part several times, and to itself, so `errors` remembers the
    result of each comparison by path and by the identity of value and part; both must
    outlive the check. If it is `lenient`, null is allowed for every optional property.
    """

    root: JsonObject
    budget: JsonBudget
    errors: dict[tuple[str, int, int], str]
    lenient: bool = False

    def pay_for(self, value: Any, node: JsonObject, path: str = "") -> None:
        """Pay for comparing a value with a part; raises ValueError at the limit."""
        size = _STEP + len(path)
        for keyword in _READ_KEYWORDS:
            part = node.get(keyword)
            if isinstance(part, list | dict):
                size += len(part)
        if isinstance(value, list | dict):
            size += len(value)
            if "enum" in node or "const" in node:
                # Each choice is compared with the whole value.
                size *= json_size(value, self.budget.left)
        self.budget.spend(size)

    def find_error(self, value: Any, node: Any, path: str = "", depth: int = 0) -> str:
        """Return the path and the error there; empty if `value` is valid for `node`."""
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            return ""
        compared = (path, id(value), id(node))
        if compared not in self.errors:
            self.errors[compared] = ""  # a schema that refers to itself ends here
            self.errors[compared] = self._compare(value, node, path, depth)
        return self.errors[compared]

    def _compare(self, value: Any, node: JsonObject, path: str, depth: int) -> str:
        """Compare a value with a node that it was not compared with yet."""
        self.pay_for(value, node, path)
        if value is None and node.get("nullable") is True:
            return ""
        if "$ref" in node:
            target = resolve_reference(self.root, node["$ref"])
            return self.find_error(value, target, path, depth + 1)
        error = _find_own_error(value, node, path)
        if error:
            return error
        for inner in self._inner_comparisons(value, node, path):
            error = self.find_error(inner.value, inner.node, inner.path, depth + 1)
            if error:
                return error
        options = node.get("anyOf") or node.get("oneOf") or ()
        for option in options:
            if not self.find_error(value, option, path, depth + 1):
                return ""
        return f"{path or 'object'} fits none of its forms" if options else ""

    def _inner_comparisons(
        self, value: Any, node: JsonObject, path: str
    ) -> Iterator[_Comparison]:
        """Yield what stands inside of a value, and the value with each `allOf`."""
        items = node.get("items")
        if isinstance(value, Mapping):
            yield from self._properties(value, node, path)
        elif isinstance(value, list) and isinstance(items, Mapping):
            for index, entry in enumerate(value):
                yield _Comparison(entry, items, f"{path}[{index}]")
        for part in node.get("allOf") or ():
            yield _Comparison(value, part, path)

    def _properties(
        self, value: JsonObject, node: JsonObject, path: str
    ) -> Iterator[_Comparison]:
        """Yield the listed properties that an object has.

        A lenient check skips the nulls of optional ones.
        """
        properties = node.get("properties") or {}
        required = set(node.get("required") or ())
        for name in properties:
            if name not in value:
                continue
            may_be_null = self.lenient and name not in required
            if value[name] is not None or not may_be_null:
                own_path = _join_path(path, name)
                yield _Comparison(value[name], properties[name], own_path)


def _find_own_error(value: Any, node: JsonObject, path: str) -> str:
    """Return the error of a value itself: its type, its choice, its missing keys."""
    shown_path = path or "object"
    kinds = json_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{shown_path} must be {_join_with_or(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not _is_one_of(value, allowed):
        # One more than is shown: the list then says that there are others.
        first_choices = allowed[: _MAX_SHOWN_CHOICES + 1]
        words = _join_with_or([_quote(choice) for choice in first_choices])
        return f"{shown_path} must be one of {words}"
    if not isinstance(value, Mapping):
        return ""
    return _find_missing_key(value, node.get("required") or (), path)


def _find_missing_key(value: JsonObject, required: Sequence[object], path: str) -> str:
    """Return the error of the first required key that is missing, if any."""
    for name in required:
        if name not in value:
            return f"{_join_path(path, str(name))} is missing"
    return ""


def _is_one_of(value: object, choices: Sequence[object]) -> bool:
    """Compare as JSON does: true is not 1."""
    for choice in choices:
        is_same_kind = isinstance(value, bool) is isinstance(choice, bool)
        if is_same_kind and value == choice:
            return True
    return False


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _join_with_or(words: Sequence[str]) -> str:
    """Return words as a list with "or"; long ones and long lists end in dots."""
    shown = [_shorten(word) for word in words[:_MAX_SHOWN_CHOICES]]
    listed = " or ".join(shown)
    return f"{listed} ..." if len(words) > _MAX_SHOWN_CHOICES else listed


def _shorten(word: str) -> str:
    if len(word) <= _MAX_SHOWN_CHARACTERS:
        return word
    return word[: _MAX_SHOWN_CHARACTERS - 3] + "..."


def _quote(value: object) -> str:
    """Return a value as a model reads it, with the beginning of a long text."""
    if isinstance(value, str):
        return repr(value[:_MAX_SHOWN_CHARACTERS])
    return short_repr(value)


def check_arguments(
    arguments: object, schema: JsonObject
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments to call a function with, and the error in them, if any.

    Nulls that mean "not given" are left out. A null means that if its property is
    optional and must not be null itself; in a choice, the option that the model chose
    decides. The error is a sentence for the model.
    """
    if arguments is None:  # some models write null for none
        arguments = {}
    if not isinstance(arguments, Mapping):
        return {}, "The arguments must be a JSON object."
    kept = dict(arguments)
    error = ""
    with suppress(*_ODD_SCHEMA):
        json_size(schema, LARGEST_SCHEMA)  # raises ValueError for a larger one
        check = _SchemaCheck(schema, JsonBudget(_MAX_WORK), {})
        kept = _drop_nulls(arguments, schema, check, 0)
        error = check.find_error(kept, schema)
    complaint = f"The argument {error}." if error else None
    return kept, complaint


def _drop_nulls(value: Any, node: Any, check: _SchemaCheck, depth: int) -> Any:
    """Return a value without the nulls that mean "not given", at any depth."""
    if depth > _MAX_DEPTH or not isinstance(value, Mapping | list):
        return value
    forms = _applicable_schemas(value, node, check)
    if isinstance(value, Mapping):
        return _drop_property_nulls(value, forms, check, depth)
    items = {"allOf": [form["items"] for form in forms if "items" in form]}
    return [_drop_nulls(entry, items, check, depth + 1) for entry in value]


def _drop_property_nulls(
    value: JsonObject, forms: Sequence[JsonObject], check: _SchemaCheck, depth: int
) -> dict[Any, Any]:
    """Return an object without nulls of optional properties that must not be null."""
    known = _known_properties(value, forms)
    required: set[str] = set()
    for form in forms:
        required |= set(form.get("required") or ())
    # With errors of its own: `known` is made here, and remembered errors hold only as
    # long as the parts that they are about.
    null_check = check._replace(errors={})
    kept: dict[Any, Any] = {}
    for name, entry in value.items():
        may_be_dropped = entry is None and name in known and name not in required
        if may_be_dropped and null_check.find_error(None, known[name]):
            continue
        kept[name] = _drop_nulls(entry, known.get(name), check, depth + 1)
    return kept


def _known_properties(
    value: JsonObject, forms: Sequence[JsonObject]
) -> dict[str, dict[str, list[Any]]]:
    """Return the schemas of the keys that a value has, joined over all forms."""
    known: dict[str, dict[str, list[Any]]] = {}
    for form in forms:
        properties = form.get("properties") or {}
        for name in properties:
            if name in value:
                known.setdefault(name, {"allOf": []})["allOf"].append(properties[name])
    return known


def _applicable_schemas(value: Any, node: Any, check: _SchemaCheck) -> list[JsonObject]:
    """Return a schema and all that it joins to itself; of a choice, one option."""

    def choose(options: list[Any]) -> list[Any]:
        """Return the option that the value fits; all options if it fits none."""
        lenient = check._replace(errors={}, lenient=True)
        for option in options:
            if not lenient.find_error(value, option):
                return [option]
        return options

    def parts_of(part: JsonObject) -> list[Any]:
        check.pay_for(value, part)
        return schema_parts(check.root, part, choose)

    return joined_schemas(node, parts_of)


# --------------------------------------------------------------------------------------
# openai_responses.loop.spending
#
# What a run may take, and what it has taken so far.
#
# If the host makes some calls and asks again with their outputs, the new run continues
# from what the earlier rounds of the same answer took. A task that a run delegates has a
# budget of its own, and counts for the run as well.
# --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run; 0 `seconds` or `tokens` mean no limit.

    `rounds` counts the responses that may call tools. The calls of the last one are
    refused, so that the model hears of the limit; those of an only one are made. In
    both cases one response without tools follows. `seconds` includes the model and the
    tools that run here, but not the time that people need to decide.
    """

    rounds: int = 10
    calls: int = 100
    seconds: float = 0.0
    tokens: int = 0


class EarlierSpending(NamedTuple):
    """What earlier rounds of the same answer took, in other runs."""

    rounds: int = 0
    calls: int = 0
    usage: Usage | None = None
    seconds: float = 0.0


class Spending:
    """What a run has taken so far, compared with its budget.

    `parent` is the spending of the run that delegated this task.
    """

    def __init__(self, budget: Budget, parent: Self | None = None) -> None:
        """Start the clock."""
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        """The sum without earlier rounds."""
        self.last_usage: Usage | None = None
        """That of the last response."""
        self.usages: list[Usage] = []
        """One for each response; all earlier rounds together are the first one."""
        self.delegated_usage: Usage | None = None
        """That of tasks since it was last taken."""
        self._budget = budget
        self._parent = parent
        self._stop: RunDone | None = None
        """The end of a run that was stopped."""
        self._earlier_usage: Usage | None = None
        self._now = asyncio.get_running_loop().time
        self._started_at = self._now()
        """By the event loop's clock; each pause moves it ahead by its length."""
        self._paused_at = 0.0
        self._pauses = 0

    def add_earlier(self, earlier: EarlierSpending) -> None:
        """Count what earlier rounds took."""
        self.rounds = earlier.rounds
        self.calls = earlier.calls
        self._earlier_usage = earlier.usage
        self._started_at -= earlier.seconds
        if earlier.usage is not None:
            self.usages.append(earlier.usage)

    def begin_round(self) -> int:
        """Count a response that is requested; return its number, from 1."""
        self.rounds += 1
        return self.rounds

    def add_response(self, usages: Iterable[Usage], last_usage: Usage | None) -> None:
        """Count the attempts at one response."""
        for usage in usages:
            self._add(usage)
            if self._parent:
                self._parent.add_delegated(usage)
        self.last_usage = last_usage

    def add_delegated(self, usage: Usage) -> None:
        """Count a response of a task."""
        self._add(usage)
        self.delegated_usage = add_usage(self.delegated_usage, usage)

    def take_delegated(self) -> Usage | None:
        """Return what tasks used since it was last taken."""
        taken = self.delegated_usage
        self.delegated_usage = None
        return taken

    def _add(self, usage: Usage) -> None:
        self.usage = add_usage(self.usage, usage)
        self.usages.append(usage)

    @property
    def total_usage(self) -> Usage:
        """The tokens of all rounds, earlier ones included."""
        return add_usage(self._earlier_usage, self.usage) or Usage()

    @property
    def own_usages(self) -> list[Usage]:
        """Those of the responses of this run, without earlier rounds."""
        if self._earlier_usage is None:
            return self.usages
        return self.usages[1:]

    @property
    def seconds(self) -> float:
        """The time so far, earlier rounds included and pauses left out."""
        now = self._paused_at if self._pauses else self._now()
        return now - self._started_at

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, None without a limit."""
        if self._budget.seconds <= 0:
            return None
        return max(0.0, self._budget.seconds - self.seconds)

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, self._budget.calls - self.calls)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Count no time while a person decides.

        Calls run in parallel, so several pauses can overlap: the clock stands still from
        the beginning of the first one to the end of the last one.
        """
        if self._pauses == 0:
            self._paused_at = self._now()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._started_at += self._now() - self._paused_at

    def limit_of_round(self) -> SpentLimit | None:
        """Return the limit that keeps the last round from calling tools, if any."""
        if self.rounds > self._budget.rounds:
            return "rounds"
        return self._spent_limit()

    def limit_of_calls(self) -> SpentLimit | None:
        """Return the limit that refuses the calls of the last round, if any."""
        max_rounds = self._budget.rounds
        is_last_of_many = self.rounds == max_rounds and max_rounds > 1
        if is_last_of_many or self.rounds > max_rounds:
            return "rounds"
        return self._spent_limit()

    def _spent_limit(self) -> SpentLimit | None:
        """Return which of time and tokens is used up, here or in the run above a task."""
        if self._parent:
            limit = self._parent._spent_limit()
            if limit:
                return limit
        if self.seconds_left == 0:
            return "seconds"
        max_tokens = self._budget.tokens
        if max_tokens > 0 and self.total_usage.total >= max_tokens:
            return "tokens"
        return None

    def stop(self, ended: RunDone) -> None:
        """End the run, the run above it and all tasks once their running calls end."""
        if self._parent:
            self._parent.stop(ended)
        else:
            self._stop = ended

    @property
    def stopped(self) -> RunDone | None:
        """The end of a run of this answer that was stopped; then none continues."""
        return self._parent.stopped if self._parent else self._stop


# --------------------------------------------------------------------------------------
# openai_responses.loop.tools
#
# Calls of tools: who may run them, how they run, and what they return.
#
# The first approval rule that matches a tool's name applies. A rule that matches only
# another name of the tool applies as well if it is stricter, and so does each rule that
# may match a name of which only a part is known. A call that needs an approval and does
# not get one is denied.
#
# Every call gets an output. For each failure the model gets one of our messages. That of
# an exception quotes it, so that the model can correct its call: without secrets, and cut.
# The log has more of it.
# --------------------------------------------------------------------------------------


Approval = Literal["auto", "ask", "deny"]
ApprovalRules = Sequence[tuple[str, Approval]]
_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")

_Value = TypeVar("_Value")

Ask = Callable[[str, str, JsonObject], Awaitable[bool]]
"""Shows a person the id, name and arguments of a call; only True approves it."""


def _no_other_names(_name: str) -> Iterable[str]:
    return ()


def _matches_nothing(_name: str, _pattern: str) -> bool:
    return False


def _ask_about_remote(_request: JsonObject) -> Approval:
    return "ask"


@dataclass(frozen=True, slots=True)
class Approver:
    """The rules of a request, and the way to ask a person if they do not decide."""

    rules: ApprovalRules = ()
    default_rule: Approval = "auto"
    ask: Ask | None = None
    log: Callable[[str], object] = ignore_report
    other_names: Callable[[str], Iterable[str]] = _no_other_names
    """The other names of a tool."""
    may_match: Callable[[str, str], bool] = _matches_nothing
    """Whether a pattern may match a name of a tool that is not known in full."""
    remote_default: Callable[[JsonObject], Approval] = _ask_about_remote
    """What holds for a call of a remote server that no rule is about; it is described
    by the `mcp_approval_request`."""

    def rule_for(self, name: str, via: str = "") -> Approval:
        """Return the strictest rule of a tool and of `via`, which passes the call on.

        Of the rules that match `name` only the first counts, so that a rule for one
        tool can allow what a later one for many denies.
        """
        strictest = _first_match(self.rules, name) or self.default_rule
        unmatched = [rule for rule in self.rules if not fnmatchcase(name, rule[0])]
        for other_name in (via, *self.other_names(name)):
            other_rule = _first_match(unmatched, other_name) or "auto"
            strictest = max(strictest, other_rule, key=_STRICTNESS.index)
        for pattern, possible_rule in unmatched:
            if self.may_match(name, pattern):
                strictest = max(strictest, possible_rule, key=_STRICTNESS.index)
        return strictest

    async def refusal(
        self, call_id: str, name: str, arguments: JsonObject, via: str = ""
    ) -> str | None:
        """Return the message for the model if a call is denied, else None."""
        match self.rule_for(name, via):
            case "auto":
                return None
            case "deny":
                return f"The administrator does not allow {name}. Do not call it again."
        try:
            if self.ask and await self.ask(call_id, name, arguments):
                return None
        except Exception as error:  # the dialog failed, which is no approval
            self.log(f"nobody could be asked about {name}: {describe_exception(error)}")
        return f"The user did not approve this call of {name}. Continue without it."


def _first_match(rows: Iterable[tuple[str, _Value]], name: str) -> _Value | None:
    """Return the value of the first pattern that matches a name."""
    for pattern, value in rows:
        if fnmatchcase(name, pattern):
            return value
    return None


class ToolResult(NamedTuple):
    """The result of a tool: an `output` for the model, and a `card`.

    A card holds what the host shows with it (`files`, `embeds`).
    """

    output: str | list[Item]
    failed: bool = False
    card: JsonObject = NO_CARD


CallKind = Literal["limited", "question", "task"]
"""What limits a call: the limits of the toolset, nothing, or limits of its own.

A `question` waits for a person, and its time does not count for the run. A `task` makes
calls itself.
"""

Pause = Callable[[], AbstractContextManager[None]]
"""Stops the clock of a run while a person decides."""


class CallableTools(Protocol):
    """The tools of a request, by their own names or by those sent to the API."""

    def parameters(self, name: str) -> JsonObject | None:
        """Return the schema of a tool's arguments, or None for an unknown tool."""

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of the tool that a call will run, and its arguments.

        A tool that passes calls on names another tool in its arguments. Returns None if
        it names none.
        """

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; an exception counts as a failure of the tool."""


class CallLimits(NamedTuple):
    """Limits of calls: how many at once, how many seconds, how much output."""

    at_once: int = 8
    seconds: float = 120.0
    """Of one call."""
    batch_seconds: float = 600.0
    """Of all calls of a response together."""
    characters: int = 100_000
    """Of each text of an output."""
    own: Sequence[tuple[str, float]] = ()
    """Seconds by patterns of names; the first match replaces both limits above."""

    def own_seconds(self, name: str) -> float | None:
        """Return the limit that a tool has of its own, if any."""
        return _first_match(self.own, name)


class CallTexts(NamedTuple):
    """What the model reads of a call that failed or was not made; `{tool}` is its name.

    `failed` is about an exception, which is the `{cause}`, the others about the limits
    of a budget.
    """

    failed: str = "Error: {tool} failed: {cause}"
    rounds: str = (
        "Error: {tool} was not run: the limit of tool rounds is reached. Answer "
        "without it."
    )
    calls: str = (
        "Error: {tool} was not run: the limit of tool calls is reached. Answer "
        "without it."
    )
    seconds: str = (
        "Error: {tool} was not run: the time limit is reached. Answer without it."
    )
    tokens: str = (
        "Error: {tool} was not run: the limit of tokens is reached. Answer without it."
    )

    def describe(self, name: str, limit: SpentLimit) -> str:
        """Return that a limit keeps a tool from being called."""
        text: str = getattr(self, limit)
        return text.replace("{tool}", name)

    def describe_failure(self, name: str, cause: str) -> str:
        """Return that a tool raised an exception."""
        return self.failed.replace("{tool}", name).replace("{cause}", cause)

    def refuse(self, call: Item, limit: SpentLimit) -> ToolResult:
        """Return the result of a call that a limit keeps from being made."""
        return ToolResult(self.describe(_called_name(call), limit), failed=True)


class Verdict(NamedTuple):
    """What happens to a call: it is refused, left to the host, or made here."""

    call: Item
    refusal: ToolResult | None = None
    is_left: bool = False

    @property
    def is_made(self) -> bool:
        """Whether the call runs here."""
        return self.refusal is None and not self.is_left


class Judgment(NamedTuple):
    """What happens to the calls of a response, in their order.

    A `question` is a call that the host shows to a person. With it no call is made yet,
    and none is shown: the run ends, and another one continues with the person's answer.
    """

    verdicts: Sequence[Verdict] = ()
    question: Item | None = None

    @property
    def is_open(self) -> bool:
        """Whether the host has to continue: it makes a call, or asks a person."""
        return self.question is not None or any(
            verdict.is_left for verdict in self.verdicts
        )


class CallJudge(Protocol):
    """Decides about the calls of a response before any of them is made."""

    @property
    def holds_calls(self) -> bool:
        """Whether calls are shown only after the judgment.

        A host that runs every call it sees must not see one before it is approved.
        """

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Return what happens to each of the calls, which the budget allows."""


class Toolset(NamedTuple):
    """What a run needs to answer calls and approval requests itself."""

    tools: CallableTools
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    log: Callable[[str], object] = ignore_report
    """Takes lines about failed tools."""
    redacted: Callable[[str], str] = redact
    """Returns a text for the model without what only the server may know."""
    budget: Budget = Budget()
    carries_reasoning: bool = True
    """Whether the model gets its reasoning again between its calls."""
    runs_calls: bool = True
    """Whether calls run here; if not, all are left to the host."""
    texts: CallTexts = CallTexts()
    judge: CallJudge | None = None
    """Without one every call is made that the approver allows."""


def output_item(call: Item, answer: ToolResult) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def tool_error(message: str) -> ToolResult:
    """Return the result of a failed call, as a message for the model."""
    return ToolResult(f"Error: {message}", failed=True)


class _ReadyCall(NamedTuple):
    """A call that may run: its tool, and its checked arguments."""

    name: str
    arguments: dict[str, Any]
    kind: CallKind
    via: str = ""
    """The tool that was called, if that passes the call on."""


class _StartedCall(NamedTuple):
    """A call whose task runs, or waits for its turn."""

    item: Item
    task: asyncio.Task[ToolResult]
    has_own_time: bool
    """Whether the time of the batch does not count for it."""


async def run_calls(
    calls: Sequence[Item], toolset: Toolset, pause: Pause = nullcontext
) -> AsyncGenerator[tuple[Item, ToolResult], None]:
    """Run `calls` in parallel; yield each with its result, in the order of the calls.

    The order is kept because a host that stores results as they arrive would send them
    in another order in the next request. A check may take some milliseconds, so others
    run between two. When the time is over, all calls are cancelled at once, and no
    waiting one starts. Closing the generator cancels running calls.
    """
    batch = _Batch(toolset, pause)
    started: list[_StartedCall] = []
    try:
        for item in calls:
            started.append(batch.start(item))
            await asyncio.sleep(0)
        for call in started:
            await batch.wait(call)
            if not call.task.done():
                _cancel(other for other in started if not other.has_own_time)
            yield call.item, _result_of(call, toolset.limits)
    finally:
        _cancel(started)


def _result_of(call: _StartedCall, limits: CallLimits) -> ToolResult:
    """Return the result of a call; an error if the time of the batch is used up."""
    if call.task.done() and not call.task.cancelled():
        return call.task.result()
    why = f"was stopped: the tools took over {limits.batch_seconds:g} s."
    return tool_error(f"{_called_name(call.item)} {why}")


def _cancel(calls: Iterable[_StartedCall]) -> None:
    for call in calls:
        call.task.cancel()


class _Batch:
    """The calls of a round.

    One question is put to the person at a time, under the lock `_asking`. Meanwhile the
    time of the batch stops: `_end`, its end by the loop's clock, moves ahead.
    """

    def __init__(self, toolset: Toolset, pause: Pause) -> None:
        self._toolset = toolset
        self._pause = pause
        self._slots = asyncio.Semaphore(toolset.limits.at_once)
        self._asking = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + toolset.limits.batch_seconds

    def start(self, item: Item) -> _StartedCall:
        """Check a call and start its task."""
        checked = _check_call(item, self._toolset.tools)
        task = asyncio.create_task(self.answer(item["call_id"], checked))
        has_own_time = False
        if isinstance(checked, _ReadyCall):
            own_seconds = self._toolset.limits.own_seconds(checked.name)
            has_own_time = checked.kind != "limited" or bool(own_seconds)
        return _StartedCall(item, task, has_own_time)

    async def wait(self, call: _StartedCall) -> None:
        """Wait until a call is done or the time of the batch is used up."""
        task = call.task
        if call.has_own_time:
            await asyncio.wait([task])
        while not task.done():
            seconds_left = self._end - self._loop.time()
            if seconds_left > 0:
                await asyncio.wait([task], timeout=seconds_left)
            elif self._asking.locked():
                # A person is asked: wait for the answer, which moves the end.
                async with self._asking:
                    continue
            else:
                return

    async def answer(self, call_id: str, call: _ReadyCall | ToolResult) -> ToolResult:
        """Return the result of a call: ask a person if a rule says so, then run it."""
        if isinstance(call, ToolResult):
            return call
        approver = self._toolset.approver
        asks_person = approver.rule_for(call.name, call.via) == "ask"
        question_turn = self._asking if asks_person else nullcontext()
        async with question_turn:
            began = self._loop.time()
            try:
                with self._pause():
                    refusal = await approver.refusal(
                        call_id, call.name, call.arguments, call.via
                    )
            finally:
                self._end += self._loop.time() - began
        if refusal is not None:
            return tool_error(refusal)
        match call.kind:
            case "limited":
                async with self._slots:
                    return await _call_tool(call, self._toolset)
            case "question":
                with self._pause():
                    return await _call_tool(call, self._toolset)
            case "task":
                return await _call_tool(call, self._toolset)


def _check_call(call: Item, tools: CallableTools) -> _ReadyCall | ToolResult:
    """Return the call that will run, or the error for the model.

    If a tool passes calls on, its own arguments are checked, then those of the tool
    that it names.
    """
    name = _called_name(call)
    try:
        arguments = read_arguments(call)
    except ValueError:
        why = "its arguments are not valid JSON. Send them again, whole."
        return tool_error(f"{name} was not called: {why}")
    called = _ready_call(name, arguments, tools)
    if isinstance(called, ToolResult):
        return called
    resolved = tools.resolve_call(name, called.arguments)
    if resolved is None:
        return tool_error(f"{name} was not called: it names no tool to call.")
    own_name, own_arguments = resolved
    if own_arguments is called.arguments:
        return called._replace(name=own_name, via=name)
    passed_on = _ready_call(own_name, own_arguments, tools)
    if isinstance(passed_on, ToolResult):
        return passed_on
    return passed_on._replace(via=name)


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> _ReadyCall | ToolResult:
    """Return a call whose arguments match the tool's schema, or the error for the model."""
    schema = tools.parameters(name)
    if schema is None:
        return tool_error(f"There is no tool named {name}. Use one that is offered.")
    checked, complaint = check_arguments(arguments, schema)
    if complaint is not None:
        return tool_error(f"{name} was not called: {complaint}")
    return _ReadyCall(name, checked, tools.call_kind(name))


def read_arguments(call: Item) -> object:
    """Return the arguments of a call; raises ValueError for invalid JSON."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = arguments_text(call.get("arguments"))
    return load_json(text) if text.strip() else {}


async def _call_tool(ready: _ReadyCall, toolset: Toolset) -> ToolResult:
    """Return the result of a tool.

    A tool that raises SystemExit, or cancels itself, has failed and does not end the
    run. Only the cancellation of our own task does.
    """
    name = ready.name
    limits = toolset.limits
    seconds = limits.own_seconds(name) or limits.seconds
    timeout = seconds if ready.kind == "limited" else None
    try:
        async with asyncio.timeout(timeout) as scope:
            answer = await toolset.tools.call(name, ready.arguments)
        output = cap_output(answer.output, limits.characters)
        return answer._replace(output=output)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return tool_error(f"{name} did not finish within {seconds:g} s.")
        cause = _exception_text(error)
        toolset.log(f"the tool {name} raised {cause}")
        told = _cap_text(toolset.redacted(cause[:_MAX_READ_CAUSE]), _MAX_TOLD_CAUSE)
        return ToolResult(toolset.texts.describe_failure(name, told), failed=True)


_MAX_TOLD_CAUSE = 1_000
"""Characters of an exception for the model: a message may quote a whole page."""
_MAX_READ_CAUSE = 10_000
"""More is not read. What is cut off by this may be half a secret."""


def _exception_text(error: BaseException) -> str:
    """Return type and text of an exception; the type alone if it has no text."""
    name = type(error).__name__
    try:
        text = str(error).strip()
    except Exception:  # it is not ours, and may not even have a text that works
        text = ""
    return f"{name}: {text}" if text else name


def cap_output(output: str | list[Item], characters: int) -> str | list[Item]:
    """Return the output with at most so many `characters` of each of its texts."""
    if isinstance(output, list):
        return [_cap_part(part, characters) for part in output]
    return _cap_text(output, characters)


def _cap_part(part: Item, characters: int) -> Item:
    """Return a part of an output, its text capped."""
    text = part.get("text")
    if not isinstance(text, str):
        return part
    return {**part, "text": _cap_text(text, characters)}


def _cap_text(text: str, characters: int) -> str:
    """Return a text; a longer one keeps its beginning and its end, with a note."""
    if len(text) <= characters:
        return text
    half = characters // 2
    note = f"\n[... {len(text) - 2 * half} characters are cut here ...]\n"
    return text[:half] + note + text[len(text) - half :]


def _called_name(call: Item) -> str:
    return str(call.get("name") or "")


# --------------------------------------------------------------------------------------
# openai_responses.repairs.memory
#
# What is remembered of refusals: for whom, how long, and how much.
#
# For all users counts only what the server itself named in a request that is as its
# administrators configured it, and what helped at once: the next request was accepted.
# What may be about a user's own choice counts for that user, and what is about the items
# of a chat for that chat, if it can store it. The rest is forgotten.
#
# Everything has a bound: a day, a number for each user and of users. A repair holds names
# and digests of limited length, never a text of a person.
# --------------------------------------------------------------------------------------


DAY_SECONDS = 86_400.0
MAX_FOR_ALL = 256
MAX_FOR_ONE_USER = 64
MAX_USERS = 500

_ALL_USERS = ""
_MAX_NAME_IN_SCOPE = 300
"""Characters; nothing is remembered of what has a longer name."""


class RepairScope(NamedTuple):
    """Whose requests a repair is about."""

    account: str
    """A digest of the address, the organization and the key."""
    model: str
    user: str = ""
    """Empty for a client that nobody knows: nothing is remembered for it alone."""


class _Entry(NamedTuple):
    """A repair that requests of an account to a model need."""

    account: str
    model: str
    repair: Repair


class RepairMemory:
    """What refusals of the last day showed of accounts and models."""

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty; `now` is a time in seconds that never goes back."""
        self._now = now
        self._ends: dict[str, dict[_Entry, float]] = {}
        """Until when each entry is remembered, by user; the oldest entry comes first."""

    def repairs(self, scope: RepairScope) -> tuple[Repair, ...]:
        """Return the repairs that requests of a scope need, each once."""
        owners = [_ALL_USERS]
        if scope.user:
            owners.append(scope.user)
        now = self._now()
        repairs: dict[Repair, None] = {}
        for owner in owners:
            for entry, end in self._ends.get(owner, {}).items():
                is_same_account = entry.account == scope.account
                is_same_model = entry.model == scope.model
                if is_same_account and is_same_model and now < end:
                    repairs[entry.repair] = None
        return tuple(repairs)

    def learn(
        self, scope: RepairScope, trial: Trial, is_as_configured: Callable[[], bool]
    ) -> None:
        """Remember what helped, for all users or for one.

        `is_as_configured` says whether the request had only what its administrators
        set; it may cost a moment, and is called only if it matters.
        """
        longest_name = max(len(name) for name in scope)
        if not trial.is_lasting or longest_name > _MAX_NAME_IN_SCOPE:
            return
        may_be_for_all = (
            trial.is_named and trial.helped_at_once and not trial.repair.is_about_chat
        )
        if may_be_for_all and is_as_configured():
            self._remember(_ALL_USERS, MAX_FOR_ALL, scope, trial.repair)
        elif scope.user:
            self._remember(scope.user, MAX_FOR_ONE_USER, scope, trial.repair)

    def _remember(
        self, owner: str, max_entries: int, scope: RepairScope, repair: Repair
    ) -> None:
        """Remember a repair for a day; if it is known, the day begins again.

        Of more than `max_entries` the oldest is forgotten.
        """
        if owner not in self._ends and len(self._ends) >= MAX_USERS:
            self._forget_a_user()
        now = self._now()
        entry = _Entry(scope.account, scope.model, repair)
        remembered = self._ends.get(owner, {}).items()
        ends = {known: end for known, end in remembered if now < end}
        ends.pop(entry, None)
        if len(ends) >= max_entries:
            oldest = next(iter(ends))
            del ends[oldest]
        ends[entry] = now + DAY_SECONDS
        self._ends[owner] = ends

    def _forget_a_user(self) -> None:
        """Forget the user who was remembered first; not what holds for all."""
        for owner in self._ends:
            if owner != _ALL_USERS:
                del self._ends[owner]
                return


def trials_that_helped(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that were not in vain, once a request was accepted.

    A trial was in vain if the same refusal came again and something else removed it.
    Of several things of one kind, such as two images, the refusal may be the same.
    """
    if not trials:
        return []
    helped: list[Trial] = []
    for trial, following in pairwise(trials):
        if not _was_in_vain(trial, following):
            helped.append(trial)
    # The request with the last one was accepted.
    helped.append(trials[-1]._replace(helped_at_once=True))
    return helped


def _was_in_vain(trial: Trial, following: Trial) -> bool:
    is_same_refusal = trial.error == following.error
    return is_same_refusal and type(trial.repair) is not type(following.repair)


# --------------------------------------------------------------------------------------
# openai_responses.loop.trials
#
# Follows the repairs of a run until the server accepts a request.
# --------------------------------------------------------------------------------------


class RunTrials:
    """The repairs on trial in a run."""

    def __init__(self) -> None:
        """Begin a run."""
        self.confirmed: list[Trial] = []
        """Those that helped, in their order, over all responses of the run."""
        self._open: list[Trial] = []
        """Those of a request that the server has not accepted yet."""

    def note(self, event: RunEvent) -> list[Trial]:
        """Note an event; return the trials that it shows to have helped."""
        if isinstance(event, Status):
            if event.trial:
                self._open.append(event.trial)
            return []
        if not self._open or not _is_of_an_answer(event):
            return []
        helped = trials_that_helped(self._open)
        self.confirmed += helped
        self._open = []
        return helped


def _is_of_an_answer(event: RunEvent) -> bool:
    """Say whether the server has accepted the request.

    A thought may begin in an answer that ends as a refusal.
    """
    if isinstance(event, RunDone):
        return event.ending.kind in ("completed", "incomplete")
    return not isinstance(event, ItemAdded)


# --------------------------------------------------------------------------------------
# openai_responses.loop.run
#
# A whole request as a stream of run events: response, calls, response.
#
# The loop knows no host: it gets frozen inputs and reports events. The agents and the
# pipe run the same loop, round by round:
#
#     a provider answers the request        loop/attempts.py: the Responses API
#     a judge decides about its calls       refused, left to the host, or made here
#     the calls that are made here run      loop/tools.py
#     their outputs are added to the input  that is the next request
#
# At a limit of the budget the calls are refused, and the model answers once more without
# tools. A run that ends with calls for the host, or with a question to a person, is
# continued by another run, which begins with the open calls.
# --------------------------------------------------------------------------------------


_IS_REPEATED = "was not run: the same call_id came twice in this response."
_INTERRUPTED = "was not run: the answer that requested it was interrupted."


class Provider(Protocol):
    """A model that answers one request after another."""

    def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, its items numbered from `first_index`, then the answer."""

    def paused(self) -> AbstractContextManager[None]:
        """Count no time while tools run or people decide."""


class RoundStarted(NamedTuple):
    """A response is requested; `may_call` says whether the model may call tools."""

    number: int
    may_call: bool


class RoundDone(NamedTuple):
    """A response is complete, and what happens to its calls is decided.

    `items` are its finished ones with their indexes; none in a round that only answers
    the calls of an earlier run. The outputs of the calls follow.
    """

    number: int
    items: tuple[tuple[int, Item], ...]
    judgment: Judgment
    usage: Usage | None
    is_failure: bool = False


RoundEvent = RoundStarted | RoundDone
RoundEvents = AsyncGenerator[RunEvent | RoundEvent, None]


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> RunEvents:
    """Send `request` and report what happens; ends with exactly one RunDone.

    With a `toolset` that runs them, calls are answered here; otherwise they are left
    open for the caller, unless their response was interrupted. A refusal is an ending,
    not an exception. Cancelling the run, or closing the generator, closes the
    connection and cancels the tools.
    """
    attempts = Attempts(endpoint, connections, limits)
    async with aclosing(run_rounds(request, attempts, toolset)) as events:
        async for event in events:
            if not isinstance(event, RoundEvent):
                yield event


async def run_rounds(
    request: ResponsesRequest,
    provider: Provider,
    toolset: Toolset | None = None,
    spending: Spending | None = None,
    open_calls: Sequence[Item] = (),
) -> RoundEvents:
    """Let `provider` answer `request`; report its rounds as well.

    `spending` says what the run may take and has taken; without it the budget of the
    toolset counts from here. The run begins with `open_calls`, which an earlier run of
    the same answer has left; they are the last items of the request's input.
    """
    if spending is None:
        budget = toolset.budget if toolset else Budget()
        spending = Spending(budget)
    rounds = _Rounds(request, provider, toolset, spending)
    if toolset and open_calls:
        async with aclosing(rounds.resume(open_calls, toolset)) as events:
            async for event in events:
                yield event
    while rounds.request is not None:
        async with aclosing(rounds.respond(rounds.request)) as events:
            async for event in events:
                yield event
        async with aclosing(rounds.answer_calls()) as events:
            async for event in events:
                yield event
    yield rounds.build_end()


class _Rounds:
    """The rounds of a run; each is a response and the outputs of its calls."""

    def __init__(
        self,
        request: ResponsesRequest,
        provider: Provider,
        toolset: Toolset | None,
        spending: Spending,
    ) -> None:
        self.request: ResponsesRequest | None = request
        """The next one, None at the end."""
        self._provider = provider
        self._toolset = toolset
        self._spending = spending
        self._answer = ModelAnswer(COMPLETED, request)
        """The last response."""
        self._inputs: list[Item] = []
        """The input items that answer its calls."""
        self._output: list[Item] = []
        """The items of the whole run."""
        self._next_index = 0
        self._usages: list[Usage] = []
        """Those of the whole run."""
        self._had_output = False
        """Whether the run had items before the last response."""
        self._may_call = True
        """Whether the last response was allowed to call tools."""
        self._limit: SpentLimit | None = None
        """The limit that keeps the model from calling tools."""
        self._held: list[RunEvent] = []
        """Events of calls that wait for the judgment."""

    async def respond(self, request: ResponsesRequest) -> RoundEvents:
        """Request a response; yield its events, but hold back calls for the judge.

        At a limit the model may call nothing. The tools stay in the request, because
        the prompt cache begins with them.
        """
        self.request = None
        number = self._spending.begin_round()
        limit = self._spending.limit_of_round()
        self._limit = self._limit or limit
        self._may_call = self._limit is None
        if request.tools and not self._may_call:
            request = request.model_copy(update={"tool_choice": "none"})
        may_call = bool(request.tools) and self._may_call
        yield RoundStarted(number, may_call)
        self._had_output = bool(self._output)
        holds_calls = may_call and self._judge_sees_calls_first()
        generated = self._provider.generate(request, self._next_index)
        async with aclosing(generated) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    self._take_answer(part)
                elif holds_calls and (self._held or _begins_call(part)):
                    self._held.append(part)
                else:
                    yield part

    def _judge_sees_calls_first(self) -> bool:
        """Say whether calls are shown only after the judgment."""
        judge = self._toolset.judge if self._toolset else None
        return judge is not None and judge.holds_calls

    def _take_answer(self, answer: ModelAnswer) -> None:
        """Count a response, and add its items to the output."""
        self._answer = answer
        self._inputs = []
        self._usages += answer.usages
        self._spending.add_response(answer.usages, answer.last_usage)
        self._output += answer.output
        for index, _ in answer.items:
            self._next_index = max(self._next_index, index + 1)

    async def answer_calls(self) -> RoundEvents:
        """Answer the calls of the last response; set the next request if there is one."""
        output = self._answer.output
        calls = [item for item in output if is_call(item)]
        approvals = [item for item in output if is_approval_request(item)]
        has_questions = bool(calls or approvals)
        is_failure = self._answer.ending.is_failure
        if self._toolset is None or is_failure or not has_questions:
            for event in self._end_unanswered(calls):
                yield event
            return
        with self._provider.paused():
            answers = self._answer_all(calls, approvals, self._toolset)
            async with aclosing(answers) as events:
                async for event in events:
                    yield event

    def _end_unanswered(self, calls: Sequence[Item]) -> Iterator[RunEvent | RoundEvent]:
        """End a response to which the run gives no answer.

        The calls of an interrupted one get outputs: nobody runs them, and the API
        refuses a call without an output in the next turn.
        """
        yield from self._release(None)
        if self._answer.ending.is_failure:
            for call in calls:
                yield self._add_output(call, _refuse(call, _INTERRUPTED))
        yield self._end_round(Judgment())

    async def _answer_all(
        self, calls: Sequence[Item], approvals: Sequence[Item], toolset: Toolset
    ) -> RoundEvents:
        """Answer approval requests, and the calls that are not left to the host.

        The API accepts the answer to an approval request only with the reasoning before
        that request, so it is sent again even where the toolset carries none.
        """
        limit = self._spending.limit_of_calls()
        judgment = await self._judge(calls, limit, toolset)
        for event in self._release(judgment.question):
            yield event
        yield self._end_round(judgment)
        if judgment.question:
            return
        for request in approvals:
            with self._spending.pause():
                refusal = await _remote_refusal(request, toolset, limit)
            for event in self._decide(request, refusal):
                yield event
        async with aclosing(self._make_calls(judgment, toolset)) as outputs:
            async for output in outputs:
                yield output
        reasoning = toolset.carries_reasoning or bool(approvals)
        received = replay_output(self._answer.output, with_reasoning=reasoning)
        self._continue(judgment, received)

    async def resume(self, calls: Sequence[Item], toolset: Toolset) -> RoundEvents:
        """Answer the calls that an earlier run has left; the host has seen none of them.

        They were not shown while a person was asked. With another `question` they
        still are not.
        """
        self.request = None
        with self._provider.paused():
            limit = self._spending.limit_of_calls()
            judgment = await self._judge(calls, limit, toolset)
            shown_calls = [judgment.question] if judgment.question else calls
            for call in shown_calls:
                for event in self._show_call(call):
                    yield event
            yield RoundDone(self._spending.rounds, (), judgment, None)
            async with aclosing(self._make_calls(judgment, toolset)) as outputs:
                async for output in outputs:
                    yield output
        self._continue(judgment, ())

    async def _judge(
        self, calls: Sequence[Item], limit: SpentLimit | None, toolset: Toolset
    ) -> Judgment:
        """Return what happens to the calls; the judge decides within the budget."""
        self._limit = self._limit or limit
        if not toolset.runs_calls:
            return Judgment([Verdict(call, is_left=True) for call in calls])
        verdicts = self._apply_budget(calls, limit, toolset.texts)
        allowed = [verdict.call for verdict in verdicts if verdict.is_made]
        if toolset.judge is None or not allowed:
            return Judgment(verdicts)
        with self._spending.pause():  # a judge takes time only if it asks a person
            judgment = await toolset.judge.judge(allowed)
        return Judgment(_merge_verdicts(verdicts, judgment), judgment.question)

    def _apply_budget(
        self, calls: Sequence[Item], limit: SpentLimit | None, texts: CallTexts
    ) -> list[Verdict]:
        """Refuse calls that came twice, and those that the budget does not allow."""
        calls_left = 0 if limit else self._spending.calls_left
        verdicts: list[Verdict] = []
        allowed_ids: set[str] = set()
        for call in calls:
            refusal: ToolResult | None = None
            if call["call_id"] in allowed_ids:
                refusal = _refuse(call, _IS_REPEATED)
            elif len(allowed_ids) < calls_left:
                allowed_ids.add(call["call_id"])
            else:
                refusal = texts.refuse(call, limit or "calls")
                self._limit = self._limit or "calls"
            verdicts.append(Verdict(call, refusal))
        return verdicts

    def _release(self, question: Item | None) -> Iterator[RunEvent]:
        """Yield what was held back; a question takes the place of the calls."""
        held = self._held
        self._held = []
        if question is None:
            yield from held
            return
        calls = {index for index, item in self._answer.items if is_call(item)}
        ends: list[RunEvent] = []
        for event in held:
            if isinstance(event, ResponseDone):
                ends.append(event)
            elif not (isinstance(event, ItemEvent) and event.output_index in calls):
                yield event
        yield from self._show_call(question)
        yield from ends

    def _end_round(self, judgment: Judgment) -> RoundDone:
        """Return the end of the last response."""
        answer = self._answer
        return RoundDone(
            number=self._spending.rounds,
            items=answer.items,
            judgment=judgment,
            usage=sum_usages(answer.usages),
            is_failure=answer.ending.is_failure,
        )

    async def _make_calls(
        self, judgment: Judgment, toolset: Toolset
    ) -> AsyncGenerator[ToolOutput, None]:
        """Make the calls that run here; yield all outputs in the order of the calls.

        While a person is asked, no call is made.
        """
        if judgment.question:
            return
        self._spending.calls += len(judgment.verdicts)
        made = [verdict.call for verdict in judgment.verdicts if verdict.is_made]
        timed = toolset._replace(limits=self._limit_seconds(toolset.limits))
        calls = run_calls(made, timed, self._spending.pause)
        async with aclosing(calls) as results:
            for verdict in judgment.verdicts:
                if verdict.refusal is not None:
                    yield self._add_output(verdict.call, verdict.refusal)
                elif verdict.is_made:
                    _, result = await anext(results)
                    yield self._add_output(verdict.call, result)

    def _limit_seconds(self, limits: CallLimits) -> CallLimits:
        """Return the limits of calls within the time that the budget leaves."""
        seconds_left = self._spending.seconds_left
        if seconds_left is None:
            return limits
        seconds = min(limits.batch_seconds, seconds_left)
        return limits._replace(batch_seconds=seconds)

    def _continue(self, judgment: Judgment, received: Sequence[Item]) -> None:
        """Set the next request, unless the run ends here or the host continues it.

        It is the last request with its output and the outputs of its calls.
        """
        if judgment.is_open or not self._may_call or self._spending.stopped:
            return
        items = [*received, *self._inputs]
        self.request = _next_request(self._answer.request, items)

    def _show_call(self, call: Item) -> Iterator[RunEvent]:
        """Yield the events of a call that no response of this run contains."""
        index = self._add_item(call)
        yield ItemAdded(index, call)
        yield ItemDone(index, call)

    def _add_output(self, call: Item, result: ToolResult) -> ToolOutput:
        """Add the output of a call to the run, and report it."""
        item = output_item(call, result)
        self._inputs.append(item)
        return ToolOutput(self._add_item(item), item, result.failed, result.card)

    def _add_item(self, item: Item) -> int:
        """Add an item to the output of the run; return its index."""
        self._output.append(item)
        index = self._next_index
        self._next_index += 1
        return index

    def _decide(self, request: Item, refusal: str | None) -> Iterator[RunEvent]:
        """Approve a remote call, which will appear itself, or show that it is denied."""
        response: Item = {
            "type": "mcp_approval_response",
            "approval_request_id": request.get("id"),
            "approve": refusal is None,
        }
        if refusal is None:
            self._inputs.append(response)
            self._add_item(response)
            return
        self._inputs.append({**response, "reason": refusal})
        call, output = refused_pair(request, refusal)
        yield from self._show_call({**call, "id": f"fc_{call['call_id']}"})
        yield ToolOutput(self._add_item(output), output, failed=True)

    def build_end(self) -> RunDone:
        """Return the end of the run: its own, or that of a task which was stopped."""
        answer = self._answer
        ending = answer.ending
        trace = answer.trace
        stopped = self._spending.stopped
        if stopped:
            ending = stopped.ending
            trace = stopped.trace
        has_text = self._had_output or answer.has_shown
        if not has_text:
            ending = ending.without_text()
        return RunDone(
            ending=ending,
            usage=sum_usages(self._usages),
            last_usage=answer.last_usage,
            output=tuple(without_repetitions(self._output)),
            trace=trace,
            usages=tuple(self._usages),
            limit=self._limit,
        )


def _begins_call(event: RunEvent) -> bool:
    """Say whether an event is the first one of a call."""
    return isinstance(event, ItemAdded) and is_call(event.item)


def _merge_verdicts(verdicts: Iterable[Verdict], judgment: Judgment) -> list[Verdict]:
    """Return the verdicts of the budget, those of the judge for calls that it allows."""
    judged = {verdict.call["call_id"]: verdict for verdict in judgment.verdicts}
    merged: list[Verdict] = []
    for verdict in verdicts:
        if verdict.is_made:
            merged.append(judged[verdict.call["call_id"]])
        else:
            merged.append(verdict)
    return merged


def _refuse(call: Item, why: str) -> ToolResult:
    """Return the result of a call that is not made."""
    return tool_error(f"{call.get('name')} {why}")


def _next_request(request: ResponsesRequest, items: Iterable[Item]) -> ResponsesRequest:
    """Return the request that follows `request`: it has the new `items` in its input.

    A tool that had to be called has been called, so it is not required again.
    """
    whole = drop_settled_approvals([*request.input, *items])
    choice = next_tool_choice(request.tool_choice)
    changed = {"input": since_compaction(whole), "tool_choice": choice}
    return request.model_copy(update=changed)


async def _remote_refusal(
    request: Item, toolset: Toolset, limit: SpentLimit | None
) -> str | None:
    """Return why a remote call is denied, None if it is approved.

    A server of OpenAI's MCP tool asked for the approval, so without a rule a person
    decides, unless the server asks only because there are rules.
    """
    name = remote_name(request)
    if limit:
        return toolset.texts.describe(name, limit).removeprefix("Error: ")
    text = arguments_text(request.get("arguments")) or "{}"
    arguments = parse_json_object(text)
    if arguments is None:  # the person who decides sees what is not JSON as it is
        arguments = {"arguments": text}
    default_rule = toolset.approver.remote_default(request)
    approver = replace(toolset.approver, default_rule=default_rule)
    return await approver.refusal(
        call_id=str(request.get("id")),
        name=name,
        arguments=arguments,
        via=str(request.get("name")),
    )


# --------------------------------------------------------------------------------------
# openai_responses.long_work
#
# Work on large chats, which must not hold up the server's event loop.
# --------------------------------------------------------------------------------------


_LARGE = 3000
"""Entries from which on the work takes so long that others would notice it."""
_Done = TypeVar("_Done")


async def run_work(size: int, work: Callable[[], _Done]) -> _Done:
    """Return the result of `work` on a chat with so many entries.

    A large chat takes a thread, so that the server answers others meanwhile.
    """
    if size > _LARGE:
        return await asyncio.to_thread(work)
    return work()


# --------------------------------------------------------------------------------------
# openai_responses.recent_texts
#
# What was said lately, and what users reported lately.
# --------------------------------------------------------------------------------------


_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, or of as many seconds, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(
        self,
        now: Callable[[], float] = monotonic_seconds,
        seconds: float = _DAY_SECONDS,
    ) -> None:
        """Start empty."""
        self._now = now
        self._seconds = seconds
        self._ends: dict[int, float] = {}
        """Until when each text counts, by its hash."""

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + self._seconds
        return True


_MAX_SUBJECTS = 500
_USERS_FOR_ALL = 3


class UserReports:
    """What requests of users met lately, such as a server that fails.

    What one request met says nothing about other users: it may be about its content, or
    one bad moment. So it holds for that user, and for all once three users met it. Of
    too many subjects the oldest are forgotten.
    """

    def __init__(
        self,
        seconds: float = _DAY_SECONDS,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        """Start empty; a report counts for `seconds`."""
        self._seconds = seconds
        self._now = now
        self._ends: dict[str, dict[str, float]] = {}
        """Until when each user's report counts, by subject and user."""

    def add(self, subject: str, user_id: str) -> None:
        """Note that a request of a user met `subject`; nobody's counts for nobody."""
        if not user_id:
            return
        users = self._ends.pop(subject, {})
        users = {user: end for user, end in users.items() if self._now() < end}
        users.pop(user_id, None)
        if len(users) >= _USERS_FOR_ALL:
            # It holds for all already, so more users need no place.
            del users[next(iter(users))]
        users[user_id] = self._now() + self._seconds
        if len(self._ends) >= _MAX_SUBJECTS:
            del self._ends[next(iter(self._ends))]
        self._ends[subject] = users

    def holds(self, subject: str, user_id: str) -> bool:
        """Say whether `subject` is to be expected for a user."""
        users = self._ends.get(subject, {})
        reporters = [user for user, end in users.items() if self._now() < end]
        return user_id in reporters or len(reporters) >= _USERS_FOR_ALL


# --------------------------------------------------------------------------------------
# owui_chat.wording
#
# How numbers are written for people.
# --------------------------------------------------------------------------------------


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2 rounds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# --------------------------------------------------------------------------------------
# owui_chat.closing_line
#
# The last status line of an answer, of the pipe and of the agents.
# --------------------------------------------------------------------------------------


class AnswerFigures(NamedTuple):
    """What an answer took."""

    seconds: float
    is_failure: bool = False
    rounds: int = 0
    """Of an agent."""
    tool_calls: int = 0
    """Of an agent."""
    usage: Usage | None = None
    cost: float | None = None
    """US dollars; None if it is unknown or not shown."""
    notes: int = 0
    """Lines above this one: the page hides them until somebody opens them."""
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""
    usage_note: str = ""
    """What explains a large number of tokens."""
    failed_attempts: int = 0
    """How often the request was sent in vain, if it was sent again; else 0."""


def closing_line(figures: AnswerFigures) -> str:
    """Return the line: time, tokens and cost, then the rest, as far as it is known.

    A phone shows about 40 characters.
    """
    parts = [_beginning(figures)]
    if figures.usage:
        parts.append(f"{figures.usage.total:,} tokens")
    if figures.cost is not None:
        parts.append(format_money(figures.cost))
    if figures.rounds:
        parts.append(plural(figures.rounds, "round"))
    if figures.tool_calls:
        parts.append(plural(figures.tool_calls, "tool call"))
    cached_share = _cached_share(figures.usage)
    if cached_share:
        parts.append(f"{cached_share}% of the input cached")
    if figures.window_share > _NOTABLE_SHARE:
        parts.append(f"context {figures.window_share}% full")
    if figures.notes and not figures.failed_attempts:
        parts.append(plural(figures.notes, "note"))
    if figures.usage_note:
        parts.append(figures.usage_note)
    return " · ".join(parts)


_NOTABLE_SHARE = 50
"""Until then a chat can go on for long, and nobody needs to know."""


def _beginning(figures: AnswerFigures) -> str:
    """Return how an answer ended, and what that took."""
    if figures.failed_attempts:
        return f"Failed after {plural(figures.failed_attempts, 'attempt')}"
    word = "Interrupted after" if figures.is_failure else "Finished in"
    return f"{word} {_duration(figures.seconds)}"


def _duration(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = round(seconds)
    if whole == 0:
        return "under a second"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s"


def _cached_share(usage: Usage | None) -> int:
    """Return how much of a run's input was cached, in percent."""
    if usage is None or not usage.input:
        return 0
    return 100 * usage.cached // usage.input


# --------------------------------------------------------------------------------------
# owui_chat.storage.signature
#
# Signatures of what is stored in a chat, which its owner can read and change.
#
# A signature tells that this pipe, or another one with the same secret, wrote a value.
# Keys are derived from the secret with HKDF-SHA256 (RFC 5869), one for each purpose, so
# that no key can be used for anything else.
#
# A signature has two halves: of the value with its names in their order, which is quick to
# check, and of the value with sorted names, because a database may change the order.
# --------------------------------------------------------------------------------------


Sign = Callable[[object, bool], str]
"""Returns a half of the signature of a JSON value, as hexadecimal digits.

The flag says whether names are sorted.
"""

_FIELD = "signature"
_HALF = 32
"""Hexadecimal digits: 128 bits."""
_NO_SALT = bytes(32)
_ONE_BLOCK = b"\x01"
# It takes a quarter of the time of `json` (measured on a record with reasoning).
_IN_ORDER = TypeAdapter[Any](Any).serializer
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


def derive_key(secret: str, purpose: str) -> bytes:
    """Return a key of 32 bytes; without the secret nobody can derive it."""
    seed = hmac.digest(_NO_SALT, secret.encode("utf-8", "replace"), "sha256")
    return hmac.digest(seed, purpose.encode() + _ONE_BLOCK, "sha256")


def signer(secret: str, purpose: str) -> Sign:
    """Return what signs values for one purpose."""
    keyed = hmac.new(derive_key(secret, purpose), digestmod="sha256")
    return partial(_signature, keyed)


def sign_object(
    fields: Mapping[str, Any], sign: Sign | None, *scope: object
) -> dict[str, Any]:
    """Return an object with its signature, which holds in one `scope` only."""
    bare = _without_signature(fields)
    if sign is None:
        return bare
    value = [*scope, bare]
    in_order = sign(value, False)
    with_sorted_names = sign(value, True)
    return {**bare, _FIELD: in_order + with_sorted_names}


def is_signed(fields: Mapping[str, Any], sign: Sign | None, *scope: object) -> bool:
    """Say whether an object has its signature; without `sign` none has.

    Earlier versions wrote the second half alone. What cannot be encoded is nothing that
    this pipe wrote.
    """
    signature = fields.get(_FIELD)
    if sign is None or not isinstance(signature, str) or not signature.isascii():
        return False
    value = [*scope, _without_signature(fields)]
    try:
        in_order = sign(value, False)
        if hmac.compare_digest(in_order, signature[:_HALF]):
            return True
        with_sorted_names = sign(value, True)
        return hmac.compare_digest(with_sorted_names, signature[-_HALF:])
    except (RecursionError, TypeError, ValueError):
        return False


def _without_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != _FIELD}


def _signature(keyed: hmac.HMAC, value: object, is_sorted: bool) -> str:
    """Return half of the signature of a JSON value."""
    text = _sorted_json(value) if is_sorted else _ordered_json(value)
    signature = keyed.copy()
    signature.update(text)
    return signature.hexdigest()[:_HALF]


def _ordered_json(value: object) -> bytes:
    """Return the JSON of a value with its names in their order.

    UTF-8 has no lone surrogates: a value with one is written in the other form.
    """
    try:
        return _IN_ORDER.to_json(value)
    except ValueError:
        return _sorted_json(value)


def _sorted_json(value: object) -> bytes:
    return _SORTED.encode(value).encode()


# --------------------------------------------------------------------------------------
# owui_chat.host_tools
#
# What Open WebUI's own texts and tools mean: failed results, `call_tool`.
# --------------------------------------------------------------------------------------


CALL_TOOL = "call_tool"
"""The builtin tool that runs another one by its name."""

HOST_ERROR_PREFIXES = ("error:", "exception:", "traceback", "http error!")
"""The beginnings of results that the host marks as failed, in lower case."""

TOOL_IMAGES_PREFIX = "Here are the images from the tool results above."
"""The beginning of the user message that the host makes of the images of tools."""


class InnerCall(NamedTuple):
    """What a call of `call_tool` asks for."""

    name: Any
    """As the model wrote it: maybe not even a text."""
    arguments: dict[str, Any]


def read_call_tool(arguments: JsonObject) -> InnerCall | None:
    """Return the call inside of a call of `call_tool`, None if invalid."""
    params = parse_json_object(arguments.get("params"))
    if params is None:
        return None
    return InnerCall(arguments.get("tool_name"), params)


# --------------------------------------------------------------------------------------
# owui_chat.messages
#
# A chat body as Open WebUI sends it, parsed into its parts.
#
# Open WebUI sends messages in the form of Chat Completions, without their ids. Texts of
# assistant messages stay as they are here, markers included; `input.history` reads those.
# Which stored message each one is, is found from the chat's row, which holds them as a
# tree. They are paired from the end, because the host may have left out the oldest.
# --------------------------------------------------------------------------------------


class Attachment(NamedTuple):
    """A file at a message, as the host notes it there."""

    file_id: str
    name: str
    content_type: str
    is_image: bool
    """The host itself puts an image into the message."""


class StoredMessage(NamedTuple):
    """A message of the user as the chat's row holds it."""

    row: JsonObject
    answer_id: str
    """Names the answer to it in this branch of the chat; empty without one."""

    @property
    def words(self) -> str:
        """What the user wrote."""
        return as_text(self.row.get("content"))


class UserMessage(NamedTuple):
    """A message that no model wrote."""

    item: Item
    """An input message, ready to be sent."""
    stored: StoredMessage | None = None
    attachments: Sequence[Attachment] = ()

    @property
    def content(self) -> list[Item]:
        """The parts of the input message."""
        return self.item.get("content") or []

    def with_content(self, parts: Sequence[Item]) -> Self:
        """Return this message with other parts."""
        return self._replace(item={**self.item, "content": list(parts)})


class AssistantText(NamedTuple):
    """Text of an assistant's message, as the host gives it back."""

    text: str
    ulids: Sequence[str] = ()
    """Of records in front."""
    details: object = None
    """Of its records; unread."""


class ToolCall(NamedTuple):
    """A tool call of an assistant's message; the arguments of a custom one are a text."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


class ToolMessage(NamedTuple):
    """What a tool returned for a call: a text, or parts with images."""

    call_id: str
    output: str | list[Item]


ChatPart = UserMessage | AssistantText | ToolCall | ToolMessage


DETAILS_FIELD = "reasoning_details"


def parse_messages(
    messages: Sequence[JsonObject], detail: str = "auto"
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the parts of a chat.

    The system messages at the head are the instructions; later ones stay at their
    place. Images without a `detail` get this one. A chat that is longer than a request
    may be begins with `LEFT_OUT`, in the place of its oldest messages. Raises
    InvalidRequest for what the API cannot take.
    """
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    instructions = system_text(messages)
    others = messages[len(_leading_messages(messages, ("system",))) :]
    newest = _newest_messages(others)
    parts: list[ChatPart] = []
    if len(newest) < len(others):
        parts.append(_LEFT_OUT_PART)
    for message in newest:
        parts += _chat_parts(message, detail)
    return instructions, parts


def system_text(messages: Sequence[JsonObject]) -> str:
    """Return the system messages at the head of a chat as one text."""
    head = _leading_messages(messages, ("system",))
    texts = [_plain_text(message.get("content")) for message in head]
    return "\n\n".join(text for text in texts if text)


def _leading_messages(
    messages: Sequence[JsonObject], roles: Sequence[str]
) -> list[JsonObject]:
    """Return the messages with one of these roles that stand in front of all others."""
    leading: list[JsonObject] = []
    for message in messages:
        if message.get("role") not in roles:
            break
        leading.append(message)
    return leading


_MAX_ENTRIES = 8192
"""The API takes 16,384 items (docs/reference/responses-api.md), and each message or call
may bring its reasoning."""
_ENTRIES_AT_ONCE = 2048
_INSTRUCTING = ("system", "developer")
LEFT_OUT = (
    "The oldest messages of this chat were left out: a request cannot contain them."
)
_LEFT_OUT_PART = UserMessage(text_message("developer", LEFT_OUT))


def cut_notice(parts: Sequence[ChatPart]) -> str:
    """Return `LEFT_OUT` if a chat, maybe behind its instructions, begins with it."""
    return LEFT_OUT if _LEFT_OUT_PART in parts[:2] else ""


def _newest_messages(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the messages that one request can hold, from a question on.

    Many go at once, so that the requests after it begin with the same bytes. What an
    administrator's filter put in front stays.
    """
    surplus = sum(_entry_count(message) for message in messages) - _MAX_ENTRIES
    if surplus <= 0:
        return messages
    steps = math.ceil(surplus / _ENTRIES_AT_ONCE)
    start = _first_question(messages, steps * _ENTRIES_AT_ONCE)
    first = _leading_messages(messages[:_ENTRIES_AT_ONCE], _INSTRUCTING)
    return [*first, *messages[max(start, len(first)) :]]


def _first_question(messages: Sequence[JsonObject], surplus: int) -> int:
    """Return the index of the first question behind `surplus` entries.

    Without one it is that of the last question, or of the last message.
    """
    last = len(messages) - 1
    entries_before = 0
    for index, message in enumerate(messages):
        if message.get("role") == "user":
            if entries_before >= surplus:
                return index
            last = index
        entries_before += _entry_count(message)
    return last


def _entry_count(message: JsonObject) -> int:
    """Return how many items of a request a message may become."""
    calls = as_list(message.get("tool_calls"))
    details = as_list(message.get(DETAILS_FIELD))
    return 1 + len(calls) + len(details)


def _chat_parts(message: JsonObject, detail: str) -> Iterator[ChatPart]:
    """Yield the parts of a message of the host; raises InvalidRequest."""
    content = message.get("content")
    match message.get("role"):
        case "user":
            yield UserMessage(_input_message("user", content, detail))
        case "system" | "developer":
            yield UserMessage(_input_message("developer", content, detail))
        case "assistant":
            text = _plain_text(content)
            details = message.get(DETAILS_FIELD)
            # An assistant message of calls alone has the text ""; its details may still
            # hold reasoning.
            if details or text.strip():
                yield AssistantText(text, details=details)
            yield from _calls(message.get("tool_calls"))
        case "tool":
            yield ToolMessage(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has an unknown role. The roles are system, "
                "developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[ToolCall]:
    """Yield the calls of an assistant's message."""
    for call in content_parts(tool_calls):
        call_id = str(call.get("id"))
        function = call.get("function")
        custom = call.get("custom")
        if isinstance(function, dict):
            arguments = arguments_text(function.get("arguments")) or "{}"
            yield ToolCall(call_id, str(function.get("name")), arguments)
        elif "function" not in call and isinstance(custom, dict):
            text = str(custom.get("input") or "")
            yield ToolCall(call_id, str(custom.get("name")), text, is_custom=True)


def _output(content: object) -> str | list[Item]:
    """Return a tool's output; an empty one is kept, because its call needs it."""
    if content is None:
        return ""
    if isinstance(content, list):
        return [_input_part(part, "auto") for part in content]
    return str(content)


def _input_message(role: str, content: object, detail: str) -> Item:
    rows = content if isinstance(content, list) else [content]
    parts = [_input_part(part, detail) for part in rows]
    return {"type": "message", "role": role, "content": parts}


def _input_part(part: object, detail: str) -> Item:
    """Return a part of a content in the API's form; raises InvalidRequest."""
    if not isinstance(part, dict):
        return {"type": "input_text", "text": str(part or "")}
    match part.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(part.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(part, detail)
        case "file":
            return _file_part(part.get("file"))
        case "input_file":
            return _file_part(part)
    raise InvalidRequest(
        "A message of this chat contains something other than text, an image or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: JsonObject, default: str) -> Item:
    """Return an image; both forms keep the address and the detail.

    Chat Completions have both in an object, the Responses API has them beside each
    other.
    """
    given = wire.get("image_url")
    inner = given if isinstance(given, Mapping) else {"url": given}
    detail = inner.get("detail") or wire.get("detail") or default
    source = given_values({"image_url": inner.get("url")})
    return {"type": "input_image", "detail": detail, **source}


_KEYS_OF_FILE = ("filename", "file_data", "file_url", "detail")


def _file_part(wire: object) -> Item:
    """Return a file.

    What costs (`prompt_cache_breakpoint`) or names a file at OpenAI (`file_id`) is not
    the caller's; a refusal would quote a key that the API does not have.
    """
    given = as_mapping(wire)
    address = given.get("file_url")
    if address and not str(address).lower().startswith(("https://", "http://")):
        # A gateway may read other addresses itself, such as files of its own machine.
        return {"type": "input_text", "text": _NO_WEB_ADDRESS}
    kept = {key: given[key] for key in given if key in _KEYS_OF_FILE}
    return {"type": "input_file", **given_values(kept)}


_NO_WEB_ADDRESS = (
    "[A file is left out: its address begins neither with https nor http.]"
)


def _plain_text(content: object) -> str:
    """Return the text of a content; images and files are left out."""
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_list(content)]
    return "".join(as_text(part.get("text")) for part in parts)


def user_messages(parts: Sequence[ChatPart]) -> dict[int, UserMessage]:
    """Return the messages of the user by their places among the parts."""
    return {
        index: part
        for index, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.item.get("role") == "user"
    }


def attach_stored_messages(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which each message of the user has its stored one.

    `rows` are the messages of the chat's row, by id. A developer's can only be made by
    somebody who edits the row: they are left out. Raises InvalidRequest if that is not
    possible.
    """
    users = user_messages(parts)
    if metadata.get("regeneration_message_id") and users:
        # The last one says how to answer again, and is in the request alone.
        users.popitem()
    question_id = str(metadata.get("user_message_id") or "")
    answer_id = str(metadata.get("message_id") or "")
    hidden = Counter[str]()
    # Open WebUI removes the ids of messages from what it sends
    # (utils/middleware.py:1989), so only the order tells which stored message each one
    # is.
    branch = list(_stored_branch(rows, question_id, answer_id, hidden))
    result = list(parts)
    # Both from the end; either may lack the oldest ones.
    for position, stored in zip(reversed(users), branch, strict=False):
        result[position] = users[position]._replace(stored=stored)
    if not hidden:
        return result
    shown = [part for part in result if not _take_hidden(part, hidden)]
    if any(hidden.values()) or len(users) < len(branch):
        raise InvalidRequest(_HIDDEN_MESSAGE)
    return shown


def _take_hidden(part: ChatPart, hidden: Counter[str]) -> bool:
    """Say whether a part is one of the `hidden` texts of a developer, each once."""
    if not isinstance(part, UserMessage) or part.item["role"] != "developer":
        return False
    text = message_text(part.item)
    if not hidden[text]:
        return False
    hidden[text] -= 1
    return True


def stored_messages(parts: Sequence[ChatPart]) -> list[StoredMessage]:
    """Return the stored messages of a chat, in order."""
    stored: list[StoredMessage] = []
    for part in parts:
        if isinstance(part, UserMessage) and part.stored:
            stored.append(part.stored)
    return stored


_HIDDEN_MESSAGE = (
    "This chat contains a message that the page does not show and that could instruct "
    "the model. Nothing was sent: start a new chat."
)


def _stored_branch(
    rows: JsonObject, message_id: str, answer_id: str, hidden: Counter[str]
) -> Iterator[StoredMessage]:
    """Yield the user's messages from `message_id` back to the first.

    The texts of a developer are counted in `hidden`. The host merges those of the
    system into the instructions, where nobody can tell whose words they are.
    """
    for row_id, row in walk_branch(rows, message_id):
        match row.get("role"):
            case "user":
                yield StoredMessage(row, answer_id)
                answer_id = ""
            case "assistant":
                answer_id = row_id
            case "developer":
                hidden[_plain_text(row.get("content"))] += 1
            case _:
                raise InvalidRequest(_HIDDEN_MESSAGE)


def walk_branch(rows: JsonObject, tip: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the messages from `tip` back to the first, with their ids, each once."""
    seen = set[str]()
    while tip not in seen:
        row = rows.get(tip)
        if not isinstance(row, Mapping):
            return
        yield tip, row
        seen.add(tip)
        tip = str(row.get("parentId") or "")


# --------------------------------------------------------------------------------------
# owui_chat.storage.records
#
# Records: what of an answer is stored in the chat, and how the chat stays small.
#
# Each assistant message has its own top-level key of the chat's JSON, because the host
# replaces a top-level key whole and several answers can be written at the same time:
#
#     "openai_responses_pipe:{message_id}":
#         {"__v": 5, "items": {ulid: record}, "repairs": [[word, name], ...]}
#
# Earlier pipes had one key, `"openai_responses_pipe": {"__v": 3, "items": {id: record}}`,
# which is read and never written (docs/reference/markers.md, "Stored items of earlier
# pipes"). A record has the same form in both, with these differences: only ours have
# `origin`, `shown` and `signature`, and in ours `payload` may be a list, the items that
# one marker names. `repairs` are those of the chat's items, which the server refused.
# Earlier pipes listed records in `dead` whose reasoning is not sent again.
#
# The owner of a chat can write anything into its row, and whoever clones a shared chat
# takes it along. So a record is signed. One without a valid signature, of an earlier
# writer or of a person, is read for what cannot harm: reasoning, which only the API can
# have encrypted, in front of texts and calls that the chat itself shows.
#
# Records of deleted messages are removed, and the oldest ones if a chat stores too much.
# A key cannot be removed from a chat, so its value is emptied; its repairs stay.
# --------------------------------------------------------------------------------------


_SEED_KEY = "openai_responses_pipe"
_PREFIX = f"{_SEED_KEY}:"
_VERSION = 5

UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part without text; its text is the one behind the marker."""


class Record(NamedTuple):
    """The items that one marker names, in the order of the wire.

    `model` is the host's full model id, `created_at` seconds in UTC. If the text part
    of a message in `payload` has no `text`, the text behind the marker is its text. If
    it has one, it counts as long as `shown` is the digest of the text behind the
    marker. Commentary without `shown` has no text in the chat.
    """

    ulid: str
    model: str
    created_at: int
    payload: tuple[Item, ...]
    message_id: str
    origin: Origin
    shown: str = ""

    @property
    def kind(self) -> str:
        """The type that the marker shows."""
        return str(self.payload[0]["type"]) if len(self.payload) == 1 else "items"


def text_digest(text: str) -> str:
    """Return a digest that tells whether a shown text was edited.

    White space around the text does not count, because the host strips it.
    """
    return hex_digest(text.strip())[:32]


def omit_shown_text(item: Item, shown: str) -> Item:
    """Return a message without its text, if that is all that the host returns for it.

    The host strips the ends of texts and does not know refusals or several parts.
    """
    is_returned = shown != "" and shown == shown.strip()
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts]
    if not is_returned or texts != [shown]:
        return item
    part = {name: value for name, value in parts[0].items() if name != "text"}
    return {**item, "content": [part]}


def message_key(message_id: str) -> str:
    """Return the top-level key that holds the records of one message."""
    return _PREFIX + message_id


def write_records(
    records: Mapping[str, Record], sign: Sign | None, repairs: Iterable[ChatRepair] = ()
) -> dict[str, Any]:
    """Return the JSON value for the key of one message."""
    items = {
        ulid: sign_object(_wire(record), sign, _VERSION, ulid)
        for ulid, record in records.items()
    }
    value: dict[str, Any] = {"__v": _VERSION, "items": items}
    rows = [row for row in (repair.stored() for repair in repairs) if row]
    return {**value, "repairs": rows} if rows else value


def is_pipe_key(key: str) -> bool:
    """Say whether a top-level key of a chat holds records, of any writer."""
    return key.startswith(_PREFIX) or key == _SEED_KEY


def read_records(chat: JsonObject, sign: Sign | None) -> dict[str, Record]:
    """Return every record of a chat's JSON that can be read, by id."""
    # Of a chat that was moved here from an earlier pipe both kinds of keys may be
    # there.
    values = [as_mapping(value) for key, value in chat.items() if is_pipe_key(key)]
    dead = _dead_ids(values)
    records: dict[str, Record] = {}
    for value in values:
        for ulid, wire in _wires_in(value):
            record = _read_record(ulid, wire, sign)
            if record is None:
                continue
            if ulid in dead:
                record = _without_encrypted(record)
            records[ulid] = record
    return records


def _dead_ids(values: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the records whose reasoning the API can no longer read."""
    dead: set[str] = set()
    for value in values:
        dead.update(str(ulid) for ulid in as_list(value.get("dead")))
    return dead


def _without_encrypted(record: Record) -> Record:
    """Return a record without its encrypted items."""
    kept = [item for item in record.payload if not is_encrypted(item)]
    return record._replace(payload=tuple(kept))


def stored_repairs(values: Iterable[object]) -> tuple[ChatRepair, ...]:
    """Return the repairs in the values of a chat's keys, each once."""
    rows: list[object] = []
    for value in values:
        rows += as_list(as_mapping(value).get("repairs"))
    return tuple(read_chat_repairs(rows))


def _wires_in(value: object) -> Iterator[tuple[str, JsonObject]]:
    """Yield the stored records of a key's value, with their ids."""
    for ulid, wire in as_mapping(as_mapping(value).get("items")).items():
        yield str(ulid).upper(), as_mapping(wire)


def _read_record(ulid: str, wire: JsonObject, sign: Sign | None) -> Record | None:
    """Return what is used of a stored record, or None for nothing.

    Of one that we did not sign nothing is used that could instruct the model.
    """
    payload = _read_payload(wire.get("payload"))
    is_ours = is_signed(wire, sign, _VERSION, ulid)
    if not is_ours:
        payload = _keep_unsigned_safe(payload)
    if not payload:
        return None
    model = str(wire.get("model") or "")
    # The part in front of the first dot is the function's; a model's id may have dots
    # itself (functions.py:193 of Open WebUI 0.12.4).
    own_name = model.split(".", 1)[-1]
    created_at = wire.get("created_at")
    return Record(
        ulid=ulid,
        model=model,
        created_at=created_at if isinstance(created_at, int) else 0,
        payload=payload,
        message_id=str(wire.get("message_id") or ""),
        origin=read_origin(wire.get("origin"), own_name),
        shown=str(wire.get("shown") or "") if is_ours else "",
    )


def _read_payload(value: object) -> tuple[Item, ...]:
    """Return the items of a record; nothing if anything else is among them."""
    rows = value if isinstance(value, list) else [value]
    for row in rows:
        if not isinstance(row, dict) or not row.get("type"):
            return ()
    return tuple(rows)


def _keep_unsigned_safe(payload: Sequence[Item]) -> tuple[Item, ...]:
    """Return what is used of a payload that anybody may have written.

    The chat has the text of the last message only: it stands behind the marker.
    """
    items = [item for item in payload[:-1] if item_type(item) != "message"]
    safe = keep_unsigned_safe([*items, *payload[-1:]])
    return tuple(item for item in safe if item is not None)


def keep_unsigned_safe(items: Sequence[Item]) -> list[Item | None]:
    """Return what is used of items that anybody may have written, None for nothing.

    Reasoning stays only in front of what stays, because it belongs to its product; the
    text behind the marker stays.
    """
    safe: list[Item | None] = []
    has_product = True
    # From the end, because reasoning is worth what follows it.
    for item in reversed(items):
        kept = None
        if has_product or not is_reasoning(item):
            kept = _without_hidden_text(item)
        safe.append(kept)
        has_product = kept is not None
    safe.reverse()
    return safe


def _without_hidden_text(item: Item) -> Item | None:
    """Return an item without the words that the chat does not show, or None."""
    if has_encrypted_reasoning(item):
        sealed = str(item["encrypted_content"])
        return {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    if is_call(item):
        return {"type": item["type"], "call_id": str(item.get("call_id"))}
    is_answer = item_type(item) == "message" and item.get("role") == "assistant"
    if not is_answer or is_commentary(item):
        return None
    head: Item = {"type": "message", "role": "assistant"}
    if item.get("phase") == "final_answer":
        head["phase"] = "final_answer"
    return {**head, "content": [UNSHOWN_TEXT]}


def _wire(record: Record) -> dict[str, Any]:
    """Return the stored form of a record; one item stands alone, as in earlier pipes."""
    payload: object = list(record.payload)
    if len(record.payload) == 1:
        payload = record.payload[0]
    wire = {
        "model": record.model,
        "created_at": record.created_at,
        "payload": payload,
        "message_id": record.message_id,
        "origin": record.origin.wire(),
    }
    return {**wire, "shown": record.shown} if record.shown else wire


MAX_STORED_KB = 4096
"""In one chat, which the host reads at every answer."""
_KEPT_SHARE = 0.75
"""What is left of a chat that is too large: more, and each answer would remove something
and change the beginning of the next request."""
_KEYS_OF_DELETED = ("__v", "dead", "repairs")
"""What is left in the value of a deleted message."""


def prune(
    values: JsonObject, messages: JsonObject, own_key: str, max_characters: int
) -> dict[str, Any]:
    """Return the values to write in addition to that of `own_key`.

    `messages` are those of the chat; without any, all count as present. Answers that
    are still growing are not touched, because others write them. The remaining values
    have at most `max_characters` of JSON.
    """
    has_ended = {message_key(name): _has_ended(row) for name, row in messages.items()}
    pruned: dict[str, Any] = {}
    present: dict[str, JsonObject] = {}
    for key, value in values.items():
        # The key of earlier pipes is never written.
        if key in (own_key, _SEED_KEY) or not isinstance(value, Mapping):
            continue
        if not messages or has_ended.get(key):
            present[key] = value
        elif key not in has_ended:
            pruned[key] = _without_items(value)
    pruned |= _prune_oldest(present, max_characters)
    return {key: value for key, value in pruned.items() if value != values[key]}


def _without_items(value: JsonObject) -> dict[str, Any]:
    """Return what is left of the value of a deleted message."""
    return {name: value[name] for name in _KEYS_OF_DELETED if name in value}


def stored_size(value: object) -> int:
    """Return the number of characters that a value takes."""
    return len(json.dumps(value, separators=(",", ":")))


def _has_ended(message: object) -> bool:
    """Say whether an answer has ended; earlier hosts do not say so of all."""
    return as_mapping(message).get("done") is not False


def _prune_oldest(
    values: Mapping[str, JsonObject], max_characters: int
) -> dict[str, Any]:
    """Return the values that lose their items, the oldest first."""
    sizes = {key: stored_size(value) for key, value in values.items()}
    excess = sum(sizes.values()) - max_characters
    if excess <= 0:
        return {}
    # More goes than has to, or the next answer would remove something again, and each
    # removal changes the beginning of a request.
    excess += int(max_characters * (1 - _KEPT_SHARE))
    ages: list[tuple[int, str]] = []
    for key, value in values.items():
        if as_mapping(value.get("items")):
            ages.append((_oldest_time(value), key))
    # Of the same time the one that was written first: sorting keeps their order.
    ages.sort(key=itemgetter(0))
    pruned: dict[str, Any] = {}
    for _, key in ages:
        if excess <= 0:
            break
        emptied = dict(values[key])
        del emptied["items"]
        pruned[key] = emptied
        excess -= sizes[key] - stored_size(emptied)
    return pruned


def _oldest_time(value: object) -> int:
    """Return when the first record of a value was written; 0 if nobody knows."""
    times: list[int] = []
    for _, wire in _wires_in(value):
        created_at = wire.get("created_at")
        if isinstance(created_at, int):
            times.append(created_at)
    return min(times, default=0)


# --------------------------------------------------------------------------------------
# owui_chat.storage.details_carrier
#
# Records carried by the `reasoning_details` of reasoning items.
#
# The host stores the details of a reasoning item and returns them with later requests for
# the same model, but without their places in the message (docs/reference/open-webui.md,
# "Reasoning details"). So each entry names its response and its place there:
#
#     {"type": "reasoning.encrypted", "data": ..., "item": the rest of the reasoning}
#     {"type": "openai_responses.item", "item": ..., "shown": a text, or its length}
#     {"type": "openai_responses.turn", "origin": ..., "notes": ...}
#
# The `signature` of a response's first entry holds for them all, because clients can send
# entries of their own; earlier writers signed each entry. Of others only what cannot harm
# is read (`storage.records`).
#
# A message is stored without its text if the shown text is the same. Texts get the names
# of their records, so that the history is built in one way for all carriers.
# --------------------------------------------------------------------------------------


_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


class ShownItem(NamedTuple):
    """An item of a response, and what the page shows of it."""

    item: Item
    shown: str | int
    """Its text; only the length of it if the item is stored without."""


class DetailTurn(NamedTuple):
    """A response as it came back, with its notes."""

    items: Sequence[ShownItem]
    origin: Origin
    notes: Mapping[str, Any]


def write_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
    sign: Sign | None,
) -> list[Item]:
    """Return the entries of a response from its items and the text shown for each.

    `name` distinguishes the response from all others. Plain reasoning is not kept beyond
    its run.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes), "index": 0}
    named = {"format": _FORMAT, "turn": name}
    entries: list[Item] = []
    for item, shown in items:
        for replayed in replay_output([item], with_reasoning=True):
            if not has_plain_reasoning(replayed):
                entries.append(_entry(replayed, shown))
    carried = [
        {**entry, **named, "index": index} for index, entry in enumerate(entries, 1)
    ]
    return [sign_object({**head, **named}, sign, carried), *carried]


def read_details(details: object, sign: Sign | None) -> list[DetailTurn]:
    """Return the responses in the details of a message of the host, in order."""
    turns: dict[str, list[Item]] = {}
    for entry in content_parts(details):
        if isinstance(entry.get("index"), int):
            turns.setdefault(str(entry.get("turn")), []).append(entry)
    read: list[DetailTurn] = []
    for entries in turns.values():
        entries.sort(key=itemgetter("index"))
        turn = _read_turn(entries, sign)
        if turn is not None:
            read.append(turn)
    return read


def _entry(item: Item, shown: str) -> Item:
    """Return the entry of an item; a message in its short form has no type."""
    if is_reasoning(item):
        rest = dict(item)
        encrypted = rest.pop("encrypted_content")
        return {"type": _REASONING, "data": encrypted, "item": rest}
    typed = {"type": item_type(item), **item}
    kept = omit_shown_text(typed, shown)
    has_text = kept is typed
    return {"type": _ITEM, "item": kept, "shown": shown if has_text else len(shown)}


def _is_entry(entry: Item) -> bool:
    """Say whether an entry is a complete entry of ours."""
    if entry.get("format") != _FORMAT or not isinstance(entry.get("turn"), str):
        return False
    kind = entry.get("type")
    if kind == _TURN:
        return True
    is_whole = kind == _ITEM or (kind == _REASONING and "data" in entry)
    return is_whole and "type" in as_mapping(entry.get("item"))


def _read_turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn | None:
    """Return the response of some entries, which have one name; None for nothing."""
    head = entries[0]
    carried = entries[1:]
    if is_signed(head, sign, carried):
        items = [_carried_item(entry) for entry in carried]
        return _detail_turn(head, items, head.get("notes"))
    ours = [entry for entry in entries if _is_entry(entry)]
    if not ours:
        return None
    heads = [entry for entry in ours if entry["type"] == _TURN]
    head = heads[0] if heads else {}
    notes = head.get("notes") if is_signed(head, sign) else {}
    carried = [entry for entry in ours if entry["type"] != _TURN]
    return _detail_turn(head, _items_of_others(carried, sign), notes)


def _detail_turn(head: Item, items: Sequence[ShownItem], notes: object) -> DetailTurn:
    origin = read_origin(head.get("origin"), "")
    return DetailTurn(items, origin, as_mapping(notes))


def _items_of_others(carried: Sequence[Item], sign: Sign | None) -> list[ShownItem]:
    """Return what is used of entries without a common signature.

    Of an entry of somebody else the place in the shown text is used.
    """
    own_items = [_carried_item(entry) for entry in carried]
    safe_items = keep_unsigned_safe([own.item for own in own_items])
    used: list[ShownItem] = []
    for entry, own, safe in zip(carried, own_items, safe_items, strict=True):
        if is_signed(entry, sign):
            used.append(own)
        elif safe:
            used.append(ShownItem(safe, _length(own.shown)))
    return used


def _carried_item(entry: Item) -> ShownItem:
    """Return the item of an entry, and its text or the length of that."""
    item = entry["item"]
    shown = entry.get("shown")
    if not isinstance(shown, str | int):
        shown = ""
    if entry["type"] == _REASONING:
        item = {**item, "encrypted_content": entry["data"]}
    return ShownItem(item, shown)


def _length(shown: str | int) -> int:
    return shown if isinstance(shown, int) else len(shown)


def restore_from_details(
    parts: Iterable[ChatPart], sign: Sign | None
) -> tuple[list[ChatPart], dict[str, Record]]:
    """Return a chat whose texts name the records in its details, and those by id.

    Records without a text stand at the end of their run.
    """
    records: dict[str, Record] = {}
    restored: list[ChatPart] = []
    textless: list[AssistantText] = []
    for part in parts:
        if isinstance(part, UserMessage):  # the run of the model has ended
            restored += textless
            textless = []
        if not isinstance(part, AssistantText) or not part.details:
            restored.append(part)
            continue
        turns = read_details(part.details, sign)
        for piece in _name_records(part.text, turns, records):
            if piece.text:
                restored.append(piece)
            else:
                textless.append(piece)
    return [*restored, *textless], records


def _name_records(
    content: str, turns: Sequence[DetailTurn], records: dict[str, Record]
) -> Iterator[AssistantText]:
    """Yield the pieces of a text behind their records, which are added."""
    shown_texts: list[str | int] = []
    for turn in turns:
        shown_texts += [item.shown for item in turn.items if item.shown]
    # Each record with a shown text takes the next one; what is left has no record.
    texts = iter(_split_text(content if content.strip() else "", shown_texts))
    for turn in turns:
        for payload, shown in _payloads_of(turn):
            text = next(texts, "") if shown else ""
            record = _numbered_record(len(records), payload, turn.origin, shown)
            records[record.ulid] = record
            yield AssistantText(text, [record.ulid])
    for text in texts:
        yield AssistantText(text)


def _payloads_of(turn: DetailTurn) -> Iterator[tuple[list[Item], str | int]]:
    """Yield the items of each record of a turn, and what the page shows of it.

    A record ends with a message whose text the host shows, or with its response.
    """
    payload: list[Item] = []
    for number, (item, shown) in enumerate(turn.items, 1):
        payload.append(item)
        if shown or number == len(turn.items):
            yield payload, shown
            payload = []


def _numbered_record(
    number: int, payload: Sequence[Item], origin: Origin, shown: str | int
) -> Record:
    """Return a record of a request's own, with its number as the id.

    A message of which nothing is shown is the model's own form of no text at all.
    """
    is_known = isinstance(shown, str) and bool(shown or message_text(payload[-1]))
    return Record(
        ulid=f"{number:026d}",
        model="",
        created_at=0,
        payload=tuple(payload),
        message_id="",
        origin=origin,
        shown=text_digest(str(shown)) if is_known else "",
    )


def _split_text(content: str, shown: Sequence[str | int]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    If a person changed the text so that the places do not fit, it stays in one piece.
    """
    texts: list[str] = []
    start = 0
    for text in shown[:-1]:
        length = _length(text)
        end = start + length
        # Open WebUI joins the messages of one answer by a line feed
        # (utils/misc.py:408).
        if length < 0 or content[end : end + 1] != "\n":
            return [content] if content else []
        texts.append(content[start:end])
        start = end + 1
    rest = content[start:]
    return [*texts, rest] if rest else texts


# --------------------------------------------------------------------------------------
# owui_chat.file_names
#
# The name and the type under which a file of a model or a tool is stored.
#
# Open WebUI sends an administrator's file inline, in its own origin, with the type that
# `mimetypes` reads from the name (docs/reference/open-webui.md, "Events and stored
# files"). A script in such a page has the rights of whoever opens the link, and a name
# deceives: `mimetypes` ignores an encoding, so `report.html.gz` is `text/html`.
#
# So a list says which endings a browser only shows or downloads. A file with any other
# ending, or with none, is stored under its name with `.bin`, which is only downloaded.
# --------------------------------------------------------------------------------------


MAX_NAME_LENGTH = 200
"""Characters of a foreign name that are read; the file systems of hosts take 255 bytes.
"""
_MAX_ENDING = 20

_INERT_TYPES = MappingProxyType(
    {
        # Images, without SVG, which runs scripts.
        "avif": "image/avif",
        "bmp": "image/bmp",
        "gif": "image/gif",
        "heic": "image/heic",
        "ico": "image/x-icon",
        "jpeg": "image/jpeg",
        "jpg": "image/jpeg",
        "png": "image/png",
        "tif": "image/tiff",
        "tiff": "image/tiff",
        "webp": "image/webp",
        # Sound and video.
        "flac": "audio/flac",
        "m4a": "audio/mp4",
        "mp3": "audio/mpeg",
        "mp4": "video/mp4",
        "ogg": "audio/ogg",
        "wav": "audio/wav",
        "webm": "video/webm",
        # Documents. Viewers of browsers keep a PDF's scripts out of the page's origin.
        "doc": "application/msword",
        "docx": (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        ),
        "epub": "application/epub+zip",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odt": "application/vnd.oasis.opendocument.text",
        "pdf": "application/pdf",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": (
            "application/vnd.openxmlformats-officedocument.presentationml.presentation"
        ),
        "rtf": "application/rtf",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        # Texts. A browser shows them as they are; `js` and `css` are parts of pages.
        "csv": "text/csv",
        "geojson": "application/geo+json",
        "ics": "text/calendar",
        "ipynb": "application/x-ipynb+json",
        "json": "application/json",
        "jsonl": "application/jsonl",
        "log": "text/plain",
        "md": "text/markdown",
        "py": "text/x-python",
        "sql": "application/sql",
        "tex": "application/x-tex",
        "toml": "application/toml",
        "tsv": "text/tab-separated-values",
        "txt": "text/plain",
        "yaml": "application/yaml",
        "yml": "application/yaml",
        # Data and archives, which are only downloaded.
        "7z": "application/x-7z-compressed",
        "arrow": "application/vnd.apache.arrow.file",
        "bin": "application/octet-stream",
        "db": "application/vnd.sqlite3",
        "feather": "application/vnd.apache.arrow.file",
        "h5": "application/x-hdf5",
        "npy": "application/octet-stream",
        "npz": "application/octet-stream",
        "parquet": "application/vnd.apache.parquet",
        "pkl": "application/octet-stream",
        "sqlite": "application/vnd.sqlite3",
        "stl": "model/stl",
        "tar": "application/x-tar",
        "tgz": "application/gzip",
        "zip": "application/zip",
    }
)
"""The endings that a browser runs nothing of, with their types."""

_COMPRESSED_TYPES = MappingProxyType(
    {
        "bz2": "application/x-bzip2",
        "gz": "application/gzip",
        "xz": "application/x-xz",
    }
)
"""Endings that `mimetypes` looks behind: it gives the type of the ending before them.
"""

_IMAGE_ENDINGS = MappingProxyType(
    {
        "image/gif": "gif",
        "image/jpeg": "jpg",
        "image/png": "png",
        "image/webp": "webp",
    }
)
"""The ending of each type of image that models and their tools generate."""


class StoredName(NamedTuple):
    """The name of a stored file, and its MIME type."""

    name: str
    media_type: str


def shorten_name(name: str) -> str:
    """Return at most 200 characters of a foreign name: its begin and its ending.

    Whoever chooses a name chooses its length too, so this comes before anything else
    reads it.
    """
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return name[: MAX_NAME_LENGTH - _MAX_ENDING] + name[-_MAX_ENDING:]


def stored_name(name: str) -> StoredName:
    """Return the name and the type under which a file is stored.

    `name` is any text: a directory before it is left out, and a browser runs nothing
    that has the returned name.
    """
    base = shorten_name(name.replace("\\", "/").rpartition("/")[2]) or "file"
    stem, _, ending = base.lower().rpartition(".")
    if stem and ending in _INERT_TYPES:
        return StoredName(base, _INERT_TYPES[ending])
    if ending in _COMPRESSED_TYPES and _is_inert_inside(stem):
        return StoredName(base, _COMPRESSED_TYPES[ending])
    return StoredName(f"{base}.bin", _INERT_TYPES["bin"])


def _is_inert_inside(stem: str) -> bool:
    """Say whether what was compressed is inert, by its name without the last ending."""
    _, dot, inner = stem.rpartition(".")
    if not dot:
        return bool(stem)
    return inner in _INERT_TYPES


def image_name(media_type: str) -> str:
    """Return the name of an image that has only a type."""
    ending = _IMAGE_ENDINGS.get(media_type)
    return f"image.{ending}" if ending else "image"


# --------------------------------------------------------------------------------------
# owui_chat.code
#
# Code that the API ran, in the host's form.
#
# The host has a card for code and puts its content into the text of later turns
# (docs/reference/open-webui.md, "The stored output and the next turn"). There it takes
# the place of the stored item. The host runs only code with `attributes` (the same,
# "Rounds of tools").
#
# The page shows the code between two fences and does not show `output` (observed on
# 0.12.4). So the text of the code closes the first block and opens a second one with its
# output, which the page's last fence closes.
# --------------------------------------------------------------------------------------


CODE_CARD = "open_webui:code_interpreter"


def code_host_item(item: JsonObject) -> Item:
    """Return code and its output as the host's own item."""
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": replay_code(item, code_output(item)),
    }


def replay_code(item: JsonObject, printed: str) -> str:
    """Return code as the page shows it, with its output in a block below."""
    code = str(item.get("code") or "")
    output = printed.strip("\n").replace("```", "'''")
    if not output:
        return code
    return f"{code}\n```\n```text\n{output}"


def code_text(code: str) -> str:
    """Return what the host puts into the text of a later turn for code."""
    return f"<code_interpreter>\n{code}\n</code_interpreter>"


_MAX_DELETED = 20
"""Deleted cards of one run that are searched for: each time all texts are read."""
_BETWEEN = "\0"
"""Separates the texts of a run while they are searched as one."""


def take_out_code(
    texts: Sequence[str], items: Iterable[Item]
) -> tuple[list[str], list[Item]]:
    """Return the texts of a run without what the host inserted for code.

    It stands there in the order of the `items`. Return also the code that is not there:
    somebody has deleted its card.
    """
    whole = _BETWEEN.join(text.replace(_BETWEEN, "") for text in texts)
    pieces: list[str] = []
    deleted: list[Item] = []
    start = 0
    for item in items:
        code = code_host_item(item)["code"]
        if not code:
            continue
        inserted = code_text(code)
        position = -1
        if len(deleted) < _MAX_DELETED:
            position = whole.find(inserted, start)
        if position < 0:
            deleted.append(item)
        else:
            pieces.append(whole[start:position])
            start = position + len(inserted)
    pieces.append(whole[start:])
    remaining = "".join(pieces).split(_BETWEEN)
    cleaned: list[str] = []
    for before, after in zip(texts, remaining, strict=True):
        # A text without code keeps the white space at its ends.
        text = before if before == after else after.strip()
        cleaned.append(text)
    return cleaned, deleted


# --------------------------------------------------------------------------------------
# owui_chat.storage.markers
#
# The marker grammar: a line in the text that names stored items and is invisible.
#
# `[openai_responses:v2:{type}:{ulid}]: #` is a link reference definition, which Markdown
# renders as nothing on a line of its own after a blank line. It is written with blank
# lines around it, whole in one chunk.
#
# The forms of earlier writers are read as well: ids of 16 or 26 characters in any case,
# with or without a query; v1 links; zero-width blocks. Lines of other pipes are removed
# from the text. White space around a marker comes from its writer or the host, not from
# the model: texts of a model that begin or end with white space are stored whole. See
# docs/reference/markers.md, "Our marker" and "Markers of earlier pipes".
# --------------------------------------------------------------------------------------


# A query has a limit, so that a hostile text is read in linear time.
# Ours has 26 characters and no query. Versions 0.8.15 to 0.9.15 of the earlier pipe had
# ids of 16, 1.0.0 also `?model=...`; the space and the `#` may have been lost.
_V2 = (
    r"\[openai_responses:v2:(?P<kind>[a-z0-9_]{2,30}):(?P<ulid>[0-9a-z]{16}"
    r"(?:[0-9a-z]{10})?)(?:\?[^\]\n]{0,500})?\]:[ \t]*\#?"
)
# 0.8.10 to 0.8.14: an empty link.
_V1 = (
    r"\[\]\(openai_responses:v1:(?P<kind1>[a-z0-9_]{2,30}):(?P<ulid1>[0-9a-z]{26})"
    r"(?:\?[^)\n]{0,500})?\)"
)
# 0.8.6 to 0.8.9: 26 characters of eight bits each, between two word joiners.
_ZERO_WIDTH = "\u2060(?P<bits>[\u200b\u200c]{208})\u2060"
# Lines of other pipes, whose items lie in tables of their own.
_FOREIGN = (
    r"(?m:^[^\S\n]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#"
    r"[^\S\n]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
_SIGNS = ("openai_responses:v", "\u2060", "]: #")
"""Without one a text has no marker, and a search for them is cheap."""
_MAX_PASSES = 5
_ZERO_BIT = "\u200b"
_ONE_BIT = "\u200c"
"""The digits of a zero-width block, eight for each character of an id."""


class MarkedText(NamedTuple):
    """A piece of text, and the id in the marker before it; empty without a marker."""

    ulid: str
    text: str


def format_marker(kind: str, ulid: str) -> str:
    """Return the marker as it is written to the text, blank lines included."""
    return f"\n\n[openai_responses:v2:{kind}:{ulid}]: #\n\n"


def split_at_markers(text: str, ulid: str = "") -> list[MarkedText]:
    """Return the pieces of `text`; at a marker they have no white space.

    `ulid` is in a marker before the text. Without a marker its ends are the model's own.
    """
    if not any(sign in text for sign in _SIGNS):
        only_text = text.strip() if ulid else text
        return [MarkedText(ulid, only_text)]
    pieces: list[MarkedText] = []
    start = 0
    for match in _MARKER.finditer(text):
        pieces.append(MarkedText(ulid, text[start : match.start()].strip()))
        ulid = _marker_id(match)
        start = match.end()
    pieces.append(MarkedText(ulid, text[start:].strip()))
    return [piece for piece in pieces if piece.ulid or piece.text]


def strip_markers(text: str) -> str:
    """Return `text` as a person reads it.

    The search is repeated, because a line of another pipe may become a line of its own
    only then.
    """
    for _ in range(_MAX_PASSES):
        pieces = [piece.text for piece in split_at_markers(text)]
        if pieces == [text]:
            break
        text = "\n\n".join(piece for piece in pieces if piece)
    return text


def _marker_id(match: re.Match[str]) -> str:
    """Return the id that a marker names; empty for a line of another pipe."""
    if match["bits"]:
        return _read_bits(match["bits"]).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()


def _read_bits(bits: str) -> str:
    """Return the text of a zero-width block."""
    digits = bits.replace(_ZERO_BIT, "0").replace(_ONE_BIT, "1")
    octets = [digits[start : start + 8] for start in range(0, len(digits), 8)]
    return "".join(chr(int(octet, 2)) for octet in octets)


# --------------------------------------------------------------------------------------
# owui_chat.input.history
#
# The input items of a chat's history.
#
# The host decides which items exist; a stored item decides their bytes. Everything
# between two user messages is one run. Inside a run a stored call is placed where the
# host has its card, with its reasoning before it. Stored items without a card are placed
# at their marker.
#
# `<details>` blocks of earlier writers, which no model wrote, are removed
# (docs/reference/markers.md, "Blocks of earlier pipes").
# --------------------------------------------------------------------------------------


_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def _strip_old_blocks(text: str) -> str:
    """Return `text` without such blocks; a block that is not closed stays as text."""
    if _SIGN not in text:
        return text
    # Only the text before the last end is read, once.
    head, end, rest = text.rpartition("</details>")
    return _BLOCK.sub("", f"{head}{end}{rest[:1]}") + rest[1:]


def build_input(
    parts: Iterable[ChatPart],
    records: Mapping[str, Record],
    reader: Origin | None,
    *,
    with_tools: bool = True,
    repairs: Sequence[Repair] = (),
) -> list[Item]:
    """Return the input of a request; without a `reader` no reasoning is sent.

    A compaction that the `repairs` leave out replaces nothing: what it stood for is
    sent again. Without `with_tools` runs that are over do not include what tools did.
    The result is always valid: calls and outputs come in pairs, and reasoning only with
    its encrypted content and directly before its product.
    """
    items: list[Item] = []
    run: list[AssistantPart] = []
    unused = dict(records)  # a copied marker names nothing: each record is used once
    for part in parts:
        if not isinstance(part, UserMessage):
            run.append(part)
            continue
        ended_run = _RunHistory(run, unused, reader).items()
        if not with_tools:
            ended_run = drop_tool_items(ended_run)
        items += ended_run
        items.append(part.item)
        run = []
    items += _RunHistory(run, unused, reader).items()
    kinds = {item.get("type") for item in items}
    if "compaction" in kinds:
        items = since_compaction(_sent_compactions(items, repairs))
    paired = drop_orphans(items)
    if kinds.isdisjoint(CHANGED_LATER):
        return paired
    # An image is an input message: inserted last, to keep reasoning next to its text.
    sent: list[Item] = []
    for item in paired:
        sent += past_items(item)
    return sent


def _sent_compactions(items: list[Item], repairs: Sequence[Repair]) -> list[Item]:
    """Return `items` without the compactions that the `repairs` leave out."""
    if not repairs:
        return items
    sent = {id(row.item) for row in name_items(items, repairs)}
    return [item for item in items if id(item) in sent or not is_compaction(item)]


def tool_message_item(returned: ToolMessage, call_types: Mapping[str, str]) -> Item:
    """Return the input item for a tool's result; `call_types` are those of calls."""
    call_id = returned.call_id
    kind = call_types.get(call_id, "function_call")
    return {"type": CALL_OUTPUTS[kind], "call_id": call_id, "output": returned.output}


AssistantPart = AssistantText | ToolCall | ToolMessage


class _CallPlace(NamedTuple):
    """Where a call stands: in which record, and the index behind it there."""

    ulid: str
    end: int


_NO_PLACE = _CallPlace("", 0)


class _PlacedCall(NamedTuple):
    """A call, and the stored items around it."""

    before: list[Item]
    item: Item
    behind: list[Item]


# An example, of a run with one call:
#
#   record A of the answer                   what the host gives back
#   --------------------------------------   ----------------------------
#   reasoning 1, call_1, reasoning 2,        call_1, the output of call_1
#   message "It rains."                      marker A, "It rains."
#
# The card of call_1 takes the items of the record up to the call, the marker takes the
# rest. So the result is reasoning 1, call_1, its output, reasoning 2, and the message in
# the model's own bytes. If the card was deleted, the marker takes all of the record, and
# `drop_orphans` removes the call with its reasoning.
class _RunHistory:
    """The items of one run, combined from the host's parts and the stored items."""

    def __init__(
        self,
        run: Sequence[AssistantPart],
        records: dict[str, Record],
        reader: Origin | None,
    ) -> None:
        """Take what the `run` names out of the `records`.

        Without what nobody at this request's server can read. A call whose card was
        deleted stays for now, because it tells which reasoning must be removed with it.
        """
        self._pieces: list[_Piece] = []
        self._items: dict[str, list[Item]] = {}
        """The items of each record, by its ULID."""
        self._shown: dict[str, str] = {}
        """The digest of the text that each record was shown with."""
        self._taken: dict[str, int] = {}
        """How many items of each record are in the result already."""
        for part in run:
            if isinstance(part, AssistantText):
                self._add_text(part, records, reader)
            else:
                self._pieces.append(part)
        self._take_out_code()

    def _add_text(
        self,
        assistant_text: AssistantText,
        records: dict[str, Record],
        reader: Origin | None,
    ) -> None:
        """Take the records that a text names out of the `records`."""
        for piece in _marked_texts(assistant_text):
            self._pieces.append(piece)
            record = records.pop(piece.ulid, None)
            if record:
                self._items[piece.ulid] = _readable_items(record, reader)
                self._shown[piece.ulid] = record.shown

    @cached_property
    def _call_places(self) -> dict[str, _CallPlace]:
        """Where each call stands in the records, by its id."""
        places: dict[str, _CallPlace] = {}
        for ulid, items in self._items.items():
            for end, item in enumerate(items, 1):
                if is_call(item):
                    places[str(item.get("call_id"))] = _CallPlace(ulid, end)
        return places

    def _take_out_code(self) -> None:
        """Remove the host's text for code, and code whose card was deleted."""
        codes: list[Item] = []
        for items in self._items.values():
            codes += [item for item in items if "code" in item and is_code(item)]
        if not codes:
            return
        texts = [_text_of(piece) for piece in self._pieces]
        cleaned, deleted = take_out_code(texts, codes)
        self._replace_texts(cleaned)
        self._remove_items(deleted)

    def _replace_texts(self, texts: Sequence[str]) -> None:
        """Give the texts of the run other words; `texts` has one for each piece."""
        pieces: list[_Piece] = []
        for piece, text in zip(self._pieces, texts, strict=True):
            if isinstance(piece, MarkedText):
                pieces.append(MarkedText(piece.ulid, text))
            else:
                pieces.append(piece)
        self._pieces = pieces

    def _remove_items(self, deleted: Iterable[Item]) -> None:
        """Remove these items, and no others that are equal."""
        deleted_ids = {id(item) for item in deleted}
        for ulid, items in self._items.items():
            remaining = [item for item in items if id(item) not in deleted_ids]
            self._items[ulid] = remaining

    def items(self) -> list[Item]:
        """Return the items of the run in order."""
        items: list[Item] = []
        call_types: dict[str, str] = {}
        has_remote = False
        for piece in self._pieces:
            if isinstance(piece, MarkedText):
                items += self._place_text(piece)
            elif isinstance(piece, ToolCall):
                call = self._place_call(piece)
                call_types.setdefault(piece.call_id, call.item["type"])
                items += [*call.before, call.item, *call.behind]
            else:
                items.append(tool_message_item(piece, call_types))
                has_remote |= is_remote_id(piece.call_id)
        return reorder_remote_outputs(items) if has_remote else items

    def _place_call(self, call: ToolCall) -> _PlacedCall:
        """Return a call in its stored bytes, between the items stored around it.

        Behind the last call of a response stands the compaction that ended it. The
        outputs came later: they are not compacted.
        """
        ulid, end = self._call_places.get(call.call_id, _NO_PLACE)
        items = self._take_items(ulid, end)
        if not items:
            return _PlacedCall([], _call_item(call), [])
        # Of a record that is not signed only the chat's own words count.
        item = items.pop()
        if not item.get("name"):
            item = _call_item(call)
        behind: list[Item] = []
        following = self._items.get(ulid, [])[end:]
        # Recorded: the API compacts behind the last item of a response (8 of 8).
        if following and is_compaction(following[0]):
            length = 1 + count_updates(following[1:])
            behind = self._take_items(ulid, end + length)
        return _PlacedCall(items, item, behind)

    def _take_items(self, ulid: str, end: int | None = None) -> list[Item]:
        """Return the items of a record that were not taken yet, up to an index."""
        items = self._items.get(ulid, [])
        start = self._taken.get(ulid, 0)
        if end is None:
            end = len(items)
        self._taken[ulid] = max(start, end)
        return items[start:end]

    def _place_text(self, piece: MarkedText) -> list[Item]:
        """Return the items at a marker, and the text behind it as a message.

        The message that is stored there is the model's own form of the text.
        """
        items = self._take_items(piece.ulid)
        message: Item | None = None
        if items and item_type(items[-1]) == "message":
            shown = self._shown[piece.ulid]
            if shown and shown == text_digest(piece.text):
                return items
            # Open WebUI joins neighboring messages and drops `phase`
            # (utils/misc.py:408). It does not return the text of commentary, so the text
            # at its marker is another one.
            is_hidden = is_commentary(items[-1]) and message_text(items[-1])
            if shown or not is_hidden:
                message = items.pop()
        if piece.text:
            items.append(_message_item(message, piece.text))
        return items


def _readable_items(record: Record, reader: Origin | None) -> list[Item]:
    """Return what is sent of a record: a configuration is for its model alone.

    Items are stored in the form in which they are sent again.
    """
    is_ours = bool(reader and reader.can_decrypt(record.origin))
    return [item for item in record.payload if is_replayed(item, is_ours=is_ours)]


def _call_item(call: ToolCall) -> Item:
    """Return a call as the chat has it, without a stored item."""
    named = {"call_id": call.call_id, "name": call.name}
    if call.is_custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments}


_Piece = MarkedText | ToolCall | ToolMessage


def _marked_texts(assistant_text: AssistantText) -> list[MarkedText]:
    """Return the text of a message in pieces, each behind the marker of a record."""
    ulids = assistant_text.ulids or ("",)
    in_front = [MarkedText(ulid, "") for ulid in ulids[:-1]]
    text = _strip_old_blocks(assistant_text.text)
    return in_front + split_at_markers(text, ulids[-1])


def _text_of(piece: _Piece) -> str:
    """Return the text of a piece; empty for calls and outputs."""
    return piece.text if isinstance(piece, MarkedText) else ""


def _message_item(kept: Item | None, shown: str) -> Item:
    """Return a message in the model's own bytes, unless a person edited it."""
    if kept is None:
        return text_message("assistant", shown)
    if message_text(kept).strip() == shown:
        return kept
    match kept.get("content"):
        case [{"type": "output_text"} as part]:
            edited = {**part, "text": shown}
            if "text" in part:
                edited["annotations"] = []  # their positions are no longer valid
            content = [edited]
        case _:
            content = text_message("assistant", shown)["content"]
    return {**kept, "content": content}


# --------------------------------------------------------------------------------------
# owui_chat.events
#
# The events of an answer: those of its run, with what is shown and stored of it.
#
# `citations` puts shown texts and sources into the events of a run, `storage.recorder`
# adds markers and records, and `render.native` shows the result.
# --------------------------------------------------------------------------------------


class SourceCited(NamedTuple):
    """A source to list below the answer, in the host's form."""

    source: JsonObject


class Marker(NamedTuple):
    """Text that names a record; it belongs to the event that follows.

    It stands before the text of a delta, behind commentary that ended, or alone at the
    end of the run.
    """

    text: str


class StoredRecord(NamedTuple):
    """A record to store in the answer's own output, as an item of it."""

    item: Item
    output_index: int | None = None
    """The item whose text follows the record, None for the end of the run."""


class TurnDetails(NamedTuple):
    """The entries of a response for the `reasoning_details` of its reasoning."""

    details: Sequence[Item]


CitedEvent = RunEvent | SourceCited
AnswerEvent = CitedEvent | Marker | StoredRecord | TurnDetails


# --------------------------------------------------------------------------------------
# owui_chat.files
#
# Files that an answer made: their addresses and the lines below the text.
#
# The pipe stores images and files and adds a `card` to the finished item: the `files`
# to show, the `links` from addresses inside a container to addresses of the host, and
# `notes`, lines of Markdown below a text.
# --------------------------------------------------------------------------------------


# A sentence may end behind an address: its last character is no punctuation.
_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def file_citations(item: JsonObject) -> list[Item]:
    """Return the citations of container files in a message, one for each file."""
    citations: dict[str, Item] = {}
    for part in content_parts(item.get("content")):
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "container_file_citation":
                citations[str(annotation.get("file_id"))] = annotation
    return list(citations.values())


def container_addresses(text: str, name: str) -> list[str]:
    """Return the addresses in `text` of the container file with this name.

    `name` is one that `shorten_name` returned.
    """
    addresses = dict.fromkeys(_CONTAINER_ADDRESS.findall(text))
    return [address for address in addresses if _address_name(address) == name]


def _address_name(address: str) -> str:
    """Return the name of a file by its address, at most 200 characters of it."""
    return shorten_name(unquote(address).rpartition("/")[2])


def link_files(text: str, card: JsonObject) -> str:
    """Return a text with the addresses and notes of its card."""
    links = card.get("links") or {}

    def host_address(match: re.Match[str]) -> str:
        """Return the host's address of a file that was stored."""
        address = match[0]
        return str(links.get(address, address))

    linked = _CONTAINER_ADDRESS.sub(host_address, text)
    return "\n\n".join([linked, *card.get("notes", ())])


def file_lines(card: JsonObject) -> str:
    """Return the links and notes of a card, for a text that was shown without them."""
    links = card.get("links") or {}
    lines = [f"[{_address_name(address)}]({url})" for address, url in links.items()]
    lines += card.get("notes", ())
    return "".join(f"\n\n{line}" for line in lines)


# --------------------------------------------------------------------------------------
# owui_chat.citations
#
# Sources of an answer: `[n]` in its text, links, and annotations.
#
# The model writes links such as `([host](https://host/page?utm_source=openai))`. Such a
# link must be complete before it can be replaced, so text that may become one is held
# back.
#
# The page's `[n]` is the n-th distinct source of a message (docs/reference/open-webui.md,
# "Sources and citations"). So the numbers continue over all rounds of a run, and sources
# of the host's tools count as well. Links to pages of a search become numbers while the
# text grows. Sources that only annotations name are inserted when the message ends.
#
# For plain HTTP clients annotations have the form of Chat Completions.
# --------------------------------------------------------------------------------------


# What a model writes arrives in pieces, and a link must be whole to be replaced:
#
#   The lake is warm ([zuerich.ch](https://zuerich.ch/lake_(north)?utm_source=openai)).
#                    ^ from here on the text is held back until the last parenthesis
#
# The page then gets `The lake is warm [1].`, and a source. An address may have one pair
# of parentheses. All patterns have bounds, so that hostile text is read in linear time
# (tests/test_regular_expressions.py).
_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

_LINK = re.compile(rf"\[({_LABEL})\]\(({_URL})\)")
"""Begins with a plain character, so that `re` skips all others fast."""
_MAX_HELD_BACK = 4000
"""Characters of what may become a link, or a tracking parameter."""

_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
"""Every alternative begins with one, too."""


def _beginnings_of(text: str) -> str:
    """Return the pattern of all beginnings of a text, up to the end of the string."""
    pattern = ""
    for letter in reversed(text):
        pattern = f"(?:{letter}{pattern})?"
    return rf"{pattern}\Z"


_BEGUN_TRACKING = _beginnings_of(_TRACKED)
_UNFINISHED_TRACKING = rf"\?{_BEGUN_TRACKING}|&{_BEGUN_TRACKING}"
_TRACKING = re.compile(rf"[?&]{_TRACKED}(?![\w-])")

_OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)
"""The end of a text that may become a tracking parameter."""


class HoldbackBuffer:
    """Holds back the end of a growing text while it may become something to replace."""

    def __init__(self, unfinished: re.Pattern[str]) -> None:
        """Hold back the end that matches `unfinished`."""
        self._unfinished = unfinished
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        text = self._held + text
        match = self._unfinished.search(text, max(0, len(text) - _MAX_HELD_BACK))
        end = match.start() if match else len(text)
        self._held = text[end:]
        return text[:end]

    def rest(self) -> str:
        """Return the text that was held back, at the end of the text."""
        rest = self._held
        self._held = ""
        return rest


def strip_tracking(text: str) -> str:
    """Return a text, or an address, without tracking parameters in its links."""
    if _TRACKED not in text:
        return text
    return _TRACKING.sub("", text.replace(f"?{_TRACKED}&", "?"))


class _GrowingPart:
    """The part of an item that grows, by its index, and what is held back of it.

    `last_number` is the number that its text ends with so far, as it was put in; empty
    if it ends with other text.
    """

    def __init__(self, part: int) -> None:
        self.part = part
        self.buffer = HoldbackBuffer(_OPEN_LINK)
        self.last_number = ""


class _Edit(NamedTuple):
    """What replaces the text from `start` to `end`."""

    start: int
    end: int
    text: str


_MAX_SOURCES = 200
"""Of a message, those of the host's tools included; nobody reads more."""
_FEW_SOURCES = 10
_SOURCES_AT_ONCE = 10


class Citations:
    """Numbers the sources of one run; the same events give the same numbers.

    `_waiting` holds the sources that the page does not know yet.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Continue after the sources that the page already has, given by their keys."""
        self._numbers = {key: number for number, key in enumerate(known, 1)}
        self._names: dict[str, str] = {}
        self._waiting = deque[str]()
        self._growing: dict[int, _GrowingPart] = {}
        self._shown = 0
        """How many sources of ours the page knows."""

    def feed(self, event: RunEvent) -> Iterable[CitedEvent]:
        """Return the event with its text as it is shown, and the sources it names.

        A delta is common: it needs no generator.
        """
        if not isinstance(event, TextDelta):
            return self._feed_other(event)
        if event.kind not in ("text", "refusal"):
            return (event,)
        text = self._grow(event)
        if text != event.text:
            event = event._replace(text=text)
        return (event,)

    def _feed_other(self, event: RunEvent) -> Iterator[CitedEvent]:
        """Yield an event that is not a delta, with what it completes."""
        match event:
            case AnnotationAdded():
                self._note_name(event.annotation)
                yield event
                yield from self._sources(ended=False)
            case ItemDone() if item_type(event.item) == "message":
                yield from self._rest(event.output_index)
                yield event._replace(shown=self._shown_text(event))
                yield from self._sources(ended=True)
            case ToolOutput():
                yield event
                yield from self._sources(ended=True)
                sources = event.card.get("sources", ())
                for key in source_keys(sources):
                    self._numbers.setdefault(key, len(self._numbers) + 1)
                for source in sources:
                    yield SourceCited(source)
            case RunDone():
                for index in list(self._growing):
                    yield from self._rest(index)
                yield from self._sources(ended=True)
                yield event
            case _:
                yield event

    def _rest(self, index: int) -> Iterator[CitedEvent]:
        """Yield the text of an item that was held back."""
        text = self._take_held(index)
        if text:
            yield TextDelta(index, "text", 0, text)

    def _take_held(self, index: int) -> str:
        """Return the text of an item that was held back, as it is shown; end holding."""
        growing = self._growing.pop(index, None)
        if growing is None:
            return ""
        return self._number_links(growing, growing.buffer.rest())

    def _shown_text(self, ended: ItemDone) -> str:
        """Return the whole text of a message as it is shown."""
        content = ended.item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        text = "".join(self._shown_part(part) for part in content_parts(parts))
        return link_files(text, ended.card)

    def _sources(self, *, ended: bool) -> Iterator[CitedEvent]:
        """Yield the sources to show now, in the order of their numbers, as one event.

        For each event the host reads and writes all sources of the message
        (socket/main.py:1583 of 0.12.4), so the first few are shown at once, and the
        others some at a time. While a message is growing, sources without a known name
        wait.
        """
        names: dict[str, str] = {}
        for key in self._waiting:
            if not ended and key not in self._names:
                break
            names[key] = self._names.get(key, key)
        is_due = ended or self._shown < _FEW_SOURCES or len(names) >= _SOURCES_AT_ONCE
        if not names or not is_due:
            return
        self._shown += len(names)
        for _ in names:
            self._waiting.popleft()
        first = next(iter(names))
        source = {"name": names[first]}
        if first.startswith("http"):
            source["url"] = first
        metadata = [{"source": key, "name": name} for key, name in names.items()]
        cited = {"source": source, "document": [*names.values()], "metadata": metadata}
        yield SourceCited(cited)

    def _grow(self, event: TextDelta) -> str:
        """Return what can be shown with a delta: also the rest of an earlier part."""
        index = event.output_index
        growing = self._growing.get(index)
        before = ""
        if growing is None or growing.part != event.part:
            before = self._take_held(index)
            growing = _GrowingPart(event.part)
            self._growing[index] = growing
        return before + self._number_links(growing, growing.buffer.feed(event.text))

    def _number_links(self, growing: _GrowingPart, text: str) -> str:
        """Return more text of a part, in which links to pages of a search are numbers.

        A number directly behind the same number is left out, as in the whole text.
        """
        if _TRACKED not in text:
            if text:
                growing.last_number = ""
            return text
        edits = _without_repeats(self._edit_links(text, set()), growing.last_number)
        growing.last_number = _number_at_end(text, edits, growing.last_number)
        return strip_tracking(_apply_edits(text, edits))

    def _edit_links(self, text: str, sources: Container[str]) -> list[_Edit]:
        """Return the numbers for links to what a search found, or to one of `sources`.

        A label with meaning stays in the text. Parentheses directly around a link go.
        """
        edits: list[_Edit] = []
        for link in _LINK.finditer(text):
            address = link[2]
            if not (_TRACKING.search(address) or address in sources):
                continue
            url = strip_tracking(address)
            label = link[1].strip()
            number = self._number(url)
            if not number:
                continue  # it stays a link
            start = link.start()
            end = link.end()
            # Slices, because a link may be the first or the last of the text.
            is_in_parentheses = (
                text[start - 1 : start] == "(" and text[end : end + 1] == ")"
            )
            # A label like `zuerich.ch` only repeats the address; any other is a part of the
            # sentence, and stays.
            names_site = "." in label and " " not in label
            if is_in_parentheses:
                edits.append(_Edit(start - 1, end + 1, number))
            elif names_site:
                edits.append(_Edit(start, end, number))
            else:
                edits.append(_Edit(start, end, f"[{label}]({url}){number}"))
        return edits

    def _shown_part(self, part: Item) -> str:
        """Return the text of a part with the numbers of the sources that it cites."""
        text = part_text(part)
        annotations = content_parts(part.get("annotations"))
        if not annotations and _TRACKED not in text:
            return text
        for annotation in annotations:
            self._note_name(annotation)
        keys = {_key(annotation) for annotation in annotations}
        link_edits = self._edit_links(text, keys)
        starts = [edit.start for edit in link_edits]
        edits = list(link_edits)
        for annotation in annotations:
            key = _key(annotation)
            start, end = _range(annotation, text)
            # An annotation that begins inside of a link is about that link, which has
            # got its number.
            links_before = bisect(starts, start)
            is_in_link = links_before > 0 and start < link_edits[links_before - 1].end
            is_link = "url" in annotation and is_in_link
            if key and not is_link:
                edits.append(_Edit(end, end, self._number(key)))
        return strip_tracking(_apply_edits(text, _without_repeats(edits)))

    def _number(self, key: str) -> str:
        """Return the number of a source in brackets; a new one waits to be shown.

        Empty for one source more than a message may have.
        """
        if key not in self._numbers:
            if len(self._numbers) >= _MAX_SOURCES:
                return ""
            self._numbers[key] = len(self._numbers) + 1
            self._waiting.append(key)
        return f"[{self._numbers[key]}]"

    def _note_name(self, annotation: Item) -> None:
        """Remember the name of a source."""
        name = annotation.get("title") or annotation.get("filename")
        key = _key(annotation)
        if name and key:
            self._names[key] = shorten_name(str(name))


def source_keys(sources: object) -> list[str]:
    """Return the keys by which the page tells the host's sources apart, each once.

    Each document of a source is one, by the metadata at its place, if there is any.
    """
    keys: list[str] = []
    for source in content_parts(sources):
        own_id = value_at(source, "source", "id")
        metadata = as_list(source.get("metadata"))
        for index in range(len(as_list(source.get("document")))):
            row = metadata[index] if index < len(metadata) else None
            keys.append(str(value_at(row, "source") or own_id or "N/A"))
    return list(dict.fromkeys(keys))


def _key(annotation: Item) -> str:
    """Return the key of a source; empty if the annotation is not a source."""
    match annotation.get("type"):
        case "url_citation":
            return strip_tracking(str(annotation.get("url") or ""))
        case "file_citation":
            return str(annotation.get("file_id") or annotation.get("filename") or "")
    return ""


def _range(annotation: Item, text: str) -> tuple[int, int]:
    """Return the first position of an annotation's text, and the one behind the last.

    `end_index` is documented as the last character, but it is the one behind it
    (recorded, 148 of 149). A file's `index` is the place of the citation.
    """
    start = annotation.get("start_index", annotation.get("index"))
    last = annotation.get("end_index", annotation.get("index"))
    if not isinstance(start, int) or not isinstance(last, int):
        return len(text), len(text)
    before = text[last - 1 : last]
    behind = text[last : last + 1]
    is_in_word = before.isalnum() and behind.isalnum()
    # What would cut a word, or leave the sentence's end behind it, is meant as
    # documented.
    ends_sentence = behind in (".", "!", "?") and last > start
    end = last + 1 if is_in_word or ends_sentence else last
    return min(start, len(text)), min(end, len(text))


def _apply_edits(text: str, edits: Iterable[_Edit]) -> str:
    """Return a text with the edits, in the order of their places in it."""
    pieces: list[str] = []
    done = 0
    # Where two edits overlap, what both replace is left out once.
    for edit in sorted(edits, key=_edit_place):
        pieces += [text[done : edit.start], edit.text]
        done = max(done, edit.end)
    pieces.append(text[done:])
    return "".join(pieces)


def _without_repeats(edits: Iterable[_Edit], number: str = "") -> list[_Edit]:
    """Return the edits without numbers that stand directly behind the same number.

    An annotation often cites the page that the link beside it names. `number` is what
    stands in front of the text.
    """
    kept: list[_Edit] = []
    end = 0
    for edit in sorted(edits, key=_edit_place):
        repeats = edit.start <= end and number.endswith(edit.text)
        if repeats:
            kept.append(edit._replace(text=""))
        else:
            kept.append(edit)
            number = edit.text
        end = max(end, edit.end)
    return kept


def _number_at_end(text: str, edits: Sequence[_Edit], before: str) -> str:
    """Return the number that the edited text ends with, or an empty text.

    `before` is the number in front of the text, which is the last one if all of the
    text is a repeat of it.
    """
    end = max((edit.end for edit in edits), default=0)
    if end < len(text):
        return ""
    numbers = [edit.text for edit in edits if edit.text]
    return numbers[-1] if numbers else before


def _edit_place(edit: _Edit) -> tuple[int, int]:
    return edit.start, edit.end


def chat_annotations(item: Item, before: int) -> list[Item]:
    """Return the pages that a message cites, with their positions in the answer.

    `before` is where the message begins in it, counted without tracking parameters.
    """
    annotations: list[Item] = []
    for part in content_parts(item.get("content")):
        text = part_text(part)
        find_position = _position_finder(text)
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") != "url_citation":
                continue
            cited = {
                "url": _key(annotation),
                "title": shorten_name(str(annotation.get("title") or "")),
                "start_index": before + find_position(annotation.get("start_index")),
                "end_index": before + find_position(annotation.get("end_index")),
            }
            annotations.append({"type": "url_citation", "url_citation": cited})
        before += find_position(len(text))
    return annotations


def _position_finder(text: str) -> Callable[[object], int]:
    """Return what finds a place of a text again when tracking parameters are gone.

    What is no place is the end.
    """
    matches = list(_TRACKING.finditer(text))
    starts = [match.start() for match in matches]
    removed_before = [0, *accumulate(len(match[0]) for match in matches)]

    def find(position: object) -> int:
        """Return the place in the text without tracking parameters."""
        old_position = position if isinstance(position, int) else len(text)
        return old_position - removed_before[bisect_left(starts, old_position)]

    return find


# --------------------------------------------------------------------------------------
# owui_chat.render.chunks
#
# Chunks that Open WebUI understands in addition to an answer's text.
#
# The sums of tokens are for billing. The host's compaction reads `prompt_tokens` as the
# size of the chat, so `prompt_tokens` and `completion_tokens` are those of the last
# response (docs/reference/open-webui.md, "Usage").
#
# With `choices` in a chunk, the host ignores its `error`.
# --------------------------------------------------------------------------------------


Chunk = dict[str, Any]
Chunks = Iterator[Chunk]

METADATA_KEY = "execution_metadata"
"""The seed's name of what an agent's answer took."""


def host_usage(ended: RunDone) -> Chunk:
    """Return the field `usage` as the host stores it; empty if nothing was counted."""
    usage = ended.usage
    if usage is None:
        return {}
    newest = ended.last_usage or usage
    counts: Chunk = {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens": newest.input,
        "completion_tokens": newest.output,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_writes,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    }
    # Open WebUI adds repeated usage up (utils/response.py:104), so it is sent once.
    if ended.cost is not None:
        counts["cost"] = ended.cost
    if ended.trace.response_id:
        counts["response_id"] = ended.trace.response_id
    return {"usage": counts}


def client_usage(ended: RunDone) -> Chunk:
    """Return the field `usage` for a client of Chat Completions: sums over all rounds.

    The host's form has the tokens of the last response in `prompt_tokens`, from which
    the page tells how full the context is.
    """
    field = host_usage(ended)
    if ended.usage is not None:
        sums = {
            "prompt_tokens": ended.usage.input,
            "completion_tokens": ended.usage.output,
        }
        field["usage"] |= sums
    return field


def error_chunk(message: str) -> Chunk:
    """Return the chunk that marks the answer as failed and keeps its text."""
    return {"error": {"message": message}}


def error_as_text(chunk: Chunk) -> Chunk:
    """Return a chunk with its error as text, for a reader that drops errors."""
    message = value_at(chunk, "error", "message")
    if not message:
        return chunk
    delta = {"content": f"\n\n{message}"}
    return {"choices": [{"index": 0, "delta": delta}]}


def status_chunk(text: str) -> Chunk:
    """Return a status line above the answer, which the host stores.

    Without a text it hides those before it, until the next one.
    """
    status: Chunk = {"description": text, "done": True}
    if not text:
        status["hidden"] = True
    return host_event("status", status)


def closing_chunk(line: str, metadata: JsonObject) -> Chunk:
    """Return the last status line; the host stores an agent's `metadata` with it."""
    chunk = status_chunk(line)
    if metadata:
        chunk["event"]["data"] |= {"action": METADATA_KEY, METADATA_KEY: dict(metadata)}
    return chunk


def metadata_field(ended: RunDone) -> Chunk:
    """Return the field that holds an agent's metadata; empty if there is none."""
    return {METADATA_KEY: dict(ended.metadata)} if ended.metadata else {}


def source_chunk(name: str, text: str) -> Chunk:
    """Return a source below the answer that opens to show `text`."""
    source = {
        "source": {"name": name},
        "document": [text],
        "metadata": [{"source": name}],
    }
    return host_event("source", source)


def host_event(kind: str, data: JsonObject) -> Chunk:
    """Return a chunk whose event the host hands to its event emitter."""
    # A stream filter that reads `event["choices"]` raises for a chunk without it, and
    # Open WebUI then drops the chunk (observed: the whole answer was lost).
    event = {"type": kind, "data": data}
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}


# --------------------------------------------------------------------------------------
# owui_chat.commentary
#
# Commentary of the model: how the host stores it, and when it is the answer.
# --------------------------------------------------------------------------------------


COMMENTARY_TYPE = "openai_responses:remark"
"""The type of the item that shows commentary; the host sends it to no model."""


def closing_commentary(output: Sequence[Item]) -> Item | None:
    """Return the commentary that is the last output of a run or of its last response."""
    if open_calls(output):
        return None
    for item in reversed(output):
        if is_call(item) or is_call_output(item) or is_approval_request(item):
            return None
        if item_type(item) == "message" and message_text(item).strip():
            return item if is_commentary(item) else None
    return None


# --------------------------------------------------------------------------------------
# owui_chat.render.completions
#
# Run events as Chat Completions for plain HTTP clients.
#
# They are streamed or in one piece. Open calls are for the client; they come at the end.
# Commentary is shown as reasoning, so that the text is only the answer. If a run ends
# with commentary, it is repeated as the answer.
# --------------------------------------------------------------------------------------


_GAP = "\n\n"
_FINISH_REASONS = {
    "max_output_tokens": "length",
    "max_messages": "length",
    "content_filter": "content_filter",
}
_BROKEN_OFF = ("cancelled", "steered")
"""Reasons for which an answer is incomplete that no finish reason tells."""


class ChunkRenderer:
    """Shows one run as growing text and reasoning, which includes commentary.

    `_length` counts the characters of the text so far. `_last_part` names the part of
    the last text of each kind, and `_commentary` has its items by their output indexes.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        """Take the fields of every chunk: its id, its time in seconds, the model."""
        self.head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._open_calls: dict[str, Item] = {}
        self._held = HoldbackBuffer(OPEN_TRACKING)
        self._length = 0
        self._last_part: dict[str, object] = {}
        self._commentary: dict[int, Item] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; a client without a chat stores nothing."""
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._commentary[event.output_index] = event.item
            case TextDelta(kind="text" | "refusal"):
                shown = strip_tracking(self._held.feed(event.text))
                if event.output_index in self._commentary:
                    yield from self._think(event, shown)
                else:
                    gap = self._gap("text", event.output_index)
                    yield from self._add_text(gap + shown)
            case TextDelta(kind="summary" | "reasoning"):
                yield from self._think(event, event.text)
            case ItemDone() if has_image(event.item):
                yield self._chunk({"images": [_chat_image(event.item)]})
            case ItemDone() if item_type(event.item) == "message":
                yield from self._end_message(event)
            case ItemDone() if is_call(event.item):
                self._open_calls[event.item["call_id"]] = event.item
            case ToolOutput():
                self._open_calls.pop(event.item["call_id"], None)
            case RunDone():
                yield from self._end(event)

    def _think(self, event: TextDelta, text: str) -> Chunks:
        """Yield more reasoning, behind a blank line if another part begins."""
        gap = self._gap("reasoning", (event.output_index, event.part))
        yield from self._add_reasoning(gap + text)

    def _end_message(self, event: ItemDone) -> Chunks:
        """Yield the rest of a message, its citations and its files."""
        rest = strip_tracking(self._held.rest())
        if event.output_index in self._commentary:
            self._commentary[event.output_index] = event.item
            yield from self._add_reasoning(rest)
        else:
            yield from self._add_text(rest)
            before = self._length - len(_clean_text(event.item))
            annotations = chat_annotations(event.item, before)
            if annotations:
                yield self._chunk({"annotations": annotations})
        yield from self._add_text(file_lines(event.card))

    def _add_text(self, text: str) -> Chunks:
        self._length += len(text)
        if text:
            yield self._chunk({"content": text})

    def _add_reasoning(self, text: str) -> Chunks:
        if text:
            yield self._chunk({"reasoning_content": text})

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self.head, "choices": [choice]}

    def _gap(self, kind: str, part: object) -> str:
        """Return the blank line before a text of another part than the last one."""
        before = self._last_part.get(kind, part)
        self._last_part[kind] = part
        return "" if before == part else _GAP

    def _end(self, event: RunDone) -> Chunks:
        """Yield the end of the run: open calls, a finish reason or an error, the usage."""
        yield from self._add_text(self._held.rest())
        closing = closing_commentary(event.output)
        if closing and closing in self._commentary.values():
            gap = _GAP if self._length else ""
            yield from self._add_text(gap + _clean_text(closing))
        for index, call in enumerate(self._open_calls.values()):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self._chunk({"tool_calls": [tool_call]})
        error = _error(event.ending)
        if error:
            yield error
        else:
            has_calls = bool(self._open_calls)
            yield self._chunk({}, _finish_reason(event.ending, has_calls))
        sums = {**client_usage(event), **metadata_field(event)}
        if sums:
            yield {**self.head, "choices": [], **sums}


def _chat_image(item: Item) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(item)}}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of Chat Completions."""
    call_id = item["call_id"]
    name = item.get("name")
    if item_type(item) == "custom_tool_call":
        custom = {"name": name, "input": item.get("input") or ""}
        return {"id": call_id, "type": "custom", "custom": custom}
    function = {"name": name, "arguments": item.get("arguments") or "{}"}
    return {"id": call_id, "type": "function", "function": function}


def _error(ending: Ending) -> Chunk:
    """Return the chunk of an error; empty if an answer has a finish reason."""
    has_reason = ending.kind == "incomplete" and ending.code not in _BROKEN_OFF
    if not ending.is_failure or has_reason:
        return {}
    return error_chunk(ending.sentence)


def _finish_reason(ending: Ending, has_calls: bool) -> str:
    """Return the word of Chat Completions for how an answer ended."""
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"


def completion(
    ended: RunDone, completion_id: str, created: int, model: str
) -> dict[str, Any]:
    """Return the `chat.completion` of a run; only the error if it failed at once."""
    error = _error(ended.ending)
    if error and not ended.output:
        return error
    message = _message(ended)
    finish = _finish_reason(ended.ending, "tool_calls" in message)
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **client_usage(ended),
        **metadata_field(ended),
        **error,
    }


def completion_text(ended: RunDone) -> str:
    """Return the text of an answer: without commentary, unless that is all or the end."""
    return _GAP.join(_clean_text(message) for message in _answer_messages(ended))


def _answer_messages(ended: RunDone) -> list[Item]:
    """Return the messages that are the answer; commentary only if that is all."""
    messages = [item for item in ended.output if item_type(item) == "message"]
    closing = closing_commentary(ended.output)
    answer: list[Item] = []
    for message in messages:
        if not is_commentary(message) or message == closing:
            answer.append(message)
    return answer or messages


def _clean_text(message: Item) -> str:
    return strip_tracking(message_text(message))


def _annotations(ended: RunDone) -> list[Item]:
    """Return the citations of an answer, at their places in its whole text."""
    annotations: list[Item] = []
    before = 0
    for message in _answer_messages(ended):
        annotations += chat_annotations(message, before)
        before += len(_clean_text(message)) + len(_GAP)
    return annotations


def _message(ended: RunDone) -> dict[str, Any]:
    """Return the message of a run, with the fields that it has anything for."""
    message: dict[str, Any] = {"role": "assistant", "content": completion_text(ended)}
    optional = {
        "reasoning_content": _progress(ended),
        "annotations": _annotations(ended),
        "images": [_chat_image(item) for item in ended.output if has_image(item)],
        "tool_calls": [chat_tool_call(call) for call in open_calls(ended.output)],
    }
    for name, value in optional.items():
        if value:
            message[name] = value
    return message


def _progress(ended: RunDone) -> str:
    """Return the reasoning and commentary before the answer."""
    answer_ids = {id(message) for message in _answer_messages(ended)}
    texts: list[str] = []
    for item in ended.output:
        is_step = is_commentary(item) and id(item) not in answer_ids
        if is_step or is_reasoning(item):
            texts += [text for _, text in item_texts(item) if text]
    return strip_tracking(_GAP.join(texts))


# --------------------------------------------------------------------------------------
# owui_chat.render.items
#
# The host's output items of one message, and the events that make them.
#
# The host builds these items from events. The place of an item counts over all responses
# of a run, and each event has an empty `choices` delta for stream filters that look for
# one (docs/reference/open-webui.md, "Native events" and "What a pipe yields").
#
# The page shows a call before it has an output. The host would run a call that never gets
# one, even if its arguments are incomplete, and would leave a call without a status out
# of the next turn (docs/reference/open-webui.md, "Rounds of tools").
#
# The host stores an item of unknown type unchanged and sends it to no model, and the page
# shows nothing for one without `content`. So records can be stored as items:
#
#     {"type": "openai_responses:kept", "id": "kept_{ulid}",
#      "before": id of a message item, "kept": JSON of what a message key would hold}
#
# Without an item in `before` the record belongs to the end of its message.
#
# A chunk that shows files on the page has no choice: otherwise the host would send them
# to the page twice (docs/reference/open-webui.md, "What a pipe yields").
# --------------------------------------------------------------------------------------


def call_host_item(item: Item) -> Item:
    """Return a call in the host's form; the text of a custom call is an argument."""
    # A call without a status of `completed`, `failed` or `rejected` is left out of the
    # next turn (utils/misc.py:394 of 0.12.4).
    shown = {"status": "completed", **_without_secrets(item)}
    if item_type(item) == "custom_tool_call":
        text = json.dumps({"input": shown.pop("input", "")}, ensure_ascii=False)
        shown |= {"type": "function_call", "arguments": text}
    return shown


def output_host_item(event: ToolOutput) -> Item:
    """Return a call's output with what its card shows; images by their address."""
    call_id = event.item["call_id"]
    output = event.item["output"]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    else:
        parts = [{"type": "input_text", "text": output}]
    item = {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if event.failed else "completed",
    }
    for name in ("files", "embeds"):
        if name in event.card:
            item[name] = event.card[name]
    return item


def begun_host_item(item: Item) -> Item:
    """Return an item at its beginning; its texts follow as growth."""
    begun = {**_without_secrets(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [_text_part("")]}
        case "reasoning":
            begun |= {"summary": []}
            begun.pop("content", None)
        case "function_call" | "custom_tool_call":
            begun = {**call_host_item(begun), "arguments": ""}
    return begun


def message_host_item(item: Item, text: str) -> Item:
    """Return a message with one text; refusals are shown as well."""
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def reasoning_host_item(item: Item, seconds: int) -> Item:
    """Return reasoning with its texts as one part each, and its duration."""
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(part_text(part) for part in parts)
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _without_secrets(item: Item) -> Item:
    """Remove fields that readers of the chat cannot use and others should not get."""
    # Open WebUI stores items as they come, and a shared chat shows the row to others.
    kept: Item = {}
    for name, value in item.items():
        if name != "encrypted_content" and value is not None:
            kept[name] = value
    return kept


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


_NOT_RUN = "Error: this was not run, because the answer was interrupted."

_DELTA_TYPES: Mapping[str, str] = {
    "text": "output_text.delta",
    "refusal": "output_text.delta",
    "summary": "reasoning_summary_text.delta",
    "reasoning": "reasoning_text.delta",
    "arguments": "function_call_arguments.delta",
    "code": "code.delta",
}


_FEW_FILES = 32
"""So many are shown again with each file; of more the page is told less often."""


class OutputItems:
    """Makes the events; `items` and `files` are what the host has stored so far."""

    def __init__(self) -> None:
        """Start without items."""
        self.items: list[Item] = []
        self.files: list[Item] = []
        self._turn_start = 0
        """The index of the first item of the current response."""
        self._files_due = 0
        """How many files there must be before the page is shown all of them again."""
        self._answered: set[object] = set()
        """The ids of the calls that have an output."""
        self._open_calls: dict[object, int] = {}
        """The indexes of the others, by the ids of the calls."""
        self._records: dict[object, int] = {}
        """The indexes of records, by their ids."""

    @property
    def has_open_calls(self) -> bool:
        """Whether a call has no output yet."""
        return bool(self._open_calls)

    def begin(self, item: Item) -> Chunk:
        """Return the event of a new item at the last place."""
        index = len(self.items)
        self.items.append(item)
        self._note_call(index, item)
        return _native("output_item.added", index, item=item)

    def _note_call(self, index: int, item: Item) -> None:
        """Remember which calls are open."""
        call_id = item.get("call_id")
        if is_call_output(item):
            self._answered.add(call_id)
            self._open_calls.pop(call_id, None)
        elif is_call(item) and call_id not in self._answered:
            self._open_calls[call_id] = index

    def end(self, index: int, item: Item) -> Chunk:
        """Return the event that replaces the item at `index`."""
        self.items[index] = item
        self._note_call(index, item)
        return _native("output_item.done", index, item=item)

    def update(self, index: int, **fields: Any) -> Chunk:
        """Return the event that changes fields of the item at `index`."""
        return self.end(index, {**self.items[index], **fields})

    def add(self, item: Item) -> Chunks:
        """Yield the events of an item that is complete at once."""
        yield self.begin(item)
        yield self.end(len(self.items) - 1, item)

    def add_marker(self, marker: str) -> Chunks:
        """Yield a separate message for a marker that no text follows."""
        index = len(self.items)
        item = message_host_item({"id": f"msg_kept_{index}"}, marker)
        yield self.begin(begun_host_item(item))
        yield self.end(index, item)

    def grow(self, index: int, kind: str, text: str) -> Chunk:
        """Return the event of more text; `kind` is that of a delta."""
        # All texts of one kind are shown as one part, so its number is 0.
        index_name = "summary_index" if kind == "summary" else "content_index"
        fields = {
            "item_id": self.items[index].get("id"),
            index_name: 0,
            "delta": text,
        }
        return _native(_DELTA_TYPES[kind], index, **fields)

    def add_files(self, card: JsonObject) -> Chunks:
        """Yield the files of a card; the page gets those of earlier cards again."""
        files = card.get("files")
        if not files:
            return
        yield host_event("files", {"files": files})
        if self.files:
            yield from self.show_files(files)
        self.files += files

    def show_files(self, more: Sequence[Item] = (), *, is_last: bool = False) -> Chunks:
        """Yield the chunk that shows files on the page only, with some `more`.

        It has all files, so if they are many, it comes less often; the last one for
        them.
        """
        count = len(self.files)
        is_due = count > _FEW_FILES if is_last else count >= self._files_due
        if not is_due:
            return
        self._files_due = count + count // _FEW_FILES
        event = host_event("chat:message:files", {"files": [*self.files, *more]})
        # With an empty list of choices Open WebUI ends there; a chunk with a choice it
        # would also send to the page as it is (utils/middleware.py:4938, 5460).
        yield {**event, "choices": []}

    def answer(self, event: ToolOutput) -> Chunks:
        """Yield the output of a call in the form in which the host would store it."""
        index = self._open_calls.get(event.item["call_id"])
        if index is not None and event.failed:
            yield self.update(index, status="failed")
        yield from self.add(output_host_item(event))

    def break_off_calls(self) -> Chunks:
        """Yield outputs for calls that a broken answer left open."""
        for index in list(self._open_calls.values()):
            yield from self.break_off(index, _NOT_RUN)

    def break_off(self, index: int, why: str) -> Chunks:
        """Yield the end of a call that got no output, and one that says why."""
        yield self.update(index, status="incomplete")
        output = {"call_id": self.items[index].get("call_id"), "output": why}
        yield from self.add(output_host_item(ToolOutput(index, output, failed=True)))

    def add_record(self, stored: StoredRecord, index: int | None) -> Chunks:
        """Yield the events of a record, which may replace an earlier one.

        `index` is that of the item whose text follows.
        """
        before = ""
        if index is not None:
            before = self.items[index].get("id") or ""
        record = {**stored.item, "before": before}
        earlier = self._records.setdefault(record["id"], len(self.items))
        if earlier < len(self.items):
            yield self.update(earlier, kept=record["kept"])
        else:
            yield from self.add(record)

    def add_details(self, turn: TurnDetails) -> Chunks:
        """Yield the reasoning of a response again, now with its details, if any."""
        indexes = range(self._turn_start, len(self.items))
        self._turn_start = len(self.items)
        for index in indexes:
            if is_reasoning(self.items[index]):
                yield self.update(index, reasoning_details=list(turn.details))
                return


def _native(kind: str, index: int, **fields: Any) -> Chunk:
    """Return an event of the Responses API as the host takes it."""
    return {
        "type": f"response.{kind}",
        "output_index": index,
        **fields,
        "choices": [{"index": 0, "delta": {}}],
    }


# --------------------------------------------------------------------------------------
# owui_chat.render.commentary
#
# Commentary of the model, shown as progress beside the answer.
#
# The page shows the text of an item of unknown type at its place between the cards, and
# leaves it out of copies, exports, edits and reading aloud. The host sends it to no model
# (docs/reference/open-webui.md, "Native events" and "The stored output and the next
# turn"). So commentary is a quotation in an item of our own:
#
#     {"type": "openai_responses:remark", "id": ..., "content": [{"text": "> ..."}]}
#
# If a run ends with commentary, that is the answer, because there is no other.
# --------------------------------------------------------------------------------------


class Commentary:
    """Shows one message of commentary; `host_index` is that of its item.

    `_length` counts the characters of its quotation, `_stored_length` those that the
    host has stored.
    """

    def __init__(self, shown: OutputItems) -> None:
        """Begin at the next place."""
        self.host_index = len(shown.items)
        self._shown = shown
        self._quoted: list[str] = []
        self._length = 0
        self._stored_length = 0
        self._ended: ItemDone | None = None
        self._marker = ""
        self._marker_index = self.host_index

    def render(self, event: ItemEvent, marker: str) -> Chunks:
        """Yield the chunks for an event of the item; its marker comes at its end."""
        match event:
            case ItemAdded():
                yield self._shown.begin(_commentary_item(event.item, "", "in_progress"))
            case TextDelta():
                yield from self._grow(event.text)
            case ItemDone():
                yield from self._end(event, marker)
                yield from self._shown.add_files(event.card)

    def break_off(self) -> Chunks:
        """Yield the end of commentary that the run did not end."""
        if self._ended is None:
            yield self._whole("incomplete")

    def become_answer(self, closing: Item | None) -> Chunks:
        """Yield the text as a message, behind its marker, if this is `closing`."""
        if self._ended is None or self._ended.item != closing:
            return
        if self._marker:  # the message takes the marker's place, and this one is empty
            quotation = self._shown.items[self.host_index]
            emptied = _commentary_item(quotation, "", "completed")
            yield self._shown.end(self.host_index, emptied)
        head = {"id": self._shown.items[self._marker_index].get("id")}
        answer = message_host_item(head, self._marker + self._ended.shown)
        yield self._shown.end(self._marker_index, answer)

    def _grow(self, text: str) -> Chunks:
        """Yield the growth, and the whole text each time it has doubled.

        Deltas extend the text of an unknown item on the page only. The host stores an
        item when it gets it whole, and that is what is left after Stop
        (docs/reference/open-webui.md, "Native events").
        """
        if not text:
            return
        quoted = _continued_quotation(text) if self._quoted else _quotation(text)
        self._quoted.append(quoted)
        self._length += len(quoted)
        if self._length < 2 * self._stored_length:
            yield self._shown.grow(self.host_index, "text", quoted)
        else:
            yield self._whole("in_progress")

    def _whole(self, status: str) -> Chunk:
        """Return the event that gives the host the whole text so far."""
        self._stored_length = self._length
        item = self._shown.items[self.host_index]
        whole = _commentary_item(item, "".join(self._quoted), status)
        return self._shown.end(self.host_index, whole)

    def _end(self, event: ItemDone, marker: str) -> Chunks:
        """Yield the end of the item, and its marker behind it."""
        self._ended = event
        card = _commentary_item(event.item, _quotation(event.shown), "completed")
        yield self._shown.end(self.host_index, card)
        if marker:
            self._marker = marker
            self._marker_index = len(self._shown.items)
            yield from self._shown.add_marker(marker)


def _quotation(text: str) -> str:
    """Return a text as a quotation in Markdown."""
    return "> " + _continued_quotation(text) if text else ""


def _continued_quotation(text: str) -> str:
    """Return more text of a quotation that has begun."""
    return text.replace("\n", "\n> ")


def _commentary_item(item: Item, text: str, status: str) -> Item:
    """Return the host's item of commentary; the page shows none without a text."""
    return {
        "type": COMMENTARY_TYPE,
        "id": item.get("id") or "",
        "status": status,
        "content": [{"type": "output_text", "text": text}] if text else [],
    }


# --------------------------------------------------------------------------------------
# owui_chat.render.native
#
# Run events as Open WebUI's native events, and the last status line of an answer.
#
# The host builds the items that it shows and stores from events of the Responses API, so
# a run looks like Open WebUI's own and is the same after a reload. The events differ from
# the wire where the host needs it (docs/reference/open-webui.md, "Native events", "What a
# pipe yields" and "Usage"): one numbering over all responses, no `response.completed`, no
# encrypted content, and an empty `choices` delta for stream filters that look for one.
# --------------------------------------------------------------------------------------


_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


def _end_after_code(shown: OutputItems) -> Chunks:
    """Yield an invisible item if code would be the last item of a run."""
    last = shown.items[-1] if shown.items else {}
    if last.get("type") == CODE_CARD:
        # In its older mode of tools Open WebUI takes code at the end for a request to
        # run it, and calls the pipe again, up to five times (utils/middleware.py:6117).
        end = {"type": "openai_responses:end", "id": f"end_{last['id']}"}
        yield from shown.add(end)


class HostedView(Protocol):
    """Shows the items of OpenAI's own tools, like `HostedItems`."""

    def render(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for an event of an item."""

    def break_off(self, event: RunDone) -> Chunks:
        """Yield the chunks for items that the run did not end."""


class NativeRenderer:
    """Shows one run; `shown` has what the host stored so far.

    Of each item on the page, by its output index: its place among the host's items,
    the marker in front of its text, when it began, and the part of its last text.
    """

    def __init__(
        self,
        now: Callable[[], float],
        make_hosted: Callable[[OutputItems], HostedView] | None = None,
    ) -> None:
        """Take a clock in seconds, and what shows the items of OpenAI's own tools.

        Without the latter they are not shown, and there is no last status line.
        """
        self._now = now
        self._began = now()
        self.shown = OutputItems()
        self._hosted = make_hosted(self.shown) if make_hosted else None
        self._commentary: dict[int, Commentary] = {}
        self._next_marker = ""
        self._notes = 0
        self._retries = 0
        self._host_indexes: dict[int, int] = {}
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._last_part: dict[int, int] = {}
        self._thought: list[str] = []
        """The texts of the thought that grows."""

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; `citations` has put the shown texts into events."""
        match event:
            case TextDelta() if event.output_index in self._host_indexes:
                yield from self._grow(event)
            case ItemAdded() if _is_shown(event.item):
                yield self._start(event)
            case ItemDone() if event.output_index in self._host_indexes:
                yield from self._end(event)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                yield from self._render_other(event)
            case Marker():
                self._next_marker = event.text
            case ToolOutput():
                self._retries = 0
                yield from self.shown.answer(event)
            case RunDone():
                yield from self._end_run(event)
            case _:
                yield from self._render_beside(event)

    def _render_other(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for commentary and for items of OpenAI's own tools."""
        index = event.output_index
        if isinstance(event, ItemAdded) and is_commentary(event.item):
            self._commentary[index] = Commentary(self.shown)
        if index in self._commentary:
            yield from self._commentary[index].render(event, self._take_marker())
        elif self._hosted:
            yield from self._hosted.render(event)

    def _render_beside(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks for events that are not items of the run."""
        match event:
            case SourceCited():
                yield host_event("source", event.source)
            case Status():
                if event.sentence and event.is_note:
                    self._notes += 1
                if event.is_retry:
                    self._retries += 1
                yield status_chunk(event.sentence)
            case StoredRecord():
                yield from self.shown.add_record(event, self._index_of(event))
            case TurnDetails():
                yield from self.shown.add_details(event)

    def _index_of(self, stored: StoredRecord) -> int | None:
        """Return the place of the item that a record belongs to; None for the end."""
        index = stored.output_index
        if index is None:
            return None
        commentary = self._commentary.get(index)
        return commentary.host_index if commentary else self._host_indexes.get(index)

    def _take_marker(self) -> str:
        """Return the marker that waits for the next text, once."""
        marker = self._next_marker
        self._next_marker = ""
        return marker

    def _end_run(self, event: RunDone) -> Chunks:
        """Yield the end of what is open, the last lines, and the usage."""
        if self._hosted:
            yield from self._hosted.break_off(event)
        for commentary in self._commentary.values():
            yield from commentary.break_off()
        closing = closing_commentary(event.output)
        for commentary in self._commentary.values():
            yield from commentary.become_answer(closing)
        has_failed = event.ending.is_failure
        if has_failed:
            # Open WebUI runs a call without an output, and calls the pipe again
            # (utils/middleware.py:5544).
            yield from self.shown.break_off_calls()
        marker = self._take_marker()
        if marker:
            yield from self.shown.add_marker(marker)
        yield from self.shown.show_files(is_last=True)
        yield from _end_after_code(self.shown)
        if self._has_closing_line(event):
            yield closing_chunk(closing_line(self._figures(event)), event.metadata)
        usage = host_usage(event)
        if usage:
            # In a chunk of its own: Open WebUI ignores `response.incomplete` with its
            # usage, and a `response.completed` would replace all items
            # (utils/response.py:714).
            yield {"choices": [{"index": 0, "delta": {}}], **usage}
        if has_failed:
            # Without choices it keeps the text and stores the error; an exception would
            # lose the text (utils/middleware.py:4939).
            yield error_chunk(event.ending.sentence)

    def _has_closing_line(self, event: RunDone) -> bool:
        """Say whether a last line is shown: of a failure only one that counts notes,
        or that has an agent's metadata.
        """
        if self._hosted is None:
            return False
        if event.ending.is_failure:
            return self._notes > 0 or bool(event.metadata)
        return not open_calls(event.output)

    def _figures(self, event: RunDone) -> AnswerFigures:
        """Return what the last line says of the run."""
        return AnswerFigures(
            seconds=self._now() - self._began,
            is_failure=event.ending.is_failure,
            rounds=event.work.rounds if event.work else 0,
            tool_calls=event.work.tool_calls if event.work else 0,
            usage=event.usage,
            cost=event.cost,
            notes=self._notes,
            window_share=event.window_share,
            usage_note=event.usage_note,
            failed_attempts=self._failed_attempts(event),
        )

    def _failed_attempts(self, event: RunDone) -> int:
        """Return how often the last request was sent in vain; 0 if it was not retried."""
        if not event.ending.is_failure or not self._retries:
            return 0
        return self._retries + 1

    def _start(self, event: ItemAdded) -> Chunk:
        """Return the beginning of an item."""
        if item_type(event.item) == "message":
            self._retries = 0  # an attempt succeeded
        self._host_indexes[event.output_index] = len(self.shown.items)
        self._started[event.output_index] = self._now()
        self._thought = []
        return self.shown.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta) -> Chunks:
        """Yield more text, behind the marker that waited for it."""
        marker = self._take_marker()
        if marker:
            self._markers[event.output_index] = marker
        text = marker + self._gap(event) + event.text
        if event.kind in ("summary", "reasoning"):
            self._thought.append(text)
        if text:
            yield self.shown.grow(
                self._host_indexes[event.output_index], event.kind, text
            )

    def _gap(self, event: TextDelta) -> str:
        """Return the blank line between two parts of a thought.

        The page joins the parts of a summary, so all parts are shown as one.
        """
        last_part = self._last_part.get(event.output_index, event.part)
        self._last_part[event.output_index] = event.part
        is_thought = event.kind in ("summary", "reasoning")
        return "\n\n" if is_thought and event.part != last_part else ""

    def _end(self, event: ItemDone) -> Chunks:
        """Yield the end of an item, or its other form; a failed thought frees its index."""
        index = event.output_index
        host_index = self._host_indexes[index]
        match item_type(event.item):
            case _ if event.item == NO_THOUGHT:
                # Of an attempt that failed: people keep what they have read of it.
                del self._host_indexes[index]
                item = self._unfinished_thought(index, host_index)
            case "message":
                text = self._markers.get(index, "") + event.shown
                item = message_host_item(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[index]
                item = reasoning_host_item(event.item, round(seconds))
            case _:
                item = call_host_item(event.item)
        yield self.shown.end(host_index, item)
        yield from self.shown.add_files(event.card)

    def _unfinished_thought(self, index: int, host_index: int) -> Item:
        """Return what stays of a thought that no attempt finished."""
        begun = self.shown.items[host_index]
        text = "".join(self._thought)
        if not text:
            return {**begun, "type": "openai_responses:end"}
        seconds = self._now() - self._started[index]
        thought = {**begun, "summary": [{"type": "summary_text", "text": text}]}
        return reasoning_host_item(thought, round(seconds))


def _is_shown(item: Item) -> bool:
    return item_type(item) in _SHOWN_TYPES and not is_commentary(item)


# --------------------------------------------------------------------------------------
# owui_chat.input.tasks
#
# Jobs that the host gives a model: titles, tags, summaries, the merging of answers.
#
# The host names the job. Its prompt quotes the chat, markers included. The host would use
# the text of an error as the title.
# --------------------------------------------------------------------------------------


_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_TASK_OBJECTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "title_generation": ("title", _TEXT),
    "tags_generation": ("tags", _TEXTS),
    "follow_up_generation": ("follow_ups", _TEXTS),
    "query_generation": ("queries", _TEXTS),
    "image_prompt_generation": ("prompt", _TEXT),
    "autocomplete_generation": ("text", _TEXT),
}
"""By task: the one key of the answer's JSON object that the host reads, and its schema
(docs/reference/open-webui.md, "Tasks")."""


SMALL_TASKS = frozenset([*_TASK_OBJECTS, "emoji_generation"])
"""Tasks that a small model does as well; their texts are short."""

_JSON_TASKS = frozenset([*_TASK_OBJECTS, "function_calling", "memory_review"])


def is_usable_text(task: str, ending: Ending) -> bool:
    """Say whether the text of a task is of use: whole, or a text that was cut.

    Half of a JSON object is not.
    """
    if ending.kind == "incomplete":
        return task not in _JSON_TASKS
    return not ending.is_failure


_HOSTS_LIMITS = {
    "title_generation": 1000,
    "context_compaction": 1000,
    "emoji_generation": 4,
}
"""The `max_tokens` that the host sends if nobody has chosen any.

It means models that do not reason; the limit counts reasoning, too (routers/tasks.py:185,
utils/context_compaction.py:433 of 0.12.4).
"""


def without_hosts_limit(body: JsonObject, task: str) -> dict[str, Any]:
    """Return the body of a task without the limit of tokens that is the host's own."""
    kept = dict(body)
    if kept.get("max_tokens") == _HOSTS_LIMITS.get(task):
        kept.pop("max_tokens", None)
    return kept


_EFFORT_KEYS = frozenset({"reasoning", "reasoning_effort"})
_ANSWER_KEYS = frozenset(
    {
        "json_schema",
        "parallel_tool_calls",
        "reasoning_summary",
        "response_format",
        "text",
        "tool_choice",
        "tools",
        "verbosity",
    }
)
"""What is chosen for answers, but not for tasks."""


def task_request(
    model: ResolvedModel,
    messages: Sequence[JsonObject],
    body: JsonObject,
    task: str,
    *,
    at_own_effort: bool = False,
    stream: bool = False,
) -> ResponsesRequest:
    """Return the request for a task, without tools or stored reasoning.

    The model has its lowest effort, or its own one. If the host reads the answer as
    JSON, the model is held to that form. Raises InvalidRequest.
    """
    clean_messages = [
        {**as_mapping(message), "content": _clean(value_at(message, "content"))}
        for message in messages
    ]
    instructions, parts = parse_messages(clean_messages)
    ignored = _ANSWER_KEYS if at_own_effort else _ANSWER_KEYS | _EFFORT_KEYS
    parameters = {key: body[key] for key in body if key not in ignored}
    text_format = _task_format(task, clean_messages)
    if text_format and model.facts.known_family:
        parameters["text"] = {"format": text_format}
    effort = None
    if not at_own_effort:
        effort = model.lowest_effort()
        model = model._replace(pro=False)
    settings = Settings(effort=effort, stream=stream, encrypted_reasoning=False)
    items = build_input(parts, {}, None)
    return build_request(model, instructions, items, parameters, settings)


def _task_format(task: str, messages: Sequence[JsonObject]) -> dict[str, Any] | None:
    """Return the `text.format` of a task whose answer the host reads as JSON, or None.

    An administrator's own prompt may ask for something else, so the key must be in it.
    """
    if task not in _TASK_OBJECTS:
        return None
    key, value_schema = _TASK_OBJECTS[task]
    if not any(f'"{key}"' in str(message.get("content")) for message in messages):
        return None
    schema = {
        "type": "object",
        "properties": {key: value_schema},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "name": task, "schema": schema, "strict": True}


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; its text must be empty if the task failed."""
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    """Return a content without the markers of the quoted chat."""
    if isinstance(content, str):
        return strip_markers(content)
    if isinstance(content, list):
        return [_clean_part(part) for part in content]
    return content


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": strip_markers(part["text"])}
    return part


# --------------------------------------------------------------------------------------
# shells.caller
#
# Who asks, as Open WebUI says it to both shells.
# --------------------------------------------------------------------------------------


class ChatCaller(NamedTuple):
    """Who asks, and for which chat and message; empty ids are unknown."""

    host_model: str = ""
    """The host's id of the model, `{function or pipeline id}.{model}`."""
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    """The name of a task of the host, or empty."""
    streams: bool = False
    """Whether the host reads a stream. It takes any true value of `stream` for true
    (functions.py, 0.12.4); the administration's filter makes it a bool."""
    is_admin: bool = False

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly if the request has a chat id and a message id. A session id only
        decides whether a dialog can be answered (docs/reference/open-webui.md, "Ids of
        a call").
        """
        return bool(self.chat_id and self.message_id)

    @property
    def drops_errors(self) -> bool:
        """Whether the reader of a stream shows its text alone.

        While the page merges answers, it stops at an error without a word, and looks as
        if it still waited (`mergeResponses` in Chat.svelte of 0.12.4).
        """
        return self.task == "moa_response_generation"


# --------------------------------------------------------------------------------------
# shells.answer_log
#
# The log of one answer, for pipe and agents: lines without secrets.
# --------------------------------------------------------------------------------------


LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""The numbers that `logging` has for them."""

_MAX_LINE = 4000


class AnswerLog:
    """Writes lines from any thread; a shell's own log says where they go.

    `run_id` names the answer: it is in front of every line of the server's log, and the
    error id that people see.
    """

    def __init__(self, run_id: str, secrets: Iterable[str] = ()) -> None:
        """Begin; `secrets` are removed from every line."""
        self.run_id = run_id
        self._secrets = tuple(secrets)

    def hide(self, *secrets: str) -> None:
        """Remove these texts too from every line from now on."""
        # Each once: a tool that fails hundreds of times names the same ones each time.
        self._secrets = tuple(dict.fromkeys((*self._secrets, *secrets)))

    def redacted(self, text: str) -> str:
        """Return a text as one line without secrets."""
        return redact_line(text, self._secrets)

    def redacted_for_model(self, text: str) -> str:
        """Return a text without secrets, and without the paths of this server."""
        return hide_paths(redact(text, self._secrets), _installation_roots())

    def line(self, level: LogLevel, text: str) -> None:
        """Write `text` as one line.

        Long text is cut: an exception of a tool may be of any length.
        """
        one_line = self.redacted(text[: 2 * _MAX_LINE])[:_MAX_LINE]
        self._write(level, one_line)

    def note(self, text: str) -> None:
        """Write a line of level INFO."""
        self.line("INFO", text)

    def warn(self, text: str) -> None:
        """Write a line of level WARNING, which an administrator should read."""
        self.line("WARNING", text)

    def _write(self, level: LogLevel, one_line: str) -> None:
        """Write a line without secrets and line breaks to the log of the shell."""
        raise NotImplementedError


def _installation_roots() -> set[str]:
    """Return the folders of Python, of the host and of its data."""
    roots = {sys.prefix, sys.base_prefix, *sys.path, os.environ.get("DATA_DIR", "")}
    with suppress(OSError, RuntimeError):  # the folder is gone; there is no home
        roots.update((str(Path.cwd()), str(Path.home())))
    absolute = {root.rstrip("/\\") for root in roots if Path(root).is_absolute()}
    return absolute - {""}


# --------------------------------------------------------------------------------------
# shells.valve_words
#
# Valves that hold a list of words.
# --------------------------------------------------------------------------------------


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas, each of them once."""
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(word for word in words if word))


def fits_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name fits one of the patterns, like `gpt-5*`."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_MAX_SHOWN_WORDS = 5
_MAX_WORD_CHARACTERS = 40
"""Both limit a message, because an administrator may paste anything."""


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about unknown words of a valve; empty if all are known."""
    unknown = {word[:_MAX_WORD_CHARACTERS] for word in words}.difference(known)
    if not unknown:
        return ""
    shown = ", ".join(sorted(unknown)[:_MAX_SHOWN_WORDS])
    return f"{valve} contains unknown names: {shown}. {advice}"


# --------------------------------------------------------------------------------------
# shells.json_valve
#
# A valve that holds a JSON object with documented keys.
#
# One such valve replaces many fields that are rarely changed. Its keys are checked one by
# one: a number out of its range becomes the nearest allowed one (seed 000, section 3.3),
# a key with any other invalid value gets its default, and the others still apply.
# --------------------------------------------------------------------------------------


_Form = TypeVar("_Form", bound=BaseModel)

_MAX_QUOTED = 80
"""Characters of an administrator's text that a message repeats."""


def read_json_valve(
    valve: str,
    text: str,
    form: type[_Form],
    consequence: str = "Its default applies.",
) -> tuple[_Form, list[str]]:
    """Return the settings in the text of a valve, and what is wrong with them.

    `form` names the known keys with their types, ranges and defaults. Each problem is a
    message for administrators; `consequence` is what follows from an invalid value.
    """
    given = parse_json_object(text.strip() or "{}")
    if given is None:
        return form(), [f"{valve} is not a JSON object, so its defaults apply."]
    known = form.model_fields
    accepted: dict[str, object] = {}
    problems: list[str] = []
    for key, field in known.items():
        if key not in given:
            continue
        try:
            form.model_validate({key: given[key]})
            accepted[key] = given[key]
            continue
        except ValidationError as error:
            nearest = _nearest_allowed(error)
        effect = consequence
        if nearest is not None:
            accepted[key] = nearest
            effect = f"{nearest:g} applies."
        shown = repr(given[key])[:_MAX_QUOTED]
        problems.append(
            f"{valve}: `{key}` cannot be {shown}. {field.description} {effect}"
        )
    unknown = [key for key in given if key not in known]
    advice = f"Known keys: {', '.join(known)}."
    problem = unknown_words(valve, unknown, known, advice)
    if problem:
        problems.append(problem)
    return form.model_validate(accepted), problems


def read_expert_json(text: str, form: type[_Form]) -> tuple[_Form, list[str]]:
    """Return the settings of EXPERT_JSON, and what is wrong with them."""
    return read_json_valve("EXPERT_JSON", text, form)


def _nearest_allowed(error: ValidationError) -> float | None:
    """Return the bound that a number exceeds, None for any other mistake."""
    for detail in error.errors():
        if detail["input"] != detail["input"]:  # not a number, which JSON may say
            return None
        bounds = detail.get("ctx", {})
        match detail["type"]:
            case "greater_than_equal":
                return float(bounds["ge"])
            case "less_than_equal":
                return float(bounds["le"])
    return None


# --------------------------------------------------------------------------------------
# shells.shell
#
# The two shells by their names: the rest of their messages is the same.
# --------------------------------------------------------------------------------------


class Shell(NamedTuple):
    """The names of a shell in messages."""

    noun: str
    """Like "pipe"."""
    valves_page: str
    """How an administrator gets to its valves."""

    @property
    def valves(self) -> str:
        """Where its valves are, as a part of a sentence."""
        return f"the valves of this {self.noun}"


PIPE_SHELL = Shell("pipe", "Admin Panel > Functions > the gear next to it")
PIPELINE_SHELL = Shell("pipeline", "Admin Panel > Settings > Pipelines")


# --------------------------------------------------------------------------------------
# shells.timeouts
#
# The time limits of requests that an administrator can set, for pipe and agents.
# --------------------------------------------------------------------------------------


_LONG_SILENCE = 900.0
"""In pro mode several passes make one answer, and nothing is sent in between; research
is as slow."""


class TimeoutSettings(BaseModel):
    """Keys of EXPERT_JSON that pipe and agents share, in seconds."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)

    connect_timeout_seconds: float = Field(
        default=30, gt=0, description="Time limit to open a connection."
    )
    first_event_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence before an answer begins, 30 to 900.",
    )
    idle_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence within an answer, also in reasoning, 30 to 900.",
    )

    def timeouts(self, model: ResolvedModel, total: float = 0) -> Timeouts:
        """Return the limits of a request to a model; `total` is that of its answer."""
        is_slow = model.pro or model.research or "-pro" in model.id
        least = _LONG_SILENCE if is_slow else 0.0
        return Timeouts(
            connect=self.connect_timeout_seconds,
            first_event=max(self.first_event_timeout_seconds, least),
            idle=max(self.idle_timeout_seconds, least),
            total=total,
        )


# --------------------------------------------------------------------------------------
# shells.valve_messages
#
# Messages about valves for administrators, for pipe and agents.
#
# `openai_responses` names a setting by its field (`errors.SettingFault`). Here it gets the
# name of its valve, which is the same in both shells, and the page with the valves.
# --------------------------------------------------------------------------------------


HEADERS_EXAMPLE = '{"X-Team": "blue"}'

_VALVES: Mapping[SettingName, str] = {
    "api_key": "API_KEY",
    "base_url": "BASE_URL",
    "ca_bundle": "CA_BUNDLE",
    "extra_headers": "EXTRA_HEADERS",
    "organization": "ORGANIZATION",
    "project": "PROJECT",
    "proxy": "PROXY",
    "verify_ssl": "VERIFY_SSL",
}
_EXAMPLES: Mapping[SettingName, str] = {
    "base_url": DEFAULT_BASE_URL,
    "extra_headers": HEADERS_EXAMPLE,
}


def fault_advice(fault: SettingFault, shell: Shell) -> str:
    """Return what an administrator can do about a failure; empty if nothing."""
    settings = fault.settings
    if not settings:
        return ""
    valves = _join_names([_VALVES[name] for name in settings])
    match fault.certainty:
        case "certain":
            return _correct_valve(valves, shell, _EXAMPLES.get(settings[0], ""))
        case "likely":
            return f"An administrator has to check {valves} in {shell.valves}."
        case "possible":
            checked = f"{valves} in {shell.valves}"
            return f"If the problem persists, an administrator has to check {checked}."


def error_message(error: ResponsesError, shell: Shell) -> str:
    """Return the message of an error, with what an administrator can do."""
    return f"{error} {fault_advice(error.fault, shell)}".strip()


def advised_ending(ending: Ending, shell: Shell) -> Ending:
    """Return an ending whose message says what an administrator can do."""
    message = f"{ending.sentence} {fault_advice(ending.fault, shell)}".strip()
    return ending._replace(sentence=message, fault=NO_FAULT)


def valve_message(problem: str, shell: Shell, example: str = "") -> str:
    """Return the message about a valve; `problem` names it and has no full stop."""
    return f"{problem}. {_correct_valve('it', shell, example)}"


def valve_error(problem: str, shell: Shell, example: str = "") -> InvalidRequest:
    """Return the error of a valve without which nothing is sent."""
    return InvalidRequest(valve_message(problem, shell, example))


def _correct_valve(valves: str, shell: Shell, example: str) -> str:
    """Return the sentence that asks an administrator to correct valves."""
    shown = f", for example {example}" if example else ""
    return f"An administrator has to correct {valves} in {shell.valves}{shown}."


def _join_names(names: list[str]) -> str:
    """Return names as a part of a sentence."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --------------------------------------------------------------------------------------
# shells.tool_valves
#
# The valves about approvals and time limits of tools, for pipe and agents.
# --------------------------------------------------------------------------------------


_ANSWERS: Mapping[str, Approval] = {
    "": "ask",
    "auto": "auto",
    "ask": "ask",
    "deny": "deny",
}

_Parsed = TypeVar("_Parsed")

_MAX_QUOTED_ENTRY = 40
"""Characters of an entry that a message repeats."""

_PATTERN = re.compile(r"(?:[\w.*?/-]|\[[^]\s]+\])+")


class ReadRules(NamedTuple):
    """The rules of TOOL_APPROVAL, and the message about an error in them."""

    rules: ApprovalRules
    problem: str = ""


def read_rules(text: str, shell: Shell) -> ReadRules:
    """Return the rules of TOOL_APPROVAL, which are separated by commas or lines.

    A rule is `pattern=auto`, `ask` or `deny`; a pattern alone means `ask`. An entry that
    cannot be read may have been meant to deny any tool, so a person is asked about all
    calls that are not denied. `deny` alone is such an entry: it lacks its pattern.
    """
    rules: ApprovalRules
    rules, unread = _read_entries(text, "=", _read_approval)
    if not unread:
        return ReadRules(rules)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = (
        f"TOOL_APPROVAL contains {quoted}, which is not a rule, so a person is asked "
        "about every call of a tool"
    )
    stricter: list[tuple[str, Approval]] = []
    for pattern, approval in rules:
        stricter.append((pattern, "deny" if approval == "deny" else "ask"))
    stricter.append(("*", "ask"))
    message = valve_message(problem, shell, "`delete_*=ask`")
    return ReadRules(stricter, message)


def _read_approval(word: str) -> Approval | None:
    """Return the approval that a word stands for; an empty one means `ask`."""
    return _ANSWERS.get(word.lower())


_DEFAULT_ENTRY = "default"
_DEFAULT_TIMEOUT = 120.0


class ReadTimeouts(NamedTuple):
    """The limits of TOOL_TIMEOUTS in seconds, and the message about an error in them."""

    default: float
    """The limit of a tool that no pattern matches."""
    by_pattern: Sequence[tuple[str, float]]
    """Limits by patterns of names."""
    problem: str = ""


def read_timeouts(text: str, shell: Shell) -> ReadTimeouts:
    """Return the limits of TOOL_TIMEOUTS; an invalid entry is skipped."""
    entries, unread = _read_entries(text, ":", _read_timeout)
    limits = dict(entries)
    default = limits.get(_DEFAULT_ENTRY, _DEFAULT_TIMEOUT)
    patterns = [entry for entry in entries if entry[0] != _DEFAULT_ENTRY]
    if not unread:
        return ReadTimeouts(default, patterns)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = f"TOOL_TIMEOUTS contains {quoted}, which is not a time limit"
    message = valve_message(problem, shell, "`default: 120, crawl_*: 600`")
    return ReadTimeouts(default, patterns, message)


def _read_timeout(word: str) -> float | None:
    """Return seconds, up to 999999 and with up to three decimals; None for others."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", word):
        return None
    seconds = float(word)
    return seconds if seconds > 0 else None


def _read_entries(
    text: str, sign: str, read: Callable[[str], _Parsed | None]
) -> tuple[list[tuple[str, _Parsed]], str]:
    """Return the values by patterns of names, and the first invalid entry."""
    rows: list[tuple[str, _Parsed]] = []
    unread = ""
    for part in text.replace("\n", ",").split(","):
        entry = part.strip()
        if not entry:
            continue
        left_side, _, right_side = entry.partition(sign)
        pattern = left_side.strip()
        value = read(right_side.strip())
        is_pattern = _PATTERN.fullmatch(pattern) and pattern not in _ANSWERS
        if value is not None and is_pattern:
            rows.append((pattern, value))
        elif not unread:
            unread = entry
    return rows, unread


# --------------------------------------------------------------------------------------
# shells.compaction
#
# COMPACTION_TOKENS, for pipe and agents.
# --------------------------------------------------------------------------------------


_MIN_THRESHOLD = 1000
"""The API refuses a lower one."""


def compaction_settings(tokens: int, endpoint: Endpoint) -> list[dict[str, Any]] | None:
    """Return the `context_management` that compacts a chat above this many tokens.

    None for 0, and at Azure, which does not have it.
    """
    if tokens == 0 or endpoint.is_azure:
        return None
    threshold = max(tokens, _MIN_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": threshold}]


# --------------------------------------------------------------------------------------
# shells.endpoint_valves
#
# Where requests go, by the valves that pipe and agents have in common.
# --------------------------------------------------------------------------------------


class EndpointValves(Protocol):
    """The valves about the server that both shells have, without secrets."""

    BASE_URL: str
    ORGANIZATION: str
    PROJECT: str
    COMPATIBILITY: Compatibility
    CA_BUNDLE: str
    VERIFY_SSL: bool


def environment_key() -> str:
    """Return the API key of the server's environment; empty without one."""
    return os.environ.get("OPENAI_API_KEY", "").strip()


def missing_key_error(shell: Shell) -> InvalidRequest:
    """Return the error of a shell whose administrator has set no key."""
    return InvalidRequest(
        f"This {shell.noun} has no API key yet. An administrator has to set API_KEY in "
        f"its valves ({shell.valves_page})."
    )


def read_headers(text: str, shell: Shell) -> Mapping[str, str]:
    """Return the headers of EXTRA_HEADERS; raises InvalidRequest."""
    headers = parse_string_map(text)
    if headers is None:
        problem = "EXTRA_HEADERS is not a JSON object of texts"
        raise valve_error(problem, shell, HEADERS_EXAMPLE)
    return headers


def endpoint_of_valves(
    valves: EndpointValves,
    *,
    api_key: str,
    proxy: str,
    headers: Mapping[str, str],
    token: str = "",
) -> Endpoint:
    """Return the endpoint of the valves.

    The secrets are arguments, because the agents' valves may hold them encrypted.
    """
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=api_key,
        token=token,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=headers,
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=proxy,
        compatibility=valves.COMPATIBILITY,
    )


# --------------------------------------------------------------------------------------
# shells.failures
#
# Reports an answer that failed, to people and to the log, for pipe and agents.
# --------------------------------------------------------------------------------------


def report_exception(log: AnswerLog, error: Exception, shell: Shell) -> str:
    """Log why there is no answer; return the message to show, with its error id."""
    if isinstance(error, ResponsesError):
        message = error_message(error, shell)
        log.warn(f"nothing was sent: {message}")
    else:
        message = (
            f"Something in this {shell.noun} went wrong. Try again; if the problem "
            "persists, give an administrator the error id."
        )
        log.line("ERROR", describe_exception(error))
    return with_error_id(log, message)


def report_failure(
    log: AnswerLog,
    ended: RunDone,
    shell: Shell,
    *,
    is_admin: bool,
    message: str = "",
) -> Ending:
    """Log how a run failed; return its ending with the message to show.

    Administrators also see what the server said. `message` replaces the ending's own.
    """
    trace = ended.trace
    error = trace.error
    code = api_word(error.code or ended.ending.code)
    error_type = api_word(error.type)
    param = api_word(error.param)
    answer = server_message(log, f"{trace.subject} {error.message}".strip())
    log.warn(
        f"{ended.ending.kind}: HTTP {trace.status}, code {code}, type {error_type}, "
        f"param {param}, {_ids_in_log(trace)}. {answer}",
    )
    ending = advised_ending(ended.ending, shell)
    shown = with_error_id(log, message or ending.sentence)
    if is_admin:
        shown = f"{shown} {answer}".strip()
    return ending._replace(sentence=shown)


def report_skipped(log: AnswerLog, trace: Trace) -> None:
    """Log how many events of an answer's streams could not be read, by what they are.

    Nothing of them is quoted. Proxies send some on purpose, to keep a connection alive.
    """
    if trace.skipped:
        counts = ", ".join(f"{count} {kind}" for kind, count in trace.skipped.items())
        log.note(f"left out events of the stream that cannot be read: {counts}")


_REVIEW_ID = re.compile(r"[\w.:-]{1,200}")


def _ids_in_log(trace: Trace) -> str:
    """Return the ids by which OpenAI's support finds an answer, for the log.

    After a safety stop the notice names a `review_target`.
    """
    notice = trace.error.notice
    ids = [f"request id {trace.request_id}"]
    if trace.response_id:
        ids.append(f"response id {trace.response_id}")
    if _REVIEW_ID.fullmatch(notice.review_target):
        ids.append(f"review target {notice.review_target}")
    category = api_word(notice.category)
    if category:
        ids.append(f"category {category}")
    return ", ".join(ids)


_MAX_SHOWN_TEXT = 500
_MAX_READ_TEXT = 5000


def server_message(log: AnswerLog, text: str) -> str:
    """Return what the server said, redacted and short, for administrators."""
    shown = log.redacted(text[:_MAX_READ_TEXT])[:_MAX_SHOWN_TEXT]
    return f"The server said: {shown}" if shown else ""


def with_error_id(log: AnswerLog, message: str) -> str:
    """Return a message with the id by which an administrator finds it in the log."""
    return f"{message} (Error id: {log.run_id})"


# --------------------------------------------------------------------------------------
# shells.caller_settings
#
# The messages about `caller_may_set`: what callers may set besides their chat.
#
# The words differ: in the pipe they open what is otherwise the administrator's, in the
# agents any key of a request. The messages are the same.
# --------------------------------------------------------------------------------------


_SETTING = "caller_may_set"


def unknown_permissions(
    words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about words that have no effect; empty if there are none."""
    return unknown_words(f"EXPERT_JSON, {_SETTING},", words, known, advice)


PERMISSION_ADVICE = f" ({_SETTING} in EXPERT_JSON says what a request may set)"


def left_out_line(
    who: str,
    left_out: Mapping[str, str],
    is_new: Callable[[str], bool],
    advice: str = PERMISSION_ADVICE,
) -> str:
    """Return the line of the log about what a request lost.

    `left_out` has the reason of each name, if the advice does not say it. Each name is
    logged once per caller: a client sends the same settings again and again.
    """
    new: list[str] = []
    for name, reason in left_out.items():
        shown = name[:_LONGEST_LEFT_OUT]
        if is_new(f"{who}: {shown}"):
            new.append(f"{shown} ({reason})" if reason else shown)
    if not new:
        return ""
    return f"left out of requests of {who}: {', '.join(new[:_MAX_LEFT_OUT])}{advice}"


_LONGEST_LEFT_OUT = 60
_MAX_LEFT_OUT = 50
"""Callers choose names, and how many they send."""


# --------------------------------------------------------------------------------------
# strategies.context
#
# The context that a strategy gives the model to read, beside the chat.
# --------------------------------------------------------------------------------------


_TEXT_KEYS = ("content", "text", "page_content", "snippet", "document")
_NAME_KEYS = ("title", "name", "source", "file_name")
_URL_KEYS = ("url", "link", "uri")


class ContextSource(NamedTuple):
    """A text that is given to the model."""

    name: str
    text: str
    url: str = ""


def read_context(context: object) -> list[ContextSource]:
    """Return the entries of a context, each once: a text, an object, or a list."""
    rows = context if isinstance(context, list) else [context]
    unique_rows: dict[str, object] = {}  # a row that comes twice has one number
    for row in rows:
        if row is not None:
            unique_rows[json.dumps(row, sort_keys=True, default=str)] = row
    sources: dict[ContextSource, None] = {}  # two rows may say the same
    for number, row in enumerate(unique_rows.values(), 1):
        source = _read_entry(f"Context {number}", row)
        if source.text.strip():
            sources[source] = None
    return list(sources)


def format_context(entries: Sequence[ContextSource]) -> str:
    """Return the entries as the model reads them."""
    if not entries:
        return ""
    texts = [
        f'<entry name="{entry.name}">\n{entry.text}\n</entry>' for entry in entries
    ]
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _read_entry(default_name: str, row: object) -> ContextSource:
    """Return an entry of a context; without a known text field all of it is the text."""
    if isinstance(row, str):
        return ContextSource(default_name, row)
    entry = as_mapping(row)
    fields = {**as_mapping(entry.get("metadata")), **entry}
    text = _first_text_field(entry, _TEXT_KEYS)
    return ContextSource(
        name=_first_text_field(fields, _NAME_KEYS) or default_name,
        text=text or json.dumps(row, ensure_ascii=False, default=str),
        url=_first_text_field(fields, _URL_KEYS),
    )


def _first_text_field(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first field that is a text and not blank; empty without one."""
    for key in keys:
        text = as_text(row.get(key))
        if text.strip():
            return text
    return ""


# --------------------------------------------------------------------------------------
# strategies.metadata
#
# The figures of an answer: the seed's `execution_metadata`.
# --------------------------------------------------------------------------------------


class RunMetadata(NamedTuple):
    """The figures of an answer over all its rounds.

    `price` is in US dollars, 0 if unknown, `latency` in seconds.
    """

    strategy: str
    model: str
    ending: str
    rounds: int
    tool_calls: int
    latency: float
    price: float = 0.0
    usage: Usage = Usage()
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""

    def describe(self, notes: int = 0) -> str:
        """Return the line that people read; `notes` are the lines above it."""
        usage = self.usage if self.usage.total else None
        figures = AnswerFigures(
            seconds=self.latency,
            is_failure=self.ending != "completed",
            rounds=self.rounds,
            tool_calls=self.tool_calls,
            usage=usage,
            cost=self.price or None,
            notes=notes,
            window_share=self.window_share,
        )
        return closing_line(figures)

    def wire(self) -> dict[str, Any]:
        """Return the JSON object that is shown and stored."""
        return {
            "strategy": self.strategy,
            "model": self.model,
            "ending": self.ending,
            "rounds": self.rounds,
            "tool_calls": self.tool_calls,
            "latency": round(self.latency, 3),
            "total_price": round(self.price, 8),
            "currency": "USD",
            "prompt_tokens": self.usage.input,
            "completion_tokens": self.usage.output,
            "total_tokens": self.usage.total,
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
        }


# --------------------------------------------------------------------------------------
# strategies.guide
#
# Guides: who the agent is, and what it remembers before a chat begins.
# --------------------------------------------------------------------------------------


class Guide(BaseModel):
    """Who the agent is, and what it remembers before a chat begins.

    `memory_policy` says how much of a chat it remembers: all, or a `sliding-window` of
    turns. In a file the keys are in camel case or snake case.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel
    )

    system_prompt: str
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory_policy: str = ""
    initial_memories: tuple[str, ...] = ()


NO_GUIDE = Guide(system_prompt="")

BUILT_IN_GUIDES: Mapping[str, Guide] = {
    "researcher": Guide(
        system_prompt="You find things out. Prefer primary and recent sources, compare "
        "at least two of them for every claim that matters, and name the source beside "
        "the claim. Separate what is established from what is disputed."
    ),
    "engineer": Guide(
        system_prompt="You are an experienced software engineer. Read before you "
        "write, change as little as solves the problem, keep to the style of what is "
        "there, and say how you checked that it works. Show code in fenced blocks.",
        temperature=0.2,
    ),
    "companion": Guide(
        system_prompt="You help with everyday questions in plain, friendly words. "
        "Answer first, then explain, and keep it short unless more is asked for.",
        memory_policy="sliding-window",
    ),
}


# --------------------------------------------------------------------------------------
# strategies.policy
#
# The system instruction: an instruction and four policy blocks, which can be replaced.
#
# Models from GPT-5.5 on follow short policies better.
# --------------------------------------------------------------------------------------


PolicyStyle = Literal["full", "lean", "auto"]
ChosenStyle = Literal["full", "lean"]

_DEFAULT_INSTRUCTION = "You are a helpful GPT-5 agent."

_POLICY_TAGS: Mapping[str, str] = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
"""The blocks in their order, each with the tag around it."""

_FULL_POLICIES: Mapping[str, str] = {
    "persistence_policy": """\
- You are an agent: go on until the request is answered in full, then end your turn.
- Where something is open that does not change the outcome much, take the most \
reasonable assumption, go on, and name the assumption in the answer.
- When a step fails, try another way before you report that it cannot be done.
- Reading and searching need no permission. Do not delete, buy, send or publish \
anything that the user did not ask for.""",
    "context_gathering_policy": """\
- Find out what you need, then act: look as widely as the question asks, no wider.
- Begin broad, then ask a few focused questions side by side; do not repeat a search.
- Stop as soon as you can name the answer or the exact change, or when most sources \
agree.
- If a result contradicts another one, look once more at that point, then decide.""",
    "uncertainty_policy": """\
- Never make up numbers, names, quotations, addresses or sources. Say what you do not \
know.
- If a request has several meanings that lead to different results, and no tool can \
tell which is meant, ask one to three precise questions, or answer the two or three \
likeliest readings, each under its own heading.
- Tell what you found apart from what you conclude from it.""",
    "tool_preamble_policy": """\
- Before the first tool, say in one or two sentences what the goal is and how you will \
reach it.
- Between tools, say in one sentence what you learned and what comes next.
- Give the result as an answer of its own: it must be complete for a reader who has \
seen none of these notes.""",
}

_LEAN_POLICIES: Mapping[str, str] = {
    "persistence_policy": "Go on until the request is fulfilled; do not stop to "
    "propose a next step that you can take yourself.",
    "context_gathering_policy": "Gather only what decides the answer, several things "
    "at once, then act.",
    "uncertainty_policy": "Never invent facts or sources. Ask only if the answer "
    "changes the result and no tool can find it; else name your assumption.",
    "tool_preamble_policy": "Before the first tool, say in one sentence what you do.",
}

_FIRST_LEAN_VERSION = (5, 5)
"""From this version on short policies work better (docs/reference/responses-api.md,
"Short policies")."""


def build_system_instruction(
    base_instruction: str,
    prompt_policy_overrides: str = "",
    style: ChosenStyle = "full",
) -> str:
    """Return the instruction, the four blocks, then what the overrides add.

    Overrides are a JSON object that replaces blocks by their keys, or another text,
    which is added unchanged.
    """
    standard = _FULL_POLICIES if style == "full" else _LEAN_POLICIES
    texts = {**standard, **_read_policy_overrides(prompt_policy_overrides)}
    blocks = [_wrap_in_tag(texts[key], tag) for key, tag in _POLICY_TAGS.items()]
    instruction = base_instruction.strip() or _DEFAULT_INSTRUCTION
    parts = [instruction, *blocks, texts.get("extra_policy", "")]
    return "\n\n".join(part for part in parts if part.strip())


def _read_policy_overrides(text: str) -> dict[str, str]:
    """Return the changed blocks by key; unknown keys are ignored."""
    if not text.strip():
        return {}
    policies = parse_json_object(text)
    if policies is None:
        return {"extra_policy": text}
    known_keys = [*_POLICY_TAGS, "extra_policy"]
    return {
        key: policies[key] for key in known_keys if as_text(policies.get(key)).strip()
    }


def choose_style(style: PolicyStyle, family: str) -> ChosenStyle:
    """Return the style for a family of models; only newer GPTs get `lean`."""
    if style != "auto":
        return style
    version = read_gpt_version(family)
    if version is None or version < _FIRST_LEAN_VERSION:
        return "full"
    return "lean"


def _wrap_in_tag(text: str, tag: str) -> str:
    """Return a block in its tag, unless it brings the tag itself."""
    inner = text.strip()
    if inner.startswith(f"<{tag}>") and inner.endswith(f"</{tag}>"):
        return inner
    return f"<{tag}>\n{inner}\n</{tag}>"


# --------------------------------------------------------------------------------------
# strategies.parameters
#
# The parameters of a strategy: the seed's names, limits and defaults.
#
# Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
# `maximum_iterations` and `emit_intermediate_thoughts` are the contract of the seed
# (gpt5_dify_plugins_design, section 4.3); the others are ours.
# --------------------------------------------------------------------------------------


STRATEGY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT-5 Function Calling",
    "gpt5_react": "GPT-5 ReAct",
}
"""The strategies by their ids. They are one loop under two names (R7)."""

MAX_ITERATIONS = 30
MAX_SECONDS = 86_400
MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class StrategyParameters:
    """What a strategy has to do.

    `maximum_iterations` counts the rounds that may call tools, 1 to 30.
    `maximum_seconds` includes the model and the tools that run here; 0 means no limit,
    as for `maximum_tokens`. At a limit the model answers with what it has.
    """

    model: str = ""
    instruction: str = ""
    prompt_policy_overrides: str = ""
    policy_style: PolicyStyle = "full"
    guide: Guide = NO_GUIDE
    maximum_iterations: int = 6
    maximum_seconds: float = 0.0
    maximum_tokens: int = 0
    emit_intermediate_thoughts: bool = True

    @property
    def rounds(self) -> int:
        """The number of rounds that may call tools, within its range."""
        return max(1, min(self.maximum_iterations, MAX_ITERATIONS))


_RANGES: Mapping[str, tuple[int, int]] = {
    "maximum_iterations": (1, MAX_ITERATIONS),
    "maximum_seconds": (0, MAX_SECONDS),
    "maximum_tokens": (0, MAX_TOKENS),
}
"""The least and the greatest value of a parameter."""
_SEED = StrategyParameters()


class StrategySettings(BaseModel):
    """The parameters as an administrator writes them, in one JSON object."""

    model: StrictStr = Field(
        default="gpt-6.1-sol",
        min_length=1,
        description="The model of an agent, by any name that MODEL_ID can have. With "
        "the switch *Agent* it is the model of the chat.",
    )
    instruction: StrictStr = Field(
        default=_SEED.instruction,
        description="What an agent is for. The system prompt of the chat follows it.",
    )
    prompt_policy_overrides: StrictStr = Field(
        default=_SEED.prompt_policy_overrides,
        description="Changed policies: a text, which is added, or an object, which "
        "replaces some of them (docs/agent.md).",
    )
    policy_style: PolicyStyle = Field(
        default=_SEED.policy_style,
        description="Length of the policies: `full`, `lean` (a sentence each), or "
        "`auto`, which depends on the model.",
    )
    guide: Guide = Field(
        default="",
        validate_default=True,
        description="Who an agent is: `researcher`, `engineer`, `companion`, or an "
        "object with `systemPrompt`, `temperature`, `memoryPolicy` and "
        "`initialMemories`.",
    )
    maximum_iterations: int = Field(
        default=_SEED.maximum_iterations,
        description="Maximum number of rounds that may call tools, 1 to 30; then the "
        "model answers with what it has.",
    )
    maximum_seconds: int = Field(
        default=int(_SEED.maximum_seconds),
        description="Time limit of an answer and its tools, excluding time waiting "
        "for people. 0: none.",
    )
    maximum_tokens: int = Field(
        default=_SEED.maximum_tokens,
        description="Token limit of all rounds of an answer. 0: none.",
    )
    emit_intermediate_thoughts: StrictBool = Field(
        default=_SEED.emit_intermediate_thoughts,
        description="Show what the model writes between calls of tools. Off: only "
        "the answer.",
    )

    # Validators of types, `Annotated[int, BeforeValidator(...)]`, would keep up to eight
    # replaced copies of this file in memory: `typing` remembers the last 128 of them.
    @field_validator("prompt_policy_overrides", mode="before")
    @classmethod
    def _overrides_as_text(cls, value: object) -> object:
        """Return policy overrides that are an object as its text."""
        if isinstance(value, Mapping):
            return json.dumps(value, ensure_ascii=False)
        return value

    @field_validator("guide", mode="before")
    @classmethod
    def _find_guide(cls, value: object) -> object:
        """Return the built-in guide that a name stands for; raises ValueError."""
        if value in ("", None):
            return NO_GUIDE
        if not isinstance(value, str):
            return value
        if value not in BUILT_IN_GUIDES:
            raise ValueError("there is no such guide")
        return BUILT_IN_GUIDES[value]

    @field_validator(*_RANGES, mode="before")
    @classmethod
    def _move_into_range(cls, value: object, info: ValidationInfo) -> int:
        """Return a number, moved into its range (R5); raises ValueError."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("it must be a number")
        least, most = _RANGES[str(info.field_name)]
        return clamp_number(value, least, most, least)

    def parameters(self) -> StrategyParameters:
        """Return what a strategy works with."""
        return StrategyParameters(
            model=self.model,
            instruction=self.instruction,
            prompt_policy_overrides=self.prompt_policy_overrides,
            policy_style=self.policy_style,
            guide=self.guide,
            maximum_iterations=self.maximum_iterations,
            maximum_seconds=self.maximum_seconds,
            maximum_tokens=self.maximum_tokens,
            emit_intermediate_thoughts=self.emit_intermediate_thoughts,
        )


# --------------------------------------------------------------------------------------
# strategies.guard
#
# Checks calls before they are made: tool, arguments, and no repeated failure.
#
# The error texts are fixed (docs/reference/pipelines-server.md, "Texts for the model"),
# and a model that reads one can correct itself.
# --------------------------------------------------------------------------------------


TOOL_FAILED_TEXT = "tool invoke error: failed to execute tool"
"""The first line of what the model reads of a tool that raised; the cause follows."""
_TOOL_REPEATED_TEXT = (
    "tool invoke error: repeated failure detected; skipped duplicate call"
)


class GuardedTools:
    """Tools whose calls are checked; a call that raised is not made again.

    One that returned an error, or took too long, may be: "try again later" is an error
    too.

    These are the tools of a run and the judge of their calls.
    """

    holds_calls = False
    """Nobody is asked, so calls are shown at once."""

    def __init__(self, tools: CallableTools) -> None:
        """Start without failures."""
        self._tools = tools
        self._failed: dict[str, Item] = {}

    def refusal(self, call: Item) -> str | None:
        """Return the error text of a call that may not be made, or None."""
        name = str(call.get("name") or "")
        schema = self._tools.parameters(name)
        if schema is None:
            return f"there is not a tool named {name}"
        try:
            arguments = parse_arguments(call)
        except ValueError as error:
            return f"tool arguments parse error: {error}"
        _, invalid = check_arguments(arguments, schema)
        problem = _option_error(arguments, schema) or invalid
        if problem:
            return f"tool arguments validation error: {problem}"
        if self._signature(name, arguments) in self._failed:
            return _TOOL_REPEATED_TEXT
        return None

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Refuse the calls that may not be made; all others are made here."""
        verdicts: list[Verdict] = []
        for call in calls:
            why = self.refusal(call)
            if why:
                verdicts.append(Verdict(call, ToolResult(why, failed=True)))
            else:
                verdicts.append(Verdict(call))
        return Judgment(verdicts)

    def failed_calls(self) -> list[Item]:
        """Return the calls that raised, for later rounds."""
        return list(self._failed.values())

    def record_failed_call(self, call: Item) -> None:
        """Remember a call that raised in an earlier round."""
        with suppress(ValueError):
            self._record_failure(str(call.get("name") or ""), parse_arguments(call))

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, None for an unknown tool."""
        return self._tools.parameters(name)

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the call that will run."""
        return self._tools.resolve_call(name, arguments)

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool."""
        return self._tools.call_kind(name)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool, and remember a call that raised.

        The loop ends a call that takes too long with a CancelledError, which is no
        Exception; a tool's own time limit raises a TimeoutError.
        """
        if self._signature(name, arguments) in self._failed:
            return ToolResult(_TOOL_REPEATED_TEXT, failed=True)
        try:
            return await self._tools.call(name, arguments)
        except TimeoutError:
            raise
        except (Exception, SystemExit):
            self._record_failure(name, arguments)
            raise

    def _record_failure(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Remember a call, so that it is not made again."""
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        call = {"name": name, "arguments": text}
        self._failed[self._signature(name, arguments)] = call

    def _signature(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for calls with the same checked arguments."""
        checked, _ = check_arguments(arguments, self._tools.parameters(name) or {})
        return f"{name} {json.dumps(checked, sort_keys=True, default=str)}"


def parse_arguments(call: Item) -> dict[str, Any]:
    """Return the arguments of a call; raises ValueError without a JSON object."""
    arguments = read_arguments(call)
    if arguments is None:  # some models write null for none
        return {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


def _option_error(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the error of the first value that is not an option; empty without one."""
    properties = as_mapping(schema.get("properties"))
    for name, value in arguments.items():
        options = _read_options(properties.get(name))
        if not options or value is None:
            continue
        text = _option_text(value)
        if text not in options:
            return f"parameter '{name}' value {text!r} not in options {options}"
    return ""


def _read_options(node: object) -> list[str]:
    """Return the allowed values: `enum` of JSON Schema, or `options`."""
    schema = as_mapping(node)
    options = schema.get("enum") or schema.get("options")
    return [_option_text(option) for option in as_list(options)]


def _option_text(value: object) -> str:
    """Return a value in the form in which options are compared."""
    if isinstance(value, Mapping) and "value" in value:
        return _option_text(value["value"])
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


# --------------------------------------------------------------------------------------
# strategies.limits
#
# The budget of a strategy, and the texts for the model when it is used up.
#
# The texts about rounds and failures are the seed's
# (docs/reference/pipelines-server.md, "Texts for the model").
# --------------------------------------------------------------------------------------


MAX_CALLS = 1000
"""The calls of one answer; 30 rounds of many parallel calls stay below it."""


def build_budget(parameters: StrategyParameters) -> Budget:
    """Return the limits of an answer."""
    return Budget(
        rounds=parameters.rounds,
        calls=MAX_CALLS,
        seconds=parameters.maximum_seconds,
        tokens=parameters.maximum_tokens,
    )


def build_call_texts(
    parameters: StrategyParameters, calls: int = MAX_CALLS
) -> CallTexts:
    """Return what the model reads of a call that failed or was not made.

    `calls` is how many an answer may make.
    """
    return CallTexts(
        failed=f"{TOOL_FAILED_TEXT}\n{{cause}}",
        rounds=f"Maximum iteration limit ({parameters.rounds}) reached. Cannot call "
        "tool '{tool}'. Please consider increasing the iteration limit.",
        calls=f"Call limit ({calls}) reached. Cannot call tool '{{tool}}'.",
        seconds=f"Time limit ({parameters.maximum_seconds:g} s) reached. Cannot call "
        "tool '{tool}'.",
        tokens=f"Token limit ({parameters.maximum_tokens}) reached. Cannot call tool "
        "'{tool}'.",
    )


# --------------------------------------------------------------------------------------
# strategies.memory
#
# What a strategy remembers: memories from before the chat, and a window of the chat.
# --------------------------------------------------------------------------------------


Message = Mapping[str, Any]
"""A message of a chat, as the host sends it."""

_DEFAULT_WINDOW_TURNS = 10
_WINDOW_PATTERN = re.compile(r"sliding-window(?::([1-9]\d{0,3}))?")


class MemoryWindow(NamedTuple):
    """The messages that remain, and a note about the others."""

    messages: Sequence[Message]
    note: str = ""


def apply_memory_policy(messages: Sequence[Message], policy: str) -> MemoryWindow:
    """Return what a memory policy leaves of a chat, in whole turns.

    A turn is a message of the user with all that follows it. System messages before the
    first turn stay. Raises InvalidRequest for an unknown policy.
    """
    window = _parse_window(policy.strip())
    starts = find_turn_starts(messages)
    if window == 0 or len(starts) <= window:
        return MemoryWindow(messages)
    before_first_turn = messages[: starts[0]]
    system = [
        message for message in before_first_turn if message.get("role") == "system"
    ]
    remembered = messages[starts[-window] :]
    dropped = len(starts) - window
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    return MemoryWindow(
        [*system, *remembered],
        f"The agent remembers {window} turns, so {turns} left out. Because the beginning "
        "of the chat changed, its cached prompt and its earlier reasoning are lost.",
    )


def build_memory_items(guide: Guide) -> list[Item]:
    """Return the guide's memories as one message."""
    texts = [text.strip() for text in guide.initial_memories if text.strip()]
    if not texts:
        return []
    listed = "\n".join(f"- {text}" for text in texts)
    return [text_message("developer", f"<memories>\n{listed}\n</memories>")]


def find_turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages that the user wrote.

    After tools with images the host adds a user message of its own.
    """
    starts: list[int] = []
    previous_role: object = None
    for index, message in enumerate(messages):
        role = message.get("role")
        follows_tool = previous_role == "tool"
        if role == "user" and not (follows_tool and _has_tool_images(message)):
            starts.append(index)
        previous_role = role
    return starts


def _has_tool_images(message: Message) -> bool:
    """Say whether a message is the host's own with the images of tools."""
    content = message.get("content")
    if isinstance(content, list) and content:
        content = content[0]
    if isinstance(content, Mapping):
        content = content.get("text")
    return as_text(content).startswith(TOOL_IMAGES_PREFIX)


def _parse_window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all. Raises InvalidRequest."""
    if policy in ("", "all"):
        return 0
    match = _WINDOW_PATTERN.fullmatch(policy)
    if match:
        return int(match[1] or _DEFAULT_WINDOW_TURNS)
    if policy == "vector-db":
        raise InvalidRequest(
            "The guide asks for the memory policy vector-db, which would need a "
            "database that agents do not have here. An administrator has to choose "
            "sliding-window or leave the policy empty."
        )
    raise InvalidRequest(
        "The guide names an unknown memory policy. An administrator has "
        "to write sliding-window, sliding-window:20 for another number of turns, or "
        "nothing."
    )


# --------------------------------------------------------------------------------------
# strategies.instructions
#
# The instructions of a strategy: who the agent is, its policies, what it may read.
# --------------------------------------------------------------------------------------


def build_strategy_instructions(
    parameters: StrategyParameters,
    style: ChosenStyle,
    system_text: str,
    sources: Sequence[ContextSource] = (),
) -> str:
    """Return the instructions of a request; `system_text` is that of the chat.

    First comes the guide, then the instruction of the parameters, then the chat's own.
    The context is the end.
    """
    texts = (parameters.guide.system_prompt, parameters.instruction, system_text)
    base = "\n\n".join(text.strip() for text in texts if text.strip())
    instruction = build_system_instruction(
        base, parameters.prompt_policy_overrides, style
    )
    context = format_context(sources)
    return f"{instruction}\n\n{context}" if context else instruction


# --------------------------------------------------------------------------------------
# strategies.merged_calls
#
# Answers in which each call occurs once (R12).
#
# A call without an id or a name is dropped. A call that arrives twice counts once, in its
# last form, at its first place.
# --------------------------------------------------------------------------------------


class MergingProvider:
    """A provider whose answers have each call once."""

    def __init__(self, provider: Provider) -> None:
        """Take the answers of another provider."""
        self._provider = provider

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, without the calls that are dropped, then the answer."""
        calls = _MergedCalls()
        async with aclosing(self._provider.generate(request, first_index)) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    yield part._replace(items=calls.merge(part.items))
                    continue
                event = calls.check(part)
                if event is not None:
                    yield event

    def paused(self) -> AbstractContextManager[None]:
        """Count no time while tools run or people decide."""
        return self._provider.paused()


class _MergedCalls:
    """The calls of one answer, by their ids."""

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}
        self._dropped: set[int] = set()

    def check(self, event: RunEvent) -> RunEvent | None:
        """Return the event to pass on, None for one of a dropped call."""
        if not isinstance(event, ItemEvent):
            return event
        match event:
            case ItemAdded() if is_call(event.item):
                return self._begin(event)
            case ItemDone() if is_call(event.item):
                index = self._find(event.item)
                return None if index is None else event._replace(output_index=index)
        return None if event.output_index in self._dropped else event

    def merge(self, items: Sequence[tuple[int, Item]]) -> tuple[tuple[int, Item], ...]:
        """Return the items of the answer, each call once."""
        merged: dict[int, Item] = {}
        for index, item in items:
            first_index = self._find(item) if is_call(item) else index
            if first_index is not None:
                merged[first_index] = item
        return tuple(sorted(merged.items()))

    def _begin(self, event: ItemAdded) -> ItemAdded | None:
        """Return the event of a new call; None for one that is dropped."""
        call_id = str(event.item.get("call_id") or "")
        if call_id and event.item.get("name") and call_id not in self._indexes:
            self._indexes[call_id] = event.output_index
            return event
        self._dropped.add(event.output_index)
        return None

    def _find(self, call: Item) -> int | None:
        """Return the index under which a call is shown; None if it is dropped."""
        if not call.get("name"):
            return None
        return self._indexes.get(str(call.get("call_id")))


# --------------------------------------------------------------------------------------
# strategies.shown_parts
#
# Parts of a message, as they are shown: thoughts in the form of reasoning, and texts.
# --------------------------------------------------------------------------------------


@dataclass(slots=True)
class ShownPart:
    """A part of a message, with an index and an id of its own."""

    index: int
    id: str
    is_thought: bool
    text: str = ""

    def start_event(self) -> ItemAdded:
        """Return the start event."""
        return ItemAdded(self.index, self._build_item("in_progress", ""))

    def add_text(self, text: str) -> TextDelta:
        """Add more text; return its event."""
        self.text += text
        kind: Literal["summary", "text"] = "summary" if self.is_thought else "text"
        return TextDelta(self.index, kind, 0, text)

    def end_event(self) -> ItemDone:
        """Return the end event, which contains the type and the whole text again."""
        return ItemDone(self.index, self._build_item("completed", self.text.rstrip()))

    def events(self, text: str) -> Iterator[RunEvent]:
        """Yield the whole part at once."""
        yield self.start_event()
        if text:
            yield self.add_text(text)
        yield self.end_event()

    def _build_item(self, status: str, text: str) -> Item:
        """Return the reasoning or the message that the part is shown as."""
        if self.is_thought:
            summary: list[Item] = []
            if text:
                summary.append({"type": "summary_text", "text": text})
            return {
                "id": f"rs_{self.id}",
                "type": "reasoning",
                "summary": summary,
                "status": status,
            }
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }


def announcement(call: Item) -> str:
    """Return the thought of a round that calls a tool without a word."""
    if call.get("name") == "ask_user":
        return "I have a question."
    return f"I am going to use {call.get('name')}."


# --------------------------------------------------------------------------------------
# strategies.think_tags
#
# Think tags in a text: what stands in them is a thought of the model.
#
# A tag in backticks is plain text. A thought that is never closed ends with the text.
# --------------------------------------------------------------------------------------


_TAG = re.compile(r"(?<!`)<(/?)think>", re.ASCII | re.IGNORECASE)
_TAG_START = re.compile(r"</?(?:t(?:h(?:i(?:nk?)?)?)?)?\Z", re.ASCII | re.IGNORECASE)
"""The end of a text that may be the beginning of a tag."""


class TextSpan(NamedTuple):
    """A part of a text, inside or outside of think tags."""

    is_thought: bool
    text: str


class ThinkTagParser:
    """Splits a text that comes in pieces at its think tags.

    `_is_thought` says whether the text stands inside a tag now. `_held` is the end of
    the text so far that may be the beginning of a tag, `_previous` the one character
    before it.
    """

    def __init__(self) -> None:
        """Begin outside of any tag."""
        self._is_thought = False
        self._previous = ""
        self._held = ""

    def feed(self, text: str, *, at_end: bool = False) -> list[TextSpan]:
        """Return the spans that are certain now; the end of a text is certain."""
        # The character before says whether a tag stands in backticks.
        start = len(self._previous)
        text = self._previous + self._held + text
        end = len(text)
        if not at_end:
            partial_tag = _TAG_START.search(text, start)
            if partial_tag:
                end = partial_tag.start()
        spans: list[TextSpan] = []
        for tag in _TAG.finditer(text, start):
            spans.append(TextSpan(self._is_thought, text[start : tag.start()]))
            start = tag.end()
            is_closing = bool(tag[1])
            self._is_thought = not is_closing
        spans.append(TextSpan(self._is_thought, text[start:end]))
        self._previous = text[max(0, end - 1) : end]  # empty at the very beginning
        self._held = text[end:]
        return _join_spans(spans)


def _join_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Return spans without empty ones; neighbors of one kind are one."""
    with_text = [span for span in spans if span.text]
    joined: list[TextSpan] = []
    for is_thought, neighbors in groupby(with_text, attrgetter("is_thought")):
        text = "".join(span.text for span in neighbors)
        joined.append(TextSpan(is_thought, text))
    return joined


def parse_spans(text: str) -> list[TextSpan]:
    """Return the spans of a whole text."""
    return ThinkTagParser().feed(text, at_end=True)


def answer_text(text: str) -> str:
    """Return a text without its thoughts; blank lines behind one are no part of it."""
    spans = parse_spans(text)
    if not any(span.is_thought for span in spans):
        return text
    return "".join(span.text for span in spans if not span.is_thought).lstrip()


# --------------------------------------------------------------------------------------
# strategies.thoughts
#
# Converts run events so that thoughts are shown as reasoning, or left out.
#
# Text in a round that calls tools is a thought, and so is text inside `<think>` tags.
# Whether a round calls tools is known only when a call arrives:
#
#     text of a round       thoughts are shown             thoughts are not shown
#     before a call         shown; becomes a thought       held back; dropped when a
#                           when a call arrives            call arrives, else shown
#     after a call          a thought                      dropped
#     phase commentary      a thought; the last one also   dropped, unless there is no
#                           the answer if there is none    other answer
#     phase final_answer    as before a call               shown
#     no tools offered      shown                          shown
# --------------------------------------------------------------------------------------


class _MessageParts:
    """Shows a message as thoughts and answer texts.

    Text that is held back waits for `release` or `become_thought`.
    """

    def __init__(
        self,
        item: Item,
        new_index: Callable[[], int],
        *,
        shows_thoughts: bool,
        is_thought: bool,
    ) -> None:
        """Take the message as it begins; `is_thought` says that all of it is one."""
        self.is_thought = is_thought
        self.is_held = False
        self.is_commentary = is_commentary(item)
        self._item = item
        self._new_index = new_index
        self._shows_thoughts = shows_thoughts
        self._parser = ThinkTagParser()
        self._held: list[TextSpan] = []
        """The spans that wait while `is_held`."""
        self._parts: list[ShownPart] = []
        """The parts on the page."""
        self._is_complete = False

    @property
    def text(self) -> str:
        """The text shown as the answer, joined as the host joins it."""
        return "\n".join(part.text for part in self._parts if not part.is_thought)

    @property
    def is_shown(self) -> bool:
        """Whether any part of the message was shown."""
        return bool(self._parts)

    def add_text(self, text: str) -> Iterator[RunEvent]:
        """Yield what can be shown after more text has come."""
        yield from self._show_spans(self._parser.feed(text))

    def close(self) -> Iterator[RunEvent]:
        """Yield text that could have been the beginning of a tag."""
        yield from self._show_spans(self._parser.feed("", at_end=True))

    def end(self, item: Item) -> Iterator[RunEvent]:
        """Yield the end of the message; `item` is the complete one."""
        self._item = item
        self._is_complete = True
        yield from self.close()
        yield from self._end_last()

    def become_thought(self) -> Iterator[RunEvent]:
        """Turn the shown text into a thought: its round calls a tool."""
        self.is_thought = True
        self._held = []
        if not self._shows_thoughts:
            return
        for part in self._parts:
            if not part.is_thought:
                part.is_thought = True
                yield part.end_event()

    def release(self) -> Iterator[RunEvent]:
        """Yield what was held back."""
        held = self._held
        self.is_held = False
        self._held = []
        yield from self._show_spans(held)
        yield from self.close()
        if self._is_complete:
            yield from self._end_last()

    def repeat_as_answer(self) -> Iterator[RunEvent]:
        """Yield a message that was shown as a thought again, as the answer."""
        text = _answer_text(self._item)
        if text and not self.text:
            yield from self._add_part(is_thought=False).events(text)

    def _show_spans(self, spans: list[TextSpan]) -> Iterator[RunEvent]:
        """Yield spans as parts; those that are held back or not shown are not."""
        for span in spans:
            is_thought = span.is_thought or self.is_thought
            if self.is_held:
                self._held.append(span)
            elif self._shows_thoughts or not is_thought:
                yield from self._show(span.text, is_thought)

    def _show(self, text: str, is_thought: bool) -> Iterator[RunEvent]:
        """Yield a text in the last part, or in a new one of its kind."""
        last = self._parts[-1] if self._parts else None
        if last is None or last.is_thought is not is_thought:
            text = text.lstrip()  # blank lines between a thought and an answer
            if not text:
                return
            if last:
                yield last.end_event()
            last = self._add_part(is_thought)
            yield last.start_event()
        yield last.add_text(text)

    def _add_part(self, is_thought: bool) -> ShownPart:
        """Return a new part; the first one has the id of the message."""
        index = self._new_index()
        message_id = str(self._item.get("id") or "")
        part_id = message_id or "msg"
        if self._parts or not message_id:
            part_id = f"{part_id}_{index}"
        part = ShownPart(index, part_id, is_thought)
        self._parts.append(part)
        return part

    def _end_last(self) -> Iterator[RunEvent]:
        """Yield the end of the last part; a message in one part ends unchanged."""
        if not self._parts:
            return
        last = self._parts[-1]
        text = message_text(self._item)
        is_one_part = parse_spans(text) == [TextSpan(is_thought=False, text=text)]
        if is_one_part and not last.is_thought:
            last.text = text
            yield ItemDone(last.index, self._item)
        else:
            yield last.end_event()


class ThoughtFilter:
    """Shows one run, over all its rounds, under its own indexes."""

    def __init__(self, *, shows_thoughts: bool) -> None:
        """Start before the first round."""
        self._shows_thoughts = shows_thoughts
        self._may_call = False
        """Whether the model may call tools in this round."""
        self._has_called = False
        """Whether it has called one."""
        self._has_thought = False
        """Whether this round brought reasoning."""
        self._next_index = 0
        self._indexes: dict[int, int] = {}
        """The indexes of items that are not messages, by those in the run."""
        self._messages: dict[int, _MessageParts] = {}
        """The messages of this round, by their indexes in the run."""

    def begin_round(self, *, may_call: bool) -> None:
        """Prepare for another answer of the model."""
        self._may_call = may_call
        self._has_called = False
        self._has_thought = False
        self._messages = {}

    def get_text(self, index: int) -> str:
        """Return the shown answer of this round's message at `index`."""
        message = self._messages.get(index)
        return message.text if message else ""

    def show(self, event: RunEvent) -> Iterator[RunEvent]:
        """Yield the events that replace an event."""
        match event:
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = self._start_message(event.item)
            case TextDelta() if event.output_index in self._messages:
                yield from self._messages[event.output_index].add_text(event.text)
            case ItemDone() if event.output_index in self._messages:
                yield from self._messages[event.output_index].end(event.item)
            case AnnotationAdded() if event.output_index in self._messages:
                pass  # the ended item has it again
            case Status() | HiddenMessage():
                yield event
            case ResponseDone() | RunDone():
                yield from self._close()
                yield event
            case _:
                yield from self._show_other(event)

    def build_carrier(self) -> Iterator[RunEvent]:
        """Yield an empty thought to which details can be attached."""
        index = self._new_index()
        yield from ShownPart(index, f"carrier_{index}", is_thought=True).events("")

    def _start_message(self, item: Item) -> _MessageParts:
        """Return a message that begins, by the table of this module."""
        is_comment = is_commentary(item)
        is_shown_comment = self._shows_thoughts and is_comment
        message = _MessageParts(
            item,
            self._new_index,
            shows_thoughts=self._shows_thoughts,
            is_thought=self._has_called or is_shown_comment,
        )
        may_end_in_call = self._may_call and item.get("phase") != "final_answer"
        if not self._shows_thoughts and not self._has_called:
            message.is_held = may_end_in_call or is_comment
        return message

    def _show_other(self, event: ItemEvent | ToolOutput) -> Iterator[RunEvent]:
        """Yield an event of any other item under its index among those shown."""
        if isinstance(event, ItemAdded) and is_call(event.item):
            yield from self._show_call(event.item)
        if isinstance(event, TextDelta) and event.kind in ("summary", "reasoning"):
            self._has_thought = True
        if event.output_index not in self._indexes:
            self._indexes[event.output_index] = self._new_index()
        yield event._replace(output_index=self._indexes[event.output_index])

    def _show_call(self, call: Item) -> Iterator[RunEvent]:
        """Turn the texts of this round into thoughts, because it calls a tool.

        A round without text gets a thought of ours.
        """
        if self._has_called:
            return
        self._has_called = True
        messages = list(self._messages.values())
        for message in messages:
            yield from message.become_thought()
        has_text = self._has_thought or any(message.is_shown for message in messages)
        if self._shows_thoughts and not has_text:
            yield from self._announce_call(call)

    def _announce_call(self, call: Item) -> Iterator[RunEvent]:
        """Yield a thought about a call."""
        call_id = str(call.get("call_id"))
        thought = ShownPart(self._new_index(), call_id, is_thought=True)
        yield from thought.events(announcement(call))

    def _close(self) -> Iterator[RunEvent]:
        """Yield what is left at the end of a round."""
        messages = list(self._messages.values())
        has_answer = any(not message.is_commentary for message in messages)
        for message in messages:
            is_step = self._has_called or (message.is_commentary and has_answer)
            if not message.is_held:
                yield from message.close()
            elif not is_step:
                yield from message.release()
        lacks_answer = not (self._has_called or has_answer)
        if self._shows_thoughts and messages and lacks_answer:
            yield from messages[-1].repeat_as_answer()

    def _new_index(self) -> int:
        """Return a free index."""
        index = self._next_index
        self._next_index += 1
        return index


def read_answer_text(output: Iterable[Item]) -> str:
    """Return the answer of a round without calls: no thoughts, no commentary."""
    messages = [item for item in output if item_type(item) == "message"]
    final = [item for item in messages if not is_commentary(item)]
    texts = [_answer_text(message) for message in final or messages]
    return "\n\n".join(text for text in texts if text)


def _answer_text(message: Item) -> str:
    """Return the text of a message without its thoughts."""
    return answer_text(message_text(message)).strip()


# --------------------------------------------------------------------------------------
# toolbox.sandbox.processes
#
# Child processes, in any event loop.
#
# asyncio leaves the start of a process to its loop and to the policy of the whole server:
# uvloop knows neither `process_group` nor `user`, and before Python 3.14 a plain loop
# under uvloop's policy cannot start any. So a process is started here without the loop,
# which only reads and writes its pipes; a thread waits for its end.
# --------------------------------------------------------------------------------------


class ChildProcess:
    """A process that leads a session and a group; each pipe that was asked for."""

    def __init__(self, command: Sequence[str], options: Mapping[str, Any]) -> None:
        """Start it, and wait for its end in a thread; raises OSError or ValueError."""
        self._process = Popen(command, start_new_session=True, bufsize=0, **options)
        self.pid = self._process.pid
        self.stdin: StreamWriter | None = None
        self.stdout: StreamReader | None = None
        self.stderr: StreamReader | None = None
        self._ended = asyncio.Event()
        self._opened: list[asyncio.BaseTransport] = []
        loop = asyncio.get_running_loop()
        Thread(target=self._wait, args=(loop,), name="child", daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.returncode

    async def wait(self) -> None:
        """Wait until it has ended."""
        await self._ended.wait()

    def kill_group(self) -> None:
        """End it with all that it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Close the pipes."""
        for transport in self._opened:
            transport.close()

    async def connect(self) -> None:
        """Open the pipes; if that fails or is cancelled, end the process."""
        process = self._process
        all_pipes = (process.stdin, process.stdout, process.stderr)
        pipes = [pipe for pipe in all_pipes if pipe]  # those that are not yet opened
        try:
            if process.stdin:
                self.stdin = await self._open_writer(pipes.pop(0))
            if process.stdout:
                self.stdout = await self._open_reader(pipes.pop(0))
            if process.stderr:
                self.stderr = await self._open_reader(pipes.pop(0))
        except BaseException:
            self.kill_group()
            self.close()
            for pipe in pipes:
                pipe.close()
            await self.wait()
            raise

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in a thread until the process has ended."""
        self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(self._ended.set)

    async def _open_reader(self, pipe: IO[bytes]) -> StreamReader:
        """Return a stream of what the process writes into a pipe."""
        reader = StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            partial(StreamReaderProtocol, reader), pipe
        )
        self._opened.append(transport)
        return reader

    async def _open_writer(self, pipe: IO[bytes]) -> StreamWriter:
        """Return a stream to what the process reads from a pipe."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            partial(StreamReaderProtocol, StreamReader()), pipe
        )
        self._opened.append(transport)
        return StreamWriter(transport, protocol, None, loop)


async def start_process(*command: str, **options: Any) -> ChildProcess:
    """Start a process; raises OSError or ValueError."""
    child = ChildProcess(command, options)
    await child.connect()
    return child


# --------------------------------------------------------------------------------------
# toolbox.sandbox.backend
#
# Limits of a sandbox, and a process that can be ended at any time.
# --------------------------------------------------------------------------------------


MEBIBYTE = 1024 * 1024


class SandboxLimits(NamedTuple):
    """The limits of one run; sizes are in bytes.

    `memory` is for all processes of a run together, `processes` counts threads as well.
    The workspace and the folder for temporary files have `disk` each, a single file at
    most `file`; a workspace keeps `files` files and folders. `output` limits what is
    printed, the result, and a file that is read; `returned_files` are handed out.
    """

    seconds: float = 30.0
    memory: int = 512 * MEBIBYTE
    processes: int = 32
    disk: int = 64 * MEBIBYTE
    file: int = 32 * MEBIBYTE
    files: int = 1_000
    output: int = 50_000
    returned_files: int = 10


class SharedLimits(NamedTuple):
    """What the users of one server share, whatever the limits of their runs are.

    `runs` and `runs_per_user` are simultaneous. A workspace is removed `idle_seconds`
    after its last use; where there are too many, whoever has the most loses the one
    that was not used for the longest time.
    """

    runs: int = 4
    runs_per_user: int = 2
    workspaces: int = 50
    workspaces_per_user: int = 20
    idle_seconds: float = 3600.0


class ProcessHandle:
    """Refers to one process that leads a group."""

    def __init__(self, number: int) -> None:
        """Refer to a child process that was just started."""
        self._number = number
        self._descriptor: int | None = None
        with suppress(ProcessLookupError):  # it has ended already
            self._descriptor = os.pidfd_open(number)

    def kill(self) -> None:
        """End it with its group, if it has not ended."""
        if self._descriptor is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, 0)  # it is still the same
                os.killpg(self._number, signal.SIGKILL)

    def close(self) -> None:
        """Close the descriptor."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


NOBODY_UID = 65534
"""The user that runs are handed to; the kernel gives it no rights at all."""
RUN_ENVIRONMENT = {"HOME": "/tmp", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a run; libraries of numbers would start a thread per core."""


class SandboxUnavailable(Exception):
    """No sandbox works here; the text is for an administrator."""


def find_program(name: str) -> str:
    """Return the path of a program; raises SandboxUnavailable."""
    path = shutil.which(name)
    if path is None:
        raise SandboxUnavailable(f"{name} is not installed")
    return path


class SandboxProcess(Protocol):
    """One sandbox with one program in it, which reads stdin and answers on stdout."""

    process: ChildProcess

    def measure_memory(self) -> int:
        """Return the bytes that its processes hold, 0 if something else limits them."""

    async def kill(self) -> None:
        """End all that runs in it."""

    def close(self) -> None:
        """Close the descriptors."""


class SandboxBackend(Protocol):
    """A way to make sandboxes."""

    @property
    def name(self) -> str:
        """What an administrator calls it."""

    async def start(self, program: str, limits: SandboxLimits) -> SandboxProcess:
        """Start a program in a sandbox; raises SandboxUnavailable."""


# --------------------------------------------------------------------------------------
# toolbox.sandbox.options
#
# The settings of a sandbox, as administrators write them.
# --------------------------------------------------------------------------------------


class SandboxOptions(BaseModel):
    """What SANDBOX_OPTIONS can hold."""

    model_config = ConfigDict(frozen=True)

    seconds: int = Field(
        default=30, ge=1, le=600, description="Time limit of one run, 1 to 600."
    )
    memory_mb: int = Field(
        default=512,
        ge=64,
        le=16_384,
        description="Memory of one run, for all its processes, 64 to 16384.",
    )
    disk_mb: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="Space for the files of one chat, 1 to 1024.",
    )
    wheels: str = Field(
        default="",
        description="Folder of wheels whose packages can be imported.",
    )


def build_sandbox_limits(options: SandboxOptions, output: int) -> SandboxLimits:
    """Return the limits of a run; `output` is in bytes."""
    disk = options.disk_mb * MEBIBYTE
    return SandboxLimits(
        seconds=options.seconds,
        memory=options.memory_mb * MEBIBYTE,
        disk=disk,
        file=disk,
        output=output,
    )


# --------------------------------------------------------------------------------------
# toolbox.sandbox.bubblewrap
#
# Bubblewrap: empty namespaces around a Python interpreter.
#
# The sandbox sees nothing of the host but the interpreter, its standard library and the
# system's libraries, read-only. Packages that are installed there are hidden: where Open
# WebUI is one of them, its database may lie among them. Bubblewrap gets no environment
# variables, because the code could read them. A server that runs as root starts the run
# as user nobody, because the kernel does not limit the number of root's processes. The
# first process inside is identified by an open folder in `/proc`: unlike a process id, it
# is never reused. The server's interpreter may lie in a home folder that nobody else can
# read; then the system's is used.
#
# A filter refuses system calls in the gaps of namespaces: what holds memory that nobody
# can count, belongs to no namespace, or acts on the whole host. What is left is counted:
# the memory of processes, the files, and what the kernel keeps for sockets, pipes, locks
# and mappings.
# --------------------------------------------------------------------------------------


_INODE_BYTES = 2560
"""What an empty file or folder costs the kernel at most (measured with Linux 6.18); bwrap
has no option that limits their number."""
_WRITABLE_FOLDERS = ("work", "tmp")
_MEMORY_FIELDS = ("RssAnon:", "RssShmem:", "VmSwap:")
"""What a process holds of memory; the pages of files could be dropped at any time."""
_BUFFER_BYTES = {
    "pipe": 64 * 1024,
    "socket": 3 * 212_992 // 2,
    "/proc": 128 * 1024,
}
"""What an open file holds: a pipe or a socket that nobody reads (pipe(7); socket(7),
wmem_default: a message is taken as long as there is room, and has at most half of it),
and a file of `/proc` that lists as many locks as we allow (seq_file)."""
_MAX_MAPS_CHARACTERS = 128 * 1024
_BYTES_PER_MAPS_CHARACTER = 5
"""What the kernel holds for a mapping, by its line in `/proc/<process>/maps`."""
_MAX_MAPPINGS_BYTES = 65_530 * 400
"""Of a process with more lines than we read: it has no more (vm.max_map_count)."""
_HELD_ENTRY_BYTES = 256
_HELD_ENTRIES = (b"lock:", b"tfd:")
"""Of an open file in `/proc`: its locks, and what an epoll watches."""
_MAX_HELD_ENTRIES = 1_000
"""No program needs so many; nothing else limits the locks."""


class _BubblewrapProcess:
    """One run; bubblewrap writes the id of the first process inside to a pipe."""

    def __init__(self, process: ChildProcess, info_pipe: int) -> None:
        """Watch `process`; `info_pipe` is read when it is needed."""
        self.process = process
        self._bwrap_process = ProcessHandle(process.pid)
        self._info_descriptor = info_pipe
        self._info = b""
        self._first_descriptor: int | None = None
        self._opening = Lock()  # a thread measures while the run may be ended
        os.set_blocking(info_pipe, False)

    def measure_memory(self) -> int:
        """Return the memory of the processes and of empty files.

        Raises PermissionError if the kernel does not let us look.
        """
        with suppress(FileNotFoundError, ProcessLookupError, BlockingIOError):
            first = self._open_first_process()
            if not os.path.samestat(os.stat("root", dir_fd=first), os.stat("/")):
                return _measure_root(f"/proc/self/fd/{first}/root")
        return 0  # not begun, or over

    async def kill(self) -> None:
        """End the first process; the kernel ends all others in its namespace."""
        try:
            signal.pidfd_send_signal(self._open_first_process(), signal.SIGKILL)
        except (BlockingIOError, FileNotFoundError, ProcessLookupError):
            self._bwrap_process.kill()  # nothing runs inside yet, or any more

    def close(self) -> None:
        """Close the descriptors."""
        self._bwrap_process.close()
        os.close(self._info_descriptor)
        if self._first_descriptor is not None:
            os.close(self._first_descriptor)

    def _open_first_process(self) -> int:
        """Return a descriptor of the first process's folder."""
        with self._opening:
            if self._first_descriptor is None:
                self._info += os.read(self._info_descriptor, 4096)
                number = "none"
                with suppress(ValueError):  # it is not all written yet
                    number = json.loads(self._info)["child-pid"]
                self._first_descriptor = os.open(
                    f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY
                )
            return self._first_descriptor


def _measure_root(root: str) -> int:
    """Return the bytes that processes and files below the root of a sandbox hold.

    Raises PermissionError if the kernel does not let us look.
    """
    size = entries = 0
    buffers: set[str] = set()
    for number in filter(str.isdigit, os.listdir(f"{root}/proc")):
        memory = 0
        for folder in _list_threads(f"{root}/proc/{number}"):
            # All threads have the same memory, but the first may have ended, and each
            # may have open files of its own.
            with _unless_it_ended(folder):
                memory = memory or _read_memory(folder)
                entries += _read_open_files(folder, buffers)
            if entries > _MAX_HELD_ENTRIES:
                return sys.maxsize
        size += memory
    size += sum(_BUFFER_BYTES[name.partition(":[")[0]] for name in buffers)
    size += entries * _HELD_ENTRY_BYTES
    for name in _WRITABLE_FOLDERS:
        size += _estimate_inode_memory(f"{root}/{name}")
    return size


def _list_threads(process: str) -> list[str]:
    """Return the folders in `/proc` of the threads of a process."""
    with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
        return [f"{process}/task/{number}" for number in os.listdir(f"{process}/task")]
    return []


@contextmanager
def _unless_it_ended(folder: str) -> Iterator[None]:
    """Ignore what cannot be read of a thread that has just ended: it holds nothing.

    Until somebody waits for it, its folder belongs to root.
    """
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        pass
    except PermissionError:
        with suppress(FileNotFoundError, ProcessLookupError):
            if _read_resident(folder):
                raise


def _read_memory(folder: str) -> int:
    """Return the bytes that a thread's process holds, by its folder in `/proc`."""
    resident = _read_resident(folder)
    if not resident:
        return 0
    with open(f"{folder}/maps", "rb") as maps:
        characters = len(maps.read(_MAX_MAPS_CHARACTERS))
    if characters == _MAX_MAPS_CHARACTERS:
        return resident + _MAX_MAPPINGS_BYTES
    return resident + characters * _BYTES_PER_MAPS_CHARACTER


def _read_resident(folder: str) -> int:
    """Return the bytes of a thread's memory that are its own; 0 if it has ended."""
    with open(f"{folder}/status", encoding="utf-8", errors="replace") as lines:
        kilobytes = [
            int(line.split()[1]) for line in lines if line.startswith(_MEMORY_FIELDS)
        ]
    return 1024 * sum(kilobytes)


def _read_open_files(folder: str, buffers: set[str]) -> int:
    """Add the pipes and sockets that a thread has open; return the number of `_HELD_ENTRIES`.

    They are read for each file. The list in `/proc/locks` is not: whoever reads it
    stops each lock of the host for 10 ms.
    """
    entries = 0
    for number in os.listdir(f"{folder}/fd"):
        with suppress(FileNotFoundError):  # it is closed by now
            name = os.readlink(f"{folder}/fd/{number}")
            if name.partition(":[")[0] in _BUFFER_BYTES:
                buffers.add(name)
            elif name.startswith("/proc/"):
                buffers.add(f"/proc:[{folder}/{number}")
            else:
                with open(f"{folder}/fdinfo/{number}", "rb") as info:
                    entries += sum(line.startswith(_HELD_ENTRIES) for line in info)
    return entries


def _estimate_inode_memory(path: str) -> int:
    """Return about how many bytes the files of a file system hold beside their content."""
    with suppress(FileNotFoundError):
        filesystem = os.statvfs(path)
        return (filesystem.f_files - filesystem.f_ffree) * _INODE_BYTES
    return 0


_ISOLATION_OPTIONS = (
    "--unshare-user --unshare-all --disable-userns --as-pid-1 --die-with-parent "
    "--new-session --clearenv --cap-drop ALL --hostname sandbox --proc /proc "
    "--ro-bind /dev/null /proc/cmdline "
    "--symlink /proc/self/fd /dev/fd --symlink /tmp /dev/shm"
)
_HOST_DISKS = "/proc/fs"
"""It names servers of files and their users; `/proc/cmdline` may hold keys, too."""
_DEVICES = ("null", "random", "urandom")
"""Not `zero`: mapped, it is the shared memory that the filter refuses."""
_PROGRAM_PATHS = ("/usr/bin", "/etc/alternatives")
"""Programs, and the links that Debian chooses some of them by."""
_LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_READ_ONLY_PATHS = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_STANDARD_LIBRARY = re.compile(r"python3\.\d+t?")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""Where pip and Debian install packages, next to the modules of the standard library."""


class BubblewrapBackend:
    """Makes sandboxes in which a given interpreter runs."""

    def __init__(
        self, python: Path, packages: str = "", *, with_programs: bool = False
    ) -> None:
        """`packages` is the folder of installed packages, if there are any.

        With `with_programs` a shell and the system's programs are there, too.
        """
        self.name = f"bubblewrap with {python}"
        self._python = python
        self._packages = packages
        self._with_programs = with_programs

    async def start(self, program: str, limits: SandboxLimits) -> _BubblewrapProcess:
        """Start a sandbox; raises SandboxUnavailable."""
        command = [_find_bwrap(), *self._options(limits)]
        user = NOBODY_UID if os.geteuid() == 0 else None
        with (
            _open_seccomp_filter(platform.machine()) as rules,
            _open_pipe() as (info_pipe, info_end),
        ):
            command += ["--seccomp", str(rules), "--info-fd", str(info_end)]
            process = await start_process(
                *command,
                str(self._python),
                "-I",
                "-c",
                program,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={},
                pass_fds=(rules, info_end),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
            return _BubblewrapProcess(process, os.dup(info_pipe))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield the contents of the sandbox; the last option makes its root read-only."""
        yield from _ISOLATION_OPTIONS.split()
        for name in _DEVICES:
            yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        if os.path.isdir(_HOST_DISKS):
            yield from ("--tmpfs", _HOST_DISKS, "--remount-ro", _HOST_DISKS)
        for path in _READ_ONLY_PATHS:
            yield from ("--ro-bind-try", path, path)
        yield from _folder_options(_LIBRARY_FOLDERS)
        if self._with_programs:
            for path in _PROGRAM_PATHS:
                yield from ("--ro-bind-try", path, path)
            yield from _folder_options(("/bin",))
        prefix = self._python.parent.parent
        if prefix != Path("/usr"):
            yield from _interpreter_options(prefix)
        yield from ("--ro-bind", str(self._python), str(self._python))
        yield from _hiding_options(
            (*_LIBRARY_FOLDERS, f"{prefix}/lib", f"{prefix}/lib64")
        )
        for path in ("/work", "/tmp"):
            yield from ("--size", str(limits.disk), "--tmpfs", path)
        if self._packages:
            yield from ("--ro-bind", self._packages, "/packages")
        for name, value in RUN_ENVIRONMENT.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", "/work", "--remount-ro", "/")


def find_interpreters() -> list[Path]:
    """Return the interpreters that a run could use: the server's, the system's."""
    own = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    candidates = [own]
    if system:
        candidates.append(Path(system))
    interpreters: list[Path] = []
    for path in candidates:
        if path.exists() and path.resolve() not in interpreters:
            interpreters.append(path.resolve())
    return interpreters


def _find_bwrap() -> str:
    path = find_program("bwrap")
    if os.stat(path).st_mode & stat.S_ISUID:
        raise SandboxUnavailable(
            "bwrap is setuid root, which gives it more privileges than it needs"
        )
    return path


def _folder_options(folders: Iterable[str]) -> Iterator[str]:
    """Yield the options for /lib and the like: links into /usr on most systems."""
    for folder in folders:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _interpreter_options(prefix: Path) -> Iterator[str]:
    """Yield the options for the standard library of an interpreter below `prefix`.

    The shared libraries next to it are there, too: those of conda's modules are not the
    system's. Nothing else is, as anything may be installed below such a folder.
    """
    for folder in (prefix / "lib", prefix / "lib64"):
        if folder.is_symlink():
            yield from ("--symlink", os.readlink(folder), str(folder))
            continue
        for path in sorted(folder.glob("*")):
            is_shared = ".so" in path.suffixes and path.is_file()
            if not is_shared and not _STANDARD_LIBRARY.fullmatch(path.name):
                continue
            if path.is_symlink():  # what it leads to is there if it is one of these
                yield from ("--symlink", os.readlink(path), str(path))
            else:
                yield from ("--ro-bind", str(path), str(path))


def _hiding_options(folders: Iterable[str]) -> Iterator[str]:
    """Yield the options that put an empty folder over each folder of packages."""
    hidden = {
        path.resolve()
        for folder in folders
        for name in _PACKAGE_FOLDERS
        for path in Path(folder).glob(f"*/{name}")
    }
    for path in sorted(hidden):
        yield from ("--tmpfs", str(path), "--remount-ro", str(path))


@contextmanager
def _open_pipe() -> Iterator[tuple[int, int]]:
    """Lend the two ends of a pipe: the one to read, the one to write."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def _open_seccomp_filter(machine: str) -> Iterator[int]:
    """Lend a descriptor from which bubblewrap reads the filter of system calls."""
    program = _build_seccomp_filter(machine)
    reading, writing = os.pipe()
    try:
        os.write(writing, program)  # it fits into a pipe
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


_REFUSED_CALLS = {
    # Memory that nobody can count.
    "shmget": (29, 194),
    "socket": (41, 198),  # a listener's queue of clients that have closed theirs
    "sendmsg": (46, 211),  # open files on their way
    "bind": (49, 200),
    "setsockopt": (54, 208),  # larger buffers
    "semget": (64, 190),
    "msgget": (68, 186),
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "vmsplice": (278, 75),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "sendmmsg": (307, 269),
    "seccomp": (317, 277),
    "setxattr": (188, 5),  # lists of rights, which no file system counts
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "memfd_create": (319, 279),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),  # its calls are not filtered either
    "landlock_create_ruleset": (444, 444),
    "memfd_secret": (447, 447),
    # Other processes, keys of no namespace, the log and the disks of the host.
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "sync": (162, 81),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "syncfs": (306, 267),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "pidfd_getfd": (438, 438),
}
"""The numbers of the calls that are refused, one of each machine in `_ARCHITECTURES`."""

_WHOLE_WORD = 0xFFFFFFFF
_REFUSED_ARGUMENTS = {
    # Anonymous memory that is shared, of which a single page that is left keeps all;
    # huge pages, which the host has set apart for others.
    "mmap": ((9, 222), 3, ((0x21, 0x21), (0x40000, 0x40000))),
    # F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
    "fcntl": ((72, 25), 1, tuple((_WHOLE_WORD, call) for call in (1024, 1026, 1031))),
    # PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH
    "prctl": ((157, 167), 0, tuple((_WHOLE_WORD, call) for call in (22, 62, 78))),
}
"""Calls that are refused with certain values: the numbers, which argument, and its bits
that are compared with which value."""
_SOCKETPAIR = (53, 199)
"""Refused unless it is of AF_UNIX: asyncio needs one, and its buffers are counted."""
_FIRST_UNKNOWN_CALL = 463
"""From here on they are newer than this list (Linux 6.13), on both machines."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
_X32_CALL_BIT = 0x40000000
"""x86_64 has every call a second time from here on."""
_UNIX_SOCKETS = 1

# linux/bpf_common.h: load a word; keep bits of it; jump if equal, if at least; return.
_LOAD = 0x20
_AND = 0x54
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_RETURN = 0x06
# linux/seccomp.h: offsets in seccomp_data, then what a filter returns.
_CALL_NUMBER = 0
_ARCHITECTURE = 4
_DESCRIPTOR_ARGUMENTS = 16
_ARGUMENT_BYTES = 8
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_NOT_THERE = 0x00050000 | errno.ENOSYS
_PASS = 0x7FFF0000


def _build_seccomp_filter(machine: str) -> bytes:
    """Return the filter for a machine as `uname` names it; raises SandboxUnavailable."""
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailable(f"there is no system call filter for {machine}")
    column = list(_ARCHITECTURES).index(machine)
    refuse = _encode_instruction(_RETURN, _REFUSE)
    accept = _encode_instruction(_RETURN, _PASS)
    steps = [
        _encode_instruction(_LOAD, _ARCHITECTURE),
        _encode_instruction(_IF_EQUAL, _ARCHITECTURES[machine], skip_if=1),
        # The calls of another machine have other numbers.
        _encode_instruction(_RETURN, _KILL),
        _encode_instruction(_LOAD, _CALL_NUMBER),
        _encode_instruction(_IF_AT_LEAST, _X32_CALL_BIT, skip_unless=1),
        refuse,
        _encode_instruction(_IF_AT_LEAST, _FIRST_UNKNOWN_CALL, skip_unless=1),
        _encode_instruction(_RETURN, _NOT_THERE),
    ]
    for numbers in _REFUSED_CALLS.values():
        number = numbers[column]
        if number is not None:
            steps += [_encode_instruction(_IF_EQUAL, number, skip_unless=1), refuse]
    for call_numbers, argument, values in _REFUSED_ARGUMENTS.values():
        place = _DESCRIPTOR_ARGUMENTS + argument * _ARGUMENT_BYTES
        checks = []
        for bits, value in values:
            checks += [
                _encode_instruction(_LOAD, place),
                _encode_instruction(_AND, bits),
                _encode_instruction(_IF_EQUAL, value, skip_unless=1),
                refuse,
            ]
        checks.append(accept)
        number = call_numbers[column]
        steps.append(_encode_instruction(_IF_EQUAL, number, skip_unless=len(checks)))
        steps += checks
    steps += [
        _encode_instruction(_IF_EQUAL, _SOCKETPAIR[column], skip_unless=3),
        _encode_instruction(_LOAD, _DESCRIPTOR_ARGUMENTS),
        _encode_instruction(_IF_EQUAL, _UNIX_SOCKETS, skip_if=1),
        refuse,
        accept,
    ]
    return b"".join(steps)


def _encode_instruction(
    code: int, operand: int, skip_if: int = 0, skip_unless: int = 0
) -> bytes:
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, skip_if, skip_unless, operand)


# --------------------------------------------------------------------------------------
# toolbox.sandbox.containers
#
# Sandboxes made by Docker or Podman.
# --------------------------------------------------------------------------------------


_CLIENT_VARIABLES = ("PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR")
"""What the client needs to find its daemon; none of it goes into the container."""
_CLIENT_EXIT_SECONDS = 1.0
_ISOLATED_RUN = (
    "run --rm --interactive --pull never --network none --read-only --cap-drop ALL "
    "--security-opt no-new-privileges --ipc none --log-driver none --hostname sandbox "
    "--workdir /work"
)


class _ContainerProcess:
    """One container; the daemon limits its memory."""

    def __init__(self, process: ChildProcess, remove: tuple[str, ...]) -> None:
        """`process` is the client; `remove` is the command that ends the container."""
        self.process = process
        self._client = ProcessHandle(process.pid)
        self._remove_command = remove

    def measure_memory(self) -> int:
        """Return 0: the daemon limits it."""
        return 0

    async def kill(self) -> None:
        """End the container, which would outlive its client."""
        with suppress(TimeoutError):  # the client of one that has answered ends soon
            async with asyncio.timeout(_CLIENT_EXIT_SECONDS):
                await self.process.wait()
        if self.process.returncode is None:
            removing = await start_process(
                *self._remove_command,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=_client_environment(),
            )
            await removing.wait()
        self._client.kill()

    def close(self) -> None:
        """Close the client's descriptor."""
        self._client.close()


class ContainerBackend:
    """Makes sandboxes with `docker` or `podman`."""

    def __init__(self, client: str, image: str, packages: str = "") -> None:
        """Use a local image with a `python3` in it; nothing is pulled."""
        self.name = client
        self._image = image
        self._packages = packages

    async def start(self, program: str, limits: SandboxLimits) -> _ContainerProcess:
        """Start a container; raises SandboxUnavailable."""
        path = find_program(self.name)
        name = f"sandbox-{token_hex(8)}"
        command = [path, *_ISOLATED_RUN.split(), "--name", name, *self._options(limits)]
        command += [self._image, "python3", "-I", "-c", program]
        process = await start_process(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=_client_environment(),
        )
        return _ContainerProcess(process, (path, "rm", "--force", name))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield the limits; files in a tmpfs count as memory here."""
        rooms = {"/work": limits.disk, "/tmp": limits.disk}
        if self._packages:
            yield from ("--volume", f"{self._packages}:/packages:ro")
        memory = limits.memory + sum(rooms.values())
        yield from ("--user", f"{NOBODY_UID}:{NOBODY_UID}")
        yield from ("--pids-limit", str(limits.processes + 1))
        yield from ("--memory", str(memory), "--memory-swap", str(memory))
        for path, size in rooms.items():
            options = f"rw,exec,nosuid,nodev,size={size},mode=700"
            owner = f"uid={NOBODY_UID},gid={NOBODY_UID}"
            yield from ("--tmpfs", f"{path}:{options},{owner}")
        for name, value in RUN_ENVIRONMENT.items():
            yield from ("--env", f"{name}={value}")
        if self.name == "podman":  # it would hand the server's proxies on
            yield "--http-proxy=false"


def _client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}


# --------------------------------------------------------------------------------------
# toolbox.sandbox.program
#
# Source text of the program that runs inside the sandbox.
#
# It is text because it runs in another interpreter that has none of our modules. It reads
# one JSON line with the operation, then the stored workspace. It answers with one JSON
# line, then the new workspace if it may have changed. What it answers is not trusted.
#
# A workspace is a JSON line (kind, path, mode, size or link target of each entry, folders
# before what is in them), then the bytes of the files. `unpack` restores it and returns
# the stamps of its files. `Survey` reads the new one, and `changed` returns path, place in
# the archive and size of each file whose stamp is another, except for what programs cache
# for themselves (`CACHES`, bytecode): it is kept, but it is no result.
#
# A `ChildJob` is a child process with three pipes: stdout, stderr, and `RESULT`. `wait`
# returns the limit that it exceeds, or nothing. `finish` ends all processes but the first
# and returns the child's status and outputs. `execute` runs the code like an interactive
# shell: the value of a last expression is the result. It imports modules of the workspace
# and of the packages that the server has installed.
# --------------------------------------------------------------------------------------


SANDBOX_PROGRAM = r'''"""What a run does inside the sandbox."""

import _ast
import errno
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from io import BufferedReader, BufferedWriter

WORK = "/work"
PACKAGES = "/packages"
CHUNK_BYTES = 1 << 18
MAX_PATH_BYTES = 1000
FULL = (errno.ENOSPC, errno.EFBIG)
MAX_DROPPED = 20
RESULT = 3
RESERVE_BYTES = 1 << 22
NO_MODULE = (
    "An administrator can add packages to the folder `wheels` of SANDBOX_OPTIONS."
)
NO_SPACE = "Remove files, or let an administrator raise `disk_mb` in SANDBOX_OPTIONS."
CACHES = frozenset(
    [
        ".cache",
        ".config",
        ".ipynb_checkpoints",
        ".local",
        ".matplotlib",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    ]
)
Stamp = tuple[int, int, int]


class Refused(Exception):
    """An operation is not done; the text says why."""


def unpack(source: BufferedReader) -> dict[str, Stamp]:
    stamps = {}
    for kind, path, mode, rest in json.loads(source.readline() or b"[]"):
        full_path = os.path.join(WORK, path)
        if kind == "folder":
            os.mkdir(full_path)
        elif kind == "link":
            os.symlink(rest, full_path)
        else:
            with open(full_path, "wb") as file:
                copy(source, file, rest)
            os.chmod(full_path, mode)
            stamps[path] = stamp(os.lstat(full_path))
    return stamps


def copy(source: BufferedReader, target: BufferedWriter, size: int) -> None:
    for done in range(0, size, CHUNK_BYTES):
        target.write(source.read(min(CHUNK_BYTES, size - done)))


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


def kind_of(status: os.stat_result) -> str:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")


class Survey:
    """The contents of the workspace."""

    def __init__(self, limits: dict) -> None:
        self.limits = limits
        self.manifest: list[tuple] = []
        self.stamps: dict[str, Stamp] = {}
        self.dropped: list[str] = []
        self.size = 0
        folders = [""]
        while folders:
            folders += self.read_folder(folders.pop())

    def read_folder(self, folder: str) -> list[str]:
        os.chmod(os.path.join(WORK, folder), 0o700)
        inner = []
        with os.scandir(os.path.join(WORK, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                status = entry.stat(follow_symlinks=False)
                self.add_entry(path, status)
                if kind_of(status) == "folder":
                    inner.append(path)
        return inner

    def add_entry(self, path: str, status: os.stat_result) -> None:
        full_path = os.path.join(WORK, path)
        kind = kind_of(status)
        if kind == "folder":
            self.manifest.append((kind, path, 0, 0))
        elif kind == "link":
            self.manifest.append((kind, path, 0, os.readlink(full_path)))
        elif kind == "file":
            mode = status.st_mode & 0o777 | 0o600
            self.stamps[path] = stamp(status)
            os.chmod(full_path, mode)
            self.manifest.append((kind, path, mode, status.st_size))
            self.size += status.st_size
        else:
            self.dropped.append(path)
        max_files = self.limits["files"]
        if len(self.manifest) > max_files:
            raise Refused(f"it holds more than {max_files} files and folders")
        max_bytes = self.limits["disk"]
        if self.size > max_bytes:
            raise Refused(f"its files have more than {max_bytes} bytes")
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise Refused("a path in it is too long")

    def changed(self, before: dict[str, Stamp]) -> list[tuple[str, int, int]]:
        changed = []
        offset = 0
        for kind, path, _, size in self.manifest:
            if kind == "file":
                if self.stamps[path] != before.get(path) and not is_cached(path):
                    changed.append((path, offset, size))
                offset += size
        return sorted(changed)

    def write(self, target: BufferedWriter) -> None:
        target.write(encode_line(self.manifest))
        for kind, path, _, size in self.manifest:
            if kind == "file":
                with open(os.path.join(WORK, path), "rb") as file:
                    copy(file, target, size)


def is_cached(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith((".pyc", ".pyo")) or not CACHES.isdisjoint(folders)


def encode_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def resolve_path(path: str, follow: bool = True) -> str:
    if "\0" in path:
        raise Refused("A path has no zero bytes.")
    full_path = os.path.normpath(os.path.join(WORK, path))
    if follow:
        real = os.path.realpath(full_path)
    else:  # the link itself is meant
        folder, name = os.path.split(full_path)
        real = os.path.join(os.path.realpath(folder), name)
    if os.path.commonpath((WORK, real)) != WORK:
        raise Refused(f"{path!r} is not in the workspace.")
    return real


def list_folder(request: dict) -> dict:
    with os.scandir(resolve_path(request["path"])) as entries:
        by_name = {entry.name: entry for entry in entries}
    listed = []
    for name in sorted(by_name)[: request["limits"]["files"]]:
        status = by_name[name].stat(follow_symlinks=False)
        kind = kind_of(status)
        row: dict = {"name": name, "kind": kind}
        if kind == "file":
            row["size"] = status.st_size
        listed.append(row)
    return {"listed": listed, "more": len(by_name) - len(listed)}


def read_file(request: dict) -> dict:
    limit = request["limits"]["output"]
    full_path = resolve_path(request["path"])
    with open(full_path, "rb") as file:  # a FIFO would block, but none was kept
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit)
    whole = size <= limit
    try:
        text = content.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"given": os.path.relpath(full_path, WORK), "size": size}
    return {"text": text, "whole": whole, "size": size}


def write_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    os.makedirs(os.path.dirname(full_path), exist_ok=True)
    content = request["content"].encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Wrote {len(content)} bytes."}


def edit_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    old = request["old"]
    with open(full_path, "rb") as file:
        text = file.read().decode("utf-8")
    if not old:
        raise Refused("The passage to replace is empty.")
    first = text.find(old)
    if first < 0:
        raise Refused("The passage does not occur in the file. Read the file first.")
    if text.find(old, first + 1) >= 0:
        raise Refused("The passage occurs more than once. Give more text around it.")
    changed = text[:first] + request["new"] + text[first + len(old) :]
    content = changed.encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Replaced the passage. The file has {len(content)} bytes now."}


def receive_file(request: dict) -> dict:
    with open(resolve_path(request["path"]), "wb") as file:
        file.write(bytes.fromhex(request["content"]))
    return {"done": "It is there."}


def make_folder(request: dict) -> dict:
    os.makedirs(resolve_path(request["path"]), exist_ok=True)
    return {"done": "The folder is there."}


def remove(request: dict) -> dict:
    full_path = resolve_path(request["path"], follow=False)
    if full_path == WORK:
        raise Refused("The workspace itself stays; name what is in it.")
    if os.path.isdir(full_path) and not os.path.islink(full_path):
        remove_folder(full_path)
    else:
        os.remove(full_path)
    return {"done": "Removed."}


def remove_folder(folder: str) -> None:
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.remove(os.path.join(parent, name))
        for name in folders:
            inner = os.path.join(parent, name)
            if os.path.islink(inner):
                os.remove(inner)
            else:
                os.rmdir(inner)
    os.rmdir(folder)


class ChildJob:
    """A child process with its three pipes."""

    def __init__(self, job: Callable[[], int], limit: int) -> None:
        self.limit = limit
        pipes = [os.pipe() for _ in range(3)]
        self.child = os.fork()
        if self.child == 0:
            run_job(job, [writing for _, writing in pipes])
        for _, writing in pipes:
            os.close(writing)
        self.outputs = {reading: bytearray() for reading, _ in pipes}
        self.open_pipes = set(self.outputs)

    def wait(self, deadline: float) -> str:
        ending = os.pidfd_open(self.child)
        poll = select.poll()
        for descriptor in (ending, *self.outputs):
            poll.register(descriptor, select.POLLIN)
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if not ready:
                return "seconds"
            for descriptor in self.open_pipes.intersection(ready):
                if not self.read_pipe(descriptor):
                    poll.unregister(descriptor)
            if any(len(written) > self.limit for written in self.outputs.values()):
                return "output"
            if ending in ready:
                return ""

    def read_pipe(self, descriptor: int) -> bool:
        piece = os.read(descriptor, CHUNK_BYTES)
        self.outputs[descriptor] += piece
        if not piece:
            self.open_pipes.discard(descriptor)
        return bool(piece)

    def finish(self) -> tuple[int, list[str]]:
        status = -1
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while True:
                child, code = os.wait()
                if child == self.child:
                    status = code
        except ChildProcessError:
            pass
        for descriptor in list(self.open_pipes):  # nobody is left to write: this ends
            written = self.outputs[descriptor]
            while len(written) <= self.limit and self.read_pipe(descriptor):
                pass
        texts = [bytes(written[: self.limit]) for written in self.outputs.values()]
        return status, [text.decode("utf-8", "replace") for text in texts]


def run_job(job: Callable[[], int], pipes: list[int]) -> None:
    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe, number)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.set_inheritable(RESULT, False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        status = job()
    except OSError as error:
        raise SystemExit(str(error)) from None
    raise SystemExit(status)


def run_code(request: dict) -> dict:
    return run_child(lambda: execute(request), request["limits"])


def run_shell(request: dict) -> dict:
    return run_child(lambda: execute_command(request["command"]), request["limits"])


def run_child(job: Callable[[], int], limits: dict) -> dict:
    deadline = time.monotonic() + limits["seconds"]
    running = ChildJob(job, limits["output"])
    stopped = running.wait(deadline)
    status, (output, complaints, result) = running.finish()
    return {
        "stdout": output,
        "stderr": complaints,
        "result": result,
        "status": 0 if stopped else os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }


def execute(request: dict) -> int:
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    sys.argv[:] = ["code"]
    sys.path[:] = [WORK, *sys.path, PACKAGES]
    sys.dont_write_bytecode = True  # it would be among the files that were written
    reserve = bytearray(RESERVE_BYTES)  # to report an error of code that took the rest
    try:
        tree = compile(request["code"], "code", "exec", _ast.PyCF_ONLY_AST)
        assert isinstance(tree, _ast.Module)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, _ast.Expr):
            tree.body.pop()
        exec(compile(tree, "code", "exec"), module.__dict__)
        if isinstance(last, _ast.Expr):
            expression = compile(_ast.Expression(last.value), "code", "eval")
            value = eval(expression, module.__dict__)
            write_result(value, request["limits"]["output"])
    except Exception as error:
        del reserve
        print_error(error, request["code"])
        return 1
    return 0


def execute_command(command: str) -> int:
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    variables["PYTHONPATH"] = PACKAGES
    os.execve("/bin/sh", ["sh", "-c", command], variables)


def print_error(error: Exception, code: str) -> None:
    import linecache
    import traceback

    linecache.cache["code"] = (len(code), None, code.splitlines(True), "code")
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != "code":
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)
    if isinstance(error, ModuleNotFoundError):
        sys.stderr.write(NO_MODULE)
    elif isinstance(error, OSError) and error.errno in FULL:
        sys.stderr.write(NO_SPACE)


def write_result(value: object, limit: int) -> None:
    if value is None:
        return
    try:
        text = json.dumps({"json": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        text = json.dumps({"repr": repr(value)})
    if len(text) > limit:  # a character of the repr may take twelve in JSON
        text = json.dumps({"repr": repr(value)[: limit // 12] + "..."})
    with open(RESULT, "w") as target:
        target.write(text)


def set_limits(limits: dict) -> None:
    for name, limit in (
        ("AS", limits["memory"]),
        ("FSIZE", limits["file"]),
        ("NPROC", limits["processes"] + 1),
        ("NOFILE", 64),
        ("SIGPENDING", 64),
        ("MSGQUEUE", 0),
        ("MEMLOCK", 0),
        ("CORE", 1),  # with 0, the kernel still hands a crash to the host's handler
    ):
        kind = getattr(resource, "RLIMIT_" + name)
        _, hard_limit = resource.getrlimit(kind)
        lowest = limit
        if hard_limit != resource.RLIM_INFINITY:
            lowest = min(limit, hard_limit)
        resource.setrlimit(kind, (lowest, lowest))


def describe(request: dict) -> dict:
    import ctypes

    with open("/proc/self/status") as status:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in status)
    with open("/proc/net/dev") as devices:
        names = [line.partition(":")[0].strip() for line in devices if ":" in line]
    new_user_namespace = 0x10000000
    return {
        "capabilities": int(lines["CapBnd"], 16) | int(lines["CapEff"], 16),
        "no_new_privileges": lines["NoNewPrivs"],
        "filtered": lines["Seccomp"],
        "user": os.getuid(),
        "networks": names,
        "namespaces": ctypes.CDLL(None).unshare(new_user_namespace) == 0,
        "seen": [name for name, place in request["private"].items() if sees(*place)],
    }


def sees(path: str, device: int, number: int) -> bool:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it is there, and only its permissions keep it
        return True
    return (status.st_dev, status.st_ino) == (device, number)


OPERATIONS = {
    "describe": (describe, False),
    "run": (run_code, True),
    "list": (list_folder, False),
    "read": (read_file, False),
    "write": (write_file, True),
    "edit": (edit_file, True),
    "shell": (run_shell, True),
    "receive": (receive_file, True),
    "mkdir": (make_folder, True),
    "remove": (remove, True),
}


def main() -> int:
    if os.getpid() != 1:  # all other processes that it can see are ended
        raise SystemExit("This runs as the first process of a sandbox alone.")
    os.nice(10)  # the server comes first, also if code takes this process over
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that code could send us
    source = os.fdopen(0, "rb", closefd=False)
    target = os.fdopen(1, "wb", closefd=False)
    request = json.loads(source.readline())
    set_limits(request["limits"])
    try:
        before = unpack(source)
    except Exception as error:  # code can have written it, if it took us over
        is_full = isinstance(error, OSError) and error.errno in FULL
        return send(target, {"damaged": "full" if is_full else "invalid"})
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    operation, writes = OPERATIONS[request["operation"]]
    answer = run_operation(operation, request)
    if "given" in answer:
        before.pop(answer["given"], None)  # it is handed out as if it were new
    elif not writes or "refused" in answer:
        return send(target, answer)
    return send(target, answer, survey_changes(answer, before, request["limits"]))


def run_operation(operation: Callable[[dict], dict], request: dict) -> dict:
    try:
        return operation(request)
    except Refused as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{error.strerror}."}
    except UnicodeDecodeError:
        return {"refused": "The file is not text."}
    except ValueError:
        return {"refused": "That is no path."}


def survey_changes(answer: dict, before: dict, limits: dict) -> "Survey | None":
    try:
        survey = Survey(limits)
    except (Refused, OSError) as error:
        answer["unkept"] = str(error)
        return None
    changed = survey.changed(before)
    returned = limits["returned_files"]
    answer["dropped"] = survey.dropped[:MAX_DROPPED]
    answer["changed"] = changed[:returned]
    answer["not_shown"] = len(changed[returned:])
    return survey


def send(target: BufferedWriter, answer: dict, survey: "Survey | None" = None) -> int:
    target.write(encode_line(answer))
    if survey is not None:
        survey.write(target)
    target.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
'''
"""What `python -c` runs."""


# --------------------------------------------------------------------------------------
# toolbox.sandbox.runs
#
# One run in the sandbox, whose memory and time are watched.
#
# The reply is not trusted: code that broke out of its own process may have written it.
# Numbers are checked, names are never used as paths on the host, and the archive is only
# ever unpacked inside a sandbox. A backend is used only after a first run showed that it
# confines code as required; there is no weaker fallback.
# --------------------------------------------------------------------------------------


_MAX_JSON_CHARACTER_BYTES = 12
"""The bytes of JSON that one character may take, as a pair of surrogates."""


class SandboxReplyMissing(Exception):
    """The sandbox ended without a valid answer; the text is its error output."""


class FileSlice(NamedTuple):
    """The place of a file that the code wrote, inside a reply."""

    name: str
    start: int
    size: int


class SandboxReply(NamedTuple):
    """A valid answer; `archive` is where the workspace begins, if it is there."""

    answer: Mapping[str, Any]
    archive: int | None
    changed: tuple[FileSlice, ...] = ()


def _max_line_bytes(limits: SandboxLimits) -> int:
    """Return how long the JSON line of an answer may be: three outputs, and names."""
    return 3 * _MAX_JSON_CHARACTER_BYTES * limits.output + 4 * MEBIBYTE


def _read_reply(path: Path, limits: SandboxLimits) -> SandboxReply | None:
    """Return the answer in a file, or None for anything else."""
    with path.open("rb") as file:
        try:
            answer = json.loads(file.readline(_max_line_bytes(limits)))
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, dict):
            return None
        archive = file.tell()
        has_archive = bool(file.readline())
        begin = file.tell()
        end = path.stat().st_size
    changed = tuple(_read_file_slices(answer.get("changed"), begin, end))
    returned = changed[: limits.returned_files]
    return SandboxReply(answer, archive if has_archive else None, returned)


def _read_file_slices(changed: object, begin: int, end: int) -> Iterator[FileSlice]:
    """Yield the files that a reply names, if they lie between `begin` and `end`."""
    if not isinstance(changed, list):
        return
    for entry in changed:
        match entry:
            case [str(name), int(offset), int(size)]:
                if offset >= 0 and size >= 0 and begin + offset + size <= end:
                    yield FileSlice(name, begin + offset, size)


_REPLY_GRACE_SECONDS = 10.0
"""The sandbox stops the code by itself, then answers; after this we do not wait."""
_MEMORY_CHECK_SECONDS = 0.05
"""How often the memory is read: what two cores can fill in that time goes beyond."""
_READ_BYTES = 256 * 1024
_STDERR_BYTES = 2_000


class RunStopped(Exception):
    """The sandbox was stopped before it answered; the text says why."""


class WorkspaceArchive(NamedTuple):
    """A stored workspace: where it begins in which file."""

    path: Path
    start: int


PrivatePaths = Mapping[str, Path]
"""What only the server may read, by what an administrator calls it."""


class Sandbox:
    """Runs requests in the sandboxes of a backend."""

    def __init__(self, backend: SandboxBackend, limits: SandboxLimits) -> None:
        """Start nothing yet."""
        self._backend = backend
        self._limits = limits
        self._processes: set[SandboxProcess] = set()
        self._is_stopped = False

    async def run(
        self, request: Mapping[str, Any], archive: WorkspaceArchive | None, spool: Path
    ) -> SandboxReply:
        """Return the answer, which `spool` stores; the sandbox is gone then.

        Raises RunStopped, SandboxReplyMissing, or SandboxUnavailable.
        """
        fields = {**request, "limits": self._limits._asdict()}
        line = json.dumps(fields).encode() + b"\n"
        process = await self._backend.start(SANDBOX_PROGRAM, self._limits)
        self._processes.add(process)
        run = _SandboxRun(process, self._limits)
        try:
            if self._is_stopped:
                raise SandboxReplyMissing("it was closed")
            await run.communicate(line, archive, spool)
        finally:
            self._processes.discard(process)
            await run.end()
        reply = _read_reply(spool, self._limits)
        if reply is None:
            raise SandboxReplyMissing(run.stderr_text())
        return reply

    async def check_confinement(self, spool: Path, private: PrivatePaths) -> None:
        """Do a first run; raises SandboxUnavailable unless it confines as required.

        A sandbox in which any of the `private` paths can be seen confines nothing.
        """
        request = {"operation": "describe", "private": dict(_locate(private))}
        try:
            reply = await self.run(request, None, spool)
        except OSError as error:
            raise SandboxUnavailable(f"it does not start: {error.strerror}") from None
        except RunStopped as stopped:
            reason = f"a first run was stopped, because {stopped}"
            raise SandboxUnavailable(reason) from None
        except SandboxReplyMissing as silent:
            reason = str(silent) or "a first run gave no answer"
            raise SandboxUnavailable(reason) from None
        match reply.answer:
            case {"seen": [_, *_] as seen}:
                raise SandboxUnavailable(
                    f"code in it could read {', '.join(map(str, seen))} of the server, "
                    "which must not lie among programs or libraries"
                )
        gaps = list(_find_confinement_gaps(reply.answer))
        if gaps:
            raise SandboxUnavailable(f"it does not confine {', '.join(gaps)}")

    async def stop(self) -> None:
        """End all that runs or begins; callers get SandboxReplyMissing."""
        self._is_stopped = True
        while self._processes:  # not closed yet, so they can be killed
            await self._processes.pop().kill()


class _SandboxRun:
    """One request to a sandbox that runs, and its answer."""

    def __init__(self, sandbox: SandboxProcess, limits: SandboxLimits) -> None:
        child = sandbox.process
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self._process = sandbox
        self._limits = limits
        self._stdin = child.stdin
        self._stdout = child.stdout
        self._stderr = child.stderr
        self._stderr_text = b""
        self._tasks: list[Task[None]] = []
        self._measurer = ThreadPoolExecutor(1, "sandbox-memory")
        self._measuring: asyncio.Future[int] | None = None
        self._stderr_task = asyncio.create_task(self._read_stderr())

    async def communicate(
        self, line: bytes, archive: WorkspaceArchive | None, spool: Path
    ) -> None:
        """Send the request, watch until the answer is complete; raises RunStopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.seconds + _REPLY_GRACE_SECONDS
        reading = asyncio.create_task(self._read_stdout(spool))
        sending = asyncio.create_task(_send_request(self._stdin, line, archive))
        self._tasks = [reading, sending]
        await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        while not reading.done():
            if loop.time() > deadline:
                raise RunStopped(f"it did not end within {self._limits.seconds:g} s")
            await self._check_memory()
            await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        reading.result()

    async def _check_memory(self) -> None:
        """Raise RunStopped if the sandbox holds more memory than it may.

        Code can make much to read of it; so a thread reads, and none that others need.
        """
        max_bytes = self._limits.memory
        loop = asyncio.get_running_loop()
        measure = self._process.measure_memory
        self._measuring = loop.run_in_executor(self._measurer, measure)
        try:
            size = await asyncio.shield(self._measuring)
        except PermissionError:
            raise RunStopped("its memory cannot be read on this server") from None
        if size > max_bytes:
            raise RunStopped(
                f"its processes and files held more than {max_bytes} bytes of memory"
            )

    async def _read_stdout(self, spool: Path) -> None:
        """Store the answer in a file; raises RunStopped if it is too long."""
        bytes_left = _max_line_bytes(self._limits) + self._limits.disk + 16 * MEBIBYTE
        with spool.open("wb") as file:
            piece = await self._stdout.read(_READ_BYTES)
            while piece:
                bytes_left -= file.write(piece)
                if bytes_left < 0:
                    raise RunStopped("it wrote more than fits into the workspace")
                piece = await self._stdout.read(_READ_BYTES)

    async def _read_stderr(self) -> None:
        """Keep the beginning; the sandbox waits if there is more."""
        while len(self._stderr_text) < _STDERR_BYTES:
            piece = await self._stderr.read(_STDERR_BYTES)
            if not piece:
                return
            self._stderr_text += piece

    async def end(self) -> None:
        """End the sandbox, and wait until it is gone."""
        if self._measuring is not None:  # it uses what is closed below
            await asyncio.wait({self._measuring})
        self._measurer.shutdown(wait=False)
        try:
            await self._process.kill()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._stdin.close()
            await self._stderr_task  # there may be a word that we have not read
            # The process counts as ended only when its pipes are empty.
            await asyncio.gather(_drain(self._stdout), _drain(self._stderr))
            await self._process.process.wait()
        finally:
            self._process.close()

    def stderr_text(self) -> str:
        """Return the sandbox's error output, for the log."""
        return self._stderr_text.decode("utf-8", "replace").strip()


async def _send_request(
    stdin: StreamWriter, line: bytes, archive: WorkspaceArchive | None
) -> None:
    """Send the request, then the stored workspace."""
    with suppress(ConnectionError):  # it ended without listening
        stdin.write(line)
        if archive is not None:
            await _send_archive(stdin, archive)
        await stdin.drain()
        stdin.close()


async def _send_archive(stdin: StreamWriter, archive: WorkspaceArchive) -> None:
    """Send a stored workspace piece by piece."""
    with archive.path.open("rb") as file:
        file.seek(archive.start)
        piece = file.read(_READ_BYTES)
        while piece:
            stdin.write(piece)
            await stdin.drain()
            piece = file.read(_READ_BYTES)


async def _drain(stream: StreamReader) -> None:
    """Read a stream to its end."""
    while await stream.read(_READ_BYTES):
        pass


def _locate(private: PrivatePaths) -> Iterator[tuple[str, tuple[str, int, int]]]:
    """Yield where each path leads, with the device and the number of what is there.

    By these a sandbox tells it from a path of the same name in a container's image.
    """
    for name, path in private.items():
        with suppress(OSError):  # it is not there
            status = path.stat()
            yield name, (str(path.resolve()), status.st_dev, status.st_ino)


_EXPECTED_CONFINEMENT = {
    "capabilities": 0,
    "no_new_privileges": "1",
    "filtered": "2",  # by a program: prctl(2), PR_GET_SECCOMP
    "networks": ["lo"],
    "namespaces": False,
    "seen": [],
}


def _find_confinement_gaps(confinement: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of what a sandbox does not confine as it has to."""
    for name, value in _EXPECTED_CONFINEMENT.items():
        if confinement.get(name) != value:
            yield name
    if not confinement.get("user"):
        yield "user"


# --------------------------------------------------------------------------------------
# toolbox.sandbox.queues
#
# Who may run when: the runs of a server, and those of each of its users.
# --------------------------------------------------------------------------------------


class _UserQueue:
    """The runs of one user: those that are under way, and those that wait."""

    def __init__(self, max_runs: int) -> None:
        self.turns = asyncio.Semaphore(max_runs)
        self.members = 0


class RunQueue:
    """Lets as many runs begin as the server and the user may have at once.

    A user waits behind their own runs first. So each user has no more than
    `runs_per_user` in the line of the server, however many calls they make.
    """

    def __init__(self, limits: SharedLimits) -> None:
        """Nobody waits yet."""
        self._limits = limits
        self._server_turns = asyncio.Semaphore(limits.runs)
        self._users: dict[str, _UserQueue] = {}

    @asynccontextmanager
    async def take_turn(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until a run of `user` may begin; it ends with the context."""
        queue = self._users.get(user)
        if queue is None:
            queue = _UserQueue(self._limits.runs_per_user)
            self._users[user] = queue
        queue.members += 1
        try:
            async with queue.turns, self._server_turns:
                yield
        finally:
            queue.members -= 1
            if queue.members == 0:
                del self._users[user]


# --------------------------------------------------------------------------------------
# toolbox.sandbox.workspaces
#
# The workspaces of the chats, in a temporary folder.
#
# They outlive a change of the limits: only `SharedLimits` belong to the pool.
#
# The server never unpacks an archive, so links and strange names exist only inside
# sandboxes. The folder is locked while its server lives; the kernel releases the lock
# however the server ends, and the next server removes unlocked folders.
# --------------------------------------------------------------------------------------


_ROOT_PREFIX = "sandbox-workspaces-"


class _WorkspaceRoot:
    """A new folder that only its owner can read."""

    def __init__(self) -> None:
        """Create it; remove abandoned ones."""
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_ROOT_PREFIX}*"):
            _remove_if_abandoned(folder)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
        self._lock = lock_folder(made)
        # Under this name it would be swept, had it no lock yet.
        self.path = made.rename(parent / (_ROOT_PREFIX + made.name))

    def close(self) -> None:
        """Remove it with its contents."""
        remove_folder(self.path)
        os.close(self._lock)


def lock_folder(folder: Path) -> int:
    """Return a locked descriptor of a folder; raises OSError if it is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl = import_module("fcntl")  # Windows has none, but must load this module
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove_if_abandoned(folder: Path) -> None:
    """Remove a folder of our own user unless it is in use."""
    with suppress(OSError):  # another server may have removed it meanwhile
        if folder.lstat().st_uid == os.geteuid():
            lock = lock_folder(folder)
            shutil.rmtree(folder, ignore_errors=True)
            os.close(lock)


class SandboxClosed(Exception):
    """The tools were closed; there are no workspaces any more."""


class WorkspaceKey(NamedTuple):
    """Names a workspace: that of a user in a chat.

    Whoever knows the key can use the workspace. Without a chat each call has a new one.
    """

    user: str
    chat: str


class SandboxFile(NamedTuple):
    """A file that a run wrote: `path` is where its bytes are.

    It stays there until later runs of the chat have returned more than a workspace
    holds, or until the workspace is removed. `name` is for display only.
    """

    name: str
    media_type: str
    path: Path


_MAX_REMEMBERED_FILES = 1000
"""Files of one chat, handed out or received: empty ones would need no disk."""


class Workspace:
    """What one chat keeps."""

    def __init__(self, folder: Path) -> None:
        """Begin empty, in an existing folder."""
        self.archive: WorkspaceArchive | None = None
        self.lock = asyncio.Lock()
        self.borrowers = 0
        self.received: dict[str, None] = {}
        """The ids of the attached files that were put into it, oldest first."""
        self._folder = folder
        self._numbers = count(1)
        self._files: list[Path] = []

    def add_received(self, file_id: str) -> None:
        """Remember that an attached file was put into it."""
        self.received[file_id] = None
        if len(self.received) > _MAX_REMEMBERED_FILES:
            del self.received[next(iter(self.received))]

    def _new_path(self) -> Path:
        return self._folder / str(next(self._numbers))

    @contextmanager
    def open_spool(self) -> Iterator[Path]:
        """Lend a path for a reply; the file is removed unless it is stored."""
        path = self._new_path()
        try:
            yield path
        finally:
            if self.archive is None or self.archive.path != path:
                path.unlink(missing_ok=True)

    def store_archive(self, spool: Path, reply: SandboxReply) -> None:
        """Replace the stored workspace by the reply's, if it has one."""
        if reply.archive is not None:
            self.clear()
            self.archive = WorkspaceArchive(spool, reply.archive)

    def clear(self) -> None:
        """Remove the stored workspace."""
        if self.archive is not None:
            self.archive.path.unlink()
            self.archive = None

    def export_files(
        self, spool: Path, parts: Iterable[FileSlice], max_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """Copy files that a run wrote, each to its own path.

        Of all that were handed out, the newest stay, up to `max_bytes`.
        """
        files = tuple(self._export_file(spool, part) for part in parts)
        self._files += [file.path for file in files]
        self._remove_oldest_files(max_bytes)
        return files

    def _export_file(self, spool: Path, part: FileSlice) -> SandboxFile:
        """Copy one file that a run wrote to a path of its own."""
        path = self._new_path()
        _copy_slice(part, spool, path)
        name = printable_name(part.name)
        media_type, _ = mimetypes.guess_type(name)
        return SandboxFile(name, media_type or "application/octet-stream", path)

    def remove(self) -> None:
        """Remove it with the files that were handed out."""
        remove_folder(self._folder)

    def _remove_oldest_files(self, max_bytes: int) -> None:
        """Remove files that were handed out, until the others have room."""
        sizes = [path.stat().st_size for path in self._files]
        while sum(sizes) > max_bytes or len(sizes) > _MAX_REMEMBERED_FILES:
            sizes.pop(0)
            self._files.pop(0).unlink()


class Workspaces(Protocol):
    """Keeps the workspaces of all chats."""

    @property
    def runs(self) -> RunQueue:
        """Says which run may begin."""

    def acquire(self, key: WorkspaceKey) -> AbstractAsyncContextManager[Workspace]:
        """Lend a chat's workspace; without a chat a new one."""

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it."""

    def refuse_new(self) -> None:
        """Lend nothing any more."""

    async def close(self) -> None:
        """Remove what does not outlive the server."""


class WorkspacePool:
    """The workspaces of all chats, each lent to one run at a time.

    `runs` says which run may begin.
    """

    def __init__(self, limits: SharedLimits | None = None) -> None:
        """Create nothing yet."""
        self._limits = limits or SharedLimits()
        self.runs = RunQueue(self._limits)
        self._root: _WorkspaceRoot | None = None
        self._workspaces: dict[WorkspaceKey, Workspace] = {}
        """The least recently used first."""
        self._timers: dict[WorkspaceKey, asyncio.TimerHandle] = {}
        """Of the workspaces that nobody uses now."""
        self._is_closed = False

    @asynccontextmanager
    async def acquire(self, key: WorkspaceKey) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one. Raises SandboxClosed."""
        if not key.chat:
            key = key._replace(chat=token_hex(16))
        workspace = self._acquire(key)
        try:
            async with workspace.lock:
                if self._is_closed:
                    raise SandboxClosed
                yield workspace
        finally:
            workspace.borrowers -= 1
            self._release(key, workspace)

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""
        return key in self._workspaces

    def _acquire(self, key: WorkspaceKey) -> Workspace:
        if self._is_closed:
            raise SandboxClosed
        if key in self._timers:
            self._timers.pop(key).cancel()
        workspace = self._workspaces.pop(key, None)
        if workspace is None:
            folder = Path(tempfile.mkdtemp(dir=self._open_root()))
            workspace = Workspace(folder)
        self._workspaces[key] = workspace  # the last of all: it was used last
        workspace.borrowers += 1
        return workspace

    def _open_root(self) -> Path:
        self._root = self._root or _WorkspaceRoot()
        return self._root.path

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it.

        Raises OSError or BadZipFile.
        """
        root = self._open_root()
        root.chmod(0o711)  # runs have another user if the server is root
        folder = Path(tempfile.mkdtemp(prefix="packages-", dir=root))
        await asyncio.to_thread(_unpack_wheels, wheels, folder)
        return folder

    def _release(self, key: WorkspaceKey, workspace: Workspace) -> None:
        """Start the idle timer; remove what is now too much."""
        if workspace.borrowers or self._is_closed:
            return
        loop = asyncio.get_running_loop()
        seconds = self._limits.idle_seconds
        self._timers[key] = loop.call_later(seconds, self._remove, key)
        surplus = self._find_surplus()
        while surplus is not None:
            self._remove(surplus)
            surplus = self._find_surplus()

    def _find_surplus(self) -> WorkspaceKey | None:
        """Return the workspace to remove next; None if there are not too many.

        Whoever has the most loses the one that was not used for the longest time, so
        that the chats of one user cannot push out those of others.
        """
        limits = self._limits
        counts = Counter(key.user for key in self._workspaces)
        idle = [key for key in self._workspaces if key in self._timers]
        for key in idle:
            if counts[key.user] > limits.workspaces_per_user:
                return key
        if not idle or len(self._workspaces) <= limits.workspaces:
            return None
        most = max(counts[key.user] for key in idle)
        return next(key for key in idle if counts[key.user] == most)

    def _remove(self, key: WorkspaceKey) -> None:
        self._timers.pop(key).cancel()
        self._workspaces.pop(key).remove()

    def refuse_new(self) -> None:
        """Lend nothing any more."""
        self._is_closed = True

    async def close(self) -> None:
        """Remove all workspaces, once those that are lent have come back."""
        self.refuse_new()
        for timer in self._timers.values():
            timer.cancel()
        for workspace in self._workspaces.values():
            async with workspace.lock:
                pass
        self._workspaces.clear()
        if self._root is not None:
            self._root.close()
            self._root = None


def _copy_slice(part: FileSlice, source: Path, target: Path) -> None:
    left = part.size
    with source.open("rb") as spool, target.open("wb") as file:
        spool.seek(part.start)
        while left:
            left -= file.write(spool.read(min(left, MEBIBYTE)))


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)


def _unpack_wheels(wheels: Path, folder: Path) -> None:
    """Install wheels as pip does, without their scripts."""
    for wheel in wheels.iterdir():  # a folder that is missing is an error
        if wheel.suffix == ".whl":
            with ZipFile(wheel) as archive:
                archive.extractall(folder)
    for part in folder.glob("*.data/*lib"):  # purelib and platlib
        shutil.copytree(part, folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)  # whatever the umask of the server


_MAX_NAME_LENGTH = 200
"""Characters of a name that is shown; its end tells more than its begin."""


def printable_name(name: str) -> str:
    """Return the last part of a path in a form that can be shown."""
    last = name.rsplit("/", 1)[-1][-_MAX_NAME_LENGTH:]
    return "".join(sign if sign.isprintable() else "_" for sign in last) or "file"


# --------------------------------------------------------------------------------------
# toolbox.sandbox.tools
#
# The tools of the sandbox: descriptions for the model, calls, results.
#
# The tools are offered only if a working sandbox was found.
# --------------------------------------------------------------------------------------


ReadFile = Callable[[], Awaitable[bytes | str]]
"""Returns the content of a file, or the sentence that says why there is none."""


class _SandboxCallFailed(Exception):
    """A call has no result; the text says why, for the model."""


_RUN_DESCRIPTION = (
    "Runs Python code in a sandbox without network. Each run is a fresh process: only "
    "files in the workspace, which is the current folder, outlive it. What the user "
    "attached is there, by name. Its modules can be imported{0}. Returns JSON with "
    "what was printed (stdout, stderr), the value of the last expression (result), and "
    "the files that were written, which the user is shown. The workspace is the folder "
    "/work. It lives as long as the chat is used and is shared by all tools whose names "
    "begin with python_ or sandbox_."
)
_CODE = {"code": {"type": "string", "description": "The Python code."}}
_PATH = {
    "path": {
        "type": "string",
        "description": "A path in the workspace, like plots/a.png.",
    }
}
_CONTENT = {
    "content": {"type": "string", "description": "The whole new text of the file."}
}
_TOOLS = {
    "python_execute": (_RUN_DESCRIPTION, _CODE),
    "sandbox_fs_list": ("Lists a folder of the workspace.", _PATH),
    "sandbox_fs_read": (
        "Reads a text file of the workspace; any other file is shown to the user.",
        _PATH,
    ),
    "sandbox_fs_write": (
        "Writes a text file in the workspace, with the folders above it.",
        {**_PATH, **_CONTENT},
    ),
    "sandbox_fs_mkdir": (
        "Makes a folder in the workspace, with those above it.",
        _PATH,
    ),
    "sandbox_fs_remove": (
        "Removes a file of the workspace, or a folder with all that it holds.",
        _PATH,
    ),
}
_MORE_TOOLS: dict[str, Mapping[str, Any]] = {
    "shell_execute": {"command": {}},
    "sandbox_fs_edit": {**_PATH, "old": {}, "new": {}},
}
"""What can be called although `specs` does not offer it: its caller describes it."""
_RUN_OPERATIONS = {"python_execute": "run", "shell_execute": "shell"}


def _build_sandbox_spec(
    name: str, description: str, properties: Mapping[str, Any]
) -> dict[str, Any]:
    """Return name, description and parameters of a tool."""
    parameters = {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }
    return {"name": name, "description": description, "parameters": parameters}


def _build_sandbox_request(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request to the sandbox; raises _SandboxCallFailed."""
    properties: Mapping[str, Any]
    if name in _TOOLS:
        _, properties = _TOOLS[name]
    elif name in _MORE_TOOLS:
        properties = _MORE_TOOLS[name]
    else:
        raise _SandboxCallFailed(f"There is no tool named {name}.")
    values = {key: arguments.get(key) for key in properties}
    for key, value in values.items():
        if not isinstance(value, str):
            raise _SandboxCallFailed(f"{name} needs {key}, a text.")
    operation = _RUN_OPERATIONS.get(name, name.removeprefix("sandbox_fs_"))
    return {"operation": operation, **values}


_STOP_SENTENCES = {
    "seconds": "The code was stopped: it did not end within {0.seconds:g} s.",
    "output": "The code was stopped: it printed more than {0.output} bytes.",
}


class SandboxResult(NamedTuple):
    """The answer of a tool: a text for the model, files for the host to store."""

    text: str
    failed: bool = False
    files: tuple[SandboxFile, ...] = ()


def _build_sandbox_result(
    reply: SandboxReply, files: tuple[SandboxFile, ...], limits: SandboxLimits
) -> SandboxResult:
    """Return the tool's answer for a reply; raises _SandboxCallFailed."""
    answer = reply.answer
    notes = " ".join(_list_notes(answer, limits))
    match answer:
        case {"refused": str(reason)}:
            raise _SandboxCallFailed(reason)
        case {"damaged": "full"}:
            raise _SandboxCallFailed(
                "The files of this chat no longer fit into the workspace, because an "
                "administrator has lowered its limits. It is empty now. Call again."
            )
        case {"damaged": _}:
            raise _SandboxCallFailed(
                "An earlier run damaged the workspace, which is empty now. Call again."
            )
        case {"stdout": _, "stderr": _, "result": _, "status": int(status)}:
            failed = bool(status or answer.get("stopped"))
            return SandboxResult(_describe_run(reply, notes), failed, files)
        case {"listed": list(listed)}:
            return SandboxResult(f"{_dump_json(listed)} {notes}".strip())
        case {"text": str(text)}:
            return SandboxResult(f"{text}\n\n{notes}" if notes else text)
        case {"given": _, "size": size}:
            text = f"It is not text; the user gets the file of {size} bytes."
            return SandboxResult(text, files=files)
        case {"done": str(done)}:
            failed = "unkept" in answer
            return SandboxResult(notes if failed else done, failed)
    raise _SandboxCallFailed("The sandbox returned an invalid answer.")


def _returns_files(reply: SandboxReply) -> bool:
    """Say whether the user gets the files of a reply: those of a run, or one read."""
    return "stdout" in reply.answer or "given" in reply.answer


def _describe_run(reply: SandboxReply, notes: str) -> str:
    """Return what the model reads of a run, as JSON."""
    answer = reply.answer
    report = {
        "stdout": answer["stdout"],
        "stderr": answer["stderr"],
        "result": _read_result_value(answer["result"]),
        "files": [part.name for part in reply.changed],
    }
    if notes:
        report["note"] = notes
    return _dump_json(report)


def _read_result_value(result: object) -> object:
    """Return the value of the last expression, or its repr."""
    if not result:
        return None
    try:
        value = json.loads(str(result))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    return value.get("json", value.get("repr"))


def _list_notes(answer: Mapping[str, Any], limits: SandboxLimits) -> Iterator[str]:
    """Yield a sentence for each unexpected event."""
    stopped = answer.get("stopped")
    if stopped:
        yield _STOP_SENTENCES.get(str(stopped), "The code was stopped.").format(limits)
    status = answer.get("status")
    if isinstance(status, int) and status < 0:
        yield f"The code was ended by signal {-status}."
    if "unkept" in answer:
        yield (
            f"Nothing in the workspace was kept, because {answer['unkept']}: it is as "
            "it was before."
        )
    dropped = answer.get("dropped")
    if dropped:
        yield f"Neither files nor folders, and not kept: {_dump_json(dropped)}."
    if answer.get("whole") is False:
        yield f"[The file continues: it has {answer.get('size')} bytes.]"
    unlisted = answer.get("more")
    if unlisted:
        yield f"{unlisted} more are not listed."
    hidden = answer.get("not_shown")
    if hidden:
        yield f"{hidden} more files are not shown."


def _make_storable(text: str) -> str:
    """Return a text without halves of characters, which no server stores or sends.

    Names of files and values of code may have them.
    """
    return text.encode("utf-8", "replace").decode()


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_CONTAINER_IMAGE = "python:3.12-slim"


def list_backends(packages: str) -> Iterator[SandboxBackend]:
    """Yield the backends in the order in which they are tried."""
    for python in find_interpreters():
        yield BubblewrapBackend(python, packages)
    for client in ("docker", "podman"):
        yield ContainerBackend(client, _CONTAINER_IMAGE, packages)


def _drop_line(line: str) -> None:
    """Write no log."""


class SandboxTools:
    """The tools of one server, with one setting of their limits.

    `problems` says why there is no sandbox, or what it lacks, for an administrator.
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        wheels: str = "",
        log: Callable[[str], object] = _drop_line,
        make_backends: Callable[[str], Iterable[SandboxBackend]] = list_backends,
        workspaces: Workspaces | None = None,
        private: PrivatePaths | None = None,
    ) -> None:
        """`wheels` is the folder of packages that code can import, if there is one.

        `workspaces` outlive these tools; without them they have their own. A sandbox
        in which code could see any of the `private` paths is not used.
        """
        self.problems: list[str] = []
        self.missing = ""
        """What the server lacks for a sandbox, once that is known."""
        self._limits = limits or SandboxLimits()
        self._wheels = wheels
        self._log = log
        self._make_backends = make_backends
        self._private = private or {}
        self._packages = ""
        self._packages_folder: Path | None = None
        self._has_own_workspaces = workspaces is None
        self._workspaces: Workspaces
        self._workspaces = WorkspacePool() if workspaces is None else workspaces
        self._probe_lock = asyncio.Lock()
        self._has_probed = False
        self._sandbox: Sandbox | None = None
        self._compiling: list[ChildProcess] = []
        self._is_closed = False

    async def specs(self) -> list[dict[str, Any]]:
        """Return the tools' descriptions; none without a sandbox.

        The first call looks for a sandbox; the log says once why there is none.
        """
        if await self._find_sandbox() is None:
            return []
        return [
            _build_sandbox_spec(name, about.format(self._packages), properties)
            for name, (about, properties) in _TOOLS.items()
        ]

    @property
    def max_file_bytes(self) -> int:
        """The largest file that a workspace can receive."""
        return self._limits.file

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat still has its workspace."""
        return self._workspaces.has_workspace(key)

    async def call(
        self, key: WorkspaceKey, name: str, arguments: Mapping[str, Any]
    ) -> SandboxResult:
        """Run a tool; cancelling the call ends the run."""

        async def build(_workspace: Workspace) -> dict[str, Any]:
            return _build_sandbox_request(name, arguments)

        return await self._answer(key, build)

    async def receive(
        self, key: WorkspaceKey, file_id: str, name: str, read: ReadFile
    ) -> SandboxResult:
        """Put a file into the workspace, once."""

        async def build(workspace: Workspace) -> dict[str, Any] | None:
            if file_id in workspace.received:
                return None
            content = await read()
            if isinstance(content, str):
                raise _SandboxCallFailed(content)
            return {
                "operation": "receive",
                "path": printable_name(name)[-80:],
                "content": content.hex(),
                "id": file_id,
            }

        return await self._answer(key, build)

    async def _answer(
        self,
        key: WorkspaceKey,
        build: Callable[[Workspace], Awaitable[dict[str, Any] | None]],
    ) -> SandboxResult:
        """Run the request that is built; there is nothing to do for none."""
        try:
            sandbox = await self._find_sandbox()
            if sandbox is None:
                raise _SandboxCallFailed("There is no sandbox on this server.")
            async with self._workspaces.acquire(key) as workspace:
                request = await build(workspace)
                if request is None:
                    return SandboxResult("")
                async with self._workspaces.runs.take_turn(key.user):
                    if self._is_closed:
                        raise SandboxClosed
                    return await self._run(sandbox, request, workspace)
        except _SandboxCallFailed as error:
            reason = str(error)
        except SandboxClosed:
            reason = "The sandbox was closed."
        except RunStopped as stopped:
            reason = (
                f"The run was stopped, because {stopped}. The workspace is as it was."
            )
        except (SandboxUnavailable, SandboxReplyMissing, OSError) as error:
            self._log(f"A run in the sandbox gave no answer: {error}")
            reason = "The run ended without an answer."
        return SandboxResult(_make_storable(f"Error: {reason}"), failed=True)

    async def close(self) -> None:
        """End what runs; remove the packages, and workspaces that are their own."""
        self._is_closed = True
        if self._has_own_workspaces:
            self._workspaces.refuse_new()
        for process in self._compiling:
            process.kill_group()
            await process.wait()
        if self._sandbox is not None:
            await self._sandbox.stop()
        if self._has_own_workspaces:
            await self._workspaces.close()
        elif self._packages_folder is not None:
            remove_folder(self._packages_folder)

    async def _run(
        self, sandbox: Sandbox, request: dict[str, Any], workspace: Workspace
    ) -> SandboxResult:
        """Run a request, keep the new workspace; raises what `Sandbox.run` does."""
        with workspace.open_spool() as spool:
            reply = await sandbox.run(request, workspace.archive, spool)
            returned = reply.changed if _returns_files(reply) else ()
            files = workspace.export_files(spool, returned, self._limits.disk)
            workspace.store_archive(spool, reply)
            if "id" in request:
                workspace.add_received(request["id"])
            if "damaged" in reply.answer:
                workspace.clear()
                workspace.received.clear()
            result = _build_sandbox_result(reply, files, self._limits)
            return result._replace(text=_make_storable(result.text))

    async def _find_sandbox(self) -> Sandbox | None:
        """Return the sandbox, which the first call looks for; None without one."""
        async with self._probe_lock:
            if not self._has_probed:
                backends = await self._prepare_backends()
                nobody = WorkspaceKey("", "")
                async with self._workspaces.acquire(nobody) as workspace:
                    with workspace.open_spool() as spool:
                        self._sandbox = await self._probe_backends(backends, spool)
                self._has_probed = True
        return self._sandbox

    async def _prepare_backends(self) -> Iterable[SandboxBackend]:
        """Install the packages; the first use has to wait for it."""
        if not self._wheels:
            return self._make_backends("")
        try:
            folder = await self._workspaces.install(Path(self._wheels))
        except (OSError, BadZipFile) as error:
            self._report(f"The wheels of SANDBOX_OPTIONS cannot be installed: {error}")
            return self._make_backends("")
        self._packages_folder = folder
        packages = sorted(
            path.name.partition("-")[0] for path in folder.glob("*.dist-info")
        )
        self._packages = f", also the packages {', '.join(packages)[:1000]}"
        for python in find_interpreters():
            command = (str(python), "-I", "-m", "compileall", "-qq", str(folder))
            self._compiling.append(await start_process(*command, env={}))
        return self._make_backends(str(folder))

    async def _probe_backends(
        self, backends: Iterable[SandboxBackend], spool: Path
    ) -> Sandbox | None:
        """Return the first sandbox that confines; log the reasons if there is none."""
        reasons = []
        missing_parts: dict[str, None] = {}
        for backend in backends:
            sandbox = Sandbox(backend, self._limits)
            try:
                await sandbox.check_confinement(spool, self._private)
                return sandbox
            except SandboxUnavailable as missing:
                reasons.append(f"{backend.name}: {missing}")
                missing_parts[str(missing)] = None
        self.missing = "; ".join(missing_parts)
        why = "; ".join(reasons)
        self._report(f"The tools of the sandbox are not offered: {why}.")
        return None

    def _report(self, problem: str) -> None:
        """Tell an administrator, above an answer and in the log."""
        self.problems.append(problem)
        self._log(problem)


# --------------------------------------------------------------------------------------
# gpt5_agent.pictures
#
# The pictures of own tools that the model sees, while Open WebUI runs its tools.
#
# Open WebUI stores a picture as a file and sends back the text of an output alone. The
# agent that is called again would continue without the picture, and its request would
# begin differently from the one before, which costs the prompt cache.
# --------------------------------------------------------------------------------------


_MAX_OUTPUTS = 1000
_MAX_CHARACTERS = 96 * 1024 * 1024
"""Of all outputs; those of one answer have at most a quarter of it."""


class _SeenOutput(NamedTuple):
    """An output with pictures; `size` counts the characters of their addresses."""

    chat: str
    call_id: str
    output: list[Item]
    size: int


class PictureMemory:
    """Outputs with pictures of answers that are not complete, oldest first.

    If there are too many, the oldest go: their answers continue with the text alone, as
    they do after a restart of the server.
    """

    def __init__(self) -> None:
        """Remember nothing yet."""
        self._outputs: list[_SeenOutput] = []
        self._lock = Lock()
        """Requests are prepared in threads."""

    def keep(self, chat: str, item: Item) -> None:
        """Remember the output of a call if it has pictures; `chat` names the user too."""
        output = item.get("output")
        if not chat or not isinstance(output, list):
            return
        size = sum(len(str(part.get("image_url", ""))) for part in output)
        if not size:
            return
        with self._lock:
            self._outputs.append(
                _SeenOutput(chat, str(item.get("call_id")), output, size)
            )
            total = sum(kept.size for kept in self._outputs)
            while total > _MAX_CHARACTERS or len(self._outputs) > _MAX_OUTPUTS:
                total -= self._outputs.pop(0).size

    def restore(self, chat: str, items: Sequence[Item]) -> list[Item]:
        """Return the items of a chat with the pictures in the outputs of its calls."""
        with self._lock:
            outputs = {
                kept.call_id: kept.output for kept in self._outputs if kept.chat == chat
            }
        return [_with_output(item, outputs) for item in items]

    def forget(self, chat: str) -> None:
        """Drop what a chat has, once its answer is complete."""
        with self._lock:
            self._outputs = [kept for kept in self._outputs if kept.chat != chat]


def _with_output(item: Item, outputs: Mapping[str, list[Item]]) -> Item:
    """Return the output of a call as the model saw it; other items as they are."""
    output = outputs.get(str(item.get("call_id")))
    if output is None or not is_call_output(item):
        return item
    return {**item, "output": output}


# --------------------------------------------------------------------------------------
# gpt5_agent.events
#
# What an agent reports in addition to the events of its runs.
# --------------------------------------------------------------------------------------


AgentState = Literal[
    "thinking",
    "executing_tool",
    "waiting_for_tools",
    "waiting_for_confirmation",
    "idle",
    "failed",
]
"""`waiting_for_tools` is the host's turn, `waiting_for_confirmation` a person's; `idle`
and `failed` are ends."""

StepKind = Literal["round", "model", "tool"]


class StateChanged(NamedTuple):
    """The agent is doing something else now."""

    state: AgentState


class StepStarted(NamedTuple):
    """A step of the log began; `parent` is the id of its outer step, or empty.

    `may_call` says whether the model may call tools in this round. `detail` is for
    debugging only.
    """

    id: str
    parent: str
    kind: StepKind
    label: str
    may_call: bool = False
    detail: str = ""


class StepEnded(NamedTuple):
    """A step of the log ended; `usage` are the tokens that the model reported."""

    step: StepStarted
    seconds: float
    usage: Usage | None = None
    failed: bool = False
    detail: str = ""


class RoundEnded(NamedTuple):
    """The model's answer in a round is complete.

    `items` are the API's own with their indexes, `notes` what later rounds need to
    know; `continues` says that the agent is called again for the next round.
    """

    name: str
    items: tuple[tuple[int, Item], ...]
    notes: Mapping[str, Any]
    continues: bool = False


class ToolCallRequested(NamedTuple):
    """A call that waits for approval; `security_warning` is set if it can do harm.

    `coverage` is what an approval for the whole chat would allow, empty if there can be
    none.
    """

    tool_name: str
    args: Mapping[str, Any]
    confirmation_id: str
    security_warning: Mapping[str, str] | None = None
    coverage: str = ""


class NewMessage(NamedTuple):
    """The complete answer."""

    content: str
    format: Literal["markdown", "text"] = "markdown"


class ExecutionEnded(NamedTuple):
    """The whole answer has ended."""

    metadata: RunMetadata


class ReadyForInput(NamedTuple):
    """The agent accepts the next message."""


AgentOnlyEvent = (
    StateChanged
    | StepStarted
    | StepEnded
    | RoundEnded
    | ContextSource
    | ToolCallRequested
    | NewMessage
    | ExecutionEnded
    | ReadyForInput
)

AgentEvent = RunEvent | AgentOnlyEvent


# --------------------------------------------------------------------------------------
# gpt5_agent.ports
#
# The interfaces that connect the agent to users, tools and listeners.
#
# That of a model is `Provider` in openai_responses/loop/run.py, a preset is a `Guide`
# (strategies/guide.py).
# --------------------------------------------------------------------------------------


class UserInterface(Protocol):
    """Shows a person what the agent does.

    The person's input goes to `Session.submit_user_input` and
    `Session.provide_confirmation`.
    """

    def on_new_message(self, message: NewMessage) -> None:
        """Show a complete answer."""

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Ask whether a call may be made."""

    def on_ready_for_input(self) -> None:
        """Let the person write."""

    def on_agent_state_change(self, state: AgentState) -> None:
        """Show what the agent is doing."""


class Tool(Protocol):
    """Something that the model can call; `args` is the JSON Schema of its arguments."""

    @property
    def name(self) -> str:
        """A name that no other tool has."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def args(self) -> Mapping[str, Any]:
        """The schema of the arguments."""

    async def execute(self, args: dict[str, Any]) -> Any:
        """Run it; the model gets what is returned, an exception is a failure."""


class HostFileError(Exception):
    """A file could not be stored or read; the text names no secret.

    The user and the model read it.
    """


StoreFile = Callable[[str, bytes], Awaitable[str]]
"""Stores a file with its name for the user; returns its address.

Raises HostFileError.
"""


class AgentContext(Protocol):
    """Takes the signals of a listener."""

    async def emit_input(self, text: str) -> None:
        """Take an input; returns once it is answered."""


class Listener(Protocol):
    """Receives input from outside and passes it on."""

    @property
    def name(self) -> str:
        """A name that no other listener has."""

    async def on_start(self, context: AgentContext) -> None:
        """Begin to listen; input goes to `context.emit_input`."""

    async def on_stop(self) -> None:
        """Stop and close everything."""


def notify_interface(event: AgentEvent, interface: UserInterface) -> None:
    """Call the method for an event; events without a method are left out."""
    match event:
        case NewMessage():
            interface.on_new_message(event)
        case ToolCallRequested():
            interface.on_tool_call_request(event)
        case StateChanged():
            interface.on_agent_state_change(event.state)
        case ReadyForInput():
            interface.on_ready_for_input()


# --------------------------------------------------------------------------------------
# gpt5_agent.request
#
# The question to the agent, with its settings.
# --------------------------------------------------------------------------------------


class OwnToolSettings(NamedTuple):
    """The tools that run here.

    With `asks_in_chat` an approval is requested through the host, which shows a card
    and calls the agent again; without, `approver.ask` is awaited. If it `delegates`,
    the agent may give tasks to other runs of itself. `store_file` gives files of tools
    to the user.
    """

    tools: Sequence[Tool] = ()
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    asks_in_chat: bool = False
    delegates: bool = False
    store_file: StoreFile | None = None


def show_always(notice: str) -> bool:  # noqa: ARG001
    """Say that a notice was not shown before."""
    return True


class AgentRequest(NamedTuple):
    """One question to the agent.

    `body` holds the caller's other keys, `query` the question if it is not in the
    messages, `context` what the model gets to read, `notices` what an administrator
    reads above the answer where it `is_new`. `chat` names the user and the chat for which
    approvals are kept; without it each counts once. `on_end` is called once, however
    the answer ends.
    """

    strategy: str
    parameters: StrategyParameters
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    endpoint: Endpoint
    connections: Connections
    signing_secret: str
    """What only the copies of this pipeline have."""
    limits: Limits = Limits()
    settings: Settings = Settings()
    own_tools: OwnToolSettings = OwnToolSettings()
    query: str = ""
    context: object = None
    notices: tuple[str, ...] = ()
    is_new: Callable[[str], bool] = show_always
    chat: str = ""
    log: Callable[[str], object] = ignore_report
    redacted: Callable[[str], str] = redact
    """Returns a text for the model without what only the server may know."""
    debug: bool = False
    on_end: Callable[[RunMetadata], object] = ignore_report
    user_id: str = ""
    repairs: RepairMemory | None = None
    """What earlier refusals showed; without it nothing is remembered."""
    pictures: PictureMemory | None = None
    """What the model saw in earlier rounds of this answer."""

    @property
    def sign(self) -> Sign:
        """Signs what the messages carry of an answer.

        The signature holds for one user and one chat: a call that waits, a style of
        policies or an approval that another chat brought about is not gone on with
        here. Clients without a chat share one.
        """
        purpose = f"gpt5_agent reasoning_details {self.chat}".rstrip()
        return signer(self.signing_secret, purpose)


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.delegation
#
# The tool `delegate`: a bounded task for a second run of the loop.
#
# A task knows nothing of the chat. It can use tools that run here and need no approval,
# but no host's tools, and it cannot delegate. Without any tool to use there are no tasks.
# Its steps are shown below the round that began it, and its tokens count for the answer.
# --------------------------------------------------------------------------------------


DELEGATE = "delegate"
MAX_TASKS_AT_ONCE = 3
_TASK_SECONDS = 600.0
_DELEGATE_DESCRIPTION = (
    "Give a part of the work to another agent, which knows nothing of this chat and "
    "cannot ask: say all that it needs. Give independent parts at once."
)
_TASK_INSTRUCTION = (
    "You work on one task for another agent. Give the result and what has to be known "
    "about it, nothing else."
)


def task_tools(own_tools: OwnToolSettings) -> list[Tool]:
    """Return the tools that a task may use: nobody can be asked there."""
    return [
        tool
        for tool in own_tools.tools
        if own_tools.approver.rule_for(tool.name) == "auto"
    ]


RunTask = Callable[[AgentRequest, Spending], Awaitable[ToolResult]]


class DelegateTool(NamedTuple):
    """Runs tasks with the settings of a request; `slots` limits how many at once."""

    request: AgentRequest
    tools: Sequence[Tool]
    spending: Spending
    run_task: RunTask
    slots: asyncio.Semaphore
    name: str = DELEGATE
    description: str = _DELEGATE_DESCRIPTION

    @property
    def args(self) -> Mapping[str, Any]:
        """The schema of the arguments, with the names of the tools."""
        tool_name = {"type": "string", "enum": [tool.name for tool in self.tools]}
        return {
            "type": "object",
            "properties": {
                "task": {"type": "string"},
                "tools": {
                    "type": "array",
                    "items": tool_name,
                    "description": "The tools to use; without it, all.",
                },
                "rounds": {"type": "integer", "minimum": 1},
            },
            "required": ["task"],
        }

    async def execute(self, args: dict[str, Any]) -> ToolResult:
        """Return the answer to a task."""
        request = self._build_request(args)
        async with self.slots:
            try:
                async with asyncio.timeout(self._seconds()):
                    budget = build_budget(request.parameters)
                    spending = Spending(budget, self.spending)
                    return await self.run_task(request, spending)
            except TimeoutError:
                return tool_error("the time of the task is used up.")

    def _seconds(self) -> float:
        """Return how long a task may take that begins now."""
        seconds_left = self.spending.seconds_left
        if seconds_left is None:
            return _TASK_SECONDS
        return min(_TASK_SECONDS, seconds_left)

    def _build_request(self, args: Mapping[str, Any]) -> AgentRequest:
        """Return the request of a task: without the chat, with fewer tools."""
        own_tools = self.request.own_tools
        parameters = self.request.parameters
        most = parameters.rounds
        instruction = f"{parameters.instruction}\n\n{_TASK_INSTRUCTION}".strip()
        return self.request._replace(
            messages=[{"role": "user", "content": str(args.get("task") or "")}],
            body={},
            parameters=replace(
                parameters,
                instruction=instruction,
                maximum_iterations=clamp_number(args.get("rounds"), 1, most, most),
            ),
            own_tools=own_tools._replace(
                tools=self._select_tools(args.get("tools")),
                asks_in_chat=False,
                delegates=False,
            ),
            query="",
            context=None,
        )

    def _select_tools(self, names: Any) -> list[Tool]:
        """Return the tools of these names, all without any."""
        return [tool for tool in self.tools if names is None or tool.name in names]


# --------------------------------------------------------------------------------------
# gpt5_agent.tools.approval_cards
#
# What a person sees of a call before they allow it: always the whole call.
#
# The card of the host's `ask_user` shows a question of 500 characters on one line, as
# plain text in which spaces run together (Open WebUI 0.12.4: utils/ask_user.py cuts it,
# and AskUserCard.svelte shows it). A call that does not fit is shown above the card, in a
# block of code that its text cannot leave. One that is too long even for that is not put
# to anybody: the model is told to split it.
# --------------------------------------------------------------------------------------


ALLOW_LABEL = "Allow"
ALLOW_CHAT_LABEL = "Allow for this chat"
DENY_LABEL = "Deny"

_MAX_CARD_CHARACTERS = 500
"""Of a longer question the host shows the beginning, as if it were all."""
_MAX_BLOCK_CHARACTERS = 20_000
"""More than a person reads, and about what the page still shows at once."""
_LINE_CHARACTERS = 80
"""A longer line is broken: in a block of code its end is out of sight."""
_CONTINUED = "\N{RIGHTWARDS ARROW WITH HOOK}"
"""Stands in front of the rest of a line that was broken."""
_REFERENCE_CHARACTERS = 4
"""Of the confirmation id, which the card and the block above it have in common."""


def build_card_question(request: ToolCallRequested) -> dict[str, Any]:
    """Return a question in the form of the host's `ask_user`."""
    # The page recommends the first (tools/builtin.py, ask_user).
    options = [
        {"label": DENY_LABEL, "description": "Do not make this call."},
        {"label": ALLOW_LABEL, "description": "Make this call, once."},
    ]
    if request.coverage:
        options.append({"label": ALLOW_CHAT_LABEL, "description": request.coverage})
    text = _card_text(request)
    return {
        "id": request.confirmation_id,
        "header": "Approve a tool",
        "question": text if _fits_card(text) else _reference_text(request),
        "options": options,
        "allow_other": False,
    }


def call_above_card(request: ToolCallRequested) -> str:
    """Return what has to be shown above the card; empty if the card shows the call."""
    if _fits_card(_card_text(request)):
        return ""
    heading = f"**Needs your approval ({_reference(request)}):**"
    block = code_block(_call_as_text(request), "text")  # the page runs no `text`
    return f"{heading}\n\n{block}"


def is_too_long_to_show(request: ToolCallRequested) -> bool:
    """Say whether neither the card nor the block above it can show the whole call."""
    if _fits_card(_card_text(request)):
        return False
    if not _fits_card(_reference_text(request)):  # the name is that long
        return True
    return len(_call_as_text(request)) > _MAX_BLOCK_CHARACTERS


def code_block(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown, which it cannot end."""
    longest_run = max((len(run) for run in re.findall("`+", text)), default=0)
    fence_length = max(3, longest_run + 1)
    fence = "`" * fence_length
    return f"{fence}{language}\n{text}\n{fence}"


def one_line_json(value: object) -> str:
    """Return a value as JSON on one line, with nothing in it that cannot be seen."""
    return _with_escapes(json.dumps(value, ensure_ascii=False, default=str))


def _card_text(request: ToolCallRequested) -> str:
    """Return the question with the whole call."""
    return f"{_question(request)} With: {one_line_json(request.args)}"


def _reference_text(request: ToolCallRequested) -> str:
    """Return the question about a call that is shown above the card."""
    return f"{_question(request)} The whole call is above, at {_reference(request)}."


def _question(request: ToolCallRequested) -> str:
    warning = request.security_warning or {}
    question = f"May {_with_escapes(request.tool_name)} be called?"
    return f"{question} {warning.get('reason', '')}".rstrip()


def _fits_card(text: str) -> bool:
    """Say whether the card shows a text as it is: it makes one space of several."""
    return len(text) <= _MAX_CARD_CHARACTERS and "  " not in text


def _reference(request: ToolCallRequested) -> str:
    return request.confirmation_id[:_REFERENCE_CHARACTERS]


def _call_as_text(request: ToolCallRequested) -> str:
    """Return a call on several lines: its name, then each argument."""
    lines = [_with_escapes(request.tool_name), *_argument_lines(request.args)]
    return "\n".join(broken for line in lines for broken in _break_line(line))


def _argument_lines(arguments: Mapping[str, Any]) -> Iterator[str]:
    """Yield the arguments; the indent of a text keeps it from looking like others."""
    for name, value in arguments.items():
        shown_name = _with_escapes(name)
        if isinstance(value, str) and "\n" in value:
            yield f"  {shown_name}:"
            for line in value.split("\n"):
                yield f"    {_with_escapes(line.expandtabs(4))}"
        else:
            yield f"  {shown_name}: {one_line_json(value)}"


def _break_line(line: str) -> Iterator[str]:
    """Yield a line in parts that the page shows without scrolling sideways."""
    yield line[:_LINE_CHARACTERS]
    for start in range(_LINE_CHARACTERS, len(line), _LINE_CHARACTERS):
        yield f"{_CONTINUED} {line[start : start + _LINE_CHARACTERS]}"


def _with_escapes(text: str) -> str:
    """Return a text with escapes for what cannot be seen, or changes what is beside it.

    A carriage return would end a block of code, and there are signs that turn the
    direction of a line around.
    """
    return "".join(
        character if character.isprintable() else _escape(character)
        for character in text
    )


def _escape(character: str) -> str:
    """Return a character as JSON writes it in ASCII."""
    return json.dumps(character)[1:-1]


# --------------------------------------------------------------------------------------
# gpt5_agent.tools.confirmations
#
# A person's approval of a call: requested through Open WebUI, and read back.
#
# The pipeline ends its stream with a call of the host's `ask_user`. The host waits for
# the person and calls the pipeline again. An answer is bound to a call by id, name and
# arguments, so that no other call can use it. Without an explicit approval the call is
# denied. An approval for the chat covers the tool, with the targets that the call names.
# --------------------------------------------------------------------------------------


_HARMFUL_WORDS: Mapping[str, str] = {
    "It can delete things.": "delete remove drop",
    "It can change things.": "write update move create",
    "It can send things to others.": "send post publish",
    "It can spend money.": "pay buy order",
    "It runs code.": "execute exec run shell",
}
"""What to warn of, and the words in a tool's name that say so."""


def find_security_warning(name: str) -> Mapping[str, str] | None:
    """Return the warning for a tool whose name contains a word that means harm."""
    for word in _split_name(name):
        for reason, words in _HARMFUL_WORDS.items():
            if word in words.split():
                return {"level": "high", "reason": reason}
    return None


def _split_name(name: str) -> list[str]:
    """Return the words of a name, in small letters: `deleteFile` has two."""
    spaced = ""
    for character in name:
        if character.isupper():
            spaced += f" {character.lower()}"
        elif character.isalnum():
            spaced += character
        else:
            spaced += " "
    return spaced.split()


_TARGET_WORD = re.compile(
    "account|address|bucket|channel|collection|database|directory|domain|email|file|"
    "filename|folder|host|ids?|index|key|link|name|path|project|recipients?|repo|"
    "repository|room|schema|server|table|target|title|to|uri|url|user|username|workspace"
)
"""Words in the name of an argument that says what a tool works on."""


def _find_target(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that say what a tool works on."""
    return {
        name: value
        for name, value in arguments.items()
        if value is not None and _names_target(name)
    }


def _names_target(name: str) -> bool:
    """Say whether a word of an argument's name is one for a target."""
    return any(_TARGET_WORD.fullmatch(word) for word in _split_name(name))


MAX_QUESTIONS = 3
"""As many questions a call of `ask_user` may hold (0.12.4, utils/ask_user.py)."""

_ASK_USER = "ask_user"
_CONFIRMATION_PREFIX = "call_confirm_"
_ANSWER_MILLISECONDS = 240_000
"""The most that the host lets a person think in a temporary chat (0.12.4,
utils/ask_user.py)."""
_MAX_COVERAGE_CHARACTERS = 240
"""Of a longer description the host shows the beginning, as if it were all."""

Decision = Literal["once", "chat", "deny"]


def compute_confirmation_id(scope: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of an approval of a call; its scope is a call's id or a chat."""
    call = [scope, name, _without_nulls(arguments)]
    text = json.dumps(call, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compute_permission(chat: str, name: str, arguments: Mapping[str, Any]) -> str:
    """Return the id of the approval for a chat that covers a call."""
    return compute_confirmation_id(chat, name, _find_target(arguments))


def build_confirmation_request(call: Item, *, chat: str = "") -> ToolCallRequested:
    """Return the question whether a call may be made, in this `chat` if there is one."""
    name = str(call["name"])
    arguments = parse_arguments(call)
    confirmation = compute_confirmation_id(str(call["call_id"]), name, arguments)
    warning = find_security_warning(name)
    coverage = _describe_coverage(name, arguments) if chat else ""
    return ToolCallRequested(name, arguments, confirmation, warning, coverage)


def _describe_coverage(name: str, arguments: Mapping[str, Any]) -> str:
    """Return what an approval for the chat allows; empty if it cannot be shown."""
    target = _find_target(arguments)
    condition = "with any arguments"
    if target:
        condition = f"with {one_line_json(target)}"
    text = f"Make every call of {name} in this chat, {condition}."
    is_whole = len(text) <= _MAX_COVERAGE_CHARACTERS and text.isprintable()
    return text if is_whole else ""


def build_question_call(requests: Sequence[ToolCallRequested]) -> Item:
    """Return the call of `ask_user` that asks a person for each of the calls."""
    questions = [build_card_question(request) for request in requests]
    ids = "".join(request.confirmation_id for request in requests)
    name = hashlib.sha256(ids.encode()).hexdigest()[:24]
    arguments = {
        "questions": questions,
        "allow_other": False,
        "timeout_ms": _ANSWER_MILLISECONDS,
    }
    return {
        "type": "function_call",
        "id": f"fc_{name}",
        "call_id": f"{_CONFIRMATION_PREFIX}{name}",
        "name": _ASK_USER,
        "arguments": json.dumps(arguments, ensure_ascii=False),
        "status": "completed",
    }


def read_confirmations(messages: Iterable[Message]) -> dict[str, Decision]:
    """Return the decisions by confirmation id.

    Anything but a clear yes is a no: another answer, a timeout, a rejection.
    """
    questions: dict[str, list[str]] = {}
    decisions: dict[str, Decision] = {}
    for message in messages:
        for call in read_tool_calls(message):
            if _is_confirmation_call(call):
                questions[str(call["id"])] = _read_question_ids(call)
        answers = _read_answers(message)
        for question in questions.pop(str(message.get("tool_call_id")), ()):
            decisions[question] = _read_decision(answers.get(question))
    return decisions


def _read_answers(message: Message) -> Mapping[str, Any]:
    """Return the answers by question, of the output of an `ask_user` that has any."""
    output = parse_json_object(message.get("content")) or {}
    if output.get("status") != "answered":
        return {}
    return as_mapping(output.get("answers"))


def drop_question_calls(messages: Sequence[Message]) -> list[Message]:
    """Return the messages without our questions and their answers."""
    kept: list[Message] = []
    for message in messages:
        if str(message.get("tool_call_id") or "").startswith(_CONFIRMATION_PREFIX):
            continue
        calls = read_tool_calls(message)
        others = [call for call in calls if not _is_confirmation_call(call)]
        if others == calls:
            kept.append(message)
        else:
            kept.append({**message, "tool_calls": others})
    return kept


def read_tool_calls(message: Message) -> list[Mapping[str, Any]]:
    """Return the tool calls of a message."""
    calls = as_list(message.get("tool_calls"))
    return [call for call in calls if isinstance(call, Mapping)]


def _without_nulls(value: Any) -> Any:
    """Return a value without its nulls: those are removed before a tool runs."""
    if isinstance(value, Mapping):
        return {
            key: _without_nulls(inner)
            for key, inner in value.items()
            if inner is not None
        }
    if isinstance(value, list):
        return [_without_nulls(inner) for inner in value]
    return value


def _is_confirmation_call(call: Mapping[str, Any]) -> bool:
    return str(call.get("id") or "").startswith(_CONFIRMATION_PREFIX)


def _read_question_ids(call: Mapping[str, Any]) -> list[str]:
    """Return the confirmation ids of the questions in a call of `ask_user`."""
    text = as_mapping(call.get("function")).get("arguments")
    rows = as_list((parse_json_object(text) or {}).get("questions"))
    return [str(row.get("id")) for row in rows if isinstance(row, Mapping)]


def _read_decision(answer: object) -> Decision:
    """Return the decision of an answer, which is an option or its label."""
    label = answer.get("label") if isinstance(answer, Mapping) else answer
    if label == ALLOW_LABEL:
        return "once"
    if label == ALLOW_CHAT_LABEL:
        return "chat"
    return "deny"


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.earlier_rounds
#
# What earlier rounds of an answer left in the messages.
#
# Where the host runs the tools or asks a person, the agent is called again for each round
# and stores nothing itself: all it needs is in the messages after the user's last one.
# --------------------------------------------------------------------------------------


class EarlierRounds(NamedTuple):
    """The rounds before this one.

    `spending` is what they took, `failed` are the calls that failed, `answers` the
    approvals by confirmation id, `signed_calls` the calls that this pipeline signed;
    only those were asked about.
    `open_turn` is an answer of the model, made by `open_origin`, whose calls waited for
    these approvals: its round counts, its calls do not yet.
    """

    spending: EarlierSpending = EarlierSpending()
    failed: tuple[Item, ...] = ()
    answers: Mapping[str, Decision] = MappingProxyType({})
    signed_calls: tuple[Item, ...] = ()
    open_turn: tuple[Item, ...] = ()
    open_origin: Origin | None = None

    @property
    def is_continuation(self) -> bool:
        """Whether an earlier round belongs to this answer."""
        return self.spending.rounds > 0


def read_earlier_rounds(messages: Sequence[Message], sign: Sign) -> EarlierRounds:
    """Return what the messages after the user's last one contain."""
    starts = find_turn_starts(messages)
    run = messages[starts[-1] + 1 :] if starts else messages
    turns = _read_turns(run, sign)
    answers = read_confirmations(run)
    closed = drop_question_calls(run)
    outputs = _read_outputs(closed)
    calls: list[Mapping[str, Any]] = []
    round_count = 0
    for message in closed:
        calls_of_round = read_tool_calls(message)
        if calls_of_round:
            round_count += 1
            calls += calls_of_round
    open_turn = _find_open_turn(turns, outputs, answers)
    if open_turn:
        round_count += 1
    return EarlierRounds(
        spending=EarlierSpending(
            rounds=round_count,
            calls=len(calls),
            usage=_sum_usage(turns),
            seconds=sum(_read_seconds(turn) for turn in turns),
        ),
        failed=(*_find_failed_calls(calls, outputs), *_read_failed_calls(turns)),
        answers=answers,
        signed_calls=_find_signed_calls(turns) if answers else (),
        open_turn=open_turn,
        open_origin=turns[-1].origin if open_turn else None,
    )


def read_chat_notes(
    messages: Sequence[Message], sign: Sign
) -> tuple[ChosenStyle | None, frozenset[str]]:
    """Return the first style of policies that a chat noted, and approvals for it."""
    style: ChosenStyle | None = None
    permissions: set[str] = set()
    for turn in _read_turns(messages, sign):
        style = style or _read_style(turn)
        permissions.update(
            str(permission) for permission in as_list(turn.notes.get("allowed"))
        )
    return style, frozenset(permissions)


def _read_style(turn: DetailTurn) -> ChosenStyle | None:
    """Return the style of policies that an answer noted."""
    match turn.notes.get("style"):
        case "full":
            return "full"
        case "lean":
            return "lean"
    return None


def _read_turns(messages: Sequence[Message], sign: Sign) -> list[DetailTurn]:
    """Return the answers of the model that messages carry as details."""
    turns: list[DetailTurn] = []
    for message in messages:
        turns += read_details(message.get(DETAILS_FIELD), sign)
    return turns


def _find_signed_calls(turns: Sequence[DetailTurn]) -> tuple[Item, ...]:
    """Return the calls that this pipeline signed: only those kept their names."""
    return tuple(
        item
        for turn in turns
        for item, _ in turn.items
        if is_call(item) and item.get("name")
    )


def _read_outputs(messages: Sequence[Message]) -> dict[str, str]:
    """Return the outputs by call; a list of parts counts as empty."""
    return {
        str(message.get("tool_call_id")): str(message.get("content") or "")
        for message in messages
        if message.get("role") == "tool"
    }


def _find_open_turn(
    turns: Sequence[DetailTurn],
    outputs: Mapping[str, str],
    answers: Mapping[str, Decision],
) -> tuple[Item, ...]:
    """Return the items of the last answer if its calls wait for these approvals."""
    if not (turns and answers):
        return ()
    items = tuple(item for item, _ in turns[-1].items)
    calls = [item for item in items if is_call(item)]
    if not calls or any(call.get("call_id") in outputs for call in calls):
        return ()
    # A call that this pipeline did not sign has no name: nothing continues with it.
    if not all(call.get("name") for call in calls):
        return ()
    return items


def _sum_usage(turns: Sequence[DetailTurn]) -> Usage | None:
    """Return the tokens of all answers; None if none noted any."""
    usage: Usage | None = None
    for turn in turns:
        usage = add_usage(usage, _read_usage(turn))
    return usage


def _read_usage(turn: DetailTurn) -> Usage | None:
    """Return the tokens that an answer noted; None if it noted none."""
    noted = as_mapping(turn.notes.get("usage"))
    counts: dict[str, Any] = {}
    for name in Usage._fields:
        count = noted.get(name)
        if isinstance(count, int) and count >= 0:
            counts[name] = count
    return Usage(**counts) if counts else None


def _read_seconds(turn: DetailTurn) -> float:
    """Return the seconds that an answer noted; 0 for anything else."""
    seconds = turn.notes.get("seconds")
    return seconds if isinstance(seconds, int | float) and seconds > 0 else 0.0


def _find_failed_calls(
    calls: Sequence[Mapping[str, Any]], outputs: Mapping[str, str]
) -> Iterator[Item]:
    """Yield the calls of the host's tools that raised."""
    for call in calls:
        function = as_mapping(call.get("function"))
        if function and _is_failed_output(outputs.get(str(call.get("id")), "")):
            yield {
                "name": function.get("name"),
                "arguments": function.get("arguments"),
            }


def _read_failed_calls(turns: Sequence[DetailTurn]) -> Iterator[Item]:
    """Yield the calls of our own tools that raised, which answers noted."""
    for turn in turns:
        for call in as_list(turn.notes.get("failed")):
            if isinstance(call, dict):
                yield call


def _is_failed_output(text: str) -> bool:
    """Say whether an output is that of a call that raised, at ours or at the host's.

    The host makes `{"error": ...}` of an exception (utils/middleware.py:3151). A tool
    that returns the same cannot be told apart; any other error is one that it returned,
    and may ask to be tried again.
    """
    if text.partition("\n")[0] == TOOL_FAILED_TEXT:
        return True
    output = parse_json_object(text)
    return output is not None and output.keys() == {"error"}


# --------------------------------------------------------------------------------------
# gpt5_agent.tools.execution
#
# Runs the agent's own tools and converts their results for the model and the page.
#
# A result is a list of parts with a `type`. No path of a tool is read: a file comes as
# its bytes. The user gets it as a file of Open WebUI, or reads a short text. The texts
# for the model come from the specification of the agent.
# --------------------------------------------------------------------------------------


MAX_TOOL_FILE_BYTES = 5 * 1024 * 1024
_MAX_FILES = 10
"""Of one call; each is an upload."""
_MAX_SHOWN_BYTES = 4_000
"""Of a text that is shown because it cannot be stored."""
_MAX_SEEN_IMAGES = 20
_MAX_SEEN_CHARACTERS = 24 * 1024 * 1024
"""Of the pictures that the model sees in one answer; each round sends them again."""


_IMAGE_SENT_TEXT = "image generated and sent to user. Tell user to review it now."

_IMAGE_SIGNATURES = {
    "image/png": b"\x89PNG\r\n\x1a\n",
    "image/jpeg": b"\xff\xd8\xff",
    "image/webp": b"RIFF",
    "image/gif": None,
}
"""How the pictures of the page begin that the API can read; GIFs may move."""
_PART_TYPES = ("text", "json", "link", "image_link", "image", "blob")


class _ToolFile(NamedTuple):
    """A file for the user."""

    name: str
    media_type: str
    content: bytes


class _ResultPart(NamedTuple):
    """A part of a result, for those who get it."""

    text: str
    """For the model."""
    image: str = ""
    """The address of a picture for the page."""
    seen: str = ""
    """The same address if the model can see the picture, too."""
    file: _ToolFile | None = None
    """For the user; what the model reads of it depends on whether it can be stored."""


def _read_result(result: object) -> tuple[bool, list[_ResultPart]]:
    """Return whether a tool failed, and its parts; raises InvalidRequest."""
    failed = False
    content = result
    if isinstance(result, Mapping) and isinstance(result.get("content"), list):
        failed = result.get("isError") is True
        content = result["content"]
    rows = as_list(content)
    if rows and all(_is_part(row) for row in rows):
        return failed, [_convert_part(row) for row in rows]
    if isinstance(result, str):
        return failed, [_ResultPart(result)]
    return failed, [_ResultPart(_format_response(result))]


def _is_part(row: object) -> bool:
    return isinstance(row, Mapping) and row.get("type") in _PART_TYPES


def _format_response(value: object) -> str:
    """Return a value that is no text as the model reads it."""
    return f"tool response: {json.dumps(value, ensure_ascii=False, default=str)}."


def _convert_part(part: Mapping[str, Any]) -> _ResultPart:
    """Convert a part of one of the known types; raises InvalidRequest."""
    match part["type"]:
        case "text":
            return _ResultPart(_read_text_field(part, "text"))
        case "json":
            return _ResultPart(_format_response(part.get("json")))
        case "link":
            url = part.get("url")
            return _ResultPart(f"result link: {url}. please tell user to check it.")
        case "image_link":
            return _ResultPart(_IMAGE_SENT_TEXT, image=_read_text_field(part, "url"))
    content = _decode_base64(part.get("data"))  # of an `image` or a `blob`
    media_type = _read_text_field(part, "mimeType")
    if part["type"] == "image" and not media_type:
        media_type = "image/png"
    return _build_file_part(content, media_type, _read_text_field(part, "name"))


def _read_text_field(part: Mapping[str, Any], key: str) -> str:
    return str(part.get(key) or "")


def _build_file_part(content: bytes, media_type: str, name: str) -> _ResultPart:
    """Convert bytes: an image goes to the page and to the model, or it is a file."""
    if len(content) > MAX_TOOL_FILE_BYTES:
        raise InvalidRequest("the file is larger than 5 MB")
    file_name = shorten_name(basename(name)) or "file"
    media_type = media_type or guess_type(file_name)[0] or "application/octet-stream"
    if media_type not in _IMAGE_SIGNATURES:
        return _ResultPart("", file=_ToolFile(file_name, media_type, content))
    encoded = base64.b64encode(content).decode("ascii")
    url = f"data:{media_type};base64,{encoded}"
    signature = _IMAGE_SIGNATURES[media_type]
    if signature is not None and content.startswith(signature):
        return _ResultPart(_IMAGE_SENT_TEXT, image=url, seen=url)
    return _ResultPart(_IMAGE_SENT_TEXT, image=url)


def _decode_base64(data: object) -> bytes:
    """Return bytes, or those of a base64 text; raises InvalidRequest."""
    if isinstance(data, bytes):  # a tool of this program
        return data
    try:
        return base64.b64decode(str(data or ""), validate=True)
    except ValueError:
        raise InvalidRequest("the file is not base64") from None


def _quote_text(content: bytes) -> str:
    """Return a short text as a block of code; empty for anything else."""
    if not content or len(content) > _MAX_SHOWN_BYTES:
        return ""
    text = content.decode("utf-8", "replace")
    if "\0" in text or "\N{REPLACEMENT CHARACTER}" in text:
        return ""
    return f"\n\n{code_block(text)}"


class OwnTools:
    """The agent's own tools; `schemas` holds the arguments of each by its name."""

    def __init__(
        self, tools: Sequence[Tool], store_file: StoreFile | None = None
    ) -> None:
        """Give files to the user with `store_file`."""
        self.schemas = {tool.name: tool.args for tool in tools}
        self._tools = {tool.name: tool for tool in tools}
        self._store_file = store_file
        self._images_left = _MAX_SEEN_IMAGES
        self._characters_left = _MAX_SEEN_CHARACTERS

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; a file that cannot be read is a failure of the tool."""
        result = await self._tools[name].execute(arguments)
        if isinstance(result, ToolResult):
            return result
        try:
            failed, parts = _read_result(result)
        except InvalidRequest as refused:
            return ToolResult(f"tool invoke error: {refused}", failed=True)
        texts: list[str] = []
        notes: list[str] = []
        for part in parts:
            if part.file is None:
                texts.append(part.text)
                continue
            text, note = await self._give_file(part.file, len(notes))
            texts.append(text)
            if note:
                notes.append(note)
        output = self._build_output("\n".join(texts), parts)
        return ToolResult(output, failed, _build_card(parts, notes))

    def _build_output(
        self, text: str, parts: Sequence[_ResultPart]
    ) -> str | list[Item]:
        """Return what the model gets: a text, with pictures if it may see any."""
        images: list[Item] = []
        for part in parts:
            if part.seen and self._take_room(part.seen):
                image = {
                    "type": "input_image",
                    "detail": "auto",
                    "image_url": part.seen,
                }
                images.append(image)
        if not images:
            return text
        return [{"type": "input_text", "text": text}, *images]

    async def _give_file(self, file: _ToolFile, file_count: int) -> tuple[str, str]:
        """Return what the model and the user read of a file; store it if possible.

        `file_count` files of the call went to the user already.
        """
        if file_count >= _MAX_FILES:
            return f"{file.name} is not sent: a call can send {_MAX_FILES} files.", ""
        name = re.sub(r"([\\`*_\[\]<>])", r"\\\1", file.name)  # as Markdown shows it
        text = (
            f"Generated file {file.name} ({file.media_type}, {len(file.content)} bytes)"
        )
        try:
            if self._store_file is None:
                raise HostFileError("This client is not a chat of Open WebUI.")
            path = await self._store_file(file.name, file.content)
        except HostFileError as refused:
            quoted = _quote_text(file.content)
            end = " The user is shown its text instead." if quoted else ""
            note = f"{name} could not be stored as a file: {refused}{quoted}"
            return f"{text} could not be sent to the user: {refused}{end}", note
        return f"{text} is sent to the user.", f"[{name}]({path})"

    def _take_room(self, url: str) -> bool:
        """Count a picture; say whether there was room for it in this answer."""
        self._images_left -= 1
        self._characters_left -= len(url)
        return self._images_left >= 0 and self._characters_left >= 0


def _build_card(parts: Sequence[_ResultPart], notes: Sequence[str]) -> dict[str, Any]:
    """Return what the page shows beside a call."""
    card: dict[str, Any] = {}
    images = [part.image for part in parts if part.image]
    if images:
        card["images"] = images
    if notes:
        card["notes"] = list(notes)
    return card


def describe_tool(tool: Tool) -> Item:
    """Return a tool as Open WebUI describes one."""
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": dict(tool.args),
    }


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.preparation
#
# Builds what the first round of the agent needs from a question.
# --------------------------------------------------------------------------------------


_MAX_TOOLS = 128
"""The API refuses longer lists."""


class PreparedRun(NamedTuple):
    """What a run of the agent begins with.

    `request` has the history as its input. `own_tools` and `host_schemas` (the
    arguments of the host's tools) use the tools' own names.
    """

    model: ResolvedModel
    request: ResponsesRequest
    names: ToolNames
    own_tools: OwnTools
    host_schemas: Mapping[str, Mapping[str, Any]]
    earlier_rounds: EarlierRounds
    style: ChosenStyle
    sources: Sequence[ContextSource]
    note: str
    permissions: frozenset[str]

    def with_own_name(self, call: Item) -> Item:
        """Return a call under the tool's own name."""
        return {**call, "name": self.names.own_name(str(call["name"]))}


class _ChatHistory(NamedTuple):
    """A chat as input; `notice` says what was cut, if anything was."""

    system_text: str
    items: list[Item]
    notice: str


def prepare_run(request: AgentRequest) -> PreparedRun:
    """Return what the agent begins with; raises InvalidRequest."""
    model = _resolve_calling_model(request.parameters.model)
    if not all(isinstance(message, Mapping) for message in request.messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    parameters = request.parameters
    earlier = read_earlier_rounds(request.messages, request.sign)
    noted_style, permissions = read_chat_notes(request.messages, request.sign)
    style = noted_style or choose_style(parameters.policy_style, model.family)
    memory = apply_memory_policy(request.messages, parameters.guide.memory_policy)
    messages = _replace_query(memory.messages, request.query)
    origin = origin_at(model.family, request.endpoint)
    history = _build_history(messages, origin, earlier, request.sign)
    # Outputs of tools that the host ran come as messages; those of ours were cut before.
    characters = request.own_tools.limits.characters
    items = [
        (
            {**item, "output": cap_output(item["output"], characters)}
            if is_call_output(item)
            else item
        )
        for item in history.items
    ]
    if request.pictures:
        items = request.pictures.restore(request.chat, items)
    sources = read_context(request.context)
    tools, names = _offer_functions(request)
    first_request = build_request(
        model,
        build_strategy_instructions(parameters, style, history.system_text, sources),
        [*build_memory_items(parameters.guide), *items],
        _merge_body(request, tools, names),
        request.settings._replace(tools=tools),
    )
    own_tools = OwnTools(request.own_tools.tools, request.own_tools.store_file)
    host_schemas: dict[str, Mapping[str, Any]] = {}
    for tool in tools:
        name = names.own_name(str(tool["name"]))
        if name not in own_tools.schemas:
            host_schemas[name] = tool.get("parameters") or {}
    return PreparedRun(
        model=model,
        request=first_request,
        names=names,
        own_tools=own_tools,
        host_schemas=host_schemas,
        earlier_rounds=earlier,
        style=style,
        sources=() if earlier.is_continuation else sources,
        note=history.notice or memory.note,
        permissions=permissions,
    )


def is_as_valves_say(request: AgentRequest, prepared: PreparedRun) -> bool:
    """Say whether a request has only what the administrator's valves set.

    The tools that run here are the administrator's, those of the host belong to the
    chat. What a caller may set is in the body.
    """
    sent = prepared.request
    bare = request._replace(body={})
    tools, names = _offer_functions(bare)
    built = build_request(
        prepared.model,
        sent.instructions or "",
        sent.input,
        _merge_body(bare, tools, names),
        request.settings._replace(tools=tools),
    )
    return sent.model_copy(update={"repairs": ()}) == built


def _resolve_calling_model(name: str) -> ResolvedModel:
    """Return a model that can call functions; raises InvalidRequest."""
    model = resolve_model(name)
    if not model.facts.functions:
        raise InvalidRequest(
            f"The model {model.id} cannot call functions, and an agent needs them. An "
            "administrator has to choose another one in MODEL, for example gpt-5.2."
        )
    return model


def _build_history(
    messages: Sequence[Message], reader: Origin, earlier: EarlierRounds, sign: Sign
) -> _ChatHistory:
    """Return the history of a chat.

    An answer whose calls are still open stands at the end: it goes on from there.
    """
    if earlier.open_turn:
        messages = _drop_last_turn_details(messages, sign)
    system_text, parts = parse_messages(drop_question_calls(messages))
    parts, records = restore_from_details(parts, sign)
    items = build_input(parts, records, reader)
    maker = earlier.open_origin
    is_readable = maker is not None and reader.can_decrypt(maker)
    open_items = replay_output(earlier.open_turn, with_reasoning=is_readable)
    return _ChatHistory(system_text, [*items, *open_items], cut_notice(parts))


def _drop_last_turn_details(messages: Sequence[Message], sign: Sign) -> list[Message]:
    """Return the messages without the details of the last answer that has any."""
    last = max(
        index
        for index, message in enumerate(messages)
        if read_details(message.get(DETAILS_FIELD), sign)
    )
    kept = dict(messages[last])
    del kept[DETAILS_FIELD]
    return [*messages[:last], kept, *messages[last + 1 :]]


def _replace_query(messages: Sequence[Message], query: str) -> Sequence[Message]:
    """Return the messages with `query` as the text of the user's last message.

    Its pictures and files stay.
    """
    if not query.strip():
        return messages
    starts = find_turn_starts(messages)
    if not starts:
        return [*messages, {"role": "user", "content": query}]
    last = starts[-1]
    others = [
        part
        for part in as_list(messages[last].get("content"))
        if as_mapping(part).get("type") not in ("text", "input_text")
    ]
    content: Any = query
    if others:
        content = [{"type": "text", "text": query}, *others]
    replaced = {"role": "user", "content": content}
    return [*messages[:last], replaced, *messages[last + 1 :]]


def _offer_functions(request: AgentRequest) -> tuple[Sequence[Item], ToolNames]:
    """Return the host's tools and ours; ours win over one of the same name.

    Of too many the last are left out.
    """
    host_tools = responses_tools(as_list(request.body.get("tools")), log=request.log)
    own_tools = responses_tools(
        [describe_tool(tool) for tool in request.own_tools.tools], log=request.log
    )
    functions = [
        tool
        for tool in merge_tools(host_tools, own_tools)
        if tool.get("type") in ("function", "custom")
    ]
    excess = len(functions) - _MAX_TOOLS
    if excess > 0:
        request.log(f"{excess} tools are not offered: the API takes {_MAX_TOOLS}.")
        functions = functions[:_MAX_TOOLS]
    names = ToolNames(tuple(str(tool["name"]) for tool in functions))
    return names.rename_tools(functions), names


def _merge_body(
    request: AgentRequest, tools: Sequence[Item], names: ToolNames
) -> dict[str, Any]:
    """Return the caller's keys; the guide's temperature is the default."""
    body: dict[str, Any] = {"temperature": request.parameters.guide.temperature}
    for key, value in request.body.items():
        if value is not None:
            body[key] = value
    body["tool_choice"] = None
    if tools:
        body["tool_choice"] = responses_tool_choice(
            request.body.get("tool_choice"), tools, names
        )
    return body


# --------------------------------------------------------------------------------------
# gpt5_agent.tools.host_calls
#
# Calls and names of Open WebUI's own tools.
#
# Its tool `call_tool` runs another tool by its name (docs/reference/open-webui.md, "Tools
# of the host").
# --------------------------------------------------------------------------------------


def resolve_host_call(call: Item) -> Item:
    """Return a call as one of the tool that the host would run.

    Any other call, and one that the host would not pass on, is returned unchanged.
    """
    if call.get("name") != CALL_TOOL:
        return call
    arguments = parse_json_object(call.get("arguments")) or {}
    if arguments.keys() != {"tool_name", "params"}:
        return call
    if read_call_tool(arguments) is None:
        return call
    name = arguments["tool_name"]
    if not isinstance(name, str):
        return call
    return {**call, "name": name, "arguments": arguments["params"]}


def names_no_tool(call: Item) -> bool:
    """Say whether a call of `call_tool` names no tool that the host would run."""
    return call.get("name") == CALL_TOOL and resolve_host_call(call) is call


_MAX_ID_CHARACTERS = 200
"""Of the id of a toolkit or a server; Open WebUI's own ids are shorter."""

_CUT_NAME = re.compile(r"(?P<beginning>.{55})_(?P<digest>[0-9a-f]{8})", re.DOTALL)
"""From 0.12 on, a name of an MCP server's tool with over 64 characters: its beginning,
and that of the SHA-256 of the whole (utils/middleware.py, `tool_name[:55]`)."""
_WILDCARDS = frozenset("*?[")


@dataclass(frozen=True)
class HostToolNames:
    """The names that Open WebUI's tools in a chat have, had or may have.

    Only their present names are sent, so wherever it is not clear what a tool was
    called, every name is considered that it may have had.
    """

    toolkit_ids: frozenset[str] = frozenset()
    """Ids of the chat's toolkits and OpenAPI servers."""
    mcp_ids: frozenset[str] = frozenset()
    """Ids of the chat's MCP servers."""
    own_tools: frozenset[str] = frozenset()
    """Names of tools that are not Open WebUI's."""

    def other_names(self, name: str) -> list[str]:
        """Return the names that a tool has where it comes from, or had in other chats.

        Open WebUI puts the id of a toolkit or a server in front of a name that two
        tools of a chat have, again and again until there is only one of it, and of each
        name of an MCP server. A rule for the longer name still holds where a chat has
        no other tool of that name: a user chooses the tools.
        """
        if name in self.own_tools:
            return []
        tool_ids = self.toolkit_ids | self.mcp_ids
        names: list[str] = []
        for index, character in enumerate(name[:_MAX_ID_CHARACTERS]):
            if character == "_" and name[:index] in tool_ids:
                prefix = name[: index + 1]
                own_name = re.sub(f"(?:{re.escape(prefix)})+", "", name, count=1)
                # The own name may itself begin like the id.
                names += [own_name, prefix + own_name]
        longer_names = [f"{tool_id}_{name}" for tool_id in sorted(self.toolkit_ids)]
        return names + longer_names

    def may_match(self, name: str, pattern: str) -> bool:
        """Say whether a pattern may match a tool whose name was cut.

        It may match the whole name, or the tool's own name on its server.
        """
        cut_name = _CUT_NAME.fullmatch(name)
        if cut_name is None or name in self.own_tools:
            return False
        return any(
            _may_match_on_server(
                cut_name["beginning"], cut_name["digest"], f"{mcp_id}_", pattern
            )
            for mcp_id in self.mcp_ids
        )


def _may_match_on_server(
    beginning: str, digest: str, prefix: str, pattern: str
) -> bool:
    """Say whether a pattern may match a cut name that begins with a server's prefix.

    `digest` is the beginning of the SHA-256 of the whole name: it tells whether a
    pattern without wildcards is that name, or the tool's own name on the server.
    """
    if not (beginning.startswith(prefix) or prefix.startswith(beginning)):
        return False
    if _WILDCARDS.isdisjoint(pattern):
        whole_names = (pattern, prefix + pattern)
        return any(hex_digest(name).startswith(digest) for name in whole_names)
    own_beginning = beginning[len(prefix) :]
    return _may_continue(beginning, pattern) or _may_continue(own_beginning, pattern)


def _may_continue(beginning: str, pattern: str) -> bool:
    """Say whether a pattern matches any text that begins like this.

    The beginning of the pattern then matches the beginning of the text, and the rest of
    the pattern what follows. Where the pattern is divided is not known, so all places
    are tried.
    """
    pattern_beginnings = [pattern[:end] for end in range(len(pattern) + 1)]
    return any(fnmatchcase(beginning, part) for part in pattern_beginnings)


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.calls
#
# The judge of an agent's calls: refused, put to a person, made here, left to the host.
# --------------------------------------------------------------------------------------


_RULES_BY_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")


class _OfferedTools:
    """All tools that the model is offered; only the agent's own run here."""

    def __init__(self, prepared: PreparedRun) -> None:
        self._names = prepared.names
        self._own_tools = prepared.own_tools
        self._schemas = {**prepared.host_schemas, **prepared.own_tools.schemas}

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for an unknown tool."""
        return self._schemas.get(self._names.own_name(name))

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of a tool; none stands for another."""
        return self._names.own_name(name), arguments

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool: tasks have limits of their own."""
        is_task = self._names.own_name(name) == DELEGATE
        return "task" if is_task else "limited"

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool by its own name."""
        return await self._own_tools.call(name, arguments)


class ChatJudge:
    """Decides about the calls of an answer, also with what a person said in the chat.

    `question` is the call that asks a person, `requests` is what it asks,
    `new_permissions` are the approvals for this chat that were given in this answer.
    """

    def __init__(self, request: AgentRequest, prepared: PreparedRun) -> None:
        """Start with the failures and the approvals of earlier rounds."""
        earlier = prepared.earlier_rounds
        self.question: Item | None = None
        self.requests: list[ToolCallRequested] = []
        self.new_permissions: set[str] = set()
        self._settings = request.own_tools
        self._chat = request.chat
        self._prepared = prepared
        self._own_names = prepared.own_tools.schemas.keys()
        self._host_names = prepared.host_schemas.keys()
        self._decisions = dict(earlier.answers)
        self._permissions = prepared.permissions
        self._tools = GuardedTools(_OfferedTools(prepared))
        for call in earlier.failed:
            self._tools.record_failed_call(call)
        self._approver = replace(
            request.own_tools.approver, ask=self._ask_person, log=request.log
        )
        for call in earlier.signed_calls:
            self._add_permission(prepared.with_own_name(call))

    def build_toolset(self, request: AgentRequest) -> Toolset:
        """Return what runs the calls that this judge allows."""
        return Toolset(
            tools=self._tools,
            approver=self._approver,
            limits=self._settings.limits,
            log=request.log,
            redacted=request.redacted,
            budget=build_budget(request.parameters),
            texts=build_call_texts(request.parameters),
            judge=self,
        )

    @property
    def holds_calls(self) -> bool:
        """Whether a call may need an approval that the host asks for."""
        if not self._settings.asks_in_chat:
            return False
        if CALL_TOOL in self._host_names and self._has_rule_that_asks():
            return True  # the tool that it passes a call on to is not known yet
        names = (*self._own_names, *self._host_names)
        return any(self._needs_approval(name) for name in names)

    def _has_rule_that_asks(self) -> bool:
        if self._approver.default_rule == "ask":
            return True
        return any(answer == "ask" for _, answer in self._approver.rules)

    def failed_calls(self) -> list[Item]:
        """Return the calls that failed, for later rounds."""
        return self._tools.failed_calls()

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Return what happens to the calls.

        No approval is requested for a call that cannot be made.
        """
        named_calls = [self._prepared.with_own_name(call) for call in calls]
        refusals = self._refused_calls(named_calls)
        open_calls = [call for call in named_calls if call["call_id"] not in refusals]
        resolved_calls = [self._resolve_for_rules(call) for call in open_calls]
        questions = [call for call in resolved_calls if self._must_ask(call)]
        if questions:
            return Judgment(_build_verdicts(calls, refusals, ()), self._ask(questions))
        host_call_ids = {
            call["call_id"]
            for call in open_calls
            if call["name"] not in self._own_names
        }
        host_calls = [
            call for call in resolved_calls if call["call_id"] in host_call_ids
        ]
        refusals |= await self._denied_by_rules(host_calls)
        return Judgment(_build_verdicts(calls, refusals, host_call_ids))

    def _refused_calls(self, calls: Iterable[Item]) -> dict[str, ToolResult]:
        """Return the refusals of calls that cannot be made, by their ids."""
        refusals: dict[str, ToolResult] = {}
        for call in calls:
            why = self._refusal(call)
            if why:
                refusals[call["call_id"]] = ToolResult(why, failed=True)
        return refusals

    async def _denied_by_rules(self, calls: Iterable[Item]) -> dict[str, ToolResult]:
        """Return the refusals of calls that the rules, or a person, do not allow."""
        refusals: dict[str, ToolResult] = {}
        for call in calls:
            why = await self._approver.refusal(
                call["call_id"], call["name"], parse_arguments(call)
            )
            if why:
                refusals[call["call_id"]] = tool_error(why)
        return refusals

    def _refusal(self, call: Item) -> str | None:
        """Return why a call cannot be made; rules need to know the tool that runs."""
        why = self._tools.refusal(call)
        if why is None and self._lacks_approval(call):
            why = self._why_not_asked(self._resolve_for_rules(call))
        if why is None and self._approver.rules and names_no_tool(call):
            why = "tool arguments validation error: no tool to call is named"
        return why

    def _why_not_asked(self, call: Item) -> str | None:
        """Return why no person is asked about a call that needs an approval."""
        name = call["name"]
        asks_in_chat = self._settings.asks_in_chat
        if not (asks_in_chat or self._settings.approver.ask):
            return (
                f"Error: {name} needs an approval, and this client cannot be asked. "
                "Continue without it."
            )
        if asks_in_chat and is_too_long_to_show(build_confirmation_request(call)):
            return (
                f"Error: {name} needs an approval, and this call is too long to be "
                "shown to a person. Split it into smaller calls."
            )
        return None

    def _ask(self, calls: Sequence[Item]) -> Item:
        """Return the call that asks a person about as many calls as it can hold."""
        self.requests = [
            build_confirmation_request(call, chat=self._chat)
            for call in calls[:MAX_QUESTIONS]
        ]
        self.question = build_question_call(self.requests)
        return self.question

    async def _ask_person(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        """Say whether a person allows a call, or has allowed it."""
        if self._is_permitted(name, arguments):
            return True
        if self._settings.asks_in_chat:
            confirmation = compute_confirmation_id(call_id, name, arguments)
            decision = self._decisions.pop(confirmation, "deny")  # it counts once
            return decision != "deny"
        ask = self._settings.approver.ask
        return ask is not None and await ask(call_id, name, arguments)

    def _resolve_for_rules(self, call: Item) -> Item:
        """Return the call to apply the rules to: that of the tool that will run.

        If the rules are stricter for the tool that passes it on, they win.
        """
        if call["name"] in self._own_names:
            return call
        resolved = resolve_host_call(call)
        if self._strictness(call) > self._strictness(resolved):
            return call
        return resolved

    def _strictness(self, call: Item) -> int:
        """Return a number that is higher for a stricter rule."""
        return _RULES_BY_STRICTNESS.index(self._approver.rule_for(call["name"]))

    def _add_permission(self, call: Item) -> None:
        """Remember that a person allowed calls like this one for the whole chat."""
        resolved = self._resolve_for_rules(call)
        with suppress(ValueError):
            request = build_confirmation_request(resolved, chat=self._chat)
            decision = self._decisions.get(request.confirmation_id)
            if request.coverage and decision == "chat":
                self.new_permissions.add(
                    compute_permission(self._chat, request.tool_name, request.args)
                )

    def _is_permitted(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Say whether a person allowed calls like this one for the whole chat."""
        permission = compute_permission(self._chat, name, arguments)
        return permission in self._permissions | self.new_permissions

    def _lacks_approval(self, call: Item) -> bool:
        """Say whether a call needs an approval that was not given for the chat."""
        resolved = self._resolve_for_rules(call)
        name = resolved["name"]
        return self._needs_approval(name) and not self._is_permitted(
            name, parse_arguments(resolved)
        )

    def _must_ask(self, call: Item) -> bool:
        """Say whether the host has to ask a person about a call."""
        if not (self._settings.asks_in_chat and self._lacks_approval(call)):
            return False
        return build_confirmation_request(call).confirmation_id not in self._decisions

    def _needs_approval(self, name: str) -> bool:
        return self._approver.rule_for(name) == "ask"


def _build_verdicts(
    calls: Sequence[Item], refusals: Mapping[str, ToolResult], left_ids: Collection[str]
) -> list[Verdict]:
    """Return what happens to each call, by the ids of those that are not made here."""
    verdicts: list[Verdict] = []
    for call in calls:
        refusal = refusals.get(call["call_id"])
        is_left = refusal is None and call["call_id"] in left_ids
        verdicts.append(Verdict(call, refusal, is_left))
    return verdicts


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.learning
#
# What the refusals of a run teach for later ones.
# --------------------------------------------------------------------------------------


class RepairLearning:
    """Remembers the repairs that helped; what is known is left out at once."""

    def __init__(
        self, request: AgentRequest, model: str, is_configured: Callable[[], bool]
    ) -> None:
        """Begin with what the memory of the pipeline has about `model`.

        `is_configured` says whether what is sent has only what the valves set.
        """
        self._memory = request.repairs or RepairMemory()
        self._scope = RepairScope(request.endpoint.account(), model, request.user_id)
        self._trials = RunTrials()
        self._is_configured = is_configured

    def repaired(self, request: ResponsesRequest) -> ResponsesRequest:
        """Return a request with the known repairs."""
        known = self._memory.repairs(self._scope)
        return request.model_copy(update={"repairs": known})

    def note(self, event: RunEvent) -> None:
        """Note an event; remember the trials that it shows to have helped."""
        for trial in self._trials.note(event):
            self._memory.learn(self._scope, trial, self._is_configured)


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.steps
#
# The log of the steps of a run: rounds, answers of the model, calls.
# --------------------------------------------------------------------------------------


class StepLog:
    """Makes the events of the step log; writes a line for each end.

    With `debug` the events contain arguments and outputs.
    """

    def __init__(self, log: Callable[[str], object], *, debug: bool) -> None:
        """Start without steps."""
        self._log = log
        self._debug = debug
        self._started: dict[str, tuple[StepStarted, float]] = {}
        self._round = ""
        """The id of the round that began last."""
        self._outer = ""
        """Of a task, the round that began it."""
        self._prefix = ""
        self._tasks = count(1)
        self._progress: asyncio.Queue[StepStarted | StepEnded] = asyncio.Queue()

    def begin_task(self) -> Self:
        """Return a log for a task that the round of this moment began.

        Both logs share the steps that have started, and the numbers of tasks.
        """
        log = copy(self)
        log._outer = self._round
        log._prefix = f"TASK {next(self._tasks)} > "
        log._progress = asyncio.Queue()  # a task takes no steps of others
        return log

    def report(self, event: AgentEvent) -> None:
        """Take an event of a task; its steps are shown."""
        if isinstance(event, StepStarted | StepEnded):
            self._progress.put_nowait(event)

    async def follow(
        self, events: RoundEvents
    ) -> AsyncGenerator[RunEvent | RoundEvent | StepStarted | StepEnded, None]:
        """Yield the events of a run, and the steps of its tasks as they are reported."""
        makes_calls = False  # tasks run between the end of a response and the next
        async with aclosing(events):
            while True:
                if makes_calls:
                    work = asyncio.ensure_future(anext(events, None))
                    async with aclosing(self._wait_for(work)) as steps:
                        async for step in steps:
                            yield step
                    event = work.result()
                else:
                    event = await anext(events, None)
                if event is None:
                    return
                if isinstance(event, RoundStarted | RoundDone):
                    makes_calls = isinstance(event, RoundDone)
                yield event

    async def _wait_for(
        self, work: asyncio.Future[Any]
    ) -> AsyncGenerator[StepStarted | StepEnded, None]:
        """Yield the steps of tasks until `work` is done."""
        step = asyncio.ensure_future(self._progress.get())
        try:
            while not work.done() or step.done() or not self._progress.empty():
                await asyncio.wait((work, step), return_when=asyncio.FIRST_COMPLETED)
                if step.done():
                    yield step.result()
                    step = asyncio.ensure_future(self._progress.get())
        finally:
            step.cancel()
            if work.cancel():
                await asyncio.wait((work,))

    def start(
        self,
        kind: StepKind,
        label: str,
        *,
        parent: str = "",
        may_call: bool = False,
        detail: str = "",
    ) -> StepStarted:
        """Return the event of a step that begins."""
        label = f"{self._prefix}{label}"
        parent = parent or self._outer
        step_id = f"{parent}/{len(self._started) + 1}" if parent else label
        if kind == "round":
            self._round = step_id
        step = StepStarted(
            id=step_id,
            parent=parent,
            kind=kind,
            label=label,
            may_call=may_call,
            detail=detail if self._debug else "",
        )
        self._started[step_id] = (step, monotonic_seconds())
        return step

    def end(
        self,
        step: StepStarted,
        *,
        usage: Usage | None = None,
        failed: bool = False,
        detail: str = "",
    ) -> StepEnded:
        """Return the event of a step that ended."""
        _, started_at = self._started[step.id]
        ended = StepEnded(
            step=step,
            seconds=monotonic_seconds() - started_at,
            usage=usage,
            failed=failed,
            detail=detail if self._debug else "",
        )
        line = format_step(ended)
        if step.parent in self._started:
            parent, _ = self._started[step.parent]
            line = f"{parent.label} > {line}"
        if step.detail:
            line = f"{line} {step.detail}"
        self._log(line)
        return ended


def format_step(ended: StepEnded) -> str:
    """Return a step as one line: label, duration, tokens."""
    notes = [f"{ended.seconds:.1f} s"]
    if ended.usage:
        notes.append(f"{ended.usage.total:,} tokens")
    if ended.failed:
        notes.append("failed")
    return f"{ended.step.label}: {', '.join(notes)}"


# --------------------------------------------------------------------------------------
# gpt5_agent.agent.answer
#
# An answer of the agent: the loop of `openai_responses`, with the agent's own events.
#
# A round is one response of the model with its calls. Where the host has to run a call or
# ask a person, the run ends early and the host calls the agent again. The strategies
# `gpt5_function_calling` and `gpt5_react` are one loop under two names.
# --------------------------------------------------------------------------------------


class _Agent:
    """One run, and how its rounds are shown.

    `is_over` says whether the answer is complete; if not, the host calls again.
    `answer` holds the items of the last response.
    """

    def __init__(
        self,
        request: AgentRequest,
        prepared: PreparedRun,
        provider: Provider,
        spending: Spending,
        steps: StepLog,
    ) -> None:
        self.is_over = True
        self.answer: list[Item] = []
        self._request = request
        self._prepared = prepared
        self._provider = MergingProvider(provider)
        self._spending = spending
        self._steps = steps
        self._judge = ChatJudge(request, prepared)
        self._learning = RepairLearning(
            request,
            prepared.request.model,
            partial(is_as_valves_say, request, prepared),
        )
        self._run_end = RunDone(COMPLETED)
        self._round: RoundDone | None = None
        """The last response that is complete."""
        self._round_began = 0.0
        self._delegated: Usage | None = None
        """What tasks have used since the end of the last response."""
        self._round_step: StepStarted | None = None
        self._model_step: StepStarted | None = None
        self._call_steps: dict[str, StepStarted] = {}

    def take_notes(self) -> list[str]:
        """Return what people should know of this answer."""
        request = self._request
        notes = [notice for notice in request.notices if request.is_new(notice)]
        if self._prepared.note:
            notes.append(self._prepared.note)
        return notes

    def build_run_end(self) -> RunDone:
        """Return how the run ended, with all its output, and what this call cost."""
        spending = self._spending
        cost = None
        if spending.own_usages:
            facts = resolve_model(self._request.parameters.model).facts
            cost = cost_of_run(spending.own_usages, facts, (), utc_today())
        return RunDone(
            ending=self._run_end.ending,
            usage=spending.usage,
            last_usage=spending.last_usage,
            output=self._run_end.output,
            trace=self._run_end.trace,
            cost=cost,
        )

    async def run(self) -> AsyncGenerator[AgentEvent, None]:
        """Run round after round; yield what happens."""
        for source in self._prepared.sources:
            yield source
        open_calls = [
            item for item in self._prepared.earlier_rounds.open_turn if is_call(item)
        ]
        if open_calls:
            yield self._start_round(self._spending.rounds, may_call=False)
        rounds = run_rounds(
            self._build_request(),
            self._provider,
            self._judge.build_toolset(self._request),
            self._spending,
            open_calls,
        )
        async with aclosing(self._steps.follow(rounds)) as events:
            async for event in events:
                for shown in self._show(event):
                    yield shown

    def _build_request(self) -> ResponsesRequest:
        """Return the first request.

        A choice that forces a tool holds until tools ran once.
        """
        request = self._learning.repaired(self._prepared.request)
        if self._prepared.earlier_rounds.is_continuation:
            choice = next_tool_choice(request.tool_choice)
            request = request.model_copy(update={"tool_choice": choice})
        return request

    def _show(
        self, event: RunEvent | RoundEvent | StepStarted | StepEnded
    ) -> Iterator[AgentEvent]:
        """Yield what is shown of an event of the run."""
        match event:
            case RoundStarted():
                yield from self._begin_round(event)
            case RoundDone():
                yield from self._end_response(event)
            case StepStarted() | StepEnded():
                yield event
            case RunDone():
                self._learning.note(event)
                yield from self._end_run(event)
            case _:
                self._learning.note(event)
                yield from self._show_event(event)

    def _show_event(self, event: RunEvent) -> Iterator[AgentEvent]:
        """Yield an event of the loop; calls have the names of their tools."""
        match event:
            case ItemAdded() if is_call(event.item):
                if event.item is self._judge.question:
                    yield from self._judge.requests
                yield event._replace(item=self._prepared.with_own_name(event.item))
            case ItemDone() if is_call(event.item):
                yield event._replace(item=self._prepared.with_own_name(event.item))
                if event.item is self._judge.question:
                    yield StateChanged("waiting_for_confirmation")
            case ToolOutput():
                if self._request.pictures:
                    self._request.pictures.keep(self._request.chat, event.item)
                yield event
                yield from self._end_call(event)
            case _:
                yield event

    def _start_round(self, number: int, *, may_call: bool) -> StepStarted:
        """Return the step of a round that begins."""
        step = self._steps.start("round", f"ROUND {number}", may_call=may_call)
        self._round_step = step
        return step

    def _begin_round(self, event: RoundStarted) -> Iterator[AgentEvent]:
        """Yield that the model is asked."""
        if self._round_step:
            yield self._steps.end(self._round_step)
        self._delegated = self._spending.take_delegated()
        self._round_began = self._spending.seconds
        yield StateChanged("thinking")
        round_step = self._start_round(event.number, may_call=event.may_call)
        yield round_step
        label = f"{self._prepared.model.id} Thought"
        self._model_step = self._steps.start("model", label, parent=round_step.id)
        yield self._model_step

    def _end_response(self, event: RoundDone) -> Iterator[AgentEvent]:
        """Yield that the model has answered, and the steps of the calls that are made."""
        judgment = event.judgment
        self.is_over = not judgment.is_open
        self._round = event
        if self._model_step:
            self.answer = without_repetitions(item for _, item in event.items)
            yield self._steps.end(
                self._model_step, usage=event.usage, failed=event.is_failure
            )
            self._model_step = None
            if not event.is_failure:
                yield self._build_round_end(event)
        if judgment.question:
            return
        made = [verdict.call for verdict in judgment.verdicts if verdict.is_made]
        if made:
            yield StateChanged("executing_tool")
        for call in made:
            tool_name = self._prepared.with_own_name(call)["name"]
            step = self._steps.start(
                "tool",
                f"CALL {tool_name}",
                parent=self._round_step.id if self._round_step else "",
                detail=str(call.get("arguments", "")),
            )
            self._call_steps[call["call_id"]] = step
            yield step

    def _end_call(self, event: ToolOutput) -> Iterator[AgentEvent]:
        """Yield the end of the step of a call, if it was made."""
        step = self._call_steps.pop(event.item["call_id"], None)
        if step:
            detail = _output_text(event.item["output"])
            yield self._steps.end(step, failed=event.failed, detail=detail)

    def _end_run(self, event: RunDone) -> Iterator[AgentEvent]:
        """Yield the end of the last round; its calls may be left to the host.

        A task that was stopped for its safety ends the answer: OpenAI's guide "Safety
        checks: misalignment monitoring" has clients stop all that belongs to the request.
        The host does not call again either.
        """
        self._run_end = event
        if self._spending.stopped:
            self.is_over = True
        elif self._round and not self._round.judgment.question:
            yield from self._leave_calls(self._round)
        if self._round_step:
            yield self._steps.end(self._round_step, failed=event.ending.is_failure)

    def _leave_calls(self, last: RoundDone) -> Iterator[AgentEvent]:
        """Yield that the host makes calls, and the notes again if others were made."""
        verdicts = last.judgment.verdicts
        left = [verdict for verdict in verdicts if verdict.is_left]
        if left:
            yield StateChanged("waiting_for_tools")
        if left and last.items and len(left) < len(verdicts):
            yield self._build_round_end(last)

    def _build_round_end(self, event: RoundDone) -> RoundEnded:
        """Return the end of a round, with the notes for later rounds."""
        tasks = add_usage(self._delegated, self._spending.delegated_usage)
        usage = add_usage(event.usage, tasks)
        notes = {
            "style": self._prepared.style,
            "usage": usage._asdict() if usage else {},
            "seconds": round(self._spending.seconds - self._round_began, 3),
            "failed": self._judge.failed_calls(),
            "allowed": sorted(self._judge.new_permissions),
        }
        return RoundEnded(
            name=str(event.number),
            items=event.items,
            notes=notes,
            continues=not self.is_over,
        )


def _output_text(output: str | list[Item]) -> str:
    """Return the text of an output, without its pictures."""
    if isinstance(output, str):
        return output
    return "\n".join(part_text(part) for part in output)


_MESSAGE_DEPTH = 3
"""How deep a chat is counted: messages, their fields, parts, and the fields of parts."""

MakeProvider = Callable[[AgentRequest, PreparedRun], Provider]


def connect_provider(
    request: AgentRequest, prepared: PreparedRun  # noqa: ARG001
) -> Provider:
    """Return the Responses API at the request's endpoint."""
    return Attempts(request.endpoint, request.connections, request.limits)


async def run_agent(
    request: AgentRequest, make_provider: MakeProvider = connect_provider
) -> AsyncGenerator[AgentEvent, None]:
    """Answer a question; yield what happens.

    An invalid request is an ending, not an exception. Exactly one RunDone comes;
    ReadyForInput is the last event, unless the host has to go on first.
    """
    spending = Spending(build_budget(request.parameters))
    agent: _Agent | None = None
    kind = "cancelled"
    try:
        try:
            agent = await _start_agent(request, make_provider, spending)
        except ResponsesError as refused:
            ended = RunDone(ending_of_exception(refused, has_begun=False))
        else:
            async with aclosing(agent.run()) as events:
                async for event in events:
                    yield event
            ended = agent.build_run_end()
        kind = ended.ending.kind
        if agent is not None and not agent.is_over:
            yield ended
            return
        text = read_answer_text(agent.answer) if agent else ""
        notes = agent.take_notes() if agent else []
        metadata = _build_metadata(request, spending, kind)
        for event in _final_events(ended, text, metadata, notes):
            yield event
    finally:
        if agent is None or agent.is_over:
            if request.pictures:
                request.pictures.forget(request.chat)
            request.on_end(_build_metadata(request, spending, kind))


async def _start_agent(
    request: AgentRequest, make_provider: MakeProvider, spending: Spending
) -> _Agent:
    """Return the agent for a request; raises ResponsesError."""
    steps = StepLog(request.log, debug=request.debug)

    async def run_task(task: AgentRequest, task_spending: Spending) -> ToolResult:
        task_steps = steps.begin_task()
        prepared = prepare_run(task)
        provider = make_provider(task, prepared)
        agent = _Agent(task, prepared, provider, task_spending, task_steps)
        async with aclosing(agent.run()) as events:
            async for event in events:
                steps.report(event)
        ended = agent.build_run_end()
        if ended.ending.code == MISALIGNMENT:  # its words are for people, not a model
            task_spending.stop(ended)
            return tool_error("the task was stopped.")
        if ended.ending.is_failure:
            return tool_error(ended.ending.sentence)
        return ToolResult(read_answer_text(agent.answer))

    own = request.own_tools
    usable_tools = task_tools(own)
    if own.delegates and usable_tools:
        slots = asyncio.Semaphore(MAX_TASKS_AT_ONCE)
        delegate = DelegateTool(request, usable_tools, spending, run_task, slots)
        tools = (delegate, *own.tools)
        request = request._replace(own_tools=own._replace(tools=tools))
    size = count_entries(request.messages, _MESSAGE_DEPTH)
    prepared = await run_work(size, partial(prepare_run, request))
    spending.add_earlier(prepared.earlier_rounds.spending)
    provider = make_provider(request, prepared)
    return _Agent(request, prepared, provider, spending, steps)


def _final_events(
    ended: RunDone, text: str, metadata: RunMetadata, notes: Iterable[str]
) -> Iterator[AgentEvent]:
    """Yield what ends an answer that is complete."""
    failed = ended.ending.is_failure
    if text and not failed:
        yield NewMessage(text)
    yield ExecutionEnded(metadata)
    for note in notes:  # the page shows the last line of all
        yield Status(note)
    yield ended
    yield StateChanged("failed" if failed else "idle")
    yield ReadyForInput()


def _build_metadata(
    request: AgentRequest, spending: Spending, ending: str
) -> RunMetadata:
    """Return what an answer took; the price is 0 if it is unknown."""
    model = resolve_model(request.parameters.model)
    price = cost_of_run(spending.usages, model.facts, (), utc_today())
    return RunMetadata(
        strategy=request.strategy,
        model=model.id,
        ending=ending,
        rounds=spending.rounds,
        tool_calls=spending.calls,
        latency=spending.seconds,
        price=price or 0.0,
        usage=spending.total_usage,
        window_share=window_share(spending.last_usage, model.facts),
    )


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.bridge
#
# Makes an async iterator a plain iterator for a server's threads.
#
# The Pipelines server calls `pipe()` in a thread, reads the answer in threads, and does
# not tell when the reader has left (docs/reference/pipelines-server.md, "The call of
# pipe"). So the work runs in an event loop of its own. While an answer is silent,
# heartbeats let the server notice that its reader has left. The work waits until each
# piece was read, so that an answer nobody reads asks no model and runs no tool. An answer
# that is not read for the time of a lease is cancelled.
# --------------------------------------------------------------------------------------


AnswerPiece = dict[str, Any] | str
_Result = TypeVar("_Result")

_KEEPALIVE_CHUNK: AnswerPiece = {"choices": []}
"""Open WebUI passes over it, as every reader of chat chunks does."""

_LEASE_SECONDS = 5.0
"""How long an answer may go unread before it is cancelled: its reader has left."""
_BEAT_SECONDS = 1.0
"""How often a silent answer lets the server look whether its reader is there."""
_BRIDGE_CLOSE_SECONDS = 5.0
"""A tool that does not let itself be cancelled must not hold the server's end."""


class BridgeClosed(Exception):
    """The bridge was closed: nothing more is answered."""


class _AnswerReader:
    """One answer, read piece by piece from any thread.

    An iterator and not a generator: the server adds an end of its own to generators.
    """

    def __init__(self, lease_seconds: float, beat_seconds: float) -> None:
        """Begin with a lease for the reader that is about to come."""
        self._lease_seconds = lease_seconds
        self._beat_seconds = beat_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        """Where the work runs."""
        self._was_read = asyncio.Event()
        self._pieces: SimpleQueue[AnswerPiece | None] = SimpleQueue()
        self._last_read_at: float | None = monotonic_seconds()
        self._has_ended = False

    def __iter__(self) -> Self:
        """Return itself."""
        return self

    def __next__(self) -> AnswerPiece:
        """Return the next piece; a keepalive chunk if none comes in time."""
        if self._has_ended:
            raise StopIteration
        self._last_read_at = None
        try:
            piece = self._pieces.get(timeout=self._beat_seconds)
        except Empty:
            piece = _KEEPALIVE_CHUNK
        self._last_read_at = monotonic_seconds()
        if piece is None:
            self._has_ended = True
            raise StopIteration
        if piece is not _KEEPALIVE_CHUNK and self._loop is not None:
            with suppress(RuntimeError):  # the bridge was closed, and its loop with it
                self._loop.call_soon_threadsafe(self._was_read.set)
        return piece

    async def consume(
        self, pieces: AsyncGenerator[AnswerPiece, None], last_piece: AnswerPiece
    ) -> None:
        """Queue one piece after another; queue `last_piece` if cancelled.

        After Stop, the server reads nothing and says nothing. Because the next piece is
        asked for only when the last one was read, at most one call is then under way.
        """
        self._loop = asyncio.get_running_loop()
        watcher = asyncio.create_task(self._watch(asyncio.current_task()))
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._was_read.clear()
                    self._pieces.put(piece)
                    await self._was_read.wait()
        except asyncio.CancelledError:
            self._pieces.put(last_piece)
            raise
        finally:
            watcher.cancel()
            self._pieces.put(None)

    async def _watch(self, task: asyncio.Task[Any] | None) -> None:
        """Cancel `task` when the lease has ended; wait while a reader waits."""
        seconds_left = self._lease_seconds
        while seconds_left > 0:
            await asyncio.sleep(seconds_left)
            last_read_at = self._last_read_at
            if last_read_at is None:
                seconds_left = self._beat_seconds
            else:
                lease_end = last_read_at + self._lease_seconds
                seconds_left = lease_end - monotonic_seconds()
        if task is not None:
            task.cancel()


class AsyncBridge:
    """The event loop of one pipeline, in a thread that the first work starts."""

    def __init__(
        self,
        last_piece: AnswerPiece,
        on_close: Callable[[], Coroutine[Any, Any, None]],
        lease_seconds: float = _LEASE_SECONDS,
        beat_seconds: float = _BEAT_SECONDS,
    ) -> None:
        """Start nothing.

        At `close`, `last_piece` ends each open answer, then `on_close` is awaited.
        """
        self._last_piece = last_piece
        self._on_close = on_close
        self._lease_seconds = lease_seconds
        self._beat_seconds = beat_seconds
        self._lock = Lock()
        self._thread: Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing = asyncio.Event()
        self._is_closed = False

    def stream(
        self, pieces: AsyncGenerator[AnswerPiece, None]
    ) -> Iterator[AnswerPiece]:
        """Return `pieces` as a plain iterator; raises BridgeClosed."""
        reader = _AnswerReader(self._lease_seconds, self._beat_seconds)
        self._submit(reader.consume(pieces, self._last_piece))
        return reader

    def run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Return the result of `work`; raises BridgeClosed, also while it runs."""
        try:
            return self._submit(work).result()
        except CancelledError:
            raise BridgeClosed from None

    def close(self) -> None:
        """Cancel everything, then end the thread; later work is refused."""
        with self._lock:
            self._is_closed = True
            thread = self._thread
            loop = self._loop
        if thread and loop and thread.is_alive():
            loop.call_soon_threadsafe(self._closing.set)
            thread.join(_BRIDGE_CLOSE_SECONDS)

    def _submit(self, work: Coroutine[Any, Any, _Result]) -> Future[_Result]:
        """Start `work` in the event loop of the thread; raises BridgeClosed."""
        with self._lock:
            if self._is_closed:
                work.close()
                raise BridgeClosed
            if self._loop is None:
                self._loop = self._start_thread()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _start_thread(self) -> asyncio.AbstractEventLoop:
        """Start the thread, return its event loop."""
        started: SimpleQueue[asyncio.AbstractEventLoop] = SimpleQueue()
        self._thread = Thread(
            target=self._run_thread, args=(started,), name="agent", daemon=True
        )
        self._thread.start()
        return started.get()

    def _run_thread(self, started: SimpleQueue[asyncio.AbstractEventLoop]) -> None:
        """Run in asyncio's own loop, whatever loop the server has."""
        own_loop = getattr(asyncio, "ProactorEventLoop", asyncio.SelectorEventLoop)
        with asyncio.Runner(loop_factory=own_loop) as runner:
            runner.run(self._run_loop(started))

    async def _run_loop(self, started: SimpleQueue[asyncio.AbstractEventLoop]) -> None:
        """Run until we are closed, then leave nothing in the loop."""
        started.put(asyncio.get_running_loop())
        await self._closing.wait()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_BRIDGE_CLOSE_SECONDS)
        await self._on_close()


def close_on_sigterm(bridge: AsyncBridge) -> Callable[[], object]:
    """Close the bridge when the process has to end; return what undoes this.

    The server itself waits for open answers before it calls `on_shutdown`. Its own loop
    hears of a signal beside Python's handlers (docs/reference/pipelines-server.md).
    """
    previous_handler = signal.getsignal(signal.SIGTERM)

    def close_and_pass_on(number: int, frame: Any) -> None:
        Thread(target=bridge.close, daemon=True).start()
        if callable(previous_handler):
            previous_handler(number, frame)

    def restore() -> None:
        if signal.getsignal(signal.SIGTERM) is close_and_pass_on:
            signal.signal(signal.SIGTERM, previous_handler)

    if callable(previous_handler) and current_thread() is main_thread():
        signal.signal(signal.SIGTERM, close_and_pass_on)
    return restore


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.inlet
#
# Who calls the pipeline, and what Open WebUI attached to the chat.
#
# Open WebUI removes the metadata from a body before the pipeline gets it, but shows it to
# the pipeline's own inlet and keeps what the inlet adds.
# --------------------------------------------------------------------------------------


CONTEXT_KEY = "agent_context"
_MAX_ATTACHED = 20
"""Attached files that are put into the sandbox."""
_FILE_KEYS = ("type", "id", "name")
_CONTEXT_IDS = ("chat_id", "message_id", "user_id", "task")


class PipelineCaller(ChatCaller):
    """Which message of which chat is answered, or which task of the host."""

    @property
    def can_ask(self) -> bool:
        """Whether the host can show a card: it needs a stream."""
        return self.host_reads and self.streams

    @property
    def workspace(self) -> str:
        """The key of a user's files in a chat; empty without a chat."""
        return f"{self.user_id}/{self.chat_id}" if self.chat_id else ""


class AttachedToChat(NamedTuple):
    """What Open WebUI attached to the chat of a call."""

    tool_names: HostToolNames = HostToolNames()
    """What its tools may be called, by the ids of their toolkits and servers."""
    files: tuple[tuple[str, str], ...] = ()
    """The ids and names of files."""


def read_inlet_context(
    body: Mapping[str, Any], user: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what an inlet's body says of the chat: ids, those of its tools, the role.

    The files are the last ones attached, each with type, id and name.
    """
    metadata = as_mapping(body.get("metadata"))
    context: dict[str, Any] = {
        key: str(metadata[key]) for key in _CONTEXT_IDS if metadata.get(key)
    }
    if user is not None and user.get("role") == "admin":
        context["is_admin"] = True
    tool_ids = as_list(metadata.get("tool_ids"))
    if tool_ids:
        context["tool_ids"] = tool_ids
    files = as_list(metadata.get("files"))[-_MAX_ATTACHED:]
    if files:
        context["files"] = [_select_file_fields(as_mapping(file)) for file in files]
    return context


def _select_file_fields(file: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the pipe needs of an attached file."""
    return {key: file.get(key) for key in _FILE_KEYS}


def read_caller(body: Mapping[str, Any]) -> PipelineCaller:
    """Return who calls; a body that passed no inlet is a plain client's."""
    context = as_mapping(body.get(CONTEXT_KEY))
    return PipelineCaller(
        host_model=str(body.get("model") or ""),
        streams=bool(body.get("stream")),
        is_admin=context.get("is_admin") is True,
        **{key: str(context.get(key) or "") for key in _CONTEXT_IDS},
    )


def read_attached(body: Mapping[str, Any]) -> AttachedToChat:
    """Return what is attached to the chat of a body that passed the inlet."""
    context = as_mapping(body.get(CONTEXT_KEY))
    return AttachedToChat(
        tool_names=_read_tool_names(as_list(context.get("tool_ids"))),
        files=tuple(_read_files(context.get("files"))),
    )


def _read_files(rows: object) -> Iterator[tuple[str, str]]:
    """Yield ids and names of files; a name that is taken gets its row's number."""
    taken: set[str] = set()
    for number, entry in enumerate(as_list(rows), start=1):
        row = as_mapping(entry)
        if row.get("type") not in ("file", "image") or not row.get("id"):
            continue
        name = shorten_name(str(row.get("name") or "file"))
        if name in taken:
            name = f"{number}-{name}"
        taken.add(name)
        yield str(row["id"]), name


def _read_tool_names(references: Iterable[object]) -> HostToolNames:
    """Return what tools are called whose toolkits and servers are referred to."""
    toolkit_ids: set[str] = set()
    mcp_ids: set[str] = set()
    for reference in references:
        kind, tool_id = _read_tool_reference(str(reference))
        if kind == "mcp":
            mcp_ids.add(tool_id)
        else:
            toolkit_ids.add(tool_id)
    return HostToolNames(frozenset(toolkit_ids), frozenset(mcp_ids))


def _read_tool_reference(reference: str) -> tuple[str, str]:
    """Return the kind of a server, empty if none is named, and the id.

    A reference is the id of a toolkit, `server:ID`, or `server:KIND:ID|FUNCTIONS`.
    """
    tool_id = reference.partition("|")[0].removeprefix("server:")
    for kind in ("mcp", "openapi"):
        if tool_id.startswith(f"{kind}:"):
            return kind, tool_id.removeprefix(f"{kind}:")
    return "", tool_id


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.log
#
# The agents' lines in the server's log.
# --------------------------------------------------------------------------------------


_LOGGER = logging.getLogger("gpt5_agent_strategies")


class AgentLog(AnswerLog):
    """The log of one answer of the agents."""

    def _write(self, level: LogLevel, one_line: str) -> None:
        _LOGGER.log(LOG_LEVELS[level], "%s %s", self.run_id, one_line)


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.host_files
#
# Files of Open WebUI, over its API.
#
# An uploaded file belongs to the owner of the key, usually an administrator; nothing sets
# another owner (docs/reference/open-webui.md, "Events and stored files"). What a user's
# Python wrote must not lie in an administrator's account, so it is sent only to the user's
# own. The API does not say whose a key is (0.12.4, routers/auths.py: only to a browser's
# session), but each stored file says it: a file without content of the user is stored, and
# removed, before the first one. Open WebUI does not check which files a question names,
# and the key may read everybody's: only the user's own are read.
# --------------------------------------------------------------------------------------


_CONNECT_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
"""Of one request, from its connection to the last byte of its answer."""
_MAX_ANSWER_BYTES = 8 * 1024 * 1024
_OWNER_CHECK = ("account-check.bin", b"-")
"""Name and content of a file that shows whose account it is in; the host stores no empty
one (0.12.4, storage/provider.py)."""
_NOT_THE_USERS = (
    "A file has to belong to the person who asks, and OPEN_WEBUI_API_KEY is the key of "
    "another account."
)


class HostFiles:
    """The files of a user: those that are `attached` to a chat, by id, and new ones.

    Without an address, a key or a user each call raises HostFileError. No redirection
    is followed, because the key would go along.
    """

    def __init__(
        self,
        url: str,
        key: str,
        user_id: str = "",
        attached: Sequence[tuple[str, str]] = (),
    ) -> None:
        """Open nothing yet; `attached` are ids and names."""
        self.attached = attached
        self._url = url.strip().rstrip("/")
        self._key = key
        self._user_id = user_id
        self._owner_id = ""
        self._session: aiohttp.ClientSession | None = None

    async def read(self, file_id: str) -> bytes | str:
        """Return the content of a file that the user owns, or why there is none."""
        path = f"files/{re.sub('[^A-Za-z0-9-]', '_', file_id)}"
        try:
            row = await self._call_json("GET", path)
            if row.get("user_id") != self._user_id:
                return "It belongs to someone else."
            return await self._call("GET", f"{path}/content")
        except HostFileError as failed:
            return str(failed)

    async def store(self, name: str, content: bytes) -> str:
        """Store a file of the user, return its path.

        Its type is that of its ending: no type that a tool claims is used. Raises
        HostFileError, also if the key is not the user's own.
        """
        if await self._key_owner_id() != self._user_id:
            raise HostFileError(_NOT_THE_USERS)
        row = await self._upload(name, content)
        if row.get("user_id") != self._user_id:
            await self._remove(row)
            raise HostFileError(_NOT_THE_USERS)
        return f"/api/v1/files/{row.get('id')}/content"

    async def _key_owner_id(self) -> str:
        """Return the id of the user whose key it is; raises HostFileError."""
        if not self._owner_id:
            row = await self._upload(*_OWNER_CHECK)
            await self._remove(row)
            self._owner_id = str(row.get("user_id"))
        return self._owner_id

    async def _upload(self, name: str, content: bytes) -> Mapping[str, Any]:
        """Store a file, return its row; raises HostFileError."""
        name, media_type = stored_name(name)
        boundary = token_hex(16)
        body = _build_form(name, media_type, content, boundary)
        form_type = f"multipart/form-data; boundary={boundary}"
        return await self._call_json("POST", "files/?process=false", body, form_type)

    async def _remove(self, row: Mapping[str, Any]) -> None:
        """Remove a stored file.

        Without an index of the file, the host removes it and answers HTTP 400 (0.12.4,
        routers/files.py, `delete_file_by_id`).
        """
        with suppress(HostFileError):
            await self._call("DELETE", f"files/{row.get('id')}")

    async def aclose(self) -> None:
        """Close the session."""
        session = self._session
        self._session = None
        if session is not None:
            await session.close()

    async def _call_json(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        media_type: str = "application/json",
    ) -> Mapping[str, Any]:
        """Return the row of an answer; raises HostFileError."""
        answer = await self._call(method, path, body, media_type)
        row = parse_json_object(answer.decode("utf-8", "replace"))
        if not row or not row.get("id"):
            raise HostFileError("OPEN_WEBUI_URL is not the address of Open WebUI.")
        return row

    async def _call(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        media_type: str = "application/json",
    ) -> bytes:
        """Return the body of an answer; raises HostFileError."""
        if not (self._url and self._key and self._user_id):
            raise HostFileError(
                "An administrator has to set OPEN_WEBUI_URL and OPEN_WEBUI_API_KEY in "
                "the valves of this pipeline."
            )
        headers = {
            "Authorization": f"Bearer {self._key}",
            "Content-Type": media_type,
        }
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await self._exchange(method, path, headers, body)
        except TimeoutError:
            raise HostFileError(
                f"Open WebUI did not answer within {_ANSWER_SECONDS:g} s."
            ) from None

    async def _exchange(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> bytes:
        """Send a request, return the body of its answer; raises HostFileError."""
        request = self._open_session().request(
            method,
            f"{self._url}/api/v1/{path}",
            headers=headers,
            data=body,
            allow_redirects=False,
        )
        try:
            async with request as response:
                _check_answer(response)
                return await _read_body(response)
        except (aiohttp.ClientError, OSError, ValueError):
            raise HostFileError(
                "Open WebUI cannot be reached, or its answer was interrupted."
            ) from None

    def _open_session(self) -> aiohttp.ClientSession:
        """Return the session; it stores no cookie and uses no proxy."""
        if self._session is None:
            self._session = new_session(
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
            )
        return self._session


def _check_answer(response: aiohttp.ClientResponse) -> None:
    """Raise HostFileError for an answer that is not read."""
    if 300 <= response.status < 400:
        raise HostFileError(
            f"Open WebUI redirects requests (HTTP {response.status}). Redirects are not "
            "followed, because they would send the key to another address. An "
            "administrator has to check the address in OPEN_WEBUI_URL."
        )
    if response.status != 200:
        raise HostFileError(f"Open WebUI answered with HTTP {response.status}.")


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return a body; raises HostFileError if it is too long.

    A proxy in front of the host may pack it.
    """
    body = bytearray()
    arrived = 0
    unpacker = Unpacker(",".join(response.headers.getall("Content-Encoding", [])))
    while True:
        chunk = await response.content.readany()
        arrived += len(chunk)
        try:
            for text in unpacker.feed(chunk):
                body += text
                if len(body) > _MAX_ANSWER_BYTES:
                    break
        except UnpackingError:
            raise HostFileError(
                "Open WebUI sent a compressed answer, which cannot be read."
            ) from None
        if max(len(body), arrived) > _MAX_ANSWER_BYTES:
            raise HostFileError(f"Open WebUI sent more than {_MAX_ANSWER_BYTES} bytes.")
        if not chunk:
            return bytes(body)


def _build_form(name: str, media_type: str, content: bytes, boundary: str) -> bytes:
    """Return a form with one file."""
    head = (
        f"--{boundary}\r\n"
        'Content-Disposition: form-data; name="file"; '
        f'filename="{_header_text(name)}"\r\n'
        f"Content-Type: {_header_text(media_type)}\r\n\r\n"
    )
    end = f"\r\n--{boundary}--"
    return head.encode("utf-8", "replace") + content + end.encode()


def _header_text(text: str) -> str:
    """Return a text that can stand in a header of a form."""
    return re.sub(r'[^ -~\u00a0-\uffff]|["\\]', "_", text)


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.sealing
#
# Secrets in the valves: named by a reference, or encrypted.
#
# The Pipelines server shows the valves to anyone who asks, and writes them to a file. So
# a secret that was typed in plainly is encrypted first, with a key in a file of its own
# beside the pipelines, which the server never shows. Where there is no server, as in a
# terminal, the key is in memory.
# --------------------------------------------------------------------------------------


SECRET_FORMS = "`env:NAME` or `file:PATH`; any other text is encrypted when saved."

_SEALED_PREFIX = "sealed:"
UNREADABLE_SECRET = _SEALED_PREFIX
"""Stands for a secret that cannot be read, and is not missing."""
_SECRET_PREFIXES = ("env:", "file:", _SEALED_PREFIX)
_FERNET = "cryptography.fernet"  # the Pipelines server's requirements bring it
_KEY_FILE = "gpt5_agent.key"
_MAX_SECRET_CHARACTERS = 65_536

_MIN_KEY_CHARACTERS = 14
_MIN_DIFFERENT_CHARACTERS = 8
"""Of an API key that nobody guesses; those that servers make have more."""


def seal_secret(typed: str) -> str:
    """Return a secret in a form that may be shown; a reference stays as it is.

    If it cannot be encrypted, nothing follows the prefix.
    """
    text = typed.strip()
    if not text or text.startswith(_SECRET_PREFIXES):
        return text
    try:
        fernet_class = import_module(_FERNET).Fernet
        token = fernet_class(_open_sealing_key()).encrypt(text.encode())
    except (ImportError, OSError, ValueError):
        return _SEALED_PREFIX
    return f"{_SEALED_PREFIX}{token.decode()}"


def signing_secret(api_key: str) -> str:
    """Return what signatures are made with: the API key, which no caller has.

    All copies of the pipeline have the same. Servers that need no key get a placeholder
    (`EMPTY`, `none`, `sk-no-key-required`), which anybody can guess: this server's own
    secret takes its place.
    """
    key = api_key.strip()
    has_digit = any(character.isdigit() for character in key)
    is_varied = len(set(key)) >= _MIN_DIFFERENT_CHARACTERS
    if len(key) >= _MIN_KEY_CHARACTERS and is_varied and has_digit:
        return key
    return _server_secret()


def _server_secret() -> str:
    """Return a secret that only this server has; without a file, that of the process."""
    try:
        return _open_sealing_key().decode()
    except (OSError, ValueError):
        return _process_key().decode()


def _new_key() -> bytes:
    """Return a key in the form that Fernet takes."""
    return base64.urlsafe_b64encode(os.urandom(32))


@lru_cache(maxsize=1)
def _process_key() -> bytes:
    """Return a key that is the same as long as the process runs."""
    return _new_key()


def seal_values(typed: str) -> str:
    """Return a JSON object with its texts sealed; other text is sealed as a whole."""
    values = parse_json_object(typed)
    if values is None:
        return seal_secret(typed)
    sealed = {}
    for name, value in values.items():
        if isinstance(value, str):
            sealed[name] = seal_secret(value)
        else:
            sealed[name] = value
    return json.dumps(sealed)


def reveal_secret(stored: str, valve: str) -> str:
    """Return the secret that `stored` stands for; raises InvalidRequest without it."""
    text = stored.strip()
    kind, _, reference = text.partition(":")
    match kind:
        case "env":
            secret = os.environ.get(reference.strip(), "")
        case "file":
            secret = _read_secret_file(reference.strip())
        case "sealed":
            secret = _decrypt(reference)
        case _:
            return text
    if secret.strip():
        return secret.strip()
    raise InvalidRequest(
        f"The secret in {valve} cannot be read. An administrator has to enter it again "
        "in the valves of this pipeline, as env:NAME of a variable or file:PATH of a "
        "file that the Pipelines server can read."
    )


def _read_secret_file(path: str) -> str:
    """Return the text of a file, as much as a secret can have; empty without it."""
    try:
        with open(path, encoding="utf-8") as file:
            return file.read(_MAX_SECRET_CHARACTERS)
    except (OSError, ValueError):
        return ""


def _decrypt(token: str) -> str:
    """Return what was sealed; empty if the key or the package is not there."""
    try:
        package = import_module(_FERNET)
    except ImportError:
        return ""
    try:
        fernet = package.Fernet(_read_sealing_key())
        return str(fernet.decrypt(token.encode()).decode())
    except (OSError, ValueError, package.InvalidToken):
        return ""


def _open_sealing_key() -> bytes:
    """Return the key of this server, which is made if there is none; raises OSError."""
    folder = pipelines_folder()
    if folder:
        _write_sealing_key(folder, _new_key())
    return _read_sealing_key()


def _read_sealing_key() -> bytes:
    """Return the key of this server; raises OSError without its file."""
    folder = pipelines_folder()
    if not folder:
        return _process_key()
    with open(os.path.join(folder, _KEY_FILE), "rb") as file:
        return file.read().strip()


def pipelines_folder() -> str:
    """Return the folder of the server's pipelines, where no request reaches the key.

    Empty where no server is: a checkout has a folder of that name, too. Without the
    variable, only the server's module `config` says which folder it reads (config.py).
    """
    named = os.environ.get("PIPELINES_DIR", "")
    if named:
        return named
    return str(getattr(sys.modules.get("config"), "PIPELINES_DIR", ""))


def _write_sealing_key(folder: str, key: bytes) -> None:
    """Write a key that only its owner can read, unless there is one."""
    opener = partial(os.open, mode=0o600)
    path = os.path.join(folder, _KEY_FILE)
    with suppress(FileExistsError), open(path, "xb", opener=opener) as file:
        file.write(key)


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.valves
#
# The administrator's valves; any stored value loads.
#
# A stored value that pydantic refuses would stop the whole Pipelines server from
# starting, and the error message would quote the value. So numbers are moved into their
# range, and any other invalid value becomes the default. Secrets are sealed on
# assignment.
# --------------------------------------------------------------------------------------


_PAGE_QUOTES = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"
_MARKDOWN_CODE = re.compile("`([^`]*)`")
_PASSWORD: dict[str, Any] = {"input": {"type": "password"}}
_VALVE_RANGES: Mapping[str, tuple[int, int]] = {
    "TOOL_OUTPUT_CHARACTERS": (1000, 10_000_000),
    "MAXIMUM_ITERATIONS": (1, 30),
    "MAXIMUM_SECONDS": (0, 86_400),
    "MAXIMUM_TOKENS": (0, 100_000_000),
    "COMPACTION_TOKENS": (0, 10_000_000),
}


def _quote_for_page(schema: dict[str, Any]) -> None:
    """Put quotes in the place of backticks: the page shows descriptions as plain text.

    The docs, which are made of the same descriptions, show them as Markdown.
    """
    for valve in schema["properties"].values():
        valve["description"] = _MARKDOWN_CODE.sub(_PAGE_QUOTES, valve["description"])


class Valves(BaseModel):
    """Settings of the administrator; the page shows them in this order."""

    model_config = ConfigDict(json_schema_extra=_quote_for_page)

    # The key and the address

    API_KEY: str = Field(
        default="",
        description=f"Key for BASE_URL: {SECRET_FORMS} If empty, the environment's "
        "OPENAI_API_KEY is used. Example: `env:OPENAI_API_KEY`.",
        json_schema_extra=_PASSWORD,
    )
    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`; the server "
        f"has to allow any but OpenAI's. Example: `{DEFAULT_BASE_URL}`.",
    )
    ORGANIZATION: str = Field(
        default="", description="Organization to bill. Example: `org-abc`."
    )
    PROJECT: str = Field(
        default="", description="Project to bill. Example: `proj_abc`."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description="Additional headers, as a JSON object of texts; a value can be "
        f'{SECRET_FORMS} Example: `{{"X-Team": "env:TEAM_KEY"}}`.',
        json_schema_extra=_PASSWORD,
    )
    COMPATIBILITY: Literal["auto", "openai", "strict"] = Field(
        default="auto",
        description="`auto` and `openai` send what OpenAI supports, and drop what the "
        "server rejects. `strict` sends only what every server supports.",
    )

    # The model, its reasoning and its answers

    MODEL: str = Field(
        default="gpt-6.1-sol",
        description="Model of both agents; the name can include an effort. Example: "
        "`gpt-5.2-high`.",
    )
    REASONING_EFFORT: Literal[
        "", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="",
        description="How long the model thinks; if empty, MODEL decides.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the reasoning. OpenAI gives it to verified "
        "organizations only.",
    )
    VERBOSITY: Literal["", "low", "medium", "high"] = Field(
        default="",
        description="How long answers are; if empty, the model decides.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers. Turn this off for servers that cannot stream, or "
        "organizations that may not.",
    )

    # The agent

    INSTRUCTION: str = Field(
        default="",
        description="What the agent is and does; it precedes the policies. "
        "Example: `You help the support team of an online shop.`",
    )
    POLICY_STYLE: Literal["full", "lean", "auto"] = Field(
        default="full",
        description="Wording of the policies: `full` is detailed, `lean` is short and "
        "for newer models, `auto` depends on the model.",
    )
    PROMPT_POLICY_OVERRIDES: str = Field(
        default="",
        description="Changes to the policies. Plain text is added after them. Example: "
        "`Answer in French.` A JSON object replaces individual ones, by the keys "
        "`persistence_policy`, `context_gathering_policy`, `uncertainty_policy`, "
        "`tool_preamble_policy` or `extra_policy`. Example: "
        '`{"tool_preamble_policy": "Say nothing before a call."}`.',
    )
    CONTEXT: str = Field(
        default="",
        description="Facts that accompany every question, shown as a source; "
        "`context_gathering_policy` says how the agent finds more. Example: "
        "`Our office hours are 9 to 17.`",
    )
    PRESET: str = Field(
        default="",
        description="A guide: who the agent is and how much of a chat it remembers: "
        "`researcher`, `engineer`, `companion`, or the name of a file in PRESETS_DIR "
        "without `.json`. Example: `researcher`.",
    )
    PRESETS_DIR: str = Field(
        default="",
        description="Folder with your own guides, as JSON files. Example: "
        "`/app/presets`.",
    )
    EMIT_INTERMEDIATE_THOUGHTS: bool = Field(
        default=True,
        description="Show what the model says before tool calls, as a thought. If "
        "off, only the answer is shown.",
    )

    # Tools that run in this pipeline

    SANDBOX: bool = Field(
        default=False,
        description="Let the model run Python and keep files in a sandbox without "
        "network access. If no sandbox works on this server, no such tool is offered, "
        "and the log and a notice above administrators' answers say why.",
    )
    SANDBOX_OPTIONS: str = Field(
        default="",
        description="A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of "
        "one chat, `wheels` (a folder of packages to import). Example: "
        '`{"seconds": 60, "wheels": "/srv/wheels"}`.',
    )
    OPEN_WEBUI_URL: str = Field(
        default="",
        description="Address at which this server reaches Open WebUI, to read and store "
        "files; the server has to allow it. Example: `http://open-webui:8080`.",
    )
    OPEN_WEBUI_API_KEY: str = Field(
        default="",
        description="API key of an Open WebUI account. Files that tools create are "
        "stored for its owner only; to read everyone's attached files, it must be an "
        "administrator's. Example: `env:OPEN_WEBUI_API_KEY`.",
        json_schema_extra=_PASSWORD,
    )
    DELEGATION: bool = Field(
        default=False,
        description="Let the agent delegate tasks to other runs of itself, up to three "
        "at once. Only with tools that run here and need no approval, such as those of "
        "SANDBOX.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True,
        description="Let the model call tools in parallel.",
    )
    TOOL_TIMEOUTS: str = Field(
        default="default: 120",
        description="Time limits of tool calls in seconds, by name or pattern. Example: "
        "`default: 120, python_execute: 300`.",
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        description="Longest tool output that the model gets; the middle of a longer "
        "one is left out.",
    )
    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's approval: rules `pattern=auto`, `ask` "
        "or `deny`, separated by commas; they apply to Open WebUI's tools too. "
        "Example: `delete_*=ask, shell=deny`.",
    )

    # Cost

    MAXIMUM_ITERATIONS: int = Field(
        default=6,
        description="Maximum number of tool rounds in one answer, 1 to 30; then the "
        "model answers with what it has.",
    )
    MAXIMUM_SECONDS: int = Field(
        default=0,
        description="Time limit of one answer in seconds, excluding Open WebUI's tools "
        "and approvals. 0: none.",
    )
    MAXIMUM_TOKENS: int = Field(
        default=0,
        description="Token limit for all rounds of one answer. 0: none.",
    )

    COMPACTION_TOKENS: int = Field(
        default=200_000,
        description="Let OpenAI compact the chat, also between two rounds, when its "
        "input has more tokens than this, or than half of the model's context window. "
        "0: never.",
    )

    # The network

    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Turn this off for tests only: "
        "others on the network can then read the key, so the server has to allow it.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust. Example: "
        "`/etc/ssl/company.pem`.",
    )
    PROXY: str = Field(
        default="",
        description=f"Address of an HTTP proxy: {SECRET_FORMS} The server has to allow "
        "it. If empty, its environment's HTTPS_PROXY and NO_PROXY are used. Example: "
        "`http://10.0.0.1:3128`.",
        json_schema_extra=_PASSWORD,
    )

    # Log and the rest

    DEBUG: bool = Field(
        default=False,
        description="Log the arguments and outputs of tools, without secrets.",
    )
    EXPERT_JSON: str = Field(
        default="",
        description="A JSON object of rarely needed settings, such as timeouts, retries "
        "and what requests may set (docs/agent-settings.md lists them). Example: "
        '`{"max_retries": 3}`.',
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _repair_value(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, about: ValidationInfo
    ) -> Any:
        """Return a value that is valid, whatever was stored."""
        name = str(about.field_name)
        default = cls.model_fields[name].default
        if name in _VALVE_RANGES:
            return clamp_number(value, *_VALVE_RANGES[name], default)
        try:
            return validate(value)
        except ValidationError:
            return default

    @model_serializer(mode="wrap")
    def _leave_unset_empty(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        """Give an unset text as null: Open WebUI's page saves no empty field."""
        values = serialize(self)
        return {name: None if value == "" else value for name, value in values.items()}

    @field_validator("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY")
    @classmethod
    def _seal(cls, value: str) -> str:
        """Return a secret in a form that may be shown."""
        return seal_secret(value)

    @field_validator("EXTRA_HEADERS")
    @classmethod
    def _seal_values(cls, value: str) -> str:
        """Return headers with their values in a form that may be shown."""
        return seal_values(value)


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.json_valves
#
# Valves of the pipeline that hold JSON objects, with their keys and ranges.
#
# docs/agent-settings.md is generated from the descriptions. The keys that the pipe has,
# too, have its names (pipes/owui_manifold/call/expert.py).
# --------------------------------------------------------------------------------------


class AgentExpertSettings(TimeoutSettings):
    """What EXPERT_JSON can hold: settings that hardly any server needs to change."""

    max_retries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="How often a request that failed before any text is retried, "
        "0 to 5.",
    )
    caller_may_set: str = Field(
        default="context, query, emit_intermediate_thoughts",
        description="What a request may set besides its chat, tools, sampling and "
        "format, separated by commas; also possible: `agent_model`, `instruction`, "
        "`prompt_policy_overrides`, `maximum_iterations`, `reasoning_effort`, "
        "`reasoning_summary`, `verbosity` and the API's parameters. Anyone who may "
        "chat can then spend more, or change the rules.",
    )


class ValveSettings(NamedTuple):
    """The valves, and what those say that hold several values.

    They are read once for each question. `problems` are messages for administrators.
    """

    valves: Valves
    expert: AgentExpertSettings
    sandbox: SandboxOptions
    timeouts: ReadTimeouts
    problems: tuple[str, ...]


def read_valve_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say; defaults for what cannot be read."""
    expert, expert_problems = read_expert_json(valves.EXPERT_JSON, AgentExpertSettings)
    sandbox, sandbox_problems = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    timeouts = read_timeouts(valves.TOOL_TIMEOUTS, PIPELINE_SHELL)
    problems = [*expert_problems, *sandbox_problems]
    if timeouts.problem:
        problems.append(timeouts.problem)
    return ValveSettings(valves, expert, sandbox, timeouts, tuple(problems))


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.own_tools
#
# The agent's own tools for one answer: those of the sandbox.
#
# Only the sandbox files of a chat are kept between answers, for a limited time. If they
# are gone although the chat shows earlier calls, the model is told.
# --------------------------------------------------------------------------------------


TERMINAL_WORKSPACE = WorkspaceKey("", "terminal")
_WORKSPACE_LOST = (
    "The workspace was emptied since the last call in this chat, because it was not "
    "used for long or the server was restarted: files that earlier calls wrote are "
    "gone."
)


class _ChatWorkspace:
    """The workspace of a chat, as one answer uses it."""

    def __init__(
        self,
        sandbox: SandboxTools,
        key: WorkspaceKey,
        files: HostFiles,
        *,
        was_used: bool,
    ) -> None:
        """`was_used` says that the chat shows earlier calls, whose files should be there."""
        self._sandbox = sandbox
        self._key = key
        self._files = files
        self._was_used = was_used

    async def call(self, name: str, args: dict[str, Any]) -> dict[str, Any]:
        """Run a tool with the attached files there; return the text, then the files."""
        notes = []
        if self._was_used and not self._sandbox.has_workspace(self._key):
            self._was_used = False  # it is told once
            notes.append(_WORKSPACE_LOST)
        for file_id, file_name in self._files.attached:
            read = partial(self._files.read, file_id)
            received = await self._sandbox.receive(self._key, file_id, file_name, read)
            if received.failed:
                notes.append(f"{file_name} is not there. {received.text}")
        result = await self._sandbox.call(self._key, name, args)
        text = {"type": "text", "text": "\n".join([result.text, *notes])}
        content = [text, *_build_file_parts(result.files)]
        return {"isError": result.failed, "content": content}


class _SandboxTool(NamedTuple):
    """One tool of the sandbox."""

    name: str
    description: str
    args: Mapping[str, Any]
    workspace: _ChatWorkspace

    async def execute(self, args: dict[str, Any]) -> dict[str, Any]:
        """Run it in the workspace of the chat."""
        return await self.workspace.call(self.name, args)


class OwnToolOffer(NamedTuple):
    """The tools of an answer; `problems` are for administrators."""

    tools: tuple[Tool, ...] = ()
    problems: tuple[str, ...] = ()


def _build_file_parts(files: Iterable[SandboxFile]) -> Iterator[dict[str, Any]]:
    """Yield the files as parts, together no larger than one file may be.

    A file that a later run has removed is left out.
    """
    bytes_left = MAX_TOOL_FILE_BYTES
    for file in files:
        content = _read_content(file, bytes_left)
        if content is None:
            text = f"{file.name} is not shown: files of one call may have 5 MB in all."
            yield {"type": "text", "text": text}
            continue
        bytes_left -= len(content)
        yield {
            "type": "blob",
            "data": content,
            "mimeType": file.media_type,
            "name": file.name,
        }


def _read_content(file: SandboxFile, max_bytes: int) -> bytes | None:
    """Return the content of a file; None if it is gone or too large."""
    try:
        with file.path.open("rb") as opened:
            content = opened.read(max_bytes + 1)
    except OSError:
        return None
    return content if len(content) <= max_bytes else None


def open_host_files(
    valves: Valves, user_id: str, files: Sequence[tuple[str, str]], log: AgentLog
) -> HostFiles:
    """Return the attached `files` of a chat, by id and name; `log` hides the key.

    A key that cannot be read is none: it must not cost the answer.
    """
    try:
        key = reveal_secret(valves.OPEN_WEBUI_API_KEY, "OPEN_WEBUI_API_KEY")
    except InvalidRequest:
        key = ""
    log.hide(key)
    return HostFiles(valves.OPEN_WEBUI_URL, key, user_id, files)


_MAX_SANDBOXES = 4
"""Sandboxes of earlier valves stay for the answers that use them."""


class OwnToolPool:
    """What all answers of a pipeline share; everything is opened on first use.

    The workspaces do not depend on the valves: a chat keeps its files when an
    administrator changes the limits.
    """

    def __init__(self) -> None:
        """Open nothing yet."""
        self._workspaces = WorkspacePool()
        self._sandboxes: dict[tuple[SandboxLimits, str], SandboxTools] = {}

    async def open_tools(
        self,
        settings: ValveSettings,
        key: WorkspaceKey,
        log: AgentLog,
        files: HostFiles,
        messages: Sequence[Mapping[str, Any]] = (),
    ) -> OwnToolOffer:
        """Return the tools of an answer to `messages`; without a sandbox why not."""
        if not settings.valves.SANDBOX:
            return OwnToolOffer()
        sandbox = self._open_sandbox(settings)
        await self._close_oldest()
        try:
            specs = await sandbox.specs()
        except Exception as error:  # an answer without Python is better than none
            reason = describe_exception(error)
            problem = f"The tools of the sandbox are not offered: {reason}"
            log.warn(problem)
            return OwnToolOffer(problems=(problem,))
        names = {spec["name"] for spec in specs}
        was_used = _shows_calls(messages, names)
        workspace = _ChatWorkspace(sandbox, key, files, was_used=was_used)
        tools = tuple(
            _SandboxTool(
                spec["name"], spec["description"], spec["parameters"], workspace
            )
            for spec in specs
        )
        return OwnToolOffer(tools, tuple(sandbox.problems))

    async def close(self) -> None:
        """End all runs, and remove the files of the chats."""
        self._workspaces.refuse_new()
        for sandbox in self._sandboxes.values():
            await sandbox.close()
        await self._workspaces.close()

    async def _close_oldest(self) -> None:
        """Close the sandbox of the earliest settings if there are too many."""
        if len(self._sandboxes) > _MAX_SANDBOXES:
            oldest = next(iter(self._sandboxes))
            await self._sandboxes.pop(oldest).close()

    def _open_sandbox(self, settings: ValveSettings) -> SandboxTools:
        """Return the sandbox with the limits and packages of the valves."""
        options = settings.sandbox
        output = settings.valves.TOOL_OUTPUT_CHARACTERS
        limits = build_sandbox_limits(options, output)
        wheels = options.wheels.strip()
        key = (limits, wheels)
        if key not in self._sandboxes:
            # Its log outlives the answer that needed it first.
            log = AgentLog("sandbox")
            folder = pipelines_folder()  # valves and the key that seals them
            self._sandboxes[key] = SandboxTools(
                limits,
                wheels,
                log.warn,
                workspaces=self._workspaces,
                private={"PIPELINES_DIR": Path(folder)} if folder else {},
            )
        return self._sandboxes[key]


def _shows_calls(messages: Sequence[Mapping[str, Any]], names: Collection[str]) -> bool:
    """Say whether a chat shows calls of tools with these names."""
    for message in messages:
        for call in read_tool_calls(message):
            if str(value_at(call, "function", "name")) in names:
                return True
    return False


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.presets
#
# Guides by their names: built-in ones, and the files of PRESETS_DIR.
# --------------------------------------------------------------------------------------


_MAX_PRESET_CHARACTERS = 1_000_000


def find_preset(name: str, folder: str = "") -> Guide:
    """Return the guide of that name; one in `folder` wins over a built-in one.

    Raises InvalidRequest for an unknown name and for an invalid file.
    """
    name = name.strip()
    if not name:
        return NO_GUIDE
    path = _find_preset_file(name, folder)
    if path:
        return _read_preset_file(name, path)
    if name in BUILT_IN_GUIDES:
        return BUILT_IN_GUIDES[name]
    known_names = ", ".join(BUILT_IN_GUIDES)
    raise _preset_error(
        name, f"is neither a file of PRESETS_DIR nor one of {known_names}"
    )


def _find_preset_file(name: str, folder: str) -> str:
    """Return the path of a file in the folder; empty without one.

    A name cannot lead out of the folder, not even by a link.
    """
    if not folder.strip():
        return ""
    folder_path = realpath(folder.strip())
    try:
        path = realpath(join(folder_path, f"{name}.json"))
        getsize(path)
    except (OSError, ValueError):
        return ""
    return path if commonpath((folder_path, path)) == folder_path else ""


def _read_preset_file(name: str, path: str) -> Guide:
    """Return the guide in a file; raises InvalidRequest."""
    try:
        with open(path, encoding="utf-8") as file:
            return Guide.model_validate_json(file.read(_MAX_PRESET_CHARACTERS))
    except (OSError, ValueError):
        raise _preset_error(name, "cannot be read as a preset") from None


def _preset_error(name: str, problem: str) -> InvalidRequest:
    """Return the error of a preset that an administrator corrects."""
    return InvalidRequest(
        f"The preset {name} {problem}. An administrator has to correct PRESET in the "
        "valves, or the file."
    )


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.server_access
#
# What the valves may reach on the Pipelines server, by a variable of its environment.
#
# The server lets anybody change the valves who can reach its port, also a page in the
# browser of somebody who can: it answers pages of every origin and wants no key. So a
# valve that starts a program, names a file or a variable of the server, or sends keys and
# chats to another address is inactive unless the server itself allows it, where no request
# can.
# --------------------------------------------------------------------------------------


ACCESS_VARIABLE = "GPT5_AGENT_ALLOW"

_ALWAYS_ALLOWED = {"API_KEY": "env:OPENAI_API_KEY"}
"""What an empty valve would use as well."""
_SECRETS = ("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY")
_HEADERS = "EXTRA_HEADERS"
_REFERENCES = ("env:", "file:")
_FILES = ("PRESETS_DIR", "CA_BUNDLE")
_ADDRESS_ENTRY = "url:"
_OPENAI_HOST = ".api.openai.com"
"""Also of its regions, such as eu.api.openai.com."""
_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9:/._~%?=&\[\]-]+")
"""No password, and nothing that two readers of an address could take differently."""
BLOCKED_ADDRESS = "blocked:"
"""Stands for an address that is not allowed; nothing can be sent to it."""
_ADDRESSES = {"BASE_URL": BLOCKED_ADDRESS, "OPEN_WEBUI_URL": ""}
"""The valves with addresses, and what takes the place of one that is not allowed."""
_WHEELS = "wheels"
"""Of SANDBOX_OPTIONS: a folder of packages."""


def usable_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say, as the environment of this server allows it.

    The problems begin with what is inactive.
    """
    settings = read_valve_settings(valves)
    allowed = _allowed_entries()
    disabled = _disabled_valves(valves, allowed)
    secrets = _changed_secrets(valves, allowed)
    inactive = list(disabled)
    for name, secret in secrets.items():
        if UNREADABLE_SECRET in secret:  # of the headers it may be one value
            inactive.append(name)
    sandbox = settings.sandbox
    if sandbox.wheels.strip() and _WHEELS not in allowed:
        sandbox = sandbox.model_copy(update={_WHEELS: ""})
        inactive.append(_WHEELS)
    problems = [_inactive_valve(valves, name) for name in inactive]
    return settings._replace(
        valves=valves.model_copy(update={**disabled, **secrets}),
        sandbox=sandbox,
        problems=(*problems, *settings.problems),
    )


def usable_secrets(valves: Valves) -> Valves:
    """Return the valves with the secrets that this server allows; reads nothing else."""
    return valves.model_copy(update=_changed_secrets(valves, _allowed_entries()))


def _allowed_entries() -> Sequence[str]:
    """Return what the environment of this server allows."""
    return comma_list(os.environ.get(ACCESS_VARIABLE, ""))


def _disabled_valves(valves: Valves, allowed: Sequence[str]) -> dict[str, Any]:
    """Return the valves that would reach what is not allowed, by name.

    Each has the value that takes its effect away.
    """
    disabled: dict[str, Any] = {}
    if not valves.VERIFY_SSL and "VERIFY_SSL" not in allowed:
        disabled["VERIFY_SSL"] = True
    for name, blocked in _ADDRESSES.items():
        if not _is_usable_address(getattr(valves, name), name, allowed):
            disabled[name] = blocked
    if valves.SANDBOX and "SANDBOX" not in allowed:
        disabled["SANDBOX"] = False
    for name in _FILES:
        if getattr(valves, name).strip() and name not in allowed:
            disabled[name] = ""
    return disabled


def _changed_secrets(valves: Valves, allowed: Sequence[str]) -> dict[str, str]:
    """Return the secrets that are not used as they are stored, by the valve's name."""
    changed: dict[str, str] = {}
    for name in _SECRETS:
        secret = _usable_secret(getattr(valves, name), name, allowed)
        if name == "PROXY" and not _is_usable_proxy(secret, allowed):
            secret = UNREADABLE_SECRET
        if secret != getattr(valves, name):
            changed[name] = secret
    headers = _usable_headers(valves.EXTRA_HEADERS, allowed)
    if headers != valves.EXTRA_HEADERS:
        changed[_HEADERS] = headers
    return changed


def _usable_secret(stored: str, valve: str, allowed: Sequence[str]) -> str:
    """Return a secret, or `UNREADABLE_SECRET` in place of a reference that is not allowed.

    The path of a file is used as it is compared, so that no `..` leads elsewhere.
    """
    kind, _, target = stored.strip().partition(":")
    target = target.strip()
    if kind == "file":
        target = os.path.normpath(target)
    elif kind != "env":
        return stored
    reference = f"{kind}:{target}"
    patterns = [*allowed, _ALWAYS_ALLOWED.get(valve, "")]
    if any(fnmatchcase(reference, pattern) for pattern in patterns):
        return reference
    return UNREADABLE_SECRET


def _is_usable_proxy(secret: str, allowed: Sequence[str]) -> bool:
    """Say whether requests may go through a proxy, which reads those without TLS.

    A reference was allowed by itself: nobody else can change what it stands for.
    """
    is_empty = not secret.strip()
    return is_empty or secret.startswith(_REFERENCES) or "PROXY" in allowed


def _is_usable_address(stored: str, valve: str, allowed: Sequence[str]) -> bool:
    """Say whether keys and chats may go to an address."""
    address = stored.strip()
    if not address:
        return True
    parts = url_parts(address)
    if parts is None or not _PLAIN_ADDRESS.fullmatch(address):
        return False
    host = f".{parts.hostname}"  # with a dot, so that `notapi.openai.com` is another
    is_openai = parts.scheme == "https" and host.endswith(_OPENAI_HOST)
    if is_openai and valve == "BASE_URL":
        return True
    path = normpath(unquote(parts.path or "/"))
    origin = f"{parts.scheme}://{parts.netloc.lower()}"
    return any(_is_below(f"{origin}{path}", entry) for entry in allowed)


def _is_below(address: str, entry: str) -> bool:
    """Say whether an entry allows an address: it is the same, or its beginning.

    `*` matches any text without a slash, so that it leads to no other server.
    """
    if not entry.startswith(_ADDRESS_ENTRY):
        return False
    beginning = entry.removeprefix(_ADDRESS_ENTRY).strip().rstrip("/")
    pattern = re.escape(beginning).replace(r"\*", "[^/]*")
    return re.fullmatch(f"{pattern}(/.*)?", address) is not None


def _usable_headers(stored: str, allowed: Sequence[str]) -> str:
    """Return EXTRA_HEADERS with each of its values as it may be used."""
    headers = parse_json_object(stored)
    if headers is None:
        return _usable_secret(stored, _HEADERS, allowed)
    usable: dict[str, Any] = {}
    for name, value in headers.items():
        usable[name] = value
        if isinstance(value, str):
            usable[name] = _usable_secret(value, _HEADERS, allowed)
    return stored if usable == headers else json.dumps(usable)


def _inactive_valve(valves: Valves, name: str) -> str:
    """Return the message about a valve; references are quoted, as they are no secrets."""
    entry = name
    stored = str(getattr(valves, name, "")).strip()
    if name in _ADDRESSES:
        entry = f"{_ADDRESS_ENTRY}{stored}"
    elif stored.startswith(_REFERENCES):
        entry = stored
    elif name == _HEADERS:
        entry = "env:NAME"
    return (
        f"{name} is inactive, because this server does not allow it. An administrator "
        f"of the server can add `{entry}` to its environment variable "
        f"{ACCESS_VARIABLE}, and restart it."
    )


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.settings
#
# The settings of one call of the pipeline, from its valves and its request.
# --------------------------------------------------------------------------------------


class AgentInput(NamedTuple):
    """One question; `tools` run here.

    `notices` are for administrators, where `is_new` says that they were not yet shown.
    """

    strategy: str
    messages: Sequence[Mapping[str, Any]]
    body: Mapping[str, Any]
    settings: ValveSettings
    tools: Sequence[Tool] = ()
    caller: PipelineCaller = PipelineCaller()
    attached: AttachedToChat = AttachedToChat()
    notices: tuple[str, ...] = ()
    is_new: Callable[[str], bool] = show_always
    store_file: StoreFile | None = None
    repairs: RepairMemory | None = None
    pictures: PictureMemory | None = None

    @property
    def valves(self) -> Valves:
        """The valves that hold one value each."""
        return self.settings.valves

    def choose_text(self, key: str, default: str) -> str:
        """Return a text of the request; an object or list in it as JSON."""
        value = self.body.get(key)
        if isinstance(value, Mapping | list):
            return json.dumps(value)
        if isinstance(value, str) and value.strip():
            return value
        return default


def build_agent_request(
    question: AgentInput, endpoint: Endpoint, connections: Connections, log: AgentLog
) -> AgentRequest:
    """Return the request to the agent; raises InvalidRequest."""
    valves = question.valves
    rules = read_rules(valves.TOOL_APPROVAL, PIPELINE_SHELL)
    notices = question.notices
    if rules.problem:
        log.warn(rules.problem)
        notices = (*notices, rules.problem)

    def log_metadata(metadata: RunMetadata) -> None:
        log.note(json.dumps(metadata.wire()))

    return AgentRequest(
        strategy=question.strategy,
        parameters=_build_parameters(question),
        messages=question.messages,
        body=question.body,
        endpoint=endpoint,
        connections=connections,
        signing_secret=signing_secret(endpoint.api_key),
        limits=_build_run_limits(question),
        settings=_build_request_settings(question, endpoint),
        own_tools=_build_tool_settings(question, rules.rules),
        query=question.choose_text("query", ""),
        context=question.body.get("context") or valves.CONTEXT or None,
        notices=notices if question.caller.is_admin else (),
        is_new=question.is_new,
        chat=question.caller.workspace,
        log=log.note,
        redacted=log.redacted_for_model,
        debug=valves.DEBUG,
        on_end=log_metadata,
        user_id=question.caller.user_id,
        repairs=question.repairs,
        pictures=question.pictures,
    )


def _build_parameters(question: AgentInput) -> StrategyParameters:
    """Return what the strategy is to do: the request decides before the valves.

    Raises InvalidRequest.
    """
    valves = question.valves
    return StrategyParameters(
        model=question.choose_text("agent_model", valves.MODEL),
        instruction=question.choose_text("instruction", valves.INSTRUCTION),
        prompt_policy_overrides=question.choose_text(
            "prompt_policy_overrides", valves.PROMPT_POLICY_OVERRIDES
        ),
        policy_style=valves.POLICY_STYLE,
        guide=find_preset(valves.PRESET, valves.PRESETS_DIR),
        maximum_iterations=clamp_number(
            question.body.get("maximum_iterations"),
            1,
            MAX_ITERATIONS,
            valves.MAXIMUM_ITERATIONS,
        ),
        maximum_seconds=valves.MAXIMUM_SECONDS,
        maximum_tokens=valves.MAXIMUM_TOKENS,
        emit_intermediate_thoughts=_shows_thoughts(question),
    )


def _build_tool_settings(question: AgentInput, rules: ApprovalRules) -> OwnToolSettings:
    """Return the tools that run here, and the rules for all tools."""
    valves = question.valves
    timeouts = question.settings.timeouts
    own_tools = frozenset([DELEGATE, *(tool.name for tool in question.tools)])
    names = replace(question.attached.tool_names, own_tools=own_tools)
    return OwnToolSettings(
        tools=question.tools,
        approver=Approver(
            rules, other_names=names.other_names, may_match=names.may_match
        ),
        limits=CallLimits(
            seconds=timeouts.default,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
            own=timeouts.by_pattern,
        ),
        asks_in_chat=question.caller.can_ask,
        delegates=valves.DELEGATION,
        store_file=question.store_file,
    )


def _shows_thoughts(question: AgentInput) -> bool:
    """Say whether thoughts between the rounds are shown; raises InvalidRequest."""
    name = "emit_intermediate_thoughts"
    chosen = question.body.get(name)
    if chosen is None:
        return question.valves.EMIT_INTERMEDIATE_THOUGHTS
    return read_bool(name, chosen)


def read_api_key(valves: Valves) -> str:
    """Return the API key, or nothing if there is none that can be read."""
    with suppress(InvalidRequest):
        return _read_api_key(valves)
    return ""


def _read_api_key(valves: Valves) -> str:
    """Return the API key of the valves or of the environment; empty without one.

    Raises InvalidRequest for a key that cannot be read.
    """
    key = reveal_secret(valves.API_KEY, "API_KEY")
    return key or environment_key()


def build_endpoint(valves: Valves, log: AgentLog) -> Endpoint:
    """Return where requests go; `log` hides its secrets. Raises InvalidRequest."""
    if valves.BASE_URL == BLOCKED_ADDRESS:
        raise InvalidRequest(
            "The Pipelines server does not allow the address in BASE_URL. An "
            "administrator has to correct this valve, or to add the address to the "
            f"server's environment variable {ACCESS_VARIABLE}."
        )
    key = _read_api_key(valves)
    if not key:
        raise missing_key_error(PIPELINE_SHELL)
    valve = "EXTRA_HEADERS"
    sealed = read_headers(reveal_secret(valves.EXTRA_HEADERS, valve), PIPELINE_SHELL)
    endpoint = endpoint_of_valves(
        valves,
        api_key=key,
        proxy=reveal_secret(valves.PROXY, "PROXY"),
        headers={name: reveal_secret(value, valve) for name, value in sealed.items()},
    )
    log.hide(*endpoint.secrets)
    return endpoint


def _build_run_limits(question: AgentInput) -> Limits:
    """Return the limits of one request, and how often it is retried."""
    expert = question.settings.expert
    timeouts = expert.timeouts(_chosen_model(question))
    return Limits(timeouts=timeouts, retries=RetryPolicy(expert.max_retries))


def _chosen_model(question: AgentInput) -> ResolvedModel:
    """Return the model that the request or the valves name."""
    return resolve_model(question.choose_text("agent_model", question.valves.MODEL))


def _build_request_settings(question: AgentInput, endpoint: Endpoint) -> Settings:
    """Return the fields of a request that the valves decide."""
    valves = question.valves
    caller = question.caller
    summary = valves.REASONING_SUMMARY
    return Settings(
        effort=valves.REASONING_EFFORT or None,
        summary=None if summary == "disabled" else summary,
        verbosity=valves.VERBOSITY or None,
        stream=bool(question.body.get("stream")) and valves.ENABLE_STREAM,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults={
            **hash_ids("chat", caller.user_id, caller.chat_id),
            "context_management": _build_compaction(question, endpoint),
        },
    )


def _build_compaction(
    question: AgentInput, endpoint: Endpoint
) -> list[dict[str, Any]] | None:
    """Return when OpenAI compacts a chat; None if it does not.

    At COMPACTION_TOKENS, or at half of the model's window if that is less.
    """
    tokens = question.valves.COMPACTION_TOKENS
    window = _chosen_model(question).facts.context_window
    if window:
        tokens = min(tokens, window // 2)
    return compaction_settings(tokens, endpoint)


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.views
#
# Renders agent events: native events for Open WebUI, chunks for plain HTTP clients.
#
# Open WebUI stores the end of each step as a status line, and forwards the `agent:...`
# events to its listeners.
# --------------------------------------------------------------------------------------


_LISTENER_EVENTS: Mapping[type, str] = {
    NewMessage: "new_message",
    ToolCallRequested: "tool_call_request",
    ReadyForInput: "ready_for_input",
    StateChanged: "state_change",
}


def _build_listener_chunk(
    event: NewMessage | ToolCallRequested | ReadyForInput | StateChanged,
) -> Chunk:
    """Return an event for the host's listeners."""
    return host_event(f"agent:{_LISTENER_EVENTS[type(event)]}", event._asdict())


def _metadata_fields(metadata: RunMetadata | None) -> dict[str, Any]:
    """Return the field of a result that holds the metadata; empty without any."""
    if metadata is None:
        return {}
    return {"execution_metadata": metadata.wire()}


def _build_image_chunks(event: RunEvent) -> Iterator[Chunk]:
    """Yield the pictures of a tool, which the host stores as files."""
    if not isinstance(event, ToolOutput):
        return
    images = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in event.card.get("images", ())
    ]
    if images:
        yield {"choices": [{"index": 0, "delta": {"images": images}}]}


def _read_note(event: RunEvent) -> str:
    """Return what a person reads of the files of a tool; empty for other events."""
    if not isinstance(event, ToolOutput):
        return ""
    return "\n\n".join(event.card.get("notes", ()))


def _build_source_chunk(source: ContextSource) -> Chunk:
    """Return a text of the context as a source below the answer."""
    chunk = source_chunk(source.name, source.text)
    if source.url:
        shown = chunk["event"]["data"]
        shown["source"]["url"] = source.url
        # `[1]` in a text refers to the first distinct value of this key.
        shown["metadata"][0]["source"] = source.url
    return chunk


def _build_metadata_chunk(metadata: RunMetadata, note_count: int) -> Chunk:
    """Return the last line above the answer: what it took, how many notes there are."""
    line = metadata.describe(note_count)
    return _build_status_chunk(line, "execution_metadata", _metadata_fields(metadata))


def _build_status_chunk(line: str, action: str, fields: Mapping[str, Any]) -> Chunk:
    """Return a line above the answer; the host stores its `fields` with it."""
    return host_event(
        "status", {"description": line, "done": True, "action": action, **fields}
    )


def _build_step_chunk(event: StepStarted | StepEnded) -> Chunk:
    """Return a step of the log; the host stores the ends as status lines."""
    if isinstance(event, StepStarted):
        return host_event("agent:log", _build_started_step(event))
    return _build_status_chunk(
        format_step(event), "agent_log", _build_ended_step(event)
    )


def _build_started_step(step: StepStarted) -> dict[str, Any]:
    """Return a step that begins as a JSON object."""
    fields: dict[str, Any] = {
        "id": step.id,
        "kind": step.kind,
        "label": step.label,
        "parent": step.parent,
        "status": "start",
    }
    if step.detail:
        fields["detail"] = step.detail
    return fields


def _build_ended_step(event: StepEnded) -> dict[str, Any]:
    """Return a step that has ended as a JSON object."""
    fields: dict[str, Any] = {
        "id": event.step.id,
        "kind": event.step.kind,
        "label": event.step.label,
        "status": "finish",
        "seconds": round(event.seconds, 3),
    }
    if event.usage:
        fields["tokens"] = event.usage.total
    if event.detail:
        fields["detail"] = event.detail
    return fields


class HostRenderer:
    """Shows a run in Open WebUI."""

    def __init__(self, emits_thoughts: bool, origin: Origin, sign: Sign) -> None:
        """`origin` made the reasoning that is carried, `sign` signs it."""
        self._native = NativeRenderer(monotonic_seconds)
        self._citations = Citations()
        self._thoughts = ThoughtFilter(shows_thoughts=emits_thoughts)
        self._origin = origin
        self._sign = sign
        self._round_start = 0
        """How many items were shown before the current round."""
        self._note_count = 0
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted() | StepEnded():
                self._begin_step(event)
                yield _build_step_chunk(event)
            case RoundEnded():
                yield from self._attach_details(event)
            case ContextSource():
                yield _build_source_chunk(event)
            case ExecutionEnded():
                self._metadata = event.metadata
                yield _build_metadata_chunk(event.metadata, self._note_count)
            case ToolCallRequested():
                yield _build_listener_chunk(event)
                yield from self._render_note(call_above_card(event))
            case StateChanged() | NewMessage() | ReadyForInput():
                yield _build_listener_chunk(event)
            case _:
                yield from self._render_run_event(event)

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the complete answer, with the output that the host stores.

        The page shows no finish_reason: an answer that ended early needs its sentence.
        """
        items = self._native.shown.items
        ending = self._run_end.ending
        shown = self._run_end._replace(output=tuple(items))
        result = completion(shown, completion_id, created, model)
        if "usage" in result:
            result |= host_usage(shown)
        if ending.is_failure:
            result |= error_chunk(ending.sentence)
        if items:
            result["output"] = items
        return result | _metadata_fields(self._metadata)

    def _begin_step(self, event: StepStarted | StepEnded) -> None:
        """Remember where a round of the answer begins; tasks have rounds of their own."""
        match event:
            case StepStarted(kind="round", parent=""):
                self._thoughts.begin_round(may_call=event.may_call)
                self._round_start = len(self._native.shown.items)

    def _render_run_event(self, event: RunEvent) -> Iterator[Chunk]:
        """Yield an event of the API's run, then the files of a tool."""
        if isinstance(event, Status):
            self._note_count += 1
        if isinstance(event, RunDone):
            self._run_end = event
        yield from self._render_shown(self._thoughts.show(event))
        yield from self._render_note(_read_note(event))
        yield from _build_image_chunks(event)

    def _render_note(self, note: str) -> Iterator[Chunk]:
        """Yield a note as if the model had said it; its index is no other item's."""
        if not note:
            return
        index = -1 - len(self._native.shown.items)
        item = {"type": "message", "phase": "commentary", "id": f"note_{index}"}
        yield from self._native.render(ItemAdded(index, item))
        yield from self._native.render(ItemDone(index, item, shown=note))

    def _render_shown(self, events: Iterator[RunEvent]) -> Iterator[Chunk]:
        """Yield the events that people see, with their citations."""
        for event in events:
            for cited in self._citations.feed(event):
                yield from self._native.render(cited)

    def _attach_details(self, event: RoundEnded) -> Iterator[Chunk]:
        """Yield the thought of a round again, now with its details.

        If there is no thought, one is made where the host goes on, or where approvals
        for the chat have to be kept.
        """
        thought_index = self._find_thought()
        needs_carrier = event.continues or bool(event.notes.get("allowed"))
        if thought_index is None and needs_carrier:
            yield from self._render_shown(self._thoughts.build_carrier())
            thought_index = self._find_thought()
        if thought_index is None:
            return
        items_and_texts = [
            (item, self._thoughts.get_text(index)) for index, item in event.items
        ]
        details = write_details(
            event.name, items_and_texts, self._origin, event.notes, self._sign
        )
        thought = self._native.shown.items[thought_index]
        carrier = {**thought, "reasoning_details": details}
        yield self._native.shown.end(thought_index, carrier)

    def _find_thought(self) -> int | None:
        """Return the index of the round's first thought among the items shown."""
        items = self._native.shown.items
        for index in range(self._round_start, len(items)):
            if is_reasoning(items[index]):
                return index
        return None


class ClientRenderer:
    """Shows a run as chunks of a chat completion."""

    def __init__(
        self, emits_thoughts: bool, completion_id: str, created: int, model: str
    ) -> None:
        """Take the fields that every chunk repeats."""
        self._chunks = ChunkRenderer(completion_id, created, model)
        self._thoughts = ThoughtFilter(shows_thoughts=emits_thoughts)
        self._items: dict[int, Item] = {}
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted(kind="round", parent=""):
                self._thoughts.begin_round(may_call=event.may_call)
            case ExecutionEnded():
                self._metadata = event.metadata
                fields = _metadata_fields(event.metadata)
                yield {**self._chunks.head, "choices": [], **fields}
            case _ if not isinstance(event, AgentOnlyEvent):
                for shown in self._thoughts.show(event):
                    self._store_item(shown)
                    yield from self._chunks.render(shown)
                note = _read_note(event)
                if note:
                    yield from self._chunks.render(TextDelta(-1, "reasoning", 0, note))
                for chunk in _build_image_chunks(event):
                    yield {**self._chunks.head, **chunk}

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the whole answer at once."""
        shown = self._run_end._replace(output=tuple(self._items.values()))
        result = completion(shown, completion_id, created, model)
        return {**result, **_metadata_fields(self._metadata)}

    def _store_item(self, shown: RunEvent) -> None:
        """Keep what a result consists of."""
        match shown:
            case ItemDone() | ToolOutput():
                self._items[shown.output_index] = shown.item
            case RunDone():
                self._run_end = shown


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.answers
#
# Answers one call of the pipeline: a chat as a stream or as one result, or a task.
#
# Nothing is raised: an exception would remove what is already shown.
# --------------------------------------------------------------------------------------


DONE_LINE = "data: [DONE]"

_Events = AsyncGenerator[AgentEvent, None]
_Renderer = HostRenderer | ClientRenderer


class PipelineCall(NamedTuple):
    """One call of the pipeline, with what is needed to answer it."""

    question: AgentInput
    caller: PipelineCaller
    connections: Connections
    own_tools: OwnToolPool
    log: AgentLog


async def stream_answer(call: PipelineCall) -> AsyncGenerator[AnswerPiece, None]:
    """Yield the answer in the reader's form, closed by an end marker."""
    try:
        if call.caller.task:
            async with aclosing(_stream_task(call)) as chunks:
                async for chunk in chunks:
                    yield chunk
        else:
            async with _open_run(call) as (events, renderer):
                async for event in events:
                    for chunk in renderer.show(event):
                        yield chunk
    except Exception as error:  # raised, it would take away what has been shown
        message = report_exception(call.log, error, PIPELINE_SHELL)
        yield _readable_chunk(error_chunk(message), call.caller)
    yield DONE_LINE


async def answer_once(call: PipelineCall) -> Chunk:
    """Return the complete answer as one result."""
    try:
        if call.caller.task:
            return await _run_task(call)
        async with _open_run(call) as (events, renderer):
            async for event in events:
                for _ in renderer.show(event):
                    pass
        return renderer.result(
            _new_completion_id(), unix_seconds(), call.caller.host_model
        )
    except Exception as error:  # raised, it would be no answer, only HTTP 500
        return error_chunk(report_exception(call.log, error, PIPELINE_SHELL))


@asynccontextmanager
async def _open_run(
    call: PipelineCall,
) -> AsyncGenerator[tuple[_Events, _Renderer], None]:
    """Open the tools of an answer; give the agent's events and their renderer."""
    caller = call.caller
    log = call.log
    valves = call.question.valves
    endpoint = build_endpoint(valves, log)
    key = WorkspaceKey(caller.user_id, caller.chat_id or log.run_id)
    attached = call.question.attached.files
    host_files = open_host_files(valves, caller.user_id, attached, log)
    async with aclosing(host_files) as files:
        offer = await call.own_tools.open_tools(
            call.question.settings, key, log, files, call.question.messages
        )
        question = call.question._replace(
            tools=offer.tools,
            notices=(*call.question.notices, *offer.problems),
            store_file=files.store if caller.host_reads else None,
        )
        request = build_agent_request(question, endpoint, call.connections, log)
        renderer = _choose_renderer(request, caller)
        async with (
            aclosing(run_agent(request)) as events,
            aclosing(_report_end(call, events)) as reported_events,
        ):
            yield reported_events, renderer


async def _report_end(call: PipelineCall, events: _Events) -> _Events:
    """Yield the events, the last one as it is reported."""
    async for event in events:
        yield _reported(call, event) if isinstance(event, RunDone) else event


def _reported(call: PipelineCall, ended: RunDone) -> RunDone:
    """Log an end, and return it; a failure gets the error id of the log."""
    report_skipped(call.log, ended.trace)
    if not ended.ending.is_failure:
        return ended
    ending = report_failure(
        call.log, ended, PIPELINE_SHELL, is_admin=call.caller.is_admin
    )
    return ended._replace(ending=ending)


def _choose_renderer(request: AgentRequest, caller: PipelineCaller) -> _Renderer:
    """Return the renderer of the reader: Open WebUI or a plain client."""
    emits_thoughts = request.parameters.emit_intermediate_thoughts
    if not caller.host_reads:
        return ClientRenderer(
            emits_thoughts, _new_completion_id(), unix_seconds(), caller.host_model
        )
    family = resolve_model(request.parameters.model).family
    origin = origin_at(family, request.endpoint)
    return HostRenderer(emits_thoughts, origin, request.sign)


async def _stream_task(call: PipelineCall) -> AsyncGenerator[Chunk, None]:
    """Yield the text of a task as it grows."""
    renderer = ChunkRenderer(
        _new_completion_id(), unix_seconds(), call.caller.host_model
    )
    async with aclosing(_task_events(call)) as events:
        async for event in events:
            for chunk in renderer.render(event):
                yield _readable_chunk(chunk, call.caller)


def _readable_chunk(chunk: Chunk, caller: PipelineCaller) -> Chunk:
    """Return a chunk in a form that its reader shows."""
    return error_as_text(chunk) if caller.drops_errors else chunk


async def _run_task(call: PipelineCall) -> Chunk:
    """Return a title, a summary or the like; empty if it failed.

    A title that failed is no reason to fail a chat.
    """
    text = ""
    try:
        async with aclosing(_task_events(call)) as events:
            async for event in events:
                if not isinstance(event, RunDone):
                    continue
                if is_usable_text(call.caller.task, event.ending):
                    text = completion_text(event)
    except Exception as error:
        report_exception(call.log, error, PIPELINE_SHELL)
    return task_result(text, call.caller.host_model)


async def _task_events(call: PipelineCall) -> RunEvents:
    """Yield the events of a task, without the loop; the log gets a failure."""
    log = call.log
    endpoint = build_endpoint(call.question.valves, log)
    settings = build_agent_request(call.question, endpoint, call.connections, log)
    request = _build_task(settings, settings.body, call.caller.task)

    def is_as_configured() -> bool:
        return request == _build_task(settings, {}, call.caller.task)

    learning = RepairLearning(settings, request.model, is_as_configured)
    repaired = learning.repaired(request)
    events = run(repaired, endpoint, call.connections, settings.limits)
    async with aclosing(events):
        async for event in events:
            learning.note(event)
            yield _reported(call, event) if isinstance(event, RunDone) else event


def _build_task(
    settings: AgentRequest, body: Mapping[str, Any], task: str
) -> ResponsesRequest:
    """Return the request of a task, with what `body` sets; raises InvalidRequest.

    Titles and the like are done at the lowest effort of the agent's model, other tasks
    at its own, without a limit that nobody has chosen.
    """
    model = resolve_model(settings.parameters.model)
    at_own_effort = task not in SMALL_TASKS
    if at_own_effort:
        body = without_hosts_limit(body, task)
        if settings.settings.effort:
            body = {"reasoning_effort": settings.settings.effort, **body}
    return task_request(
        model,
        settings.messages,
        body,
        task,
        at_own_effort=at_own_effort,
        stream=settings.settings.stream,
    )


def _new_completion_id() -> str:
    """Return the id of a chat completion."""
    return f"chatcmpl-{new_ulid()}"


# --------------------------------------------------------------------------------------
# gpt5_agent.shell.request_keys
#
# What a request may set; everything else is the administrator's.
#
# Whoever may chat writes the body of a request: a person on Open WebUI's page through
# custom parameters, or any client of the Pipelines server.
# --------------------------------------------------------------------------------------


_CHAT_KEYS = frozenset(
    {
        "model",
        "messages",
        "stream",
        CONTEXT_KEY,
        # The sender runs these tools: only functions are offered to the model.
        "tools",
        "tool_choice",
        "response_format",
        "json_schema",
        "stop",
        "temperature",
        "top_p",
        "top_logprobs",
        # The model's own limit is the default, so these only make an answer shorter.
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
    }
)
"""What every client of chats needs; it costs nothing more and changes no rule."""

_FIELD_KEYS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields of the API's objects, with the keys that mean the same."""

_SETTINGS = frozenset(
    {
        "agent_model",
        "instruction",
        "prompt_policy_overrides",
        "maximum_iterations",
        "context",
        "query",
        "emit_intermediate_thoughts",
        "reasoning_effort",
        "reasoning_summary",
        "verbosity",
    }
).union(ResponsesRequest.model_fields)
"""The keys that mean something here or to the API; others are dropped anyway."""

_NEVER = frozenset({"store", "background", "instructions", "input", "include"})
"""Keys of the API that no setting opens."""


def find_unknown_keys(may_set: str) -> str:
    """Return the message about words of `caller_may_set` that name no key, if any."""
    known = (_SETTINGS | _CHAT_KEYS) - _NEVER
    advice = "No key that requests may set has such a name."
    return unknown_permissions(comma_list(may_set.lower()), known, advice)


def select_keys(
    body: Mapping[str, Any], may_set: str
) -> tuple[dict[str, Any], list[str]]:
    """Return what a request may set, and the names of the settings left out.

    `may_set` is `caller_may_set` of EXPERT_JSON.
    """
    allowed = _CHAT_KEYS.union(comma_list(may_set.lower()))
    kept: dict[str, Any] = {}
    refused: set[str] = set()
    for key, value in body.items():
        if key in allowed:
            kept[key] = value
        elif key in _FIELD_KEYS and isinstance(value, Mapping):
            kept[key], refused_fields = _select_fields(key, value, allowed)
            refused |= refused_fields
        elif value is not None:
            refused.add(key)
    return kept, sorted(refused & _SETTINGS)


def _select_fields(
    key: str, fields: Mapping[str, Any], allowed: Collection[str]
) -> tuple[dict[str, Any], set[str]]:
    """Return the allowed fields of an object, and the keys of the settings left out."""
    kept: dict[str, Any] = {}
    refused: set[str] = set()
    for field, value in fields.items():
        setting = _FIELD_KEYS[key].get(field, key)
        if setting in allowed:
            kept[field] = value
        else:
            refused.add(setting)
    return kept, refused


# --------------------------------------------------------------------------------------
# gpt5_agent.pipeline
#
# The story of a question, from the Pipelines server's call to the last piece.
# --------------------------------------------------------------------------------------


_MIN_THREADS = 400
"""The server gives 40 threads to all its streams, and each of ours waits in one."""

_NOTICE_SECONDS = 3600.0
"""After an hour, administrators read a notice again."""

_STOPPED_TEXT = (
    "The Pipelines server was stopped or reloaded its pipelines, which ended this "
    "answer. Ask again."
)


class _UnloggedAnswer(dict[str, Any]):
    """A complete answer; the server writes its `repr` to the log."""

    def __repr__(self) -> str:
        """Return nothing of the content."""
        return "a whole answer"


class Pipeline:
    """Two agents, which share one loop."""

    Valves = Valves

    def __init__(self) -> None:
        """Open nothing: the server creates one at every load."""
        self.type = "manifold"
        self.valves = self.Valves()
        self._connections = Connections()
        self._own_tools = OwnToolPool()
        self._logged = RecentTexts()
        """What the log has said today about requests and valves."""
        self._repairs = RepairMemory()
        self._pictures = PictureMemory()
        self._shown_notices = RecentTexts(seconds=_NOTICE_SECONDS)
        self._restore_sigterm: Callable[[], object] | None = None
        self._bridge = AsyncBridge(error_chunk(_STOPPED_TEXT), self._close_all)

    def pipelines(self) -> list[dict[str, str]]:
        """Return the agents as models."""
        return [
            {"id": strategy, "name": name} for strategy, name in STRATEGY_NAMES.items()
        ]

    async def on_startup(self) -> None:
        """Let more answers wait at once, and end them when the server is stopped."""
        _raise_thread_limit()
        self._restore_sigterm = close_on_sigterm(self._bridge)

    async def on_shutdown(self) -> None:
        """End all answers and close everything."""
        if self._restore_sigterm is not None:
            self._restore_sigterm()
        await asyncio.to_thread(self._bridge.close)

    async def inlet(
        self, body: dict[str, Any], user: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Put what is known of the chat into the body: `pipe` gets no metadata.

        It is signed, because Open WebUI also passes on bodies that saw no inlet.
        """
        context = read_inlet_context(body, user)
        sign = _context_signer(usable_secrets(self.valves))
        return {**body, CONTEXT_KEY: sign_object(context, sign)}

    def pipe(
        self,
        user_message: str | None,  # noqa: ARG002 - the server passes it by this name
        model_id: str,
        messages: Sequence[Mapping[str, Any]],
        body: dict[str, Any],
    ) -> Iterator[AnswerPiece] | dict[str, Any]:
        """Return an iterator if the caller streams, else one complete result.

        `user_message` is the last message of the user, which `messages` has.
        """
        settings = usable_settings(self.valves)
        if not _is_from_inlet(body, settings.valves):
            body = {key: value for key, value in body.items() if key != CONTEXT_KEY}
        caller = read_caller(body)
        log = AgentLog(new_ulid()[-10:])
        question = AgentInput(
            strategy=model_id,
            messages=messages,
            body=self._select_keys(body, settings.expert.caller_may_set, caller, log),
            settings=settings,
            caller=caller,
            attached=read_attached(body),
            notices=self._find_notices(settings, log),
            is_new=self._shown_notices.first_time,
            repairs=self._repairs,
            pictures=self._pictures,
        )
        call = PipelineCall(question, caller, self._connections, self._own_tools, log)
        try:
            if caller.streams:
                return self._bridge.stream(stream_answer(call))
            return _UnloggedAnswer(self._bridge.run(answer_once(call)))
        except BridgeClosed:
            error = error_chunk(_STOPPED_TEXT)
            if caller.streams:
                return iter((error, DONE_LINE))
            return error

    def _select_keys(
        self,
        body: Mapping[str, Any],
        may_set: str,
        caller: PipelineCaller,
        log: AgentLog,
    ) -> dict[str, Any]:
        """Return what a body may set; log once a caller what is left out."""
        kept, refused = select_keys(body, may_set)
        who = f"user {caller.user_id[:40]}" if caller.user_id else "a plain client"
        line = left_out_line(who, dict.fromkeys(refused, ""), self._logged.first_time)
        if line:
            log.warn(line)
        return kept

    def _find_notices(self, settings: ValveSettings, log: AgentLog) -> tuple[str, ...]:
        """Return, and log once, what is wrong with the valves."""
        messages = list(settings.problems)
        unknown_keys = find_unknown_keys(settings.expert.caller_may_set)
        if unknown_keys:
            messages.append(unknown_keys)
        for message in messages:
            if self._logged.first_time(message):
                log.warn(message)
        return tuple(messages)

    async def _close_all(self) -> None:
        """Close what all answers share."""
        await self._own_tools.close()
        await self._connections.close()


def _is_from_inlet(body: Mapping[str, Any], valves: Valves) -> bool:
    """Say whether the context of a body is ours, and about the user who sends it.

    Open WebUI itself names that user. The server lets anybody who can reach it ask
    the inlet.
    """
    context = as_mapping(body.get(CONTEXT_KEY))
    sender = value_at(body, "user", "id")
    if sender and context.get("user_id") not in (None, sender):
        return False
    return is_signed(context, _context_signer(valves))


def _context_signer(valves: Valves) -> Sign:
    """Return what signs the context."""
    secret = signing_secret(read_api_key(valves))
    return signer(secret, "gpt5_agent context")


def _raise_thread_limit() -> None:
    """Raise the limit of the running loop; without anyio there is none."""
    try:
        threads = import_module("anyio.to_thread")
    except ImportError:
        return
    limiter = threads.current_default_thread_limiter()
    limiter.total_tokens = max(limiter.total_tokens, _MIN_THREADS)
