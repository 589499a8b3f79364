"""The exceptions of this package, and the API's own error.

ResponsesError
 ├─ InvalidRequest         our own check refused it; nothing was sent
 │   ├─ InvalidSetting     because of a field of the endpoint
 │   └─ InvalidParameter   because of a parameter of the caller
 ├─ ConnectionFailed       no connection, or it broke, also in the middle of an answer
 ├─ TimedOut               the server or the run took too long
 ├─ ResponseLost           a background response whose rest cannot be had
 ├─ ApiRefused             an HTTP status that is no answer (from 300 on), or an error
 │                         in its place
 ├─ UnreadableAnswer       an answer that is not what the API sends
 ├─ AnswerTooLarge         an answer that is not read on
 └─ MalformedEvent         one event of a stream that cannot be read

`str(error)` is our own message for users, without body, header or key. What an
administrator has to look at is in `fault`, for a shell to say with its own names.
"""

import ast
import html
import json
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal, NamedTuple

from openai_responses.json_input import (
    JsonObject,
    as_list,
    as_mapping,
    as_seconds,
    as_text,
    is_too_deep,
    load_json,
    value_at,
)
from openai_responses.waits import seconds_until, wait_in_words

_PLACE_SOMEWHERE = re.compile(r"\b(input|tools)\[\d{1,6}\]")
_MAX_SEARCHED = 2000
"""Characters of a message."""

REASON_GIVEN = " The reason given: "
"""In the text of an error, before what only administrators are shown of its cause."""
UNREAD_REASONING = "invalid_encrypted_content"
"""Of another organization, provider or deployment, or damaged (openai/codex 8145)."""
UNREADABLE_STREAM = "unreadable_stream"
"""Our code for a stream of which no event could be read."""


class SafetyNotice(NamedTuple):
    """What OpenAI's monitoring has to say about an answer that it stopped.

    A model wrote `explanation` and `advice` about the chat, for users to read: they are
    data, never instructions. `review_target` is what a review by OpenAI names.
    """

    explanation: str = ""
    advice: str = ""
    category: str = ""
    review_target: str = ""


class ApiError(NamedTuple):
    """The error that the API reports (docs/reference/responses-api.md, "Errors").

    `message` is never shown: it can quote a key or a prompt. `notice` is shown, because
    OpenAI asks for it (guide "Safety checks: misalignment monitoring").
    """

    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""
    notice: SafetyNotice = SafetyNotice()
    is_relayed: bool = False
    """Whether it was found in a text, where words of the request may be, too."""
    is_page: bool = False
    """Whether a page came in place of the API's answer: something in front of the API
    sent it, such as a firewall, a proxy or a gateway."""
    is_bare_text: bool = False
    """Whether a text came that is no JSON; a proxy may have written it."""
    reset: float | None = None
    """When the same request may succeed, as a gateway wrote it: in seconds from now, or
    since 1970 (`waits.seconds_until`)."""

    def is_any_of(self, words: Container[str | None]) -> bool:
        """Say whether its code or its type is one of the `words`."""
        return self.code in words or self.type in words

    @property
    def text(self) -> str:
        """The place and the words."""
        return f"{self.param} {self.message}"

    @property
    def beginning(self) -> str:
        """The words that tell its cause; what follows them may quote a chat."""
        return self.message[:_MAX_SEARCHED]

    @property
    def names_a_place(self) -> bool:
        """Whether a place in the request is named anywhere, maybe in a quote from it."""
        return _PLACE_SOMEWHERE.search(self.text) is not None

    @property
    def wait(self) -> float | None:
        """The seconds to wait that its words or a field name, None if there are none."""
        wait = wait_in_words(self.beginning)
        if wait is None and self.reset is not None:
            return seconds_until(self.reset)
        return wait

    @property
    def status(self) -> int:
        """The HTTP status that other servers send as the code, else 0."""
        code = self.code or ""
        return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


class Failure(NamedTuple):
    """A failure before anything but a thought was shown.

    `status` is None without an HTTP answer, 200 if the stream began with an error.
    `retry_after` is in seconds; `should_retry` is what the server says.
    """

    status: int | None = None
    error: ApiError = ApiError()
    retry_after: float | None = None
    should_retry: bool | None = None


