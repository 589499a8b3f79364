"""A whole request as a stream of run events: response, calls, response.

The loop knows neither host nor valves: it gets frozen inputs and reports events.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call, since_compaction
from openai_responses.loop.attempts import Attempts, Client, Limits
from openai_responses.loop.events import RunDone, RunEvent, ToolOutput
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.tools import (
    McpApproval,
    ToolResult,
    Toolset,
    ask_mcp_approvals,
    deny_mcp_approvals,
    output_item,
    run_calls,
    tool_error,
)
from openai_responses.models.usage import Usage, add_usage
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import (
    drop_settled_approvals,
    is_approval_request,
    replay_output,
)
from openai_responses.requests.tools import next_tool_choice
from openai_responses.transport.connections import Connections, Deadlines

_NO_RETRY = RetryPolicy(0)
"""The effects of a tool cannot be undone, so nothing after it is sent twice."""

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
    """Send `request` and report what happens; ends with exactly one RunDone.

    With a `toolset` that runs them, calls are answered here; otherwise they are left
    open for the caller, unless their response broke off. A refusal is an ending, not an
    exception. Cancelling it, or closing the generator, closes the connection and
    cancels the tools.
    """
    client = Client(endpoint, connections, limits, Deadlines(limits.timeouts))
    retries = limits.retries
    so_far = _RunState()
    while True:
        attempts = Attempts(request, client, retries, len(so_far.output))
        async with aclosing(attempts.events()) as events:
            async for event in events:
                yield event
        so_far.add_response(attempts)
        if attempts.ending.is_failure:
            for answered in so_far.fail_calls(attempts.response.output):
                yield answered
            break
        if toolset is None:
            break
        round_ = _ToolRound(attempts.response.output, toolset, so_far)
        if not round_.has_work:
            break
        with client.deadlines.paused():
            async with aclosing(round_.answers()) as answers:
                async for event in answers:
                    yield event
        if so_far.is_last_response or round_.leaves_calls:
            break
        request = _next_request(attempts, toolset, so_far, round_)
        retries = _NO_RETRY
    yield RunDone(
        attempts.ending,
        so_far.usage,
        attempts.response.usage,
        tuple(so_far.output),
        attempts.trace,
    )


class _RunState:
    def __init__(self) -> None:
        self.output: list[Item] = []
        self.usage: Usage | None = None
        self.rounds = 0
        self.calls = 0
        self.is_last_response = False

    def add_response(self, attempts: Attempts) -> None:
        self.output += attempts.response.output
        self.usage = add_usage(self.usage, attempts.response.usage)

    def add_output(self, call: Item, answer: ToolResult) -> ToolOutput:
        item, index = output_item(call, answer), len(self.output)
        self.output.append(item)
        return ToolOutput(index, item, answer.failed, answer.card)

    def fail_calls(self, output: Sequence[Item]) -> list[ToolOutput]:
        """Answer the calls of a failed response; none of them was run."""
        calls = [item for item in output if is_call(item)]
        return [self.add_output(call, _refused(call, _BROKEN_OFF)) for call in calls]


class _ToolRound:
    """The calls and approval requests of one response; each is answered, in order.

    `was_limited` says whether a limit kept a call from running, `leaves_calls` whether
    some calls are left to the caller.
    """

    def __init__(
        self, output: Sequence[Item], toolset: Toolset, so_far: _RunState
    ) -> None:
        calls = [item for item in output if is_call(item)]
        self._calls = calls if toolset.runs_calls else []
        self.leaves_calls = len(self._calls) < len(calls)
        self.requests = [item for item in output if is_approval_request(item)]
        self._toolset = toolset
        self._so_far = so_far
        self.outputs: list[Item] = []
        self.was_limited = False

    @property
    def has_work(self) -> bool:
        return bool(self._calls or self.requests)

    async def answers(self) -> AsyncGenerator[RunEvent, None]:
        for approval in await self._approvals():
            for event in approval.events(len(self._so_far.output)):
                yield event
            self.outputs.append(approval.response)
            self._so_far.output += approval.items
        allowed = self._allowed()
        async with aclosing(run_calls(self._calls[:allowed], self._toolset)) as ended:
            async for call, answer in ended:
                yield self._add_output(call, answer)
        why = _ROUNDS_USED_UP if self._is_over else _CALLS_USED_UP
        for call in self._calls[allowed:]:
            yield self._add_output(call, _refused(call, why))
        self.was_limited = allowed < len(self._calls) or self._is_over
        self._so_far.rounds += 1
        self._so_far.calls += allowed

    def _add_output(self, call: Item, answer: ToolResult) -> ToolOutput:
        event = self._so_far.add_output(call, answer)
        self.outputs.append(event.item)
        return event

    async def _approvals(self) -> list[McpApproval]:
        if self._is_over:
            return deny_mcp_approvals(self.requests, _ROUNDS_USED_UP)
        return await ask_mcp_approvals(self.requests, self._toolset.approver)

    @property
    def _is_over(self) -> bool:
        return self._so_far.rounds >= self._toolset.rounds

    def _allowed(self) -> int:
        if self._is_over:
            return 0
        left = self._toolset.most_calls - self._so_far.calls
        return max(0, min(left, len(self._calls)))


def _refused(call: Item, why: str) -> ToolResult:
    return tool_error(f"{call.get('name')} {why}")


def _next_request(
    attempts: Attempts, toolset: Toolset, so_far: _RunState, round_: _ToolRound
) -> ResponsesRequest:
    """Return the next request: this one, its output, and the outputs of its calls.

    A tool that had to be called has been called; at the limit the last response may
    call none. The tools stay in the request for the prompt cache.
    """
    request = attempts.request
    # An approval request cannot be answered without the reasoning before it.
    reasoning = toolset.carries_reasoning or bool(round_.requests)
    received = replay_output(attempts.response.output, with_reasoning=reasoning)
    so_far.is_last_response = round_.was_limited
    choice = "none" if round_.was_limited else next_tool_choice(request.tool_choice)
    items = drop_settled_approvals([*request.input, *received, *round_.outputs])
    items = since_compaction(items)
    return request.model_copy(update={"input": items, "tool_choice": choice})
