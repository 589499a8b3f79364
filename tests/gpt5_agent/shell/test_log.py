"""Lines of the log: one each, after an id, without secrets."""

import logging

import pytest

from gpt5_agent.shell.log import AgentLog


def test_a_line_stands_behind_its_id(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    AgentLog("ID1").note("ROUND 1\nsecond line")
    AgentLog("ID2").warn("went \x1b[31mwrong")

    assert caplog.messages == ["ID1 ROUND 1\\nsecond line", "ID2 went \\x1b[31mwrong"]
    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]


def test_no_secret_is_written(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)

    log = AgentLog("ID")
    log.hide("hidden-words")
    log.hide("more-words")
    log.note("hidden-words, more-words and Bearer sk-abcdefgh")

    assert caplog.messages == ["ID [redacted], [redacted] and Bearer [redacted]"]
