"""The audit log of a run, which pipe and agents write alike."""

import json
from typing import Any

import pytest

from gpt5_agent.shell.log import AgentLog
from openai_responses.endings import COMPLETED, CUT, Ending
from openai_responses.errors import ApiError
from openai_responses.loop.events import RunDone, Trace
from openai_responses.models.resolve import resolve_model
from openai_responses.requests.build import Settings, build_request
from owui_manifold.call.log import RunLog
from settings.expert_keys import ExpertKeys
from shells.answer_log import AnswerLog
from shells.audit_log import AuditLog

KEY = "sk-canary-7c1e5f"
DIARY = "my secret diary"
LOGS: dict[str, AnswerLog] = {
    "pipe": RunLog("CRITICAL", [KEY], "RUN1"),
    "agents": AgentLog("RUN1", [KEY]),
}
QUESTION: dict[str, Any] = {"type": "message", "role": "user", "content": DIARY}
REFUSED = ApiError("invalid_value", "invalid_request_error", "input[3]", DIARY)


@pytest.mark.parametrize("shell", LOGS)
def test_lines_of_a_run_have_the_servers_id_and_ours(
    shell: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server names its response; before it answers, the name is unknown."""
    request = build_request(resolve_model("gpt-5.2"), KEY, [QUESTION], {}, Settings())
    audit = AuditLog(ExpertKeys(audit_log=True), LOGS[shell], "api.openai.com")

    audit.note_end(RunDone(CUT))  # nothing was sent yet
    audit.note_request(request)
    audit.note_end(RunDone(COMPLETED, trace=Trace("req_1", "gpt-5.2-2025", 200)))
    failed = Trace("req_2", status=400, error=REFUSED)
    audit.note_end(RunDone(CUT, trace=failed))

    lines = [json.loads(message) for message in caplog.messages]
    events = ["request", "success", "error"]
    assert [line["event"] for line in lines] == [f"responses_api_{e}" for e in events]
    assert [line["request_id"] for line in lines] == [None, "req_1", "req_2"]
    assert {line["run_id"] for line in lines} == {"RUN1"}
    assert lines[0]["input_message_count"] == 1
    assert lines[1]["response_model"] == "gpt-5.2-2025"
    assert (lines[2]["status_code"], lines[2]["param"]) == (400, "input[3]")
    assert DIARY not in caplog.text
    assert KEY not in caplog.text


def test_audit_lines_are_in_the_servers_log_alone(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If they are wanted at all."""
    request = build_request(resolve_model("gpt-5.2"), KEY, [QUESTION], {}, Settings())
    log = RunLog("DEBUG", [], "RUN1")
    log.audit("{}")
    assert log.text() == ""
    caplog.clear()
    monkeypatch.delenv("OPENAI_GPT5_AUDIT_LOG", raising=False)
    AuditLog(ExpertKeys(), log, "host").note_request(request)
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("setting", "environment", "writes"),
    [
        (False, "", False),
        (True, "", True),
        (False, "true", True),
        (False, " True ", True),
        (False, "false", False),
        (False, "1", False),
        (True, "false", True),
    ],
)
def test_audit_log_is_on_by_setting_or_environment(
    setting: bool,
    environment: str,
    writes: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One of them is enough; the variable is on by one word alone."""
    request = build_request(resolve_model("gpt-5.2"), KEY, [QUESTION], {}, Settings())
    monkeypatch.setenv("OPENAI_GPT5_AUDIT_LOG", environment)

    for log in LOGS.values():
        caplog.clear()
        audit = AuditLog(ExpertKeys(audit_log=setting), log, "host")
        audit.note_request(request)
        audit.note_end(RunDone(COMPLETED))
        assert len(caplog.messages) == (2 if writes else 0)


@pytest.mark.parametrize("shell", LOGS)
def test_audit_line_has_no_secret(shell: str, caplog: pytest.LogCaptureFixture) -> None:
    """A server may quote one in what it says of itself."""
    LOGS[shell].audit(json.dumps({"response_model": f"gpt-5.2 {KEY}"}))
    assert "gpt-5.2" in caplog.text
    assert KEY not in caplog.text


def test_answer_that_reached_a_limit_is_a_success(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The server answered; only the error lines are looked at after a fault."""
    request = build_request(resolve_model("gpt-5.2"), KEY, [QUESTION], {}, Settings())
    audit = AuditLog(ExpertKeys(audit_log=True), LOGS["pipe"], "api.openai.com")

    audit.note_request(request)
    audit.note_end(RunDone(Ending("incomplete", "max_output_tokens", "It is cut.")))

    events = [json.loads(message)["event"] for message in caplog.messages]
    assert events == ["responses_api_request", "responses_api_success"]
