"""Bubblewrap: empty namespaces around a Python interpreter.

The sandbox sees nothing of the host but the interpreter, its standard library and the
system's libraries, read-only. Packages that are installed there are hidden: where Open
WebUI is one of them, its database may lie among them. Bubblewrap gets no environment
variables, because the code could read them. A server that runs as root starts the run
as user nobody, because the kernel does not limit the number of root's processes. The
first process inside is identified by an open folder in `/proc`: unlike a process id, it
is never reused. The server's interpreter may lie in a home folder that no other user
can read; then the system's is used.

A filter refuses system calls in the gaps of namespaces: what holds memory that cannot
be counted, belongs to no namespace, or acts on the whole host. What is left is counted:
the memory of processes, the files, and what the kernel keeps for sockets, pipes, locks
and mappings.
"""

import asyncio
import errno
import json
import os
import platform
import re
import shutil
import signal
import stat
import struct
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from subprocess import PIPE
from threading import Lock

from sandbox.backend import (
    NOBODY_UID,
    RUN_ENVIRONMENT,
    WRITABLE_FOLDERS,
    SandboxLimits,
    SandboxUnavailable,
    find_program,
)
from sandbox.processes import ChildProcess, start_process

_INODE_BYTES = 2560
"""What an empty file or folder costs the kernel at most (measured with Linux 6.18); bwrap
has no option that limits their number."""
_MEMORY_FIELDS = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:")
"""What a process holds of memory; the pages of files could be dropped at any time. The
last is what the kernel keeps to find the pages: a mapping far from others takes two
pages of it, also if it holds nothing."""
_BUFFER_BYTES = {
    "pipe": 64 * 1024,
    "socket": 3 * 212_992 // 2,
    "/proc": 128 * 1024,
}
"""What an open file holds: a pipe or a socket that nobody reads (pipe(7); socket(7),
wmem_default: a message is taken as long as there is room, and has at most half of it),
and a file of `/proc` that lists as many locks as we allow (seq_file)."""
_MAX_MAPS_CHARACTERS = 128 * 1024
_BYTES_PER_MAPS_CHARACTER = 5
"""What the kernel holds for a mapping, by its line in `/proc/<process>/maps`."""
_MAX_MAPPINGS_BYTES = 65_530 * 400
"""Of a process with more lines than we read: it has no more (vm.max_map_count)."""
_HELD_ENTRY_BYTES = 256
_HELD_ENTRIES = (b"lock:", b"tfd:")
"""Of an open file in `/proc`: its locks, and what an epoll watches."""
_MAX_HELD_ENTRIES = 1_000
"""No program needs so many; nothing else limits the locks."""
_FILES_SHARE = 20
"""Open files are not read for more than a part of this size of the time: code could keep
half a core of the server busy with 2,000 of them."""


class _BubblewrapProcess:
    """One run; bubblewrap writes the id of the first process inside to a pipe."""

    def __init__(self, process: ChildProcess, info_pipe: int) -> None:
        """Watch `process`; `info_pipe` is read when it is needed."""
        self.process = process
        self._info_descriptor = info_pipe
        self._info = b""
        self._first_descriptor: int | None = None
        self._opening = Lock()  # a thread measures while the run may be ended
        self._files_bytes = 0
        """What its open files held when they were last read."""
        self._files_due = 0.0
        """When they are read again."""
        os.set_blocking(info_pipe, False)

    def measure_memory(self) -> int:
        """Return the memory of the processes and of empty files.

        Raises PermissionError if the kernel does not let us look.
        """
        with suppress(FileNotFoundError, ProcessLookupError, BlockingIOError):
            first = self._open_first_process()
            if not os.path.samestat(os.stat("root", dir_fd=first), os.stat("/")):
                root = f"/proc/self/fd/{first}/root"
                began = time.monotonic()
                if began >= self._files_due:
                    self._files_bytes = _measure_open_files(root)
                    ended = time.monotonic()
                    self._files_due = ended + _FILES_SHARE * (ended - began)
                return self._files_bytes + _measure_root(root)
        return 0  # not begun, or over

    async def kill(self) -> None:
        """End the first process; the kernel ends all others in its namespace."""
        try:
            signal.pidfd_send_signal(self._open_first_process(), signal.SIGKILL)
        except (BlockingIOError, FileNotFoundError, ProcessLookupError):
            self.process.kill_group()  # nothing runs inside yet, or any more

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._info_descriptor)
        if self._first_descriptor is not None:
            os.close(self._first_descriptor)

    def _open_first_process(self) -> int:
        """Return a descriptor of the first process's folder."""
        with self._opening:
            if self._first_descriptor is None:
                self._info += os.read(self._info_descriptor, 4096)
                number = "none"
                with suppress(ValueError):  # it is not all written yet
                    number = json.loads(self._info)["child-pid"]
                self._first_descriptor = os.open(
                    f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY
                )
            return self._first_descriptor


