"""A whole request as a stream of run events: response, calls, response.

The loop knows no host: it gets frozen inputs and reports events.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import reduce

from openai_responses.endings import Ending
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call, since_compaction
from openai_responses.json_input import parse_json_object
from openai_responses.loop.attempts import Attempts, Limits
from openai_responses.loop.events import RunDone, RunEvent, RunEvents, ToolOutput
from openai_responses.loop.tools import (
    ToolResult,
    Toolset,
    output_item,
    run_calls,
    tool_error,
)
from openai_responses.models.usage import add_usage
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.replay import (
    drop_settled_approvals,
    is_approval_request,
    refused_pair,
    remote_name,
    replay_output,
)
from openai_responses.requests.tools import next_tool_choice
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, ItemDone

_TOOL_LIMIT = "was not run: the limit of tool {} is reached. Answer without it."
_ROUNDS_USED_UP = _TOOL_LIMIT.format("rounds")
_CALLS_USED_UP = _TOOL_LIMIT.format("calls")
_IS_REPEATED = "was not run: the same call_id came twice in this response."
_BROKEN_OFF = "was not run: the answer that requested it was interrupted."


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> RunEvents:
    """Send `request` and report what happens; ends with exactly one RunDone.

    With a `toolset` that runs them, calls are answered here; otherwise they are left
    open for the caller, unless their response broke off. A refusal is an ending, not an
    exception. Cancelling it, or closing the generator, closes the connection and
    cancels the tools.
    """
    attempts = Attempts(endpoint, connections, limits)
    answers = _Answers(request)
    while answers.request is not None:
        had_output = bool(answers.output)
        sent = attempts.events(answers.request, len(answers.output))
        for part in (sent, answers.events(attempts, toolset)):
            async with aclosing(part) as events:
                async for event in events:
                    yield event
    has_text = had_output or attempts.has_shown
    yield RunDone(
        attempts.ending if has_text else attempts.ending.without_text(),
        reduce(add_usage, attempts.usages, None),
        attempts.response.usage,
        tuple(answers.output),
        attempts.trace,
        usages=tuple(attempts.usages),
    )


class _Answers:
    """Answers the calls and approval requests of each response, in order.

    `output` is that of the whole run, `request` the next one, and None at the end.
    `_items` are the input items that answer the last response. `_is_limited` says
    whether a limit kept a call from running.
    """

    def __init__(self, request: ResponsesRequest) -> None:
        self.request: ResponsesRequest | None = request
        self.output: list[Item] = []
        self._is_limited = False
        self._rounds = 0
        self._calls_run = 0

    async def events(self, attempts: Attempts, toolset: Toolset | None) -> RunEvents:
        """Answer the last response, and set the next request if there is one.

        An approval request cannot be answered without the reasoning before it.
        """
        self.request = None
        output = attempts.response.output
        self._items: list[Item] = []
        self.output += output
        calls = [item for item in output if is_call(item)]
        approvals = [item for item in output if is_approval_request(item)]
        has_open_calls = bool(calls or approvals)
        _end_if_used_up(attempts, has_open_calls)
        if attempts.ending.is_failure:
            for refused in self._refuse(calls, _BROKEN_OFF):
                yield refused
            return
        if toolset is None or not has_open_calls:
            return
        was_last = self._is_limited
        with attempts.deadlines.paused():
            answers = self._answer_all(calls, approvals, toolset)
            async with aclosing(answers) as events:
                async for event in events:
                    yield event
        if not was_last and (toolset.runs_calls or not calls):
            reasoning = toolset.carries_reasoning or bool(approvals)
            self.request = self._next_request(attempts, reasoning)

    async def _answer_all(
        self, calls: Sequence[Item], approvals: Sequence[Item], toolset: Toolset
    ) -> RunEvents:
        """Answer the approval requests, then run the calls that the limits allow."""
        is_over = self._rounds >= toolset.rounds
        for request in approvals:
            refusal = await _remote_refusal(request, toolset, is_over)
            for event in self._decide(request, refusal):
                yield event
        own_calls = calls if toolset.runs_calls else ()
        new, repeated = _split_repeated(own_calls)
        for event in self._refuse(repeated, _IS_REPEATED):
            yield event
        calls_left = 0 if is_over else toolset.most_calls - self._calls_run
        allowed = new[:calls_left]
        async with aclosing(run_calls(allowed, toolset)) as results:
            async for call, result in results:
                yield self._answer(call, result)
        why = _ROUNDS_USED_UP if is_over else _CALLS_USED_UP
        for event in self._refuse(new[calls_left:], why):
            yield event
        self._is_limited = is_over or len(new) > calls_left
        self._rounds += 1
        self._calls_run += len(allowed)

    def _next_request(self, attempts: Attempts, reasoning: bool) -> ResponsesRequest:
        """Return the next request: the last, its output, and the outputs of its calls.

        A tool that had to be called has been called; at the limit the last response may
        call none. The tools stay in the request for the prompt cache.
        """
        request = attempts.request
        if self._is_limited:
            request = request.model_copy(update={"tool_choice": "none"})
        output = attempts.response.output
        received = replay_output(output, with_reasoning=reasoning)
        return next_request(request, [*received, *self._items])

    def _refuse(self, calls: Iterable[Item], why: str) -> Iterator[ToolOutput]:
        """Answer calls that are not run with the reason why."""
        for call in calls:
            yield self._answer(call, tool_error(f"{call.get('name')} {why}"))

    def _answer(self, call: Item, result: ToolResult) -> ToolOutput:
        """Add the output of a call to the run, and report it."""
        item = output_item(call, result)
        index = len(self.output)
        self.output.append(item)
        self._items.append(item)
        return ToolOutput(index, item, result.failed, result.card)

    def _decide(self, request: Item, refusal: str | None) -> Iterator[RunEvent]:
        """Approve a remote call, which will appear itself, or show that it is denied."""
        response: Item = {
            "type": "mcp_approval_response",
            "approval_request_id": request.get("id"),
            "approve": refusal is None,
        }
        self._items.append(response)
        if refusal is None:
            self.output.append(response)
            return
        response["reason"] = refusal
        call, output = refused_pair(request, refusal)
        call = {**call, "id": f"fc_{call['call_id']}"}
        index = len(self.output)
        self.output += [call, output]
        yield ItemAdded(index, call)
        yield ItemDone(index, call)
        yield ToolOutput(index + 1, output, failed=True)


def _end_if_used_up(attempts: Attempts, has_open_calls: bool) -> None:
    """End a run that wants to continue but has used up its budget.

    Every response counts, also one that calls nothing.
    """
    response = attempts.response
    used_up = attempts.limits.spent(attempts.usages, response.output)
    if used_up and has_open_calls:
        response.ending = Ending("incomplete", sentence=used_up)


def _split_repeated(calls: Iterable[Item]) -> tuple[list[Item], list[Item]]:
    """Return the calls of a response, and apart those with the id of one before."""
    first: dict[str, Item] = {}
    repeated: list[Item] = []
    for call in calls:
        call_id = call["call_id"]
        if call_id in first:
            repeated.append(call)
        else:
            first[call_id] = call
    return list(first.values()), repeated


def next_request(request: ResponsesRequest, items: Iterable[Item]) -> ResponsesRequest:
    """Return the request that follows `request` with what was received and answered."""
    whole = drop_settled_approvals([*request.input, *items])
    choice = next_tool_choice(request.tool_choice)
    changed = {"input": since_compaction(whole), "tool_choice": choice}
    return request.model_copy(update=changed)


async def _remote_refusal(request: Item, toolset: Toolset, is_over: bool) -> str | None:
    """Return why a remote call is denied; without a rule a person is asked."""
    name = remote_name(request)
    if is_over:
        return f"{name} {_ROUNDS_USED_UP}"
    text = str(request.get("arguments") or "{}")
    arguments = parse_json_object(text)
    shown = {"arguments": text} if arguments is None else arguments
    approver = replace(toolset.approver, default_rule="ask")
    own_name = str(request.get("name"))
    return await approver.refusal(str(request.get("id")), name, shown, own_name)
