"""Who is asked about a call, here or by the host, and what counts as a yes."""

import hashlib
import json
from typing import Any

import pytest

from calls.sample import MODEL, SAVED, call_of, host_context
from manifold.preparation import offer_tools
from openai_responses.items import Item
from openai_responses.loop.tools import Approver, AskedCall, Toolset
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import Valves
from owui_manifold.host.approvals import build_approver
from owui_manifold.host.open_webui import resolve_dispatched
from owui_manifold.prepare.toolset import chat_toolset
from runs.tools import CITY, calling
from stand_in.host import StandInHost, host_callable

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("newest")]

Json = dict[str, Any]
ASKS: Json = {"params": {"tool_approval_mode": "ask"}}


class Page:
    """A page that gives one answer to all that it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.shown: list[Json] = []

    async def __call__(self, event: Json) -> Any:
        self.shown.append(event)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def approver_of(call: Call) -> Approver:
    return build_approver(call.host, call.config.approval_rules, call.log.warn)


def ruled(rules: str, **host: Any) -> Call:
    return call_of(
        {}, Valves(API_KEY="sk-1", TOOL_APPROVAL=rules), host=host_context(**host)
    )


async def is_allowed(page: Page | None, metadata: Json, rules: str = "") -> bool:
    approver = approver_of(ruled(rules, metadata=metadata, event_call=page))
    return await approver.refusal("call_1", "get_weather", {"city": "Bern"}) is None


async def test_page_shows_the_hosts_card_with_the_call() -> None:
    """Its id, its name and its arguments, for as long as the host allows.

    Without the field for the time the host stops waiting after two minutes.
    """
    page = Page(True)

    assert await is_allowed(page, ASKS)
    [event] = page.shown
    assert event["type"] == "confirmation"
    assert event["data"]["tool_call"] == {
        "id": "call_1",
        "name": "get_weather",
        "arguments": {"city": "Bern"},
    }
    assert "get_weather" in event["data"]["message"]
    assert event["data"]["timeout_ms"] == 240_000


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "The user did not approve"),
        (1, "Nobody was there to approve"),
        ({"error": "disconnected"}, "Nobody was there to approve"),
        (TimeoutError(), "Nobody was there to approve"),
        (RuntimeError("the socket is gone"), "Nobody was there to approve"),
    ],
    ids=str,
)
async def test_only_true_is_a_yes(answer: Any, reason: str) -> None:
    """Whoever left or did not answer is an object, or an exception, and said no no."""
    approver = approver_of(ruled("", metadata=ASKS, event_call=Page(answer)))
    assert reason in str(await approver.refusal("call_1", "get_weather", {}))


async def test_nobody_there_is_a_no() -> None:
    """A plain caller has no page."""
    assert not await is_allowed(None, ASKS)
    assert not await is_allowed(None, {}, "get_*:deny")
    assert await is_allowed(None, {})


@pytest.mark.parametrize(
    ("rules", "metadata", "answer", "allowed", "asked"),
    [
        # Open WebUI, too, asks only where `tool_approval_mode` says so.
        ("", {"params": None}, False, True, 0),
        ("", {"params": {"tool_approval_mode": "full"}}, False, True, 0),
        ("get_*=deny", {}, True, False, 0),
        ("get_*=ask", {}, True, True, 1),
        ("get_*=ask", {}, False, False, 1),
        ("get_*=auto", ASKS, False, True, 0),
        ("other=deny", ASKS, True, True, 1),
        # A rule that cannot be read may be the one that was to deny this tool.
        ("get_*:deny", {}, True, True, 1),
    ],
)
async def test_rules_come_before_the_chats_mode(
    rules: str, metadata: Json, answer: bool, allowed: bool, asked: int
) -> None:
    """The administrator knows the tools."""
    page = Page(answer)

    assert await is_allowed(page, metadata, rules) is allowed
    assert len(page.shown) == asked


async def test_question_to_the_user_is_not_asked_about() -> None:
    """Unless a rule says so, or the tool is not the host's own."""
    page = Page(False)
    own = {"ask_user": {"type": "builtin"}}

    async def refusal(rules: str, tools: dict[str, Json]) -> str | None:
        asked = ruled(rules, metadata=ASKS, event_call=page, tools=tools)
        return await approver_of(asked).refusal("call_1", "ask_user", {})

    assert await refusal("", own) is None
    assert page.shown == []
    assert await refusal("ask_user=deny", own) is not None
    assert await refusal("", {"ask_user": {"tool_id": "toolkit"}}) is not None
    assert len(page.shown) == 1


