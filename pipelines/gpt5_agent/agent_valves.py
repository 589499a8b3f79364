"""Settings of the agent itself."""

from typing import Literal

from pydantic import BaseModel, Field

from gpt5_agent.sealing import SECRET_FORMS
from openai_responses.endpoint import DEFAULT_BASE_URL


class AgentValves(BaseModel):
    """Who answers, in which manner, within which bounds."""

    API_KEY: str = Field(
        default="",
        description=f"Key for BASE_URL: {SECRET_FORMS} Example: `env:OPENAI_API_KEY`, which "
        "is also what holds when this is empty.",
        json_schema_extra={"input": {"type": "password"}},
    )
    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`. Example: "
        f"`{DEFAULT_BASE_URL}`.",
    )
    MODEL: str = Field(
        default="gpt-6.1-sol",
        description="The model of both agents; an effort can be part of the name. "
        "Example: `gpt-5.2-high`. A request may name another one as `agent_model`.",
    )
    INSTRUCTION: str = Field(
        default="",
        description="What the agent is and does, in front of all policies. Example: "
        "`You help the support team of an online shop.`",
    )
    POLICY_STYLE: Literal["full", "lean", "auto"] = Field(
        default="full",
        description="How the policies are worded. `full`: in detail. `lean`: short, by "
        "outcome, for newer models. `auto`: whatever suits the model. Example: `lean`.",
    )
    PROMPT_POLICY_OVERRIDES: str = Field(
        default="",
        description="Other policies. Plain text is added behind all of them. Example: "
        "`Answer in French.` A JSON object replaces single ones, by the keys "
        "`persistence_policy`, `context_gathering_policy`, `uncertainty_policy`, "
        "`tool_preamble_policy` or `extra_policy`. Example: "
        '`{"tool_preamble_policy": "Say nothing before a call."}`.',
    )
    CONTEXT: str = Field(
        default="",
        description="What the agent should know, given to it with every question and "
        "shown as a source: facts, where `context_gathering_policy` says how it goes "
        "about finding more. Example: `Our office hours are 9 to 17.`",
    )
    PRESET: str = Field(
        default="",
        description="A guide: who the agent is, and how much of a chat it remembers. "
        "`researcher`, `engineer`, `companion`, or a file's name without `.json` in "
        "PRESETS_DIR. Example: `researcher`.",
    )
    PRESETS_DIR: str = Field(
        default="",
        description="Folder with guides of your own, as JSON files. Example: "
        "`/app/presets`.",
    )
    MAXIMUM_ITERATIONS: int = Field(
        default=6,
        description="How many rounds of tools one answer may take, 1 to 30; then the "
        "model answers with what it has. Example: `6`.",
    )
    MAXIMUM_SECONDS: int = Field(
        default=0,
        description="How long the model and our tools may work for one answer; 0 is no "
        "limit. Example: `300`.",
    )
    MAXIMUM_TOKENS: int = Field(
        default=0,
        description="How many tokens one answer may take, over all its rounds; 0 is no "
        "limit. Example: `200000`.",
    )
    EMIT_INTERMEDIATE_THOUGHTS: bool = Field(
        default=True,
        description="Show what the model says before it calls tools, as a thought. Off: "
        "the answer alone. Example: `true`.",
    )
