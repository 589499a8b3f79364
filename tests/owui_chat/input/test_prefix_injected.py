"""The user's words apart from what the host put around them."""

import json

import pytest

from chats.parts import input_message
from openai_responses.json_input import JsonBudget
from owui_chat.input.prefix import (
    SAME_CONTEXT,
    SentContext,
    apply_sent_context,
    drop_repeated_context,
    find_injected_context,
    read_sent_context,
)
from owui_chat.messages import AssistantText, ChatPart, StoredMessage, UserMessage
from owui_chat.storage.records import message_key, text_digest
from stand_in.signing import KEYS

CONTEXT = "<c>" + "The clock is wound at noon. " * 40 + "</c>\n"
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}


def user_message(*texts: str, pictures: int = 0) -> UserMessage:
    """A message of the user."""
    return input_message(*texts, *[PICTURE] * pictures)


def injected(asked: UserMessage, words: str) -> SentContext:
    """What is found around the words of a message."""
    stored = StoredMessage({"content": words}, "a")
    return SentContext(find_injected_context([asked._replace(stored=stored)]))


def read(wire: object) -> SentContext:
    """What is read of a stored form."""
    sealed = KEYS.seal({"injected": wire}, "a")
    sent = read_sent_context(
        {message_key("a"): {"sent": sealed}}, KEYS.unseal, JsonBudget(9999)
    )
    return sent.get("a", SentContext())


def applied(asked: UserMessage, words: str, context: SentContext) -> ChatPart:
    """A message as it was sent."""
    stored = StoredMessage({"content": words}, "a")
    chat = [asked._replace(stored=stored)]
    [part] = apply_sent_context(chat, {"a": context}, {}, {})
    assert isinstance(part, UserMessage)
    return part._replace(stored=None)


def kept(asked: UserMessage, words: str) -> SentContext:
    """What is kept of a message, as it is read back."""
    context = injected(asked, words)
    assert context != SentContext()
    wire = json.loads(json.dumps(context.wire()))
    back = read(wire["injected"])
    assert json.loads(json.dumps(back.wire())) == wire
    return back


@pytest.mark.parametrize(
    ("asked", "later", "words"),
    [
        (user_message("<context/>\nrain?"), user_message("rain?"), "rain?"),
        (user_message("rain?\n[noon]"), user_message("rain?"), "rain?"),
        (user_message("rain? is known\nrain?"), user_message("rain?"), "rain?"),
        (
            user_message("<c/>\n<files/>\n\nrain?"),
            user_message("<files/>\n\nrain?"),
            "rain?",
        ),
        (
            user_message("<c/>\n<files/>", "<c/>\nrain?", pictures=1),
            user_message("<files/>", "rain?", pictures=1),
            "rain?",
        ),
        (user_message("<c/>\n"), user_message(""), ""),
    ],
)
def test_earlier_message_is_sent_as_it_was(
    asked: UserMessage, later: UserMessage, words: str
) -> None:
    context = kept(asked, words)

    assert applied(later, words, context) == asked
    assert applied(asked, words, context) == asked


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (user_message("rain?"), "rain?"),
        (user_message("another's words"), "rain?"),
        (user_message("c" * 200_001 + "rain?"), "rain?"),
        (user_message(pictures=1), ""),
    ],
)
def test_nothing_is_kept(asked: UserMessage, words: str) -> None:
    assert injected(asked, words) == SentContext()


def test_edited_words_are_sent_afresh() -> None:
    context = kept(user_message("<c/>\nrain?"), "rain?")

    assert applied(user_message("snow?"), "snow?", context) == user_message("snow?")
    assert applied(user_message("hail?"), "rain?", context) == user_message("hail?")
    plain = user_message("rain?")
    assert applied(plain, "rain?", SentContext()) == plain


def test_messages_that_no_row_has_are_passed_over() -> None:
    """A filter may have put them in, in front of the question or after it."""
    told = input_message("It is noon.", role="developer")
    said = AssistantText("It rains.")
    stored = StoredMessage({"content": "rain?"}, "a")
    asked = user_message("<c/>\nrain?")._replace(stored=stored)
    context = SentContext(find_injected_context([told, asked, told]))

    assert context == injected(user_message("<c/>\nrain?"), "rain?")
    assert find_injected_context([asked, said]) == context.injected
    assert find_injected_context([told]) is None
    later = user_message("rain?")._replace(stored=stored)
    chat: list[ChatPart] = [told, later, said, told]
    sent = apply_sent_context(chat, {"a": context}, {}, {})
    assert sent == [told, asked, said, told]
    assert context.injected
    again = {"words": "", "texts": [[CONTEXT, ""]]}
    assert drop_repeated_context(again, chat, {"a": context}, set()) == again


@pytest.mark.parametrize("wire", [None, "x", {}, {"texts": "x"}])
def test_malformed_sent_context_is_ignored(wire: object) -> None:
    """A row that a person or another program changed stops no chat."""
    assert read(wire) == SentContext()


def test_words_are_not_stored_twice() -> None:
    """The chat holds them; their digest is enough."""
    context = kept(user_message("<c/>\nrain?"), "rain?")

    assert context.wire() == {
        "injected": {"words": text_digest("rain?"), "texts": [["<c/>\n", ""]]}
    }


@pytest.mark.parametrize(
    ("first", "second", "compacted", "is_repeated"),
    [
        (f"{CONTEXT}rain?", f"{CONTEXT}snow?", "", True),
        (f"{CONTEXT}<f/>\nrain?", f"{CONTEXT}snow?\n[noon]", "", True),
        (f"{CONTEXT}rain?", f"{CONTEXT}snow?", "a", False),
        (f"{CONTEXT}rain?", f"{CONTEXT}<f/>\nsnow?", "", False),
        (f"{CONTEXT}another's words", f"{CONTEXT}snow?", "", False),
        ("c" * 499 + "rain?", "c" * 499 + "snow?", "", False),
        ("c" * 500 + "rain?", "c" * 500 + "snow?", "", True),
    ],
    ids=[
        *("same", "more around it", "compacted", "new file", "edited"),
        *("short", "just long enough"),
    ],
)
def test_context_is_sent_once(
    first: str, second: str, compacted: str, is_repeated: bool
) -> None:
    """As long as an earlier question has it in this request."""
    sent = {"a": injected(user_message(first), "rain?")}
    chat = [
        user_message("rain?")._replace(stored=StoredMessage({"content": "rain?"}, "a")),
        user_message(second)._replace(stored=StoredMessage({"content": "snow?"}, "b")),
    ]

    injected_now = find_injected_context(chat)
    assert injected_now
    context = drop_repeated_context(injected_now, chat, sent, {compacted})

    assert context["words"] == text_digest("snow?")
    before, _, after = second.partition("snow?")
    expected = SAME_CONTEXT if is_repeated else before
    assert context["texts"] == [[expected, after]]
