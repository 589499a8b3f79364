"""The `/usage` command: what people have used of this server's models.

Users see their own sums. Administrators also see those of all users, as a table or as
CSV: `/usage`, `/usage 7d`, `/usage 90d csv`. No model is asked.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import date, timedelta
from typing import NamedTuple

from owui_administration.rules import PERIODS, longest_ago, period_start
from owui_administration.usage_table import UsageRow, UsageTable
from shells.administration import CallFacts

_COMMAND = re.compile(r"/usage(?: +(?P<days>\d{1,3})d)?(?P<csv> +csv)?")
_USUAL_DAYS = 30
_MAX_SHOWN = 100
"""Lines of the table of all users."""
_MAX_LISTED = 5000
"""Lines of the CSV."""
_SUMS = ("US dollars", "requests", "input tokens", "cached input", "output tokens")
"""The dollars first: a phone shows the first columns."""
_HEAD_RULE = ["---"] + ["---:"] * len(_SUMS)
"""Below the head of a table in Markdown; numbers stand on the right."""


class UsageCommand(NamedTuple):
    """What a `/usage` asks for."""

    days: int = _USUAL_DAYS
    as_csv: bool = False


def read_command(text: str) -> UsageCommand | None:
    """Return what a `/usage` asks for; None for other texts."""
    match = _COMMAND.fullmatch(text)
    if match is None:
        return None
    days = int(match["days"] or _USUAL_DAYS)
    return UsageCommand(days, as_csv=match["csv"] is not None)


class UsageReport:
    """What `/usage` tells a user, and an administrator of all."""

    def __init__(self, table: UsageTable, facts: CallFacts, today: date) -> None:
        """Take who asks."""
        self._table = table
        self._facts = facts
        self._today = today

    async def lines(
        self, command: UsageCommand, left: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of the answer; raises what the database raises.

        `left` are the lines about what the user may still use.
        """
        groups = await self._own_rows()
        own_sums = [_sum_cells(name, rows) for name, rows in groups.items()]
        yield _table(("Your use (UTC)", *_SUMS), own_sums)
        yield "".join(f"\n- {line}" for line in left)
        if self._facts["role"] != "admin":
            return
        since = (self._today - timedelta(command.days - 1)).isoformat()
        rows = await self._table.all_rows(since, _MAX_LISTED)
        head = (f"All users since {since}", *_SUMS)
        all_sums = [_sum_cells(f"{row.user_id}, {row.model}", [row]) for row in rows]
        if command.as_csv:
            yield _csv(head, all_sums)
        else:
            yield _table(head, all_sums[:_MAX_SHOWN])

    async def _own_rows(self) -> dict[str, list[UsageRow]]:
        """Return the rows of each period, and of each model this month."""
        user_id = self._facts["user_id"]
        rows = await self._table.user_rows(user_id, longest_ago(self._today))
        groups: dict[str, list[UsageRow]] = {}
        for period, name in PERIODS.items():
            start = period_start(period, self._today).isoformat()
            groups[name] = [row for row in rows if row.day >= start]
        for row in groups["this month"]:
            groups.setdefault(f"this month, {row.model}", []).append(row)
        return groups


_Cells = Sequence[str | int]


def _sum_cells(name: str, rows: Sequence[UsageRow]) -> _Cells:
    """Return the cells of a line: a name, and what rows come to."""
    dollars = sum(row.money for row in rows) / 1_000_000
    return (
        name,
        f"{dollars:.4f}",
        sum(row.requests for row in rows),
        sum(row.input for row in rows),
        sum(row.cached for row in rows),
        sum(row.output for row in rows),
    )


def _table(head: _Cells, rows: Sequence[_Cells]) -> str:
    """Return a table in Markdown."""
    return "\n".join(_table_line(cells) for cells in (head, _HEAD_RULE, *rows))


def _csv(head: _Cells, rows: Sequence[_Cells]) -> str:
    """Return CSV in a block of code."""
    lines = [_csv_line(cells) for cells in (head, *rows)]
    return "\n".join(["```csv", *lines, "```"])


_NOT_PLAIN = re.compile(r"[^\w.,:/@+=*()' -]")
"""Whoever signs up writes an address: it must be neither Markdown nor a new line."""


def _table_line(cells: _Cells) -> str:
    """Return a line of a table in Markdown; numbers have commas."""
    texts: list[str] = []
    for cell in cells:
        text = f"{cell:,}" if isinstance(cell, int) else cell
        texts.append(_NOT_PLAIN.sub(" ", text))
    return f"| {' | '.join(texts)} |"


def _csv_line(cells: _Cells) -> str:
    """Return a line of CSV; a spreadsheet takes some beginnings for a formula."""
    cleaned = (_NOT_PLAIN.sub(" ", str(cell)).lstrip("=+-@ ") for cell in cells)
    return ",".join(f'"{cell}"' for cell in cleaned)
