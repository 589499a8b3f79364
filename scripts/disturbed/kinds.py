"""How an answer is disturbed: each kind was seen at a server, a gateway or a proxy.

A kind gets the sound answer and returns what is sent in its place. A *failure* replaces
the answer, which comes when the client asks again. Everything else changes its form, and
the answer is still whole.
"""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]
EVENT_STREAM = "text/event-stream"
PLAIN_JSON = "application/json"
FOREIGN_ID = "xs_call_"
"""How the ids of calls begin that the server itself has run."""
WAIT_SECONDS = 0.6
"""What a message asks to wait: longer than the pipe would wait by itself."""


class SoundAnswer(NamedTuple):
    """A whole answer: its events, the last of which has the response object."""

    events: Sequence[Json]

    @property
    def response(self) -> Json:
        """The response object at the end."""
        response: Json = self.events[-1]["response"]
        return response

    def items(self, kind: str) -> list[Json]:
        """Return the finished items of a type."""
        return [item for item in self.response["output"] if item["type"] == kind]


@dataclass(frozen=True)
class Disturbed:
    """What is sent in place of a sound answer."""

    body: bytes = b""
    status: int = 200
    content_type: str = EVENT_STREAM
    headers: dict[str, str] = field(default_factory=dict)
    encoding: str | None = None
    """What the header for it says; the body is not encoded yet."""
    is_cut: bool = False
    """Whether the connection breaks behind the last byte."""
    wait: float = 0.0
    """The seconds that a client is asked to wait."""


class Kind(NamedTuple):
    """A kind of disturbance; `make` returns None for an answer without its subject."""

    name: str
    make: Callable[[SoundAnswer, random.Random], Disturbed | None]
    is_failure: bool = False
    most_times: int = 1
    """How often in a row it comes at most, if it is a failure."""


def write_stream(events: Iterable[Json]) -> bytes:
    """Return events as the bytes of a stream."""
    return b"".join(write_event(event) for event in events)


def write_event(event: Json) -> bytes:
    """Return one event with its type as the name."""
    return f"event: {event.get('type')}\ndata: {json.dumps(event)}\n\n".encode()


# ------------------------------------------------------------------------- failures

PASSING_ERRORS: Sequence[Json] = (
    {
        "type": "service_unavailable_error",
        "code": None,
        "message": "Unable to verify model access right now. Please retry.",
    },
    {"type": "overloaded_error", "code": None, "message": "Overloaded"},
    {"type": "upstream_error", "code": None, "message": "Upstream request failed"},
    {"type": "server_error", "code": "internal_error", "message": "It broke."},
    {"type": None, "code": "timeout", "message": "The model took too long."},
    {"type": None, "code": "too_many_requests", "message": "Slow down."},
    {"type": None, "code": 429, "message": "Slow down."},
    {"type": None, "code": "500", "message": "It broke."},
    {"type": None, "code": 502, "message": "Bad gateway"},
    {"type": None, "code": "503", "message": "Unavailable"},
    {"type": None, "code": 504, "message": "Gateway timeout"},
)


