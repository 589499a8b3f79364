"""Status lines that apply only while an answer is awaited: a silence, a new attempt.

The line about a silent server goes to the page directly: during a silence the stream has
no event to yield. One timer serves a whole answer, however often the server speaks.
"""

import asyncio

from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.transport.connections import Connections
from owui_chat.render.chunks import status_chunk
from owui_manifold.host.open_webui import EventEmitter

_FIRST_SECONDS = 20.0
_MINUTE = 60.0
"""After the first line, each minute has one: who waits sees that the pipe still does."""
_NEVER = float("inf")

_SILENT = "Still thinking, {}"
_RESPONDED = "The model's server responded"


class WaitingLines:
    """Shows on the page what it waits for, and that the wait is over."""

    def __init__(self, emit: EventEmitter | None, connections: Connections) -> None:
        """Wait for nothing yet; without `emit` there is no page."""
        self._emit = emit
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._since = _NEVER
        """When the wait for the server began."""
        self._due = _FIRST_SECONDS
        """The seconds of silence after which the next line is shown."""
        self._timer: asyncio.TimerHandle | None = None
        self._is_shown = False
        """Whether a line is shown that the next event ends."""
        self._has_responded = False
        """Whether one was ended."""
        self._has_stored_line = False
        """Whether the host stored one."""

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
            minutes = int(self._due // _MINUTE)
            length = f"{minutes} min" if minutes else f"{self._due:.0f} s"
            self._show(_SILENT.format(length))
            self._due = (minutes + 1) * _MINUTE
        wait = max(1.0, self._due - silent)
        self._timer = self._loop.call_later(wait, self._look)

    def _show(self, message: str) -> None:
        """Send a line to the page; an empty one hides the last."""
        self._is_shown = bool(message)
        if self._emit:
            event = status_chunk(message)["event"]
            self._connections.do_later(self._emit(event))

    def note(self, event: RunEvent) -> list[Status]:
        """Return the line that replaces the last one, if `event` ends its wait.

        The page leaves out the text of a hidden line, but draws its bullet in the opened
        history (StatusHistory of 0.12.4). So a line is hidden only where none follows.
        """
        if isinstance(event, Status) and not event.tried:
            self._is_shown = True
            self._has_stored_line = True
            return []
        if isinstance(event, RunDone):
            was_shown = self._is_shown or self._has_responded
            self._is_shown = False
            # Nothing else hides the lines of a failure that has no last line.
            hides = was_shown and event.ending.is_failure and not self._has_stored_line
            return [Status("")] if hides else []
        if not self._is_shown:
            return []
        self._is_shown = False
        self._has_responded = True
        return [Status(_RESPONDED, is_note=False)]

    async def aclose(self) -> None:
        """Hide what is still shown, as after a stop."""
        if self._timer:
            self._timer.cancel()
        if self._is_shown:
            self._show("")
