"""The figures of an agent's answer, as people and programs read them."""

import pytest

from openai_responses.models.usage import Cost, Usage
from strategies.metadata import RunMetadata

USED = Usage(input=200, output=40, total=240, cached=50, reasoning=8)
WHOLE = RunMetadata(
    strategy="gpt5_react",
    model="gpt-5.2",
    ending="completed",
    rounds=2,
    tool_calls=3,
    latency=7.23456,
    cost=Cost(0.1234567891),
    usage=USED,
    window_share=51,
)
CALLS = "Finished in 7 s · 2 rounds · 3 tool calls"


@pytest.mark.parametrize(
    ("metadata", "line"),
    [
        (
            WHOLE,
            "Finished in 7 s · $0.12 · 240 tokens · 2 rounds · 3 tool calls · "
            "25% of the input cached · context 51% full",
        ),
        # No tokens, and no cost, are not told as zero.
        (WHOLE._replace(cost=Cost(0.0), usage=Usage(), window_share=50), CALLS),
        (WHOLE._replace(cost=None, usage=Usage(), window_share=0), CALLS),
        (
            RunMetadata("gpt5_react", "gpt-5.2", "cut"),
            "Failed after under a second",
        ),
        (
            RunMetadata("gpt5_react", "gpt-5.2", "cancelled"),
            "Stopped after under a second",
        ),
    ],
)
def test_people_read_what_is_known(metadata: RunMetadata, line: str) -> None:
    assert metadata.describe() == line


def test_programs_read_the_specified_keys() -> None:
    assert WHOLE.wire() == {
        "strategy": "gpt5_react",
        "model": "gpt-5.2",
        "ending": "completed",
        "rounds": 2,
        "tool_calls": 3,
        "latency": 7.235,
        "total_price": 0.12345679,
        "currency": "USD",
        "prompt_tokens": 200,
        "completion_tokens": 40,
        "total_tokens": 240,
        "cached_tokens": 50,
        "reasoning_tokens": 8,
    }
    assert WHOLE._replace(cost=None).wire()["total_price"] == 0.0
