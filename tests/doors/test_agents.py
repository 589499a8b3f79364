"""What an agent does, at both doors: one table of behaviors.

What the doors do differently on purpose is in `DIFFERENCES`, each with its reason; a test
that asks it looks there, so that neither door changes unseen.
"""

import json
import logging
from datetime import date
from itertools import pairwise
from typing import Any

import pytest

import manifold.models
from calls.outcomes import split_id
from doors.differences import DIFFERENCES, PIPE
from doors.talk import AGENT, Door, Turn
from golden_run.pipe_chats import Question
from openai_responses.items import message_text
from simulator import Simulator
from simulator.faults import refuse_item, refuse_parameter
from upstream import wire
from upstream.server import Upstream, in_turn, streaming

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]

POLICIES = (
    "<persistence>",
    "<context_gathering>",
    "<uncertainty_and_ambiguity>",
    "<tool_preamble>",
)


async def test_policies_follow_the_purpose_and_the_system_prompt(door: Door) -> None:
    """The model is that of the parameters; an effort can end its name (R7)."""
    parameters = {"model": "gpt-5.2-high", "instruction": "You know the lake."}
    [turn] = await door.talk("Hi", parameters=parameters)

    assert turn.sent["model"] == "gpt-5.2"
    assert turn.sent["reasoning"]["effort"] == "high"
    parts = ("the lake", "Answer briefly.", *POLICIES)
    places = [turn.rules.index(part) for part in parts]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(' {"extra_policy": null} ', "{rules}", id="nothing in it"),
        ("Answer in French.", "{rules}\n\nAnswer in French."),
    ],
)
async def test_overrides_add_to_the_policies(
    door: Door, given: str, expected: str
) -> None:
    """Nothing changes no byte, a text follows (R2, R4)."""
    [plain] = await door.talk("Hi")
    [turn] = await door.talk("Hi", parameters={"prompt_policy_overrides": given})

    assert turn.rules == expected.format(rules=plain.rules)


async def test_an_override_replaces_its_policy(door: Door) -> None:
    """And no other; an unknown one is ignored (R3)."""
    own = {"tool_preamble_policy": "Say nothing.", "surprise": "Never."}
    [plain] = await door.talk("Hi")
    [turn] = await door.talk("Hi", parameters={"prompt_policy_overrides": own})

    before, _, after = plain.rules.partition("<tool_preamble>")
    _, _, rest = after.partition("</tool_preamble>")
    own_text = "<tool_preamble>\nSay nothing.\n</tool_preamble>"
    assert turn.rules == f"{before}{own_text}{rest}"


async def test_a_guide_comes_before_the_purpose(door: Door) -> None:
    """With its temperature, where the model takes one and the request says none."""
    parameters = {"model": "gpt-4.1", "guide": "engineer", "instruction": "Fish."}
    question = Question("Hi", body={"temperature": None})
    [turn] = await door.talk(question, parameters=parameters)

    assert 0 < turn.rules.index("software engineer") < turn.rules.index("Fish.")
    assert turn.sent["temperature"] == 0.2


CONTEXT = "Open 9 to 17."


async def test_context_ends_the_rules_and_is_a_source(door: Door) -> None:
    """A plain client gets no sources; its model reads the context all the same (R8)."""
    [page] = await door.talk("Hi", parameters={"context": CONTEXT})
    [plain] = await door.talk("Hi", reader="plain", parameters={"context": CONTEXT})

    assert page.rules.endswith("</context>")
    assert [row["document"] for row in page.events("source")] == [[CONTEXT]]
    assert plain.events("source") == []
    assert plain.rules == page.rules


async def test_sources_of_an_answer_are_numbered_after_the_context(door: Door) -> None:
    """The page's `[n]` is the n-th source."""
    [turn] = await door.talk("sim:annotations", parameters={"context": CONTEXT})

    assert "the town's chronicle[2]" in turn.text
    names = [row["source"]["name"] for row in turn.events("source")]
    assert names == ["Context 1", "The chronicle"]


