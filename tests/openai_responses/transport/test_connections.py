"""What is sent, what is read, and failures told in words."""

import asyncio
import json
import time
from typing import Any

import pytest
from aiohttp import web

from openai_responses.endings import UNREADABLE
from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    ApiError,
    ApiRefused,
    ConnectionFailed,
    InvalidRequest,
    ResponsesError,
    TimedOut,
    UnreadableAnswer,
)
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts
from upstream.server import (
    KEY,
    QUESTION,
    Answerer,
    Upstream,
    ask,
    breaking,
    error_of,
    hang_up,
    post,
    replying,
    stalling,
    started,
    streaming,
)

pytestmark = pytest.mark.asyncio

CANARY = "sk-proj-CANARY123"
FIELDS = ("message", "code", "type", "param")


@pytest.mark.parametrize(("count", "status"), [(1, 201), (2500, 200)])
async def test_request_is_one_post_with_key_and_payload(
    connections: Connections, count: int, status: int
) -> None:
    item = {"role": "user", "content": 'Zürich 東京 🚀 "input": ['}
    payload = {"model": "m", "input": [item] * count, "instructions": '"input": ['}
    async with Upstream(replying('{"output": []}', status)) as upstream:
        endpoint = Endpoint(upstream.base_url, f" {KEY}\n")
        await ask(connections, endpoint, payload)
        (request,) = upstream.requests
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["Authorization"] == f"Bearer {KEY}"
    assert request.headers["Content-Type"] == "application/json"
    # What is packed could be of any size.
    assert request.headers["Accept-Encoding"] == "identity"
    assert upstream.bodies == [payload]


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (429, '{"error": {"type": "insufficient_quota"}}', "credit"),
        (
            400,
            json.dumps({"error": dict.fromkeys(FIELDS, CANARY)}),
            "HTTP 400. An admin",
        ),
        (400, "[" * 70_000, "HTTP 400. An admin"),
    ],
)
async def test_bad_status_has_a_message_that_quotes_nothing(
    connections: Connections, status: int, text: str, words: str
) -> None:
    refused = await error_of(connections, ApiRefused, replying(text, status))
    assert words in str(refused)
    assert refused.status == status
    assert CANARY not in f"{refused} {refused!r}"
    assert refused.__cause__ is None


async def test_refusal_in_pieces(connections: Connections) -> None:
    """A body that does not come at once is read to its end: the code decides much."""

    async def answer(request: web.Request) -> web.StreamResponse:
        body = web.StreamResponse(status=429)
        body.content_type = "application/json"
        await body.prepare(request)
        for piece in ('{"error": {"code": "insuff', 'icient_quota"', "}}"):
            await body.write(piece.encode())
            await asyncio.sleep(0.01)  # so that each arrives on its own
        return body

    async with Upstream(answer) as upstream:
        for _ in range(2):
            with pytest.raises(ApiRefused, match="no credit") as refused:
                await ask(connections, upstream.endpoint)
        assert refused.value.error.code == "insufficient_quota"
        assert len(upstream.connections) == 1


@pytest.mark.parametrize(("size", "param"), [(70_000, "input[0].id"), (2**20, None)])
async def test_refusal_that_repeats_the_chat_is_read_up_to_a_megabyte(
    connections: Connections, size: int, param: str | None
) -> None:
    """FastAPI, and so vLLM, puts what it refuses into the body."""
    row = {"loc": ["body", "input", 0, "id"], "msg": "Bad.", "input": "x" * size}
    body = json.dumps({"detail": [row]})
    refused = await error_of(connections, ApiRefused, replying(body, 400))
    assert refused.error.param == param


async def test_refusal_of_many_megabytes(connections: Connections) -> None:
    """Only its beginning is read; the rest is what fits into the network's buffers."""
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        page = await started(request, 502)
        while True:
            await page.write(b"x" * 100_000)
            sent += 100_000

    async with Upstream(answer) as upstream, asyncio.timeout(60):
        with pytest.raises(ApiRefused, match="HTTP 502"):
            await ask(connections, upstream.endpoint)
        await upstream.left.wait()
    assert sent < 16_000_000


