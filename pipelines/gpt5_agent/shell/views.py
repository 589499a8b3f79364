"""Renders agent events: native events for Open WebUI, chunks for plain HTTP clients.

Open WebUI stores the end of each step as a status line, and forwards the `agent:...`
events to its listeners.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpt5_agent.agent.accounting import format_step
from gpt5_agent.agent.thoughts import ThoughtFilter
from gpt5_agent.events import (
    AgentEvent,
    AgentOnlyEvent,
    ContextSource,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    RunMetadata,
    StateChanged,
    StepEnded,
    StepStarted,
    ToolCallRequested,
)
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import CUT
from openai_responses.items import Item, is_reasoning
from openai_responses.loop.events import RunDone, RunEvent, Status, ToolOutput
from openai_responses.requests.replay import Origin
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.citations import Citations
from owui_chat.render.chunks import Chunk, error_chunk, host_event, source_chunk
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.details_carrier import write_details
from owui_chat.storage.signature import Sign

_LISTENER_EVENTS: Mapping[type, str] = {
    NewMessage: "new_message",
    ToolCallRequested: "tool_call_request",
    ReadyForInput: "ready_for_input",
    StateChanged: "state_change",
}


def _metadata_fields(metadata: RunMetadata | None) -> dict[str, Any]:
    return {"execution_metadata": metadata.wire()} if metadata else {}


def _build_image_chunks(event: RunEvent) -> Iterator[Chunk]:
    """Yield the pictures of a tool, which the host stores as files."""
    urls = event.card.get("images", ()) if isinstance(event, ToolOutput) else ()
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    if images:
        yield {"choices": [{"index": 0, "delta": {"images": images}}]}


def _read_note(event: RunEvent) -> str:
    """Return what a person reads of the files of a tool."""
    notes = event.card.get("notes", ()) if isinstance(event, ToolOutput) else ()
    return "\n\n".join(notes)


def _build_source_chunk(source: ContextSource) -> Chunk:
    chunk = source_chunk(source.name, source.text)
    if source.url:
        data = chunk["event"]["data"]
        data["source"]["url"] = data["metadata"][0]["source"] = source.url
    return chunk


def _build_metadata_chunk(metadata: RunMetadata, notes: int) -> Chunk:
    line = metadata.describe()
    if notes:
        line += f", {notes} note{'s'[: notes != 1]}"
    return _build_status_chunk(line, "execution_metadata", _metadata_fields(metadata))


def _build_status_chunk(line: str, action: str, more: Mapping[str, Any]) -> Chunk:
    data = {"description": line, "done": True, "action": action, **more}
    return host_event("status", data)


def _build_step_chunk(event: StepStarted | StepEnded) -> Chunk:
    """Return a step of the log; the host stores the ends as status lines."""
    step = event.step if isinstance(event, StepEnded) else event
    fields: dict[str, Any] = {"id": step.id, "kind": step.kind, "label": step.label}
    detail = {"detail": event.detail} if event.detail else {}
    if isinstance(event, StepStarted):
        data = {**fields, "parent": step.parent, "status": "start", **detail}
        return host_event("agent:log", data)
    fields |= {"status": "finish", "seconds": round(event.seconds, 3)}
    tokens = {"tokens": event.usage.total} if event.usage else {}
    more = {**fields, **tokens, **detail}
    return _build_status_chunk(format_step(event), "agent_log", more)


class HostRenderer:
    """Shows a run in Open WebUI."""

    def __init__(self, emits_thoughts: bool, origin: Origin, sign: Sign) -> None:
        """`origin` made the reasoning that is carried, `sign` signs it."""
        self._native = NativeRenderer(monotonic_seconds)
        self._citations = Citations()
        self._thoughts = ThoughtFilter(emits=emits_thoughts)
        self._origin, self._sign = origin, sign
        self._first_place = self._note_count = 0
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted() | StepEnded():
                self._begin_step(event)
                yield _build_step_chunk(event)
            case RoundEnded():
                yield from self._attach_details(event)
            case ContextSource():
                yield _build_source_chunk(event)
            case ExecutionEnded():
                self._metadata = event.metadata
                yield _build_metadata_chunk(event.metadata, self._note_count)
            case StateChanged() | ToolCallRequested() | NewMessage() | ReadyForInput():
                name = f"agent:{_LISTENER_EVENTS[type(event)]}"
                yield host_event(name, event._asdict())
            case _:
                yield from self._render_run_event(event)

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the complete answer, with the output that the host stores.

        The page shows no finish_reason: an answer that ended early needs its sentence.
        """
        items, ending = self._native.shown.items, self._run_end.ending
        shown = self._run_end._replace(output=tuple(items))
        result = completion(shown, completion_id, created, model)
        early = error_chunk(ending.sentence) if ending.is_failure else {}
        stored = {"output": items} if items else {}
        return {**result, **early, **stored, **_metadata_fields(self._metadata)}

    def _begin_step(self, event: StepStarted | StepEnded) -> None:
        if (
            isinstance(event, StepStarted)
            and event.kind == "round"
            and not event.parent
        ):
            self._thoughts.begin_round(may_call=event.may_call)
            self._first_place = len(self._native.shown.items)

    def _render_run_event(self, event: RunEvent) -> Iterator[Chunk]:
        self._note_count += isinstance(event, Status)
        if isinstance(event, RunDone):
            self._run_end = event
        yield from self._render_shown(self._thoughts.show(event))
        if note := _read_note(event):  # shown as if the model had said it
            index = -1 - len(self._native.shown.items)
            item = {"type": "message", "phase": "commentary", "id": f"note_{index}"}
            yield from self._native.render(ItemAdded(index, item))
            yield from self._native.render(ItemDone(index, item, shown=note))
        yield from _build_image_chunks(event)

    def _render_shown(self, events: Iterator[RunEvent]) -> Iterator[Chunk]:
        for event in events:
            for cited in self._citations.feed(event):
                yield from self._native.render(cited)

    def _attach_details(self, event: RoundEnded) -> Iterator[Chunk]:
        """Yield the thought of a round again, now with its details.

        If there is no thought, one is made where the host goes on, or where approvals
        for the chat have to be kept.
        """
        place = self._thought_place()
        if place is None and (event.goes_on or event.notes.get("allowed")):
            yield from self._render_shown(self._thoughts.build_carrier())
            place = self._thought_place()
        if place is not None:
            pairs = [
                (item, self._thoughts.get_text(index)) for index, item in event.items
            ]
            details = write_details(
                event.name, pairs, self._origin, event.notes, self._sign
            )
            thought = {**self._native.shown.items[place], "reasoning_details": details}
            yield self._native.shown.end(place, thought)

    def _thought_place(self) -> int | None:
        items = self._native.shown.items
        places = range(self._first_place, len(items))
        return next((place for place in places if is_reasoning(items[place])), None)


