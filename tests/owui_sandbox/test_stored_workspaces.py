"""What is kept of the chats in Open WebUI's data folder, however the server ends."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from owui_sandbox import stored_workspaces
from owui_sandbox.stored_workspaces import StoredWorkspaces, discard_files
from sandbox.backend import SharedLimits
from sandbox.runs import FileSlice, SandboxReply
from sandbox.workspaces import Workspace, WorkspaceKey, WorkspacePool, lock_folder

pytestmark = pytest.mark.asyncio

KEY = WorkspaceKey("ada", "chat")


def end_run(workspace: Workspace, text: bytes, received: str = "") -> None:
    """Let a run end, whose workspace has these bytes, perhaps of an attached file."""
    with workspace.open_spool() as spool:
        spool.write_bytes(b"answer\n" + text)
        workspace.store_archive(spool, SandboxReply({}, 7))
        if received:
            workspace.add_received(received)


def store(folder: Path) -> StoredWorkspaces:
    return StoredWorkspaces(folder, SharedLimits(), WorkspacePool())


def found(folder: Path, pattern: str) -> list[Path]:
    return list(folder.rglob(pattern))


def count_open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def age(folder: Path, seconds: float) -> None:
    used = time.time() - seconds
    os.utime(folder, (used, used))


async def stored(folder: Path) -> tuple[bytes | None, list[str]]:
    """What the next run would be given: the workspace, and the ids of its files."""
    async with store(folder).acquire(KEY) as workspace:
        archive = workspace.archive
        packed = archive.path.read_bytes()[archive.start :] if archive else None
        return packed, list(workspace.received)


KILLED: dict[str, Callable[[Workspace], None]] = {
    "before the first run": lambda _: None,
    "in the second run": lambda workspace: end_run(workspace, b"new", "f-2"),
}
"""What was done in a call before the server was killed in it."""


@pytest.mark.parametrize("do", KILLED.values(), ids=KILLED)
async def test_killed_server_keeps_the_last_whole_state(
    tmp_path: Path, do: Callable[[Workspace], None]
) -> None:
    """What earlier calls stored stays until what replaces it is in its place."""
    living, killed = tmp_path / "living", tmp_path / "killed"
    async with store(living).acquire(KEY) as workspace:
        end_run(workspace, b"old", "f-1")
    async with store(living).acquire(KEY) as workspace:
        do(workspace)
        shutil.copytree(living, killed)  # what a killed server would leave

    assert await stored(killed) == (b"old", ["f-1"])


async def test_newer_of_two_archives_counts(tmp_path: Path) -> None:
    """A server that was killed as it replaced one leaves both; the next run, one."""
    for text in (b"newer", b"newest"):
        async with store(tmp_path).acquire(KEY) as workspace:
            end_run(workspace, text)
    [archive] = found(tmp_path, "archive.*")
    for start in "1234568":  # whichever is listed first
        older = archive.with_name(f"archive.{start}")
        older.write_bytes(b"longer older")
        os.utime(older, (0, 0))

    assert await stored(tmp_path) == (b"newest", [])
    async with store(tmp_path).acquire(KEY) as workspace:
        end_run(workspace, b"last")
    assert len(found(tmp_path, "archive.*")) == 1


async def test_cleared_workspace_is_empty_for_the_next_run(tmp_path: Path) -> None:
    """One that a run damaged is not given to any other, and no file counts as there."""
    async with store(tmp_path).acquire(KEY) as workspace:
        end_run(workspace, b"damaged", "f-1")
    async with store(tmp_path).acquire(KEY) as workspace:
        workspace.clear()
        workspace.received.clear()

    assert await stored(tmp_path) == (None, [])


async def test_failed_call_leaves_no_files_of_its_own(tmp_path: Path) -> None:
    """Nobody is given what it returned; the state of its last whole run is kept."""

    async def fail() -> None:
        async with store(tmp_path).acquire(KEY) as workspace:
            end_run(workspace, b"new")
            with workspace.open_spool() as spool:
                spool.write_bytes(b"returned")
                workspace.export_files(spool, [FileSlice("a", 0, 8)], 100)
            raise ConnectionError

    with pytest.raises(ConnectionError):
        await fail()

    assert await stored(tmp_path) == (b"new", [])
    assert found(tmp_path, "run-*") == []


async def test_returned_files_stay_until_they_are_discarded(tmp_path: Path) -> None:
    """Then nothing of a workspace without any is left, whoever else removed them."""
    async with store(tmp_path).acquire(KEY) as workspace:
        with workspace.open_spool() as spool:
            spool.write_bytes(b"returned")
            parts = [FileSlice("a", 0, 4), FileSlice("b", 4, 4)]
            files = workspace.export_files(spool, parts, 100)

    assert [file.path.read_bytes() for file in files] == [b"retu", b"rned"]
    files[0].path.unlink()
    discard_files(files)
    assert found(tmp_path, "*") == []


async def test_time_of_a_workspace_ends_unless_it_is_asked_for(tmp_path: Path) -> None:
    """One that nobody has removed yet is better than none."""
    workspaces = store(tmp_path)
    folders = {}
    chats = {"back": 3700, "over": 3700, "used": 3500, "alone": 3700}
    for chat in chats:
        user = "ben" if chat == "alone" else "ada"
        async with workspaces.acquire(WorkspaceKey(user, chat)) as workspace:
            end_run(workspace, chat.encode())
            assert workspace.archive
            folders[chat] = workspace.archive.path.parent.parent
    for chat, seconds in chats.items():
        age(folders[chat], seconds)
    before = count_open_files()

    async with workspaces.acquire(WorkspaceKey("ada", "back")) as workspace:
        assert workspace.archive
        assert workspace.archive.path.read_bytes() == b"answer\nback"
    assert not workspaces.has_workspace(WorkspaceKey("ada", "over"))
    assert workspaces.has_workspace(WorkspaceKey("ada", "used"))
    assert not folders["alone"].parent.exists()
    assert count_open_files() == before


async def test_what_another_process_removes_meanwhile_costs_no_run(
    tmp_path: Path,
) -> None:
    """It discards what its run returned without a lock, as here between two looks."""
    async with store(tmp_path).acquire(KEY) as workspace:
        end_run(workspace, b"old", "f-1")
    [archive] = found(tmp_path, "archive.*")
    (archive.parent / "run-gone").symlink_to(tmp_path / "gone")

    assert await stored(tmp_path) == (b"old", ["f-1"])


async def test_what_a_killed_server_returned_is_removed_in_time(tmp_path: Path) -> None:
    """Not at once: another call of the chat may still read what it returned."""
    async with store(tmp_path).acquire(KEY) as workspace:
        end_run(workspace, b"text")
    [archive] = found(tmp_path, "archive.*")
    for name, seconds in {"run-read": 500, "run-left": 700}.items():
        (archive.parent / name).mkdir()
        (archive.parent / name / "1").touch()
        age(archive.parent / name, seconds)

    await stored(tmp_path)

    assert [path.name for path in found(tmp_path, "run-*")] == ["run-read"]


async def test_workspace_of_a_call_without_chat_leaves_nothing(tmp_path: Path) -> None:
    """No file, and no empty folder either: such calls may come for years."""
    async with store(tmp_path).acquire(WorkspaceKey("ada", "")) as workspace:
        end_run(workspace, b"text", "f-1")

    assert found(tmp_path, "*") == []


async def test_only_the_server_reads_what_is_stored(tmp_path: Path) -> None:
    """Its machine may have other users; the data folder is often open to all."""
    async with store(tmp_path / "sandbox").acquire(KEY) as workspace:
        end_run(workspace, b"text")

    [folder, *_] = found(tmp_path, "*")
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_folders_are_named_as_before(tmp_path: Path) -> None:
    """With other names all chats would lose their workspaces after an update."""
    user = tmp_path / "fdee430d40bd57deeac186cd9790033d"
    (user / "31e06f7d89feb99a0e6c0affe198748c").mkdir(parents=True)

    assert store(tmp_path).has_workspace(KEY)


async def test_folder_that_goes_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call of another chat has just removed it."""
    gone: list[Path] = []

    def lock_late(folder: Path) -> int:
        lock = lock_folder(folder)
        if not gone:
            folder.rmdir()
            gone.append(folder)
        return lock

    monkeypatch.setattr(stored_workspaces, "lock_folder", lock_late)
    before = count_open_files()

    assert await stored(tmp_path) == (None, [])

    assert gone[0].is_dir()
    assert count_open_files() == before


