"""The log of one answer."""

import logging

from shells.answer_log import LOG_LEVELS


def test_levels_have_the_numbers_of_the_library() -> None:
    names = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")

    assert {name: getattr(logging, name) for name in names} == LOG_LEVELS