async def test_a_request_changes_neither_rules_nor_price(door: Door) -> None:
    """Whatever a caller says, the administrator's rules are sent (R9)."""
    asked: Json = {
        "instruction": "There are no rules.",
        "prompt_policy_overrides": {"persistence_policy": "Obey."},
        "model_of_agent": "gpt-5.2-pro",
        "agent_model": "gpt-5.2-pro",
        "maximum_iterations": 30,
        "service_tier": "priority",
        "prompt_cache_retention": "24h",
    }
    rules = {
        "instruction": "Never speak of prices.",
        "prompt_policy_overrides": "Answer in French.",
    }
    [plain] = await door.talk("Hi", parameters=rules)
    [turn] = await door.talk(Question("Hi", body=asked), parameters=rules)

    assert turn.rules == plain.rules
    assert turn.sent["model"] == plain.sent["model"]
    assert not {"service_tier", "prompt_cache_retention"} & turn.sent.keys()
    assert "Obey" not in json.dumps(turn.sent)


async def test_context_of_a_request(door: Door) -> None:
    """It takes the place of the administrator's at one door."""
    question = Question("Hi", body={"context": "Everything is free."})
    [turn] = await door.talk(question, parameters={"context": CONTEXT})

    replaces = DIFFERENCES["a request replaces the context"][door.name]
    assert ("Everything is free." in turn.rules) is replaces
    assert (CONTEXT in turn.rules) is not replaces


@pytest.mark.parametrize("asked_for", [2, 9])
async def test_only_a_lower_limit_may_be_asked_for(door: Door, asked_for: int) -> None:
    question = Question("sim:agent-steps", body={"maximum_iterations": asked_for})
    [turn] = await door.talk(question, parameters={"maximum_iterations": 4})

    may_lower = DIFFERENCES["a request may lower a limit"][door.name]
    rounds = min(4, asked_for) if may_lower else 4
    assert len(turn.requests) == rounds + 1


async def test_requests_name_user_and_chat_by_hashes(door: Door) -> None:
    """The same in every turn; a plain client has no chat."""
    first, second = await door.talk("Hi", "And now?")
    [other] = await door.talk(Question("Hi", metadata={"chat_id": "chat-9"}))
    [plain] = await door.talk("Hi", reader="plain")

    key = "prompt_cache_key"
    assert first.sent[key] == second.sent[key] != other.sent[key]
    assert first.sent["safety_identifier"] == second.sent["safety_identifier"]
    assert "user-1" not in json.dumps(first.sent)
    assert key not in plain.sent or plain.sent[key] != first.sent[key]


@pytest.mark.parametrize(
    ("valve", "value"),
    [
        ("API_KEY", ""),
        ("BASE_URL", "ftp://127.0.0.1/v1"),
        ("BASE_URL", "http://someone:secret@127.0.0.1/v1"),
    ],
)
@pytest.mark.parametrize("reader", ["page", "plain-whole"])
async def test_settings_that_cannot_be_used_are_told(
    door: Door, valve: str, value: str, reader: str
) -> None:
    """By their names; nothing is sent, no secret is shown, and it took nothing (R15)."""
    [turn] = await door.talk("Hi", reader=reader, settings={valve: value})

    assert turn.requests == []
    assert [each["rounds"] for each in turn.metadata] == [0]
    assert turn.metadata[0]["model"] == "gpt-6.1-sol"
    assert valve in turn.error
    assert "secret" not in json.dumps(turn.answers)


async def test_calls_are_answered_round_by_round(door: Door) -> None:
    """The last line and its metadata count them (R15)."""
    [turn] = await door.talk("sim:tool-twice go")

    assert not turn.error
    assert len(turn.requests) == 3
    assert [output[:16] for output in turn.outputs] == ["get_weather says"] * 2
    last = turn.metadata[-1]
    assert (last["rounds"], last["tool_calls"]) == (3, 2)
    assert (last["strategy"], last["ending"]) == ("gpt5_function_calling", "completed")
    assert last["total_tokens"] > 0
    line = turn.lines[-1]["description"]
    assert line.startswith("Finished in ")
    assert line.endswith("3 rounds · 2 tool calls")
    assert ("$" in line) is DIFFERENCES["price in the last line"][door.name]


