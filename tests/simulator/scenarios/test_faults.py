"""What breaks, breaks as it was asked to."""

import asyncio

import aiohttp
import pytest

from upstream.server import until
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

INVALID = "invalid_request_error"


async def wire(client: Client, text: str) -> tuple[bytes, list[bytes]]:
    """Return the bytes of a stream, and the chunks in which they came."""
    async with client.open_stream(text) as answer:
        chunks = [chunk async for chunk, _ in answer.content.iter_chunks()]
    return b"".join(chunks), chunks


async def test_a_dropped_connection(client: Client) -> None:
    """drop aborts the connection in the middle of an event."""
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.stream("sim:drop")


async def test_a_stalled_stream_is_left_by_the_client(client: Client) -> None:
    """stall keeps the connection open; that the client leaves is recorded."""
    sim = client.simulator
    async with client.open_stream("sim:stall") as answer:
        await answer.content.readuntil(b"output_text.delta")
        assert sim.open_streams == 1
        answer.close()
    left = await sim.closed_early()

    assert left.scenario == "stall"
    assert left.finished is False
    assert left.ended_at is not None
    assert sim.open_streams == 0


async def test_held_answer_goes_on_when_it_is_released(client: Client) -> None:
    """hold lets a test decide when; what was forgotten holds again."""
    sim = client.simulator
    for _ in range(2):
        async with client.open_stream("sim:chat,hold=2") as answer:
            await until(lambda: sim.requests[-1].events_sent == 2)
            assert sim.open_streams == 1
            sim.release()
            assert b"event: response.completed" in await answer.read()
        await sim.all_ended()
        assert sim.requests[-1].finished
        sim.forget()


async def test_answers_that_begin_together(client: Client) -> None:
    """The first waits for the last, and another group starts from nothing."""
    sim = client.simulator
    for _ in range(2):
        early = asyncio.create_task(client.stream("sim:short,together=2"))
        waiting = await sim.requested(len(sim.requests) + 1)
        await client.stream("sim:short in the meantime")
        assert (waiting.is_open, waiting.events_sent) == (True, 0)

        events = await asyncio.gather(early, client.stream("sim:short,together=2"))

        assert [answer.status for answer in events] == [200, 200]


async def test_a_stalled_json_answer_is_left_by_the_client(client: Client) -> None:
    """Without a stream the answer may stall too."""
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.2):
            await client.ask("sim:stall")

    assert (await client.simulator.closed_early()).finished is False


async def test_random_chunks_cut_characters(client: Client) -> None:
    """chunks=random cuts inside characters, and loses nothing."""
    raw, chunks = await wire(client, f"sim:chat,chunks=random {'東京🚀' * 20}")

    def is_whole(chunk: bytes) -> bool:
        try:
            chunk.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert not all(is_whole(chunk) for chunk in chunks)
    assert "Zürich" in raw.decode()


async def test_chunks_of_one_byte(client: Client) -> None:
    """chunks=N cuts chunks of N bytes, and loses nothing."""
    raw, chunks = await wire(client, "sim:error-first,chunks=1")

    assert {len(chunk) for chunk in chunks} == {1}
    assert raw.endswith(b"}\n\n")


async def test_a_line_of_a_megabyte(client: Client) -> None:
    """big-line holds one line longer than a million bytes."""
    raw, _ = await wire(client, "sim:big-line")

    assert max(map(len, raw.split(b"\n"))) > 1_000_000


async def test_attempts_that_fail(client: Client) -> None:
    """times=N refuses the first N attempts of one request, each time anew."""
    body = client.body("sim:503,times=2,retry-after=0.1")
    statuses = [(await client.post(body)).status for _ in range(6)]
    refused = await client.post(body)

    assert statuses == [503, 503, 200, 503, 503, 200]
    assert refused.headers["Retry-After"] == "0.1"
    assert refused.error["code"] == "server_is_overloaded"


