"""What the turns of a chat change: tools, effort, text format. The chat only grows.

A request has the tools, the effort and the format of the first turn that its model
answered. What a later turn changed is an item in front of its question, now and
in all later requests. So each request begins with the last one, for the prompt cache
and for the newest models, which drop reasoning whose beginning changed
(docs/reference/responses-api.md, "Changed beginnings").
"""

import json
import zlib
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, NamedTuple

from openai_responses.appended import APPENDED, declared_tools, lower_payload
from openai_responses.items import ADDED_TOOLS, CONFIGURATION, Item, item_type
from openai_responses.json_input import (
    JsonBudget,
    JsonTooLarge,
    as_mapping,
    compact_json,
)
from openai_responses.requests.build import SAMPLING, ResponsesRequest
from openai_responses.requests.tools import tool_identity

_MAX_STORED_TURN = 150_000
"""Bytes: a chat's row is read and written whole."""
_MAX_UNPACKED_TURN = 900_000
"""Bytes of JSON. The tools and the format of a request are limited to 800,000. What
repeats itself packs into a thousandth, and each later question sends it unpacked."""
_MAX_DECLARED_TOOLS = 128
"""Of more the API refuses the whole request: `array_above_max_length` (Tools4AI 16)."""
_SETTINGS = (("reasoning", "effort"), ("text", "format"))
"""What a `configuration_update` can change (types of openai-python 3.54.0)."""
_UNSTATED = (None, {"type": "json_object"})
"""Values that it cannot state: its format is a text or a `json_schema`."""


class Turn(NamedTuple):
    """What one turn changed for its model, as it is stored."""

    model: str
    items: Sequence[Item] = ()
    """They are in front of its question."""
    base: Item | None = None
    """The fields of the request if the chat begins here; then no earlier turn holds."""

    def packed(self) -> bytes:
        """Return the stored form; empty if it is too long.

        It is compressed on its own: the length of text compressed together with
        instructions would tell about them.
        """
        try:
            text = compact_json(self)
        except ValueError:  # a lone surrogate
            text = json.dumps(self).encode()
        return _pack(text)


@lru_cache(maxsize=8)
def _pack(text: bytes) -> bytes:
    """Compress a turn: its length is needed before it is sent, its bytes when it is stored.

    Chats that begin with the same tools share the work.
    """
    if len(text) > _MAX_UNPACKED_TURN:
        return b""
    packed = zlib.compress(text)
    return packed if len(packed) <= _MAX_STORED_TURN else b""


def read_turn(packed: bytes, unpacked_left: JsonBudget) -> Turn | None:
    """Return a stored turn; None for one whose tools lie in namespaces.

    Earlier versions declared many tools that way. Such a chat resets, with the
    tools as they are declared now. Raises JsonTooLarge for one that unpacks to more than
    is stored, or than is left for its chat.
    """
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(packed, _MAX_UNPACKED_TURN)
    if unpacker.unconsumed_tail:
        raise JsonTooLarge
    unpacked_left.spend(len(text))
    turn = Turn(*json.loads(text))  # a tuple is a list in JSON
    tools = (turn.base or {}).get("tools", ())
    has_namespaces = any(tool.get("type") == "namespace" for tool in tools)
    return None if has_namespaces else turn


def record_turn(
    request: ResponsesRequest, earlier: Sequence[Turn], default_effort: str | None
) -> Turn | None:
    """Return what a request changes after the `earlier` turns of its model.

    None for what is too long to be stored. The chat resets with what cannot be appended:
    another schema of a tool, more tools than fit, an effort or a format that no update
    can state. Remote servers are not stored, because their fields can be secret.
    """
    tools = [tool for tool in request.tools or () if tool["type"] != "mcp"]
    settings = {key: as_mapping(getattr(request, key)) for key, _ in _SETTINGS}
    fields: Item = {"tools": tools, **settings}
    turn = Turn(request.model, base=fields)
    items = _changed_items(fields, earlier, default_effort) if earlier else None
    if items is not None:
        turn = Turn(request.model, items)
    return turn if turn.packed() else None


