"""The summaries of kept reasoning, which the chat shows and which are stored once.

The output of an answer has the reasoning that the page shows, and after it an item that
keeps what the page does not show (`render.items`). In the place of a summary, the kept
item has the lengths of its parts, which the page shows as one text:

    shown   {"type": "reasoning", "summary": [{"type": "summary_text", "text": "A\\n\\nBc"}]}
    kept    {"type": "reasoning", "summary": [1, 2], "encrypted_content": ...}

It is the nearest text of this length in front of the kept item. The signature of a record
holds for the summaries themselves, so a text that was changed since is not sent.
"""

import json
from collections.abc import Iterator, Sequence

from openai_responses.items import (
    Item,
    content_parts,
    has_encrypted_reasoning,
    is_reasoning,
    part_text,
    text_part,
)
from openai_responses.json_input import (
    JsonBudget,
    JsonObject,
    as_list,
    parse_json_object,
    value_at,
)
from owui_chat.host_tools import UNSTORED

_SEARCHED = 64
"""Items in front of a kept one; it may keep the reasoning around many searches."""
_MOST_PARTS = 64
_ANY_SUMMARY = '"summary":[{'
"""In the text of a kept item with a summary."""
_BETWEEN_PARTS = "\n\n"


def kept_text(value: JsonObject) -> str:
    """Return the text of a kept item, as the host stores it unchanged."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        # The host leaves out halves of characters, and the signature would not hold.
        text = json.dumps(value, separators=(",", ":"))
    return text


def omit_shown_summaries(kept: str, output: Sequence[Item], place: int) -> str:
    """Return the text of a kept item without the summaries that the output shows.

    `place` is that of the item in the output.
    """
    value = parse_json_object(kept) if _ANY_SUMMARY in kept else None
    if not value:
        return kept
    has_omitted = False
    for row in _encrypted_rows(value):
        parts = content_parts(row.get("summary"))
        lengths = [len(part_text(part)) for part in parts]
        # The names are in the order that goes back to the model.
        restored = [list(part.items()) for part in _shown_parts(lengths, output, place)]
        is_shown = bool(restored) and [list(p.items()) for p in parts] == restored
        # The host leaves out some characters, and may strip the ends.
        text = _BETWEEN_PARTS.join(map(part_text, parts))
        if is_shown and text == text.strip() and not UNSTORED.search(text):
            row["summary"] = lengths
            has_omitted = True
    return kept_text(value) if has_omitted else kept


def restore_summaries(
    value: JsonObject, output: Sequence[Item], place: int, budget: JsonBudget
) -> None:
    """Put the summaries into the rows of a kept value that were stored without them.

    One that is not shown any more becomes empty. Raises JsonTooLarge.
    """
    for row in _encrypted_rows(value):
        lengths = as_list(row.get("summary"))
        if lengths and all(type(length) is int for length in lengths):
            budget.spend(max(0, sum(lengths)))  # before anything of this length is made
            row["summary"] = _shown_parts(lengths, output, place)


def _encrypted_rows(value: JsonObject) -> list[Item]:
    rows = content_parts(value.get("payload"))
    return [row for row in rows if has_encrypted_reasoning(row)]


def _shown_parts(
    lengths: Sequence[int], output: Sequence[Item], place: int
) -> list[Item]:
    """Return the parts of the nearest summary that has all of them; else nothing."""
    if not 0 < len(lengths) <= _MOST_PARTS or min(lengths) <= 0:
        return []
    whole = sum(lengths) + len(_BETWEEN_PARTS) * (len(lengths) - 1)
    for thought in _shown_thoughts(output, place):
        if len(thought) != whole:
            continue
        parts: list[Item] = []
        start = 0
        for length in lengths:
            parts.append(text_part("summary", thought[start : start + length]))
            start += length + len(_BETWEEN_PARTS)
        return parts
    return []


def _shown_thoughts(output: Sequence[Item], place: int) -> Iterator[str]:
    """Yield the summaries of the reasoning in front of a place, the nearest first."""
    for item in reversed(output[max(0, place - _SEARCHED) : place]):
        # A summary is shown as one part. Whoever owns the chat can write any number, and
        # each row of a kept item looks here.
        parts = as_list(item.get("summary")) if is_reasoning(item) else []
        if len(parts) == 1 and isinstance(value_at(parts[0], "text"), str):
            yield parts[0]["text"]
