"""From the host's call to the last chunk, over real HTTP."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import pytest
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from calls.outcomes import (
    NATIVE,
    PLAIN,
    TEMPORARY,
    BrokenBody,
    answering,
    chunks_of,
    grown,
    plain_text,
    result_of,
    split_id,
    stored,
)
from calls.sample import IDS, MODEL, TOOL, USER, chat, valves_for
from hosts.servers.offline import free_port
from openai_responses.items import message_text
from openai_responses.requests.replay import strip_for_replay
from owui_chat.storage.markers import strip_markers
from owui_chat.storage.records import read_records
from owui_manifold.call.valves import UserValves, Valves
from owui_manifold.pipe import Pipe
from runs.sample import has_marker
from simulator import Simulator
from stand_in.host import StandInHost, host_callable
from stand_in.signing import SIGN

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
KEY = "sk-simulator-1"


# ---------------------------------------------------------------- what is listed


async def test_models_are_listed_by_the_administrators_names() -> None:
    """Each once, with a name for people, without a question to anybody."""
    pipe = Pipe()
    pipe.valves = Valves(MODEL_ID=" gpt-5.2-high, ,gpt-5.6-sol,gpt-5.2-high , mine")

    assert pipe.pipes() == [
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


# ---------------------------------------------------------------- four ways to ask


async def test_stored_chat_gets_native_events(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Reasoning, a marker in front of the text, the usage; the request streams."""
    chunks = await chunks_of(pipe, chat("Hi"), **NATIVE)

    assert chunks[0]["type"] == "response.output_item.added"
    assert chunks[0]["item"]["type"] == "reasoning"
    assert has_marker(grown(chunks))
    assert strip_markers(grown(chunks)).startswith("This is turn 1.")
    assert [c for c in chunks if "usage" in c] == [chunks[-1]]
    assert not [c for c in chunks if "error" in c]
    assert sim.requests[0].body["stream"] is True
    assert sim.requests[0].headers["Authorization"] == "***"


