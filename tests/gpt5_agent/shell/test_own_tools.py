"""The agent's own tools as an answer gets them: of servers, of a sandbox."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import Popen, SubprocessError
from typing import Any

import pytest
import pytest_asyncio

from gpt5_agent.ports import Tool
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import (
    OwnToolPool,
    read_server_settings,
)
from gpt5_agent.shell.valves import Valves
from gpt5_agent.tools.execution import OwnTools
from mcp_fake import TOOL, FakeMcp, result
from openai_responses.errors import InvalidRequest
from openai_responses.loop.tools import ToolResult
from picture_sample import PIXEL, PNG
from toolbox.host_files import HostFiles
from toolbox.sandbox.tools import SandboxResult
from toolbox.sandbox.workspaces import SandboxFile
from upstream import Upstream, free_port

pytestmark = pytest.mark.asyncio

TOKEN = "token-of-a-server"
NO_FILES = HostFiles("", "")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the server's pipelines."""
    monkeypatch.setenv("PIPELINES_DIR", str(tmp_path))
    return tmp_path


@pytest_asyncio.fixture
async def bench() -> AsyncIterator[OwnToolPool]:
    """A workbench that is closed after the test."""
    made = OwnToolPool()
    yield made
    await made.close()


def mcp(url: str, label: str = "clocks", **more: Any) -> str:
    """The valve for one MCP server."""
    return json.dumps([{"server_label": label, "server_url": url, **more}])


async def ran(tools: tuple[Tool, ...], name: str, **arguments: Any) -> ToolResult:
    """What the agent gets of a call."""
    return await OwnTools(tools, None).call(name, arguments)


