"""What a run has used: tokens, seconds, rounds and calls, and the log of its steps."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import count
from typing import Any, Self

from gpt5_agent.events import AgentEvent, StepEnded, StepKind, StepStarted
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import MISALIGNMENT
from openai_responses.loop.events import RunDone
from openai_responses.models.usage import Usage, add_usage
from strategies.parameters import StrategyParameters

_ITERATION_LIMIT_TEXT = (
    "Maximum iteration limit ({limit}) reached. Cannot call tool '{tool}'. "
    "Please consider increasing the iteration limit."
)


class RunTotals:
    """The sums of a run; earlier rounds of the same answer are added."""

    def __init__(
        self, parameters: StrategyParameters, parent: Self | None = None
    ) -> None:
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
        self._parameters = parameters
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
        if self._earlier_usage is None:
            return self.usages
        return self.usages[1:]  # the first are the earlier rounds together

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, None without a limit."""
        limit = self._parameters.maximum_seconds
        if limit <= 0:
            return None
        return max(0.0, limit - self.seconds)

    def add_earlier(
        self, rounds: int, calls: int, usage: Usage | None, seconds: float
    ) -> None:
        """Add the sums of earlier rounds."""
        self.rounds = rounds
        self.calls = calls
        self._earlier_usage = usage
        self._started_at -= seconds
        if usage is not None:
            self.usages.append(usage)

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
        return number <= self._parameters.rounds and not self._exhausted_limit()

    def limit_error(self, number: int) -> str:
        """Return why the calls of a round are refused, or nothing.

        The calls of the last round are refused unless it is the only one. `{tool}`
        stands for the tool's name.
        """
        rounds = self._parameters.rounds
        is_last_of_many = number == rounds and rounds > 1
        if number > rounds or is_last_of_many:
            return _ITERATION_LIMIT_TEXT.replace("{limit}", str(rounds))
        exhausted = self._exhausted_limit()
        if not exhausted:
            return ""
        return f"{exhausted} Cannot call tool '{{tool}}'."

    def _exhausted_limit(self) -> str:
        """Return which limit is reached, that of the parent first; empty for none."""
        if self._parent:
            exhausted = self._parent._exhausted_limit()
            if exhausted:
                return exhausted
        if self.seconds_left == 0:
            return f"Time limit ({self._parameters.maximum_seconds:g} s) reached."
        max_tokens = self._parameters.maximum_tokens
        if max_tokens > 0 and self.total_usage.total >= max_tokens:
            return f"Token limit ({max_tokens}) reached."
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
        self._round = ""
        """The id of the round that began last."""
        self._outer = ""
        """Of a task, the round that began it."""
        self._prefix = ""
        self._tasks = count(1)
        self._progress: asyncio.Queue[StepStarted | StepEnded] = asyncio.Queue()

    def begin_task(self) -> Self:
        """Return a log for a task, whose steps are those of the round at this moment."""
        log = copy(self)
        log._outer = self._round
        log._prefix = f"TASK {next(self._tasks)} > "
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
        label = f"{self._prefix}{label}"
        parent = parent or self._outer
        step_id = f"{parent}/{len(self._started) + 1}" if parent else label
        if kind == "round":
            self._round = step_id
        step = StepStarted(
            id=step_id,
            parent=parent,
            kind=kind,
            label=label,
            may_call=may_call,
            detail=detail if self._debug else "",
        )
        self._started[step_id] = (step, monotonic_seconds())
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
        _, started_at = self._started[step.id]
        ended = StepEnded(
            step=step,
            seconds=monotonic_seconds() - started_at,
            usage=usage,
            failed=failed,
            detail=detail if self._debug else "",
        )
        line = format_step(ended)
        if step.parent in self._started:
            parent, _ = self._started[step.parent]
            line = f"{parent.label} > {line}"
        if step.detail:
            line = f"{line} {step.detail}"
        self._log(line)
        return ended


def format_step(ended: StepEnded) -> str:
    """Return a step as one line: label, duration, tokens."""
    notes = [f"{ended.seconds:.1f} s"]
    if ended.usage:
        notes.append(f"{ended.usage.total:,} tokens")
    if ended.failed:
        notes.append("failed")
    return f"{ended.step.label}: {', '.join(notes)}"
