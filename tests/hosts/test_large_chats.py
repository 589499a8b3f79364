"""A very large chat is answered.

That reading them takes linear work is shown in tests/test_large.py, that the server
answers others meanwhile in openai_responses/test_long_work.py and, for stored chats,
in owui_manifold/store/test_chat_store.py.
"""

import pytest

from hosts.people.tabs import Tab
from hosts.sent import chat_bodies, kinds
from large_cases.chats import output_chat
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

MODEL = "openai_responses.gpt-6.1-sol"
TURNS = 5
ITEMS = 100


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
