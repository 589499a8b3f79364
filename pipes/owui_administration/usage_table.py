"""What users have used, in a table of our own in the host's database.

A row counts what one user had of one model on one day, so nothing is lost with a chat
that is deleted. One statement adds to it: servers that count at once lose nothing. What
could not be written is kept, and written with the next answer.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, SupportsInt

from owui_administration.host import run_sql


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


_TABLE = "{schema}openai_responses_usage"
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {_TABLE} (user_id TEXT, day TEXT, model TEXT, "
    "requests BIGINT, input BIGINT, cached BIGINT, output BIGINT, money BIGINT, "
    "PRIMARY KEY (user_id, day, model))"
)
_COUNTS = UsageRow._fields[3:]
_ADD = (
    f"INSERT INTO {_TABLE} AS old VALUES "
    "(:user_id, :day, :model, :requests, :input, :cached, :output, :money) "
    # SQLite and PostgreSQL, the databases of Open WebUI, share this form.
    "ON CONFLICT (user_id, day, model) DO UPDATE SET "
    + ", ".join(f"{name} = old.{name} + excluded.{name}" for name in _COUNTS)
)
_ROWS_OF_USER = f"SELECT * FROM {_TABLE} WHERE user_id = :user_id AND day >= :day"
_ROWS_OF_ALL = (
    f"SELECT COALESCE(email, user_id), '', model, SUM({'), SUM('.join(_COUNTS)}) "
    f'FROM {_TABLE} LEFT JOIN {{schema}}"user" ON id = user_id WHERE day >= :day '
    "GROUP BY email, user_id, model ORDER BY SUM(money) DESC LIMIT :most"
)
"""With the addresses of users as far as they exist, the most expensive first."""
_NOT_COUNTED = "Usage is not counted: Open WebUI's database reports {}."


_MAX_DUE = 10_000
"""Rows that wait for the database."""


def _sum_rows(earlier: UsageRow, later: UsageRow) -> UsageRow:
    """Return what two rows of one user, day and model count together."""
    return later._replace(
        requests=earlier.requests + later.requests,
        input=earlier.input + later.input,
        cached=earlier.cached + later.cached,
        output=earlier.output + later.output,
        money=earlier.money + later.money,
    )


class UsageTable:
    """The table, and what is still to be added to it."""

    def __init__(self) -> None:
        """Touch nothing yet."""
        self.problem = ""
        self._due: dict[tuple[str, str, str], UsageRow] = {}
        self._writer: asyncio.Task[None] | None = None

    def add(self, row: UsageRow) -> None:
        """Add a row soon; nobody waits for it."""
        self._add_due(row)
        self._start_writer()

    def _start_writer(self) -> asyncio.Task[None]:
        """Return the task that writes what is due, a new one if none is at work."""
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return self._writer

    def _add_due(self, row: UsageRow) -> None:
        """Keep a row until it is written, in one with what the user had before.

        So a database that fails for days costs a row for each user, model and day. The
        oldest of too many rows goes.
        """
        key = (row.user_id, row.day, row.model)
        earlier = self._due.pop(key, None)
        self._due[key] = _sum_rows(earlier, row) if earlier else row
        if len(self._due) > _MAX_DUE:
            oldest = next(iter(self._due))
            del self._due[oldest]

    async def _write(self) -> None:
        """Write what is due, until nothing is or the database refuses it."""
        while self._due:
            # In one order: two servers never wait for each other's rows.
            rows = sorted(self._due.values())
            self._due = {}
            self.problem = ""
            try:
                await _run_with_table((_ADD, [row._asdict() for row in rows]))
            except Exception as error:
                for row in rows:
                    self._add_due(row)
                self.problem = _NOT_COUNTED.format(type(error).__name__)
                return

    async def flush(self) -> None:
        """Wait until what is due was written, or could not be."""
        await asyncio.wait([self._start_writer()])

    async def user_rows(self, user_id: str, since: str) -> list[UsageRow]:
        """Return the rows of a user from a day on.

        What could not be written yet counts, too.
        """
        stored = await self._select(_ROWS_OF_USER, user_id=user_id, day=since)
        due = [row for row in self._due.values() if row.user_id == user_id]
        return stored + due

    async def all_rows(self, since: str, most: int) -> list[UsageRow]:
        """Return what each user had of each model from a day on, up to `most` rows."""
        return await self._select(_ROWS_OF_ALL, day=since, most=most)

    async def _select(self, sql: str, **values: object) -> list[UsageRow]:
        """Return rows of the table, as soon as ours are written."""
        await self.flush()
        rows = await _run_with_table((sql, values))
        return [_read_row(row) for row in rows]


_LOST_RACES = ("IntegrityError", "ProgrammingError")
"""SQLAlchemy's errors for a table that another session has just made."""


async def _run_with_table(statement: tuple[str, object]) -> list[Sequence[object]]:
    """Run a statement on the table, which is made if it does not exist.

    In PostgreSQL `IF NOT EXISTS` fails in one of two sessions that make a table at the
    same time. The other one has committed by then, so the second try finds the table.
    Workers meet there, and so do modules of one worker: Open WebUI 0.12.4 loads a filter
    once for each question that arrives before the first load is done
    (utils/plugin.py:407). Only the last of them is asked again.
    """
    try:
        return await run_sql((_CREATE, {}), statement)
    except Exception as error:
        if type(error).__name__ not in _LOST_RACES:
            raise
    return await run_sql((_CREATE, {}), statement)


def _read_row(row: Sequence[object]) -> UsageRow:
    """Return a row of the table."""
    user_id, day, model, requests, input_tokens, cached, output_tokens, money = row
    return UsageRow(
        user_id=str(user_id),
        day=str(day),
        model=str(model),
        requests=_whole_number(requests),
        input=_whole_number(input_tokens),
        cached=_whole_number(cached),
        output=_whole_number(output_tokens),
        money=_whole_number(money),
    )


def _whole_number(value: object) -> int:
    """Return a count of the database; sums of PostgreSQL are decimals."""
    return int(value) if isinstance(value, SupportsInt) else 0
