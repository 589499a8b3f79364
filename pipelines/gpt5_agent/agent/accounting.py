"""What a run has used: tokens, seconds, rounds and calls, and the log of its steps."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import Any, Self

from gpt5_agent.events import AgentEvent, StepEnded, StepKind, StepStarted
from gpt5_agent.request import AgentLimits
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import MISALIGNMENT
from openai_responses.loop.events import RunDone
from openai_responses.models.usage import Usage, add_usage

_ITERATION_LIMIT_TEXT = (
    "Maximum iteration limit ({limit}) reached. Cannot call tool '{tool}'. "
    "Please consider increasing the iteration limit."
)


class RunTotals:
    """The sums of a run; earlier rounds of the same answer are added."""

    def __init__(self, budget: AgentLimits, parent: Self | None = None) -> None:
        """Start the clock; tokens of a task count for its `parent`, too."""
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        self.last_usage: Usage | None = None
        self.usages: list[Usage] = []
        self.delegated_usage: Usage | None = None
        """Of tasks, since it was last taken."""
        self.stop: RunDone | None = None
        """The end of a task that OpenAI's safety monitoring stopped."""
        self._parent = parent
        self._earlier_usage: Usage | None = None
        self._budget = budget
        self._now = asyncio.get_running_loop().time
        self._started_at = self._now()

    @property
    def seconds(self) -> float:
        """The time so far, earlier rounds included."""
        return self._now() - self._started_at

    @property
    def total_usage(self) -> Usage:
        """The tokens of all rounds, earlier ones included."""
        return add_usage(self._earlier_usage, self.usage) or Usage()

    @property
    def own_usages(self) -> list[Usage]:
        """Those of the responses of this call, without earlier rounds."""
        return self.usages[self._earlier_usage is not None :]

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, None without a limit."""
        most = self._budget.seconds
        return max(0.0, most - self.seconds) if most > 0 else None

    def add_earlier(
        self, rounds: int, calls: int, usage: Usage | None, seconds: float
    ) -> None:
        """Add the sums of earlier rounds."""
        self.rounds, self.calls, self._earlier_usage = rounds, calls, usage
        self._started_at -= seconds
        self.usages += [usage] if usage else []

    def add_turn(self, ended: RunDone) -> None:
        """Add the usage of one answer of the model."""
        self.usage = add_usage(self.usage, ended.usage)
        self.last_usage = ended.usage
        self.usages += ended.usages
        if self._parent:
            self._parent.add_delegated(ended)
            if ended.ending.code == MISALIGNMENT:
                self._parent.stop = ended

    def add_delegated(self, ended: RunDone) -> None:
        """Add the usage of one answer of a task."""
        self.usage = add_usage(self.usage, ended.usage)
        self.delegated_usage = add_usage(self.delegated_usage, ended.usage)
        self.usages += ended.usages

    @property
    def safety_stop(self) -> RunDone | None:
        """How a task of this answer was stopped: nothing of the answer may go on."""
        return self._parent.safety_stop if self._parent else self.stop

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Count no time while a person decides."""
        began = self._now()
        try:
            yield
        finally:
            self._started_at += self._now() - began

    def may_call(self, number: int) -> bool:
        """Say whether the model may call tools in that round."""
        return number <= self._budget.rounds and not self._exhausted_limit()

    def limit_error(self, number: int) -> str:
        """Return why the calls of a round are refused, or nothing.

        The calls of the last round are refused unless it is the only one. `{tool}`
        stands for the tool's name.
        """
        most = self._budget.rounds
        if number > most or number == most > 1:
            return _ITERATION_LIMIT_TEXT.replace("{limit}", str(most))
        used_up = self._exhausted_limit()
        return used_up and f"{used_up} Cannot call tool '{{tool}}'."

    def _exhausted_limit(self) -> str:
        if used_up := self._parent and self._parent._exhausted_limit():
            return used_up
        _, seconds, tokens = self._budget
        if self.seconds_left == 0:
            return f"Time limit ({seconds:g} s) reached."
        if 0 < tokens <= self.total_usage.total:
            return f"Token limit ({tokens}) reached."
        return ""


class StepLog:
    """Makes the events of the step log; writes a line for each end.

    With `debug` the events contain arguments and outputs.
    """

    def __init__(self, log: Callable[[str], object], *, debug: bool) -> None:
        """Start without steps."""
        self._log = log
        self._debug = debug
        self._started: dict[str, tuple[StepStarted, float]] = {}
        self._round, self._outer, self._prefix = "", "", ""
        self._tasks = count(1)
        self._progress: asyncio.Queue[StepStarted | StepEnded] = asyncio.Queue()

    def begin_task(self) -> Self:
        """Return a log for a task, whose steps are those of the round at this moment."""
        log = copy(self)
        log._outer, log._prefix = self._round, f"TASK {next(self._tasks)} > "
        log._progress = asyncio.Queue()  # a task takes no steps of others
        return log

    def report(self, event: AgentEvent) -> None:
        """Take an event of a task; its steps are shown."""
        if isinstance(event, StepStarted | StepEnded):
            self._progress.put_nowait(event)

    async def follow(
        self, work: asyncio.Future[Any]
    ) -> AsyncGenerator[StepStarted | StepEnded, None]:
        """Yield the steps of tasks until `work` is done."""
        step = asyncio.ensure_future(self._progress.get())
        try:
            while not (work.done() and self._progress.empty() and not step.done()):
                await asyncio.wait((work, step), return_when=asyncio.FIRST_COMPLETED)
                if step.done():
                    yield step.result()
                    step = asyncio.ensure_future(self._progress.get())
        finally:
            step.cancel()
            if work.cancel():
                await asyncio.wait((work,))

    def start(
        self,
        kind: StepKind,
        label: str,
        *,
        parent: str = "",
        may_call: bool = False,
        detail: str = "",
    ) -> StepStarted:
        """Return the event of a step that begins."""
        label, parent = f"{self._prefix}{label}", parent or self._outer
        name = f"{parent}/{len(self._started) + 1}" if parent else label
        self._round = name if kind == "round" else self._round
        detail = detail if self._debug else ""
        step = StepStarted(name, parent, kind, label, may_call, detail)
        self._started[name] = (step, monotonic_seconds())
        return step

    def end(
        self,
        step: StepStarted,
        *,
        usage: Usage | None = None,
        failed: bool = False,
        detail: str = "",
    ) -> StepEnded:
        """Return the event of a step that ended."""
        seconds = monotonic_seconds() - self._started[step.id][1]
        ended = StepEnded(step, seconds, usage, failed, detail if self._debug else "")
        parent = self._started.get(step.parent)
        prefix = f"{parent[0].label} > " if parent else ""
        self._log(f"{prefix}{format_step(ended)}{step.detail and f' {step.detail}'}")
        return ended


def format_step(ended: StepEnded) -> str:
    """Return a step as one line: label, duration, tokens."""
    notes = [f"{ended.seconds:.1f} s"]
    notes += [f"{ended.usage.total:,} tokens"] if ended.usage else []
    notes += ["failed"] if ended.failed else []
    return f"{ended.step.label}: {', '.join(notes)}"
