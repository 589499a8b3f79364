"""The agent's own tools as an answer gets them."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from subprocess import Popen, SubprocessError
from typing import Any

import pytest
import pytest_asyncio

from chats.pictures import PIXEL, PNG
from gpt5_agent.ports import Tool
from gpt5_agent.shell.host_files import HostFiles
from gpt5_agent.shell.log import AgentLog
from gpt5_agent.shell.own_tools import OwnToolOffer, OwnToolPool, open_host_files
from gpt5_agent.shell.valves import Valves, read_valve_settings
from gpt5_agent.tools.execution import OwnTools
from openai_responses.loop.tools import ToolResult
from sandbox.tools import SandboxResult
from sandbox.workspaces import SandboxFile, WorkspaceKey

pytestmark = pytest.mark.asyncio

NO_FILES = HostFiles("", "")


class LendingPool(OwnToolPool):
    """A pool with answers that end after the test."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = AsyncExitStack()


@pytest_asyncio.fixture
async def pool() -> AsyncIterator[LendingPool]:
    """A pool that is closed after the test."""
    made = LendingPool()
    async with made.answers:
        yield made
    await made.close()


KEY = WorkspaceKey("u-1", "c-1")


async def offered(
    pool: LendingPool,
    key: WorkspaceKey = KEY,
    messages: Sequence[Mapping[str, Any]] = (),
    **valves: Any,
) -> OwnToolOffer:
    """What an answer in a chat is offered."""
    log = AgentLog("ID")
    settings = read_valve_settings(Valves(**valves))
    lent = pool.lend_tools(settings, key, log, NO_FILES, messages)
    return await pool.answers.enter_async_context(lent)


async def opened(
    pool: LendingPool, key: WorkspaceKey = KEY, **valves: Any
) -> tuple[Tool, ...]:
    return (await offered(pool, key, **valves)).tools


async def ran(tools: tuple[Tool, ...], name: str, **arguments: Any) -> ToolResult:
    return await OwnTools(tools, None).call(name, arguments)


