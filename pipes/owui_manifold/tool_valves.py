"""Settings of the tools that run in Open WebUI."""

from typing import Literal

from pydantic import BaseModel, Field


class ToolValves(BaseModel):
    """Who runs Open WebUI's tools, within which limits."""

    TOOL_EXECUTION: Literal["pipe", "open_webui"] = Field(
        default="pipe",
        description="Who runs Open WebUI's tools: this pipe, side by side and within "
        "limits, or Open WebUI, one after the other with its own approvals that last.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True, description="Let the model ask for several tools at once."
    )
    MAX_FUNCTION_CALL_LOOPS: int = Field(
        default=10,
        ge=1,
        description="How many rounds of tools one answer may take; then the model "
        "answers with what it has.",
    )
    MAX_TOOL_CALLS: int = Field(
        default=100, ge=1, description="How many calls of tools one answer may make."
    )
    TOOL_TIMEOUT_SECONDS: float = Field(
        default=120,
        gt=0,
        allow_inf_nan=False,
        description="How long a single call of a tool may take; all calls that the "
        "model made at once may take five times that. The time that people take to "
        "answer counts in neither limit.",
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        ge=1000,
        description="Longest output of a tool that the model gets; of a longer one it "
        "gets the beginning and the end.",
    )
    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's consent, as `pattern=auto`, `ask` or "
        "`deny`, separated by commas: `delete_*=ask, shell=deny`. For the others the "
        "setting in the chat's controls counts. Where calls are left to "
        "Open WebUI, `deny` leaves the tool out, and the other rules do not count.",
    )
    AUTO_NATIVE_TOOLS: bool = Field(
        default=False,
        description="Set Function Calling to Native in the settings of a model that "
        "has it at Legacy, as soon as somebody uses it. Nothing else is changed.",
    )
    ENABLE_STRICT_TOOL_CALLING: bool = Field(
        default=False,
        description="Have OpenAI hold arguments to the tools' schemas, where a schema "
        "can be put in the strict form.",
    )
