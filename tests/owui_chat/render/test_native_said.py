"""What other functions read of our events: the text, as Chat Completions has it."""

from typing import Any

import pytest

from owui_chat.events import Marker
from owui_chat.storage.markers import format_marker
from runs.sample import (
    call,
    message,
    on_page,
    reasoning,
    refusal,
    run_of,
)

Json = dict[str, Any]


def said(chunks: list[Json], field: str = "content") -> str:
    """What the choices of chunks say, as whoever reads only those joins it."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get(field, "") for choice in choices)


LOOK = message("9", "Look.", "commentary")
OPEN_THOUGHT = {
    **{"type": "reasoning", "id": "rs_1", "summary": []},
    "content": [{"type": "reasoning_text", "text": text} for text in ("One", "Two")],
}


@pytest.mark.parametrize(
    ("items", "content", "thought"),
    [
        pytest.param(
            [
                *(reasoning("1", "First."), message("2", "One."), call("3")),
                *(reasoning("4", "Second."), message("5", "Two.")),
                refusal("6", "No more."),
            ],
            "One.\n\nTwo.\n\nNo more.",
            "First.\n\nSecond.",
            id="messages and thoughts are apart: whoever joins them knows no items",
        ),
        pytest.param([OPEN_THOUGHT], "", "One\n\nTwo", id="thoughts of open models"),
        pytest.param([LOOK], "Look.", "", id="commentary that is the answer"),
        pytest.param(
            [message("1", "One."), LOOK], "One.\n\nLook.", "", id="at the end"
        ),
        pytest.param([LOOK, message("2", "So.")], "So.", "", id="before an answer"),
        pytest.param([call("1")], "", "", id="no arguments of calls"),
    ],
)
def test_texts_are_said_as_chat_completions_has_them(
    items: list[Json], content: str, thought: str
) -> None:
    chunks, _ = on_page(run_of(*items))

    assert said(chunks) == content
    assert said(chunks, "reasoning_content") == thought


def test_marker_is_not_said() -> None:
    """It is for the stored chat, and other functions would show it."""
    line = format_marker("items", "A" * 26)

    chunks, _ = on_page([Marker(line), *run_of(message("1", "Hi."))])

    assert line in chunks[1]["delta"]
    assert said(chunks) == "Hi."
