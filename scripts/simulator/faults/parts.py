"""Which part of a request is refused, and in which words."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.checks.items import read_item_id, read_item_type
from simulator.checks.shape import list_item_types
from simulator.configuration import NEWER_TYPES
from simulator.faults.forms import build_reply
from simulator.refusals import (
    Refusal,
    refuse_missing_parameter,
    refuse_unknown_parameter,
    refuse_value,
)
from simulator.request import ValidRequest
from simulator.scenarios.scenario import HttpReply, Reply

Item = Mapping[str, Any]
ID_WORDS = {
    "function_call": "No tool output found for function call {id}.",
    "custom_tool_call": "No tool output found for custom tool call {id}.",
    "function_call_output": (
        "No tool call found for function call output with call_id {id}."
    ),
    "custom_tool_call_output": (
        "No tool call found for custom tool call output with call_id {id}."
    ),
    "reasoning": (
        "Item '{id}' of type 'reasoning' was provided without its required following "
        "item."
    ),
    "code_interpreter_call": "Expected container_id: {id}.",
}
LOOKUP_WORDS = (
    "Item with id '{id}' not found. Items are not persisted when `store` is set to "
    "false. Try again with `store` set to true, or remove this item from your input."
)
PHRASES = {
    "code_interpreter_call": "Container is expired.",
    "function_call": "The input holds a function call that cannot be read.",
    "configuration_update": (
        "The 'configuration_update' item type is not supported with pro or tournament "
        "models."
    ),
    "reasoning": (
        "Reasoning input items can only be provided to a reasoning or computer use "
        "model. Remove reasoning items from your input and try again."
    ),
}
UNNAMED = "The server could not process this request."
SOURCES = {"input_image": "image_url", "input_file": "file_data"}


@dataclass(frozen=True)
class _Place:
    """A part that is refused: its path, and the API's messages about it."""

    path: str
    words: Refusal
    id: str = ""
    id_words: str = ""
    phrase: str = ""


@dataclass(frozen=True)
class RefusedPart:
    """Refuses each request that holds a part; made by the functions below."""

    place: str
    """``item``, ``tool`` or ``parameter``."""
    name: str = ""
    """The type of an item, the name or the type of a tool, the path of a parameter."""
    text: str = ""
    """What the part must contain, anywhere."""
    key: str = ""
    """The field of an item that is unknown; with ``missing``, that is required."""
    part: str = ""
    """The type of the content part that is refused."""
    missing: bool = False
    form: str = "fields"
    delivery: str = "http"
    status: int = 400
    chat: str = ""
    """Only requests with this text anywhere in their input."""

    def reply_to(self, request: ValidRequest) -> Reply | HttpReply | None:
        """Return the refusal of a request; None if it does not hold the part."""
        if self.chat and self.chat not in _write(request.items):
            return None
        place = self._find(request)
        if place is None:
            return None
        streams = request.body.get("stream") and not request.body.get("background")
        refusal, form = self._words(place)
        refusal.status = self.status
        return build_reply(refusal, form, self.delivery if streams else "http")

    def _words(self, place: _Place) -> tuple[Refusal, str]:
        """Return the message in the wanted form, or else the one with the path."""
        if self.form == "unnamed":
            return Refusal(UNNAMED), "message"
        if self.form == "id" and place.id:
            return Refusal(place.id_words.format(id=place.id)), "id"
        if self.form == "phrase" and place.phrase:
            return Refusal(place.phrase), "phrase"
        if self.form in ("id", "phrase"):
            return place.words, "message"
        return place.words, self.form

    def _find(self, request: ValidRequest) -> _Place | None:
        if self.place == "parameter":
            return self._find_parameter(request.body)
        is_tool = self.place == "tool"
        candidates = _list_tools(request) if is_tool else _list_items(request)
        for path, candidate in candidates:
            if self.text not in _write(candidate):
                continue
            if is_tool:
                place = self._look_at_tool(path, candidate)
            else:
                place = self._look_at_item(path, candidate)
            if place is not None:
                return place
        return None

    def _find_parameter(self, body: Item) -> _Place | None:
        inner: Any = body
        for name in self.name.split("."):
            if not isinstance(inner, Mapping) or name not in inner:
                return None
            inner = inner[name]
        phrase = f"Unsupported parameter: '{self.name}' is not supported with this"
        words = refuse_unknown_parameter(self.name)
        return _Place(self.name, words, phrase=f"{phrase} model.")

    def _look_at_item(self, path: str, item: Item) -> _Place | None:
        kind = read_item_type(item)
        if self.name not in ("", kind):
            return None
        words = self._item_words(path, item)
        if words is None:
            return None
        id = item.get("call_id") or item.get("container_id") or read_item_id(item) or ""
        phrase = PHRASES.get(kind, "")
        return _Place(path, words, id, ID_WORDS.get(kind, LOOKUP_WORDS), phrase)

    def _item_words(self, path: str, item: Item) -> Refusal | None:
        if self.part:
            return _refuse_part(path, item, self.part)
        if self.key:
            if (self.key in item) == self.missing:
                return None
            key_path = f"{path}.{self.key}"
            if self.missing:
                return refuse_missing_parameter(key_path)
            return refuse_unknown_parameter(key_path)
        if read_item_type(item) in NEWER_TYPES:  # as servers that do not know it
            kinds = [name for name in list_item_types() if name not in NEWER_TYPES]
            return refuse_value(f"{path}.type", read_item_type(item), kinds)
        words = f"Invalid '{path}': an item of type '{read_item_type(item)}' is not "
        words += "supported here."
        return Refusal(words, code="invalid_value", param=path)

    def _look_at_tool(self, path: str, tool: Item) -> _Place | None:
        name = tool.get("name")
        kind = tool["type"]
        if self.name not in ("", name, kind):
            return None
        if kind == "function":
            text = f"Invalid schema for function '{name}': In context=(), schema is "
            text += "not supported"
            code = "invalid_function_parameters"
            leaf = f"{path}.parameters"
            words = Refusal(f"{text}: '{leaf}'.", code=code, param=leaf)
            return _Place(path, words, phrase=f"{text}.")
        leaf = f"{path}.type"
        words = Refusal(
            f"Invalid '{leaf}': '{kind}' is not supported with this model.",
            code="invalid_value",
            param=leaf,
        )
        phrase = f"Hosted tool '{kind}' is not supported with this model."
        return _Place(path, words, phrase=phrase)


