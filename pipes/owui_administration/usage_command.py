"""The `/usage` command: what the models of this server cost, and what that bought.

Users see what they have used. Administrators see all users, or one: `/usage`,
`/usage 90d`, `/usage ann@school.example`, `/usage csv`. No model is asked.
"""

import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from datetime import date, timedelta
from typing import NamedTuple

from owui_administration.host import find_user_id
from owui_administration.rules import PERIODS, longest_ago, period_start
from owui_administration.usage_picture import day_picture, user_picture
from owui_administration.usage_table import UsageRow, UsageTable
from owui_chat.wording import USAGE_HEADING, plural
from shells.administration import MILLIONTHS, CallFacts, Purchases, SaveFile

_COMMAND = "/usage"
_DAYS = re.compile(r"([1-9]\d{0,2})d", re.ASCII)
_USUAL_DAYS = 30
_MAX_SHOWN = 100
"""Lines of a table."""
_MAX_READ = 1000
"""Users with their models, after a table and a picture of the dearest."""
_MAX_LISTED = 5000
"""Lines of the CSV in a chat."""
_MAX_IN_FILE = 100_000
_SUMS = ("US dollars", "requests", "input tokens", "cached input", "output tokens")
"""The dollars first: a phone shows the first columns."""
_WEEK = 7
_FEW_REQUESTS = 20
"""The share of a week with fewer of them is chance."""

_UNKNOWN_WORD = (
    "`/usage` does not know the word “{}”. It knows:\n\n"
    "- `/usage`: the last 30 days\n"
    "- `/usage 90d`: as many days as you say, up to 999\n"
    "- `/usage csv`: a file for a spreadsheet; also `/usage 90d csv`\n"
    "- `/usage ann@school.example`: what one user has used (administrators)"
)
_OWN_ALONE = "Only administrators see what other users have used."
_NO_USER = "Open WebUI has no user with the address {}."
_NOTHING = "Nothing was counted in these days."
_WORDS = (
    "A request is one call of a model: an answer can take several. A token is about four "
    "letters. The input is all that the model reads: the whole chat each time. Cached "
    "input is a part of it that the model's server still had, and costs less."
)
_NOT_STORED = "Open WebUI did not store the file, so here is its beginning:\n"


_Cells = Sequence[str | int]
"""A line of a table."""


class UsageCommand(NamedTuple):
    """What a `/usage` asks for."""

    days: int = _USUAL_DAYS
    as_csv: bool = False
    address: str = ""
    """Of the user it is about."""
    unknown: str = ""
    """The first word that says nothing."""


def read_command(text: str) -> UsageCommand | None:
    """Return what a `/usage` asks for; None for other texts."""
    first, *words = text.lower().split() or [""]
    if first != _COMMAND:
        return None
    command = UsageCommand()
    for word in words:
        days = _DAYS.fullmatch(word)
        if days:
            command = command._replace(days=int(days[1]))
        elif word == "csv":
            command = command._replace(as_csv=True)
        elif "@" in word:
            command = command._replace(address=word)
        else:
            return UsageCommand(unknown=word[:40])
    return command


