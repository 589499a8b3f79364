"""What a body is, its first bytes say, and no body fills the memory or sends the key on."""

import asyncio
import gzip
import json
import struct
import time
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

from openai_responses.endpoint import Endpoint
from openai_responses.errors import (
    AnswerTooLarge,
    ApiRefused,
    ConnectionFailed,
    UnreadableAnswer,
)
from openai_responses.json_input import MAX_JSON_BYTES
from openai_responses.transport.connections import (
    Connections,
    HttpResponse,
    _encode,
    container_file,
)
from openai_responses.transport.deadlines import Deadlines, Timeouts
from runs.against_server import Runs, limits
from shells.model_list import fetch_models
from upstream import wire
from upstream.odd_streams import ANSWER, stream_of
from upstream.server import (
    KEY,
    Answerer,
    Upstream,
    ask,
    error_of,
    in_turn,
    post,
    replying,
)

pytestmark = pytest.mark.asyncio

STREAM = stream_of("empty-data-between")
WHOLE = json.dumps(wire.completed(wire.message_item(ANSWER))["response"]).encode()
UNPAID = {"code": "insufficient_quota", "message": "Pay!"}
ERROR = json.dumps({"error": UNPAID}).encode()
JSON = "application/json"
LABELS = ("text/event-stream", JSON, "text/html", "event stream", "", None)


@asynccontextmanager
async def serving(
    body: bytes, label: str | None, *headers: tuple[str, str]
) -> AsyncIterator[Endpoint]:
    """Serve a body byte by byte, under headers as they are given."""
    head = [("Connection", "close"), *headers]
    if label is not None:
        head.append(("Content-Type", label))
    lines = "".join(f"{name}: {value}\r\n" for name, value in head)

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n{lines}\r\n".encode())
        for at in range(len(body)):
            writer.write(body[at : at + 1])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield Endpoint(f"http://127.0.0.1:{port}/v1", KEY)


@pytest.mark.parametrize(
    ("body", "skipped"), [(STREAM, {"empty": 5}), (WHOLE, {})], ids=["stream", "whole"]
)
@pytest.mark.parametrize(
    ("label", "before"),
    [
        *((label, b"") for label in LABELS),
        *((None, before) for before in (b"\xef\xbb\xbf", b"\n\r\n ")),
    ],
)
async def test_answer_under_any_label(
    runs: Runs, label: str | None, before: bytes, body: bytes, skipped: dict[str, int]
) -> None:
    async with serving(before + body, label) as endpoint:
        told = await runs.at(endpoint)
    assert (told.kind, told.text) == ("completed", ANSWER)
    assert told.end.trace.skipped == skipped


@pytest.mark.parametrize(
    "rest", ['"' * 60_000, "(" * 20_000], ids=["quotes", "brackets"]
)
async def test_label_without_an_end_is_not_read(runs: Runs, rest: str) -> None:
    """As the label of a mail, one took half a minute, and the other was too deep."""
    label = f"{JSON};{rest}"
    begin = time.process_time()
    async with serving(WHOLE, label) as endpoint:
        told = await runs.at(endpoint)
    assert told.text == ANSWER
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("label", LABELS)
async def test_error_under_any_label(runs: Runs, label: str | None) -> None:
    """It has the status 200, and it is told."""
    async with serving(ERROR, label) as endpoint:
        told = await runs.at(endpoint)
    assert (told.kind, told.ending.code) == ("refused", "insufficient_quota")


@pytest.mark.parametrize("label", ["text/event-stream", "text/html", None])
@pytest.mark.parametrize("page", [b"\n<!DOCTYPE html>", b"[]"])
async def test_page_under_any_label(runs: Runs, label: str | None, page: bytes) -> None:
    """Nothing passes that would be asked for again."""
    async with serving(page, label) as endpoint:
        told = await runs.at(endpoint, limits(2))
    assert told.log == ["run unreadable"]


@pytest.mark.parametrize(
    ("text", "label", "is_stream"),
    [
        *((text, "text/plain", False) for text in (b"Not here", b"data", b"ever")),
        (b": hi\n", "text/plain", True),
        (b"Not here", "Text/Event-Stream", True),
    ],
)
async def test_words_under_another_label(
    connections: Connections, text: bytes, label: str, is_stream: bool
) -> None:
    """They are no stream, although some begin like one."""
    async with (
        Upstream(replying(text, content_type=label)) as upstream,
        post(connections, upstream.endpoint) as answer,
    ):
        assert await answer.is_stream() is is_stream
        assert not answer.is_read
        assert await answer.read_any() == text
        assert await answer.read_any() == b""
        assert answer.is_read