async def test_half_a_list_of_received_files_is_none(tmp_path: Path) -> None:
    """The disk was full when it was written: the files are given once more."""
    async with store(tmp_path).acquire(KEY) as workspace:
        end_run(workspace, b"state", "f-1")
    [path] = found(tmp_path, "received*")
    path.write_text('["f-', "utf-8")

    assert await stored(tmp_path) == (b"state", [])


async def test_user_with_most_workspaces_loses_the_oldest(tmp_path: Path) -> None:
    """The chats of one user push out none of another's."""
    workspaces = StoredWorkspaces(tmp_path, SharedLimits(workspaces=3), WorkspacePool())
    ben = WorkspaceKey("ben", "chat")
    keys = [ben, *(WorkspaceKey("ada", name) for name in "abc")]
    for number, key in enumerate(keys):
        async with workspaces.acquire(key) as workspace:
            end_run(workspace, b"state")
            assert workspace.archive
            age(workspace.archive.path.parent.parent, 100 - number)

    async with workspaces.acquire(WorkspaceKey("ada", "c")):
        pass

    assert [workspaces.has_workspace(key) for key in keys] == [True, False, True, True]


async def test_oldest_workspace_over_the_limit_is_removed(tmp_path: Path) -> None:
    """First of a user who has too many, then of the one who has the most."""
    limits = SharedLimits(workspaces=3, workspaces_per_user=2)
    workspaces = StoredWorkspaces(tmp_path, limits, WorkspacePool())
    keys = [WorkspaceKey(user, str(number)) for number, user in enumerate("babaac")]
    for key in keys:
        async with workspaces.acquire(key):
            pass
        for folder in found(tmp_path, "*/*"):
            used = folder.stat().st_mtime
            os.utime(folder, (used, used - 10))

    kept = [key for key in keys if workspaces.has_workspace(key)]

    assert kept == [keys[2], keys[3], keys[4], keys[5]]


async def test_workspace_that_is_asked_for_is_not_counted_out(tmp_path: Path) -> None:
    """An administrator has lowered the limit, and it is the oldest of too many."""
    three, one = [SharedLimits(workspaces_per_user=most) for most in (3, 1)]
    many = StoredWorkspaces(tmp_path, three, WorkspacePool())
    keys = [WorkspaceKey("ada", str(number)) for number in range(3)]
    for number, key in enumerate(keys):
        async with many.acquire(key) as workspace:
            workspace.add_received("f-1")
        age(many._path_of(key), 10 * number)
    few = StoredWorkspaces(tmp_path, one, WorkspacePool())

    async with few.acquire(keys[2]) as workspace:
        assert list(workspace.received) == ["f-1"]
    assert not few.has_workspace(keys[1])
