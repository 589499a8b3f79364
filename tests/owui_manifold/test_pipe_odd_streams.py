"""Streams that end in odd ways, through the pipe: on the page and for plain clients."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    PLAIN,
    advice,
    errors,
    grown,
    statuses,
)
from calls.sample import TOOL, chat
from calls.tools import with_tool
from chats.pictures import PIXEL
from owui_chat.storage.markers import strip_markers
from upstream import wire
from upstream.odd_streams import (
    CITY,
    FULL_CONTEXT,
    answer_without_eyes,
    of_context,
    sending,
)
from upstream.server import Answerer, Upstream, in_turn, streaming

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
EMPTY = "empty-last-message"


@asynccontextmanager
async def upstream_of(
    desk: Desk, answer: Answerer, **valves: Any
) -> AsyncIterator[Any]:
    """A server that the pipe asks, and the bodies that arrive there."""
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url, **valves)
        yield server.bodies


async def test_model_that_cannot_see_is_remembered(desk: Desk) -> None:
    """The second question is asked once, with a line in place of the image."""
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    body = chat("Hi")
    body["messages"][0]["content"] = [{"type": "text", "text": "See?"}, image]
    async with upstream_of(desk, answer_without_eyes, COMPATIBILITY="auto") as bodies:
        first = await desk.chunks(body)
        second = await desk.chunks(body)

    assert errors([*first, *second]) == []
    assert any("cannot see images" in line for line in statuses(first))
    seen = ["input_image" in json.dumps(body) for body in bodies]
    assert seen == [True, False, False]
    part = bodies[-1]["input"][-1]["content"][-1]
    assert part["text"].startswith("See?\n[An image or file was here.")


@pytest.mark.parametrize(
    ("tokens", "mode", "reason"),
    [
        (256, "auto", "length"),
        (256, "strict", "length"),
        (256, "openai", "stop"),  # OpenAI says so itself
        (255, "auto", "stop"),  # the server shifts its context
        (257, "auto", "stop"),
    ],
)
async def test_full_context_is_told(
    tokens: int, mode: str, reason: str, desk: Desk
) -> None:
    """llama.cpp calls the answer complete, and lists the size of its context."""
    answer = of_context(tokens, sending(*[FULL_CONTEXT] * 3))
    async with upstream_of(desk, answer, COMPATIBILITY=mode) as bodies:
        for _ in range(3):  # pages that list the models
            await desk.pipe.pipes()
            await asyncio.gather(*desk.pipe._connections._pool()._tasks)
        native = await desk.ask("Hi")
        plain = await desk.ask("Hi", **PLAIN)
        result = await desk.result(chat("Hi"), **PLAIN)

    assert errors([*native, *plain, result]) == []
    assert strip_markers(grown(native)).endswith("locals and tourists. The")
    assert ("context is full" in advice(native)) == (reason == "length")
    choices = [*result["choices"], *(c for e in plain for c in e.get("choices", ()))]
    reasons = [choice["finish_reason"] for choice in choices]
    assert [each for each in reasons if each] == [reason, reason]
    asked = [body is None for body in bodies]
    assert asked == [*[True] * (mode != "openai"), *[False] * 3]


@pytest.mark.parametrize("last", [EMPTY, "nothing"])
async def test_nothing_to_add_after_tools_is_no_error(last: str, desk: Desk) -> None:
    """An answer that is regenerated would run the tools again."""
    called: list[str] = []

    def look(city: str) -> str:
        called.append(city)
        return f"Rain in {city}."

    body = chat("Hi", tools=[TOOL])
    nothing = streaming(wire.on_the_wire(*wire.whole_stream()))
    end = nothing if last == "nothing" else sending(last, last)
    call = sending("call-never-ended", "call-never-ended")
    async with upstream_of(desk, in_turn(call, end)) as bodies:
        chunks = await desk.chunks(body, **with_tool(look))
    async with upstream_of(desk, in_turn(call, end)):
        result = await desk.result(body, **with_tool(look))

    assert errors([*chunks, result]) == []
    assert called == [json.loads(CITY)["city"]] * 2
    assert len(bodies) == 2


HALVES = wire.whole_stream(wire.message("Rain \ud83c", "\udf27 in Z\ud83c."))
"""One character in two deltas, and half of another."""


@pytest.mark.parametrize(
    ("given", "task"), [(NATIVE, None), (PLAIN, None), (PLAIN, "context_compaction")]
)
async def test_half_a_character_loses_no_whole_answer(
    given: Json, task: str | None, desk: Desk
) -> None:
    """Open WebUI sends the result as UTF-8, which has no halves."""
    answer = streaming(wire.on_the_wire(*HALVES))
    async with upstream_of(desk, answer):
        result = await desk.result(chat("Hi"), **given, __task__=task)

    assert json.dumps(result, ensure_ascii=False).encode()
    [choice] = result["choices"]
    assert choice["message"]["content"] == "Rain 🌧 in Z\ufffd."
