"""What users have used, in tables of our own in the host's database.

A row counts what one user had of one model on one day, so nothing is lost with a chat
that is deleted. One statement adds to it: servers that count at once lose nothing. What
could not be written is kept, and written with the next answer.

The first table is that of version 1.0.0, whose statements name no columns: one more
column, and a server that was not updated could neither write nor read it. So what the
money bought is in a second table, with the same key.

A commit that gets no answer may have been made, and to make it again would count twice.
So each transaction also notes its number in a third table, where the next one looks.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from decimal import Decimal
from typing import NamedTuple, TypeVar
from weakref import WeakValueDictionary

from openai_responses.json_input import well_formed
from openai_responses.ulid import new_ulid
from owui_host.database import run_sql
from shells.administration import NO_PURCHASES, Purchases

_AnswerEvent = TypeVar("_AnswerEvent")


class UsageRow(NamedTuple):
    """What a user had of a model on a day; the names are those of the table.

    `cached` is part of `input`. Money is in millionths of a US dollar.
    """

    user_id: str
    day: str
    model: str
    requests: int
    input: int
    cached: int
    output: int
    money: int


_KEY = UsageRow._fields[:3]
_COUNTS = UsageRow._fields[3:]
_USAGE = "{schema}openai_responses_usage"
_PURCHASES = "{schema}openai_responses_purchases"
_WRITERS = "{schema}openai_responses_usage_writers"


def _create(table: str, counts: Sequence[str]) -> str:
    """Return the statement that makes a table."""
    columns = [
        *(f"{name} TEXT" for name in _KEY),
        *(f"{name} BIGINT" for name in counts),
    ]
    key = ", ".join(_KEY)
    return (
        f"CREATE TABLE IF NOT EXISTS {table} "
        f"({', '.join(columns)}, PRIMARY KEY ({key}))"
    )


def _add(table: str, counts: Sequence[str]) -> str:
    """Return the statement that adds to a row.

    SQLite and PostgreSQL, the databases of Open WebUI, share this form.
    """
    names = (*_KEY, *counts)
    sums = ", ".join(f"{name} = old.{name} + excluded.{name}" for name in counts)
    return (
        f"INSERT INTO {table} AS old ({', '.join(names)}) "
        f"VALUES ({', '.join(f':{name}' for name in names)}) "
        f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {sums}"
    )


def _sums(counts: Sequence[str]) -> str:
    return ", ".join(f"SUM({name}) AS {name}" for name in counts)


_CREATE_ALL: Sequence[tuple[str, object]] = (
    (_create(_USAGE, _COUNTS), {}),
    (_create(_PURCHASES, Purchases._fields), {}),
    (
        f"CREATE TABLE IF NOT EXISTS {_WRITERS} (id TEXT PRIMARY KEY, written BIGINT)",
        {},
    ),
)
_NOTE_NUMBER = (
    f"INSERT INTO {_WRITERS} AS old (id, written) VALUES (:id, :number) "
    "ON CONFLICT (id) DO UPDATE SET written = excluded.written"
)
# It changes nothing, but waits for a transaction that still holds the row.
_AWAIT_WRITER = (
    f"INSERT INTO {_WRITERS} AS old (id, written) VALUES (:id, 0) "
    "ON CONFLICT (id) DO UPDATE SET written = old.written"
)
_LAST_NUMBER = f"SELECT written FROM {_WRITERS} WHERE id = :id"
_ADD_USAGE = _add(_USAGE, _COUNTS)
_ADD_PURCHASES = _add(_PURCHASES, Purchases._fields)
_ROWS_OF_USER = (
    f"SELECT {', '.join((*_KEY, *_COUNTS))} FROM {_USAGE} "
    "WHERE user_id = :user_id AND day >= :day"
)
_ROWS_OF_DAYS = (
    f"SELECT '', day, model, {_sums(_COUNTS)} FROM {_USAGE} WHERE day >= :day "
    "GROUP BY day, model"
)
# By the model first: SQLite would else read the table in the order of its key, which
# takes three times as long as to sort it.
_ROWS_OF_ALL = (
    f"WITH sums AS (SELECT user_id, model, {_sums(_COUNTS)} FROM {_USAGE} "
    "WHERE day >= :day GROUP BY model, user_id) "
    f"SELECT COALESCE(email, user_id), '', model, {', '.join(_COUNTS)} "
    'FROM sums LEFT JOIN {schema}"user" ON id = user_id '
    "ORDER BY SUM(money) OVER (PARTITION BY user_id) DESC, user_id, money DESC "
    "LIMIT :most"
)
"""With the addresses of users as far as they exist, the most expensive first."""
_OF_USER = "AND user_id = :user_id"
_PURCHASES_OF = (
    f"SELECT {_sums(Purchases._fields)} FROM {_PURCHASES} WHERE day >= :day "
)
_SAVED_OF = f"SELECT day, SUM(saved) FROM {_PURCHASES} WHERE day >= :day "
"""Two statements: to sort all columns by day takes longer than both."""
_NOT_COUNTED = "Usage is not counted: Open WebUI's database reports {}."


_MAX_DUE = 10_000
"""Rows that wait for the database."""
_LONGEST_MODEL = 200
"""Characters of a model's name. A key of PostgreSQL has at most 2,704 bytes."""


