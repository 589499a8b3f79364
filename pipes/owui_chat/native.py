"""Run events -> Open WebUI's native events.

The host reduces the Responses API's own events to the output items that it shows and
stores (utils/response.py:381), so a run looks like Open WebUI's own and survives a
reload. What we send differs from the wire where the host needs it (open-webui.md §0.9,
§5, §14): one numbering over all turns, no `response.completed`, no encrypted content,
and an empty `choices` delta for stream filters that look for one.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from openai_responses.items import (
    Item,
    content_parts,
    item_type,
    message_text,
    part_text,
)
from openai_responses.run_events import (
    CallAnswered,
    Grew,
    ItemEnded,
    ItemStarted,
    Noted,
    RunEnded,
    RunEvent,
)
from owui_chat.host_chunks import (
    Chunk,
    error_chunk,
    host_event,
    host_usage,
    status_chunk,
)

_SHOWN_TYPES = frozenset({"message", "reasoning", "function_call"})

_DELTA_TYPES: Mapping[str, str] = {
    "text": "response.output_text.delta",
    "refusal": "response.output_text.delta",
    "summary": "response.reasoning_summary_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "arguments": "response.function_call_arguments.delta",
}


class NativeView:
    """Shows one run; `items` holds what the host has stored of it so far."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Take `now`, in seconds, for the time that a thought took."""
        self.items: list[Item] = []
        self._now = now
        self._places: dict[int, int] = {}
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._parts: dict[int, int] = {}

    def show(self, event: RunEvent, marker: str = "") -> Iterator[Chunk]:
        """Yield the events to send.

        `marker` stands in front of the text that grows, or alone at the run's end.
        """
        match event:
            case ItemStarted() if item_type(event.item) in _SHOWN_TYPES:
                yield self._start(event)
            case Grew() if event.index in self._places:
                yield self._grow(event, marker)
            case ItemEnded() if event.index in self._places:
                yield self._end(event)
            case CallAnswered() if item_type(event.item) == "function_call_output":
                yield from self._answered(event)
            case Noted():
                yield status_chunk(event.sentence)
            case RunEnded():
                if marker:
                    yield from self._marker_alone(marker)
                yield from _end_of_run(event)

    def _answered(self, event: CallAnswered) -> Iterator[Chunk]:
        """Yield the output of a call, as the host would store it (middleware.py:5837)."""
        item = _shown_output(event)
        place = len(self.items)
        self.items.append(item)
        yield _native("output_item.added", place, item=item)
        yield _native("output_item.done", place, item=item)
        for source in event.card.get("sources", ()):
            yield host_event({"type": "source", "data": source})

    def _marker_alone(self, marker: str) -> Iterator[Chunk]:
        """Yield a message of its own for items that no text followed."""
        place = len(self.items)
        item = _shown_message({"id": f"msg_kept_{place}"}, marker)
        self.items.append(item)
        empty = {**item, "status": "in_progress", "content": [_text_part("")]}
        yield _native("output_item.added", place, item=empty)
        yield _native("output_item.done", place, item=item)

    def _start(self, event: ItemStarted) -> Chunk:
        place = self._places[event.index] = len(self.items)
        self._started[event.index] = self._now()
        item = _begun(event.item)
        self.items.append(item)
        return _native("output_item.added", place, item=item)

    def _grow(self, event: Grew, marker: str) -> Chunk:
        place = self._places[event.index]
        if marker:
            self._markers[event.index] = marker
        return {
            "type": _DELTA_TYPES[event.kind],
            "item_id": self.items[place].get("id"),
            "output_index": place,
            _part_name(event.kind): 0,
            "delta": marker + self._gap(event) + event.text,
            "choices": [{"index": 0, "delta": {}}],
        }

    def _gap(self, event: Grew) -> str:
        """Return the blank line between two parts of a thought.

        The page sets the parts of a summary one behind the other, so all parts are
        shown as one.
        """
        before = self._parts.get(event.index, event.part)
        self._parts[event.index] = event.part
        thought = event.kind in ("summary", "reasoning")
        return "\n\n" if thought and event.part != before else ""

    def _end(self, event: ItemEnded) -> Chunk:
        place = self._places[event.index]
        match item_type(event.item):
            case "message":
                text = self._markers.get(event.index, "") + message_text(event.item)
                item = _shown_message(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[event.index]
                item = _shown_reasoning(event.item, round(seconds))
            case _:
                item = _without_secrets(event.item)
        self.items[place] = item
        return _native("output_item.done", place, item=item)


def _end_of_run(event: RunEnded) -> Iterator[Chunk]:
    if event.usage:
        usage = host_usage(event.usage, event.last_usage)
        yield {"choices": [{"index": 0, "delta": {}}], "usage": usage}
    if event.ending.is_failure:
        yield error_chunk(event.ending.sentence)


def _native(kind: str, place: int, **fields: Any) -> Chunk:
    choices = [{"index": 0, "delta": {}}]
    head = {"type": f"response.{kind}", "output_index": place}
    return {**head, **fields, "choices": choices}


def _part_name(kind: str) -> str:
    return "summary_index" if kind == "summary" else "content_index"


def _begun(item: Item) -> Item:
    """Return an item as it begins: its texts come as growth."""
    begun = {**_without_secrets(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [_text_part("")]}
        case "reasoning":
            begun |= {"summary": []}
            begun.pop("content", None)
        case "function_call":
            begun |= {"arguments": ""}
    return begun


def _shown_message(item: Item, text: str) -> Item:
    """Return a message with one text: refusals too are there to be read."""
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def _shown_reasoning(item: Item, seconds: int) -> Item:
    """Return a thought with its texts as one part each, and how long it took."""
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(map(part_text, parts))
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _shown_output(event: CallAnswered) -> Item:
    """Return a call's output with what its card shows; pictures by their address."""
    call_id, output = event.item["call_id"], event.item["output"]
    parts = [{"type": "input_text", "text": output}]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    return {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if event.failed else "completed",
        **{k: event.card[k] for k in ("files", "embeds") if k in event.card},
    }


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


def _without_secrets(item: Item) -> Item:
    """Leave out what no reader of the chat can use and nobody else should have."""
    hidden = ("encrypted_content",)
    return {k: v for k, v in item.items() if k not in hidden and v is not None}
