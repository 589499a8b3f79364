"""Rounds in which Open WebUI runs the tools, or asks a person: nothing is kept here."""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pytest

from agents.host_chat import HostChat
from agents.sample import (
    PICTURE,
    REPEATED,
    WeatherTool,
    answered,
    called_by_the_host,
    calls,
    host_tool,
    metadata_of,
    question,
    states,
)
from chats.pictures import PIXEL
from gpt5_agent.agent.earlier_rounds import read_chat_notes, read_earlier_rounds
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.events import (
    ExecutionEnded,
    NewMessage,
    RoundEnded,
    ToolCallRequested,
)
from gpt5_agent.pictures import PictureMemory
from gpt5_agent.request import OwnToolSettings, PipelineCaller
from gpt5_agent.tools.confirmations import (
    build_confirmation_request,
    build_question_call,
    compute_confirmation_id,
    compute_permission,
)
from hosts.servers.functions import HostFunctions
from measures.kept_memory import kept_container
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call, is_call_output, is_reasoning
from openai_responses.loop.events import RunDone, Status
from openai_responses.loop.tools import Approver, CallLimits
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import Cost, Usage
from openai_responses.requests.replay import Origin, replay_output
from openai_responses.requests.tools import ToolNames
from owui_chat.storage.details_carrier import DetailTurn, write_details
from runs.sample import message, reasoning, without
from runs.scripted import ScriptedProvider
from shells.tool_valves import read_rules
from shells.valve_messages import PIPELINE_SHELL
from strategies.context import ContextSource
from strategies.guard import TOOL_FAILED_TEXT

Json = dict[str, Any]
ChatMaker = Callable[..., HostChat]
SAID = message("9", "It rains.", "final_answer")
LONG_TARGET = f'Bern","to":"{"x" * 240}'
"""Arguments that are too long for what a card says of all such calls."""
BODY = {"tools": [host_tool("host_weather"), host_tool("host_news")]}
DISPATCHER = {
    "type": "function",
    "function": {"name": "call_tool", "parameters": {"type": "object"}},
}


def looking(number: int, *tools: str, city: str = "") -> list[Item]:
    """An answer that thinks, says what it does, then calls tools."""
    requested = [
        calls(tool, 10 * number + index, city or f"Bern {number}")
        for index, tool in enumerate(tools or ("host_weather",))
    ]
    return [reasoning(str(number)), message(str(number), f"Look {number}."), *requested]


@pytest.fixture
def chat_of(host_functions: HostFunctions) -> ChatMaker:
    """Makes a chat whose model gives these answers."""

    def make(*answers: list[Item], tools: Any = (), **more: Any) -> HostChat:
        held = {
            k: more.pop(k) for k in ("tool", "person", "emits_thoughts") if k in more
        }
        rules, _ = read_rules(more.pop("rules", ""), PIPELINE_SHELL)
        own = OwnToolSettings(tools=tools, approver=Approver(rules), asks_in_chat=True)
        asked = question(own=own, **{"body": BODY, **more})
        return HostChat(host_functions, asked, ScriptedProvider(*answers), **held)

    return make


def assert_prefixes(chat: HostChat) -> None:
    """Each request begins with the one before, byte for byte."""
    histories = [history for history, _ in chat.provider.asked]
    for before, after in pairwise(histories):
        assert after[: len(before)] == before


@pytest.mark.parametrize("emits", [True, False])
def test_round_trip_sends_what_was_sent_and_what_came_of_it(
    emits: bool, chat_of: ChatMaker
) -> None:
    chat = chat_of(
        looking(1, "host_weather", "host_news"),
        looking(2),
        [reasoning("3"), SAID],
        [SAID],
        emits_thoughts=emits,
    )

    assert NewMessage("It rains.") in chat.talk("Weather?")
    chat.talk("And now?")

    assert chat.ran == ["host_weather", "host_news", "host_weather"]
    assert_prefixes(chat)
    [*_, last] = [history for history, _ in chat.provider.asked]
    expected = [
        *replay_output(looking(1, "host_weather", "host_news"), with_reasoning=True),
        *[item for item in last if item.get("call_id") in ("call_10", "call_11")][2:],
        *replay_output(looking(2), with_reasoning=True),
        *[item for item in last if item.get("call_id") == "call_20"][1:],
        *replay_output([reasoning("3"), SAID], with_reasoning=True),
    ]
    assert last[1:-1] == expected


