"""Markers of every writer are found in the exact bytes that it wrote."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from chats.earlier_writers import zero_width
from owui_chat.storage.markers import (
    MarkedText,
    format_marker,
    split_at_markers,
    strip_markers,
)
from runs.sample import has_marker

ULID = "01JZ5S2Z8QK3V7N4M6T9R1W0XY"
ID16 = "7A8B9C0DEFGHJKMN"


WRITERS = {
    "ours": (format_marker("reasoning", ULID), ULID),
    "ours, several items": (format_marker("items", ULID), ULID),
    "0.8.6, zero-width": (zero_width(ULID), ULID),
    "0.8.6, streamed": (zero_width(ULID) + "\n", ULID),
    "0.8.10, v1": (
        "\n\n[](openai_responses:v1:function_call:"
        f"{ULID}?model=openai_responses.gpt-5-thinking)\n\n",
        ULID,
    ),
    "v1, no query": (f"\n\n[](openai_responses:v1:function_call:{ULID})\n\n", ULID),
    "v1, two queries": (
        f"\n\n[](openai_responses:v1:reasoning:{ULID}?model=a b&phase=x)\n\n",
        ULID,
    ),
    "0.8.15, v2": (f"\n[openai_responses:v2:reasoning:{ID16}]: #\n", ID16),
    "1.0.0, with a model": (
        f"\n[openai_responses:v2:mcp_call:{ID16}?model=openai_responses.gpt-5%2B]: #\n",
        ID16,
    ),
    "dr, a phase": (f"\n[openai_responses:v2:dr_state:{ID16}?phase=done]: #", ID16),
    "query without =": (f"\n[openai_responses:v2:reasoning:{ID16}?model]: #\n", ID16),
    "lower-case id": (f"\n[openai_responses:v2:unknown:{ID16.lower()}]: #\n", ID16),
    "lower-case ULID": (f"\n[openai_responses:v2:items:{ULID.lower()}]: #\n", ULID),
    "white space before #": (f"\n[openai_responses:v2:items:{ULID}]:\t  #\n", ULID),
    "# lost": (f"\n[openai_responses:v2:items:{ULID}]:\n", ULID),
}
FOREIGN = [
    "[01JZ5S2Z8QK3V7N4M6T9]: #",
    "[P:final_answer]: #",
    "[openrouter:v1:reasoning:eyJhIjoxfQ==]: #",
]
PIECES = [
    *(written for written, _ in WRITERS.values()),
    *FOREIGN,
    *("[openai_responses:v2:", "]: #", "\u2060", "\u200b", "\u200c", "\n", " ", "?"),
]
hostile_texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5)).map("".join)


def pieces(text: str) -> list[MarkedText]:
    return list(split_at_markers(text))


def test_marker_is_a_line_between_blank_lines() -> None:
    """The exact bytes: Markdown renders them as nothing after any block."""
    expected = f"\n\n[openai_responses:v2:reasoning:{ULID}]: #\n\n"
    assert format_marker("reasoning", ULID) == expected


@pytest.mark.parametrize(("written", "ulid"), WRITERS.values(), ids=WRITERS)
def test_every_writer_is_read(written: str, ulid: str) -> None:
    """The id belongs to the text after it; the host strips white space at both ends.

    Earlier writers gave each item a marker of its own, so several may be in a row.
    """
    first, named = MarkedText("", "Text"), MarkedText(ulid, "Text")
    alone = MarkedText(ulid, "")

    assert pieces(f"Text{written}Text") == [first, named]
    assert strip_markers(f"Text{written}Text") == "Text\n\nText"
    assert pieces(written.strip(" \n")) == [alone]
    assert pieces(f"{written}Text".lstrip(" \n")) == [named]
    assert pieces(f"Text{written}".rstrip(" \n")) == [first, alone]
    assert pieces(f"{written}{written}Text") == [alone, named]


def test_zero_width_blocks_may_touch() -> None:
    """Several ids are several blocks, with nothing between them."""
    other = ULID[:-1] + "Z"
    assert pieces(f"{zero_width(ULID)}{zero_width(other)}\nHi") == [
        MarkedText(ULID, ""),
        MarkedText(other, "Hi"),
    ]


def test_windows_line_ends_are_read() -> None:
    """A chat that was exported and imported may have them."""
    text = f"A\r\n\r\n[openai_responses:v2:items:{ULID}]: #\r\n\r\nB"
    assert pieces(text) == [MarkedText("", "A"), MarkedText(ULID, "B")]


@pytest.mark.parametrize("line", FOREIGN)
def test_lines_of_another_pipe_are_taken_out(line: str) -> None:
    text = f"Before.\n\n{line}\n\nAfter."

    assert pieces(text) == [MarkedText("", "Before."), MarkedText("", "After.")]
    assert strip_markers(text) == "Before.\n\nAfter."


def test_line_of_another_pipe_beside_ours_goes_too() -> None:
    """After our marker it is a line of its own only once ours is gone."""
    text = f"[P:final_answer]: # [openai_responses:v2:items:{ULID}]: #"
    assert strip_markers(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  Nothing here.  \n",
        "[link]: # (a comment)",
        "[note]: #anchor",
        "A \u2060word\u2060 joiner",
        f"[openai_responses:v2:reasoning:{ULID}](http://127.0.0.1)",
        f"[openai_responses:v3:reasoning:{ULID}]: #",
        "[openai_responses:v2:reasoning:TOOSHORT]: #",
        f"[openai_responses:v2:a kind:{ULID}]: #",
        f"[openai_responses:v2:items:{ULID}?a\nb]: #",
        "see [P:final_answer]: # inline",
    ],
)
def test_text_without_markers_is_left_alone(text: str) -> None:
    """Its ends are the model's; they are trimmed only where it is split."""
    assert not has_marker(text)
    assert strip_markers(text) == text
    assert [piece.text for piece in pieces(text)] == [text]


