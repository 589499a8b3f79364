"""The leaky scenarios leak: else a search for leaks would find nothing by itself."""

import pytest

from simulator.accounts import CANARY_KEY
from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

HEADER = f"Bearer {CANARY_KEY}"
FUNCTION = {
    "type": "function",
    "name": "look",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}


@pytest.mark.parametrize(
    ("name", "status"),
    [("leaky-error", 400), ("leaky-error-401", 401), ("leaky-error-500", 500)],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_refusal_that_quotes_the_request(
    client: Client, name: str, status: int, stream: bool
) -> None:
    """The key is in every text and in a header, the prompt in the message."""
    body = client.body(f"sim:{name} costs 5 $tool", stream=stream)
    reply = await client.post(body, CANARY_KEY)

    assert reply.status == status
    headers = {name.lower(): value for name, value in reply.headers.items()}
    assert headers["x-request-id"] == HEADER
    assert {reply.error[field] for field in ("code", "type")} == {HEADER}
    assert reply.error["param"] == f"{HEADER} sim:{name} costs 5 $tool"
    assert f"Authorization: {HEADER}" in reply.error["message"]
    assert "costs 5 $tool" in reply.error["message"]


@pytest.mark.parametrize(
    "name", ["leaky-stream", "leaky-stream-nested", "leaky-stream-failed"]
)
async def test_error_event_leaks_the_key(client: Client, name: str) -> None:
    """After some text comes an error with the key in code and message."""
    reply = await client.post(
        client.body(f"sim:{name} costs 5 $tool", stream=True), CANARY_KEY
    )

    last = reply.events[-1]
    error = last.get("error") or last.get("response", last).get("error") or last
    assert any(event["type"] == "response.output_text.delta" for event in reply.events)
    assert error["code"] == HEADER
    assert HEADER in error["message"]
    assert "costs 5 $tool" in error["message"]
    assert error.get("param", HEADER).startswith(HEADER)


async def test_a_call_that_quotes_the_prompt(client: Client) -> None:
    """The prompt is in the arguments, and both are in the error that follows."""
    question = {"role": "user", "content": "sim:leaky-tool a word"}
    first = await client.post(client.body([question], tools=[FUNCTION]), CANARY_KEY)
    call = {k: v for k, v in first.body["output"][1].items() if k != "id"}
    output = {
        "type": "function_call_output",
        "call_id": call["call_id"],
        "output": "done",
    }
    second = await client.post(client.body([question, call, output]), CANARY_KEY)

    assert call["arguments"] == '{"said":"sim:leaky-tool a word"}'
    assert second.status == 400
    assert second.error["message"].count("a word") == 2


async def test_the_header_of_azure_leaks_as_well(client: Client) -> None:
    """It is quoted with its name."""
    headers = {"api-key": CANARY_KEY}
    reply = await client.post(client.body("sim:leaky-error"), None, **headers)

    assert reply.error["code"] == f"api-key: {CANARY_KEY}"
