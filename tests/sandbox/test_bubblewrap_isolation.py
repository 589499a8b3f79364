"""What code in the sandbox reaches of the host: nothing, however it tries."""

import errno
import os
import platform
import resource
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sandbox.bubblewrap import _ARCHITECTURES, _REFUSED_CALLS, find_interpreters
from sandboxes.real import CANARY, Chat

pytestmark = pytest.mark.asyncio(loop_scope="session")

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"


async def refusals(chat: Chat, calls: Sequence[str]) -> dict[str, str]:
    """The names of the errors with which the kernel answers calls of the C library."""
    found = ", ".join(f"(libc.{call}, ctypes.set_errno(0))" for call in calls)
    answers = (await chat.run(f"{LIBC}[{found}]")).result
    assert [returned for returned, _ in answers] == [-1] * len(calls), answers
    numbers = [number for _, number in answers]
    return dict(zip(calls, map(errno.errorcode.__getitem__, numbers), strict=True))


SEEN: dict[str, tuple[str, object]] = {
    "no process of the host": (
        "import os\nsorted(int(name) for name in os.listdir('/proc') if name.isdigit())",
        [1, 2],
    ),
    "no name of the host": ("import os\nos.uname().nodename", "sandbox"),
    # Three streams, where the result goes, and the folder that is listed.
    "its own files": (
        "import os\nsorted(os.listdir('/proc/self/fd'))",
        ["0", "1", "2", "3", "4"],
    ),
    "the loopback of the sandbox": (
        "lines = open('/proc/net/dev').read().splitlines()[2:]\n"
        "[line.split(':')[0].strip() for line in lines]",
        ["lo"],
    ),
    # No capability, none to be had, a filter, and nobody's name.
    "no rights": (
        """
import os
lines = dict(line.rstrip(chr(10)).split(":\\t", 1) for line in open("/proc/self/status"))
rights = [int(lines[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
[rights, lines["NoNewPrivs"], lines["Seccomp"], os.getuid() > 0, os.getgroups()]
""",
        [[0] * 5, "1", "2", True, []],
    ),
    # As a session of its own it would have as large a share as the server, whatever its
    # niceness is, and as many shares as it begins sessions.
    "a small share of the processors": (
        """
import os
share = ["nice", "5"]
if os.path.exists("/proc/self/autogroup"):
    share = open("/proc/self/autogroup").read().split()[1:]
[share, os.nice(0), os.access("/proc/self/autogroup", os.W_OK)]
""",
        [["nice", "5"], 15, False],
    ),
    # Its settings are those of the host.
    "no setting of the kernel": (
        """
import os
def can_be_set(path):
    try:
        with open(path, "r+") as setting:
            same = setting.read()
            setting.seek(0)
            setting.write(same)
        return True
    except OSError:
        return False
paths = ["/proc/1/uid_map"]
for folder, _, files in os.walk("/proc/sys"):
    paths += [os.path.join(folder, name) for name in files]
[len(paths) > 100, [path for path in paths if can_be_set(path)]]
""",
        [True, []],
    ),
    # Servers of files with their users, what the host was started with, and what stops
    # the locks of the host while it is read.
    "no setting of the host": (
        """
import glob, os
def reads(path):
    try:
        return bool(open(path).read())
    except OSError:
        return False
devices = {os.stat(name).st_rdev for name in ("/proc/locks", "/dev/null")}
[reads("/proc/cmdline"), glob.glob("/proc/fs/*"), len(devices)]
""",
        [False, [], 1],
    ),
    # Otherwise what they hold would be limited by nothing.
    "two folders to write in": (
        """
import itertools, os
found = set()
for folder, folders, _ in itertools.chain(os.walk("/"), os.walk("/proc/fs")):
    folders[:] = [] if folder == "/proc" else folders
    try:
        open(os.path.join(folder, "new"), "w").close()
        found.add(folder)
    except OSError:
        pass
sorted(found)
""",
        ["/tmp", "/work"],
    ),
    # Settings, logs and sources of the server are not among them.
    "what Python needs": (
        "import os\n[sorted(os.listdir(path)) for path in ('/etc', '/dev')]",
        [["ld.so.cache"], ["fd", "null", "random", "shm", "urandom"]],
    ),
    "nobody to ask for a name": (
        """
import socket
try:
    found = socket.getaddrinfo("example.org", 80)
except socket.gaierror:
    found = None
found
""",
        None,
    ),
    # A virtual machine reaches its host over AF_VSOCK, which no namespace hides.
    "no sockets": (
        """
import socket
def can_be_made(family):
    try:
        socket.socket(getattr(socket, family))
        return True
    except PermissionError:
        return False
families = ("AF_UNIX", "AF_INET6", "AF_NETLINK", "AF_PACKET", "AF_VSOCK")
[family for family in families if can_be_made(family)]
""",
        [],
    ),
    # With 0, the kernel still starts the host's handler of crashes (fs/coredump.c).
    "small limits of the kernel": (
        """
import os, resource
names = ("MEMLOCK", "MSGQUEUE", "SIGPENDING", "NOFILE")
nice = min(os.getpriority(os.PRIO_PROCESS, process) for process in (0, 1))
[core] = [line.split()[4] for line in open("/proc/self/limits") if "core file" in line]
limits = [resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names]
[nice >= 10, core, limits]
""",
        [True, "1", [[0, 0], [0, 0], [64, 64], [64, 64]]],
    ),
    # None can be made, none are there, and no mount would honor them.
    "no devices and no setuid files": (
        """
import os, stat
try:
    os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
    made = True
except PermissionError:
    made = False
mounts = [line.split() for line in open("/proc/self/mountinfo")]
[made, [fields[4] for fields in mounts if "nosuid" not in fields[5]]]
""",
        [False, []],
    ),
}
TOGETHER = """
import ast
def last_value(text):
    *statements, last = ast.parse(text).body
    names = {{}}
    exec(compile(ast.Module(statements, []), "part", "exec"), names)
    return eval(compile(ast.Expression(last.value), "part", "eval"), names)
{{case: last_value(text) for case, text in {codes!r}.items()}}
"""


