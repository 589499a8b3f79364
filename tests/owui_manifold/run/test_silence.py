"""What the page says while nothing comes, and when the wait is over."""

import asyncio
from typing import Any

import pytest

from calls.desk import Desk
from calls.outcomes import NATIVE, RESPONDED, advice, chunks_of, closings, host_events
from calls.sample import TOOL, chat
from calls.valves import expert
from openai_responses.loop.events import ResponseDone, Status
from openai_responses.repairs.chat_repairs import LeaveOutPlainReasoning
from openai_responses.repairs.finding import TriedRepair
from openai_responses.transport.connections import Connections
from owui_manifold.pipe import Pipe
from owui_manifold.run.silence import WaitingLines
from stand_in.host import host_callable

pytestmark = pytest.mark.asyncio

SILENT = "Still thinking, {}"


class Page:
    """Takes what is told next to the stream."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.hidden = False
        self.changed = asyncio.Event()

    async def __call__(self, event: dict[str, Any]) -> None:
        assert event["type"] == "status"
        self.hidden = bool(event["data"].get("hidden"))
        self.lines += [event["data"]["description"]] * (not self.hidden)
        self.changed.set()

    async def answer(self, pipe: Pipe, text: str, **given: Any) -> list[dict[str, Any]]:
        """Return the chunks of an answer that this page waits for."""
        body = chat(text, tools=[TOOL])
        return await chunks_of(pipe, body, **NATIVE, **given, __event_emitter__=self)


@pytest.mark.parametrize("streams", [True, False])
async def test_silence_is_reported_each_minute(streams: bool, desk: Desk) -> None:
    desk.set_valves(ENABLE_STREAM=streams)
    page = Page()

    chunks = await page.answer(desk.pipe, "sim:chat,wait=130000")

    assert page.lines == [SILENT.format(time) for time in ("20 s", "1 min", "2 min")]
    responded, last = host_events(chunks, "status")
    assert responded == {"description": RESPONDED, "done": True}
    assert closings(chunks) == [last["description"]]
    assert "note" not in last["description"]


async def test_endless_silence_hides_its_line_at_the_end(desk: Desk) -> None:
    """The line goes with the answer, which has a message of its own.

    Each silence is told from its own beginning.
    """
    page = Page()

    chunks = await page.answer(desk.pipe, "sim:stall,wait=70000")

    times = ("20 s", "1 min", "20 s", "1 min", "2 min", "3 min", "4 min")
    assert page.lines == [SILENT.format(time) for time in times]
    assert "stopped sending in the middle of the answer" in advice(chunks)
    assert host_events(chunks, "status")[-2]["hidden"]
    await asyncio.sleep(1)
    assert not page.hidden  # the stream has said it


async def test_failure_hides_that_a_silence_has_ended(desk: Desk) -> None:
    page = Page()

    chunks = await page.answer(desk.pipe, "sim:failed,wait=30000")

    assert page.lines == [SILENT.format("20 s")]
    responded, hiding, *_ = host_events(chunks, "status")
    assert responded["description"] == RESPONDED
    assert hiding["hidden"]


async def test_time_of_tools_and_of_waits_is_no_silence(desk: Desk) -> None:
    """The server has nothing to say meanwhile."""
    desk.set_valves(EXPERT_JSON=expert(max_retries=1))
    page = Page()

    async def slow(city: str) -> str:
        await asyncio.sleep(100)
        return city

    tool = {"callable": host_callable(slow), "spec": TOOL["function"]}
    await page.answer(desk.pipe, "sim:tool,wait=30000", __tools__={"get_weather": tool})
    assert page.lines == [SILENT.format("20 s")] * 2  # before the tool, and after it
    page = Page()
    chunks = await page.answer(desk.pipe, "sim:chat,status=503,times=1,retry-after=50")

    assert page.lines == []
    retry, *rest = [line["description"] for line in host_events(chunks, "status")]
    assert retry.startswith("Trying again in 50 s. ")
    assert rest == [RESPONDED, *closings(chunks)]


async def test_failure_leaves_no_empty_line(desk: Desk) -> None:
    """The page would draw it as a bullet without text; the last line hides the rest."""
    desk.set_valves(EXPERT_JSON=expert(max_retries=1))
    page = Page()

    chunks = await page.answer(desk.pipe, "sim:chat,status=503,retry-after=1")

    retry, last = [line["description"] for line in host_events(chunks, "status")]
    assert retry.startswith("Trying again in 1 s. ")
    assert last == "Failed after 2 attempts"


async def test_stop_hides_the_line(desk: Desk) -> None:
    """The answer has ended, and no one waits any more."""
    page = Page()
    answer = asyncio.create_task(page.answer(desk.pipe, "sim:stall"))
    await asyncio.wait_for(page.changed.wait(), 60)
    page.changed.clear()

    answer.cancel()
    await asyncio.wait_for(page.changed.wait(), 60)

    assert page.lines == [SILENT.format("20 s")]
    assert page.hidden


async def test_silence_of_a_task_is_not_reported(desk: Desk) -> None:
    """A title is no answer that somebody waits for."""
    page = Page()
    body = chat("sim:chat,wait=30000")
    await desk.result(body, __task__="title_generation", __event_emitter__=page)

    assert page.lines == []
    assert not page.hidden


async def test_step_of_a_repair_is_no_wait(connections: Connections) -> None:
    """Its line stays; that of a new attempt is replaced when the server speaks."""
    lines = WaitingLines(None, connections)
    for event in (
        Status("Less.", TriedRepair(LeaveOutPlainReasoning())),
        ResponseDone(),
    ):
        assert lines.note(event) == []
    assert lines.note(Status("Again.")) == []
    assert lines.note(ResponseDone()) == [Status(RESPONDED, is_note=False)]
