"""A whole request as a stream of run events: response, calls, response.

The loop knows no host: it gets frozen inputs and reports events. The agents and the
pipe run the same loop, round by round:

    a provider answers the request        loop/attempts.py: the Responses API
    a judge decides about its calls       refused, left to the host, or made here
    the calls that are made here run      loop/tools.py
    their outputs are added to the input  that is the next request

At a limit of the budget the calls are refused, and the model answers once more without
tools. A run that ends with calls for the host, or with a question to the user, is
continued by another run, which begins with the open calls.
"""

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import AbstractContextManager, aclosing
from typing import NamedTuple, Protocol

from openai_responses.endings import COMPLETED
from openai_responses.endpoint import Endpoint
from openai_responses.items import (
    Item,
    is_call,
    json_text,
    open_calls,
    since_compaction,
)
from openai_responses.json_input import parse_json_object, repeats_a_name
from openai_responses.loop.attempt import Limits
from openai_responses.loop.attempts import Attempts
from openai_responses.loop.events import (
    GIVEN_UP,
    ModelAnswer,
    ResponseDone,
    RunDone,
    RunEvent,
    RunEvents,
    SpentLimit,
    ToolOutput,
)
from openai_responses.loop.repeated_messages import without_repetitions
from openai_responses.loop.spending import Budget, Spending
from openai_responses.loop.tools import (
    AskedCall,
    Judgment,
    ToolResult,
    Toolset,
    Verdict,
    output_item,
    run_calls,
    tool_error,
)
from openai_responses.models.usage import Usage, sum_usages
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
from openai_responses.transport.stream import ItemAdded, ItemDone, ItemEvent

_IS_REPEATED = "was not run: the same call_id came twice in this response."
_INTERRUPTED = "was not run: the answer that requested it was interrupted."


