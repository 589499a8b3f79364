"""The API's items: their kinds, their texts, and pairs of calls and outputs.

An item stays the dict that the API sent; unknown fields are sent back unchanged. What
the API wants of them then: docs/reference/responses-api.md, "Items in later requests".
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any

from openai_responses.digest import hex_digest
from openai_responses.json_input import JsonObject, as_list, as_mapping, as_text
from openai_responses.tool_kinds import (
    CALLED_BY_NAME,
    HOSTED_ITEM_KINDS,
    TOOL_KINDS,
    TOOL_OF_ITEM,
    ItemKind,
    ToolKind,
)

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
    if name.startswith(_HOSTED_TYPES):  # most tools are functions
        for kind in TOOL_KINDS.values():
            if name.startswith(kind.type):
                return kind
    return _NO_TOOL


_HOSTED_TYPES = tuple(TOOL_KINDS)


def is_hosted_tool(tool: JsonObject) -> bool:
    """Say whether the API runs a tool, itself or on another server."""
    return tool.get("type") not in CALLED_BY_NAME


_UNBILLED_ACTIONS = ("open_page", "find_in_page")
"""Of web searches (openai-python 3.57.0, `ToolUsage`)."""


def is_billed_search(item: JsonObject) -> bool:
    """Say whether `item` is a web search that costs a fee, not a look at a page."""
    action = as_mapping(item.get("action")).get("type")
    return item_type(item) == "web_search_call" and action not in _UNBILLED_ACTIONS


def container_ids(items: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the containers in which code ran."""
    return set(_texts([item.get("container_id") for item in items]))


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
    (docs/servers.md). Words alone of a thought that its server encrypts, and that it
    never ended, would be refused: "Item with id 'rs_...' not found".
    """
    is_plain = is_reasoning(item) and not item.get("encrypted_content")
    return is_plain and item.get("status") != "incomplete" and has_text(item)


def is_encrypted(item: JsonObject) -> bool:
    """Say whether only those who made `item` can read it."""
    return kind_of(item).is_encrypted


def is_compaction(item: JsonObject) -> bool:
    """Say whether `item` replaces all items before it."""
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    """Return `items` from the last compaction on, after instructions and added tools.

    Tools that earlier items added stay in force, and their calls have to name them.

    The API compacts at the end of a response (in all eight recordings), which may be
    one that calls tools. What waits for an answer there moves after the compaction and
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
    answered = {item.get("approval_request_id") for item in items[:start]}
    calls = {id(call) for call in open_calls(items[:start])}
    waiting: list[Item] = []
    for item in items[:start]:
        is_request = item_type(item) == "mcp_approval_request"
        if id(item) in calls or (is_request and item.get("id") not in answered):
            waiting.append(item)
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


def text_message(role: object, text: str) -> Item:
    """Return a message with one text, in the form that the API has for its role."""
    part: Item = {"type": "input_text", "text": text}
    if role == "assistant":
        part = text_part("text", text)
    return {"type": "message", "role": role, "content": [part]}


def message_text(item: JsonObject) -> str:
    """Return the text and the refusals of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(gap + text for _, text, gap in parts_with_gaps(content))


def parts_with_gaps(content: object) -> Iterator[tuple[Item, str, str]]:
    """Yield the parts of a message, each with its text and what is in front of that.

    The texts of a message are one text, but a refusal is a paragraph of its own.
    """
    refuses = None
    for part in content_parts(content):
        text = part_text(part)
        gap = ""
        if text:
            is_refusal = part.get("type") == "refusal"
            if refuses not in (None, is_refusal):
                gap = "\n\n"
            refuses = is_refusal
        yield part, text, gap


def answer_as_text(item: Item) -> Item:
    """Return a message of the model as a text alone; any other item as it is.

    The API takes answers without the ids of their parts. Other servers want these ids,
    or no parts at all (vllm-project/vllm 33089, 45273).
    """
    if item_type(item) != "message" or item.get("role") != "assistant":
        return item
    return {"type": "message", "role": "assistant", "content": message_text(item)}


_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids begin that other servers ask for."""


