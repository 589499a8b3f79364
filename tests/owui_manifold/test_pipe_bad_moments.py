"""Servers, gateways and proxies in trouble, as users of other clients reported them.

One bad moment costs an answer at most: nothing of it is remembered. A disturbed stream is
shown as what it is, and the log names the cause.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    PLAIN,
    answering,
    chunks_of,
    errors,
    grown,
    plain_text,
    result_of,
    split_id,
    statuses,
    stored,
)
from calls.sample import chat
from calls.valves import expert
from owui_chat.storage.markers import strip_markers
from owui_manifold.call.valves import Valves
from owui_manifold.pipe import Pipe
from runs.disturbed import STREAMS
from stand_in.host import StandInHost, close_connections
from upstream import wire
from upstream.odd_streams import stream_of
from upstream.server import KEY, Answerer, Upstream, in_turn, replying, streaming

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]


def error_event(**error: Any) -> Answerer:
    return streaming(wire.on_the_wire({"type": "error", "error": error}))


VERIFY = error_event(
    type="service_unavailable_error",
    code=None,
    message="Unable to verify model access right now. Please retry.",
)
MOMENTS: dict[str, Answerer] = {
    "OpenAI cannot verify": VERIFY,
    "499": replying("", 499),
    "425": replying("", 425),
    "423": replying("", 423),
    "405": replying("<html>Not allowed</html>", 405),
    "a proxy's page with 400": replying("<html>Bad Request</html>", 400),
    "a gateway's 400": replying(
        json.dumps({"error": {"type": "upstream_error", "message": "reset"}}), 400
    ),
    "upstream_error": error_event(type="upstream_error", message="reset"),
    "timeout": error_event(type="timeout", message="30 s"),
    "an odd type": error_event(type="hiccup", message="Sorry"),
    "an odd code": error_event(code="hiccup", message="Sorry"),
    "words about reasoning": error_event(type="hiccup", message="No reasoning now."),
    "an empty 200": streaming(b""),
    "an empty 200 of JSON": replying("", 200),
    "a first event that is none": streaming(b"data: {broken\n\n"),
    "a failed response": streaming(
        wire.on_the_wire(
            wire.created(), wire.ended("failed", error={"code": "internal_error"})
        )
    ),
}


def good_answers() -> Iterator[Answerer]:
    """Answers with reasoning, each with other bytes."""
    number = 0
    while True:
        number += 1
        thought = wire.reasoning("Hm", sealed=f"sealed-{number}")
        answer = wire.message(f"Answer {number}", at=1)
        yield streaming(wire.on_the_wire(*wire.whole_stream([*thought, *answer])))


def sent_reasoning(body: Json) -> list[str]:
    """The encrypted content that a request carries."""
    items = body["input"]
    return [item["encrypted_content"] for item in items if item["type"] == "reasoning"]


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_bad_moment_teaches_nothing(moment: str, times: int) -> None:
    """Of a turn that met it once or three times, the next turns show no trace."""
    good = good_answers()
    bad = [MOMENTS[moment]] * times
    answers = [next(good), *bad, *(next(good) for _ in range(6))]
    texts = ["Hi"]
    async with Upstream(in_turn(*answers)) as upstream:
        pipe = Pipe()
        pipe.valves = Valves(
            BASE_URL=upstream.base_url,
            API_KEY=KEY,
            COMPATIBILITY="openai",
            HISTORY_CARRIER="markers",
            EXPERT_JSON=expert(max_retry_wait_seconds=1),
        )
        for turn in range(1, 5):
            given = answering(f"m-{turn}")
            chunks = await chunks_of(pipe, chat(*texts), **given)
            if errors(chunks):  # an answer that was lost is asked for again
                chunks = await chunks_of(pipe, chat(*texts), **given)
            assert errors(chunks) == []
            texts += [stored(chunks), "Go on."]
        await close_connections(pipe)

    last, before = upstream.bodies[-1], upstream.bodies[1]
    assert len(sent_reasoning(last)) == 3
    assert last["stream"] is True
    assert {**last, "input": []} == {**before, "input": []}
    # The turn that met it sent the same bytes again before anything else.
    assert upstream.bodies[2] == before


@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_shown_as_what_it_is(
    name: str, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """In the page, for plain clients, and for those that do not stream."""
    expected = STREAMS[name]
    async with Upstream(streaming(stream_of(name))) as upstream:
        desk.set_valves(BASE_URL=upstream.base_url, EXPERT_JSON=expert(max_retries=2))
        native = await desk.ask("Hi")
        plain = await desk.ask("Hi", **PLAIN)
        assert len(upstream.requests) == 2 * expected.requests
        whole = await desk.result(chat("Hi"), **PLAIN)

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


async def test_permission_that_cannot_be_read_is_told_without_the_databases_words(
    pipe: Pipe, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the values of a statement, and the host would show what is raised."""

    async def fail(*_: object) -> None:
        raise OSError(f"[SQL: SELECT] [parameters: {KEY}]")

    monkeypatch.setattr(host.settings, "get", fail)
    searching = {**NATIVE["__metadata__"], "features": {"web_search": True}}
    given = {**NATIVE, "__metadata__": searching}

    [streamed] = errors(await chunks_of(pipe, chat("Hi"), **given))
    whole = await result_of(pipe, chat("Hi"), **given)
    title = await result_of(pipe, chat("Hi"), **given, __task__="title_generation")

    for message in (streamed, whole["error"]["message"]):
        assert split_id(message)[0].startswith("Something in this pipe went wrong.")
    assert title["choices"][0]["message"]["content"] == ""
