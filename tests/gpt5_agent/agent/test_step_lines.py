"""What people read of the steps of an agent, above its answer."""

import pytest

from gpt5_agent.agent.steps import describe_step
from gpt5_agent.events import StepEnded, StepKind, StepStarted
from openai_responses.models.usage import Usage


@pytest.mark.parametrize(
    ("of", "seconds", "failed", "label", "line"),
    [
        (("round", "1", 0), 0.2, False, "ROUND 1", "Step 1 took under a second"),
        (("round", "3", 2), 4.6, False, "TASK 2 > ROUND 3", "Task 2: Step 3 took 5 s"),
        (("model", "gpt-5", 0), 3, False, "gpt-5 Thought", "gpt-5 answered in 3 s"),
        (("model", "gpt-5", 0), 3, True, "gpt-5 Thought", "gpt-5 failed in 3 s"),
        (("tool", "CALL it", 0), 2, False, "CALL CALL it", "CALL it ended in 2 s"),
        (
            ("tool", "plot", 1),
            3,
            True,
            "TASK 1 > CALL plot",
            "Task 1: plot failed in 3 s",
        ),
    ],
)
def test_line_has_no_word_of_the_log(
    of: tuple[StepKind, str, int], seconds: float, failed: bool, label: str, line: str
) -> None:
    """A reader need not know what a label means."""
    kind, name, task = of
    step = StepStarted(id="1", parent="", kind=kind, name=name, task=task)

    assert step.label == label
    assert describe_step(StepEnded(step, seconds, failed=failed)) == line


def test_line_has_the_tokens() -> None:
    step = StepStarted(id="1", parent="", kind="model", name="gpt-5")
    ended = StepEnded(step, 2, usage=Usage(input=1000, output=500, total=1500))
    assert describe_step(ended) == "gpt-5 answered in 2 s · 1,500 tokens"
