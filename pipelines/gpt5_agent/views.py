"""The agent's events -> Open WebUI's native events.

What the host stores of the log are the ends of the steps, as status lines; it passes
on the events of the seed, `agent:...`, to whoever listens.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

from gpt5_agent.agent_chunks import (
    context_chunk,
    metadata_chunk,
    metadata_keys,
    picture_chunks,
    step_chunk,
)
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    Metadata,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    SourceGiven,
    State,
    StateChanged,
    StepEnded,
    StepStarted,
    ToolCallRequested,
)
from gpt5_agent.reporting import report
from gpt5_agent.thoughts import Thoughts
from openai_responses.endings import CUT
from openai_responses.items import is_reasoning
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.requests.replay import Origin
from owui_chat.render.chunks import Chunk, error_chunk, host_event
from owui_chat.render.completions import completion
from owui_chat.render.native import NativeRenderer
from owui_chat.storage.details_carrier import write_details


class HostView:
    """Shows a run in Open WebUI; a user interface of the agent."""

    def __init__(
        self, now: Callable[[], float], emits_thoughts: bool, origin: Origin
    ) -> None:
        """Take `now` in seconds, and who makes the reasoning that is carried."""
        self._native = NativeRenderer(now, closes=False)
        self._thoughts = Thoughts(emits=emits_thoughts)
        self._origin = origin
        self._first_place = 0
        self._told: list[Chunk] = []
        self._ended = RunDone(CUT)
        self._metadata: Metadata | None = None

    def show(self, event: AgentEvent) -> Iterator[Chunk]:
        """Yield the chunks to send."""
        match event:
            case StepStarted():
                yield self._begin(event)
            case StepEnded():
                yield step_chunk(event)
            case RoundEnded():
                yield from self._carry(event)
            case SourceGiven():
                yield context_chunk(event)
            case ExecutionEnded():
                self._metadata = event.metadata
                yield metadata_chunk(event.metadata)
            case StateChanged() | ToolCallRequested() | NewMessage() | ReadyForInput():
                report(event, self)
                told, self._told = self._told, []
                yield from told
            case _:
                yield from self._run_event(event)

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the whole answer at once, with what the host stores of it.

        The page shows no finish_reason: an answer that ended early needs its words.
        """
        items, ending = self._native.items, self._ended.ending
        shown = replace(self._ended, output=tuple(items))
        result = completion(shown, completion_id, created, model)
        early = error_chunk(ending.sentence) if ending.is_failure else {}
        stored = {"output": items} if items else {}
        return {**result, **early, **stored, **metadata_keys(self._metadata)}

    def on_new_message(self, message: NewMessage) -> None:
        """Tell of a whole answer."""
        self._tell("new_message", asdict(message))

    def on_tool_call_request(self, request: ToolCallRequested) -> None:
        """Tell of a call that waits for a yes; the host shows a card for it."""
        self._tell("tool_call_request", asdict(request))

    def on_ready_for_input(self) -> None:
        """Tell that the next message can come."""
        self._tell("ready_for_input", {})

    def on_agent_state_change(self, state: State) -> None:
        """Tell what the agent does now."""
        self._tell("state_change", {"state": state})

    def _tell(self, name: str, told: Mapping[str, Any]) -> None:
        self._told.append(host_event({"type": f"agent:{name}", "data": dict(told)}))

    def _begin(self, step: StepStarted) -> Chunk:
        if step.kind == "round":
            self._thoughts.begin_round(may_call=step.may_call)
            self._first_place = len(self._native.items)
        return step_chunk(step)

    def _run_event(self, event: RunEvent) -> Iterator[Chunk]:
        if isinstance(event, RunDone):
            self._ended = event
        for shown in self._thoughts.show(event):
            yield from self._native.render(shown)
        if isinstance(event, ToolOutput):
            yield from picture_chunks(event)

    def _carry(self, event: RoundEnded) -> Iterator[Chunk]:
        """Yield the thought of a round again, now with what it carries.

        Where the host goes on and there is no thought, one is made.
        """
        place = self._thought_place()
        if place is None and event.goes_on:
            for shown in self._thoughts.carrier():
                yield from self._native.render(shown)
            place = self._thought_place()
        if place is not None:
            pairs = [
                (item, self._thoughts.text_of(index)) for index, item in event.items
            ]
            details = write_details(event.name, pairs, self._origin, event.notes)
            thought = {**self._native.items[place], "reasoning_details": details}
            yield self._native.amend(place, thought)

    def _thought_place(self) -> int | None:
        items = self._native.items
        places = range(self._first_place, len(items))
        return next((place for place in places if is_reasoning(items[place])), None)
