"""Settings of retries, of waiting, of the way to the server."""

from pydantic import BaseModel, Field, field_validator


class NetworkValves(BaseModel):
    """How patient the pipe is, over which network."""

    MAX_RETRIES: int = Field(
        default=1,
        description="How often a request that failed before its first word is sent "
        "again, 0 to 5.",
    )
    MAX_RETRY_WAIT_SECONDS: float = Field(
        default=60,
        ge=0,
        allow_inf_nan=False,
        description="Longest wait before such a retry. When the server asks for a "
        "longer one, the error is shown at once.",
    )
    CONNECT_TIMEOUT_SECONDS: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="How long a connection may take to come about.",
    )
    FIRST_EVENT_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may take to begin its answer, 30 to 900.",
    )
    IDLE_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may be silent in the middle of an answer, "
        "30 to 900. Long reasoning without a summary is silent for minutes.",
    )
    TOTAL_TIMEOUT_SECONDS: float = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description="Longest time for a whole answer, without that of tools and of "
        "people; 0 is no limit.",
    )
    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Off only for a test: anybody on "
        "the way could then read the key.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust instead of the "
        "system's, for example those of a company's proxy.",
    )
    PROXY: str = Field(
        default="",
        description="Address of an HTTP proxy, with user and password if it wants "
        "them. Empty: HTTPS_PROXY and NO_PROXY of the environment are obeyed.",
        json_schema_extra={"input": {"type": "password"}},
    )

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        """Take a text or a number and bring it into 0 to 5, as the seed does."""
        return clamped(value, 0, 5, 1)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        """Take a text or a number and bring it into 30 to 900, as the seed does."""
        return clamped(value, 30, 900, 300)


def clamped(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; what is no number is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default
