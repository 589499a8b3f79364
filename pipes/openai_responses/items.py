"""The API's items: their kinds, their texts, and how calls and outputs belong together.

Verbatim wire items, asked their questions.

An item stays the dict that the API sent: what it holds beyond the fields we know
(`namespace`, `caller`, `fingerprint`, fields of tomorrow) goes back as it came.

The texts of an item that deltas can grow.

Pictures that the model drew, as they go back to it.

The API would look a drawn picture up by an id that it never stored (responses-api.md
§2.1): what goes back is an input picture, at the place where it was drawn.

What an item that the API itself makes or runs means to a viewer and to a later turn.

Searches, code, pictures, calls of remote servers: nobody on our side answers them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Item = dict[str, Any]

CALL_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that we answer, by the type of their answer."""


def item_type(item: Mapping[str, Any]) -> str:
    """Return the type; a message in its short form has none."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_call(item: Mapping[str, Any]) -> bool:
    """Say whether somebody on our side has to answer `item`."""
    return item_type(item) in CALL_OUTPUTS


def is_call_output(item: Mapping[str, Any]) -> bool:
    """Say whether `item` answers a call."""
    return item_type(item) in CALL_OUTPUTS.values()


def is_reasoning(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is a reasoning item."""
    return item_type(item) == "reasoning"


