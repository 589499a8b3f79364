"""How a run can end, and the sentence for each ending.

`{code}`, `{param}` and `{status}` are words of the API, `{model}` is the id that was
asked for. No text of the server is shown, because it may quote a key or a prompt.

The sentences are for whoever chats. Which setting can be the cause is in FAULTS: only a
shell knows what an administrator calls it.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, Self

from openai_responses.errors import (
    NO_FAULT,
    AnswerTooLarge,
    ApiError,
    ApiRefused,
    Failure,
    InvalidRequest,
    InvalidSetting,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    SafetyNotice,
    SettingFault,
    TimedOut,
    UnreadableAnswer,
)
from openai_responses.redaction import redact

_UNUSABLE_IMAGE = (
    "The model's server could not use an image in this chat{code}. Remove it, or "
    "attach it again as PNG, JPEG, WEBP or GIF of a moderate size."
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
_RATE_LIMIT = (
    "This API key has reached OpenAI's rate limit. Wait a minute, then try again."
)
_ARRIVED = "Everything received so far is kept"
_CONTINUE = f"{_ARRIVED}; regenerate the answer, or ask the model to continue."


MISALIGNMENT = "misalignment_policy_violation"
"""OpenAI's monitoring stopped what a model was about to do: nothing of it may go on,
neither by another attempt nor elsewhere nor without its reasoning."""
FLEX_UNAVAILABLE = "flex_unavailable"
REQUEST_TOO_LARGE = "request_too_large"
"""Our word for a `rate_limit_exceeded` that no wait removes: the request alone is larger
than the limit of a minute (recorded in a stream that tells of a limit of 1)."""
WRONG_KEY = "invalid_api_key"

SAFETY_STOPS = frozenset(
    {
        MISALIGNMENT,
        "cyber_policy",
        "bio_policy",
        "invalid_prompt",
        "image_content_policy_violation",
        "content_policy_violation",
        "content_filter",
    }
)
"""Codes of refusals for what a chat is about. No other server is asked instead."""

FINAL_CODES = SAFETY_STOPS | {FLEX_UNAVAILABLE, REQUEST_TOO_LARGE, WRONG_KEY}
"""Codes of refusals that neither a second attempt nor a repair of the request removes."""

NO_CREDIT_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""

IMAGE_CODES = frozenset(
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
"""Codes of refusals of an image."""

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer reached its length limit. Raise the maximum "
        "number of output tokens, or ask the model to continue.",
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
        "only_tokens": "The model spent all tokens of this answer on reasoning. Raise "
        "the maximum number of output tokens, or choose a lower effort.",
        "": "The answer is incomplete{code}. Ask the model to continue.",
    },
    "failed": {
        "server_error": _SERVER_ERROR,
        "rate_limit_exceeded": _RATE_LIMIT,
        "slow_down": _RATE_LIMIT,
        **dict.fromkeys(sorted(NO_CREDIT_CODES), _NO_CREDIT),
        "server_is_overloaded": _OVERLOADED,
        "context_length_exceeded": "This chat is longer than the model can read. "
        "Start a new chat, or choose a model with a larger context.",
        "invalid_prompt": _POLICY,
        "bio_policy": _POLICY,
        "image_content_policy_violation": _POLICY,
        MISALIGNMENT: "OpenAI's safety monitoring stopped this answer{code}, because it "
        "may do something nobody asked for. Its last tool calls were not run; earlier "
        "actions are not undone. Start a new chat to continue.",
        "cyber_policy": "OpenAI declined to answer, because the answer could help attack "
        "computers{code}. Rephrase the question, or start a new chat. For security work, "
        "an administrator can apply to OpenAI for access.",
        "content_policy_violation": "OpenAI's content filter stopped this answer{code}. "
        "Rephrase the question, or start a new chat.",
        "content_filter": "OpenAI's content filter rejected this chat{code}, so it was "
        "not answered. Rephrase the question, or start a new chat.",
        REQUEST_TOO_LARGE: "This chat is larger than the key's rate limit allows for "
        "one request, so waiting does not help. Start a new chat, leave out large "
        "files, or ask an administrator to raise the account's usage tier.",
        FLEX_UNAVAILABLE: "OpenAI has no flex capacity at the moment. Try again later, "
        "or choose the standard service tier, which costs twice as much.",
        "data_residency_mismatch": "This model is not available in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(sorted(IMAGE_CODES), _UNUSABLE_IMAGE),
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, has been shut down, or is "
        "not available to this API key. Choose another model.",
        "invalid_encrypted_content": "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        "3": "The model's server redirects requests (HTTP {status}). Redirects are not "
        "followed, because they would send the key to another address.",
        WRONG_KEY: _WRONG_KEY,
        "401": _WRONG_KEY,
        "403": "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key's project.",
        "404": "There is no Responses API at the address of the model's server.",
        "407": "The HTTP proxy rejected the request.",
        "413": "This chat is too large for the model's server. Start a new chat, or "
        "leave out large files and images.",
        "429": _RATE_LIMIT,
        "503": _OVERLOADED,
        "5": "OpenAI reported an internal error (HTTP {status}). Try again in a moment.",
        "": "The model's server rejected the request with HTTP {status}{code}{param}. "
        "An administrator can find the details in the log.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was complete. "
        + _CONTINUE,
        "lost": "The connection to the model broke, and the rest of the answer could "
        "not be fetched. " + _CONTINUE,
    },
    "unreadable": {
        "": "The model's server did not answer like the Responses API.",
        "compressed": "The model's server sent a compressed answer, which cannot be "
        "read.",
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
"""The sentences, by kind of ending, then by code or HTTP status. "" stands for all other
codes, "3" for 300 to 399, "5" for all other statuses from 500 up. Other kinds use their
exception's text."""

