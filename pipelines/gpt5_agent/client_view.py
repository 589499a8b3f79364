"""The agent's events -> chunks of a chat completion, for a plain client."""

from collections.abc import Iterator
from dataclasses import replace

from gpt5_agent.agent_chunks import metadata_keys, picture_chunks
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    Metadata,
    OwnEvent,
    StepStarted,
)
from gpt5_agent.thoughts import Thoughts
from openai_responses.endings import CUT
from openai_responses.items import Item
from openai_responses.loop.events import ItemEnded, RunDone, RunEvent, ToolOutput
from owui_chat.render.chunks import Chunk
from owui_chat.render.completions import ChunkRenderer, completion


class PlainView:
    """Shows a run as chunks of a chat completion."""

    def __init__(
        self, completion_id: str, created: int, model: str, emits_thoughts: bool
    ) -> None:
        """Take what every chunk repeats."""
        self._chunks = ChunkRenderer(completion_id, created, model)
        self._thoughts = Thoughts(emits=emits_thoughts)
        self._items: dict[int, Item] = {}
        self._ended = RunDone(CUT)
        self._metadata: Metadata | None = None
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
                more = metadata_keys(event.metadata)
                yield {**self._head, "choices": [], **more}
            case _ if not isinstance(event, OwnEvent):
                for shown in self._thoughts.show(event):
                    self._collect(shown)
                    yield from self._chunks.render(shown)
                if isinstance(event, ToolOutput):
                    for chunk in picture_chunks(event):
                        yield {**self._head, **chunk}

    def result(self, completion_id: str, created: int, model: str) -> Chunk:
        """Return the whole answer at once."""
        shown = replace(self._ended, output=tuple(self._items.values()))
        result = completion(shown, completion_id, created, model)
        return {**result, **metadata_keys(self._metadata)}

    def _collect(self, shown: RunEvent) -> None:
        match shown:
            case ItemEnded() | ToolOutput():
                self._items[shown.index] = shown.item
            case RunDone():
                self._ended = shown
