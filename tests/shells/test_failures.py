"""What people and the log are told of an answer that failed."""

import sys
from pathlib import Path

import pytest

from openai_responses.endings import COMPLETED, Ending
from openai_responses.errors import ApiError, InvalidRequest, SafetyNotice, SettingFault
from openai_responses.loop.events import RunDone, Trace
from openai_responses.models.usage import Usage
from shells.answer_log import AnswerLog, LogLevel
from shells.failures import report_exception, report_run, server_message
from shells.valve_messages import PIPE_SHELL, PIPELINE_SHELL, Shell

ERROR_ID = "(Error id: 7N4M6T9R1W)"


class Lines(AnswerLog):
    """Keeps its lines."""

    def __init__(self) -> None:
        super().__init__("7N4M6T9R1W", ["hidden-words"])
        self.written: list[tuple[str, str]] = []

    def _write(self, level: LogLevel, one_line: str) -> None:
        self.written.append((level, one_line))


@pytest.mark.parametrize("shell", [PIPE_SHELL, PIPELINE_SHELL])
def test_mistake_of_ours_is_in_the_log_alone(shell: Shell) -> None:
    """People get only the id by which an administrator finds it; a refusal is for them."""
    log = Lines()
    refused = report_exception(
        log, InvalidRequest("No key yet."), shell, is_admin=False
    )
    assert refused == f"No key yet. {ERROR_ID}"
    assert log.written == [("WARNING", "nothing was sent: No key yet.")]
    log.written.clear()

    message = report_exception(log, ValueError("hidden-words"), shell, is_admin=True)

    assert message == (
        f"Something in this {shell.noun} went wrong. Try again; if the problem persists, "
        f"give an administrator the error id. {ERROR_ID}"
    )
    [(level, line)] = log.written
    assert level == "ERROR"
    assert "ValueError" in line
    assert "hidden-words" not in line


@pytest.mark.parametrize(
    "keys", [" (known keys: like, name).", ". Known keys: like, name."]
)
def test_keys_of_a_valve_are_listed_for_administrators(keys: str) -> None:
    """Users can only say which valve it is; both ways to refuse lead to the page."""
    log = Lines()
    error = InvalidRequest(f"X_JSON: the key nme is unknown{keys} Correct it.")
    ended = RunDone(Ending("invalid", message=str(error)))
    told = {
        is_admin: (
            report_exception(log, error, PIPE_SHELL, is_admin=is_admin),
            report_run(log, ended, PIPE_SHELL, is_admin=is_admin).ending.message,
        )
        for is_admin in (True, False)
    }
    short = f"X_JSON: the key nme is unknown. Correct it. {ERROR_ID}"
    assert told == {False: (short, short), True: (f"{error} {ERROR_ID}",) * 2}
    assert all("like, name" in line for _, line in log.written)


def test_a_title_that_is_refused_is_no_second_warning() -> None:
    """The answer of its chat has warned of the same."""
    log = Lines()
    error = InvalidRequest("Used up.")
    report_exception(log, error, PIPE_SHELL, is_admin=False, is_task=True)
    assert log.written == [("INFO", "nothing was sent: Used up.")]


def test_line_is_cut_and_whole() -> None:
    """A tool's exception may say anything, on any number of lines."""
    log = Lines()

    log.note("first\nsecond " + "x" * 10_000)

    [(level, line)] = log.written
    assert level == "INFO"
    assert line.startswith("first\\nsecond x")
    assert len(line) == 4000


@pytest.mark.parametrize("size", [4_000, 8_000])
@pytest.mark.parametrize("shown", [4, 20, 39])
def test_no_line_ends_with_half_a_secret(size: int, shown: int) -> None:
    """Not in the log, nor in what the server said: a long token shortens both."""
    secret = "Zq7-very-secret-value-0123456789-and-more"
    log = Lines()
    log.hide(secret)
    token = "Bearer " + "a" * 3_980 + " "
    filler = "p" * (size - len(token) - shown)
    text = token + filler + secret + "z" * 50_000

    log.note(text)
    said = server_message(log, text)

    [(_, line)] = log.written
    assert "Zq7-" not in line
    assert "Zq7-" not in said


