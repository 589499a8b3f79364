"""Limits of users in the real host: what is counted, refused and told."""

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab, Turn
from hosts.people.users import User, make_group
from hosts.sent import answered, chat_bodies
from hosts.servers.offline import NEWEST, host_environment, host_python
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import ADMINISTRATION, administration, usage_rows
from hosts.setup.pipes import valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-5.2"
Json = dict[str, Any]
RULES = [
    {"group": "Students", "tokens": 1, "per": "day", "models": ["gpt-5.2*"]},
    {"role": "admin", "money": 100, "per": "month", "show": True},
]
FEE = 0.03
"""Dollars of a container in which code runs (OpenAI's price list)."""
WRITER = """
import asyncio, sys
sys.path.append(sys.argv[1])
from owui_administration.usage_table import UsageRow, UsageTable

async def main():
    table = UsageTable()
    for _ in range(25):
        await table.user_rows("u", "2026")
        table.add(UsageRow("u", "2026-11-23", "m", 1, 3, 2, 5, 7))
    await table.user_rows("u", "2026")
    print(table.problem)

asyncio.run(main())
"""


@pytest_asyncio.fixture
async def students(admin: User, member: User) -> AsyncIterator[str]:
    """A group with the ordinary user: the path of its routes."""
    path = await make_group(admin, "Students", member)
    yield path
    await admin.call("DELETE", f"{path}/delete")


