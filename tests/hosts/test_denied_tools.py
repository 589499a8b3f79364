"""A rule of TOOL_APPROVAL holds in the real Open WebUI."""

import json
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, is_question
from hosts.people.users import User, settings_changed
from hosts.sent import chat_bodies, tool_outputs
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.tool_servers import CONNECTIONS
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from hosts.test_tools import browser_tool
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

CHATS = "/api/v1/chats/config"
DENIED: Json = {"TOOL_APPROVAL": "get_*=deny"}
ASKED: Json = {"TOOL_APPROVAL": "get_*=ask"}
LEGACY = {"params": {"model_controls": {}, "function_calling": "legacy"}}
CHOICE = {"tool_calls": [{"name": "get_weather", "parameters": {"city": "Bern"}}]}
BOGUS: Json = {"type": "function", "name": "bogus", "parameters": {"type": "object"}}


class Case(NamedTuple):
    """Settings, a question, the fields of its request, what the model is told."""

    valves: Json
    question: str
    body: Json
    words: str = "does not allow"


CASES = {
    "not offered": Case({}, "sim:hidden-tool", {"tool_ids": ["toolkit"]}),
    "beside an unknown one": Case(
        ASKED,
        "sim:tool",
        {**calling("get_weather", "toolkit"), "extra_tools": [BOGUS]},
        "did not approve",
    ),
    "renamed": Case(
        {},
        "sim:tool",
        calling("twin_get_weather", "toolkit", "twin"),
    ),
    "rule not read": Case(
        {"TOOL_APPROVAL": "get_*:deny"},
        "sim:tool",
        calling("get_weather", "toolkit"),
        "did not approve",
    ),
    "in the older mode": Case(
        {}, f"sim:chat {json.dumps(CHOICE)}", {"tool_ids": ["toolkit"], **LEGACY}, ""
    ),
}


@pytest.fixture
def has_run(server: OpenWebUI) -> Callable[[], bool]:
    """Whether the tool has run in this test, which leaves a file then."""
    path = server.home / "data" / "seen"
    path.unlink(missing_ok=True)
    return path.exists


@pytest.mark.usefixtures("twin")
async def test_denied_tool_runs_nowhere(
    tab: Tab, admin: User, simulator: Simulator, has_run: Callable[[], bool]
) -> None:
    """By no name and in no way; the answer goes on."""
    tab.answer_questions(False)
    for name, case in CASES.items():
        async with valves_changed(admin, PIPE, **(DENIED | case.valves)):
            turn = await tab.send(MODEL, case.question, body=case.body)

        assert turn.error is None, name
        assert not has_run(), name
        told = " ".join(tool_outputs(chat_bodies(simulator)[-1]))
        assert case.words in told, name


async def test_denied_tool_runs_in_no_chat_of_several_models(
    tab: Tab, admin: User, simulator: Simulator, has_run: Callable[[], bool]
) -> None:
    """Clients choose which one is the first, and add a function that nothing runs."""
    params = {"custom_params": {"tools": [{"type": "function", "function": BOGUS}]}}
    body = {**calling("get_weather", "toolkit"), "params": params}
    async with valves_changed(admin, PIPE, **DENIED):
        turns = await tab.begin_each([MODEL, f"{PIPE}.gpt-5.2"], "sim:tool", body=body)
        for turn in turns:
            await turn.until(lambda seen: seen.finished.is_set())

    assert not has_run()
    told = [output for sent in chat_bodies(simulator) for output in tool_outputs(sent)]
    assert ["does not allow" in output for output in told] == [True, True]


@pytest_asyncio.fixture
async def tool_search(admin: User) -> AsyncIterator[None]:
    """All tools can be reached through `call_tool` alone; people may bring their own."""
    search = {"ENABLE_TOOL_SEARCH": True, "TOOL_SEARCH_DEFER_THRESHOLD": 0}
    direct = {"ENABLE_DIRECT_INTEGRATIONS": True}
    async with (
        settings_changed(admin, CHATS, search),
        settings_changed(admin, CONNECTIONS, direct),
    ):
        yield


WIDE = {"type": "object", "properties": {"a": {"enum": [*range(100_000)]}}}
BEHIND = {
    "denied": (DENIED, "get_weather", "does not allow get_weather"),
    "asked about": (ASKED, "get_weather", "did not approve"),
    "itself": ({"TOOL_APPROVAL": "call_tool=deny"}, "get_weather", "does not allow"),
    "too large": ({}, "wide", "no tool named wide"),
    "small": ({}, "small", "seen"),
}


@pytest.mark.usefixtures("tool_search")
async def test_call_tool_reaches_nothing_that_may_not_run(
    admin: User, simulator: Simulator, has_run: Callable[[], bool]
) -> None:
    """Nor what was left out for the size of its schema; what may run, does."""
    asked: list[Json] = []

    def answer(payload: Json) -> object:
        asked.append(payload["data"])
        return False if is_question(payload) else [{"seen": True}, {}]

    servers = [browser_tool("wide", WIDE), browser_tool("small", BOGUS["parameters"])]
    body = {**calling("call_tool", "toolkit"), "tool_servers": servers}
    outputs: dict[str, str] = {}
    async with Tab(admin) as tab:
        tab.answer = answer
        for name, (valves, tool, _) in BEHIND.items():
            call = json.dumps({"tool_name": tool, "params": '{"city": "Bern"}'})
            async with valves_changed(admin, PIPE, **valves):
                turn = await tab.send(MODEL, f"sim:tool {call}", body=body)
            assert turn.error is None
            outputs[name] = " ".join(tool_outputs(chat_bodies(simulator)[-1]))

    assert not has_run()
    assert {k: v for k, v in outputs.items() if BEHIND[k][2] not in v} == {}
    [question] = [
        event["data"] for event in asked if event.get("type") == "confirmation"
    ]
    assert question["tool_call"]["name"] == "get_weather"
    assert question["tool_call"]["arguments"] == {"city": "Bern"}
    ran = [event["data"] for event in asked if event.get("type") == "execute:tool"]
    assert [event["name"] for event in ran] == ["small"]
