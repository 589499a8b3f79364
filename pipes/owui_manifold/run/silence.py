"""Status lines that apply only while an answer is awaited: a silence, a new attempt.

The line about a silent server goes to the page directly: during a silence the stream has
no event to yield. One timer serves a whole answer, however often the server speaks.
"""

import asyncio

from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.transport.connections import Connections
from owui_chat.render.chunks import status_chunk
from owui_manifold.host.context import EventEmitter

_FIRST_SECONDS = 20.0
_FACTOR = 3
"""Each further line comes after a silence three times as long as the one before."""
_NEVER = float("inf")


_SILENT = "The server has been silent for {}; the model may still be thinking."


class WaitingLines:
    """Shows on the page what it waits for, and hides it when the wait is over."""

    def __init__(self, emit: EventEmitter | None, connections: Connections) -> None:
        """Wait for nothing yet; without `emit` there is no page."""
        self._emit = emit
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._since = _NEVER
        self._due = _FIRST_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._is_shown = False
        self._has_stored_line = False

    def set_waiting(self, is_waiting: bool) -> None:
        """Note whether the server is awaited from now on."""
        self._since = self._loop.time() if is_waiting else _NEVER
        self._due = _FIRST_SECONDS
        if self._timer is None:
            self._timer = self._loop.call_later(_FIRST_SECONDS, self._look)

    def _look(self) -> None:
        """Show a line if the silence is long enough; look again later."""
        silent = max(0.0, self._loop.time() - self._since)
        if silent >= self._due:
            minutes = int(self._due // 60)
            length = f"{minutes} min" if minutes else f"{self._due:.0f} s"
            self._show(_SILENT.format(length))
            self._due *= _FACTOR
        wait = max(1.0, self._due - silent)
        self._timer = self._loop.call_later(wait, self._look)

    def _show(self, message: str) -> None:
        """Send a line to the page; an empty one hides the last."""
        self._is_shown = bool(message)
        if self._emit:
            event = status_chunk(message)["event"]
            self._connections.do_later(self._emit(event))

    def note(self, event: RunEvent) -> list[Status]:
        """Return what hides the last line, if `event` ends its wait.

        At the end of an answer with stored lines its last line does that: the page would
        draw an empty one as a bullet of the history.
        """
        is_attempt = isinstance(event, Status) and not event.trial
        was_shown = self._is_shown
        self._is_shown = is_attempt
        self._has_stored_line = self._has_stored_line or is_attempt
        is_replaced = isinstance(event, RunDone) and self._has_stored_line
        if is_attempt or is_replaced or not was_shown:
            return []
        return [Status("")]

    async def aclose(self) -> None:
        """Hide what is still shown, as after a stop."""
        self._since = _NEVER
        if self._timer:
            self._timer.cancel()
        if self._is_shown:
            self._show("")
