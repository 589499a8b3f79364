"""Refusals whose cause can be left out, in the words of the API."""

from typing import Any

import pytest

from openai_responses.errors import ApiError, Failure
from openai_responses.items import Item
from openai_responses.loop.events import Status
from openai_responses.loop.recovery import find_repair
from openai_responses.requests.build import ResponsesRequest

Json = dict[str, Any]

USER: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hi"}],
}
ANSWER: Item = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello.", "annotations": []}],
}
THOUGHT: Item = {
    "type": "reasoning",
    "id": "rs_1234",
    "summary": [],
    "encrypted_content": "gAAA",
}
CALL: Item = {
    "type": "function_call",
    "id": "fc_1234",
    "call_id": "call_1234",
    "name": "f",
    "arguments": "{}",
}
OUTPUT: Item = {"type": "function_call_output", "call_id": "call_1234", "output": "x"}


def request(**fields: Any) -> ResponsesRequest:
    """A request with reasoning and a call in its history."""
    reasoning = {"effort": "none", "summary": "auto"}
    items = [USER, THOUGHT, CALL, OUTPUT, ANSWER, USER]
    return ResponsesRequest(
        **({"model": "m", "input": items, "reasoning": reasoning} | fields)
    )


def find(error: ApiError, status: int = 400, **fields: Any) -> Status | None:
    """The first repair after a refusal."""
    return find_repair(request(**fields), Failure(status, error))


def repaired(error: ApiError, **fields: Any) -> Json:
    """The body that is sent after a refusal that can be repaired, and is told."""
    found = find(error, **fields)
    assert found is not None
    assert found.sentence
    assert found.repair is not None
    return request(**fields, repairs=(found.repair,)).payload()


def changed(error: ApiError, **fields: Any) -> Json:
    """What a repair changed of the body, None for what it left out."""
    before, after = request(**fields).payload(), repaired(error, **fields)
    keys = [*before, *(key for key in after if key not in before)]
    return {key: after.get(key) for key in keys if before.get(key) != after.get(key)}


@pytest.mark.parametrize(
    "error",
    [
        ApiError("invalid_encrypted_content", message="whatever"),
        ApiError(
            message="Item with id 'rs_9999' not found. Items are not persisted when "
            "`store` is set to false."
        ),
        ApiError(message="The encrypted content gAAA could not be verified."),
        ApiError(
            message="Reasoning input items can only be provided to a reasoning model."
        ),
    ],
)
def test_reasoning_that_cannot_be_read_is_left_out(error: ApiError) -> None:
    """All of it: the error does not tell which item is meant."""
    assert changed(error) == {"input": [USER, CALL, OUTPUT, ANSWER, USER]}


@pytest.mark.parametrize(
    "words",
    [
        "Item 'rs_1234' of type 'reasoning' was provided without its required "
        "following item.",
        "Item 'fc_1234' of type 'function_call' was provided without its required "
        "'reasoning' item: 'rs_9999'.",
        "Duplicate item found with id fc_1234. Remove duplicate items",
        "Invalid 'input[2].id': 'x'. Expected an ID that begins with 'fc'.",
        "No tool output found for function call call_1234.",
    ],
)
def test_an_item_that_is_named_is_left_out(words: str) -> None:
    """With the reasoning in front of it; texts of people always stay."""
    sent = repaired(ApiError(message=words))["input"]
    assert THOUGHT not in sent
    assert (CALL in sent) == (OUTPUT in sent)
    told = [item for item in sent if item.get("role")]
    assert [item for item in told if "I " not in str(item)] == [USER, ANSWER, USER]


def test_nothing_to_leave_out_is_no_repair() -> None:
    """The same request would be refused again."""
    error = ApiError("invalid_encrypted_content")
    assert find(error, input=[USER, ANSWER, USER]) is None


def test_a_summary_that_is_not_allowed() -> None:
    """The effort stays."""
    error = ApiError("unsupported_value", param="reasoning.summary")
    assert changed(error) == {"reasoning": {"effort": "none"}}


@pytest.mark.parametrize(
    "error",
    [
        ApiError(message="Your organization must be verified to stream this model."),
        ApiError("unsupported_value", param="stream"),
    ],
)
def test_a_stream_that_is_not_allowed(error: ApiError) -> None:
    """The answer then comes in one piece: that is the API's default."""
    assert changed(error) == {"stream": None}


