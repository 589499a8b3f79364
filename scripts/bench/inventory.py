"""
title: Counts what this server's process holds

A function for Open WebUI: `soak.py` installs it beside the pipe and asks it between the
rounds. It only looks; the pipe that is measured does not know of it.
"""

import _sqlite3
import asyncio
import ctypes
import gc
import json
import os
import re
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import aiohttp

_FEW = 10
_COPY = re.compile(r"(?<=_)[0-9a-f]{32}(?=\.)")
"""What the name of a loaded copy of a function ends with."""


class Pipe:
    """Answers with the counts as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        """Return the only model."""
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict[str, Any]) -> str:
        """Count; the question is the id of the function to look at."""
        for _ in range(3):
            await asyncio.sleep(0)  # what was told to close closes
            gc.collect()
        return json.dumps(_count(f"function_{body['messages'][-1]['content']}_"))


def _count(owner: str) -> dict[str, Any]:
    """Return the figures, and by name what they count."""
    held = gc.get_objects()
    kinds: Counter[str] = Counter()
    for kind, count in Counter(map(type, held)).items():
        kinds[_name_of(kind)] += count
    theirs = {kind: n for kind, n in kinds.items() if kind.startswith(owner)}
    sessions = [one for one in held if isinstance(one, aiohttp.ClientSession)]
    tasks = Counter(map(_task_name, asyncio.all_tasks()))
    return {
        "resident": _resident(),
        "blocks": sys.getallocatedblocks(),
        "malloc": _allocated() - _sqlite_memory(),
        "sqlite": _sqlite_memory(),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1,  # its own
        "idle": sum(map(_idle_sockets, sessions)),
        "tasks": tasks.total(),
        "sessions": sum(not one.closed for one in sessions),
        "threads": threading.active_count(),
        "objects": sum(theirs.values()),
        "copies": len({kind.partition(".")[0] for kind in theirs}),
        "names": {"tasks": tasks, "python": _without_copies(kinds)},
    }


def _without_copies(kinds: Counter[str]) -> Counter[str]:
    """Return the counts of what there is more than a few of; a new copy is the same."""
    named: Counter[str] = Counter()
    for kind, count in kinds.items():
        if count >= _FEW:
            named[_COPY.sub("", kind)] += count
    return named


def _name_of(kind: type) -> str:
    return f"{getattr(kind, '__module__', '')}.{kind.__qualname__}"


def _task_name(task: asyncio.Task[Any]) -> str:
    """Return the function that a task runs, with its module."""
    coroutine = task.get_coro()
    frame = getattr(coroutine, "cr_frame", None)
    module = frame.f_globals.get("__name__", "") if frame else ""
    return f"{module}.{getattr(coroutine, '__qualname__', '')}"


def _idle_sockets(session: aiohttp.ClientSession) -> int:
    """Return how many connections rest in a pool; it closes them by itself."""
    rested = getattr(session.connector, "_conns", {})
    return sum(map(len, rested.values()))


class _MallInfo(ctypes.Structure):
    """What mallinfo2(3) returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks"),
            *("fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


def _allocated() -> int:
    """Return what is in use of the memory that malloc gave, in kB."""
    libc = ctypes.CDLL(None)
    libc.mallinfo2.restype = _MallInfo
    found = libc.mallinfo2()
    return int(found.uordblks + found.hblkhd) // 1000


def _sqlite_memory() -> int:
    """Return what SQLite holds for all connections of the server, in kB."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_memory_used.restype = ctypes.c_int64
    return int(library.sqlite3_memory_used()) // 1000


def _resident() -> int:
    """Return the resident memory in kB, without what malloc keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1000
