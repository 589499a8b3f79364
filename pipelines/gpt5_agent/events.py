"""What an agent reports in addition to the events of its runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.models.usage import Usage

AgentState = Literal[
    "thinking",
    "executing_tool",
    "waiting_for_tools",
    "waiting_for_confirmation",
    "idle",
    "failed",
]
"""What an agent is doing: `waiting_for_tools` is the host's turn,
`waiting_for_confirmation` a person's; `idle` and `failed` are ends."""

StepKind = Literal["round", "model", "tool"]


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The agent does something else now."""

    state: AgentState


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step of the log began; `parent` is the step that contains it, or empty.

    `may_call` says whether the model may call tools in this round. `detail` is for
    debugging only.
    """

    id: str
    parent: str
    kind: StepKind
    label: str
    may_call: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class StepEnded:
    """A step of the log ended; `usage` are the tokens that the model reported."""

    id: str
    kind: StepKind
    label: str
    seconds: float
    usage: Usage | None = None
    failed: bool = False
    detail: str = ""


@dataclass(frozen=True, slots=True)
class RoundEnded:
    """The model's answer in a round is complete.

    `items` are the API's own with their indexes, `notes` what later rounds need to
    know; `goes_on` says that the agent is called again for the next round.
    """

    name: str
    items: tuple[tuple[int, Item], ...]
    notes: Mapping[str, Any]
    goes_on: bool = False


@dataclass(frozen=True, slots=True)
class ContextSource:
    """A text that was given to the model."""

    name: str
    text: str
    url: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallRequested:
    """A call that waits for approval (`onToolCallRequest`).

    `security_warning` is set when the call can do harm.
    """

    tool_name: str
    args: Mapping[str, Any]
    confirmation_id: str
    security_warning: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class NewMessage:
    """The complete answer (`onNewMessage`)."""

    content: str
    format: Literal["markdown", "text"] = "markdown"


@dataclass(frozen=True, slots=True)
class RunMetadata:
    """What an answer took, over all its rounds; `price` is 0 if unknown."""

    strategy: str
    model: str
    ending: str
    rounds: int
    tool_calls: int
    latency: float
    price: float = 0.0
    usage: Usage = field(default_factory=Usage)

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


@dataclass(frozen=True, slots=True)
class ExecutionEnded:
    """The whole answer has ended; comes once."""

    metadata: RunMetadata


@dataclass(frozen=True, slots=True)
class ReadyForInput:
    """The agent accepts the next message (`onReadyForInput`)."""


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
"""What only an agent reports."""

AgentEvent = RunEvent | AgentOnlyEvent
