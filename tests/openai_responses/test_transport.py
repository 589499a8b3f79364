"""Connections are opened, shared, closed, and their failures told in words."""

import asyncio
import json
import socket
import ssl
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from aiohttp.client_reqrep import ConnectionKey
from aioresponses import aioresponses
from yarl import URL

from openai_responses.endpoint import (
    DEFAULT_BASE_URL,
    Endpoint,
    normalized_base_url,
)
from openai_responses.errors import (
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    ResponsesError,
    UnreadableAnswer,
)
from openai_responses.transport import Connections
from upstream import (
    KEY,
    Answerer,
    Upstream,
    breaking,
    replying,
    stalling,
    streaming,
    until,
)

CANARY = "sk-proj-CANARY123"
PAYLOAD = {"model": "gpt-5.6-sol", "input": []}

ANSWER = replying('{"output": []}')


@pytest.mark.parametrize(
    ("pasted", "address"),
    [
        ("", DEFAULT_BASE_URL),
        ("  ", DEFAULT_BASE_URL),
        ("https://api.openai.com", "https://api.openai.com/v1"),
        ("https://api.openai.com/", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        (" https://api.openai.com/v1/\n", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/responses", "https://api.openai.com/v1"),
        ("https://api.openai.com/v1/responses/", "https://api.openai.com/v1"),
        ("https://host.tld/responses", "https://host.tld/v1"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080/v1"),
        ("HTTPS://Host.tld/v1", "https://Host.tld/v1"),
        (
            "https://us.openai.azure.com/openai/v1/?api-version=preview",
            "https://us.openai.azure.com/openai/v1",
        ),
        ("https://host.tld/openai/v1#a", "https://host.tld/openai/v1"),
        ("https://host.tld/api/v2", "https://host.tld/api/v2"),
    ],
)
def test_base_urls(pasted: str, address: str) -> None:
    """What people paste is understood."""
    assert normalized_base_url(pasted) == address
    assert Endpoint(pasted, KEY).url("/responses") == f"{address}/responses"


@pytest.mark.parametrize(
    "pasted",
    [
        "api.openai.com/v1",
        "localhost:8080",
        "ftp://host.tld/v1",
        "https://",
        "https:///v1",
        "http://[::1",
        "http://host.tld:port/v1",
        "http://host.tld:99999/v1",
        "http://host.tld:0/v1",
        f"https:{CANARY}",
        CANARY,
    ],
)
def test_addresses_that_are_none(pasted: str) -> None:
    """The sentence names the valve, and does not quote what was in it."""
    with pytest.raises(InvalidRequest, match="BASE_URL is not an http") as refused:
        Endpoint(pasted, KEY).url("/responses")
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "pasted",
    [
        f"https://user:{CANARY}@host.tld/v1",
        f"https://{CANARY}@host.tld",
        "http://@h/v1",
    ],
)
def test_credentials_in_the_address(pasted: str) -> None:
    """They are refused, and shown nowhere."""
    endpoint = Endpoint(pasted, KEY)
    with pytest.raises(InvalidRequest, match="user name or a password") as refused:
        endpoint.url("/responses")
    with pytest.raises(InvalidRequest):
        assert endpoint.host
    assert CANARY not in f"{refused.value} {endpoint!r} {endpoint}"


def test_endpoint_shows_no_secret() -> None:
    """Its key is in no text of it."""
    endpoint = Endpoint("https://host.tld/v1", CANARY)
    assert endpoint.host == "host.tld"
    assert CANARY not in f"{endpoint!r} {endpoint}"


async def ask(connections: Connections, endpoint: Endpoint) -> dict[str, Any]:
    """Send a request and return the response object."""
    async with connections.post(endpoint, "/responses", PAYLOAD) as answer:
        return await answer.response_object()


@pytest.mark.asyncio
async def test_what_is_sent(connections: Connections) -> None:
    """One POST with the key, the type and the payload as it is."""
    payload = {"model": "m", "input": [{"role": "user", "content": "Zürich 東京 🚀"}]}
    async with Upstream(ANSWER) as upstream:
        endpoint = Endpoint(upstream.base_url, f" {KEY}\n")
        async with connections.post(endpoint, "/responses", payload):
            pass
        (request,) = upstream.requests
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Content-Type"] == "application/json"
    assert upstream.bodies == [payload]


@pytest.mark.asyncio
async def test_lone_surrogate(connections: Connections) -> None:
    """Half a character of a broken paste does not stop the request."""
    async with Upstream(ANSWER) as upstream:
        payload = {"input": "a\ud83d"}
        async with connections.post(upstream.endpoint, "/responses", payload):
            pass
    assert upstream.bodies == [{"input": "a?"}]


@pytest.mark.asyncio
async def test_one_connection_for_many_requests(connections: Connections) -> None:
    """It is reused as long as answers are read to their ends."""
    async with Upstream(ANSWER) as upstream:
        for _ in range(20):
            await ask(connections, upstream.endpoint)
        assert len(upstream.requests) == 20
        assert len(upstream.connections) == 1


@pytest.mark.asyncio
async def test_leaving_early_closes_the_connection(connections: Connections) -> None:
    """An answer that nobody reads is not computed any more."""
    async with Upstream(stalling(b": hello\n")) as upstream:
        async with connections.post(upstream.endpoint, "/responses", PAYLOAD) as answer:
            assert answer.is_stream
        async with asyncio.timeout(1):
            await upstream.left.wait()


@pytest.mark.asyncio
async def test_idle_connections_are_closed() -> None:
    """After a while without a run nothing is open and no task is left."""
    connections = Connections(idle_seconds=0.01)
    async with Upstream(ANSWER) as upstream:
        before = asyncio.all_tasks()
        await ask(connections, upstream.endpoint)
        assert upstream.open_connections == 1
        await until(lambda: upstream.open_connections == 0)
        await until(lambda: asyncio.all_tasks() == before)
        await ask(connections, upstream.endpoint)  # and opened again when needed
        await connections.close()


@pytest.mark.asyncio
@pytest.mark.parametrize("turns", range(6))
async def test_request_while_the_session_is_being_closed(turns: int) -> None:
    """Whatever the loop does first, no run gets a session that is going away."""
    connections = Connections(idle_seconds=0.0)
    async with Upstream(ANSWER) as upstream:
        await ask(connections, upstream.endpoint)
        for _ in range(turns):
            await asyncio.sleep(0)
        assert await ask(connections, upstream.endpoint) == {"output": []}
        await connections.close()


@pytest.mark.asyncio
async def test_session_of_a_run_under_way_stays_open() -> None:
    """The idle time does not begin while another run still reads."""
    connections = Connections(idle_seconds=0.0)
    gate = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        if len(upstream.requests) == 1:
            await gate.wait()
        return web.json_response({"output": []})

    async with Upstream(answer) as upstream:
        first = asyncio.create_task(ask(connections, upstream.endpoint))
        await until(lambda: len(upstream.requests) == 1)
        await ask(connections, upstream.endpoint)
        await asyncio.sleep(0.01)
        gate.set()
        assert await first == {"output": []}
        await connections.close()


@pytest.mark.asyncio
async def test_close_without_anything_open(connections: Connections) -> None:
    """There is nothing to do, also the second time."""
    await connections.close()
    async with Upstream(ANSWER) as upstream:
        await ask(connections, upstream.endpoint)
        await connections.close()
        await connections.close()
        await until(lambda: upstream.open_connections == 0)


@pytest.mark.asyncio
async def test_timer_finds_nothing_to_close() -> None:
    """A session that was closed by hand is not closed again by the clock."""
    connections = Connections(idle_seconds=0.0)
    async with Upstream(ANSWER) as upstream:
        async with connections.post(upstream.endpoint, "/responses", PAYLOAD) as answer:
            await answer.drain()
            await connections.close()
        await asyncio.sleep(0.01)
        assert upstream.open_connections == 0


@pytest.mark.asyncio
async def test_each_loop_has_a_session_of_its_own(connections: Connections) -> None:
    """Another thread's loop is served too."""
    async with Upstream(ANSWER) as upstream:

        async def elsewhere() -> dict[str, Any]:
            try:
                return await ask(connections, upstream.endpoint)
            finally:
                await connections.close()

        await ask(connections, upstream.endpoint)
        there = await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
        assert there == await ask(connections, upstream.endpoint) == {"output": []}
        assert len(upstream.connections) == 2


def error_body(**fields: str | None) -> str:
    """Return an error body with a canary in its message."""
    return json.dumps({"error": {"message": f"Sorry, {CANARY}", **fields}})


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (401, error_body(code="invalid_api_key"), "does not accept the API key"),
        (403, error_body(code=None), "may not use gpt-5.6-sol"),
        (404, error_body(code="model_not_found"), "gpt-5.6-sol does not exist"),
        (404, "<html>404</html>", "no Responses API at BASE_URL"),
        (429, error_body(code="rate_limit_exceeded"), "rate limit"),
        (429, error_body(type="insufficient_quota"), "credit"),
        (500, error_body(type="server_error"), "error of its own"),
        (502, "<html>Bad gateway</html>", "(HTTP 502)"),
        (503, error_body(code=CANARY, param=CANARY), "overloaded"),
        (503, "", "overloaded"),
        (400, error_body(code=CANARY, type=CANARY, param=CANARY), "HTTP 400. An admin"),
        (400, "[" * 70_000, "HTTP 400. An admin"),
        (400, b"\xff\xfe\x00", "HTTP 400. An admin"),
        (400, "[]", "HTTP 400. An admin"),
    ],
)
async def test_refusals(
    connections: Connections, status: int, text: str, words: str
) -> None:
    """Each bad status has a sentence, and none of them quotes the server."""
    async with Upstream(replying(text, status)) as upstream:
        with pytest.raises(ApiRefused) as refused:
            await ask(connections, upstream.endpoint)
    assert words in str(refused.value)
    assert refused.value.status == status
    assert CANARY not in f"{refused.value} {refused.value!r}"
    assert refused.value.__cause__ is None