def test_text_for_the_model_has_no_secret_and_no_path_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lines stay lines. Python, the host's folder and its data are the server's."""
    data, here, home = [tmp_path / name for name in ("data", "app", "home")]
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("DATA_DIR", str(data))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(sys, "path", ["data", *sys.path])
    log = Lines()
    log.hide("later-words")

    for root in (sys.prefix, sys.base_prefix, sys.path[-1], data, here, home):
        told = log.redacted_for_model(f"hidden-words,\nlater-words: {root}/notes.csv")
        assert told == "[redacted],\n[redacted]: [path]/notes.csv"

    for elsewhere in ("/data/notes.csv", "data/notes.csv"):
        assert log.redacted_for_model(elsewhere) == elsewhere
    here.rmdir()  # somebody has removed the folder in which the server was started
    assert log.redacted_for_model(f"{sys.prefix}/x.py") == "[path]/x.py"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Not\n\n  today:\ta\r\nholiday.", "Not today: a holiday."),
        ("Cookie: abc\nAsk again.", "Cookie: [redacted] Ask again."),
        ("hidden-words\x1b", r"[redacted]\x1b"),
        ("x" * 501, "x" * 500),
    ],
)
def test_words_of_a_server_are_one_line_that_people_can_read(
    text: str, shown: str
) -> None:
    """A line ends with a space: it is not shown as two letters. Secrets are gone."""
    assert server_message(Lines(), text) == f"The model's server said: {shown}"
    assert server_message(Lines(), " \n") == ""


@pytest.mark.parametrize(
    ("reasons", "level"),
    [
        (["turn_boundary"], "DEBUG"),
        (["cannot_decrypt"], "WARNING"),
        (["turn_boundary", "cannot_decrypt"], "WARNING"),
    ],
)
def test_reasoning_that_the_api_left_out_is_counted(
    reasons: list[str], level: str
) -> None:
    """That of past turns it only drops, as documented."""
    log = Lines()
    ended = RunDone(COMPLETED, trace=Trace(removed=dict.fromkeys(reasons, 2)))

    assert report_run(log, ended, PIPELINE_SHELL, is_admin=False) == ended

    counts = ", ".join(f"2 {reason}" for reason in reasons)
    line = f"the API left out earlier reasoning of the input: {counts}"
    assert (level, line) in log.written


def test_end_of_a_run_is_in_the_log() -> None:
    """With what could not be read, of which nothing is quoted."""
    log = Lines()
    usage = Usage(30, 12, 42)
    ended = RunDone(COMPLETED, usage, trace=Trace("req_1", skipped={"x": 2}))

    assert report_run(log, ended, PIPE_SHELL, is_admin=True) == ended
    report_run(log, RunDone(COMPLETED), PIPE_SHELL, is_admin=True)

    left_out = "left out events of the stream that cannot be read: 2 x"
    assert log.written == [
        ("INFO", left_out),
        ("DEBUG", "completed, 42 tokens, request id req_1"),
        ("DEBUG", "completed, request id "),
    ]


REFUSED = ApiError(
    "bad key\n",
    "invalid_request_error",
    "input[3]",
    "No, said hidden-words.",
    SafetyNotice(review_target="rv_1", category="weapons"),
)
TRACE = Trace("req_1", status=400, error=REFUSED, subject="input[3] (message):")
REFUSAL = Ending("refused", "invalid_value", "No.", SettingFault(("api_key",)))
ADVICE = "An administrator has to check API_KEY in the valves of this pipe."
SAID = "The model's server said: input[3] (message): No, said [redacted]."


@pytest.mark.parametrize(
    ("is_admin", "message", "shown"),
    [
        (False, "", f"No. {ADVICE} {ERROR_ID}"),
        (True, "", f"No. {ADVICE} {ERROR_ID} {SAID}"),
        (False, "Ours.", f"Ours. {ERROR_ID}"),
        (True, "Ours.", f"Ours. {ERROR_ID} {SAID}"),
    ],
)
def test_only_administrators_read_what_the_server_said(
    is_admin: bool, message: str, shown: str
) -> None:
    """The log has it, with the ids by which OpenAI's support finds the answer."""
    log = Lines()
    trace = TRACE._replace(response_id="resp_1")
    ended = RunDone(REFUSAL, trace=trace)

    told = report_run(
        log, ended, PIPE_SHELL, is_admin=is_admin, model="gpt-5.2", message=message
    )

    assert told.ending.message == shown
    assert (told.ending.kind, told.ending.code) == ("refused", "invalid_value")
    [(level, line)] = log.written
    assert level == "WARNING"
    assert line == (
        "refused: model gpt-5.2, HTTP 400, type invalid_request_error, param input[3], "
        "request id req_1, response id resp_1, review target rv_1, category weapons. "
        f"{SAID}"
    )


def test_server_that_said_nothing_is_reported_by_our_message() -> None:
    """No ids are in the line that nobody gave."""
    log = Lines()
    ended = RunDone(Ending("unreachable", "dns", "Not found."), trace=Trace())

    told = report_run(log, ended, PIPE_SHELL, is_admin=True)

    assert told.ending.message == f"Not found. {ERROR_ID}"
    [(_, line)] = log.written
    assert line == "unreachable: code dns. Not found."


def test_end_of_the_words_of_a_server_is_no_half_of_a_secret() -> None:
    """The cut comes after the secrets are hidden."""
    log = Lines()
    log.hide("Zq7-very-secret-value-0123456789")
    said = server_message(log, "p" * 490 + "Zq7-very-secret-value-0123456789")
    assert said.endswith("p[redacted]")


@pytest.mark.parametrize("target", ["rv_1 and more", "rv_1\nWARNING", "r" * 201])
def test_review_that_is_no_id_is_not_in_the_log(target: str) -> None:
    log = Lines()
    error = REFUSED._replace(notice=SafetyNotice(review_target=target))
    ended = RunDone(REFUSAL, trace=TRACE._replace(error=error))

    report_run(log, ended, PIPE_SHELL, is_admin=False)

    [(_, line)] = log.written
    assert "review target" not in line
    assert "rv_1" not in line


def test_line_of_a_failure_has_words_of_the_api_alone() -> None:
    """A server may quote a chat, or a key, in any field."""
    log = Lines()
    odd = "my diary"
    notice = SafetyNotice(category=odd)
    error = ApiError(code=odd, type=odd, param=odd, message="No.", notice=notice)

    report_run(
        log,
        RunDone(REFUSAL, trace=TRACE._replace(error=error)),
        PIPE_SHELL,
        is_admin=False,
    )

    [(_, line)] = log.written
    assert line.startswith("refused: HTTP 400, request id req_1. ")
    assert "diary" not in line
