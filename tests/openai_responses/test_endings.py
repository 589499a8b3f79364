"""Every ending has a message of ours, and none of the server's."""

import json
import re
import string
from collections.abc import Iterator, Mapping
from typing import get_args

import pytest
from openai.types.responses import ResponseError
from openai.types.responses.response import IncompleteDetails

from openai_responses.causes import (
    FINAL_CODES,
    REQUEST_TOO_LARGE,
    SAFETY_STOPS,
    is_final,
)
from openai_responses.endings import (
    ASKED_MODEL,
    COMPLETED,
    CUT,
    FAULTS,
    MESSAGES,
    Ending,
    ending_of_exception,
    ending_of_failure,
    ending_of_incomplete,
    ending_of_refusal,
    failure_status,
    names_model,
    notice_text,
)
from openai_responses.errors import (
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    ConnectionFailed,
    Failure,
    InvalidRequest,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    SafetyNotice,
    TimedOut,
    UnreadableAnswer,
    read_api_error,
    read_error_body,
)
from shells.valve_messages import PIPE_SHELL, advised_ending
from upstream.refusals import (
    FAILED_EVENTS,
    NOT_FOR_THIS_KEY,
    NOT_THERE,
    REFUSED_BODIES,
    UNVERIFIED,
)

CANARY = "sk-proj-CANARY123"
ERRORS = (
    ApiError(),
    ApiError("odd_code", "odd_type", "input[3].content", CANARY),
    ApiError(CANARY, CANARY, CANARY, CANARY),
    ApiError("no{}word", "no{}word", f"metadata.{CANARY}", CANARY),
    ApiError("no{}word", None, "x\n<script>"),
)


def shown(kind: str, code: str) -> Iterator[str]:
    """Yield the message of an entry, as it is shown for different errors."""
    for error in ERRORS:
        if kind == "incomplete":
            yield ending_of_incomplete(code or error.code).message
        elif kind == "failed":
            known = ApiError(code, *(error.type, error.param)) if code else error
            yield ending_of_failure("failed", known).message
        elif kind == "refused":
            yield from refusals(code, error)
        else:
            yield MESSAGES[kind][code].format(server="api.example", reason="why")


def refusals(code: str, error: ApiError) -> Iterator[str]:
    """Yield the messages that an entry for refusals is used for."""
    if code and not code.isdigit():
        yield ending_of_refusal(400, error._replace(code=code)).message
        return
    status = {"": 418, "5": 599}.get(code) or int(code)
    # A 404 that names a part of the request is not about the address.
    named = error._replace(param=None) if code == "404" else error
    yield ending_of_refusal(status, named).message


ODD = "{ } None CANARY < Error: Traceback .."
DOINGS = (
    "[Aa]sk |[Tt]ry |[Rr]aise |[Cc]hoose |[Pp]ut |[Rr]emove |[Ss]tart |"
    "[Rr]egenerate |[Rr]ephrase |[Aa]n administrator "
)


@pytest.mark.parametrize(
    ("kind", "code"), [(kind, code) for kind in MESSAGES for code in MESSAGES[kind]]
)
def test_message_is_plain_and_says_what_to_do(kind: str, code: str) -> None:
    """One to three sentences; only words of the chat or of the API are filled in."""
    form = MESSAGES[kind][code]
    gaps = {name for _, name, _, _ in string.Formatter().parse(form)}
    allowed = {"code"}
    if kind in ("failed", "refused"):
        allowed = {"model", "status", "code", "param", "wait"}
    if kind == "unreachable":
        allowed = {"server", "reason"}
    assert gaps - {None} <= allowed
    # A page shows what can be continued in a status line, because it may soon be over.
    ending = Ending(kind, code or None)
    assert ending.can_continue == ("model to continue" in form)
    beginning = re.escape(form.split("{")[0])
    for sentence in shown(kind, code):
        assert re.match(beginning, sentence)
        assert 1 <= len(re.findall(r"[.?!](?= |$)", sentence)) <= 3
        assert sentence.endswith(".")
        assert sentence[0].isupper()
        assert sentence == " ".join(sentence.split())
        assert sentence.isprintable()
        # Where a setting can be the cause, a shell adds what an administrator can do.
        assert (kind, code) in FAULTS or re.search(DOINGS, sentence)
        for odd in ODD.split():
            assert odd not in sentence