@pytest.mark.asyncio
async def test_refusal_whose_body_breaks_off(connections: Connections) -> None:
    """The status alone says enough."""
    async with Upstream(breaking(b'{"error"', status=429)) as upstream:
        with pytest.raises(ApiRefused, match="rate limit"):
            await ask(connections, upstream.endpoint)


def free_port() -> int:
    """Return a port where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.mark.asyncio
async def test_nobody_listens(connections: Connections) -> None:
    """A refused connection is told with the server's name."""
    with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1 cannot be reached"):
        await ask(connections, Endpoint(f"http://127.0.0.1:{free_port()}/v1", KEY))


@pytest.mark.asyncio
async def test_server_hangs_up(connections: Connections) -> None:
    """A connection that breaks before the answer is told as none."""

    async def answer(request: web.Request) -> web.StreamResponse:
        assert request.transport
        request.transport.abort()
        return web.Response()

    async with Upstream(answer) as upstream:
        with pytest.raises(ConnectionFailed, match="cannot be reached"):
            await ask(connections, upstream.endpoint)


@pytest.mark.asyncio
async def test_plain_server_behind_https(connections: Connections) -> None:
    """A server that speaks no TLS is told as one whose certificate is not good."""
    async with Upstream(ANSWER) as upstream:
        address = upstream.base_url.replace("http:", "https:")
        with pytest.raises(ConnectionFailed, match="certificate of 127"):
            await ask(connections, Endpoint(address, KEY))


