"""Measure what it takes to load the built files: their size, time and memory.

python scripts/bench/load.py      one table, in about ten seconds

Each in a process of its own that has imported aiohttp and pydantic already, as both
hosts have. Compiling is part of it: the hosts get a text, and keep no bytecode. The
time is that of the CPU, which other work on the machine hardly changes.
"""

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
LOADER = """\
import __future__, gc, sys, time
import aiohttp, pydantic
from pathlib import Path
from types import ModuleType

def resident():
    line = [s for s in open("/proc/self/status") if s.startswith("VmRSS:")][0]
    return int(line.split()[1])

gc.collect()
held, began = resident(), time.process_time()
module = ModuleType("loaded")
sys.modules["loaded"] = module
text = Path(sys.argv[1]).read_text("utf-8")
flags = __future__.annotations.compiler_flag
exec(compile(text, sys.argv[1], "exec", flags, dont_inherit=True), vars(module))
seconds = time.process_time() - began
print(seconds, resident() - held)
"""


@dataclass(frozen=True)
class Bundle:
    """A built file with its goals: seconds of CPU, bytes."""

    path: Path
    seconds: float
    size: int


BUNDLES = (
    Bundle(ROOT / "pipes/openai_responses_manifold.py", 0.2, 430_000),
    Bundle(ROOT / "pipelines/gpt5_agent_strategies.py", 0.25, 520_000),
)


@dataclass(frozen=True)
class Loaded:
    """What one bundle took; memory in KiB."""

    goal: Bundle
    size: int
    seconds: float
    resident: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    print(table([load(bundle, rounds) for bundle in BUNDLES], rounds))


def load(bundle: Bundle, rounds: int) -> Loaded:
    """Load a bundle again and again, each time in a new process."""
    runs = [_load_once(bundle.path) for _ in range(rounds)]
    seconds, resident = (median(column) for column in zip(*runs, strict=True))
    return Loaded(bundle, bundle.path.stat().st_size, seconds, resident)


def _load_once(bundle: Path) -> tuple[float, float]:
    command = [sys.executable, "-c", LOADER, str(bundle)]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, resident = said.split()
    return float(seconds), float(resident)


def table(loaded: list[Loaded], rounds: int) -> str:
    """Return a line for each bundle, then the goals."""
    lines = [f"Loading the built files, {rounds} rounds, medians"]
    lines.append(f"  {'':32}{'kB':>8}{'CPU s':>8}{'MB':>8}")
    for one in loaded:
        numbers = f"{one.size / 1e3:8.0f}{one.seconds:8.2f}{one.resident / 976.6:8.1f}"
        lines.append(f"  {one.goal.path.name:32}{numbers}")
    for one in loaded:
        goal, name = one.goal, one.goal.path.name
        lines += [
            f"Goal: {name} at most {goal.seconds} s of CPU: "
            f"{_verdict(one.seconds <= goal.seconds)} ({one.seconds:.2f}).",
            f"Goal: {name} at most {goal.size / 1e3:.0f} kB: "
            f"{_verdict(one.size <= goal.size)} ({one.size / 1e3:.0f}).",
        ]
    return "\n".join(lines)


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"


if __name__ == "__main__":
    main()
