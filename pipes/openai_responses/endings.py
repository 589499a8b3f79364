"""How a run can end, and the message for each ending.

`{code}`, `{param}` and `{status}` are words of the API, `{model}` is the id that was
asked for. No text of the server is shown, because it may quote a key or a prompt.

The messages are for whoever chats. Which setting can be the cause is in FAULTS: only a
shell knows what an administrator calls it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal, NamedTuple, Self

from openai_responses.errors import (
    CONTENT_FILTER,
    NO_FAULT,
    UNREAD_REASONING,
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    Failure,
    InvalidRequest,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    SafetyNotice,
    SettingFault,
    TimedOut,
    UnreadableAnswer,
)
from openai_responses.redaction import redact, redact_beginning

_UNUSABLE_IMAGE = (
    "The model's server could not use an image in this chat{code}. Remove it, or "
    "attach it again as PNG, JPEG, WEBP or GIF of a moderate size."
)
_UNUSABLE_FILE = (
    "The model's server could not use a file in this chat{code}. Remove it, or attach "
    "it again as a PDF or as text."
)
_POLICY = (
    "OpenAI stopped this answer under its usage policies{code}. Rephrase the question."
)
_WRONG_KEY = "OpenAI does not accept the API key."
_NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to check its billing."
)
_OVERLOADED = "OpenAI is overloaded. Try again in a moment."
_SERVER_ERROR = "OpenAI reported an internal error. Try again in a moment."
_WRONG_ORGANIZATION = "The API key does not belong to the organization in the settings."
_RATE_LIMIT = (
    "This API key has reached OpenAI's rate limit. Wait a minute, then try again."
)
_TOO_LARGE_CHAT = (
    "This chat is too large for the model's server. Start a new chat, or leave out large "
    "files and images."
)
_ARRIVED = "Everything received so far is kept"
_CONTINUE = f"{_ARRIVED}; regenerate the answer, or ask the model to continue."


MISALIGNMENT = "misalignment_policy_violation"
"""OpenAI's monitoring stopped what a model was about to do: nothing of it may go on,
neither by another attempt nor elsewhere nor without its reasoning."""
FLEX_UNAVAILABLE = "flex_unavailable"
REQUEST_TOO_LARGE = "request_above_rate_limit"
"""Our word for a `rate_limit_exceeded` that no wait removes: the request alone is larger
than the limit of a minute (recorded in a stream that tells of a limit of 1)."""
WRONG_KEY = "invalid_api_key"
MISSING_SCOPE = "missing_scope"
UNSUPPORTED_COUNTRY = "unsupported_country_region_territory"
UNVERIFIED = "unverified_organization"
"""Our word: OpenAI says so with a code that other causes have, too, or with none."""
DENIED_MODEL = "denied_model"
"""Our word for a 401 or 403 whose `param` is the model."""
FIREWALL_PAGE = "firewall_page"
GATEWAY_PAGE = "gateway_page"
"""Our words for a page that came in place of the API's answer."""
NO_RESPONSES_API = "no_responses_api"
"""Our word for a server that answers at every address, and says so with a status of 200."""
REFUSED_SAFEGUARD = "refused_safeguard"
"""Our word for a server that refuses one of `STRICT_LACKS`."""
STRICT_LACKS = ("safety_identifier", "prompt_cache_retention")
"""Safeguards that are never left out after a refusal, and are not in strict requests."""
LOADING_MODEL = "loading_model"
"""Our word for what llama.cpp says until it can answer."""
REJECTED = "rejected"
"""Our word for a stream that says that the request cannot be answered."""

SAFETY_STOPS = frozenset(
    {
        MISALIGNMENT,
        "cyber_policy",
        "bio_policy",
        "invalid_prompt",
        "image_content_policy_violation",
        "content_policy_violation",
        "moderation_blocked",
        CONTENT_FILTER,
    }
)
"""Codes of refusals for what a chat is about. No other server is asked instead."""

_POLICY_SUFFIXES = ("_policy", "_policy_violation")
"""Ends of such codes, also of those that nobody listed."""

FINAL_CODES = SAFETY_STOPS | {
    FLEX_UNAVAILABLE,
    REQUEST_TOO_LARGE,
    WRONG_KEY,
    NO_RESPONSES_API,
}
"""Codes of refusals that neither a second attempt nor a repair of the request removes."""

