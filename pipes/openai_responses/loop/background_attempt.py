"""An attempt with a background response, over as many requests as its answer takes.

A background response continues at the server when a connection breaks, so its stream is
resumed after the last event (OpenAI's guide "Background mode"). The response itself is
requested if a stream brought nothing new, because there is no event for a cancelled
response, and if the API refuses to resume, five minutes after the beginning.
"""

import asyncio
import re
from contextlib import aclosing
from typing import Any

from openai_responses.clock import random_fraction
from openai_responses.endings import CUT
from openai_responses.errors import (
    ApiError,
    ConnectionFailed,
    Failure,
    ResponseLost,
    ResponsesError,
    TimedOut,
)
from openai_responses.json_input import (
    JsonObject,
    as_mapping,
    as_text,
    parse_json_object,
)
from openai_responses.loop.attempt import IN_PROGRESS, Attempt
from openai_responses.loop.events import RunEvent, RunEvents, Status
from openai_responses.retries import retry_wait
from openai_responses.transport.stream import ServerSentEvent

_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
"""Ids that are safe in a path; other servers use base64 in their ids."""
_MAX_WAIT_FOR_ID = 60.0
"""Seconds that a response which nobody reads any more has to name its id."""
_FETCHING_REST = (
    "The connection to the model was lost: fetching the rest of the answer."
)


