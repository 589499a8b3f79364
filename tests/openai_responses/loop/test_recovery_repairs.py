"""What a refusal names is found, in the words of the API and of gateways."""

import json
from typing import Any

import pytest

from openai_responses.errors import ApiError, Failure, read_api_error
from openai_responses.loop.recovery import find_repair, named_place
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.repairs import Repair, item_names, json_digest

Item = dict[str, Any]

USER: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "Hi"}],
}
THOUGHT: Item = {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}
CALL: Item = {
    "type": "function_call",
    "call_id": "call_abcd",
    "name": "look",
    "arguments": "{}",
}
OUTPUT: Item = {
    "type": "function_call_output",
    "call_id": "call_abcd",
    "output": "seen",
}
CODE: Item = {"type": "code_interpreter_call", "id": "ci_1", "container_id": "cntr_1"}
SEARCH: Item = {"type": "web_search_call", "id": "ws_1234", "status": "completed"}
PICTURE: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_image", "image_url": "data:"}],
}
LOOK: Item = {"type": "function", "name": "look", "parameters": {}}
CLOCKS: Item = {
    "type": "mcp",
    "server_label": "clocks",
    "server_url": "https://x.example",
}
WEB: Item = {"type": "web_search"}
INPUT = [USER, THOUGHT, CALL, OUTPUT, CODE, SEARCH, PICTURE, USER]


def asking(**fields: Any) -> ResponsesRequest:
    """A request with everything that can be refused."""
    asked: dict[str, Any] = {
        "model": "m",
        "input": INPUT,
        "reasoning": {"effort": "none", "summary": "auto"},
        "text": {"verbosity": "low"},
        "tools": [LOOK, CLOCKS, WEB],
        "prompt_cache_key": "k",
    }
    return ResponsesRequest(**(asked | fields))


def repair_of(error: ApiError, status: int = 400, **fields: Any) -> Repair | None:
    """The repair after this refusal, which has a sentence."""
    found = find_repair(asking(**fields), Failure(status, error), done=0)
    if found is None:
        return None
    assert found.sentence
    return found.repair


def words(message: str) -> ApiError:
    """A refusal that has words alone."""
    return ApiError(message=message)


LAST = item_names(INPUT)[-1]


@pytest.mark.parametrize(
    ("error", "action", "target"),
    [
        (ApiError("unknown_parameter", param="input[5].status"), "field", ""),
        (words("Unknown parameter: 'input[5].status'."), "field", ""),
        (words("Missing required parameter: 'input[5].id'."), "item", SEARCH),
        (ApiError("invalid_value", param="input[1].summary"), "item", THOUGHT),
        (ApiError(None, None, "input[2].call_id"), "item", CALL),
        (ApiError(None, None, "input[6].content[0].image_url"), "text", PICTURE),
        (ApiError("invalid_image_format", message="Bad image."), "text", PICTURE),
        (words("No tool output found for function call call_abcd."), "item", CALL),
        (words("Invalid 'input[5].id': 'ws_1234'. Use letters."), "item", SEARCH),
        (ApiError("invalid_encrypted_content"), "reasoning", LAST),
        (words("The encrypted content gAAA could not be verified."), "reasoning", LAST),
        (
            words("Item 'rs_1' of type 'reasoning' was provided without its required"),
            "reasoning",
            LAST,
        ),
        (words("Item with id 'ws_1234' not found. Items are not"), "item", SEARCH),
        (words("Container is expired."), "kind", f"code_interpreter_call@{LAST}"),
        (
            words("Expected container_id: cntr_1"),
            "kind",
            f"code_interpreter_call@{LAST}",
        ),
        (
            words("Missing namespace for function_call 'look'. It does not exist"),
            "kind",
            f"function_call:look@{LAST}",
        ),
        (ApiError(None, None, "tools[0].parameters"), "tool", LOOK),
        (words("Invalid schema for function 'look': type is not valid."), "tool", LOOK),
        (
            words("Hosted tool 'web_search' is not supported with this model."),
            "tool",
            WEB,
        ),
        (
            words("Error retrieving tool list from MCP server: 'clocks'."),
            "tool",
            CLOCKS,
        ),
        (ApiError(None, None, "reasoning.summary"), "parameter", "reasoning.summary"),
        (
            words("Your organization must be verified to generate reasoning.summary"),
            "parameter",
            "reasoning.summary",
        ),
        (words("Your organization must be verified to stream."), "parameter", "stream"),
        (words("Unsupported parameter: 'verbosity'"), "parameter", "text.verbosity"),
        (
            words("[{'loc': ('body', 'prompt_cache_key'), 'msg': 'Extra inputs'}]"),
            "parameter",
            "prompt_cache_key",
        ),
    ],
)
def test_what_a_refusal_names(error: ApiError, action: str, target: object) -> None:
    """By its place, its id, its name, or by words that only this cause has."""
    repair = repair_of(error)
    assert repair is not None
    named = target if isinstance(target, str) else json_digest(target)
    assert (repair.action, repair.target) == (
        action,
        named or "input:web_search_call.status",
    )


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ApiError("invalid_prompt", param="input[5]"), 400),
        (ApiError("insufficient_quota"), 429),
        (ApiError("server_error", message="Try 'web_search' later."), 500),
        (ApiError("model_not_found", param="model"), 404),
        (ApiError("context_length_exceeded", param="input"), 400),
        (ApiError(param="input[0].content"), 401),
        (words("Not found"), 404),
    ],
)
def test_other_causes_change_nothing(error: ApiError, status: int) -> None:
    """The refusal is about the account, the policy or the server."""
    assert repair_of(error, status) is None


