"""What the page shows of code, files and research, on a wide and on a narrow screen."""

import asyncio
import json
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload

from chats.pictures import PNG
from hosts.browser.page import PICTURES, ChatPage
from hosts.people.questions import tool_choice
from hosts.people.users import User
from hosts.setup.pipes import install_pipe, valves_changed
from hosts.setup.sandbox_tool import sandbox_installed
from marking import require_mark
from releasing.contents import SANDBOX_ID
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.asyncio,
]

ID = "page_features"
OVERFLOW = "document.documentElement.scrollWidth > window.innerWidth"
WIDTHS = (1280, 390)
HEIGHT = 900
CROSS = ".text-red-500"
"""The sign of a call that failed, instead of the tick."""
CODE = "open('table.csv', 'w').write('city,people'); print('Wrote the table.')"


@pytest_asyncio.fixture(scope="module")
async def models(
    admin: User, pipe_source: str, pipe_valves: dict[str, str]
) -> AsyncIterator[list[str]]:
    """The sandbox, and a pipe of its own whose first model calls it."""
    require_mark("sandbox")
    names = {"MODEL_ID": "gpt-6.1-terra, gpt-6.2-sol"}
    async with sandbox_installed(admin):
        models = await install_pipe(admin, ID, pipe_source, {**pipe_valves, **names})
        choice = tool_choice("python_execute")
        [row] = [m for m in await admin.models() if m["id"] == models[0]]
        form = {**row["info"], "meta": {"toolIds": [SANDBOX_ID]}}
        form["params"] = {"custom_params": {"tool_choice": json.dumps(choice)}}
        await admin.call("POST", f"/api/v1/models/model/update?id={models[0]}", form)
        yield models
        await admin.delete_function(ID)


async def look(page: ChatPage, name: str) -> None:
    """Keep pictures; nothing is wider than the screen, be it wide or narrow."""
    for width in WIDTHS:
        await page.resize(width, HEIGHT)
        await page.screenshot(PICTURES / f"{name}-{width}.png")
        assert not await page.page.evaluate(OVERFLOW), width
    await page.resize(WIDTHS[0], HEIGHT)


async def test_sandbox_shows_code_result_and_file(
    page: ChatPage, models: list[str]
) -> None:
    """The card of the call opens to code and result; the file is above the text.

    A run that failed has a cross instead of the green tick of what is done.
    """
    await page.open_model(models[0])
    # The page selects the model's tools a moment after the model.
    chosen = page.page.get_by_role("button").filter(has_text=re.compile(r"^\s*1\s*$"))
    await chosen.first.wait_for()
    await page.ask(f"sim:tool {json.dumps({'code': CODE})}")
    stored = page.answers.last.get_by_role("button").filter(has_text="table.csv")
    await stored.first.wait_for()
    assert await page.answers.last.locator(CROSS).count() == 0
    await look(page, "sandbox")
    await page.answers.last.get_by_text("Explored").first.click()
    named = page.answers.last.get_by_text("python_execute").locator("visible=true")
    await named.nth(1).click()  # the card below the line that opened
    await page.answers.last.get_by_text("OUTPUT").wait_for()
    await look(page, "sandbox-open")

    await page.ask(f"sim:tool {json.dumps({'code': '1 / 0'})}")
    await page.answers.last.locator(CROSS).wait_for()
    assert page.errors == []


ATTACHED = {
    "sales.csv": ("text/csv", b"city,people\nAtlantis,4711\n"),
    "sales.json": ("application/json", b'{"Atlantis": 4711}'),
    "sales.txt": ("text/plain", b"Atlantis: 4711"),
    # Open WebUI warns that it cannot read the next three, and keeps them.
    "sales.zip": ("application/zip", b"PK\x03\x04\xff\x00"),
    "sales.parquet": ("application/octet-stream", b"PAR1\x00\xffPAR1"),
    "sales.xlsx": (
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        b"PK\x03\x04\x00\xff",
    ),
    "sales.png": ("image/png", PNG),
}
"""What people give to Python, by name."""


async def attach_all(page: ChatPage) -> None:
    """Choose the files in the page, and wait until it has sent and read them all."""
    read: list[str] = []
    page.page.on("requestfinished", lambda request: read.append(request.url))
    payloads = [
        FilePayload(name=name, mimeType=kind, buffer=content)
        for name, (kind, content) in ATTACHED.items()
    ]
    await page.page.locator("input[type=file]").first.set_input_files(payloads)
    async with asyncio.timeout(60):
        while not are_all_read(read):  # noqa: ASYNC110 - requests of the page
            await asyncio.sleep(0.05)


def are_all_read(addresses: list[str]) -> bool:
    """Say whether the page has learned of each file that the server is through."""
    through = [url for url in addresses if "/process/status" in url]
    return len(through) == len(ATTACHED)


async def test_files_for_python_are_named_while_copied(
    page: ChatPage, admin: User, models: list[str], simulator: Simulator
) -> None:
    """Files of all kinds reach the container; a line says that they are copied."""
    async with valves_changed(admin, ID, ENABLE_CODE_INTERPRETER=True):
        await page.open_model(models[1])
        await attach_all(page)
        await page.ask("sim:count How many people live there?")
        await look(page, "python-files")

    uploaded = {file.name: file.content for file in simulator.uploads.files.values()}
    assert uploaded == {name: content for name, (_, content) in ATTACHED.items()}
    chat = await page.user.chat(page.chat_id)
    answer = chat["history"]["messages"][chat["history"]["currentId"]]
    lines = [status.get("description") for status in answer["statusHistory"]]
    assert "Copying 7 files to Python" in lines
    assert page.errors == []
