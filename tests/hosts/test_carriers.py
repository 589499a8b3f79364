"""Both carriers of what a chat does not show, in the real host and its page."""

import json
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest
import pytest_asyncio

from calls.valves import expert
from hosts.browser.page import ChatPage
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import (
    answered,
    assert_each_continues,
    assert_nothing_dropped,
    chat_bodies,
    instructions_of,
    kinds,
    outputs,
    stripped,
)
from hosts.setup.pipes import valves_changed
from hosts.setup.switches import workspace_model
from owui_chat.answers import COMMENTARY_TYPE
from owui_chat.storage.markers import strip_markers
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

PIPE = "openai_responses"
MODEL, HIGH, PLAIN = (
    f"{PIPE}.{name}" for name in ("gpt-6.2-sol", "gpt-5.2-high", "gpt-5.2")
)
CALL = ("function_call", "function_call_output")
WITHOUT_REASONING = f"{PIPE}.gpt-4.1"  # so that no record takes anything with it
TEXT = "text/plain"
SIGN = "openai_responses:"
USED = calling("get_weather", "toolkit")


@pytest_asyncio.fixture(params=["markers", "output"])
async def carrier(admin: User, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Where the chat keeps what it does not show."""
    async with valves_changed(admin, PIPE, HISTORY_CARRIER=request.param):
        yield request.param


async def in_turn(tab: Tab, *asked: tuple[str, str]) -> list[Turn]:
    """Questions to models, one after the other in one chat."""
    turns: list[Turn] = []
    for model, text in asked:
        chat_id = turns[-1].chat_id if turns else None
        turns.append(await tab.send(model, text, chat_id=chat_id, body=USED))
    assert [turn.error for turn in turns if turn.error] == []
    return turns


@pytest.mark.asyncio
async def test_both_replay_the_same(
    tab: Tab, simulator: Simulator, carrier: str
) -> None:
    """Byte for byte what was sent and received; one leaves text and row alone.

    Every kind of answer is stored by the host's own functions and read back in
    tests/owui_chat/test_round_trip.py.
    """
    first, _ = await in_turn(
        tab, (MODEL, "sim:tool-after-text weather?"), (MODEL, "sim:chat thanks")
    )

    assert_each_continues(simulator)
    chat = await tab.user.chat(first.chat_id)
    texts = [message["content"] for message in chat["history"]["messages"].values()]
    in_markers = carrier == "markers"
    assert (SIGN in json.dumps(texts)) is in_markers
    assert any(key.startswith("openai_responses") for key in chat) is in_markers


@pytest.mark.asyncio
async def test_remarks_are_no_part_of_the_answer(
    tab: Tab, simulator: Simulator
) -> None:
    """They are stored next to it, in their place, and sent again whole."""
    first, _ = await in_turn(
        tab, (MODEL, "sim:remarks weather?"), (MODEL, "sim:chat thanks")
    )

    message = await tab.message(first)
    remarks = [i for i in message["output"] if i["type"] == COMMENTARY_TYPE]
    assert [i["content"][0]["text"] for i in remarks] == [
        "> I look at the first:\n> \n> - its size",
        "> That needs a tool.",
        "> Now for the second.",
    ]
    assert strip_markers(message["content"]).startswith("It said:")
    assert "That needs a tool." not in message["content"]
    sent = chat_bodies(simulator)[-1]["input"]
    assert [i["phase"] for i in sent if i.get("phase")] == [
        *["commentary"] * 3,
        "final_answer",
    ]


@pytest.mark.asyncio
async def test_a_remark_survives_a_stop(tab: Tab, simulator: Simulator) -> None:
    """With what led to it, while the tool that it announced was at work."""
    body = calling("slow_weather", "toolkit")
    turn = await tab.begin(MODEL, "sim:remarks weather?", body=body)
    await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
    await simulator.all_ended()
    await tab.stop(turn)
    await tab.settle(turn)

    after = await tab.send(MODEL, "sim:chat go on", chat_id=turn.chat_id)

    assert after.error is None
    first, second = chat_bodies(simulator)
    thought, look, needs, _ = map(stripped, outputs(simulator)[0])
    assert second["input"][:-1] == [*first["input"], thought, look, needs]


@pytest.mark.asyncio
async def test_guided_regeneration_shows_the_old_answer(
    tab: Tab, simulator: Simulator
) -> None:
    """With its reasoning, and what should be otherwise after it."""
    [first] = await in_turn(tab, (MODEL, "sim:commentary hello"))
    guide = {
        "regeneration_message_id": first.message_id,
        "regeneration_prompt": "sim:chat Say it as a pirate.",
    }

    again = await tab.regenerate(MODEL, first, body=guide)

    assert again.error is None
    assert_each_continues(simulator)
    assert "pirate" in str(chat_bodies(simulator)[-1]["input"][-1])


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("carrier", "model"),
    [("markers", WITHOUT_REASONING), ("output", MODEL)],
    indirect=["carrier"],
)
async def test_instructions_and_file_texts_are_replayed(
    tab: Tab, admin: User, simulator: Simulator, carrier: str, model: str
) -> None:
    """Instructions as first given, their changes where they came, a file's text once."""
    file = await attach(tab.user, "handbook.txt", b"Wind the clock at noon.", TEXT)
    chat_id = None
    async with valves_changed(
        admin, PIPE, EXPERT_JSON=expert(stable_instructions="on")
    ):
        for day in ("Monday", "Tuesday", "Wednesday", "Wednesday"):
            instruction = {"role": "system", "content": f"Be brief.\nIt is {day}."}
            body = {"messages": [instruction], "files": [{**file, "context": "full"}]}
            turn = await tab.send(model, "sim:chat go on", chat_id=chat_id, body=body)
            assert turn.error is None
            chat_id = turn.chat_id

    asked = answered(simulator)  # no tasks among them, though the host's words say so
    for before, after in pairwise(asked):
        received = [stripped(item) for item in (before.response or {})["output"]]
        expected = [*before.body["input"], *received]
        assert after.body["input"][: len(expected)] == expected
    given = [instructions_of(request.body) for request in asked]
    assert given == ["Be brief.\nIt is Monday."] * 4
    last = asked[-1].body["input"]
    news = ["developer"]
    turn_kinds = ["user", "assistant"]
    spoken = [kind for kind in kinds(last) if kind != "reasoning"]
    assert spoken == [*news, *turn_kinds, *(news + turn_kinds) * 2, "user"]
    # The first question has the file's text; the others refer to it.
    assert json.dumps(last).count("Wind the clock at noon.") == 1
    chat = await tab.user.chat(str(chat_id))
    in_row = any(key.startswith("openai_responses") for key in chat)
    assert in_row is (carrier == "markers")


@pytest.mark.asyncio
async def test_changing_the_carrier_loses_nothing(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """What either has kept goes on being read."""
    chat_id = None
    for carrier in ("output", "markers", "output", "markers"):
        async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
            text = "sim:tool-after-text weather?"
            turn = await tab.send(MODEL, text, chat_id=chat_id, body=USED)
        chat_id = turn.chat_id
        assert turn.error is None

    assert_each_continues(simulator)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 7
    assert_nothing_dropped(simulator)


@pytest.mark.asyncio
async def test_a_changed_answer_loses_nothing_of_others(
    tab: Tab, simulator: Simulator, carrier: str
) -> None:
    """One written anew, one that got a footer, one as the model wrote it.

    Who writes an answer anew deletes its marker, but not what its output holds.
    """
    asked = [(MODEL, "sim:short weather?")] * 3
    turns = await in_turn(tab, *asked)
    chat = await tab.user.chat(turns[0].chat_id)
    for turn, change in zip(turns, ("Mine.", "{}\n\nA footer.", "{}"), strict=True):
        message = chat["history"]["messages"][turn.message_id]
        [item] = [i for i in message["output"] if i["type"] == "message"]
        message["content"] = change.format(message["content"])
        item["content"][0]["text"] = message["content"]
    await tab.user.update_chat(turns[0].chat_id, chat)

    last = await tab.send(MODEL, "sim:short thanks", chat_id=turns[0].chat_id)

    assert last.error is None
    body = chat_bodies(simulator)[-1]
    assert kinds(body["input"]) == [
        *("user", *["reasoning"] * (carrier == "output"), "assistant"),
        *("user", "reasoning", "assistant") * 2,
        "user",
    ]
    texts = [i["content"][0]["text"] for i in body["input"] if i.get("content")]
    assert texts[1] == "Mine."
    assert any(text.endswith("A footer.") for text in texts)


@pytest.mark.asyncio
async def test_reasoning_stays_within_a_family(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """To a workspace model, back to its base, and to another alias."""
    async with workspace_model(admin, HIGH, {}) as model:
        models = (HIGH, model, HIGH, PLAIN)
        await in_turn(tab, *((model, "sim:chat go on") for model in models))

    assert_each_continues(simulator)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 3


@pytest.mark.asyncio
async def test_reasoning_stays_with_its_maker(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """The rest goes to any account; back at home nothing was lost."""
    [first] = await in_turn(tab, (MODEL, "sim:tool-after-text weather?"))
    async with valves_changed(admin, PIPE, API_KEY="sk-simulator-2"):
        await tab.send(MODEL, "sim:chat go on", chat_id=first.chat_id)
    await tab.send(MODEL, "sim:chat and on", chat_id=first.chat_id)

    elsewhere, back = [kinds(body["input"]) for body in chat_bodies(simulator)[-2:]]
    plain = ["user", "assistant", *CALL, "assistant", "user"]
    assert elsewhere == plain
    assert [kind for kind in back if kind != "reasoning"] == [
        *plain,
        *("assistant", "user"),
    ]
    assert back.count("reasoning") == 2
    assert [r.status for r in simulator.requests if r.status != 200] == []


@pytest.mark.asyncio
@pytest.mark.browser
async def test_a_temporary_chat_remembers_its_reasoning(
    page: ChatPage, simulator: Simulator
) -> None:
    """The page gives back what rode in the thoughts; nothing is in any text."""
    await page.open_model(MODEL, temporary=True)
    await page.watch(SIGN)

    await page.ask("sim:tool-after-text Good morning")
    await page.ask("sim:chat And a second question")

    assert await page.seen() == []
    assert SIGN not in await page.copy_last()
    assert_each_continues(simulator)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 2
