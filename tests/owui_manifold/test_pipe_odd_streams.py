"""Streams that end in odd ways, through the pipe: on the page and for plain clients."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    PLAIN,
    advice,
    errors,
    grown,
)
from calls.sample import chat
from owui_chat.storage.markers import strip_markers
from upstream.odd_streams import (
    FULL_CONTEXT,
    of_context,
    sending,
)
from upstream.server import Answerer, Upstream

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


@asynccontextmanager
async def upstream_of(
    desk: Desk, answer: Answerer, **valves: Any
) -> AsyncIterator[Any]:
    """A server that the pipe asks, and the bodies that arrive there."""
    async with Upstream(answer) as server:
        desk.set_valves(BASE_URL=server.base_url, **valves)
        yield server.bodies


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
