"""How a run can end, and the message for each ending.

`{code}`, `{param}` and `{status}` are words of the API, `{model}` is the id that was
asked for, `{wait}` the time until a limit is over. No text of the server is shown,
because it may quote a key or a prompt.

The messages are for whoever chats. Which setting can be the cause is in FAULTS: only a
shell knows what an administrator calls it.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Literal, NamedTuple, Self

from openai_responses.causes import (
    DENIED_MODEL,
    FILE_CODES,
    FIREWALL_PAGE,
    FLEX_UNAVAILABLE,
    FORBIDDEN_PROVIDERS,
    GATEWAY_PAGE,
    IMAGE_CODES,
    LOADING_MODEL,
    MISALIGNMENT,
    MISSING_SCOPE,
    NO_CREDIT_CODES,
    NO_MEMORY,
    NO_RESPONSES_API,
    REFUSED_SAFEGUARD,
    REJECTED,
    REQUEST_TOO_LARGE,
    STREAM_CUT,
    TOO_MANY_TOOLS,
    UNSUPPORTED_COUNTRY,
    UNVERIFIED,
    WRONG_KEY,
    failure_words,
    find_certain_cause,
    refusal_words,
)
from openai_responses.errors import (
    CONTENT_FILTER,
    NO_FAULT,
    OWN_MESSAGE,
    UNREAD_REASONING,
    ApiError,
    ApiRefused,
    Failure,
    ResponsesError,
    SafetyNotice,
    SettingFault,
    UnreadableAnswer,
)
from openai_responses.redaction import redact, redact_beginning
from openai_responses.waits import told_wait

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
CHECK_TOKEN = "An administrator has to check whose it is, and its rights."
"""What follows if the token of a server or a user is sent in the place of a key."""
_NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to check its billing."
)
_OVERLOADED = "OpenAI is overloaded. Try again in a moment."
_SERVER_ERROR = "OpenAI reported an internal error. Try again in a moment."
_TOO_LATE = (
    "A gateway in front of the model's server got no answer in time (HTTP {status}). Try "
    "again, or choose a lower effort."
)
_WRONG_ORGANIZATION = "The API key does not belong to the organization in the settings."
_RATE_LIMIT = (
    "This API key has reached OpenAI's rate limit. Wait {wait}, then try again."
)
_PLAN_LIMIT = (
    "The OpenAI account has reached the usage limit of its plan. Try again in {wait}."
)
_TOO_LARGE_CHAT = (
    "This chat is too large for the model's server. Start a new chat, or leave out large "
    "files and images."
)
_KEPT = "; everything received so far is kept."
"""Comes last: the page cuts a line, and the advice must be in what is left."""
_CONTINUE = f"Regenerate the answer, or ask the model to continue{_KEPT}"
_CUT_SHORT = "The connection to the model broke before the answer was complete. "
_UNREADABLE_MODEL = (
    "The model wrote something that its server could not read{code}. Try again."
)
_NO_RESPONSES_API = "There is no Responses API at the address of the model's server."
_UNREACHABLE = "The model's server at {server} cannot be reached: {reason}. Try again."

MESSAGES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer reached its length limit. Ask the model to "
        "continue, or raise the maximum number of output tokens.",
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
        "usage_limit_reached": _PLAN_LIMIT,
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
        **dict.fromkeys(sorted(FILE_CODES), _UNUSABLE_FILE),
        REJECTED: "The model's server rejected the request{code}{param}. Sending it "
        "again does not help; an administrator can find the details in the log.",
        "": "The model's server reported an error{code}. Try again. An administrator can "
        "find the details in the log.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, has been shut down, has no "
        "Responses API, or is not available to this API key at this address. Choose "
        "another model.",
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
        "incorrect_hostname": "The API key is bound to a region, which has an address of "
        "its own at OpenAI.",
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
        REFUSED_SAFEGUARD: "The model's server rejected the request{param}. That is a "
        "safeguard, without which nothing is sent.",
        NO_RESPONSES_API: _NO_RESPONSES_API,
        "404": _NO_RESPONSES_API,
        "405": _NO_RESPONSES_API,
        "407": "The HTTP proxy rejected the request.",
        "408": "The model's server gave up, because the request took too long (HTTP "
        "{status}). Try again; if that does not help, leave out large files.",
        STREAM_CUT: f"{_CUT_SHORT}Try again.",
        "409": "This request conflicts with something else that the model's server is "
        "doing (HTTP {status}). Try again in a moment.",
        "413": _TOO_LARGE_CHAT,
        "request_too_large": _TOO_LARGE_CHAT,  # Anthropic, Azure
        "421": "The request reached a server that does not serve the address of the "
        "model's server (HTTP {status}).",
        "429": _RATE_LIMIT,
        "451": "The model's server may not answer this request for legal reasons (HTTP "
        "{status}). Rephrase the question, or choose another model.",
        FORBIDDEN_PROVIDERS: "The privacy settings of the account at OpenAI allow no "
        "provider of {model}. An administrator has to change them, or choose another "
        "model.",
        TOO_MANY_TOOLS: "This chat has more tools than the model's server accepts. Turn "
        "some of them off, or ask an administrator to do so.",
        NO_MEMORY: "The model's server does not have enough memory for {model}. Choose a "
        "smaller model.",
        LOADING_MODEL: "The model's server is still loading the model. Try again in a "
        "minute.",
        "503": _OVERLOADED,
        "504": _TOO_LATE,
        "524": _TOO_LATE,
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
        "tls": "The model's server at {server} does not use TLS, but its address begins "
        "with https.",
    },
    "cut": {
        "": _CUT_SHORT + _CONTINUE,
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
        f"Ask the model to continue, or choose a lower effort{_KEPT}",
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
    ("refused", "incorrect_hostname"): _WRONG_ADDRESS,
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
        if not self.message.endswith(_KEPT):
            return self
        what, _, _ = self.message.rpartition(". ")
        return self._replace(message=f"{what}. Try again.")


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


def unreadable_answer(ending: Ending) -> UnreadableAnswer:
    """Return the error for an answer that cannot be read: the ending says why."""
    return UnreadableAnswer(ending.message, ending.fault)


ASKED_MODEL = "this model"
"""Stands in a message for the id that was asked for, until a run puts it in."""

_WORD_OF_API = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")


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
    """Return the ending of a `response.failed` or an `error` event.

    If a gateway says that its own stream broke, the response is cut, not failed.
    """
    if find_certain_cause(error) == STREAM_CUT:
        return CUT
    if error.status:
        refused = ending_of_refusal(error.status, error, is_streamed=True)
        return refused._replace(kind=kind)
    code = _find_code(error)
    word = failure_word(error)
    form = _MESSAGES_BY_CODE[word] if word else MESSAGES["failed"][""]
    message = _fill_message(form, error, _fill_in(code), 200)
    return Ending(kind, code, message, FAULTS.get(("refused", word), NO_FAULT))


def ending_of_refusal(
    status: int, error: ApiError, *, is_streamed: bool = False
) -> Ending:
    """Return the ending of an HTTP status of 300 or more."""
    word = refusal_word(status, error, is_streamed=is_streamed)
    shown_code = ""
    # A message for a code says what the code means.
    if error.code != str(status) and (not word or word.isdecimal()):
        shown_code = _fill_in(error.code)
    message = _fill_message(_MESSAGES_BY_CODE[word], error, shown_code, status)
    fault = FAULTS.get(("refused", word), NO_FAULT)
    return Ending("refused", _find_code(error), message, fault)


def _fill_message(form: str, error: ApiError, shown_code: str, status: int) -> str:
    """Return a message with what it says of an error."""
    return form.format(
        code=shown_code,
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=status,
        wait=_time_to_wait(form, error),
    )


_OF_A_DAY = re.compile(r"\b(?:per day|daily)\b", re.IGNORECASE)
_LONGEST_WAIT = 60 * 86_400.0
"""In seconds; a longer one is none that somebody means."""


def _time_to_wait(form: str, error: ApiError) -> str:
    """Return the time that an error names, else one that is usual for the limit."""
    wait = error.wait or 0
    if 0 < wait < _LONGEST_WAIT:  # else a time may be named that is over by our clock
        return told_wait(wait)
    if _OF_A_DAY.search(error.message):
        return "some hours"
    return "some hours or days" if form == _PLAN_LIMIT else "a minute"


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return the ending of a run that `error` stopped, after its first event or not."""
    if isinstance(error, ApiRefused):
        return Ending("refused", _find_code(error.error), str(error), error.fault)
    kind, word = error.ending
    if not kind:
        kind, word = ("cut", "") if has_begun else ("unreachable", OWN_MESSAGE)
    if word == OWN_MESSAGE:
        return Ending(kind, message=str(error), fault=error.fault)
    return _ending_without_code(kind, word)


