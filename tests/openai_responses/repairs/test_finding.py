"""What a refusal names is found, in the words of the API and of gateways."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

from openai_responses.errors import (
    ApiError,
    Failure,
    MalformedEvent,
    read_api_error,
    read_error_body,
)
from openai_responses.items import json_digest, text_message
from openai_responses.repairs.chat_repairs import (
    CallsAsWords,
    LeaveOutImages,
    LeaveOutItem,
    LeaveOutKind,
    LeaveOutPlainReasoning,
    LeaveOutReasoning,
    PlainItems,
    SendAsText,
    WordsAlone,
    item_names,
)
from openai_responses.repairs.finding import (
    MAX_REPAIRS,
    TriedRepair,
    blind_repair,
    find_repair,
    may_be_repaired,
)
from openai_responses.repairs.refusal import OwnTexts, Refusal, outer_name
from openai_responses.repairs.request_repairs import (
    AnswersAsTexts,
    AskForStream,
    AskToContinue,
    GatherInstructions,
    JoinMessages,
    LeaveOutBackground,
    LeaveOutEmptyTexts,
    LeaveOutField,
    LeaveOutFunctions,
    LeaveOutOptions,
    LeaveOutParameter,
    LeaveOutTool,
    LeaveOutToolChoice,
    LeaveOutToolField,
    LimitMedia,
    LowerItems,
    LowerLimit,
    MoveMessages,
    OfferFunctionsAlone,
    PlainSchemas,
    Repair,
    ReplaceEffort,
    SeparateCalls,
    ShortCallIds,
    ShortenDescriptions,
    StateDetail,
    StateIds,
    StateInstructions,
    TextOutputs,
)
from openai_responses.requests.build import ResponsesRequest

Item = dict[str, Any]

USER = text_message("user", "Hi")
ANSWER = text_message("assistant", "Hello.")
THOUGHT: Item = {"type": "reasoning", "id": "rs_1234", "encrypted_content": "gAAA"}
PLAIN_THOUGHT: Item = {
    "type": "reasoning",
    "content": [{"type": "reasoning_text", "text": "So."}],
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
IMAGE: Item = {"type": "input_image", "image_url": "data:"}
PICTURE: Item = {"type": "message", "role": "user", "content": [IMAGE]}
LOOK: Item = {"type": "function", "name": "look", "parameters": {}, "strict": False}
CLOCKS: Item = {"type": "mcp", "server_label": "clocks", "server_url": "https://x.test"}
WEB: Item = {"type": "web_search"}
STORES: Item = {"type": "file_search", "vector_store_ids": ["vs_1234", "vs_5678"]}
DRAW: Item = {"type": "image_generation", "size": "1x1"}
LISTED: Item = {"type": "mcp_list_tools", "server_label": "clocks", "tools": [LOOK]}
HISTORY = [USER, THOUGHT, CALL, OUTPUT, ANSWER, USER]
INPUT = [USER, THOUGHT, CALL, OUTPUT, CODE, SEARCH, PICTURE, USER]
LAST = item_names(INPUT)[-1]


def asking(**fields: Any) -> ResponsesRequest:
    """A request with everything that can be refused."""
    asked: dict[str, Any] = {
        "model": "m",
        "input": INPUT,
        "reasoning": {"effort": "none", "summary": "auto"},
        "text": {"verbosity": "low"},
        "tools": [LOOK, CLOCKS, WEB, STORES, DRAW],
        "prompt_cache_key": "k",
        "include": ["x"],
    }
    return ResponsesRequest(**(asked | fields))


def tried_after(
    error: ApiError, status: int = 400, **fields: Any
) -> TriedRepair | None:
    sent = asking(**fields).sent()
    failure = Failure(status, error)
    return find_repair(sent, failure) or blind_repair(sent, failure)


def find(error: ApiError, status: int = 400, **fields: Any) -> TriedRepair:
    """What is tried first after a refusal that can be repaired."""
    tried = tried_after(error, status, **fields)
    assert tried
    assert tried.repair.message
    return tried


def words(message: str) -> ApiError:
    return ApiError(message=message)


def tool(named: Item) -> LeaveOutTool:
    return LeaveOutTool(json_digest(named))


def item(named: Item) -> LeaveOutItem:
    return LeaveOutItem(json_digest(named))


def parameter(path: str, value: object) -> LeaveOutParameter:
    return LeaveOutParameter(path, json_digest(value))


def each(what: str, table: Mapping[Repair, Sequence[object]]) -> pytest.MarkDecorator:
    """Test each message or error of a table, with the repair that it leads to."""
    rows = [(said, repair) for repair in table for said in table[repair]]
    return pytest.mark.parametrize((what, "repair"), rows)


@each(
    "error",
    {
        item(THOUGHT): [ApiError("invalid_value", param="input[1].summary")],
        item(CALL): [ApiError(param="input[2].call_id")],
        LeaveOutField("web_search_call", ("status",)): [
            ApiError("unknown_parameter", param="input[5].status")
        ],
        SendAsText(json_digest(PICTURE)): [
            ApiError(param="input[6].content[0].detail"),
            ApiError("invalid_image_format", message="Bad image."),
        ],
        StateInstructions(): [
            ApiError("missing_required_parameter", param="instructions")
        ],
        PlainSchemas("look"): [ApiError(param="tools[0].parameters")],
        LeaveOutToolField("strict"): [
            ApiError("unknown_parameter", param="tools[0].strict"),
            ApiError("unknown_parameter", param="strict"),
        ],
        tool(LOOK): [ApiError("invalid_value", param="tools[0].strict")],
        tool(CLOCKS): [ApiError("unknown_parameter", param="tools[1].allowed_tools")],
        tool(WEB): [ApiError("unknown_parameter", param="tools[2].filters")],
        OfferFunctionsAlone(): [
            ApiError(param="tools", message="Only function tools are supported.")
        ],
        tool(DRAW): [
            ApiError("invalid_value", "image_generation_user_error", None, "No size."),
            ApiError(None, "image_generation_user_error", "tools", "No images."),
        ],
        parameter("reasoning.summary", "auto"): [ApiError(param="reasoning.summary")],
        parameter("stream", True): [
            ApiError("unsupported_value", param="stream", message="Be verified.")
        ],
        LeaveOutToolChoice(): [ApiError(param="tool_choice")],
        parameter("include", ["x"]): [ApiError(param="include[0]")],
        StateDetail(): [
            ApiError(
                "invalid_value",
                param="input[6].content[0].detail",
                message="Invalid value: 'auto'. Supported values are: 'low' and 'high'.",
            )
        ],
        parameter("reasoning.effort", "none"): [
            # The name that a gateway's own API has for it.
            ApiError(param="reasoning_effort")
        ],
        parameter("text", {"verbosity": "low"}): [
            # LM Studio demands it of a text with any field.
            ApiError("missing_required_parameter", param="text.format")
        ],
    },
)
def test_code_or_place_names_the_repair(error: ApiError, repair: Repair) -> None:
    assert find(error, tool_choice="auto").repair == repair


@each(
    "message",
    {
        item(SEARCH): [
            "Missing required parameter: 'input[5].id'.",
            "Invalid 'input[5].id': 'ws_1234'. Use letters.",
            "Item with id 'ws_1234' not found. Items are not",
        ],
        item(CALL): [
            "No tool output found for function call call_abcd.",
            "Item 'fc_1234' of type 'function_call' was provided without its",
            "Duplicate item found with id fc_1234. Remove",
        ],
        item(THOUGHT): ["Item 'rs_1234' of type 'reasoning' was provided without its"],
        LeaveOutKind(LAST, "code_interpreter_call"): ["Expected container_id: cntr_1"],
        StateInstructions(): ["Instructions are required"],
        LeaveOutParameter("prompt_cache_key"): [
            "Unrecognized request argument supplied: prompt_cache_key"
        ],
        LeaveOutParameter("reasoning.effort"): [
            '"llama3.2" does not support thinking',
            "cannot specify both 'thinking' and 'reasoning_effort'",
        ],
        ReplaceEffort("none", "low"): [
            'invalid reasoning value: \'none\' (must be "high", "medium", "low")',
            "reasoning_effort='none' is not supported by Harmony. Supported values are: "
            "high, medium, low.",
            "reasoning_effort must be one of: no_think, low, high",
            "Unsupported value: 'reasoning_effort' does not support 'none' with this "
            "model. Supported values are: 'low', and 'high'.",
            "Value 'none' is not one of 'low', 'medium', 'high'",
        ],
        PlainSchemas("look"): ["Invalid schema for function 'look': no type."],
        LeaveOutFunctions(): ["x: tools is not supported in this model. For a list"],
        LeaveOutParameter("reasoning.summary"): ['"reasoning.summary" not permitted'],
        tool(LOOK): ["<400> Error: Tool names are not allowed to be [look]"],
        tool(WEB): [
            "Hosted tool 'web_search' is not supported with x.",
            "The parameter `tools.type` specified in the request are not valid: invalid "
            "value: `web_search`, supported values are: `function` and `mcp`.",
            "Unsupported tool type: web_search",
        ],
        tool(STORES): [
            "Tool type 'file_search' is not supported",
            "Vector store with id 'vs_5678' not found.",
        ],
        OfferFunctionsAlone(): [
            "'type' of tool must be 'function'",
            "[m] [400]: invalid params, invalid tool type: (2013)",
        ],
        tool(CLOCKS): ["Error retrieving tool list from MCP server: 'clocks'."],
        LeaveOutParameter("text.verbosity"): ["Unknown parameter: 'text.verbosity'."],
        parameter("text.verbosity", "low"): [
            "Unsupported parameter: 'text.verbosity' is not supported.",
            "Unsupported value: 'low' is not supported with the 'm' model. Supported "
            "values are: 'medium'.",
        ],
        parameter("prompt_cache_key", "k"): [
            "[{'loc': ('body', 'prompt_cache_key'), 'msg': 'Extra inputs'}]"
        ],
        CallsAsWords(LAST): [
            "reasoning_content is missing in assistant tool call message at 2",
            "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
            "Expected `thinking` or `redacted_thinking`, but found `text`.",
            "Function call `x` is missing a `thought_signature`",
            "Missing `reasoning_content` field in the assistant message.",
            "messages[51]: assistant message with tool_calls must include "
            "reasoning_content.",
            "The toolConfig field must be defined when using toolUse",
            "Requests which include `tool_use` or `tool_result` blocks must define tools.",
            "Bedrock doesn't support tool calling without `tools=` param specified.",
        ],
        parameter("reasoning.effort", "none"): [
            # To think as usual is not to think least.
            "`reasoning_effort` must be one of `minimal` or `default`",
            "Invalid combination of reasoning_effort and thinking type: high + disabled",
        ],
        tool(DRAW): [
            "The requested tool image_generation is not supported.",
            "imagegen deployment must be provided through header: "
            "x-ms-oai-image-generation-deployment",
        ],
        ReplaceEffort("none", "high"): [
            "output_config.effort 'none' is not supported when thinking is disabled on "
            "this model. Use effort 'high' or below, or enable thinking."
        ],
        ReplaceEffort("none", "", of_tools=True): [
            "Function tools with reasoning_effort are not supported for x in "
            "/v1/chat/completions."
        ],
        ReplaceEffort("none", "high", of_tools=True): [
            "Function tools with reasoning_effort are not supported for x in y. To use "
            "function tools, set reasoning_effort to 'high'."
        ],
        ReplaceEffort("none", "medium"): [
            "Unsupported value: 'none' is not supported with the 'm' model. Supported "
            "values are: 'medium'."
        ],
    },
)
def test_words_name_the_repair(message: str, repair: Repair) -> None:
    tried = find(words(message))
    assert tried.repair == repair
    # The items name their container, too, and the server's sentence is its own.
    assert tried.is_lasting or "container_id" not in message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ApiError(param="input[1]"), "earlier reasoning could not be sent again"),
        (ApiError(param="input[2]"), "earlier function call was sent as plain text"),
        (ApiError(param="input[5]"), "earlier web search call could not be sent again"),
        (ApiError(param="input[6]"), "image or file could not be sent"),
        (ApiError(param="input[7]"), "earlier message was sent as plain text"),
        (ApiError(param="tools[1]"), "the tool clocks"),
        (
            ApiError("invalid_payload", message="No."),
            "could not read earlier reasoning",
        ),
        (words("'role'"), "rejected this chat with its images and files"),
    ],
)
def test_message_says_what_was_refused(error: ApiError, message: str) -> None:
    cited = {**ANSWER, "content": [{**ANSWER["content"][0], "annotations": [{}]}]}
    status = 500 if error.message == "'role'" else 400
    assert message in find(error, status, input=[*INPUT[:7], cited]).repair.message


@pytest.mark.parametrize(
    "message",
    [
        "Item 'rs_1' of type 'reasoning' was provided without its required",
        "Item with id 'rs_9999' not found. Items are not persisted when",
        "Reasoning input items can only be provided to a reasoning model.",
        "The encrypted content gAAA...Qw== could not be verified. Reason: Encrypted "
        "content could not be decrypted or parsed.",
        "Could not decrypt the provided encrypted_content. Ensure the value",
        "Could not decode the compaction blob. Ensure it is unmodified",
        "reasoning `encrypted_content` was not issued to this caller",
        "Conflicting authenticated continuation identities",
        "Unable to submit request because Thought signature is not valid..",
        "Corrupted thought signature.",
        "Invalid value at 'contents[1].parts[0].thought_signature' (TYPE_BYTES), Base64 "
        "decoding failed",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "messages.7.content.2: Invalid signature in thinking block",
        "messages.1.content.0.thinking.signature: Field required",
        "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest "
        "assistant message cannot be modified.",
        "messages.3.content.0.thinking: each thinking block must contain thinking",
        "The encrypted content for item rs_68bb\ncould not be verified.",
        "Referenced reasoning item 'rs_1' was not found or has expired",
    ],
)
def test_reasoning_that_is_not_taken_is_left_out(message: str) -> None:
    """Servers say it with codes that name nothing, or with none."""
    error = ApiError("invalid_value", param="input", message=message)
    assert find(error).repair == find(words(message)).repair == LeaveOutReasoning(LAST)


TRUNCATION = LeaveOutParameter("truncation")
TOP_P = LeaveOutParameter("top_p")
INCLUDE = LeaveOutParameter("include")
EFFORT = LeaveOutParameter("reasoning.effort")
VALUE = parameter("top_p", 0.5)


@each(
    "message",
    {
        TRUNCATION: [
            "Unsupported parameter: truncation",
            "Unsupported parameter: truncation (request_id=e2)",
            "Validation: Unsupported parameter(s): truncation",
        ],
        TOP_P: [
            "Extra inputs are not permitted, field: 'top_p', value: 0.5",
            "invalid request: unknown field: top_p",
            "Malformed input: #: extraneous key [top_p] is not permitted",
            'Invalid JSON payload received. Unknown name "top_p": Cannot find',
            "`top_p` is deprecated for this model.",
            "deepseek-reasoner does not support the parameter `top_p`",
            "unsupported request field(s): top_p",
            "Model eu.x does not support the top_p parameter.",
            "Additional properties are not allowed ('top_p' was unexpected)",
            "Responses.create() got an unexpected keyword argument 'top_p'",
            # LiteLLM
            "litellm.UnsupportedParamsError: x don't support top_p=0.5. Only 1 is.",
        ],
        INCLUDE: [
            "property 'include' is unsupported, did you mean x?",
            "include: Extra inputs are not permitted",
            "Argument not supported: include",
            "Unsupported parameters: include, truncation",
            "Unrecognized key(s) in object: 'include', 'top_p'",
            'JSON parse error: Unrecognized field "include" (class x)',
            "'include' in the request cannot be translated to another format yet",
        ],
        EFFORT: [
            "Model m does not support parameter reasoningEffort.",
            "x does not support parameters: ['reasoning_effort'], for",
            "Argument not supported on this model: reasoning_effort",
        ],
        LeaveOutToolField("strict"): [
            "a tool's 'strict' cannot be translated to another format yet"
        ],
        VALUE: [
            "The parameter `top_p` is not supported by this model.",
            # Anthropic's and Kimi's are about one value, which is left out alone.
            "`temperature` and `top_p` cannot both be specified for this model.",
            "`top_p` may only be set to 1 when thinking is enabled.",
            "invalid top_p: only 0.95 is allowed for this model",
            "The parameter `top_p` specified in the request are not valid: `a`",
            # DashScope, and what pydantic prints.
            "'top_p' must be one of: 0.1, 0.9",
            "1 validation error for Request\ntop_p\n  Input should be 1",
        ],
    },
)
def test_parameter_in_the_words_of_other_servers(message: str, repair: Repair) -> None:
    """Codex's backend, Fireworks, Groq, xAI and others name it nowhere else."""
    fields: dict[str, Any] = {"truncation": "auto", "top_p": 0.5}
    tried = find(words(message), **fields)
    assert (tried.repair, tried.is_named) == (repair, False)
    quoted = text_message("user", message)
    assert not find(words(message), input=[quoted], **fields).is_lasting


