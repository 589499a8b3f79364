"""Refusals whose cause can be left out, in the words of the API."""

from typing import Any

import pytest

from openai_responses.errors import ApiError
from openai_responses.loop.recovery import find_fallback
from openai_responses.requests.build import ResponsesRequest

USER = {"type": "message", "role": "user", "content": [{"type": "input_text"}]}
THOUGHT = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f"}


def request(**fields: Any) -> ResponsesRequest:
    """A request with reasoning in its history."""
    reasoning = {"effort": "none", "summary": "auto"}
    asked = {"model": "m", "input": [USER, THOUGHT, CALL], "reasoning": reasoning}
    return ResponsesRequest(**(asked | fields))


def fallback(error: ApiError, **fields: Any) -> Any:
    """The fallback that there must be."""
    found = find_fallback(request(**fields), error)
    assert found is not None
    assert found.status.sentence
    return found


@pytest.mark.parametrize(
    "error",
    [
        ApiError("invalid_encrypted_content", message="whatever"),
        ApiError(
            message="Item 'rs_1' of type 'reasoning' was provided without its "
            "required following item."
        ),
        ApiError(
            message="Item 'msg_1' of type 'message' was provided without its required "
            "'reasoning' item: 'rs_1'."
        ),
        ApiError(
            message="Item with id 'rs_1' not found. Items are not persisted when "
            "`store` is set to false."
        ),
        ApiError(message="Duplicate item found with id rs_1. Remove duplicate items"),
        ApiError(
            message="Invalid 'input[3].id': 'x'. Expected an ID that begins with 'rs'."
        ),
        ApiError(message="The encrypted content gAAA could not be verified."),
    ],
)
def test_reasoning_that_is_not_accepted_is_left_out(error: ApiError) -> None:
    """All of it, and the ids: one item does not tell which is meant."""
    found = fallback(error)
    assert found.status.cause == "reasoning"
    assert found.request.input == [USER, _no_id(CALL)]
    assert found.request.reasoning == request().reasoning


def _no_id(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key != "id"}


def test_nothing_to_leave_out_is_no_remedy() -> None:
    """The same request would be refused again."""
    error = ApiError("invalid_encrypted_content")
    assert find_fallback(request(input=[USER]), error) is None


def test_a_summary_that_is_not_allowed() -> None:
    """The effort stays."""
    found = fallback(ApiError("unsupported_value", param="reasoning.summary"))
    assert found.status.cause == "summary"
    assert found.request.reasoning == {"effort": "none"}


@pytest.mark.parametrize(
    "error",
    [
        ApiError(message="Your organization must be verified to stream this model."),
        ApiError("unsupported_value", param="stream"),
    ],
)
def test_a_stream_that_is_not_allowed(error: ApiError) -> None:
    """The answer then comes in one piece."""
    assert fallback(error).request.stream is False
    assert find_fallback(request(stream=False), error) is None


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
    found = fallback(error, reasoning={"effort": asked, "summary": "auto"})
    assert found.status.cause == "effort"
    assert found.request.reasoning == {"effort": nearest, "summary": "auto"}


LIST = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x", "tools": []}
SERVER = {"type": "mcp", "server_label": "clocks", "server_url": "https://x.example"}
FUNCTION = {"type": "function", "name": "f"}
UNREACHED = ApiError(
    "http_error",
    "external_connector_error",
    "tools",
    "Error retrieving tool list from MCP server: 'clocks'. Http status code: 424 "
    "(Failed Dependency)",
)


def test_hosted_items_keep_their_ids() -> None:
    """Without them the API would refuse the request for another reason."""
    found = fallback(ApiError("invalid_encrypted_content"), input=[THOUGHT, LIST, USER])
    assert found.request.input == [LIST, USER]


@pytest.mark.parametrize("choice", ["required", {"type": "mcp"}, None])
def test_a_server_that_cannot_be_reached(choice: Any) -> None:
    """No remote server is asked; a tool that has to be called may have been theirs."""
    tools = [SERVER, FUNCTION, {**SERVER, "server_label": "atlas"}]
    found = fallback(UNREACHED, tools=tools, tool_choice=choice)
    assert found.status.cause == "servers"
    assert found.request.tools == [FUNCTION]
    assert found.request.tool_choice is None
    alone = fallback(UNREACHED, tools=[SERVER], tool_choice="none").request
    assert (alone.tools, alone.tool_choice) == (None, None)
    assert fallback(UNREACHED, tools=tools, tool_choice="none").request.tool_choice


def test_without_servers_there_is_nothing_to_leave_out() -> None:
    """The error cannot be about ours."""
    assert find_fallback(request(tools=[FUNCTION]), UNREACHED) is None
    assert find_fallback(request(), UNREACHED) is None


@pytest.mark.parametrize(
    "error",
    [
        ApiError("unsupported_value", param="reasoning.effort", message="no values"),
        ApiError("invalid_prompt", message="no"),
        ApiError("unsupported_parameter", param="temperature"),
        ApiError(),
    ],
)
def test_other_refusals_stand(error: ApiError) -> None:
    """What we do not understand we do not change."""
    assert find_fallback(request(), error) is None


def test_the_request_itself_is_untouched() -> None:
    """A fallback is a new request."""
    before = request()
    copy = before.model_copy(deep=True)
    find_fallback(before, ApiError("invalid_encrypted_content"))
    assert before == copy


@pytest.mark.parametrize(
    ("error", "cause", "is_lasting"),
    [
        (ApiError(param="reasoning.summary"), "summary", True),
        (ApiError(param="stream"), "stream", True),
        (ApiError(message="Not for 'x reasoning.summary'."), "summary", False),
        (ApiError(message="'must be verified to stream' is gone"), "stream", False),
        (ApiError("invalid_encrypted_content"), "reasoning", False),
        (ApiError(message="Use 'low'.", param="reasoning.effort"), "effort", False),
    ],
)
def test_a_refusal_lasts_if_the_server_names_the_parameter(
    error: ApiError, cause: str, is_lasting: bool
) -> None:
    """The words of a message may be the user's own."""
    status = fallback(error).status

    assert (status.cause, status.is_lasting) == (cause, is_lasting)
