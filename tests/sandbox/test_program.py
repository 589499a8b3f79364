"""The text that runs in the sandbox is checked like any other source."""

import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.program import SANDBOX_PROGRAM

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


@pytest.mark.parametrize(
    "check",
    [
        ["black", "--check", "--config", str(PROJECT)],
        # Imports that only some runs need would cost all of them; the text is no API.
        [
            "ruff",
            "check",
            "--config",
            str(PROJECT),
            "--ignore",
            "PLC0415,SIM105,D102,D103,D107",
        ],
        # What comes out of JSON is a dict of anything; `typing` costs 5 ms to import.
        ["mypy", "--strict", "--allow-any-generics", "--python-version", "3.11"],
    ],
    ids=lambda check: check[0],
)
def test_program_is_in_order(check: list[str], tmp_path: Path) -> None:
    """It is a text inside a source, so the usual checks do not read it."""
    program = tmp_path / "program.py"
    program.write_text(SANDBOX_PROGRAM, "utf-8")

    done = subprocess.run(
        [sys.executable, "-m", *check, str(program)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_program_refuses_to_run_elsewhere() -> None:
    """It ends all other processes that it can see: only where it is the first."""
    done = subprocess.run(
        [sys.executable, "-I", "-c", SANDBOX_PROGRAM],
        input=b'{"operation": "run"}\n',
        capture_output=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr == b"This runs as the first process of a sandbox alone.\n"


def test_processes_are_not_counted_with_those_of_other_runs() -> None:
    """Containers share the users of the host: one run would take all that others need."""
    code = f"""
import resource
names = {{}}
exec({SANDBOX_PROGRAM!r}, names)
before = resource.getrlimit(resource.RLIMIT_NPROC)
limits = {{"memory": 1 << 30, "file": 1 << 20, "processes": 7}}
names["set_limits"](limits)
assert resource.getrlimit(resource.RLIMIT_FSIZE) == (1 << 20, 1 << 20)
assert resource.getrlimit(resource.RLIMIT_NPROC) == before
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_program_runs_on_older_interpreters() -> None:
    """Containers bring their own; 3.9 is the oldest that Python still cares for."""
    compile(SANDBOX_PROGRAM, "inside", "exec")
    assert "match " not in SANDBOX_PROGRAM
