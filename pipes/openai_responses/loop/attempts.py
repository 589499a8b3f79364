"""One response: a request, sent again, resumed or polled where that helps.

One request sent, its answer told as run events.

One background response, read over as many connections as it takes.

The server goes on when a connection breaks, so nothing is sent twice: the stream is
resumed behind its last event (OpenAI's guide on background mode). The server is asked
for the response itself where a stream brought nothing new, because there is no event
for a cancelled one, and where it cannot be resumed: five minutes after its beginning
it is refused.

One turn: a request, sent again where that helps.

It is sent again only before the first event of its answer: changed, where the refusal
has a cause that can be left out, or as it is, where waiting may help.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass, field

from openai_responses.clock import random_fraction
from openai_responses.endings import (
    CUT,
    UNREADABLE,
    Ending,
    ending_of_exception,
    failure_status,
)
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    ApiRefused,
    ConnectionFailed,
    Failure,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    TimedOut,
)
from openai_responses.loop.events import RunEvent, Status, Trace
from openai_responses.loop.recovery import RetryPolicy, find_fallback, retry_wait
from openai_responses.loop.response import ResponseState
from openai_responses.requests.build import ResponsesRequest, strict_payload
from openai_responses.transport.connections import (
    Connections,
    Deadlines,
    HttpResponse,
    Timeouts,
)
from openai_responses.transport.stream import (
    Cursor,
    EventStreamDecoder,
    FinalResponse,
    ServerSentEvent,
    StreamEvent,
    TextDelta,
    join_deltas,
    parse_event,
)

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
class Client:
    """The way to a server: where it is, over which connections, within which limits."""

    endpoint: Endpoint
    connections: Connections
    limits: Limits
    deadlines: Deadlines


async def stream_response(
    request: ResponsesRequest,
    line: Client,
    turn: ResponseState,
    cursor: Cursor | None = None,
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
    async with aclosing(_read_response(posted, line, turn, cursor)) as events:
        async for event in events:
            yield event


async def resume_stream(
    path: str, line: Client, turn: ResponseState, cursor: Cursor
) -> AsyncGenerator[RunEvent, None]:
    """Ask for what is at `path`: a response, or the rest of its stream.

    Otherwise like `stream_response`; a response that is still under way says nothing.
    """
    line.deadlines.start_attempt()
    asked = line.connections.get(line.endpoint, path, line.deadlines)
    async with aclosing(_read_response(asked, line, turn, cursor)) as events:
        async for event in events:
            yield event


async def _read_response(
    sent: AbstractAsyncContextManager[HttpResponse],
    line: Client,
    turn: ResponseState,
    cursor: Cursor | None,
) -> AsyncGenerator[RunEvent, None]:
    async with sent as answer:
        turn.trace = Trace(answer.request_id, status=200)
        async with aclosing(_response_events(answer, line, turn, cursor)) as events:
            async for event in events:
                yield event
        await answer.drain()


async def _response_events(
    answer: HttpResponse, line: Client, turn: ResponseState, cursor: Cursor | None
) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of one response, streamed or not."""
    if not answer.is_stream:
        response = await answer.response_object()
        if cursor is not None:
            cursor.note(response)
        status = str(response.get("status") or "completed")
        if status not in _UNDER_WAY:
            for event in turn.feed(FinalResponse(status, response)):
                yield event
        return
    async with aclosing(_batches(answer)) as batches:
        async for batch in batches:
            began = asyncio.get_running_loop().time()
            if batch:
                line.deadlines.event_arrived()
            events, malformed = _batch_events(batch, turn, cursor)
            del batch  # while deltas gather, nothing of the wire is held
            for told in events:
                yield told
            if malformed:
                raise malformed
            if turn.ending:
                return
            with answer.paused():
                await _gather_deltas(events, began, line.limits.join_seconds)


def _batch_events(
    batch: list[ServerSentEvent], turn: ResponseState, cursor: Cursor | None
) -> tuple[list[RunEvent], MalformedEvent | None]:
    """Return what `batch` means, up to the first event that cannot be read.

    Deltas are joined before the turn takes them: it then works once a batch.
    """
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            parsed = parse_event(event)
            if cursor is None or cursor.advance(event):
                read.append(parsed)
    except MalformedEvent as error:
        malformed = error
    events = [told for event in join_deltas(read) for told in turn.feed(event)]
    return events, malformed


async def _batches(answer: HttpResponse) -> AsyncGenerator[list[ServerSentEvent], None]:
    """Yield the events of each piece of the body that arrived, and keep neither."""
    decoder = EventStreamDecoder()
    while not answer.is_read:
        yield decoder.feed(await answer.read_any())
    yield decoder.close()


