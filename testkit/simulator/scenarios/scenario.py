"""A scenario: its replies, their endings, and the faults of their streams."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.builders import build_message

Item = dict[str, Any]
Event = dict[str, Any]
Events = list[Event]
StreamFault = Callable[[Events], Events]
"""Changes the events of a stream, as some server or network would."""


def send_delta_first(events: Events) -> Events:
    """Send the first delta of each item before its ``output_item.added``."""
    moved = list(events)
    for added in events:
        if added["type"] != "response.output_item.added":
            continue
        for event in events:
            is_delta = event["type"].endswith(".delta")
            if is_delta and event["output_index"] == added["output_index"]:
                moved.remove(event)
                moved.insert(moved.index(added), event)
                break
    return moved


def interleave_calls(events: Events) -> Events:
    """Mix the events of the calls, as those of parallel calls arrive."""
    events_of_calls: dict[int, Events] = {}
    for event in events:
        is_added = event["type"] == "response.output_item.added"
        if is_added and event["item"]["type"] in ("function_call", "mcp_call"):
            events_of_calls[event["output_index"]] = []
        if event.get("output_index") in events_of_calls:
            events_of_calls[event["output_index"]].append(event)
    # The first event of each call, then the second of each, and so on.
    turns = zip_longest(*events_of_calls.values())
    mixed = [event for turn in turns for event in turn if event is not None]
    is_call = [event.get("output_index") in events_of_calls for event in events]
    return [
        mixed.pop(0) if of_call else event
        for event, of_call in zip(events, is_call, strict=True)
    ]


def send_partial_images(pictures: Sequence[str]) -> StreamFault:
    """Send these partial images in place of the only one."""

    def replace_partial_images(events: Events) -> Events:
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


def add_unknown_events(events: Events, options: Options) -> Events:
    """Add the events that ``unknown`` and ``keepalive`` ask for."""
    interval = options.number("keepalive")
    with_unknown: Events = []
    for event in events:
        if options.has("unknown") and event["type"] == "response.output_item.done":
            place = {"output_index": event["output_index"]}
            with_unknown += [
                {"type": "response.aura.delta", **place, "delta": "?"},
                {"type": "response.rate_limits.updated", "rate_limits": []},
            ]
        with_unknown.append(event)
    if not interval:
        return with_unknown
    with_keepalive: Events = []
    for number, event in enumerate(with_unknown, 1):
        with_keepalive.append(event)
        if number % interval == 0 and "response" not in event:
            with_keepalive.append({"type": "keepalive"})
    return with_keepalive


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
    last one is repeated. ``options`` are those that the scenario always has. ``tool`` is
    a hosted tool that it needs: without it, the model says so.
    """

    name: str
    summary: str
    replies: tuple[Reply | HttpReply | ComposeReply, ...]
    options: str = ""
    tool: str = ""

    def reply_to(self, request: ValidRequest, options: Options) -> Reply | HttpReply:
        """Return the reply for the number of rounds that the request contains."""
        if self.tool and not request.tools(self.tool):
            return make_reply(build_message(f"I have no {self.tool}."))
        reply = self.replies[min(request.rounds, len(self.replies) - 1)]
        return reply(request, options) if callable(reply) else reply


def make_reply(
    *items: Item, ending: Ending | None = None, fault: StreamFault | None = None
) -> Reply:
    return Reply(items, ending or Ending(), fault)


def make_scenario(
    name: str,
    summary: str,
    *content: Item | Reply | HttpReply | ComposeReply,
    options: str = "",
    tool: str = "",
    **more: Any,
) -> Scenario:
    """Return a scenario from its replies, or from the items of its only reply.

    ``more`` are the ending and the fault of that one.
    """
    items = [part for part in content if isinstance(part, dict)]
    replies = [part for part in content if not isinstance(part, dict)]
    replies = replies or [make_reply(*items, **more)]
    return Scenario(name, summary, tuple(replies), options, tool)


def end_incomplete(reason: str = "max_output_tokens") -> Ending:
    """End because a limit was reached."""
    return Ending("response.incomplete", {"incomplete_details": {"reason": reason}})


def end_failed(code: str, text: str, *, counted: bool = True) -> Ending:
    """End because the response failed; often without usage."""
    fields: dict[str, Any] = {"error": {"code": code, "message": text}}
    return Ending("response.failed", fields if counted else {**fields, "usage": None})


def end_refused(
    code: str, text: str, *, type: str, counted: bool = True, **more: Any
) -> Ending:
    """End as the API refuses in a stream: an ``error`` event, then ``response.failed``.

    ``more`` are further fields of the error in both.
    """
    failed = end_failed(code, text, counted=counted)
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
    return Ending("error", {"error": {"type": type, **fields}} if nested else fields)


def describe_scenarios(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    """Yield a line for each scenario: its name and its summary."""
    width = max(len(scenario.name) for scenario in scenarios)
    for scenario in scenarios:
        yield f"{scenario.name:<{width}}  {scenario.summary}"
