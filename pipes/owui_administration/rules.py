"""The rules of USER_LIMITS_JSON: whom they name, and how much they allow in a period.

Every rule that names a user holds, so the strictest wins. A rule with `last` ends the
list for those it names. Periods are those of UTC; a week begins on Monday.
"""

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openai_responses.json_input import as_mapping, load_json


class LimitRule(BaseModel):
    """Whom a rule names, how much they may use in each period, and what.

    Nobody named means everybody, None no limit. With `show` answers tell what is left.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    user: str = ""
    group: str = ""
    role: Literal["", "user", "admin"] = ""
    money: Annotated[float, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    per: Literal["", "day", "week", "month"] = ""
    models: list[str] | None = None
    efforts: list[str] | None = None
    tools: list[str] | None = None
    show: bool = False
    last: bool = False
    unreadable: bool = False


@lru_cache(maxsize=8)
def read_limits(text: str) -> tuple[Sequence[LimitRule] | None, str]:
    """Return the rules, and what is wrong with them; None if nothing is to be counted.

    A rule that cannot be read stays, and names as few users as it surely names.
    """
    if not text.strip():
        return None, ""
    try:
        rows = load_json(text)
    except ValueError:
        rows = None
    rules = [_read_rule(row) for row in (rows if isinstance(rows, list) else [rows])]
    unread = [str(place) for place, rule in enumerate(rules, 1) if rule.unreadable]
    if not unread:
        return rules, ""
    return rules, (
        f"Rule {', '.join(unread[:9])} of USER_LIMITS_JSON cannot be read, so users that "
        "it names get no answers. An administrator has to correct it in the valves of "
        'the filter, for example `[{"role": "user", "money": 5, "per": "month"}]`.'
    )


def _read_rule(row: object) -> LimitRule:
    try:
        rule = LimitRule.model_validate(row)
        if rule.per or (rule.money is None and rule.tokens is None):
            return rule
    except ValidationError:
        pass
    given = as_mapping(row)
    named = {k: v for k in ("user", "group") if isinstance(v := given.get(k), str)}
    role = given["role"] if given.get("role") in ("user", "admin") else ""
    return LimitRule.model_validate({**named, "role": role, "unreadable": True})


def rules_of(
    rules: Sequence[LimitRule],
    names: Collection[str],
    groups: Collection[str],
    role: str,
) -> list[LimitRule]:
    """Return the rules that name a user, who has these `names` and is in `groups`."""
    found = list[LimitRule]()
    for rule in rules:
        is_named = rule.user.lower() in ("", *map(str.lower, names))
        if is_named and rule.group in ("", *groups) and rule.role in ("", role):
            found.append(rule)
            if rule.last:
                break
    return found


PERIODS = {"day": "today", "week": "this week", "month": "this month"}
PERIOD_DAYS = {"day": 1, "week": 7, "month": 31}


def period_start(per: str, today: date) -> date:
    """Return the first day of the period that `today` is in."""
    if per == "month":
        return today.replace(day=1)
    return today - timedelta(today.weekday() if per == "week" else 0)


def next_start(per: str, today: date) -> date:
    """Return the first day of the period after the one that `today` is in."""
    next_day = period_start(per, today) + timedelta(PERIOD_DAYS[per])
    return period_start(per, next_day)


def longest_ago(today: date) -> str:
    """Return the first day of which a limit may ask."""
    return min(period_start(per, today) for per in PERIODS).isoformat()
