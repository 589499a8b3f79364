"""The way of the README in the real page: import, key, switches, models, chat, update.

The next version tells sooner that the server is silent: the page shows that line, too.
Then comes the way back. All of it happens in one chat, whose reasoning is sent again.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from bundling.targets import FUNCTION_KEYS
from hosts.browser.admin_pages import IMPORT_ERROR, AdminPages
from hosts.browser.chromium import Chromium
from hosts.browser.page import ChatPage
from hosts.people.users import User
from hosts.sent import chat_bodies, kinds, outputs, stripped
from hosts.setup.switches import BUILT, SWITCHES
from releasing.contents import PIPE_ID, READABLE, plugins_file
from releasing.imports import models_file
from releasing.packed import pack
from simulator import Simulator

pytestmark = [pytest.mark.host, pytest.mark.browser, pytest.mark.asyncio]

ID = "newcomer"
"""An id that no other test uses; so are those of the switches."""
SWITCH_IDS = {name: f"{ID}_{name}" for name in SWITCHES}
BUILT_PATH = READABLE[PIPE_ID]
MODEL = "gpt-5.6-terra"
"""A model that no other pipe of the server offers."""


@pytest_asyncio.fixture
async def admin_page(admin: User, chromium: Chromium) -> AsyncIterator[ChatPage]:
    """The administrator's page; what was installed is gone afterwards."""
    async with ChatPage(admin, chromium) as opened:
        yield opened
    for function_id in (ID, *SWITCH_IDS.values()):
        await admin.delete_function(function_id)
    await admin.call("POST", "/api/v1/models/model/delete", {"id": f"{ID}.{MODEL}"})


async def test_from_zero_to_a_reply_to_the_next_version_and_back(
    admin_page: ChatPage,
    page: ChatPage,
    pipe_source: str,
    simulator: Simulator,
    tmp_path: Path,
) -> None:
    """Import, key, switches, models; a user chats; update by the packed file; back."""
    pages = AdminPages(admin_page)
    admin = admin_page.user
    functions, models = write_files(tmp_path, pipe_source)
    await pages.open_functions()
    await pages.choose_functions(functions)
    await pages.import_functions()
    values = {"Base Url": simulator.base_url, "Api Key": simulator.api_key}
    await pages.set_valves(ID, {**values, "Model Id": MODEL})
    for function_id in (ID, *SWITCH_IDS.values()):
        await pages.enable(function_id)
    assert f"{ID}.{MODEL}" not in [model["id"] for model in await page.user.models()]
    await pages.open_models()
    await pages.import_models(models)

    await page.open_model(f"{ID}.{MODEL}")
    await page.page.locator("#integration-menu-button").click()
    for name in SWITCHES.values():
        await page.page.get_by_text(name, exact=True).wait_for()
    await page.page.keyboard.press("Escape")
    await page.ask("sim:short Good morning")
    assert "Turn 1." in await page.last_answer()
    function = await admin.call("GET", f"/api/v1/functions/id/{ID}")
    # The loader replaced nothing.
    assert function["content"] == pack(pipe_source, BUILT_PATH)
    assert tuple(function["meta"]["manifest"]) == FUNCTION_KEYS

    newer = newer_source(pipe_source)
    await pages.open_functions()
    await pages.open_source(ID)
    await pages.paste(pack(newer, BUILT_PATH))
    await pages.save()
    await ask_silent_server(page, simulator)

    assert "Turn 2." in await page.last_answer()
    function = await admin.call("GET", f"/api/v1/functions/id/{ID}")
    # Black has changed nothing of the packed file; its key lines are those of the pipe.
    assert function["content"] == pack(newer, BUILT_PATH)
    assert tuple(function["meta"]["manifest"]) == FUNCTION_KEYS
    assert function["meta"]["manifest"]["version"].startswith("2.")
    assert (await admin.valves(ID))["MODEL_ID"] == MODEL

    await pages.open_functions()
    await pages.open_source(ID)
    await pages.roll_back()
    await page.ask("sim:short And as before?")

    assert "Turn 3." in await page.last_answer()
    function = await admin.call("GET", f"/api/v1/functions/id/{ID}")
    assert function["content"] == pack(pipe_source, BUILT_PATH)
    assert (await admin.valves(ID))["MODEL_ID"] == MODEL
    assert_answers_are_replayed(simulator)
    assert page.errors == []
    assert all(error.endswith(IMPORT_ERROR) for error in admin_page.errors)


def assert_answers_are_replayed(simulator: Simulator) -> None:
    """Each request of the chat repeats the one before it, and the answer to that."""
    bodies = chat_bodies(simulator)
    answers = outputs(simulator)
    assert len(bodies) == 3
    for before, answer, after in zip(bodies, answers, bodies[1:], strict=False):
        received = [stripped(item) for item in answer]
        assert "reasoning" in kinds(received)
        assert after["input"][:-1] == [*before["input"], *received]


def newer_source(pipe_source: str) -> str:
    """The next version, which tells sooner that the server is silent."""
    newer = pipe_source.replace("version: 1.", "version: 2.", 1)
    sooner = newer.replace("_FIRST_SECONDS = 20.0\n", "_FIRST_SECONDS = 1.0\n")
    assert sooner != newer
    return sooner


async def ask_silent_server(page: ChatPage, simulator: Simulator) -> None:
    """The page says that the server is silent, until it answers."""
    await page.ask("sim:short,hold=1 And now?", wait=False)
    silent = page.answers.last.get_by_text("Still thinking, 1 s")
    await silent.wait_for()
    simulator.release()
    await page.answers.last.get_by_text("Turn 2.").wait_for()
    await silent.wait_for(state="detached")


def write_files(folder: Path, pipe_source: str) -> tuple[Path, Path]:
    """The files of import as a release has them, with ids and a model of this test."""
    sources = {
        new: (BUILT / f"{name}.py").read_text("utf-8")
        for name, new in SWITCH_IDS.items()
    }
    functions = folder / "functions.json"
    models = folder / "models.json"
    functions.write_text(
        plugins_file({ID: pack(pipe_source, BUILT_PATH), **sources}), "utf-8"
    )
    models.write_text(models_file(ID, [MODEL], SWITCH_IDS.values()), "utf-8")
    return functions, models
