"""A scenario: its replies, each a list of items with an ending, and its faults."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

from simulator.options import Options
from simulator.request import ValidRequest

Event = dict[str, Any]
Events = list[Event]
StreamFault = Callable[[Events, Options], Events]


def send_delta_first(events: Events, options: Options) -> Events:
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


def interleave_calls(events: Events, options: Options) -> Events:
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


def send_whole_arguments(events: Events, options: Options) -> Events:
    """Send the arguments of calls in one event, without deltas."""
    del options
    return [
        event
        for event in events
        if event["type"] != "response.function_call_arguments.delta"
    ]


def send_partial_images(pictures: Sequence[str]) -> StreamFault:
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


def send_only_error(events: Events, options: Options) -> Events:
    """Send nothing but the error."""
    del options
    return events[-1:]


def drop_done_events(events: Events, options: Options) -> Events:
    """Leave out the ``done`` events of parts, which some gateways forget."""
    del options
    kept = ("response.output_item.done", "response.completed")
    return [e for e in events if e["type"] in kept or not e["type"].endswith(".done")]


def add_unknown_events(events: Events, options: Options) -> Events:
    """Put in the events that were asked for and no type knows."""
    if options.has("unknown"):
        events = list(_add_unknown(events))
    every = options.number("keepalive")
    return list(_add_keepalive(events, every)) if every else events


def _add_keepalive(events: Iterable[Event], every: int) -> Iterator[Event]:
    for position, event in enumerate(events, 1):
        yield event
        if position % every == 0 and "response" not in event:
            yield {"type": "keepalive"}


def _add_unknown(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        if event["type"] == "response.output_item.done":
            place = event["output_index"]
            yield {"type": "response.aura.delta", "output_index": place, "delta": "?"}
            yield {"type": "response.rate_limits.updated", "rate_limits": []}
        yield event


Item = dict[str, Any]


@dataclass(frozen=True)
class Ending:
    """How a response ends: its last event, and what that event says.

    A refused stream has a second event that tells the reason, ``before`` the last one or
    ``behind`` it.
    """

    event: str = "response.completed"
    fields: dict[str, Any] = field(default_factory=dict)
    before: Event | None = None
    behind: Event | None = None

    @property
    def status(self) -> str:
        """The status of the response at this ending."""
        return self.event.removeprefix("response.")


@dataclass(frozen=True)
class Reply:
    """One response: its items, its ending, what happens to its stream."""

    items: tuple[Item, ...]
    ending: Ending = Ending()
    disorder: StreamFault | None = None


@dataclass(frozen=True)
class HttpReply:
    """An answer that is no response object at all."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


ComposeReply = Callable[[ValidRequest, Options], Reply | HttpReply]


@dataclass(frozen=True)
class Scenario:
    """A name, a line on what it shows, and its replies in order."""

    name: str
    line: str
    replies: tuple[Reply | ComposeReply, ...]
    options: str = ""

    def reply_to(self, asked: ValidRequest, options: Options) -> Reply | HttpReply:
        """Return the reply that is due after the outputs the request carries."""
        due = self.replies[min(asked.rounds, len(self.replies) - 1)]
        return due(asked, options) if callable(due) else due


def make_scenario(
    name: str, line: str, *replies: Reply | ComposeReply, options: str = ""
) -> Scenario:
    """Return a scenario from its replies; ``options`` are faults it always has."""
    return Scenario(name, line, replies, options)


def make_reply(
    *items: Item, ending: Ending | None = None, disorder: StreamFault | None = None
) -> Reply:
    """Return a response made of items."""
    return Reply(items, ending or Ending(), disorder)


def end_incomplete(reason: str = "max_output_tokens") -> Ending:
    """End because a limit was reached."""
    return Ending("response.incomplete", {"incomplete_details": {"reason": reason}})


def end_failed(code: str, text: str) -> Ending:
    """End because the response failed."""
    return Ending("response.failed", {"error": {"code": code, "message": text}})


def end_uncounted(code: str, text: str) -> Ending:
    """End because the response failed; what it cost is not told, as often happens."""
    failed = end_failed(code, text)
    return Ending(failed.event, {**failed.fields, "usage": None})


def end_refused(
    code: str, text: str, *, type: str, counted: bool = True, **more: Any
) -> Ending:
    """End as the API does it: an ``error`` event, then ``response.failed``.

    ``more`` stands beside code and message in both.
    """
    failed = end_failed(code, text) if counted else end_uncounted(code, text)
    failed.fields["error"].update(more)
    error = {"type": type, "code": code, "message": text, "param": None, **more}
    told = {"type": "error", "error": error}
    return Ending(failed.event, failed.fields, before=told)


def end_with_late_reason(code: str, text: str) -> Ending:
    """End as Azure's filter does it: ``response.failed`` without a reason, then why."""
    error = {"type": "invalid_request_error", "code": code, "message": text}
    told = {"type": "error", "error": {**error, "param": None}}
    return Ending("response.failed", {"error": None}, behind=told)


def end_with_error_event(code: str, text: str, *, nested: bool, type: str) -> Ending:
    """End with an ``error`` event in one of its two forms."""
    fields = {"code": code, "message": text, "param": None}
    if nested:
        return Ending("error", {"error": {"type": type, **fields}})
    return Ending("error", fields)


def describe_scenarios(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    """Yield one line for each scenario, to be printed."""
    width = max(len(one.name) for one in scenarios)
    for one in scenarios:
        yield f"{one.name:<{width}}  {one.line}"
