"""What the user of one call may use, and has used."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from fnmatch import fnmatchcase
from typing import NamedTuple

from openai_responses.clock import utc_today
from openai_responses.json_input import JsonObject
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import format_money
from owui_administration.host import has_task_model, user_groups
from owui_administration.rules import (
    PERIOD_DAYS,
    PERIODS,
    LimitRule,
    longest_ago,
    next_start,
    period_start,
    read_limits,
    rules_of,
)
from owui_administration.usage_command import UsageReport, read_command
from owui_administration.usage_table import OWN_ROWS, UsageRow, UsageTable

_OVERDRAFT = 1.1
"""The share of a limit at which an answer ends that began below it."""
_HOSTED_TYPES = (
    *("web_search", "file_search", "code_interpreter", "image_generation", "mcp"),
    *("shell", "local_shell", "apply_patch", "computer", "programmatic_tool_calling"),
)
"""Types of tools that OpenAI runs, by how they begin."""
_NOT_READ = (
    "A rule of USER_LIMITS_JSON about you cannot be read. Tell an administrator."
)
_NO_PRICE = (
    "Your use is limited in money, and the price of {} is not known. An administrator "
    "has to set it in CUSTOM_MODEL_PRICING_JSON."
)


class _Budget(NamedTuple):
    rule: LimitRule
    most: float
    used: float
    text: Callable[[float], str]


@dataclass
class UserLimits:
    """What the rules allow the user of one call; without rules, everything."""

    rules: Sequence[LimitRule] = ()
    rows: list[UsageRow] = field(default_factory=list)
    """What was counted before, as far as a rule asks for it."""
    facts: JsonObject = field(default_factory=dict)
    """Those of the call (see `Filter.begin`)."""
    table: UsageTable | None = None
    """Takes what is counted; None if nothing is."""
    problems: Sequence[str] = ()
    """What is wrong with the rules, for administrators."""
    today: date = field(default_factory=utc_today)
    refused: str = ""
    is_given_model: bool = False
    """Whether an administrator chose the model: the one for tasks."""

    @property
    def _user(self) -> JsonObject:
        user: JsonObject = self.facts.get("user") or {}
        return user

    @property
    def is_admin(self) -> bool:
        """Whether an administrator asks."""
        return self._user.get("role") == "admin"

    @property
    def _counts(self) -> bool:
        return self.table is not None and not self.facts.get("has_own_key")

    @property
    def has_amounts(self) -> bool:
        """Whether a rule limits money or tokens."""
        return any(rule.per for rule in self.rules)

    def refusal(self, model: str, has_price: bool) -> str:
        """Return why the request of a call is not sent, or nothing.

        `model` is the API's name, with `-pro` for the mode.
        """
        if not self.is_admin and any(r.unreadable for r in self.rules):
            return _NOT_READ
        has_money = any(rule.money is not None for rule in self.rules)
        if self._counts and has_money and not has_price:
            return _NO_PRICE.format(model)
        return self._used_up(1) or self.refused or self._wrong_model(model)

    def _wrong_model(self, model: str) -> str:
        """Return why a model is not allowed.

        A caller who asks for the mode pro has another model than the listed one.
        """
        names, listed = [model.lower()], str(self.facts.get("model"))
        resolved = resolve_model(listed)
        if resolved.pro or model != f"{resolved.id}-pro":
            names.append(listed.lower())
        for known in () if self.is_given_model else self._lists("models"):
            if not any(fnmatchcase(name, p.lower()) for name in names for p in known):
                listed = ", ".join(known) or "none"
                return f"{model} is not for you. You may use: {listed}."
        return ""

    def _lists(self, name: str) -> list[list[str]]:
        """Return what each rule allows of something, if it limits that."""
        lists = (getattr(rule, name) for rule in self.rules)
        return [one for one in lists if one is not None]

    def forbidden_tools(self) -> list[str]:
        """Return the types of OpenAI's tools that are not offered."""
        tools = self._lists("tools")
        return [one for one in _HOSTED_TYPES if not all(one in t for t in tools)]

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the effort to send instead of one that is not allowed, or nothing.

        It is the next lower one of those that the model knows, in their order.
        """
        allowed = self._lists("efforts")
        usable = [one for one in known if all(one in some for some in allowed)]
        if not known or not allowed or asked in usable:
            return ""
        if not usable:
            self.refused = "This model has no effort that you may use. Choose another."
            return ""
        rank = [*known, asked].index
        lower = [one for one in usable if rank(one) < rank(asked)]
        return lower[-1] if lower else usable[0]

    def count(
        self, model: str, counts: tuple[int, int, int, int], cost: float | None
    ) -> str:
        """Count responses (see `Account.count_responses`)."""
        if self._counts and self.table and counts[0]:
            user_id, day = str(self._user.get("id")), self.today.isoformat()
            row = UsageRow(user_id, day, model, *counts, round((cost or 0) * 1e6))
            self.rows.append(row)
            self.table.add(row)
        return self._used_up(_OVERDRAFT)

    def _budgets(self) -> Iterator[_Budget]:
        for rule in self.rules if self._counts else ():
            start = period_start(rule.per, self.today).isoformat()
            rows = [row for row in self.rows if row.day >= start]
            if rule.money is not None:
                used = sum(row.money for row in rows) / 1e6
                yield _Budget(rule, rule.money, used, format_money)
            if rule.tokens is not None:
                used = sum(row.input + row.output for row in rows)
                yield _Budget(rule, rule.tokens, used, "{:,.0f} tokens".format)

    def _used_up(self, share: float) -> str:
        """Return the sentence about a limit that is reached; the longest one counts."""
        reached = [one for one in self._budgets() if one.used >= one.most * share]
        if not reached:
            return ""
        longest = max(reached, key=lambda one: PERIOD_DAYS[one.rule.per])
        rule, most, used, text = longest
        return (
            f"Your limit of {text(most)} a {rule.per} is used up: {text(used)} so far. "
            f"It begins anew on {next_start(rule.per, self.today)} at 00:00 UTC."
        )

    def notices(self) -> list[str]:
        """Return what stands above an answer: for administrators what is wrong.

        The last one is read by all: what is left, if a rule wants it shown.
        """
        uncounted = self.table.problem if self.table else ""
        problems = (*self.problems, uncounted) if self.is_admin else ()
        return [*filter(None, problems), *self._left(all_rules=False)]

    def _left(self, *, all_rules: bool) -> list[str]:
        return [
            f"{text(max(0, most - used))} of {text(most)} left {PERIODS[rule.per]}"
            for rule, most, used, text in self._budgets()
            if rule.show or all_rules
        ]

    def usage_answer(self, text: str) -> AsyncGenerator[str, None] | None:
        """Return the lines that answer `/usage`; None for other texts."""
        asked = read_command(text) if self.table else None
        if asked is None or self.table is None:
            return None
        report = UsageReport(self.table, self._user, self.today)
        return report.lines(*asked, self._left(all_rules=True))


async def read_user_limits(
    text: str, facts: JsonObject, table: UsageTable
) -> UserLimits:
    """Return what the user of a call may use, by the rules in `text`.

    Raises what the host's database raises.
    """
    every, problem = read_limits(text)
    if every is None:
        return UserLimits(facts=facts)
    user, today = facts.get("user") or {}, utc_today()
    user_id, names = str(user.get("id")), {str(user.get(k)) for k in ("id", "email")}
    groups = await user_groups(user_id) if any(rule.group for rule in every) else ()
    rules = rules_of(every, names, groups, str(user.get("role")))
    rows = list[UsageRow]()
    if any(rule.per for rule in rules) and not facts.get("has_own_key"):
        rows = await table.rows(OWN_ROWS, user_id=user_id, day=longest_ago(today))
    given = await _is_given_model(str(facts.get("task") or ""))
    return UserLimits(rules, rows, facts, table, [problem], today, is_given_model=given)


async def _is_given_model(task: str) -> bool:
    """Say whether the host does a task with the model that an administrator chose.

    Without one, and to merge answers, it takes the model that the client names.
    """
    return task not in ("", "moa_response_generation") and await has_task_model()
