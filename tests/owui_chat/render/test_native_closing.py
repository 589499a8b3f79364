"""The last status line of an answer."""

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, Status
from openai_responses.models.usage import Usage
from owui_chat.render.hosted import HostedItems
from owui_chat.render.native import NativeRenderer

USED = Usage(input=4000, output=560, total=4560, cached=3100)


def closing_line(seconds: float, ended: RunDone) -> str:
    """What the first status of the end says, so long after the beginning."""
    times = iter([100.0, 100.0 + seconds])
    [status, *_] = NativeRenderer(lambda: next(times), HostedItems).render(ended)
    return str(status["event"]["data"]["description"])


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "under a second"),
        (1.4, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (754, "12 min 34 s"),
    ],
)
def test_how_long_it_took(seconds: float, said: str) -> None:
    """In the units that people use."""
    assert closing_line(seconds, RunDone(COMPLETED)) == f"Finished in {said}"


def test_what_it_used() -> None:
    """The cached share is of the input."""
    assert closing_line(3, RunDone(COMPLETED, USED)) == (
        "Finished in 3 s · 4,560 tokens, 77 % of the input cached"
    )


def test_nothing_was_cached() -> None:
    """Then nothing is said of it."""
    used = Usage(input=10, output=5, total=15)
    assert closing_line(3, RunDone(COMPLETED, used)) == "Finished in 3 s · 15 tokens"


@pytest.mark.parametrize(("notes", "said"), [(1, "1 note"), (2, "2 notes")])
def test_what_was_said_before(notes: int, said: str) -> None:
    """The page shows only the last line: it says that there are others to open."""
    view = NativeRenderer(lambda: 100.0, HostedItems)
    for _ in range(notes):
        list(view.render(Status("One earlier web search was left out.")))
    [status, *_] = view.render(RunDone(COMPLETED))
    line = f"Finished in under a second · {said}"
    assert status["event"]["data"]["description"] == line


@pytest.mark.parametrize(
    ("cost", "said"),
    [(0.0, "$0"), (0.00123, "$0.0012"), (0.046, "$0.046"), (12.345, "$12.35")],
)
def test_what_it_cost(cost: float, said: str) -> None:
    """Two digits of a small amount, cents of a large one."""
    ended = RunDone(COMPLETED, cost=cost)
    assert closing_line(3, ended) == f"Finished in 3 s · {said}"
