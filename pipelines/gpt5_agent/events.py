"""What an agent reports in addition to the events of its runs."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.models.usage import Usage
from owui_chat.closing_line import AnswerFigures, closing_line

AgentState = Literal[
    "thinking",
    "executing_tool",
    "waiting_for_tools",
    "waiting_for_confirmation",
    "idle",
    "failed",
]
"""`waiting_for_tools` is the host's turn, `waiting_for_confirmation` a person's; `idle`
and `failed` are ends."""

StepKind = Literal["round", "model", "tool"]


class StateChanged(NamedTuple):
    """The agent is doing something else now."""

    state: AgentState


class StepStarted(NamedTuple):
    """A step of the log began; `parent` is the id of its outer step, or empty.

    `may_call` says whether the model may call tools in this round. `detail` is for
    debugging only.
    """

    id: str
    parent: str
    kind: StepKind
    label: str
    may_call: bool = False
    detail: str = ""


class StepEnded(NamedTuple):
    """A step of the log ended; `usage` are the tokens that the model reported."""

    step: StepStarted
    seconds: float
    usage: Usage | None = None
    failed: bool = False
    detail: str = ""


class RoundEnded(NamedTuple):
    """The model's answer in a round is complete.

    `items` are the API's own with their indexes, `notes` what later rounds need to
    know; `continues` says that the agent is called again for the next round.
    """

    name: str
    items: tuple[tuple[int, Item], ...]
    notes: Mapping[str, Any]
    continues: bool = False


class ContextSource(NamedTuple):
    """A text that was given to the model."""

    name: str
    text: str
    url: str = ""


class ToolCallRequested(NamedTuple):
    """A call that waits for approval; `security_warning` is set if it can do harm.

    `coverage` is what an approval for the whole chat would allow, empty if there can be
    none.
    """

    tool_name: str
    args: Mapping[str, Any]
    confirmation_id: str
    security_warning: Mapping[str, str] | None = None
    coverage: str = ""


class NewMessage(NamedTuple):
    """The complete answer."""

    content: str
    format: Literal["markdown", "text"] = "markdown"


class RunMetadata(NamedTuple):
    """What an answer took, over all its rounds; `price` is 0 if unknown."""

    strategy: str
    model: str
    ending: str
    rounds: int
    tool_calls: int
    latency: float
    price: float = 0.0
    usage: Usage = Usage()

    def describe(self, notes: int = 0) -> str:
        """Return the line that people read; `notes` are the lines above it."""
        figures = AnswerFigures(
            seconds=self.latency,
            is_failure=self.ending != "completed",
            rounds=self.rounds,
            tool_calls=self.tool_calls,
            usage=self.usage,
            cost=self.price or None,
            notes=notes,
        )
        return closing_line(figures)

    def wire(self) -> dict[str, Any]:
        """Return the JSON object that is shown and stored."""
        return {
            "strategy": self.strategy,
            "model": self.model,
            "ending": self.ending,
            "rounds": self.rounds,
            "tool_calls": self.tool_calls,
            "latency": round(self.latency, 3),
            "total_price": round(self.price, 8),
            "currency": "USD",
            "prompt_tokens": self.usage.input,
            "completion_tokens": self.usage.output,
            "total_tokens": self.usage.total,
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
        }


class ExecutionEnded(NamedTuple):
    """The whole answer has ended."""

    metadata: RunMetadata


class ReadyForInput(NamedTuple):
    """The agent accepts the next message."""


AgentOnlyEvent = (
    StateChanged
    | StepStarted
    | StepEnded
    | RoundEnded
    | ContextSource
    | ToolCallRequested
    | NewMessage
    | ExecutionEnded
    | ReadyForInput
)

AgentEvent = RunEvent | AgentOnlyEvent
