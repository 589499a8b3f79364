"""A whole request, as a stream of run events.

The loop knows neither host nor valve: what it needs comes in frozen inputs, what
happens goes out as events, and the last of them says how the run ended.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from openai_responses.clock import monotonic_seconds
from openai_responses.endings import CUT, Ending
from openai_responses.errors import MalformedEvent, ResponsesError
from openai_responses.events import (
    ResponseEnded,
    StreamEvent,
    joined_deltas,
    parse_event,
)
from openai_responses.request import ResponsesRequest
from openai_responses.run_events import Grew, RunEnded, RunEvent
from openai_responses.sse import EventStreamDecoder, ServerSentEvent
from openai_responses.transport import Answer, Connections, Endpoint
from openai_responses.turn import Turn


@dataclass(frozen=True, slots=True)
class Limits:
    """How a run behaves towards those who watch it.

    `join_seconds` is the shortest time between two events that show more of an
    answer; what arrives meanwhile is shown together.
    """

    join_seconds: float = 0.05


_THOUGHT_SHARE = 0.2
"""Growing reasoning is read for a fifth of that time at once, because the first words
of the answer must not wait for it."""


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
) -> AsyncGenerator[RunEvent, None]:
    """Send `request` and report what happens; ends with exactly one RunEnded.

    Raises nothing of ours: a refusal is an ending. Cancelling it, or closing the
    generator, closes the connection.
    """
    turn = Turn()
    failure: Ending | None = None
    payload = request.payload()
    try:
        async with connections.post(endpoint, "/responses", payload) as answer:
            async with aclosing(_turn_events(answer, turn, limits)) as events:
                async for event in events:
                    yield event
            await answer.drain()
    except ResponsesError as error:
        failure = _ending_of_error(error, turn)
    for event in turn.close():
        yield event
    ending = turn.ending or failure or CUT
    yield RunEnded(ending, turn.usage, turn.usage, tuple(turn.output))


def _ending_of_error(error: ResponsesError, turn: Turn) -> Ending:
    """Return how a run ended that one of our errors stopped."""
    return CUT if turn.has_begun else Ending("refused", sentence=str(error))


async def _turn_events(
    answer: Answer, turn: Turn, limits: Limits
) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of one response, streamed or not."""
    if not answer.is_stream:
        response = await answer.response_object()
        status = str(response.get("status") or "completed")
        for event in turn.feed(ResponseEnded(status, response)):
            yield event
        return
    async with aclosing(_batches(answer)) as batches:
        async for batch in batches:
            began = monotonic_seconds()
            events, malformed = _told(batch, turn)
            for told in events:
                yield told
            if malformed:
                raise malformed
            if turn.ending:
                return
            await _let_deltas_gather(events, began, limits)


def _told(
    batch: list[ServerSentEvent], turn: Turn
) -> tuple[list[RunEvent], MalformedEvent | None]:
    """Return what `batch` means, up to the first event that cannot be read.

    Deltas are joined before the turn takes them: it then works once a batch.
    """
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            read.append(parse_event(event))
    except MalformedEvent as error:
        malformed = error
    events = [told for event in joined_deltas(read) for told in turn.feed(event)]
    return events, malformed


async def _batches(answer: Answer) -> AsyncGenerator[list[ServerSentEvent], None]:
    """Yield the events of each piece of the body that arrived."""
    decoder = EventStreamDecoder()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            yield decoder.feed(chunk)
    yield decoder.close()


async def _let_deltas_gather(
    events: list[RunEvent], began: float, limits: Limits
) -> None:
    """Leave what follows a delta in the connection's buffer for a moment.

    Reading less often is what makes long answers cheap: one pass then serves all the
    deltas that arrived. The first delta after a pause is never held back.
    """
    last = events[-1] if events else None
    if not isinstance(last, Grew) or limits.join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = monotonic_seconds() - began
    await asyncio.sleep(max(0.0, limits.join_seconds * share - spent))
