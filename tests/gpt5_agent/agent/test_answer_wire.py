"""The agent over the wire: requests that a strict server takes."""

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from agents.sample import (
    KeptLog,
    WeatherTool,
    answered,
    called_by_the_host,
    calls,
    ending_of,
    events_of,
    host_tool,
    metadata_of,
    question,
)
from gpt5_agent.events import AgentEvent, NewMessage
from gpt5_agent.request import AgentRequest, OwnToolSettings
from openai_responses.items import is_call, is_call_output, is_reasoning, message_text
from openai_responses.loop.events import Status
from openai_responses.repairs.chat_repairs import LeaveOutReasoning
from openai_responses.requests.build import Settings
from openai_responses.requests.replay import Origin
from openai_responses.transport.connections import Connections
from openai_responses.transport.stream import ItemDone
from owui_chat.messages import LEFT_OUT
from owui_chat.storage.details_carrier import write_details
from runs.against_server import limits, simulated
from runs.sample import message, reasoning
from simulator import Simulator
from simulator.faults import FailedStart
from stand_in.signing import SIGN
from strategies.context import ContextSource
from strategies.guide import Guide
from strategies.policy import build_system_instruction
from upstream.odd_streams import sending
from upstream.server import Upstream

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
HELLO = message("1", "Hello.")


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
        """All that the agent reports."""
        return await events_of(self.asked(text, **more))

    @property
    def bodies(self) -> Sequence[Any]:
        """What was sent."""
        return [request.body for request in self.sim.requests]


@pytest.fixture
def desk(sim: Simulator, connections: Connections) -> Desk:
    """Return a desk."""
    return Desk(sim, connections)


@pytest.mark.filterwarnings("ignore:Sending a large body:ResourceWarning")
async def test_the_oldest_messages_of_a_long_chat_are_left_out(desk: Desk) -> None:
    """The model and the person are told."""
    earlier = [
        {"role": role, "content": "Hi"}
        for _ in range(8200)
        for role in ("user", "assistant")
    ]
    messages = [*earlier, {"role": "user", "content": "sim:short"}]

    events = await desk.ask("", messages=messages)

    [body] = desk.bodies
    assert message_text(body["input"][0]) == LEFT_OUT
    assert len(body["input"]) < 8200
    assert Status(LEFT_OUT) in events


async def test_each_round_extends_the_previous_request(desk: Desk) -> None:
    """What is sent later begins with what was sent before; the tools stay."""
    events = await desk.ask("sim:tool-twice")

    assert len(desk.bodies) == 3
    assert answered(events) == ["Rain in Zürich."] * 2
    for before, after in pairwise(desk.bodies):
        assert after["input"][: len(before["input"])] == before["input"]
        assert after["tools"] == before["tools"]
        assert after["instructions"] == before["instructions"]
    metadata = metadata_of(events)
    assert metadata.ending == "completed"
    assert (metadata.rounds, metadata.tool_calls) == (3, 2)
    assert metadata.usage.reasoning > 0
    assert any(isinstance(event, NewMessage) for event in events)


@pytest.mark.parametrize(
    "stream", ["unknown-events", "early-delta", "no-part-done", "keepalive"]
)
async def test_r11_chunks_that_are_missing_or_unknown_are_skipped(
    stream: str, desk: Desk
) -> None:
    """The answer is whole all the same."""
    events = await desk.ask(f"sim:{stream}")

    [answer] = [event for event in events if isinstance(event, NewMessage)]
    assert answer.content
    assert ending_of(events).kind == "completed"


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


async def test_r10_last_answer_keeps_the_tools_and_may_call_none(desk: Desk) -> None:
    """The prompt cache lives on them."""
    events = await desk.ask("sim:tool-forever", maximum_iterations=2)

    assert [body.get("tool_choice") for body in desk.bodies] == [None, None, "none"]
    assert all(body["tools"] == desk.bodies[0]["tools"] for body in desk.bodies)
    assert len(desk.tool.called) == 1
    assert "Maximum iteration limit (2) reached" in str(answered(events))
    # This model has nothing to say then.
    assert ending_of(events).message.startswith("The model requested more tool calls")


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


