"""Code that wants everything: stopped within its limits, and the next call works."""

import asyncio
import os
from dataclasses import replace

import pytest

from sandbox.backend import MEBIBYTE, SharedLimits
from sandboxes.real import TIGHT, Chat, sandboxed, sandboxed_processes

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOLDERS = ("/work", "/tmp", "/dev/shm")


async def test_processes_and_threads_are_counted(chat: Chat) -> None:
    """At the limit the kernel refuses the next; the code itself is one of them.

    Threads are processes to the kernel.
    """
    processes = """
import os, signal
children = 0
try:
    while True:
        if not os.fork():
            signal.pause()
        children += 1
except BlockingIOError:
    pass
children
"""
    threads = """
import threading
threading.stack_size(1 << 18)  # otherwise memory may be short before threads are
held, started = threading.Event(), 0
try:
    while True:
        threading.Thread(target=held.wait, daemon=True).start()
        started += 1
except RuntimeError:
    pass
started
"""
    for code in (processes, threads):
        assert (await chat.run(code)).result == TIGHT.processes - 1
    assert await chat.still_works()


async def test_nobody_is_left_behind(chat: Chat) -> None:
    """Not even who left its group and its parent, and ignores signals."""
    code = """
import os, signal
if not os.fork():
    os.setpgid(0, 0)
    if not os.fork():
        for number in range(1, 32):
            if number not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(number, signal.SIG_IGN)
        while True:
            pass
    os._exit(0)
os.wait()
'done'
"""
    assert (await chat.run(code)).result == "done"
    assert sandboxed_processes() == []


ENDLESS = {
    "loop": "while True: pass",
    "sleep": "import time\ntime.sleep(10_000)",
    "fork bomb": "import os\nwhile True:\n  try: os.fork()\n  except OSError: pass",
    "closed pipes": "import os\nos.close(1); os.close(2); os.close(3)\nwhile True: pass",
    "stopped": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "stopped group": "import os, signal\nos.kill(0, signal.SIGSTOP)",
    "deaf": (
        "import signal, time\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass"
    ),
}
BEGUN = "import time\nprint('begun')\nopen('kept', 'w').write('x')\ntime.sleep(10_000)"


async def test_endless_code_is_stopped_and_its_work_kept() -> None:
    async with sandboxed(
        TIGHT._replace(seconds=3.0), shared=SharedLimits(runs=len(ENDLESS) + 1)
    ) as first:
        chats = [replace(first, name=name) for name in ENDLESS]
        busy = replace(first, name="busy")
        runs = [chat.run(ENDLESS[chat.name]) for chat in chats]
        *stopped, last = await asyncio.gather(*runs, busy.run(BEGUN))
        for ran in (*stopped, last):
            assert (
                ran.told["note"] == "The code was stopped: it did not end within 3 s."
            )
            assert ran.answer.failed
        assert sandboxed_processes() == []
        for chat in chats:
            assert (await chat.file("list", path=".")).text == "[]"
        # What was printed and written until then is not lost.
        assert last.told["stdout"] == "begun\n"
        assert [file.path.read_text("utf-8") for file in last.answer.files] == ["x"]
        assert (await busy.file("read", path="kept")).text == "x"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("pieces = []\nwhile True: pieces.append(bytearray(1 << 20))", "MemoryError"),
        # Each could hold what its other end has not read.
        ("import os\npipes = [os.pipe() for _ in range(1000)]", "Too many open files"),
    ],
    ids=["memory", "open files"],
)
async def test_code_is_told_what_it_has_too_much_of(
    chat: Chat, code: str, words: str
) -> None:
    ran = await chat.run(code)

    assert words in ran.told["stderr"]
    assert await chat.still_works()


