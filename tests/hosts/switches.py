"""The companion filter of the pipe, as an administrator installs it."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from hosts.client import Json
from hosts.users import EVERYBODY_READS, User

WORKSPACE = "thoughtful"
SWITCHES: dict[str, tuple[str, Json]] = {
    "switch_search": ("OpenAI web search", {"CONTROL": "web_search"}),
    "switch_thinking": ("Think longer", {"CONTROL": "thinking", "EFFORT": "xhigh"}),
    "switch_code": ("OpenAI code interpreter", {"CONTROL": "code_interpreter"}),
}
"""What each copy is called, and its valves, by the ids of the functions."""


@asynccontextmanager
async def workspace_model(
    admin: User, base: str, params: Json, **meta: Any
) -> AsyncIterator[str]:
    """A model that an administrator made from one of the pipe's, for everybody."""
    form = {
        "id": WORKSPACE,
        "name": "Thoughtful",
        "base_model_id": base,
        "meta": meta,
        "params": params,
        "access_grants": [EVERYBODY_READS],
        "is_active": True,
    }
    await admin.call("POST", "/api/v1/models/create", form)
    await admin.models()  # the host reads its models when somebody lists them
    try:
        yield WORKSPACE
    finally:
        await admin.call("POST", "/api/v1/models/model/delete", {"id": WORKSPACE})


@asynccontextmanager
async def switches(admin: User, source: str, base: str) -> AsyncIterator[str]:
    """The filter installed once for each switch, on a model of its own."""
    await install_switches(admin, source)
    try:
        async with workspace_model(admin, base, {}) as model:
            await attach_switches(admin, [model])
            yield model
    finally:
        for function_id in SWITCHES:
            await admin.delete_function(function_id)


async def install_switches(admin: User, source: str) -> None:
    """Install the filter once for each switch."""
    for function_id, (name, valves) in SWITCHES.items():
        await admin.install_function(function_id, source, name)
        await admin.set_valves(function_id, valves)


async def attach_switches(admin: User, models: Iterable[str]) -> None:
    """Show the switches in the composer for models that have a record."""
    for model in models:
        row = await admin.call("GET", f"/api/v1/models/model?id={model}")
        filters = dict.fromkeys([*row["meta"].get("filterIds", ()), *SWITCHES])
        meta = {**row["meta"], "filterIds": list(filters)}
        form = {key: row[key] for key in ("id", "base_model_id", "name", "params")}
        form |= {"meta": meta, "is_active": row["is_active"]}
        await admin.call("POST", "/api/v1/models/model/update", form)
    await admin.models()  # the host reads its models when somebody lists them
