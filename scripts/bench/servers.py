"""Servers in processes of their own."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Address:
    """Where a server answers, and with which key."""

    base_url: str
    api_key: str


@contextmanager
def run_server(*command: str) -> Iterator[Address]:
    """Start a module that says its address first, and end it afterwards."""
    with subprocess.Popen(
        [sys.executable, "-m", *command],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            yield Address(_last_word(process.stdout), _last_word(process.stdout))
        finally:
            process.terminate()


def _last_word(lines: Iterator[str]) -> str:
    """Return what a line such as `base URL  http://...` says."""
    return next(lines).split()[-1]
