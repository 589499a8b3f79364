"""What the administrator can set, what a user can."""

from typing import Literal

from pydantic import BaseModel, Field

from owui_manifold.answer_valves import AnswerValves
from owui_manifold.connection_valves import ConnectionValves
from owui_manifold.hosted_valves import HostedValves
from owui_manifold.model_valves import ModelValves
from owui_manifold.network_valves import NetworkValves
from owui_manifold.oversight_valves import OversightValves
from owui_manifold.storage_valves import StorageValves
from owui_manifold.tool_valves import ToolValves


class Valves(
    OversightValves,
    NetworkValves,
    StorageValves,
    ToolValves,
    HostedValves,
    AnswerValves,
    ModelValves,
    ConnectionValves,
):
    """Settings of the administrator, the fields of the last base first.

    That is how pydantic orders them, and the page shows them as they are ordered.
    """


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
    WEB_SEARCH: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model search the web with OpenAI."
    )
    IMAGE_GENERATION: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model draw pictures with OpenAI."
    )
    CODE_INTERPRETER: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Let the model run Python at OpenAI."
    )
    SERVICE_TIER: Literal["inherit", "auto", "default", "flex", "priority"] = Field(
        default="inherit",
        description="`flex` is cheaper but slower, `priority` faster but dearer.",
    )
    SHOW_COST: Literal["inherit", "on", "off"] = Field(
        default="inherit", description="Show what an answer cost."
    )
    LOG_LEVEL: Literal["inherit", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = (
        Field(
            default="inherit",
            description="What the pipe writes to the server's log about your chats.",
        )
    )
    API_KEY: str = Field(
        default="",
        description="Your own key for OpenAI, if an administrator allows one: your "
        "chats are then billed to its account.",
        json_schema_extra={"input": {"type": "password"}},
    )
    SHOW_LOG_ON_ERROR: bool = Field(
        default=False,
        description="For administrators: show the log of an answer that failed, as a "
        "source below it.",
    )