def _measure_root(root: str) -> int:
    """Return the bytes that processes and files below the root of a sandbox hold.

    Without what open files hold. Raises PermissionError if the kernel does not let us
    look.
    """
    size = 0
    for threads in _list_threads(root):
        memory = 0
        for folder in threads:
            # All threads have the same memory, but the first may have ended.
            with _unless_it_ended(folder):
                memory = memory or _read_memory(folder)
        size += memory
    for name in WRITABLE_FOLDERS:  # what files need in addition to their content
        with suppress(FileNotFoundError):
            filesystem = os.statvfs(f"{root}{name}")
            size += (filesystem.f_files - filesystem.f_ffree) * _INODE_BYTES
    return size


def _measure_open_files(root: str) -> int:
    """Return the bytes that the kernel keeps for open files of a sandbox."""
    entries = 0
    buffers: set[str] = set()
    for threads in _list_threads(root):
        for folder in threads:  # each may have open files of its own
            with _unless_it_ended(folder):
                entries += _read_open_files(folder, buffers)
            if entries > _MAX_HELD_ENTRIES:
                return sys.maxsize
    size = sum(_BUFFER_BYTES[name.partition(":[")[0]] for name in buffers)
    return size + entries * _HELD_ENTRY_BYTES


def _list_threads(root: str) -> Iterator[list[str]]:
    """Yield the folders of each process's threads."""
    for number in filter(str.isdigit, os.listdir(f"{root}/proc")):
        tasks = f"{root}/proc/{number}/task"
        threads: list[str] = []
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            threads = os.listdir(tasks)
        yield [f"{tasks}/{thread}" for thread in threads]


@contextmanager
def _unless_it_ended(folder: str) -> Iterator[None]:
    """Ignore what cannot be read of a thread that has just ended: it holds nothing.

    Until somebody waits for it, its folder belongs to root.
    """
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        pass
    except PermissionError:
        with suppress(FileNotFoundError, ProcessLookupError):
            if _read_resident(folder):
                raise


def _read_memory(folder: str) -> int:
    """Return the bytes that a thread's process holds, by its folder in `/proc`."""
    resident = _read_resident(folder)
    if not resident:
        return 0
    with open(f"{folder}/maps", "rb") as maps:
        characters = len(maps.read(_MAX_MAPS_CHARACTERS))
    if characters == _MAX_MAPS_CHARACTERS:
        return resident + _MAX_MAPPINGS_BYTES
    return resident + characters * _BYTES_PER_MAPS_CHARACTER


def _read_resident(folder: str) -> int:
    """Return the bytes of a thread's memory that are its own; 0 if it has ended."""
    with open(f"{folder}/status", encoding="utf-8", errors="replace") as lines:
        kilobytes = [
            int(line.split()[1]) for line in lines if line.startswith(_MEMORY_FIELDS)
        ]
    return 1024 * sum(kilobytes)


