"""The user's words apart from what the host put around them."""

import json
from typing import Any

import pytest

from owui_chat.input.prefix import (
    Injected,
    injected_around,
    read_injected,
    with_injected,
)
from owui_chat.messages import Said
from owui_chat.storage.records import text_digest

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}


def said(*texts: str, pictures: int = 0) -> Said:
    """A message of the user."""
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": t} for t in texts]
    content = [*parts, *[PICTURE] * pictures]
    return Said({"type": "message", "role": "user", "content": content})


def kept(asked: Said, words: str) -> Injected:
    """What is kept of a message, as it is read back."""
    found = injected_around(asked, words)
    assert found is not None
    read = read_injected(json.loads(json.dumps(found.wire())))
    assert read == found
    return found


@pytest.mark.parametrize(
    ("asked", "later", "words"),
    [
        (said("<context/>\nrain?"), said("rain?"), "rain?"),
        (said("rain?\n[noon]"), said("rain?"), "rain?"),
        (said("rain? is known\nrain?"), said("rain?"), "rain?"),
        (said("<c/>\n<files/>\n\nrain?"), said("<files/>\n\nrain?"), "rain?"),
        (
            said("<c/>\n<files/>", "<c/>\nrain?", pictures=1),
            said("<files/>", "rain?", pictures=1),
            "rain?",
        ),
        (said("<c/>\n"), said(""), ""),
    ],
)
def test_earlier_message_is_sent_as_it_was(
    asked: Said, later: Said, words: str
) -> None:
    """Whatever stood around the words stands there again."""
    found = kept(asked, words)

    assert with_injected(later, words, found) == asked
    assert with_injected(asked, words, found) == asked


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (said("rain?"), "rain?"),
        (said("another's words"), "rain?"),
        (said("c" * 200_001 + "rain?"), "rain?"),
        (said(pictures=1), ""),
    ],
)
def test_nothing_is_kept(asked: Said, words: str) -> None:
    """The words alone, words that no chat holds, too much, no text at all."""
    assert injected_around(asked, words) is None


def test_edited_words_are_sent_afresh() -> None:
    """And so is a message whose words are not where they should be."""
    found = kept(said("<c/>\nrain?"), "rain?")

    assert with_injected(said("snow?"), "snow?", found) == said("snow?")
    assert with_injected(said("hail?"), "rain?", found) == said("hail?")
    assert with_injected(said("rain?"), "rain?", None) == said("rain?")


@pytest.mark.parametrize("wire", [None, "x", {}, {"texts": "x"}])
def test_what_no_writer_wrote_is_nothing(wire: object) -> None:
    """A row that a person or another program changed stops no chat."""
    assert read_injected(wire) is None


def test_words_are_not_stored_twice() -> None:
    """The chat holds them; their digest is enough."""
    found = kept(said("<c/>\nrain?"), "rain?")

    assert found.wire() == {
        "words": text_digest("rain?"),
        "texts": [("<c/>\n", "")],
    }
