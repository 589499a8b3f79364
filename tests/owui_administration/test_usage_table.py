"""The tables in the host's database, next to filters of an earlier version."""

import asyncio
from itertools import count
from typing import Any

import pytest

from owui_administration import usage_table
from owui_administration.usage_table import UsageRow, UsageTable
from owui_host.database import run_sql
from shells.administration import NO_PURCHASES, Purchases
from stand_in.host import StandInHost
from stand_in.usage_database import UsageDatabase
from upstream.server import until

pytestmark = pytest.mark.asyncio

EARLIER_ADD = """
INSERT INTO openai_responses_usage AS old VALUES
(:user_id, :day, :model, :requests, :input, :cached, :output, :money)
ON CONFLICT (user_id, day, model) DO UPDATE SET
requests = old.requests + excluded.requests, input = old.input + excluded.input,
cached = old.cached + excluded.cached, output = old.output + excluded.output,
money = old.money + excluded.money
"""
"""The statement of version 1.0.0, which names no columns."""
BOUGHT = Purchases(*range(1, len(Purchases._fields) + 1))
ROW = UsageRow("u", "2026-11-23", "m", 1, 30, 20, 5, 7_000)


def stored(database: UsageDatabase, table: str) -> list[tuple[object, ...]]:
    return database.connection.execute(f"SELECT * FROM {table}").fetchall()


async def test_both_versions_count_in_one_table(database: UsageDatabase) -> None:
    """A server that was not updated writes rows that both can read."""
    table = UsageTable()
    table.add(ROW, BOUGHT)
    await table.flush()
    database.connection.execute(EARLIER_ADD, ROW._asdict())
    database.connection.commit()
    table.add(ROW, BOUGHT)

    [row] = await table.user_rows("u", "2026")

    assert row == ROW._replace(requests=3, input=90, cached=60, output=15, money=21_000)
    assert stored(database, "openai_responses_usage") == [row]
    assert stored(database, "openai_responses_purchases") == [
        ("u", "2026-11-23", "m", *(2 * number for number in BOUGHT))
    ]
    assert table.problem == ""


@pytest.mark.usefixtures("database")
async def test_answer_keeps_one_row_of_a_model_that_others_use() -> None:
    """Of many answers at once each would keep, and add up, the rows of all."""
    table = UsageTable()
    known = await table.user_rows("u", "2026")
    for number in range(100):
        table.add(ROW._replace(model=f"m{number % 2}"))

    assert [row.requests for row in known] == [50, 50]
    await table.flush()


async def test_purchases_are_added_up_by_day(database: UsageDatabase) -> None:
    table = UsageTable()
    table.add(ROW, BOUGHT)
    table.add(ROW._replace(model="n"), BOUGHT)
    table.add(ROW._replace(user_id="v"), BOUGHT)
    table.add(ROW._replace(day="2025-01-01"), BOUGHT)
    table.add(ROW._replace(user_id="w"))

    of_all = await table.purchases("2026")
    of_user = await table.purchases("2026", "u")

    for (bought, saved), times in ((of_all, 3), (of_user, 2)):
        assert bought == Purchases(*(times * number for number in BOUGHT))
        assert saved == {ROW.day: times * BOUGHT.saved}
    written = stored(database, "openai_responses_purchases")
    assert len(written) == 4
    assert written == sorted(written)  # two servers never wait for each other's rows


async def test_what_could_not_be_written_is_shown_to_its_user(
    database: UsageDatabase,
) -> None:
    """Both tables are written in one transaction, so nothing is in one of them only."""
    table = UsageTable()
    database.failing = 1
    table.add(ROW, BOUGHT)
    await table.flush()
    assert table.problem

    for user, since, is_own in (
        ("u", "2026-11-23", True),
        ("u", "2026-11-24", False),
        ("v", "2026-11-23", False),
    ):
        database.failing = 1
        bought = await table.purchases(since, user)
        database.failing = 1
        rows = await table.user_rows(user, since)
        assert rows == [ROW] * is_own
        own = (BOUGHT, {ROW.day: BOUGHT.saved})
        assert bought == (own if is_own else (NO_PURCHASES, {}))

    assert stored(database, "openai_responses_usage") == []
    assert stored(database, "openai_responses_purchases") == []
    assert table.problem
    await table.flush()
    assert table.problem == ""
    assert stored(database, "openai_responses_usage") == [ROW]
    assert len(stored(database, "openai_responses_purchases")) == 1


