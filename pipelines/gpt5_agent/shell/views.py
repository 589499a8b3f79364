"""Renders agent events: native events for Open WebUI, chunks for plain HTTP clients.

Open WebUI stores the end of each step as a status line, and forwards the `agent:...`
events to its listeners.
"""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any

from gpt5_agent.agent.steps import describe_step
from gpt5_agent.events import (
    AgentEvent,
    AgentOnlyEvent,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    StateChanged,
    StepEnded,
    StepStarted,
    ToolCallRequested,
)
from gpt5_agent.tools.approval_cards import call_above_card
from manifold.http_failures import NOT_AGAIN, failed_answer, failure_headers
from manifold.views import client_view, context_sources, page_result, whole_completion
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import CUT
from openai_responses.items import Item, content_parts, is_reasoning
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.requests.replay import Origin
from openai_responses.transport.stream import ItemAdded, ItemDone, TextDelta
from owui_chat.citations import Citations, source_keys
from owui_chat.events import AnswerReport
from owui_chat.render.chunks import Chunk, closing_chunk, host_event, source_chunk
from owui_chat.render.client_errors import ending_status
from owui_chat.render.completions import ChunkRenderer, has_failed
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.details_carrier import write_details
from owui_chat.storage.signature import Sign
from shells.caller import ChatCaller
from strategies.context import ContextSource
from strategies.thoughts import RunTexts

_LISTENER_EVENTS: Mapping[type, str] = {
    NewMessage: "new_message",
    ToolCallRequested: "tool_call_request",
    ReadyForInput: "ready_for_input",
    StateChanged: "state_change",
}


def _build_image_chunks(event: ToolOutput) -> Iterator[Chunk]:
    """Yield the pictures of a tool, which the host stores as files."""
    images = [
        {"type": "image_url", "image_url": {"url": url}}
        for url in event.card.get("images", ())
    ]
    if images:
        yield {"choices": [{"index": 0, "delta": {"images": images}}]}


def _build_step_chunk(event: StepStarted | StepEnded, *, asks: bool) -> Chunk:
    """Return a step of the log; the host stores the ends as status lines.

    The line stays above the question of a round that `asks` the user.
    """
    step = event if isinstance(event, StepStarted) else event.step
    names = {"id": step.id, "kind": step.kind, "label": step.label}
    detail = {"detail": event.detail} if event.detail else {}
    if isinstance(event, StepStarted):
        begun = {**names, "parent": event.parent, "status": "start", **detail}
        return host_event("agent:log", begun)
    line = describe_step(event)
    if asks and step.kind == "round":
        line = "Waiting for your answer"
    fields: dict[str, Any] = {
        "description": line,
        "done": True,
        "action": "agent_log",
        **names,
        "status": "finish",
        "seconds": round(event.seconds, 3),
    }
    if event.usage:
        fields["tokens"] = event.usage.total
    return host_event("status", {**fields, **detail})