SettingName = Literal[
    "api_key",
    "base_url",
    "ca_bundle",
    "compatibility",
    "extra_headers",
    "organization",
    "project",
    "proxy",
    "verify_ssl",
]
"""Fields of `Endpoint` that can be the cause of a failure."""


class SettingFault(NamedTuple):
    """The settings that can be the cause of a failure; none if it has another one.

    Settings have other names where an administrator sees them, and who can change them
    depends on the host, so what to do is worded by the shells.
    """

    settings: tuple[SettingName, ...] = ()
    certainty: Literal["certain", "likely", "possible"] = "likely"
    """`certain`: the value cannot be used. `possible`: the failure may also pass."""


NO_FAULT = SettingFault()


OWN_MESSAGE = "-"
"""In the place of such a word: the exception's own text is shown."""


class ResponsesError(Exception):
    """What this package raises on purpose."""

    ending: tuple[str, str] = ("", "")
    """The kind of ending, and the word of its message (`endings.MESSAGES`); empty if that
    depends on whether the answer has begun."""
    failure: Failure | None = None
    """Why the request may be sent again; None if it may not."""
    ends_response = False
    """Whether nothing more of the response is read."""
    was_sent = False
    """Whether the server may be working on the request."""
    status = 0
    """That of HTTP, if there was an answer."""

    def __init__(self, message: str = "", fault: SettingFault = NO_FAULT) -> None:
        super().__init__(message)
        self.fault = fault


Remedy = Literal["request", "rule", "setup"]
"""What has to change before a request can be sent: the request itself, a rule of an
administrator that forbids it, or what an administrator has set up."""


class InvalidRequest(ResponsesError, ValueError):
    """A request that is not sent."""

    ending = ("invalid", OWN_MESSAGE)

    def __init__(
        self,
        message: str = "",
        fault: SettingFault = NO_FAULT,
        *,
        remedy: Remedy = "request",
    ) -> None:
        """Note what has to change; a setting that is at fault is never the caller's."""
        super().__init__(message, fault)
        self.remedy: Remedy = "setup" if fault.settings else remedy


class InvalidSetting(InvalidRequest):
    """A field of the endpoint has a value that cannot be used."""

    def __init__(self, name: SettingName, reason: str) -> None:
        """Keep the name of the field; `reason` is a message that does not name it."""
        super().__init__(reason, SettingFault((name,), "certain"))


class InvalidParameter(InvalidRequest):
    """A parameter of the caller has a value that cannot be sent."""

    def __init__(self, param: str, reason: str) -> None:
        super().__init__(f"The setting {param} cannot be sent: {reason}.")
        self.param = param


class ConnectionFailed(ResponsesError):
    """The server could not be reached, or the connection broke, also in an answer."""

    failure: Failure | None = Failure()

    def __init__(
        self, message: str, *, was_sent: bool = True, fault: SettingFault = NO_FAULT
    ) -> None:
        super().__init__(message, fault)
        self.was_sent = was_sent


TimeoutKind = Literal["first_event_timeout", "idle_timeout", "total_timeout"]


class TimedOut(ResponsesError):
    """A time limit of the run was exceeded."""

    was_sent = True

    def __init__(self, kind: TimeoutKind) -> None:
        super().__init__("The model's server did not answer in time. Try again.")
        self.ending = (kind, "")
        self.ends_response = kind == "total_timeout"
        self.failure = None if self.ends_response else Failure()


class ResponseLost(ResponsesError):
    """A background response that can no longer be read."""

    ending = ("cut", "lost")


class UnreadableAnswer(ResponsesError):
    """The answer does not have the form of the Responses API."""

    ending = ("unreadable", OWN_MESSAGE)


class AnswerTooLarge(ResponsesError):
    """The answer is larger than what is accepted."""

    ending = ("malformed", "too_large")
    ends_response = True

    def __init__(self) -> None:
        super().__init__("The model's server sent more data than is accepted.")


