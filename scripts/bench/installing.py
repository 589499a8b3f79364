"""Measure what the real Open WebUI does when the pipe is saved or imported.

python scripts/bench/installing.py      one table, in about a minute

The editor's *Save* first sends the text to be formatted by Black, then stores it.
*Import JSON* only stores. Storing runs the file once. Open WebUI does all of this in
the event loop of the process that serves everybody: while that process uses CPU, nobody
gets an answer.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.host import parse_options, server_cpu, table
from bench.load import pipe_texts
from hosts.people.client import Json
from hosts.servers.open_webui import OpenWebUI

FUNCTION_ID = "installed_again"
STEPS = ("formatting", "storing")
SMALL = '"""title: Small"""\n\n\nclass Filter: ...\n'
"""Installed first: Black loads parts of itself for the first text."""
UNFREEZE = '"""title: Unfreeze"""\nimport gc\ngc.unfreeze()\nclass Filter: ...\n'
"""The tests' `boot.py` excludes what the server has imported from the collection of
garbage, which would make it too cheap here."""

Seconds = Mapping[str, list[tuple[float, float]]]
"""The seconds of CPU of both steps in each round, by the form of the pipe."""


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, rounds=(5, "of each form"))
    print(result(asyncio.run(measure(pipe_texts(), options.rounds)), options.rounds))


async def measure(texts: Mapping[str, str], rounds: int) -> Seconds:
    """Install each text once in a round."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in texts}
    async with OpenWebUI() as server:
        await server.admin.install_function("unfreeze", UNFREEZE, "Unfreeze")
        await install(server, SMALL)
        for _ in range(rounds):
            for name, text in texts.items():
                seconds[name].append(await install(server, text))
    return seconds


async def install(server: OpenWebUI, text: str) -> tuple[float, float]:
    """Format and store a function, and delete it; return the CPU of the two steps."""
    function = {
        "id": FUNCTION_ID,
        "name": "Installed again",
        "meta": {"description": "A benchmark installs it."},
        "content": text,
    }
    code = {"code": text}
    formatting, formatted = await _call(server, "/api/v1/utils/code/format", code)
    if formatted["code"] != text:
        raise RuntimeError("Black has changed the text.")
    storing, _ = await _call(server, "/api/v1/functions/create", function)
    await server.admin.delete_function(FUNCTION_ID)
    return formatting, storing


async def _call(server: OpenWebUI, path: str, form: Json) -> tuple[float, Json]:
    """Return the CPU that the server used for a call, and its answer."""
    before = server_cpu(server.pid)
    answer: Json = await server.admin.call("POST", path, form)
    return server_cpu(server.pid) - before, answer


def result(seconds: Seconds, rounds: int) -> str:
    """Return a line for each form of the pipe."""
    rows = {
        name: [f"{median(step):.2f}" for step in zip(*pairs, strict=True)]
        for name, pairs in seconds.items()
    }
    title = f"Installing in Open WebUI, {rounds} rounds, medians, seconds of CPU"
    return table(title, STEPS, rows)


if __name__ == "__main__":
    main()
