"""Open WebUI's tools, run by the pipe in the real Open WebUI."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from calls.valves import expert
from hosts.people.questions import ASKS, calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, settings_changed
from hosts.sent import (
    chat_bodies,
    kinds,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.tool_servers import CONNECTIONS
from hosts.setup.pipes import MODEL, PIPE, PLUGINS, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

USED = {"tool_ids": ["toolkit"]}
CUSTOM_TOOL = (PLUGINS / "custom_tool_filter.py").read_text()


@pytest.mark.asyncio
async def test_a_page_with_streaming_off_is_asked_and_has_its_tools_run(
    tab: Tab, simulator: Simulator
) -> None:
    """`tool_approval_mode: ask` of the chat's controls holds for tools that we run.

    Without a stream, the host makes no call, and cannot ask about any. The card is
    stored all the same.
    """
    body = calling("get_weather", "toolkit") | ASKS | {"stream": False}
    for answer, words in ((False, "did not approve"), (True, "Sunny in")):
        questions = tab.answer_questions(answer)
        turn = await tab.send(MODEL, "sim:tool", body=body)

        assert turn.error is None
        names = [question["tool_call"]["name"] for question in questions]
        assert names == ["get_weather"]
        assert words in tool_outputs(chat_bodies(simulator)[-1])[0]
        stored = (await tab.message(turn))["output"]
        assert "function_call_output" in [item["type"] for item in stored]


@pytest_asyncio.fixture
async def custom_tool(admin: User) -> AsyncIterator[None]:
    """A filter that makes one function of the toolkit a custom tool."""
    await admin.install_function("custom_tool_filter", CUSTOM_TOOL)
    await admin.set_global("custom_tool_filter", True)
    yield
    await admin.delete_function("custom_tool_filter")


@pytest.mark.asyncio
@pytest.mark.usefixtures("custom_tool")
async def test_a_custom_tool_is_run_shown_and_replayed(
    tab: Tab, simulator: Simulator
) -> None:
    """Its card has the text as an argument; the API gets the same bytes again."""
    first = await tab.send(MODEL, "sim:custom-tool note it", body=USED)
    second = await tab.send(MODEL, "sim:chat thanks", chat_id=first.chat_id, body=USED)

    assert first.error is second.error is None
    stored = (await tab.message(first))["output"]
    [called] = [item for item in stored if item["type"] == "function_call"]
    [shown] = [item for item in stored if item["type"] == "function_call_output"]
    note = "note: Zürich is at 408 m\n"
    assert (called["name"], called["status"]) == ("take_note", "completed")
    assert json.loads(called["arguments"]) == {"input": note}
    assert shown["output"] == [{"type": "input_text", "text": f"Noted: {note}"}]
    [_, inner, last] = chat_bodies(simulator)
    pair = [i for i in inner["input"] if i["type"].startswith("custom_tool_call")]
    assert [item["type"] for item in pair] == [
        "custom_tool_call",
        "custom_tool_call_output",
    ]
    assert (pair[0]["input"], pair[1]["output"]) == (note, f"Noted: {note}")
    assert last["input"][: len(inner["input"])] == inner["input"]


@pytest_asyncio.fixture
async def legacy_model(admin: User) -> AsyncIterator[str]:
    """A model whose record says that its tools are called in the older way."""
    address = f"/api/v1/models/model?id={MODEL}"
    before = await admin.call("GET", address)
    params = {**before["params"], "temperature": 0.5, "function_calling": "legacy"}
    await admin.call("POST", "/api/v1/models/model/update", before | {"params": params})
    yield address
    await admin.call("POST", "/api/v1/models/model/update", before)


@pytest.mark.asyncio
async def test_a_legacy_model_is_spoken_of_and_set_to_native(
    admins_tab: Tab, admin: User, simulator: Simulator, legacy_model: str
) -> None:
    """Told once to administrators; the valve changes this one word of the record."""
    before = await admin.call("GET", legacy_model)
    first, again = [await admins_tab.send(MODEL, "sim:short") for _ in range(2)]
    async with valves_changed(admin, PIPE, AUTO_NATIVE_TOOLS=True):
        changed = await admins_tab.send(MODEL, "sim:short")
        native = await admins_tab.send(MODEL, "sim:tool weather?", body=USED)

    assert [_about_legacy(turn) for turn in (first, again, changed, native)] == [
        "switch on AUTO_NATIVE_TOOLS",
        None,
        "AUTO_NATIVE_TOOLS has set it to Native",
        None,
    ]
    after = await admin.call("GET", legacy_model)
    assert after["params"] == before["params"] | {"function_calling": "native"}
    changing = {"params", "updated_at", "version_id"}
    for record in (before, after):
        assert changing <= record.keys()
    assert {k: v for k, v in after.items() if k not in changing} == {
        k: v for k, v in before.items() if k not in changing
    }
    kinds_sent = kinds(chat_bodies(simulator)[-1]["input"])
    assert kinds_sent[-1] == "function_call_output"


def _about_legacy(turn: Turn) -> str | None:
    """What the status line of an answer says of the model's settings."""
    words = ("switch on AUTO_NATIVE_TOOLS", "AUTO_NATIVE_TOOLS has set it to Native")
    lines = " ".join(status["description"] for status in turn.statuses)
    return next((phrase for phrase in words if phrase in lines), None)


def browser_tool(name: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """A tool of the user's browser, as any user may describe one."""
    spec = {"name": name, "description": "Look.", "parameters": parameters}
    info = {"title": "Mine"}
    server = {"url": "http://127.0.0.1:9/mine", "info": info, "openapi": {}}
    return {**server, "specs": [spec]}


def nested(levels: int) -> dict[str, Any]:
    """A schema of so many levels."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


ITSELF = [{"$ref": "#/$defs/A"} for _ in range(3)]
EVIL = {
    "loop": {"$defs": {"A": {"allOf": ITSELF}}, "$ref": "#/$defs/A"},
    "deep": nested(200),
    "wide": {"type": "object", "properties": {"a": {"enum": [*range(100_000)]}}},
    "good": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@pytest.mark.asyncio
async def test_schemas_of_strangers_do_not_stop_the_server(
    admins_tab: Tab, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """The chat is answered, others are too meanwhile, and the log names what is left out.

    The simulator calls the tool that refers to itself.
    """
    direct = {"ENABLE_DIRECT_INTEGRATIONS": True}
    body = calling("loop") | {
        "tool_servers": [browser_tool(name, schema) for name, schema in EVIL.items()],
    }
    async with (
        settings_changed(admin, CONNECTIONS, direct),
        valves_changed(admin, PIPE, EXPERT_JSON=expert(strict_tool_calling=True)),
    ):
        admins_tab.answer = lambda payload: [{"seen": True}, {}]
        turn = await admins_tab.begin(MODEL, "sim:tool look", body=body)
        while not turn.finished.is_set():
            assert await asyncio.wait_for(admin.call("GET", "/health"), 60)
            await asyncio.sleep(0.05)
        await admins_tab.settle(turn)

    assert turn.error is None
    [first, last] = chat_bodies(simulator)
    offered = {tool.get("name") for tool in first["tools"]}
    assert offered >= {"loop", "good"}
    assert not offered & {"deep", "wide"}
    assert kinds(last["input"])[-1] == "function_call_output"
    [line] = [line for line in server.log().splitlines() if "too deep:" in line]
    assert "WARNING" in line
    assert "'deep', 'wide' (2 in all)" in line
