"""Repairs of requests to one model: tools, parameters and fields that are left out.

They are remembered for a user or for all users (`memory`). What guards is never
repaired away: only the parameters in `MAY_BE_LEFT_OUT` go, only fields that say nothing
of what an item means, and a tool goes whole, because without its filters, its allowed
tools or its approvals it would do more than its administrator permits. Of a tool only
fields go that are in `PERMIT_NOTHING`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

from openai_responses.appended import (
    APPENDED,
    change_added_tools,
    declared_tools,
    lower_payload,
)
from openai_responses.digest import hex_digest
from openai_responses.items import (
    ADDED_TOOLS,
    INSTRUCTING,
    Item,
    answer_as_text,
    content_parts,
    inner_parts,
    is_call_output,
    is_hosted_tool,
    is_paired,
    item_type,
    json_digest,
    message_text,
    move_messages_after_outputs,
    move_outputs_to_calls,
    text_message,
    tool_name,
    with_item_id,
)
from openai_responses.json_input import as_list, as_mapping, as_text, value_at
from openai_responses.repairs.chat_repairs import (
    ChatRepair,
    PlainItems,
    WordsAlone,
    change_parts,
    has_media,
    name_items,
    plain_item,
    without_media,
)
from openai_responses.repairs.plain_schemas import plain_schema
from openai_responses.repairs.refusal import NamedItem, Payload, SentRequest

_OPTIONS = frozenset(
    {
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
        "temperature",
        "text",
        "text.verbosity",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
"""Parameters that only tune an answer."""

MAY_BE_LEFT_OUT = _OPTIONS | {
    # These change what an answer costs, or how it comes.
    "access_programs",
    "background_options",
    "context_management",
    "service_tier",
    "stream",
}
"""Parameters that guard nothing. Not those in `GUARDS`, nor what the user asked for: the
model, the input, the format."""

PERMIT_NOTHING = frozenset({"search_context_size", "strict", "user_location"})
"""Fields that only tune a search, or say how exactly a function is called."""

GUARDS = frozenset(
    {
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "moderation",
        "prompt_cache_retention",
        "safety_identifier",
        "store",
    }
)
"""Safeguards and limits, which stay whatever a server says of them."""

_FIELDS_WITH_A_MEANING = frozenset(
    {
        "action",
        "approval_request_id",
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
_MAX_TYPE = 64
"""Characters of an item's type, and of a field's name in a message."""


@dataclass(frozen=True, slots=True)
class RequestRepair(ABC):
    """One change of a request; one without fields is the same for each request."""

    is_about_chat: ClassVar = False
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the user who waits."""

    @abstractmethod
    def apply(self, payload: Payload) -> Payload:
        """Return the changed body; the same object if there is nothing to change."""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent."""
        return self.apply(sent.payload) != sent.payload


class ToolRepair(RequestRepair):
    """One change of each tool, also of those in the items."""

    @abstractmethod
    def change(self, tool: Item) -> Item:
        """Return the tool as it is sent."""

    def apply(self, payload: Payload) -> Payload:
        items = change_added_tools(payload["input"], self.change)
        changed = {**payload, "input": items}
        if payload.get("tools"):
            changed["tools"] = [self.change(tool) for tool in payload["tools"]]
        return changed


class ItemRepair(RequestRepair):
    """One change of each item."""

    @abstractmethod
    def change(self, item: Item) -> Item:
        """Return the item as it is sent."""

    def apply(self, payload: Payload) -> Payload:
        return {**payload, "input": [self.change(item) for item in payload["input"]]}


class RowRepair(RequestRepair):
    """One change of the items that joins some of them, or adds some."""

    @abstractmethod
    def change_rows(self, rows: Iterable[NamedItem]) -> list[NamedItem]:
        """Return the items with their names; one that is added has none."""

    def apply(self, payload: Payload) -> Payload:
        rows = self.change_rows(NamedItem("", item) for item in payload["input"])
        items = [row.item for row in rows]
        return payload if items == payload["input"] else {**payload, "input": items}


Repair = ChatRepair | RequestRepair


def _refused_message(refused: str) -> str:
    """Return what the user is told of something that is left out."""
    return f"The model's server does not accept {refused}: answering without it."


@dataclass(frozen=True, slots=True)
class LeaveOutParameter(RequestRepair):
    """A parameter goes that has the refused value, or whatever value it has."""

    path: str
    value_digest: str = ""

    @property
    def message(self) -> str:
        if self.path == "stream":
            return "The model cannot stream here: the answer arrives all at once."
        return _refused_message(self.path)

    def apply(self, payload: Payload) -> Payload:
        if self.path not in MAY_BE_LEFT_OUT:
            return payload
        value = value_at(payload, *self.path.split("."))
        # Only one value was refused; without a digest all were.
        if value is None or self.value_digest not in ("", json_digest(value)):
            return payload
        if self.path == "text" and "format" in value:
            return payload  # the user asked for it
        return _with_parameter(payload, self.path, None)


class LeaveOutBackground(RequestRepair):
    """The answer lasts as long as its connection, and is not stored for another one.

    With a window it costs less in the background, so such a request stays as it is.
    """

    message = _refused_message("background")

    def apply(self, payload: Payload) -> Payload:
        if not payload.get("background") or "background_options" in payload:
            return payload
        changed = {**payload, "store": False}
        del changed["background"]
        return changed


@dataclass(frozen=True, slots=True)
class ReplaceEffort(RequestRepair):
    """An effort that the model does not have becomes the nearest that it has."""

    refused: str
    """Empty for the model's own, which a request does not state."""
    allowed: str
    """Empty if nothing is stated."""
    of_tools: bool = False
    """Whether it is refused next to tools alone."""

    @property
    def message(self) -> str:
        if self.of_tools:
            return _refused_message("an effort with tools")
        return f"The model does not have this effort: using {self.allowed}."

    def apply(self, payload: Payload) -> Payload:
        is_other = (value_at(payload, "reasoning", "effort") or "") != self.refused
        if is_other or (self.of_tools and not declared_tools(payload)):
            return payload
        return _with_parameter(payload, "reasoning.effort", self.allowed or None)