def test_what_people_wrote_stays() -> None:
    """The refusal of a question is the answer; its picture can go."""
    found = find_repair(asking(input=[USER]), Failure(400, ApiError(param="input[0]")))
    assert found is None
    for place in (
        "model",
        "text.format",
        "input",
        "tools[9]",
        "input[99]",
        "background",
    ):
        request = asking(input=[USER], tools=None, text={"format": {"type": "text"}})
        error = ApiError("unknown_parameter", param=place)
        assert find_repair(request, Failure(400, error)) is None


def test_unknown_refusal_is_met_with_the_plain_words_once() -> None:
    """After three repairs, or if nothing is named; then the refusal stands."""
    strange = Failure(422, words("It cannot be."))
    found = find_repair(asking(), strange)
    assert found
    assert found.repair == Repair("plain", LAST)
    named = Failure(400, ApiError(param="input[5]"))
    found = find_repair(asking(), named, done=3)
    assert found
    assert found.repair == Repair("plain", LAST)
    plain = asking(repairs=(Repair("plain", LAST),))
    assert find_repair(plain, strange, done=1) is None
    assert find_repair(asking(input=[USER]), strange) is None


def test_same_repair_is_not_tried_twice() -> None:
    """The next best is: first the words of a message, then the message."""
    answer: Item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Hi", "annotations": [{}]}],
    }
    request, error = asking(input=[USER, answer, USER]), ApiError(param="input[1]")
    actions = []
    for done in range(3):
        found = find_repair(request, Failure(400, error), done)
        if found is None or found.repair is None:
            break
        actions.append(found.repair.action)
        repairs = (*request.repairs, found.repair)
        request = request.model_copy(update={"repairs": repairs})
    assert actions == ["text", "item"]


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError(param="reasoning.summary"), True),
        (words("Not for 'x reasoning.summary'."), False),
        (ApiError("unknown_parameter", param="input[5].status"), True),
        (words("Unknown parameter: 'input[5].status'"), False),
        (ApiError(param="tools[0]"), True),
        (words("Error retrieving tool list from MCP server: 'clocks'."), False),
        (ApiError(param="input[5]"), False),
    ],
)
def test_what_is_remembered_was_named_by_the_server(
    error: ApiError, is_named: bool
) -> None:
    """The words of a message may be the user's own, and a server may come back."""
    found = find_repair(asking(), Failure(400, error))
    assert found is not None
    assert found.is_named is is_named


def test_place_is_told_with_its_name() -> None:
    """Nobody can count the items of a request in a log."""
    assert named_place(asking(), ApiError(param="input[5].id")).endswith(
        "(web_search_call):"
    )
    assert named_place(asking(), words("'tools[0].x' is bad")) == "tools[0] (look):"
    assert named_place(asking(), words("'tools[7].x' is bad")) == ""


INNER = {"message": "No.", "code": "bad", "param": "input[3]", "type": "t"}


@pytest.mark.parametrize(
    "wire",
    [
        {"error": INNER},
        {"error": {"message": "Provider returned error", "metadata": {"raw": "%s"}}},
        {
            "error": {
                "message": "litellm.BadRequestError: OpenAIException - %s. Group=g"
            }
        },
        {"detail": "upstream said %s"},
        {"error": "%s"},
    ],
)
def test_gateways_repeat_the_error_of_the_api(wire: Any) -> None:
    """As an object or as a text; the inner one says what is wrong."""
    text = json.dumps({"error": INNER}, indent=1)
    whole = json.loads(json.dumps(wire).replace("%s", json.dumps(text)[1:-1]))
    assert read_api_error(whole) == ("bad", "t", "input[3]", "No.")


@pytest.mark.parametrize("text", ["{", "{}", '{"error": {}}', "{" * 5000, "a {b} c"])
def test_other_texts_are_messages(text: str) -> None:
    """Whatever stands in them."""
    assert read_api_error({"error": {"message": text}}).message == text