SAFETY = "safety_identifier"


@pytest.mark.parametrize(
    "name", [SAFETY, "store", "instructions", "moderation", "max_output_tokens"]
)
@pytest.mark.parametrize("code", ["unknown_parameter", "invalid_value", None])
def test_refused_guard_costs_the_chat_nothing(name: str, code: str | None) -> None:
    """It stays, so no step helps; the chat would lose its reasoning in vain."""
    guards: dict[str, Any] = {
        SAFETY: "u-1",
        "max_output_tokens": 100,
        "instructions": "Be kind.",
        "moderation": {"model": "m"},
    }
    message = f"Unknown parameter: '{name}'."
    error = ApiError(code, param=name, message=message) if code else words(message)
    assert tried_after(error, **guards) is None


@pytest.mark.parametrize(
    "error",
    [
        ApiError("unknown_parameter", param=SAFETY),
        words(f"Unrecognized request argument supplied: {SAFETY}"),
        words(f"Unsupported parameter: {SAFETY}"),
    ],
)
def test_guard_that_was_not_sent_is_not_the_cause(error: ApiError) -> None:
    assert find(error)
    assert tried_after(error, safety_identifier="u-1") is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ApiError("invalid_prompt", param="input[5]"), 400),
        (ApiError("insufficient_quota"), 429),
        (ApiError("server_error", message="Try 'web_search' later."), 500),
        (ApiError("model_not_found", param="model"), 404),
        (words("The requested model 'gpt-9' does not exist."), 400),
        (ApiError("context_length_exceeded", param="input"), 400),
        (ApiError(param="input[0].content"), 401),
        (words("Not found"), 404),
        # As codex-relay passes it on in its stream.
        (ApiError("404", message="The model `x` does not exist."), 200),
        (ApiError(type="invalid_request_error", message="Model x is gone."), 404),
        (ApiError(type="invalid_request_error", message="Invalid URL (POST /v2)"), 404),
    ],
)
def test_other_causes_change_nothing(error: ApiError, status: int) -> None:
    """The refusal is about the account, the policy or the server."""
    assert tried_after(error, status) is None


UNREACHED = ApiError(
    "http_error",
    "external_connector_error",
    "tools",
    "Error retrieving tool list from MCP server: 'clocks'. Http status code: 424 "
    "(Failed Dependency)",
)
NOT_REPAIRED = ("model", "text.format", "input", "tools[9]", "input[99]")
"""Places that no repair may change, or that the request does not have."""


@pytest.mark.parametrize(
    "error",
    [
        ApiError(param="input[0]"),
        ApiError("invalid_encrypted_content"),
        ApiError("unsupported_parameter", param="temperature"),
        UNREACHED,
        *(ApiError("unknown_parameter", param=param) for param in NOT_REPAIRED),
    ],
)
def test_user_message_and_absent_item_are_not_repaired(error: ApiError) -> None:
    """The refusal of a question is the answer."""
    fields: dict[str, Any] = {"tools": [LOOK], "text": {"format": {"type": "text"}}}
    assert tried_after(error, input=[USER, ANSWER, USER], **fields) is None
    assert tried_after(UNREACHED, input=[USER], tools=None) is None


def repairs_in_turn(
    failure: Failure,
    *,
    knows_options: bool = False,
    took_options: bool = False,
    **fields: Any,
) -> list[Repair]:
    """What is tried, one after the other, while the server refuses the same."""
    request = asking(**fields)
    for done in range(9):
        sent = request.sent()
        tried = find_repair(sent, failure, done)
        tried = tried or blind_repair(
            sent, failure, knows_options=knows_options, took_options=took_options
        )
        if tried is None:
            break
        repairs = (*request.repairs, tried.repair)
        request = request.model_copy(update={"repairs": repairs})
    return list(request.repairs)


