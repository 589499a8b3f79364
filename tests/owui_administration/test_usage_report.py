"""What `/usage` tells, of made-up use."""

import json
import re
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest

from owui_administration.usage_command import UsageReport, read_command
from owui_administration.usage_table import UsageRow, UsageTable
from shells.administration import NO_PURCHASES, UNKNOWN_CALL, CallFacts, Purchases
from stand_in.usage_database import UsageDatabase

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("database")]

Json = dict[str, Any]
TODAY = date(2026, 11, 28)
ADMIN: CallFacts = {
    **UNKNOWN_CALL,
    "user_id": "user-0",
    "email": "user0@school.example",
    "role": "admin",
}
MEMBER: CallFacts = {
    **ADMIN,
    "user_id": "user-1",
    "email": "user1@school.example",
    "role": "user",
}
ROW = UsageRow("user-1", TODAY.isoformat(), "gpt-5.2", 10, 1000, 400, 100, 2_000_000)


class Files:
    """Files that the host stores; a `full` one stores none."""

    def __init__(self, *, full: bool = False) -> None:
        self.full = full
        self.stored: dict[str, str] = {}

    async def save(self, name: str, text: str) -> str:
        if self.full:
            return ""
        self.stored[name] = text
        return f"/files/{name}"


async def told(
    text: str,
    facts: CallFacts = ADMIN,
    files: Files | None = None,
    rows: tuple[UsageRow, ...] = (),
    bought: Purchases = NO_PURCHASES,
    *,
    program: bool = False,
) -> str:
    table = UsageTable()
    for row in rows:
        table.add(row, bought)
    command = read_command(text)
    assert command is not None
    save = None if program else (files or Files()).save
    report = UsageReport(table, facts, TODAY, save)
    return "\n".join([line async for line in report.lines(command, ())])


def pictures(text: str) -> list[Json]:
    return [json.loads(block) for block in re.findall(r"```vega-lite\n(.*)\n```", text)]


def day_ago(days: int) -> str:
    return (TODAY - timedelta(days)).isoformat()


async def test_it_begins_with_a_picture() -> None:
    rows = (ROW, ROW._replace(user_id="user-2", money=3_000_000))
    own = await told("/usage", MEMBER, rows=rows)
    of_all = await told("/usage", rows=())

    [picture] = pictures(own)
    [days, users] = pictures(of_all)
    assert own.index("```vega-lite") < own.index("**$2.00** for 10 requests")
    assert picture["layer"][0]["data"]["values"] == "place,rank,dollars\n29,0,2"
    assert days["layer"][0]["data"]["values"] == "place,rank,dollars\n29,0,5"
    assert [bar["label"] for bar in users["data"]["values"]] == ["$3.00", "$2.00"]
    assert days["title"] == {"text": "US dollars a day"}


async def test_a_picture_fetches_nothing(database: UsageDatabase) -> None:
    """Neither its data nor a schema is elsewhere, whatever a user is called."""
    database.add_users(
        ("user-1", "![a](https://evil.example)\n```@x"), ("user-2", "b@x")
    )
    rows = (ROW, ROW._replace(user_id="user-2"))
    text = await told("/usage", rows=rows)

    drawn = json.dumps(pictures(text))
    assert len(pictures(text)) == 2
    assert "url" not in drawn
    assert "$schema" not in drawn
    assert not re.search(r"[\[`!]+a", drawn)
    assert text.count("```") == 4


async def test_names_in_pictures_are_short() -> None:
    """Sixty characters; whoever signs up writes an address."""
    rows = tuple(
        ROW._replace(user_id=f"{n}{'u' * 59}v", model=f"{n}{'m' * 59}v") for n in "12"
    )
    [days, users] = pictures(await told("/usage", rows=rows))

    assert [bar["user"] for bar in users["data"]["values"]] == [
        f"{n}{'u' * 59}" for n in "12"
    ]
    assert days["params"][1]["value"] == [f"{n}{'m' * 59}" for n in "12"]


