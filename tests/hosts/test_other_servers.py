"""Servers that stream in other ways than OpenAI, behind the pipe in Open WebUI."""

import json

import pytest

from hosts.people.questions import ASKS, calling
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from simulator import Simulator
from upstream import wire
from upstream.odd_streams import sending
from upstream.server import Upstream, streaming

pytestmark = [
    pytest.mark.host,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

USED = calling("get_weather", "toolkit")
OUTPUT = [
    *("reasoning", "function_call", "function_call_output"),
    *("reasoning", "message"),
]


async def test_a_tool_of_a_server_that_ends_otherwise_runs_once(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Its text is there once, and the chat goes on after a stop.

    What the other servers stream is read in openai_responses/loop/test_run_others.py,
    how their answers end in owui_manifold/test_pipe_odd_streams.py.
    """
    headers = json.dumps({"X-Simulator-Profile": "litellm"})
    async with valves_changed(admin, PIPE, EXTRA_HEADERS=headers):
        turn = await tab.send(MODEL, "sim:tool weather?", body=USED)
        stopped = await tab.begin(MODEL, "sim:slow", chat_id=turn.chat_id)
        await stopped.until(lambda seen: bool(seen.text))
        await tab.stop(stopped)
        await tab.settle(stopped)
        assert (await tab.message(stopped))["done"]

    assert turn.error is None
    stored = await tab.message(turn)
    shown = [i["type"] for i in stored["output"] if ":" not in i["type"]]
    assert shown == OUTPUT
    assert stored["content"].count("It said: ") == 1
    sent = [
        kinds(body["input"]).count("function_call") for body in chat_bodies(simulator)
    ]
    assert sent == [0, 1, 1]


async def test_plain_thought_goes_back_after_an_approval(tab: Tab, admin: User) -> None:
    """The host asks, makes the call and calls the pipe again; vLLM wants the thought."""
    async with (
        Upstream(sending("vllm.1", "vllm.2", "vllm.2")) as upstream,
        valves_changed(admin, PIPE, BASE_URL=upstream.base_url),
    ):
        turn = await tab.begin(MODEL, "weather?", body=USED | ASKS)
        assert await tab.decide(turn, "approve") == ["get_weather"]
        await tab.send(MODEL, "and then?", chat_id=turn.chat_id)

    first, second, third = upstream.bodies
    added = second["input"][len(first["input"]) :]
    assert kinds(added) == ["reasoning", "function_call", "function_call_output"]
    assert "reasoning" not in kinds(third["input"])


async def test_half_a_character_loses_nothing(tab: Tab, admin: User) -> None:
    """For a program in one piece, and in a chat, which can be opened afterwards."""
    message = wire.message("Rain \ud83c", "\udf27 in Z\ud83c.")
    answer = streaming(wire.on_the_wire(*wire.whole_stream(message)))
    async with (
        Upstream(answer) as upstream,
        valves_changed(admin, PIPE, BASE_URL=upstream.base_url),
    ):
        question = {"role": "user", "content": "weather?"}
        body = {"model": MODEL, "messages": [question]}
        whole = await admin.call("POST", "/api/chat/completions", body)
        turn = await tab.send(MODEL, "weather?")
        stored = await tab.message(turn)

    [choice] = whole["choices"]
    assert choice["message"]["content"] == "Rain 🌧 in Z\ufffd."
    assert turn.error is None
    assert stored["content"].strip().startswith("Rain ")
    assert " in Z" in stored["content"]


async def test_gateway_gets_placeholders_and_the_users_login(
    tab: Tab, admin: User
) -> None:
    """Headers as the host's own connections fill them in; no key of the pipe."""
    headers = {"X-User": "{{USER_ID}}", "X-Chat": "{{CHAT_ID}}", "X-Team": "blue"}
    async with (
        Upstream(sending("vllm.2", "vllm.2")) as upstream,
        valves_changed(
            admin,
            PIPE,
            BASE_URL=upstream.base_url,
            EXTRA_HEADERS=json.dumps(headers),
            AUTH="session",
        ),
    ):
        turn = await tab.send(MODEL, "weather?")
        async with valves_changed(admin, PIPE, AUTH="system_oauth"):
            nobody = await tab.send(MODEL, "weather?")

    assert turn.error is None
    [request] = upstream.requests
    assert request.headers["X-User"] == tab.user.id
    assert request.headers["X-Chat"] == turn.chat_id
    assert request.headers["X-Team"] == "blue"
    assert request.headers["Authorization"] == f"Bearer {tab.user.token}"
    assert "needs your OAuth token" in str(nobody.error)
