"""One turn: a request, sent again where that helps.

It is sent again only before the first event of its answer: changed, where the refusal
has a cause that can be left out, or as it is, where waiting may help.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from openai_responses.clock import random_fraction
from openai_responses.endings import (
    CUT,
    UNREADABLE,
    Ending,
    ending_of_exception,
    setback_sentence,
)
from openai_responses.errors import (
    ApiRefused,
    ConnectionFailed,
    ResponsesError,
    Setback,
    TimedOut,
)
from openai_responses.exchange import Line, exchange
from openai_responses.healing import healed
from openai_responses.request import ResponsesRequest
from openai_responses.resumption import followed
from openai_responses.retries import RetryPolicy, retry_wait
from openai_responses.run_events import Noted, RunEvent, Trace
from openai_responses.turn import Turn

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
        line: Line,
        retries: RetryPolicy,
        first_index: int = 0,
    ) -> None:
        """Count the items of the turn from `first_index` on."""
        self.request = request
        self.turn = Turn(first_index)
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
            self.turn, self.error = Turn(self._first_index), None
            sent = followed if self.request.background else exchange
            answer = sent(self.request, self._line, self.turn)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                self.error = caught
            note = self._next()
            if note is None or not self._line.deadlines.leave(self._wait):
                break
            yield note
            await asyncio.sleep(self._wait)
        for event in self.turn.close():
            yield event

    @property
    def ending(self) -> Ending:
        """How the turn ended."""
        if self.turn.ending:
            return self.turn.ending
        if self.error is not None:
            return ending_of_exception(self.error, self.turn.event_count > 0)
        return CUT if self.turn.event_count else UNREADABLE

    @property
    def trace(self) -> Trace:
        """What the log needs to know of the last answer."""
        if not isinstance(self.error, ApiRefused):
            return self.turn.trace
        refused = self.error
        return Trace(refused.request_id, "", refused.setback.status, refused.error)

    def _next(self) -> Noted | None:
        """Return what to tell before the next attempt; None when there is none."""
        setback = _setback(self.error, self.turn)
        if setback is None or (self.request.background and _may_run(self.error)):
            return None
        remedy = healed(self.request, setback.error)
        if remedy and remedy.cause not in self._healed:
            self._healed.add(remedy.cause)
            self.request, self._wait = remedy.request, 0.0
            return Noted(remedy.sentence, remedy.cause)
        wait = retry_wait(self._policy, self._retries, setback, random_fraction())
        if wait is None:
            return None
        self._retries += 1
        self._wait = wait
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        return Noted(f"{setback_sentence(setback)} Trying again in {seconds}.")


def _setback(error: ResponsesError | None, turn: Turn) -> Setback | None:
    """Return the failure, if it came before the first event of the answer."""
    if turn.refusal:
        return Setback(200, turn.refusal)
    if turn.event_count:
        return None
    if isinstance(error, ApiRefused):
        return error.setback
    silent = isinstance(error, TimedOut) and error.kind == "first_event_timeout"
    return Setback() if silent or isinstance(error, ConnectionFailed) else None


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
            told = error.setback.wanted
            return not told and error.status in _GATEWAY_STATUS
    return isinstance(error, TimedOut)
