"""The agent's own tools as an answer gets them."""

from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import Popen, SubprocessError
from typing import Any

import pytest
import pytest_asyncio

from chats.pictures import PIXEL, PNG
from gpt5_agent.ports import Tool
from gpt5_agent.shell.host_files import HostFiles
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import OwnToolPool, open_host_files
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.execution import OwnTools
from openai_responses.loop.tools import ToolResult
from toolbox.sandbox.tools import SandboxResult
from toolbox.sandbox.workspaces import SandboxFile

pytestmark = pytest.mark.asyncio

NO_FILES = HostFiles("", "")


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[OwnToolPool]:
    """A pool that is closed after the test."""
    made = OwnToolPool()
    yield made
    await made.close()


async def opened(
    pool: OwnToolPool, chat: str = "chat", **valves: Any
) -> tuple[Tool, ...]:
    """The tools of an answer in a chat."""
    return await pool.open_tools(Valves(**valves), chat, AgentLog("ID"), NO_FILES)


async def ran(tools: tuple[Tool, ...], name: str, **arguments: Any) -> ToolResult:
    """What the agent gets of a call."""
    return await OwnTools(tools, None).call(name, arguments)


async def test_what_cannot_be_started_is_not_offered(
    pool: OwnToolPool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The log says so, and the answer goes on."""

    def refuse(*_: object, **__: object) -> None:
        raise SubprocessError("no child today")

    monkeypatch.setattr(Popen, "__init__", refuse)

    assert await opened(pool, SANDBOX=True) == ()
    [line] = caplog.messages
    assert "tools of the sandbox are not offered: SubprocessError" in line


async def test_without_the_valve_there_is_no_sandbox(pool: OwnToolPool) -> None:
    """Off by default."""
    assert await opened(pool) == ()


@pytest.mark.sandbox
async def test_files_of_a_run_are_shown(pool: OwnToolPool) -> None:
    """A picture goes to the page, a short text into a note; the chat keeps both."""
    code = (
        f"_ = open('a.png', 'wb').write({PNG!r})\n"
        "_ = open('a.txt', 'w').write('hello')\n6 * 7"
    )

    first = await opened(pool, "u-1/c-1", SANDBOX=True)
    answer = await ran(first, "python_execute", code=code)
    later = await opened(pool, "u-1/c-1", SANDBOX=True)
    kept = await ran(later, "sandbox_fs_read", path="a.txt")
    elsewhere = await opened(pool, "u-2/c-1", SANDBOX=True)
    others = await ran(elsewhere, "sandbox_fs_read", path="a.txt")

    assert not answer.failed
    assert '"result": 42' in str(answer.output)
    assert answer.card["images"] == [PIXEL]
    [note] = answer.card["notes"]
    assert note.startswith("a.txt could not be stored as a file")
    assert note.endswith("```\nhello\n```")
    assert kept == ToolResult("hello")
    assert others.failed


async def test_why_there_is_no_sandbox_is_told_once(
    pool: OwnToolPool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the log; nothing is offered, and nothing is tried again."""
    monkeypatch.setenv("PATH", "/nowhere")

    for _ in range(2):
        assert await opened(pool, SANDBOX=True) == ()

    [line] = [line for line in caplog.messages if "not offered" in line]
    assert "bwrap is not installed" in line


class WritingSandbox:
    """Stands for the sandbox where its files have to be large."""

    files: tuple[SandboxFile, ...] = ()

    def __init__(self, *_: object) -> None: ...

    async def specs(self) -> list[dict[str, Any]]:
        """Offer one tool."""
        return [{"name": "python_execute", "description": "", "parameters": {}}]

    async def call(self, _chat: str, _name: str, _args: object) -> SandboxResult:
        """Hand out the files."""
        return SandboxResult("written", files=self.files)

    async def close(self) -> None:
        """Have nothing to close."""


async def test_files_beyond_5_mb_are_named_alone(
    pool: OwnToolPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host keeps what is shown in the chat; one that is gone is not read."""
    monkeypatch.setattr("gpt5_agent.shell.own_tools.SandboxTools", WritingSandbox)
    sizes = {"a.bin": 3_000_000, "b.bin": 3_000_000, "c.bin": 1000}
    for name, size in sizes.items():
        (tmp_path / name).write_bytes(b"x" * size)
    names = [*sizes, "gone.bin"]
    kind = "application/octet-stream"
    files = tuple(SandboxFile(name, kind, tmp_path / name) for name in names)
    monkeypatch.setattr(WritingSandbox, "files", files)

    tools = await opened(pool, SANDBOX=True)
    answer = await ran(tools, "python_execute")

    notes = answer.card["notes"]
    assert [note.partition(" ")[0] for note in notes] == ["a.bin", "c.bin"]
    assert notes[1].endswith("x" * 1000 + "\n```")
    assert "b.bin is not shown" in str(answer.output)
    assert "gone.bin is not shown" in str(answer.output)


@pytest.mark.parametrize("key", ["env:NO_SUCH_KEY", "env:OWN_KEY"])
async def test_key_for_files_is_hidden_and_costs_no_answer(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that cannot be read is none; only a file is missing then."""
    monkeypatch.setenv("OWN_KEY", "key-of-an-account")
    log = AgentLog("ID")
    valves = Valves(OPEN_WEBUI_API_KEY=key)

    files = open_host_files(valves, "u-1", (), log)
    log.warn("key-of-an-account")

    assert "set OPEN_WEBUI_URL" in str(await files.read("f-1"))
    assert ("[redacted]" in caplog.text) is (key == "env:OWN_KEY")
