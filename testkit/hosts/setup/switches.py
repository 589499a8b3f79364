"""The switches of the composer, as an administrator installs them."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hosts.people.client import Json
from hosts.people.users import EVERYBODY_READS, User

WORKSPACE = "thoughtful"
BUILT = Path(__file__).parents[3] / "pipes"
SWITCHES = {
    "openai_responses_search": "Search with OpenAI",
    "openai_responses_effort": "Thinking Effort",
    "openai_responses_python": "Python at OpenAI",
    "openai_responses_images": "Images by OpenAI",
    "openai_responses_agent": "Agent",
}
"""What each switch is called, by its file and its function's id."""
AGENT = "openai_responses_agent"
EFFORT = "openai_responses_effort"


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
async def switches(
    admin: User, base: str, meta: Json | None = None
) -> AsyncIterator[str]:
    """The switches, on a model of their own."""
    for function_id, name in SWITCHES.items():
        source = (BUILT / f"{function_id}.py").read_text("utf-8")
        await admin.install_function(function_id, source, name)
    try:
        async with workspace_model(admin, base, {}, **(meta or {})) as model:
            await attach_switches(admin, [model])
            yield model
    finally:
        for function_id in SWITCHES:
            await admin.delete_function(function_id)


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
