"""Calls of an OpenAPI server: what is sent, what comes back, where nothing is sent."""

import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

import pytest
from aiohttp import web

from toolbox.openapi.client import OpenApiClient
from toolbox.remote_tools import RemoteError
from toolbox.server_entries import ServerEntry
from upstream import Answerer, Upstream, free_port, hang_up, in_turn, replying, silence

pytestmark = pytest.mark.asyncio(loop_scope="session")

Json = dict[str, Any]
KEY = "tok-canary-123456"
HEADERS = (("Authorization", f"Bearer {KEY}"), ("X-API-Key", KEY))
PLAIN: Json = {"operationId": "look"}


def document(path: str = "/look", method: str = "get", **said: Any) -> Json:
    """A document of one operation."""
    return {"openapi": "3.0.3", "paths": {path: {method: {**PLAIN, **said}}}}


def parameter(name: str, place: str, **more: Any) -> Json:
    """A parameter of any type."""
    return {"name": name, "in": place, "schema": {}, **more}


@asynccontextmanager
async def serving(
    content: object, answer: Answerer, **more: Any
) -> AsyncIterator[tuple[OpenApiClient, Upstream]]:
    """A server that gives its document first, and answers calls as it likes."""
    text = content if isinstance(content, str) else json.dumps(content)
    async with Upstream(in_turn(replying(text), answer)) as upstream:
        known = {"headers": HEADERS, "secrets": (KEY,), "seconds": 10.0, **more}
        server = OpenApiClient(ServerEntry("own", upstream.base_url, **known))
        try:
            yield server, upstream
        finally:
            await server.close()


async def called(
    content: Json, arguments: Mapping[str, Any], answer: Answerer | None = None
) -> tuple[Any, Upstream]:
    """The result of the one tool."""
    async with serving(content, answer or replying("{}")) as (server, upstream):
        [operation] = await server.list_tools()
        result = await server.make_tool(operation).execute(dict(arguments))
    return result, upstream


async def told(answer: Answerer) -> Json:
    """The one part of a result."""
    result, _ = await called(document(), {}, answer)
    [part] = result["content"]
    assert isinstance(part, dict)
    return part


# ---------------------------------------------------------------- what is sent


async def test_call_goes_where_its_arguments_belong() -> None:
    """With our key, in the headers that the administrator gave."""
    body: Json = {"content": {"application/json; charset=utf-8": {"schema": {}}}}
    content = document(
        "/towns/{town}/look",
        "post",
        parameters=[
            parameter("town", "path"),
            parameter("q", "query"),
            parameter("X-Unit", "header"),
        ],
        requestBody=body,
    )
    arguments = {
        "town": "São/Paulo ?#",
        "q": "a&b=c+d",
        "X-Unit": "C",
        "body": {"é": [1]},
    }

    _, upstream = await called(content, arguments)

    request = upstream.requests[1]
    assert request.method == "POST"
    assert request.rel_url.raw_path == "/towns/S%C3%A3o%2FPaulo%20%3F%23/look"
    assert dict(request.query) == {"q": "a&b=c+d"}
    assert request.headers["X-Unit"] == "C"
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["X-API-Key"] == KEY
    assert request.content_type == "application/json"
    assert upstream.bodies[1] == {"é": [1]}


QUERIES: list[tuple[Json, Any, str]] = [
    ({}, ["a", "b c"], "q=a&q=b c"),
    ({"explode": False}, ["a", "b"], "q=a,b"),
    ({"style": "spaceDelimited"}, [1, 2], "q=1 2"),
    ({"style": "pipeDelimited"}, [1, 2], "q=1|2"),
    ({}, {"a": 1, "b": True}, "a=1&b=true"),
    ({"explode": False}, {"a": 1, "b": "x"}, "q=a,1,b,x"),
    ({"style": "deepObject"}, {"a": 1}, "q[a]=1"),
    ({"content": {"application/json": {}}}, {"a": [1]}, 'q={"a": [1]}'),
    ({}, False, "q=false"),
    ({}, 1.5, "q=1.5"),
    ({}, "", "q="),
    ({}, None, ""),
    ({}, "+%20", "q=+%20"),
]


