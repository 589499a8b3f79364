"""Every kind of tool, run by our pipe and by Open WebUI: the same is stored."""

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from hosts.people.client import Json
from hosts.people.questions import tool_choice
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.sent import host_items
from hosts.servers.tool_servers import ToolServers

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "simulator", "stub")]

PIPE = "openai_responses"
OURS = f"{PIPE}.gpt-6.2-sol"
THEIRS = "stub.one"
"""A pipe that leaves its calls to Open WebUI."""
FILE = re.compile(r"/api/v1/files/[0-9a-f-]+")
BROWSERS = {
    "url": "http://127.0.0.1:9/browser",
    "info": {"title": "The browser's"},
    "openapi": {},
    "specs": [
        {
            "name": "lamp",
            "description": "Switch the lamp.",
            "parameters": {
                "type": "object",
                "properties": {"on": {"type": "boolean"}},
                "required": ["on"],
            },
        }
    ],
}


@dataclass(frozen=True)
class Use:
    """One use of a tool: which one, how it is offered, with which arguments."""

    name: str
    arguments: Json = field(default_factory=dict)
    body: Json = field(default_factory=dict)
    called: str | None = None


def openapi(name: str, called: str, **arguments: str) -> Use:
    return Use(name, arguments, {"tool_ids": ["server:weather"]}, called)


def mcp(name: str, **arguments: str) -> Use:
    called = " ".join([name, *arguments.values()])
    tools = {"tool_ids": ["server:mcp:clocks"]}
    return Use(f"clocks_{name}", arguments, tools, called)


def terminal(name: str, called: str, **arguments: str) -> Use:
    return Use(name, arguments, {"terminal_id": "shell"}, called)


USES = {
    "Python": Use("get_weather", {"city": "Bern"}, {"tool_ids": ["toolkit"]}),
    "Python embed": Use("weather_board", {"city": "Bern"}, {"tool_ids": ["toolkit"]}),
    "builtin": Use("view_knowledge_file", {"file_id": "FILE"}),
    "builtin error": Use("view_knowledge_file", {"file_id": "none"}),
    "OpenAPI": openapi("forecast", "POST /forecast", city="Bern"),
    "OpenAPI picture": openapi("chart", "GET /chart/Bern", city="Bern"),
    "OpenAPI embed": openapi("board", "GET /board"),
    "OpenAPI error": openapi("broken", "GET /broken"),
    "MCP": mcp("now", zone="UTC"),
    "MCP picture": mcp("dial", zone="UTC"),
    "MCP error": mcp("wind", zone="UTC"),
    "direct": Use("lamp", {"on": True}, {"tool_servers": [BROWSERS]}),
    "terminal": terminal("run_command", "POST /terminal/run", command="ls"),
    "terminal file": terminal("display_file", "GET /terminal/display", path="/a.txt"),
}


@pytest_asyncio.fixture(scope="module")
async def servers(admin: User, toolkit: None) -> AsyncIterator[ToolServers]:
    async with ToolServers() as running, running.registered(admin):
        yield running


@pytest_asyncio.fixture(scope="module")
async def file_id(admin: User) -> str:
    """A file of the administrator, which a builtin tool reads."""
    form = aiohttp.FormData()
    form.add_field("file", b"The harbour was built in 1963.", filename="harbour.txt")
    address = f"{admin.url}/api/v1/files/?process=false"
    async with admin.http.post(address, data=form, headers=admin.headers) as reply:
        stored_id: str = (await reply.json())["id"]
        return stored_id


@pytest_asyncio.fixture
async def tab(admin: User) -> AsyncIterator[Tab]:
    """A tab of the administrator, whose browser has a lamp."""
    async with Tab(admin) as opened:
        opened.answer = _switch
        yield opened


def _switch(payload: Json) -> Any:
    event = payload["data"]
    if event.get("type") != "execute:tool":
        return None
    return [{"lamp": event["data"]["params"]["on"]}, {}]


async def used(tab: Tab, model: str, use: Use) -> Turn:
    """A turn in which the model uses the tool once."""
    body = {**use.body, "tool_choice": tool_choice(use.name)}
    arguments = json.dumps(use.arguments)
    question = f"sim:tool {arguments}" if model == OURS else arguments
    return await tab.send(model, question, body=body)


async def plain(tab: Tab, turn: Turn) -> Json:
    """What is stored of a call, without what no two answers have in common."""
    message = await tab.message(turn)
    kept = {key: message.get(key) for key in ("files", "sources", "embeds", "error")}
    items = [item for item in host_items(message) if "call_id" in item]
    text = json.dumps([kept, [_plain_item(item) for item in items]])
    kept, output = json.loads(FILE.sub("/a-file", text.replace(turn.chat_id, "chat")))
    return {**kept, "output": output}


def _plain_item(item: Json) -> Json:
    rest = {k: v for k, v in item.items() if k not in ("id", "call_id", "duration")}
    if item["type"] == "function_call":
        rest["arguments"] = json.loads(item["arguments"])
    return rest


@pytest.mark.asyncio
async def test_both_runners_store_the_same(
    tab: Tab, servers: ToolServers, file_id: str
) -> None:
    """The items of the answer, its files, its embeds, its sources.

    Of what a tool raised, only the words around it differ.
    """
    for kind, given in USES.items():
        pairs = given.arguments.items()
        arguments = {k: file_id if v == "FILE" else v for k, v in pairs}
        use = replace(given, arguments=arguments)
        servers.called.clear()
        ours = await used(tab, OURS, use)
        called_by_us = list(servers.called)
        theirs = await used(tab, THEIRS, use)

        assert ours.error is theirs.error is None, kind
        our_message, their_message = [await plain(tab, turn) for turn in (ours, theirs)]
        assert our_message == their_message, kind
        assert bool(our_message["sources"]) is (kind == "builtin")
        types = [item["type"] for item in our_message["output"]]
        assert types == ["function_call", "function_call_output"], kind
        assert our_message["output"][0]["arguments"] == use.arguments
        assert servers.called == called_by_us * 2, kind
        assert [use.called] * (use.called is not None) == called_by_us, kind

    use = Use("broken_weather", {"city": "Bern"}, {"tool_ids": ["toolkit"]})
    ours = await used(tab, OURS, use)
    theirs = await used(tab, THEIRS, use)

    our_items, their_items = [
        (await plain(tab, turn))["output"] for turn in (ours, theirs)
    ]
    for items in (our_items, their_items):
        assert [item["status"] for item in items] == ["failed", "failed"]
        output = str(items[1].pop("output"))
        assert "canary-of-the-exception for Bern" in output
    assert our_items == their_items