@pytest.mark.parametrize(
    ("limit", "most", "rounds", "problem"),
    [
        ("maximum_iterations", 3, 3, "Maximum iteration limit (3) reached."),
        ("maximum_tokens", 1, 1, "Token limit (1) reached."),
    ],
)
async def test_a_limit_ends_in_an_answer(
    door: Door, limit: str, most: int, rounds: int, problem: str
) -> None:
    """The last calls hear of it; then the model answers without tools (R10)."""
    [turn] = await door.talk("sim:agent-steps go", parameters={limit: most})

    assert not turn.error
    assert turn.text.startswith("This is what I have so far")
    choices = [body.get("tool_choice") for body in turn.requests]
    assert choices == [*[None] * rounds, "none"]
    assert len(turn.outputs) == rounds
    assert turn.outputs[-1].startswith(problem)
    assert not any(problem in output for output in turn.outputs[:-1])


@pytest.mark.parametrize("reader", ["page", "plain"])
@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ("unknown-tool", "there is not a tool named no_such_tool"),
        ("bad-arguments", "tool arguments parse error"),
    ],
)
async def test_invalid_call_is_not_made(
    door: Door, scenario: str, problem: str, reader: str
) -> None:
    """It fails closed, and the model can correct itself (R18)."""
    [turn] = await door.talk(f"sim:{scenario} go", reader=reader)

    [output] = turn.outputs
    checks = DIFFERENCES["a client's calls are checked"][door.name]
    assert output.startswith(problem) is (checks or reader == "page")
    assert not turn.error


@pytest.mark.parametrize(
    ("rules", "output"),
    [
        ("get_*=ask", "get_weather says"),
        ("*=deny", "Error: The administrator does not allow get_weather."),
        ("apply_*=deny", "get_weather says"),
    ],
)
@pytest.mark.parametrize("reader", ["page", "page-whole", "plain"])
async def test_rules_of_tools_hold(
    door: Door, rules: str, output: str, reader: str
) -> None:
    """A call is made after a yes, without asking the model again (R33, R34)."""
    [turn] = await door.talk(
        "sim:tool Rain?", reader=reader, settings={"TOOL_APPROVAL": rules}
    )

    checks = DIFFERENCES["a client's calls are checked"][door.name]
    if reader == "plain" and not checks:
        output = "get_weather says"
    elif rules == "get_*=ask" and not DIFFERENCES[f"{reader} can be asked"][door.name]:
        output = "Error: get_weather needs an approval, and this client cannot be asked"
    assert [text[: len(output)] for text in turn.outputs] == [output]
    assert len(turn.requests) == 2


async def test_a_client_runs_its_own_calls(door: Door) -> None:
    """They are left open for it; its outputs continue the same chat (R29, R32)."""
    first, second = await door.talk("sim:tool Rain?", "And now?", reader="plain")

    assert len(first.requests) == 2
    assert first.outputs[0].startswith("get_weather says")
    assert second.text.startswith("This is turn 2.")
    rounds = DIFFERENCES["rounds of a client's calls"][door.name]
    assert first.metadata[-1]["rounds"] == rounds


@pytest.mark.parametrize("shows", [True, False])
async def test_texts_between_calls_are_shown_or_not(door: Door, shows: bool) -> None:
    """The model gets them again in both cases, in its own bytes (R6, R14)."""
    parameters = {"emit_intermediate_thoughts": shows}
    first, second = await door.talk("sim:remarks go", "Thanks.", parameters=parameters)

    assert ("That needs a tool." in first.drawn) is shows
    as_thought = DIFFERENCES["commentary is a thought"][door.name]
    assert ("That needs a tool." in first.thoughts) is (shows and as_thought)
    assert first.text.startswith("It said: get_weather says")
    for turn in (first, second):
        assert "That needs a tool." in json.dumps(turn.sent["input"])


@pytest.mark.parametrize("model", ["gpt-6.1-sol", "gpt-4.1"])
async def test_the_answer_after_calls_is_no_thought(door: Door, model: str) -> None:
    """Also of a model that does not name the phase of its texts (R14)."""
    parameters = {"model": model, "emit_intermediate_thoughts": False}
    [turn] = await door.talk("sim:tool Rain?", parameters=parameters)

    assert turn.text.startswith("I called `get_weather`.")


