"""The browser on this machine."""

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
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
        if found := shutil.which(name):
            return found
    raise ChromiumMissingError(MISSING)
