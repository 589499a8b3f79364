"""Names in the rules that no one has."""

import json
from typing import Any

import pytest

from calls.facts import call_facts
from owui_administration import names
from owui_administration.filter import Filter
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

ADMIN = {"id": "admin", "role": "admin"}
ENTRIES = json.dumps([{"groups": ["Staf"], "api_key": "sk-canary"}])


@pytest.fixture(autouse=True)
def group(host: StandInHost) -> None:
    host.groups.members["Staff"] = set()


async def lines_above(made: Filter, user: dict[str, str] = ADMIN) -> list[str]:
    facts = call_facts(
        user_id=user["id"],
        role=user["role"],
        model="gpt-5.2",
        base_url="https://a.example/v1",
    )
    return (await made.begin(facts)).limits.complaints()


def ruled(endpoints: str = "", *rules: Any) -> Filter:
    made = Filter()
    text = json.dumps(rules) if rules else ""
    made.valves = made.Valves(USER_LIMITS_JSON=text, ENDPOINTS_JSON=endpoints)
    return made


async def test_known_names_are_not_reported() -> None:
    rules = [{"group": "Staff"}, {"group": "id of Staff"}, {"user": "u-1"}]

    assert await lines_above(ruled("", *rules, {"user": "Ann@example.com"})) == []


async def test_unknown_names_are_reported_to_administrators() -> None:
    """Users do not learn which names the rules have; endpoints need no rules."""
    made = ruled(ENTRIES, {"group": "staff"}, {"user": "head@example.com"})

    [line] = await lines_above(made)
    [of_endpoints] = await lines_above(ruled(ENTRIES))
    [mistake] = await lines_above(ruled("", {"money": 5}))

    assert "no group or user named staff, Staf, head@example.com, but" in line
    assert "named Staf, but" in of_endpoints
    assert "canary" not in of_endpoints
    assert mistake.startswith("Rule 1 of USER_LIMITS_JSON: `per` is missing")
    assert await lines_above(made, {"id": "u-1", "role": "user"}) == []


async def test_names_that_cannot_be_looked_up_cost_no_answer(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are advice; the next answer looks again."""
    made = ruled("", {"user": "head@example.com"})

    async def locked(_: str) -> Any:
        raise RuntimeError("database is locked")

    with monkeypatch.context() as now:
        now.setattr(host.users, "get_user_by_id", locked)
        assert await lines_above(made) == []
    assert len(await lines_above(made)) == 1


async def test_names_are_looked_up_once_a_minute(
    host: StandInHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(names, "monotonic_seconds", lambda: now[0])
    made = ruled(ENTRIES)
    await lines_above(made)
    asked = len(host.groups.asked)

    assert await lines_above(made) != []
    assert len(host.groups.asked) == asked
    host.groups.members["Staf"] = set()
    now[0] += 61
    assert await lines_above(made) == []
    made.valves = made.Valves(ENDPOINTS_JSON=ENTRIES.replace("Staf", "Stuff"))
    assert len(await lines_above(made)) == 1


async def test_thousands_of_names_cost_a_bounded_time(host: StandInHost) -> None:
    rules = [{"group": f"group {number}"} for number in range(3000)]

    [line] = await lines_above(ruled("", *rules))

    assert len(line) < 400
    assert len(host.groups.asked) <= 200


async def test_thousands_of_users_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def has_user(name: str) -> bool:
        asked.append(name)
        return True

    monkeypatch.setattr(names, "has_user", has_user)
    rules = [{"user": f"u-{number}@example.com"} for number in range(3000)]

    assert await lines_above(ruled("", *rules)) == []
    assert len(asked) <= 200
