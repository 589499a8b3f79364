"""Whatever happens to a chat, its next request is one that the strictest API takes."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from hosts.people.client import Json
from hosts.people.questions import ASK_USER, ASKS, calling
from hosts.people.tabs import Tab, Turn, waiting_calls
from hosts.people.users import User, settings_changed
from hosts.sent import (
    answered,
    assert_nothing_dropped,
    chat_bodies,
    kinds,
    outputs,
    stripped,
    tool_outputs,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

OTHER = f"{PIPE}.gpt-5.2"
USED = calling("get_weather", "toolkit")
SLOW = calling("slow_weather", "toolkit")


@dataclass(frozen=True)
class Scene:
    """Who acts, and on what."""

    tab: Tab
    admin: User
    simulator: Simulator

    async def go_on(self, turn: Turn) -> Turn:
        again = await self.tab.continue_answer(MODEL, turn)
        assert again.error is None
        return again


Case = Callable[[Scene], Awaitable[str]]


async def stopped_in_a_tool(scene: Scene) -> str:
    """There is a call, and no output."""
    turn = await scene.tab.begin(MODEL, "sim:tool weather?", body=SLOW)
    await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
    await scene.simulator.all_ended()
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    return turn.chat_id


async def stopped_in_the_text(scene: Scene) -> str:
    """After a marker was written, in the middle of the words."""
    turn = await scene.tab.begin(MODEL, "sim:slow,delay=10")
    await turn.until(lambda seen: len(seen.text) > 60)
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    return turn.chat_id


async def continued_after_a_stop(scene: Scene) -> str:
    """The text goes on where it was cut."""
    turn = await scene.tab.begin(MODEL, "sim:chat,hold=70")
    await turn.until(lambda seen: "Here is" in seen.text)
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    scene.simulator.release()
    return (await scene.go_on(turn)).chat_id


async def compacted(scene: Scene) -> str:
    """The host put a summary in the place of the oldest turns."""
    chat_id = None
    for text in ("one", "two", "three"):
        turn = await scene.tab.send(
            MODEL, f"sim:tool-after-text {text}", chat_id=chat_id, body=USED
        )
        chat_id = turn.chat_id
    on = {"ENABLE_CONTEXT_COMPACTION": True}
    async with settings_changed(scene.admin, "/api/v1/chats/config", on):
        path = f"/api/v1/chats/{turn.chat_id}/compact"
        done = await scene.tab.user.call("POST", path, {})
    assert done["compacted"]
    return turn.chat_id


async def two_models_at_once(scene: Scene) -> str:
    """Their answers are siblings."""
    first = await scene.tab.send(MODEL, "hello")
    turns = [
        await scene.tab.begin(model, "sim:tool both", chat_id=first.chat_id, body=USED)
        for model in (MODEL, OTHER)
    ]
    for turn in turns:
        await turn.finished.wait()
        await scene.tab.settle(turn)
    return first.chat_id


CASES: list[tuple[str, Case]] = [
    ("output", stopped_in_a_tool),
    ("markers", stopped_in_the_text),
    ("output", continued_after_a_stop),
    ("output", two_models_at_once),
    ("output", compacted),
    ("markers", compacted),
]
"""What the host does with a chat, and where the chat keeps what it does not show.

What its owner rewrites or deletes is in owui_chat/input/test_history.py and
owui_chat/test_round_trip.py.
"""


@pytest.mark.asyncio
async def test_next_request_is_taken(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """No request was refused, so none was mended by trying again."""
    for carrier, case in CASES:
        simulator.forget()
        async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
            chat_id = await case(Scene(tab, admin, simulator))

            await assert_it_goes_on(tab, simulator, chat_id, case.__name__)


@pytest.mark.asyncio
async def test_copies_of_a_chat_go_on(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Nothing of the answer is lost, its reasoning included, in either carrier.

    Of somebody's export that keeps only what it knows, the text is left.
    """
    for carrier in ("output", "markers"):
        simulator.forget()
        async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
            await assert_copies_go_on(tab, simulator)


async def assert_copies_go_on(tab: Tab, simulator: Simulator) -> None:
    """A clone, a fork, what a link opens, an import, and an import of the text alone."""
    user = tab.user
    text = "sim:tool-after-text weather?"
    turn = await tab.send(MODEL, text, body=USED)
    chat = await user.chat(turn.chat_id)
    known = {k: v for k, v in chat.items() if not k.startswith("openai_responses")}
    link = (await user.share_chat(turn.chat_id))["share_id"]
    clone = await user.clone_chat(turn.chat_id)
    fork = await user.fork_chat(turn.chat_id, turn.message_id)
    opened = await user.call("POST", f"/api/v1/chats/{link}/clone/shared", {})
    [imported] = await user.import_chats([{"chat": json.loads(json.dumps(chat))}])
    [poor] = await user.import_chats([{"chat": known}])
    before = [*chat_bodies(simulator)[-1]["input"]]
    before += map(stripped, outputs(simulator)[-1])
    assert kinds(before).count("reasoning") == 2

    copies = {"clone": clone, "fork": fork, "opened": opened, "imported": imported}
    for name, row in copies.items():
        await assert_it_goes_on(tab, simulator, row["id"], name)
        assert chat_bodies(simulator)[-1]["input"][: len(before)] == before, name
    await assert_it_goes_on(tab, simulator, poor["id"], "text alone")


