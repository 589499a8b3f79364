"""Very large bodies and chats are answered.

That reading them takes linear work is shown in tests/test_large.py, that the server
answers others meanwhile in openai_responses/test_long_work.py and, for stored chats,
in owui_manifold/store/test_chat_store.py.
"""

import pytest

from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds
from large_cases.chats import output_chat
from owui_chat.host_tools import TOOL_IMAGES_PREFIX
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = "openai_responses.gpt-6.1-sol"
CALLS = 4_000
TURNS = 5
ITEMS = 100
PICTURES = 40
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
    "NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)


@pytest.mark.asyncio
async def test_many_calls_of_one_run_are_sent_with_their_outputs(
    member: User, simulator: Simulator
) -> None:
    """Those that are more than one request can hold: owui_manifold/test_pipe_limits.py."""
    ids = [f"call_{number}" for number in range(CALLS)]
    function = {"name": "get_weather", "arguments": '{"city": "Bern"}'}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    messages: list[Json] = [
        {"role": "user", "content": "sim:short hello"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        *({"role": "tool", "tool_call_id": id, "content": "Rain."} for id in ids),
        {"role": "user", "content": "sim:short and now?"},
    ]
    await member.completion(MODEL, messages)

    [body] = chat_bodies(simulator)
    assert kinds(body["input"]).count("function_call_output") == CALLS


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
    await member.completion(MODEL, messages)

    [body] = chat_bodies(simulator)
    [output] = [i for i in body["input"] if i["type"] == "function_call_output"]
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]


@pytest.mark.asyncio
async def test_many_kept_items_are_sent_with_their_outputs(
    tab: Tab, simulator: Simulator
) -> None:
    chat, _ = output_chat(TURNS, ITEMS)
    messages = chat["history"]["messages"]
    for name in ("q", "a"):
        del messages[name]
    for name, row in messages.items():
        children = [n for n, message in messages.items() if message["parentId"] == name]
        row |= {"id": name, "childrenIds": children, "timestamp": 1, "done": True}
    last = f"a{TURNS - 1}"
    chat["history"]["currentId"] = last
    whole = {**chat, "title": "Large", "models": [MODEL]}
    [row] = await tab.user.import_chats([{"chat": whole}])
    await tab.send(MODEL, "sim:short and now?", chat_id=row["id"], parent_id=last)

    sent = kinds(chat_bodies(simulator)[0]["input"])
    assert sent.count("function_call") == TURNS * ITEMS
    assert sent.count("function_call_output") == TURNS * ITEMS
