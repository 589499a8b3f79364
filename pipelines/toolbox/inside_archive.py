"""The part of the sandboxed program that lays the workspace out, then packs it.

It is text because it runs in another interpreter, where none of our modules are.
"""

INSIDE_ARCHIVE = r'''
"""What a run does inside the sandbox; nobody trusts what it answers."""

import _ast
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from io import BufferedReader, BufferedWriter

WORK = "/work"
PACKAGES = "/packages"
PIECE = 1 << 18
LONGEST_PATH = 1000
FEW = 20
Stamp = tuple[int, int, int]


class Refused(Exception):
    """What was asked for is not done; the text says why."""


def unpack(source: BufferedReader) -> dict[str, Stamp]:
    """Lay out the workspace as it was kept; return how its files look."""
    stamps = {}
    for kind, path, mode, rest in json.loads(source.readline() or b"[]"):
        place = os.path.join(WORK, path)
        if kind == "folder":
            os.mkdir(place)
        elif kind == "link":
            os.symlink(rest, place)
        else:
            with open(place, "wb") as file:
                for length in pieces(rest):
                    file.write(source.read(length))
            os.chmod(place, mode)
            stamps[path] = stamp(os.lstat(place))
    return stamps


def pieces(size: int) -> list[int]:
    """Return the lengths in which so many bytes are copied."""
    return [min(PIECE, size - done) for done in range(0, size, PIECE)]


def stamp(status: os.stat_result) -> Stamp:
    """Return what changes whenever a file is written."""
    return status.st_ino, status.st_size, status.st_ctime_ns


class Survey:
    """All that the workspace holds, folders in front of what is in them."""

    def __init__(self, limits: dict) -> None:
        """Look at everything; raises Refused where that is too much to keep."""
        self.limits = limits
        self.manifest: list[tuple] = []
        self.stamps: dict[str, Stamp] = {}
        self.dropped: list[str] = []
        self.size = 0
        folders = [""]
        while folders:
            folders += self.look_into(folders.pop())

    def look_into(self, folder: str) -> list[str]:
        """Note what a folder holds; return the folders in it."""
        os.chmod(os.path.join(WORK, folder), 0o700)
        inner = []
        with os.scandir(os.path.join(WORK, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                self.note(path, entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    inner.append(path)
        return inner

    def note(self, path: str, status: os.stat_result) -> None:
        """Note one entry of a folder."""
        place = os.path.join(WORK, path)
        if stat.S_ISDIR(status.st_mode):
            self.manifest.append(("folder", path, 0, 0))
        elif stat.S_ISLNK(status.st_mode):
            self.manifest.append(("link", path, 0, os.readlink(place)))
        elif stat.S_ISREG(status.st_mode):
            mode = status.st_mode & 0o777 | 0o600
            self.stamps[path] = stamp(status)
            os.chmod(place, mode)
            self.manifest.append(("file", path, mode, status.st_size))
            self.size += status.st_size
        else:
            self.dropped.append(path)
        files, disk = self.limits["files"], self.limits["disk"]
        if len(self.manifest) > files:
            raise Refused(f"it holds more than {files} files and folders")
        if self.size > disk:
            raise Refused(f"its files have more than {disk} bytes")
        if len(os.fsencode(path)) > LONGEST_PATH:
            raise Refused("a path in it is too long")

    def changed(self, before: dict[str, Stamp]) -> list[tuple[str, int, int]]:
        """Return which files are new or other: path, place in the archive, size."""
        found, offset = [], 0
        for kind, path, _, size in self.manifest:
            if kind == "file":
                if self.stamps[path] != before.get(path):
                    found.append((path, offset, size))
                offset += size
        return sorted(found)

    def write(self, target: BufferedWriter) -> None:
        """Write the archive: a line that lists all, then the files end to end."""
        target.write(line_of(self.manifest))
        for kind, path, _, size in self.manifest:
            if kind == "file":
                with open(os.path.join(WORK, path), "rb") as file:
                    for length in pieces(size):
                        target.write(file.read(length))


def line_of(value: object) -> bytes:
    """Return a value as one line of JSON."""
    return json.dumps(value).encode() + b"\n"
'''
