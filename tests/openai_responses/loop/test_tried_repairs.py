"""Repairs are known to have helped when the server accepts a request."""

import pytest

from openai_responses.endings import COMPLETED, CUT, Ending
from openai_responses.errors import ApiError
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.tried_repairs import TriedRepairs
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter, LeaveOutStrict
from openai_responses.transport.stream import ItemAdded, TextDelta

FIRST = TriedRepair(LeaveOutParameter("top_p"), ApiError("first"))
SECOND = TriedRepair(LeaveOutStrict(), ApiError("second"))
SAID = TextDelta(0, "text", 0, "Hello")
HELPED = [FIRST, SECOND._replace(helped_at_once=True)]


@pytest.mark.parametrize(
    ("event", "helped"),
    [
        (SAID, HELPED),
        (RunDone(COMPLETED), HELPED),
        (RunDone(Ending("incomplete")), HELPED),
        (RunDone(CUT), []),
        (ItemAdded(0, {"type": "reasoning"}), []),
        (Status("Trying again in 2 s."), []),
    ],
)
def test_answer_shows_that_repairs_helped(
    event: RunEvent, helped: list[TriedRepair]
) -> None:
    """A thought may begin in an answer that ends as a refusal."""
    repairs = TriedRepairs()
    for tried in (FIRST, SECOND):
        assert repairs.note(Status("Again.", tried=tried)) == []

    assert repairs.note(event) == helped
    assert repairs.confirmed == helped
    assert repairs.note(SAID) == ([] if helped else HELPED)


def test_later_responses_have_repairs_of_their_own() -> None:
    """Those of the whole run stay in their order; without any nothing is confirmed."""
    repairs = TriedRepairs()
    assert repairs.note(SAID) == []
    for tried in (FIRST, SECOND):
        repairs.note(Status("Again.", tried=tried))
        [helped] = repairs.note(SAID)
        assert helped == tried._replace(helped_at_once=True)

    assert [each.repair for each in repairs.confirmed] == [FIRST.repair, SECOND.repair]
