"""What people read of texts that strangers wrote."""

import json
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from measures.work_count import count_work
from owui_chat.wording import as_plain_markdown, value_with_escapes, with_escapes

HEART = "\N{HEAVY BLACK HEART}"
EMOJI = "\N{VARIATION SELECTOR-16}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("pay \u202e001$", "pay \\u202e001$"),  # the line goes on from right to left
        ("\u2066a\u2069", "\\u2066a\\u2069"),
        ("pass\u200bword", "pass\\u200bword"),
        ("\ufeffa\u200d\u00adb", "\\ufeffa\\u200d\\u00adb"),
        ("hi\U000e0041\U000e007f", "hi\\udb40\\udc41\\udb40\\udc7f"),  # tags
        ("a\u3164b\u115fc", "a\\u3164b\\u115fc"),  # letters of Hangul that are empty
        ("a\u034fb\u2800c", "a\\u034fb\\u2800c"),
        ("a\ufe00b\ufe0e\U000e0100", "a\\ufe00b\\ufe0e\\udb40\\udd00"),
        ("one\rtwo\x1b[2J\x7f", "one\\rtwo\\u001b[2J\\u007f"),
        ("a\u2028b\u00a0c", "a\\u2028b\\u00a0c"),
        ("\ud800", "\\ud800"),
        ("\U0001d159", "\\ud834\\udd59"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, shown: str) -> None:
    assert with_escapes(text) == shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a_b_c.txt", "a_b_c.txt"),
        ("__init__.py", r"\_\_init\_\_.py"),
        ("_draft_.txt", r"\_draft\_.txt"),
        ("*[a](b)`<i>\\.txt", r"\*&#91;a&#93;(b)\`\<i\>&#92;.txt"),
        ("$x$ {{HTML_FILE_ID_1}}", "&#36;x&#36; &#123;&#123;HTML_FILE_ID_1}}"),
        ("a\u202e.txt", "a&#92;u202e.txt"),
    ],
)
def test_name_is_shown_as_it_is_where_markdown_is_drawn(name: str, shown: str) -> None:
    assert as_plain_markdown(name) == shown


@pytest.mark.parametrize(
    "text", ["", "Zürich, 東京 and 🚀", "עברית", f"I {HEART}{EMOJI} it", "e\u0301"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    """Also that of languages that are written from right to left."""
    assert with_escapes(text) == text


def test_only_one_selector_after_a_symbol_is_ordinary() -> None:
    """Several of them, or one after a letter, can hold a message."""
    assert with_escapes(f"{HEART}{EMOJI}{EMOJI}") == f"{HEART}{EMOJI}\\ufe0f"
    assert with_escapes(f"a{EMOJI}") == "a\\ufe0f"


@given(st.text())
def test_all_that_is_shown_can_be_seen(text: str) -> None:
    shown = with_escapes(text)
    assert shown.isprintable()
    assert with_escapes(shown) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"\u200ba": ["b\u202e", {"c": "d\u200d"}]}, None),
        ({"script": "one\n\ttwo"}, {"script": "one\n\ttwo"}),
        ({"n": 1, "x": None, "y": True}, {"n": 1, "x": None, "y": True}),
        # A page rounds what is larger: to ...992 and ...000.
        ([2**53 - 1, 1 - 2**53, 1.5], [2**53 - 1, 1 - 2**53, 1.5]),
        ([2**53 + 1, -(2**53) - 1], ["9007199254740993", "-9007199254740993"]),
        ([float("inf"), float("-inf"), float("nan")], ["inf", "-inf", "nan"]),
        ({"to": 12345678901234567890}, {"to": "12345678901234567890"}),
        ({"a\u200b": 1, "a\\u200b": 2}, {"a\\u200b": 1, "a\\u200b'": 2}),
    ],
)
def test_values_have_escapes_at_every_depth(value: Any, shown: Any) -> None:
    """A name that is written like an escape hides no other."""
    escaped = value_with_escapes(value)

    if shown is None:
        assert json.dumps(escaped, ensure_ascii=False).isprintable()
        shown = {"\\u200ba": ["b\\u202e", {"c": "d\\u200d"}]}
    assert escaped == shown


def test_names_that_look_alike_are_numbered_in_linear_time() -> None:
    """2,048 spellings of one name: each has a mark of its own, and a short one."""
    spellings = product(("\u200b", "\\u200b"), repeat=11)
    value = {"".join(letters): index for index, letters in enumerate(spellings)}
    alike = "\\u200b" * 11

    shown = value_with_escapes({alike + "'2": "own", **value})

    assert list(shown.values()) == ["own", *range(2048)]
    assert [*shown][:4] == [alike + "'2", alike, alike + "'", alike + "'3"]
    assert max(map(len, shown)) <= len(alike) + len("'2049")


def test_characters_that_nobody_sees_are_looked_up_once() -> None:
    """Four million of them in a call to approve held up all others for two seconds."""
    hidden = "a\u200b\n\ufe0f" * 100_000

    assert count_work(lambda: value_with_escapes(hidden)) < 100
    assert value_with_escapes(hidden) == "a\\u200b\n\\ufe0f" * 100_000
