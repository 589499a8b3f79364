"""The streams of the simulator's scenarios, written when the tests begin."""

import atexit
import shutil
import tempfile
from pathlib import Path

from simulator.transcripts import write_transcripts

FOLDER = Path(tempfile.mkdtemp(prefix="streams-"))
"""Each process has its own: to write them takes a quarter of a second."""

atexit.register(shutil.rmtree, FOLDER, ignore_errors=True)
write_transcripts(FOLDER)


def transcript(name: str) -> bytes:
    return (FOLDER / f"{name}.sse").read_bytes()
