"""What people read of the steps of an agent, above its answer."""

import pytest

from gpt5_agent.agent.steps import describe_step
from gpt5_agent.events import StepEnded, StepKind, StepStarted
from openai_responses.models.usage import Usage


@pytest.mark.parametrize(
    ("kind", "label", "seconds", "failed", "line"),
    [
        ("round", "ROUND 1", 0.2, False, "Step 1 took under a second"),
        ("round", "TASK 2 > ROUND 3", 4.6, False, "Task 2: Step 3 took 5 s"),
        ("model", "gpt-6.2-sol Thought", 3, False, "gpt-6.2-sol answered in 3 s"),
        ("model", "gpt-6.2-sol Thought", 3, True, "gpt-6.2-sol failed in 3 s"),
        ("tool", "CALL get_weather", 2, False, "get_weather ended in 2 s"),
        (
            "tool",
            "TASK 1 > CALL python_execute",
            0.1,
            True,
            "Task 1: python_execute failed in under a second",
        ),
    ],
)
def test_line_has_no_word_of_the_log(
    kind: StepKind, label: str, seconds: float, failed: bool, line: str
) -> None:
    """A reader need not know what a label means."""
    step = StepStarted(id=label, parent="", kind=kind, label=label)
    assert describe_step(StepEnded(step, seconds, failed=failed)) == line


def test_line_has_the_tokens() -> None:
    """It counts those that the model used in this step."""
    step = StepStarted(id="1", parent="", kind="model", label="gpt-5 Thought")
    ended = StepEnded(step, 2, usage=Usage(input=1000, output=500, total=1500))
    assert describe_step(ended) == "gpt-5 answered in 2 s · 1,500 tokens"
