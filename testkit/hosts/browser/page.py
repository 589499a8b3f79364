"""Open WebUI's real page in headless Chromium.

    async with Chromium() as chromium, ChatPage(user, chromium) as page:
        await page.open_model("stub.one")
        await page.ask("hello")
        assert "hello" in await page.last_answer()

The page reaches this machine alone; whatever it asks for that is not its server's is
listed in `blocked`.
"""

import asyncio
import json
import re
from pathlib import Path
from typing import Self

from playwright.async_api import Error, Locator, Page, Request, WebSocket

from hosts.browser.chromium import EMPTY, SCREEN, Chromium, KeptPage
from hosts.people.users import User

PICTURES = Path(__file__).parents[3] / "artifacts"
ACTION_MS = 60_000
ANSWER_MS = 120_000
JOINED = '42["user-join"'
"""What the page sends once its socket is connected: a message with an event."""
SHOWN_CHARACTERS = 3_000
COPY_BUTTON = "button.copy-response-button"
# After each change of the document, so that nothing is drawn unseen. To ask what is
# visible makes the page lay itself out: only where the text is in the document at all.
WATCH = """(needle) => {
  window.seenNeedle = [];
  window.watching?.disconnect();
  window.watching = new MutationObserver(() => {
    const last = [...document.querySelectorAll('.chat-assistant')].pop();
    if (!last?.textContent.includes(needle)) return;
    const shown = last.innerText;
    if (shown.includes(needle)) window.seenNeedle.push(shown);
  });
  window.watching.observe(document, {
    subtree: true, childList: true, characterData: true, attributes: true});
}"""
LAST_ANSWER = """() => [...document.querySelectorAll('.chat-assistant')].pop()
  ?.closest('[id^=message-]')?.id ?? ''"""
# The page draws only what is on the screen: scrolls up and notes what it passes.
ALL_ANSWERS = """(count) => {
  const seen = window.seenAnswers;
  for (const one of document.querySelectorAll('.chat-assistant'))
    if (one.innerText.trim())
      seen[one.closest('[id^=message-]').id] = one.innerText;
  document.querySelector('#messages-container').scrollTop -= 200;
  return Object.keys(seen).length >= count && Object.values(seen);
}"""
READ_ONCE = (
    "/api/config",
    "/api/models",
    "/api/v1/tools/",
    "/api/v1/users/user/settings",
)
"""What the app reads when it is loaded, and not again."""
# The app follows links that are in it by itself, without another document.
FOLLOW = """(path) => {
  document.activeElement?.blur();
  const link = Object.assign(document.createElement('a'), {href: path});
  document.querySelector('body > div').append(link);
  link.click();
  link.remove();
}"""
# What was written into a chat and not sent would be in the next one.
FORGET = """() => {
  window.watching?.disconnect();
  for (const key of Object.keys(sessionStorage))
    if (key !== 'token') sessionStorage.removeItem(key);
}"""
SCROLL_TO_END = """() => {
  const messages = document.querySelector('#messages-container');
  messages.scrollTop = messages.scrollHeight;
}"""
NOTHING_SAID = "!document.querySelector('.chat-user, .chat-assistant')"
HAS_CHAT_ID = re.compile("/c/.")
TWO_FRAMES = """() => new Promise(drawn =>
  requestAnimationFrame(() => requestAnimationFrame(drawn)))"""
EMPTY_CLIPBOARD = "navigator.clipboard.writeText('')"
CLIPBOARD_FILLED = "async () => (await navigator.clipboard.readText()) !== ''"
CLIPBOARD = "navigator.clipboard.readText()"


# True once nothing on the page slides open any more; some things turn for ever.
RESTS = """() => !document.getAnimations().some((one) =>
  one.playState === 'running' && isFinite(one.effect.getComputedTiming().endTime))"""


