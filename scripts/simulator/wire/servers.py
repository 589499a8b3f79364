"""How other servers of the API stream: an answer of OpenAI's in their form.

What is special about each: docs/servers.md.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

Event = dict[str, Any]
Retelling = Callable[[Sequence[Event]], Iterator[Event]]


def retell(events: Sequence[Event], server: str) -> list[Event]:
    """Return the events as this server sends them; all others send them as they are."""
    retelling = RETELLINGS.get(server)
    return list(retelling(events)) if retelling else list(events)


def _kind(event: Event) -> str:
    """Return what an event is about: ``added``, ``done``, another end, or a part."""
    known = {
        "response.output_item.added": "added",
        "response.output_item.done": "done",
        "response.completed": "end",
    }
    return known.get(event["type"], "part" if "item_id" in event else "other")


def _without(event: Mapping[str, Any], *keys: str) -> Event:
    return {key: value for key, value in event.items() if key not in keys}


def _is_call(item: Event) -> bool:
    return bool(item["type"] == "function_call")


def _with_other_id(item: Event) -> Event:
    """Return an item with an id that no event before had; a call keeps its own."""
    return item if _is_call(item) else {**item, "id": f"{item['id']}0"}


def _with_output(event: Event, change: Callable[[Event], Event]) -> Event:
    response = event["response"]
    output = [change(item) for item in response["output"]]
    return {**event, "response": {**response, "output": output}}


def _llama_cpp(events: Sequence[Event]) -> Iterator[Event]:
    """No numbers at all; a call has no id, and its parts name its `call_id`."""
    call_ids: dict[str, str] = {}

    def named(item: Event) -> Event:
        return _without(item, "id") if _is_call(item) else item

    for event in events:
        bare = _without(event, "output_index", "sequence_number", "content_index")
        kind = _kind(event)
        if kind in ("added", "done"):
            item = event["item"]
            if _is_call(item):
                call_ids[item["id"]] = item["call_id"]
            yield {**bare, "item": named(item)}
        elif kind == "end":
            yield _with_output(bare, named)
        elif kind == "other":
            yield bare
        elif event["type"] != "response.function_call_arguments.done":
            name = event["item_id"]
            yield {**bare, "item_id": call_ids.get(name, name)}


def _gpt_oss(events: Sequence[Event]) -> Iterator[Event]:
    """Announced one too low, ended right; a call comes whole, at the next place."""
    calls: set[str] = set()
    for event in events:
        kind = _kind(event)
        if kind in ("added", "done") and _is_call(event["item"]):
            calls.add(event["item"]["id"])
            if kind == "done":
                yield {**event, "output_index": event["output_index"] + 1}
        elif kind in ("added", "part") and event.get("item_id") not in calls:
            yield {**event, "output_index": event["output_index"] - 1}
        elif kind == "end":
            yield _with_output(event, _with_other_id)
        elif kind != "part":
            yield event


def _ogx(events: Sequence[Event]) -> Iterator[Event]:
    """All that begins or grows has the place 0; reasoning ends at the end."""
    reasoning_ends: list[Event] = []
    for event in events:
        kind = _kind(event)
        if kind == "done" and event["item"]["type"] == "reasoning":
            reasoning_ends.append(event)
            continue
        if kind == "end":
            yield from reasoning_ends
        yield {**event, "output_index": 0} if kind in ("added", "part") else event


def _hugging_face(events: Sequence[Event]) -> Iterator[Event]:
    """Texts are announced at 0 and grow at their places."""
    for event in events:
        is_text = _kind(event) == "added" and not _is_call(event["item"])
        yield {**event, "output_index": 0} if is_text else event


def _litellm(events: Sequence[Event]) -> Iterator[Event]:
    """Another id at each event of a text; that of the place is right."""
    for number, event in enumerate(events):
        kind = _kind(event)
        if kind == "part" and "output_text" in event["type"]:
            yield {**event, "item_id": "chatcmpl-1"}
        elif kind in ("added", "done") and not _is_call(event["item"]):
            yield {**event, "item": {**event["item"], "id": f"item_{number}"}}
        elif kind == "end":
            yield _with_output(event, _with_other_id)
        else:
            yield event


def _bedrock(events: Sequence[Event]) -> Iterator[Event]:
    """Text grows as part 1 and ends as part 0; calls are numbered in each response.

    Source: recordings of Bedrock's gpt-oss (pydantic-ai, ruby_llm): `content_index` 1
    for the text at `content[0]`, `call_0` in every response.
    """
    numbers: dict[str, str] = {}

    def renumber(item: Event) -> Event:
        if not _is_call(item):
            return item
        own = item["call_id"]
        number = numbers.setdefault(own, f"call_{len(numbers)}")
        return {**item, "call_id": number}

    for event in events:
        if "content_index" in event and "item_id" in event:
            yield {**event, "content_index": event["content_index"] + 1}
        elif _kind(event) in ("added", "done"):
            yield {**event, "item": renumber(event["item"])}
        elif _kind(event) == "end":
            yield _with_output(event, renumber)
        else:
            yield event


def _older_vllm(events: Sequence[Event]) -> Iterator[Event]:
    """Each delta of a text has a part number of its own (reports: vllm 35184)."""
    count = 0
    for event in events:
        if event["type"] == "response.output_text.delta":
            yield {**event, "content_index": count}
            count += 1
        else:
            yield event


RETELLINGS: Mapping[str, Retelling] = {
    "llama.cpp": _llama_cpp,
    "gpt-oss": _gpt_oss,
    "ogx": _ogx,
    "hugging-face": _hugging_face,
    "litellm": _litellm,
    "bedrock": _bedrock,
    "older-vllm": _older_vllm,
}
