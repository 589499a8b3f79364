"""The clock of all tests, and how hard the property tests look for a counter-example.

Every run tries the same examples, so that what passed once passes again. To look for
new ones, in any of these tests:

    scripts/test tests/test_fuzz.py --hypothesis-profile=long
"""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from idle_clock import IdleClockPolicy, forget_threads, skip_waiting
from marking import begin_test

asyncio.set_event_loop_policy(IdleClockPolicy())
gc.disable()  # until the tests are collected, of which nothing is garbage

settings.register_profile(
    "quick",
    derandomize=True,
    deadline=None,  # whoever must be quick is measured in CPU time
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=5_000,
    deadline=None,  # whoever must be quick is measured in CPU time
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("quick")


ALONE = {Path(__file__).parent / name for name in ("openai_responses", "owui_manifold")}
"""Directories of tests that talk to nobody outside their own process."""
LONG = ("hosts", "toolbox", "test_bench.py", "test_bundle_loads.py", "test_fuzz.py")
FIXTURES = {"host_functions": "host", "shared_sandbox": "sandbox"}
"""The marks of the tests that use a fixture."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what says itself what it needs; begin with the files that take long.

    Workers take whole files in this order, so what is left for the end is short.
    """
    for item in items:
        for mark in _implied_marks(item):
            item.add_marker(mark)
    items.sort(key=_rank)


def _rank(item: pytest.Item) -> int:
    """Files of these directories take tens of seconds each, all others few."""
    top = item.path.relative_to(Path(__file__).parent).parts[0]
    return LONG.index(top) if top in LONG else len(LONG)


def _implied_marks(item: pytest.Item) -> Iterator[str]:
    used = getattr(item, "fixturenames", ())
    yield from (mark for fixture, mark in FIXTURES.items() if fixture in used)
    if "sandbox" in str(item.path.relative_to(Path(__file__).parent)):
        yield "sandbox"


def pytest_collection_finish() -> None:
    """Collect garbage again, but do not look for it among what was imported."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let only those use what is installed whose marks say so."""
    begin_test(mark.name for mark in item.iter_markers())
    forget_threads()
    skip_waiting(not ALONE.isdisjoint(item.path.parents))
