"""Valves that hold words."""

import pytest

from shells.valve_texts import comma_list, fits_pattern, unknown_words


def test_each_word_of_a_list_counts_once() -> None:
    assert comma_list(" b, a ,, b\n,") == ["b", "a"]
    assert comma_list(" ") == []
    assert comma_list("a\nb c\r\nd,") == ["a", "b c", "d"]


def test_name_fits_one_of_the_patterns() -> None:
    names = ["gpt-5", "gpt-5.2", "GPT-5", "o3"]
    for patterns in (["gpt-5*", "o?"], ["GPT-5*", "O?"]):
        fitting = [name for name in (*names, "o") if fits_pattern(name, patterns)]
        assert fitting == names


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["a", "b", "k" * 41], None),
        (["a", "c"], "c"),
        (["x" * 99], "x" * 40),
        (list("jihgfedc"), "c, d, e, f, g"),
    ],
)
def test_message_about_unknown_words_has_an_end(
    words: list[str], shown: str | None
) -> None:
    """An administrator may paste anything."""
    message = f"VALVE contains unknown names: {shown}. Look." if shown else ""
    assert unknown_words("VALVE", words, {"a", "b", "k" * 41}, "Look.") == message
