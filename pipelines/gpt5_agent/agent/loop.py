"""The agent's loop: the model answers, its calls are run, until there are no more calls.

A round is one answer of the model with its calls. At a limit the pending calls are
refused and the model is asked once more without tools. Where the host has to run a call
or ask a person, the loop ends early and the host calls again. The strategies
`gpt5_function_calling` and `gpt5_react` are one loop under two names.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing
from functools import partial

from gpt5_agent.agent.accounting import RunTotals, StepLog
from gpt5_agent.agent.calls import CallDecisions, RoundCalls
from gpt5_agent.agent.delegation import MAX_TASKS_AT_ONCE, DelegateTool
from gpt5_agent.agent.preparation import PreparedRun, prepare_run
from gpt5_agent.agent.provider import ResponsesProvider
from gpt5_agent.agent.transcript import AnswerEvents, Transcript
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    StateChanged,
    StepStarted,
)
from gpt5_agent.ports import ModelAnswer, Provider
from gpt5_agent.request import AgentRequest
from openai_responses.clock import utc_today
from openai_responses.endings import COMPLETED, MISALIGNMENT, ending_of_exception
from openai_responses.errors import ResponsesError
from openai_responses.items import Item, is_call
from openai_responses.json_input import count_entries
from openai_responses.long_work import run_work
from openai_responses.loop.events import ResponseDone, RunDone, Status
from openai_responses.loop.tools import ToolResult, tool_error
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import Usage, add_usage, cost_of_run
from strategies.metadata import RunMetadata
from strategies.thoughts import read_answer_text


class _Agent:
    """One run of the loop.

    `is_over` says whether the answer is complete; if not, the host calls again.
    `answer` holds the items of the last round.
    """

    def __init__(
        self,
        request: AgentRequest,
        prepared: PreparedRun,
        provider: Provider,
        totals: RunTotals,
        steps: StepLog,
    ) -> None:
        self.is_over = True
        self.answer: list[Item] = []
        self._prepared = prepared
        self._provider = provider
        self._totals = totals
        self._steps = steps
        self._transcript = Transcript(prepared.request.input)
        self._round_calls = RoundCalls(
            request, prepared, totals, steps, self._transcript
        )
        self._continues = True
        self._delegated: Usage | None = None
        self._request = request
        self._round_began = 0.0
        self._run_end = RunDone(COMPLETED)

    def take_notes(self) -> list[str]:
        """Return what people should know of this answer."""
        request = self._request
        notes = [notice for notice in request.notices if request.is_new(notice)]
        if self._prepared.note:
            notes.append(self._prepared.note)
        return notes

    def build_run_end(self) -> RunDone:
        """Return how the run ended, with all its output, and what this call cost."""
        totals = self._totals
        usages = totals.own_usages
        cost = None
        if usages:
            facts = resolve_model(self._request.parameters.model).facts
            cost = cost_of_run(usages, facts, (), utc_today())
        return RunDone(
            ending=self._run_end.ending,
            usage=totals.usage,
            last_usage=totals.last_usage,
            output=tuple(self._transcript.output),
            trace=self._run_end.trace,
            cost=cost,
        )

    async def run(self) -> AsyncGenerator[AgentEvent, None]:
        """Run round after round; yield what happens."""
        for source in self._prepared.sources:
            yield source
        resumes = bool(self._prepared.earlier_rounds.open_turn)
        while self._continues:
            round_ = self._resume_round() if resumes else self._run_round()
            resumes = False
            async with aclosing(round_) as events:
                async for event in events:
                    yield event
            self._heed_safety_stop()

    def _heed_safety_stop(self) -> None:
        """End the run if one of its tasks was stopped: its other actions are related.

        OpenAI's guide "Safety checks: misalignment monitoring" has clients stop all that
        belongs to the request. The host does not call again either.
        """
        stop = self._totals.safety_stop
        if stop is not None:
            self._run_end = stop
            self._continues = False
            self.is_over = True

    async def _resume_round(self) -> AsyncGenerator[AgentEvent, None]:
        """Continue with the calls of an answer that waited for approvals."""
        number = self._totals.rounds
        step = self._steps.start("round", f"ROUND {number}")
        yield step
        open_turn = self._prepared.earlier_rounds.open_turn
        decisions = await self._decide_calls(open_turn, number)
        if decisions.questions:
            for event in self._round_calls.ask(decisions):
                yield event
        else:
            for call in decisions.calls:  # the host was not shown them before
                for event in self._transcript.build_call_events(call):
                    yield event
            async with aclosing(self._round_calls.run(decisions, step)) as events:
                async for event in events:
                    yield event
        yield self._steps.end(step)

    async def _run_round(self) -> AsyncGenerator[AgentEvent, None]:
        """Ask the model, then run its calls."""
        self._totals.rounds += 1
        self._delegated = self._totals.delegated_usage
        self._totals.delegated_usage = None
        number = self._totals.rounds
        self._round_began = self._totals.seconds
        tools = self._prepared.request.tools
        self._continues = bool(tools) and self._totals.may_call(number)
        step = self._steps.start("round", f"ROUND {number}", may_call=self._continues)
        yield StateChanged("thinking")
        yield step
        answer = AnswerEvents(
            self._transcript.next_index,
            self._prepared.names.own_name,
            holds_calls=self._continues and self._round_calls.may_ask,
        )
        for part in (self._run_model(step, answer), self._run_calls(step, answer)):
            async with aclosing(part) as events:
                async for event in events:
                    yield event
        yield self._steps.end(step, failed=self._run_end.ending.is_failure)

    async def _run_model(
        self, round_step: StepStarted, answer: AnswerEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        """Yield the answer of the model, as a step of the round."""
        label = f"{self._prepared.model.id} Thought"
        step = self._steps.start("model", label, parent=round_step.id)
        yield step
        tools = self._prepared.request.tools if round_step.may_call else None
        events = self._provider.generate(self._transcript.history, tools or ())
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ModelAnswer):
                    self._run_end = event.run_end
                else:
                    for passed in answer.process(event):
                        yield passed
        self._totals.add_turn(self._run_end)
        yield self._steps.end(
            step, usage=self._run_end.usage, failed=self._run_end.ending.is_failure
        )

    async def _run_calls(
        self, step: StepStarted, answer: AnswerEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        """Decide about the calls of an answer, run ours, leave others to the host."""
        self.answer = [answer.items[index] for index in sorted(answer.items)]
        self._transcript.add_answer(self.answer)
        self._transcript.next_index = answer.next_index
        if self._run_end.ending.is_failure:
            self._continues = False
            for held in answer.held_events:
                yield held
            return
        decisions = await self._decide_calls(self.answer, self._totals.rounds)
        self._continues = self._continues and bool(decisions.calls)
        for released in self._release_held(answer, decisions):
            yield released
        yield self._build_round_end(answer)
        if decisions.questions:
            return
        async with aclosing(self._round_calls.run(decisions, step)) as events:
            async for event in events:
                yield event
        if decisions.host_call_ids and decisions.own_calls:
            yield self._build_round_end(answer)

    async def _decide_calls(self, items: Iterable[Item], number: int) -> CallDecisions:
        """Return what happens to the calls of a round, under their tools' own names."""
        own_name = self._prepared.names.own_name
        calls = [
            {**item, "name": own_name(str(item["name"]))}
            for item in items
            if is_call(item)
        ]
        limit = self._totals.limit_error(number)
        decisions = await self._round_calls.decide(calls, limit)
        if decisions.questions or decisions.host_call_ids:
            self.is_over = False
            self._continues = False
        return decisions

    def _release_held(
        self, answer: AnswerEvents, decisions: CallDecisions
    ) -> Iterator[AgentEvent]:
        """Yield what was held back; questions take the place of the calls."""
        if not decisions.questions:
            yield from answer.held_events
            return
        for event in answer.held_without_calls():
            if isinstance(event, ResponseDone):
                yield from self._round_calls.ask(decisions)
            yield event

    def _build_round_end(self, answer: AnswerEvents) -> RoundEnded:
        """Return the end of a round, with the notes for later rounds."""
        usage = add_usage(self._run_end.usage, self._delegated)
        usage = add_usage(usage, self._totals.delegated_usage)
        notes = {
            "style": self._prepared.style,
            "usage": usage._asdict() if usage else {},
            "seconds": round(self._totals.seconds - self._round_began, 3),
            "failed": self._round_calls.failed_calls(),
            "allowed": sorted(self._round_calls.new_permissions),
        }
        return RoundEnded(
            name=str(self._totals.rounds),
            items=tuple(sorted(answer.items.items())),
            notes=notes,
            continues=not self.is_over,
        )


