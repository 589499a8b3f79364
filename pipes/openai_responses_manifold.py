"""
title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 0.1.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

Built by scripts/bundle.py from pipes/; do not edit. In reading order

    openai_responses  clock, errors, endings, catalog, models, items, usage, run_events,
                      sse, events, transport, ulids, turn, request, run, origin, tools
    owui_chat  native, chunks, completion, markers, tasks, stored, keeping, messages,
               history
    owui_manifold  caller, host, rounds, store, valves, job, answer, log, pipe
"""

import asyncio
import json
import logging
import os
import re
import secrets
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import astuple, dataclass, field, replace
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from traceback import extract_tb
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import SplitResult, urlsplit, urlunsplit

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, ValidationError

# openai_responses.clock ===============================================================
# The time.


def unix_seconds() -> int:
    """Return the seconds since 1970 in UTC, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that only grows, for measuring spans."""
    return time.monotonic()


# openai_responses.errors ==============================================================
# The exceptions of the engine.
#
# ResponsesError
#  ├─ InvalidRequest         our own check refused it; nothing was sent
#  ├─ ConnectionFailed       no connection, or it broke before an answer
#  ├─ ApiRefused             an HTTP status of 400 or more
#  ├─ UnreadableAnswer       an answer that is not what the API sends
#  └─ MalformedEvent         one event of a stream that cannot be read
#
# `str(error)` is a sentence of ours for a person: it holds no body, no header and no
# key, so it may be shown in a chat and logged.


class ResponsesError(Exception):
    """Anything this engine raises on purpose; the text may be shown to a person."""


class InvalidRequest(ResponsesError):
    """A request that we refuse to send, with the reason in words."""


class ConnectionFailed(ResponsesError):
    """The server could not be reached, or went away before it answered."""


class UnreadableAnswer(ResponsesError):
    """The server answered with something that is not a Responses API answer."""


class MalformedEvent(ResponsesError):
    """An event of a stream whose payload is not a JSON object."""


@dataclass(frozen=True, slots=True)
class ApiError:
    """What the API says went wrong (responses-api.md §4).

    The same four fields come in an HTTP body, in a `response.failed` and in both
    shapes of the `error` event. `message` is the server's text: it can quote a key or
    a prompt, so it is never shown as it is.
    """

    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status of 400 or more."""

    def __init__(self, sentence: str, status: int, error: ApiError) -> None:
        """Keep the `status` and the parsed `error` for those who decide on them."""
        super().__init__(sentence)
        self.status = status
        self.error = error


# openai_responses.endings =============================================================
# How a run can end, with the sentence that a person sees for it.
#
# A sentence says what happened and what can be done; a finished answer has none. No
# text of the server is shown: it may quote a key or a prompt.


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


# openai_responses.catalog =============================================================
# The table of models, generated from `scripts/catalog/models.json`; do not edit.

# ruff: noqa: E501 - one model a line reads as a table


class CatalogRow(NamedTuple):
    """What the sources say about one model; None where they say nothing."""

    efforts: str
    default_effort: str | None
    sampling: Literal["always", "with_none", "never"]
    traits: str
    max_output_tokens: int | None
    context: int | None
    prices: tuple[float | None, float | None, float | None, float | None] | None
    shutdown: str | None
    successor: str | None


# Facts as of 2026-11-21. A dated snapshot has a row only where it differs from its model.
# Prices are US dollars for a million tokens at the standard tier: input, cached, cache_write, output.
# fmt: off
CATALOG_ROWS: dict[str, CatalogRow] = {
    "chatgpt-4o-latest": CatalogRow("", None, "always", "vision", None, None, None, "2026-02-17", "gpt-5.5"),
    "codex-mini-latest": CatalogRow("", None, "never", "reasoning summary functions vision", None, None, None, "2026-02-12", "gpt-5.4-mini"),
    "gpt-3.5-turbo": CatalogRow("", None, "always", "functions", 4096, 16385, (0.5, None, None, 1.5), "2026-10-23", "gpt-5.6-terra"),
    "gpt-3.5-turbo-0125": CatalogRow("", None, "always", "functions", 4096, 16385, (0.5, None, None, 1.5), "2026-10-23", "gpt-5.6-terra"),
    "gpt-3.5-turbo-1106": CatalogRow("", None, "always", "functions", 4096, 16385, (1.0, None, None, 2.0), "2026-09-28", "gpt-5.6-terra"),
    "gpt-4": CatalogRow("", None, "always", "functions", 4096, 8192, (30.0, None, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-0125-preview": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4-0314": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4-0613": CatalogRow("", None, "always", "functions", 4096, 8192, (30.0, None, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-1106-preview": CatalogRow("", None, "always", "functions", 4096, 128000, (10.0, None, None, 30.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-turbo": CatalogRow("", None, "always", "functions vision", 4096, 128000, (10.0, None, None, 30.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4-turbo-preview": CatalogRow("", None, "always", "functions", None, None, None, "2026-03-26", "gpt-5.6-sol"),
    "gpt-4.1": CatalogRow("", None, "always", "functions vision", 32768, 1047576, (2.0, 0.5, None, 8.0), "2027-01-14", "gpt-6-luna"),
    "gpt-4.1-mini": CatalogRow("", None, "always", "functions vision", 32768, 1047576, (0.4, 0.1, None, 1.6), "2027-01-14", "gpt-6-luna"),
    "gpt-4.1-nano": CatalogRow("", None, "always", "functions vision", 32768, 1047576, (0.1, 0.025, None, 0.4), "2026-10-23", "gpt-5.6-luna"),
    "gpt-4o": CatalogRow("", None, "always", "functions vision", 16384, 128000, (2.5, 1.25, None, 10.0), "2027-01-14", "gpt-6-luna"),
    "gpt-4o-2024-05-13": CatalogRow("", None, "always", "functions vision", 4096, 128000, (5.0, None, None, 15.0), "2026-10-23", "gpt-5.6-sol"),
    "gpt-4o-mini": CatalogRow("", None, "always", "functions vision", 16384, 128000, (0.15, 0.075, None, 0.6), "2027-01-14", "gpt-6-luna"),
    "gpt-5": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-12-11", "gpt-6.1-sol"),
    "gpt-5-chat-latest": CatalogRow("", None, "always", "vision", 16384, 128000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.5"),
    "gpt-5-codex": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.4"),
    "gpt-5-mini": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions vision", 128000, 400000, (0.25, 0.025, None, 2.0), "2026-12-11", "gpt-6.1-terra"),
    "gpt-5-nano": CatalogRow("minimal low medium high", "medium", "never", "reasoning summary verbosity functions vision", 128000, 400000, (0.05, 0.005, None, 0.4), "2026-12-11", "gpt-6-luna"),
    "gpt-5-pro": CatalogRow("high", "high", "never", "reasoning summary verbosity functions vision", 272000, 400000, (15.0, None, None, 120.0), "2026-12-11", "gpt-6.1-sol"),
    "gpt-5.1": CatalogRow("none low medium high", "none", "with_none", "reasoning summary verbosity functions vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2027-04-01", "gpt-6.1-sol"),
    "gpt-5.1-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.5"),
    "gpt-5.1-codex": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-6.1-sol"),
    "gpt-5.1-codex-max": CatalogRow("low medium high xhigh", "medium", "never", "reasoning summary functions vision", 128000, 400000, (1.25, 0.125, None, 10.0), "2026-07-23", "gpt-5.4"),
    "gpt-5.1-codex-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 128000, 400000, (0.25, 0.025, None, 2.0), "2026-07-23", "gpt-5.4-mini"),
    "gpt-5.2": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity functions vision", 128000, 400000, (1.75, 0.175, None, 14.0), None, None),
    "gpt-5.2-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.75, 0.175, None, 14.0), "2026-08-10", "gpt-5.5"),
    "gpt-5.2-codex": CatalogRow("low medium high xhigh", None, "never", "reasoning summary functions vision", 128000, 400000, (1.75, 0.175, None, 14.0), "2026-07-23", "gpt-5.4"),
    "gpt-5.2-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity functions vision", 128000, 400000, (21.0, None, None, 168.0), None, None),
    "gpt-5.3-chat-latest": CatalogRow("medium", "medium", "never", "reasoning summary verbosity functions vision", 16384, 128000, (1.75, 0.175, None, 14.0), "2026-08-10", "gpt-5.5"),
    "gpt-5.3-codex": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary phase functions vision", 128000, 400000, (1.75, 0.175, None, 14.0), "2027-04-01", "gpt-6.1-sol"),
    "gpt-5.4": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (2.5, 0.25, None, 15.0), None, None),
    "gpt-5.4-mini": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions vision", 128000, 400000, (0.75, 0.075, None, 4.5), None, None),
    "gpt-5.4-nano": CatalogRow("none low medium high xhigh", "none", "with_none", "reasoning summary verbosity phase functions vision", 128000, 400000, (0.2, 0.02, None, 1.25), "2027-04-01", "gpt-6-luna"),
    "gpt-5.4-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (30.0, None, None, 180.0), None, None),
    "gpt-5.5": CatalogRow("none low medium high xhigh", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (5.0, 0.5, None, 30.0), None, None),
    "gpt-5.5-pro": CatalogRow("medium high xhigh", "medium", "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (30.0, None, None, 180.0), None, None),
    "gpt-5.6-cyber": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 400000, (12.5, 1.25, 15.625, 75.0), None, None),
    "gpt-5.6-luna": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (0.2, 0.02, 0.25, 1.2), None, None),
    "gpt-5.6-sol": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (4, 0.4, 5.0, 20), None, None),
    "gpt-5.6-terra": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (2.0, 0.2, 2.5, 12.0), None, None),
    "gpt-6-astra": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (10.0, 1.0, 12.5, 50.0), None, None),
    "gpt-6-astra-law": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (10.0, 1.0, None, 50.0), None, None),
    "gpt-6-cyber": CatalogRow("", None, "never", "reasoning summary verbosity phase functions vision", None, None, None, None, None),
    "gpt-6-luna": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (0.1, 0.01, 0.125, 0.5), None, None),
    "gpt-6-rosalind": CatalogRow("", None, "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (15.0, 1.5, 18.75, 75.0), None, None),
    "gpt-6-sol": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (2.0, 0.2, 2.5, 10.0), None, None),
    "gpt-6.1-sol": CatalogRow("low medium high xhigh max", "medium", "never", "reasoning summary verbosity phase functions vision", 128000, 1050000, (2.0, 0.1, 2.5, 10.0), None, None),
    "gpt-6.1-terra": CatalogRow("none low medium high xhigh max", "medium", "with_none", "reasoning summary verbosity phase functions vision", 128000, 1050000, (1.0, 0.05, 1.25, 5.0), None, None),
    "gpt-6.2-astra": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions vision prefix_bound", 128000, 1050000, (8, None, None, 40), None, None),
    "gpt-6.2-astra-law": CatalogRow("", None, "never", "reasoning summary verbosity phase functions vision prefix_bound", None, None, None, None, None),
    "gpt-6.2-sol": CatalogRow("low medium high xhigh max", None, "never", "reasoning summary verbosity phase functions vision prefix_bound", 128000, 1050000, (2, None, None, 10), None, None),
    "gpt-daybreak-blue-latest": CatalogRow("", None, "never", "reasoning summary phase functions vision", 128000, 1050000, (4.0, 0.4, 5.0, 20.0), None, None),
    "gpt-daybreak-red-latest": CatalogRow("", None, "never", "reasoning summary phase functions vision", 128000, 400000, (12.5, 1.25, 15.625, 75.0), None, None),
    "gpt-rosalind-research": CatalogRow("", None, "never", "reasoning summary phase functions vision", None, None, (5.0, 0.5, None, 25.0), None, None),
    "o1": CatalogRow("low medium high", "medium", "never", "reasoning functions vision", 100000, 200000, (15.0, 7.5, None, 60.0), "2026-10-23", "gpt-5.6-sol"),
    "o1-pro": CatalogRow("low medium high", "medium", "never", "reasoning functions vision", 100000, 200000, (150.0, None, None, 600.0), "2026-10-23", "gpt-5.6-sol"),
    "o3": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 100000, 200000, (2.0, 0.5, None, 8.0), "2026-12-11", "gpt-6.1-sol"),
    "o3-deep-research": CatalogRow("low medium high", "medium", "never", "reasoning summary vision", 100000, 200000, (10.0, 2.5, None, 40.0), "2026-07-23", "gpt-5.4-pro"),
    "o3-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions", 100000, 200000, (1.1, 0.55, None, 4.4), "2026-10-23", "gpt-5.6-sol"),
    "o3-pro": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 100000, 200000, (20.0, None, None, 80.0), "2026-12-11", "gpt-6.1-sol"),
    "o4-mini": CatalogRow("low medium high", "medium", "never", "reasoning summary functions vision", 100000, 200000, (1.1, 0.275, None, 4.4), "2026-10-23", "gpt-5.6-terra"),
    "o4-mini-deep-research": CatalogRow("low medium high", "medium", "never", "reasoning summary vision", 100000, 200000, (2.0, 0.5, None, 8.0), "2026-07-23", "gpt-5.4-pro"),
}
# fmt: on

# Ids that the API itself serves with another model.
CATALOG_SERVED_AS: dict[str, str] = {
    # OpenAI resolves the short id itself (openai-docs)
    "gpt-5.6": "gpt-5.6-sol",
}

# Names of ours that are never sent.
CATALOG_ALIASES: dict[str, str] = {
    # gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations)
    "gpt-5-auto": "gpt-6.1-sol",
}


# openai_responses.models ==============================================================
# Which model a name means, with the facts that decide what it may be sent.
#
# A name is looked for in this order, so that a real id always wins over a clever reading:
# 1. an id of the catalog, with or without a date at its end (the date is sent as given);
# 2. a name of ours: an alias of the catalog, `gpt-5-thinking-mini`, `gpt-5.2-instant`;
# 3. one of both with an effort at its end: `o3-mini-high`, `gpt-5-thinking-minimal`;
# 4. anything else is sent as it is, with the facts of its family, or with cautious ones.

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_SNAPSHOT_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2})$")
# One digit, because Azure spells gpt-3.5 as gpt-35.
_GPT_VERSION = re.compile(r"gpt-(\d)(?:\.(\d{1,2}))?(?!\d)")
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_THINKING_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-thinking(-mini|-nano)?$")
_INSTANT_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-instant$")
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


class ModelPrices(NamedTuple):
    """US dollars for a million tokens."""

    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """What a model takes, holds and costs; None where nobody says."""

    reasoning: bool  # takes a `reasoning` parameter
    efforts: tuple[str, ...]  # lowest first; empty: none, or unknown
    default_effort: str | None  # what the API uses when none is sent
    sampling: Literal["always", "with_none", "never"]  # temperature, top_p, logprobs
    summary: bool
    verbosity: bool
    phase: bool
    functions: bool
    vision: bool
    prefix_bound: bool  # reasoning is dropped when what preceded it changed
    max_output_tokens: int | None = None
    context: int | None = None
    shutdown: str | None = None  # ISO date
    successor: str | None = None
    prices: ModelPrices | None = None
    known_family: bool = True  # False: the name says nothing, the facts are cautious


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A name understood: what to send, what binds its reasoning, what to call it."""

    id: str  # sent as `model`
    family: str  # encrypted reasoning is readable inside one family
    effort: str | None  # the effort that the name stood for
    facts: ModelFacts
    name: str  # for people

    def lowest_effort(self) -> str | None:
        """The cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Tell whether the model accepts an effort; where nobody knows, it may try."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family


def resolve_model(name: str) -> ResolvedModel:
    """Understand any name; one that nobody knows is sent as it is."""
    model_id, effort = _named_model(name) or _model_with_effort(name) or (name, None)
    return ResolvedModel(
        id=model_id,
        family=_model_family(model_id),
        effort=effort,
        facts=_model_facts(model_id),
        name=_shown_name(model_id, effort),
    )


def _named_model(name: str) -> tuple[str, str | None] | None:
    """A real id or one of our names, neither with an effort at its end."""
    if name in CATALOG_ROWS or _model_family(name) in CATALOG_ROWS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    return _thinking_or_instant(name)


def _thinking_or_instant(name: str) -> tuple[str, str | None] | None:
    """ChatGPT's words for a model that thinks, or does not."""
    if match := _THINKING_NAME.match(name):
        row = CATALOG_ROWS.get(model_id := match[1] + (match[2] or ""))
        # From gpt-5.1 to 5.4 the default is not to think at all.
        thinks = "medium" if row and row.default_effort == "none" else None
        return (model_id, thinks) if row else None
    if match := _INSTANT_NAME.match(name):
        row = CATALOG_ROWS.get(match[1])
        return (match[1], "none") if row and "none" in row.efforts.split() else None
    return None


