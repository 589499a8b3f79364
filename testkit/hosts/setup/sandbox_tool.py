"""The sandbox as a tool of Open WebUI: installed, and used by a model in a chat."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import EVERYBODY_READS, User
from hosts.sent import chat_bodies, tool_outputs
from hosts.setup.pipes import MODEL
from releasing.contents import READABLE, SANDBOX_ID, plugins_file
from releasing.packed import pack
from simulator import Simulator

ROOT = Path(__file__).parents[3]
BUILT_TOOL = ROOT / READABLE[SANDBOX_ID]
TOOL = f"/api/v1/tools/id/{SANDBOX_ID}"


def release_file() -> str:
    packed = pack(BUILT_TOOL.read_text("utf-8"), READABLE[SANDBOX_ID])
    return plugins_file({SANDBOX_ID: packed})


async def import_tools(admin: User, file: str) -> None:
    """Import a file as the page does: each entry, as it is, to the same route."""
    for entry in json.loads(file):
        await admin.call("POST", "/api/v1/tools/create", entry)


@asynccontextmanager
async def sandbox_installed(admin: User) -> AsyncIterator[None]:
    """Install the tool for everybody for a while, from the file of a release."""
    await import_tools(admin, release_file())
    grants = {"access_grants": [EVERYBODY_READS]}
    await admin.call("POST", f"{TOOL}/access/update", grants)
    try:
        yield
    finally:
        await admin.call("DELETE", f"{TOOL}/delete")


@asynccontextmanager
async def sandbox_options(
    admin: User, options: Mapping[str, Any]
) -> AsyncIterator[None]:
    path = f"{TOOL}/valves/update"
    await admin.call("POST", path, {"SANDBOX_OPTIONS": json.dumps(options)})
    try:
        yield
    finally:
        await admin.call("POST", path, {})


async def use(
    tab: Tab,
    tool: str,
    arguments: Json,
    *,
    files: list[Json] | None = None,
    **more: Any,
) -> Turn:
    """Let the model call a tool with these arguments."""
    body = calling(tool, SANDBOX_ID)
    if files:
        body["files"] = files  # the page names them next to those of the message
        more["files"] = files
    return await tab.send(MODEL, f"sim:tool {json.dumps(arguments)}", body=body, **more)


def output_of(simulator: Simulator) -> str:
    return str(tool_outputs(chat_bodies(simulator)[-1])[-1])
