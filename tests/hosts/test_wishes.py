"""What administrators and users choose, in the real host: models, valves, switches."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import web

from calls.valves import expert
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab
from hosts.people.users import User, settings_changed
from hosts.sent import answered, chat_bodies, is_task
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, valves_changed
from hosts.setup.switches import EFFORT, SWITCHES, switches, workspace_model
from simulator import Simulator
from simulator.accounts import CANARY_KEY
from upstream.server import Upstream

pytestmark = [pytest.mark.host, pytest.mark.asyncio]

PIPE = "wishes"
CHAT = f"{PIPE}.gpt-5.2"
PRO = "gpt-6.1-sol-pro-high"
IMAGES = "openai_responses_images"


@pytest_asyncio.fixture(scope="session", autouse=True)
async def wishes(admin: User, pipe_source: str, pipe_valves: Json) -> list[str]:
    """A copy of the pipe with models that leave something to choose."""
    valves = {**pipe_valves, "MODEL_ID": f"gpt-5.2, gpt-5, gpt-5-auto, {PRO}"}
    return await install_pipe(admin, PIPE, pipe_source, valves)


@asynccontextmanager
async def user_valves(user: User, **values: str) -> AsyncIterator[None]:
    """A person's own settings for a while."""
    await user.set_user_valves(PIPE, values)
    try:
        yield
    finally:
        await user.set_user_valves(PIPE, {})


def effort(body: Json) -> str | None:
    asked: Json = body.get("reasoning", {})
    return asked.get("effort")


def hosted(body: Json) -> list[str]:
    """The tools of OpenAI that a request offers; the host has tools of its own."""
    tools = [tool["type"] for tool in body.get("tools", ())]
    return [kind for kind in tools if kind != "function"]


# ---------------------------------------------------------------- models


@pytest.mark.asyncio
async def test_list_that_open_webui_keeps_holds_no_guess(
    admin: User, pipe_source: str
) -> None:
    """It is made to ask again when the slow server has named its models."""
    released = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await released.wait()
        return web.json_response({"data": [{"id": "gpt-5.4"}]})

    async def listed(query: str = "") -> list[str]:
        answer = await admin.call("GET", f"/api/models{query}")
        ids = [str(model["id"]) for model in answer["data"]]
        return [name for name in ids if name.startswith("kept.")]

    kept = {"ENABLE_BASE_MODELS_CACHE": True}
    async with (
        Upstream(slow) as upstream,
        settings_changed(admin, "/api/v1/configs/connections", kept),
    ):
        # It waits longer for a host that asks slow servers of its own, too.
        hasty = pipe_source.replace("_HOST_SECONDS = 15.0", "_HOST_SECONDS = 0.2")
        assert hasty != pipe_source
        await admin.install_function("kept", hasty)
        valves = {"BASE_URL": upstream.base_url, "API_KEY": "sk-1"}
        await admin.set_valves("kept", {**valves, "MODEL_ID": "auto, mine"})
        try:
            first = await listed("?refresh=true")
            again = await listed()
            released.set()
            async with asyncio.timeout(60):
                later = await listed()
                while later == again:
                    await asyncio.sleep(0.2)
                    later = await listed()
        finally:
            await admin.delete_function("kept")
            await listed("?refresh=true")

    assert first == again == ["kept.mine"]
    assert later == ["kept.gpt-5.4", "kept.mine"]


# ---------------------------------------------------------------- what users choose


async def test_a_users_effort_holds_for_workspace_models_too(
    admin: User, member: User, tab: Tab, simulator: Simulator
) -> None:
    """As far as the administrator lets users change it."""
    async with user_valves(member, REASONING_EFFORT="high"):
        await tab.send(CHAT, "sim:short")
        async with workspace_model(admin, CHAT, {}) as model:
            await tab.send(model, "sim:short")
            async with valves_changed(admin, PIPE, USER_MAY_CHANGE="verbosity"):
                await tab.send(model, "sim:short")

    assert [effort(body) for body in chat_bodies(simulator)] == ["high", "high", None]


