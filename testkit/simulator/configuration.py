"""The settings at the end of an input: effort, format, tools and tool choice.

A `configuration_update` and an `additional_tools` item apply from their place on.
Server-side compaction keeps both. Sources: guide "Keep the prefix unchanged"; guide
"Compaction"; types, `response_input_item_param.py`.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from simulator.models import ModelFacts
from simulator.sealing import ForeignSeal, unseal_content
from simulator.strictness import settle_format, settle_tool

Body = Mapping[str, Any]
Item = Mapping[str, Any]
Tool = Mapping[str, Any]
TEXT_FORMAT: Mapping[str, Any] = {"type": "text"}
LAST_SERIES_WITH_NAMESPACES = (5, 4)
NEWER_TYPES = ("configuration_update", "additional_tools")
"""Items that older models and other servers do not know."""
CALL_KINDS = {
    "function_call": ("function",),
    "custom_tool_call": ("custom",),
    "web_search_call": ("web_search", "web_search_preview"),
    "file_search_call": ("file_search",),
    "code_interpreter_call": ("code_interpreter",),
    "image_generation_call": ("image_generation",),
}
"""Each kind of call with the tools that it can be of."""


@dataclass(frozen=True)
class Configuration:
    """A request's settings after the items of its input have changed them."""

    effort: str | None
    format: Mapping[str, Any]
    declared: tuple[Tool, ...]
    appended: tuple[Tool, ...]
    """Tools of items, those that a compaction keeps among them."""
    choice: Any
    updated: bool
    """Whether an update is in force."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (*self.declared, *self.appended)

    @property
    def restricts(self) -> bool:
        """Whether the choice leaves tools out.

        `none` is ignored, as some servers do; a run has to end all the same.
        """
        given = self.choice
        return isinstance(given, Mapping) and given["type"] == "allowed_tools"

    @property
    def allowed(self) -> tuple[Tool, ...]:
        """The tools that may be called: ``allowed_tools`` leaves the others out."""
        if not self.restricts:
            return self.tools
        chosen = self.choice["tools"]
        return tuple(t for t in self.tools if any(is_chosen(t, one) for one in chosen))

    def may_call(self, call: Item) -> bool:
        """Tell whether `allowed_tools` lets the model make a call."""
        kinds = CALL_KINDS.get(call["type"])
        if not kinds or not self.restricts:
            return True
        return any(
            tool["type"] in kinds and tool.get("name") == call.get("name")
            for tool in self.allowed
        )

    def namespace_of(self, call: Item, model: ModelFacts) -> str | None:
        """Return the namespace that a call of a tool of an item comes with.

        Recorded: the tool's own name on gpt-5.4, none on gpt-5.6 and gpt-6-astra. For
        models between them it is assumed that there is none.
        """
        if model.series > LAST_SERIES_WITH_NAMESPACES:
            return None
        kinds = CALL_KINDS.get(call["type"], ())
        names = {tool.get("name") for tool in self.appended if tool["type"] in kinds}
        return call.get("name") if call.get("name") in names else None


def read_configuration(body: Body, model: ModelFacts) -> Configuration:
    """Return the settings after the last item of a body."""
    items = list_items(body)
    updates = [item for item in items if is_update(item)]
    effort = model.default_effort
    text_format = TEXT_FORMAT
    for settings in (body, *updates):
        effort = (settings.get("reasoning") or {}).get("effort") or effort
        text_format = (settings.get("text") or {}).get("format") or text_format
    appended = [tool for _, tools in list_appended(items) for tool in tools]
    return Configuration(
        effort=effort,
        format=settle_format(text_format),
        declared=tuple(map(settle_tool, body.get("tools") or ())),
        appended=tuple(map(settle_tool, appended)),
        choice=body.get("tool_choice"),
        updated=bool(updates),
    )


def draft_update(held: Configuration) -> list[dict[str, Any]]:
    """Return the update that the API adds right after a compaction.

    Source: guide "Compaction". Assumed: there is none if nothing was updated.
    """
    settings = {"reasoning": {"effort": held.effort}, "text": {"format": held.format}}
    return [{"type": "configuration_update", **settings}] if held.updated else []


def list_items(body: Body) -> Sequence[Item]:
    """Return the items of a body's input; none if that is a text."""
    given = body.get("input")
    return given if isinstance(given, list) else ()


def is_update(item: Item) -> bool:
    return item.get("type") == "configuration_update"


def list_appended(items: Sequence[Item]) -> Iterator[tuple[str, Sequence[Tool]]]:
    """Yield the tools of items in force with their paths.

    Items in front of a compaction are not read; it knows the tools that they added.
    """
    kinds = [item.get("type") for item in items]
    start = max(
        (at for at, kind in enumerate(kinds) if kind == "compaction"), default=-1
    )
    if start >= 0:
        with contextlib.suppress(ForeignSeal):
            seal = unseal_content(items[start].get("encrypted_content") or "")
            yield f"input[{start}]", seal.tools
    for index, item in enumerate(items):
        if index > start and item.get("type") == "additional_tools":
            yield f"input[{index}].tools", item["tools"]


def is_chosen(tool: Tool, choice: Tool) -> bool:
    """Tell whether an entry of a tool choice names a tool."""
    kind = choice["type"]
    # The older name chooses the newer search, too: recorded of a single choice.
    kinds = ("web_search", kind) if kind == "web_search_preview" else (kind,)
    same_label = tool.get("server_label") == choice.get("server_label")
    same = tool["type"] in kinds and same_label
    if choice["type"] == "mcp":
        return same  # its name is a tool of the server
    return same and tool.get("name") == choice.get("name")