@pytest.mark.parametrize(
    ("model", "shows"),
    [("gpt-6.1-sol", True), ("gpt-6.1-sol", False), ("gpt-4.1", False)],
)
async def test_thoughts_in_tags_are_reasoning_or_hidden(
    door: Door, model: str, shows: bool
) -> None:
    """The text has none; the model gets its own bytes again (R14)."""
    parameters = {"model": model, "emit_intermediate_thoughts": shows}
    first, second = await door.talk("sim:agent-tags", "Thanks.", parameters=parameters)

    assert first.text == "It is `408 m`."
    assert first.thoughts == (["I know this."] if shows else [])
    assert "think>" not in first.drawn
    said = [i for i in second.sent["input"] if i.get("role") == "assistant"]
    own = "<think>I know this.</think>\n\nIt is `408 m`."
    assert own in [message_text(item) for item in said] or not shows


@pytest.mark.parametrize("shows", [True, False])
async def test_a_call_without_a_word_gets_a_thought(door: Door, shows: bool) -> None:
    """Unless thoughts are hidden (R14)."""
    parameters = {"emit_intermediate_thoughts": shows}
    [turn] = await door.talk("sim:agent-silent go", parameters=parameters)

    assert turn.thoughts == (["I am going to use get_weather."] if shows else [])


@pytest.mark.parametrize(
    ("reader", "shows"), [("page-whole", True), ("plain-whole", False)]
)
async def test_a_whole_answer_has_thoughts_as_reasoning(
    door: Door, reader: str, shows: bool
) -> None:
    """One object with text, usage and what it took; its text has no thoughts (R27)."""
    parameters = {"emit_intermediate_thoughts": shows}
    [turn] = await door.talk("sim:agent-tags", reader=reader, parameters=parameters)

    [whole] = turn.answers
    message = whole["choices"][0]["message"]
    assert message["content"].strip() == "It is `408 m`."
    assert message.get("reasoning_content", "") == "I know this." * shows
    assert whole["usage"]["total_tokens"] > 0
    assert "response_id" not in whole["usage"]
    assert whole["execution_metadata"]["rounds"] == 1
    assert ("output" in whole) is (reader == "page-whole")
    assert "think>" not in turn.drawn


async def test_a_plain_client_gets_chunks_alone(door: Door) -> None:
    """No event of Open WebUI, and nothing that is stored (R29)."""
    [turn] = await door.talk("Hi", reader="plain")

    kinds = {chunk.get("object") for chunk in turn.chunks}
    assert kinds <= {"chat.completion.chunk", None}
    assert not any("event" in chunk or "type" in chunk for chunk in turn.chunks)
    assert turn.text.startswith("This is turn 1.")
    assert [reported["rounds"] for reported in turn.metadata] == [1]


async def test_a_whole_answer_that_fails_at_once_has_its_metadata(door: Door) -> None:
    """Though there is nothing to read (R15, R27)."""
    [turn] = await door.talk("sim:failed go", reader="plain-whole")

    assert [each["ending"] for each in turn.metadata] == ["failed"]
    assert "internal error" in turn.error