class MalformedEvent(ResponsesError):
    """An event of a stream cannot be read."""

    ending = ("malformed", "")
    failure = Failure(error=ApiError(UNREADABLE_STREAM, param="stream"))


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status from 300 on, or with an error."""

    def __init__(
        self,
        message: str,
        failure: Failure,
        request_id: str = "",
        fault: SettingFault = NO_FAULT,
    ) -> None:
        super().__init__(message, fault)
        self.failure: Failure = failure
        self.status = failure.status or 0
        self.error = failure.error
        self.request_id = request_id


CONTENT_FILTER = "content_filter"
"""Azure's code for a chat that its filter refused, and ours for other filters."""

_PAGE = re.compile(r"\s*(?:<|error code: \d{3,4}\s*\Z)", re.IGNORECASE)
"""How a page begins. Cloudflare tells programs only `error code: 1020`."""
_TITLE = re.compile(r"<title>([^<]{1,200})", re.IGNORECASE)


def read_error_body(body: bytes | bytearray) -> ApiError:
    """Return the error of the body of a refusal.

    The API sends JSON. Of a page only the title is kept, for administrators. A bare text
    is what servers in Rust say of a request that they cannot read (DeepSeek's and
    SGLang's router, sgl-project/sglang 30781).
    """
    try:
        return read_api_error(load_json(body))
    except ValueError:
        text = body.decode("utf-8", errors="replace")
    if not _PAGE.match(text):
        is_readable = bool(text.strip()) and "\ufffd" not in text
        error = read_api_error(text.strip()) if is_readable else ApiError()
        return error._replace(is_bare_text=is_readable)
    title = _TITLE.search(text)
    return ApiError(message=html.unescape(title[1]) if title else "", is_page=True)


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, a response, or either form of the event.

    A gateway may hold the API's own body as a text.
    """
    fields = _without_words_in_front(_error_fields(wire))
    metadata = as_mapping(fields.get("metadata"))
    message = fields["message"]

    # OpenRouter has the API's body as a text in `metadata.raw` (tailcallhq/forgecode
    # 892), Vercel's gateway in a value that it could not read (vercel/ai 18303), LiteLLM
    # in its own message (BerriAI/litellm 34788). A gateway's own error names no place;
    # the API's may quote what looks like a body.
    raw = as_text(metadata.get("raw") or value_at(fields, "value", "error_message"))
    if message == _REFUSED_BY_OPENROUTER:  # `metadata` is next to the error
        raw = as_text(value_at(wire, "metadata", "raw"))
    raw = raw[:_MAX_READ_WORDS]
    param = _read_error_word(fields.get("param"))
    reset = _read_reset(fields, as_mapping(metadata.get("headers")))
    inner = None if param else _inner_error(raw) or _inner_error(message)
    if inner is not None:
        # The gateway knows both limits, the server behind it only its own.
        own_reset = inner.reset if reset is None else reset
        return inner._replace(is_relayed=True, reset=own_reset)
    code = fields.get("code")
    says_nothing = not isinstance(code, str) or code in CODES_FOR_ANYTHING
    printed = _STATUS_AND_WORDS.match(message) if says_nothing else None
    if printed:
        message = printed[2] or printed[4] or message
        fields = {**fields, "code": printed[1] or printed[3]}
        if fields.get("type") in CODES_FOR_ANYTHING:
            del fields["type"]

    # The more exact type is OpenRouter's (guides "Errors and Debugging" and, of the
    # Responses API, "Error Handling").
    exact = metadata.get("error_type") or value_at(wire, "error_type")
    kind = _read_error_word(fields.get("type")) or as_text(exact) or None
    misalignment = as_mapping(fields.get("misalignment"))
    limit = _LIMIT_IN_WORDS.match(message)
    named = NUMBER_AFTER_DOT.sub(r"[\1]", param)
    own_code = _read_code(fields, message, kind, as_text(exact))
    if kind in CODES_FOR_ANYTHING and re.fullmatch("4[0-9]{2}", own_code or ""):
        kind = None  # of the gateway: the status is that of the server behind it
    return ApiError(
        code=own_code,
        type=kind,
        param=named or (limit[1] if limit else None),
        message=f"{message} {raw}".strip(),
        is_relayed=printed is not None,
        reset=reset,
        notice=SafetyNotice(
            explanation=as_text(misalignment.get("detailed_explanation")),
            advice=as_text(value_at(misalignment, "steer", "message")),
            category=as_text(misalignment.get("error_type")),
            review_target=as_text(misalignment.get("review_target")),
        ),
    )


_MAX_READ_WORDS = 1024 * 1024
"""Characters that are read, as of a refusal. An event of a stream may have many more."""
_WORDS_IN_FRONT = re.compile(
    r"CC Switch local proxy failed while handling .{1,400}?"
    r"(?:; upstream_status: HTTP ([45]\d{2}))?; cause: "
    r"|Error from provider \(Console[\w ]{0,20}\): "
)
"""What CC Switch and OpenCode's gateway write in front of a server's words
(farion1231/cc-switch 7261, anomalyco/opencode 43187)."""


def _without_words_in_front(fields: JsonObject) -> JsonObject:
    """Return the fields of an error, with a server's own words as the `message`."""
    message = ""
    for key in _KEYS_OF_WORDS:
        message = message or as_text(fields.get(key))[:_MAX_READ_WORDS]
    front = _WORDS_IN_FRONT.match(message)
    if front is None:
        return {**fields, "message": message}
    kind = fields.get("type")
    if kind == "proxy_error" or kind in CODES_FOR_ANYTHING:
        kind = None
    code = fields.get("code")
    if as_text(code).startswith("cc_switch_"):  # the server's error has none
        code = None if kind else front[1]
    return {**fields, "message": message[front.end() :], "type": kind, "code": code}


