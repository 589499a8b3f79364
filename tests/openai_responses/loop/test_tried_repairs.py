"""A repair has helped once an answer came of the request, and not before."""

import json

import pytest

from openai_responses.endings import COMPLETED, CUT, Ending
from openai_responses.errors import ApiError
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.tried_repairs import TriedRepairs, repairs_that_helped
from openai_responses.repairs.chat_repairs import SendAsText
from openai_responses.repairs.finding import TriedRepair
from openai_responses.repairs.request_repairs import (
    LeaveOutParameter,
    LeaveOutTool,
    LeaveOutToolField,
    Repair,
)
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemAdded, TextDelta
from runs.against_server import asking, limits, report
from upstream import wire
from upstream.server import Upstream, in_turn, replying, streaming

FIRST = TriedRepair(LeaveOutParameter("top_p"), ApiError("first"))
SECOND = TriedRepair(LeaveOutToolField("strict"), ApiError("second"))
SAID = TextDelta(0, "text", 0, "Hello")
HELPED = [FIRST, SECOND._replace(helped_at_once=True)]


@pytest.mark.parametrize(
    ("event", "helped"),
    [
        (SAID, HELPED),
        (RunDone(COMPLETED), HELPED),
        (RunDone(Ending("incomplete")), HELPED),
        (RunDone(CUT), []),
        (ItemAdded(0, {"type": "reasoning"}), []),
        (Status("Trying again in 2 s."), []),
    ],
)
def test_answer_shows_that_repairs_helped(
    event: RunEvent, helped: list[TriedRepair]
) -> None:
    """A thought may begin in an answer that ends as a refusal."""
    repairs = TriedRepairs()
    for tried in (FIRST, SECOND):
        assert repairs.note(Status("Again.", tried=tried)) == []

    assert repairs.note(event) == helped
    assert repairs.note(SAID) == ([] if helped else HELPED)


def test_later_responses_have_repairs_of_their_own() -> None:
    """Without any nothing is confirmed."""
    repairs = TriedRepairs()
    assert repairs.note(SAID) == []
    for tried in (FIRST, SECOND):
        repairs.note(Status("Again.", tried=tried))
        [helped] = repairs.note(SAID)
        assert helped == tried._replace(helped_at_once=True)


TOOLS = [{"type": "function", "name": name, "parameters": {}} for name in "ab"]
REFUSAL = {"type": "invalid_request_error", "param": "tools[0]", "message": "Not here."}
REFUSED = replying(json.dumps({"error": REFUSAL}), 400)
THINKS = wire.added({**wire.reasoning_item(), "encrypted_content": "s"})


def failed(code: str, *begun: wire.Event) -> wire.Events:
    error = {"code": code, "message": "No."}
    return [wire.created(), *begun, wire.ended("failed", error=error)]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("streams", "confirmed"),
    [
        ([wire.whole_stream(wire.message("Hello"))], 1),
        ([failed("invalid_prompt")], 0),
        ([failed("server_error")] * 2, 0),
        ([failed("server_error", THINKS), failed("server_error")], 0),
        ([failed("server_error", THINKS)] * 2, 0),
    ],
    ids=[
        "an answer",
        "a refusal in a stream",
        "a failure after the last retry",
        "a failure after a thought of an earlier attempt",
        "a failure after a thought",
    ],
)
async def test_repair_is_confirmed_by_an_answer_alone(
    connections: Connections, streams: list[wire.Events], confirmed: int
) -> None:
    """A response that fails says nothing about what was changed before it."""
    answers = [streaming(wire.on_the_wire(*events)) for events in streams]
    request = asking().model_copy(update={"tools": TOOLS})
    tried = TriedRepairs()
    helped: list[TriedRepair] = []

    async with Upstream(in_turn(REFUSED, *answers)) as upstream:
        within = limits(retries=1, max_wait=0.6)
        for event in await report(connections, upstream.endpoint, request, within):
            helped += tried.note(event)
        assert len(upstream.requests) == 1 + len(streams)

    assert len(helped) == confirmed


NO = ApiError("bad", message="No.")
NOR_THAT = ApiError("bad", message="Nor that.")
NO_SUMMARY = LeaveOutParameter("reasoning.summary")
NO_TOOL = LeaveOutTool("a")


@pytest.mark.parametrize(
    ("repairs", "second", "confirmed"),
    [
        pytest.param(
            (NO_SUMMARY, NO_TOOL),
            NO,
            {NO_TOOL: True},
            id="same refusal: the first was in vain",
        ),
        pytest.param(
            (NO_SUMMARY, NO_TOOL),
            NOR_THAT,
            {NO_SUMMARY: False, NO_TOOL: True},
            id="another refusal: both helped",
        ),
        pytest.param(
            (SendAsText("a"), SendAsText("b")),
            NO,
            {SendAsText("a"): False, SendAsText("b"): True},
            id="two pictures have the same refusal",
        ),
    ],
)
def test_refusal_that_follows_a_trial_judges_it(
    repairs: tuple[Repair, Repair], second: ApiError, confirmed: dict[Repair, bool]
) -> None:
    """Only the last tried is seen to help at once."""
    all_tried = map(TriedRepair, repairs, (NO, second))

    helped = repairs_that_helped([*all_tried])

    assert {tried.repair: tried.helped_at_once for tried in helped} == confirmed
