"""Tools in the API's form, with names that it allows."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from openai_responses.callbacks import ignore_report
from openai_responses.digest import hex_digest
from openai_responses.errors import InvalidRequest
from openai_responses.items import (
    ADDED_TOOLS,
    Item,
    content_parts,
    is_call,
    is_hosted_tool,
    item_type,
    json_text,
    tool_name,
)
from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    JsonTooLarge,
    as_mapping,
    as_text,
    json_size,
)
from openai_responses.requests.json_schema import (
    LARGEST_SCHEMA,
    MAX_STRICT_WORK,
    function_parameters,
)
from openai_responses.tool_kinds import CALLED_BY_NAME

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
        is spelled like it, or like its end: Gemini puts a namespace of its own in front,
        such as `default_api.` (google-gemini/cookbook 1374).
        """
        own = self._own_names.get(called)
        if own is None and called not in others:
            _, dot, last = called.rpartition(".")
            for name in (called, last) if dot else (called,):
                own = own or self._names_by_spelling.get(_normalize_spelling(name))
        return own or called

    def with_own_name(self, item: Item) -> Item:
        """Return a call under the tool's own name, and another item as it is."""
        if not is_call(item):
            return item
        return {**item, "name": self.own_name(as_text(item.get("name")))}

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
            # Of two that are spelled alike neither can be meant.
            names[spelling] = "" if spelling in names else name
        return names

    def rename_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        renamed = list(tools)
        for number, tool in enumerate(renamed):
            if not is_hosted_tool(tool):
                renamed[number] = {**tool, "name": self.sent_name(tool["name"])}
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
    bare = name.strip().removeprefix(_MODELS_PREFIX)
    return _FORBIDDEN.sub("_", bare).lower().replace("-", "_")


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
    fitting: list[Item] = []
    for item in items:
        fit = item
        name = as_text(item.get("name"))
        namespace = name if name in added else None
        if is_call(item) and item.get("namespace") != namespace:
            fit = {key: item[key] for key in item if key != "namespace"}
            if namespace:
                fit["namespace"] = namespace
        fitting.append(clean_call(fit))
    return fitting


def clean_call(item: Item) -> Item:
    """Return an item with a name, a `call_id` and arguments that the API takes.

    Calls of other servers and models can have any, or null. The same ones always become the
    same, so that a call, its output and its tool still fit.
    """
    name = as_text(item.get("name"))
    call_id = item.get("call_id")
    arguments = item.get("arguments")
    changed: Item = {}
    if item_type(item) == "function_call" and not isinstance(arguments, str):
        changed["arguments"] = json_text(arguments) or "{}"
    if is_call(item) and not _ALLOWED.fullmatch(name):
        bare = name.strip().removeprefix(_MODELS_PREFIX)
        changed["name"] = ToolNames().sent_name(bare)
    if isinstance(call_id, str) and not 0 < len(call_id) <= _MAX_CALL_ID:
        changed["call_id"] = f"call_{hex_digest(call_id)[:32]}"
    return {**item, **changed} if changed else item


_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}
"""Words for a choice, and the API's: Mistral and Anthropic say `any`."""

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
        names: list[str] = []
        for described in left_out[:_NAMED_IN_LOG]:
            outer = as_mapping(described)  # it may be anything
            inner = as_mapping(outer.get("function") or outer.get("custom"))
            own_name = as_text(inner.get("name") or outer.get("name"))
            names.append(repr(own_name[:_MAX_SHOWN_OF_NAME]))
        log(
            "Tools are left out, because their schemas are too large or too deep: "
            f"{', '.join(names)} ({len(left_out)} in all). Make the schemas smaller, or "
            "offer fewer tools."
        )
    return tools


def merge_tools(*groups: Sequence[Item]) -> list[Item]:
    """Return the tools of all groups; a later one replaces an earlier one of its name.

    MCP servers are compared by label, other hosted tools by type.
    """
    merged = {tool_identity(tool): tool for tool in chain.from_iterable(groups)}
    return list(merged.values())


