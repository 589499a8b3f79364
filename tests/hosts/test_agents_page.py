"""What a person sees of agents: the real page in Chromium, wide and on a phone."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from hosts.browser.page import PICTURES, ChatPage
from hosts.people.client import Json
from hosts.people.tabs import Tab
from hosts.people.uploads import attach
from hosts.people.users import User
from hosts.sent import chat_bodies, instructions_of
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.pipes import install_pipe, valves_changed
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.browser, pytest.mark.asyncio]

PIPE = "agents_on_page"
AGENT = f"{PIPE}.gpt5_function_calling"
SALES = b"product,revenue\nTea,48200\nCoffee,24100\nCups,9300\n"
SIZES = {"wide": (1280, 800), "phone": (390, 844)}
LAST_LINE = "4 rounds · 6 tool calls"


@pytest_asyncio.fixture(scope="module", autouse=True)
async def agents(
    admin: User, toolkit: None, pipe_source: str, pipe_valves: Json
) -> AsyncIterator[None]:
    """A copy of the pipe with an agent."""
    valves = {**pipe_valves, "MODEL_ID": "gpt5_function_calling", "AGENT_JSON": ""}
    await install_pipe(admin, PIPE, pipe_source, valves)
    yield
    await admin.delete_function(PIPE)


@pytest.fixture(autouse=True)
def usual_scenario(simulator: Simulator) -> object:
    """The scenario of questions without a word for the simulator, as before."""
    before = simulator.default_scenario
    yield
    simulator.default_scenario = before


async def take(page: ChatPage, name: str) -> None:
    """Take pictures in both sizes; nothing may reach beyond a phone's page."""
    for size, (width, height) in SIZES.items():
        await page.resize(width, height)
        await page.screenshot(PICTURES / f"agent-{name}-{size}.png")
        wide = await page.page.evaluate("document.documentElement.scrollWidth")
        assert wide <= width, size
    await page.resize(*SIZES["wide"])


@pytest.mark.usefixtures("sub_agents")
async def test_tasks_and_sub_agents(
    page: ChatPage, server: OpenWebUI, simulator: Simulator
) -> None:
    """The list is there while the agent works, and the cards of the sub-agents later."""
    simulator.default_scenario = "agent-crew,delay=50"
    await page.open_model(AGENT)
    await page.ask(
        "In which month was the lake warmest, in 2025 and in 2026?", wait=False
    )
    await page.page.get_by_text("Compare both years").first.wait_for()
    await take(page, "tasks")
    await page.answers.last.get_by_text(LAST_LINE).first.wait_for()
    await page.answers.last.get_by_text("August").last.wait_for()
    group = page.answers.last.get_by_text("Explored").first
    await group.click()
    card = page.answers.last.get_by_text("of 2025 the water was").last
    await card.wait_for()
    await take(page, "sub-agents")
    [row] = server.sql("select tasks from chat where id = ?", page.chat_id)
    states = [task["status"] for task in json.loads(row["tasks"])]
    assert states == ["completed", "completed", "in_progress"]
    bodies = chat_bodies(simulator)
    assert len(bodies) == 6
    assert all("<persistence>" in instructions_of(body) for body in bodies)
    assert page.errors == []


async def test_plots_of_an_attached_table_stand_above_the_answer(
    page: ChatPage, member: User, admin: User, simulator: Simulator
) -> None:
    """The table is Python's; the draft and the plot are the person's."""
    simulator.default_scenario = "agent-data"
    table = await attach(member, "sales.csv", SALES, "text/csv")
    files = [table | {"context": "full"}]
    async with (
        valves_changed(admin, PIPE, ENABLE_CODE_INTERPRETER=True),
        Tab(member) as tab,
    ):
        turn = await tab.send(
            AGENT, "Plot the revenue by product.", files=files, body={"files": files}
        )
        stored = await tab.message(turn)

    assert turn.error is None
    [uploaded] = simulator.uploads.files.values()
    assert (uploaded.name, uploaded.content) == ("sales.csv", SALES)
    pictures = [file for file in stored["files"] if file["type"] == "image"]
    assert len(pictures) == 2
    for picture in pictures:
        file = await member.call("GET", f"/api/v1/files/{picture['id']}")
        assert file["user_id"] == member.id
    await page.open_chat(turn.chat_id)
    await page.answers.last.get_by_text("Tea earned the most").wait_for()
    drawn = page.answers.last.locator("img[src*='/files/']")
    await drawn.nth(1).wait_for()
    assert await drawn.count() == 2
    await take(page, "plot")
    assert page.errors == []
