"""The exceptions tell what may be shown, and nothing else."""

import json
from typing import Any

import pytest

from measures.work_count import count_work
from openai_responses.causes import WRONG_KEY, find_certain_cause
from openai_responses.errors import (
    ApiError,
    InvalidParameter,
    InvalidRequest,
    InvalidSetting,
    ResponsesError,
    read_api_error,
    read_error_body,
)
from openai_responses.requests.tools import responses_tools


def test_refused_value_is_a_value_error() -> None:
    """As the specification names what is wrong with a caller's request (3.6)."""
    for cause in (InvalidRequest, InvalidParameter, InvalidSetting):
        assert issubclass(cause, ValueError)
        assert issubclass(cause, ResponsesError)
    with pytest.raises(ValueError, match="A tool has no name"):
        responses_tools([{"type": "function", "function": {}}])


@pytest.mark.parametrize(
    ("rows", "param", "message"),
    [
        (
            [
                {"loc": ["body", "input", "str"], "msg": "a string"},
                {"loc": ["body", "input", "list[a]", 3, "A", "id"], "msg": "required"},
            ],
            "input[3].id",
            "required",
        ),
        ([], None, ""),
        (["?", {"loc": "body", "msg": 7}], None, ""),
    ],
)
def test_errors_of_servers_made_with_fastapi(
    rows: list[object], param: str | None, message: str
) -> None:
    """The row that says the most has the place and the words."""
    error = read_api_error({"detail": rows})
    assert (error.param, error.message) == (param, message)


NO_EFFORT = {
    "code": "invalid_value",
    "path": ["reasoning", "effort"],
    "message": 'Invalid option: expected one of "low"|"high"',
}
ZOD_3_UNION = {
    "code": "invalid_union",
    "unionErrors": [
        {"issues": [{"path": ["input"], "message": "Expected string"}]},
        {
            "issues": [
                {
                    "unionErrors": [
                        {"issues": [{"path": ["input", 2, "role"], "message": "?"}]}
                    ],
                    "path": ["input", 2],
                }
            ]
        },
    ],
    "path": ["input"],
    "message": "Invalid input",
}
ZOD_4_UNION = {
    "code": "invalid_union",
    "errors": [
        [{"path": [], "message": "expected string"}],
        [{"errors": [[{"path": ["role"]}]], "path": [2], "message": "?"}],
    ],
    "path": ["input"],
    "message": "Invalid input",
}


@pytest.mark.parametrize(
    ("issue", "param"),
    [
        (NO_EFFORT, "reasoning.effort"),
        ({"path": ["input", 2, "content", 0, "text"]}, "input[2].content[0].text"),
        (ZOD_3_UNION, "input[2]"),
        (ZOD_4_UNION, "input[2]"),
        ({"path": ["tool_choice"], "errors": [[{"path": ["x"]}]]}, "tool_choice"),
        (
            {"path": [], "code": "unrecognized_keys", "keys": ["metadata", "n"]},
            "metadata",
        ),
        ({"path": [], "errors": [7, [7]], "unionErrors": 7}, None),
        ({"path": [], "code": "unrecognized_keys", "keys": 7}, None),
        ({"path": [0, "function", "parameters", "type"], "code": "x"}, None),
    ],
)
def test_errors_of_servers_made_with_zod(issue: object, param: str | None) -> None:
    """Data of responses.js; in a text at LM Studio and OpenRouter.

    Of several forms, none of which fits, only the item is certain.
    """
    issues = [issue, {"path": ["x"]}]
    for error in (issues, {"issues": issues, "name": "ZodError"}):
        own = read_api_error({"success": False, "error": error})
        assert (own.param, own.is_relayed) == (param, False)
    text = json.dumps([issue], indent=2)
    for body in (
        {"error": text},
        {
            "error": {
                "code": "invalid_prompt",
                "message": "Invalid Responses API request",
            },
            "metadata": {"raw": text},
        },
    ):
        read = read_api_error(body)
        assert (read.param, read.is_relayed) == (param, True)


