"""What the filter for administrators is told of a call."""

from typing import Any, cast

from shells.administration import UNKNOWN_CALL, CallFacts


def call_facts(**given: Any) -> CallFacts:
    """Return the facts of a call of which these are known."""
    assert given.keys() <= UNKNOWN_CALL.keys()
    return cast(CallFacts, {**UNKNOWN_CALL, **given})