@pytest.mark.usefixtures("toolkit")
async def test_usage_and_cost_are_stored_where_they_are_shown(
    member: User, tab: Tab, simulator: Simulator
) -> None:
    """The usage of all requests once, in the message; the cost in its last line, too."""
    body = calling("get_weather", "toolkit")
    async with user_valves(member, SHOW_COST="on"):
        turn = await tab.send(CHAT, "sim:tool-twice weather?", body=body)

    usages = [(r.response or {})["usage"] for r in answered(simulator)]
    stored = await tab.message(turn)
    usage = stored["usage"]
    assert len(usages) == 3
    for key in ("input_tokens", "output_tokens", "total_tokens"):
        assert usage[key] == sum(used[key] for used in usages)
    assert usage["prompt_tokens"] == usages[-1]["input_tokens"]
    assert usage["cost"] > 0
    assert "$" in stored["statusHistory"][-1]["description"]


async def test_a_users_own_key_takes_nothing_of_the_administrators_along(
    admin: User, member: User, tab: Tab, simulator: Simulator
) -> None:
    """Neither headers nor servers with their tokens, for an answer and its title."""
    clocks = {
        "server_label": "clocks",
        "server_url": "https://clocks.example/mcp",
        "authorization": "canary-of-the-clocks",
    }
    shared = {
        "API_KEY": "sk-of-nobody",
        "USER_API_KEYS": "allowed",
        "ORGANIZATION": "org-of-ours",
        "EXTRA_HEADERS": json.dumps({"X-Gateway-Key": "canary-gateway"}),
        "REMOTE_MCP_SERVERS_JSON": json.dumps([clocks]),
        "FILE_SEARCH_VECTOR_STORES": "vs_ours",
    }
    title = {"title_generation": True}
    async with (
        valves_changed(admin, PIPE, **shared),
        user_valves(member, API_KEY=CANARY_KEY),
    ):
        turn = await tab.send(CHAT, "sim:short", background_tasks=title)
        alone = answered(simulator)
        async with valves_changed(
            admin, PIPE, EXPERT_JSON=expert(user_keys_get="headers")
        ):
            await tab.send(CHAT, "sim:short")

    assert turn.error is None
    assert sorted(is_task(request) for request in alone) == [False, True]
    sent = str([(request.headers, request.body) for request in alone])
    for secret in ("canary-gateway", "canary-of-the", "org-of-ours", "vs_ours"):
        assert secret not in sent
    last = answered(simulator)[-1]
    assert last.headers["X-Gateway-Key"] == "canary-gateway"
    assert hosted(last.body) == []


# ---------------------------------------------------------------- small tasks


async def test_tasks_go_to_a_small_model_in_the_hosts_own_form(
    admin: User, server: OpenWebUI, tab: Tab, simulator: Simulator
) -> None:
    """The strict API takes the format, and the host reads what comes of it."""
    tasks = dict.fromkeys(
        ("title_generation", "tags_generation", "follow_up_generation"), True
    )
    async with valves_changed(admin, PIPE, TASK_MODEL="gpt-6-luna"):
        turn = await tab.send(CHAT, "sim:short Hello", background_tasks=tasks)

    asked = [request for request in answered(simulator) if is_task(request)]
    assert {request.body["model"] for request in asked} == {"gpt-6-luna"}
    assert {request.status for request in asked} == {200}
    named = {request.body["text"]["format"]["name"] for request in asked}
    assert named == set(tasks)
    row = await tab.user.call("GET", f"/api/v1/chats/{turn.chat_id}")
    assert row["title"] == "Talking to a Stand-in"
    assert row["meta"]["tags"] == ["technology", "testing"]
    assert len((await tab.message(turn))["followUps"]) == 3


