"""The last status line of an answer."""

import pytest

from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, Status
from openai_responses.models.usage import Cost, Usage
from owui_chat.closing_line import AnswerFigures, closing_line
from owui_chat.events import AnswerReport
from runs.sample import on_page

USED = Usage(input=4000, output=560, total=4560, cached=3100)


@pytest.mark.parametrize(
    ("seconds", "duration"),
    [
        (0.2, "under a second"),
        (1.4, "1 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (754, "12 min 34 s"),
    ],
)
def test_duration_is_in_the_units_that_people_use(
    seconds: float, duration: str
) -> None:
    assert closing_line(AnswerFigures(seconds)) == f"Finished in {duration}"


@pytest.mark.parametrize(
    ("figures", "line"),
    [
        (
            AnswerFigures(3, usage=USED),
            "Finished in 3 s · 4,560 tokens · 77% of the input cached",
        ),
        (
            AnswerFigures(3, usage=Usage(input=10, output=5, total=15)),
            "Finished in 3 s · 15 tokens",
        ),
        (
            AnswerFigures(3, usage=Usage(output=5, total=5)),
            "Finished in 3 s · 5 tokens",
        ),
        (
            AnswerFigures(
                3,
                usage=USED,
                report=AnswerReport(Cost(0.0123), rounds=2, tool_calls=1),
            ),
            "Finished in 3 s · $0.012 · 4,560 tokens · 2 rounds · 1 tool call"
            " · 77% of the input cached",
        ),
        # One round is what any answer takes.
        (AnswerFigures(3, report=AnswerReport(rounds=1)), "Finished in 3 s"),
        (
            AnswerFigures(9, is_failure=True, notes=2, failed_attempts=3),
            "Failed after 3 attempts",
        ),
        (AnswerFigures(3, is_failure=True), "Failed after 3 s"),
        (
            AnswerFigures(
                3, usage=USED, notes=2, note_subjects=("a setting has no effect",)
            ),
            "Finished in 3 s · a setting has no effect · 4,560 tokens"
            " · 77% of the input cached · 2 notes",
        ),
        (
            AnswerFigures(
                3,
                notes=1,
                report=AnswerReport(usage_note="about 5,000 tokens describe 9 tools"),
            ),
            "Finished in 3 s · 1 note · about 5,000 tokens describe 9 tools",
        ),
        # Servers that count nothing say so with zeros.
        (AnswerFigures(3, usage=Usage(0, 0, 0)), "Finished in 3 s"),
    ],
)
def test_closing_line_lists_known_figures(figures: AnswerFigures, line: str) -> None:
    assert closing_line(figures) == line


@pytest.mark.parametrize(
    ("report", "end"),
    [
        (AnswerReport(Cost(0.0)), " · $0"),
        (AnswerReport(Cost(0.00123)), " · $0.0012"),
        (AnswerReport(Cost(0.046)), " · $0.046"),
        (AnswerReport(Cost(0.046, True)), " · about $0.046"),
        (AnswerReport(Cost(12.345)), " · $12.35"),
        (AnswerReport(window_share=50), ""),
        (AnswerReport(window_share=51), " · context 51% full"),
    ],
)
def test_closing_line_lists_what_is_reported(report: AnswerReport, end: str) -> None:
    line = closing_line(AnswerFigures(3, report=report))
    assert line == f"Finished in 3 s{end}"


def test_pipe_counts_the_lines_before_it() -> None:
    """The page shows only the last line: it says that there are others to open."""
    notes = [Status("One earlier web search was left out.")] * 2

    *_, closing = on_page([*notes, RunDone(COMPLETED)])[0]

    line = "Finished in under a second · 2 notes"
    assert closing["event"]["data"]["description"] == line