def _model_with_effort(name: str) -> tuple[str, str] | None:
    """A model and the effort at the end of the name, if the model may accept it."""
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    # gpt-5.1-codex-max was a model: a newer one of that name is not the effort max.
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    accepted = effort in facts.efforts if facts.efforts else facts.reasoning
    return (model_id, effort) if accepted else None


def _model_family(model_id: str) -> str:
    """The id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    row = CATALOG_ROWS.get(model_id) or CATALOG_ROWS.get(_model_family(model_id))
    if row:
        return _row_facts(row)
    if match := _WRAPPED_ID.match(model_id):
        # A fine-tuned model ends with its base but has prices of its own, and so
        # has a router.
        return replace(_model_facts(match[1]), prices=None)
    return _family_facts(model_id)


def _row_facts(row: CatalogRow) -> ModelFacts:
    traits = row.traits.split()
    return ModelFacts(
        reasoning="reasoning" in traits,
        efforts=tuple(row.efforts.split()),
        default_effort=row.default_effort,
        sampling=row.sampling,
        summary="summary" in traits,
        verbosity="verbosity" in traits,
        phase="phase" in traits,
        functions="functions" in traits,
        vision="vision" in traits,
        prefix_bound="prefix_bound" in traits,
        max_output_tokens=row.max_output_tokens,
        context=row.context,
        shutdown=row.shutdown,
        successor=row.successor,
        prices=ModelPrices(*row.prices) if row.prices else None,
    )


def _family_facts(model_id: str) -> ModelFacts:
    """The facts of an id outside the catalog, by family and version."""
    if _O_SERIES_ID.match(model_id):
        return replace(
            _REASONING_FACTS, efforts=("low", "medium", "high"), verbosity=False
        )
    match = _GPT_VERSION.match(model_id)
    if not match:
        return replace(_PLAIN_FACTS, known_family=False)
    version = (int(match[1]), int(match[2] or 0))
    if version < (5, 0):
        return _PLAIN_FACTS
    return replace(
        _REASONING_FACTS, phase=version >= (5, 3), prefix_bound=version >= (6, 2)
    )


def _shown_name(model_id: str, effort: str | None) -> str:
    """`gpt-5.6-sol` with effort high is GPT-5.6 Sol (high); other ids stay."""
    name, notes = model_id, [effort] if effort else []
    if _GPT_VERSION.match(model_id):
        if match := _SNAPSHOT_DATE.search(model_id):
            notes.insert(0, match[1])
        _, version, *words = _SNAPSHOT_DATE.sub("", model_id).split("-")
        shown = [_shown_word(word) for word in words if word != "latest"]
        name = " ".join((f"GPT-{version}", *shown))
    return f"{name} ({', '.join(notes)})" if notes else name


def _shown_word(word: str) -> str:
    return word if word in ("mini", "nano", "pro") else word.capitalize()


# The safe default for an unknown gpt of version 5 or later (responses-api.md §5): an
# effort or a verbosity only if someone asks, no sampling parameters, a summary.
_REASONING_FACTS = ModelFacts(
    reasoning=True,
    efforts=(),
    default_effort=None,
    sampling="never",
    summary=True,
    verbosity=True,
    phase=False,
    functions=True,
    vision=True,
    prefix_bound=False,
)
# For gpt-4 and for ids that say nothing (another vendor, an Azure deployment): a plain
# model refuses `reasoning` and its `include` with a 400, while a reasoning model works
# without them, so they stay away until an effort is asked for.
_PLAIN_FACTS = replace(
    _REASONING_FACTS,
    reasoning=False,
    sampling="always",
    summary=False,
    verbosity=False,
)


# openai_responses.items ===============================================================
# Verbatim wire items, asked their questions.
#
# An item stays the dict that the API sent: what it holds beyond the fields we know
# (`namespace`, `caller`, `fingerprint`, fields of tomorrow) goes back as it came.

Item = dict[str, Any]

CALL_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that we answer, by the type of their answer."""

_NEVER_REPLAYED = ("id", "status", "created_by")
"""With `store: false` an id would be looked up and not found, and Azure refuses
`status` on reasoning (responses-api.md §2.1, rules 1 to 3, 6, 7 and 9)."""


def item_type(item: Mapping[str, Any]) -> str:
    """Return the type; a message in its short form has none."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_call(item: Mapping[str, Any]) -> bool:
    """Say whether somebody on our side has to answer `item`."""
    return item_type(item) in CALL_OUTPUTS


def is_call_output(item: Mapping[str, Any]) -> bool:
    """Say whether `item` answers a call."""
    return item_type(item) in CALL_OUTPUTS.values()


def is_reasoning(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is a reasoning item."""
    return item_type(item) == "reasoning"


def has_encrypted_reasoning(item: Mapping[str, Any]) -> bool:
    """Say whether `item` is reasoning that can be given back without being stored."""
    return is_reasoning(item) and bool(item.get("encrypted_content"))


def message_text(item: Mapping[str, Any]) -> str:
    """Return the text a person reads in a message item: its text and its refusals."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part_text(part) for part in parts if isinstance(part, dict))


def part_text(part: Mapping[str, Any]) -> str:
    """Return the text of one content part, or nothing."""
    text = part.get("text") or part.get("refusal")
    return text if isinstance(text, str) else ""


def replayed(item: Item) -> Item:
    """Return `item` as it is given back in a later request.

    Everything that the model produced stays byte for byte; ids, states and absent
    values go, also those inside the content of a message (`logprobs`).
    """
    kept = {key: value for key, value in item.items() if _is_replayed(key, value)}
    if item_type(item) == "message" and isinstance(kept.get("content"), list):
        parts = [part for part in kept["content"] if isinstance(part, dict)]
        kept["content"] = [_replayed_part(part) for part in parts]
    return kept


def _is_replayed(key: str, value: object) -> bool:
    return key not in _NEVER_REPLAYED and value is not None


def _replayed_part(part: Item) -> Item:
    return {k: v for k, v in part.items() if k != "logprobs" and v is not None}


def paired_places(items: Sequence[Mapping[str, Any]]) -> set[int]:
    """Return the places of the calls and outputs that belong together.

    An output answers a call in front of it, of its own kind; a `call_id` counts once.
    """
    calls: dict[str, int] = {}
    outputs: dict[str, int] = {}
    for place, item in enumerate(items):
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            continue
        if is_call(item):
            calls.setdefault(call_id, place)
        elif call_id in calls and call_id not in outputs:
            call = items[calls[call_id]]
            if CALL_OUTPUTS[item_type(call)] == item_type(item):
                outputs[call_id] = place
    return {calls[call_id] for call_id in outputs} | set(outputs.values())


def without_orphans(items: Iterable[Item]) -> list[Item]:
    """Return `items` without half pairs, and without reasoning that led to one.

    The API refuses a call without an output and an output without a call; reasoning
    belongs to the item it produced, so it leaves with it (responses-api.md §2.1,
    rule 5 and the recommended algorithm, e).
    """
    rows = list(items)
    pairs = paired_places(rows)
    kept: list[Item] = []
    dangling: list[Item] = []  # reasoning whose product has not come yet
    lost_call = False
    for place, item in enumerate(rows):
        if place not in pairs and (is_call(item) or is_call_output(item)):
            lost_call = lost_call or is_call(item)
            continue
        # What led to several calls stays as long as one of them does.
        if (lost_call and not is_call(item)) or _comes_from_outside(item):
            dangling = []
        lost_call = False
        if is_reasoning(item):
            dangling.append(item)
        else:
            kept += [*dangling, item]
            dangling = []
    return kept


def _comes_from_outside(item: Mapping[str, Any]) -> bool:
    """Say whether a model cannot have produced `item`."""
    return is_call_output(item) or item.get("role") in ("user", "system", "developer")


# openai_responses.usage ===============================================================
# Tokens, added up over the turns of a run.


@dataclass(frozen=True, slots=True)
class Usage:
    """Counts of one response, or of several added together.

    `cached` is part of `input`, `reasoning` part of `output` (responses-api.md §4).
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum, field by field; what was not told counts as nothing."""
    if one is None or other is None:
        return one or other
    pairs = zip(astuple(one), astuple(other), strict=True)
    return Usage(*(a + b for a, b in pairs))


def read_usage(wire: object) -> Usage | None:
    """Return the counts of a response's `usage`, or None when it has none.

    Other servers leave fields out or send null; what is missing counts as nothing.
    """
    if not isinstance(wire, Mapping):
        return None
    inputs = _mapping(wire.get("input_tokens_details"))
    outputs = _mapping(wire.get("output_tokens_details"))
    given, made = _count(wire.get("input_tokens")), _count(wire.get("output_tokens"))
    return Usage(
        input=given,
        output=made,
        total=_count(wire.get("total_tokens")) or given + made,
        cached=_count(inputs.get("cached_tokens")),
        cache_writes=_count(inputs.get("cache_write_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


# openai_responses.run_events ==========================================================
# The closed union of what a run reports to those who show it or keep it.
#
# `index` counts the output items of the whole run, over all its turns.


@dataclass(frozen=True, slots=True)
class ItemStarted:
    """An item began; `item` is what is known of it so far."""

    index: int
    item: Item


@dataclass(frozen=True, slots=True)
class Grew:
    """A text of the item at `index` grew by `text`.

    `kind` and `part` are those of `events.Delta`.
    """

    index: int
    kind: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ItemEnded:
    """An item is whole: `item` is the wire dict that counts, byte for byte."""

    index: int
    item: Item


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """One response ended in an orderly way; `usage` is None when it was not told."""

    response_id: str
    status: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of every run, however it ended.

    `usage` adds up all turns, `last_usage` is that of the last one; `output` holds the
    items of the whole run that ended.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()


RunEvent = ItemStarted | Grew | ItemEnded | TurnEnded | RunEnded


def joined(events: Iterable[RunEvent]) -> list[RunEvent]:
    """Return `events` with neighbouring growth of one text as one event."""
    out: list[RunEvent] = []
    for place, neighbours in groupby(events, _place):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, Grew)]
            out.append(Grew(*place, "".join(texts)))
    return out


def _place(event: RunEvent) -> tuple[int, str, int] | None:
    """Return what tells one growing text from another; None for all other events."""
    return (event.index, event.kind, event.part) if isinstance(event, Grew) else None


# openai_responses.sse =================================================================
# Bytes of an event stream in, server-sent events out.
#
# Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
# stream". There is no limit on a line: a `response.completed` snapshot or a partial
# image easily passes a megabyte, which is why the line reader of aiohttp cannot be used
# (responses-api.md §3).


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline.

    A tuple, because there is one for each token: it is made in half the time.
    """

    event: str
    data: str


