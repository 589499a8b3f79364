"""Commands of the README start."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
STARTED = {
    "bash scripts/demo": ("--help", "--keep-data"),
    "bash scripts/test": ("--version", "pytest alone runs"),
    "bash scripts/screenshots": ("--help", "pictures"),
}
"""Commands that take their time: arguments with which they end soon, and a word that
they say then."""


@pytest.mark.parametrize("command", STARTED)
def test_a_command_starts(command: str) -> None:
    """The program that its starter names, as that runs it, but for the setting up."""
    starter = (ROOT / command.removeprefix("bash ")).read_text("utf-8")
    [program] = re.findall(r'start\.sh" (\w+\.py) "\$@"', starter)
    argument, expected = STARTED[command]

    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / program, argument],
        env={**os.environ, "PYTHONPATH": str(ROOT / "testkit")},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert expected in done.stdout
