"""The events of a whole response."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from simulator.ids import digest
from simulator.item_events import events_of
from simulator.options import Options
from simulator.scenario import Ending, Reply

Item = dict[str, Any]
Event = dict[str, Any]
BROKEN = ("response.failed", "error")
OBFUSCATION = 16


def write_stream(
    reply: Reply, opened: Item, closed: Item, options: Options
) -> list[Event]:
    """Return the events of a response, not yet numbered."""
    begun = {**opened, "status": "in_progress"}
    events: list[Event] = [{"type": "response.created", "response": opened}]
    if opened["background"]:
        events.append({"type": "response.queued", "response": opened})
    events.append({"type": "response.in_progress", "response": begun})
    events += _body(closed["output"], reply.ending)
    events.append(_last(reply.ending, closed))
    if reply.disorder is not None:
        events = reply.disorder(events, options)
    return events


def finished_part(items: Sequence[Item], ending: Ending) -> list[Item]:
    """Return the items as the ending leaves them.

    A limit leaves the last item incomplete; a failure leaves it out.
    """
    if ending.event in BROKEN:
        return list(items[:-1])
    if ending.event == "response.incomplete" and items:
        return [*items[:-1], {**items[-1], "status": "incomplete"}]
    return list(items)


def number(events: Sequence[Event], obfuscated: bool) -> list[Event]:
    """Number events from 0 and pad the deltas, as the API does."""
    numbered = []
    for position, event in zip(count(), events, strict=False):
        kind = event["type"]
        padded = {"type": kind, "sequence_number": position, **event}
        if obfuscated and kind.endswith(".delta"):
            padding = digest(f"{position} {event['delta']}")
            padded["obfuscation"] = padding[: 1 + position % OBFUSCATION]
        numbered.append(padded)
    return numbered


def _body(items: Sequence[Item], ending: Ending) -> list[Event]:
    written = [list(events_of(item, index)) for index, item in enumerate(items)]
    if ending.event in BROKEN and written:
        written[-1] = written[-1][: max(2, len(written[-1]) // 2)]
    return [event for events in written for event in events]


def _last(ending: Ending, closed: Item) -> Event:
    if ending.event == "error":
        return {"type": "error", **ending.fields}
    output = finished_part(closed["output"], ending)
    return {"type": ending.event, "response": {**closed, "output": output}}
