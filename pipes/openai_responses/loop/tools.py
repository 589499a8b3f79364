"""Calls of tools: who may run them, how they run, and what they return.

The first approval rule that matches a tool's name applies. A rule that matches only
another name of the tool applies as well if it is stricter, and so does each rule that
may match a name of which only a part is known. A call that needs an approval and does
not get one is denied.

Every call gets an output. For each failure the model gets one of our messages. That of
an exception quotes it, so that the model can correct its call: without secrets, and cut.
The log has more of it.
"""

import asyncio
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AbstractContextManager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from openai_responses.callbacks import ignore_report
from openai_responses.items import CALL_OUTPUTS, Item, item_type, json_text
from openai_responses.json_input import JsonObject, load_json
from openai_responses.loop.arguments import check_arguments
from openai_responses.loop.events import SpentLimit
from openai_responses.loop.spending import PausableClock, Pause
from openai_responses.redaction import describe_exception, redact, redact_beginning
from openai_responses.transport.stream import NO_CARD

Approval = Literal["auto", "ask", "deny"]
ApprovalRules = Sequence[tuple[str, Approval]]
STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")
"""Whichever comes later wins."""

_Value = TypeVar("_Value")


class AskedCall(NamedTuple):
    """A call that may need an approval, as the user is shown it."""

    call_id: str
    name: str
    arguments: JsonObject
    via: str = ""
    """Another name of the tool, whose rules apply as well: the one as it was called, or
    the one at a remote server."""
    default_rule: Approval | None = None
    """What holds if no rule is about it; None: what holds for all calls."""


Ask = Callable[[Sequence[AskedCall]], Awaitable[Sequence[bool]]]
"""Shows the user calls, all at once; returns for each whether it is approved."""


@dataclass(frozen=True, slots=True)
class Approver:
    """The rules of a request, and the way to ask the user if they do not decide."""

    rules: ApprovalRules = ()
    default_rule: Approval = "auto"
    ask: Ask | None = None
    log: Callable[[str], object] = ignore_report
    other_names: Callable[[str], Iterable[str]] = lambda _name: ()
    """The other names of a tool."""
    may_match: Callable[[str, str], bool] = lambda _name, _pattern: False
    """Whether a pattern may match a name of a tool that is not known in full."""
    remote_default: Callable[[JsonObject], Approval] = lambda _request: "ask"
    """What holds for a call of a remote server that no rule is about; it is described
    by the `mcp_approval_request`."""

    def rule_for(
        self, name: str, via: str = "", default_rule: Approval | None = None
    ) -> Approval:
        """Return the strictest rule of a tool and of `via`, which passes the call on.

        Of the rules that match `name` only the first counts, so that a rule for one
        tool can allow what a later one for many denies.
        """
        strictest = _first_match(self.rules, name) or default_rule or self.default_rule
        unmatched = [rule for rule in self.rules if not _is_about(rule, name)]
        for other_name in (via, *self.other_names(name)):
            other_rule = _first_match(unmatched, other_name) or "auto"
            strictest = max(strictest, other_rule, key=STRICTNESS.index)
        for pattern, possible_rule in unmatched:
            if self.may_match(name, pattern):
                strictest = max(strictest, possible_rule, key=STRICTNESS.index)
        return strictest

    async def refusal(
        self, call_id: str, name: str, arguments: JsonObject, via: str = ""
    ) -> str | None:
        """Return the message for the model if a call is denied, else None."""
        [refusal] = await self.refusals([AskedCall(call_id, name, arguments, via)])
        return refusal

    async def refusals(self, calls: Sequence[AskedCall]) -> list[str | None]:
        """Return for each call the message for the model if it is denied, else None.

        The user is asked once, about all calls that need it.
        """
        rules = [
            self.rule_for(call.name, call.via, call.default_rule) for call in calls
        ]
        asked = [call for call, rule in zip(calls, rules, strict=True) if rule == "ask"]
        answers: Iterator[bool] = iter(())
        is_answered = False
        if asked and self.ask is not None:
            try:
                answers = iter(await self.ask(asked))
                is_answered = True
            except Exception as error:  # the dialog failed, which is no approval
                names = ", ".join(call.name for call in asked)
                why = describe_exception(error)
                if isinstance(error, TimeoutError):  # somebody left the page open
                    why = "no answer came"
                self.log(f"nobody could be asked about {names}: {why}")
        refusals: list[str | None] = []
        for call, rule in zip(calls, rules, strict=True):
            name = call.name
            if rule == "deny":
                why = f"The administrator does not allow {name}. Do not call it again."
                refusals.append(why)
            elif rule == "ask" and not next(answers, False):
                refusals.append(_not_approved(name, is_answered=is_answered))
            else:
                refusals.append(None)
        return refusals


