"""A run's log keeps its own newest lines, writes the grave ones, and tells no secret."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from openai_responses.audit import AuditedRequest
from owui_manifold.call.log import RunLog
from shells.answer_log import LogLevel

NAME = "openai_responses_manifold"
LEVELS: list[LogLevel] = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
CANARY = "sk-canary-7c1e5f"
PASSWORD = "tuesday afternoon"


class Ticking:
    """A clock that goes on by a second whenever it is read."""

    def __init__(self) -> None:
        self.seconds = 1_795_262_400

    def __call__(self) -> int:
        self.seconds += 1
        return self.seconds


def written(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """What reached the handlers of the server: level and text."""
    return [(r.levelname, r.getMessage()) for r in caplog.records if r.name == NAME]


@pytest.mark.parametrize(("keeps_all", "kept"), [(True, LEVELS), (False, [])])
@pytest.mark.parametrize(
    ("threshold", "first"),
    [
        # Open WebUI's handlers begin at INFO; the valve alone decides here.
        ("DEBUG", [("INFO", "DEBUG run-1 a DEBUG"), ("INFO", "run-1 a INFO")]),
        ("WARNING", []),
    ],
)
def test_servers_log_gets_what_reaches_the_level(
    threshold: LogLevel,
    first: list[tuple[str, str]],
    keeps_all: bool,
    kept: list[LogLevel],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A run keeps every line where SHOW_LOG_ON_ERROR has a reader for it."""
    caplog.set_level("CRITICAL", NAME)  # the logger's own level does not count
    caplog.handler.setLevel(0)
    log = RunLog(threshold, [], "run-1", keeps_all=keeps_all)

    for level in LEVELS:
        log.line(level, f"a {level}")

    last = [(level, f"run-1 a {level}") for level in LEVELS[2:]]
    assert written(caplog) == [*first, *last]
    assert [line.split()[2] for line in log.text().splitlines()] == kept


def test_line_has_time_level_and_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("owui_manifold.call.log.unix_seconds", Ticking())
    log = RunLog("ERROR", [], "run-1")

    log.line("DEBUG", "first\nsecond\r\nthird")
    log.line("WARNING", "100 % of {this}")

    assert log.text() == (
        "2026-11-21 12:00:01 DEBUG    first\\nsecond\\nthird\n"
        "2026-11-21 12:00:02 WARNING  100 % of {this}"
    )


def test_no_secret_is_written_or_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Neither one that the run knows nor one that looks like one."""
    log = RunLog("DEBUG", iter([PASSWORD]), "run-1")

    for _ in range(2):
        log.line("DEBUG", f"Authorization: Bearer {CANARY}")
        log.line("ERROR", f"{CANARY} or {PASSWORD.upper()}")
    log.audit(f"told by {CANARY}")

    text = log.text() + str(written(caplog))
    assert text.count("[redacted]") == 13
    assert CANARY not in text
    assert PASSWORD not in text.lower()


def test_the_newest_lines_are_kept() -> None:
    log = RunLog("CRITICAL", [], "run-1")

    for number in range(2_345):
        log.line("DEBUG", str(number))

    kept = [line.split()[-1] for line in log.text().splitlines()]
    assert (len(kept), kept[0], kept[-1]) == (2_000, "345", "2344")


def test_threads_write_to_the_log_they_were_given(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No line is lost, none lands in another run, and reading meanwhile is safe."""
    logs = [RunLog("INFO", [], f"run-{number}") for number in range(4)]

    def work(index: int) -> int:
        log = logs[index % 4]
        for number in range(50):
            log.line("INFO", f"{index % 4}: {index}.{number}")
            log.text()
        return index

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(16))) == list(range(16))

    for number, log in enumerate(logs):
        texts = [line.partition("INFO     ")[2] for line in log.text().splitlines()]
        assert len(set(texts)) == len(texts) == 200
        assert all(text.startswith(f"{number}: ") for text in texts)
    assert len(written(caplog)) == 800


def test_an_audit_line_stays_json(caplog: pytest.LogCaptureFixture) -> None:
    payload = {"model": "gpt-6.1-sol", "input": []}
    line = AuditedRequest(payload, "host", "run-1").request_line()

    RunLog("CRITICAL", [CANARY], "run-1").audit(line)

    assert written(caplog) == [("INFO", line)]