_LIMIT_IN_WORDS = re.compile(
    r"(?:(?:unsupported|unknown|unrecognized) (?:request )?"
    r"(?:parameter|argument|field)s?(?:\(s\))?:? "
    r")?\W?(max_output_tokens|max_tool_calls|prompt_cache_retention|safety_identifier)\b",
    re.IGNORECASE,
)
"""The limit or the safeguard that an error names in words alone.

No repair takes one away, so a user who writes such words changes nothing.
"""


def _read_code(
    fields: JsonObject, message: str, kind: str | None, exact: str
) -> str | None:
    """Return OpenAI's code for an error, as far as another server means the same."""
    # OpenRouter's moderation is a 403 with its reasons.
    metadata = as_mapping(fields.get("metadata"))
    if metadata.get("reasons") or metadata.get("flagged_input"):
        return CONTENT_FILTER
    if kind in _CODES_OF_TYPES:
        return _CODES_OF_TYPES[kind]
    code = fields.get("code")
    if isinstance(code, int) and 400 <= code < 600:  # a gateway's HTTP status
        code = str(code)
    word = _SAME_CODES.get(as_text(code), as_text(code))
    match word:
        # At OpenRouter, also the code of a chat that is too long, of a field that is not
        # known, and of whatever a server behind it refuses.
        case "invalid_prompt" if exact:
            return exact
        case "invalid_prompt" if message and not _OF_A_POLICY.search(message):
            word = "invalid_request"
        # Copilot, with a status of 400 or 401, of another account's reasoning
        # (anomalyco/opencode 31236, openclaw/openclaw 66424)
        case "" | "bad_request" | "invalid_request_body" if _IS_FOREIGN_ITEM.match(
            message
        ):
            return UNREAD_REASONING
        # Moonshot, as a 429
        case "" if kind == "engine_overloaded_error":
            return "server_is_overloaded"
        # Zhipu, whose words are Chinese; it has no types
        case number if not kind and number in _CODES_OF_ZHIPU:
            return _CODES_OF_ZHIPU[number]
        # Ark, as `InputTextSensitiveContentDetected.PolicyViolation`
        case text if "SensitiveContentDetected" in text:
            return CONTENT_FILTER
        # new-api, of a channel without this API (QuantumNous/new-api 4535)
        case "convert_request_failed" if message.startswith("not implemented"):
            return "model_not_found"
    for phrase, meant in _CODES_OF_WORDS:
        if re.search(phrase, message):
            return meant
    return word or None


