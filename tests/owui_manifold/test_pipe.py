"""From the host's call to the last chunk, over real HTTP."""

import asyncio
import logging
import re
import sys
from collections.abc import AsyncGenerator
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any
from unittest.mock import DEFAULT, AsyncMock

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    PLAIN,
    TEMPORARY,
    BrokenBody,
    answering,
    chunks_of,
    errors,
    grown,
    plain_text,
    result_of,
    split_id,
    stored,
)
from calls.sample import IDS, MODEL, TOOL, USER, chat, valves_for
from calls.tools import with_tool
from openai_responses.items import message_text
from openai_responses.requests.replay import strip_for_replay
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.records import read_records
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.pipe import Pipe
from runs.sample import has_marker, without
from stand_in.chats import finished_items
from stand_in.host import StandInHost, close_connections
from stand_in.signing import SIGN
from upstream import wire
from upstream.server import Upstream, in_one_piece, in_turn, replying

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
KEY = "sk-simulator-1"


async def test_models_are_listed_by_the_administrators_names() -> None:
    """Each once, with a name for people, without a question to anybody."""
    pipe = Pipe()
    pipe.valves = Valves(MODEL_ID=" gpt-5.2-high, ,gpt-5.6-sol,gpt-5.2-high , mine")

    assert await pipe.pipes() == [
        {"id": "gpt-5.2-high", "name": "GPT-5.2 (high)"},
        {"id": "gpt-5.6-sol", "name": "GPT-5.6 Sol"},
        {"id": "mine", "name": "mine"},
    ]


async def test_new_pipe_has_opened_and_started_nothing() -> None:
    """The host makes one at every upload and never closes it."""
    tasks = asyncio.all_tasks()

    pipe = Pipe()

    assert asyncio.all_tasks() == tasks
    assert pipe.valves == Valves()
    assert (pipe.Valves, pipe.UserValves) == (Valves, UserValves)


async def test_stored_chat_gets_native_events(desk: Desk) -> None:
    """Reasoning, a marker in front of the text, the usage; the request streams."""
    chunks = await desk.ask("Hi")

    assert chunks[0]["type"] == "response.output_item.added"
    assert chunks[0]["item"]["type"] == "reasoning"
    assert has_marker(grown(chunks))
    assert strip_markers(grown(chunks)).startswith("This is turn 1.")
    assert [c for c in chunks if "usage" in c] == [chunks[-1]]
    assert not [c for c in chunks if "error" in c]
    assert desk.bodies[0]["stream"] is True
    assert desk.sim.requests[0].headers["Authorization"] == "***"


async def test_second_turn_replays_the_reasoning_of_the_first(desk: Desk) -> None:
    """What was sent, then what was received, byte for byte, then the new words."""
    first = await desk.ask("Hi")

    await desk.ask("Hi", stored(first), "And now?")

    asked, asked_again = desk.sim.requests
    assert asked.response is not None
    received = [strip_for_replay(item) for item in asked.response["output"]]
    assert received[0]["encrypted_content"]
    assert received[1]["phase"]
    assert asked_again.body["input"][:-1] == [*asked.body["input"], *received]
    assert without(asked_again.body, "input") == without(asked.body, "input")


@pytest.mark.parametrize("given", [PLAIN, {}], ids=["a user", "nobody"])
async def test_plain_caller_gets_chunks(given: Json, desk: Desk) -> None:
    """Of Chat Completions, or one result, without markers; nothing is kept."""
    chunks = await chunks_of(desk.pipe, chat("Hi"), **given)

    result = await result_of(desk.pipe, chat("Hi"), **given)

    ChatCompletion.model_validate(result, strict=True)
    assert "output" not in result
    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert chunk["model"] == MODEL
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
    assert plain_text(chunks).startswith("This is turn 1.")
    assert not has_marker(plain_text(chunks))
    assert desk.host.chats.writes == []