def test_codes_and_reasons_of_the_api() -> None:
    """Each with which a response can fail or be incomplete has a message of its own."""
    codes = get_args(ResponseError.model_fields["code"].annotation)
    kinds = get_args(IncompleteDetails.model_fields["reason"].annotation)
    assert {*codes} <= MESSAGES["failed"].keys()
    assert {r for kind in kinds for r in get_args(kind)} <= MESSAGES[
        "incomplete"
    ].keys()


REFUSED = ApiRefused("A sentence.", Failure(418, ApiError("odd_code", "odd_type")))
ENDINGS: Mapping[str, Ending] = {
    "completed": COMPLETED,
    "incomplete": ending_of_incomplete("max_output_tokens"),
    "failed": ending_of_failure("failed", ApiError("server_error")),
    "error": ending_of_failure("error", ApiError("server_error")),
    "refused": ending_of_exception(REFUSED, False),
    "invalid": ending_of_exception(InvalidRequest("A sentence."), False),
    "unreachable": ending_of_exception(ConnectionFailed("A sentence."), False),
    "unreadable": ending_of_exception(UnreadableAnswer("A sentence."), False),
    "malformed": ending_of_exception(MalformedEvent("Not for people."), True),
    "cut": ending_of_exception(ConnectionFailed("Not for people."), True),
    "first_event_timeout": ending_of_exception(TimedOut("first_event_timeout"), False),
    "idle_timeout": ending_of_exception(TimedOut("idle_timeout"), True),
    "total_timeout": ending_of_exception(TimedOut("total_timeout"), True),
}


@pytest.mark.parametrize("kind", ENDINGS)
def test_all_endings_but_a_completed_one_are_failures(kind: str) -> None:
    ending = ENDINGS[kind]
    assert ending.kind == kind
    assert ending.is_failure == bool(ending.message) == (kind != "completed")
    table = {
        sentence for sentences in MESSAGES.values() for sentence in sentences.values()
    }
    assert ending.message in table | {"", "A sentence."}


def test_whatever_else_breaks_counts_as_a_broken_connection() -> None:
    assert ending_of_exception(ResponsesError("Odd."), True) == CUT
    # Also the rest of a background response, which has a message of its own.
    lost = ending_of_exception(ResponseLost(), True)
    assert (lost.kind, lost.message) == ("cut", MESSAGES["cut"]["lost"])
    assert ending_of_exception(ResponsesError("Odd."), False).kind == "unreachable"
    large = ending_of_exception(AnswerTooLarge(), True)
    assert (large.kind, large.message) == (
        "malformed",
        MESSAGES["malformed"]["too_large"],
    )


@pytest.mark.parametrize("has_begun", [False, True])
def test_error_of_a_shell_counts_as_the_one_it_is_made_of(has_begun: bool) -> None:
    """A host that is too old is no server that cannot be reached."""

    class HostTooOld(InvalidRequest):
        pass

    ending = ending_of_exception(HostTooOld("Update it."), has_begun)
    assert (ending.kind, ending.message) == ("invalid", "Update it.")


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure(429), "is busy with this key's requests"),
        (Failure(503), "has trouble (HTTP 503)"),
        (Failure(200, ApiError("server_error")), "reported an error"),
        (Failure(), "did not answer"),
        (Failure(405), "rejected the request (HTTP 405)"),
        (Failure(422), "rejected the request (HTTP 422)"),
        (Failure(200, ApiError("503")), "has trouble (HTTP 503)"),
    ],
)
def test_status_line_says_why_there_is_another_attempt(
    failure: Failure, words: str
) -> None:
    assert failure_status(failure) == f"The model's server {words}."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("max_output_tokens", "length limit"),
        ("steered", "A newer message"),
        ("context_length_exceeded", "context is full"),
        ("content_filter", "interrupted the answer"),
        ("max_messages", "limit of messages"),
        ("cancelled", "canceled on OpenAI's side"),
        ("no_answer", "ended without an answer"),
        ("only_calls", "more tool calls than"),
        ("used_up", "has used up the time or the tokens"),
        ("only_tokens", "all tokens of this answer on reasoning"),
        ("odd_reason", "incomplete (odd_reason)"),
        (None, "incomplete. Ask"),
        (CANARY, "incomplete. Ask"),
    ],
)
def test_incomplete_answer_tells_a_known_reason(reason: str | None, words: str) -> None:
    ending = ending_of_incomplete(reason)
    assert words in ending.message
    assert ending.kind == "incomplete"
    assert ending.code == (None if reason == CANARY else reason)


