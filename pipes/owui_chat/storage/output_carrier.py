"""Records carried by the host's own stored output of a message.

The history is built in one way for all carriers: here the texts get the markers that
the chat does not show.

A record is one JSON text. Open WebUI reads and writes the whole chat several times for
each question, and each value in it takes longer than its characters do. Earlier versions
stored the value itself.

The text is a value as keys of the row have it (`records`), of one record, whose fields
are beside the value's: the item has its id. Each text has its own origin, because an
answer can be stopped after any of them, and everything around it can be deleted. The
summary of its reasoning is where the page shows it (`kept_summaries`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from openai_responses.items import Item, content_parts, is_call, is_call_output
from openai_responses.json_input import (
    MAX_JSON_BYTES,
    JsonBudget,
    JsonObject,
    JsonTooLarge,
    as_mapping,
    json_weight,
    parse_json_object,
    value_at,
)
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.code import CODE_CARD
from owui_chat.kept_summaries import kept_text, restore_summaries
from owui_chat.messages import (
    AssistantImage,
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    host_text,
    walk_branch,
    without_drawn,
)
from owui_chat.storage.records import message_key
from owui_chat.storage.signature import ordered_half

_RECORD_TYPE = "openai_responses:kept"
_RECORD_ID = "kept_"


def record_item(ulid: str, value: JsonObject) -> Item:
    """Return the value of a record as an item of the output.

    `before` is empty for the end. Whoever shows the answer writes the id of the message
    item that follows into it.
    """
    fields = dict(value)
    for wire in fields.pop("items", {}).values():
        fields |= wire
        if "signature" in wire:
            # No database changes the order of names in a text.
            fields["signature"] = ordered_half(wire["signature"])
    return {
        "type": _RECORD_TYPE,
        "id": f"{_RECORD_ID}{ulid}",
        "before": "",
        "kept": kept_text(fields),
    }


class _Place(NamedTuple):
    """A place in an answer."""

    number: int
    """Of the part."""
    offset: int
    """In the text of the part."""


class OutputRecord(NamedTuple):
    """A record in the output of a message."""

    message_id: str
    kept: object
    """A text, or a value of an earlier version."""
    output: Sequence[Item]
    place: int
    """That of its item in the output."""


def output_records(messages: JsonObject) -> dict[str, OutputRecord]:
    """Return the records in the outputs of a chat's messages, by keys as in its row."""
    stored: dict[str, OutputRecord] = {}
    for message_id, message in messages.items():
        output = content_parts(as_mapping(message).get("output"))
        for place, item in enumerate(output):
            if item.get("type") == _RECORD_TYPE:
                record = OutputRecord(message_id, item.get("kept"), output, place)
                stored[message_key(_item_id(item))] = record
    return stored


def parse_output_records(stored: Mapping[str, OutputRecord]) -> dict[str, Any]:
    """Return what records hold, in the form of a chat's keys; None for what cannot be.

    The owner of a chat writes what they like, and a short text can become a large value.
    """
    weight_left = JsonBudget(MAX_JSON_BYTES)
    values: dict[str, Any] = {}
    for key, (message_id, kept, output, place) in stored.items():
        values[key] = kept
        if not isinstance(kept, str):
            continue
        try:
            weight_left.spend(json_weight(kept))
            value = parse_json_object(kept)
            if value:
                restore_summaries(value, output, place, weight_left)
        except JsonTooLarge:
            value = None
        if value and "items" not in value:
            # Texts of earlier versions name their record and its message themselves.
            value.setdefault("message_id", message_id)
            names = ("payload", "shown", "signature")
            wire = {name: value.pop(name) for name in names if name in value}
            value["items"] = {key.removeprefix(message_key(_RECORD_ID)): wire}
        values[key] = value
    return values


def stored_outputs(
    messages: JsonObject, last_id: str, replaced_id: str = ""
) -> dict[str, list[object]]:
    """Return the outputs of the branch that ends at `last_id`, by ids of answers.

    They are as the host stores them. Answers that follow one another are one run, with
    the id of the first. If an answer is written anew, the host appends the replaced one.
    """
    runs: dict[str, list[object]] = {}
    first_id = ""
    branch = list(walk_branch(messages, last_id))
    for answer_id, message in reversed(branch):
        if message.get("role") == "user":
            first_id = ""
            continue
        if not first_id:
            first_id = answer_id
        runs.setdefault(first_id, []).append(message.get("output"))
    if first_id:
        runs[first_id].append(value_at(messages, replaced_id, "output"))
    return runs