def test_unknown_refusal_is_met_with_plain_words_at_the_end() -> None:
    """After three repairs, or if nothing is named; then the refusal is final.

    What only tunes the answer goes first, tools go last; at OpenAI and Azure they stay.
    """
    options, tools = LeaveOutOptions(), [OfferFunctionsAlone(), LeaveOutFunctions()]
    plain = [PlainItems(LAST), WordsAlone(LAST)]
    strange = Failure(422, words("It cannot be."))
    assert repairs_in_turn(strange) == [options, *plain, *tools]
    assert repairs_in_turn(strange, input=[USER]) == [options, *tools]
    answered = [USER, ANSWER, USER]
    in_turn = [options, AnswersAsTexts(), *tools]
    assert repairs_in_turn(strange, input=answered) == in_turn
    assert repairs_in_turn(strange, input=[USER], tools=[LOOK]) == [options, tools[1]]
    assert repairs_in_turn(strange._replace(status=501)) == [options, *plain, *tools]
    assert repairs_in_turn(strange, knows_options=True) == plain
    assert repairs_in_turn(strange, took_options=True) == [*plain, options, *tools]
    assert repairs_in_turn(Failure(200, words("It cannot be."))) == plain
    named = Failure(400, ApiError(param="input[5]"))
    assert find_repair(asking().sent(), named, named=MAX_REPAIRS) is None
    last = blind_repair(asking().sent(), named)
    assert last
    assert last.repair == PlainItems(LAST)


def test_effort_does_not_go_to_and_fro() -> None:
    error = ApiError(message="Supported: 'none'.", param="reasoning.effort")
    tried = find(error, reasoning={"effort": "low"})
    assert tried.repair == ReplaceEffort("low", "none")
    assert find(error, reasoning={"summary": "auto"}).repair == PlainItems(LAST)
    again = find(error, repairs=(ReplaceEffort("none", "low"),))
    assert not isinstance(again.repair, ReplaceEffort)
    lower = (ReplaceEffort("max", "low"),)
    third = find(error, reasoning={"effort": "max"}, repairs=lower)
    assert third.repair == ReplaceEffort("low", "none")
    named = (ReplaceEffort("low", "none"),)
    fourth = find(error, reasoning={"effort": "low"}, repairs=named)
    assert fourth.repair == LeaveOutParameter("reasoning.effort")


def test_model_with_an_effort_of_its_own_gets_none_with_tools() -> None:
    """It thinks without being asked, and a gateway takes no tools with that."""
    error = ApiError(
        param="reasoning_effort",
        message="Function tools with reasoning_effort are not supported for m in y. "
        "To use function tools, set reasoning_effort to 'none'.",
    )
    tried = find(error, reasoning=None)
    assert tried.repair == ReplaceEffort("", "none", of_tools=True)
    assert tried.is_lasting
    several = error._replace(message=error.message.replace("'none'", "'low' or 'max'"))
    assert find(several, reasoning=None).repair == ReplaceEffort("", "low", True)
    bare = error._replace(message=error.message.partition(" To use")[0])
    assert find(bare, reasoning=None) == tried._replace(error=bare)


@pytest.mark.parametrize(("pictures", "is_lasting"), [(1, True), (2, False)])
def test_newest_of_several_pictures_is_a_guess(pictures: int, is_lasting: bool) -> None:
    """It must not cost the chat another one for good."""
    tried = find(ApiError("invalid_image"), input=[USER, *[PICTURE] * pictures])
    newest = SendAsText(item_names([PICTURE] * pictures)[-1])
    assert (tried.repair, tried.is_lasting) == (newest, is_lasting)


@pytest.mark.parametrize("status", [502, 503])
def test_refusal_that_a_gateway_repeats_may_be_about_the_chat(status: int) -> None:
    """With a status of its own trouble; without the server's answer it is trouble."""
    body = json.dumps({"error": {"code": "1214", "message": "It is illegal."}})
    message = f"All failed: Invalid status code: 400 Bad Request: {body}"
    error = read_api_error({"error": {"message": message}})
    sent = asking(input=[USER, CALL, OUTPUT, USER]).sent()
    tried = blind_repair(sent, Failure(status, error))
    assert tried
    assert not tried.is_lasting
    for other in (error._replace(is_relayed=False), error._replace(type=None)):
        assert blind_repair(sent, Failure(status, other)) is None
    assert blind_repair(sent, Failure(504, error)) is None


def test_unnamed_404_of_the_api_falls_back_to_plain_items() -> None:
    """A 404 is about the address only if no API answered."""
    error = ApiError(None, "invalid_request_error", None, "A call cannot be read.")
    for named in (error, ApiError(param="input[99]")):
        assert find(named, 404).repair == PlainItems(LAST)
    assert tried_after(ApiError(message="A call cannot be read."), 404) is None


def test_same_repair_is_not_tried_twice() -> None:
    """The next best is: the words of a message, those of all answers, no message."""
    part = {"type": "output_text", "text": "Hi", "annotations": [{}]}
    answer = {**ANSWER, "content": [part]}
    refused = Failure(400, ApiError(param="input[1]"))
    name = json_digest(answer)
    tried = repairs_in_turn(refused, input=[USER, answer, USER])
    assert tried == [SendAsText(name), AnswersAsTexts(), LeaveOutItem(name)]
    hidden = TextOutputs(shows_images=False)
    shown: dict[str, Any] = {"input": [USER, CALL, SHOWN], "repairs": (TextOutputs(),)}
    assert repairs_in_turn(Failure(400, words(ALTERNATES)), **shown).count(hidden) == 1
    # Nor what others have done already.
    blind = Failure(400, words("this model does not support image input"))
    shown["repairs"] = (hidden,)
    assert find_repair(asking(**shown).sent(), blind) is None
    part = {**ANSWER["content"][0], "logprobs": []}
    logged: dict[str, Any] = {"input": [USER, {**ANSWER, "content": [part]}, USER]}
    logged["repairs"] = (LeaveOutField("message", ("content", "logprobs")),)
    assert find(ApiError(param="input[1]"), **logged).repair == AnswersAsTexts()


def test_second_hosted_item_takes_its_kind_along() -> None:
    """A long chat may have many, and each refusal costs the person a wait."""
    other = {**SEARCH, "id": "ws_5678"}
    items = [USER, SEARCH, other, other, USER]
    tried = find(ApiError(param="input[1]"), input=items, repairs=(item(SEARCH),))
    assert tried.repair == LeaveOutKind(item_names(items)[-1], "web_search_call")


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError(param="reasoning.summary"), True),
        (ApiError(message="Use 'low'.", param="reasoning.effort"), True),
        (words("'Reasoning input items can only be provided' is gone"), False),
        (words("Unknown parameter: 'text.verbosity'."), False),
        (ApiError("unknown_parameter", param="input[5].status"), True),
        (ApiError(param="input[6].content[0].detail", message="'low' or 'high'"), True),
        (words("Unknown parameter: 'input[5].status'"), False),
        (ApiError(param="tools[0]"), True),
        (ApiError(param="input[5]"), False),
        (ApiError(param="reasoning.summary", is_relayed=True), False),
    ],
)
def test_only_the_servers_own_param_names(error: ApiError, is_named: bool) -> None:
    """The words of a message may be the user's own, and a server may come back."""
    assert find(error).is_named is is_named


def test_field_that_a_person_may_have_chosen_is_not_named() -> None:
    """A picture's `detail` is a user's own."""
    error = ApiError("unknown_parameter", param="input[6].content[0].detail")
    picture = {**PICTURE, "content": [{**IMAGE, "detail": "low"}]}
    tried = find(error, input=[*INPUT[:6], picture, USER])
    assert tried.repair == LeaveOutField("message", ("content", "detail"))
    assert not tried.is_named


def test_stream_that_cannot_be_read_says_nothing_about_others() -> None:
    """No server refused it: only this answer is asked for in one piece."""
    failure = MalformedEvent.failure
    assert find_repair(asking().sent(), failure) is None
    tried = blind_repair(asking().sent(), failure)
    assert tried
    assert (tried.repair, tried.is_lasting) == (LeaveOutParameter("stream"), False)


def test_subject_combines_index_and_name() -> None:
    """No one can count the items of a request in a log."""
    sent = asking().sent()
    searched = Refusal(ApiError(param="input[5].id"), sent)
    assert searched.subject == "input[5] (web_search_call):"
    assert Refusal(words("'tools[0].x' is bad"), sent).subject == "tools[0] (look):"
    assert Refusal(words("'tools[7].x' is bad"), sent).subject == ""


@pytest.mark.parametrize(
    ("asked", "named", "left"),
    [
        ("none", "'minimal', 'low', 'medium', and 'high'", {"effort": "minimal"}),
        ("max", "'low', 'medium', and 'high'", {"effort": "high"}),
        ("minimal", "'none', 'low' and 'high'", {"effort": "none"}),
        ("low", "", {}),
    ],
)
def test_effort_that_the_model_lacks(asked: str, named: str, left: Item) -> None:
    """The nearest of those that the error names is taken, else the model's own."""
    message = (
        f"Unsupported value: '{asked}' is not supported with the 'gpt-5' model. "
        f"Supported values are: {named}."
    )
    error = ApiError("unsupported_value", param="reasoning.effort", message=message)
    request = asking(reasoning={"effort": asked, "summary": "auto"})

    repair = find(error, reasoning=request.reasoning).repair

    before = request.payload()
    after = request.model_copy(update={"repairs": (repair,)}).payload()
    assert after == {**before, "reasoning": {**left, "summary": "auto"}}


def test_plain_words_of_a_later_turn() -> None:
    before = PlainItems(item_names(HISTORY)[-1])
    more = [*HISTORY, THOUGHT, ANSWER, {**USER, "id": "x"}]
    repairs = (LeaveOutOptions(), before)
    tried = find(words("It cannot be."), 422, input=more, repairs=repairs)
    assert tried.repair == PlainItems(item_names(more)[-1])


@pytest.mark.parametrize(
    "error",
    [
        ApiError(param="input[1].type"),
        words("The 'configuration_update' item type is not supported."),
    ],
)
def test_items_that_were_appended_become_fields(error: ApiError) -> None:
    update = {"type": "configuration_update", "reasoning": {"effort": "low"}}
    tried = find(error, input=[USER, update, USER])
    assert tried.repair == LowerItems("configuration_update")
    assert tried.is_named is bool(error.param)


DEMANDED = "The `reasoning_text` in the thinking mode must be passed back to the API."


