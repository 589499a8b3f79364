"""Which calls the host asks about itself, and which are asked about here."""

import json
from typing import Any

import pytest

from calls.sample import call_of, host_context
from manifold.preparation import offer_tools
from openai_responses.items import Item
from openai_responses.loop.tools import Toolset
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.host.open_webui import resolve_dispatched
from owui_manifold.prepare.request import call_toolset
from runs.tools import CITY, calling
from stand_in.host import StandInHost

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("newest")]

Json = dict[str, Any]
ASKS = "ask"
QUESTIONS: Json = {"type": "object", "properties": {"questions": {"type": "array"}}}
HOST_TOOLS: Json = {
    "get_weather": {"spec": {"parameters": CITY}},
    "users.list": {"spec": {"parameters": CITY}},
    "note": {"spec": {"parameters": {"type": "object", "properties": {}}}},
    "pay": {"spec": {"parameters": {"type": "object", "properties": {"amount": {}}}}},
    "ask_user": {"spec": {"parameters": QUESTIONS}, "type": "builtin"},
    "call_tool": {
        "spec": {"parameters": {"type": "object", "properties": {}}},
        "tool_id": "builtin:call_tool",
        "type": "builtin",
    },
}
SPEC = {"type": "function", "name": "get_weather", "parameters": CITY}
QUESTION = calling("ask_user", 9, json.dumps({"questions": ["Which?"]}))
MODEL = "my_pipe.gpt-5.6-sol"
STORED = Caller(MODEL, "user-1", "chat-1", "m-1", streams=True)


def toolset(
    mode: str, rules: str = "", caller: Caller = STORED, **more: Any
) -> Toolset:
    """What runs the calls of a chat in a mode of approvals."""
    metadata = {"params": {"tool_approval_mode": mode}, **more}
    call = call_of(
        {},
        Valves(API_KEY="sk-1", TOOL_APPROVAL=rules),
        caller,
        host=host_context(HOST_TOOLS, metadata=metadata),
    )
    return call_toolset(call, offer_tools(None, [], [SPEC]))


async def left(toolset: Toolset, *calls: Item) -> list[str]:
    """The ids of the calls that the host asks about."""
    assert toolset.judge
    judgment = await toolset.judge.judge(calls)
    assert [verdict.call for verdict in judgment.verdicts] == [*calls]
    assert all(verdict.refusal is None for verdict in judgment.verdicts)
    return [verdict.call["call_id"] for verdict in judgment.verdicts if verdict.is_left]


@pytest.fixture
def newest(host: StandInHost) -> StandInHost:
    host.ask_at_cards()
    return host


async def test_all_calls_of_a_chat_that_asks_are_the_hosts() -> None:
    """It asks about each of them at its card."""
    calls = [calling("get_weather", n) for n in range(3)]

    assert await left(toolset(ASKS), *calls) == ["call_0", "call_1", "call_2"]
    assert await left(toolset("full"), *calls) == []


async def test_call_of_a_custom_tool_is_asked_about_here() -> None:
    """The host makes calls of functions alone, whatever else a server writes."""
    call = calling("note", 1, '{"input": "x"}')
    custom = {**call, "type": "custom_tool_call", "input": "x"}

    assert await left(toolset(ASKS), custom) == []
    assert await left(toolset(ASKS), call) == ["call_1"]


@pytest.mark.parametrize(
    ("rules", "is_left"),
    [
        ("", True),
        ("other=ask", True),
        ("get_weather=auto", False),
        ("get_weather=deny", False),
        ("get_*=ask", False),  # the user could switch the host's question off
        ("get_weather:ask", False),  # an entry that is no rule asks about all
    ],
)
async def test_rules_of_the_administrator_are_kept_here(
    rules: str, is_left: bool
) -> None:
    found = await left(toolset(ASKS, rules), calling("get_weather", 1))
    assert found == ["call_1"] * is_left


@pytest.mark.parametrize(
    "caller",
    [
        Caller(MODEL, "user-1", "temporary:1", "m-1", streams=True),
        Caller(MODEL, "user-1", "channel:1", "m-1", streams=True),
        Caller(MODEL, "user-1", "chat-1", "m-1", streams=False),
        Caller(MODEL, "user-1", "", "", streams=True),
    ],
    ids=["temporary", "channel", "no stream", "plain"],
)
async def test_host_asks_where_it_stores_and_reads_the_answer(caller: Caller) -> None:
    """Elsewhere it would not call the pipe again."""
    assert toolset(ASKS, caller=caller).judge is None


@pytest.mark.parametrize("facts", [{"automation_id": "a-1"}, {"internal": True}])
async def test_nobody_answers_in_chats_that_nobody_looks_at(facts: Json) -> None:
    """Who started an automation or a sub-agent would take its waiting for its end."""
    assert toolset("full", **facts).judge is None
    assert toolset("full", automation_id=None, internal=False).judge is not None