def sum_purchases(purchases: Iterable[Purchases]) -> Purchases:
    """Return what several purchases come to."""
    columns = zip(*purchases, strict=True)
    return Purchases(*(sum(column) for column in columns))


class KnownRows(list[UsageRow]):
    """The rows of a user that an answer of theirs knows."""

    def __init__(self, user_id: str) -> None:
        super().__init__()
        self.user_id = user_id
        self._places: dict[tuple[str, str], int] = {}

    def take(self, row: UsageRow) -> None:
        """Take what another answer had: all of a model and a day is one row.

        Each of many answers at once would else keep, and add up, the rows of all.
        """
        place = self._places.setdefault((row.day, row.model), len(self))
        if place < len(self):
            self[place] = _added(self[place], row)
        else:
            self.append(row)


_Rows = dict[tuple[str, str, str], tuple[UsageRow, Purchases]]
"""By user, day and model."""


class UsageTable:
    """The tables, and what is still to be added to them."""

    def __init__(self) -> None:
        self._id = new_ulid()
        self._number = 0
        """Of the last transaction that added something."""
        self._unsure: list[tuple[UsageRow, Purchases]] = []
        """What it added, until the database has said that it did."""
        self.problem = ""
        self._due: _Rows = {}
        self._read = set[str]()
        """The users whose rows are read now."""
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """Who may read the rows of a user."""
        self.under_way = Counter[str]()
        """How many answers of a user are under way, of those with a limit."""
        self._writer: asyncio.Task[None] | None = None
        self._known = WeakValueDictionary[int, KnownRows]()
        """What each answer that is under way knows, by its `id`."""

    def add(self, row: UsageRow, bought: Purchases = NO_PURCHASES) -> None:
        """Add a row soon, and what its money bought; no one waits for it.

        The user's other answers know it at once.
        """
        for known in [*self._known.values()]:
            has_row = bool(known) and known[-1] is row  # its own answer has added it
            if known.user_id == row.user_id and not has_row:
                known.take(row)
        # A database refuses some characters and long keys, and with the row all that is
        # written with it. Another server names its models as it likes.
        storable = well_formed(row.model[:_LONGEST_MODEL]).replace("\0", "?")
        if storable != row.model:
            row = row._replace(model=storable)
        self._add_due(row, bought)
        self._start_writer()

    def _start_writer(self) -> asyncio.Task[None]:
        """Return the task that writes what is due, a new one if none is at work."""
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return self._writer

    def _add_due(self, row: UsageRow, bought: Purchases) -> None:
        """Keep a row until it is written, in one with what the user had before.

        So a database that fails for days costs a row for each user, model and day. The
        oldest of too many rows goes.
        """
        _merge(self._due, row, bought)
        if len(self._due) > _MAX_DUE:
            oldest = next(iter(self._due))
            del self._due[oldest]

    async def _write(self) -> None:
        """Write what is due; what comes meanwhile is written by the next task.

        The rows of a user wait while that user's are read.
        """
        try:
            if self._unsure:  # was the last transaction made? If not, it is due
                writer = {"id": self._id}
                [[written]] = await _run_with_tables(
                    (_AWAIT_WRITER, writer), (_LAST_NUMBER, writer)
                )
                unsure = self._unsure
                self._unsure = []
                if written != self._number:
                    for row, bought in unsure:
                        self._add_due(row, bought)
        except Exception as error:
            self.problem = _NOT_COUNTED.format(type(error).__name__)
            return
        self.problem = ""
        keys = self._keys_to_write()
        if not keys:
            return
        # In one order: two servers never wait for each other's rows.
        due = sorted(self._due.pop(key) for key in keys)
        usage = [row._asdict() for row, _ in due]
        purchases: list[dict[str, object]] = []
        for row, bought in due:
            if any(bought):
                key = {"user_id": row.user_id, "day": row.day, "model": row.model}
                purchases.append({**key, **bought._asdict()})
        self._number += 1
        self._unsure = due
        number = {"id": self._id, "number": self._number}
        additions: list[tuple[str, object]] = [
            (_NOTE_NUMBER, number),
            (_ADD_USAGE, usage),
        ]
        if purchases:
            additions.append((_ADD_PURCHASES, purchases))
        try:
            await _run_with_tables(*additions)
        except Exception as error:
            self.problem = _NOT_COUNTED.format(type(error).__name__)
            return
        self._unsure = []
        if self._keys_to_write():
            self._writer = asyncio.create_task(self._write())

    def _unwritten(self) -> list[tuple[UsageRow, Purchases]]:
        """Return what is not in the tables, as far as this server knows."""
        rows = dict(self._due)
        for row, bought in self._unsure:
            _merge(rows, row, bought)
        return [*rows.values()]

    def _keys_to_write(self) -> list[tuple[str, str, str]]:
        return [key for key in self._due if key[0] not in self._read]

    async def while_under_way(
        self, user_id: str, events: AsyncGenerator[_AnswerEvent, None]
    ) -> AsyncGenerator[_AnswerEvent, None]:
        """Yield the events of an answer, which is under way until they end."""
        self.under_way[user_id] += 1
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self.under_way -= Counter([user_id])  # without those who have none left

    async def flush(self) -> None:
        """Wait until what is due now was written, or could not be.

        Others may always add more, so what comes meanwhile is not waited for.
        """
        await asyncio.wait([self._start_writer()])
        # That one may have begun before; then the next one has what was due.
        if self._writer and not self._writer.done():
            await asyncio.wait([self._writer])

    async def user_rows(self, user_id: str, since: str) -> list[UsageRow]:
        """Return the rows of a user from a day on, and those that are added later.

        What could not be written yet counts, too.
        """
        rows = KnownRows(user_id)
        async with self._reading(user_id):
            rows += await self._select(_ROWS_OF_USER, user_id=user_id, day=since)
            for row, _ in self._unwritten():
                if row.user_id == user_id and row.day >= since:
                    rows.append(row)
            self._known[id(rows)] = rows
        return rows

    async def day_rows(self, since: str) -> list[UsageRow]:
        """Return what all users together had of each model on each day from one on."""
        await self.flush()
        return await self._select(_ROWS_OF_DAYS, day=since)

    async def all_rows(self, since: str, most: int) -> list[UsageRow]:
        """Return what each user had of each model from a day on, up to `most` rows.

        The users who cost the most come first.
        """
        await self.flush()
        return await self._select(_ROWS_OF_ALL, day=since, most=most)

    async def purchases(
        self, since: str, user_id: str = ""
    ) -> tuple[Purchases, dict[str, int]]:
        """Return what was bought from a day on, and what a cache saved on each day.

        By a user, with what could not be written yet; or by all.
        """
        values = {"day": since, **({"user_id": user_id} if user_id else {})}
        whose = _OF_USER if user_id else ""
        by_day = f"{_SAVED_OF}{whose} GROUP BY day"
        async with self._reading(user_id):
            [sums] = await _run_with_tables((_PURCHASES_OF + whose, values))
            rows = await _run_with_tables((by_day, values))
            due = [
                (row.day, purchases)
                for row, purchases in self._unwritten()
                if row.user_id == user_id and row.day >= since
            ]
        bought = Purchases(*(_whole_number(count) for count in sums))
        saved = {str(day): _whole_number(money) for day, money in rows}
        for day, purchases in due:
            bought = sum_purchases((bought, purchases))
            saved[day] = saved.get(day, 0) + purchases.saved
        return bought, saved

    @asynccontextmanager
    async def _reading(self, user_id: str) -> AsyncGenerator[None, None]:
        """Hold back what is added for a user: each row is either stored or still due."""
        # One after the other: somebody who asks without a pause would never be written.
        turn = self._turns.setdefault(user_id, asyncio.Lock())
        async with turn:
            await self.flush()
            self._read.add(user_id)
            try:
                if self._writer:  # it may have begun with rows of this user
                    await asyncio.wait([self._writer])
                yield
            finally:
                self._read.remove(user_id)
                if self._due and not self.problem:
                    self._start_writer()

    async def _select(self, sql: str, **values: object) -> list[UsageRow]:
        """Return rows of the first table."""
        rows = await _run_with_tables((sql, values))
        width = len(_KEY)
        return [
            UsageRow._make((*map(str, row[:width]), *map(_whole_number, row[width:])))
            for row in rows
        ]