def is_commentary(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is a remark in passing, in front of the answer."""
    return item_type(item) == "message" and item.get("phase") == "commentary"


def has_encrypted_reasoning(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is reasoning that can be given back without being stored."""
    return is_reasoning(item) and bool(item.get("encrypted_content"))


def is_encrypted(item: Mapping[str, Any]) -> bool:
    """Say whether only those who made `item` can read it."""
    return item_type(item) in ("reasoning", "compaction")


def is_compaction(item: Mapping[str, Any]) -> bool:
    """Say whether `item` stands for all that came before it."""
    return item_type(item) == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    """Return `items` from the last compaction on."""
    places = [place for place, item in enumerate(items) if is_compaction(item)]
    return list(items[places[-1] :] if places else items)


def message_text(item: Mapping[str, Any]) -> str:
    """Return the text a person reads in a message item: its text and its refusals."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(map(part_text, content_parts(content)))


def content_parts(content: object) -> list[Item]:
    """Return the parts of a content; other servers send what they like."""
    rows = content if isinstance(content, list) else []
    return [row for row in rows if isinstance(row, dict)]


def part_text(part: Mapping[str, Any]) -> str:
    """Return the text of one content part, or nothing."""
    text = part.get("text") or part.get("refusal")
    return text if isinstance(text, str) else ""


def open_calls(items: Sequence[Item]) -> list[Item]:
    """Return the calls that nobody has answered."""
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [i for i in items if is_call(i) and i.get("call_id") not in answered]


def paired_places(items: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the places of the calls and outputs that belong together.

    An output answers a call in front of it, of its own kind; a `call_id` counts once.
    """
    calls: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for place, item in enumerate(items):
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            continue
        if is_call(item):
            calls.setdefault(call_id, place)
        elif call_id in calls and call_id not in outputs:
            call = items[calls[call_id]]
            if CALL_OUTPUTS[item_type(call)] == item_type(item):
                outputs[call_id] = place
    return {calls[call_id] for call_id in outputs} | set(outputs.values())


def drop_orphans(items: Iterable[Item]) -> list[Item]:
    """Return `items` without half pairs, and without reasoning that led to one.

    The API refuses a call without an output and an output without a call; reasoning
    belongs to the item it produced, so it leaves with it (responses-api.md §2.1,
    rule 5 and the recommended algorithm, e).
    """
    rows = list(items)
    pairs = paired_places(rows)
    kept: list[Item] = []
    dangling: list[Item] = []  # reasoning whose product has not come yet
    lost_call = False
    for place, item in enumerate(rows):
        if place not in pairs and (is_call(item) or is_call_output(item)):
            lost_call = lost_call or is_call(item)
            continue
        # What led to several calls stays as long as one of them does.
        if (lost_call and not is_call(item)) or _comes_from_outside(item):
            dangling = []
        lost_call = False
        if is_reasoning(item):
            dangling.append(item)
        else:
            kept += [*dangling, item]
            dangling = []
    return kept


def _comes_from_outside(item: Mapping[str, Any]) -> bool:
    """Say whether a model cannot have produced `item`."""
    return is_call_output(item) or item.get("role") in ("user", "system", "developer")


TextPlace = tuple[str, int]
"""A kind of text and its part, as `events.TextDelta` has them."""


def item_texts(item: Mapping[str, Any]) -> Iterator[tuple[TextPlace, str]]:
    """Yield the place and the text of everything in `item` that deltas can grow."""
    match item_type(item):
        case "message":
            for part, content in _parts(item.get("content")):
                kind = "refusal" if content.get("type") == "refusal" else "text"
                yield (kind, part), _text_or_empty(content.get(kind))
        case "reasoning":
            for part, content in _parts(item.get("summary")):
                yield ("summary", part), _text_or_empty(content.get("text"))
            for part, content in _parts(item.get("content")):
                yield ("reasoning", part), _text_or_empty(content.get("text"))
        case "function_call" | "mcp_call":
            yield ("arguments", 0), _text_or_empty(item.get("arguments"))
        case "custom_tool_call":
            yield ("arguments", 0), _text_or_empty(item.get("input"))
        case "code_interpreter_call":
            yield ("code", 0), _text_or_empty(item.get("code"))


def _parts(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, part in enumerate(value if isinstance(value, list) else ()):
        if isinstance(part, Mapping):
            yield index, part


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


_READ_FORMS = ("png", "jpeg", "webp")


def is_image_call(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is the drawing of a picture."""
    return item_type(item) == "image_generation_call"


def has_image(item: Mapping[str, Any]) -> bool:
    """Say whether `item` holds a picture that the model can be given back."""
    held = is_image_call(item) and bool(item.get("result"))
    return held and image_format(item) in _READ_FORMS


def image_format(item: Mapping[str, Any]) -> str:
    """Return the format of a drawn picture, such as `png`."""
    return str(item.get("output_format") or "png")


def image_url(item: Mapping[str, Any]) -> str:
    """Return a drawn picture as an address that holds it."""
    kind = {"svg": "svg+xml"}.get(image_format(item), image_format(item))
    return f"data:image/{kind};base64,{item['result']}"


def image_message(item: Mapping[str, Any]) -> Item:
    """Return a drawn picture as an input message."""
    part = {"type": "input_image", "detail": "auto", "image_url": image_url(item)}
    return {"type": "message", "role": "user", "content": [part]}


_NEEDS: Mapping[str, tuple[str, ...]] = {
    "web_search_call": ("action",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("container_id",),
    "mcp_list_tools": ("server_label", "tools"),
    "mcp_call": ("server_label", "name", "arguments"),
    "mcp_approval_request": ("id", "server_label", "name", "arguments"),
    "mcp_approval_response": ("approval_request_id", "approve"),
}
"""Hosted items that can be given back, with what the API asks of each. A picture is
not among them: it would be looked up by an id that was never stored
(responses-api.md §2.1)."""

_UNFINISHED = ("in_progress", "searching", "interpreting", "calling", "incomplete")
_ACTIONS = ("search", "open_page", "find_in_page")

_REFUSED_AT_MINIMAL = ("web_search", "file_search", "image_generation")
"""Tools that cannot be used with the effort `minimal` (responses-api.md §1)."""


_INCLUDED = {
    "web_search": "web_search_call.action.sources",
    "code_interpreter": "code_interpreter_call.outputs",
}
"""What the API leaves out of an item unless it is asked, by the tool."""


def is_hosted(item: Mapping[str, Any]) -> bool:
    """Say whether the API made or answered `item` itself."""
    return item_type(item) in (*_NEEDS, "image_generation_call")


def is_host_returned(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is a finished hosted one that a later request gives back."""
    kind = item_type(item)
    if kind not in _NEEDS or item.get("status") in _UNFINISHED:
        return False
    if kind == "web_search_call" and _action(item).get("type") not in _ACTIONS:
        return False
    if kind == "mcp_list_tools" and item.get("error"):
        return False  # without a list the API asks the server again
    return all(item.get(key) is not None for key in _NEEDS[kind])


def is_kept_hosted(item: Mapping[str, Any]) -> bool:
    """Say whether later turns of a chat get `item` back; an approval is over by then."""
    return is_host_returned(item) and not item_type(item).startswith("mcp_approval")


def drop_hosted_tool_items(items: Iterable[Item]) -> list[Item]:
    """Return `items` without calls, their outputs and the reasoning before them.

    The lists of remote servers stay, for they are none; so do pictures, which people
    see in the answer.
    """
    kept: list[Item] = []
    dangling: list[Item] = []  # reasoning whose product has not come yet
    for item in items:
        if is_reasoning(item):
            dangling.append(item)
            continue
        if not (is_call(item) or is_call_output(item) or _is_hosted_call(item)):
            kept += [*dangling, item]
        dangling = []
    return kept


def is_search(tool: Mapping[str, Any]) -> bool:
    """Say whether answers cite what `tool` found."""
    return tool.get("type") in ("web_search", "file_search")


def search_queries(item: Mapping[str, Any]) -> list[str]:
    """Return what a search looked for, on the web or in files."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = _action(item)
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: Mapping[str, Any]) -> list[str]:
    """Return the addresses of the pages that a search found, each once."""
    sources = _action(item).get("sources")
    rows = sources if isinstance(sources, list) else []
    urls = [row.get("url") for row in rows if isinstance(row, Mapping)]
    return list(dict.fromkeys(_texts(urls)))


def tools_at_effort(tools: Sequence[Item], effort: str | None) -> list[Item]:
    """Return the tools that may be offered to a model that works with `effort`."""
    refused = _REFUSED_AT_MINIMAL if effort == "minimal" else ()
    return [tool for tool in tools if tool.get("type") not in refused]


def include_for(tools: Sequence[Item]) -> list[str]:
    """Return what has to be asked for so that a viewer sees what `tools` did."""
    return [_INCLUDED[t["type"]] for t in tools if t.get("type") in _INCLUDED]


def _is_hosted_call(item: Mapping[str, Any]) -> bool:
    return item_type(item) in _NEEDS and item_type(item) != "mcp_list_tools"


def _action(item: Mapping[str, Any]) -> Mapping[str, Any]:
    action = item.get("action")
    return action if isinstance(action, Mapping) else {}


def _texts(values: object) -> list[str]:
    rows = values if isinstance(values, list) else []
    return [row for row in rows if isinstance(row, str) and row]