def _not_approved(name: str, *, is_answered: bool = True) -> str:
    who = "The user did not" if is_answered else "Nobody was there to"
    return f"{who} approve this call of {name}. Continue without it."


def _first_match(rows: Iterable[tuple[str, _Value]], name: str) -> _Value | None:
    for row in rows:
        if _is_about(row, name):
            return row[1]
    return None


def _is_about(row: tuple[str, object], name: str) -> bool:
    """Say whether a row is about a name; one with `auto` has to spell it as it is."""
    pattern, value = row
    # As it is for all: in lower case, `[!A-Z]*` would be about fewer names.
    if fnmatchcase(name, pattern):
        return True
    return value != "auto" and fnmatchcase(name.lower(), pattern.lower())


class ToolResult(NamedTuple):
    """The result of a tool: an `output` for the model, and a `card`.

    A card holds what the host shows with it (`files`, `embeds`).
    """

    output: str | list[Item]
    failed: bool = False
    card: JsonObject = NO_CARD


CallKind = Literal["limited", "question", "task"]
"""What limits a call: the limits of the toolset, nothing, or limits of its own.

A `question` waits for the user, and its time does not count for the run. A `task` makes
calls itself.
"""

_pause_of_call = ContextVar[Pause]("pause_of_call", default=nullcontext)


def pause_of_call() -> Pause:
    """Return what stops all clocks of the call that runs, for a tool that asks the user.

    The tool's own task has it, and the tasks that it starts.
    """
    return _pause_of_call.get()


class CallableTools(Protocol):
    """The tools of a request, by their own names or by those sent to the API."""

    def parameters(self, name: str) -> JsonObject | None:
        """Return the schema of a tool's arguments, or None for an unknown tool."""

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of the tool that a call will run, and its arguments.

        A tool that passes calls on names another tool in its arguments. Returns None if
        it names none.
        """

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; an exception counts as a failure of the tool."""


class CallLimits(NamedTuple):
    """Limits of calls: how many at once, how many seconds, how much output."""

    at_once: int = 8
    seconds: float = 120.0
    """Of one call."""
    batch_seconds: float = 600.0
    """Of all calls of a response together."""
    characters: int = 100_000
    """Of each text of an output."""
    own: Sequence[tuple[str, float]] = ()
    """Seconds by patterns of names; the first match replaces both limits above."""

    def own_seconds(self, name: str) -> float | None:
        """Return the limit that a tool has of its own, if any."""
        return _first_match(self.own, name)


class CallTexts(NamedTuple):
    """What the model reads of a call that failed or was not made; `{tool}` is its name.

    `failed` is about an exception, which is the `{cause}`, the others about the limits
    of a budget.
    """

    failed: str = "Error: {tool} failed: {cause}"
    rounds: str = (
        "Error: {tool} was not run: the limit of tool rounds is reached. Answer "
        "without it."
    )
    calls: str = (
        "Error: {tool} was not run: the limit of tool calls is reached. Answer "
        "without it."
    )
    seconds: str = (
        "Error: {tool} was not run: the time limit is reached. Answer without it."
    )
    tokens: str = (
        "Error: {tool} was not run: the limit of tokens is reached. Answer without it."
    )

    def describe(self, name: str, limit: SpentLimit) -> str:
        """Return that a limit keeps a tool from being called."""
        text: str = getattr(self, limit)
        return text.replace("{tool}", name)

    def describe_failure(self, name: str, cause: str) -> str:
        """Return that a tool raised an exception."""
        return self.failed.replace("{tool}", name).replace("{cause}", cause)

    def refuse(self, call: Item, limit: SpentLimit) -> ToolResult:
        """Return the result of a call that a limit keeps from being made."""
        return ToolResult(self.describe(_called_name(call), limit), failed=True)


