"""Blocks of earlier writers are taken out, what a model wrote stays."""

import pytest

from owui_chat.input.history import build_input
from owui_chat.messages import AssistantText

OURS = [
    '<details type="status" done="false">\n<summary>Working</summary>\n\n---</details>',
    '<details type="reasoning" done="true" duration="3">\n> Rain?\n</details>',
    '<details type="tool_calls" done="true" id="c" name="f">\n</details>',
    '<details type="code_interpreter" done="true">\nprint(1)\n</details>',
    '<details type="function_openai_responses.reasoning" done="true">\nx\n</details>',
]


def sent(text: str) -> str:
    """What a model is sent of the text of an answer."""
    [item] = build_input([AssistantText(text)], {}, None)
    return str(item["content"][0]["text"])


@pytest.mark.parametrize("block", OURS)
def test_block_of_an_earlier_writer_is_removed(block: str) -> None:
    """And nothing around it, however many there are."""
    text = f"{block}\nRain.\n\n{block}\nSnow."

    assert sent(text) == "Rain.\n\nSnow."


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
    """Also what only looks like a block."""
    assert sent(text) == text


@pytest.mark.parametrize(
    "start", ['<details type="status">', '<details type="status" ']
)
def test_hostile_text_is_read_in_one_pass(start: str) -> None:
    """A quadratic pattern would take hours for 2 MB of blocks that never end."""
    text = f"{start * 100_000}<b></details>{start * 100_000}"

    assert sent(text).rstrip().endswith(start.strip())
