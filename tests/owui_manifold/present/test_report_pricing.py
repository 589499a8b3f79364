"""The cost of an answer, shown where it is wanted and known."""

from typing import Any

import pytest

from calls.sample import call_of, chat
from openai_responses.endings import COMPLETED
from openai_responses.loop.events import RunDone, RunWork
from openai_responses.models.usage import Usage
from owui_manifold.call.agent import AgentMode
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request
from owui_manifold.present.report import report_end
from stand_in.host import StandInHost
from strategies.parameters import StrategyParameters

pytestmark = pytest.mark.asyncio

USED = Usage(input=250_000, output=0, total=250_000)
ENDED = RunDone(COMPLETED, USED, usages=(USED,))


async def cost(ended: RunDone = ENDED, **given: Any) -> float | None:
    """Return what is shown for an answer of gpt-5.6-sol."""
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})
    prepared = await build_chat_request(call_of(chat("Hi"), valves))
    shown = report_end(prepared, ended).cost
    return shown.dollars if shown else None


async def test_it_is_shown_where_it_is_wanted(host: StandInHost) -> None:
    """With SHOW_COST it is computed from the catalog's prices; the log always has it."""
    call = call_of(chat("Hi"), Valves(API_KEY="sk-1"))
    assert report_end(await build_chat_request(call), ENDED).cost is None
    assert call.log.text().count(" cost ") == 1
    assert await cost(SHOW_COST=True) == pytest.approx(1.0)


async def test_own_prices_win(host: StandInHost) -> None:
    own = '{"gpt-5.6-sol": {"input": 1, "output": 1}}'
    given: dict[str, Any] = {"SHOW_COST": True, "CUSTOM_MODEL_PRICING_JSON": own}
    assert await cost(**given) == pytest.approx(0.25)


async def test_another_tier_has_other_prices(host: StandInHost) -> None:
    """The tier that the server names counts; without one it is what was asked for."""
    given: dict[str, Any] = {"SHOW_COST": True, "SERVICE_TIER": "flex"}
    assert await cost(**given) == pytest.approx(0.5)
    served = ENDED._replace(usages=(USED._replace(tier="default"),))
    assert await cost(served, **given) == pytest.approx(1.0)


async def test_without_usage_there_is_no_cost(host: StandInHost) -> None:
    """Other servers do not count."""
    assert await cost(RunDone(COMPLETED), SHOW_COST=True) is None


async def test_prices_that_cannot_be_read(host: StandInHost) -> None:
    """The answer is there: only the log says what is wrong."""
    assert await cost(SHOW_COST=True, CUSTOM_MODEL_PRICING_JSON="{") is None


@pytest.mark.parametrize("shows", [True, False])
async def test_metadata_of_an_agent_hides_the_cost_where_it_is_hidden(
    shows: bool, host: StandInHost
) -> None:
    """The log has it all the same."""
    valves = Valves(API_KEY="sk-1", SHOW_COST=shows)
    prepared = await build_chat_request(call_of(chat("Hi"), valves))
    agent = AgentMode("gpt5_function_calling", StrategyParameters(), is_listed=True)
    prepared = prepared._replace(call=prepared.call._replace(agent=agent))
    ended = ENDED._replace(work=RunWork(rounds=1, tool_calls=0, seconds=1.0))

    metadata = report_end(prepared, ended).metadata

    assert metadata["total_price"] == pytest.approx(1.0 if shows else 0.0)


GATEWAY = "https://gateway.example/v1"
OWN = '{"gpt-5.6-sol": {"input": 1, "output": 1}}'
STATED = ENDED._replace(usages=(USED._replace(cost=0.75),))
PARTLY = ENDED._replace(usages=(USED, USED._replace(cost=0.75)))
BY_OPENAI = "by OpenAI's prices"


@pytest.mark.parametrize(
    ("ended", "given", "dollars", "source"),
    [
        (STATED, {}, 0.75, "api.openai.com says so"),
        (STATED, {"BASE_URL": GATEWAY}, 0.75, "gateway.example says so"),
        (
            STATED,
            {"CUSTOM_MODEL_PRICING_JSON": OWN},
            0.25,
            "CUSTOM_MODEL_PRICING_JSON",
        ),
        (
            ENDED,
            {"BASE_URL": GATEWAY, "CUSTOM_MODEL_PRICING_JSON": OWN},
            0.25,
            "CUSTOM_MODEL_PRICING_JSON",
        ),
        (ENDED, {"BASE_URL": GATEWAY}, None, ""),
        (ENDED, {"BASE_URL": GATEWAY, "COMPATIBILITY": "openai"}, 1.0, BY_OPENAI),
        (ENDED, {"BASE_URL": "https://me.openai.azure.com"}, 1.0, BY_OPENAI),
        (PARTLY, {}, 1.75, "some of it, the rest by OpenAI's prices"),
        (PARTLY, {"BASE_URL": GATEWAY}, None, ""),
    ],
)
async def test_who_says_what_an_answer_costs(
    host: StandInHost,
    ended: RunDone,
    given: dict[str, Any],
    dollars: float | None,
    source: str,
) -> None:
    """The administrator, then the server, then the catalog; the log names the source."""
    valves = Valves.model_validate({"API_KEY": "sk-1", "SHOW_COST": True, **given})
    call = call_of(chat("Hi"), valves)
    prepared = await build_chat_request(call)

    told = report_end(prepared, ended).cost

    expected = None if dollars is None else pytest.approx(dollars)
    assert (told and told.dollars) == expected
    lines = [line for line in call.log.text().splitlines() if " cost " in line]
    assert len(lines) == bool(source)
    assert all(line.endswith(source) for line in lines)
