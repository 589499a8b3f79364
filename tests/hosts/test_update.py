"""From the files of the last release to the next pipe, by the act that install.md names.

Only the pipe is replaced. The switches and the filter for administrators stay those of
the release, and work. The words of the demo are tried on the files of the next release.
"""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path

import pytest
import pytest_asyncio

import demo
import tour
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies
from hosts.servers.forks import ForkServer
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import ADMINISTRATION, counted_requests
from hosts.setup.own_server import admin
from releasing.contents import ADMINISTRATION as ADMINISTRATION_FILE
from releasing.contents import FUNCTIONS, MODELS, PIPE_ID, READABLE, version_of
from releasing.packed import pack
from simulator import Simulator

__all__ = ["admin"]  # the fixture

pytestmark = [pytest.mark.host, pytest.mark.asyncio]

RELEASE = Path(__file__).parents[2] / "release"
MODEL = f"{PIPE_ID}.gpt-6.1-sol"
EFFORT = "openai_responses_effort"


@pytest_asyncio.fixture(scope="module")
async def server(forks: ForkServer) -> AsyncIterator[OpenWebUI]:
    """A server of its own, which has this release alone."""
    async with OpenWebUI(forks=forks) as running:
        yield running


def imported(name: str) -> list[Json]:
    entries: list[Json] = json.loads((RELEASE / name).read_text("utf-8"))
    return entries


async def install_release(admin: User, simulator: Simulator) -> None:
    """Import all files of the release, and set what an administrator sets."""
    for entry in [*imported(FUNCTIONS), *imported(ADMINISTRATION_FILE)]:
        await admin.call("POST", "/api/v1/functions/create", entry)
        await admin.set_active(entry["id"])
    await admin.set_valves(ADMINISTRATION, {"USER_LIMITS_JSON": "[]"})
    own = {"BASE_URL": simulator.base_url, "API_KEY": simulator.api_key}
    await admin.set_valves(PIPE_ID, {**own, "COMPATIBILITY": "openai"})
    await admin.call("POST", "/api/v1/models/import", {"models": imported(MODELS)})


async def test_the_pipe_alone_is_updated(
    admin: User, server: OpenWebUI, pipe_source: str, simulator: Simulator
) -> None:
    """`/check` has nothing to say; what was switched and counted before still is."""
    await install_release(admin, simulator)
    newer = pipe_source.replace("version: 1.", "version: 2.", 1)

    packed = pack(newer, READABLE[PIPE_ID])
    await admin.install_function(PIPE_ID, packed)

    stored = await admin.call("GET", f"/api/v1/functions/id/{PIPE_ID}")
    assert stored["meta"]["manifest"]["version"].startswith("2.")
    async with Tab(admin) as tab:
        checked = await tab.send(MODEL, "/check")
        digest = sha256(packed.encode()).hexdigest()
        assert f"✅ **Version**: {version_of(newer)}, SHA-256 {digest}." in checked.text
        for part in ("The key", "Streaming", "Filters"):
            assert f"✅ **{part}**" in checked.text
        assert checked.text.endswith("Result: no problems.\n")
        assert (await tab.message(checked))["content"] == checked.text.strip()
        simulator.forget()
        told: Json = {"filter_ids": [EFFORT]}
        turn = await tab.send(MODEL, "sim:short hello", body=told)
        usage = await tab.send(MODEL, "/usage")
    assert "Turn 1." in turn.text
    assert "gpt-6.1-sol" in usage.text
    [body] = chat_bodies(simulator)
    assert body["reasoning"]["effort"] == "high"
    assert counted_requests(server, admin) == 1


async def test_words_for_the_agent_work(admin: User) -> None:
    """On the agent that people find first, in Open WebUI's own list of models."""
    async with AsyncExitStack() as running:
        upstream = await demo.choose_upstream(running)
        models = await demo.install_release(admin, upstream.valves)
        names = {model["id"]: model["name"] for model in await admin.models()}
        agent = next(model for model in models if names[model] == demo.AGENT_NAME)
        tab = await running.enter_async_context(Tab(admin))
        turns = {
            word.word: await tab.send(
                agent, f"{word.question} {word.typed}", body={"tool_ids": [tour.LAKE]}
            )
            for word in tour.AGENT_WORDS
        }
        chat = await admin.chat(turns["agent-crew"].chat_id)

    output = chat["history"]["messages"][turns["agent-crew"].message_id]["output"]
    called = {item.get("name") for item in output}
    assert {"create_tasks", "delegate_task", "update_task"} <= called
    assert "August" in turns["agent-crew"].text
    for word, turn in turns.items():
        assert bool(turn.error) is (word == "failed")
        assert turn.statuses