async def test_r8_request_says_who_the_agent_is(desk: Desk) -> None:
    """Guide, valve, chat; policies, overrides; then what there is to read."""
    guide = Guide(system_prompt="You sail.", temperature=0.5)
    persona = {
        "instruction": "Be brief.",
        "prompt_policy_overrides": '{"extra_policy": "Last."}',
        "guide": guide,
    }
    messages = [
        {"role": "system", "content": "In German."},
        {"role": "user", "content": "Weather?"},
    ]

    events = await desk.ask("", messages=messages, context="It froze.", **persona)

    [body] = desk.bodies
    base = "You sail.\n\nBe brief.\n\nIn German."
    policies = build_system_instruction(base, '{"extra_policy": "Last."}')
    entry = '<entry name="Context 1">\nIt froze.\n</entry>'
    assert body["instructions"] == f"{policies}\n\n<context>\n{entry}\n</context>"
    assert body["input"][0]["content"] == [{"type": "input_text", "text": "Weather?"}]
    assert "temperature" not in body
    assert [e.name for e in events if isinstance(e, ContextSource)] == ["Context 1"]


async def test_temperature_of_a_guide_goes_where_the_model_takes_it(
    desk: Desk,
) -> None:
    """A temperature that the caller gives wins over that of the guide."""
    guide = Guide(system_prompt="You sail.", temperature=0.5)
    plain = {"model": "gpt-4.1", "settings": Settings(), "guide": guide}

    await desk.ask("Hi", **plain)
    await desk.ask("Hi", body={"temperature": 0.1}, **plain)

    assert [body["temperature"] for body in desk.bodies] == [0.5, 0.1]


async def test_tool_that_had_to_be_called_has_been_after_a_round(desk: Desk) -> None:
    """The model may answer then."""
    named = {"type": "function", "function": {"name": "get_weather"}}

    await desk.ask("sim:tool", body={"tool_choice": named})

    choices = [body.get("tool_choice") for body in desk.bodies]
    assert choices == [{"type": "function", "name": "get_weather"}, None]


async def test_reasoning_that_was_refused_is_not_sent_again(desk: Desk) -> None:
    """Not in later rounds either."""
    turn = [{**reasoning("1"), "encrypted_content": "gAAAA-not-ours"}, HELLO]
    pairs = [(item, message_text(item)) for item in turn]
    details = write_details("1", pairs, Origin("gpt-5", "127.0.0.1"), {}, SIGN)
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello.", "reasoning_details": details},
        {"role": "user", "content": "sim:tool"},
    ]

    events = await desk.ask("", messages=messages)

    sent = ["gAAAA-not-ours" in str(body["input"]) for body in desk.bodies]
    assert sent == [True, False, False]
    all_tried = [event.tried for event in events if isinstance(event, Status)]
    repairs = [type(tried.repair) for tried in all_tried if tried]
    assert repairs == [LeaveOutReasoning]
    assert ending_of(events).kind == "completed"


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"messages": []}, "There is no message to answer"),
        ({"body": {"tool_choice": "required", "tools": [{"function": {}}]}}, "no name"),
        (
            {"guide": Guide(system_prompt="A.", memory_policy="vector-db")},
            "vector-db",
        ),
        ({"messages": ["no message"]}, "not an object with a role"),
    ],
)
async def test_r25_what_cannot_be_asked_is_an_ending(
    more: dict[str, Any], words: str, desk: Desk
) -> None:
    """With a message; nothing is sent, nothing raised."""
    events = await desk.ask("Hi", **more)

    assert ending_of(events).kind == "invalid"
    assert words in ending_of(events).message
    assert desk.bodies == []