class EventStreamDecoder:
    """Turns chunks, cut anywhere, into events.

    The bytes of an unfinished line are kept as they came and joined once, when the
    line ends: the work is linear in the length of the stream.
    """

    def __init__(self) -> None:
        """Start before the first byte."""
        self._fragments: list[bytes] = []
        self._after_cr = False
        self._event = b""
        self._lines: list[bytes] = []

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):  # the second half of a CRLF
                chunk = chunk[1:]
        if b"\n" not in chunk and b"\r" not in chunk:
            self._fragments.append(chunk)
            return []
        if self._fragments:
            self._fragments.append(chunk)
            chunk = b"".join(self._fragments)
            self._fragments = []
        return self._take_lines(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event that the end of the stream cut off after its last line.

        The standard drops it. Here a terminal event whose blank line is missing is
        worth more than the rule: without it a finished answer would count as cut.
        """
        rest = b"".join(self._fragments)
        self._fragments = []
        return self._take_lines(rest + b"\n\n")

    def _take_lines(self, text: bytes) -> list[ServerSentEvent]:
        """Read the whole lines of `text`; keep what follows the last line end."""
        lines = text.splitlines()
        if text.endswith(b"\r"):
            self._after_cr = True
        elif not text.endswith(b"\n"):
            self._fragments.append(lines.pop())
        return list(self._dispatched(lines))

    def _dispatched(self, lines: list[bytes]) -> Iterator[ServerSentEvent]:
        """Yield the events that a blank line among `lines` ends."""
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            elif not line:
                if self._lines:
                    name = self._event.decode("utf-8", "replace")
                    text = b"\n".join(self._lines).decode("utf-8", "replace")
                    yield ServerSentEvent(name, text)
                self._event, self._lines = b"", []
            # id, retry, comments and unknown fields carry nothing we act on


# openai_responses.events ==============================================================
# The closed union of stream events that we act on.
#
# All other events, also those that do not exist yet, are `Unknown`: they keep the
# connection alive, nothing more (responses-api.md §0.5). Events are told apart by their
# `type` alone; the `event:` line only repeats it.


@dataclass(frozen=True, slots=True)
class Delta:
    """More of a text that grows while we read.

    `kind` says which: the "text" or "refusal" of a message, the "summary" or the raw
    "reasoning" of a reasoning item, the "arguments" of a call (a custom call's input
    too). `part` is the content or summary index, 0 for arguments.
    """

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Whole:
    """A text that has ended: it replaces the deltas of the same kind and place."""

    kind: str
    output_index: int
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """`response.output_item.added`: an item began; its content is still missing."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ItemDone:
    """`response.output_item.done`: the item as it counts, encrypted content included."""

    output_index: int
    item: Item


@dataclass(frozen=True, slots=True)
class ResponseEnded:
    """`response.completed`, `.incomplete` or `.failed`, with the final snapshot."""

    status: str
    response: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class StreamError:
    """`error`: the request failed; no response object comes with it."""

    error: ApiError


@dataclass(frozen=True, slots=True)
class Unknown:
    """Anything else, by its type."""

    type: str


StreamEvent = (
    Delta | Whole | ItemAdded | ItemDone | ResponseEnded | StreamError | Unknown
)

_Reader = Callable[[Mapping[str, Any]], StreamEvent]

KNOWN_TYPES = frozenset(
    {
        "error",
        "response.audio.delta",
        "response.audio.done",
        "response.audio.transcript.delta",
        "response.audio.transcript.done",
        "response.code_interpreter_call.completed",
        "response.code_interpreter_call.in_progress",
        "response.code_interpreter_call.interpreting",
        "response.code_interpreter_call_code.delta",
        "response.code_interpreter_call_code.done",
        "response.compaction.compacting",
        "response.completed",
        "response.content_part.added",
        "response.content_part.done",
        "response.created",
        "response.custom_tool_call_input.delta",
        "response.custom_tool_call_input.done",
        "response.failed",
        "response.file_search_call.completed",
        "response.file_search_call.in_progress",
        "response.file_search_call.searching",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.image_generation_call.completed",
        "response.image_generation_call.generating",
        "response.image_generation_call.in_progress",
        "response.image_generation_call.partial_image",
        "response.in_progress",
        "response.incomplete",
        "response.mcp_call.completed",
        "response.mcp_call.failed",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_list_tools.completed",
        "response.mcp_list_tools.failed",
        "response.mcp_list_tools.in_progress",
        "response.output_item.added",
        "response.output_item.done",
        "response.output_text.annotation.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.queued",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.refusal.delta",
        "response.refusal.done",
        "response.shell_call_command.added",
        "response.shell_call_command.delta",
        "response.shell_call_command.done",
        "response.shell_call_output_content.delta",
        "response.shell_call_output_content.done",
        "response.web_search_call.completed",
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
    }
)
"""The 59 event types of the API as of 2026-11-21; a new one is worth a debug line."""


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent when it is not a JSON object."""
    if event.data == "[DONE]":  # other servers end their streams with it
        return Unknown("[DONE]")
    try:
        wire = json.loads(event.data)
    except (ValueError, RecursionError):  # the latter for thousands of brackets
        raise MalformedEvent("The server sent an event that is not JSON.") from None
    if not isinstance(wire, dict):
        raise MalformedEvent("The server sent an event that is not an object.")
    kind = wire.get("type") or event.event
    read = _READERS.get(kind) if isinstance(kind, str) else None
    if read is None:
        return Unknown(str(kind))
    try:
        return read(wire)
    except (KeyError, TypeError, AttributeError):
        raise MalformedEvent(
            f"The server sent a {kind} event without the fields it must have."
        ) from None


def joined_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events` with neighbouring deltas of one text as one delta."""
    out: list[StreamEvent] = []
    for place, neighbours in groupby(events, _delta_place):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, Delta)]
            out.append(Delta(*place, "".join(texts)))
    return out


def _delta_place(event: StreamEvent) -> tuple[str, int, int] | None:
    """Return what tells one growing text from another; None for all other events."""
    if not isinstance(event, Delta):
        return None
    return (event.kind, event.output_index, event.part)


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, of a response or of either shape of the event."""
    while isinstance(wire, Mapping) and isinstance(wire.get("error"), Mapping | str):
        wire = wire["error"]
    if isinstance(wire, str):
        return ApiError(message=wire)
    if not isinstance(wire, Mapping):
        return ApiError()
    message = wire.get("message") or wire.get("detail")
    return ApiError(
        code=_text_or_none(wire.get("code")),
        type=_text_or_none(wire.get("type")),
        param=_text_or_none(wire.get("param")),
        message=message if isinstance(message, str) else "",
    )


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _index(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError
    return value


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _delta_reader(kind: str, part: str) -> _Reader:
    """Return the reader of a delta whose place in its item is named by `part`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        place = _index(wire.get(part, 0))
        return Delta(kind, _index(wire["output_index"]), place, _text(wire["delta"]))

    return read


def _whole_reader(kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a `*.done` event that holds the whole text in `field`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        place = _index(wire.get(part, 0))
        return Whole(kind, _index(wire["output_index"]), place, _text(wire[field]))

    return read


def _read_item_added(wire: Mapping[str, Any]) -> StreamEvent:
    return ItemAdded(_index(wire["output_index"]), _object(wire["item"]))


def _read_item_done(wire: Mapping[str, Any]) -> StreamEvent:
    return ItemDone(_index(wire["output_index"]), _object(wire["item"]))


def _ended_reader(status: str) -> _Reader:
    """Return the reader of the last event of a response that ends with `status`."""

    def read(wire: Mapping[str, Any]) -> StreamEvent:
        return ResponseEnded(status, _object(wire["response"]))

    return read


def _read_error(wire: Mapping[str, Any]) -> StreamEvent:
    # The flat shape has its own `type`, which says "error" and nothing more.
    flat = {key: value for key, value in wire.items() if key != "type"}
    return StreamError(read_api_error(flat))


_READERS: Mapping[str, _Reader] = {
    "response.output_text.delta": _delta_reader("text", "content_index"),
    "response.output_text.done": _whole_reader("text", "content_index", "text"),
    "response.refusal.delta": _delta_reader("refusal", "content_index"),
    "response.refusal.done": _whole_reader("refusal", "content_index", "refusal"),
    "response.reasoning_summary_text.delta": _delta_reader("summary", "summary_index"),
    "response.reasoning_summary_text.done": _whole_reader(
        "summary", "summary_index", "text"
    ),
    "response.reasoning_text.delta": _delta_reader("reasoning", "content_index"),
    "response.reasoning_text.done": _whole_reader("reasoning", "content_index", "text"),
    "response.function_call_arguments.delta": _delta_reader("arguments", "part"),
    "response.function_call_arguments.done": _whole_reader(
        "arguments", "part", "arguments"
    ),
    "response.custom_tool_call_input.delta": _delta_reader("arguments", "part"),
    "response.custom_tool_call_input.done": _whole_reader("arguments", "part", "input"),
    "response.output_item.added": _read_item_added,
    "response.output_item.done": _read_item_done,
    "response.completed": _ended_reader("completed"),
    "response.incomplete": _ended_reader("incomplete"),
    "response.failed": _ended_reader("failed"),
    "error": _read_error,
}


# openai_responses.transport ===========================================================
# The only module that opens a connection.
#
# One pooled session serves all runs of an event loop: it is opened by the first run and
# closed when none was under way for a while. Errors of aiohttp become ours here, once.

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_CONNECT_SECONDS = 30.0
_SILENCE_SECONDS = 300.0
"""Reasoning at high effort is silent for minutes; there is no limit on the whole."""
_IDLE_SECONDS = 60.0
"""Less than the keep-alive of OpenAI's front end, so that we close first."""
_DRAIN_SECONDS = 1.0
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; fewer would queue busy servers."""
_MAX_ERROR_BODY = 64 * 1024

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and with which key.

    Neither is in a `repr`: an address can hold a password.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)

    def url(self, path: str) -> str:
        """Return the address of `path`; raises InvalidRequest for an unusable base."""
        return normalized_base_url(self.base_url) + path

    @property
    def host(self) -> str:
        """The server's name; raises InvalidRequest for an unusable base."""
        return urlsplit(normalized_base_url(self.base_url)).hostname or ""


def normalized_base_url(text: str) -> str:
    """Return `text` as the address that paths are appended to.

    Takes what people paste: with or without `/v1`, with a slash at the end, or with
    the `/responses` of the endpoint itself.
    """
    parts = _url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise InvalidRequest(
            "BASE_URL is not an http or https address. An administrator has to "
            f"correct it in the valves of this pipe, for example {DEFAULT_BASE_URL}."
        )
    if "@" in parts.netloc:
        raise InvalidRequest(
            "BASE_URL holds a user name or a password, which cannot be sent beside "
            "API_KEY. An administrator has to take it out in the valves of this pipe."
        )
    path = parts.path.rstrip("/").removesuffix("/responses").rstrip("/") or "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def _url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else."""
    try:
        parts = urlsplit(text)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address, a port that is no number
        return None
    return parts if sound and parts.scheme in ("http", "https") else None


class Answer:
    """A response whose status is fine and whose body is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        """Wrap `response`; whoever opened it closes it."""
        self._response = response

    @property
    def is_stream(self) -> bool:
        """Say whether the body is an event stream."""
        return self._response.content_type == "text/event-stream"

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        try:
            async for chunk in self._response.content.iter_any():
                yield chunk
        except _NETWORK_ERRORS:
            raise ConnectionFailed(
                "The connection to the model's server broke."
            ) from None

    async def drain(self) -> None:
        """Read what is left after the last event, so that the connection lives on."""
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._response.content.iter_any():
                    pass
        except _NETWORK_ERRORS:
            self._response.close()

    async def response_object(self) -> dict[str, Any]:
        """Return the body as the API's response object."""
        try:
            wire = json.loads(await self._response.read())
        except _NETWORK_ERRORS:
            raise ConnectionFailed(
                "The connection to the model's server broke."
            ) from None
        except (ValueError, RecursionError):
            wire = None
        if isinstance(wire, dict) and isinstance(wire.get("output"), list):
            return wire
        if isinstance(wire, dict) and wire.get("error"):
            error = read_api_error(wire)
            raise ApiRefused(refusal_sentence(500, error, "this model"), 200, error)
        raise UnreadableAnswer(
            "The server at BASE_URL answered, but not as the Responses API does. "
            "An administrator has to check BASE_URL in the valves of this pipe."
        )


class _Pool:
    """The session of one event loop, lent to the runs that are under way."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if need be; the last return starts the clock."""
        if self._timer is not None:
            self._timer.cancel()
        if self._session is None:
            self._session = _new_session()
        self._lent += 1
        try:
            yield self._session
        finally:
            self._lent -= 1
            if self._lent == 0:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._idle_seconds, self._close_later)

    async def close(self) -> None:
        """Close the session now, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _close_later(self) -> None:
        session, self._session = self._session, None  # at once: no run may borrow it
        if session is None:
            return
        # A task, held until it is done: a connector closed straight from a timer
        # warns "never awaited" on aiohttp 3.14.
        task = asyncio.get_running_loop().create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Connections:
    """The sessions of one pipe, one for each event loop that runs it."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._idle_seconds = idle_seconds
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    @asynccontextmanager
    async def post(
        self, endpoint: Endpoint, path: str, payload: dict[str, Any]
    ) -> AsyncIterator[Answer]:
        """Send `payload` and lend the answer.

        Raises ApiRefused, ConnectionFailed or InvalidRequest; leaving early closes
        the connection, and with it the work upstream.
        """
        url = endpoint.url(path)
        with self._pool().lend() as session:
            response = await _send(session, endpoint, url, payload)
            try:
                if response.status >= 400:
                    raise await _refusal(response, str(payload.get("model", "")))
                yield Answer(response)
            finally:
                response.close()  # nothing happens when it was read to its end

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        return self._pools.setdefault(loop, _Pool(self._idle_seconds))


