"""What is kept of the chats, for how long, and what is removed."""

import asyncio
import os
import resource
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from event_loops.skipping_loop import run_skipping
from sandbox.backend import SharedLimits
from sandbox.runs import FileSlice, SandboxReply, WorkspaceArchive
from sandbox.workspaces import (
    SandboxClosed,
    SandboxFile,
    Workspace,
    WorkspaceKey,
    WorkspacePool,
    lock_folder,
    remove_folder,
)

LIMITS = SharedLimits(workspaces=3, workspaces_per_user=3, idle_seconds=60.0)
MAX_BYTES = 10


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def key_of(chat: str) -> WorkspaceKey:
    """Return the key of a chat, given as `user/chat` or as a chat of one user."""
    user, _, name = chat.rpartition("/")
    return WorkspaceKey(user, name)


async def keep(
    workspaces: WorkspacePool, chat: str, text: bytes
) -> tuple[SandboxFile, ...]:
    """Let a run of a chat end with a workspace, whose bytes are one file."""
    async with workspaces.acquire(key_of(chat)) as workspace:
        with workspace.open_spool() as spool:
            spool.write_bytes(b"answer\nmanifest\n" + text)
            files = workspace.export_files(
                spool, [FileSlice("dir/a.txt", 16, len(text))], MAX_BYTES
            )
            workspace.store_archive(spool, SandboxReply({}, 7))
            return files


async def kept(workspaces: WorkspacePool, chat: str) -> bytes | None:
    async with workspaces.acquire(key_of(chat)) as workspace:
        if workspace.archive is None:
            return None
        return workspace.archive.path.read_bytes()[workspace.archive.start :]


def run_scene(
    scene: Callable[[WorkspacePool], Awaitable[None]], limits: SharedLimits = LIMITS
) -> None:
    """Run a scene with workspaces that are closed at its end."""

    async def run() -> None:
        before = len(os.listdir("/proc/self/fd"))
        workspaces = WorkspacePool(limits)
        await scene(workspaces)
        await workspaces.close()
        assert len(os.listdir("/proc/self/fd")) == before

    run_skipping(run())


def test_last_workspace_is_kept(folder: Path) -> None:
    async def scene(workspaces: WorkspacePool) -> None:
        await keep(workspaces, "a", b"old")
        await keep(workspaces, "a", b"new")
        async with workspaces.acquire(key_of("a")) as workspace:
            with workspace.open_spool() as spool:
                spool.write_bytes(b"refused\n")
                workspace.store_archive(spool, SandboxReply({}, None))

        assert await kept(workspaces, "a") == b"manifest\nnew"
        assert len([text for text in contents(folder) if b"manifest" in text]) == 1
        assert b"refused\n" not in contents(folder)

    run_scene(scene)


def contents(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


def folders(folder: Path) -> int:
    return sum(path.is_dir() for path in folder.glob("*/*"))


def test_idle_workspaces_are_forgotten() -> None:
    async def scene(workspaces: WorkspacePool) -> None:
        await keep(workspaces, "a", b"a")
        await keep(workspaces, "b", b"b")
        await asyncio.sleep(40)
        assert await kept(workspaces, "b") == b"manifest\nb"
        await asyncio.sleep(40)

        assert [await kept(workspaces, chat) for chat in "ab"] == [None, b"manifest\nb"]

    run_scene(scene)


def test_lent_workspace_is_not_idle(folder: Path) -> None:
    """However long a run takes, or waits for another."""

    async def scene(workspaces: WorkspacePool) -> None:
        await keep(workspaces, "a", b"a")

        async def use() -> None:
            async with workspaces.acquire(key_of("a")):
                await asyncio.sleep(100)
                assert b"manifest\na" in b"".join(contents(folder))

        await asyncio.gather(use(), use())

    run_scene(scene)


def test_oldest_of_too_many_are_forgotten(folder: Path) -> None:
    """Not those that are lent; calls without a chat count as well."""

    async def scene(workspaces: WorkspacePool) -> None:
        async with workspaces.acquire(key_of("lent")):
            for chat in "abc":
                await keep(workspaces, chat, b"x")
            assert await kept(workspaces, "b") == b"manifest\nx"
            await keep(workspaces, "", b"x")

            assert folders(folder) == LIMITS.workspaces
            assert await kept(workspaces, "b") == b"manifest\nx"
            assert await kept(workspaces, "a") is None

    run_scene(scene)


@pytest.mark.parametrize(
    ("per_user", "chats", "gone"),
    [
        pytest.param(3, ["u/1", "u/2", "other/1", "u/3"], ["u/1"], id="of the server"),
        pytest.param(3, ["other/1", "u/1", "u/2", "u/3"], ["u/1"], id="of the most"),
        pytest.param(2, ["u/1", "u/2", "u/3"], ["u/1"], id="of a user"),
        pytest.param(3, ["a/1", "b/1", "c/1", "d/1"], ["a/1"], id="of equals"),
    ],
)
def test_user_with_the_most_loses_the_oldest(
    per_user: int, chats: list[str], gone: list[str]
) -> None:
    """Chats of one user cannot push out those of others, however old these are."""

    async def scene(workspaces: WorkspacePool) -> None:
        for chat in chats:
            await keep(workspaces, chat, b"x")

        lost = [chat for chat in chats if not workspaces.has_workspace(key_of(chat))]
        assert lost == gone

    run_scene(scene, LIMITS._replace(workspaces_per_user=per_user))


def test_files_that_were_handed_out_are_bounded() -> None:
    async def scene(workspaces: WorkspacePool) -> None:
        files = [(await keep(workspaces, "a", b"12345"))[0] for _ in range(3)]

        assert [file.path.exists() for file in files] == [False, True, True]
        assert files[2].path.read_bytes() == b"12345"
        await keep(workspaces, "a", b"1234567890")
        assert not files[2].path.exists()  # it takes the room of two

    run_scene(scene)


def test_closing_removes_everything(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        workspaces = WorkspacePool(LIMITS)
        await keep(workspaces, "a", b"a")
        async with workspaces.acquire(key_of("a")):
            waiting = asyncio.create_task(kept(workspaces, "a"))
            await asyncio.sleep(0)
            closing = asyncio.create_task(workspaces.close())
            await asyncio.sleep(1)
            assert not closing.done()
        await closing

        assert not workspaces.has_workspace(key_of("a"))
        for late in (waiting, kept(workspaces, "a")):
            with pytest.raises(SandboxClosed):
                await late
        remove_folder(folder / "gone")
        assert os.listdir(folder) == []
        await asyncio.sleep(LIMITS.idle_seconds)
        assert caplog.messages == []  # no timer is left

    run_skipping(scene())


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a.png", "a.png"),
        ("../../etc/passwd", "passwd"),
        ("dir/", "file"),
        ("a\u202egnp.exe", "a_gnp.exe"),
        ("\x00\n\ud800", "___"),
    ],
)
def test_names_are_only_for_people(tmp_path: Path, name: str, shown: str) -> None:
    """The path of the bytes has nothing of the name."""
    spool = tmp_path / "spool"
    spool.write_bytes(b"x")

    parts = [FileSlice(name, 0, 1)]
    [file] = Workspace(tmp_path).export_files(spool, parts, MAX_BYTES)

    assert file.name == shown
    assert file.path.name.isdigit()


