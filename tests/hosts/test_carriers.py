"""Both carriers of what a chat does not show, in the real host and its page."""

import json
from itertools import pairwise

import pytest

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
    stripped,
)
from hosts.setup.pipes import PIPE, valves_changed
from hosts.setup.switches import workspace_model
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

MODEL, HIGH, PLAIN = (
    f"{PIPE}.{name}" for name in ("gpt-6.2-sol", "gpt-5.2-high", "gpt-5.2")
)
CALL = ("function_call", "function_call_output")
TEXT = "text/plain"
SIGN = "openai_responses:"
USED = calling("get_weather", "toolkit")


async def in_turn(tab: Tab, *asked: tuple[str, str]) -> list[Turn]:
    """Questions to models, one after the other in one chat."""
    turns: list[Turn] = []
    for model, text in asked:
        chat_id = turns[-1].chat_id if turns else None
        turns.append(await tab.send(model, text, chat_id=chat_id, body=USED))
    assert [turn.error for turn in turns if turn.error] == []
    return turns


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
async def test_instructions_and_file_texts_are_replayed(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Instructions as first given, their changes where they came, a file's text once."""
    file = await attach(tab.user, "handbook.txt", b"Wind the clock at noon.", TEXT)
    chat_id = None
    async with valves_changed(
        admin, PIPE, EXPERT_JSON=expert(stable_instructions="on")
    ):
        for day in ("Monday", "Tuesday", "Tuesday"):
            instruction = {"role": "system", "content": f"Be brief.\nIt is {day}."}
            body = {"messages": [instruction], "files": [{**file, "context": "full"}]}
            turn = await tab.send(MODEL, "sim:chat go on", chat_id=chat_id, body=body)
            assert turn.error is None
            chat_id = turn.chat_id

    asked = answered(simulator)  # no tasks among them, though the host's words say so
    for before, after in pairwise(asked):
        received = [stripped(item) for item in (before.response or {})["output"]]
        expected = [*before.body["input"], *received]
        assert after.body["input"][: len(expected)] == expected
    given = [instructions_of(request.body) for request in asked]
    assert given == ["Be brief.\nIt is Monday."] * 3
    last = asked[-1].body["input"]
    news = ["developer"]
    turn_kinds = ["user", "assistant"]
    spoken = [kind for kind in kinds(last) if kind != "reasoning"]
    assert spoken == [*news, *turn_kinds, *news, *turn_kinds, "user"]
    # The first question has the file's text; the others refer to it.
    assert json.dumps(last).count("Wind the clock at noon.") == 1


@pytest.mark.asyncio
async def test_changing_the_carrier_loses_nothing(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """What either has kept goes on being read; one leaves the text alone."""
    chat_id = None
    for carrier in ("output", "markers", "output", "markers"):
        async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
            text = "sim:tool-after-text weather?"
            turn = await tab.send(MODEL, text, chat_id=chat_id, body=USED)
        chat_id = turn.chat_id
        assert turn.error is None
        in_text = SIGN in (await tab.message(turn))["content"]
        assert in_text is (carrier == "markers")

    assert_each_continues(simulator)
    assert kinds(chat_bodies(simulator)[-1]["input"]).count("reasoning") == 7
    assert_nothing_dropped(simulator)


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
