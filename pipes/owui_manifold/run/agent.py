"""An agent's answer: rounds of the loop, until the question is answered.

A round is a response of the model with its calls. The tools and their approvals are
those of any chat (`prepare/agent.py` adds the guard and the budget). What is added here
is what is shown between the tools, and `execution_metadata` at the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing

from openai_responses.endings import Ending
from openai_responses.items import Item, is_call, is_commentary, item_type
from openai_responses.loop.attempts import Attempts, Limits
from openai_responses.loop.events import (
    HiddenMessage,
    ResponseDone,
    RunDone,
    RunEvent,
    RunEvents,
    RunWork,
)
from openai_responses.loop.run import (
    RoundDone,
    RoundEvent,
    RoundEvents,
    RoundStarted,
    run_rounds,
)
from openai_responses.loop.spending import EarlierSpending, Spending
from openai_responses.loop.tools import Toolset
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import (
    ItemAdded,
    ItemDone,
    ItemEvent,
)
from owui_chat.render.chunks import closing_chunk
from owui_manifold.call.agent import AgentMode
from owui_manifold.call.context import page_emitter
from owui_manifold.prepare.request import PreparedRequest
from owui_manifold.present.report import log_metadata
from strategies.merged_calls import MergingProvider

_STOPPED = Ending("cancelled")


def hides_thoughts(agent: AgentMode | None) -> bool:
    """Say whether an agent answers that shows nothing but its answer."""
    return agent is not None and not agent.parameters.emit_intermediate_thoughts


class IntermediateTexts:
    """Decides what is shown of the texts of an agent.

    The answer is the text of the round that calls no tool. If the others are not shown,
    text that may become one of them is held back until that is known: a model that names
    the phase of its messages says it at their beginning, with others a call tells. What
    is hidden is sent to the model again.

    Of the current round, `_may_call` says whether the model may call tools,
    `_has_called` whether it has, and `_has_answer` whether a message is known to be the
    answer. `_hidden` are the hidden messages of the whole run.
    """

    def __init__(self, *, are_shown: bool) -> None:
        """Start before the first round."""
        self._are_shown = are_shown
        self._may_call = False
        self._has_called = False
        self._has_answer = False
        self._held: dict[int, list[RunEvent]] = {}
        """The events of each message that is held back, by its index."""
        self._hidden: list[Item] = []
        self._hidden_indexes: set[int] = set()

    def show(self, event: RunEvent | RoundEvent) -> Iterator[RunEvent]:
        """Yield what is shown of an event; rounds themselves are not."""
        match event:
            case RoundStarted():
                self._may_call = event.may_call
                self._has_called = False
                self._has_answer = False
            case RoundDone():
                return
            case _ if self._are_shown:
                yield event
            case ItemAdded() if is_call(event.item):
                self._has_called = True
                yield from self._hide(self._held)
                yield event
            case ItemAdded() if event.item.get("phase") == "final_answer":
                self._has_answer = True
                yield from self._hide(self._held)
                yield event
            case ResponseDone():
                yield from self._release()
                yield event
            case RunDone():
                yield from self._release()
                yield event._replace(output=self._shown_items(event.output))
            case ItemDone() if event.output_index in self._hidden_indexes:
                self._hidden.append(event.item)  # it went on, and ends again
                yield HiddenMessage(event.output_index, event.item)
            case _:
                is_held = self._hold(event)
                if not is_held:
                    yield event

    def _hold(self, event: RunEvent) -> bool:
        """Hold an event back if it belongs to a message that may be hidden.

        Returns whether it is held.
        """
        if not isinstance(event, ItemEvent):
            return False
        if event.output_index in self._hidden_indexes:
            return True
        begins = isinstance(event, ItemAdded) and item_type(event.item) == "message"
        if begins and self._may_call:
            self._held[event.output_index] = []
        if event.output_index not in self._held:
            return False
        if isinstance(event, ItemDone) and item_type(event.item) != "message":
            # Its text was a thought (loop/tagged_thoughts.py), which is nowhere.
            del self._held[event.output_index]
            return True
        self._held[event.output_index].append(event)
        return True

    def _release(self) -> Iterator[RunEvent]:
        """Yield what is left at the end of a response.

        Commentary is the answer only if there is no other.
        """
        for events in self._held.values():
            if not _is_commentary_message(events):
                self._has_answer = True
        for index, events in list(self._held.items()):
            is_step = _is_commentary_message(events) and self._has_answer
            if self._has_called or is_step:
                yield from self._hide([index])
            else:
                yield from events
        self._held = {}

    def _hide(self, indexes: Iterable[int]) -> Iterator[RunEvent]:
        """Yield the messages at `indexes` as hidden ones, if they are complete."""
        for index in list(indexes):  # a copy: hidden messages leave `_held`
            last = self._held[index][-1]
            if isinstance(last, ItemDone):
                del self._held[index]
                self._hidden.append(last.item)
                self._hidden_indexes.add(index)
                yield HiddenMessage(index, last.item)

    def _shown_items(self, output: Sequence[Item]) -> tuple[Item, ...]:
        """Return the output of a run without what is hidden."""
        hidden = {id(item) for item in self._hidden}
        return tuple(item for item in output if id(item) not in hidden)


def _is_commentary_message(events: Sequence[RunEvent]) -> bool:
    """Say whether the events are those of commentary."""
    first = events[0]
    return isinstance(first, ItemAdded) and is_commentary(first.item)


async def run_agent(
    prepared: PreparedRequest,
    toolset: Toolset,
    limits: Limits,
    connections: Connections,
) -> RunEvents:
    """Run round after round; ends with exactly one RunDone, which says what they took.

    Of an answer that is stopped the log and the page are told, too.
    """
    spending = Spending(toolset.budget)
    spending.add_earlier(toolset.earlier)
    attempts = Attempts(prepared.call.endpoint, connections, limits)
    rounds = run_rounds(
        prepared.request,
        MergingProvider(attempts),
        toolset,
        spending,
    )
    texts = IntermediateTexts(are_shown=not hides_thoughts(prepared.call.agent))
    has_ended = False
    try:
        async with aclosing(_shown_events(rounds, texts)) as events:
            async for event in events:
                if isinstance(event, RunDone):
                    has_ended = True
                    work = _work_of(spending, toolset.earlier)
                    yield event._replace(work=work)
                else:
                    yield event
    finally:
        if not has_ended:
            work = _work_of(spending, toolset.earlier)
            _report_stop(prepared, spending, work, connections)


async def _shown_events(rounds: RoundEvents, texts: IntermediateTexts) -> RunEvents:
    """Yield what people see of the rounds."""
    async with aclosing(rounds) as events:
        async for event in events:
            for shown in texts.show(event):
                yield shown


def _work_of(spending: Spending, earlier: EarlierSpending) -> RunWork:
    """Return what this run took, as do its tokens, without earlier runs."""
    rounds = spending.rounds - earlier.rounds
    calls = spending.calls - earlier.calls
    return RunWork(rounds, calls, spending.seconds)


def _report_stop(
    prepared: PreparedRequest,
    spending: Spending,
    work: RunWork,
    connections: Connections,
) -> None:
    """Tell the log and the page what an answer took that is stopped.

    Nothing is awaited here, because the run is being closed.
    """
    ended = RunDone(
        _STOPPED,
        usage=spending.usage,
        usages=tuple(spending.usages),
        work=work,
    )
    call = prepared.call
    metadata = log_metadata(prepared, ended, work)
    if not call.config.shows_cost:
        metadata = metadata._replace(cost=None)
    emit = page_emitter(call.caller, call.host)
    if emit:
        chunk = closing_chunk(metadata.describe(), metadata.wire())
        connections.do_later(emit(chunk["event"]))
