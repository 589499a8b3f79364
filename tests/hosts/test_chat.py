"""The pipe in a real Open WebUI: what is asked, shown, stored and sent again."""

import json

import pytest

from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import (
    assert_each_continues,
    chat_bodies,
    host_items,
    kinds,
    outputs,
    stored_value,
    stripped,
)
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import PLUGINS
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

NEW = "openai_responses.gpt-6.1-sol"
OLD = "openai_responses.gpt-5.2-high"
SIGN = "[openai_responses:v2:"


def pipe_keys(chat: dict[str, object]) -> set[str]:
    """The chat's top-level keys that are ours."""
    return {key for key in chat if key.startswith("openai_responses_pipe")}


@pytest.mark.asyncio
async def test_an_answer_streams_as_the_hosts_own(
    tab: Tab, simulator: Simulator
) -> None:
    """Reasoning and text arrive as native events, and are what is stored."""
    turn = await tab.send(NEW, "hello")

    native = {e["data"].get("type") for e in turn.of_type("response:completion")}
    assert "response.reasoning_summary_text.delta" in native
    assert "response.output_text.delta" in native
    stored = await tab.message(turn)
    reasoning, message = host_items(stored)
    (summary,) = reasoning["summary"]
    assert summary["text"].startswith("**Reading the question**\n\nThe user")
    assert "a look.\n\n**Planning the answer**\n\n" in summary["text"]
    assert message["content"][0]["text"].endswith("That is all for now.")
    assert stored["done"]
    assert turn.error is None


@pytest.mark.asyncio
async def test_the_second_turn_sends_what_the_first_received(
    tab: Tab, simulator: Simulator
) -> None:
    """Reasoning comes before its answer, byte for byte, without id and status.

    Every kind of answer is stored by the host's own functions and read back in
    tests/owui_chat/test_round_trip.py.
    """
    first = await tab.send(OLD, "sim:two-reasonings hello")
    second = await tab.send(OLD, "sim:chat and again", chat_id=first.chat_id)

    assert second.error is None
    assert_each_continues(simulator)
    before, after = chat_bodies(simulator)
    received = len(outputs(simulator)[0])
    assert kinds(after["input"][len(before["input"]) + received :]) == ["user"]
    same = ("tools", "model", "reasoning", "include")
    assert {k: before.get(k) for k in same} == {k: after.get(k) for k in same}


@pytest.mark.asyncio
async def test_encrypted_reasoning_is_stored_in_the_answers_output_only(
    server: OpenWebUI, tab: Tab, simulator: Simulator
) -> None:
    """The encrypted reasoning lies in the answer's own output, nowhere else."""
    turn = await tab.send(NEW, "hello")

    chat = server.stored_chat(turn.chat_id)
    assert pipe_keys(chat) == set()
    (record,) = stored_value(chat, turn.message_id)["items"].values()
    assert record["model"] == NEW
    assert record["message_id"] == turn.message_id
    assert isinstance(record["created_at"], int)
    reasoning, message = record["payload"]
    assert reasoning == stripped(outputs(simulator)[0][0])
    assert message["phase"] == "final_answer"
    stored = chat["history"]["messages"][turn.message_id]
    assert stored["content"].startswith("This is turn 1.")
    stored["output"] = host_items(stored)
    assert "encrypted_content" not in json.dumps(chat)


@pytest.mark.asyncio
async def test_regenerate_leaves_the_first_answer_out(
    tab: Tab, simulator: Simulator
) -> None:
    """A sibling sees the history before it, and has kept items of its own."""
    first = await tab.send(NEW, "hello")

    other = await tab.regenerate(NEW, first)

    bodies = chat_bodies(simulator)
    assert bodies[0]["input"] == bodies[1]["input"]
    chat = await tab.user.chat(first.chat_id)
    assert all(stored_value(chat, t.message_id)["items"] for t in (first, other))


