"""Renders agent events: native events for Open WebUI, chunks for plain HTTP clients.

Open WebUI stores the end of each step as a status line, and forwards the `agent:...`
events to its listeners.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gpt5_agent.agent.accounting import format_step
from gpt5_agent.agent.thoughts import ThoughtFilter
from gpt5_agent.events import (
    AgentEvent,
    AgentOnlyEvent,
    AgentState,
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
from gpt5_agent.ports import notify_interface
from openai_responses.endings import CUT
from openai_responses.items import Item, is_reasoning
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.requests.replay import Origin
from openai_responses.transport.stream import ItemDone
from owui_chat.citations import Citations
from owui_chat.render.chunks import Chunk, error_chunk, host_event, source_chunk
from owui_chat.render.completions import ChunkRenderer, completion
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.details_carrier import write_details


def _metadata_fields(metadata: RunMetadata | None) -> dict[str, Any]:
    """Return the field with the metadata of the whole execution."""
    return {"execution_metadata": metadata.wire()} if metadata else {}


def _build_image_chunks(event: ToolOutput) -> Iterator[Chunk]:
    """Yield the pictures of a tool, which the host stores as files."""
    urls = event.card.get("images", ())
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    if images:
        yield {"choices": [{"index": 0, "delta": {"images": images}}]}


def _build_source_chunk(source: ContextSource) -> Chunk:
    """Return a source below the answer."""
    chunk = source_chunk(source.name, source.text)
    if source.url:
        chunk["event"]["data"]["source"]["url"] = source.url
        chunk["event"]["data"]["metadata"][0]["source"] = source.url
    return chunk


def _build_metadata_chunk(metadata: RunMetadata) -> Chunk:
    """Return a status line that the host stores with the message."""
    rounds, calls = metadata.rounds, metadata.tool_calls
    line = (
        f"{rounds} round{'s'[: rounds != 1]}, {calls} tool call{'s'[: calls != 1]}, "
        f"{metadata.usage.total} tokens, {metadata.latency:.1f} s"
    )
    if metadata.price:
        line += f", ${metadata.price:.4f}"
    return _build_status_chunk(
        line, "execution_metadata", {"execution_metadata": metadata.wire()}
    )


def _build_status_chunk(line: str, action: str, more: Mapping[str, Any]) -> Chunk:
    data = {"description": line, "done": True, "action": action, **more}
    return host_event("status", data)


def _build_step_chunk(step: StepStarted | StepEnded) -> Chunk:
    """Return a step of the log; the host stores the ends as status lines."""
    if isinstance(step, StepStarted):
        return host_event("agent:log", _step_fields(step))
    return _build_status_chunk(format_step(step), "agent_log", _step_fields(step))


def _step_fields(step: StepStarted | StepEnded) -> dict[str, Any]:
    told = {"id": step.id, "kind": step.kind, "label": step.label}
    if isinstance(step, StepStarted):
        told |= {"parent": step.parent, "status": "start"}
        return told | ({"detail": step.detail} if step.detail else {})
    tokens = {"tokens": step.usage.total} if step.usage else {}
    more = {"detail": step.detail} if step.detail else {}
    return {
        **told,
        "status": "finish",
        "seconds": round(step.seconds, 3),
        **tokens,
        **more,
    }


class HostRenderer:
    """Shows a run in Open WebUI; a user interface of the agent."""

    def __init__(
        self, now: Callable[[], float], emits_thoughts: bool, origin: Origin
    ) -> None:
        """`now` is in seconds; `origin` made the reasoning that is carried."""
        self._native = NativeRenderer(now, closes=False)
        self._citations = Citations()
        self._thoughts = ThoughtFilter(emits=emits_thoughts)
        self._origin = origin
        self._first_place = 0
        self._interface_chunks: list[Chunk] = []
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted():
                yield self._start_step(event)
            case StepEnded():
                yield _build_step_chunk(event)
            case RoundEnded():
                yield from self._attach_details(event)
            case ContextSource():
                yield _build_source_chunk(event)
            case ExecutionEnded():
                self._metadata = event.metadata
                yield _build_metadata_chunk(event.metadata)
            case StateChanged() | ToolCallRequested() | NewMessage() | ReadyForInput():
                notify_interface(event, self)
                told, self._interface_chunks = self._interface_chunks, []
                yield from told
            case _:
                yield from self._render_run_event(event)

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the complete answer, with the output that the host stores.

        The page shows no finish_reason: an answer that ended early needs its sentence.
        """
        items, ending = self._native.items, self._run_end.ending
        shown = self._run_end._replace(output=tuple(items))
        result = completion(shown, completion_id, created, model)
        early = error_chunk(ending.sentence) if ending.is_failure else {}
        stored = {"output": items} if items else {}
        return {**result, **early, **stored, **_metadata_fields(self._metadata)}

    def on_new_message(self, message: NewMessage) -> None:
        """Report a complete answer."""
        self._queue_event("new_message", message._asdict())

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Report a call that waits for approval; the host shows a card for it."""
        self._queue_event("tool_call_request", request._asdict())

    def on_ready_for_input(self) -> None:
        """Report that the next message can come."""
        self._queue_event("ready_for_input", {})

    def on_agent_state_change(self, state: AgentState) -> None:
        """Report what the agent does now."""
        self._queue_event("state_change", {"state": state})

    def _queue_event(self, name: str, told: Mapping[str, Any]) -> None:
        self._interface_chunks.append(host_event(f"agent:{name}", dict(told)))

    def _start_step(self, step: StepStarted) -> Chunk:
        if step.kind == "round":
            self._thoughts.begin_round(may_call=step.may_call)
            self._first_place = len(self._native.items)
        return _build_step_chunk(step)

    def _render_run_event(self, event: RunEvent) -> Iterator[Chunk]:
        if isinstance(event, RunDone):
            self._run_end = event
        for shown in self._thoughts.show(event):
            yield from self._render_cited(shown)
        if isinstance(event, ToolOutput):
            yield from _build_image_chunks(event)

    def _render_cited(self, event: RunEvent) -> Iterator[Chunk]:
        for cited in self._citations.feed(event):
            yield from self._native.render(cited)

    def _attach_details(self, event: RoundEnded) -> Iterator[Chunk]:
        """Yield the thought of a round again, now with its details.

        If the host goes on and there is no thought, one is made.
        """
        place = self._thought_place()
        if place is None and event.goes_on:
            for shown in self._thoughts.build_carrier():
                yield from self._render_cited(shown)
            place = self._thought_place()
        if place is not None:
            pairs = [
                (item, self._thoughts.get_text(index)) for index, item in event.items
            ]
            details = write_details(event.name, pairs, self._origin, event.notes)
            thought = {**self._native.items[place], "reasoning_details": details}
            yield self._native.amend(place, thought)

    def _thought_place(self) -> int | None:
        items = self._native.items
        places = range(self._first_place, len(items))
        return next((place for place in places if is_reasoning(items[place])), None)


class ClientRenderer:
    """Shows a run as chunks of a chat completion."""

    def __init__(
        self, completion_id: str, created: int, model: str, emits_thoughts: bool
    ) -> None:
        """Take the fields that every chunk repeats."""
        self._chunks = ChunkRenderer(completion_id, created, model)
        self._thoughts = ThoughtFilter(emits=emits_thoughts)
        self._items: dict[int, Item] = {}
        self._run_end = RunDone(CUT)
        self._metadata: RunMetadata | None = None
        self._head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted(kind="round"):
                self._thoughts.begin_round(may_call=event.may_call)
            case ExecutionEnded():
                self._metadata = event.metadata
                more = _metadata_fields(event.metadata)
                yield {**self._head, "choices": [], **more}
            case _ if not isinstance(event, AgentOnlyEvent):
                for shown in self._thoughts.show(event):
                    self._store_item(shown)
                    yield from self._chunks.render(shown)
                if isinstance(event, ToolOutput):
                    for chunk in _build_image_chunks(event):
                        yield {**self._head, **chunk}

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
