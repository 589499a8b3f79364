"""What the log says about settings that a caller may not have."""

import pytest

from openai_responses.recent_texts import RecentTexts
from shells.caller import MAY_SET_KEY, left_out_line
from shells.valve_texts import unknown_words


def test_each_setting_of_a_caller_is_logged_once() -> None:
    logged = RecentTexts(now=lambda: 0.0)
    left_out = {"metadata": "stored at OpenAI"}

    line = left_out_line("user u-1", left_out, logged.first_time)
    again = left_out_line("user u-1", left_out, logged.first_time)
    more = {**left_out, "tools web_search": ""}
    other_setting = left_out_line("user u-1", more, logged.first_time)
    other_caller = left_out_line("user u-2", left_out, logged.first_time)

    what_to_do = "(caller_may_set in EXPERT_JSON says what a request may set)"
    assert line == (
        f"left out of requests of user u-1: metadata (stored at OpenAI) {what_to_do}"
    )
    assert again == ""
    assert other_setting == (
        f"left out of requests of user u-1: tools web_search {what_to_do}"
    )
    assert other_caller.startswith("left out of requests of user u-2: metadata")


def test_line_has_an_end_whatever_a_caller_sends() -> None:
    left_out = {f"{number:02}{'x' * 500}": "unknown" for number in range(99)}

    line = left_out_line("user u-1", left_out, lambda _: True, "")

    assert line.count("(unknown)") == 50
    assert "49" + "x" * 58 + " (unknown)" in line
    assert len(line) < 4000


LONG_WORD = "w" * 41
UNKNOWN = "EXPERT_JSON, caller_may_set, contains unknown names"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tools", LONG_WORD], ""),
        ([], ""),
        (["tols", "tools", "all"], f"{UNKNOWN}: all, tols. Look."),
        (["x" * 99], f"{UNKNOWN}: {'x' * 40}. Look."),
    ],
)
def test_unknown_permissions_are_reported(words: list[str], message: str) -> None:
    """A misspelled word opens nothing."""
    known = {"tools", LONG_WORD}
    assert unknown_words(MAY_SET_KEY, words, known, "Look.") == message
