"""The instructions of a strategy: who the agent is, its policies, what it may read."""

from collections.abc import Collection, Mapping

from strategies.context import format_context, read_context
from strategies.parameters import StrategyParameters
from strategies.policy import ChosenStyle, build_system_instruction

_HOST_TOOL_USES: Mapping[str, str] = {
    "create_tasks": (
        "- For work of several steps write the steps with `create_tasks` before the "
        "first one. Mark each with `update_task` when you begin it and when it is done: "
        "the user watches this list."
    ),
    "delegate_task": (
        "- Give parts of the work that do not need each other to sub-agents with "
        "`delegate_task`, several in one response. A sub-agent sees nothing of this "
        "chat: tell it all that it needs."
    ),
    "ask_user": (
        "- If only the user can decide something that changes the result, ask with "
        "`ask_user`, once, before you do the work that depends on it."
    ),
}
"""What an agent is told of Open WebUI's own tools, if it is offered them."""


def build_strategy_instructions(
    parameters: StrategyParameters,
    style: ChosenStyle,
    system_text: str,
    host_tools: Collection[str] = (),
) -> str:
    """Return the instructions of a request; `system_text` is that of the chat.

    First comes the guide, then the instruction of the parameters, then the chat's own.
    What Open WebUI's own tools are for follows the policies; `host_tools` names those
    that are offered. The context is the end.
    """
    texts = (parameters.guide.system_prompt, parameters.instruction, system_text)
    base = "\n\n".join(text.strip() for text in texts if text.strip())
    instruction = build_system_instruction(
        base, parameters.prompt_policy_overrides, style
    )
    lines = [line for name, line in _HOST_TOOL_USES.items() if name in host_tools]
    blocks = (
        instruction,
        "\n".join(["<host_tools>", *lines, "</host_tools>"]) if lines else "",
        format_context(read_context(parameters.context)),
    )
    return "\n\n".join(block for block in blocks if block)
