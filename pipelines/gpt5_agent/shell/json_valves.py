"""What the valves of the pipeline say that hold several values each."""

from typing import NamedTuple

from gpt5_agent.shell.valves import Valves
from settings.expert_keys import AgentExpertKeys
from shells.json_valve import read_json_valve
from shells.tool_valves import ReadTimeouts, read_timeouts
from shells.valve_messages import PIPELINE_SHELL
from toolbox.sandbox.options import SandboxOptions


class ValveSettings(NamedTuple):
    """The valves, and what those say that hold several values.

    They are read once for each question. `problems` are messages for administrators.
    """

    valves: Valves
    expert: AgentExpertKeys
    sandbox: SandboxOptions
    timeouts: ReadTimeouts
    problems: tuple[str, ...]


def read_valve_settings(valves: Valves) -> ValveSettings:
    """Return what the valves say; defaults for what cannot be read."""
    expert, expert_problems = read_json_valve(
        "EXPERT_JSON", valves.EXPERT_JSON, AgentExpertKeys
    )
    sandbox, sandbox_problems = read_json_valve(
        "SANDBOX_OPTIONS", valves.SANDBOX_OPTIONS, SandboxOptions
    )
    timeouts = read_timeouts(valves.TOOL_TIMEOUTS, PIPELINE_SHELL)
    problems = [*expert_problems, *sandbox_problems]
    if timeouts.problem:
        problems.append(timeouts.problem)
    # Only the page that saves the valves removes an old name, so it is told until then.
    for name, instead in valves.without_effect().items():
        problems.append(f"The stored valve {name} has no effect. {instead}")
    return ValveSettings(valves, expert, sandbox, timeouts, tuple(problems))
