"""The agent's loop: the model answers, its calls are run, until there are no more calls.

A round is one answer of the model with its calls. At a limit the pending calls are
refused and the model is asked once more without tools. Where the host has to run a call
or ask a person, the loop ends early and the host calls again. The strategies
`gpt5_function_calling` and `gpt5_react` are one loop under two names.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import aclosing

from gpt5_agent.agent.accounting import RunTotals, StepLog, dump_usage
from gpt5_agent.agent.calls import CallDecisions, CallEvents, RoundCalls
from gpt5_agent.agent.preparation import PreparedRun, prepare_run
from gpt5_agent.agent.provider import ProviderConfig, ResponsesProvider
from gpt5_agent.agent.thoughts import read_answer_text
from gpt5_agent.agent.transcript import AnswerEvents, Transcript
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    NewMessage,
    ReadyForInput,
    RoundEnded,
    RunMetadata,
    StateChanged,
    StepStarted,
)
from gpt5_agent.ports import ModelAnswer, Provider
from gpt5_agent.request import AgentRequest
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import COMPLETED, ending_of_exception
from openai_responses.errors import ResponsesError
from openai_responses.items import Item, is_call
from openai_responses.loop.events import ResponseDone, RunDone, Status
from openai_responses.models.resolve import resolve_model


class Agent:
    """One run of the loop.

    `is_over` says whether the answer is complete; if not, the host calls again.
    `answer` holds the items of the last round.
    """

    def __init__(
        self,
        asked: AgentRequest,
        prepared: PreparedRun,
        provider: Provider,
        totals: RunTotals,
    ) -> None:
        """Send nothing yet."""
        self.is_over = True
        self.answer: list[Item] = []
        self._prepared = prepared
        self._provider = provider
        self._totals = totals
        self._steps = StepLog(asked.log, monotonic_seconds, debug=asked.debug)
        self._transcript = Transcript(prepared.request.input)
        self._round_calls = RoundCalls(asked, prepared, totals)
        self._call_events = CallEvents(
            self._round_calls, self._steps, self._transcript, totals
        )
        self._continues = True
        self._round_began = 0.0
        self._run_end = RunDone(COMPLETED)

    def build_run_end(self) -> RunDone:
        """Return how the run ended, with all its output."""
        totals, last = self._totals, self._run_end
        output = tuple(self._transcript.output)
        return RunDone(last.ending, totals.usage, totals.last_usage, output, last.trace)

    async def run(self) -> AsyncGenerator[AgentEvent, None]:
        """Run round after round; yield what happens."""
        if self._prepared.note:
            yield Status(self._prepared.note)
        for source in self._prepared.sources:
            yield source
        resumes = bool(self._prepared.earlier_rounds.open_turn)
        while self._continues:
            round_ = self._resume_round() if resumes else self._run_round()
            resumes = False
            async with aclosing(round_) as events:
                async for event in events:
                    yield event

    async def _resume_round(self) -> AsyncGenerator[AgentEvent, None]:
        number = self._totals.rounds
        step = self._steps.start("round", f"ROUND {number}")
        yield step
        found = await self._decide_calls(
            self._prepared.earlier_rounds.open_turn, number
        )
        if found.questions:
            for event in self._call_events.ask(found):
                yield event
        else:
            for event in self._call_events.show_calls(found):
                yield event
            async with aclosing(self._call_events.run(found, step)) as events:
                async for event in events:
                    yield event
        yield self._steps.end(step)

    async def _run_round(self) -> AsyncGenerator[AgentEvent, None]:
        self._totals.rounds += 1
        number = self._totals.rounds
        self._round_began = self._totals.seconds
        tools = self._prepared.request.tools
        self._continues = bool(tools) and self._totals.may_call(number)
        step = self._steps.start("round", f"ROUND {number}", may_call=self._continues)
        yield StateChanged("thinking")
        yield step
        sound = AnswerEvents(
            self._transcript.next_index,
            self._prepared.names.own_name,
            holds_calls=self._continues and self._round_calls.may_ask,
        )
        async with aclosing(self._run_model(step, sound)) as events:
            async for event in events:
                yield event
        async with aclosing(self._run_calls(step, sound)) as events:
            async for event in events:
                yield event
        yield self._steps.end(step, failed=self._run_end.ending.is_failure)

    async def _run_model(
        self, round_step: StepStarted, sound: AnswerEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        label = f"{self._prepared.model.id} Thought"
        step = self._steps.start("model", label, parent=round_step.id)
        yield step
        offered = self._prepared.request.tools or ()
        tools = offered if round_step.may_call else ()
        events = self._provider.generate(self._transcript.history, tools)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, ModelAnswer):
                    self._run_end = event.run_end
                else:
                    for passed in sound.process(event):
                        yield passed
        usage, failed = self._run_end.usage, self._run_end.ending.is_failure
        self._totals.add_turn(usage)
        yield self._steps.end(step, usage=usage, failed=failed)

    async def _run_calls(
        self, step: StepStarted, sound: AnswerEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        self.answer = [sound.items[index] for index in sorted(sound.items)]
        self._transcript.add_answer(self.answer)
        self._transcript.next_index = sound.next_index
        if self._run_end.ending.is_failure:
            self._continues = False
            for held in sound.held_events:
                yield held
            return
        found = await self._decide_calls(self.answer, self._totals.rounds)
        self._continues = self._continues and bool(found.calls)
        for released in self._release_held(sound, found):
            yield released
        yield self._build_round_end(sound)
        if found.questions:
            return
        async with aclosing(self._call_events.run(found, step)) as events:
            async for event in events:
                yield event
        if found.host_call_ids and found.own_calls:
            yield self._build_round_end(sound)

    async def _decide_calls(self, items: Iterable[Item], number: int) -> CallDecisions:
        original = self._prepared.names.own_name
        calls = [
            {**item, "name": original(str(item["name"]))}
            for item in items
            if is_call(item)
        ]
        found = await self._round_calls.decide(calls, self._totals.limit_error(number))
        if found.questions or found.host_call_ids:
            self.is_over = self._continues = False
        return found

    def _release_held(
        self, sound: AnswerEvents, found: CallDecisions
    ) -> Iterator[AgentEvent]:
        if not found.questions:
            yield from sound.held_events
            return
        for event in sound.held_without_calls():
            if isinstance(event, ResponseDone):
                yield from self._call_events.ask(found)
            yield event

    def _build_round_end(self, sound: AnswerEvents) -> RoundEnded:
        notes = {
            "style": self._prepared.style,
            "usage": dump_usage(self._run_end.usage),
            "seconds": round(self._totals.seconds - self._round_began, 3),
            "failed": self._round_calls.failed_calls(),
        }
        name, items = str(self._totals.rounds), tuple(sorted(sound.items.items()))
        return RoundEnded(name, items, notes, goes_on=not self.is_over)


STRATEGIES = ("gpt5_function_calling", "gpt5_react")

MakeProvider = Callable[[AgentRequest, PreparedRun], Provider]


def make_responses_provider(asked: AgentRequest, prepared: PreparedRun) -> Provider:
    """Return the Responses API as a provider."""
    return ResponsesProvider(
        ProviderConfig(
            prepared.request,
            asked.endpoint,
            asked.connections,
            asked.limits,
            tools_ran=prepared.earlier_rounds.is_continuation,
        )
    )


async def run_agent(
    asked: AgentRequest, make_provider: MakeProvider = make_responses_provider
) -> AsyncGenerator[AgentEvent, None]:
    """Answer a question; yield what happens.

    Raises nothing of ours: what cannot be asked is an ending. Exactly one RunDone
    comes; ReadyForInput is the last event, unless the host has to go on first.
    """
    totals = RunTotals(asked.budget, asyncio.get_running_loop().time)
    agent, kind = None, "cancelled"
    try:
        try:
            agent = _start_agent(asked, make_provider, totals)
        except ResponsesError as refused:
            ended = RunDone(ending_of_exception(refused, has_begun=False))
        else:
            async with aclosing(agent.run()) as events:
                async for event in events:
                    yield event
            ended = agent.build_run_end()
        kind = ended.ending.kind
        text = read_answer_text(agent.answer) if agent else ""
        metadata = _build_metadata(asked, totals, kind)
        over = agent is None or agent.is_over
        for last in _final_events(ended, text, metadata) if over else (ended,):
            yield last
    finally:
        if agent is None or agent.is_over:
            asked.on_end(_build_metadata(asked, totals, kind))


def _start_agent(
    asked: AgentRequest, make_provider: MakeProvider, totals: RunTotals
) -> Agent:
    prepared = prepare_run(asked)
    earlier = prepared.earlier_rounds
    totals.add_earlier(earlier.rounds, earlier.calls, earlier.usage, earlier.seconds)
    return Agent(asked, prepared, make_provider(asked, prepared), totals)


def _final_events(
    ended: RunDone, text: str, metadata: RunMetadata
) -> Iterator[AgentEvent]:
    failed = ended.ending.is_failure
    if text and not failed:
        yield NewMessage(text)
    yield ExecutionEnded(metadata)
    yield ended
    yield StateChanged("failed" if failed else "idle")
    yield ReadyForInput()


def _build_metadata(asked: AgentRequest, totals: RunTotals, ending: str) -> RunMetadata:
    model = resolve_model(asked.model)
    prices = asked.prices or model.facts.prices
    return totals.metadata(asked.strategy, model.id, ending, prices)
