"""What the administrator can set; whatever is stored, it loads.

A stored value that a model refuses would keep the whole Pipelines server from booting
(pipelines-and-agents.md §5), and its refusal would quote the value. So a number is
brought within its limits, and what cannot be meant is the default.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import (
    Field,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
)

from gpt5_agent.agent_valves import AgentValves
from gpt5_agent.answer_valves import AnswerValves
from gpt5_agent.network_valves import NetworkValves
from gpt5_agent.own_tool_valves import OwnToolValves
from gpt5_agent.sealing import sealed, sealed_servers, sealed_values

_LIMITS: Mapping[str, tuple[int, int]] = {
    "MAXIMUM_ITERATIONS": (1, 30),
    "MAXIMUM_SECONDS": (0, 86_400),
    "MAXIMUM_TOKENS": (0, 100_000_000),
    "TOOL_TIMEOUT_SECONDS": (1, 3600),
    "TOOL_OUTPUT_CHARACTERS": (1000, 10_000_000),
    "SANDBOX_SECONDS": (1, 600),
    "SANDBOX_MEMORY_MB": (64, 16_384),
    "SANDBOX_DISK_MB": (1, 1024),
    "MAX_RETRIES": (0, 5),
    "CONNECT_TIMEOUT_SECONDS": (1, 300),
    "FIRST_EVENT_TIMEOUT_SECONDS": (30, 900),
    "IDLE_TIMEOUT_SECONDS": (30, 900),
}


class Valves(NetworkValves, AnswerValves, OwnToolValves, AgentValves):
    """Settings of the administrator, the fields of the last base first, then our own.

    That is how pydantic orders them, and the page shows them as they are ordered.
    """

    DEBUG: bool = Field(
        default=False,
        description="Write the arguments and outputs of tools to the server's log, "
        "secrets left out. Example: `false`.",
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _take_what_can_be_meant(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, about: ValidationInfo
    ) -> Any:
        name = str(about.field_name)
        default = cls.model_fields[name].default
        if name in _LIMITS:
            return within(value, *_LIMITS[name], default)
        try:
            return validate(value)
        except ValidationError:
            return default

    @field_validator("API_KEY", "PROXY")
    @classmethod
    def _seal(cls, value: str) -> str:
        return sealed(value)

    @field_validator("EXTRA_HEADERS")
    @classmethod
    def _seal_values(cls, value: str) -> str:
        return sealed_values(value)

    @field_validator("MCP_SERVERS_JSON", "OPENAPI_SERVERS_JSON")
    @classmethod
    def _seal_servers(cls, value: str) -> str:
        return sealed_servers(value)


def within(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; what is no number is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default
