"""Callables run by name: checked, bounded, each with an output whatever happens.

The model gets a sentence of ours for every failure; what an exception says goes to
the log alone, because it may quote what the model must not see.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from openai_responses.approvals import Approver
from openai_responses.arguments import argument_complaint, without_nulls
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
class _Ready:
    """A call that may run: of which tool, with which arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How many calls run at once, for how many seconds, with how long an output."""

    at_once: int = 8
    seconds: float = 120.0
    batch_seconds: float = 600.0
    characters: int = 100_000


@dataclass(frozen=True, slots=True)
class Toolset:
    """What a run needs to answer calls itself.

    `log` takes lines that say why a tool failed. `rounds` is how often the model may
    call, `most_calls` how many calls it may make in all; `carries_reasoning` says
    whether it gets its reasoning back between them.
    """

    tools: CallableTools
    approver: Approver = field(default_factory=Approver)
    limits: CallLimits = field(default_factory=CallLimits)
    log: Callable[[str], object] = field(default=str)
    rounds: int = 10
    most_calls: int = 100
    carries_reasoning: bool = True


async def run_calls(
    calls: Sequence[Item], toolset: Toolset
) -> AsyncGenerator[tuple[Item, ToolAnswer], None]:
    """Run `calls` side by side; yield each with its answer, in their own order.

    The order is kept because a host that stores the answers as they come would send
    them in another one next time. Every call is answered exactly once. Closing the
    generator cancels what runs.
    """
    slots = asyncio.Semaphore(toolset.limits.at_once)
    checked = [await _checked(call, toolset) for call in calls]
    tasks = [asyncio.create_task(_answer(found, toolset, slots)) for found in checked]
    limited = [
        task
        for found, task in zip(checked, tasks, strict=True)
        if not _is_peoples(found, toolset)
    ]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + toolset.limits.batch_seconds
    try:
        for call, task in zip(calls, tasks, strict=True):
            left = deadline - loop.time() if task in limited else None
            await asyncio.wait([task], timeout=left)
            if not task.done():
                _cancel(limited)  # together: none may begin in the place of another
            yield call, _result(task, call, toolset)
    finally:
        _cancel(tasks)


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


async def _checked(call: Item, toolset: Toolset) -> _Ready | ToolAnswer:
    """Return a call that may run, or the answer that it gets instead."""
    name, tools = _name(call), toolset.tools
    found = _ready_call(name, _arguments(call), tools)
    if isinstance(found, _Ready):
        meant = tools.meant(name, found.arguments)
        if meant is None:
            return failed_answer(f"{name} was not called: it names no tool to call.")
        found = _ready_call(*meant, tools)
    if isinstance(found, ToolAnswer):
        return found
    refusal = await toolset.approver.refusal(
        str(call["call_id"]), found.name, found.arguments
    )
    return found if refusal is None else failed_answer(refusal)


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> _Ready | ToolAnswer:
    """Return a call whose arguments are as its tool wants them."""
    schema = tools.parameters(name)
    if schema is None:
        return failed_answer(f"There is no tool named {name}. Use one that is offered.")
    complaint = argument_complaint(arguments, schema)
    if complaint is not None or not isinstance(arguments, dict):
        return failed_answer(f"{name} was not called: {complaint}")
    return _Ready(name, without_nulls(arguments, schema))


def _arguments(call: Item) -> object:
    """Return what the model gave: an object, or the text of a custom call."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = call.get("arguments")
    try:
        return json.loads(text) if isinstance(text, str) and text.strip() else {}
    except (ValueError, RecursionError):
        return None


async def _answer(
    found: _Ready | ToolAnswer, toolset: Toolset, slots: asyncio.Semaphore
) -> ToolAnswer:
    """Run one call within its limits, unless it has been answered already."""
    if isinstance(found, ToolAnswer):
        return found
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


def output_of(call: Item, answer: ToolAnswer) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def failed_answer(sentence: str) -> ToolAnswer:
    """Return the answer of a call that did not succeed, in words for the model."""
    return ToolAnswer(f"Error: {sentence}", failed=True)


def _name(call: Item) -> str:
    return str(call.get("name") or "")


def _is_peoples(found: _Ready | ToolAnswer, toolset: Toolset) -> bool:
    return isinstance(found, _Ready) and toolset.tools.waits_for_people(found.name)