KIND = "potentially_unintended_data_access"
MISALIGNMENT = {
    "error_type": KIND,
    "detailed_explanation": "It read credentials.",
    "review_target": "review_1",
    "steer": {"message": "Ask before."},
}


@pytest.mark.parametrize(
    ("wire", "notice"),
    [
        (MISALIGNMENT, ("It read credentials.", "Ask before.", KIND, "review_1")),
        ({"steer": None, "detailed_explanation": 7}, ("", "", "", "")),
        ("stopped", ("", "", "", "")),
    ],
)
def test_notice_of_a_safety_stop(wire: object, notice: tuple[str, ...]) -> None:
    """All of its parts may be missing; the code alone decides what is done."""
    error = {"code": "misalignment_policy_violation", "misalignment": wire}
    assert read_api_error({"error": error}).notice == notice


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": "m"}, ApiError(message="m")),
        ({"error": "m", "code": "xai-code"}, ApiError(code="xai-code", message="m")),
        ("m", ApiError(message="m")),
        ({"detail": "m"}, ApiError(message="m")),
        ({"error": None, "message": "m"}, ApiError(message="m")),
        ({"error": {"error": {"code": "c"}}}, ApiError(code="c")),
        ({"code": 7, "type": "", "param": []}, ApiError()),
        ([], ApiError()),
        ({"code": "invalid_prompt", "error_type": ["t"]}, ApiError("invalid_prompt")),
        ({"type": "None", "param": "None", "message": "m"}, ApiError(message="m")),
        ([{"error": {"message": "m", "code": 400}}], ApiError("400", message="m")),
        ({"success": False, "errors": [{"message": "m"}]}, ApiError(message="m")),
        ({"errors": []}, ApiError()),
        ({"Message": "m"}, ApiError(message="m")),
        # LM Studio
        (
            {"error": {"param": "input.2.content.0"}},
            ApiError(param="input[2].content[0]"),
        ),
        # claude-code-hub; Volcengine's gateway; Apigee
        (
            {"error": {"type": "t", "upstream_error": {"error": {"message": "m"}}}},
            ApiError(message="m"),
        ),
        ({"ResponseMetadata": {"Error": {"Message": "m"}}}, ApiError(message="m")),
        (
            {"fault": {"faultstring": "m", "detail": {"errorcode": "c"}}},
            ApiError("c", message="m"),
        ),
        ({"fault": "m", "upstream_error": "m", "Error": "m"}, ApiError()),
        ({"message": "m", "upstream_error": {"status": 5}}, ApiError(message="m")),
        # Databricks; codex2api
        ({"error_code": "C", "message": "m"}, ApiError("C", message="m")),
        (
            {"error": {"code": "c", "details": {"field": "input.15.type"}}},
            ApiError("c", param="input[15].type"),
        ),
    ],
)
def test_error_bodies_of_all_shapes_are_read(body: object, error: ApiError) -> None:
    assert read_api_error(body) == error


CODES_ELSEWHERE = {
    "model_not_found": "model_not_supported unsupported_api_for_model "
    "model_not_available model_decommissioned model_terms_required unknown_model",
    "insufficient_quota": "insufficient_user_quota pre_consume_token_quota_failed",
    "another_code": "another_code",
    "server_is_overloaded": "NoCapacity no_capacity 1305",
}


@pytest.mark.parametrize("openais", CODES_ELSEWHERE)
def test_codes_of_other_servers_mean_openais(openais: str) -> None:
    """Copilot's, Together's, Groq's, GitHub's and new-api's."""
    for code in CODES_ELSEWHERE[openais].split():
        assert read_api_error({"error": {"code": code}}).code == openais, code


