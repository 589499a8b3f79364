"""Fields that the API lacks get its refusals."""

from typing import Any

import pytest

from chats.pictures import PIXEL
from upstream.simulated import KEY, Client

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
SEARCHED = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "sources": []},
}
OUTPUT = {"type": "function_call_output", "call_id": "call_1"}
TEXT = {"type": "input_text", "text": "x"}
SAID = {"type": "output_text", "text": "x"}
PICTURE = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
LONG = "k" * 65
USER_PARTS = "Supported values are: 'input_text', 'input_image', and 'input_file'."


def user(content: Any) -> dict[str, Any]:
    """A message of a user."""
    return {"role": "user", "content": content}


UNKNOWN = [
    ({"messages": []}, "messages"),
    ({"max_tokens": 5}, "max_tokens"),
    ({"stop": ["x"]}, "stop"),
    ({"reasoning_effort": "low"}, "reasoning_effort"),
    ({"response_format": {}}, "response_format"),
    ({"reasoning": {"depth": 1}}, "reasoning.depth"),
    ({"input": [{"role": "user", "content": "x", "name": "n"}]}, "input[0].name"),
    ({"input": [{"role": "system", "content": "x", "id": "msg_1"}]}, "input[0].id"),
    ({"input": [{**CALL, "mood": 1}]}, "input[0].mood"),
    ({"input": [SEARCHED]}, "input[0].action.sources"),
    ({"tools": [{"type": "custom", "name": "n", "mood": 1}]}, "tools[0].mood"),
    ({"text": {"format": {"type": "text", "x": 1}}}, "text.format.x"),
    ({"stream_options": {"include_usage": True}}, "stream_options.include_usage"),
]
MISSING = [
    ({"input": [{"type": "function_call_output", "output": ""}]}, "input[0].call_id"),
    ({"input": [{"content": "x"}]}, "input[0].type"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    ({"input": [user([{"text": "x"}])]}, "input[0].content[0].type"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
    ({"tools": [{"name": "f"}]}, "tools[0].type"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
]
ARGUMENTS = "input[0].arguments"
MISSING_CODE = "missing_required_parameter"
UNKNOWN_WORDS = "Unknown parameter: PATH."
MISSING_WORDS = "Missing required parameter: PATH."
MISTYPED_WORDS = "Invalid type for PATH: expected {}, but got {} instead."
SPOKEN_THOUGHT: dict[str, Any] = {"type": "reasoning", "summary": [], "content": "x"}
MISTYPED = [
    ({"temperature": "hot"}, "temperature", "a decimal", "a string"),
    ({"stream": "yes"}, "stream", "a boolean", "a string"),
    ({"max_output_tokens": 99.5}, "max_output_tokens", "an integer", "a decimal"),
    ({"input": 5}, "input", "one of an array or a string", "an integer"),
    ({"input": ["x"]}, "input[0]", "an object", "a string"),
    ({"metadata": {"a": 1}}, "metadata.a", "a string", "an integer"),
    ({"tools": {}}, "tools", "an array", "an object"),
    (
        {"input": [{"role": "user", "content": "x", "id": 1}]},
        "input[0].id",
        "a string",
        "an integer",
    ),
    ({"input": [{**CALL, "arguments": {}}]}, ARGUMENTS, "a string", "an object"),
    ({"input": [SPOKEN_THOUGHT]}, "input[0].content", "an array", "a string"),
    (
        {"input": [user(None)]},
        "input[0].content",
        "one of a string or an array",
        "null",
    ),
]
INVALID = [
    ({"reasoning": {"effort": "huge"}}, "reasoning.effort", "'huge'"),
    ({"truncation": "maybe"}, "truncation", "'maybe'"),
    ({"tool_choice": "perhaps"}, "tool_choice", "'perhaps'"),
    ({"input": [{"type": "dream"}]}, "input[0].type", "'item_reference'"),
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0]", "'tool'"),
    (
        {"input": [user([{"type": "text", "text": "x"}])]},
        "input[0].content[0]",
        USER_PARTS,
    ),
]
LIMITS = [
    ({"top_p": -1}, "decimal_below_min_value", "top_p"),
    (
        {"max_output_tokens": 128_001},
        "integer_above_max_value",
        "max_output_tokens",
    ),
    ({"metadata": {"k": "v" * 513}}, "string_above_max_length", "metadata.k"),
    ({"metadata": {LONG: "v"}}, "string_above_max_length", "metadata"),
    ({"tools": [{**FUNCTION, "name": "ab\n"}]}, "invalid_value", "tools[0].name"),
]


DRAW = {"type": "image_generation"}
GIF = {**DRAW, "output_format": "gif"}
IMAGE_OPTIONS = [
    ({**DRAW, "frame_count": 4}, "frame_count"),
    ({**DRAW, "output_format": "gif", "svg": {}}, "svg"),
    ({**GIF, "partial_images": 1}, "partial_images"),
    ({**GIF, "output_compression": 50}, "output_compression"),
    ({**GIF, "model": "gpt-image-2"}, "output_format"),
    ({**DRAW, "output_compression": 50}, "output_compression"),
    ({**DRAW, "output_format": "jpeg", "background": "transparent"}, "background"),
    ({**DRAW, "quality": "max", "model": "gpt-image-1.5"}, "quality"),
    ({**DRAW, "input_fidelity": "low", "model": "gpt-image-2"}, "input_fidelity"),
    ({**DRAW, "input_fidelity": "high", "model": "gpt-image-1-mini"}, "input_fidelity"),
    ({**DRAW, "size": "1000x1000"}, "size"),
    ({**DRAW, "size": "3840x1008"}, "size"),
    ({**DRAW, "size": "1536x864", "model": "gpt-image-1.5"}, "size"),
]
STORES = {"type": "file_search", "vector_store_ids": ["vs_1"]}
SEARCH = {"type": "web_search"}
HOSTED_OPTIONS = [
    ({**STORES, "max_num_results": 0}, "max_num_results"),
    ({**STORES, "max_num_results": 51}, "max_num_results"),
    (
        {**SEARCH, "user_location": {"type": "approximate", "country": "Switzerland"}},
        "user_location.country",
    ),
    (
        {**SEARCH, "filters": {"allowed_domains": ["https://a.org"]}},
        "filters.allowed_domains[0]",
    ),
    (
        {**SEARCH, "filters": {"allowed_domains": ["a.org"] * 101}},
        "filters.allowed_domains",
    ),
    (
        {**SEARCH, "filters": {"blocked_domains": ["https://a.org"]}},
        "filters.blocked_domains[0]",
    ),
    ({**SEARCH, "return_token_budget": "much"}, "return_token_budget"),
]
TAKEN_TOOLS = [
    {**GIF, "frame_count": 4},
    {**DRAW, "output_format": "svg", "svg": {"model": "gpt-5.6-sol"}},
    {**DRAW, "size": "1536x864", "quality": "max", "background": "transparent"},
    {**DRAW, "output_format": "webp", "output_compression": 50},
    {**STORES, "vector_store_ids": ["vs_1", "vs_2"], "max_num_results": 50},
    {
        **SEARCH,
        "user_location": {"type": "approximate", "country": "CH"},
        "filters": {"allowed_domains": ["a.org", "b.org/news"]},
    },
    {
        **SEARCH,
        "external_web_access": False,
        "filters": {"blocked_domains": ["c.org"]},
        "return_token_budget": "unlimited",
    },
]


TOO_LONG = "x" * 10_485_761
PART = {"type": "input_text", "text": TOO_LONG}
LONG_CALL = {**CALL, "arguments": "x" * 1_048_577}
TEXTS = [
    ({"input": TOO_LONG}, "string_above_max_length", "input"),
    ({"instructions": TOO_LONG}, "string_above_max_length", "instructions"),
    ({"input": [user([PART])]}, "string_above_max_length", "input[0].content[0].text"),
    ({"input": [LONG_CALL]}, "string_above_max_length", ARGUMENTS),
]
REFUSED = [
    *((fields, "unknown_parameter", path, UNKNOWN_WORDS) for fields, path in UNKNOWN),
    *((fields, MISSING_CODE, path, MISSING_WORDS) for fields, path in MISSING),
    *(
        (fields, "invalid_type", path, MISTYPED_WORDS.format(expected, got))
        for fields, path, expected, got in MISTYPED
    ),
    *((fields, "invalid_value", path, words) for fields, path, words in INVALID),
    *((fields, code, path, "") for fields, code, path in [*LIMITS, *TEXTS]),
]


@pytest.mark.parametrize(
    ("fields", "code", "path", "words"),
    REFUSED,
    ids=[f"{row[1]}: {row[2]}" for row in REFUSED],
)
async def test_refusal_names_the_field(
    client: Client, fields: dict[str, Any], code: str, path: str, words: str
) -> None:
    """What the API lacks, wants, types, lists and limits."""
    error = await client.refused(**{"reasoning": {"effort": "none"}, **fields})

    assert words.replace("PATH", f"'{path}'") in error["message"]
    assert (error["code"], error["param"]) == (code, path)


@pytest.mark.parametrize(("tool", "path"), [*IMAGE_OPTIONS, *HOSTED_OPTIONS])
async def test_options_of_hosted_tools(
    client: Client, tool: dict[str, Any], path: str
) -> None:
    """An option that does not do is named."""
    error = await client.refused(tools=[FUNCTION, tool])

    assert error["param"] == f"tools[1].{path}"


@pytest.mark.parametrize("tool", TAKEN_TOOLS)
async def test_hosted_tools_that_are_taken(
    client: Client, tool: dict[str, Any]
) -> None:
    """What the types describe is taken."""
    await client.ask(tools=[tool])


async def test_more_vector_stores_than_two(client: Client) -> None:
    """The recorded refusal names no place."""
    stores = {**STORES, "vector_store_ids": ["vs_1", "vs_2", "vs_3"]}
    error = await client.refused(tools=[stores])

    assert "maximum of 2 vector stores allowed" in error["message"]
    assert error["param"] is None


async def test_a_background_that_is_a_preview(client: Client) -> None:
    """The refusal has a type of its own and names no place."""
    tool = {**DRAW, "model": "gpt-image-2", "background": "transparent"}
    reply = await client.post(client.body(tools=[tool]))

    assert reply.status == 400
    assert reply.error["type"] == "image_generation_user_error"
    assert (reply.error["code"], reply.error["param"]) == ("invalid_value", None)


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-6-luna"])
async def test_a_tier_that_the_model_has_not(client: Client, model: str) -> None:
    """The refusal has no code and names no place."""
    error = await client.refused(model=model, service_tier="ultrafast")

    assert error["message"] == "Unsupported service_tier: ultrafast"
    assert (error["code"], error["param"]) == (None, None)
    await client.ask(model="gpt-6.2-sol", service_tier="ultrafast")


async def test_a_schema_for_a_model_without(client: Client) -> None:
    """One model writes no answers by a schema."""
    format = {"type": "json_schema", "name": "x", "schema": STRICT}
    more = {"model": "gpt-5.2-pro", "text": {"format": format}}

    assert (await client.refused(**more))["param"] == "text.format"


@pytest.mark.parametrize(("count", "status"), [(16_384, 200), (16_385, 400)])
async def test_number_of_input_items_is_limited(
    client: Client, count: int, status: int
) -> None:
    """One more is refused, whatever the items are."""
    reply = await client.post(
        {"model": "gpt-4.1", "input": [user("sim:short")] * count}
    )

    assert reply.status == status
    if status == 400:
        assert reply.error["param"] == "input"
        assert reply.error["code"] == "array_above_max_length"


@pytest.mark.parametrize(
    "raw", ["{", "[]", '"x"', '{"top_p": NaN}', '{"a": "\\ud83d"}', b'{"a": "\xff"}']
)
async def test_a_body_that_is_no_object(client: Client, raw: str | bytes) -> None:
    """A body that is no JSON object is refused in the API's words."""
    headers = {"Authorization": f"Bearer {KEY}"}
    async with client.session.post(client.url, data=raw, headers=headers) as answer:
        error = (await answer.json())["error"]

    assert answer.status == 400
    assert error["message"].startswith("We could not parse the JSON body")


STRICT = {"type": "object", "properties": {"a": {"type": "string"}}}
STRICT_CASES = [
    ({**STRICT, "additionalProperties": False}, "Missing 'a'."),
    (
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": STRICT}},
            "required": ["a"],
            "additionalProperties": False,
        },
        "In context=('properties', 'a', 'items'), 'additionalProperties'",
    ),
]


SCHEMA_CASES = [
    (
        {"type": "object", "properties": {"a": None}},
        "None is not of type 'object', 'boolean'.",
    ),
    (
        {"type": "object", "properties": {"a": {"type": []}}},
        "[] is not valid under any of the given schemas.",
    ),
]


@pytest.mark.parametrize(("schema", "words"), SCHEMA_CASES)
async def test_schema_of_a_function_is_one_of_an_object(
    client: Client, schema: dict[str, Any], words: str
) -> None:
    """A function's schema must be a schema of an object, strict or not."""
    error = await client.refused(tools=[{**FUNCTION, "parameters": schema}])

    assert error["message"] == f"Invalid schema for function 'f': {words}"
    assert error["code"] == "invalid_function_parameters"


@pytest.mark.parametrize(("schema", "words"), STRICT_CASES)
async def test_strict_schema_keeps_the_rules_of_strict_mode(
    client: Client, schema: dict[str, Any], words: str
) -> None:
    """A strict function's schema must keep the rules of strict mode."""
    tool = {**FUNCTION, "parameters": schema, "strict": True}
    error = await client.refused(tools=[tool])

    assert words in error["message"]
    assert error["code"] == "invalid_function_parameters"
    assert error["param"] == "tools[0].parameters"


ACCEPTED = [
    {"input": [{"type": "message", "role": "developer", "content": "x"}, user([TEXT])]},
    {
        "input": [
            {"role": "assistant", "content": "x", "phase": "commentary"},
            user("y"),
        ]
    },
    {"input": [{"role": "assistant", "phase": None, "content": [SAID]}, user("y")]},
    {"input": [user([PICTURE])]},
    {"input": [CALL, {**OUTPUT, "output": [TEXT]}]},
    {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "f"}},
    {"tools": [{"type": "web_search", "user_location": {"type": "approximate"}}]},
    {"text": {"format": {"type": "json_object"}}, "input": "Answer in JSON"},
    {"metadata": {"chat": "1"}, "service_tier": "fast", "truncation": "auto"},
    {"prompt_cache_options": {"ttl": "12h"}, "prompt_cache_key": "k" * 64},
    {"reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"}},
    {"instructions": "Be kind.", "include": ["reasoning.encrypted_content"]},
]


@pytest.mark.parametrize("more", ACCEPTED)
async def test_valid_requests_are_accepted(
    client: Client, more: dict[str, Any]
) -> None:
    """The stand-in is strict, not stubborn."""
    reply = await client.post({**client.body(), **more})

    assert reply.status == 200, reply.raw
