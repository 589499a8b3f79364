"""How a run can end, with the sentence that belongs to it.

A finished answer needs none. No text of the server is shown: it may quote a key or a
prompt.
"""

import re
from dataclasses import dataclass
from typing import Literal

from openai_responses.errors import (
    ApiError,
    ApiRefused,
    InvalidRequest,
    MalformedEvent,
    ResponseLost,
    ResponsesError,
    Setback,
    TimedOut,
    UnreadableAnswer,
)
from openai_responses.sentences import SENTENCES

EndingKind = Literal[
    "completed",
    "incomplete",
    "failed",
    "error",
    "refused",
    "invalid",
    "unreachable",
    "unreadable",
    "malformed",
    "cut",
    "first_event_timeout",
    "idle_timeout",
    "total_timeout",
]


@dataclass(frozen=True, slots=True)
class Ending:
    """The way a run ended.

    `code` is the API's word for the cause, where it gave one that is a word;
    `sentence` is empty when there is nothing to tell.
    """

    kind: EndingKind
    code: str | None = None
    sentence: str = ""

    @property
    def is_failure(self) -> bool:
        """Say whether the answer is not what the person asked for."""
        return self.kind != "completed"


COMPLETED = Ending("completed")
CUT = Ending("cut", sentence=SENTENCES["cut"][""])
UNREADABLE = Ending("unreadable", sentence=SENTENCES["unreadable"][""])

_WORD = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")


def ending_of_incomplete(reason: str | None) -> Ending:
    """Return the ending of a `response.incomplete` with this reason."""
    code = api_word(reason)
    return Ending("incomplete", code, _sentence("incomplete", ApiError(code=code)))


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    """Return the ending of a `response.failed` ("failed") or an `error` event."""
    code = api_word(error.code or error.type)
    return Ending(kind, code, failure_sentence(error))


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return how a run ended that one of our errors stopped.

    `has_begun` says whether an event had arrived: then the answer was cut.
    """
    match error:
        case TimedOut():
            return Ending(error.kind, sentence=SENTENCES[error.kind][""])
        case MalformedEvent():
            return Ending("malformed", sentence=SENTENCES["malformed"][""])
        case ApiRefused():
            code = api_word(error.error.code or error.error.type)
            return Ending("refused", code, str(error))
        case ResponseLost():
            return Ending("cut", sentence=SENTENCES["cut"]["lost"])
        case UnreadableAnswer():
            return UNREADABLE
        case InvalidRequest():
            return Ending("invalid", sentence=str(error))
    return CUT if has_begun else Ending("unreachable", sentence=str(error))


def failure_sentence(error: ApiError) -> str:
    """Return the sentence for an error that came after the request was accepted."""
    return _sentence("failed", error)


def refusal_sentence(status: int, error: ApiError, model: str) -> str:
    """Return the sentence for an HTTP status of 400 or more.

    `model` is the id that was asked for: it comes from the chat, not from the server.
    """
    facts = {"model": model, "status": str(status)}
    refused, failed = SENTENCES["refused"], SENTENCES["failed"]
    if status == 401:
        return refused["401"]
    for word in (error.code, error.type):
        sentence = word and (refused.get(word) or failed.get(word))
        if sentence:
            return sentence.format(code="", **facts)
    other = refused["5"] if status >= 500 else refused[""]
    about = {"code": _shown(error.code), "param": _shown(error.param, " at {}")}
    return refused.get(str(status), other).format(**about, **facts)


def setback_sentence(setback: Setback) -> str:
    """Return what a status line says of a failure that is tried again."""
    if setback.status == 429:
        return "The model's server is busy with this key's requests."
    if setback.status and setback.status != 200:
        return f"The model's server has trouble (HTTP {setback.status})."
    return "The model's server did not answer."


def _sentence(kind: str, error: ApiError) -> str:
    """Return the sentence of a kind for the code or else the type of an error."""
    told = SENTENCES[kind]
    words = (word for word in (error.code, error.type) if word)
    sentence = next((told[word] for word in words if word in told), told[""])
    return sentence.format(code=_shown(error.code or error.type))


def _shown(word: str | None, form: str = " ({})") -> str:
    """Return a word of the server as it may be shown, or nothing."""
    known = api_word(word)
    return form.format(known) if known else ""


def api_word(word: str | None) -> str | None:
    """Return `word` if it is one of the API.

    Codes and parameter names are small letters, digits of an index, dots, brackets
    and underscores; anything else, a key for example, is not a word of the API.
    """
    known = any(word in told for told in SENTENCES.values())
    return word if word and (known or _WORD.fullmatch(word)) else None
