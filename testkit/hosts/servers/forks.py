"""Servers that are forked off one process, which has imported what all of them need.

    forks = ForkServer()
    async with OpenWebUI(forks=forks):
        ...
    forks.stop()

A third of the time until a server answers is spent on packages that are the same for
each. Open WebUI itself is imported in the fork: it reads its settings at the import.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from hosts.servers.offline import HERE, BootError, host_environment

BOOT = HERE / "boot.py"
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1"}
"""NumPy would start one for each core. A fork has none of another's threads."""


class ForkedProcess:
    """What `subprocess.Popen` gives of a child, of a process that is none of ours."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor = os.pidfd_open(pid)
        self._has_ended = False

    def poll(self) -> int | None:
        """None as long as it runs; nobody asks how it ended."""
        if not self._has_ended:
            self._await_end(0)
        return 0 if self._has_ended else None

    def wait(self, timeout: float | None = None) -> int:
        self._await_end(timeout)
        if not self._has_ended:
            raise subprocess.TimeoutExpired("a forked server", timeout or 0)
        return 0

    def _await_end(self, timeout: float | None) -> None:
        if self._has_ended:
            return
        watched = select.poll()
        watched.register(self._descriptor, select.POLLIN)
        if watched.poll(None if timeout is None else timeout * 1000):
            self._has_ended = True
            os.close(self._descriptor)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    def kill(self) -> None:
        """End it as a machine that fails does."""
        self.send_signal(signal.SIGKILL)


class ForkServer:
    """The process that forks; it begins with the first server of an interpreter."""

    def __init__(self) -> None:
        self._processes: dict[Path, subprocess.Popen[str]] = {}
        self._home = Path(tempfile.mkdtemp(prefix="forks-"))
        self._log = self._home / "log"

    def launch(
        self,
        python: Path,
        arguments: Sequence[str],
        env: Mapping[str, str],
        home: Path,
    ) -> ForkedProcess:
        """Start a server with these arguments, which logs into its directory."""
        if python not in self._processes:
            self._processes[python] = self._begin(python)
        process = self._processes[python]
        assert process.stdin
        assert process.stdout
        asked = {"arguments": list(arguments), "env": dict(env), "home": str(home)}
        print(json.dumps(asked), file=process.stdin, flush=True)
        fork = process.stdout.readline()
        if not fork:
            raise BootError(f"No server was forked:\n{self._log.read_text()[-4000:]}")
        return ForkedProcess(int(fork))

    def _begin(self, python: Path) -> subprocess.Popen[str]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(python), "-P", str(BOOT), "--forks"],
                env=host_environment(python, self._home) | SINGLE_THREADED,
                cwd=self._home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is ours to answer
            )

    def stop(self) -> None:
        """End the process; servers that are left end with it."""
        for process in self._processes.values():
            process.communicate()
        shutil.rmtree(self._home, ignore_errors=True)
