"""The valves dialog of Open WebUI's page, filled in by hand."""

import re

from playwright.async_api import Locator

from hosts.page import ChatPage


async def fill_user_valves(chat: ChatPage, values: dict[str, str | bool]) -> None:
    """Set a person's valves with the button beside the chat input, by their labels."""
    page = chat.page
    await page.locator('button[aria-label="Valves"]').last.click()
    dialog = page.locator("[role=dialog]").last
    await dialog.get_by_role("button", name="Save").wait_for()
    for label, value in values.items():
        exact = page.get_by_text(re.compile(rf"^\s*{re.escape(label)}\s*$"))
        field = dialog.locator("form > div > div").filter(has=exact)
        await field.wait_for()  # the form is drawn before its fields arrive
        await _fill(field, value)
    async with page.expect_response("**/valves/user/update"):
        await dialog.get_by_role("button", name="Save").click()
    await dialog.get_by_role("button", name="Close").click()  # Save leaves it open
    await dialog.wait_for(state="detached")


async def _fill(field: Locator, value: str | bool) -> None:
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
