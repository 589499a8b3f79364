"""The instructions of a strategy: who the agent is, its policies, what it may read."""

from strategies.context import format_context, read_context
from strategies.parameters import StrategyParameters
from strategies.policy import ChosenStyle, build_system_instruction


def build_strategy_instructions(
    parameters: StrategyParameters,
    style: ChosenStyle,
    system_text: str,
    host_policy: str = "",
) -> str:
    """Return the instructions of a request; `system_text` is that of the chat.

    First comes the guide, then the instruction of the parameters, then the chat's own.
    What the tools of the host are for follows the policies. The context is the end.
    """
    texts = (parameters.guide.system_prompt, parameters.instruction, system_text)
    base = "\n\n".join(text.strip() for text in texts if text.strip())
    instruction = build_system_instruction(
        base, parameters.prompt_policy_overrides, style
    )
    blocks = (
        instruction,
        host_policy,
        format_context(read_context(parameters.context)),
    )
    return "\n\n".join(block for block in blocks if block)
