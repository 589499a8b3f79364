"""A fault: a part of a request is refused, with the message of the API for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.checks.configuration import refuse_newer_type
from simulator.checks.items import read_item_id, read_item_type
from simulator.configuration import NEWER_TYPES
from simulator.faults.forms import build_reply
from simulator.refusals import Refusal, refuse
from simulator.request import ValidRequest
from simulator.scenarios.scenario import HttpReply, Reply

Item = Mapping[str, Any]
ID_MESSAGES = {
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
LOOKUP_MESSAGE = (
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
"""The field of a content part that a refusal is about."""


@dataclass(frozen=True)
class _FoundPart:
    """A part that is refused: its path, and what the API says about it."""

    path: str
    refusal: Refusal
    id: str = ""
    id_message: str = ""
    """With a placeholder for the id."""
    phrase: str = ""
    """The message that contains neither a path nor an id."""


@dataclass(frozen=True)
class RefusedPart:
    """Refuses each request that contains a part; made by the functions below."""

    place: str
    """``item``, ``tool`` or ``parameter``."""
    name: str = ""
    """The type of an item, the name or the type of a tool, the path of a parameter."""
    text: str = ""
    """What the part must contain, at any depth."""
    key: str = ""
    """The field of an item that is unknown; with ``missing``, that is required."""
    part: str = ""
    """The type of the content part that is refused."""
    missing: bool = False
    form: str = "fields"
    delivery: str = "http"
    status: int = 400
    chat: str = ""
    """Only requests whose input contains this text."""

    def reply_to(self, request: ValidRequest) -> Reply | HttpReply | None:
        """Return the refusal of a request; None if it does not contain the part."""
        if self.chat and self.chat not in _as_json(request.items):
            return None
        found = self._find(request)
        if found is None:
            return None
        streams = request.body.get("stream") and not request.body.get("background")
        refusal, form = self._refusal_and_form(found)
        refusal.status = self.status
        return build_reply(refusal, form, self.delivery if streams else "http")

    def _refusal_and_form(self, found: _FoundPart) -> tuple[Refusal, str]:
        """Return the refusal in the chosen form.

        A part without an id or a phrase is refused with a message that contains its path.
        """
        if self.form == "unnamed":
            return Refusal(UNNAMED), "message"
        if self.form == "id" and found.id:
            return Refusal(found.id_message.format(id=found.id)), "id"
        if self.form == "phrase" and found.phrase:
            return Refusal(found.phrase), "phrase"
        if self.form in ("id", "phrase"):
            return found.refusal, "message"
        return found.refusal, self.form

    def _find(self, request: ValidRequest) -> _FoundPart | None:
        """Return the first part of a request that is refused."""
        if self.place == "parameter":
            return self._find_parameter(request.body)
        if self.place == "tool":
            return self._find_tool(request)
        return self._find_item(request)

    def _find_parameter(self, body: Item) -> _FoundPart | None:
        value: Any = body
        for name in self.name.split("."):
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = value[name]
        return _FoundPart(
            path=self.name,
            refusal=refuse("unknown_parameter", path=self.name),
            phrase=f"Unsupported parameter: '{self.name}' is not supported with this "
            "model.",
        )

    def _find_item(self, request: ValidRequest) -> _FoundPart | None:
        for path, item in _list_items(request):
            kind = read_item_type(item)
            if self.name not in ("", kind) or self.text not in _as_json(item):
                continue
            refusal = self._refusal_of_item(path, item)
            if refusal is not None:
                own_id = item.get("call_id") or item.get("container_id")
                return _FoundPart(
                    path=path,
                    refusal=refusal,
                    id=own_id or read_item_id(item) or "",
                    id_message=ID_MESSAGES.get(kind, LOOKUP_MESSAGE),
                    phrase=PHRASES.get(kind, ""),
                )
        return None

    def _refusal_of_item(self, path: str, item: Item) -> Refusal | None:
        """Return the refusal of an item; None without the refused part or field."""
        if self.part:
            return _refuse_content_part(path, item, self.part)
        if self.key:
            if (self.key in item) == self.missing:
                return None
            key_path = f"{path}.{self.key}"
            if self.missing:
                return refuse("missing_parameter", path=key_path)
            return refuse("unknown_parameter", path=key_path)
        kind = read_item_type(item)
        if kind in NEWER_TYPES:
            return refuse_newer_type(path, kind)
        return Refusal(
            f"Invalid '{path}': an item of type '{kind}' is not supported here.",
            code="invalid_value",
            param=path,
        )

    def _find_tool(self, request: ValidRequest) -> _FoundPart | None:
        for path, tool in _list_tools(request):
            is_named = self.name in ("", tool.get("name"), tool["type"])
            if is_named and self.text in _as_json(tool):
                return _found_tool(path, tool)
        return None


def _found_tool(path: str, tool: Item) -> _FoundPart:
    """Return a tool as a refused part: a function by its schema, another by its type."""
    kind = tool["type"]
    if kind == "function":
        schema_path = f"{path}.parameters"
        message = (
            f"Invalid schema for function '{tool.get('name')}': In context=(), schema is "
            "not supported"
        )
        refusal = Refusal(
            f"{message}: '{schema_path}'.",
            code="invalid_function_parameters",
            param=schema_path,
        )
        return _FoundPart(path, refusal, phrase=f"{message}.")
    type_path = f"{path}.type"
    refusal = Refusal(
        f"Invalid '{type_path}': '{kind}' is not supported with this model.",
        code="invalid_value",
        param=type_path,
    )
    phrase = f"Hosted tool '{kind}' is not supported with this model."
    return _FoundPart(path, refusal, phrase=phrase)


def refuse_item(type: str = "", **more: Any) -> RefusedPart:
    """Refuse items of a type, or with a ``text``, a ``key`` or a ``part`` of the content.

    ``refuse_item("web_search_call", key="id", missing=True)`` refuses items without an
    id.
    """
    return RefusedPart("item", type, **more)


def refuse_tool(name: str, **more: Any) -> RefusedPart:
    """Refuse a function by its name, or a hosted tool by its type."""
    return RefusedPart("tool", name, **more)


def refuse_parameter(path: str, **more: Any) -> RefusedPart:
    """Refuse a parameter of the request, such as ``text.verbosity``."""
    return RefusedPart("parameter", path, **more)


def _refuse_content_part(path: str, item: Item, kind: str) -> Refusal | None:
    """Return the refusal of the first part of this type; None if there is none."""
    for name in ("content", "output"):
        parts = item.get(name)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            if part.get("type") != kind:
                continue
            part_path = f"{path}.{name}[{index}]"
            if kind in SOURCES:
                part_path += f".{SOURCES[kind]}"
            message = (
                f"Invalid '{part_path}'. Expected a value that can be read, but got a "
                "value that cannot."
            )
            return Refusal(message, code="invalid_value", param=part_path)
    return None


def _list_items(request: ValidRequest) -> Iterator[tuple[str, Item]]:
    for index, item in enumerate(request.items):
        yield f"input[{index}]", item


def _list_tools(request: ValidRequest) -> Iterator[tuple[str, Item]]:
    """Yield each tool with its path: of the request, of an item, of a namespace."""
    yield from _with_paths(request.body.get("tools") or (), "tools")
    for path, item in _list_items(request):
        if read_item_type(item) == "additional_tools":
            yield from _with_paths(item["tools"], f"{path}.tools")


def _with_paths(tools: Sequence[Item], path: str) -> Iterator[tuple[str, Item]]:
    for index, tool in enumerate(tools):
        tool_path = f"{path}[{index}]"
        yield tool_path, tool
        yield from _with_paths(tool.get("tools") or (), f"{tool_path}.tools")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