def fail_with_event(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send an error as the only event, nested or flat."""
    error = chance.choice(PASSING_ERRORS)
    event = {"type": "error", "error": error, "sequence_number": 0}
    if error["code"] is not None and chance.random() < 0.5:
        event = {**error, "type": "error", "sequence_number": 0}
    return Disturbed(write_stream([event]))


def fail_response(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send a response that fails; its error has no type."""
    error = chance.choice(PASSING_ERRORS)
    code = error["code"] if error["code"] is not None else error["type"]
    failed = {
        **answer.response,
        "status": "failed",
        "error": {"code": code, "message": error["message"]},
        "output": [],
        "usage": None,
    }
    begin = answer.events[:2]
    return Disturbed(
        write_stream([*begin, {"type": "response.failed", "response": failed}])
    )


def fail_as_json(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send an error as a JSON body with the status 200."""
    body = json.dumps({"error": chance.choice(PASSING_ERRORS)})
    return Disturbed(body.encode(), content_type=PLAIN_JSON)


def fail_without_type(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send an error as gateways do, as an event that does not say what it is."""
    error = json.dumps({"error": chance.choice(PASSING_ERRORS)})
    return Disturbed(f"data: {error}\n\n".encode())


def fail_with_status(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send a status that says nothing about the request."""
    body = chance.choice((b"", b'{"error": {"message": "Not now."}}', b"Not now."))
    return Disturbed(
        body,
        status=chance.choice((405, 423, 425, 499)),
        content_type=PLAIN_JSON,
        headers={"retry-after-ms": "1"},
    )


def fail_with_page(_answer: SoundAnswer, _chance: random.Random) -> Disturbed:
    """Send a proxy's page."""
    page = b"<html><head><title>400 Bad Request</title></head><body></body></html>"
    return Disturbed(page, 400, "text/html", {"retry-after-ms": "1"})


def send_nothing(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send a good status, and nothing else."""
    return Disturbed(content_type=chance.choice((EVENT_STREAM, PLAIN_JSON)))


def break_first_event(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send a part of the first event, then end."""
    first = write_event(answer.events[0])
    beginning = first[: chance.randrange(len(first) // 2, len(first) - 3)]
    return Disturbed(beginning + chance.choice((b"", b"\n\n")))


def ask_to_wait(_answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Say in words alone how long a client has to wait."""
    words = chance.choice(
        (
            f"Please try again in {WAIT_SECONDS}s.",
            f"Please try again in {WAIT_SECONDS * 1000:.0f}ms.",
        )
    )
    error = {
        "type": "tokens",
        "code": "rate_limit_exceeded",
        "message": f"Rate limit reached for gpt-5 in organization org-1. {words}",
    }
    event = {"type": "error", "error": error}
    return Disturbed(write_stream([event]), wait=WAIT_SECONDS)


def cut_before_text(answer: SoundAnswer, chance: random.Random) -> Disturbed | None:
    """Break the connection while only thoughts and calls were shown."""
    ends: list[int] = []
    for index, event in enumerate(answer.events, start=1):
        if event["type"] == "response.output_item.added":
            if event["item"]["type"] not in ("reasoning", "function_call"):
                break
        elif event["type"] in _GROWTH_BEFORE_TEXT:
            ends.append(index)
    if not ends:
        return None
    before = answer.events[: chance.choice(ends)]
    return Disturbed(write_stream(before), is_cut=chance.random() < 0.5)


_GROWTH_BEFORE_TEXT = (
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
)


# ---------------------------------------------------------------------- whole answers


def change_items(
    answer: SoundAnswer, change: Callable[[Json], Json], chance: random.Random
) -> list[Json]:
    """Return the events with changed finished items: where they end, at the end, both."""
    where = chance.choice(("done", "final", "both"))
    events: list[Json] = []
    for event in deepcopy(list(answer.events)):
        if event["type"] == "response.output_item.done" and where != "final":
            event["item"] = change(event["item"])
        if "response" in event and where != "done":
            response = event["response"]
            response["output"] = [change(item) for item in response["output"]]
        events.append(event)
    return events


def without_types(events: Iterable[Json], *types: str) -> list[Json]:
    """Return the events of other types."""
    return [event for event in events if event["type"] not in types]


TEXT_ENDS = ("response.output_text.done", "response.content_part.done")
ARGUMENT_ENDS = ("response.function_call_arguments.done",)


def empty_final_items(answer: SoundAnswer, chance: random.Random) -> Disturbed | None:
    """End messages without their text, which the deltas brought."""
    if not answer.items("message"):
        return None
    keeps_part = chance.random() < 0.5

    def change(item: Json) -> Json:
        if item["type"] != "message":
            return item
        parts = [{**part, "text": ""} for part in item["content"]]
        return {**item, "content": parts if keeps_part else []}

    events = change_items(answer, change, chance)
    if chance.random() < 0.5:
        events = without_types(events, *TEXT_ENDS)
    return Disturbed(write_stream(events))


def end_items_early(answer: SoundAnswer, chance: random.Random) -> Disturbed | None:
    """End each message after the first delta; the rest of the text comes later."""
    if not answer.items("message"):
        return None
    final_is_short = chance.random() < 0.5

    def shorten(item: Json) -> Json:
        if item["type"] != "message":
            return item
        parts = [{**part, "text": part["text"][:1]} for part in item["content"]]
        return {**item, "content": parts}

    events: list[Json] = []
    ended: set[str] = set()
    for event in without_types(deepcopy(list(answer.events)), *TEXT_ENDS):
        is_end = event["type"] == "response.output_item.done"
        if is_end and event["item"]["type"] == "message":
            continue
        if event["type"] == "response.completed" and final_is_short:
            output = event["response"]["output"]
            event["response"]["output"] = [shorten(item) for item in output]
        events.append(event)
        if event["type"] != "response.output_text.delta":
            continue
        item_id = event["item_id"]
        if item_id in ended:
            continue
        ended.add(item_id)
        whole = next(item for item in answer.items("message") if item["id"] == item_id)
        events.append(
            {
                "type": "response.output_item.done",
                "output_index": event["output_index"],
                "item": shorten(whole),
            }
        )
    return Disturbed(write_stream(events))


def leave_out_ends(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send no finished item at all: deltas, then a response without an output."""
    events = without_types(deepcopy(list(answer.events)), "response.output_item.done")
    if chance.random() < 0.5:
        events = without_types(events, *TEXT_ENDS, *ARGUMENT_ENDS)
    events[-1]["response"]["output"] = chance.choice(([], None))
    return Disturbed(write_stream(events))


def leave_out_last_body(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """End with an event that has no response object."""
    last = chance.choice(
        (
            {"type": "response.completed"},
            {"type": "response.completed", "response": None},
        )
    )
    return Disturbed(write_stream([*answer.events[:-1], last]))


def leave_out_arguments(answer: SoundAnswer, chance: random.Random) -> Disturbed | None:
    """End calls without their arguments, which the deltas brought."""
    if not answer.items("function_call"):
        return None
    empty = chance.choice(("", None))

    def change(item: Json) -> Json:
        if item["type"] != "function_call":
            return item
        return {**item, "arguments": empty}

    events = change_items(answer, change, chance)
    if chance.random() < 0.5:
        events = without_types(events, *ARGUMENT_ENDS)
    return Disturbed(write_stream(events))


def send_argument_objects(
    answer: SoundAnswer, chance: random.Random
) -> Disturbed | None:
    """Send arguments as an object, or null for none, without deltas."""
    if not answer.items("function_call"):
        return None
    none: Json | None = chance.choice((None, {}))

    def change(item: Json) -> Json:
        if item["type"] != "function_call":
            return item
        return {**item, "arguments": json.loads(item["arguments"]) or none}

    events: list[Json] = []
    for event in deepcopy(list(answer.events)):
        if event["type"].startswith("response.function_call_arguments."):
            continue
        if event["type"] == "response.output_item.done":
            event["item"] = change(event["item"])
        if "response" in event:
            output = event["response"]["output"]
            event["response"]["output"] = [change(item) for item in output]
        events.append(event)
    return Disturbed(write_stream(events))


def add_foreign_call(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Add a call of an undeclared tool, which the server has run, as xAI does."""
    item = {
        "id": f"ctc_{chance.randrange(10**12)}",
        "type": "custom_tool_call",
        "call_id": f"{FOREIGN_ID}{chance.randrange(10**12)}",
        "name": "x_keyword_search",
        "input": '{"query": "rain"}',
        "status": "completed",
    }
    events = deepcopy(list(answer.events))
    output = events[-1]["response"]["output"]
    index = len(output)
    place = chance.randrange(len(output) + 1)
    begin = len(events) - 1
    for number, event in enumerate(events):
        is_begin = event["type"] == "response.output_item.added"
        if is_begin and event["output_index"] == place:
            begin = number
    open_item = {**item, "input": "", "status": "in_progress"}
    events[begin:begin] = [
        {
            "type": "response.output_item.added",
            "output_index": index,
            "item": open_item,
        },
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
    output.insert(place, item)
    return Disturbed(write_stream(events))


def count_in_texts(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send the counts of tokens as texts, or as numbers with a point."""
    form = chance.choice((str, float))

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: change(inner) for name, inner in value.items()}
        return form(value) if isinstance(value, int) else value

    events = deepcopy(list(answer.events))
    response = events[-1]["response"]
    response["usage"] = change(response["usage"])
    return Disturbed(write_stream(events))


UNREADABLE = (
    b"data:\n\n",
    b"data: \n\n",
    b"data: null\n\n",
    b"data: []\n\n",
    b"data: ping\n\n",
    b'data: {"type": "response.output_text.delta", "del\n\n',
)
COMMENTS = (b": keepalive\n\n", b":\n", b": \n\n", b"event: ping\n\n", b"\n\n")


def insert_between(
    answer: SoundAnswer, inserted: Sequence[bytes], chance: random.Random
) -> bytes:
    """Return a stream with some of the bytes between its events, also in front."""
    pieces = [write_event(event) for event in answer.events]
    for _ in range(chance.randint(1, 6)):
        place = chance.randrange(len(pieces))
        pieces.insert(place, chance.choice(inserted))
    return b"".join(pieces)


def add_unreadable_lines(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Put events that cannot be read between those that can."""
    return Disturbed(insert_between(answer, UNREADABLE, chance))


def add_comments(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Put signs of life between the events."""
    return Disturbed(insert_between(answer, COMMENTS, chance))


def mislabel(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send a sound stream with another type, or without one."""
    label = chance.choice(
        (
            "text/plain; charset=utf-8",
            "application/json",
            "application/octet-stream",
            "text/event-stream, text/event-stream",
            "",
        )
    )
    return Disturbed(write_stream(answer.events), content_type=label)


def send_json_as_stream(answer: SoundAnswer, _chance: random.Random) -> Disturbed:
    """Send the response object alone, with the type of a stream."""
    return Disturbed(json.dumps(answer.response).encode())


def compress(answer: SoundAnswer, chance: random.Random) -> Disturbed:
    """Send the stream compressed, or with a header that says no more than nothing."""
    encoding = chance.choice(("gzip", "deflate", "identity", "none", ""))
    return Disturbed(write_stream(answer.events), encoding=encoding)


KINDS: Sequence[Kind] = (
    Kind("passing-event", fail_with_event, is_failure=True, most_times=2),
    Kind("passing-failed", fail_response, is_failure=True, most_times=2),
    Kind("passing-body", fail_as_json, is_failure=True, most_times=2),
    Kind("untyped-error", fail_without_type, is_failure=True, most_times=2),
    Kind("passing-status", fail_with_status, is_failure=True),
    Kind("html-400", fail_with_page, is_failure=True),
    Kind("empty-200", send_nothing, is_failure=True),
    Kind("bad-first-event", break_first_event, is_failure=True),
    Kind("asked-wait", ask_to_wait, is_failure=True),
    Kind("cut-before-text", cut_before_text, is_failure=True),
    Kind("empty-final", empty_final_items),
    Kind("ended-early", end_items_early),
    Kind("no-item-done", leave_out_ends),
    Kind("bare-end", leave_out_last_body),
    Kind("no-arguments", leave_out_arguments),
    Kind("argument-objects", send_argument_objects),
    Kind("foreign-call", add_foreign_call),
    Kind("counts-as-text", count_in_texts),
    Kind("unreadable-lines", add_unreadable_lines),
    Kind("comments", add_comments),
    Kind("content-type", mislabel),
    Kind("json-as-stream", send_json_as_stream),
    Kind("compressed", compress),
)