@pytest.mark.parametrize(
    "demanded", [DEMANDED, DEMANDED.replace("reasoning_text", "content[].thinking")]
)
def test_thoughts_that_a_server_demands_are_gone(demanded: str) -> None:
    """Calls of earlier turns become words; those of this turn keep their form."""
    own: Item = {**CALL, "id": "fc_2", "call_id": "call_2"}
    own_output = {**OUTPUT, "call_id": "call_2"}
    later = text_message("user", "And now?")
    chat = [PICTURE, CALL, OUTPUT, ANSWER, later, PLAIN_THOUGHT, own, own_output]

    repair = find(words(demanded), input=chat).repair

    assert repair == CallsAsWords(item_names(chat)[4])
    sent = asking(input=chat, repairs=(repair,)).payload()["input"]
    assert sent[0] == PICTURE
    own_types = ["reasoning", "function_call", "function_call_output"]
    assert [item["type"] for item in sent[1:]] == ["message"] * 4 + own_types


def test_thoughts_that_a_server_demands_in_front_of_each_call() -> None:
    """A second call of one response has none: all of them become words."""
    second: Item = {**CALL, "id": "fc_2", "call_id": "call_2"}
    chat = [USER, CALL, second, OUTPUT, {**OUTPUT, "call_id": "call_2"}]

    repair = find(words(DEMANDED), input=chat).repair

    assert repair == CallsAsWords(item_names(chat)[-1])


def test_plain_reasoning_goes_from_all_chats() -> None:
    """Before its items become plain, after options: it is the way of some servers."""
    for status, place in ((200, 0), (422, 1)):
        failure = Failure(status, words("No."))
        steps = repairs_in_turn(failure, input=[USER, PLAIN_THOUGHT, ANSWER, USER])
        assert steps[place] == LeaveOutPlainReasoning()


@pytest.mark.parametrize(
    "path", [["tools", 0], ["input", 5], ["reasoning", "effort"], ["include"]]
)
@pytest.mark.parametrize("indent", [None, 2])
def test_issues_that_a_user_wrote_name_nothing(
    path: list[str | int], indent: int | None
) -> None:
    """A server may send what it could not read as its whole error."""
    text = json.dumps([{"path": path, "message": "No."}], indent=indent)
    error = read_api_error({"error": text})
    assert find(error)
    arguments = json.dumps({"text": text})
    for own in (text_message("user", text), {**CALL, "arguments": arguments}):
        sent = asking(input=[*INPUT, own, OUTPUT]).sent()
        tried = find_repair(sent, Failure(400, error))
        assert tried is None or not tried.is_lasting


LACKING = [*INPUT[:-1], text_message("developer", "It is Monday."), USER, USER]
INSTRUCTS_FIRST = (
    "jinja template rendering failed. System message must be at the beginning."
)
NO_STREAM = LeaveOutParameter("stream")
ALTERNATES = "Conversation roles must alternate user/assistant/user/assistant/..."
NO_PARSER = (
    '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to '
    "be set"
)


@pytest.mark.parametrize(
    ("message", "status", "repair"),
    [
        # Ollama's cloud, llama.cpp, vLLM, LM Studio, Together, xAI and DeepSeek.
        ("this model does not support image input (ref: b8)", 400, LeaveOutImages()),
        ("image input is not supported - hint: if this is", 500, LeaveOutImages()),
        ("x is not a multimodal model None", 400, LeaveOutImages()),
        ("At most 0 image(s) may be provided in one prompt.", 400, LeaveOutImages()),
        ("Model does not support images. Please use a model", 400, LeaveOutImages()),
        ("Image input modality is not enabled for models/x", 400, LeaveOutImages()),
        ("Image inputs are not supported by this model.", 400, LeaveOutImages()),
        ("unknown variant `image_url`, expected `text`", 400, LeaveOutImages()),
        ("Unexpected item type in content.", 400, LeaveOutImages()),
        (
            "User message image blocks are not supported for OpenAI chat conversion",
            400,
            LeaveOutImages(),
        ),
        # Ollama, vLLM, llama.cpp, Groq and LiteLLM.
        ("library/gemma3:4b does not support tools", 400, LeaveOutFunctions()),
        (NO_PARSER, 400, LeaveOutFunctions()),
        ("tools param requires --jinja flag", 500, LeaveOutFunctions()),
        ("`tool calling` is not supported with this", 400, LeaveOutFunctions()),
        ("x does not support parameters: ['tools'], for", 400, LeaveOutFunctions()),
        # Qwen's and Gemma's templates, behind vLLM and llama.cpp.
        (INSTRUCTS_FIRST, 400, GatherInstructions()),
        (INSTRUCTS_FIRST, 500, GatherInstructions()),
        ("Unexpected role 'system' after role 'user'", 400, GatherInstructions()),
        (
            "invalid params, chat content has invalid message role: system (2013)",
            400,
            GatherInstructions(),
        ),
        (ALTERNATES, 400, JoinMessages()),
        (ALTERNATES, 500, JoinMessages()),
        ("should alternate with assistant message(s).", 400, JoinMessages()),
        ("Tool calling is not supported for model: x/y", 405, LeaveOutFunctions()),
        ("doesn't support the image field for user messages", 400, LeaveOutImages()),
        ("Model do not support image input. Request id: 02", 400, LeaveOutImages()),
        ("image_url is only supported by certain models.", 400, LeaveOutImages()),
        ("Streaming is not yet supported; set stream=false", 400, NO_STREAM),
        ("This server does not support streaming responses.", 501, NO_STREAM),
    ],
)
def test_what_a_model_cannot_do_is_left_out(
    message: str, status: int, repair: Repair
) -> None:
    tried = find(words(message), status, input=LACKING)
    assert (tried.repair, tried.is_lasting) == (repair, True)
    quoted = [*LACKING, text_message("user", message)]
    assert not find(words(message), status, input=quoted).is_lasting


NO_ROUTE = "No endpoints found that support"
NOT_HERE = "input item ID does not belong to this connection"
OTHER_ACCOUNT = read_api_error({"error": {"message": NOT_HERE, "code": ""}})
OTHER_LOGIN = read_api_error(
    {"error": {"message": NOT_HERE, "code": "invalid_request_body"}}
)
TOGETHER = "Built-in tools and Function Calling cannot be combined in the same request."
# googleapis/js-genai 1157, BerriAI/litellm 26882.
ALL_SEARCH = "Multiple tools are supported only when they are all search tools."
# Of a Gemini that would take both with a setting of its own API: googleapis/js-genai 1425,
# owndev/Open-WebUI-Functions 159.
TAKES_BOTH = (
    "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools "
    "with Function calling."
)


@pytest.mark.parametrize(
    ("error", "status", "repair", "is_lasting"),
    [
        # Servers and OpenRouter's providers that are not reached may be back soon.
        (UNREACHED, 400, tool(CLOCKS), False),
        (words(f"{NO_ROUTE} image input"), 404, LeaveOutImages(), False),
        (words(f"{NO_ROUTE} tool use. Try x"), 404, LeaveOutFunctions(), False),
        # Which tool is meant, nobody says; Gemini takes its own without functions.
        (ApiError(param="tools", message="No."), 400, OfferFunctionsAlone(), False),
        (words(TOGETHER), 400, OfferFunctionsAlone(), False),
        (words(ALL_SEARCH), 400, OfferFunctionsAlone(), False),
        (words(TAKES_BOTH), 400, OfferFunctionsAlone(), False),
        # Copilot says it of another account's chat, with the status of a wrong key.
        (OTHER_ACCOUNT, 400, LeaveOutReasoning(LAST), True),
        (OTHER_ACCOUNT, 401, LeaveOutReasoning(LAST), True),
        (OTHER_LOGIN, 400, LeaveOutReasoning(LAST), True),
    ],
)
def test_what_is_of_the_moment_teaches_nothing(
    error: ApiError, status: int, repair: Repair, is_lasting: bool
) -> None:
    tried = find(error, status)
    assert (tried.repair, tried.is_lasting) == (repair, is_lasting)


def test_all_that_only_tunes_an_answer_goes() -> None:
    """What guards, what the person asked for and what is paid stays."""
    form = {"format": {"type": "text"}}
    choice = {"type": "allowed_tools", "mode": "auto", "tools": [WEB]}
    request = asking(
        safety_identifier="u-1",
        max_output_tokens=100,
        instructions="Be kind.",
        service_tier="flex",
        access_programs={"cyber": "on"},
        text={**form, "verbosity": "low"},
        tool_choice=choice,
        top_p=0.5,
    )

    tried = blind_repair(request.sent(), Failure(400, words("No.")))

    assert tried
    assert not tried.is_lasting
    sent = request.model_copy(update={"repairs": (tried.repair,)}).payload()
    assert request.payload().keys() - sent.keys() == {
        "include",
        "prompt_cache_key",
        "reasoning",
        "tool_choice",
        "top_p",
    }
    assert sent["text"] == form
    assert sent["tools"] == [WEB]


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError("invalid_value", param="input[1].role"), True),
        (words("Only user, assistant roles are supported, got developer."), False),
        (words("Unexpected role 'developer'. Supported roles: user"), False),
        (words("jinja: Unexpected message role."), False),
        (
            words("messages[0].role: unknown variant `developer`, expected one of"),
            False,
        ),
        (
            words("developer is not one of ['system', 'user'] - 'messages.0.role'"),
            False,
        ),
        (words("Input tag 'developer' found using 'role' does not match any"), False),
    ],
)
def test_role_that_a_server_does_not_know(error: ApiError, is_named: bool) -> None:
    """What a filter adds in the middle of a chat is for the field of instructions."""
    tried = find(error, input=[USER, text_message("developer", "Hi"), USER])
    assert (tried.repair, tried.is_named) == (GatherInstructions(), is_named)
    others = [tried_after(error, input=[USER, USER])]
    for param in ("input[1].content", "input[0].role"):
        items = [USER, text_message("developer", "Hi"), USER]
        others.append(tried_after(ApiError(param=param), input=items))
    for other in others:
        assert other is None or not isinstance(other.repair, GatherInstructions)


def test_path_that_is_longer_than_any_makes_no_pattern() -> None:
    """Whoever writes it would fill what `re` keeps for all; one without a name is none."""
    texts = OwnTexts({"input": [{"text": "param: reasoning.summary"}]})

    assert texts.could_say_parameter("reasoning.summary")
    assert not texts.could_say_parameter("reasoning.effort")
    assert texts.could_say_parameter("x" * 201)
    assert not texts.could_say_parameter("x" * 200)
    assert not texts.could_say_parameter("?")
    assert not texts.could_say_parameter("a(")
    # As a server shows them that decodes them.
    for text in ("tools&#91;0]", "tools%5B0]", "tools\\u005b0]"):
        assert OwnTexts({"input": text}).could_say("tools[0]")
    for many in ([""] * 500_001, ["&a" * 250_001] * 2, ["\\" + "a" * 10**6]):
        large = OwnTexts({"input": many})
        assert large.could_say_parameter("reasoning.effort")
        assert large.could_say("x")
    assert not OwnTexts({"input": ["a" * 10**6, "&a"]}).could_say("x")