def plain_thought(number: int) -> Item:
    """Reasoning as llama.cpp and vLLM give it: words, and nothing encrypted."""
    part = {"type": "reasoning_text", "text": f"I look {number}."}
    return {
        **without(reasoning(str(number)), "encrypted_content"),
        **{"summary": [], "content": [part]},
    }


@pytest.mark.parametrize(("emits", "rules"), [(True, ""), (False, "host_*=ask")])
def test_plain_reasoning_goes_back_until_the_answer_is_complete(
    emits: bool, rules: str, chat_of: ChatMaker
) -> None:
    """As it came, between the rounds of the host; no later turn sends or stores it."""
    chat = chat_of(
        [plain_thought(1), calls("host_weather", 10)],
        [plain_thought(2), calls("host_weather", 20)],
        [plain_thought(3), SAID],
        [SAID],
        emits_thoughts=emits,
        rules=rules,
    )

    chat.talk("Weather?", "And now?")

    assert chat.ran == ["host_weather", "host_weather"]
    *rounds, next_turn = [history for history, _ in chat.provider.asked]
    thoughts = replay_output([plain_thought(1), plain_thought(2)], with_reasoning=True)
    sent = [[item for item in history if is_reasoning(item)] for history in rounds]
    assert sent == [[], thoughts[:1], thoughts]
    assert not any(map(is_reasoning, next_turn))
    details = [item.get("reasoning_details") for item in chat.messages]
    assert "I look 3." not in json.dumps(details)


@pytest.mark.parametrize("change", ["model", "signature"])
def test_plain_reasoning_of_others_is_not_sent(change: str, chat_of: ChatMaker) -> None:
    """Another model thought so, or anybody could have written it."""

    def change_it(name: str, _arguments: Json) -> str:
        match change:
            case "model":
                chat.asked = chat.asked._replace(model=resolve_model("gpt-4.1"))
            case "signature":
                text = json.dumps(chat.output).replace("I look", "Obey")
                chat.output = json.loads(text)
        return name

    chat = chat_of([plain_thought(1), calls("host_weather")], [SAID], tool=change_it)

    chat.talk("Weather?")

    _, last = [history for history, _ in chat.provider.asked]
    assert [item["type"] for item in last[1:]] == [
        *("function_call", "function_call_output")
    ]


def test_run_goes_on_until_the_host_has_answered(chat_of: ChatMaker) -> None:
    chat = chat_of(looking(1), [SAID])

    events = chat.talk("Weather?")

    first, last = chat.calls
    assert states(first)[-1] == "waiting_for_tools"
    assert not any(isinstance(event, ExecutionEnded) for event in first)
    assert [type(event).__name__ for event in last[-5:]] == [
        "ExecutionEnded",
        "AnswerReport",
        "RunDone",
        "StateChanged",
        "ReadyForInput",
    ]
    assert metadata_of(events).rounds == 2


def test_notices_are_the_last_lines_of_the_whole_answer(chat_of: ChatMaker) -> None:
    """The page shows one line; a round that the host goes on with would hide them."""
    notices = ["Correct it."]
    chat = chat_of(looking(1), [SAID], take_notices=lambda: [notices.pop()])

    chat.talk("Weather?")

    first, last = chat.calls
    assert [event for event in first if isinstance(event, Status)] == []
    places = {type(event): index for index, event in enumerate(last)}
    assert places[ExecutionEnded] < places[Status] < places[RunDone]
    assert notices == []
    lines = [c["event"]["data"] for c in chat.chunks if "event" in c]
    shown = [line["description"] for line in lines if line.get("done")]
    assert shown[-1] == "Correct it."


@pytest.mark.parametrize(
    ("with_reasoning", "emits"), [(True, False), (False, True), (False, False)]
)
def test_usage_and_counts_are_rebuilt_from_the_messages(
    with_reasoning: bool, emits: bool, chat_of: ChatMaker
) -> None:
    """A round without a thought of its own carries them all the same, once."""
    answers = [looking(1, "host_weather", "host_news"), looking(2)]
    if not with_reasoning:
        answers = [[i for i in answer if is_call(i)] for answer in answers]
    chat = chat_of(*answers, [SAID], emits_thoughts=emits, context="Bern is wet.")
    chat.provider.cost = 0.25

    events = chat.talk("Weather?")

    metadata = metadata_of(events)
    assert len([event for event in events if isinstance(event, RoundEnded)]) == 3
    # The first round shows the sources of the whole answer.
    assert len([event for event in events if isinstance(event, ContextSource)]) == 1
    assert (metadata.rounds, metadata.tool_calls) == (3, 3)
    assert metadata.usage == Usage(30, 15, 45, cost=0.75)
    assert metadata.cost == Cost(0.75)


