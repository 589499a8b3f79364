"""What administrators and users choose, in the real host: models, valves, switches."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio
from aiohttp import web

from calls.valves import expert
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
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
AUTO = f"{PIPE}.gpt-5-auto"
PRO = "gpt-6.1-sol-pro-high"
LIMITED_KEY = "sk-simulator-limited"
SCHEMA = {
    "name": "answer",
    "schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
OLDER = """
from pydantic import BaseModel
class Pipe:
    class Valves(BaseModel):
        BASE_URL: str = ""
        API_KEY: str = ""
        MODEL_ID: str = ""
        PROMPT_CACHE_KEY: str = "id"
        MAX_RETRIES: str = ""
        IDLE_TIMEOUT_SECONDS: str = ""
    def __init__(self):
        self.valves = self.Valves()
    def pipes(self):
        return [{"id": "gpt-5.2", "name": "Old"}]
    async def pipe(self, body):
        return "old"
"""


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


def lines(turn: Turn) -> list[str]:
    """The status lines above an answer."""
    return [status["description"] for status in turn.statuses]


def effort(body: Json) -> str | None:
    """The effort that a request asks for."""
    asked: Json = body.get("reasoning", {})
    return asked.get("effort")


def hosted(body: Json) -> list[str]:
    """The tools of OpenAI that a request offers; the host has tools of its own."""
    tools = [tool["type"] for tool in body.get("tools", ())]
    return [kind for kind in tools if kind != "function"]


def last_body(simulator: Simulator) -> Json:
    """What the newest request for a chat holds."""
    return chat_bodies(simulator)[-1]


# ---------------------------------------------------------------- the set-up


async def test_an_administrator_checks_the_set_up(
    admins_tab: Tab, simulator: Simulator
) -> None:
    """The findings are an answer like any other, stored; the model sees no command."""
    turn = await admins_tab.send(CHAT, "/check")

    assert turn.error is None
    assert "✅ **The key**" in turn.text
    assert "✅ **Streaming**" in turn.text
    assert (await admins_tab.message(turn))["content"] == turn.text.strip()
    assert "/check" not in str([request.body for request in answered(simulator)])


async def test_valves_of_an_earlier_version_still_load(
    admin: User, admins_tab: Tab, pipe_source: str, simulator: Simulator
) -> None:
    """Words and texts that were stored once are taken for ever."""
    old = {
        "BASE_URL": simulator.base_url,
        "API_KEY": simulator.api_key,
        "MODEL_ID": "gpt-5.2",
        "PROMPT_CACHE_KEY": "email",
        "MAX_RETRIES": "9",
        "IDLE_TIMEOUT_SECONDS": "a while",
    }
    await admin.install_function("elder", OLDER)
    await admin.set_valves("elder", old)
    assert (await admin.valves("elder"))["PROMPT_CACHE_KEY"] == "email"
    try:
        await admin.install_function("elder", pipe_source)
        turns = [await admins_tab.send("elder.gpt-5.2", "sim:short") for _ in "ab"]
    finally:
        await admin.delete_function("elder")

    assert [turn.error for turn in turns] == [None, None]
    first, second = (body["prompt_cache_key"] for body in chat_bodies(simulator))
    assert first == second  # of the user, not of the chat


# ---------------------------------------------------------------- models


async def listed_by(admin: User) -> list[str]:
    """The names that the pipe lists now."""
    models = [model["id"] for model in await admin.models()]
    ours = [model.split(".", 1) for model in models if model.startswith(f"{PIPE}.")]
    return [name for _, name in ours]


async def test_what_the_key_may_not_use_is_hidden_unless_written_by_hand(
    admin: User, admins_tab: Tab, simulator: Simulator
) -> None:
    """It fails at use, with a message."""
    limited = {"API_KEY": LIMITED_KEY, "MODEL_ID": "auto, gpt-6.1-sol"}
    async with valves_changed(admin, PIPE, **limited):
        names = await listed_by(admin)
        turn = await admins_tab.send(f"{PIPE}.gpt-6.1-sol", "sim:short")

    assert "gpt-5.4" in names
    assert [name for name in names if name.startswith("gpt-6")] == ["gpt-6.1-sol"]
    assert "gpt-6.1-sol" in str(turn.error)


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
        await admin.install_function("kept", pipe_source)
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


async def test_overrides_of_a_model_hold(
    admin: User, admins_tab: Tab, simulator: Simulator
) -> None:
    """Its name is listed, its facts hold, its end is told with the successor."""
    overrides = (
        '{"gpt-5.2": {"name": "Our GPT", "verbosity": false, '
        '"shutdown": "2020-01-01", "successor": "gpt-6.1-sol"}}'
    )
    # A model that is shared already has a record with its name, so a new one.
    async with valves_changed(
        admin, PIPE, MODEL_OVERRIDES_JSON=overrides, MODEL_ID="gpt-5.2, gpt-5.2-high"
    ):
        named = {model["id"]: model["name"] for model in await admin.models()}
        turn = await admins_tab.send(CHAT, "sim:short", body={"verbosity": "low"})

    assert named[f"{CHAT}-high"] == "Our GPT (high)"
    assert "Our GPT was switched off on 2020-01-01. Use GPT-6.1 Sol instead." in lines(
        turn
    )
    assert "text" not in last_body(simulator)


async def test_the_last_line_says_how_full_the_window_is(admin: User, tab: Tab) -> None:
    """From half on, and on the stored answer; a chat with room for more says nothing."""
    with_room = await tab.send(CHAT, "sim:short")
    share = {"gpt-5.2": {"context_window": 6_000}}
    async with valves_changed(admin, PIPE, MODEL_OVERRIDES_JSON=json.dumps(share)):
        nearly_full = await tab.send(CHAT, "sim:short")
    stored = await tab.message(nearly_full)

    assert not any("full" in line for line in lines(with_room))
    last = str(stored["statusHistory"][-1]["description"])
    assert re.search(r" · context [5-9]\d% full", last), last


async def test_auto_names_its_choice_and_keeps_it_for_the_chat(
    tab: Tab, simulator: Simulator
) -> None:
    """The second question alone would have gone to the large model."""
    first = await tab.send(AUTO, "sim:short Hello")
    code = "sim:short ```print(1)```"
    second = await tab.send(AUTO, code, chat_id=first.chat_id)
    other = await tab.send(AUTO, code)

    models = [body["model"] for body in chat_bodies(simulator)]
    assert models == ["gpt-6.1-terra", "gpt-6.1-terra", "gpt-6.1-sol"]
    assert lines(first)[0].startswith("GPT-6.1 Terra answers: the question is short")
    assert lines(second)[0] == "GPT-6.1 Terra answers: it began this chat."
    assert lines(other)[0] == "GPT-6.1 Sol answers: the question holds code."
    history = (await tab.message(second))["statusHistory"]
    assert history[0]["description"] == lines(second)[0]
    assert "reasoning" in [item["type"] for item in chat_bodies(simulator)[1]["input"]]


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


async def test_the_other_settings_of_a_user_reach_the_request(
    admin: User, member: User, tab: Tab, simulator: Simulator
) -> None:
    """Each with the others; what users may not change stays as it is."""
    chosen = {
        "REASONING_EFFORT": "low",
        "REASONING_SUMMARY": "concise",
        "VERBOSITY": "low",
        "SERVICE_TIER": "flex",
        "WEB_SEARCH": "on",
        "CODE_INTERPRETER": "on",
        "IMAGE_GENERATION": "on",
    }
    may_change = "effort, summary, verbosity, service_tier, web_search"
    async with (
        user_valves(member, **chosen),
        valves_changed(admin, PIPE, USER_MAY_CHANGE=may_change),
    ):
        await tab.send(CHAT, "sim:short")

    body = last_body(simulator)
    assert body["reasoning"] == {"effort": "low", "summary": "concise"}
    assert body["text"]["verbosity"] == "low"
    assert body["service_tier"] == "flex"
    assert hosted(body) == ["web_search"]


@pytest.mark.usefixtures("toolkit")
async def test_the_usage_of_all_turns_is_summed(tab: Tab, simulator: Simulator) -> None:
    """Once, in the message: three requests, one bill."""
    body = calling("get_weather", "toolkit")
    turn = await tab.send(CHAT, "sim:tool-twice weather?", body=body)

    usages = [(r.response or {})["usage"] for r in answered(simulator)]
    usage = (await tab.message(turn))["usage"]
    assert len(usages) == 3
    for key in ("input_tokens", "output_tokens", "total_tokens"):
        assert usage[key] == sum(used[key] for used in usages)
    assert usage["prompt_tokens"] == usages[-1]["input_tokens"]


async def test_the_cost_is_stored_where_it_is_shown(
    member: User, tab: Tab, simulator: Simulator
) -> None:
    """In the usage of the message, and in its last status line."""
    async with user_valves(member, SHOW_COST="on"):
        turn = await tab.send(CHAT, "sim:short")
    plain = await tab.send(CHAT, "sim:short")

    stored = await tab.message(turn)
    without = await tab.message(plain)
    assert stored["usage"]["cost"] > 0
    assert "$" in stored["statusHistory"][-1]["description"]
    assert "cost" not in without["usage"]
    assert "$" not in without["statusHistory"][-1]["description"]


async def test_a_workspace_model_asks_for_json(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """Its own parameters reach the API in the API's form.

    Without `strict: false` the API would make the schema strict.
    """
    params = {
        "custom_params": {
            "response_format": '{"type": "json_schema"}',
            "json_schema": SCHEMA,
            "verbosity": "low",
        }
    }
    async with workspace_model(admin, CHAT, params) as model:
        turn = await tab.send(model, "sim:short")

    assert turn.error is None
    assert last_body(simulator)["text"] == {
        "format": {"type": "json_schema", **SCHEMA, "strict": False},
        "verbosity": "low",
    }


async def test_users_own_key_pays_for_the_users_chats(
    admin: User, member: User, tab: Tab, admins_tab: Tab, simulator: Simulator
) -> None:
    """It pays for that user's chats; where one is required, others are told how."""
    own = {"API_KEY": "sk-of-nobody", "USER_API_KEYS": "required"}
    async with valves_changed(admin, PIPE, **own):
        untold = await tab.send(CHAT, "sim:short")
        async with user_valves(member, API_KEY=CANARY_KEY):
            turn = await tab.send(CHAT, "sim:short")
        administrators = await admins_tab.send(CHAT, "sim:short")

    assert "This pipe needs your own OpenAI API key" in str(untold.error)
    assert turn.error is None
    assert turn.text
    assert "An administrator has to check API_KEY" in str(administrators.error)
    assert CANARY_KEY not in str(turn.events) + str(await tab.message(turn))


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


async def test_a_format_without_a_schema_is_told_on_the_page(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """In the place of an answer: whoever made the model reads what is wrong."""
    params = {"custom_params": {"response_format": '{"type": "json_schema"}'}}
    async with workspace_model(admin, CHAT, params) as model:
        turn = await tab.send(model, "sim:short")

    assert "The setting response_format cannot be sent: json_schema" in str(turn.error)
    assert chat_bodies(simulator) == []
