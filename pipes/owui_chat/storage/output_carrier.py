"""Records carried by the host's own stored output of a message.

The history is built in one way for all carriers: here the texts get the markers that
the chat does not show. Runs are matched from the end, because the host may have left
out the oldest messages.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

from openai_responses.items import (
    Item,
    content_parts,
    is_call,
    is_call_output,
    is_commentary,
    item_type,
    message_text,
    open_calls,
)
from openai_responses.json_input import JsonObject, as_mapping, as_text
from openai_responses.requests.replay import is_approval_request
from owui_chat.events import StoredRecord
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from owui_chat.storage.records import message_key

COMMENTARY_TYPE = "openai_responses:remark"


def closing_commentary(output: Sequence[Item]) -> Item | None:
    """Return the commentary that is the last output of a run or of its last response."""
    if open_calls(output):
        return None
    for item in reversed(output):
        if is_call(item) or is_call_output(item) or is_approval_request(item):
            return None
        if item_type(item) == "message" and message_text(item).strip():
            return item if is_commentary(item) else None
    return None


_RECORD_TYPE = "openai_responses:kept"
_RECORD_ID = "kept_"


def record_item(stored: StoredRecord, before: str) -> Item:
    """Return a record as an item of the output.

    `before` is the id of the message item that follows; empty for the end.
    """
    head = {"type": _RECORD_TYPE, "id": f"{_RECORD_ID}{stored.ulid}", "before": before}
    return {**head, "kept": dict(stored.value)}


_Place = tuple[int, int]
"""The number of a part, and where in its text."""


def output_values(messages: JsonObject) -> dict[str, Any]:
    """Return the values in the outputs of a chat's messages, in the form of its keys."""
    items = (item for message in messages.values() for item in _output_of(message))
    return {
        message_key(_item_id(item)): item.get("kept")
        for item in filter(_is_record, items)
    }


def stored_outputs(messages: JsonObject, tip: str, more: str = "") -> list[list[Item]]:
    """Return the outputs of the branch that ends at `tip`, grouped by run.

    `more` is a message that the host appends: the answer that is written anew.
    """
    chain: list[JsonObject] = []
    left = dict(messages)
    while isinstance(message := left.pop(tip, None), Mapping):
        chain.append(message)
        tip = str(message.get("parentId") or "")
    runs: list[list[Item]] = [[]]
    for message in reversed(chain):
        if message.get("role") == "user":
            runs.append([])
        runs[-1] += _output_of(message)
    return [run for run in [*runs, _output_of(messages.get(more))] if run]


def restore_from_outputs(
    parts: Sequence[ChatPart], runs: Sequence[Sequence[Item]]
) -> list[ChatPart]:
    """Return a chat with markers for the records in its `runs`.

    A run that differs from the stored chat is not changed.
    """
    waiting, groups = list(runs), list[list[ChatPart]]()
    grouped = groupby(reversed(parts), lambda part: isinstance(part, UserMessage))
    for is_said, group in grouped:
        found = [*group][::-1]
        groups.append(found if is_said else _merge_output(found, waiting))
    return [part for group in reversed(groups) for part in group]


_MOST_TRIED = 20
"""Runs that an answer is compared with: those of changed answers are passed over."""


def _merge_output(
    answer: list[ChatPart], waiting: list[Sequence[Item]]
) -> list[ChatPart]:
    """Return an answer with the markers of its run, which then no longer waits."""
    outputs = {p.call_id: n for n, p in enumerate(answer) if isinstance(p, ToolMessage)}
    for number in reversed(range(len(waiting))[-_MOST_TRIED:]):
        places = _places(answer, outputs, waiting[number])
        if places is not None:
            kept = list(filter(_is_record, waiting[number]))
            del waiting[number:]
            return [*_with_records(answer, kept, places)]
    if len(waiting) > _MOST_TRIED:
        waiting.pop()  # so that the runs that are tried move along with the answers
    return answer


def _places(
    answer: Sequence[ChatPart], outputs: Mapping[str, int], run: Sequence[Item]
) -> dict[str, _Place] | None:
    """Return the position of each message of a run; None if the answer is another one.

    `outputs` are the places of the answer's outputs. Commentary, which the host does
    not return, is placed behind the item before it.
    """
    found: dict[str, _Place] = {}
    place, has_text = (0, 0), False
    for item in run:
        kind = item_type(item)
        if is_call_output(item):
            place = max(place, (outputs.get(str(item.get("call_id")), -1) + 1, 0))
        elif kind == COMMENTARY_TYPE:
            found[_item_id(item)] = place
        elif kind == "message" and (text := _given_text(item)):
            at = _find_text(answer, place, text)
            if at is None:
                return None
            found[_item_id(item)], has_text = at, True
            place = (at[0], at[1] + len(text))
    return found if has_text or _has_call(answer, run) else None


def _find_text(answer: Sequence[ChatPart], place: _Place, text: str) -> _Place | None:
    first, start = place
    for number in range(first, len(answer)):
        part = answer[number]
        if isinstance(part, AssistantText):
            at = part.text.find(text, start if number == first else 0)
            if at >= 0:
                return number, at
    return None


def _has_call(answer: Sequence[ChatPart], run: Sequence[Item]) -> bool:
    call_ids = {str(item.get("call_id")) for item in run if is_call(item)}
    return any(isinstance(p, ToolCall) and p.call_id in call_ids for p in answer)


def _with_records(
    answer: Sequence[ChatPart], kept: Sequence[Item], places: Mapping[str, _Place]
) -> Iterator[ChatPart]:
    """Yield an answer's parts, with the records at their places."""
    ulids: list[dict[int, list[str]]] = [{} for _ in range(len(answer) + 1)]
    for item in kept:
        place = places.get(item.get("before") or "")
        if place is None and item.get("before"):
            continue  # its text is gone
        number, at = place or (len(answer), 0)
        own = _item_id(item).removeprefix(_RECORD_ID).upper()
        ulids[number].setdefault(at, []).append(own)
    for part, here in zip(answer, ulids, strict=False):
        text = part if isinstance(part, AssistantText) else AssistantText("")
        if here:
            here[0] = [*here.get(0, ()), *text.ulids]
            for start, end in pairwise([*sorted(here), len(text.text)]):
                yield AssistantText(text.text[start:end].strip(), here[start])
        if not here or part is not text:
            yield part
    for rows in ulids[-1].values():
        yield AssistantText("", rows)


def _output_of(message: object) -> list[Item]:
    return content_parts(as_mapping(message).get("output"))


def _given_text(item: Item) -> str:
    parts = content_parts(item.get("content"))
    texts = (p.get("text") for p in parts if p.get("type") == "output_text")
    return "".join(map(as_text, texts))


def _is_record(item: Item) -> bool:
    return item.get("type") == _RECORD_TYPE and _item_id(item).startswith(_RECORD_ID)


def _item_id(item: Item) -> str:
    return str(item.get("id") or "")
