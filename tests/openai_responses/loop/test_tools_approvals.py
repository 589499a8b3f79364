"""Whether a call may run, by rule or by question."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from openai_responses.loop.tools import Approval, ApprovalRules, Approver, AskedCall

pytestmark = pytest.mark.asyncio

ARGUMENTS = {"city": "Bern"}


class Person:
    """Somebody in front of the page, who gives one answer to all questions."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[list[AskedCall]] = []

    async def __call__(self, calls: Sequence[AskedCall]) -> list[bool]:
        self.asked.append([*calls])
        if isinstance(self.answer, BaseException):
            raise self.answer
        return [bool(self.answer) for _ in calls]


async def refusal(approver: Approver) -> str | None:
    return await approver.refusal("call_1", "get_weather", ARGUMENTS)


async def test_first_rule_that_fits_counts() -> None:
    """It denies in upper and lower case, and allows what is written as it is alone."""
    rules: ApprovalRules = [("Read_*", "auto"), ("Delete_*", "deny"), ("*_file", "ask")]
    approver = Approver(rules, "auto")

    assert approver.rule_for("delete_file") == "deny"
    assert approver.rule_for("DELETE_x") == "deny"
    assert approver.rule_for("Read_file") == "auto"
    assert approver.rule_for("read_file") == "ask"
    own_tools_alone = Approver([("[!A-Z]*", "deny")])
    assert own_tools_alone.rule_for("delete_file") == "deny"
    assert approver.rule_for("look", default_rule="deny") == "deny"
    assert approver.rule_for("read_file", default_rule="deny") == "ask"


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ([("delete_*", "deny")], "deny"),
        ([("delete_*", "ask")], "ask"),
        ([("delete_*", "deny"), ("*", "auto")], "deny"),
        ([("files_*", "auto"), ("delete_*", "deny")], "deny"),
        ([("delete_file", "auto")], "auto"),
        # Another name makes no rule milder.
        ([("delete_*", "auto"), ("*", "ask")], "ask"),
        ([("files_*", "deny"), ("delete_*", "auto")], "deny"),
        # A rule that fits both names was judged by the first.
        ([("files_*", "auto"), ("*", "deny")], "auto"),
    ],
)
async def test_rule_for_another_name_of_a_tool(
    rules: ApprovalRules, rule: Approval
) -> None:
    """The host puts an id in front of a name that two tools have."""
    approver = Approver(rules, other_names=lambda _: ["delete_file"])

    assert approver.rule_for("files_delete_file") == rule


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ([("*_it", "deny")], "deny"),
        ([("*_it", "ask"), ("*_all", "deny")], "deny"),
        ([("*_it", "auto"), ("*", "ask")], "ask"),
        ([("cut_*", "auto"), ("*_it", "deny")], "deny"),
        # A rule that fits the name as it is was judged by the first.
        ([("cut_*", "auto"), ("*", "deny")], "auto"),
    ],
)
async def test_strictest_rule_that_may_be_meant(
    rules: ApprovalRules, rule: Approval
) -> None:
    """Of a name that was cut, it is unknown which rule is about it."""
    approver = Approver(rules, may_match=lambda name, _: name == "cut_name")

    assert approver.rule_for("cut_name") == rule
    assert approver.rule_for("whole_name") == Approver(rules).rule_for("whole_name")


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ([("call_tool", "deny")], "deny"),
        ([("call_tool", "ask"), ("read", "auto")], "ask"),
        ([("call_tool", "auto"), ("read", "deny")], "deny"),
        ([("read", "auto"), ("*", "deny")], "auto"),
    ],
)
async def test_rule_for_the_tool_that_passes_a_call_on(
    rules: ApprovalRules, rule: Approval
) -> None:
    """Both rules hold: that of the tool that was called, and that of what runs."""
    assert Approver(rules).rule_for("read", "call_tool") == rule


DENIED = "The administrator does not allow get_weather. Do not call it again."


@pytest.mark.parametrize(
    ("rule", "answer", "reason", "asked"),
    [
        ("auto", False, None, []),
        ("deny", True, DENIED, []),
        ("ask", True, None, [[AskedCall("call_1", "get_weather", ARGUMENTS)]]),
    ],
    ids=["auto", "deny", "ask"],
)
async def test_only_the_rule_to_ask_puts_the_whole_call_to_a_person(
    rule: Approval, answer: bool, reason: str | None, asked: list[Any]
) -> None:
    """Of a denied call the model is told that it is not the user's choice."""
    person = Person(answer)

    assert await refusal(Approver(default_rule=rule, ask=person)) == reason
    assert person.asked == asked


@pytest.mark.parametrize(
    ("ask", "logged"),
    [
        (None, []),
        (Person(False), []),
        (Person(TimeoutError("hunter2")), ["no answer came"]),
        (Person(RuntimeError("hunter2")), ["RuntimeError"]),
    ],
    ids=["nobody there", "a no", "no answer in time", "gone meanwhile"],
)
async def test_anything_but_a_yes_is_a_no(
    ask: Person | None, logged: list[str]
) -> None:
    """The model is told; nothing is raised.

    What went wrong is logged by its kind, not by its words, which may be anybody's.
    """
    lines: list[str] = []
    approver = Approver(default_rule="ask", ask=ask, log=lines.append)

    reason = await refusal(approver)

    who = "The user did not" if ask and not logged else "Nobody was there to"
    assert reason == f"{who} approve this call of get_weather. Continue without it."
    begin = "nobody could be asked about get_weather: "
    assert [line.removeprefix(begin).partition(" at ")[0] for line in lines] == logged
    assert "hunter2" not in str(lines)


async def test_stop_while_a_person_is_asked_is_no_answer() -> None:
    """It passes through; the run ends."""
    stopped = Person(asyncio.CancelledError())
    with pytest.raises(asyncio.CancelledError):
        await refusal(Approver(default_rule="ask", ask=stopped))