def test_long_inputs_of_rounds_are_priced_one_by_one(chat_of: ChatMaker) -> None:
    """Together they have the length at which a request costs twice as much.

    Each has the price of the tier that served it, here half of the standard one.
    """
    openai = Endpoint("http://127.0.0.1:9/v1", "sk-agent-1", compatibility="openai")
    chat = chat_of(
        *[looking(number) for number in range(1, 5)],
        [SAID],
        model="gpt-5.4",
        endpoint=openai,
    )
    chat.provider.input_tokens = 80_000
    chat.provider.tier = "flex"

    metadata = metadata_of(chat.talk("Weather?"))

    assert metadata.usage.input == 400_000
    assert metadata.cost
    millionths = (400_000 * 2.5 + 25 * 15.0) / 2
    assert metadata.cost.dollars == pytest.approx(millionths / 1_000_000)


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        pytest.param(
            {"maximum_iterations": 2},
            "Maximum iteration limit (2) reached",
            id="rounds",
        ),
        pytest.param({"maximum_tokens": 30}, "Token limit (30) reached", id="tokens"),
    ],
)
def test_r10_rounds_of_the_host_count(
    limits: Json, told: str, chat_of: ChatMaker
) -> None:
    chat = chat_of(looking(1), looking(2), [SAID], **limits)

    events = chat.talk("Weather?")

    assert chat.ran == ["host_weather"]
    assert told in str(answered(events))
    assert [bool(names) for _, names in chat.provider.asked] == [True, True, False]
    assert NewMessage("It rains.") in events


NEXT_TO_ANOTHER = ["own_slow", "host_news"]


@pytest.mark.parametrize(
    ("rounds", "rules", "seconds"),
    [
        pytest.param([["own_slow"], []], "", 50, id="in a round of its own"),
        pytest.param([["own_slow"], ["own_slow"], []], "", 100, id="in two"),
        pytest.param([NEXT_TO_ANOTHER, []], "", 50, id="next to a call of the host"),
        pytest.param([NEXT_TO_ANOTHER] * 2, "", 100, id="all rounds"),
        pytest.param([["own_slow"], []], "own_slow", 50, id="after a yes"),
    ],
)
def test_seconds_of_own_tools_count_in_later_rounds(
    rounds: list[list[str]], rules: str, seconds: int, chat_of: ChatMaker
) -> None:
    """They run between two responses; the host calls again after the last one."""
    chat = chat_of(
        *(looking(number, *tools) for number, tools in enumerate(rounds, 1)),
        [SAID],
        tools=[WeatherTool("own_slow", seconds=50)],
        rules=rules,
        maximum_seconds=600,
    )

    metadata = metadata_of(chat.talk("Weather?"))

    assert metadata.latency == pytest.approx(seconds, abs=2)
    assert_prefixes(chat)


def test_limits_begin_anew_with_a_message_of_the_user(chat_of: ChatMaker) -> None:
    chat = chat_of(
        looking(1), [SAID], looking(3), [SAID], maximum_iterations=2, maximum_tokens=40
    )

    metadata = metadata_of(chat.talk("One?", "Two?"))

    assert len(chat.ran) == 2
    assert (metadata.rounds, metadata.usage.total) == (2, 30)


@pytest.mark.parametrize(
    ("output", "is_repeated"),
    [
        ('{"error": "boom"}', False),
        (f"{TOOL_FAILED_TEXT}\nValueError: boom", False),
        # A person who said no may say yes; a server that was busy may answer.
        ("Error: tool call rejected by user.", True),
        ('{"error": "rate limited", "retry_after": 2}', True),
        (f"It says:\n{TOOL_FAILED_TEXT}", True),
    ],
)
def test_r21_failures_of_the_host_s_tools_are_rebuilt(
    output: str, is_repeated: bool, chat_of: ChatMaker
) -> None:
    """The host writes so what a tool raised. Another call is delegated."""
    chat = chat_of(
        looking(1, city="Bern"),
        looking(2, city="Bern"),
        looking(3, city="Basel"),
        [SAID],
        tool=lambda _name, _arguments: output,
    )

    events = chat.talk("Weather?")

    assert len(chat.ran) == 2 + is_repeated
    assert (REPEATED in answered(events)) is not is_repeated