class HostRenderer:
    """Shows a run in Open WebUI."""

    def __init__(
        self,
        emits_thoughts: bool,
        origin: Origin,
        sign: Sign,
        *,
        context: object = None,
        is_in_channel: bool = False,
    ) -> None:
        """`origin` made the reasoning that is carried, `sign` signs it.

        The page has the sources of the `context` before others. A channel shows neither
        status lines nor sources.
        """
        self._native = NativeRenderer(
            monotonic_seconds, has_status_lines=not is_in_channel
        )
        self._citations = Citations(
            source_keys(context_sources(context)), shows_addresses=is_in_channel
        )
        self._texts = RunTexts(are_shown=emits_thoughts)
        self._origin = origin
        self._sign = sign
        self._round_start = 0
        """How many items were shown before the current round."""
        self._asks = False
        """Whether the user is asked about a call."""
        self._run_end = RunDone(CUT)

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted() | StepEnded():
                if isinstance(event, StepStarted) and event.begins_round:
                    self._texts.begin_round(may_call=event.may_call)
                    self._round_start = len(self._native.output.items)
                yield _build_step_chunk(event, asks=self._asks)
            case RoundEnded():
                yield from self._attach_details(event)
            case ContextSource():
                yield source_chunk(event.name, event.text, event.url)
            case ExecutionEnded():
                line = self._native.last_line(event.metadata.figures())
                yield closing_chunk(line, event.metadata.wire())
            case AnswerReport():
                yield from self._native.render(event)
            case StateChanged() | NewMessage() | ReadyForInput() | ToolCallRequested():
                if isinstance(event, StateChanged):
                    self._asks = event.state == "waiting_for_confirmation"
                name = _LISTENER_EVENTS[type(event)]
                yield host_event(f"agent:{name}", event._asdict())
                if isinstance(event, ToolCallRequested):
                    yield from self._render_note(call_above_card(event))
            case _:
                if isinstance(event, RunDone):
                    self._run_end = event
                yield from self._render_shown(self._texts.feed(event))
                if isinstance(event, ToolOutput):
                    # What the user reads of the files of a tool.
                    yield from self._render_note(
                        "\n\n".join(event.card.get("notes", ()))
                    )
                    yield from _build_image_chunks(event)

    def result(self, model: str) -> Chunk:
        """Return the complete answer, with the output that the host stores."""
        shown = self._run_end._replace(output=tuple(self._native.output.items))
        return page_result(shown, model, self._native)

    def _render_note(self, note: str) -> Iterator[Chunk]:
        """Yield a note as if the model had said it; its index is no other item's."""
        if not note:
            return
        index = self._texts.new_index()
        item = {"type": "message", "phase": "commentary", "id": f"note_{index}"}
        yield from self._native.render(ItemAdded(index, item))
        yield from self._native.render(ItemDone(index, item, shown=note))

    def _render_shown(self, events: Iterable[RunEvent]) -> Iterator[Chunk]:
        """Yield the events that the user sees, with their citations."""
        for event in events:
            for cited in self._citations.feed(event):
                yield from self._native.render(cited)

    def _attach_details(self, event: RoundEnded) -> Iterator[Chunk]:
        """Yield the thought of a round again, now with its details.

        If there is no thought, one is made where the host goes on, or where approvals
        for the chat have to be kept and no earlier round has one. The page would show
        it below the answer, with nothing in it.
        """
        items = event.items
        thought_index = self._find_thought(self._round_start)
        keeps_approvals = bool(event.notes.get("allowed"))
        if thought_index is None and keeps_approvals and not event.continues:
            thought_index = self._find_thought(0)
            if thought_index is not None:
                items = ()  # the notes alone: the items belong behind later calls
        if thought_index is None and (event.continues or keeps_approvals):
            yield from self._render_shown(self._texts.build_carrier())
            thought_index = self._find_thought(self._round_start)
        if thought_index is None:
            return
        items_and_texts = [(item, self._texts.text_of(index)) for index, item in items]
        details = write_details(
            event.name,
            items_and_texts,
            self._origin,
            event.notes,
            self._sign,
            continues=event.continues,
        )
        thought = self._native.output.items[thought_index]
        # A round can end twice: before its own tools ran, and after that.
        earlier = content_parts(thought.get("reasoning_details"))
        kept = [e for e in earlier if e.get("turn") not in (None, event.name)]
        carrier = {**thought, "reasoning_details": [*kept, *details]}
        yield self._native.output.end(thought_index, carrier)

    def _find_thought(self, start: int) -> int | None:
        """Return the index of the first thought from `start` on among the items shown."""
        items = self._native.output.items
        for index in range(start, len(items)):
            if is_reasoning(items[index]):
                return index
        return None


class ClientRenderer:
    """Shows a run as chunks of a chat completion."""

    def __init__(
        self,
        emits_thoughts: bool,
        caller: ChatCaller,
        chunks: ChunkRenderer | None = None,
    ) -> None:
        """With `chunks`, whose head the answer has."""
        self._caller = caller
        self._chunks = chunks or client_view(caller)
        self._texts = RunTexts(are_shown=emits_thoughts)
        self._items: dict[int, Item] = {}
        self._run_end = RunDone(CUT)

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted(begins_round=True):
                self._texts.begin_round(may_call=event.may_call)
            case AnswerReport():
                yield from self._chunks.render(event)
            case _ if not isinstance(event, AgentOnlyEvent):
                for shown in self._texts.feed(event):
                    if isinstance(shown, ItemDone | ToolOutput):
                        self._items[shown.output_index] = shown.item
                    elif isinstance(shown, RunDone):
                        self._run_end = shown
                    yield from self._chunks.render(shown)
                if not isinstance(event, ToolOutput):
                    return
                note = "\n\n".join(event.card.get("notes", ()))
                if note:
                    index = self._texts.new_index()
                    said = TextDelta(index, "reasoning", 0, note)
                    yield from self._chunks.render(said)
                for chunk in _build_image_chunks(event):
                    yield {**self._chunks.head, **chunk}

    def result(self, model: str) -> Any:
        """Return the whole answer at once; a failure has its status."""
        shown = self._run_end._replace(output=tuple(self._items.values()))
        result = whole_completion(
            shown,
            model,
            self._chunks.report,
            has_format=self._caller.wants_format,
        )
        if not has_failed(shown.ending):
            return result
        headers = failure_headers(shown)
        return program_failure(self._caller, result, ending_status(shown), headers)


def program_failure(
    caller: ChatCaller, result: Chunk, status: int, headers: Mapping[str, str]
) -> Any:
    """Return a failed result with its status, if a program reads it.

    Open WebUI passes the status on to its programs, but not the header that says not to
    ask again. So what has cost money keeps the status 200 there.
    """
    if caller.is_open_webui or caller.task:
        return result
    if caller.user_id and NOT_AGAIN in headers:
        return result
    try:
        response = import_module("starlette.responses").Response
    except ImportError:
        response = None
    return failed_answer(response, result, status, headers)