def with_item_id(item: Item) -> Item:
    """Return reasoning or a call with an id, always the same for the same item."""
    prefix = _ID_PREFIXES.get(item_type(item))
    return {"id": f"{prefix}_{json_digest(item)}", **item} if prefix else item


def has_text(item: JsonObject) -> bool:
    """Say whether `item` holds a text that deltas grow."""
    return bool(message_text(item)) or any(text for _, text in item_texts(item))


def content_parts(content: object) -> list[Item]:
    """Return the objects in a content."""
    return [part for part in as_list(content) if isinstance(part, dict)]


def inner_parts(item: JsonObject) -> list[Item]:
    """Return the parts of a message or of an output."""
    return [*content_parts(item.get("content")), *content_parts(item.get("output"))]


def part_text(part: JsonObject) -> str:
    """Return the text of a content part."""
    return as_text(part.get("text") or part.get("refusal"))


ANNOTATION_PLACES = ("start_index", "end_index", "index")
"""The fields with places in the text; a file's citation has `index`. Some servers write
-1 for none."""


def move_annotations(part: Item, move: Callable[[int], int]) -> Item:
    """Return a part of a content whose annotations are at other places of its text."""
    moved: list[Item] = []
    for annotation in content_parts(part.get("annotations")):
        places: Item = {}
        for name in ANNOTATION_PLACES:
            place = annotation.get(name)
            if isinstance(place, int) and place >= 0:
                places[name] = move(place)
        moved.append({**annotation, **places})
    return {**part, "annotations": moved} if moved else part


_FILE_ANNOTATIONS = ("file_citation", "container_file_citation", "file_path")


def flat_annotation(annotation: Item) -> Item:
    """Return an annotation as the API has it: a cited page has its fields in itself.

    Chat Completions, and gateways that translate them, have these in `url_citation`
    (theopenco/llmgateway 2992). Perplexity may leave the type out.
    """
    kind = annotation.get("type")
    inner = annotation.get("url_citation")
    if kind == "url_citation" and isinstance(inner, dict):
        return {**inner, "type": kind}
    if kind not in _FILE_ANNOTATIONS and has_web_scheme(as_text(annotation.get("url"))):
        return {**annotation, "type": "url_citation"}
    return annotation


def distinct_id(wire_id: str, taken: Container[str]) -> str:
    """Return `wire_id`, with a number after it that makes it a free one.

    Thousands of items may have one id, so the first free number is not counted to.
    """
    if wire_id not in taken:
        return wire_id
    last_taken = 1
    free = 2
    while f"{wire_id}_{free}" in taken:
        last_taken = free
        free *= 2
    while free - last_taken > 1:
        middle = (last_taken + free) // 2
        if f"{wire_id}_{middle}" in taken:
            last_taken = middle
        else:
            free = middle
    return f"{wire_id}_{free}"


def open_calls(items: Sequence[Item]) -> list[Item]:
    """Return the calls without an output."""
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [
        item for item in items if is_call(item) and item.get("call_id") not in answered
    ]


def _find_pairs(items: Sequence[JsonObject]) -> dict[int, int]:
    """Return the indexes of the calls that have an output, each with that of the output.

    An output answers an earlier call of its own kind; a `call_id` counts once.
    """
    outputs: dict[int, int] = {}
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
            # A call that was stopped gets no output. Some servers give its id again to
            # a call of a later turn, which counts instead (recorded at Bedrock, whose
            # first call is always `call_0`). Of some calls only the place is known,
            # not the name: they have no pair.
            earlier = waiting.get(call_id)
            was_stopped = earlier is not None and earlier < turn_start
            if item.get("name") and (was_stopped or call_id not in waiting):
                waiting[call_id] = index
            continue
        # No such call, or it has its output already.
        call_index = waiting.get(call_id)
        if call_index is None:
            continue
        if kind == CALL_OUTPUTS[items[call_index]["type"]]:
            outputs[call_index] = index
            waiting[call_id] = None
    return outputs


