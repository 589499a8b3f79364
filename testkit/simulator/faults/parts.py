"""A fault: a part of a request is refused, with the message of the API for it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.checks.configuration import refuse_newer_type
from simulator.checks.items import read_item_id, read_item_type
from simulator.configuration import NEWER_TYPES
from simulator.faults.forms import build_reply
from simulator.refusals import REFUSALS, Refusal, refuse
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
    "reasoning": REFUSALS["reasoning_without_item"].message,
    "code_interpreter_call": "Expected container_id: {id}.",
}
LOOKUP_MESSAGE = REFUSALS["unstored_item"].message
PHRASES = {
    "code_interpreter_call": REFUSALS["expired_container"].message,
    "function_call": "The input holds a function call that cannot be read.",
    "configuration_update": REFUSALS["update_in_pro_mode"].message,
    "reasoning": REFUSALS["reasoning_of_plain_model"].message,
}
UNNAMED = "The server could not process this request."
SOURCES = {"input_image": "image_url", "input_file": "file_data"}
"""The field of a content part that a refusal is about."""


@dataclass(frozen=True)
class _FoundPart:
    """A part that is refused, and what the API says about it."""

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
        """Return the refusal of a request; None if it does not contain the part.

        A part without an id or a phrase is refused with a message that contains its path.
        """
        if self.chat and self.chat not in _as_json(request.items):
            return None
        find = {"parameter": self._find_parameter, "tool": self._find_tool}
        found = find.get(self.place, self._find_item)(request)
        if found is None:
            return None
        refusal, form = found.refusal, self.form
        if form == "unnamed":
            refusal, form = Refusal(UNNAMED), "message"
        elif form == "id" and found.id:
            refusal = Refusal(found.id_message.format(id=found.id))
        elif form == "phrase" and found.phrase:
            refusal = Refusal(found.phrase)
        elif form in ("id", "phrase"):
            form = "message"
        refusal.status = self.status
        streams = request.body.get("stream") and not request.body.get("background")
        return build_reply(refusal, form, self.delivery if streams else "http")

    def _find_parameter(self, request: ValidRequest) -> _FoundPart | None:
        value: Any = request.body
        for name in self.name.split("."):
            if not isinstance(value, Mapping) or name not in value:
                return None
            value = value[name]
        return _FoundPart(
            refuse("unknown_parameter", path=self.name),
            phrase=f"Unsupported parameter: '{self.name}' is not supported with this "
            "model.",
        )

    def _find_item(self, request: ValidRequest) -> _FoundPart | None:
        for index, item in enumerate(request.items):
            kind = read_item_type(item)
            if self.name not in ("", kind) or self.text not in _as_json(item):
                continue
            refusal = self._refusal_of_item(f"input[{index}]", item)
            if refusal is not None:
                own_id = item.get("call_id") or item.get("container_id")
                return _FoundPart(
                    refusal,
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
            rule = "missing_parameter" if self.missing else "unknown_parameter"
            return refuse(rule, path=f"{path}.{self.key}")
        kind = read_item_type(item)
        if kind in NEWER_TYPES:
            return refuse_newer_type(path, kind)
        text = f"Invalid '{path}': an item of type '{kind}' is not supported here."
        return Refusal(text, code="invalid_value", param=path)

    def _find_tool(self, request: ValidRequest) -> _FoundPart | None:
        """Find a tool: a function is refused for its schema, another for its type."""
        for tool_path, tool in _list_tools(request):
            kind = tool["type"]
            if self.name not in ("", tool.get("name"), kind):
                continue
            if self.text not in _as_json(tool):
                continue
            if kind == "function":
                path = f"{tool_path}.parameters"
                code = "invalid_function_parameters"
                text = f"Invalid schema for function '{tool.get('name')}': In "
                text += "context=(), schema is not supported"
                refusal = Refusal(f"{text}: '{path}'.", code=code, param=path)
                return _FoundPart(refusal, phrase=f"{text}.")
            path = f"{tool_path}.type"
            text = f"Invalid '{path}': '{kind}' is not supported with this model."
            return _FoundPart(
                Refusal(text, code="invalid_value", param=path),
                phrase=f"Hosted tool '{kind}' is not supported with this model.",
            )
        return None


def refuse_item(type: str = "", **more: Any) -> RefusedPart:
    """Refuse items of a type, or with a ``text``, a ``key`` or a ``part`` of the content.

    ``refuse_item("web_search_call", key="id", missing=True)`` refuses items without an
    id.
    """
    return RefusedPart("item", type, **more)


def refuse_tool(name: str, **more: Any) -> RefusedPart:
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
            wanted = "a value that can be read"
            got = "a value that cannot"
            return refuse("part_value", path=part_path, wanted=wanted, got=got)
    return None


def _list_tools(request: ValidRequest) -> Iterator[tuple[str, Item]]:
    """Yield each tool with its path: of the request, of an item, of a namespace."""
    yield from _with_paths(request.body.get("tools") or (), "tools")
    for index, item in enumerate(request.items):
        if read_item_type(item) == "additional_tools":
            yield from _with_paths(item["tools"], f"input[{index}].tools")


def _with_paths(tools: Sequence[Item], path: str) -> Iterator[tuple[str, Item]]:
    for index, tool in enumerate(tools):
        tool_path = f"{path}[{index}]"
        yield tool_path, tool
        yield from _with_paths(tool.get("tools") or (), f"{tool_path}.tools")


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
