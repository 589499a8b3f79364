"""A scenario: its replies, their endings, and the faults of their streams."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.builders import build_message

Event = dict[str, Any]
Events = list[Event]
StreamFault = Callable[[Events, Options], Events]
"""Changes the events of a stream, as some server or network would."""


def send_delta_first(events: Events, _options: Options) -> Events:
    """Send the first delta of each item before its ``output_item.added``."""
    moved = list(events)
    for index in _output_indexes(events):
        item_events = [event for event in moved if event.get("output_index") == index]
        deltas = [event for event in item_events if event["type"].endswith(".delta")]
        if deltas:
            moved.remove(deltas[0])
            moved.insert(moved.index(item_events[0]), deltas[0])
    return moved


def _output_indexes(events: Events) -> list[int]:
    indexes = {event["output_index"] for event in events if "output_index" in event}
    return sorted(indexes)


def interleave_calls(events: Events, _options: Options) -> Events:
    """Mix the events of the calls, as those of parallel calls arrive."""
    events_of_calls: dict[int, Events] = {}
    for event in events:
        if _begins_call(event):
            events_of_calls[event["output_index"]] = []
        if event.get("output_index") in events_of_calls:
            events_of_calls[event["output_index"]].append(event)
    mixed = _take_turns(list(events_of_calls.values()))
    sent: Events = []
    for event in events:
        if event.get("output_index") in events_of_calls:
            sent.append(mixed.pop(0))
        else:
            sent.append(event)
    return sent


def _begins_call(event: Event) -> bool:
    if event["type"] != "response.output_item.added":
        return False
    return event["item"]["type"] in ("function_call", "mcp_call")


def _take_turns(streams: Sequence[Events]) -> Events:
    """Return the first event of each stream, then the second of each, and so on."""
    mixed: Events = []
    for turn in zip_longest(*streams):
        mixed += [event for event in turn if event is not None]
    return mixed


def send_partial_images(pictures: Sequence[str]) -> StreamFault:
    """Send these partial images in place of the only one."""

    def replace_partial_images(events: Events, _options: Options) -> Events:
        sent: Events = []
        for event in events:
            if not event["type"].endswith(".partial_image"):
                sent.append(event)
                continue
            for index, picture in enumerate(pictures):
                image = {"partial_image_index": index, "partial_image_b64": picture}
                sent.append({**event, **image})
        return sent

    return replace_partial_images


def send_only_error(events: Events, _options: Options) -> Events:
    """Send nothing but the error."""
    return events[-1:]


def drop_done_events(events: Events, _options: Options) -> Events:
    """Leave out the ``done`` events of parts, as some gateways do."""
    return [event for event in events if not _is_done_of_part(event)]


def _is_done_of_part(event: Event) -> bool:
    kind: str = event["type"]
    return kind.endswith(".done") and kind != "response.output_item.done"


def add_unknown_events(events: Events, options: Options) -> Events:
    """Add the events that ``unknown`` and ``keepalive`` ask for."""
    if options.has("unknown"):
        events = list(_add_unknown(events))
    interval = options.number("keepalive")
    if interval:
        events = list(_add_keepalive(events, interval))
    return events


def _add_keepalive(events: Iterable[Event], interval: int) -> Iterator[Event]:
    for number, event in enumerate(events, 1):
        yield event
        if number % interval == 0 and "response" not in event:
            yield {"type": "keepalive"}


def _add_unknown(events: Iterable[Event]) -> Iterator[Event]:
    for event in events:
        if event["type"] == "response.output_item.done":
            index = event["output_index"]
            yield {"type": "response.aura.delta", "output_index": index, "delta": "?"}
            yield {"type": "response.rate_limits.updated", "rate_limits": []}
        yield event


Item = dict[str, Any]


@dataclass(frozen=True)
class Ending:
    """How a response ends: the type of its last event, and the fields of that event.

    A refused stream has another event with the reason, before or after the last one.
    """

    event: str = "response.completed"
    fields: dict[str, Any] = field(default_factory=dict)
    event_before: Event | None = None
    event_after: Event | None = None

    @property
    def status(self) -> str:
        """The status of the response at this ending."""
        return self.event.removeprefix("response.")


@dataclass(frozen=True)
class Reply:
    """One response: its items, its ending, the fault of its stream."""

    items: tuple[Item, ...]
    ending: Ending = Ending()
    fault: StreamFault | None = None


@dataclass(frozen=True)
class HttpReply:
    """An answer without a response object."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


