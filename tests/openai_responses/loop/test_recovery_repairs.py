"""What a refusal names is found, in the words of the API and of gateways."""

import json
from typing import Any

import pytest

from openai_responses.errors import ApiError, Failure, read_api_error
from openai_responses.loop.events import Status
from openai_responses.loop.recovery import find_repair, last_repair, named_place
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.repairs import Repair, item_names, json_digest

Item = dict[str, Any]

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
ATLAS: Item = {**CLOCKS, "server_label": "atlas"}
WEB: Item = {"type": "web_search"}
SEEK: Item = {"type": "tool_search"}
SHIPS: Item = {"type": "function", "name": "ships_list", "defer_loading": True}
PORTS: Item = {**SHIPS, "name": "ports_list"}
SPACE: Item = {
    "type": "namespace",
    "name": "ships_1",
    "description": "Functions: ships_list, ports_list",
    "tools": [SHIPS, PORTS],
}
HISTORY = [USER, THOUGHT, CALL, OUTPUT, ANSWER, USER]
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


def find(error: ApiError, status: int = 400, **fields: Any) -> Status | None:
    """The first repair after a refusal."""
    return find_repair(asking(**fields), Failure(status, error))


def repair_of(error: ApiError, status: int = 400, **fields: Any) -> Repair | None:
    """The repair after this refusal, which has a sentence."""
    found = find(error, status, **fields)
    assert found is None or found.sentence
    return found.repair if found else None


def repaired(error: ApiError, **fields: Any) -> Item:
    """The body that is sent after a refusal."""
    repair = repair_of(error, **fields)
    assert repair is not None
    return asking(**fields, repairs=(repair,)).payload()


def changed(error: ApiError, **fields: Any) -> Item:
    """What a repair changed of the body, None for what it left out."""
    before, after = asking(**fields).payload(), repaired(error, **fields)
    return {key: after.get(key) for key in before if before[key] != after.get(key)}


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
        (
            words("Item with id 'rs_9999' not found. Items are not persisted when"),
            "reasoning",
            LAST,
        ),
        (
            words("Reasoning input items can only be provided to a reasoning model."),
            "reasoning",
            LAST,
        ),
        (words("Duplicate item found with id fc_1234. Remove"), "item", CALL),
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
        (ApiError(param="input[5]"), 413),
        (ApiError(), 307),
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
        (ApiError(param="stream"), True),
        (ApiError(message="Use 'low'.", param="reasoning.effort"), True),
        (words("'must be verified to stream' is gone"), False),
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


@pytest.mark.parametrize(
    "text",
    [
        "Item 'rs_1234' of type 'reasoning' was provided without its required "
        "following item.",
        "Item 'fc_1234' of type 'function_call' was provided without its required "
        "'reasoning' item: 'rs_9999'.",
        "No tool output found for function call call_abcd.",
    ],
)
def test_item_that_is_named_is_left_out(text: str) -> None:
    """With the reasoning in front of it; texts of people always stay."""
    sent = repaired(words(text), input=HISTORY)["input"]
    assert THOUGHT not in sent
    assert (CALL in sent) == (OUTPUT in sent)
    told = [item for item in sent if item.get("role")]
    assert [item for item in told if "I " not in str(item)] == [USER, ANSWER, USER]


LIST: Item = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "x"} | {
    "tools": []
}


@pytest.mark.parametrize(
    ("given", "left"),
    [
        (HISTORY, [USER, CALL, OUTPUT, ANSWER, USER]),
        ([THOUGHT, LIST, USER], [LIST, USER]),  # hosted items keep their ids
        ([USER, ANSWER, USER], None),
    ],
)
def test_reasoning_that_cannot_be_read(
    given: list[Item], left: list[Item] | None
) -> None:
    """All of it goes: the error does not tell which item is meant."""
    error = ApiError("invalid_encrypted_content")
    before = asking(input=given)
    assert (left is None) == (repair_of(error, input=given) is None)
    if left:
        assert changed(error, input=given) == {"input": left}
    assert before == asking(input=given)  # a repair is kept beside the request


@pytest.mark.parametrize(
    ("asked", "named", "nearest"),
    [
        ("none", "'minimal', 'low', 'medium', and 'high'", "minimal"),
        ("max", "'low', 'medium', and 'high'", "high"),
        ("minimal", "'none', 'low' and 'high'", "none"),
        ("xhigh", "'high'", "high"),
        ("low", "", None),
    ],
)
def test_effort_that_the_model_lacks(
    asked: str, named: str, nearest: str | None
) -> None:
    """The nearest of those that the error names is taken, else the model's own."""
    message = (
        f"Unsupported value: '{asked}' is not supported with the 'gpt-5' model. "
        f"Supported values are: {named}."
    )
    error = ApiError("unsupported_value", param="reasoning.effort", message=message)
    wanted = {"effort": asked, "summary": "auto"}
    effort = {"effort": nearest} if nearest else {}
    assert changed(error, reasoning=wanted) == {
        "reasoning": {**effort, "summary": "auto"}
    }