def responses_tool_choice(
    choice: object, tools: Sequence[Item], names: ToolNames
) -> object:
    """Return `tool_choice` in the API's form, where a named function is not nested.

    A bare name is accepted, and Anthropic's `any` and `{"type": "auto"}`. What is
    neither a word nor an object is left out, as any value of the wrong type is
    (docs/parameters.md). Raises InvalidRequest for a tool that is not among `tools`.
    """
    mode = as_text(choice.get("type") if isinstance(choice, Mapping) else choice)
    # A tool may have the name `any`, which is no word of the API.
    is_name = any(tool.get("name") == choice for tool in tools)
    if mode in _MODES and (mode in _MODES.values() or not is_name):
        return _MODES[mode]
    if isinstance(choice, str):
        wanted = _choice_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _flatten_choice(choice, names)
    else:
        return None
    offered: set[tuple[str, str, str]] = set()
    for tool in tools:
        kind, label, name = _choice_key(tool)
        offered.add((kind, label, name))
        offered.add((kind, "", name))  # a choice may leave the label out
    chosen = [wanted]
    if wanted["type"] == "allowed_tools":
        chosen = wanted["tools"]
    for tool in chosen:
        if _choice_key(tool) not in offered:
            raise InvalidRequest(
                f"The tool choice asks for {tool_name(tool)}, which this chat does not have."
            )
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
    # Cursor describes functions as Anthropic does (askalf/dario 203), where `custom` is
    # their type.
    if kind == "function" or "input_schema" in flat:
        function: Item = {"type": "function", "name": flat["name"]}
        description = as_text(flat.get("description"))
        if description:
            function["description"] = description
        function |= {key: flat[key] for key in _OF_THE_API if key in flat}
        own = flat.get("strict")
        wants_strict = own if isinstance(own, bool) else strict
        schema, is_strict = function_parameters(
            as_mapping(flat.get("parameters") or flat.get("input_schema")),
            strict_left if wants_strict else None,
        )
        # `strict` is always stated: without it the API makes the function strict, and
        # each optional property a required one (recorded, 219 of 219).
        return {**function, "parameters": schema, "strict": is_strict}
    tool: Item = {key: flat[key] for key in _KEYS_OF_CUSTOM if key in flat}
    # Chat Completions nests the grammar.
    own_format = as_mapping(flat.get("format"))
    grammar = own_format.get("grammar")
    if isinstance(grammar, Mapping):
        own_format = {"type": "grammar", **grammar}
    known = {key: own_format[key] for key in _KEYS_OF_FORMAT if key in own_format}
    if known:
        tool["format"] = known
    return {**tool, "type": kind}


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
    if kind == "tool":  # Anthropic's
        kind = "function"
    wanted: Item = dict(choice)
    if isinstance(kind, str) and isinstance(choice.get(kind), Mapping):
        wanted = dict(choice[kind])
    wanted["type"] = kind
    if kind in CALLED_BY_NAME:
        if not isinstance(wanted.get("name"), str):
            raise InvalidRequest("The tool choice names no tool.")
        wanted["name"] = names.sent_name(wanted["name"])
    if kind == "allowed_tools":
        chosen: list[Item] = []
        for tool in content_parts(wanted.get("tools")):
            # A list of tools inside of another is none of the tools: it is refused.
            is_none = tool.get("type") == kind
            chosen.append(tool if is_none else _flatten_choice(tool, names))
        wanted["tools"] = chosen
    return wanted


def _choice_key(tool: Item) -> tuple[str, str, str]:
    """Return what identifies a tool in a choice: its type, its server, its name."""
    name = "" if is_hosted_tool(tool) else as_text(tool.get("name"))
    return as_text(tool.get("type")), as_text(tool.get("server_label")), name