@pytest.mark.asyncio
async def test_stop_closes_the_connection_and_keeps_the_text(
    tab: Tab, simulator: Simulator, server: OpenWebUI
) -> None:
    """The upstream work ends, what was shown stays, and the chat goes on."""
    turn = await tab.begin(NEW, "sim:slow,delay=10")
    await turn.until(lambda seen: len(seen.text) > 60)

    before = len(server.log())
    await tab.stop(turn)
    await simulator.closed_early()
    await tab.settle(turn)

    assert "ERROR" not in server.log()[before:]
    assert simulator.open_streams == 0
    stored = await tab.message(turn)
    assert len(stored["content"]) > 60
    assert not stored.get("error")
    after = await tab.send(NEW, "sim:chat go on", chat_id=turn.chat_id)
    assert after.error is None


@pytest.mark.asyncio
async def test_a_temporary_chat_holds_no_marker(
    tab: Tab, simulator: Simulator, member: User
) -> None:
    """There is no row to keep anything in, so nothing is named in the text."""
    before = len(await member.call("GET", "/api/v1/chats/"))

    turn = await tab.send(NEW, "hello", temporary=[])

    assert "This is turn 1." in turn.text
    assert SIGN not in turn.text
    assert "response.reasoning_summary_text.delta" in {
        e["data"].get("type") for e in turn.of_type("response:completion")
    }
    assert len(await member.call("GET", "/api/v1/chats/")) == before


@pytest.mark.asyncio
async def test_page_without_streaming_stores_and_replays_the_answer(
    tab: Tab, simulator: Simulator
) -> None:
    """The answer is stored with its output items, and the next turn replays it."""
    first = await tab.send(NEW, "hello", body={"stream": False})
    second = await tab.send(NEW, "again", chat_id=first.chat_id, body={"stream": False})

    stored = await tab.message(first)
    assert [item["type"] for item in host_items(stored)] == ["reasoning", "message"]
    assert SIGN not in stored["content"]
    bodies = chat_bodies(simulator)
    assert [body["stream"] for body in bodies] == [False, False]
    assert stripped(outputs(simulator)[0][0]) in bodies[1]["input"]
    assert (await tab.message(second))["done"]


@pytest.mark.asyncio
async def test_a_title_task_is_short_and_sees_no_marker(
    tab: Tab, simulator: Simulator
) -> None:
    """One request without tools, memory or effort; the chat it quotes is clean."""
    tasks = {"title_generation": True, "tags_generation": True}
    first = await tab.send(NEW, "hello")
    simulator.forget()

    turn = await tab.send(NEW, "again", chat_id=first.chat_id, background_tasks=tasks)

    chat, *jobs = [request.body for request in simulator.requests]
    assert "reasoning.encrypted_content" in chat["include"]
    assert jobs
    for body in jobs:
        assert SIGN not in json.dumps(body)
        assert "That is all for now." in json.dumps(body)
        assert body["reasoning"] == {"effort": "low"}
        assert body["stream"] is False
        assert not {"tools", "include"} & body.keys()
    assert turn.error is None


FILTER = (PLUGINS / "choices_filter.py").read_text()


@pytest.mark.asyncio
async def test_stream_filter_that_reads_choices_keeps_the_answer(
    tab: Tab, admin: User, simulator: Simulator
) -> None:
    """Filters written for Chat Completions do not erase the answer."""
    await admin.install_function("choices_filter", FILTER)
    await admin.set_global("choices_filter", True)
    try:
        turn = await tab.send(NEW, "hello")
    finally:
        await admin.delete_function("choices_filter")

    assert (await tab.message(turn))["content"].endswith("That is all for now.")


@pytest.mark.asyncio
async def test_an_upload_during_a_stream_disturbs_nothing(
    tab: Tab, admin: User, pipe_source: str, simulator: Simulator
) -> None:
    """The old version finishes its answer; the new one answers the next."""
    turn = await tab.begin(NEW, "sim:chat,hold=60")
    await turn.until(lambda seen: "Here is" in seen.text)

    await admin.install_function("openai_responses", pipe_source + "\n# newer\n")
    simulator.release()
    await turn.finished.wait()
    await tab.settle(turn)

    assert turn.error is None
    assert (await tab.message(turn))["content"].endswith("That is all for now.")
    after = await tab.send(NEW, "again", chat_id=turn.chat_id)
    assert "I was given 1 reasoning item back" in after.text
