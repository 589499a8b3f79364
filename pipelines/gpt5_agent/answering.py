"""The events of a round's calls: a person asked, or each call with its answer."""

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from gpt5_agent.calling import Calling, SortedCalls
from gpt5_agent.confirmations import question_call, requested
from gpt5_agent.events import AgentEvent, StateChanged, StepStarted
from gpt5_agent.ledger import Ledger
from gpt5_agent.steps import Steps
from gpt5_agent.transcript import Transcript


class Answering:
    """Answers calls, and tells of it."""

    def __init__(
        self, calling: Calling, steps: Steps, transcript: Transcript, ledger: Ledger
    ) -> None:
        """Write the outputs to `transcript`, their number to `ledger`."""
        self._calling = calling
        self._steps = steps
        self._transcript = transcript
        self._ledger = ledger

    def questions(self, found: SortedCalls) -> Iterator[AgentEvent]:
        """Yield what asks a person; the host shows a card for it."""
        requests = [requested(call) for call in found.questions]
        yield from requests
        yield from self._transcript.shown_call(question_call(requests))
        yield StateChanged("waiting_for_confirmation")

    def shown_again(self, found: SortedCalls) -> Iterator[AgentEvent]:
        """Yield the calls that were held back from the host until now."""
        for call in found.calls:
            yield from self._transcript.shown_call(call)

    async def answers(
        self, found: SortedCalls, round_step: StepStarted
    ) -> AsyncGenerator[AgentEvent, None]:
        """Answer the calls that are ours; yield each with its step of the log."""
        self._ledger.calls += len(found.calls)
        made = [call for call in found.ours if call["call_id"] not in found.refused]
        if made:
            yield StateChanged("executing_tool")
        steps: dict[str, StepStarted] = {}
        for call in made:
            step = self._steps.start(
                "tool",
                f"CALL {call['name']}",
                parent=round_step.id,
                detail=str(call.get("arguments", "")),
            )
            steps[call["call_id"]] = step
            yield step
        async with aclosing(self._calling.answers(found)) as answers:
            async for call, answer in answers:
                yield self._transcript.add_output(call, answer)
                if call["call_id"] in steps:
                    yield self._steps.end(
                        steps[call["call_id"]],
                        failed=answer.failed,
                        detail=str(answer.output),
                    )
        if found.left:
            yield StateChanged("waiting_for_tools")