def test_text_between_calls_and_outputs_moves_behind_them() -> None:
    """Recorded at DeepSeek, whose code and missing `param` name nothing."""
    kind = "invalid_request_error"
    error = ApiError(kind, kind, message="No tool output found for tool call call-a.")
    calls = [{**CALL, "call_id": name} for name in ("call-a", "call-b")]
    outputs = [{**OUTPUT, "call_id": name} for name in ("call-a", "call-b")]
    items = [USER, calls[0], ANSWER, calls[1], *outputs, USER]
    moved = [USER, *calls, *outputs, ANSWER, USER]
    again = asking(input=items, repairs=(MoveMessages(),))

    assert find(error, input=items).repair == MoveMessages()
    assert again.payload()["input"] == moved
    assert [row.item for row in again.sent().items] == moved
    assert not isinstance(find(error, input=moved).repair, MoveMessages)


@pytest.mark.parametrize(
    ("status", "is_relayed", "is_lasting"),
    [
        *((status, False, False) for status in (502, 503, 504, 520, 529)),
        *((status, False, True) for status in (400, 422, 500)),
        (502, True, True),
    ],
)
def test_status_of_trouble_teaches_nothing(
    status: int, is_relayed: bool, is_lasting: bool
) -> None:
    """The server may have recovered meanwhile, unless it passes on another's refusal."""
    error = ApiError(
        param="prompt_cache_key", message="The cache is down.", is_relayed=is_relayed
    )
    tried = find(error, status)
    assert isinstance(tried.repair, LeaveOutParameter)
    assert tried.is_lasting == is_lasting


def test_status_says_whether_the_request_is_the_cause() -> None:
    """A key, a proxy or a limit is not mended by another request, which is paid for."""
    about_the_request = {200, 400, 404, 410, 415, 422, 500, 503}
    others = {300, 307, 401, 402, 403, 405, 407, 408, 409, 413, 421, 423, 425, 429, 451}
    for status in {*about_the_request, *others, 499}:
        expected = status in about_the_request
        assert may_be_repaired(Failure(status, ApiError())) == expected, status
    assert not may_be_repaired(Failure(400, ApiError("bad_gateway")))


@pytest.mark.parametrize(
    ("place", "repair"),
    [
        ("input[1].tools[0]", tool(LOOK)),
        ("input[1].tools[1]", LowerItems("additional_tools")),
        ("input[0].tools[0]", None),
        ("input[2].tools[0]", item(LISTED)),  # which the model may not call
    ],
)
def test_tool_of_an_item_is_named_by_its_place(
    place: str, repair: Repair | None
) -> None:
    added = {"type": "additional_tools", "role": "developer", "tools": [LOOK]}
    sent = asking(input=[USER, added, LISTED]).sent()
    tried = find_repair(sent, Failure(400, ApiError(param=place)))
    assert (tried.repair if tried else None) == repair


@pytest.mark.parametrize(("status", "key"), [(502, "type"), (200, "code")])
def test_gateway_that_hides_the_cause_gets_no_reasoning_in_the_end(
    status: int, key: str
) -> None:
    """It may have been in trouble, so the next turn has its reasoning again."""
    error = {"message": "Upstream request failed", key: "upstream_error"}
    failure = Failure(status, read_api_error({"error": error}))
    assert find_repair(asking().sent(), failure) is None
    tried = blind_repair(asking().sent(), failure)
    assert tried
    assert (tried.repair, tried.is_lasting) == (LeaveOutReasoning(LAST), False)
    assert blind_repair(asking(input=[USER]).sent(), failure) is None
    for other in (words("Upstream request failed"), ApiError("upstream_error")):
        assert blind_repair(asking().sent(), Failure(502, other)) is None


UNFIT_EFFORT = {
    "path": ["reasoning", "effort"],
    "message": "Expected 'low' | 'medium' | 'high', received 'minimal'",
}
UNFIT_THOUGHT = {
    "path": ["input"],
    "errors": [[{"path": []}], [{"path": [1], "errors": [[{"path": ["role"]}]]}]],
    "message": "Invalid input",
}


def from_openrouter(issue: Item) -> Item:
    """Return a refusal with the code of a policy (openai/codex 18307)."""
    error = {"code": "invalid_prompt", "message": "Invalid Responses API request"}
    return {"error": error, "metadata": {"raw": json.dumps([issue], indent=2)}}


def from_responses_js(issue: Item) -> Item:
    """Return a refusal as its source sends it."""
    return {"success": False, "error": [issue], "details": [issue]}


def from_lm_studio(issue: Item) -> Item:
    """Return a refusal whose only text is a list (docker/docker-agent 278)."""
    return {"error": json.dumps([issue], indent=2)}


@pytest.mark.parametrize("form", [from_openrouter, from_responses_js, from_lm_studio])
@pytest.mark.parametrize(
    ("issue", "thoughts", "repair"),
    [
        (UNFIT_THOUGHT, [PLAIN_THOUGHT], LeaveOutPlainReasoning()),
        (UNFIT_EFFORT, [], ReplaceEffort("minimal", "low")),
    ],
)
def test_what_a_server_made_with_zod_refuses(
    form: Callable[[Item], Item], issue: Item, thoughts: list[Item], repair: Repair
) -> None:
    """Its own reasoning is not sent back, the effort becomes one that it names."""
    error = read_api_error(form(issue))
    items = [USER, *thoughts, CALL, OUTPUT]
    tried = find(error, input=items, reasoning={"effort": "minimal"})
    assert (tried.repair, tried.is_lasting) == (repair, True)


def test_server_that_takes_no_parts_of_answers_gets_their_texts() -> None:
    """It repeats the whole chat, so an id of it in the words names nothing.

    In their plainest form, answers are texts as well.
    """
    begin = "1 validation error:\n  {'type': 'missing', 'loc': ('body', 'input', "
    row = f"'list[union[A,B]]', 4, 'B', 'id'), 'msg': 'Field required', 'input': {INPUT}}}"
    error = read_api_error({"error": {"message": f"{begin}{row}\n"}})
    tried = find(error, input=HISTORY)
    assert (tried.repair, tried.is_lasting) == (AnswersAsTexts(), True)
    named = find(ApiError(param="input[4].content[0].type"), input=HISTORY)
    assert (named.repair, named.is_named) == (AnswersAsTexts(), False)
    text = {"type": "message", "role": "assistant", "content": "Hello."}
    again = asking(input=HISTORY, repairs=(tried.repair,))
    assert again.payload()["input"][4] == text
    last = item_names(HISTORY)[-1]
    for repair in (PlainItems(last), WordsAlone(last)):
        assert text in asking(input=HISTORY, repairs=(repair,)).payload()["input"]


PHOTO: Item = {"type": "input_image", "image_url": "https://x.example/a.png"}
DOCUMENT: Item = {"type": "input_file", "filename": "a.pdf", "file_data": "data:"}
SHOWN: Item = {**OUTPUT, "output": [PHOTO]}
NO_WORD: Item = {"type": "input_text", "text": " "}
ASKED: Item = {**USER, "content": [NO_WORD, PHOTO, PHOTO, PHOTO, DOCUMENT]}
TO_CONTINUE = [ASKED, CALL, SHOWN, ANSWER]


@each(
    "message",
    {
        LimitMedia("input_image", 2): [
            "At most 2 image(s) may be provided in one prompt."
        ],
        LimitMedia("input_image", 3): [
            "Too many images in request. Max is 3.",
            "Too many images in request: 54 > 3",
            "Too many images provided. This model supports up to 3 images",
            "too many images in the message, max allowed is 3",
            "Too many images in request: 4 images provided, but the model supports a "
            "maximum of 3 images.",
            "too many images and documents: 4 + 0 > 3",
            "Too much media: 0 document pages + 4 images > 3",
            "request contains 4 images, exceeding the maximum of 3 allowed per request",
            "Image count 4 exceeds limit 3 per request.",
            "Total number of images exceeds the maximum allowed of 3",
        ],
        LimitMedia("input_file", 0): [
            "'input_file' is not supported by llamacpp at this moment",
            "file inputs are not currently supported",
            "Invalid value: file. Supported values are: 'text','image_url' and 'video'.",
            "Unknown part type: input_file",
            "This model does not support file content types.",
            "The parameter `messages.content.type` specified in the request are not "
            "valid: invalid value: `document`, supported values are: `text`, 'tool_use'",
        ],
        TextOutputs(): [
            "Output of tool call should be 'Input text'",
            "Unable to submit request because `function_response.parts` is not supported "
            "for this model.",
        ],
        AskToContinue(): [
            "Requests ending with a model turn are not supported.",
            "The conversation must end with a user message.",
            "Assistant response prefill is incompatible with enable_thinking.",
            "Cannot have 2 or more assistant messages at the end of the list.",
            "Expected last role User or Tool for serving but got assistant",
            "Last message must have role `user` or `tool`.",
            "Please ensure that single turn requests end with a user role",
        ],
        ShortCallIds(): [
            "Tool call id was x but must be a-z, A-Z, 0-9, with a length of 9.",
            "Tool call IDs should be alphanumeric strings with length 9!",
            "messages.1.content.0.tool_use.id: String should match pattern '^[a-z]+$'",
        ],
        StateDetail(): ["image detail has to be either 'low' or 'high'"],
        LeaveOutEmptyTexts(): [
            "messages: text content blocks must be non-empty",
            "messages.0.content.0.text: cache_control cannot be set for empty text blocks",
            "messages: text content blocks must contain non-whitespace text",
            "The text field in the ContentBlock object at messages.0.content.0 is blank. "
            "Add text to the text field, and try again.",
            "Invalid request: the message at position 3 with role 'user' must not be empty",
            "Invalid request content: Each message must have at least one content element.",
            "Unable to submit request because it must include at least one parts field",
            "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.",
            "because Model input cannot be empty.",
            "The content field in the Message object at messages.45 is empty. Add a "
            "ContentBlock object to the content field and try again.",
        ],
    },
)
def test_server_that_takes_less_of_a_chat(message: str, repair: Repair) -> None:
    """It gets all the rest. Where the chat has the words, nothing is remembered."""
    tried = find(words(message), input=TO_CONTINUE)
    assert (tried.repair, tried.is_lasting) == (repair, True)
    other = tried_after(words(message), input=[USER, ANSWER, USER])
    assert other is None or other.repair != repair
    quote = {**USER, "content": [{"type": "input_text", "text": message}]}
    tried = find(words(message), input=[quote, *TO_CONTINUE])
    assert (tried.repair, tried.is_lasting) == (repair, False)


