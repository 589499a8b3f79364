"""Limits of users in the real host: what is counted, refused and told."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from hosts.people.tabs import Tab
from hosts.people.users import User, make_group
from hosts.sent import answered, chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import ADMINISTRATION, administration, usage_rows
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.usefixtures("pipe")]

PIPE = "openai_responses"
MODEL = f"{PIPE}.gpt-5.2"
Json = dict[str, Any]
RULES = [
    {"group": "Students", "tokens": 1, "per": "day", "models": ["gpt-5.2*"]},
    {"role": "admin", "money": 100, "per": "month", "show": True},
]


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
    assert "GPT-4.1 is not available to you" in str(other.error)
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
    assert "- 0 of 1 tokens left today" in sums.text
    assert admin.email not in sums.text
    used = (money, row["requests"], row["input"], row["cached"])
    cells = ",".join(f'"{cell}"' for cell in (f"{member.email}, gpt-5.2", *used))
    assert cells in table
    assert f'"{admin.email}, gpt-5.2",' in table


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
