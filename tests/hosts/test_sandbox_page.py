"""What the page shows of code, files and research, on a wide and on a narrow screen."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload

from hosts.browser.page import ChatPage
from hosts.people.users import User
from hosts.setup.pipes import install_pipe, valves_changed
from hosts.setup.sandbox_tool import sandbox_installed
from marking import require_mark
from releasing.contents import SANDBOX_ID

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.asyncio,
    pytest.mark.parametrize("width", [1280, 390]),
]

ID = "page_features"
PICTURES = Path(__file__).parents[2] / "artifacts"
OVERFLOW = "document.documentElement.scrollWidth > window.innerWidth"
TABLE = b"city,people\nAtlantis,4711\n"
CODE = "open('table.csv', 'w').write('city,people'); print('Wrote the table.')"


@pytest_asyncio.fixture(scope="module")
async def models(
    admin: User, pipe_source: str, pipe_valves: dict[str, str]
) -> AsyncIterator[list[str]]:
    """The sandbox, and a pipe of its own whose first model calls it."""
    require_mark("sandbox")
    names = {"MODEL_ID": "gpt-6.1-terra, gpt-6.2-sol-research, gpt-6.2-sol"}
    async with sandbox_installed(admin):
        models = await install_pipe(admin, ID, pipe_source, {**pipe_valves, **names})
        choice = {"type": "function", "function": {"name": "python_execute"}}
        [row] = [m for m in await admin.models() if m["id"] == models[0]]
        form = {**row["info"], "meta": {"toolIds": [SANDBOX_ID]}}
        form["params"] = {"custom_params": {"tool_choice": json.dumps(choice)}}
        await admin.call("POST", f"/api/v1/models/model/update?id={models[0]}", form)
        yield models
        await admin.delete_function(ID)


async def look(page: ChatPage, name: str, width: int) -> None:
    """Keep a picture; nothing is wider than the screen."""
    PICTURES.mkdir(exist_ok=True)
    await page.screenshot(PICTURES / f"{name}-{width}.png")
    assert not await page.page.evaluate(OVERFLOW)


async def open_chat(page: ChatPage, model: str, width: int) -> None:
    """Start a chat on a screen of a width."""
    await page.page.set_viewport_size({"width": width, "height": 900})
    await page.open_model(model)


async def test_sandbox_shows_code_result_and_file(
    page: ChatPage, models: list[str], width: int
) -> None:
    """The card of the call opens to code and result; the file is above the text."""
    await open_chat(page, models[0], width)

    # The editor makes typographic quotes of those that are typed.
    question = f"sim:tool {json.dumps({'code': CODE})}"
    await page.page.click("#chat-input")
    await page.page.keyboard.insert_text(question)
    await page.page.keyboard.press("Enter")
    stored = page.answers.last.get_by_role("button").filter(has_text="table.csv")
    await stored.first.wait_for()
    await page.answers.last.get_by_text("It said").wait_for()
    await look(page, "sandbox", width)
    await page.answers.last.get_by_text("Explored").first.click()
    named = page.answers.last.get_by_text("python_execute").locator("visible=true")
    await named.nth(1).click()  # the card below the line that opened
    await page.answers.last.get_by_text("city,people").first.wait_for()
    await look(page, "sandbox-open", width)

    assert page.errors == []


async def test_files_for_python_are_named_while_copied(
    page: ChatPage, admin: User, models: list[str], width: int
) -> None:
    """The file at the message; a line says that it is copied; then code and link."""
    async with valves_changed(admin, ID, ENABLE_CODE_INTERPRETER=True):
        await open_chat(page, models[2], width)
        table = FilePayload(name="sales.csv", mimeType="text/csv", buffer=TABLE)
        await page.page.locator("input[type=file]").first.set_input_files(table)
        await page.page.get_by_text("sales.csv").first.wait_for()
        await page.watch("Copying 1 file to Python")
        await page.ask("sim:count How many people live there?")
        await look(page, "python-files", width)

    assert await page.seen()
    assert page.errors == []


async def test_research_shows_searches_and_sources(
    page: ChatPage, models: list[str], width: int
) -> None:
    """The ceiling first, each search while it runs, then the answer with sources."""
    await open_chat(page, models[1], width)
    await page.watch("Research takes several minutes: at most 60 searches")

    await page.ask("sim:web-search,delay=60 When did it freeze?")
    await look(page, "research", width)
    await page.page.get_by_label("Toggle status history").first.click()
    await look(page, "research-open", width)

    assert await page.seen()
    assert "3 Sources" in await page.last_answer()
    assert page.errors == []