class Verdict(NamedTuple):
    """What happens to a call: it is refused, left to the host, or made here."""

    call: Item
    refusal: ToolResult | None = None
    is_left: bool = False

    @property
    def is_made(self) -> bool:
        """Whether the call runs here."""
        return self.refusal is None and not self.is_left


class Judgment(NamedTuple):
    """What happens to the calls of a response, in their order.

    A `question` is a call that the host shows to the user. With it no call is made yet,
    and none is shown: the run ends, and another one continues with the user's answer.
    """

    verdicts: Sequence[Verdict] = ()
    question: Item | None = None

    @property
    def is_open(self) -> bool:
        """Whether the host has to continue: it makes a call, or asks the user."""
        return self.question is not None or any(
            verdict.is_left for verdict in self.verdicts
        )


class CallJudge(Protocol):
    """Decides about the calls of a response before any of them is made."""

    @property
    def holds_calls(self) -> bool:
        """Whether calls are shown only after the judgment.

        A host that runs every call it sees must not see one before it is approved.
        """

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Return what happens to each of the calls, which the budget allows."""


class Toolset(NamedTuple):
    """What a run needs to answer calls and approval requests itself."""

    tools: CallableTools
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    log: Callable[[str], object] = ignore_report
    """Takes lines about failed tools."""
    redacted: Callable[[str], str] = redact
    """Returns a text for the model without what only the server may know."""
    carries_reasoning: bool = True
    """Whether the model gets its reasoning again between its calls."""
    runs_calls: bool = True
    """Whether calls run here; if not, all are left to the host."""
    texts: CallTexts = CallTexts()
    judge: CallJudge | None = None
    """Without one every call is made that the approver allows."""


def output_item(call: Item, result: ToolResult) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": result.output}


def tool_error(message: str) -> ToolResult:
    """Return the result of a failed call, as a message for the model."""
    return ToolResult(f"Error: {message}", failed=True)


class ReadyCall(NamedTuple):
    """A call that may run: its tool, and its checked arguments."""

    name: str
    arguments: dict[str, Any]
    kind: CallKind
    via: str = ""
    """The name as it was called, whose rules apply as well."""


class _StartedCall(NamedTuple):
    """A call whose task runs, or waits for its turn."""

    item: Item
    task: asyncio.Task[ToolResult]
    has_own_time: bool
    """Whether the time of the batch does not count for it."""


async def run_calls(
    calls: Sequence[Item], toolset: Toolset, pause: Pause = nullcontext
) -> AsyncGenerator[tuple[Item, ToolResult], None]:
    """Run `calls` in parallel; yield each with its result, in the order of the calls.

    The order is kept because a host that stores results as they arrive would send them
    in another order in the next request. A check may take some milliseconds, so others
    run between two. When the time is over, all calls are cancelled at once, and no
    waiting one starts. Closing the generator cancels running calls.
    """
    batch = _Batch(toolset, pause)
    started: list[_StartedCall] = []
    try:
        for item in calls:
            started.append(batch.start(item))
            await asyncio.sleep(0)
        batch.ask_user()
        for call in started:
            await batch.wait(call)
            if not call.task.done():
                _cancel(other for other in started if not other.has_own_time)
            if call.task.done() and not call.task.cancelled():
                result = call.task.result()
            else:
                seconds = f"{toolset.limits.batch_seconds:g} s."
                why = f"was stopped: the tools took over {seconds}"
                result = tool_error(f"{_called_name(call.item)} {why}")
            yield call.item, result
    finally:
        batch.close()
        _cancel(started)


def _cancel(calls: Iterable[_StartedCall]) -> None:
    for call in calls:
        call.task.cancel()


class _Batch:
    """The calls of a round.

    The user is asked once about all that need it, while the others run; a tool may ask
    something, too. Meanwhile the time of the batch stops.
    """

    def __init__(self, toolset: Toolset, pause: Pause) -> None:
        self._toolset = toolset
        self._pause = pause
        self._slots = asyncio.Semaphore(toolset.limits.at_once)
        self._asked: list[AskedCall] = []
        self._refusals: dict[str, str | None] = {}
        """Why calls are denied that the user was asked about, by their ids."""
        self._question: asyncio.Task[None] | None = None
        self._is_answered = asyncio.Event()
        self._clock = PausableClock()
        self._end = self._clock.time() + toolset.limits.batch_seconds

    def start(self, item: Item) -> _StartedCall:
        """Check a call and start its task, which waits if the user has to be asked."""
        call_id = str(item["call_id"])
        checked = checked_call(item, self._toolset.tools)
        has_own_time = False
        needs_user = False
        if isinstance(checked, ReadyCall):
            name = checked.name
            own_seconds = self._toolset.limits.own_seconds(name)
            has_own_time = checked.kind != "limited" or bool(own_seconds)
            needs_user = self._toolset.approver.rule_for(name, checked.via) == "ask"
            if needs_user:
                asked = AskedCall(call_id, name, checked.arguments, checked.via)
                self._asked.append(asked)
        result = self.answer(call_id, checked, needs_user=needs_user)
        return _StartedCall(item, asyncio.create_task(result), has_own_time)

    def ask_user(self) -> None:
        """Begin to ask about the calls that have started, if any needs it."""

        async def ask() -> None:
            try:
                with self._paused():
                    refusals = await self._toolset.approver.refusals(self._asked)
                for call, refusal in zip(self._asked, refusals, strict=True):
                    self._refusals[call.call_id] = refusal
            finally:  # a call without an answer is denied, and must not wait for one
                self._is_answered.set()

        if self._asked:
            self._question = asyncio.create_task(ask())

    def _paused(self) -> AbstractContextManager[None]:
        """Stop the clocks of the batch and of the run."""
        return self._clock.pause(self._pause)

    def close(self) -> None:
        """Ask no one any longer."""
        if self._question:
            self._question.cancel()

    async def wait(self, call: _StartedCall) -> None:
        """Wait until a call is done or the time of the batch is used up."""
        task = call.task
        if call.has_own_time:
            await asyncio.wait([task])
        while not task.done():
            seconds_left = self._end - self._clock.time()
            if self._clock.is_paused:  # the user is asked
                either: list[asyncio.Future[Any]] = [task, self._clock.goes_on]
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            elif seconds_left > 0:
                await asyncio.wait([task], timeout=seconds_left)
            else:
                return

    async def answer(
        self, call_id: str, call: ReadyCall | ToolResult, *, needs_user: bool
    ) -> ToolResult:
        """Return the result of a call: run it if the rules and the user allow it."""
        if isinstance(call, ToolResult):
            return call
        if needs_user:
            await self._is_answered.wait()
            refusal = self._refusals.get(call_id, _not_approved(call.name))
        else:
            refusal = await self._toolset.approver.refusal(
                call_id, call.name, call.arguments, call.via
            )
        if refusal is not None:
            return tool_error(refusal)
        match call.kind:
            case "limited":
                async with self._slots:
                    return await _call_tool(call, self._toolset, self._paused)
            case "question":
                with self._pause():
                    return await _call_tool(call, self._toolset)
            case "task":
                return await _call_tool(call, self._toolset)


def checked_call(call: Item, tools: CallableTools) -> ReadyCall | ToolResult:
    """Return the call that will run, or the error for the model.

    If a tool passes calls on, its own arguments are checked, then those of the tool
    that it names.
    """
    name = _called_name(call)
    try:
        arguments = read_arguments(call)
    except ValueError:
        why = "its arguments are not valid JSON. Send them again, whole."
        return tool_error(f"{name} was not called: {why}")
    # One that ended before its arguments came (`status`) may only be made if it has none.
    is_cut = call.get("status") == "incomplete" and arguments == {}
    if is_cut and (tools.parameters(name) or {}).get("properties"):
        why = "its arguments did not arrive. Send them again, whole."
        return tool_error(f"{name} was not called: {why}")
    called = _ready_call(name, arguments, tools)
    if isinstance(called, ToolResult):
        return called
    resolved = tools.resolve_call(name, called.arguments)
    if resolved is None:
        return tool_error(f"{name} was not called: it names no tool to call.")
    own_name, own_arguments = resolved
    if own_arguments is called.arguments:
        return called._replace(name=own_name, via=name)
    passed_on = _ready_call(own_name, own_arguments, tools)
    if isinstance(passed_on, ToolResult):
        return passed_on
    return passed_on._replace(via=name)


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> ReadyCall | ToolResult:
    """Return a call whose arguments match the tool's schema, or the error for the model."""
    schema = tools.parameters(name)
    if schema is None:
        return tool_error(f"There is no tool named {name}. Use one that is offered.")
    checked, error = check_arguments(arguments, schema)
    if error is not None:
        return tool_error(f"{name} was not called: {error}")
    return ReadyCall(name, checked, tools.call_kind(name))


