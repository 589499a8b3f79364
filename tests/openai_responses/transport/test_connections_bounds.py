"""What a hostile server cannot do with one answer: fill the memory, send the key on."""

import asyncio
import json
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from aiohttp import web

from openai_responses.endpoint import Endpoint
from openai_responses.errors import AnswerTooLarge, ApiRefused
from openai_responses.json_input import MAX_JSON_BYTES
from openai_responses.transport.connections import Connections, _encode, container_file
from openai_responses.transport.deadlines import Deadlines, Timeouts
from runs.against_server import end_of, limits, report
from shells.model_list import fetch_models
from upstream.server import KEY, Answerer, Upstream, ask, post, replying

pytestmark = pytest.mark.asyncio

MEGABYTE = 1 << 20


GZIP = {"Content-Encoding": "gzip"}


def bomb(megabytes: int, piece: bytes) -> bytes:
    """Return that many megabytes of a piece in a few kilobytes."""
    packer = zlib.compressobj(wbits=31)
    text = piece * (MEGABYTE // len(piece))
    packed = [packer.compress(text) for _ in range(megabytes)]
    return b"".join([*packed, packer.flush()])


async def test_nothing_compressed_is_asked_for(connections: Connections) -> None:
    """Neither for an answer nor for a file: what is packed could be of any size."""
    async with Upstream(replying('{"output": []}')) as upstream:
        await ask(connections, upstream.endpoint)
        await container_file(
            upstream.endpoint, connections, ("c", "f"), 99, Deadlines(Timeouts())
        )
    encodings = [request.headers["Accept-Encoding"] for request in upstream.requests]
    assert encodings == ["identity", "identity"]


async def test_packed_stream_stops_at_its_limit(connections: Connections) -> None:
    """Megabytes of events in a few kilobytes take no memory."""
    packed = bomb(20, b'data: {"type":"keepalive"}\n\n')
    within = limits(2)._replace(most_bytes=2 * MEGABYTE)
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        tracemalloc.start()
        events = await report(connections, upstream.endpoint, within=within)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(upstream.requests) == 1
    assert "more data than is accepted" in end_of(events).ending.message
    assert len(packed) < MEGABYTE
    assert held < 8 * MEGABYTE


async def test_packed_object_stops_at_its_limit(connections: Connections) -> None:
    """As one that is not packed: what it becomes counts."""
    packed = bomb(80, b'{"output": "')
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        tracemalloc.start()
        with pytest.raises(AnswerTooLarge):
            await ask(connections, upstream.endpoint)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert held < 2 * MAX_JSON_BYTES


async def test_packed_white_space_stops_at_its_limit(connections: Connections) -> None:
    """It is read until the first letter says what the body is."""
    packed = bomb(80, b" \n")
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        tracemalloc.start()
        async with post(connections, upstream.endpoint) as answer:
            with pytest.raises(AnswerTooLarge):
                await answer.is_stream()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert held < 4 * MEGABYTE


async def test_packed_refusal_stops_at_its_limit(connections: Connections) -> None:
    """A bomb is not unpacked whole: the status alone names the ending."""
    packed = bomb(20, b'{"error": "')
    async with Upstream(replying(packed, 503, headers=GZIP)) as upstream:
        tracemalloc.start()
        with pytest.raises(ApiRefused, match="overloaded"):
            await ask(connections, upstream.endpoint)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert held < 4 * MEGABYTE


async def test_packed_rest_of_an_answer_stops_at_its_limit(
    connections: Connections,
) -> None:
    """What follows the end is read for a moment only, and kept as little."""
    packed = bomb(300, b'data: {"type":"keepalive"}\n\n')
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        tracemalloc.start()
        async with asyncio.timeout(60), post(connections, upstream.endpoint) as answer:
            rest = await answer.drain()
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert rest.startswith(b'data: {"type":"keepalive"}')
    assert held < 4 * MEGABYTE


async def test_others_run_while_a_bomb_is_unpacked(connections: Connections) -> None:
    """Each piece takes a moment; a hundred of them would stop all chats."""
    packed = bomb(50, b'data: {"type":"keepalive"}\n\n')
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


def too_long() -> Iterator[tuple[str, bytes]]:
    """Yield bodies that are more than an answer can be."""
    yield "long", b'{"output": [], "x": "' + b"x" * MAX_JSON_BYTES + b'"}'
    yield "heavy", b'{"output": [' + b"[]," * (10 * MEGABYTE) + b"0]}"


@pytest.mark.parametrize("case", ["long", "heavy"])
async def test_oversized_object_is_refused_before_it_is_parsed(
    connections: Connections, case: str
) -> None:
    """It is refused before it is parsed; the parsed one would be many times as much."""
    body = dict(too_long())[case]
    async with Upstream(replying(body)) as upstream:
        tracemalloc.start()
        with pytest.raises(AnswerTooLarge):
            await ask(connections, upstream.endpoint)
        held = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    # The server of the test and its buffers are in the same process.
    assert held < 6 * len(body)


async def test_endless_list_of_models(connections: Connections) -> None:
    """It is left at its limit."""

    async def endless(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse()
        await stream.prepare(request)
        while True:
            await stream.write(b'{"id":"m"},' * 10_000)

    async with Upstream(endless) as upstream:
        with pytest.raises(AnswerTooLarge):
            await fetch_models(upstream.endpoint, connections)
        await upstream.left.wait()


# ----------------------------------------------------------------- redirections


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
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        body = await _encode({"model": "m", "input": items})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert json.loads(body)["input"] == items
    assert peak - before < 2.5 * len(document)


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
