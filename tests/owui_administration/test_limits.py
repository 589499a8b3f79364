"""What a user may still use, and what is told of it."""

import json
from datetime import date
from types import SimpleNamespace
from typing import Any

import pytest

from calls.facts import call_facts
from openai_responses.models.resolve import REASONING_EFFORTS, resolve_model
from owui_administration.host import user_groups
from owui_administration.limits import UserLimits, read_user_limits
from owui_administration.rules import LimitRule, longest_ago, period_start, read_limits
from owui_administration.usage_table import UsageRow, UsageTable
from shells.administration import NO_PURCHASES, Purchases, ResponseCounts
from stand_in.host import StandInHost
from stand_in.usage_database import UsageDatabase

TODAY = date(2026, 11, 25)  # a Wednesday


def rule(**given: Any) -> LimitRule:
    rules, problem = read_limits(json.dumps([given]))
    assert not problem
    assert rules
    return rules[0]


class Table(UsageTable):
    """Takes rows, and writes none; `stored` are those that a server had before."""

    stored: tuple[UsageRow, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.taken: list[UsageRow] = []
        self.bought: list[Purchases] = []

    def add(self, row: UsageRow, bought: Purchases = NO_PURCHASES) -> None:
        self.taken.append(row)
        self.bought.append(bought)

    async def user_rows(self, user_id: str, since: str) -> list[UsageRow]:
        return list(self.stored)


def row(day: str, dollars: float = 0, tokens: int = 0) -> UsageRow:
    micro = round(dollars * 1e6)
    return UsageRow("u", day, "gpt-5.2", 1, tokens, 0, 0, micro)


def limits(
    *rules: LimitRule, rows: tuple[UsageRow, ...] = (), **given: Any
) -> UserLimits:
    given = {"table": Table(), "today": TODAY, **given}
    return UserLimits(rules, list(rows), **given)


def refusal(limited: UserLimits, model: str = "gpt-5.2") -> str:
    return limited.refusal(model, has_price=True)


def reached(limited: UserLimits) -> str:
    return limited.count("gpt-5.2", ResponseCounts(0, 0, 0, 0), 0)


@pytest.mark.parametrize(
    ("per", "today", "start", "begins"),
    [
        ("day", "2026-12-31", "2026-12-31", "2027-01-01"),
        ("week", "2026-11-23", "2026-11-23", "2026-11-30"),
        ("week", "2027-01-03", "2026-12-28", "2027-01-04"),
        ("month", "2028-02-29", "2028-02-01", "2028-03-01"),
        ("month", "2026-12-01", "2026-12-01", "2027-01-01"),
    ],
)
def test_periods_begin_with_day_week_or_month(
    per: str, today: str, start: str, begins: str
) -> None:
    now = date.fromisoformat(today)
    limited = limits(rule(tokens=0, per=per), today=now)

    assert period_start(per, now).isoformat() == start
    assert f"resets on {begins} at 00:00 UTC" in refusal(limited)
    assert longest_ago(now) <= start


def test_limit_is_used_up_when_it_is_reached() -> None:
    five = rule(money=5, per="month")
    before = (row("2026-10-31", 50), row("2026-11-01", 2), row("2026-11-25", 2.99))

    assert not refusal(limits(five, rows=before))
    assert refusal(limits(five, rows=(*before, row("2026-11-25", 0.01)))) == (
        "Your limit of $5.00 a month is used up: $5.00 so far. It resets on "
        "2026-12-01 at 00:00 UTC."
    )
    assert refusal(limits(rule(money=0, per="month")))  # none at all


def test_the_limit_that_holds_longest_is_named() -> None:
    """So no one waits for tomorrow in vain."""
    rows = (row("2026-11-25", 9, 2000),)
    limited = limits(
        rule(tokens=1000, per="day"), rule(money=1, tokens=5000, per="week"), rows=rows
    )

    assert "$1.00 a week is used up: $9.00" in refusal(limited)


def test_answer_ends_a_tenth_above_its_limit() -> None:
    """What it has used itself counts."""
    table = Table()
    limited = limits(rule(tokens=1000, per="day"), table=table)

    for tokens, ended in ((1000, False), (99, False), (1, True)):
        counts = ResponseCounts(1, tokens, 0, 0)
        assert bool(limited.count("gpt-5.2", counts, 0.5)) is ended

    assert [row[2:] for row in table.taken][1] == ("gpt-5.2", 1, 99, 0, 0, 500_000)


def test_response_without_a_known_price_costs_nothing() -> None:
    """Its tokens count; what is counted without a request is no row."""
    table = Table()
    limited = limits(table=table)

    limited.count("gpt-5.2", ResponseCounts(2, 70, 30, 7, Purchases(images=3)), None)
    limited.count("gpt-5.2", ResponseCounts(0, 0, 0, 0), 0)

    day = TODAY.isoformat()
    assert table.taken == [UsageRow("", day, "gpt-5.2", 2, 70, 30, 7, 0)]
    assert table.bought == [Purchases(images=3)]


@pytest.mark.parametrize(
    ("given", "facts", "has_price", "is_refused"),
    [
        ({"money": 5, "per": "day"}, {}, False, True),
        ({"money": 5, "per": "day"}, {"role": "admin"}, False, True),
        ({"money": 5, "per": "day"}, {}, True, False),
        ({"money": 5, "per": "day"}, {"user_pays": True}, False, False),
        ({"tokens": 5, "per": "day"}, {}, False, False),
    ],
)
def test_money_cannot_be_limited_without_a_price(
    given: dict[str, Any], facts: dict[str, Any], *, has_price: bool, is_refused: bool
) -> None:
    limited = limits(rule(**given), facts=call_facts(**facts))

    assert limited.refusal("llama", has_price) == (
        "Your usage is limited in money, and the price of llama is not known. An "
        "administrator has to set it in CUSTOM_MODEL_PRICING_JSON."
        if is_refused
        else ""
    )


@pytest.mark.parametrize("role", ["user", "admin"])
def test_invalid_rule_stops_users_and_is_told_to_administrators(role: str) -> None:
    """As is a database that takes nothing."""
    table = Table()
    table.problem = "Usage is not counted."
    rules, problem = read_limits('[{"money": 5}]')
    facts = call_facts(role=role)
    limited = limits(*rules or (), facts=facts, table=table, problems=[problem, ""])

    assert ("is invalid, so you get no answers" in refusal(limited)) is (role == "user")
    told = [problem, "Usage is not counted."] if role == "admin" else []
    assert limited.complaints() == told
    assert limits(facts=facts, table=None).complaints() == []


def test_remaining_amount_is_shown_where_the_rule_says_so() -> None:
    rows = (row("2026-11-25", 1.5, 300),)
    limited = limits(
        rule(money=5, per="month", show=True),
        rule(tokens=200, per="day", show=True),
        rule(tokens=1000, per="week"),
        rows=rows,
    )

    assert limited.notices() == [
        "$3.50 of $5.00 left this month",
        "0 of 200 tokens left today",
    ]


def test_own_key_has_no_amounts() -> None:
    """It is paid by somebody else, so nothing is counted."""
    own = call_facts(has_own_key=True, user_pays=True)
    table = Table()
    limited = limits(rule(money=0, per="day", show=True), facts=own, table=table)

    assert not limited.count("gpt-5.2", ResponseCounts(1, 5, 0, 5), 1)
    assert (refusal(limited), limited.notices(), table.taken) == ("", [], [])


@pytest.mark.parametrize(
    ("name", "patterns", "allowed"),
    [
        ("gpt-6-luna-high", ["gpt-6-luna"], True),
        ("gpt-6.1-sol", ["gpt-6-luna", "GPT-6.1-*"], True),
        ("gpt-6.1-sol", ["gpt-6-luna"], False),
        ("gpt-6.1-sol-pro", ["gpt-6.1-sol"], False),
        ("gpt-6.1-sol-pro", ["gpt-6.1-sol-pro"], True),
        ("gpt-6.1-sol-pro-high", ["gpt-6.1-sol-pro-high"], True),
        ("gpt-6.1-sol", [], False),
    ],
)
def test_rule_restricts_models(name: str, patterns: list[str], allowed: bool) -> None:
    """By its id or as it is listed; the mode pro has a name of its own."""
    model = resolve_model(name)
    limited = limits(rule(models=patterns), facts=call_facts(model=name))

    reason = refusal(limited, f"{model.id}-pro" if model.pro else model.id)

    assert ("is not available to you" not in reason) is allowed
    assert ("You may use: none." in reason) is (patterns == [])


def test_pro_that_a_caller_asks_for_is_not_the_listed_model() -> None:
    """Where `caller_may_set` opens `reasoning.mode`, a caller can ask for it."""
    facts = call_facts(model="gpt-6.1-sol")
    limited = limits(rule(models=["gpt-6.1-sol"]), facts=facts)

    assert not refusal(limited, "gpt-6.1-sol")
    told = "GPT-6.1 Sol pro is not available to you. You may use: GPT-6.1 Sol."
    assert refusal(limited, "gpt-6.1-sol-pro") == told


_LUNA = "openai_responses.gpt-6-luna"
_TITLES = "task.model.external"
_COMPACTION = "chat.context_compaction.model"


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("task", "setting", "model", "allowed"),
    [
        ("title_generation", _TITLES, _LUNA, True),
        ("title_generation", "task.model.default", _LUNA, True),
        ("title_generation", "", _LUNA, False),
        # The host takes the model that the client names if the chosen one is gone.
        ("title_generation", _TITLES, "openai_responses.gpt-6.1-sol", False),
        ("context_compaction", _COMPACTION, _LUNA, True),
        ("context_compaction", _TITLES, _LUNA, False),
        ("moa_response_generation", _TITLES, _LUNA, False),
        ("memory_review", _TITLES, _LUNA, False),
        ("a_task_of_tomorrow", _TITLES, _LUNA, False),
        ("", _TITLES, _LUNA, False),
    ],
)
async def test_tasks_may_be_done_by_the_model_that_an_administrator_chose(
    host: StandInHost, task: str, setting: str, model: str, *, allowed: bool
) -> None:
    """Otherwise the client names it, with a prompt of its own."""
    host.settings.values[setting] = _LUNA
    name = model.partition(".")[2]
    facts = call_facts(user_id="u", model=name, host_model=model, task=task)
    limited = await read_user_limits('[{"models": ["gpt-5.2"]}]', facts, Table())

    assert ("is not available to you" not in refusal(limited, name)) is allowed


