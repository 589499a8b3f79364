"""The instructions of a strategy, whole."""

import pytest

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


@pytest.mark.parametrize(
    ("instruction", "base"),
    [
        (" Be brief. ", "You sail.\n\nBe brief.\n\nIn German."),
        (" ", "You sail.\n\nIn German."),
    ],
)
def test_r8_guide_instruction_and_chat_come_before_the_policies(
    instruction: str, base: str
) -> None:
    parameters = PARAMETERS.model_copy(update={"instruction": instruction})

    tools = ["ask_user", "create_tasks", "weather"]
    text = build_strategy_instructions(parameters, "lean", "In German.", tools)

    policies = build_system_instruction(base, "Last.", "lean")
    start, uses, end = text.partition("<host_tools>\n- For work of several steps")
    assert start == f"{policies}\n\n"
    use_of_questions = (
        "ask with `ask_user`, once, before you do the work that depends on it."
    )
    assert end.endswith(
        f"{use_of_questions}\n</host_tools>\n\n{format_context(SOURCES)}"
    )
    assert uses
    assert "`delegate_task`" not in text
    tools = ["delegate_task"]
    assert "`delegate_task`" in build_strategy_instructions(
        PARAMETERS, "lean", "", tools
    )


def test_nothing_given_leaves_the_policies() -> None:
    """As the function of the policies alone would write them (R2)."""
    text = build_strategy_instructions(StrategyParameters(), "full", " ")

    assert text == build_system_instruction("")
