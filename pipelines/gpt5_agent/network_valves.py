"""Settings of the way to the server."""

from typing import Literal

from pydantic import BaseModel, Field

from gpt5_agent.sealing import SECRET_FORMS


class NetworkValves(BaseModel):
    """Who pays, how patient the pipeline is, over which network."""

    ORGANIZATION: str = Field(
        default="", description="Organisation to bill. Example: `org-abc`."
    )
    PROJECT: str = Field(
        default="", description="Project to bill. Example: `proj_abc`."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description=f"More headers, as a JSON object of texts; a value can be {SECRET_FORMS} "
        'Example: `{"X-Team": "env:TEAM_KEY"}`.',
        json_schema_extra={"input": {"type": "password"}},
    )
    COMPATIBILITY: Literal["openai", "strict"] = Field(
        default="openai",
        description="`strict` sends only what every server of the Responses API knows. "
        "Example: `strict`.",
    )
    MAX_RETRIES: int = Field(
        default=1,
        description="How often a request that failed before its first word is sent "
        "again, 0 to 5. Example: `1`.",
    )
    CONNECT_TIMEOUT_SECONDS: int = Field(
        default=30,
        description="How long a connection may take to come about. Example: `30`.",
    )
    FIRST_EVENT_TIMEOUT_SECONDS: int = Field(
        default=300,
        description="How long the server may take to begin its answer, 30 to 900. "
        "Example: `300`.",
    )
    IDLE_TIMEOUT_SECONDS: int = Field(
        default=300,
        description="How long the server may be silent in the middle of an answer, "
        "30 to 900. Example: `300`.",
    )
    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Off only for a test. Example: "
        "`true`.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust. Example: "
        "`/etc/ssl/company.pem`.",
    )
    PROXY: str = Field(
        default="",
        description=f"Address of an HTTP proxy: {SECRET_FORMS} Empty: HTTPS_PROXY and "
        "NO_PROXY of the environment are obeyed. Example: `http://10.0.0.1:3128`.",
        json_schema_extra={"input": {"type": "password"}},
    )