async def test_code_sees_the_sandbox_alone(chat: Chat) -> None:
    codes = {case: code for case, (code, _) in SEEN.items()}

    seen = (await chat.run(TOGETHER.format(codes=codes))).result

    assert seen == {case: expected for case, (_, expected) in SEEN.items()}
    assert (
        resource.getrlimit(resource.RLIMIT_CORE)[0] != 1
    )  # the server dumps as before


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


async def test_no_loopback_of_the_host(chat: Chat, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    code = f"import socket\nsocket.create_connection(('127.0.0.1', {port}))"

    ran = await chat.run(code)

    assert "PermissionError" in ran.told["stderr"]
    with pytest.raises(BlockingIOError):
        listener.accept()


async def test_every_namespace_is_its_own(chat: Chat) -> None:
    """And the root has no home, and no folder of the server but that of its Python."""
    kinds = ("net", "pid", "user", "mnt", "ipc", "uts", "cgroup")
    code = f"import os\n[os.readlink('/proc/self/ns/' + kind) for kind in {kinds}]"

    inside = (await chat.run(code)).result
    root = (await chat.run("import os\nos.listdir('/')")).result

    outside = [os.readlink(f"/proc/self/ns/{kind}") for kind in kinds]
    assert not set(inside) & set(outside)
    system = {"dev", "etc", "lib", "lib64", "proc", "tmp", "usr", "work"}
    assert set(root) <= system | {find_interpreters()[-1].parts[1]}


async def test_files_of_the_host_are_not_there(chat: Chat, tmp_path: Path) -> None:
    """Neither at their paths nor behind the first process."""
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    paths = [str(secret), "/etc/passwd", "/proc/1/cwd/../etc/passwd", __file__]
    paths += [f"/proc/1/root{secret}", f"/proc/{os.getpid()}", "/sys", "/usr/bin/su"]

    code = f"import os\n[path for path in {paths!r} if os.path.lexists(path)]"

    assert (await chat.run(code)).result == []


async def test_open_files_of_the_server_are_not_inherited(
    chat: Chat, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text(CANARY)
    opened = os.open(tmp_path / "secret", os.O_RDONLY)
    os.set_inheritable(opened, True)
    code = """
import glob, os
def target(path):
    try:
        return os.readlink(path)
    except OSError:
        return ""
[target(path) for path in glob.glob("/proc/[0-9]*/fd/*")]
"""
    try:
        targets = (await chat.run(code)).result
    finally:
        os.close(opened)

    kinds = {target.partition(":")[0] for target in targets}
    assert kinds <= {"", "/dev/null", "pipe", "anon_inode"}


async def test_environment_of_the_server_is_not_there(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the code's own nor that of any process it can see."""
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    code = """
import glob, os
seen = [open(path).read() for path in glob.glob("/proc/[0-9]*/environ")]
[sorted(os.environ), len(seen), "".join(seen)]
"""
    names, processes, seen = (await chat.run(code)).result

    allowed = "HOME PWD LC_CTYPE OMP_NUM_THREADS OPENBLAS_NUM_THREADS"
    assert set(names) <= set(allowed.split())
    assert processes == 2
    assert CANARY not in seen
    assert "PATH" not in seen


async def test_no_way_to_more_rights(chat: Chat) -> None:
    calls = (
        "unshare(0x10000000)",  # CLONE_NEWUSER
        "unshare(0x00020000)",  # CLONE_NEWNS
        "unshare(0x40000000)",  # CLONE_NEWNET
        "setns(os.open('/proc/1/ns/user', 0), 0)",
        "mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "umount2(b'/work', 2)",
        "chroot(b'/tmp')",
        "setuid(0)",
        "setgid(0)",
    )

    found = await refusals(chat, calls)

    assert set(found.values()) <= {"EPERM", "EINVAL", "ENOSPC"}, found


MACHINE = list(_ARCHITECTURES).index(platform.machine())


VALUES = [
    "open(b'/usr/lib/os-release', 0x4000 if os.uname().machine == 'x86_64' else 0x10000)",
    "syscall(221 if os.uname().machine == 'x86_64' else 223, 0, 0, 0, 4)",  # DONTNEED
    "fcntl(os.pipe()[1], 1031, 1 << 20)",  # F_SETPIPE_SZ
    "fcntl(os.open('/work', 0), 1026, 1)",  # F_NOTIFY
    "fcntl(os.open('/usr/lib/os-release', 0), 1024, 0)",  # F_SETLEASE
    "prctl(22, 2, 0)",  # PR_SET_SECCOMP
    "prctl(62, 1, 0, 0, 0)",  # PR_SCHED_CORE
    "prctl(78, 1, 16, 0, 0)",  # PR_FUTEX_HASH
    "mmap(None, 4096, 3, 0x21, -1, 0)",  # MAP_SHARED, MAP_ANONYMOUS
    "mmap(None, 4096, 3, 0x23, -1, 0)",  # MAP_SHARED_VALIDATE
    "mmap(None, 4096, 3, 0x40022, -1, 0)",  # MAP_HUGETLB, MAP_PRIVATE
    "setrlimit(4, bytes(16))",  # RLIMIT_CORE
    "prlimit(0, 4, bytes(16), None)",
    "socketpair(30, 5, 0, 0)",  # AF_TIPC, whose module the kernel would load
]
"""The rest of the same calls is what programs need."""
NEWER = "syscall(470, 0, 0, 0, 0, 0, 0)"
"""Newer than the list: programs know how to do without."""


async def test_kernel_refuses_each_call_of_the_list(chat: Chat) -> None:
    """Memory that no one counts, other processes, the log and the disks of the host."""
    numbers = [numbers[MACHINE] for numbers in _REFUSED_CALLS.values()]
    calls = [f"syscall({n}, 0, 0, 0, 0, 0, 0)" for n in numbers if n is not None]

    refused = {**dict.fromkeys([*calls, *VALUES], "EPERM"), NEWER: "ENOSYS"}
    assert await refusals(chat, list(refused)) == refused


async def test_usual_programs_find_what_they_need(chat: Chat) -> None:
    code = """
import asyncio, concurrent.futures, fcntl, multiprocessing, sqlite3, subprocess, sys
async def echo():
    command = (sys.executable, "-c", "print(input())")
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    child = await asyncio.create_subprocess_exec(*command, **pipes)
    return (await child.communicate(b"child\\n"))[0].decode()
def square(number):
    return number ** 2
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    squares = pool.map(square, range(3))
with concurrent.futures.ThreadPoolExecutor(2) as threads:
    cubes = list(threads.map(lambda number: number ** 3, range(3)))
database = sqlite3.connect("a.db")
database.execute("create table t (x)")
database.execute("insert into t values (1)")
database.commit()
reading, writing = fork.Pipe()
writing.send("sent")
with open("locked", "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
[asyncio.run(echo()), squares, cubes, reading.recv(), list(database.execute("select * from t"))]
"""
    expected = ["child\n", [0, 1, 4], [0, 1, 8], "sent", [[1]]]

    assert (await chat.run(code)).result == expected


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x86_64 has these calls")
async def test_calls_of_another_machine_are_deadly(chat: Chat) -> None:
    """The 32-bit calls have other numbers, which the filter does not know."""
    code = """
import ctypes, mmap
getpid = b"\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\xc3"  # mov eax, 20; int 0x80; ret
own = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
page = mmap.mmap(-1, 4096, own, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(getpid)
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
    ran = await chat.run(code)

    assert ran.told["note"] == "The code was ended by signal 31."


async def test_setuid_marks_are_not_kept(chat: Chat) -> None:
    await chat.run("import os\nopen('tool', 'w')\nos.chmod('tool', 0o6755)")

    assert (
        await chat.run("import os\nos.stat('tool').st_mode & 0o7777")
    ).result == 0o755
