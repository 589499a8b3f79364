"""What the administrator and the user can set, with the user's choice on top."""

import os
from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, Field

from openai_responses.items import Item
from openai_responses.request import Settings
from openai_responses.transport import DEFAULT_BASE_URL


class Valves(BaseModel):
    """Settings of the administrator."""

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
    MODEL_ID: str = Field(
        default="gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        description="Models to offer, separated by commas. An effort can be part of "
        "the name: `gpt-5.2-high`, `o3-mini-high`, `gpt-5-thinking-high`.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: each answer comes as one "
        "piece, for servers or organisations that may not stream.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the model's reasoning. OpenAI gives it to "
        "verified organisations only; choose `disabled` if yours is not.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = Field(
        default="conversation",
        description="How long the model remembers its encrypted reasoning: not at "
        "all, between the tool calls of one answer, or through the whole "
        "conversation (stored in the chat).",
    )
    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO",
        description="What this pipe writes to the server's log, from this level up. "
        "Prompts and keys are never written.",
    )

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the model or administrator."""

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="inherit",
        description="How long a reasoning model thinks. An effort that the chosen "
        "model does not have is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", "auto", "concise", "detailed", "disabled"] = (
        Field(default="inherit", description="Show a summary of the reasoning.")
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = Field(
        default="inherit", description="How long answers are."
    )


def chosen_settings(
    valves: Valves, user: UserValves, streams: bool, tools: Sequence[Item]
) -> Settings:
    """Return what holds for one request; a user's own choice wins.

    `streams` says whether the caller wants a stream.
    """
    summary = _chosen(user.REASONING_SUMMARY, valves.REASONING_SUMMARY)
    return Settings(
        effort=_chosen(user.REASONING_EFFORT, None),
        summary=None if summary == "disabled" else summary,
        verbosity=_chosen(user.VERBOSITY, None),
        stream=streams and valves.ENABLE_STREAM,
        encrypted_reasoning=valves.PERSIST_REASONING_TOKENS != "disabled",
        tools=tools,
    )


def _chosen(user: str, administrator: str | None) -> str | None:
    return administrator if user == "inherit" else user