def test_error_in_an_error_without_end() -> None:
    """A hostile nesting is read without recursion."""
    wire_error: Any = {"code": "c"}
    for _ in range(50_000):
        wire_error = {"errors": [{"error": wire_error}]}
    assert read_api_error(wire_error) == ApiError(code="c")


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
        {"errorMessage": "%s", "errorCode": "UPSTREAM_LLM_ERROR"},
        {"error_type": "validation_error", "error_message": "ConnectionError: %s"},
        {
            "error": {
                "code": "error",
                "message": "Stream error occurred",
                "name": "AI_TypeValidationError",
                "value": {"error_type": "validation_error", "error_message": "%s"},
            }
        },
    ],
)
def test_gateways_repeat_the_error_of_the_api(wire: Any) -> None:
    """As an object or as a text; the inner one says what is wrong."""
    text = json.dumps({"error": INNER}, indent=1)
    whole = json.loads(json.dumps(wire).replace("%s", json.dumps(text)[1:-1]))
    is_relayed = wire != {"error": INNER}
    error = read_api_error(whole)
    assert error[:4] == ("bad", "t", "input[3]", "No.")
    assert error.is_relayed is is_relayed


def test_gateway_prints_the_bytes_of_a_body() -> None:
    """LiteLLM, of Vertex AI."""
    body = json.dumps({"error": {**INNER, "message": "It's an é."}}, indent=1)
    printed = (
        f"litellm.BadRequestError: Vertex_aiException - {body.encode()!r}. Group=g"
    )
    error = read_api_error({"error": {"message": printed, "code": "400"}})
    assert error[:4] == ("bad", "t", "input[3]", "It's an é.")


def test_gateway_repeats_words_next_to_a_code() -> None:
    """Such a body, xAI's, is in the message of LiteLLM (1.106.2 and 1.110.2)."""
    body = json.dumps(
        {"code": "invalid-argument", "error": "Incorrect API key provided"}
    )
    message = f"litellm.BadRequestError: OpenAIException - {body}\n\nLiteLLM: failed."
    error = read_api_error({"error": {"message": message, "code": "400", "type": "t"}})
    assert error[:4] == ("invalid-argument", None, None, "Incorrect API key provided")
    assert error.is_relayed
    assert find_certain_cause(error) == WRONG_KEY


@pytest.mark.parametrize("message", ["No.", "It's {'a': {}} no"])
@pytest.mark.parametrize("after", ["", ". Fallbacks={'a': {'b': None}}"])
def test_exception_of_a_package_repeats_the_error_of_the_api(
    message: str, after: str
) -> None:
    """Servers pass on what OpenAI's package for Python raised."""
    body = {"error": {**INNER, "message": message, "x": None}}
    error = read_api_error({"error": {"message": f"Error code: 400 - {body}{after}"}})
    assert error[:4] == ("bad", "t", "input[3]", message)
    assert error.is_relayed


def test_error_with_a_place_of_its_own_is_no_gateways() -> None:
    """Its words may quote a key that looks like a body."""
    forged = json.dumps({"error": {**INNER, "param": "tools[0]"}})
    message = f"Unknown parameter: 'text.{forged}'."
    wire = {"error": {"message": message, "param": f"text.{forged}", "code": "c"}}
    error = read_api_error(wire)
    assert error[:4] == ("c", None, f"text.{forged}", message)
    assert not error.is_relayed


def test_body_of_many_levels_in_a_text_is_a_message() -> None:
    """However many a parser takes: it may take more than what reads them."""
    for depth in range(700, 1_500):
        levels = '{"message": ' * depth + "1" + "}" * depth
        text = f'{{"error": {levels}}}'
        assert read_api_error({"error": {"message": text}}).message == text