@pytest.mark.parametrize(
    "message",
    [
        "Too much media: 97 document pages + 4 images > 100",
        "Too many images: 4, see rule 12 of 40",
        "messages.3.content.1.image: image exceeds 2 MB maximum: 3 MB > 2 MB",
    ],
)
def test_number_that_limits_no_images_is_no_limit(message: str) -> None:
    """Four were sent, so they take fewer; files count elsewhere, and bytes are no images."""
    tried = tried_after(words(message), input=TO_CONTINUE)
    assert not isinstance(tried and tried.repair, LimitMedia)


@pytest.mark.parametrize(
    ("asked", "is_met"), [([ASKED] * 6, False), ([ASKED] * 7, True)]
)
def test_large_images_are_taken_as_long_as_they_are_few(
    asked: list[Item], is_met: bool
) -> None:
    """Anthropic takes 20 of them, so 18 are not too many."""
    message = (
        "messages.0.content.20.image.source.base64.data: At least one of the image "
        "dimensions exceed max allowed size for many-image requests: 2000 pixels"
    )
    tried = find(read_api_error({"error": {"message": message}}), input=asked)
    assert isinstance(tried.repair, LimitMedia) == tried.is_lasting == is_met
    assert ("no more than 20 images" in tried.repair.message) == is_met


def test_picture_is_found_by_its_address() -> None:
    """OpenAI could not fetch it, and names its own step as the place."""
    address = PHOTO["image_url"]
    error = ApiError("invalid_value", param="url", message=f"No {address}: 403.")
    linked = {**PICTURE, "content": [{"type": "input_file", "file_url": address}]}
    for asked in (ASKED, linked, {**OUTPUT, "output": [PHOTO]}):
        tried = find(error, input=[CALL, asked, ANSWER, PICTURE, USER])
        assert tried.repair == SendAsText(json_digest(asked))
        assert tried.is_lasting
    assert find(error, input=[PICTURE, USER]).repair == PlainItems(json_digest(USER))


TOO_LONG = (
    "Invalid '{}': string too long. Expected a string with maximum length 8, but got a "
    "string with length 19 instead."
)
LONG: Item = {
    **LOOK,
    "description": "Look at the weather",
    "parameters": {"properties": {"a": {"description": "Rome"}}},
}


@pytest.mark.parametrize(
    "path",
    ["description", "function.description", "parameters.properties.a.description"],
)
def test_description_that_is_too_long_costs_no_tool(path: str) -> None:
    """Its beginning is sent; if that is refused as well, it is as with other fields."""
    place = f"tools[0].{path}"
    error = ApiError(
        "string_above_max_length", param=place, message=TOO_LONG.format(place)
    )
    tried = find(error, tools=[LONG])
    assert (tried.repair, tried.is_named, tried.is_lasting) == (
        ShortenDescriptions(8),
        True,
        True,
    )
    again = asking(tools=[LONG], repairs=(tried.repair,)).sent()
    following = find_repair(again, Failure(400, error))
    assert following
    is_inner = path.startswith("parameters")
    assert following.repair == (PlainSchemas("look") if is_inner else tool(LONG))


def test_description_that_names_a_length_teaches_nothing() -> None:
    """Somebody has written it there."""
    place = "tools[0].description"
    error = ApiError(param=place, message=TOO_LONG.format(place))
    quoting = {**LONG, "description": "A string with maximum length 8."}
    tried = find(error, tools=[quoting])
    assert (tried.repair, tried.is_lasting) == (ShortenDescriptions(8), False)


def test_function_is_named_by_its_number_among_functions() -> None:
    """At Google all of them are one tool; a chat that says so names none."""
    other = {**LOOK, "name": "other"}
    place = "GenerateContentRequest.tools[0].function_declarations[1].parameters"
    error = words(f"* {place}.properties: should be non-empty for OBJECT type")
    tools = [WEB, LOOK, CLOCKS, other]
    known = repairs_in_turn(Failure(400, error), tools=tools)
    assert known[:2] == [PlainSchemas("other"), tool(other)]
    quote = {**USER, "content": [{"type": "input_text", "text": place}]}
    assert tried_after(error, tools=tools, input=[quote]) is None
    assert find(error, tools=[LOOK]).repair != tool(LOOK)


@pytest.mark.parametrize(
    "message",
    [
        "JSON schema conversion failed:\nPattern must start with '^' and end with '$'",
        "Failed to initialize samplers: failed to parse grammar",
        "Unable to generate parser for this template. Automatic parser generation failed",
        "The provided JSON schema contains features not supported by xgrammar.",
        "tools.11.custom.input_schema: JSON schema is invalid. It must match",
        "tools.0.input_schema: input_schema does not support oneOf, allOf, or anyOf",
        "The specified schema produces a constraint that has too many states for serving.",
        "Invalid decoding guidance syntax. Request id: 0217684662584696c55f",
        "Invalid function format: unhashable type: 'list'",
        "Invalid request: tools.function.parameters is not a valid moonshot flavored json "
        "schema, details: <At path 'properties.a': type is not defined>",
        "Error from provider: JSON Schema not supported: could not understand the instance "
        "`{'required': ['entry']}`.",
    ],
)
def test_schema_without_a_grammar_costs_no_tool(message: str) -> None:
    """Unless a template knows no tools at all."""
    unknown = {**LOOK, "parameters": {"type": "object", "properties": {"a": {}}}}
    tried = repairs_in_turn(Failure(400, words(message)), tools=[unknown])
    assert tried[:2] == [PlainSchemas(), LeaveOutFunctions()]


@pytest.mark.parametrize(
    ("message", "status", "is_met"),
    [("'role'", 500, True), ("'role", 500, False), ("'role'", 503, False)],
)
def test_field_that_the_servers_code_missed(
    message: str, status: int, is_met: bool
) -> None:
    """vLLM calls it an internal error, of what it did not expect in the chat."""
    error = ApiError(str(status), "InternalServerError", message=message)
    steps = [PlainItems(LAST), WordsAlone(LAST)] if is_met else []
    assert repairs_in_turn(Failure(status, error)) == steps


OUTPUT_LIMITS = {
    "This model supports at most 16384 completion tokens, whereas": 16384,
    "max_tokens: 99999 > 8192, which is the maximum allowed number": 8192,
    "the valid range of max_tokens is [1, 8192]": 8192,
    "Range of max_tokens should be [1, 8192]": 8192,
    "maximum tokens you requested exceeds the model limit of 10000.": 10000,
    "`max_completion_tokens` must be less than or equal to `32768`,": 32768,
    "maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) "
    "to 65537 (exclusive).": 65536,
    "max_tokens (current value: 99999) must be between 0 and 8192": 8192,
    "max_tokens for `llama` must be less than or equal to 8000": 8000,
    "Invalid 'max_output_tokens': integer above maximum value. Expected a value "
    "<= 16384, but got 99999 instead.": 16384,
    "The parameter `max_tokens` specified in the request are not valid: integer "
    "above maximum value, expected a value <= 32768, but got 99999 instead.": 32768,
}
ROOM_LEFT = {
    "`max_tokens` exceed context limit: 190000 + 99999 > 200000,": 10000,
    "`max_tokens` exceed context limit: 199984 + 99999 > 200000,": 16,
    "your request has 1000 input tokens (99999 > 9000 - 1000)": 8000,
    "maximum context length of 4096 tokens. You requested a total of 5000 "
    "tokens: 1000 tokens from the input messages": 3096,
    "This endpoint's maximum context length is 262144 tokens. However, you "
    "requested about 284283 tokens (8963 of text input, 13176 of tool input, "
    "262144 in the output).": 240_005,
    "This model's maximum context length is 131072 tokens. However, you requested "
    "131329 tokens (123137 in the messages, 8192 in the completion).": 7935,
    "This model's maximum context length is 163840 tokens. However, you requested "
    "32000 output tokens and your prompt contains at least 131841 input tokens": 31_999,
}
"""What one chat leaves, in the words of servers: the next one may be shorter."""


@pytest.mark.parametrize("message", [*OUTPUT_LIMITS, *ROOM_LEFT])
def test_longer_answer_than_the_model_can_write(message: str) -> None:
    """The guard is lowered, never raised, and not below what the API takes."""
    most = (OUTPUT_LIMITS | ROOM_LEFT)[message]
    tried = find(words(message), max_output_tokens=999_999)
    assert (tried.repair, tried.is_lasting) == (
        LowerLimit(most),
        message in OUTPUT_LIMITS,
    )
    body = asking(max_output_tokens=999_999, repairs=(tried.repair,)).payload()
    assert body["max_output_tokens"] == most
    for lower in ({}, {"max_output_tokens": 16}):
        other = tried_after(words(message), **lower)
        assert other is None or other.repair != tried.repair


def test_input_that_leaves_no_room_lowers_nothing() -> None:
    for numbers in (
        "exceed context limit: 210000 + 9 > 200000",
        "exceed context limit: 199990 + 99 > 200000",
        "topK value of 64 but the supported range is from 1 (inclusive) to 41 (exclusive)",
    ):
        tried = tried_after(words(numbers), max_output_tokens=99_999)
        assert tried is None or not isinstance(tried.repair, LowerLimit)


def test_server_that_blames_itself_may_lack_the_thought_of_its_calls() -> None:
    """Llama Stack 0.7.3 calls what DeepSeek refuses behind it a `server_error`."""
    message = "Missing `reasoning_content` field in the assistant message."
    error = ApiError("server_error", message=message)
    assert find(error, 200).repair == CallsAsWords(LAST)


