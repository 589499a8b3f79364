"""Open WebUI's real page in headless Chromium.

    async with ChatPage(user) as page:
        await page.open_model("stub.one")
        await page.ask("hello")
        assert "hello" in await page.last_answer()

The page reaches its server alone; whatever else it asks for is refused, then
listed in `blocked`.
"""

from pathlib import Path
from typing import Self

from playwright.async_api import (
    Browser,
    Locator,
    Page,
    Playwright,
    Route,
    async_playwright,
)

from hosts.chromium import ARGUMENTS, find_chromium
from hosts.users import User

ACTION_MS, ANSWER_MS = 15_000, 60_000
COPY_BUTTON = "button.copy-response-button"
# innerText every 10 ms, so that nothing is on the page unseen for a moment
WATCH = """(needle) => {
  window.seenNeedle = [];
  setInterval(() => {
    const last = [...document.querySelectorAll('.chat-assistant')].pop();
    if (last?.innerText.includes(needle)) window.seenNeedle.push(last.innerText);
  }, 10);
}"""
LAST_ANSWER = """() => [...document.querySelectorAll('.chat-assistant')].pop()
  ?.closest('[id^=message-]')?.id ?? ''"""
EMPTY_CLIPBOARD = "navigator.clipboard.writeText('')"
CLIPBOARD_FILLED = "async () => (await navigator.clipboard.readText()) !== ''"
CLIPBOARD = "navigator.clipboard.readText()"


class ChatPage:
    """One browser with one page, signed in unless told otherwise."""

    def __init__(self, user: User, *, signed_in: bool = True) -> None:
        self.user = user
        self.blocked: list[str] = []
        self.errors: list[str] = []  # uncaught exceptions of the page's scripts
        self._signed_in = signed_in
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._page: Page | None = None

    @property
    def page(self) -> Page:
        """Playwright's page, for what has no method here."""
        if self._page is None:
            raise RuntimeError("The page has not been opened.")
        return self._page

    async def __aenter__(self) -> Self:
        """Start the browser."""
        executable = find_chromium()
        await self.user.hide_changelog()
        self._playwright = await async_playwright().start()
        try:
            self._page = await self._open(self._playwright, executable)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no browser behind."""
        if self._browser:
            await self._browser.close()
        if self._playwright:
            await self._playwright.stop()

    async def _open(self, playwright: Playwright, executable: str) -> Page:
        self._browser = await playwright.chromium.launch(
            executable_path=executable, args=ARGUMENTS
        )
        context = await self._browser.new_context(
            viewport={"width": 1280, "height": 900},
            permissions=["clipboard-read", "clipboard-write"],
        )
        await context.route("**/*", self._guard)
        if self._signed_in:
            script = f"localStorage.token = {self.user.token!r}"
            await context.add_init_script(script)
        page = await context.new_page()
        page.set_default_timeout(ACTION_MS)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        return page

    async def _guard(self, route: Route) -> None:
        if route.request.url.startswith((self.user.url, "data:", "blob:")):
            await route.continue_()
        else:
            self.blocked.append(route.request.url)
            await route.abort()

    # ---- going somewhere

    async def log_in(self) -> None:
        """Through the form, as a person does."""
        await self.page.goto(f"{self.user.url}/auth")
        await self.page.locator("input#email").fill(self.user.email)
        await self.page.locator("input#password").fill(self.user.password)
        await self.page.locator("button[type=submit]").click()
        await self.page.wait_for_selector("#chat-input")

    async def choose_model(self, name: str) -> None:
        """In the menu beside the chat input, where models go by their names."""
        await self.page.locator("#model-selector-model-button").click()
        # The menu draws only what fits; typing narrows it down.
        await self.page.keyboard.type(name)
        await self.page.get_by_role("option").get_by_text(name, exact=True).click()
        await self.page.get_by_label(f"Selected model: {name}").wait_for()

    async def open_model(self, model: str, *, temporary: bool = False) -> None:
        """Start a chat with a model."""
        query = f"models={model}" + "&temporary-chat=true" * temporary
        models = {found["id"]: found["name"] for found in await self.user.models()}
        await self.page.goto(f"{self.user.url}/?{query}")
        await self.page.wait_for_selector("#chat-input")
        shown = self.page.get_by_text(models[model], exact=True)
        label = self.page.get_by_label(f"Selected model: {models[model]}")
        await label.or_(shown).first.wait_for()

    async def reload(self) -> None:
        """Read the chat again from what the server has stored."""
        await self.page.reload()
        await self._answered("")

    @property
    def chat_id(self) -> str:
        """The chat that the address bar names."""
        return self.page.url.partition("/c/")[2].partition("?")[0]

    # ---- chatting

    @property
    def answers(self) -> Locator:
        """The answers on the page."""
        return self.page.locator(".chat-assistant")

    async def ask(self, text: str, *, wait: bool = True) -> None:
        """Type, press Enter, then wait for the answer to be complete.

        The page takes answers off the screen out of the document, so the new one is
        told by its id, not by its number.
        """
        before = await self.page.evaluate(LAST_ANSWER)
        await self.page.click("#chat-input")
        await self.page.keyboard.type(text)
        await self.page.keyboard.press("Enter")
        newer = f"(before) => ({LAST_ANSWER})() !== before && ({LAST_ANSWER})()"
        found = await self.page.wait_for_function(newer, arg=before)
        if wait:
            await self._answered(f"#{await found.json_value()}")

    async def _answered(self, message: str) -> None:
        """The row of buttons appears when an answer is done."""
        button = self.page.locator(f"{message} {COPY_BUTTON}").first
        await button.wait_for(state="attached", timeout=ANSWER_MS)

    async def stop(self) -> None:
        """Press the stop button."""
        await self.page.locator('button[aria-label="Stop"]').last.click()

    async def last_answer(self) -> str:
        """The text that the last answer shows."""
        return await self.answers.last.inner_text()

    async def copy_last(self) -> str:
        """What the last answer's copy button puts on the clipboard."""
        await self.page.evaluate(EMPTY_CLIPBOARD)
        await self.page.locator(COPY_BUTTON).last.click()
        await self.page.wait_for_function(CLIPBOARD_FILLED)
        copied: str = await self.page.evaluate(CLIPBOARD)
        return copied

    async def exported_text(self) -> str:
        """What the chat's menu gives as plain text."""
        await self.page.locator("#chat-context-menu-button").click()
        await self.page.get_by_text("Download", exact=True).hover()
        async with self.page.expect_download() as download:
            await self.page.get_by_text("Plain text (.txt)").click()
        return (await (await download.value).path()).read_text()

    async def edit_last(self) -> str:
        """Open the last answer's edit box, for what it holds."""
        await self.page.locator('button[aria-label="Edit"]').last.click()
        box = self.page.locator("textarea").last
        await box.wait_for()
        return await box.input_value()

    async def watch(self, needle: str) -> None:
        """From now on note every 10 ms whether the last answer shows a text."""
        await self.page.evaluate(WATCH, needle)

    async def seen(self) -> list[str]:
        """The answers in which `watch` has found its text."""
        found: list[str] = await self.page.evaluate("window.seenNeedle")
        return found

    async def screenshot(self, path: Path) -> None:
        """A picture of the page."""
        await self.page.screenshot(path=path)
