"""`/usage` in the real Open WebUI: drawn by its page, and told to no model."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.users import User
from hosts.sent import answered, assert_each_continues, chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import administration, usage_rows
from hosts.setup.pipes import PIPE
from hosts.setup.usage import (
    MODELS,
    add_made_up_use,
    forget_use,
    made_up_people,
)
from openai_responses.clock import utc_today
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("counting"),
]

MODEL = f"{PIPE}.gpt-5.2"
THINKING = f"{PIPE}.gpt-6.1-sol"
PRICES = {"input": 1.75, "cached": 0.175, "output": 14.0}
"""OpenAI's for gpt-5.2, in US dollars for a million tokens."""
PICTURES = ".chat-assistant svg.marks"
HAS_PICTURES = """(count) =>
  document.querySelectorAll('.chat-assistant svg.marks').length >= count"""
PLACES = """() => [...document.querySelectorAll('.chat-assistant svg.marks')].map((one) => {
  const inner = one.getBoundingClientRect();
  const outer = one.closest('.overflow-hidden').getBoundingClientRect();
  return [inner.left - outer.left, outer.right - inner.right, inner.height];
})"""


@pytest_asyncio.fixture(scope="module")
async def counting(
    admin: User, server: OpenWebUI, pipe: list[str]
) -> AsyncIterator[None]:
    """The filter, which counts, on a server that has counted nothing."""
    assert pipe
    forget_use(server)
    async with administration(admin, USER_LIMITS_JSON="[]"):
        yield
    forget_use(server)


async def test_use_is_drawn_and_is_a_file(
    admin: User, server: OpenWebUI, chromium: Chromium, tmp_path: Path
) -> None:
    """Nothing of nothing; of a month of forty users two pictures, on a phone as well.

    Their names can be read, and there is no block of JSON. The file is a link in the
    chat, which a click downloads.
    """
    async with ChatPage(admin, chromium) as page:
        await page.open_model(MODEL)
        await page.ask("/usage")
        assert "Nothing was counted in these days." in await page.last_answer()
        assert await page.page.locator(PICTURES).count() == 0

        people = made_up_people(server, 40)
        month = add_made_up_use(server, people, MODELS, utc_today()) / 1e6
        await page.ask("/usage")
        await page.page.wait_for_function(HAS_PICTURES, arg=2)
        text = await page.last_answer()
        drawn = await page.page.locator(PICTURES).all_text_contents()
        for width in (1280, 390):
            await page.resize(width, 900)
            for left, right, height in await page.page.evaluate(PLACES):
                assert min(left, right) >= 0, width
                assert height > 200, width
        await page.resize(1280, 900)

        await page.ask("/usage csv")
        link = page.answers.last.get_by_role("link", name=".csv")
        address = await link.get_attribute("href")
        async with page.page.expect_download() as download:
            await link.click()
        await (await download.value).save_as(tmp_path / "usage.csv")
        assert (page.errors, page.blocked) == ([], [])

    assert '"data"' not in text
    assert "In the week from" in text
    assert "The line: without the prompt cache" in drawn[0]
    for name in (*MODELS[:4], "other models"):
        assert name in drawn[0]
    assert "All others: $" in drawn[1]
    shown = re.search(r"\$([\d,.]+) for [\d,]+ requests", text)
    assert shown
    assert float(shown[1].replace(",", "")) == pytest.approx(month, abs=0.5)
    head, *lines = (tmp_path / "usage.csv").read_text().splitlines()
    assert head.startswith('"user","model","US dollars","requests"')
    money = sum(float(line.split('","')[2]) for line in lines)
    assert money == pytest.approx(month, abs=0.5)
    assert "/api/v1/files/" in str(address)
    forget_use(server)


async def test_money_is_that_of_the_price_list(
    member: User, admin: User, server: OpenWebUI, simulator: Simulator
) -> None:
    """To the cent: the recorded usage of the same chats, added up by hand."""
    titles = {"title_generation": True}
    async with Tab(member) as tab, Tab(admin) as own:
        first = await tab.send(MODEL, "sim:chat " + "word " * 3000)
        await tab.send(MODEL, "sim:chat more", chat_id=first.chat_id)
        await tab.send(MODEL, "sim:short", background_tasks=titles)
        told = await tab.send(MODEL, "/usage")
        of_all = await own.send(MODEL, "/usage")
        of_one = await own.send(MODEL, f"/usage {member.email}")

    usages = [request.response["usage"] for request in answered(simulator)]  # type: ignore[index]
    dollars = uncached = 0.0
    for usage in usages:
        cached = usage["input_tokens_details"]["cached_tokens"]
        made = usage["output_tokens"] * PRICES["output"]
        plain = (usage["input_tokens"] - cached) * PRICES["input"]
        dollars += plain + cached * PRICES["cached"] + made
        uncached += usage["input_tokens"] * PRICES["input"] + made
    assert any(usage["input_tokens_details"]["cached_tokens"] for usage in usages)
    assert {row["model"] for row in usage_rows(server, member)} == {"gpt-5.2"}
    for turn in (told, of_all, of_one):
        assert turn.error is None
        [total] = re.findall(r"\*\*\$([\d.]+)\*\* for", turn.text)
        [saved] = re.findall(r"That saved \$([\d.]+\d)", turn.text)
        assert float(total) == pytest.approx(dollars / 1e6, abs=0.0051)
        assert float(saved) == pytest.approx((uncached - dollars) / 1e6, abs=0.0051)
        picture = json.loads(turn.text.partition("```vega-lite\n")[2].split("\n")[0])
        drawn = picture["layer"][0]["data"]["values"].splitlines()[1]
        assert float(drawn.split(",")[2]) == pytest.approx(dollars / 1e6, abs=0.0001)


@pytest.mark.asyncio
@pytest.mark.usefixtures("counting")
async def test_commands_are_told_to_no_model(admin: User, simulator: Simulator) -> None:
    """Neither in the next request nor in a task; the beginning stays the same."""
    tasks = {"title_generation": True, "tags_generation": True}
    tasks |= {"follow_up_generation": True}
    async with Tab(admin) as tab:
        first = await tab.send(THINKING, "sim:chat hello")
        chat: Json = {"chat_id": first.chat_id, "background_tasks": tasks}
        for command in ("/usage", "/check", "/usage csv", "/usage last month"):
            told = await tab.send(THINKING, command, **chat)
            assert told.error is None
        simulated = len(answered(simulator))
        again = await tab.send(THINKING, "sim:chat again", **chat)

    assert again.error is None
    later = answered(simulator)[simulated:]
    assert len(later) >= 2  # the chat and its tasks
    sent = json.dumps([request.body for request in later])
    for words in ("/usage", "/check", "What it cost", "The setup of this pipe"):
        assert words not in sent
    assert admin.email not in sent
    bodies = chat_bodies(simulator)
    assert bodies[-1]["input"][: len(bodies[0]["input"])] == bodies[0]["input"]
    assert "I was given 1 reasoning item back" in again.text
    simulator.requests[:] = [
        request
        for request in simulator.requests
        if request.body in (bodies[0], bodies[-1])
    ]
    assert_each_continues(simulator)