def restore_from_outputs(
    parts: Sequence[ChatPart], runs: Mapping[str, Sequence[object]]
) -> list[ChatPart]:
    """Return a chat whose texts name the records in its `runs`.

    An answer belongs to the stored message in front of it. One that differs from its
    run is not changed.
    """
    restored: list[ChatPart] = []
    answer: list[ChatPart] = []
    run: Sequence[object] = ()
    for part in parts:
        if not isinstance(part, UserMessage):
            answer.append(part)
            continue
        if answer or part.is_question:  # else an instruction in front of the answer
            restored += _merge_output(answer, run)
            answer = []
            run = runs.get(part.stored.answer_id, ()) if part.stored else ()
        restored.append(part)
    return [*restored, *_merge_output(answer, run)]


def _merge_output(
    answer: Sequence[ChatPart], outputs: Sequence[object]
) -> Iterable[ChatPart]:
    """Return an answer with the records in the outputs of its run."""
    run: list[Item] = []
    for output in outputs:
        run += content_parts(output)
    answer = _in_stored_order(answer, run)
    records = [item for item in run if item.get("type") == _RECORD_TYPE]
    if not records:
        return answer
    finder = _PlaceFinder(answer)
    for item in run:
        finder.follow(item)
    # An answer that has texts, but no text or call of this run, is another run's.
    call_ids = {str(item.get("call_id")) for item in run if is_call(item)}
    calls = [part for part in answer if isinstance(part, ToolCall)]
    has_call = any(call.call_id in call_ids for call in calls)
    is_known = finder.has_text or has_call
    if not is_known and any(isinstance(part, AssistantText) for part in answer):
        return answer

    # Each record goes to its place, before the text that it names; one without a text
    # comes at the end, and one whose text is gone nowhere.
    end = _Place(len(answer), 0)
    ulids_by_number: dict[int, dict[int, list[str]]] = {}
    for item in records:
        before = item.get("before")
        place = finder.by_id.get(str(before)) if before else end
        if place is None:
            continue
        ulid = _item_id(item).removeprefix(_RECORD_ID).upper()
        ulids = ulids_by_number.setdefault(place.number, {})
        ulids.setdefault(place.offset, []).append(ulid)
    restored: list[ChatPart] = []
    for number, part in enumerate(answer):
        if number in ulids_by_number:
            restored += _cut_at_records(part, ulids_by_number[number])
        else:
            restored.append(part)
    if end.number in ulids_by_number:
        restored += _cut_at_records(AssistantText(""), ulids_by_number[end.number])
    return restored


def _in_stored_order(
    answer: Sequence[ChatPart], run: Iterable[Item]
) -> Sequence[ChatPart]:
    """Return an answer whose calls and outputs follow one another as in its run.

    Before 0.12 the host puts the calls of several rounds in front of all their outputs,
    unless a text or a thought is between them. The request of the last round had them in
    order, and the next one has to begin like it.
    """
    calls: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for index, item in enumerate(run):
        if is_call(item):
            calls.setdefault(str(item.get("call_id")), index)
        elif is_call_output(item):
            outputs.setdefault(str(item.get("call_id")), index)

    def place(part: ChatPart) -> int:
        if isinstance(part, ToolCall):
            return calls[part.call_id]
        return outputs[part.call_id] if isinstance(part, ToolMessage) else 0

    ordered: list[ChatPart] = []
    for is_tool, parts in groupby(
        answer, key=lambda part: isinstance(part, ToolCall | ToolMessage)
    ):
        block = list(parts)
        ids = {
            part.call_id for part in block if isinstance(part, ToolCall | ToolMessage)
        }
        # Each call is in the run, and its output after it.
        is_known = all(calls.get(id, math.inf) < outputs.get(id, -1) for id in ids)
        ordered += sorted(block, key=place) if is_tool and is_known else block
    return ordered


