"""What people see of the settings: the real page in Chromium."""

import pytest
from playwright.async_api import Locator, expect

from hosts.browser.page import PICTURES, ChatPage
from hosts.browser.valves_dialog import (
    choose_in_controls,
    fill_open_user_valves,
    open_user_valves,
)
from hosts.people.users import User
from hosts.sent import chat_bodies
from hosts.setup.pipes import PIPE, valves_changed
from hosts.setup.switches import EFFORT, SWITCHES, switches
from owui_chat.storage.markers import strip_markers
from simulator import Simulator

pytestmark = [
    pytest.mark.host,
    pytest.mark.browser,
    pytest.mark.asyncio,
    pytest.mark.usefixtures("pipe"),
]

MODEL = f"{PIPE}.gpt-6.1-sol"


async def test_a_person_chooses_settings_and_switches(
    page: ChatPage, admin: User, simulator: Simulator
) -> None:
    """Beside the chat input, where the dialog explains every setting.

    In the panel of the chat's controls, the way for workspace models, which have no
    button of their own; and in the menu of a switch that is on for the next message.
    """
    try:
        await page.open_model(MODEL)
        dialog = await open_user_valves(page)
        shown = await dialog.inner_text()
        await page.screenshot(PICTURES / "user-valves.png")
        await fill_open_user_valves(page, dialog, {"Reasoning Effort": "high"})
        await page.ask("sim:short Good morning")
        assert chat_bodies(simulator)[-1]["reasoning"]["effort"] == "high"

        async with switches(admin, MODEL) as model:
            await page.open_model(model)
            await choose_in_controls(page, PIPE, "Verbosity", "low")
            await page.screenshot(PICTURES / "controls.png")
            await page.page.get_by_label("Controls", exact=True).click()
            await choose_highest_in_the_switch(page)
            await page.ask("sim:short Good morning")
            await page.user.set_user_valves(EFFORT, {})
    finally:
        await page.user.set_user_valves(PIPE, {})

    assert "How long a model thinks" in shown
    assert "Your own key for OpenAI" in shown
    sent = chat_bodies(simulator)[-1]
    assert sent["text"]["verbosity"] == "low"
    assert sent["reasoning"]["effort"] == "max"
    assert page.errors == []


async def choose_highest_in_the_switch(page: ChatPage) -> None:
    """Each switch has its name in the menu; that of the effort has a dialog."""
    await page.page.locator("#integration-menu-button").click()
    for name in SWITCHES.values():
        await page.page.get_by_text(name, exact=True).wait_for()
    await page.screenshot(PICTURES / "composer-switches.png")
    row = page.page.locator("[role=presentation]", has_text=SWITCHES[EFFORT]).last
    await row.get_by_text(SWITCHES[EFFORT], exact=True).click()
    await row.get_by_label("Valves").click()
    dialog = page.page.locator("[role=dialog]").last
    await fill_open_user_valves(page, dialog, {"Effort": "highest"})
    await page.page.keyboard.press("Escape")


@pytest.mark.asyncio
@pytest.mark.browser
async def test_merged_answers_are_shown(page: ChatPage, admin: User) -> None:
    """As one stream, stored with the chat; a refused one says why."""
    models = f"{MODEL},{PIPE}.gpt-5.2"
    await page.go(f"/?models={models}")
    await page.page.wait_for_selector("#chat-input")
    await page.ask("sim:chat Good morning")
    merge = page.page.locator("#merge-response-button")
    merged = page.page.locator("div", has_text="Merged Response").last.locator("..")

    await merge.click()

    await merged.get_by_text("This is turn 1.").wait_for()
    await page.reload()
    await merged.get_by_text("This is turn 1.").wait_for()
    async with valves_changed(admin, PIPE, API_KEY=""):
        await merge.click()
        await merged.get_by_text("This pipe has no API key yet.").wait_for()
    await page.screenshot(PICTURES / "merged-refused.png")
    assert page.errors == []


SIGN = "openai_responses:"
REMARK = "Let me look at that."
ANSWER = "Done: it is 42."


async def test_remarks_are_progress(page: ChatPage, simulator: Simulator) -> None:
    """Quotations between the thoughts; who copies or edits has the answer alone.

    A remark is there while it is written, and after a stop. The last one, with which a
    run ends, is its answer.
    """
    await page.open_model(MODEL)
    await page.watch(SIGN)
    await page.ask("sim:commentary Good morning")

    assert await page.seen() == []
    await assert_remark_between_thoughts(page)
    await page.screenshot(PICTURES / "commentary.png")
    await page.open_again()
    await assert_remark_between_thoughts(page)
    copied = await page.copy_last()
    exported = await page.exported_text()
    assert REMARK not in exported
    assert "Good morning" in exported
    assert ANSWER in exported
    await page.open_again()  # the menu of the export lies over the page
    edited = await page.edit_last()
    assert ANSWER in edited
    for text in (copied, exported, edited):
        assert SIGN not in text
    boxes = await page.page.locator("textarea").all()
    assert not [box for box in boxes if REMARK in await box.input_value()]
    await page.page.locator("textarea").last.fill("Done: it is 43.")
    await page.page.locator("#confirm-edit-message-button").click()
    await page.answers.last.get_by_text("Done: it is 43.").wait_for()
    assert await quoted(page).all_inner_texts() == [REMARK]

    await page.ask("sim:remarks-only,stall=16 And now?", wait=False)
    await quoted(page).get_by_text("Let me", exact=True).wait_for()
    await page.screenshot(PICTURES / "commentary-growing.png")
    assert len(chat_bodies(simulator)) == 2  # which has not ended
    sent = chat_bodies(simulator)[-1]["input"]
    items = [item for item in sent if item.get("role") == "assistant"]
    assert [item["content"][0]["text"] for item in items] == [REMARK, "Done: it is 43."]
    assert items[0]["phase"] == "commentary"
    await page.stop()
    await page.open_again()
    await expect(page.answers.last).not_to_contain_text("Done")
    assert (await quoted(page).inner_text()).startswith("Let")

    await page.ask("sim:remarks-only And so?")
    await assert_remark_and_answer(page)
    await page.open_again()
    await assert_remark_and_answer(page)
    assert page.errors == []


async def assert_remark_between_thoughts(page: ChatPage) -> None:
    """Quoted, in its place, and no part of what is copied."""
    lines = [line for line in (await page.last_answer()).splitlines() if line.strip()]
    remark, answer = map(lines.index, (REMARK, ANSWER))
    thoughts = [n for n, line in enumerate(lines) if line.startswith("Thought")]
    assert [thoughts[0] < remark, remark < thoughts[1] < answer] == [True, True]
    assert await quoted(page).all_inner_texts() == [REMARK]
    assert strip_markers(await page.copy_last()).strip() == ANSWER


async def assert_remark_and_answer(page: ChatPage) -> None:
    """The one is quoted, the other, with which the run ended, is what is copied."""
    await page.answers.last.get_by_text("I looked: it is 42.").wait_for()
    assert await quoted(page).all_inner_texts() == [REMARK]
    copied = strip_markers(await page.copy_last())
    assert copied.strip() == "I looked: it is 42."


def quoted(page: ChatPage) -> Locator:
    return page.answers.last.locator("blockquote")
