"""Measure the size of the built files, and CPU and memory that loading them takes.

python scripts/bench/load.py      one table, in about ten seconds

Each is loaded in a process of its own that uses aiohttp and pydantic already, as both
hosts do. Compiling is part of it: the hosts get a text, and keep no bytecode.
"""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "testkit"))

from bench.host import BUILT, ROOT, goal_line, packed_pipe, parse_options, table

AGENTS = ROOT / "pipelines/gpt5_agent_strategies.py"
READABLE_PIPE = "the pipe, readable"
PACKED_PIPE = "the pipe, packed"
GOAL = 0.2
"""Seconds of CPU."""
MEMORY_GOAL = 40
"""Megabytes, of the packed pipe."""
LOADER = """\
import __future__, resource, sys, time
import aiohttp, pydantic
from pathlib import Path
from types import ModuleType

class InUse(pydantic.BaseModel):  # pydantic loads half of itself for the first model
    number: int = 1

def resident():
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize() / 1e6

before = resident()
began = time.process_time()
module = ModuleType("loaded")
sys.modules["loaded"] = module
text = Path(sys.argv[1]).read_text("utf-8")
flags = __future__.annotations.compiler_flag
exec(compile(text, sys.argv[1], "exec", flags, dont_inherit=True), vars(module))
print(time.process_time() - began, resident() - before)
"""


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, rounds=(7, "of each file"))
    texts = {**pipe_texts(), "the agents": AGENTS.read_text("utf-8")}
    sizes = {name: len(text.encode()) for name, text in texts.items()}
    loads = {name: load_cost(text, options.rounds) for name, text in texts.items()}
    print(result(sizes, loads, options.rounds))


def pipe_texts() -> dict[str, str]:
    """Return both forms of the pipe."""
    return {READABLE_PIPE: BUILT.read_text("utf-8"), PACKED_PIPE: packed_pipe()}


class LoadCost(NamedTuple):
    """Seconds of CPU, and megabytes that the process has grown."""

    seconds: float
    megabytes: float


def load_cost(text: str, rounds: int) -> LoadCost:
    """Load a text in new processes; return the medians of what it took."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "loaded.py"
        file.write_text(text, "utf-8")
        command = [sys.executable, "-c", LOADER, str(file)]
        runs = [
            subprocess.run(command, check=True, capture_output=True, text=True)
            for _ in range(rounds)
        ]
    figures = [[float(figure) for figure in run.stdout.split()] for run in runs]
    return LoadCost(*map(median, zip(*figures, strict=True)))


def result(sizes: Mapping[str, int], loads: Mapping[str, LoadCost], rounds: int) -> str:
    """Return a line for each file, then the goals."""
    rows = {
        name: [f"{size / 1e3:.0f}", f"{cost.seconds:.2f}", f"{cost.megabytes:.0f}"]
        for (name, size), cost in zip(sizes.items(), loads.values(), strict=True)
    }
    title = f"Loading the built files, {rounds} rounds, medians"
    slowest = max(loads[READABLE_PIPE].seconds, loads[PACKED_PIPE].seconds)
    goal = goal_line(
        f"the pipe at most {GOAL} s of CPU, in both forms",
        slowest <= GOAL,
        f"{slowest:.2f}",
    )
    grown = loads[PACKED_PIPE].megabytes
    memory_goal = goal_line(
        f"the packed pipe at most {MEMORY_GOAL} MB",
        grown <= MEMORY_GOAL,
        f"{grown:.0f}",
    )
    lines = [table(title, ("kB", "CPU s", "MB more"), rows), goal, memory_goal]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
