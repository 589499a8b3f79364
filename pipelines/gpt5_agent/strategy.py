"""The strategies `gpt5_function_calling`, `gpt5_react`: one loop under two names.

The seed's second strategy inherits all of the first (seed 001 §6).
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing

from gpt5_agent.agent import Agent
from gpt5_agent.asked import AgentAsked
from gpt5_agent.events import (
    AgentEvent,
    ExecutionEnded,
    Metadata,
    NewMessage,
    ReadyForInput,
    StateChanged,
)
from gpt5_agent.ledger import Ledger
from gpt5_agent.ports import Provider
from gpt5_agent.preparation import Prepared, prepare_agent
from gpt5_agent.provider import ProviderConfig, ResponsesProvider
from gpt5_agent.thoughts import answer_text
from openai_responses.endings import ending_of_exception
from openai_responses.errors import ResponsesError
from openai_responses.loop.events import RunDone
from openai_responses.models.resolve import resolve_model

STRATEGIES = ("gpt5_function_calling", "gpt5_react")

MakeProvider = Callable[[AgentAsked, Prepared], Provider]


def responses_provider(asked: AgentAsked, prepared: Prepared) -> Provider:
    """Return the Responses API as a provider."""
    return ResponsesProvider(
        ProviderConfig(
            prepared.request,
            asked.endpoint,
            asked.connections,
            asked.limits,
            tools_ran=prepared.earlier.has_begun,
        )
    )


async def run_agent(
    asked: AgentAsked, make_provider: MakeProvider = responses_provider
) -> AsyncGenerator[AgentEvent, None]:
    """Answer a question; yield what happens.

    Raises nothing of ours: what cannot be asked is an ending. Exactly one RunEnded
    comes; ReadyForInput is the last event, unless the host has to go on first.
    """
    ledger = Ledger(asked.budget, asyncio.get_running_loop().time)
    agent, kind = None, "cancelled"
    try:
        try:
            agent = _agent(asked, make_provider, ledger)
        except ResponsesError as refused:
            ended = RunDone(ending_of_exception(refused, has_begun=False))
        else:
            async with aclosing(agent.rounds()) as events:
                async for event in events:
                    yield event
            ended = agent.ended()
        kind = ended.ending.kind
        text = answer_text(agent.answer) if agent else ""
        metadata = _metadata(asked, ledger, kind)
        over = agent is None or agent.is_over
        for last in _last_events(ended, text, metadata) if over else (ended,):
            yield last
    finally:
        if agent is None or agent.is_over:
            asked.ended(_metadata(asked, ledger, kind))


def _agent(asked: AgentAsked, make_provider: MakeProvider, ledger: Ledger) -> Agent:
    """Return the agent; raises InvalidRequest for what cannot be asked."""
    prepared = prepare_agent(asked)
    earlier = prepared.earlier
    ledger.resume(earlier.rounds, earlier.calls, earlier.usage, earlier.seconds)
    return Agent(asked, prepared, make_provider(asked, prepared), ledger)


def _last_events(ended: RunDone, text: str, metadata: Metadata) -> Iterator[AgentEvent]:
    """Yield how a whole answer ends."""
    failed = ended.ending.is_failure
    if text and not failed:
        yield NewMessage(text)
    yield ExecutionEnded(metadata)
    yield ended
    yield StateChanged("failed" if failed else "idle")
    yield ReadyForInput()


def _metadata(asked: AgentAsked, ledger: Ledger, ending: str) -> Metadata:
    model = resolve_model(asked.model)
    prices = asked.prices or model.facts.prices
    return ledger.metadata(asked.strategy, model.id, ending, prices)