@pytest.mark.parametrize(
    ("money", "shown"),
    [(0, "$0.00"), (9_999, "$0.0100"), (10_000, "$0.01"), (1_234_560_000, "$1,234.56")],
)
async def test_small_amounts_have_more_digits(money: int, shown: str) -> None:
    text = await told("/usage", MEMBER, rows=(ROW._replace(money=money),))

    assert f"**{shown}** for 10 requests" in text


@pytest.mark.parametrize(
    ("words", "span"),
    [
        ("", "30 October to 28 November 2026 (UTC)"),
        ("1d", "28 November 2026 (UTC)"),
        ("365d", "29 November 2025 to 28 November 2026 (UTC)"),
    ],
)
async def test_days_are_named(words: str, span: str) -> None:
    assert f"\nYou, {span}.\n" in await told(f"/usage {words}", MEMBER)
    assert f"\nAll users, {span}.\n" in await told(f"/usage {words}")


async def test_nothing_is_drawn_of_nothing() -> None:
    empty = await told("/usage")
    free = await told("/usage", rows=(ROW._replace(money=0),))

    assert "Nothing was counted in these days." in empty
    assert "All users since" not in empty
    assert pictures(empty) == pictures(free) == []
    assert "**$0.00** for 10 requests" in free


async def test_programs_get_no_picture() -> None:
    rows = (ROW, ROW._replace(user_id="user-2"))
    text = await told("/usage", rows=rows, program=True)

    assert "```" not in text
    assert "How much that saved is not known." in text
    earlier = tuple(ROW._replace(day=day_ago(days)) for days in (1, 10, 40))
    own = await told("/usage", MEMBER, rows=earlier, program=True)
    assert "```" not in own
    assert "| today | 2.0000 | 10 | 1,000 | 400 | 100 |" in own
    assert "| this week | 4.0000 |" in own
    assert "| this month | 6.0000 |" in own
    assert "| user-1, gpt-5.2 | 2.0000 | 10 | 1,000 | 400 | 100 |" in text


async def test_what_the_cache_saved() -> None:
    bought = Purchases(itemized=10, itemized_money=2_000_000, saved=1_500_000)
    text = await told("/usage", MEMBER, rows=(ROW,), bought=bought)

    assert (
        "**40%** of the input came from the prompt cache. That saved $1.50.\n" in text
    )
    assert "| Searches" not in text
    [picture] = pictures(text)
    line = picture["layer"][1]
    assert picture["title"]["subtitle"] == "The line: without the prompt cache"
    assert line["mark"]["type"] == "line"
    assert line["data"]["values"].splitlines()[-2:] == ["29,3.5", "30,3.5"]


async def test_a_cache_can_cost_more_than_it_saves() -> None:
    """Writing costs more than input; what is not itemized is told.

    Some gateways leave what was cached out of the input.
    """
    bought = Purchases(
        itemized=4, itemized_money=2_000_000, saved=-120_000, cache_writes=500
    )
    rows = (ROW._replace(cached=5_000),)
    text = await told("/usage", MEMBER, rows=rows, bought=bought)

    assert "**100%** of the input came from the prompt cache" in text
    assert (
        "Writing to the cache cost $0.12 more than it saved (known for 4 of 10 requests)."
        in text
    )
    assert len(pictures(text)[0]["layer"]) == 1


@pytest.mark.parametrize(
    ("shares", "told_of"),
    [
        ((70, 70, 70, 40), "22 November only 40% 70%"),
        ((70, 40, 40, 40), "8 November only 40% 70%"),
        ((100, 60, 60, 20), "22 November only 20% 60%"),
        ((70, 70, 70, 50), ""),
        ((70, 40, 40, 50), ""),
        ((70, 60, 45, 45), ""),
        ((0, 0, 0, 0), ""),
    ],
    ids=[
        *("just now", "and stays", "twice", "less than a third", "and came back"),
        *("little by little", "never"),
    ],
)
async def test_a_share_that_falls_is_told(
    shares: tuple[int, ...], told_of: str
) -> None:
    """From one week to the next by more than a third."""
    rows = tuple(
        ROW._replace(day=day_ago(7 * (3 - week) + day), cached=10 * share)
        for week, share in enumerate(shares)
        for day in range(7)
    )
    text = await told("/usage", MEMBER, rows=rows)

    first, _, before = told_of.rpartition(" ")
    said = (
        f"In the week from {first} of the input came from the cache, compared with "
        f"{before} in the week before. Something"
    )
    assert (said in text) is bool(told_of)
    assert ("docs/history.md" in text) is bool(told_of)


