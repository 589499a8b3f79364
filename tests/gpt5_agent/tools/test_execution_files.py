"""Files that a tool names (R23)."""

import base64
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest

from gpt5_agent.tools.execution import MAX_TOOL_FILE_BYTES, OwnTools
from openai_responses.loop.tools import ToolResult
from skipping_loop import run_skipping


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a file, beside a secret."""
    (tmp_path / "secret.txt").write_text("hunter2", "utf-8")
    folder = tmp_path / "files"
    (folder / "in").mkdir(parents=True)
    (folder / "in" / "a.txt").write_bytes(b"rain")
    return folder


class Naming:
    """A tool that names a file."""

    name = "naming"
    description = "Name a file."
    args: Mapping[str, Any] = MappingProxyType({})

    async def execute(self, args: dict[str, Any]) -> object:
        """Return its path."""
        return [{"type": "file", "path": args["path"]}]


def named(path: str, root: str) -> ToolResult:
    """What a call is answered with whose tool names the file."""
    return run_skipping(OwnTools([Naming()], root).call("naming", {"path": path}))


def read_tool_file(path: str, root: str) -> bytes:
    """The bytes that the page gets."""
    [file] = named(path, root).card["files"]
    return base64.b64decode(file["url"].partition(",")[2])


def refusal(path: str, root: str) -> str:
    """Why nothing is read."""
    found = named(path, root)
    assert found.failed
    assert not found.card
    return str(found.output)


def test_r23_file_below_the_root_is_read(root: Path) -> None:
    """By the name that tools use, or by its path."""
    assert read_tool_file("/files/in/a.txt", str(root)) == b"rain"
    assert read_tool_file("/files/in/../in/a.txt", f" {root}/ ") == b"rain"
    assert read_tool_file(str(root / "in" / "a.txt"), str(root)) == b"rain"


def test_r23_link_that_stays_inside_is_followed(root: Path) -> None:
    """It leads nowhere else; nor does a root that is a link itself."""
    (root / "link").symlink_to(root / "in" / "a.txt")
    (root.parent / "alias").symlink_to(root)

    assert read_tool_file("/files/link", str(root)) == b"rain"
    assert read_tool_file("/files/in/a.txt", str(root.parent / "alias")) == b"rain"


@pytest.mark.parametrize(
    "path",
    [
        "/files/../secret.txt",
        "/files/in/../../secret.txt",
        "/files/link",
        "/files/folder/secret.txt",
        "/files//etc/passwd",
        "/etc/passwd",
        "/filesystem/secret.txt",
        "files/in/a.txt",
        "in/a.txt",
        "/files/in",
        "/files",
        "/files/missing",
        "/files/a\0b",
        "",
    ],
)
def test_r23_nothing_else_is_read(path: str, root: Path) -> None:
    """Not by `..`, not by a link, not by another root; a folder is no file."""
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent)

    assert str(root) not in refusal(path, str(root))


def test_r23_brother_of_the_root_is_outside(root: Path) -> None:
    """A path that only begins like the root is not below it."""
    other = root.parent / "files-of-others"
    other.mkdir()
    (other / "a.txt").write_text("hunter2", "utf-8")

    assert "no such file" in refusal(str(other / "a.txt"), str(root))


@pytest.mark.parametrize("unset", ["", "  "])
def test_r23_without_a_root_nothing_is_read(unset: str, root: Path) -> None:
    """Not even below the folder of the process."""
    assert "FILES_ROOT is not set" in refusal(str(root / "in" / "a.txt"), unset)


def test_r23_file_over_5_mb_is_refused(root: Path) -> None:
    """One of exactly that size is read."""
    (root / "fits").write_bytes(bytes(MAX_TOOL_FILE_BYTES))
    (root / "larger").write_bytes(bytes(MAX_TOOL_FILE_BYTES + 1))

    assert len(read_tool_file("/files/fits", str(root))) == 5 * 1024 * 1024
    assert "larger than 5 MB" in refusal("/files/larger", str(root))


def test_r23_file_that_grows_is_measured_by_reading(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it said of its size is not believed."""
    (root / "grown").write_bytes(bytes(MAX_TOOL_FILE_BYTES + 1))
    monkeypatch.setattr("os.fstat", lambda _: SimpleNamespace(st_size=0))

    assert "larger than 5 MB" in refusal("/files/grown", str(root))