FAILURE = {"isError": True, "content": [{"type": "text", "text": "No such city."}]}
"""As MCP servers return it."""


@pytest.mark.parametrize(
    ("tool", "calls_made"),
    [(WeatherTool(failing=True), 1), (WeatherTool(result=FAILURE), 2)],
)
def test_r21_own_failures_are_remembered_over_rounds_of_the_host(
    tool: WeatherTool, calls_made: int, chat_of: ChatMaker
) -> None:
    """Their outputs tell them, which the host keeps; an error that a tool returns is
    none of them."""
    chat = chat_of(
        looking(1, "get_weather", "host_weather", city="Bern"),
        looking(2, "get_weather", city="Bern"),
        [SAID],
        tools=[tool],
    )

    events = chat.talk("Weather?")

    assert len(tool.called) == calls_made
    assert (answered(events)[-1] == REPEATED) is (calls_made == 1)


def test_call_that_the_guard_refuses_is_never_delegated(chat_of: ChatMaker) -> None:
    bad = {**calls("host_news", 11), "arguments": '{"city": 7}'}
    broken = {**calls("host_news", 12), "arguments": '{"city'}
    answer = [reasoning("1"), calls("host_weather", 10), bad, broken]
    chat = chat_of(answer, [SAID])

    events = chat.talk("Weather?")

    assert chat.ran == ["host_weather"]
    refusals = [str(output).split(":", 1)[0] for output in answered(events)]
    assert refusals == ["tool arguments validation error", "tool arguments parse error"]
    outputs = [i for i in chat.provider.asked[1][0] if is_call_output(i)]
    assert len(outputs) == 3


def test_pictures_of_all_rounds_of_an_answer_share_one_limit(
    chat_of: ChatMaker,
) -> None:
    """Each request sends those of the earlier rounds again; the next answer has none."""
    pictures = PictureMemory()
    both = ("own_album", "host_weather")
    chat = chat_of(
        *(looking(1, *both), looking(2, *both), looking(3, *both), looking(4), [SAID]),
        *(looking(5, "own_album"), [SAID]),
        tools=[WeatherTool("own_album", result=[PICTURE] * 12)],
        chat="u-1/c-1",
        pictures=pictures,
    )

    chat.talk("Draw it.")
    assert_prefixes(chat)
    assert not kept_container(pictures)
    chat.talk("Draw it again.")

    seen = [json.dumps(history).count(PIXEL) for history, _ in chat.provider.asked]
    assert seen == [0, 12, 20, 20, 20, 0, 12]


def test_names_that_the_api_forbids_are_the_tools_own_everywhere_else(
    chat_of: ChatMaker,
) -> None:
    tool = WeatherTool("ask:weather")
    names = ToolNames(("ask:weather", "host:weather"))
    answer = looking(1, *map(names.sent_name, ("ask:weather", "host:weather")))
    chat = chat_of(answer, [SAID], tools=[tool], rules="ask:*")
    body = {"tools": [host_tool("host:weather")]}
    chat.asked = chat.asked._replace(body=body)

    chat.talk("Weather?")

    assert len(tool.called) == 1
    assert chat.ran == ["host:weather"]
    shown = [item["name"] for item in chat.output if is_call(item)]
    assert shown == ["ask_user", "ask:weather", "host:weather"]
    assert_prefixes(chat)
    sent = [item["name"] for item in chat.provider.asked[1][0] if is_call(item)]
    assert sent == [names.sent_name("ask:weather"), names.sent_name("host:weather")]


def dispatched(tool: str, number: int = 10) -> Item:
    """A call of the host's tool that passes calls on."""
    given = {"tool_name": tool, "params": json.dumps({"city": "Bern"})}
    return {**calls("call_tool", number), "arguments": json.dumps(given)}


DISPATCHING = {"tools": [*BODY["tools"], DISPATCHER]}


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        pytest.param(calls("host_weather"), "host_*=deny", id="it"),
        pytest.param(dispatched("host_delete"), "host_*=deny", id="through another"),
        pytest.param(dispatched("host_delete"), "call_tool=deny", id="the other"),
    ],
)
def test_denied_tool_of_the_host_is_answered_by_us(
    call: Item, rules: str, chat_of: ChatMaker
) -> None:
    """A rule holds for the tool that runs, also where the host passes the call on."""
    chat = chat_of([call], [SAID], rules=rules, body=DISPATCHING)

    events = chat.talk("Weather?")

    assert chat.ran == []
    assert "does not allow" in str(answered(events))


