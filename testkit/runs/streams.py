"""The streams that every layer reads: those of other servers, recordings, simulations.

Those of `testkit/streams/others` come from other servers or are written by hand. The
recordings of OpenAI and other clouds are no part of the project: they lie next to
the checkout, in `../shared/recordings`, and are left out where they are not.
"""

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from runs.transcripts import FOLDER as SIMULATED
from upstream.odd_streams import FOLDER

TESTKIT = Path(__file__).resolve().parents[1]
RECORDINGS = TESTKIT.parents[1] / "shared" / "recordings"

_SIMULATIONS = """
background-drop cache-miss chat-cr count-failed count-late custom-tool draw-failed
draw-generating draw-only early-delta file-search late-reason mcp-approvals mcp-error
mcp-http-error mcp-unlisted misaligned parallel-unknown-keepalive reasoning-text refusal
remark-cut remarks remarks-only search-failed search-twice too-large tool-cut web-search
"""
SIMULATIONS = tuple(_SIMULATIONS.split())
"""Scenarios of the simulator that bring what no other stream here brings: a type of
event or item, or a branch of the code that reads, shows or keeps them."""

RECORDED: dict[str, tuple[int, ...]] = {
    "responses": (*(19, 66, 461, 595, 619, 679, 774, 871, 886, 926, 965, 968, 1209),),
    "responses-2026-11-28": (15, 68, 92, 137, 275),
}
"""Lines of the files of recorded exchanges: each has an event, an item, an ending or a
server that the others do not have."""


SERVER_RUN = ("server-run-custom-call", "gateway-ran-a-remote-call")
"""xAI reports its own searches as custom calls, LiteLLM remote calls as functions: of
tools that no request has named."""


class Stream(NamedTuple):
    """The responses of one run, in their order."""

    name: str
    files: tuple[Path, ...]
    line: int = 0
    """The line of a file of exchanges that has the only response."""
    is_simulated: bool = False

    @property
    def tools(self) -> tuple[str, ...] | None:
        """The tools that the request names; None if that does not count."""
        return () if self.name in SERVER_RUN else None

    def rounds(self) -> list[bytes]:
        if self.line:
            return [_recorded_lines(self.files[0])[self.line - 1]]
        return [path.read_bytes() for path in self.files]


@cache
def _recorded_lines(path: Path) -> list[bytes]:
    """Return the bodies of the exchanges that are named above, at their lines."""
    wanted = RECORDED[path.name.removesuffix(".jsonl.gz")]
    bodies: list[bytes] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            body = json.loads(line)["body"] if number in wanted else ""
            bodies.append(body.encode())
    return bodies


def _files(folder: Path) -> dict[str, tuple[Path, ...]]:
    """Return the files of each run: `NAME.sse`, or `NAME.1.sse` and those after it."""
    runs: dict[str, tuple[Path, ...]] = {}
    for path in sorted(folder.glob("*.sse")):
        name, _, number = path.stem.rpartition(".")
        run = name if name and number.isdigit() else path.stem
        runs[run] = (*runs.get(run, ()), path)
    return runs


def _recordings() -> Iterator[Stream]:
    for name, files in _files(RECORDINGS / "real-servers").items():
        yield Stream(f"recorded-{name}", files)
    for file, lines in RECORDED.items():
        path = RECORDINGS / f"{file}.jsonl.gz"
        for line in lines if path.exists() else ():
            yield Stream(f"recorded-{file}-{line}", (path,), line)


_SIMULATED_FILES = _files(SIMULATED)
STREAMS = (
    *(Stream(name, files) for name, files in _files(FOLDER).items()),
    *(Stream(name, _SIMULATED_FILES[name], is_simulated=True) for name in SIMULATIONS),
    *_recordings(),
)

each_stream = pytest.mark.parametrize(
    "stream", STREAMS, ids=[stream.name for stream in STREAMS]
)
