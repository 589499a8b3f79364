"""The figures of an answer: the specified `execution_metadata`."""

from typing import Any, NamedTuple

from openai_responses.models.usage import Cost, Usage
from owui_chat.closing_line import AnswerFigures, closing_line
from owui_chat.events import AnswerReport


class RunMetadata(NamedTuple):
    """The figures of an answer over all its rounds.

    The cost is None if it is unknown or not shown; `latency` is in seconds.
    """

    strategy: str
    model: str
    ending: str
    rounds: int = 0
    tool_calls: int = 0
    latency: float = 0.0
    cost: Cost | None = None
    usage: Usage = Usage()
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""

    def describe(self) -> str:
        """Return the line that users read where there are none above it."""
        return closing_line(self.figures())

    def figures(self) -> AnswerFigures:
        """Return what the last line of an answer tells."""
        usage = self.usage if self.usage.total else None
        report = AnswerReport(
            cost=self.cost if self.cost and self.cost.dollars else None,
            window_share=self.window_share,
            rounds=self.rounds,
            tool_calls=self.tool_calls,
        )
        return AnswerFigures(
            self.latency,
            is_failure=self.ending not in ("completed", "cancelled"),
            is_stopped=self.ending == "cancelled",
            usage=usage,
            report=report,
        )

    def wire(self) -> dict[str, Any]:
        """Return the JSON object that is shown and stored."""
        return {
            "strategy": self.strategy,
            "model": self.model,
            "ending": self.ending,
            "rounds": self.rounds,
            "tool_calls": self.tool_calls,
            "latency": round(self.latency, 3),
            "total_price": round(self.cost.dollars, 8) if self.cost else 0.0,
            "currency": "USD",
            "prompt_tokens": self.usage.input,
            "completion_tokens": self.usage.output,
            "total_tokens": self.usage.total,
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
        }
