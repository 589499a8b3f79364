"""Installs what a script of ours needs, before that runs under the development tools.

    python3 scripts/setup_environment.py demo.py --port 8080

It runs under a bare Python, so it imports the standard library alone.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from debian import Package, install_missing
from demo_options import DESCRIPTION, build_demo_parser, read_demo_options
from environment import Environment
from installer import InstallationError
from needs import VENV, interpreter_of, needs_of

ROOT = Path(__file__).resolve().parent.parent
NO_KEY = "Set OPENAI_API_KEY to a key of the API. Nothing was installed."
_LIVE_WITHOUT_KEY = {"-h", "--help", "--list"}
PACKAGES_LOG = ROOT / ".venv/packages.log"


def main(arguments: list[str]) -> int:
    """Set up, then become the script that is the first argument."""
    script, *options = arguments
    if script == "demo.py":
        # Both before anything is installed: people decide by it.
        if "-h" in options or "--help" in options:
            build_demo_parser().print_help()
            return 0
        read_demo_options(options)
        print(f"{textwrap.fill(DESCRIPTION, 79)}\n", file=sys.stderr)
    needs_key = script == "live.py" and not _LIVE_WITHOUT_KEY.intersection(options)
    if needs_key and not os.environ.get("OPENAI_API_KEY", "").strip():
        print(NO_KEY, file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, _leave)
    try:
        with only_one(ROOT / ".venv/setup.lock"):
            install(script, options)
    except InstallationError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start makes what is missing.", file=sys.stderr)
        return 130
    become(script, options)
    return 0


def install(script: str, options: list[str]) -> None:
    """Install what runs the script, then what else it needs."""
    uv = find_uv()
    if not uv:
        install_missing([VENV], PACKAGES_LOG)
    interpreter_of(script).make_current(uv)
    needs = needs_of(script, options)
    packages = [need for need in needs if isinstance(need, Package)]
    install_missing(packages, PACKAGES_LOG)
    for need in needs:
        if isinstance(need, Environment):
            need.make_current(uv)


def become(script: str, options: list[str]) -> None:
    """Replace this process by a script of ours."""
    python = str(interpreter_of(script).python)
    command = [python, str(ROOT / "scripts" / script), *options]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "testkit"),
        "PYTHONUNBUFFERED": "1",  # what is printed is seen at once
    }
    os.execve(python, command, environment)


def find_uv() -> str | None:
    """Return the uv program, if one starts and NO_UV is not set."""
    if os.environ.get("NO_UV"):
        return None
    uv = shutil.which("uv")
    if uv is None:
        return None
    tried = subprocess.run([uv, "--version"], check=False, capture_output=True)
    return uv if tried.returncode == 0 else None


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Let two commands that start together set up one after the other."""
    lock.parent.mkdir(exist_ok=True)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another setup to end.", file=sys.stderr)
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _leave(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
