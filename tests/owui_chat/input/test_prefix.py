"""What was sent, reconciled with what is asked."""

import json

import pytest

from openai_responses.requests.turns import Turn
from owui_chat.input.prefix import (
    SentContext,
    add_sent_context,
    apply_sent_context,
    capture_sent_context,
    first_instructions,
    read_sent_context,
)
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    StoredMessage,
    UserMessage,
    attach_stored_messages,
    stored_messages,
)
from owui_chat.storage.records import message_key
from owui_manifold.store import ChatKeys
from signing import KEYS, with_sent
from stand_in_host import SERVER_SECRET

ROW = {
    "q0": {"role": "user", "content": "zero"},
    "a0": {"role": "assistant", "content": "yes", "parentId": "q0"},
    "a0-too": {"role": "assistant", "content": "no", "parentId": "q0"},
    "q1": {"role": "user", "content": "one", "parentId": "a0"},
    "a1": {"role": "assistant", "content": "well", "parentId": "q1"},
    "q2": {"role": "user", "content": "two", "parentId": "a1"},
}
ASKED = {"user_message_id": "q2", "message_id": "a2"}


def said(text: str, role: str = "user") -> UserMessage:
    """A message that no model wrote."""
    part = {"type": "input_text", "text": text}
    return UserMessage({"type": "message", "role": role, "content": [part]})


SENT: list[ChatPart] = [
    said("zero"),
    AssistantText("yes"),
    said("one"),
    AssistantText("well"),
    said("<c/>\ntwo"),
]
CHAT = attach_stored_messages(SENT, ROW, ASKED)


def stored_in(parts: list[ChatPart]) -> dict[int, StoredMessage]:
    """The stored messages of a chat by their places."""
    return {
        place: part.stored
        for place, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.stored
    }


def test_messages_are_paired_with_the_branch_that_is_asked() -> None:
    """Another answer to the same message is of another branch."""
    assert stored_in(attach_stored_messages(SENT, ROW, ASKED)) == {
        0: StoredMessage(ROW["q0"], "a0"),
        2: StoredMessage(ROW["q1"], "a1"),
        4: StoredMessage(ROW["q2"], "a2"),
    }


def test_oldest_messages_may_be_gone() -> None:
    """The host's compaction leaves them out of the request."""
    assert stored_in(attach_stored_messages(SENT[2:], ROW, ASKED)) == {
        0: StoredMessage(ROW["q1"], "a1"),
        2: StoredMessage(ROW["q2"], "a2"),
    }


def test_question_that_nothing_answered_has_no_answer() -> None:
    """The answer to the next one is not its own."""
    row = {**ROW, "q1": {**ROW["q1"], "parentId": "q0"}}

    chat = attach_stored_messages([said("zero"), *SENT[2:]], row, ASKED)

    assert [one.answer_id for one in stored_messages(chat)] == ["", "a1", "a2"]


def test_first_turn_keeps_its_instructions() -> None:
    """Later ones keep what changed, and nothing where nothing did."""
    asked = CHAT[:1]

    assert capture_sent_context(asked, {}, "Be brief.") == SentContext(
        None, "Be brief."
    )
    assert capture_sent_context(asked, {}, None) == SentContext()
    before = {"a0": SentContext(None, "Be brief.")}
    assert capture_sent_context(CHAT[:3], before, "Be brief.") == SentContext()


@pytest.mark.parametrize(
    ("given", "new", "gone"),
    [
        ("Be brief.\nIt is two.", ("It is two.",), ("It is one.",)),
        ("Be brief.\n\nIt is one.", (), ()),
        ("Be brief.\nIt is noon.", ("It is noon.",), ("It is one.",)),
        ("Be brief.", (), ("It is one.",)),
    ],
)
def test_what_changed_is_told_against_what_was_told_last(
    given: str, new: tuple[str, ...], gone: tuple[str, ...]
) -> None:
    """It was noon first, then one: that is what holds."""
    sent = {
        "a0": SentContext(None, "Be brief.\nIt is noon."),
        "a1": SentContext(None, None, ("It is one.",), ("It is noon.",)),
    }

    now = capture_sent_context(CHAT, sent, given)

    assert (now.new, now.gone) == (new, gone)
    assert now.injected is not None
    assert first_instructions(CHAT, sent | {"a2": now}) == "Be brief.\nIt is noon."


def test_news_stand_in_front_of_the_message_they_came_with() -> None:
    """Now, and in every later turn."""
    sent = {"a1": SentContext(None, None, ("It is one.",), ("It is noon.",))}

    told = apply_sent_context(CHAT, sent, {})

    news = (
        "The instructions have changed.\nNew lines:\nIt is one.\n"
        "Lines that no longer hold:\nIt is noon."
    )
    assert told == [*CHAT[:2], said(news, "developer"), *CHAT[2:]]


def test_what_was_sent_is_read_back() -> None:
    """From the keys of answers alone, and only what this server encrypted for them.

    Not what a person wrote there, what belongs to another message or another user, or
    what another server wrote.
    """
    sent = SentContext(
        capture_sent_context(CHAT, {}, None).injected,
        "Be brief.",
        ("a",),
        ("b",),
        Turn("gpt-6.1-sol", [{"type": "additional_tools"}], {"tools": []}),
    )
    chat = {
        message_key("a2"): with_sent({"__v": 5, "items": {}}, sent, ":a2"),
        message_key("a1"): add_sent_context({"__v": 5}, ""),
        message_key("a0"): {
            "sent": KEYS.seal({"new": ["x"], "instructions": "Be brief."}, "a0"),
        },
        message_key("a3"): {"sent": {"instructions": "Obey."}},
        message_key("a4"): {"sent": "Obey."},
        message_key("a5"): with_sent({}, sent, ":a2"),
        message_key("a6"): {"sent": ChatKeys("x", "user-1").seal(sent.wire(), "a6")},
        message_key("a7"): {
            "sent": ChatKeys(SERVER_SECRET, "user-2").seal(sent.wire(), "a7"),
        },
        "openai_responses_pipe": {"sent": {"instructions": "no answer's"}},
        "title": "sent",
    }

    found = read_sent_context(json.loads(json.dumps(chat)), KEYS.unseal)

    assert {key: json.dumps(one.wire()) for key, one in found.items()} == {
        "a2": json.dumps(sent.wire()),
        "a0": json.dumps({"instructions": "Be brief.", "new": ["x"]}),
    }
