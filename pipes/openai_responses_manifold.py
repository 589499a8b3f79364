"""
title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 0.1.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

Built by scripts/bundle.py from pipes/; do not edit. In reading order

    openai_responses  clock, errors, sentences, endings, catalog, models, items, usage,
                      run_events, api_errors, deadlines, endpoint, retries, routes,
                      sessions, transport, ulids, events, turn, compat, sse,
                      event_reader, request, exchange, healing, attempts, approvals,
                      schemas, arguments, calls, run, origin, tool_names, redaction,
                      open_schemas, tools, audit
    owui_chat  host_chunks, chunks, completion, native, markers, tasks, stored, keeping,
               messages, history
    owui_manifold  caller, valves, consent, host, host_tools, learned, log, offers,
                   rounds, settings, sealing, store, job, report, answer, pipe
"""

import asyncio
import base64
import hashlib
import inspect
import json
import logging
import math
import os
import random
import re
import secrets
import ssl
import time
from base64 import b64encode
from collections import deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing, asynccontextmanager, contextmanager
from contextvars import copy_context
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from threading import Lock
from traceback import extract_tb
from typing import Any, Literal, NamedTuple, Protocol, Self, TypeGuard
from urllib.parse import SplitResult, quote, quote_plus, unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

# openai_responses.clock ===============================================================
# The time, with the chance that spreads retries over it.


def unix_seconds() -> int:
    """Return the seconds since 1970 in UTC, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that only grows, for measuring spans."""
    return time.monotonic()


def random_fraction() -> float:
    """Return a number from 0 to 1, for waits that must not all end at once."""
    return random.random()


# openai_responses.errors ==============================================================
# The exceptions of the engine.
#
# ResponsesError
#  ├─ InvalidRequest         our own check refused it; nothing was sent
#  ├─ ConnectionFailed       no connection, or it broke before an answer
#  ├─ TimedOut               the server kept us waiting for too long
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


TimeoutKind = Literal["first_event_timeout", "idle_timeout", "total_timeout"]


class TimedOut(ResponsesError):
    """The server was silent, or the run took, longer than a limit allows."""

    def __init__(self, kind: TimeoutKind) -> None:
        """Note which limit it was."""
        super().__init__("The model's server did not answer in time. Try again.")
        self.kind: TimeoutKind = kind


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


@dataclass(frozen=True, slots=True)
class Setback:
    """A failure before the first event, as far as it says what to do next.

    `status` is None where no HTTP answer came, and 200 where the stream began with an
    error. `after` is the wait that the server asked for, in seconds; `wanted` what it
    said of trying again.
    """

    status: int | None = None
    error: ApiError = field(default_factory=ApiError)
    after: float | None = None
    wanted: bool | None = None


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status of 400 or more, or with an error."""

    def __init__(self, sentence: str, setback: Setback, request_id: str = "") -> None:
        """Keep the `setback`, and OpenAI's own id of the request for the log."""
        super().__init__(sentence)
        self.setback = setback
        self.request_id = request_id

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.setback.status or 0

    @property
    def error(self) -> ApiError:
        """What the body said."""
        return self.setback.error


# openai_responses.sentences ===========================================================
# The sentence that a person sees for every ending.
#
# Each says what happened and what can be done. `{code}`, `{param}` and `{status}` are
# words of the API, `{model}` the id that was asked for.

_PICTURE = (
    "The model's server could not use a picture of this chat{code}. Remove it, or "
    "attach it again as PNG, JPEG, WEBP or GIF of a moderate size."
)
_POLICY = (
    "OpenAI stopped this answer under its usage policies{code}. Put the question in "
    "other words."
)
_NO_CREDIT = (
    "The OpenAI account has no credit left, or has reached its spending limit. An "
    "administrator has to look at its billing."
)
_OVERLOADED = "OpenAI is overloaded at the moment. Try again shortly."
_SERVER_ERROR = "OpenAI had an error of its own. Try again in a moment."
_RATE_LIMIT = (
    "OpenAI's rate limit for this key is reached. Wait a minute, then try again."
)

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer stops here because it reached its length "
        "limit. Raise the maximum of output tokens, or ask to continue.",
        "content_filter": "The answer stops here because OpenAI's content filter cut "
        "it off. Put the question in other words.",
        "max_messages": "The answer stops here because it reached the limit of "
        "messages in one answer. Ask to continue.",
        "steered": "The answer stops here because the request was steered away. Ask "
        "again.",
        "": "The answer is not complete{code}. Ask to continue.",
    },
    "failed": {
        "server_error": _SERVER_ERROR,
        "rate_limit_exceeded": _RATE_LIMIT,
        "slow_down": _RATE_LIMIT,
        "insufficient_quota": _NO_CREDIT,
        "credit_balance_exhausted": _NO_CREDIT,
        "organization_spend_limit_exceeded": _NO_CREDIT,
        "project_spend_limit_exceeded": _NO_CREDIT,
        "organization_usage_limit_exceeded": _NO_CREDIT,
        "project_usage_limit_exceeded": _NO_CREDIT,
        "server_is_overloaded": _OVERLOADED,
        "context_length_exceeded": "This chat is longer than the model can read. "
        "Start a new chat, or choose a model with a larger context.",
        "invalid_prompt": "OpenAI refused this prompt under its usage policies. Put "
        "the question in other words.",
        "bio_policy": _POLICY,
        "misalignment_policy_violation": _POLICY,
        "image_content_policy_violation": _POLICY,
        "data_residency_mismatch": "This model is not served in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(
            (
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
            ),
            _PICTURE,
        ),
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, or is no longer there, "
        "or this API key may not use it. Choose another model.",
        "invalid_encrypted_content": "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        "401": "OpenAI does not accept the API key. An administrator has to check "
        "API_KEY in the valves of this pipe.",
        "403": "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key's project.",
        "404": "There is no Responses API at BASE_URL. An administrator has to check "
        "BASE_URL in the valves of this pipe.",
        "407": "The proxy on the way to the model's server does not let us through. An "
        "administrator has to check PROXY in the valves of this pipe.",
        "413": "This chat is too large for the model's server. Start a new chat, or "
        "leave out large files and pictures.",
        "429": _RATE_LIMIT,
        "503": _OVERLOADED,
        "5": "OpenAI had an error of its own (HTTP {status}). Try again shortly.",
        "": "The model's server refused the request with HTTP {status}{code}{param}. "
        "An administrator finds the details in the log.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was finished. What "
        "arrived is kept; regenerate the answer, or ask to continue.",
    },
    "unreadable": {
        "": "The server at BASE_URL answered, but not as the Responses API does. An "
        "administrator has to check BASE_URL in the valves of this pipe.",
    },
    "malformed": {
        "": "The model's server sent something that cannot be read, so the answer "
        "ends here. Regenerate it, or ask to continue.",
    },
    "first_event_timeout": {
        "": "The model's server accepted the request and then said nothing for too "
        "long. Try again, perhaps with less effort.",
    },
    "idle_timeout": {
        "": "The model's server fell silent in the middle of the answer. What arrived "
        "is kept; regenerate the answer, or ask to continue.",
    },
    "total_timeout": {
        "": "The answer took longer than an administrator allows. What arrived is "
        "kept; ask to continue, or choose less effort.",
    },
}
"""The sentences, by kind of ending, then by code or HTTP status; the empty one is for
all others, and "5" for every other status from 500 up. The kinds that are not here
carry the sentence of the exception that they come from."""


# openai_responses.endings =============================================================
# How a run can end, with the sentence that belongs to it.
#
# A finished answer needs none. No text of the server is shown: it may quote a key or a
# prompt.

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
    return "".join(map(part_text, content_parts(content)))


def content_parts(content: object) -> list[Item]:
    """Return the parts of a content; other servers send what they like."""
    rows = content if isinstance(content, list) else []
    return [row for row in rows if isinstance(row, dict)]


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
        kept["content"] = list(map(_replayed_part, content_parts(kept["content"])))
    return kept


def given_back(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a turn as the next one of the same run sends it back."""
    return [
        replayed(item)
        for item in output
        if not is_reasoning(item) or (with_reasoning and has_encrypted_reasoning(item))
    ]


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
class CallAnswered:
    """A call got its output; `item` is the input item that gives it to the model.

    `card` holds what a host shows beside it (`files`, `embeds`).
    """

    index: int
    item: Item
    failed: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """One response ended in an orderly way; `usage` is None when it was not told."""

    response_id: str
    status: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a person should know while they wait, as a status line.

    `cause` names what was given up to get an answer (`healing.Healed`), or is empty.
    """

    sentence: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the log needs to know of the last response.

    `request_id` is OpenAI's own id of the request, `model` what answered it, `status`
    the HTTP status, if there was one, `error` what the API said went wrong.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = field(default_factory=ApiError)


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The last event of every run, however it ended.

    `usage` adds up all turns, `last_usage` is that of the last one; `output` holds the
    items of the whole run that ended, outputs of calls among them.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = field(default_factory=Trace)


RunEvent = ItemStarted | Grew | ItemEnded | CallAnswered | TurnEnded | Noted | RunEnded


# openai_responses.api_errors ==========================================================
# What the API says went wrong, read from any place where it says so.


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


# openai_responses.deadlines ===========================================================
# How long a run waits for the server.


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Limits in seconds; a `total` of 0 is none.

    `first_event` runs from the sending to the first event, `idle` from one event to
    the next; a `keepalive` is an event. Reasoning at high effort is silent for
    minutes, so there is no total limit unless somebody asks for one.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


class Deadlines:
    """The limit that is running now, over all attempts of one run."""

    def __init__(self, timeouts: Timeouts) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        now = asyncio.get_running_loop().time()
        self._end = now + timeouts.total if timeouts.total else float("inf")
        self._next = now + timeouts.first_event
        self._kind: TimeoutKind = "first_event_timeout"

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.first_event, "first_event_timeout"

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        now = asyncio.get_running_loop().time()
        self._next, self._kind = now + self.timeouts.idle, "idle_timeout"

    def leave(self, seconds: float) -> bool:
        """Say whether the total limit leaves time for a wait."""
        return asyncio.get_running_loop().time() + seconds < self._end

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._next, self._end))

    def passed(self) -> TimedOut:
        """Return the error of the limit that passed."""
        return TimedOut("total_timeout" if self._end <= self._next else self._kind)


# openai_responses.endpoint ============================================================
# Where requests go, with which key, over which network.

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(frozen=True, slots=True)
class Network:
    """How a server is reached; a proxy's address can hold a password.

    `ca_bundle` is the path of a file with certificates, `proxy` an address; empty
    means the system's certificates and the environment's proxy.
    """

    verify_ssl: bool = True
    ca_bundle: str = ""
    proxy: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go, and with which key.

    Neither is in a `repr`: an address can hold a password. `strict` asks for requests
    in the form that other servers than OpenAI's take.
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    organization: str = ""
    project: str = ""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    network: Network = field(default_factory=Network)
    strict: bool = False

    def url(self, path: str) -> str:
        """Return the address of `path`; raises InvalidRequest for an unusable base."""
        base = normalized_base_url(self.base_url)
        query = urlsplit(self.base_url.strip()).query  # Azure's api-version
        return base + path + (query and f"?{query}")

    @property
    def host(self) -> str:
        """The server's name; raises InvalidRequest for an unusable base."""
        return urlsplit(normalized_base_url(self.base_url)).hostname or ""

    def headers(self) -> dict[str, str]:
        """Return the headers of a request; Azure wants its key in one of its own.

        An administrator's own headers win: a gateway may want another Authorization.
        """
        key = self.api_key.strip()
        azure = self.host.endswith(_AZURE_HOSTS)
        ours = {"api-key": key} if azure else {"Authorization": f"Bearer {key}"}
        ours["Content-Type"] = "application/json"
        if self.organization:
            ours["OpenAI-Organization"] = self.organization
        if self.project:
            ours["OpenAI-Project"] = self.project
        theirs = {name.lower() for name in self.extra_headers}
        kept = {name: text for name, text in ours.items() if name.lower() not in theirs}
        return {**kept, **self.extra_headers}


def normalized_base_url(text: str) -> str:
    """Return `text` as the address that paths are appended to.

    Takes what people paste: with or without `/v1`, with a slash at the end, or with
    the `/responses` of the endpoint itself.
    """
    parts = url_parts(text.strip() or DEFAULT_BASE_URL)
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
    path = parts.path.rstrip("/").removesuffix("/responses").rstrip("/")
    if not path:
        azure = str(parts.hostname).endswith(_AZURE_HOSTS)
        path = "/openai/v1" if azure else "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else."""
    try:
        parts = urlsplit(text)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:  # brackets without an address, a port that is no number
        return None
    return parts if sound and parts.scheme in ("http", "https") else None


# openai_responses.retries =============================================================
# Whether a request is sent once more, how long to wait before.
#
# The rules are those of OpenAI's own client (responses-api.md §4, "SDK retry policy"),
# with one difference: a quota that is used up is never tried again, because waiting
# does not fill it.

QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
    }
)
"""Codes and types of a 429 that says: no more, not: not now."""

_RETRIED_STATUS = frozenset({408, 409, 429})
_RETRIED_CODES = frozenset(
    {
        "rate_limit_exceeded",
        "server_error",
        "server_is_overloaded",
        "slow_down",
    }
)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, and how long to wait at the most, in seconds."""

    max_retries: int = 1
    max_wait: float = 60.0


def read_setback(
    status: int, error: ApiError, headers: Mapping[str, str], now: float
) -> Setback:
    """Return the setback of an HTTP answer; `now` in seconds since 1970."""
    wish = headers.get("x-should-retry", "").lower()
    wanted = {"true": True, "false": False}.get(wish)
    return Setback(status, error, _asked_wait(headers, now), wanted)


def retry_wait(
    policy: RetryPolicy, attempt: int, setback: Setback, jitter: float
) -> float | None:
    """Return the seconds to wait before the next attempt; None for no more.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not _is_retried(setback):
        return None
    backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (1 - 0.25 * jitter)
    wait = backoff if setback.after is None else setback.after
    return wait if wait <= policy.max_wait else None


def _is_retried(setback: Setback) -> bool:
    words = {setback.error.code, setback.error.type}
    if words & QUOTA_CODES or _is_limit_of_spending(setback.error.code):
        return False
    if setback.wanted is not None:
        return setback.wanted
    if setback.status in (None, 200):
        return words == {None} or bool(words & _RETRIED_CODES)
    return setback.status in _RETRIED_STATUS or setback.status >= 500


def _is_limit_of_spending(code: str | None) -> bool:
    suffixes = ("_spend_limit_exceeded", "_usage_limit_exceeded")
    return bool(code) and str(code).endswith(suffixes)


def _asked_wait(headers: Mapping[str, str], now: float) -> float | None:
    """Return what `retry-after-ms` or `retry-after` asks for, or None."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after")
    seconds = _number(text)
    if seconds is not None or text is None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except ValueError:
        return None


def _number(text: str | None) -> float | None:
    """Return a wait as a number: finite, not negative."""
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


# openai_responses.routes ==============================================================
# The way to a server: whose certificates to trust, which proxy to take.


class Trust:
    """The certificates of CA bundles, one context a file: or nothing is reused."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._contexts: dict[tuple[str, int], ssl.SSLContext] = {}

    def context(self, network: Network) -> ssl.SSLContext | bool:
        """Return whom to trust, in the form that aiohttp takes."""
        if not network.verify_ssl or not network.ca_bundle:
            return network.verify_ssl
        path = network.ca_bundle
        try:
            key = (path, Path(path).stat().st_mtime_ns)
            if key not in self._contexts:
                self._contexts[key] = ssl.create_default_context(cafile=path)
            return self._contexts[key]
        except (OSError, ValueError):  # no such file, or no certificates in it
            raise InvalidRequest(
                "CA_BUNDLE is not a file with certificates that this server can read. "
                "An administrator has to correct it in the valves of this pipe."
            ) from None