def test_limit_of_tokens_has_other_names() -> None:
    """At Volcengine and OGX, and at gateways; plain clients get `length`."""
    limit = ending_of_incomplete("max_output_tokens")
    assert ending_of_incomplete("length") == ending_of_incomplete("max_tokens") == limit


@pytest.mark.parametrize("code", ["self_harm_policy", "weapons_policy_violation"])
def test_policy_that_nobody_has_listed_is_a_stop(code: str) -> None:
    """Asked again without its tools or at another server, it would be worked around."""
    error = ApiError(code, "invalid_request_error")
    assert is_final(error)
    assert "usage policies" in ending_of_refusal(400, error).message
    assert ending_of_failure("failed", error).code in SAFETY_STOPS
    assert not is_final(ApiError("policy"))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ApiError("server_error", "x"), "server_error"),
        (ApiError(None, "x"), "x"),
        (ApiError(), None),
        (ApiError(CANARY), None),
    ],
)
def test_code_of_an_ending_is_a_word(error: ApiError, code: str | None) -> None:
    assert ending_of_failure("failed", error).code == code
    refused = ApiRefused("A sentence.", Failure(400, error))
    assert ending_of_exception(refused, False).code == code


TOO_LARGE = (
    "Request too large for gpt-4o in project proj_1 organization org-1 on tokens per min "
    "(TPM): Limit 1, Requested 30. The input or output tokens must be reduced."
)
BUSY = (
    "Rate limit reached for gpt-4o in organization org-1 on tokens per min (TPM): Limit "
    "30000, Used 29000, Requested 4000. Please try again in 6s."
)
RATE = "rate_limit_exceeded"
WRONG_KEY_WORDS = "Incorrect API key provided: xa***23."


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ((RATE, TOO_LARGE), REQUEST_TOO_LARGE, "waiting does not help"),
        ((RATE, BUSY), RATE, "Wait 6 seconds, then"),
        ((RATE, TOO_LARGE.replace("1,", "30,")), RATE, "rate limit"),
        (("x", WRONG_KEY_WORDS), "invalid_api_key", "does not accept the API key"),
        (
            ("x", f"Invalid: '{WRONG_KEY_WORDS}'"),
            "x",
            "has reached OpenAI's rate limit",
        ),
    ],
)
def test_words_that_say_more_than_the_code(
    error: tuple[str, str], code: str, words: str
) -> None:
    """A quotation of such words says nothing."""
    read = ApiError(error[0], message=error[1])
    sentence = ending_of_refusal(429, read).message
    assert words in sentence
    ended = ending_of_exception(ApiRefused(sentence, Failure(400, read)), False)
    assert ended.code == code
    assert is_final(read) == (code in FINAL_CODES)


def test_notice_is_shown_as_words() -> None:
    """Redacted, in one line, without what a page would draw, follow or run."""
    hostile = (
        "It read\n\n# keys\x1b[31m ![x](https://evil.example/p.png) <img src=x> "
        "[go](https://evil.example) `rm` of sk-proj-abcdef123456 and hunter2-hunter2 "
        "{{HTML_FILE_ID_1a}} \\(x\\)"
    )
    text = notice_text(SafetyNotice(hostile, "Ask first."), ["hunter2-hunter2"])
    assert text.startswith("The model's server explains: “It read # keys")
    assert text.endswith("It advises: “Ask first.”")
    assert text.count("[redacted]".translate(str.maketrans("[]", "()"))) == 2
    for drawn in (
        "](",
        "![",
        "<",
        ">",
        "`",
        "://",
        "{{",
        "\\(",
        "\n",
        "hunter2",
        "sk-",
    ):
        assert drawn not in text


def test_notice_is_bounded() -> None:
    assert notice_text(SafetyNotice(), ()) == ""
    assert len(notice_text(SafetyNotice("x" * 10**6, "y" * 10**6), ())) <= 1300


@pytest.mark.parametrize("shown", range(4, 32, 5))
def test_notice_ends_with_no_half_of_a_secret(shown: int) -> None:
    """A long token in front of it makes the text shorter."""
    secret = "Zq7-very-secret-value-0123456789"
    token = "Bearer " + "a" * 900 + " "
    explanation = token + "p" * (1_200 - len(token) - shown) + secret + "z" * 50_000

    assert "Zq7-" not in notice_text(SafetyNotice(explanation), [secret])


