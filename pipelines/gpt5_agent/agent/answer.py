"""An answer of the agent: the loop of `openai_responses`, with the agent's own events.

A round is one response of the model with its calls. Where the host has to run a call or
ask the user, the run ends early and the host calls the agent again. The strategies
`gpt5_function_calling` and `gpt5_react` are one loop under two names.
"""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial

from gpt5_agent.agent.calls import ChatJudge
from gpt5_agent.agent.delegation import DelegateTool, task_tools
from gpt5_agent.agent.preparation import PreparedRun, is_as_configured, prepare_run
from gpt5_agent.agent.steps import StepLog
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    StateChanged,
    StepEnded,
    StepStarted,
)
from gpt5_agent.request import AgentRequest
from manifold.learning import RepairLearning, repair_scope
from manifold.models import cost_of_request
from manifold.views import OpenMessages, log_metadata, log_status
from openai_responses.callbacks import ignore_report
from openai_responses.causes import MISALIGNMENT
from openai_responses.endings import COMPLETED
from openai_responses.errors import ResponsesError
from openai_responses.items import Item, is_call, is_commentary, part_text
from openai_responses.long_work import count_entries, run_work
from openai_responses.loop.events import (
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
    ToolOutput,
)
from openai_responses.loop.repeated_messages import without_repetitions
from openai_responses.loop.run import (
    Provider,
    RoundDone,
    RoundEvent,
    RoundStarted,
    run_rounds,
)
from openai_responses.loop.spending import Spending
from openai_responses.loop.tools import ToolResult, tool_error
from openai_responses.models.facts import ModelFacts
from openai_responses.models.usage import Cost, Usage, add_usage, window_share
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.tools import next_tool_choice
from openai_responses.transport.stream import ItemAdded, ItemDone
from owui_chat.answers import explain_ending
from owui_chat.events import AnswerReport
from owui_chat.render.client_errors import refused_run
from strategies.merged_calls import MergingProvider
from strategies.metadata import RunMetadata
from strategies.thoughts import read_answer_text

OnRequest = Callable[[ResponsesRequest], object]


