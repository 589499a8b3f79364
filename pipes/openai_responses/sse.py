"""Bytes of an event stream in, server-sent events out.

Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
stream". There is no limit on a line: a `response.completed` snapshot or a partial
image easily passes a megabyte, which is why the line reader of aiohttp cannot be used
(responses-api.md §3).
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One dispatched event; `data` holds its lines joined by a newline."""

    event: str
    data: str


class EventStreamDecoder:
    """Turns chunks, cut anywhere, into events.

    The bytes of an unfinished line are kept as they came and joined once, when the
    line ends: the work is linear in the length of the stream.
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._fragments: list[bytes] = []
        self._after_cr = False
        self._event = ""
        self._lines: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):  # the second half of a CRLF
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._fragments.append(chunk)
            return []
        if self._fragments:
            self._fragments.append(chunk)
            chunk = b"".join(self._fragments)
            self._fragments = []
        return self._take_lines(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream cut off after its last line.

        The standard drops it. Here a terminal event whose blank line is missing is
        worth more than the rule: without it a finished answer would count as cut.
        """
        rest = b"".join(self._fragments)
        self._fragments = []
        return self._take_lines(rest + b"\n\n")

    def _take_lines(self, text: bytes) -> list[ServerSentEvent]:
        """Read the whole lines of `text`; keep what follows the last line end."""
        lines = text.splitlines(keepends=True)
        if not lines[-1].endswith((b"\n", b"\r")):
            self._fragments.append(lines.pop())
        elif lines[-1].endswith(b"\r"):
            self._after_cr = True
        events: list[ServerSentEvent] = []
        for line in lines:
            self._take_line(line.rstrip(b"\r\n"), events)
        return events

    def _take_line(self, line: bytes, events: list[ServerSentEvent]) -> None:
        """Read one line without its end; a blank one dispatches the event."""
        if line.startswith(b"data:"):
            start = 6 if line[5:6] == b" " else 5
            self._lines.append(line[start:])
        elif not line:
            if self._lines:
                text = b"\n".join(self._lines).decode("utf-8", errors="replace")
                events.append(ServerSentEvent(self._event, text))
            self._event, self._lines = "", []
        elif line.startswith(b"event:"):
            self._event = line[6:].strip().decode("utf-8", errors="replace")
        elif line == b"data":
            self._lines.append(b"")
        # id, retry, comments and unknown fields carry nothing we act on
