"""Valves of the pipeline that hold JSON objects, with their keys and ranges.

docs/agent-settings.md is generated from the descriptions. The keys that the pipe has,
too, have its names (pipes/owui_manifold/call/expert.py).
"""

from typing import NamedTuple

from pydantic import Field

from gpt5_agent.shell.valves import Valves
from shells.expert_keys import ExpertKeys
from shells.json_valve import read_expert_json, read_json_valve
from shells.shell import PIPELINE_SHELL
from shells.tool_valves import ReadTimeouts, read_timeouts
from toolbox.sandbox.options import SandboxOptions


class AgentExpertSettings(ExpertKeys):
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


class ValveSettings(NamedTuple):
    """The valves, and what those say that hold several values.

    They are read once for each question. `problems` are messages for administrators.
    """

    valves: Valves
    expert: AgentExpertSettings
    sandbox: SandboxOptions
    timeouts: ReadTimeouts
    problems: tuple[str, ...]


def read_valve_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say; defaults for what cannot be read."""
    expert, expert_problems = read_expert_json(valves.EXPERT_JSON, AgentExpertSettings)
    sandbox, sandbox_problems = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    timeouts = read_timeouts(valves.TOOL_TIMEOUTS, PIPELINE_SHELL)
    problems = [*expert_problems, *sandbox_problems]
    if timeouts.problem:
        problems.append(timeouts.problem)
    return ValveSettings(valves, expert, sandbox, timeouts, tuple(problems))