NOWHERE = ConnectionKey("nowhere.invalid", 443, True, True, None, None, None)
BROKEN_CERTIFICATE = ssl.SSLCertVerificationError(1, "self-signed certificate")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (
            aiohttp.ClientConnectorDNSError(NOWHERE, OSError(-2, "Name not known")),
            "nowhere.invalid cannot be reached",
        ),
        (
            aiohttp.ClientConnectorCertificateError(NOWHERE, BROKEN_CERTIFICATE),
            "certificate of nowhere.invalid is not trusted",
        ),
        (aiohttp.ServerTimeoutError("Timeout"), "nowhere.invalid cannot be reached"),
        (TimeoutError(), "nowhere.invalid cannot be reached"),
        (OSError("No route to host"), "nowhere.invalid cannot be reached"),
    ],
)
async def test_failures_that_no_server_can_make(
    connections: Connections, failure: Exception, words: str
) -> None:
    """Names that nobody knows, untrusted certificates and silence have sentences."""
    with aioresponses() as network:
        network.post("https://nowhere.invalid/v1/responses", exception=failure)
        with pytest.raises(ConnectionFailed, match=words) as failed:
            await ask(connections, Endpoint("https://nowhere.invalid/v1", KEY))
    assert list(network.requests) == [
        ("POST", URL("https://nowhere.invalid/v1/responses"))
    ]
    assert failed.value.__cause__ is None