@pytest.mark.parametrize(
    "text",
    [
        *("{", "{}", '{"error": {}}', "{" * 5000, "a {b} c", "{'error': {" * 400),
        *("{'error': {f()}}", "{'error': {[]: 1}}", "{'error': {}}", "[1]", "["),
        *(
            '{"error": "No."}',
            '{"error": "No.", "code": 1}',
            '{"code": "c", "error": ""}',
        ),
        *('[{"path": "x"}]', '[{"path": ["x"]}] said the user'),
    ],
)
def test_other_texts_are_messages(text: str) -> None:
    """Only an error in JSON is unpacked. Words of the request may be in any other."""
    for wire in ({"error": text}, {"error": {"message": text}}):
        assert read_api_error(wire) == ApiError(message=text)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (
            b"<html><head><title>Just a moment...</title></head>",
            ApiError(message="Just a moment...", is_page=True),
        ),
        (b"\r\n <TITLE>A &amp; B</TITLE>", ApiError(message="A & B", is_page=True)),
        (b"<html></html>", ApiError(is_page=True)),
        (b"error code: 1015", ApiError(is_page=True)),
        (
            b"error code: 1015, and more",
            ApiError(message="error code: 1015, and more", is_bare_text=True),
        ),
        (b"", ApiError()),
        (b'{"error": {"message": "<html>"}}', ApiError(message="<html>")),
        (b"\xff<html>", ApiError()),
        (b" \n", ApiError()),
        (
            b"tools[1].type: no\n",
            ApiError(message="tools[1].type: no", is_bare_text=True),
        ),
        (
            b'data: {"error": {"message": "No.", "code": "bad"}}\n\n',
            ApiError("bad", message="No.", is_relayed=True, is_bare_text=True),
        ),
    ],
)
def test_page_is_known_by_its_beginning(body: bytes, error: ApiError) -> None:
    """JSON is the API's, whatever it says."""
    assert read_error_body(body) == error


ROWS = """2 validation errors:
  {'type': 'string_type', 'loc': ('body', 'input', 'str'), 'msg': 'no "text"', 'input': 1}
  {'type': 'missing', 'loc': ('body', 'input', "list[literal['a', 'b']]", 3, 'id'), \
'msg': 'Field required', 'input': ["\\n  {'type': 'missing', 'loc': ('body', 'store')"]}
"""
FORGED = "no validation errors:\n" + ROWS.partition("\n")[2]


@pytest.mark.parametrize(
    ("text", "param"),
    [(ROWS, "input[3].id"), (FORGED, None), ("1 validation error:\nNo.", None)],
)
def test_exception_of_fastapi_names_the_place_of_its_longest_row(
    text: str, param: str | None
) -> None:
    """vLLM sends it as the message; what it quotes of a chat begins no line."""
    error = read_api_error({"error": {"message": text, "code": 400}})
    assert (error.param, error.is_relayed) == (param, param is not None)
    assert error.message == ("Field required" if param else text.strip())


@pytest.mark.parametrize(
    "reason",
    [
        "image exceeds 5 MB maximum: 6 > 5",
        "At least one of the image dimensions exceed",
    ],
)
def test_large_image_at_anthropic_has_openais_code(reason: str) -> None:
    message = f"messages.0.content.1.image.source.base64: {reason}"
    assert read_api_error({"error": {"message": message}}).code == "image_too_large"
    assert read_api_error({"error": {"message": reason}}).code is None


REFUSED_AT = {
    "messages.4.content.1.image.source.base64.data: Image format image/png not "
    "supported": "invalid_image_format",
    "messages.2.content.0.tool_result.content.0.image.source.base64: string argument "
    "should contain only ASCII characters": "invalid_image_format",
    "messages.38.content.0.pdf.source.base64.data: A maximum of 100 PDF pages may be "
    "provided.": "unsupported_file",
    "messages.0.content.0.document.source.base64.media_type: Input should be "
    "'application/pdf'": "unsupported_file",
}