class BackgroundAttempt(Attempt):
    """One background response, and how far it was read."""

    def __post_init__(self) -> None:
        super().__post_init__()
        loop = asyncio.get_running_loop()
        self._response_id: asyncio.Future[str] = loop.create_future()
        """Done as soon as the server has named the response."""
        self._last_sequence = -1
        """The number of the last event; -1 before the first."""
        self._failures = 0
        """The requests in a row that brought nothing new."""
        self._resumable = True
        """Whether the API may still resume the stream."""
        self._is_polling = False
        """Whether the next request is for the response itself, not for its stream."""
        self._has_nothing_to_cancel = False
        """Because it was cancelled, or the server does not know it any more."""
        self._is_ignored = False
        """Whether the server answers as if it were asked for no background response."""

    async def _answer(self, payload: dict[str, Any] | None) -> RunEvents:
        """Yield the run events of the whole answer, however often it has to be fetched.

        Once the response has an id, raises only ResponseLost, and TimedOut for the total
        limit. If the caller leaves before the end, the response is cancelled, because
        it would continue to cost money without a reader.
        """
        path = "/responses"
        seen_sequence = self._last_sequence
        try:
            while True:
                error: ResponsesError | None = None
                part = self._exchange(path, payload, self._note_event)
                try:
                    first = await self._first_event(part)
                    async with aclosing(part) as events:
                        if first is not None:
                            yield first
                        async for event in events:
                            yield event
                except ResponsesError as caught:
                    error = caught
                if self._is_over(error):
                    break
                has_news = self._last_sequence != seen_sequence
                seen_sequence = self._last_sequence
                wait = self._wait_after(error, has_news)
                if not self.server.deadlines.allow(wait):
                    raise TimedOut("total_timeout")
                if has_news:
                    yield Status(_FETCHING_REST)
                await asyncio.sleep(wait)
                path = f"/responses/{self._response_id.result()}"
                if not self._is_polling:
                    path += f"?stream=true&starting_after={self._last_sequence}"
                payload = None
        finally:
            self._abandon()

    def _note_event(self, event: ServerSentEvent) -> bool:
        """Note an event that could be read; say whether it is new.

        The event is parsed twice; a background run has few events a second.
        """
        wire = parse_json_object(event.data)
        if wire is None:  # the end's mark, and a proxy's own words, have no number
            return True
        response = as_mapping(wire.get("response"))
        self._note_id(response)
        # OpenAI and Azure repeat the parameter; vLLM answers with false.
        if response.get("background", True) is not True:
            self._is_ignored = True
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        if number <= self._last_sequence:
            return False
        self._last_sequence = number
        return True

    def _feed_whole(self, response: JsonObject) -> list[RunEvent]:
        """Feed an answer in one piece, unless the server is still working on it."""
        self._note_id(response)
        if str(response.get("status")) in IN_PROGRESS:
            return []
        return super()._feed_whole(response)

    def _note_id(self, response: JsonObject) -> None:
        """Remember the id of the response, if it is a valid id."""
        response_id = as_text(response.get("id"))
        if _ID.fullmatch(response_id) and not self._response_id.done():
            self._response_id.set_result(response_id)

    def _is_over(self, error: ResponsesError | None) -> bool:
        """Say whether nothing more is requested; raises `error` if it is the reason."""
        if self.response.ending:
            return True
        if self._is_ignored:
            # The work ended with the connection, so it may be asked for again.
            error = error or ConnectionFailed(CUT.message)
            error.was_sent = False
            raise error
        if error is None:
            return not self._response_id.done()
        if error.ends_response or not self._response_id.done():
            raise error
        return False

    def _wait_after(self, error: ResponsesError | None, has_news: bool) -> float:
        """Return the seconds until the next request; raises ResponseLost.

        An answer without an end means that the server is still working on it. A stream
        that is too old to be resumed is followed by a request for the response itself.
        """
        was_polling = self._is_polling
        limits = self.server.limits
        if was_polling and error is None:
            self._failures = 0
            self._is_polling = not self._can_resume
            return limits.poll_seconds
        self._failures = 0 if has_news else self._failures + 1
        failure = Failure()
        if error and error.status and error.failure:
            failure = error.failure
            # The response goes on meanwhile: to be asked to wait does not end it.
            longest = limits.resuming.max_wait
            if failure.retry_after is not None and failure.retry_after > longest:
                failure = failure._replace(retry_after=longest)
        # The words of a proxy say nothing of the response behind it.
        told = failure.error
        is_foreign = told.is_page or told.is_bare_text or told == ApiError()
        if is_foreign and failure.should_retry is None:
            failure = failure._replace(status=None, error=ApiError())
        wait = retry_wait(limits.resuming, self._failures, failure, random_fraction())
        if wait is None and self._resumable and not was_polling:
            self._resumable = False
            wait = 0.0
        self._is_polling = not (has_news and self._can_resume)
        if wait is None:
            # The API does not know the response (any more): there is nothing to cancel.
            self._has_nothing_to_cancel = failure.status == 404
            raise ResponseLost
        return wait

    @property
    def _can_resume(self) -> bool:
        """Whether the stream can be requested again after its last event."""
        return self._resumable and self._last_sequence >= 0

    async def _first_event(self, part: RunEvents) -> RunEvent | None:
        """Return the first event of `part`, None if it has none.

        A response without an id could not be cancelled, so a `part` that is left before
        is read until there is one.
        """
        if self._response_id.done():
            return await anext(part, None)
        first = asyncio.ensure_future(anext(part, None))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self.server.connections.do_later(self._close(part, first))
            raise

    async def _close(self, part: RunEvents, first: asyncio.Future[Any]) -> None:
        """Wait until the response has an id, then close its stream and cancel it."""
        await asyncio.wait(
            {first, self._response_id},
            timeout=_MAX_WAIT_FOR_ID,
            return_when=asyncio.FIRST_COMPLETED,
        )
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await part.aclose()
        self._abandon()

    def _abandon(self) -> None:
        """Cancel the response once, unless it has ended or does not exist."""
        if self.response.ending or self._has_nothing_to_cancel or self._is_ignored:
            return
        if self._response_id.done():
            self._has_nothing_to_cancel = True
            server = self.server
            path = f"/responses/{self._response_id.result()}/cancel"
            cancellation = server.connections.post_quietly(server.endpoint, path)
            server.connections.do_later(cancellation)
