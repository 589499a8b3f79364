"""Callables run by name: checked, bounded, each with an output whatever happens.

The model gets a sentence of ours for every failure; what an exception says goes to
the log alone, because it may quote what the model must not see.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from openai_responses.arguments import argument_complaint, without_nulls
from openai_responses.items import Item, item_type
from openai_responses.toolset import (
    CallableTools,
    ToolAnswer,
    Toolset,
    failed_answer,
)


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may run: of which tool, with which arguments."""

    call_id: str
    name: str
    arguments: dict[str, Any]


async def run_calls(
    calls: Sequence[Item], toolset: Toolset
) -> AsyncGenerator[tuple[Item, ToolAnswer], None]:
    """Run `calls` side by side; yield each with its answer, in their own order.

    The order is kept because a host that stores the answers as they come would send
    them in another one next time. Every call is answered exactly once. Closing the
    generator cancels what runs.
    """
    found = [_checked(call, toolset.tools) for call in calls]
    clock = _Clock(toolset.limits.batch_seconds)
    slots = asyncio.Semaphore(toolset.limits.at_once)
    tasks = [asyncio.create_task(_answer(one, toolset, slots, clock)) for one in found]
    limited = [
        task
        for one, task in zip(found, tasks, strict=True)
        if not _is_peoples(one, toolset)
    ]
    try:
        for call, task in zip(calls, tasks, strict=True):
            await (clock.wait(task) if task in limited else asyncio.wait([task]))
            if not task.done():
                _cancel(limited)  # together: none may begin in the place of another
            yield call, _result(task, call, toolset)
    finally:
        _cancel(tasks)


class _Clock:
    """The time that a batch has left; it stands still while a person is asked."""

    def __init__(self, seconds: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + seconds
        self._asking = asyncio.Lock()

    @asynccontextmanager
    async def question(self) -> AsyncGenerator[None, None]:
        """Stand still for a question to a person; one is asked after another."""
        async with self._asking:
            began = self._loop.time()
            try:
                yield
            finally:
                self._end += self._loop.time() - began

    async def wait(self, task: asyncio.Task[ToolAnswer]) -> None:
        """Wait until a task is done or the time is used up."""
        while not task.done():
            left = self._end - self._loop.time()
            if left > 0:
                await asyncio.wait([task], timeout=left)
            elif self._asking.locked():
                async with self._asking:  # what the question took comes back
                    continue
            else:
                return


def _cancel(tasks: Iterable[asyncio.Task[ToolAnswer]]) -> None:
    for task in tasks:
        task.cancel()


def _result(task: asyncio.Task[ToolAnswer], call: Item, toolset: Toolset) -> ToolAnswer:
    """Return the answer of a task, or what stands for it after the deadline."""
    if task.done() and not task.cancelled():
        return task.result()
    seconds = toolset.limits.batch_seconds
    return failed_answer(
        f"{_name(call)} was stopped: the tools took over {seconds:g} s."
    )


def _checked(call: Item, tools: CallableTools) -> _Ready | ToolAnswer:
    """Return a call that may run, or the answer that it gets instead."""
    name, call_id = _name(call), str(call["call_id"])
    try:
        arguments = _arguments(call)
    except (ValueError, RecursionError):
        told = "its arguments are not valid JSON. Send them again, whole."
        return failed_answer(f"{name} was not called: {told}")
    found = _ready_call(call_id, name, arguments, tools)
    if isinstance(found, ToolAnswer):
        return found
    meant = tools.meant(name, found.arguments)
    if meant is None:
        return failed_answer(f"{name} was not called: it names no tool to call.")
    return _ready_call(call_id, *meant, tools)


def _ready_call(
    call_id: str, name: str, arguments: object, tools: CallableTools
) -> _Ready | ToolAnswer:
    """Return a call whose arguments are as its tool wants them."""
    schema = tools.parameters(name)
    if schema is None:
        return failed_answer(f"There is no tool named {name}. Use one that is offered.")
    complaint = argument_complaint(arguments, schema)
    if complaint is not None or not isinstance(arguments, dict):
        return failed_answer(f"{name} was not called: {complaint}")
    return _Ready(call_id, name, without_nulls(arguments, schema))


def _arguments(call: Item) -> object:
    """Return what the model gave: what its JSON says, or the text of a custom call."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = call.get("arguments")
    return json.loads(text) if isinstance(text, str) and text.strip() else {}


async def _answer(
    found: _Ready | ToolAnswer,
    toolset: Toolset,
    slots: asyncio.Semaphore,
    clock: _Clock,
) -> ToolAnswer:
    """Run one call once it may, within its limits, unless it is answered already."""
    if isinstance(found, ToolAnswer):
        return found
    approver = toolset.approver
    asks = approver.rule_for(found.name) == "ask"
    async with clock.question() if asks else nullcontext():
        refusal = await approver.refusal(found.call_id, found.name, found.arguments)
    if refusal is not None:
        return failed_answer(refusal)
    if _is_peoples(found, toolset):
        return await _called(found, toolset, None)
    async with slots:
        return await _called(found, toolset, toolset.limits.seconds)


async def _called(ready: _Ready, toolset: Toolset, seconds: float | None) -> ToolAnswer:
    name = ready.name
    try:
        async with asyncio.timeout(seconds) as scope:
            answer = await toolset.tools.call(name, ready.arguments)
        return _capped(answer, toolset.limits.characters)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return failed_answer(f"{name} did not finish within {seconds:g} s.")
        # A tool that ends its process, or cancels itself, must not end the run.
        toolset.log(f"the tool {name} raised {type(error).__name__}: {error}")
        return failed_answer(f"{name} failed. Tell the user, or try another way.")


def _capped(answer: ToolAnswer, characters: int) -> ToolAnswer:
    """Return an answer with a long text cut in the middle."""
    output = answer.output
    if isinstance(output, str):
        return ToolAnswer(capped_text(output, characters), answer.failed, answer.card)
    parts = [
        (
            {**part, "text": capped_text(part["text"], characters)}
            if isinstance(part.get("text"), str)
            else part
        )
        for part in output
    ]
    return ToolAnswer(parts, answer.failed, answer.card)


def capped_text(text: str, characters: int) -> str:
    """Return `text` with head and tail, and a note of what was cut between them."""
    if len(text) <= characters:
        return text
    half = characters // 2
    note = f"\n[... {len(text) - 2 * half} characters are cut here ...]\n"
    return text[:half] + note + text[len(text) - half :]


def _name(call: Item) -> str:
    return str(call.get("name") or "")


def _is_peoples(found: _Ready | ToolAnswer, toolset: Toolset) -> bool:
    return isinstance(found, _Ready) and toolset.tools.waits_for_people(found.name)
