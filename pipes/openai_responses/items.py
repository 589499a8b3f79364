"""Verbatim wire items, asked their questions.

An item stays the dict that the API sent: what it holds beyond the fields we know
(`namespace`, `caller`, `fingerprint`, fields of tomorrow) goes back as it came.
"""

from collections.abc import Iterable, Mapping, Sequence
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


def is_bound(item: Mapping[str, Any]) -> bool:
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


def without_orphans(items: Iterable[Item]) -> list[Item]:
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