def move_messages_after_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` without messages between calls and their outputs.

    They follow the last of the outputs. A call without an output moves nothing.
    """
    ordered: list[Item] = []
    moved: list[Item] = []
    outputs = _find_pairs(items)
    waiting: set[int] = set()
    """The indexes of the outputs that still come."""
    for index, item in enumerate(items):
        if waiting and item_type(item) == "message":
            moved.append(item)
            continue
        ordered.append(item)
        if index in outputs:
            waiting.add(outputs[index])
        waiting.discard(index)
        if not waiting:
            ordered += moved
            moved = []
    return ordered


def move_outputs_to_calls(items: Sequence[Item]) -> list[Item]:
    """Return `items` with each output directly after its call."""
    outputs = _find_pairs(items)
    moved = {*outputs.values()}
    ordered: list[Item] = []
    for index, item in enumerate(items):
        if index not in moved:
            ordered.append(item)
        if index in outputs:
            ordered.append(items[outputs[index]])
    return ordered


INSTRUCTING = ("system", "developer")
"""The roles of messages that tell the model what to do."""
_INPUT_ROLES = ("user", *INSTRUCTING)


def drop_orphans(items: Sequence[Item]) -> list[Item]:
    """Return `items` without half pairs, and without the reasoning that produced them.

    The API refuses all three (docs/reference/responses-api.md, "Refusals of input
    items", 5). Reasoning before several calls stays as long as one of them stays.
    """
    kept: list[Item] = []
    dangling: list[Item] = []
    """Reasoning whose product has not come yet."""
    has_lost_call = False
    outputs = _find_pairs(items)
    paired = {*outputs, *outputs.values()}
    for index, item in enumerate(items):
        kind = item.get("type")
        if is_paired(item) and index not in paired:
            has_lost_call = has_lost_call or kind in _CALLS
            continue
        # Reasoning without its product is a 400 (recorded, 986 and 1009), and its
        # product may be the lost call.
        is_no_product = kind in _OUTPUTS or kind == CONFIGURATION
        is_no_product = is_no_product or item.get("role") in _INPUT_ROLES
        if is_no_product or (has_lost_call and kind not in _CALLS):
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


_TEXT_PART_TYPES = {
    "text": "output_text",
    "refusal": "refusal",
    "summary": "summary_text",
    "reasoning": "reasoning_text",
}
"""The API's types of parts, by the kinds of texts that deltas grow."""


def text_part(kind: str, text: str) -> Item:
    """Return a part with a text of a kind, as the API writes it."""
    part: Item = {"type": _TEXT_PART_TYPES[kind], _text_field(kind): text}
    if kind == "text":
        part["annotations"] = []
    return part


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


def json_text(value: object) -> str:
    """Return the arguments of a call, or its output, as the API has them: in a text.

    Gateways and clients give a JSON value itself, or null for none.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def is_image_call(item: JsonObject) -> bool:
    """Say whether `item` is an image that the model generated."""
    return item.get("type") == "image_generation_call"


def shows_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image of any format, for whoever asked for it."""
    return is_image_call(item) and _image_label(item) is not None


def has_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image that the model can read."""
    # As input the API takes neither SVG nor moving GIF.
    return shows_image(item) and image_format(item) in ("png", "jpeg", "webp")


_DATA_URL = re.compile(r"data:image/([\w.+-]{1,40})(?:;[\w=.+-]{1,40})?;base64,", re.I)
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\"'<>\\^`{|}]+", re.IGNORECASE)
_LONGEST_LABEL = 120
_LONGEST_ADDRESS = 4000
_MOST_PAGES = 200
"""Of a search; OpenAI's have some tens."""
_MEDIA_TYPES = {"svg": "svg+xml"}
"""The media type of RFC 6838; the API says `svg`."""


