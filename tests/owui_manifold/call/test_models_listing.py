"""What a key may use, found in the background."""

import asyncio

import pytest
from aiohttp import web

from openai_responses.endpoint import Endpoint
from openai_responses.errors import ResponsesError
from openai_responses.transport.connections import Connections
from owui_manifold.call import models
from owui_manifold.call.models import Listing, fetch_models
from simulator import Simulator
from upstream.server import Upstream

pytestmark = pytest.mark.asyncio


async def settled(connections: Connections) -> None:
    """Wait until nobody is being asked."""
    await asyncio.gather(*connections._pool()._tasks)


async def test_key_lists_its_chat_models(
    sim: Simulator, connections: Connections
) -> None:
    """Chat models alone; another key may use others."""
    full = await fetch_models(Endpoint(sim.base_url, sim.api_key), connections)
    limited = Endpoint(sim.base_url, "sk-simulator-limited")
    less = await fetch_models(limited, connections)

    assert "gpt-6.1-sol" in full
    assert set(less) < set(full)


async def test_a_list_is_answered_from_memory(
    sim: Simulator, connections: Connections
) -> None:
    """Nobody waits for the server: first nothing is known, then what it said."""
    listing = Listing()
    endpoint = Endpoint(sim.base_url, sim.api_key)

    assert listing.usable(endpoint, connections) is None
    await settled(connections)
    assert "gpt-6.1-sol" in (listing.usable(endpoint, connections) or [])
    await settled(connections)


async def test_a_list_is_fetched_once_while_it_is_fresh(
    connections: Connections,
) -> None:
    """However many pages are loaded."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "gpt-5.2"}]})

    async with Upstream(answer) as upstream:
        listing = Listing()
        for _ in range(5):
            listing.usable(upstream.endpoint, connections)
            await settled(connections)

    assert len(upstream.requests) == 1


async def test_known_models_are_kept_when_the_listing_fails(
    connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An hour of trouble must not empty the list."""
    answers = [
        web.json_response({"data": [{"id": "gpt-5.2"}]}),
        web.Response(status=500),
    ]

    async def answer(_: web.Request) -> web.Response:
        return answers.pop(0)

    async with Upstream(answer) as upstream:
        listing = Listing()
        for seconds in (10_000.0, 20_000.0):
            monkeypatch.setattr(models, "monotonic_seconds", lambda now=seconds: now)
            listing.usable(upstream.endpoint, connections)
            await settled(connections)
        kept = listing.usable(upstream.endpoint, connections)
        await settled(connections)

    assert answers == []
    assert kept == {"gpt-5.2": ""}
    assert len(upstream.requests) == 2, "after a failure the server has a pause"


@pytest.mark.parametrize(
    "made",
    [
        lambda: web.Response(status=401, text="sk-upstream-1 is wrong"),
        lambda: web.Response(text="<html>"),
        lambda: web.Response(text="x" * 5_100_000),
    ],
    ids=["refused", "page", "too long"],
)
async def test_answer_that_is_not_a_list_is_an_error(
    made: object, connections: Connections
) -> None:
    """It is an error of ours, without a word of the server."""

    async def answer(_: web.Request) -> web.Response:
        assert callable(made)
        response = made()
        assert isinstance(response, web.Response)
        return response

    async with Upstream(answer) as upstream:
        with pytest.raises(ResponsesError) as failed:
            await fetch_models(upstream.endpoint, connections)

    assert "sk-upstream" not in str(failed.value)
