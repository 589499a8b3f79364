"""Streams that a gateway or a proxy disturbed: what arrived counts, once."""

import pytest

from openai_responses.transport.connections import Connections
from runs.against_server import end_of, limits, notes_of, report
from runs.disturbed import NOTHING_READABLE, STREAMS, sending, wire_of
from runs.log import answer_text
from upstream.server import Upstream, in_turn, replying

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_told_as_what_it_is(
    name: str, connections: Connections
) -> None:
    """Only an error without a code, which may pass, is asked for again."""
    expected = STREAMS[name]
    async with Upstream(sending(wire_of(name))) as upstream:
        events = await report(connections, upstream.endpoint, within=limits(2))
        assert len(upstream.requests) == expected.requests

    end = end_of(events)
    assert end.ending.kind == expected.kind
    assert expected.words in end.ending.message
    assert answer_text(events) == expected.shown
    assert expected.cause in end.trace.error.message
    assert end.trace.skipped == expected.skipped
    assert len(notes_of(events)) == expected.requests - 1


async def test_stream_in_which_nothing_can_be_read(connections: Connections) -> None:
    """It is asked for again, then in one piece; only then it is told."""
    async with Upstream(sending(wire_of(NOTHING_READABLE))) as upstream:
        events = await report(connections, upstream.endpoint, within=limits(2))
        assert len(upstream.requests) == 3
    end = end_of(events)
    assert end.ending.kind == "malformed"
    assert "cannot be read" in end.ending.message
    assert end.trace.skipped == {"empty": 3, "no JSON": 6, "no object": 3}


async def test_all_that_a_run_skipped_is_counted(connections: Connections) -> None:
    """Also of an attempt whose answer was not used."""
    broken = wire_of("empty-data-between").partition(b"data: {")[0]
    first = sending(broken)
    second = sending(wire_of("unreadable-lines-between"))
    async with Upstream(in_turn(first, second)) as upstream:
        events = await report(connections, upstream.endpoint, within=limits(2))
    assert end_of(events).ending.kind == "completed"
    assert end_of(events).trace.skipped == {
        "empty": 1,
        "no JSON": 2,
        "no object": 2,
        "with odd fields": 1,
    }


async def test_completion_in_one_piece(connections: Connections) -> None:
    """The address answers Chat Completions: an administrator has to correct it."""
    body = '{"object": "chat.completion", "choices": [], "usage": {}}'
    async with Upstream(replying(body)) as upstream:
        events = await report(connections, upstream.endpoint, within=limits(2))
        assert len(upstream.requests) == 1
    ending = end_of(events).ending
    assert ending.kind == "unreadable"
    assert "Chat Completions" in ending.message
    assert ending.fault.settings == ("base_url",)
