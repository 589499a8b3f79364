"""The rules of USER_LIMITS_JSON: what can be read, and whom they name."""

import json
from typing import Any

import pytest

from owui_administration.rules import LimitRule, UnreadableRule, read_limits, rules_of


def test_no_text_counts_nothing_and_an_empty_list_only_counts() -> None:
    """Whoever wants no limits gets no table."""
    assert read_limits(" \n") == (None, "")
    assert read_limits("[]") == ([], "")


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "an unknown key": ({"mony": 5}, "the key `mony` is unknown (known"),
    "an amount without a period": ({"money": 0}, "`per` is missing"),
    "tokens without a period": ({"tokens": 0}, "`per` is missing"),
    "a negative amount": ({"tokens": -1}, "`tokens` has to be at least 0"),
    "an amount that no total reaches": ({"tokens": 10**309}, "`tokens` has a wrong"),
    "a text as an amount": ({"money": "5"}, "`money` has a wrong value"),
    "true as an amount": ({"tokens": True}, "`tokens` has a wrong value"),
    "an unknown period": ({"per": "year"}, "`per` has to be 'day', 'week' or"),
    "a text as a list": ({"models": "gpt-5.2"}, "`models` has a wrong value"),
}


@pytest.mark.parametrize(("given", "mistake"), BROKEN.values(), ids=BROKEN)
def test_rule_that_cannot_be_read_closes_for_whom_it_names(
    given: dict[str, Any], mistake: str
) -> None:
    """No one else is touched, and administrators are told which key it is."""
    named = {"user": "ann", "group": "staff", "role": "user", **given}
    rules, problem = read_limits(json.dumps([{"role": "user"}, named]))

    first, second = rules or ()
    assert first == LimitRule(role="user")
    assert isinstance(second, UnreadableRule)
    assert (second.user, second.group, second.role) == ("ann", "staff", "user")
    assert problem.startswith(f"Rule 2 of USER_LIMITS_JSON: {mistake}")
    assert "Users that such a rule names get no answers" in problem


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "null",
        '{"money": 5}',
        "[5]",
        '[{"user": 5}]',
        '[{"role": "users", "money": 5, "per": "day"}]',
        '[{"money": 1e999, "per": "day"}]',
        '[{"money": NaN, "per": "day"}]',
        "[" * 500,
    ],
)
def test_unreadable_rule_blocks_everybody(text: str) -> None:
    rules, problem = read_limits(text)

    [rule] = rules or ()
    assert isinstance(rule, UnreadableRule)
    assert (rule.user, rule.group, rule.role) == ("", "", "")
    assert "An administrator has to correct it" in problem


def test_message_names_nine_rules() -> None:
    rules, problem = read_limits(json.dumps([5] * 10))

    assert rules is not None
    assert [type(rule) for rule in rules] == [UnreadableRule] * 10
    assert problem.count("USER_LIMITS_JSON") == 9


def test_text_that_is_not_json_is_told_with_its_place() -> None:
    """It is no rule that has a number."""
    _, problem = read_limits('[\n  {"money": 5, "per": "day"},\n]')

    told = "USER_LIMITS_JSON is not JSON (line 3, column 1). Users get no answers. "
    assert problem.startswith(told)


def test_all_rules_hold_that_name_somebody() -> None:
    """By id or address, by group, by role, or without any name."""
    every = LimitRule()
    ann = LimitRule(user="Ann@Example.com")
    staff = LimitRule(group="staff", role="user")
    rules = [every, ann, staff, LimitRule(user="ben"), LimitRule(role="admin")]
    names = {"u-1", "ann@example.com"}

    assert rules_of(rules, names, {"staff", "g-1"}, role="user") == [every, ann, staff]
    assert rules_of(rules, names, (), role="admin") == [every, ann, rules[-1]]


def test_last_rule_ends_the_list_for_whom_it_names() -> None:
    """So exceptions come first."""
    first = LimitRule(group="staff", last=True)
    rules = [first, LimitRule(money=1, per="day")]

    assert rules_of(rules, {"ann"}, {"staff"}, role="user") == [first]
    assert rules_of(rules, {"ben"}, set(), role="user") == [rules[1]]
