"""Whatever happens to a chat, its next request is one that the strictest API takes."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest

from chats.earlier_writers import EARLIER, earlier_key
from hosts.people.client import Json
from hosts.people.tabs import Tab, Turn
from hosts.people.users import User
from hosts.sent import answered, chat_bodies, kinds, outputs, stripped
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe", "toolkit")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-6.2-sol"
OTHER = f"{PIPE}.gpt-5.2"
SLOW = {"type": "function", "function": {"name": "slow_weather"}}
WEATHER = {"type": "function", "function": {"name": "get_weather"}}
USED = {"tool_ids": ["toolkit"], "tool_choice": WEATHER}
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


async def stopped_in_a_tool(scene: Scene, scenario: str) -> str:
    """Stop while the tool is at work."""
    body = {"tool_ids": ["toolkit"], "tool_choice": SLOW}
    turn = await scene.tab.begin(MODEL, f"sim:{scenario} weather?", body=body)
    await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
    await scene.simulator.all_ended()
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    return turn.chat_id


async def stopped_between_call_and_output(scene: Scene) -> str:
    """The tool was still at work."""
    return await stopped_in_a_tool(scene, "tool")


async def stopped_after_a_remark(scene: Scene) -> str:
    """The tool that it announced was at work."""
    return await stopped_in_a_tool(scene, "remarks")


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
    """The host had stored the call and nothing behind it; what was kept is whole."""

    def up_to_the_call(output: list[Json]) -> list[Json]:
        places = [n for n, item in enumerate(output) if item["type"] == CALL_TYPES[0]]
        return output[: places[0] + 1]

    return await scene.change(await scene.looked_up(), up_to_the_call)


async def crashed_before_the_first_save(scene: Scene) -> str:
    """The answer is an empty row."""
    return await scene.change(await scene.looked_up(), lambda _: [])


async def tool_removed(scene: Scene) -> str:
    """The next request offers none."""
    return (await scene.looked_up()).chat_id


async def loop_limit(scene: Scene) -> str:
    """The model was cut off while it called on and on."""
    async with valves_changed(scene.admin, PIPE, MAX_FUNCTION_CALL_LOOPS=2):
        turn = await scene.tab.send(MODEL, "sim:tool-forever go", body=USED)
    return turn.chat_id


async def edited(scene: Scene) -> str:
    """A person wrote the words anew."""

    def rewritten(output: list[Json]) -> list[Json]:
        [message] = [item for item in output if item["type"] == "message"]
        message["content"][0]["text"] = "This is mine."
        return output

    return await scene.change(await scene.tab.send(MODEL, "hello"), rewritten)


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


async def regenerated(scene: Scene) -> str:
    """The second answer has kept items of its own."""
    first = await scene.looked_up()
    await scene.tab.regenerate(MODEL, first, body=USED)
    return first.chat_id


async def continued(scene: Scene) -> str:
    """The request ended on the assistant's message."""
    turn = await scene.tab.send(MODEL, "hello")
    return (await scene.go_on(turn)).chat_id


async def continued_after_a_stop(scene: Scene) -> str:
    """The text goes on where it was cut."""
    turn = await scene.tab.begin(MODEL, "sim:chat,hold=70")
    await turn.until(lambda seen: "Here is" in seen.text)
    await scene.tab.stop(turn)
    await scene.tab.settle(turn)
    scene.simulator.release()
    return (await scene.go_on(turn)).chat_id


async def tool_card_deleted(scene: Scene) -> str:
    """The page takes the call and its output away together."""
    return await scene.change(
        await scene.looked_up(),
        lambda output: [item for item in output if item["type"] not in CALL_TYPES],
    )


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


async def shared(scene: Scene) -> str:
    """There is a link to it."""
    turn = await scene.looked_up()
    await scene.tab.user.share_chat(turn.chat_id)
    return turn.chat_id


async def opened_from_a_shared_link(scene: Scene) -> str:
    """A copy of what the link shows."""
    turn = await scene.looked_up()
    user = scene.tab.user
    link = (await user.share_chat(turn.chat_id))["share_id"]
    row = await user.call("POST", f"/api/v1/chats/{link}/clone/shared", {})
    return str(row["id"])


