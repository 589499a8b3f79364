"""The administrator's valves; any stored value loads.

A stored value that pydantic refuses would stop the whole Pipelines server from
starting, and the error message would quote the value. So numbers are moved into their
range, and any other invalid value becomes the default. Secrets are sealed when
valves are read.
"""

import re
from functools import partial
from typing import Any, Literal, NamedTuple

from pydantic import (
    ConfigDict,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from gpt5_agent.shell.sealing import seal_secret, seal_values
from openai_responses.loop.tools import ApprovalRules
from openai_responses.models.resolve import AUTO_MODEL, resolve_model
from sandbox.options import SandboxOptions
from settings.expert_keys import AgentExpertKeys
from settings.old_valves import old_names
from settings.shared_valves import SHARED, SharedValves
from settings.table import page_schema, row_field, rows_of, valve
from shells.tool_valves import ToolTimeouts, read_rules, read_timeouts
from shells.valve_messages import PIPELINE_SHELL
from shells.valve_texts import read_json_valve
from strategies.parameters import ParameterValves

_IN_QUOTES = "\N{LEFT DOUBLE QUOTATION MARK}\\1\N{RIGHT DOUBLE QUOTATION MARK}"
_quote_code = partial(re.compile("`([^`]*)`").sub, _IN_QUOTES)
"""Puts quotes in the place of Markdown's backticks: the page shows plain text."""


class Valves(SharedValves, ParameterValves):
    """Settings of the administrator.

    The page begins with the shared ones, then come the agent's parameters.
    """

    model_config = ConfigDict(
        json_schema_extra=page_schema("pipelines", SHARED, _quote_code)
    )
    old_names = old_names("pipelines", AgentExpertKeys)

    # Reasoning and answers

    REASONING_EFFORT: Literal[
        "", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = valve(
        "",
        "How long the model thinks; if empty, MODEL decides.",
        then=("REASONING_SUMMARY",),
    )
    VERBOSITY: Literal["", "low", "medium", "high"] = valve(
        "",
        "How long answers are; if empty, the model decides.",
        then=("ENABLE_STREAM", "COMPACTION_TOKENS"),
    )
    # The rounds of an agent make a chat long without anybody writing in it, so it is
    # compacted unless an administrator says otherwise.
    COMPACTION_TOKENS: int = row_field(
        200_000, rows_of(SharedValves)["COMPACTION_TOKENS"]
    )

    # Tools that run in this pipeline

    SANDBOX: bool = valve(
        False,
        "Let the model run Python and keep files in a sandbox without network "
        "access. If no sandbox works on the Pipelines server, no such tool is offered, and "
        "the log and a notice above administrators' answers say why.",
    )
    SANDBOX_OPTIONS: str = valve(
        "",
        "A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of one chat, "
        "`wheels` (a folder of packages to import).",
        example='{"seconds": 60, "wheels": "/srv/wheels"}',
    )
    OPEN_WEBUI_URL: str = valve(
        "",
        "Address at which the Pipelines server reaches Open WebUI, to read and store "
        "files; it has to allow the address.",
        example="http://open-webui:8080",
    )
    OPEN_WEBUI_API_KEY: str = valve(
        "",
        "API key of an Open WebUI account. Files that tools create are stored for "
        "its owner only; to read everyone's attached files, it must be an "
        "administrator's.",
        example="env:OPEN_WEBUI_API_KEY",
        secret=True,
    )
    DELEGATION: bool = valve(
        False,
        "Let the agent delegate tasks to other runs of itself, up to three at once. "
        "Only with tools that run here and need no approval, such as those of "
        "SANDBOX.",
        then=(
            "PARALLEL_TOOL_CALLS",
            "TOOL_TIMEOUTS",
            "TOOL_OUTPUT_CHARACTERS",
            "TOOL_APPROVAL",
            "VERIFY_SSL",
            "CA_BUNDLE",
            "PROXY",
        ),
    )

    # Log and the rest

    DEBUG: bool = valve(
        False,
        "Log the arguments and outputs of tools, without secrets.",
        then=("EXPERT_JSON",),
    )

    @field_validator("*", mode="wrap")
    @classmethod
    def _repair_value(
        cls, value: Any, validate: ValidatorFunctionWrapHandler, about: ValidationInfo
    ) -> Any:
        """Return a value that is valid, whatever was stored."""
        try:
            return validate(value)
        except ValidationError:
            return cls.model_fields[str(about.field_name)].default

    @model_serializer(mode="wrap")
    def _leave_unset_empty(
        self, serialize: SerializerFunctionWrapHandler
    ) -> dict[str, Any]:
        """Give an unset text as null: Open WebUI's page saves no empty field."""
        values = serialize(self)
        return {name: None if value == "" else value for name, value in values.items()}

    @field_validator("API_KEY", "OPEN_WEBUI_API_KEY", "PROXY")
    @classmethod
    def _seal(cls, value: str) -> str:
        return seal_secret(value)

    @field_validator("EXTRA_HEADERS")
    @classmethod
    def _seal_values(cls, value: str) -> str:
        return seal_values(value)


class ValveSettings(NamedTuple):
    """The valves, and what those say that hold several values.

    They are read once for each question. `problems` are messages for administrators.
    """

    valves: Valves
    expert: AgentExpertKeys
    sandbox: SandboxOptions
    timeouts: ToolTimeouts
    rules: ApprovalRules
    """Of TOOL_APPROVAL."""
    problems: tuple[str, ...]


def read_valve_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say; defaults for what cannot be read."""
    expert, expert_problems = read_json_valve(
        "EXPERT_JSON", valves.EXPERT_JSON, AgentExpertKeys
    )
    sandbox, sandbox_problems = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    timeouts, timeouts_problem = read_timeouts(valves.TOOL_TIMEOUTS, PIPELINE_SHELL)
    rules, rules_problem = read_rules(valves.TOOL_APPROVAL, PIPELINE_SHELL)
    # The page shows the last one, so the most serious one comes last: a rule for
    # approvals. Only the page that saves the valves removes an old name, so it is told
    # until then.
    problems = [
        f"The stored valve {name} has no effect. {instead}"
        for name, instead in valves.without_effect().items()
    ]
    if valves.MODEL.strip() == AUTO_MODEL:
        answering = resolve_model(resolve_model(AUTO_MODEL).id).name
        problems.append(
            f"MODEL is {AUTO_MODEL}, and only the pipe chooses a model for each chat: "
            f"{answering} answers."
        )
    problems += [*expert_problems, *sandbox_problems]
    problems += filter(None, (timeouts_problem, rules_problem))
    return ValveSettings(valves, expert, sandbox, timeouts, rules, tuple(problems))
