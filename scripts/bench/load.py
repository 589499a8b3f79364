"""Measure the size of the built files, and the CPU that loading them takes.

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

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import BUILT, ROOT, goal_line, packed_pipe, parse_options, table

AGENTS = ROOT / "pipelines/gpt5_agent_strategies.py"
READABLE_PIPE = "the pipe, readable"
PACKED_PIPE = "the pipe, packed"
GOAL = 0.2
"""Seconds of CPU."""
LOADER = """\
import __future__, sys, time
import aiohttp, pydantic
from pathlib import Path
from types import ModuleType

class InUse(pydantic.BaseModel):  # pydantic loads half of itself for the first model
    number: int = 1

began = time.process_time()
module = ModuleType("loaded")
sys.modules["loaded"] = module
text = Path(sys.argv[1]).read_text("utf-8")
flags = __future__.annotations.compiler_flag
exec(compile(text, sys.argv[1], "exec", flags, dont_inherit=True), vars(module))
print(time.process_time() - began)
"""


def main() -> None:
    """Print the table."""
    options = parse_options(__doc__, rounds=(7, "of each file"))
    texts = {**pipe_texts(), "the agents": AGENTS.read_text("utf-8")}
    sizes = {name: len(text.encode()) for name, text in texts.items()}
    seconds = {name: load_seconds(text, options.rounds) for name, text in texts.items()}
    print(result(sizes, seconds, options.rounds))


def pipe_texts() -> dict[str, str]:
    """Return both forms of the pipe."""
    return {READABLE_PIPE: BUILT.read_text("utf-8"), PACKED_PIPE: packed_pipe()}


def load_seconds(text: str, rounds: int) -> float:
    """Load a text in new processes; return the median of their seconds of CPU."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "loaded.py"
        file.write_text(text, "utf-8")
        command = [sys.executable, "-c", LOADER, str(file)]
        runs = [
            subprocess.run(command, check=True, capture_output=True, text=True)
            for _ in range(rounds)
        ]
    return median(float(run.stdout) for run in runs)


def result(sizes: Mapping[str, int], seconds: Mapping[str, float], rounds: int) -> str:
    """Return a line for each file, then the goal."""
    rows = {
        name: [f"{sizes[name] / 1e3:.0f}", f"{seconds[name]:.2f}"] for name in sizes
    }
    title = f"Loading the built files, {rounds} rounds, medians"
    slowest = max(seconds[READABLE_PIPE], seconds[PACKED_PIPE])
    goal = goal_line(
        f"the pipe at most {GOAL} s of CPU, in both forms",
        slowest <= GOAL,
        f"{slowest:.2f}",
    )
    return f"{table(title, ('kB', 'CPU s'), rows)}\n{goal}"


if __name__ == "__main__":
    main()
