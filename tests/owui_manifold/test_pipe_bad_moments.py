"""Servers, gateways and proxies in trouble, as users of other clients reported them.

One bad moment costs an answer at most: nothing of it is remembered.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from calls.outcomes import (
    NATIVE,
    answering,
    chunks_of,
    errors,
    result_of,
    split_id,
    stored,
)
from calls.sample import chat
from calls.valves import expert
from owui_manifold.call.valves import Valves
from owui_manifold.pipe import Pipe
from stand_in.host import StandInHost, close_connections
from upstream import wire
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


async def test_permission_that_cannot_be_read_is_told_without_the_databases_words(
    pipe: Pipe, host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have the values of a statement, and the host would show what is raised."""

    async def fail(*_: object) -> None:
        raise RuntimeError(f"[SQL: SELECT] [parameters: {KEY}]")

    monkeypatch.setattr(host.settings, "get", fail)
    searching = {**NATIVE["__metadata__"], "features": {"web_search": True}}
    given = {**NATIVE, "__metadata__": searching}

    [streamed] = errors(await chunks_of(pipe, chat("Hi"), **given))
    whole = await result_of(pipe, chat("Hi"), **given)
    title = await result_of(pipe, chat("Hi"), **given, __task__="title_generation")

    for message in (streamed, whole["error"]["message"]):
        assert split_id(message)[0].startswith("Something in this pipe went wrong.")
    assert title["choices"][0]["message"]["content"] == ""
