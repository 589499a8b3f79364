"""A long chat is compacted at the server, and goes on from there."""

from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import answering, stored
from calls.sample import IDS, TOOL, chat
from calls.tools import with_tool
from calls.turns import row_of
from openai_responses.requests.replay import strip_for_replay
from simulator import Simulator
from stand_in.chats import convert_output, finished_items

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
LONG = "rain " * 1000


@pytest.fixture(autouse=True)
def compacting(desk: Desk) -> None:
    desk.set_valves(COMPACTION_TOKENS=1000)


def sent(sim: Simulator) -> list[str]:
    """The types of the last input; of messages, the role."""
    items = sim.requests[-1].body["input"]
    return [i["role"] if i["type"] == "message" else i["type"] for i in items]


async def test_compaction_replaces_what_came_before(desk: Desk) -> None:
    """In this turn nothing changes, in the next ones it comes first."""
    first = await desk.ask(LONG, **answering("m-1"))
    texts = [LONG, stored(first), "And now?"]

    second = await desk.ask(*texts, **answering("m-2"))

    assert sent(desk.sim) == ["compaction", "user"]
    [*_, output] = [r.response for r in desk.sim.requests[:1]]
    assert output is not None
    compacted = output["output"][-1]["encrypted_content"]
    [item, *_] = desk.sent["input"]
    assert item == {"type": "compaction", "encrypted_content": compacted}
    assert compacted not in str(first)

    await desk.ask(*texts, stored(second), "Go on.", **answering("m-3"))

    assert sent(desk.sim)[0] == "compaction"
    assert sent(desk.sim)[1:] == ["user", "reasoning", "assistant", "user"]
    assert [request.status for request in desk.sim.requests] == [200, 200, 200]


@pytest.mark.parametrize(
    "change", [{"API_KEY": "sk-simulator-2"}, {"PERSIST_REASONING_TOKENS": "response"}]
)
async def test_whole_chat_is_sent_where_nobody_can_read_it(
    change: Json, desk: Desk
) -> None:
    """The host still has every message."""
    first = await desk.ask(LONG, **answering("m-1"))
    desk.set_valves(**change)

    await desk.ask(LONG, stored(first), "So?", **answering("m-2"))

    assert sent(desk.sim) == ["user", "assistant", "user"]


async def test_own_rounds_and_the_next_turn_go_on_from_there(desk: Desk) -> None:
    """The next turn sends exactly what the last round sent and received."""

    asked = chat(f"sim:tool {LONG}", tools=[TOOL])
    first = await desk.chunks(asked, **with_tool())

    last = desk.sim.requests[-1]
    assert last.response is not None
    assert sent(desk.sim) == ["compaction", "function_call", "function_call_output"]
    _, call, *_ = finished_items(first)
    answer = {"type": "message", "content": [{"text": stored(first)}]}
    output = {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": "Rain in Zürich.",
    }
    asked["messages"] += convert_output([call, output, answer])
    asked["messages"].append({"role": "user", "content": "Thanks"})

    await desk.chunks(asked, **answering("m-2"))

    before = [*last.body["input"], *map(strip_for_replay, last.response["output"])]
    assert desk.sent["input"][:-1] == before
    assert not (desk.sim.requests[-1].response or {}).get("input_transformations")


async def test_the_update_behind_a_compaction_stays_behind_it(desk: Desk) -> None:
    """The server makes it of the earlier updates, which went with what it compacted."""
    desk.set_valves(COMPACTION_TOKENS=1000, COMPATIBILITY="openai")
    words = ("one", LONG, "three", "four")
    texts = list[str]()
    for number, effort in enumerate(("low", "high", "high", "low")):
        row_of(desk.host, *words[: number + 1])
        texts.append(words[number])
        ids = {"user_message_id": f"q{number}", "message_id": f"a{number}"}
        given = {"__metadata__": {**IDS, **ids}}
        body = chat(*texts, model="f.gpt-6.1-sol", reasoning_effort=effort)
        texts.append(stored(await desk.chunks(body, **given)))

    assert [request.status for request in desk.sim.requests] == [200] * 4
    assert {r.body["reasoning"]["effort"] for r in desk.sim.requests} == {"low"}
    _, second, third, fourth = (body["input"] for body in desk.bodies)
    assert [i["type"] for i in second].count("configuration_update") == 1
    compaction, update = third[:2]
    assert compaction["type"] == "compaction"
    assert update["type"] == "configuration_update"
    assert update["reasoning"] == {"effort": "high"}
    assert [i["type"] for i in third].count("configuration_update") == 1
    assert fourth[: len(third)] == third
    assert fourth[-2] == {
        "type": "configuration_update",
        "reasoning": {"effort": "low"},
    }
