"""The streams of other servers of the API, made from OpenAI's.

Only those with which a page is tested; docs/servers.md tells about each server.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from simulator.fields import without_fields

Event = dict[str, Any]
StreamImitation = Callable[[Sequence[Event]], Iterator[Event]]
KINDS = {
    "response.output_item.added": "added",
    "response.output_item.done": "done",
    "response.completed": "end",
}


def imitate_server(events: Sequence[Event], server: str) -> list[Event]:
    """Return OpenAI's events as a server sends them; unknown servers change nothing."""
    if server not in IMITATIONS:
        return list(events)
    return list(IMITATIONS[server](events))


def _kind(event: Event) -> str:
    """Return what an event belongs to.

    ``added`` and ``done`` are the beginning and the end of an item, ``part`` what comes
    between them, ``end`` the end of the response; the rest is ``other``.
    """
    if event["type"] in KINDS:
        return KINDS[event["type"]]
    return "part" if "item_id" in event else "other"


def _is_call(item: Event) -> bool:
    return bool(item["type"] == "function_call")


def _with_output(event: Event, change: Callable[[Event], Event]) -> Event:
    """Return the last event with every item of its response changed."""
    response = event["response"]
    output = [change(item) for item in response["output"]]
    return {**event, "response": {**response, "output": output}}


def _llama_cpp(events: Sequence[Event]) -> Iterator[Event]:
    """All items end when the response does (recorded, b11434)."""
    delayed: list[Event] = []
    for event in events:
        kind = _kind(event)
        if kind == "done":
            delayed.append(event)
            continue
        if kind == "end":
            yield from delayed
        yield event


def _litellm(events: Sequence[Event]) -> Iterator[Event]:
    """Each event of a text has another id; the index is right. A call keeps its id."""

    def with_other_id(item: Event) -> Event:
        return item if _is_call(item) else {**item, "id": f"{item['id']}0"}

    for number, event in enumerate(events):
        kind = _kind(event)
        if kind == "part" and "output_text" in event["type"]:
            yield {**event, "item_id": "chatcmpl-1"}
        elif kind in ("added", "done") and not _is_call(event["item"]):
            yield {**event, "item": {**event["item"], "id": f"item_{number}"}}
        elif kind == "end":
            yield _with_output(event, with_other_id)
        else:
            yield event


def _bedrock(events: Sequence[Event]) -> Iterator[Event]:
    """Deltas of a text belong to part 1, its end to part 0; call ids repeat.

    Source: recordings of Bedrock's gpt-oss (pydantic-ai, ruby_llm): `content_index` 1
    for the text at `content[0]`, `call_0` in every response.
    """
    numbers: dict[str, str] = {}

    def with_number(item: Event) -> Event:
        if not _is_call(item):
            return item
        number = numbers.setdefault(item["call_id"], f"call_{len(numbers)}")
        return {**item, "call_id": number}

    for event in events:
        if "content_index" in event and "item_id" in event:
            yield {**event, "content_index": event["content_index"] + 1}
        elif _kind(event) in ("added", "done"):
            yield {**event, "item": with_number(event["item"])}
        elif _kind(event) == "end":
            yield _with_output(event, with_number)
        else:
            yield event


class _TaggedMessage:
    """A message that begins with the thought of the model, as text."""

    def __init__(self, added: Event) -> None:
        self._place = {"output_index": added["output_index"]}
        item_id = f"msg_{added['item']['id']}"
        self._item = {"id": item_id, "type": "message", "role": "assistant"}
        self._text = ""
        item = {**self._item, "content": [], "status": "in_progress"}
        self.beginning = {**added, **self._place, "item": item}

    def grow(self, event: Event, text: str) -> Event:
        """Return the event of more text."""
        self._text += text
        kind = "response.output_text.delta"
        part = {"item_id": self._item["id"], "content_index": 0, "delta": text}
        return {"type": kind, **without_fields(event, "type"), **self._place, **part}

    def end(self, event: Event) -> Event:
        part = {"type": "output_text", "text": self._text, "annotations": []}
        item = {**self._item, "content": [part], "status": "completed"}
        kind = "response.output_item.done"
        return {**event, "type": kind, **self._place, "item": item}


def _tagged(opening_tag: str, events: Sequence[Event]) -> Iterator[Event]:
    """Reasoning is text in tags at the beginning of a message.

    So streams vLLM without `--reasoning-parser`. The chat templates of some models
    write the opening tag, which is then in no event.
    """
    message: _TaggedMessage | None = None
    output: list[Event] = []
    for event in events:
        kind = _kind(event)
        item = event.get("item", {})
        is_added = kind == "added"
        if is_added and item["type"] == "reasoning":
            message = _TaggedMessage(event)
            yield message.beginning
            if opening_tag:
                yield message.grow(without_fields(event, "item"), opening_tag)
        elif kind == "done" and item["type"] == "reasoning" and message:
            yield message.grow(without_fields(event, "item"), "\n</think>\n\n")
        elif message and "delta" in event and "arguments" not in event["type"]:
            yield message.grow(event, event["delta"])
        elif kind == "end":
            if message:
                output.append(message.end(event)["item"])
            response = {**event["response"], "output": output}
            yield {**event, "response": response}
        elif message and (is_added or kind == "done") and item["type"] == "message":
            if kind == "done":
                yield message.end(event)
                output.append(message.end(event)["item"])
                message = None
        elif message and is_added:
            yield without_fields(message.end(event), "response")
            output.append(message.end(event)["item"])
            message = None
            yield event
        elif message is None or kind == "other":
            if kind == "done":
                output.append(item)
            yield event


IMITATIONS: Mapping[str, StreamImitation] = {
    "llama.cpp": _llama_cpp,
    "litellm": _litellm,
    "bedrock": _bedrock,
    "tagged": partial(_tagged, "<think>\n"),
    "half-tagged": partial(_tagged, ""),
}
