"""The page's own words for two wishes become a verbosity."""

import pytest

from chats.parts import input_message
from owui_chat.input.directive_words import CONCISE, DETAILED
from owui_chat.input.directives import take_directive, words_digest
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    ToolCall,
    ToolMessage,
)

QUESTION = input_message("Why does it rain?")
OLD = AssistantText("Because.")
CARD: list[ChatPart] = [ToolCall("call_1", "look", "{}"), ToolMessage("call_1", "rain")]


@pytest.mark.parametrize(
    ("words", "verbosity"),
    [
        ("Add Details", "high"),
        (" Details hinzufügen\n", "high"),
        ("より詳しく", "high"),
        ("إضافة تفاصيل", "high"),
        ("More Concise", "low"),
        ("Plus concis", "low"),
        ("Make it rhyme.", ""),
        ("", ""),
    ],
)
def test_wish_in_the_words_of_the_page(words: str, verbosity: str) -> None:
    """The old answer leaves with it; other words are the model's to read."""
    chat: list[ChatPart] = [
        input_message("Hi"),
        AssistantText("Hello."),
        QUESTION,
        *CARD,
        OLD,
    ]

    asked = take_directive([*chat, input_message(words)], is_guided=True)

    assert asked == (
        (chat[:3], verbosity) if verbosity else ([*chat, input_message(words)], "")
    )


def test_rounds_of_the_new_answer_stay() -> None:
    """The host calls again after its tools, with the same messages in front."""
    chat = [QUESTION, OLD, input_message("Add Details"), *CARD]

    assert take_directive(chat, is_guided=True) == ([QUESTION, *CARD], "high")


def test_older_host_puts_the_wish_behind_the_question() -> None:
    chat: list[ChatPart] = [QUESTION, input_message("More Concise")]

    assert take_directive(chat, is_guided=False) == ([QUESTION], "low")


@pytest.mark.parametrize(
    "chat",
    [
        [QUESTION, OLD, input_message("Add Details")],  # somebody wrote it
        [input_message("Add Details")],
        [input_message("Be brief.", role="developer"), input_message("Add Details")],
        [],
    ],
)
def test_user_message_is_not_taken_as_directive(chat: list[ChatPart]) -> None:
    assert take_directive(chat, is_guided=False) == (chat, "")


def test_table_is_unambiguous() -> None:
    detailed = DETAILED.split()
    concise = CONCISE.split()

    assert len(detailed) > 50
    assert len(concise) > 50
    assert not set(detailed) & set(concise)
    assert {len(digest) for digest in [*detailed, *concise]} == {len(words_digest(""))}
    assert words_digest("Add Details") in detailed
