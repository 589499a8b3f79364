"""Fields that the API lacks get its refusals."""

from typing import Any

import pytest

from chats.pictures import PIXEL

pytestmark = pytest.mark.asyncio

FUNCTION = {
    "type": "function",
    "name": "f",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
CALL = {"type": "function_call", "call_id": "call_1", "name": "f", "arguments": "{}"}
SEARCH = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "x", "sources": []},
}
LONG = "k" * 65
ASSISTANT_PARTS = "Supported values are: 'output_text' and 'refusal'."
USER_PARTS = "Supported values are: 'input_text', 'input_image', and 'input_file'."

UNKNOWN = [
    ({"messages": []}, "messages"),
    ({"max_tokens": 5}, "max_tokens"),
    ({"stop": ["x"]}, "stop"),
    ({"reasoning_effort": "low"}, "reasoning_effort"),
    ({"response_format": {}}, "response_format"),
    ({"reasoning": {"depth": 1}}, "reasoning.depth"),
    ({"input": [{"role": "user", "content": "x", "name": "n"}]}, "input[0].name"),
    ({"input": [{"role": "user", "content": "x", "id": "msg_1"}]}, "input[0].id"),
    ({"input": [{**CALL, "mood": 1}]}, "input[0].mood"),
    ({"input": [SEARCH]}, "input[0].action.sources"),
    ({"tools": [{**FUNCTION, "mood": 1}]}, "tools[0].mood"),
    ({"text": {"format": {"type": "text", "x": 1}}}, "text.format.x"),
    ({"stream_options": {"include_usage": True}}, "stream_options.include_usage"),
]
MISSING = [
    ({"input": [{"type": "function_call_output", "output": ""}]}, "input[0].call_id"),
    ({"input": [{"content": "x"}]}, "input[0].type"),
    ({"input": [{"type": "message", "content": "x"}]}, "input[0].role"),
    ({"input": [{"role": "user"}]}, "input[0].content"),
    (
        {"input": [{"role": "user", "content": [{"text": "x"}]}]},
        "input[0].content[0].type",
    ),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools[0].name"),
    ({"tools": [{"name": "f"}]}, "tools[0].type"),
    ({"tool_choice": {"type": "function"}}, "tool_choice.name"),
    ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema"),
]
MISTYPED = [
    ({"temperature": "hot"}, "temperature", "a decimal", "a string"),
    ({"stream": "yes"}, "stream", "a boolean", "a string"),
    ({"max_output_tokens": 99.5}, "max_output_tokens", "an integer", "a decimal"),
    ({"input": 5}, "input", "one of an array or a string", "an integer"),
    ({"input": ["x"]}, "input[0]", "an object", "a string"),
    ({"metadata": {"a": 1}}, "metadata.a", "a string", "an integer"),
    ({"tools": {}}, "tools", "an array", "an object"),
    (
        {"input": [{**CALL, "arguments": {}}]},
        "input[0].arguments",
        "a string",
        "an object",
    ),
    (
        {"input": [{"type": "reasoning", "summary": [], "content": None}]},
        "input[0].content",
        "an array",
        "null",
    ),
    (
        {"input": [{"role": "user", "content": None}]},
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
    ({"input": [{"role": "tool", "content": "x"}]}, "input[0].role", "'tool'"),
    (
        {
            "input": [
                {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}
            ]
        },
        "input[0].content[0]",
        ASSISTANT_PARTS,
    ),
    (
        {"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        "input[0].content[0]",
        USER_PARTS,
    ),
]
LIMITS = [
    ({"top_p": -1}, "decimal_below_min_value", "top_p"),
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
]


async def refused(client: Any, more: dict[str, Any]) -> dict[str, Any]:
    """Send a body and return the error of the 400 that it must get."""
    heard = await client.post({**client.body(), **more})
    assert heard.status == 400, heard.raw
    assert heard.error["type"] == "invalid_request_error"
    error: dict[str, Any] = heard.error
    return error


@pytest.mark.parametrize(("more", "path"), UNKNOWN)
async def test_unknown_fields(client: Any, more: dict[str, Any], path: str) -> None:
    """A field that the API lacks is named."""
    error = await refused(client, more)

    assert error["message"] == f"Unknown parameter: '{path}'."
    assert (error["code"], error["param"]) == ("unknown_parameter", path)


@pytest.mark.parametrize(("more", "path"), MISSING)
async def test_missing_fields(client: Any, more: dict[str, Any], path: str) -> None:
    """A required field that is absent is named."""
    error = await refused(client, more)

    assert error["message"] == f"Missing required parameter: '{path}'."
    assert (error["code"], error["param"]) == ("missing_required_parameter", path)


@pytest.mark.parametrize(("more", "path", "expected", "got"), MISTYPED)
async def test_mistyped_fields(
    client: Any, more: dict[str, Any], path: str, expected: str, got: str
) -> None:
    """A value of another JSON type is told what was expected."""
    error = await refused(client, more)

    assert error["message"] == (
        f"Invalid type for '{path}': expected {expected}, but got {got} instead."
    )
    assert (error["code"], error["param"]) == ("invalid_type", path)


@pytest.mark.parametrize(("more", "path", "words"), INVALID)
async def test_values_outside_of_a_list(
    client: Any, more: dict[str, Any], path: str, words: str
) -> None:
    """A value outside of a closed list is told the list."""
    error = await refused(client, more)

    assert error["message"].startswith("Invalid value: ")
    assert words in error["message"]
    assert (error["code"], error["param"]) == ("invalid_value", path)


@pytest.mark.parametrize(("more", "code", "path"), LIMITS)
async def test_limits(client: Any, more: dict[str, Any], code: str, path: str) -> None:
    """A value beyond its limit is refused; effort none lets sampling through."""
    error = await refused(client, {**more, "reasoning": {"effort": "none"}})

    assert (error["code"], error["param"]) == (code, path)


@pytest.mark.parametrize(("tool", "path"), [*IMAGE_OPTIONS, *HOSTED_OPTIONS])
async def test_options_of_hosted_tools(
    client: Any, tool: dict[str, Any], path: str
) -> None:
    """An option that does not do is named."""
    error = await refused(client, {"tools": [FUNCTION, tool]})

    assert error["param"] == f"tools[1].{path}"


@pytest.mark.parametrize("tool", TAKEN_TOOLS)
async def test_hosted_tools_that_are_taken(client: Any, tool: dict[str, Any]) -> None:
    """What the types describe is taken."""
    await client.ask(tools=[tool])


async def test_more_vector_stores_than_two(client: Any) -> None:
    """The refusal names no place."""
    stores = {**STORES, "vector_store_ids": ["vs_1", "vs_2", "vs_3"]}
    error = await refused(client, {"tools": [stores]})

    assert "maximum of 2 vector stores allowed" in error["message"]
    assert error["param"] is None


async def test_a_background_that_is_a_preview(client: Any) -> None:
    """The refusal has a type of its own and names no place."""
    tool = {**DRAW, "model": "gpt-image-2", "background": "transparent"}
    heard = await client.post(client.body(tools=[tool]))

    assert heard.status == 400
    assert heard.error["type"] == "image_generation_user_error"
    assert (heard.error["code"], heard.error["param"]) == ("invalid_value", None)


@pytest.mark.parametrize("model", ["gpt-5.6-sol", "gpt-6-luna"])
async def test_a_tier_that_the_model_has_not(client: Any, model: str) -> None:
    """The refusal has no code and names no place."""
    error = await refused(client, {"model": model, "service_tier": "ultrafast"})

    assert error["message"] == "Unsupported service_tier: ultrafast"
    assert (error["code"], error["param"]) == (None, None)
    await client.ask(model="gpt-6.2-sol", service_tier="ultrafast")


async def test_a_schema_for_a_model_without(client: Any) -> None:
    """One model writes no answers by a schema."""
    format = {"type": "json_schema", "name": "x", "schema": STRICT}
    more = {"model": "gpt-5.2-pro", "text": {"format": format}}

    assert (await refused(client, more))["param"] == "text.format"


TOO_LONG = "x" * 10_485_761
PART = {"type": "input_text", "text": TOO_LONG}


@pytest.mark.parametrize(
    ("more", "path"),
    [
        ({"input": TOO_LONG}, "input"),
        ({"instructions": TOO_LONG}, "instructions"),
        (
            {"input": [{"role": "user", "content": [PART]}]},
            "input[0].content[0].text",
        ),
        (
            {"input": [{**CALL, "arguments": "x" * 1_048_577}]},
            "input[0].arguments",
        ),
    ],
)
async def test_texts_that_are_too_long(
    client: Any, more: dict[str, Any], path: str
) -> None:
    """Each text of an item has its limit, also in a part."""
    error = await refused(client, more)

    assert (error["code"], error["param"]) == ("string_above_max_length", path)


@pytest.mark.parametrize(("count", "status"), [(16_384, 200), (16_385, 400)])
async def test_an_input_has_so_many_items(client: Any, count: int, status: int) -> None:
    """One more is refused, whatever the items are."""
    heard = await client.post(
        {
            "model": "gpt-4.1",
            "input": [{"role": "user", "content": "sim:short"}] * count,
        }
    )

    assert heard.status == status
    if status == 400:
        assert heard.error["param"] == "input"
        assert heard.error["code"] == "array_above_max_length"


@pytest.mark.parametrize(
    "raw", ["{", "[]", '"x"', '{"top_p": NaN}', '{"a": "\\ud83d"}', b'{"a": "\xff"}']
)
async def test_a_body_that_is_no_object(client: Any, raw: str | bytes) -> None:
    """A body that is no JSON object is refused in the API's words."""
    url = f"{client.simulator.base_url}/responses"
    headers = {"Authorization": "Bearer sk-simulator-1"}
    async with client.session.post(url, data=raw, headers=headers) as answer:
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
async def test_schemas(client: Any, schema: dict[str, Any], words: str) -> None:
    """A function's schema must be a schema of an object, strict or not."""
    error = await refused(client, {"tools": [{**FUNCTION, "parameters": schema}]})

    assert error["message"] == f"Invalid schema for function 'f': {words}"
    assert error["code"] == "invalid_function_parameters"


@pytest.mark.parametrize(("schema", "words"), STRICT_CASES)
async def test_strict_schemas(client: Any, schema: dict[str, Any], words: str) -> None:
    """A strict function's schema must keep the rules of strict mode."""
    tool = {**FUNCTION, "parameters": schema, "strict": True}
    error = await refused(client, {"tools": [tool]})

    assert words in error["message"]
    assert error["code"] == "invalid_function_parameters"
    assert error["param"] == "tools[0].parameters"


ACCEPTED = [
    {
        "input": [
            {"type": "message", "role": "developer", "content": "x"},
            {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        ]
    },
    {
        "input": [
            {"role": "assistant", "content": "x", "phase": "commentary"},
            {"role": "user", "content": "y"},
        ]
    },
    {
        "input": [
            {
                "role": "assistant",
                "phase": None,
                "content": [{"type": "output_text", "text": "x"}],
            },
            {"role": "user", "content": "y"},
        ]
    },
    {
        "input": [
            {
                "role": "user",
                "content": [
                    {
                        "type": "input_image",
                        "image_url": PIXEL,
                        "detail": "auto",
                    }
                ],
            }
        ]
    },
    {
        "input": [
            CALL,
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": "x"}],
            },
        ]
    },
    {"tools": [FUNCTION], "tool_choice": {"type": "function", "name": "f"}},
    {"tools": [{"type": "web_search", "user_location": {"type": "approximate"}}]},
    {
        "text": {"verbosity": "low", "format": {"type": "json_object"}},
        "input": "Answer in JSON",
    },
    {"metadata": {"chat": "1"}, "service_tier": "fast", "truncation": "auto"},
    {"prompt_cache_options": {"ttl": "12h"}, "prompt_cache_key": "k" * 64},
    {"reasoning": {"effort": "high", "summary": "auto", "context": "all_turns"}},
    {"instructions": "Be kind.", "include": ["reasoning.encrypted_content"]},
]


@pytest.mark.parametrize("more", ACCEPTED)
async def test_what_the_api_takes(client: Any, more: dict[str, Any]) -> None:
    """The stand-in is strict, not stubborn."""
    heard = await client.post({**client.body(), **more})

    assert heard.status == 200, heard.raw
