"""The time limits of requests that an administrator can set, for pipe and agents."""

from pydantic import BaseModel, ConfigDict, Field


class TimeoutSettings(BaseModel):
    """Keys of EXPERT_JSON that both have, in seconds."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)

    connect_timeout_seconds: float = Field(
        default=30, gt=0, description="Time limit to open a connection."
    )
    first_event_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest wait for an answer to begin, 30 to 900.",
    )
    idle_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence within an answer, also in reasoning, 30 to 900.",
    )
