"""What the user of one call may use, and has used."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import NamedTuple

from openai_responses.clock import utc_today
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import format_money
from openai_responses.tool_kinds import TOOL_KINDS
from owui_administration.host import user_groups
from owui_administration.rules import (
    PERIOD_DAYS,
    PERIODS,
    LimitRule,
    UnreadableRule,
    longest_ago,
    next_start,
    period_start,
    read_limits,
    rules_of,
)
from owui_administration.usage_command import UsageReport, read_command
from owui_administration.usage_table import UsageRow, UsageTable
from owui_host.task_models import chosen_task_models
from shells.administration import (
    MILLIONTHS,
    UNKNOWN_CALL,
    CallFacts,
    ResponseCounts,
    SaveFile,
)
from shells.valve_texts import fits_pattern

_OVERDRAFT = 1.1
"""The share of a limit at which an answer ends that began below it."""
_MOST_AT_ONCE = 50
"""The answers that a limit is enough for, one of which may take so much of it."""
_NOT_READ = (
    "A rule about your usage is invalid, so you get no answers. An administrator has to "
    "correct USER_LIMITS_JSON."
)
_NO_PRICE = (
    "Your usage is limited in money, and the price of {} is not known. An "
    "administrator has to set it in CUSTOM_MODEL_PRICING_JSON."
)
_USED_UP = "Your limit of {limit} is used up: {used} so far. It resets on {start} at 00:00 UTC."
_MANY_AT_ONCE = (
    "of your answers under way may use up your limit of {limit}. Ask again when one is "
    "complete."
)
_NO_EFFORT = "This model has no effort that you may use. Choose another."


class _Budget(NamedTuple):
    """What a rule allows in its period, and what of it is used."""

    rule: LimitRule
    limit: float
    used: float
    as_text: Callable[[float], str]
    """Writes an amount, in dollars or tokens."""


@dataclass
class UserLimits:
    """What the rules allow the user of one call; without rules, everything."""

    rules: Sequence[LimitRule] = ()
    rows: list[UsageRow] = field(default_factory=list)
    """What was counted before, as far as a rule asks for it."""
    facts: CallFacts = field(default_factory=UNKNOWN_CALL.copy)
    table: UsageTable | None = None
    """Takes what is counted; None if nothing is."""
    problems: Sequence[str] = ()
    """What is wrong with the rules, for administrators."""
    today: date = field(default_factory=utc_today)
    effort_refusal: str = ""
    """Why no effort of the model may be used, once that is known."""
    has_given_model: bool = False
    """Whether an administrator chose the model: the one for tasks."""

    @property
    def is_admin(self) -> bool:
        """Whether an administrator asks."""
        return self.facts["role"] == "admin"

    @property
    def _is_counted(self) -> bool:
        """Whether the call costs the administrator: a user's own key may not."""
        return self.table is not None and not self.facts["user_pays"]

    @property
    def has_amounts(self) -> bool:
        """Whether a rule limits money or tokens."""
        return any(rule.per for rule in self.rules)

    def refusal(self, model: str, has_price: bool) -> str:
        if not self.is_admin and any(
            isinstance(rule, UnreadableRule) for rule in self.rules
        ):
            return _NOT_READ
        has_money = any(rule.money is not None for rule in self.rules)
        if self._is_counted and has_money and not has_price:
            return _NO_PRICE.format(model)
        under_way = self.table.under_way[self.facts["user_id"]] if self.table else 0
        reached = self._reached_limit(1) or self._reached_limit(
            1 - under_way / _MOST_AT_ONCE, f"{under_way} {_MANY_AT_ONCE}"
        )
        if reached:
            return reached
        if self.effort_refusal or self.has_given_model:
            return self.effort_refusal
        # A rule can name the model as the API does, or as the pipe lists it. But a caller
        # who asks for the mode pro has another model than the listed one.
        listed = self.facts["model"]
        resolved = resolve_model(listed)
        names = [model]
        asks_for_pro = model == f"{resolved.id}-pro" and not resolved.pro
        if not asks_for_pro:
            names.append(listed)
        for rule in self.rules:
            if rule.models is None:
                continue
            if not any(fits_pattern(name, rule.models) for name in names):
                allowed = ", ".join(map(_model_name, rule.models)) or "none"
                return (
                    f"{_model_name(model)} is not available to you. "
                    f"You may use: {allowed}."
                )
        return ""

    def forbidden_tools(self) -> list[str]:
        allowed = [rule.tools for rule in self.rules if rule.tools is not None]
        return [kind for kind in TOOL_KINDS if not _is_in_all(kind, allowed)]

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the next lower effort of those that the model knows, in their order.

        Else it is the lowest that is allowed. An effort that the model does not know
        counts as the highest.
        """
        allowed = [rule.efforts for rule in self.rules if rule.efforts is not None]
        usable = [effort for effort in known if _is_in_all(effort, allowed)]
        if not known or not allowed or asked in usable:
            return ""
        if not usable:
            self.effort_refusal = _NO_EFFORT
            return ""
        rank = known.index(asked) if asked in known else len(known)
        lower = [effort for effort in usable if known.index(effort) < rank]
        return lower[-1] if lower else usable[0]

    def count(self, model: str, counts: ResponseCounts, cost: float | None) -> str:
        """Count responses; return why the run ends, or an empty text."""
        if self._is_counted and self.table and counts.requests:
            row = UsageRow(
                user_id=self.facts["user_id"],
                day=self.today.isoformat(),
                model=model,
                requests=counts.requests,
                input=counts.input,
                cached=counts.cached,
                output=counts.output,
                money=round((cost or 0) * MILLIONTHS),
            )
            self.rows.append(row)
            self.table.add(row, counts.bought)
        return self._reached_limit(_OVERDRAFT)

    def _budgets(self) -> Iterator[_Budget]:
        """Yield what each rule limits; nothing where the call is not counted."""
        if not self._is_counted:
            return
        for rule in self.rules:
            start = period_start(rule.per, self.today).isoformat()
            rows = [row for row in self.rows if row.day >= start]
            if rule.money is not None:
                money = sum(row.money for row in rows) / MILLIONTHS
                yield _Budget(rule, rule.money, money, format_money)
            if rule.tokens is not None:
                tokens = sum(row.input + row.output for row in rows)
                yield _Budget(rule, rule.tokens, tokens, "{:,.0f} tokens".format)

    def _reached_limit(self, share: float, message: str = _USED_UP) -> str:
        """Return the message about a limit that is reached, or nothing.

        It is reached with this `share` of it. Of several the one with the longest
        period is named.
        """
        reached: list[_Budget] = []
        for budget in self._budgets():
            # A limit of 0 is reached from the beginning: it forbids.
            if budget.used >= budget.limit * share:
                reached.append(budget)
        if not reached:
            return ""
        rule, limit, used, as_text = max(
            reached, key=lambda budget: PERIOD_DAYS[budget.rule.per]
        )
        return message.format(
            limit=f"{as_text(limit)} a {rule.per}",
            used=as_text(used),
            start=next_start(rule.per, self.today),
        )

    def notices(self) -> list[str]:
        return self._remaining_lines(all_rules=False)

    def complaints(self) -> list[str]:
        if not self.is_admin:
            return []
        problems = list(self.problems)
        if self.table:
            problems.append(self.table.problem)
        return [problem for problem in problems if problem]

    def _remaining_lines(self, *, all_rules: bool) -> list[str]:
        """Return what is left of each limit: of all, or of those to be shown."""
        lines: list[str] = []
        for rule, limit, used, as_text in self._budgets():
            if rule.show or all_rules:
                left = as_text(max(0, limit - used)).removesuffix(" tokens")
                lines.append(f"{left} of {as_text(limit)} left {PERIODS[rule.per]}")
        return lines

    @property
    def is_counting(self) -> bool:
        return self.table is not None

    def usage_answer(
        self, text: str, save_file: SaveFile | None = None
    ) -> AsyncGenerator[str, None] | None:
        command = read_command(text)
        if self.table is None or command is None:
            return None
        report = UsageReport(self.table, self.facts, self.today, save_file)
        return report.lines(command, self._remaining_lines(all_rules=True))


def _model_name(model: str) -> str:
    """Return the name by which people choose a model; a pattern as it is."""
    return model if set("*?[") & set(model) else resolve_model(model).name


def _is_in_all(word: str, lists: Sequence[Sequence[str]]) -> bool:
    return all(word in allowed for allowed in lists)


async def read_user_limits(
    text: str, facts: CallFacts, table: UsageTable
) -> UserLimits:
    """Return what the user of a call may use, by the rules in `text`.

    Raises what the host's database raises.
    """
    all_rules, problem = read_limits(text)
    if all_rules is None:
        return UserLimits(facts=facts)
    today = utc_today()
    user_id = facts["user_id"]
    names = {user_id, facts["email"]}
    groups: set[str] = set()
    if any(rule.group for rule in all_rules):
        groups = await user_groups(user_id)
    rules = rules_of(all_rules, names, groups, facts["role"])
    rows: list[UsageRow] = []
    if any(rule.per for rule in rules) and not facts["user_pays"]:
        rows = await table.user_rows(user_id, longest_ago(today))
    # Where no one chose a model for a task, or the chosen one no longer exists, the host
    # takes the model that the client names.
    given_models = await chosen_task_models(facts["task"])
    return UserLimits(
        rules=rules,
        rows=rows,
        facts=facts,
        table=table,
        problems=[problem],
        today=today,
        has_given_model=facts["host_model"] in given_models,
    )
