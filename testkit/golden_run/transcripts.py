"""The wire transcripts, by the run that each belongs to.

Those of the simulator are made here; those of other servers are in `testkit/streams`.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.transcripts import build_transcripts

Json = dict[str, Any]

_DATA_LINE = re.compile(r"^data: ?(?P<text>.*)$")
_TERMINAL_TYPES = (
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
)


@dataclass(frozen=True)
class Transcript:
    """The responses of one run.

    `resumed` is the rest of a background response whose stream broke.
    """

    name: str
    responses: tuple[bytes, ...]
    resumed: bytes


def read_transcripts(folder: Path) -> list[Transcript]:
    """Return all runs, in the order of their names."""
    files = dict(build_transcripts())
    for path in folder.rglob("*.sse"):
        files[path.relative_to(folder).as_posix()] = path.read_bytes()
    responses: dict[str, list[tuple[int, bytes]]] = {}
    for name, body in files.items():
        if name.startswith("resumed/"):
            continue
        run, _, number = name.removesuffix(".sse").rpartition(".")
        if not number.isdigit():  # the only response of its run
            run, number = name.removesuffix(".sse"), "1"
        responses.setdefault(run, []).append((int(number), body))
    transcripts = []
    for name in sorted(responses):
        bodies = tuple(body for _, body in sorted(responses[name]))
        rest = files.get(f"resumed/{name}.sse", b"")
        transcripts.append(Transcript(name, bodies, rest))
    return transcripts


def read_events(body: bytes) -> list[Json]:
    """Return the events of a transcript; what is not a whole JSON object is skipped."""
    events = []
    for block in re.split(r"\n\n|\r\n\r\n|\r\r", body.decode("utf-8", "replace")):
        lines = [_DATA_LINE.match(line) for line in re.split(r"\r\n|\n|\r", block)]
        text = "\n".join(match["text"] for match in lines if match)
        try:
            event = json.loads(text)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def terminal_event(body: bytes) -> Json | None:
    """Return the event that ends a response; None if the stream broke before it."""
    for event in reversed(read_events(body)):
        if event.get("type") in _TERMINAL_TYPES:
            return event
    return None
