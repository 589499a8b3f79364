"""The bubblewrap backend: empty namespaces around a Python interpreter.

The sandbox sees nothing of the host but the interpreter and the system libraries, read-
only. Bubblewrap gets no environment variables, because the code could read them. A
server that runs as root starts the run as user nobody, because the kernel does not
limit the number of root's processes. The first process inside is identified by an open
folder in `/proc`: unlike a process id, it is never reused.
"""

import json
import os
import platform
import shutil
import signal
import stat
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolbox.sandbox.backend import (
    NOBODY_UID,
    RUN_ENVIRONMENT,
    ProcessHandle,
    SandboxLimits,
    SandboxUnavailable,
    start_process,
)
from toolbox.sandbox.seccomp import build_seccomp_filter

_INODE_BYTES = 1024
"""What an empty file costs the kernel; bwrap has no option that limits their number."""
_WRITABLE_FOLDERS = ("work", "tmp", "packages")
_MEMORY_FIELDS = ("RssAnon:", "RssShmem:")
"""What a process holds of memory; the pages of files could be dropped at any time."""


class _BubblewrapProcess:
    """One run; bubblewrap writes the id of the first process inside to `told`."""

    def __init__(self, process: Process, told: int) -> None:
        """Watch `process`; `told` is read when it is needed."""
        self.process = process
        self._bwrap_process = ProcessHandle(process.pid)
        self._info_descriptor = told
        self._first_descriptor: int | None = None
        os.set_blocking(told, False)

    def measure_memory(self) -> int:
        """Return the memory of the processes and of empty files.

        Raises PermissionError if the kernel does not let us look.
        """
        with suppress(FileNotFoundError, ProcessLookupError, BlockingIOError):
            first = self._open_first_process()
            if not os.path.samestat(os.stat("root", dir_fd=first), os.stat("/")):
                return _sum_process_memory(first) + _estimate_inode_memory(first)
        return 0  # not begun, or over

    async def kill(self) -> None:
        """End the first process; the kernel ends all others in its namespace."""
        try:
            signal.pidfd_send_signal(self._open_first_process(), signal.SIGKILL)
        except (BlockingIOError, FileNotFoundError, ProcessLookupError):
            self._bwrap_process.kill()  # nothing runs inside yet, or any more

    def close(self) -> None:
        """Close the descriptors."""
        self._bwrap_process.close()
        os.close(self._info_descriptor)
        if self._first_descriptor is not None:
            os.close(self._first_descriptor)

    def _open_first_process(self) -> int:
        """Return a descriptor of the first process's folder."""
        if self._first_descriptor is None:
            told = os.read(self._info_descriptor, 4096)
            number = json.loads(told)["child-pid"] if told else "none"
            self._first_descriptor = os.open(
                f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY
            )
        return self._first_descriptor


def _sum_process_memory(first: int) -> int:
    """Return the sum over all processes in the sandbox's own `/proc`."""
    processes = os.open("root/proc", os.O_RDONLY | os.O_DIRECTORY, dir_fd=first)
    try:
        numbers = [name for name in os.listdir(processes) if name.isdigit()]
        return sum(_read_process_memory(number, processes) for number in numbers)
    finally:
        os.close(processes)


def _read_process_memory(number: str, processes: int) -> int:
    with suppress(FileNotFoundError, ProcessLookupError):
        status = os.open(f"{number}/status", os.O_RDONLY, dir_fd=processes)
        with open(status, encoding="utf-8", errors="replace") as lines:
            sizes = [
                line.split()[1] for line in lines if line.startswith(_MEMORY_FIELDS)
            ]
        return 1024 * sum(map(int, sizes))
    return 0  # it has just ended


def _estimate_inode_memory(first: int) -> int:
    number = 0
    for name in _WRITABLE_FOLDERS:
        with suppress(FileNotFoundError):
            folder = os.open(f"root/{name}", os.O_PATH, dir_fd=first)
            try:
                filesystem = os.fstatvfs(folder)
            finally:
                os.close(folder)
            number += filesystem.f_files - filesystem.f_ffree
    return number * _INODE_BYTES


_ISOLATION_OPTIONS = (
    "--unshare-user --unshare-all --disable-userns --as-pid-1 --die-with-parent "
    "--new-session --clearenv --cap-drop ALL --hostname sandbox --proc /proc "
    "--symlink /proc/self/fd /dev/fd --symlink /tmp /dev/shm"
)
_DEVICES = ("null", "zero", "random", "urandom")
_READ_ONLY_PATHS = ("/usr/lib", "/usr/lib64", "/etc/ld.so.cache", "/usr/share/zoneinfo")


class BubblewrapBackend:
    """Makes sandboxes in which a given interpreter runs."""

    def __init__(self, python: Path, wheels: str = "") -> None:
        """Dependencies are allowed if `wheels` names their folder."""
        self.name = f"bubblewrap with {python}"
        self._python = python
        self._wheels = wheels

    async def start(self, program: str, limits: SandboxLimits) -> _BubblewrapProcess:
        """Start a program in its own sandbox; raises SandboxUnavailable."""
        command = [_find_bwrap(), *self._options(limits)]
        user = NOBODY_UID if os.geteuid() == 0 else None
        with (
            _open_seccomp_filter(platform.machine()) as rules,
            _open_pipe() as (told, telling),
        ):
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
            return _BubblewrapProcess(process, os.dup(told))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield the contents of the sandbox; the last option makes its root read-only."""
        yield from _ISOLATION_OPTIONS.split()
        for name in _DEVICES:
            yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        for path in _READ_ONLY_PATHS:
            yield from ("--ro-bind-try", path, path)
        yield from _library_options()
        prefix = self._python.parent.parent
        if prefix != Path("/usr"):
            yield from ("--ro-bind", f"{prefix}/lib", f"{prefix}/lib")
        yield from ("--ro-bind", str(self._python), str(self._python))
        for path in ("/work", "/tmp"):
            yield from ("--size", str(limits.disk), "--tmpfs", path)
        if self._wheels:
            yield from ("--ro-bind", self._wheels, "/wheels")
            yield from ("--size", str(limits.packages), "--tmpfs", "/packages")
        for name, value in RUN_ENVIRONMENT.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", "/work", "--remount-ro", "/")


def find_interpreters() -> list[Path]:
    """Return the interpreters that a run could use: the server's, the system's.

    The server's may lie in a home folder that nobody else can read.
    """
    own = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    found = [own, *([Path(system)] if system else [])]
    return list(dict.fromkeys(path.resolve() for path in found if path.exists()))


def _find_bwrap() -> str:
    path = shutil.which("bwrap")
    if path is None:
        raise SandboxUnavailable("bwrap is not installed")
    if os.stat(path).st_mode & stat.S_ISUID:
        raise SandboxUnavailable(
            "bwrap is setuid root, and so more than it needs to be"
        )
    return path


def _library_options() -> Iterator[str]:
    """Yield the options for /lib and the like: links into /usr on most systems."""
    for path in (Path("/lib"), Path("/lib64")):
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


@contextmanager
def _open_pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def _open_seccomp_filter(machine: str) -> Iterator[int]:
    program = build_seccomp_filter(machine)
    if program is None:
        raise SandboxUnavailable(f"no filter of system calls is known for {machine}")
    reading, writing = os.pipe()
    try:
        os.write(writing, program)  # it fits into a pipe
        os.close(writing)
        yield reading
    finally:
        os.close(reading)