def _find_code(error: ApiError) -> str | None:
    """Return the word of the API that says most about the cause, to be shown."""
    return api_word(find_certain_cause(error) or error.code or error.type)


_MAX_NOTICE = 600
_MARKUP = str.maketrans("<>[]{}`|\\", "()()()'//")
"""What begins links, images, HTML, files, formulas and code, and what replaces it."""


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


def failure_word(error: ApiError) -> str:
    """Return the word of a message that tells why a stream failed; "" if none does."""
    return _first_with_message(failure_words(error))


def refusal_word(status: int, error: ApiError, *, is_streamed: bool = False) -> str:
    """Return the word of a message that tells why a request was refused."""
    return _first_with_message(refusal_words(status, error, is_streamed=is_streamed))


def cause_word(error: ApiError, status: int = 0) -> str:
    """Return the word of a message that tells why a request failed; "" if none does.

    Below 400, `status` is that of a stream, whose error may name another one.
    """
    status = status if status >= 400 else error.status
    return refusal_word(status, error) if status else failure_word(error)


def names_model(status: int, error: ApiError) -> bool:
    """Say whether a refusal says that the model is not there, or is not for this key."""
    return cause_word(error, status) in ("model_not_found", DENIED_MODEL, UNVERIFIED)


def _first_with_message(words: Iterable[str]) -> str:
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
    says = "rejected the request" if status in (400, 405, 422) else "has trouble"
    cause = causes.get(status, f"{says} (HTTP {status})")
    return f"The model's server {cause}."


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
