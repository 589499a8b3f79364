"""One response: a request that is sent, then sent again, resumed or polled if that helps.

A request is sent again only before the first event of its answer: changed, if the cause
of the refusal can be left out, or unchanged, if waiting may help.

A background response continues at the server when a connection breaks, so its stream is
resumed behind the last event (OpenAI's guide "Background mode"). The response itself is
requested if a stream brought nothing new, because there is no event for a cancelled
response, and if the API refuses to resume, five minutes after the beginning.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing
from typing import NamedTuple

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
"""Reasoning deltas are joined for only a tenth of that time, because the first words of
the answer must not wait for them."""


class Limits(NamedTuple):
    """How a run behaves towards viewers and towards the server.

    `join_seconds` is the shortest time between two events that show more of an answer.
    `resuming` limits the requests in a row for the rest of a background response,
    `poll_seconds` is the wait while the server is still working on one.
    """

    join_seconds: float = 0.05
    timeouts: Timeouts = Timeouts()
    retries: RetryPolicy = RetryPolicy()
    resuming: RetryPolicy = _RESUMING
    poll_seconds: float = 5.0


class Client(NamedTuple):
    """How to reach the server: address, connections and limits."""

    endpoint: Endpoint
    connections: Connections
    limits: Limits
    deadlines: Deadlines


def stream_response(
    request: ResponsesRequest,
    client: Client,
    state: ResponseState,
    cursor: Cursor | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """Send `request`, feed the answer to `state`, and yield its run events.

    A `cursor` notes the position in the stream. Raises the errors of `Connections.post`
    and MalformedEvent. Cancelling it, or closing the generator, closes the connection.
    """
    payload = request.payload()
    if client.endpoint.strict:
        payload = strict_payload(payload)
    posted = client.connections.post(
        client.endpoint, "/responses", payload, client.deadlines
    )
    return _read_response(posted, client, state, cursor)


def _resume_stream(
    path: str, client: Client, state: ResponseState, cursor: Cursor
) -> AsyncGenerator[RunEvent, None]:
    """Request `path`: a response, or the rest of its stream.

    A response that is still in progress yields nothing.
    """
    requested = client.connections.get(client.endpoint, path, client.deadlines)
    return _read_response(requested, client, state, cursor)


async def _read_response(
    sent: AbstractAsyncContextManager[HttpResponse],
    client: Client,
    state: ResponseState,
    cursor: Cursor | None,
) -> AsyncGenerator[RunEvent, None]:
    client.deadlines.start_attempt()
    async with sent as answer:
        state.trace = Trace(answer.request_id, status=200)
        if not answer.is_stream:
            for event in await _read_object(answer, state, cursor):
                yield event
            return
        decoder = EventStreamDecoder()
        while not (answer.is_read or state.ending):
            chunk = await answer.read_any()
            batch = decoder.feed(chunk) if chunk else decoder.close()
            began = asyncio.get_running_loop().time()
            if batch:
                client.deadlines.event_arrived()
            events, malformed = _batch_events(batch, state, cursor)
            del batch, chunk  # hold no bytes of the wire while deltas gather
            for event in events:
                yield event
            if malformed:
                raise malformed
            if not state.ending:
                with answer.paused():
                    await _gather_deltas(events, began, client.limits.join_seconds)
        await answer.drain()


async def _read_object(
    answer: HttpResponse, state: ResponseState, cursor: Cursor | None
) -> list[RunEvent]:
    response = await answer.response_object()
    if cursor is not None:
        cursor.note(response)
    status = str(response.get("status") or "completed")
    if status in _UNDER_WAY:
        return []
    return state.feed(FinalResponse(status, response))


def _batch_events(
    batch: list[ServerSentEvent], state: ResponseState, cursor: Cursor | None
) -> tuple[list[RunEvent], MalformedEvent | None]:
    """Return the run events of `batch`, up to the first event that cannot be read."""
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            parsed = parse_event(event)
            if cursor is None or cursor.advance(event):
                read.append(parsed)
    except MalformedEvent as error:
        malformed = error
    return [out for event in join_deltas(read) for out in state.feed(event)], malformed


async def _gather_deltas(
    events: list[RunEvent], began: float, join_seconds: float
) -> None:
    """Wait for a moment after a delta.

    Reading less often makes long answers cheap: one pass handles all deltas that
    arrived. The first delta after a pause is never delayed.
    """
    last = events[-1] if events else None
    if not isinstance(last, TextDelta) or join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = asyncio.get_running_loop().time() - began
    await asyncio.sleep(max(0.0, join_seconds * share - spent))


_LONGEST_WAIT_FOR_ID = 60.0
_BROKE = "The connection to the model was lost: fetching the rest of the answer."


async def _stream_background(
    request: ResponsesRequest, client: Client, state: ResponseState
) -> AsyncGenerator[RunEvent, None]:
    """Send a background `request`, feed its response to `state`, yield its run events.

    Once the response has an id, raises only ResponseLost, and TimedOut for the total
    limit. If the caller leaves before the end, the response is cancelled, because it
    would go on to cost money without a reader.
    """
    background = _BackgroundRun(client, state)
    part = stream_response(request, client, state, background.cursor)
    try:
        while True:
            error: ResponsesError | None = None
            try:
                first = await background.first_event(part)
                async with aclosing(part) as events:
                    if first is not None:
                        yield first
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                error = caught
            if state.ending or not background.can_go_on(error):
                break
            wait = background.wait_after(error)
            if background.has_news:
                yield Status(_BROKE)
            await asyncio.sleep(wait)
            part = background.next_part()
    finally:
        background.abandon()


class _BackgroundRun:
    def __init__(self, client: Client, state: ResponseState) -> None:
        self._named = asyncio.Event()
        self.cursor = Cursor(self._named.set)
        self.has_news = False
        self._client = client
        self._state = state
        self._seen: int | None = None
        self._failures = 0
        self._resumable = True
        self._asks = False
        self._is_left = False

    async def first_event(
        self, part: AsyncGenerator[RunEvent, None]
    ) -> RunEvent | None:
        """Return the first event of `part`, None if it has none.

        A response without an id could not be cancelled, so a `part` that is left before
        is read on until there is one.
        """
        if self._named.is_set():
            return await anext(part, None)
        first = asyncio.create_task(_first_of(part))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self._client.connections.do_later(self._close(part, first))
            raise

    def can_go_on(self, error: ResponsesError | None) -> bool:
        """Say whether there can be more of the response; raises `error` if not."""
        is_total = isinstance(error, TimedOut) and error.kind == "total_timeout"
        goes_on = bool(self.cursor.response_id) and not is_total
        if error is not None and not goes_on:
            raise error
        return goes_on

    def wait_after(self, error: ResponsesError | None) -> float:
        """Return the seconds until the next request; raises ResponseLost."""
        asked, self.has_news = self._asks, self.cursor.last != self._seen
        self._seen = self.cursor.last
        if asked and error is None:  # the server is still working on it
            self._failures, self._asks = 0, not self._can_resume
            return self._within_limits(self._client.limits.poll_seconds)
        self._failures = 0 if self.has_news else self._failures + 1
        wait = self._backoff(error)
        if wait is None and self._resumable and not asked:
            self._resumable, wait = False, 0.0  # too old: request the response itself
        self._asks = not (self.has_news and self._can_resume)
        if wait is None:
            self._is_left = isinstance(error, ApiRefused) and error.status == 404
            raise ResponseLost
        return self._within_limits(wait)

    def next_part(self) -> AsyncGenerator[RunEvent, None]:
        path = f"/responses/{self.cursor.response_id}"
        if not self._asks:
            path += f"?stream=true&starting_after={self.cursor.last}"
        return _resume_stream(path, self._client, self._state, self.cursor)

    async def _close(
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
        """Cancel the response once, unless it has ended or does not exist."""
        named, ended = self.cursor.response_id, self._state.ending
        if named and not ended and not self._is_left:
            self._is_left = True
            path = f"/responses/{named}/cancel"
            self._client.connections.post_later(self._client.endpoint, path)

    @property
    def _can_resume(self) -> bool:
        return self._resumable and self.cursor.last is not None

    def _backoff(self, error: ResponsesError | None) -> float | None:
        failure = error.failure if isinstance(error, ApiRefused) else Failure()
        policy = self._client.limits.resuming
        return retry_wait(policy, self._failures, failure, random_fraction())

    def _within_limits(self, wait: float) -> float:
        if not self._client.deadlines.allow(wait):
            raise TimedOut("total_timeout")
        return wait


async def _first_of(part: AsyncGenerator[RunEvent, None]) -> RunEvent | None:
    return await anext(part, None)


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})
"""Statuses of a gateway in front of the API that got no answer in time."""


class Attempts:
    """The attempts at one response: the `request`, its `response`, and the last `error`."""

    def __init__(
        self,
        request: ResponsesRequest,
        client: Client,
        retries: RetryPolicy,
        first_index: int = 0,
    ) -> None:
        """Number the items of the response from `first_index`."""
        self.request = request
        self.response = ResponseState(first_index)
        self.error: ResponsesError | None = None
        self._client = client
        self._policy = retries
        self._first_index = first_index
        self._retries = 0
        self._causes: set[str] = set()
        self._wait = 0.0

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        """Send the request and yield its events, until there is nothing more to try."""
        while True:
            self.response, self.error = ResponseState(self._first_index), None
            sent = _stream_background if self.request.background else stream_response
            answer = sent(self.request, self._client, self.response)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                self.error = caught
            note = self._next()
            if note is None or not self._client.deadlines.allow(self._wait):
                break
            yield note
            await asyncio.sleep(self._wait)
        for event in self.response.close():
            yield event

    @property
    def ending(self) -> Ending:
        """How the response ended."""
        if self.response.ending:
            return self.response.ending
        if self.error is not None:
            return ending_of_exception(self.error, self.response.event_count > 0)
        return CUT if self.response.event_count else UNREADABLE

    @property
    def trace(self) -> Trace:
        """What the log needs to know about the last answer."""
        if not isinstance(self.error, ApiRefused):
            return self.response.trace
        refused = self.error
        return Trace(refused.request_id, "", refused.failure.status, refused.error)

    def _next(self) -> Status | None:
        """Return the status before the next attempt; None if there is none."""
        failure = _early_failure(self.error, self.response)
        if failure is None or (self.request.background and _may_run(self.error)):
            return None
        fallback = find_fallback(self.request, failure.error)
        if fallback and fallback.cause not in self._causes:
            self._causes.add(fallback.cause)
            self.request, self._wait = fallback.request, 0.0
            return Status(fallback.sentence, fallback.cause)
        wait = retry_wait(self._policy, self._retries, failure, random_fraction())
        if wait is None:
            return None
        self._retries += 1
        self._wait = wait
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        return Status(f"{failure_status(failure)} Trying again in {seconds}.")


def _early_failure(
    error: ResponsesError | None, state: ResponseState
) -> Failure | None:
    if state.refusal:
        return Failure(200, state.refusal)
    if state.event_count:
        return None
    if isinstance(error, ApiRefused):
        return error.failure
    silent = isinstance(error, TimedOut) and error.kind == "first_event_timeout"
    return Failure() if silent or isinstance(error, ConnectionFailed) else None


def _may_run(error: ResponsesError | None) -> bool:
    """Say whether the server may be working on the request in spite of `error`.

    A background response whose id is unknown goes on; sent again, it would be billed
    twice. So it is sent again only if nothing arrived at the server or the API itself
    refused it. The answer of a gateway does not tell what happened behind it.
    """
    match error:
        case ConnectionFailed():
            return error.was_sent
        case ApiRefused():
            stands = not error.failure.should_retry
            return stands and error.status in _GATEWAY_STATUS
    return isinstance(error, TimedOut)