TOO_LONG = (
    "The number of tokens to keep from the prompt is greater than the context length.",
    "The input (9000 tokens) is longer than the model's context length (4096 tokens).",
    "prompt too long; exceeded max context length by 100 tokens",
    "litellm.BadRequestError: prompt is too long: 208732 tokens > 200000 maximum",
    "Input is too long for requested model.",
    "Prompt too long",
    "This model's maximum prompt length is 131072 but the request contains 537812.",
    "The decoder prompt (length 9) is longer than the maximum model length of 4.",
    "The input token count (2845475) exceeds the maximum number of tokens allowed (9).",
    "Your request exceeded model token limit: 262144 (requested: 291351)",
    "prompt token count of 139000 exceeds the limit of 128000",
    "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000",
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 9]",
    "Input validation error: `inputs` must have less than 4096 tokens. Given: 5000",
    "Requested input length 268972 exceeds maximum input length 202751",
    "prompt tokens (320666) exceed customer model maximum (278528) for model-id",
    "tokens in request more than max tokens allowed",
    "input token limit is 202752",
)
"""LM Studio, SGLang, Ollama, Anthropic, Bedrock, Z.AI, xAI, vLLM, Google, Kimi, Copilot,
TGI, DashScope and a gateway of a chat."""
NO_CREDIT = (
    "Your credit balance is too low to access the Anthropic API.",
    "Your account is suspended due to insufficient balance, please recharge",
    "Your newly created team doesn't have any credits or licenses yet.",
    "Your team x has either used all available credits or reached its limit.",
    "you (ada) have reached your weekly usage limit, upgrade for higher limits",
    "Rate limit exceeded: free-models-per-day. Add 10 credits to unlock more",
    "Key limit exceeded (monthly limit). Manage it using https://openrouter.ai/settings/keys",
    "No payment method. Add a payment method here: https://opencode.ai/workspace/x/billing",
    "\u8be5\u4ee4\u724c\u989d\u5ea6\u5df2\u7528\u5c3d",
)
NO_MODEL = (
    "models/x is not found for API version v1beta, or is not supported for "
    "generateContent.",
    "No endpoints found for foo/bar.",
    "No endpoints found that support the requested output modalities: text",
    "This model is only supported in v1/chat/completions and not in v1/responses.",
    "The model 'openai.gpt-5.6-terra' does not support the '/v1/responses' API",
    "The model 'openai.gpt-5.6-luna' does not support the '/v1/chat/completions' API",
    "This model is only supported in v1/responses and not in v1/chat/completions.",
    "This is not a chat model and thus not supported in the v1/chat/completions "
    "endpoint. Did you mean to use v1/completions?",
    'model "gpt-4o" is not accessible via the /responses endpoint',
    '"bge-m3:latest" does not support chat',
    "The provided model identifier is invalid.",
    "Invocation of model ID x with on-demand throughput isn\u2019t supported.",
    "No available channel for model x under group default (distributor)",
    "The model 'x/y' has reached its end of life on 2026-07-27T00:00:00Z and is no "
    "longer available.",
    "Function '23d4f03a-b8a6': Not found for account 'BDnmPUMI2eN_Liw2'",
    "The supported API model names are deepseek-v4-pro or deepseek-v4-flash, but you "
    "passed gpt-5.2.",
    "The model x is an image model and is therefore not available on this endpoint.",
    "This model is not supported by the Responses API.",
    "model m does not support Responses API.",
)
OTHER_WORDS = {
    **dict.fromkeys(NO_CREDIT, "no credit left"),
    **dict.fromkeys(NO_MODEL, "Choose another model"),
    **dict.fromkeys(TOO_LONG, "longer than the model can"),
    "The model `qwen9` does not exist.": "does not exist, has been shut down",
    'model "qwen9" not found, try pulling it first': "does not exist, has been shut down",
    "Invalid model name passed in model=qwen9.": "does not exist, has been shut down",
    "This model's maximum context length is 4096 tokens.": "longer than the model can",
    "the request exceeds the available context size (4096)": "longer than the model",
    "litellm.ContextWindowExceededError: too long": "longer than the model can",
    "Invalid 'input': array too long. Expected an array": "longer than the model can",
    "Invalid 'input[0].content[1].text': string too long.": "longer than the model can",
    "litellm.RateLimitError: RateLimitError: OpenAIException": "rate limit",
    **dict.fromkeys(
        (
            "Selected model is at capacity. Please try a different model.",
            "The model is currently at capacity due to high demand.",
            "server overload, please try again later",
            "The service may be temporarily overloaded, please try again later",
            "No capacity available for model gemini-3-flash-preview on the server",
            "We're currently experiencing high demand, which may cause temporary errors.",
        ),
        "is overloaded",
    ),
    "Output blocked by content filtering policy": "content filter",
    "The response was filtered due to the prompt triggering Azure OpenAI's content "
    "management policy.": "content filter",
    "litellm.ContentPolicyViolationError: AzureException": "content filter",
    "The request was rejected because it was considered high risk": "content filter",
    'litellm.BadRequestError: OpenAIException - {"error": {"code": '
    '"insufficient_quota", "message": "No."}}': "no credit left",
    "Invalid `model`. Use `claw` or `claw/<agentId>`.": "Choose another model",
}


