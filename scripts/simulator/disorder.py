"""What can happen to the order of a stream."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, zip_longest
from typing import Any

from simulator.options import Options

Event = dict[str, Any]
Events = list[Event]
Disorder = Callable[[Events, Options], Events]


def delta_first(events: Events, options: Options) -> Events:
    """Send the first delta of each item before its ``output_item.added``."""
    del options
    moved = list(events)
    for index in sorted({event.get("output_index", -1) for event in events} - {-1}):
        own = [one for one in moved if one.get("output_index") == index]
        delta = next((one for one in own if one["type"].endswith(".delta")), None)
        if delta is not None:
            moved.remove(delta)
            moved.insert(moved.index(own[0]), delta)
    return moved


def interleave(events: Events, options: Options) -> Events:
    """Mix the events of neighbouring calls, as parallel calls arrive."""
    del options
    kinds = {
        event["output_index"]: event["item"]["type"]
        for event in events
        if event["type"] == "response.output_item.added"
    }
    mixing = ("function_call", "mcp_call")
    calls = [index for index, kind in kinds.items() if kind in mixing]
    mixed = chain.from_iterable(
        zip_longest(*([e for e in events if e.get("output_index") == i] for i in calls))
    )
    replaced = iter([event for event in mixed if event is not None])
    return [
        next(replaced) if event.get("output_index") in calls else event
        for event in events
    ]


def whole_arguments(events: Events, options: Options) -> Events:
    """Send the arguments of calls in one event, without deltas."""
    del options
    return [
        event
        for event in events
        if event["type"] != "response.function_call_arguments.delta"
    ]


def partial_pictures(pictures: Sequence[str]) -> Disorder:
    """Send these pictures while the real one is drawn, as many as were asked for."""

    def disorder(events: Events, options: Options) -> Events:
        del options
        sent: Events = []
        for event in events:
            partial = event["type"].endswith(".partial_image")
            drawn = enumerate(pictures) if partial else ()
            names = ("partial_image_index", "partial_image_b64")
            sent += [{**event, **dict(zip(names, one, strict=True))} for one in drawn]
            sent += [] if partial else [event]
        return sent

    return disorder


def only_error(events: Events, options: Options) -> Events:
    """Send nothing but the error."""
    del options
    return events[-1:]


def without_done(events: Events, options: Options) -> Events:
    """Leave out the ``done`` events of parts, which some gateways forget."""
    del options
    kept = ("response.output_item.done", "response.completed")
    return [e for e in events if e["type"] in kept or not e["type"].endswith(".done")]


def add_strangers(events: Events, options: Options) -> Events:
    """Put in the events that were asked for and no type knows."""
    if options.has("unknown"):
        events = list(_with_unknown(events))
    every = options.number("keepalive")
    return list(_with_keepalive(events, every)) if every else events


def _with_keepalive(events: Iterable[Event], every: int) -> Iterator[Event]:
    for position, event in enumerate(events, 1):
        yield event
        if position % every == 0 and "response" not in event:
            yield {"type": "keepalive"}


def _with_unknown(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        if event["type"] == "response.output_item.done":
            place = event["output_index"]
            yield {"type": "response.aura.delta", "output_index": place, "delta": "?"}
            yield {"type": "response.rate_limits.updated", "rate_limits": []}
        yield event
