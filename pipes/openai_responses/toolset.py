"""What a run needs to answer calls: the tools of a request, with their limits."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from openai_responses.approvals import Approver
from openai_responses.items import CALL_OUTPUTS, Item, item_type


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool returned.

    `output` is for the model: a text, or content parts with pictures. `card` holds
    what the host shows beside it (`files`, `embeds`).
    """

    output: str | list[Item]
    failed: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


class CallableTools(Protocol):
    """The tools of a request, by their own names or those that the model was given."""

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for no such tool."""

    def meant(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of the tool that a call is for, with its arguments.

        A tool that only passes calls on names another one; None if it names none.
        """

    def waits_for_people(self, name: str) -> bool:
        """Say whether a tool's time is a person's, which no limit counts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Run a tool; whatever it raises is a failure of the tool."""


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How many calls run at once, for how many seconds, with how long an output."""

    at_once: int = 8
    seconds: float = 120.0
    batch_seconds: float = 600.0
    characters: int = 100_000


@dataclass(frozen=True, slots=True)
class Toolset:
    """What a run needs to answer calls, and the questions of remote servers, itself.

    `log` takes lines that say why a tool failed. `rounds` is how often the model may
    call, `most_calls` how many calls it may make in all; `carries_reasoning` says
    whether it gets its reasoning back between them. Unless it `runs_calls`, they are
    left open for others.
    """

    tools: CallableTools
    approver: Approver = field(default_factory=Approver)
    limits: CallLimits = field(default_factory=CallLimits)
    log: Callable[[str], object] = field(default=str)
    rounds: int = 10
    most_calls: int = 100
    carries_reasoning: bool = True
    runs_calls: bool = True


def output_of(call: Item, answer: ToolAnswer) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def failed_answer(sentence: str) -> ToolAnswer:
    """Return the answer of a call that did not succeed, in words for the model."""
    return ToolAnswer(f"Error: {sentence}", failed=True)