def _changed_items(
    fields: Item, earlier: Sequence[Turn], default_effort: str | None
) -> list[Item] | None:
    """Return what differs from the `earlier` turns; None if items cannot state it."""
    base = earlier[0].base or {}
    items = [item for turn in earlier for item in turn.items]
    held = lower_payload({**base, "input": items}, APPENDED)
    known = {tool_identity(tool): tool for tool in held.get("tools", ())}
    new: list[Item] = []
    for tool in fields["tools"]:
        old = known.get(tool_identity(tool))
        if old is None:
            new.append(tool)
        # A description may change; a declared tool keeps its old one.
        elif {**old, "description": None} != {**tool, "description": None}:
            return None
    if len(known) + len(new) > _MAX_DECLARED_TOOLS:
        return None
    defaults = {"effort": default_effort, "format": {"type": "text"}}
    update: Item = {}
    for key, name in _SETTINGS:
        value = fields[key].get(name) or defaults[name]
        if value != (held[key].get(name) or defaults[name]):
            if value in _UNSTATED:
                return None
            update[key] = {name: value}
    stated: list[Item] = []
    if new:
        stated.append({"type": ADDED_TOOLS, "role": "developer", "tools": new})
    if update:
        stated.append({"type": CONFIGURATION, **update})
    return stated


def append_turns(
    request: ResponsesRequest, turns: Mapping[str, Turn], kinds: Set[str]
) -> tuple[ResponsesRequest, dict[str, list[Item]]]:
    """Return a request with the fields of the first turn, and the items of each turn.

    They go in front of its question. `turns` are those of its model from the last
    one that begins; `kinds` are the types of items that may be appended. In pro mode
    the configuration stays in the request.
    """
    # "The 'configuration_update' item type is not supported with pro or tournament
    # models." (OpenRouter, of gpt-6-astra)
    if as_mapping(request.reasoning).get("mode") == "pro":
        kinds = kinds - {CONFIGURATION}
    first_turn = next(iter(turns.values()))
    base = first_turn.base or {}
    items: dict[str, list[Item]] = {}
    added: list[Item] = []
    for name, turn in turns.items():
        items[name] = [item for item in turn.items if item_type(item) in kinds]
        added += items[name]
    fields: dict[str, Any] = {}
    if CONFIGURATION in kinds:
        # Both efforts decide whether sampling is taken.
        effort = as_mapping(request.reasoning).get("effort")
        if effort != base["reasoning"].get("effort"):
            for parameter in SAMPLING:
                fields[parameter] = None  # it is not sent
        for key, setting in _SETTINGS:
            settings = dict(as_mapping(getattr(request, key)))
            settings.pop(setting, None)
            if setting in base[key]:
                settings = {setting: base[key][setting], **settings}
            fields[key] = settings or None
    if ADDED_TOOLS in kinds:
        offered = request.tools or ()
        # A server's fields may be secret, so turns do not store it (`record_turn`).
        servers = [tool for tool in offered if tool["type"] == "mcp"]
        tools = [*servers, *base["tools"]] or None
        declared = declared_tools({"tools": tools, "input": added})
        fields["tools"] = tools
        fields["tool_choice"] = _restrict_choice(request.tool_choice, offered, declared)
    return request.model_copy(update=fields), items


def _restrict_choice(
    choice: object, offered: Sequence[Item], declared: Sequence[Item]
) -> object:
    """Return a choice that leaves out what is declared and not offered any more."""
    # A tool that is not offered any more stays declared: without it the beginning would
    # change. `tool_choice` is no part of the beginning (pydantic-ai 2.68.0, measured).
    identities = {tool_identity(tool) for tool in offered}
    left = [tool for tool in declared if tool_identity(tool) in identities]
    is_one_tool = isinstance(choice, Mapping) and choice.get("type") != "allowed_tools"
    is_open = is_one_tool or choice in (None, "auto", "required")
    if len(left) == len(declared) or not is_open:
        return choice
    if not left:
        return "none"
    mode = choice or "auto"
    if is_one_tool:  # after its first call nothing else would leave the others out
        left = [{**as_mapping(choice)}]
        mode = "required"
    named = [{key: tool[key] for key in tool if key in _CHOICE_KEYS} for tool in left]
    return {"type": "allowed_tools", "mode": mode, "tools": named}


_CHOICE_KEYS = ("type", "name", "server_label")
"""What names a tool in `allowed_tools`."""