@pytest.mark.parametrize(("said", "value", "query"), QUERIES)
async def test_values_are_written_as_the_document_says(
    said: Json, value: object, query: str
) -> None:
    """Each style of a query."""
    content = document(parameters=[parameter("q", "query", **said)])

    _, upstream = await called(content, {"q": value})

    assert unquote(upstream.requests[1].rel_url.raw_query_string) == query


@pytest.mark.parametrize(
    ("style", "path"), [({}, "/a,1,b,2"), ({"explode": True}, "/a=1,b=2")]
)
async def test_objects_in_paths_are_one_segment(style: Json, path: str) -> None:
    """Either way."""
    content = document("/{p}", parameters=[parameter("p", "path", **style)])

    _, upstream = await called(content, {"p": {"a": 1, "b": 2}})

    assert upstream.requests[1].path == path


UNUSABLE: list[tuple[str, str, Json]] = [
    ("/{p}/look", "path", {"p": ".."}),
    ("/{p}/look", "path", {"p": "."}),
    ("/{p}/look", "path", {"p": ""}),
    ("/{p}/look", "path", {}),
    ("/.{p}/look", "path", {"p": "."}),
    ("/look", "header", {"p": "a\r\nX-Admin: 1"}),
    ("/look", "header", {"p": "東京"}),
]


@pytest.mark.parametrize(("path", "place", "arguments"), UNUSABLE)
async def test_argument_that_would_make_another_request_is_refused(
    path: str, place: str, arguments: Json
) -> None:
    """Nothing is sent; the model is told why."""
    content = document(path, parameters=[parameter("p", place)])

    result, upstream = await called(content, arguments)

    assert result["isError"]
    assert result["content"][0]["text"].startswith("The call was not made: ")
    assert len(upstream.requests) == 1


async def test_only_allowed_operations_are_offered() -> None:
    """By pattern."""
    content = {
        "openapi": "3.1.0",
        "paths": {f"/{name}": {"get": {"operationId": name}} for name in ("aa", "b")},
    }
    async with serving(content, silence, allowed=("a*",)) as (server, _):
        offered = await server.list_tools()
        tools = [server.make_tool(one).name for one in offered]

    assert tools == ["own_aa"]


# ---------------------------------------------------------------- what comes back


async def test_values_come_in_a_part_of_their_own() -> None:
    """A list of parts would name files of ours."""
    evil = [{"type": "file", "path": "/etc/passwd"}]

    assert await told(replying(json.dumps(evil))) == {"type": "json", "json": evil}


async def test_files_and_texts_come_as_what_they_are() -> None:
    """Also what only says that it is JSON, or says nothing."""
    png = await told(replying(b"\x89PNG", content_type="image/png"))
    empty = await told(replying("", status=204))

    assert png == {
        "type": "blob",
        "data": base64.b64encode(b"\x89PNG").decode(),
        "mimeType": "image/png",
    }
    assert empty["text"] == "HTTP 204, with no content."
    for text, kind in (("a é", "text/plain"), ("{", "application/json")):
        part = await told(replying(text, content_type=kind))
        assert part == {"type": "text", "text": text}


async def test_long_text_is_cut() -> None:
    """A value is a text then, because half of it is none."""
    value = json.dumps(["x" * (1024 * 1024)])

    part = await told(replying(value))

    assert part["type"] == "text"
    assert part["text"] == value[: 1024 * 1024] + "\n[the rest is left out]"


async def test_secret_that_comes_back_is_taken_out() -> None:
    """Some servers echo headers."""
    part = await told(replying(json.dumps({"headers": [KEY, f"Bearer {KEY}"]})))

    assert part["json"] == {"headers": ["[redacted]", "Bearer [redacted]"]}


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (replying("no such town", status=404), "HTTP 404: no such town"),
        (replying(f"bad key {KEY}", status=401), "HTTP 401: bad key [redacted]"),
        (replying("", status=500), "HTTP 500: no reason given"),
        (replying(b"\0", 500, "image/png"), "HTTP 500: no reason given"),
        (replying("x" * 9_000, status=400), f"HTTP 400: {'x' * 2_000} [...]"),
    ],
)
async def test_refusal_is_told(answer: Answerer, text: str) -> None:
    """As a failure of the tool."""
    result, _ = await called(document(), {}, answer)

    assert result == {"isError": True, "content": [{"type": "text", "text": text}]}


