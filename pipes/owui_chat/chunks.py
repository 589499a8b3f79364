"""Run events -> `chat.completion.chunk`s, for callers over plain HTTP."""

from collections.abc import Iterator
from typing import Any

from openai_responses.endings import Ending
from openai_responses.items import Item, item_type
from openai_responses.run_events import (
    CallAnswered,
    Grew,
    ItemEnded,
    RunEnded,
    RunEvent,
)
from owui_chat.host_chunks import (
    Chunk,
    error_chunk,
    host_usage,
)

_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChunkView:
    """Shows one run as growing text and reasoning.

    Calls that nobody answered are the caller's: they come at the end.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        """Take what every chunk repeats: its id, its time in seconds, the model."""
        self._head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._open_calls: dict[str, Item] = {}
        self._thought: tuple[int, int] | None = None
        self._told: int | None = None

    def show(self, event: RunEvent, _marker: str = "") -> Iterator[Chunk]:
        """Yield the chunks to send; nothing is kept for a caller without a chat."""
        match event:
            case Grew(kind="text" | "refusal"):
                yield self._chunk({"content": self._gap(event) + event.text})
            case Grew(kind="summary" | "reasoning"):
                text = self._thought_gap(event) + event.text
                yield self._chunk({"reasoning_content": text})
            case ItemEnded() if item_type(event.item) == "function_call":
                self._open_calls[str(event.item.get("call_id"))] = event.item
            case CallAnswered():
                self._open_calls.pop(str(event.item.get("call_id")), None)
            case RunEnded():
                yield from self._end(event)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head, "choices": [choice]}

    def _gap(self, event: Grew) -> str:
        """Return the blank line between two messages of one run."""
        before, self._told = self._told, event.index
        return "" if before in (None, event.index) else "\n\n"

    def _thought_gap(self, event: Grew) -> str:
        """Return the blank line between two parts of the reasoning."""
        place = (event.index, event.part)
        before, self._thought = self._thought, place
        return "" if before in (None, place) else "\n\n"

    def _end(self, event: RunEnded) -> Iterator[Chunk]:
        for index, call in enumerate(self._open_calls.values()):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self._chunk({"tool_calls": [tool_call]})
        if event.ending.is_failure and event.ending.kind != "incomplete":
            yield error_chunk(event.ending.sentence)
        else:
            yield self._chunk({}, finish_reason(event.ending, bool(self._open_calls)))
        if event.usage:
            usage = host_usage(event.usage, event.last_usage)
            yield {**self._head, "choices": [], "usage": usage}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of Chat Completions."""
    function = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def finish_reason(ending: Ending, has_calls: bool) -> str:
    """Return Chat Completions' word for how an answer ended."""
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"
