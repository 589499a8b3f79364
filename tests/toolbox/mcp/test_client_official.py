"""Our client against the official server, over both of its ways."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from mcp_official import NAMES, PIXEL, OverHttp, official_http
from toolbox.remote_tools import RemoteTool
from toolbox.server_entries import ToolServerSettings
from toolbox.tool_servers import ToolServers
from upstream import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

PROGRAM = Path(__file__).parents[2] / "mcp_official.py"


def over_http(official: OverHttp) -> ToolServerSettings:
    """The server as an administrator names it."""
    entry = {"server_label": "web", "server_url": official.url}
    return ToolServerSettings(mcp=json.dumps(entry))


def over_stdio(notes: Path) -> ToolServerSettings:
    """The same as a program."""
    command = [sys.executable, str(PROGRAM)]
    entry = {"server_label": "web", "command": command, "env": {"NOTES": str(notes)}}
    return ToolServerSettings(mcp=json.dumps([entry]), allows_programs=True)


@asynccontextmanager
async def lent(named: ToolServerSettings) -> AsyncIterator[dict[str, RemoteTool]]:
    """The tools of one run by their own names; at its end all is closed."""
    servers = ToolServers()
    try:
        async with servers.open_tools(named) as found:
            assert found.problems == ()
            yield {tool.name.removeprefix("web_"): tool for tool in found.tools}
    finally:
        await servers.close()


@asynccontextmanager
async def way(kind: str, notes: Path) -> AsyncIterator[ToolServerSettings]:
    """The server over one of its ways."""
    if kind == "stdio":
        yield over_stdio(notes)
        return
    async with official_http(
        json_response=kind == "json", stateless=kind == "stateless"
    ) as official:
        yield over_http(official)


@pytest.mark.parametrize("kind", ["stream", "json", "stateless", "stdio"])
async def test_tools_are_listed_over_all_pages_and_run(
    kind: str, tmp_path: Path
) -> None:
    """Texts, pictures, failures and refusals come back in MCP's own form."""
    async with way(kind, tmp_path / "notes") as named, lent(named) as tools:
        assert tuple(tools) == NAMES
        assert tools["weather"].description == "Does weather."
        assert tools["weather"].args["required"] == ["city"]

        weather = await tools["weather"].execute({"city": "Bern"})
        picture = await tools["picture"].execute({"city": "Bern"})
        broken = await tools["broken"].execute({"city": "Bern"})
        refused = await tools["refused"].execute({"city": "Secret"})

    assert weather == {
        "isError": False,
        "content": [{"type": "text", "text": "Rain in Bern."}],
    }
    [image] = picture["content"]
    assert (image["type"], image["data"], image["mimeType"]) == (
        "image",
        PIXEL,
        "image/png",
    )
    assert broken["isError"]
    assert broken["content"][0]["text"] == "The barometer fell down."
    assert refused == {
        "isError": True,
        "content": [{"type": "text", "text": "There is no city of Secret."}],
    }


@pytest.mark.parametrize("kind", ["stream", "stdio"])
async def test_what_the_server_asks_is_refused_while_it_works(
    kind: str, tmp_path: Path
) -> None:
    """A question to a person, in the middle of a call, gets an answer at once."""
    async with way(kind, tmp_path / "notes") as named, lent(named) as tools:
        asked = await tools["ask"].execute({"city": ""})

    assert asked["content"][0]["text"] == "It said: Method not found"


async def test_session_is_named_from_the_handshake_to_its_end() -> None:
    """Each request after the first has the session and the version; a DELETE is last."""
    async with official_http() as official, lent(over_http(official)) as tools:
        await tools["weather"].execute({"city": "Bern"})
    (_, first), *others = official.requests

    assert "mcp-session-id" not in first
    assert "mcp-protocol-version" not in first
    assert len(official.sessions) == 1
    for _, headers in others:
        assert headers["mcp-session-id"] == official.sessions[0]
        assert headers["mcp-protocol-version"] == "2025-06-18"
    assert [method for method, _ in others].index("DELETE") == len(others) - 1


async def test_expired_session_is_begun_anew_once() -> None:
    """The call is made in another session, because nothing of it was done before."""
    async with official_http() as official, lent(over_http(official)) as tools:
        await tools["weather"].execute({"city": "Bern"})
        [session] = official.sessions
        await delete_session(official.url, session)

        answers = await asyncio.gather(
            tools["weather"].execute({"city": "Rome"}),
            tools["weather"].execute({"city": "Oslo"}),
        )

    texts = [answer["content"][0]["text"] for answer in answers]
    assert texts == ["Rain in Rome.", "Rain in Oslo."]
    assert len(official.sessions) == 2
    assert official.noted.count("call weather Rome") == 1


async def delete_session(url: str, session: str) -> None:
    """Let the server forget a session."""
    headers = {"Mcp-Session-Id": session}
    async with (
        aiohttp.ClientSession() as client,
        client.delete(url, headers=headers) as answer,
    ):
        assert answer.status == 200


async def test_stopped_call_is_called_back() -> None:
    """The server is told, so that it does not go on for nobody."""
    async with official_http() as official, lent(over_http(official)) as tools:
        call = asyncio.create_task(tools["wait"].execute({"city": ""}))
        await official.official.waiting.wait()

        call.cancel()

        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: "cancelled" in official.noted)


async def test_program_is_told_of_a_stopped_call_and_ends_with_the_run(
    tmp_path: Path,
) -> None:
    """It hears that nobody waits, then that its stdin is closed."""
    notes = tmp_path / "notes"
    async with lent(over_stdio(notes)) as tools:
        call = asyncio.create_task(tools["wait"].execute({"city": ""}))
        await until(lambda: "call wait" in notes.read_text("utf-8"))
        call.cancel()
        await until(lambda: "cancelled" in notes.read_text("utf-8"))

    assert notes.read_text("utf-8").splitlines()[-2:] == ["cancelled", "ended"]


async def test_program_sees_nothing_of_our_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what a program needs to be found, with what its entry says."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-1")
    async with lent(over_stdio(tmp_path / "notes")) as tools:
        told = await tools["env"].execute({"city": ""})

    names = set(told["content"][0]["text"].split())
    assert names <= {"PATH", "HOME", "LANG", "NOTES", "LC_CTYPE"}
    assert {"PATH", "NOTES"} <= names
    assert "OPENAI_API_KEY" in os.environ


async def test_tools_are_remembered_and_a_session_is_begun_for_a_call_alone() -> None:
    """A run that calls nothing asks nobody; the next lists anew once time is up."""
    now = [0.0]
    servers = ToolServers(now=lambda: now[0])
    async with official_http() as official:
        named = over_http(official)
        async with servers.open_tools(named) as first:
            pass
        await servers.close()
        asked = len(official.requests)

        async with servers.open_tools(named) as second:
            assert len(official.requests) == asked
            await second.tools[0].execute({"city": "Bern"})
        await servers.close()
        assert len(official.sessions) == 2
        assert official.noted.count("list 0") == 1

        now[0] = 301.0
        async with servers.open_tools(named):
            pass
        await servers.close()

    assert [tool.name for tool in first.tools] == [tool.name for tool in second.tools]
    assert official.noted.count("list 0") == 2


async def test_server_leaves_nothing_in_the_loop(tmp_path: Path) -> None:
    """What looked for signals twice a second would do so beside all later tests."""
    before = asyncio.all_tasks()

    async with way("stream", tmp_path / "notes") as named, lent(named) as tools:
        await tools["weather"].execute({"city": "Bern"})

    await until(lambda: asyncio.all_tasks() <= before)
