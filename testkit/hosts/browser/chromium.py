"""The browser on this machine."""

import os
import shutil
from contextlib import AsyncExitStack
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Self

from playwright.async_api import (
    BrowserContext,
    Page,
    Playwright,
    ViewportSize,
    async_playwright,
)

from marking import require_mark

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    # Playwright's own way to refuse requests would switch the cache off.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
EMPTY = "about:blank"
SCREEN = ViewportSize(width=1280, height=900)
# What turns or shimmers for ever is drawn sixty times a second, by the processor.
STAND_STILL = """addEventListener('animationstart', ({target}) => {
  for (const one of target.getAnimations({subtree: true}))
    if (!isFinite(one.effect.getComputedTiming().endTime)) one.pause();
}, true)"""
# Two people of one profile: what a page stores is its own, and gone with it.
OWN_STORAGE = """Object.defineProperty(window, 'localStorage', {
  configurable: true, get: () => window.sessionStorage})"""
MISSING = (
    "The browser tests need Chromium, which is not installed: "
    "run `apt-get install chromium`, or name a browser in CHROMIUM."
)


class ChromiumMissingError(RuntimeError):
    """No browser was found."""


def find_chromium() -> str:
    """Where the browser is: the environment's CHROMIUM, or a usual name on PATH."""
    for name in (os.environ.get("CHROMIUM", ""), *NAMES):
        program = shutil.which(name)
        if program:
            require_mark("browser")
            return program
    raise ChromiumMissingError(MISSING)


@dataclass
class KeptPage:
    """A page whose test has ended, for the next one of the same person."""

    page: Page
    read: str = ""
    """What Open WebUI's app read when it was loaded; nothing, if nobody knows."""


class Chromium:
    """The browser; what a server's page has loaded, its next one has.

    Each server has a profile, on the disk: only there the browser keeps the scripts that
    it has translated. A page that nobody uses any more is kept for the next test of the
    same person, because a closed one takes along what it has loaded.
    """

    def __init__(self) -> None:
        self._exits = AsyncExitStack()
        self._playwright: Playwright | None = None
        self._contexts: dict[str, BrowserContext] = {}
        self.kept_pages: dict[str, list[KeptPage]] = {}
        """By the tokens of the people whom they are signed in as."""

    async def __aenter__(self) -> Self:
        find_chromium()
        self._playwright = await self._exits.enter_async_context(async_playwright())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._exits.aclose()

    async def context(self, url: str) -> BrowserContext:
        """Return the cookies and the cache of a server's pages; the same each time."""
        if url not in self._contexts:
            if self._playwright is None:
                raise RuntimeError("The browser has not been started.")
            profile = self._exits.enter_context(
                TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
            )
            context = await self._playwright.chromium.launch_persistent_context(
                profile,
                executable_path=find_chromium(),
                args=ARGUMENTS,
                viewport=SCREEN,
                permissions=["clipboard-read", "clipboard-write"],
            )
            self._exits.push_async_callback(context.close)
            for script in (STAND_STILL, OWN_STORAGE):
                await context.add_init_script(script)
            self._contexts[url] = context
        return self._contexts[url]

    async def empty_kept_pages(self) -> None:
        """Let none of them go on running: each would draw what its person does elsewhere."""
        for pages in self.kept_pages.values():
            for kept in pages:
                if kept.page.url != EMPTY:
                    await kept.page.goto(EMPTY)
                    kept.read = ""
