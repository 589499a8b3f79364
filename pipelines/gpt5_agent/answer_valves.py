"""Settings of how the model answers."""

from typing import Literal

from pydantic import BaseModel, Field


class AnswerValves(BaseModel):
    """How much is thought and said, and in which form it comes."""

    REASONING_EFFORT: Literal[
        "", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="",
        description="How long the model thinks; empty leaves it to MODEL. Example: "
        "`high`.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the reasoning. OpenAI gives it to verified "
        "organisations only. Example: `disabled`.",
    )
    VERBOSITY: Literal["", "low", "medium", "high"] = Field(
        default="",
        description="How long answers are; empty leaves it to the model. Example: "
        "`low`.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: for organisations that may "
        "not stream. Example: `true`.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True,
        description="Let the model ask for several tools at once. Example: `true`.",
    )
