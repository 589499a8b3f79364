"""The companion pipeline on a Pipelines server, and that server in an Open WebUI."""

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from golden_run.built_files import BUILT_PIPELINE
from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, settings_changed
from hosts.servers.pipelines_server import PipelinesServer
from hosts.setup.pipes import valves_changed
from simulator import Simulator

PIPELINE_ID = "gpt5_agent_strategies"
FUNCTION_CALLING = f"{PIPELINE_ID}.gpt5_function_calling"
REACT = f"{PIPELINE_ID}.gpt5_react"
PATIENCE = 120


async def install_pipeline(server: PipelinesServer, valves: Json) -> None:
    """Upload the built file, then set valves; the others keep their defaults."""
    await server.upload(PIPELINE_ID, BUILT_PIPELINE.read_text())
    await server.set_valves(PIPELINE_ID, valves)


def agent_valves_changed(
    server: PipelinesServer, **changes: Any
) -> AbstractAsyncContextManager[None]:
    return valves_changed(server, PIPELINE_ID, **changes)


def own_valves(simulator: Simulator) -> Json:
    return {"BASE_URL": simulator.base_url, "API_KEY": simulator.api_key}


@asynccontextmanager
async def connected_agents(
    admin: User, simulator: Simulator, **valves: Any
) -> AsyncIterator[PipelinesServer]:
    """A server with the agents, which talk to the simulator, in an Open WebUI."""
    async with PipelinesServer() as server:
        given = {**own_valves(simulator), "MODEL": "gpt-6.2-sol", **valves}
        await install_pipeline(server, given)
        async with connected(admin, server):
            yield server


@asynccontextmanager
async def connected(admin: User, server: PipelinesServer) -> AsyncIterator[None]:
    """Offer the server's models to everybody, as an OpenAI connection, for a while."""
    config = {
        "ENABLE_OPENAI_API": True,
        "OPENAI_API_BASE_URLS": [server.url],
        "OPENAI_API_KEYS": [server.token],
        "OPENAI_API_CONFIGS": {},
    }
    async with settings_changed(admin, "/openai/config", config, update="/update"):
        ours = {model["id"] for model in await server.models()}
        for model in await admin.models():
            if model["id"] in ours and "info" not in model:
                await admin.share_model(model["id"], model["name"])
        yield


async def pending(tab: Tab, turn: Turn) -> Json:
    """Wait until the answer waits for a person; the call that it waits for."""
    await turn.until(
        lambda seen: '"pending"' in json.dumps(seen.events), seconds=PATIENCE
    )
    await tab.settle(turn)
    output = (await tab.message(turn))["output"]
    (call,) = [item for item in output if item.get("status") == "pending"]
    return dict(call)
