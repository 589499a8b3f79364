"""Makes the checkout's virtual environments current before a script runs in them.

    python3 scripts/setup_environment.py demo.py --port 8080

It runs under a bare Python, so it imports the standard library alone.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from environment import Environment, InstallationError

ROOT = Path(__file__).resolve().parent.parent
DEVELOPMENT = Environment(
    name="development tools",
    directory=ROOT / ".venv",
    requirements=ROOT / "requirements/dev.txt",
)
NEWEST, OLDEST = (
    Environment(
        name=f"Open WebUI {version}",
        directory=ROOT / f".venv/hosts/open-webui-{version}",
        requirements=ROOT / f"requirements/open-webui-{version}.txt",
    )
    for version in ("0.12.4", "0.11.4")
)
PIPELINES = Environment(
    name="Pipelines server",
    directory=ROOT / ".venv/hosts/pipelines",
    requirements=ROOT / "requirements/pipelines.txt",
)


def main(arguments: list[str]) -> int:
    """Set up, then become the script that was asked for."""
    signal.signal(signal.SIGTERM, _leave)
    try:
        with only_one(ROOT / ".venv/setup.lock"):
            uv = find_uv()
            for environment in needed_by(arguments):
                environment.make_current(uv)
    except InstallationError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. The next start makes what is missing.", file=sys.stderr)
        return 130
    if arguments:
        run(*arguments)
    return 0


def needed_by(arguments: list[str]) -> list[Environment]:
    """What a script runs in: demo and pictures in one Open WebUI, tests in every host."""
    needed = [DEVELOPMENT, NEWEST]
    if arguments[:1] not in (["demo.py"], ["screenshots.py"]):
        return [*needed, OLDEST, PIPELINES]
    return [*needed, PIPELINES] if "--agent" in arguments else needed


def run(script: str, *arguments: str) -> None:
    """Replace this process by a script of ours under the development tools."""
    python = str(DEVELOPMENT.python)
    command = [python, str(ROOT / "scripts" / script), *arguments]
    environment = os.environ | {
        "PYTHONPATH": str(ROOT / "tests"),
        "PYTHONUNBUFFERED": "1",  # what is printed is seen at once
    }
    os.execve(python, command, environment)


def find_uv() -> str | None:
    """The uv program, if one starts and NO_UV is not set."""
    uv = None if os.environ.get("NO_UV") else shutil.which("uv")
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
