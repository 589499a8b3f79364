"""Which limit runs, until when, over the attempts of one run."""

import asyncio
from collections.abc import Callable

import pytest

from openai_responses.errors import TimeoutKind
from openai_responses.transport.deadlines import Deadlines, Timeouts

pytestmark = pytest.mark.asyncio


def seconds_left(deadlines: Deadlines) -> float:
    """Return how long the next wait may take, to a tenth of a second."""
    end = deadlines.scope().when()
    assert end is not None
    return round(end - asyncio.get_running_loop().time(), 1)


LIMITS = Timeouts(first_event=60.0, idle=20.0)
EVENT, BYTES = Deadlines.event_arrived, Deadlines.bytes_arrived
FIRST = (60.0, "first_event_timeout")
NEXT = (20.0, "idle_timeout")


@pytest.mark.parametrize(
    ("steps", "left", "kind"),
    [
        pytest.param([], *FIRST, id="before the first event"),
        pytest.param([EVENT], *NEXT, id="after an event"),
        pytest.param([BYTES], *FIRST, id="after bytes of no event"),
        pytest.param([EVENT, BYTES], *NEXT, id="after more bytes"),
        pytest.param([EVENT, Deadlines.start_attempt], *FIRST, id="next attempt"),
    ],
)
async def test_limit_that_runs(
    steps: list[Callable[[Deadlines], None]], left: float, kind: TimeoutKind
) -> None:
    deadlines = Deadlines(LIMITS)
    for step in steps:
        step(deadlines)
    assert seconds_left(deadlines) == left
    assert deadlines.timeout_error().ending[0] == kind


@pytest.mark.parametrize("arrived", [EVENT, BYTES])
async def test_whatever_arrives_starts_the_limit_anew(
    arrived: Callable[[Deadlines], None],
) -> None:
    deadlines = Deadlines(LIMITS)
    deadlines.event_arrived()
    before = deadlines.scope().when()
    await asyncio.sleep(0.001)
    arrived(deadlines)
    after = deadlines.scope().when()
    assert before is not None
    assert after is not None
    assert after > before


@pytest.mark.parametrize(
    ("total", "left", "kind"),
    [
        (0.0, 20.0, "idle_timeout"),
        (30.0, 20.0, "idle_timeout"),
        (20.0, 20.0, "total_timeout"),
        (5.0, 5.0, "total_timeout"),
    ],
)
async def test_nearest_limit_counts(
    total: float, left: float, kind: TimeoutKind
) -> None:
    deadlines = Deadlines(Timeouts(first_event=60.0, idle=20.0, total=total))
    deadlines.event_arrived()
    assert seconds_left(deadlines) == left
    assert deadlines.timeout_error().ending[0] == kind


async def test_total_runs_over_all_attempts() -> None:
    deadlines = Deadlines(Timeouts(first_event=60.0, idle=60.0, total=5.0))
    before = deadlines.scope().when()
    await asyncio.sleep(0.001)
    deadlines.event_arrived()
    deadlines.bytes_arrived()
    deadlines.start_attempt()
    assert deadlines.scope().when() == before


async def test_total_stands_still_in_a_pause() -> None:
    deadlines = Deadlines(Timeouts(first_event=60.0, idle=60.0, total=5.0))
    before = deadlines.scope().when()
    assert before is not None
    paused = asyncio.get_running_loop().time()

    async def pause() -> None:
        with deadlines.paused():
            await asyncio.sleep(0.01)
            raise KeyError

    with pytest.raises(KeyError):
        await pause()

    took = asyncio.get_running_loop().time() - paused
    after = deadlines.scope().when()
    assert after is not None
    assert 0.01 <= round(after - before, 6) <= round(took, 6)


async def test_wait_within_the_total() -> None:
    assert Deadlines(Timeouts(total=0.0)).allow(1e9)
    assert Deadlines(Timeouts(total=30.0)).allow(20.0)
    assert not Deadlines(Timeouts(total=30.0)).allow(40.0)


async def test_nobody_waits_for_the_server_in_a_pause() -> None:
    told: list[bool] = []
    deadlines = Deadlines(LIMITS, told.append)
    for begin in (deadlines.start_attempt, deadlines.event_arrived):
        with deadlines.paused():
            assert told == [True, False]
        told.clear()
        begin()
    assert told == [True]
