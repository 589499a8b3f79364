"""Whom the judge of an agent asks, and what it remembers of approvals."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from agents.sample import WeatherTool, calls, question
from gpt5_agent.agent.calls import ChatJudge
from gpt5_agent.agent.earlier_rounds import EarlierRounds
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.request import OwnToolSettings
from gpt5_agent.tools.confirmations import (
    Decision,
    compute_confirmation_id,
    compute_permission,
)
from openai_responses.loop.tools import Approval, Approver, AskedCall

CITY = {"city": "Bern"}


def test_approval_of_a_call_counts_once() -> None:
    approval = compute_confirmation_id("call_1", "ask_weather", CITY)
    own = OwnToolSettings(
        tools=(WeatherTool("ask_weather"),),
        approver=Approver([("ask_*", "ask")], "auto"),
        asks_in_chat=True,
    )
    asked = question(own=own)
    earlier = EarlierRounds(answers={approval: "once"})
    prepared = prepare_run(asked)._replace(earlier_rounds=earlier)
    approver = ChatJudge(asked, prepared).toolset.approver

    async def refusals() -> list[str | None]:
        return [
            await approver.refusal("call_2", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", {"city": "Rome"}),
            await approver.refusal("call_1", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", CITY),
        ]

    allowed = [why is None for why in asyncio.run(refusals())]
    assert allowed == [False, False, True, False]


async def allow(asked: Sequence[AskedCall]) -> list[bool]:
    return [True for _ in asked]


NOBODY = "ask_weather needs an approval, and this client cannot be asked."
TOO_LONG = "this call is too long to be shown to a person."
IN_CHAT = OwnToolSettings(asks_in_chat=True)
TERMINAL = OwnToolSettings(approver=Approver(ask=allow))


@pytest.mark.parametrize(
    ("settings", "size", "is_asked", "why"),
    [
        pytest.param(IN_CHAT, 4, True, "", id="in a chat"),
        pytest.param(IN_CHAT, 30_000, False, TOO_LONG, id="in a chat, too long"),
        pytest.param(TERMINAL, 30_000, False, "", id="terminal, however long"),
        pytest.param(OwnToolSettings(), 4, False, NOBODY, id="plain client"),
    ],
)
def test_person_is_asked_where_one_can_answer(
    settings: OwnToolSettings, size: int, is_asked: bool, why: str
) -> None:
    """A terminal asks when the call is made, and can show all of it."""
    approver = Approver([("ask_*", "ask")], ask=settings.approver.ask)
    own = settings._replace(tools=(WeatherTool("ask_weather"),), approver=approver)
    asked = question(own=own)
    judge = ChatJudge(asked, prepare_run(asked))

    call = calls("ask_weather", city="x" * size)
    judgment = asyncio.run(judge.judge([call]))

    assert (judgment.question is not None) is is_asked
    [verdict] = judgment.verdicts
    assert not verdict.is_left
    refusal = str(verdict.refusal.output) if verdict.refusal else ""
    assert why in refusal
    assert bool(refusal) == bool(why)


@pytest.mark.parametrize(
    ("asks", "rules", "default", "tool", "holds"),
    [
        (True, [], "auto", "call_tool", False),
        (True, [("delete_*", "ask")], "auto", "call_tool", True),
        (True, [("delete_*", "deny")], "auto", "call_tool", False),
        (True, [], "ask", "call_tool", True),
        (True, [("delete_*", "ask")], "auto", "get_weather", False),
        (True, [("get_*", "ask")], "auto", "get_weather", True),
        (True, [("own_*", "ask")], "auto", "get_weather", True),
        (False, [("*", "ask")], "ask", "call_tool", False),
    ],
)
def test_calls_wait_only_where_one_may_need_a_yes(
    asks: bool,
    rules: list[tuple[str, Approval]],
    default: Approval,
    tool: str,
    holds: bool,
) -> None:
    """`call_tool` may call any tool: each rule that asks may be about it."""
    own = OwnToolSettings(
        tools=(WeatherTool("own_weather"),),
        approver=Approver(rules, default),
        asks_in_chat=asks,
    )
    function = {"name": tool, "description": "", "parameters": {"type": "object"}}
    body = {"tools": [{"type": "function", "function": function}]}
    asked = question(own=own, body=body)

    assert ChatJudge(asked, prepare_run(asked)).holds_calls is holds


@pytest.mark.parametrize(
    ("name", "chat", "city", "is_allowed"),
    [
        ("ask_weather", "user/chat", "Bern", True),
        ("ask_weather", "user/chat", "Rome", True),
        ("ask_weather", "user/other", "Bern", False),
        ("ask_weather", "other/chat", "Bern", False),
        ("ask_news", "user/chat", "Bern", False),
    ],
)
def test_yes_for_a_chat_is_about_one_tool_in_it(
    name: str, chat: str, city: str, *, is_allowed: bool
) -> None:
    own = OwnToolSettings(
        tools=(WeatherTool("ask_weather"), WeatherTool("ask_news")),
        approver=Approver([("ask_*", "ask")], "auto"),
        asks_in_chat=True,
    )
    given = question(own=own, chat="user/chat").caller.workspace
    permission = compute_permission(given, "ask_weather", CITY)
    asked = question(own=own, chat=chat)
    prepared = prepare_run(asked)._replace(permissions=frozenset({permission}))
    approver = ChatJudge(asked, prepared).toolset.approver

    refusal = asyncio.run(approver.refusal("call_1", name, {"city": city}))

    assert (refusal is None) is is_allowed


def test_rule_holds_for_the_tool_that_another_one_passes_a_call_to() -> None:
    given = {"tool_name": "host_delete", "params": json.dumps(CITY)}
    call = {**calls("call_tool"), "arguments": json.dumps(given)}
    function = {"name": "call_tool", "parameters": {"type": "object"}}
    asked = question(
        own=OwnToolSettings(approver=Approver([("host_*", "deny")])),
        body={"tools": [{"type": "function", "function": function}]},
    )

    judgment = asyncio.run(ChatJudge(asked, prepare_run(asked)).judge([call]))

    [verdict] = judgment.verdicts
    assert verdict.refusal
    assert not verdict.is_left


@pytest.mark.parametrize("decision", ["chat", "once"])
def test_yes_for_the_chat_is_noted_for_later_answers(decision: Decision) -> None:
    approval = compute_confirmation_id("call_1", "ask_weather", CITY)
    own = OwnToolSettings(
        tools=(WeatherTool("ask_weather"),),
        approver=Approver([("ask_*", "ask")]),
        asks_in_chat=True,
    )
    asked = question(own=own, chat="user/chat")
    earlier = EarlierRounds(
        answers={approval: decision}, signed_calls=(calls("ask_weather"),)
    )

    judge = ChatJudge(asked, prepare_run(asked)._replace(earlier_rounds=earlier))

    kept = compute_permission(asked.caller.workspace, "ask_weather", CITY)
    assert judge.new_permissions == ({kept} if decision == "chat" else set())
    approver = judge.toolset.approver
    again = asyncio.run(approver.refusal("call_2", "ask_weather", CITY))
    assert (again is None) is (decision == "chat")  # in this answer, too
