"""The budget of a strategy, and its texts."""

import pytest

from openai_responses.loop.events import SpentLimit
from openai_responses.loop.spending import Budget
from strategies.parameters import StrategyParameters

PARAMETERS = StrategyParameters(
    maximum_iterations=99, maximum_seconds=60, maximum_tokens=500
)


def test_budget_is_that_of_the_parameters() -> None:
    """At most 30 rounds (R5)."""
    assert PARAMETERS.budget() == Budget(30, 1000, 60.0, 500)
    assert PARAMETERS.budget(7) == Budget(30, 7, 60.0, 500)


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            "rounds",
            "Maximum iteration limit (30) reached. Cannot call tool 'get_weather'. "
            "Please consider increasing the iteration limit.",
        ),
        ("calls", "Call limit (1000) reached. Cannot call tool 'get_weather'."),
        ("seconds", "Time limit (60 s) reached. Cannot call tool 'get_weather'."),
        ("tokens", "Token limit (500) reached. Cannot call tool 'get_weather'."),
    ],
)
def test_r10_model_reads_which_limit_is_reached(limit: SpentLimit, text: str) -> None:
    """The requirements specify the words."""
    texts = PARAMETERS.call_texts()
    few = PARAMETERS.call_texts(7).describe("get_weather", "calls")

    assert few.startswith("Call limit (7) reached.")
    assert texts.describe("get_weather", limit) == text
    failure = texts.describe_failure("get_weather", "KeyError: {tool}")
    assert failure == "tool invoke error: failed to execute tool\nKeyError: {tool}"