def _read_open_files(folder: str, buffers: set[str]) -> int:
    """Add the pipes and sockets that a thread has open; return the number of `_HELD_ENTRIES`.

    They are read for each file. The list in `/proc/locks` is not: whoever reads it
    stops each lock of the host for 10 ms.
    """
    entries = 0
    for number in os.listdir(f"{folder}/fd"):
        with suppress(FileNotFoundError):  # it is closed by now
            name = os.readlink(f"{folder}/fd/{number}")
            if name.partition(":[")[0] in _BUFFER_BYTES:
                buffers.add(name)
            elif name.startswith("/proc/"):
                buffers.add(f"/proc:[{folder}/{number}")
            else:
                with open(f"{folder}/fdinfo/{number}", "rb") as info:
                    entries += sum(line.startswith(_HELD_ENTRIES) for line in info)
    return entries


_ISOLATION_OPTIONS = (
    "--unshare-user --unshare-all --disable-userns --as-pid-1 --die-with-parent "
    "--clearenv --cap-drop ALL --hostname sandbox --proc /proc "
    "--ro-bind /dev/null /proc/cmdline "
    "--symlink /proc/self/fd /dev/fd --symlink /tmp /dev/shm"
)
_HOST_DISKS = "/proc/fs"
"""It names servers of files and their users; `/proc/cmdline` may hold keys, too."""
_HOST_LOCKS = "/proc/locks"
"""Whoever reads it holds up the locks of all files of the host: in a loop, each lock took
13 times as long."""
_DEVICES = ("null", "random", "urandom")
"""Not `zero`: mapped, it is the shared memory that the filter refuses."""
_PROGRAM_PATHS = ("/usr/bin", "/etc/alternatives")
"""Programs, and the links that Debian chooses some of them by."""
_LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_READ_ONLY_PATHS = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_STANDARD_LIBRARY = re.compile(r"python3\.\d+t?")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""Where pip and Debian install packages, next to the modules of the standard library."""


class BubblewrapBackend:
    """Makes sandboxes in which a given interpreter runs."""

    def __init__(
        self, python: Path, packages: str = "", *, with_programs: bool = False
    ) -> None:
        """`packages` is the folder of installed packages, if there are any.

        With `with_programs` a shell and the system's programs are there, too.
        """
        self.name = f"bubblewrap with {python}"
        self._python = python
        self._packages = packages
        self._with_programs = with_programs

    async def start(self, program: str, limits: SandboxLimits) -> _BubblewrapProcess:
        """Start a sandbox; raises SandboxUnavailable."""
        bwrap = find_program("bwrap")
        if os.stat(bwrap).st_mode & stat.S_ISUID:
            raise SandboxUnavailable(
                "bwrap is setuid root, which gives it more privileges than it needs"
            )
        command = [bwrap, *self._options(limits)]
        user = NOBODY_UID if os.geteuid() == 0 else None
        with (
            _open_seccomp_filter(platform.machine()) as rules,
            _open_pipe() as (info_pipe, info_end),
        ):
            command += ["--seccomp", str(rules), "--info-fd", str(info_end)]
            process = await start_process(
                *command,
                str(self._python),
                "-I",
                "-c",
                program,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={},
                pass_fds=(rules, info_end),
                starting=_dropping_crashes(),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
            try:
                await _let_others_first(process)
            except BaseException:  # nobody else knows it yet
                process.kill_group()
                process.close()
                await process.wait()
                raise
            return _BubblewrapProcess(process, os.dup(info_pipe))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield the contents of the sandbox; the last option makes its root read-only."""
        yield from _ISOLATION_OPTIONS.split()
        for name in _DEVICES:
            yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        if os.path.isdir(_HOST_DISKS):
            yield from ("--tmpfs", _HOST_DISKS, "--remount-ro", _HOST_DISKS)
        if os.path.exists(_HOST_LOCKS):
            yield from ("--ro-bind", "/dev/null", _HOST_LOCKS)
        yield from ("--remount-ro", "/proc")
        for name in _READ_ONLY_PATHS:
            yield from ("--ro-bind-try", name, name)
        yield from _folder_options(_LIBRARY_FOLDERS)
        if self._with_programs:
            for name in _PROGRAM_PATHS:
                yield from ("--ro-bind-try", name, name)
            yield from _folder_options(("/bin",))
        prefix = self._python.parent.parent
        if prefix != Path("/usr"):
            yield from _interpreter_options(prefix)
        yield from ("--ro-bind", str(self._python), str(self._python))
        # An empty folder hides each folder of packages.
        hidden = {
            path.resolve()
            for folder in (*_LIBRARY_FOLDERS, f"{prefix}/lib", f"{prefix}/lib64")
            for name in _PACKAGE_FOLDERS
            for path in Path(folder).glob(f"*/{name}")
        }
        for path in sorted(hidden):
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        for name in WRITABLE_FOLDERS:
            yield from ("--size", str(limits.disk), "--tmpfs", name)
        if self._packages:
            yield from ("--ro-bind", self._packages, "/packages")
        for name, value in RUN_ENVIRONMENT.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", "/work", "--remount-ro", "/")