@pytest.mark.asyncio
@pytest.mark.parametrize("key", ["sk-a\nsk-b", "sk-a\r\nX-Evil: 1", "sk-\x00"])
async def test_key_that_no_header_can_hold(connections: Connections, key: str) -> None:
    """A line break inside the key is told before anything is sent."""
    async with Upstream(ANSWER) as upstream:
        with pytest.raises(InvalidRequest, match="API_KEY or BASE_URL") as refused:
            await ask(connections, Endpoint(upstream.base_url, key))
        assert upstream.requests == []
    assert key not in str(refused.value)


@pytest.mark.asyncio
@pytest.mark.parametrize("host", ["...", "a" * 70 + ".tld"])
async def test_host_that_no_name_server_takes(
    connections: Connections, host: str
) -> None:
    """It is told as a setting to correct."""
    with pytest.raises(ResponsesError, match="BASE_URL"):
        await ask(connections, Endpoint(f"http://{host}/v1", KEY))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("text", "content_type"),
    [
        ("<html>Welcome</html>", "text/html"),
        ("", "application/json"),
        ("[]", "application/json"),
        ("{}", "application/json"),
        ('{"output": null}', "application/json"),
        ('{"choices": [], "error": null}', "application/json"),
        ("[" * 100_000, "application/json"),
        (b"\xff\xff\xff", "application/json"),
    ],
)
async def test_answer_that_is_none(
    connections: Connections, text: str, content_type: str
) -> None:
    """A page with status 200 is told as a wrong address."""
    async with Upstream(replying(text, 200, content_type)) as upstream:
        with pytest.raises(UnreadableAnswer, match="not as the Responses API does"):
            await ask(connections, upstream.endpoint)


@pytest.mark.asyncio
async def test_error_with_status_200(connections: Connections) -> None:
    """Some gateways do that; it is a refusal."""
    text = error_body(code="model_not_found")
    async with Upstream(replying(text)) as upstream:
        with pytest.raises(ApiRefused, match="does not exist") as refused:
            await ask(connections, upstream.endpoint)
    assert refused.value.error.code == "model_not_found"
    assert CANARY not in str(refused.value)


@pytest.mark.asyncio
async def test_answer_that_breaks_off(connections: Connections) -> None:
    """Half a JSON answer is a broken connection, not an unreadable answer."""
    async with Upstream(breaking(b'{"output": [')) as upstream:
        with pytest.raises(ConnectionFailed, match="broke"):
            await ask(connections, upstream.endpoint)


@pytest.mark.asyncio
async def test_stream_that_breaks_off(connections: Connections) -> None:
    """What came before is there, then the break is told."""
    heard = b""

    async def listen(endpoint: Endpoint) -> None:
        nonlocal heard
        async with connections.post(endpoint, "/responses", PAYLOAD) as answer:
            async for chunk in answer.chunks():
                heard += chunk

    async with Upstream(breaking(b"data: 1\n\n")) as upstream:
        with pytest.raises(ConnectionFailed, match="broke"):
            await listen(upstream.endpoint)
    assert heard == b"data: 1\n\n"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("rest", "opened"), [(streaming(b"a"), 1), (breaking(b"a"), 2)]
)
async def test_drain(connections: Connections, rest: Answerer, opened: int) -> None:
    """What is left of an answer is read; that it breaks matters to nobody."""
    async with Upstream(rest) as upstream:
        for _ in range(2):
            async with connections.post(
                upstream.endpoint, "/responses", PAYLOAD
            ) as answer:
                await answer.drain()
        assert len(upstream.connections) == opened


@pytest.mark.asyncio
async def test_drain_of_a_server_that_does_not_end(connections: Connections) -> None:
    """It is given up after a moment, and the connection closed."""
    async with Upstream(stalling(b"data: 1\n\n")) as upstream:
        post = connections.post(upstream.endpoint, "/responses", PAYLOAD)
        async with asyncio.timeout(3), post as answer:
            await answer.drain()
            await upstream.left.wait()
