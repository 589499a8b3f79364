"""Valves of the pipeline that hold JSON objects, with their keys and ranges.

docs/agent-settings.md is generated from the descriptions. The keys that the pipe has,
too, have its names (pipes/owui_manifold/call/expert.py).
"""

from collections.abc import Sequence
from typing import NamedTuple

from pydantic import Field

from gpt5_agent.shell.valves import Valves
from shells.json_valve import read_expert_json, read_json_valve
from shells.shell import PIPELINE_SHELL
from shells.timeouts import TimeoutSettings
from shells.tool_valves import read_timeouts
from toolbox.sandbox.options import SandboxOptions


class AgentExpertSettings(TimeoutSettings):
    """What EXPERT_JSON can hold: settings that hardly any server needs to change."""

    max_retries: int = Field(
        default=1,
        ge=0,
        le=5,
        description="How often a request that failed before any text is retried, "
        "0 to 5.",
    )
    caller_may_set: str = Field(
        default="context, query, emit_intermediate_thoughts",
        description="What a request may set besides its chat, tools, sampling and "
        "format, separated by commas; also possible: `agent_model`, `instruction`, "
        "`prompt_policy_overrides`, `maximum_iterations`, `reasoning_effort`, "
        "`reasoning_summary`, `verbosity` and the API's parameters. Anyone who may "
        "chat can then spend more, or change the rules.",
    )


class ExpertReading(NamedTuple):
    """What EXPERT_JSON says, and what is wrong with it, for administrators."""

    settings: AgentExpertSettings
    problems: Sequence[str]


def read_expert_settings(valves: Valves) -> ExpertReading:
    """Return what EXPERT_JSON says; defaults for what cannot be read."""
    settings, problems = read_expert_json(valves.EXPERT_JSON, AgentExpertSettings)
    return ExpertReading(settings, problems)


def read_sandbox_options(valves: Valves) -> SandboxOptions:
    """Return what SANDBOX_OPTIONS says; defaults for what cannot be read."""
    options, _ = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    return options


def find_valve_problems(valves: Valves, expert: ExpertReading) -> list[str]:
    """Return what is wrong with these valves, as messages for administrators."""
    _, sandbox = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    timeouts = read_timeouts(valves.TOOL_TIMEOUTS, PIPELINE_SHELL)
    problems = [*expert.problems, *sandbox]
    if timeouts.problem:
        problems.append(timeouts.problem)
    return problems