@pytest.mark.parametrize("message", REFUSED_AT)
def test_place_at_anthropic_says_what_is_refused(message: str) -> None:
    """Of an image or a file, whatever it says of it; a place of a text says neither."""
    assert read_api_error({"error": {"message": message}}).code == REFUSED_AT[message]
    _, _, reason = message.partition(": ")
    for other in (reason, f"messages.0.content.0.text: {message}"):
        assert read_api_error({"error": {"message": other}}).code is None


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "invalid_value",
            "The image data you provided does not represent a valid image",
        ),
        ("", "image media type not supported"),
        ("", "image media type is required"),
        ("", "invalid image input"),
        ("", "Unable to process input image. Please retry"),
        (
            "",
            "Unable to submit request because it has a mimeType parameter with value "
            "image/svg+xml, which is not supported.",
        ),
        ("", "400 failed to decode image"),
        ("", "Invalid request: failed to decode image: unknown format"),
        (
            "",
            "messages.0.content.1.image.source.base64.media_type: Input should be "
            "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
        ),
    ],
)
def test_image_that_is_none_has_openais_code(code: str, message: str) -> None:
    """OpenAI's other code, and none of Copilot, Ollama and Google, name no image."""
    read = read_api_error({"error": {"message": message, "code": code}})
    assert read.code == "invalid_image_format"
    quoted = read_api_error({"error": {"message": f"No: {message}", "code": code}})
    assert quoted.code == (code or None)


@pytest.mark.parametrize(
    "body",
    [
        '{"error": {"code": "c", "message": "%s"}}',
        '[{"path": ["input"], "code": "c", "message": "%s"}]',
    ],
)
@pytest.mark.parametrize(("length", "is_read"), [(10, True), (1_000_000, False)])
def test_only_a_short_text_is_read_as_a_body(
    body: str, length: int, is_read: bool
) -> None:
    """An event of a stream may have many megabytes, which cost more once read."""
    error = read_api_error({"error": {"message": body % ("x" * length)}})
    assert (error.message == "x" * length) is is_read


@pytest.mark.parametrize(
    "printed",
    [
        'POST "https://a.example/v1/x": 400 Bad Request {"message": "No."}',
        "Error code: 400 - {'error': {'message': 'No.'}}",
        'Invalid status code: 400 Bad Request: {"error": {"message": "No."}}, z: No.',
        'bad response status code 400, body: {"error": {"message": "No."}}',
    ],
    ids=["Go", "Python", "Rust", "a gateway"],
)
def test_status_that_a_package_prints_is_that_of_the_server_behind(
    printed: str,
) -> None:
    """OpenAI's packages name it before the error (coddy-project/coddy-agent 322)."""
    error = read_api_error({"error": {"message": f"provider: {printed}", "code": 500}})
    assert (error.message, error.status, error.is_relayed) == ("No.", 400, True)


@pytest.mark.parametrize(
    ("status", "own", "expected"),
    [
        (400, {}, "invalid_request_error"),
        (400, {"type": "t"}, "t"),
        (500, {}, None),
        (404, {}, None),
    ],
)
def test_printed_status_of_a_refusal_is_its_type(
    status: int, own: dict[str, str], expected: str | None
) -> None:
    """Where its code says something else, such as Z.AI's numbers."""
    body = json.dumps({"error": {"code": "1214", "message": "No.", **own}})
    message = f"All failed: Invalid status code: {status} Bad: {body}"
    error = read_api_error({"error": {"message": message}})
    assert error[:4] == ("1214", expected, None, "No.")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Backend request failed with status 400", "invalid_request"),
        ("Invalid prompt: it was flagged as a violation.", "invalid_prompt"),
        ("", "invalid_prompt"),
    ],
)
def test_refusal_behind_openrouter_is_about_no_policy(message: str, code: str) -> None:
    """It has the code of one (can1357/oh-my-pi 9041)."""
    error = {"error": {"code": "invalid_prompt", "message": message}}
    assert read_api_error(error).code == code


