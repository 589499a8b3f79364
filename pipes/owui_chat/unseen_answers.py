"""How an answer of which nothing is seen is told to have ended."""

from collections.abc import Iterable

from openai_responses.endings import Ending, ending_of_incomplete
from openai_responses.items import (
    Item,
    has_image,
    is_call_output,
    is_code,
    is_commentary,
    is_reasoning,
    item_type,
    message_text,
    open_calls,
)
from openai_responses.loop.events import RunDone
from owui_chat.commentary import closing_commentary


def explain_ending(ended: RunDone, earlier: Iterable[Item] = ()) -> Ending:
    """Return how a run ended; if nothing is shown of its answer, with the reason.

    After tools have run, a model may have nothing to add (gpt-5.4-nano and gpt-5-mini
    end with an empty message). That is no failure: a person who regenerates the
    answer would run the tools once more. `earlier` are items of the same answer from
    before this run, like the outputs of a client's own tools.
    """
    ending = ended.ending
    output = ended.output
    is_seen = any(_is_seen(item) for item in output)
    if is_seen or open_calls(output) or closing_commentary(output):
        return ending
    if ending.kind == "completed":
        if ended.limit:
            is_of_calls = ended.limit in ("rounds", "calls")
            return ending_of_incomplete("only_calls" if is_of_calls else "used_up")
        has_run = any(map(_is_of_run_tool, (*earlier, *output)))
        return ending if has_run else ending_of_incomplete("no_answer")
    has_reasoning = any(is_reasoning(item) for item in output)
    if ending.code == "max_output_tokens" and has_reasoning:
        sentence = ending_of_incomplete("only_tokens").sentence
        return ending._replace(sentence=sentence)
    return ending


def _is_of_run_tool(item: Item) -> bool:
    """Say whether a tool has run, here or at a remote server."""
    return is_call_output(item) or item_type(item) == "mcp_call"


def _is_seen(item: Item) -> bool:
    """Say whether the page shows an item as an answer."""
    if item_type(item) == "message":
        return bool(message_text(item).strip()) and not is_commentary(item)
    return has_image(item) or is_code(item)