async def test_other_headers_of_a_refusal(client: Client) -> None:
    """Retry-After-Ms and X-Should-Retry can be asked for."""
    reply = await client.post(
        client.body("sim:429,retry-after-ms=5,should-retry=false")
    )

    assert reply.headers["Retry-After-Ms"] == "5"
    assert reply.headers["X-Should-Retry"] == "false"


async def test_a_status_on_any_scenario(client: Client) -> None:
    """status=CODE goes with every scenario; without Retry-After none is sent."""
    body = client.body("sim:refusal,status=429,times=1")
    first = await client.post(body)
    second = await client.post(body)

    assert (first.status, first.error["code"]) == (429, "rate_limit_exceeded")
    assert "Retry-After" not in first.headers
    assert second.body["output"][1]["content"][0]["type"] == "refusal"


@pytest.mark.parametrize(
    ("name", "status", "type", "code"),
    [
        ("429", 429, "requests", "rate_limit_exceeded"),
        ("500", 500, "server_error", "server_error"),
        ("503", 503, "service_unavailable_error", "server_is_overloaded"),
        ("quota", 429, "insufficient_quota", "insufficient_quota"),
        ("spend-limit", 429, "insufficient_quota", "organization_spend_limit_exceeded"),
        ("json-error-200", 200, "server_error", "server_error"),
        ("misaligned-first", 403, INVALID, "misalignment_policy_violation"),
        ("cyber-400", 400, INVALID, "cyber_policy"),
        ("cyber-403", 403, INVALID, "cyber_policy"),
        ("too-large-first", 429, "tokens", "rate_limit_exceeded"),
        ("prompt-filtered", 400, None, "content_filter"),
    ],
)
async def test_errors_before_a_response(
    client: Client, name: str, status: int, type: str | None, code: str
) -> None:
    """Each has its status, type and code, also when a stream was asked for."""
    for stream in (True, False):
        reply = await client.post(client.body(f"sim:{name}", stream=stream))

        assert reply.status == status
        assert (reply.error["type"], reply.error["code"]) == (type, code)
        assert client.simulator.requests[-1].response == reply.body


async def test_the_flex_tier_alone_has_no_capacity(client: Client) -> None:
    """The same request without the tier is answered."""
    body = client.body("sim:flex-unavailable")
    refused = await client.post({**body, "service_tier": "flex"})
    assert (refused.status, refused.error["code"]) == (429, "flex_unavailable")
    assert (await client.post(body)).status == 200


async def test_a_wrong_key_of_xai(client: Client) -> None:
    """The words are where others have an object."""
    reply = await client.post(client.body("sim:xai-key"))
    assert reply.status == 400
    assert reply.body["error"].startswith("Incorrect API key provided")


async def test_answers_that_are_no_json(client: Client) -> None:
    """A gateway's page is a page."""
    reply = await client.post(client.body("sim:html-error"))

    assert reply.status == 502
    assert reply.headers["Content-Type"].startswith("text/html")
    assert reply.raw.startswith(b"<html>")


async def test_an_error_without_a_stream(client: Client) -> None:
    """Without a stream an error event is a 500."""
    reply = await client.post(client.body("sim:error-nested"))

    assert (reply.status, reply.error["type"]) == (500, "server_error")


@pytest.mark.parametrize("kind", ["line", "comments", "lines", "events", "drip"])
async def test_a_stream_without_an_end(client: Client, kind: str) -> None:
    """endless goes on, in the form that was asked for, until the client leaves."""
    sim = client.simulator
    size = 100 if kind == "drip" else 1_000_000
    async with client.open_stream(f"sim:chat,endless=60,of={kind}") as answer:
        while size > 0:
            size -= len(await answer.content.readany())
        answer.close()
    left = await sim.closed_early()

    assert left.events_sent == 60
    assert left.finished is False


@pytest.mark.parametrize("stream", [True, False])
async def test_gzip_compresses_although_nobody_accepts_it(
    client: Client, stream: bool
) -> None:
    """gzip compresses the body although the client accepts none."""
    sent = client.body("sim:chat,gzip", stream=stream)
    reply = await client.post(sent, **{"Accept-Encoding": "identity"})

    assert reply.headers["Content-Encoding"] == "gzip"
    assert reply.text