@pytest.mark.parametrize(
    ("requests", "read", "is_told"),
    [(19, 1000, False), (20, 1000, True), (20, 0, False)],
)
async def test_few_requests_say_nothing_of_the_cache(
    requests: int, read: int, *, is_told: bool
) -> None:
    """One long question is no trend."""
    rows = tuple(
        ROW._replace(day=day_ago(n), requests=requests, input=read, cached=n * 50)
        for n in (0, 7)
    )
    text = await told("/usage", MEMBER, rows=rows)

    assert ("docs/history.md" in text) is is_told


async def test_what_the_money_bought() -> None:
    bought = Purchases(
        itemized=9,
        itemized_money=1_900_000,
        input=900,
        reasoning=60,
        reasoning_money=600_000,
        answers=40,
        answer_money=400_000,
        searches=3,
        search_money=30_000,
        images=2,
        image_money=40_000,
        containers=1,
        container_money=30_000,
        tasks=4,
        task_money=50_000,
        agents=5,
        agent_money=700_000,
    )
    text = await told("/usage", MEMBER, rows=(ROW,), bought=bought)

    begin = text.index("| What the money bought")
    assert text[begin:].split("\n\n")[0].splitlines()[2:] == [
        "| Reading the chats | 900 tokens | 0.8000 |",
        "| Reasoning | 60 tokens | 0.6000 |",
        "| Answers | 40 tokens | 0.4000 |",
        "| Searches | 3 calls | 0.0300 |",
        "| Images | 2 calls | 0.0400 |",
        "| Python | 1 container | 0.0300 |",
        "| Not itemized | 1 request | 0.1000 |",
        "| All | 10 requests | 2.0000 |",
        "| of these: titles and other tasks | 4 requests | 0.0500 |",
        "| of these: agents | 5 requests | 0.7000 |",
    ]


async def test_words_that_it_does_not_know() -> None:
    text = await told("/usage last month")

    assert "does not know the word “last”" in text
    for known in ("/usage 90d", "/usage csv", "/usage ann@school.example"):
        assert f"`{known}`" in text


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/usage", (30, False, "", "")),
        ("/usage 7d", (7, False, "", "")),
        ("/usage  CSV  90D", (90, True, "", "")),
        ("/Usage Ann@School.example 1d", (1, False, "ann@school.example", "")),
        ("/usages", None),
        ("say /usage", None),
        ("", None),
    ],
)
async def test_words_are_read_as_a_phone_writes_them(
    text: str, command: tuple[int, bool, str, str] | None
) -> None:
    """In any order; other texts are for the model."""
    assert read_command(text) == command


@pytest.mark.parametrize("word", ["0d", "1000d", "x" * 10_000, "<b>"])
async def test_a_word_is_told_briefly(word: str) -> None:
    text = await told(f"/usage {word}")
    assert "does not know" in text
    assert len(text) < 600
    assert "<" not in text


async def test_one_user() -> None:
    """Administrators name an address; others may name their own alone."""
    rows = (ROW, ROW._replace(user_id="u-1", model="gpt-6-luna"))
    named = await told("/usage Ann@example.com", rows=rows)
    unknown = await told("/usage nobody@school.example")
    own = await told("/usage User1@school.example", MEMBER)
    large: CallFacts = {**MEMBER, "email": MEMBER["email"].upper()}
    assert "| today | 2.0000 |" in await told("/usage user1@school.example", large)
    other = await told("/usage user2@school.example", MEMBER)

    assert "\nann@example.com, 30 October to" in named
    assert "| gpt-6-luna | 2.0000 | 10 | 1,000 | 400 | 100 |" in named
    assert "gpt-5.2" not in named
    assert len(pictures(named)) == 1
    assert "Your use" not in named
    assert "no user with the address nobody@school.example" in unknown
    assert "<" not in await told("/usage <b>@school.example")
    assert "| today | 2.0000 |" in own
    assert "Only administrators see" in other
    assert "|" not in other


