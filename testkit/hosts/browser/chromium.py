"""The browser on this machine."""

import os
import shutil
from contextlib import AsyncExitStack
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
SCREEN = ViewportSize(width=1280, height=900)
# What turns or shimmers for ever is drawn sixty times a second, by the processor.
STAND_STILL = """addEventListener('animationstart', ({target}) => {
  for (const one of target.getAnimations({subtree: true}))
    if (!isFinite(one.effect.getComputedTiming().endTime)) one.pause();
}, true)"""
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


class Chromium:
    """The browser; what somebody's page has loaded, their next one has.

    Each person has a profile of their own, on the disk: only there the browser keeps the
    scripts that it has translated. A page that nobody uses any more is kept for the next
    test of the same person, because a closed one takes along what it has loaded.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self._exits = AsyncExitStack()
        self._playwright: Playwright | None = None
        self._contexts: dict[str, BrowserContext] = {}
        self.idle_pages: dict[str, list[Page]] = {}
        """By the tokens of the people whom they are signed in as."""

    async def __aenter__(self) -> Self:
        """Be ready to start browsers."""
        find_chromium()
        self._playwright = await self._exits.enter_async_context(async_playwright())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave no browser and no profile behind."""
        await self._exits.aclose()

    async def context(self, whose: str) -> BrowserContext:
        """Return somebody's cookies, storage and cache; the same each time."""
        if whose not in self._contexts:
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
            await context.add_init_script(STAND_STILL)
            self._contexts[whose] = context
        return self._contexts[whose]