async def _gather_deltas(
    events: list[RunEvent], began: float, join_seconds: float
) -> None:
    """Wait for a moment after a delta.

    Reading less often is what makes long answers cheap: one pass then serves all the
    deltas that arrived. The first delta after a pause is never held back.
    """
    last = events[-1] if events else None
    if not isinstance(last, TextDelta) or join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = asyncio.get_running_loop().time() - began
    await asyncio.sleep(max(0.0, join_seconds * share - spent))


_LONGEST_WAIT_FOR_ID = 60.0
_BROKE = "The connection to the model was lost: fetching the rest of the answer."


async def stream_background(
    request: ResponsesRequest, line: Client, turn: ResponseState
) -> AsyncGenerator[RunEvent, None]:
    """Send a background `request`, feed its response to `turn`, yield what it means.

    Raises what `stream_response` raises as long as the response has no id; after that only
    ResponseLost, and TimedOut for the total limit. Whoever leaves before the end, by
    an error, a cancellation or by closing the generator, cancels the response: nobody
    would read what it goes on to cost.
    """
    following = _BackgroundRun(line, turn)
    part = _until_named(
        stream_response(request, line, turn, following.cursor), following
    )
    try:
        while True:
            error: ResponsesError | None = None
            try:
                async with aclosing(part) as events:
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                error = caught
            if turn.ending or not following.can_go_on(error):
                break
            wait = following.wait_after(error)
            if following.has_news:
                yield Status(_BROKE)
            await asyncio.sleep(wait)
            part = following.next_part()
    finally:
        following.abandon()


class _BackgroundRun:
    """What is known of a response, and how to get at the rest of it."""

    def __init__(self, line: Client, turn: ResponseState) -> None:
        self._named = asyncio.Event()
        self.cursor = Cursor(self._named.set)
        self.has_news = False
        self._line = line
        self._turn = turn
        self._seen: int | None = None
        self._failures = 0
        self._resumable = True
        self._asks = False
        self._is_left = False

    def can_go_on(self, error: ResponsesError | None) -> bool:
        """Say whether there can be more of the response; raises `error` if not."""
        is_total = isinstance(error, TimedOut) and error.kind == "total_timeout"
        goes_on = bool(self.cursor.response_id) and not is_total
        if error is not None and not goes_on:
            raise error
        return goes_on

    def wait_after(self, error: ResponsesError | None) -> float:
        """Return the seconds until the next part is asked for; raises ResponseLost."""
        asked, self.has_news = self._asks, self.cursor.last != self._seen
        self._seen = self.cursor.last
        if asked and error is None:  # the server says that it still works at it
            self._failures, self._asks = 0, not self._can_resume
            return self._within_limits(self._line.limits.poll_seconds)
        self._failures = 0 if self.has_news else self._failures + 1
        wait = self._backoff(error)
        if wait is None and self._resumable and not asked:
            self._resumable, wait = False, 0.0  # too old: it is asked for instead
        self._asks = not (self.has_news and self._can_resume)
        if wait is None:
            self._is_left = isinstance(error, ApiRefused) and error.status == 404
            raise ResponseLost
        return self._within_limits(wait)

    def next_part(self) -> AsyncGenerator[RunEvent, None]:
        """Return the rest of the stream, or the response as it stands now."""
        path = f"/responses/{self.cursor.response_id}"
        if not self._asks:
            path += f"?stream=true&starting_after={self.cursor.last}"
        return resume_stream(path, self._line, self._turn, self.cursor)

    def release(
        self, part: AsyncGenerator[RunEvent, None], first: asyncio.Task[RunEvent | None]
    ) -> None:
        """Stop reading `part`, whose `first` event is awaited, once there is an id.

        Whoever leaves earlier could not cancel the response: nobody can find it.
        """
        self._line.connections.do_later(self._closed(part, first))

    async def _closed(
        self, part: AsyncGenerator[RunEvent, None], first: asyncio.Task[RunEvent | None]
    ) -> None:
        named = asyncio.create_task(self._named.wait())
        awaited = {first, named}
        await asyncio.wait(
            awaited, timeout=_LONGEST_WAIT_FOR_ID, return_when=asyncio.FIRST_COMPLETED
        )
        for task in awaited:
            task.cancel()
        await asyncio.gather(*awaited, return_exceptions=True)
        await part.aclose()
        self.abandon()

    def abandon(self) -> None:
        """Cancel the response once, unless it is over or not there."""
        named, ended = self.cursor.response_id, self._turn.ending
        if named and not ended and not self._is_left:
            self._is_left = True
            path = f"/responses/{named}/cancel"
            self._line.connections.post_later(self._line.endpoint, path)

    @property
    def _can_resume(self) -> bool:
        return self._resumable and self.cursor.last is not None

    def _backoff(self, error: ResponsesError | None) -> float | None:
        """Return how long to wait after a failure; None for a refusal that stands."""
        setback = error.failure if isinstance(error, ApiRefused) else Failure()
        policy = self._line.limits.resuming
        return retry_wait(policy, self._failures, setback, random_fraction())

    def _within_limits(self, wait: float) -> float:
        if not self._line.deadlines.allow(wait):
            raise TimedOut("total_timeout")
        return wait