@pytest.mark.parametrize("words", OTHER_WORDS)
def test_words_of_other_servers(words: str) -> None:
    error = read_api_error({"error": {"message": words}})
    for status in (400, 403, 404, 429):
        assert OTHER_WORDS[words] in ending_of_refusal(status, error).message
        in_stream = error._replace(code=error.code or str(status))
        assert OTHER_WORDS[words] in ending_of_failure("failed", in_stream).message


CUT_ELSEWHERE = (
    # CLIProxyAPI; through LiteLLM 1.100.1
    "stream error: stream disconnected before completion: stream closed before "
    "response.completed",
    "litellm.APIError: stream error: stream disconnected before completion: stream "
    "closed before response.completed",
    # LiteLLM 1.106.2 and 1.110.2, of a stream that ended and of one that broke
    "litellm.APIConnectionError: openai closed the responses stream before any terminal "
    "event (response.completed, response.incomplete or response.failed)",
    "Response payload is not completed: <TransferEncodingError: 400, message='Not "
    "enough data to satisfy transfer length header.'>",
    # sub2api; CLIProxyAPI
    "Upstream stream ended without a terminal response event",
    "empty_stream: upstream stream closed before first payload",
)


@pytest.mark.parametrize("words", CUT_ELSEWHERE)
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("request_timeout", "invalid_request_error"),
        ("server_error", None),
        ("500", None),
    ],
)
def test_a_stream_that_broke_behind_a_gateway_is_cut(
    words: str, code: str, kind: str | None
) -> None:
    """What arrived is kept, and the model can continue, as if our connection broke."""
    error = read_api_error({"error": {"code": code, "type": kind, "message": words}})
    assert ending_of_failure("error", error) == CUT
    refused = ending_of_refusal(408, error)
    assert (refused.kind, refused.message) == ("refused", CUT.without_text().message)


def test_a_quoted_text_is_no_cut() -> None:
    error = ApiError("server_error", message=f"Refused: {CUT_ELSEWHERE[0]}")
    assert ending_of_failure("error", error) != CUT


