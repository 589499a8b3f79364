"""What breaks, breaks as it was asked to."""

import asyncio

import aiohttp
import pytest

from simulator.accounts import CANARY_KEY
from simulator.faults import DELIVERIES, FORMS, refuse_item
from upstream.server import until
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

INVALID = "invalid_request_error"
HEADER = f"Bearer {CANARY_KEY}"


@pytest.mark.parametrize(
    ("name", "status", "type", "code"),
    [
        ("429", 429, "requests", "rate_limit_exceeded"),
        ("500", 500, "server_error", "server_error"),
        ("503", 503, "service_unavailable_error", "server_is_overloaded"),
        ("quota", 429, "insufficient_quota", "insufficient_quota"),
        ("spend-limit", 429, "insufficient_quota", "organization_spend_limit_exceeded"),
        ("json-error-200", 200, "server_error", "server_error"),
        ("misaligned-first", 403, INVALID, "misalignment_policy_violation"),
        ("too-large-first", 429, "tokens", "rate_limit_exceeded"),
        ("prompt-filtered", 400, None, "content_filter"),
    ],
)
async def test_errors_before_a_response(
    client: Client, name: str, status: int, type: str | None, code: str
) -> None:
    for stream in (True, False):
        reply = await client.post(client.body(f"sim:{name}", stream=stream))

        assert reply.status == status
        assert (reply.error["type"], reply.error["code"]) == (type, code)


async def test_held_answer_goes_on_when_it_is_released(client: Client) -> None:
    """hold lets a test decide when; what was forgotten holds again."""
    sim = client.simulator
    for _ in range(2):
        async with client.open_stream("sim:chat,hold=2") as answer:
            await until(lambda: sim.requests[-1].events_sent == 2)
            assert sim.open_streams == 1
            sim.release()
            assert b"event: response.completed" in await answer.read()
        await sim.all_ended()
        sim.forget()


async def test_answers_that_begin_together(client: Client) -> None:
    """The first waits for the last, and another group starts from nothing."""
    sim = client.simulator
    for _ in range(2):
        early = asyncio.create_task(client.stream("sim:short,together=2"))
        waiting = await sim.requested(len(sim.requests) + 1)
        await client.stream("sim:short in the meantime")
        assert (waiting.is_open, waiting.events_sent) == (True, 0)
        await asyncio.gather(early, client.stream("sim:short,together=2"))


async def test_random_chunks_cut_characters(client: Client) -> None:
    async with client.open_stream(f"sim:chat,chunks=random {'東京🚀' * 20}") as answer:
        chunks = [chunk async for chunk, _ in answer.content.iter_chunks()]

    def is_whole(chunk: bytes) -> bool:
        try:
            chunk.decode()
        except UnicodeDecodeError:
            return False
        return True

    assert not all(is_whole(chunk) for chunk in chunks)
    assert "Zürich" in b"".join(chunks).decode()


async def test_a_connection_that_breaks_or_falls_silent(client: Client) -> None:
    """drop aborts it in the middle of an event; a stall is ended by the client."""
    with pytest.raises(aiohttp.ClientPayloadError):
        await client.stream("sim:drop")
    with pytest.raises(asyncio.TimeoutError):
        async with asyncio.timeout(0.2):
            await client.ask("sim:stall")

    assert (await client.simulator.closed_early()).finished is False


@pytest.mark.parametrize(
    ("form", "delivery"),
    [
        *((form, "http") for form in FORMS),
        *(("fields", delivery) for delivery in DELIVERIES if delivery != "http"),
    ],
)
async def test_refusal_names_its_part_where_the_form_has_it(
    client: Client, form: str, delivery: str
) -> None:
    fault = refuse_item("function_call", form=form, delivery=delivery, status=404)
    client.simulator.faults.append(fault)
    call = {"call_id": "call_1", "name": "get_weather", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_1", "output": "rain"}
    items = [{"type": "function_call", **call}, output]
    reply = await client.post(client.body(items, stream=True))

    assert reply.status == (404 if delivery == "http" else 200)
    if delivery == "http":
        assert (reply.error.get("param") is None) == (form != "fields")
    else:
        kinds = [event["type"] for event in reply.events]
        assert kinds[:2] == ["response.created", "response.in_progress"]
        assert ("error" in kinds) == (delivery != "failed")
    written = reply.raw.decode()
    assert ("input[0]" in written) == (form not in ("id", "phrase"))
    assert ("call_1" in written) == (form == "id")


@pytest.mark.parametrize(
    ("name", "status"),
    [("leaky-error", 400), ("leaky-error-401", 401), ("leaky-error-500", 500)],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_that_quotes_the_request(
    client: Client, name: str, status: int, stream: bool
) -> None:
    """Key and prompt: else a search for leaks would find nothing by itself."""
    body = client.body(f"sim:{name} costs 5 $tool", stream=stream)
    reply = await client.post(body, CANARY_KEY)

    assert reply.status == status
    headers = {name.lower(): value for name, value in reply.headers.items()}
    assert headers["x-request-id"] == HEADER
    assert {reply.error[field] for field in ("code", "type")} == {HEADER}
    assert reply.error["param"] == f"{HEADER} sim:{name} costs 5 $tool"
    assert f"Authorization: {HEADER}" in reply.error["message"]
    as_azure = {"api-key": CANARY_KEY}
    other = await client.post(body, None, **as_azure)
    assert other.error["code"] == f"api-key: {CANARY_KEY}"


@pytest.mark.parametrize(
    "name", ["leaky-stream", "leaky-stream-nested", "leaky-stream-failed"]
)
async def test_error_event_leaks_the_key(client: Client, name: str) -> None:
    reply = await client.post(
        client.body(f"sim:{name} costs 5 $tool", stream=True), CANARY_KEY
    )

    last = reply.events[-1]
    error = last.get("error") or last.get("response", last).get("error") or last
    assert any(event["type"] == "response.output_text.delta" for event in reply.events)
    assert error["code"] == HEADER
    assert HEADER in error["message"]
    assert "costs 5 $tool" in error["message"]


async def test_a_call_that_quotes_the_prompt(client: Client) -> None:
    function = {"type": "function", "name": "look", "parameters": None}
    question = {"role": "user", "content": "sim:leaky-tool a word"}
    first = await client.post(client.body([question], tools=[function]), CANARY_KEY)
    call = {k: v for k, v in first.body["output"][1].items() if k != "id"}
    output = {"type": "function_call_output", "output": "done"}
    items = [question, call, {**output, "call_id": call["call_id"]}]
    second = await client.post(client.body(items), CANARY_KEY)

    assert second.status == 400
    assert second.error["message"].count("a word") == 2
