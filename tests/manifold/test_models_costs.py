"""What the responses to a request cost, at both doors."""

from typing import Literal

import pytest

from manifold.models import completion_window, cost_of_request
from openai_responses.endpoint import Endpoint
from openai_responses.models.resolve import resolve_model
from openai_responses.models.usage import Usage
from openai_responses.repairs.request_repairs import LeaveOutParameter
from openai_responses.requests.build import ResponsesRequest

USED = Usage(input=1000, output=100, total=1100)


def dollars(
    base_url: str, tier: Literal["flex"] | None = None, answered: str = ""
) -> float:
    """The cost of one response of a model that costs more in a region."""
    model = resolve_model("gpt-5.5")
    request = ResponsesRequest(model=model.id, input=[], service_tier=tier)
    used = [USED._replace(tier=answered)]
    cost = cost_of_request(request, Endpoint(base_url, "sk-1"), model.facts, used)
    assert cost is not None
    return cost.dollars


AT_OPENAI = "https://api.openai.com/v1"
IN_EUROPE = "https://eu.api.openai.com/v1"


def test_a_region_costs_more() -> None:
    """By the factor of OpenAI's price list."""
    assert dollars(IN_EUROPE) == pytest.approx(1.1 * dollars(AT_OPENAI))


def test_a_server_that_names_no_tier_served_the_one_asked_for() -> None:
    """What it names counts."""
    assert dollars(AT_OPENAI, "flex") < dollars(AT_OPENAI)
    assert dollars(AT_OPENAI, "flex", "default") == dollars(AT_OPENAI)


def test_a_container_costs_by_the_memory_that_was_asked_for() -> None:
    """The answer does not name it."""
    container = {"type": "auto", "memory_limit": "4g"}
    request = ResponsesRequest(
        model="m",
        input=[],
        tools=[{"type": "code_interpreter", "container": container}],
    )
    ran = {"type": "code_interpreter_call", "container_id": "cntr_1"}
    facts = resolve_model("gpt-5.5").facts

    cost = cost_of_request(request, Endpoint(AT_OPENAI, "sk-1"), facts, [], [ran])

    assert cost is not None
    assert cost.dollars == pytest.approx(0.12)


@pytest.mark.parametrize(
    ("options", "refused", "window"),
    [
        (None, (), ""),
        ({"completion_window": "24h"}, (), "24h"),
        ({"completion_window": "24h"}, ("background_options",), ""),
    ],
)
def test_window_is_that_of_the_request_that_is_sent(
    options: dict[str, str] | None, refused: tuple[str, ...], window: str
) -> None:
    """A server that refused to be asked for one answers at its usual price."""
    request = ResponsesRequest(
        model="m",
        input=[],
        background_options=options,
        repairs=tuple(LeaveOutParameter(name) for name in refused),
    )

    assert completion_window(request) == window