def _merge(rows: _Rows, row: UsageRow, bought: Purchases) -> None:
    """Put a row at the end, in one with an earlier row of the same key."""
    key = (row.user_id, row.day, row.model)
    if key in rows:
        earlier, earlier_bought = rows.pop(key)
        row = _added(earlier, row)
        bought = sum_purchases((earlier_bought, bought))
    rows[key] = row, bought


def _added(earlier: UsageRow, row: UsageRow) -> UsageRow:
    """Return a row with the counts of an earlier one of the same key."""
    counts = {name: getattr(earlier, name) + getattr(row, name) for name in _COUNTS}
    return row._replace(**counts)


_LOST_RACES = ("IntegrityError", "ProgrammingError")
"""SQLAlchemy's errors for a table that another session has just made."""


async def _run_with_tables(*statements: tuple[str, object]) -> list[Sequence[object]]:
    """Run statements on the tables, which are made if they do not exist.

    In PostgreSQL `IF NOT EXISTS` fails in one of two sessions that make a table at the
    same time. The other one has committed by then, so the second try finds the table.
    Workers meet there, and so do modules of one worker: Open WebUI 0.12.4 loads a filter
    once for each question that arrives before the first load is done
    (utils/plugin.py:407). Only the last of them is asked again.
    """
    try:
        return await run_sql(*_CREATE_ALL, *statements)
    except Exception as error:
        if type(error).__name__ not in _LOST_RACES:
            raise
    return await run_sql(*_CREATE_ALL, *statements)


def _whole_number(value: object) -> int:
    """Return a count of the database; sums of PostgreSQL are decimals, of nothing None."""
    return int(value) if isinstance(value, int | Decimal) else 0
