"""What an agent reports in addition to the events of its runs."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.models.usage import Usage
from owui_chat.events import AnswerReport
from strategies.context import ContextSource
from strategies.metadata import RunMetadata

AgentState = Literal[
    "thinking",
    "executing_tool",
    "waiting_for_tools",
    "waiting_for_confirmation",
    "idle",
    "failed",
]
"""`waiting_for_tools` is the host's turn, `waiting_for_confirmation` the user's; `idle`
and `failed` are ends."""

StepKind = Literal["round", "model", "tool"]


class StateChanged(NamedTuple):
    """The agent is doing something else now."""

    state: AgentState


class StepStarted(NamedTuple):
    """A step of the log began; `parent` is the id of its outer step, or empty.

    `name` is the number of a round, or the name of the model or the tool; `task` is the
    number of the task that it belongs to, 0 for none. `may_call` says whether the model
    may call tools in this round. `detail` is for debugging only.
    """

    id: str
    parent: str
    kind: StepKind
    name: str
    task: int = 0
    may_call: bool = False
    detail: str = ""

    @property
    def label(self) -> str:
        """What logs and programs call it; the user reads a line (agent/steps.py)."""
        match self.kind:
            case "round":
                label = f"ROUND {self.name}"
            case "model":
                label = f"{self.name} Thought"
            case "tool":
                label = f"CALL {self.name}"
        return f"TASK {self.task} > {label}" if self.task else label

    @property
    def begins_round(self) -> bool:
        """Whether a round of the answer begins, not one of a task."""
        return self.kind == "round" and not self.parent


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
    | AnswerReport
    | ExecutionEnded
    | ReadyForInput
)

AgentEvent = RunEvent | AgentOnlyEvent
