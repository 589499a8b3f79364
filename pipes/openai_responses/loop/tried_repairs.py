"""Follows the repairs of a run until the server accepts a request."""

from collections.abc import Sequence
from itertools import pairwise

from openai_responses.loop.events import (
    GIVEN_UP,
    ResponseDone,
    RunDone,
    RunEvent,
    Status,
)
from openai_responses.repairs.finding import TriedRepair
from openai_responses.transport.stream import ItemAdded, ItemDone


class TriedRepairs:
    """The repairs that a run tries."""

    def __init__(self) -> None:
        self._open: list[TriedRepair] = []
        """Those of a request that the server has not accepted yet."""

    def note(self, event: RunEvent) -> list[TriedRepair]:
        """Note an event; return the repairs that it shows to have helped."""
        if isinstance(event, Status):
            if event.tried:
                self._open.append(event.tried)
            return []
        # These come of an answer that ends as a refusal, too: a thought that begins, the
        # end of an earlier attempt's thought, and what the response says of itself.
        is_answered = not isinstance(event, ItemAdded | ResponseDone)
        if isinstance(event, ItemDone):
            is_answered = event.item != GIVEN_UP
        if isinstance(event, RunDone):
            is_answered = event.ending.kind in ("completed", "incomplete")
        if not is_answered:
            return []
        helped = repairs_that_helped(self._open)
        self._open = []
        return helped


def repairs_that_helped(all_tried: Sequence[TriedRepair]) -> list[TriedRepair]:
    """Return the repairs that were not in vain, once a request was accepted.

    A repair was in vain if the same refusal came again and something else removed it.
    Of several things of one kind, such as two images, the refusal may be the same.
    """
    if not all_tried:
        return []
    helped: list[TriedRepair] = []
    for tried, following in pairwise(all_tried):
        is_same_refusal = tried.error == following.error
        is_same_kind = type(tried.repair) is type(following.repair)
        if is_same_kind or not is_same_refusal:
            helped.append(tried)
    # The request with the last one was accepted.
    helped.append(all_tried[-1]._replace(helped_at_once=True))
    return helped
