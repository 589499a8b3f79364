"""Which models an administrator's MODEL_ID comes to."""

import asyncio
from typing import Any

import pytest
from aiohttp import web

from calls.valves import expert
from openai_responses.endpoint import Endpoint
from openai_responses.transport.connections import Connections
from owui_manifold.call.models import Listing, list_models
from owui_manifold.call.valves import Valves
from simulator import Simulator
from upstream.server import Upstream

pytestmark = pytest.mark.asyncio

NOWHERE = {"BASE_URL": "http://127.0.0.1:1/v1"}


async def names(**valves: Any) -> dict[str, str]:
    """Return what the page lists, without asking anybody."""
    given = Valves.model_validate(
        {**NOWHERE, "EXPERT_JSON": expert(fetch_models=False), **valves}
    )
    models = await list_models(given, Listing(), Connections())
    return {name: model.name for name, model in models.items()}


async def test_auto_is_the_newest_of_each_family() -> None:
    listed = list(await names(MODEL_ID="gpt-4o, auto"))
    assert listed[0] == "gpt-4o"
    assert {"gpt-6.2-sol", "gpt-6.1-terra", "gpt-6-luna"} < set(listed)


async def test_auto_hides_what_the_key_cannot_use(
    sim: Simulator, connections: Connections
) -> None:
    """From the first listing on; what is listed by hand stays."""
    listing = Listing()
    given = {
        "BASE_URL": sim.base_url,
        "API_KEY": "sk-simulator-limited",
        "MODEL_ID": "auto, gpt-6.1-sol",
    }
    valves = Valves.model_validate(given)
    listed = await list_models(valves, listing, connections)

    assert "gpt-6.2-sol" not in listed
    assert "gpt-5.4-mini" in listed
    assert "gpt-6.1-sol" in listed


async def test_names_of_the_administrators_own() -> None:
    """A mistake in them hides no model."""
    overrides = '{"mine": {"like": "gpt-5.2", "name": "Ours"}}'
    assert await names(MODEL_ID="mine", MODEL_OVERRIDES_JSON=overrides) == {
        "mine": "Ours"
    }
    assert await names(MODEL_ID="mine", MODEL_OVERRIDES_JSON="{") == {"mine": "mine"}


async def test_list_of_an_earlier_key_that_comes_late_is_dropped(
    sim: Simulator, connections: Connections
) -> None:
    """The valves were changed while it was on its way."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def late(_: web.Request) -> web.Response:
        asked.set()
        await release.wait()
        return web.json_response({"data": [{"id": "gpt-5.2"}]})

    listing = Listing()
    async with Upstream(late) as earlier:
        first = asyncio.create_task(listing.usable(earlier.endpoint, connections))
        await asked.wait()
        nobody = Endpoint("http://127.0.0.1:1/v1", "sk-other")
        assert await listing.usable(nobody, connections) is None
        release.set()
        await first
        await asyncio.sleep(0.1)

    assert await listing.usable(nobody, connections) is None


async def test_only_the_models_of_the_newest_key_are_kept(
    sim: Simulator, connections: Connections
) -> None:
    """Whoever changes keys every day leaves no list for each."""
    listing = Listing()
    for key in ("sk-simulator-limited", sim.api_key):
        given = {"BASE_URL": sim.base_url, "API_KEY": key, "MODEL_ID": "auto"}
        valves = Valves.model_validate(given)
        await list_models(valves, listing, connections)
    listed = await list_models(valves, listing, connections)

    assert "gpt-6.2-sol" in listed
    assert listing._known
    assert "gpt-6.2-sol" in listing._known
