"""Every event of every scenario is one that the openai package knows."""

import asyncio
from collections.abc import Iterator
from functools import cache
from itertools import islice
from typing import Any

import aiohttp
import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter, ValidationError

from simulator import Simulator
from simulator.answers import PlannedAnswer
from simulator.scenarios.catalog import ALL_SCENARIOS
from simulator.transcripts import (
    BACKGROUND_BODY,
    BODY,
    play_changed_effort,
    play_scenario,
)
from upstream.package_types import check_event, unknown_fields
from upstream.simulated import Client

RESPONSE = TypeAdapter(Response)
ROUNDS = 4
"""Some scenarios call tools for ever."""
TERMINAL = {"response.completed", "response.failed", "response.incomplete", "error"}
REFUSED_TWICE = {"misaligned", "cyber-failed", "too-large", "late-reason"}
"""Refused streams: `error` and `response.failed` (recorded)."""
STRANGE = {
    # A field and a code that the package does not have yet.
    ("misaligned", "error"),
    ("cyber-failed", "response.failed"),
    # A code of no API: only the message matters there.
    ("leaky-stream-failed", "response.failed"),
    # Types that a client has to pass over.
    ("keepalive", "keepalive"),
    ("unknown-events", "response.aura.delta"),
    ("unknown-events", "response.rate_limits.updated"),
}
"""The events that are not the package's on purpose."""


@cache
def written_answers() -> tuple[tuple[str, PlannedAnswer], ...]:
    return tuple(_play_all())


def _play_all() -> Iterator[tuple[str, PlannedAnswer]]:
    requests = (BODY, {**BODY, "include": []}, BACKGROUND_BODY)
    for scenario in ALL_SCENARIOS:
        for request in requests:
            for answer in islice(play_scenario(scenario.name, request), ROUNDS):
                if answer.http is None:
                    yield scenario.name, answer
    yield "cache-miss", play_changed_effort()


def is_strange(event: dict[str, Any]) -> bool:
    try:
        check_event(event)
    except (AssertionError, KeyError, ValidationError):
        return True
    return False


def test_every_event_is_one_of_the_package() -> None:
    """With no field that the class lacks; the final object is a whole response."""
    strange: set[tuple[str, str]] = set()
    for name, answer in written_answers():
        before = ""
        for event in answer.events:
            # The next deltas of a text have the form of its first.
            is_next = event["type"] == before and before.endswith(".delta")
            if not is_next and is_strange(event):
                strange.add((name, event["type"]))
            before = event["type"]
        final = answer.final or {}
        if (
            final.get("object") == "response"
            and (name, "response.failed") not in STRANGE
        ):
            parsed = RESPONSE.validate_python(final)
            assert unknown_fields(parsed) == [], name

    assert strange == STRANGE


def test_every_stream_is_numbered_and_ends_once() -> None:
    for name, answer in written_answers():
        types = [event["type"] for event in answer.events]
        numbers = [event["sequence_number"] for event in answer.events]

        assert numbers == list(range(len(numbers))), name
        ends = sum(kind in TERMINAL for kind in types)
        assert ends == (2 if name in REFUSED_TWICE else 1), name
        assert types[-1] in TERMINAL, name
        if name != "error-first":
            assert types[0] == "response.created", name
            assert "response.in_progress" in types[1:3], name


@pytest.mark.asyncio
async def test_deltas_are_padded_unless_told_otherwise(client: Client) -> None:
    padded = await client.stream()
    bare = await client.stream(stream_options={"include_obfuscation": False})

    deltas = [event for event in padded.events if event["type"].endswith(".delta")]
    assert all(event["obfuscation"] for event in deltas)
    assert not any("obfuscation" in event for event in bare.events)


@pytest.mark.asyncio
async def test_two_simulators_send_the_same_bytes() -> None:
    """Ids, padding, sealed content depend on nothing but the requests."""

    async def bytes_of(simulator: Simulator) -> bytes:
        body = {"model": "gpt-5.5", "input": "Hi", "store": False, "stream": True}
        headers = {"Authorization": f"Bearer {simulator.api_key}"}
        async with simulator, aiohttp.ClientSession(headers=headers) as session:
            url = f"{simulator.base_url}/responses"
            async with session.post(url, json=body) as answer:
                return await answer.read()

    first, second = await asyncio.gather(
        *(bytes_of(Simulator(clock=lambda: 1.0)) for _ in range(2))
    )
    assert first == second