def _with_parameter(payload: Payload, path: str, value: object) -> Payload:
    """Return a body with another value at a path of one or two names; None for none."""
    outer, _, inner = path.partition(".")
    changed = dict(payload)
    if inner:
        fields = {**(payload.get(outer) or {}), inner: value}
        if value is None:
            del fields[inner]
        changed[outer] = fields
    else:
        changed[outer] = value
    if changed[outer] in (None, {}):
        del changed[outer]
    return changed


class LeaveOutToolChoice(RequestRepair):
    """The choice of tools goes, and with it each tool that it forbids."""

    message = _refused_message("tool_choice")

    def apply(self, payload: Payload) -> Payload:
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


class LeaveOutOptions(RequestRepair):
    """All that only tunes an answer goes: nothing says what of it was refused.

    Tools stay, with simpler parameters: xAI and Google name no schema that they cannot
    read (NousResearch/hermes-agent 27197).
    """

    message = (
        "The model's server rejected the request: answering without its optional "
        "settings."
    )

    def apply(self, payload: Payload) -> Payload:
        """Return the body without them; what changes the price stays."""
        changed = PlainSchemas().apply(LeaveOutToolChoice().apply(payload))
        for path in sorted(_OPTIONS):
            changed = LeaveOutParameter(path).apply(changed)
        return changed


