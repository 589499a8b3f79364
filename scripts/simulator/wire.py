"""Events as bytes on the wire."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from simulator.options import Options

Event = Mapping[str, Any]
LENGTHS = (4, 16, 128)


def encode(event: Event, options: Options) -> bytes:
    """Write one event as the lines of a server-sent event."""
    indent = 1 if options.has("multiline") else None
    separators = (",", ": ") if indent else (",", ":")
    text = json.dumps(event, ensure_ascii=False, indent=indent, separators=separators)
    lines = [f"data: {line}" for line in text.split("\n")]
    if not options.has("nameless"):
        lines.insert(0, f"event: {event['type']}")
    if options.has("comments"):
        lines.insert(0, ": a comment")
    end = _line_end(options)
    return "".join(f"{line}{end}" for line in (*lines, "")).encode()


def encode_end(options: Options) -> bytes:
    """Write what some gateways put behind the last event."""
    return (
        f"data: [DONE]{_line_end(options) * 2}".encode() if options.has("done") else b""
    )


def _line_end(options: Options) -> str:
    if options.has("crlf"):
        return "\r\n"
    return "\r" if options.has("cr") else "\n"


def cut_chunks(
    writes: Iterable[bytes], options: Options, dice: random.Random
) -> Iterator[bytes]:
    """Cut writes into the chunks that were asked for, inside characters too."""
    size = options.text("chunks")
    for write in writes:
        start = 0
        while start < len(write):
            length = len(write) - start
            if size == "random":
                length = min(length, dice.randint(1, dice.choice(LENGTHS)))
            elif size:
                length = int(size)
            yield write[start : start + length]
            start += length
