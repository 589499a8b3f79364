"""Which models an administrator's MODEL_ID comes to."""

from typing import Any

import pytest

from calls.valves import expert
from openai_responses.transport.connections import Connections
from owui_manifold.call.models import Listing, list_models
from owui_manifold.call.valves import Valves
from simulator import Simulator

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