class ClientRenderer:
    """Shows a run as chunks of a chat completion."""

    def __init__(
        self, emits_thoughts: bool, completion_id: str, created: int, model: str
    ) -> None:
        """Take the fields that every chunk repeats."""
        self._chunks = ChunkRenderer(completion_id, created, model)
        self._thoughts = ThoughtFilter(emits=emits_thoughts)
        self._items: dict[int, Item] = {}
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted(kind="round", parent=""):
                self._thoughts.begin_round(may_call=event.may_call)
            case ExecutionEnded():
                self._metadata = event.metadata
                fields = _metadata_fields(event.metadata)
                yield {**self._chunks.head, "choices": [], **fields}
            case _ if not isinstance(event, AgentOnlyEvent):
                for shown in self._thoughts.show(event):
                    self._store_item(shown)
                    yield from self._chunks.render(shown)
                if note := _read_note(event):
                    yield from self._chunks.render(TextDelta(-1, "reasoning", 0, note))
                for chunk in _build_image_chunks(event):
                    yield {**self._chunks.head, **chunk}

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the whole answer at once."""
        shown = self._run_end._replace(output=tuple(self._items.values()))
        result = completion(shown, completion_id, created, model)
        return {**result, **_metadata_fields(self._metadata)}

    def _store_item(self, shown: RunEvent) -> None:
        match shown:
            case ItemDone() | ToolOutput():
                self._items[shown.output_index] = shown.item
            case RunDone():
                self._run_end = shown
