"""The files of a call: those that it brings, those that it returns."""

import asyncio
import os
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from owui_sandbox.calls import give_files, read_sandbox_call
from sandbox.workspaces import SandboxFile
from stand_in.host import StandInHost, host_request


@pytest.mark.asyncio
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
    events: list[dict[str, Any]] = []

    async def emit(event: dict[str, Any]) -> None:
        events.append(event)

    call = read_sandbox_call({"id": "user-1"}, {}, host_request(), emit)
    giving = asyncio.create_task(
        give_files(call, [SandboxFile("a.txt", "text/plain", path)])
    )
    for _ in range(10):
        await asyncio.sleep(0)
    server_went_on.set()

    assert await giving == []
    assert told == [True]
    [shown] = events
    assert shown["data"]["files"][0]["name"] == "a.txt"
