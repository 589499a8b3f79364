"""The log of the steps of a run: rounds, answers of the model, calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from copy import copy
from itertools import count
from typing import Any, Self

from gpt5_agent.events import AgentEvent, StepEnded, StepKind, StepStarted
from openai_responses.clock import monotonic_seconds
from openai_responses.loop.events import RunEvent
from openai_responses.loop.run import RoundDone, RoundEvent, RoundEvents, RoundStarted
from openai_responses.models.usage import Usage
from owui_chat.wording import plural


class StepLog:
    """Makes the events of the step log; writes a line for each end.

    With `debug` the events contain arguments and outputs.
    """

    def __init__(self, log: Callable[[str], object], *, debug: bool) -> None:
        self._log = log
        self._debug = debug
        self._started: dict[str, tuple[StepStarted, float]] = {}
        self._round = ""
        """The id of the round that began last."""
        self._outer = ""
        """Of a task, the round that began it."""
        self._task = 0
        self._tasks = count(1)
        self._progress: asyncio.Queue[StepStarted | StepEnded] = asyncio.Queue()

    def begin_task(self) -> Self:
        """Return a log for a task that the round of this moment began.

        Both logs share the steps that have started, and the numbers of tasks.
        """
        log = copy(self)
        log._outer = self._round
        log._task = next(self._tasks)
        log._progress = asyncio.Queue()  # a task takes no steps of others
        return log

    def report(self, event: AgentEvent) -> None:
        """Take an event of a task; its steps are shown."""
        if isinstance(event, StepStarted | StepEnded):
            self._progress.put_nowait(event)

    async def follow(
        self, events: RoundEvents
    ) -> AsyncGenerator[RunEvent | RoundEvent | StepStarted | StepEnded, None]:
        """Yield the events of a run, and the steps of its tasks as they are reported."""
        makes_calls = False  # tasks run between the end of a response and the next
        async with aclosing(events):
            while True:
                if makes_calls:
                    work = asyncio.ensure_future(anext(events, None))
                    async with aclosing(self._wait_for(work)) as steps:
                        async for step in steps:
                            yield step
                    event = work.result()
                else:
                    event = await anext(events, None)
                if event is None:
                    return
                if isinstance(event, RoundStarted | RoundDone):
                    makes_calls = isinstance(event, RoundDone)
                yield event

    async def _wait_for(
        self, work: asyncio.Future[Any]
    ) -> AsyncGenerator[StepStarted | StepEnded, None]:
        """Yield the steps of tasks until `work` is done."""
        step = asyncio.ensure_future(self._progress.get())
        try:
            while not work.done() or step.done() or not self._progress.empty():
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
        name: str,
        *,
        parent: str = "",
        may_call: bool = False,
        detail: str = "",
    ) -> StepStarted:
        """Return the event of a step that begins."""
        parent = parent or self._outer
        step = StepStarted(
            id="",
            parent=parent,
            kind=kind,
            name=name,
            task=self._task,
            may_call=may_call,
            detail=detail if self._debug else "",
        )
        step_id = f"{parent}/{len(self._started) + 1}" if parent else step.label
        step = step._replace(id=step_id)
        if kind == "round":
            self._round = step_id
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
        notes.append(plural(ended.usage.total, "token"))
    if ended.failed:
        notes.append("failed")
    return f"{ended.step.label}: {', '.join(notes)}"


def describe_step(ended: StepEnded) -> str:
    """Return a step as a line for the user of the page.

    The label is for logs and programs, as is the line of `format_step`.
    """
    step = ended.step
    seconds = f"{ended.seconds:.0f} s" if ended.seconds >= 1 else "under a second"
    match step.kind:
        case "round":
            line = f"Step {step.name} took {seconds}"
        case "model":
            verb = "failed in" if ended.failed else "answered in"
            line = f"{step.name} {verb} {seconds}"
        case "tool":
            verb = "failed in" if ended.failed else "ended in"
            line = f"{step.name} {verb} {seconds}"
    if ended.usage:
        line = f"{line} · {plural(ended.usage.total, 'token')}"
    return f"Task {step.task}: {line}" if step.task else line
