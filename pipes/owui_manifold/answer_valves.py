"""Settings of what is asked of an answer."""

from typing import Literal

from pydantic import BaseModel, Field, field_validator


class AnswerValves(BaseModel):
    """What a request says where its caller says nothing."""

    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: each answer comes as one "
        "piece, for servers or organisations that may not stream.",
    )
    BACKGROUND_MODELS: str = Field(
        default="",
        description="Models whose answers run in the background at OpenAI, separated "
        "by commas, `*` for any text: `*-pro, *-deep-research`. A broken connection is "
        "then taken up where it broke, and Stop cancels the answer there. OpenAI "
        "stores such a request and its answer (`store: true`, for 30 days by default), "
        "which breaks zero data retention. Never with COMPATIBILITY `strict`.",
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
    PERSIST_TOOL_RESULTS: bool = Field(
        default=True,
        description="Give what tools were asked and returned to the model in later "
        "turns, too. Off: calls, outputs and the reasoning before them leave together "
        "once the answer is there.",
    )
    STABLE_INSTRUCTIONS: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Send the instructions of a chat as they were first given, and "
        "what changes in them (a date, a memory) with the next message, so that "
        "reasoning and the prompt cache are not lost. They are then kept in the chat, "
        "where its owner can read them. `auto`: for models that forget otherwise.",
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = Field(
        default="chat",
        description="Which requests share OpenAI's prompt cache: those of a chat, all "
        "of a user, or whatever OpenAI finds alike. Only a hash is sent.",
    )
    SERVICE_TIER: Literal["auto", "default", "flex", "priority"] = Field(
        default="auto",
        description="`flex` is cheaper but slower, `priority` faster but dearer, where "
        "the model and the project have them.",
    )
    TRUNCATION: Literal["disabled", "auto"] = Field(
        default="disabled",
        description="`auto` drops the oldest messages when a chat outgrows the model; "
        "reasoning and the prompt cache are then lost. `disabled` shows an error.",
    )
    COMPACTION_TOKENS: int = Field(
        default=0,
        ge=0,
        description="Let OpenAI compact a chat once its input has more tokens than "
        "this; what came before is then sent no more. 0 never does; Azure cannot.",
    )
    MAX_OUTPUT_TOKENS: int = Field(
        default=0,
        ge=0,
        description="Most tokens of one answer, reasoning included; 0 leaves it to the "
        "model.",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = Field(
        default="auto",
        description="How closely the model looks at pictures that people attach; `low` "
        "costs less. A request that says it itself wins.",
    )
    FILE_INPUT: Literal["off", "pdf", "all"] = Field(
        default="off",
        description="Which attached files the model reads itself, each time whole: "
        "none, PDFs, or all documents. `off` leaves them to Open WebUI's retrieval. "
        "With the others that goes on as well: turn off the capability File Context "
        "of the model, or its text is paid for twice.",
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        """Take the words of the seed: both stood for the user."""
        return "user" if value in ("id", "email") else value

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is kept in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is given back between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"
