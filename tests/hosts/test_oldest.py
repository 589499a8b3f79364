"""The oldest Open WebUI that the pipe supports: what differs there.

It takes the walk of test_contract.py, and draws with its own page. Two models that
answer at once in one chat are left out: with SQLite this version reads and writes a
chat's row without a lock (docs/reference/open-webui.md, "The chat's row"), so now and
then a change is lost, also one of the host's own.
"""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hosts.browser.chromium import Chromium
from hosts.browser.page import PICTURES, ChatPage
from hosts.chats.contract import Asked, walk
from hosts.people.tabs import Tab
from hosts.people.users import User, make_group, new_user
from hosts.promises import (
    asked_for_promises,
    assert_a_chat_is_its_owners,
    assert_promises_are_kept,
)
from hosts.sent import chat_bodies
from hosts.servers.offline import OLDEST
from hosts.servers.open_webui import OpenWebUI
from hosts.setup.administration import administration
from hosts.setup.own_server import admin, member, pipe, toolkit
from hosts.setup.pipes import MODEL, PIPE, valves_changed
from hosts.setup.sandbox_tool import output_of, sandbox_installed, use
from marking import require_mark
from simulator import Simulator

__all__ = ["admin", "member", "pipe", "toolkit"]

pytestmark = [
    pytest.mark.oldest,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe", "toolkit"),
]

SCROLL_TO_END = """node => {
  while (node.scrollHeight <= node.clientHeight) node = node.parentElement;
  node.scrollTop = node.scrollHeight;
}"""
DRAWN = """() =>
  document.querySelectorAll('.chat-assistant svg.marks').length >= 1"""
WIDE = (1280, 800)
PHONE = (390, 700)


@pytest_asyncio.fixture(scope="module")
async def server() -> AsyncIterator[OpenWebUI]:
    """A real Open WebUI of the oldest version, for this file alone."""
    async with OpenWebUI(version=OLDEST) as running:
        yield running


async def test_the_oldest_host_keeps_its_promises(admin: User) -> None:
    """All but those that are new in 0.12; another server would go unnoticed else."""
    assert (await admin.call("GET", "/api/version"))["version"] == OLDEST
    report = await asked_for_promises(admin)

    assert_promises_are_kept(report)
    assert_a_chat_is_its_owners(report)


async def test_chats_are_stored_and_shown_as_in_the_newest(
    admin: User, tab: Tab, server: OpenWebUI, simulator: Simulator
) -> None:
    """Events, stored forms, and what the next request gets of them."""
    await walk(Asked(admin, tab, server, simulator))


async def test_a_group_reaches_its_limit(admin: User, simulator: Simulator) -> None:
    """The filter counts in this version's database, and reads its groups."""
    rules = json.dumps([{"group": "Pupils", "tokens": 1, "per": "day"}])
    async with (
        administration(admin, USER_LIMITS_JSON=rules),
        new_user(admin) as pupil,
    ):
        await make_group(admin, "Pupils", pupil)
        async with Tab(pupil) as tab:
            first = await tab.send(MODEL, "sim:short hello")
            second = await tab.send(MODEL, "sim:short hello")

    assert first.error is None
    assert "Your limit of 1 tokens a day is used up" in str(second.error)
    assert len(chat_bodies(simulator)) == 1


@pytest.mark.sandbox
async def test_a_file_of_the_sandbox_comes_back(
    admin: User, tab: Tab, simulator: Simulator
) -> None:
    """The file of a release is imported; what code writes is stored for who asked."""
    require_mark("sandbox")
    code = "open('table.csv', 'w').write('a,b')"
    async with sandbox_installed(admin):
        turn = await use(tab, "python_execute", {"code": code})
    written = json.loads(output_of(simulator))
    [file] = (await tab.message(turn))["files"]
    stored = await tab.user.call("GET", f"/api/v1/files/{file['id']}")

    assert turn.error is None
    assert written["files"] == [file["name"]] == ["table.csv"]
    assert stored["user_id"] == tab.user.id


# ------------------------------------------------------------------------- its page


async def assert_all_is_in_sight(
    chat: ChatPage, buttons: Locator, call: Locator
) -> None:
    """The dialog of this version neither scrolls nor shrinks what it shows."""
    for width, height in (WIDE, PHONE):
        await chat.resize(width, height)
        await expect(buttons).to_be_in_viewport(ratio=1)
        await expect(chat.page.get_by_text("Allow this tool?")).to_be_in_viewport()
        await call.evaluate(SCROLL_TO_END)
        box = await call.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= height


@pytest.mark.browser
async def test_dialogs_of_this_version_show_all_that_will_run(
    admin: User, chromium: Chromium
) -> None:
    """A long call whole; in a chat that asks, one question for all calls of a round.

    The buttons at this version's cards would lose the results.
    """
    ui = {"version": OLDEST, "params": {"tool_approval_mode": "ask"}}
    async with ChatPage(admin, chromium) as chat:
        await admin.call("POST", "/api/v1/users/user/settings/update", {"ui": ui})
        await chat.open_model(MODEL, tools="toolkit")
        await chat.ask("sim:long-arguments", wait=False)
        deny = chat.page.get_by_role("button", name="Cancel")
        await deny.wait_for()
        await expect(deny).to_be_focused()
        long_call = chat.page.locator("code", has_text="Zürich, Zürich")
        await assert_all_is_in_sight(chat, deny, long_call)
        await deny.click()
        await chat.answers.last.get_by_text("did not approve").wait_for()
        await chat.resize(*WIDE)

        for scenario, shown in (
            ("parallel", ['"1. blocking_weather"', '"2. blocking_weather"']),
            ("hidden-arguments", [r"Bern\\u202egpj.exe\\u200b\\udb40\\udc41"]),
        ):
            await chat.ask(f"sim:{scenario}", wait=False)
            confirm = chat.page.get_by_role("button", name="Confirm")
            await confirm.wait_for()
            for width, height in (WIDE, PHONE):
                await chat.resize(width, height)
                await expect(confirm).to_be_in_viewport(ratio=1)
                await chat.screenshot(PICTURES / f"oldest-{scenario}-{width}.png")
            for text in shown:
                await expect(chat.page.get_by_text(text)).to_be_visible()
            await confirm.click()
            await chat.answers.last.get_by_text("It said: Heavy sun in").wait_for()


@pytest.mark.browser
async def test_this_version_draws_thoughts_pictures_and_usage(
    admin: User, chromium: Chromium
) -> None:
    """What the newest draws, too; its box takes Enter after a command for suggestions."""
    tagged = json.dumps({"X-Simulator-Profile": "tagged"})
    async with (
        administration(admin, USER_LIMITS_JSON="[]"),
        Tab(admin) as tab,
        ChatPage(admin, chromium) as chat,
    ):
        async with valves_changed(
            admin, PIPE, EXTRA_HEADERS=tagged, COMPATIBILITY="auto"
        ):
            first = await tab.send(MODEL, "sim:chat,delay=5 Why?")
        async with valves_changed(admin, PIPE, ENABLE_IMAGE_GENERATION=True):
            await tab.send(MODEL, "sim:draw a disc", chat_id=first.chat_id)
        await chat.open_chat(first.chat_id)
        await chat.page.locator(".chat-assistant img[src*='/files/']").wait_for()
        both = await chat.all_answers(2)
        told = await tab.send(MODEL, "/usage")
        await chat.open_chat(told.chat_id)
        await chat.page.wait_for_function(DRAWN)

        for text in both:
            assert "Thought for" in text
            assert "think>" not in text
        assert "US dollars a day" in await chat.last_answer()
        assert (chat.errors, chat.blocked) == ([], [])
