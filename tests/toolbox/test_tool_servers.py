"""The tools of several servers, lent to one run after another."""

import asyncio
import json

import pytest
from aiohttp import web

from mcp_fake import OPENED, TOOL, FakeMcp, result
from toolbox.server_entries import ToolServerSettings
from toolbox.tool_servers import ToolServers
from upstream import Upstream, free_port, silence

pytestmark = pytest.mark.asyncio(loop_scope="session")

DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {"/look": {"get": {"operationId": "look", "responses": {}}}},
}


async def document(_: web.Request) -> web.Response:
    """The document, whatever is asked."""
    return web.json_response(DOCUMENT)


def named(
    mcp: dict[str, str], openapi: dict[str, str] | None = None
) -> ToolServerSettings:
    """Servers by their labels."""
    first, second = (
        json.dumps([{"server_label": name, "server_url": url} for name, url in row])
        for row in (mcp.items(), (openapi or {}).items())
    )
    return ToolServerSettings(first, second)


async def test_tools_of_all_servers_have_names_of_their_own() -> None:
    """What is broken costs a sentence; the others go on."""
    good = FakeMcp()
    down = f"http://127.0.0.1:{free_port()}/"
    servers = ToolServers()
    async with Upstream(good.answer) as mcp, Upstream(document) as openapi:
        wanted = named(
            {"a": mcp.base_url, "b": mcp.base_url, "down": down, "b d": down},
            {"a": openapi.base_url},
        )
        async with servers.open_tools(wanted) as lent:
            names = [tool.name for tool in lent.tools]
            seen = await lent.tools[1].execute({})
        await servers.close()

    assert names == ["a_look", "b_look", "a_look_2"]
    assert seen["content"][0]["text"] == "Seen."
    assert len(lent.problems) == 2
    assert "server 4 is left out" in lent.problems[0]
    assert "The MCP server down cannot be reached" in lent.problems[1]


async def test_tools_that_are_too_large_are_a_problem_for_administrators() -> None:
    """They are named in one sentence; the others go on."""
    evil = {"name": "evil", "inputSchema": {"description": "x" * 60_000}}
    fake = FakeMcp({"tools/list": result({"tools": [evil, TOOL]})})
    servers = ToolServers()
    async with Upstream(fake.answer) as mcp:
        async with servers.open_tools(named({"a": mcp.base_url})) as lent:
            names = [tool.name for tool in lent.tools]
        await servers.close()

    assert names == ["a_look"]
    [problem] = lent.problems
    assert problem.startswith("The server a has tools with schemas that are too large")
    assert "'evil' (1 in all)" in problem


async def test_server_that_failed_is_left_in_peace_for_a_while() -> None:
    """It would hold up every chat; half a minute later it is asked again."""
    now = [0.0]
    servers = ToolServers(now=lambda: now[0])
    fake = FakeMcp({"tools/list": result({"tools": None})})
    fake.replies["initialize"] = lambda _: web.Response(status=500)
    async with Upstream(fake.answer) as mcp:
        for moment, complaints in ((0.0, 1), (29.0, 1), (31.0, 0)):
            now[0] = moment
            async with servers.open_tools(named({"a": mcp.base_url})) as lent:
                assert len(lent.problems) == complaints
            fake.replies["initialize"] = result(OPENED)
        await servers.close()

    assert fake.methods().count("initialize") == 2


async def test_other_keys_are_another_server() -> None:
    """What one key may see must not be shown to another."""
    fake = FakeMcp()
    servers = ToolServers()
    async with Upstream(fake.answer) as mcp:
        for key in ("one", "two", "one"):
            row = {"server_label": "a", "server_url": mcp.base_url}
            wanted = ToolServerSettings(json.dumps({**row, "authorization": key}))
            async with servers.open_tools(wanted):
                pass
        await servers.close()

    assert fake.methods().count("tools/list") == 2


async def test_stopped_run_ends_its_sessions_without_waiting() -> None:
    """The servers are told after it is gone."""
    fake = FakeMcp({"initialize": result(OPENED, Mcp_Session_Id="s-1")})
    called = asyncio.Event()
    servers = ToolServers()

    async def answer(request: web.Request) -> web.StreamResponse:
        is_call = b"tools/call" in await request.read()
        if is_call:
            called.set()
        return await (silence if is_call else fake.answer)(request)

    async def run(wanted: ToolServerSettings) -> None:
        async with servers.open_tools(wanted) as lent:
            await lent.tools[0].execute({})

    async with Upstream(answer) as mcp:
        running = asyncio.create_task(run(named({"a": mcp.base_url})))
        await called.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

        await servers.close()

    assert fake.methods()[-1] == "notifications/cancelled"
    assert fake.ended == ["s-1"]


async def test_server_is_asked_once_for_a_name_it_lists_twice() -> None:
    """The first of them is it."""
    twice = [TOOL, {**TOOL, "description": "Another."}]
    fake = FakeMcp({"tools/list": result({"tools": twice})})
    servers = ToolServers()
    async with Upstream(fake.answer) as mcp:
        async with servers.open_tools(named({"a": mcp.base_url})) as lent:
            assert [tool.description for tool in lent.tools] == ["Looks."]
        await servers.close()