def test_parameter_alone_goes() -> None:
    """What stands beside it stays; without `stream` the answer comes in one piece."""
    summary = ApiError("unsupported_value", param="reasoning.summary")
    assert changed(summary) == {"reasoning": {"effort": "none"}}
    for error in (ApiError(param="stream"), words("must be verified to stream this")):
        assert changed(error) == {"stream": None}


UNREACHED = ApiError(
    "http_error",
    "external_connector_error",
    "tools",
    "Error retrieving tool list from MCP server: 'clocks'. Http status code: 424 "
    "(Failed Dependency)",
)


@pytest.mark.parametrize(
    ("choice", "left"),
    [("required", None), ({"type": "mcp"}, {"type": "mcp"}), (None, None)],
)
def test_server_that_cannot_be_reached(choice: Any, left: Any) -> None:
    """It alone is left out; a choice stays where it names what is left."""
    sent = repaired(UNREACHED, tools=[CLOCKS, LOOK, ATLAS], tool_choice=choice)
    assert sent["tools"] == [LOOK, ATLAS]
    assert sent.get("tool_choice") == left


def test_no_tools_are_left() -> None:
    """Then there is nothing to choose from, and nothing more to leave out."""
    alone = repaired(UNREACHED, tools=[CLOCKS], tool_choice="none")
    assert not {"tools", "tool_choice"} & {*alone}
    sent = repaired(UNREACHED, tools=[CLOCKS, LOOK], tool_choice="none")
    assert sent["tool_choice"] == "none"
    assert repair_of(UNREACHED, input=[USER], tools=[LOOK]) is None
    assert repair_of(UNREACHED, input=[USER], tools=None) is None


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (words("Tool 'tool_search' is not supported with this model."), [LOOK]),
        (ApiError("invalid_value", param="tools[2].type"), [LOOK]),
        (words("Invalid value: 'namespace'. See 'tools[2]'."), [LOOK]),
        (
            ApiError("invalid_function_parameters", param="tools[2].tools[0].name"),
            [LOOK, SEEK, {**SPACE, "tools": [PORTS]}],
        ),
        (
            words("Invalid schema for function 'ports_list': no."),
            [LOOK, SEEK, {**SPACE, "tools": [SHIPS]}],
        ),
    ],
)
def test_tools_that_are_searched(error: ApiError, left: list[Item]) -> None:
    """Without the search nothing finds them; one bad tool takes only itself along."""
    assert repaired(error, tools=[LOOK, SEEK, SPACE])["tools"] == left


def test_search_for_tools_that_always_fails() -> None:
    """When retries did not help, the answer comes without it, this once."""
    failure = Failure(200, ApiError("server_error", "server_error"))
    searching = asking(tools=[LOOK, SEEK, SPACE])
    assert find_repair(searching, failure) is None
    found = last_repair(searching, failure)
    assert found is not None
    assert (found.repair, found.is_lasting) == (
        Repair("tool", json_digest(SEEK)),
        False,
    )
    assert last_repair(asking(), failure) is None
    assert last_repair(searching, Failure(400, ApiError("invalid_prompt"))) is None
    assert last_repair(searching, Failure()) is None
    done = searching.model_copy(update={"repairs": (found.repair,)})
    assert last_repair(done, failure) is None


def test_nobody_understands_the_refusal() -> None:
    """The plain texts, calls and outputs are sent, if that is anything else."""
    for error in (ApiError(), ApiError("unsupported_parameter", param="temperature")):
        sent = repaired(error, input=HISTORY)["input"]
        assert [item for item in sent if item.get("role")] == [USER, ANSWER, USER]
        assert THOUGHT not in sent
        assert len(sent) == 5
        assert repair_of(error, input=[USER, ANSWER, USER]) is None


def test_plain_words_of_a_later_turn() -> None:
    """What came since the last time may be refused again."""
    before = Repair("plain", item_names(HISTORY)[-1])
    more = [*HISTORY, THOUGHT, ANSWER, {**USER, "id": "x"}]
    request = asking(input=more, repairs=(before,))
    found = find_repair(request, Failure(422, words("It cannot be.")))
    assert found is not None
    assert found.repair == Repair("plain", item_names(more)[-1])


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
    assert read_api_error(whole)[:4] == ("bad", "t", "input[3]", "No.")


@pytest.mark.parametrize("text", ["{", "{}", '{"error": {}}', "{" * 5000, "a {b} c"])
def test_other_texts_are_messages(text: str) -> None:
    """Whatever stands in them."""
    assert read_api_error({"error": {"message": text}}).message == text