@pytest.mark.parametrize(
    "message",
    [
        "`tool_use` ids were found without `tool_result` blocks immediately after: call_x",
        "function call turn comes immediately after a user turn",
        "number of function response parts is equal to the number of function call parts",
        "An assistant message with 'tool_calls' must be followed by tool messages",
        'invalid Gemini function call history: name "call_1" does not match name "look"',
        "Not the same number of function calls and responses",
        "Unexpected role 'user' after role 'tool'",
        'messages with role "tool" must be a response to a preceeding message with '
        '"tool_calls".',
        "invalid params, tool call result does not follow tool call (2013)",
        "invalid params, tool call and result not match (2013)",
        "bedrock error: The number of toolResult blocks at messages.2.content exceeds the "
        "number of toolUse blocks of previous turn.",
        "Expected toolResult blocks at messages.2.content for the following Ids: tooluse_9",
        "invalid params, tool result's tool id(call_function_z1pbgy47368b_1) not found (2013)",
        "messages.3.content.2: `tool_use` ids must be unique",
    ],
)
def test_calls_that_a_gateway_tears_apart(message: str) -> None:
    """Texts between calls and results move, then results; at the end all become words."""
    items = [USER, CALL, ANSWER, OUTPUT, USER]
    refused = Failure(400, words(message))
    first, second, *_ = repairs_in_turn(refused, input=items)
    assert (first, second) == (MoveMessages(), CallsAsWords(item_names(items)[-1]))
    other, seen = {**CALL, "call_id": "call_b"}, {**OUTPUT, "call_id": "call_b"}
    both = [USER, CALL, other, OUTPUT, seen]
    first, second, *_ = repairs_in_turn(refused, input=both)
    assert (first, second) == (SeparateCalls(), CallsAsWords(item_names(both)[-1]))
    assert find(words(message), input=[*items, USER]).is_lasting
    quoted = [*items, text_message("user", message)]
    assert not find(words(message), input=quoted).is_lasting


@pytest.mark.parametrize("status", [400, 500])
def test_model_that_makes_one_call_at_a_time(status: int) -> None:
    """A template of Llama's; each result comes directly after its call."""
    error = words(
        "Jinja Exception: This model only supports single tool-calls at once!"
    )
    other, seen = {**CALL, "call_id": "call_b"}, {**OUTPUT, "call_id": "call_b"}
    items = [USER, CALL, other, ANSWER, OUTPUT, seen, USER]
    tried = find(error, status, input=items)
    assert (tried.repair, tried.is_lasting) == (SeparateCalls(), True)
    again = asking(input=items, repairs=(tried.repair,))
    apart = [USER, CALL, OUTPUT, other, seen, ANSWER, USER]
    assert again.payload()["input"] == apart
    assert [row.item for row in again.sent().items] == apart


@pytest.mark.parametrize("limit", [None, 32_000])
@pytest.mark.parametrize(("affordable", "is_met"), [(1000, True), (999, False)])
def test_answer_that_the_account_can_pay_for(
    limit: int | None, affordable: int, is_met: bool
) -> None:
    """OpenRouter counts the longest answer that may come; nothing is remembered."""
    message = (
        "This request requires more credits, or fewer max_tokens. You requested up to "
        f"32000 tokens, but can only afford {affordable}. To increase, visit"
    )
    tried = tried_after(words(message), 402, max_output_tokens=limit)
    assert bool(tried) is is_met
    if tried:
        assert (tried.repair, tried.is_lasting) == (
            LowerLimit(affordable, is_of_account=True),
            False,
        )
        body = asking(max_output_tokens=limit, repairs=(tried.repair,)).payload()
        assert body["max_output_tokens"] == affordable
    assert tried_after(words(message), 402, max_output_tokens=900) is None
    assert tried_after(words("Insufficient credits"), 402) is None


def test_title_of_a_model_that_only_streams() -> None:
    for message in (
        "parameter.enable_thinking must be set to false for non-streaming calls",
        "This model only support stream mode, please enable the stream parameter",
    ):
        assert find(words(message), stream=False).repair == AskForStream()


def test_chat_that_is_too_long_in_words_alone_costs_no_request() -> None:
    """Its texts are most of it; a limit that the words name is lowered before."""
    long = "`inputs` tokens + `max_new_tokens` must be <= 8193. `inputs` tokens: 9000"
    assert tried_after(words(long)) is None
    assert tried_after(ApiError(param="max_tokens", message=long)) is None
    assert tried_after(ApiError(param="max_tokens"), max_output_tokens=100) is None


def test_parameters_that_a_server_may_not_read_are_simpler_at_once() -> None:
    """xAI and Google name neither the tool nor the keyword; the tools stay."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "x"}}}
    exact = {**LOOK, "parameters": schema}
    request = asking(tools=[exact, WEB])
    tried = blind_repair(request.sent(), Failure(400, words("Invalid arguments.")))
    assert tried
    sent = request.model_copy(update={"repairs": (tried.repair,)}).payload()
    plain = asking(tools=[exact, WEB], repairs=(PlainSchemas(),)).payload()
    assert sent["tools"] == plain["tools"] != [exact, WEB]


@pytest.mark.parametrize(
    "error",
    [
        ApiError("invalid_union", param="input", message="Invalid type for 'input'."),
        words("input[2]: json: ResponsesFunctionCallOutput.output of type string"),
        ApiError("string_type", param="input[2].output"),
        ApiError("invalid_value", param="input[2].output[0].type"),
        words("Only text tool_result blocks are supported when tool_result.content is"),
    ],
)
def test_results_that_may_only_be_texts(error: ApiError) -> None:
    """LM Studio names no item, older servers of Ollama name it; images stay visible.

    What is wrong with an image itself is another thing.
    """
    broken = ApiError("invalid_value", param="input[2].output[0].image_url")
    image = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    seen = {**OUTPUT, "output": [image]}
    tried = find(error, input=[USER, CALL, seen])
    is_named = "[2]" in (error.param or "")
    assert (tried.repair, tried.is_named) == (TextOutputs(), is_named)
    assert find(broken, input=[USER, CALL, seen]).repair != TextOutputs()
    other = tried_after(error, input=[USER, CALL, OUTPUT])
    assert other is None or other.repair != TextOutputs()


@pytest.mark.parametrize("is_named", [True, False])
def test_search_goes_on_without_what_tunes_it(is_named: bool) -> None:
    """xAI names a field like a parameter. What guards a search takes it along."""
    search = {
        "type": "web_search",
        "search_context_size": "low",
        "external_web_access": False,
        "filters": {"blocked_domains": ["a.example"]},
    }

    def repair(field: str) -> Repair:
        error = words(f"Argument not supported: {field}")
        if is_named:
            error = ApiError("unknown_parameter", param=f"tools[0].{field}")
        return find(error, tools=[search]).repair

    assert repair("search_context_size") == LeaveOutToolField("search_context_size")
    assert repair("external_web_access") == tool(search)
    value = ApiError("invalid_value", param="blocked_domains")
    assert find(value, tools=[search]).repair != tool(search)
    inner = words("Argument not supported: blocked_domains")
    assert find(inner, tools=[search]).repair == tool(search)
    of_function = words("Argument not supported: parameters")
    assert not isinstance(find(of_function, tools=[LOOK]).repair, LeaveOutTool)
    other = words("Unknown parameter: 'type'.")
    assert tried_after(other, tools=[search]) != TriedRepair(tool(search), other)


def test_hosted_tool_is_named_by_its_type_alone() -> None:
    """OpenAI's words in Chat Completions, which LiteLLM passes on without the place."""
    said = "Invalid value: 'web_search'. Supported values are: 'function' and 'custom'."
    assert find(words(said)).repair == tool(WEB)
    other = said.replace("'function'", "'low'")
    assert find(words(other)).repair != tool(WEB)


def test_no_tool_of_a_list_is_named() -> None:
    """Of a type that the server does not have, functions are the ones that it takes."""
    said = "The parameter `tools.type` specified in the request are not valid: `x`"
    assert find(words(said)).repair == OfferFunctionsAlone()


def test_function_is_left_out_by_its_name_alone() -> None:
    """A server that takes no functions names their type, which all of them have."""
    tried = tried_after(words("Tool type 'function' is not supported"))
    assert tried is None or not isinstance(tried.repair, LeaveOutTool)


@each(
    "message",
    {
        LeaveOutToolChoice(): [
            "Thinking mode does not support this tool_choice",
            "The tool_choice parameter does not support being set to required or object "
            "in thinking mode",
            "tool_choice 'specified' is incompatible with thinking enabled",
            "Thinking may not be enabled when tool_choice forces tool use.",
            "Only 'auto' tool_choice is supported in response",
            "Only 'auto' or 'none' tool_choice is supported in",
        ],
        parameter("reasoning.effort", "none"): [
            "Reasoning is mandatory for this endpoint and cannot be disabled.",
            "Budget 0 is invalid. This model only works in thinking mode.",
            "This model always engages in thinking and cannot be disabled; please use low",
        ],
        EFFORT: [
            "Thinking budget is not supported for this model.",
            'think value "low" is not supported for this model',
        ],
    },
)
def test_what_a_model_that_thinks_does_not_take(message: str, repair: Repair) -> None:
    """Only that goes; in all requests, if the chat does not have the words."""
    tried = find(words(message), tool_choice="required")
    assert (tried.repair, tried.is_lasting) == (repair, True)
    quoted = [*INPUT, text_message("user", message)]
    assert not find(words(message), tool_choice="required", input=quoted).is_lasting


