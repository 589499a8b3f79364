"""Messages that carry turns -> messages with markers, with the records they name.

So the history is put together in one way only, whatever keeps its items.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from openai_responses.items import message_text
from openai_responses.origin import Origin
from owui_chat.details import CarriedItem, CarriedTurn, carried_turns
from owui_chat.markers import marker
from owui_chat.stored import Record, text_digest


def with_records(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[list[Mapping[str, Any]], dict[str, Record]]:
    """Return the messages with markers for what they carry, and what those name."""
    reading = _Reading()
    return reading.marked(messages), reading.records


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Items of a turn up to a message whose text the host shows, or to the end."""

    items: tuple[CarriedItem, ...]
    origin: Origin

    @property
    def last(self) -> CarriedItem:
        return self.items[-1]


class _Reading:
    """Puts the markers into the messages of one chat."""

    def __init__(self) -> None:
        self.records: dict[str, Record] = {}
        self._textless: list[str] = []

    def marked(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the messages; markers without a text stand at the end of their run."""
        found: list[Mapping[str, Any]] = []
        for message in messages:
            is_message = isinstance(message, Mapping)  # else the reader says so
            if is_message and message.get("role") == "user":
                found += self._rest()
            turns = carried_turns(message) if is_message else []
            found.append(self._message(message, turns) if turns else message)
        return [*found, *self._rest()]

    def _rest(self) -> list[Mapping[str, Any]]:
        """Return a message for what belongs to calls: those come before it."""
        content = "".join(self._textless)
        self._textless = []
        return [{"role": "assistant", "content": content}] if content else []

    def _message(
        self, message: Mapping[str, Any], turns: Sequence[CarriedTurn]
    ) -> Mapping[str, Any]:
        """Return a message, each of its texts behind the marker of its items."""
        content = message.get("content")
        stretches = [one for turn in turns for one in _stretches_of(turn)]
        texts = _split_text(content if isinstance(content, str) else "", stretches)
        pieces: list[str] = []
        for stretch in stretches:
            line = self._marker(stretch)
            if stretch.last.shown and texts:
                pieces += [line, _own_text(stretch.last, texts.pop(0))]
            else:
                self._textless.append(line)
        return {**message, "content": "".join([*pieces, *texts])}

    def _marker(self, stretch: _Stretch) -> str:
        """Return the marker of a new record of these items."""
        ulid = f"{len(self.records):026d}"
        payload = tuple(carried.item for carried in stretch.items)
        record = Record(ulid, "", 0, payload, "", stretch.origin)
        if stretch.last.shown:
            shown = text_digest(message_text(stretch.last.item))
            record = replace(record, shown=shown)
        self.records[ulid] = record
        return marker(record.kind, ulid)


def _stretches_of(turn: CarriedTurn) -> list[_Stretch]:
    found: list[_Stretch] = []
    begun: list[CarriedItem] = []
    for carried in turn.items:
        begun.append(carried)
        if carried.shown:
            found.append(_Stretch(tuple(begun), turn.origin))
            begun = []
    return [*found, _Stretch(tuple(begun), turn.origin)] if begun else found


def _split_text(content: str, stretches: Sequence[_Stretch]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    A text that a person changed so that the places do not fit stays whole.
    """
    lengths = [_shown_length(one.last) for one in stretches if one.last.shown]
    texts, rest = list[str](), content
    for length in lengths[:-1]:
        if rest[length : length + 1] != "\n":
            return [content] if content else []
        texts.append(rest[:length])
        rest = rest[length + 1 :]
    return [*texts, rest] if rest else texts


def _shown_length(carried: CarriedItem) -> int:
    return carried.shown if isinstance(carried.shown, int) else len(carried.shown)


def _own_text(carried: CarriedItem, text: str) -> str:
    """Return the model's own text where another one is shown, unless it was edited."""
    if isinstance(carried.shown, str) and carried.shown.strip() == text.strip():
        return message_text(carried.item)
    return text
