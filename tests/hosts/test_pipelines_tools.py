"""The agent's tools and its thoughts, as the real Open WebUI stores and shows them."""

import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from hosts.browser.chromium import Chromium
from hosts.browser.page import PICTURES, ChatPage
from hosts.people.client import Json
from hosts.people.questions import calling
from hosts.people.tabs import Tab, Turn
from hosts.people.uploads import attach
from hosts.people.users import User, download, new_user
from hosts.sent import assert_each_continues, chat_bodies
from hosts.servers.open_webui import OpenWebUI
from hosts.servers.pipelines_server import PipelinesServer
from hosts.servers.tool_servers import PICTURE
from hosts.setup.agent import (
    FUNCTION_CALLING,
    PATIENCE,
    PIPELINE_ID,
    agent_valves_changed,
    connected_agents,
    pending,
)
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.pipelines, pytest.mark.asyncio]

DRAWING = f"_ = open('dot.png', 'wb').write(bytes.fromhex('{PICTURE.hex()}'))"
TELLING_TIME = "print('12:00 in Bern')"
LONG_CODE = "\n".join(
    [
        "import shutil",
        *(f"# Step {number} of a long program." for number in range(40)),
        TELLING_TIME,
        "shutil.rmtree('old', ignore_errors=True)",
    ]
)
"""Longer than a card; what matters is at the end."""


@pytest_asyncio.fixture(scope="module")
async def agents(
    admin: User, running_simulator: Simulator
) -> AsyncIterator[PipelinesServer]:
    async with connected_agents(admin, running_simulator, SANDBOX=True) as server:
        yield server


async def used(
    tab: Tab, name: str, arguments: Json, scenario: str = "tool", **more: Any
) -> Turn:
    """A turn in which the model calls a tool of the agent's own."""
    question = f"sim:{scenario} {json.dumps(arguments)}"
    return await tab.send(FUNCTION_CALLING, question, body=calling(name), **more)


async def stored_output(tab: Tab, turn: Turn) -> list[Json]:
    output: list[Json] = (await tab.message(turn))["output"]
    return output


async def pictures(tab: Tab, turn: Turn) -> list[bytes]:
    """The pictures that the host keeps of an answer."""
    files = (await tab.message(turn)).get("files") or []
    contents = []
    for file in files:
        address = file["url"].removesuffix("/content")
        status, content = await download(tab.user, f"{address}/content")
        assert status == 200
        contents.append(content)
    return contents


# --------------------------------------------------------------------------- its own tools


CSV = b"city,rain\nBern,3\n"
PDF = b"%PDF-1.4\n\x00\xff%%EOF\n"
XLSX = b"PK\x03\x04" + bytes(range(256))
SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
READING = """
from pathlib import Path

names = ["rain.csv", "paper.pdf", "dot.png", "table.xlsx"]
found = {name: Path(name).read_bytes().hex() for name in names}
for name in names[:2] + names[3:]:
    _ = Path("new-" + name).write_bytes(bytes.fromhex(found[name]))
_ = Path("plot.png").write_bytes(bytes.fromhex(found["dot.png"]))
found
"""


def note_texts(output: list[Json]) -> list[str]:
    """What is told next to an answer of the files of its tools."""
    notes = [item for item in output if str(item.get("id")).startswith("note_")]
    return [note["content"][0]["text"] for note in notes]


@pytest.mark.browser
async def test_files_go_into_the_sandbox_and_come_out_of_it(
    tab: Tab,
    page: ChatPage,
    admin: User,
    server: OpenWebUI,
    agents: PipelinesServer,
    simulator: Simulator,
) -> None:
    """What is attached is there by name; what is made is the user's, or not stored."""
    member = tab.user
    files = [
        await attach(member, "rain.csv", CSV, "text/csv", process=False),
        await attach(member, "paper.pdf", PDF, "application/pdf", process=False),
        await attach(member, "dot.png", PICTURE, "image/png", process=False),
        await attach(member, "table.xlsx", XLSX, SHEET, process=False),
        await attach(admin, "secret.csv", CSV, "text/csv", process=False),
    ]
    valves = {"OPEN_WEBUI_URL": admin.url, "OPEN_WEBUI_API_KEY": member.token}
    valves["COMPATIBILITY"] = "openai"  # elsewhere images follow the results
    async with agent_valves_changed(agents, **valves):
        code = {"code": READING}
        turn = await used(tab, "python_execute", code, files=files)
    unset = await used(
        *(tab, "python_execute", {"code": "_ = open('b.csv', 'w').write('a,b')"}),
        chat_id=turn.chat_id,
    )

    assert turn.error is unset.error is None
    bodies = (body["input"] for body in chat_bodies(simulator))
    ends = [items[-1]["output"] for items in bodies if "output" in items[-1]]
    text, image = ends[0]
    result = json.loads(text["text"].partition("\n")[0])["result"]
    contents = {"rain.csv": CSV, "paper.pdf": PDF, "dot.png": PICTURE}
    contents |= {"table.xlsx": XLSX}
    assert result == {name: content.hex() for name, content in contents.items()}
    assert (
        "secret.csv is not in the workspace. Open WebUI answered with" in text["text"]
    )
    assert base64.b64decode(image["image_url"].partition(",")[2]) == PICTURE
    assert await pictures(tab, turn) == [PICTURE]

    (note,) = note_texts(await stored_output(tab, turn))
    links = dict(re.findall(r"\[(.*?)\]\((.*?)\)", note))
    assert links.keys() == {"new-rain.csv", "new-paper.pdf", "new-table.xlsx"}
    async with new_user(admin) as stranger:
        for name, link in links.items():
            content = contents[name.removeprefix("new-")]
            assert await download(member, link) == (200, content)
            assert (await download(stranger, link))[0] == 404
    (without,) = note_texts(await stored_output(tab, unset))
    assert "has to set OPEN_WEBUI_URL" in without
    assert "> a,b\n" in without
    chat = json.dumps(server.stored_chat(turn.chat_id))
    assert base64.b64encode(PICTURE).decode()[:40] not in chat
    assert base64.b64encode(CSV).decode() not in chat
    assert "](/api/v1/files" not in json.dumps(chat_bodies(simulator)[-1])
    assert member.token not in agents.log()

    await page.open_chat(turn.chat_id)
    link = page.page.get_by_role("link", name="new-table.xlsx")
    await link.wait_for()
    await page.screenshot(PICTURES / "agent-files.png")
    async with page.page.expect_download() as downloading:
        await link.click()
    assert (await downloading.value).suggested_filename == "new-table.xlsx"