@pytest.mark.parametrize(
    ("asked", "named", "nearest"),
    [
        ("none", "'minimal', 'low', 'medium', and 'high'", "minimal"),
        ("max", "'low', 'medium', and 'high'", "high"),
        ("minimal", "'none', 'low' and 'high'", "none"),
        ("xhigh", "'high'", "high"),
    ],
)
def test_an_effort_that_the_model_lacks(asked: str, named: str, nearest: str) -> None:
    """The nearest of those that the error names is taken."""
    message = (
        f"Unsupported value: '{asked}' is not supported with the 'gpt-5' model. "
        f"Supported values are: {named}."
    )
    error = ApiError("unsupported_value", param="reasoning.effort", message=message)
    wanted = {"effort": asked, "summary": "auto"}
    assert changed(error, reasoning=wanted) == {
        "reasoning": {"effort": nearest, "summary": "auto"}
    }


def test_an_effort_without_a_named_one_is_left_out() -> None:
    """The model then takes its own."""
    error = ApiError("unsupported_value", param="reasoning.effort", message="no values")
    assert changed(error) == {"reasoning": {"summary": "auto"}}


LIST: Item = {
    "type": "mcp_list_tools",
    "id": "mcpl_1",
    "server_label": "x",
    "tools": [],
}
SERVER: Item = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://x.example",
}
ATLAS: Item = {**SERVER, "server_label": "atlas"}
FUNCTION: Item = {"type": "function", "name": "f"}
UNREACHED = ApiError(
    "http_error",
    "external_connector_error",
    "tools",
    "Error retrieving tool list from MCP server: 'clocks'. Http status code: 424 "
    "(Failed Dependency)",
)


def test_hosted_items_keep_their_ids() -> None:
    """Without them the API would refuse the request for another reason."""
    error = ApiError("invalid_encrypted_content")
    assert changed(error, input=[THOUGHT, LIST, USER]) == {"input": [LIST, USER]}


@pytest.mark.parametrize("choice", ["required", {"type": "mcp"}, None])
def test_a_server_that_cannot_be_reached(choice: Any) -> None:
    """It alone is left out; a tool that has to be called may have been its own."""
    sent = repaired(UNREACHED, tools=[SERVER, FUNCTION, ATLAS], tool_choice=choice)
    assert sent["tools"] == [FUNCTION, ATLAS]
    assert "tool_choice" not in sent


def test_no_tools_are_left() -> None:
    """Then there is nothing to choose from."""
    alone = repaired(UNREACHED, tools=[SERVER], tool_choice="none")
    assert not {"tools", "tool_choice"} & {*alone}
    sent = repaired(UNREACHED, tools=[SERVER, FUNCTION], tool_choice="none")
    assert sent["tool_choice"] == "none"


def test_without_servers_there_is_nothing_to_leave_out() -> None:
    """The error cannot be about ours."""
    assert find(UNREACHED, input=[USER], tools=[FUNCTION]) is None
    assert find(UNREACHED, input=[USER]) is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ApiError("invalid_prompt", message="no"), 400),
        (ApiError("context_length_exceeded", param="input"), 400),
        (ApiError("insufficient_quota", message="input[1]"), 429),
        (ApiError(message="input[1]"), 401),
        (ApiError(message="input[1]"), 413),
        (ApiError(), 307),
        (ApiError(), 404),
    ],
)
def test_refusals_that_no_change_removes_stand(error: ApiError, status: int) -> None:
    """They are about the key, the model, or what people wrote."""
    assert find(error, status) is None


@pytest.mark.parametrize(
    "error", [ApiError(), ApiError("unsupported_parameter", param="temperature")]
)
def test_refusals_that_nobody_understands(error: ApiError) -> None:
    """The plain texts, calls and outputs are sent once, if that is anything else."""
    sent = repaired(error)["input"]
    assert [item for item in sent if item.get("role")] == [USER, ANSWER, USER]
    assert THOUGHT not in sent
    assert len(sent) == 5
    assert find(error, input=[USER, ANSWER, USER]) is None


def test_the_request_itself_is_untouched() -> None:
    """A repair is kept beside the request."""
    before = request()
    copy = before.model_copy(deep=True)
    find_repair(before, Failure(400, ApiError("invalid_encrypted_content")))
    assert before == copy


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError(param="reasoning.summary"), True),
        (ApiError(param="stream"), True),
        (ApiError(message="Use 'low'.", param="reasoning.effort"), True),
        (ApiError(message="Not for 'x reasoning.summary'."), False),
        (ApiError(message="'must be verified to stream' is gone"), False),
    ],
)
def test_a_refusal_lasts_if_the_server_names_the_parameter(
    error: ApiError, is_named: bool
) -> None:
    """The words of a message may be the user's own."""
    found = find(error)
    assert found is not None
    assert found.is_named == is_named