@pytest.mark.asyncio
async def test_task_model_may_be_one_of_the_workspace(host: StandInHost) -> None:
    """The pipe is asked for the model that it is made of."""
    host.settings.values[_TITLES] = "titles"
    host.models.rows["titles"] = SimpleNamespace(base_model_id=_LUNA)
    facts = call_facts(
        user_id="u", model="gpt-6-luna", host_model=_LUNA, task="title_generation"
    )
    limited = await read_user_limits('[{"models": ["gpt-5.2"]}]', facts, Table())

    assert refusal(limited, "gpt-6-luna") == ""


@pytest.mark.parametrize(
    ("model", "asked", "allowed", "sent"),
    [
        ("gpt-5.2", "high", [["low", "high"]], None),
        ("gpt-5.2", "high", [["none", "low", "medium"]], "medium"),
        ("gpt-5.2", "high", [["low", "medium"], ["none", "low"]], "low"),
        ("gpt-5.2", "none", [["medium", "high"]], "medium"),
        ("gpt-5.2", "xhigh", [["max", "xhigh"]], None),
        ("gpt-5.2", "max", [["low", "high"]], "high"),
        ("gpt-4.1", None, [["low"]], None),
        ("gpt-5.2", "max", [], None),
    ],
)
def test_effort_is_lowered_to_an_allowed_one(
    model: str, asked: str | None, allowed: list[list[str]], sent: str | None
) -> None:
    others = [rule(efforts=efforts) for efforts in allowed]
    limited = limits(rule(tools=[]), *others)

    assert effort_of(limited, asked, model) == (sent or "")
    assert refusal(limited, model) == ""