async def shown_for(name: str, arguments: Json) -> str:
    page = Page(True)
    approver = approver_of(ruled("*=ask", event_call=page))
    await approver.refusal("call_1", name, arguments)
    return str(page.shown[0]["data"]["message"])


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("delete_file", {"path": "/home/Zoë", "force": True}),
        # No one approves the middle of a script without having seen it.
        ("run", {"script": "echo fine\n" * 500 + "rm -r ~\n" + "echo fine\n" * 500}),
    ],
    ids=["short", "long"],
)
async def test_question_shows_the_arguments(name: str, arguments: Json) -> None:
    """The oldest host shows nothing but the message."""
    message = await shown_for(name, arguments)

    begin, block, end = message.split("```")
    assert name in begin
    assert json.loads(block.removeprefix("json")) == arguments
    assert end == "\n\n</div>"


@pytest.mark.parametrize("lines", [1, 2000])
async def test_arguments_cannot_leave_their_block(lines: int) -> None:
    """The page draws the message as Markdown, which can load pictures."""
    evil = "\n```\n![x](https://evil.example/x.png)\n<img src=x>\n" * lines
    message = await shown_for("a`b\n# <img>", {evil: evil, "list": [evil, {"a": evil}]})

    fences = [line for line in message.splitlines() if line.lstrip().startswith("```")]
    assert fences == ["```json", "```"]
    assert message.endswith("\n```\n\n</div>")
    assert "<img" not in message.split("```")[0]


async def test_several_calls_are_one_question() -> None:
    """It shows each of them with its number, and the answer holds for all."""
    page = Page(True)
    approver = approver_of(ruled("*=ask", event_call=page))
    calls = [
        AskedCall("call_1", "get_weather", {"city": "Bern"}),
        AskedCall("call_2", "delete_file", {"path": "/a"}),
        AskedCall("call_3", "get_weather", {"city": "Rom"}),
    ]

    assert await approver.refusals(calls) == [None] * 3
    [event] = page.shown
    assert event["data"]["title"] == "Allow these 3 calls?"
    assert event["data"]["tool_call"] == {
        "id": "call_1",
        "name": "get_weather, delete_file",
        "arguments": {
            "1. get_weather": {"city": "Bern"},
            "2. delete_file": {"path": "/a"},
            "3. get_weather": {"city": "Rom"},
        },
    }
    begin, block, _ = event["data"]["message"].split("```")
    assert "use 3 calls of get_weather, delete_file with:" in begin
    shown = json.loads(block.removeprefix("json"))
    assert shown == event["data"]["tool_call"]["arguments"]


async def test_no_to_several_calls_denies_each_that_was_asked_about() -> None:
    """Those that the rules decide about are not in the question."""
    page = Page(False)
    rules = "delete_*=deny, get_*=ask, now=auto"
    approver = approver_of(ruled(rules, event_call=page))
    names = ["get_weather", "delete_file", "now", "get_time"]

    refusals = await approver.refusals([AskedCall(name, name, {}) for name in names])

    [event] = page.shown
    asked = event["data"]["tool_call"]["arguments"]
    assert list(asked) == ["1. get_weather", "2. get_time"]
    words = ["approve this call of get_weather", "allow delete_file", None]
    for refusal, word in zip(
        refusals, [*words, "approve this call of get_time"], strict=True
    ):
        assert refusal is None if word is None else word in str(refusal)


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u202e", "\\u202e"),  # turns the rest of the line around
        ("\u200b", "\\u200b"),  # takes no room
        ("\U000e0041", "\\udb40\\udc41"),  # a letter of a tag
    ],
)
async def test_what_cannot_be_seen_is_shown_as_an_escape(
    hidden: str, shown: str
) -> None:
    """In the card of the newest host, and in the message of the oldest."""
    page = Page(True)
    approver = approver_of(ruled("*=ask", event_call=page))
    arguments = {f"to{hidden}": [f"ada{hidden}@example.com"]}

    await approver.refusal("call_1", f"se{hidden}nd", arguments)

    data = page.shown[0]["data"]
    assert hidden not in json.dumps(data, ensure_ascii=False)
    assert data["tool_call"]["name"] == f"se{shown}nd"
    assert data["tool_call"]["arguments"] == {f"to{shown}": [f"ada{shown}@example.com"]}
    in_json = shown.replace("\\", "\\\\")
    assert f'"ada{in_json}@example.com"' in data["message"]