@pytest.mark.parametrize(
    "kind", ["bytearray(60 << 20)", "mmap.mmap(-1, 60 << 20, 0x22)"]
)
async def test_memory_of_all_processes(chat: Chat, kind: str) -> None:
    """Each stays below the limit of one; the sum is watched."""
    code = f"""
import mmap, os, signal
for _ in range(5):
    if not os.fork():
        held = {kind}
        for place in range(0, len(held), 4096):
            held[place] = 1
        signal.pause()
signal.pause()
"""
    ran = await chat.run(code)

    assert ran.answer.failed
    assert f"more than {TIGHT.memory} bytes of memory" in ran.answer.text
    assert sandboxed_processes() == []
    assert await chat.still_works()


MMAP = """
import ctypes
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
"""
HIDDEN = {
    "sockets": """
import socket
pairs = []
try:
    while True:
        pairs.append(socket.socketpair())
        for end in pairs[-1]:
            end.setblocking(False)
            try:
                while True: end.send(bytes(100_000))
            except BlockingIOError: pass
except OSError: pass
""",
    "mappings": f"""{MMAP}
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
begin = libc.mmap(None, 4096 * 14_000, 1, 0x22, -1, 0)
for page in range(0, 14_000, 2):
    assert libc.mprotect(begin + page * 4096, 4096, 3) == 0
""",
    "page tables": f"""{MMAP}
for gigabyte in range(2200):  # each is the zero page, with two pages of tables
    address = 0x100000000000 + (gigabyte << 30)
    assert libc.mmap(address, 4096, 1, 0x100022, -1, 0) == address  # MAP_FIXED_NOREPLACE
    ctypes.string_at(address, 1)
""",
    "locks": """
import fcntl
file = open("/tmp/file", "w")
for place in range(5000):
    fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * place)
""",
    "a first thread that ended": """
import ctypes, threading, time
def take():
    time.sleep(0.1)
    kept.append(bytearray(b"x") * (45 << 20))
    threading.Event().wait()
kept = []
threading.stack_size(1 << 18)
threading.Thread(target=take, daemon=True).start()
if os.getpid() != first:
    ctypes.CDLL(None).pthread_exit(None)
""",
    "files of threads": """
import ctypes, os, threading
def take():
    ctypes.CDLL(None).unshare(0x400)  # CLONE_FILES: this thread has its own from here
    import socket
    kept.append([socket.socketpair() for _ in range(28)])
    held.wait()
held, kept = threading.Event(), []
threading.stack_size(1 << 18)
for _ in range(7):
    threading.Thread(target=take, daemon=True).start()
""",
    # Each costs the kernel memory, though it has no size.
    "empty files": """
for n in range(10**9):
    os.close(os.open(f"/tmp/{n}", os.O_CREAT))
""",
}
ALONE = {"files of threads": 0, "empty files": 0, "a first thread that ended": 2}
"""How many processes do it beside the first one; others need five."""


@pytest.mark.parametrize("kind", HIDDEN)
async def test_memory_that_the_kernel_holds(chat: Chat, kind: str) -> None:
    code = f"""
import os, signal
first = os.getpid()
for _ in range({ALONE.get(kind, 5)}):
    if not os.fork():
        break
{HIDDEN[kind]}
signal.pause()
"""
    ran = await chat.run(code)

    assert f"more than {TIGHT.memory} bytes of memory" in ran.answer.text
    assert await chat.still_works()


async def test_size_of_one_file_is_limited(chat: Chat) -> None:
    code = f"""
import os
sizes = []
fills = [
    lambda file: file.write(bytes(1 << 16)),
    lambda file: os.truncate(file.fileno(), 1 << 40),
]
for folder in {FOLDERS}:
    for fill in fills:
        with open(folder + "/long", "wb", buffering=0) as file:
            try:
                while True: fill(file)
            except OSError as error:
                print(error.strerror)
            sizes.append(os.fstat(file.fileno()).st_size)
    os.remove(folder + "/long")
sizes
"""
    ran = await chat.run(code)

    assert ran.result == [TIGHT.file, 0] * len(FOLDERS)
    assert ran.told["stdout"] == "File too large\n" * 2 * len(FOLDERS)