async def test_csv_is_a_file(database: UsageDatabase) -> None:
    database.add_users(("user-1", "=+-@cmd|@school.example"))
    files = Files()
    text = await told("/usage csv", files=files, rows=(ROW,))
    own = Files()
    await told("/usage csv", MEMBER, own)

    assert "[usage-2026-11-28.csv](/files/usage-2026-11-28.csv): 1 line for" in text
    assert "school.example" not in text
    assert "Your use" not in text
    assert files.stored["usage-2026-11-28.csv"].splitlines() == [
        '"user","model","US dollars","requests","input tokens","cached input",'
        '"output tokens"',
        '"cmd @school.example","gpt-5.2","2.0000","10","1000","400","100"',
    ]
    [text] = own.stored.values()
    assert text.splitlines()[1].startswith('"2026-11-28","gpt-5.2","2.0000"')


async def test_csv_that_the_host_does_not_store() -> None:
    refused = await told("/usage csv", files=Files(full=True), rows=(ROW,))
    program = await told("/usage csv", program=True)
    own = await told("/usage csv", MEMBER, program=True)

    assert "Open WebUI did not store the file" in refused
    for text in (refused, program):
        assert '```csv\n"All users since 2026-10-30","US dollars"' in text
        assert '"user-1, gpt-5.2","2.0000","10","1000","400","100"' in text
    assert '```csv\n"You since 2026-10-30","US dollars"' in own
    assert '"2026-11-28, gpt-5.2","2.0000","10","1000","400","100"' in own
    assert "| today | 2.0000 | 10 | 1,000 | 400 | 100 |" in own


USERS = 120
"""More than a report names; a thousand take five times as long, and show no more."""


async def test_a_year_of_many_users(database: UsageDatabase) -> None:
    """With both tables full the answer stays short, and the sums are exact."""
    random = Random(1)
    days = [day_ago(n) for n in range(365)]
    keys = [
        (f"{n:036}", day, f"gpt-{random.randrange(12)}")
        for day in days
        for n in range(USERS)
    ]
    rows = [(*key, 5, 10_000, 4_000, 2_000, random.randrange(10**6)) for key in keys]
    await UsageTable().user_rows("u", "2026")  # makes the tables
    connection = database.connection
    marks = ", ".join("?" * 8)
    connection.executemany(f"INSERT INTO openai_responses_usage VALUES ({marks})", rows)
    counts = [5] * len(Purchases._fields)
    marks = ", ".join("?" * (3 + len(counts)))
    connection.executemany(
        f"INSERT INTO openai_responses_purchases VALUES ({marks})",
        ((*key, *counts) for key in keys),
    )
    connection.commit()

    text = await told("/usage 365d")
    money = sum(row[-1] for row in rows)

    assert f"**${money / 1e6:,.2f}** for {365 * 5 * USERS:,} requests" in text
    assert len(text) < 40_000
    [days_drawn, users] = pictures(text)
    drawn = sum(
        float(line.split(",")[2])
        for line in days_drawn["layer"][0]["data"]["values"].splitlines()[1:]
    )
    assert drawn == pytest.approx(money / 1e6, abs=0.05)
    bars = sum(bar["dollars"] for bar in users["data"]["values"])
    rest = float(users["title"]["subtitle"].partition("$")[2].replace(",", ""))
    assert bars + rest == pytest.approx(money / 1e6, abs=0.01)
    table = text[text.index("| All users since") :].split("\n\n")[0]
    assert len(table.splitlines()) == 2 + 100


async def test_csv_in_a_chat_has_a_limit() -> None:
    rows = tuple(ROW._replace(model=f"m-{number}") for number in range(5001))
    program = await told("/usage csv", rows=rows, program=True)
    files = Files()
    await told("/usage csv", files=files)

    refused = await told("/usage csv", files=Files(full=True))

    for text in (program, refused):
        assert text.count('\n"user-1, m-') == 5000
    assert files.stored["usage-2026-11-28.csv"].count('\n"user-1","m-') == 5001