ComposeReply = Callable[[ValidRequest, Options], Reply | HttpReply]


@dataclass(frozen=True)
class Scenario:
    """What the API answers in a chat.

    The first reply answers the question, each later one a round of tool outputs; the
    last one is repeated. ``options`` are those that the scenario always has.
    """

    name: str
    summary: str
    replies: tuple[Reply | ComposeReply, ...]
    options: str = ""

    def reply_to(self, request: ValidRequest, options: Options) -> Reply | HttpReply:
        """Return the reply for the number of rounds that the request contains."""
        reply = self.replies[min(request.rounds, len(self.replies) - 1)]
        return compose_reply(reply, request, options)


def compose_reply(
    reply: Reply | ComposeReply, request: ValidRequest, options: Options
) -> Reply | HttpReply:
    """Return a reply that may depend on the request."""
    if callable(reply):
        return reply(request, options)
    return reply


def require_tool(kind: str, *replies: Reply | ComposeReply) -> tuple[ComposeReply, ...]:
    """Return replies that need a hosted tool; without it, the model says so."""
    return tuple(_require_tool(kind, reply) for reply in replies)


def _require_tool(kind: str, reply: Reply | ComposeReply) -> ComposeReply:
    def compose(request: ValidRequest, options: Options) -> Reply | HttpReply:
        if not request.tools(kind):
            return make_reply(build_message(f"I have no {kind}."))
        return compose_reply(reply, request, options)

    return compose


def make_scenario(
    name: str, summary: str, *replies: Reply | ComposeReply, options: str = ""
) -> Scenario:
    """Return a scenario from its replies."""
    return Scenario(name, summary, replies, options)


def make_reply(
    *items: Item, ending: Ending | None = None, fault: StreamFault | None = None
) -> Reply:
    """Return a reply from its items."""
    return Reply(items, ending or Ending(), fault)


def end_incomplete(reason: str = "max_output_tokens") -> Ending:
    """End because a limit was reached."""
    return Ending("response.incomplete", {"incomplete_details": {"reason": reason}})


def end_failed(code: str, text: str) -> Ending:
    """End because the response failed."""
    return Ending("response.failed", {"error": {"code": code, "message": text}})


def end_uncounted(code: str, text: str) -> Ending:
    """End because the response failed; without usage, as often happens."""
    failed = end_failed(code, text)
    return Ending(failed.event, {**failed.fields, "usage": None})


def end_refused(
    code: str, text: str, *, type: str, counted: bool = True, **more: Any
) -> Ending:
    """End as the API refuses in a stream: an ``error`` event, then ``response.failed``.

    ``more`` are further fields of the error in both.
    """
    failed = end_failed(code, text) if counted else end_uncounted(code, text)
    failed.fields["error"].update(more)
    error = {"type": type, "code": code, "message": text, "param": None, **more}
    error_event = {"type": "error", "error": error}
    return Ending(failed.event, failed.fields, event_before=error_event)


def end_with_late_reason(code: str, text: str) -> Ending:
    """End as Azure's filter does: ``response.failed`` without a reason, then the reason."""
    error = {"type": "invalid_request_error", "code": code, "message": text}
    error_event = {"type": "error", "error": {**error, "param": None}}
    return Ending("response.failed", {"error": None}, event_after=error_event)


def end_with_error_event(code: str, text: str, *, nested: bool, type: str) -> Ending:
    """End with an ``error`` event in one of its two forms."""
    fields = {"code": code, "message": text, "param": None}
    if nested:
        return Ending("error", {"error": {"type": type, **fields}})
    return Ending("error", fields)


def describe_scenarios(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    """Yield a line for each scenario: its name and its summary."""
    width = max(len(scenario.name) for scenario in scenarios)
    for scenario in scenarios:
        yield f"{scenario.name:<{width}}  {scenario.summary}"