async def test_row_that_comes_while_rows_are_read_is_counted_once(
    database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither stored nor due, a row would leave room for one more answer."""
    is_read = asyncio.Event()

    async def run_slowly(*statements: Any) -> Any:
        if statements[-1][0].startswith("INSERT"):
            await is_read.wait()
        else:
            table.add(ROW, BOUGHT)
            for _ in range(9):
                await asyncio.sleep(0)
        return await run_sql(*statements)

    table = UsageTable()
    table.add(ROW, BOUGHT)
    await table.flush()
    monkeypatch.setattr(usage_table, "run_sql", run_slowly)

    rows = await table.user_rows("u", "2026")
    is_read.set()
    await table.flush()
    is_read.clear()
    bought, _ = await table.purchases("2026", "u")
    is_read.set()
    await table.flush()

    assert sum(row.requests for row in rows) == 2
    assert bought.input == 4 * BOUGHT.input  # it is read in two steps
    [row] = stored(database, "openai_responses_usage")
    assert row[3] == 4


async def test_row_that_is_just_written_is_counted_once(
    database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database has it, and has not said so yet."""
    coming = [ROW, ROW]

    async def answer_late(*statements: Any) -> Any:
        result = await run_sql(*statements)
        if statements[-1][0].startswith("INSERT"):
            if coming:
                table.add(coming.pop())
            for _ in range(9):
                await asyncio.sleep(0)
        return result

    table = UsageTable()
    monkeypatch.setattr(usage_table, "run_sql", answer_late)
    table.add(ROW)

    assert sum(row.requests for row in await table.user_rows("u", "2026")) == 3


async def test_oldest_of_too_many_rows_that_wait_goes(database: UsageDatabase) -> None:
    """A database that is away for long costs a bounded memory."""
    table = UsageTable()
    for number in (*range(10_000), 0, 10_000):  # that of the first user grows
        table.add(ROW._replace(user_id=f"u-{number}"))

    rows = [await table.user_rows(f"u-{number}", "2026") for number in (0, 1, 10_000)]

    assert [[row.requests for row in each] for each in rows] == [[2], [], [1]]


async def test_users_are_told_from_each_other_with_their_models(
    database: UsageDatabase,
) -> None:
    database.add_users(("u", "u@example.com"))
    table = UsageTable()
    for user, model, money in (("u", "a", 5), ("v", "a", 6), ("u", "b", 4)):
        table.add(ROW._replace(user_id=user, model=model, money=money))

    rows = await table.all_rows("2026", 10)
    days = await table.day_rows("2026")

    assert [(row.user_id, row.model, row.money) for row in rows] == [
        ("u@example.com", "a", 5),
        ("u@example.com", "b", 4),
        ("v", "a", 6),
    ]
    assert sorted((row.day, row.model, row.money) for row in days) == [
        (ROW.day, "a", 11),
        (ROW.day, "b", 4),
    ]


async def test_reading_waits_for_no_rows_that_others_go_on_adding(
    database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database is slow, others always have rows due again."""
    others: list[UsageRow] = []

    async def run_while_others_add(*statements: Any) -> Any:
        if len(others) < 100:
            others.append(ROW._replace(user_id=f"other-{len(others)}"))
            table.add(others[-1])
        return await run_sql(*statements)

    table = UsageTable()
    monkeypatch.setattr(usage_table, "run_sql", run_while_others_add)
    table.add(ROW)
    table.add(ROW._replace(user_id="v"))

    rows = await table.user_rows("u", "2026")

    assert rows == [ROW]
    assert len(others) < 100
    while len(others) < 100:  # all of them are written all the same
        await table.flush()
    await table.flush()
    assert len(stored(database, "openai_responses_usage")) == 102


async def test_reading_of_one_user_holds_up_no_other(
    database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is large takes a while."""
    is_asked = asyncio.Event()
    is_read = asyncio.Event()

    async def run_slowly(*statements: Any) -> Any:
        if statements[-1][1] == {"user_id": "u", "day": "2026"}:
            is_asked.set()
            await is_read.wait()
        return await run_sql(*statements)

    table = UsageTable()
    monkeypatch.setattr(usage_table, "run_sql", run_slowly)
    reading = asyncio.create_task(table.user_rows("u", "2026"))
    await is_asked.wait()
    other = ROW._replace(user_id="v")
    table.add(other)

    async with asyncio.timeout(5):
        assert await table.user_rows("v", "2026") == [other]
    assert stored(database, "openai_responses_usage") == [other]
    is_read.set()
    assert await reading == []


async def test_tables_are_in_the_schema_of_the_host(
    database: UsageDatabase, host: StandInHost
) -> None:
    """Its name may have a sign that SQL reads as another."""
    host.provide("env", DATABASE_SCHEMA="open-webui")
    database.connection.execute("ATTACH ':memory:' AS \"open-webui\"")
    table = UsageTable()

    table.add(ROW, BOUGHT)
    await table.flush()

    assert table.problem == ""
    assert stored(database, '"open-webui".openai_responses_usage') == [ROW]
    assert await table.user_rows("u", "2026") == [ROW]


async def test_commit_without_an_answer_is_counted_once(
    database: UsageDatabase,
) -> None:
    """Nobody knows whether it was made, until the database is asked."""
    table = UsageTable()
    table.add(ROW, BOUGHT)
    await table.flush()
    database.unanswered = 1
    table.add(ROW, BOUGHT)
    await table.flush()
    assert table.problem
    assert sum(row.requests for row in await table.user_rows("u", "2026")) == 2

    table.add(ROW, BOUGHT)
    rows = await table.user_rows("u", "2026")

    assert table.problem == ""
    assert sum(row.requests for row in rows) == 3
    assert stored(database, "openai_responses_purchases") == [
        ("u", "2026-11-23", "m", *(3 * number for number in BOUGHT))
    ]


@pytest.mark.parametrize("moment", ["SELECT", "INSERT"])
async def test_row_that_waited_for_a_reader_or_writer_is_written_after_it(
    moment: str, database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Perhaps nobody asks again before the server stops."""
    moments = [moment]

    async def run_while_a_row_comes(*statements: Any) -> Any:
        if moments and statements[-1][0].lstrip().startswith(moment):
            moments.clear()
            table.add(ROW, BOUGHT)
            await asyncio.sleep(0)  # the writer sees that the rows are read
        return await run_sql(*statements)

    table = UsageTable()
    monkeypatch.setattr(usage_table, "run_sql", run_while_a_row_comes)
    other = ROW._replace(user_id="t")
    table.add(other)

    await (table.user_rows("u", "2026") if moment == "SELECT" else table.flush())

    both = [other, ROW]
    await until(lambda: sorted(stored(database, "openai_responses_usage")) == both)


@pytest.mark.parametrize(
    ("name", "kept"),
    [("a\ud800", "a?"), ("a\0", "a?"), ("\N{SNOWMAN}" * 9_000, "\N{SNOWMAN}" * 200)],
)
async def test_name_that_no_database_takes_keeps_no_others_from_it(
    name: str, kept: str, database: UsageDatabase
) -> None:
    """PostgreSQL takes no NUL and no key of 2,705 bytes; none takes half a character."""
    table = UsageTable()
    table.add(ROW._replace(model=name))
    await table.flush()
    table.add(ROW._replace(user_id="v"))
    await table.flush()

    rows = stored(database, "openai_responses_usage")
    assert [row[:3:2] for row in rows] == [("u", kept), ("v", "m")]


async def test_user_who_asks_without_a_pause_is_written(
    database: UsageDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server would know nothing of what they use."""

    steps = count(20, 7)

    async def run_slowly(*statements: Any) -> Any:
        for _ in range(next(steps)):
            await asyncio.sleep(0)
        return await run_sql(*statements)

    async def ask_again() -> None:
        while True:
            await table.user_rows("u", "2026")

    table = UsageTable()
    monkeypatch.setattr(usage_table, "run_sql", run_slowly)
    asking = [asyncio.create_task(ask_again()) for _ in "12345"]
    await table.user_rows("u", "2026")
    table.add(ROW)
    for _ in "12345":
        assert await table.user_rows("u", "2026") == [ROW]

    assert stored(database, "openai_responses_usage") == [ROW]
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)