class _Agent:
    """One run, and how its rounds are shown.

    `is_over` says whether the answer is complete; if not, the host calls again.
    `answer` holds the items of the last response.
    """

    def __init__(
        self,
        request: AgentRequest,
        prepared: PreparedRun,
        provider: Provider,
        spending: Spending,
        steps: StepLog,
    ) -> None:
        self.is_over = True
        self.answer: list[Item] = []
        self._request = request
        self._prepared = prepared
        self._provider = MergingProvider(provider)
        self._spending = spending
        self._steps = steps
        self._judge = ChatJudge(request, prepared)
        self._learning = RepairLearning(
            request.repairs,
            repair_scope(
                request.endpoint, prepared.request.model, request.caller.user_id
            ),
            partial(is_as_configured, request, prepared),
        )
        self._messages = OpenMessages()
        self._cut: list[ItemDone] = []
        """The messages that a failure of the current response has cut."""
        self._run_end = RunDone(COMPLETED)
        self._round: RoundDone | None = None
        """The last response that is complete."""
        self._noted_until = prepared.earlier_rounds.spending.seconds
        """What the notes of the rounds so far say of the time, when they are added up."""
        self._round_began = self._noted_until
        """The same before the notes of the current round: own tools run after a note, and
        count for the next one."""
        self._delegated: Usage | None = None
        """What tasks used after the last response and before this one."""
        self._round_step: StepStarted | None = None
        self._model_step: StepStarted | None = None
        self._call_steps: dict[str, StepStarted] = {}

    def take_notices(self) -> list[str]:
        """Return the messages for the user about this answer."""
        return [*self._prepared.notices, *self._request.take_notices()]

    def build_run_end(self) -> RunDone:
        """Return how the run ended, with all its output.

        Outputs of calls that the host has made are in the chat.
        """
        earlier = self._prepared.request.input[-1:]
        return RunDone(
            ending=explain_ending(self._run_end, earlier),
            usage=self._spending.usage,
            last_usage=self._spending.last_usage,
            output=tuple(map(self._prepared.tools.with_own_name, self._run_end.output)),
            trace=self._run_end.trace,
        )

    def cost_of(self, usages: Sequence[Usage], facts: ModelFacts) -> Cost | None:
        """Return what responses of the answer cost, with the prices of `facts`."""
        endpoint = self._request.endpoint
        return cost_of_request(self._prepared.request, endpoint, facts, usages)

    async def run(
        self, on_request: OnRequest = ignore_report
    ) -> AsyncGenerator[AgentEvent, None]:
        """Run round after round; yield what happens."""
        for source in self._prepared.sources:
            yield source
        open_calls = [
            item for item in self._prepared.earlier_rounds.open_turn if is_call(item)
        ]
        if open_calls:  # the round whose calls waited for the user goes on
            yield self._start_round(self._spending.rounds, may_call=False)
        first_request = self._prepared.request
        is_continuation = self._prepared.earlier_rounds.is_continuation
        if is_continuation and self._request.caller.is_open_webui:
            # The chat's choice comes again with each round, and holds until tools ran
            # once. A program chooses for each request.
            choice = next_tool_choice(first_request.tool_choice)
            first_request = first_request.model_copy(update={"tool_choice": choice})
        on_request(first_request)
        rounds = run_rounds(
            first_request,
            self._provider,
            self._judge.toolset,
            self._spending,
            open_calls,
        )
        async with aclosing(self._steps.follow(rounds)) as events:
            async for event in events:
                for shown in self._show(event):
                    yield shown

    def _show(
        self, event: RunEvent | RoundEvent | StepStarted | StepEnded
    ) -> Iterator[AgentEvent]:
        """Yield what is shown of an event of the run; calls have their tools' names."""
        if isinstance(event, RunEvent):
            self._learning.note(event)
            self._messages.note(event)
        match event:
            case RoundStarted():
                yield from self._begin_round(event)
            case RoundDone():
                yield from self._end_response(event)
            case StepStarted() | StepEnded():
                yield event
            case RunDone():
                yield from self._end_run(event)
            case ResponseDone():
                yield from self._end_messages()
                yield event
            case Status():
                yield log_status(self._request.log, event)
            case ItemAdded() | ItemDone() if is_call(event.item):
                is_question = event.item is self._judge.question
                if is_question and isinstance(event, ItemAdded):
                    yield from self._judge.requests
                named = self._prepared.tools.with_own_name(event.item)
                yield event._replace(item=named)
                if is_question and isinstance(event, ItemDone):
                    yield StateChanged("waiting_for_confirmation")
            case ToolOutput():
                if self._request.pictures:
                    caller = self._request.caller
                    self._request.pictures.keep(
                        caller.answer, event.item, caller.user_id
                    )
                yield event
                step = self._call_steps.pop(event.item["call_id"], None)
                if step:
                    output = event.item["output"]
                    if not isinstance(output, str):  # the text next to pictures
                        output = "\n".join(part_text(part) for part in output)
                    yield self._steps.end(step, failed=event.failed, detail=output)
            case _:
                yield event

    def _start_round(self, number: int, *, may_call: bool) -> StepStarted:
        step = self._steps.start("round", str(number), may_call=may_call)
        self._round_step = step
        return step

    def _begin_round(self, event: RoundStarted) -> Iterator[AgentEvent]:
        """Yield that the model is asked."""
        if self._round_step:
            yield self._steps.end(self._round_step)
        self._delegated = self._spending.take_delegated()
        self._round_began = self._noted_until
        yield StateChanged("thinking")
        round_step = self._start_round(event.number, may_call=event.may_call)
        yield round_step
        model = self._request.model.id
        self._model_step = self._steps.start("model", model, parent=round_step.id)
        yield self._model_step

    def _end_response(self, event: RoundDone) -> Iterator[AgentEvent]:
        """Yield that the model has answered, and the steps of the calls that are made."""
        judgment = event.judgment
        self.is_over = not judgment.is_open
        self._round = event
        if self._model_step:
            self.answer = without_repetitions(item for _, item in event.items)
            yield self._steps.end(
                self._model_step, usage=event.usage, failed=event.is_failure
            )
            self._model_step = None
            yield from self._end_messages()  # a stream that was cut has no other end
            cut = [(end.output_index, end.item) for end in self._cut]
            whole = event._replace(items=(*event.items, *cut))
            yield self._build_round_end(whole)
        if judgment.question:
            return
        made = [verdict.call for verdict in judgment.verdicts if verdict.is_made]
        if made:
            yield StateChanged("executing_tool")
        for call in made:
            step = self._steps.start(
                "tool",
                self._prepared.tools.with_own_name(call)["name"],
                parent=self._round_step.id if self._round_step else "",
                detail=str(call.get("arguments", "")),
            )
            self._call_steps[call["call_id"]] = step
            yield step

    def _end_messages(self) -> list[ItemDone]:
        """Return the ends of messages that a failure left open.

        The next turn gets them with the reasoning before them. Commentary that was cut
        is no answer.
        """
        ends = self._messages.end()
        cut = [end for end in ends if not is_commentary(end.item)]
        self._cut += cut
        return cut

    def _end_run(self, event: RunDone) -> Iterator[AgentEvent]:
        """Yield the end of the last round; its calls may be left to the host.

        Where other calls of the round were made here, its notes come again. A task that
        was stopped for its safety ends the answer: OpenAI's guide "Safety checks:
        misalignment monitoring" has clients stop all that belongs to the request. The
        host does not call again either.
        """
        self._run_end = event
        if self._spending.stopped:
            self.is_over = True
        elif self._round and not self._round.judgment.question:
            last = self._round
            verdicts = last.judgment.verdicts
            left = [verdict for verdict in verdicts if verdict.is_left]
            if left:
                yield StateChanged("waiting_for_tools")
                if last.items and len(left) < len(verdicts):
                    yield self._build_round_end(last)
        if self._round_step:
            yield self._steps.end(self._round_step, failed=event.ending.is_failure)

    def _build_round_end(self, event: RoundDone) -> RoundEnded:
        """Return the end of a round, with the notes for later rounds."""
        tasks = add_usage(self._delegated, self._spending.delegated_usage)
        usage = add_usage(event.usage, tasks)
        counts = usage._asdict() if usage else {}
        # What OpenAI's tools took is left out: a sum has none of it.
        for name in ("searches", "images"):
            counts.pop(name, None)
        self._noted_until = self._spending.seconds
        notes = {
            "style": self._prepared.style,
            "usage": counts,
            "seconds": round(self._noted_until - self._round_began, 3),
            "allowed": sorted(self._judge.new_permissions),
        }
        return RoundEnded(
            name=str(event.number),
            items=event.items,
            notes=notes,
            continues=not self.is_over,
        )


