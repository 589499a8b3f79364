"""What other functions read of our events: the text, as Chat Completions has it."""

from typing import Any

import pytest

from owui_chat.events import Marker
from owui_chat.storage.markers import format_marker
from runs.sample import (
    Page,
    call,
    message,
    on_page,
    reasoning,
    refusal,
    run_of,
)

Json = dict[str, Any]
FIELDS = ("content", "reasoning_content")


def said(chunks: list[Json], field: str = "content") -> str:
    """What the choices of chunks say, as whoever reads only those joins it."""
    choices = [choice for chunk in chunks for choice in chunk.get("choices", ())]
    return "".join(choice["delta"].get(field, "") for choice in choices)


def test_two_messages_and_two_thoughts_are_apart() -> None:
    """Whoever joins the deltas knows of no items."""
    events = run_of(
        reasoning("1", "First."),
        message("2", "One."),
        call("3"),
        reasoning("4", "Second."),
        message("5", "Two."),
        refusal("6", "No more."),
    )

    chunks, _ = on_page(events)

    assert said(chunks) == "One.\n\nTwo.\n\nNo more."
    assert said(chunks, "reasoning_content") == "First.\n\nSecond."


def test_thoughts_of_open_models_are_said_as_such() -> None:
    """They come as content of their reasoning, not as a summary."""
    content = [{"type": "reasoning_text", "text": text} for text in ("One", "Two")]
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "content": content}

    chunks, _ = on_page(run_of(thought, message("1", "Rain.")))

    assert said(chunks, "reasoning_content") == "One\n\nTwo"
    assert said(chunks) == "Rain."


def test_marker_is_not_said() -> None:
    """It is for the stored chat, and other functions would show it."""
    line = format_marker("items", "A" * 26)
    page = Page(lambda: 0.0)
    events = [Marker(line), *run_of(message("1", "Hi."))]
    chunks = [chunk for event in events for chunk in page.render(event)]

    assert line in chunks[1]["delta"]
    assert said(chunks) == "Hi."


@pytest.mark.parametrize(
    ("before", "whole"), [([], "Look."), ([message("1", "One.")], "One.\n\nLook.")]
)
def test_commentary_that_is_the_answer_is_said_once(
    before: list[Json], whole: str
) -> None:
    """Commentary is not said; if nothing follows, it is the answer."""
    events = run_of(*before, message("9", "Look.", "commentary"))

    chunks, _ = on_page(events)

    assert said(chunks) == whole


def test_commentary_before_an_answer_is_not_said() -> None:
    """It is no part of the answer."""
    chunks, _ = on_page(run_of(message("1", "Hm.", "commentary"), message("2", "So.")))

    assert said(chunks) == "So."


def test_only_texts_are_said() -> None:
    """Neither arguments of calls nor code."""
    chunks, _ = on_page(run_of(call("1")))

    assert any("arguments" in str(chunk.get("type")) for chunk in chunks)
    assert [said(chunks, field) for field in FIELDS] == ["", ""]
