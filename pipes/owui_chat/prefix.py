"""What was sent, reconciled with what is asked.

The host makes instructions and messages anew for each request. What a run sent that
its chat does not hold is kept with it; later requests begin with the same bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from owui_chat.injected import (
    Injected,
    injected_around,
    read_injected,
    with_injected,
)
from owui_chat.messages import Said, Stretch
from owui_chat.paired import Paired
from owui_chat.stored import message_key

_SENT_KEY = "sent"


@dataclass(frozen=True, slots=True)
class Sent:
    """What one run sent beside the chat.

    `instructions` belong to the first run that kept some; later ones keep the lines
    that were `new` against what had been told, and those that were `gone`.
    """

    injected: Injected | None = None
    instructions: str | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()

    def wire(self) -> dict[str, Any]:
        """Return the form that is stored: only what there is."""
        found = {
            "injected": self.injected and self.injected.wire(),
            "instructions": self.instructions,
            "new": list(self.new) or None,
            "gone": list(self.gone) or None,
        }
        return {key: value for key, value in found.items() if value is not None}


_NOTHING = Sent()


def with_sent(value: Mapping[str, Any], sent: Sent | None) -> dict[str, Any]:
    """Return the value of a message's key with what its run sent."""
    wire = sent.wire() if sent else None
    return {**value, _SENT_KEY: wire} if wire else dict(value)


def read_sent(chat: Mapping[str, Any]) -> dict[str, Sent]:
    """Return what a chat's JSON holds of this, by the ids of the answers."""
    prefix = message_key("")
    found: dict[str, Sent] = {}
    for key, value in chat.items():
        wire = value.get(_SENT_KEY) if isinstance(value, Mapping) else None
        if key.startswith(prefix) and isinstance(wire, Mapping):
            # In an answer's own output the key is not that of the message.
            owner = str(value.get("message_id") or key.removeprefix(prefix))
            found[owner] = _read_sent(wire)
    return found


def sent_now(
    stretches: Sequence[Stretch],
    pairs: Mapping[int, Paired],
    sent: Mapping[str, Sent],
    instructions: str | None,
) -> Sent:
    """Return what is sent with the message that is asked, the last of `pairs`.

    `instructions` are None where they may change from turn to turn.
    """
    place = max(pairs)
    asked = stretches[place]
    words = pairs[place].words
    injected = injected_around(asked, words) if isinstance(asked, Said) else None
    if instructions is None:
        return Sent(injected)
    if first_instructions(pairs, sent) is None:
        return Sent(injected, instructions)
    told, given = _told_lines(pairs, sent), _lines(instructions)
    new = tuple(line for line in given if line not in told)
    return Sent(
        injected, new=new, gone=tuple(line for line in told if line not in given)
    )


def first_instructions(
    pairs: Mapping[int, Paired], sent: Mapping[str, Sent]
) -> str | None:
    """Return the instructions as first given in this branch of the chat."""
    found = (one.instructions for one in _in_order(pairs, sent))
    return next((one for one in found if one is not None), None)


def as_sent(
    stretches: Sequence[Stretch],
    pairs: Mapping[int, Paired],
    sent: Mapping[str, Sent],
) -> list[Stretch]:
    """Return a chat with what was around the messages when they were sent."""
    result: list[Stretch] = []
    for place, stretch in enumerate(stretches):
        if place in pairs and isinstance(stretch, Said):
            one = sent.get(pairs[place].answer_id, _NOTHING)
            words = pairs[place].words
            result += [*_news(one), with_injected(stretch, words, one.injected)]
        else:
            result.append(stretch)
    return result


def _news(sent: Sent) -> list[Stretch]:
    """Return the message that tells of changed instructions, if they did."""
    lines = ["The instructions have changed."]
    if sent.new:
        lines += ["New lines:", *sent.new]
    if sent.gone:
        lines += ["Lines that no longer hold:", *sent.gone]
    if len(lines) == 1:
        return []
    part = {"type": "input_text", "text": "\n".join(lines)}
    return [Said({"type": "message", "role": "developer", "content": [part]})]


def _told_lines(pairs: Mapping[int, Paired], sent: Mapping[str, Sent]) -> list[str]:
    """Return the lines that hold after all that was told, in their order."""
    told = _lines(first_instructions(pairs, sent) or "")
    for one in _in_order(pairs, sent):
        told = [line for line in told if line not in one.gone]
        told += one.new
    return told


def _in_order(pairs: Mapping[int, Paired], sent: Mapping[str, Sent]) -> list[Sent]:
    return [sent.get(pairs[place].answer_id, _NOTHING) for place in sorted(pairs)]


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _read_sent(wire: Mapping[str, Any]) -> Sent:
    given = wire.get("instructions")
    return Sent(
        read_injected(wire.get("injected")),
        given if isinstance(given, str) else None,
        _read_lines(wire.get("new")),
        _read_lines(wire.get("gone")),
    )


def _read_lines(rows: object) -> tuple[str, ...]:
    return tuple(map(str, rows)) if isinstance(rows, list) else ()