def proxy_for(network: Network, url: str) -> str | None:
    """Return the proxy on the way to `url`, or None; its scheme may be left out."""
    proxy = network.proxy.strip() or _environment_proxy(url)
    if not proxy:
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is None:
        raise InvalidRequest(
            "The proxy on the way to the model's server is not an http or https "
            "address. An administrator has to correct PROXY in the valves of this "
            "pipe, or the environment of Open WebUI."
        )
    return address


def _environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`, or None."""
    parts = urlsplit(url)
    if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


# openai_responses.sessions ============================================================
# The pooled HTTP session of each event loop.
#
# A session is opened by the first run that borrows it. It is closed when none has been
# under way for a while, or when its owner is gone: a host that replaces a pipe tells the
# old one nothing.

_IDLE_SECONDS = 60.0
"""Less than the keep-alive of OpenAI's front end, so that we close first."""
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; fewer would queue busy servers."""
_KEEPALIVE_SECONDS = 50.0
"""A connection that rested for longer may be closed by the other side at any time."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up costs the first words."""


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
                self._timer = loop.call_later(self._idle_seconds, self.close_later)

    async def close(self) -> None:
        """Close the session now, if there is one."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def close_later(self) -> None:
        """Close the session in a task of its own, for callers that cannot wait."""
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None  # at once: no run may borrow it
        if session is None:
            return
        # A task, held until it is done: a connector closed straight from a timer
        # warns "never awaited" on aiohttp 3.14.
        task = asyncio.get_running_loop().create_task(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


class Sessions:
    """The pools of one pipe, one for each event loop that runs it."""

    def __init__(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._idle_seconds = idle_seconds
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}

    def __del__(self) -> None:
        """Close what is open: the last run that held us has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def pool(self) -> _Pool:
        """Return the pool of the running loop; those of ended loops are dropped."""
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            alive = {one: p for one, p in self._pools.items() if not one.is_closed()}
            self._pools = {**alive, loop: _Pool(self._idle_seconds)}
        return self._pools[loop]

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()


def _new_session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=_MAX_CONNECTIONS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        ttl_dns_cache=_DNS_SECONDS,
    )
    # Limits of time are the runs' own; the environment's proxies are looked up by
    # us, because trust_env would also send what a .netrc file holds.
    no_limit = aiohttp.ClientTimeout(total=None, sock_connect=None, sock_read=None)
    # What a gateway sets for one user must not be sent for another.
    no_cookies = aiohttp.DummyCookieJar()
    return aiohttp.ClientSession(
        connector=connector, timeout=no_limit, cookie_jar=no_cookies
    )


# openai_responses.transport ===========================================================
# The only module that opens a connection.
#
# Errors of aiohttp become ours here, once; what a proxy, a certificate or a gateway
# does wrong gets a sentence of its own.

_DRAIN_SECONDS = 1.0
_MAX_ERROR_BODY = 64 * 1024

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word: the log shows it."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class Answer:
    """A response whose status is fine and whose body is still on its way."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Wrap `response`; whoever opened it closes it."""
        self._response = response
        self._deadlines = deadlines
        self._broke = False

    @property
    def is_stream(self) -> bool:
        """Say whether the body is an event stream."""
        return self._response.content_type == "text/event-stream"

    @property
    def request_id(self) -> str:
        """OpenAI's own id of the request, for the log."""
        return _request_id(self._response)

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the body as it arrives, in pieces of any length."""
        while chunk := await self._read_any():
            yield chunk

    async def _read_any(self) -> bytes:
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        scope = self._deadlines.scope()
        try:
            async with scope:
                return await self._response.content.readany()
        except _NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.passed() from None
            self._broke = True
        return self._rescued() or await self._read_any()

    def _rescued(self) -> bytes:
        """Return what arrived before the connection broke.

        aiohttp puts the exception in front of the bytes that nobody has read yet.
        """
        content = self._response.content
        content.set_exception(None)  # type: ignore[arg-type]
        return content.read_nowait()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Leave what arrives with the operating system for a while.

        Otherwise the event loop wakes for every packet, though nobody reads. Where
        aiohttp itself has stopped reading, because its buffer is full, it stays so.
        """
        connection = self._response.connection  # None once the body has ended
        transport = connection.transport if connection else None
        if transport is None or not transport.is_reading():
            yield
            return
        transport.pause_reading()
        try:
            yield
        finally:
            if not transport.is_closing():
                transport.resume_reading()

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
        pieces = [piece async for piece in self.chunks()]
        try:
            wire = json.loads(b"".join(pieces))
        except (ValueError, RecursionError):
            wire = None
        if isinstance(wire, dict) and isinstance(wire.get("output"), list):
            return wire
        if isinstance(wire, dict) and wire.get("error"):
            error = read_api_error(wire)
            setback = Setback(self._response.status, error)
            raise ApiRefused(failure_sentence(error), setback, self.request_id)
        raise UnreadableAnswer(SENTENCES["unreadable"][""])


class Connections:
    """Sends requests over the pooled sessions of one pipe."""

    def __init__(self, idle_seconds: float | None = None) -> None:
        """Open nothing yet; close a session after `idle_seconds` without a run."""
        self._sessions = Sessions() if idle_seconds is None else Sessions(idle_seconds)
        self._trust = Trust()

    @asynccontextmanager
    async def post(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any],
        deadlines: Deadlines | None = None,
    ) -> AsyncIterator[Answer]:
        """Send `payload` and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut or InvalidRequest; leaving early
        closes the connection, and with it the work upstream.
        """
        limits = deadlines or Deadlines(Timeouts())
        tls = self._trust.context(endpoint.network)
        with self._sessions.pool().lend() as session:
            response = await _send(session, endpoint, path, payload, limits, tls)
            try:
                if response.status >= 400:
                    raise await _refusal(response, str(payload.get("model", "")))
                yield Answer(response, limits)
            finally:
                response.close()  # nothing happens when it was read to its end

    async def close(self) -> None:
        """Close the session of the running loop, for tests and scripts."""
        await self._sessions.close()


async def _send(
    session: aiohttp.ClientSession,
    endpoint: Endpoint,
    path: str,
    payload: dict[str, Any],
    deadlines: Deadlines,
    tls: ssl.SSLContext | bool,
) -> aiohttp.ClientResponse:
    """Return the response once its head is there."""
    # A lone surrogate, from a broken copy and paste, must not stop the request.
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", errors="replace")
    url = endpoint.url(path)
    scope = deadlines.scope()
    try:
        async with scope:
            return await session.post(
                url,
                data=body,
                headers=endpoint.headers(),
                ssl=tls,
                proxy=proxy_for(endpoint.network, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.passed() from None
        raise ConnectionFailed(_network_sentence(error, endpoint.host)) from None
    except ValueError:  # a line break in the key, a host that no name server knows
        raise InvalidRequest(
            "API_KEY, BASE_URL, PROXY or EXTRA_HEADERS holds characters that cannot "
            "be sent. An administrator has to correct it in the valves of this pipe."
        ) from None


def _network_sentence(error: Exception, host: str) -> str:
    """Return what to tell of a connection that did not come about."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return SENTENCES["refused"]["407"]
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return (
                f"The certificate of {host} is not trusted here. An administrator has "
                "to check BASE_URL, CA_BUNDLE and VERIFY_SSL in the valves."
            )
    return (
        f"The model's server at {host} cannot be reached. Try again; if it lasts, an "
        "administrator has to check BASE_URL in the valves of this pipe."
    )


async def _refusal(response: aiohttp.ClientResponse, model: str) -> ApiRefused:
    """Return the error that a response with a bad status stands for."""
    body = b""
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            async for piece in response.content.iter_any():
                body += piece
                if len(body) > _MAX_ERROR_BODY:
                    break
        error = read_api_error(json.loads(body))
    except (*_NETWORK_ERRORS, ValueError, RecursionError):
        error = ApiError()  # no body, or not JSON: the status says it
    status = response.status
    setback = read_setback(status, error, response.headers, unix_seconds())
    sentence = refusal_sentence(status, error, model)
    return ApiRefused(sentence, setback, _request_id(response))


def _request_id(response: aiohttp.ClientResponse) -> str:
    """Return the server's id of a request, if it looks like one."""
    told = response.headers.get("x-request-id", "")
    return told if _REQUEST_ID.fullmatch(told) else ""


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


# openai_responses.events ==============================================================
# The closed union of stream events that we act on.
#
# All other events, also those that do not exist yet, are `Unknown`: they keep the
# connection alive, nothing more (responses-api.md §0.5).


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
# every state. Texts that end are authoritative: what a person has not seen of them yet
# is shown, and the ended item is the wire's own dict.

_Place = tuple[str, int]


class Turn:
    """One response, from its first event to its last."""

    def __init__(self, first_index: int = 0) -> None:
        """Count items from `first_index` on, the number of items of earlier turns."""
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.trace = Trace()
        self._first = first_index
        self._early: dict[int, list[Delta | Whole]] = {}
        self._open: dict[int, dict[_Place, list[str]]] = {}
        self._ended: dict[int, Item] = {}

    @property
    def output(self) -> list[Item]:
        """The items that ended, in the order of the API."""
        return [self._ended[index] for index in sorted(self._ended)]

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event; return what it means to those who watch the run."""
        self.event_count += 1
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
                self.trace = replace(self.trace, error=event.error)
                self.ending = ending_of_failure("error", event.error)
                # As the only event it is what a bad status is elsewhere.
                self.refusal = event.error if self.event_count == 1 else None
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
        self.trace = replace(
            self.trace,
            model=str(response.get("model") or ""),
            error=read_api_error(response.get("error")),
        )
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


# openai_responses.compat ==============================================================
# A request as other servers of the Responses API take it.
#
# They check more strictly and know less than OpenAI (responses-api.md §6): an unknown
# key or `include` is an error, a reasoning item or a call needs an id, and an answer of
# the assistant is a plain text.

_OPENAI_ONLY = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "stream_options",
)
_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` without what only OpenAI knows, its items with ids."""
    kept = {key: value for key, value in payload.items() if key not in _OPENAI_ONLY}
    return {**kept, "input": [_strict_item(item) for item in payload["input"]]}


def _strict_item(item: Item) -> Item:
    kind = item_type(item)
    if kind == "message" and item.get("role") == "assistant":
        return {"role": "assistant", "content": message_text(item)}
    if kind in _ID_PREFIXES:
        return {**item, "id": f"{_ID_PREFIXES[kind]}_{_digest(item)}"}
    return item


def _digest(item: Item) -> str:
    """Return an id that the same item always gets, so that the prefix stays."""
    told = str(item.get("encrypted_content") or item.get("call_id") or item)
    return hashlib.sha256(told.encode("utf-8", errors="replace")).hexdigest()[:32]


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


# openai_responses.event_reader ========================================================
# A server-sent event, read as one of the stream events that we act on.
#
# Events are told apart by their `type` alone; the `event:` line only repeats it.

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
    parallel_tool_calls: bool | None = None


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
        "parallel_tool_calls": settings.parallel_tool_calls,
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


# openai_responses.exchange ============================================================
# One request sent, its answer told as run events.

_THOUGHT_SHARE = 0.2
"""Growing reasoning is read for a fifth of that time at once, because the first words
of the answer must not wait for it."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How a run behaves towards those who watch it, and towards the server.

    `join_seconds` is the shortest time between two events that show more of an
    answer; what arrives meanwhile is shown together.
    """

    join_seconds: float = 0.05
    timeouts: Timeouts = field(default_factory=Timeouts)
    retries: RetryPolicy = field(default_factory=RetryPolicy)


@dataclass(frozen=True, slots=True)
class Line:
    """The way to a server: where it is, over which connections, within which limits."""

    endpoint: Endpoint
    connections: Connections
    limits: Limits
    deadlines: Deadlines


async def exchange(
    request: ResponsesRequest, line: Line, turn: Turn
) -> AsyncGenerator[RunEvent, None]:
    """Send `request`, feed the answer to `turn`, yield what it means.

    Raises the errors of `transport` and MalformedEvent. Cancelling it, or closing the
    generator, closes the connection.
    """
    payload = request.payload()
    if line.endpoint.strict:
        payload = strict_payload(payload)
    line.deadlines.start_attempt()
    posted = line.connections.post(line.endpoint, "/responses", payload, line.deadlines)
    async with posted as answer:
        turn.trace = Trace(answer.request_id, status=200)
        async with aclosing(_turn_events(answer, line, turn)) as events:
            async for event in events:
                yield event
        await answer.drain()


async def _turn_events(
    answer: Answer, line: Line, turn: Turn
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
            if batch:
                line.deadlines.event_arrived()
            events, malformed = _told(batch, turn)
            for told in events:
                yield told
            if malformed:
                raise malformed
            if turn.ending:
                return
            with answer.held():
                await _let_deltas_gather(events, began, line.limits.join_seconds)


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
    events: list[RunEvent], began: float, join_seconds: float
) -> None:
    """Wait for a moment after a delta.

    Reading less often is what makes long answers cheap: one pass then serves all the
    deltas that arrived. The first delta after a pause is never held back.
    """
    last = events[-1] if events else None
    if not isinstance(last, Grew) or join_seconds <= 0:
        return
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = monotonic_seconds() - began
    await asyncio.sleep(max(0.0, join_seconds * share - spent))


# openai_responses.healing =============================================================
# A refused request, changed so that it passes.
#
# Four refusals have a cause that we can take away, each at the price of something less
# (responses-api.md §0.9, §2.1, §4). They are recognised by the code, or by the words of
# the server where it gives no code; a request is changed once for each cause, and only
# while nothing has been shown.

_ITEM_ERRORS = re.compile(
    r"provided without its required"
    r"|Items are not persisted when"
    r"|Duplicate item found with id"
    r"|Expected an ID that begins with"
    r"|encrypted content .{0,400} could not be verified",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ALLOWED_TO_STREAM = re.compile(r"must be verified to stream", re.IGNORECASE)
_NAMED_VALUES = re.compile(r"'([a-z]{1,10})'")


@dataclass(frozen=True, slots=True)
class Healed:
    """A changed request, and what was given up for it.

    `cause` is "reasoning", "summary", "stream" or "effort".
    """

    cause: str
    request: ResponsesRequest
    sentence: str


def healed(request: ResponsesRequest, error: ApiError) -> Healed | None:
    """Return a request without what `error` complains of, if that can be left out."""
    for cause, heal in _REMEDIES.items():
        changed = heal(request, error)
        if changed is not None:
            return Healed(cause, changed, _SENTENCES[cause])
    return None


def _without_reasoning(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    """Leave out all reasoning: one unreadable item does not say which."""
    by_code = error.code == "invalid_encrypted_content"
    if not by_code and not _ITEM_ERRORS.search(error.message):
        return None
    kept = [
        item
        for item in request.input
        if not is_reasoning(item) and item_type(item) != "compaction"
    ]
    without_ids = [{k: v for k, v in item.items() if k != "id"} for item in kept]
    if without_ids == request.input:
        return None
    return request.model_copy(update={"input": without_ids})


def _without_summary(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    reasoning = request.reasoning or {}
    if "summary" not in reasoning or "reasoning.summary" not in _about(error):
        return None
    rest = {key: value for key, value in reasoning.items() if key != "summary"}
    return request.model_copy(update={"reasoning": rest or None})


def _without_stream(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    refused = error.param == "stream" or _NOT_ALLOWED_TO_STREAM.search(error.message)
    if not request.stream or not refused:
        return None
    return request.model_copy(update={"stream": False})


def _with_nearest_effort(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    """Take the effort nearest to the refused one among those that the error names."""
    reasoning = request.reasoning or {}
    asked = reasoning.get("effort")
    if asked not in REASONING_EFFORTS or "reasoning.effort" not in _about(error):
        return None
    order = list(REASONING_EFFORTS)
    named = {word for word in _NAMED_VALUES.findall(error.message) if word in order}
    others = sorted(named - {asked}, key=order.index)
    if not others:
        return None
    place = order.index(asked)
    nearest = min(others, key=lambda effort: abs(order.index(effort) - place))
    return request.model_copy(update={"reasoning": {**reasoning, "effort": nearest}})


def _about(error: ApiError) -> str:
    """Return what an error is about: its parameter, else the words around it."""
    return error.param or error.message


_Remedy = Callable[[ResponsesRequest, ApiError], ResponsesRequest | None]

_REMEDIES: Mapping[str, _Remedy] = {
    "reasoning": _without_reasoning,
    "summary": _without_summary,
    "stream": _without_stream,
    "effort": _with_nearest_effort,
}

_SENTENCES: Mapping[str, str] = {
    "reasoning": "The server could not read earlier reasoning of this chat: "
    "answering without it.",
    "summary": "This organisation gets no reasoning summaries: answering without.",
    "stream": "This organisation may not stream: the answer comes in one piece.",
    "effort": "The model does not have this effort: answering with the nearest one.",
}


# openai_responses.attempts ============================================================
# One turn: a request, sent again where that helps.
#
# It is sent again only before the first event of its answer: changed, where the refusal
# has a cause that can be left out, or as it is, where waiting may help.


class Attempts:
    """The attempts at one turn.

    Once `events` has ended, `turn` holds the answer, `request` what it answers, and
    `error` what stopped it, if something of ours did.
    """

    def __init__(
        self,
        request: ResponsesRequest,
        line: Line,
        retries: RetryPolicy,
        first_index: int = 0,
    ) -> None:
        """Count the items of the turn from `first_index` on."""
        self.request = request
        self.turn = Turn(first_index)
        self.error: ResponsesError | None = None
        self._line = line
        self._policy = retries
        self._first_index = first_index
        self._retries = 0
        self._healed: set[str] = set()
        self._wait = 0.0

    async def events(self) -> AsyncGenerator[RunEvent, None]:
        """Send the request and yield what happens, until there is no more to try."""
        while True:
            self.turn, self.error = Turn(self._first_index), None
            answer = exchange(self.request, self._line, self.turn)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        yield event
            except ResponsesError as caught:
                self.error = caught
            note = self._next()
            if note is None or not self._line.deadlines.leave(self._wait):
                break
            yield note
            await asyncio.sleep(self._wait)
        for event in self.turn.close():
            yield event

    @property
    def ending(self) -> Ending:
        """How the turn ended."""
        if self.turn.ending:
            return self.turn.ending
        if self.error is not None:
            return ending_of_exception(self.error, self.turn.event_count > 0)
        return CUT if self.turn.event_count else UNREADABLE

    @property
    def trace(self) -> Trace:
        """What the log needs to know of the last answer."""
        if not isinstance(self.error, ApiRefused):
            return self.turn.trace
        refused = self.error
        return Trace(refused.request_id, "", refused.setback.status, refused.error)

    def _next(self) -> Noted | None:
        """Return what to tell before the next attempt; None when there is none."""
        setback = _setback(self.error, self.turn)
        if setback is None:
            return None
        remedy = healed(self.request, setback.error)
        if remedy and remedy.cause not in self._healed:
            self._healed.add(remedy.cause)
            self.request, self._wait = remedy.request, 0.0
            return Noted(remedy.sentence, remedy.cause)
        wait = retry_wait(self._policy, self._retries, setback, random_fraction())
        if wait is None:
            return None
        self._retries += 1
        self._wait = wait
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        return Noted(f"{setback_sentence(setback)} Trying again in {seconds}.")


def _setback(error: ResponsesError | None, turn: Turn) -> Setback | None:
    """Return the failure, if it came before the first event of the answer."""
    if turn.refusal:
        return Setback(200, turn.refusal)
    if turn.event_count:
        return None
    if isinstance(error, ApiRefused):
        return error.setback
    silent = isinstance(error, TimedOut) and error.kind == "first_event_timeout"
    return Setback() if silent or isinstance(error, ConnectionFailed) else None


# openai_responses.approvals ===========================================================
# Whether a call may run: by rule, or by asking a person.
#
# A rule is a pattern of tool names with an answer, `delete_*=ask`; the first that fits
# counts. Nobody there to ask, or no clear yes, is a no.

Approval = Literal["auto", "ask", "deny"]

Ask = Callable[[str, str, Mapping[str, Any]], Awaitable[bool]]
"""Shows a person the id, the name and the arguments of a call; True is a yes."""


@dataclass(frozen=True, slots=True)
class Approver:
    """The rules of a request, with the way to ask for the calls they leave open."""

    rules: Sequence[tuple[str, Approval]] = ()
    otherwise: Approval = "auto"
    ask: Ask | None = field(default=None, compare=False)

    def rule_for(self, name: str) -> Approval:
        """Return what the rules say of a tool."""
        fitting = (
            answer for pattern, answer in self.rules if fnmatchcase(name, pattern)
        )
        return next(fitting, self.otherwise)

    async def refusal(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> str | None:
        """Return what to tell the model of a call that may not run, or None."""
        match self.rule_for(name):
            case "auto":
                return None
            case "deny":
                return f"The administrator does not allow {name}. Do not call it again."
        if await self._is_approved(call_id, name, arguments):
            return None
        return f"The user did not approve this call of {name}. Go on without it."

    async def _is_approved(
        self, call_id: str, name: str, arguments: Mapping[str, Any]
    ) -> bool:
        try:
            return self.ask is not None and await self.ask(call_id, name, arguments)
        except Exception:  # whoever cannot be asked has not said yes
            return False


def read_rules(text: str) -> list[tuple[str, Approval]]:
    """Return the rules of a valve, one a line or a comma: `pattern=auto|ask|deny`.

    A pattern alone means `ask`. Raises InvalidRequest for any other word.
    """
    rules: list[tuple[str, Approval]] = []
    for entry in text.replace("\n", ",").split(","):
        pattern, _, answer = (part.strip() for part in entry.partition("="))
        match answer or "ask":
            case "auto" | "ask" | "deny" as known if pattern:
                rules.append((pattern, known))
            case _ if pattern or answer:
                raise InvalidRequest(
                    "TOOL_APPROVAL holds something that is no rule. An administrator "
                    "has to correct it in the valves, for example `delete_*=ask`."
                )
    return rules


# openai_responses.schemas =============================================================
# A JSON Schema made strict.
#
# Strict mode takes a part of JSON Schema: every object closed, every property required
# (optional ones become nullable, see `arguments.without_nulls`), no open maps. What
# cannot be said in it is not guessed: such a function is sent with `strict: false`.

Schema = dict[str, Any]

_KEPT = frozenset(
    {
        *("description", "enum", "multipleOf", "minimum", "maximum"),
        *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "pattern"),
    }
)
"""Keywords that stay as they are."""

_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))

_STRICT_FORMATS = frozenset(
    {
        *("date-time", "time", "date", "duration", "email"),
        *("hostname", "ipv4", "ipv6", "uuid"),
    }
)

_NARROWING = frozenset(
    {
        *("not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
        *(
            "dependencies",
            "patternProperties",
            "propertyNames",
            "prefixItems",
            "contains",
        ),
        *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
    }
)
"""Keywords that change what is allowed and have no strict form."""

_JSON_TYPES: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_ALL_TYPES = {*_JSON_TYPES.values(), "object", "array"}

_DEFINITIONS = ("$defs", "definitions")
_DEEPEST_STRICT, _MOST_PROPERTIES = 10, 5000


class NotStrict(Exception):
    """The schema has no strict form."""


def strict_schema(schema: Mapping[str, Any]) -> Schema | None:
    """Return a function's parameters for strict mode; None where it cannot say them.

    What the result allows the given schema allows too, but for the nulls of optional
    properties and for limits that only a description can tell (`minLength`).
    """
    try:
        return _Rewriting(schema).result()
    except (NotStrict, RecursionError):
        return None
    except (TypeError, AttributeError, ValueError):
        return None  # what a server calls a schema need not be one


def definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the named parts of a schema, from both places where they may stand."""
    found: dict[str, Any] = {}
    for key in _DEFINITIONS:
        named = schema.get(key)
        for name, part in named.items() if isinstance(named, Mapping) else ():
            # Two of one name and different content: neither is the right one.
            found[name] = part if found.get(name, part) == part else None
    return found


