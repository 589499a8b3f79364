"""The user's words apart from what the host put around them."""

import json
from typing import Any

import pytest

from owui_chat.input.prefix import (
    InjectedContext,
    apply_injected_context,
    find_injected_context,
    read_injected_context,
)
from owui_chat.messages import UserMessage
from owui_chat.storage.records import text_digest

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}


def said(*texts: str, pictures: int = 0) -> UserMessage:
    """A message of the user."""
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": t} for t in texts]
    content = [*parts, *[PICTURE] * pictures]
    return UserMessage({"type": "message", "role": "user", "content": content})


def kept(asked: UserMessage, words: str) -> InjectedContext:
    """What is kept of a message, as it is read back."""
    found = find_injected_context(asked, words)
    assert found is not None
    read = read_injected_context(json.loads(json.dumps(found.wire())))
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
    asked: UserMessage, later: UserMessage, words: str
) -> None:
    """Whatever stood around the words stands there again."""
    found = kept(asked, words)

    assert apply_injected_context(later, words, found) == asked
    assert apply_injected_context(asked, words, found) == asked


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (said("rain?"), "rain?"),
        (said("another's words"), "rain?"),
        (said("c" * 200_001 + "rain?"), "rain?"),
        (said(pictures=1), ""),
    ],
)
def test_nothing_is_kept(asked: UserMessage, words: str) -> None:
    """The words alone, words that no chat holds, too much, no text at all."""
    assert find_injected_context(asked, words) is None


def test_edited_words_are_sent_afresh() -> None:
    """And so is a message whose words are not where they should be."""
    found = kept(said("<c/>\nrain?"), "rain?")

    assert apply_injected_context(said("snow?"), "snow?", found) == said("snow?")
    assert apply_injected_context(said("hail?"), "rain?", found) == said("hail?")
    assert apply_injected_context(said("rain?"), "rain?", None) == said("rain?")


@pytest.mark.parametrize("wire", [None, "x", {}, {"texts": "x"}])
def test_what_no_writer_wrote_is_nothing(wire: object) -> None:
    """A row that a person or another program changed stops no chat."""
    assert read_injected_context(wire) is None


def test_words_are_not_stored_twice() -> None:
    """The chat holds them; their digest is enough."""
    found = kept(said("<c/>\nrain?"), "rain?")

    assert found.wire() == {
        "words": text_digest("rain?"),
        "texts": [("<c/>\n", "")],
    }
