"""Whatever happens to a chat, its next request is one that the strictest API takes."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from chats.earlier_writers import EARLIER, earlier_key
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, settings_changed
from hosts.sent import answered, chat_bodies, kinds, outputs, stripped
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
OTHER = f"{PIPE}.gpt-5.2"
USED = calling("get_weather", "toolkit")
SLOW = calling("slow_weather", "toolkit")
CALL_TYPES = ("function_call", "function_call_output")


@dataclass(frozen=True)
class Scene:
    """Who acts, and on what."""

    tab: Tab
    admin: User
    simulator: Simulator

    async def looked_up(self) -> Turn:
        """A chat whose answer called a tool."""
        return await self.tab.send(MODEL, "sim:tool-after-text weather?", body=USED)

    async def change(self, turn: Turn, edit: Callable[[list[Json]], list[Json]]) -> str:
        """Let `edit` rewrite the stored output of an answer, as the page saves it."""
        chat = await self.tab.user.chat(turn.chat_id)
        message = chat["history"]["messages"][turn.message_id]
        message["output"] = edit(message["output"])
        await self.tab.user.update_chat(turn.chat_id, {"history": chat["history"]})
        return turn.chat_id

    async def go_on(self, turn: Turn) -> Turn:
        """Press the button that continues an answer."""
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


async def stopped_in_a_remark(scene: Scene) -> str:
    """Nothing that anybody gives back has come yet."""
    turn = await scene.tab.begin(MODEL, "sim:remarks-only,stall=16")
    await turn.until(lambda seen: "> Let" in json.dumps(seen.events))
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    return turn.chat_id


async def continued_after_a_remark(scene: Scene) -> str:
    """The run ended with it, and it is asked to go on."""
    turn = await scene.tab.send(MODEL, "sim:remarks-only")
    return (await scene.go_on(turn)).chat_id


async def crashed_in_the_middle(scene: Scene) -> str:
    """The host had stored the call and nothing after it; what was kept is whole."""

    def up_to_the_call(output: list[Json]) -> list[Json]:
        places = [n for n, item in enumerate(output) if item["type"] == CALL_TYPES[0]]
        return output[: places[0] + 1]

    return await scene.change(await scene.looked_up(), up_to_the_call)


async def loop_limit(scene: Scene) -> str:
    """The model was cut off while it called on and on."""
    async with valves_changed(scene.admin, PIPE, MAX_FUNCTION_CALL_LOOPS=2):
        turn = await scene.tab.send(MODEL, "sim:tool-forever go", body=USED)
    return turn.chat_id


async def branch_switched(scene: Scene) -> str:
    """Two questions follow one answer; the chat goes on from the first."""
    first = await scene.looked_up()
    left, _ = [
        await scene.tab.send(
            MODEL, text, chat_id=first.chat_id, parent_id=first.message_id
        )
        for text in ("sim:chat left", "sim:chat right")
    ]
    chat = await scene.tab.user.chat(first.chat_id)
    chat["history"]["currentId"] = left.message_id
    await scene.tab.user.update_chat(first.chat_id, {"history": chat["history"]})
    return first.chat_id


async def continued_after_a_stop(scene: Scene) -> str:
    """The text goes on where it was cut."""
    turn = await scene.tab.begin(MODEL, "sim:chat,hold=70")
    await turn.until(lambda seen: "Here is" in seen.text)
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    scene.simulator.release()
    return (await scene.go_on(turn)).chat_id


async def only_an_output_deleted(scene: Scene) -> str:
    """Half a pair is left."""
    return await scene.change(
        await scene.looked_up(),
        lambda output: [item for item in output if item["type"] != CALL_TYPES[1]],
    )


async def message_deleted(scene: Scene) -> str:
    """A question and its answer go, in the middle of the chat."""
    first = await scene.tab.send(MODEL, "hello")
    gone = await scene.tab.send(MODEL, "sim:chat and?", chat_id=first.chat_id)
    last = await scene.tab.send(MODEL, "sim:chat so?", chat_id=first.chat_id)
    chat = await scene.tab.user.chat(first.chat_id)
    messages = chat["history"]["messages"]
    messages[last.user_message_id]["parentId"] = first.message_id
    messages[first.message_id]["childrenIds"] = [last.user_message_id]
    del messages[gone.user_message_id], messages[gone.message_id]
    await scene.tab.user.update_chat(first.chat_id, {"history": chat["history"]})
    return first.chat_id


async def cloned(scene: Scene) -> str:
    """A copy in the same account."""
    turn = await scene.looked_up()
    return str((await scene.tab.user.clone_chat(turn.chat_id))["id"])


async def forked(scene: Scene) -> str:
    """A chat of its own that begins with this one."""
    turn = await scene.looked_up()
    fork = await scene.tab.user.fork_chat(turn.chat_id, turn.message_id)
    return str(fork["id"])


async def exported_and_imported(scene: Scene) -> str:
    """Through a file."""
    turn = await scene.looked_up()
    chat = await scene.tab.user.chat(turn.chat_id)
    [row] = await scene.tab.user.import_chats([{"chat": json.loads(json.dumps(chat))}])
    return str(row["id"])


async def imported_without_our_keys(scene: Scene) -> str:
    """Somebody's export keeps only what it knows."""
    turn = await scene.looked_up()
    chat = await scene.tab.user.chat(turn.chat_id)
    known = {key: chat[key] for key in chat if not key.startswith("openai_responses")}
    [row] = await scene.tab.user.import_chats([{"chat": known}])
    return str(row["id"])


async def opened_from_a_shared_link(scene: Scene) -> str:
    """A copy of what the link shows."""
    turn = await scene.looked_up()
    user = scene.tab.user
    link = (await user.share_chat(turn.chat_id))["share_id"]
    row = await user.call("POST", f"/api/v1/chats/{link}/clone/shared", {})
    return str(row["id"])


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


