"""What was sent, reconciled with what is asked."""

import json
from base64 import b64encode

import pytest

from chats.parts import input_message
from openai_responses.json_input import JsonBudget
from openai_responses.requests.turns import Turn
from owui_chat.input.prefix import (
    SAME_CONTEXT,
    SentContext,
    add_sent_context,
    apply_sent_context,
    change_instructions,
    change_message,
    drop_repeated_context,
    find_injected_context,
    model_turns,
    read_sent_context,
    sent_instructions,
)
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    StoredMessage,
    UserMessage,
    attach_stored_messages,
    stored_messages,
)
from owui_chat.storage.records import message_key, text_digest
from owui_manifold.store.keys import ChatKeys
from stand_in.host import SERVER_SECRET
from stand_in.signing import KEYS, with_sent

ROW = {
    "q0": {"role": "user", "content": "zero"},
    "a0": {"role": "assistant", "content": "yes", "parentId": "q0"},
    "a0-too": {"role": "assistant", "content": "no", "parentId": "q0"},
    "q1": {"role": "user", "content": "one", "parentId": "a0"},
    "a1": {"role": "assistant", "content": "well", "parentId": "q1"},
    "q2": {"role": "user", "content": "two", "parentId": "a1"},
}
ASKED = {"user_message_id": "q2", "message_id": "a2"}


SENT: list[ChatPart] = [
    input_message("zero"),
    AssistantText("yes"),
    input_message("one"),
    AssistantText("well"),
    input_message("<c/>\ntwo"),
]
CHAT = attach_stored_messages(SENT, ROW, ASKED)


def stored_in(parts: list[ChatPart]) -> dict[int, StoredMessage]:
    """The stored messages of a chat by their places."""
    return {
        index: part.stored
        for index, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.stored
    }


@pytest.mark.parametrize("gone", [0, 2], ids=["whole chat", "compacted by the host"])
def test_messages_are_paired_with_the_branch_that_is_asked(gone: int) -> None:
    """Another answer to the same message is of another branch."""
    paired = {
        0: StoredMessage(ROW["q0"], "a0"),
        2: StoredMessage(ROW["q1"], "a1"),
        4: StoredMessage(ROW["q2"], "a2"),
    }
    left = {index - gone: stored for index, stored in paired.items() if index >= gone}

    assert stored_in(attach_stored_messages(SENT[gone:], ROW, ASKED)) == left


def test_question_that_nothing_answered_has_no_answer() -> None:
    row = {**ROW, "q1": {**ROW["q1"], "parentId": "q0"}}

    chat = attach_stored_messages([input_message("zero"), *SENT[2:]], row, ASKED)

    assert [message.answer_id for message in stored_messages(chat)] == ["", "a1", "a2"]


MODEL = "guarded"
WHOLE = "Be brief.\nIt is noon."


def whole(instructions: str, model: str = MODEL) -> SentContext:
    return SentContext(model=model, instructions=instructions)


def changed(new: str = "", gone: str = "", index: int = 1) -> SentContext:
    """What a later run stores of one line."""
    lines = ((index, new),) if new else ()
    return SentContext(model=MODEL, new=lines, gone=(gone,) if gone else ())


NOON_TO_ONE = changed("It is one.", "It is noon.")
SENT_BEFORE = {"a0": whole(WHOLE), "a1": NOON_TO_ONE}


@pytest.mark.parametrize("first", ["Be brief.", ""])
def test_first_turn_keeps_its_instructions(first: str) -> None:
    assert change_instructions(None, first, MODEL) == whole(first)
    instructions = sent_instructions(CHAT, {"a0": whole(first)}, MODEL)
    assert change_instructions(instructions, first, MODEL) == SentContext()


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ("Be brief.\nIt is two.", changed("It is two.", "It is one.")),
        ("Be brief.\n \nIt is one.", SentContext()),
        ("Be brief.\nIt is noon.", changed("It is noon.", "It is one.")),
        ("Be brief.", changed(gone="It is one.")),
        ("Be kind.\nBe brief.\nIt is one.", changed("Be kind.", index=0)),
        ("It is one.\nBe brief.", whole("It is one.\nBe brief.")),
        ("Be brief.\nIt is one.\nBe brief.", None),
        ("Be brief.\nIt is one.\nNo\nIt is one.", None),
        ("", None),
    ],
)
def test_change_is_relative_to_the_instructions_last_sent(
    given: str, change: SentContext | None
) -> None:
    """It was noon first, then one: that is what holds.

    Lines that moved, or that are there twice, are told with all others.
    """
    instructions = sent_instructions(CHAT, SENT_BEFORE, MODEL)

    now = change_instructions(instructions, given, MODEL)

    if given:
        assert now == (change or whole(given))
    later = sent_instructions(CHAT, SENT_BEFORE | {"a2": now}, MODEL)
    assert later
    assert later.first == WHOLE
    assert later.lines == [line for line in given.splitlines() if line.strip()]
    assert change_instructions(later, given, MODEL) == SentContext()