def refuse_item(type: str = "", **more: Any) -> RefusedPart:
    """Refuse items: of a type, with a ``text``, a ``key``, a ``part`` in the content.

    ``refuse_item("web_search_call", key="id", missing=True)`` asks for an id.
    """
    return RefusedPart("item", type, **more)


def refuse_tool(name: str, **more: Any) -> RefusedPart:
    """Refuse a tool by its name, a hosted one by its type."""
    return RefusedPart("tool", name, **more)


def refuse_parameter(path: str, **more: Any) -> RefusedPart:
    """Refuse a parameter of the request, such as ``text.verbosity``."""
    return RefusedPart("parameter", path, **more)


def _refuse_part(path: str, item: Item, kind: str) -> Refusal | None:
    for name in ("content", "output"):
        rows = item.get(name)
        for index, part in enumerate(rows if isinstance(rows, list) else ()):
            if part.get("type") != kind:
                continue
            part_path = f"{path}.{name}[{index}]"
            if kind in SOURCES:
                part_path += f".{SOURCES[kind]}"
            words = f"Invalid '{part_path}'. Expected a value that can be read, but "
            words += "got a value that cannot."
            return Refusal(words, code="invalid_value", param=part_path)
    return None


def _list_items(request: ValidRequest) -> Iterator[tuple[str, Item]]:
    for index, item in enumerate(request.items):
        yield f"input[{index}]", item


def _list_tools(request: ValidRequest) -> Iterator[tuple[str, Item]]:
    yield from _number(request.body.get("tools") or (), "tools")
    for path, item in _list_items(request):
        if read_item_type(item) == "additional_tools":
            yield from _number(item["tools"], f"{path}.tools")


def _number(tools: Sequence[Item], path: str) -> Iterator[tuple[str, Item]]:
    for index, tool in enumerate(tools):
        yield f"{path}[{index}]", tool
        yield from _number(tool.get("tools") or (), f"{path}[{index}].tools")


def _write(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
