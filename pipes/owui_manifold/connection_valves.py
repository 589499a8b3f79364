"""Settings of the connection to the Responses API."""

import os
from typing import Literal

from pydantic import BaseModel, Field

from openai_responses.endpoint import DEFAULT_BASE_URL


class ConnectionValves(BaseModel):
    """Where requests go, with which key."""

    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`. Change it "
        "for a proxy or another server that offers `POST /responses`.",
    )
    API_KEY: str = Field(
        default="",
        description="Key for that server. Empty: the variable `OPENAI_API_KEY` of "
        "Open WebUI's own environment is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
    ORGANIZATION: str = Field(
        default="",
        description="Organisation to bill, if the key belongs to several.",
    )
    PROJECT: str = Field(
        default="", description="Project to bill, if the key belongs to several."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description="More headers for every request, as a JSON object of texts: "
        '`{"X-Team": "blue"}`. They win over those that this pipe sends itself.',
        json_schema_extra={"input": {"type": "password"}},
    )
    COMPATIBILITY: Literal["openai", "strict"] = Field(
        default="openai",
        description="`strict` sends only what every server of the Responses API "
        "knows; choose it when BASE_URL is not OpenAI or Azure.",
    )

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()
