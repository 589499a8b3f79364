"""Bytes of an event stream in, server-sent events out.

Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
stream". There is no limit on a line: a `response.completed` snapshot or a partial
image easily passes a megabyte, which is why the line reader of aiohttp cannot be used
(responses-api.md §3).
"""

from typing import NamedTuple


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline.

    A tuple, because there is one for each token: it is made in half the time.
    """

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
        self._event = b""
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
        lines = text.splitlines()
        if text.endswith(b"\r"):
            self._after_cr = True
        elif not text.endswith(b"\n"):
            self._fragments.append(lines.pop())
        return self._dispatched(lines)

    def _dispatched(self, lines: list[bytes]) -> list[ServerSentEvent]:
        """Return the events that a blank line among `lines` ends."""
        events = []
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            elif not line:
                if self._lines:
                    name = self._event.decode("utf-8", "replace")
                    text = b"\n".join(self._lines).decode("utf-8", "replace")
                    events.append(ServerSentEvent(name, text))
                self._event, self._lines = b"", []
            # id, retry, comments and unknown fields carry nothing we act on
        return events
