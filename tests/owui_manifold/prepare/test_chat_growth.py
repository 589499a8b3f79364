"""A chat only grows: what changes in its course is appended to its input."""

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from calls.sample import TOOL
from calls.turns import answered, asked_as, row_of
from openai_responses.digest import hex_digest
from openai_responses.transport.connections import Connections
from simulator import Simulator
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio

Json = dict[str, Any]
GROWING = "f.gpt-6.1-sol"
WORDS = ("one", "two", "three", "four")


def tool(name: str, **more: Any) -> Json:
    function: Any = TOOL["function"]
    return {"type": "function", "function": {**function, "name": name, **more}}


A = tool("a")
B = tool("b")
C = tool("c")


class Talk:
    """A chat of some turns; what each turn asks for differs."""

    def __init__(self, sim: Simulator, host: StandInHost, line: Connections) -> None:
        self.sim = sim
        self.host = host
        self.line = line
        self.said = ["S"]

    async def ask(self, model: str = GROWING, **given: Any) -> Json:
        """Ask the next question; return what was sent."""
        number = len(self.said) // 2
        row_of(self.host, *WORDS[: number + 1])
        ids = {"user_message_id": f"q{number}", "message_id": f"a{number}"}
        texts = (*self.said, WORDS[number])
        call = asked_as(self.sim, *texts, model=model, metadata=ids, **given)
        caller = call.caller._replace(message_id=ids["message_id"])
        await answered(call._replace(caller=caller), self.line)
        self.said += [WORDS[number], "Yes."]
        return dict(self.sim.requests[-1].body)


@pytest.fixture
def talk(sim: Simulator, host: StandInHost, connections: Connections) -> Talk:
    return Talk(sim, host, connections)


def kinds(body: Mapping[str, Any]) -> list[str]:
    """The types of the items that are in front of questions."""
    return [i["type"] for i in body["input"] if i["type"] != "message"]


def grows(*bodies: Json) -> bool:
    """Whether each request begins with the bytes of the one before."""
    level = ("tools", "reasoning", "text")
    return all(
        json.dumps(after["input"]).startswith(json.dumps(before["input"])[:-1])
        and [json.dumps(after.get(k)) for k in level]
        == [json.dumps(before.get(k)) for k in level]
        for before, after in pairwise(bodies)
    )


async def test_effort_and_format_are_appended(talk: Talk) -> None:
    """In front of the question that they came with, now and in later requests."""
    low: Json = {"reasoning_effort": "low"}
    schema = {"name": "s", "schema": {"type": "object", "properties": {}}}
    form = {"type": "json_schema", "json_schema": schema}
    first = await talk.ask(body=low)
    second = await talk.ask(body={"reasoning_effort": "high", "response_format": form})
    third = await talk.ask(body={"response_format": form})
    fourth = await talk.ask(body=low)

    assert grows(first, second, third, fourth)
    assert first["reasoning"]["effort"] == "low"
    updates = [i for i in fourth["input"] if i["type"] == "configuration_update"]
    assert updates == [
        {
            "type": "configuration_update",
            "reasoning": {"effort": "high"},
            "text": {"format": {"type": "json_schema", **schema, "strict": False}},
        },
        {"type": "configuration_update", "reasoning": {"effort": "medium"}},
        {
            "type": "configuration_update",
            "reasoning": {"effort": "low"},
            "text": {"format": {"type": "text"}},
        },
    ]


async def test_tools_are_appended_and_left_out_by_the_choice(talk: Talk) -> None:
    """A tool that was switched off stays declared: the beginning does not change."""
    first = await talk.ask(body={"tools": [A, B]})
    second = await talk.ask(body={"tools": [A, B, C]}, ENABLE_WEB_SEARCH=True)
    third = await talk.ask(body={"tools": [C, A], "tool_choice": "required"})
    fourth = await talk.ask()

    assert grows(first, second, third, fourth)
    assert [t["name"] for t in first["tools"]] == ["a", "b"]
    [added] = [i for i in fourth["input"] if i["type"] == "additional_tools"]
    assert added["role"] == "developer"
    assert [t.get("name", t["type"]) for t in added["tools"]] == ["web_search", "c"]
    assert "tool_choice" not in first | second
    assert third["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": name} for name in ("a", "c")],
    }
    assert fourth["tool_choice"] == "none"


@pytest.mark.parametrize(
    ("model", "valves", "lowered"),
    [
        ("f.gpt-5.6-sol", {}, ["configuration_update"]),
        ("f.gpt-5.4", {}, ["configuration_update", "additional_tools"]),
        (GROWING, {"COMPATIBILITY": "auto"}, ["instructions"]),
    ],
)
async def test_unsupported_updates_are_put_into_the_request(
    talk: Talk, model: str, valves: Json, lowered: list[str]
) -> None:
    """Models and servers without updates get new settings in the fields themselves."""
    given: Json = {"model": model, **valves}
    await talk.ask(body={"tools": [A], "reasoning_effort": "low"}, **given)
    sent = await talk.ask(body={"tools": [B], "reasoning_effort": "high"}, **given)

    is_strange = "instructions" in lowered
    assert (sent.get("instructions") == "S") == is_strange
    assert (sent["input"][0]["role"] == "developer") != is_strange
    if is_strange or "additional_tools" in lowered:
        assert kinds(sent) == []
        assert [t["name"] for t in sent["tools"]] == ["b"]
        assert "tool_choice" not in sent
    else:
        assert kinds(sent) == ["additional_tools"]
    assert sent["reasoning"]["effort"] == "high"


async def test_each_model_has_a_beginning_of_its_own(talk: Talk) -> None:
    """A switch and back: the first one's is as it was left."""
    first = await talk.ask(body={"tools": [A], "reasoning_effort": "low"})
    other = await talk.ask("f.gpt-6-sol", body={"tools": [B]})
    third = await talk.ask(body={"tools": [A, B], "reasoning_effort": "high"})

    assert kinds(other) == []
    assert [t["name"] for t in other["tools"]] == ["b"]
    assert third["tools"] == first["tools"]
    assert kinds(third) == ["additional_tools", "configuration_update"]
    assert third["input"][-1]["content"][0]["text"] == "three"


async def test_oversized_turn_is_put_into_its_own_request(talk: Talk) -> None:
    """The next one that fits goes on from the last one that was stored."""
    noise = "".join(hex_digest(str(number)) for number in range(4_000))
    large = tool("b", description=noise[:180_000])
    larger = tool("c", description=noise[-180_000:][::-1])
    first = await talk.ask(body={"tools": [A]})
    second = await talk.ask(body={"tools": [A, large, larger]})
    third = await talk.ask(body={"tools": [A, C]})

    assert kinds(second) == []
    assert [t["name"] for t in second["tools"]] == ["a", "b", "c"]
    assert grows(first, third)
    assert kinds(third) == ["additional_tools"]