WORDS_OF_CODES = {
    "internal error": "server_error internal_error upstream_error",
    "Wait a minute": "rate_limit_exceeded slow_down too_many_requests rate_limit_error",
    "no credit left": "billing_hard_limit_reached billing_not_active budget_exceeded "
    "credit_balance_exhausted insufficient_quota organization_spend_limit_exceeded "
    "organization_usage_limit_exceeded project_spend_limit_exceeded "
    "project_usage_limit_exceeded usage_not_included exceeded_current_quota_error "
    "insufficient_credits",
    "does not have enough memory": "out_of_memory",
    "has more tools than": "too_many_tools",
    "allow no provider of": "forbidden_providers",
    "is bound to a region, which has": "incorrect_hostname",
    "usage limit of its plan. Try again in some": "usage_limit_reached",
    "is overloaded": "server_is_overloaded service_unavailable_error overloaded_error",
    "took too long to answer": "timeout",
    "longer than the model can read": "context_length_exceeded",
    "usage policies": "invalid_prompt bio_policy image_content_policy_violation",
    "did not allow an image": "moderation_blocked",
    "wrote something that its server could not read": "tool_use_failed "
    "output_parse_failed",
    "safety monitoring stopped this answer": "misalignment_policy_violation",
    "could help attack computers": "cyber_policy",
    "content filter stopped": "content_policy_violation",
    "content filter rejected": "content_filter",
    "waiting does not help": "request_above_rate_limit",
    "too large for the model's server": "request_too_large",
    "no flex capacity": "flex_unavailable",
    "not available in the region": "data_residency_mismatch",
    "search in the uploaded files": "vector_store_timeout",
    "could not use an image": "empty_image_file failed_to_download_image "
    "image_file_not_found image_file_too_large image_parse_error image_too_large "
    "image_too_small invalid_base64_image invalid_image invalid_image_format "
    "invalid_image_mode invalid_image_url unsupported_image_media_type",
    "could not use a file": "unsupported_file",
    "does not exist, has been shut down": "model_not_found",
    "reasoning of an earlier answer": "invalid_encrypted_content",
    "for verified organizations": "unverified_organization",
    "country or region": "unsupported_country_region_territory",
    "has no permission for this request": "missing_scope",
    "the organization in the settings": "mismatched_organization invalid_organization",
    "the project in the settings": "mismatched_project",
    "listed IP addresses": "ip_not_authorized",
    "deactivated the account": "account_deactivated",
    "This API key may not use": "denied_model",
    "A firewall or proxy": "firewall_page",
    "A gateway in front": "gateway_page",
    "does not accept the API key": "invalid_api_key",
    "still loading the model": "loading_model",
    "rejected the request": "invalid_request_error invalid_value invalid_type "
    "unknown_parameter unsupported_parameter unsupported_value "
    "missing_required_parameter",
}


@pytest.mark.parametrize("words", WORDS_OF_CODES)
def test_each_code_has_its_message(words: str) -> None:
    for code in WORDS_OF_CODES[words].split():
        assert words in ending_of_refusal(400, ApiError(code)).message, code
        assert words in ending_of_failure("failed", ApiError(code)).message, code


NO_PROVIDER = "No endpoints found that can handle the requested parameters. To learn"
NOT_VERIFIED = "Your organization must be verified to use this."
NO_LIMIT = '"max_output_tokens" not permitted'
LONG_CALL_ID = "Invalid 'input[3].call_id': string too long."
"""Not of a text: the chat is not too long."""


NO_DEPLOYMENT = ApiError(
    "DeploymentNotFound", message="The API deployment is not there."
)


def test_redirect_is_about_the_address() -> None:
    ending = ending_of_refusal(302, ApiError())
    assert "redirects requests" in ending.message
    assert ending.fault.settings == ("base_url",)


_BEHIND = {"message": "The request is not supported by this model.", "code": 400}
UPSTREAM_400 = {"message": json.dumps({"error": {**_BEHIND, "type": "upstream_error"}})}
OVERLOADED_502 = {
    "message": "Our servers are currently overloaded. Please try again later.",
    "type": "upstream_error",
}
_OF_MANTLE = {"param": "safety_identifier", "message": "Unsupported parameter."}
SAFEGUARD_500 = {
    "message": "litellm.APIConnectionError: APIConnectionError: Bedrock_mantleException "
    f"- {json.dumps({'error': _OF_MANTLE})}"
}


@pytest.mark.parametrize(
    ("status", "error", "words", "settings"),
    [
        (400, ApiError(param="input"), "with HTTP 400 at input.", ()),
        (400, ApiError("unsupported_value", param="model"), "Choose another model", ()),
        (400, read_api_error(UPSTREAM_400), "request with HTTP 400.", ()),
        (500, read_api_error(SAFEGUARD_500), "a safeguard", ("compatibility",)),
        (502, read_api_error(OVERLOADED_502), "is overloaded", ()),
        (400, ApiError(message=LONG_CALL_ID), "with HTTP 400.", ()),
        (402, ApiError(), "no credit left", ()),
        (401, ApiError("odd_code"), "does not accept the API key", ("api_key",)),
        (401, ApiError(message=NOT_VERIFIED), "for verified organizations", ()),
        (404, NO_DEPLOYMENT, f"model {ASKED_MODEL} does not", ()),
        (404, ApiError(param="input[3]"), "with HTTP 404 at input[3].", ()),
        (404, ApiError(message="No call at input[3]."), "request with HTTP 404.", ()),
        (404, ApiError("404", message=NO_PROVIDER), "request with HTTP 404.", ()),
        (400, read_api_error({"detail": NO_LIMIT}), "at max_output_tokens.", ()),
        (407, ApiError(), "HTTP proxy rejected", ("proxy",)),
        (418, ApiError(), "with HTTP 418. An administrator", ()),
        (429, ApiError(), "Wait a minute", ()),
        (500, ApiError(), "internal error", ()),
        (503, ApiError(), "is overloaded", ()),
        (504, ApiError(is_page=True), "in time (HTTP 504)", ()),
    ],
)
def test_status_has_its_message_and_settings(
    status: int, error: ApiError, words: str, settings: tuple[str, ...]
) -> None:
    """Also inside of a stream, where the code is the status."""
    in_stream = ending_of_failure("error", error._replace(code=str(status)))
    for ending in (ending_of_refusal(status, error), in_stream):
        assert words in ending.message
        assert ending.fault.settings == settings


