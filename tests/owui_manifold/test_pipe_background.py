"""Answers of BACKGROUND_MODELS go on at the server, and are read to their end."""

import json
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import errors, grown, statuses, usages
from calls.sample import call_of, chat, valves_for
from openai_responses.models.resolve import resolve_model
from owui_chat.storage.markers import strip_markers
from owui_manifold.call.context import Caller
from owui_manifold.call.valves import Valves
from owui_manifold.prepare.chat import build_chat_request
from simulator import Simulator

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
PRO = "openai_responses.gpt-5.2-pro"


@pytest.fixture(autouse=True)
def _in_background(desk: Desk) -> None:
    desk.set_valves(BACKGROUND_MODELS="*-pro")


@pytest.mark.parametrize(
    ("listed", "name", "compatibility", "runs"),
    [
        (" , ", "gpt-5.2-pro", "auto", False),
        ("*-pro", "gpt-5.2-pro", "auto", True),
        ("*-pro", "gpt-5.2", "auto", False),
        ("o3-*, *-PRO ", "GPT-5.2-Pro", "auto", True),
        ("gpt-5.2-pro", "gpt-5.2-pro-2025-12-11", "auto", True),
        ("*", "gpt-5.2-pro", "strict", False),  # such a server stores nothing
        ("gpt-5.2-2025-12-11", "gpt-5.2-2025-12-11-high", "auto", True),
        ("gpt-5-thinking", "gpt5_react", "auto", True),  # as AGENT_JSON names it
        ("gpt5_react", "gpt5_react", "auto", True),
    ],
)
@pytest.mark.usefixtures("host")
async def test_patterns_choose_the_models_that_run_in_the_background(
    listed: str, name: str, compatibility: str, runs: bool
) -> None:
    """Any name of a model may fit any of the patterns, in letters of any size."""
    given = {"BACKGROUND_MODELS": listed, "COMPATIBILITY": compatibility}
    given["AGENT_JSON"] = '{"model": "gpt-5-thinking"}'
    caller = Caller(f"my_pipe.{name}", "user-1", "chat-1", "m-1", streams=True)
    valves = Valves.model_validate({"API_KEY": "sk-1", **given})
    prepared = await build_chat_request(call_of(chat("Hi"), valves, caller))
    assert bool(prepared.request.background) is runs


def words(sim: Simulator) -> list[str]:
    """What the server got: the method, and how the path ends."""
    return [
        "cancel" if request.path.endswith("/cancel") else request.method
        for request in sim.requests
    ]


def pro_question(scenario: str) -> Json:
    return {**chat(f"sim:{scenario}"), "model": PRO}


async def test_background_request_is_stored_and_otherwise_the_same(desk: Desk) -> None:
    await desk.chunks(pro_question("chat"))
    in_background = desk.sent
    desk.pipe.valves = valves_for(desk.sim)
    await desk.chunks(pro_question("chat"))
    as_ever = desk.sent

    assert (as_ever["store"], "background" in as_ever) == (False, False)
    assert "reasoning.encrypted_content" in as_ever["include"]
    assert in_background == {**as_ever, "store": True, "background": True}


@pytest.mark.parametrize(
    ("expert", "store"),
    [
        ({}, True),
        ({"background_store": False}, False),
        ({"background_store": None}, None),
    ],
)
async def test_background_answers_are_stored_as_the_administrator_says(
    desk: Desk, expert: Json, store: bool | None
) -> None:
    """Projects with zero data retention run them with `store: false`; read to the end."""
    text = json.dumps(expert)
    desk.set_valves(BACKGROUND_MODELS="*-pro", EXPERT_JSON=text)

    chunks = await desk.chunks(pro_question("chat,drop=60"))

    body = desk.bodies[0]
    assert body.get("store", "none") == ("none" if store is None else store)
    assert body["background"] is True
    assert words(desk.sim) == ["POST", "GET"]
    assert errors(chunks) == []
    assert strip_markers(grown(chunks)).startswith("This is turn 1.")


WINDOW = json.dumps({"background_window": "8h"})


@pytest.mark.parametrize("model", [PRO, "openai_responses.gpt-6.1-sol-research"])
async def test_who_can_wait_gets_the_answer_later_for_less(
    desk: Desk, model: str
) -> None:
    """Without a stream, as the API demands; the answer says how long it may take."""
    desk.set_valves(BACKGROUND_MODELS="*-pro", EXPERT_JSON=WINDOW, SHOW_COST=True)

    body = {**pro_question("chat,asks=1,halt=3"), "model": model}
    chunks = await desk.chunks(body)

    sent = desk.bodies[0]
    assert (sent["background"], sent["stream"]) == (True, False)
    assert sent["background_options"] == {"completion_window": "8h"}
    assert "POST" in words(desk.sim)
    assert "GET" in words(desk.sim)
    assert strip_markers(grown(chunks)).startswith("This is turn 1.")
    assert any("up to 8 hours" in line for line in statuses(chunks))
    [used] = usages(chunks)
    facts = resolve_model(sent["model"]).facts
    assert facts.prices is not None
    full = used["input_tokens"] * (facts.prices.input or 0)
    full += used["output_tokens"] * (facts.prices.output or 0)
    full += used["input_tokens_details"]["cache_write_tokens"] * (
        (facts.prices.cache_write or facts.prices.input or 0)
        - (facts.prices.input or 0)
    )
    assert used["cost"] == pytest.approx(0.6 * full / 1e6)


async def test_other_answers_wait_for_nothing(desk: Desk) -> None:
    """Other models, tasks, and a tier that is not the standard one."""
    valves = {"BACKGROUND_MODELS": "*-pro", "EXPERT_JSON": WINDOW}
    desk.set_valves(**valves)
    await desk.ask("Hi")
    await desk.result(pro_question("chat"), __task__="title_generation")
    desk.set_valves(**valves, SERVICE_TIER="flex")
    await desk.chunks(pro_question("chat"))

    assert not any(
        "background_options" in request.body for request in desk.sim.requests
    )
    assert [body["store"] for body in desk.bodies] == [
        False,
        False,
        True,
    ]
    assert [bool(request.body.get("background")) for request in desk.sim.requests] == [
        False,
        False,
        True,
    ]