@pytest.mark.parametrize("others", [["low"], []])
def test_model_without_an_allowed_effort_is_refused(others: list[str]) -> None:
    limited = limits(rule(efforts=others), rule(efforts=["high"]))

    assert effort_of(limited, "high", "gpt-5.2") == ""
    assert "no effort that you may use" in refusal(limited)


def effort_of(limited: UserLimits, asked: str | None, name: str) -> str:
    facts = resolve_model(name).facts
    known = facts.efforts or REASONING_EFFORTS if asked or facts.reasoning else ()
    return limited.nearest_allowed_effort(asked, known)


def test_hosted_tools_are_those_that_every_rule_allows() -> None:
    """The model is taken for one that lacks the others."""
    limited = limits(
        rule(tools=["web_search", "mcp"]),
        rule(tools=["web_search", "file_search"]),
        rule(efforts=["low"]),
    )

    closed = limited.forbidden_tools()

    assert {"file_search", "mcp", "code_interpreter", "image_generation"} <= set(closed)
    assert "web_search" not in closed
    assert "web_search" in limits(rule(tools=[])).forbidden_tools()


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"group": "staff"}, True),
        ({"group": "id of staff"}, True),
        ({"group": "pupils"}, False),
        ({"user": "u"}, True),
        ({"user": "ANN@example.com"}, True),
        ({"user": "ben@example.com"}, False),
        ({"role": "user"}, True),
        ({"role": "admin"}, False),
    ],
)
@pytest.mark.asyncio
async def test_rules_name_users_by_what_the_host_knows(
    given: dict[str, Any], host: StandInHost, *, named: bool
) -> None:
    host.groups.members = {"staff": {"u"}, "pupils": {"other"}}
    facts = call_facts(user_id="u", email="Ann@Example.com", role="user")

    limited = await read_user_limits(
        json.dumps([{**given, "models": []}]), facts, Table()
    )

    assert ("is not available to you" in refusal(limited)) is named


