"""Source text of the sandboxed program, first half: the workspace archive and file operations.

It is text because it runs in another interpreter that has none of our modules.
"""

ARCHIVE_SOURCE = r'''
"""What a run does inside the sandbox; its answers are not trusted."""

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
CHUNK_BYTES = 1 << 18
MAX_PATH_BYTES = 1000
MAX_LISTED = 20
Stamp = tuple[int, int, int]


class Refused(Exception):
    """An operation is not done; the text says why."""


def unpack(source: BufferedReader) -> dict[str, Stamp]:
    """Restore the stored workspace; return the stamps of its files."""
    stamps = {}
    for kind, path, mode, rest in json.loads(source.readline() or b"[]"):
        place = os.path.join(WORK, path)
        if kind == "folder":
            os.mkdir(place)
        elif kind == "link":
            os.symlink(rest, place)
        else:
            with open(place, "wb") as file:
                for length in split_size(rest):
                    file.write(source.read(length))
            os.chmod(place, mode)
            stamps[path] = stamp(os.lstat(place))
    return stamps


def split_size(size: int) -> list[int]:
    return [min(CHUNK_BYTES, size - done) for done in range(0, size, CHUNK_BYTES)]


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


class Survey:
    """The contents of the workspace, each folder before what is in it."""

    def __init__(self, limits: dict) -> None:
        self.limits = limits
        self.manifest: list[tuple] = []
        self.stamps: dict[str, Stamp] = {}
        self.dropped: list[str] = []
        self.size = 0
        folders = [""]
        while folders:
            folders += self.read_folder(folders.pop())

    def read_folder(self, folder: str) -> list[str]:
        os.chmod(os.path.join(WORK, folder), 0o700)
        inner = []
        with os.scandir(os.path.join(WORK, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                self.add_entry(path, entry.stat(follow_symlinks=False))
                if entry.is_dir(follow_symlinks=False):
                    inner.append(path)
        return inner

    def add_entry(self, path: str, status: os.stat_result) -> None:
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
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise Refused("a path in it is too long")

    def changed(self, before: dict[str, Stamp]) -> list[tuple[str, int, int]]:
        """Return the changed files: path, place in the archive, size."""
        found, offset = [], 0
        for kind, path, _, size in self.manifest:
            if kind == "file":
                if self.stamps[path] != before.get(path):
                    found.append((path, offset, size))
                offset += size
        return sorted(found)

    def write(self, target: BufferedWriter) -> None:
        target.write(encode_line(self.manifest))
        for kind, path, _, size in self.manifest:
            if kind == "file":
                with open(os.path.join(WORK, path), "rb") as file:
                    for length in split_size(size):
                        target.write(file.read(length))


def encode_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
'''


FILES_SOURCE = r"""

def resolve_path(path: str, follow: bool = True) -> str:
    if "\0" in path:
        raise Refused("A path has no zero bytes.")
    place = os.path.normpath(os.path.join(WORK, path))
    if follow:
        real = os.path.realpath(place)
    else:  # the link itself is meant
        folder, name = os.path.split(place)
        real = os.path.join(os.path.realpath(folder), name)
    if os.path.commonpath((WORK, real)) != WORK:
        raise Refused(f"{path!r} is not in the workspace.")
    return real


def kind_of(mode: int) -> str:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(mode), "other")


def list_folder(request: dict) -> dict:
    with os.scandir(resolve_path(request["path"])) as entries:
        found = sorted(entries, key=lambda one: one.name)
    listed = []
    for entry in found[: request["limits"]["files"]]:
        status = entry.stat(follow_symlinks=False)
        kind = kind_of(status.st_mode)
        size = {"size": status.st_size} if kind == "file" else {}
        listed.append(dict(name=entry.name, kind=kind, **size))
    return {"listed": listed, "more": len(found) - len(listed)}


def read_file(request: dict) -> dict:
    limit = request["limits"]["output"]
    place = resolve_path(request["path"])
    with open(place, "rb") as file:  # a FIFO would block, but none was kept
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit)
    whole = size <= limit
    try:
        text = content.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"given": os.path.relpath(place, WORK), "size": size}
    return {"text": text, "whole": whole, "size": size}


def write_file(request: dict) -> dict:
    place = resolve_path(request["path"])
    os.makedirs(os.path.dirname(place), exist_ok=True)
    content = request["content"].encode("utf-8", "replace")
    with open(place, "wb") as file:
        file.write(content)
    return {"done": f"Wrote {len(content)} bytes."}


def make_folder(request: dict) -> dict:
    os.makedirs(resolve_path(request["path"]), exist_ok=True)
    return {"done": "The folder is there."}


def remove(request: dict) -> dict:
    place = resolve_path(request["path"], follow=False)
    if place == WORK:
        raise Refused("The workspace itself stays; name what is in it.")
    if os.path.isdir(place) and not os.path.islink(place):
        remove_folder(place)
    else:
        os.remove(place)
    return {"done": "Removed."}


def remove_folder(folder: str) -> None:
    for place, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.remove(os.path.join(place, name))
        for name in folders:
            inner = os.path.join(place, name)
            (os.remove if os.path.islink(inner) else os.rmdir)(inner)
    os.rmdir(folder)
"""
