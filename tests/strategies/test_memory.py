"""What is left of a chat."""

from typing import Any

import pytest

from openai_responses.errors import InvalidRequest
from strategies.guide import Guide
from strategies.memory import (
    apply_memory_policy,
    build_memory_items,
    find_turn_starts,
)

Json = dict[str, Any]
SYSTEM = {"role": "system", "content": "Be brief."}


def turn(number: int) -> list[Json]:
    """A question, a call, its output, an answer."""
    call = {"id": f"call_{number}", "function": {"name": "f", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"question {number}"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": "rain"},
        {"role": "assistant", "content": f"answer {number}"},
    ]


def chat(turns: int) -> list[Json]:
    """A chat of so many turns, the last of them open."""
    whole = [message for number in range(turns) for message in turn(number)]
    return [SYSTEM, *whole[: len(whole) - 3]]


@pytest.mark.parametrize("policy", ["", "all", " all "])
def test_everything_is_remembered_unless_a_policy_says_otherwise(policy: str) -> None:
    assert apply_memory_policy(chat(40), policy) == (chat(40), "")


def test_window_drops_whole_turns_and_says_what_that_costs() -> None:
    """The first message after the system's is one of the user."""
    left, note = apply_memory_policy(chat(5), "sliding-window:2")

    assert left == [SYSTEM, *chat(5)[1 + 3 * 4 :]]
    assert "3 earlier turns were left out" in note
    assert "cached prompt" in note
    assert "reasoning" in note


def test_instructions_of_a_developer_stay_in_front_of_a_window() -> None:
    """Newer clients write them so; a greeting of the assistant goes."""
    rules = {"role": "developer", "content": "Never name a price."}
    greeting = {"role": "assistant", "content": "Hello."}

    asked: list[Any] = [rules, None, greeting, *chat(3)[1:]]  # of nobody: refused later
    asked.insert(4, {"role": "developer", "content": "What the first turn searched."})
    left, note = apply_memory_policy(asked, "sliding-window:1")

    assert left == [rules, chat(3)[-1]]
    assert note.startswith("The agent remembers 1 turn, so 2 earlier turns were")


def test_wish_how_to_answer_again_is_no_turn() -> None:
    """The turn that it is about stays with it."""
    wished = [*chat(1), {"role": "assistant", "content": "rain"}, *chat(1)[1:]]

    assert apply_memory_policy(wished, "sliding-window:1", has_wish=True)[1] == ""
    assert apply_memory_policy(chat(1), "sliding-window:1", has_wish=True)[1] == ""
    longer = [*chat(1), *wished[1:]]
    assert apply_memory_policy(longer, "sliding-window:1", has_wish=True)[0] == wished


def test_window_that_is_not_full_drops_nothing() -> None:
    """A window without a number has ten turns."""
    assert apply_memory_policy(chat(10), "sliding-window") == (chat(10), "")

    over, note = apply_memory_policy(chat(10 + 1), "sliding-window")
    assert "1 earlier turn was left out" in note
    assert len(over) == len(chat(10))


def test_pictures_of_a_tool_begin_no_turn() -> None:
    """The host tells of them in a message of the user."""
    text = "Here are the images from the tool results above. Please analyze them."
    picture = {"type": "image_url", "image_url": {"url": "data:,"}}
    pictures = {"role": "user", "content": [{"type": "text", "text": text}, picture]}
    asked, called, returned, answered = turn(0)
    for told in (pictures, {"role": "user", "content": text}):
        messages = [asked, called, returned, told, answered, told]
        assert find_turn_starts(messages) == [0, 5]


def test_own_message_of_the_user_begins_a_turn_after_a_tool() -> None:
    """A chat can stop after a tool; a text, a list and nothing may follow."""
    for content in ("Go on.", [{"type": "text", "text": "Go on."}], [], None):
        asked, called, returned, _ = turn(0)
        messages = [asked, called, returned, {"role": "user", "content": content}]

        assert find_turn_starts(messages) == [0, 3]


def test_memories_are_one_message_of_the_administrator() -> None:
    guide = Guide(system_prompt="", initial_memories=(" Ann sails. ", " ", "Bo."))
    [item] = build_memory_items(guide)

    text = "<memories>\n- Ann sails.\n- Bo.\n</memories>"
    assert item == {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": text}],
    }
    blank = guide.model_copy(update={"initial_memories": (" ",)})
    assert build_memory_items(blank) == []


def test_vector_db_is_refused_by_a_sentence() -> None:
    with pytest.raises(
        InvalidRequest, match=r"vector-db.*choose sliding-window"
    ) as refused:
        apply_memory_policy(chat(1), "vector-db")
    assert refused.value.remedy == "setup"


@pytest.mark.parametrize("policy", ["sliding-window:0", "sliding-window:x", "forget"])
def test_unknown_policy_is_refused(policy: str) -> None:
    with pytest.raises(
        InvalidRequest, match="names an unknown memory policy"
    ) as refused:
        apply_memory_policy(chat(1), policy)
    assert refused.value.remedy == "setup"