class UsageReport:
    """What `/usage` tells a user, and an administrator of all.

    `save_file` stores a file for the page; without one a program reads the answer.
    """

    def __init__(
        self,
        table: UsageTable,
        facts: CallFacts,
        today: date,
        save_file: SaveFile | None = None,
    ) -> None:
        self._table = table
        self._facts = facts
        self._today = today
        self._save_file = save_file

    async def lines(
        self, command: UsageCommand, left: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of the answer; raises what the database raises.

        `left` are the lines about what the user may still use.
        """
        yield f"{USAGE_HEADING}\n"
        if command.unknown:
            yield _UNKNOWN_WORD.format(_plain(command.unknown))
            return
        is_admin = self._facts["role"] == "admin"
        user_id = self._facts["user_id"]
        is_own = command.address in {"", self._facts["email"].lower()}
        if not is_own and not is_admin:
            yield _OWN_ALONE
            return
        if not is_own:
            user_id = await find_user_id(command.address)
            if not user_id:
                yield _NO_USER.format(_plain(command.address))
                return
        since = self._today - timedelta(command.days - 1)
        if is_admin and not command.address:
            part = self._of_all(since, as_csv=command.as_csv)
        else:
            part = self._of_user(user_id, command, since)
        async with aclosing(part):
            async for line in part:
                yield line
        if command.as_csv and self._save_file:
            return
        if is_own:  # each period, and each model this month
            first = longest_ago(self._today)
            own_rows = await self._table.user_rows(self._facts["user_id"], first)
            groups: dict[str, list[UsageRow]] = {}
            for period, name in PERIODS.items():
                start = period_start(period, self._today).isoformat()
                groups[name] = [row for row in own_rows if row.day >= start]
            for row in groups["this month"]:
                groups.setdefault(f"this month, {row.model}", []).append(row)
            yield "\n" + _table(("Your use (UTC)", *_SUMS), _sums_of(groups))
            yield "".join(f"\n- {line}" for line in left)
        yield f"\n{_WORDS}"

    async def _of_all(self, since: date, *, as_csv: bool) -> AsyncGenerator[str, None]:
        """Yield what all users had since a day."""
        day = since.isoformat()
        yield f"All users, {_days_text(since, self._today)}.\n"
        if as_csv:
            most = _MAX_IN_FILE if self._save_file else _MAX_LISTED
            rows = await self._table.all_rows(day, most)
            cells = [(row.user_id, row.model, *_numbers([row])) for row in rows]
            yield await self._csv_lines(
                ("user", "model"), cells, f"All users since {day}"
            )
            return
        rows = await self._table.all_rows(day, _MAX_READ)
        days = await self._table.day_rows(day)
        bought, saved = await self._table.purchases(day)
        yield self._day_picture(days, saved, since)
        for line in _summary(days, bought, self._today):
            yield line
        if self._save_file:
            yield user_picture(_cleaned(rows), sum(row.money for row in days))
        yield _purchase_table(bought, days)
        sums = _sums_of({f"{row.user_id}, {row.model}": [row] for row in rows})
        if sums:
            yield "\n" + _table((f"All users since {day}", *_SUMS), sums[:_MAX_SHOWN])

    async def _of_user(
        self, user_id: str, command: UsageCommand, since: date
    ) -> AsyncGenerator[str, None]:
        """Yield what one user had since a day."""
        day = since.isoformat()
        rows = await self._table.user_rows(user_id, day)
        bought, saved = await self._table.purchases(day, user_id)
        who = _plain(command.address) or "You"
        yield f"{who}, {_days_text(since, self._today)}.\n"
        if command.as_csv:
            rows.sort()
            cells = [(row.day, row.model, *_numbers([row])) for row in rows]
            title = f"{who} since {day}"
            yield await self._csv_lines(("day", "model"), cells, title)
            return
        yield self._day_picture(rows, saved, since)
        for line in _summary(rows, bought, self._today):
            yield line
        yield _purchase_table(bought, rows)
        if command.address:
            models: dict[str, list[UsageRow]] = {}
            for row in rows:
                models.setdefault(row.model, []).append(row)
            yield "\n" + _table((f"{who} since {day}", *_SUMS), _sums_of(models))

    def _day_picture(
        self, rows: Sequence[UsageRow], saved: dict[str, int], since: date
    ) -> str:
        """Return the picture of the days, for a page."""
        if not self._save_file:
            return ""
        return day_picture(_cleaned(rows), saved, since, self._today)

    async def _csv_lines(
        self, keys: Sequence[str], rows: Sequence[_Cells], title: str
    ) -> str:
        """Return the link to a file of CSV; for programs the text itself.

        Programs get the columns of version 1.0.0.
        """
        joined = [
            (", ".join(map(str, row[: len(keys)])), *row[len(keys) :]) for row in rows
        ]
        lines = map(_csv_line, [(title, *_SUMS), *joined[:_MAX_LISTED]])
        as_text = "\n".join(["```csv", *lines, "```"])
        if not self._save_file:
            return as_text
        name = f"usage-{self._today.isoformat()}.csv"
        content = "\n".join(map(_csv_line, [(*keys, *_SUMS), *rows]))
        address = await self._save_file(name, f"{content}\n")
        if not address:
            return f"{_NOT_STORED}\n{as_text}"
        return f"[{name}]({address}): {plural(len(rows), 'line')} for a spreadsheet."


def _summary(rows: Sequence[UsageRow], parts: Purchases, today: date) -> Iterator[str]:
    """Yield what is said about rows below their picture."""
    requests = sum(row.requests for row in rows)
    if not requests:
        yield _NOTHING
        return
    money = sum(row.money for row in rows)
    yield f"\n**{_money(money)}** for {plural(requests, 'request')}.\n"
    read = sum(row.input for row in rows)
    if read:
        # Some servers leave what was cached out of the input.
        cached = min(sum(row.cached for row in rows), read)
        line = (
            f"**{100 * cached / read:.0f}%** of the input came from the prompt cache."
        )
        if not parts.itemized:
            line += " How much that saved is not known."
        elif parts.saved:
            amount = _money(abs(parts.saved))
            if parts.saved < 0:
                line += f" Writing to the cache cost {amount} more than it saved"
            else:
                line += f" That saved {amount}"
                if parts.cache_writes:
                    line += ", after the cost of writing to the cache"
            if parts.itemized < requests:
                line += f" (known for {parts.itemized:,} of {requests:,} requests)"
            line += "."
        yield f"{line}\n"
    fallen = _fallen_share(rows, today)
    if fallen:
        yield f"⚠️ {fallen}\n"


def _fallen_share(rows: Sequence[UsageRow], today: date) -> str:
    """Return the message about a share of cached input that fell and stays low.

    Weeks end today: the share of the newest is still a third below that of the week
    before the fall.
    """
    weeks: dict[int, list[UsageRow]] = {}
    for row in rows:
        age = (today - date.fromisoformat(row.day)).days // _WEEK
        weeks.setdefault(age, []).append(row)
    shares: dict[int, float] = {}
    for age, week in weeks.items():
        read = sum(row.input for row in week)
        if read and sum(row.requests for row in week) >= _FEW_REQUESTS:
            shares[age] = sum(row.cached for row in week) / read
    for age in sorted(shares):
        before = shares.get(age + 1, 0)
        if shares[age] * 3 < before * 2 and shares.get(0, shares[age]) * 3 < before * 2:
            start = today - timedelta(_WEEK * (age + 1) - 1)
            return (
                f"In the week from {_day_text(start)} only {100 * shares[age]:.0f}% of "
                f"the input came from the cache, compared with {100 * before:.0f}% in "
                "the week before. Something changes the beginning of the requests: "
                "docs/history.md of the pipe says what could."
            )
    return ""


def _purchase_table(parts: Purchases, all_rows: Sequence[UsageRow]) -> str:
    """Return the table of what the money bought; nothing if that is not known.

    What is not itemized was counted by version 1.0.0, or its prices are not known.
    """
    if not any(parts):
        return ""
    requests = sum(row.requests for row in all_rows)
    money = sum(row.money for row in all_rows)
    named = (
        parts.reasoning_money
        + parts.answer_money
        + parts.search_money
        + parts.image_money
        + parts.container_money
    )
    rows: list[_Cells] = []

    def add(name: str, count: int, unit: str, amount: int) -> None:
        if count:
            rows.append((name, plural(count, unit), f"{amount / MILLIONTHS:.4f}"))

    add("Reading the chats", parts.input, "token", parts.itemized_money - named)
    add("Reasoning", parts.reasoning, "token", parts.reasoning_money)
    add("Answers", parts.answers, "token", parts.answer_money)
    add("Searches", parts.searches, "call", parts.search_money)
    add("Images", parts.images, "call", parts.image_money)
    add("Python", parts.containers, "container", parts.container_money)
    rest = requests - parts.itemized
    add("Not itemized", rest, "request", money - parts.itemized_money)
    add("All", requests, "request", money)
    add("of these: titles and other tasks", parts.tasks, "request", parts.task_money)
    add("of these: agents", parts.agents, "request", parts.agent_money)
    return "\n" + _table(("What the money bought", "how much", "US dollars"), rows)


def _sums_of(groups: Mapping[str, Sequence[UsageRow]]) -> list[_Cells]:
    """Return a line for each name: what its rows come to."""
    return [(name, *_numbers(rows)) for name, rows in groups.items()]


def _numbers(rows: Sequence[UsageRow]) -> tuple[str | int, ...]:
    """Return the cells of what rows come to."""
    dollars = sum(row.money for row in rows) / MILLIONTHS
    return (
        f"{dollars:.4f}",
        sum(row.requests for row in rows),
        sum(row.input for row in rows),
        sum(row.cached for row in rows),
        sum(row.output for row in rows),
    )


def _money(amount: int) -> str:
    """Return an amount as a bursar writes it."""
    dollars = amount / MILLIONTHS
    return f"${dollars:,.2f}" if dollars >= 0.01 or not amount else f"${dollars:.4f}"


def _day_text(day: date) -> str:
    return f"{day.day} {day:%B}"


def _days_text(first: date, last: date) -> str:
    if first == last:
        return f"{_day_text(last)} {last.year} (UTC)"
    year = "" if first.year == last.year else f" {first.year}"
    return f"{_day_text(first)}{year} to {_day_text(last)} {last.year} (UTC)"


def _table(head: _Cells, rows: Sequence[_Cells]) -> str:
    """Return a table in Markdown; numbers are on the right, and have commas."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    lines: list[str] = []
    for cells in (head, rule, *rows):
        texts = [
            f"{cell:,}" if isinstance(cell, int) else _plain(cell) for cell in cells
        ]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)


_NOT_PLAIN = re.compile(r"[^\w.,:/@+=*()' -]")
"""Whoever signs up writes an address: it must be neither Markdown nor a new line."""
_IN_LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""A place in each address of which a page makes a link by itself."""


def _plain(text: str) -> str:
    """Return a text that means nothing to a page."""
    return _IN_LINKS.sub(" ", _NOT_PLAIN.sub(" ", text))


def _cleaned(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Return rows whose names can be drawn."""
    return [
        row._replace(user_id=_plain(row.user_id)[:60], model=_plain(row.model)[:60])
        for row in rows
    ]


def _csv_line(cells: _Cells) -> str:
    """Return a line of CSV; a spreadsheet takes some beginnings for a formula."""
    cleaned = (_plain(str(cell)).lstrip("=+-@ ") for cell in cells)
    return ",".join(f'"{cell}"' for cell in cleaned)
