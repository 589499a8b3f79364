"""How long a server asks to wait, and what people are told of it."""

import pytest

from openai_responses import waits
from openai_responses.waits import seconds_until, told_wait, wait_in_words


@pytest.mark.parametrize("unit", [1, 1000])
def test_time_since_1970_becomes_a_wait(
    unit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In seconds or milliseconds; a small number is a wait already."""
    monkeypatch.setattr(waits, "unix_seconds", lambda: 1_795_262_400)
    assert seconds_until(1_795_262_442 * unit) == 42
    assert seconds_until(1_795_262_000 * unit) == 0
    assert seconds_until(3600 * unit) == 3600 * unit


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Please try again in 3.2s. Visit us.", 3.2),
        ("Please try again in 250ms.", 0.25),
        ("Please try again in 6m0s.", 360),
        ("Please try again in 1h2m3.5s.", 3723.5),
        ("Please retry after 1 minute.", 60),
        ("Please retry in 34.5s.", 34.5),  # Google
        ("Try again in 500 Milliseconds", 0.5),
        ("Try again later.", None),
        ("Try again in 3 days.", 259_200),
        ("Please try again in 1d2h.", 93_600),
        ("Your quota will reset after 142h40m7s.", 513_607),
    ],
)
def test_wait_is_read_from_words(message: str, seconds: float | None) -> None:
    """Inside of a stream there is no header for it."""
    assert wait_in_words(message) == (pytest.approx(seconds) if seconds else None)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0.5, "a moment"),
        (20, "20 seconds"),
        (60, "60 seconds"),
        (61, "2 minutes"),
        (13_872, "4 hours"),
        (86_400, "24 hours"),
        (529_498, "7 days"),
    ],
)
def test_wait_is_told_in_one_unit(seconds: float, told: str) -> None:
    assert told_wait(seconds) == told