CASES: list[Case] = [
    stopped_in_a_tool,
    stopped_in_a_remark,
    continued_after_a_remark,
    continued_after_a_stop,
    loop_limit,
    only_an_output_deleted,
    branch_switched,
    two_models_at_once,
    message_deleted,
    cloned,
    forked,
    exported_and_imported,
    opened_from_a_shared_link,
    compacted,
]
"""What the host does with a chat; of what its owner rewrites there is one example.

The others are in owui_chat/input/test_history.py and owui_chat/test_round_trip.py.
"""
WITH_MARKERS: list[Case] = [
    stopped_in_the_text,
    crashed_in_the_middle,
    message_deleted,
    exported_and_imported,
    imported_without_our_keys,
    compacted,
]
"""Those in which it matters that keys of the chat's row hold the items."""
WHOLE: list[Case] = [cloned, forked, exported_and_imported, opened_from_a_shared_link]
"""Those in which nothing of the answer may be lost, its reasoning included."""


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("carrier", "case"),
    [
        *(pytest.param("output", case, id=case.__name__) for case in CASES),
        *(
            pytest.param("markers", case, id=f"{case.__name__}, markers")
            for case in WITH_MARKERS
        ),
    ],
)
async def test_next_request_is_taken(
    tab: Tab, admin: User, simulator: Simulator, carrier: str, case: Case
) -> None:
    """No request was refused, so none was mended by trying again."""
    async with valves_changed(admin, PIPE, HISTORY_CARRIER=carrier):
        chat_id = await case(Scene(tab, admin, simulator))

        await assert_it_goes_on(tab, simulator, chat_id)
    if case in WHOLE:
        assert_all_is_sent(simulator)


async def assert_it_goes_on(tab: Tab, simulator: Simulator, chat_id: str) -> None:
    """One more turn: whole, taken at once, without a trace of what carries it."""
    after = await tab.send(MODEL, "sim:chat go on", chat_id=chat_id)

    assert after.error is None
    assert "This is turn" in after.text
    assert [r.status for r in answered(simulator) if r.status != 200] == []
    sent = chat_bodies(simulator)[-1]["input"]
    assert sent[-1]["content"] == [{"type": "input_text", "text": "sim:chat go on"}]
    assert "openai_responses:" not in json.dumps(sent)


def assert_all_is_sent(simulator: Simulator) -> None:
    """The last request begins with the one before it and what that received."""
    before, after = chat_bodies(simulator)[-2:]
    expected = [*before["input"], *map(stripped, outputs(simulator)[-2])]
    assert after["input"][: len(expected)] == expected
    assert kinds(expected).count("reasoning") == 2


@pytest.mark.asyncio
async def test_next_request_is_taken_after_a_crash(
    server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """The server was killed while a tool was at work."""
    async with Tab(member) as tab:
        turn = await tab.begin(MODEL, "sim:tool weather?", body=SLOW)
        await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
        await simulator.all_ended()
        await server.crash_and_restart()
    async with Tab(member) as tab:
        await assert_it_goes_on(tab, simulator, turn.chat_id)


@pytest.mark.asyncio
async def test_finished_round_survives_a_crash(
    server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """The server was killed in the second round: the first one is in the chat."""
    text = "sim:tool-twice,delay=200 weather?"
    async with Tab(member) as tab:
        turn = await tab.begin(MODEL, text, body=USED)
        await turn.until(lambda seen: len(chat_bodies(simulator)) == 2)
        await server.crash_and_restart()
    async with Tab(member) as tab:
        stored = (await tab.user.chat(turn.chat_id))["history"]["messages"]
        output = stored[turn.message_id]["output"]
        await tab.send(MODEL, "sim:short go on", chat_id=turn.chat_id)

    kinds_stored = [item["type"] for item in output]
    assert "function_call" in kinds_stored
    assert kinds_stored[-1] == "function_call_output"
    before = [item for item in chat_bodies(simulator)[1]["input"] if "call_id" in item]
    sent = [item for item in chat_bodies(simulator)[-1]["input"] if "call_id" in item]
    assert kinds(sent) == ["function_call", "function_call_output"]
    assert [item["call_id"] for item in sent] == [item["call_id"] for item in before]
    assert sent[1]["output"] == before[1]["output"]
    assert {request.status for request in answered(simulator)} == {200}


@pytest.mark.asyncio
async def test_chat_of_an_earlier_writer_goes_on(
    tab: Tab, simulator: Simulator
) -> None:
    """Its text is sent. Lines, blocks and calls that the chat does not show are not.

    Each writer has a row in owui_chat/input/test_history.py.
    """
    turn = await tab.send(MODEL, "sim:tool weather?", body=USED)
    thought, call = outputs(simulator)[0]
    output = chat_bodies(simulator)[-1]["input"][-1]
    ids, text = EARLIER["0.8.28, v2 with its status"]
    chat = await tab.user.chat(turn.chat_id)
    history = chat["history"]
    del history["messages"][turn.message_id]["output"]
    history["messages"][turn.message_id]["content"] = text
    payloads = dict(zip(ids, (thought, call, output), strict=True))
    key = earlier_key(payloads, turn.message_id, MODEL)
    old = {"title": "Old", "models": [MODEL], "history": history, **key}
    [row] = await tab.user.import_chats([{"chat": old}])

    await assert_it_goes_on(tab, simulator, row["id"])

    sent = chat_bodies(simulator)[-1]["input"]
    assert kinds(sent) == ["user", "assistant", "user"]
    assert [part["text"] for part in sent[1]["content"]] == ["It rains."]