_MESSAGE_DEPTH = 3
"""How deep a chat is counted: messages, their fields, parts, and the fields of parts."""

MakeProvider = Callable[[AgentRequest], Provider]


async def run_agent(
    request: AgentRequest,
    make_provider: MakeProvider,
    on_request: OnRequest = ignore_report,
) -> AsyncGenerator[AgentEvent, None]:
    """Answer a question; yield what happens. `on_request` gets the first request.

    An invalid request is an ending, not an exception. Exactly one RunDone comes;
    ReadyForInput is the last event, unless the host has to go on first.
    """
    spending = Spending(request.parameters.budget())
    agent: _Agent | None = None
    kind = "cancelled"
    try:
        try:
            agent = await _start_agent(request, make_provider, spending)
        except ResponsesError as refused:
            ended = refused_run(refused)
        else:
            async with aclosing(agent.run(on_request)) as events:
                async for event in events:
                    yield event
            ended = agent.build_run_end()
        kind = ended.ending.kind
        # Limits in money count what this call cost, also where another server has other
        # prices.
        own = spending.own_usages
        cost = agent.cost_of(own, request.model.facts) if agent and own else None
        report = AnswerReport(cost=cost)
        if agent is not None and not agent.is_over:
            yield report
            yield ended
            return
        text = read_answer_text(agent.answer) if agent else ""
        notices = agent.take_notices() if agent else []
        metadata = _build_metadata(request, spending, kind, agent)
        failed = ended.ending.is_failure
        if text and not failed:
            yield NewMessage(text)
        yield ExecutionEnded(metadata)
        for notice in notices:  # the page shows the last line of all
            yield Status(notice)
        yield report._replace(metadata=metadata.wire())
        yield ended
        yield StateChanged("failed" if failed else "idle")
        yield ReadyForInput()
    finally:
        if agent is None or agent.is_over:
            if request.pictures:
                request.pictures.forget(request.caller.answer)
            log_metadata(request.log, _build_metadata(request, spending, kind, agent))


async def _start_agent(
    request: AgentRequest, make_provider: MakeProvider, spending: Spending
) -> _Agent:
    """Return the agent for a request; raises ResponsesError."""
    steps = StepLog(request.log.note, debug=request.debug)

    async def run_task(task: AgentRequest, task_spending: Spending) -> ToolResult:
        task_steps = steps.begin_task()
        prepared = prepare_run(task)
        provider = make_provider(task)
        agent = _Agent(task, prepared, provider, task_spending, task_steps)
        async with aclosing(agent.run()) as events:
            async for event in events:
                steps.report(event)
        ended = agent.build_run_end()
        if ended.ending.code == MISALIGNMENT:  # its words are for the user, not a model
            task_spending.stop(ended)
            return tool_error("the task was stopped.")
        if ended.ending.is_failure:
            return tool_error(ended.ending.message)
        return ToolResult(read_answer_text(agent.answer))

    own = request.own_tools
    usable_tools = task_tools(own)
    if usable_tools:
        delegate = DelegateTool(request, usable_tools, spending, run_task)
        tools = (delegate, *own.tools)
        request = request._replace(own_tools=own._replace(tools=tools))
    size = count_entries(request.messages, _MESSAGE_DEPTH)
    prepared = await run_work(size, partial(prepare_run, request))
    spending.add_earlier(prepared.earlier_rounds.spending)
    provider = make_provider(request)
    return _Agent(request, prepared, provider, spending, steps)


def _build_metadata(
    request: AgentRequest, spending: Spending, ending: str, agent: _Agent | None
) -> RunMetadata:
    """Return what an answer took; there is no agent if the question was refused.

    What it cost is not known if only its server knows prices.
    """
    facts = request.model.facts
    if not request.endpoint.serves_openai:
        facts = facts._replace(prices=None)
    return RunMetadata(
        strategy=request.strategy,
        model=request.model.id,
        ending=ending,
        rounds=spending.rounds,
        tool_calls=spending.calls,
        latency=spending.seconds,
        cost=agent.cost_of(spending.usages, facts) if agent else None,
        usage=spending.total_usage,
        window_share=window_share(spending.last_usage, facts),
    )
