"""Blocks of earlier writers are taken out, what a model wrote stays."""

import pytest

from chats.parts import input_message
from openai_responses.items import text_message
from owui_chat.input.history import build_input
from owui_chat.messages import (
    AssistantText,
    ChatPart,
    UserMessage,
    attach_stored_messages,
    mark_old_answers,
    parse_messages,
)

OURS = [
    '<details type="status" done="false">\n<summary>Working</summary>\n\n---</details>',
    '<details type="reasoning" done="true" duration="3">\n> Rain?\n</details>',
    '<details type="tool_calls" done="true" id="c" name="f">\n</details>',
    '<details type="code_interpreter" done="true">\nprint(1)\n</details>',
    '<details type="function_openai_responses.reasoning" done="true">\nx\n</details>',
]


def sent(text: str, *, is_old: bool = True) -> str:
    """What a model is sent of the text of an old answer, or of another one."""
    [item] = build_input([AssistantText(text, may_have_blocks=is_old)], {}, None)
    return str(item["content"][0]["text"])


@pytest.mark.parametrize("block", OURS)
def test_block_of_an_earlier_writer_is_removed(block: str) -> None:
    text = f"{block}\nRain.\n\n{block}\nSnow."

    assert sent(text) == "Rain.\n\nSnow."
    assert sent(text, is_old=False) == text


@pytest.mark.parametrize(
    "text",
    [
        "<details><summary>More</summary>It rains.</details>",
        '<details open type="reasoning">It rains.</details>',
        '<details type="plot">It rains.</details>',
        '<details type="status" done="false">It rains.',
        "no </details> at all",
    ],
)
def test_text_that_resembles_a_block_is_kept(text: str) -> None:
    assert sent(text) == text


@pytest.mark.parametrize(
    "start", ['<details type="status">', '<details type="status" ']
)
def test_hostile_text_is_read_in_one_pass(start: str) -> None:
    """A quadratic pattern would take hours for 2 MB of blocks that never end."""
    text = f"{start * 100_000}<b></details>{start * 100_000}"

    assert sent(text).rstrip().endswith(start.strip())


ROWS = {"a1": {"role": "assistant", "content": OURS[1]}}


def answered(text: str, **row: object) -> list[ChatPart]:
    """A chat with one answer, as the host gives it and as its row holds it."""
    rows: dict[str, dict[str, object]] = {
        "q1": {"role": "user", "content": "Rain?"},
        "a1": {"role": "assistant", "content": text, "parentId": "q1", **row},
        "q2": {"role": "user", "content": "And now?", "parentId": "a1"},
    }
    said: dict[str, object] = {"role": "assistant", "content": text}
    messages: list[dict[str, object]] = [rows["q1"], said, rows["q2"]]
    _, parts = parse_messages(messages)
    ids = {"user_message_id": "q2", "message_id": "a2"}
    return mark_old_answers(attach_stored_messages(parts, rows, ids), rows)


@pytest.mark.parametrize(
    ("row", "is_old"),
    [
        ({}, True),
        ({"output": []}, True),
        ({"output": [{"type": "message"}]}, False),
    ],
)
def test_an_answer_with_output_has_no_blocks(
    row: dict[str, object], is_old: bool
) -> None:
    """Open WebUI gives back the text of the items: whatever it holds, a model wrote."""
    _, answer, _ = answered(OURS[1], **row)

    assert answer == AssistantText(OURS[1], may_have_blocks=is_old)


def test_calls_of_an_old_answer_stay_as_they_are() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    asked, said, again = answered(OURS[1])
    _, [*calls] = parse_messages(
        [
            {"role": "assistant", "content": OURS[1], "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "No."},
        ]
    )

    marked = mark_old_answers([asked, *calls, again], ROWS)

    assert marked == [asked, said, *calls[1:], again]


def test_an_old_answer_is_old_after_an_instruction_of_a_filter() -> None:
    """Some filters put one after each question."""
    asked, answer, again = answered(OURS[1])
    told = UserMessage(text_message("developer", "Be brief."))

    marked = mark_old_answers([asked, told, AssistantText(OURS[1]), again], ROWS)

    assert marked == [asked, told, answer, again]


def test_without_a_row_nothing_is_known_to_be_old() -> None:
    chat: list[ChatPart] = [input_message("Rain?"), AssistantText(OURS[1])]

    assert mark_old_answers(attach_stored_messages(chat, {}, {}), {}) == chat
