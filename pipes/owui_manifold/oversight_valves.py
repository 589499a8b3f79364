"""Settings of what users may do, of what the log tells."""

import os
from typing import Literal

from pydantic import BaseModel, Field

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


class OversightValves(BaseModel):
    """What users may do on their own."""

    USER_MAY_CHANGE: str = Field(
        default="effort, summary, verbosity, web_search, code_interpreter, show_cost, "
        "log_level",
        description="Which of their settings users may change, separated by commas; "
        "also `image_generation` and `service_tier`, which can cost much, or `all`, or "
        "`nothing`. Administrators may change all of theirs.",
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = Field(
        default="off",
        description="Whether users put a key of their own into their settings: not at "
        "all, if they like, or before they can chat. Tasks such as titles use it, too; "
        "administrators may always use the key of this pipe.",
    )
    AUDIT_LOG: bool = Field(
        default=False,
        description="Write one JSON line for each request, success and error to the "
        "server's log, without a word of what was said. The environment's "
        "`OPENAI_GPT5_AUDIT_LOG=true` does the same.",
    )
    LOG_LEVEL: LogLevel = Field(
        default="INFO",
        description="What this pipe writes to the server's log, from this level up. "
        "Keys and what was said are never written.",
    )

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by valve or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"
