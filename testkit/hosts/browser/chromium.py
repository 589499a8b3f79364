"""The browser on this machine."""

import os
import shutil
from typing import Self

from playwright.async_api import Browser, BrowserContext, Playwright, async_playwright

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
    """One running browser; what somebody's page has loaded, their next one has."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._contexts: dict[str, BrowserContext] = {}

    async def __aenter__(self) -> Self:
        """Start the browser."""
        executable = find_chromium()
        self._playwright = await async_playwright().start()
        try:
            self._browser = await self._playwright.chromium.launch(
                executable_path=executable, args=ARGUMENTS
            )
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

    async def context(self, whose: str) -> BrowserContext:
        """Return somebody's cookies, storage and cache; the same each time."""
        if whose not in self._contexts:
            if self._browser is None:
                raise RuntimeError("The browser has not been started.")
            self._contexts[whose] = await self._browser.new_context(
                viewport={"width": 1280, "height": 900},
                permissions=["clipboard-read", "clipboard-write"],
            )
        return self._contexts[whose]