def test_choice_of_tools_that_litellm_does_not_pass_on() -> None:
    """It quotes the choice (1.106.2 and 1.110.2); no other option is the cause."""
    tools = [{"type": "function", "name": "a"}, {"type": "function", "name": "b"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": tools[:1]}
    told = f"litellm.BadRequestError: Invalid tool choice, tool_choice={choice}. On"
    tried = find(words(told), tool_choice=choice, tools=tools, truncation="auto")
    assert tried.repair == LeaveOutToolChoice()


@pytest.mark.parametrize(
    ("error", "is_named"),
    [
        (ApiError("missing_required_parameter", param="input[1].id"), True),
        (words("Failed to deserialize: input[1]: missing field `id` at line 1"), False),
        (ApiError("invalid_payload", param="/", message="The provided data"), False),
    ],
)
def test_reasoning_and_calls_get_the_ids_that_a_server_demands(
    error: ApiError, is_named: bool
) -> None:
    """If that does not help, they go as before."""
    nameless = [{k: v for k, v in item.items() if k != "id"} for item in HISTORY]
    tried, *more = repairs_in_turn(Failure(400, error), input=nameless)
    assert tried == StateIds()
    assert type(more[0]) is (LeaveOutItem if error.names_a_place else LeaveOutReasoning)
    found = find(error, input=nameless)
    assert (found.is_lasting, found.is_named) == (True, is_named)

    sent = asking(input=nameless, repairs=(StateIds(),)).payload()["input"]
    ids = [item["id"] for item in sent if "id" in item]
    assert [name.partition("_")[0] for name in ids] == ["rs", "fc"]
    assert asking(input=nameless, repairs=(StateIds(),)).payload()["input"] == sent
    for other in (HISTORY, [SEARCH, SEARCH, THOUGHT, *nameless[2:]]):
        if error.names_a_place:  # the item has an id, or is of another kind
            assert find(error, input=other).repair != StateIds()


def test_long_name_of_a_tool_or_a_type_is_not_remembered() -> None:
    """Callers choose it, and a user may have many repairs."""
    labelled = {"type": "mcp", "server_label": "x" * 5_000}
    tried = find(ApiError(param="tools[0]"), tools=[labelled])
    assert isinstance(tried.repair, LeaveOutTool)
    assert len(tried.repair.name) < 200
    unknown = ApiError("unknown_parameter", param="input[0].status")
    own = find(unknown, input=[{"type": "x" * 5_000, "status": "x"}]).repair
    assert isinstance(own, LeaveOutItem)
    assert len(own.message) < 200


def test_answers_that_may_only_be_texts() -> None:
    """LM Studio 0.3.29 names no item; a refusal without any name teaches nothing."""
    named = ApiError(
        "invalid_union", param="input", message="Invalid type for 'input'."
    )
    tried = find(named, input=[USER, ANSWER, USER])
    assert (tried.repair, tried.is_lasting) == (AnswersAsTexts(), True)
    other = find(named._replace(param="include"), input=[USER, ANSWER, USER])
    assert other.repair == parameter("include", ["x"])
    failure = Failure(400, words("Invalid input."))
    *_, last = repairs_in_turn(failure, input=[USER, ANSWER, USER], tools=None)
    assert last == AnswersAsTexts()


@pytest.mark.parametrize(
    ("message", "repair"),
    [
        (
            'reasoning.effort: Invalid option: expected one of "low"|"high"',
            ReplaceEffort("minimal", "low"),
        ),
        ("include: Invalid input", parameter("include", ["x"])),
        ("input.1.summary: Invalid input: expected string", item(THOUGHT)),
        ("tools.0.name: Tool name cannot be empty", tool(LOOK)),
        ("Error: no", None),
        ("tools.name: no", None),
        ("text.format.type: Invalid input", None),
    ],
)
def test_place_that_the_words_of_a_server_begin_with(
    message: str, repair: Repair | None
) -> None:
    """As servers of Node.js tell what they found; a chat could say it, too."""
    effort: dict[str, Any] = {"reasoning": {"effort": "minimal"}}
    failure = Failure(400, words(message))
    tried = find_repair(asking(**effort).sent(), failure)
    assert (tried.repair if tried else None) == repair
    quoted = [*INPUT, text_message("user", f"My notes: {message}")]
    assert find_repair(asking(input=quoted, **effort).sent(), failure) is None


def test_file_that_a_server_does_not_survive_costs_no_chat() -> None:
    """Servers in Python break over a kind of part that their authors never met."""
    broken = Failure(500, read_error_body(b"Internal Server Error"))
    assert repairs_in_turn(broken) == [PlainItems(LAST)]
    assert repairs_in_turn(broken, input=[USER, ANSWER]) == []
    for other in (read_error_body(b"No."), ApiError(message="Internal Server Error")):
        assert repairs_in_turn(Failure(500, other)) == []


def test_server_that_streams_nothing_in_the_background_is_asked_without_it() -> None:
    """It says so in words alone (OGX 1.5.0)."""
    no = words("OGX does not yet support 'stream' and 'background' together.")
    tried = find(no, background=True)
    assert (tried.repair, tried.is_lasting) == (LeaveOutBackground(), True)


def test_param_may_be_a_word_for_the_check_that_failed() -> None:
    """The words name the parameter then (Cerebras)."""
    said = "1 validation error for Request\ntop_p\n  Input should be 1"
    error = ApiError("wrong_api_format", param="validation_error", message=said)
    tried = find(error, top_p=0.5)
    assert (tried.repair, tried.is_named) == (VALUE, False)
    named = find(error._replace(param="truncation"), top_p=0.5, truncation="auto")
    assert (named.repair, named.is_named) == (parameter("truncation", "auto"), True)
    field = find(error._replace(param="text.verbosity"), top_p=0.5)
    assert field.repair == parameter("text.verbosity", "low")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "'uri' is not a valid format."),
        ("", "'#/$defs/List<System.String>' is not a 'uri-reference'."),
        ("Invalid schema for function 'look': ", "schema must have a 'type' key."),
    ],
)
def test_tool_with_a_refused_schema_stays_with_a_simpler_one(
    name: str, said: str
) -> None:
    """It goes if that is refused as well; where another is refused, all are simpler."""
    look, other = ({**LOOK, "name": at, "parameters": ANY} for at in ("look", "b"))
    param = "" if name else "tools[0].parameters"
    failure = Failure(400, ApiError(param=param or None, message=name + said))
    fields: dict[str, Any] = {"tools": [look, other]}
    first = repairs_in_turn(failure, **fields)
    assert first[:2] == [PlainSchemas("look"), tool(look)]

    sent = asking(**fields, repairs=(PlainSchemas("b"),)).sent()
    tried = find_repair(sent, failure)
    assert tried
    assert tried.repair == PlainSchemas()
    assert tried.is_named is not bool(name)
    # What is remembered comes in any order.
    for simpler in (PlainSchemas(), PlainSchemas("look"), LeaveOutOptions()):
        for repairs in ((simpler, tool(look)), (tool(look), simpler)):
            offered = asking(**fields, repairs=repairs).payload()["tools"]
            assert [row["name"] for row in offered] == ["b"]


ANY = {"type": "object", "properties": {"a": {}}}


def test_list_of_tools_that_is_refused_costs_one_answer_its_tools() -> None:
    """Nobody knows which one; the next answer has them again."""
    failure = Failure(400, ApiError(param="tools", message="No tools in chat.json."))
    tried = repairs_in_turn(failure, tools=[WEB, {**LOOK, "parameters": ANY}])
    assert tried[:3] == [OfferFunctionsAlone(), PlainSchemas(), LeaveOutFunctions()]
    first = blind_repair(asking(tools=[LOOK]).sent(), failure)
    assert first
    assert not first.is_lasting


@pytest.mark.parametrize(
    "lack", ["can handle the requested parameters", "support the provided 'x' value"]
)
def test_model_without_a_route_for_the_parameters_gets_fewer(lack: str) -> None:
    """Tomorrow another provider may be up."""
    error = words(f"No endpoints found that {lack}. To learn more, visit")
    tried = repairs_in_turn(Failure(404, error))
    assert tried[:2] == [LeaveOutOptions(), LeaveOutFunctions()]
    assert not find(error, 404).is_lasting


def test_nothing_is_left_out_for_a_model_that_only_draws() -> None:
    """It writes no text, with fewer parameters neither (Marinara-Engine 5749)."""
    error = words(f"{NO_ROUTE} the requested output modalities: text")
    assert repairs_in_turn(Failure(404, error), tools=[LOOK]) == []


@pytest.mark.parametrize(
    ("param", "message", "path", "outer"),
    [
        # Recorded.
        ("temperature", "Unsupported parameter.", "temperature", "temperature"),
        ("reasoning.effort", "Unsupported value.", "reasoning.effort", "reasoning"),
        (
            "input[3].output[0].file_data",
            "No.",
            "input[3].output[0].file_data",
            "input",
        ),
        # Other servers.
        ("include[1]", "Invalid value", "include[1]", "include"),
        ("tools/0/name", "Invalid value", "tools/0/name", "tools"),
        ("safety_identifier: x", "No.", "safety_identifier: x", "safety_identifier"),
        ("validation_error", "Unknown parameter: 'include'.", "include", "include"),
        (None, "Unknown parameter: 'text.verbosity'.", "text.verbosity", "text"),
        (None, "input.1.summary: Invalid input", "input[1].summary", "input"),
    ],
)
def test_path_belongs_to_the_parameter_that_it_begins_with(
    param: str | None, message: str, path: str, outer: str
) -> None:
    """Whatever sign follows the name."""
    sent = asking(safety_identifier="u").sent()
    named = Refusal(ApiError(param=param, message=message), sent).parameter
    assert (named, outer_name(named)) == (path, outer)


@pytest.mark.parametrize("tools", [[WEB], [LOOK], [WEB, LOOK]])
def test_server_that_does_not_know_tools_gets_none_for_a_day(tools: list[Item]) -> None:
    """It names the field; a wrong entry of the list has its place."""
    detail = {"loc": ["body", "tools"], "msg": "Extra inputs are not permitted"}
    error = read_api_error({"detail": [detail]})
    done: list[Repair] = []
    while asking(tools=tools, repairs=done).payload().get("tools"):
        tried = find_repair(
            asking(tools=tools, repairs=done).sent(), Failure(422, error)
        )
        assert tried
        assert (tried.is_named, tried.is_lasting) == (True, True)
        done.append(tried.repair)


def test_value_of_two_parameters_names_neither() -> None:
    said = "Unsupported value: 'low' is not supported with the 'm' model."
    tried = tried_after(words(said), reasoning={"effort": "low"})
    assert tried is None or not tried.is_lasting


SEEN: Item = {**OUTPUT, "output": [IMAGE]}


TOO_LARGE = (
    (words("Request body size exceeds"), 413),
    # Moonshot
    (read_api_error("total message size 10176584 exceeds limit 2097152"), 400),
)


@pytest.mark.parametrize(
    ("chat", "number"),
    [
        ([PICTURE, ANSWER, PICTURE, ANSWER, USER], 0),
        ([USER, ANSWER, PICTURE, ANSWER, PICTURE], 2),
        ([PICTURE, CALL, SEEN, CALL, SEEN], 2),
        ([USER, ANSWER, PICTURE], None),
        ([USER, CALL, SEEN], None),
        ([USER, ANSWER, USER], None),
    ],
)
def test_chat_that_has_become_too_large_loses_its_oldest_image(
    chat: list[Item], number: int | None
) -> None:
    """What was asked about last stays; the message says that the chat is too large."""
    for error, status in TOO_LARGE:
        tried = tried_after(error, status, input=chat)
        if number is None:
            assert tried is None
        else:
            assert tried
            assert tried.repair == SendAsText(item_names(chat)[number])
            assert tried.is_lasting


def test_image_that_is_shown_after_a_result_is_left_out_with_it() -> None:
    """The message that shows it is none of the chat's own, and has no name there."""
    chat = [USER, CALL, SEEN, USER, CALL, SEEN]
    sent = asking(input=chat, repairs=[TextOutputs()]).sent()
    for error, status in TOO_LARGE:
        tried = find_repair(sent, Failure(status, error))
        assert tried
        assert tried.repair == SendAsText(item_names(chat)[2])
