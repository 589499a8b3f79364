"""The rules of USER_LIMITS_JSON: whom they name, and how much they allow in a period.

Every rule that names a user holds, so the strictest wins. A rule with `last` ends the
list for those it names. Periods are those of UTC; a week begins on Monday.
"""

from collections.abc import Collection, Sequence
from datetime import date, timedelta
from functools import lru_cache
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from openai_responses.json_input import as_mapping, as_text, load_json
from shells.valve_texts import describe_mistake, json_mistake

_MAX_COLUMN = 2**63 - 1
"""What a column of the table holds; a tenth more of some numbers is no float."""


class LimitRule(BaseModel):
    """Whom a rule names, how much they may use in each period, and what.

    No names mean everybody, None no limit. With `show` answers tell what is left.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    user: str = ""
    group: str = ""
    role: Literal["", "user", "admin"] = ""
    money: Annotated[float, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0, le=_MAX_COLUMN)] | None = None
    per: Literal["", "day", "week", "month"] = ""
    models: list[str] | None = None
    efforts: list[str] | None = None
    tools: list[str] | None = None
    show: bool = False
    last: bool = False


class UnreadableRule(LimitRule):
    """A rule with a mistake; it blocks those whom it surely names."""

    mistake: str


_MAX_NAMED = 9
"""Rules that the message names."""


@lru_cache(maxsize=8)
def read_limits(text: str) -> tuple[Sequence[LimitRule] | None, str]:
    """Return the rules of USER_LIMITS_JSON, and the message about errors in them.

    None: nothing is to be counted. A rule that cannot be read stays, and names as few
    users as it surely names.
    """
    if not text.strip():
        return None, ""
    rules: list[LimitRule]
    mistakes: list[str] = []
    whole = json_mistake(text)
    if whole:
        rules = [_unreadable_rule(None, whole)]
        mistakes.append(f"USER_LIMITS_JSON {whole}.")
    else:
        rows = load_json(text)
        rules = []
        for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
            mistake = ""
            try:
                rule = LimitRule.model_validate(row)
                has_amount = rule.money is not None or rule.tokens is not None
                if has_amount and not rule.per:
                    mistake = "`per` is missing (day, week or month)"
            except ValidationError as error:
                mistake = describe_mistake(error, LimitRule)
            if mistake:
                rule = _unreadable_rule(row, mistake)
                mistakes.append(f"Rule {number} of USER_LIMITS_JSON: {mistake}.")
            rules.append(rule)
    if not mistakes:
        return rules, ""
    named = " ".join(mistakes[:_MAX_NAMED])
    whom = "Users" if whole else "Users that such a rule names"
    problem = (
        f"{named} {whom} get no answers. An administrator has to "
        "correct it in the valves of the filter, for example "
        '`[{"role": "user", "money": 5, "per": "month"}]`.'
    )
    return rules, problem


def _unreadable_rule(row: object, mistake: str) -> UnreadableRule:
    """Return a rule that blocks those whom it surely names."""
    given = as_mapping(row)
    role = given.get("role")
    return UnreadableRule(
        user=as_text(given.get("user")),
        group=as_text(given.get("group")),
        role=role if role in ("user", "admin") else "",
        mistake=mistake,
    )


def rules_of(
    rules: Sequence[LimitRule],
    names: Collection[str],
    groups: Collection[str],
    role: str,
) -> list[LimitRule]:
    """Return the rules that name a user, who has these `names` and is in `groups`."""
    own_names = {name.lower() for name in names}
    own_rules: list[LimitRule] = []
    for rule in rules:
        is_user = not rule.user or rule.user.lower() in own_names
        is_member = not rule.group or rule.group in groups
        if is_user and is_member and rule.role in ("", role):
            own_rules.append(rule)
            if rule.last:
                break
    return own_rules


PERIODS = {"day": "today", "week": "this week", "month": "this month"}
PERIOD_DAYS = {"day": 1, "week": 7, "month": 31}


def period_start(per: str, today: date) -> date:
    """Return the first day of the period that `today` is in."""
    match per:
        case "month":
            return today.replace(day=1)
        case "week":
            return today - timedelta(today.weekday())
    return today


def next_start(per: str, today: date) -> date:
    """Return the first day of the period after the one that `today` is in."""
    next_day = period_start(per, today) + timedelta(PERIOD_DAYS[per])
    return period_start(per, next_day)


def longest_ago(today: date) -> str:
    """Return the first day of which a limit may ask."""
    return min(period_start(per, today) for per in PERIODS).isoformat()