async def test_file_of_a_user_is_not_stored_in_an_administrators_account(
    tab: Tab, admin: User, agents: PipelinesServer
) -> None:
    """Attached ones are read with the key; what Python writes is shown as text."""
    files = [
        await attach(tab.user, "rain.csv", CSV, "text/csv", process=False),
        await attach(admin, "secret.csv", CSV, "text/csv", process=False),
    ]
    writing = "open('lake.html.gz', 'w').write(open('rain.csv').read())"
    valves = {"OPEN_WEBUI_URL": admin.url, "OPEN_WEBUI_API_KEY": admin.token}
    async with agent_valves_changed(agents, **valves):
        turn = await used(tab, "python_execute", {"code": writing}, files=files)

    assert turn.error is None
    (note,) = note_texts(await stored_output(tab, turn))
    assert "has to belong to the person who asks" in note
    assert "Bern,3" in note
    assert "](/api/v1/files" not in note
    output = json.dumps(await stored_output(tab, turn))
    assert "secret.csv is not in the workspace. It belongs to someone else" in output
    stored = await admin.call("GET", "/api/v1/files/?content=false")
    assert "lake.html.gz" not in json.dumps(stored)


# ---------------------------------------------------------------------------- in the page


@pytest.mark.browser
async def test_a_person_sees_thoughts_and_cards_and_allows_a_call(
    tab: Tab, page: ChatPage, agents: PipelinesServer, simulator: Simulator
) -> None:
    """The question is Open WebUI's own card; it all stays for later (R33, R34).

    The whole program is in a block of code above the card, which cannot hold it.
    """
    shown = page.page
    async with agent_valves_changed(agents, TOOL_APPROVAL="python_execute=ask"):
        text = f"sim:tool-after-text {json.dumps({'code': LONG_CODE})}"
        body = calling("python_execute")
        turn = await tab.begin(FUNCTION_CALLING, text, body=body)
        await pending(tab, turn)
        await page.go(f"/c/{turn.chat_id}")
        await shown.get_by_text("May python_execute be called?").first.wait_for()
        await page.screenshot(PICTURES / "agent-question.png")
        last_line = page.answers.last.locator(".cm-line").last
        assert (await last_line.inner_text()).strip() == LONG_CODE.splitlines()[-1]
        assert len(chat_bodies(simulator)) == 1

        await shown.get_by_text("Allow", exact=True).first.click()
        await turn.until(lambda seen: seen.finished.is_set(), seconds=PATIENCE)

    await page.open_again()
    assert "12:00 in Bern" in await page.last_answer()
    assert "look it up" not in await page.last_answer()
    for group in await shown.get_by_text("Explored").all():  # above and below the block
        await group.click()
    await shown.get_by_text("Thought for").first.click()
    await shown.get_by_text("View Result from python_execute").first.click()
    output = page.answers.last.get_by_text("Output", exact=True)
    await (await output.element_handle()).wait_for_element_state("stable")
    await page.screenshot(PICTURES / "agent-answer.png")
    assert "Choosing a tool" in await page.last_answer()
    assert page.errors == []
    assert_each_continues(simulator)


@pytest.mark.browser
async def test_an_administrator_edits_one_valve(
    admin: User, chromium: Chromium, agents: PipelinesServer
) -> None:
    """The page saves no empty field, so what is unset has none."""
    before = await agents.valves(PIPELINE_ID)
    async with ChatPage(admin, chromium) as pages:
        page = pages.page
        await page.goto(f"{admin.url}/admin/settings/pipelines")
        field = page.get_by_placeholder("Maximum Iterations")
        await field.fill("7")
        await pages.screenshot(PICTURES / "agent-valves.png")
        async with page.expect_response("**/valves/update**") as saved:
            await page.get_by_role("button", name="Save").click()
        assert (await saved.value).status == 200
        assert pages.errors == []

    after = await agents.valves(PIPELINE_ID)
    await agents.set_valves(PIPELINE_ID, before)
    assert after == {**before, "MAXIMUM_ITERATIONS": 7}
