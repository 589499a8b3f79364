"""The valves dialog of Open WebUI's page, filled in by hand."""

import re
from collections.abc import Mapping

from playwright.async_api import Locator, Page, Response

from hosts.browser.page import ChatPage


async def open_user_valves(chat: ChatPage) -> Locator:
    """Open a person's valves with the button next to the chat input."""
    await chat.page.locator('button[aria-label="Valves"]').last.click()
    dialog = chat.page.locator("[role=dialog]").last
    await dialog.get_by_role("button", name="Save").wait_for()
    await dialog.get_by_text("Default", exact=True).first.wait_for()
    return dialog


async def fill_open_user_valves(
    chat: ChatPage, dialog: Locator, values: Mapping[str, str | bool]
) -> None:
    """Set a person's valves by their labels, in the dialog that is open."""
    page = chat.page
    await fill_valves(page, dialog, values)
    async with page.expect_response("**/valves/user/update"):
        await dialog.get_by_role("button", name="Save").click()
    await dialog.get_by_role("button", name="Close").click()  # Save leaves it open
    await dialog.wait_for(state="detached")


async def choose_in_controls(
    chat: ChatPage, function_id: str, label: str, value: str
) -> None:
    """Choose one of a person's valves in the panel of the chat's controls.

    The panel saves by itself, a while after the last change.
    """
    page = chat.page
    await page.get_by_label("Controls", exact=True).click()
    await page.get_by_text("Valves", exact=True).last.click()
    for wanted in ("functions", function_id):
        option = page.locator(f'option[value="{wanted}"]')
        await page.locator("select").filter(has=option).select_option(wanted)
    exact = page.get_by_text(re.compile(rf"^\s*{re.escape(label)}\s*$"))
    row = page.locator("form div").filter(has=exact)
    default = page.get_by_text("Default", exact=True)
    await row.filter(has=default).last.get_by_text("Default", exact=True).click()
    # Before the row has its menu, a larger part of the panel has the menus at its top.
    changed = row.filter(has=page.get_by_text("Custom", exact=True))
    menu = changed.filter(has=page.locator("select")).last.locator("select")

    def saves(response: Response) -> bool:
        sent = response.request.post_data or ""
        return response.url.endswith("/valves/user/update") and value in sent

    async with page.expect_response(saves):
        await menu.select_option(value)


async def fill_valves(
    page: Page, dialog: Locator, values: Mapping[str, str | bool]
) -> None:
    """Fill in fields of an open dialog, by their labels."""
    for label, value in values.items():
        exact = page.get_by_text(re.compile(rf"^\s*{re.escape(label)}\s*$"))
        field = dialog.locator("form > div > div").filter(has=exact)
        await field.wait_for()  # the form is drawn before its fields arrive
        default = field.get_by_text("Default", exact=True)
        if await default.count():
            await default.click()  # from Default to Custom
        if isinstance(value, bool):
            switch = field.get_by_role("switch")
            if (await switch.get_attribute("aria-checked") == "true") != value:
                await switch.click()
        elif await field.locator("select").count():
            await field.locator("select").select_option(value)
        else:
            await field.locator("textarea, input").fill(value)
