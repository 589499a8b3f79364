"""Our pipes, and tools for them, inside a running Open WebUI."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hosts.people.client import Json
from hosts.people.users import EVERYBODY_READS, User
from hosts.servers.pipelines_server import PipelinesServer

PIPE = "openai_responses"
"""The id of the pipe that the fixtures install."""
MODEL = f"{PIPE}.gpt-6.2-sol"
PLUGINS = Path(__file__).parents[1] / "plugins"
STUB = (PLUGINS / "stub_pipe.py").read_text()
TOOLKIT = PLUGINS / "toolkit.py"


async def install_pipe(
    admin: User, function_id: str, source: str, valves: Json
) -> list[str]:
    """Install a pipe for everybody; the ids of its models, in its own order.

    A valve given as None goes back to its default; one not given stays as it is.
    """
    await admin.install_function(function_id, source)
    await admin.set_valves(function_id, await admin.valves(function_id) | valves)
    listed = await admin.models()
    ours = [model for model in listed if model["id"].startswith(f"{function_id}.")]
    for model in ours:
        if "info" not in model:  # then it has no row that could grant anything yet
            await admin.share_model(model["id"], model["name"])
    return [model["id"] for model in ours]


async def install_toolkit(admin: User, toolkit_id: str = "toolkit") -> None:
    await install_tools(admin, toolkit_id, TOOLKIT.read_text())


async def install_tools(admin: User, toolkit_id: str, source: str) -> None:
    """Install the tools of a source text; everybody may use them."""
    form = {
        "id": toolkit_id,
        "name": toolkit_id.title(),
        "content": source,
        "meta": {"description": "tests"},
        "access_grants": [EVERYBODY_READS],
    }
    await admin.call("POST", "/api/v1/tools/create", form)


async def install_copy(admin: User, source: str, valves: Json) -> list[str]:
    """Install the same pipe under another id, with models whose names no other has."""
    models = {"MODEL_ID": "gpt-6-luna, gpt-6.1-terra"}
    return await install_pipe(admin, "a_second_copy", source, valves | models)


@asynccontextmanager
async def valves_changed(
    owner: User | PipelinesServer, function_id: str, **changes: Any
) -> AsyncIterator[None]:
    """Other valves for a while, of a function or a pipeline."""
    before = await owner.valves(function_id)
    await owner.set_valves(function_id, before | changes)
    try:
        yield
    finally:
        await owner.set_valves(function_id, before)