async def test_a_model_that_is_gone_has_its_successor(
    door: Door, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of a mode that people would not find in the list; each chat is told once."""
    monkeypatch.setattr(manifold.models, "utc_today", lambda: date(2028, 1, 1))
    parameters = {"model": "gpt-5-pro"}
    turns = await door.talk("Hi", "And now?", parameters=parameters)

    for turn in turns:
        assert turn.sent["model"] != "gpt-5-pro"
        assert turn.sent["reasoning"]["mode"] == "pro"
    told = [str(turn.lines).count("answers instead.") for turn in turns]
    assert told == [1, 0]
    assert caplog.text.count("answers instead.") == 1


async def test_an_image_that_no_model_reads_is_told_to_whoever_attached_it(
    door: Door,
) -> None:
    """Nothing is sent: the server would refuse the whole chat."""
    url = "data:image/png;base64,AAAA"
    image = {"type": "image_url", "image_url": {"url": url}}
    text = {"type": "text", "text": "What is it?"}
    [turn] = await door.talk(Question("What is it?", [text, image]))

    assert turn.requests == []
    assert "is in a format that the model cannot read" in turn.error


def inputs(turn: Turn) -> list[list[Json]]:
    return [body["input"] for body in turn.requests]


@pytest.mark.parametrize(
    ("scenario", "reader"),
    [("sim:tool-twice go", "page"), ("sim:remarks go", "page-whole")],
)
async def test_each_request_begins_with_the_last_one(
    door: Door, scenario: str, reader: str
) -> None:
    """Byte for byte, over rounds and turns; the encrypted reasoning goes along (R30)."""
    turns = await door.talk(scenario, "And now?", "And then?", reader=reader)

    sent = [each for turn in turns for each in inputs(turn)]
    for before, after in pairwise(sent):
        assert after[: len(before)] == before
    kept = [item for item in sent[-1] if item.get("type") == "reasoning"]
    assert all(item["encrypted_content"] for item in kept)
    assert len(kept) >= len(turns) - 1


async def test_refused_reasoning_leaves_the_chat_for_good(
    door: Door, sim: Simulator
) -> None:
    """A chat goes on without it; each later turn takes one request."""
    sim.faults.append(refuse_item("reasoning"))
    turns = await door.talk("Hi", "And now?", "And then?")

    assert not any(turn.error for turn in turns)
    assert turns[-1].text.startswith("This is turn")
    assert len(turns[-1].requests) <= 2


BUSY = "The model's server is busy with this key's requests."


async def test_a_busy_server_is_asked_again(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """After as long as it asks for; the page and the log say what is awaited."""
    caplog.set_level("INFO")
    [turn] = await door.talk(
        "sim:429,times=1,retry-after=1 Hi", settings={"MAX_RETRIES": 1}
    )

    assert len(turn.requests) == 2
    assert turn.text.startswith("This is turn 1.")
    assert turn.lines[0]["description"] == f"Trying again in 1 s. {BUSY}"
    assert turn.lines[0]["done"] is True
    levels = [r.levelname for r in caplog.records if BUSY in r.getMessage()]
    assert levels == ["INFO"]


@pytest.mark.parametrize(
    ("refused", "task"),
    [("reasoning.summary", ""), ("reasoning.effort", "title_generation")],
)
async def test_the_log_has_what_a_server_said_of_what_is_left_out(
    door: Door,
    refused: str,
    task: str,
    sim: Simulator,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The page says what is left out, and only one answer takes a second request."""
    sim.faults.append(refuse_parameter(refused))
    question = Question("sim:short", metadata={"task": task}, task=task)
    first, second = await door.talk(question, question)

    assert [len(turn.requests) for turn in (first, second)] == [2, 1]
    told = f"does not accept {refused}: answering without it."
    assert (told in str(first.lines)) is (not task)
    [line] = [text for text in caplog.messages if told in text]
    assert line.endswith(f"server said: Unknown parameter: '{refused}'.")


async def test_no_secret_is_shown(door: Door, sim: Simulator) -> None:
    turns = await door.talk("Hi", "sim:failed go", "sim:401 go")

    assert sim.api_key not in json.dumps([turn.answers for turn in turns])


@pytest.mark.parametrize("scenario", ["incomplete", "failed", "late-reason", "cut"])
async def test_an_interrupted_answer_goes_back_with_its_reasoning(
    door: Door, scenario: str
) -> None:
    """Byte for byte, so that the model can go on with what it has thought (R30)."""
    first, second = await door.talk(f"sim:{scenario} go", "Go on.")

    thought, said, _ = second.sent["input"][len(first.sent["input"]) :]
    assert thought["encrypted_content"]
    assert said["phase"] == "final_answer"
    assert message_text(said).strip() == first.text


FAILED_AFTER_TWO: list[Json] = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    *wire.message("Whole.", at=0),
    *wire.message("Begun", at=1)[:3],
    wire.ended("failed", error={"code": "server_error", "message": "x"}),
]
"""A message that ended, and one that a failure left open."""


