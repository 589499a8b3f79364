"""Servers in processes of their own, so that only their clients are measured."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]
SIMULATOR = ("simulator", "--port", "0")


@dataclass(frozen=True)
class Address:
    """Where a server answers, and with which key."""

    base_url: str
    api_key: str


@contextmanager
def run_server(*command: str) -> Iterator[Address]:
    """Run a module until the end of the block; it prints its address, then its key."""
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            base_url = _last_word(process.stdout)
            api_key = _last_word(process.stdout)
            yield Address(base_url, api_key)
        finally:
            process.terminate()


def _last_word(lines: Iterator[str]) -> str:
    """Return the value in a line such as `base URL  http://...`."""
    return next(lines).split()[-1]