@pytest.mark.parametrize("code", ["7", "200"])
def test_number_that_is_no_status_of_a_refusal_says_nothing(code: str) -> None:
    assert "reported an error" in ending_of_failure("failed", ApiError(code)).message


@pytest.mark.parametrize("name", REFUSED_BODIES)
def test_refusal_has_a_message_of_its_own(name: str) -> None:
    """With the settings that can be the cause; nothing of the server's own words."""
    status, body, message = REFUSED_BODIES[name]

    error = read_error_body(body.encode())
    ending = ending_of_refusal(status, error)

    assert advised_ending(ending, PIPE_SHELL).message == message


@pytest.mark.parametrize("name", FAILED_EVENTS)
def test_error_in_a_stream_has_the_message_of_its_code(name: str) -> None:
    wire, message = FAILED_EVENTS[name]

    ending = ending_of_failure("failed", read_api_error({"error": wire}))

    assert advised_ending(ending, PIPE_SHELL).message == message


def test_refusals_that_name_the_model() -> None:
    named = {
        refused.message
        for refused in REFUSED_BODIES.values()
        if names_model(refused.status, read_error_body(refused.body.encode()))
    }
    assert named == {NOT_FOR_THIS_KEY, NOT_THERE, UNVERIFIED}


def test_model_that_a_stream_names() -> None:
    there_is_none = ApiError("404", message="The model `x` does not exist.")
    assert names_model(200, ApiError("model_not_found"))
    assert names_model(200, there_is_none)
    assert not names_model(200, ApiError("server_error"))
    assert not names_model(200, ApiError("403"))


@pytest.mark.parametrize(
    "words",
    [
        "The principal lacks the required data action.",
        "Request too large for it: Limit 1, Requested 30.",
        "You have reached your usage limit.",
    ],
)
def test_words_far_inside_of_a_message_are_no_cause(words: str) -> None:
    """A server may quote a chat."""
    near, far = (ApiError(message="x" * n + words) for n in (9, 2_000))
    plain, told, quoted = (
        ending_of_failure("failed", error).message
        for error in (ApiError(message="x"), near, far)
    )
    assert told != quoted == plain


@pytest.mark.parametrize("status", [400, 500, 502])
def test_status_of_a_server_behind_a_gateway_says_more_than_its_own(
    status: int,
) -> None:
    words = "Error code: 404 - The model `lake` does not exist."
    message = ending_of_refusal(status, read_api_error({"detail": words})).message
    assert f"{ASKED_MODEL} does not exist" in message


def test_wait_that_nobody_means_is_not_told() -> None:
    """A server may send any number."""
    for seconds, told in ((0, "a minute"), (1, "a moment"), (9e8, "a minute")):
        message = ending_of_refusal(429, ApiError(reset=seconds)).message
        assert f"Wait {told}" in message


def test_only_an_answer_with_a_status_says_that_there_is_no_such_api() -> None:
    """What streams, or passes on what another server said, has this API."""
    refused = ending_of_refusal(404, ApiError())
    assert "no Responses API" in refused.message
    assert refused.fault.settings == ("base_url",)
    # A code of its own body is less certain than the status.
    assert ending_of_refusal(404, ApiError("500")).message == refused.message
    behind = read_api_error({"detail": "Error code: 404 - Not Found"})
    streamed = ending_of_failure("error", ApiError("404"))
    for ending in (streamed, ending_of_refusal(500, behind)):
        assert "rejected the request" in ending.message
        assert ending.fault.settings == ()
