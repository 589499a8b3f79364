"""Very large bodies and chats are answered, and the server answers others meanwhile."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from large_cases.chats import output_chat
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from owui_chat.messages import LEFT_OUT
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = "openai_responses.gpt-6.1-sol"
TURNS, ITEMS = 5, 100
PICTURES = 40
LONGEST_GAP = 5.0
"""Seconds in which nobody else is answered; reading in proportion takes 0.1 s."""
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
    "NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@asynccontextmanager
async def health_watched(user: User, what: str) -> AsyncIterator[list[float]]:
    """Give the times in which the server answered nobody; print the longest."""
    gaps = [0.0]

    async def watch() -> None:
        while True:
            began = time.perf_counter()
            await user.call("GET", "/health")
            gaps.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)

    began, watcher = time.perf_counter(), asyncio.create_task(watch())
    try:
        yield gaps
    finally:
        watcher.cancel()
        took = time.perf_counter() - began
        gap = f"longest gap {max(gaps) * 1000:.0f} ms"
        sys.stdout.write(f"{what}: {took:.1f} s, {gap}\n")


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.asyncio
@pytest.mark.parametrize(("count", "sent"), [(4_000, 4_000), (40_000, 0)])
async def test_many_calls_of_one_run_do_not_block_the_server(
    member: User, simulator: Simulator, count: int, sent: int
) -> None:
    """Each call has its output in the request, and others are answered meanwhile.

    More than one request can hold are left out.
    """
    ids = [f"call_{number}" for number in range(count)]
    function = {"name": "get_weather", "arguments": '{"city": "Bern"}'}
    calls = [{"id": one, "type": "function", "function": function} for one in ids]
    messages: list[Json] = [
        {"role": "user", "content": "sim:short hello"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": one, "content": "Rain."} for one in ids),
        {"role": "user", "content": "sim:short and now?"},
    ]
    async with health_watched(member, f"{count:,} calls in a body") as gaps:
        await member.completion(MODEL, messages)

    assert max(gaps) < LONGEST_GAP
    [body] = chat_bodies(simulator)
    assert kinds(body["input"]).count("function_call_output") == sent
    assert (LEFT_OUT in str(body["input"][:2])) == (sent == 0)


@pytest.mark.asyncio
async def test_repeated_pictures_of_tools_are_sent_once(
    member: User, simulator: Simulator
) -> None:
    """The messages that the host makes of pictures, as a caller can write them."""
    text = {"type": "text", "text": f"{TOOL_IMAGES_PREFIX} Please analyze them."}
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    call = {
        "id": "call_1",
        "type": "function",
        "function": {"name": "draw", "arguments": "{}"},
    }
    messages: list[Json] = [
        {"role": "user", "content": "sim:short hello"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "Drawn."},
        *({"role": "user", "content": [text, image]} for _ in range(PICTURES)),
        {"role": "user", "content": "sim:short and now?"},
    ]
    async with health_watched(member, f"{PICTURES} messages of pictures"):
        await member.completion(MODEL, messages)

    [body] = chat_bodies(simulator)
    [output] = [i for i in body["input"] if i["type"] == "function_call_output"]
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
@pytest.mark.asyncio
async def test_many_kept_items_do_not_block_the_server(
    tab: Tab, simulator: Simulator
) -> None:
    """Each call of the stored chat is sent with its output.

    The longest gap is Open WebUI's own: with a pipe that keeps nothing it is the same.
    """
    chat, _ = output_chat(TURNS, ITEMS)
    messages = chat["history"]["messages"]
    for name in ("q", "a"):
        del messages[name]
    for name, row in messages.items():
        children = [n for n, one in messages.items() if one["parentId"] == name]
        row |= {"id": name, "childrenIds": children, "timestamp": 1, "done": True}
    last = f"a{TURNS - 1}"
    chat["history"]["currentId"] = last
    whole = {**chat, "title": "Large", "models": [MODEL]}
    [row] = await tab.user.import_chats([{"chat": whole}])
    async with health_watched(tab.user, f"{TURNS} turns with {ITEMS} kept items"):
        await tab.send(MODEL, "sim:short and now?", chat_id=row["id"], parent_id=last)

    sent = kinds(chat_bodies(simulator)[0]["input"])
    assert sent.count("function_call") == TURNS * ITEMS
    assert sent.count("function_call_output") == TURNS * ITEMS
