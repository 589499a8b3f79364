"""Commentary of the model: how the host stores it, and when it is the answer."""

from collections.abc import Sequence

from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_commentary,
    item_type,
    message_text,
    open_calls,
)
from openai_responses.requests.replay import is_approval_request

COMMENTARY_TYPE = "openai_responses:remark"
"""The type of the item that shows commentary; the host sends it to no model."""


def closing_commentary(output: Sequence[Item]) -> Item | None:
    """Return the commentary that is the last output of a run or of its last response."""
    if open_calls(output):
        return None
    for item in reversed(output):
        if is_call(item) or is_call_output(item) or is_approval_request(item):
            return None
        if item_type(item) == "message" and message_text(item).strip():
            return item if is_commentary(item) else None
    return None