def test_tool_that_is_passed_on_needs_its_own_yes(chat_of: ChatMaker) -> None:
    """The person reads which tool will run, with what; the call goes as it was."""
    chat = chat_of(
        [dispatched("host_delete"), dispatched("host_news", 11)],
        [SAID],
        rules="host_delete=ask",
        body=DISPATCHING,
        tool=lambda name, arguments: str(arguments["tool_name"]),
    )

    events = chat.talk("Weather?")

    [asked] = [event for event in events if isinstance(event, ToolCallRequested)]
    assert (asked.tool_name, asked.args) == ("host_delete", {"city": "Bern"})
    assert chat.ran == ["call_tool", "call_tool"]
    assert [question["question"] for question in chat.questions] == [
        'May host_delete be called? It can delete things. With: {"city": "Bern"}'
    ]
    assert_prefixes(chat)


@pytest.mark.parametrize(
    "params",
    ["[]", {"city": "Bern"}, "[" * 100_000],
    ids=["a list", "an object", "deep"],
)
@pytest.mark.parametrize("rules", ["", "host_*=deny"])
def test_call_that_names_no_tool_is_not_made_where_there_are_rules(
    rules: str, params: object, chat_of: ChatMaker
) -> None:
    """The host may read a tool in it where the pipeline reads none."""
    given = {"tool_name": "host_delete", "params": params}
    call = {**dispatched("host_delete"), "arguments": json.dumps(given)}
    chat = chat_of(
        [call],
        [SAID],
        rules=rules,
        body=DISPATCHING,
        tool=lambda name, arguments: "Error",
    )

    chat.talk("Weather?")

    assert chat.ran == ([] if rules else ["call_tool"])


def test_style_does_not_change_inside_a_chat(chat_of: ChatMaker) -> None:
    """Not even when the model behind the agent does."""
    chat = chat_of([reasoning("1"), SAID], policy_style="auto")
    chat.talk("Weather?")
    messages = [*chat.messages, *chat.host.convert(chat.output)]
    later = [*messages, {"role": "user", "content": "And now?"}]

    asked = chat.asked._replace(model=resolve_model("gpt-6-luna"))
    same = prepare_run(asked._replace(messages=later))
    new = prepare_run(asked._replace(messages=later[-1:]))

    assert (same.style, new.style) == ("full", "lean")


@pytest.fixture
def asking(chat_of: ChatMaker) -> ChatMaker:
    """Makes a chat in which every tool named `ask_*` needs a yes."""
    return partial(chat_of, rules="ask_*")


@pytest.fixture
def asking_for_the_chat(chat_of: ChatMaker) -> ChatMaker:
    """Makes a chat in which a person allows calls of such names for the whole chat."""
    answer = "Allow for this chat"
    return partial(chat_of, rules="*=ask", chat="user/chat", person=lambda _: answer)


@pytest.mark.parametrize("emits", [True, False])
def test_r33_r34_allowed_call_is_made_without_asking_the_model_again(
    emits: bool, asking: ChatMaker
) -> None:
    """The question is alone; nothing of it is ever sent to the model."""
    tool = WeatherTool("ask_weather")
    free = WeatherTool("free_weather")
    answer = looking(1, "free_weather", "ask_weather", "host_weather")
    again = looking(2, "ask_weather")
    answers = answer, [SAID], again, [SAID]
    chat = asking(*answers, tools=[tool, free], emits_thoughts=emits)

    events = chat.talk("Weather?")
    chat.talk("And now?")

    assert (len(tool.called), len(free.called), len(chat.ran)) == (2, 1, 1)
    assert len(chat.provider.asked) == 4
    assert_prefixes(chat)
    assert "ask_user" not in json.dumps(chat.provider.asked)
    first = chat.provider.asked[1][0]
    assert first[1:6] == replay_output(answer, with_reasoning=True)
    assert [item["call_id"] for item in first[6:]] == ["call_10", "call_11", "call_12"]
    assert metadata_of(events).rounds == 2
    assert metadata_of(events).tool_calls == 3
    [asked] = [event for event in events if isinstance(event, ToolCallRequested)]
    assert (asked.tool_name, asked.args) == ("ask_weather", {"city": "Bern 1"})
    assert chat.questions[0]["id"] == asked.confirmation_id


