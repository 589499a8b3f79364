"""What is remembered of refusals: for whom, how long, how much."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from measures.kept_memory import kept_container
from openai_responses.endpoint import Endpoint
from openai_responses.repairs.chat_repairs import LeaveOutItem
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.memory import (
    DAY_SECONDS,
    MAX_FOR_ALL,
    MAX_FOR_ONE_USER,
    MAX_USERS,
    RepairMemory,
    RepairScope,
)
from openai_responses.repairs.request_repairs import (
    LeaveOutParameter,
    LeaveOutTool,
    Repair,
)

ACCOUNT = Endpoint("https://api.openai.com/v1", "sk-canary-1", "org-1")
MODEL = "gpt-6.1-sol"
NO_SUMMARY = LeaveOutParameter("reasoning.summary")
NO_STREAM = LeaveOutParameter("stream")


def yes() -> bool:
    """Say that a request is as its administrators configured it."""
    return True


def no() -> bool:
    """Say that a request may hold a user's choice."""
    return False


def scope(
    user: str = "user-1", model: str = MODEL, at: Endpoint = ACCOUNT
) -> RepairScope:
    return RepairScope(at.account(), model, user)


def named(repair: Repair) -> TriedRepair:
    """Return a tried that may hold for all users."""
    return TriedRepair(repair, is_named=True, helped_at_once=True)


def test_each_repair_is_remembered_once() -> None:
    """Who looks into the memory of the pipe finds no key there."""
    memory = RepairMemory()

    for repair in (NO_STREAM, NO_SUMMARY, NO_STREAM):
        memory.learn(scope(), named(repair), yes)

    assert set(memory.repairs(scope("user-2"))) == {NO_STREAM, NO_SUMMARY}
    assert len(memory.repairs(scope())) == 2
    assert "canary" not in str(vars(memory))


@pytest.mark.parametrize(
    ("tried", "configured"),
    [
        (named(NO_SUMMARY)._replace(is_named=False), yes),
        (named(NO_SUMMARY)._replace(helped_at_once=False), yes),
        (named(NO_SUMMARY), no),
        (named(LeaveOutItem("a" * 32)), yes),
    ],
    ids=["words", "did not help at once", "a choice", "an item of a chat"],
)
def test_repair_for_one_user_does_not_apply_to_others(
    tried: TriedRepair, configured: Callable[[], bool]
) -> None:
    """All three conditions have to hold for all users."""
    memory = RepairMemory()

    memory.learn(scope("user-1"), tried, configured)

    assert memory.repairs(scope("user-1")) == (tried.repair,)
    assert memory.repairs(scope("user-2")) == ()
    assert memory.repairs(scope("")) == ()


@pytest.mark.parametrize(
    ("about", "tried"),
    [
        (scope(""), TriedRepair(NO_SUMMARY)),
        (scope(), named(NO_STREAM)._replace(is_lasting=False)),
        (scope(model="m" * 301), named(NO_STREAM)),
    ],
    ids=[
        "a client nobody knows",
        "a server that is not reached may be back soon",
        "a long name, which can come from a client",
    ],
)
def test_nothing_is_remembered(about: RepairScope, tried: TriedRepair) -> None:
    memory = RepairMemory()

    memory.learn(about, tried, yes)

    assert memory.repairs(about) == ()
    assert kept_container(memory) == {}


@pytest.mark.parametrize(
    "other",
    [
        scope(at=replace(ACCOUNT, api_key="sk-canary-2")),
        scope(at=replace(ACCOUNT, base_url="https://gateway.example/v1")),
        scope(at=replace(ACCOUNT, organization="org-2")),
        scope(model="gpt-5"),
    ],
    ids=["key", "address", "organization", "model"],
)
def test_another_account_is_asked_anew(other: RepairScope) -> None:
    """It may be allowed what this one is not; so may another model."""
    memory = RepairMemory()

    memory.learn(scope(), named(NO_SUMMARY), yes)

    assert memory.repairs(other) == ()
    assert memory.repairs(scope(at=replace(ACCOUNT))) == (NO_SUMMARY,)


def test_a_repair_is_forgotten_after_a_day() -> None:
    """The organization may have been verified since; if not, it is learned again."""
    times = [0.0]
    memory = RepairMemory(lambda: times[0])
    memory.learn(scope(), named(NO_STREAM), yes)

    times[0] = DAY_SECONDS - 1
    assert memory.repairs(scope()) == (NO_STREAM,)
    times[0] += 1
    assert memory.repairs(scope()) == ()
    memory.learn(scope(), named(NO_STREAM), yes)
    assert memory.repairs(scope()) == (NO_STREAM,)


def test_repairs_of_one_user_are_bounded() -> None:
    """With many keys, models and repairs; what holds for all stays."""
    memory = RepairMemory()
    memory.learn(scope("admin"), named(NO_STREAM), yes)

    for number in range(2_000):
        own = replace(ACCOUNT, api_key=f"sk-{number}")
        tried = TriedRepair(LeaveOutTool(f"{number:032x}"))
        memory.learn(scope("user-1", at=own), tried, yes)

    assert memory.repairs(scope("user-2")) == (NO_STREAM,)
    assert sum(map(len, kept_container(memory).values())) <= MAX_FOR_ONE_USER + 1


def test_oldest_repair_is_forgotten_first() -> None:
    """One that was met again is not the oldest any more."""
    memory = RepairMemory()
    tools = [LeaveOutTool(f"{number:032x}") for number in range(MAX_FOR_ONE_USER + 1)]

    for tool in (*tools[:-2], tools[0], *tools[-2:]):
        memory.learn(scope(), TriedRepair(tool), no)

    assert set(memory.repairs(scope())) == {*tools} - {tools[1]}


def test_user_who_is_known_displaces_nobody() -> None:
    """Only one more user makes the first be forgotten."""
    memory = RepairMemory()
    users = [f"user-{number}" for number in range(MAX_USERS)]
    for user in (*users, users[-1]):
        memory.learn(scope(user), TriedRepair(NO_SUMMARY), no)
    assert memory.repairs(scope(users[0])) == (NO_SUMMARY,)

    memory.learn(scope("one more"), TriedRepair(NO_SUMMARY), no)

    known = [bool(memory.repairs(scope(user))) for user in (*users[:2], "one more")]
    assert known == [False, True, True]


def test_number_of_remembered_users_is_bounded() -> None:
    memory = RepairMemory()

    for number in range(2 * MAX_USERS):
        memory.learn(scope("admin"), named(LeaveOutTool(f"{number:032x}")), yes)
        memory.learn(scope(f"user-{number}"), TriedRepair(NO_SUMMARY), no)

    assert len(kept_container(memory)) <= MAX_USERS
    assert len(memory.repairs(scope(""))) == MAX_FOR_ALL
