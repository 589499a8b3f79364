"""Measure what the sandbox adds to the start of a Python.

python scripts/bench/sandbox.py     one table, in a few seconds

A bare interpreter, the one that the sandbox uses, and the tool take turns, so that a busy
machine slows both alike. The best rounds are compared: other work can only add to them.
The last line also has files in the workspace, which are laid out before the run and
packed after it.
"""

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "pipelines"))

from toolbox.sandbox.bubblewrap import find_interpreters
from toolbox.sandbox.tools import SandboxResult, SandboxTools

GOAL = 60.0
FILL = "for n in range(100): open(str(n), 'wb').write(bytes(100_000))"
Contender = Callable[[], Awaitable[object]]


def main() -> int:
    """Print the table, or why there is nothing to measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=30)
    return asyncio.run(show(parser.parse_args().rounds))


async def show(rounds: int) -> int:
    """Measure, then print what came out."""
    tools = SandboxTools(log=print)
    try:
        if not await tools.specs():
            return 1
        await run(tools, "a full chat", FILL)
        contenders: dict[str, Contender] = {
            "a bare interpreter": bare,
            "python_execute": lambda: run(tools, "a chat", ""),
            "python_execute, 10 MB kept": lambda: run(tools, "a full chat", ""),
        }
        print(table(await measure(contenders, rounds)))
    finally:
        await tools.close()
    return 0


async def bare() -> None:
    """Start the interpreter that the sandbox uses, to do nothing."""
    command = (str(find_interpreters()[-1]), "-I", "-c", "")
    process = await asyncio.create_subprocess_exec(*command, stdin=subprocess.DEVNULL)
    assert await process.wait() == 0


async def run(tools: SandboxTools, chat: str, code: str) -> SandboxResult:
    """Run code with the tool."""
    answer = await tools.call(chat, "python_execute", {"code": code})
    assert not answer.failed, answer.text
    return answer


async def measure(
    contenders: dict[str, Contender], rounds: int
) -> dict[str, list[float]]:
    """Let all take turns; return the milliseconds of each."""
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, contender in contenders.items():
            began = time.perf_counter()
            await contender()
            found[name].append((time.perf_counter() - began) * 1e3)
    return found


def table(found: dict[str, list[float]]) -> str:
    """Return a line for each contender, then the goal."""
    bare_times, runs, _ = found.values()
    title = f"{len(runs)} rounds, ms"
    lines = [f"{title:30}{'best':>8}{'median':>8}{'over bare':>11}{'x bare':>8}"]
    for name, times in found.items():
        best, yardstick = min(times), min(bare_times)
        numbers = f"{best:8.1f}{median(times):8.1f}{best - yardstick:11.1f}"
        lines.append(f"  {name:28}{numbers}{best / yardstick:8.2f}")
    extra = min(runs) - min(bare_times)
    verdict = "met" if extra <= GOAL else "MISSED"
    lines.append(f"Goal: at most {GOAL:g} ms over bare: {verdict} ({extra:.1f}).")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
