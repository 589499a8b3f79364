"""What is counted of a process, by its folder in `/proc`: here of the tests' own."""

import fcntl
import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from sandbox import bubblewrap
from sandbox.bubblewrap import (
    _measure_open_files,
    _measure_root,
    _read_open_files,
    _read_resident,
    _unless_it_ended,
)


@contextmanager
def ended_child() -> Iterator[str]:
    """Lend the folder of a process that has ended, and that no one has waited for."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        yield f"/proc/{child}/task/{child}"
    finally:
        os.waitpid(child, 0)


def counted(folder: str = "") -> tuple[int, set[str]]:
    """Return the locks of this thread, and its pipes and sockets."""
    buffers: set[str] = set()
    locks = _read_open_files(
        folder or f"/proc/self/task/{threading.get_native_id()}", buffers
    )
    return locks, buffers


def test_pipes_and_sockets_are_counted_once() -> None:
    """However many have them open: a pipe has two ends, a pair two buffers."""
    _, before = counted()
    ends = [*os.pipe()]
    ends.append(os.dup(ends[0]))
    pair = socket.socketpair()
    _, opened = counted()
    for end in ends:
        os.close(end)
    for one in pair:
        one.close()

    kinds = sorted(name.partition(":")[0] for name in opened - before)
    assert kinds == ["pipe", "socket", "socket"]
    assert counted()[1] == before


def test_files_of_proc_are_counted_one_by_one() -> None:
    """Each holds what it has listed for its reader."""
    _, before = counted()
    with open("/proc/self/status"), open("/proc/self/status"):
        _, opened = counted()

    assert [name.partition(":")[0] for name in opened - before] == ["/proc"] * 2


def test_locks_are_counted(tmp_path: Path) -> None:
    before, _ = counted()
    with (tmp_path / "file").open("w") as file:
        for place in (0, 10, 20):
            fcntl.lockf(file, fcntl.LOCK_EX, 1, place)
        fcntl.flock(file, fcntl.LOCK_EX)
        held, _ = counted()

    assert held - before == 4
    assert counted()[0] == before


def test_watches_of_epoll_are_counted() -> None:
    before, _ = counted()
    ends = os.pipe()
    with select.epoll() as watching:
        for end in ends:
            watching.register(end)
        held, _ = counted()
    for end in ends:
        os.close(end)

    assert held - before == 2


def test_swapped_memory_is_counted(tmp_path: Path) -> None:
    """A host with swap would take the rest elsewhere."""
    status = "Name:\tcode\nRssAnon:\t 1 kB\nRssFile:\t 9 kB\nRssShmem:\t 2 kB\n"
    (tmp_path / "status").write_text(status + "VmSwap:\t 4 kB\n")

    assert _read_resident(str(tmp_path)) == 7 * 1024


def test_open_files_are_read_for_a_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Code could keep the server busy with them; in between, what they held counts."""
    now = 0.0
    reads = 0

    def read_slowly(_: str) -> int:
        nonlocal now, reads
        now += 1.0
        reads += 1
        return 5

    monkeypatch.setattr(bubblewrap, "_measure_open_files", read_slowly)
    monkeypatch.setattr(bubblewrap, "_measure_root", lambda _: 7)
    monkeypatch.setattr(bubblewrap, "time", SimpleNamespace(monotonic=lambda: now))
    monkeypatch.setattr(os.path, "samestat", lambda *_: False)  # it has its own root
    info, end = os.pipe()
    os.write(end, b'{"child-pid": %d}' % os.getpid())
    os.close(end)
    run = bubblewrap._BubblewrapProcess(Mock(), info)
    for _ in range(30):
        assert run.measure_memory() == 12
        now += 1.0
    run.close()

    assert reads == 2


def test_what_has_ended_holds_nothing() -> None:
    """Its folder belongs to root until somebody waits for it, or it is gone."""
    with ended_child() as folder:
        with _unless_it_ended(folder):
            counted(folder)
        with _unless_it_ended(folder):
            raise PermissionError
    with _unless_it_ended(folder):
        counted(folder)
    with _unless_it_ended(folder):
        raise PermissionError


def test_what_lives_and_cannot_be_read_is_told() -> None:
    """A limit that no one sees is none."""
    folder = f"/proc/self/task/{threading.get_native_id()}"

    with pytest.raises(PermissionError), _unless_it_ended(folder):
        raise PermissionError


def test_threads_have_the_memory_of_their_process_once(tmp_path: Path) -> None:
    """And a pipe that all have open, but the locks of each."""
    sizes: list[int] = []
    for threads in (1, 3):
        root = tmp_path / str(threads)
        for thread in range(threads):
            folder = root / f"proc/7/task/{thread}"
            (folder / "fd").mkdir(parents=True)
            (folder / "status").write_text("RssAnon:\t8 kB\n")
            (folder / "maps").write_text("x" * 100)
            (folder / "fd/1").symlink_to("pipe:[1]")
            (folder / "fd/2").symlink_to("/work/file")
            (folder / "fdinfo").mkdir()
            (folder / "fdinfo/2").write_text("lock:\t1\nlock:\t2\n")
        files = _measure_open_files(str(root))
        sizes.append(files + _measure_root(str(root)))
    shared = 8 * 1024 + 500 + 64 * 1024  # the second is the kernel's, for a mapping
    assert sizes == [shared + 2 * 256, shared + 6 * 256]
