"""Whether a call may run, by rule or by question."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.loop.tools import Approval, Approver, read_rules

pytestmark = pytest.mark.asyncio

ARGUMENTS = {"city": "Bern"}


class Person:
    """Somebody in front of the page, who gives one answer to all questions."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []

    async def __call__(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        """Take a question."""
        self.asked.append((call_id, name, arguments))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return bool(self.answer)


async def refusal(approver: Approver, name: str = "get_weather") -> str | None:
    """What the model is told of a call."""
    return await approver.refusal("call_1", name, ARGUMENTS)


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("", []),
        (" \n , ", []),
        ("shell", [("shell", "ask")]),
        ("shell=", [("shell", "ask")]),
        (
            "delete_*=ask, shell = deny\n*=auto",
            [("delete_*", "ask"), ("shell", "deny"), ("*", "auto")],
        ),
    ],
)
async def test_rules_are_read(text: str, rules: list[tuple[str, Approval]]) -> None:
    """One a line or a comma; a pattern alone means that somebody is asked."""
    assert read_rules(text, "here") == (rules, "")


@pytest.mark.parametrize(
    "entry",
    [
        *("delete_*:ask", "delete_*: deny", "shell=maybe", "=ask", "a=ask=deny"),
        *("=yes", "deny", "ask=deny", "delete_* deny", "delete_*->deny", "delete_[ab"),
        *('"delete_*"=deny', "a=deny; b=ask"),
    ],
)
async def test_entry_that_cannot_be_read_lets_nothing_run_unasked(entry: str) -> None:
    """It may be meant to deny anything; what is denied elsewhere stays denied."""
    rules, problem = read_rules(f"read_*=auto, {entry}, shell=deny", "the valves")

    approver = Approver(rules)
    assert approver.rule_for("read_file") == "ask"
    assert approver.rule_for("delete_file") == "ask"
    assert approver.rule_for("shell") == "deny"
    assert entry in problem
    assert "An administrator has to correct it in the valves" in problem


async def test_answer_may_be_in_capitals() -> None:
    """There is only one thing that it can mean."""
    assert read_rules("shell=DENY", "here") == ([("shell", "deny")], "")


@given(st.text(alphabet="ab*=,:\n askdenyuto"))
async def test_any_text_is_read(text: str) -> None:
    """What is read has a pattern and one of three answers; nothing is passed over."""
    rules, problem = read_rules(text, "here")

    assert all(pattern for pattern, _ in rules)
    assert {answer for _, answer in rules} <= {"auto", "ask", "deny"}
    entries = [entry for entry in re.split("[,\n]", text) if entry.strip()]
    assert problem or len(rules) == len(entries)


async def test_first_rule_that_fits_counts() -> None:
    """Names are compared as they are written."""
    approver = Approver([("delete_*", "deny"), ("*_file", "ask")], "auto")

    assert approver.rule_for("delete_file") == "deny"
    assert approver.rule_for("read_file") == "ask"
    assert approver.rule_for("Delete_x") == "auto"


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ("delete_*=deny", "deny"),
        ("delete_*=ask", "ask"),
        ("delete_*=deny, *=auto", "deny"),
        ("files_*=auto, delete_*=deny", "deny"),
        ("delete_file=auto", "auto"),
        # Another name makes no rule milder.
        ("delete_*=auto, *=ask", "ask"),
        ("files_*=deny, delete_*=auto", "deny"),
        # A rule that fits both names was judged by the first.
        ("files_*=auto, *=deny", "auto"),
    ],
)
async def test_rule_for_another_name_of_a_tool(rules: str, rule: Approval) -> None:
    """The host puts an id in front of a name that two tools have."""
    found, _ = read_rules(rules, "here")
    approver = Approver(found, other_names=lambda _: ["delete_file"])

    assert approver.rule_for("files_delete_file") == rule


@pytest.mark.parametrize(
    ("rules", "rule"),
    [
        ("call_tool=deny", "deny"),
        ("call_tool=ask, read=auto", "ask"),
        ("call_tool=auto, read=deny", "deny"),
        ("read=auto, *=deny", "auto"),
    ],
)
async def test_rule_for_the_tool_that_passes_a_call_on(
    rules: str, rule: Approval
) -> None:
    """Both rules hold: that of the tool that was called, and that of what runs."""
    assert Approver(read_rules(rules, "here")[0]).rule_for("read", "call_tool") == rule


async def test_allowed_call_asks_nobody() -> None:
    """It runs."""
    person = Person(False)

    assert await refusal(Approver(default_rule="auto", ask=person)) is None
    assert person.asked == []


async def test_denied_call_asks_nobody() -> None:
    """The model is told that it is not the user's choice."""
    person = Person(True)

    told = await refusal(Approver(default_rule="deny", ask=person))

    assert told == (
        "The administrator does not allow get_weather. Do not call it again."
    )
    assert person.asked == []


async def test_person_is_asked_with_the_whole_call() -> None:
    """A yes lets it run."""
    person = Person(True)

    assert await refusal(Approver(default_rule="ask", ask=person)) is None
    assert person.asked == [("call_1", "get_weather", ARGUMENTS)]


@pytest.mark.parametrize(
    "ask",
    [None, Person(False), Person(TimeoutError()), Person(ConnectionError("gone"))],
    ids=["nobody there", "a no", "no answer in time", "gone meanwhile"],
)
async def test_anything_but_a_yes_is_a_no(ask: Person | None) -> None:
    """The model is told; nothing is raised."""
    told = await refusal(Approver(default_rule="ask", ask=ask))

    assert (
        told
        == "The user did not approve this call of get_weather. Continue without it."
    )


async def test_who_could_not_be_asked_is_logged() -> None:
    """By the kind of what went wrong, not by its words, which may be anybody's."""
    lines: list[str] = []
    gone = Person(ConnectionError("hunter2"))

    await refusal(Approver(default_rule="ask", ask=gone, log=lines.append))
    await refusal(Approver(default_rule="ask", ask=Person(False), log=lines.append))

    [line] = lines
    assert line.startswith("nobody could be asked about get_weather: ConnectionError")
    assert "hunter2" not in line


async def test_stop_while_a_person_is_asked_is_no_answer() -> None:
    """It passes through; the run ends."""
    with pytest.raises(asyncio.CancelledError):
        await refusal(
            Approver(default_rule="ask", ask=Person(asyncio.CancelledError()))
        )
