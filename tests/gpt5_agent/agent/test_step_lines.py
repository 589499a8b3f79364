"""What people read of the steps of an agent, above its answer."""

import pytest

from gpt5_agent.agent.steps import describe_step
from gpt5_agent.events import StepEnded, StepKind, StepStarted
from openai_responses.models.usage import Usage


@pytest.mark.parametrize(
    ("kind", "name", "task", "failed", "label", "line"),
    [
        ("round", "3", 2, False, "TASK 2 > ROUND 3", "Task 2: Step 3 took 5 s"),
        ("model", "gpt-5", 0, False, "gpt-5 Thought", "gpt-5 answered in 5 s"),
        ("model", "gpt-5", 0, True, "gpt-5 Thought", "gpt-5 failed in 5 s"),
        ("tool", "CALL it", 0, False, "CALL CALL it", "CALL it ended in 5 s"),
        ("tool", "plot", 1, True, "TASK 1 > CALL plot", "Task 1: plot failed in 5 s"),
    ],
)
def test_line_has_no_word_of_the_log(
    kind: StepKind, name: str, task: int, failed: bool, label: str, line: str
) -> None:
    """A reader need not know what a label means."""
    step = StepStarted(id="1", parent="", kind=kind, name=name, task=task)

    assert step.label == label
    assert describe_step(StepEnded(step, 4.6, failed=failed)) == line


def test_line_has_the_tokens() -> None:
    step = StepStarted(id="1", parent="", kind="model", name="gpt-5")
    ended = StepEnded(step, 0.2, usage=Usage(input=1000, output=500, total=1500))
    line = "gpt-5 answered in under a second · 1,500 tokens"
    assert describe_step(ended) == line


def test_round_of_a_task_begins_none_of_the_answer() -> None:
    own = StepStarted(id="ROUND 1", parent="", kind="round", name="1")
    of_task = own._replace(id="CALL ask/1", parent="CALL ask", task=1)
    assert (own.begins_round, of_task.begins_round) == (True, False)