async def test_what_cannot_be_started_is_not_offered(
    bench: OwnToolPool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Neither a sandbox nor a program; the log says so, and the answer goes on."""

    def refuse(*_: object, **__: object) -> None:
        raise SubprocessError("no child today")

    monkeypatch.setattr(Popen, "__init__", refuse)
    program = [{"server_label": "eyes", "command": ["eyes"]}]
    valves = Valves(
        SANDBOX=True, ALLOW_STDIO=True, MCP_SERVERS_JSON=json.dumps(program)
    )

    async with bench.open_tools(valves, "chat", AgentLog("ID"), NO_FILES) as tools:
        assert tools == ()

    sandbox, server = caplog.messages
    assert "tools of the sandbox are not offered: SubprocessError" in sandbox
    assert "The server eyes: SubprocessError" in server


# ------------------------------------------------------------------------ other servers


async def test_tool_of_a_server_is_one_of_ours(
    bench: OwnToolPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Its token is sealed in the valve, whole on the way, and in no line of the log."""
    fake = FakeMcp()
    async with Upstream(fake.answer) as server:
        valve = mcp(server.base_url, authorization=TOKEN)
        valves = Valves(MCP_SERVERS_JSON=valve)
        log = AgentLog("ID")
        async with bench.open_tools(valves, "chat", log, NO_FILES) as tools:
            answer = await ran(tools, "clocks_look")
        log.warn(f"({TOKEN})")
        sent = {one.headers.get("Authorization") for one in server.requests}

    assert TOKEN not in valves.MCP_SERVERS_JSON
    assert answer == ToolResult("Seen.")
    assert sent == {f"Bearer {TOKEN}"}
    assert caplog.messages == ["ID ([redacted])"]


async def test_server_is_asked_once_for_what_it_offers(bench: OwnToolPool) -> None:
    """Not in every round; its sessions are not shared."""
    fake = FakeMcp()
    async with Upstream(fake.answer) as server:
        valves = Valves(MCP_SERVERS_JSON=mcp(server.base_url))
        for _ in range(2):
            async with bench.open_tools(
                valves, "chat", AgentLog("ID"), NO_FILES
            ) as tools:
                await ran(tools, "clocks_look")

    assert fake.methods().count("tools/list") == 1
    assert fake.methods().count("initialize") == 2


async def test_what_is_wrong_with_a_server_is_logged(
    bench: OwnToolPool, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer goes on without it, and no token is told."""
    down = f"http://127.0.0.1:{free_port()}/"
    rows = [
        {"server_label": "down", "server_url": down, "authorization": TOKEN},
        {"server_label": "program", "command": ["true"]},
        {"server_label": "gone", "server_url": down, "authorization": "env:NO_SUCH"},
    ]
    valves = Valves(MCP_SERVERS_JSON=json.dumps(rows))

    async with bench.open_tools(valves, "chat", AgentLog("ID"), NO_FILES) as tools:
        assert tools == ()

    told = "\n".join(caplog.messages)
    assert "The MCP server down cannot be reached" in told
    assert "program is left out, because it starts a program" in told
    assert "gone is left out, because a secret" in told
    assert TOKEN not in told


async def test_secret_that_cannot_be_read_is_told(bench: OwnToolPool) -> None:
    """Of a valve that is one reference, by a sentence with its name."""
    valves = Valves(OPENAPI_SERVERS_JSON="env:NO_SUCH_VARIABLE")

    with pytest.raises(InvalidRequest, match="OPENAPI_SERVERS_JSON"):
        async with bench.open_tools(valves, "chat", AgentLog("ID"), NO_FILES):
            pass


async def test_programs_are_started_only_where_that_is_allowed() -> None:
    """Whoever reaches the Pipelines server can write its valves."""
    row = json.dumps({"server_label": "a", "command": ["true"]})

    entries = [
        read_server_settings(row, "", allows_programs=allowed).read_entries()[0]
        for allowed in (False, True)
    ]

    assert [len(found.entries) for found in entries] == [0, 1]


# --------------------------------------------------------------------------- the sandbox


async def test_without_the_valve_there_is_no_sandbox(bench: OwnToolPool) -> None:
    """Off by default."""
    async with bench.open_tools(Valves(), "chat", AgentLog("ID"), NO_FILES) as tools:
        assert tools == ()


@pytest.mark.sandbox
async def test_files_of_a_run_are_shown(bench: OwnToolPool) -> None:
    """A picture goes to the page, a short text into a note; the chat keeps both."""
    valves = Valves(SANDBOX=True)
    code = (
        f"_ = open('a.png', 'wb').write({PNG!r})\n"
        "_ = open('a.txt', 'w').write('hello')\n6 * 7"
    )

    async with bench.open_tools(valves, "u-1/c-1", AgentLog("ID"), NO_FILES) as tools:
        answer = await ran(tools, "python_execute", code=code)
    async with bench.open_tools(valves, "u-1/c-1", AgentLog("ID"), NO_FILES) as tools:
        kept = await ran(tools, "sandbox_fs_read", path="a.txt")
    async with bench.open_tools(valves, "u-2/c-1", AgentLog("ID"), NO_FILES) as tools:
        others = await ran(tools, "sandbox_fs_read", path="a.txt")

    assert not answer.failed
    assert '"result": 42' in str(answer.output)
    assert answer.card["images"] == [PIXEL]
    [note] = answer.card["notes"]
    assert note.startswith("a.txt could not be stored as a file")
    assert note.endswith("```\nhello\n```")
    assert kept == ToolResult("hello")
    assert others.failed


async def test_why_there_is_no_sandbox_is_told_once(
    bench: OwnToolPool,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the log; nothing is offered, and nothing is tried again."""
    monkeypatch.setenv("PATH", "/nowhere")

    for _ in range(2):
        async with bench.open_tools(
            Valves(SANDBOX=True), "chat", AgentLog("ID"), NO_FILES
        ) as tools:
            assert tools == ()

    [line] = [one for one in caplog.messages if "not offered" in one]
    assert "bwrap is not installed" in line


@pytest.mark.sandbox
async def test_tool_of_a_server_does_not_stand_for_one_of_the_sandbox(
    bench: OwnToolPool,
) -> None:
    """The API would refuse two tools of one name."""
    named = {**TOOL, "name": "execute"}
    fake = FakeMcp({"tools/list": result({"tools": [named, TOOL]})})
    async with Upstream(fake.answer) as server:
        valve = mcp(server.base_url, label="python")
        valves = Valves(MCP_SERVERS_JSON=valve, SANDBOX=True)
        async with bench.open_tools(valves, "chat", AgentLog("ID"), NO_FILES) as tools:
            names = [tool.name for tool in tools]
            mine = [tool for tool in tools if tool.name == "python_execute"]

    assert len(names) == len(set(names))
    assert "python_look" in names
    assert len(mine) == 1
    assert mine[0].description != TOOL["description"]


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
    bench: OwnToolPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    async with bench.open_tools(
        Valves(SANDBOX=True), "chat", AgentLog("ID"), NO_FILES
    ) as tools:
        answer = await ran(tools, "python_execute")

    notes = answer.card["notes"]
    assert [note.partition(" ")[0] for note in notes] == ["a.bin", "c.bin"]
    assert notes[1].endswith("x" * 1000 + "\n```")
    assert "b.bin is not shown" in str(answer.output)
    assert "gone.bin is not shown" in str(answer.output)
