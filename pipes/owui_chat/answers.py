"""What the answer of a run is: its commentary, if that is all; or nothing to be seen."""

from collections.abc import Iterable, Sequence

from openai_responses.endings import Ending, ending_of_incomplete
from openai_responses.items import (
    Item,
    is_call,
    is_call_output,
    is_code,
    is_commentary,
    is_reasoning,
    item_type,
    message_text,
    open_calls,
    shows_image,
)
from openai_responses.loop.events import RunDone
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


def explain_ending(ended: RunDone, earlier: Iterable[Item] = ()) -> Ending:
    """Return how a run ended; if nothing is shown of its answer, with the reason.

    After tools have run, a model may have nothing to add (gpt-5.4-nano and gpt-5-mini
    end with an empty message). That is no failure: a user who regenerates the
    answer would run the tools once more. `earlier` are items of the same answer from
    before this run, like the outputs of a client's own tools.
    """
    ending = ended.ending
    output = ended.output
    if open_calls(output) or closing_commentary(output):
        return ending
    for item in output:
        is_message = item_type(item) == "message" and not is_commentary(item)
        if is_message and message_text(item).strip():
            return ending
        if shows_image(item) or is_code(item):
            return ending
    if ending.kind == "completed":
        if ended.limit:
            is_of_calls = ended.limit in ("rounds", "calls")
            return ending_of_incomplete("only_calls" if is_of_calls else "used_up")
        for item in (*earlier, *output):
            # A tool has run, here or at a remote server.
            if is_call_output(item) or item_type(item) == "mcp_call":
                return ending
        return ending_of_incomplete("no_answer")
    has_reasoning = any(is_reasoning(item) for item in output)
    if ending.code == "max_output_tokens" and has_reasoning:
        message = ending_of_incomplete("only_tokens").message
        return ending._replace(message=message)
    return ending