async def test_page_without_streaming_gets_one_result(desk: Desk) -> None:
    """With the output items for the host to store, the marker among them."""
    result = await desk.result(chat("Hi"))

    ChatCompletion.model_validate(result, strict=True)
    text = result["choices"][0]["message"]["content"]
    assert text.startswith("This is turn 1.")
    assert [item["type"] for item in result["output"]] == ["reasoning", "message"]
    shown = message_text(result["output"][1])
    assert has_marker(shown)
    assert strip_markers(shown) == text
    assert "encrypted_content" not in str(result)
    assert len(read_records(desk.host.kept, SIGN)) == 1
    assert desk.bodies[0]["stream"] is False


@pytest.mark.parametrize("stream", [True, False])
async def test_task_gets_its_text_and_nothing_else(stream: bool, desk: Desk) -> None:
    prompt = '### Task:\nMake a title.\n### Output:\n{ "title": "..." }'
    given = {"__task__": "title_generation"}

    if stream:
        content = plain_text(await desk.ask(prompt, **given))
    else:
        result = await desk.result(chat(prompt), **given)
        content = result["choices"][0]["message"]["content"]

    assert content == '{"title": "Talking to a Stand-in"}'
    assert desk.host.chats.writes == []
    assert desk.bodies[0]["reasoning"] == {"effort": "none"}


@pytest.mark.parametrize(
    ("task", "rules", "is_asked"),
    [
        ("function_calling", "get_*=deny", False),
        ("function_calling", "", True),
        ("title_generation", "get_*=deny", True),
    ],
)
async def test_rules_for_tools_keep_the_host_from_its_legacy_way(
    task: str,
    rules: str,
    desk: Desk,
    caplog: pytest.LogCaptureFixture,
    *,
    is_asked: bool,
) -> None:
    """It would run the tools that this task names without asking; titles go on.

    The log says why no tool runs.
    """
    desk.set_valves(TOOL_APPROVAL=rules)
    given = {**PLAIN, "__task__": task}

    result = await desk.result(chat("Hi"), **given)
    streamed = await desk.ask("Hi", **given)

    assert bool(desk.sim.requests) is is_asked
    assert bool(result["choices"][0]["message"]["content"]) is is_asked
    assert bool(plain_text(streamed)) is is_asked
    assert ("lets no tool run" not in caplog.text) is is_asked


async def test_users_valves_are_read_from_the_user(desk: Desk) -> None:
    """As the host passes them; anything else counts as nothing chosen."""
    chosen = {**USER, "valves": UserValves(REASONING_EFFORT="low")}
    odd = {**USER, "valves": {"REASONING_EFFORT": "low"}}

    await desk.ask("Hi", __user__=chosen, __metadata__=IDS)
    await desk.ask("Hi", __user__=odd, __metadata__=IDS)

    first, second = desk.sim.requests
    assert first.body["reasoning"]["effort"] == "low"
    assert "effort" not in second.body["reasoning"]


async def test_two_copies_at_once_lose_nothing(desk: Desk) -> None:
    """Two models of two functions answer in one chat."""
    other = Pipe()
    other.valves = valves_for(desk.sim)

    await asyncio.gather(
        desk.ask("Hi"),
        chunks_of(
            other, {**chat("Hi"), "model": "copy.gpt-5.6-sol"}, **answering("m-2")
        ),
    )

    await close_connections(other)
    records = read_records(desk.host.kept, SIGN).values()
    assert sorted(record.message_id for record in records) == ["m-1", "m-2"]


async def test_body_of_the_host_is_not_modified(desk: Desk) -> None:
    """It goes on with the same body."""
    body = chat("Hi", tools=[TOOL], tool_choice="auto")

    await desk.chunks(body)

    assert body == chat("Hi", tools=[TOOL], tool_choice="auto")


async def test_administrators_message_may_be_no_object(desk: Desk) -> None:
    """It is looked at for a command before anything else reads it."""
    body = {**chat("Hi"), "messages": ["Hi"]}

    [chunk] = await desk.chunks(body, __user__={**USER, "role": "admin"})

    assert "is not an object with a role" in chunk["error"]["message"]