def test_a_line_that_was_there_before_it_was_the_administrators_is_told() -> None:
    """A user can guess a rule, and write it into their own prompt as an example."""
    before = "Be brief.\nIgnore this example:\nNever say no."
    instructions = sent_instructions(CHAT, {"a0": whole(before)}, MODEL)
    now = "Be brief.\nNever say no.\nIgnore this example:"

    assert change_instructions(instructions, now, MODEL) == whole(now)


def test_changes_stand_in_front_of_the_message_they_came_with() -> None:
    instructions = sent_instructions(
        CHAT, SENT_BEFORE | {"a2": whole("Be kind.")}, MODEL
    )
    assert instructions

    items = {"a1": [input_message("Tools.", role="developer").item]}
    prefix = apply_sent_context(CHAT, {}, instructions.changes, items)

    change = (
        "The instructions have changed.\nNew lines:\nIt is one.\n"
        "Lines that no longer hold:\nIt is noon."
    )
    now = "The instructions have changed.\nThey are now:\nBe kind."
    assert prefix == [
        *CHAT[:2],
        input_message(change, role="developer"),
        input_message("Tools.", role="developer"),
        *CHAT[2:4],
        input_message(now, role="developer"),
        *CHAT[4:],
    ]


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"a0": whole("Obey me.", "base"), "a1": SentContext(model="base", new=())},
        {"a0": SentContext(instructions="Obey me.")},
        {"a1": NOON_TO_ONE},
        {"a0-too": whole("Obey me.")},
    ],
    ids=["nothing", "another model's", "nobody's", "changes alone", "another branch's"],
)
def test_instructions_sent_to_another_model_do_not_count(
    sent: dict[str, SentContext],
) -> None:
    """So it is told the present instructions, from the first line on."""
    assert sent_instructions(CHAT, sent, MODEL) is None
    own = sent_instructions(CHAT, {"a0": whole(WHOLE)}, MODEL)
    elsewhere = NOON_TO_ONE._replace(model="base")
    later = {"a0": whole(WHOLE), "a1": elsewhere}
    assert sent_instructions(CHAT, later, MODEL) == own


def test_a_change_in_front_of_a_compaction_is_told_again() -> None:
    """The API replaces it, and what stays is what comes first."""
    instructions = sent_instructions(CHAT, SENT_BEFORE, MODEL, {"a1"})
    assert instructions
    assert instructions.lines == WHOLE.splitlines()

    now = change_instructions(instructions, "Be brief.\nIt is one.", MODEL)

    assert now == NOON_TO_ONE

    sent = {"a0": whole(""), "a1": changed("It is one.", index=0)}
    instructions = sent_instructions(CHAT, sent, MODEL, {"a1"})
    assert instructions
    assert instructions.lines == []


def test_change_is_stated_in_a_message_of_its_own() -> None:
    message = change_message(changed(gone="It is noon."))

    words = "The instructions have changed.\nLines that no longer hold:\nIt is noon."
    assert message == input_message(words, role="developer").item
    assert change_message(SentContext(model=MODEL)) is None


BASE = Turn("sol", base={"tools": []})
LATER = Turn("sol", [{"type": "additional_tools"}])


@pytest.mark.parametrize(
    ("turns", "read"),
    [
        ({"a0": BASE, "a1": LATER}, {"a0": BASE, "a1": LATER}),
        ({"a0": BASE, "a1": BASE}, {"a1": BASE}),
        ({"a0": BASE, "a2": LATER}, {"a0": BASE, "a2": LATER}),
        ({"a0": LATER, "a1": LATER}, {}),
        ({"a0": BASE._replace(model="luna"), "a1": LATER}, {}),
        ({"a0": BASE, "a1": LATER._replace(model="luna")}, {"a0": BASE}),
        ({"a0-too": BASE}, {}),
        ({}, {}),
    ],
    ids=[
        "from the first",
        "begun anew",
        "a turn that changed nothing",
        "the first is gone",
        "the first is another model's",
        "another model between",
        "another branch",
        "nothing",
    ],
)
def test_turns_of_a_model_count_from_where_they_began(
    turns: dict[str, Turn], read: dict[str, Turn]
) -> None:
    """What a model was not asked for must not be in front of its questions."""
    sent = {name: SentContext(turn=turn) for name, turn in turns.items()}

    assert model_turns(CHAT, sent, "sol") == read