class Provider(Protocol):
    """A model that answers one request after another."""

    def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, its items numbered from `first_index`, then the answer."""

    def paused(self) -> AbstractContextManager[None]:
        """Count no time while tools run or users decide."""


class RoundStarted(NamedTuple):
    """A response is requested; `may_call` says whether the model may call tools."""

    number: int
    may_call: bool


class RoundDone(NamedTuple):
    """A response is complete, and what happens to its calls is decided.

    `items` are its finished ones with their indexes; none in a round that only answers
    the calls of an earlier run. The outputs of the calls follow.
    """

    number: int
    items: tuple[tuple[int, Item], ...]
    judgment: Judgment
    usage: Usage | None
    is_failure: bool = False


RoundEvent = RoundStarted | RoundDone
RoundEvents = AsyncGenerator[RunEvent | RoundEvent, None]


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
    spending: Spending | None = None,
) -> RunEvents:
    """Send `request` and report what happens; ends with exactly one RunDone.

    With a `toolset` that runs them, calls are answered here; otherwise they are left
    open for the caller, unless their response was interrupted. A refusal is an ending,
    not an exception. Cancelling the run, or closing the generator, closes the
    connection and cancels the tools.
    """
    attempts = Attempts(endpoint, connections, limits)
    async with aclosing(run_rounds(request, attempts, toolset, spending)) as events:
        async for event in events:
            if not isinstance(event, RoundEvent):
                yield event


async def run_rounds(
    request: ResponsesRequest,
    provider: Provider,
    toolset: Toolset | None = None,
    spending: Spending | None = None,
    left_calls: Sequence[Item] = (),
) -> RoundEvents:
    """Let `provider` answer `request`; report its rounds as well.

    `spending` says what the run may take and has taken; without it the usual budget
    counts from here. The run begins with `left_calls`, which an earlier run of the same
    answer has left; they are the last items of the request's input.
    """
    rounds = _Rounds(request, provider, toolset, spending or Spending(Budget()))
    if toolset and left_calls:
        async with aclosing(rounds.resume(left_calls, toolset)) as events:
            async for event in events:
                yield event
    while rounds.request is not None:
        async with aclosing(rounds.respond(rounds.request)) as events:
            async for event in events:
                yield event
        async with aclosing(rounds.answer_calls()) as events:
            async for event in events:
                yield event
    yield rounds.build_end()


class _Rounds:
    """The rounds of a run; each is a response and the outputs of its calls."""

    def __init__(
        self,
        request: ResponsesRequest,
        provider: Provider,
        toolset: Toolset | None,
        spending: Spending,
    ) -> None:
        self.request: ResponsesRequest | None = request
        """The next one, None at the end."""
        self._provider = provider
        self._toolset = toolset
        self._spending = spending
        self._answer = ModelAnswer(COMPLETED, request)
        """The last response."""
        self._inputs: list[Item] = []
        """The input items that answer its calls."""
        self._output: list[Item] = []
        """The items of the whole run."""
        self._next_index = 0
        self._usages: list[Usage] = []
        """Those of the whole run."""
        self._had_output = False
        """Whether the run had items before the last response."""
        self._may_call = True
        """Whether the last response was allowed to call tools."""
        self._limit: SpentLimit | None = None
        """The limit that keeps the model from calling tools."""
        self._held: list[RunEvent] = []
        """Events of calls that wait for the judgment."""

    async def respond(self, request: ResponsesRequest) -> RoundEvents:
        """Request a response; yield its events, but hold back calls for the judge.

        At a limit the model may call nothing. The tools stay in the request, because
        the prompt cache begins with them.
        """
        self.request = None
        number = self._spending.begin_round()
        limit = self._spending.limit_of_round()
        self._limit = self._limit or limit
        self._may_call = self._limit is None
        if request.tools and not self._may_call:
            request = request.model_copy(update={"tool_choice": "none"})
        may_call = bool(request.tools) and self._may_call
        yield RoundStarted(number, may_call)
        self._had_output = bool(self._output)
        judge = self._toolset.judge if self._toolset else None
        holds_calls = may_call and judge is not None and judge.holds_calls
        held_calls = set[int]()
        generated = self._provider.generate(request, self._next_index)
        async with aclosing(generated) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    self._answer = part
                    continue
                # From the first call on everything waits, to keep its order, until no
                # call is left: the model is asked again, and may answer.
                if holds_calls and isinstance(part, ItemAdded) and is_call(part.item):
                    held_calls.add(part.output_index)
                if not held_calls:
                    yield part
                    continue
                self._held.append(part)
                if isinstance(part, ItemDone) and part.item == GIVEN_UP:
                    held_calls.discard(part.output_index)
                    if not held_calls:
                        for event in self._release(None):
                            yield event
        answer = self._answer
        self._inputs = []
        self._usages += answer.usages
        self._spending.add_response(answer.usages, answer.last_usage)
        self._output += answer.output
        for index, _ in answer.items:
            self._next_index = max(self._next_index, index + 1)

    async def answer_calls(self) -> RoundEvents:
        """Answer the last response; set the next request if there is one.

        Approval requests are answered, and the calls that are not left to the host.
        """
        output = self._answer.output
        calls = open_calls(output)
        approvals = [item for item in output if is_approval_request(item)]
        toolset = self._toolset
        is_failure = self._answer.ending.is_failure
        if toolset is None or is_failure or not (calls or approvals):
            for event in self._release(None):
                yield event
            if is_failure:
                # No one runs the calls of an interrupted response, and the API refuses
                # a call without an output in the next turn.
                for call in calls:
                    yield self._add_output(call, _refuse(call, _INTERRUPTED))
            yield self._end_round(Judgment())
            return
        with self._provider.paused():
            limit = self._spending.limit_of_calls()
            judgment = await self._judge(calls, limit, toolset)
            for event in self._release(judgment.question):
                yield event
            yield self._end_round(judgment)
            if judgment.question:
                return  # with the user's answer another run goes on (`resume`)
            with self._spending.pause():
                refusals = await _remote_refusals(approvals, toolset, limit)
            for request, refusal in zip(approvals, refusals, strict=True):
                response: Item = {
                    "type": "mcp_approval_response",
                    "approval_request_id": request.get("id"),
                    "approve": refusal is None,
                }
                if refusal is None:  # the remote call will appear itself
                    self._inputs.append(response)
                    self._add_item(response)
                    continue
                self._inputs.append({**response, "reason": refusal})
                call, denied = refused_pair(request, refusal)
                for event in self._show_call({**call, "id": f"fc_{call['call_id']}"}):
                    yield event
                yield ToolOutput(self._add_item(denied), denied, failed=True)
            async with aclosing(self._make_calls(judgment, toolset)) as outputs:
                async for made in outputs:
                    yield made
        # The API accepts the answer to an approval request only with the reasoning
        # before that request, so it is sent again even where the toolset carries none.
        reasoning = toolset.carries_reasoning or bool(approvals)
        received = replay_output(output, with_reasoning=reasoning)
        self._continue(judgment, received)

    async def resume(self, calls: Sequence[Item], toolset: Toolset) -> RoundEvents:
        """Answer the calls that an earlier run has left; the host has seen none of them.

        They were not shown while the user was asked. With another `question` they
        still are not.
        """
        self.request = None
        with self._provider.paused():
            limit = self._spending.limit_of_calls()
            judgment = await self._judge(calls, limit, toolset)
            shown_calls = [judgment.question] if judgment.question else calls
            for call in shown_calls:
                for event in self._show_call(call):
                    yield event
            yield RoundDone(self._spending.rounds, (), judgment, None)
            async with aclosing(self._make_calls(judgment, toolset)) as outputs:
                async for output in outputs:
                    yield output
        self._continue(judgment, ())

    async def _judge(
        self, calls: Sequence[Item], limit: SpentLimit | None, toolset: Toolset
    ) -> Judgment:
        """Return what happens to the calls; the judge decides within the budget."""
        self._limit = self._limit or limit
        if not toolset.runs_calls:
            return Judgment([Verdict(call, is_left=True) for call in calls])
        calls_left = 0 if limit else self._spending.calls_left
        verdicts: list[Verdict] = []
        allowed_ids: set[str] = set()
        for call in calls:
            refusal: ToolResult | None = None
            if call["call_id"] in allowed_ids:
                refusal = _refuse(call, _IS_REPEATED)
            elif len(allowed_ids) < calls_left:
                allowed_ids.add(call["call_id"])
            else:
                refusal = toolset.texts.refuse(call, limit or "calls")
                self._limit = self._limit or "calls"
            verdicts.append(Verdict(call, refusal))
        allowed = [verdict.call for verdict in verdicts if verdict.is_made]
        if toolset.judge is None or not allowed:
            return Judgment(verdicts)
        with self._spending.pause():  # a judge takes time only if it asks the user
            judgment = await toolset.judge.judge(allowed)
        judged = {verdict.call["call_id"]: verdict for verdict in judgment.verdicts}
        for number, verdict in enumerate(verdicts):
            if verdict.is_made:
                verdicts[number] = judged[verdict.call["call_id"]]
        return Judgment(verdicts, judgment.question)

    def _release(self, question: Item | None) -> Iterator[RunEvent]:
        """Yield what was held back; a question takes the place of the calls."""
        held = self._held
        self._held = []
        if question is None:
            yield from held
            return
        waiting = {id(call) for call in open_calls(self._answer.output)}
        calls = {index for index, item in self._answer.items if id(item) in waiting}
        ends: list[RunEvent] = []
        for event in held:
            if isinstance(event, ResponseDone):
                ends.append(event)
            elif not (isinstance(event, ItemEvent) and event.output_index in calls):
                yield event
        yield from self._show_call(question)
        yield from ends

    def _end_round(self, judgment: Judgment) -> RoundDone:
        answer = self._answer
        return RoundDone(
            number=self._spending.rounds,
            items=answer.items,
            judgment=judgment,
            usage=sum_usages(answer.usages),
            is_failure=answer.ending.is_failure,
        )

    async def _make_calls(
        self, judgment: Judgment, toolset: Toolset
    ) -> AsyncGenerator[ToolOutput, None]:
        """Make the calls that run here; yield all outputs in the order of the calls.

        While the user is asked, no call is made.
        """
        if judgment.question:
            return
        self._spending.calls += len(judgment.verdicts)
        made = [verdict.call for verdict in judgment.verdicts if verdict.is_made]
        limits = toolset.limits
        seconds_left = self._spending.seconds_left
        if seconds_left is not None:
            seconds = min(limits.batch_seconds, seconds_left)
            limits = limits._replace(batch_seconds=seconds)
        timed = toolset._replace(limits=limits)
        calls = run_calls(made, timed, self._spending.pause)
        async with aclosing(calls) as results:
            for verdict in judgment.verdicts:
                if verdict.refusal is not None:
                    yield self._add_output(verdict.call, verdict.refusal)
                elif verdict.is_made:
                    _, result = await anext(results)
                    yield self._add_output(verdict.call, result)

    def _continue(self, judgment: Judgment, received: Sequence[Item]) -> None:
        """Set the next request, unless the run ends here or the host continues it.

        It is the last request with its output and the outputs of its calls. A tool that
        had to be called has been called, so it is not required again.
        """
        if judgment.is_open or not self._may_call or self._spending.stopped:
            return
        last = self._answer.request
        whole = drop_settled_approvals([*last.input, *received, *self._inputs])
        choice = next_tool_choice(last.tool_choice)
        changed = {"input": since_compaction(whole), "tool_choice": choice}
        self.request = last.model_copy(update=changed)

    def _show_call(self, call: Item) -> Iterator[RunEvent]:
        """Yield the events of a call that no response of this run contains."""
        index = self._add_item(call)
        yield ItemAdded(index, call)
        yield ItemDone(index, call)

    def _add_output(self, call: Item, result: ToolResult) -> ToolOutput:
        """Add the output of a call to the run, and report it."""
        item = output_item(call, result)
        self._inputs.append(item)
        return ToolOutput(self._add_item(item), item, result.failed, result.card)

    def _add_item(self, item: Item) -> int:
        """Add an item to the output of the run; return its index."""
        self._output.append(item)
        index = self._next_index
        self._next_index += 1
        return index

    def build_end(self) -> RunDone:
        """Return the end of the run: its own, or that of a task that stopped it."""
        answer = self._answer
        ending = answer.ending
        trace = answer.trace
        stopped = self._spending.stopped
        if stopped:
            ending = stopped.ending
            trace = stopped.trace
        has_text = self._had_output or answer.has_shown
        if not has_text:  # the message must not tell of a part that arrived
            ending = ending.without_text()
        return RunDone(
            ending=ending,
            usage=sum_usages(self._usages),
            last_usage=answer.last_usage,
            # What the page has shown; the next request has repetitions, too.
            output=tuple(without_repetitions(self._output)),
            trace=trace,
            usages=tuple(self._usages),
            limit=self._limit,
        )


def _refuse(call: Item, why: str) -> ToolResult:
    return tool_error(f"{call.get('name')} {why}")


async def _remote_refusals(
    requests: Sequence[Item], toolset: Toolset, limit: SpentLimit | None
) -> list[str | None]:
    """Return for each remote call why it is denied, None if it is approved.

    A server of OpenAI's MCP tool asked for the approval, so without a rule the user
    decides, unless the server asks only because there are rules.
    """
    names = [remote_name(request) for request in requests]
    if limit:
        texts = [toolset.texts.describe(name, limit) for name in names]
        # `refused_pair` puts it in front again.
        return [text.removeprefix("Error: ") for text in texts]
    asked: list[AskedCall] = []
    for name, request in zip(names, requests, strict=True):
        text = json_text(request.get("arguments")) or "{}"
        arguments = parse_json_object(text)
        # The user who decides sees as it is what is not JSON, or what the server may read
        # in another way.
        if arguments is None or repeats_a_name(text):
            arguments = {"arguments": text}
        call = AskedCall(
            call_id=str(request.get("id")),
            name=name,
            arguments=arguments,
            via=str(request.get("name")),
            default_rule=toolset.approver.remote_default(request),
        )
        asked.append(call)
    return await toolset.approver.refusals(asked)