@pytest.mark.asyncio
async def test_groups_of_a_host_without_groups_in_groups(host: StandInHost) -> None:
    async def groups_of(user_id: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(id=f"g of {user_id}", name="staff")]

    groups = SimpleNamespace(get_groups_by_member_id=groups_of)
    host.provide("models.groups", Groups=groups)

    assert await user_groups("u") == {"g of u", "staff"}


@pytest.mark.asyncio
async def test_empty_text_counts_nothing_and_a_list_counts(host: StandInHost) -> None:
    for text, is_counting in ((" ", False), ("[]", True)):
        limited = await read_user_limits(text, call_facts(user_id="u"), Table())
        assert limited.is_counting is is_counting
        assert (limited.usage_answer("/usage") is not None) is is_counting
        assert limited.usage_answer("What is my /usage?") is None


@pytest.mark.asyncio
async def test_usage_tells_what_is_left_of_every_limit(database: UsageDatabase) -> None:
    hidden = rule(tokens=1000, per="day")
    answer = limits(hidden, table=UsageTable()).usage_answer("/usage")

    assert answer
    lines = [line async for line in answer]
    assert "\n- 1,000 of 1,000 tokens left today" in lines


@pytest.mark.parametrize(
    ("given", "facts", "rows_read"),
    [
        ({"money": 5, "per": "month"}, {}, True),
        ({"tokens": 5, "per": "day", "show": True}, {}, True),
        ({"models": ["gpt-5.2"]}, {}, False),
        ({"money": 5, "per": "month"}, {"has_own_key": True, "user_pays": True}, False),
    ],
    ids=["counted", "counted and shown", "a list of models", "the user pays"],
)
@pytest.mark.asyncio
async def test_use_of_earlier_runs_is_read_for_rules_that_count(
    given: dict[str, Any], facts: dict[str, Any], rows_read: bool, host: StandInHost
) -> None:
    """A server that was started again knows what was used before.

    Groups are read for rules that name one.
    """
    table = Table()
    table.stored = (row("2026-11-24", dollars=4),)
    asked = call_facts(**facts)

    limited = await read_user_limits(json.dumps([given]), asked, table)

    assert list(limited.rows) == list(table.stored) * rows_read
    assert host.groups.users_asked == []


@pytest.mark.asyncio
async def test_answers_at_once_know_what_each_other_has_used(
    database: UsageDatabase,
) -> None:
    """Else ten agents that run at once would each use up the whole limit."""
    table = UsageTable()
    rules = json.dumps([{"tokens": 1000, "per": "day"}])
    first, second = [
        await read_user_limits(rules, call_facts(user_id="u-1"), table) for _ in "12"
    ]
    other = await read_user_limits(rules, call_facts(user_id="u-2"), table)

    for limited, tokens, ended in (
        (first, 600, False),
        (second, 499, False),
        (first, 1, True),
        (other, 1000, False),
    ):
        counts = ResponseCounts(1, tokens, 0, 0)
        assert bool(limited.count("gpt-5.2", counts, None)) is ended
    assert refusal(second) == refusal(first)
    await table.flush()
