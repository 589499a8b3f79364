"""Made-up use of a month, in the tables of the filter."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import date, timedelta
from random import Random

from hosts.people.client import Json
from hosts.servers.open_webui import OpenWebUI

_MODELS = """
gpt-6.1-sol gpt-6.2-sol gpt-5.2 gpt-5.2-pro gpt-6.1-mini gpt5_function_calling
gpt-5.6-sol gpt-4.1 gpt-5.4 gpt-5.4-mini gpt-5.6-luna gpt-5.6-terra
"""
MODELS = tuple(_MODELS.split())
NAMES = ("anna", "ben", "clara", "dmitri", "elif", "farid", "grace", "hugo")


def made_up_people(server: OpenWebUI, count: int) -> list[str]:
    """Accounts of people who never sign in, copied from another; their ids."""
    [row] = server.sql("SELECT * FROM user LIMIT 1")
    people: list[Json] = []
    for number in range(count):
        name = NAMES[number % len(NAMES)]
        own = {"id": f"made-up-{number}", "email": f"{name}{number}@school.example"}
        people.append({**row, **own, "name": name, "role": "user"})
    names = list(row)
    values = ", ".join(f":{name}" for name in names)
    with _database(server) as database:
        database.executemany(
            f"INSERT INTO user ({', '.join(names)}) VALUES ({values})", people
        )
    return [person["id"] for person in people]


def forget_use(server: OpenWebUI) -> None:
    """Let a server have counted nothing, of made-up people among others."""
    with _database(server) as database:
        for table in ("usage", "purchases"):
            name = f"openai_responses_{table}"
            if database.execute(
                "SELECT 1 FROM sqlite_master WHERE name = ?", (name,)
            ).fetchone():
                database.execute(f"DELETE FROM {name}")
        database.execute("DELETE FROM user WHERE id LIKE 'made-up-%'")


@contextmanager
def _database(server: OpenWebUI) -> Iterator[sqlite3.Connection]:
    path = server.home / "data/webui.db"
    with closing(sqlite3.connect(path, timeout=30)) as database:
        yield database
        database.commit()


def add_made_up_use(
    server: OpenWebUI,
    people: Sequence[str],
    models: Sequence[str],
    today: date,
) -> int:
    """Write rows of a month as the filter does; return the millionths of a dollar of all.

    The tables have to be there. In the last week the cache is hardly read.
    """
    random = Random(4)
    usage: list[Json] = []
    bought: list[Json] = []
    for age in range(30):
        day = today - timedelta(age)
        for person in people:
            for rank, model in enumerate(models):
                is_idle = day.weekday() > 4 and random.random() < 0.85
                if is_idle or random.random() > 0.5 / (rank + 1):
                    continue
                key = {"user_id": person, "day": day.isoformat(), "model": model}
                row, parts = _made_up_row(random, rank, 0.8 if age > 6 else 0.25)
                usage.append(key | row)
                bought.append(key | parts)
    with _database(server) as database:
        for table, rows in (("usage", usage), ("purchases", bought)):
            names = list(rows[0])
            values = ", ".join(f":{name}" for name in names)
            database.executemany(
                f"INSERT INTO openai_responses_{table} ({', '.join(names)}) "
                f"VALUES ({values})",
                rows,
            )
    return sum(row["money"] for row in usage)


def _made_up_row(random: Random, rank: int, share: float) -> tuple[Json, Json]:
    """Return what a user had of a model on a day, and what that bought."""
    requests = random.randrange(1, 20)
    given = requests * random.randrange(1000, 9000)
    cached = int(given * share * random.random())
    written = (given - cached) // 3
    made = requests * random.randrange(100, 900)
    thought = made // 2
    price = 6 / (rank + 2)
    searches = requests // 9
    containers = requests // 15
    reading = (given - cached - written) * price + cached * price / 10
    reading += written * price * 1.25
    parts = {
        "reasoning_money": int(thought * price * 5),
        "answer_money": int((made - thought) * price * 5),
        "search_money": searches * 10_000,
        "container_money": containers * 30_000,
    }
    money = int(reading) + sum(parts.values())
    bought = {
        **parts,
        "itemized": requests,
        "itemized_money": money,
        "input": given,
        "saved": int(cached * price * 0.9 - written * price * 0.25),
        "cache_writes": written,
        "reasoning": thought,
        "answers": made - thought,
        "searches": searches,
        "images": requests // 18,
        "image_money": 0,
        "containers": containers,
        "tasks": requests // 4,
        "task_money": money // 60,
        "agents": requests if "calling" in MODELS[rank] else 0,
        "agent_money": money if "calling" in MODELS[rank] else 0,
    }
    row = {
        "requests": requests,
        "input": given,
        "cached": cached,
        "output": made,
        "money": money,
    }
    return row, bought
