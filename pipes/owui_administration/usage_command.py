"""The `/usage` command: what people have used of this server's models.

Users see their own sums. Administrators also see those of all users, as a table or as
CSV: `/usage`, `/usage 7d`, `/usage 90d csv`. No model is asked.
"""

import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from datetime import date, timedelta

from openai_responses.json_input import JsonObject
from owui_administration.rules import PERIODS, longest_ago, period_start
from owui_administration.usage_table import ALL_ROWS, OWN_ROWS, UsageRow, UsageTable

_COMMAND = re.compile(r"/usage(?: +(\d{1,3})d)?( +csv)?")
_MOST_SHOWN, _MOST_LISTED = 100, 5000
_SUMS = ("US dollars", "requests", "input tokens", "cached input", "output tokens")
"""The dollars first: a phone shows the first columns."""
_RULE = ("---", *["---:"] * len(_SUMS))


def read_command(words: str) -> tuple[int, bool] | None:
    """Return the days that a `/usage` asks for, and whether as CSV; else None."""
    found = _COMMAND.fullmatch(words)
    return (int(found[1] or 30), bool(found[2])) if found else None


class UsageReport:
    """What `/usage` tells a user, and an administrator of all."""

    def __init__(self, table: UsageTable, user: JsonObject, today: date) -> None:
        """Take who asks, as the host tells it."""
        self._table = table
        self._user = user
        self._today = today

    async def lines(
        self, days: int, as_csv: bool, left: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of the answer; raises what the database raises."""
        own: list[_Cells] = [("Your use (UTC)", *_SUMS), _RULE]
        own += map(_sums, (await self._own_rows()).items())
        yield "\n".join(map(_line, own))
        yield "".join(f"\n- {line}" for line in left)
        if self._user.get("role") != "admin":
            return
        since = (self._today - timedelta(days - 1)).isoformat()
        rows = await self._table.rows(ALL_ROWS, day=since, most=_MOST_LISTED)
        cells: list[_Cells] = [(f"All users since {since}", *_SUMS), _RULE]
        cells += [_sums((f"{row.user_id}, {row.model}", [row])) for row in rows]
        if as_csv:
            del cells[1]
            yield "\n".join(["```csv", *(map(_csv_line, cells)), "```"])
        else:
            yield "\n".join(map(_line, cells[: _MOST_SHOWN + 2]))

    async def _own_rows(self) -> dict[str, list[UsageRow]]:
        """Return the rows of each period, and of each model this month."""
        user_id, day = str(self._user.get("id")), longest_ago(self._today)
        rows = await self._table.rows(OWN_ROWS, user_id=user_id, day=day)
        groups: dict[str, list[UsageRow]] = {}
        for period, name in PERIODS.items():
            start = period_start(period, self._today).isoformat()
            groups[name] = [row for row in rows if row.day >= start]
        for row in groups["this month"]:
            groups.setdefault(f"this month, {row.model}", []).append(row)
        return groups


_Cells = Sequence[str | int]


def _sums(group: tuple[str, Iterable[UsageRow]]) -> _Cells:
    """Return the cells of a line: a name, and what rows come to."""
    name, rows = group
    columns = zip(*(row[3:] for row in rows), strict=True)
    *counts, money = list(map(sum, columns)) or [0] * len(_SUMS)
    return name, f"{money / 1e6:.4f}", *counts


_NOT_PLAIN = re.compile(r"[^\w.,:/@+=*()' -]")
"""Whoever signs up writes an address: it must be neither Markdown nor a new line."""


def _line(cells: _Cells) -> str:
    texts = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
    return f"| {' | '.join(_NOT_PLAIN.sub(' ', text) for text in texts)} |"


def _csv_line(cells: _Cells) -> str:
    """Return a line of CSV; a spreadsheet takes some beginnings for a formula."""
    cleaned = (_NOT_PLAIN.sub(" ", str(cell)).lstrip("=+-@ ") for cell in cells)
    return ",".join(f'"{cell}"' for cell in cleaned)
