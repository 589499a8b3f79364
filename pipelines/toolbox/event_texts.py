"""Bytes of an event stream in, the data of its events out."""

from codecs import getincrementaldecoder
from collections.abc import Iterator
from io import IncrementalNewlineDecoder


class EventTexts:
    """Turns pieces of a stream, cut anywhere, into the data of whole events."""

    def __init__(self) -> None:
        """Start before the first byte."""
        characters = getincrementaldecoder("utf-8")("replace")
        self._decoder = IncrementalNewlineDecoder(characters, translate=True)
        self._line: list[str] = []
        self._event: list[str] = []

    def feed(self, piece: bytes, is_last: bool = False) -> Iterator[str]:
        """Yield the data of the events that `piece` completes.

        A carriage return counts when the next character, or the end, is there.
        """
        first, *more = self._decoder.decode(piece, is_last).split("\n")
        self._line.append(first)
        for begun in more:
            line = "".join(self._line)
            self._line = [begun]
            if line.startswith("data:"):
                self._event.append(line[5:].removeprefix(" "))
            elif not line and self._event:
                yield "\n".join(self._event)
                self._event = []
