"""What a run may take, and what it has taken so far.

If the host makes some calls and asks again with their outputs, the new run continues
from what the earlier rounds of the same answer took. A task that a run delegates has a
budget of its own, and counts for the run as well.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import NamedTuple, Self

from openai_responses.loop.events import RunDone, SpentLimit
from openai_responses.models.usage import Usage, add_usage, sum_usages


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run; 0 `seconds` or `tokens` mean no limit.

    `rounds` counts the responses that may call tools. The calls of the last of several
    rounds are refused, so that the model learns of the limit. A budget of one round
    makes its calls. Then the model answers once more, without tools. `seconds` includes
    the model and the tools that run here, but not the time that users need to decide.
    """

    rounds: int = 10
    calls: int = 100
    seconds: float = 0.0
    tokens: int = 0


class EarlierSpending(NamedTuple):
    """What earlier rounds of the same answer took, in other runs."""

    rounds: int = 0
    calls: int = 0
    usages: tuple[Usage, ...] = ()
    """One for each response whose tokens are known: its length decides its price."""
    seconds: float = 0.0


Pause = Callable[[], AbstractContextManager[None]]
"""Stops a clock, or several, until it is left."""


class PausableClock:
    """The seconds of the event loop, without those of its pauses.

    Calls run in parallel, so several pauses can overlap: the clock stops from the
    beginning of the first one to the end of the last one.
    """

    def __init__(self, on_change: Callable[[], object] = lambda: None) -> None:
        """Call `on_change` whenever the clock stops, and whenever it goes on."""
        self._loop = asyncio.get_running_loop()
        self._on_change = on_change
        self._pauses = 0
        self._stopped_at = 0.0
        self._paused_seconds = 0.0
        self.goes_on = self._loop.create_future()
        """Done when a clock that is paused goes on."""

    @property
    def is_paused(self) -> bool:
        """Whether it is stopped."""
        return self._pauses > 0

    def time(self) -> float:
        """Return the time, in seconds."""
        now = self._stopped_at if self.is_paused else self._loop.time()
        return now - self._paused_seconds

    @contextmanager
    def pause(self, others: Pause = nullcontext) -> Iterator[None]:
        """Stop the clock, and the `others` with it."""
        self._pauses += 1
        if self._pauses == 1:
            self._stopped_at = self._loop.time()
            self.goes_on = self._loop.create_future()
            self._on_change()
        try:
            with others():
                yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._paused_seconds += self._loop.time() - self._stopped_at
                self.goes_on.set_result(None)
                self._on_change()


class Spending:
    """What a run has taken so far, compared with its budget.

    `parent` is the spending of the run that delegated this task.
    """

    def __init__(self, budget: Budget, parent: Self | None = None) -> None:
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        """The sum without earlier rounds."""
        self.last_usage: Usage | None = None
        """That of the last response."""
        self.usages: list[Usage] = []
        """One for each response, those of earlier rounds first."""
        self.delegated_usage: Usage | None = None
        """That of tasks since it was last taken."""
        self._budget = budget
        self._parent = parent
        self._stop: RunDone | None = None
        """The end of a run that was stopped."""
        self._earlier = EarlierSpending()
        self._clock = PausableClock()
        self._started_at = self._clock.time()

    def add_earlier(self, earlier: EarlierSpending) -> None:
        """Count what earlier rounds took."""
        self.rounds = earlier.rounds
        self.calls = earlier.calls
        self.usages += earlier.usages
        self._earlier = earlier
        self._started_at -= earlier.seconds

    def begin_round(self) -> int:
        """Count a response that is requested; return its number, from 1."""
        self.rounds += 1
        return self.rounds

    def add_response(self, usages: Iterable[Usage], last_usage: Usage | None) -> None:
        """Count the attempts at one response."""
        for usage in usages:
            self._add(usage)
            if self._parent:
                self._parent.add_delegated(usage)
        self.last_usage = last_usage

    def add_delegated(self, usage: Usage) -> None:
        """Count a response of a task."""
        self._add(usage)
        self.delegated_usage = add_usage(self.delegated_usage, usage)

    def take_delegated(self) -> Usage | None:
        """Return what tasks used since it was last taken."""
        taken = self.delegated_usage
        self.delegated_usage = None
        return taken

    def _add(self, usage: Usage) -> None:
        self.usage = add_usage(self.usage, usage)
        self.usages.append(usage)

    @property
    def total_usage(self) -> Usage:
        """The tokens of all rounds, earlier ones included."""
        return sum_usages(self.usages) or Usage()

    @property
    def own_usages(self) -> list[Usage]:
        """Those of the responses of this run, without earlier rounds."""
        return self.usages[len(self._earlier.usages) :]

    @property
    def own_rounds(self) -> int:
        """The responses that this run asked for."""
        return self.rounds - self._earlier.rounds

    @property
    def own_calls(self) -> int:
        """The calls of this run."""
        return self.calls - self._earlier.calls

    @property
    def seconds(self) -> float:
        """The time so far, earlier rounds included and pauses left out."""
        return self._clock.time() - self._started_at

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, None without a limit."""
        if self._budget.seconds <= 0:
            return None
        return max(0.0, self._budget.seconds - self.seconds)

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, self._budget.calls - self.calls)

    def pause(self) -> AbstractContextManager[None]:
        """Count no time while the user decides, here and in the run above a task."""
        return self._clock.pause(self._parent.pause if self._parent else nullcontext)

    def limit_of_round(self) -> SpentLimit | None:
        """Return the limit that keeps the last round from calling tools, if any."""
        if self.rounds > self._budget.rounds:
            return "rounds"
        return self._spent_limit()

    def limit_of_calls(self) -> SpentLimit | None:
        """Return the limit that refuses the calls of the last round, if any."""
        max_rounds = self._budget.rounds
        is_last_of_many = self.rounds == max_rounds and max_rounds > 1
        if is_last_of_many or self.rounds > max_rounds:
            return "rounds"
        return self._spent_limit()

    def _spent_limit(self) -> SpentLimit | None:
        """Return which of time and tokens is used up, here or in the run above a task."""
        if self._parent:
            limit = self._parent._spent_limit()
            if limit:
                return limit
        if self.seconds_left == 0:
            return "seconds"
        max_tokens = self._budget.tokens
        if max_tokens > 0 and self.total_usage.total >= max_tokens:
            return "tokens"
        return None

    def stop(self, ended: RunDone) -> None:
        """End the run, the run above it and all tasks once their running calls end."""
        if self._parent:
            self._parent.stop(ended)
        else:
            self._stop = ended

    @property
    def stopped(self) -> RunDone | None:
        """The end of a run of this answer that was stopped; then none continues."""
        return self._parent.stopped if self._parent else self._stop
