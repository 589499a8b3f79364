"""A model that researches: one long web search with a ceiling."""

from typing import Any

import pytest

from calls.sample import TOOL, arrived_call, chat, host_context, valves_for
from calls.turns import answered
from calls.valves import expert
from openai_responses.errors import InvalidRequest
from openai_responses.transport.connections import Connections
from owui_manifold.call.checking import check_call
from owui_manifold.call.context import Call, Caller
from owui_manifold.call.valves import UserValves
from owui_manifold.prepare.chat import build_chat_request
from simulator import Simulator

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

Json = dict[str, Any]
MODEL = "f.gpt-6.1-sol-research"


async def asked(
    sim: Simulator,
    model: str = MODEL,
    body: Json | None = None,
    user: UserValves | None = None,
    task: str = "",
    **given: Any,
) -> Call:
    """A question to a model that researches."""
    caller = Caller(model, "user-1", "chat-1", "m-1", streams=True, task=task)
    question = chat("sim:short Why?", **{"model": model, **(body or {})})
    host = host_context(request=None)
    call = arrived_call(question, valves_for(sim, **given), caller, user, host)
    return await check_call(call)


async def sent(sim: Simulator, **given: Any) -> Json:
    prepared = await build_chat_request(await asked(sim, **given))
    return prepared.request.payload()


async def test_research_is_a_long_search(
    sim: Simulator, connections: Connections
) -> None:
    """Also where searches are off; the server takes the request.

    The answer begins with its ceiling: people know what they wait for.
    """
    call = await asked(sim)
    beginning = (await build_chat_request(call)).beginning
    await answered(call, connections)

    assert beginning.startswith("Research takes several minutes: at most 60")
    body = sim.requests[0].body
    (tool,) = body["tools"]
    assert (tool["type"], tool["return_token_budget"]) == ("web_search", "unlimited")
    assert body["model"] == "gpt-6.1-sol"
    assert body["reasoning"]["effort"] == "high"
    assert (body["max_output_tokens"], body["max_tool_calls"]) == (64_000, 60)
    assert sim.requests[0].status == 200


@pytest.mark.parametrize("tokens", [100_000, 100])
@pytest.mark.parametrize(
    "name", ["max_tokens", "max_output_tokens", "max_completion_tokens"]
)
async def test_callers_do_not_set_the_ceiling(
    name: str, tokens: int, sim: Simulator, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor lower the effort, nor add functions, whose rounds would begin it anew."""
    wishes = {
        name: tokens,
        "reasoning": {"effort": "low", "summary": "detailed"},
        "max_tool_calls": tokens // 20,
        "reasoning_effort": "low",
        "tools": [TOOL],
    }
    user = UserValves(REASONING_EFFORT="low", WEB_SEARCH="off")
    opened = expert(caller_may_set="max_tool_calls")

    body = await sent(sim, body=wishes, user=user, EXPERT_JSON=opened)

    assert [tool["type"] for tool in body["tools"]] == ["web_search"]
    assert body["reasoning"]["effort"] == "high"
    assert (body["max_output_tokens"], body["max_tool_calls"]) == (64_000, 60)
    assert "a model that researches gets only OpenAI's tools" in caplog.text


async def test_lower_limits_of_the_administrator_hold(sim: Simulator) -> None:
    """And the filters of the search."""
    options = '{"blocked_domains": ["x.example"]}'
    body = await sent(
        sim, MAX_OUTPUT_TOKENS=5000, MAX_TOOL_CALLS=7, WEB_SEARCH_OPTIONS=options
    )

    assert (body["max_output_tokens"], body["max_tool_calls"]) == (5000, 7)
    assert body["tools"][0]["filters"] == {"blocked_domains": ["x.example"]}


async def test_background_is_a_setting(sim: Simulator) -> None:
    """The one that other models have: OpenAI then stores the answer."""
    assert "background" not in await sent(sim)
    body = await sent(sim, BACKGROUND_MODELS="*-research")
    assert (body["background"], body["store"]) == (True, True)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"model": "f.gpt-4.1-research"},
            "GPT-4.1 Research cannot research: the model does not",
        ),
        ({"COMPATIBILITY": "strict"}, "cannot research: the model's server"),
        (
            {"MODEL_OVERRIDES_JSON": '{"gpt-6.1-sol": {"lacks": ["web_search"]}}'},
            "cannot research: the model does not",
        ),
    ],
)
async def test_unsupported_research_is_refused(
    given: Json, problem: str, sim: Simulator
) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        await asked(sim, **given)
    assert await asked(sim, task="title_generation", **given)
