"""What the replay of recordings reads in the pipe's chunks (scripts/recorded)."""

from typing import Any

import pytest

from recorded.shown import (
    expected_answer,
    find_doubled_text,
    read_native,
    read_plain,
)

MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "Hi there"}]}
COMMENTARY = {
    "type": "message",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I look."}],
}
THOUGHT = {
    "type": "reasoning",
    "summary": [
        {"type": "summary_text", "text": "One."},
        {"type": "summary_text", "text": "Two."},
    ],
}


def delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "output_index": 0, "delta": text}


def done(item: dict[str, Any], index: int = 0) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": index, "item": item}


@pytest.mark.parametrize(
    ("deltas", "is_doubled"),
    [
        (["Hi ", "there"], False),
        (["Hi ", "there", "Hi there"], True),
        (["Hi "], True),
        (["Hi there[1]"], False),
        (
            ["Hi there[1]", '\n\n[1]: https://a.example "A"\n[2]: https://b.example'],
            False,
        ),
    ],
)
def test_doubled_text_is_seen(deltas: list[str], is_doubled: bool) -> None:
    """The deltas have to be the text of the item, but for the numbers of sources."""
    chunks = [*map(delta, deltas), done(MESSAGE)]

    assert bool(find_doubled_text(chunks)) == is_doubled


def test_commentary_and_joined_summaries_are_no_difference() -> None:
    """A page shows commentary as a quotation, and summaries as one text."""
    joined = {**THOUGHT, "summary": [{"type": "summary_text", "text": "One.\n\nTwo."}]}
    quoted = {
        "type": "openai_responses:remark",
        "content": [{"type": "output_text", "text": "> I look."}],
    }
    chunks = [done(joined), done(quoted, 1), done(MESSAGE, 2)]

    expected = expected_answer([THOUGHT, COMMENTARY, MESSAGE], "")
    assert read_native(chunks) == expected


def test_an_early_end_is_a_failure() -> None:
    """A plain client gets a reason of its own to finish, a page a last line.

    That of a good answer says how long it took.
    """
    chunks: list[dict[str, Any]] = [
        {"choices": [{"delta": {"content": "Hi"}, "finish_reason": None}]},
        {"choices": [{"delta": {}, "finish_reason": "length"}]},
    ]
    early = "The answer reached its length limit. (Error id: 81DWQADJWM)"
    good, failed = (
        {"event": {"type": "status", "data": {"description": text, "done": True}}}
        for text in ("Finished in 2 s", early)
    )

    assert read_plain(chunks).failure == "length"
    assert read_native([done(MESSAGE), good]).failure == ""
    assert read_native([done(MESSAGE), failed]).failure == early
