"""Running an installer: progress while it works, the end of its log if it fails."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from progress import Progress

POLL_SECONDS = 0.5
LOG_LINES = 15
FAILED = """\
Installing {what} did not work. The end of what the installer said:
{log}"""


NO_NETWORK = (
    "{what} cannot be downloaded: this machine does not reach the packages. Connect it "
    "to the network, or name a proxy in HTTPS_PROXY, then start again. The details are "
    "in {log}."
)
_OFFLINE = re.compile(
    "Temporary failure|Failed to establish a new connection|NewConnectionError"
    "|dns error|error sending request|Could not resolve|Could not connect"
    "|Network is unreachable|ConnectTimeoutError|ProxyError",
)
"""What pip, uv and apt-get say without a network."""


class InstallationError(Exception):
    """Something that is needed could not be installed."""


def _at_work() -> str:
    return "at work"


def run_installer(
    what: str,
    command: list[str],
    log: Path,
    progress: Progress,
    state: Callable[[], str] = _at_work,
) -> None:
    """Run a command to its end; `state` says how far it has come."""

    def show() -> None:
        progress.show(state())

    if _run(command, log, show):
        progress.end("failed")
        said = log.read_text(errors="replace")
        if _OFFLINE.search(said):
            raise InstallationError(NO_NETWORK.format(what=what, log=log))
        last_lines = said.splitlines()[-LOG_LINES:]
        raise InstallationError(FAILED.format(what=what, log="\n".join(last_lines)))


def _run(command: list[str], log: Path, show: Callable[[], None]) -> int:
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    try:
        while True:
            try:
                return process.wait(POLL_SECONDS)
            except subprocess.TimeoutExpired:
                show()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