@pytest.mark.parametrize(
    ("facts", "is_asked"),
    [
        ({"model": {"id": MODEL}}, True),
        ({"model": {"id": "preset", "info": {"base_model_id": MODEL}}}, True),
        ({"model": {"id": "arena"}, "selected_model_id": MODEL}, True),
        ({"model": {"id": "another_pipe"}}, False),
        ({"model": {"id": "preset", "info": {"base_model_id": "other"}}}, False),
    ],
)
async def test_host_reads_the_calls_of_the_chats_own_model(
    facts: Json, is_asked: bool
) -> None:
    """Another function that asks reads the text, and makes no call."""
    assert (toolset(ASKS, **facts).judge is not None) is is_asked


async def test_older_host_asks_about_nothing(host: StandInHost) -> None:
    """It has such cards, but loses what the approved calls returned."""
    host.provide("utils.tool_approval")

    assert toolset(ASKS).judge is None


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_weather", '{"city": "Ber'),
        ("get_weather", '{"city": 7}'),
        ("unheard_of", '{"city": "Bern"}'),
        # The host would look for these very names.
        ("functions.get_weather", '{"city": "Bern"}'),
        ("users_list", '{"city": "Bern"}'),
        # It would call the tool with null, which is left out here.
        ("get_weather", '{"city": "Bern", "days": null}'),
        # Its card shows another text than the one that is sent.
        ("get_weather", '{"city": "Bern\\u202e"}'),
        ("get_weather", '{"city": "Bern", "\\u200b": 1}'),
        ("get_weather", '{"city": "Bern \\udb40\\udc41"}'),
        # Its own `call_tool` takes no other fields.
        ("call_tool", '{"tool_name": "get_weather", "params": "{}", "x": 1}'),
        ("call_tool", '{"tool_name": "unheard_of", "params": "{}"}'),
    ],
)
async def test_host_is_left_only_the_call_that_was_checked(
    name: str, arguments: str
) -> None:
    """The others are answered with an error, or asked about here."""
    assert await left(toolset(ASKS), calling(name, 1, arguments)) == []


async def test_call_that_the_host_answers_with_an_error_is_no_call() -> None:
    """It leaves the name of the tool that passes calls on, which it has."""
    made = [
        resolve_dispatched("call_tool", json.dumps(given), HOST_TOOLS)
        for given in ({"tool_name": "note", "params": "{}"}, {"tool_name": "note"})
    ]

    assert made == [("note", "{}"), None]


@pytest.mark.parametrize("arguments", ['{"city": "Zürich\\n\\t🚀"}', '{"city":"a"}'])
async def test_ordinary_arguments_are_shown_as_they_are(arguments: str) -> None:
    """Whatever the white space between them."""
    found = await left(toolset(ASKS), calling("get_weather", 1, arguments))
    assert found == ["call_1"]


async def test_call_passed_on_is_asked_about_by_what_it_runs() -> None:
    """The host puts that call in its place."""
    inner = {"tool_name": "get_weather", "params": '{"city": "Bern"}'}
    call = calling("call_tool", 1, json.dumps(inner))

    assert await left(toolset(ASKS), call) == ["call_1"]
    assert await left(toolset(ASKS, "get_weather=ask"), call) == []
    assert await left(toolset(ASKS, "call_tool=ask"), call) == []


@pytest.mark.parametrize("mode", ["full", ASKS])
async def test_question_to_the_user_is_the_hosts(mode: str) -> None:
    """It stores that, too, and the answer has no time limit."""
    assert await left(toolset(mode), QUESTION) == ["call_9"]
    assert await left(toolset(mode, "ask_user=deny"), QUESTION) == []
    assert await left(toolset(mode, "ask_user=ask"), QUESTION) == []
    assert await left(toolset(mode), {**QUESTION, "arguments": "{}"}) == []
    # Nor what another tool is given that looks like one.
    alike = {**QUESTION, "name": "note"}
    assert await left(toolset(mode, "note=auto"), alike) == []


async def test_host_puts_one_question_and_nothing_beside_it() -> None:
    """It would answer the others with an error. What runs here is no matter to it."""
    weather = calling("get_weather", 1)
    second = {**QUESTION, "call_id": "call_8"}

    assert await left(toolset("full"), weather, QUESTION) == ["call_9"]
    assert await left(toolset(ASKS), weather, QUESTION) == ["call_1"]
    assert await left(toolset(ASKS), QUESTION, second) == []


@pytest.mark.parametrize(
    ("shown", "changed"),
    [
        # The page reads ...992, and the call is made with ...993.
        (f'{{"amount": {2**53 - 1}}}', f'{{"amount": {2**53 + 1}}}'),
        # JSON can write an endless number; a page shows `null`.
        ('{"amount": 1e300}', '{"amount": 1e999}'),
    ],
    ids=["rounded", "endless"],
)
async def test_number_that_the_card_shows_otherwise_is_asked_about_here(
    shown: str, changed: str
) -> None:
    calls = [calling("pay", 1, shown), calling("pay", 2, changed)]

    assert await left(toolset(ASKS), *calls) == ["call_1"]
