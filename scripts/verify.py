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
from pathlib import Path
from types import FrameType

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
PYTEST = ["-m", "pytest", *PARALLEL]
TESTS = {
    "benchmarks": ["scripts/bench/all.py", "--quick", "--without", *HOST_BENCHES],
    "pytest": PYTEST,
}
WITHOUT_MARKS = " and ".join(f"not {mark}" for mark in MARKS)
FAST_TESTS = {"pytest": [*PYTEST, "-m", WITHOUT_MARKS]}
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
            steps = CHECKS | TESTS
        case ["--fast"]:
            steps = CHECKS | FAST_TESTS
        case ["--long"]:
            steps = CHECKS | TESTS | LONG_TESTS
        case _:
            print("Arguments given: pytest alone runs, no lint and no type check.")
            return run("pytest", ["-m", "pytest", *arguments])
    failed = [name for name, command in steps.items() if run(name, command)]
    print(f"\nFailed: {', '.join(failed)}." if failed else "\nAll is well.")
    return 1 if failed else 0


def run(name: str, command: list[str]) -> int:
    """Run one step under a heading; what it prints is shown as it comes."""
    print(f"\n== {name}", flush=True)
    progress = Progress(f"== {name}", sys.stdout)
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=step_environment()
    )
    code = wait(process)
    progress.end("passed" if code == 0 else f"FAILED ({code})")
    return code


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


def wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for a step also when interrupted: the tests end the servers they started."""
    try:
        return process.wait()
    except KeyboardInterrupt:  # Ctrl-C, which the step has received as well
        process.wait()
    except Terminated:
        process.send_signal(signal.SIGINT)
        process.wait()
    raise SystemExit(INTERRUPTED)


def _terminate(_: int, __: FrameType | None) -> None:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
