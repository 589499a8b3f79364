"""Remote servers: what the stand-in takes, refuses and says of them."""

from typing import Any

import pytest

from simulator.transcripts import (
    build_client_items,
    strip_item,
)
from upstream.simulated import Client

CLOCKS = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://clocks.example/mcp",
}
DRIVE = {
    "type": "mcp",
    "server_label": "drive",
    "connector_id": "connector_googledrive",
    "authorization": "token",
}
FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
REQUEST = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "server_label": "clocks",
    "name": "now",
    "arguments": "{}",
}
RESPONSE = {
    "type": "mcp_approval_response",
    "approval_request_id": "mcpr_1",
    "approve": True,
}
USER = {"role": "user", "content": "Go on"}


def without(tool: dict[str, Any], name: str) -> dict[str, Any]:
    """A server's description without one of its fields."""
    return {key: value for key, value in tool.items() if key != name}


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "tool",
    [
        CLOCKS,
        DRIVE,
        {**CLOCKS, "allowed_tools": ["now"], "headers": {"X-Key": "secret"}},
        {**CLOCKS, "allowed_tools": {"read_only": True, "tool_names": ["now"]}},
        {**CLOCKS, "require_approval": "never", "server_description": "tells the time"},
        {**CLOCKS, "require_approval": {"never": {"tool_names": ["now"]}}},
        {**CLOCKS, "require_approval": {"always": {"read_only": False}}},
    ],
)
async def test_valid_mcp_tools_are_accepted(
    client: Client, tool: dict[str, Any]
) -> None:
    """Every form that the types allow is taken."""
    reply = await client.post(client.body(tools=[tool]))

    assert reply.status == 200, reply.raw


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("tools", "words"),
    [
        ([without(CLOCKS, "server_label")], "'tools[0].server_label'"),
        ([without(CLOCKS, "server_url")], "'tools[0].server_url'"),
        ([without(DRIVE, "authorization")], "'tools[0].authorization'"),
        ([{**CLOCKS, "server_label": "my clocks"}], "does not match pattern"),
        ([{**CLOCKS, "server_label": "1st"}], "does not match pattern"),
        ([{**CLOCKS, "server_label": "x" * 65}], "does not match pattern"),
        ([{**CLOCKS, **DRIVE}], "Mutually exclusive"),
        ([{**CLOCKS, "server_url": "clocks.example"}], "Expected a valid URL"),
        ([{**CLOCKS, "require_approval": "sometimes"}], "'never'"),
        ([{**CLOCKS, "require_approval": {"ask": {}}}], "require_approval.ask"),
        ([{**CLOCKS, "allowed_tools": "now"}], "allowed_tools"),
        ([{**CLOCKS, "url": "https://clocks.example"}], "'tools[0].url'"),
        ([{**DRIVE, "connector_id": "connector_fax"}], "'connector_fax'"),
    ],
)
async def test_servers_that_are_described_badly(
    client: Client, tools: list[Any], words: str
) -> None:
    """The first mistake is named."""
    reply = await client.post(client.body(tools=tools))

    assert reply.status == 400
    assert words in reply.error["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("items", "words"),
    [
        ([REQUEST], "do not have an approval: mcpr_1."),
        ([RESPONSE], "No open MCP approval request"),
        ([RESPONSE, REQUEST], "No open MCP approval request"),
        ([REQUEST, RESPONSE, RESPONSE], "No open MCP approval request"),
        ([without(REQUEST, "id"), RESPONSE], "'input[1].id'"),
        ([without(RESPONSE, "approve")], "'input[1].approve'"),
    ],
)
async def test_approvals_come_in_pairs(
    client: Client, items: list[Any], words: str
) -> None:
    """A request with its id, then its one answer."""
    reply = await client.post(client.body([USER, *items]))

    assert reply.status == 400
    assert words in reply.error["message"]


@pytest.mark.asyncio
async def test_the_tools_are_listed_once(client: Client) -> None:
    """While the list is in the input it is not fetched again."""
    question = {"role": "user", "content": "sim:mcp"}
    first = await client.ask([question], tools=[CLOCKS])
    listed = strip_item(first.body["output"][0])
    second = await client.ask([question, listed, question], tools=[CLOCKS])

    assert listed["type"] == "mcp_list_tools"
    kinds = [item["type"] for item in second.body["output"]]
    assert kinds == ["reasoning", "mcp_call", "message"]


@pytest.mark.asyncio
async def test_a_call_that_is_sent_back_is_not_read(client: Client) -> None:
    """It is taken, costs nothing, and what it said is unknown."""
    call = {
        "type": "mcp_call",
        "id": "mcp_1",
        "server_label": "clocks",
        "name": "now",
        "arguments": "{}",
        "output": "noon " * 500,
    }
    bare = await client.ask([USER], tools=[CLOCKS])
    given = await client.ask([call, USER], tools=[CLOCKS])

    tokens = [answer.body["usage"]["input_tokens"] for answer in (bare, given)]
    assert tokens[0] == tokens[1]


@pytest.mark.asyncio
@pytest.mark.parametrize("approve", [True, False])
async def test_an_approval_decides_about_the_call(
    client: Client, approve: bool
) -> None:
    """The call is made after a yes, under the id of its request; after a no it is not."""
    question = {"role": "user", "content": "sim:mcp-approval"}
    first = await client.ask([question], tools=[CLOCKS])
    output = first.body["output"]
    answers = [{**item, "approve": approve} for item in build_client_items(output)]
    sent = [strip_item(item) for item in output]
    second = await client.ask([question, *sent, *answers], tools=[CLOCKS])

    calls = [item for item in second.body["output"] if item["type"] == "mcp_call"]
    request = output[-1]["id"]
    approved = [item["approval_request_id"] for item in calls]
    assert approved == ([request] if approve else [])


@pytest.mark.asyncio
async def test_questions_stand_beside_calls(client: Client) -> None:
    """Two questions and a function call come in one response."""
    reply = await client.ask("sim:mcp-approvals", tools=[CLOCKS, FUNCTION])

    kinds = [item["type"] for item in reply.body["output"]]
    assert kinds[2:] == ["mcp_approval_request"] * 2 + ["function_call"]