def test_white_space_inside_a_text_stays() -> None:
    """Code is made of it."""
    text = f"{format_marker('reasoning', ULID)}a\n\n    b\t\n\nc"
    assert pieces(text) == [MarkedText(ULID, "a\n\n    b\t\n\nc")]


@given(hostile_texts)
def test_any_text_can_be_stripped_of_markers(text: str) -> None:
    """Splitting never fails, and what a person reads has no marker."""
    clean = strip_markers(text)

    assert not has_marker(clean)
    assert strip_markers(clean) == clean
    if not has_marker(text):
        assert clean == text


@given(st.lists(st.tuples(st.sampled_from(sorted(WRITERS)), st.text())), st.text())
def test_split_undoes_join(marked: list[tuple[str, str]], head: str) -> None:
    texts = [head, *(text for _, text in marked)]
    assume(not any("]:" in text or has_marker(text) for text in texts))
    joined = head + "".join(f"{WRITERS[name][0]}\n{text}" for name, text in marked)

    expected = [MarkedText(WRITERS[name][1], text.strip()) for name, text in marked]
    begun = [MarkedText("", head.strip())] if head.strip() or not marked else []
    assert pieces(joined) == begun + expected


def _hostile() -> Iterator[tuple[str, str]]:
    size = 200_000
    heads = {
        "open v2": "[openai_responses:v2:",
        "open query of v2": f"[openai_responses:v2:items:{ID16}?",
        "open query of v1": f"[](openai_responses:v1:items:{ULID}?",
        "open openrouter": "\n[openrouter:v1:",
        "ends": "]: #",
        "joiners": "\u2060",
        "open blocks": "\u2060" + "\u200b" * 207,
        "blank lines": "\n",
        "blanks": " \t",
        "kinds": "a",
        "markers": f"[openai_responses:v2:items:{ID16}]: #\n",
    }
    for name, head in heads.items():
        yield name, "]: # [openai_responses:v2:" + head * (size // len(head))
    line = "[0123456789ABCDEFGHIJ]: #\n"
    yield "lines one by one", line + f"\u3000{line}" * (size // len(line))


HOSTILE = dict(_hostile())


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_read_in_one_pass(name: str) -> None:
    """200 kB take milliseconds; a quadratic pattern took twenty seconds."""
    began = time.process_time()

    has_marker(HOSTILE[name])
    strip_markers(HOSTILE[name])

    assert time.process_time() - began < 2.0
