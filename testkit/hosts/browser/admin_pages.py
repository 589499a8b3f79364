"""The administrator's pages of Open WebUI, driven as a person does.

    pages = AdminPages(chat)
    await pages.open_functions()
    await pages.choose_functions(file)
    await pages.import_functions()
    await pages.enable("openai_responses")

The way of the README's three steps, in the words of Open WebUI 0.12.4.
"""

from collections.abc import Mapping
from pathlib import Path

from playwright.async_api import Locator, Page

from hosts.browser.page import ChatPage
from hosts.browser.valves_dialog import fill_valves

IMPORT_ERROR = ".set is not a function"
"""Open WebUI 0.12.4 fails behind the success of an import: admin/Functions.svelte takes
the list of the file for its store of functions."""
WRITE_CLIPBOARD = "text => navigator.clipboard.writeText(text)"


class AdminPages:
    """What an administrator opens to install a function."""

    def __init__(self, chat: ChatPage) -> None:
        self._chat = chat

    @property
    def page(self) -> Page:
        return self._chat.page

    @property
    def settings(self) -> Locator:
        return self.page.get_by_role("dialog", name="Settings")

    async def open_functions(self) -> None:
        """Admin Panel > Functions."""
        await self._chat.go("/admin/functions")
        await self.page.get_by_placeholder("Search Functions").wait_for()

    async def open_create_menu(self) -> None:
        """The small arrow next to Create."""
        await self.page.get_by_label("Open create menu").click()
        await self.page.get_by_role("button", name="Import JSON").wait_for()

    async def choose_functions(self, file: Path) -> None:
        """Import JSON in the menu next to Create, as far as the question."""
        await self.open_create_menu()
        async with self.page.expect_file_chooser() as chosen:
            await self.page.get_by_role("button", name="Import JSON").click()
        await (await chosen.value).set_files(file)
        await self.page.get_by_role("button", name="Confirm").wait_for()

    async def import_functions(self) -> None:
        """Confirm the import; wait for the success."""
        await self.page.get_by_role("button", name="Confirm").click()
        await self.page.get_by_text("Functions imported successfully").wait_for()

    async def open_source(self, function_id: str) -> None:
        await self.row(function_id).locator("a").first.click()
        await self.page.locator(".cm-content").first.wait_for()

    async def paste(self, source: str) -> None:
        """Put a file in the place of what the editor holds."""
        await self.page.evaluate(WRITE_CLIPBOARD, source)
        await self.page.locator(".cm-content").first.click()
        await self.page.keyboard.press("Control+A")
        await self.page.keyboard.press("Control+V")

    async def save(self) -> None:
        await self.page.get_by_role("button", name="Save", exact=True).click()
        await self.page.get_by_text("Function updated successfully").wait_for()

    async def roll_back(self) -> None:
        """Take the version before this one, under Production above the open source."""
        await self.page.get_by_label("Select version").click()
        await self.page.get_by_role("menuitemradio").nth(1).click()
        await self.page.get_by_role("button", name="Set as Production").click()
        await self.page.get_by_text("Production version updated").wait_for()

    def row(self, function_id: str) -> Locator:
        link = self.page.locator(f'a[href$="edit?id={function_id}"]')
        return self.page.locator("div.group").filter(has=link)

    async def open_valves(self, function_id: str) -> Locator:
        """The dialog that the gear of a function opens."""
        await self.row(function_id).get_by_label("Valves").click()
        dialog = self.page.locator("[role=dialog]").last
        await dialog.get_by_role("button", name="Save").wait_for()
        return dialog

    async def set_valves(
        self, function_id: str, values: Mapping[str, str | bool]
    ) -> None:
        """Set valves by their labels, then save and close."""
        dialog = await self.open_valves(function_id)
        await fill_valves(self.page, dialog, values)
        async with self.page.expect_response("**/valves/update"):
            await dialog.get_by_role("button", name="Save").click()
        await dialog.get_by_role("button", name="Close").click()
        await dialog.wait_for(state="detached")

    async def enable(self, function_id: str) -> None:
        async with self.page.expect_response("**/toggle"):
            await self.row(function_id).get_by_role("switch").click()

    async def open_models(self) -> None:
        """Settings > Models."""
        await self._chat.go("/admin/settings/models")
        await self.settings.get_by_text("Model Defaults").wait_for()

    async def import_models(self, file: Path) -> None:
        """The menu Actions, then Import; wait for the success."""
        await self.settings.get_by_role("button", name="Actions").last.click()
        async with self.page.expect_file_chooser() as chosen:
            await self.page.get_by_role("button", name="Import", exact=True).click()
        await (await chosen.value).set_files(file)
        await self.page.get_by_text("Models imported successfully").wait_for()
