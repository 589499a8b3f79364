"""The input of a request, as far as one request takes it."""

from collections.abc import Sequence

from openai_responses.items import Item, is_call_output
from openai_responses.loop.tools import NOTE_CHARACTERS, cap_output
from owui_chat.input.attachments import fit_input


def fit_history(items: Sequence[Item], most_output: int | None) -> list[Item]:
    """Return the items of a chat without what is too long for a request.

    Open WebUI, and other clients, know no limit for the outputs of the calls that they
    make; an output that was cut before stays as it is. None: outputs stay whole.
    """
    fitted: list[Item] = []
    for item in items:
        if most_output is not None and is_call_output(item):
            output = cap_output(item["output"], most_output, NOTE_CHARACTERS)
            item = {**item, "output": output}  # noqa: PLW2901
        fitted.append(item)
    return fit_input(fitted)