@pytest.mark.asyncio
async def test_models_that_administrators_chose_do_their_tasks(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """At their own effort, without a limit that is Open WebUI's; a cut summary counts."""
    titles = settings_changed(
        admin,
        "/api/v1/tasks/config",
        {"TASK_MODEL_EXTERNAL": f"{PIPE}.{PRO}"},
        update="/update",
    )
    summaries = settings_changed(
        admin, "/api/v1/chats/config", {"ENABLE_CONTEXT_COMPACTION": True}
    )
    valves = valves_changed(admin, PIPE, TASK_MODEL="gpt-6-luna")
    async with valves, titles, summaries:
        title = {"title_generation": True}
        turn = await tab.send(CHAT, "sim:short 1", background_tasks=title)
        more = await tab.send(CHAT, "sim:incomplete 2", chat_id=turn.chat_id)
        compact = f"/api/v1/chats/{turn.chat_id}/compact"
        compacted = await tab.user.call("POST", compact, {"model": CHAT})

    title_body, summary_body = [
        request.body for request in answered(simulator) if is_task(request)
    ]
    assert title_body["model"] == "gpt-6.1-sol"
    assert title_body["reasoning"] == {"effort": "high", "mode": "pro"}
    assert summary_body["model"] == "gpt-5.2"
    assert "reasoning" not in summary_body
    for body in (title_body, summary_body):
        assert "max_output_tokens" not in body
    assert compacted["compacted"] is True
    summary = (await tab.message(more))["contextSummary"]
    assert summary.startswith("This is turn 1.")


# ---------------------------------------------------------------- switches


@pytest_asyncio.fixture
async def hosts_image(admin: User) -> AsyncIterator[None]:
    """Open WebUI's own image generation is on, so its menu has the switch Image."""
    on = {"ENABLE_IMAGE_GENERATION": True}
    async with settings_changed(admin, "/api/v1/images/config", on, update="/update"):
        yield


@pytest.mark.usefixtures("hosts_image")
async def test_the_hosts_image_without_its_tool_leads_to_the_pipes_switch(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """Once in a chat, and no longer when the pipe's own switch is on."""
    asked = {"features": {"image_generation": True}}
    no_tools = {"capabilities": {"builtin_tools": False}}
    async with switches(admin, CHAT, meta=no_tools) as model:
        first = await tab.send(model, "sim:short Draw a lake", body=asked)
        second = await tab.send(
            model,
            "sim:short Draw a lake",
            chat_id=first.chat_id,
            body={**asked, "filter_ids": [IMAGES]},
        )

    notes = [
        [line["description"] for line in turn.statuses] for turn in (first, second)
    ]
    told = [["Images by OpenAI" in line for line in lines] for lines in notes]
    assert [any(lines) for lines in told] == [True, False]
    before, after = chat_bodies(simulator)
    assert "tools" not in before
    assert "turn on Images by OpenAI in the menu next to the" in str(before["input"][0])
    assert "image_generation" in hosted(after)
    assert after["input"][: len(before["input"])] == before["input"]


async def test_switches_of_the_composer_hold_for_one_message(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """Each holds for the message that it is on for; the page is offered all of them."""
    async with switches(admin, CHAT) as model:
        [shown] = [row for row in await tab.user.models() if row["id"] == model]
        for on in ([], [EFFORT], list(SWITCHES)):
            await tab.send(model, "sim:short", body={"filter_ids": on})

    assert {row["id"] for row in shown["filters"]} == set(SWITCHES)
    assert len({row["icon"] for row in shown["filters"]}) == len(SWITCHES)
    off, thinking, every = chat_bodies(simulator)
    assert (effort(off), hosted(off)) == (None, [])
    assert (effort(thinking), hosted(thinking)) == ("high", [])
    assert effort(every) == "high"
    kinds = ["web_search", "code_interpreter", "image_generation"]
    assert sorted(hosted(every)) == sorted(kinds)
