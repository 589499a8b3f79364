"""The agent over the wire: requests that a strict server takes."""

from collections.abc import Sequence
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
    question,
)
from gpt5_agent.events import AgentEvent
from gpt5_agent.request import AgentRequest, OwnToolSettings
from openai_responses.loop.attempts import Attempts
from openai_responses.loop.events import Status
from openai_responses.requests.build import Settings
from openai_responses.transport.connections import Connections
from runs.against_server import limits, simulated
from simulator import Simulator
from strategies.guide import Guide

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]


class Desk:
    """Asks the agent, with a strict server behind it."""

    def __init__(self, sim: Simulator, connections: Connections) -> None:
        self.sim = sim
        self.tool = WeatherTool()
        self._connections = connections

    def asked(self, text: str, **more: Any) -> AgentRequest:
        """A question with a tool of the agent's own, at medium effort."""
        usual: dict[str, Any] = {
            "endpoint": simulated(self.sim),
            "settings": Settings(effort="medium", summary="auto"),
        }
        return question(self.tool, text=text, **{**usual, **more})

    async def ask(self, text: str, **more: Any) -> list[AgentEvent]:
        asked = self.asked(text, **more)
        attempts = Attempts(asked.endpoint, self._connections, limits())
        return await events_of(asked, attempts)

    @property
    def bodies(self) -> Sequence[Any]:
        return [request.body for request in self.sim.requests]


@pytest.fixture
def desk(sim: Simulator, connections: Connections) -> Desk:
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


@pytest.mark.parametrize(
    ("asker", "sent"), [({"chat": "u-1/c-1"}, None), ({}, "required")]
)
async def test_forced_call_is_forced_again_for_a_program(
    asker: dict[str, Any], sent: str | None, desk: Desk
) -> None:
    """It chooses anew in each round, as LangChain does until its schema was called.

    Open WebUI sends what a chat has set, and would call tools without an end.
    """
    asked = [{"role": "user", "content": "Hi"}]
    messages = [*asked, *called_by_the_host(calls("host_weather"), output="Rain.")]
    body = {"tools": [host_tool()], "tool_choice": "required"}

    await desk.ask("", messages=messages, body=body, **asker)

    assert desk.bodies[0].get("tool_choice") == sent


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
        ({"body": {"tool_choice": "required", "tools": [{"function": {}}]}}, "no name"),
        ({"guide": Guide(system_prompt="A.", memory_policy="vector-db")}, "vector-db"),
    ],
)
async def test_r25_what_cannot_be_asked_is_an_ending(
    more: dict[str, Any], words: str, desk: Desk
) -> None:
    events = await desk.ask("Hi", **more)

    assert ending_of(events).kind == "invalid"
    assert words in ending_of(events).message
    assert desk.bodies == []
