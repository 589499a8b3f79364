"""What a hostile server cannot do with one answer: fill the memory, send the key on."""

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from aiohttp import web

from openai_responses.endpoint import Endpoint
from openai_responses.errors import AnswerTooLarge, ApiRefused
from openai_responses.json_input import MAX_JSON_BYTES
from openai_responses.transport.connections import Connections, _encode
from runs.against_server import end_of, limits, report
from shells.model_list import fetch_models
from upstream.server import KEY, Answerer, Upstream, ask, post, replying

pytestmark = pytest.mark.asyncio

MEGABYTE = 1 << 20


GZIP = {"Content-Encoding": "gzip"}
EVENT = b'data: {"type":"keepalive"}\n\n'


def bomb(megabytes: int, piece: bytes) -> bytes:
    """Return that many megabytes of a piece in a few kilobytes."""
    packer = zlib.compressobj(wbits=31)
    text = piece * (MEGABYTE // len(piece))
    packed = [packer.compress(text) for _ in range(megabytes)]
    return b"".join([*packed, packer.flush()])


@contextmanager
def held_at_most(held: float) -> Iterator[None]:
    """Say how many bytes what is done may hold at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < held
    finally:
        tracemalloc.stop()


async def test_packed_stream_stops_at_its_limit(connections: Connections) -> None:
    """Megabytes of events in a few kilobytes take no memory."""
    packed = bomb(20, EVENT)
    within = limits(2)._replace(most_bytes=2 * MEGABYTE)
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        with held_at_most(8 * MEGABYTE):
            events = await report(connections, upstream.endpoint, within=within)
        assert len(upstream.requests) == 1
    assert "more data than is accepted" in end_of(events).ending.message
    assert len(packed) < MEGABYTE


@pytest.mark.parametrize(
    ("piece", "status", "error", "held"),
    [
        pytest.param(
            b'{"output": "', 200, AnswerTooLarge, 2 * MAX_JSON_BYTES, id="an object"
        ),
        pytest.param(b'{"error": "', 503, ApiRefused, 4 * MEGABYTE, id="a refusal"),
    ],
)
async def test_packed_body_stops_at_its_limit(
    connections: Connections,
    piece: bytes,
    status: int,
    error: type[Exception],
    held: float,
) -> None:
    """As one that is not packed: what it becomes counts."""
    packed = bomb(80, piece)
    async with Upstream(replying(packed, status, headers=GZIP)) as upstream:
        with held_at_most(held), pytest.raises(error):
            await ask(connections, upstream.endpoint)


async def test_packed_white_space_stops_at_its_limit(connections: Connections) -> None:
    """It is read until the first letter says what the body is."""
    async with Upstream(replying(bomb(80, b" \n"), headers=GZIP)) as upstream:
        with held_at_most(4 * MEGABYTE):
            async with post(connections, upstream.endpoint) as answer:
                with pytest.raises(AnswerTooLarge):
                    await answer.is_stream()


async def test_packed_rest_of_an_answer_stops_at_its_limit(
    connections: Connections,
) -> None:
    """What follows the end is read for a moment only, and kept as little."""
    packed = bomb(300, EVENT)
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        with held_at_most(4 * MEGABYTE):
            async with (
                asyncio.timeout(60),
                post(connections, upstream.endpoint) as answer,
            ):
                rest = await answer.drain()
    assert rest.startswith(EVENT.strip())


async def test_others_run_while_a_bomb_is_unpacked(connections: Connections) -> None:
    """Each piece takes a moment; a hundred of them would stop all chats."""
    packed = bomb(50, EVENT)
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with (
        Upstream(replying(packed, headers=GZIP)) as upstream,
        post(connections, upstream.endpoint) as answer,
    ):
        assert await answer.is_stream()
        other = asyncio.create_task(count())
        pieces = 0
        while await answer.read_any():
            pieces += 1
        other.cancel()
    assert pieces >= 100
    assert turns >= pieces - 5  # the first one of a chunk had to be waited for anyway


async def test_empty_blocks_without_an_end(connections: Connections) -> None:
    """A packed stream can go on without a word; what arrives counts, too."""
    packer = zlib.compressobj(wbits=31)
    begin = packer.compress(b"data: 1") + packer.flush(zlib.Z_SYNC_FLUSH)

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers=GZIP)
        await stream.prepare(request)
        await stream.write(begin)
        while True:
            await stream.write(b"\x00\x00\x00\xff\xff" * 1_000_000)

    async with Upstream(answer) as upstream:
        async with post(connections, upstream.endpoint) as opened:
            assert await opened.read_any() == b"data: 1"
            with pytest.raises(AnswerTooLarge):
                await opened.read_any()
        await upstream.left.wait()


LONG = (b'{"output": [], "x": "', b"x", MAX_JSON_BYTES, b'"}')
HEAVY = (b'{"output": [', b"[],", 10 * MEGABYTE, b"0]}")


@pytest.mark.parametrize(
    ("begin", "piece", "count", "end"), [LONG, HEAVY], ids=["long", "heavy"]
)
async def test_oversized_object_is_refused_before_it_is_parsed(
    connections: Connections, begin: bytes, piece: bytes, count: int, end: bytes
) -> None:
    """The parsed one would be many times as much."""
    body = begin + piece * count + end
    async with Upstream(replying(body)) as upstream:
        # The server of the test and its buffers are in the same process.
        with held_at_most(6 * len(body)), pytest.raises(AnswerTooLarge):
            await ask(connections, upstream.endpoint)


async def test_endless_list_of_models(connections: Connections) -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        while True:
            await stream.write(b'{"id":"m"},' * 10_000)

    async with Upstream(endless) as upstream:
        with pytest.raises(AnswerTooLarge):
            await fetch_models(upstream.endpoint, connections)
        await upstream.left.wait()


def moved(location: str, status: int) -> Answerer:
    """Send every request on."""
    error = json.dumps({"error": {"code": "server_error", "message": "Moved."}})
    return replying(error, status, headers={"Location": location})


@pytest.mark.parametrize("status", [300, 302, 304, 307, 308])
async def test_no_redirection_is_followed(
    connections: Connections, status: int
) -> None:
    """Chat, key and headers go to its address alone; the error says what to check."""
    async with Upstream(replying('{"output": []}')) as thief:
        async with Upstream(moved(thief.base_url, status)) as upstream:
            endpoint = Endpoint(
                upstream.base_url, KEY, extra_headers={"X-Gateway-Key": "secret"}
            )
            with pytest.raises(ApiRefused) as refused:
                await ask(connections, endpoint)
            assert len(upstream.requests) == 1
        assert thief.requests == []
    assert f"redirects requests (HTTP {status})" in str(refused.value)
    assert refused.value.fault.settings == ("base_url",)
    assert refused.value.failure.error.code is None
    assert "127.0.0.1" not in str(refused.value)


async def test_redirected_cancellation_is_not_followed(
    connections: Connections,
) -> None:
    """A request whose result no one reads has the key, too."""
    async with Upstream(replying("{}")) as thief:
        async with Upstream(moved(thief.base_url, 307)) as upstream:
            connections.do_later(
                connections.post_quietly(upstream.endpoint, "/responses/resp_1/cancel")
            )
            await connections.close()
            assert len(upstream.requests) == 1
        assert thief.requests == []


async def test_large_document_is_copied_once_to_be_sent() -> None:
    """A document of 45 MB took 240 MB while its request was written."""
    document = "x" * 8_000_000
    part = {"type": "input_file", "filename": "a.pdf", "file_data": document}
    items = [{"role": "user", "content": [part]}]
    with held_at_most(2.5 * len(document)):
        body = await _encode({"model": "m", "input": items})

    assert json.loads(body)["input"] == items


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
async def test_request_of_any_length_is_whole(count: int) -> None:
    """It is written in pieces, between which others run."""
    items = [
        {"role": "user", "content": f"Äß\ud800 {number}"} for number in range(count)
    ]

    body = await _encode({"model": "m", "input": items, "stream": True})

    sent = json.loads(body)
    assert (sent["model"], sent["stream"]) == ("m", True)
    texts = [item["content"] for item in sent["input"]]
    assert texts == [f"Äß? {number}" for number in range(count)]
