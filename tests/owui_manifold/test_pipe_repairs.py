"""What a server refuses is left out in the same call, and not sent again."""

import json
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    answering,
    errors,
    grown,
    statuses,
    stored,
)
from calls.sample import USER, chat, valves_for
from owui_chat.storage.markers import strip_markers
from owui_manifold.call.valves import UserValves
from simulator import Simulator
from simulator.faults import refuse_tool

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
NAMED: Json = {"ORGANIZATION": "ours"}
MOVED = {
    "API_KEY": "sk-simulator-2",
    **NAMED,
}  # the key is of another one than its name says
UNREADABLE = (
    "The model's server could not read earlier reasoning in this chat: answering "
    "without it."
)


@pytest.fixture(autouse=True)
def named(desk: Desk) -> None:
    desk.set_valves(**NAMED)


def answered(chunks: list[Json]) -> bool:
    is_answered = strip_markers(grown(chunks)).startswith("This is turn")
    return is_answered and not errors(chunks)


def sent_reasoning(sim: Simulator, index: int = -1) -> list[str]:
    items = sim.requests[index].body["input"]
    return [i["encrypted_content"] for i in items if i["type"] == "reasoning"]


def received_reasoning(sim: Simulator) -> list[str]:
    """The encrypted content that its answer brought."""
    response = sim.requests[-1].response
    assert response is not None
    output = response["output"]
    return [i["encrypted_content"] for i in output if i["type"] == "reasoning"]


async def test_reasoning_of_another_organization_is_left_out_for_good(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer comes in the same call; no later request carries it again."""
    first = await desk.ask("Hi", **answering("m-1"))
    old = received_reasoning(desk.sim)
    desk.set_valves(**MOVED)
    texts = ["Hi", stored(first), "And now?"]

    second = await desk.ask(*texts, **answering("m-2"))

    assert answered(second)
    assert statuses(second) == [UNREADABLE]
    assert UNREADABLE in caplog.text
    assert [request.status for request in desk.sim.requests] == [200, 400, 200]
    assert sent_reasoning(desk.sim, 1) == old
    assert sent_reasoning(desk.sim, 2) == []
    new = received_reasoning(desk.sim)

    third = await desk.ask(*texts, stored(second), "Go on.", **answering("m-3"))

    assert answered(third)
    assert statuses(third) == []
    assert len(desk.sim.requests) == 4
    assert new
    assert sent_reasoning(desk.sim) == new


OLD = "my_pipe.gpt-5"  # a model that refuses `concise`
CONCISE = UserValves(REASONING_SUMMARY="concise")
CHOICES: list[tuple[Json, UserValves]] = [
    ({}, CONCISE),
    ({"reasoning": {"summary": "concise"}}, UserValves()),
    ({"reasoning_summary": "concise", "reasoning_effort": "low"}, UserValves()),
]


@pytest.mark.parametrize(("body", "user_valves"), CHOICES)
@pytest.mark.usefixtures("host")
async def test_one_users_refusal_teaches_nothing_about_others(
    body: Json, user_valves: UserValves, desk: Desk
) -> None:
    """What one person chose is refused to them alone."""
    desk.pipe.valves = valves_for(desk.sim)
    chooser = {**answering("m-1"), "__user__": {**USER, "valves": user_valves}}

    first = await desk.chunks(chat("Hi", model=OLD, **body), **chooser)
    await desk.chunks(chat("Hi", model=OLD), **answering("m-2"))
    await desk.ask("Hi", **answering("m-3"))

    assert answered(first)
    assert [request.status for request in desk.sim.requests] == [400, 200, 200, 200]
    sent = [request.body.get("reasoning", {}) for request in desk.sim.requests]
    summaries = [reasoning.get("summary") for reasoning in sent]
    assert summaries == ["concise", None, "auto", "auto"]


def as_user(name: str, message_id: str) -> Json:
    return {**answering(message_id), "__user__": {**USER, "id": name}}


async def test_refusals_of_a_request_with_choices_are_learned_for_one_user(
    desk: Desk,
) -> None:
    """Others meet them; those of the administrator's own settings are for everybody.

    Only the last one, after which the request was accepted; the next is learned when
    somebody else meets it.
    """
    chosen = chat("Hi", reasoning_effort="high")
    counts: list[int] = []

    # It allows less to organizations that are not verified.
    async with Simulator("unverified-stream") as unverified:
        desk.pipe.valves = valves_for(unverified)
        for body, name in (
            (chosen, "user-1"),
            (chosen, "user-1"),
            (chosen, "user-2"),
            (chat("Hi"), "user-3"),
            (chat("Hi"), "user-4"),
            (chosen, "user-5"),
        ):
            unverified.forget()
            await desk.chunks(body, **as_user(name, f"m-{len(counts)}"))
            counts.append(len(unverified.requests))

    first = counts[0]
    assert first > 1
    assert counts == [first, 1, first, first, first - 1, 1]


HOST_SEARCH: Json = {
    "type": "function",
    "function": {
        "name": "search_web",
        "description": "Search the web",
        "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
    },
}


async def test_open_webuis_search_stays_where_openais_is_refused(desk: Desk) -> None:
    """The Web Search switch never means no search."""
    desk.sim.faults.append(refuse_tool("web_search"))
    desk.set_valves(MAP_WEB_SEARCH=True)
    switched = {**NATIVE["__metadata__"], "features": {"web_search": True}}
    given = {"__metadata__": switched}

    for text in ("Hi", "And now?"):
        assert answered(await desk.chunks(chat(text, tools=[HOST_SEARCH]), **given))

    first, again, later = desk.bodies
    assert [tool["type"] for tool in first["tools"]] == ["web_search"]
    assert "tools" not in again
    assert [tool.get("name") for tool in later["tools"]] == ["search_web"]


FOREIGN_KEY = "tools[0].allowed_tools 'store' x"
OFFERED: Json = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
    "allowed_tools": ["read"],
    "require_approval": "never",
}


@pytest.mark.usefixtures("host")
@pytest.mark.parametrize(
    "more",
    [
        {"text": {FOREIGN_KEY: 1}},
        {"reasoning": {FOREIGN_KEY: 1}},
        {"tools": [{"type": "function", "function": {"name": FOREIGN_KEY}}]},
    ],
)
async def test_a_users_keys_and_names_change_nothing_for_others(
    desk: Desk, more: Json
) -> None:
    """Neither the tools that an administrator chose, nor `store`."""
    servers = json.dumps([OFFERED])
    desk.set_valves(REMOTE_MCP_SERVERS_JSON=servers)
    before = await desk.ask("Hi", **as_user("user-2", "m-1"))
    [expected] = desk.bodies
    desk.sim.forget()

    await desk.chunks(chat("Hi", **more), **as_user("user-1", "m-1"))
    after = await desk.ask("Hi", **as_user("user-2", "m-1"))

    assert answered(before)
    assert answered(after)
    assert desk.sent == expected
    assert all(request.body["store"] is False for request in desk.sim.requests)
    tools = [request.body["tools"][0] for request in desk.sim.requests]
    assert tools == [expected["tools"][0]] * len(tools)
