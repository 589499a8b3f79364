"""Whom the judge of an agent asks, and what it remembers of approvals."""

import asyncio
from collections.abc import Sequence

import pytest

from agents.sample import WeatherTool, calls, question
from gpt5_agent.agent.calls import ChatJudge
from gpt5_agent.agent.earlier_rounds import EarlierRounds
from gpt5_agent.agent.preparation import prepare_run
from gpt5_agent.request import OwnToolSettings
from gpt5_agent.tools.confirmations import compute_confirmation_id
from openai_responses.loop.tools import Approval, Approver, AskedCall

CITY = {"city": "Bern"}


def test_approval_of_a_call_counts_once() -> None:
    """A call of the same id and arguments, made again, is not allowed by it."""
    approval = compute_confirmation_id("call_1", "ask_weather", CITY)
    own = OwnToolSettings(
        tools=(WeatherTool("ask_weather"),),
        approver=Approver([("ask_*", "ask")], "auto"),
        asks_in_chat=True,
    )
    asked = question(own=own)
    earlier = EarlierRounds(answers={approval: "once"})
    prepared = prepare_run(asked)._replace(earlier_rounds=earlier)
    approver = ChatJudge(asked, prepared).build_toolset(asked).approver

    async def refusals() -> list[str | None]:
        return [
            await approver.refusal("call_2", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", {"city": "Rome"}),
            await approver.refusal("call_1", "ask_weather", CITY),
            await approver.refusal("call_1", "ask_weather", CITY),
        ]

    assert [why is None for why in asyncio.run(refusals())] == [
        False,
        False,
        True,
        False,
    ]


async def allow(asked: Sequence[AskedCall]) -> list[bool]:
    """A person in front of a terminal, who allows everything."""
    return [True for _ in asked]


NOBODY = "ask_weather needs an approval, and this client cannot be asked."
TOO_LONG = "this call is too long to be shown to a person."
ASKED: dict[str, tuple[OwnToolSettings, int, bool, str]] = {
    "in a chat": (OwnToolSettings(asks_in_chat=True), 4, True, ""),
    "in a chat, too long": (
        OwnToolSettings(asks_in_chat=True),
        30_000,
        False,
        TOO_LONG,
    ),
    "terminal": (OwnToolSettings(approver=Approver(ask=allow)), 4, False, ""),
    "terminal, however long": (
        *(OwnToolSettings(approver=Approver(ask=allow)), 30_000, False, ""),
    ),
    "plain client": (OwnToolSettings(), 4, False, NOBODY),
}
"""Where a call needs a yes, how long its text is; whether a chat asks, why it is refused."""


@pytest.mark.parametrize("case", ASKED.values(), ids=ASKED)
def test_person_is_asked_where_one_can_answer(
    case: tuple[OwnToolSettings, int, bool, str],
) -> None:
    """A terminal asks when the call is made, and can show all of it."""
    settings, size, is_asked, why = case
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


HOLDS: list[tuple[bool, list[tuple[str, Approval]], Approval, str, bool]] = [
    (True, [], "auto", "call_tool", False),
    (True, [("delete_*", "ask")], "auto", "call_tool", True),
    (True, [("delete_*", "deny")], "auto", "call_tool", False),
    (True, [], "ask", "call_tool", True),
    (True, [("delete_*", "ask")], "auto", "get_weather", False),
    (True, [("get_*", "ask")], "auto", "get_weather", True),
    (True, [("own_*", "ask")], "auto", "get_weather", True),
    (True, [], "ask", "get_weather", True),
    (False, [("*", "ask")], "ask", "call_tool", False),
]
"""Whether a chat asks, rules, the default, a tool of the host; whether calls may wait."""


@pytest.mark.parametrize(("asks", "rules", "default", "tool", "holds"), HOLDS)
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