MakeProvider = Callable[[AgentRequest, PreparedRun], Provider]


async def run_agent(
    request: AgentRequest, make_provider: MakeProvider = ResponsesProvider
) -> AsyncGenerator[AgentEvent, None]:
    """Answer a question; yield what happens.

    An invalid request is an ending, not an exception. Exactly one RunDone comes;
    ReadyForInput is the last event, unless the host has to go on first.
    """
    totals = RunTotals(request.parameters)
    agent: _Agent | None = None
    kind = "cancelled"
    try:
        try:
            agent = await _start_agent(request, make_provider, totals)
        except ResponsesError as refused:
            ended = RunDone(ending_of_exception(refused, has_begun=False))
        else:
            async with aclosing(agent.run()) as events:
                async for event in events:
                    yield event
            ended = agent.build_run_end()
        kind = ended.ending.kind
        if agent is not None and not agent.is_over:
            yield ended
            return
        text = read_answer_text(agent.answer) if agent else ""
        notes = agent.take_notes() if agent else []
        metadata = _build_metadata(request, totals, kind)
        for event in _final_events(ended, text, metadata, notes):
            yield event
    finally:
        if agent is None or agent.is_over:
            request.on_end(_build_metadata(request, totals, kind))


async def _start_agent(
    request: AgentRequest, make_provider: MakeProvider, totals: RunTotals
) -> _Agent:
    """Return the agent for a request; raises ResponsesError."""
    steps = StepLog(request.log, debug=request.debug)

    async def run_task(task: AgentRequest, task_totals: RunTotals) -> ToolResult:
        task_steps = steps.begin_task()
        prepared = prepare_run(task)
        provider = make_provider(task, prepared)
        agent = _Agent(task, prepared, provider, task_totals, task_steps)
        async with aclosing(agent.run()) as events:
            async for event in events:
                steps.report(event)
        ending = agent.build_run_end().ending
        if ending.code == MISALIGNMENT:  # its words are for people, not for a model
            return tool_error("the task was stopped.")
        if ending.is_failure:
            return tool_error(ending.sentence)
        return ToolResult(read_answer_text(agent.answer))

    own = request.own_tools
    if own.delegates:
        slots = asyncio.Semaphore(MAX_TASKS_AT_ONCE)
        tools = (DelegateTool(request, totals, run_task, slots), *own.tools)
        request = request._replace(own_tools=own._replace(tools=tools))
    size = count_entries(request.messages, 3)
    prepared = await run_work(size, partial(prepare_run, request))
    earlier = prepared.earlier_rounds
    totals.add_earlier(earlier.rounds, earlier.calls, earlier.usage, earlier.seconds)
    provider = make_provider(request, prepared)
    return _Agent(request, prepared, provider, totals, steps)


def _final_events(
    ended: RunDone, text: str, metadata: RunMetadata, notes: Iterable[str]
) -> Iterator[AgentEvent]:
    """Yield what ends an answer that is complete."""
    failed = ended.ending.is_failure
    if text and not failed:
        yield NewMessage(text)
    yield ExecutionEnded(metadata)
    for note in notes:  # the page shows the last line of all
        yield Status(note)
    yield ended
    yield StateChanged("failed" if failed else "idle")
    yield ReadyForInput()


def _build_metadata(
    request: AgentRequest, totals: RunTotals, ending: str
) -> RunMetadata:
    """Return what an answer took; the price is 0 if it is unknown."""
    model = resolve_model(request.parameters.model)
    price = cost_of_run(totals.usages, model.facts, (), utc_today())
    return RunMetadata(
        strategy=request.strategy,
        model=model.id,
        ending=ending,
        rounds=totals.rounds,
        tool_calls=totals.calls,
        latency=totals.seconds,
        price=price or 0.0,
        usage=totals.total_usage,
    )