def flushing() -> Callable[[bytes], bytes]:
    """Return a packer that gives each event as soon as it has it, like a proxy."""
    packer = zlib.compressobj(wbits=31)
    return lambda text: packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)


@pytest.mark.parametrize(
    ("headers", "pack"),
    [
        ({"Content-Type": "text/event-stream"}, bytes),
        ({"Content-Type": "text/plain"}, bytes),
        ({"Content-Encoding": "gzip"}, flushing()),
    ],
    ids=["stream", "text", "packed"],
)
async def test_event_does_not_wait_for_the_next_one(
    connections: Connections, headers: dict[str, str], pack: Callable[[bytes], bytes]
) -> None:
    release = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        stream = web.StreamResponse(headers=headers)
        await stream.prepare(request)
        await stream.write(pack(b"data: 1\n\n"))
        await release.wait()
        await stream.write(pack(b"data: 2\n\n"))
        return stream

    async with (
        asyncio.timeout(60),
        Upstream(answer) as upstream,
        post(connections, upstream.endpoint) as opened,
    ):
        assert await opened.is_stream()
        assert await opened.read_any() == b"data: 1\n\n"
        assert not opened.is_read
        release.set()
        assert await opened.read_any() == b"data: 2\n\n"


GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize("status", [200, 429])
async def test_packed_refusal_is_read(connections: Connections, status: int) -> None:
    """Repairs and messages depend on its code."""
    answer = replying(gzip.compress(ERROR), status, headers=GZIP)
    refused = await error_of(connections, ApiRefused, answer)
    assert "no credit" in str(refused)
    assert refused.error.code == "insufficient_quota"


COMPRESSED = {"Content-Encoding": "compress"}


@pytest.mark.parametrize(
    ("status", "kind", "sent", "words", "settings"),
    [
        (
            *(200, "unreadable", 1, "a compressed answer, which cannot be read"),
            ("base_url", "extra_headers"),
        ),
        (400, "refused", 2, "HTTP 400", ()),
    ],
)
async def test_unknown_kind_of_packing(
    runs: Runs, status: int, kind: str, sent: int, words: str, settings: tuple[str, ...]
) -> None:
    """An answer says so, at once; a refusal has its status, and may pass once."""
    answer = replying(gzip.compress(STREAM), status, headers=COMPRESSED)
    told = await runs.against(answer, within=limits(2))
    assert (told.kind, len(told.sent)) == (kind, sent)
    assert words in told.ending.message
    assert told.ending.fault.settings == settings


@pytest.mark.parametrize(
    ("beginning", "error"),
    [([b"data: 1\n\n"], ConnectionFailed), ([], UnreadableAnswer)],
)
async def test_body_that_is_damaged(
    connections: Connections, beginning: list[bytes], error: type[Exception]
) -> None:
    """What came before is kept: the answer counts as cut."""
    packer = zlib.compressobj(wbits=31)
    good = b"".join(map(packer.compress, beginning)) + packer.flush(zlib.Z_SYNC_FLUSH)
    async with (
        serving(good + b"\xff" * 20, None, *GZIP.items()) as endpoint,
        post(connections, endpoint) as opened,
    ):
        read = [(await opened.read_any())[:1] for _ in beginning]
        assert read == [text[:1] for text in beginning]
        with pytest.raises(error):
            await opened.read_all(99)


@pytest.mark.parametrize(
    ("body", "lost", "sent"), [(WHOLE, 20, 3), (WHOLE, 8, 2), (b"<html>" * 9, 8, 3)]
)
async def test_packed_body_that_is_cut_in_good_order(
    runs: Runs, body: bytes, lost: int, sent: int
) -> None:
    """A file is not taken for whole; an answer is asked for again, if it is no JSON."""
    cut = replying(gzip.compress(body)[:-lost], headers=GZIP)
    limit = Deadlines(Timeouts())
    async with Upstream(in_turn(cut, cut, replying(WHOLE))) as upstream:
        here = upstream.endpoint
        with pytest.raises(ConnectionFailed):
            await container_file(here, runs.connections, "c", "f", 9999, limit)
        told = await runs.at(here, limits(1))
    assert told.kind == "completed"
    assert len(upstream.requests) == sent


async def test_reason_of_a_packed_stream_that_was_refused(runs: Runs) -> None:
    """It comes after the last event, perhaps in the same chunk."""
    first = wire.ended("failed", error=None)
    error = {"type": "error", "error": {"code": "content_filter", "message": "No"}}
    body = gzip.compress(wire.on_the_wire(first, error))
    told = await runs.against(replying(body, headers=GZIP))
    assert told.ending.code == "content_filter"