async def test_stopping_closes_the_connection(desk: Desk) -> None:
    """At an await, as the host's stop button does."""
    answer = await desk.answer(chat("sim:slow"))
    assert isinstance(answer, AsyncGenerator)
    async with aclosing(answer):
        async for chunk in answer:
            if grown([chunk]):
                break
        waiting = asyncio.ensure_future(anext(answer))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

    assert (await desk.sim.closed_early()).scenario == "slow"


def check_fault(sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    """The message's id is in the log; neither tells what the error said."""
    text, error_id = split_id(sentence)
    assert text.startswith("Something in this pipe went wrong.")
    assert re.fullmatch(
        rf"{error_id} \w+ at line \d+ in \w+", only_line(logging.ERROR, caplog)
    )
    for secret in (KEY, "diary", "Bearer"):
        assert secret not in sentence + caplog.text


def only_line(level: int, caplog: pytest.LogCaptureFixture) -> str:
    [record] = [record for record in caplog.records if record.levelno == level]
    return record.getMessage()


@pytest.mark.parametrize("given", [NATIVE, PLAIN], ids=["native", "plain"])
async def test_own_fault_in_a_stream_gives_an_error_id(
    given: Json, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """One message; the rest is in the log, without what may be secret."""
    [chunk] = await desk.chunks(BrokenBody(chat("Hi")), **given)

    check_fault(chunk["error"]["message"], caplog)


async def test_own_fault_in_a_task_is_only_logged(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The host would take the message for a title."""
    body = BrokenBody(chat("Hi", stream=False))
    result = await desk.answer(body, __task__="title_generation")

    assert isinstance(result, dict)
    assert result["choices"][0]["message"]["content"] == ""
    assert re.fullmatch(
        r"[0-9A-Z]{10} RuntimeError at line \d+ in get",
        only_line(logging.ERROR, caplog),
    )


async def test_exception_at_the_end_keeps_the_answer(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host would drop it if anything were raised."""

    def report_end(*_: object) -> None:
        raise RuntimeError(f"Bearer {KEY}: my secret diary")

    monkeypatch.setattr("owui_manifold.run.answer.report_end", report_end)

    chunks = await desk.ask("sim:short")

    assert "Turn 1." in grown(chunks)
    check_fault(chunks[-1]["error"]["message"], caplog)


@pytest.mark.parametrize(
    "changed",
    [
        {"TASK_MODEL": "gpt-9-nobody"},
        {"TASK_MODEL": "gpt-6-luna", "API_KEY": "sk-simulator-limited"},
    ],
)
async def test_a_task_model_that_the_key_may_not_use(
    changed: Json, desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """The chat's own model does it; one refused request, one line in the log.

    `/check` says it all the same.
    """
    desk.set_valves(**changed)
    words = '### Task:\nMake a title.\n### Output:\n{ "title": "..." }'
    prompt = chat(words, model="f.gpt-5.2")

    for _ in range(2):
        result = await result_of(desk.pipe, prompt, __task__="title_generation")
        assert "Stand-in" in result["choices"][0]["message"]["content"]

    refused, *done = [request.status for request in desk.sim.requests]
    assert refused in (400, 403)
    assert done == [200, 200]
    assert len([m for m in caplog.messages if "TASK_MODEL: the key" in m]) == 1
    asked = chat("/check", model="f.gpt-5.2")
    checked = await desk.chunks(asked, __user__={**USER, "role": "admin"})
    assert "Problem: TASK_MODEL" in grown(checked)


async def test_one_bad_moment_says_nothing_about_a_task_model(desk: Desk) -> None:
    """A firewall's page names no model: the chat's own model does this task alone."""
    done = in_one_piece(wire.message_item('{"title": "Hi"}'))
    page = replying("<html><title>Blocked</title></html>", 403)
    prompt = chat("### Task: a title", model="f.gpt-5.2")

    async with Upstream(in_turn(page, done)) as server:
        desk.set_valves(BASE_URL=server.base_url, TASK_MODEL="gpt-6-luna")
        for _ in range(2):
            result = await result_of(desk.pipe, prompt, __task__="title_generation")
            assert "Hi" in result["choices"][0]["message"]["content"]

    models = [body["model"] for body in server.bodies]
    assert models == ["gpt-6-luna", "gpt-5.2", "gpt-6-luna"]


@pytest.mark.parametrize(
    ("task", "task_model", "asked"),
    [
        ("title_generation", "gpt-6.1-terra", ["gpt-6.1-terra"]),
        ("title_generation", "gpt-6.2-sol", ["gpt-6.2-sol", "gpt-6.1-terra"]),
        ("context_compaction", "gpt-6-luna", ["gpt-6.1-terra"]),
    ],
)
async def test_task_of_an_automatic_name_ends_where_the_key_lacks_every_model(
    task: str, task_model: str, asked: list[str], desk: Desk
) -> None:
    """Each model is asked once; the log says why there is no text."""
    key = "sk-simulator-limited"
    desk.set_valves(TASK_MODEL=task_model, API_KEY=key)
    body = chat("Hi", model="f.gpt-5-auto")

    result = await desk.result(body, **PLAIN, __task__=task)

    assert result["choices"][0]["message"]["content"] == ""
    assert [body["model"] for body in desk.bodies] == asked


def done_types(chunks: list[Json]) -> list[str]:
    return [item["type"] for item in finished_items(chunks)]


async def test_tool_is_run_and_shown_in_one_answer(desk: Desk) -> None:
    """Call, output, answer; one marker names what waited for the text."""
    chunks = await desk.chunks(chat("sim:tool", tools=[TOOL]), **with_tool())

    assert done_types(chunks) == [
        *("reasoning", "function_call", "function_call_output"),
        *("reasoning", "message"),
    ]
    assert "It said: Rain in Zürich." in grown(chunks)
    assert len(desk.sim.requests) == 2
    [record] = read_records(desk.host.kept, SIGN).values()
    kinds = [item["type"] for item in record.payload]
    assert kinds[:3] == ["reasoning", "function_call", "reasoning"]


@pytest.mark.parametrize("ids", [IDS, {}], ids=["stored chat", "plain HTTP"])
async def test_tool_is_run_without_a_stream(ids: Json, desk: Desk) -> None:
    """The result does not ask to run it again."""
    given = {**with_tool(), "__metadata__": {"user_id": "user-1", **ids}}

    result = await desk.result(chat("sim:tool", tools=[TOOL]), **given)

    [choice] = result["choices"]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
    assert "It said: Rain in Zürich." in choice["message"]["content"]
    assert ("output" in result) is bool(ids)


class Toolkit:
    """A toolkit whose method quotes what it knows."""

    valves = SimpleNamespace(WEATHER_API_KEY="canary-of-the-toolkit", units="metric")

    def __init__(self, key: str) -> None:
        self.known = [key, self.valves.WEATHER_API_KEY, f"{sys.prefix}/lib/forecast.py"]

    def get_weather(self, city: str) -> str:
        raise ValueError(f"{city}: day must look like 2026-12-31, metric {self.known}")


async def test_the_model_reads_why_a_tool_failed(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Not the keys of pipe and toolkit, and not where the server is installed."""
    caplog.set_level(logging.DEBUG)
    given = with_tool(Toolkit(desk.sim.api_key).get_weather)

    chunks = await desk.chunks(chat("sim:tool", tools=[TOOL]), **given)

    told = (
        "Error: get_weather failed: ValueError: Zürich: day must look like 2026-12-31, "
        "metric ['[redacted]', '[redacted]', '[path]/forecast.py']"
    )
    assert desk.sent["input"][-1]["output"] == told
    assert "day must look like 2026-12-31" in grown(chunks)
    sent = str(desk.bodies)
    for secret in ("canary", desk.sim.api_key, sys.prefix):
        assert secret not in sent + str(chunks)
    assert "ValueError: Zürich: day must look like" in caplog.text
    assert "canary" not in caplog.text


def message_row(host: StandInHost, **answer: Any) -> Json:
    """Let the chat hold a question and the answer that is being written."""
    question = {"role": "user", "content": "Hi", "parentId": None}
    row = {"role": "assistant", "content": "", "parentId": "q-1", **answer}
    messages = {"q-1": question, "m-1": row}
    host.chats.rows["chat-1"].chat["history"] = {"messages": messages}
    return messages


@pytest.mark.parametrize(
    ("found", "seconds"),
    [(DEFAULT, 0.0), (DEFAULT, 40.0), (None, 0.0)],
    ids=["a row", "a round that ends while one is stored", "in the chat alone"],
)
async def test_each_finished_round_is_stored_with_its_message(
    found: object, seconds: float, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Open WebUI stores at the end: a server that is killed would lose the rounds.

    A message that the page wrote is in the chat alone, without a row of its own. It is
    read before the first round: then its items are those that were stored here.
    """
    message_row(desk.host)
    desk.host.chats.saving_seconds = seconds
    read = AsyncMock(wraps=desk.host.chats.get_message_by_id, return_value=found)
    monkeypatch.setattr(desk.host.chats, "get_message_by_id", read)

    chunks = await desk.chunks(
        chat("sim:tool-twice,delay=2000", tools=[TOOL]), **with_tool()
    )

    done = done_types(chunks)
    rounds = [
        [item["type"] for item in saved["output"]] for saved in desk.host.chats.saved
    ]
    assert len(rounds) == 2
    assert all(kinds[-1] == "function_call_output" for kinds in rounds)
    assert rounds[1][: len(rounds[0])] == rounds[0]
    assert rounds[1].count("function_call") == done.count("function_call") == 2
    read.assert_awaited_once_with("chat-1-m-1")


async def test_round_is_stored_once_all_its_calls_have_outputs(desk: Desk) -> None:
    """An open call would be one that the host asks about."""
    message_row(desk.host)

    await desk.chunks(chat("sim:five-calls,delay=2000", tools=[TOOL]), **with_tool())

    [saved] = desk.host.chats.saved
    kinds = [item["type"] for item in saved["output"]]
    assert kinds.count("function_call_output") == 5


@pytest.mark.parametrize(
    ("answer", "chat_id"),
    [
        ({"output": [{"type": "message", "id": "earlier", "content": []}]}, "chat-1"),
        (None, "chat-1"),
        ({}, "temporary:1"),
    ],
    ids=["an answer that is continued", "no such message", "a temporary chat"],
)
async def test_items_that_a_message_holds_are_not_replaced(
    answer: Json | None, chat_id: str, desk: Desk
) -> None:
    """They are the first part of an answer that is continued."""
    messages = message_row(desk.host, **(answer or {}))
    if answer is None:
        del messages["m-1"]
    given = with_tool(chat_id=chat_id)

    await desk.chunks(chat("sim:tool,delay=2000", tools=[TOOL]), **given)

    assert desk.host.chats.saved == []


async def test_database_that_is_away_stops_no_round(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer goes on; the host stores it at its end."""
    message_row(desk.host)
    name = "upsert_message_to_chat_by_id_and_message_id"
    fail = AsyncMock(side_effect=OSError("database is away"))
    monkeypatch.setattr(desk.host.chats, name, fail)

    chunks = await desk.chunks(chat("sim:tool,delay=2000", tools=[TOOL]), **with_tool())

    assert errors(chunks) == []
    assert done_types(chunks)[-1] == "message"


POSTGRES = "postgresql://db/webui"


@pytest.mark.parametrize(
    ("streams", "away", "seconds"),
    [(True, 3, 0.25 + 0.5 + 1.0), (False, 3, 0.25 + 0.5 + 1.0), (False, 1000, 30)],
    ids=["stream", "whole", "half a minute at most"],
)
async def test_end_waits_for_a_database_that_is_away(
    streams: bool, away: int, seconds: float, desk: Desk
) -> None:
    """Open WebUI stores the last line and the answer then, and gives up at once."""
    vars(sys.modules["open_webui.env"])["DATABASE_URL"] = POSTGRES
    desk.host.chats.away = away
    loop = asyncio.get_running_loop()
    began = loop.time()
    body = chat("sim:chat hello", stream=streams)

    answer = await desk.answer(body)
    shown = grown([c async for c in answer]) if streams else str(answer["choices"])

    assert "This is turn 1" in shown
    assert loop.time() - began == pytest.approx(seconds, abs=0.5)


async def test_refusal_without_a_stream_waits_for_the_database_too(desk: Desk) -> None:
    """The page is told nothing else: there is no line of an agent."""
    vars(sys.modules["open_webui.env"])["DATABASE_URL"] = POSTGRES
    desk.host.chats.away = 3
    desk.set_valves(BASE_URL="ftp://a.example")
    result = await desk.result(chat("Hi"), __event_emitter__=desk.emit)

    assert "BASE_URL" in result["error"]["message"]
    assert desk.emitted == []
    assert desk.host.chats.away == 0


@pytest.mark.parametrize(
    ("address", "given", "asked"),
    [
        ("postgresql://db/webui", NATIVE, 1),
        ("sqlite:///webui.db", NATIVE, 0),
        ("postgresql://db/webui", TEMPORARY, 0),
    ],
    ids=["a row", "SQLite", "no row"],
)
async def test_end_of_a_stream_asks_the_database_once(
    address: str, given: Json, asked: int, desk: Desk
) -> None:
    """Before the last line; Open WebUI stores the answer in the same moment."""
    vars(sys.modules["open_webui.env"])["DATABASE_URL"] = address

    await desk.ask("sim:chat hello", **given)

    assert desk.host.chats.asked == asked


async def test_title_of_a_check_that_cannot_be_made_is_none(
    desk: Desk,
) -> None:
    """What is wrong stands in the chat."""
    desk.set_valves(API_KEY="")
    given: Json = {"__user__": {**USER, "role": "admin"}}

    result = await desk.result(chat("/check"), **given, __task__="title_generation")

    assert result["choices"][0]["message"]["content"] == ""


@pytest.mark.parametrize("away", [0, 3])
async def test_rounds_of_an_answer_that_ends_at_once_are_not_stored_twice(
    away: int, desk: Desk
) -> None:
    """Open WebUI stores the whole answer then, and each write takes the whole chat."""
    vars(sys.modules["open_webui.env"])["DATABASE_URL"] = POSTGRES
    message_row(desk.host)
    chunks: list[Json] = []
    body = chat("sim:tool-twice", tools=[TOOL])
    async with aclosing(await desk.answer(body, **with_tool())) as answer:
        async for chunk in answer:
            chunks.append(chunk)
            if done_types(chunks)[-1:] == ["message"]:
                desk.host.chats.away = away  # which takes longer than a second

    assert done_types(chunks).count("function_call_output") == 2
    assert desk.host.chats.saved == []


async def test_stopped_answer_is_not_stored_after_the_host_stored_it(
    desk: Desk,
) -> None:
    """It would replace the text that came after the round."""
    message_row(desk.host)
    body = chat("sim:tool,delay=2000", tools=[TOOL])
    has_output = False
    async with aclosing(await desk.answer(body, **with_tool())) as answer:
        async for chunk in answer:
            if has_output:
                break  # the round has ended
            has_output = "function_call_output" in str(chunk.get("item"))
    await asyncio.sleep(5)

    assert desk.host.chats.saved == []


async def test_streamed_task_shows_no_refusal_of_the_task_model(desk: Desk) -> None:
    """The chat's own model does it: what is read is that answer alone."""
    desk.set_valves(TASK_MODEL="gpt-9-nobody")

    chunks = await desk.ask("sim:short Hi", **PLAIN, __task__="tags_generation")

    assert [request.status for request in desk.sim.requests] == [400, 200]
    assert errors(chunks) == []
    assert plain_text(chunks)
