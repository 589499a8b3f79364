"""The agent's loop: the model answers, its calls are answered, until it is done.

A round is an answer of the model with its calls. At a limit the calls that are pending
are told so, and one last answer is asked for that may call nothing. Where the host has
to make a call, or to ask a person, the loop ends before its time.
"""

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import aclosing

from gpt5_agent.answering import Answering
from gpt5_agent.asked import AgentAsked
from gpt5_agent.calling import Calling, SortedCalls
from gpt5_agent.events import AgentEvent, RoundEnded, StateChanged, StepStarted
from gpt5_agent.ledger import Ledger, usage_wire
from gpt5_agent.ports import Generation, Provider
from gpt5_agent.preparation import Prepared
from gpt5_agent.sound import SoundEvents
from gpt5_agent.steps import Steps
from gpt5_agent.transcript import Transcript
from openai_responses.clock import monotonic_seconds
from openai_responses.endings import COMPLETED
from openai_responses.items import Item, is_call
from openai_responses.loop.events import ResponseDone, RunDone, Status


class Agent:
    """One run of the loop.

    `is_over` says whether the answer is whole: else the host calls again. `answer`
    holds the items of the last round.
    """

    def __init__(
        self,
        asked: AgentAsked,
        prepared: Prepared,
        provider: Provider,
        ledger: Ledger,
    ) -> None:
        """Send nothing yet."""
        self.is_over = True
        self.answer: list[Item] = []
        self._prepared = prepared
        self._provider = provider
        self._ledger = ledger
        self._steps = Steps(asked.log, monotonic_seconds, debug=asked.debug)
        self._transcript = Transcript(prepared.request.input)
        self._calling = Calling(asked, prepared, ledger)
        self._answering = Answering(
            self._calling, self._steps, self._transcript, ledger
        )
        self._goes_on = True
        self._round_began = 0.0
        self._ended = RunDone(COMPLETED)

    def ended(self) -> RunDone:
        """Return how the run ended, with all that came of it."""
        ledger, last = self._ledger, self._ended
        output = tuple(self._transcript.output)
        return RunDone(last.ending, ledger.usage, ledger.last_usage, output, last.trace)

    async def rounds(self) -> AsyncGenerator[AgentEvent, None]:
        """Go round after round; yield what happens."""
        if self._prepared.note:
            yield Status(self._prepared.note)
        for source in self._prepared.sources:
            yield source
        first = self._resumed() if self._prepared.earlier.open_turn else self._round()
        async with aclosing(first) as events:
            async for event in events:
                yield event
        while self._goes_on:
            async with aclosing(self._round()) as events:
                async for event in events:
                    yield event

    async def _resumed(self) -> AsyncGenerator[AgentEvent, None]:
        """Go on with the calls that waited for a person."""
        number = self._ledger.rounds
        step = self._steps.start("round", f"ROUND {number}")
        yield step
        found = await self._sorted(self._prepared.earlier.open_turn, number)
        if found.questions:
            for event in self._answering.questions(found):
                yield event
        else:
            for event in self._answering.shown_again(found):
                yield event
            async with aclosing(self._answering.answers(found, step)) as events:
                async for event in events:
                    yield event
        yield self._steps.end(step)

    async def _round(self) -> AsyncGenerator[AgentEvent, None]:
        """Let the model answer, then answer its calls."""
        self._ledger.rounds += 1
        number = self._ledger.rounds
        self._round_began = self._ledger.seconds
        tools = self._prepared.request.tools
        self._goes_on = bool(tools) and self._ledger.may_call(number)
        step = self._steps.start("round", f"ROUND {number}", may_call=self._goes_on)
        yield StateChanged("thinking")
        yield step
        sound = SoundEvents(
            self._transcript.next_index,
            self._prepared.names.own_name,
            holds_calls=self._goes_on and self._calling.may_ask,
        )
        async with aclosing(self._model(step, sound)) as events:
            async for event in events:
                yield event
        async with aclosing(self._calls(step, sound)) as events:
            async for event in events:
                yield event
        yield self._steps.end(step, failed=self._ended.ending.is_failure)

    async def _model(
        self, round_step: StepStarted, sound: SoundEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        """Let the model answer; its items end up in `sound`."""
        label = f"{self._prepared.model.id} Thought"
        step = self._steps.start("model", label, parent=round_step.id)
        yield step
        offered = self._prepared.request.tools or ()
        tools = offered if round_step.may_call else ()
        events = self._provider.generate(self._transcript.history, tools)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Generation):
                    self._ended = event.ended
                else:
                    for passed in sound.take(event):
                        yield passed
        usage, failed = self._ended.usage, self._ended.ending.is_failure
        self._ledger.add_turn(usage)
        yield self._steps.end(step, usage=usage, failed=failed)

    async def _calls(
        self, step: StepStarted, sound: SoundEvents
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer the calls of a round, as far as they are ours to answer."""
        self.answer = [sound.items[index] for index in sorted(sound.items)]
        self._transcript.add_answer(self.answer)
        self._transcript.next_index = sound.next_index
        if self._ended.ending.is_failure:
            self._goes_on = False
            for held in sound.held:
                yield held
            return
        found = await self._sorted(self.answer, self._ledger.rounds)
        self._goes_on = self._goes_on and bool(found.calls)
        for released in self._released(sound, found):
            yield released
        yield self._round_ended(sound)
        if found.questions:
            return
        async with aclosing(self._answering.answers(found, step)) as events:
            async for event in events:
                yield event
        if found.left and found.ours:
            yield self._round_ended(sound)

    async def _sorted(self, items: Iterable[Item], number: int) -> SortedCalls:
        """Return what becomes of the calls among the items of a round."""
        original = self._prepared.names.own_name
        calls = [
            {**item, "name": original(str(item["name"]))}
            for item in items
            if is_call(item)
        ]
        found = await self._calling.sort(calls, self._ledger.refusal(number))
        if found.questions or found.left:
            self.is_over = self._goes_on = False
        return found

    def _released(self, sound: SoundEvents, found: SortedCalls) -> Iterator[AgentEvent]:
        """Yield what was held back of an answer, or what asks about its calls."""
        if not found.questions:
            yield from sound.held
            return
        for event in sound.without_calls():
            if isinstance(event, ResponseDone):
                yield from self._answering.questions(found)
            yield event

    def _round_ended(self, sound: SoundEvents) -> RoundEnded:
        notes = {
            "style": self._prepared.style,
            "usage": usage_wire(self._ended.usage),
            "seconds": round(self._ledger.seconds - self._round_began, 3),
            "failed": self._calling.failed_calls(),
        }
        name, items = str(self._ledger.rounds), tuple(sorted(sound.items.items()))
        return RoundEnded(name, items, notes, goes_on=not self.is_over)