@pytest.mark.parametrize(
    ("headers", "kind"),
    [
        ({"Content-Security-Policy": "x" * 65_000}, "completed"),
        ({f"X-Header-{number}": "x" * 100 for number in range(490)}, "completed"),
        ({"Content-Security-Policy": "x" * 70_000}, "unreachable"),
        ({f"X-Header-{number}": "x" for number in range(600)}, "unreachable"),
    ],
    ids=["a long line", "many lines", "a line without an end", "lines without an end"],
)
async def test_long_headers_of_a_proxy(
    runs: Runs, headers: dict[str, str], kind: str
) -> None:
    """They are not read, so they must not end an answer; but they have a limit."""
    assert (await runs.against(replying(WHOLE, headers=headers))).kind == kind


MEGABYTE = 1 << 20


EVENT = b'data: {"type":"keepalive"}\n\n'


def bomb(megabytes: int, piece: bytes) -> bytes:
    """Return that many megabytes of a piece in a few kilobytes (RFC 1952).

    The second megabyte refers to nothing in front of it, so it can be repeated.
    """
    packer = zlib.compressobj(wbits=31)
    text = piece * (MEGABYTE // len(piece))
    first, again = (
        packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH) for _ in range(2)
    )
    check = 0
    for _ in range(megabytes):
        check = zlib.crc32(text, check)
    end = struct.pack("<HII", 3, check, megabytes * len(text))
    return first + again * (megabytes - 1) + end


@contextmanager
def held_at_most(held: float) -> Iterator[None]:
    """Say how many bytes what is done may hold at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < held
    finally:
        tracemalloc.stop()


async def test_packed_stream_stops_at_its_limit(runs: Runs) -> None:
    """Megabytes of events in a few kilobytes take no memory."""
    packed = bomb(20, EVENT)
    within = limits(2)._replace(most_bytes=2 * MEGABYTE)
    async with Upstream(replying(packed, headers=GZIP)) as upstream:
        with held_at_most(8 * MEGABYTE):
            told = await runs.at(upstream.endpoint, within)
        assert len(upstream.requests) == 1
    assert "more data than is accepted" in told.ending.message
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


async def test_number_that_no_reader_has_is_null(connections: Connections) -> None:
    """As in an event of a stream."""
    body = '{"output": [{"type": "message", "x": [NaN, -Infinity, 1e999, 2.5]}]}'
    async with Upstream(replying(body)) as upstream:
        response = await ask(connections, upstream.endpoint)
    assert response["output"][0]["x"] == [None, None, None, 2.5]


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
    """A document of 45 MB took 240 MB; what pydantic holds itself is not counted."""
    document = "x" * 8_000_000
    part = {"type": "input_file", "filename": "a.pdf", "file_data": document}
    items = [{"role": "user", "content": [part]}]
    with held_at_most(2.5 * len(document)):
        body = await _encode({"model": "m", "input": items})

    assert json.loads(body)["input"] == items


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2500])
@pytest.mark.parametrize("broken", ["", "\ud800"])
async def test_request_of_any_length_is_whole(count: int, broken: str) -> None:
    """It is written in pieces, between which others run."""
    items = [
        {"role": "user", "content": f"Äß{broken} {number}"} for number in range(count)
    ]

    body = await _encode({"model": "m", "input": items, "stream": True})

    sent = json.loads(body)
    assert (sent["model"], sent["stream"]) == ("m", True)
    texts = [item["content"] for item in sent["input"]]
    shown = "?" * len(broken)
    assert texts == [f"Äß{shown} {number}" for number in range(count)]


@pytest.mark.parametrize(
    ("reads", "closes", "done"),
    [
        (True, False, ["paused", "resumed"]),
        (True, True, ["paused"]),
        (False, False, []),
    ],
)
async def test_pause_ends_as_it_began(
    reads: bool, closes: bool, done: list[str]
) -> None:
    """Where aiohttp reads no more, its buffer is full; uvloop resumes no closed one."""
    noted: list[str] = []
    transport = SimpleNamespace(
        is_reading=lambda: reads,
        is_closing=lambda: closes,
        pause_reading=lambda: noted.append("paused"),
        resume_reading=lambda: noted.append("resumed"),
    )
    connection = SimpleNamespace(transport=transport)
    response: Any = SimpleNamespace(headers=CIMultiDict(), connection=connection)

    with HttpResponse(response, Deadlines(Timeouts())).paused():
        assert noted == done[:1]

    assert noted == done


async def test_json_that_is_cut_in_good_order_is_asked_for_again(runs: Runs) -> None:
    """A proxy may state the length of what it got; the address is right."""
    cut = replying(WHOLE[:-9])
    told = await runs.against(cut, replying(WHOLE), within=limits(1))
    again = await runs.against(cut, within=limits(1))
    assert (told.kind, len(told.sent)) == ("completed", 2)
    assert (again.kind, len(again.sent)) == ("unreachable", 2)
