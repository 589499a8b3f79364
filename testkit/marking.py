"""Makes sure that a test has the marks that say what has to be installed for it.

`scripts/test` reads the marks of the chosen tests and installs what they need. On a
machine that has everything a forgotten mark would go unnoticed, so whoever hands out
something that was installed asks here first.
"""

from collections.abc import Iterable

_running: set[str] | None = None


class UnmarkedTestError(AssertionError):
    """A test uses what its marks do not name."""


def begin_test(marks: Iterable[str]) -> None:
    """Note the marks of the test that runs from now on."""
    global _running  # noqa: PLW0603 - one test runs at a time
    _running = set(marks)


def require_mark(mark: str) -> None:
    """Fail if the running test lacks a mark; scripts outside of pytest need none."""
    if _running is not None and mark not in _running:
        raise UnmarkedTestError(
            f"This test uses what `scripts/test` installs for the mark {mark!r} only: "
            f"put @pytest.mark.{mark} on it."
        )
