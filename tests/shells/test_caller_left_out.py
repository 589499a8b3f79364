"""What the log says about settings that a caller may not have."""

from openai_responses.recent_texts import RecentTexts
from shells.answer_log import AnswerLog, LogLevel
from shells.caller import PERMISSION_ADVICE, ChatCaller, log_left_out


class LinesOfLog(AnswerLog):
    """A log that keeps its lines, each with its level."""

    def __init__(self) -> None:
        super().__init__("RUN1")
        self.lines: list[str] = []

    def _write(self, level: LogLevel, one_line: str) -> None:
        self.lines.append(f"{level} {one_line}")


def test_each_setting_of_a_caller_is_logged_once() -> None:
    logged = RecentTexts(now=lambda: 0.0)
    left_out = {"metadata": "stored at OpenAI"}
    log = LinesOfLog()

    log_left_out(log, ChatCaller(user_id="u-1"), left_out, logged, PERMISSION_ADVICE)
    log_left_out(log, ChatCaller(user_id="u-1"), left_out, logged, PERMISSION_ADVICE)
    more = {**left_out, "tools web_search": ""}
    log_left_out(log, ChatCaller(user_id="u-1"), more, logged, PERMISSION_ADVICE)
    log_left_out(log, ChatCaller(user_id="u-2"), left_out, logged, PERMISSION_ADVICE)

    what_to_do = "(caller_may_set in EXPERT_JSON says what a request may set)"
    beginning = "WARNING left out of requests of user"
    assert log.lines == [
        f"{beginning} u-1: metadata (stored at OpenAI) {what_to_do}",
        f"{beginning} u-1: tools web_search {what_to_do}",
        f"{beginning} u-2: metadata (stored at OpenAI) {what_to_do}",
    ]


def test_line_has_an_end_whatever_a_caller_sends() -> None:
    """No one can do anything about it, so it is no warning."""
    left_out = {f"{number:02}{'x' * 500}": "unknown" for number in range(99)}
    log = LinesOfLog()

    log_left_out(log, ChatCaller(user_id="u-1"), left_out, RecentTexts())

    [line] = log.lines
    assert line.startswith("INFO left out of requests of user u-1: ")
    assert line.count("(unknown)") == 50
    assert line.endswith("49" + "x" * 58 + " (unknown)")