async def _until_named(
    part: AsyncGenerator[RunEvent, None], following: _BackgroundRun
) -> AsyncGenerator[RunEvent, None]:
    """Yield what `part` does, but do not drop it before the response has an id."""
    first = asyncio.create_task(_first_of(part))
    try:
        event = await asyncio.shield(first)
    except asyncio.CancelledError:
        following.release(part, first)
        raise
    async with aclosing(part) as events:
        if event is not None:
            yield event
        async for event in events:
            yield event


async def _first_of(part: AsyncGenerator[RunEvent, None]) -> RunEvent | None:
    return await anext(part, None)


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})
"""What is answered by whoever stands in front of the API and has waited in vain."""


class Attempts:
    """The attempts at one turn.

    Once `events` has ended, `turn` holds the answer, `request` what it answers, and
    `error` what stopped it, if something of ours did.
    """

    def __init__(
        self,
        request: ResponsesRequest,
        line: Client,
        retries: RetryPolicy,
        first_index: int = 0,
    ) -> None:
        """Count the items of the turn from `first_index` on."""
        self.request = request
        self.response = ResponseState(first_index)
        self.error: ResponsesError | None = None
        self._line = line
        self._policy = retries
        self._first_index = first_index
        self._retries = 0
        self._healed: set[str] = set()
        self._wait = 0.0

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        """Send the request and yield what happens, until there is no more to try."""
        while True:
            self.response, self.error = ResponseState(self._first_index), None
            sent = stream_background if self.request.background else stream_response
            answer = sent(self.request, self._line, self.response)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                self.error = caught
            note = self._next()
            if note is None or not self._line.deadlines.allow(self._wait):
                break
            yield note
            await asyncio.sleep(self._wait)
        for event in self.response.close():
            yield event

    @property
    def ending(self) -> Ending:
        """How the turn ended."""
        if self.response.ending:
            return self.response.ending
        if self.error is not None:
            return ending_of_exception(self.error, self.response.event_count > 0)
        return CUT if self.response.event_count else UNREADABLE

    @property
    def trace(self) -> Trace:
        """What the log needs to know of the last answer."""
        if not isinstance(self.error, ApiRefused):
            return self.response.trace
        refused = self.error
        return Trace(refused.request_id, "", refused.failure.status, refused.error)

    def _next(self) -> Status | None:
        """Return what to tell before the next attempt; None when there is none."""
        setback = _early_failure(self.error, self.response)
        if setback is None or (self.request.background and _may_run(self.error)):
            return None
        remedy = find_fallback(self.request, setback.error)
        if remedy and remedy.cause not in self._healed:
            self._healed.add(remedy.cause)
            self.request, self._wait = remedy.request, 0.0
            return Status(remedy.sentence, remedy.cause)
        wait = retry_wait(self._policy, self._retries, setback, random_fraction())
        if wait is None:
            return None
        self._retries += 1
        self._wait = wait
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        return Status(f"{failure_status(setback)} Trying again in {seconds}.")


def _early_failure(error: ResponsesError | None, turn: ResponseState) -> Failure | None:
    """Return the failure, if it came before the first event of the answer."""
    if turn.refusal:
        return Failure(200, turn.refusal)
    if turn.event_count:
        return None
    if isinstance(error, ApiRefused):
        return error.failure
    silent = isinstance(error, TimedOut) and error.kind == "first_event_timeout"
    return Failure() if silent or isinstance(error, ConnectionFailed) else None


def _may_run(error: ResponsesError | None) -> bool:
    """Say whether the server may have taken the request in spite of `error`.

    Other answers stop when the connection does. A background response whose name we
    do not know goes on: sent again, it would run twice, and be billed twice. So it is
    sent again only where nothing arrived, or where the API itself refused it; a
    gateway's answer does not tell what happened behind it.
    """
    match error:
        case ConnectionFailed():
            return error.was_sent
        case ApiRefused():
            told = error.failure.should_retry
            return not told and error.status in _GATEWAY_STATUS
    return isinstance(error, TimedOut)