NO_CREDIT = "insufficient_quota"
NO_CREDIT_CODES = frozenset(
    {
        NO_CREDIT,
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
        "billing_not_active",
        "billing_hard_limit_reached",
        # LiteLLM's type, also of a 400 (BerriAI/litellm 4606, 37000)
        "budget_exceeded",
        # Codex's own server: a limit of hours or days
        "usage_limit_reached",
        "usage_not_included",
        "exceeded_current_quota_error",  # Moonshot
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of such codes, also of those that nobody listed."""

_FILE_CODES = frozenset({"unsupported_file"})
IMAGE_CODES = _FILE_CODES | frozenset(
    {
        "invalid_image",
        "invalid_image_format",
        "invalid_base64_image",
        "invalid_image_url",
        "image_too_large",
        "image_too_small",
        "image_parse_error",
        "invalid_image_mode",
        "image_file_too_large",
        "unsupported_image_media_type",
        "empty_image_file",
        "failed_to_download_image",
        "image_file_not_found",
    }
)
"""Codes of refusals of an image, or of another file in the chat."""

_UNREADABLE_MODEL = (
    "The model wrote something that its server could not read{code}. Try again."
)
_NO_RESPONSES_API = "There is no Responses API at the address of the model's server."
_UNREACHABLE = "The model's server at {server} cannot be reached: {reason}. Try again."

MESSAGES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer reached its length limit. Raise the maximum "
        "number of output tokens, or ask the model to continue.",
        "context_length_exceeded": "The model's context is full, which ended the answer. "
        "Ask the model to continue; if that is refused, start a new chat, or choose a "
        "model with a larger context.",
        "content_filter": "OpenAI's content filter interrupted the answer. Rephrase the "
        "question.",
        "max_messages": "The answer reached the limit of messages per answer. Ask the "
        "model to continue.",
        "cancelled": "This answer was canceled on OpenAI's side. Regenerate it, or ask "
        "the model to continue.",
        "steered": "A newer message replaced this request. Ask again.",
        "no_answer": "The model ended without an answer. Regenerate it, or rephrase the "
        "question.",
        "only_calls": "The model requested more tool calls than one answer may make, but "
        "gave no answer. Ask it to answer with what it has.",
        "used_up": "The model has used up the time or the tokens of this answer, but gave "
        "no answer. Ask it to answer with what it has.",
        "only_tokens": "The model spent all tokens of this answer on reasoning. Raise "
        "the maximum number of output tokens, or choose a lower effort.",
        "": "The answer is incomplete{code}. Ask the model to continue.",
    },
    "failed": {
        "server_error": _SERVER_ERROR,
        "rate_limit_exceeded": _RATE_LIMIT,
        "slow_down": _RATE_LIMIT,
        **dict.fromkeys(sorted(NO_CREDIT_CODES), _NO_CREDIT),
        "too_many_requests": _RATE_LIMIT,
        "rate_limit_error": _RATE_LIMIT,
        "server_is_overloaded": _OVERLOADED,
        "service_unavailable_error": _OVERLOADED,
        "overloaded_error": _OVERLOADED,
        "internal_error": _SERVER_ERROR,
        "upstream_error": _SERVER_ERROR,
        "timeout": "OpenAI took too long to answer. Try again in a moment.",
        "context_length_exceeded": "This chat is longer than the model can read. "
        "Start a new chat, or choose a model with a larger context.",
        "invalid_prompt": _POLICY,
        "bio_policy": _POLICY,
        "image_content_policy_violation": _POLICY,
        "moderation_blocked": "OpenAI's safety system did not allow an image{code}. "
        "Rephrase the question, or remove the image.",
        MISALIGNMENT: "OpenAI's safety monitoring stopped this answer{code}, because it "
        "may do something nobody asked for. Its last tool calls were not run; earlier "
        "actions are not undone. Start a new chat to continue.",
        "cyber_policy": "OpenAI declined to answer, because the answer could help attack "
        "computers{code}. Rephrase the question, or start a new chat. For security work, "
        "an administrator can apply to OpenAI for access.",
        "content_policy_violation": "OpenAI's content filter stopped this answer{code}. "
        "Rephrase the question, or start a new chat.",
        CONTENT_FILTER: "OpenAI's content filter rejected this chat{code}, so it was "
        "not answered. Rephrase the question, or start a new chat.",
        REQUEST_TOO_LARGE: "This chat is larger than the key's rate limit allows for "
        "one request, so waiting does not help. Start a new chat, leave out large "
        "files, or ask an administrator to raise the account's usage tier.",
        FLEX_UNAVAILABLE: "OpenAI has no flex capacity at the moment. Try again later, "
        "or choose the standard service tier, which costs twice as much.",
        "data_residency_mismatch": "This model is not available in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "tool_use_failed": _UNREADABLE_MODEL,
        "output_parse_failed": _UNREADABLE_MODEL,
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(sorted(IMAGE_CODES), _UNUSABLE_IMAGE),
        **dict.fromkeys(sorted(_FILE_CODES), _UNUSABLE_FILE),
        REJECTED: "The model's server rejected the request{code}{param}. Sending it "
        "again does not help; an administrator can find the details in the log.",
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, has been shut down, or is "
        "not available to this API key. Choose another model.",
        UNREAD_REASONING: "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        UNVERIFIED: "OpenAI does this only for verified organizations. An administrator "
        "has to verify the organization in its settings at OpenAI, or choose another "
        "model.",
        UNSUPPORTED_COUNTRY: "OpenAI does not answer requests from the country or region "
        "where this server is. The API key is not the cause.",
        MISSING_SCOPE: "The API key is valid, but has no permission for this request: "
        "a scope, or a role in its project, is missing.",
        "mismatched_organization": _WRONG_ORGANIZATION,
        "invalid_organization": _WRONG_ORGANIZATION,
        "mismatched_project": "The API key does not belong to the project in the "
        "settings.",
        "ip_not_authorized": "OpenAI accepts requests for this account only from listed "
        "IP addresses, and this server's address is not among them. An administrator "
        "has to add it to the list at OpenAI.",
        "account_deactivated": "OpenAI has deactivated the account of the API key.",
        DENIED_MODEL: "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key.",
        FIREWALL_PAGE: "A firewall or proxy in front of the model's server did not let "
        "this request through (HTTP {status}). The API key is not the cause.",
        GATEWAY_PAGE: "A gateway in front of the model's server answered in its place "
        "(HTTP {status}), so the server may be down. Try again in a moment.",
        "3": "The model's server redirects requests (HTTP {status}). Redirects are not "
        "followed, because they would send the key to another address.",
        WRONG_KEY: _WRONG_KEY,
        "401": _WRONG_KEY,
        "402": _NO_CREDIT,
        "403": "The model's server does not allow this request: HTTP {status}{code}. An "
        "administrator can find the reason in the log.",
        REFUSED_SAFEGUARD: "The model's server rejected the request{param}, which is a "
        "safeguard that each request has.",
        NO_RESPONSES_API: _NO_RESPONSES_API,
        "404": _NO_RESPONSES_API,
        "405": _NO_RESPONSES_API,
        "407": "The HTTP proxy rejected the request.",
        "408": "The model's server gave up, because the request took too long (HTTP "
        "{status}). Try again; if that does not help, leave out large files.",
        "409": "This request conflicts with something else that the model's server is "
        "doing (HTTP {status}). Try again in a moment.",
        "413": _TOO_LARGE_CHAT,
        "request_too_large": _TOO_LARGE_CHAT,  # Anthropic, Azure
        "421": "The address of the model's server leads to a server that does not serve "
        "it (HTTP {status}).",
        "429": _RATE_LIMIT,
        "451": "The model's server may not answer this request for legal reasons (HTTP "
        "{status}). Rephrase the question, or choose another model.",
        LOADING_MODEL: "The model's server is still loading the model. Try again in a "
        "minute.",
        "503": _OVERLOADED,
        "529": _OVERLOADED,
        "5": "OpenAI reported an internal error (HTTP {status}). Try again in a moment.",
        "": "The model's server rejected the request with HTTP {status}{code}{param}. "
        "An administrator can find the details in the log.",
    },
    "unreachable": {
        "": _UNREACHABLE,
        "no_way": _UNREACHABLE,
        "proxy": "The HTTP proxy at {server} cannot be reached: {reason}.",
        "environment_proxy": "The HTTP proxy at {server}, which this server's "
        "environment names, cannot be reached: {reason}. An administrator has to check "
        "that environment.",
        "tunnel": "The HTTP proxy does not connect to {server} ({reason}).",
        "certificate": "The certificate of {server} is not trusted{reason}.",
        "tls": "The model's server at {server} does not use TLS, which its address asks "
        "for with https.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was complete. "
        + _CONTINUE,
        "lost": "The connection to the model broke, and the rest of the answer could "
        "not be fetched. " + _CONTINUE,
    },
    "unreadable": {
        "": "The model's server did not answer like the Responses API.",
        "chat_completions": "The model's server answered like the Chat Completions API, "
        "not like the Responses API.",
        "compressed": "The model's server sent a compressed answer, which cannot be "
        "read.",
        "queued": "The model's server has only queued the request, and sent no answer. "
        "Try again later, or choose another model.",
    },
    "malformed": {
        "": "The model's server sent data that cannot be read. " + _CONTINUE,
        "too_large": "The model's server sent more data than is accepted for one "
        "answer. " + _CONTINUE,
    },
    "first_event_timeout": {
        "": "The model's server accepted the request, but sent nothing for too long. "
        "Try again, perhaps with a lower effort.",
    },
    "idle_timeout": {
        "": "The model's server stopped sending in the middle of the answer. "
        + _CONTINUE,
    },
    "total_timeout": {
        "": "The answer took longer than the administrator allows. "
        f"{_ARRIVED}; ask the model to continue, or choose a lower effort.",
    },
}
"""The messages, by kind of ending, then by code or HTTP status. "" stands for all other
codes, "3" for 300 to 399, "5" for all other statuses from 500 up. Other kinds use their
exception's text."""

_WRONG_ADDRESS = SettingFault(("base_url",))

FAULTS: Mapping[tuple[str, str], SettingFault] = {
    ("refused", "3"): _WRONG_ADDRESS,
    ("refused", WRONG_KEY): SettingFault(("api_key",)),
    ("refused", "401"): SettingFault(("api_key",)),
    ("refused", MISSING_SCOPE): SettingFault(("api_key",)),
    ("refused", "account_deactivated"): SettingFault(("api_key",)),
    ("refused", "mismatched_organization"): SettingFault(("organization", "api_key")),
    ("refused", "invalid_organization"): SettingFault(("organization", "api_key")),
    ("refused", "mismatched_project"): SettingFault(("project", "api_key")),
    ("refused", UNSUPPORTED_COUNTRY): SettingFault(("proxy",)),
    ("refused", "ip_not_authorized"): SettingFault(("proxy",), "possible"),
    ("refused", FIREWALL_PAGE): SettingFault(("base_url", "proxy"), "possible"),
    ("refused", GATEWAY_PAGE): SettingFault(("base_url",), "possible"),
    ("refused", "421"): SettingFault(("base_url", "proxy")),
    ("refused", REFUSED_SAFEGUARD): SettingFault(("compatibility",)),
    ("refused", NO_RESPONSES_API): _WRONG_ADDRESS,
    ("refused", "404"): _WRONG_ADDRESS,
    ("refused", "405"): _WRONG_ADDRESS,
    ("refused", "407"): SettingFault(("proxy",)),
    ("unreachable", ""): SettingFault(("base_url",), "possible"),
    # A company's network may let nothing out but through its proxy.
    ("unreachable", "no_way"): SettingFault(("base_url", "proxy"), "possible"),
    ("unreachable", "proxy"): SettingFault(("proxy",)),
    ("unreachable", "tunnel"): SettingFault(("proxy", "base_url")),
    ("unreachable", "certificate"): SettingFault(
        ("base_url", "ca_bundle", "verify_ssl")
    ),
    ("unreachable", "tls"): _WRONG_ADDRESS,
    ("unreadable", ""): _WRONG_ADDRESS,
    ("unreadable", "chat_completions"): _WRONG_ADDRESS,
    ("unreadable", "compressed"): SettingFault(("base_url", "extra_headers")),
}
"""The settings that can be the cause, by kind of ending and word of MESSAGES."""


_CONTINUED_KINDS = frozenset({"cut", "malformed", "idle_timeout", "total_timeout"})
_NOT_CONTINUED = frozenset(
    {"content_filter", "steered", "no_answer", "only_calls", "only_tokens", "used_up"}
)
"""Reasons of an incomplete answer after which there is nothing to continue."""


class Ending(NamedTuple):
    """How a run ended; `code` is the API's word for the cause.

    `kind` is "completed" or "incomplete", "failed" (the response), "error" (its event),
    "refused" (its status), "invalid" (nothing was sent), "unreachable", "unreadable",
    "malformed", "cut", or the kind of a TimedOut.
    """

    kind: str
    code: str | None = None
    message: str = ""
    fault: SettingFault = NO_FAULT
    """The settings that can be the cause."""

    @property
    def is_failure(self) -> bool:
        """Say whether the answer is not what the user asked for."""
        return self.kind != "completed"

    @property
    def can_continue(self) -> bool:
        """Say whether the model can continue an answer of which text has arrived.

        Then its message says so.
        """
        if self.kind == "incomplete":
            return self.code not in _NOT_CONTINUED
        return self.kind in _CONTINUED_KINDS

    def without_text(self) -> Self:
        """Return the ending of an answer of which nothing arrived."""
        before, _, advice = self.message.partition(_ARRIVED)
        if not advice:
            return self
        return self._replace(message=f"{before}Try again.")


def _ending_without_code(kind: str, word: str = "") -> Ending:
    """Return the ending of a kind whose cause has no code; `word` finds its message."""
    fault = FAULTS.get((kind, word), NO_FAULT)
    return Ending(kind, message=MESSAGES[kind][word], fault=fault)


COMPLETED = Ending("completed")
CUT = _ending_without_code("cut")
UNREADABLE = _ending_without_code("unreadable")
CHAT_COMPLETIONS = _ending_without_code("unreadable", "chat_completions")
QUEUED = _ending_without_code("unreadable", "queued")
COMPRESSED = _ending_without_code("unreadable", "compressed")

ASKED_MODEL = "this model"
"""Stands in a message for the id that was asked for, until a run puts it in."""

_WORD_OF_API = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")
_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def ending_of_incomplete(reason: str | None) -> Ending:
    """Return the ending of a `response.incomplete`."""
    code = api_word(_SAME_REASONS.get(reason or "", reason))
    messages = MESSAGES["incomplete"]
    message = messages.get(code or "", messages[""])
    return Ending("incomplete", code, message.format(code=_fill_in(code)))


_SAME_REASONS = {
    # Volcengine's Ark and OGX; gateways to Anthropic and Azure
    "length": "max_output_tokens",
    "max_tokens": "max_output_tokens",
}
"""Reasons of other servers, and OpenAI's for the same."""


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    """Return the ending of a `response.failed` or an `error` event."""
    if error.status:
        return ending_of_refusal(error.status, error)._replace(kind=kind)
    code = _find_code(error)
    word = _message_word(_list_failure_words(error))
    form = _MESSAGES_BY_CODE[word] if word else MESSAGES["failed"][""]
    message = form.format(
        code=_fill_in(code),
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=200,
    )
    return Ending(kind, code, message, FAULTS.get(("refused", word), NO_FAULT))


def ending_of_refusal(status: int, error: ApiError) -> Ending:
    """Return the ending of an HTTP status of 300 or more."""
    word = _message_word(_list_refusal_words(status, error))
    shown_code = ""
    # A message for a code says what the code means.
    if error.code != str(status) and (not word or word.isdecimal()):
        shown_code = _fill_in(error.code)
    message = _MESSAGES_BY_CODE[word].format(
        code=shown_code,
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=status,
    )
    fault = FAULTS.get(("refused", word), NO_FAULT)
    return Ending("refused", _find_code(error), message, fault)


_OWN_MESSAGE = "-"
"""In the place of a word of MESSAGES: the exception's own text is shown."""
_EXCEPTIONS: Mapping[type[ResponsesError], tuple[str, str]] = {
    MalformedEvent: ("malformed", ""),
    AnswerTooLarge: ("malformed", "too_large"),
    ResponseLost: ("cut", "lost"),
    UnreadableAnswer: ("unreadable", _OWN_MESSAGE),
    InvalidRequest: ("invalid", _OWN_MESSAGE),
}
"""Kind and word of the message for each exception and its subclasses."""


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return the ending of a run that `error` stopped, after its first event or not."""
    if isinstance(error, TimedOut):
        return _ending_without_code(error.kind)
    if isinstance(error, ApiRefused):
        return Ending("refused", _find_code(error.error), str(error), error.fault)
    kind, word = ("cut", "") if has_begun else ("unreachable", _OWN_MESSAGE)
    for ancestor in type(error).__mro__:  # shells have errors of their own
        if ancestor in _EXCEPTIONS:
            kind, word = _EXCEPTIONS[ancestor]
            break
    if word == _OWN_MESSAGE:
        return Ending(kind, message=str(error), fault=error.fault)
    return _ending_without_code(kind, word)


def _find_code(error: ApiError) -> str | None:
    """Return the word of the API that says most about the cause, to be shown."""
    return api_word(_find_certain_cause(error) or error.code or error.type)


def is_final(error: ApiError) -> bool:
    """Say whether neither a second attempt nor a repair of the request helps."""
    return any(code in FINAL_CODES for code in _list_codes(error))


_MAX_NOTICE = 600
_MARKUP = str.maketrans({"<": "(", ">": ")", "[": "(", "]": ")", "`": "'", "|": "/"})
"""What begins links, images, HTML and code of Markdown, and what replaces it."""


def notice_text(notice: SafetyNotice, secrets: Iterable[str]) -> str:
    """Return what OpenAI says about an answer that it stopped, as words to show.

    Redacted, in one line, of bounded length, and without what renders or links.
    """
    hide = partial(redact, secrets=secrets)
    parts = [
        ("The model's server explains", notice.explanation),
        ("It advises", notice.advice),
    ]
    quotes: list[str] = []
    for lead, text in parts:
        if not text:
            continue
        line = " ".join(redact_beginning(text, 2 * _MAX_NOTICE, hide).split())
        printable = "".join(letter for letter in line if letter.isprintable())
        plain = printable.translate(_MARKUP).replace("://", ": //")
        if len(plain) > _MAX_NOTICE:
            plain = f"{plain[:_MAX_NOTICE]}…"
        quotes.append(f"{lead}: “{plain}”")
    return " ".join(quotes)


_MESSAGES_BY_CODE = {**MESSAGES["failed"], **MESSAGES["refused"]}
"""A code means the same in a refusal and in a stream."""
_REJECTED_CODES = (
    "invalid_request",
    "invalid_request_error",
    "invalid_value",
    "invalid_type",
    "unknown_parameter",
    "unsupported_parameter",
    "unsupported_value",
    "missing_required_parameter",
)
"""Codes and types that say that the request itself cannot be answered."""


def _list_failure_words(error: ApiError) -> list[str]:
    """Return the words that a message can be found by without a status."""
    words = [*_list_codes(error), _find_attachment(error)]
    if error.is_any_of(_REJECTED_CODES):
        words.append(REJECTED)
    return words


_UNCERTAIN_STATUSES = (403, 429)
"""A page with one of these comes from a firewall, which knows no key; those from 500 on
come from a gateway."""


def _list_refusal_words(status: int, error: ApiError) -> list[str]:
    """Return the words that a message can be found by, the most certain first."""
    if status < 400:
        return ["3"]
    own_word = str(status)
    if error.is_page:
        page = FIREWALL_PAGE if status < 500 else GATEWAY_PAGE
        is_uncertain = status in _UNCERTAIN_STATUSES or status >= 500
        return [page] if is_uncertain else [own_word, page]
    codes = [code for code in _list_codes(error) if code != own_word]
    if status in (401, 403) and error.param == "model":
        # LiteLLM: type `key_model_access_denied`, and others for teams and users
        # (BerriAI/litellm 39660).
        codes.append(DENIED_MODEL)
    if status == 401:
        # Only what is about keys, or is certain: a type like `server_error` tells nothing.
        about_keys = {error.code, _find_certain_cause(error), *_ABOUT_KEYS}
        return [*(code for code in codes if code in about_keys), own_word]
    words = [*codes, _find_attachment(error)]
    if status in (400, 422) and error.param in STRICT_LACKS:
        words.append(REFUSED_SAFEGUARD)
    if status == 404:
        # Gateways send no code: "The model `x` does not exist"; Azure: "The API
        # deployment for this resource does not exist".
        if _ABOUT_A_MODEL.search(error.message):
            words.append("model_not_found")
        if not is_about_address(error):
            own_word = ""
    words.append(own_word)
    if status >= 500:
        words.append("5")
    return words


_ABOUT_KEYS = (MISSING_SCOPE, DENIED_MODEL, UNREAD_REASONING, *NO_CREDIT_CODES)
_UNKNOWN_ADDRESS = "Invalid URL"
"""How OpenAI's 404 for an unknown path begins; that of an unknown response has the same
type and names no place, either."""


def is_about_address(error: ApiError) -> bool:
    """Say whether a 404 may mean that there is no Responses API."""
    if error.param or error.names_a_place:
        return False
    is_of_the_api = error.type == "invalid_request_error"
    return not is_of_the_api or error.message.startswith(_UNKNOWN_ADDRESS)


def has_no_credit(error: ApiError) -> bool:
    """Say whether an account is empty, which no wait fills."""
    code = error.code or ""
    is_known = code.endswith(_NO_CREDIT_SUFFIXES) or error.is_any_of(NO_CREDIT_CODES)
    return is_known or _find_certain_cause(error) == NO_CREDIT


def names_lasting_cause(error: ApiError) -> bool:
    """Say whether a stream says in words alone why each request would fail."""
    word = _message_word(_list_failure_words(error))
    return word in ("context_length_exceeded", "model_not_found")


def says_overloaded(error: ApiError) -> bool:
    """Say whether a stream says that its model is overloaded, whatever type it names."""
    return _message_word(_list_failure_words(error)) == "server_is_overloaded"


def is_too_long(status: int, error: ApiError) -> bool:
    """Say whether a refusal says that the words of a chat are too many for the model.

    Too many items have the same message, and become fewer as words.
    """
    if error.code == "array_above_max_length":
        return False
    word = _message_word(_list_refusal_words(status, error))
    return word == "context_length_exceeded"


def has_known_cause(status: int, error: ApiError) -> bool:
    """Say whether a refusal has a message that says more than its status."""
    word = _message_word(_list_refusal_words(status, error))
    return word not in ("", str(status), "5")


def names_model(status: int, error: ApiError) -> bool:
    """Say whether a refusal says that the model is not there, or is not for this key.

    Below 400, `status` is that of a stream with an error.
    """
    status = status if status >= 400 else error.status
    words = _list_failure_words(error)
    if status:
        words = _list_refusal_words(status, error)
    word = _message_word(words)
    return word in ("model_not_found", DENIED_MODEL, UNVERIFIED)


_ATTACHMENT = re.compile(
    r"input\[\d{1,6}\]\.(?:content|output)\[\d{1,6}\]"
    r"\.(?:(?P<image>image_url)|file_data|file_url|filename)(?:\.\w{1,64})?"
)
"""The `param` of a refused image or file: only such parts have these fields."""
_UNKNOWN_FIELD_CODES = ("unknown_parameter", "unsupported_parameter")


def _find_attachment(error: ApiError) -> str:
    """Return the code for the kind of attachment that `param` names; empty for none."""
    match = _ATTACHMENT.fullmatch(error.param or "")
    if match is None or error.is_any_of(_UNKNOWN_FIELD_CODES):
        return ""
    return "invalid_image" if match["image"] else "unsupported_file"


def _message_word(words: Iterable[str]) -> str:
    """Return the first word that has a message of its own, "" if none has."""
    for word in words:
        if word and word in _MESSAGES_BY_CODE:
            return word
    return ""


_BUSY = frozenset({"rate_limit_exceeded", "slow_down", "too_many_requests"})
"""Codes of a rate limit."""


def failure_status(failure: Failure) -> str:
    """Return the status line before the request is sent again."""
    causes = {
        None: "did not answer",
        200: "reported an error",
        429: "is busy with this key's requests",
    }
    status = failure.status
    if status == 200:  # in a stream, only the error says more
        is_busy = failure.error.is_any_of(_BUSY)
        status = 429 if is_busy else failure.error.status or status
    cause = causes.get(status, f"has trouble (HTTP {status})")
    return f"The model's server {cause}."


_PHRASES = (
    (r"\bmissing scopes?:|insufficient permissions for this operation", MISSING_SCOPE),
    (r"country, region, or territory not supported", UNSUPPORTED_COUNTRY),
    (r"\borganization must be verified to", UNVERIFIED),
    (
        # LiteLLM's `ContextWindowExceededError`; of more than 16,384 items, or of a text
        # above 10,485,760 characters: "Invalid 'input': array too long".
        r"context (size|window|length)|ContextWindow"
        # Z.AI, Anthropic, Ollama, Bedrock; xAI, vLLM; Google; Kimi; Copilot; TGI.
        r"|(prompt|input) (is )?too long|maximum (prompt|model|input) length"
        r"|exceeds the maximum number of tokens|exceeded model token limit"
        r"|prompt token count of \d+ exceeds|`inputs` tokens \+ `max_new_tokens` must"
        # Anthropic, of input and output together; DashScope; TGI.
        r"|exceeds? context limit|range of input length should be"
        r"|`inputs` must have less than"
        # Volcengine; Cohere.
        r"|exceed max message tokens|too many tokens: size limit exceeded"
        r"|'input(\S*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (r"\bmodel\b.{0,200}(does not exist|not found)|invalid model", "model_not_found"),
    (
        # Snowflake, GitHub; Cloudflare; Azure; Codex's own server.
        r"\bunknown model\b|\bno such model\b|does not work with the specified model"
        r"|model is not supported when using Codex"
        # DashScope; OpenRouter.
        r"|\bmodel [`'\"]?[\w./:-]{1,100}[`'\"]? is not supported\.?\Z"
        r"|\bunsupported model\b|is not a valid model ID\b",
        "model_not_found",
    ),
    (
        # OpenRouter; new-api; a model that only has another API, at OpenAI, Bedrock,
        # Copilot and Ollama.
        r"no endpoints found for|no available channel for model"
        r"|not in v1/responses|support the '/v1/responses' API"
        r"|not accessible via the /responses|does not support chat\b"
        # Bedrock
        r"|model identifier is invalid|with on-demand throughput isn.t supported"
        # xAI, of a model that only draws.
        r"|is an image model and is therefore not available"
        # NVIDIA, which names a model's server and the account in place of the model.
        r"|\bhas reached its end of life\b|\AFunction '[\w-]+': Not found for account",
        "model_not_found",
    ),
    (
        # DeepSeek, Z.AI and Kimi; Anthropic; xAI, with a status of 403 or 429.
        r"insufficient (balance|credits|funds)|credit balance is too low"
        r"|doesn't have any credits|used all available credits"
        # Fireworks, with a status of 412; Cloudflare; Azure's API Management.
        r"|reaching the monthly spending limit|used up your daily free allocation"
        r"|out of call volume quota"
        # OpenRouter, of a day
        r"|free-models-per-day"
        # SiliconFlow; Ollama's cloud, of hours or a week.
        r"|balance is insufficient|reached your (\w+ )?usage limit",
        NO_CREDIT,
    ),
    (r"RateLimitError", "rate_limit_exceeded"),
    # Codex's own server, in a stream
    (r"\bmodel is at capacity\b", "server_is_overloaded"),
)
"""What other servers say instead of a code, and LiteLLM of the servers behind it."""


_MAX_SEARCHED = 2000
_CERTAIN_PHRASES = (
    (
        # "Request too large for ... Limit 1, Requested 30." (recorded in a stream)
        r"request too large for .{1,500}\blimit \d+, requested \d+",
        REQUEST_TOO_LARGE,
    ),
    # OpenAI; Google, with a status of 400
    (r"\A(Incorrect API key provided|API key not valid)", WRONG_KEY),
    # Azure, with a status of 401: a role of Entra ID
    (r"lacks the required data action", MISSING_SCOPE),
    (r"\AAccess denied due to Virtual Network/Firewall rules", FIREWALL_PAGE),
    # Azure, of a dated version in the address
    (
        r"Responses API is enabled only for api-version|\AAPI version not supported",
        NO_RESPONSES_API,
    ),
    # Bedrock, as a 403
    (r"\AYou don't have access to the model with the specified model", DENIED_MODEL),
    # xAI, as a 429 (continuedev/continue 10373)
    (
        r"\AYour team \S{1,64} has either used all available credits or reached its",
        NO_CREDIT,
    ),
    (r"\ALoading model\b", LOADING_MODEL),
    # LM Studio (lmstudio-ai/lmstudio-bug-tracker 618)
    (r"\AUnexpected endpoint or method\.", NO_RESPONSES_API),
    # 403, code "The caller does not have permission to execute the specified operation"
    # (theopenco/llmgateway 1785)
    (r"\AContent violates usage guidelines", CONTENT_FILTER),
    # DeepSeek, MiniMax: with the code of any refusal, or with none
    (r"\A(Content Exists Risk\b|(input|output) new_sensitive\b)", CONTENT_FILTER),
    # LiteLLM's guardrails (`guardrail_hooks`), as a 400
    (
        r"\AViolated (.{1,40} )?(guardrail|moderation|content safety|tool) policy",
        CONTENT_FILTER,
    ),
    # OpenAI's 403 and 404 of an unverified organization can have `model_not_found`,
    # its 400 has `unsupported_value` (openai/codex 1982, continuedev/continue 9948)
    (r"\AYour organization must be verified to", UNVERIFIED),
)
"""Words that say more than the code: xAI's of a wrong key is `invalid-argument`."""


def _find_certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says.

    A policy that is not known here is one all the same.
    """
    code = error.code or ""
    if code.endswith(_POLICY_SUFFIXES) and code not in SAFETY_STOPS:
        return "invalid_prompt"
    text = error.message[:_MAX_SEARCHED]
    for phrase, code in _CERTAIN_PHRASES:
        if re.search(phrase, text, re.IGNORECASE | re.DOTALL):
            return code
    return None


def _list_codes(error: ApiError) -> list[str]:
    """Return the codes of an error, the most certain first."""
    text = error.message[:_MAX_SEARCHED]
    codes = [_find_certain_cause(error), error.code, error.type]
    for phrase, code in _PHRASES:
        if re.search(phrase, text, re.IGNORECASE):
            codes.append(code)
    # "3" and "5" are words for many statuses, which no server sends.
    return [code for code in codes if code and len(code) > 1]


def _fill_in(word: str | None, form: str = " ({})") -> str:
    """Return a word of the API as a part of a message; nothing for any other word."""
    return form.format(word) if api_word(word) else ""


def api_word(word: str | None) -> str | None:
    """Return `word` if it can be a word of the API, and no key; else None."""
    if not word:
        return None
    for messages in MESSAGES.values():
        if word in messages:
            return word
    return word if _WORD_OF_API.fullmatch(word) else None