def referred(node: Any, root: Mapping[str, Any]) -> Any:
    """Return the part of `root` that a `$ref` names, or None."""
    steps = str(node.get("$ref")).split("/")
    if len(steps) == 3 and steps[0] == "#" and steps[1] in _DEFINITIONS:
        return definitions(root).get(steps[2])
    return None


class _Rewriting:
    """One schema on its way to the strict form."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._properties = 0

    def result(self) -> Schema:
        """Return the strict form; raises NotStrict."""
        root = {k: v for k, v in self._root.items() if k not in _DEFINITIONS}
        if root.keys() & {"anyOf", "oneOf", "$ref", "enum", "const"}:
            raise NotStrict
        closed = {"type": "object", "properties": {}, **root}
        strict = self._strict(closed, 1, is_root=True)
        if strict["type"] != "object":
            raise NotStrict
        named = definitions(self._root)
        parts = {name: self._strict(part, 1) for name, part in named.items()}
        return {**strict, "$defs": parts} if parts else strict

    def _strict(self, node: Any, depth: int, is_root: bool = False) -> Schema:
        if (
            not isinstance(node, Mapping)
            or depth > _DEEPEST_STRICT
            or node.keys() & _NARROWING
        ):
            raise NotStrict
        if node.get("nullable") is True:
            rest = {key: value for key, value in node.items() if key != "nullable"}
            return nullable(self._strict(rest, depth, is_root))
        if "allOf" in node:
            return self._strict(self._merged(node), depth, is_root)
        if "$ref" in node:
            return self._reference(node)
        if "anyOf" in node or "oneOf" in node:
            return self._choice(node, depth)
        return self._plain(node, depth, is_root)

    def _reference(self, node: Mapping[str, Any]) -> Schema:
        if referred(node, self._root) is None:
            raise NotStrict
        return {"$ref": "#/$defs/" + str(node["$ref"]).split("/")[-1]}

    def _choice(self, node: Mapping[str, Any], depth: int) -> Schema:
        """Return a choice; strict mode knows only `anyOf`, and nothing beside it."""
        options = node.get("anyOf") or node.get("oneOf")
        beside = node.keys() & {"properties", "items", "enum", "const", "required"}
        beside |= {"oneOf"} if {"anyOf", "oneOf"} <= node.keys() else set()
        if not isinstance(options, list) or not options or beside:
            raise NotStrict
        told = {"description": node["description"]} if "description" in node else {}
        return {**told, "anyOf": [self._strict(one, depth + 1) for one in options]}

    def _merged(self, node: Mapping[str, Any]) -> Schema:
        """Return an `allOf` as one object, where its parts do not contradict."""
        merged: Schema = {key: node[key] for key in node if key != "allOf"}
        for part in node["allOf"] if isinstance(node["allOf"], list) else [None]:
            found = referred(part, self._root) if _is_reference(part) else part
            if not isinstance(found, Mapping) or "allOf" in found:
                raise NotStrict
            merged = _combined(merged, found)
        return merged

    def _plain(self, node: Mapping[str, Any], depth: int, is_root: bool) -> Schema:
        strict = {key: node[key] for key in node if key in _KEPT}
        for bound, limit in _BOUNDS:
            if strict.get(bound) is True and limit in strict:  # OpenAPI 3.0
                strict[bound] = strict.pop(limit)
            elif isinstance(strict.get(bound), bool):
                del strict[bound]
        if node.get("format") in _STRICT_FORMATS:
            strict["format"] = node["format"]
        if "const" in node:
            strict["enum"] = [node["const"]]
        kinds = _kinds(node, strict.get("enum"))
        if kinds:
            strict["type"] = kinds[0] if len(kinds) == 1 else kinds
        if "object" in kinds:
            strict |= self._object(node, depth, is_root)
        if "array" in kinds:
            strict["items"] = self._strict(node.get("items"), depth + 1)
        return strict

    def _object(self, node: Mapping[str, Any], depth: int, is_root: bool) -> Schema:
        """Return a closed object; an open map has no strict form."""
        properties = node.get("properties") or {}
        said = "additionalProperties" in node or bool(properties) or is_root
        is_open = node.get("additionalProperties", False) is not False
        if is_open or not said or not isinstance(properties, Mapping):
            raise NotStrict
        self._properties += len(properties)
        if self._properties > _MOST_PROPERTIES:
            raise NotStrict
        required = node.get("required") or ()
        if not set(required) <= set(properties):
            raise NotStrict
        strict = {}
        for name, part in properties.items():
            made = self._strict(part, depth + 1)
            strict[name] = made if name in required else nullable(made)
        return {
            "properties": strict,
            "required": list(strict),
            "additionalProperties": False,
        }


def nullable(schema: Schema) -> Schema:
    """Return a strict schema that also allows null."""
    kinds = schema.get("type")
    if kinds is None or kinds in ("object", "array"):
        told = {"description": schema["description"]} if "description" in schema else {}
        rest = {key: value for key, value in schema.items() if key != "description"}
        options = rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]
        none = {"type": "null"}
        return {**told, "anyOf": options if none in options else [*options, none]}
    listed = kinds if isinstance(kinds, list) else [kinds]
    made = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        made["enum"] = [*schema["enum"], None]
    return made


def _kinds(node: Mapping[str, Any], enum: object) -> list[str]:
    """Return the types of a schema: as it says, or as what it holds tells."""
    said = node.get("type") or ("object" if "properties" in node else None)
    if said is None and isinstance(enum, list):
        said = list(dict.fromkeys(_JSON_TYPES.get(type(one), "") for one in enum))
    kinds = [said] if isinstance(said, str) else said
    if not isinstance(kinds, list) or not kinds or not set(kinds) <= _ALL_TYPES:
        raise NotStrict
    return kinds


def _is_reference(part: object) -> bool:
    return isinstance(part, Mapping) and part.keys() == {"$ref"}


def _combined(one: Schema, other: Mapping[str, Any]) -> Schema:
    """Return both schemas as one; raises NotStrict where they say different things."""
    both = dict(one)
    for key, value in other.items():
        if key == "properties" and isinstance(value, Mapping):
            mine = both.get(key) or {}
            if any(name in mine and mine[name] != value[name] for name in value):
                raise NotStrict
            both[key] = {**mine, **value}
        elif key == "required":
            both[key] = list(dict.fromkeys([*both.get(key, ()), *value]))
        elif key in both and both[key] != value and key not in ("description", "title"):
            raise NotStrict
        else:
            both.setdefault(key, value)
    return both


# openai_responses.arguments ===========================================================
# What a model gives a function, held against the function's own schema.
#
# The check knows the keywords that models get wrong: types, required properties, enums,
# items and choices. Others are the tool's business.

_DEEPEST_ARGUMENT = 40


def _is_number(value: Any) -> bool:
    """Say whether a value is a number; true is none, nor is what JSON cannot say."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value)


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == int(value),
}


def argument_complaint(arguments: object, schema: Mapping[str, Any]) -> str | None:
    """Return what is wrong with arguments, as a sentence for the model; None if fine.

    Nulls that stand for "not given" are fine.
    """
    if not isinstance(arguments, Mapping):
        return "The arguments must be a JSON object."
    try:
        found = _misfit(without_nulls(arguments, schema), schema, schema, "", 0)
    except (TypeError, AttributeError, ValueError):
        return None  # what a server calls a schema need not be one
    return None if found is None else f"The argument {found}."


