"""Print every table of the benchmarks, one after the other, and all goals at the end.

python scripts/bench/all.py             all of them, in about five minutes
python scripts/bench/all.py --quick     tiny sizes, to see that they run

Each is a program of its own, which can be run alone. docs/benchmarks.md holds a run.
"""

import argparse
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Bench:
    """A program, what it answers, and its arguments for a quick run."""

    program: str
    question: str
    quick: str


@dataclass(frozen=True)
class Ran:
    """Whether a program ended well, and what it said of its goals."""

    succeeded: bool
    goals: tuple[str, ...]


GOAL = "Goal: "
BENCHES = (
    Bench("stream.py", "CPU per delta", "--deltas 50 --rounds 1"),
    Bench("inside.py", "Inside Open WebUI", "--deltas 50 --rounds 1 --firsts 1"),
    Bench("wire.py", "From pipe() to the wire", "--turns 1 3 --rounds 1"),
    Bench("history.py", "Building the input of a long chat", "--turns 3 --rounds 1"),
    Bench("large.py", "Very large bodies, chats and answers", "--share 0.002"),
    Bench("prefix.py", "What the prompt cache has already", "--turns 2"),
    Bench("growing.py", "What a chat loses that changes on its way", "--alone"),
    Bench("memory.py", "Memory per stream", "--streams 5 --deltas 20 --rounds 2"),
    Bench("load.py", "Loading the built files", "--rounds 1"),
    Bench("parallel.py", "Five calls at once", "--step 5 --rounds 1"),
    Bench("sandbox.py", "The agent's sandbox", "--rounds 1"),
)


def main() -> int:
    """Run all; return 1 where one of them failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="tiny sizes")
    parser.add_argument("--without", nargs="+", default=[], metavar="PROGRAM")
    given = parser.parse_args()
    chosen = [one for one in BENCHES if one.program not in given.without]
    print(heading(), flush=True)
    done = [run(one, given.quick) for one in chosen]
    print("\n== Goals\n")
    for bench, ran in zip(chosen, done, strict=True):
        for goal in ran.goals or ("no goal" if ran.succeeded else "FAILED",):
            print(f"  {bench.program:14}{goal}")
    return 0 if all(ran.succeeded for ran in done) else 1


def heading() -> str:
    """Return what a reader must know of the machine."""
    today = datetime.now(UTC).date()
    return f"{today}, {os.cpu_count()} cores, Python {platform.python_version()}"


def run(bench: Bench, quick: bool) -> Ran:
    """Run one program under a heading; what it prints is shown as it comes."""
    print(f"\n== {bench.question} ({bench.program})\n", flush=True)
    arguments = bench.quick.split() if quick else []
    goals = []
    command = [sys.executable, str(HERE / bench.program), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        for line in program.stdout:
            print(line, end="", flush=True)
            if line.strip().startswith(GOAL):
                goals.append(line.strip().removeprefix(GOAL))
    return Ran(program.returncode == 0, tuple(goals))


if __name__ == "__main__":
    sys.exit(main())
