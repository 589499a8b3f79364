"""What an answer took so far: tokens, time, rounds, calls."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from gpt5_agent.asked import AgentLimits
from gpt5_agent.events import Metadata
from openai_responses.models.resolve import ModelPrices
from openai_responses.models.usage import Usage, add_usage, cost_of_run

_MOST_ROUNDS = (
    "Maximum iteration limit ({limit}) reached. Cannot call tool '{tool}'. "
    "Please consider increasing the iteration limit."
)


class Ledger:
    """Adds up; earlier rounds of the same answer are brought in with `resume`."""

    def __init__(self, budget: AgentLimits, now: Callable[[], float]) -> None:
        """Begin now, in seconds of a clock that only grows."""
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        self.last_usage: Usage | None = None
        self.usage_before: Usage | None = None
        self._budget = budget
        self._now = now
        self._began = now()

    @property
    def seconds(self) -> float:
        """The time that the agent itself took."""
        return self._now() - self._began

    @property
    def total_usage(self) -> Usage:
        """The tokens of all rounds, earlier ones too."""
        return add_usage(self.usage_before, self.usage) or Usage()

    @property
    def seconds_left(self) -> float | None:
        """The time that is left, or None where there is no limit."""
        most = self._budget.seconds
        return max(0.0, most - self.seconds) if most > 0 else None

    def resume(
        self, rounds: int, calls: int, usage: Usage | None, seconds: float
    ) -> None:
        """Go on from what earlier rounds took."""
        self.rounds, self.calls, self.usage_before = rounds, calls, usage
        self._began -= seconds

    def add_turn(self, usage: Usage | None) -> None:
        """Count what a model's answer took."""
        self.usage = add_usage(self.usage, usage)
        self.last_usage = usage

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count no time while a person is asked."""
        began = self._now()
        try:
            yield
        finally:
            self._began += self._now() - began

    def may_call(self, number: int) -> bool:
        """Say whether the model may call tools in the round of that number."""
        return number <= self._budget.rounds and not self._used_up()

    def refusal(self, number: int) -> str:
        """Return what the calls of a round are refused with, if they are.

        The calls of the last round are not made, unless it is the only one. `{tool}`
        stands for the tool's name.
        """
        most = self._budget.rounds
        if number > most or number == most > 1:
            return _MOST_ROUNDS.replace("{limit}", str(most))
        used_up = self._used_up()
        return used_up and f"{used_up} Cannot call tool '{{tool}}'."

    def _used_up(self) -> str:
        budget = self._budget
        if self.seconds_left == 0:
            return f"Time limit ({budget.seconds:g} s) reached."
        if 0 < budget.tokens <= self.total_usage.total:
            return f"Token limit ({budget.tokens}) reached."
        return ""

    def metadata(
        self, strategy: str, model: str, ending: str, prices: ModelPrices | None
    ) -> Metadata:
        """Return what the whole answer took."""
        usage = self.total_usage
        price = cost_of_run(usage, prices, ()) or 0.0
        return Metadata(
            strategy,
            model,
            ending,
            rounds=self.rounds,
            tool_calls=self.calls,
            latency=self.seconds,
            price=price,
            usage=usage,
        )


def usage_wire(usage: Usage | None) -> dict[str, int]:
    """Return the counts as they are noted."""
    return asdict(usage) if usage else {}


def read_noted_usage(wire: object) -> Usage | None:
    """Return the counts that were noted; None for anything else."""
    given: Mapping[str, Any] = wire if isinstance(wire, Mapping) else {}
    counts = {field.name: given.get(field.name) for field in fields(Usage)}
    numbers = {k: v for k, v in counts.items() if isinstance(v, int) and v >= 0}
    return Usage(**numbers) if numbers else None