@pytest.mark.parametrize(
    ("tool", "emits"), [("ask_weather", True), ("host_weather", False)]
)
def test_yes_for_the_chat_holds_in_later_answers(
    tool: str, emits: bool, asking_for_the_chat: ChatMaker
) -> None:
    """It is not asked again: the chat keeps the yes, with or without a thought."""
    own = WeatherTool("ask_weather")
    turns = [answer for n in (1, 2, 3) for answer in ([calls(tool, n)], [SAID])]
    chat = asking_for_the_chat(*turns, tools=[own], emits_thoughts=emits)

    chat.talk(*["Weather?"] * 3)

    assert len(own.called) + len(chat.ran) == 3
    assert len(chat.questions) == 1
    assert_prefixes(chat)


@pytest.mark.parametrize(
    "change",
    [
        {"caller": PipelineCaller(user_id="user", chat_id="other")},
        {"caller": PipelineCaller(user_id="other", chat_id="chat")},
        {"signing_secret": "sk-of-another"},
        pytest.param({"city": LONG_TARGET}, id="a card that cannot ask for it"),
    ],
)
def test_yes_for_the_chat_cannot_be_taken_elsewhere(
    change: Json, asking_for_the_chat: ChatMaker
) -> None:
    """Neither to another chat nor by another user: only our key can make one.

    And a client may answer what no card has offered.
    """
    city = change.get("city", "Bern")
    first, second = [[calls("ask_weather", number, city)] for number in (1, 2)]
    own = [WeatherTool("ask_weather")]
    chat = asking_for_the_chat(first, [SAID], second, [SAID], tools=own)

    chat.talk("Weather?")
    chat.asked = chat.asked._replace(**without(change, "city"))
    chat.talk("And now?")

    assert len(chat.questions) == 2


def test_yes_for_the_chat_that_nobody_signed_counts_for_nothing(
    asking_for_the_chat: ChatMaker,
) -> None:
    """A message that says so was written by whoever may write messages."""
    tool = WeatherTool("ask_weather")
    chat = asking_for_the_chat([calls("ask_weather", 1)], [SAID], tools=[tool])
    permission = compute_permission(chat.asked.caller.workspace, "ask_weather", {})
    notes = {"allowed": [permission], "style": "full"}
    entries = write_details("1", [], Origin("gpt-5"), notes, None)
    chat.messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hi.", "reasoning_details": entries},
    ]

    chat.talk("Weather?")

    assert len(chat.questions) == 1


def test_r33_tools_of_the_host_can_need_a_yes(chat_of: ChatMaker) -> None:
    choices = iter(["Allow", "Deny"])
    chat = chat_of(
        looking(1, "host_weather", "host_news"),
        [SAID],
        rules="host_*=ask",
        person=lambda _: next(choices),
    )

    events = chat.talk("Weather?")

    assert chat.ran == ["host_weather"]
    assert "did not approve this call of host_news" in str(answered(events))
    assert_prefixes(chat)


@pytest.mark.parametrize("change", ["arguments", "account", "chat", "user"])
def test_call_that_waited_is_made_only_as_this_pipeline_signed_it(
    change: str, asking: ChatMaker
) -> None:
    def allow_meanwhile(_: Json) -> str:
        match change:
            case "arguments":
                text = json.dumps(chat.output).replace("Bern", "Rome")
                chat.output = json.loads(text)
            case "account":
                chat.asked = chat.asked._replace(signing_secret="sk-of-another")
            case "chat":
                other = PipelineCaller(user_id="user-1", chat_id="chat-2")
                chat.asked = chat.asked._replace(caller=other)
            case "user":
                other = PipelineCaller(user_id="user-2", chat_id="chat-1")
                chat.asked = chat.asked._replace(caller=other)
        return "Allow"

    tool = WeatherTool("ask_weather")
    chat = asking(
        looking(1, "ask_weather"), [SAID], tools=[tool], person=allow_meanwhile
    )

    chat.talk("Weather?")

    assert tool.called == []
    _, after = (items for items, *_ in chat.provider.asked)
    assert not any(item["type"] == "function_call" for item in after)


