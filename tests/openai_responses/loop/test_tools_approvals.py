"""Whether a call may run, by rule or by question."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses.errors import InvalidRequest
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
    assert read_rules(text) == rules


@pytest.mark.parametrize(
    "text", ["shell=maybe", "=ask", "a=auto, b=DENY", "a=ask=deny", "=yes"]
)
async def test_other_rules_give_a_sentence(text: str) -> None:
    """A word that was not understood must not become a yes."""
    with pytest.raises(InvalidRequest, match="TOOL_APPROVAL holds something"):
        read_rules(text)


@given(st.text(alphabet="ab*=,\n askdenyuto"))
async def test_any_text_is_read_or_refused(text: str) -> None:
    """What is read has a pattern and one of three answers."""
    try:
        rules = read_rules(text)
    except InvalidRequest:
        return
    assert all(pattern for pattern, _ in rules)
    assert {answer for _, answer in rules} <= {"auto", "ask", "deny"}


async def test_first_rule_that_fits_counts() -> None:
    """Names are compared as they are written."""
    approver = Approver([("delete_*", "deny"), ("*_file", "ask")], "auto")

    assert approver.rule_for("delete_file") == "deny"
    assert approver.rule_for("read_file") == "ask"
    assert approver.rule_for("Delete_x") == "auto"


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
        told == "The user did not approve this call of get_weather. Go on without it."
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