class EarlierKeys(ChatKeys):
    """As they were: what they encrypted opened in each chat of its user."""

    def _scope(self, message_id: str) -> bytes:
        return json.dumps([self._user_id, message_id]).encode()


def test_sent_context_survives_storage() -> None:
    """From the keys of answers alone, and only what this server encrypted for them.

    Not what a person wrote there, what belongs to another message, another chat or
    another user, what another server wrote, or an earlier version for any chat.
    """
    sent = SentContext(
        find_injected_context(CHAT),
        MODEL,
        "Be brief.",
        ((1, "a"),),
        ("b",),
        Turn("gpt-6.1-sol", [{"type": "additional_tools"}], {"tools": []}),
    )
    wire = sent.wire()
    other_keys = {
        "a6": ChatKeys("x", "user-1", "chat-1"),
        "a7": ChatKeys(SERVER_SECRET, "user-2", "chat-1"),
        "a8": ChatKeys(SERVER_SECRET, "user-1", "chat-2"),
        "a9": EarlierKeys(SERVER_SECRET, "user-1", "chat-1"),
    }
    chat = {
        message_key("a2"): with_sent({"__v": 5, "items": {}}, sent, ":a2"),
        message_key("a1"): add_sent_context({"__v": 5}, ""),
        message_key("a0"): {
            "sent": KEYS.seal({"gone": ["x"], "instructions": "Be brief."}, "a0"),
        },
        message_key("a3"): {"sent": {"instructions": "Obey."}},
        message_key("a4"): {"sent": "Obey."},
        message_key("a5"): with_sent({}, sent, ":a2"),
        **{message_key(k): {"sent": v.seal(wire, k)} for k, v in other_keys.items()},
        # In an answer's own output the key is that of its record.
        message_key("kept_1"): {**with_sent({}, sent, ":b0"), "message_id": "b0"},
        "openai_responses_pipe": {"sent": {"instructions": "no answer's"}},
        "title": "sent",
    }

    contexts = read_sent_context(
        json.loads(json.dumps(chat)), KEYS.unseal, JsonBudget(9999)
    )

    assert {key: json.dumps(context) for key, context in contexts.items()} == {
        "a2": json.dumps(sent),
        "a0": json.dumps(SentContext(instructions="Be brief.", gone=("x",))),
        "b0": json.dumps(sent),
    }


def test_turn_that_an_earlier_version_stored_is_read() -> None:
    """Up to 1.7.0 it was a text among the other fields."""
    turn = Turn("gpt-6.1-sol", base={"tools": []})
    wire = {"model": "a", "turn": b64encode(turn.packed()).decode()}
    chat = {message_key("a1"): {"sent": KEYS.seal(wire, "a1")}}

    contexts = read_sent_context(chat, KEYS.unseal, JsonBudget(9999))

    assert json.dumps(contexts["a1"]) == json.dumps(SentContext(model="a", turn=turn))


def test_stored_turns_are_read_within_their_unpacked_budget() -> None:
    """The newest ones; what else an answer stored is read all the same."""
    turn = Turn("m", base={"tools": [{"description": "x" * 1000}]})
    sent = SentContext(model="a", instructions="Be brief.", turn=turn)
    chat = {message_key(name): with_sent({}, sent, f":{name}") for name in ("a1", "a2")}

    read = read_sent_context(chat, KEYS.unseal, JsonBudget(1500))

    assert {name: bool(context.turn) for name, context in read.items()} == {
        "a2": True,
        "a1": False,
    }
    assert read["a1"].instructions == "Be brief."


CONTEXT = "<c>" + "The clock is wound at noon. " * 40 + "</c>\n"
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,AA=="}


def user_message(*texts: str, pictures: int = 0) -> UserMessage:
    return input_message(*texts, *[PICTURE] * pictures)


def injected(asked: UserMessage, words: str) -> SentContext:
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
        (f"{CONTEXT}rain?", f"{CONTEXT}snow?", "b", True),
        (f"{CONTEXT}rain?", f"{CONTEXT}<f/>\nsnow?", "", False),
        (f"{CONTEXT}another's words", f"{CONTEXT}snow?", "", False),
        ("c" * 499 + "rain?", "c" * 499 + "snow?", "", False),
        ("c" * 500 + "rain?", "c" * 500 + "snow?", "", True),
    ],
    ids=[
        *("same", "more around it", "compacted", "compacted by a replaced answer"),
        *("new file", "edited", "short", "just long enough"),
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
