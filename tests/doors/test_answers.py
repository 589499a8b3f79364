"""What comes of an answer, at both doors: streams that are odd, endings, tasks, channels.

`test_agents.py` has what an agent does.
"""

import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from calls.outcomes import split_id
from calls.valves import expert
from chats.pictures import PIXEL
from doors.differences import DIFFERENCES
from doors.talk import Door, Turn
from golden_run.pipe_chats import Question
from runs.disturbed import STREAMS
from simulator import Simulator
from simulator.faults import refuse_item, refuse_parameter
from upstream import wire
from upstream.odd_streams import CITY, answer_without_eyes, sending, stream_of
from upstream.refusals import FAILED_EVENTS, REFUSED_BODIES
from upstream.server import Answerer, Upstream, in_turn, replying, streaming

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
READERS = ("page", "page-whole", "plain", "plain-whole")
CHANNEL: Json = {"chat_id": "channel:1"}


def task(name: str, text: str) -> Question:
    return Question(text, metadata={"task": name}, task=name)


def by(user: str, body: Json | None = None) -> Question:
    ids = {"user_id": user}
    return Question("sim:short Hi", body=body or {}, metadata=ids, user={"id": user})


async def told_by(
    door: Door, server_says: Answerer, reader: str, **settings: Any
) -> tuple[Turn, list[Json]]:
    """An answer of another server, and what arrived there."""
    async with Upstream(server_says) as server:
        url = {"BASE_URL": server.base_url, **settings}
        [turn] = await door.talk("Hi", reader=reader, settings=url)
        return turn, server.bodies


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("name", STREAMS)
async def test_disturbed_stream_is_shown_as_what_it_is(
    door: Door, name: str, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An ending that can be continued is a line of the page, and an error elsewhere."""
    caplog.set_level(logging.INFO)
    expected = STREAMS[name]
    answer = streaming(stream_of(name))
    turn, bodies = await told_by(door, answer, reader, MAX_RETRIES=2)

    is_good = expected.kind == "completed"
    assert expected.cause in caplog.text
    assert "ping" not in caplog.text
    if reader in ("page", "plain"):
        assert len(bodies) == expected.requests
        assert turn.text == expected.shown.strip()
        line = "left out events of the stream that cannot be read: "
        kinds = [f"{count} {kind}" for kind, count in expected.skipped.items()]
        assert (f"{line}{', '.join(kinds)}" in caplog.text) is bool(kinds)
    elif is_good:
        assert turn.text == expected.shown.strip()
    if is_good:
        assert turn.error == ""
    elif turn.error:
        sentence, error_id = split_id(turn.error)
        assert expected.words in sentence
        assert error_id in caplog.text
    else:
        assert reader.startswith("page")
        assert expected.words in str([turn.lines, turn.emitted])


def named(message: str, noun: str) -> str:
    """Return a message with the names of this server, this model and this shell."""
    named_server = message.replace("OpenAI", "127.0.0.1")
    named_model = named_server.replace("this model", "gpt-6.1-sol")
    return named_model.replace("this pipe", f"this {noun}")


# All of them are in tests/openai_responses/test_endings.py.
REFUSALS = (
    "wrong key",
    "country",
    "project without the model",
    "mismatched organization",
    "address that is not allowed",
    "large body",
)


@pytest.mark.parametrize("reader", ["page", "plain", "plain-whole"])
@pytest.mark.parametrize("name", REFUSALS)
async def test_a_refusal_has_one_message(door: Door, name: str, reader: str) -> None:
    """With the setting that an administrator has to look at."""
    status, body, message = REFUSED_BODIES[name]
    turn, _ = await told_by(door, replying(body, status), reader)

    assert split_id(turn.error)[0] == named(message, door.noun)


@pytest.mark.parametrize("reader", ["page", "plain", "plain-whole"])
@pytest.mark.parametrize("name", ["an image", "wrong key", "unknown model"])
async def test_an_error_event_has_the_message_of_a_refusal(
    door: Door, name: str, reader: str
) -> None:
    """The same for an error that comes as the only event of a stream."""
    error, message = FAILED_EVENTS[name]
    event = json.dumps({"type": "error", "error": error})
    answer = streaming(f"data: {event}\n\n".encode())
    turn, _ = await told_by(door, answer, reader)

    assert split_id(turn.error)[0] == named(message, door.noun)


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("last", ["empty-last-message", "nothing"])
async def test_nothing_to_add_after_tools_is_no_error(
    door: Door, last: str, reader: str
) -> None:
    """An answer that is regenerated would run the tools again."""
    nothing = streaming(wire.on_the_wire(*wire.whole_stream()))
    end = nothing if last == "nothing" else sending(last)
    answer = in_turn(sending("call-never-ended"), end)
    turn, bodies = await told_by(door, answer, reader)

    assert turn.error == ""
    assert turn.metadata[-1]["ending"] == "completed"
    first, second = bodies
    [call, output] = second["input"][-2:]
    assert json.loads(call["arguments"]) == json.loads(CITY)
    assert "get_weather says" in str(output)
    assert len(first["input"]) == len(second["input"]) - 2


HALVES = wire.whole_stream(wire.message("Rain \ud83c", "\udf27 in Z\ud83c."))
"""One character in two deltas, and half of another."""


@pytest.mark.parametrize(
    ("reader", "name"),
    [
        ("page-whole", ""),
        ("plain-whole", ""),
        ("page-whole", "context_compaction"),
    ],
)
async def test_half_a_character_loses_no_whole_answer(
    door: Door, reader: str, name: str
) -> None:
    """A server sends the result as UTF-8, which has no halves."""
    async with Upstream(streaming(wire.on_the_wire(*HALVES))) as server:
        question = task(name, "Hi") if name else "Hi"
        url = {"BASE_URL": server.base_url}
        [turn] = await door.talk(question, reader=reader, settings=url)

    [result] = turn.answers
    assert json.dumps(result, ensure_ascii=False).encode()
    [choice] = result["choices"]
    assert choice["message"]["content"].strip() == "Rain 🌧 in Z\ufffd."


async def test_a_model_that_cannot_see_is_remembered(door: Door) -> None:
    """The second question is asked once, with a line in place of the image."""
    image = {"type": "image_url", "image_url": {"url": PIXEL}}
    question = Question("See?", [{"type": "text", "text": "See?"}, image])
    async with Upstream(answer_without_eyes) as server:
        settings = {"BASE_URL": server.base_url, "COMPATIBILITY": "auto"}
        first, second = await door.talk(question, question, settings=settings)

    assert first.error == second.error == ""
    assert "cannot see images" in str(first.lines)
    assert "cannot see images" not in str(second.lines)
    seen = ["input_image" in json.dumps(body) for body in server.bodies]
    assert seen == [True, False, False]
    part = server.bodies[-1]["input"][-1]["content"][-1]
    assert part["text"].startswith("See?\n[An image or file was here.")


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("role", ["admin", "user"])
async def test_administrators_read_what_the_server_said(
    door: Door, role: str, reader: str
) -> None:
    """Who else asks reads the cause alone."""
    [turn] = await door.talk(Question("sim:quota", user={"role": role}), reader=reader)

    says = "The model's server said" in json.dumps([turn.answers, turn.emitted])
    is_known = reader.startswith("page")
    is_known = is_known or DIFFERENCES["a program is somebody"][door.name]
    assert says is (is_known and role == "admin")


@pytest.mark.parametrize(
    ("scenario", "settings", "reason"),
    [
        ("quota", {}, "no credit"),
        ("cut", {}, "broke before"),
        ("incomplete", {}, "length limit"),
        ("failed", {}, "internal error"),
        ("chat", {"API_KEY": ""}, "no API key"),
    ],
)
async def test_channel_reads_how_an_answer_ended_in_its_text(
    door: Door, scenario: str, settings: Json, reason: str
) -> None:
    """It shows neither errors nor status lines, and is everybody's who is there.

    So an administrator's question gets no reasons of the server.
    """
    admin = {"role": "admin"}
    question = Question(f"sim:{scenario}", metadata=CHANNEL, user=admin)
    [turn] = await door.talk(question, settings=settings)

    assert reason in str(turn.chunks[-3:])
    assert "server said" not in str(turn.chunks)
    assert turn.error == ""


@pytest.mark.parametrize("reader", ["page", "page-whole"])
async def test_sources_are_links_in_the_text_of_a_channel(
    door: Door, reader: str
) -> None:
    """It shows none beside it, as a chat does."""
    [turn] = await door.talk(
        Question("sim:annotations", metadata=CHANNEL), reader=reader
    )

    assert turn.text.endswith("\n\n[1] [The chronicle](<http://127.0.0.1/chronicle>)")


@pytest.mark.parametrize("reader", ["page", "page-whole"])
@pytest.mark.parametrize(
    ("name", "text", "effort"),
    [("title_generation", "Talking to a Stand-in", True), ("x", "This is", False)],
)
async def test_a_title_takes_one_short_request(
    door: Door, reader: str, name: str, text: str, effort: bool
) -> None:
    """Its text is the whole answer; what another function names so is no task (R28)."""
    prompt = '### Task:\nA title.\n### Output:\nJSON format: { "title": "..." }'
    if name == "x":
        prompt = "Hi"
    [turn] = await door.talk(task(name, prompt), reader=reader)

    [body] = turn.requests
    assert text in turn.text
    assert (body["reasoning"].keys() == {"effort"}) is effort
    assert bool({"tools", "include"} & body.keys()) is not effort
    assert body["stream"] is (reader == "page")
    assert ("<persistence>" in json.dumps(body)) is not effort
    assert bool(turn.metadata) is not effort


@pytest.mark.parametrize(
    ("name", "scenario", "is_used"),
    [
        ("context_compaction", "incomplete", True),
        ("title_generation", "incomplete", False),
        # It is unknown how much is missing.
        ("context_compaction", "failed", False),
        ("context_compaction", "drop", False),
    ],
)
async def test_text_that_was_cut_is_used_and_a_cut_object_is_not(
    door: Door, name: str, scenario: str, is_used: bool
) -> None:
    """Open WebUI would replace a summary by the beginnings of all messages.

    A summary has no limit of Open WebUI's own.
    """
    question = replace(task(name, f"sim:{scenario}"), body={"max_tokens": 1000})
    opened = {"EXPERT_JSON": expert(caller_may_set="max_tokens")}
    [turn] = await door.talk(question, reader="page-whole", settings=opened)

    assert bool(turn.text) is is_used
    limit = None if name == "context_compaction" else 1000
    assert turn.sent.get("max_output_tokens") == limit


@pytest.mark.parametrize(
    ("body", "settings", "cause"),
    [
        ({}, {}, "HTTP 401"),
        ({}, {"API_KEY": ""}, "nothing was sent: This"),
        ({"messages": []}, {}, "nothing was sent: There is no"),
    ],
)
@pytest.mark.parametrize("reader", ["page", "page-whole"])
async def test_a_task_that_failed_is_empty(
    door: Door,
    body: Json,
    settings: Json,
    cause: str,
    reader: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The host would take the message for a title; the log says why (R25)."""
    caplog.set_level("INFO")
    question = replace(task("title_generation", "sim:chat,status=401"), body=body)
    [turn] = await door.talk(question, reader=reader, settings=settings)

    assert turn.text == ""
    if reader == "page-whole":
        assert turn.answers[0]["choices"]
        assert turn.error == ""
    assert cause in caplog.text


MERGE = "moa_response_generation"


async def test_merged_answers_grow_at_the_own_effort_of_the_model(door: Door) -> None:
    """The page reads `choices[0].delta.content` as it comes."""
    [turn] = await door.talk(
        task(MERGE, "sim:chat,delay=5"), parameters={"model": "gpt-5.2-high"}
    )

    assert turn.text.startswith("This is turn 1.")
    assert turn.sent["stream"] is True
    assert turn.sent["reasoning"]["effort"] == "high"


@pytest.mark.parametrize(
    ("scenario", "settings", "shown"),
    [
        ("failed", {}, "internal error"),
        ("chat", {"API_KEY": ""}, "has no API key yet."),
    ],
)
async def test_merge_that_fails_says_so_as_text(
    door: Door, scenario: str, settings: Json, shown: str
) -> None:
    """The page stops at an error without showing it."""
    [turn] = await door.talk(task(MERGE, f"sim:{scenario}"), settings=settings)

    assert turn.error == ""
    assert shown in turn.text
    assert "(Error id: " in turn.text


async def test_refused_parameter_is_remembered_for_all_users(
    door: Door, sim: Simulator
) -> None:
    """For all what the server named; with a chat's own tools for one of them."""
    sim.faults.append(refuse_parameter("reasoning.summary"))
    bare: Json = {"tools": []}
    questions = (by("u-1"), by("u-1"), by("u-2"), by("u-3", bare), by("u-4"))
    turns = await door.talk(*questions)

    assert [len(turn.requests) for turn in turns] == [2, 1, 2, 2, 1]


async def test_task_and_chat_learn_of_each_other(
    door: Door, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """The audit log has each request as it was sent."""
    sim.faults.append(refuse_parameter("stream"))
    merging = replace(by("u-1"), metadata={"user_id": "u-1", "task": MERGE}, task=MERGE)
    turns = await door.talk(
        *(merging, merging, by("u-1")),
        settings={"EXPERT_JSON": expert(audit_log=True)},
        parameters={"model": "gpt-5.2-high"},
    )

    assert [len(turn.requests) for turn in turns] == [2, 1, 1]
    lines = [json.loads(text) for text in caplog.messages if text.startswith("{")]
    assert [line["stream"] for line in lines if "stream" in line] == [
        True,
        False,
        False,
    ]


async def test_what_one_user_chose_is_refused_to_them_alone(
    door: Door, sim: Simulator
) -> None:
    sim.faults.append(refuse_parameter("reasoning.effort"))
    chosen = {"reasoning_effort": "high", "tools": []}
    opened = {"EXPERT_JSON": expert(caller_may_set="reasoning_effort")}
    questions = (by("u-1", chosen), by("u-1", chosen), by("u-2", chosen))
    turns = await door.talk(*questions, by("u-3", {"tools": []}), settings=opened)

    assert [len(turn.requests) for turn in turns] == [2, 1, 2, 1]


async def test_items_of_a_program_are_no_news_for_others(
    door: Door, sim: Simulator
) -> None:
    """No one else's calls are left out because of a call in somebody's chat."""
    function = {"name": "get_weather", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "18"},
        {"role": "user", "content": "And now?"},
    ]
    sim.faults.append(refuse_item("function_call", form="phrase"))
    questions = [by(user, {"messages": messages}) for user in ("u-1", "u-2")]
    turns = await door.talk(*questions, reader="plain")

    assert [len(turn.requests) for turn in turns] == [2, 2]
    assert not any(turn.error for turn in turns)


@pytest.mark.parametrize(
    ("scenario", "reader"), [("misaligned", "page"), ("misaligned-first", "plain")]
)
async def test_safety_stop_is_final_and_explained(
    door: Door, scenario: str, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One request, no tool, OpenAI's words as words; the log has the ids."""
    [turn] = await door.talk(
        f"sim:{scenario}", reader=reader, settings={"MAX_RETRIES": 2}
    )

    assert len(turn.requests) == 1
    assert "get_weather says" not in json.dumps(turn.answers)
    assert "safety monitoring stopped this answer" in turn.error
    assert "Start a new chat" in turn.error
    assert "“The model was about to read credentials" in turn.error
    assert "“Ask before you read **secrets**.”" in turn.error
    for drawn in ("](", "<script", "sk-canary", "\n"):
        assert drawn not in turn.error
    assert "tool_calls" not in json.dumps(turn.chunks[-1])
    for words in ("request id ", "review target review_simulator_1"):
        assert words in caplog.text
    assert ("response id resp_" in caplog.text) == (scenario == "misaligned")


@pytest.mark.parametrize(
    ("name", "scenario", "end"),
    [
        ("", "short", "success"),
        ("", "cut", "error"),
        ("title_generation", "quota", "error"),
    ],
)
async def test_audit_log_has_a_line_for_request_and_end(
    door: Door, name: str, scenario: str, end: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The same events and fields, without a word of the chat."""
    question = task(name, f"sim:{scenario} my diary")
    settings = {"EXPERT_JSON": expert(audit_log=True)}
    await door.talk(question, settings=settings)

    lines = [json.loads(text) for text in caplog.messages if text.startswith("{")]
    began, ended = [line for line in lines if "event" in line]
    assert began["event"] == "responses_api_request"
    assert ended["event"] == f"responses_api_{end}"
    assert began["run_id"] == ended["run_id"]
    assert began["request_id"] is None
    assert ended["request_id"].startswith("req_")
    assert "diary" not in json.dumps(lines)


@pytest.mark.parametrize("reader", ["page", "plain"])
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
async def test_a_forced_choice_holds_until_tools_ran(
    door: Door, choice: Any, reader: str
) -> None:
    """A model that is forced in every round would never answer; a program chooses anew."""
    question = Question("sim:tool", body={"tool_choice": choice})
    [turn] = await door.talk(question, reader=reader)

    first, second = [bool(body.get("tool_choice")) for body in turn.requests]
    assert first
    assert second is (reader == "plain")


@pytest.mark.parametrize(
    ("scenario", "text", "sentence"),
    [
        ("failed", "This is turn 1.", "127.0.0.1 reported an internal error."),
        ("late-reason", "This is turn 1.", "127.0.0.1's content filter stopped"),
        ("cut", "This is turn 1.", "The connection to the model broke"),
        ("drop", "This is turn 1.", "The connection to the model broke"),
        # There is nothing to continue.
        ("chat,cut=3", "", "The connection to the model broke"),
    ],
)
@pytest.mark.parametrize("reader", ["page", "plain"])
async def test_broken_answer_keeps_its_text(
    door: Door,
    scenario: str,
    text: str,
    sentence: str,
    reader: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One message, whose id is in the log; its tokens are billed all the same.

    An error would stay below an answer that is continued; a program gets one.
    """
    [turn] = await door.talk(f"sim:{scenario}", reader=reader)

    assert turn.text.startswith(text)
    assert bool(turn.text) is bool(text)
    is_line = scenario in ("cut", "drop") and reader == "page"
    assert bool(turn.error) is not is_line
    told = turn.lines[-1]["description"] if is_line else turn.error
    shown, error_id = split_id(told)
    assert shown.startswith(sentence)
    assert error_id in caplog.text
    is_cut = sentence.startswith("The connection")
    assert turn.metadata[-1]["ending"] == ("cut" if is_cut else "failed")
    assert ("Failed after" in str(turn.lines)) is (reader == "page")
    usages = [chunk["usage"] for chunk in turn.chunks if chunk.get("usage")]
    assert len(usages) == (scenario in ("failed", "late-reason"))
    assert all(usage["output_tokens"] > 0 for usage in usages)


async def test_schema_that_the_api_refuses_is_a_bad_request(door: Door) -> None:
    """The format is not left out of a second request."""
    schema = {"name": "n", "schema": {"type": "strng"}, "strict": True}
    form = {"response_format": {"type": "json_schema", "json_schema": schema}}
    [turn] = await door.talk(Question("Hi", body=form), reader="plain-whole")

    assert len(turn.requests) == 1
    assert turn.error
    assert turn.answers[0]["error"]["status"] == 400


@pytest.mark.parametrize(
    ("kind", "odd"),
    [
        ("function_call_output", [1]),
        ("mcp_approval_request", {"type": []}),
        ("mcp_approval_response", [1]),
    ],
)
async def test_ids_of_another_type_do_not_break_the_answer(
    door: Door, kind: str, odd: Any
) -> None:
    """A server may send anything; the answer is whole."""
    ids = dict.fromkeys(("id", "call_id", "approval_request_id"), odd)
    item = {"type": kind, "name": "look", "arguments": "{}", "server_label": "s", **ids}
    events = [wire.created(), wire.done(item), *wire.message("Fine.", at=1)]
    lines = [f"data: {json.dumps(event)}\n\n" for event in [*events, wire.completed()]]
    turn, _ = await told_by(door, streaming("".join(lines).encode()), "page")

    assert turn.error == ""
    assert turn.text.startswith("Fine.")


async def test_how_an_answer_ended_is_its_last_line(door: Door) -> None:
    """The page shows no other; an administrator has to read the notice, too."""
    question = Question("sim:incomplete", user={"role": "admin"})
    [turn] = await door.talk(question, settings={"TOOL_APPROVAL": "get_*:deny"})

    *others, last = [line["description"] for line in turn.lines]
    assert any("which is not a rule" in line for line in others)
    assert "reached its length limit" in last


TAGGED = {
    "COMPATIBILITY": "auto",
    "EXTRA_HEADERS": json.dumps({"X-Simulator-Profile": "strictest"}),
}


@pytest.mark.parametrize("reader", ["page", "page-whole"])
async def test_a_task_has_no_thought(door: Door, reader: str) -> None:
    """A title is the title alone."""
    question = task("title_generation", "sim:agent-tags")
    [turn] = await door.talk(question, reader=reader, settings=TAGGED)

    assert turn.text == "It is `408 m`."


async def test_a_call_that_comes_twice_is_made_once(door: Door) -> None:
    """By its last form; one without a name is dropped (R12)."""
    once = wire.function_call("get_weather", '{"city": "Bern"}', at=0)
    again = wire.function_call("get_weather", '{"city": "Basel"}', at=1)
    nameless = wire.function_call("", "{}", at=2)
    twice = json.loads(json.dumps(again).replace('"call_1"', '"call_0"'))
    first = wire.on_the_wire(*wire.whole_stream([*once, *twice, *nameless]))
    last = wire.on_the_wire(*wire.whole_stream(wire.message("It rains.")))
    answers = in_turn(streaming(first), streaming(last))
    turn, bodies = await told_by(door, answers, "page")

    assert turn.error == ""
    assert turn.text == "It rains."
    sent = bodies[-1]["input"]
    [output] = [i["output"] for i in sent if i["type"] == "function_call_output"]
    assert "Basel" in str(output)
    assert turn.metadata[-1]["tool_calls"] == 1


@pytest.mark.parametrize("reader", READERS)
async def test_a_model_that_does_not_exist_is_named(door: Door, reader: str) -> None:
    """By the one request that asked for it."""
    parameters = {"model": "gpt-9-nobody"}
    [turn] = await door.talk("Hi", reader=reader, parameters=parameters)

    assert len(turn.requests) == 1
    assert turn.error.startswith("The model gpt-9-nobody does not exist")


@pytest.mark.parametrize("form", [" Bearer {} ", "“{}”", '"{}"\n', "'bearer {}'"])
async def test_a_key_is_read_as_it_is_copied(
    door: Door, sim: Simulator, form: str
) -> None:
    """With the quotes of a page, or from the header of an example."""
    key = {"API_KEY": form.format(sim.api_key)}
    [turn] = await door.talk("sim:short", settings=key)

    assert turn.error == ""
    assert len(turn.requests) == 1


async def test_refusal_is_not_the_json_that_was_asked_for(door: Door) -> None:
    """A program would read it as such; OpenAI has a field for it."""
    form = {"response_format": {"type": "json_object"}}
    [turn] = await door.talk(
        Question("sim:refusal json", body=form), reader="plain-whole"
    )

    message = turn.answers[0]["choices"][0]["message"]
    assert (bool(message["refusal"]), bool(message["content"])) == (True, False)
