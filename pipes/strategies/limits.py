"""The budget of a strategy, and the texts for the model when it is used up.

The texts about rounds and failures are specified
(docs/reference/pipelines-server.md, "Texts for the model").
"""

from openai_responses.loop.spending import Budget
from openai_responses.loop.tools import CallTexts
from strategies.guard import TOOL_FAILED_TEXT
from strategies.parameters import StrategyParameters

MAX_CALLS = 1000
"""The calls of one answer; 30 rounds of many parallel calls stay below it."""


def build_budget(parameters: StrategyParameters) -> Budget:
    """Return the limits of an answer."""
    return Budget(
        rounds=parameters.maximum_iterations,
        calls=MAX_CALLS,
        seconds=parameters.maximum_seconds,
        tokens=parameters.maximum_tokens,
    )


def build_call_texts(
    parameters: StrategyParameters, calls: int = MAX_CALLS
) -> CallTexts:
    """Return what the model reads of a call that failed or was not made.

    `calls` is how many an answer may make.
    """
    return CallTexts(
        failed=f"{TOOL_FAILED_TEXT}\n{{cause}}",
        rounds=f"Maximum iteration limit ({parameters.maximum_iterations}) reached. Cannot call "
        "tool '{tool}'. Please consider increasing the iteration limit.",
        calls=f"Call limit ({calls}) reached. Cannot call tool '{{tool}}'.",
        seconds=f"Time limit ({parameters.maximum_seconds:g} s) reached. Cannot call "
        "tool '{tool}'.",
        tokens=f"Token limit ({parameters.maximum_tokens}) reached. Cannot call tool "
        "'{tool}'.",
    )