@pytest.mark.asyncio
@pytest.mark.usefixtures("students", "toolkit")
async def test_a_group_reaches_its_limit(
    admin: User, member: User, tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """A deleted chat gives nothing back, and administrators see who used what.

    A client that merges answers names the model itself, with any prompt.
    An answer that has begun ends between two rounds of tools.
    """
    async with (
        administration(admin, USER_LIMITS_JSON=json.dumps(RULES)),
        Tab(admin) as own,
    ):
        other = await tab.send(f"{PIPE}.gpt-4.1", "sim:short")
        merge = {"model": f"{PIPE}.gpt-4.1", "prompt": "sim:short", "responses": []}
        merged = await member.call("POST", "/api/v1/tasks/moa/completions", merge)
        tools = {"tool_ids": ["toolkit"]}
        first = await tab.send(MODEL, "sim:tool weather?", body=tools)
        await member.call("DELETE", f"/api/v1/chats/{first.chat_id}")
        second = await tab.send(MODEL, "sim:short")
        sums = await tab.send(MODEL, "/usage")
        free = await own.send(MODEL, "sim:short")
        table = await admin.complete(MODEL, "/usage 2d csv")

    assert (free.error, sums.error) == (None, None)
    assert "gpt-4.1 is not available to you" in str(other.error)
    assert merged["choices"][0]["message"]["content"] == ""
    assert "gpt-4.1" not in {request.body["model"] for request in answered(simulator)}
    for ended in (first, second):
        assert "Your limit of 1 tokens a day is used up" in str(ended.error)
    assert "00:00 UTC" in str(second.error)
    assert len(chat_bodies(simulator)) == 2
    assert "left this month" in free.statuses[-1]["description"]
    [row] = usage_rows(server, member)
    money = f"{row['money'] / 1e6:.4f}"
    start = f"| today | {money} | {row['requests']} | {row['input']:,} |"
    assert start in sums.text
    assert "- 0 tokens of 1 tokens left today" in sums.text
    assert admin.email not in sums.text
    used = (money, row["requests"], row["input"], row["cached"])
    cells = ",".join(f'"{cell}"' for cell in (f"{member.email}, gpt-5.2", *used))
    assert cells in table
    assert f'"{admin.email}, gpt-5.2",' in table


@pytest.mark.asyncio
async def test_fee_of_a_container_counts(
    admin: User, tab: Tab, server: OpenWebUI, member: User, simulator: Simulator
) -> None:
    """In the line above the answer, and in what limits of money count."""
    rules = [{"role": "user", "money": 100, "per": "day"}]
    async with (
        administration(admin, USER_LIMITS_JSON=json.dumps(rules)),
        valves_changed(admin, PIPE, ENABLE_CODE_INTERPRETER=True, SHOW_COST=True),
    ):
        await tab.send(MODEL, "/usage")  # makes the table where it is missing
        before = money_of(server, member)
        without_code = await tab.send(MODEL, "sim:short")
        with_code = await tab.send(MODEL, "sim:count how many?")
        sums = await tab.send(MODEL, "/usage")

    assert without_code.error is with_code.error is None
    assert cost_of(with_code) - cost_of(without_code) > 0.9 * FEE
    assert "today" in sums.text
    assert len(chat_bodies(simulator)) == 2
    total = cost_of(without_code) + cost_of(with_code)
    counted = money_of(server, member) - before
    assert counted == pytest.approx(total, rel=0.05)  # the lines have two digits


@pytest.mark.asyncio
async def test_who_draws_reaches_a_limit_in_money(
    admin: User, tab: Tab, server: OpenWebUI, member: User
) -> None:
    """A picture is most of what such an answer costs; the last line tells an estimate."""
    picture = 272 * 30 / 1e6  # 1024 x 1024, low
    async with (
        administration(admin, USER_LIMITS_JSON="[]"),
        valves_changed(admin, PIPE, ENABLE_IMAGE_GENERATION=True, SHOW_COST=True),
    ):
        await tab.send(MODEL, "/usage")  # makes the table where it is missing
    before = money_of(server, member)
    most = before + 1.5 * picture
    rules = [{"role": "user", "money": round(most, 4), "per": "day"}]
    async with (
        administration(admin, USER_LIMITS_JSON=json.dumps(rules)),
        valves_changed(admin, PIPE, ENABLE_IMAGE_GENERATION=True, SHOW_COST=True),
    ):
        turns = [await tab.send(MODEL, "sim:draw a disc") for _ in range(3)]

    assert turns[0].error is None
    assert "· about $0.0" in turns[0].statuses[-1]["description"]
    assert "is used up" in str(turns[-1].error)
    assert money_of(server, member) - before >= picture


def money_of(server: OpenWebUI, user: User) -> float:
    """The dollars that are counted for a user."""
    amounts = [float(row["money"]) for row in usage_rows(server, user)]
    return sum(amounts) / 1e6


def cost_of(turn: Turn) -> float:
    """The dollars in the last line of an answer."""
    amount = re.search(r"\$([0-9.]+)", turn.statuses[-1]["description"])
    assert amount
    return float(amount[1])


@pytest.mark.asyncio
async def test_rules_hold_for_who_somebody_is_now(
    admin: User, member: User, students: str, server: OpenWebUI
) -> None:
    """A group that somebody leaves, another of nearly the same name, a lower limit.

    What a deleted user has used stays counted, and names that no one has are told.
    """
    other = await make_group(admin, "students ", member)
    closed: Json = {"group": "Students", "models": []}
    amount: Json = {"role": "user", "tokens": 10**9, "per": "day"}
    unknown: Json = {"user": "nobody@example.com", "last": True}

    async def asked(*rules: Json) -> str:
        valves = {"USER_LIMITS_JSON": json.dumps([*rules, unknown])}
        await admin.set_valves(ADMINISTRATION, valves)
        async with Tab(member) as tab:  # a change of groups closes open ones
            return str((await tab.send(MODEL, "sim:short")).error)

    async with (
        administration(admin),
        await admin.add_user("leaver@example.com", "leaver") as leaver,
        Tab(admin) as own,
        Tab(leaver) as left,
    ):
        member_of = await asked(closed, amount)
        ids = {"user_ids": [member.id]}
        await admin.call("POST", f"{students}/users/remove", ids)
        outside = await asked(closed, amount)
        lowered = await asked({**amount, "tokens": 1})
        raised = await asked(amount)
        assert not (await left.send(MODEL, "sim:short")).error
        await admin.call("DELETE", f"/api/v1/users/{leaver.id}")
        line = (await own.send(MODEL, "sim:short")).statuses[-1]["description"]
        table = await own.send(MODEL, "/usage 1d")
    await admin.call("DELETE", f"{other}/delete")

    assert "is not available to you" in member_of
    assert (outside, raised) == ("None", "None")
    assert "limit of 1 tokens a day is used up" in lowered
    assert "nobody@example.com" in line
    assert usage_rows(server, leaver)
    assert f"{leaver.id}, gpt-5.2" in table.text


@pytest.mark.asyncio
async def test_two_processes_count_in_one_sqlite(tmp_path: Path) -> None:
    """Nothing is lost, and the table is there once."""
    python = host_python(NEWEST)
    pipes = Path(__file__).parents[2] / "pipes"
    (tmp_path / "data").mkdir()
    command = [str(python), "-P", "-c", WRITER, str(pipes)]
    writers = [
        await asyncio.create_subprocess_exec(
            *command,
            env=host_environment(python, tmp_path),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for _ in "ab"
    ]
    async with asyncio.timeout(120):
        outputs = [await writer.communicate() for writer in writers]

    assert [out.splitlines()[-1:] for out, _ in outputs] == [[b""], [b""]], outputs
    with closing(sqlite3.connect(tmp_path / "data/webui.db")) as database:
        [row] = database.execute("SELECT * FROM openai_responses_usage").fetchall()
    assert row == ("u", "2026-11-23", "m", 50, 150, 100, 250, 350)