def read_arguments(call: Item) -> object:
    """Return the arguments of a call; raises ValueError for invalid JSON."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = json_text(call.get("arguments"))
    return load_json(text) if text.strip() else {}


async def _call_tool(
    ready: ReadyCall, toolset: Toolset, pause: Pause | None = None
) -> ToolResult:
    """Return the result of a tool.

    It has a limit of time if there is a `pause`, which stops the clocks of the batch. A
    tool that raises anything, or cancels itself, has failed and does not end the run:
    libraries in Rust raise a BaseException where they panic, and asyncio ends the server
    with a KeyboardInterrupt. Only the cancellation of our own task does.
    """
    name = ready.name
    limits = toolset.limits
    seconds = limits.own_seconds(name) or limits.seconds
    try:
        async with asyncio.timeout(seconds if pause else None) as scope:
            if pause:
                _pause_of_call.set(_pausing_limit(scope, seconds, pause))
            result = await toolset.tools.call(name, ready.arguments)
        output = cap_output(result.output, limits.characters)
        return result._replace(output=output)
    except GeneratorExit:  # nobody runs this any more
        raise
    except BaseException as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return tool_error(f"{name} did not finish within {seconds:g} s.")
        cause = type(error).__name__
        with suppress(BaseException):  # it is not ours: its text may not even work
            text = str(error).strip()
            cause = f"{cause}: {text}" if text else cause
        toolset.log(f"the tool {name} raised {cause}")
        read = redact_beginning(cause, _MAX_READ_CAUSE, toolset.redacted)
        told = _cap_text(read, _MAX_TOLD_CAUSE)
        return ToolResult(toolset.texts.describe_failure(name, told), failed=True)


def is_out_of_time(error: BaseException) -> bool:
    """Say whether a tool raised because its time was over, and not because it failed."""
    return isinstance(error, TimeoutError | asyncio.CancelledError)


def _pausing_limit(scope: asyncio.Timeout, seconds: float, pause: Pause) -> Pause:
    """Return what stops the limit of a call, and with `pause` the clocks of others.

    The limit is stopped while the tool of the call asks the user something.
    """

    def reschedule() -> None:
        when = None
        if not clock.is_paused:
            when = asyncio.get_running_loop().time() + end - clock.time()
        with suppress(RuntimeError):  # the call is over, and its tool asks on
            scope.reschedule(when)

    clock = PausableClock(reschedule)
    end = clock.time() + seconds
    return lambda: clock.pause(pause)


_MAX_TOLD_CAUSE = 1_000
"""Characters of an exception for the model: a message may quote a whole page."""
_MAX_READ_CAUSE = 10_000
"""More is not shown to anybody."""


NOTE_CHARACTERS = 60
"""The note in an output that was cut has fewer. By so many, such an output may be longer
than its limit."""


def cap_output(
    output: str | list[Item], characters: int, tolerance: int = 0
) -> str | list[Item]:
    """Return the output with at most so many `characters` of each of its texts.

    A text that is longer by no more than the `tolerance` stays whole.
    """
    if isinstance(output, str):
        return _cap_text(output, characters, tolerance)
    capped = list(output)
    for number, part in enumerate(output):
        if isinstance(part.get("text"), str):
            text = _cap_text(part["text"], characters, tolerance)
            capped[number] = {**part, "text": text}
    return capped


def _cap_text(text: str, characters: int, tolerance: int = 0) -> str:
    """Return a text; a longer one keeps its beginning and its end, with a note."""
    if len(text) <= characters + tolerance:
        return text
    half = characters // 2
    note = f"\n[... {len(text) - 2 * half} characters are cut here ...]\n"
    return text[:half] + note + text[len(text) - half :]


def _called_name(call: Item) -> str:
    return str(call.get("name") or "")
