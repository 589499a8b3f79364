"""The files of a call: those that it brings, those that it returns."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from owui_host.lookup import HostTooOld
from owui_sandbox import calls
from owui_sandbox.calls import (
    SandboxCall,
    give_files,
    read_sandbox_call,
    receive_attached,
)
from sandbox.workspaces import SandboxFile
from sandboxes.owned import OwnedTools
from sandboxes.pretended import Pretended, confined_answering
from stand_in.host import StandInHost, host_request

pytestmark = pytest.mark.asyncio


class Page:
    """The page of whoever asked: what it was told to show."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def emit(self, event: dict[str, Any]) -> None:
        self.events.append(event)

    @property
    def shown(self) -> list[str]:
        """The files that the message has then; the page replaces all by these."""
        for event in self.events:
            assert event["type"] == "chat:message:files"
        return [
            file["name"] for event in self.events for file in event["data"]["files"]
        ]


async def test_call_is_read_of_what_open_webui_gives() -> None:
    file = {"type": "file", "id": "f-1", "name": "a.txt"}
    others = [{"type": "note", "id": "n-1", "name": "b"}, {"type": "file", "id": "f-2"}]
    metadata = {"chat_id": "c", "message_id": "m", "files": [*others, file]}

    read = [
        read_sandbox_call({"id": "ada"}, metadata, None, None),
        read_sandbox_call({"id": "ada"}, {"files": None, "chat_id": None}, None, None),
        read_sandbox_call(None, None, None, None),
        read_sandbox_call(None, metadata, None, None),
    ]

    assert [(call.key, call.message_id, call.attached) for call in read] == [
        (("ada", "c"), "m", (("f-1", "a.txt"),)),
        (("ada", ""), "", ()),
        (("", ""), "", ()),
        (("", ""), "m", (("f-1", "a.txt"),)),
    ]


SAVED = {"chat_id": "chat-1", "message_id": "m-1"}
GIVEN: dict[str, tuple[str, dict[str, str], list[str], int, str]] = {
    "saved chat": ("user-1", SAVED, ["earlier.txt", "a.txt"], 1, "large.txt"),
    "not saved yet": (
        "user-1",
        {**SAVED, "message_id": "m-2"},
        ["a.txt"],
        1,
        "large.txt",
    ),
    "temporary": ("user-1", {**SAVED, "chat_id": "local:1"}, ["a.txt"], 0, "large.txt"),
    "chat of somebody else": ("user-2", SAVED, ["a.txt"], 0, "large.txt"),
    "channel": ("user-1", {"chat_id": "chat-1"}, ["a.txt"], 0, "large.txt"),
    "plain API call": ("user-1", {}, ["a.txt"], 0, "large.txt"),
    "nobody": ("no@body", SAVED, [], 0, "a.txt, large.txt"),
}
"""Who asks, from which message; the files that the page shows, links, what is not."""


@pytest.mark.parametrize("case", GIVEN.values(), ids=GIVEN)
async def test_files_are_stored_and_shown_below_the_answer(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    case: tuple[str, dict[str, str], list[str], int, str],
) -> None:
    """What the message already has stays; the model is told what is not shown."""
    user, metadata, shown, links, refused = case
    host = StandInHost(monkeypatch, tmp_path)
    message = {"files": [{"name": "earlier.txt"}]}
    host.chats.rows["chat-1"].chat["history"] = {"messages": {"m-1": message}}
    files = []
    for name, size in {"a.txt": 4, "large.txt": host.files.most_bytes + 1}.items():
        (tmp_path / name).write_bytes(b"x" * size)
        files.append(SandboxFile(name, "text/plain", tmp_path / name))
    page = Page()
    call = read_sandbox_call({"id": user}, metadata, host_request(), page.emit)

    assert await give_files(call, files) == [
        f"Open WebUI did not store {refused}, so the user does not see it."
    ]
    assert (page.shown, len(host.chats.links)) == (shown, links)
    assert await give_files(call, []) == []


