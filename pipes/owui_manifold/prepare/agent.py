"""What the request of an agent has that the one of a plain model has not.

The instructions with the policies, and the tools with their guard, are here;
`prepare/chat.py` puts the memories at the beginning of the chat. The model of a listed
agent is that of AGENT_JSON (`call/agent.py`); the rounds run in `run/agent.py`.

With the switch, the policies are instructions like any others: from gpt-5.6 on a chat
that has begun gets them in a developer message in front of the question, and what it
was sent before stays (`owui_chat/input/prefix.py`). When the switch is off again, the
next question says which lines no longer hold.
"""

from manifold.preparation import OfferedTools
from openai_responses.loop.tools import Toolset
from openai_responses.models.resolve import ResolvedModel
from owui_manifold.call.agent import AgentMode
from owui_manifold.host.open_webui import HostContext
from shells.valve_messages import PIPE_SHELL, valve_error
from strategies.guard import GuardedTools
from strategies.instructions import build_strategy_instructions
from strategies.policy import choose_style


def check_agent_model(agent: AgentMode, model: ResolvedModel) -> None:
    """Raise InvalidRequest if the model of a listed agent cannot call tools."""
    if agent.is_listed and not model.facts.functions:
        problem = f"AGENT_JSON: the model {model.id} cannot call tools"
        raise valve_error(problem, PIPE_SHELL, '{"model": "gpt-6.1-sol"}')


def agent_instructions(
    agent: AgentMode,
    model: ResolvedModel,
    system_prompt: str,
    tools: OfferedTools,
    host: HostContext,
) -> str:
    """Return the instructions: who the agent is, the policies, what it knows."""
    parameters = agent.parameters
    style = choose_style(parameters.policy_style, model.family)
    offered = {str(tool.get("name")) for tool in tools.items}
    builtin = {name for name in offered if host.is_builtin(name)}
    return build_strategy_instructions(parameters, style, system_prompt, builtin)


def agent_toolset(agent: AgentMode, toolset: Toolset, max_calls: int) -> Toolset:
    """Return the tools of a chat under the guard of an agent.

    A call that failed is not made again with the same arguments. `max_calls` is the
    limit of all chats.
    """
    tools = GuardedTools(toolset.tools, toolset.judge)
    return toolset._replace(
        tools=tools,
        judge=tools,
        texts=agent.parameters.call_texts(max_calls),
    )