def find_interpreters() -> list[Path]:
    """Return the interpreters that a run could use: the server's, the system's."""
    own = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    candidates = [own]
    if system:
        candidates.append(Path(system))
    interpreters: list[Path] = []
    for path in candidates:
        if path.exists() and path.resolve() not in interpreters:
            interpreters.append(path.resolve())
    return interpreters


def _folder_options(folders: Iterable[str]) -> Iterator[str]:
    """Yield the options for /lib and the like: links into /usr on most systems."""
    for folder in folders:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _interpreter_options(prefix: Path) -> Iterator[str]:
    """Yield the options for the standard library of an interpreter below `prefix`.

    The shared libraries next to it are there, too: those of conda's modules are not the
    system's. Nothing else is, as anything may be installed below such a folder.
    """
    for folder in (prefix / "lib", prefix / "lib64"):
        if folder.is_symlink():
            yield from ("--symlink", os.readlink(folder), str(folder))
            continue
        for path in sorted(folder.glob("*")):
            is_shared = ".so" in path.suffixes and path.is_file()
            if not is_shared and not _STANDARD_LIBRARY.fullmatch(path.name):
                continue
            if path.is_symlink():  # what it leads to is there if it is one of these
                yield from ("--symlink", os.readlink(path), str(path))
            else:
                yield from ("--ro-bind", str(path), str(path))


_SHARE_TRIES = 30
"""With three, the last of four runs that began at once kept the whole share."""
_SHARE_PAUSE_SECONDS = 0.1


async def _let_others_first(process: ChildProcess) -> None:
    """Give the session of a run a third of the share of the processors that others have.

    Linux divides them among sessions (sched(7), autogroups), however nice their
    processes are. It takes such a change of users ten times a second.
    """
    for _ in range(_SHARE_TRIES):
        with suppress(BlockingIOError):
            process.lower_share()
            return
        await asyncio.sleep(_SHARE_PAUSE_SECONDS)


_limiting = Lock()