def image_result(image: object) -> str:
    """Return an image as `result` has it: base64, a data URL or an address.

    Gateways put it into objects of other APIs, and into lists (AI-Stats: `b64_json` with
    a `mime_type`, or `image_url` with a `url`).
    """
    media_type = ""
    for _ in range(_IMAGE_DEPTH):
        if isinstance(image, list):
            image = image[0] if image else None
        if not isinstance(image, dict):
            break
        media_types = [image.get(name) for name in _MEDIA_TYPE_FIELDS]
        media_type = as_text(next(filter(None, media_types), media_type))
        image = next(filter(None, map(image.get, _IMAGE_FIELDS)), None)
    result = as_text(image)
    is_bare = bool(result) and ":" not in result[:_LONGEST_LABEL]
    return f"data:{media_type};base64,{result}" if media_type and is_bare else result


_IMAGE_DEPTH = 4
_MEDIA_TYPE_FIELDS = ("mime_type", "media_type", "mimeType")
_IMAGE_FIELDS = (
    *("result", "image_url", "b64_json", "url", "data"),
    *("image", "source", "inlineData"),
)


def image_format(item: JsonObject) -> str:
    """Return the format of a generated image, in the words of the API."""
    label = _DATA_URL.match(as_text(item.get("result")))
    if label is None:
        return str(item.get("output_format") or "png")
    subtype = label[1].lower()
    return {"jpg": "jpeg", "svg+xml": "svg"}.get(subtype, subtype)


def image_url(item: JsonObject) -> str:
    """Return a generated image as a data URL, or its address; empty if it is neither.

    OpenAI gives base64, some gateways a data URL or an address of the web.
    """
    label = _image_label(item)
    return "" if label is None else f"{label}{item['result']}"


def _image_label(item: JsonObject) -> str | None:
    """Return what makes a data URL of a generated image; None if there is no image.

    Base64 has no colon, and an address is short: an image of many megabytes is not
    searched.
    """
    result = as_text(item.get("result"))
    if not result:
        return None
    if _DATA_URL.match(result) or is_web_address(result):
        return ""
    if ":" in result[:_LONGEST_LABEL]:
        return None
    subtype = image_format(item)
    return f"data:image/{_MEDIA_TYPES.get(subtype, subtype)};base64,"


def has_web_scheme(text: str) -> bool:
    """Say whether a text begins like an address of the web: not as `javascript:` does."""
    return text[:8].lower().startswith(("https://", "http://"))


def is_web_address(url: str) -> bool:
    """Say whether a text is an address of the web, as a page may load it."""
    is_short = len(url) <= _LONGEST_ADDRESS
    return is_short and _WEB_ADDRESS.fullmatch(url) is not None


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


def is_returnable_hosted(item: JsonObject) -> bool:
    """Say whether `item` is a hosted one that a later request can contain."""
    kind = kind_of(item)
    tool = maker_of(item)
    if not tool.type or kind.returned == "never":
        return False
    if item.get("status") in _UNFINISHED:
        return False
    action = as_mapping(item.get("action")).get("type")
    if tool.type == "web_search" and action not in _ACTIONS:
        return False
    # Without the list of a server's tools the API asks the server again.
    if item_type(item) == "mcp_list_tools" and item.get("error"):
        return False
    return all(item.get(key) is not None for key in kind.required)


def is_kept_hosted(item: JsonObject) -> bool:
    """Say whether later turns send `item`, a hosted one."""
    return is_returnable_hosted(item) and kind_of(item).returned == "always"


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
    while items and is_reasoning(items[-1]):
        items.pop()


def search_queries(item: JsonObject) -> list[str]:
    """Return the queries of a search."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = as_mapping(item.get("action"))
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: JsonObject) -> list[str]:
    """Return the addresses of the pages that a search found, each once, the first 200.

    The page makes links of them, so only addresses of the web are. All are in one status
    line, which the host stores and writes again with each later one.
    """
    sources = content_parts(as_mapping(item.get("action")).get("sources"))
    pages: dict[str, None] = {}
    for address in _texts([source.get("url") for source in sources]):
        if has_web_scheme(address) and len(address) <= _LONGEST_ADDRESS:
            pages[address] = None
    return list(pages)[:_MOST_PAGES]


def _texts(values: object) -> list[str]:
    """Return the texts of a list that are not empty."""
    return [value for value in as_list(values) if isinstance(value, str) and value]