FAILING: dict[str, tuple[Answerer, str]] = {
    "hangs up": (hang_up, "cannot be reached, or its answer broke off"),
    "too long": (
        replying(b"\0" * (8 * 1024 * 1024 + 1), content_type="application/zip"),
        "sent more than",
    ),
    "compressed": (replying(b"", headers={"Content-Encoding": "gzip"}), "compressed"),
}


@pytest.mark.parametrize("case", FAILING)
async def test_broken_answer_is_a_failure(case: str) -> None:
    """The sentence has neither address nor key."""
    answer, why = FAILING[case]

    with pytest.raises(RemoteError, match=f"^The tool server own .*{why}") as failed:
        await called(document(), {}, answer)

    assert KEY not in str(failed.value)
    assert "127.0.0.1" not in str(failed.value)


async def test_silent_server_fails_when_its_time_is_up() -> None:
    """Its own time."""
    async with serving(document(), silence, seconds=0.5) as (server, upstream):
        [operation] = await server.list_tools()
        with pytest.raises(RemoteError, match=r"did not answer within 0\.5 s"):
            await server.make_tool(operation).execute({})
        await upstream.left.wait()


# ---------------------------------------------------------------- other hosts


def redirecting(place: str, status: int = 307) -> Answerer:
    """Send a call elsewhere."""
    return replying("moved", status=status, headers={"Location": place})


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_key_follows_no_redirection(status: int, method: str) -> None:
    """Not to another host or port, and not to another path."""
    async with Upstream(replying("{}")) as thief:
        for place in (thief.base_url, "/look/"):
            answer = in_turn(redirecting(place, status), replying('{"at": "home"}'))
            with pytest.raises(
                RemoteError, match=f"HTTP {status}.*OPENAPI_SERVERS_JSON"
            ) as refused:
                await called(document(method=method), {}, answer)
            assert "127.0.0.1" not in str(refused.value)
        assert thief.requests == []


async def test_key_is_for_the_host_of_the_calls_alone() -> None:
    """A document from elsewhere is loaded without it."""
    async with Upstream(replying("{}")) as api:
        async with serving(document(), silence, base_url=api.base_url) as (
            server,
            home,
        ):
            [operation] = await server.list_tools()
            await server.make_tool(operation).execute({})

        assert "Authorization" not in home.requests[0].headers
        assert "X-API-Key" not in home.requests[0].headers
        assert api.requests[0].headers["X-API-Key"] == KEY
        assert api.requests[0].path == "/v1/look"


async def test_document_cannot_send_calls_elsewhere() -> None:
    """Its operation is not offered, and nobody is asked."""
    async with Upstream(replying("{}")) as thief:
        content = document(servers=[{"url": thief.base_url}])
        async with serving(content, silence) as (server, _):
            assert await server.list_tools() == ()

        assert thief.requests == []


# ---------------------------------------------------------------- documents


@pytest.mark.parametrize(
    "content", ["openapi: 3.1.0", "[" * 100_000, "[" * 500 + "]" * 500, "[]", "{}"]
)
async def test_what_is_no_document_leaves_the_server_out(content: str) -> None:
    """For a reason that an administrator understands."""
    async with serving(content, silence) as (server, _):
        with pytest.raises(RemoteError) as failed:
            await server.list_tools()

    assert str(failed.value) == (
        "The tool server own has no OpenAPI document of version 3, as JSON, at its "
        "address."
    )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (302, r"redirects requests \(HTTP 302\).*OPENAPI_SERVERS_JSON"),
        (404, r"its document \(HTTP 404\)"),
        (500, r"its document \(HTTP 500\)"),
    ],
)
async def test_document_that_is_not_given_leaves_the_server_out(
    status: int, words: str
) -> None:
    """No redirection is followed to it."""
    headers = {"Location": f"http://127.0.0.1:{free_port()}/"}
    async with Upstream(replying("secret", status, headers=headers)) as upstream:
        server = OpenApiClient(ServerEntry("own", upstream.base_url))
        with pytest.raises(RemoteError, match=words):
            await server.list_tools()
        await server.close()


async def test_endless_document_leaves_the_server_out() -> None:
    """No more than eight megabytes are read."""

    async def endless(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        while True:
            await stream.write(b" " * 65_536)

    async with Upstream(endless) as upstream:
        server = OpenApiClient(ServerEntry("own", upstream.base_url))
        with pytest.raises(RemoteError, match="sent more than 8388608 bytes"):
            await server.list_tools()
        await server.close()
