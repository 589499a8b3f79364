"""Thoughts in tags, of a server without a parser for reasoning, behind the pipe."""

import json
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import errors, stored
from calls.sample import TOOL, chat
from calls.tools import with_tool
from openai_responses.items import item_texts
from owui_chat.storage.markers import strip_markers

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
AGENT = "my_pipe.gpt5_function_calling"


def behind(desk: Desk, profile: str, **more: Any) -> None:
    """Let the pipe talk to a server that streams so."""
    headers = json.dumps({"X-Simulator-Profile": profile})
    desk.set_valves(COMPATIBILITY="auto", EXTRA_HEADERS=headers, **more)


def asked(text: str, **more: Any) -> Json:
    return chat(text, tools=[TOOL], **more)


def shown_items(chunks: list[Json]) -> list[tuple[str, str]]:
    """The items of the page as they end: their types and texts, without records."""
    items: dict[int, Json] = {}
    for chunk in chunks:
        if chunk.get("type", "").startswith("response.output_item."):
            items[chunk["output_index"]] = chunk["item"]
    return [
        (item["type"], strip_markers("".join(t for _, t in item_texts(item))).strip())
        for item in items.values()
        if ":" not in item["type"]
    ]


def kept_items(chunks: list[Json]) -> list[Json]:
    """The items of all records in the answer's own output, as they are at the end."""
    records: dict[str, Json] = {}
    for chunk in chunks:
        if chunk.get("item", {}).get("type") == "openai_responses:kept":
            records[chunk["item"]["id"]] = json.loads(chunk["item"]["kept"])
    return [item for row in records.values() for item in row.get("payload", ())]


def kinds(items: list[tuple[str, str]]) -> list[str]:
    return [kind for kind, _ in items]


@pytest.mark.parametrize(
    ("shows", "carrier", "profile"),
    [
        (True, "markers", "half-tagged"),
        (False, "markers", "tagged"),
        (False, "output", "half-tagged"),
    ],
)
async def test_an_agent_shows_thoughts_or_hides_them(
    desk: Desk, shows: bool, carrier: str, profile: str
) -> None:
    """Hidden ones are nowhere, and no tag is shown."""
    parameters = json.dumps({"emit_intermediate_thoughts": shows})
    behind(desk, profile, AGENT_JSON=parameters, HISTORY_CARRIER=carrier)
    chunks = await desk.chunks(
        asked("sim:tool,delay=1 weather?", model=AGENT), **with_tool()
    )

    assert errors(chunks) == []
    items = shown_items(chunks)
    tools = ["function_call", "function_call_output"]
    thoughts = ["reasoning"] * shows
    assert kinds(items) == [*thoughts, *tools, *thoughts, "message"]
    assert "think>" not in json.dumps(items)
    assert items[-1][1].endswith("It said: Rain in Zürich.")
    *_, second = desk.sim.requests
    sent = second.body["input"]
    assert "think>" not in json.dumps(sent)
    assert [item["type"] for item in sent[-2 - shows :]] == [*thoughts, *tools]

    kept = kept_items(chunks)
    assert [item["type"] for item in kept] == (
        ["function_call"] if carrier == "output" else []
    )

    body = chat("sim:tool,delay=1 weather?", stored(chunks), "sim:chat", model=AGENT)
    last = await desk.chunks(body, **with_tool(message_id="m-2"))

    assert errors(last) == []
    [answer] = [item for item in desk.sent["input"] if item.get("role") == "assistant"]
    assert answer["content"][0]["text"].endswith("It said: Rain in Zürich.")