@contextmanager
def _dropping_crashes() -> Iterator[None]:
    """Start processes whose crashes the kernel drops, and does not hand to its handler.

    Only a limit of one byte means that (fs/coredump.c): with 0, which code could set
    later, the handler of the host would run as root, as often as code crashes. The filter
    keeps code from that; so the limit is inherited from the server, for a moment.
    """
    resource = import_module("resource")  # Windows has none, but must load this module
    with _limiting:
        before = resource.getrlimit(resource.RLIMIT_CORE)
        with suppress(ValueError):  # the server itself may have no more than 0
            resource.setrlimit(resource.RLIMIT_CORE, (1, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_CORE, before)


@contextmanager
def _open_pipe() -> Iterator[tuple[int, int]]:
    """Lend the two ends of a pipe: the one to read, the one to write."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def _open_seccomp_filter(machine: str) -> Iterator[int]:
    """Lend a descriptor from which bubblewrap reads the filter of system calls."""
    program = _build_seccomp_filter(machine)
    reading, writing = os.pipe()
    try:
        os.write(writing, program)  # it fits into a pipe
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


_REFUSED_CALLS = {
    # Memory that cannot be counted.
    "shmget": (29, 194),
    "socket": (41, 198),  # a listener's queue of clients that have closed theirs
    "sendmsg": (46, 211),  # open files on their way
    "bind": (49, 200),
    "setsockopt": (54, 208),  # larger buffers
    "semget": (64, 190),
    "msgget": (68, 186),
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "vmsplice": (278, 75),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "sendmmsg": (307, 269),
    "seccomp": (317, 277),
    "setxattr": (188, 5),  # lists of rights, which no file system counts
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "memfd_create": (319, 279),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),  # its calls are not filtered either
    "landlock_create_ruleset": (444, 444),
    "memfd_secret": (447, 447),
    # A share of the processors as large as that of the server.
    "setsid": (112, 157),
    # Other processes, keys of no namespace, the log and the disks of the host.
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "sync": (162, 81),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "syncfs": (306, 267),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),  # MADV_PAGEOUT, of itself, too
}
"""The numbers of the calls that are refused, one of each machine in `_ARCHITECTURES`."""

_WHOLE_WORD = 0xFFFFFFFF
_REFUSED_ARGUMENTS = {
    # Anonymous memory that is shared, of which a single page that is left keeps all;
    # huge pages, which the host has set apart for others.
    "mmap": ((9, 222), 3, ((0x21, 0x21), (0x40000, 0x40000))),
    # F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
    "fcntl": ((72, 25), 1, tuple((_WHOLE_WORD, call) for call in (1024, 1026, 1031))),
    # PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH
    "prctl": ((157, 167), 0, tuple((_WHOLE_WORD, call) for call in (22, 62, 78))),
    # RLIMIT_CORE, which `_dropping_crashes` has set.
    "setrlimit": ((160, 164), 0, ((_WHOLE_WORD, 4),)),
    "prlimit64": ((302, 261), 1, ((_WHOLE_WORD, 4),)),
    # POSIX_FADV_DONTNEED, MADV_PAGEOUT, RWF_DONTCACHE: the next read of a file is one of
    # the disk.
    "fadvise64": ((221, 223), 3, ((_WHOLE_WORD, 4),)),
    "madvise": ((28, 233), 2, ((_WHOLE_WORD, 21),)),
    "preadv2": ((327, 286), 5, ((0x80, 0x80),)),
}
"""Calls that are refused with certain values: the numbers, which argument, and its bits
that are compared with which value."""
_DIRECT = (0x4000, 0x10000)
"""O_DIRECT of each machine, with which each read of a file of the host is one of its disk:
in a loop, a write of the server took 800 times as long."""
_DIRECT_CALLS = {
    "open": ((2, None), 1, None),
    "openat": ((257, 56), 2, None),
    "fcntl": ((72, 25), 2, 4),  # F_SETFL
}
"""Calls that are refused with this flag: the numbers, in which argument it is, and the
value of the argument in front of it, if that counts."""
_OPENAT2 = 437
"""Not there, on both machines: a filter cannot read its flags."""
_SOCKETPAIR = (53, 199)
"""Refused unless it is of AF_UNIX: asyncio needs one, and its buffers are counted."""
_FIRST_UNKNOWN_CALL = 463
"""From here on they are newer than this list (Linux 6.13), on both machines."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
_X32_CALL_BIT = 0x40000000
"""x86_64 has every call a second time from here on."""
_UNIX_SOCKETS = 1

# linux/bpf_common.h: load a word; keep bits of it; jump if equal, if at least; return.
_LOAD = 0x20
_AND = 0x54
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_RETURN = 0x06
# linux/seccomp.h: offsets in seccomp_data, then what a filter returns.
_CALL_NUMBER = 0
_ARCHITECTURE = 4
_DESCRIPTOR_ARGUMENTS = 16
_ARGUMENT_BYTES = 8
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_NOT_THERE = 0x00050000 | errno.ENOSYS
_PASS = 0x7FFF0000


def _build_seccomp_filter(machine: str) -> bytes:
    """Return the filter for a machine as `uname` names it; raises SandboxUnavailable."""
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailable(f"there is no system call filter for {machine}")
    column = list(_ARCHITECTURES).index(machine)
    refuse = _encode_instruction(_RETURN, _REFUSE)
    accept = _encode_instruction(_RETURN, _PASS)
    steps = [
        _encode_instruction(_LOAD, _ARCHITECTURE),
        _encode_instruction(_IF_EQUAL, _ARCHITECTURES[machine], skip_if=1),
        # The calls of another machine have other numbers.
        _encode_instruction(_RETURN, _KILL),
        _encode_instruction(_LOAD, _CALL_NUMBER),
        _encode_instruction(_IF_AT_LEAST, _X32_CALL_BIT, skip_unless=1),
        refuse,
        _encode_instruction(_IF_EQUAL, _OPENAT2, skip_if=1),
        _encode_instruction(_IF_AT_LEAST, _FIRST_UNKNOWN_CALL, skip_unless=1),
        _encode_instruction(_RETURN, _NOT_THERE),
    ]
    for numbers in _REFUSED_CALLS.values():
        number = numbers[column]
        if number is not None:
            steps += [_encode_instruction(_IF_EQUAL, number, skip_unless=1), refuse]
    for numbers, argument, command in _DIRECT_CALLS.values():
        number = numbers[column]
        if number is None:
            continue
        checks = [
            *_load_argument(argument, _DIRECT[column]),
            _encode_instruction(_IF_EQUAL, _DIRECT[column], skip_unless=1),
            refuse,
        ]
        if command is not None:
            checks = [
                *_load_argument(argument - 1, _WHOLE_WORD),
                _encode_instruction(_IF_EQUAL, command, skip_unless=len(checks)),
                *checks,
            ]
        checks.append(_encode_instruction(_LOAD, _CALL_NUMBER))
        steps.append(_encode_instruction(_IF_EQUAL, number, skip_unless=len(checks)))
        steps += checks
    for call_numbers, argument, values in _REFUSED_ARGUMENTS.values():
        checks = []
        for bits, value in values:
            checks += [
                *_load_argument(argument, bits),
                _encode_instruction(_IF_EQUAL, value, skip_unless=1),
                refuse,
            ]
        checks.append(accept)
        number = call_numbers[column]
        steps.append(_encode_instruction(_IF_EQUAL, number, skip_unless=len(checks)))
        steps += checks
    steps += [
        _encode_instruction(_IF_EQUAL, _SOCKETPAIR[column], skip_unless=3),
        _encode_instruction(_LOAD, _DESCRIPTOR_ARGUMENTS),
        _encode_instruction(_IF_EQUAL, _UNIX_SOCKETS, skip_if=1),
        refuse,
        accept,
    ]
    return b"".join(steps)


def _load_argument(argument: int, bits: int) -> list[bytes]:
    """Return what loads some bits of an argument of the call."""
    place = _DESCRIPTOR_ARGUMENTS + argument * _ARGUMENT_BYTES
    return [_encode_instruction(_LOAD, place), _encode_instruction(_AND, bits)]


def _encode_instruction(
    code: int, operand: int, skip_if: int = 0, skip_unless: int = 0
) -> bytes:
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, skip_if, skip_unless, operand)