def served(own: str) -> Any:
    """A function that the host makes for a tool of a server."""

    def make(function_name: str) -> Any:
        async def tool_function(**_: Any) -> str:
            return function_name

        return tool_function

    return make(own)


async def delete_file() -> None:
    """Be a method of a toolkit."""


class McpClient:

    server_name = "files"


LONG = "delete_the_files_of_all_customers_who_have_not_paid_for_long"
WHOLE = f"files_{LONG}"
CUT = f"{WHOLE[:55]}_{hashlib.sha256(WHOLE.encode()).hexdigest()[:8]}"
OF_MCP: Json = {"type": "mcp", "callable": served("delete_file")}
OF_TOOLKIT: Json = {"tool_id": "files", "callable": host_callable(delete_file)}
CUT_TOOL: Json = {"type": "mcp", "callable": served(LONG), "client": McpClient()}


@pytest.mark.parametrize(
    ("name", "tool", "rule"),
    [
        # The other tool of its name is gone: a user chooses the tools of a chat.
        ("delete_file", {"tool_id": "files"}, "files_delete_file"),
        ("delete_file", {"tool_id": "server:files"}, "files_delete_file"),
        # A decorator may have taken its name away from the function.
        ("delete_file", {"tool_id": "files", "callable": served("")}, "files_delete_*"),
        (
            "delete_file",
            {"tool_id": "server:openapi:files|delete_file,list"},
            "files_*",
        ),
        # A second tool of its name is enough for a longer one.
        ("files_delete_file", OF_TOOLKIT, "delete_*"),
        (
            "files_delete_file",
            {
                "tool_id": "server:files",
                "callable": host_callable(served("delete_file")),
            },
            "delete_*",
        ),
        ("files_delete_file", OF_MCP, "delete_*"),
        # Open WebUI 0.12 cuts names of MCP tools with over 64 characters.
        (CUT, CUT_TOOL, LONG),
        (CUT, CUT_TOOL, WHOLE),
        (CUT, CUT_TOOL, "*_for_long"),
        (CUT, CUT_TOOL, "delete_*"),
    ],
    ids=[
        *("toolkit alone", "server alone", "function without a name"),
        "OpenAPI server alone",
        *("toolkit", "OpenAPI server", "MCP server"),
        *("cut: own", "cut: whole", "cut: its end", "cut: its beginning"),
    ],
)
async def test_rule_holds_for_each_name_that_the_host_may_give_a_tool(
    name: str, tool: Json, rule: str
) -> None:
    """A user could evade it by the choice of other tools."""
    kept = {"callable": host_callable(delete_file), **tool}
    asked = ruled(f"{rule}=deny", tools={name: kept})

    refused = await approver_of(asked).refusal("c", name, {})
    assert "does not allow" in str(refused)


async def test_dialog_shows_every_digit_of_a_number() -> None:
    """A page would round a large one, and show another account."""
    page = Page(True)
    call = ruled("", metadata=ASKS, event_call=page)

    await approver_of(call).refusal("call_1", "pay", {"to": 12345678901234567891})

    [event] = page.shown
    assert event["data"]["tool_call"]["arguments"] == {"to": "12345678901234567891"}
    assert "12345678901234567891" in event["data"]["message"]


ASK = "ask"
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


def toolset(mode: str, rules: str = "", caller: Caller = SAVED, **more: Any) -> Toolset:
    """What runs the calls of a chat in a mode of approvals."""
    metadata = {"params": {"tool_approval_mode": mode}, **more}
    call = call_of(
        {},
        Valves(API_KEY="sk-1", TOOL_APPROVAL=rules),
        caller,
        host=host_context(HOST_TOOLS, metadata=metadata),
    )
    return chat_toolset(call, offer_tools(None, [], [SPEC]))


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

    assert await left(toolset(ASK), *calls) == ["call_0", "call_1", "call_2"]
    assert await left(toolset("full"), *calls) == []


async def test_call_of_a_custom_tool_is_asked_about_here() -> None:
    """The host makes calls of functions alone, whatever else a server writes."""
    call = calling("note", 1, '{"input": "x"}')
    custom = {**call, "type": "custom_tool_call", "input": "x"}

    assert await left(toolset(ASK), custom) == []
    assert await left(toolset(ASK), call) == ["call_1"]


