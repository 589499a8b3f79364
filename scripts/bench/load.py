"""Measure what it takes to load the built files: their size, time and memory.

python scripts/bench/load.py      one table, in about ten seconds

Each is loaded in a process of its own that uses aiohttp and pydantic already, as both
hosts do. Compiling is part of it: the hosts get a text, and keep no bytecode. The time
is that of the CPU, which other work on the machine hardly changes. What Open WebUI does
around it, when a file is saved or imported, `installing.py` measures.
"""

import argparse
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

# Run as a file, Python looks for modules in this file's folder alone.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench.host import verdict
from releasing.contents import ADMINISTRATION_ID, PIPE_ID, READABLE
from releasing.packed import pack

ROOT = Path(__file__).resolve().parents[2]
AGENTS = ROOT / "pipelines/gpt5_agent_strategies.py"
PIPE = "the pipe"
PACKED_PIPE = "the pipe, packed"
GOAL_SECONDS = 0.2
LOADER = """\
import __future__, gc, sys, time
import aiohttp, pydantic
from pathlib import Path
from types import ModuleType

class InUse(pydantic.BaseModel):  # pydantic loads half of itself for the first model
    number: int = 1

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
class Loaded:
    """What one file took: its size in bytes, seconds of CPU, memory in KiB."""

    name: str
    size: int
    seconds: float
    resident: float


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    with TemporaryDirectory() as folder:
        files = write_files(Path(folder))
        loaded = [load(name, file, rounds) for name, file in files.items()]
    print(table(loaded, rounds))


def write_files(folder: Path) -> Mapping[str, Path]:
    """Return the files to load by their names; packs the two that people get packed."""
    files: dict[str, Path] = {}
    names = {PIPE_ID: PIPE, ADMINISTRATION_ID: "the filter for administrators"}
    for function_id, name in names.items():
        readable = READABLE[function_id]
        packed = folder / f"{function_id}.py"
        packed.write_text(pack((ROOT / readable).read_text("utf-8"), readable), "utf-8")
        files[name] = ROOT / readable
        files[f"{name}, packed"] = packed
    files["the agents"] = AGENTS
    return files


def load(name: str, file: Path, rounds: int) -> Loaded:
    """Load a file again and again, each time in a new process; return the medians."""
    runs = [_load_once(file) for _ in range(rounds)]
    return Loaded(
        name=name,
        size=file.stat().st_size,
        seconds=median(seconds for seconds, _ in runs),
        resident=median(resident for _, resident in runs),
    )


def _load_once(file: Path) -> tuple[float, float]:
    """Return seconds of CPU, and KiB of memory."""
    command = [sys.executable, "-c", LOADER, str(file)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, resident = printed.split()
    return float(seconds), float(resident)


def table(loaded: list[Loaded], rounds: int) -> str:
    """Return a line for each file, then the goal."""
    lines = [f"Loading the built files, {rounds} rounds, medians"]
    lines.append(f"  {'':40}{'kB':>8}{'CPU s':>8}{'MB':>8}")
    for file in loaded:
        kilobytes = file.size / 1e3
        megabytes = file.resident * 1024 / 1e6
        numbers = f"{kilobytes:8.0f}{file.seconds:8.2f}{megabytes:8.1f}"
        lines.append(f"  {file.name:40}{numbers}")
    slowest = max(file.seconds for file in loaded if file.name in (PIPE, PACKED_PIPE))
    lines.append(
        f"Goal: the pipe at most {GOAL_SECONDS} s of CPU, in both forms: "
        f"{verdict(slowest <= GOAL_SECONDS)} ({slowest:.2f})."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
