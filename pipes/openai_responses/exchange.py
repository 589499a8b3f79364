"""One request sent, its answer told as run events."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field

from openai_responses.compat import strict_payload
from openai_responses.cursor import Cursor
from openai_responses.deadlines import Deadlines, Timeouts
from openai_responses.endpoint import Endpoint
from openai_responses.errors import MalformedEvent
from openai_responses.event_reader import parse_event
from openai_responses.events import ResponseEnded, StreamEvent, joined_deltas
from openai_responses.received import Answer
from openai_responses.request import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.run_events import Grew, RunEvent, Trace
from openai_responses.sse import EventStreamDecoder, ServerSentEvent
from openai_responses.transport import Connections
from openai_responses.turn import Turn

_RESUMING = RetryPolicy(12)
_UNDER_WAY = ("queued", "in_progress")
_THOUGHT_SHARE = 0.1
"""Growing reasoning is read for a tenth of that time at once, because the first words
of the answer must not wait for it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a run behaves towards those who watch it, and towards the server.

    `join_seconds` is the shortest time between two events that show more of an
    answer; what arrives meanwhile is shown together. `resuming` says how often in a row
    the rest of a background response is asked for in vain, `poll_seconds` how long to
    wait while the server says that it still works at one.
    """

    join_seconds: float = 0.05
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: RetryPolicy = field(default_factory=RetryPolicy)
    resuming: RetryPolicy = _RESUMING
    poll_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Line:
    """The way to a server: where it is, over which connections, within which limits."""

    endpoint: Endpoint
    connections: Connections
    limits: Limits
    deadlines: Deadlines


async def exchange(
    request: ResponsesRequest, line: Line, turn: Turn, cursor: Cursor | None = None
) -> AsyncGenerator[RunEvent, None]:
    """Send `request`, feed the answer to `turn`, yield what it means.

    A `cursor` notes how far it came. Raises the errors of `transport` and
    MalformedEvent. Cancelling it, or closing the generator, closes the connection.
    """
    payload = request.payload()
    if line.endpoint.strict:
        payload = strict_payload(payload)
    line.deadlines.start_attempt()
    posted = line.connections.post(line.endpoint, "/responses", payload, line.deadlines)
    async with aclosing(_read(posted, line, turn, cursor)) as events:
        async for event in events:
            yield event


async def fetched(
    path: str, line: Line, turn: Turn, cursor: Cursor
) -> AsyncGenerator[RunEvent, None]:
    """Ask for what is at `path`: a response, or the rest of its stream.

    Otherwise like `exchange`; a response that is still under way says nothing.
    """
    line.deadlines.start_attempt()
    asked = line.connections.get(line.endpoint, path, line.deadlines)
    async with aclosing(_read(asked, line, turn, cursor)) as events:
        async for event in events:
            yield event


async def _read(
    sent: AbstractAsyncContextManager[Answer],
    line: Line,
    turn: Turn,
    cursor: Cursor | None,
) -> AsyncGenerator[RunEvent, None]:
    async with sent as answer:
        turn.trace = Trace(answer.request_id, status=200)
        async with aclosing(_turn_events(answer, line, turn, cursor)) as events:
            async for event in events:
                yield event
        await answer.drain()


async def _turn_events(
    answer: Answer, line: Line, turn: Turn, cursor: Cursor | None
) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of one response, streamed or not."""
    if not answer.is_stream:
        response = await answer.response_object()
        if cursor is not None:
            cursor.note(response)
        status = str(response.get("status") or "completed")
        if status not in _UNDER_WAY:
            for event in turn.feed(ResponseEnded(status, response)):
                yield event
        return
    async with aclosing(_batches(answer)) as batches:
        async for batch in batches:
            began = asyncio.get_running_loop().time()
            if batch:
                line.deadlines.event_arrived()
            events, malformed = _told(batch, turn, cursor)
            del batch  # while deltas gather, nothing of the wire is held
            for told in events:
                yield told
            if malformed:
                raise malformed
            if turn.ending:
                return
            with answer.held():
                await _let_deltas_gather(events, began, line.limits.join_seconds)


def _told(
    batch: list[ServerSentEvent], turn: Turn, cursor: Cursor | None
) -> tuple[list[RunEvent], MalformedEvent | None]:
    """Return what `batch` means, up to the first event that cannot be read.

    Deltas are joined before the turn takes them: it then works once a batch.
    """
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            parsed = parse_event(event)
            if cursor is None or cursor.passes(event):
                read.append(parsed)
    except MalformedEvent as error:
        malformed = error
    events = [told for event in joined_deltas(read) for told in turn.feed(event)]
    return events, malformed


async def _batches(answer: Answer) -> AsyncGenerator[list[ServerSentEvent], None]:
    """Yield the events of each piece of the body that arrived, and keep neither."""
    decoder = EventStreamDecoder()
    while not answer.is_read:
        yield decoder.feed(await answer.read_any())
    yield decoder.close()


async def _let_deltas_gather(
    events: list[RunEvent], began: float, join_seconds: float
) -> None:
    """Wait for a moment after a delta.

    Reading less often is what makes long answers cheap: one pass then serves all the
    deltas that arrived. The first delta after a pause is never held back.
    """
    last = events[-1] if events else None
    if not isinstance(last, Grew) or join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = asyncio.get_running_loop().time() - began
    await asyncio.sleep(max(0.0, join_seconds * share - spent))
