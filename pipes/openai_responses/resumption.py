"""One background response, read over as many connections as it takes.

The server goes on when a connection breaks, so nothing is sent twice: the stream is
resumed behind its last event (OpenAI's guide on background mode). The server is asked
for the response itself where a stream brought nothing new, because there is no event
for a cancelled one, and where it cannot be resumed: five minutes after its beginning
it is refused.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from openai_responses.clock import random_fraction
from openai_responses.cursor import Cursor
from openai_responses.errors import (
    ApiRefused,
    ResponseLost,
    ResponsesError,
    Setback,
    TimedOut,
)
from openai_responses.exchange import Line, exchange, fetched
from openai_responses.request import ResponsesRequest
from openai_responses.retries import retry_wait
from openai_responses.run_events import Noted, RunEvent
from openai_responses.turn import Turn

_LONGEST_WAIT_FOR_ID = 60.0
_BROKE = "The connection to the model was lost: fetching the rest of the answer."


async def followed(
    request: ResponsesRequest, line: Line, turn: Turn
) -> AsyncGenerator[RunEvent, None]:
    """Send a background `request`, feed its response to `turn`, yield what it means.

    Raises what `exchange` raises as long as the response has no id; after that only
    ResponseLost, and TimedOut for the total limit. Whoever leaves before the end, by
    an error, a cancellation or by closing the generator, cancels the response: nobody
    would read what it goes on to cost.
    """
    following = _Following(line, turn)
    part = _begun(exchange(request, line, turn, following.cursor), following)
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
                yield Noted(_BROKE)
            await asyncio.sleep(wait)
            part = following.next_part()
    finally:
        following.leave()


class _Following:
    """What is known of a response, and how to get at the rest of it."""

    def __init__(self, line: Line, turn: Turn) -> None:
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
        return fetched(path, self._line, self._turn, self.cursor)

    def let_go(
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
        self.leave()

    def leave(self) -> None:
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
        setback = error.setback if isinstance(error, ApiRefused) else Setback()
        policy = self._line.limits.resuming
        return retry_wait(policy, self._failures, setback, random_fraction())

    def _within_limits(self, wait: float) -> float:
        if not self._line.deadlines.leave(wait):
            raise TimedOut("total_timeout")
        return wait


async def _begun(
    part: AsyncGenerator[RunEvent, None], following: _Following
) -> AsyncGenerator[RunEvent, None]:
    """Yield what `part` does, but do not drop it before the response has an id."""
    first = asyncio.create_task(_first_of(part))
    try:
        event = await asyncio.shield(first)
    except asyncio.CancelledError:
        following.let_go(part, first)
        raise
    async with aclosing(part) as events:
        if event is not None:
            yield event
        async for event in events:
            yield event


async def _first_of(part: AsyncGenerator[RunEvent, None]) -> RunEvent | None:
    return await anext(part, None)
