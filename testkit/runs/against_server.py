"""Runs against a server, for tests that ask what is reported of them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from aiohttp import web

from openai_responses.endpoint import Endpoint
from openai_responses.items import Item
from openai_responses.loop.attempt import Limits
from openai_responses.loop.events import RunDone, RunEvent, Status, ToolOutput
from openai_responses.loop.run import run
from openai_responses.loop.spending import Spending
from openai_responses.loop.tools import Toolset
from openai_responses.repairs.request_repairs import (
    LeaveOutParameter,
    Repair,
    ReplaceEffort,
)
from openai_responses.requests.build import ResponsesRequest
from openai_responses.retries import RetryPolicy
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Timeouts
from openai_responses.transport.stream import ItemDone
from runs.log import answer_text, log_of
from runs.tools import MemoryTools
from simulator import Simulator
from upstream.server import Answerer, Upstream, in_turn

Kind = TypeVar("Kind")
CANARY = "sk-proj-CANARY123"
"""What must never be reported."""


def limits(retries: int = 0, max_wait: float = 60.0, **timeouts: float) -> Limits:
    """Return limits under which everything is told at once; no retries by default."""
    return Limits(0.0, Timeouts(**timeouts), RetryPolicy(retries, max_wait))


AT_ONCE = limits()


def asking(text: str = "Hi", stream: bool = True) -> ResponsesRequest:
    parts = [{"type": "input_text", "text": text}]
    items = [{"type": "message", "role": "user", "content": parts}]
    return ResponsesRequest(model="gpt-5.6-sol", input=items, stream=stream)


def simulated(sim: Simulator) -> Endpoint:
    return Endpoint(sim.base_url, sim.api_key)


async def report(
    connections: Connections,
    endpoint: Endpoint,
    request: ResponsesRequest | None = None,
    within: Limits = AT_ONCE,
    toolset: Toolset | None = None,
    spending: Spending | None = None,
) -> list[RunEvent]:
    """Return what a run reports; its last event, and only that, says how it ended."""
    asked = request or asking()
    reported = run(asked, endpoint, connections, within, toolset, spending)
    events = [event async for event in reported]
    *before, last = [isinstance(event, RunDone) for event in events]
    assert last
    assert not any(before)
    assert CANARY not in repr(end_of(events).ending)
    return events


def assert_output_holds(events: list[RunEvent]) -> None:
    """Each item that ended is at its place of the output, as it ended last."""
    output = end_of(events).output
    ended: dict[int, Item] = {}
    for event in events:
        if isinstance(event, ItemDone | ToolOutput):
            ended[event.output_index] = event.item
    for index, item in ended.items():
        assert output[index] == item


class Told:
    """What a run told, and what it sent.

    `log` has a line for each event, `sent` the body of each request, `called` the calls
    that tools in memory got. `notes` are the messages that a person saw while they
    waited, `repairs` what was changed to get an answer; "" is a retry.
    """

    def __init__(
        self,
        events: list[RunEvent],
        sent: Sequence[Any] = (),
        requests: Sequence[web.Request] = (),
        toolset: Toolset | None = None,
    ) -> None:
        """Read the end of the run, and what was shown of it."""
        self.events, self.sent, self.requests = events, sent, requests
        tools = toolset and toolset.tools
        self.called = tools.called if isinstance(tools, MemoryTools) else []
        self.end = end_of(events)
        self.ending = self.end.ending
        self.kind = self.ending.kind
        self.output = list(self.end.output)
        self.text = answer_text(events)
        self.notes = notes_of(events)
        self.repairs = repairs_of(events)

    @property
    def log(self) -> list[str]:
        return log_of(self.events)

    def of(self, kind: type[Kind]) -> list[Kind]:
        return [event for event in self.events if isinstance(event, kind)]


class Runs:
    """The runs of a test, over its connections."""

    def __init__(self, connections: Connections) -> None:
        self.connections = connections

    async def at(self, endpoint: Endpoint, within: Limits = AT_ONCE) -> Told:
        return Told(await report(self.connections, endpoint, within=within))

    async def against(
        self,
        *answers: Answerer,
        request: ResponsesRequest | None = None,
        within: Limits = AT_ONCE,
        toolset: Toolset | None = None,
        **endpoint: Any,
    ) -> Told:
        """Ask a server that answers so in turn, and from then on like the last time."""
        async with Upstream(in_turn(*answers)) as upstream:
            asked = replace(upstream.endpoint, **endpoint)
            events = await report(self.connections, asked, request, within, toolset)
            return Told(events, upstream.bodies, upstream.requests, toolset)

    async def of(
        self,
        sim: Simulator,
        asked: str | ResponsesRequest,
        within: Limits = AT_ONCE,
        toolset: Toolset | None = None,
        spending: Spending | None = None,
    ) -> Told:
        """Ask the simulator; what a run with tools tells of its output holds."""
        request = asking(asked) if isinstance(asked, str) else asked
        way = simulated(sim)
        events = await report(self.connections, way, request, within, toolset, spending)
        if toolset is not None:
            assert_output_holds(events)
        sent = [request.body for request in sim.requests]
        return Told(events, sent, toolset=toolset)


def end_of(events: list[RunEvent]) -> RunDone:
    assert isinstance(events[-1], RunDone)
    return events[-1]


def notes_of(events: list[RunEvent]) -> list[str]:
    return [event.message for event in events if isinstance(event, Status)]


def repairs_of(events: list[RunEvent]) -> list[str]:
    """Return what was changed to get an answer, in order; "" for a retry."""
    return [
        _changed(event.tried.repair) if event.tried else ""
        for event in events
        if isinstance(event, Status)
    ]


def _changed(repair: Repair) -> str:
    if isinstance(repair, LeaveOutParameter):
        return repair.path
    if isinstance(repair, ReplaceEffort):
        return "reasoning.effort"
    return type(repair).__name__