@pytest.mark.parametrize("told", [{"reasons": ["violence"]}, {"flagged_input": "x"}])
def test_moderation_of_openrouter_is_a_filter(told: dict[str, object]) -> None:
    error = {"error": {"code": 403, "message": "Blocked.", "metadata": told}}
    assert read_api_error(error).code == "content_filter"


CONSOLE = "Error from provider (Console Go): "


def test_type_for_anything_in_front_of_words_says_nothing() -> None:
    """OpenCode's gateway calls each rejection so, with HTTP 400."""
    message = f"{CONSOLE}Upstream request failed"
    error = read_api_error({"error": {"type": "server_error", "message": message}})
    assert error == ApiError(message="Upstream request failed")


@pytest.mark.parametrize(
    ("code", "message", "expected"),
    [
        ("server_error", "Error code: 400 - No.", ("400", "No.", True)),
        (None, "Error code: 404 - No.", ("404", "No.", True)),
        (500, "Error code: 429 - No.", ("429", "No.", True)),
        ("server_error", "Error code: 503", ("503", "Error code: 503", True)),
        ("own", "Error code: 400 - No.", ("own", "Error code: 400 - No.", False)),
        (None, "Run failed: Error code: 401 - No.", ("401", "No.", True)),
        (None, "Upstream request failed: [400] No.", ("400", "No.", True)),
        (None, f"{CONSOLE}Upstream request failed: [404] No.", ("404", "No.", True)),
        (None, f"{CONSOLE}Upstream request failed: [1210] No.", ("1210", "No.", True)),
        (
            None,
            f"{CONSOLE}Upstream request failed: [invalid_request_error] No.",
            ("invalid_request_error", "No.", True),
        ),
        (None, '"Error code: 400 - x"', (None, '"Error code: 400 - x"', False)),
    ],
)
def test_exception_of_a_package_says_the_status_of_the_api(
    code: object, message: str, expected: tuple[object, ...]
) -> None:
    """Newer versions print no body, and what passes it on has a code for anything."""
    error = read_api_error({"error": {"code": code, "message": message}})
    assert (error.code, error.message, error.is_relayed) == expected


@pytest.mark.parametrize(
    "detail",
    ["No: top_p", [{"loc": ["body", "top_p"], "msg": "No: top_p"}]],
    ids=["words", "rows"],
)
def test_gateways_repeat_what_a_server_made_with_fastapi_says(detail: object) -> None:
    """One in front of another has it in a text inside of a text (decolua/9router 3008)."""
    inner = json.dumps({"detail": detail})
    outer = json.dumps({"error": {"code": None, "message": f"{inner} (trace: 1)"}})
    error = read_api_error({"error": {"message": f"[m] [400]: {outer}(reset)"}})
    param = None if isinstance(detail, str) else "top_p"
    assert (error.message, error.param) == ("No: top_p", param)
    assert error.is_relayed


def test_few_ends_of_a_printed_body_are_tried() -> None:
    """Whoever writes thousands into a text would hold up the server."""
    text = "Error code: 400 - {'error': {'a': 'b " + "}} " * 1_000
    read_api_error({"error": {"message": text}})  # compiles its patterns
    assert count_work(lambda: read_api_error({"error": {"message": text}})) < 2_000


def test_place_of_an_issue_has_an_end() -> None:
    """Each of thousands of issues inside of it would get all of its keys."""
    issue = {"path": ["input", *range(5_000)], "errors": [[{"path": []}]]}
    param = read_api_error({"error": [issue]}).param
    assert param
    assert param.count("[") < 100


@pytest.mark.parametrize("fields", ["message", "detail", "metadata"])
def test_words_of_an_error_have_an_end(fields: str) -> None:
    """An event may have 64 MB of rows, in the time of which nobody else is answered."""
    words = "3 validation errors:\n" + "a" * 2_000_000
    value: object = {"raw": words} if fields == "metadata" else words
    assert len(read_api_error({"error": {fields: value}}).message) <= 1024 * 1024
