"""A fault costs no word that was said, and gives one message with an id."""

from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import (
    NATIVE,
    BrokenBody,
    errors,
    host_events,
    statuses,
)
from calls.sample import IDS, USER, chat
from calls.valves import expert
from owui_manifold.call.valves import UserValves
from stand_in.host import Row

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


async def test_whole_answer_that_can_be_continued_has_its_line_beside_it(
    desk: Desk,
) -> None:
    """The page may want no stream; without its emitter there is only the error.

    A line that it cannot get costs no answer: the host stores some events, and raises
    what its database reports.
    """

    async def fail(_: Json) -> None:
        raise RuntimeError("database is locked")

    channel = {"__metadata__": {**IDS, "chat_id": "channel:1"}}
    told, alone, in_channel, locked = [
        await desk.result(chat("sim:incomplete"), **given)
        for given in (
            {"__event_emitter__": desk.emit},
            NATIVE,
            {**channel, "__event_emitter__": desk.emit},
            {"__event_emitter__": fail},
        )
    ]

    assert "error" not in told
    assert "length limit" in desk.emitted[-1]["data"]["description"]
    for result in (alone, in_channel):
        assert "length limit" in result["error"]["message"]
    for result in (told, alone, in_channel, locked):
        assert result["choices"][0]["finish_reason"] == "length"


async def test_safety_stop_of_a_task_asks_no_other_model(desk: Desk) -> None:
    """A 403 else means that the key may not use TASK_MODEL."""
    desk.set_valves(TASK_MODEL="gpt-6-luna")
    await desk.result(chat("sim:misaligned-first"), __task__="tags_generation")
    assert len(desk.sim.requests) == 1


@pytest.mark.parametrize("allowed", [False, True])
async def test_flex_tier_falls_back_only_where_allowed(
    allowed: bool, desk: Desk
) -> None:
    """The standard tier costs twice as much: an administrator allows it, or not."""
    options = expert(flex_falls_back=allowed)
    desk.set_valves(SERVICE_TIER="flex", EXPERT_JSON=options)

    chunks = await desk.ask("sim:flex-unavailable")

    tiers = [body["service_tier"] for body in desk.bodies]
    assert tiers == (["flex", "default"] if allowed else ["flex"])
    assert len(statuses(chunks)) == allowed
    expected = [] if allowed else [True]
    assert ["no flex capacity" in error for error in errors(chunks)] == expected


def asking(role: str = "admin", shows: bool = True, ids: Json = IDS) -> Json:
    """What the host passes for a person who wants to see the log, or not."""
    chosen = UserValves(SHOW_LOG_ON_ERROR=shows)
    return {"__user__": {**USER, "role": role, "valves": chosen}, "__metadata__": ids}


@pytest.mark.parametrize(
    ("valves", "scenario"),
    [({}, "cut"), ({"API_KEY": ""}, "")],
    ids=["broken", "not sent"],
)
async def test_administrator_sees_the_log_of_a_failure(
    valves: Json, scenario: str, desk: Desk
) -> None:
    """As a source below the answer, under the id of the message; once, at the end."""
    desk.set_valves(**valves)

    chunks = await desk.ask(f"my secret diary sim:{scenario}", **asking())

    [source] = host_events(chunks, "source")
    assert chunks[-1]["event"]["data"] is source
    assert source["source"] == {"name": "Log of this answer"}
    assert source["metadata"] == [{"source": "Log of this answer"}]
    [log] = source["document"]
    assert log.startswith("```text\n")  # servers and tools write in it, maybe Markdown
    assert "WARNING" in log
    for secret in ("diary", valves.get("API_KEY") or desk.sim.api_key):
        assert secret not in log


@pytest.mark.parametrize("owner", ["user-1", "somebody else"])
async def test_chat_of_somebody_else_tells_an_administrator_no_reasons(
    owner: str, desk: Desk
) -> None:
    """Its owner lets the administrator continue it, and reads what is stored there."""
    desk.set_valves(USER_MAY_CHANGE="nonsense")
    desk.host.chats.rows[IDS["chat_id"]] = Row(owner, {"title": "Trip"})

    failed = await desk.ask("sim:quota", **asking())
    went_well = await desk.ask("Hi", **asking())

    told = [words in str(failed) for words in ("USER_MAY", "server said", "Log of")]
    told.append("· $" in str(went_well))
    assert told == [owner == "user-1"] * 4


async def test_own_fault_is_in_the_log_that_is_shown(desk: Desk) -> None:
    """Its place, not its words."""
    chunks = await desk.chunks(BrokenBody(chat("Hi")), **asking())

    [source] = host_events(chunks, "source")
    assert "ERROR" in source["document"][0]
    assert len(errors(chunks)) == 1


@pytest.mark.parametrize(
    ("given", "scenario"),
    [
        (asking(shows=False), "cut"),
        (asking(role="user"), "cut"),
        (asking(), "chat"),
        (asking(ids={}), "cut"),
        (NATIVE, "cut"),
    ],
    ids=["not wanted", "no administrator", "no failure", "plain HTTP", "no valves"],
)
async def test_nobody_else_sees_a_log(given: Json, scenario: str, desk: Desk) -> None:
    """And no one sees one of an answer that went well."""
    chunks = await desk.ask(f"sim:{scenario}", **given)

    assert not host_events(chunks, "source")