def rate_limits(**of: tuple[str, str]) -> dict[str, str]:
    """OpenAI's headers: what remains of each limit, and when it is whole again."""
    headers: dict[str, str] = {}
    for limit, (remaining, reset) in of.items():
        headers[f"x-ratelimit-remaining-{limit}"] = remaining
        headers[f"x-ratelimit-reset-{limit}"] = reset
    return headers


@pytest.mark.parametrize(
    ("status", "headers", "after"),
    [
        (503, {}, None),
        (503, {"Retry-After": "7"}, 7.0),
        (503, {"Retry-After-Ms": "0"}, 0.0),
        (503, {"Retry-After": "0.25"}, 0.25),
        (503, {"Retry-After-Ms": "1500", "Retry-After": "7"}, 1.5),
        (503, {"Retry-After": "Mon, 16 Nov 2026 13:06:50 GMT"}, 0.0),
        (503, {"Retry-After": "16 Nov 2026 13:06:50 +9999999999999"}, None),
        (503, {"Retry-After": f"Mon, 16 Nov {'9' * 20} 13:06:50 GMT"}, None),
        (503, {"Retry-After": f"Mon, 16 Nov 2026 13:06:50 +{'9' * 20}"}, None),
        *((503, {"Retry-After": odd}, None) for odd in ("soon", "-3", "nan", "inf")),
        # Not a limit of which something remains, nor where no limit was reached.
        (429, rate_limits(requests=("0", "2s"), tokens=("900", "6m0s")), 2.0),
        (429, rate_limits(requests=("9", "2s"), tokens=("0", "6m0s")), 360.0),
        (429, rate_limits(requests=("0", "2s"), tokens=("0", "6m0s")), 360.0),
        (429, rate_limits(requests=("9", "2s"), tokens=("900", "6m0s")), None),
        (429, {**rate_limits(requests=("0", "2s")), "Retry-After": "7"}, 7.0),
        (503, rate_limits(requests=("0", "2s")), None),
        (429, {"X-RateLimit-Reset": "9"}, 9.0),
        (429, {"X-RateLimit-Reset": "1000000001"}, 0.0),
        (429, {"X-RateLimit-Reset": "later"}, None),
        (429, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9"}, 9.0),
        (429, {"X-RateLimit-Remaining": "40", "X-RateLimit-Reset": "3600"}, None),
    ],
)
async def test_wait_is_read_from_the_headers_of_a_refusal(
    connections: Connections, status: int, headers: dict[str, str], after: float | None
) -> None:
    """Milliseconds, seconds, a date, or what is left of a limit; nonsense is no wish."""
    answer = replying("", status, headers=headers)
    refused = await error_of(connections, ApiRefused, answer)
    assert (refused.status, refused.failure.retry_after) == (status, after)
    assert refused.failure.should_retry is None
    assert refused.request_id == ""


@pytest.mark.parametrize(
    ("word", "wanted", "sent", "name"),
    [("false", False, "req_1", "req_1"), ("True", True, f"req_1 {CANARY}", "")],
)
async def test_wish_of_the_server_and_the_id_of_its_answer(
    connections: Connections, word: str, wanted: bool, sent: str, name: str
) -> None:
    """The log shows the id, so none counts that has more in its header."""
    headers = {"X-Should-Retry": word, "X-Request-Id": sent}
    answer = replying("", 503, headers=headers)
    refused = await error_of(connections, ApiRefused, answer)
    assert (refused.failure.should_retry, refused.request_id) == (wanted, name)


async def test_date_without_a_zone_is_no_local_time(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its wait is the same on a server that is twelve hours away from UTC."""
    in_2100 = "Fri, 01 Jan 2100 "
    waits: list[float] = []
    monkeypatch.setenv("TZ", "Etc/GMT+12")
    time.tzset()
    for at in ("00:00:00 GMT", "00:00:00 -0000", "00:00:00", "12:00:00 +1200"):
        answer = replying("", 503, headers={"Retry-After": in_2100 + at})
        waits.append(
            (await error_of(connections, ApiRefused, answer)).failure.retry_after or 0
        )
    monkeypatch.undo()
    time.tzset()
    assert max(waits) - min(waits) < 3600


BUSY = '{"error": {"message": "Busy", "retry_after": 7}}'


@pytest.mark.parametrize(
    ("error", "after"),
    [
        ({"metadata": {"headers": {"X-RateLimit-Reset": "1000000000001"}}}, 0.0),
        ({"metadata": {"raw": BUSY, "headers": {"X-RateLimit-Reset": "9"}}}, 9.0),
        ({"metadata": {"raw": BUSY}}, 7.0),
        ({"resets_in_seconds": 12000}, 12000.0),
        ({"retry_after": 2520}, 2520.0),
        ({"reset_seconds": 561635, "reset_time": "156h0m34s"}, 561635.0),
        ({"retry_after": "nan", "resets_in_seconds": True}, None),
        ({"details": [{"@type": "Help"}, {"retryDelay": "37.5s"}]}, 37.5),
        ({"details": [{"retryDelay": "soon"}, 7]}, None),
        ({"message": "Try again in 5 s", "retry_after": 2520}, 5.0),
        ({"retry_after": 0, "resets_in_seconds": 12000}, 0.0),
    ],
)
async def test_limit_in_the_error_is_waited_for(
    connections: Connections, error: dict[str, Any], after: float | None
) -> None:
    """OpenRouter, Codex's own server and gateways send no header."""
    answer = replying(json.dumps({"error": {"code": 429, **error}}), 429)
    refused = await error_of(connections, ApiRefused, answer)
    assert refused.failure.retry_after == after


@pytest.mark.parametrize("key", ["sk-a\nsk-b", "sk-a\r\nX-Evil: 1", "sk-\x00"])
async def test_key_that_no_header_can_hold(connections: Connections, key: str) -> None:
    """A line break inside the key is told before anything is sent."""
    async with Upstream(replying("{}")) as upstream:
        with pytest.raises(InvalidRequest, match="invalid character") as refused:
            await ask(connections, Endpoint(upstream.base_url, key))
        assert upstream.requests == []
    assert "api_key" in refused.value.fault.settings
    assert key not in str(refused.value)


@pytest.mark.parametrize("host", ["...", "a" * 70 + ".tld"])
async def test_host_that_no_name_server_takes(
    connections: Connections, host: str
) -> None:
    with pytest.raises(ResponsesError) as refused:
        await ask(connections, Endpoint(f"http://{host}/v1", KEY))
    assert "base_url" in refused.value.fault.settings


@pytest.mark.parametrize(
    ("answer", "error", "words"),
    [
        (hang_up, ConnectionFailed, "cannot be reached"),
        (breaking(b'{"output": ['), ConnectionFailed, "broke"),
        (breaking(b'{"error"', status=429), ApiRefused, "rate limit"),
    ],
    ids=["hangs up", "breaks off", "a refusal breaks off"],
)
async def test_broken_connection(
    connections: Connections, answer: Answerer, error: type[ResponsesError], words: str
) -> None:
    assert words in str(await error_of(connections, error, answer))


@pytest.mark.parametrize(
    ("body", "may_pass"),
    [
        pytest.param("", True, id="nothing"),
        pytest.param(" \n", True, id="white space"),
        pytest.param("<html>Hi</html>", False, id="a page"),
        pytest.param("[]", False, id="a list"),
        pytest.param('{"code":5003,"data":{}}', False, id="of another API"),
        *(  # what a portal says of no failure
            (json.dumps({"code": code, "msg": "success", "data": {}}), False)
            for code in (0, "0", 200, "200", "", None)
        ),
        pytest.param('{"message":"Hello"}', False, id="a greeting"),
        pytest.param('{"choices": [], "error": null}', False, id="Chat Completions"),
        pytest.param('{"output":' + "[" * 500 + "]" * 500 + "}", False, id="deep"),
        pytest.param(b"\xff\xff\xff", False, id="no UTF-8"),
    ],
)
async def test_answer_that_is_none(
    connections: Connections, body: str | bytes, may_pass: bool
) -> None:
    """A proxy whose server went away writes an empty one, which is worth another try."""
    error = await error_of(connections, UnreadableAnswer, replying(body))
    assert "did not answer like the Responses API" in str(error)
    assert (error.failure is not None) is may_pass


@pytest.mark.parametrize(
    "body",
    [
        {"error": "No"},
        {"object": "error", "message": "No"},
        {"object": "chat.completion", "error": {"message": "No"}},
        {"success": False, "message": "No", "data": None},
        {"code": 5003, "msg": "No", "data": None},
    ],
)
async def test_each_form_of_an_error_with_status_200(
    connections: Connections, body: dict[str, object]
) -> None:
    refused = await error_of(connections, ApiRefused, replying(json.dumps(body)))
    assert refused.error == ApiError(message="No")


@pytest.mark.parametrize(
    ("rest", "opened"),
    [(streaming(b"a"), 1), (breaking(b"a"), 2), (stalling(b"a"), 2)],
    ids=["ends", "breaks", "never ends"],
)
async def test_drained_answer_frees_the_connection(
    connections: Connections, rest: Answerer, opened: int
) -> None:
    now = asyncio.get_running_loop().time
    async with Upstream(rest) as upstream:
        for _ in range(2):
            async with post(connections, upstream.endpoint) as answer:
                began = now()
                await answer.drain()
                assert now() - began <= 1.1
        assert len(upstream.connections) == opened


async def test_refusal_whose_body_never_ends_is_waited_for_a_moment(
    connections: Connections,
) -> None:
    """People wait for its status, which is there."""

    async def refuse(request: web.Request) -> web.StreamResponse:
        stream = await started(request, 503)
        await asyncio.sleep(3600)
        return stream

    now = asyncio.get_running_loop().time
    async with Upstream(refuse) as upstream:
        began = now()
        with pytest.raises(ApiRefused) as refused:
            await ask(connections, upstream.endpoint)
        assert now() - began <= 1.1
    assert refused.value.status == 503


@pytest.mark.parametrize("status", [202, 204, 206])
async def test_what_is_asked_for_comes_with_200(
    connections: Connections, status: int
) -> None:
    """A list or a file that is not there has no other good status; it is no redirection."""
    limits = Deadlines(Timeouts())
    async with Upstream(replying("", status=status)) as upstream:
        with pytest.raises(UnreadableAnswer) as refused:
            async with connections.request(upstream.endpoint, "/models", None, limits):
                pass

    assert str(refused.value) == UNREADABLE.message
    assert refused.value.fault.settings == UNREADABLE.fault.settings


async def test_bytes_before_a_broken_connection_are_kept(
    connections: Connections,
) -> None:
    """What came is not lost, even if no one had read it when the connection broke."""
    async with (
        asyncio.timeout(60),
        Upstream(breaking(b"data: 1\n\n")) as upstream,
        post(connections, upstream.endpoint) as answer,
    ):
        await upstream.broken.wait()
        await asyncio.sleep(0.01)  # so that the client learns of it
        assert await answer.read_any() == b"data: 1\n\n"
        with pytest.raises(ConnectionFailed, match="broke"):
            await answer.read_any()


async def test_server_that_never_shakes_hands(connections: Connections) -> None:
    async def nothing(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.read()
        writer.close()

    async with await asyncio.start_server(nothing, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = Endpoint(f"https://127.0.0.1:{port}/v1", KEY)
        limits = Deadlines(Timeouts(connect=0.05))
        async with asyncio.timeout(60):
            with pytest.raises(ConnectionFailed, match="cannot be reached"):
                async with connections.request(
                    endpoint, "/responses", QUESTION, limits
                ):
                    pass


async def test_limit_between_events_ends_a_silent_stream(
    connections: Connections,
) -> None:
    """A chunk alone is no event: only who reads them knows that one arrived."""
    async with Upstream(stalling(b": hello\n\n")) as upstream, asyncio.timeout(60):
        limits = Deadlines(Timeouts(first_event=0.1, idle=0.05))
        request = connections.request(upstream.endpoint, "/responses", QUESTION, limits)
        async with request as answer:
            assert await answer.read_any() == b": hello\n\n"
            limits.event_arrived()
            with pytest.raises(TimedOut, match="did not answer in time") as late:
                await answer.read_any()
        assert late.value.ending[0] == "idle_timeout"