async def test_host_tools_are_offered_beside_our_own(desk: Desk) -> None:
    """A name that the API forbids is sent as another one."""
    await desk.ask("Hi", body={"tools": [host_tool("host weather")]})

    [body] = desk.bodies
    names = [tool["name"] for tool in body["tools"]]
    assert names[1] == "get_weather"
    assert names[0].startswith("host_weather_")


@pytest.mark.parametrize(
    "fault",
    [
        FailedStart("failed", code="rate_limit_exceeded", after_rounds=1),
        FailedStart("error", code="server_is_overloaded", after_rounds=1),
        FailedStart("both", code="server_is_overloaded", after_rounds=1, usage=True),
        FailedStart("cut", after_rounds=1),
        FailedStart("drop", after_rounds=1),
        FailedStart("stall", after_rounds=1),
    ],
    ids=lambda fault: fault.ending,
)
async def test_hiccup_of_a_later_round_ends_nothing(
    desk: Desk, fault: FailedStart
) -> None:
    """Nothing of the round was shown, so it is asked again; no tool runs twice."""
    desk.sim.faults.append(fault)

    events = await desk.ask("sim:tool", limits=limits(1, idle=0.3))

    assert ending_of(events).kind == "completed"
    assert len(desk.tool.called) == 1
    assert [body["input"] for body in desk.bodies][1:] == 2 * [desk.bodies[-1]["input"]]
    assert metadata_of(events).rounds == 2


async def test_refused_round_is_asked_again(desk: Desk) -> None:
    """Each round has its own attempts."""
    events = await desk.ask(
        "sim:tool,status=503,times=1,retry-after-ms=1", limits=limits(1)
    )

    assert ending_of(events).kind == "completed"
    assert len(desk.tool.called) == 1
    assert len(desk.bodies) == 4


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


@pytest.mark.parametrize("scenario", ["misaligned", "misaligned-first"])
async def test_safety_stop_ends_the_run(desk: Desk, scenario: str) -> None:
    """The call that had arrived whole is not made, and nothing more is asked."""
    events = await desk.ask(f"sim:{scenario}")

    assert len(desk.bodies) == 1
    assert desk.tool.called == []
    ending = ending_of(events)
    assert ending.code == "misalignment_policy_violation"
    assert "“Ask before you read **secrets**.”" in ending.message
    assert not any(isinstance(event, NewMessage) for event in events)


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


@pytest.mark.parametrize("profile", ["tagged", "half-tagged"])
async def test_thoughts_in_tags_of_another_server(desk: Desk, profile: str) -> None:
    """They are reasoning: on the page, in the answer, and in what is sent again."""
    headers = {"X-Simulator-Profile": profile}
    endpoint = replace(simulated(desk.sim), extra_headers=headers)
    events = await desk.ask("sim:tool,delay=2", endpoint=endpoint)

    assert answered(events) == ["Rain in Zürich."]
    ended = [event.item for event in events if isinstance(event, ItemDone)]
    assert [item["type"] for item in ended] == [
        *["reasoning", "function_call", "reasoning", "message"]
    ]
    assert "think>" not in json.dumps([*ended, *desk.bodies])
    [answer] = [event.content for event in events if isinstance(event, NewMessage)]
    assert answer == message_text(ended[-1])


@pytest.mark.parametrize("server", ["llama.cpp", "vllm-0.32.0"])
async def test_plain_reasoning_goes_back_between_rounds(
    server: str, connections: Connections
) -> None:
    """With its id and its words, as the server gave it (recorded)."""
    tool = WeatherTool()
    async with Upstream(sending(f"{server}.1", f"{server}.2")) as upstream:
        asked: Json = {"endpoint": upstream.endpoint, "connections": connections}
        events = await events_of(question(tool, **asked, limits=limits()))

    assert tool.called == [{"city": "Zürich"}]
    assert ending_of(events).kind == "completed"
    given = next(e.item for e in events if isinstance(e, ItemDone))
    [sent] = filter(is_reasoning, upstream.bodies[1]["input"])
    assert sent["id"] == given["id"]
    assert sent["content"] == given["content"]
    assert "I call the function" in str(sent["content"])