async def assert_it_goes_on(
    tab: Tab, simulator: Simulator, chat_id: str, name: str
) -> None:
    """One more turn: whole, taken at once, without a trace of what carries it."""
    after = await tab.send(MODEL, "sim:chat go on", chat_id=chat_id)

    assert after.error is None, name
    assert "This is turn" in after.text, name
    assert [r.status for r in answered(simulator) if r.status != 200] == [], name
    sent = chat_bodies(simulator)[-1]["input"]
    asked = [{"type": "input_text", "text": "sim:chat go on"}]
    assert sent[-1]["content"] == asked, name
    assert "openai_responses:" not in json.dumps(sent), name


# ------------------------------------------------------------ the server is killed

TOOL = "blocking_weather"  # the first one that the toolkit offers


@pytest.mark.asyncio
async def test_chats_go_on_after_a_crash(
    server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """Four of them: two wait for a person, a tool is at work, a round has ended.

    Nobody has a page open meanwhile; the decisions come from another device.
    """
    async with Tab(member) as tab:
        approval = await tab.begin(
            MODEL, "sim:tool approval?", body={"tool_ids": ["toolkit"], **ASKS}
        )
        await tab.settle(approval)
        asking = calling("ask_user", "toolkit")
        question = await tab.begin(MODEL, f"sim:tool {ASK_USER}", body=asking)
        await tab.settle(question)
        at_work = await tab.begin(MODEL, "sim:tool at work?", body=SLOW)
        await at_work.until(lambda seen: "slow_weather" in json.dumps(seen.events))
        await simulator.all_ended()
        text = "sim:tool-twice,delay=700 rounds?"
        rounds = await tab.begin(MODEL, text, body=USED)
        await rounds.until(lambda seen: len(bodies_about(simulator, "rounds?")) == 2)
        row = f"{rounds.chat_id}-{rounds.message_id}"
        query = "select output from chat_message where id = ?"
        ended = "function_call_output"
        await rounds.until(lambda _: ended in str(server.sql(query, row)))
        waiting = await tab.message(approval)
        server.kill()
        await server.start_again()

    assert (waiting["done"], len(waiting_calls(waiting))) == (False, 1)
    assert "statusHistory" not in waiting  # it does not say "Finished"
    async with Tab(member) as tab:
        assert await tab.decide(approval) == [TOOL]
        assert_decided(await tab.message(approval), simulator)
        answers = {"lake": "Zug"}
        assert await tab.decide(question, "answer", answers=answers) == ["ask_user"]
        [output] = tool_outputs(chat_bodies(simulator)[-1])
        assert json.loads(output) == {"status": "answered", "answers": answers}
        await assert_it_goes_on(tab, simulator, at_work.chat_id, "at work")
        stored = (await tab.message(rounds))["output"]
        await tab.send(MODEL, "sim:short go on", chat_id=rounds.chat_id)
    assert_round_is_whole(stored, simulator)
    assert {request.status for request in answered(simulator)} == {200}
    assert_nothing_dropped(simulator)


def bodies_about(simulator: Simulator, words: str) -> list[Json]:
    """The requests of the chat whose first question has these words."""
    bodies = chat_bodies(simulator)
    return [body for body in bodies if words in json.dumps(body["input"])]


def assert_decided(ended: Json, simulator: Simulator) -> None:
    """The answer is over, with the reasoning that led to the call."""
    assert ended["done"]
    assert "It said: Heavy sun in" in ended["content"]
    lines = [line["description"] for line in ended["statusHistory"]]
    assert [line[:11] for line in lines] == ["Finished in"]
    first, second = bodies_about(simulator, "approval?")
    expected = [*first["input"], *map(stripped, outputs(simulator)[0])]
    assert second["input"][: len(expected)] == expected


def assert_round_is_whole(stored: list[Json], simulator: Simulator) -> None:
    """The first round is in the chat, and sent again; the second is not."""
    types = [item["type"] for item in stored]
    assert "function_call" in types
    assert types[-1] == "function_call_output"
    _, second, last = bodies_about(simulator, "rounds?")
    before, sent = [
        [item for item in body["input"] if "call_id" in item] for body in (second, last)
    ]
    assert kinds(sent) == ["function_call", "function_call_output"]
    assert [item["call_id"] for item in sent] == [item["call_id"] for item in before]
    assert sent[1]["output"] == before[1]["output"]
