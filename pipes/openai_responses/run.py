"""A whole request, as a stream of run events.

The loop knows neither host nor valve: what it needs comes in frozen inputs, what
happens goes out as events, and the last of them says how the run ended. A request is
sent again only before the first event of its answer: changed, where the refusal has a
cause that can be left out, or as it is, where waiting may help.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from openai_responses.clock import random_fraction
from openai_responses.deadlines import Deadlines
from openai_responses.endings import (
    CUT,
    UNREADABLE,
    ending_of_exception,
    setback_sentence,
)
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    ApiRefused,
    ConnectionFailed,
    ResponsesError,
    Setback,
    TimedOut,
)
from openai_responses.exchange import Limits, Line, exchange
from openai_responses.healing import healed
from openai_responses.request import ResponsesRequest
from openai_responses.retries import retry_wait
from openai_responses.run_events import Noted, RunEnded, RunEvent, Trace
from openai_responses.transport import Connections
from openai_responses.turn import Turn


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
    line = Line(endpoint, connections, limits, Deadlines(limits.timeouts))
    again = _Again(request, limits)
    while True:
        turn, error = Turn(), None
        try:
            async with aclosing(exchange(again.request, line, turn)) as events:
                async for event in events:
                    yield event
        except ResponsesError as caught:
            error = caught
        note = again.after(error, turn)
        if note is None or not line.deadlines.leave(again.wait):
            break
        yield note
        await asyncio.sleep(again.wait)
    for event in turn.close():
        yield event
    yield _ended(turn, error)


class _Again:
    """Decides after an attempt whether there is another one, and with what."""

    def __init__(self, request: ResponsesRequest, limits: Limits) -> None:
        self.request = request
        self.wait = 0.0
        self._policy = limits.retries
        self._retries = 0
        self._healed: set[str] = set()

    def after(self, error: ResponsesError | None, turn: Turn) -> Noted | None:
        """Return what to tell before the next attempt; None when there is none."""
        setback = _setback(error, turn)
        if setback is None:
            return None
        remedy = healed(self.request, setback.error)
        if remedy and remedy.cause not in self._healed:
            self._healed.add(remedy.cause)
            self.request, self.wait = remedy.request, 0.0
            return Noted(remedy.sentence, remedy.cause)
        wait = retry_wait(self._policy, self._retries, setback, random_fraction())
        if wait is None:
            return None
        self._retries += 1
        self.wait = wait
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


def _ended(turn: Turn, error: ResponsesError | None) -> RunEnded:
    silent = CUT if turn.event_count else UNREADABLE
    ending, trace = turn.ending or silent, turn.trace
    if error is not None and turn.ending is None:
        ending = ending_of_exception(error, turn.event_count > 0)
    if isinstance(error, ApiRefused):
        trace = Trace(error.request_id, "", error.setback.status, error.error)
    return RunEnded(ending, turn.usage, turn.usage, tuple(turn.output), trace)