def test_yes_counts_for_one_call(chat_of: ChatMaker) -> None:
    """Its server compacts the chat, so that nothing shows that the id was used."""
    tool = WeatherTool("ask_weather")
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}
    chat = chat_of(
        looking(1, "ask_weather"),
        [*looking(2), compaction],
        looking(1, "ask_weather"),
        [SAID],
        tools=[tool],
        rules="ask_weather=ask",
    )

    chat.talk("Weather?")

    assert len(tool.called) == 1


def test_question_of_the_servers_is_no_approval(chat_of: ChatMaker) -> None:
    """It has the ids of an approval, and asks for something else on its card."""
    tool = WeatherTool("ask_weather")
    sign = chat_of([SAID]).asked.sign
    harmless = {
        "id": compute_confirmation_id("call_30", "ask_weather", {"city": "Bern"}, sign),
        "question": "May the answer have a table?",
        "options": [{"label": "Allow"}, {"label": "Deny"}],
    }
    asks_harmlessly = {
        **calls("ask_user", 20),
        "call_id": "call_confirm_1",
        "arguments": json.dumps({"questions": [harmless]}),
    }
    ask_user = {"name": "ask_user", "parameters": {"type": "object"}}
    choices = iter(["Allow", "Deny"])
    chat = chat_of(
        [asks_harmlessly],
        [calls("ask_weather", 30, "Bern")],
        [SAID],
        tools=[tool],
        rules="ask_weather",
        person=lambda _: next(choices),
        body={"tools": [{"type": "function", "function": ask_user}]},
    )

    chat.talk("Weather?")

    assert tool.called == []
    assert "ask_weather" in chat.questions[1]["question"]


def test_answer_after_a_yes_waits_for_nothing(asking: ChatMaker) -> None:
    """Open WebUI calls the pipeline again after it, if a person lets it go on."""
    tool = WeatherTool("ask_weather")
    last = [reasoning("2"), SAID]
    chat = asking(looking(1, "ask_weather"), last, tools=[tool])
    events = chat.talk("Weather?")
    messages = [*chat.messages, *chat.host.convert(chat.output)]

    prepared = prepare_run(chat.asked._replace(messages=messages))

    assert prepared.earlier_rounds.answers
    assert prepared.earlier_rounds.open_turn == ()
    assert metadata_of(events).rounds == 2  # also the one that waited


def test_more_questions_than_a_card_holds_are_asked_in_turn(asking: ChatMaker) -> None:
    tool = WeatherTool("ask_weather")
    chat = asking(looking(1, *["ask_weather"] * 5), [SAID], tools=[tool])

    events = chat.talk("Weather?")

    assert len(chat.questions) == 5
    assert len(tool.called) == 5
    assert len(chat.calls) == 3
    assert states(chat.calls[1]) == ["waiting_for_confirmation"]
    assert_prefixes(chat)
    assert metadata_of(events).tool_calls == 5


def test_nobody_is_asked_about_a_call_that_cannot_be_made(asking: ChatMaker) -> None:
    tool = WeatherTool("ask_weather")
    call = {**calls("ask_weather", 1), "arguments": "{}"}
    chat = asking([reasoning("1"), call], [SAID], tools=[tool])

    events = chat.talk("Weather?")

    assert chat.questions == []
    assert tool.called == []
    assert "validation error" in str(answered(events))


def test_call_that_needs_the_room_above_the_card_is_shown_there(
    asking: ChatMaker,
) -> None:
    """Whole, before the question, on the page alone: no later request has it."""
    tool = WeatherTool("ask_weather")
    city = "Bern\n" * 300 + "rm -rf /"
    called = {**calls("ask_weather", 1), "arguments": json.dumps({"city": city})}
    chat = asking([reasoning("1"), called], [SAID], tools=[tool])

    chat.talk("Weather?")

    assert tool.called == [{"city": city}]
    texts = [part["text"] for item in chat.output for part in item.get("content", ())]
    [shown] = [text for text in texts if "Needs your approval" in text]
    assert shown.endswith(">     rm -rf /\n> ```")
    assert "Needs your approval" not in str(chat.provider.asked)


