"""Everything that must hold before a commit.

    scripts/test           all of it
    scripts/test --fast    what needs no host, no browser, no database and no sandbox
    scripts/test --long    all of it, then what takes many minutes: fuzz, soak, faults
    scripts/test ARGUMENTS  pytest with these arguments, and nothing else

`scripts/test` sets up what is missing.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import IO

from needs import MARKS
from progress import Progress

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ("pipes", "pipelines", "scripts", "testkit", "tests")
PARALLEL = ("-n", "3", "--dist", "loadfile")  # two cores: a server makes its test wait
HOST_BENCHES = ("inside.py", "first.py", "cost.py")
"""They start an Open WebUI: tests/hosts/test_bench_inside.py runs them."""
CHECKS = {
    "ruff": ["-m", "ruff", "check", "."],
    "black": ["-m", "black", "--check", *SOURCES],
    "mypy --strict": ["-m", "mypy", *SOURCES],
    "bundle.py --check": ["scripts/bundle.py", "--check"],
    "release.py --check": ["scripts/release.py", "--check"],
    "readme.py --check": ["scripts/readme.py", "--check"],
    "pages.py --check": ["scripts/pages.py", "--check"],
}
"""Each keeps one core busy, so they run at once."""
BENCHMARKS = {
    "benchmarks": ["scripts/bench/all.py", "--quick", "--without", *HOST_BENCHES],
}
"""They show that each runs, and measure nothing."""
PYTEST = ["-m", "pytest", *PARALLEL]
TESTS = {"pytest": PYTEST}
WITHOUT_MARKS = " and ".join(f"not {mark}" for mark in MARKS)
FAST_TESTS = {
    "pytest": [
        *PYTEST,
        # All tests of the hosts have marks; what they import takes two seconds.
        "--ignore=tests/hosts",
        "-m",
        WITHOUT_MARKS,
    ]
}
LONG_TESTS = {
    "test_fuzz.py, for minutes": [
        *PYTEST,
        "tests/test_fuzz.py",
        "--hypothesis-profile=long",
    ],
    "fuzz.py": ["scripts/fuzz.py"],
    "soak_of_faults.py": ["scripts/soak_of_faults.py"],
    "faults.py": ["scripts/faults.py"],
}
INTERRUPTED = 130


class Terminated(BaseException):
    """Somebody wants this process to end."""


def main(arguments: list[str]) -> int:
    """Run every step, then say which ones failed."""
    signal.signal(signal.SIGTERM, _terminate)
    match arguments:
        case []:
            checks = CHECKS | BENCHMARKS
            tests = TESTS
        case ["--fast"]:
            checks = CHECKS
            tests = FAST_TESTS
        case ["--long"]:
            checks = CHECKS | BENCHMARKS
            tests = TESTS | LONG_TESTS
        case _:
            print("Arguments given: pytest alone runs, no lint and no type check.")
            return run("pytest", ["-m", "pytest", *arguments])
    failed = run_at_once(checks)
    failed += [name for name, command in tests.items() if run(name, command)]
    print(f"\nFailed: {', '.join(failed)}." if failed else "\nAll is well.")
    return 1 if failed else 0


def run_at_once(steps: Mapping[str, Sequence[str]]) -> list[str]:
    """Run steps beside each other, show what each printed; return those that failed."""
    print(f"\n== {', '.join(steps)}", flush=True)
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        running = []
        for name, command in steps.items():
            progress = Progress(f"== {name}", sys.stdout)
            with Path(folder, name).open("w", encoding="utf-8") as output:
                running.append((name, progress, start(command, output)))
        processes = [process for *_, process in running]
        for name, progress, process in running:
            code = wait(process, processes)
            print(Path(folder, name).read_text("utf-8"), end="")
            progress.end("passed" if code == 0 else f"FAILED ({code})")
            failed += [name] if code else []
    return failed


def run(name: str, command: Sequence[str]) -> int:
    """Run one step under a heading; what it prints is shown as it comes."""
    print(f"\n== {name}", flush=True)
    progress = Progress(f"== {name}", sys.stdout)
    code = wait(start(command))
    progress.end("passed" if code == 0 else f"FAILED ({code})")
    return code


def start(
    command: Sequence[str], output: IO[str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a step, which prints into a file or where this process does."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        env=step_environment(),
        stdout=output,
        stderr=output and subprocess.STDOUT,
    )


def step_environment() -> dict[str, str]:
    """Return the variables of a step, which keeps the modules that it compiled.

    Where Python is to write nothing next to the sources, it does so in `.venv`: each
    worker takes five seconds to compile all tests.
    """
    variables = dict(os.environ)
    variables["TESTS_SKIP_NOTHING"] = "1"  # what is missing has to fail here
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):
        variables["PYTHONPYCACHEPREFIX"] = str(ROOT / ".venv" / "bytecode")
    return variables


def wait(
    process: subprocess.Popen[bytes], beside: Iterable[subprocess.Popen[bytes]] = ()
) -> int:
    """Wait for a step also when interrupted: the tests end the servers they started."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # Ctrl-C, which the steps have received as well
        pass
    except Terminated:
        for each in (process, *beside):
            each.send_signal(signal.SIGINT)
    for each in (process, *beside):
        each.wait()
    raise SystemExit(INTERRUPTED)


def _terminate(_: int, __: FrameType | None) -> None:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
