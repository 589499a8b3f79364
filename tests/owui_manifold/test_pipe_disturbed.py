"""Streams that a gateway or a proxy disturbed, as people see them, and the log."""

import pytest

from calls.outcomes import (
    NATIVE,
    PLAIN,
    chunks_of,
    errors,
    grown,
    plain_text,
    result_of,
    split_id,
    statuses,
)
from calls.sample import chat
from calls.valves import expert
from owui_chat.storage.markers import strip_markers
from owui_manifold.pipe import Pipe
from runs.disturbed import STREAMS, sending, wire_of
from upstream.server import Upstream

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_shown_as_what_it_is(
    name: str, pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """In the page, for plain clients, and for those that do not stream."""
    expected = STREAMS[name]
    async with Upstream(sending(wire_of(name))) as upstream:
        changed = {"BASE_URL": upstream.base_url, "EXPERT_JSON": expert(max_retries=2)}
        pipe.valves = pipe.valves.model_copy(update=changed)
        native = await chunks_of(pipe, chat("Hi"), **NATIVE)
        plain = await chunks_of(pipe, chat("Hi"), **PLAIN)
        assert len(upstream.requests) == 2 * expected.requests
        whole = await result_of(pipe, chat("Hi"), **PLAIN)

    assert strip_markers(grown(native)).rstrip() == expected.shown.rstrip()
    assert plain_text(plain).startswith(expected.shown)
    is_good = expected.kind == "completed"
    assert (expected.shown.rstrip() if is_good else expected.words) in str(whole)
    lines = statuses(native)
    # An ending that can be continued is a status line; a program gets an error.
    told = errors(native) or lines[expected.requests - 1 :]
    assert len(lines) - len(told) + len(errors(native)) == expected.requests - 1
    failures = [*told, *errors(plain)]
    assert len(failures) == (0 if is_good else 2)
    for error in failures:
        sentence, error_id = split_id(error)
        assert expected.words in sentence
        assert error_id in caplog.text
    assert expected.cause in caplog.text
    counts = ", ".join(f"{count} {kind}" for kind, count in expected.skipped.items())
    line = f"left out events of the stream that cannot be read: {counts}"
    assert (line in caplog.text) == bool(expected.skipped)
    assert "ping" not in caplog.text
