"""Every event of every scenario is one that the openai package knows."""

import asyncio
from typing import Any

import pytest
from openai.types.responses import Response
from pydantic import TypeAdapter

from simulator import Simulator
from simulator.scenarios.catalog import ALL_SCENARIOS
from simulator.scenarios.scenario import Reply
from simulator.transcripts import make_call_valid
from upstream.package_types import check_event, unknown_fields
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
TOOLS = [FUNCTION, {"type": "custom", "name": "apply_note"}]
INCLUDE = ["reasoning.encrypted_content", "web_search_call.action.sources"]
OUTPUTS = {"function_call", "custom_tool_call"}
STRANGERS = {"keepalive", "response.aura.delta", "response.rate_limits.updated"}
TERMINAL = {"response.completed", "response.failed", "response.incomplete", "error"}
UNFINISHED = {"cut", "drop", "stall", "tool-cut", "remark-cut"}
REFUSED_TWICE = {"misaligned", "cyber-failed", "too-large", "late-reason"}
"""Refused streams: `error` and `response.failed` (recorded)."""
NEWER_THAN_THE_PACKAGE = {"misaligned", "cyber-failed"}
"""Errors with a field or a code that the package's types do not have yet."""
STREAMED = [
    scenario
    for scenario in ALL_SCENARIOS
    if scenario.name not in {"stall", "drop", "slow"}
    and all(
        isinstance(due, Reply) or scenario.name in ("long", "big-line", "task")
        for due in scenario.replies
    )
    and "status=" not in scenario.options
]


async def run_of(client: Client, scenario: str) -> list[list[dict[str, Any]]]:
    """Return the events of each response of a run, its calls answered."""
    items: list[dict[str, Any]] = [{"role": "user", "content": f"sim:{scenario}"}]
    streams = []
    for _ in range(4):
        events = await client.stream(
            items, tools=TOOLS, include=INCLUDE, reasoning={"summary": "auto"}
        )
        streams.append(events.events)
        last = events.events[-1].get("response", {"output": []})
        calls = [item for item in last["output"] if item["type"] in OUTPUTS]
        if not calls:
            break
        items += [
            make_call_valid(
                {k: v for k, v in item.items() if k not in ("id", "status")}
            )
            for item in last["output"]
        ]
        items += [
            {
                "type": f"{item['type']}_output",
                "call_id": make_call_valid(item)["call_id"],
                "output": "rain",
            }
            for item in calls
        ]
    return streams


@pytest.mark.parametrize(
    "name",
    [
        scenario.name
        for scenario in STREAMED
        if scenario.name not in NEWER_THAN_THE_PACKAGE
    ],
)
async def test_every_event_has_the_type_of_the_package(
    client: Client, name: str
) -> None:
    """The events of a scenario validate, with no field that the class lacks."""
    streams = await run_of(client, name)

    for event in (event for events in streams for event in events):
        if event["type"] not in STRANGERS:
            check_event(event)


@pytest.mark.parametrize("name", [scenario.name for scenario in STREAMED])
async def test_every_stream_is_numbered_and_ends_once(
    client: Client, name: str
) -> None:
    """Sequence numbers rise from 0 by one; one terminal event stands last."""
    for events in await run_of(client, name):
        types = [event["type"] for event in events]

        numbers = [event["sequence_number"] for event in events]
        assert numbers == list(range(len(events)))
        expected = 2 if name in REFUSED_TWICE else int(name not in UNFINISHED)
        assert sum(kind in TERMINAL for kind in types) == expected
        assert types[-1] in TERMINAL or name in UNFINISHED
        if name != "error-first":
            assert types[:2] == ["response.created", "response.in_progress"]


async def test_a_field_that_no_class_knows_is_found() -> None:
    """The check of this file can fail: it sees strange fields, deep ones too."""
    event = {
        "type": "response.output_item.done",
        "sequence_number": 1,
        "output_index": 0,
        "item": {"id": "rs_1", "type": "reasoning", "summary": [], "mood": "calm"},
    }

    with pytest.raises(AssertionError):
        check_event(event)


async def test_every_json_answer_is_a_response(client: Client) -> None:
    """Without a stream the answer is the Response of the last event."""
    for scenario in STREAMED:
        is_error = scenario.name.startswith("error") or scenario.name == "late-reason"
        has_no_response = is_error or scenario.name == "cut"
        if has_no_response or scenario.name in NEWER_THAN_THE_PACKAGE:
            continue
        reply = await client.ask(f"sim:{scenario.name}", reasoning={"summary": "auto"})

        parsed = TypeAdapter(Response).validate_python(reply.body)
        assert unknown_fields(parsed) == []


async def test_deltas_are_padded_unless_told_otherwise(client: Client) -> None:
    """Obfuscation is on by default and off when asked."""
    padded = await client.stream()
    bare = await client.stream(stream_options={"include_obfuscation": False})

    deltas = [event for event in padded.events if event["type"].endswith(".delta")]
    assert all(event["obfuscation"] for event in deltas)
    assert not any("obfuscation" in event for event in bare.events)


async def test_two_simulators_send_the_same_bytes() -> None:
    """Ids, padding, sealed content depend on nothing but the requests."""
    import aiohttp

    async def bytes_of(simulator: Simulator) -> bytes:
        body = {"model": "gpt-5.5", "input": "Hi", "store": False, "stream": True}
        headers = {"Authorization": f"Bearer {simulator.api_key}"}
        async with simulator, aiohttp.ClientSession(headers=headers) as session:
            url = f"{simulator.base_url}/responses"
            async with session.post(url, json=body) as answer:
                return await answer.read()

    first, second = await asyncio.gather(
        *(bytes_of(Simulator(clock=lambda: 1.0)) for _ in range(2))
    )
    assert first == second
