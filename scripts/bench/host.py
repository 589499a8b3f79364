"""What the benchmarks share: the simulator as a process, the built pipe, figures, tables.

Only what reads the simulator's answers is measured, so it runs in its own process. A
temporary chat needs nothing of Open WebUI but its version.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from golden_run.built_files import load_pipe
from releasing.contents import PIPE_ID, READABLE
from releasing.packed import pack

ROOT = Path(__file__).resolve().parents[2]
BUILT = ROOT / "pipes" / "openai_responses_manifold.py"
MODEL = "gpt-5.6-sol"
VERSION = "0.12.4"
NAME_WIDTH = 28
COLUMN_WIDTH = 14

Chunk = dict[str, Any]


class Address(NamedTuple):
    """Where a server listens, and a key that it accepts."""

    base_url: str
    api_key: str


@contextmanager
def run_simulator() -> Iterator[Address]:
    """Run the simulator; it prints its address on one line, its key on the next."""
    with subprocess.Popen(
        [sys.executable, "-m", "simulator", "--port", "0"],
        env={**os.environ, "PYTHONPATH": str(ROOT / "testkit")},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            base_url = process.stdout.readline().split()[-1]
            api_key = process.stdout.readline().split()[-1]
            yield Address(base_url, api_key)
        finally:
            process.terminate()


def address_valves(address: Address) -> dict[str, str]:
    """Return the valves of a pipe that asks the simulator, which stands for OpenAI.

    Of a server that may be another one, more has to be read and remembered.
    """
    return {
        "BASE_URL": address.base_url,
        "API_KEY": address.api_key,
        "COMPATIBILITY": "openai",
    }


@asynccontextmanager
async def open_pipe(address: Address) -> AsyncIterator[Any]:
    """Give a pipe of the built file; close its connections afterwards."""
    _provide_open_webui()
    pipe = load_pipe(BUILT).Pipe()
    pipe.valves = pipe.Valves(**address_valves(address))
    try:
        yield pipe
    finally:
        await pipe._connections.close()


@cache
def packed_pipe() -> str:
    """Return the pipe as people install it.

    Open WebUI reads the whole text of a function from its database at each question
    (utils/plugin.py, 0.12.4).
    """
    return pack(BUILT.read_text("utf-8"), READABLE[PIPE_ID])


def _provide_open_webui() -> None:
    """Provide the module in which the pipe looks for the host's version."""
    package = ModuleType("open_webui")
    environment = ModuleType("open_webui.env")
    vars(environment)["VERSION"] = VERSION
    sys.modules["open_webui"] = package
    sys.modules["open_webui.env"] = environment


async def answer_chunks(
    pipe: Any, question: str, chat: str = "bench"
) -> AsyncGenerator[Chunk, None]:
    """Yield the chunks that Open WebUI would read of an answer in a temporary chat.

    Raises RuntimeError if the pipe shows an error.
    """
    body = {
        "model": f"openai_responses_manifold.{MODEL}",
        "messages": [{"role": "user", "content": question}],
        "stream": True,
    }
    ids = {"chat_id": f"temporary:{chat}", "message_id": f"message-{chat}"}
    chunks = await pipe.pipe(body, __metadata__=ids)
    async for chunk in chunks:
        if "error" in chunk:
            raise RuntimeError(f"The pipe showed an error: {chunk['error']}")
        yield chunk


def server_cpu(pid: int) -> float:
    """Return the CPU that a process has used (proc_pid_stat(5): utime and stime)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def parse_options(
    description: str | None, **defaults: tuple[float, str]
) -> argparse.Namespace:
    """Read the options of a benchmark, each given as its default and its help.

    An option whose default is False takes no value.
    """
    first_line = (description or "").split("\n", 1)[0]
    parser = argparse.ArgumentParser(description=first_line)
    for name, (default, help_text) in defaults.items():
        option = "--" + name.replace("_", "-")
        if default is False:
            parser.add_argument(option, action="store_true", help=help_text)
            continue
        parser.add_argument(option, type=type(default), default=default, help=help_text)
    return parser.parse_args()


def ratios(values: Sequence[float], yardstick: Sequence[float]) -> list[float]:
    """Compare round by round: what slows a machine lasts longer than a round."""
    return [
        value / reference for value, reference in zip(values, yardstick, strict=True)
    ]


def table(title: str, columns: Sequence[str], rows: Mapping[str, Sequence[str]]) -> str:
    """Return a title, the names of the columns, and a line for each row."""
    lines = [title, _row("", columns)]
    lines += [_row(name, cells) for name, cells in rows.items()]
    return "\n".join(lines)


def _row(name: str, cells: Sequence[str]) -> str:
    aligned = "".join(f"{cell:>{COLUMN_WIDTH}}" for cell in cells)
    return f"  {name:{NAME_WIDTH}}{aligned}"


def goal_line(goal: str, is_met: bool, figures: str) -> str:
    """Return the line about a goal, which `all.py` prints again at its end."""
    verdict = "met" if is_met else "MISSED"
    return f"Goal: {goal}: {verdict} ({figures})."
