"""Items that do not belong together are refused in the API's words."""

from typing import Any

import pytest

from upstream.simulated import Client

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "get_weather",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}
USER = {"role": "user", "content": "Go on"}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "x"}
CUSTOM = {"type": "custom_tool_call", "call_id": "call_1", "name": "f", "input": "x"}
CUSTOM_OUTPUT = {"type": "custom_tool_call_output", "call_id": "call_1", "output": "x"}
NOT_PERSISTED = (
    " Items are not persisted when `store` is set to false. Try again with `store` set "
    "to true, or remove this item from your input."
)
PICTURE = {
    "type": "image_generation_call",
    "id": "ig_1",
    "status": "completed",
    "result": "AA==",
}


async def refused(client: Client, items: list[Any], **more: Any) -> Any:
    """Send items and return the refusal."""
    reply = await client.post(client.body([*items, USER], **more))
    assert reply.status in (400, 404), reply.raw
    assert reply.error["type"] == "invalid_request_error"
    return reply


async def answered(client: Client, text: str = "Hello", **more: Any) -> list[Any]:
    """Return the output of a chat turn with all its ids."""
    reply = await client.ask(text, **more)
    output = reply.body["output"]
    return [
        {k: v for k, v in item.items() if k != "status" or item["type"] == "message"}
        for item in output
    ]


@pytest.mark.parametrize(
    "item",
    [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "item_reference", "id": "rs_1"},
        {"id": "msg_1"},
        {**PICTURE, "id": "ig_1"},
    ],
)
@pytest.mark.parametrize("store", [True, False])
async def test_ids_that_would_have_to_be_looked_up(
    client: Client, item: dict[str, Any], store: bool
) -> None:
    """Nothing is stored here, so a lookup finds nothing."""
    error = await refused(client, [item], store=store)

    assert error.status == 404
    assert error.error["message"] == (
        f"Item with id '{item['id']}' not found.{'' if store else NOT_PERSISTED}"
    )
    assert error.error["param"] == "input"


async def test_reasoning_without_id_and_content(client: Client) -> None:
    """Reasoning that carries nothing to read is not verifiable."""
    error = await refused(client, [{"type": "reasoning", "summary": []}])

    assert error.error["code"] == "invalid_encrypted_content"


async def test_reasoning_without_its_following_item_is_refused(client: Client) -> None:
    """Reasoning with an id must be followed by the item made with it."""
    reasoning, message = await answered(client)
    sentence = (
        f"Item '{reasoning['id']}' of type 'reasoning' was provided without its "
        "required following item."
    )
    bare = {"role": "assistant", "content": message["content"][0]["text"]}

    for items in ([reasoning], [reasoning, bare], [reasoning, USER, message]):
        error = await refused(client, items)
        assert error.status == 400
        assert error.error["message"] == sentence
        assert error.error["code"] is None


async def test_a_message_without_its_reasoning(client: Client) -> None:
    """A message with an id needs the reasoning before it."""
    reasoning, message = await answered(client)
    error = await refused(client, [message])

    assert error.error["message"] == (
        f"Item '{message['id']}' of type 'message' was provided without its required "
        f"'reasoning' item: '{reasoning['id']}'."
    )


async def test_a_call_without_its_reasoning(client: Client) -> None:
    """A call with an id needs the reasoning before it."""
    reasoning, call = await answered(client, "sim:tool", tools=[FUNCTION])
    output = {**OUTPUT, "call_id": call["call_id"]}
    error = await refused(client, [call, output])

    assert error.error["message"] == (
        f"Item '{call['id']}' of type 'function_call' was provided without its "
        f"required 'reasoning' item: '{reasoning['id']}'."
    )


async def test_pairs_with_ids_are_taken(client: Client) -> None:
    """Whole pairs pass with ids, halves pass without."""
    reasoning, message = await answered(client)
    without = {name: inner for name, inner in message.items() if name != "id"}
    thought = {name: inner for name, inner in reasoning.items() if name != "id"}

    await client.ask([USER, reasoning, message, USER])
    await client.ask([USER, without, USER])
    await client.ask([USER, thought, without, USER])


async def test_a_hosted_call_finds_its_reasoning_without_an_id(client: Client) -> None:
    """A search keeps its id; its reasoning is known by its sealed content."""
    reasoning, search, message = await answered(client, "sim:annotations")
    thought = {name: inner for name, inner in reasoning.items() if name != "id"}
    answer = {name: inner for name, inner in message.items() if name != "id"}
    search = {**search, "status": "completed"}

    await client.ask([USER, thought, search, answer, USER])
    error = await refused(client, [search, answer])
    assert "of type 'web_search_call' was provided without" in error.error["message"]


async def test_two_reasonings_before_one_message(client: Client) -> None:
    """Other reasoning may be between reasoning and its item."""
    first, second, message = await answered(client, "sim:two-reasonings")

    await client.ask([USER, first, second, message, USER])
    error = await refused(client, [first, message])
    assert second["id"] in error.error["message"]


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        (
            [OUTPUT, CALL],
            "No tool call found for function call output with call_id call_1.",
        ),
        ([CUSTOM], "No tool output found for custom tool call call_1."),
        (
            [CUSTOM_OUTPUT],
            "No tool call found for custom tool call output with call_id call_1.",
        ),
        (
            [CALL, CUSTOM_OUTPUT],
            "No tool call found for custom tool call output with call_id call_1.",
        ),
    ],
)
async def test_half_of_a_call_is_refused(
    client: Client, items: list[Any], sentence: str
) -> None:
    """A call needs its output and an output its call, in this order."""
    error = await refused(client, items)

    assert (error.status, error.error["message"]) == (400, sentence)
    assert (error.error["param"], error.error["code"]) == ("input", None)


async def test_same_id_twice_is_refused(client: Client) -> None:
    """The same id may come once."""
    reasoning, message = await answered(client)
    twice = await refused(client, [reasoning, message, reasoning, message])

    assert twice.error["message"] == (
        f"Duplicate item found with id {reasoning['id']}. Remove duplicate items from "
        "your input and try again."
    )


@pytest.mark.parametrize(
    ("item", "prefix"),
    [
        ({"type": "reasoning", "summary": []}, "rs"),
        ({**CALL}, "fc"),
        ({**CUSTOM}, "ctc"),
        (
            {
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "x"}],
            },
            "msg",
        ),
        (
            {
                "type": "web_search_call",
                "status": "completed",
                "action": {"type": "search", "query": "x"},
            },
            "ws",
        ),
    ],
)
async def test_ids_of_another_kind(
    client: Client, item: dict[str, Any], prefix: str
) -> None:
    """An id must begin with its kind's prefix."""
    error = await refused(client, [{**item, "id": "xx_1"}])

    assert error.error["message"] == (
        f"Invalid 'input[0].id': 'xx_1'. Expected an ID that begins with '{prefix}'."
    )
    assert error.error["param"] == "input[0].id"


@pytest.mark.parametrize(
    ("id", "words"),
    [
        ("fc_" + "x" * 62, "string too long"),
        ("fc_ä", "letters, numbers, underscores, or dashes"),
        ("fc_1\n", "letters, numbers, underscores, or dashes"),
    ],
)
async def test_ids_that_are_no_ids(client: Client, id: str, words: str) -> None:
    """An id has at most 64 plain characters."""
    error = await refused(client, [{**CALL, "id": id}, OUTPUT])

    assert words in error.error["message"]