_WRONG_ADDRESS = SettingFault(("base_url",))

FAULTS: Mapping[tuple[str, str], SettingFault] = {
    ("refused", "3"): _WRONG_ADDRESS,
    ("refused", WRONG_KEY): SettingFault(("api_key",)),
    ("refused", "401"): SettingFault(("api_key",)),
    ("refused", "404"): _WRONG_ADDRESS,
    ("refused", "407"): SettingFault(("proxy",)),
    ("unreadable", ""): _WRONG_ADDRESS,
    ("unreadable", "compressed"): SettingFault(("base_url", "extra_headers")),
}
"""The settings that can be the cause, by kind of ending and word of SENTENCES."""


_CONTINUED_KINDS = frozenset({"cut", "malformed", "idle_timeout", "total_timeout"})
_NOT_CONTINUED = frozenset(
    {"content_filter", "steered", "no_answer", "only_calls", "only_tokens"}
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
    sentence: str = ""
    fault: SettingFault = NO_FAULT
    """The settings that can be the cause."""

    @property
    def is_failure(self) -> bool:
        """Say whether the answer is not what the person asked for."""
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
        before, _, advice = self.sentence.partition(_ARRIVED)
        if not advice:
            return self
        return self._replace(sentence=f"{before}Try again.")


def _ending_without_code(kind: str, word: str = "") -> Ending:
    """Return the ending of a kind whose cause has no code; `word` finds its sentence."""
    fault = FAULTS.get((kind, word), NO_FAULT)
    return Ending(kind, sentence=SENTENCES[kind][word], fault=fault)


COMPLETED = Ending("completed")
CUT = _ending_without_code("cut")
UNREADABLE = _ending_without_code("unreadable")
COMPRESSED = _ending_without_code("unreadable", "compressed")

ASKED_MODEL = "this model"
"""Stands in a sentence for the id that was asked for, until a run puts it in."""

_WORD_OF_API = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")
_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def ending_of_incomplete(reason: str | None) -> Ending:
    """Return the ending of a `response.incomplete`."""
    code = api_word(reason)
    sentence = _find_sentence("incomplete", ApiError(code=code))
    return Ending("incomplete", code, sentence)


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    """Return the ending of a `response.failed` or an `error` event."""
    code = _find_code(error)
    return Ending(kind, code, failure_sentence(error), failure_fault(error))


_OWN_SENTENCE = "-"
"""In the place of a word of SENTENCES: the exception's own text is shown."""
_EXCEPTIONS: Mapping[type[ResponsesError], tuple[str, str]] = {
    MalformedEvent: ("malformed", ""),
    AnswerTooLarge: ("malformed", "too_large"),
    ResponseLost: ("cut", "lost"),
    UnreadableAnswer: ("unreadable", _OWN_SENTENCE),
    InvalidRequest: ("invalid", _OWN_SENTENCE),
    InvalidSetting: ("invalid", _OWN_SENTENCE),
}
"""Kind and word of the sentence for each exception."""


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return the ending of a run that `error` stopped, after its first event or not."""
    if isinstance(error, TimedOut):
        return _ending_without_code(error.kind)
    if isinstance(error, ApiRefused):
        return Ending("refused", _find_code(error.error), str(error), error.fault)
    connection_lost = ("cut", "") if has_begun else ("unreachable", _OWN_SENTENCE)
    kind, word = _EXCEPTIONS.get(type(error), connection_lost)
    if word == _OWN_SENTENCE:
        return Ending(kind, sentence=str(error), fault=error.fault)
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
    parts = [
        ("The server explains", notice.explanation),
        ("It advises", notice.advice),
    ]
    quotes: list[str] = []
    for lead, text in parts:
        if text:
            quotes.append(f"{lead}: “{_plain_line(text, secrets)}”")
    return " ".join(quotes)


def _plain_line(text: str, secrets: Iterable[str]) -> str:
    """Return a text of the server as one plain line, without secrets and markup."""
    line = " ".join(redact(text[: 2 * _MAX_NOTICE], secrets).split())
    printable = "".join(letter for letter in line if letter.isprintable())
    plain = printable.translate(_MARKUP).replace("://", ": //")
    return plain if len(plain) <= _MAX_NOTICE else f"{plain[:_MAX_NOTICE]}…"


def failure_sentence(error: ApiError) -> str:
    """Return the sentence for an error after the request was accepted."""
    if error.status:
        return refusal_sentence(error.status, error)
    return _find_sentence("failed", error)


def failure_fault(error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an error like that."""
    return refusal_fault(error.status, error) if error.status else NO_FAULT


_REFUSAL_SENTENCES = {**SENTENCES["failed"], **SENTENCES["refused"]}


def refusal_sentence(status: int, error: ApiError) -> str:
    """Return the sentence for an HTTP status of 300 or more."""
    word = _first_known(_list_refusal_words(status, error), _REFUSAL_SENTENCES)
    code = ""
    if not word:  # only the sentence for all other causes needs the code
        code = _fill_in(error.code)
    return _REFUSAL_SENTENCES[word].format(
        code=code,
        param=_fill_in(error.param, " at {}"),
        model=ASKED_MODEL,
        status=status,
    )


def refusal_fault(status: int, error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an HTTP status of 300 or more."""
    word = _first_known(_list_refusal_words(status, error), _REFUSAL_SENTENCES)
    return FAULTS.get(("refused", word), NO_FAULT)


def _list_refusal_words(status: int, error: ApiError) -> list[str]:
    """Return the words that a sentence can be found by, the most certain first."""
    if status < 400:
        return ["3"]
    # Whatever code comes with it: the key is wrong.
    if status == 401:
        return ["401"]
    words = [code for code in _list_codes(error) if code != str(status)]
    # Gateways send no code: "The model `x` does not exist"; Azure: "The API deployment
    # for this resource does not exist".
    if status == 404 and _ABOUT_A_MODEL.search(error.message):
        words.append("model_not_found")
    # A 404 about a place of the request does not mean that the address is wrong.
    if status != 404 or not (error.param or error.names_a_place):
        words.append(str(status))
    if status >= 500:
        words.append("5")
    return words


def _first_known(words: Iterable[str], sentences: Mapping[str, str]) -> str:
    """Return the first word that has a sentence of its own, "" if none has."""
    for word in words:
        if word in sentences:
            return word
    return ""


def failure_status(failure: Failure) -> str:
    """Return the status line before the request is sent again."""
    causes = {
        None: "did not answer",
        200: "reported an error",
        429: "is busy with this key's requests",
    }
    cause = causes.get(failure.status, f"has trouble (HTTP {failure.status})")
    return f"The model's server {cause}."


def _find_sentence(kind: str, error: ApiError) -> str:
    """Return the sentence of a kind of ending for the cause that an error names."""
    sentences = SENTENCES[kind]
    word = _first_known(_list_codes(error), sentences)
    return sentences[word].format(code=_fill_in(_find_code(error)))


_PHRASES = (
    (
        # LiteLLM's `ContextWindowExceededError`; of more than 16,384 items, or of a text
        # above 10,485,760 characters: "Invalid 'input': array too long".
        r"maximum context length|context (size|window)|ContextWindow"
        r"|'input(\S*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (r"\bmodel\b.{0,200}(does not exist|not found)|invalid model", "model_not_found"),
    (r"RateLimitError", "rate_limit_exceeded"),
)
"""What other servers say instead of a code, and LiteLLM of the servers behind it."""


_MAX_SEARCHED = 2000
_CERTAIN_PHRASES = (
    (
        # "Request too large for ... Limit 1, Requested 30." (recorded in a stream)
        r"request too large for .{1,500}\blimit \d+, requested \d+",
        REQUEST_TOO_LARGE,
    ),
    (r"\AIncorrect API key provided", WRONG_KEY),
)
"""Words that say more than the code: xAI's of a wrong key is `invalid-argument`."""


def _find_certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says."""
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
    return [code for code in codes if code]


def _fill_in(word: str | None, form: str = " ({})") -> str:
    """Return a word of the API as a part of a sentence; nothing for any other word."""
    return form.format(word) if api_word(word) else ""


def api_word(word: str | None) -> str | None:
    """Return `word` if it can be a word of the API, and no key; else None."""
    if not word:
        return None
    for sentences in SENTENCES.values():
        if word in sentences:
            return word
    return word if _WORD_OF_API.fullmatch(word) else None
