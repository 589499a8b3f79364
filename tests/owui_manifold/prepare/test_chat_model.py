"""The model that answers, where it is not the one that was named."""

import json
from contextlib import nullcontext
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import chunks_of, statuses
from calls.sample import IDS, SAVED, USER, call_of, chat, host_context, valves_for
from manifold.learning import repair_scope
from openai_responses.errors import InvalidRequest
from openai_responses.models.resolve import resolve_model
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import LeaveOutParameter
from owui_manifold.call.agent import AgentMode, check_agent_model
from owui_manifold.call.valves import Valves
from owui_manifold.pipe import Pipe
from owui_manifold.prepare.chat import build_chat_request
from simulator import Simulator
from strategies.parameters import StrategyParameters

pytestmark = [pytest.mark.asyncio, pytest.mark.usefixtures("host")]

SMALL = "gpt-6.1-terra"
LARGE = "gpt-6.1-sol"


async def ask(desk: Desk, *texts: str, **metadata: Any) -> list[str]:
    """Ask gpt-5-auto; return the status lines."""
    body = {**chat(*texts), "model": "f.gpt-5-auto"}
    chunks = await desk.chunks(body, __user__=USER, __metadata__={**IDS, **metadata})
    return statuses(chunks)


async def test_chosen_model_is_explained(desk: Desk) -> None:
    short = await ask(desk, "Hi")
    with_tools = await ask(desk, "Hi", chat_id="chat-x", tool_ids=["weather"])

    assert [body["model"] for body in desk.bodies] == [SMALL, LARGE]
    assert short == [
        "GPT-6.1 Terra answers: the question is short, without files or tools."
    ]
    assert with_tools == ["GPT-6.1 Sol answers: tools are switched on."]


async def test_a_chat_stays_with_its_model(desk: Desk) -> None:
    """Also when tools come later: reasoning and cache are the first model's."""
    await ask(desk, "sim:chat hello")
    again = await ask(desk, "sim:chat hello", message_id="m-2", tool_ids=["weather"])

    assert [body["model"] for body in desk.bodies] == [SMALL, SMALL]
    assert again == ["GPT-6.1 Terra answers: it began this chat."]


async def test_the_first_of_its_models_that_answered_goes_on(desk: Desk) -> None:
    """The user chose the other one by hand for one question."""
    await ask(desk, "sim:chat hello", tool_ids=["weather"])
    by_hand = {**chat("sim:chat hello"), "model": f"f.{SMALL}"}
    ids = {**IDS, "message_id": "m-2"}
    await desk.chunks(by_hand, __user__=USER, __metadata__=ids)
    row = desk.host.chats.rows["chat-1"]
    row.chat = dict(reversed(row.chat.items()))  # a database may keep no order
    again = await ask(desk, "sim:chat hello", message_id="m-3")

    sent = [body["model"] for body in desk.bodies]
    assert sent == [LARGE, SMALL, LARGE]
    assert again == ["GPT-6.1 Sol answers: it began this chat."]


async def test_what_counts_is_the_model_that_was_chosen() -> None:
    """Its window, what it refused before, what it can draw."""
    overrides = {SMALL: {"context_window": 1234, "lacks": ["image_generation"]}}
    valves = Valves(API_KEY="sk-1", MODEL_OVERRIDES_JSON=json.dumps(overrides))
    meta = {"filterIds": ["openai_responses_images"]}
    host = host_context(metadata={**IDS, "model": {"info": {"meta": meta}}})
    call = call_of(
        chat("Hi"), valves, SAVED._replace(host_model="f.gpt-5-auto"), host=host
    )
    repair = LeaveOutParameter("stream")
    scope = repair_scope(call.endpoint, SMALL, "user-1")
    call.memory.repairs.learn(scope, TriedRepair(repair), lambda: False)

    prepared = await build_chat_request(call)

    assert prepared.request.model == SMALL
    assert prepared.request.repairs == (repair,)
    assert prepared.limits.context_window == 1234
    assert "Images by OpenAI" not in str(prepared.request.input)


GONE = '{"gpt-5-pro": {"shutdown": "2026-01-01"}}'


async def ask_named(
    sim: Simulator, model: str, **valves: Any
) -> tuple[dict[str, Any], list[str]]:
    """Ask a model; return what was sent and the status lines."""
    pipe = Pipe()
    pipe.valves = valves_for(sim, **valves)
    body = {**chat("Hi"), "model": f"f.{model}"}
    chunks = await chunks_of(pipe, body, __user__=USER, __metadata__=IDS)
    return sim.requests[-1].body, statuses(chunks)


async def test_successor_of_a_pro_model_answers_in_the_mode_pro(sim: Simulator) -> None:
    sent, lines = await ask_named(sim, "gpt-5-pro", MODEL_OVERRIDES_JSON=GONE)
    assert (sent["model"], sent["reasoning"]["mode"]) == ("gpt-6.1-sol", "pro")
    assert lines == [
        "GPT-5 pro was switched off on 2026-01-01. GPT-6.1 Sol pro answers instead."
    ]


@pytest.mark.parametrize("is_listed", [True, False])
async def test_model_of_a_listed_agent_has_to_call_tools(is_listed: bool) -> None:
    """With the switch, the model is the person's choice."""
    agent = AgentMode("gpt5_react", StrategyParameters(), is_listed)
    model = resolve_model("chatgpt-image-latest")

    with pytest.raises(InvalidRequest) if is_listed else nullcontext():
        check_agent_model(agent, model)
