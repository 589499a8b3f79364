"""Measure what the real Open WebUI does when a function is saved or imported.

python scripts/bench/installing.py      one table, in about a minute

The editor's *Save* first sends its text to be formatted by Black, then stores it.
*Import JSON* only stores. Storing runs the file once. Open WebUI does all of this in
the event loop of the process that answers everybody, so the CPU of that process is the
time in which nobody is answered.
"""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from bench.inside import cpu_seconds
from hosts.people.client import Json
from hosts.servers.open_webui import OpenWebUI
from releasing.contents import ADMINISTRATION_ID, PIPE_ID, READABLE
from releasing.packed import pack

ROOT = Path(__file__).resolve().parents[2]
FUNCTION_ID = "installed_again"
FORMATTING = "formatting"
IMPORTING = "importing"
UPDATING = "updating"
STEPS = (FORMATTING, IMPORTING, UPDATING)
SMALL = '"""title: Small"""\n\n\nclass Filter: ...\n'
"""Formatted first: Black loads parts of itself for that."""
UNFREEZE = '"""title: Unfreeze"""\nimport gc\ngc.unfreeze()\nclass Filter: ...\n'
"""`boot.py` of the tests freezes what the server has imported, which then costs nothing
when garbage is collected. Elsewhere it does."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    print(table(asyncio.run(measure(sources(), rounds)), rounds))


def sources() -> dict[str, str]:
    """Return the texts to install by their names."""
    texts: dict[str, str] = {}
    names = {PIPE_ID: "the pipe", ADMINISTRATION_ID: "the filter for administrators"}
    for function_id, name in names.items():
        readable = READABLE[function_id]
        text = (ROOT / readable).read_text("utf-8")
        texts[f"{name}, readable"] = text
        texts[f"{name}, packed"] = pack(text, readable)
    return texts


async def measure(
    texts: Mapping[str, str], rounds: int
) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of CPU of each step, by the names of texts and steps."""
    results: dict[str, dict[str, list[float]]] = {}
    async with OpenWebUI() as server:
        await server.admin.install_function("unfreeze", UNFREEZE, "Unfreeze")
        await install(server, SMALL)
        for _ in range(rounds):
            for name, text in texts.items():
                steps = results.setdefault(name, {step: [] for step in STEPS})
                for step, seconds in (await install(server, text)).items():
                    steps[step].append(seconds)
    return results


async def install(server: OpenWebUI, text: str) -> dict[str, float]:
    """Format, import and update one function; return the seconds of CPU of each."""
    functions = "/api/v1/functions"
    function = {
        "id": FUNCTION_ID,
        "name": "Installed again",
        "meta": {"description": "A benchmark installs it."},
        "content": text,
    }
    seconds, formatted = await _call(
        server, "/api/v1/utils/code/format", {"code": text}
    )
    spent = {FORMATTING: seconds}
    if formatted["code"] != text:
        raise RuntimeError("Black has changed the text.")
    spent[IMPORTING], _ = await _call(server, f"{functions}/create", function)
    update = f"{functions}/id/{FUNCTION_ID}/update"
    spent[UPDATING], _ = await _call(server, update, function)
    await server.admin.delete_function(FUNCTION_ID)
    return spent


async def _call(server: OpenWebUI, path: str, form: Json) -> tuple[float, Json]:
    """Return what a call took of the server's CPU, and what it answered."""
    began = cpu_seconds(server.pid)
    answer: Json = await server.admin.call("POST", path, form)
    return cpu_seconds(server.pid) - began, answer


def table(results: Mapping[str, Mapping[str, list[float]]], rounds: int) -> str:
    """Return a line for each text."""
    lines = [f"Installing in Open WebUI, {rounds} rounds, medians, seconds of CPU"]
    heads = "".join(f"{step:>12}" for step in STEPS)
    lines.append(f"  {'':40}{heads}")
    for name, steps in results.items():
        numbers = "".join(f"{median(steps[step]):12.2f}" for step in STEPS)
        lines.append(f"  {name:40}{numbers}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