_CODES_OF_TYPES = {
    # llama.cpp's code repeats the status (recorded, b10434 and b11434).
    "exceed_context_size_error": "context_length_exceeded",
    "hooks_failed": CONTENT_FILTER,  # Portkey's guardrails, with a status of 446
}
_IS_FOREIGN_ITEM = re.compile(
    r"input item (ID )?does not belong to this connection\b", re.IGNORECASE
)
_PLACE_AT_ANTHROPIC = r"\Amessages\.\d{1,5}\.content\.\d{1,5}\.(?:[\w.]{1,40}\.)?"
_CODES_OF_WORDS = (
    # Anthropic behind a gateway, of one image of many; MiniMax (NousResearch/hermes-agent
    # 76039)
    (
        r"\bimage\.source\b.{0,40}: (?:image exceeds \d"
        r"|At least one of the image dimensions)"
        r"|\A(?:invalid params, )?media exceeds size limit\b",
        "image_too_large",
    ),
    # Whatever else it says of an image or a file, by its own place of it: of a format, of
    # signs that are no Base64 (charmbracelet/crush 1782), of too many pages
    # (anthropics/claude-code 6231)
    (rf"{_PLACE_AT_ANTHROPIC}image\.source\b\S{{0,40}}: ", "invalid_image_format"),
    (
        rf"{_PLACE_AT_ANTHROPIC}(?:pdf|document)\.source\b\S{{0,40}}: ",
        "unsupported_file",
    ),
    (
        # OpenAI, with `invalid_value` (openai/codex 4946); Copilot, with no code
        # (github/copilot-cli 2030).
        r"\A(?:The image data you provided does not represent a valid image"
        r"|image media type (?:not supported|is required)"
        # Kimi, of WebP
        r"|(?:400 )?(?:Invalid request: )?failed to decode image\b"
        # llama.cpp, Ollama and LM Studio, of a format such as WebP
        r"|Failed to load image or audio file"
        # Ollama; Google
        r"|invalid image input\Z|Unable to process input image\b"
        r"|Unable to submit request because it has a mimeType parameter with value image/"
        # Anthropic, behind a gateway (anthropics/claude-code 40583, 11908)
        r"|\S{1,99}\.media_type: Input should be 'image/"
        r"|(?:\S{1,99}: )?(?:Could not process image"
        r"|Image does not match the provided media))",
        "invalid_image_format",
    ),
    # Moonshot, with a status of 400 (MoonshotAI/kimi-code 476)
    (r"\Atotal message size \d{1,12} exceeds limit \d", "request_too_large"),
    # OpenAI, without a code
    (r"\AThe file type you uploaded is not supported", "unsupported_file"),
    # Google, with a status of 400
    (
        r"\AUser location is not supported for the API",
        "unsupported_country_region_territory",
    ),
    # LM Studio and Cloudflare's gateway (cloudflare/ai 436), with a status of 400
    (
        r"\A(?:The model has crashed|Failed to get response from provider\Z)",
        "internal_error",
    ),
)
"""What servers say with a code that tells less, or with none, and OpenAI's code for it."""
_RESET_FIELDS = (
    "retry_after",
    "retry_after_seconds",
    "resets_in_seconds",
    "reset_seconds",
)


def _read_reset(fields: JsonObject, headers: JsonObject) -> float | None:
    """Return what an error says of the time to wait, for want of a header.

    OpenRouter has the header of its provider inside (dirge-code/dirge 719); the fields
    are those of OmniRoute, of Codex's own server, and of CLIProxyAPI (its issue 4724).
    """
    values = [fields.get(name) for name in _RESET_FIELDS]
    values.append(headers.get("X-RateLimit-Reset"))
    for row in as_list(fields.get("details")):  # Google's, as "37s"
        delay = as_text(as_mapping(row).get("retryDelay"))
        values.append(delay.removesuffix("s"))
    # DIAL, next to a server's own words (epam/statgpt-backend 199)
    words = as_text(fields.get("display_message"))
    values.append(wait_in_words(words[:_MAX_SEARCHED]))
    for value in values:
        reset = as_seconds(value)
        if reset is not None:
            return reset
    return None


_AROUND_ERRORS = ("upstream_error", "ResponseMetadata", "Error")
"""What else is around an error, at claude-code-hub (its issue 518) and Volcengine."""
_KEYS_OF_WORDS = (
    "message",
    "detail",
    "errorMessage",
    "error_message",
    "Message",
    "msg",
)
"""Where the words are. SAP's hub, and a gateway with `error_message` (anomalyco/opencode
20005), have the API's body in them; AWS begins with a capital."""
_REFUSED_BY_OPENROUTER = "Invalid Responses API request"
"""What OpenRouter says of a request that does not fit its types, with the code of a
policy (openai/codex 18307, microsoft/agent-framework 3795)."""
_OF_A_POLICY = re.compile(
    r"\binvalid prompt\b|flagged|polic(y|ies)|violat|safety|limited access",
    re.IGNORECASE,
)
"""What OpenAI says where that code means one."""
NUMBER_AFTER_DOT = re.compile(r"\.(\d{1,6})(?=\.|\Z)")
"""LM Studio joins the keys of a place with dots; so do OpenClaw and others, in words."""