@pytest.mark.parametrize(
    ("request_of", "has_page"), [(None, True), (host_request, False)]
)
async def test_call_without_a_page_is_told_that_files_are_not_shown(
    tmp_path: Path, request_of: Callable[[], Any] | None, has_page: bool
) -> None:
    page = Page()
    call = read_sandbox_call(
        {"id": "user-1"},
        SAVED,
        request_of and request_of(),
        page.emit if has_page else None,
    )
    file = SandboxFile("a.txt", "text/plain", tmp_path / "a.txt")

    assert await give_files(call, [file]) == [
        "There is no page that could show files to the user."
    ]


def with_file(user: str, file_id: str) -> SandboxCall:
    file = {"type": "file", "id": file_id, "name": "a.txt"}
    metadata = {**SAVED, "files": [file]}
    return read_sandbox_call({"id": user}, metadata, host_request(), Page().emit)


async def receive(call: SandboxCall) -> list[str]:
    """What the model is told of the files that are attached to a call."""
    answer = confined_answering({"text": "", "failed": False})
    sandbox = OwnedTools(make_backends=lambda _: [Pretended(answer)])
    told = await receive_attached(sandbox, call)
    await sandbox.close()
    return told


TOO_OLD = "This Open WebUI has no models.users.Users."
LOCKED = "Open WebUI reports a LookupError."
GONE = "Open WebUI reports a OSError."


@pytest.mark.parametrize(
    ("error", "not_read", "not_shown"),
    [
        (LookupError("SELECT secret"), f"It cannot be read: {LOCKED}", LOCKED),
        (HostTooOld(TOO_OLD), TOO_OLD, TOO_OLD),
        (OSError("secret"), f"It cannot be read: {GONE}", GONE),
    ],
    ids=["locked", "too old", "gone"],
)
async def test_database_that_is_away_costs_neither_run_nor_output(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    not_read: str,
    not_shown: str,
) -> None:
    """A model that reads of an exception would run the code again."""
    StandInHost(monkeypatch, tmp_path)

    async def lack(_: str) -> Any:
        raise error

    monkeypatch.setattr(calls, "user_model", lack)
    call = with_file("u", "f-1")
    file = SandboxFile("a.txt", "text/plain", tmp_path / "a.txt")

    assert await receive(call) == [f"a.txt is not in the workspace. {not_read}"]
    given = await give_files(call, [file])
    assert given == [f"The user does not see the files. {not_shown}"]


async def test_server_goes_on_while_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run may return ten files of 64 MB: no other answer waits for them."""
    StandInHost(monkeypatch, tmp_path)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    server_went_on = Event()
    told: list[bool] = []

    def write() -> None:
        told.append(server_went_on.wait(10))
        path.write_bytes(b"rain")

    Thread(target=write, daemon=True).start()
    page = Page()
    call = read_sandbox_call({"id": "user-1"}, {}, host_request(), page.emit)
    giving = asyncio.create_task(
        give_files(call, [SandboxFile("a.txt", "text/plain", path)])
    )
    for _ in range(10):
        await asyncio.sleep(0)
    server_went_on.set()

    assert await giving == []
    assert told == [True]
    assert page.shown == ["a.txt"]


async def test_file_that_is_known_to_be_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = StandInHost(monkeypatch, tmp_path)
    file_id = host.files.add(b"a", "a.txt", owner="u", size=2**40)

    [told] = await receive(with_file("u", file_id))

    assert "is larger than" in told
    assert host.files.threads == []


async def test_empty_file_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = StandInHost(monkeypatch, tmp_path)
    file_id = host.files.add(b"", "a.txt", owner="u")

    told = await receive(with_file("u", file_id))

    assert "cannot be read" not in str(told)


async def test_file_of_another_user_is_not_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = StandInHost(monkeypatch, tmp_path)
    file_id = host.files.add(b"a", "a.txt")

    told = await receive(with_file("user-2", file_id))

    assert told == ["a.txt is not in the workspace. It cannot be read."]
