"""What the tests of the connection share."""

import os

import pytest


@pytest.fixture(autouse=True)
def no_proxy_of_the_developer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the proxies of the machine that runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
