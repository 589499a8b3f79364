"""Responses that go on at the server, and how they are asked for again."""

from typing import Any

import pytest

from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

KEPT: dict[str, Any] = {"store": True, "background": True}


async def queued(client: Client, text: str, **more: Any) -> str:
    reply = await client.ask(text, **KEPT, **more)
    assert reply.body["status"] == "queued"
    assert reply.body["background"] is True
    return str(reply.body["id"])


async def broken(client: Client, text: str) -> list[dict[str, Any]]:
    reply = await client.stream(text, **KEPT)
    assert reply.events[-1]["type"] != "response.completed"
    events: list[dict[str, Any]] = reply.events
    return events


@pytest.mark.parametrize("store", [True, False, None])
async def test_it_can_be_retrieved_for_a_while(
    client: Client, store: bool | None
) -> None:
    """Whether or not it is stored for good (guide "Background mode", 2026-11)."""
    reply = await client.post({**client.body(background=True), "store": store})
    assert reply.status == 200
    got = await client.get(reply.body["id"])
    assert got.status == 200
    assert all("encrypted_content" not in item for item in got.body["output"])


async def test_a_stream_begins_in_the_queue(client: Client) -> None:
    events = await client.stream(**KEPT)
    first = [(e["type"], e["response"]["status"]) for e in events.events[:3]]
    assert first == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
        ("response.in_progress", "in_progress"),
    ]
    assert events.events[-1]["response"]["background"] is True


async def test_a_resumed_stream_breaks_again(client: Client) -> None:
    first = await broken(client, "sim:chat,cut=10,again=2")
    id = first[0]["response"]["id"]
    for last in (9, 19, 29):
        reply = await client.get(id, stream="true", starting_after=str(last))
        assert reply.events[0]["sequence_number"] == last + 1
        assert (len(reply.events) == 10) == (last < 29)
    assert reply.events[-1]["type"] == "response.completed"


async def test_cancelled_response_keeps_what_is_done(client: Client) -> None:
    id = await queued(client, "sim:chat,halt=60")
    reply = await client.cancel(id)
    assert reply.status == 200
    assert reply.body["status"] == "cancelled"
    assert [item["type"] for item in reply.body["output"]] == ["reasoning"]
    assert (await client.cancel(id)).body == reply.body == (await client.get(id)).body


async def test_unknown_or_foreign_id_is_not_found(client: Client) -> None:
    id = await queued(client, "sim:chat")
    unstored = (await client.ask("Hello")).body["id"]
    gone = await queued(client, "sim:chat,gone")
    for asked in ("resp_unknown", unstored, gone):
        for reply in (await client.get(asked), await client.cancel(asked)):
            assert reply.status == 404
            assert reply.error["message"] == f"Response with id '{asked}' not found."
    assert (await client.get(id, "sk-simulator-2")).status == 404
    assert (await client.get(id, "sk-simulator-limited")).status == 200


async def test_foreground_response_is_neither_streamed_nor_cancelled(
    client: Client,
) -> None:
    id = (await client.ask("Hello", store=True)).body["id"]
    assert (await client.get(id)).body["status"] == "completed"
    assert (await client.get(id, stream="true")).status == 404
    reply = await client.cancel(id)
    assert reply.status == 400
    assert reply.error["message"] == "Cannot cancel a synchronous response."


async def test_only_a_stream_is_streamed_again(client: Client) -> None:
    reply = await client.get(await queued(client, "sim:chat"), stream="true")
    assert (reply.status, reply.error["param"]) == (400, "stream")


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ({"starting_after": "3"}, "starting_after"),
        ({"stream": "true", "starting_after": "x"}, "starting_after"),
        ({"include[]": "reasoning.encrypted_content"}, "include"),
        ({"model": "gpt-5"}, "model"),
    ],
)
async def test_questions_that_are_refused(
    client: Client, query: dict[str, str], param: str
) -> None:
    first = await broken(client, "sim:chat,cut=9")
    reply = await client.get(first[0]["response"]["id"], **query)
    assert (reply.status, reply.error["param"]) == (400, param)