# How the host's answer is held against what it stored:
#
#   stored output                      what comes back for the next turn
#   -----------------------------      ---------------------------------
#   kept_1, before msg_1               0  AssistantText "Let me see."
#   msg_1      "Let me see."           1  ToolCall      call_1
#   call_1, output of call_1           2  ToolMessage   call_1
#   kept_2, before msg_2               3  AssistantText "It rains.\nTake a coat."
#   msg_2      "It rains."
#   kept_3, before msg_3
#   msg_3      "Take a coat."
#
# kept_1 belongs to (part 0, offset 0), kept_2 to (3, 0), kept_3 to (3, 10): after the
# line feed. If a user edits "It rains.", kept_2 stays at the beginning of its part,
# and kept_3 has no place any more.
class _PlaceFinder:
    """Follows the items of a run through the answer that the host made of them.

    Texts are joined by line ends, and after an output a new one begins
    (`convert_output_to_messages`). So a text has one place. If it was changed, the
    texts after it have none, up to the next output. Commentary, which the host does not
    return, is placed after the item before it.
    """

    def __init__(self, answer: Sequence[ChatPart]) -> None:
        self.by_id: dict[str, _Place] = {}
        self.has_text = False
        """Whether the answer has one of the run's texts unchanged."""
        self._answer = answer
        self._outputs = {
            part.call_id: number
            for number, part in enumerate(answer)
            if isinstance(part, ToolMessage)
        }
        self._place: _Place | None = _Place(0, 0)
        """Where the next text is looked for; None up to the next output."""
        self._next_number = 0

    def follow(self, item: Item) -> None:
        """Note the place of the next item, if it has one."""
        if is_call_output(item):
            # Go on after the output, if the answer has it, but never back.
            number = self._outputs.get(str(item.get("call_id")), -1)
            if number >= self._next_number:
                self._next_number = number + 1
                self._place = _Place(self._next_number, 0)
        elif self._place is None:
            return
        elif item.get("type") == COMMENTARY_TYPE:
            self.by_id[_item_id(item)] = self._place
        elif host_text(item):
            start, end = _find_text(self._answer, self._place, item)
            self._place = end
            if start is not None:
                self.by_id[_item_id(item)] = start
            if start is not None and end not in (None, start):
                self.has_text = True


def _find_text(
    answer: Sequence[ChatPart], place: _Place, item: Item
) -> tuple[_Place | None, _Place | None]:
    """Return where the next text of a run begins, and where it ends.

    A changed text has no end, and begins if it is the first of its part. Code whose
    card was deleted ends where it would begin.
    """
    text = without_drawn(host_text(item))
    number, offset = place
    if offset and offset == len(_part_text(answer, number)):
        number += 1
        offset = 0
    while number < len(answer) and isinstance(answer[number], AssistantImage):
        number += 1  # those of a text are in front of it
    whole = _part_text(answer, number)
    # Texts of messages without a tool between them are joined by a line feed
    # (utils/misc.py:408 of Open WebUI 0.12.4).
    gap = "\n" if offset else ""
    if whole.startswith(gap + text, offset):
        start = offset + len(gap)
        return _Place(number, start), _Place(number, start + len(text))
    if item.get("type") == CODE_CARD:
        return None, place
    is_first = whole != "" and offset == 0
    start_of_part = _Place(number, 0) if is_first else None
    return start_of_part, None


def _cut_at_records(
    part: ChatPart, ulids: Mapping[int, Sequence[str]]
) -> list[ChatPart]:
    """Return a part after its records, which are given by their places in its text."""
    if not isinstance(part, AssistantText):
        return [AssistantText("", list(ulids.get(0, ()))), part]
    starts = sorted({0, *ulids})
    stops = [*starts[1:], None]
    pieces: list[ChatPart] = []
    for start, stop in zip(starts, stops, strict=True):
        named = list(ulids.get(start, ()))
        if start == 0:
            named += part.ulids
        pieces.append(AssistantText(part.text[start:stop].strip(), named))
    return pieces


def _part_text(answer: Sequence[ChatPart], number: int) -> str:
    """Return the text of a part; empty for another part, and after the last one."""
    part = answer[number] if number < len(answer) else None
    return part.text if isinstance(part, AssistantText) else ""


def _item_id(item: Item) -> str:
    return str(item.get("id") or "")
