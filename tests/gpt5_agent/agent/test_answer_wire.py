"""The agent over the wire: requests that a strict server takes."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agents.sample import (
    KeptLog,
    WeatherTool,
    called_by_the_host,
    calls,
    ending_of,
    events_of,
    host_tool,
    metadata_of,
    question,
)
from gpt5_agent.events import AgentEvent
from gpt5_agent.request import AgentRequest, OwnToolSettings
from openai_responses.items import is_call, is_call_output, is_reasoning
from openai_responses.loop.events import Status
from openai_responses.requests.build import Settings
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone
from runs.against_server import limits, simulated
from simulator import Simulator
from simulator.faults import FailedStart
from strategies.guide import Guide
from upstream.odd_streams import sending
from upstream.server import Upstream

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


class Desk:
    """Asks the agent, with a strict server behind it."""

    def __init__(self, sim: Simulator, connections: Connections) -> None:
        self.sim = sim
        self.tool = WeatherTool()
        self._to = {"endpoint": simulated(sim), "connections": connections}

    def asked(self, text: str, **more: Any) -> AgentRequest:
        """A question with a tool of the agent's own, at medium effort."""
        usual: dict[str, Any] = {
            "settings": Settings(effort="medium", summary="auto"),
            "limits": limits(),
        }
        return question(self.tool, text=text, **{**self._to, **usual, **more})

    async def ask(self, text: str, **more: Any) -> list[AgentEvent]:
        return await events_of(self.asked(text, **more))

    @property
    def bodies(self) -> Sequence[Any]:
        return [request.body for request in self.sim.requests]


@pytest.fixture
def desk(sim: Simulator, connections: Connections) -> Desk:
    """Return a desk."""
    return Desk(sim, connections)


async def test_r32_null_is_no_content(desk: Desk) -> None:
    """Clients send it with tool calls."""
    messages = [
        {"role": "system", "content": None},
        {"role": "user", "content": "Hi"},
        *called_by_the_host(calls("get_weather"), content=None, output=None),
    ]

    events = await desk.ask("", messages=messages)

    assert ending_of(events).kind == "completed"
    [body] = desk.bodies
    kinds = [item["type"] for item in body["input"]]
    assert kinds == ["message", "function_call", "function_call_output"]


async def test_tools_over_the_limit_of_the_api_are_counted(desk: Desk) -> None:
    """Those of the last servers are left out, not the ones of Open WebUI or delegate."""
    log = KeptLog()
    servers = [WeatherTool(f"s_{number}") for number in range(100)]
    hosts = [host_tool(f"host_{number}") for number in range(40)]
    own = OwnToolSettings(tools=(desk.tool, *servers), delegates=True)

    events = await desk.ask("Hi", own=own, body={"tools": hosts}, log=log)

    assert ending_of(events).kind == "completed"
    [body] = desk.bodies
    names = [tool["name"] for tool in body["tools"]]
    assert len(names) == 128
    assert {"delegate", "get_weather", "host_39", "s_0", "s_85"} <= set(names)
    [line] = [line for line in log.lines if "128" in line]
    assert line.startswith("Left out: 14 of this chat's 142 tools")
    assert line in [event.message for event in events if isinstance(event, Status)]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"messages": []}, "There is no message to answer"),
        ({"body": {"tool_choice": "required", "tools": [{"function": {}}]}}, "no name"),
        ({"guide": Guide(system_prompt="A.", memory_policy="vector-db")}, "vector-db"),
        ({"messages": ["no message"]}, "not an object with a role"),
    ],
)
async def test_r25_what_cannot_be_asked_is_an_ending(
    more: dict[str, Any], words: str, desk: Desk
) -> None:
    events = await desk.ask("Hi", **more)

    assert ending_of(events).kind == "invalid"
    assert words in ending_of(events).message
    assert desk.bodies == []


async def test_hiccup_of_a_later_round_ends_nothing(desk: Desk) -> None:
    """Nothing of the round was shown, so it is asked again; no tool runs twice."""
    desk.sim.faults.append(FailedStart("cut", after_rounds=1))

    events = await desk.ask("sim:tool", limits=limits(1, idle=0.3))

    assert ending_of(events).kind == "completed"
    assert len(desk.tool.called) == 1
    assert [body["input"] for body in desk.bodies][1:] == 2 * [desk.bodies[-1]["input"]]
    assert metadata_of(events).rounds == 2


async def test_long_work_is_compacted_between_two_rounds(desk: Desk) -> None:
    """The next round begins with the compaction, which replaces all before it."""
    way = [{"type": "compaction", "compact_threshold": 1000}]
    settings = Settings(effort="medium", defaults={"context_management": way})
    text = f"sim:tool {'word ' * 2000}"

    events = await desk.ask(text, settings=settings)

    assert ending_of(events).kind == "completed"
    first, second = (body["input"] for body in desk.bodies)
    assert first[-1]["content"] != second[0].get("content")
    kinds = [item["type"] for item in second]
    assert kinds[0] == "compaction"
    assert kinds[-2:] == ["function_call", "function_call_output"]
    assert len(desk.tool.called) == 1


async def test_calls_that_are_numbered_anew_in_each_response(desk: Desk) -> None:
    """The host, which runs them, gets an id of its own for each, and gives it back."""
    numbered = {"X-Simulator-Profile": "bedrock"}
    asked: Json = {
        "endpoint": replace(simulated(desk.sim), extra_headers=numbered),
        "own": OwnToolSettings(),
        "body": {"tools": [host_tool()]},
    }
    messages: list[Json] = [{"role": "user", "content": "sim:tool-twice"}]
    for city in ("Bern", "Basel"):
        events = await desk.ask("", messages=messages, **asked)
        done = [event.item for event in events if isinstance(event, ItemDone)]
        [call] = filter(is_call, done)
        messages += called_by_the_host(call, output=f"Rain in {city}.")
    await desk.ask("", messages=messages, **asked)

    items = desk.bodies[-1]["input"]
    of_calls = [item for item in items if is_call(item) or is_call_output(item)]
    assert [(item["call_id"], item.get("output")) for item in of_calls] == [
        ("call_0", None),
        ("call_0", "Rain in Bern."),
        ("call_0_2", None),
        ("call_0_2", "Rain in Basel."),
    ]
    for before, after in pairwise(desk.bodies):
        kept = [item for item in before["input"] if not is_reasoning(item)]
        assert [item for item in after["input"] if item in kept] == kept


async def test_plain_reasoning_goes_back_between_rounds(
    connections: Connections,
) -> None:
    """With its id and its words, as the server gave it (recorded)."""
    tool = WeatherTool()
    async with Upstream(sending("vllm-0.32.0.1", "vllm-0.32.0.2")) as upstream:
        asked: Json = {"endpoint": upstream.endpoint, "connections": connections}
        events = await events_of(question(tool, **asked, limits=limits()))

    assert tool.called == [{"city": "Zürich"}]
    assert ending_of(events).kind == "completed"
    given = next(e.item for e in events if isinstance(e, ItemDone))
    [sent] = filter(is_reasoning, upstream.bodies[1]["input"])
    assert sent["id"] == given["id"]
    assert sent["content"] == given["content"]
    assert "I call the function" in str(sent["content"])
