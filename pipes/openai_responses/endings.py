"""How a run can end, with the sentence that a person sees for it.

A sentence says what happened and what can be done; a finished answer has none. No
text of the server is shown: it may quote a key or a prompt.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from openai_responses.errors import ApiError


@dataclass(frozen=True, slots=True)
class Ending:
    """The way a run ended.

    `kind` is "completed", "incomplete", "failed", "error", "cut" or "refused"; `code`
    is the API's word for the cause, where it gave one that is a word; `sentence` is
    empty when there is nothing to tell.
    """

    kind: str
    code: str | None = None
    sentence: str = ""

    @property
    def is_failure(self) -> bool:
        """Say whether the answer is not what the person asked for."""
        return self.kind != "completed"


COMPLETED = Ending("completed")

CUT = Ending(
    "cut",
    sentence="The connection to the model broke before the answer was finished. "
    "What arrived is kept; regenerate the answer, or ask to continue.",
)

_WORD = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")

_INCOMPLETE: Mapping[str, str] = {
    "max_output_tokens": "The answer stops here because it reached its length limit. "
    "Raise the maximum of output tokens, or ask to continue.",
    "content_filter": "The answer stops here because OpenAI's content filter cut it "
    "off. Put the question in other words.",
}

_FAILED: Mapping[str, str] = {
    "server_error": "OpenAI had an error of its own. Try again in a moment.",
    "rate_limit_exceeded": "OpenAI's rate limit for this key is reached. "
    "Wait a minute, then try again.",
    "insufficient_quota": "The OpenAI account has no credit left. "
    "An administrator has to look at its billing.",
    "context_length_exceeded": "This chat is longer than the model can read. "
    "Start a new chat, or choose a model with a larger context.",
    "invalid_prompt": "OpenAI refused this prompt under its usage policies. "
    "Put the question in other words.",
    "server_is_overloaded": "OpenAI is overloaded at the moment. Try again shortly.",
}

_OTHER_FAILURE = "The model's server reported an error{code}. Try again."


_REFUSED: Mapping[str, str] = {
    **_FAILED,
    **dict.fromkeys(
        (
            "credit_balance_exhausted",
            "organization_spend_limit_exceeded",
            "project_spend_limit_exceeded",
            "organization_usage_limit_exceeded",
        ),
        _FAILED["insufficient_quota"],
    ),
    "model_not_found": "The model {model} does not exist, or is no longer there, or "
    "this API key may not use it. Choose another model.",
    "invalid_encrypted_content": "OpenAI could not read the reasoning of an earlier "
    "answer in this chat. Start a new chat, or edit the first message.",
}

_BY_STATUS: Mapping[int, str] = {
    401: "OpenAI does not accept the API key. An administrator has to check API_KEY "
    "in the valves of this pipe.",
    403: "This API key may not use {model}. Choose another model, or ask an "
    "administrator to change the rights of the key's project.",
    404: "There is no Responses API at BASE_URL. An administrator has to check "
    "BASE_URL in the valves of this pipe.",
    413: "This chat is too large for the model's server. Start a new chat, or leave "
    "out large files and pictures.",
    429: _FAILED["rate_limit_exceeded"],
    503: _FAILED["server_is_overloaded"],
}


def ending_of_incomplete(reason: str | None) -> Ending:
    """Return the ending of a `response.incomplete` with this reason."""
    other = f"The answer is not complete{_shown(reason)}. Ask to continue."
    sentence = _INCOMPLETE.get(reason or "", other)
    return Ending("incomplete", _word_or_none(reason), sentence)


def ending_of_failure(kind: str, error: ApiError) -> Ending:
    """Return the ending of a `response.failed` ("failed") or an `error` event."""
    code = _word_or_none(error.code or error.type)
    return Ending(kind, code, failure_sentence(error))


def failure_sentence(error: ApiError) -> str:
    """Return the sentence for an error that came after the request was accepted."""
    for word in (error.code, error.type):
        if word and word in _FAILED:
            return _FAILED[word]
    return _OTHER_FAILURE.format(code=_shown(error.code or error.type))


def refusal_sentence(status: int, error: ApiError, model: str) -> str:
    """Return the sentence for an HTTP status of 400 or more.

    `model` is the id that was asked for: it comes from the chat, not from the server.
    """
    if status == 401:
        return _BY_STATUS[401]
    for word in (error.code, error.type):
        if word and word in _REFUSED:
            return _REFUSED[word].format(model=model)
    if status in _BY_STATUS:
        return _BY_STATUS[status].format(model=model)
    if status >= 500:
        return f"OpenAI had an error of its own (HTTP {status}). Try again shortly."
    about = _shown(error.code) + _shown(error.param, " at {}")
    return (
        f"The model's server refused the request with HTTP {status}{about}. "
        "An administrator finds the details in the log."
    )


def _shown(word: str | None, form: str = " ({})") -> str:
    """Return a word of the server as it may be shown, or nothing."""
    known = _word_or_none(word)
    return form.format(known) if known else ""


def _word_or_none(word: str | None) -> str | None:
    """Return `word` if it is one of the API.

    Codes and parameter names are small letters, digits of an index, dots, brackets
    and underscores; anything else, a key for example, is not a word of the API.
    """
    return word if word and _WORD.fullmatch(word) else None