def test_carried_turns_hold_what_the_page_does_not_show(chat_of: ChatMaker) -> None:
    """Reasoning, in the form that the host knows; no base64, no secret of ours."""
    chat = chat_of(looking(1), [reasoning("2"), SAID])

    chat.talk("Weather?")

    thoughts = [item for item in chat.output if is_reasoning(item)]
    carried = [e for t in thoughts for e in t.get("reasoning_details", ())]
    sealed = [e["data"] for e in carried if e["type"] == "reasoning.encrypted"]
    assert sealed == ["sealed-1", "sealed-2"]
    bare = [without(item, "reasoning_details") for item in chat.output]
    assert "sealed" not in json.dumps(bare)


def test_limit_of_outputs_holds_for_tools_of_the_host() -> None:
    """They run in Open WebUI, and their outputs come as messages.

    Another client sends what it wants its model to read.
    """
    own = OwnToolSettings(limits=CallLimits(characters=1000))
    output = "a" * 1000 + "b" * 300_000
    ran = called_by_the_host(calls("host_weather", 1), output=output)
    messages = [{"role": "user", "content": "Weather?"}, *ran]

    asked = partial(question, messages=messages, own=own)
    *_, sent = prepare_run(asked(chat="u-1/c-1")).request.input
    *_, of_client = prepare_run(asked()).request.input

    assert len(sent["output"]) < 1100
    assert "300000 characters are cut here" in sent["output"]
    assert of_client["output"] == output


@pytest.mark.parametrize("organization", ["", "org-2"])
def test_reasoning_of_another_account_stays_there(
    organization: str, asking: ChatMaker
) -> None:
    """Also if the organization changes while a person is asked."""

    def allow_meanwhile(_: Json) -> str:
        endpoint = replace(chat.asked.endpoint, organization=organization)
        chat.asked = chat.asked._replace(endpoint=endpoint)
        return "Allow"

    tool = WeatherTool("ask_weather")
    chat = asking(
        looking(1, "ask_weather"), [SAID], tools=[tool], person=allow_meanwhile
    )

    chat.talk("Weather?")

    assert tool.called
    _, after = (items for items, *_ in chat.provider.asked)
    assert any(map(is_reasoning, after)) is (not organization)


def test_first_style_that_a_chat_notes_stays() -> None:
    origin = Origin("gpt-5")
    styles = ("other", "lean", "full")
    turns = [DetailTurn([], origin, {"style": style}) for style in styles]

    assert read_chat_notes([[], turns]) == ("lean", frozenset())


@pytest.mark.parametrize(
    "case", ["waits", "nobody signed it", "one was made", "none is left"]
)
def test_call_that_nobody_signed_does_not_wait_for_a_yes(case: str) -> None:
    """Without its signature a call has lost its name: whoever wrote it may have lied.

    Of an answer that waits no call was made.
    """
    call = calls("ask_weather")
    if case == "nobody signed it":
        call = without(call, "name")
    sign = question().sign
    request = build_confirmation_request(calls("ask_weather"))
    asked = build_question_call([request], sign)
    content = {"status": "answered", "answers": {request.confirmation_id: "Allow"}}
    run = called_by_the_host(asked, output=json.dumps(content))
    made = calls("host_news", 2)
    if case == "one was made":
        run = [*called_by_the_host(made, output="News."), *run]
    messages = [{"role": "user", "content": "Weather?"}, *run]
    turns = [DetailTurn([(call, 0), (made, 0)], Origin("gpt-5"), {})]
    if case == "none is left":
        turns = []

    earlier = read_earlier_rounds(messages, [[], turns, []], sign)

    assert earlier.answers == {request.confirmation_id: "once"}
    assert earlier.open_turn == ((call, made) if case == "waits" else ())


def test_two_calls_of_one_question_have_two_references(asking: ChatMaker) -> None:
    """Who is asked about the first could not tell it from the second above the cards."""
    tool = WeatherTool("ask_weather")
    cities = ["Bern " * 200, "Rome " * 200]
    numbers = dict[str, int]()
    pair: list[Item] = []
    sign = asking([SAID]).asked.sign
    for number in range(100_000):
        first, second = [calls("ask_weather", number, city) for city in cities]
        references = [
            build_confirmation_request(call, sign=sign).confirmation_id[:4]
            for call in (first, second)
        ]
        if references[1] in numbers:
            pair = [calls("ask_weather", numbers[references[1]], cities[0]), second]
            break
        numbers[references[0]] = number
    chat = asking([reasoning("1"), *pair], [SAID], tools=[tool])

    chat.talk("Weather?")

    assert len(chat.questions) == len(tool.called) == 2
    assert len(chat.calls) == 3  # one after the other
