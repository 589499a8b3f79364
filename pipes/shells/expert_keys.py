"""The keys of EXPERT_JSON that pipe and agents share, the time limits among them."""

import os

from pydantic import BaseModel, ConfigDict, Field

from openai_responses.models.resolve import ResolvedModel
from openai_responses.transport.connections import Timeouts

_LONG_SILENCE = 900.0
"""In pro mode several passes make one answer, and nothing is sent in between; research
is as slow."""


class ExpertKeys(BaseModel):
    """Keys of EXPERT_JSON that pipe and agents share."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)

    connect_timeout_seconds: float = Field(
        default=30, gt=0, description="Time limit to open a connection."
    )
    first_event_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence before an answer begins, 30 to 900.",
    )
    idle_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence within an answer, also in reasoning, 30 to 900.",
    )

    audit_log: bool = Field(
        default=False,
        description="Log one JSON line for each request, success and error, without "
        "text of the chat. `OPENAI_GPT5_AUDIT_LOG=true` in the environment does the "
        "same.",
    )

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by setting or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.audit_log or by_environment == "true"

    def timeouts(self, model: ResolvedModel, total: float = 0) -> Timeouts:
        """Return the limits of a request to a model; `total` is that of its answer."""
        is_slow = model.pro or model.research or "-pro" in model.id
        least = _LONG_SILENCE if is_slow else 0.0
        return Timeouts(
            connect=self.connect_timeout_seconds,
            first_event=max(self.first_event_timeout_seconds, least),
            idle=max(self.idle_timeout_seconds, least),
            total=total,
        )
