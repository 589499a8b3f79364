"""The clock of all tests, and how hard the property tests look for a counter-example.

Every run tries the same examples, so that what passed once passes again. To look for
new ones, in any of these tests:

    scripts/test tests/test_fuzz.py --hypothesis-profile=long
"""

import asyncio

import pytest
from hypothesis import HealthCheck, settings

from idle_clock import IdleClockPolicy

asyncio.set_event_loop_policy(IdleClockPolicy())

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take long: what is left for the end is short.

    Workers take whole files in this order.
    """
    items.sort(key=lambda item: item.path.parent.name != "hosts")