def _new_session() -> aiohttp.ClientSession:
    timeout = aiohttp.ClientTimeout(
        total=None, sock_connect=_CONNECT_SECONDS, sock_read=_SILENCE_SECONDS
    )
    connector = aiohttp.TCPConnector(limit=_MAX_CONNECTIONS)
    return aiohttp.ClientSession(connector=connector, timeout=timeout)


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    url: str,
    payload: dict[str, Any],
) -> aiohttp.ClientResponse:
    """Return the response once its head is there."""
    # A lone surrogate, from a broken copy and paste, must not stop the request.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")
    headers = {
        "Authorization": f"Bearer {endpoint.api_key.strip()}",
        "Content-Type": "application/json",
    }
    try:
        return await session.post(url, data=body, headers=headers)
    except aiohttp.ClientSSLError:
        raise ConnectionFailed(
            f"The certificate of {endpoint.host} is not trusted here. "
            "An administrator has to check BASE_URL in the valves of this pipe."
        ) from None
    except _NETWORK_ERRORS:
        raise ConnectionFailed(
            f"The model's server at {endpoint.host} cannot be reached. Try again; if "
            "it lasts, an administrator has to check BASE_URL in the valves."
        ) from None
    except ValueError:  # a line break in the key, a host that no name server knows
        raise InvalidRequest(
            "API_KEY or BASE_URL holds characters that cannot be sent. "
            "An administrator has to correct it in the valves of this pipe."
        ) from None


