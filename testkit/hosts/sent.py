"""What the pipe sent to the API, as the simulator recorded it."""

from collections.abc import Iterable

from hosts.people.client import Json
from owui_chat.storage.output_carrier import output_records, parse_output_records
from owui_chat.storage.records import message_key
from simulator import RecordedRequest, Simulator


def chat_bodies(simulator: Simulator) -> list[Json]:
    """The bodies of the requests for chats, tasks left out, in their order."""
    return [request.body for request in answered(simulator) if not is_task(request)]


def answered(simulator: Simulator) -> list[RecordedRequest]:
    return [r for r in simulator.requests if r.path.endswith("/responses")]


def is_task(request: RecordedRequest) -> bool:
    """Whether the host asked for a title, tags or the like."""
    return "### Task:" in str(request.body["input"][-1:])


def outputs(simulator: Simulator) -> list[list[Json]]:
    """The output items of each answer to a chat, in the order of the requests."""
    chats = [r for r in answered(simulator) if not is_task(r)]
    return [(request.response or {}).get("output", []) for request in chats]


def kinds(items: Iterable[Json]) -> list[str]:
    """The type of each item; of messages, the role."""
    return [
        item["role"] if item["type"] == "message" else item["type"] for item in items
    ]


def stripped(item: Json) -> Json:
    """An output item as the next request gives it back: without ids and states."""
    kept = {
        k: v for k, v in item.items() if k not in ("id", "status") and v is not None
    }
    if kept["type"] == "message":
        kept["content"] = [
            {k: v for k, v in part.items() if k != "logprobs"}
            for part in kept["content"]
        ]
    return kept


def assert_each_continues(simulator: Simulator, since: int = 0) -> None:
    """Each request for a chat is the one before it and what that received, and more."""
    bodies = chat_bodies(simulator)[since:]
    received = outputs(simulator)[since:]
    for before, output, after in zip(bodies, received, bodies[1:], strict=False):
        expected = [*before["input"], *map(stripped, output)]
        assert after["input"][: len(expected)] == expected


def assert_nothing_dropped(simulator: Simulator) -> None:
    """The API could use all that it was given back."""
    answers = [request.response or {} for request in simulator.requests]
    dropped = [answer.get("input_transformations") for answer in answers]
    assert not any(dropped), dropped


def tool_outputs(body: Json) -> list[str]:
    items = body["input"]
    return [i["output"] for i in items if i["type"] == "function_call_output"]


def stored_value(chat: Json, message_id: str) -> Json:
    """What the pipe stored for an answer: in its output, or in a key of the chat."""
    messages = chat["history"]["messages"]
    values = parse_output_records(
        output_records({message_id: messages.get(message_id)})
    ).values()
    stored: Json = {**(chat.get(message_key(message_id)) or {})}
    for value in values:
        items = {**stored.get("items", {}), **value.get("items", {})}
        stored = {**stored, **value, "items": items}
    return stored


def host_items(message: Json) -> list[Json]:
    """The stored output of an answer, without what the pipe stored there."""
    kept = "openai_responses:kept"
    return [item for item in message["output"] if item["type"] != kept]


def instructions_of(body: Json) -> str:
    """Return the instructions at the head of a request's input."""
    first = body["input"][0]
    assert first["role"] == "developer"
    return "".join(part["text"] for part in first["content"])
