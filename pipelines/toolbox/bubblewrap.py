"""Cells made by bubblewrap: empty namespaces around a bare Python.

Nothing of the host is in them but the interpreter with the system's libraries, read
only. Bubblewrap itself gets no environment, because the code could read it there. A
server that runs as root hands the run to nobody: for root the kernel counts no
processes.
"""

import os
import platform
import shutil
import stat
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolbox.bubblewrap_cell import BubblewrapCell
from toolbox.cells import NOBODY, RUN_VARIABLES, SandboxMissing
from toolbox.process_handle import start_process
from toolbox.sandbox_limits import SandboxLimits
from toolbox.seccomp import filter_program

_NAMESPACES = (
    "--unshare-user --unshare-all --disable-userns --as-pid-1 --die-with-parent "
    "--new-session --clearenv --cap-drop ALL --hostname sandbox --proc /proc "
    "--symlink /proc/self/fd /dev/fd --symlink /tmp /dev/shm"
)
_DEVICES = ("null", "zero", "random", "urandom")
_READABLE = ("/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")


class Bubblewrap:
    """Makes cells in which a given interpreter runs."""

    def __init__(self, python: Path, wheels: str = "") -> None:
        """Use `python`, and the folder of wheels where dependencies are allowed."""
        self.name = f"bubblewrap with {python}"
        self._python = python
        self._wheels = wheels

    async def open_cell(self, program: str, limits: SandboxLimits) -> BubblewrapCell:
        """Start a program in a cell of its own; raises SandboxMissing."""
        command = [_installed(), *self._options(limits)]
        user = NOBODY if os.geteuid() == 0 else None
        with _filter(platform.machine()) as rules, _pipe_ends() as (told, telling):
            command += ["--seccomp", str(rules), "--info-fd", str(telling)]
            process = await start_process(
                *(*command, str(self._python), "-I", "-c", program),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={},
                pass_fds=(rules, telling),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
            return BubblewrapCell(process, os.dup(told))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield what is in the sandbox; the last rule leaves its root read only."""
        yield from _NAMESPACES.split()
        for name in _DEVICES:
            yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        for path in _READABLE:
            yield from ("--ro-bind-try", path, path)
        yield from _libraries()
        prefix = self._python.parent.parent
        if prefix != Path("/usr"):
            yield from ("--ro-bind", f"{prefix}/lib", f"{prefix}/lib")
        yield from ("--ro-bind", str(self._python), str(self._python))
        for path in ("/work", "/tmp"):
            yield from ("--size", str(limits.disk), "--tmpfs", path)
        if self._wheels:
            yield from ("--ro-bind", self._wheels, "/wheels")
            yield from ("--size", str(limits.packages), "--tmpfs", "/packages")
        for name, value in RUN_VARIABLES.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", "/work", "--remount-ro", "/")


def interpreters() -> list[Path]:
    """Return which interpreters a run could use: the server's own, the system's.

    The server's may lie in somebody's home, where nobody else can reach it.
    """
    own = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    found = [own, *([Path(system)] if system else [])]
    return list(dict.fromkeys(path.resolve() for path in found if path.exists()))


def _installed() -> str:
    """Return where bubblewrap is."""
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxMissing("bwrap is not installed")
    if os.stat(path).st_mode & stat.S_ISUID:
        raise SandboxMissing("bwrap is setuid root, and so more than it needs to be")
    return path


def _libraries() -> Iterator[str]:
    """Yield the rules for /lib and the like: links into /usr on most systems."""
    for path in (Path("/lib"), Path("/lib64")):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


@contextmanager
def _pipe_ends() -> Iterator[tuple[int, int]]:
    """Lend the two ends of a pipe."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def _filter(machine: str) -> Iterator[int]:
    """Lend a file from which bubblewrap can read the filter of system calls."""
    program = filter_program(machine)
    if program is None:
        raise SandboxMissing(f"no filter of system calls is known for {machine}")
    reading, writing = os.pipe()
    try:
        os.write(writing, program)  # it fits into a pipe
        os.close(writing)
        yield reading
    finally:
        os.close(reading)