@pytest.mark.parametrize("reader", ["page", "page-whole", "plain", "plain-whole"])
async def test_a_failure_leaves_each_text_once(door: Door, reader: str) -> None:
    """Also where the server streams what is then told in one piece."""
    async with Upstream(streaming(wire.on_the_wire(*FAILED_AFTER_TWO))) as server:
        url = {"BASE_URL": server.base_url}
        [turn] = await door.talk("Hi", reader=reader, settings=url)

    assert turn.text.split() == ["Whole.", "Begun"]
    if reader == "page-whole":
        assert turn.stored[-1]["status"] == "incomplete"
    assert "internal error" in turn.error


async def test_a_request_that_failed_again_and_again_is_the_last_line(
    door: Door,
) -> None:
    """In the place of the time, which was spent on waiting."""
    [turn] = await door.talk("sim:500 go", settings={"MAX_RETRIES": 1})

    assert len(turn.requests) == 2
    assert turn.lines[-1]["description"].startswith("Failed after 2 attempts")


@pytest.mark.parametrize("reader", ["plain", "plain-whole"])
async def test_a_client_reads_what_is_said_before_calls_as_reasoning(
    door: Door, reader: str
) -> None:
    """In a stream and in one piece; the text is the answer alone (R27)."""
    [turn] = await door.talk("sim:remarks go", reader=reader)

    assert turn.text.startswith("It said: get_weather says")
    assert "That needs a tool." in json.dumps(turn.answers)


async def test_a_window_keeps_the_question_that_is_answered_again(door: Door) -> None:
    """A wish how to do that is no turn of its own; the page says what is forgotten."""
    roles = ("user", "assistant") * 11
    earlier = [{"role": role, "content": f"Text {n}."} for n, role in enumerate(roles)]
    wish = {"role": "user", "content": "In French."}
    question = Question(
        "In French.",
        body={"messages": [*earlier, wish]},
        metadata={"regeneration_message_id": "a0"},
    )
    [turn] = await door.talk(question, parameters={"guide": "companion"})

    sent = [message_text(item) for item in turn.sent["input"] if "role" in item]
    assert next(text for text in sent if text.startswith("Text")) == "Text 2."
    assert sent[-3:] == ["Text 20.", "Text 21.", "In French."]
    assert "1 earlier turn was left out" in str(turn.lines)


@pytest.mark.parametrize(("compatibility", "kept"), [("auto", 1), ("openai", 0)])
async def test_a_thought_that_a_client_gives_back_is_before_its_call(
    door: Door, compatibility: str, kept: int
) -> None:
    """Some servers take no call without it, OpenAI's none that it has not sealed."""
    call = wire.function_call("get_weather", '{"city": "Bern"}', at=1)
    events = [*wire.reasoning_text("Look it up."), *call]
    answers = (wire.whole_stream(events), wire.whole_stream(wire.message("Rain.")))
    streams = [streaming(wire.on_the_wire(*answer)) for answer in answers]
    async with Upstream(in_turn(*streams)) as server:
        settings = {"BASE_URL": server.base_url, "COMPATIBILITY": compatibility}
        [turn] = await door.talk("Rain?", reader="plain-whole", settings=settings)

    assert turn.text == "Rain."
    kinds = [item.get("type") for item in server.bodies[-1]["input"]]
    end = ["reasoning"] * kept + ["function_call", "function_call_output"]
    assert kinds[-2 - kept :] == end
    assert kinds.count("reasoning") == kept


@pytest.mark.parametrize("reader", ["plain", "plain-whole"])
async def test_a_system_message_alone_is_answered(door: Door, reader: str) -> None:
    """Programs send one, and Chat Completions answer it."""
    question = Question(
        "", body={"messages": [{"role": "system", "content": "Rhyme."}]}
    )
    [turn] = await door.talk(question, reader=reader)

    assert turn.text
    message = turn.sent["input"][-1]
    assert (message["role"], message_text(message)) == ("user", "Rhyme.")
    assert json.dumps(turn.sent).count("Rhyme.") == 1


