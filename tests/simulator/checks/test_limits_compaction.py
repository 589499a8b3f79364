"""A long input is compacted where that was asked for, and read from there on."""

from typing import Any

import pytest

from simulator import Simulator
from upstream.simulated import Client, bare

pytestmark = pytest.mark.asyncio

LONG = {"role": "user", "content": "rain " * 1000}
MORE = {"role": "user", "content": "Go on"}
NEW = "gpt-6.2-sol"


def managed(threshold: Any = 1000, kind: str = "compaction") -> dict[str, Any]:
    """A body's wish for compaction."""
    way = {"type": kind, "compact_threshold": threshold}
    return {"context_management": [way]}


async def test_long_input_is_compacted_at_the_end(client: Client) -> None:
    """An item after all others, as in all recordings, with events of its own."""
    events = await client.stream([LONG], **managed())

    output = events.events[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["reasoning", "message", "compaction"]
    assert output[2]["id"].startswith("cmp_")
    assert set(output[2]) == {"id", "type", "encrypted_content"}
    kinds = [event["type"] for event in events.events]
    assert kinds[-4:-1] == [
        "response.output_item.added",
        "response.compaction.compacting",
        "response.output_item.done",
    ]


@pytest.mark.parametrize(
    ("content", "wish"),
    [
        ([MORE], managed()),
        ([LONG], {}),
        ([LONG], {"context_management": [{"type": "compaction"}]}),
    ],
)
async def test_nothing_is_compacted_otherwise(
    client: Client, content: Any, wish: dict[str, Any]
) -> None:
    """A short input, or one without a limit from which it is long."""
    reply = await client.ask(content, **wish)

    assert [item["type"] for item in reply.body["output"]] == ["reasoning", "message"]


@pytest.mark.parametrize("model", ["gpt-5.6-sol", NEW])
@pytest.mark.parametrize("keeps_all", [True, False])
async def test_items_before_a_compaction_are_ignored(
    client: Client, model: str, keeps_all: bool
) -> None:
    """Whether it is still sent or not; the reasoning after it stays readable."""
    first = await client.ask([LONG], model=model, **managed())
    *answer, compaction = bare(first.body["output"])
    before = [LONG, *answer, compaction] if keeps_all else [compaction]

    second = await client.ask([*before, MORE], model=model, **managed())
    later = [*before, MORE, *bare(second.body["output"]), MORE]
    third = await client.ask(later, model=model, **managed())

    assert "I was given 0 reasoning items back" in second.text
    assert "I was given 1 reasoning item back" in third.text
    for reply in (second, third):
        assert reply.body.get("input_transformations", []) == []
        assert reply.body["usage"]["input_tokens"] < 1000
        kinds = [item["type"] for item in reply.body["output"]]
        assert kinds == ["reasoning", "message"]


async def test_compaction_of_another_organization_is_refused(client: Client) -> None:
    """It is sealed as reasoning is."""
    first = await client.ask([LONG], **managed())
    output = bare(first.body["output"])[-1:]

    reply = await client.post(client.body([*output, MORE]), "sk-simulator-2")

    assert reply.status == 400
    assert reply.error["code"] == "invalid_encrypted_content"


@pytest.mark.parametrize(
    ("wish", "param"),
    [
        (managed(999), "context_management[0].compact_threshold"),
        (managed(kind="forgetting"), "context_management[0].type"),
        ({"context_management": [{}]}, "context_management[0].type"),
    ],
)
async def test_impossible_wishes_are_refused(
    client: Client, wish: dict[str, Any], param: str
) -> None:
    """By the name of what is wrong."""
    reply = await client.post(client.body([MORE], **wish))

    assert reply.status == 400
    assert reply.error["param"] == param


async def test_azure_does_not_compact(client: Client) -> None:
    """It does not know the parameter."""
    async with Simulator("azure") as azure:
        client.simulator = azure
        reply = await client.post(client.body([MORE], **managed()))

    assert reply.status == 400
    assert reply.error["param"] == "context_management"