async def test_second_turn_replays_the_reasoning_of_the_first(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """What was sent, then what was received, byte for byte, then the new words."""
    first = await chunks_of(pipe, chat("Hi"), **NATIVE)

    await chunks_of(pipe, chat("Hi", stored(first), "And now?"), **NATIVE)

    asked, asked_again = sim.requests
    assert asked.response is not None
    received = [strip_for_replay(item) for item in asked.response["output"]]
    assert received[0]["encrypted_content"]
    assert received[1]["phase"]
    assert asked_again.body["input"][:-1] == [*asked.body["input"], *received]
    assert without_keys(asked_again.body, "input") == without_keys(asked.body, "input")


def without_keys(body: Json, *keys: str) -> Json:
    """A body without what is allowed to differ."""
    return {key: value for key, value in body.items() if key not in keys}


@pytest.mark.parametrize("given", [PLAIN, {}], ids=["a user", "nobody"])
async def test_plain_caller_gets_chunks(
    given: Json, pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Of Chat Completions, without markers; nothing is kept."""
    chunks = await chunks_of(pipe, chat("Hi"), **given)

    for chunk in chunks:
        ChatCompletionChunk.model_validate(chunk, strict=True)
        assert chunk["model"] == MODEL
    assert len({(chunk["id"], chunk["created"]) for chunk in chunks}) == 1
    assert plain_text(chunks).startswith("This is turn 1.")
    assert not has_marker(plain_text(chunks))
    assert host.chats.writes == []


async def test_temporary_chat_gets_native_events_without_markers(
    pipe: Pipe, host: StandInHost
) -> None:
    """It has no row in which anything could be kept."""
    chunks = await chunks_of(pipe, chat("Hi"), **TEMPORARY)

    assert grown(chunks).startswith("This is turn 1.")
    assert host.chats.writes == []


async def test_page_without_streaming_gets_one_result(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """With the output items for the host to store, the marker among them."""
    result = await result_of(pipe, chat("Hi"), **NATIVE)

    ChatCompletion.model_validate(result, strict=True)
    text = result["choices"][0]["message"]["content"]
    assert text.startswith("This is turn 1.")
    assert [item["type"] for item in result["output"]] == ["reasoning", "message"]
    shown = message_text(result["output"][1])
    assert has_marker(shown)
    assert strip_markers(shown) == text
    assert "encrypted_content" not in str(result)
    assert len(read_records(host.kept, SIGN)) == 1
    assert sim.requests[0].body["stream"] is False


async def test_plain_caller_without_streaming_gets_one_result(
    pipe: Pipe, host: StandInHost
) -> None:
    """Nothing in it is for the host."""
    result = await result_of(pipe, chat("Hi"), **PLAIN)

    ChatCompletion.model_validate(result, strict=True)
    assert "output" not in result
    assert host.chats.writes == []


async def test_valve_turns_streaming_upstream_off(pipe: Pipe, sim: Simulator) -> None:
    """The caller still gets a stream, all at once."""
    pipe.valves = valves_for(sim, ENABLE_STREAM=False)

    chunks = await chunks_of(pipe, chat("Hi"), **NATIVE)

    assert sim.requests[0].body["stream"] is False
    assert strip_markers(grown(chunks)).startswith("This is turn 1.")


@pytest.mark.parametrize("stream", [True, False])
async def test_task_gets_its_text_and_nothing_else(
    stream: bool, pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """One short request that keeps nothing."""
    prompt = '### Task:\nMake a title.\n### Output:\n{ "title": "..." }'

    result = await pipe.pipe(
        chat(prompt, stream=stream), **NATIVE, __task__="title_generation"
    )

    assert isinstance(result, dict)
    content = result["choices"][0]["message"]["content"]
    assert content == '{"title": "Talking to a Stand-in"}'
    assert host.chats.writes == []
    assert sim.requests[0].body["reasoning"] == {"effort": "none"}


async def test_users_valves_are_read_from_the_user(pipe: Pipe, sim: Simulator) -> None:
    """As the host passes them; anything else counts as nothing chosen."""
    chosen = {**USER, "valves": UserValves(REASONING_EFFORT="low")}
    odd = {**USER, "valves": {"REASONING_EFFORT": "low"}}

    await chunks_of(pipe, chat("Hi"), __user__=chosen, __metadata__=IDS)
    await chunks_of(pipe, chat("Hi"), __user__=odd, __metadata__=IDS)

    first, second = sim.requests
    assert first.body["reasoning"]["effort"] == "low"
    assert "effort" not in second.body["reasoning"]


async def test_two_copies_at_once_lose_nothing(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Two models of two functions answer in one chat."""
    other = Pipe()
    other.valves = valves_for(sim)

    await asyncio.gather(
        chunks_of(pipe, chat("Hi"), **NATIVE),
        chunks_of(
            other, {**chat("Hi"), "model": "copy.gpt-5.6-sol"}, **answering("m-2")
        ),
    )

    await other._connections.close()
    records = read_records(host.kept, SIGN).values()
    assert {record.message_id for record in records} == {"m-1", "m-2"}
    assert {record.model for record in records} == {MODEL, "copy.gpt-5.6-sol"}


async def test_body_of_the_host_is_not_modified(pipe: Pipe) -> None:
    """It goes on with the same body."""
    body = chat("Hi", tools=[TOOL], tool_choice="auto")

    await chunks_of(pipe, body, **NATIVE)

    assert body == chat("Hi", tools=[TOOL], tool_choice="auto")


# ---------------------------------------------------------------- bad input


async def sentences(pipe: Pipe, body: Json) -> set[str]:
    """What each kind of caller is told, without the id that each error has."""
    answers = [
        await chunks_of(pipe, body, **NATIVE),
        await chunks_of(pipe, body, **PLAIN),
        [await result_of(pipe, body, **NATIVE)],
        [await result_of(pipe, body, **PLAIN)],
    ]
    for chunks in answers:
        assert all(set(chunk) == {"error"} for chunk in chunks)
        assert len(chunks) == 1
    apart = [split_id(chunks[0]["error"]["message"]) for chunks in answers]
    assert len({error_id for _, error_id in apart}) == len(answers)
    return {sentence for sentence, _ in apart}


BAD_PART = [{"type": "input_audio", "input_audio": {"data": "QQ=="}}]


@pytest.mark.parametrize(
    ("valves", "body", "sentence"),
    [
        ({"API_KEY": ""}, {}, "This pipe has no API key yet."),
        ({"API_KEY": "sk-wrong"}, {}, "127.0.0.1 does not accept the API key."),
        ({"BASE_URL": "nonsense"}, {}, "An administrator has to correct BASE_URL"),
        ({"API_KEY": "sk-simulator-limited"}, {}, "is not available to this API key"),
        ({}, {"model": "f.gpt-9-nobody"}, "The model gpt-9-nobody does not exist"),
        ({}, {"messages": []}, "There is no message to answer."),
        (
            {},
            {"messages": [{"role": "user", "content": BAD_PART}]},
            "something other than text, an image or a file",
        ),
        (
            {},
            {"messages": [{"role": "narrator", "content": "Hi"}]},
            "has an unknown role",
        ),
        ({}, {"messages": ["Hi"]}, "is not an object with a role"),
    ],
    ids=[
        "no key",
        "wrong key",
        "bad address",
        "forbidden model",
        "unknown model",
        "no message",
        "bad part",
        "unknown role",
        "no object",
    ],
)
async def test_bad_input_gives_one_message(
    valves: Json, body: Json, sentence: str, pipe: Pipe, sim: Simulator
) -> None:
    """The same for every kind of caller; the chat goes on afterwards."""
    pipe.valves = valves_for(sim, **valves)

    [problem] = await sentences(pipe, {**chat("Hi"), **body})

    assert sentence in problem
    assert "sk-" not in problem
    pipe.valves = valves_for(sim)
    assert grown(await chunks_of(pipe, chat("Hi"), **NATIVE))


async def test_administrators_message_may_be_no_object(pipe: Pipe) -> None:
    """It is looked at for a command before anything else reads it."""
    body = {**chat("Hi"), "messages": ["Hi"]}
    administrator = {**USER, "role": "admin"}

    [chunk] = await chunks_of(pipe, body, **{**NATIVE, "__user__": administrator})

    assert "is not an object with a role" in chunk["error"]["message"]


async def test_unreachable_server_gives_one_message(pipe: Pipe, sim: Simulator) -> None:
    """It names the server and the valve, not the request."""
    address = f"http://127.0.0.1:{free_port()}/v1"
    pipe.valves = valves_for(sim, BASE_URL=address)

    [problem] = await sentences(pipe, chat("Hi"))

    assert "at 127.0.0.1 cannot be reached" in problem
    assert "BASE_URL" in problem


async def test_old_host_gets_one_message_and_no_request_is_sent(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Nor asked."""
    host.provide("env", VERSION="0.11.3")

    problems = await sentences(pipe, chat("Hi"))

    assert problems == {
        "This pipe needs Open WebUI 0.11.4 or newer; this server runs 0.11.3. "
        "An administrator has to update Open WebUI."
    }
    assert host.chats.writes == []
    assert sim.requests == []


async def test_marker_of_a_user_is_only_text(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Even one that the chat could resolve."""
    first = await chunks_of(pipe, chat("Hi"), **NATIVE)
    copied = stored(first)

    await chunks_of(pipe, chat(f"What is this? {copied}"), **NATIVE)

    [item] = sim.requests[-1].body["input"]
    assert item["content"] == [
        {"type": "input_text", "text": f"What is this? {copied}"}
    ]


# ---------------------------------------------------------------- stop


async def test_stopping_closes_the_connection(pipe: Pipe, sim: Simulator) -> None:
    """At an await, as the host's stop button does."""
    answer = await pipe.pipe(chat("sim:slow"), **NATIVE)
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

    assert (await sim.closed_early()).scenario == "slow"


# ---------------------------------------------------------------- our own faults


def check_fault(sentence: str, caplog: pytest.LogCaptureFixture) -> None:
    """The sentence's id is in the log; neither tells what the error said."""
    text, error_id = split_id(sentence)
    assert text.startswith("Something in this pipe went wrong.")
    assert re.fullmatch(
        rf"{error_id} \w+ at line \d+ in \w+", only_line(logging.ERROR, caplog)
    )
    for secret in (KEY, "diary", "Bearer"):
        assert secret not in sentence + caplog.text


def only_line(level: int, caplog: pytest.LogCaptureFixture) -> str:
    """The one line of the log that has this level."""
    [record] = [record for record in caplog.records if record.levelno == level]
    return record.getMessage()


@pytest.mark.parametrize("given", [NATIVE, PLAIN], ids=["native", "plain"])
async def test_own_fault_in_a_stream_gives_an_error_id(
    given: Json, pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """One sentence; the rest is in the log, without what may be secret."""
    [chunk] = await chunks_of(pipe, BrokenBody(chat("Hi")), **given)

    check_fault(chunk["error"]["message"], caplog)


async def test_own_fault_without_a_stream_gives_an_error_id(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """The same in one result."""
    body = BrokenBody(chat("Hi", stream=False))

    result = await pipe.pipe(body, **NATIVE)

    assert isinstance(result, dict)
    assert set(result) == {"error"}
    check_fault(result["error"]["message"], caplog)


async def test_own_fault_in_a_task_is_only_logged(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    """The host would take the sentence for a title."""
    result = await pipe.pipe(BrokenBody(chat("Hi")), **NATIVE, __task__="title_generation")

    assert isinstance(result, dict)
    assert result["choices"][0]["message"]["content"] == ""
    assert re.fullmatch(
        r"[0-9A-Z]{10} RuntimeError at line \d+ in get",
        only_line(logging.ERROR, caplog),
    )


async def test_exception_at_the_end_keeps_the_answer(
    pipe: Pipe, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The host would drop it if anything were raised."""

    def report_end(*_: object) -> None:
        raise RuntimeError(f"Bearer {KEY}: my secret diary")

    monkeypatch.setattr("owui_manifold.run.answer.report_end", report_end)

    chunks = await chunks_of(pipe, chat("sim:short"), **NATIVE)

    assert "Turn 1." in grown(chunks)
    check_fault(chunks[-1]["error"]["message"], caplog)


async def test_failed_task_is_logged(
    pipe: Pipe, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """With the sentence, never the key."""
    pipe.valves = valves_for(sim, API_KEY="")

    await pipe.pipe(chat("Hi"), **NATIVE, __task__="tags_generation")

    assert re.match(
        r"[0-9A-Z]{10} nothing was sent: This pipe has no API key yet\.",
        only_line(logging.WARNING, caplog),
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"TASK_MODEL": "gpt-9-nobody"},
        {"TASK_MODEL": "gpt-6-luna", "API_KEY": "sk-simulator-limited"},
    ],
)
async def test_a_task_model_that_the_key_may_not_use(
    changed: Json, pipe: Pipe, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """The chat's own model does the task; one refused request, one line in the log."""
    pipe.valves = valves_for(sim, **changed)
    words = '### Task:\nMake a title.\n### Output:\n{ "title": "..." }'
    prompt = chat(words, model="f.gpt-5.2")

    for _ in range(2):
        result = await result_of(pipe, prompt, __task__="title_generation")
        assert "Stand-in" in result["choices"][0]["message"]["content"]

    refused, *done = [request.status for request in sim.requests]
    assert refused in (400, 403)
    assert done == [200, 200]
    assert len([m for m in caplog.messages if "TASK_MODEL: the key" in m]) == 1


# ---------------------------------------------------------------- tools of the host


def look(city: str) -> str:
    """The weather, at once, as most tools give it."""
    return f"Rain in {city}."


def given_tools(function: Any = look, **more: Any) -> Json:
    """What the host passes for a chat with one tool."""
    spec = TOOL["function"]
    tool = {"tool_id": "toolkit", "callable": host_callable(function), "spec": spec}
    metadata = {**IDS, "user_id": "user-1", **more}
    given = {"__user__": USER, "__metadata__": metadata, "__request__": None}
    return {**given, "__tools__": {"get_weather": tool}}


def done_types(chunks: list[Json]) -> list[str]:
    """The items of an answer in the order in which the host stores them."""
    done = [c["item"] for c in chunks if c.get("type") == "response.output_item.done"]
    return [item["type"] for item in done]


async def test_tool_is_run_and_shown_in_one_answer(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Call, output, answer; one marker names what waited for the text."""
    chunks = await chunks_of(pipe, chat("sim:tool", tools=[TOOL]), **given_tools())

    assert done_types(chunks) == [
        *("reasoning", "function_call", "function_call_output"),
        *("reasoning", "message"),
    ]
    assert "It said: Rain in Zürich." in grown(chunks)
    assert len(sim.requests) == 2
    [record] = read_records(host.kept, SIGN).values()
    kinds = [item["type"] for item in record.payload]
    assert kinds[:3] == ["reasoning", "function_call", "reasoning"]


@pytest.mark.parametrize("ids", [IDS, {}], ids=["stored chat", "plain HTTP"])
async def test_tool_is_run_without_a_stream(
    ids: Json, pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """The result asks nobody to run it again."""
    given = given_tools()
    given["__metadata__"] = {"user_id": "user-1", **ids}

    result = await result_of(pipe, chat("sim:tool", tools=[TOOL]), **given)

    [choice] = result["choices"]
    assert choice["finish_reason"] == "stop"
    assert "tool_calls" not in choice["message"]
    assert "It said: Rain in Zürich." in choice["message"]["content"]
    assert ("output" in result) is bool(ids)


async def test_plain_caller_gets_the_answer_of_the_tools(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """And no call."""
    given = given_tools()
    given["__metadata__"] = {"user_id": "user-1"}

    chunks = await chunks_of(pipe, chat("sim:tool", tools=[TOOL]), **given)

    assert "It said: Rain in Zürich." in plain_text(chunks)
    assert "tool_calls" not in str(chunks)


@pytest.mark.parametrize(("rules", "asked"), [("", 1), ("get_*=deny", 0)])
async def test_no_tool_is_named_where_rules_would_not_hold(
    rules: str, asked: int, pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """In its older mode the host runs what the answer of this task names."""
    pipe.valves = valves_for(sim, TOOL_APPROVAL=rules)

    result = await result_of(pipe, chat("Hi"), __task__="function_calling")

    assert len(sim.requests) == asked
    assert bool(result["choices"][0]["message"]["content"]) is bool(asked)


async def test_words_of_a_tools_exception_are_in_no_chat(
    pipe: Pipe, sim: Simulator, host: StandInHost, caplog: pytest.LogCaptureFixture
) -> None:
    """They are in the log."""

    def broken(city: str) -> str:
        raise ValueError(f"canary for {city}")

    caplog.set_level(logging.DEBUG)
    given = given_tools(broken)

    chunks = await chunks_of(pipe, chat("sim:tool", tools=[TOOL]), **given)

    assert "get_weather failed" in grown(chunks)
    assert "canary" not in str(chunks)
    assert "canary" not in str([request.body for request in sim.requests])
    assert "ValueError: canary for Zürich" in caplog.text


async def test_person_is_asked_before_a_tool_runs(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Where the chat wants it; a no is told to the model."""
    shown: list[Json] = []

    async def refuse(event: Json) -> bool:
        shown.append(event)
        return False

    given = given_tools(params={"tool_approval_mode": "ask"})
    body = chat("sim:tool", tools=[TOOL])

    chunks = await chunks_of(pipe, body, **given, __event_call__=refuse)

    assert [event["type"] for event in shown] == ["confirmation"]
    assert "The user did not approve" in grown(chunks)


async def test_leaving_early_cancels_the_tool(
    pipe: Pipe, sim: Simulator, host: StandInHost
) -> None:
    """Within a second."""
    began = asyncio.Event()
    left = asyncio.Event()

    async def endless(city: str) -> str:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            left.set()
        return city

    body = chat("sim:tool", tools=[TOOL])
    task = asyncio.create_task(chunks_of(pipe, body, **given_tools(endless)))
    await began.wait()

    task.cancel()

    async with asyncio.timeout(60):
        with pytest.raises(asyncio.CancelledError):
            await task
        await left.wait()
