"""Records carried by the host's own stored output of a message.

The history is built in one way for all carriers: here the texts get the markers that
the chat does not show.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_text,
    value_at,
)
from openai_responses.requests.replay import is_approval_request
from owui_chat.code import CODE_CARD, code_text
from owui_chat.events import StoredRecord
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    walk_branch,
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
    return {
        message_key(_item_id(item)): item.get("kept")
        for message in messages.values()
        for item in as_list(as_mapping(message).get("output"))
        if isinstance(item, dict) and item.get("type") == _RECORD_TYPE
    }


def stored_outputs(
    messages: JsonObject, tip: str, more: str = ""
) -> dict[str, list[object]]:
    """Return the outputs of the branch that ends at `tip`, by ids of answers; unread.

    Answers that follow one another are one run, with the id of the first. `more` is a
    message that the host appends: the answer that is written anew.
    """
    runs, first = dict[str, list[object]](), ""
    for answer_id, message in reversed([*walk_branch(messages, tip)]):
        if message.get("role") == "user":
            first = ""
        else:
            first = first or answer_id
            runs.setdefault(first, []).append(message.get("output"))
    if first:
        runs[first].append(value_at(messages, more, "output"))
    return runs


def restore_from_outputs(
    parts: Sequence[ChatPart], runs: Mapping[str, Sequence[object]]
) -> list[ChatPart]:
    """Return a chat whose texts name the records in its `runs`.

    An answer belongs to the stored message in front of it. One that differs from its
    run is not changed.
    """
    restored, answer = list[ChatPart](), list[ChatPart]()
    run: Sequence[object] = ()
    for part in parts:
        if isinstance(part, UserMessage):
            restored += [*_merge_output(answer, run), part]
            answer = []
            run = runs.get(part.stored.answer_id, ()) if part.stored else ()
        else:
            answer.append(part)
    return [*restored, *_merge_output(answer, run)]


def _merge_output(
    answer: Sequence[ChatPart], outputs: Sequence[object]
) -> Iterable[ChatPart]:
    run = [item for output in outputs for item in content_parts(output)]
    records, places, is_known = _find_places(answer, run)
    if records and (is_known or _has_call(answer, run)):
        return _with_records(answer, records, places)
    return answer


def _find_places(
    answer: Sequence[ChatPart], run: Sequence[Item]
) -> tuple[list[Item], dict[str, _Place], bool]:
    """Return the records of a run, the position of each of its messages in an answer,
    and whether the answer has one of its texts.

    The host made the answer of the run: texts are joined by line ends, and behind an
    output a new one begins (`convert_output_to_messages`). So a text has one place. If
    it was changed, the texts behind it have none, up to the next output. Commentary,
    which the host does not return, is placed behind the item before it.
    """
    outputs = {p.call_id: n for n, p in enumerate(answer) if isinstance(p, ToolMessage)}
    records, found = list[Item](), dict[str, _Place]()
    least, is_known = 0, False
    place: _Place | None = (0, 0)
    for item in run:
        kind = item.get("type")
        if kind == _RECORD_TYPE:
            records.append(item)
        elif kind in ("message", CODE_CARD):
            if place and (text := _host_text(item)):
                start, place = _find_text(answer, place, item, text)
                if start:
                    found[_item_id(item)] = start
                is_known |= None not in (start, place)
        elif kind == COMMENTARY_TYPE:
            if place:
                found[_item_id(item)] = place
        elif is_call_output(item):
            number = outputs.get(str(item.get("call_id")), -1)
            if number >= least:
                least, place = number + 1, (number + 1, 0)
    return records, found, is_known


def _find_text(
    answer: Sequence[ChatPart], place: _Place, item: Item, text: str
) -> tuple[_Place | None, _Place | None]:
    """Return where the next text of a run begins, and where it ends.

    A changed text has no end, and begins if it is the first of its part. Code whose
    card was deleted ends where it would begin.
    """
    number, at = place
    whole = _text(answer, number)
    if at and at == len(whole):
        number, at = number + 1, 0
        whole = _text(answer, number)
    gap = "\n" if at else ""
    if whole.startswith(gap + text, at):
        at += len(gap)
        return (number, at), (number, at + len(text))
    if item.get("type") == CODE_CARD:
        return None, place
    return (None if at or not whole else (number, at)), None


def _has_call(answer: Sequence[ChatPart], run: Sequence[Item]) -> bool:
    """Say whether an answer has a call of a run, or no text by which to know it."""
    call_ids = {str(item.get("call_id")) for item in run if is_call(item)}
    has_call = any(isinstance(p, ToolCall) and p.call_id in call_ids for p in answer)
    return has_call or not any(isinstance(p, AssistantText) for p in answer)


def _with_records(
    answer: Sequence[ChatPart], records: Iterable[Item], places: Mapping[str, _Place]
) -> list[ChatPart]:
    """Return an answer's parts, with the records at their places.

    A record whose text is gone has none.
    """
    named = defaultdict[int, dict[int, list[str]]](dict)
    for item in records:
        before = item.get("before")
        place = places.get(str(before)) if before else (len(answer), 0)
        if place:
            own = _item_id(item).removeprefix(_RECORD_ID).upper()
            named[place[0]].setdefault(place[1], []).append(own)
    found = list[ChatPart]()
    for number, part in enumerate([*answer, AssistantText("")]):
        if number in named:
            found += _cut_at_records(part, named[number])
        elif number < len(answer):
            found.append(part)
    return found


def _cut_at_records(part: ChatPart, ulids: dict[int, list[str]]) -> list[ChatPart]:
    """Return a part behind its records, which are given by their places in its text."""
    text = part if isinstance(part, AssistantText) else AssistantText("")
    ulids[0] = [*ulids.get(0, ()), *text.ulids]
    pieces, stop = list[ChatPart](), None
    for start in sorted(ulids, reverse=True):
        pieces.append(AssistantText(text.text[start:stop].strip(), ulids[start]))
        stop = start
    pieces.reverse()
    return pieces if part is text else [*pieces, part]


def _text(answer: Sequence[ChatPart], number: int) -> str:
    part = answer[number] if number < len(answer) else None
    return part.text if isinstance(part, AssistantText) else ""


def _host_text(item: Item) -> str:
    """Return what the host puts into the text of a later turn for a message or code."""
    if item.get("type") == CODE_CARD:
        return code_text(as_text(item.get("code")))
    return "".join(
        [
            as_text(part.get("text"))
            for part in as_list(item.get("content"))
            if isinstance(part, dict) and part.get("type") == "output_text"
        ]
    )


def _item_id(item: Item) -> str:
    return str(item.get("id") or "")