async def test_sandbox_that_cannot_start_is_not_offered(
    pool: LendingPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise SubprocessError("no child today")

    monkeypatch.setattr(Popen, "__init__", refuse)

    offer = await offered(pool, SANDBOX=True)

    assert offer.tools == ()
    [line] = caplog.messages
    [problem] = offer.problems
    assert "tools of the sandbox are not offered: SubprocessError" in problem
    assert problem in line


@pytest.mark.sandbox
async def test_sandbox_that_shows_the_valves_is_not_offered(
    pool: LendingPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are files of the server: in this folder, each interpreter could read them."""
    monkeypatch.setenv("PIPELINES_DIR", "/usr/lib")

    offer = await offered(pool, SANDBOX=True)

    assert offer.tools == ()
    [problem] = offer.problems
    assert "code in it could read PIPELINES_DIR of the server" in problem


@pytest.mark.sandbox
async def test_folder_of_wheels_that_is_not_there_is_named(
    pool: LendingPool, tmp_path: Path
) -> None:
    wheels = tmp_path / "wheels"

    offer = await offered(
        pool, SANDBOX=True, SANDBOX_OPTIONS=f'{{"wheels": " {wheels} "}}'
    )

    [problem] = offer.problems
    assert problem.endswith(f"No such file or directory: '{wheels}'")
    assert offer.tools


@pytest.mark.sandbox
async def test_files_of_a_run_are_shown(pool: LendingPool) -> None:
    """A picture goes to the page, a short text into a note; the chat keeps both."""
    code = (
        f"_ = open('a.png', 'wb').write({PNG!r})\n"
        "_ = open('a.txt', 'w').write('hello')\n6 * 7"
    )

    first = await opened(pool, KEY, SANDBOX=True)
    answer = await ran(first, "python_execute", code=code)
    later = await opened(pool, KEY, SANDBOX=True)
    kept = await ran(later, "sandbox_fs_read", path="a.txt")
    elsewhere = await opened(pool, WorkspaceKey("u-2", "c-1"), SANDBOX=True)
    others = await ran(elsewhere, "sandbox_fs_read", path="a.txt")

    assert not answer.failed
    assert '"result": 42' in str(answer.output)
    assert answer.card["images"] == [PIXEL]
    [note] = answer.card["notes"]
    assert note.startswith("a.txt could not be stored as a file")
    assert note.endswith("```\nhello\n```")
    assert kept == ToolResult("hello")
    assert others.failed


CALLED: Sequence[Mapping[str, Any]] = [
    {"role": "user", "content": "plot it"},
    {
        "role": "assistant",
        "tool_calls": [{"id": "call_1", "function": {"name": "python_execute"}}],
    },
]
LOST = "The workspace was emptied since the last call"


@pytest.mark.sandbox
async def test_workspace_outlives_a_change_of_the_limits(pool: LendingPool) -> None:
    """The chat has its files in the next answer, under the new limits (R36)."""
    tools = await opened(pool, SANDBOX=True)
    await ran(tools, "sandbox_fs_write", path="a.txt", content="hello")

    options = '{"seconds": 1}'
    later = await offered(pool, messages=CALLED, SANDBOX=True, SANDBOX_OPTIONS=options)

    kept = await ran(later.tools, "sandbox_fs_read", path="a.txt")
    assert kept == ToolResult("hello")
    ended = await ran(later.tools, "python_execute", code="while True: pass")
    assert "within 1 s" in str(ended.output)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("messages", "is_told"),
    [
        pytest.param(CALLED, True, id="earlier calls"),
        pytest.param(CALLED[:1], False, id="new chat"),
        pytest.param(["no message"], False, id="refused later"),
    ],
)
async def test_model_is_told_once_that_the_workspace_is_gone(
    pool: LendingPool, messages: Sequence[Any], is_told: bool
) -> None:
    """After a restart: the chat shows calls, and the server has nothing of them."""
    tools = (await offered(pool, messages=messages, SANDBOX=True)).tools

    first = await ran(tools, "sandbox_fs_read", path="a.txt")
    second = await ran(tools, "sandbox_fs_read", path="a.txt")

    assert first.failed
    assert (LOST in str(first.output)) is is_told
    assert LOST not in str(second.output)


async def test_why_there_is_no_sandbox_is_told_once(
    pool: LendingPool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the log; each answer has it for administrators, and nothing is tried again."""
    monkeypatch.setenv("PATH", "/nowhere")

    offers = [await offered(pool, SANDBOX=True) for _ in range(2)]

    [line] = [line for line in caplog.messages if "not offered" in line]
    for offer in offers:
        assert offer.tools == ()
        [problem] = offer.problems
        assert "bwrap is not installed" in problem
        assert problem in line


class WritingSandbox:
    """Stands for the sandbox where its files have to be large."""

    files: tuple[SandboxFile, ...] = ()

    problems = ()

    def __init__(self, *_: object, **__: object) -> None: ...

    async def specs(self) -> list[dict[str, Any]]:
        return [{"name": "python_execute", "description": "", "parameters": {}}]

    async def receive(self, _key: WorkspaceKey, _files: object) -> list[str]:
        """Miss none of the files of a chat that has none."""
        return []

    async def call(
        self, _key: WorkspaceKey, _name: str, _args: object
    ) -> SandboxResult:
        return SandboxResult("written", files=self.files)

    async def close(self) -> None:
        """Have nothing to close."""


async def test_files_beyond_5_mb_are_named_alone(
    pool: LendingPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
    assert "gone.bin is not shown: later calls have removed it." in str(answer.output)


@pytest.mark.parametrize("key", ["env:NO_SUCH_KEY", "env:OWN_KEY"])
async def test_key_for_files_is_hidden_and_costs_no_answer(
    key: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that cannot be read is none; only a file is missing then."""
    monkeypatch.setenv("OWN_KEY", "Bearer key-of-an-account")
    log = AgentLog("ID")
    valves = Valves(OPEN_WEBUI_API_KEY=key)

    files = open_host_files(valves, "u-1", (), log)
    log.warn("key-of-an-account")

    assert "set OPEN_WEBUI_URL" in str(await files.read("f-1"))
    assert ("[redacted]" in caplog.text) is (key == "env:OWN_KEY")


@pytest.mark.sandbox
async def test_an_answer_keeps_its_sandbox(pool: LendingPool) -> None:
    """However often an administrator changes the limits while it runs."""

    async def opened_with(seconds: int) -> tuple[Tool, ...]:
        options = f'{{"seconds": {seconds}}}'
        return await opened(pool, KEY, SANDBOX=True, SANDBOX_OPTIONS=options)

    under_way = await opened_with(11)
    for seconds in (12, 13, 14, 15, 16):
        await opened_with(seconds)

    answer = await ran(under_way, "python_execute", code="6 * 7")

    assert json.loads(str(answer.output))["result"] == 42