async def opened() -> WorkspacePool:
    workspaces = WorkspacePool(LIMITS)
    await keep(workspaces, "a", b"a")
    return workspaces


async def open_and_close() -> None:
    await (await opened()).close()


def test_root_is_private(folder: Path) -> None:
    async def scene() -> None:
        workspaces = await opened()
        [root] = os.listdir(folder)
        assert os.stat(folder / root).st_mode & 0o077 == 0
        packages = await workspaces.install(folder)
        assert os.stat(folder / root).st_mode & 0o066 == 0
        for inner in packages.parent.iterdir():
            is_private = os.stat(inner).st_mode & 0o077 == 0
            assert is_private == (inner != packages)
        await workspaces.close()

    asyncio.run(scene())  # it waits for a thread


def test_foreign_files_are_not_swept(folder: Path) -> None:
    """A link, a file, a folder with another name, one in use."""

    async def scene() -> None:
        living = await opened()
        target = folder / "target"
        target.mkdir()
        (folder / "sandbox-workspaces-link").symlink_to(target)
        (folder / "sandbox-workspaces-file").touch()
        foreign = folder / "sandbox-workspaces-foreign"
        foreign.mkdir()
        if os.geteuid() == 0:
            os.chown(foreign, 12_345, 12_345)
        else:
            foreign.rmdir()
        before = set(os.listdir(folder))

        await open_and_close()

        assert set(os.listdir(folder)) == before
        await living.close()

    run_skipping(scene())


def test_abandoned_folder_is_swept(folder: Path) -> None:
    """A lock that no process holds says so."""
    left = folder / "sandbox-workspaces-left"
    left.mkdir()
    (left / "kept").touch()

    run_skipping(open_and_close())

    assert not left.exists()


def test_folder_that_another_server_sweeps_is_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was there when it was listed, and is gone when it is looked at."""
    gone = folder / "sandbox-workspaces-gone"
    monkeypatch.setattr(Path, "glob", lambda *_: iter([gone]))

    run_skipping(open_and_close())

    assert os.listdir(folder) == []


def test_files_without_bytes_are_bounded(tmp_path: Path) -> None:
    """They need no disk, so their number is the limit; so it is for what was received."""
    workspace = Workspace(tmp_path)
    spool = tmp_path / "spool"
    spool.touch()
    for number in range(1100):
        workspace.export_files(spool, [FileSlice("empty", 0, 0)], MAX_BYTES)
        workspace.add_received(f"file-{number}")

    assert len(workspace._files) == len(workspace.received) == 1000
    assert "file-1099" in workspace.received


@pytest.mark.parametrize("place", ["own", "of the caller"])
def test_only_an_archive_of_its_own_is_removed(tmp_path: Path, place: str) -> None:
    """Another one was stored by whoever keeps it, until they have the new one."""
    own = tmp_path / "own"
    kept = (own if place == "own" else tmp_path) / "archive"
    own.mkdir()
    kept.touch()
    workspace = Workspace(own)
    workspace.archive = WorkspaceArchive(kept, 3)

    workspace.clear()
    workspace.clear()

    assert workspace.archive is None
    assert kept.exists() == (place != "own")


def test_file_for_which_the_disk_has_no_room_leaves_nothing(tmp_path: Path) -> None:
    """Its beginning would stay on a full disk as long as the workspace."""
    spool = tmp_path / "spool"
    spool.write_bytes(bytes(2_000_000))
    folder = tmp_path / "chat"
    folder.mkdir()
    parts = [FileSlice("small", 0, 5), FileSlice("large", 5, 1_500_000)]
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            Workspace(folder).export_files(spool, parts, MAX_BYTES)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)

    assert [path.stat().st_size for path in folder.iterdir()] == [5]


def test_link_to_a_folder_is_not_locked(folder: Path) -> None:
    """In a folder of temporary files others could have made it."""
    (folder / "theirs").mkdir()
    (folder / "link").symlink_to(folder / "theirs")
    with pytest.raises(OSError):  # noqa: PT011 - the number depends on the system
        lock_folder(folder / "link")