class ChatPage:
    """One page of a browser, signed in unless told otherwise."""

    def __init__(
        self, user: User, chromium: Chromium, *, signed_in: bool = True
    ) -> None:
        self.user = user
        self.blocked: list[str] = []
        self.errors: list[str] = []  # uncaught exceptions of the page's scripts
        self._chromium = chromium
        self._signed_in = signed_in
        self._kept: KeptPage | None = None
        self._joined = asyncio.Event()  # of the document that is open

    @property
    def page(self) -> Page:
        """Playwright's page, for what has no method here."""
        return self._open.page

    @property
    def _open(self) -> KeptPage:
        if self._kept is None:
            raise RuntimeError("The page has not been opened.")
        return self._kept

    async def __aenter__(self) -> Self:
        """Open it, empty, or with what the last test of the same person has left in it.

        Chromium draws the page in front alone as fast as it can. When another one is
        closed, the page in front is any of those that are left.
        """
        await self.user.hide_changelog()
        context = await self._chromium.context(self.user.url)
        kept = self._chromium.kept_pages.setdefault(self.user.token, [])
        await context.clear_cookies()
        if self._signed_in:
            # Pictures are asked for with it; the last one may be another person's.
            await context.add_cookies(
                [{"name": "token", "value": self.user.token, "url": self.user.url}]
            )
        if self._signed_in and kept:
            self._kept = kept.pop()
            if self._kept.read:
                self._joined.set()
        else:
            self._kept = KeptPage(await context.new_page())
            self.page.set_default_timeout(ACTION_MS)
            if self._signed_in:
                script = f"localStorage.token = {self.user.token!r}"
                await self.page.add_init_script(script)
        await self.page.bring_to_front()
        self.page.on("pageerror", self._note_error)
        self.page.on("request", self._note)
        self.page.on("websocket", self._watch_joining)
        return self

    async def __aexit__(
        self, _type: object, error: BaseException | None, _traceback: object
    ) -> None:
        """Keep it for the next one; close it after a failure."""
        if self._kept is None:
            return
        if error:  # what a person would have seen says more than a time limit
            shown = await self.page.evaluate("document.body.innerText")
            error.add_note(f"The page showed:\n{shown[-SHOWN_CHARACTERS:]}")
        self.page.remove_listener("pageerror", self._note_error)
        self.page.remove_listener("request", self._note)
        self.page.remove_listener("websocket", self._watch_joining)
        if error or not self._signed_in:
            await self.page.close()
            return
        if self._kept.read:
            await self.page.evaluate(FORGET)
        await self.page.set_viewport_size(SCREEN)
        self._chromium.kept_pages[self.user.token].append(self._kept)

    def _note_error(self, error: Error) -> None:
        self.errors.append(str(error))

    def _note(self, request: Request) -> None:
        if not request.url.startswith((self.user.url, "data:", "blob:")):
            self.blocked.append(request.url)

    def _watch_joining(self, socket: WebSocket) -> None:
        joined = self._joined = asyncio.Event()

        def look(frame: str | bytes) -> None:
            if str(frame).startswith(JOINED):
                joined.set()
                socket.remove_listener("framesent", look)

        socket.on("framesent", look)

    # ---- going somewhere

    async def log_in(self) -> None:
        """Through the form, as a person does."""
        await self.page.goto(f"{self.user.url}/auth")
        await self.page.locator("input#email").fill(self.user.email)
        await self.page.locator("input#password").fill(self.user.password)
        await self.page.locator("button[type=submit]").click()
        await self.page.wait_for_selector("#chat-input")

    async def choose_model(self, name: str) -> None:
        """In the menu next to the chat input, where models go by their names."""
        await self.page.locator("#model-selector-model-button").click()
        # The menu draws only what fits; typing narrows it down.
        await self.page.keyboard.type(name)
        await self.page.get_by_role("option").get_by_text(name, exact=True).click()
        await self.page.get_by_label(f"Selected model: {name}").wait_for()

    async def open_model(
        self, model: str, *, tools: str = "", temporary: bool = False
    ) -> None:
        """Start a chat with a model, in which a toolkit can be switched on."""
        query = f"models={model}"
        if tools:
            query += f"&tools={tools}"
        if temporary:
            query += "&temporary-chat=true"
        models = {model["id"]: model["name"] for model in await self.user.models()}
        await self.go(f"/?{query}")
        shown = self.page.get_by_text(models[model], exact=True)
        label = self.page.get_by_label(f"Selected model: {models[model]}")
        await label.or_(shown).first.wait_for()
        if tools:  # the page chooses them once it has read which there are
            await self.page.get_by_label("Available Tools").wait_for()

    async def go(self, path: str) -> None:
        """Follow a link of the app, which is loaded if it is not there, or has to read.

        A chat with another model is ready as soon as the cursor is in its input.
        """
        await self.page.bring_to_front()
        read = json.dumps([await self.user.call("GET", path) for path in READ_ONCE])
        if read == self._open.read:
            await self.page.evaluate(FOLLOW, path)
        else:
            await self.page.goto(f"{self.user.url}{path}")
            self._open.read = read
        if path.startswith("/?"):
            await self.page.wait_for_selector("#chat-input:focus")
            await self.page.wait_for_function(NOTHING_SAID)

    async def leave(self) -> None:
        """Close the app, as whoever closes the browser does."""
        await self.page.goto(EMPTY)
        self._open.read = ""

    async def open_chat(self, chat_id: str) -> None:
        await self.go(f"/c/{chat_id}")
        await self._answered("")

    async def reload(self) -> None:
        """Load the app and the chat anew, as a person does with F5."""
        await self.page.reload()
        await self._answered("")

    async def open_again(self) -> None:
        """Leave the chat, and read it again from what the server has stored.

        The end of an answer that came meanwhile would be missed: it is waited for.
        """
        await self._answered(f"#{await self.page.evaluate(LAST_ANSWER)}")
        # The address of a new chat comes with the reply to its question, maybe after it.
        await self.page.wait_for_url(HAS_CHAT_ID, wait_until="commit")
        chat_id = self.chat_id
        await self.page.evaluate(FOLLOW, "/")
        # A chat that begins later than the old one is opened would take its place.
        await self.page.wait_for_selector("#chat-input:focus")
        await self.page.wait_for_function(NOTHING_SAID)
        await self.page.evaluate(FOLLOW, f"/c/{chat_id}")
        await self._answered("")

    @property
    def chat_id(self) -> str:
        return self.page.url.partition("/c/")[2].partition("?")[0]

    # ---- chatting

    @property
    def answers(self) -> Locator:
        return self.page.locator(".chat-assistant")

    async def ask(self, text: str, *, wait: bool = True) -> None:
        """Write, press Enter, then wait for the answer to be complete.

        The page can be typed in before its socket is connected. A question that is sent
        then belongs to no session, and the host has no one to ask for an approval.

        The page takes answers off the screen out of the document, so the new one is
        told by its id, not by its number.
        """
        async with asyncio.timeout(ACTION_MS / 1000):
            await self._joined.wait()
        await self.page.bring_to_front()
        before = await self.page.evaluate(LAST_ANSWER)
        if before:  # what is asked before its end is not sent as it was written
            await self._answered(f"#{before}")
        await self.page.click("#chat-input")
        await self.page.keyboard.insert_text(text)  # at once, as from the clipboard
        await self.page.keyboard.press("Enter")
        newer = f"(before) => ({LAST_ANSWER})() !== before && ({LAST_ANSWER})()"
        answer_id = await self.page.wait_for_function(newer, arg=before)
        if wait:
            await self._answered(f"#{await answer_id.json_value()}")

    async def _answered(self, message: str) -> None:
        """The row of buttons appears when an answer is done, its last words a frame later."""
        button = self.page.locator(f"{message} {COPY_BUTTON}").first
        await button.wait_for(state="attached", timeout=ANSWER_MS)
        await self.page.evaluate(TWO_FRAMES)

    async def stop(self) -> None:
        await self.page.locator('button[aria-label="Stop"]').last.click()

    async def last_answer(self) -> str:
        return await self.answers.last.inner_text()

    async def all_answers(self, count: int) -> list[str]:
        """The texts that so many answers of the chat show, the last one first."""
        await self.page.evaluate("window.seenAnswers = {}")
        texts = await self.page.wait_for_function(ALL_ANSWERS, arg=count)
        return list(await texts.json_value())

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
        """From now on note after each change whether the last answer shows a text."""
        await self.page.evaluate(WATCH, needle)

    async def seen(self) -> list[str]:
        """The answers in which `watch` has found its text."""
        answers: list[str] = await self.page.evaluate("window.seenNeedle")
        return answers

    async def resize(self, width: int, height: int) -> None:
        """Have a screen of this size, and wait until the page fits it."""
        await self.page.set_viewport_size({"width": width, "height": height})
        await self.page.wait_for_function(RESTS)

    async def scroll_to_end(self) -> None:
        """Have the end of the chat on the screen, wherever the page has scrolled to."""
        await self.page.evaluate(SCROLL_TO_END)

    async def screenshot(self, path: Path) -> None:
        """Keep a picture for people to look at, if there is the folder for it."""
        if path.parent.is_dir():
            await self.page.screenshot(path=path)
