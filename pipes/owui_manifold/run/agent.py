"""An agent's answer: rounds of the loop, until the question is answered.

A round is a response of the model with its calls. The tools and their approvals are
those of any chat (`prepare/toolset.py` adds the guard). What is added here is what is
shown between the tools, and `execution_metadata` at the end.
"""

from contextlib import aclosing

from manifold.views import log_metadata, metadata_chunk
from openai_responses.endings import Ending
from openai_responses.loop.attempt import Limits
from openai_responses.loop.attempts import Attempts
from openai_responses.loop.events import RunDone, RunEvents
from openai_responses.loop.run import RoundDone, RoundStarted, run_rounds
from openai_responses.loop.spending import Spending
from openai_responses.transport.connections import Connections
from owui_manifold.call.agent import AgentMode
from owui_manifold.prepare.request import Prepared
from owui_manifold.present.report import shown_to_user, work_of
from strategies.merged_calls import MergingProvider
from strategies.thoughts import IntermediateTexts

_STOPPED = Ending("cancelled")


async def run_agent(
    prepared: Prepared,
    agent: AgentMode,
    limits: Limits,
    connections: Connections,
    spending: Spending,
) -> RunEvents:
    """Run round after round; ends with exactly one RunDone.

    Of an answer that is stopped the log and the page are told what it took.
    """
    attempts = Attempts(prepared.call.endpoint, connections, limits)
    provider = MergingProvider(attempts)
    rounds = run_rounds(prepared.request, provider, prepared.toolset, spending)
    texts = IntermediateTexts(are_shown=agent.parameters.emit_intermediate_thoughts)
    has_ended = False
    try:
        async with aclosing(rounds) as events:
            async for event in events:
                if isinstance(event, RoundStarted):
                    texts.begin_round(may_call=event.may_call)
                elif not isinstance(event, RoundDone):
                    for shown in texts.feed(event):
                        has_ended = has_ended or isinstance(shown, RunDone)
                        yield shown
    finally:
        if not has_ended:
            # Nothing is awaited here, because the run is being closed.
            ended = RunDone(
                _STOPPED, usage=spending.usage, usages=tuple(spending.usages)
            )
            call = prepared.call
            took = work_of(prepared, ended, spending)
            log_metadata(call.log, took)
            emit = call.page_emitter()
            if emit:
                chunk = metadata_chunk(shown_to_user(call, took))
                connections.do_later(emit(chunk["event"]))