@dataclass(frozen=True, slots=True)
class LeaveOutTool(RequestRepair):
    """A tool goes whole, and a choice that may have meant it."""

    digest: str
    name: str = field(default="", compare=False)

    @property
    def message(self) -> str:
        return _refused_message(f"the tool {self.name[:64]}")

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent, where the tool may be a simpler one."""
        return any(json_digest(tool) == self.digest for tool in whole_tools(sent))

    def apply(self, payload: Payload) -> Payload:
        return _offer_alone(payload, lambda tool: json_digest(tool) != self.digest)


class LeaveOutFunctions(RequestRepair):
    """No tool is offered that the model has to call; those of the server stay."""

    message = "The model's server rejected the tools: answering without them."

    def apply(self, payload: Payload) -> Payload:
        return _offer_alone(payload, is_hosted_tool)


class OfferFunctionsAlone(RequestRepair):
    """No tool of another type is offered, for servers that have none of their own."""

    message = "The model's server accepts functions alone: answering without its tools."

    def apply(self, payload: Payload) -> Payload:
        return _offer_alone(payload, lambda tool: tool.get("type") == "function")


def _offer_alone(payload: Payload, stays: Callable[[Item], bool]) -> Payload:
    """Return a body with the tools that stay; the body itself if these are all."""
    declared = declared_tools(payload)
    remaining = [tool for tool in declared if stays(tool)]
    if len(remaining) == len(declared):
        return payload
    choice = _remaining_choice(payload.get("tool_choice"), remaining)
    own = as_list(payload.get("tools"))
    if all(map(stays, declared[len(own) :])):  # what the items declare
        return _with_tools(payload, [tool for tool in own if stays(tool)], choice)
    return _with_tools(lower_payload(payload, {ADDED_TOOLS}), remaining, choice)


@dataclass(frozen=True, slots=True)
class PlainSchemas(ToolRepair):
    """Functions have schemas of types, names and descriptions alone.

    If only one of them was refused, the others stay as they are.
    """

    name: str = ""
    """Of the one function; empty for all."""

    message = (
        "The model's server cannot read a tool's parameters: sending simpler ones."
    )

    def change(self, tool: Item) -> Item:
        if tool.get("type") != "function" or self.name not in ("", tool.get("name")):
            return tool
        plain = {**tool, "parameters": plain_schema(tool.get("parameters"))}
        if plain.get("strict"):
            plain["strict"] = False
        return plain


@dataclass(frozen=True, slots=True)
class ShortenDescriptions(ToolRepair):
    """No description of a function, or of its parameters, has more than `most` characters.

    OpenAI takes 1024 in Chat Completions, which a gateway may use (danny-avila/LibreChat
    5741).
    """

    most: int

    message = (
        "The model's server takes no descriptions of tools as long as these: sending "
        "their beginnings."
    )

    def change(self, tool: Item) -> Item:
        if is_hosted_tool(tool):
            return tool
        shorter: Item = self._shorten_part(tool, _MOST_LEVELS_OF_TOOLS)
        return shorter

    def _shorten_part(self, part: Any, levels: int) -> Any:
        if isinstance(part, list) and levels:
            return [self._shorten_part(row, levels - 1) for row in part]
        if not isinstance(part, dict) or not levels:
            return part
        shorter = {
            key: self._shorten_part(value, levels - 1) for key, value in part.items()
        }
        text = part.get("description")
        if isinstance(text, str) and len(text) > self.most:
            shorter["description"] = text[: max(self.most - 1, 0)] + "…"
        return shorter


_MOST_LEVELS_OF_TOOLS = 40
"""What is deeper in the schema of a function stays as it is."""


class AskForStream(RequestRepair):
    """The answer comes as a stream, and is passed on whole."""

    message = "The model's server only answers in streams."

    def apply(self, payload: Payload) -> Payload:
        return payload if payload.get("stream") else {**payload, "stream": True}


def _with_tools(payload: Payload, tools: Sequence[Item], choice: object) -> Payload:
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


_SIMPLIFYING = (LeaveOutOptions, PlainSchemas, ShortenDescriptions)
"""Repairs that change the schemas of tools, or what describes them."""


@dataclass(frozen=True, slots=True)
class LeaveOutField(ItemRepair):
    """A field that a server does not know goes from all items of a type."""

    kind: str
    keys: tuple[str, ...]

    @property
    def message(self) -> str:
        return _refused_message(self.keys[-1][:_MAX_TYPE])

    def change(self, item: Item) -> Item:
        if item_type(item) != self.kind or not self._means_nothing:
            return item
        shorter: Item = _without_key(item, self.keys)
        return shorter

    @property
    def _means_nothing(self) -> bool:
        """Whether items of the type mean the same without the field."""
        if not self.keys or len(self.kind) > _MAX_TYPE:
            return False
        if self.kind == "message" and self.keys == ("type",):
            return True  # its role tells what it is
        has_meaning = self.keys[-1] in _FIELDS_WITH_A_MEANING
        return self.kind not in _ITEMS_THAT_STAY_WHOLE and not has_meaning


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
class LeaveOutToolField(ToolRepair):
    """Tools go without a field that permits nothing, for servers that do not know it."""

    key: str

    @property
    def message(self) -> str:
        return _refused_message(self.key[:_MAX_TYPE])

    def change(self, tool: Item) -> Item:
        if self.key not in PERMIT_NOTHING:
            return tool
        return {key: tool[key] for key in tool if key != self.key}


@dataclass(frozen=True, slots=True)
class LowerItems(RequestRepair):
    """Fields of the request say what items of a type said."""

    kind: str

    @property
    def message(self) -> str:
        return _refused_message(self.kind)

    def apply(self, payload: Payload) -> Payload:
        return lower_payload(payload, {self.kind})


class AnswersAsTexts(ItemRepair):
    """Earlier answers are sent as texts, for servers that do not take their parts."""

    message = (
        "The model's server does not accept the form of earlier answers: sending "
        "their texts alone."
    )

    def change(self, item: Item) -> Item:
        return answer_as_text(item)


class StateIds(ItemRepair):
    """Reasoning and calls have ids, for servers that demand one of each."""

    message = "The model's server demands ids of earlier items: sending such."

    def change(self, item: Item) -> Item:
        return with_item_id(item)


class LeaveOutEmptyTexts(ItemRepair):
    """No text is empty: one next to an image goes, one alone says that it is none."""

    message = "The model's server does not accept empty texts: leaving them out."

    def change(self, item: Item) -> Item:
        changed = dict(item)
        for key in ("content", "output"):
            content = item.get(key)
            if isinstance(content, str) and not content.strip():
                changed[key] = _EMPTY_TEXT
            elif isinstance(content, list):
                kept: list[Any] = []
                for part in content:
                    text = as_mapping(part).get("text")
                    if not isinstance(text, str) or text.strip():
                        kept.append(part)
                changed[key] = kept or [
                    {**part, "text": _EMPTY_TEXT} for part in content[:1]
                ]
        return changed


_EMPTY_TEXT = "[No text.]"


@dataclass(frozen=True, slots=True)
class LimitMedia(RequestRepair):
    """Of more than `most` images or files the oldest become a line of text."""

    kind: str
    most: int

    @property
    def message(self) -> str:
        noun = "images" if self.kind == "input_image" else "files"
        if not self.most:
            return f"The model's server does not accept {noun}: answering without them."
        return (
            f"The model's server accepts no more than {self.most} {noun}: sending the "
            "newest."
        )

    def apply(self, payload: Payload) -> Payload:
        surplus = count_media(payload["input"], self.kind) - self.most
        if surplus <= 0:
            return payload

        # The parts come in their order, so the newest stay.
        def goes(part: Item) -> bool:
            nonlocal surplus
            is_surplus = surplus > 0 and part.get("type") == self.kind
            surplus -= is_surplus
            return is_surplus

        items = [without_media(item, goes) for item in payload["input"]]
        return {**payload, "input": items}


def count_media(items: Iterable[Item], kind: str) -> int:
    """Return how many parts of a kind are in messages and outputs."""
    parts = chain.from_iterable(map(inner_parts, items))
    return sum(part.get("type") == kind for part in parts)


@dataclass(frozen=True, slots=True)
class LowerLimit(RequestRepair):
    """An answer may have no more tokens than the model can write, or than are paid for.

    The guard stays. Without one OpenRouter counts the longest answer that the model can
    write, so it gets one where the account is the limit.
    """

    most: int
    is_of_account: bool = False

    @property
    def message(self) -> str:
        if self.is_of_account:
            return (
                f"The account can pay for {self.most} more tokens: asking for no more."
            )
        return f"The model writes at most {self.most} tokens here: asking for no more."

    def apply(self, payload: Payload) -> Payload:
        limit = payload.get("max_output_tokens")
        is_lower = self.is_of_account if limit is None else self.most < limit
        return {**payload, "max_output_tokens": self.most} if is_lower else payload


class StateDetail(ItemRepair):
    """Images say `low` or `high` of their detail, for servers that know no other."""

    message = _refused_message("the detail of an image")

    def change(self, item: Item) -> Item:
        def with_known_detail(part: Item) -> Item:
            is_image = part.get("type") == "input_image"
            if is_image and part.get("detail") not in ("low", "high"):
                return {**part, "detail": "high"}
            return part

        return change_parts(item, with_known_detail)


class ShortCallIds(ItemRepair):
    """Calls have ids of nine letters and digits.

    A new id follows from the old one alone, so later turns send the same.
    """

    message = "The model's server takes short ids of tool calls alone: sending such."

    def change(self, item: Item) -> Item:
        call_id = as_text(item.get("call_id"))
        if not is_paired(item) or _SHORT_ID.fullmatch(call_id):
            return item
        return {**item, "call_id": hex_digest(call_id)[:_SHORT_LENGTH]}


_SHORT_LENGTH = 9
_SHORT_ID = re.compile(f"[a-zA-Z0-9]{{{_SHORT_LENGTH}}}")


@dataclass(frozen=True, slots=True)
class TextOutputs(RowRepair):
    """Of the results of tools the words alone are sent; a message shows their images.

    Templates that take questions and answers in turn want no such message. Where a
    server takes files as results, these stay.
    """

    shows_images: bool = True
    keeps_files: bool = False

    @property
    def message(self) -> str:
        if self.shows_images:
            return (
                "The model's server accepts texts alone as results of tools: sending their "
                "images after them."
            )
        return (
            "The model's server accepts texts alone as results of tools: answering "
            "without their images and files."
        )

    def applies(self, sent: SentRequest) -> bool:
        if self.shows_images:
            return self.apply(sent.payload) != sent.payload
        asked = dict(sent.asked)
        is_shown = any(change in sent.repairs for change in _SHOWN_AFTER_OUTPUTS)
        return is_shown and TextOutputs().apply(asked) != asked

    def change_rows(self, rows: Iterable[NamedItem]) -> list[NamedItem]:
        changed: list[NamedItem] = []
        images: list[Item] = []
        """Those of the results that came last."""
        # After one row more the images of the last results follow these, too.
        for name, item in [*rows, _NO_ROW]:
            if images and not is_call_output(item):
                text = {"type": "input_text", "text": _IMAGES_OF_TOOLS}
                shown = {"type": "message", "role": "user", "content": [text, *images]}
                changed.append(NamedItem("", shown))
                images = []
            if not (is_call_output(item) and has_media(item)):
                changed.append(NamedItem(name, item))
                continue
            parts: list[Item] = []
            for part in content_parts(item["output"]):
                if self.shows_images and part.get("type") == "input_image":
                    images.append(part)
                    parts.append({"type": "input_text", "text": _IMAGE_FOLLOWS})
                else:
                    parts.append(part)
            result = {**item, "output": parts}
            if not (self.keeps_files and has_media(result)):
                result = plain_item(result)
            changed.append(NamedItem(name, result))
        return changed[:-1]


_SHOWN_AFTER_OUTPUTS = (TextOutputs(), TextOutputs(keeps_files=True))


_NO_ROW = NamedItem("", {})
_IMAGE_FOLLOWS = "[An image: it follows the results.]"
_IMAGES_OF_TOOLS = "[The images that the tools returned, in their order:]"


class AskToContinue(RowRepair):
    """A chat that ends with an answer gets a question, for servers that demand one.

    What ends a chat may be the words of a call.
    """

    message = "The model cannot go on with an answer by itself: asking it to continue."

    def change_rows(self, rows: Iterable[NamedItem]) -> list[NamedItem]:
        changed = [*rows]
        if changed and changed[-1].item.get("role") == "assistant":
            changed.append(NamedItem("", text_message("user", _TO_CONTINUE)))
        return changed


_TO_CONTINUE = "Continue exactly where you left off."


class MoveMessages(RequestRepair):
    """Messages between calls and their outputs come after the outputs.

    Recorded at DeepSeek: there an output has to follow the calls at once.
    """

    message = (
        "The model's server does not accept text between a tool call and its result: "
        "moving the text after it."
    )

    def apply(self, payload: Payload) -> Payload:
        return {**payload, "input": move_messages_after_outputs(payload["input"])}


class SeparateCalls(RequestRepair):
    """Each output comes directly after its call, for models that make one at a time."""

    message = (
        "The model takes one tool call at a time: sending each result directly after its "
        "call."
    )

    def apply(self, payload: Payload) -> Payload:
        return {**payload, "input": move_outputs_to_calls(payload["input"])}


class GatherInstructions(RequestRepair):
    """Texts of the system, wherever they are, become the end of the instructions.

    Templates of some models take one such message, the first (BerriAI/litellm 39852).
    """

    message = (
        "The model takes instructions at the beginning alone: moving later ones "
        "there."
    )

    def apply(self, payload: Payload) -> Payload:
        texts = [payload.get("instructions") or ""]
        items: list[Item] = []
        for item in payload["input"]:
            instruction = _instruction_in(item)
            if instruction:
                texts.append(instruction)
            else:
                items.append(item)
        if len(items) == len(payload["input"]):
            return payload
        instructions = "\n\n".join(text for text in texts if text)
        return {**payload, "instructions": instructions, "input": items}


class StateInstructions(RequestRepair):
    """A request without `instructions` gets them: its first message, if it instructs."""

    message = (
        "The model's server demands instructions: sending them in their own field."
    )

    def apply(self, payload: Payload) -> Payload:
        if payload.get("instructions"):
            return payload
        items = payload["input"]
        first = _instruction_in(items[0]) if items else ""
        if first:
            return {**payload, "instructions": first, "input": items[1:]}
        return {**payload, "instructions": _NO_INSTRUCTIONS}


_NO_INSTRUCTIONS = "Answer the user."
"""What is said where a server demands instructions and there are none."""


def _instruction_in(item: Item) -> str:
    """Return the text of a message that instructs, if it has nothing else."""
    is_instructing = item.get("role") in INSTRUCTING and not has_media(item)
    return message_text(item) if is_instructing else ""


class JoinMessages(RowRepair):
    """Messages of one role that follow each other become one, with the name of the last.

    A question whose answer failed is followed by the next one. Templates of Gemma and
    Mistral take questions and answers only in turn (vllm-project/vllm 6862).
    """

    message = "The model takes one question at a time: joining those without an answer."

    def change_rows(self, rows: Iterable[NamedItem]) -> list[NamedItem]:
        joined: list[NamedItem] = []
        for name, item in rows:
            last = joined[-1].item if joined else {}
            has_last_role = item.get("role") == last.get("role")
            if has_last_role and item_type(item) == item_type(last) == "message":
                gap = text_message(item["role"], "\n\n")["content"]
                content = [*_parts_of(last), *gap, *_parts_of(item)]
                joined[-1] = NamedItem(name, {**last, "content": content})
            else:
                joined.append(NamedItem(name, item))
        return joined


def _parts_of(message: Item) -> list[Any]:
    """Return the content of a message as parts; its short form is a text."""
    content = message.get("content")
    if isinstance(content, str):
        return list(text_message(message["role"], content)["content"])
    return as_list(content)


_MOVES = (MoveMessages(), SeparateCalls(), GatherInstructions(), StateInstructions())
"""Repairs after which items are at other places, or fewer; none is changed."""
_JOIN = JoinMessages()
"""It comes after them: the messages around an instruction become neighbors."""
_ASK = AskToContinue()
"""It comes last: the other repairs decide what the chat ends with."""


def repair_request(payload: Payload, repairs: Sequence[Repair]) -> Payload:
    """Return the body of a request with all `repairs`; `payload` itself with none."""
    if not repairs:
        return payload
    # The names of all items take a while in a long chat, and only its own repairs need
    # them.
    has_chat_repairs = any(isinstance(repair, ChatRepair) for repair in repairs)
    return sent_request(payload, repairs, names=has_chat_repairs).payload


def sent_request(
    payload: Payload, repairs: Sequence[Repair], *, names: bool = True
) -> SentRequest:
    """Return what is sent for a body before its repairs, with the names of its items.

    First the items come to their places; the other repairs leave them there.
    """
    # What is lowered is lowered first: tools of an item are then left out like others.
    repaired = lower_payload(payload, lowered_kinds(repairs))
    # Items are moved before they get names, so that a name stays with its item.
    for move in (*_MOVES, _JOIN):
        if move in repairs:
            repaired = move.apply(repaired)
    if names:
        rows = name_items(repaired["input"], repairs)
    else:
        rows = [NamedItem("", item) for item in repaired["input"]]
    # Once more: what the chat's repairs leave has other neighbors, and words of calls
    # are messages.
    for move in _MOVES:
        if move in repairs:
            by_item = {id(row.item): row for row in rows}
            repaired = move.apply({**repaired, "input": [row.item for row in rows]})
            rows = [by_item[id(item)] for item in repaired["input"]]
    shown = (TextOutputs(shows_images=False), *_SHOWN_AFTER_OUTPUTS)
    for change in (_JOIN, *shown, _ASK):
        if change in repairs:
            rows = change.change_rows(rows)
    repaired = {**repaired, "input": [row.item for row in rows]}

    # A tool is left out by the digest of its own schema, so simpler ones come last.
    for repair in sorted(repairs, key=lambda repair: isinstance(repair, _SIMPLIFYING)):
        if isinstance(repair, PlainItems | WordsAlone):
            repaired = AnswersAsTexts().apply(repaired)  # their plainest form
        is_applied = repair in _MOVES or isinstance(repair, RowRepair)
        if isinstance(repair, RequestRepair) and not is_applied:
            repaired = repair.apply(repaired)
    if len(repaired["input"]) < len(rows):  # a repair of tools took their items along
        rows = [row for row in rows if item_type(row.item) != ADDED_TOOLS]
    sent = zip(rows, repaired["input"], strict=True)
    items = [row._replace(item=item) for row, item in sent]
    return SentRequest(repaired, items, payload, tuple(repairs))


def whole_tools(sent: SentRequest) -> list[Item]:
    """Return the tools of a request as they were before repairs made them simpler."""
    others: list[Repair] = []
    for repair in sent.repairs:
        if isinstance(repair, Repair) and not isinstance(repair, _SIMPLIFYING):
            others.append(repair)
    if len(others) == len(sent.repairs):  # none did; a chat takes long to repair again
        return declared_tools(sent.payload)
    return declared_tools(repair_request(dict(sent.asked), others))


def lowered_kinds(repairs: Iterable[Repair]) -> Set[str]:
    """Return the types of items that a server does not take."""
    return {repair.kind for repair in repairs if isinstance(repair, LowerItems)}


def may_offer(tool: Item, repairs: Iterable[Repair]) -> bool:
    """Say whether a request with `repairs` keeps a tool of the server."""
    for repair in repairs:
        if isinstance(repair, LeaveOutTool) and repair.digest == json_digest(tool):
            return False
        if isinstance(repair, LeaveOutToolField):
            tool = repair.change(tool)
        if isinstance(repair, OfferFunctionsAlone):
            return False
    return True


def value_digest(payload: Mapping[str, Any], path: str) -> str:
    """Return the digest of a parameter's value."""
    return json_digest(value_at(payload, *path.split(".")))
