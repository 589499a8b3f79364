"""Open WebUI's own pure functions, asked from a test."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hosts.servers.offline import OFFLINE, host_python

SCRIPT = Path(__file__).with_name("answer_as_host.py")
Json = dict[str, Any]


class HostFunctions:
    """A process of the host's interpreter that answers lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def convert(self, output: list[Json]) -> list[Json]:
        """The messages that stored output items become in the next turn."""
        return self._ask("convert", output)

    def reduce(self, chunks: list[Json]) -> list[Json]:
        """The output items that the host makes of native events."""
        return self._ask("reduce", chunks)

    def _ask(self, name: str, argument: list[Json]) -> list[Json]:
        stdin = self._process.stdin
        stdout = self._process.stdout
        assert stdin
        assert stdout
        stdin.write(json.dumps([name, argument]) + "\n")
        stdin.flush()
        answer: list[Json] = json.loads(stdout.readline())
        return answer


@contextmanager
def run_host_functions(home: Path) -> Iterator[HostFunctions]:
    """Start the process, with `home` for what the host writes at its import."""
    places = {"DATA_DIR": str(home), "STATIC_DIR": str(home / "static")}
    with subprocess.Popen(
        [host_python(), "-P", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **OFFLINE, **places},
    ) as process:
        assert process.stdout
        while process.stdout.readline() not in ("ready\n", ""):
            pass
        try:
            yield HostFunctions(process)
        finally:
            process.kill()
