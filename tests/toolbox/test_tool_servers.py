"""The tools of several servers, lent to one run after another."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from mcp_fake import OPENED, TOOL, FakeMcp, body, events, result, streamed
from toolbox.server_entries import ToolServerSettings
from toolbox.tool_servers import ToolServers
from upstream import Upstream, free_port, silence

pytestmark = pytest.mark.asyncio(loop_scope="session")

MORE = {**TOOL, "name": "listen"}
DOCUMENT: dict[str, Any] = {
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


async def test_tools_that_are_left_out_are_counted() -> None:
    """Too large, not to be called, over the limit: a line for each server's log."""
    evil = {"name": "evil", "inputSchema": {"description": "x" * 60_000}}
    many = [{**TOOL, "name": f"look_{number}"} for number in range(130)]
    fake = FakeMcp({"tools/list": result({"tools": [evil, *many]})})
    form = {"content": {"text/plain": {}}, "required": True}
    paths = {"/form": {"post": {"requestBody": form}}, **DOCUMENT["paths"]}
    more = {f"/{n}": DOCUMENT["paths"]["/look"] for n in range(129)}

    async def shop(_: web.Request) -> web.Response:
        return web.json_response({**DOCUMENT, "paths": {**paths, **more}})

    servers = ToolServers()
    async with Upstream(fake.answer) as mcp, Upstream(shop) as openapi:
        wanted = named({"a": mcp.base_url}, {"shop": openapi.base_url})
        async with servers.open_tools(wanted) as lent:
            names = [tool.name for tool in lent.tools]
        await servers.close()

    assert len(names) == 256
    assert lent.problems == ()
    for name, remark in zip(("a", "shop"), lent.remarks, strict=True):
        assert remark == (
            f"The server {name} has tools that are not offered: 1 cannot be used, at "
            "least 2 are over the limit of 128."
        )


async def test_server_that_hangs_is_waited_for_once() -> None:
    """The next answers go on without it; once it has answered, it is there."""
    fake, begun, may_list = FakeMcp(), asyncio.Event(), asyncio.Event()
    servers = ToolServers(wait_seconds=0.5)

    async def answer(request: web.Request) -> web.StreamResponse:
        begun.set()
        await may_list.wait()
        return await fake.answer(request)

    async with Upstream(answer) as mcp:
        wanted = named({"a": mcp.base_url})
        async with servers.open_tools(wanted) as first:
            pass
        now = asyncio.get_running_loop().time  # what the machine takes does not count
        began = now()
        async with servers.open_tools(wanted) as second:
            pass
        waited = now() - began
        may_list.set()
        async with asyncio.timeout(60):
            async with servers.open_tools(wanted) as last:
                pass
            while not last.tools:
                await asyncio.sleep(0.05)  # nobody tells when the answer is read
                async with servers.open_tools(wanted) as last:
                    pass
        await servers.close()

    assert first.problems == second.problems
    assert first.problems == ("The server a did not list its tools within 0.5 s.",)
    assert waited < 0.5
    assert [tool.name for tool in last.tools] == ["a_look"]
    assert fake.methods().count("initialize") == 1


async def names_of(servers: ToolServers, wanted: Any) -> list[str]:
    """The names of the tools that an answer gets now."""
    async with servers.open_tools(wanted) as lent:
        return [tool.name for tool in lent.tools]


async def test_change_during_a_list_is_seen() -> None:
    """The list that comes may be the old one."""
    fake = FakeMcp({"initialize": result({**OPENED, "capabilities": {"tools": {}}})})
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    fake.replies["tools/list"] = streamed(changed, value={"tools": [TOOL]})
    servers = ToolServers(now=lambda: 1.0)
    async with Upstream(fake.answer) as mcp:
        wanted = named({"a": mcp.base_url})
        before = await names_of(servers, wanted)
        fake.replies["tools/list"] = result({"tools": [TOOL, MORE]})
        after = await names_of(servers, wanted)
        await servers.close()

    assert (before, after) == (["a_look"], ["a_look", "a_listen"])


@pytest.mark.parametrize("how", ["a minute", "a call", "a stream"])
async def test_new_tools_are_seen(how: str) -> None:
    """After a minute, or as soon as the server says so, while it answers or unasked."""
    abilities = {"tools": {"listChanged": how == "a stream"}}
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    told = asyncio.Event()
    seen = {"content": [{"type": "text", "text": "Seen."}]}
    calling = streamed(changed, value=seen) if how == "a call" else result(seen)
    opened = result({**OPENED, "capabilities": abilities})
    fake = FakeMcp({"initialize": opened, "tools/call": calling})

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            told.set()
            return body(events(changed), kind="text/event-stream")({})
        return await fake.answer(request)

    now = [0.0]
    servers = ToolServers(now=lambda: now[0])
    async with Upstream(answer) as mcp:
        wanted = named({"a": mcp.base_url})
        async with servers.open_tools(wanted) as lent:
            fake.replies["tools/list"] = result({"tools": [TOOL, MORE]})
            await lent.tools[0].execute({})
            now[0] = 61.0 if how == "a minute" else 1.0
            if how == "a stream":  # which is read as long as the answer lasts
                await told.wait()
                for _ in range(1000):  # nobody tells when it was read
                    if len(await names_of(servers, wanted)) == 2:
                        break
                    await asyncio.sleep(0.01)
        names = await names_of(servers, wanted)
        await servers.close()

    assert names == ["a_look", "a_listen"]


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
