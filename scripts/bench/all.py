"""Run the benchmarks one after the other, and print all goals at the end.

python scripts/bench/all.py             all but crowd.py and soak.py
python scripts/bench/all.py --quick     tiny sizes, to see that they run

Each is a program of its own, which can be run alone. docs/benchmarks.md has the figures.
"""

import argparse
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).resolve().parent
GOAL = "Goal: "


class Bench(NamedTuple):
    """A program, the heading of its table, and its arguments for a quick run."""

    program: str
    heading: str
    quick_arguments: str


BENCHES = (
    Bench("stream.py", "CPU per delta", "--deltas 50 --rounds 1"),
    Bench("inside.py", "Inside Open WebUI", "--deltas 50 --rounds 1"),
    Bench("first.py", "First text inside Open WebUI", "--answers 2 --turns 2"),
    Bench("cost.py", "Dollars of a chat inside Open WebUI", "--turns 4"),
    Bench("large.py", "Very large chats and answers", "--share 0.002"),
    Bench("load.py", "Loading the built files", "--rounds 1"),
)


def main() -> int:
    """Run all; return 1 if one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--without", nargs="+", default=[], metavar="PROGRAM")
    arguments = parser.parse_args()
    today = datetime.now(UTC).date()
    print(f"{today}, {os.cpu_count()} cores, Python {platform.python_version()}")
    exit_code = 0
    goals: list[str] = []
    for bench in BENCHES:
        if bench.program in arguments.without:
            continue
        lines, succeeded = run(bench, arguments.quick)
        results = [line.removeprefix(GOAL) for line in lines if line.startswith(GOAL)]
        if not succeeded:
            results.append("FAILED")
            exit_code = 1
        goals += [f"  {bench.program:12}{result}" for result in results]
    print("\n== Goals\n", *goals, sep="\n")
    return exit_code


def run(bench: Bench, quick: bool) -> tuple[list[str], bool]:
    """Run one program; return the lines that it printed, and whether it succeeded."""
    print(f"\n== {bench.heading} ({bench.program})\n", flush=True)
    command = [sys.executable, str(FOLDER / bench.program)]
    if quick:
        command += bench.quick_arguments.split()
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        for line in program.stdout:
            print(line, end="", flush=True)
            lines.append(line.strip())
    return lines, program.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