def without_nulls(
    arguments: Mapping[str, Any], schema: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the arguments without the nulls that stand for "not given".

    They do where a property is optional and must not be null itself.
    """
    return dict(_cleaned(arguments, schema, schema, 0))


def _cleaned(value: Any, node: Any, root: Mapping[str, Any], depth: int) -> Any:
    if depth > _DEEPEST_ARGUMENT:
        return value
    forms = list(_all_forms(node, root))
    if isinstance(value, list):
        items = next((form["items"] for form in forms if "items" in form), None)
        return [_cleaned(one, items, root, depth + 1) for one in value]
    if not isinstance(value, Mapping):
        return value
    known: dict[str, Any] = {}
    required: set[str] = set()
    for form in forms:
        known |= form.get("properties") or {}
        required |= set(form.get("required") or ())
    return {
        name: _cleaned(one, known.get(name), root, depth + 1)
        for name, one in value.items()
        if one is not None
        or name not in known
        or name in required
        or _misfit(None, known[name], root, name, 0) is None
    }


def _all_forms(node: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Any]:
    """Yield a schema, with all the schemas it refers to or is put together from."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_ARGUMENT:
        return
    yield node
    parts = [referred(node, root)] if "$ref" in node else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += node[key] if isinstance(node.get(key), list) else []
    for part in parts:
        yield from _all_forms(part, root, depth + 1)


def _misfit(
    value: Any, node: Any, root: Mapping[str, Any], path: str, depth: int
) -> str | None:
    """Return the path and what is wrong there, or None."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_ARGUMENT:
        return None
    if value is None and node.get("nullable") is True:
        return None
    if "$ref" in node:
        return _misfit(value, referred(node, root), root, path, depth + 1)
    found = _own_misfit(value, node, path)
    if found is None and isinstance(value, Mapping):
        found = _in_object(value, node, root, path, depth)
    if found is None and isinstance(value, list):
        found = _in_list(value, node, root, path, depth)
    return found or _in_parts(value, node, root, path, depth)


def _own_misfit(value: Any, node: Mapping[str, Any], path: str) -> str | None:
    """Hold a value against the type of a schema, then against what it may be."""
    place = path or "object"
    kinds = _known_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{place} must be {_listed(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not any(_same(value, one) for one in allowed):
        return f"{place} must be one of {_listed(list(map(repr, allowed)))}"
    return None


def _known_types(said: Any) -> list[str]:
    kinds = [said] if isinstance(said, str) else said or []
    return [kind for kind in kinds if kind in _TYPES]


def _in_object(
    value: Mapping[str, Any],
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    path: str,
    depth: int,
) -> str | None:
    missing = [name for name in node.get("required") or () if name not in value]
    if missing:
        return f"{_joined(path, str(missing[0]))} is missing"
    properties = node.get("properties") or {}
    parts = ((name, properties[name]) for name in properties if name in value)
    found = (
        _misfit(value[name], part, root, _joined(path, name), depth + 1)
        for name, part in parts
    )
    return next((one for one in found if one), None)


def _in_list(
    value: Sequence[Any],
    node: Mapping[str, Any],
    root: Mapping[str, Any],
    path: str,
    depth: int,
) -> str | None:
    found = (
        _misfit(one, node.get("items"), root, f"{path}[{place}]", depth + 1)
        for place, one in enumerate(value)
    )
    return next((one for one in found if one), None)


def _in_parts(
    value: Any, node: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int
) -> str | None:
    """Hold a value against `allOf`, and against one at least of a choice."""
    for part in node.get("allOf") or ():
        found = _misfit(value, part, root, path, depth + 1)
        if found:
            return found
    options = node.get("anyOf") or node.get("oneOf") or ()
    misfits = [_misfit(value, one, root, path, depth + 1) for one in options]
    if misfits and all(misfits):
        return f"{path or 'object'} fits none of its forms"
    return None


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(words: Sequence[str]) -> str:
    """Return a few words as a list; long ones are no help to a model."""
    shown = [word if len(word) <= 60 else word[:57] + "..." for word in words[:20]]
    return " or ".join(shown) + (" ..." if len(words) > 20 else "")


def _same(one: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


# openai_responses.calls ===============================================================
# Callables run by name: checked, bounded, each with an output whatever happens.
#
# The model gets a sentence of ours for every failure; what an exception says goes to
# the log alone, because it may quote what the model must not see.


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """What a tool returned.

    `output` is for the model: a text, or content parts with pictures. `card` holds
    what the host shows beside it (`files`, `embeds`).
    """

    output: str | list[Item]
    failed: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


class CallableTools(Protocol):
    """The tools of a request, by their own names or those that the model was given."""

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for no such tool."""

    def meant(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of the tool that a call is for, with its arguments.

        A tool that only passes calls on names another one; None if it names none.
        """

    def waits_for_people(self, name: str) -> bool:
        """Say whether a tool's time is a person's, which no limit counts."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Run a tool; whatever it raises is a failure of the tool."""


@dataclass(frozen=True, slots=True)
class _Ready:
    """A call that may run: of which tool, with which arguments."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class CallLimits:
    """How many calls run at once, for how many seconds, with how long an output."""

    at_once: int = 8
    seconds: float = 120.0
    batch_seconds: float = 600.0
    characters: int = 100_000


@dataclass(frozen=True, slots=True)
class Toolset:
    """What a run needs to answer calls itself.

    `log` takes lines that say why a tool failed. `rounds` is how often the model may
    call, `most_calls` how many calls it may make in all; `carries_reasoning` says
    whether it gets its reasoning back between them.
    """

    tools: CallableTools
    approver: Approver = field(default_factory=Approver)
    limits: CallLimits = field(default_factory=CallLimits)
    log: Callable[[str], object] = field(default=str)
    rounds: int = 10
    most_calls: int = 100
    carries_reasoning: bool = True


async def run_calls(
    calls: Sequence[Item], toolset: Toolset
) -> AsyncGenerator[tuple[Item, ToolAnswer], None]:
    """Run `calls` side by side; yield each with its answer, in their own order.

    The order is kept because a host that stores the answers as they come would send
    them in another one next time. Every call is answered exactly once. Closing the
    generator cancels what runs.
    """
    slots = asyncio.Semaphore(toolset.limits.at_once)
    checked = [await _checked(call, toolset) for call in calls]
    tasks = [asyncio.create_task(_answer(found, toolset, slots)) for found in checked]
    limited = [
        task
        for found, task in zip(checked, tasks, strict=True)
        if not _is_peoples(found, toolset)
    ]
    loop = asyncio.get_running_loop()
    deadline = loop.time() + toolset.limits.batch_seconds
    try:
        for call, task in zip(calls, tasks, strict=True):
            left = deadline - loop.time() if task in limited else None
            await asyncio.wait([task], timeout=left)
            if not task.done():
                _cancel(limited)  # together: none may begin in the place of another
            yield call, _result(task, call, toolset)
    finally:
        _cancel(tasks)


def _cancel(tasks: Iterable[asyncio.Task[ToolAnswer]]) -> None:
    for task in tasks:
        task.cancel()


def _result(task: asyncio.Task[ToolAnswer], call: Item, toolset: Toolset) -> ToolAnswer:
    """Return the answer of a task, or what stands for it after the deadline."""
    if task.done() and not task.cancelled():
        return task.result()
    seconds = toolset.limits.batch_seconds
    return failed_answer(
        f"{_name(call)} was stopped: the tools took over {seconds:g} s."
    )


async def _checked(call: Item, toolset: Toolset) -> _Ready | ToolAnswer:
    """Return a call that may run, or the answer that it gets instead."""
    name, tools = _name(call), toolset.tools
    found = _ready_call(name, _arguments(call), tools)
    if isinstance(found, _Ready):
        meant = tools.meant(name, found.arguments)
        if meant is None:
            return failed_answer(f"{name} was not called: it names no tool to call.")
        found = _ready_call(*meant, tools)
    if isinstance(found, ToolAnswer):
        return found
    refusal = await toolset.approver.refusal(
        str(call["call_id"]), found.name, found.arguments
    )
    return found if refusal is None else failed_answer(refusal)


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> _Ready | ToolAnswer:
    """Return a call whose arguments are as its tool wants them."""
    schema = tools.parameters(name)
    if schema is None:
        return failed_answer(f"There is no tool named {name}. Use one that is offered.")
    complaint = argument_complaint(arguments, schema)
    if complaint is not None or not isinstance(arguments, dict):
        return failed_answer(f"{name} was not called: {complaint}")
    return _Ready(name, without_nulls(arguments, schema))


def _arguments(call: Item) -> object:
    """Return what the model gave: an object, or the text of a custom call."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = call.get("arguments")
    try:
        return json.loads(text) if isinstance(text, str) and text.strip() else {}
    except (ValueError, RecursionError):
        return None


async def _answer(
    found: _Ready | ToolAnswer, toolset: Toolset, slots: asyncio.Semaphore
) -> ToolAnswer:
    """Run one call within its limits, unless it has been answered already."""
    if isinstance(found, ToolAnswer):
        return found
    if _is_peoples(found, toolset):
        return await _called(found, toolset, None)
    async with slots:
        return await _called(found, toolset, toolset.limits.seconds)


async def _called(ready: _Ready, toolset: Toolset, seconds: float | None) -> ToolAnswer:
    name = ready.name
    try:
        async with asyncio.timeout(seconds) as scope:
            answer = await toolset.tools.call(name, ready.arguments)
        return _capped(answer, toolset.limits.characters)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return failed_answer(f"{name} did not finish within {seconds:g} s.")
        # A tool that ends its process, or cancels itself, must not end the run.
        toolset.log(f"the tool {name} raised {type(error).__name__}: {error}")
        return failed_answer(f"{name} failed. Tell the user, or try another way.")


def _capped(answer: ToolAnswer, characters: int) -> ToolAnswer:
    """Return an answer with a long text cut in the middle."""
    output = answer.output
    if isinstance(output, str):
        return ToolAnswer(capped_text(output, characters), answer.failed, answer.card)
    parts = [
        (
            {**part, "text": capped_text(part["text"], characters)}
            if isinstance(part.get("text"), str)
            else part
        )
        for part in output
    ]
    return ToolAnswer(parts, answer.failed, answer.card)


def capped_text(text: str, characters: int) -> str:
    """Return `text` with head and tail, and a note of what was cut between them."""
    if len(text) <= characters:
        return text
    half = characters // 2
    note = f"\n[... {len(text) - 2 * half} characters are cut here ...]\n"
    return text[:half] + note + text[len(text) - half :]


def output_of(call: Item, answer: ToolAnswer) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def failed_answer(sentence: str) -> ToolAnswer:
    """Return the answer of a call that did not succeed, in words for the model."""
    return ToolAnswer(f"Error: {sentence}", failed=True)


def _name(call: Item) -> str:
    return str(call.get("name") or "")


def _is_peoples(found: _Ready | ToolAnswer, toolset: Toolset) -> bool:
    return isinstance(found, _Ready) and toolset.tools.waits_for_people(found.name)


# openai_responses.run =================================================================
# A whole request, as a stream of run events: turn, calls, turn.
#
# The loop knows neither host nor valve: what it needs comes in frozen inputs, what
# happens goes out as events, and the last of them says how the run ended.

_NO_RETRY = RetryPolicy(0)
"""What a tool did cannot be undone, so that nothing after it is sent twice."""

_ROUNDS_USED_UP = "was not run: the limit of tool rounds is reached. Answer without it."
_CALLS_USED_UP = "was not run: the limit of tool calls is reached. Answer without it."
_BROKEN_OFF = "was not run: the answer that asked for it broke off."


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> AsyncGenerator[RunEvent, None]:
    """Send `request` and report what happens; ends with exactly one RunEnded.

    With a `toolset` calls are run and answered here; without, they are left open for
    the caller. Raises nothing of ours: a refusal is an ending. Cancelling it, or
    closing the generator, closes the connection and cancels the tools.
    """
    line = Line(endpoint, connections, limits, Deadlines(limits.timeouts))
    retries = limits.retries
    so_far = _SoFar()
    while True:
        attempts = Attempts(request, line, retries, len(so_far.output))
        async with aclosing(attempts.events()) as events:
            async for event in events:
                yield event
        so_far.add_turn(attempts)
        calls = [item for item in attempts.turn.output if is_call(item)]
        if toolset is None or not calls:
            break
        round_ = _Round(calls, toolset, so_far, attempts.ending.is_failure)
        async with aclosing(round_.answers()) as answers:
            async for answered in answers:
                yield answered
        if attempts.ending.is_failure or so_far.is_last_turn:
            break
        request = _next_request(attempts, toolset, so_far, round_)
        retries = _NO_RETRY
    yield RunEnded(
        attempts.ending,
        so_far.usage,
        attempts.turn.usage,
        tuple(so_far.output),
        attempts.trace,
    )


class _SoFar:
    """What the turns of a run have come to."""

    def __init__(self) -> None:
        self.output: list[Item] = []
        self.usage: Usage | None = None
        self.rounds = 0
        self.calls = 0
        self.is_last_turn = False

    def add_turn(self, attempts: Attempts) -> None:
        """Count what a turn brought."""
        self.output += attempts.turn.output
        self.usage = add_usage(self.usage, attempts.turn.usage)


class _Round:
    """The calls of one turn, each of which gets an output, in the same order.

    `was_limited` says whether a limit kept one from being run.
    """

    def __init__(
        self, calls: Sequence[Item], toolset: Toolset, so_far: _SoFar, broken: bool
    ) -> None:
        self._calls = calls
        self._toolset = toolset
        self._so_far = so_far
        self._broken = broken
        self.outputs: list[Item] = []
        self.was_limited = False

    async def answers(self) -> AsyncGenerator[CallAnswered, None]:
        """Answer every call and tell of it; the run's output grows by the outputs."""
        allowed = self._allowed()
        async with aclosing(run_calls(self._calls[:allowed], self._toolset)) as ended:
            async for call, answer in ended:
                yield self._told(call, answer)
        for call in self._calls[allowed:]:
            refused = failed_answer(f"{call.get('name')} {self._why()}")
            yield self._told(call, refused)
        self.was_limited = allowed < len(self._calls)
        self._so_far.rounds += 1
        self._so_far.calls += allowed

    def _told(self, call: Item, answer: ToolAnswer) -> CallAnswered:
        item, index = output_of(call, answer), len(self._so_far.output)
        self.outputs.append(item)
        self._so_far.output.append(item)
        return CallAnswered(index, item, answer.failed, answer.card)

    def _allowed(self) -> int:
        """Return how many of the calls may run."""
        if self._broken or self._so_far.rounds >= self._toolset.rounds:
            return 0
        left = self._toolset.most_calls - self._so_far.calls
        return max(0, min(left, len(self._calls)))

    def _why(self) -> str:
        if self._broken:
            return _BROKEN_OFF
        used_up = self._so_far.rounds >= self._toolset.rounds
        return _ROUNDS_USED_UP if used_up else _CALLS_USED_UP


def _next_request(
    attempts: Attempts, toolset: Toolset, so_far: _SoFar, round_: _Round
) -> ResponsesRequest:
    """Return the request of the next turn: all of this one, and what came of it.

    A tool that had to be called has been; at the limit the last turn may call none.
    The tools themselves stay, because the prompt cache lives on them.
    """
    request = attempts.request
    received = given_back(
        attempts.turn.output, with_reasoning=toolset.carries_reasoning
    )
    so_far.is_last_turn = round_.was_limited
    choice = "none" if round_.was_limited else _later_choice(request.tool_choice)
    items = [*request.input, *received, *round_.outputs]
    return request.model_copy(update={"input": items, "tool_choice": choice})


def _later_choice(choice: object) -> object:
    """Return what a choice comes to after the first calls; what it forbids stays so."""
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return "none" if choice == "none" else None


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


# openai_responses.tool_names ==========================================================
# Names of tools that the API forbids, there and back.

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_STEM = 51  # of 64; the rest is `_` and the digest
_DIGEST = 12


@dataclass(frozen=True, slots=True)
class ToolNames:
    """What each tool is called in a request; `known` are the tools' own names.

    What a name becomes depends on itself, so that it is the same in the next request;
    only a known tool that has that very name already makes a difference.
    """

    known: tuple[str, ...] = ()

    def sent(self, name: str) -> str:
        """Return the name that the API gets: 1 to 64 letters, digits, `_` and `-`."""
        if _ALLOWED.fullmatch(name):
            return name
        stem, seed = _FORBIDDEN.sub("_", name)[:_STEM], name
        while True:
            seed = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).hexdigest()
            sent = f"{stem}_{seed[:_DIGEST]}"
            if sent not in self.known:
                return sent

    def original(self, sent: str) -> str:
        """Return the tool's own name of the one that the model used."""
        return next((name for name in self.known if self.sent(name) == sent), sent)

    def sent_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        return [self._sent_tool(tool) for tool in tools]

    def _sent_tool(self, tool: Item) -> Item:
        if tool.get("type") not in ("function", "custom"):
            return tool
        return {**tool, "name": self.sent(tool["name"])}


# openai_responses.redaction ===========================================================
# Secrets out of text.
#
# Two passes: the values that are known to be secret, in every form in which they travel;
# then whatever looks like a secret. A part that is `[redacted]` already is left alone.
#
# No rule may look behind a character that another rule can take, and none may end in
# front of a letter or digit: that keeps a second pass from finding anything. What a
# rule repeats without bound is possessive or starts with a character that it cannot
# repeat: that keeps the time linear.

REDACTED = "[redacted]"

_SHORTEST_SECRET = 6

_SPACE = r"[^\S\r\n]*+"
_NAME_ENDS = rf"""["'\\]*+{_SPACE}(?:[:=]|,(?={_SPACE}b?["'])){_SPACE}"""
_VALUE_OPENS = r"""(?:b(?=["'])|["'\\(\[])*+"""
_ASSIGNED = _NAME_ENDS + _VALUE_OPENS

_LOOKS_SECRET = re.compile(
    "|".join(
        [
            # A header: its value goes on to the end of the line or of the quotes.
            rf"(?P<header>(?:authorization|cookies?){_ASSIGNED})"
            r"""[^\s"'\\](?:[^\r\n"'\\]|\\[^"'nr\r\n])*+""",
            # A name whose value is one word, or in quotes.
            r"(?P<name>(?:api[-_ ]?key(?:\ provided)?|client[-_]?secret|passw(?:or)?d|"
            r"(?:access|auth|refresh|session)[-_]?token|encrypted_content)"
            rf"""{_ASSIGNED})(?:(?<=["'])[^\r\n"'\\]++|[^\s"'\\&,;)}}\]>]++)""",
            # A query parameter.
            r"(?P<query>[?&][\w.-]{0,32}?(?:key|token|secret|password|signature|sig)=)"
            r"""[^\s"'\\&#;)}\]>]++""",
            r"(?P<scheme>://)[^\s/?#\"'<>]*@",
            r"(?P<bearer>bearer(?:\s|%20){1,4})[A-Za-z0-9._~+/=*-]{6,}+",
            # `Basic` is a word too: base64 has digits, or a capital inside a word.
            r"(?P<basic>basic\s{1,4}(?-i:(?=[A-Za-z]*+[0-9+/=]|[A-Za-z]*?[a-z][A-Z])))"
            r"[A-Za-z0-9+/]{8,}+={0,2}",
            r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_)[A-Za-z0-9_*-]{6,}+",
            # A JSON Web Token begins with `{"` in base64, a Fernet token with its
            # version and four bytes of a time that are zero for a while yet.
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+"
            r"(?:\.[A-Za-z0-9_-]*+)?",
            r"gAAAA[A-Za-z0-9_-]{20,}+={0,2}",
        ]
    ),
    re.IGNORECASE,
)


