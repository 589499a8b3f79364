"""Servers that do what they must not: each fails alone, soon, in one sentence."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from mcp_fake import (
    OPENED,
    TOOL,
    FakeMcp,
    Reply,
    body,
    error,
    events,
    faked,
    only_tool,
    result,
    streamed,
)
from toolbox.mcp.client import McpClient
from toolbox.remote_tools import MAX_REMOTE_BYTES, MAX_TOOLS_PER_SERVER, RemoteError
from toolbox.server_entries import ServerEntry
from upstream import Upstream, free_port, hang_up, silence, started

pytestmark = pytest.mark.asyncio(loop_scope="session")

KEY = "tok-canary-123456"
LOG = {"jsonrpc": "2.0", "method": "notifications/message", "params": {}}


# ---------------------------------------------------------------- answers

BROKEN: dict[str, Reply] = {
    "no JSON": body("<html>"),
    "nothing": body(""),
    "a number": body("7"),
    "a list of numbers": body("[7]"),
    "deep": body("[" * 100_000),
    "another answer": body(json.dumps({"jsonrpc": "2.0", "id": 99, "result": {}})),
    "true as id": body(json.dumps({"jsonrpc": "2.0", "id": True, "result": {}})),
    "no result": result(None),  # type: ignore[arg-type]
    "a stream without an answer": streamed(LOG),
    "a stream of no JSON": body("data: {\n\n", kind="text/event-stream"),
    "no success": body("secret words", status=500),
    "not let in": body("secret words", status=401),
    "redirected": body("", status=307, headers={"Location": "http://127.0.0.1:9/"}),
    "compressed": body(b"\x1f\x8b", headers={"Content-Encoding": "gzip"}),
    "too long": body(b" " * (MAX_REMOTE_BYTES + 1)),
    "too many words": streamed(*[LOG] * 1_001, value={}),
    "a stream without an end of line": body(
        b"data: " + b"x" * MAX_REMOTE_BYTES, kind="text/event-stream"
    ),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_broken_answer_to_a_call_is_a_failure_of_the_tool(case: str) -> None:
    """What is raised says who it was, and nothing that the server said."""
    async with faked({"tools/call": BROKEN[case]}) as (server, _):
        tool = await only_tool(server)

        with pytest.raises(RemoteError, match=r"^The MCP server fake .*[.]$") as failed:
            await tool.execute({})

    assert "secret" not in str(failed.value)


@pytest.mark.parametrize("case", BROKEN)
async def test_broken_answer_to_the_handshake_leaves_the_server_out(case: str) -> None:
    """Nothing of it is offered, for a reason that can be told."""
    async with faked({"initialize": BROKEN[case]}) as (server, fake):
        with pytest.raises(RemoteError, match=r"^The MCP server fake .*[.]$"):
            await server.list_tools()

    assert set(fake.methods()) <= {"initialize", "notifications/cancelled"}


async def test_redirection_is_not_followed() -> None:
    """The key would go along; the sentence says where an administrator looks."""
    async with Upstream(silence) as thief:
        moved = body("", status=307, headers={"Location": thief.base_url})
        async with faked({"tools/call": moved}) as (server, _):
            tool = await only_tool(server)
            with pytest.raises(RemoteError, match=r"HTTP 307.*MCP_SERVERS_JSON[.]$"):
                await tool.execute({})
        assert thief.requests == []


async def test_deep_result_is_a_failure_of_the_tool() -> None:
    """Whoever writes it into a chat would fail."""
    deep = {"structuredContent": json.loads("[" * 300 + "]" * 300)}
    async with faked({"tools/call": result(deep)}) as (server, _):
        tool = await only_tool(server)
        with pytest.raises(RemoteError, match="nested too deeply"):
            await tool.execute({})


async def test_server_that_is_not_there_fails() -> None:
    """Nobody listens."""
    url = f"http://127.0.0.1:{free_port()}/mcp?key={KEY}"
    server = McpClient(ServerEntry("fake", url))

    with pytest.raises(RemoteError) as failed:
        await server.list_tools()

    await server.close()
    assert str(failed.value) == (
        "The MCP server fake cannot be reached, or its answer broke off."
    )


async def test_server_that_hangs_up_fails() -> None:
    """It aborts the connection."""
    async with Upstream(hang_up) as upstream:
        server = McpClient(ServerEntry("fake", upstream.base_url))

        with pytest.raises(RemoteError):
            await server.list_tools()

        await server.close()


async def test_silent_server_fails_when_its_time_is_up() -> None:
    """The handshake must not be called back, says the protocol."""
    async with Upstream(silence) as upstream:
        server = McpClient(ServerEntry("fake", upstream.base_url, seconds=0.2))

        with pytest.raises(RemoteError, match=r"did not answer within 0\.2 s"):
            await server.list_tools()

        await server.close()
        assert [body["method"] for body in upstream.bodies] == ["initialize"]


async def test_call_that_takes_too_long_is_called_back() -> None:
    """The server learns of it before the session ends."""
    fake = FakeMcp()

    async def answer(request: web.Request) -> web.StreamResponse:
        if (
            request.method == "POST"
            and (await request.json())["method"] == "tools/call"
        ):
            fake.heard.append(await request.json())
            return await silence(request)
        return await fake.answer(request)

    async with Upstream(answer) as upstream:
        server = McpClient(ServerEntry("fake", upstream.base_url, seconds=0.5))
        tool = await only_tool(server)

        with pytest.raises(RemoteError, match=r"did not answer within 0\.5 s"):
            await tool.execute({})

        await server.close()
    call, called_back = fake.heard[-2:]
    assert called_back["method"] == "notifications/cancelled"
    assert called_back["params"] == {"requestId": call["id"]}


async def test_endless_stream_is_left() -> None:
    """We hang up after a thousand messages that answer nothing."""
    fake = FakeMcp()

    async def answer(request: web.Request) -> web.StreamResponse:
        if (await request.json())["method"] != "tools/call":
            return await fake.answer(request)
        stream = await started(request)
        while True:
            await stream.write(events(LOG).encode())

    async with Upstream(answer) as upstream:
        server = McpClient(ServerEntry("fake", upstream.base_url))
        tool = await only_tool(server)

        with pytest.raises(RemoteError, match="gave no answer"):
            await tool.execute({})

        await upstream.left.wait()
        await server.close()


# ---------------------------------------------------------------- handshakes


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-11-25"])
async def test_other_versions_that_are_known_will_do(version: str) -> None:
    """What the server answers is what is spoken from then on."""
    opened = result({**OPENED, "protocolVersion": version})
    async with faked({"initialize": opened}) as (server, _):
        assert (await only_tool(server)).name == "fake_look"


@pytest.mark.parametrize("version", ["1999-01-01", None, 7, ["2025-06-18"]])
async def test_unknown_version_is_refused(version: object) -> None:
    """Nothing is asked of such a server."""
    opened = result({**OPENED, "protocolVersion": version})
    async with faked({"initialize": opened}) as (server, fake):
        with pytest.raises(RemoteError, match="speaks another version"):
            await server.list_tools()

    assert fake.methods() == ["initialize"]


async def test_server_without_tools_is_not_asked_for_any() -> None:
    """It says so in the handshake."""
    opened = result({**OPENED, "capabilities": {"prompts": {}}})
    async with faked({"initialize": opened}) as (server, fake):
        assert await server.list_tools() == ()

    assert "tools/list" not in fake.methods()


async def test_session_that_expires_again_at_once_is_not_begun_for_ever() -> None:
    """Two handshakes, then a failure."""
    opened = result(OPENED, Mcp_Session_Id="s-1")
    async with faked({"initialize": opened}) as (server, fake):
        tool = await only_tool(server)
        fake.replies["tools/call"] = body("", status=404)

        with pytest.raises(RemoteError, match="ends its sessions at once"):
            await tool.execute({})

    assert fake.methods().count("initialize") == 2
    assert fake.ended == ["s-1"]


# ---------------------------------------------------------------- lists


async def test_list_without_an_end_is_cut() -> None:
    """No more than so many tools are taken, however they are spread."""
    rows = [{**TOOL, "name": f"look_{n}"} for n in range(50)]

    def page(message: dict[str, Any]) -> web.StreamResponse:
        shift = int(message["params"].get("cursor", 0))
        named = [{**row, "name": f"{row['name']}_{shift}"} for row in rows]
        return result({"tools": named, "nextCursor": str(shift + 1)})(message)

    async with faked({"tools/list": page}) as (server, fake):
        offered = await server.list_tools()

    assert len(offered) == MAX_TOOLS_PER_SERVER
    assert fake.methods().count("tools/list") == 3


async def test_empty_pages_without_an_end_are_left() -> None:
    """The same page again and again is asked for twenty times."""
    again = result({"tools": [TOOL], "nextCursor": "same"})
    async with faked({"tools/list": again}) as (server, fake):
        assert len(await server.list_tools()) == 1

    assert fake.methods().count("tools/list") == 20


def nested(levels: int) -> dict[str, Any]:
    """A schema of so many levels."""
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    "row",
    [
        {**TOOL, "name": ""},
        {**TOOL, "name": 7},
        {**TOOL, "inputSchema": "object"},
        {"name": "bare"},
        {**TOOL, "inputSchema": nested(100)},
        {**TOOL, "inputSchema": {"description": "x" * 60_000}},
        "look",
        None,
    ],
)
async def test_what_is_no_tool_is_passed_over(row: object) -> None:
    """The next one is taken all the same."""
    good = {**TOOL, "name": "good"}
    async with faked({"tools/list": result({"tools": [row, good]})}) as (server, _):
        assert [spec.own_name for spec in await server.list_tools()] == ["good"]


@pytest.mark.parametrize("tools", [None, "look", {"look": TOOL}, 7])
async def test_list_that_is_none_is_empty(tools: object) -> None:
    """The server has no tools then."""
    async with faked({"tools/list": result({"tools": tools})}) as (server, _):
        assert await server.list_tools() == ()


async def test_refused_list_leaves_the_server_out() -> None:
    """The reason stays with the server: it may quote anything."""
    async with faked({"tools/list": error(f"no, {KEY}")}) as (server, _):
        with pytest.raises(RemoteError) as failed:
            await server.list_tools()

    assert str(failed.value) == "The MCP server fake does not list its tools."


async def test_descriptions_are_cut_and_names_made_valid() -> None:
    """The name has that of the server in front."""
    row = {**TOOL, "name": "look at: everything" * 5, "description": "d" * 9_000}
    async with faked({"tools/list": result({"tools": [row]})}) as (server, _):
        tool = await only_tool(server)

    assert tool.name == f"fake_{'look_at__everything' * 5}"[:64]
    assert len(tool.description) == 4_006


async def test_only_allowed_tools_are_offered() -> None:
    """By name, or by pattern."""
    rows = [{**TOOL, "name": name} for name in ("look", "list_a", "list_b", "delete")]
    replies = {"tools/list": result({"tools": rows})}
    async with faked(replies, allowed=("look", "list_*")) as (server, _):
        offered = await server.list_tools()
    async with faked(replies, allowed=()) as (server, _):
        none = await server.list_tools()

    assert [spec.own_name for spec in offered] == ["look", "list_a", "list_b"]
    assert none == ()


# ---------------------------------------------------------------- results


async def told_of(content: object, **more: object) -> Any:
    """What the model is told of a result."""
    reply = result({"content": content, **more})
    async with faked({"tools/call": reply}) as (server, _):
        return await (await only_tool(server)).execute({})


async def test_parts_that_name_files_of_ours_are_dropped() -> None:
    """A server must not make the agent read what lies beside it."""
    text = {"type": "text", "text": "Here."}
    ours = {"type": "file", "path": "/etc/passwd"}

    told = await told_of([ours, text, {"type": "image_link", "url": "x"}, 7])

    assert told == {"isError": False, "content": [text]}


async def test_sound_becomes_a_file() -> None:
    """The agent has no part for sound."""
    told = await told_of([{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}])

    assert told["content"] == [
        {"type": "blob", "data": "AA==", "mimeType": "audio/wav"}
    ]


@pytest.mark.parametrize("content", [[], None, "text", [{"type": "file"}]])
async def test_structured_content_stands_for_parts_that_are_missing(
    content: object,
) -> None:
    """As a value, or as a sentence where there is none either."""
    told = await told_of(content, structuredContent={"sky": "clear"})
    nothing = await told_of(content)

    assert told["content"] == [{"type": "json", "json": {"sky": "clear"}}]
    assert nothing["content"][0]["text"] == "The tool has run; it returned nothing."


async def test_secret_that_comes_back_is_taken_out() -> None:
    """Of results, and of refusals."""
    text = {"type": "text", "text": f"You are {KEY}."}
    more = {"headers": (("Authorization", f"Bearer {KEY}"),), "secrets": (KEY,)}
    replies = {"tools/call": result({"content": [text]})}
    async with faked(replies, **more) as (server, fake):
        tool = await only_tool(server)
        told = await tool.execute({})
        fake.replies["tools/call"] = error(f"I do not know {KEY}")
        refused = await tool.execute({})

    assert told["content"][0]["text"] == "You are [redacted]."
    assert refused["content"][0]["text"] == "I do not know [redacted]"
    assert refused["isError"]


async def test_long_refusal_is_cut() -> None:
    """A model needs no more of it."""
    async with faked({"tools/call": error("no " * 1_000)}) as (server, _):
        told = await (await only_tool(server)).execute({})

    assert len(told["content"][0]["text"]) == 506


# ---------------------------------------------------------------- questions


async def test_pings_are_answered_and_other_questions_refused() -> None:
    """While the server makes up its mind, in messages of our own."""
    ping = {"jsonrpc": "2.0", "id": "p-1", "method": "ping"}
    sampling = {"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage"}
    call = streamed(ping, LOG, sampling, value={"content": []})
    async with faked({"tools/call": call}) as (server, fake):
        await (await only_tool(server)).execute({})

    answers = [message for message in fake.heard if "method" not in message]
    assert answers == [
        {"jsonrpc": "2.0", "id": "p-1", "result": {}},
        {
            "jsonrpc": "2.0",
            "id": 1,
            "error": {"code": -32601, "message": "Method not found"},
        },
    ]


@pytest.mark.parametrize("number", ["x" * 100_000, {"a": 1}, [1], 1.5])
async def test_question_with_an_odd_id_is_ignored(number: object) -> None:
    """Its answer would carry the id: a thousand long ones would fill the memory."""
    ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
    call = streamed(ping, value={"content": []})
    async with faked({"tools/call": call}) as (server, fake):
        await (await only_tool(server)).execute({})

    assert "answer" not in fake.methods()


async def test_answers_may_come_several_at_once() -> None:
    """As revision 2025-03-26 allows."""

    def several(message: dict[str, Any]) -> web.StreamResponse:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": []}}
        return web.json_response([LOG, answer])

    async with faked({"tools/call": several}) as (server, _):
        assert not (await (await only_tool(server)).execute({}))["isError"]


def in_bytes(text: bytes) -> list[bytes]:
    """A text in pieces of one byte."""
    return [text[n : n + 1] for n in range(len(text))]


CUTS: dict[str, Callable[[bytes], list[bytes]]] = {
    "each byte": in_bytes,
    "carriage returns": lambda text: [text.replace(b"\n", b"\r")],
    "both": lambda text: in_bytes(text.replace(b"\n", b"\r\n")),
}


@pytest.mark.parametrize("cut", CUTS)
async def test_stream_may_be_cut_anywhere(cut: str) -> None:
    """Lines end in three ways; a comment and other fields say nothing."""
    fake = FakeMcp()

    async def answer(request: web.Request) -> web.StreamResponse:
        message = await request.json()
        if message["method"] != "tools/call":
            return await fake.answer(request)
        parts = [{"type": "text", "text": "Zürich 東京"}]
        told = {"jsonrpc": "2.0", "id": message["id"], "result": {"content": parts}}
        lines = json.dumps(told, ensure_ascii=False, indent=1).splitlines()
        data = "".join(f"data: {line}\n" for line in lines)
        stream = await started(request)
        for piece in CUTS[cut](f": hello\nid: 4\nevent: message\n{data}\n".encode()):
            await stream.write(piece)
        return stream

    async with Upstream(answer) as upstream:
        server = McpClient(ServerEntry("fake", upstream.base_url, seconds=5.0))
        told = await (await only_tool(server)).execute({})
        await server.close()

    assert told["content"] == [{"type": "text", "text": "Zürich 東京"}]
