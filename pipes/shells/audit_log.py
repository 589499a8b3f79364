"""The audit log of one run, for pipe and agents: a line before it, and one at its end."""

import os

from openai_responses.audit import AuditedRequest
from openai_responses.loop.events import RunDone
from openai_responses.requests.build import ResponsesRequest
from settings.expert_keys import ExpertKeys
from shells.answer_log import AnswerLog


class AuditLog:
    """Writes the lines about a run at `host`, if setting or environment turn it on."""

    def __init__(self, keys: ExpertKeys, log: AnswerLog, host: str) -> None:
        in_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        self._is_on = keys.audit_log or in_environment == "true"
        self._log = log
        self._host = host
        self._audited: AuditedRequest | None = None

    def note_request(self, request: ResponsesRequest) -> None:
        """Write the line about the first request of the run."""
        if not self._is_on:
            return
        payload = request.payload()
        self._audited = AuditedRequest(payload, self._host, self._log.run_id)
        self._log.audit(self._audited.request_line())

    def note_end(self, ended: RunDone) -> None:
        """Write the line about how the run ended; none if nothing was sent."""
        if self._audited is None:
            return
        trace = ended.trace
        if ended.ending.kind in ("completed", "incomplete"):
            line = self._audited.success_line(trace.model, trace.request_id)
        else:
            line = self._audited.error_line(trace.error, trace.status, trace.request_id)
        self._log.audit(line)
