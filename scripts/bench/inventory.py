"""
title: Counts what this server's process holds

A function for Open WebUI: `soak.py` installs it next to the pipe and asks it between
the rounds. It only looks; the pipe that is measured does not know of it.
"""

import asyncio
import ctypes
import gc
import json
import linecache
import os
import sys
import threading
from pathlib import Path
from typing import Any

import aiohttp


class Pipe:
    """Answers with the counts as JSON."""

    def pipes(self) -> list[dict[str, str]]:
        """Return the only model."""
        return [{"id": "count", "name": "Count"}]

    async def pipe(self, body: dict[str, Any]) -> str:
        """Count; the question is the id of the function to look at."""
        # Python keeps the lines of each file that a logged traceback names: thousands.
        linecache.clearcache()
        for _ in range(3):
            await asyncio.sleep(0)  # lets what is closing close
            gc.collect()
        function_id = body["messages"][-1]["content"]
        return json.dumps(count_held(f"function_{function_id}_"))


def count_held(module_prefix: str) -> dict[str, int]:
    """Return the counts; the modules of the function's copies begin with the prefix.

    An idle connection of a pool closes by itself, so its descriptor is left out.
    """
    objects = gc.get_objects()
    sessions = [held for held in objects if isinstance(held, aiohttp.ClientSession)]
    idle = sum(_idle_connections(session) for session in sessions)
    modules = [str(type(held).__module__) for held in objects]
    own_modules = [name for name in modules if name.startswith(module_prefix)]
    return {
        "resident": _resident_kilobytes(),
        "allocated": _allocated_kilobytes(),
        "blocks": sys.getallocatedblocks(),
        "descriptors": len(os.listdir("/proc/self/fd")) - 1 - idle,
        "tasks": len(asyncio.all_tasks()),
        "sessions": len([session for session in sessions if not session.closed]),
        "threads": threading.active_count(),
        "objects": len(own_modules),
        "copies": len(set(own_modules)),
    }


def _idle_connections(session: aiohttp.ClientSession) -> int:
    pools = getattr(session.connector, "_conns", {})
    return sum(len(pool) for pool in pools.values())


def _resident_kilobytes() -> int:
    """Return the resident memory, without what malloc keeps for later."""
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1000


class _MallocInfo(ctypes.Structure):
    """What mallinfo2(3) of glibc counts, in bytes."""

    _fields_ = [
        ("arena", ctypes.c_size_t),
        ("ordblks", ctypes.c_size_t),
        ("smblks", ctypes.c_size_t),
        ("hblks", ctypes.c_size_t),
        ("hblkhd", ctypes.c_size_t),
        ("usmblks", ctypes.c_size_t),
        ("fsmblks", ctypes.c_size_t),
        ("uordblks", ctypes.c_size_t),
        ("fordblks", ctypes.c_size_t),
        ("keepcost", ctypes.c_size_t),
    ]


def _allocated_kilobytes() -> int:
    """Return what is in use of what malloc gave: not the gaps in between.

    Python takes small objects from `blocks`; everything larger, and what libraries in C
    hold, comes from malloc.
    """
    mallinfo = ctypes.CDLL(None).mallinfo2
    mallinfo.restype = _MallocInfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd) // 1000