async def _refusal(response: aiohttp.ClientResponse, model: str) -> ApiRefused:
    """Return the error that a response with a bad status stands for."""
    try:
        body = await response.content.read(_MAX_ERROR_BODY)
        error = read_api_error(json.loads(body))
    except (*_NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: the status says it
    return ApiRefused(
        refusal_sentence(response.status, error, model), response.status, error
    )


# openai_responses.ulids ===============================================================
# The ids of kept items: ULIDs, 26 characters that sort by time.
#
# Layout of the ULID specification: 48 bits of milliseconds, 80 random bits, written in
# Crockford's alphabet. Our own lines, because a package would have to be installed on
# the user's server.

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    """Return a fresh id."""
    return encode_ulid(time.time_ns() // 1_000_000, secrets.randbits(80))


def encode_ulid(milliseconds: int, randomness: int) -> str:
    """Return the id for a time since 1970 and 80 bits of randomness."""
    number = (milliseconds << 80) | randomness
    digits = [_CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "".join(digits)


# openai_responses.turn ================================================================
# The state machine of one response.
#
# Events in, run events out, no effect anywhere. An item is *unknown* until its
# `output_item.added`, then *open*, and *ended* from its `output_item.done` on:
#
#     event \ state    unknown            open              ended
#     delta            kept for later     shown             ignored
#     whole text       kept for later     the rest shown    ignored
#     added            opened             ignored           ignored
#     done             opened and ended   ended             ignored
#     final snapshot   opened and ended   ended             ignored
#
# "Kept for later" is shown when the item is known: the name of a call comes from the
# item alone (responses-api.md §3). What follows the end of the response is ignored in
# every state. Texts that end are authoritative: what a person has
# not seen of them yet is shown, and the ended item is the wire's own dict.

_Place = tuple[str, int]


class Turn:
    """One response, from its first event to its last."""

    def __init__(self, first_index: int = 0) -> None:
        """Count items from `first_index` on, the number of items of earlier turns."""
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self._first = first_index
        self._early: dict[int, list[Delta | Whole]] = {}
        self._open: dict[int, dict[_Place, list[str]]] = {}
        self._ended: dict[int, Item] = {}

    @property
    def output(self) -> list[Item]:
        """The items that ended, in the order of the API."""
        return [self._ended[index] for index in sorted(self._ended)]

    @property
    def has_begun(self) -> bool:
        """Whether something of the answer has arrived."""
        return bool(self._open or self._ended or self._early)

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event; return what it means to those who watch the run."""
        return [] if self.ending else self._take(event)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case Delta():
                return self._grow(event)
            case Whole():
                return self._replace(event)
            case ItemAdded():
                return self._start(event.output_index, event.item)
            case ItemDone():
                return self._end(event.output_index, event.item)
            case ResponseEnded():
                return self._finish(event)
            case StreamError():
                self.ending = ending_of_failure("error", event.error)
        return []

    def _grow(self, event: Delta) -> list[RunEvent]:
        texts = self._open.get(event.output_index)
        if texts is None:
            self._keep(event)
            return []
        if not event.text:
            return []
        texts.setdefault((event.kind, event.part), []).append(event.text)
        index = self._first + event.output_index
        return [Grew(index, event.kind, event.part, event.text)]

    def _replace(self, event: Whole) -> list[RunEvent]:
        if event.output_index not in self._open:
            self._keep(event)
            return []
        return self._show_rest(event.output_index, (event.kind, event.part), event.text)

    def _keep(self, event: Delta | Whole) -> None:
        if event.output_index not in self._ended:
            self._early.setdefault(event.output_index, []).append(event)

    def _start(self, output_index: int, item: Item) -> list[RunEvent]:
        if output_index in self._open or output_index in self._ended:
            return []
        self._open[output_index] = {}
        events: list[RunEvent] = [ItemStarted(self._first + output_index, item)]
        for early in self._early.pop(output_index, ()):
            events += self._take(early)
        return events

    def _end(self, output_index: int, item: Item) -> list[RunEvent]:
        if output_index in self._ended:
            return []
        events = self._start(output_index, item)
        for place, text in item_texts(item):
            events += self._show_rest(output_index, place, text)
        del self._open[output_index]
        self._ended[output_index] = item
        return [*events, ItemEnded(self._first + output_index, item)]

    def _show_rest(self, output_index: int, place: _Place, text: str) -> list[RunEvent]:
        """Show what `text` has beyond its deltas.

        A text that contradicts its deltas cannot be shown as growth: the ended item
        corrects it.
        """
        texts = self._open[output_index]
        shown = "".join(texts.get(place, ()))
        texts[place] = [text]
        if len(text) <= len(shown) or not text.startswith(shown):
            return []
        index = self._first + output_index
        return [Grew(index, *place, text[len(shown) :])]

    def _finish(self, event: ResponseEnded) -> list[RunEvent]:
        response = event.response
        self.usage = read_usage(response.get("usage"))
        self.ending = _ending_of(event.status, response)
        events: list[RunEvent] = []
        output = response.get("output")
        for output_index, item in enumerate(output if isinstance(output, list) else ()):
            if isinstance(item, dict):
                events += self._end(output_index, item)
        response_id = str(response.get("id") or "")
        return [
            *events,
            *self.close(),
            TurnEnded(response_id, event.status, self.usage),
        ]

    def close(self) -> list[RunEvent]:
        """Show what messages said that were never announced; nothing else comes."""
        events: list[RunEvent] = []
        for output_index in sorted(self._early):
            kinds = {early.kind for early in self._early[output_index]}
            if kinds & {"text", "refusal"}:
                message = {"type": "message", "role": "assistant", "content": []}
                events += self._start(output_index, message)
        return events


def item_texts(item: Mapping[str, Any]) -> Iterator[tuple[_Place, str]]:
    """Yield the place and the text of everything in `item` that deltas can grow."""
    match item_type(item):
        case "message":
            for part, content in _parts(item.get("content")):
                kind = "refusal" if content.get("type") == "refusal" else "text"
                yield (kind, part), _text_or_empty(content.get(kind))
        case "reasoning":
            for part, content in _parts(item.get("summary")):
                yield ("summary", part), _text_or_empty(content.get("text"))
            for part, content in _parts(item.get("content")):
                yield ("reasoning", part), _text_or_empty(content.get("text"))
        case "function_call":
            yield ("arguments", 0), _text_or_empty(item.get("arguments"))
        case "custom_tool_call":
            yield ("arguments", 0), _text_or_empty(item.get("input"))


def _parts(value: object) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for index, part in enumerate(value if isinstance(value, list) else ()):
        if isinstance(part, Mapping):
            yield index, part


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _ending_of(status: str, response: Mapping[str, Any]) -> Ending:
    if status == "incomplete":
        details = response.get("incomplete_details")
        reason = details.get("reason") if isinstance(details, Mapping) else None
        return ending_of_incomplete(reason if isinstance(reason, str) else None)
    if status == "failed":
        return ending_of_failure("failed", read_api_error(response.get("error")))
    return COMPLETED


# openai_responses.request =============================================================
# Parameters in, one payload out.
#
# What is sent is decided here alone: the caller's own keys win over the settings, keys
# that the API does not have are left out, and so are parameters that the model rejects
# (responses-api.md §0.8, §1).

_SAMPLING = ("temperature", "top_p", "top_logprobs")

_PASSED_ON = frozenset(
    {
        "access_programs",
        "context_management",
        "image",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "moderation",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "temperature",
        "tool_choice",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
"""Keys of a caller that go to the API as they are. Those that would store something
there or name what is stored (`store`, `background`, `conversation`,
`previous_response_id`, `prompt`) are not the caller's to set; `user` is deprecated."""

_RENAMED: Mapping[str, str] = {
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
}
"""Chat Completions' names for what the API calls otherwise."""


class ResponsesRequest(BaseModel):
    """What is sent to `POST /responses`, in the API's own words."""

    # JSON has no NaN and no infinity.
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: str
    input: list[Item]
    instructions: str | None = None
    stream: bool = True
    store: bool = False
    include: list[str] | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Item] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = None
    max_tool_calls: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_logprobs: int | None = None
    truncation: str | None = None
    service_tier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: str | None = None
    safety_identifier: str | None = None
    context_management: list[dict[str, Any]] | None = None
    metadata: dict[str, str] | None = None
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None

    def payload(self) -> dict[str, Any]:
        """Return the JSON object to send; what was not set is not in it."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the administrator and the user chose, for requests that say nothing.

    `effort`, `summary` and `verbosity` are None when nothing was chosen.
    """

    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    stream: bool = True
    encrypted_reasoning: bool = True
    tools: Sequence[Item] = field(default=())


def build_request(
    model: ResolvedModel,
    instructions: str,
    items: Sequence[Item],
    body: Mapping[str, Any],
    settings: Settings,
) -> ResponsesRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent.

    `body` holds the caller's keys, in the names of Chat Completions or of the API.
    The effort is the caller's, else the user's, else the one that the alias names.
    """
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    effort = _effort(model, body, settings)
    passed = {k: v for k, v in _renamed(body).items() if k in _PASSED_ON}
    if not _takes_sampling(model, effort):
        passed = {k: v for k, v in passed.items() if k not in _SAMPLING}
    fields = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream,
        "include": _include(model, effort, settings),
        "reasoning": _reasoning(model, effort, body, settings) or None,
        "text": _text_object(model, body, settings) or None,
        "tools": list(settings.tools) or None,
        **passed,
    }
    try:
        return ResponsesRequest(**fields)
    except ValidationError as error:
        raise InvalidRequest(_first_complaint(error)) from None


def _effort(
    model: ResolvedModel, body: Mapping[str, Any], settings: Settings
) -> str | None:
    """Return the effort to send, or None to leave it to the model."""
    asked = _own(body, "reasoning").get("effort") or body.get("reasoning_effort")
    chosen = asked or settings.effort or model.effort
    if not isinstance(chosen, str):
        return None
    return chosen if model.takes_effort(chosen) else None


def _takes_sampling(model: ResolvedModel, effort: str | None) -> bool:
    """Say whether temperature, top_p and top_logprobs may be sent."""
    if model.facts.sampling == "with_none":
        return (effort or model.facts.default_effort) == "none"
    return model.facts.sampling == "always"


def _reasoning(
    model: ResolvedModel,
    effort: str | None,
    body: Mapping[str, Any],
    settings: Settings,
) -> dict[str, Any]:
    """Return the `reasoning` object: the caller's own keys, then ours."""
    if not _reasons(model, effort):
        return {}
    own = {k: v for k, v in _own(body, "reasoning").items() if k != "effort"}
    resolved = effort or model.facts.default_effort
    if settings.summary and model.facts.summary and resolved != "none":
        own.setdefault("summary", settings.summary)
    return {"effort": effort, **own} if effort else own


def _text_object(
    model: ResolvedModel, body: Mapping[str, Any], settings: Settings
) -> dict[str, Any]:
    """Return the `text` object: the caller's own keys, then the verbosity."""
    own = _own(body, "text")
    verbosity = own.pop("verbosity", None) or body.get("verbosity")
    verbosity = verbosity or settings.verbosity
    if verbosity and model.facts.verbosity:
        own["verbosity"] = verbosity
    return own


def _include(
    model: ResolvedModel, effort: str | None, settings: Settings
) -> list[str] | None:
    """Ask for the reasoning itself: without a store there is no other way back."""
    wanted = _reasons(model, effort) and settings.encrypted_reasoning
    return ["reasoning.encrypted_content"] if wanted else None


def _reasons(model: ResolvedModel, effort: str | None) -> bool:
    """Say whether the model reasons; one that nobody knows does if it is told to."""
    return model.facts.reasoning or effort is not None


def _renamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the caller's keys in the API's names; null means not given.

    The API has no `stop`; as in the seed it only asks for `truncation: "disabled"`.
    """
    given = {key: value for key, value in body.items() if value is not None}
    for theirs, ours in _RENAMED.items():
        if theirs in given:
            given.setdefault(ours, given.pop(theirs))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    return given


def _own(body: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the caller's object of that name; null in it means not given, too."""
    value = body.get(key)
    pairs = value.items() if isinstance(value, Mapping) else ()
    return {name: given for name, given in pairs if given is not None}


def _first_complaint(error: ValidationError) -> str:
    """Return the first complaint as a sentence, without the value it is about."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[
        0
    ]
    place = ".".join(str(step) for step in first["loc"])
    return f"The setting {place} cannot be sent: {first['msg']}."


# openai_responses.run =================================================================
# A whole request, as a stream of run events.
#
# The loop knows neither host nor valve: what it needs comes in frozen inputs, what
# happens goes out as events, and the last of them says how the run ended.


@dataclass(frozen=True, slots=True)
class Limits:
    """How a run behaves towards those who watch it.

    `join_seconds` is the shortest time between two events that show more of an
    answer; what arrives meanwhile is shown together.
    """

    join_seconds: float = 0.05


_THOUGHT_SHARE = 0.2
"""Growing reasoning is read for a fifth of that time at once, because the first words
of the answer must not wait for it."""


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
) -> AsyncGenerator[RunEvent, None]:
    """Send `request` and report what happens; ends with exactly one RunEnded.

    Raises nothing of ours: a refusal is an ending. Cancelling it, or closing the
    generator, closes the connection.
    """
    turn = Turn()
    failure: Ending | None = None
    payload = request.payload()
    try:
        async with connections.post(endpoint, "/responses", payload) as answer:
            async with aclosing(_turn_events(answer, turn, limits)) as events:
                async for event in events:
                    yield event
            await answer.drain()
    except ResponsesError as error:
        failure = _ending_of_error(error, turn)
    for event in turn.close():
        yield event
    ending = turn.ending or failure or CUT
    yield RunEnded(ending, turn.usage, turn.usage, tuple(turn.output))


def _ending_of_error(error: ResponsesError, turn: Turn) -> Ending:
    """Return how a run ended that one of our errors stopped."""
    return CUT if turn.has_begun else Ending("refused", sentence=str(error))


async def _turn_events(
    answer: Answer, turn: Turn, limits: Limits
) -> AsyncGenerator[RunEvent, None]:
    """Yield the events of one response, streamed or not."""
    if not answer.is_stream:
        response = await answer.response_object()
        status = str(response.get("status") or "completed")
        for event in turn.feed(ResponseEnded(status, response)):
            yield event
        return
    async with aclosing(_batches(answer)) as batches:
        async for batch in batches:
            began = monotonic_seconds()
            events, malformed = _told(batch, turn)
            for told in events:
                yield told
            if malformed:
                raise malformed
            if turn.ending:
                return
            await _let_deltas_gather(events, began, limits)


def _told(
    batch: list[ServerSentEvent], turn: Turn
) -> tuple[list[RunEvent], MalformedEvent | None]:
    """Return what `batch` means, up to the first event that cannot be read.

    Deltas are joined before the turn takes them: it then works once a batch.
    """
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            read.append(parse_event(event))
    except MalformedEvent as error:
        malformed = error
    events = [told for event in joined_deltas(read) for told in turn.feed(event)]
    return events, malformed


async def _batches(answer: Answer) -> AsyncGenerator[list[ServerSentEvent], None]:
    """Yield the events of each piece of the body that arrived."""
    decoder = EventStreamDecoder()
    async with aclosing(answer.chunks()) as chunks:
        async for chunk in chunks:
            yield decoder.feed(chunk)
    yield decoder.close()


async def _let_deltas_gather(
    events: list[RunEvent], began: float, limits: Limits
) -> None:
    """Leave what follows a delta in the connection's buffer for a moment.

    Reading less often is what makes long answers cheap: one pass then serves all the
    deltas that arrived. The first delta after a pause is never held back.
    """
    last = events[-1] if events else None
    if not isinstance(last, Grew) or limits.join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = monotonic_seconds() - began
    await asyncio.sleep(max(0.0, limits.join_seconds * share - spent))


# openai_responses.origin ==============================================================
# Who made an item: reasoning is readable only for its own family and endpoint.
#
# Encrypted reasoning of another model, server or organisation is refused or silently
# dropped by the API (responses-api.md §2.1, rules 4, 10 and 11).


@dataclass(frozen=True, slots=True)
class Origin:
    """The model family and the server's name that produced an item.

    `endpoint` is empty where an earlier writer did not note it.
    """

    family: str
    endpoint: str = ""

    def may_read(self, maker: Self) -> bool:
        """Say whether we may send reasoning that `maker` produced."""
        same_server = maker.endpoint in ("", self.endpoint)
        return same_server and maker.family == self.family

    def wire(self) -> dict[str, str]:
        """Return the form in which it is stored."""
        return {"family": self.family, "endpoint": self.endpoint}


def read_origin(wire: object, host_model: str) -> Origin:
    """Return a stored origin, or what the host's id of the model tells.

    The host's id is `{function id}.{model}`; earlier writers stored nothing else.
    """
    if isinstance(wire, Mapping) and wire.get("family"):
        return Origin(str(wire["family"]), str(wire.get("endpoint") or ""))
    return Origin(resolve_model(host_model.split(".", 1)[-1]).family)


# openai_responses.tools ===============================================================
# Host tool specs -> Responses tools.


def responses_tools(specs: Sequence[Mapping[str, Any]]) -> list[Item]:
    """Return the tools of a chat body in the API's form.

    Chat Completions nests a function under `function`; the API has it flat and wants
    `parameters` and `strict` said. Other tools are the API's own and stay verbatim.
    """
    return [_responses_tool(spec) for spec in specs]


def responses_tool_choice(choice: object) -> object:
    """Return `tool_choice` in the API's form: a named function is not nested there."""
    function = choice.get("function") if isinstance(choice, Mapping) else None
    if isinstance(function, Mapping):
        return {"type": "function", "name": function.get("name")}
    return choice


def _responses_tool(spec: Mapping[str, Any]) -> Item:
    function = spec.get("function")
    if not isinstance(function, Mapping):
        return dict(spec)
    tool: Item = {"type": "function", "name": function.get("name")}
    if function.get("description"):
        tool["description"] = function["description"]
    parameters = function.get("parameters") or {"type": "object", "properties": {}}
    return {**tool, "parameters": parameters, "strict": False}


# owui_chat.native =====================================================================
# Run events -> Open WebUI's native events.
#
# The host reduces the Responses API's own events to the output items that it shows and
# stores (utils/response.py:381), so a run looks like Open WebUI's own and survives a
# reload. What we send differs from the wire where the host needs it (open-webui.md §0.9,
# §5, §14): one numbering over all turns, no `response.completed`, no encrypted content,
# and an empty `choices` delta for stream filters that look for one.

_SHOWN_TYPES = frozenset({"message", "reasoning", "function_call"})

_DELTA_TYPES: Mapping[str, str] = {
    "text": "response.output_text.delta",
    "refusal": "response.output_text.delta",
    "summary": "response.reasoning_summary_text.delta",
    "reasoning": "response.reasoning_text.delta",
    "arguments": "response.function_call_arguments.delta",
}

Chunk = dict[str, Any]


class NativeView:
    """Shows one run; `items` holds what the host has stored of it so far."""

    def __init__(self, now: Callable[[], float]) -> None:
        """Take `now`, in seconds, for the time that a thought took."""
        self.items: list[Item] = []
        self._now = now
        self._places: dict[int, int] = {}
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._parts: dict[int, int] = {}

    def show(self, event: RunEvent, marker: str = "") -> Iterator[Chunk]:
        """Yield the events to send.

        `marker` stands in front of the text that grows, or alone at the run's end.
        """
        match event:
            case ItemStarted() if item_type(event.item) in _SHOWN_TYPES:
                yield self._start(event)
            case Grew() if event.index in self._places:
                yield self._grow(event, marker)
            case ItemEnded() if event.index in self._places:
                yield self._end(event)
            case RunEnded():
                if marker:
                    yield from self._marker_alone(marker)
                yield from _end_of_run(event)

    def _marker_alone(self, marker: str) -> Iterator[Chunk]:
        """Yield a message of its own for items that no text followed."""
        place = len(self.items)
        item = _shown_message({"id": f"msg_kept_{place}"}, marker)
        self.items.append(item)
        empty = {**item, "status": "in_progress", "content": [_text_part("")]}
        yield _native("output_item.added", place, item=empty)
        yield _native("output_item.done", place, item=item)

    def _start(self, event: ItemStarted) -> Chunk:
        place = self._places[event.index] = len(self.items)
        self._started[event.index] = self._now()
        item = _begun(event.item)
        self.items.append(item)
        return _native("output_item.added", place, item=item)

    def _grow(self, event: Grew, marker: str) -> Chunk:
        place = self._places[event.index]
        if marker:
            self._markers[event.index] = marker
        return {
            "type": _DELTA_TYPES[event.kind],
            "item_id": self.items[place].get("id"),
            "output_index": place,
            _part_name(event.kind): 0,
            "delta": marker + self._gap(event) + event.text,
            "choices": [{"index": 0, "delta": {}}],
        }

    def _gap(self, event: Grew) -> str:
        """Return the blank line between two parts of a thought.

        The page sets the parts of a summary one behind the other, so all parts are
        shown as one.
        """
        before = self._parts.get(event.index, event.part)
        self._parts[event.index] = event.part
        thought = event.kind in ("summary", "reasoning")
        return "\n\n" if thought and event.part != before else ""

    def _end(self, event: ItemEnded) -> Chunk:
        place = self._places[event.index]
        match item_type(event.item):
            case "message":
                text = self._markers.get(event.index, "") + message_text(event.item)
                item = _shown_message(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[event.index]
                item = _shown_reasoning(event.item, round(seconds))
            case _:
                item = _without_secrets(event.item)
        self.items[place] = item
        return _native("output_item.done", place, item=item)


def host_usage(usage: Usage, last: Usage | None) -> dict[str, Any]:
    """Return the counts as the host stores them with a message.

    Sums are for billing; the host's compaction reads `prompt_tokens` as the size of
    the chat, so those two are of the last turn alone (open-webui.md §14).
    """
    newest = last or usage
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens": newest.input,
        "completion_tokens": newest.output,
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.cache_writes,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def error_chunk(sentence: str) -> Chunk:
    """Return the chunk that marks the message as failed and keeps its text.

    It has no `choices`: with them the host does not look at `error`.
    """
    return {"error": {"message": sentence}}


def _end_of_run(event: RunEnded) -> Iterator[Chunk]:
    if event.usage:
        usage = host_usage(event.usage, event.last_usage)
        yield {"choices": [{"index": 0, "delta": {}}], "usage": usage}
    if event.ending.is_failure:
        yield error_chunk(event.ending.sentence)


def _native(kind: str, place: int, **fields: Any) -> Chunk:
    choices = [{"index": 0, "delta": {}}]
    head = {"type": f"response.{kind}", "output_index": place}
    return {**head, **fields, "choices": choices}


def _part_name(kind: str) -> str:
    return "summary_index" if kind == "summary" else "content_index"


def _begun(item: Item) -> Item:
    """Return an item as it begins: its texts come as growth."""
    begun = {**_without_secrets(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [_text_part("")]}
        case "reasoning":
            begun |= {"summary": []}
            begun.pop("content", None)
        case "function_call":
            begun |= {"arguments": ""}
    return begun


def _shown_message(item: Item, text: str) -> Item:
    """Return a message with one text: refusals too are there to be read."""
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def _shown_reasoning(item: Item, seconds: int) -> Item:
    """Return a thought with its texts as one part each, and how long it took."""
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in item.get(key) or () if part.get("text")]
        if parts:
            text = "\n\n".join(part["text"] for part in parts)
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


def _without_secrets(item: Item) -> Item:
    """Leave out what no reader of the chat can use and nobody else should have."""
    hidden = ("encrypted_content",)
    return {k: v for k, v in item.items() if k not in hidden and v is not None}


# owui_chat.chunks =====================================================================
# Run events -> `chat.completion.chunk`s, for callers over plain HTTP.

_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChunkView:
    """Shows one run as growing text, reasoning and tool calls."""

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        """Take what every chunk repeats: its id, its time in seconds, the model."""
        self._head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._calls: dict[int, int] = {}
        self._thought: tuple[int, int] | None = None
        self._told: int | None = None

    def show(self, event: RunEvent, _marker: str = "") -> Iterator[Chunk]:
        """Yield the chunks to send; nothing is kept for a caller without a chat."""
        match event:
            case Grew(kind="text" | "refusal"):
                yield self._chunk({"content": self._gap(event) + event.text})
            case Grew(kind="summary" | "reasoning"):
                text = self._thought_gap(event) + event.text
                yield self._chunk({"reasoning_content": text})
            case ItemEnded() if item_type(event.item) == "function_call":
                yield self._chunk({"tool_calls": [self._call(event)]})
            case RunEnded():
                yield from self._end(event)

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head, "choices": [choice]}

    def _gap(self, event: Grew) -> str:
        """Return the blank line between two messages of one run."""
        before, self._told = self._told, event.index
        return "" if before in (None, event.index) else "\n\n"

    def _thought_gap(self, event: Grew) -> str:
        """Return the blank line between two parts of the reasoning."""
        place = (event.index, event.part)
        before, self._thought = self._thought, place
        return "" if before in (None, place) else "\n\n"

    def _call(self, event: ItemEnded) -> dict[str, Any]:
        index = self._calls.setdefault(event.index, len(self._calls))
        return {"index": index, **chat_tool_call(event.item)}

    def _end(self, event: RunEnded) -> Iterator[Chunk]:
        if event.ending.is_failure and event.ending.kind != "incomplete":
            yield error_chunk(event.ending.sentence)
        else:
            yield self._chunk({}, finish_reason(event.ending, bool(self._calls)))
        if event.usage:
            usage = host_usage(event.usage, event.last_usage)
            yield {**self._head, "choices": [], "usage": usage}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of Chat Completions."""
    function = {"name": item.get("name"), "arguments": item.get("arguments") or "{}"}
    return {"id": item.get("call_id"), "type": "function", "function": function}


def finish_reason(ending: Ending, has_calls: bool) -> str:
    """Return Chat Completions' word for how an answer ended."""
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"


# owui_chat.completion =================================================================
# Run events -> one complete result, for callers that asked for no stream.


def completion(
    ended: RunEnded, completion_id: str, created: int, model: str
) -> dict[str, Any]:
    """Return the `chat.completion` of a run, with the error if it failed.

    What arrived before a failure is in it; when nothing did, the error stands alone.
    """
    failed = ended.ending.is_failure and ended.ending.kind != "incomplete"
    error = error_chunk(ended.ending.sentence) if failed else {}
    if failed and not ended.output:
        return error
    message = _message(ended)
    finish = finish_reason(ended.ending, "tool_calls" in message)
    usage = host_usage(ended.usage, ended.last_usage) if ended.usage else None
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **({"usage": usage} if usage else {}),
        **error,
    }


def completion_text(ended: RunEnded) -> str:
    """Return the text of an answer, its messages apart by a blank line."""
    texts = [message_text(i) for i in ended.output if item_type(i) == "message"]
    return "\n\n".join(texts)


def _message(ended: RunEnded) -> dict[str, Any]:
    thoughts = [
        text for i in ended.output if is_reasoning(i) for _, text in item_texts(i)
    ]
    calls = [chat_tool_call(i) for i in ended.output if item_type(i) == "function_call"]
    message: dict[str, Any] = {"role": "assistant", "content": completion_text(ended)}
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(t for t in thoughts if t)
    if calls:
        message["tool_calls"] = calls
    return message


# owui_chat.markers ====================================================================
# The marker grammar: a line of text that names kept items and is never seen.
#
# `[openai_responses:v2:{type}:{ulid}]: #` is a link reference definition, which Markdown
# renders as nothing where one is allowed: on a line of its own after a blank line. We
# write it with blank lines around it, whole in one chunk. `reference` for the forms of
# earlier writers: ids of 16 or 26 characters, with or without a query, in any case;
# v1 links; zero-width blocks. Lines of other pipes are taken out of the text.

# A query has a limit, so that a hostile text is read in one pass.
_V2 = (
    r"\[openai_responses:v2:(?P<kind>[a-z0-9_]{2,30}):(?P<ulid>[0-9a-z]{16}"
    r"(?:[0-9a-z]{10})?)(?:\?[^\]\n]{0,500})?\]:[ \t]*\#?"
)
_V1 = (
    r"\[\]\(openai_responses:v1:(?P<kind1>[a-z0-9_]{2,30}):(?P<ulid1>[0-9a-z]{26})"
    r"(?:\?[^)\n]{0,500})?\)"
)
_ZERO_WIDTH = "\u2060(?P<bits>[\u200b\u200c]{208})\u2060"
_FOREIGN = (
    r"(?m:^[ \t]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#[ \t]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
_SIGNS = ("openai_responses:v", "\u2060", "]: #")
"""A text without any of these holds no marker; looking for them is cheap."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A piece of text, and the id that the marker in front of it names.

    `ulid` is empty for text in front of the first marker, and where another pipe's
    line was taken out.
    """

    ulid: str
    text: str


def marker(kind: str, ulid: str) -> str:
    """Return the marker as it stands in the text, blank lines included."""
    return f"\n\n[openai_responses:v2:{kind}:{ulid}]: #\n\n"


def has_marker(text: str) -> bool:
    """Say whether `text` holds a marker of any writer."""
    return any(sign in text for sign in _SIGNS) and bool(_MARKER.search(text))


def split_at_markers(text: str) -> Iterator[Marked]:
    """Yield the pieces of `text`, each with the marker before it.

    White space at the ends of a piece is the writer's or the host's, never the
    model's: texts of a model that begin or end with it are kept whole.
    """
    if not any(sign in text for sign in _SIGNS):
        yield Marked("", text.strip())
        return
    ulid, start = "", 0
    for match in _MARKER.finditer(text):
        piece = text[start : match.start()].strip()
        if ulid or piece:
            yield Marked(ulid, piece)
        ulid, start = _named(match), match.end()
    piece = text[start:].strip()
    if ulid or piece:
        yield Marked(ulid, piece)


def without_markers(text: str) -> str:
    """Return `text` as a person reads it."""
    # More than once, because a line of another pipe may only now stand alone.
    while has_marker(text):
        pieces = (piece.text for piece in split_at_markers(text))
        text = "\n\n".join(piece for piece in pieces if piece)
    return text


def _named(match: re.Match[str]) -> str:
    bits = match["bits"]
    if bits:
        digits = bits.replace("\u200b", "0").replace("\u200c", "1")
        codes = (int(digits[i : i + 8], 2) for i in range(0, len(digits), 8))
        return "".join(map(chr, codes)).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()


# owui_chat.tasks ======================================================================
# Small jobs that the host gives a model: titles, tags, follow-up questions.
#
# The host names the job itself; its prompt quotes the chat, markers included.


def task_messages(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of a task without the markers of the chat they quote."""
    return [
        {**message, "content": _clean(message.get("content"))} for message in messages
    ]


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; an empty one where it failed.

    The host would take the text of an error for a title.
    """
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    if isinstance(content, str):
        return without_markers(content)
    if not isinstance(content, list):
        return content
    return [_clean_part(part) for part in content]


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": without_markers(part["text"])}
    return part


# owui_chat.stored =====================================================================
# The layouts of stored items, earlier writers' included.
#
# Ours: one top-level key of the chat's JSON for each assistant message, because the host
# replaces a top-level key whole and answers are written at the same time:
#
#     "openai_responses_pipe:{message_id}": {"__v": 4, "items": {ulid: record}}
#
# The seed's: `"openai_responses_pipe": {"__v": 3, "items": {id: record}, ...}`, read and
# never written. A record is the same in both, but for `origin`, which only ours has, and
# for `payload`, which in ours may be a list: the items that one marker names.

SEED_KEY = "openai_responses_pipe"
_VERSION = 4


@dataclass(frozen=True, slots=True)
class Record:
    """The items that one marker names, in the order of the wire.

    `model` is the host's full model id, `created_at` seconds in UTC. A message item in
    `payload` whose text part has no `text` takes the text that follows the marker.
    """

    ulid: str
    model: str
    created_at: int
    payload: tuple[Item, ...]
    message_id: str
    origin: Origin

    @property
    def kind(self) -> str:
        """The type that the marker shows."""
        return str(self.payload[0]["type"]) if len(self.payload) == 1 else "items"


def message_key(message_id: str) -> str:
    """Return the top-level key that holds what is kept of one message."""
    return f"{SEED_KEY}:{message_id}"


def write_records(records: Mapping[str, Record]) -> dict[str, Any]:
    """Return the JSON value for the key of one message."""
    return {"__v": _VERSION, "items": {u: _wire(r) for u, r in records.items()}}


def read_records(chat: Mapping[str, Any]) -> dict[str, Record]:
    """Return every readable record of a chat's JSON, by its id.

    A record that is not what a writer writes is no record: its marker then resolves
    to nothing.
    """
    records: dict[str, Record] = {}
    for key, value in chat.items():
        if key == SEED_KEY or key.startswith(SEED_KEY + ":"):
            records.update((record.ulid, record) for record in _records_in(value))
    return records


def _records_in(value: object) -> Iterator[Record]:
    items = value.get("items") if isinstance(value, Mapping) else None
    for ulid, wire in (items if isinstance(items, Mapping) else {}).items():
        payload = _payload(wire.get("payload")) if isinstance(wire, Mapping) else ()
        if payload:
            yield _record(str(ulid).upper(), wire, payload)


def _payload(value: object) -> tuple[Item, ...]:
    rows = value if isinstance(value, list) else [value]
    items = [row for row in rows if isinstance(row, dict) and row.get("type")]
    return tuple(items) if len(items) == len(rows) else ()


def _record(ulid: str, wire: Mapping[str, Any], payload: tuple[Item, ...]) -> Record:
    model, created_at = str(wire.get("model") or ""), wire.get("created_at")
    return Record(
        ulid=ulid,
        model=model,
        created_at=created_at if isinstance(created_at, int) else 0,
        payload=payload,
        message_id=str(wire.get("message_id") or ""),
        origin=read_origin(wire.get("origin"), model),
    )


def _wire(record: Record) -> dict[str, Any]:
    payload = list(record.payload)
    return {
        "model": record.model,
        "created_at": record.created_at,
        "payload": payload[0] if len(payload) == 1 else payload,
        "message_id": record.message_id,
        "origin": record.origin.wire(),
    }


# owui_chat.keeping ====================================================================
# What of a run is kept, and where its marker stands.
#
# Items that the chat does not show (reasoning, the bytes of a call, the `phase` of a
# message) wait until text follows; then one record holds them, and its marker stands at
# the head of that text. Reasoning that nothing followed is not kept: given back alone it
# would be refused.

_UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part whose text is the one that follows the marker."""

_EARLIER = -1
"""The index of items of earlier rounds, in front of all others."""


@dataclass(frozen=True, slots=True)
class Author:
    """What every record of one message has in common."""

    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool


class Keeping:
    """Collects the records of one message while its run goes on."""

    def __init__(
        self,
        author: Author,
        new_record: Callable[[], tuple[str, int]],
        pending: Iterable[Item] = (),
    ) -> None:
        """Begin with what earlier rounds of the run left `pending`.

        `new_record` gives the id and the time of a record when one is made.
        """
        self._pending = [(_EARLIER, item) for item in pending]
        self._author = author
        self._new_record = new_record
        self._messages: dict[int, Item] = {}
        self._records: dict[int, Record] = {}
        self._after_message = False

    @property
    def pending(self) -> list[Item]:
        """What still waits for its marker, in the order of the wire."""
        return [item for _, item in self._pending]

    def feed(self, event: RunEvent) -> Record | None:
        """Take an event; return a record that has to be written before it is shown.

        The record of a message comes with the first growth of its text, and again,
        changed, with its end when only the end told what has to be kept.
        """
        match event:
            case ItemStarted() if item_type(event.item) == "message":
                self._messages[event.index] = event.item
            case Grew() if event.index in self._messages:
                return self._begin(event.index, self._messages.pop(event.index))
            case ItemEnded() if item_type(event.item) == "message":
                self._messages.pop(event.index, None)
                self._after_message = True
                return self._amend(event.index, event.item)
            case ItemEnded():
                self._wait(event.index, event.item)
        return None

    def rest(self) -> Record | None:
        """Return a record of the calls that no text followed, at the run's end."""
        while self._pending and not is_call(self._pending[-1][1]):
            self._pending.pop()
        return self._record(()) if self._pending else None

    def _wait(self, index: int, item: Item) -> None:
        """Take an item to its place: parallel calls may end in another order."""
        reasoning = self._author.keeps_reasoning and has_encrypted_reasoning(item)
        if reasoning or (is_call(item) and item.get("status") != "incomplete"):
            self._pending.append((index, replayed(item)))
            self._pending.sort(key=itemgetter(0))

    def _begin(self, index: int, item: Item) -> Record | None:
        if not (self._pending or item.get("phase") or self._after_message):
            return None
        # Without a phase the text itself is all there is to know of the message.
        plain = self._pending and not item.get("phase")
        stub = {**replayed(item), "type": "message", "content": [_UNSHOWN_TEXT]}
        record = self._record(() if plain else (stub,))
        self._records[index] = record
        return record

    def _amend(self, index: int, item: Item) -> Record | None:
        """Return the record of an ended message, if it is not what was written."""
        record = self._records.pop(index, None)
        if record is None:
            return None
        before = tuple(i for i in record.payload if item_type(i) != "message")
        kept = _without_shown_text(item)
        is_plain = not kept.get("phase") and kept.get("content") == [_UNSHOWN_TEXT]
        payload = before if before and is_plain else (*before, kept)
        return None if payload == record.payload else replace(record, payload=payload)

    def _record(self, message: tuple[Item, ...]) -> Record:
        ulid, created_at = self._new_record()
        payload = (*self.pending, *message)
        self._pending = []
        author = self._author
        return Record(
            ulid, author.model, created_at, payload, author.message_id, author.origin
        )


def _without_shown_text(item: Item) -> Item:
    """Return a message as it is kept: without its text where the chat gives it back.

    The host strips the ends of texts, and knows nothing of refusals or of several
    parts; such a message is kept whole.
    """
    kept = replayed(item)
    text, parts = message_text(item), kept.get("content") or []
    one_text = [part.get("type") for part in parts] == ["output_text"]
    if not one_text or not text or text != text.strip():
        return kept
    return {**kept, "content": [{k: v for k, v in parts[0].items() if k != "text"}]}


# owui_chat.messages ===================================================================
# Chat messages as ordered stretches: what was said, answered, called, returned.
#
# Open WebUI sends messages in the form of Chat Completions. Texts of assistant messages
# stay as they are here, markers included; `history` reads those.


@dataclass(frozen=True, slots=True)
class Said:
    """A message that no model wrote: an input message, ready to be sent."""

    item: Item


@dataclass(frozen=True, slots=True)
class Answered:
    """Text of an assistant's message, as the host gives it back."""

    text: str


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call of an assistant's message."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Returned:
    """What a tool returned for a call: a text, or parts with pictures."""

    call_id: str
    output: str | list[Item]


Stretch = Said | Answered | Called | Returned


def read_messages(
    messages: Sequence[Mapping[str, Any]],
) -> tuple[str, list[Stretch]]:
    """Return the instructions and the stretches of a chat.

    The system messages at the head, in order, are the instructions; later ones stand
    at their place. Raises InvalidRequest for what the API cannot take.
    """
    head = 0
    while head < len(messages) and messages[head].get("role") == "system":
        head += 1
    texts = [_plain_text(message.get("content")) for message in messages[:head]]
    instructions = "\n\n".join(text for text in texts if text)
    stretches = [s for message in messages[head:] for s in _stretches(message)]
    return instructions, stretches


def _stretches(message: Mapping[str, Any]) -> Iterator[Stretch]:
    """Yield what one message after the head holds, in order."""
    role, content = message.get("role"), message.get("content")
    match role:
        case "user":
            yield Said(_input_message("user", content))
        case "system" | "developer":
            yield Said(_input_message("developer", content))
        case "assistant":
            text = _plain_text(content)
            if text.strip():
                yield Answered(text)
            yield from _calls(message.get("tool_calls"))
        case "tool":
            yield Returned(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has a role that the Responses API does not "
                "know. The roles are system, developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[Called]:
    for call in tool_calls if isinstance(tool_calls, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            arguments = str(function.get("arguments") or "{}")
            yield Called(str(call.get("id")), str(function.get("name")), arguments)


def _output(content: object) -> str | list[Item]:
    """Return a tool's output; an empty one stays, because its call needs it."""
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return [_input_part(part) for part in content]


def _input_message(role: str, content: object) -> Item:
    rows = content if isinstance(content, list) else [{"type": "text", "text": content}]
    parts = [_input_part(part) for part in rows]
    return {"type": "message", "role": role, "content": parts}


def _input_part(part: object) -> Item:
    """Return a content part in the API's form."""
    wire = part if isinstance(part, Mapping) else {"type": "text", "text": part}
    match wire.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(wire.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(wire)
        case "file":
            return {"type": "input_file", **_given(wire.get("file"))}
        case "input_file":
            return dict(wire)
    raise InvalidRequest(
        "A message of this chat holds something other than text, a picture or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: Mapping[str, Any]) -> Item:
    """Return a picture; both spellings keep the address and the detail."""
    inner = wire.get("image_url")
    chat_form = inner if isinstance(inner, Mapping) else {"url": inner}
    detail = chat_form.get("detail") or wire.get("detail") or "auto"
    source = {"image_url": chat_form.get("url"), "file_id": wire.get("file_id")}
    return {"type": "input_image", "detail": detail, **_given(source)}


def _given(wire: object) -> Item:
    fields = wire if isinstance(wire, Mapping) else {}
    return {str(key): value for key, value in fields.items() if value is not None}


def _plain_text(content: object) -> str:
    """Return the text of a system or assistant message in any of its forms."""
    if isinstance(content, list):
        texts = (p.get("text") for p in content if isinstance(p, Mapping))
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


# owui_chat.history ====================================================================
# Stretches of a chat and its kept items -> input items.
#
# The host decides what exists, the kept item decides its bytes. What lies between two
# messages of the user is one run; inside it a kept call stands where the host has its
# card, with the reasoning that led to it in front, and kept items without a card stand
# where their marker stands.

_RETURNED_TYPES = frozenset(
    {"message", "reasoning", *CALL_OUTPUTS, *CALL_OUTPUTS.values()}
)
"""What goes back of a run; earlier writers also kept searches and whole pictures,
which the API would look up by an id that it never stored."""


def build_input(
    stretches: Iterable[Stretch],
    records: Mapping[str, Record],
    reader: Origin | None,
) -> list[Item]:
    """Return the input of a request; without a `reader` no reasoning is sent.

    The result is valid by construction: calls and outputs in pairs, reasoning only
    with its encrypted content and only in front of what it led to.
    """
    items: list[Item] = []
    run: list[Answered | Called | Returned] = []
    for stretch in stretches:
        if isinstance(stretch, Said):
            items += _RunHistory(run, records, reader).items()
            items.append(stretch.item)
            run = []
        else:
            run.append(stretch)
    items += _RunHistory(run, records, reader).items()
    return without_orphans(items)


def output_item(returned: Returned) -> Item:
    """Return the input item for what a tool returned."""
    return {
        "type": "function_call_output",
        "call_id": returned.call_id,
        "output": returned.output,
    }


class _RunHistory:
    """The items of one run, put together from the host's and the kept."""

    def __init__(
        self,
        run: Sequence[Answered | Called | Returned],
        records: Mapping[str, Record],
        reader: Origin | None,
    ) -> None:
        self._pieces = [_split(stretch) for stretch in run]
        self._reader = reader
        self._records = {
            piece.ulid: records[piece.ulid]
            for pieces in self._pieces
            if isinstance(pieces, list)
            for piece in pieces
            if piece.ulid in records
        }
        self._waiting = {
            ulid: [replayed(item) for item in record.payload if _may_return(item)]
            for ulid, record in self._records.items()
        }
        self._ulid_of_call = {
            str(item.get("call_id")): ulid
            for ulid, record in self._records.items()
            for item in record.payload
            if is_call(item)
        }

    def items(self) -> list[Item]:
        """Return the items of the run in their order."""
        items: list[Item] = []
        for stretch in self._pieces:
            match stretch:
                case Called():
                    items += self._call(stretch)
                case Returned():
                    items.append(output_item(stretch))
                case _:
                    for piece in stretch:
                        items += self._piece(piece)
        return items

    def _call(self, call: Called) -> list[Item]:
        """Return a call in its kept bytes, after what was kept in front of it."""
        ulid = self._ulid_of_call.get(call.call_id, "")
        waiting = self._waiting.get(ulid, [])
        for place, item in enumerate(waiting):
            if is_call(item) and item.get("call_id") == call.call_id:
                self._waiting[ulid] = waiting[place + 1 :]
                return self._allowed(ulid, waiting[: place + 1])
        return [
            {
                "type": "function_call",
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments,
            }
        ]

    def _piece(self, piece: Marked) -> list[Item]:
        """Return what a marker names, then the text behind it."""
        kept = self._allowed(piece.ulid, self._waiting.pop(piece.ulid, []))
        message = kept.pop() if kept and _is_answer(kept[-1]) else None
        if not piece.text:
            return kept
        return [*kept, _message_item(message, piece.text)]

    def _allowed(self, ulid: str, items: Sequence[Item]) -> list[Item]:
        """Leave out the reasoning that this request may not carry.

        A call whose card is gone stays for now: it tells which reasoning has to leave
        with it.
        """
        if not items:
            return []
        reader = self._reader
        readable = bool(reader and reader.may_read(self._records[ulid].origin))
        return [
            item
            for item in items
            if not is_reasoning(item) or (readable and has_encrypted_reasoning(item))
        ]


def _split(
    stretch: Answered | Called | Returned,
) -> list[Marked] | Called | Returned:
    if isinstance(stretch, Answered):
        return list(split_at_markers(stretch.text))
    return stretch


def _may_return(item: Item) -> bool:
    """Say whether a kept item has a place in a later request."""
    return item_type(item) in _RETURNED_TYPES


def _is_answer(item: Item) -> bool:
    """Say whether `item` is a message of the model; earlier writers kept others too."""
    return item_type(item) == "message" and item.get("role") == "assistant"


def _message_item(kept: Item | None, shown: str) -> Item:
    """Return a message of the model, in its own bytes unless a person edited it."""
    part = {"type": "output_text", "text": shown, "annotations": []}
    if kept is None:
        return {"type": "message", "role": "assistant", "content": [part]}
    if message_text(kept).strip() == shown:
        return kept
    parts = kept.get("content")
    if isinstance(parts, list) and len(parts) == 1 and _is_text_part(parts[0]):
        part = {**parts[0], "text": shown}
    return {**kept, "content": [part]}


def _is_text_part(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "output_text"


# owui_manifold.caller =================================================================
# Who asks, and who reads the answer.

_ROWLESS_CHATS = ("temporary:", "local:", "channel:")
"""Chat ids that name no row: temporary chats, in both spellings, and channels."""


@dataclass(frozen=True, slots=True)
class Caller:
    """What one call of the pipe is about.

    `host_model` is the host's id of the model, `{function id}.{model}`; `task` the
    name of a small job of the host, or empty.
    """

    host_model: str
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    streams: bool = False

    @property
    def model(self) -> str:
        """The model as the administrator listed it.

        Everything in front of the first dot is the id of the function, which the
        administrator chose freely.
        """
        return self.host_model.split(".", 1)[-1]

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly when the request has both ids (utils/middleware.py:3028); a
        session id only decides who can answer a dialog.
        """
        return bool(self.chat_id and self.message_id)

    @property
    def may_have_row(self) -> bool:
        """Whether the chat can have a row of its own in the database."""
        return self.host_reads and not self.chat_id.startswith(_ROWLESS_CHATS)


def read_caller(
    body: Mapping[str, Any],
    user: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    task: str | None,
) -> Caller:
    """Return the caller from what the host passes to `pipe()`."""
    facts = metadata or {}
    return Caller(
        host_model=str(body.get("model") or ""),
        user_id=str((user or {}).get("id") or ""),
        chat_id=str(facts.get("chat_id") or ""),
        message_id=str(facts.get("message_id") or ""),
        task=str(task or ""),
        streams=bool(body.get("stream")),
    )


# owui_manifold.host ===================================================================
# The only importer of `open_webui`; every name of the host is looked up here.
#
# Names are looked up when they are used: one that an older host lacks gives a sentence
# in the chat instead of a pipe that does not load.

FLOOR = (0, 11, 4)
"""From here on `Chats.update_chat_by_id` patches the top-level keys of a chat; before,
it replaced the whole chat (models/chats.py:803)."""


def require_floor() -> None:
    """Raise InvalidRequest, with a sentence, on an Open WebUI that is too old."""
    version = _host_name("env", "VERSION")
    numbers = [int(number) for number in re.findall(r"\d+", str(version))[:3]]
    if tuple(numbers) < FLOOR:
        floor = ".".join(map(str, FLOOR))
        raise InvalidRequest(
            f"This pipe needs Open WebUI {floor} or newer; this server runs "
            f"{version}. An administrator has to update Open WebUI."
        )


async def read_chat(chat_id: str, user_id: str) -> Mapping[str, Any] | None:
    """Return the JSON of a user's own chat; None when there is no such row."""
    chats = _host_name("models.chats", "Chats")
    row = await chats.get_chat_by_id_and_user_id(chat_id, user_id)
    return row.chat if row is not None and isinstance(row.chat, Mapping) else None


async def write_chat_key(chat_id: str, key: str, value: Mapping[str, Any]) -> bool:
    """Replace one top-level key of a chat's JSON; say whether the host stored it.

    `touch=False`: keeping items is no activity that moves a chat in the list.
    """
    chats = _host_name("models.chats", "Chats")
    row = await chats.update_chat_by_id(chat_id, {key: dict(value)}, touch=False)
    return row is not None


def _host_name(module: str, name: str) -> Any:
    """Return a name of the host; raises InvalidRequest when it has none."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this pipe needs. An administrator has to update the pipe or Open WebUI."
        ) from None


# owui_manifold.rounds =================================================================
# What one round of tools leaves for the next, inside one request of the host.
#
# The host runs the tools and calls the pipe again; `request.state` is the same object
# for all these calls, while the messages it hands over are made anew each time
# (open-webui.md §14). So the next round sends exactly what the last one sent, what it
# received, and the outputs: the reasoning included.

_ATTRIBUTE = "openai_responses_rounds"


@dataclass(frozen=True, slots=True)
class Round:
    """The end of a round whose calls the host is to run.

    `sent` and `received` are input items; `pending` waits for its marker.
    """

    sent: tuple[Item, ...]
    received: tuple[Item, ...]
    pending: tuple[Item, ...]


def remember_round(state: Any, message_id: str, ended: Round) -> None:
    """Leave `ended` for the next call for the same message."""
    rounds = getattr(state, _ATTRIBUTE, {})
    setattr(state, _ATTRIBUTE, {**rounds, message_id: ended})


def last_round(state: Any, message_id: str) -> Round | None:
    """Return what the round before left, if this call follows one."""
    found = getattr(state, _ATTRIBUTE, {}).get(message_id)
    return found if isinstance(found, Round) else None


def received_items(output: Iterable[Item], keeps_reasoning: bool) -> tuple[Item, ...]:
    """Return the output of a round as the next one sends it back."""
    return tuple(
        replayed(item)
        for item in output
        if item.get("type") != "reasoning"
        or (keeps_reasoning and has_encrypted_reasoning(item))
    )


def continued_input(ended: Round, stretches: Sequence[Stretch]) -> list[Item] | None:
    """Return the input after `ended`; None when a call of it has no output."""
    outputs = {s.call_id: s for s in stretches if isinstance(s, Returned)}
    calls = [item["call_id"] for item in ended.received if is_call(item)]
    if not calls or not all(call_id in outputs for call_id in calls):
        return None
    answers = [output_item(outputs[call_id]) for call_id in calls]
    return [*ended.sent, *ended.received, *answers]


# owui_manifold.store ==================================================================
# Kept items, written to and read from the chat's row.


class ChatStore:
    """What is kept of one chat; writes go to the key of one message alone."""

    def __init__(self, caller: Caller, records: Mapping[str, Record]) -> None:
        """Begin with the `records` of the chat; those of this message are kept on."""
        self.records = records
        self._caller = caller
        self._own = {
            ulid: record
            for ulid, record in records.items()
            if record.message_id == caller.message_id
        }

    async def write(self, record: Record) -> bool:
        """Store `record` and say whether the host did; only then show its marker."""
        own = {**self._own, record.ulid: record}
        key = message_key(self._caller.message_id)
        if not await write_chat_key(self._caller.chat_id, key, write_records(own)):
            return False
        self._own = own
        return True


async def open_store(caller: Caller) -> ChatStore | None:
    """Return the store of the caller's own chat, or None when it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    return None if chat is None else ChatStore(caller, read_records(chat))


# owui_manifold.valves =================================================================
# What the administrator and the user can set, with the user's choice on top.


class Valves(BaseModel):
    """Settings of the administrator."""

    BASE_URL: str = Field(
        default=DEFAULT_BASE_URL,
        description="Address of the Responses API, with or without `/v1`. Change it "
        "for a proxy or another server that offers `POST /responses`.",
    )
    API_KEY: str = Field(
        default="",
        description="Key for that server. Empty: the variable `OPENAI_API_KEY` of "
        "Open WebUI's own environment is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
    MODEL_ID: str = Field(
        default="gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        description="Models to offer, separated by commas. An effort can be part of "
        "the name: `gpt-5.2-high`, `o3-mini-high`, `gpt-5-thinking-high`.",
    )
    ENABLE_STREAM: bool = Field(
        default=True,
        description="Stream answers from the server. Off: each answer comes as one "
        "piece, for servers or organisations that may not stream.",
    )
    REASONING_SUMMARY: Literal["auto", "concise", "detailed", "disabled"] = Field(
        default="auto",
        description="Show a summary of the model's reasoning. OpenAI gives it to "
        "verified organisations only; choose `disabled` if yours is not.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = Field(
        default="conversation",
        description="How long the model remembers its encrypted reasoning: not at "
        "all, between the tool calls of one answer, or through the whole "
        "conversation (stored in the chat).",
    )
    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO",
        description="What this pipe writes to the server's log, from this level up. "
        "Prompts and keys are never written.",
    )

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the model or administrator."""

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = Field(
        default="inherit",
        description="How long a reasoning model thinks. An effort that the chosen "
        "model does not have is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", "auto", "concise", "detailed", "disabled"] = (
        Field(default="inherit", description="Show a summary of the reasoning.")
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = Field(
        default="inherit", description="How long answers are."
    )


def chosen_settings(
    valves: Valves, user: UserValves, streams: bool, tools: Sequence[Item]
) -> Settings:
    """Return what holds for one request; a user's own choice wins.

    `streams` says whether the caller wants a stream.
    """
    summary = _chosen(user.REASONING_SUMMARY, valves.REASONING_SUMMARY)
    return Settings(
        effort=_chosen(user.REASONING_EFFORT, None),
        summary=None if summary == "disabled" else summary,
        verbosity=_chosen(user.VERBOSITY, None),
        stream=streams and valves.ENABLE_STREAM,
        encrypted_reasoning=valves.PERSIST_REASONING_TOKENS != "disabled",
        tools=tools,
    )


def _chosen(user: str, administrator: str | None) -> str | None:
    return administrator if user == "inherit" else user


# owui_manifold.job ====================================================================
# What one call of the pipe comes to: a request that is ready to be sent.

_EFFORT_KEYS = ("reasoning", "reasoning_effort")
_TOOL_KEYS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the host passes to one call of the pipe; `state` is its request's."""

    body: Mapping[str, Any]
    caller: Caller
    valves: Valves
    user_valves: UserValves
    state: Any


@dataclass(frozen=True, slots=True)
class Job:
    """One request, and where its answer is kept.

    `store` is None where nothing is kept; `pending` are items of earlier rounds that
    still wait for their marker.
    """

    asked: Asked
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    store: ChatStore | None
    pending: tuple[Item, ...] = ()


async def prepare_chat(asked: Asked) -> Job:
    """Return the job for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = _endpoint(asked.valves)
    origin = Origin(model.family, endpoint.host)
    instructions, stretches = read_messages(_messages(asked.body))
    store = await open_store(asked.caller)
    before = last_round(asked.state, asked.caller.message_id)
    items = _input(asked, stretches, store, before, origin)
    settings = chosen_settings(
        asked.valves,
        asked.user_valves,
        streams=asked.caller.streams,
        tools=_tools(asked.body, model),
    )
    body = _with_translated_choice(asked.body)
    request = build_request(model, instructions, items, body, settings)
    pending = before.pending if before else ()
    return Job(asked, request, endpoint, origin, store, pending)


def prepare_task(asked: Asked) -> Job:
    """Return the job for a title, tags or the like: short, without tools or memory."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = _endpoint(asked.valves)
    origin = Origin(model.family, endpoint.host)
    messages = task_messages(_messages(asked.body))
    instructions, stretches = read_messages(messages)
    dropped = (*_EFFORT_KEYS, *_TOOL_KEYS)
    body = {key: value for key, value in asked.body.items() if key not in dropped}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(stretches, {}, None)
    request = build_request(model, instructions, items, body, settings)
    return Job(asked, request, endpoint, origin, store=None)


def _endpoint(valves: Valves) -> Endpoint:
    key = valves.effective_key()
    if not key:
        raise InvalidRequest(
            "This pipe has no API key yet. An administrator has to set API_KEY in the "
            "valves of this pipe (Admin Panel > Functions > the gear beside it)."
        )
    return Endpoint(valves.BASE_URL, key)


def _messages(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    messages = body.get("messages")
    return messages if isinstance(messages, list) else []


def _input(
    asked: Asked,
    stretches: list[Stretch],
    store: ChatStore | None,
    before: Round | None,
    origin: Origin,
) -> list[Item]:
    """Return the input: what the last round sent goes on, or the history anew."""
    continued = continued_input(before, stretches) if before else None
    if continued is not None:
        return continued
    remembers = asked.valves.PERSIST_REASONING_TOKENS == "conversation"
    records = store.records if store else {}
    return build_input(stretches, records, origin if remembers else None)


def _tools(body: Mapping[str, Any], model: ResolvedModel) -> list[Item]:
    specs = body.get("tools")
    if not isinstance(specs, list) or not model.facts.functions:
        return []
    return responses_tools(specs)


def _with_translated_choice(body: Mapping[str, Any]) -> dict[str, Any]:
    if "tool_choice" not in body:
        return dict(body)
    return {**body, "tool_choice": responses_tool_choice(body["tool_choice"])}


# owui_manifold.answer =================================================================
# A job, run: each event of the answer, with the marker of what was kept for it.

Told = tuple[RunEvent, str]


async def told(job: Job, connections: Connections) -> AsyncGenerator[Told, None]:
    """Run `job` and yield its events.

    A marker comes with the first growth of a text, or with the end of the run, and
    only after the host has stored what it names.
    """
    keeping = Keeping(_author(job), _new_record, job.pending)
    events = run(job.request, job.endpoint, connections, Limits())
    async with aclosing(events):
        async for event in events:
            if isinstance(event, RunEnded):
                record = _end(job, keeping, event)
            else:
                record = keeping.feed(event)
            yield event, await _stored_marker(job, event, record)


def _author(job: Job) -> Author:
    caller = job.asked.caller
    remembers = job.asked.valves.PERSIST_REASONING_TOKENS == "conversation"
    return Author(caller.host_model, caller.message_id, job.origin, remembers)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


def _end(job: Job, keeping: Keeping, ended: RunEnded) -> Record | None:
    """Hand the round over to the host's tools, or return the record that is left."""
    caller = job.asked.caller
    if not (caller.host_reads and any(is_call(item) for item in ended.output)):
        return keeping.rest()
    within_run = job.asked.valves.PERSIST_REASONING_TOKENS != "disabled"
    received = received_items(ended.output, within_run)
    sent = tuple(job.request.input)
    handed_over = Round(sent, received, tuple(keeping.pending))
    remember_round(job.asked.state, caller.message_id, handed_over)
    return None


async def _stored_marker(job: Job, event: RunEvent, record: Record | None) -> str:
    """Store `record`; return its marker if one belongs in front of `event`."""
    if record is None or job.store is None or not await job.store.write(record):
        return ""
    begins = isinstance(event, Grew | RunEnded)
    return marker(record.kind, record.ulid) if begins else ""


# owui_manifold.log ====================================================================
# Lines in the server's log, from the level of the valve up.

_LOGGER = logging.getLogger("openai_responses_manifold")


def log_line(threshold: str, level: str, line: str) -> None:
    """Write `line` if `level` reaches `threshold`; both are names of levels.

    The logger's own level belongs to the server and to other copies of the pipe, so
    it is not touched: the record goes to the handlers as it is.
    """
    number = logging.getLevelNamesMapping()[level]
    if number >= logging.getLevelNamesMapping()[threshold]:
        record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, line, (), None)
        _LOGGER.handle(record)


# owui_manifold.pipe ===================================================================
# The story of a request, from Open WebUI's call to the last chunk.

_OUR_FAULT = (
    "Something in this pipe went wrong. Try again; if it lasts, give an administrator "
    "this error id: {}."
)


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open nothing and start nothing: the host makes a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()

    def pipes(self) -> list[dict[str, str]]:
        """Return the models to list; from memory, because every page load asks."""
        names = [name.strip() for name in self.valves.MODEL_ID.split(",")]
        unique = dict.fromkeys(name for name in names if name)
        return [{"id": name, "name": resolve_model(name).name} for name in unique]

    async def pipe(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __task__: str | None = None,
    ) -> AsyncGenerator[Chunk, None] | Chunk:
        """Answer a chat: chunks when the caller streams, else one complete result."""
        caller = read_caller(body, __user__, __metadata__, __task__)
        chosen = (__user__ or {}).get("valves")
        user_valves = chosen if isinstance(chosen, UserValves) else UserValves()
        state = getattr(__request__, "state", None)
        # The host replaces self.valves at every call (functions.py:53).
        asked = Asked(body, caller, self.valves, user_valves, state)
        if caller.task:
            return await self._do_task(asked)
        if caller.streams:
            return self._stream(asked)
        return await self._complete(asked)

    async def _stream(self, asked: Asked) -> AsyncGenerator[Chunk, None]:
        """Yield the answer as the reader of the stream understands it.

        Nothing is raised: the host would drop what has been shown (open-webui.md §0.6).
        """
        if asked.caller.host_reads:
            view: NativeView | ChunkView = NativeView(monotonic_seconds)
        else:
            view = ChunkView(*_heading(asked))
        try:
            job = await prepare_chat(asked)
            _log_request(asked, job)
            async with aclosing(told(job, self._connections)) as events:
                async for event, marker in events:
                    for chunk in view.show(event, marker):
                        yield chunk
        except ResponsesError as error:
            yield error_chunk(str(error))
        except Exception as error:
            yield error_chunk(_our_fault(asked, error))

    async def _complete(self, asked: Asked) -> Chunk:
        """Return the whole answer at once, with the output items for the host."""
        view = NativeView(monotonic_seconds)
        try:
            ended = await self._watch(await prepare_chat(asked), view)
        except ResponsesError as error:
            return error_chunk(str(error))
        except Exception as error:
            return error_chunk(_our_fault(asked, error))
        result = completion(ended, *_heading(asked))
        if asked.caller.host_reads and view.items:
            result["output"] = view.items
        return result

    async def _do_task(self, asked: Asked) -> Chunk:
        """Return a title, tags or the like; an empty text when it failed."""
        view, text = NativeView(monotonic_seconds), ""
        try:
            ended = await self._watch(prepare_task(asked), view)
            if ended.ending.is_failure:
                _log_task(asked, ended.ending.sentence)
            else:
                text = completion_text(ended)
        except ResponsesError as error:
            _log_task(asked, str(error))
        except Exception as error:
            _log_task(asked, _our_fault(asked, error))
        return task_result(text, asked.caller.host_model)

    async def _watch(self, job: Job, view: NativeView) -> RunEnded:
        """Run `job` to its end with nobody to show it to; `view` keeps its items."""
        ended = RunEnded(CUT)
        async with aclosing(told(job, self._connections)) as events:
            async for event, marker in events:
                for _ in view.show(event, marker):
                    pass
                ended = event if isinstance(event, RunEnded) else ended
        return ended


def _heading(asked: Asked) -> tuple[str, int, str]:
    """Return the id, the time and the model that a result or its chunks carry."""
    return f"chatcmpl-{new_ulid()}", unix_seconds(), asked.caller.host_model


def _log_request(asked: Asked, job: Job) -> None:
    request, caller = job.request, asked.caller
    line = (
        f"{request.model}: {len(request.input)} input items, "
        f"{'stream' if request.stream else 'no stream'}, "
        f"{'kept' if job.store else 'not kept'}, "
        f"{'native' if caller.host_reads else 'chunks'}"
    )
    log_line(asked.valves.LOG_LEVEL, "DEBUG", line)


def _log_task(asked: Asked, sentence: str) -> None:
    line = f"The task {asked.caller.task} failed: {sentence}"
    log_line(asked.valves.LOG_LEVEL, "WARNING", line)


def _our_fault(asked: Asked, error: Exception) -> str:
    """Log where `error` came from, not what it says; return a sentence to show.

    The text of a foreign exception may quote a header or a prompt.
    """
    error_id = new_ulid()
    frames = extract_tb(error.__traceback__)
    place = f"line {frames[-1].lineno} in {frames[-1].name}" if frames else "nowhere"
    line = f"{type(error).__name__} at {place} (error id {error_id})"
    log_line(asked.valves.LOG_LEVEL, "ERROR", line)
    return _OUR_FAULT.format(error_id)