@pytest.mark.parametrize(
    ("caller", "facts", "is_asked"),
    [
        (SAVED._replace(chat_id="temporary:1"), {}, False),
        (SAVED._replace(chat_id="channel:1"), {}, False),
        (SAVED._replace(streams=False), {}, False),
        (SAVED._replace(chat_id="", message_id=""), {}, False),
        # Who started an automation or a sub-agent would take its waiting for its end.
        (SAVED, {"automation_id": "a-1"}, False),
        (SAVED, {"internal": True}, False),
        (SAVED, {"automation_id": None, "internal": False}, True),
        # Another function that asks reads the text, and makes no call.
        (SAVED, {"model": {"id": MODEL}}, True),
        (SAVED, {"model": {"id": "a", "info": {"base_model_id": MODEL}}}, True),
        (SAVED, {"model": {"id": "arena"}, "selected_model_id": MODEL}, True),
        (SAVED, {"model": {"id": "another_pipe"}}, False),
        (SAVED, {"model": {"id": "a", "info": {"base_model_id": "other"}}}, False),
    ],
)
@pytest.mark.parametrize("mode", [ASK, "full"])
async def test_host_asks_where_it_stores_and_reads_the_answer(
    mode: str, caller: Caller, facts: Json, is_asked: bool
) -> None:
    """Elsewhere it would not call the pipe again, or nobody would answer."""
    assert (toolset(mode, caller=caller, **facts).judge is not None) is is_asked


async def test_older_host_asks_about_nothing(host: StandInHost) -> None:
    """It has such cards, but loses what the approved calls returned."""
    host.provide("utils.tool_approval")

    assert toolset(ASK).judge is None


WEATHER = calling("get_weather")
PASSED_ON = json.dumps({"tool_name": "get_weather", "params": '{"city": "Bern"}'})


@pytest.mark.parametrize(
    ("rules", "call", "is_left"),
    [
        ("", WEATHER, True),
        ("other=ask", WEATHER, True),
        ("get_weather=auto", WEATHER, False),
        ("get_weather=deny", WEATHER, False),
        # The user could switch the host's question off.
        ("get_*=ask", WEATHER, False),
        # An entry that is no rule asks about all.
        ("get_weather:ask", WEATHER, False),
        # The host puts the call that is passed on in its place.
        ("", calling("call_tool", 1, PASSED_ON), True),
        ("get_weather=ask", calling("call_tool", 1, PASSED_ON), False),
        ("call_tool=ask", calling("call_tool", 1, PASSED_ON), False),
        # Whatever the white space between arguments.
        ("", calling("get_weather", 1, '{"city": "Zürich\\n\\t🚀"}'), True),
        ("", calling("get_weather", 1, '{"city":"a"}'), True),
    ],
)
async def test_rules_of_the_administrator_are_kept_here(
    rules: str, call: Item, is_left: bool
) -> None:
    assert await left(toolset(ASK, rules), call) == ["call_1"] * is_left


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
    assert await left(toolset(ASK), calling(name, 1, arguments)) == []


async def test_call_that_the_host_answers_with_an_error_is_no_call() -> None:
    """It leaves the name of the tool that passes calls on, which it has."""
    made = [
        resolve_dispatched("call_tool", json.dumps(given), HOST_TOOLS)
        for given in ({"tool_name": "note", "params": "{}"}, {"tool_name": "note"})
    ]

    assert made == [("note", "{}"), None]


@pytest.mark.parametrize("mode", ["full", ASK])
async def test_question_to_the_user_is_the_hosts(mode: str) -> None:
    """It stores that, too, and the answer has no time limit."""
    assert await left(toolset(mode), QUESTION) == ["call_9"]
    assert await left(toolset(mode, "ask_user=deny"), QUESTION) == []
    assert await left(toolset(mode, "ask_user=ask"), QUESTION) == []
    for arguments in ("{}", '{"questions": []}'):  # which the host cannot put
        assert await left(toolset(mode), {**QUESTION, "arguments": arguments}) == []
    # Nor what another tool is given that looks like one.
    alike = {**QUESTION, "name": "note"}
    assert await left(toolset(mode, "note=auto"), alike) == []


async def test_host_puts_one_question_and_nothing_beside_it() -> None:
    """It would answer the others with an error. What runs here is no matter to it."""
    weather = calling("get_weather", 1)
    second = {**QUESTION, "call_id": "call_8"}

    assert await left(toolset("full"), weather, QUESTION) == ["call_9"]
    assert await left(toolset(ASK), weather, QUESTION) == ["call_1"]
    assert await left(toolset(ASK), QUESTION, second) == []


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

    assert await left(toolset(ASK), *calls) == ["call_1"]