async def moved_to_another_model_and_back(scene: Scene) -> str:
    """Each family's reasoning stays with it."""
    first = await scene.looked_up()
    await scene.tab.send(OTHER, "sim:tool and?", chat_id=first.chat_id, body=USED)
    return first.chat_id


async def compacted(scene: Scene) -> str:
    """The host put a summary in the place of the oldest turns."""
    admin = scene.admin
    chat_id = None
    before = await admin.call("GET", "/api/v1/chats/config")
    for text in ("one", "two", "three"):
        turn = await scene.tab.send(
            MODEL, f"sim:tool-after-text {text}", chat_id=chat_id, body=USED
        )
        chat_id = turn.chat_id
    on = {"ENABLE_CONTEXT_COMPACTION": True}
    await admin.call("POST", "/api/v1/chats/config", before | on)
    try:
        path = f"/api/v1/chats/{turn.chat_id}/compact"
        done = await scene.tab.user.call("POST", path, {})
    finally:
        await admin.call("POST", "/api/v1/chats/config", before)
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
    stopped_between_call_and_output,
    stopped_in_the_text,
    stopped_after_a_remark,
    stopped_in_a_remark,
    continued_after_a_remark,
    crashed_in_the_middle,
    crashed_before_the_first_save,
    tool_removed,
    loop_limit,
    edited,
    branch_switched,
    regenerated,
    continued,
    continued_after_a_stop,
    tool_card_deleted,
    only_an_output_deleted,
    message_deleted,
    cloned,
    forked,
    exported_and_imported,
    imported_without_our_keys,
    shared,
    opened_from_a_shared_link,
    moved_to_another_model_and_back,
    compacted,
    two_models_at_once,
]
WITH_MARKERS: list[Case] = [
    stopped_in_the_text,
    crashed_in_the_middle,
    message_deleted,
    exported_and_imported,
    imported_without_our_keys,
    compacted,
]
"""Those in which it matters that keys of the chat's row hold the items."""
WHOLE: list[Case] = [
    tool_removed,
    cloned,
    forked,
    exported_and_imported,
    shared,
    opened_from_a_shared_link,
]
"""Those in which nothing of the answer may be lost, its reasoning included."""


@pytest.mark.asyncio
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
async def test_next_request_is_taken(
    tab: Tab, admin: User, simulator: Simulator, case: Case
) -> None:
    """No request was refused, so none was mended by trying again."""
    chat_id = await case(Scene(tab, admin, simulator))

    await assert_it_goes_on(tab, simulator, chat_id)
    if case in WHOLE:
        assert_all_is_sent(simulator)


@pytest.mark.asyncio
@pytest.mark.parametrize("case", WITH_MARKERS, ids=lambda case: case.__name__)
async def test_next_request_is_taken_with_markers(
    tab: Tab, admin: User, simulator: Simulator, case: Case
) -> None:
    """The same, with the items in keys of the chat's row."""
    async with valves_changed(admin, PIPE, HISTORY_CARRIER="markers"):
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
        body = {"tool_ids": ["toolkit"], "tool_choice": SLOW}
        turn = await tab.begin(MODEL, "sim:tool weather?", body=body)
        await turn.until(lambda seen: "slow_weather" in json.dumps(seen.events))
        await simulator.all_ended()
        await server.crash_and_restart()
    async with Tab(member) as tab:
        await assert_it_goes_on(tab, simulator, turn.chat_id)


@pytest.mark.asyncio
@pytest.mark.parametrize("writer", EARLIER)
async def test_chat_of_an_earlier_writer_goes_on(
    tab: Tab, simulator: Simulator, writer: str
) -> None:
    """Its text is sent. Lines, blocks and calls that the chat does not show are not."""
    turn = await tab.send(MODEL, "sim:tool weather?", body=USED)
    thought, call = outputs(simulator)[0]
    output = chat_bodies(simulator)[-1]["input"][-1]
    ids, text = EARLIER[writer]
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
