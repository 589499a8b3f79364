"""The instructions of a strategy, whole."""

from strategies.context import ContextSource, format_context
from strategies.guide import Guide
from strategies.instructions import build_strategy_instructions
from strategies.parameters import StrategyParameters
from strategies.policy import build_system_instruction

PARAMETERS = StrategyParameters(
    instruction=" Be brief. ",
    prompt_policy_overrides="Last.",
    guide=Guide(system_prompt="You sail."),
    context={"title": "Logbook", "content": "It rained."},
)
SOURCES = [ContextSource("Logbook", "It rained.")]


def test_r8_guide_instruction_and_chat_come_before_the_policies() -> None:
    """The context comes after the policies, at the end."""
    text = build_strategy_instructions(PARAMETERS, "lean", "In German.")

    base = "You sail.\n\nBe brief.\n\nIn German."
    policies = build_system_instruction(base, "Last.", "lean")
    assert text == f"{policies}\n\n{format_context(SOURCES)}"


def test_nothing_given_leaves_the_policies() -> None:
    """As the function of the policies alone would write them (R2)."""
    text = build_strategy_instructions(StrategyParameters(), "full", " ")

    assert text == build_system_instruction("")
