"""Tools that the API would refuse never stop a chat in the real Open WebUI."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User, settings_changed
from hosts.sent import chat_bodies
from hosts.servers.tool_servers import CONNECTIONS
from hosts.setup.pipes import MODEL
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

OTHER = "openai_responses.gpt-5.2"
SCHEMAS = Path(__file__).resolve().parents[1] / "schemas" / "hard.json"
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
USERS = {"name": "users.list", "description": "Lists.", "parameters": CITY}
FILLERS = [{**USERS, "name": f"filler.{number}"} for number in range(120)]
SPELLINGS = ["functions.users.list", "Users.List"]


def browser_tools() -> Json:
    """What a page offers: tools of a server that only the browser reaches."""
    hard = [
        {"name": tool["name"], "description": "Hard.", "parameters": tool["parameters"]}
        for tool in json.loads(SCHEMAS.read_text("utf-8"))
    ]
    server = {"url": "http://127.0.0.1:9/hard", "info": {"title": "Hard"}}
    specs = [USERS, *hard, *FILLERS]
    return {"tool_servers": [{**server, "openapi": {}, "specs": specs}]}


@pytest_asyncio.fixture
async def tab(admin: User) -> AsyncIterator[Tab]:
    """A tab of somebody who may add servers that only the browser reaches."""
    direct = {"ENABLE_DIRECT_INTEGRATIONS": True}
    async with settings_changed(admin, CONNECTIONS, direct), Tab(admin) as opened:
        yield opened


@pytest.mark.asyncio
async def test_unusual_tools_do_not_stop_the_chat(
    tab: Tab, simulator: Simulator
) -> None:
    """Schemas, names, ids, and too many: the chat goes on, also with another model."""
    called: list[str] = []

    def run(payload: Json) -> Any:
        called.append(payload["data"]["data"]["name"])
        return [{"users": ["Ada"]}, {}]

    tab.answer = lambda payload: (
        run(payload) if payload["data"].get("type") == "execute:tool" else None
    )
    body = browser_tools()
    first = await tab.send(MODEL, 'sim:own-spelling {"city": "Bern"}', body=body)
    turns = [first]
    for model in (MODEL, OTHER, MODEL):
        more: Json = {"chat_id": first.chat_id, "body": body}
        turns.append(await tab.send(model, "And now?", **more))

    assert [turn.error for turn in turns] == [None] * 4
    assert called == ["users.list"] * 2
    stored = (await tab.message(first))["output"]
    shown = [item["name"] for item in stored if item["type"] == "function_call"]
    assert shown == SPELLINGS
    for turn in turns:  # the page shows the last line alone
        line = turn.statuses[-1]["description"]
        assert re.match(r"Left out: \d+ of this chat's \d+ tools, because", line)
    sent = chat_bodies(simulator)
    assert len(sent) == 5
    kinds = [Counter(tool["type"] for tool in request["tools"]) for request in sent]
    assert kinds == [Counter(function=128)] * 5
    assert tool_names(sent[0])[0].startswith("users_")
    same_model = [sent[0], sent[1], sent[2]]
    assert all(
        request["input"] == sent[4]["input"][: len(request["input"])]
        for request in same_model
    )
    histories = [calls_of(request)[:2] for request in sent[1:]]
    assert histories == [histories[0]] * 4
    names, ids = zip(*histories[0], strict=True)
    assert names[0] == next(n for n in tool_names(sent[0]) if n.startswith("users_"))
    assert len({*ids}) == 2
    assert all(len(id) <= 64 for id in ids)


def calls_of(body: Json) -> list[tuple[str, str]]:
    """The name and the id of each call in a request."""
    calls = [item for item in body["input"] if item["type"] == "function_call"]
    return [(call["name"], call["call_id"]) for call in calls]


def tool_names(body: Json) -> list[str]:
    return [tool["name"] for tool in body["tools"] if tool["type"] == "function"]