def _innermost_error(wire: object) -> object:
    """Return the fields or the words of an error, wherever a server puts them.

    Of what Zod found, the list.
    """
    # Bodies and the live event nest the error, the documented event is flat. FastAPI
    # puts what a server raised in `detail`.
    while True:
        if isinstance(wire, list):  # Google's gateways
            wire = wire[0] if wire else None
        if not isinstance(wire, Mapping):
            return wire
        inner = wire.get("error") or wire.get("detail") or wire.get("errors")
        for issues in (inner, wire.get("issues")):
            if _are_issues(issues):
                return issues
        if isinstance(inner, list) and not wire.get("detail"):
            inner = next(iter(inner), None)  # Cloudflare's, in `error` or in `errors`
        for key in () if wire.get("message") else _AROUND_ERRORS:
            inner = inner or as_mapping(wire.get(key))
        if not isinstance(inner, Mapping) or not inner:
            return wire
        wire = inner


def _error_fields(wire: object) -> JsonObject:
    """Return the fields of an error under the names that most servers give them."""
    error = _innermost_error(wire)
    if _are_issues(error):  # of what Zod found, the first counts
        issue = as_list(error)[0]
        keys = [*_find_place(issue, ())]
        code = None
        if issue.get("code") == "unrecognized_keys":
            code = "unknown_parameter"
            keys += as_list(issue.get("keys"))[:1]
        place = _join_place(keys)
        return {"message": issue.get("message"), "code": code, "param": place}
    if isinstance(error, str):
        return {"message": error}
    fields = as_mapping(error)
    # FastAPI, and so vLLM, lists what does not fit its types. A `loc` is like
    # `["body", "input", "list[Item]", 3, "Item", "id"]`: each form that a value could
    # have has a row, and names of types are in between. The most exact row counts.
    if isinstance(fields.get("detail"), list):
        rows = [as_mapping(row) for row in fields["detail"]]
        exact = max(rows, key=lambda row: len(as_list(row.get("loc"))), default={})
        place = _join_place(as_list(exact.get("loc"))[1:])
        return {"message": exact.get("msg"), "param": place}
    fault = as_mapping(fields.get("fault"))
    if fault:  # Apigee
        code = value_at(fault, "detail", "errorcode")
        return {"message": fault.get("faultstring"), "code": code}
    # xAI: the code is next to the words. Servers in Java and of Node.js have the name of
    # the status there, and the words under their usual name.
    if isinstance(fields.get("error"), str) and not fields.get("message"):
        return {**fields, "message": fields["error"]}
    if isinstance(fields.get("message"), Mapping):
        # LiteLLM's guardrails; Mistral, of what does not fit its types
        inner = _error_fields(fields["message"])
        param = fields.get("param") or inner.get("param")
        return {**fields, "message": inner.get("message"), "param": param}
    # codex2api has the place next to its words; Databricks has another name for the code.
    place = value_at(fields, "details", "field")
    return {"param": place, "code": fields.get("error_code"), **fields}


def _read_error_word(value: object) -> str:
    """Return a word; LiteLLM has the text `None` for none."""
    word = as_text(value)
    return "" if word == "None" else word