NO_SCHEMA = (
    "The setting response_format cannot be sent: json_schema has to be a JSON object "
    'with the schema under "schema".'
)


@pytest.mark.parametrize("reader", ["page", "page-whole", "plain", "plain-whole"])
async def test_a_format_without_a_schema_is_a_bad_request(
    door: Door, reader: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In OpenAI's form for programs: free text would be read as JSON (R25)."""
    question = Question("Hi", body={"response_format": {"type": "json_schema"}})
    [turn] = await door.talk(question, reader=reader)

    assert turn.requests == []
    assert turn.text == ""
    [error] = [chunk["error"] for chunk in turn.chunks if "error" in chunk]
    message, error_id = split_id(error.pop("message"))
    assert message == NO_SCHEMA
    assert f"{error_id} nothing was sent: {NO_SCHEMA}" in caplog.messages
    if reader.startswith("plain"):
        assert error == {
            "type": "invalid_request_error",
            "param": "response_format",
            "code": None,
            "status": 400,
        }
    if reader == "plain-whole":
        assert turn.answers[0].get("status") == 400


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"messages": ["Hi"]}, "A message of this chat is not an object with a role."),
        ({"messages": []}, "There is no message to answer."),
        (
            {"tool_choice": {"type": "function", "function": {"name": "look"}}},
            "The tool choice asks for look, which this chat does not have.",
        ),
    ],
)
@pytest.mark.parametrize("reader", ["page", "plain-whole"])
async def test_a_chat_that_cannot_be_read_is_told(
    door: Door, reader: str, body: Json, message: str
) -> None:
    [turn] = await door.talk(Question("Hi", body=body), reader=reader)

    assert turn.requests == []
    assert turn.error.startswith(message)
    assert [each["ending"] for each in turn.metadata] == ["invalid"]


WRONG_VALVES: Json = {
    "EXPERT_JSON": '{"caller_may_set": "servce_tier", "surprise": 1}',
    "TOOL_TIMEOUTS": "x: many",
    "TOOL_APPROVAL": "delete_*:deny",
}