async def test_all_files_are_limited(chat: Chat) -> None:
    """The next run can write again in the folder for temporary files."""
    code = f"""
import os
sums = []
for folder in {FOLDERS}:
    written = number = 0
    try:
        for number in range(100):
            with open(f"{{folder}}/{{number}}", "wb", buffering=0) as file:
                for _ in range(16):
                    written += file.write(bytes(1 << 16))
    except OSError as error:
        print(error.strerror)
    sums.append(written)
    for each in range(number + 1 if folder != "/tmp" else 0):
        os.remove(f"{{folder}}/{{each}}")
sums
"""
    ran = await chat.run(code)

    for written in ran.result:
        assert TIGHT.disk - MEBIBYTE < written <= TIGHT.disk
    assert ran.told["stdout"] == "No space left on device\n" * len(FOLDERS)
    assert await chat.still_works()


TOO_MUCH = {
    "links that count once in there": (
        "open('0', 'wb').write(bytes(1 << 20))\n"
        "for n in range(1, 40): os.link('0', str(n))",
        f"its files have more than {TIGHT.disk} bytes",
    ),
    "holes": (
        "for n in range(40): os.truncate(os.open(str(n), os.O_CREAT | os.O_RDWR), 1 << 20)",
        f"its files have more than {TIGHT.disk} bytes",
    ),
    "names": (
        "for n in range(1000): open(str(n), 'w').close()",
        f"it holds more than {TIGHT.files} files and folders",
    ),
    "depth": (
        "for n in range(40): os.mkdir('d' * 200); os.chdir('d' * 200)",
        "a path in it is too long",
    ),
    "depth in bytes": (
        "for n in range(6): os.mkdir('\u00fc' * 100); os.chdir('\u00fc' * 100)",
        "a path in it is too long",
    ),
}


@pytest.mark.parametrize("kind", TOO_MUCH)
async def test_oversized_workspace_is_rolled_back(chat: Chat, kind: str) -> None:
    code, reason = TOO_MUCH[kind]
    await chat.run("open('before', 'w').write('x')")

    ran = await chat.run("import os\n" + code)

    assert ran.told["note"] == (
        f"Nothing in the workspace was kept, because {reason}: it is as it was before."
    )
    assert ran.answer.files == ()
    assert (await chat.run("import os\nos.listdir()")).result == ["before"]


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        ("stderr", "import sys\nwhile True: print('x' * 999, file=sys.stderr)"),
        ("stdout", "print('x' * 999 * 11)"),
    ],
)
async def test_flood_is_stopped(chat: Chat, stream: str, code: str) -> None:
    ran = await chat.run(code)

    assert ran.told[stream].startswith("x" * 999)
    assert len(ran.told[stream]) == TIGHT.output
    assert ran.told["note"] == "The code was stopped: it printed more than 10000 bytes."
    assert await chat.still_works()


async def test_output_up_to_the_limit_is_whole(chat: Chat) -> None:
    fits = await chat.run(f"print('x' * {TIGHT.output}, end='')")
    longer = await chat.run(f"print('x' * {TIGHT.output + 1}, end='')")

    assert fits.told["stdout"] == "x" * TIGHT.output
    assert "note" not in fits.told
    assert "printed more than 10000 bytes" in longer.told["note"]


async def test_first_process_cannot_be_harmed(chat: Chat) -> None:
    ran = await chat.run(
        "import os, signal\n"
        "for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGINT):\n"
        "    os.kill(1, number)\n'sent'"
    )

    assert ran.result == "sent"


async def test_server_holds_nothing_afterwards(chat: Chat) -> None:
    await chat.run("1")
    before = len(os.listdir("/proc/self/fd"))

    await chat.run("while True: print('x' * 999)")
    await chat.run("import os\nos.kill(-1, 9)")

    assert len(os.listdir("/proc/self/fd")) <= before
    assert sandboxed_processes() == []