_SAME_CODES = {
    # Copilot (github/copilot-cli 639, caozhiyuan/copilot-api 102), Together
    "model_not_supported": "model_not_found",
    "unsupported_api_for_model": "model_not_found",
    "model_not_available": "model_not_found",
    # Groq: gone, or for those who accepted its terms; GitHub
    "model_decommissioned": "model_not_found",
    "model_terms_required": "model_not_found",
    "unknown_model": "model_not_found",
    # new-api, `types/error.go`
    "insufficient_user_quota": "insufficient_quota",
    "pre_consume_token_quota_failed": "insufficient_quota",
    # Alibaba's DashScope, Volcengine's Ark (in their lists of error codes)
    "Arrearage": "insufficient_quota",
    "AccountOverdueError": "insufficient_quota",
    "AllocationQuota.FreeTierOnly": "insufficient_quota",
    "SetLimitExceeded": "insufficient_quota",
    "data_inspection_failed": CONTENT_FILTER,
    # OpenAI, in a stream, of a user whose access it has limited (anomalyco/opencode 15776)
    "cyber_policy_violation": "cyber_policy",
    # Groq, of a model that did not write the JSON it was asked for
    "json_validate_failed": "output_parse_failed",
    "NoCapacity": "server_is_overloaded",  # Azure, as a 429
    "no_capacity": "server_is_overloaded",  # in a stream (can1357/oh-my-pi 6503)
}
"""Codes of other servers, and OpenAI's for the same cause."""
_CODES_OF_ZHIPU = {
    "1113": "insufficient_quota",
    "1211": "model_not_found",
    "1261": "context_length_exceeded",
    "1301": CONTENT_FILTER,
    "1305": "server_is_overloaded",
    # Limits of a plan, of hours, a week or a month; a plan that has ended
    "1308": "usage_limit_reached",
    "1309": "usage_limit_reached",
    "1310": "usage_limit_reached",
}


_PATH_STEP = re.compile(r"\[\d+]|\.[a-z_\d]+")


def _are_issues(value: object) -> bool:
    """Say whether a value is what Zod, which servers of Node.js use, found in a body."""
    rows = as_list(value)
    return bool(rows) and all(
        isinstance(as_mapping(row).get("path"), list) for row in rows
    )


def _find_place(issue: JsonObject, outer: Sequence[object]) -> Sequence[object]:
    """Return the keys of the place that an issue names.

    If no form of several fits, each has issues of its own, and nobody knows which form
    was meant: then only the item or the tool is certain. Zod 3 names their places from
    the body on, Zod 4 from the place of the outer issue on.
    """
    # Each issue inside gets the keys: a server may list any number of both.
    place = [*outer, *as_list(issue.get("path"))][:_MAX_KEYS]
    forms = [(rows, place) for rows in as_list(issue.get("errors"))]
    for form in as_list(issue.get("unionErrors")):
        forms.append((as_mapping(form).get("issues"), []))
    for rows, begin in forms:
        for row in as_list(rows):
            inner = _find_place(as_mapping(row), begin)
            if len(inner) > len(place) and inner[0] in ("input", "tools"):
                return inner[:2]
    return place


_MAX_KEYS = 100
"""Of a place; those of a request have about ten."""


def _join_place(keys: Iterable[object]) -> str:
    """Return the path of a place, like `input[3].id`, without what is no name of it."""
    path = ""
    for key in keys:
        step = f"[{key}]" if isinstance(key, int) else f".{key}"
        if _PATH_STEP.fullmatch(step):
            path += step
    # One that begins with a number names no field of a request (LM Studio).
    return "" if path.startswith("[") else path.removeprefix(".")


def _inner_error(text: str) -> ApiError | None:
    """Return the error of a body inside of a text, None if there is none."""
    if text.startswith("["):  # LM Studio, OpenRouter: all of it is a list
        with suppress(ValueError):
            issues = load_json(text[:_MAX_INNER_BODY])
            if _are_issues(issues):
                return read_api_error({"error": issues})
    if _PRINTED_ROWS.match(text):
        rows: list[JsonObject] = []
        for row in islice(_PRINTED_ROW.finditer(text), _MAX_ROWS):
            place: list[object] = ["body"]
            for key in _PRINTED_KEY.findall(row[1]):
                place.append(int(key) if key.isdecimal() else key[1:-1])
            rows.append({"loc": place, "msg": row[2][1:-1]})
        return read_api_error({"detail": rows}) if rows else None
    begin = text.find("{", 0, _MAX_PREFIX)
    if begin < 0:
        return None
    printed = _PRINTED_BYTES.match(text[:_MAX_INNER_BODY], max(begin - 2, 0))
    if printed:
        with suppress(ValueError, SyntaxError):
            written = ast.literal_eval(printed[0]).decode("utf-8", errors="replace")
            text = text[:begin] + written
    try:
        body, _ = json.JSONDecoder().raw_decode(text[:_MAX_INNER_BODY], begin)
    except (ValueError, RecursionError):
        body = _read_printed(text[begin : begin + _MAX_PRINTED])
    told = _PRINTED_STATUS.search(text[:begin])
    fields = as_mapping(body)
    inner = fields.get("error")
    # The package for Go prints the error without a body; FastAPI has another name; xAI has
    # its code next to its words.
    is_bare = inner is None and (told or fields.get("detail"))
    has_code = isinstance(inner, str) and as_text(fields.get("code"))
    if is_bare or has_code:
        inner = fields
    if not isinstance(inner, Mapping) or is_too_deep(body):
        return None
    error = read_api_error(inner)
    if not error.message:
        return None
    if told and not error.code:
        return error._replace(code=told[1])
    if told and told[1] == "400" and not error.type:  # the code may be a number (Z.AI)
        return error._replace(type="invalid_request_error")
    return error


