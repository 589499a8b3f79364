"""A whole request, as a stream of run events: turn, calls, turn.

The loop knows neither host nor valve: what it needs comes in frozen inputs, what
happens goes out as events, and the last of them says how the run ended.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from openai_responses.attempts import Attempts
from openai_responses.calls import (
    ToolAnswer,
    Toolset,
    failed_answer,
    output_of,
    run_calls,
)
from openai_responses.deadlines import Deadlines
from openai_responses.endpoint import Endpoint
from openai_responses.exchange import Limits, Line
from openai_responses.items import Item, given_back, is_call
from openai_responses.request import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.run_events import CallAnswered, RunEnded, RunEvent
from openai_responses.transport import Connections
from openai_responses.usage import Usage, add_usage

_NO_RETRY = RetryPolicy(0)
"""What a tool did cannot be undone, so that nothing after it is sent twice."""

_ROUNDS_USED_UP = "was not run: the limit of tool rounds is reached. Answer without it."
_CALLS_USED_UP = "was not run: the limit of tool calls is reached. Answer without it."
_BROKEN_OFF = "was not run: the answer that asked for it broke off."


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """Send `request` and report what happens; ends with exactly one RunEnded.

    With a `toolset` calls are run and answered here; without, they are left open for
    the caller. Raises nothing of ours: a refusal is an ending. Cancelling it, or
    closing the generator, closes the connection and cancels the tools.
    """
    line = Line(endpoint, connections, limits, Deadlines(limits.timeouts))
    retries = limits.retries
    so_far = _SoFar()
    while True:
        attempts = Attempts(request, line, retries, len(so_far.output))
        async with aclosing(attempts.events()) as events:
            async for event in events:
                yield event
        so_far.add_turn(attempts)
        calls = [item for item in attempts.turn.output if is_call(item)]
        if toolset is None or not calls:
            break
        round_ = _Round(calls, toolset, so_far, attempts.ending.is_failure)
        async with aclosing(round_.answers()) as answers:
            async for answered in answers:
                yield answered
        if attempts.ending.is_failure or so_far.is_last_turn:
            break
        request = _next_request(attempts, toolset, so_far, round_)
        retries = _NO_RETRY
    yield RunEnded(
        attempts.ending,
        so_far.usage,
        attempts.turn.usage,
        tuple(so_far.output),
        attempts.trace,
    )


class _SoFar:
    """What the turns of a run have come to."""

    def __init__(self) -> None:
        self.output: list[Item] = []
        self.usage: Usage | None = None
        self.rounds = 0
        self.calls = 0
        self.is_last_turn = False

    def add_turn(self, attempts: Attempts) -> None:
        """Count what a turn brought."""
        self.output += attempts.turn.output
        self.usage = add_usage(self.usage, attempts.turn.usage)


class _Round:
    """The calls of one turn, each of which gets an output, in the same order.

    `was_limited` says whether a limit kept one from being run.
    """

    def __init__(
        self, calls: Sequence[Item], toolset: Toolset, so_far: _SoFar, broken: bool
    ) -> None:
        self._calls = calls
        self._toolset = toolset
        self._so_far = so_far
        self._broken = broken
        self.outputs: list[Item] = []
        self.was_limited = False

    async def answers(self) -> AsyncGenerator[CallAnswered, None]:
        """Answer every call and tell of it; the run's output grows by the outputs."""
        allowed = self._allowed()
        async with aclosing(run_calls(self._calls[:allowed], self._toolset)) as ended:
            async for call, answer in ended:
                yield self._told(call, answer)
        for call in self._calls[allowed:]:
            refused = failed_answer(f"{call.get('name')} {self._why()}")
            yield self._told(call, refused)
        self.was_limited = allowed < len(self._calls)
        self._so_far.rounds += 1
        self._so_far.calls += allowed

    def _told(self, call: Item, answer: ToolAnswer) -> CallAnswered:
        item, index = output_of(call, answer), len(self._so_far.output)
        self.outputs.append(item)
        self._so_far.output.append(item)
        return CallAnswered(index, item, answer.failed, answer.card)

    def _allowed(self) -> int:
        """Return how many of the calls may run."""
        if self._broken or self._so_far.rounds >= self._toolset.rounds:
            return 0
        left = self._toolset.most_calls - self._so_far.calls
        return max(0, min(left, len(self._calls)))

    def _why(self) -> str:
        if self._broken:
            return _BROKEN_OFF
        used_up = self._so_far.rounds >= self._toolset.rounds
        return _ROUNDS_USED_UP if used_up else _CALLS_USED_UP


def _next_request(
    attempts: Attempts, toolset: Toolset, so_far: _SoFar, round_: _Round
) -> ResponsesRequest:
    """Return the request of the next turn: all of this one, and what came of it.

    A tool that had to be called has been; at the limit the last turn may call none.
    The tools themselves stay, because the prompt cache lives on them.
    """
    request = attempts.request
    received = given_back(
        attempts.turn.output, with_reasoning=toolset.carries_reasoning
    )
    so_far.is_last_turn = round_.was_limited
    choice = "none" if round_.was_limited else _later_choice(request.tool_choice)
    items = [*request.input, *received, *round_.outputs]
    return request.model_copy(update={"input": items, "tool_choice": choice})


def _later_choice(choice: object) -> object:
    """Return what a choice comes to after the first calls; what it forbids stays so."""
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return "none" if choice == "none" else None