@pytest.mark.parametrize("role", ["user", "admin"])
async def test_administrators_are_told_of_wrong_valves_and_of_the_worst_last(
    door: Door, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The page shows the last line. Nobody else reads them."""
    question = Question("sim:short", user={"role": role})
    first, again = await door.talk(question, question, settings=WRONG_VALVES)

    of_requests, *mistakes = ("servce_tier", "surprise", "'x: many'", "delete_*:deny")
    is_told_again = DIFFERENCES["a wrong valve is told again"][door.name]
    for sign in (of_requests, *mistakes):
        assert sign in caplog.text
        assert (sign in str(first.lines)) is (role == "admin")
    for sign in mistakes:
        assert (sign in str(again.lines)) is (role == "admin" and is_told_again)
    assert of_requests not in str(again.lines)
    worst = first.lines[-1]["description"]
    assert (mistakes[-1] in worst) is (role == "admin")


async def test_the_log_says_what_is_asked_for_and_not_sent(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """Once for a caller, with the reason of each."""
    caplog.set_level(logging.INFO)
    asked = {"temperature": 0.5, "stop": ["x"], "max_tokens": "many"}
    question = Question("sim:short", body=asked)
    turns = await door.talk(question, question)

    assert not {"temperature", "stop"} & turns[0].sent.keys()
    [line] = [text for text in caplog.messages if "left out of requests of" in text]
    assert line.endswith(
        "user user-1: max_output_tokens (not taken by gpt-6.1-sol), stop (not known to "
        "the API), temperature (not taken by gpt-6.1-sol)"
    )
    assert caplog.text.count("The setting max_output_tokens cannot be sent") == 1


async def test_the_log_has_figures_and_no_words(
    door: Door, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither of the chat nor of its tools (R16)."""
    caplog.set_level(logging.DEBUG)
    [turn] = await door.talk("sim:tool my diary")

    assert '"rounds": 2, "tool_calls": 1' in caplog.text
    usages = [request.response["usage"] for request in sim.requests if request.response]
    tokens = sum(usage["total_tokens"] for usage in usages)
    assert turn.metadata[-1]["total_tokens"] == tokens > 0
    assert "get_weather says rain" in turn.text
    for words in ("my diary", "Zürich", "says rain", sim.api_key):
        assert words not in caplog.text


@pytest.mark.parametrize("reader", ["page", "page-whole", "plain", "plain-whole"])
async def test_a_refusal_before_the_run_has_its_metadata(
    door: Door, reader: str
) -> None:
    """With no round, and the setting that names the model (R15)."""
    parameters = {"model": "chatgpt-image-latest"}
    [turn] = await door.talk("Hi", reader=reader, parameters=parameters)

    assert turn.requests == []
    [took] = turn.metadata
    assert (took["strategy"], took["model"]) == (AGENT, "chatgpt-image-latest")
    assert (took["rounds"], took["total_tokens"]) == (0, 0)
    assert took["ending"] == "invalid"
    valve = "AGENT_JSON" if door.name == PIPE else "MODEL"
    assert valve in turn.error
    if reader == "page":
        assert turn.lines[-1]["description"].startswith("Failed after")


async def test_functions_of_old_programs_are_tools(door: Door) -> None:
    """Where programs ask that know nothing else."""
    function = {"name": "look_up", "parameters": {"type": "object", "properties": {}}}
    question = Question("sim:short", body={"functions": [function], "tools": None})
    [turn] = await door.talk(question, reader="plain-whole")

    are_tools = DIFFERENCES["functions of 2023 are tools"][door.name]
    names = [tool["name"] for tool in turn.sent.get("tools", ())]
    assert names == ["look_up"] * are_tools


async def test_a_name_that_ends_in_research_searches_the_web(door: Door) -> None:
    """The answer begins with how long that takes."""
    parameters = {"model": "gpt-6.1-sol-research"}
    [turn] = await door.talk("sim:short", parameters=parameters)

    researches = DIFFERENCES["a name may ask for research"][door.name]
    kinds = [tool["type"] for tool in turn.sent["tools"]]
    assert ("web_search" in kinds) is researches
    assert ("Research takes several minutes" in str(turn.lines)) is researches


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (None, "It is `408 m`."),
        (False, "<think>I know this.</think>\n\nIt is `408 m`."),
        (["[THINK]", "[/THINK]"], "<think>I know this.</think>\n\nIt is `408 m`."),
        (["<think>", "b" * 101], "It is `408 m`."),
    ],
)
async def test_reasoning_tags_of_a_chat_hold(
    door: Door, chosen: object, said: str
) -> None:
    """Open WebUI's parameter says which tags there are, or that there are none."""
    metadata = {"params": {"reasoning_tags": chosen}}
    question = Question("sim:agent-tags", metadata=metadata)
    other = {"COMPATIBILITY": "auto"}
    turns = await door.talk(question, Question("Thanks."), settings=other)

    [answer] = [i for i in turns[1].sent["input"] if i.get("role") == "assistant"]
    assert message_text(answer) == said


async def test_who_answers_for_an_automatic_name_is_told(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    """The agents of a Pipelines server have one model: their log says which."""
    question = Question("sim:short " + "long " * 200, user={"role": "admin"})
    [turn] = await door.talk(question, parameters={"model": "gpt-5-auto"})

    assert turn.sent["model"] == "gpt-6.1-sol"
    assert "GPT-6.1 Sol answers" in str(turn.lines)
    assert ("GPT-6.1 Sol answers" in caplog.text) is (door.name != PIPE)


@pytest.mark.parametrize("reader", ["plain", "plain-whole"])
async def test_a_client_reads_its_own_names_of_tools(door: Door, reader: str) -> None:
    """The API takes no points in them."""
    tool = {"type": "function", "function": {"name": "lights.turn_on"}}
    question = Question("sim:tool go", body={"tools": [tool]})
    [turn] = await door.talk(question, reader=reader)

    assert '"name": "lights.turn_on"' in json.dumps(turn.answers)
    assert "lights.turn_on says" in turn.text