CODES_FOR_ANYTHING = (
    "",
    "server_error",
    "internal_error",
    "api_error",
    "upstream_error",
)
"""What servers have for whatever was raised in them; the words may say what it was."""


def _read_printed(text: str) -> object:
    """Return the body that a text of Python's begins with, None if there is none.

    Servers written with OpenAI's package pass on its exception: "Error code: 400 -
    {'error': {'message': ...}}" (Oaklight/argo-proxy 91).
    """
    if not _PRINTED_BODY.match(text):
        return None
    for end in islice(_ENDS_OF_BODY.finditer(text), _MAX_ENDS):
        # A list as a key is a TypeError.
        with suppress(ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return ast.literal_eval(text[: end.end()])
    return None


_PRINTED_STATUS = re.compile(
    r"(?:\bError code: |\bstatus code:? |\": )([45]\d\d)\b[\w ,:'-]{0,40}\Z"
)
"""How OpenAI's packages for Python and Go begin the text of a refusal, before its body,
and gateways that say 502 of each (continuedev/continue 13261).

Whatever a gateway writes may be in front of it.
"""
_STATUS_AND_WORDS = re.compile(
    r"(?:[A-Za-z][\w ]{0,60}: )?(?:Error code: ([45]\d{2})(?: - (?=\S)(.*)|\Z)"
    r"|\[([45]\d{2}|1\d{3}|invalid_\w{4,40})\] (?=\S)(.*))",
    re.DOTALL,
)
"""What the one for Python prints since it leaves out the body, and OpenCode's gateway,
also with a code (anomalyco/opencode 50818, 44384, 48864).

Without a body it counts at the beginning alone: later words may quote a chat.
"""
_PRINTED_ROWS = re.compile(r"\d{1,6} validation errors?:\n")
"""FastAPI's exception as a text, which vLLM and SGLang answer. Each of its rows repeats
a part of the chat, the first one all of it (vllm-project/vllm 45273)."""
_PRINTED_ROW = re.compile(
    # No text of the chat begins a line: Python prints its line ends as `\n`.
    r"^ {2}\{'type': '\w{1,64}', 'loc': \('body'"
    r"((?:, (?:'[^'\n]{0,9999}'|\"[^\"\n]{0,9999}\"|\d{1,6})){1,20},?)\), "
    r"'msg': ('[^'\n]{0,999}'|\"[^\"\n]{0,999}\")",
    re.MULTILINE,
)
_MAX_ROWS = 500
"""One item has some 120: each type that it could have, with each field it lacks."""
_PRINTED_KEY = re.compile(r"'[^']*'|\"[^\"]*\"|\d+")
_MAX_PREFIX = 1000
_MAX_INNER_BODY = 100_000
"""Characters of a text in which a body is looked for."""
_MAX_PRINTED = 4000
_PRINTED_BODY = re.compile(r"\{'error': ?\{")
_PRINTED_BYTES = re.compile(r"b'(?:[^'\\\n]|\\.)*+'")
"""How LiteLLM passes on a body of Vertex AI (BerriAI/litellm 18442)."""
_ENDS_OF_BODY = re.compile(r"\}\s*\}")
_MAX_ENDS = 3
"""What looks like the end may be in the message."""
