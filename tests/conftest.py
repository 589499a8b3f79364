"""How hard the property tests look for a counter-example.

Every run tries the same examples, so that what passed once passes again. To look for
new ones, in any of these tests:

    scripts/test tests/test_fuzz.py --hypothesis-profile=long
"""

from datetime import timedelta

from hypothesis import HealthCheck, settings

_ONE_EXAMPLE = timedelta(seconds=2)
"""Ordinary ones take milliseconds; a machine may have much else to do."""

settings.register_profile(
    "quick",
    derandomize=True,
    deadline=_ONE_EXAMPLE,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=5_000,
    deadline=_ONE_EXAMPLE,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.load_profile("quick")
