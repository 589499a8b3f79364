"""The filter's tables, with the real Open WebUI's database layer.

Two processes count at once in one SQLite: one with this version of the filter, one with
the statements of version 1.0.0, which reads and writes all columns without naming them.
Two servers on one PostgreSQL count in test_two_servers.py.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from hosts.servers.offline import NEWEST, host_environment, host_python

pytestmark = [pytest.mark.host, pytest.mark.asyncio]

PIPES = Path(__file__).parents[2] / "pipes"
LATER = """
import asyncio, json, sys
sys.path.append(sys.argv[1])
from datetime import date
from owui_host.database import run_sql
from owui_administration.usage_command import UsageReport, read_command
from owui_administration.usage_table import UsageRow, UsageTable
from shells.administration import UNKNOWN_CALL, Purchases

ROW = UsageRow("u", "2026-11-23", "m", 1, 3, 2, 5, 7_000_000)
BOUGHT = Purchases(itemized=1, itemized_money=7_000_000, saved=2_000_000, reasoning=4)

async def save(name, text):
    return name

async def main():
    table = UsageTable()
    await run_sql(('CREATE TABLE IF NOT EXISTS {schema}"user" '
        "(id TEXT PRIMARY KEY, email TEXT)", {}))
    for _ in range(25):
        await table.user_rows("u", "2026")
        table.add(ROW, BOUGHT)
    await table.flush()
    input()  # until the other one is done
    facts = {**UNKNOWN_CALL, "user_id": "u", "role": "admin"}
    report = UsageReport(table, facts, date(2026, 11, 28), save)
    text = "".join([line async for line in report.lines(read_command("/usage"), ())])
    rows = await run_sql(("SELECT * FROM {schema}openai_responses_usage", {}))
    bought, saved = await table.purchases("2026")
    print(json.dumps({"problem": table.problem, "rows": [list(row) for row in rows],
        "bought": bought._asdict(), "saved": saved, "text": text}))

asyncio.run(main())
"""
EARLIER = """
import asyncio, sys
sys.path.append(sys.argv[1])
from owui_host.database import run_sql

CREATE = (
    "CREATE TABLE IF NOT EXISTS {schema}openai_responses_usage (user_id TEXT, day TEXT, "
    "model TEXT, requests BIGINT, input BIGINT, cached BIGINT, output BIGINT, "
    "money BIGINT, PRIMARY KEY (user_id, day, model))"
)
ADD = (
    "INSERT INTO {schema}openai_responses_usage AS old VALUES "
    "(:user_id, :day, :model, :requests, :input, :cached, :output, :money) "
    "ON CONFLICT (user_id, day, model) DO UPDATE SET "
    "requests = old.requests + excluded.requests, input = old.input + excluded.input, "
    "cached = old.cached + excluded.cached, output = old.output + excluded.output, "
    "money = old.money + excluded.money"
)
ROW = dict(user_id="u", day="2026-11-23", model="m", requests=1, input=3, cached=2,
    output=5, money=7_000_000)

async def main():
    for _ in range(25):
        for _ in range(3):  # two sessions that make a table at once: one of them fails
            try:
                rows = await run_sql((CREATE, {}), (ADD, [ROW]))
                break
            except Exception as error:
                print(type(error).__name__, file=sys.stderr)
        [row] = await run_sql(("SELECT * FROM {schema}openai_responses_usage", {}))
        user_id, day, model, requests, given, cached, made, money = row

asyncio.run(main())
"""


async def test_both_versions_count_at_once(tmp_path: Path) -> None:
    """Nothing is lost in the table of both; the later one itemizes its own half."""
    python = host_python(NEWEST)
    (tmp_path / "data").mkdir()
    processes = [
        await asyncio.create_subprocess_exec(
            *(str(python), "-P", "-c", code, str(PIPES)),
            env=host_environment(python, tmp_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for code in (LATER, EARLIER)
    ]
    later, earlier = processes
    async with asyncio.timeout(120):
        _, errors = await earlier.communicate()
        output, more_errors = await later.communicate(b"\n")

    assert (earlier.returncode, later.returncode) == (0, 0), (errors, more_errors)
    told: dict[str, Any] = json.loads(output.splitlines()[-1])
    assert told["problem"] == ""
    assert told["rows"] == [["u", "2026-11-23", "m", 50, 150, 100, 250, 350_000_000]]
    assert told["saved"] == {"2026-11-23": 50_000_000}
    assert (told["bought"]["itemized"], told["bought"]["reasoning"]) == (25, 100)
    assert "**$350.00** for 50 requests" in told["text"]
    assert "cost $50.00 more (known of 25 of 50 requests)" in told["text"]
    assert "| Not itemized | 25 requests | 175.0000 |" in told["text"]
    assert told["text"].count("```vega-lite") == 1