def redacted(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `[redacted]` in place of `secrets` and of what looks like one.

    A second time changes nothing. Secrets of fewer than six characters are ignored:
    they would be found in ordinary words.
    """
    known = {form for secret in secrets for form in _forms(secret.strip())}
    if known:
        longest_first = sorted(known, key=lambda form: (-len(form), form))
        pattern = "|".join(re.escape(form) for form in longest_first)
        text = _replaced(re.compile(pattern, re.IGNORECASE), text)
    return _replaced(_LOOKS_SECRET, text)


def _replaced(pattern: re.Pattern[str], text: str) -> str:
    return REDACTED.join(
        pattern.sub(_keeping_the_name, part) for part in text.split(REDACTED)
    )


def _keeping_the_name(found: re.Match[str]) -> str:
    """Return the mark, with what tells the reader which secret was there."""
    name = found[found.lastgroup] if found.lastgroup else ""
    return f"{name}{REDACTED}{'@' if found.lastgroup == 'scheme' else ''}"


def _forms(secret: str) -> Iterator[str]:
    """Yield `secret` as it stands in headers, addresses, JSON and base64."""
    if len(secret) < _SHORTEST_SECRET:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield from (quote(raw), quote(raw, safe=""), quote_plus(raw))
    yield from (json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False))
    for offset in range(3):
        inner = _inside_base64(raw, offset)
        yield from (inner, inner.replace("+", "-").replace("/", "_"))


def _inside_base64(raw: bytes, offset: int) -> str:
    """Return the characters that `raw` alone decides when `offset` bytes precede it.

    The password of a `Basic` header stands behind a user name that nobody told us;
    its length modulo three is all that matters.
    """
    encoded = b64encode(bytes(offset) + raw).decode()
    return encoded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]


# openai_responses.open_schemas ========================================================
# A JSON Schema as the API takes it without strict mode.
#
# There too the root of a function's parameters has to be an object with `properties`
# that is no choice, and an array has to say what it holds. One tool that breaks this
# would be an error for the whole request.

_NOT_AT_THE_ROOT = ("allOf", "anyOf", "oneOf", "enum", "const", "not", "$ref")
_DEEPEST_OPEN = 30


def open_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a function's parameters in a form that is never refused.

    What a choice at the root offers becomes one object with all its properties.
    """
    kept = {key: schema[key] for key in schema if key not in _NOT_AT_THE_ROOT}
    properties = _properties(schema, schema, 0)
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    root = {**kept, "type": "object", "properties": properties}
    if "required" in schema:
        root["required"] = [name for name in names if isinstance(name, str)]
    return dict(_with_items(root, 0))


def _properties(node: object, root: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """Return all properties that an object may have, whatever it is made of."""
    if not isinstance(node, Mapping) or depth > _DEEPEST_OPEN:
        return {}
    found: dict[str, Any] = {}
    parts = [referred(node, root)] if "$ref" in node else []
    for key in ("allOf", "anyOf", "oneOf"):
        parts += node[key] if isinstance(node.get(key), list) else []
    for part in parts:
        found = {**_properties(part, root, depth + 1), **found}
    own = node.get("properties")
    return {**found, **own} if isinstance(own, Mapping) else found


def _with_items(node: Any, depth: int) -> Any:
    """Return a schema whose arrays all say what they hold."""
    if depth > _DEEPEST_OPEN:
        return node
    if isinstance(node, list):
        return [_with_items(one, depth + 1) for one in node]
    if not isinstance(node, Mapping):
        return node
    whole = {key: _with_items(value, depth + 1) for key, value in node.items()}
    kind = node.get("type")
    is_array = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**whole, "items": {}} if is_array and "items" not in whole else whole


# openai_responses.tools ===============================================================
# Host tool specs -> Responses tools.

_MODES = ("auto", "none", "required")
_CALLED_BY_NAME = ("function", "custom")
_OF_THE_API = ("allowed_callers", "async", "defer_loading", "output_schema")
_NO_TOOL_NAME = "A tool has no name. Every function or custom tool needs one."
_NO_OBJECT = "A tool is not described by a JSON object."


def responses_tools(
    specs: Sequence[Mapping[str, Any]], *, strict: bool = False
) -> list[Item]:
    """Return the tools of a chat body, or of the host, in the API's form.

    Chat Completions nests a function under `function`, the host has it without a
    `type`; the API has it flat and wants `parameters` and `strict` said. With `strict`
    every function becomes strict whose schema can be. Other tools stay verbatim.
    """
    return [_responses_tool(spec, strict) for spec in specs]


def merged_tools(*groups: Sequence[Item]) -> list[Item]:
    """Return the tools of all groups, each once: a later one takes an earlier's place.

    Functions and custom tools are the same by their name, MCP servers by their label,
    all others by their type.
    """
    tools = [tool for group in groups for tool in group]
    return list({_identity(tool): tool for tool in tools}.values())


def responses_tool_choice(
    choice: object,
    tools: Sequence[Item] | None = None,
    *,
    names: ToolNames | None = None,
) -> object:
    """Return `tool_choice` in the API's form: a named function is not nested there.

    A bare name counts too. Raises InvalidRequest for a tool that is not among `tools`,
    unless those are not known. `names` says how a tool's own name is sent.
    """
    if choice is None or choice in _MODES:
        return choice
    if isinstance(choice, str):
        wanted = _wanted_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _wanted(choice, names)
    else:
        raise InvalidRequest("The tool choice is neither a word nor a JSON object.")
    for tool in wanted["tools"] if wanted["type"] == "allowed_tools" else [wanted]:
        _check_offered(tool, tools)
    return wanted


def _responses_tool(spec: Mapping[str, Any], strict: bool) -> Item:
    if not isinstance(spec, Mapping):
        raise InvalidRequest(_NO_OBJECT)
    kind = spec.get("type", "function")
    nested = spec.get(kind) if kind in _CALLED_BY_NAME else None
    flat: Mapping[str, Any] = nested if isinstance(nested, Mapping) else spec
    if kind in _CALLED_BY_NAME:
        _check_named(flat)
    if kind == "custom" and flat is nested:
        return {"type": "custom", **flat, **_flat_format(flat)}
    is_complete = "type" in spec and "parameters" in flat and "strict" in flat
    if kind != "function" or (is_complete and flat is spec):
        return dict(spec)
    return _function(flat, strict)


def _check_named(tool: Mapping[str, Any]) -> None:
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        raise InvalidRequest(_NO_TOOL_NAME)


def _function(function: Mapping[str, Any], strict: bool) -> Item:
    """Return a function in the API's form; what it says itself of `strict` counts."""
    said = function.get("strict")
    wanted = said if isinstance(said, bool) else strict
    parameters = function.get("parameters")
    parameters = parameters if isinstance(parameters, Mapping) else {}
    made = strict_schema(parameters) if wanted else None
    tool: Item = {"type": "function", "name": function["name"]}
    if function.get("description"):
        tool["description"] = function["description"]
    tool |= {key: function[key] for key in _OF_THE_API if key in function}
    shown = open_schema(parameters) if made is None else made
    return {**tool, "parameters": shown, "strict": made is not None}


def _flat_format(custom: Mapping[str, Any]) -> Item:
    """Return the format of a custom tool, which Chat Completions nests once more."""
    form = custom.get("format")
    grammar = form.get("grammar") if isinstance(form, Mapping) else None
    if not isinstance(grammar, Mapping):
        return {}
    return {"format": {"type": "grammar", **grammar}}


def _identity(tool: Mapping[str, Any]) -> tuple[str, object]:
    kind = tool.get("type")
    if kind in _CALLED_BY_NAME:
        return "name", tool.get("name")
    if kind == "mcp":
        return "server", tool.get("server_label")
    return "type", (kind, tool.get("name")) if kind == "namespace" else kind


def _wanted_by_name(
    choice: str, tools: Sequence[Item] | None, names: ToolNames | None
) -> Item:
    sent = names.sent(choice) if names else choice
    for tool in tools or ():
        if tool.get("type") in _CALLED_BY_NAME and tool.get("name") == sent:
            return {"type": tool["type"], "name": sent}
    for tool in tools or ():
        if tool.get("type") == choice or tool.get("server_label") == choice:
            return {key: tool[key] for key in ("type", "server_label") if key in tool}
    return {"type": "function", "name": sent}


def _wanted(choice: Mapping[str, Any], names: ToolNames | None) -> Item:
    kind = choice.get("type", "function")
    inner = choice.get(kind) if isinstance(kind, str) else None
    flat = dict(inner) if isinstance(inner, Mapping) else dict(choice)
    wanted: Item = {**flat, "type": kind}
    if kind in _CALLED_BY_NAME:
        if not isinstance(wanted.get("name"), str):
            raise InvalidRequest("The tool choice names no tool.")
        wanted["name"] = names.sent(wanted["name"]) if names else wanted["name"]
    if kind == "allowed_tools":
        listed = wanted.get("tools")
        chosen = listed if isinstance(listed, list) else []
        wanted["tools"] = [
            _wanted(one, names) for one in chosen if isinstance(one, Mapping)
        ]
    return wanted


def _check_offered(wanted: Item, tools: Sequence[Item] | None) -> None:
    """Raise InvalidRequest unless a tool is as `wanted` says, as far as we know them."""
    same: list[str] = [key for key in ("type", "server_label") if key in wanted]
    same += ["name"] if wanted["type"] in _CALLED_BY_NAME else []
    if tools is None or any(
        all(tool.get(key) == wanted[key] for key in same) for tool in tools
    ):
        return
    name = wanted.get("name") or wanted.get("server_label") or wanted["type"]
    raise InvalidRequest(f"The tool choice asks for {name}, which is no tool here.")


# openai_responses.audit ===============================================================
# The lines of the audit log, in JSON, without a word that anybody said.
#
# ===================  ======================  =======  =======  =====
# field                 what it is              request  success  error
# ===================  ======================  =======  =======  =====
# event                 `responses_api_` ...    x        x        x
# model                 as it was asked for     x        x        x
# response_model        as the server names it           x
# request_id            the caller's, one for   x        x        x
#                       all lines of a request
# response_format       text, json_object ...   x
# stream                true or false           x
# tool_count            tools offered           x
# input_message_count   messages in the input   x
# status_code           of HTTP; null if none            x        x
# code                  the server's word                         x
# param                 what it is about                          x
# error_type            the server's word                         x
# base_url_host         the server's name       x        x        x
# use_custom_base_url   it is not OpenAI's own  x        x        x
# ===================  ======================  =======  =======  =====
#
# A field that an event has is always in its line: null where nothing is known, or where
# the value does not look like what it should be. These functions are not given a key, and
# of a payload or a response they read nothing but names, kinds and numbers.

_OPENAI_HOST = "api.openai.com"

_API_WORD = re.compile(r"[a-z][a-z_.]{0,63}(?:\[\d{1,5}\][a-z_.]{0,64}){0,4}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_LINE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HOST_NAME = re.compile(r"[a-z0-9._:-]{1,253}")
_FORMATS = frozenset({"text", "json_object", "json_schema"})


def audit_request(payload: Mapping[str, Any], host: str, request_id: str) -> str:
    """Return the line for a request that is about to be sent to `host`."""
    fields = {
        "response_format": _response_format(payload),
        "stream": payload.get("stream") is True,
        "tool_count": len(_list(payload.get("tools"))),
        "input_message_count": _message_count(payload.get("input")),
    }
    return _line("request", payload, host, request_id, fields)


def audit_success(
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    response: Mapping[str, Any],
    status: int = 200,
) -> str:
    """Return the line for an answer that came to its end, complete or not."""
    fields = {
        "response_model": _fitting(_MODEL_NAME, response.get("model")),
        "status_code": status,
    }
    return _line("success", payload, host, request_id, fields)


def audit_error(
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    error: ApiError,
    status: int | None = None,
) -> str:
    """Return the line for a request that failed; no `status`, no answer."""
    fields = {
        "status_code": status,
        "code": _fitting(_API_WORD, error.code),
        "param": _fitting(_API_WORD, error.param),
        "error_type": _fitting(_API_WORD, error.type),
    }
    return _line("error", payload, host, request_id, fields)


def _line(
    event: str,
    payload: Mapping[str, Any],
    host: str,
    request_id: str,
    fields: Mapping[str, Any],
) -> str:
    """Return the line: what all events have, around what this one has."""
    known_host = _fitting(_HOST_NAME, host)
    line = {
        "event": f"responses_api_{event}",
        "model": _fitting(_MODEL_NAME, payload.get("model")),
        "request_id": _fitting(_LINE_ID, request_id),
        **fields,
        "base_url_host": known_host,
        "use_custom_base_url": known_host != _OPENAI_HOST,
    }
    return json.dumps(line, separators=(",", ":"))


def _fitting(shape: re.Pattern[str], value: object) -> str | None:
    """Return `value` if it looks like what it should be, and like no secret."""
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    return value if redacted(value) == value else None


def _response_format(payload: Mapping[str, Any]) -> str | None:
    """Return the kind of format asked for; a schema itself is never read."""
    wanted = _mapping_or_empty(_mapping_or_empty(payload.get("text")).get("format"))
    kind = wanted.get("type", "text")
    return kind if isinstance(kind, str) and kind in _FORMATS else None


def _message_count(items: object) -> int:
    """Return how many messages there are; the API takes a text for one."""
    if isinstance(items, str):
        return 1
    found = (_mapping_or_empty(item) for item in _list(items))
    return sum(item.get("type", "message") == "message" for item in found if item)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping_or_empty(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


# owui_chat.host_chunks ================================================================
# The chunks that Open WebUI understands beside an answer's text.

Chunk = dict[str, Any]


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


def status_chunk(sentence: str) -> Chunk:
    """Return a status line above the answer; the host stores it."""
    data = {"description": sentence, "done": True}
    return host_event({"type": "status", "data": data})


def source_chunk(name: str, text: str) -> Chunk:
    """Return a source below the answer, which opens to show `text`."""
    data = {
        "source": {"name": name},
        "document": [text],
        "metadata": [{"source": name}],
    }
    return host_event({"type": "source", "data": data})


def host_event(event: dict[str, Any]) -> Chunk:
    """Return a chunk that the host hands to its event emitter (middleware.py:4808)."""
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}


# owui_chat.chunks =====================================================================
# Run events -> `chat.completion.chunk`s, for callers over plain HTTP.

_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChunkView:
    """Shows one run as growing text and reasoning.

    Calls that nobody answered are the caller's: they come at the end.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        """Take what every chunk repeats: its id, its time in seconds, the model."""
        self._head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._open_calls: dict[str, Item] = {}
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
                self._open_calls[str(event.item.get("call_id"))] = event.item
            case CallAnswered():
                self._open_calls.pop(str(event.item.get("call_id")), None)
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

    def _end(self, event: RunEnded) -> Iterator[Chunk]:
        for index, call in enumerate(self._open_calls.values()):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self._chunk({"tool_calls": [tool_call]})
        if event.ending.is_failure and event.ending.kind != "incomplete":
            yield error_chunk(event.ending.sentence)
        else:
            yield self._chunk({}, finish_reason(event.ending, bool(self._open_calls)))
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
    answered = {i["call_id"] for i in ended.output if is_call_output(i)}
    calls = [
        chat_tool_call(i)
        for i in ended.output
        if item_type(i) == "function_call" and i.get("call_id") not in answered
    ]
    message: dict[str, Any] = {"role": "assistant", "content": completion_text(ended)}
    if any(thoughts):
        message["reasoning_content"] = "\n\n".join(t for t in thoughts if t)
    if calls:
        message["tool_calls"] = calls
    return message


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
            case CallAnswered() if item_type(event.item) == "function_call_output":
                yield from self._answered(event)
            case Noted():
                yield status_chunk(event.sentence)
            case RunEnded():
                if marker:
                    yield from self._marker_alone(marker)
                yield from _end_of_run(event)

    def _answered(self, event: CallAnswered) -> Iterator[Chunk]:
        """Yield the output of a call, as the host would store it (middleware.py:5837)."""
        item = _shown_output(event)
        place = len(self.items)
        self.items.append(item)
        yield _native("output_item.added", place, item=item)
        yield _native("output_item.done", place, item=item)
        for source in event.card.get("sources", ()):
            yield host_event({"type": "source", "data": source})

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
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(map(part_text, parts))
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _shown_output(event: CallAnswered) -> Item:
    """Return a call's output with what its card shows; pictures by their address."""
    call_id, output = event.item["call_id"], event.item["output"]
    parts = [{"type": "input_text", "text": output}]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    return {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if event.failed else "completed",
        **{k: event.card[k] for k in ("files", "embeds") if k in event.card},
    }


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


def _without_secrets(item: Item) -> Item:
    """Leave out what no reader of the chat can use and nobody else should have."""
    hidden = ("encrypted_content",)
    return {k: v for k, v in item.items() if k not in hidden and v is not None}


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
#     "openai_responses_pipe:{message_id}":
#         {"__v": 4, "items": {ulid: record}, "dead": [ulid, ...]}
#
# The seed's: `"openai_responses_pipe": {"__v": 3, "items": {id: record}, ...}`, read and
# never written. A record is the same in both, but for `origin`, which only ours has, and
# for `payload`, which in ours may be a list: the items that one marker names. Reasoning of
# records that any key calls dead is not sent again, because the server refused it.

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


def write_records(
    records: Mapping[str, Record], dead: Iterable[str] = ()
) -> dict[str, Any]:
    """Return the JSON value for the key of one message."""
    items = {ulid: _wire(record) for ulid, record in records.items()}
    value: dict[str, Any] = {"__v": _VERSION, "items": items}
    return {**value, "dead": sorted(dead)} if dead else value


def is_pipe_key(key: str) -> bool:
    """Say whether a top-level key of a chat holds kept items, of any writer."""
    return key == SEED_KEY or key.startswith(f"{SEED_KEY}:")


def read_records(chat: Mapping[str, Any]) -> dict[str, Record]:
    """Return every readable record of a chat's JSON, by its id.

    A record that is not what a writer writes is no record: its marker then resolves
    to nothing.
    """
    values = [value for key, value in chat.items() if is_pipe_key(key)]
    dead = {ulid for value in values for ulid in dead_in(value)}
    found = (record for value in values for record in _records_in(value))
    return {r.ulid: _buried(r) if r.ulid in dead else r for r in found}


def dead_in(value: object) -> list[str]:
    """Return the ids that the value of one key calls dead."""
    dead = value.get("dead") if isinstance(value, Mapping) else None
    return [str(ulid) for ulid in dead] if isinstance(dead, list) else []


def _buried(record: Record) -> Record:
    """Return a record without its reasoning."""
    rest = tuple(item for item in record.payload if not is_reasoning(item))
    return replace(record, payload=rest)


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
    kept = {**replayed(item), "type": "message"}  # the short form has no type
    text, content = message_text(item), kept.get("content")
    parts = content if isinstance(content, list) else []
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
    if not all(isinstance(message, Mapping) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
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
    name of a small job of the host, or empty; `is_admin` whether an administrator
    asks.
    """

    host_model: str
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    streams: bool = False
    is_admin: bool = False

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
        is_admin=(user or {}).get("role") == "admin",
    )


# owui_manifold.valves =================================================================
# What the administrator and the user can set.

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]


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
    ORGANIZATION: str = Field(
        default="",
        description="Organisation to bill, if the key belongs to several.",
    )
    PROJECT: str = Field(
        default="", description="Project to bill, if the key belongs to several."
    )
    EXTRA_HEADERS: str = Field(
        default="",
        description="More headers for every request, as a JSON object of texts: "
        '`{"X-Team": "blue"}`. They win over those that this pipe sends itself.',
        json_schema_extra={"input": {"type": "password"}},
    )
    COMPATIBILITY: Literal["openai", "strict"] = Field(
        default="openai",
        description="`strict` sends only what every server of the Responses API "
        "knows; choose it when BASE_URL is not OpenAI or Azure.",
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
    TOOL_EXECUTION: Literal["pipe", "open_webui"] = Field(
        default="pipe",
        description="Who runs Open WebUI's tools: this pipe, side by side and within "
        "limits, or Open WebUI, one after the other with its own approvals that last.",
    )
    PARALLEL_TOOL_CALLS: bool = Field(
        default=True, description="Let the model ask for several tools at once."
    )
    MAX_FUNCTION_CALL_LOOPS: int = Field(
        default=10,
        ge=1,
        description="How many rounds of tools one answer may take; then the model "
        "answers with what it has.",
    )
    MAX_TOOL_CALLS: int = Field(
        default=100, ge=1, description="How many calls of tools one answer may make."
    )
    TOOL_TIMEOUT_SECONDS: float = Field(
        default=120, gt=0, allow_inf_nan=False, description="For a single call."
    )
    TOOL_BATCH_TIMEOUT_SECONDS: float = Field(
        default=600,
        gt=0,
        allow_inf_nan=False,
        description="For all calls that the model made at once. The time that people "
        "take to answer counts in neither limit.",
    )
    TOOL_OUTPUT_CHARACTERS: int = Field(
        default=100_000,
        ge=1000,
        description="Longest output of a tool that the model gets; of a longer one it "
        "gets the beginning and the end.",
    )
    TOOL_APPROVAL: str = Field(
        default="",
        description="Which tools need a person's consent, as `pattern=auto`, `ask` or "
        "`deny`, separated by commas: `delete_*=ask, shell=deny`. For the others the "
        "setting in the chat's controls counts.",
    )
    ENABLE_STRICT_TOOL_CALLING: bool = Field(
        default=False,
        description="Have OpenAI hold arguments to the tools' schemas, where a schema "
        "can be put in the strict form.",
    )
    STORE_ENCRYPTION: Literal["off", "on"] = Field(
        default="off",
        description="Encrypt what this pipe stores in a chat. The host keeps the "
        "text, the reasoning summaries and the tool cards of an answer in clear all "
        "the same (its `output` items), and whoever gets a shared or exported chat "
        "gets those. A changed key makes stored reasoning unreadable; the chats go "
        "on without it.",
    )
    STORE_ENCRYPTION_KEY: str = Field(
        default="",
        description="A long random text, the key for STORE_ENCRYPTION. Empty: the "
        "server's own WEBUI_SECRET_KEY is used.",
        json_schema_extra={"input": {"type": "password"}},
    )
    MAX_RETRIES: int = Field(
        default=1,
        description="How often a request that failed before its first word is sent "
        "again, 0 to 5.",
    )
    MAX_RETRY_WAIT_SECONDS: float = Field(
        default=60,
        ge=0,
        allow_inf_nan=False,
        description="Longest wait before such a retry. When the server asks for a "
        "longer one, the error is shown at once.",
    )
    CONNECT_TIMEOUT_SECONDS: float = Field(
        default=30,
        gt=0,
        allow_inf_nan=False,
        description="How long a connection may take to come about.",
    )
    FIRST_EVENT_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may take to begin its answer, 30 to 900.",
    )
    IDLE_TIMEOUT_SECONDS: float = Field(
        default=300,
        description="How long the server may be silent in the middle of an answer, "
        "30 to 900. Long reasoning without a summary is silent for minutes.",
    )
    TOTAL_TIMEOUT_SECONDS: float = Field(
        default=0,
        ge=0,
        allow_inf_nan=False,
        description="Longest time for a whole answer; 0 is no limit.",
    )
    VERIFY_SSL: bool = Field(
        default=True,
        description="Check the server's certificate. Off only for a test: anybody on "
        "the way could then read the key.",
    )
    CA_BUNDLE: str = Field(
        default="",
        description="Path of a file with the certificates to trust instead of the "
        "system's, for example those of a company's proxy.",
    )
    PROXY: str = Field(
        default="",
        description="Address of an HTTP proxy, with user and password if it wants "
        "them. Empty: HTTPS_PROXY and NO_PROXY of the environment are obeyed.",
        json_schema_extra={"input": {"type": "password"}},
    )
    AUDIT_LOG: bool = Field(
        default=False,
        description="Write one JSON line for each request, success and error to the "
        "server's log, without a word of what was said. The environment's "
        "`OPENAI_GPT5_AUDIT_LOG=true` does the same.",
    )
    LOG_LEVEL: LogLevel = Field(
        default="INFO",
        description="What this pipe writes to the server's log, from this level up. "
        "Keys and what was said are never written.",
    )

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        """Take a text or a number and bring it into 0 to 5, as the seed does."""
        return clamped(value, 0, 5, 1)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        """Take a text or a number and bring it into 30 to 900, as the seed does."""
        return clamped(value, 30, 900, 300)

    def effective_key(self) -> str:
        """Return the key to use, or nothing.

        The environment is asked at use: as the default of the field its key would
        stand in the schema that the settings page loads.
        """
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is kept in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is given back between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by valve or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"


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
    LOG_LEVEL: Literal["inherit", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = (
        Field(
            default="inherit",
            description="What the pipe writes to the server's log about your chats.",
        )
    )
    SHOW_LOG_ON_ERROR: bool = Field(
        default=False,
        description="For administrators: show the log of an answer that failed, as a "
        "source below it.",
    )


def clamped(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; what is no number is the default."""
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default


# owui_manifold.consent ================================================================
# Asking the person in front of the page, through the host's event call.

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]


def approver_of(
    valves: Valves, metadata: Mapping[str, Any], event_call: EventCall | None
) -> Approver:
    """Return who decides about the calls of a request.

    The rules of the valve come first; for other tools the host's own mode counts.
    """
    params = metadata.get("params")
    mode = params.get("tool_approval_mode") if isinstance(params, Mapping) else None
    return Approver(
        # A question to the user is no act: to ask whether to ask helps nobody.
        rules=[*read_rules(valves.TOOL_APPROVAL), ("ask_user", "auto")],
        otherwise="ask" if mode == "ask" else "auto",
        ask=_ask_through(event_call) if event_call else None,
    )


def _ask_through(event_call: EventCall) -> Ask:
    """Return the way to show the host's approval card (socket/main.py:1620).

    Whoever does not answer, or has left, returns an object instead of True.
    """

    async def ask(call_id: str, name: str, arguments: Mapping[str, Any]) -> bool:
        tool_call = {"id": call_id, "name": name, "arguments": dict(arguments)}
        data = {
            "title": "Allow this tool?",
            "message": f"The model wants to use {name}.",
            "tool_call": tool_call,
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask


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


def server_secret() -> str:
    """Return the server's own secret, or nothing."""
    return str(_host_name("env", "WEBUI_SECRET_KEY") or "")


async def user_model(user_id: str) -> Any:
    """Return the host's own model of a user, as its functions want it."""
    return await _host_name("models.users", "Users").get_user_by_id(user_id)


async def updated_tool(function: Any, messages: list[Any], files: list[Any]) -> Any:
    """Return a tool's callable with the chat as it is now (middleware.py:3142)."""
    update = _host_name("utils.tools", "get_updated_tool_function")
    fresh = {"__messages__": messages, "__files__": files}
    return await update(function=function, extra_params=fresh)


def terminal_file(
    name: str, params: Mapping[str, Any], result: Any, tool: Any, metadata: Any
) -> Any:
    """Return what to show of a terminal's file, or None for any other result."""
    build = _host_name("utils.middleware", "build_terminal_file_tool_result")
    return build(name, dict(params), result, tool, metadata)


async def processed_result(
    request: Any,
    name: str,
    result: Any,
    tool: Mapping[str, Any],
    metadata: Any,
    user: Any,
) -> tuple[str, list[dict[str, Any]], list[Any]]:
    """Return a tool's result as text, its files and its embeds, as the host does."""
    process = _host_name("utils.middleware", "process_tool_result")
    kind, direct = tool.get("type", ""), bool(tool.get("direct"))
    text, files, embeds = await process(
        request, name, result, kind, direct, metadata, user
    )
    return str(text or ""), files, embeds


async def tell_terminal(
    name: str, params: Mapping[str, Any], text: str, emitter: Any
) -> None:
    """Tell the page what a terminal tool did (middleware.py:949)."""
    if emitter is not None:
        tell = _host_name("utils.middleware", "terminal_event_handler")
        await tell(name, dict(params), text, emitter)


def citation_sources(
    name: str, params: Mapping[str, Any], text: str, tool_id: str
) -> list[dict[str, Any]]:
    """Return the sources that a result of the host's own tools names."""
    read = _host_name("utils.middleware", "get_citation_source_from_tool_result")
    found: list[dict[str, Any]] = read(
        tool_name=name, tool_params=dict(params), tool_result=text, tool_id=tool_id
    )
    return found


async def stored_image(request: Any, url: str, metadata: Any, user: Any) -> str:
    """Store a picture that a tool returned; return the address of the file."""
    store = _host_name("utils.middleware", "store_tool_result_image")
    return str(await store(request, url, metadata, user))


def _host_name(module: str, name: str) -> Any:
    """Return a name of the host; raises InvalidRequest when it has none."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this pipe needs. An administrator has to update the pipe or Open WebUI."
        ) from None


# owui_manifold.host_tools =============================================================
# Tools of the host, run as the host runs them.
#
# Functions, OpenAPI and MCP servers and builtin tools are callables, tools of the
# browser run through the event call (open-webui.md §7); what comes back goes through the
# host's own functions, so that files, embeds, sources and terminals look the same.

_CITED = frozenset(
    {
        "fetch_url",
        "query_chat_files",
        "query_knowledge_files",
        "search_web",
        "view_file",
        "view_knowledge_file",
    }
)
"""Builtin tools whose results name sources (utils/middleware.py:450)."""

_DISPATCHERS = ("call_tool", "search_tools")
"""Builtin tools that stand for others; none of them may be called through another."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the host gave the pipe beside the chat, for those who run its tools."""

    tools: Mapping[str, Mapping[str, Any]]
    request: Any
    metadata: Mapping[str, Any]
    body: Mapping[str, Any]
    event_call: EventCall | None
    event_emitter: Any


class HostTools:
    """The tools of one request, by the names that the model was given."""

    def __init__(
        self, around: Surroundings, names: ToolNames, threads: Executor
    ) -> None:
        """Run sync tools on `threads`: one of them must not stop the server."""
        self._around = around
        self._names = names
        self._threads = threads

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, or None for no such tool."""
        tool = self._around.tools.get(self._names.original(name))
        if tool is None:
            return None
        spec = tool.get("spec") or {}
        return spec.get("parameters") or {"type": "object", "properties": {}}

    def waits_for_people(self, name: str) -> bool:
        """Say whether a tool's time is a person's."""
        tool = self._around.tools.get(self._names.original(name)) or {}
        return name == "ask_user" and tool.get("type") == "builtin"

    def meant(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the tool that a call is for, as the host does (tool_search.py:134).

        It does so before anybody is asked: the tool that runs is the one approved.
        """
        own, tools = self._names.original(name), self._around.tools
        if tools.get(own, {}).get("tool_id") != "builtin:call_tool":
            return own, arguments
        inner, params = arguments.get("tool_name"), _json(arguments.get("params"))
        if inner in tools and inner not in _DISPATCHERS and isinstance(params, dict):
            return str(inner), params
        return None

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolAnswer:
        """Run a tool and return what the model and the page get of it."""
        own = self._names.original(name)
        tool, params = self._around.tools[own], arguments
        if tool.get("type") != "mcp":  # MCP servers check their own arguments
            known = (self.parameters(own) or {}).get("properties") or {}
            params = {key: params[key] for key in params if key in known}
        result = await self._result(own, tool, params)
        return await self._answer(own, tool, params, result)

    async def _result(
        self, name: str, tool: Mapping[str, Any], params: dict[str, Any]
    ) -> Any:
        if tool.get("direct"):
            return await self._in_the_browser(name, tool, params)
        files = self._around.metadata.get("files") or []
        messages = self._around.body.get("messages") or []
        function = await updated_tool(tool["callable"], messages, files)
        bare = getattr(function, "__function__", None)
        if bare is None or inspect.iscoroutinefunction(bare):
            return await function(**params)
        # The host makes sync tools coroutine functions that never wait: on the loop
        # they would stop every chat (utils/tools.py:318). A thread that outlives its
        # limit cannot be stopped; it keeps its place on `threads` until it ends.
        work = partial(copy_context().run, _run_at_once, function, params)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def _in_the_browser(
        self, name: str, tool: Mapping[str, Any], params: dict[str, Any]
    ) -> Any:
        if self._around.event_call is None:
            return {"error": "The browser that has this tool is not connected."}
        data = {
            "id": new_ulid(),
            "name": name,
            "params": params,
            "server": tool.get("server") or {},
            "session_id": self._around.metadata.get("session_id"),
        }
        return await self._around.event_call({"type": "execute:tool", "data": data})

    async def _answer(
        self, name: str, tool: Mapping[str, Any], params: dict[str, Any], result: Any
    ) -> ToolAnswer:
        """Return a result as the host would store and show it."""
        around = self._around
        shown = terminal_file(name, params, result, tool, around.metadata) or result
        user = await user_model(str(around.metadata.get("user_id") or ""))
        text, files, embeds = await processed_result(
            around.request, name, shown, tool, around.metadata, user
        )
        await tell_terminal(name, params, text, around.event_emitter)
        sources = []
        if name in _CITED and text:
            tool_id = str(tool.get("tool_id") or "")
            sources = citation_sources(name, params, text, tool_id)
        pictures, stored, rest = await self._pictures(files, user)
        card = {"files": rest, "embeds": embeds, "sources": sources, "stored": stored}
        failed = isinstance(result, Mapping) and set(result) == {"error"}
        output: str | list[Item] = text
        if pictures:
            output = [{"type": "input_text", "text": text}, *pictures]
        return ToolAnswer(output, failed, {k: v for k, v in card.items() if v})

    async def _pictures(
        self, files: list[dict[str, Any]], user: Any
    ) -> tuple[list[Item], list[Item], list[dict[str, Any]]]:
        """Return pictures for the model, the same as they are stored, and the rest."""
        for_model: list[Item] = []
        stored: list[Item] = []
        rest: list[dict[str, Any]] = []
        around = self._around
        for file in files:
            url = str(file.get("url") or "")
            if file.get("type") != "image" or not url.startswith("data:"):
                rest.append(file)
                continue
            address = await stored_image(around.request, url, around.metadata, user)
            for_model.append(
                {"type": "input_image", "detail": "auto", "image_url": url}
            )
            stored.append({"type": "input_image", "image_url": address})
        return for_model, stored, rest


def _json(text: object) -> object:
    """Return what a JSON text says; None for anything else."""
    try:
        return json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None


def _run_at_once(
    function: Callable[..., Coroutine[Any, Any, Any]], params: Mapping[str, Any]
) -> Any:
    """Return the result of a coroutine function that never waits.

    The coroutine is made here, on the thread, so that none is left over when the call
    is given up before its turn.
    """
    coroutine = function(**params)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("a tool that claims to be synchronous waited")


# owui_manifold.learned ================================================================
# What a server refused a key before, so that it is not asked again.


@dataclass(frozen=True, slots=True)
class Learned:
    """Refusals that hold for every request: of summaries, of streams."""

    summary: bool = False
    stream: bool = False


class Lessons:
    """The refusals of each key at each address, as long as the pipe is loaded."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._by_account: dict[str, Learned] = {}

    def of(self, endpoint: Endpoint) -> Learned:
        """Return what this key has been refused at this address."""
        return self._by_account.get(_account(endpoint), Learned())

    def note(self, endpoint: Endpoint, cause: str) -> None:
        """Remember a refusal by its cause; others concern one request alone."""
        if cause in ("summary", "stream"):
            known = self.of(endpoint)
            learned = replace(known, **{cause: True})
            self._by_account[_account(endpoint)] = learned


def _account(endpoint: Endpoint) -> str:
    """Return a name for an account that does not tell its key."""
    told = f"{endpoint.base_url}\n{endpoint.organization}\n{endpoint.api_key}"
    return hashlib.sha256(told.encode("utf-8", errors="replace")).hexdigest()


# owui_manifold.log ====================================================================
# Lines in the server's log, without secrets, the newest of each run kept to be shown.

_LOGGER = logging.getLogger("openai_responses_manifold")

_LEVELS: Mapping[str, int] = {
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "CRITICAL": logging.CRITICAL,
}

_KEPT_LINES = 2000


class LogLine(NamedTuple):
    """One line of a run: when it was written, how grave it is, what it says."""

    seconds: int
    level: str
    text: str

    def __str__(self) -> str:
        """Return the line as it is shown, with its time in UTC."""
        time = datetime.fromtimestamp(self.seconds, UTC)
        return f"{time:%Y-%m-%d %H:%M:%S} {self.level:<8} {self.text}"


class RunLog:
    """The log of one run, for whoever works for it; also from other threads."""

    def __init__(
        self,
        threshold: str,
        secrets: Iterable[str],
        run_id: str,
        now: Callable[[], int] = unix_seconds,
    ) -> None:
        """Begin empty; the server's log gets what reaches `threshold`."""
        self.run_id = run_id
        self._threshold = _level_number(threshold)
        self._secrets = tuple(secrets)
        self._now = now
        self._lines: deque[LogLine] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def line(self, level: str, text: str) -> None:
        """Keep `text` as one line; write it too, behind the run's id, if it is grave.

        A level that is not known counts as INFO.
        """
        known = level if level in _LEVELS else "INFO"
        one_line = "\\n".join(redacted(text, self._secrets).splitlines())
        with self._lock:
            self._lines.append(LogLine(self._now(), known, one_line))
        if _LEVELS[known] >= self._threshold:
            _write(known, f"{self.run_id} {one_line}")

    def audit(self, line: str) -> None:
        """Write a line of the audit log, which has a valve of its own."""
        _write("INFO", redacted(line, self._secrets))

    def lines(self) -> list[LogLine]:
        """Return the newest lines, the oldest of them first."""
        with self._lock:
            return list(self._lines)

    def text(self) -> str:
        """Return these lines as they are shown."""
        return "\n".join(map(str, self.lines()))


def _level_number(name: str) -> int:
    return _LEVELS.get(name, logging.INFO)


def _write(level: str, line: str) -> None:
    """Hand `line` to the handlers of the server.

    The logger's own level belongs to the server and to other copies of the pipe, so
    it is not touched: the record goes to the handlers as it is. Those of Open WebUI
    drop what is below INFO, so a DEBUG line goes there as INFO and says what it is.
    """
    number = max(_LEVELS[level], logging.INFO)
    text = line if _LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)


# owui_manifold.offers =================================================================
# The tools that a request offers to the model.


@dataclass(frozen=True, slots=True)
class Offered:
    """Tools in the API's form, under the names that it allows.

    `names.known` are the functions' own names; `choice` is the API's `tool_choice`.
    """

    items: Sequence[Item] = ()
    names: ToolNames = field(default_factory=ToolNames)
    choice: Any = None


def offered_tools(
    body: Mapping[str, Any], model: ResolvedModel, valves: Valves
) -> Offered:
    """Return the tools of a chat: the host's, then those that filters added.

    Raises InvalidRequest for a tool without a name and for a choice that names none.
    """
    groups = [body.get(key) for key in ("tools", "extra_tools")]
    specs = [spec for group in groups if isinstance(group, list) for spec in group]
    if not specs or not model.facts.functions:
        return Offered()
    strict = valves.ENABLE_STRICT_TOOL_CALLING
    tools = merged_tools(responses_tools(specs, strict=strict))
    called = [tool for tool in tools if tool.get("type") in ("function", "custom")]
    names = ToolNames(tuple(str(tool["name"]) for tool in called))
    items = names.sent_tools(tools)
    choice = responses_tool_choice(body.get("tool_choice"), items, names=names)
    return Offered(items, names, choice)


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


def continued_input(ended: Round, stretches: Sequence[Stretch]) -> list[Item] | None:
    """Return the input after `ended`; None when a call of it has no output."""
    outputs = {s.call_id: s for s in stretches if isinstance(s, Returned)}
    calls = [item["call_id"] for item in ended.received if is_call(item)]
    if not calls or not all(call_id in outputs for call_id in calls):
        return None
    answers = [output_item(outputs[call_id]) for call_id in calls]
    return [*ended.sent, *ended.received, *answers]


# owui_manifold.settings ===============================================================
# What the valves come to for one request.


def endpoint_of(valves: Valves) -> Endpoint:
    """Return where requests go; raises InvalidRequest for what cannot work."""
    key = valves.effective_key()
    if not key:
        raise InvalidRequest(
            "This pipe has no API key yet. An administrator has to set API_KEY in the "
            "valves of this pipe (Admin Panel > Functions > the gear beside it)."
        )
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=key,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=extra_headers(valves.EXTRA_HEADERS),
        network=Network(
            valves.VERIFY_SSL, valves.CA_BUNDLE.strip(), valves.PROXY.strip()
        ),
        strict=valves.COMPATIBILITY == "strict",
    )


def extra_headers(text: str) -> Mapping[str, str]:
    """Return the headers of a JSON object; raises InvalidRequest for anything else."""
    if not text.strip():
        return {}
    try:
        headers = json.loads(text)
    except ValueError:
        headers = None
    if isinstance(headers, dict) and all(isinstance(v, str) for v in headers.values()):
        return headers
    raise InvalidRequest(
        "EXTRA_HEADERS is not a JSON object of texts. An administrator has to correct "
        'it in the valves of this pipe, for example {"X-Team": "blue"}.'
    )


def limits_of(valves: Valves, *, tools_ran: bool) -> Limits:
    """Return how a run behaves; what comes after a tool is sent once only."""
    retries = 0 if tools_ran else valves.MAX_RETRIES
    return Limits(
        timeouts=Timeouts(
            connect=valves.CONNECT_TIMEOUT_SECONDS,
            first_event=valves.FIRST_EVENT_TIMEOUT_SECONDS,
            idle=valves.IDLE_TIMEOUT_SECONDS,
            total=valves.TOTAL_TIMEOUT_SECONDS,
        ),
        retries=RetryPolicy(retries, valves.MAX_RETRY_WAIT_SECONDS),
    )


def chosen_settings(
    valves: Valves,
    user: UserValves,
    *,
    streams: bool,
    tools: Sequence[Item],
    refused: Learned,
) -> Settings:
    """Return what holds for one request; a user's own choice wins.

    `streams` says whether the caller wants a stream; what the server `refused` before
    is not asked for again.
    """
    summary = _chosen(user.REASONING_SUMMARY, valves.REASONING_SUMMARY)
    return Settings(
        effort=_chosen(user.REASONING_EFFORT, None),
        summary=None if summary == "disabled" or refused.summary else summary,
        verbosity=_chosen(user.VERBOSITY, None),
        stream=streams and valves.ENABLE_STREAM and not refused.stream,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
    )


def toolset_of(
    valves: Valves,
    tools: CallableTools,
    approver: Approver,
    log: Callable[[str], object],
) -> Toolset:
    """Return what a run needs to answer calls itself."""
    return Toolset(
        tools,
        approver,
        CallLimits(
            seconds=valves.TOOL_TIMEOUT_SECONDS,
            batch_seconds=valves.TOOL_BATCH_TIMEOUT_SECONDS,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
        ),
        log,
        rounds=valves.MAX_FUNCTION_CALL_LOOPS,
        most_calls=valves.MAX_TOOL_CALLS,
        carries_reasoning=valves.carries_reasoning(),
    )


def log_level(valves: Valves, user: UserValves) -> str:
    """Return from which level on lines go to the server's log."""
    return _chosen(user.LOG_LEVEL, valves.LOG_LEVEL) or "INFO"


def secrets_of(valves: Valves) -> list[str]:
    """Return the texts that must be in no line and no chat."""
    try:
        headers = list(extra_headers(valves.EXTRA_HEADERS).values())
    except InvalidRequest:
        headers = [valves.EXTRA_HEADERS]
    proxy = url_parts(valves.PROXY.strip())
    password = unquote(proxy.password or "") if proxy else ""
    secrets = [valves.effective_key(), valves.STORE_ENCRYPTION_KEY, *headers]
    return [text for text in (*secrets, valves.PROXY, password) if text.strip()]


def _chosen(user: str, administrator: str | None) -> str | None:
    return administrator if user == "inherit" else user


# owui_manifold.sealing ================================================================
# Kept items, encrypted at rest.
#
# Fernet (AES-128-CBC with HMAC-SHA256) of the package `cryptography`, which every Open
# WebUI has; it is looked up at use, so that a server without it still loads the pipe.

_SEALED = "sealed"
_PURPOSE = b"openai_responses_pipe kept items\x00"
"""The key may be the server's own secret, which also signs its sessions: the digest
that is used here is of no use there."""


class Seal:
    """Encrypts and reads back the values of message keys."""

    def __init__(self, secret: str) -> None:
        """Derive the key from `secret`; raises InvalidRequest without `cryptography`."""
        try:
            fernet = import_module("cryptography.fernet")
        except ImportError:
            raise InvalidRequest(
                "STORE_ENCRYPTION is on, but this server lacks the package "
                "cryptography. An administrator has to install it or turn the valve "
                "off."
            ) from None
        digest = hashlib.sha256(_PURPOSE + secret.encode("utf-8")).digest()
        self._fernet = fernet.Fernet(base64.urlsafe_b64encode(digest))
        self._unreadable = fernet.InvalidToken

    def close(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """Return `value` as it is stored."""
        token = self._fernet.encrypt(json.dumps(value).encode("utf-8"))
        return {"__v": value.get("__v"), _SEALED: token.decode("ascii")}

    def open(self, value: object) -> object:
        """Return a stored value in clear; one sealed with another key is empty."""
        if not is_sealed(value):
            return value
        try:
            return json.loads(self._fernet.decrypt(str(value[_SEALED]).encode()))
        except (self._unreadable, ValueError):
            return {}


def is_sealed(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Say whether a stored value is encrypted."""
    return isinstance(value, Mapping) and _SEALED in value


# owui_manifold.store ==================================================================
# Kept items, written to and read from the chat's row.


class ChatStore:
    """What is kept of one chat; writes go to the key of one message alone."""

    def __init__(
        self, caller: Caller, chat: Mapping[str, Any], seal: Seal | None = None
    ) -> None:
        """Begin with what `chat` holds; with a `seal`, what is written is encrypted."""
        self.records = read_records(chat)
        self._caller = caller
        self._seal = seal
        self._key = message_key(caller.message_id)
        self._dead = set(dead_in(chat.get(self._key)))
        self._own = {
            ulid: record
            for ulid, record in self.records.items()
            if record.message_id == caller.message_id
        }

    async def write(self, record: Record) -> bool:
        """Store `record` and say whether the host did; only then show its marker."""
        own = {**self._own, record.ulid: record}
        if not await self._write(write_records(own, self._dead)):
            return False
        self._own = own
        return True

    async def bury_reasoning(self) -> None:
        """Note that no reasoning kept so far in this chat is to be sent again."""
        dying = {
            ulid
            for ulid, record in self.records.items()
            if any(map(is_reasoning, record.payload))
        }
        if dying:
            self._dead |= dying
            await self._write(write_records(self._own, self._dead))

    async def _write(self, value: Mapping[str, Any]) -> bool:
        stored = self._seal.close(value) if self._seal else value
        return await write_chat_key(self._caller.chat_id, self._key, stored)


async def open_store(caller: Caller, valves: Valves) -> ChatStore | None:
    """Return the store of the caller's own chat, or None when it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {key: value for key, value in chat.items() if is_pipe_key(key)}
    if valves.STORE_ENCRYPTION == "on":
        seal = _seal(valves)
        return ChatStore(caller, _opened(kept, seal), seal)
    if not any(map(is_sealed, kept.values())):
        return ChatStore(caller, kept)
    try:
        return ChatStore(caller, _opened(kept, _seal(valves)))
    except InvalidRequest:  # unreadable items are no reason to stop a chat
        return ChatStore(caller, kept)


def _opened(kept: Mapping[str, Any], seal: Seal) -> dict[str, Any]:
    return {key: seal.open(value) for key, value in kept.items()}


def _seal(valves: Valves) -> Seal:
    """Return the seal of this server; raises InvalidRequest where there can be none."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    if not secret:
        raise InvalidRequest(
            "STORE_ENCRYPTION needs a key. An administrator has to set "
            "STORE_ENCRYPTION_KEY in the valves of this pipe."
        )
    return Seal(secret)


# owui_manifold.job ====================================================================
# What one call of the pipe comes to: a request that is ready to be sent.

_EFFORT_KEYS = ("reasoning", "reasoning_effort")
_TOOL_KEYS = ("tools", "tool_choice", "parallel_tool_calls")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of the pipe: what the host passes, and where to write lines.

    `state` is the state of the host's request; `lessons` and `threads` are those of
    the pipe.
    """

    body: Mapping[str, Any]
    caller: Caller
    valves: Valves
    user_valves: UserValves
    state: Any
    lessons: Lessons
    log: RunLog
    around: Surroundings
    threads: Executor


@dataclass(frozen=True, slots=True)
class Job:
    """One request, and where its answer is kept.

    `store` is None where nothing is kept; `before` is the round of the host's tools
    that this call goes on from; without a `toolset` calls are the host's to answer.
    """

    asked: Asked
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    before: Round | None = None
    toolset: Toolset | None = None


async def prepare_chat(asked: Asked) -> Job:
    """Return the job for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = endpoint_of(asked.valves)
    origin = Origin(model.family, endpoint.host)
    instructions, stretches = read_messages(_messages(asked.body))
    store = await open_store(asked.caller, asked.valves)
    before = last_round(asked.state, asked.caller.message_id)
    items = _input(asked, stretches, store, before, origin)
    tools = offered_tools(asked.body, model, asked.valves)
    settings = chosen_settings(
        asked.valves,
        asked.user_valves,
        streams=asked.caller.streams,
        tools=tools.items,
        refused=asked.lessons.of(endpoint),
    )
    body = {**asked.body, "tool_choice": tools.choice}
    request = build_request(model, instructions, items, body, settings)
    limits = limits_of(asked.valves, tools_ran=before is not None)
    toolset = _toolset(asked, tools)
    return Job(asked, request, endpoint, origin, limits, store, before, toolset)


def prepare_task(asked: Asked) -> Job:
    """Return the job for a title, tags or the like: short, without tools or memory."""
    require_floor()
    model = resolve_model(asked.caller.model)
    endpoint = endpoint_of(asked.valves)
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
    return Job(
        asked, request, endpoint, origin, limits_of(asked.valves, tools_ran=False)
    )


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
    reader = origin if asked.valves.remembers_reasoning() else None
    return build_input(stretches, store.records if store else {}, reader)


def _toolset(asked: Asked, offered: Offered) -> Toolset | None:
    """Return what runs the calls here, or None where others have to run one of them."""
    around, valves = asked.around, asked.valves
    ours = valves.TOOL_EXECUTION == "pipe" and offered.names.known
    if not ours or not all(name in around.tools for name in offered.names.known):
        return None
    approver = approver_of(valves, around.metadata, around.event_call)
    tools = HostTools(around, offered.names, asked.threads)
    return toolset_of(valves, tools, approver, partial(asked.log.line, "DEBUG"))


# owui_manifold.report =================================================================
# What the logs are told of a run.


def report_request(job: Job) -> None:
    """Write that a request is about to be sent; of what it says, nothing."""
    request, asked = job.request, job.asked
    asked.log.line(
        "DEBUG",
        f"request to {job.endpoint.host}: {request.model}, "
        f"{len(request.input)} input items, {len(request.tools or ())} tools, "
        f"{'stream' if request.stream else 'no stream'}, "
        f"{'kept' if job.store else 'not kept'}, "
        f"{'native events' if asked.caller.host_reads else 'chunks'}",
    )
    if asked.valves.writes_audit_log():
        payload = request.payload()
        asked.log.audit(audit_request(payload, job.endpoint.host, asked.log.run_id))


def report_note(job: Job, note: Noted) -> None:
    """Write what was done to get an answer after all."""
    job.asked.log.line("WARNING", note.sentence)


def report_end(job: Job, ended: RunEnded) -> RunEnded:
    """Write how a run ended; return it with the id of a failure in its sentence."""
    asked, trace = job.asked, ended.trace
    if asked.valves.writes_audit_log():
        asked.log.audit(_audit_end(job, ended))
    if not ended.ending.is_failure:
        used = f", {ended.usage.total} tokens" if ended.usage else ""
        asked.log.line("DEBUG", f"completed{used}, request id {trace.request_id}")
        return ended
    error = trace.error
    words = (api_word(word) for word in (error.code, error.type, error.param))
    code, kind, param = words
    asked.log.line(
        "WARNING",
        f"{ended.ending.kind}: HTTP {trace.status}, code {code}, type {kind}, "
        f"param {param}, request id {trace.request_id}",
    )
    sentence = with_error_id(asked, ended.ending.sentence)
    return replace(ended, ending=replace(ended.ending, sentence=sentence))


def report_refusal(asked: Asked, sentence: str) -> str:
    """Write why nothing was sent; return the sentence with its id."""
    asked.log.line("WARNING", f"nothing was sent: {sentence}")
    return with_error_id(asked, sentence)


def with_error_id(asked: Asked, sentence: str) -> str:
    """Return a sentence with the id under which the log has the lines of the run."""
    return f"{sentence} (Error id: {asked.log.run_id})"


def _audit_end(job: Job, ended: RunEnded) -> str:
    payload, host = job.request.payload(), job.endpoint.host
    trace, run_id = ended.trace, job.asked.log.run_id
    if ended.ending.kind in ("completed", "incomplete"):
        return audit_success(payload, host, run_id, {"model": trace.model})
    return audit_error(payload, host, run_id, trace.error, trace.status)


# owui_manifold.answer =================================================================
# A job, run: each event of the answer, with the marker of what was kept for it.

Told = tuple[RunEvent, str]


async def told(job: Job, connections: Connections) -> AsyncGenerator[Told, None]:
    """Run `job` and yield its events.

    A marker comes with the first growth of a text, or with the end of the run, and
    only after the host has stored what it names.
    """
    pending = job.before.pending if job.before else ()
    keeping = Keeping(_author(job), _new_record, pending)
    report_request(job)
    events = run(job.request, job.endpoint, connections, job.limits, job.toolset)
    async with aclosing(events):
        async for event in events:
            match event:
                case Noted():
                    job = await _learn(job, event)
                    yield event, ""
                case RunEnded():
                    record = _end(job, keeping, event)
                    marked = await _stored_marker(job, event, record)
                    yield report_end(job, event), marked
                case _:
                    yield event, await _stored_marker(job, event, keeping.feed(event))


def _author(job: Job) -> Author:
    caller, remembers = job.asked.caller, job.asked.valves.remembers_reasoning()
    return Author(caller.host_model, caller.message_id, job.origin, remembers)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


async def _learn(job: Job, note: Noted) -> Job:
    """Keep what a refusal taught, so that no later request runs into it.

    Returns the job as it goes on: the next round of tools begins with what is sent
    now.
    """
    report_note(job, note)
    job.asked.lessons.note(job.endpoint, note.cause)
    if note.cause != "reasoning":
        return job
    if job.store:
        await job.store.bury_reasoning()
    rest = [item for item in job.request.input if not is_reasoning(item)]
    return replace(job, request=job.request.model_copy(update={"input": rest}))


def _end(job: Job, keeping: Keeping, ended: RunEnded) -> Record | None:
    """Hand the round over to the host's tools, or return the record that is left."""
    asked = job.asked
    delegates = job.toolset is None and asked.caller.host_reads
    if not (delegates and asked.state and any(map(is_call, ended.output))):
        return keeping.rest()
    within_run = asked.valves.carries_reasoning()
    received = tuple(given_back(ended.output, with_reasoning=within_run))
    sent = tuple(job.request.input)
    handed_over = Round(sent, received, tuple(keeping.pending))
    remember_round(asked.state, asked.caller.message_id, handed_over)
    return None


async def _stored_marker(job: Job, event: RunEvent, record: Record | None) -> str:
    """Store `record`; return its marker if one belongs in front of `event`."""
    if record is None or job.store is None or not await job.store.write(record):
        return ""
    begins = isinstance(event, Grew | RunEnded)
    return marker(record.kind, record.ulid) if begins else ""


# owui_manifold.pipe ===================================================================
# The story of a request, from Open WebUI's call to the last chunk.

_MOST_SYNC_TOOLS = 16
"""Threads for tools that are not coroutines; one that hangs keeps its thread."""


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open nothing and start nothing: the host makes a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()
        self._lessons = Lessons()
        self._threads = ThreadPoolExecutor(_MOST_SYNC_TOOLS, "sync-tool")

    def pipes(self) -> list[dict[str, str]]:
        """Return the models to list; from memory, because every page load asks."""
        names = [name.strip() for name in self.valves.MODEL_ID.split(",")]
        unique = dict.fromkeys(name for name in names if name)
        return [{"id": name, "name": resolve_model(name).name} for name in unique]

    async def pipe(  # noqa: PLR0913, PLR0917 - the host passes these, by name
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __task__: str | None = None,
        __tools__: dict[str, Any] | None = None,
        __event_call__: Any = None,
        __event_emitter__: Any = None,
    ) -> AsyncGenerator[Chunk, None] | Chunk:
        """Answer a chat: chunks when the caller streams, else one complete result."""
        valves = self.valves  # the host replaces it at every call (functions.py:53)
        chosen = (__user__ or {}).get("valves")
        user_valves = chosen if isinstance(chosen, UserValves) else UserValves()
        level = log_level(valves, user_valves)
        asked = Asked(
            body,
            read_caller(body, __user__, __metadata__, __task__),
            valves,
            user_valves,
            getattr(__request__, "state", None),
            self._lessons,
            RunLog(level, secrets_of(valves), new_ulid()[-10:]),
            Surroundings(
                tools=__tools__ or {},
                request=__request__,
                metadata=__metadata__ or {},
                body=body,
                event_call=__event_call__,
                event_emitter=__event_emitter__,
            ),
            self._threads,
        )
        if asked.caller.task:
            return await self._do_task(asked)
        if asked.caller.streams:
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
        failed = True
        try:
            job = await prepare_chat(asked)
            async with aclosing(told(job, self._connections)) as events:
                async for event, marker in events:
                    for chunk in view.show(event, marker):
                        yield chunk
                    if isinstance(event, RunEnded):
                        failed = event.ending.is_failure
        except ResponsesError as error:
            yield error_chunk(report_refusal(asked, str(error)))
        except Exception as error:
            yield error_chunk(_our_fault(asked, error))
        if failed and _shows_log(asked):
            yield source_chunk("Log of this answer", asked.log.text())

    async def _complete(self, asked: Asked) -> Chunk:
        """Return the whole answer at once, with the output items for the host."""
        view = NativeView(monotonic_seconds)
        try:
            ended = await self._watch(await prepare_chat(asked), view)
        except ResponsesError as error:
            return error_chunk(report_refusal(asked, str(error)))
        except Exception as error:
            return error_chunk(_our_fault(asked, error))
        result = completion(ended, *_heading(asked))
        if not asked.caller.host_reads:
            return result
        # The page shows no finish_reason: an answer that ended early needs its words.
        failure = ended.ending.is_failure
        told = error_chunk(ended.ending.sentence) if failure else {}
        return result | told | ({"output": view.items} if view.items else {})

    async def _do_task(self, asked: Asked) -> Chunk:
        """Return a title, tags or the like; an empty text when it failed."""
        view, text = NativeView(monotonic_seconds), ""
        try:
            ended = await self._watch(prepare_task(asked), view)
            text = "" if ended.ending.is_failure else completion_text(ended)
        except ResponsesError as error:
            report_refusal(asked, str(error))
        except Exception as error:
            _our_fault(asked, error)
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


def _shows_log(asked: Asked) -> bool:
    """Say whether the log of a failed answer is shown below it."""
    wanted = asked.user_valves.SHOW_LOG_ON_ERROR and asked.caller.is_admin
    return wanted and asked.caller.host_reads


def _our_fault(asked: Asked, error: Exception) -> str:
    """Log where `error` came from, not what it says; return a sentence to show.

    The text of a foreign exception may quote a header or a prompt.
    """
    frames = extract_tb(error.__traceback__)
    place = f"line {frames[-1].lineno} in {frames[-1].name}" if frames else "nowhere"
    asked.log.line("ERROR", f"{type(error).__name__} at {place}")
    return with_error_id(
        asked,
        "Something in this pipe went wrong. Try again; if it lasts, give an "
        "administrator the error id.",
    )
