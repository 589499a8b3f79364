"""
title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

Built by scripts/bundle.py from pipes/; do not edit.
"""

import asyncio
import base64
import gc
import hashlib
import hmac
import inspect
import json
import logging
import mimetypes
import os
import random
import re
import secrets
import ssl
import time
import zlib
from base64 import b64decode, b64encode
from bisect import bisect, bisect_left, insort
from collections import Counter, defaultdict, deque
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import (
    aclosing,
    asynccontextmanager,
    closing,
    contextmanager,
    nullcontext,
    suppress,
)
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache, partial, reduce
from importlib import import_module
from io import BytesIO
from itertools import accumulate, chain, groupby, islice, takewhile
from operator import attrgetter, itemgetter
from pathlib import Path, PurePosixPath
from reprlib import repr as short_repr
from threading import Lock
from traceback import extract_tb
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import (
    SplitResult,
    parse_qsl,
    quote,
    quote_plus,
    unquote,
    urlsplit,
    urlunsplit,
)
from urllib.request import getproxies, proxy_bypass
from weakref import WeakValueDictionary

import aiohttp
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SkipValidation,
    TypeAdapter,
    ValidationError,
    field_validator,
)

# openai_responses.clock


def unix_seconds() -> int:
    return int(time.time())


def monotonic_seconds() -> float:
    return time.monotonic()


def random_fraction() -> float:
    return random.random()


def utc_today() -> date:
    return datetime.now(UTC).date()


def hex_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


_DAY_SECONDS = 86_400
_MOST_TEXTS = 5000


class RecentTexts:
    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        self._now = now
        self._ends: dict[int, float] = {}

    def __contains__(self, text: str) -> bool:
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        if text in self:
            return False
        if len(self._ends) >= _MOST_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + _DAY_SECONDS
        return True


_LARGE = 3000
_Done = TypeVar("_Done")


async def run_work(size: int, work: Callable[[], _Done]) -> _Done:
    return await asyncio.to_thread(pause_collection, work) if size > _LARGE else work()


def pause_collection(work: Callable[[], _Done]) -> _Done:
    if not gc.isenabled():
        return work()
    gc.disable()
    try:
        return work()
    finally:
        gc.enable()


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def new_ulid() -> str:
    number = (time.time_ns() // 1_000_000 << 80) | secrets.randbits(80)
    digits = [_CROCKFORD[(number >> (5 * place)) & 31] for place in range(25, -1, -1)]
    return "".join(digits)


# openai_responses.json_input

JsonObject = Mapping[str, Any]

MAX_JSON_BYTES = 64 * 1024 * 1024
MAX_JSON_DEPTH = 128
_VALUE_BYTES = 32


def load_json(text: str | bytes | bytearray) -> Any:
    with suppress(RecursionError):
        value = json.loads(text)
        if not is_too_deep(value):
            return value
    raise ValueError("too deep")


def is_too_deep(value: object) -> bool:
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value)))


def _levels(value: object) -> Iterator[list[Any]]:
    level = [value]
    while level:
        yield level
        objects = [one for one in level if isinstance(one, dict)]
        names = [name for one in objects for name in one]
        inner = [row for one in objects for row in one.values()]
        lists = [row for one in level if isinstance(one, list) for row in one]
        level = [*names, *inner, *lists]


def json_weight(text: bytes | bytearray) -> int:
    values = len(text) - len(text.translate(None, b"[{,"))
    return len(text) + _VALUE_BYTES * values


def parse_json_object(text: object) -> dict[str, Any] | None:
    try:
        found = load_json(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def parse_string_map(text: str) -> Mapping[str, str] | None:
    found = parse_json_object(text.strip() or "{}")
    if found is None or not all(isinstance(one, str) for one in found.values()):
        return None
    return found


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    try:
        number = float(str(value).strip())
        return int(min(max(number, least), most))
    except ValueError:
        return default


def count_entries(value: object, depth: int) -> int:
    if isinstance(value, str):
        return len(value) >> 10
    rows = list(value.values()) if isinstance(value, Mapping) else as_list(value)
    inner = sum(count_entries(row, depth - 1) for row in rows) if depth else 0
    return len(rows) + inner


_VALUE_SIZE = 10
_DEEPEST_VALUE = 64


class JsonTooLarge(ValueError): ...


class JsonBudget:
    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, size: int) -> None:
        if size > self.left:
            raise JsonTooLarge
        self.left -= size


def json_size(value: object, most: int) -> int:
    size = _VALUE_SIZE
    for depth, level in enumerate(_levels(value)):
        for one in level:
            if isinstance(one, str):
                size += len(one)
            elif isinstance(one, dict | list):
                size += _VALUE_SIZE * len(one)
            if size > most:
                raise JsonTooLarge
        if depth >= _DEEPEST_VALUE:
            raise JsonTooLarge
    return size


def fits_form(value: object, form: Any) -> bool:
    match form:
        case str():
            return isinstance(value, str) and bool(re.fullmatch(form, value, re.S))
        case type():
            return isinstance(value, form)
        case tuple():
            return any(fits_form(value, one) for one in form)
        case [inner]:
            return isinstance(value, list) and all(fits_form(v, inner) for v in value)
        case dict():
            return isinstance(value, Mapping) and all(
                key in form and fits_form(one, form[key]) for key, one in value.items()
            )
    return bool(form(value))


def as_mapping(value: object) -> JsonObject:
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    for key in keys:
        value = as_mapping(value).get(key)
    return value


def as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


# openai_responses.errors

_NAMED_PLACE = re.compile(
    r"\b(input|tools)\[(\d{1,6})\]((?:\.\w{1,64}|\[\d{1,6}\]){0,12})"
)


class ApiError(NamedTuple):
    code: str | None = None
    type: str | None = None
    param: str | None = None
    message: str = ""

    @property
    def text(self) -> str:
        return f"{self.param} {self.message}"

    @property
    def place(self) -> re.Match[str] | None:
        return _NAMED_PLACE.search(self.text)

    @property
    def status(self) -> int:
        code = self.code or ""
        return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


class Failure(NamedTuple):
    status: int | None = None
    error: ApiError = ApiError()
    retry_after: float | None = None
    should_retry: bool | None = None


class ResponsesError(Exception):
    failure: Failure | None = None
    is_final = False
    was_sent = False
    status = 0


class InvalidRequest(ResponsesError): ...


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    unknown = ", ".join(sorted({word[:40] for word in words}.difference(known))[:5])
    return f"{valve} opens nothing with: {unknown}. {advice}" if unknown else ""


def valve_error(
    problem: str, example: str = "", *, place: str = "the valves"
) -> InvalidRequest:
    shown = f", for example {example}" if example else ""
    return InvalidRequest(
        f"{problem}. An administrator has to correct it in {place}{shown}."
    )


PIPE_VALVES = "the valves of this pipe"


class ConnectionFailed(ResponsesError):
    failure = Failure()

    def __init__(self, sentence: str, *, was_sent: bool = True) -> None:
        super().__init__(sentence)
        self.was_sent = was_sent


TimeoutKind = Literal["first_event_timeout", "idle_timeout", "total_timeout"]


class TimedOut(ResponsesError):
    was_sent = True

    def __init__(self, kind: TimeoutKind) -> None:
        super().__init__("The model's server did not answer in time. Try again.")
        self.kind: TimeoutKind = kind
        self.is_final = kind == "total_timeout"
        self.failure = None if self.is_final else Failure()


class ResponseLost(ResponsesError): ...


class UnreadableAnswer(ResponsesError): ...


class AnswerTooLarge(ResponsesError):
    is_final = True

    def __init__(self) -> None:
        super().__init__("The model's server sent more than is accepted.")


class MalformedEvent(ResponsesError):
    failure = Failure(error=ApiError(param="stream"), should_retry=False)


class ApiRefused(ResponsesError):
    def __init__(self, sentence: str, failure: Failure, request_id: str = "") -> None:
        super().__init__(sentence)
        self.failure: Failure = failure
        self.status = failure.status or 0
        self.error = failure.error
        self.request_id = request_id


def read_api_error(wire: object) -> ApiError:
    while isinstance(wire, Mapping) and isinstance(wire.get("error"), Mapping | str):
        wire = wire["error"]
    fields = {"message": wire} if isinstance(wire, str) else as_mapping(wire)
    if isinstance(fields.get("detail"), list):
        fields = _read_detail(fields["detail"])
    message = as_text(fields.get("message") or fields.get("detail"))
    raw = as_text(as_mapping(fields.get("metadata")).get("raw"))
    if inner := _inner_error(raw) or _inner_error(message):
        return inner
    number = fields.get("code")
    if isinstance(number, int) and 400 <= number < 600:
        fields = {**fields, "code": str(number)}
    code, kind, param = (
        as_text(fields.get(key)) or None for key in ("code", "type", "param")
    )
    return ApiError(code, kind, param, f"{message} {raw}".strip())


def _read_detail(rows: Iterable[object]) -> dict[str, Any]:
    found = [(as_list(as_mapping(row).get("loc")), row) for row in rows]
    loc, row = max(found, key=lambda one: len(one[0]), default=([], {}))
    keys = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in loc[1:]]
    place = "".join(key for key in keys if re.fullmatch(r"\[\d+]|\.[a-z_\d]+", key))
    return {"message": as_mapping(row).get("msg"), "param": place[1:]}


def _inner_error(text: str) -> ApiError | None:
    begin = text.find("{", 0, _LONGEST_PREFIX)
    try:
        found, _ = json.JSONDecoder().raw_decode(text[:_LONGEST_BODY], begin)
    except (ValueError, RecursionError):
        return None
    inner = as_mapping(found).get("error")
    error = read_api_error(inner) if isinstance(inner, Mapping) else ApiError()
    return error if error.message else None


_LONGEST_PREFIX, _LONGEST_BODY = 1000, 100_000


# openai_responses.endings

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
_ARRIVED = "What arrived is kept"
_CONTINUE = f"{_ARRIVED}; regenerate the answer, or ask to continue."


def check_valves(problem: str, valves: str) -> str:
    return f"{problem}. An administrator has to check {valves} in the valves."


NO_CREDIT_CODES = frozenset(
    {
        *("insufficient_quota", "credit_balance_exhausted"),
        *("organization_spend_limit_exceeded", "project_spend_limit_exceeded"),
        *("organization_usage_limit_exceeded", "project_usage_limit_exceeded"),
    }
)

PICTURE_CODES = frozenset(
    {
        *("invalid_image", "invalid_image_format", "invalid_base64_image"),
        *("invalid_image_url", "image_too_large", "image_too_small"),
        *("image_parse_error", "invalid_image_mode", "image_file_too_large"),
        *("unsupported_image_media_type", "empty_image_file"),
        *("failed_to_download_image", "image_file_not_found"),
    }
)

SENTENCES: Mapping[str, Mapping[str, str]] = {
    "incomplete": {
        "max_output_tokens": "The answer reached its length limit. Raise the maximum "
        "of output tokens, or ask to continue.",
        "content_filter": "OpenAI's content filter cut the answer off. Put the "
        "question in other words.",
        "max_messages": "The answer reached the limit of messages in one answer. Ask "
        "to continue.",
        "cancelled": "The answer was cancelled at OpenAI. Regenerate it, or ask to "
        "continue.",
        "steered": "The request was steered away. Ask again.",
        "no_answer": "The model ended without an answer. Regenerate it, or ask in "
        "other words.",
        "only_calls": "The model asked for more tools than one answer may call, and gave "
        "no answer. Ask it to answer with what it has.",
        "only_tokens": "The model used all tokens of this answer to think. Raise the "
        "maximum of output tokens, or choose less effort.",
        "": "The answer is not complete{code}. Ask to continue.",
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
        "misalignment_policy_violation": _POLICY,
        "image_content_policy_violation": _POLICY,
        "data_residency_mismatch": "This model is not served in the region that the "
        "API key is bound to. An administrator has to choose another model or key.",
        "vector_store_timeout": "The search in the uploaded files took too long. Try "
        "again in a moment.",
        **dict.fromkeys(sorted(PICTURE_CODES), _PICTURE),
        "": "The model's server reported an error{code}. Try again.",
    },
    "refused": {
        "model_not_found": "The model {model} does not exist, or is no longer there, "
        "or this API key may not use it. Choose another model.",
        "invalid_encrypted_content": "OpenAI could not read the reasoning of an "
        "earlier answer in this chat. Start a new chat.",
        "3": check_valves(
            "The server at BASE_URL redirects requests (HTTP {status}), which is not "
            "followed, because the key would go along",
            "BASE_URL",
        ),
        "401": check_valves("OpenAI does not accept the API key", "API_KEY"),
        "403": "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key's project.",
        "404": check_valves("There is no Responses API at BASE_URL", "BASE_URL"),
        "407": check_valves(
            "The proxy on the way to the model's server does not let us through",
            "PROXY",
        ),
        "413": "This chat is too large for the model's server. Start a new chat, or "
        "leave out large files and pictures.",
        "429": _RATE_LIMIT,
        "503": _OVERLOADED,
        "5": "OpenAI had an error of its own (HTTP {status}). Try again shortly.",
        "": "The model's server refused the request with HTTP {status}{code}{param}. "
        "An administrator finds the details in the log.",
    },
    "cut": {
        "": "The connection to the model broke before the answer was finished. "
        + _CONTINUE,
        "lost": "The connection to the model broke, and the rest of the answer could "
        "not be fetched. " + _CONTINUE,
    },
    "unreadable": {
        "": check_valves(
            "The server at BASE_URL answered, but not as the Responses API does",
            "BASE_URL",
        ),
        "compressed": check_valves(
            "The server at BASE_URL sent a compressed answer, which is not read",
            "BASE_URL and EXTRA_HEADERS",
        ),
    },
    "malformed": {
        "": "The model's server sent something that cannot be read. " + _CONTINUE,
        "too_large": "The model's server sent more than this pipe accepts for one "
        "answer. " + _CONTINUE,
    },
    "first_event_timeout": {
        "": "The model's server accepted the request and then said nothing for too "
        "long. Try again, perhaps with less effort.",
    },
    "idle_timeout": {
        "": "The model's server fell silent in the middle of the answer. " + _CONTINUE,
    },
    "total_timeout": {
        "": "The answer took longer than an administrator allows. "
        f"{_ARRIVED}; ask to continue, or choose less effort.",
    },
}


class Ending(NamedTuple):
    kind: str
    code: str | None = None
    sentence: str = ""

    @property
    def is_failure(self) -> bool:
        return self.kind != "completed"

    def without_text(self) -> Self:
        before, _, rest = self.sentence.partition(_ARRIVED)
        return self._replace(sentence=f"{before}Try again.") if rest else self


def _usual_ending(kind: str) -> Ending:
    return Ending(kind, sentence=SENTENCES[kind][""])


COMPLETED = Ending("completed")
CUT = _usual_ending("cut")
UNREADABLE = _usual_ending("unreadable")

ASKED_MODEL = "this model"

_WORD = re.compile(r"[a-z][a-z_.]*(\[\d{1,5}\][a-z_.]*)*")


_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def ending_of_incomplete(reason: str | None) -> Ending:
    code = api_word(reason)
    return Ending("incomplete", code, _sentence("incomplete", ApiError(code=code)))


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    return Ending(kind, _code(error), failure_sentence(error))


_EXCEPTIONS: Mapping[type[ResponsesError], tuple[str, str]] = {
    MalformedEvent: ("malformed", ""),
    AnswerTooLarge: ("malformed", "too_large"),
    ResponseLost: ("cut", "lost"),
    UnreadableAnswer: ("unreadable", "-"),
    InvalidRequest: ("invalid", "-"),
}


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    if isinstance(error, TimedOut):
        return _usual_ending(error.kind)
    if isinstance(error, ApiRefused):
        return Ending("refused", _code(error.error), str(error))
    unreached = ("cut", "") if has_begun else ("unreachable", "-")
    kind, word = _EXCEPTIONS.get(type(error), unreached)
    return Ending(kind, None, str(error) if word == "-" else SENTENCES[kind][word])


def _code(error: ApiError) -> str | None:
    return api_word(error.code or error.type)


def failure_sentence(error: ApiError) -> str:
    if error.status:
        return refusal_sentence(error.status, error)
    return _sentence("failed", error)


def refusal_sentence(status: int, error: ApiError) -> str:
    known, own = {**SENTENCES["failed"], **SENTENCES["refused"]}, str(status)
    words = [word for word in _words(error) if word != own]
    if status == 404 and _ABOUT_A_MODEL.search(error.message):
        words.append("model_not_found")
    if status != 404 or not (error.param or error.place):
        words.append(own)
    if status < 400 or status == 401:
        words = [own if status == 401 else "3"]
    words.append("5" if status >= 500 else "")
    word = next(filter(known.__contains__, words))
    code, param = "" if word else _shown(error.code), _shown(error.param, " at {}")
    return known[word].format(code=code, param=param, model=ASKED_MODEL, status=status)


def failure_status(failure: Failure) -> str:
    known = {
        None: "did not answer",
        200: "reported an error",
        429: "is busy with this key's requests",
    }
    status = failure.status
    return f"The model's server {known.get(status, f'has trouble (HTTP {status})')}."


def _sentence(kind: str, error: ApiError) -> str:
    sentences = SENTENCES[kind]
    words = (word for word in _words(error) if word in sentences)
    return sentences[next(words, None) or ""].format(code=_shown(_code(error)))


_PHRASES = (
    (
        r"maximum context length|context (size|window)|ContextWindow"
        r"|'input(\S*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (r"\bmodel\b.{0,200}(does not exist|not found)|invalid model", "model_not_found"),
    (r"RateLimitError", "rate_limit_exceeded"),
)


def _words(error: ApiError) -> list[str]:
    text = error.message[:2000]
    found = [code for phrase, code in _PHRASES if re.search(phrase, text, re.I)]
    return list(filter(None, (error.code, error.type, *found)))


def _shown(word: str | None, form: str = " ({})") -> str:
    return form.format(word) if api_word(word) else ""


def api_word(word: str | None) -> str | None:
    known = any(word in sentences for sentences in SENTENCES.values())
    return word if word and (known or _WORD.fullmatch(word)) else None


# openai_responses.items

Item = dict[str, Any]

ADDED_TOOLS, CONFIGURATION = "additional_tools", "configuration_update"


class _ItemKind(NamedTuple):
    parts: tuple[tuple[str, str], ...] = ()
    text: tuple[str, str] | None = None
    is_encrypted: bool = False
    tool: str = ""
    returned: Literal["always", "same_run", "never"] = "always"
    required: tuple[str, ...] = ()
    nullable: tuple[str, ...] = ()
    is_call: bool = False
    include: str = ""
    refused_at_minimal: bool = False
    is_cited: bool = False
    fee: float = 0


_ITEM_KINDS = {
    "message": _ItemKind(parts=(("text", "content"),)),
    "reasoning": _ItemKind(
        parts=(("summary", "summary"), ("reasoning", "content")), is_encrypted=True
    ),
    "compaction": _ItemKind(is_encrypted=True),
    CONFIGURATION: _ItemKind(),
    "function_call": _ItemKind(text=("arguments", "arguments")),
    "function_call_output": _ItemKind(),
    "custom_tool_call": _ItemKind(text=("arguments", "input")),
    "custom_tool_call_output": _ItemKind(),
    "tool_search_call": _ItemKind(),
    "tool_search_output": _ItemKind(),
    "web_search_call": _ItemKind(
        tool="web_search",
        required=("action",),
        is_call=True,
        is_cited=True,
        include="web_search_call.action.sources",
        refused_at_minimal=True,
        fee=0.01,
    ),
    "file_search_call": _ItemKind(
        tool="file_search",
        required=("queries",),
        is_call=True,
        is_cited=True,
        refused_at_minimal=True,
    ),
    "code_interpreter_call": _ItemKind(
        tool="code_interpreter",
        required=("container_id",),
        nullable=("code", "outputs"),
        text=("code", "code"),
        is_call=True,
        include="code_interpreter_call.outputs",
    ),
    "image_generation_call": _ItemKind(
        tool="image_generation", returned="never", refused_at_minimal=True
    ),
    "mcp_list_tools": _ItemKind(tool="mcp", required=("server_label", "tools")),
    "mcp_call": _ItemKind(
        tool="mcp",
        required=("server_label", "name", "arguments"),
        text=("arguments", "arguments"),
        is_call=True,
    ),
    "mcp_approval_request": _ItemKind(
        tool="mcp",
        required=("id", "server_label", "name", "arguments"),
        returned="same_run",
        is_call=True,
    ),
    "mcp_approval_response": _ItemKind(
        tool="mcp",
        required=("approval_request_id", "approve"),
        returned="same_run",
        is_call=True,
    ),
}

_OTHER_KIND = _ItemKind()
_TOOL_KINDS = {kind.tool: kind for kind in _ITEM_KINDS.values() if kind.tool}

CALL_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
_CALLS = tuple(CALL_OUTPUTS)
_OUTPUTS = tuple(CALL_OUTPUTS.values())


def item_type(item: JsonObject) -> str:
    kind = item.get("type")
    if kind is None and "role" in item:
        return "message"
    return kind if isinstance(kind, str) else ""


def kind_of(item: JsonObject) -> _ItemKind:
    return _ITEM_KINDS.get(item_type(item), _OTHER_KIND)


def tool_kind(tool: JsonObject) -> _ItemKind:
    return _TOOL_KINDS.get(str(tool.get("type")), _OTHER_KIND)


def is_call(item: JsonObject) -> bool:
    return item.get("type") in _CALLS


def is_call_output(item: JsonObject) -> bool:
    return item.get("type") in _OUTPUTS


def is_paired(item: JsonObject) -> bool:
    return is_call(item) or is_call_output(item)


def is_tool_search(item: JsonObject) -> bool:
    return item.get("type") in ("tool_search_call", "tool_search_output")


def is_reasoning(item: JsonObject) -> bool:
    return item.get("type") == "reasoning"


def is_commentary(item: JsonObject) -> bool:
    return item.get("phase") == "commentary" and item_type(item) == "message"


def has_encrypted_reasoning(item: JsonObject) -> bool:
    return is_reasoning(item) and bool(item.get("encrypted_content"))


def has_plain_reasoning(item: JsonObject) -> bool:
    is_plain = is_reasoning(item) and not item.get("encrypted_content")
    return is_plain and has_text(item)


def is_encrypted(item: JsonObject) -> bool:
    return kind_of(item).is_encrypted


def is_compaction(item: JsonObject) -> bool:
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    places = [place for place, item in enumerate(items) if is_compaction(item)]
    if not places:
        return list(items)
    first = [item for item in items[:1] if item.get("role") == "developer"]
    return [*first, *items[places[-1] :]]


def text_message(role: object, text: str) -> Item:
    if role == "assistant":
        part: Item = {"type": "output_text", "text": text, "annotations": []}
    else:
        part = {"type": "input_text", "text": text}
    return {"type": "message", "role": role, "content": [part]}


def message_text(item: JsonObject) -> str:
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(map(part_text, content_parts(content)))


def has_text(item: JsonObject) -> bool:
    return bool(message_text(item)) or any(text for _, text in item_texts(item))


def content_parts(content: object) -> list[Item]:
    return [row for row in as_list(content) if isinstance(row, dict)]


def part_text(part: JsonObject) -> str:
    return as_text(part.get("text") or part.get("refusal"))


def open_calls(items: Sequence[Item]) -> list[Item]:
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [i for i in items if is_call(i) and i.get("call_id") not in answered]


def _find_pairs(items: Sequence[JsonObject]) -> list[bool]:
    is_paired = [False] * len(items)
    waiting: dict[str, int | None] = {}  # none waits after its output
    for place, item in enumerate(items):
        if "call_id" not in item or not isinstance(call_id := item["call_id"], str):
            continue
        kind = item.get("type")
        if kind in _CALLS:
            if item.get("name"):
                waiting.setdefault(call_id, place)
        elif (call := waiting.get(call_id)) is not None and (
            kind == CALL_OUTPUTS[items[call]["type"]]
        ):
            is_paired[call] = is_paired[place] = True
            waiting[call_id] = None
    return is_paired


_INPUT_ROLES = ("user", "system", "developer")


def drop_orphans(items: Sequence[Item]) -> list[Item]:
    kept: list[Item] = []
    dangling: list[Item] = []
    lost_call = False
    for item, has_pair in zip(items, _find_pairs(items), strict=True):
        kind = item.get("type")
        calls, answers = kind in _CALLS, kind in _OUTPUTS
        if (calls or answers) and not has_pair:
            lost_call = lost_call or calls
            continue
        if dangling and (
            answers
            or kind == CONFIGURATION
            or item.get("role") in _INPUT_ROLES
            or (lost_call and not calls)
        ):
            dangling = []
        lost_call = False
        if kind == "reasoning":
            dangling.append(item)
            continue
        if dangling:
            kept += dangling
            dangling = []
        kept.append(item)
    return kept


TextPlace = tuple[str, int]


def item_texts(item: JsonObject) -> Iterator[tuple[TextPlace, str]]:
    kind = kind_of(item)
    for text_kind, field in kind.parts:
        for index, part in enumerate(as_list(item.get(field))):
            if isinstance(part, Mapping):
                is_refusal = part.get("type") == "refusal"
                found = part.get("refusal" if is_refusal else "text")
                yield ("refusal" if is_refusal else text_kind, index), as_text(found)
    if kind.text:
        text_kind, field = kind.text
        yield (text_kind, 0), as_text(item.get(field))


def is_image_call(item: JsonObject) -> bool:
    return item.get("type") == "image_generation_call"


def has_image(item: JsonObject) -> bool:
    is_drawn = is_image_call(item) and bool(item.get("result"))
    return is_drawn and _image_format(item) in ("png", "jpeg", "webp")


def _image_format(item: JsonObject) -> str:
    return str(item.get("output_format") or "png")


def image_url(item: JsonObject) -> str:
    kind = {"svg": "svg+xml"}.get(_image_format(item), _image_format(item))
    return f"data:image/{kind};base64,{item['result']}"


def image_message(item: JsonObject) -> Item:
    part = {"type": "input_image", "detail": "auto", "image_url": image_url(item)}
    return {"type": "message", "role": "user", "content": [part]}


def is_code(item: JsonObject) -> bool:
    return item.get("type") == "code_interpreter_call"


def code_output(item: JsonObject) -> str:
    if item.get("status") in ("failed", "incomplete"):
        return "The code did not run to its end."
    outputs = content_parts(item.get("outputs"))
    return "".join(str(part.get("logs") or "") for part in outputs)


_UNFINISHED = ("in_progress", "searching", "interpreting", "calling", "incomplete")
_ACTIONS = ("search", "open_page", "find_in_page")


def is_hosted(item: JsonObject) -> bool:
    return bool(kind_of(item).tool)


def is_host_returned(item: JsonObject) -> bool:
    kind = kind_of(item)
    if not kind.tool or kind.returned == "never" or item.get("status") in _UNFINISHED:
        return False
    action = as_mapping(item.get("action")).get("type")
    if kind.tool == "web_search" and action not in _ACTIONS:
        return False
    if item_type(item) == "mcp_list_tools" and item.get("error"):
        return False
    return all(item.get(key) is not None for key in kind.required)


def is_kept_hosted(item: JsonObject) -> bool:
    return is_host_returned(item) and kind_of(item).returned == "always"


def is_replayed(item: JsonObject, *, is_ours: bool) -> bool:
    kind = kind_of(item)
    if kind.tool:
        return is_kept_hosted(item) or has_image(item)
    if kind.is_encrypted:
        return is_ours and bool(item.get("encrypted_content"))
    is_output = item.get("role", "assistant") == "assistant"
    is_sent = is_ours or item_type(item) != CONFIGURATION
    return is_output and is_sent and kind is not _OTHER_KIND


def drop_hosted_tool_items(items: Iterable[Item]) -> list[Item]:
    kept: list[Item] = []
    for item in items:
        if is_paired(item) or kind_of(item).is_call:
            drop_last_reasoning(kept)
        else:
            kept.append(item)
    drop_last_reasoning(kept)
    return kept


def drop_last_reasoning(items: list[Item]) -> None:
    while items and is_reasoning(items[-1]):
        items.pop()


def search_queries(item: JsonObject) -> list[str]:
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = as_mapping(item.get("action"))
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: JsonObject) -> list[str]:
    rows = content_parts(as_mapping(item.get("action")).get("sources"))
    return list(dict.fromkeys(_texts([row.get("url") for row in rows])))


def _texts(values: object) -> list[str]:
    return [row for row in as_list(values) if isinstance(row, str) and row]


# openai_responses.models.catalog

CATALOG_TABLE = """
model|efforts|default_effort|traits|context|max_output_tokens|prices|shutdown|successor
chatgpt-4o-latest|||vision||||2026-02-17|gpt-5.5
chatgpt-image-latest|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
codex-mini-latest|||reasoning summary functions vision||||2026-02-12|gpt-5.4-mini
gpt-3.5-turbo|||functions|16385|4096||2026-10-23|gpt-5.6-terra
gpt-3.5-turbo-0125|||functions|16385|4096||2026-10-23|gpt-5.6-terra
gpt-3.5-turbo-1106|||functions|16385|4096||2026-09-28|gpt-5.6-terra
gpt-4|||functions|8192|4096||2026-10-23|gpt-5.6-sol
gpt-4-0125-preview|||functions||||2026-03-26|gpt-5.6-sol
gpt-4-0314|||functions||||2026-03-26|gpt-5.6-sol
gpt-4-0613|||functions|8192|4096||2026-10-23|gpt-5.6-sol
gpt-4-1106-preview|||functions|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4-turbo|||functions vision|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4-turbo-preview|||functions||||2026-03-26|gpt-5.6-sol
gpt-4.1|||functions hosted vision|1047576|32768|2 0.5 - 8 1.75|2027-01-14|gpt-6-luna
gpt-4.1-mini|||functions hosted vision|1047576|32768|0.4 0.1 - 1.6|2027-01-14|gpt-6-luna
gpt-4.1-nano|||functions vision|1047576|32768||2026-10-23|gpt-5.6-luna
gpt-4o|||functions hosted vision|128k|16384|2.5 1.25 - 10|2027-01-14|gpt-6-luna
gpt-4o-2024-05-13|||functions hosted vision|128k|4096||2026-10-23|gpt-5.6-sol
gpt-4o-mini|||functions hosted vision|128k|16384|0.15 0.075 - 0.6|2027-01-14|gpt-6-luna
gpt-5|minimal some|medium|full|400k|+|1.25 0.125 - 10 2|2026-12-11|gpt-6.1-sol
gpt-5-chat-latest|||vision|128k|16384||2026-07-23|gpt-5.5
gpt-5-codex|some|medium|usual|400k|+||2026-07-23|gpt-5.4
gpt-5-mini|minimal some|medium|full|400k|+|0.25 0.025 - 2 1.8|2026-12-11|gpt-6.1-terra
gpt-5-nano|minimal some|medium|full -web_search|400k|+|0.05 0.005 - 0.4|2026-12-11|gpt-6-luna
gpt-5-pro|high|high|full -code_interpreter|400k|272000|15 - - 120|2026-12-11|gpt-6.1-sol-pro
gpt-5.1|none some|none|full|400k|+|1.25 0.125 - 10 2|2027-04-01|gpt-6.1-sol
gpt-5.1-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-07-23|gpt-5.5
gpt-5.1-codex|some|medium|usual|400k|+||2026-07-23|gpt-6.1-sol
gpt-5.1-codex-max|some xhigh|medium|usual|400k|+||2026-07-23|gpt-5.4
gpt-5.1-codex-mini|some|medium|usual|400k|+||2026-07-23|gpt-5.4-mini
gpt-5.2|none some xhigh|none|full|400k|+|1.75 0.175 - 14 2||
gpt-5.2-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-08-10|gpt-5.5
gpt-5.2-codex|some xhigh||usual|400k|+||2026-07-23|gpt-5.4
gpt-5.2-pro|medium high xhigh|medium|full|400k|+|21 - - 168||
gpt-5.3-chat-latest|medium|medium|reasoning summary verbosity functions vision|128k|16384||2026-08-10|gpt-5.5
gpt-5.3-codex|none some xhigh|none|usual|400k|+|1.75 0.175 - 14|2027-04-01|gpt-6.1-sol
gpt-5.4|none some xhigh|none|5.4|1050k|+|2.5 0.25 - 15 2||
gpt-5.4-mini|none some xhigh|none|5.4|400k|+|0.75 0.075 - 4.5 2||
gpt-5.4-nano|none some xhigh|none|5.4|400k|+|0.2 0.02 - 1.25|2027-04-01|gpt-6-luna
gpt-5.4-pro|medium high xhigh|medium|5.4|1050k|+|30 - - 180||
gpt-5.5|none some xhigh|medium|5.4|1050k|+|5 0.5 - 30 2.5||
gpt-5.5-pro|medium high xhigh|medium|5.4|1050k|+|30 - - 180||
gpt-5.6-cyber|none more|medium|5.6 pro_mode|400k|+|12.5 1.25 15.625 75||
gpt-5.6-luna|none more|medium|5.6 pro_mode|1050k|+|0.2 0.02 0.25 1.2 2||
gpt-5.6-sol|none more|medium|5.6 pro_mode|1050k|+|4 0.4 5 20 2||
gpt-5.6-terra|none more|medium|5.6 pro_mode|1050k|+|2 0.2 2.5 12 2||
gpt-6-astra|more|medium|6 pro_mode|1050k|+|10 1 12.5 50 2 6||
gpt-6-astra-law|more||6 pro_mode|1050k|+|10 1 - 50||
gpt-6-cyber|||6|||||
gpt-6-luna|none more|medium|6 pro_mode|1050k|+|0.1 0.01 0.125 0.5 2||
gpt-6-rosalind|||6|1050k|+|15 1.5 18.75 75||
gpt-6-sol|none more|medium|6 pro_mode|1050k|+|2 0.2 2.5 10 2||
gpt-6.1-sol|more|medium|6 pro_mode|1050k|+|2 0.1 2.5 10 2 6||
gpt-6.1-terra|none more|medium|6 pro_mode|1050k|+|1 0.05 1.25 5 2||
gpt-6.2-astra|more||6.2|1050k|+|8 0.4 10 40 2||
gpt-6.2-astra-law|||6.2|||||
gpt-6.2-sol|more||6.2|1050k|+|2 0.1 2.5 10 2 3 20270228 6||
gpt-daybreak-blue-latest|||usual long_prices|1050k|+|4 0.4 5 20||
gpt-daybreak-red-latest|||usual long_prices|400k|+|12.5 1.25 15.625 75||
gpt-image-1-mini|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
gpt-image-1.5|||||||2026-12-01|gpt-image-2.6-sunburst or -flare
gpt-rosalind-research|||usual|||5 0.5 - 25||
o1|some|medium|reasoning functions vision|200k|100000||2026-10-23|gpt-5.6-sol
o1-pro|some|medium|reasoning functions vision|200k|100000||2026-10-23|gpt-5.6-sol-pro
o3|some|medium|usual|200k|100000|2 0.5 - 8|2026-12-11|gpt-6.1-sol
o3-deep-research|some|medium|reasoning summary hosted vision -image_generation|200k|100000||2026-07-23|gpt-5.4-pro
o3-mini|some|medium|reasoning summary functions|200k|100000||2026-10-23|gpt-5.6-sol
o3-pro|some|medium|usual -code_interpreter|200k|100000|20 - - 80|2026-12-11|gpt-6.1-sol-pro
o4-mini|some|medium|usual -image_generation|200k|100000||2026-10-23|gpt-5.6-terra
o4-mini-deep-research|some|medium|reasoning summary hosted vision -image_generation|200k|100000||2026-07-23|gpt-5.4-pro
"""

CATALOG_WORDS: dict[str, str] = {
    "some": "low medium high",
    "more": "some xhigh max",
    "usual": "reasoning summary functions hosted vision",
    "full": "usual verbosity",
    "5.4": "full all_turns long_prices regional",
    "5.6": "5.4 appends_tools diagnostics",
    "6": "5.6 appends_configuration",
    "6.2": "6 prefix_bound",
}

CATALOG_SERVED_AS: dict[str, str] = {
    "gpt-5.6": "gpt-5.6-sol",
}

CATALOG_ALIASES: dict[str, str] = {
    "gpt-5-auto": "gpt-6.1-sol",
}


# openai_responses.models.resolve

REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

_SNAPSHOT_DATE = re.compile(r"-(\d{4}-\d{2}-\d{2})$")
_GPT_VERSION = re.compile(r"gpt-(\d)(?:\.(\d{1,2}))?(?!\d)")
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_THINKING_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-thinking(-mini|-nano)?$")
_INSTANT_NAME = re.compile(r"(gpt-\d(?:\.\d+)?)-instant$")
_PRO_NAME = re.compile(r"(gpt-[\w.-]+)-pro(-[a-z]+)?$")
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


class ModelPrices(NamedTuple):
    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None
    fast: float | None = None
    ultrafast: float | None = None
    ultrafast_until: float | None = None
    ultrafast_later: float | None = None


class ModelFacts(NamedTuple):
    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    default_effort: str | None = None
    sampling: str = "always"
    summary: bool = False
    verbosity: bool = False
    functions: bool = True
    hosted: bool = False
    lacks: tuple[str, ...] = ()
    vision: bool = True
    prefix_bound: bool = False
    appends_tools: bool = False
    appends_configuration: bool = False
    pro_mode: bool = False
    all_turns: bool = False
    diagnostics: bool = False
    long_prices: bool = False
    regional: bool = False
    context: int | None = None
    max_output_tokens: int | None = None
    shutdown: str | None = None
    successor: str | None = None
    prices: ModelPrices | None = None
    known_family: bool = True


_PLAIN_FACTS = ModelFacts()


class ResolvedModel(NamedTuple):
    id: str
    family: str
    effort: str | None
    facts: ModelFacts
    name: str
    pro: bool = False

    def lowest_effort(self) -> str | None:
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    if name in overrides:
        return overrides[name]
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    if (match := _PRO_NAME.match(name)) and not _named_model(name):
        model = resolve_model(match[1] + (match[2] or ""), overrides)
        if model.facts.pro_mode:
            shown = _shown_name(f"{model.id}-pro", model.effort)
            return model._replace(name=shown, pro=True)
    id, found = _named_model(name) or _model_with_effort(name) or (name, None)
    facts, shown = _model_facts(id), _shown_name(id, found)
    return ResolvedModel(id, _model_family(id), found, facts, shown)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS or _model_family(name) in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    return _thinking_or_instant(name)


def _thinking_or_instant(name: str) -> tuple[str, str | None] | None:
    if match := _THINKING_NAME.match(name):
        facts = CATALOG_FACTS.get(model_id := match[1] + (match[2] or ""))
        thinks = "medium" if facts and facts.default_effort == "none" else None
        return (model_id, thinks) if facts else None
    if match := _INSTANT_NAME.match(name):
        facts = CATALOG_FACTS.get(match[1])
        return (match[1], "none") if facts and "none" in facts.efforts else None
    return None


def _model_with_effort(name: str) -> tuple[str, str] | None:
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    accepted = effort in facts.efforts if facts.efforts else facts.reasoning
    return (model_id, effort) if accepted else None


def _model_family(model_id: str) -> str:
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    if match := _WRAPPED_ID.match(model_id):
        return _model_facts(match[1])._replace(prices=None)
    if _O_SERIES_ID.match(model_id):
        efforts = tuple(_expand_words("some"))
        return _reasoning_facts("usual")._replace(efforts=efforts)
    match = _GPT_VERSION.match(model_id)
    if not match:
        return _PLAIN_FACTS._replace(hosted=True, known_family=False)
    version = (int(match[1]), int(match[2] or 0))
    if version < (5, 0):
        return _PLAIN_FACTS
    known = [name for name in CATALOG_WORDS if name[0].isdigit()]
    newest = [name for name in known if tuple(map(int, name.split("."))) <= version]
    return _reasoning_facts(newest[-1] if newest else "full")


def _reasoning_facts(traits: str) -> ModelFacts:
    return ModelFacts(sampling="never", **_read_traits(_expand_words(traits)))


def _expand_words(text: str) -> list[str]:
    words = list[str]()
    for word in text.split():
        words += _expand_words(CATALOG_WORDS[word]) if word in CATALOG_WORDS else [word]
    return words


def _read_traits(words: list[str]) -> dict[str, Any]:
    return {name: name in words for name in _YES_OR_NO_FACTS - {"known_family"}}


def _shown_name(model_id: str, effort: str | None) -> str:
    name, notes = model_id, [effort] if effort else []
    if _GPT_VERSION.match(model_id):
        if match := _SNAPSHOT_DATE.search(model_id):
            notes.insert(0, match[1])
        _, version, *words = _SNAPSHOT_DATE.sub("", model_id).split("-")
        shown = [w if w in _SIZES else w.capitalize() for w in words if w != "latest"]
        name = " ".join((f"GPT-{version}", *shown))
    return f"{name} ({', '.join(notes)})" if notes else name


_SIZES = ("mini", "nano", "pro")


_YES_OR_NO_FACTS = frozenset(
    name for name, fact in _PLAIN_FACTS._asdict().items() if isinstance(fact, bool)
)


def _read_catalog_row(line: str) -> tuple[str, ModelFacts]:
    name, efforts, effort, traits, *rest = line.split("|")
    context, output, prices, shutdown, successor = rest
    words = _expand_words(traits)
    sampling = "never" if "reasoning" in words else "always"
    return name, ModelFacts(
        **_read_traits(words),
        lacks=tuple(word[1:] for word in words if word[0] == "-"),
        efforts=tuple(_expand_words(efforts)),
        default_effort=effort or None,
        sampling="with_none" if "none" in efforts else sampling,
        context=int(context.replace("k", "000")) if context else None,
        max_output_tokens=int(output.replace("+", "128000")) if output else None,
        shutdown=shutdown or None,
        successor=successor or None,
        prices=ModelPrices(*_prices(prices)) if prices else None,
    )


def _prices(text: str) -> list[float | None]:
    return [None if one == "-" else float(one) for one in text.split()]


CATALOG_FACTS = dict(map(_read_catalog_row, CATALOG_TABLE.split("\n")[2:-1]))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


_OVERRIDE_FORMS = {
    **dict.fromkeys(_YES_OR_NO_FACTS, bool),
    **dict.fromkeys(("default_effort", "shutdown", "successor", "like", "name"), str),
    **dict.fromkeys(("context", "max_output_tokens"), _is_count),
    "sampling": "always|with_none|never",
    "lacks": [str],
    "efforts": ["|".join(REASONING_EFFORTS)],
    "phase": object,
}


@lru_cache(maxsize=8)
def read_overrides(text: str) -> dict[str, ResolvedModel]:
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        problem = "MODEL_OVERRIDES_JSON is not a JSON object"
        raise valve_error(problem, '{"my-gpt": {"like": "gpt-5.2"}}')
    return {model: _read_override(model, row) for model, row in table.items()}


def _read_override(model_id: str, row: object) -> ResolvedModel:
    if not isinstance(row, Mapping):
        raise _entry_error(model_id, "is no JSON object")
    for key, value in row.items():
        if not fits_form({key: value}, _OVERRIDE_FORMS):
            raise _entry_error(model_id, f"has a wrong {str(key)[:40]}")
    facts = {key: value for key, value in row.items() if key != "phase"}
    like, name = facts.pop("like", ""), facts.pop("name", "")
    for key in facts.keys() & {"efforts", "lacks"}:
        facts[key] = tuple(facts[key])
    model = resolve_model(like or model_id)
    if like:
        model = ResolvedModel(model_id, model_id, None, model.facts, model_id)
    return model._replace(facts=model.facts._replace(**facts), name=name or model.name)


def _entry_error(model: str, what: str) -> InvalidRequest:
    return valve_error(f"MODEL_OVERRIDES_JSON: the entry {model} {what}")


# openai_responses.models.usage


class Usage(NamedTuple):
    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0
    tier: str = ""


def add_usage(one: Usage | None, other: Usage | None) -> Usage | None:
    if one is None or other is None:
        return one or other
    return Usage._make((*map(int.__add__, one[:-1], other[:-1]), ""))


def read_usage(wire: object, tier: object = "") -> Usage | None:
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    outputs = as_mapping(wire.get("output_tokens_details"))
    given, made = _count(wire.get("input_tokens")), _count(wire.get("output_tokens"))
    return Usage(
        input=given,
        output=made,
        total=_count(wire.get("total_tokens")) or given + made,
        cached=_count(inputs.get("cached_tokens")),
        cache_writes=_count(inputs.get("cache_write_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
    )


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 < value < 10**12 else 0


_MILLION = 1_000_000


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _MILLION


_PRICES = dict.fromkeys(ModelPrices._fields, _is_price)


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    host: str = "",
) -> float | None:
    costs = [_cost_of_tokens(one, facts, today) for one in usages]
    if None in costs:
        return None
    is_regional = facts.regional and host.endswith(".api.openai.com")
    tokens = sum(filter(None, costs)) * (1.1 if is_regional else 1)
    return tokens + sum(kind_of(item).fee for item in output)


def format_money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 1 else f"${Decimal(f'{dollars:.2g}'):f}"


def read_prices(text: str) -> dict[str, ModelPrices]:
    table = parse_json_object(text.strip() or "{}")
    wrong = [model for model, row in (table or {}).items() if not _are_prices(row)]
    if table is None or wrong:
        model = f" for {wrong[0]}" if wrong else ""
        raise valve_error(
            f"CUSTOM_MODEL_PRICING_JSON has no valid prices{model}",
            '{"my-model": {"input": 2, "output": 8}}',
        )
    return {
        model: ModelPrices(**dict.fromkeys(_PRICES) | row)
        for model, row in table.items()
    }


def _are_prices(row: Any) -> bool:
    return fits_form(row, _PRICES) and {"input", "output"} <= row.keys()


_LONG_INPUT = 272_000


def _cost_of_tokens(usage: Usage, facts: ModelFacts, today: date) -> float | None:
    prices, is_long = facts.prices, facts.long_prices and usage.input > _LONG_INPUT
    factor = prices and _tier_factor(usage.tier, prices, today)
    if not (prices and factor) or prices.input is None or prices.output is None:
        return None
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    plain = max(0, usage.input - usage.cached - usage.cache_writes)
    read = plain * prices.input + usage.cached * cached + usage.cache_writes * written
    made = usage.output * prices.output
    return factor * (2 * read + 1.5 * made if is_long else read + made) / _MILLION


def _tier_factor(tier: str, prices: ModelPrices, today: date) -> float | None:
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        is_later = (prices.ultrafast_until or 99999999) < int(f"{today:%Y%m%d}")
        return prices.ultrafast_later if is_later else prices.ultrafast
    return {"": 1, "auto": 1, "default": 1, "flex": 0.5}.get(tier)


# openai_responses.requests.repairs


class Repair(NamedTuple):
    action: str
    target: str
    value: str = ""
    new: str = ""


APPENDED = frozenset({ADDED_TOOLS, CONFIGURATION})

CHAT_ACTIONS = ("item", "text", "kind", "reasoning", "plain")

_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "[A picture or file stood here. It could not be sent.]"


def json_digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hex_digest(text)[:32]


def repair_payload(
    payload: Mapping[str, Any], repairs: Iterable[Repair]
) -> dict[str, Any]:
    repairs = [*repairs]
    payload = lower_payload(payload, {r.target for r in repairs if r.action == "lower"})
    items = [sent for _, sent in repair_items(payload["input"], repairs)]
    changed = {**payload, "input": items}
    for repair in repairs:
        if change := _CHANGES.get(repair.action):
            changed = change(changed, repair)
    return changed


def item_names(items: Iterable[Item]) -> list[str]:
    counts, names = Counter[str](), list[str]()
    for name in map(json_digest, items):
        names.append(f"{name}.{counts[name]}" if counts[name] else name)
        counts[name] += 1
    return names


def repair_items(
    items: Sequence[Item], repairs: Iterable[Repair]
) -> list[tuple[str, Item]]:
    changes = {repair[:2] for repair in repairs}
    items = [item for item in items if ("lower", item_type(item)) not in changes]
    names = item_names(items)
    wanted = {one for one in changes if one[0] in CHAT_ACTIONS}
    if not wanted:
        return list(zip(names, items, strict=True))
    rows = list(zip(names, items, _actions_of(items, names, wanted), strict=True))
    lost = {item.get("call_id") for _, item, action in rows if action == "item"}
    changed: list[Item] = []
    made_of: dict[int, str] = {}
    for name, item, action in rows:
        is_told = is_paired(item) and item.get("call_id") in lost
        if is_told or action == "item":
            drop_last_reasoning(changed)
        if is_told or action != "item":
            one = plain_item(item) if action else item
            changed.append(_told_item(item) if is_told else one)
            made_of[id(changed[-1])] = name
    return [(made_of[id(sent)], sent) for sent in drop_orphans(changed)]


def _actions_of(
    items: Sequence[Item], names: Sequence[str], wanted: Set[tuple[str, str]]
) -> list[str]:
    last = {name: place for place, name in enumerate(names)}
    ends: dict[str, int] = {}  # of what holds up to an item, kinds by `type`
    for action, target in wanted:
        what, _, end = target.rpartition("@")
        limit = what if action == "kind" else f"@{action}"
        ends[limit] = max(ends.get(limit, -1), last.get(end, -1))
    actions: list[str] = []
    for place, (item, name) in enumerate(zip(items, names, strict=True)):
        here = {one for one in ("item", "text") if (one, name) in wanted}
        kind = item_type(item)
        kinds = {"@reasoning", "@plain", kind, f"{kind}:{item.get('name')}"}
        here |= {one for one in kinds if place <= ends.get(one, -1)}
        is_plain = here & {"text", "@plain"}
        actions.append("item" if _is_left_out(item, here) else "text" * bool(is_plain))
    return actions


_MOST_TOLD = 20_000


def _told_item(item: Item) -> Item:
    text = f"I got this result: {plain_item(item).get('output')}"
    if is_call(item):
        text = (
            f"I called {item.get('name')}: {item.get('arguments') or item.get('input')}"
        )
    return text_message("assistant", text[:_MOST_TOLD])


def _is_left_out(item: Item, actions: Set[str]) -> bool:
    if item.get("role", "assistant") != "assistant":
        return False  # what people and the administrator wrote always stays
    if actions - {"text", "@reasoning", "@plain"}:
        return True
    if "@reasoning" in actions and is_encrypted(item):
        return True
    has_words = is_paired(item) or (item_type(item) == "message" and message_text(item))
    return "@plain" in actions and not has_words


def has_media(item: Item) -> bool:
    return item != _without_media(item)


def _without_media(item: Item) -> Item:
    lists = {k: v for k in ("content", "output") if isinstance(v := item.get(k), list)}
    gone = {"type": "input_text", "text": _MEDIA_GONE}
    return item | {
        key: [gone if part.get("type") in _MEDIA else part for part in content_parts(v)]
        for key, v in lists.items()
    }


def plain_item(item: Item) -> Item:
    bare = _without_media(item)
    if item_type(bare) != "message":
        if isinstance(output := bare.get("output"), list):
            bare["output"] = "\n".join(map(part_text, content_parts(output)))
        names = ("type", "call_id", "name", "arguments", "input", "output")
        return {key: bare[key] for key in names if key in bare}
    return text_message(bare.get("role"), message_text(bare))


def lower_payload(payload: Mapping[str, Any], kinds: Set[str]) -> dict[str, Any]:
    items, rest = payload["input"], list[Item]()
    changed = {**payload, "input": rest}
    for item in items if kinds else ():
        if (kind := item_type(item)) not in kinds:
            rest.append(item)
        elif kind == CONFIGURATION:
            for key in item.keys() & {"reasoning", "text"}:
                changed[key] = {**changed.get(key, {}), **item[key]}
    if ADDED_TOOLS in kinds and (tools := declared_tools(payload)):
        changed["tools"] = tools
    return changed if kinds else {**payload}


def declared_tools(payload: Mapping[str, Any]) -> list[Item]:
    added = (i["tools"] for i in payload["input"] if item_type(i) == ADDED_TOOLS)
    return [tool for tools in (payload.get("tools") or (), *added) for tool in tools]


def _without_field(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    where, _, path = repair.target.partition(":")
    kind, *keys = path.split(".")

    def without(rows: Iterable[Item]) -> list[Item]:
        return [_without_key(r, keys) if item_type(r) == kind else r for r in rows]

    changed = {**payload, where: without(payload.get(where) or ())}
    if where == "tools":
        changed["input"] = [
            {**i, where: without(i[where])} if item_type(i) == ADDED_TOOLS else i
            for i in payload["input"]
        ]
    return {key: value for key, value in changed.items() if key != where or value}


def _without_key(value: Any, keys: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without_key(row, keys) for row in value]
    if not isinstance(value, dict) or keys[0] not in value:
        return value
    if len(keys) > 1:
        return {**value, keys[0]: _without_key(value[keys[0]], keys[1:])}
    return {key: inner for key, inner in value.items() if key != keys[0]}


def all_tools(tools: Iterable[Item]) -> Iterator[Item]:
    for tool in tools:
        yield tool
        yield from content_parts(tool.get("tools"))


def _without_tool(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    tools = payload.get("tools") or []
    kept = _other_tools(tools, repair.target)
    if kept == tools:
        is_added = any(json_digest(t) == repair.target for t in declared_tools(payload))
        lowered = lower_payload(payload, {ADDED_TOOLS})
        return _without_tool(lowered, repair) if is_added else payload
    choice = _remaining_choice(payload.get("tool_choice"), kept)
    changed = {**payload, "tools": kept, "tool_choice": choice if kept else None}
    return {key: value for key, value in changed.items() if value not in (None, [])}


def _remaining_choice(choice: object, tools: Sequence[Item]) -> object:
    if not isinstance(choice, Mapping):
        return None if choice == "required" else choice
    names = {
        one for tool in all_tools(tools) for one in (tool_name(tool), tool.get("type"))
    }
    if not isinstance(allowed := choice.get("tools"), list):
        return choice if tool_name(choice) in names else None
    chosen = [one for one in allowed if tool_name(one) in names]
    return {**choice, "tools": chosen} if chosen else "none"


def _other_tools(tools: Sequence[Item], target: str) -> list[Item]:
    kept = [tool for tool in tools if json_digest(tool) != target]
    is_searched = any(tool.get("type") == "tool_search" for tool in kept)
    found: list[Item] = []
    for tool in kept:
        if "tools" not in tool:
            found.append(tool)
        elif inner := [
            one
            for one in content_parts(tool["tools"])
            if json_digest(one) != target
            and (is_searched or not one.get("defer_loading"))
        ]:
            found.append({**tool, "tools": inner})
    return found


def tool_name(tool: Mapping[str, Any]) -> str:
    return str(tool.get("name") or tool.get("server_label") or tool.get("type"))


def _change_parameter(payload: dict[str, Any], repair: Repair) -> dict[str, Any]:
    path = repair.target.split(".")
    found = parameter_at(payload, path)
    if found is None or (repair.value and repair.value != json.dumps(found)):
        return payload
    changed: dict[str, Any] = _without_key(payload, path)
    if repair.new:
        new = json.loads(repair.new)
        outer = {**payload[path[0]], path[1]: new} if len(path) > 1 else new
        changed = {**payload, path[0]: outer}
    return {key: value for key, value in changed.items() if value != {}}


def _without_reasoning_text(payload: dict[str, Any], _: Repair) -> dict[str, Any]:
    kept = [item for item in payload["input"] if not has_plain_reasoning(item)]
    return {**payload, "input": kept}


_CHANGES = {
    "reasoning_text": _without_reasoning_text,
    "field": _without_field,
    "tool": _without_tool,
    "parameter": _change_parameter,
}


def parameter_at(payload: Mapping[str, Any], path: Sequence[str]) -> object:
    found: object = payload
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


# openai_responses.transport.stream


class ServerSentEvent(NamedTuple):
    event: str
    data: str


_LINE_BYTES = 64


class EventStreamDecoder:
    def __init__(self, most_bytes: int = MAX_JSON_BYTES) -> None:
        self._most_bytes = most_bytes
        self._partial_line = bytearray()
        self._after_cr = False
        self._event = b""
        self._lines: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        if len(self._partial_line) + self._size > self._most_bytes:
            raise AnswerTooLarge
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._partial_line.extend(chunk)
            return []
        return self._take_lines(chunk)

    def close(self) -> list[ServerSentEvent]:
        return self._take_lines(b"\n\n")

    def _take_lines(self, chunk: bytes) -> list[ServerSentEvent]:
        text = b"".join((self._partial_line, chunk))
        lines, self._partial_line = text.splitlines(), bytearray()
        self._size += len(text) + _LINE_BYTES * len(lines)
        if text.endswith(b"\r"):
            self._after_cr = True
        elif not text.endswith(b"\n"):
            self._partial_line.extend(lines.pop())
            self._size -= len(self._partial_line)
        events = []
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            elif not line:
                if self._lines:
                    name = self._event.decode("utf-8", "replace")
                    value = b"\n".join(self._lines)
                    data = value.decode("utf-8", "replace")
                    events.append(tuple.__new__(ServerSentEvent, (name, data)))
                self._event, self._lines, self._size = b"", [], 0
        return events


NO_CARD: JsonObject = MappingProxyType({})


class TextDelta(NamedTuple):
    output_index: int
    kind: str
    part: int
    text: str
    item_id: str = ""


class TextDone(TextDelta): ...


class AnnotationAdded(NamedTuple):
    output_index: int
    annotation: Item
    item_id: str = ""


class PartialImage(NamedTuple):
    output_index: int
    image: str
    form: str
    item_id: str = ""


class ItemAdded(NamedTuple):
    output_index: int
    item: Item


class ItemDone(NamedTuple):
    output_index: int
    item: Item
    card: JsonObject = NO_CARD
    shown: str = ""


class FinalResponse(NamedTuple):
    status: str
    response: JsonObject


class StreamError(NamedTuple):
    error: ApiError


ItemEvent = ItemAdded | TextDelta | AnnotationAdded | PartialImage | ItemDone

StreamEvent = ItemEvent | FinalResponse | StreamError | None


def join_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    out: list[StreamEvent] = []
    for place, neighbours in groupby(
        events, lambda one: one[:3] + one[4:] if type(one) is TextDelta else None
    ):
        if place is None:
            out += neighbours
        else:
            texts = [event.text for event in neighbours if isinstance(event, TextDelta)]
            out.append(TextDelta._make((*place[:3], "".join(texts), place[3])))
    return out


_SCAN_JSON = vars(json.JSONDecoder())["scan_once"]
_Reader = Callable[[JsonObject], StreamEvent]


def parse_event(event: ServerSentEvent) -> StreamEvent:
    if event.data == "[DONE]":
        return None
    text = event.data.strip(" \t\n\r")
    try:
        wire, end = _SCAN_JSON(text, 0)
        may_be_deep = (
            len(text) > 2 * MAX_JSON_DEPTH
            and text.count("[") + text.count("{") > MAX_JSON_DEPTH
        )
        if end != len(text) or (may_be_deep and is_too_deep(wire)):
            raise ValueError
        read = _READERS.get(wire.get("type") or event.event)
        return read(wire) if read else None
    except _ODD_EVENT:
        raise MalformedEvent from None


_ODD_EVENT = (
    StopIteration,
    ValueError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)


def _checked(value: object, kind: type) -> Any:
    if not isinstance(value, kind):
        raise TypeError
    return value


def _index(wire: JsonObject) -> int:
    index = wire.get("output_index")
    return -1 if index is None else _checked(index, int)


def _text_reader(event: type[TextDelta], kind: str, part: str, field: str) -> _Reader:
    new = partial(tuple.__new__, event)

    def read(wire: JsonObject) -> StreamEvent:
        place, text, item_id = wire.get(part, 0), wire[field], wire.get("item_id")
        index = wire.get("output_index")
        if index is None:
            index = -1
        if not (
            isinstance(text, str) and isinstance(place, int) and isinstance(index, int)
        ):
            raise TypeError
        if not isinstance(item_id, str):
            item_id = ""
        return new((index, kind, place, text, item_id))

    return read


def _read_annotation(wire: JsonObject) -> StreamEvent:
    if (annotation := wire.get("annotation")) is None:
        return None
    item_id = as_text(wire.get("item_id"))
    return AnnotationAdded(_index(wire), _checked(annotation, dict), item_id)


def _read_partial_image(wire: JsonObject) -> StreamEvent:
    return PartialImage(
        _index(wire),
        _checked(wire["partial_image_b64"], str),
        str(wire.get("output_format") or ""),
        as_text(wire.get("item_id")),
    )


def _item_reader(event: type[ItemAdded] | type[ItemDone]) -> _Reader:
    return lambda wire: event(_index(wire), _checked(wire["item"], dict))


def _final_reader(status: str) -> _Reader:
    return lambda wire: FinalResponse(status, _checked(wire["response"], dict))


def _read_error(wire: JsonObject) -> StreamEvent:
    flat = {key: value for key, value in wire.items() if key != "type"}
    return StreamError(read_api_error(flat))


_TEXT_EVENTS = (
    ("output_text", "text", "content_index", "text"),
    ("refusal", "refusal", "content_index", "refusal"),
    ("reasoning_summary_text", "summary", "summary_index", "text"),
    ("reasoning_text", "reasoning", "content_index", "text"),
    ("function_call_arguments", "arguments", "part", "arguments"),
    ("custom_tool_call_input", "arguments", "part", "input"),
    ("mcp_call_arguments", "arguments", "part", "arguments"),
    ("code_interpreter_call_code", "code", "part", "code"),
)

_READERS: Mapping[str, _Reader] = {
    **{
        f"response.{name}.delta": _text_reader(TextDelta, kind, part, "delta")
        for name, kind, part, _ in _TEXT_EVENTS
    },
    **{
        f"response.{name}.done": _text_reader(TextDone, *places)
        for name, *places in _TEXT_EVENTS
    },
    "response.output_text.annotation.added": _read_annotation,
    "response.image_generation_call.partial_image": _read_partial_image,
    "response.output_item.added": _item_reader(ItemAdded),
    "response.output_item.done": _item_reader(ItemDone),
    **{
        f"response.{status}": _final_reader(status)
        for status in ("completed", "incomplete", "failed")
    },
    "error": _read_error,
}


# openai_responses.loop.events

NO_THOUGHT: Item = {"type": "reasoning", "summary": []}


class ToolOutput(NamedTuple):
    output_index: int
    item: Item
    failed: bool = False
    card: JsonObject = NO_CARD


class ResponseDone(NamedTuple):
    status: str


class Status(NamedTuple):
    sentence: str
    repair: Repair | None = None
    is_lasting: bool = True
    is_named: bool = False
    reason: str = ""


class Trace(NamedTuple):
    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = ApiError()
    removed: Mapping[str, int] = MappingProxyType({})
    subject: str = ""
    response_id: str = ""
    cache: JsonObject = MappingProxyType({})


class RunDone(NamedTuple):
    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = Trace()
    cost: float | None = None
    usages: tuple[Usage, ...] = ()
    remark: str = ""


RunEvent = ItemEvent | ToolOutput | ResponseDone | Status | RunDone
RunEvents = AsyncGenerator[RunEvent, None]


# openai_responses.redaction

_REDACTED = "[redacted]"

_SHORTEST_SECRET = 6

_SPACE = r"[^\S\r\n]*+"
_NAME_ENDS = rf"""["'\\]*+{_SPACE}(?:[:=]|,(?={_SPACE}b?["'])){_SPACE}"""
_VALUE_OPENS = r"""(?:b(?=["'])|["'\\(\[])*+"""
_ASSIGNED = _NAME_ENDS + _VALUE_OPENS

_LOOKS_SECRET = re.compile(
    "|".join(
        [
            rf"(?P<header>(?:authorization|cookies?){_ASSIGNED})"
            r"""[^\s"'\\](?:[^\r\n"'\\]|\\[^"'nr\r\n])*+""",
            r"(?P<name>(?:api[-_ ]?key(?:\ provided)?|client[-_]?secret|passw(?:or)?d|"
            r"(?:access|auth|refresh|session)[-_]?token|encrypted_content)"
            rf"""{_ASSIGNED})(?:(?<=["'])[^\r\n"'\\]++|[^\s"'\\&,;)}}\]>]++)""",
            r"(?P<query>[?&][\w.-]{0,32}?(?:key|token|secret|password|signature|sig)=)"
            r"""[^\s"'\\&#;)}\]>]++""",
            r"(?P<scheme>://)[^\s/?#\"'<>]*@",
            r"(?P<bearer>bearer(?:\s|%20){1,4})[A-Za-z0-9._~+/=*-]{6,}+",
            r"(?P<basic>basic\s{1,4}(?-i:(?=[A-Za-z]*+[0-9+/=]|[A-Za-z]*?[a-z][A-Z])))"
            r"[A-Za-z0-9+/]{8,}+={0,2}",
            r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_)[A-Za-z0-9_*-]{6,}+",
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+"
            r"(?:\.[A-Za-z0-9_-]*+)?",
            r"gAAAA[A-Za-z0-9_-]{20,}+={0,2}",
        ]
    ),
    re.IGNORECASE,
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    known = {form for secret in secrets for form in _forms(secret.strip())}
    if known:
        longest_first = sorted(known, key=lambda form: (-len(form), form))
        pattern = "|".join(re.escape(form) for form in longest_first)
        text = _redact_pattern(re.compile(pattern, re.IGNORECASE), text)
    return _redact_pattern(_LOOKS_SECRET, text)


def header_secrets(value: str) -> list[str]:
    return [value, *value.split()[1:]]


def redact_line(text: str, secrets: Iterable[str] = ()) -> str:
    line = "\\n".join(redact(text, secrets).splitlines())
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in line)


def describe_exception(error: BaseException) -> str:
    frames = extract_tb(error.__traceback__)
    place = f"line {frames[-1].lineno} in {frames[-1].name}" if frames else "nowhere"
    return f"{type(error).__name__} at {place}"


def _redact_pattern(pattern: re.Pattern[str], text: str) -> str:
    return _REDACTED.join(
        pattern.sub(_keep_name, part) for part in text.split(_REDACTED)
    )


def _keep_name(found: re.Match[str]) -> str:
    name = found[found.lastgroup] if found.lastgroup else ""
    return f"{name}{_REDACTED}{'@' if found.lastgroup == 'scheme' else ''}"


def _forms(secret: str) -> Iterator[str]:
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
    encoded = b64encode(bytes(offset) + raw).decode()
    return encoded[(offset * 8 + 5) // 6 : (offset + len(raw)) * 8 // 6]


# openai_responses.endpoint

DEFAULT_BASE_URL = "https://api.openai.com/v1"

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(frozen=True, slots=True)
class Endpoint:
    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    organization: str = ""
    project: str = ""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify_ssl: bool = True
    ca_bundle: str = ""
    proxy: str = field(default="", repr=False)
    strict: bool = False
    is_alike: bool = False
    token: str = field(default="", repr=False)

    def url(self, path: str) -> str:
        base = _normalize_base_url(self.base_url)
        query = urlsplit(self.base_url.strip()).query
        joint = "&" if "?" in path else "?"
        return base + path + (query and joint + query)

    @property
    def host(self) -> str:
        return urlsplit(_normalize_base_url(self.base_url)).hostname or ""

    def name_server(self, sentence: str) -> str:
        is_own = "OpenAI" not in sentence or self._is_openais
        return sentence if is_own else sentence.replace("OpenAI", self.host)

    @property
    def _is_openais(self) -> bool:
        return f".{self.host}".endswith(".openai.com")

    @property
    def is_openai(self) -> bool:
        is_own = self._is_openais and not self.strict
        return is_own or (self.is_alike and not self.is_azure)

    @property
    def is_gateway(self) -> bool:
        return not (self._is_openais or self.is_azure)

    @property
    def is_azure(self) -> bool:
        return self.host.endswith(_AZURE_HOSTS)

    def account(self) -> str:
        identity = f"{self.base_url}\n{self.organization}\n{self.api_key}"
        return hex_digest(identity)

    def owner(self) -> str:
        identity = f"{self.host}\n{self.organization or self.api_key.strip()}"
        return hex_digest(identity)[:16]

    def headers(self) -> dict[str, str]:
        key, bearer = self.api_key.strip(), self.token or self.api_key.strip()
        has_key = self.is_azure and not self.token
        ours = {"api-key": key} if has_key else {"Authorization": f"Bearer {bearer}"}
        ours["Content-Type"] = "application/json"
        if self.organization:
            ours["OpenAI-Organization"] = self.organization
        if self.project:
            ours["OpenAI-Project"] = self.project
        theirs = {name.lower() for name in self.extra_headers}
        kept = {name: text for name, text in ours.items() if name.lower() not in theirs}
        return {**kept, **self.extra_headers}


def _normalize_base_url(text: str) -> str:
    parts = url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise valve_error("BASE_URL is not an http or https address", DEFAULT_BASE_URL)
    if "@" in parts.netloc:
        raise valve_error("BASE_URL holds a user name or a password, beside API_KEY")
    typed = parts.path.rstrip("/")
    path = typed.removesuffix("/responses").rstrip("/")
    if not typed:
        azure = str(parts.hostname).endswith(_AZURE_HOSTS)
        path = "/openai/v1" if azure else "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def connection_secrets(
    headers: Iterable[str], proxy: str, *keys: str
) -> tuple[str, ...]:
    parts = url_parts(proxy.strip())
    found = [*keys, proxy, unquote(parts.password or "") if parts else ""]
    found += [secret for value in headers for secret in header_secrets(value)]
    return tuple(text for text in found if text.strip())


def url_parts(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if sound and parts.scheme in ("http", "https") else None


def proxy_for(endpoint: Endpoint, url: str) -> str | None:
    proxy = endpoint.proxy.strip() or _environment_proxy(url)
    if not proxy:
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is None:
        raise InvalidRequest(
            "The proxy is not an http or https address. An administrator has to "
            "correct PROXY in the valves, or Open WebUI's environment."
        )
    return address


def _environment_proxy(url: str) -> str | None:
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    return proxy


# openai_responses.transport.connections

_IDLE_SECONDS = 60.0
_MAX_CONNECTIONS = 1000
_KEEPALIVE_SECONDS = 50.0
_DNS_SECONDS = 300


class _Pool:
    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
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
                self._timer = loop.call_later(_IDLE_SECONDS, self.close_later)

    def close_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        session, self._session = self._session, None
        if session is not None:
            self.start(session.close())

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        while self._tasks:
            await asyncio.gather(*self._tasks)
        self.close_later()
        await asyncio.gather(*self._tasks)


def _new_session() -> aiohttp.ClientSession:
    connector = aiohttp.TCPConnector(
        limit=_MAX_CONNECTIONS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        ttl_dns_cache=_DNS_SECONDS,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        auto_decompress=False,
    )


class Timeouts(NamedTuple):
    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()


class Deadlines:
    def __init__(
        self, timeouts: Timeouts, heard: Callable[[bool], object] = bool
    ) -> None:
        self.timeouts = timeouts
        self._heard = heard
        self._end = _now() + timeouts.total if timeouts.total else float("inf")
        self.start_attempt()

    def start_attempt(self) -> None:
        self._next = _now() + self.timeouts.first_event
        self._kind: TimeoutKind = "first_event_timeout"
        self._heard(True)

    def event_arrived(self) -> None:
        self._next = _now() + self.timeouts.idle
        self._kind = "idle_timeout"
        self._heard(True)

    def allow(self, seconds: float) -> bool:
        return _now() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._heard(False)
        began = _now()
        try:
            yield
        finally:
            self._end += _now() - began

    def scope(self) -> asyncio.Timeout:
        return asyncio.timeout_at(min(self._next, self._end))

    def timeout_error(self) -> TimedOut:
        return TimedOut("total_timeout" if self._end <= self._next else self._kind)


_DRAIN_SECONDS = 1.0
_MAX_ERROR_BODY = 64 * 1024
MAX_ANSWER_BYTES = 256 * 1024 * 1024

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class _HttpResponse:
    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        self._response = response
        self._deadlines = deadlines
        self._broke = False
        self.is_read = False
        self.is_stream = response.content_type == "text/event-stream"
        request_id = response.headers.get("x-request-id", "")
        self.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else ""

    async def read_any(self) -> bytes:
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        content, scope = self._response.content, self._deadlines.scope()
        try:
            async with scope:
                chunk = await content.readany()
            self.is_read = not chunk
            return chunk
        except _NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.timeout_error() from None
            self._broke = True
        content.set_exception(None)  # type: ignore[arg-type]
        return content.read_nowait() or await self.read_any()

    async def read_all(self, most_bytes: int) -> bytearray:
        body = bytearray()
        while chunk := await self.read_any():
            body += chunk
            if len(body) > most_bytes:
                raise AnswerTooLarge
        return body

    async def read_json(self, most_bytes: int = MAX_JSON_BYTES) -> Any:
        body = await self.read_all(most_bytes)
        if json_weight(body) > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        try:
            return load_json(body)
        except ValueError:
            raise UnreadableAnswer(UNREADABLE.sentence) from None

    @contextmanager
    def paused(self) -> Iterator[None]:
        connection = self._response.connection
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
        with suppress(*_NETWORK_ERRORS):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for _ in self._response.content.iter_any():
                    pass

    async def response_object(self) -> JsonObject:
        wire = as_mapping(await self.read_json())
        if isinstance(wire.get("output"), list):
            return wire
        if wire.get("error"):
            error = read_api_error(wire)
            failure = Failure(self._response.status, error)
            raise ApiRefused(failure_sentence(error), failure, self.request_id)
        raise UnreadableAnswer(UNREADABLE.sentence)

    async def refusal(self) -> ApiRefused:
        status, headers = self._response.status, self._response.headers
        error = ApiError()
        if status >= 400:
            with suppress(TimeoutError, ResponsesError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    error = read_api_error(await self.read_json(_MAX_ERROR_BODY))
        wish = headers.get("x-should-retry", "").lower()
        should_retry = {"true": True, "false": False}.get(wish)
        failure = Failure(status, error, _retry_after(headers), should_retry)
        sentence = refusal_sentence(status, error)
        return ApiRefused(sentence, failure, self.request_id)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / per_second
            if 0 <= seconds < float("inf"):
                return seconds
    with suppress(ValueError):
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        return max(0.0, date.timestamp() - unix_seconds())
    return None


_NEVER_CONNECTED = (
    aiohttp.ClientConnectorError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ServerTimeoutError,
)


class Connections:
    def __init__(self) -> None:
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._certificates: dict[tuple[str, int], ssl.SSLContext] = {}

    def __del__(self) -> None:
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            alive = {one: p for one, p in self._pools.items() if not one.is_closed()}
            self._pools = {**alive, loop: _Pool()}
        return self._pools[loop]

    @asynccontextmanager
    async def request(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any] | None,
        deadlines: Deadlines,
    ) -> AsyncIterator[_HttpResponse]:
        body = None if payload is None else await _encode(payload)
        url = endpoint.url(path)
        with self._pool().lend() as session:
            sent = session.request(
                "GET" if body is None else "POST",
                url,
                allow_redirects=False,
                data=body,
                headers=endpoint.headers(),
                ssl=self._trusted(endpoint),
                proxy=proxy_for(endpoint, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
            with closing(await _receive(sent, endpoint, deadlines)) as response:
                answer = _HttpResponse(response, deadlines)
                if response.status >= 300 or (body is None and response.status != 200):
                    raise await answer.refusal()
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise UnreadableAnswer(SENTENCES["unreadable"]["compressed"])
                yield answer

    def _trusted(self, endpoint: Endpoint) -> ssl.SSLContext | bool:
        path, contexts = endpoint.ca_bundle, self._certificates
        if not (endpoint.verify_ssl and path):
            return endpoint.verify_ssl
        try:
            key = (path, Path(path).stat().st_mtime_ns)
            made = contexts.get(key) or ssl.create_default_context(cafile=path)
            return contexts.setdefault(key, made)
        except (OSError, ValueError):
            problem = "CA_BUNDLE is not a file with readable certificates"
            raise valve_error(problem) from None

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        self._pool().start(work)

    async def post_quietly(self, endpoint: Endpoint, path: str) -> None:
        for wait in (0.0, 0.5, 2.0):
            await asyncio.sleep(wait)
            limits = Deadlines(Timeouts(connect=10, first_event=20))
            try:
                async with self.request(endpoint, path, {}, limits):
                    return
            except ResponsesError as error:
                if 0 < error.status < 500 and error.status != 429:
                    return

    async def close(self) -> None:
        await self._pool().close()


_ITEMS_AT_ONCE = 1000


async def _encode(payload: JsonObject) -> bytes:
    if not payload:
        return b""
    items, texts = payload["input"], list[str]()
    for place in range(0, len(items), _ITEMS_AT_ONCE):
        if place:
            await asyncio.sleep(0)
        part = items[place : place + _ITEMS_AT_ONCE]
        texts.append(json.dumps(part, ensure_ascii=False)[1:-1])
    whole = json.dumps({**payload, "input": []}, ensure_ascii=False)
    before, found, after = whole.partition('"input": [')
    return f"{before}{found}{', '.join(texts)}{after}".encode(errors="replace")


async def _receive(
    answer: Awaitable[aiohttp.ClientResponse], endpoint: Endpoint, deadlines: Deadlines
) -> aiohttp.ClientResponse:
    scope = deadlines.scope()
    try:
        async with scope:
            return await answer
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.timeout_error() from None
        raise ConnectionFailed(
            _network_sentence(error, endpoint.host),
            was_sent=not isinstance(error, _NEVER_CONNECTED),
        ) from None
    except ValueError:
        problem = "API_KEY, BASE_URL, PROXY or EXTRA_HEADERS holds a bad character"
        raise valve_error(problem) from None


def _network_sentence(error: Exception, host: str) -> str:
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            return SENTENCES["refused"]["407"]
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            problem = f"The certificate of {host} is not trusted here"
            return check_valves(problem, "BASE_URL, CA_BUNDLE and VERIFY_SSL")
    return (
        f"The model's server at {host} cannot be reached. Try again; if it lasts, an "
        "administrator has to check BASE_URL in the valves."
    )


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    ids: tuple[str, str],
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    container, file = (quote(part, "", errors="replace") for part in ids)
    path = f"/containers/{container}/files/{file}/content"
    async with connections.request(endpoint, path, None, deadlines) as answer:
        return bytes(await answer.read_all(most_bytes))


# openai_responses.requests.parameters

CALLERS_KEYS = (
    *("max_output_tokens", "temperature", "top_p", "top_logprobs"),
    *("tool_choice", "parallel_tool_calls", "truncation"),
)

ADMINISTRATORS_KEYS: Mapping[str, str] = {
    "access_programs": "a right of the organization",
    "context_management": "billed",
    "image": "changes the cost",
    "max_tool_calls": "limits the cost",
    "metadata": "stored at OpenAI",
    "moderation": "a rule",
    "prompt_cache_key": "shared with others",
    "prompt_cache_options": "billed",
    "prompt_cache_retention": "stored at OpenAI",
    "safety_identifier": "names who is to blame",
    "service_tier": "changes the price",
}

_OBJECTS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}

_ANSWER_FORMATS = ("text", "json_object", "json_schema")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def read_parameters(body: JsonObject) -> tuple[dict[str, Any], list[str]]:
    given, errors = given_values(body), list[str]()
    for name in ("max_tokens", "max_completion_tokens"):
        if name in given:
            given.setdefault("max_output_tokens", given.pop(name))
    if "stop" in given:
        given.setdefault("truncation", "disabled")
    if "response_format" in given:
        given["response_format"] = _with_schema(given)
    _read_values(given, "", errors)
    for key, fields in _OBJECTS.items():
        own = given_values(given.get(key, {}))
        for field, name in fields.items():
            beside = given.pop(name, None)
            if value := own.pop(field, None) or beside:
                own[field] = value
        _read_values(own, f"{key}.", errors)
        given[key] = own
    return given, errors


def given_values(values: JsonObject) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _read_values(values: dict[str, Any], place: str, errors: list[str]) -> None:
    for name, read in _VALUE_READERS.items():
        value = values.pop(key := name.removeprefix(place), None)
        if value is None:
            continue
        try:
            values[key] = read(name, value)
        except InvalidRequest as error:
            errors.append(str(error))


def read_bool(name: str, value: object) -> bool:
    if isinstance(value, bool | int | str):
        if value in (True, "true", "1"):
            return True
        if value in (False, "false", "0"):
            return False
    raise parameter_error(name, "it must be true or false")


def _read_object(name: str, value: object) -> JsonObject:
    if not isinstance(value, Mapping):
        raise parameter_error(name, "it must be a JSON object")
    return value


def _read_word(name: str, value: object) -> str:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise parameter_error(name, f"it must be one of {words}")
    return word


def _with_schema(given: dict[str, Any]) -> Any:
    form, beside = given["response_format"], given.pop("json_schema", None)
    form = {"type": form} if isinstance(form, str) else form
    is_bare = isinstance(form, Mapping) and form.get("json_schema") is None
    return {**form, "json_schema": beside} if is_bare else form


def _read_format(name: str, value: object) -> dict[str, Any]:
    form = _read_object(name, value)
    kind = form.get("type")
    if kind not in _ANSWER_FORMATS:
        words = ", ".join(_ANSWER_FORMATS)
        raise parameter_error(name, f"its type is none of {words}")
    if kind != "json_schema":
        return {"type": kind}
    nested = form.get("json_schema")
    flat = form if nested is None and "schema" in form else nested
    return {"type": kind, **_schema_fields(name, flat)}


def _schema_fields(name: str, value: object) -> dict[str, Any]:
    read = parse_json_object(value) if isinstance(value, str) else value
    if not isinstance(read, Mapping) or not isinstance(read.get("schema"), Mapping):
        why = 'json_schema has to be a JSON object with the schema under "schema"'
        raise parameter_error(name, why)
    title = _NOT_IN_A_NAME.sub("_", str(read.get("name") or "response"))[:64]
    fields: dict[str, Any] = {"name": title, "schema": read["schema"]}
    if read.get("description"):
        fields["description"] = read["description"]
    if read.get("strict") is not None:
        fields["strict"] = read_bool("json_schema.strict", read["strict"])
    return fields


def parameter_error(name: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"The setting {name} cannot be sent: {why}.")


_WORDS: Mapping[str, tuple[str, ...]] = {
    "reasoning.effort": REASONING_EFFORTS,
    "reasoning.summary": ("auto", "concise", "detailed"),
    "text.verbosity": ("low", "medium", "high"),
}
_VALUE_READERS: Mapping[str, Callable[[str, object], Any]] = {
    **dict.fromkeys(("enable_stream", "parallel_tool_calls"), read_bool),
    **dict.fromkeys(_OBJECTS, _read_object),
    **dict.fromkeys(_WORDS, _read_word),
    "text.format": _read_format,
}


def hash_ids(kind: str, user_id: str, chat_id: str) -> dict[str, str | None]:
    chat = _hash_id("chat", chat_id) if kind == "chat" else None
    key = None if kind == "off" else chat or _hash_id("cache", user_id)
    return {"safety_identifier": _hash_id("user", user_id), "prompt_cache_key": key}


def _hash_id(kind: str, value: str) -> str | None:
    return hex_digest(f"openai_responses:{kind}:{value}")[:48] if value else None


# openai_responses.requests.json_schema

_Schema = dict[str, Any]

_LONGEST_REFERENCE = 300
_DEFINED = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
_FORBIDDEN_IN_REFERENCE = re.compile(r"[^\w-]")


def referred_schema(root: JsonObject, node: JsonObject) -> Any:
    pointer = str(node.get("$ref"))
    first, *steps = pointer.split("/")
    found: Any = root
    if first != "#" or len(pointer) > _LONGEST_REFERENCE:
        return None
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list):
            is_there = name.isdecimal() and int(name) < len(found)
            found = found[int(name)] if is_there else None
        else:
            found = as_mapping(found).get(name)
    return found


def joined_schemas(
    node: Any, parts_of: Callable[[JsonObject], list[Any]]
) -> list[JsonObject]:
    found: dict[int, JsonObject] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in found:
            found[id(part)] = part
            ahead += reversed(parts_of(part))
    return list(found.values())


_OTHER_TYPES = {
    **dict.fromkeys(("str", "text"), "string"),
    **dict.fromkeys(("int", "long"), "integer"),
    **dict.fromkeys(("float", "double", "decimal"), "number"),
    **{"bool": "boolean", "dict": "object", "list": "array", "none": "null"},
}

_JSON_TYPES = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}
_ALL_TYPES = {*_JSON_TYPES.values(), "object", "array"}


def known_types(stated: object) -> list[str]:
    words = [word for word in (stated, *as_list(stated)) if isinstance(word, str)]
    kinds = [_OTHER_TYPES.get(word.lower(), word.lower()) for word in words]
    return [kind for kind in dict.fromkeys(kinds) if kind in _ALL_TYPES]


_NOT_PLAIN = re.compile(r"\(\?(?!:)|\\[1-9AZ]|\[\^?\[|--|&&|~~|\|\||[*+?}]\+")
_LONGEST_PATTERN = 500


def _is_plain_pattern(pattern: object) -> bool:
    if not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        return False
    with suppress(re.error, OverflowError, RecursionError):
        return not _NOT_PLAIN.search(pattern) and bool(re.compile(pattern))
    return False


def _is_json(value: object) -> bool:
    with suppress(TypeError, ValueError):
        return bool(json.dumps(value, allow_nan=False))
    return False


def is_json_number(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and _is_json(value)


_SCHEMAS = ("items", "additionalProperties", "not", "propertyNames", "contains")
_SCHEMA_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_SCHEMA_MAPS = ("properties", "$defs", "definitions", "patternProperties")

_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_SCHEMAS, lambda _: True),
    **dict.fromkeys(
        (*_SCHEMA_LISTS, "enum"), lambda v: isinstance(v, list) and v != []
    ),
    **dict.fromkeys(_SCHEMA_MAPS, lambda value: isinstance(value, Mapping)),
    **dict.fromkeys(
        ("description", "title", "format"), lambda value: isinstance(value, str)
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), is_json_number
    ),
    "multipleOf": lambda value: is_json_number(value) and value > 0,
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "maxProperties"),
        lambda value: type(value) is int and value >= 0,
    ),
    "uniqueItems": lambda value: isinstance(value, bool),
    "pattern": _is_plain_pattern,
    **dict.fromkeys(("const", "default"), _is_json),
    "required": lambda value: isinstance(value, list),
    "type": lambda value: bool(known_types(value)),
}

_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))

_NOT_SIMPLE = {
    *("not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
    *("dependencies", "patternProperties", "propertyNames", "prefixItems", "contains"),
    *("unevaluatedProperties", "unevaluatedItems", "$dynamicRef", "$recursiveRef"),
    *("$ref", "allOf"),
}
_SHAPING = {"type", "properties", "items", "required", "enum"}
_NOT_AT_THE_ROOT = ("allOf", "anyOf", "oneOf", "enum", "const", "not", "$ref")

_LONGEST_NOTE = 200


def function_parameters(
    schema: JsonObject, strict_left: JsonBudget | None = None
) -> tuple[_Schema, bool]:
    mended = _MendedSchema(schema)
    if strict_left and mended.is_simple:
        with suppress(*ODD_SCHEMA):
            strict_left.spend(json_size(mended.root, _LARGEST_STRICT))
            return _strict(mended.root, 1), True
    return mended.root, False


class _MendedSchema:
    def __init__(self, schema: JsonObject) -> None:
        whole = {key: schema[key] for key in schema if key not in _NOT_AT_THE_ROOT}
        whole |= {"type": "object", "properties": _all_properties(schema)}
        self.is_simple = not schema.keys() & {*_NOT_AT_THE_ROOT}
        self.is_simple = self.is_simple and schema.get("type", "object") == "object"
        self._referring: list[_Schema] = []
        self.root = self._object({**whole, "nullable": False})
        self._mend_references()

    def _mend_references(self) -> None:
        left, defined = JsonBudget(LARGEST_SCHEMA), _Schema()
        for node in self._referring:
            target, pointer = referred_schema(self.root, node), node.pop("$ref")
            if _DEFINED.fullmatch(pointer) and isinstance(target, dict | bool):
                node["$ref"] = pointer
            elif isinstance(target, dict):
                name = _FORBIDDEN_IN_REFERENCE.sub(".", pointer[2:])
                with suppress(JsonTooLarge):
                    left.spend(json_size(target, left.left))
                    defined[name] = target
                    node["$ref"] = f"#/$defs/{name}"
        if defined:
            self.root["$defs"] = {**self.root.get("$defs", {}), **defined}

    def _mend(self, node: Any) -> Any:
        if isinstance(node, list) and node:  # until draft 2019-09, of `items`
            return {"anyOf": list(map(self._mend, node))}
        if isinstance(node, Mapping):
            return self._object(node)
        return node if isinstance(node, bool) else {}

    def _object(self, node: JsonObject) -> _Schema:
        self.is_simple = self.is_simple and not node.keys() & _NOT_SIMPLE
        made = {
            key: self._value(key, value)
            for key, value in node.items()
            if key in _VALUES and _VALUES[key](value)
        }
        self.is_simple = self.is_simple and not (node.keys() & _SHAPING) - made.keys()
        _mend_types(made, node)
        _mend_required(made, node)
        for bound, limit in _BOUNDS:
            if node.get(bound) is True and limit in made:  # draft 4
                made[bound] = made.pop(limit)
        if isinstance(node.get("$ref"), str):
            made["$ref"] = node["$ref"]
            self._referring.append(made)
        elif node.get("nullable") is True:  # OpenAPI 3.0
            return _make_nullable(made)
        return made

    def _value(self, key: str, value: Any) -> Any:
        if key in _SCHEMAS:
            return self._mend(value)
        if key in _SCHEMA_LISTS:
            return list(map(self._mend, value))
        if key not in _SCHEMA_MAPS:
            return value
        is_pattern = key == "patternProperties"
        names = filter(_is_plain_pattern, value) if is_pattern else value
        return {name: self._mend(value[name]) for name in names}


def _mend_types(made: _Schema, node: JsonObject) -> None:
    if kinds := known_types(node.get("type")):
        made["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "object" in kinds:
        made.setdefault("properties", {})
    if "array" in kinds:
        made.setdefault("items", {})
    for key in ("type", "pattern"):
        if key not in made and isinstance(lost := node.get(key), str):
            said = made.get("description", "")
            made["description"] = f"{said} ({key}: {lost[:_LONGEST_NOTE]})".lstrip()


def _mend_required(made: _Schema, node: JsonObject) -> None:
    names = [name for name in made.get("required", ()) if isinstance(name, str)]
    for name, part in as_mapping(node.get("properties")).items():
        if as_mapping(part).get("required") is True:
            names.append(name)
    if names or "required" in made:
        made["required"] = list(dict.fromkeys(names))


def _all_properties(schema: JsonObject) -> _Schema:
    parts = joined_schemas(schema, partial(schema_parts, schema, choose=list))
    found: _Schema = {}
    for part in reversed(parts):
        found.update(as_mapping(part.get("properties")))
    return found


def schema_parts(
    root: JsonObject, node: JsonObject, choose: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    parts = [referred_schema(root, node)] if "$ref" in node else []
    for key, take in (("allOf", list), ("anyOf", choose), ("oneOf", choose)):
        parts += take(as_list(node.get(key)))
    return parts


_KEPT = {
    *("description", "enum", "multipleOf", "minimum", "maximum"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "pattern"),
}

_STRICT_FORMATS = (
    *("date-time", "time", "date", "duration", "email"),
    *("hostname", "ipv4", "ipv6", "uuid"),
)

_DEEPEST_STRICT = 10
_LARGEST_STRICT = 10_000

ODD_SCHEMA = (TypeError, AttributeError, ValueError)

LARGEST_SCHEMA = 300_000
MOST_STRICT_WORK = 300_000


def _strict(node: Any, depth: int) -> _Schema:
    if not isinstance(node, Mapping) or depth > _DEEPEST_STRICT:
        raise ValueError
    if "anyOf" in node or "oneOf" in node:
        return _strict_choice(node, depth)
    strict = {key: node[key] for key in node if key in _KEPT}
    if node.get("format") in _STRICT_FORMATS:
        strict["format"] = node["format"]
    if "const" in node:
        strict["enum"] = [node["const"]]
    kinds = _types_of(node, strict.get("enum"))
    strict["type"] = kinds[0] if len(kinds) == 1 else kinds
    if "object" in kinds:
        strict |= _strict_object(node, depth)
    if "array" in kinds:
        strict["items"] = _strict(node.get("items"), depth + 1)
    return strict


def _strict_choice(node: JsonObject, depth: int) -> _Schema:
    if node.keys() & {"properties", "items", "enum", "const", "required"} or (
        {"anyOf", "oneOf"} <= node.keys()
    ):
        raise ValueError
    options = node.get("anyOf") or node["oneOf"]
    return _choice_of([_strict(one, depth + 1) for one in options], node)


def _strict_object(node: JsonObject, depth: int) -> _Schema:
    properties, required = node.get("properties", {}), set(node.get("required", ()))
    closed = node.get("additionalProperties", not properties and depth > 1) is False
    if not closed or not required <= properties.keys():
        raise ValueError
    strict = {}
    for name, part in properties.items():
        made = _strict(part, depth + 1)
        strict[name] = made if name in required else _make_nullable(made)
    return {
        "properties": strict,
        "required": list(strict),
        "additionalProperties": False,
    }


def _make_nullable(schema: _Schema) -> _Schema:
    kinds = schema.get("type")
    if kinds is None or kinds in ("object", "array"):
        rest = {key: value for key, value in schema.items() if key != "description"}
        options = rest["anyOf"] if rest.keys() == {"anyOf"} else [rest]
        none = [] if {"type": "null"} in options else [{"type": "null"}]
        return _choice_of([*options, *none], schema)
    listed = kinds if isinstance(kinds, list) else [kinds]
    made = {**schema, "type": listed if "null" in listed else [*listed, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        made["enum"] = [*schema["enum"], None]
    return made


def _choice_of(options: list[Any], node: JsonObject) -> _Schema:
    kept = node.keys() & {"description"}
    return {"anyOf": options, **{key: node[key] for key in kept}}


def _types_of(node: JsonObject, enum: object) -> list[str]:
    stated = node.get("type") or ("object" if "properties" in node else None)
    if stated is None and isinstance(enum, list):
        stated = list(dict.fromkeys(_JSON_TYPES.get(type(one), "") for one in enum))
    if not (kinds := known_types(stated)):
        raise ValueError
    return kinds


# openai_responses.requests.tools

_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_MOST_SHOWN_OF_NAME = 64
_STEM = 51
_DIGEST = 12


@dataclass(frozen=True)
class ToolNames:
    known: tuple[str, ...] = ()

    def sent_name(self, name: str) -> str:
        return self._sent.get(name) or _allowed_name(name, self._sent)

    def own_name(self, called: str, others: Collection[str] = ()) -> str:
        own = self._own.get(called)
        if own is None and called not in others:
            own = self._spelled.get(_spelling(called))
        return own or called

    @cached_property
    def _sent(self) -> Mapping[str, str]:
        known = dict.fromkeys(self.known)
        return {name: _allowed_name(name, known) for name in known}

    @cached_property
    def _own(self) -> Mapping[str, str]:
        return {self._sent[name]: name for name in reversed(self.known)}

    @cached_property
    def _spelled(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name in dict.fromkeys(self.known):
            key = _spelling(name)
            found[key] = "" if key in found else name  # neither of two can be meant
        return found

    def rename_tools(self, tools: Iterable[Item]) -> list[Item]:
        return [
            t if is_hosted_tool(t) else {**t, "name": self.sent_name(t["name"])}
            for t in tools
        ]


def _allowed_name(name: str, taken: Collection[str]) -> str:
    if _ALLOWED.fullmatch(name):
        return name
    stem, seed = _FORBIDDEN.sub("_", name)[:_STEM], name
    while True:
        seed = hex_digest(seed)
        sent = f"{stem}_{seed[:_DIGEST]}"
        if sent not in taken:
            return sent


_MODELS_PREFIX = "functions."
_LONGEST_CALL_ID = 64


def _spelling(name: str) -> str:
    return _FORBIDDEN.sub("_", name.removeprefix(_MODELS_PREFIX)).lower()


def fit_calls(items: Sequence[Item], tools: Sequence[Item]) -> list[Item]:
    kinds = {*map(item_type, tools), *map(item_type, items)}
    is_searched = bool(kinds & {"tool_search", "additional_tools"})
    spaces = {
        as_text(inner.get("name")): tool.get("name")
        for tool in tools
        for inner in content_parts(tool.get("tools"))
    }
    flat = {as_text(tool.get("name")) for tool in tools}
    fitted: list[Item] = []
    for item in items:
        if is_call(item):
            call, name = _fit_call(item, spaces, is_searched), as_text(item.get("name"))
            if call.get("namespace") and name not in flat:
                spaces.setdefault(name, call["namespace"])
            fitted.append(clean_call(call))
        elif is_searched or not is_tool_search(item):
            fitted.append(clean_call(item))
    return fitted


def _fit_call(call: Item, spaces: Mapping[str, Any], is_searched: bool) -> Item:
    space = spaces.get(as_text(call.get("name")))
    if not is_searched and "namespace" in call:
        return {key: call[key] for key in call if key != "namespace"}
    is_lost = is_searched and space and not call.get("namespace")
    return {**call, "namespace": space} if is_lost else call


def clean_call(item: Item) -> Item:
    name, call_id = item.get("name"), item.get("call_id")
    changed: Item = {}
    if is_call(item) and isinstance(name, str) and not _ALLOWED.fullmatch(name):
        changed["name"] = ToolNames().sent_name(name.removeprefix(_MODELS_PREFIX))
    if isinstance(call_id, str) and not 0 < len(call_id) <= _LONGEST_CALL_ID:
        changed["call_id"] = f"call_{hex_digest(call_id)[:32]}"
    return {**item, **changed} if changed else item


_MODES = ("auto", "none", "required")
CALLED_BY_NAME = ("function", "custom")

_OF_THE_API = ("allowed_callers", "async", "defer_loading", "output_schema")


_MOST_OF_TOOLS = 500_000
_NAMED_IN_LOG = 10


def responses_tools(
    specs: Sequence[JsonObject],
    *,
    strict: bool = False,
    log: Callable[[str], object] = str,
) -> list[Item]:
    left, strict_left = JsonBudget(_MOST_OF_TOOLS), JsonBudget(MOST_STRICT_WORK)
    tools: list[Item] = []
    left_out: list[object] = []
    for spec in specs:
        try:
            left.spend(json_size(spec, min(left.left, LARGEST_SCHEMA)))
        except JsonTooLarge:
            left_out.append(spec)
        else:
            tools.append(_responses_tool(spec, strict, strict_left))
    if left_out:
        names = ", ".join(map(_spec_name, left_out[:_NAMED_IN_LOG]))
        log(
            f"Tools are left out, because their schemas are too large or too deep: "
            f"{names} ({len(left_out)} in all). Make the schemas smaller, or offer "
            "fewer tools."
        )
    return tools


def _spec_name(spec: object) -> str:
    outer = as_mapping(spec)
    inner = as_mapping(outer.get("function") or outer.get("custom"))
    return repr(as_text(inner.get("name") or outer.get("name"))[:_MOST_SHOWN_OF_NAME])


def is_hosted_tool(tool: JsonObject) -> bool:
    return tool.get("type") not in CALLED_BY_NAME


def merge_tools(*groups: Sequence[Item]) -> list[Item]:
    tools = [tool for group in groups for tool in group]
    return list({tool_identity(tool): tool for tool in tools}.values())


def responses_tool_choice(
    choice: object, tools: Sequence[Item], names: ToolNames
) -> object:
    if choice is None or choice in _MODES:
        return choice
    if isinstance(choice, str):
        wanted = _choice_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _tool_choice(choice, names)
    else:
        raise InvalidRequest("The tool choice is neither a word nor a JSON object.")
    is_list = wanted["type"] == "allowed_tools"
    _check_offered(wanted["tools"] if is_list else [wanted], tools)
    return wanted


def next_tool_choice(choice: object) -> object:
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return "none" if choice == "none" else None


def _responses_tool(spec: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    if not isinstance(spec, Mapping) or not as_text(spec.get("type", "function")):
        raise InvalidRequest(
            "A tool is not described by a JSON object, or its type is not a text."
        )
    kind = spec.get("type", "function")
    if kind not in CALLED_BY_NAME:
        return dict(spec)
    nested = spec.get(kind)
    flat: JsonObject = nested if isinstance(nested, Mapping) else spec
    if not as_text(flat.get("name")):
        raise InvalidRequest(
            "A tool has no name. Every function or custom tool needs one."
        )
    if kind == "function":
        return _function(flat, strict, strict_left)
    if flat is spec:
        return dict(spec)
    return {"type": kind, **flat, **_flat_format(flat)} | {"type": kind}


def _function(function: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    own = function.get("strict")
    wanted = own if isinstance(own, bool) else strict
    parameters = as_mapping(function.get("parameters"))
    tool: Item = {"type": "function", "name": function["name"]}
    if description := as_text(function.get("description")):
        tool["description"] = description
    tool |= {key: function[key] for key in _OF_THE_API if key in function}
    shown, is_strict = function_parameters(parameters, strict_left if wanted else None)
    return {**tool, "parameters": shown, "strict": is_strict}


def _flat_format(custom: JsonObject) -> Item:
    grammar = as_mapping(custom.get("format")).get("grammar")
    if not isinstance(grammar, Mapping):
        return {}
    return {"format": {"type": "grammar", **grammar}}


def tool_identity(tool: JsonObject) -> tuple[str, object]:
    kind = tool.get("type")
    if kind in CALLED_BY_NAME:
        return "name", tool.get("name")
    if kind == "mcp":
        return "server", tool.get("server_label")
    return "type", (kind, tool.get("name")) if kind == "namespace" else kind


def _choice_by_name(choice: str, tools: Sequence[Item], names: ToolNames) -> Item:
    sent = names.sent_name(choice)
    types = {t.get("name"): t["type"] for t in tools if not is_hosted_tool(t)}
    for tool in () if sent in types else tools:
        if choice in (tool.get("type"), tool.get("server_label")):
            return {key: tool[key] for key in ("type", "server_label") if key in tool}
    return {"type": types.get(sent, "function"), "name": sent}


def _tool_choice(choice: JsonObject, names: ToolNames) -> Item:
    kind = choice.get("type", "function")
    inner = choice.get(kind) if isinstance(kind, str) else None
    flat = dict(inner) if isinstance(inner, Mapping) else dict(choice)
    wanted: Item = {**flat, "type": kind}
    if kind in CALLED_BY_NAME:
        if not isinstance(wanted.get("name"), str):
            raise InvalidRequest("The tool choice names no tool.")
        wanted["name"] = names.sent_name(wanted["name"])
    if kind == "allowed_tools":
        chosen = content_parts(wanted.get("tools"))
        wanted["tools"] = [_tool_choice(one, names) for one in chosen]
    return wanted


def _check_offered(chosen: Sequence[Item], tools: Sequence[Item]) -> None:
    offered = {key for tool in tools for key in _choice_keys(tool)}
    for wanted in chosen:
        if _choice_keys(wanted)[0] not in offered:
            raise InvalidRequest(
                f"The tool choice asks for {tool_name(wanted)}, which is no tool here."
            )


def _choice_keys(tool: Item) -> Sequence[tuple[str, str, str]]:
    name = "" if is_hosted_tool(tool) else as_text(tool.get("name"))
    kind, label = as_text(tool.get("type")), as_text(tool.get("server_label"))
    return (kind, label, name), (kind, "", name)


# openai_responses.requests.build

SAMPLING = {"temperature", "top_p", "top_logprobs"}

_MOST_OUTPUT_TOKENS = 128_000

_Positive = Annotated[int, Field(gt=0)]
_ShortText = Annotated[str, Field(max_length=64)]
_LongerText = Annotated[str, Field(max_length=512)]
_Metadata = Annotated[dict[_ShortText, _LongerText], Field(max_length=16)]
_ServiceTier = Literal[
    "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"
]


class ResponsesRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    model: str
    input: SkipValidation[list[Item]]  # it may be very large
    instructions: str | None = None
    stream: bool = True
    store: bool = False
    background: bool | None = None
    include: list[str] | None = None
    reasoning: dict[str, Any] | None = None
    text: dict[str, Any] | None = None
    tools: list[Item] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: _Positive | None = None
    max_tool_calls: _Positive | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    service_tier: _ServiceTier | None = None
    prompt_cache_key: _ShortText | None = None
    prompt_cache_options: dict[str, Any] | None = None
    prompt_cache_retention: Literal["in_memory", "24h"] | None = None
    safety_identifier: Annotated[str, Field(max_length=128)] | None = None
    context_management: list[dict[str, Any]] | None = None
    metadata: _Metadata | None = None
    moderation: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    access_programs: dict[str, Any] | None = None
    repairs: SkipValidation[tuple[Repair, ...]] = ()

    def payload(self) -> dict[str, Any]:
        fields = {k: v for k, v in self if v is not None and k != "repairs"}
        fields["input"] = self.items()
        return repair_payload(fields, self.repairs) if self.repairs else fields

    def items(self) -> list[Item]:
        return fit_calls(self.input, self.tools or ())


_PASSED_ON = {*CALLERS_KEYS, *ADMINISTRATORS_KEYS}


class Settings(NamedTuple):
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    stream: bool = True
    background: bool = False
    encrypted_reasoning: bool = True
    tools: Sequence[Item] = ()
    parallel_tool_calls: bool | None = None
    defaults: JsonObject = MappingProxyType({})


def build_request(
    model: ResolvedModel,
    instructions: str,
    items: Sequence[Item],
    body: JsonObject,
    settings: Settings,
) -> ResponsesRequest:
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    given, facts = read_parameters(body)[0], model.facts
    effort = _effort(model, given, settings)
    resolved = effort or facts.default_effort
    reasons = facts.reasoning or effort is not None
    tools = [tool for tool in settings.tools if _takes_tool(resolved, tool)]
    fields = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream and given.get("enable_stream", True),
        **({"background": True, "store": True} if settings.background else {}),
        "include": _include(tools, reasons and settings.encrypted_reasoning) or None,
        "reasoning": _reasoning(model, effort, given, settings) if reasons else None,
        "text": _text_object(model, given, settings) or None,
        "tools": tools or None,
        "parallel_tool_calls": settings.parallel_tool_calls,
        **settings.defaults,
        **_passed_on(given)[0],
    }
    for name in () if _takes_sampling(facts.sampling, resolved) else SAMPLING:
        fields.pop(name, None)
    if (length := fields.get("max_output_tokens")) is not None:
        most = facts.max_output_tokens or _MOST_OUTPUT_TOKENS
        fields["max_output_tokens"] = clamp_number(length, 16, most, most)
    return ResponsesRequest(**fields)


def _effort(model: ResolvedModel, given: JsonObject, settings: Settings) -> str | None:
    asked = given["reasoning"].get("effort") or settings.effort or model.effort
    if asked == "max" and model.facts.efforts:
        return model.facts.efforts[-1]
    return asked if asked and model.takes_effort(asked) else None


def _passed_on(given: JsonObject) -> tuple[dict[str, Any], list[str]]:
    kept = {key: given[key] for key in given.keys() & _PASSED_ON}
    try:
        ResponsesRequest(model="", input=[], **kept)
    except ValidationError as error:
        wrong = {str(one["loc"][0]): one["msg"] for one in error.errors()}
        kept = {key: value for key, value in kept.items() if key not in wrong}
        return kept, [str(parameter_error(*one)) for one in wrong.items()]
    return kept, []


def _takes_tool(effort: str | None, tool: Item) -> bool:
    return effort != "minimal" or not tool_kind(tool).refused_at_minimal


def _takes_sampling(sampling: str, effort: str | None) -> bool:
    return sampling == "always" or (sampling == "with_none" and effort == "none")


def _include(tools: Sequence[Item], with_reasoning: bool) -> list[str]:
    wanted = ["reasoning.encrypted_content"] if with_reasoning else []
    return wanted + [name for tool in tools if (name := tool_kind(tool).include)]


def _reasoning(
    model: ResolvedModel, effort: str | None, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    facts = model.facts
    thinks = (effort or facts.default_effort) != "none"
    ours = {
        "effort": effort,
        "summary": facts.summary and thinks and settings.summary,
        "context": facts.all_turns and settings.encrypted_reasoning and "all_turns",
        "mode": model.pro and "pro",
    }
    chosen = {name: value for name, value in ours.items() if value}
    own = {k: v for k, v in given["reasoning"].items() if k != "effort"}
    return {**chosen, **own} or None


def _text_object(
    model: ResolvedModel, given: JsonObject, settings: Settings
) -> dict[str, Any]:
    own = dict(given["text"])
    verbosity = own.pop("verbosity", None) or settings.verbosity
    if verbosity and model.facts.verbosity:
        own["verbosity"] = verbosity
    return own


_READ_OTHERWISE = (
    "messages",
    "model",
    "stream",
    "enable_stream",
    "tools",
    "extra_tools",
)

_LONGEST_NAME = 40


def unsent_parameters(
    asked: JsonObject, request: ResponsesRequest
) -> tuple[list[str], list[str]]:
    given, errors = read_parameters(asked)
    sent = lower_payload(request.payload(), APPENDED)
    kept, wrong = _passed_on(given)
    length, most = kept.get("max_output_tokens"), request.max_output_tokens
    if length and str(length) != str(most):
        wrong.append(str(parameter_error("max_output_tokens", f"{most} is sent")))
    names = [
        f"{key}.{inner}"
        for key in ("reasoning", "text")
        for inner in given.pop(key)
        if inner not in sent.get(key, {})
    ]
    names += [key for key in given if key not in sent and key not in _READ_OTHERWISE]
    return sorted(name[:_LONGEST_NAME] for name in names), errors + wrong


_OPENAI_ONLY = (
    *("access_programs", "context_management", "image", "moderation"),
    *("prompt_cache_", "safety_identifier"),
)

_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in payload.items() if not k.startswith(_OPENAI_ONLY)}
    return {**kept, "input": [_strict_item(item) for item in payload["input"]]}


def _strict_item(item: Item) -> Item:
    if item_type(item) == "message" and item.get("role") == "assistant":
        text = message_text(item)
        return {"type": "message", "role": "assistant", "content": text}
    prefix = _ID_PREFIXES.get(item_type(item))
    return {"id": f"{prefix}_{json_digest(item)}", **item} if prefix else item


# openai_responses.requests.replay


class Origin(NamedTuple):
    family: str
    endpoint: str = ""
    account: str = ""

    def can_decrypt(self, maker: Self) -> bool:
        same_server = maker.endpoint in ("", self.endpoint)
        same_account = maker.account in ("", self.account)
        return same_server and same_account and maker.family == self.family

    def wire(self) -> dict[str, str]:
        account = {"account": self.account} if self.account else {}
        return {"family": self.family, "endpoint": self.endpoint, **account}


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    return Origin(family, endpoint.host, endpoint.owner())


def read_origin(wire: object, host_model: str) -> Origin:
    fields = as_mapping(wire)
    if family := fields.get("family"):
        endpoint, account = fields.get("endpoint"), fields.get("account")
        return Origin(str(family), str(endpoint or ""), str(account or ""))
    return Origin(resolve_model(host_model.split(".", 1)[-1]).family)


_REMOTE_SIGN = "mcp"


def is_remote_id(call_id: str) -> bool:
    return call_id.startswith(_REMOTE_SIGN)


def remote_name(item: JsonObject) -> str:
    return ToolNames().sent_name(f"{item.get('server_label')}_{item.get('name')}")


def remote_pair(item: JsonObject, output: str = "") -> list[Item]:
    output = output or _remote_error(item) or str(item.get("output") or "")
    arguments = str(item.get("arguments") or "{}")
    return _call_pair(_remote_call_id(item), remote_name(item), arguments, output)


def refused_pair(request: JsonObject, why: str) -> list[Item]:
    return remote_pair(request, f"Error: {why}")


def _call_pair(call_id: str, name: str, arguments: str, output: str) -> list[Item]:
    call = {"type": "function_call", "call_id": call_id, "name": name}
    return [
        {**call, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def remote_failed(item: JsonObject) -> bool:
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: JsonObject) -> bool:
    return item.get("type") == "mcp_approval_request"


def drop_settled_approvals(items: Sequence[Item]) -> list[Item]:
    refused = {_remote_call_id(item) for item in items if is_approval_request(item)}
    acts = (
        place
        for place, item in enumerate(items)
        if not (is_call_output(item) or _is_response(item))
        and item.get("call_id") not in refused
    )
    last = max(acts, default=-1)
    answers = {
        item.get("approval_request_id"): (place > last, item)
        for place, item in enumerate(items)
        if _is_response(item)
    }
    kept: list[Item] = []
    for item in items:
        is_open, answer = answers.get(_asked_id(item), (False, {}))
        if is_open or _asked_id(item) is None:
            kept.append(item)
        elif is_approval_request(item) and answer.get("approve") is False:
            kept += refused_pair(item, str(answer.get("reason") or ""))
    return kept


def _asked_id(item: JsonObject) -> object:
    if is_approval_request(item):
        return item["id"]
    return item.get("approval_request_id") if _is_response(item) else None


def reorder_remote_outputs(items: Sequence[Item]) -> list[Item]:
    outputs = {
        item["call_id"]: item
        for item in items
        if _is_remote(item, "function_call_output")
    }
    ordered: list[Item] = []
    for item in items:
        if not _is_remote(item, "function_call_output"):
            ordered.append(item)
        if _is_remote(item, "function_call") and item["call_id"] in outputs:
            ordered.append(outputs[item["call_id"]])
    return ordered


def _is_response(item: JsonObject) -> bool:
    return item.get("type") == "mcp_approval_response"


def _is_remote(item: JsonObject, kind: str) -> bool:
    return item_type(item) == kind and is_remote_id(str(item.get("call_id")))


def _remote_call_id(item: JsonObject) -> str:
    own = str(item.get("id") or "")
    return own if is_remote_id(own) else f"{_REMOTE_SIGN}_{own}"


def _remote_error(item: JsonObject) -> str:
    error = item.get("error")
    if not error:
        return ""
    fields = error if isinstance(error, Mapping) else {"message": error}
    content = fields.get("content")
    text = fields.get("message") or content
    if isinstance(content, list):
        text = "\n".join(map(part_text, content_parts(content)))
    return f"Error: {text or 'the server did not say what went wrong.'}"


_NEVER_REPLAYED = ("id", "status", "created_by")
_MADE_HERE = "replayed"


def strip_for_replay(item: Item) -> Item:
    kept = _without(item, _NEVER_REPLAYED)
    if kind_of(item).tool:
        return {**kept, **_required_fields(item)} if is_host_returned(item) else kept
    if is_encrypted(item) and kept.get("content"):
        return _without(kept, ("content",))  # refused beside what is encrypted
    if isinstance(kept.get("content"), list) and item_type(item) == "message":
        parts = content_parts(kept["content"])
        kept = {**kept, "content": [_without(one, ("logprobs",)) for one in parts]}
    return kept


def _without(fields: Item, names: Sequence[str]) -> Item:
    if fields.keys().isdisjoint(names) and None not in fields.values():
        return fields
    return {k: v for k, v in fields.items() if k not in names and v is not None}


def replay_items(item: Item) -> list[Item]:
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    if has_plain_reasoning(item):  # its server wants it as it was
        return [{key: value for key, value in item.items() if value not in (None, "")}]
    return [image_message(item) if has_image(item) else strip_for_replay(item)]


_MOST_OF_CODE = 20_000
_CODE_IS_GONE = "[The container of this code is gone, with its files.]"


CHANGED_LATER = {"code_interpreter_call", "image_generation_call"}


def past_items(item: Item) -> list[Item]:
    if has_image(item):
        return [image_message(item)]
    if not is_code(item):
        return [item]
    code = as_text(item.get("code"))
    call_id = _new_id(as_text(item.get("id")) or f"ci_{code}")
    arguments = json.dumps({"code": code[:_MOST_OF_CODE]})
    text = f"{code_output(item)[:_MOST_OF_CODE]}\n{_CODE_IS_GONE}"
    return _call_pair(call_id, "code_interpreter", arguments, text)


def replay_output(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    returned = (item for item in output if _goes_back(item, with_reasoning))
    return [one for item in returned for one in replay_items(item)]


def _goes_back(item: Item, with_reasoning: bool) -> bool:
    if is_reasoning(item):
        return with_reasoning and (
            has_encrypted_reasoning(item) or has_plain_reasoning(item)
        )
    return not is_hosted(item) or is_host_returned(item) or has_image(item)


def _required_fields(item: Item) -> Item:
    kind = kind_of(item)
    fields = {key: item.get(key) for key in kind.nullable}
    fields |= {key: item[key] for key in ("id", "status") if item.get(key)}
    if fields.get("outputs"):  # pictures are large and only people need them
        parts = content_parts(fields["outputs"])
        fields["outputs"] = [p for p in parts if p.get("type") != "image"]
    if kind.tool == "web_search":
        action = item["action"].items()
        fields["action"] = {k: v for k, v in action if k != "sources" and v is not None}
    if "id" in fields and kind.returned == "always":
        fields["id"] = _new_id(str(item["id"]))
    return fields


def _new_id(own: str) -> str:
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    return f"{prefix[:8]}_{_MADE_HERE}{hex_digest(own)[:40]}"


# openai_responses.models.choice

_VERSIONED_ID = re.compile(r"gpt-(\d+(?:\.\d+)?)(?:-([a-z]+))?$")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
    r"|^(?:text-|whisper|dall-e|davinci|babbage|sora|omni-)"
)
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})


def read_models(answer: object) -> dict[str, str]:
    rows = map(as_mapping, as_list(as_mapping(answer).get("data")))
    days = {as_text(r.get("id")): as_text(r.get("shutdown_date"))[:10] for r in rows}
    return {
        name: day if _date(day) else ""
        for name, day in days.items()
        if name in CATALOG_FACTS or (name and not _NO_CHAT.search(name))
    }


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    known = CATALOG_FACTS if usable is None else usable
    newest: dict[str, re.Match[str]] = {}
    for found in sorted(filter(None, map(_VERSIONED_ID.match, known)), key=_version):
        if _is_offered(found, today):
            newest[found[2]] = found
    return [one[0] for one in sorted(newest.values(), key=_version, reverse=True)]


def _is_offered(found: re.Match[str], today: str) -> bool:
    facts = CATALOG_FACTS.get(found[0])
    if facts and (facts.successor or (facts.shutdown or "9") <= today):
        return False
    return found[2] not in _CLOSED_CIRCLES


def _version(found: re.Match[str]) -> tuple[tuple[int, ...], str]:
    return tuple(map(int, found[1].split("."))), found[0]


_NOTICE_DAYS = 30


def retirement_notice(
    model: ResolvedModel, today: date, answering: ResolvedModel | None = None
) -> str:
    ending = _date(model.facts.shutdown)
    if ending is None or today < ending - timedelta(days=_NOTICE_DAYS):
        return ""
    when = "is switched off on" if today < ending else "was switched off on"
    sentence = f"{model.name} {when} {ending.isoformat()}."
    if answering and answering.id != model.id:
        return f"{sentence} {answering.name} answers instead."
    if successor := model.facts.successor:
        sentence += f" Use {resolve_model(successor).name} instead."
    return sentence


def replacement(model: ResolvedModel, today: date) -> ResolvedModel | None:
    ending = _date(model.facts.shutdown)
    found = resolve_model(model.facts.successor or "")
    return found if found.pro and ending and ending <= today else None


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


_AUTO_MODELS = {"gpt-5-auto": ("gpt-6.1-terra", "gpt-6.1-sol")}

_LONG_QUESTION = 600
_ATTACHED = ("input_file", "input_image")


def choose_auto_model(
    name: str, first: JsonObject | None, tools: bool, earlier: Collection[str]
) -> tuple[str, str] | None:
    if name not in _AUTO_MODELS:
        return None
    small, large = _AUTO_MODELS[name]
    for model in (small, large):
        if model in earlier:
            return model, "it began this chat"
    if reason := _reason_for_large(first, tools):
        return large, reason
    return small, "the question is short, without files or tools"


def _reason_for_large(first: JsonObject | None, tools: bool) -> str:
    if first is None:
        return "there is no question to judge by"
    parts: list[Item] = content_parts(first.get("content"))
    text = "".join(map(part_text, parts))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    if "```" in text:
        return "the question holds code"
    return "the question is long" if len(text) > _LONG_QUESTION else ""


# openai_responses.loop.recovery

_RETRIED_STATUS = frozenset({408, 409, 429})
_RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "server_error", "server_is_overloaded", "slow_down"}
)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0


class RetryPolicy(NamedTuple):
    max_retries: int = 2
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    if attempt >= policy.max_retries or not _is_retried(failure):
        return None
    backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (1 - 0.25 * jitter)
    wait = backoff if failure.retry_after is None else failure.retry_after
    return wait if wait <= policy.max_wait else None


def _is_retried(failure: Failure) -> bool:
    words = {failure.error.code, failure.error.type}
    suffixes = ("_spend_limit_exceeded", "_usage_limit_exceeded")
    if words & NO_CREDIT_CODES or (failure.error.code or "").endswith(suffixes):
        return False
    if failure.should_retry is not None:
        return failure.should_retry
    if failure.status in (None, 200):
        is_nameless = words == {None} and not failure.error.place
        return is_nameless or bool(words & _RETRIED_CODES)
    return failure.status in _RETRIED_STATUS or failure.status >= 500


_MOST_REPAIRS = 3
_OTHER_CAUSES = frozenset({*range(300, 400), 401, 402, 403, 407, 408, 413, 429})
_LASTING_CODES = (
    _RETRIED_CODES | SENTENCES["failed"].keys() | SENTENCES["refused"].keys()
) - {*PICTURE_CODES, "invalid_encrypted_content", "404"}
_UNREAD = "invalid_encrypted_content"
_UNREADABLE = re.compile(
    r"provided without its required"
    r"|Items are not persisted when"
    r"|encrypted content .{0,400} could not be verified"
    r"|reasoning input items can only be provided",
    re.IGNORECASE | re.DOTALL,
)
_UNKNOWN = re.compile(
    r"unknown[ _](parameter|field|argument|key)|unrecogni[sz]ed|unexpected (field|key)"
    r"|extra_?(forbidden| inputs are not permitted| fields not permitted)"
    r"|additional properties",
    re.IGNORECASE,
)
_INNER_TOOL = re.compile(r"\.tools\[(\d{1,6})\]")
_NO_NAMESPACE = re.compile(r"namespace for function_call '([\w.-]{1,64})'")
_NAMED_ID = re.compile(r"\b(?:rs|msg|fc|ctc|call|ci|ws|fs|ig|mcp\w?|cmp)_[\w-]{4,128}")
_QUOTED = re.compile(r"[\"'`]([\w.-]{1,64})[\"'`]")
_NOT_REPAIRED = ("model", "input", "background", "instructions", "tools", "text.format")

_REPAIRED = {
    "reasoning": "The server could not read earlier reasoning of this chat: answering "
    "without it.",
    "reasoning_text": "The server does not take its reasoning back: answering without.",
    "kind": "Earlier runs of code are no longer there: answering without them.",
    "plain": "The server refused this chat as it was: only its texts and tool results "
    "were sent.",
}
_NO_PICTURE = "A picture or file could not be sent to the model and was left out."


class _Refusal(NamedTuple):
    payload: Mapping[str, Any]
    rows: list[tuple[str, Item]]
    error: ApiError
    done: Sequence[Repair]

    @property
    def last(self) -> str:
        return self.rows[-1][0] if self.rows else ""

    @property
    def tools(self) -> Iterator[Item]:
        return all_tools(declared_tools(self.payload))

    @property
    def is_unknown(self) -> bool:
        code, words = self.error.code or "", self.error.message
        return code == "unknown_parameter" or bool(_UNKNOWN.search(words))


def find_repair(
    request: ResponsesRequest, failure: Failure, done: int = 0
) -> Status | None:
    error, repairs = failure.error, request.repairs
    if failure.status in _OTHER_CAUSES or {error.code, error.type} & _LASTING_CODES:
        return None
    rows = repair_items(request.items(), repairs)
    refusal = _Refusal(request.payload(), rows, error, repairs)
    if done < _MOST_REPAIRS and (found := _best(refusal, _repairs(refusal))):
        return found
    is_lost = failure.status == 404 and not error.place
    if failure.status is None or is_lost or _is_retried(failure):
        return None
    plain = Repair("plain", refusal.last)
    changed = repair_items(request.items(), [*repairs, plain])
    sent = [[item for _, item in some] for some in (changed, rows)]
    return _told(plain) if changed and sent[0] != sent[1] else None


def last_repair(request: ResponsesRequest, failure: Failure) -> Status | None:
    if failure.error.code != "server_error" and (failure.status or 0) < 500:
        return None
    refusal = _Refusal(request.payload(), [], failure.error, request.repairs)
    found = _best(refusal, map(_tool, _searches(refusal)))
    return found._replace(is_lasting=False) if found else None


def _best(refusal: _Refusal, repairs: Iterable[Status]) -> Status | None:
    given_up = {(one.target, one.value) for one in refusal.done if one.value}
    for found in repairs:
        repair = found.repair or Repair("", "")
        if repair not in refusal.done and (repair.target, repair.new) not in given_up:
            return found
    return None


def _told(repair: Repair) -> Status:
    return Status(_REPAIRED[repair.action], repair)


def _repairs(refusal: _Refusal) -> Iterator[Status]:
    first = [_plain_reasoning] if "reasoning" in refusal.error.text.lower() else []
    for find in (*first, *_FINDERS):
        yield from find(refusal)


def _plain_reasoning(refusal: _Refusal) -> Iterator[Status]:
    if any(has_plain_reasoning(sent) for _, sent in refusal.rows):
        yield _told(Repair("reasoning_text", ""))


def _by_words(refusal: _Refusal) -> Iterator[Status]:
    words, kinds = refusal.error.message, {item_type(sent) for _, sent in refusal.rows}
    if refusal.error.code == _UNREAD:
        yield from _unread_reasoning(refusal)
    if "code_interpreter_call" in kinds and "container" in words.lower():
        yield _told(Repair("kind", f"code_interpreter_call@{refusal.last}"))
    if call := _NO_NAMESPACE.search(words):
        sentence = f"Earlier calls of {call[1]} were sent as plain text."
        kind = f"function_call:{call[1]}@{refusal.last}"
        yield Status(sentence, Repair("kind", kind))
    refused = words.partition("upported values")[0]
    yield from (_lower(kind) for kind in APPENDED & kinds if kind in refused)
    if "not found in 'tools'" in words:
        yield _lower(ADDED_TOOLS)
    if "must be verified to stream" in words.lower() and refusal.payload.get("stream"):
        yield _parameter(refusal, "stream")


def _lower(kind: str) -> Status:
    return Status(_refused_sentence(kind), Repair("lower", kind), is_named=True)


def _refused_sentence(refused: str) -> str:
    return f"The model's server does not take {refused}: answering without it."


def _unread_reasoning(refusal: _Refusal) -> Iterator[Status]:
    is_told = refusal.error.code == _UNREAD or _UNREADABLE.search(refusal.error.message)
    if is_told and any(is_encrypted(sent) for _, sent in refusal.rows):
        yield _told(Repair("reasoning", refusal.last))


def _newest_media(refusal: _Refusal) -> Iterator[Status]:
    if refusal.error.code in PICTURE_CODES:
        places = [n for n, (_, one) in enumerate(refusal.rows) if has_media(one)]
        for newest in places[-1:]:
            yield from _item(refusal, newest)


def _find_place(
    payload: Mapping[str, Any], error: ApiError
) -> tuple[str, int, str, Item] | None:
    found = error.place
    rows = payload.get(found[1]) or () if found else ()
    if found is None or int(found[2]) >= len(rows):
        return None
    return found[1], int(found[2]), found[3], rows[int(found[2])]


def named_place(request: ResponsesRequest, error: ApiError) -> str:
    found = error.place and _find_place(request.payload(), error)
    if not found:
        return ""
    where, number, _, named = found
    return f"{where}[{number}] ({tool_name({'type': item_type(named), **named})}):"


def _by_place(refusal: _Refusal) -> Iterator[Status]:
    found = _find_place(refusal.payload, refusal.error)
    if found is None:
        return
    where, number, path, named = found
    keys = re.findall(r"[a-z_]+", path)
    is_named = bool(refusal.error.param)
    if inner := _INNER_TOOL.match(path):
        tools = content_parts(named.get("tools"))[int(inner[1]) :]
        yield from (_tool(tool)._replace(is_named=is_named) for tool in tools[:1])
    elif item_type(named) == "namespace":
        yield from map(_tool, _searches(refusal))
    if refusal.is_unknown and keys:
        target = f"{where}:{'.'.join([item_type(named), *keys])}"
        yield Status(
            _refused_sentence(keys[-1]), Repair("field", target), is_named=is_named
        )
    elif where == "tools":
        yield _tool(named)._replace(is_named=is_named)
    else:
        yield from _item(refusal, number)


def _by_id(refusal: _Refusal) -> Iterator[Status]:
    named = set(_NAMED_ID.findall(refusal.error.message))
    for number, (_, item) in enumerate(refusal.rows):
        if named and named & {item.get("id"), item.get("call_id")}:
            yield from _item(refusal, number)


def _item(refusal: _Refusal, number: int) -> Iterator[Status]:
    target, sent = refusal.rows[number]
    if (kind := item_type(sent)) in APPENDED:
        yield _lower(kind)
        return
    if has_plain_reasoning(sent):
        yield _told(Repair("reasoning_text", ""))
        return
    noun = kind.replace("_", " ")
    as_text = f"One earlier {noun} was sent as plain text."
    if has_media(sent):
        yield Status(_NO_PICTURE, Repair("text", target))
    elif kind == "message" and plain_item(sent) != sent:
        yield Status(as_text, Repair("text", target))
    if is_hosted(sent) and any(one.action == "item" for one in refusal.done):
        words = f"Earlier items of the kind {noun} were left out."
        yield Status(words, Repair("kind", f"{kind}@{refusal.last}"))
    if is_paired(sent):
        yield Status(as_text, Repair("item", target))
    elif sent.get("role", "assistant") == "assistant":
        words = f"One earlier {noun} could not be sent again and was left out."
        yield Status(words, Repair("item", target))


def _by_parameter(refusal: _Refusal) -> Iterator[Status]:
    if refusal.error.param in _parameter_paths(refusal):
        yield _parameter(refusal, refusal.error.param)


def _parameter_paths(refusal: _Refusal) -> list[str]:
    payload = refusal.payload
    inner = [
        f"{key}.{k}" for key in ("reasoning", "text") for k in payload.get(key, ())
    ]
    kept = {*_NOT_REPAIRED, "text" if "text.format" in inner else ""}
    kept.add("" if refusal.is_unknown else "store")
    return [path for path in (*inner, *payload) if path not in kept]


def _by_parameter_name(refusal: _Refusal) -> Iterator[Status]:
    words = refusal.error.message
    quoted = {*_QUOTED.findall(words)}
    found = quoted | {*re.findall(r"\b[a-z]+(?:[._][a-z]+)+\b", words)}
    for path in _parameter_paths(refusal):
        if path in found or path.rpartition(".")[2] in quoted:
            yield _parameter(refusal, path)


def _parameter(refusal: _Refusal, path: str) -> Status:
    now = parameter_at(refusal.payload, path.split("."))
    value = "" if refusal.is_unknown else json.dumps(now)
    new, sentence = "", _refused_sentence(path)
    if path == "reasoning.effort" and (nearest := _nearest_effort(now, refusal.error)):
        new = json.dumps(nearest)
        sentence = f"The model does not have this effort: answering with {nearest}."
    elif path == "stream":
        sentence = "The model may not stream here: the answer comes in one piece."
    repair = Repair("parameter", path, value, new)
    return Status(sentence, repair, is_named=refusal.error.param == path)


def _nearest_effort(asked: object, error: ApiError) -> str | None:
    quoted = {*_QUOTED.findall(error.message)} - {asked}
    named = [effort for effort in REASONING_EFFORTS if effort in quoted]
    if asked not in REASONING_EFFORTS or not named:
        return None
    place = REASONING_EFFORTS.index
    return min(named, key=lambda effort: abs(place(effort) - place(asked)))


def _by_tool_name(refusal: _Refusal) -> Iterator[Status]:
    error = refusal.error
    words = {*_QUOTED.findall(error.message)}
    if error.code == "invalid_value":
        words.add(str(error.type).removesuffix("_user_error"))
    for tool in refusal.tools:
        if tool_name(tool) in words:
            is_down = "retrieving tool list" in error.message
            yield _tool(tool)._replace(is_lasting=not is_down)


def _searches(refusal: _Refusal) -> Iterator[Item]:
    return (t for t in refusal.tools if t.get("type") == "tool_search")


def _tool(tool: Item) -> Status:
    sentence = _refused_sentence(f"the tool {tool_name(tool)}")
    return Status(sentence, Repair("tool", json_digest(tool)))


_FINDERS = (
    *(_by_words, _by_place, _newest_media, _by_id, _unread_reasoning),
    *(_by_parameter, _by_tool_name, _by_parameter_name, _plain_reasoning),
)


# openai_responses.loop.response


class ResponseState:
    def __init__(self, first_index: int = 0) -> None:
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        self._items: list[Item] = []
        self._ids: dict[str, int] = {}
        self._latest: dict[int, int] = {}
        self._early: dict[str | int, list[TextDelta]] = {}
        self._open: dict[int, dict[TextPlace, list[str]]] = {}
        self._growing = _NO_TEXT
        self._ended: dict[int, Item] = {}

    @property
    def output(self) -> list[Item]:
        return [self._ended[index] for index in sorted(self._ended)]

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        self.event_count += 1
        return [] if self.ending else self._take(event)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta():
                return self._grow(event) if event.text else []
            case AnnotationAdded() | PartialImage():
                place = self._find(event.output_index, [event.item_id], bool)
                if place in self._open:
                    at = self._first + place
                    return [event._replace(output_index=at, item_id="")]
            case ItemAdded(index, item):
                if not _lacks_call_id(item) and self._find_item(index, item) is None:
                    return self._start(index, item, _ids(item))
            case ItemDone(index, item):
                return self._end(self._find_item(index, item), index, item)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self.trace = self.trace._replace(error=event.error)
                self.ending = ending_of_failure("error", event.error)
                self.refusal = event.error
        return []

    def _find(
        self, index: int, ids: Sequence[str], fits: Callable[[Item], bool]
    ) -> int | None:
        for one in ids:
            place = self._ids.get(one)
            if place is not None and fits(self._items[place]):
                return place
        place = self._latest.get(index)
        if place is None or not fits(self._items[place]):
            return None
        return place if place in self._open or not any(ids) else None

    def _find_item(self, index: int, item: Item) -> int | None:
        kind, call_id = item_type(item), as_text(item.get("call_id"))

        def fits(known: Item) -> bool:
            calls = {call_id, as_text(known.get("call_id")), ""}
            return item_type(known) == kind and len(calls) < 3

        place = self._find(index, _ids(item), fits)
        if place not in self._ended or index == _NOWHERE:
            return place
        return place if item.get("id") in (None, self._ended[place].get("id")) else None

    def _start(self, index: int, item: Item, ids: Sequence[str]) -> list[RunEvent]:
        place = len(self._items)
        self._growing = _NO_TEXT
        self._items.append(item)
        self._open[place] = {}
        self._ids.update(dict.fromkeys(ids, place))
        self._latest[index] = place
        events: list[RunEvent] = [ItemAdded(self._first + place, item)]
        names: list[str | int] = [*ids, index]
        for name in names:
            for early in self._early.pop(name, ()):
                if _can_grow(item, early.kind):
                    events += self._grow(early)
        return events

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        index, kind, item_id = event.output_index, event.kind, event.item_id
        text, place = self._growing
        events: list[RunEvent] = []
        if text != (index, kind, item_id):
            place = self._find(index, [item_id], lambda item: _can_grow(item, kind))
        if place is None:
            if kind not in _OPENED_BY:
                self._early.setdefault(item_id or index, []).append(event)
                return []
            place = len(self._items)
            item = {**_OPENED_BY[kind], "id": item_id or f"item_{place}"}
            events = self._start(index, item, [item_id])
        if place not in self._open:
            return events
        self._growing = (index, kind, item_id), place
        text_place = kind, event.part
        if isinstance(event, TextDone):
            return events + self._show_rest(place, text_place, event.text)
        self._open[place].setdefault(text_place, []).append(event.text)
        return [*events, TextDelta(self._first + place, *text_place, event.text)]

    def _end(self, place: int | None, index: int, item: Item) -> list[RunEvent]:
        if place in self._ended:
            return []
        if _lacks_call_id(item):
            item = {**item, "call_id": f"call_{new_ulid()}"}
        fields = item.items()  # ids are looked up, which an object cannot be
        item = {k: v for k, v in fields if as_text(v) or v is None or k[-2:] != "id"}
        events: list[RunEvent] = []
        if place is None:
            place = len(self._items)
            events = self._start(index, item, _ids(item))
        self._ids.update(dict.fromkeys(_ids(item), place))
        for text_place, text in item_texts(item):
            events += self._show_rest(place, text_place, text)
        del self._open[place]
        self._growing = _NO_TEXT
        self._ended[place] = item
        return [*events, ItemDone(self._first + place, item)]

    def _show_rest(
        self, place: int, text_place: TextPlace, text: str
    ) -> list[RunEvent]:
        texts = self._open[place]
        shown = "".join(texts.get(text_place, ()))
        texts[text_place] = [text]
        if len(text) <= len(shown) or not text.startswith(shown):
            return []
        return [TextDelta(self._first + place, *text_place, text[len(shown) :])]

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        response = event.response
        self.usage = read_usage(response.get("usage"), response.get("service_tier"))
        error = read_api_error(response.get("error"))
        self.ending = _ending_of(event.status, response, error)
        self.refusal = error if event.status == "failed" else None
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            error=error,
            removed=_removals(response.get("input_transformations")),
            response_id=as_text(response.get("id")),
            cache=as_mapping(response.get("prompt_cache_diagnostics")),
        )
        events: list[RunEvent] = []
        for place, item in self._match(content_parts(response.get("output"))):
            events += self._end(place, _NOWHERE, item)
        return [*events, ResponseDone(event.status)]

    def _match(self, items: Sequence[Item]) -> Iterator[tuple[int | None, Item]]:
        places = [self._find_item(_NOWHERE, item) for item in items]
        taken, left = set(places), dict[str, list[int]]()
        for place, known in reversed([*enumerate(self._items)]):
            if place not in taken:
                left.setdefault(item_type(known), []).append(place)
        for found, item in zip(places, items, strict=True):
            others = left.get(item_type(item))
            yield others.pop() if found is None and others else found, item


_NO_TEXT: tuple[object, int | None] = (None, None)
_NOWHERE = -2

_EMPTY_MESSAGE: Item = {"type": "message", "role": "assistant", "content": []}
_OPENED_BY = {
    "text": _EMPTY_MESSAGE,
    "refusal": _EMPTY_MESSAGE,
    "summary": NO_THOUGHT,
    "reasoning": NO_THOUGHT,
}


def _can_grow(item: Item, kind: str) -> bool:
    if kind in _OPENED_BY:
        return item_type(item) == item_type(_OPENED_BY[kind])
    return (kind_of(item).text or ("", ""))[0] == kind


def _ids(item: Item) -> list[str]:
    return list(filter(None, (as_text(item.get(key)) for key in ("id", "call_id"))))


def _lacks_call_id(item: Item) -> bool:
    return is_call(item) and not as_text(item.get("call_id"))


def _removals(transformations: object) -> Mapping[str, int]:
    return Counter(
        api_word(str(row.get("reason"))) or "unknown"
        for row in content_parts(transformations)
        if row.get("action") == "removed"
    )


def _ending_of(status: str, response: JsonObject, error: ApiError) -> Ending:
    if status == "failed":
        return ending_of_failure("failed", error)
    details = as_mapping(response.get("incomplete_details"))
    reasons = {"incomplete": as_text(details.get("reason")), "cancelled": status}
    return ending_of_incomplete(reasons[status]) if status in reasons else COMPLETED


# openai_responses.loop.attempts

_THOUGHT_SHARE = 0.02


class Limits(NamedTuple):
    join_seconds: float = 0.05
    timeouts: Timeouts = Timeouts()
    retries: RetryPolicy = RetryPolicy()
    resuming: RetryPolicy = RetryPolicy(12)
    poll_seconds: float = 5.0
    most_bytes: int = MAX_ANSWER_BYTES
    heard: Callable[[bool], object] = bool
    spent: Callable[[Sequence[Usage], Sequence[Item]], str] = lambda *_: ""


class Attempts:
    def __init__(
        self, endpoint: Endpoint, connections: Connections, limits: Limits
    ) -> None:
        self.endpoint = endpoint
        self.connections = connections
        self.limits = limits
        self.deadlines = Deadlines(limits.timeouts, limits.heard)
        self.usages: list[Usage] = []

    async def events(
        self, request: ResponsesRequest, first_index: int = 0
    ) -> RunEvents:
        self.request = request
        self._retries = self._repaired = 0
        self._thought: ItemAdded | None = None
        while True:
            self.response = ResponseState(first_index)
            self.error: ResponsesError | None = None
            self.has_shown = self._thinks = False
            held: list[RunEvent] = []
            answer = self._send(self.request)
            try:
                async with aclosing(answer) as events:
                    async for event in events:
                        for shown in self._visible(event, held):
                            yield shown
            except ResponsesError as caught:
                self.error = caught
            if self.response.usage:
                self.usages.append(self.response.usage)
            note, wait = self._next()
            if note is None or not self.deadlines.allow(wait):
                break
            yield note
            self.limits.heard(False)
            await asyncio.sleep(wait)
        if not self.has_shown:
            for event in (*self._end_thought(), *held):
                yield event

    def _visible(self, event: RunEvent, held: list[RunEvent]) -> list[RunEvent]:
        if self.has_shown or isinstance(event, Status):
            return [event]
        if isinstance(event, ItemAdded) and is_reasoning(event.item) and not held:
            is_first = self._thought is None
            self._thought = thought = self._thought or event
            if thought.output_index == event.output_index:
                self._thinks = True
                return [event] if is_first else []
        held.append(event)
        if not _is_visible(event):
            return []
        self.has_shown = True
        shown, held[:] = [*self._end_thought(), *held], []
        return shown

    def _end_thought(self) -> list[RunEvent]:
        thought = None if self._thinks else self._thought
        return [ItemDone(thought.output_index, NO_THOUGHT)] if thought else []

    def count_bytes(self, chunk: bytes) -> None:
        self.response.byte_count += json_weight(chunk)
        if self.response.byte_count > self.limits.most_bytes:
            raise AnswerTooLarge

    @property
    def ending(self) -> Ending:
        ending, has_begun = self.response.ending, self.response.event_count > 0
        if not ending:
            ending = CUT if has_begun else UNREADABLE
            if self.error:
                ending = ending_of_exception(self.error, has_begun)
        sentence = ending.sentence.replace(ASKED_MODEL, self.request.model)
        return ending._replace(sentence=self.endpoint.name_server(sentence))

    @property
    def trace(self) -> Trace:
        error, trace = self.error, self.response.trace
        if isinstance(error, ApiRefused):
            trace = Trace(error.request_id, "", error.failure.status, error.error)
        return trace._replace(subject=named_place(self.request, trace.error))

    def _send(self, request: ResponsesRequest) -> RunEvents:
        payload = request.payload()
        if self.endpoint.strict:
            payload = strict_payload(payload)
        if request.background:
            return _Background(self).events(payload)
        return _stream_response("/responses", payload, self)

    def _next(self) -> tuple[Status | None, float]:
        failure = _retriable_failure(self.error, self.response)
        is_open = self.request.background and not self.response.refusal
        if self.has_shown or not failure or (is_open and _may_run(self.error)):
            return None, 0.0
        limits, fraction = self.limits.retries, random_fraction()
        wait = retry_wait(limits, self._retries, failure, fraction)
        found = find_repair(self.request, failure, self._repaired)
        if not found and wait is None:
            found = last_repair(self.request, failure)
        if found and found.repair:
            place = named_place(self.request, failure.error)
            self._repaired += 1
            repairs = (*self.request.repairs, found.repair)
            self.request = self.request.model_copy(update={"repairs": repairs})
            reason = f"{place} {failure.error.message}".strip()
            return found._replace(reason=reason), 0.0
        if wait is None:
            return None, 0.0
        self._retries += 1
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        return Status(f"{failure_status(failure)} Trying again in {seconds}."), wait


_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
_LONGEST_WAIT_FOR_ID = 60.0
_BROKE = "The connection to the model was lost: fetching the rest of the answer."


class _Background:
    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        loop = asyncio.get_running_loop()
        self._named: asyncio.Future[str] = loop.create_future()
        self._last = self._seen = -1
        self._failures = 0
        self._resumable = True
        self._asks = self._is_left = False

    def is_new(self, event: ServerSentEvent) -> bool:
        wire = {} if event.data == "[DONE]" else json.loads(event.data)
        self.note(wire.get("response"))
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        before, self._last = self._last, max(self._last, number)
        return number > before

    def note(self, response: object) -> None:
        response_id = as_text(as_mapping(response).get("id"))
        if _ID.fullmatch(response_id) and not self._named.done():
            self._named.set_result(response_id)

    async def events(self, payload: dict[str, Any] | None) -> RunEvents:
        path = "/responses"
        try:
            while True:
                error: ResponsesError | None = None
                part = _stream_response(path, payload, self._attempts, self)
                try:
                    first = await self._first_event(part)
                    async with aclosing(part) as events:
                        if first is not None:
                            yield first
                        async for event in events:
                            yield event
                except ResponsesError as caught:
                    error = caught
                ending = self._attempts.response.ending
                if ending or not self._named.done() or (error and error.is_final):
                    if error and not ending:
                        raise error
                    break
                has_news, self._seen = self._last != self._seen, self._last
                wait = self._wait_after(error, has_news)
                if not self._attempts.deadlines.allow(wait):
                    raise TimedOut("total_timeout")
                if has_news:
                    yield Status(_BROKE)
                await asyncio.sleep(wait)
                path, payload = f"/responses/{self._named.result()}", None
                if not self._asks:
                    path += f"?stream=true&starting_after={self._last}"
        finally:
            self._abandon()

    async def _first_event(self, part: RunEvents) -> RunEvent | None:
        if self._named.done():
            return await anext(part, None)
        first = asyncio.ensure_future(anext(part, None))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self._attempts.connections.do_later(self._close(part, first))
            raise

    async def _close(self, part: RunEvents, first: asyncio.Future[Any]) -> None:
        await asyncio.wait(
            {first, self._named},
            timeout=_LONGEST_WAIT_FOR_ID,
            return_when=asyncio.FIRST_COMPLETED,
        )
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await part.aclose()
        self._abandon()

    def _wait_after(self, error: ResponsesError | None, has_news: bool) -> float:
        asked, limits = self._asks, self._attempts.limits
        if asked and error is None:
            self._failures, self._asks = 0, not self._can_resume
            return limits.poll_seconds
        self._failures = 0 if has_news else self._failures + 1
        failure = (error.failure if error and error.status else None) or Failure()
        wait = retry_wait(limits.resuming, self._failures, failure, random_fraction())
        if wait is None and self._resumable and not asked:
            self._resumable, wait = False, 0.0
        self._asks = not (has_news and self._can_resume)
        if wait is None:
            self._is_left = bool(error and error.status == 404)
            raise ResponseLost
        return wait

    @property
    def _can_resume(self) -> bool:
        return self._resumable and self._last >= 0

    def _abandon(self) -> None:
        attempts = self._attempts
        is_over = attempts.response.ending or self._is_left
        if self._named.done() and not is_over:
            self._is_left = True
            path = f"/responses/{self._named.result()}/cancel"
            later = attempts.connections
            later.do_later(later.post_quietly(attempts.endpoint, path))


async def _stream_response(
    path: str,
    payload: dict[str, Any] | None,
    attempts: Attempts,
    background: _Background | None = None,
) -> RunEvents:
    state, deadlines = attempts.response, attempts.deadlines
    deadlines.start_attempt()
    async with attempts.connections.request(
        attempts.endpoint, path, payload, deadlines
    ) as answer:
        state.trace = Trace(answer.request_id, status=200)
        if not answer.is_stream:
            response = await answer.response_object()
            if background is not None:
                background.note(response)
            status = str(response.get("status") or "completed")
            if status not in ("queued", "in_progress"):
                for event in state.feed(FinalResponse(status, response)):
                    yield event
            return
        decoder = EventStreamDecoder()
        while not (answer.is_read or state.ending):
            chunk = await answer.read_any()
            attempts.count_bytes(chunk)
            began = asyncio.get_running_loop().time()
            batch = decoder.feed(chunk) if chunk else decoder.close()
            if batch:
                deadlines.event_arrived()
            events, malformed = _batch_events(batch, state, background)
            del batch, chunk
            for event in events:
                yield event
            if malformed:
                raise malformed
            if events and isinstance(last := events[-1], TextDelta):
                with answer.paused():
                    await _gather_deltas(last, began, attempts.limits.join_seconds)
        await answer.drain()


def _batch_events(
    batch: list[ServerSentEvent], state: ResponseState, background: _Background | None
) -> tuple[list[RunEvent], MalformedEvent | None]:
    read: list[StreamEvent] = []
    malformed: MalformedEvent | None = None
    try:
        for event in batch:
            parsed = parse_event(event)
            if background is None or background.is_new(event):
                read.append(parsed)
    except MalformedEvent as error:
        malformed = error
    return [out for event in join_deltas(read) for out in state.feed(event)], malformed


async def _gather_deltas(last: TextDelta, began: float, join_seconds: float) -> None:
    share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
    spent = asyncio.get_running_loop().time() - began
    await asyncio.sleep(max(0.0, join_seconds * share - spent))


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})


def _retriable_failure(
    error: ResponsesError | None, state: ResponseState
) -> Failure | None:
    if state.refusal:
        return Failure(200, state.refusal)
    if error or state.ending:
        return error.failure if error else None
    return Failure() if state.event_count else MalformedEvent.failure


def _is_visible(event: RunEvent) -> bool:
    if not isinstance(event, ItemAdded | ItemDone):
        return not isinstance(event, ResponseDone)
    return has_text(event.item) or item_type(event.item) not in ("message", "reasoning")


def _may_run(error: ResponsesError | None) -> bool:
    if error is None or error.was_sent:
        return True
    asks_again = error.failure and error.failure.should_retry
    return error.status in _GATEWAY_STATUS and not asks_again


# openai_responses.loop.arguments

_DEEPEST_ARGUMENT = 40
_MOST_WORK = 200_000
_STEP = 20
_READ_KEYWORDS = ("properties", "required", "enum", "type", "allOf", "anyOf", "oneOf")


_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": is_json_number,
    "integer": lambda value: is_json_number(value) and value == int(value),
}


class _SchemaCheck(NamedTuple):
    root: JsonObject
    budget: JsonBudget
    found: dict[tuple[str, int, int], str]
    lenient: bool = False

    def pay_for(self, value: Any, node: JsonObject, path: str = "") -> None:
        parts = (node.get(key) for key in _READ_KEYWORDS)
        size = _STEP + len(path)
        size += sum(len(part) for part in parts if isinstance(part, list | dict))
        if isinstance(value, list | dict):
            is_compared = "enum" in node or "const" in node
            size += len(value)
            size *= json_size(value, self.budget.left) if is_compared else 1
        self.budget.spend(size)

    def error(self, value: Any, node: Any, path: str = "", depth: int = 0) -> str:
        if not isinstance(node, Mapping) or depth > _DEEPEST_ARGUMENT:
            return ""
        place = (path, id(value), id(node))
        if place not in self.found:
            self.found[place] = ""
            self.found[place] = self._error(value, node, path, depth)
        return self.found[place]

    def _error(self, value: Any, node: JsonObject, path: str, depth: int) -> str:
        self.pay_for(value, node, path)
        if value is None and node.get("nullable") is True:
            return ""
        if "$ref" in node:
            return self.error(value, referred_schema(self.root, node), path, depth + 1)
        inner = (
            self.error(*child, depth + 1) for child in self._inner(value, node, path)
        )
        if found := _own_error(value, node, path) or next(filter(None, inner), ""):
            return found
        options = node.get("anyOf") or node.get("oneOf") or ()
        if options and all(self.error(value, one, path, depth + 1) for one in options):
            return f"{path or 'object'} fits none of its forms"
        return ""

    def _inner(
        self, value: Any, node: JsonObject, path: str
    ) -> Iterator[tuple[Any, Any, str]]:
        if isinstance(value, Mapping):
            properties = node.get("properties") or {}
            required = set(node.get("required") or ())
            for name in filter(value.__contains__, properties):
                if not self.lenient or value[name] is not None or name in required:
                    yield value[name], properties[name], _joined(path, name)
        items = node.get("items")
        if isinstance(value, list) and isinstance(items, Mapping):
            for place, one in enumerate(value):
                yield one, items, f"{path}[{place}]"
        for part in node.get("allOf") or ():
            yield value, part, path


def _own_error(value: Any, node: JsonObject, path: str) -> str:
    place = path or "object"
    kinds = known_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{place} must be {_listed(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not any(_same(value, one) for one in allowed):
        words = _listed([_quote(one) for one in allowed[:21]])
        return f"{place} must be one of {words}"
    required = (isinstance(value, Mapping) and node.get("required")) or ()
    for name in required:
        if name not in value:
            return f"{_joined(path, str(name))} is missing"
    return ""


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(words: Sequence[str]) -> str:
    shown = [word if len(word) <= 60 else word[:57] + "..." for word in words[:20]]
    return " or ".join(shown) + (" ..." if len(words) > 20 else "")


def _quote(value: Any) -> str:
    return repr(value[:60]) if isinstance(value, str) else short_repr(value)


def _same(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)


def check_arguments(
    arguments: object, schema: JsonObject
) -> tuple[dict[str, Any], str | None]:
    if not isinstance(arguments, Mapping):
        return {}, "The arguments must be a JSON object."
    given, found = dict(arguments), ""
    with suppress(*ODD_SCHEMA):
        json_size(schema, LARGEST_SCHEMA)
        check = _SchemaCheck(schema, JsonBudget(_MOST_WORK), {})
        given = _drop_nulls(arguments, schema, check, 0)
        found = check.error(given, schema)
    return given, f"The argument {found}." if found else None


def _drop_nulls(value: Any, node: Any, check: _SchemaCheck, depth: int) -> Any:
    if depth > _DEEPEST_ARGUMENT or not isinstance(value, Mapping | list):
        return value
    forms = joined_schemas(node, partial(_applicable_parts, value, check))
    if isinstance(value, list):
        items = {"allOf": [form["items"] for form in forms if "items" in form]}
        return [_drop_nulls(one, items, check, depth + 1) for one in value]
    known: dict[str, dict[str, list[Any]]] = {}
    required: set[str] = set()
    for form in forms:
        properties = form.get("properties") or {}
        for name in filter(value.__contains__, properties):
            known.setdefault(name, {"allOf": []})["allOf"].append(properties[name])
        required |= set(form.get("required") or ())
    nulls = check._replace(found={})
    return {
        name: _drop_nulls(one, known.get(name), check, depth + 1)
        for name, one in value.items()
        if one is not None
        or name not in known
        or name in required
        or not nulls.error(None, known[name])
    }


def _applicable_parts(value: Any, check: _SchemaCheck, node: JsonObject) -> list[Any]:
    check.pay_for(value, node)
    return schema_parts(check.root, node, partial(_chosen_option, value, check))


def _chosen_option(value: Any, check: _SchemaCheck, options: list[Any]) -> list[Any]:
    lenient = check._replace(found={}, lenient=True)
    fitting = (option for option in options if not lenient.error(value, option))
    return [*islice(fitting, 1)] or options


# openai_responses.loop.tools

Approval = Literal["auto", "ask", "deny"]
ApprovalRules = Sequence[tuple[str, Approval]]
_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")
_ANSWERS: Mapping[str, Approval] = {
    "": "ask",
    **{answer: answer for answer in _STRICTNESS},
}

_Value = TypeVar("_Value")

Ask = Callable[[str, str, JsonObject], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Approver:
    rules: ApprovalRules = ()
    default_rule: Approval = "auto"
    ask: Ask | None = None
    log: Callable[[str], object] = str
    other_names: Callable[[str], Iterable[str]] = lambda _: ()

    def rule_for(self, name: str, via: str = "") -> Approval:
        found = [_first_fitting(self.rules, name) or self.default_rule]
        rest = [rule for rule in self.rules if not fnmatchcase(name, rule[0])]
        for other in (via, *self.other_names(name)):
            found.append(_first_fitting(rest, other) or "auto")
        return max(found, key=_STRICTNESS.index)

    async def refusal(
        self, call_id: str, name: str, arguments: JsonObject, via: str = ""
    ) -> str | None:
        match self.rule_for(name, via):
            case "auto":
                return None
            case "deny":
                return f"The administrator does not allow {name}. Do not call it again."
        try:
            if self.ask and await self.ask(call_id, name, arguments):
                return None
        except Exception as error:  # nobody could be asked: no approval
            self.log(f"nobody could be asked about {name}: {describe_exception(error)}")
        return f"The user did not approve this call of {name}. Go on without it."


def _first_fitting(rows: Iterable[tuple[str, _Value]], name: str) -> _Value | None:
    return next((value for pattern, value in rows if fnmatchcase(name, pattern)), None)


_PATTERN = re.compile(r"(?:[\w.*?/-]|\[[^]\s]+\])+")


def read_rules(text: str, place: str) -> tuple[ApprovalRules, str]:
    rules: ApprovalRules
    rules, unread = _read_entries(text, "=", _read_approval)
    if not unread:
        return rules, ""
    problem = (
        f"TOOL_APPROVAL holds {unread[:40]!r}, which is no rule, so a person is asked "
        "about every call of a tool"
    )
    asked = [(pattern, "ask" if rule == "auto" else rule) for pattern, rule in rules]
    told = valve_error(problem, "`delete_*=ask`", place=place)
    return [*asked, ("*", "ask")], str(told)


def _read_approval(word: str) -> Approval | None:
    return _ANSWERS.get(word.lower())


def read_timeouts(text: str, place: str) -> tuple[list[tuple[str, float]], str]:
    found, unread = _read_entries(text, ":", _read_timeout)
    problem = f"TOOL_TIMEOUTS holds {unread[:40]!r}, which is no time of a tool"
    told = valve_error(problem, "`crawl_*: 600`", place=place)
    return found, str(told) if unread else ""


def _read_timeout(word: str) -> float | None:
    return float(word) if re.fullmatch("[1-9][0-9]{0,5}", word) else None


def _read_entries(
    text: str, sign: str, read: Callable[[str], _Value | None]
) -> tuple[list[tuple[str, _Value]], str]:
    rows: list[tuple[str, _Value]] = []
    unread = ""
    for entry in filter(None, map(str.strip, text.replace("\n", ",").split(","))):
        pattern, _, word = (part.strip() for part in entry.partition(sign))
        value = read(word)
        is_pattern = _PATTERN.fullmatch(pattern) and pattern not in _ANSWERS
        if value is not None and is_pattern:
            rows.append((pattern, value))
        else:
            unread = unread or entry
    return rows, unread


class ToolResult(NamedTuple):
    output: str | list[Item]
    failed: bool = False
    card: JsonObject = NO_CARD


class CallableTools(Protocol):
    def parameters(self, name: str) -> JsonObject | None: ...

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None: ...

    def is_interactive(self, name: str) -> bool: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult: ...


class CallLimits(NamedTuple):
    at_once: int = 8
    seconds: float = 120.0
    batch_seconds: float = 600.0
    characters: int = 100_000
    own: Sequence[tuple[str, float]] = ()

    def own_seconds(self, name: str) -> float | None:
        return _first_fitting(self.own, name)


class Toolset(NamedTuple):
    tools: CallableTools
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    log: Callable[[str], object] = str
    rounds: int = 10
    most_calls: int = 100
    carries_reasoning: bool = True
    runs_calls: bool = True


def output_item(call: Item, answer: ToolResult) -> Item:
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def tool_error(sentence: str) -> ToolResult:
    return ToolResult(f"Error: {sentence}", failed=True)


class _ReadyCall(NamedTuple):
    name: str
    arguments: dict[str, Any]
    is_interactive: bool
    via: str = ""


async def run_calls(
    calls: Sequence[Item], toolset: Toolset
) -> AsyncGenerator[tuple[Item, ToolResult], None]:
    batch = _Batch(toolset)
    tasks: dict[asyncio.Task[ToolResult], bool] = {}  # whether its time is its own
    try:
        for call in calls:
            one = _check_call(call, toolset.tools)
            task = asyncio.create_task(batch.answer(call["call_id"], one))
            tasks[task] = isinstance(one, _ReadyCall) and (
                one.is_interactive or bool(toolset.limits.own_seconds(one.name))
            )
            await asyncio.sleep(0)
        for call, (task, is_apart) in zip(calls, tasks.items(), strict=True):
            await (asyncio.wait([task]) if is_apart else batch.wait(task))
            if not task.done():
                _cancel(one for one, apart in tasks.items() if not apart)
            if task.done() and not task.cancelled():
                yield call, task.result()
            else:
                seconds = toolset.limits.batch_seconds
                why = f"was stopped: the tools took over {seconds:g} s."
                yield call, tool_error(f"{_name(call)} {why}")
    finally:
        _cancel(tasks)


def _cancel(tasks: Iterable[asyncio.Task[ToolResult]]) -> None:
    for task in tasks:
        task.cancel()


class _Batch:
    def __init__(self, toolset: Toolset) -> None:
        self._toolset = toolset
        self._slots = asyncio.Semaphore(toolset.limits.at_once)
        self._asking = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + toolset.limits.batch_seconds

    async def wait(self, task: asyncio.Task[ToolResult]) -> None:
        while not task.done():
            left = self._end - self._loop.time()
            if left > 0:
                await asyncio.wait([task], timeout=left)
            elif self._asking.locked():
                async with self._asking:
                    continue
            else:
                return

    async def answer(self, call_id: str, call: _ReadyCall | ToolResult) -> ToolResult:
        if isinstance(call, ToolResult):
            return call
        approver = self._toolset.approver
        asks = approver.rule_for(call.name, call.via) == "ask"
        async with self._asking if asks else nullcontext():
            began = self._loop.time()
            try:
                refusal = await approver.refusal(
                    call_id, call.name, call.arguments, call.via
                )
            finally:
                self._end += self._loop.time() - began
        if refusal is not None:
            return tool_error(refusal)
        async with nullcontext() if call.is_interactive else self._slots:
            return await _call_tool(call, self._toolset)


def _check_call(call: Item, tools: CallableTools) -> _ReadyCall | ToolResult:
    name = _name(call)
    try:
        arguments = _arguments(call)
    except ValueError:
        why = "its arguments are not valid JSON. Send them again, whole."
        return tool_error(f"{name} was not called: {why}")
    found = _ready_call(name, arguments, tools)
    if isinstance(found, ToolResult):
        return found
    resolved = tools.resolve_call(name, found.arguments)
    if resolved is None:
        return tool_error(f"{name} was not called: it names no tool to call.")
    if resolved[1] is found.arguments:
        return found._replace(name=resolved[0], via=name)
    ready = _ready_call(*resolved, tools)
    return ready._replace(via=name) if isinstance(ready, _ReadyCall) else ready


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> _ReadyCall | ToolResult:
    schema = tools.parameters(name)
    if schema is None:
        return tool_error(f"There is no tool named {name}. Use one that is offered.")
    given, complaint = check_arguments(arguments, schema)
    if complaint is not None:
        return tool_error(f"{name} was not called: {complaint}")
    return _ReadyCall(name, given, tools.is_interactive(name))


def _arguments(call: Item) -> object:
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = call.get("arguments")
    return load_json(text) if isinstance(text, str) and text.strip() else {}


async def _call_tool(ready: _ReadyCall, toolset: Toolset) -> ToolResult:
    name, limits = ready.name, toolset.limits
    seconds = limits.own_seconds(name) or limits.seconds
    try:
        async with asyncio.timeout(None if ready.is_interactive else seconds) as scope:
            answer = await toolset.tools.call(name, ready.arguments)
        output = _cap_output(answer.output, limits.characters)
        return answer._replace(output=output)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task and task.cancelling():
            raise
        if isinstance(error, TimeoutError) and scope.expired():
            return tool_error(f"{name} did not finish within {seconds:g} s.")
        toolset.log(f"the tool {name} raised {type(error).__name__}: {error}")
        return tool_error(f"{name} failed. Tell the user, or try another way.")


def _cap_output(output: Any, characters: int) -> Any:
    if isinstance(output, list):
        cap = partial(_cap_output, characters=characters)
        return [{k: cap(v) if k == "text" else v for k, v in p.items()} for p in output]
    if not isinstance(output, str) or len(output) <= characters:
        return output
    half = characters // 2
    note = f"\n[... {len(output) - 2 * half} characters are cut here ...]\n"
    return output[:half] + note + output[len(output) - half :]


def _name(call: Item) -> str:
    return str(call.get("name") or "")


# openai_responses.requests.mcp_servers

_SERVER_LABEL = "[A-Za-z][A-Za-z0-9_-]{0,63}"
_SOME_TEXT = r".*\S.*"
_TOOL_FILTER = {"tool_names": [_SOME_TEXT], "read_only": bool}


def _is_address(value: object) -> bool:
    one_word = isinstance(value, str) and value.split() == [value]
    return one_word and url_parts(str(value)) is not None


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and fits_form([*value.values()], [str])


_SERVER_FIELDS: Mapping[str, tuple[Any, str]] = {
    "server_label": (
        _SERVER_LABEL,
        "a letter followed by up to 63 letters, digits, hyphens and underscores",
    ),
    "server_url": (_is_address, "an address that begins with http:// or https://"),
    "connector_id": (_SOME_TEXT, "a text"),
    "authorization": (_SOME_TEXT, "a text"),
    "headers": (_are_headers, "a JSON object of texts"),
    "allowed_tools": (
        ([_SOME_TEXT], _TOOL_FILTER),
        "a list of names, or an object that chooses tools",
    ),
    "require_approval": (
        ("always|never", {"always": _TOOL_FILTER, "never": _TOOL_FILTER}),
        "`always`, `never` or an object of both",
    ),
    "server_description": (_SOME_TEXT, "a text"),
}

_NO_SECRETS = {"type", *_SERVER_FIELDS} - {"server_url", "authorization", "headers"}


class RemoteServers(NamedTuple):
    tools: tuple[Item, ...] = ()
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def read_servers(text: str) -> RemoteServers:
    try:
        given = json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        what = "it is no JSON"
        if isinstance(error, json.JSONDecodeError):
            what += f" (line {error.lineno}, column {error.colno})"
        return RemoteServers(complaints=(_servers_error(what),), secrets=(text,))
    rows = given if isinstance(given, list) else [given]
    tools: dict[str, Item] = {}
    complaints: list[str] = []
    notes: list[str] = []
    secrets: list[str] = []
    for number, row in enumerate(rows, 1):
        fields = given_values(as_mapping(row))
        hidden = [fields[key] for key in fields if key not in _NO_SECRETS]
        secrets += _secret_values(hidden)
        label = fields.get("server_label")
        name = str(label) if fits_form(label, _SERVER_LABEL) else f"server {number}"
        if complaint := _server_error(row, fields, tools):
            what = f"{name} is left out, because {complaint}"
            complaints.append(_servers_error(what))
            continue
        known = {key: fields[key] for key in _SERVER_FIELDS if key in fields}
        tools[name.lower()] = {"type": "mcp", **known}
        if unknown := ", ".join(sorted(fields.keys() - {*_SERVER_FIELDS, "type"})):
            notes.append(_servers_error(f"keys of {name} are not sent: {unknown}"))
    return RemoteServers(
        tuple(tools.values()), tuple(complaints), tuple(notes), tuple(secrets)
    )


def _servers_error(what: str) -> str:
    return (
        f"REMOTE_MCP_SERVERS_JSON: {what}. An administrator can correct it in the "
        "valves of this pipe; until then, chats go on without."
    )


def _secret_values(value: object) -> list[str]:
    if isinstance(value, Mapping):
        value = [*value.values()]
    if isinstance(value, list):
        return [text for inner in value for text in _secret_values(inner)]
    if not isinstance(value, str):
        return []
    parts = url_parts(value)
    if parts is None:
        return header_secrets(value)
    return [value, parts.password or "", *(text for _, text in parse_qsl(parts.query))]


def _server_error(
    row: object, fields: JsonObject, before: Mapping[str, Item]
) -> str | None:
    if not isinstance(row, Mapping):
        return "it is no JSON object"
    if "server_label" not in fields:
        return "it has no server_label"
    for key, (form, expected) in _SERVER_FIELDS.items():
        if key in fields and not fits_form(fields[key], form):
            return f"its {key} is not {expected}"
    if fields["server_label"].lower() in before:
        return "its server_label is not its own"
    targets = [key for key in ("server_url", "connector_id") if key in fields]
    if len(targets) != 1:
        return "it needs a server_url or a connector_id, one of them"
    if "connector_id" in fields and "authorization" not in fields:
        return "a connector needs an authorization"
    return None


# openai_responses.loop.run

_TOOL_LIMIT = "was not run: the limit of tool {} is reached. Answer without it."
_ROUNDS_USED_UP = _TOOL_LIMIT.format("rounds")
_CALLS_USED_UP = _TOOL_LIMIT.format("calls")
_RAN_ALREADY = "was not run: a call with this call_id ran already."
_BROKEN_OFF = "was not run: the answer that asked for it broke off."


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> RunEvents:
    attempts = Attempts(endpoint, connections, limits)
    answers = _Answers(request)
    while answers.request is not None:
        had_output = bool(answers.output)
        sent = attempts.events(answers.request, len(answers.output))
        for part in (sent, answers.events(attempts, toolset)):
            async with aclosing(part) as events:
                async for event in events:
                    yield event
    has_text = had_output or attempts.has_shown
    yield RunDone(
        attempts.ending if has_text else attempts.ending.without_text(),
        reduce(add_usage, attempts.usages, None),
        attempts.response.usage,
        tuple(answers.output),
        attempts.trace,
        usages=tuple(attempts.usages),
    )


class _Answers:
    def __init__(self, request: ResponsesRequest) -> None:
        self.request: ResponsesRequest | None = request
        self.output: list[Item] = []
        self._is_limited = False
        self._rounds = 0
        self._calls_run = 0
        self._seen: set[str] = set()

    async def events(self, attempts: Attempts, toolset: Toolset | None) -> RunEvents:
        output, self.request = attempts.response.output, None
        self._items: list[Item] = []
        self.output += output
        calls = list(filter(is_call, output))
        approvals = list(filter(is_approval_request, output))
        reached = attempts.limits.spent(attempts.usages, output)
        if reached and (calls or approvals):
            attempts.response.ending = Ending("incomplete", sentence=reached)
        if attempts.ending.is_failure:
            for event in self._refuse(calls, _BROKEN_OFF):
                yield event
            return
        if toolset is None or not (calls or approvals):
            return
        was_last = self._is_limited
        with attempts.deadlines.paused():
            async with aclosing(self._answer_all(calls, approvals, toolset)) as rest:
                async for answer in rest:
                    yield answer
        if not was_last and (toolset.runs_calls or not calls):
            reasoning = toolset.carries_reasoning or bool(approvals)
            self.request = self._next_request(attempts, reasoning)

    async def _answer_all(
        self, calls: Sequence[Item], approvals: Sequence[Item], toolset: Toolset
    ) -> RunEvents:
        is_over = self._rounds >= toolset.rounds
        for request in approvals:
            refusal = await _remote_refusal(request, toolset, is_over)
            for event in self._decide(request, refusal):
                yield event
        new, repeated = self._new_calls(calls if toolset.runs_calls else ())
        for event in self._refuse(repeated, _RAN_ALREADY):
            yield event
        left = 0 if is_over else toolset.most_calls - self._calls_run
        async with aclosing(run_calls(new[:left], toolset)) as results:
            async for call, result in results:
                yield self._answer(call, result)
        why = _ROUNDS_USED_UP if is_over else _CALLS_USED_UP
        for event in self._refuse(new[left:], why):
            yield event
        self._is_limited = is_over or len(new) > left
        self._rounds += 1
        self._calls_run += len(new[:left])

    def _next_request(self, attempts: Attempts, reasoning: bool) -> ResponsesRequest:
        request, output = attempts.request, attempts.response.output
        if self._is_limited:
            request = request.model_copy(update={"tool_choice": "none"})
        received = replay_output(output, with_reasoning=reasoning)
        return next_request(request, [*received, *self._items])

    def _new_calls(self, calls: Iterable[Item]) -> tuple[list[Item], list[Item]]:
        found: tuple[list[Item], list[Item]] = [], []
        for call in calls:
            found[call["call_id"] in self._seen].append(call)
            self._seen.add(call["call_id"])
        return found

    def _refuse(self, calls: Iterable[Item], why: str) -> Iterator[ToolOutput]:
        for call in calls:
            yield self._answer(call, tool_error(f"{call.get('name')} {why}"))

    def _answer(self, call: Item, result: ToolResult) -> ToolOutput:
        item, index = output_item(call, result), len(self.output)
        self.output.append(item)
        self._items.append(item)
        return ToolOutput(index, item, result.failed, result.card)

    def _decide(self, request: Item, refusal: str | None) -> Iterator[RunEvent]:
        response: Item = {
            "type": "mcp_approval_response",
            "approval_request_id": request.get("id"),
            "approve": refusal is None,
        }
        self._items.append(response)
        if refusal is None:
            self.output.append(response)
            return
        response["reason"] = refusal
        call, output = refused_pair(request, refusal)
        call, index = {**call, "id": f"fc_{call['call_id']}"}, len(self.output)
        self.output += [call, output]
        yield ItemAdded(index, call)
        yield ItemDone(index, call)
        yield ToolOutput(index + 1, output, failed=True)


def next_request(request: ResponsesRequest, items: Iterable[Item]) -> ResponsesRequest:
    whole = drop_settled_approvals([*request.input, *items])
    choice = next_tool_choice(request.tool_choice)
    changed = {"input": since_compaction(whole), "tool_choice": choice}
    return request.model_copy(update=changed)


async def _remote_refusal(request: Item, toolset: Toolset, is_over: bool) -> str | None:
    name = remote_name(request)
    if is_over:
        return f"{name} {_ROUNDS_USED_UP}"
    text = str(request.get("arguments") or "{}")
    arguments = parse_json_object(text)
    shown = {"arguments": text} if arguments is None else arguments
    approver = replace(toolset.approver, default_rule="ask")
    own_name = str(request.get("name"))
    return await approver.refusal(str(request.get("id")), name, shown, own_name)


# openai_responses.requests.turns

_LONGEST_TURN = 200_000
_MOST_DECLARED = 128
_SETTINGS = (("reasoning", "effort"), ("text", "format"))
_UNSTATED = (None, {"type": "json_object"})


class Turn(NamedTuple):
    model: str
    items: Sequence[Item] = ()
    base: Item | None = None

    def wire(self) -> str:
        packed = b64encode(zlib.compress(json.dumps(self).encode())).decode()
        return packed if len(packed) <= _LONGEST_TURN else ""


def read_turn(wire: str) -> Turn:
    return Turn(*json.loads(zlib.decompress(b64decode(wire))))


def record_turn(
    request: ResponsesRequest, earlier: Sequence[Turn], default_effort: str | None
) -> Turn | None:
    tools = [tool for tool in request.tools or () if tool["type"] != "mcp"]
    base = {key: as_mapping(getattr(request, key)) for key, _ in _SETTINGS}
    begins = Turn(request.model, base={"tools": tools, **base})
    turn = (_next_turn(begins, earlier, default_effort) if earlier else None) or begins
    return turn if turn.wire() else None


def _next_turn(
    asked: Turn, earlier: Sequence[Turn], default_effort: str | None
) -> Turn | None:
    fields, base = asked.base or {}, earlier[0].base or {}
    items = [item for turn in earlier for item in turn.items]
    held = lower_payload({**base, "input": items}, APPENDED)
    new = _new_tools(held.get("tools", ()), fields["tools"])
    update = _changed_settings(held, fields, default_effort)
    if new is None or any(
        value in _UNSTATED for one in update.values() for value in one.values()
    ):
        return None
    added: Item = {"type": ADDED_TOOLS, "role": "developer", "tools": new}
    changed = {"type": CONFIGURATION, **update}
    return Turn(asked.model, [added] * bool(new) + [changed] * bool(update))


def _new_tools(held: Sequence[Item], asked: Sequence[Item]) -> list[Item] | None:
    known = {tool_identity(tool): tool for tool in held}
    new = [tool for tool in asked if tool_identity(tool) not in known]
    for tool in asked:
        old = known.get(tool_identity(tool))
        if "tools" in tool or (old and _schema(old) != _schema(tool)):
            return None
    return new if len(known) + len(new) <= _MOST_DECLARED else None


def _changed_settings(held: Item, asked: Item, default_effort: str | None) -> Item:
    update: Item = {}
    for key, name in _SETTINGS:
        usual = {"effort": default_effort, "format": {"type": "text"}}[name]
        value = asked[key].get(name) or usual
        if value != (held[key].get(name) or usual):
            update[key] = {name: value}
    return update


def append_turns(
    request: ResponsesRequest, turns: Mapping[str, Turn], kinds: Set[str]
) -> tuple[ResponsesRequest, dict[str, list[Item]]]:
    if as_mapping(request.reasoning).get("mode") == "pro":
        kinds = kinds - {CONFIGURATION}
    base = next(iter(turns.values())).base or {}
    items = {
        name: [item for item in turn.items if item_type(item) in kinds]
        for name, turn in turns.items()
    }
    fields = _first_settings(request, base) if CONFIGURATION in kinds else {}
    if ADDED_TOOLS in kinds:
        offered = request.tools or ()
        servers = [tool for tool in offered if tool["type"] == "mcp"]
        fields["tools"] = [*servers, *base["tools"]] or None
        added = [item for group in items.values() for item in group]
        declared = declared_tools({**fields, "input": added})
        fields["tool_choice"] = _allow(request.tool_choice, offered, declared)
    return request.model_copy(update=fields), items


def _first_settings(request: ResponsesRequest, base: Item) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    effort = as_mapping(request.reasoning).get("effort")
    if effort != base["reasoning"].get("effort"):
        fields = dict.fromkeys(SAMPLING)
    for key, name in _SETTINGS:
        rest = {k: v for k, v in (getattr(request, key) or {}).items() if k != name}
        first = {k: v for k, v in base[key].items() if k == name}
        fields[key] = {**first, **rest} or None
    return fields


def _allow(choice: Any, offered: Sequence[Item], declared: Sequence[Item]) -> Any:
    names, keys = {*map(tool_identity, offered)}, {"type", "name", "server_label"}
    left = [tool for tool in declared if tool_identity(tool) in names]
    if len(left) == len(declared) or choice not in (None, "auto", "required"):
        return choice
    tools = [{key: tool[key] for key in tool if key in keys} for tool in left]
    allowed = {"type": "allowed_tools", "mode": choice or "auto", "tools": tools}
    return allowed if left else "none"


def _schema(tool: Item) -> Item:
    return {**tool, "description": None}


# openai_responses.audit

_OPENAI_HOST = "api.openai.com"

_API_WORD = re.compile(r"[a-z][a-z_.]{0,63}(?:\[\d{1,5}\][a-z_.]{0,64}){0,4}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_LINE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HOST_NAME = re.compile(r"[a-z0-9._:-]{1,253}")
_FORMATS = ("text", "json_object", "json_schema")


class AuditedRequest(NamedTuple):
    payload: JsonObject
    host: str
    request_id: str

    def request_line(self) -> str:
        form = as_mapping(self.payload.get("text", {}).get("format"))
        kind, items = form.get("type", "text"), self.payload["input"]
        return self._line(
            "request",
            response_format=kind if kind in _FORMATS else None,
            stream=self.payload.get("stream", False),
            tool_count=len(self.payload.get("tools", ())),
            input_message_count=sum(item_type(one) == "message" for one in items),
        )

    def success_line(self, response_model: object) -> str:
        model = _fitting(_MODEL_NAME, response_model)
        return self._line("success", response_model=model, status_code=200)

    def error_line(self, error: ApiError, status: int | None) -> str:
        return self._line(
            "error",
            status_code=status,
            code=_fitting(_API_WORD, error.code),
            param=_fitting(_API_WORD, error.param),
            error_type=_fitting(_API_WORD, error.type),
        )

    def _line(self, event: str, **fields: object) -> str:
        host = _fitting(_HOST_NAME, self.host)
        line = {
            "event": f"responses_api_{event}",
            "model": _fitting(_MODEL_NAME, self.payload.get("model")),
            "request_id": _fitting(_LINE_ID, self.request_id),
            **fields,
            "base_url_host": host,
            "use_custom_base_url": host != _OPENAI_HOST,
        }
        return json.dumps(line, separators=(",", ":"))


def _fitting(shape: re.Pattern[str], value: object) -> str | None:
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    return value if redact(value) == value else None


# owui_chat.events


class SourceCited(NamedTuple):
    source: JsonObject


class Marker(NamedTuple):
    text: str


class StoredRecord(NamedTuple):
    ulid: str
    value: JsonObject
    output_index: int | None = None


class TurnDetails(NamedTuple):
    details: Sequence[Item]


CitedEvent = RunEvent | SourceCited
AnswerEvent = CitedEvent | Marker | StoredRecord | TurnDetails


# owui_chat.code

CODE_CARD = "open_webui:code_interpreter"


def code_host_item(item: JsonObject) -> Item:
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": replay_code(item, code_output(item)),
    }


def replay_code(item: JsonObject, printed: str) -> str:
    code = str(item.get("code") or "")
    shown = printed.strip("\n").replace("```", "'''")
    return f"{code}\n```\n```text\n{shown}" if shown else code


def code_text(code: str) -> str:
    return f"<code_interpreter>\n{code}\n</code_interpreter>"


_MOST_DELETED = 20


_BETWEEN = "\0"


def take_out_code(
    texts: Sequence[str], items: Iterable[Item]
) -> tuple[list[str], list[Item]]:
    whole = _BETWEEN.join(text.replace(_BETWEEN, "") for text in texts)
    kept, deleted, start = list[str](), list[Item](), 0
    for item in items:
        if not (code := code_host_item(item)["code"]):
            continue
        told = code_text(code)
        place = whole.find(told, start) if len(deleted) < _MOST_DELETED else -1
        if place < 0:
            deleted.append(item)
        else:
            kept.append(whole[start:place])
            start = place + len(told)
    left = "".join([*kept, whole[start:]]).split(_BETWEEN)
    rows = zip(texts, left, strict=True)
    return [text if rest == text else rest.strip() for text, rest in rows], deleted


# owui_chat.messages


class Attachment(NamedTuple):
    file_id: str
    name: str
    content_type: str
    is_image: bool


class StoredMessage(NamedTuple):
    row: JsonObject
    answer_id: str

    @property
    def words(self) -> str:
        return as_text(self.row.get("content"))


class UserMessage(NamedTuple):
    item: Item
    stored: StoredMessage | None = None
    attachments: Sequence[Attachment] = ()

    @property
    def content(self) -> list[Item]:
        return self.item.get("content") or []

    def with_content(self, parts: Sequence[Item]) -> Self:
        return self._replace(item={**self.item, "content": list(parts)})


class AssistantText(NamedTuple):
    text: str
    ulids: Sequence[str] = ()
    details: object = None


class ToolCall(NamedTuple):
    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


class ToolMessage(NamedTuple):
    call_id: str
    output: str | list[Item]


ChatPart = UserMessage | AssistantText | ToolCall | ToolMessage


DETAILS_FIELD = "reasoning_details"


def parse_messages(
    messages: Sequence[JsonObject], detail: str = "auto"
) -> tuple[str, list[ChatPart]]:
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    head = [*takewhile(lambda message: message.get("role") == "system", messages)]
    texts = filter(None, (_plain_text(message.get("content")) for message in head))
    rest = _newest(messages[len(head) :])
    parts = [part for message in rest for part in _chat_parts(message, detail)]
    if len(head) + len(rest) < len(messages):
        parts.insert(0, _LEFT_OUT_PART)
    return "\n\n".join(texts), parts


_MOST_ENTRIES = 8192
_ENTRIES_AT_ONCE = 2048
_INSTRUCTING = ("system", "developer")
LEFT_OUT = "The oldest messages of this chat were left out: a request cannot hold them."
_LEFT_OUT_PART = UserMessage(text_message("developer", LEFT_OUT))


def cut_notice(parts: Sequence[ChatPart]) -> str:
    return LEFT_OUT if _LEFT_OUT_PART in parts[:2] else ""


def _newest(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    gone = [0, *accumulate(map(_entries, messages))]
    over = gone[-1] - _MOST_ENTRIES
    if over <= 0:
        return messages
    over += -over % _ENTRIES_AT_ONCE
    head = messages[:_ENTRIES_AT_ONCE]
    first = [*takewhile(lambda one: one.get("role") in _INSTRUCTING, head)]
    starts = [n for n, one in enumerate(messages) if one.get("role") == "user"]
    last = starts[-1] if starts else len(messages) - 1
    start = next((n for n in starts if gone[n] >= over), last)
    return [*first, *messages[max(start, len(first)) :]]


def _entries(message: JsonObject) -> int:
    calls, details = message.get("tool_calls"), message.get(DETAILS_FIELD)
    return 1 + len(as_list(calls)) + len(as_list(details))


def _chat_parts(message: JsonObject, detail: str) -> Iterator[ChatPart]:
    role, content = message.get("role"), message.get("content")
    match role:
        case "user":
            yield UserMessage(_input_message("user", content, detail))
        case "system" | "developer":
            yield UserMessage(_input_message("developer", content, detail))
        case "assistant":
            text, details = _plain_text(content), message.get(DETAILS_FIELD)
            if details or text.strip():
                yield AssistantText(text, details=details)
            if calls := message.get("tool_calls"):
                yield from _calls(calls)
        case "tool":
            yield ToolMessage(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has an unknown role. The roles are system, "
                "developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[ToolCall]:
    for call in content_parts(tool_calls):
        kind, field, empty = "function", "arguments", "{}"
        if kind not in call:
            kind, field, empty = "custom", "input", ""
        if isinstance(called := call.get(kind), dict):
            name, given = str(called.get("name")), str(called.get(field) or empty)
            yield ToolCall(str(call.get("id")), name, given, kind == "custom")


def _output(content: object) -> str | list[Item]:
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return [_input_part(part, "auto") for part in content]


def _input_message(role: str, content: object, detail: str) -> Item:
    rows = content if isinstance(content, list) else [content]
    parts = [_input_part(part, detail) for part in rows]
    return {"type": "message", "role": role, "content": parts}


def _input_part(part: object, detail: str) -> Item:
    if not isinstance(part, dict):
        return {"type": "input_text", "text": str(part or "")}
    match part.get("type"):
        case "text" | "input_text":
            return {"type": "input_text", "text": str(part.get("text") or "")}
        case "image_url" | "input_image":
            return _image_part(part, detail)
        case "file":
            return {"type": "input_file", **_given(part.get("file"))}
        case "input_file":
            return _given(part)
    raise InvalidRequest(
        "A message of this chat holds something other than text, a picture or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: JsonObject, default: str) -> Item:
    inner = wire.get("image_url")
    chat_form = inner if isinstance(inner, Mapping) else {"url": inner}
    detail = chat_form.get("detail") or wire.get("detail") or default
    source = _given({"image_url": chat_form.get("url")})
    return {"type": "input_image", "detail": detail, **source}


_NOT_THE_CALLERS = ("file_id", "prompt_cache_breakpoint")


def _given(wire: object) -> Item:
    given = as_mapping(wire).items()
    return {k: v for k, v in given if v is not None and k not in _NOT_THE_CALLERS}


def _plain_text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(as_text(as_mapping(p).get("text")) for p in as_list(content))


def user_messages(parts: Sequence[ChatPart]) -> dict[int, UserMessage]:
    return {
        place: part
        for place, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.item.get("role") == "user"
    }


def attach_stored_messages(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    result, users = list(parts), user_messages(parts)
    if metadata.get("regeneration_message_id") and users:
        users.popitem()
    asked, answer = map(metadata.get, ("user_message_id", "message_id"))
    hidden = Counter[str]()
    branch = list(_stored_branch(rows, str(asked or ""), str(answer or ""), hidden))
    for place, stored in zip(reversed(users), branch, strict=False):
        result[place] = users[place]._replace(stored=stored)
    if not hidden:
        return result
    kept = [part for part in result if not _take_hidden(part, hidden)]
    if any(hidden.values()) or len(users) < len(branch):
        raise InvalidRequest(_HIDDEN_MESSAGE)
    return kept


def _take_hidden(part: ChatPart, hidden: Counter[str]) -> bool:
    if not isinstance(part, UserMessage) or part.item["role"] != "developer":
        return False
    words = message_text(part.item)
    hidden[words] -= (is_hidden := hidden[words] > 0)
    return is_hidden


def stored_messages(parts: Sequence[ChatPart]) -> list[StoredMessage]:
    found = (part.stored for part in parts if isinstance(part, UserMessage))
    return [stored for stored in found if stored]


_HIDDEN_MESSAGE = (
    "This chat holds a message that the page does not show and that could instruct the "
    "model. Nothing was sent: start a new chat."
)


def _stored_branch(
    rows: JsonObject, message_id: str, answer_id: str, hidden: Counter[str]
) -> Iterator[StoredMessage]:
    for name, row in walk_branch(rows, message_id):
        if row.get("role") == "user":
            yield StoredMessage(row, answer_id)
            answer_id = ""
        elif row.get("role") == "assistant":
            answer_id = name
        elif row.get("role") == "developer":
            hidden[_plain_text(row.get("content"))] += 1
        else:
            raise InvalidRequest(_HIDDEN_MESSAGE)


def walk_branch(rows: JsonObject, tip: str) -> Iterator[tuple[str, JsonObject]]:
    seen = set[str]()
    while tip not in seen and isinstance(row := rows.get(tip), Mapping):
        yield tip, row
        seen.add(tip)
        tip = str(row.get("parentId") or "")


# owui_chat.storage.markers

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
    r"(?m:^[^\S\n]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#"
    r"[^\S\n]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
_SIGNS = ("openai_responses:v", "\u2060", "]: #")


_MOST_PASSES = 5


class MarkedText(NamedTuple):
    ulid: str
    text: str


def format_marker(kind: str, ulid: str) -> str:
    return f"\n\n[openai_responses:v2:{kind}:{ulid}]: #\n\n"


def split_at_markers(text: str, ulid: str = "") -> list[MarkedText]:
    if not any(map(text.__contains__, _SIGNS)):
        return [MarkedText(ulid, text.strip() if ulid else text)]
    pieces, start = list[MarkedText](), 0
    for match in _MARKER.finditer(text):
        pieces.append(MarkedText(ulid, text[start : match.start()].strip()))
        ulid, start = _named(match), match.end()
    pieces.append(MarkedText(ulid, text[start:].strip()))
    return [piece for piece in pieces if piece.ulid or piece.text]


def strip_markers(text: str) -> str:
    for _ in range(_MOST_PASSES):
        pieces = [piece.text for piece in split_at_markers(text)]
        if pieces == [text]:
            break
        text = "\n\n".join(filter(None, pieces))
    return text


def _named(match: re.Match[str]) -> str:
    bits = match["bits"]
    if bits:
        digits = bits.replace("\u200b", "0").replace("\u200c", "1")
        codes = (int(digits[i : i + 8], 2) for i in range(0, len(digits), 8))
        return "".join(map(chr, codes)).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()


# owui_chat.storage.signature

Sign = Callable[[object, bool], str]

_FIELD = "signature"
_HALF = 32
_NO_SALT = bytes(32)
_ONE_BLOCK = b"\x01"
_IN_ORDER = TypeAdapter[Any](Any).serializer
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


def derive_key(secret: str, purpose: str) -> bytes:
    seed = hmac.digest(_NO_SALT, secret.encode("utf-8", "replace"), "sha256")
    return hmac.digest(seed, purpose.encode() + _ONE_BLOCK, "sha256")


def signer(secret: str, purpose: str) -> Sign:
    key = derive_key(secret, purpose)
    return partial(_signature, hmac.new(key, digestmod="sha256"))


def sign_object(
    fields: Mapping[str, Any], sign: Sign | None, *scope: object
) -> dict[str, Any]:
    bare = _without_signature(fields)
    halves = [sign([*scope, bare], is_sorted) for is_sorted in (False, True) if sign]
    return {**bare, _FIELD: "".join(halves)} if halves else bare


def is_signed(fields: Mapping[str, Any], sign: Sign | None, *scope: object) -> bool:
    signature = fields.get(_FIELD)
    if sign is None or not isinstance(signature, str) or not signature.isascii():
        return False
    value = [*scope, _without_signature(fields)]
    try:
        return hmac.compare_digest(
            sign(value, False), signature[:_HALF]
        ) or hmac.compare_digest(sign(value, True), signature[-_HALF:])
    except (RecursionError, TypeError, ValueError):
        return False


def _without_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    bare = dict(fields)
    bare.pop(_FIELD, None)
    return bare


def _signature(keyed: hmac.HMAC, value: object, is_sorted: bool) -> str:
    try:
        text = b"" if is_sorted else _IN_ORDER.to_json(value)
    except ValueError:  # UTF-8 has no lone surrogates
        text = b""
    signed = keyed.copy()
    signed.update(text or _SORTED.encode(value).encode())
    return signed.hexdigest()[:_HALF]


# owui_chat.storage.records

_SEED_KEY = "openai_responses_pipe"
_PREFIX = f"{_SEED_KEY}:"
_VERSION = 5

UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}


class Record(NamedTuple):
    ulid: str
    model: str
    created_at: int
    payload: tuple[Item, ...]
    message_id: str
    origin: Origin
    shown: str = ""

    @property
    def kind(self) -> str:
        return str(self.payload[0]["type"]) if len(self.payload) == 1 else "items"


def text_digest(text: str) -> str:
    return hex_digest(text.strip())[:32]


def omit_shown_text(item: Item, shown: str) -> Item:
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts]
    if not shown or shown != shown.strip() or texts != [shown]:
        return item
    return {**item, "content": [{k: v for k, v in parts[0].items() if k != "text"}]}


def message_key(message_id: str) -> str:
    return _PREFIX + message_id


def write_records(
    records: Mapping[str, Record], sign: Sign | None, repairs: Iterable[Repair] = ()
) -> dict[str, Any]:
    items = {
        ulid: sign_object(_wire(record), sign, _VERSION, ulid)
        for ulid, record in records.items()
    }
    value: dict[str, Any] = {"__v": _VERSION, "items": items}
    rows = [[repair.action, repair.target] for repair in repairs]
    return {**value, "repairs": rows} if rows else value


def is_pipe_key(key: str) -> bool:
    return key.startswith(_PREFIX) or key == _SEED_KEY


def read_records(chat: Mapping[str, Any], sign: Sign | None) -> dict[str, Record]:
    values = [as_mapping(value) for key, value in chat.items() if is_pipe_key(key)]
    dead = {str(one) for value in values for one in as_list(value.get("dead"))}
    found: dict[str, Record] = {}
    for ulid, wire in chain.from_iterable(map(_wires_in, values)):
        payload = _payload(wire.get("payload"))
        is_ours = is_signed(wire, sign, _VERSION, ulid)
        if used := payload if is_ours else _harmless(payload):
            if ulid in dead:
                used = tuple(item for item in used if not is_encrypted(item))
            shown = str(wire.get("shown") or "") if is_ours else ""
            found[ulid] = _record(ulid, wire, used, shown)
    return found


_MOST_REPAIRS_READ = 1000


def stored_repairs(values: Iterable[object]) -> tuple[Repair, ...]:
    rows = (row for v in values for row in as_list(as_mapping(v).get("repairs")))
    found = dict[Repair, None]()
    for row in islice(rows, _MOST_REPAIRS_READ):
        match row:
            case [str(action), str(target)] if action in CHAT_ACTIONS:
                found[Repair(action, target)] = None
    return tuple(found)


def _wires_in(value: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for ulid, wire in as_mapping(as_mapping(value).get("items")).items():
        yield str(ulid).upper(), as_mapping(wire)


def _harmless(payload: Sequence[Item]) -> tuple[Item, ...]:
    heads, last = payload[:-1], payload[-1:]
    items = [item for item in heads if item_type(item) != "message"]
    return tuple(filter(None, harmless_items([*items, *last])))


def harmless_items(items: Sequence[Item]) -> list[Item | None]:
    found: list[Item | None] = []
    stays = True
    for item in reversed(items):
        found.append(_stub(item) if stays or not is_reasoning(item) else None)
        stays = found[-1] is not None
    return found[::-1]


def _stub(item: Item) -> Item | None:
    if has_encrypted_reasoning(item):
        sealed = str(item["encrypted_content"])
        return {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    if is_call(item):
        return {"type": item["type"], "call_id": str(item.get("call_id"))}
    is_answer = item_type(item) == "message" and item.get("role") == "assistant"
    if not is_answer or is_commentary(item):
        return None
    phase = {"phase": "final_answer"} if item.get("phase") == "final_answer" else {}
    return {"type": "message", "role": "assistant", **phase, "content": [UNSHOWN_TEXT]}


def _payload(value: object) -> tuple[Item, ...]:
    rows = value if isinstance(value, list) else [value]
    items = [row for row in rows if isinstance(row, dict) and row.get("type")]
    return tuple(items) if len(items) == len(rows) else ()


def _record(
    ulid: str, wire: Mapping[str, Any], payload: tuple[Item, ...], shown: str
) -> Record:
    model, time = str(wire.get("model") or ""), wire.get("created_at")
    return Record(
        ulid,
        model,
        time if isinstance(time, int) else 0,
        payload,
        str(wire.get("message_id") or ""),
        read_origin(wire.get("origin"), model),
        shown,
    )


def _wire(record: Record) -> dict[str, Any]:
    payload = list(record.payload)
    return {
        "model": record.model,
        "created_at": record.created_at,
        "payload": payload[0] if len(payload) == 1 else payload,
        "message_id": record.message_id,
        "origin": record.origin.wire(),
        **({"shown": record.shown} if record.shown else {}),
    }


MAX_STORED_KB = 4096  # in one chat, which the host reads at every answer

_KEPT_SHARE = 0.75  # so that few answers change the beginning of the next one
_STAYS = ("__v", "dead", "repairs")

_Values = Mapping[str, Any]


def prune(
    values: _Values,
    messages: Mapping[str, Any],
    own: str,
    most: int,
) -> dict[str, Any]:
    over = {message_key(name): _is_over(row) for name, row in messages.items()}
    now, left = dict[str, Any](), dict[str, _Values]()
    for key, value in values.items():
        if key in (own, _SEED_KEY) or not isinstance(value, Mapping):
            continue
        if over.get(key, not messages):
            left[key] = value
        elif key not in over:
            now[key] = {name: value[name] for name in _STAYS if name in value}
    now |= _prune_values(left, most)
    return {key: value for key, value in now.items() if value != values[key]}


def stored_size(value: object) -> int:
    return len(json.dumps(value, separators=(",", ":")))


def _is_over(message: object) -> bool:
    return as_mapping(message).get("done") is not False


def _prune_values(values: _Values, most: int) -> dict[str, Any]:
    sizes = {key: stored_size(value) for key, value in values.items()}
    over, now = sum(sizes.values()) - most, dict[str, Any]()
    if over <= 0:
        return now
    over += int(most * (1 - _KEPT_SHARE))
    filled = (key for key in values if as_mapping(values[key].get("items")))
    for key in sorted(filled, key=lambda key: _oldest_time(values[key])):
        if over <= 0:
            break
        now[key] = {name: one for name, one in values[key].items() if name != "items"}
        over -= sizes[key] - stored_size(now[key])
    return now


def _oldest_time(value: object) -> int:
    times = (wire.get("created_at") for _, wire in _wires_in(value))
    return min((time for time in times if isinstance(time, int)), default=0)


# owui_chat.input.history

_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def _strip_old_blocks(text: str) -> str:
    if _SIGN not in text:
        return text
    head, end, rest = text.rpartition("</details>")
    return _BLOCK.sub("", f"{head}{end}{rest[:1]}") + rest[1:]


def build_input(
    parts: Iterable[ChatPart],
    records: Mapping[str, Record],
    reader: Origin | None,
    *,
    with_tools: bool = True,
    repairs: Sequence[Repair] = (),
) -> list[Item]:
    items: list[Item] = []
    run: list[_Said] = []
    left = dict(records)  # a copied marker names nothing: each record is used once
    for part in parts:
        if isinstance(part, UserMessage):
            past = _RunHistory(run, left, reader).items()
            items += past if with_tools else drop_hosted_tool_items(past)
            items.append(part.item)
            run = []
        else:
            run.append(part)
    items += _RunHistory(run, left, reader).items()
    kinds = {item.get("type") for item in items}
    if "compaction" in kinds:
        items = since_compaction(_sent_compactions(items, repairs))
    kept = drop_orphans(items)
    if kinds.isdisjoint(CHANGED_LATER):
        return kept
    return [one for item in kept for one in past_items(item)]


def _sent_compactions(items: list[Item], repairs: Sequence[Repair]) -> list[Item]:
    if not repairs:
        return items
    sent = {id(item) for _, item in repair_items(items, repairs)}
    return [one for one in items if id(one) in sent or not is_compaction(one)]


def tool_message_item(returned: ToolMessage, call_types: Mapping[str, str]) -> Item:
    call_id = returned.call_id
    kind = call_types.get(call_id, "function_call")
    return {"type": CALL_OUTPUTS[kind], "call_id": call_id, "output": returned.output}


_Said = AssistantText | ToolCall | ToolMessage


class _RunHistory:
    def __init__(
        self,
        run: Sequence[_Said],
        records: dict[str, Record],
        reader: Origin | None,
    ) -> None:
        self._pieces: list[_Piece] = []
        self._items: dict[str, list[Item]] = {}
        self._shown: dict[str, str] = {}
        for part in run:
            if not isinstance(part, AssistantText):
                self._pieces.append(part)
                continue
            for piece in _marked_texts(part):
                self._pieces.append(piece)
                if record := records.pop(piece.ulid, None):
                    self._items[piece.ulid] = _readable_items(record, reader)
                    self._shown[piece.ulid] = record.shown
        self._take_out_code()
        self._done: dict[str, int] = {}

    @cached_property
    def _ends(self) -> dict[str, tuple[str, int]]:
        return {
            str(item.get("call_id")): (ulid, end)
            for ulid, items in self._items.items()
            for end, item in enumerate(items, 1)
            if is_call(item)
        }

    def _take_out_code(self) -> None:
        stored = (item for items in self._items.values() for item in items)
        if not (codes := [item for item in stored if "code" in item and is_code(item)]):
            return
        texts = [p.text if isinstance(p, MarkedText) else "" for p in self._pieces]
        left, deleted = take_out_code(texts, codes)
        self._pieces = [
            MarkedText(piece.ulid, text) if isinstance(piece, MarkedText) else piece
            for piece, text in zip(self._pieces, left, strict=True)
        ]
        gone = set(map(id, deleted))
        for items in self._items.values():
            items[:] = [item for item in items if id(item) not in gone]

    def items(self) -> list[Item]:
        items: list[Item] = []
        call_types: dict[str, str] = {}
        has_remote = False
        for piece in self._pieces:
            if isinstance(piece, MarkedText):
                items += self._text(piece)
            elif isinstance(piece, ToolCall):
                items += self._call(piece)
                call_types.setdefault(piece.call_id, items[-1]["type"])
            else:
                items.append(tool_message_item(piece, call_types))
                has_remote |= is_remote_id(piece.call_id)
        return reorder_remote_outputs(items) if has_remote else items

    def _call(self, call: ToolCall) -> list[Item]:
        ulid, end = self._ends.get(call.call_id, ("", 0))
        *before, stored = self._take_items(ulid, end) or [{}]
        return [*before, stored if stored.get("name") else _call_item(call)]

    def _take_items(self, ulid: str, end: int | None = None) -> list[Item]:
        if ulid not in self._items:
            return []
        items, start = self._items[ulid], self._done.get(ulid, 0)
        self._done[ulid] = max(start, len(items) if end is None else end)
        return items[start:end]

    def _text(self, piece: MarkedText) -> list[Item]:
        items, message = self._take_items(piece.ulid), None
        if items and item_type(items[-1]) == "message":
            last, shown = items[-1], self._shown[piece.ulid]
            if piece.text and shown and shown == text_digest(piece.text):
                return items
            if shown or not (is_commentary(last) and message_text(last)):
                message = items.pop()
        if piece.text:
            items.append(_message_item(message, piece.text))
        return items


def _readable_items(record: Record, reader: Origin | None) -> list[Item]:
    is_ours = bool(reader and reader.can_decrypt(record.origin))
    return [item for item in record.payload if is_replayed(item, is_ours=is_ours)]


def _call_item(call: ToolCall) -> Item:
    kind, key = "function_call", "arguments"
    if call.is_custom:
        kind, key = "custom_tool_call", "input"
    named = {"type": kind, "call_id": call.call_id, "name": call.name}
    return {**named, key: call.arguments}


_Piece = MarkedText | ToolCall | ToolMessage


def _marked_texts(said: AssistantText) -> list[MarkedText]:
    *others, last = said.ulids or ("",)
    pieces = split_at_markers(_strip_old_blocks(said.text), last)
    return [MarkedText(ulid, "") for ulid in others] + pieces


def _message_item(kept: Item | None, shown: str) -> Item:
    if kept is None:
        return text_message("assistant", shown)
    if message_text(kept).strip() == shown:
        return kept
    match kept.get("content"):
        case [{"type": "output_text"} as part]:
            edited: Item = {"annotations": []} if "text" in part else {}
            content = [{**part, "text": shown, **edited}]
        case _:
            content = text_message("assistant", shown)["content"]
    return {**kept, "content": content}


# owui_chat.input.tasks

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_TASK_OBJECTS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "title_generation": ("title", _TEXT),
    "tags_generation": ("tags", _TEXTS),
    "follow_up_generation": ("follow_ups", _TEXTS),
    "query_generation": ("queries", _TEXTS),
    "image_prompt_generation": ("prompt", _TEXT),
    "autocomplete_generation": ("text", _TEXT),
}


_ANSWER_KEYS = (
    "tools tool_choice parallel_tool_calls reasoning reasoning_effort text verbosity "
    "response_format reasoning_summary json_schema"
)


def task_request(
    model: ResolvedModel, messages: Sequence[JsonObject], body: JsonObject, task: str
) -> ResponsesRequest:
    messages = [
        {**as_mapping(m), "content": _clean(value_at(m, "content"))} for m in messages
    ]
    instructions, parts = parse_messages(messages)
    given = {k: v for k, v in body.items() if k not in _ANSWER_KEYS.split()}
    form = _task_format(task, messages)
    if form and model.facts.known_family:
        given["text"] = {"format": form}
    effort, plain = model.lowest_effort(), model._replace(pro=False)
    settings = Settings(effort=effort, stream=False, encrypted_reasoning=False)
    items = build_input(parts, {}, None)
    return build_request(plain, instructions, items, given, settings)


def _task_format(task: str, messages: Sequence[JsonObject]) -> dict[str, Any] | None:
    key, value = _TASK_OBJECTS.get(task, ("", {}))
    if not key or not any(f'"{key}"' in str(m.get("content")) for m in messages):
        return None
    schema = {
        "type": "object",
        "properties": {key: value},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "name": task, "schema": schema, "strict": True}


def task_result(text: str, model: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    if isinstance(content, str):
        return strip_markers(content)
    return list(map(_clean_part, content)) if isinstance(content, list) else content


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": strip_markers(part["text"])}
    return part


# owui_chat.render.chunks

Chunk = dict[str, Any]
Chunks = Iterator[Chunk]


def host_usage(ended: RunDone) -> Chunk:
    usage, cost = ended.usage, ended.cost
    if usage is None:
        return {}
    newest = ended.last_usage or usage
    counts = {
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
        **({} if cost is None else {"cost": cost}),
        **({"response_id": compared} if (compared := ended.trace.response_id) else {}),
    }
    return {"usage": counts}


def error_chunk(sentence: str) -> Chunk:
    return {"error": {"message": sentence}}


def status_chunk(sentence: str) -> Chunk:
    data = {"description": sentence, "done": True}
    return host_event("status", data if sentence else {**data, "hidden": True})


def source_chunk(name: str, text: str) -> Chunk:
    head = {"source": {"name": name}, "document": [text]}
    return host_event("source", {**head, "metadata": [{"source": name}]})


def host_event(kind: str, data: JsonObject) -> Chunk:
    event = {"type": kind, "data": data}
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}


# owui_chat.files

_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def file_citations(item: JsonObject) -> list[Item]:
    parts = content_parts(item.get("content"))
    rows = [row for part in parts for row in content_parts(part.get("annotations"))]
    cited = (row for row in rows if row.get("type") == "container_file_citation")
    return list({str(row.get("file_id")): row for row in cited}.values())


def container_addresses(text: str, name: str) -> list[str]:
    found = dict.fromkeys(_CONTAINER_ADDRESS.findall(text))
    return [one for one in found if PurePosixPath(unquote(one)).name == name]


def link_files(text: str, card: JsonObject) -> str:
    links = card.get("links") or {}
    linked = _CONTAINER_ADDRESS.sub(lambda found: links.get(found[0], found[0]), text)
    return "\n\n".join([linked, *card.get("notes", ())])


def file_lines(card: JsonObject) -> str:
    links = (card.get("links") or {}).items()
    lines = [f"[{PurePosixPath(unquote(one)).name}]({url})" for one, url in links]
    return "".join(f"\n\n{line}" for line in [*lines, *card.get("notes", ())])


# owui_chat.citations

_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

_LINK = re.compile(rf"\[({_LABEL})\]\(({_URL})\)")
_LONGEST_OPEN = 4000

_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
_BEGUN_TRACKING = (
    "".join(f"(?:{letter}" for letter in _TRACKED) + ")?" * len(_TRACKED) + r"\Z"
)
_UNFINISHED_TRACKING = rf"\?{_BEGUN_TRACKING}|&{_BEGUN_TRACKING}"
_TRACKING = re.compile(rf"[?&]{_TRACKED}(?![\w-])")

_OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)


class HoldbackBuffer:
    def __init__(self, unfinished: re.Pattern[str]) -> None:
        self._unfinished = unfinished
        self._held = ""

    def feed(self, text: str) -> str:
        text = self._held + text
        match = self._unfinished.search(text, max(0, len(text) - _LONGEST_OPEN))
        place = match.start() if match else len(text)
        self._held = text[place:]
        return text[:place]

    def rest(self) -> str:
        rest, self._held = self._held, ""
        return rest


def strip_tracking(text: str) -> str:
    if _TRACKED not in text:
        return text
    return _TRACKING.sub("", text.replace(f"?{_TRACKED}&", "?"))


class Citations:
    def __init__(self, known: Iterable[str] = ()) -> None:
        self._numbers = {key: number for number, key in enumerate(known, 1)}
        self._names: dict[str, str] = {}
        self._waiting = deque[str]()
        self._growing: dict[int, tuple[int, HoldbackBuffer]] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self._numbers)

    def feed(self, event: RunEvent) -> Iterable[CitedEvent]:
        if not isinstance(event, TextDelta):
            return self._feed_other(event)
        if event.kind not in ("text", "refusal"):
            return (event,)
        text = self._grow(event)
        return (event if text == event.text else event._replace(text=text),)

    def _feed_other(self, event: RunEvent) -> Iterator[CitedEvent]:
        match event:
            case AnnotationAdded():
                self._name(event.annotation)
                yield event
                yield from self._sources(ended=False)
            case ItemDone() if item_type(event.item) == "message":
                yield from self._rest(event.output_index)
                yield event._replace(shown=self._shown_text(event))
                yield from self._sources(ended=True)
            case ToolOutput():
                yield event
                yield from self._sources(ended=True)
                sources = event.card.get("sources", ())
                for key in source_keys(sources):
                    self._numbers.setdefault(key, len(self._numbers) + 1)
                yield from map(SourceCited, sources)
            case RunDone():
                for index in [*self._growing]:
                    yield from self._rest(index)
                yield from self._sources(ended=True)
                yield event
            case _:
                yield event

    def _rest(self, index: int) -> Iterator[CitedEvent]:
        if text := self._take_held(index):
            yield TextDelta(index, "text", 0, text)

    def _take_held(self, index: int) -> str:
        _, held = self._growing.pop(index, (0, None))
        return self._linked(held.rest()) if held else ""

    def _shown_text(self, ended: ItemDone) -> str:
        content = ended.item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        text = "".join(map(self._shown_part, content_parts(parts)))
        return link_files(text, ended.card)

    def _sources(self, *, ended: bool) -> Iterator[CitedEvent]:
        while self._waiting and (ended or self._waiting[0] in self._names):
            key = self._waiting.popleft()
            name = self._names.get(key, key)
            url = {"url": key} if key.startswith("http") else {}
            head = {"source": {"name": name, **url}, "document": [name]}
            yield SourceCited({**head, "metadata": [{"source": key, "name": name}]})

    def _grow(self, event: TextDelta) -> str:
        index, before = event.output_index, ""
        part, held = self._growing.get(index, (None, None))
        if held is None or part != event.part:
            before, held = self._take_held(index), HoldbackBuffer(_OPEN_LINK)
            self._growing[index] = (event.part, held)
        return before + self._linked(held.feed(event.text))

    def _linked(self, text: str) -> str:
        edits = self._edit_links(text, set()) if _TRACKED in text else []
        return strip_tracking(_apply_edits(text, edits))

    def _edit_links(
        self, text: str, sources: Container[str]
    ) -> list[tuple[int, int, str]]:
        edits = list[tuple[int, int, str]]()
        for link in _LINK.finditer(text):
            (start, end), (label, address) = link.span(), link.groups()
            if not (_TRACKING.search(address) or address in sources):
                continue
            url, label = strip_tracking(address), label.strip()
            shown = f"[{self._number(url)}]"
            names_site = "." in label and " " not in label
            if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                start, end = start - 1, end + 1
            elif not names_site:
                shown = f"[{label}]({url}){shown}"
            edits.append((start, end, shown))
        return edits

    def _shown_part(self, part: Item) -> str:
        text, annotations = part_text(part), content_parts(part.get("annotations"))
        if not annotations:
            return self._linked(text)
        for annotation in annotations:
            self._name(annotation)
        edits = self._edit_links(text, set(map(_key, annotations)))
        starts = [start for start, _, _ in edits]
        ends = [float("-inf"), *(end for _, end, _ in edits)]
        for annotation in annotations:
            key, (start, end) = _key(annotation), _range(annotation, text)
            is_link = "url" in annotation and start < ends[bisect(starts, start)]
            if key and not is_link:
                edits.append((end, end, f"[{self._number(key)}]"))
        return strip_tracking(_apply_edits(text, edits))

    def _number(self, key: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            self._waiting.append(key)
        return self._numbers[key]

    def _name(self, annotation: Item) -> None:
        name = annotation.get("title") or annotation.get("filename")
        if name and _key(annotation):
            self._names[_key(annotation)] = str(name)


def source_keys(sources: object) -> list[str]:
    keys = []
    for source in content_parts(sources):
        rows, own = as_list(source.get("metadata")), value_at(source, "source", "id")
        for place, _ in enumerate(as_list(source.get("document"))):
            row = rows[place] if place < len(rows) else None
            keys.append(str(value_at(row, "source") or own or "N/A"))
    return list(dict.fromkeys(keys))


def _key(annotation: Item) -> str:
    match annotation.get("type"):
        case "url_citation":
            return strip_tracking(str(annotation.get("url") or ""))
        case "file_citation":
            return str(annotation.get("file_id") or annotation.get("filename") or "")
    return ""


def _range(annotation: Item, text: str) -> tuple[int, int]:
    start = annotation.get("start_index", annotation.get("index"))
    last = annotation.get("end_index", annotation.get("index"))
    if not isinstance(start, int) or not isinstance(last, int):
        return len(text), len(text)
    inside_word = text[last - 1 : last].isalnum() and text[last : last + 1].isalnum()
    ends_sentence = text[last : last + 1] in (".", "!", "?") and last > start
    end = last + 1 if inside_word or ends_sentence else last
    return min(start, len(text)), min(end, len(text))


def _apply_edits(text: str, edits: Iterable[tuple[int, int, str]]) -> str:
    pieces, done = [], 0
    for start, end, told in sorted(edits, key=itemgetter(0, 1)):
        pieces += [text[done:start], told]
        done = max(done, end)
    return "".join([*pieces, text[done:]])


def chat_annotations(item: Item, before: int) -> list[Item]:
    annotations: list[Item] = []
    for part in content_parts(item.get("content")):
        find_place = _place_finder(part_text(part))
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "url_citation":
                title = str(annotation.get("title") or "")
                cited: Item = {"url": _key(annotation), "title": title}
                for key in ("start_index", "end_index"):
                    cited[key] = before + find_place(annotation.get(key))
                annotations.append({"type": "url_citation", "url_citation": cited})
        before += find_place(None)
    return annotations


def _place_finder(text: str) -> Callable[[object], int]:
    found = list(_TRACKING.finditer(text))
    starts = [match.start() for match in found]
    gone_before = [0, *accumulate(len(match[0]) for match in found)]

    def find(place: object) -> int:
        old = place if isinstance(place, int) else len(text)
        return old - gone_before[bisect_left(starts, old)]

    return find


# owui_chat.storage.output_carrier

COMMENTARY_TYPE = "openai_responses:remark"


def closing_commentary(output: Sequence[Item]) -> Item | None:
    if open_calls(output):
        return None
    for item in reversed(output):
        if is_call(item) or is_call_output(item) or is_approval_request(item):
            return None
        if item_type(item) == "message" and message_text(item).strip():
            return item if is_commentary(item) else None
    return None


_RECORD_TYPE = "openai_responses:kept"
_RECORD_ID = "kept_"


def record_item(stored: StoredRecord, before: str) -> Item:
    head = {"type": _RECORD_TYPE, "id": f"{_RECORD_ID}{stored.ulid}", "before": before}
    return {**head, "kept": dict(stored.value)}


_Place = tuple[int, int]


def output_values(messages: JsonObject) -> dict[str, Any]:
    return {
        message_key(_item_id(item)): item.get("kept")
        for message in messages.values()
        for item in as_list(as_mapping(message).get("output"))
        if isinstance(item, dict) and item.get("type") == _RECORD_TYPE
    }


def stored_outputs(
    messages: JsonObject, tip: str, more: str = ""
) -> dict[str, list[object]]:
    runs, first = dict[str, list[object]](), ""
    for answer_id, message in reversed([*walk_branch(messages, tip)]):
        if message.get("role") == "user":
            first = ""
        else:
            first = first or answer_id
            runs.setdefault(first, []).append(message.get("output"))
    if first:
        runs[first].append(value_at(messages, more, "output"))
    return runs


def restore_from_outputs(
    parts: Sequence[ChatPart], runs: Mapping[str, Sequence[object]]
) -> list[ChatPart]:
    restored, answer = list[ChatPart](), list[ChatPart]()
    run: Sequence[object] = ()
    for part in parts:
        if isinstance(part, UserMessage):
            restored += [*_merge_output(answer, run), part]
            answer = []
            run = runs.get(part.stored.answer_id, ()) if part.stored else ()
        else:
            answer.append(part)
    return [*restored, *_merge_output(answer, run)]


def _merge_output(
    answer: Sequence[ChatPart], outputs: Sequence[object]
) -> Iterable[ChatPart]:
    run = [item for output in outputs for item in content_parts(output)]
    records, places, is_known = _find_places(answer, run)
    if records and (is_known or _has_call(answer, run)):
        return _with_records(answer, records, places)
    return answer


def _find_places(
    answer: Sequence[ChatPart], run: Sequence[Item]
) -> tuple[list[Item], dict[str, _Place], bool]:
    outputs = {p.call_id: n for n, p in enumerate(answer) if isinstance(p, ToolMessage)}
    records, found = list[Item](), dict[str, _Place]()
    least, is_known = 0, False
    place: _Place | None = (0, 0)
    for item in run:
        kind = item.get("type")
        if kind == _RECORD_TYPE:
            records.append(item)
        elif kind in ("message", CODE_CARD):
            if place and (text := _host_text(item)):
                start, place = _find_text(answer, place, item, text)
                if start:
                    found[_item_id(item)] = start
                is_known |= None not in (start, place)
        elif kind == COMMENTARY_TYPE:
            if place:
                found[_item_id(item)] = place
        elif is_call_output(item):
            number = outputs.get(str(item.get("call_id")), -1)
            if number >= least:
                least, place = number + 1, (number + 1, 0)
    return records, found, is_known


def _find_text(
    answer: Sequence[ChatPart], place: _Place, item: Item, text: str
) -> tuple[_Place | None, _Place | None]:
    number, at = place
    whole = _text(answer, number)
    if at and at == len(whole):
        number, at = number + 1, 0
        whole = _text(answer, number)
    gap = "\n" if at else ""
    if whole.startswith(gap + text, at):
        at += len(gap)
        return (number, at), (number, at + len(text))
    if item.get("type") == CODE_CARD:
        return None, place
    return (None if at or not whole else (number, at)), None


def _has_call(answer: Sequence[ChatPart], run: Sequence[Item]) -> bool:
    call_ids = {str(item.get("call_id")) for item in run if is_call(item)}
    has_call = any(isinstance(p, ToolCall) and p.call_id in call_ids for p in answer)
    return has_call or not any(isinstance(p, AssistantText) for p in answer)


def _with_records(
    answer: Sequence[ChatPart], records: Iterable[Item], places: Mapping[str, _Place]
) -> list[ChatPart]:
    named = defaultdict[int, dict[int, list[str]]](dict)
    for item in records:
        before = item.get("before")
        place = places.get(str(before)) if before else (len(answer), 0)
        if place:
            own = _item_id(item).removeprefix(_RECORD_ID).upper()
            named[place[0]].setdefault(place[1], []).append(own)
    found = list[ChatPart]()
    for number, part in enumerate([*answer, AssistantText("")]):
        if number in named:
            found += _cut_at_records(part, named[number])
        elif number < len(answer):
            found.append(part)
    return found


def _cut_at_records(part: ChatPart, ulids: dict[int, list[str]]) -> list[ChatPart]:
    text = part if isinstance(part, AssistantText) else AssistantText("")
    ulids[0] = [*ulids.get(0, ()), *text.ulids]
    pieces, stop = list[ChatPart](), None
    for start in sorted(ulids, reverse=True):
        pieces.append(AssistantText(text.text[start:stop].strip(), ulids[start]))
        stop = start
    pieces.reverse()
    return pieces if part is text else [*pieces, part]


def _text(answer: Sequence[ChatPart], number: int) -> str:
    part = answer[number] if number < len(answer) else None
    return part.text if isinstance(part, AssistantText) else ""


def _host_text(item: Item) -> str:
    if item.get("type") == CODE_CARD:
        return code_text(as_text(item.get("code")))
    return "".join(
        [
            as_text(part.get("text"))
            for part in as_list(item.get("content"))
            if isinstance(part, dict) and part.get("type") == "output_text"
        ]
    )


def _item_id(item: Item) -> str:
    return str(item.get("id") or "")


# owui_chat.render.completions

_GAP = "\n\n"
_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChunkRenderer:
    def __init__(self, completion_id: str, created: int, model: str) -> None:
        self.head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._open_calls: dict[str, Item] = {}
        self._held = HoldbackBuffer(OPEN_TRACKING)
        self._length = 0
        self._places: dict[str, object] = {}
        self._commentary: dict[int, Item] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._commentary[event.output_index] = event.item
            case TextDelta(kind="text" | "refusal"):
                shown = strip_tracking(self._held.feed(event.text))
                if event.output_index in self._commentary:
                    yield from self._think(event, shown)
                else:
                    gap = self._gap("text", event.output_index)
                    yield from self._add_text(gap + shown)
            case TextDelta(kind="summary" | "reasoning"):
                yield from self._think(event, event.text)
            case ItemDone() if has_image(event.item):
                yield self._chunk({"images": [_chat_image(event.item)]})
            case ItemDone() if item_type(event.item) == "message":
                yield from self._end_message(event)
            case ItemDone() if is_call(event.item):
                self._open_calls[event.item["call_id"]] = event.item
            case ToolOutput():
                self._open_calls.pop(event.item["call_id"], None)
            case RunDone():
                yield from self._end(event)

    def _think(self, event: TextDelta, text: str) -> Chunks:
        gap = self._gap("reasoning", (event.output_index, event.part))
        yield from self._add_reasoning(gap + text)

    def _end_message(self, event: ItemDone) -> Chunks:
        rest = strip_tracking(self._held.rest())
        if event.output_index in self._commentary:
            self._commentary[event.output_index] = event.item
            yield from self._add_reasoning(rest)
        else:
            yield from self._add_text(rest)
            before = self._length - len(_clean_text(event.item))
            if cited := chat_annotations(event.item, before):
                yield self._chunk({"annotations": cited})
        yield from self._add_text(file_lines(event.card))

    def _add_text(self, text: str) -> Chunks:
        self._length += len(text)
        if text:
            yield self._chunk({"content": text})

    def _add_reasoning(self, text: str) -> Chunks:
        if text:
            yield self._chunk({"reasoning_content": text})

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> Chunk:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**self.head, "choices": [choice]}

    def _gap(self, kind: str, place: object) -> str:
        before = self._places.get(kind, place)
        self._places[kind] = place
        return "" if before == place else _GAP

    def _end(self, event: RunDone) -> Chunks:
        yield from self._add_text(self._held.rest())
        closing = closing_commentary(event.output)
        if closing and closing in self._commentary.values():
            gap = _GAP if self._length else ""
            yield from self._add_text(gap + _clean_text(closing))
        for index, call in enumerate(self._open_calls.values()):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self._chunk({"tool_calls": [tool_call]})
        if error := _error(event.ending):
            yield error
        else:
            yield self._chunk({}, _finish_reason(event.ending, bool(self._open_calls)))
        if usage := host_usage(event):
            yield {**self.head, "choices": [], **usage}


def _chat_image(item: Item) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(item)}}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    kind, field, empty = "function", "arguments", "{}"
    if item_type(item) == "custom_tool_call":
        kind, field, empty = "custom", "input", ""
    called = {"name": item.get("name"), field: item.get(field) or empty}
    return {"id": item["call_id"], "type": kind, kind: called}


def _error(ending: Ending) -> Chunk:
    failed = ending.is_failure and ending.kind != "incomplete"
    return error_chunk(ending.sentence) if failed else {}


def _finish_reason(ending: Ending, has_calls: bool) -> str:
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"


def completion(
    ended: RunDone, completion_id: str, created: int, model: str
) -> dict[str, Any]:
    error = _error(ended.ending)
    if error and not ended.output:
        return error
    message = _message(ended)
    finish = _finish_reason(ended.ending, "tool_calls" in message)
    return {
        "id": completion_id,
        "object": "chat.completion",
        "created": created,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        **host_usage(ended),
        **error,
    }


def completion_text(ended: RunDone) -> str:
    return _GAP.join(map(_clean_text, _messages(ended)))


def _messages(ended: RunDone) -> list[Item]:
    found = [item for item in ended.output if item_type(item) == "message"]
    closing = closing_commentary(ended.output)
    told = [i for i in found if not is_commentary(i) or i == closing]
    return told or found


def _clean_text(message: Item) -> str:
    return strip_tracking(message_text(message))


def _annotations(ended: RunDone) -> list[Item]:
    annotations: list[Item] = []
    before = 0
    for message in _messages(ended):
        annotations += chat_annotations(message, before)
        before += len(_clean_text(message)) + len(_GAP)
    return annotations


def _message(ended: RunDone) -> dict[str, Any]:
    further = {
        "reasoning_content": _progress(ended),
        "annotations": _annotations(ended),
        "images": [_chat_image(i) for i in ended.output if has_image(i)],
        "tool_calls": [chat_tool_call(call) for call in open_calls(ended.output)],
    }
    said = {"role": "assistant", "content": completion_text(ended)}
    return said | {name: value for name, value in further.items() if value}


def _progress(ended: RunDone) -> str:
    answer = set(map(id, _messages(ended)))
    steps = [
        item
        for item in ended.output
        if is_reasoning(item) or (is_commentary(item) and id(item) not in answer)
    ]
    texts = (text for item in steps for _, text in item_texts(item) if text)
    return strip_tracking(_GAP.join(texts))


# owui_chat.render.items


def call_host_item(item: Item) -> Item:
    shown = {"status": "completed", **_without_secrets(item)}
    if item_type(item) == "custom_tool_call":
        text = json.dumps({"input": shown.pop("input", "")}, ensure_ascii=False)
        shown |= {"type": "function_call", "arguments": text}
    return shown


def output_host_item(event: ToolOutput) -> Item:
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


def begun_host_item(item: Item) -> Item:
    begun = {**_without_secrets(item), "status": "in_progress"}
    match item_type(item):
        case "message":
            begun |= {"type": "message", "content": [_text_part("")]}
        case "reasoning":
            begun |= {"summary": []}
            begun.pop("content", None)
        case "function_call" | "custom_tool_call":
            begun = {**call_host_item(begun), "arguments": ""}
    return begun


def message_host_item(item: Item, text: str) -> Item:
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def reasoning_host_item(item: Item, seconds: int) -> Item:
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(map(part_text, parts))
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _without_secrets(item: Item) -> Item:
    hidden = "encrypted_content"
    return {k: v for k, v in item.items() if k != hidden and v is not None}


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


_NOT_RUN = "Error: this was not run, because the answer broke off."

_DELTA_TYPES: Mapping[str, str] = {
    "text": "output_text.delta",
    "refusal": "output_text.delta",
    "summary": "reasoning_summary_text.delta",
    "reasoning": "reasoning_text.delta",
    "arguments": "function_call_arguments.delta",
    "code": "code.delta",
}


_FEW_FILES = 32


class OutputItems:
    def __init__(self) -> None:
        self.items: list[Item] = []
        self.files: list[Item] = []
        self._turn_start = self._files_due = 0
        self._answered = set[object]()
        self._open_calls: dict[object, int] = {}
        self._records: dict[object, int] = {}

    def begin(self, item: Item) -> Chunk:
        place = len(self.items)
        self.items.append(item)
        self._note_call(place, item)
        return _native("output_item.added", place, item=item)

    def _note_call(self, place: int, item: Item) -> None:
        call_id = item.get("call_id")
        if is_call_output(item):
            self._answered.add(call_id)
            self._open_calls.pop(call_id, None)
        elif is_call(item) and call_id not in self._answered:
            self._open_calls[call_id] = place

    def end(self, place: int, item: Item) -> Chunk:
        self.items[place] = item
        self._note_call(place, item)
        return _native("output_item.done", place, item=item)

    def update(self, place: int, **fields: Any) -> Chunk:
        return self.end(place, {**self.items[place], **fields})

    def add(self, item: Item) -> Chunks:
        yield self.begin(item)
        yield self.end(len(self.items) - 1, item)

    def add_marker(self, marker: str) -> Chunks:
        place = len(self.items)
        item = message_host_item({"id": f"msg_kept_{place}"}, marker)
        yield self.begin(begun_host_item(item))
        yield self.end(place, item)

    def grow(self, place: int, kind: str, text: str) -> Chunk:
        part = "summary_index" if kind == "summary" else "content_index"
        item_id = self.items[place].get("id")
        grown = {"item_id": item_id, part: 0, "delta": text}
        return _native(_DELTA_TYPES[kind], place, **grown)

    def add_files(self, card: JsonObject) -> Chunks:
        if files := card.get("files"):
            yield host_event("files", {"files": files})
            if self.files:
                yield from self.show_files(files)
            self.files += files

    def show_files(self, more: Sequence[Item] = (), *, is_last: bool = False) -> Chunks:
        count = len(self.files)
        if count > _FEW_FILES if is_last else count >= self._files_due:
            self._files_due = count + count // _FEW_FILES
            event = host_event("chat:message:files", {"files": [*self.files, *more]})
            yield {**event, "choices": []}

    def answer(self, event: ToolOutput) -> Chunks:
        place = self._open_calls.get(event.item["call_id"])
        if place is not None and event.failed:
            yield self.update(place, status="failed")
        yield from self.add(output_host_item(event))

    def break_off_calls(self) -> Chunks:
        for place in [*self._open_calls.values()]:
            yield from self.break_off(place, _NOT_RUN)

    def break_off(self, place: int, why: str) -> Chunks:
        yield self.update(place, status="incomplete")
        output = {"call_id": self.items[place].get("call_id"), "output": why}
        yield from self.add(output_host_item(ToolOutput(place, output, failed=True)))

    def add_record(self, stored: StoredRecord, place: int | None) -> Chunks:
        before = "" if place is None else self.items[place].get("id") or ""
        record = record_item(stored, before)
        earlier = self._records.setdefault(record["id"], len(self.items))
        if earlier < len(self.items):
            yield self.update(earlier, kept=record["kept"])
        else:
            yield from self.add(record)

    def add_details(self, turn: TurnDetails) -> Chunks:
        new = range(self._turn_start, len(self.items))
        self._turn_start = len(self.items)
        place = next((at for at in new if is_reasoning(self.items[at])), None)
        if place is not None:
            yield self.update(place, reasoning_details=[*turn.details])


def _native(kind: str, place: int, **fields: Any) -> Chunk:
    head = {"type": f"response.{kind}", "output_index": place}
    return {**head, **fields, "choices": [{"index": 0, "delta": {}}]}


# owui_chat.render.hosted


class HostedItems:
    def __init__(self, shown: OutputItems) -> None:
        self._shown = shown
        self._open: dict[int, _HostedItem] = {}

    def render(self, event: ItemEvent) -> Chunks:
        index = event.output_index
        if isinstance(event, ItemAdded):
            card = _HOSTED_ITEMS.get(item_type(event.item))
            if card:
                self._open[index] = card(self._shown)
        if index in self._open:
            yield from self._open[index].render(event)
        if isinstance(event, ItemDone):
            self._open.pop(index, None)
            if item_type(event.item) == "mcp_list_tools":
                yield status_chunk(_list_sentence(event.item))

    def break_off(self, event: RunDone) -> Chunks:
        for item in self._open.values():
            yield from item.render(event)


class _HostedItem:
    def __init__(self, shown: OutputItems) -> None:
        self._shown = shown
        self._place = len(shown.items)

    def render(self, event: RunEvent) -> Chunks:
        raise NotImplementedError


_REFUSED = "The picture was not drawn: the safety system refused it."
_FAILED = "The picture could not be drawn."
_BROKE_OFF = "The answer broke off before the picture was finished."


class _ImageHostItem(_HostedItem):
    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                yield status_chunk("Drawing a picture")
            case PartialImage():
                sketch = {"result": event.image, "output_format": event.form}
                picture = {"type": "image", "url": image_url(sketch)}
                yield from self._shown.show_files([picture])
            case ItemDone():
                yield from self._end(event)
                yield from self._shown.add_files(event.card)
            case _:
                yield from self._note(_BROKE_OFF)
                yield from self._shown.show_files()

    def _end(self, event: ItemDone) -> Chunks:
        notes = event.card.get("notes", ())
        if event.item.get("result") and not notes:
            yield status_chunk("Picture drawn")
        else:
            yield from self._note(next(iter(notes), _failure(event.item)))

    def _note(self, sentence: str) -> Chunks:
        part = {"type": "output_text", "text": f"*{sentence}*"}
        number = len(self._shown.items)
        note = {"type": "openai_responses:note", "id": f"note_{number}"}
        yield from self._shown.add({**note, "content": [part]})


def _failure(item: Item) -> str:
    code = value_at(item, "error", "code")
    return _REFUSED if code == "moderation_blocked" else _FAILED


_BROKEN_CODE = "The answer broke off before the code had run."


class _CodeHostItem(_HostedItem):
    def __init__(self, shown: OutputItems) -> None:
        super().__init__(shown)
        self._code: list[str] = []

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = {**event.item, "code": "", "status": "in_progress"}
                yield self._shown.begin(code_host_item(begun))
            case TextDelta():
                self._code.append(event.text)
                yield self._shown.grow(self._place, event.kind, event.text)
            case ItemDone():
                yield self._shown.end(self._place, code_host_item(event.item))
                yield from self._shown.add_files(event.card)
            case _:
                code = replay_code({"code": "".join(self._code)}, _BROKEN_CODE)
                yield self._shown.update(self._place, status="incomplete", code=code)


class _SearchHostItem(_HostedItem):
    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = {**event.item, "status": "in_progress"}
                yield self._shown.begin(_search_host_item(begun))
            case ItemDone():
                yield self._shown.end(self._place, _search_host_item(event.item))
                if search_pages(event.item):
                    yield _pages_chunk(event.item)
            case RunDone():
                yield self._shown.update(self._place, status="incomplete")


def _pages_chunk(item: Item) -> Chunk:
    pages = list(dict.fromkeys(map(strip_tracking, search_pages(item))))
    queries = ", ".join(search_queries(item))
    sites = "1 site" if len(pages) == 1 else f"{len(pages)} sites"
    sought = f" for {queries}" if queries else ""
    head = {"action": "web_search", "description": f"Searched {sites}{sought}"}
    return host_event("status", {**head, "urls": pages, "done": True})


def _search_host_item(item: Item) -> Item:
    shown = {k: v for k, v in item.items() if k != "results" and v is not None}
    action = shown.get("action")
    if isinstance(action, dict):
        rest = {k: v for k, v in action.items() if k != "sources"}
        if isinstance(rest.get("url"), str):
            rest["url"] = strip_tracking(rest["url"])
        shown["action"] = rest
    return shown


_UNKNOWN_OUTCOME = "Error: the answer broke off. The server may have made this call."


class _McpCallHostItem(_HostedItem):
    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = _mcp_call_host_item(event.item, "in_progress")
                yield self._shown.begin({**begun, "arguments": ""})
            case TextDelta():
                yield self._shown.grow(self._place, event.kind, event.text)
            case ItemDone():
                failed, output = remote_failed(event.item), remote_pair(event.item)[1]
                status = "failed" if failed else "completed"
                card = _mcp_call_host_item(event.item, status)
                yield self._shown.end(self._place, card)
                answer = ToolOutput(event.output_index, output, failed)
                yield from self._shown.add(output_host_item(answer))
            case RunDone():
                yield from self._shown.break_off(self._place, _UNKNOWN_OUTCOME)


def _mcp_call_host_item(item: Item, status: str) -> Item:
    call = remote_pair(item)[0]
    return {**call, "id": f"fc_{call['call_id']}", "status": status}


def _list_sentence(item: Item) -> str:
    label, tools = item.get("server_label"), item.get("tools")
    if item.get("error") or not isinstance(tools, list):
        return f"{label} did not list its tools: the answer goes on without them."
    return f"{label} offers {len(tools)} tool{'' if len(tools) == 1 else 's'}."


_HOSTED_ITEMS: Mapping[str, type[_HostedItem]] = {
    "web_search_call": _SearchHostItem,
    "file_search_call": _SearchHostItem,
    "mcp_call": _McpCallHostItem,
    "code_interpreter_call": _CodeHostItem,
    "image_generation_call": _ImageHostItem,
}


# owui_chat.render.commentary


class Commentary:
    def __init__(self, shown: OutputItems) -> None:
        self.place = len(shown.items)
        self._shown = shown
        self._quoted: list[str] = []
        self._length = self._stored = 0
        self._ended: ItemDone | None = None
        self._marker = (self.place, "")

    def render(self, event: ItemEvent, marker: str) -> Chunks:
        match event:
            case ItemAdded():
                yield self._shown.begin(_commentary_item(event.item, "", "in_progress"))
            case TextDelta():
                yield from self._grow(event.text)
            case ItemDone():
                yield from self._end(event, marker)
                yield from self._shown.add_files(event.card)

    def break_off(self) -> Chunks:
        if self._ended is None:
            yield self._whole("incomplete")

    def become_answer(self, closing: Item | None) -> Chunks:
        if self._ended is None or self._ended.item != closing:
            return
        place, marker = self._marker
        if marker:
            item = self._shown.items[self.place]
            yield self._shown.end(self.place, _commentary_item(item, "", "completed"))
        head = {"id": self._shown.items[place].get("id")}
        item = message_host_item(head, marker + self._ended.shown)
        yield self._shown.end(place, item)

    def _grow(self, text: str) -> Chunks:
        if not text:
            return
        more = text.replace("\n", "\n> ") if self._quoted else _quotation(text)
        self._quoted.append(more)
        self._length += len(more)
        if self._length < 2 * self._stored:
            yield self._shown.grow(self.place, "text", more)
        else:
            yield self._whole("in_progress")

    def _whole(self, status: str) -> Chunk:
        self._stored, text = self._length, "".join(self._quoted)
        item = _commentary_item(self._shown.items[self.place], text, status)
        return self._shown.end(self.place, item)

    def _end(self, event: ItemDone, marker: str) -> Chunks:
        self._ended = event
        card = _commentary_item(event.item, _quotation(event.shown), "completed")
        yield self._shown.end(self.place, card)
        if marker:
            self._marker = (len(self._shown.items), marker)
            yield from self._shown.add_marker(marker)


def _quotation(text: str) -> str:
    return "> " + text.replace("\n", "\n> ") if text else ""


def _commentary_item(item: Item, text: str, status: str) -> Item:
    content = [{"type": "output_text", "text": text}] if text else []
    head = {"type": COMMENTARY_TYPE, "id": item.get("id") or ""}
    return {**head, "status": status, "content": content}


# owui_chat.render.native


def _closing_line(seconds: float, ended: RunDone, notes: int) -> str:
    word = "Broke off after" if ended.ending.is_failure else "Finished in"
    parts = [f"{word} {_duration(seconds)}"]
    if ended.usage:
        parts.append(_tokens(ended.usage))
    if ended.cost is not None:
        parts.append(format_money(ended.cost))
    if notes:
        parts.append(f"{notes} note{'s' * (notes > 1)}")
    return " · ".join(filter(None, [*parts, ended.remark]))


def _duration(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "under a second"
    return f"{whole // 60} min {whole % 60} s"


def _tokens(usage: Usage) -> str:
    share = 100 * usage.cached // usage.input if usage.input else 0
    cached = f", {share} % of the input cached" if share else ""
    return f"{usage.total:,} tokens{cached}"


_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


def _end_after_code(shown: OutputItems) -> Chunks:
    last = shown.items[-1] if shown.items else {}
    if last.get("type") == CODE_CARD:
        end = {"type": "openai_responses:end", "id": f"end_{last['id']}"}
        yield from shown.add(end)


class NativeRenderer:
    def __init__(self, now: Callable[[], float], hosted: Any = None) -> None:
        self._now = now
        self._began = now()
        self.shown = OutputItems()
        self._commentary: dict[int, Commentary] = {}
        self._hosted = hosted and hosted(self.shown)
        self._places: dict[int, int] = {}
        self._marker = ""
        self._notes = 0
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._parts: dict[int, int] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        match event:
            case TextDelta() if event.output_index in self._places:
                yield from self._grow(event)
            case ItemAdded() if _is_shown(event.item):
                yield self._start(event)
            case ItemDone() if event.output_index in self._places:
                yield from self._end(event)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                yield from self._render_other(event)
            case Marker():
                self._marker = event.text
            case ToolOutput():
                yield from self.shown.answer(event)
            case RunDone():
                yield from self._end_run(event)
            case _:
                yield from self._render_beside(event)

    def _render_other(self, event: ItemEvent) -> Chunks:
        index = event.output_index
        if isinstance(event, ItemAdded) and is_commentary(event.item):
            self._commentary[index] = Commentary(self.shown)
        if index in self._commentary:
            yield from self._commentary[index].render(event, self._take_marker())
        else:
            yield from self._hosted.render(event) if self._hosted else ()

    def _render_beside(self, event: AnswerEvent) -> Chunks:
        match event:
            case SourceCited():
                yield host_event("source", event.source)
            case Status():
                self._notes += bool(event.sentence)
                yield status_chunk(event.sentence)
            case StoredRecord():
                yield from self.shown.add_record(event, self._place_of(event))
            case TurnDetails():
                yield from self.shown.add_details(event)

    def _place_of(self, stored: StoredRecord) -> int | None:
        index = -1 if stored.output_index is None else stored.output_index
        remark = self._commentary.get(index)
        return remark.place if remark else self._places.get(index)

    def _take_marker(self) -> str:
        marker, self._marker = self._marker, ""
        return marker

    def _end_run(self, event: RunDone) -> Chunks:
        failed = event.ending.is_failure
        yield from self._hosted.break_off(event) if self._hosted else ()
        for commentary in self._commentary.values():
            yield from commentary.break_off()
        closing = closing_commentary(event.output)
        for commentary in self._commentary.values():
            yield from commentary.become_answer(closing)
        if failed:
            yield from self.shown.break_off_calls()
        if marker := self._take_marker():
            yield from self.shown.add_marker(marker)
        yield from self.shown.show_files(is_last=True)
        yield from _end_after_code(self.shown)
        told = self._notes if failed else not open_calls(event.output)
        if self._hosted and told:
            seconds = self._now() - self._began
            yield status_chunk(_closing_line(seconds, event, self._notes))
        if usage := host_usage(event):
            yield {"choices": [{"index": 0, "delta": {}}], **usage}
        if failed:
            yield error_chunk(event.ending.sentence)

    def _start(self, event: ItemAdded) -> Chunk:
        self._places[event.output_index] = len(self.shown.items)
        self._started[event.output_index] = self._now()
        return self.shown.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta) -> Chunks:
        marker = self._take_marker()
        if marker:
            self._markers[event.output_index] = marker
        if text := marker + self._gap(event) + event.text:
            yield self.shown.grow(self._places[event.output_index], event.kind, text)

    def _gap(self, event: TextDelta) -> str:
        before = self._parts.get(event.output_index, event.part)
        self._parts[event.output_index] = event.part
        thought = event.kind in ("summary", "reasoning")
        return "\n\n" if thought and event.part != before else ""

    def _end(self, event: ItemDone) -> Chunks:
        index = event.output_index
        place = self._places[index]
        match item_type(event.item):
            case _ if event.item == NO_THOUGHT:
                del self._places[index]
                item = {**self.shown.items[place], "type": "openai_responses:end"}
            case "message":
                text = self._markers.get(index, "") + event.shown
                item = message_host_item(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[index]
                item = reasoning_host_item(event.item, round(seconds))
            case _:
                item = call_host_item(event.item)
        yield self.shown.end(place, item)
        yield from self.shown.add_files(event.card)


def _is_shown(item: Item) -> bool:
    return item_type(item) in _SHOWN_TYPES and not is_commentary(item)


# owui_chat.storage.details_carrier

_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


class DetailTurn(NamedTuple):
    items: Sequence[tuple[Item, str | int]]
    origin: Origin
    notes: Mapping[str, Any]


def write_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
    sign: Sign | None,
) -> list[Item]:
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes), "index": 0}
    named = {"format": _FORMAT, "turn": name}
    entries = [
        _entry(back, shown)
        for item, shown in items
        for back in replay_output([item], with_reasoning=True)
        if not has_plain_reasoning(back)
    ]
    carried = [{**e, **named, "index": n} for n, e in enumerate(entries, 1)]
    return [sign_object({**head, **named}, sign, carried), *carried]


def read_details(details: object, sign: Sign | None) -> list[DetailTurn]:
    turns: dict[str, list[Item]] = {}
    for entry in content_parts(details):
        if isinstance(entry.get("index"), int):
            turns.setdefault(str(entry.get("turn")), []).append(entry)
    for turn in turns.values():
        turn.sort(key=itemgetter("index"))
    return [*filter(None, (_read_turn(turn, sign) for turn in turns.values()))]


def _entry(item: Item, shown: str) -> Item:
    if is_reasoning(item):
        rest = {k: v for k, v in item.items() if k != "encrypted_content"}
        return {"type": _REASONING, "data": item["encrypted_content"], "item": rest}
    typed = {"type": item_type(item), **item}
    kept = omit_shown_text(typed, shown)
    length = shown if kept is typed else len(shown)
    return {"type": _ITEM, "item": kept, "shown": length}


def _is_entry(entry: Item) -> bool:
    kind, has_item = entry.get("type"), "type" in as_mapping(entry.get("item"))
    is_whole = kind == _ITEM or (kind == _REASONING and "data" in entry)
    is_ours = entry.get("format") == _FORMAT and isinstance(entry.get("turn"), str)
    return is_ours and (kind == _TURN or (has_item and is_whole))


def _read_turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn | None:
    head, carried = entries[0], entries[1:]
    notes = head.get("notes")
    if is_signed(head, sign, carried):
        items = [*map(_carried_item, carried)]
    else:
        entries = [*filter(_is_entry, entries)]
        head = next((entry for entry in entries if entry["type"] == _TURN), {})
        notes = head.get("notes") if is_signed(head, sign) else {}
        items = _items_of_others([e for e in entries if e["type"] != _TURN], sign)
    origin = read_origin(head.get("origin"), "")
    return DetailTurn(items, origin, as_mapping(notes)) if entries else None


def _items_of_others(
    carried: Sequence[Item], sign: Sign | None
) -> list[tuple[Item, str | int]]:
    items = [*map(_carried_item, carried)]
    stubs = harmless_items([item for item, _ in items])
    used = [
        pair if is_signed(entry, sign) else (stub, pair[1] and _length(pair[1]))
        for entry, pair, stub in zip(carried, items, stubs, strict=True)
    ]
    return [(item, shown) for item, shown in used if item]


def _carried_item(entry: Item) -> tuple[Item, str | int]:
    item, shown = entry["item"], entry.get("shown")
    if entry["type"] == _REASONING:
        item = {**item, "encrypted_content": entry["data"]}
    return item, shown if isinstance(shown, str | int) else ""


def _length(shown: str | int) -> int:
    return shown if isinstance(shown, int) else len(shown)


def restore_from_details(
    parts: Iterable[ChatPart], sign: Sign | None
) -> tuple[list[ChatPart], dict[str, Record]]:
    records: dict[str, Record] = {}
    found, textless = list[ChatPart](), list[AssistantText]()
    for part in parts:
        if isinstance(part, AssistantText) and part.details:
            turns = read_details(part.details, sign)
            for one in _name_records(part.text, turns, records):
                (found if one.text else textless).append(one)
            continue
        if isinstance(part, UserMessage):
            found += textless
            textless = []
        found.append(part)
    return [*found, *textless], records


def _name_records(
    content: str, turns: Sequence[DetailTurn], records: dict[str, Record]
) -> Iterator[AssistantText]:
    shown = [text for turn in turns for _, text in turn.items if text]
    texts = iter(_split_text(content if content.strip() else "", shown))
    for turn in turns:
        payload: list[Item] = []
        for number, (item, own) in enumerate(turn.items, 1):
            payload.append(item)
            if own or number == len(turn.items):
                text = next(texts, "") if own else ""
                digest = text_digest(own) if own and isinstance(own, str) else ""
                ulid = f"{len(records):026d}"
                records[ulid] = Record(
                    ulid, "", 0, tuple(payload), "", turn.origin, digest
                )
                yield AssistantText(text, [ulid])
                payload = []
    yield from map(AssistantText, texts)


def _split_text(content: str, shown: Sequence[str | int]) -> list[str]:
    texts, start = list[str](), 0
    for one in shown[:-1]:
        length = _length(one)
        end = start + length
        if length < 0 or content[end : end + 1] != "\n":
            return [content] if content else []
        texts.append(content[start:end])
        start = end + 1
    return [*texts, content[start:]] if content[start:] else texts


# owui_chat.storage.images


def stored_item(event: ItemDone) -> Item:
    files = event.card.get("files")
    if not is_image_call(event.item) or not files:
        return event.item
    form = event.item.get("output_format")
    return {
        "type": event.item["type"],
        **({"output_format": form} if form else {}),
        "stored": files[0]["id"],
    }


def is_stored_image(item: JsonObject) -> bool:
    return is_image_call(item) and isinstance(item.get("stored"), str)


def stored_image_ids(
    parts: Iterable[ChatPart], records: Mapping[str, Record]
) -> list[str]:
    drawn = {
        ulid: ids
        for ulid, record in records.items()
        if (ids := [i["stored"] for i in record.payload if is_stored_image(i)])
    }
    texts = [p for p in parts if drawn and isinstance(p, AssistantText)]
    named = {piece.ulid for p in texts for piece in split_at_markers(p.text)}
    named = named.union(*(p.ulids for p in texts))
    return [file_id for ulid in named for file_id in drawn.get(ulid, ())]


def restore_images(
    records: Mapping[str, Record], pictures: Mapping[str, str]
) -> dict[str, Record]:
    return {
        ulid: record._replace(payload=tuple(_fill_images(record.payload, pictures)))
        for ulid, record in records.items()
    }


def _fill_images(
    payload: Iterable[Item], pictures: Mapping[str, str]
) -> Iterator[Item]:
    for item in payload:
        if not is_stored_image(item):
            yield item
        elif item["stored"] in pictures:
            yield {**item, "result": pictures[item["stored"]]}


# owui_chat.storage.recorder

_EARLIER = -1

Carrier = Literal["markers", "output", "details"]


class RecordScope(NamedTuple):
    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool
    cites: bool = False
    delegates: bool = False
    carrier: Carrier = "markers"
    sign: Sign | None = None


class NewRecord(NamedTuple):
    record: Record
    output_index: int | None


_RecorderEvent = CitedEvent | Marker | TurnDetails | NewRecord


class Recorder:
    def __init__(
        self,
        scope: RecordScope,
        new_record: Callable[[], tuple[str, int]],
        pending: Iterable[Item] = (),
    ) -> None:
        self._scope = scope
        self._new_record = new_record
        self._pending = [(_EARLIER, item) for item in pending]
        self._messages: dict[int, Item] = {}
        self._records: dict[int, Record] = {}
        self._after_message = False
        self._commentary: set[int] = set()
        self._last_commentary: tuple[ItemDone, Record] | None = None
        self._turn: dict[int, tuple[Item, str]] = {}

    @property
    def pending(self) -> list[Item]:
        return [item for _, item in self._pending]

    def feed(self, event: CitedEvent) -> Iterable[_RecorderEvent]:
        if isinstance(event, TextDelta) and event.output_index not in self._messages:
            return (event,)
        in_details = self._scope.carrier == "details"
        collect = self._collect_turn if in_details else self._collect
        return (*collect(event), event)

    def _collect(self, event: CitedEvent) -> Iterator[_RecorderEvent]:
        match event:
            case ItemAdded() if is_commentary(event.item):
                self._commentary.add(event.output_index)
            case ItemAdded() if item_type(event.item) == "message":
                self._messages[event.output_index] = event.item
            case TextDelta() if event.output_index in self._messages:
                item = self._messages.pop(event.output_index)
                yield from self._begin(event.output_index, item, event.kind)
            case ItemDone() if event.output_index in self._commentary:
                yield from self._add_commentary(event)
            case ItemDone() if item_type(event.item) == "message":
                self._messages.pop(event.output_index, None)
                self._after_message = True
                yield from self._amend(event)
            case ItemDone():
                self._wait(event.output_index, stored_item(event))
            case RunDone():
                yield from self._close(event)

    def _collect_turn(self, event: CitedEvent) -> Iterator[_RecorderEvent]:
        if isinstance(event, ItemDone):
            self._turn[event.output_index] = (stored_item(event), event.shown)
        elif isinstance(event, ResponseDone | RunDone) and self._turn:
            turn = [self._turn[index] for index in sorted(self._turn)]
            self._turn = {}
            closing = closing_commentary([item for item, _ in turn])
            pairs = [
                (item, "" if is_commentary(item) and item != closing else shown)
                for item, shown in turn
            ]
            name, origin = self._new_record()[0], self._scope.origin
            details = write_details(name, pairs, origin, {}, self._scope.sign)
            yield TurnDetails(details)

    def _close(self, event: RunDone) -> Iterator[_RecorderEvent]:
        if self._last_commentary:
            ended, record = self._last_commentary
            if ended.item == closing_commentary(event.output):
                shown = text_digest(ended.shown)
                yield NewRecord(record._replace(shown=shown), None)
        if self._scope.delegates and leaves_calls(event):
            return
        while self._pending and is_reasoning(self._pending[-1][1]):
            self._pending.pop()
        if self._pending:
            yield from self._with_marker(self._record(), None)

    def _wait(self, index: int, item: Item) -> None:
        if self._is_kept(item):
            for one in replay_items(item):
                if not is_call_output(one):
                    insort(self._pending, (index, one), key=itemgetter(0))

    def _is_kept(self, item: Item) -> bool:
        if is_call(item):
            return item.get("status") != "incomplete"
        is_update = item_type(item) == CONFIGURATION
        if has_encrypted_reasoning(item) or is_compaction(item) or is_update:
            return self._scope.keeps_reasoning
        return is_kept_hosted(item) or is_stored_image(item) or is_tool_search(item)

    def _begin(self, index: int, item: Item, kind: str) -> Iterator[_RecorderEvent]:
        is_marked = self._scope.cites or item.get("phase") or self._after_message
        if self._pending or is_marked or kind == "refusal":
            plain = self._pending and not item.get("phase")
            stub = {**_stored_message(item), "content": [UNSHOWN_TEXT]}
            self._records[index] = self._record(*() if plain else (stub,))
            yield from self._with_marker(self._records[index], index)

    def _amend(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        record = self._records.pop(ended.output_index, None)
        text = message_text(ended.item)
        if record is None:
            if text == text.strip() or self._pending or self._scope.carrier != "output":
                return
            record = self._record()
        before = tuple(i for i in record.payload if item_type(i) != "message")
        kept = omit_shown_text(_stored_message(ended.item), ended.shown)
        is_plain = kept.get("content") == [UNSHOWN_TEXT] and not kept.get("phase")
        again = record._replace(
            payload=before if before and is_plain else (*before, kept),
            shown="" if ended.shown == text else text_digest(ended.shown),
        )
        if again != record:
            yield NewRecord(again, ended.output_index)

    def _add_commentary(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        if message_text(ended.item).strip():
            self._after_message = True
            record = self._record(_stored_message(ended.item))
            self._last_commentary = (ended, record)
            yield from self._with_marker(record, ended.output_index)

    def _with_marker(
        self, record: Record, index: int | None
    ) -> Iterator[_RecorderEvent]:
        yield NewRecord(record, index)
        if self._scope.carrier == "markers":
            yield Marker(format_marker(record.kind, record.ulid))

    def _record(self, *message: Item) -> Record:
        (ulid, created_at), scope = self._new_record(), self._scope
        payload = (*self.pending, *message)
        self._pending = []
        return Record(
            ulid, scope.model, created_at, payload, scope.message_id, scope.origin
        )


def leaves_calls(ended: RunDone) -> bool:
    return bool(open_calls(ended.output)) and not ended.ending.is_failure


def _stored_message(item: Item) -> Item:
    return {**strip_for_replay(item), "type": "message"}


# owui_chat.host_tools

CALL_TOOL = "call_tool"

HOST_ERROR_PREFIXES = ("error:", "exception:", "traceback", "http error!")

TOOL_IMAGES_PREFIX = "Here are the images from the tool results above."


def read_call_tool(arguments: JsonObject) -> tuple[Any, dict[str, Any]] | None:
    params = parse_json_object(arguments.get("params"))
    return None if params is None else (arguments.get("tool_name"), params)


# owui_chat.input.attachments

_SIGNATURE = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8)|"
    rb"(?P<webp>RIFF.{4}WEBP)",
    re.DOTALL,
)
_HEAD = 24
_GIF_FRAME = b"\x00\x21\xf9\x04"


def _image_type(content: bytes) -> str:
    found = _SIGNATURE.match(content)
    moves = found and found["gif"] and content.count(_GIF_FRAME) > 1
    return f"image/{found.lastgroup}" if found and not moves else ""


def image_data_url(content: bytes) -> str:
    kind = _image_type(content)
    return f"data:{kind};base64,{base64.b64encode(content).decode()}" if kind else ""


def _readable_url(url: str) -> str:
    if url.startswith(("https://", "http://")):
        return url
    label, _, payload = url.partition(";base64,")
    is_held = label[:5].lower() == "data:" and len(url) <= _LONGEST_URL
    kind = _encoded_type(payload) if is_held else ""
    return f"data:{kind};base64,{payload}" if kind else ""


def _encoded_type(payload: str) -> str:
    try:
        kind = _image_type(base64.b64decode(payload[:_HEAD]))
        is_gif = kind == "image/gif"
        return _image_type(base64.b64decode(payload)) if is_gif else kind
    except ValueError:  # no base64, or not even ASCII
        return ""


PDF_TYPE = "application/pdf"
_OFFICE = "application/vnd.openxmlformats-officedocument"
_DOCUMENT_TYPES = {
    "pdf": PDF_TYPE,
    "csv": "text/csv",
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "htm": "text/html",
    "html": "text/html",
    "json": "application/json",
    "md": "text/markdown",
    "odt": "application/vnd.oasis.opendocument.text",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rtf": "application/rtf",
    "tsv": "text/tab-separated-values",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    "xml": "text/xml",
}
_PLAIN_TEXT = (
    "c cc cpp cs css go h hpp ini java js jsx kt log lua php pl py r rb rs sh sql swift "
    "tex toml ts tsx txt vb yaml yml"
)


def document_type(name: str, declared: str) -> str:
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PLAIN_TEXT.split():
        return "text/plain"
    kind = declared.partition(";")[0].strip().lower()
    is_read = kind in _DOCUMENT_TYPES.values() or kind.startswith("text/")
    return _DOCUMENT_TYPES.get(suffix) or (kind if is_read else "")


def document_part(name: str, kind: str, content: bytes) -> Item:
    url = f"data:{kind};base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": url}


GONE_FILE = (
    "{} cannot be read: it is gone, or it is not yours. Remove it from the message and "
    "send it again."
)
_UNKNOWN_PICTURE = (
    "{} is in a form that the model cannot read. It reads PNG, JPEG, WEBP, and GIF that "
    "does not move: convert it and send it again."
)
_LARGE_PICTURE = (
    "{} is larger than the 50 MB that the model reads, and Open WebUI could not make it "
    "smaller. Attach a smaller one."
)
_DRAWING = (
    "The model reads {} as text and cannot see the picture. Attach a PNG instead."
)
_Scale = Callable[[str], bytes]

_LONGEST_URL = 66_000_000
_MOST_PICTURES = 1500
_LARGEST_INPUT = 512_000_000
_TOO_MUCH = (
    f"[A picture or file is left out: one request takes {_MOST_PICTURES} pictures and "
    f"{_LARGEST_INPUT // 1_000_000} MB.]"
)


def attach_files(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    result, users = list(parts), user_messages(parts)
    files = {
        place: _read_attachments(part.stored.row.get("files"))
        for place, part in users.items()
        if part.stored and rows
    }
    if users and not rows:
        own, others = _files_without_row(metadata)
        first, last = min(users), max(users)
        files = {last: own, first: others + (own if first == last else [])}
    for place, attachments in files.items():
        result[place] = users[place]._replace(attachments=attachments)
    return result


def _read_attachments(files: object) -> list[Attachment]:
    found = list[Attachment]()
    for row in content_parts(files):
        kind, content_type = row.get("type"), str(row.get("content_type") or "")
        if kind in ("file", "image") and row.get("id") and not row.get("knowledge"):
            is_image = kind == "image" or content_type.startswith("image/")
            name = str(row.get("name") or "")
            found.append(Attachment(str(row["id"]), name, content_type, is_image))
    return found


def resolve_images(parts: Sequence[ChatPart], scale: _Scale) -> list[ChatPart]:
    question = question_index(parts)
    return [
        (
            _with_readable(part, scale, is_asked=place == question)
            if isinstance(part, UserMessage)
            else part
        )
        for place, part in enumerate(parts)
    ]


def drawing_notice(parts: Sequence[ChatPart]) -> str:
    asked = user_messages(parts).get(question_index(parts))
    files = asked.attachments if asked else ()
    names = [f.name for f in files if f.content_type.startswith("image/svg")]
    return _DRAWING.format(", ".join(names)) if names else ""


def image_length(part: ChatPart) -> int:
    parts = part.content if isinstance(part, UserMessage) else ()
    return sum(len(str(one.get("image_url"))) for one in parts)


def question_index(parts: Sequence[ChatPart]) -> int:
    return max(user_messages(parts), default=-1)


def part_or_note(found: Item | str, *, is_asked: bool) -> Item:
    if not isinstance(found, str):
        return found
    if is_asked:
        raise InvalidRequest(found)
    return {"type": "input_text", "text": f"[{found}]"}


def fit_input(items: Sequence[Item]) -> list[Item]:
    left = [_MOST_PICTURES, _LARGEST_INPUT]
    return [_fit_item(item, left) for item in reversed(items)][::-1]


def _fit_item(item: Item, left: list[int]) -> Item:
    key = "output" if "output" in item else "content"
    rows = item.get(key)
    if not isinstance(rows, list) or not any(map(_held_file, rows)):
        return item
    return {**item, key: [_fit_part(part, left) for part in reversed(rows)][::-1]}


def _held_file(part: Any) -> Any:
    if not isinstance(part, dict):
        return None
    return part.get("image_url") or part.get("file_data")


def _fit_part(part: Item, left: list[int]) -> Item:
    if not (held := _held_file(part)):
        return part
    left[0] -= item_type(part) == "input_image"
    left[1] -= len(str(held))
    return part if min(left) >= 0 else {"type": "input_text", "text": _TOO_MUCH}


def _files_without_row(
    metadata: JsonObject,
) -> tuple[list[Attachment], list[Attachment]]:
    own = _read_attachments(value_at(metadata, "user_message", "files"))
    knowledge = value_at(metadata, "model", "info", "meta", "knowledge")
    known = {str(row.get("id")) for row in content_parts(knowledge)}
    known.update(found.file_id for found in own)
    others = _read_attachments(metadata.get("files"))
    return own, [found for found in others if found.file_id not in known]


def _with_readable(
    message: UserMessage, scale: _Scale, *, is_asked: bool
) -> UserMessage:
    shown = [part for part in message.content if part.get("image_url")]
    if not shown:
        return message
    names = [found.name for found in message.attachments if found.is_image]
    left, parts = iter(names if len(names) == len(shown) else ()), list[Item]()
    for part in message.content:
        found: Item | str = part
        if part.get("image_url"):
            found = _readable_part(part, next(left, ""), scale)
        parts.append(part_or_note(found, is_asked=is_asked))
    return message.with_content(parts)


def _readable_part(part: Item, name: str, scale: _Scale) -> Item | str:
    url = str(part["image_url"])
    readable, is_held = _readable_url(url), url[:5].lower() == "data:"
    why = _UNKNOWN_PICTURE if is_held else GONE_FILE
    if is_held and len(url) > _LONGEST_URL:
        readable = image_data_url(scale(url.partition(",")[2]))
        why = _LARGE_PICTURE
    picture = {**part, "image_url": readable}
    return picture if readable else why.format(name or "A picture")


_HOST_PROMPT = f"{TOOL_IMAGES_PREFIX} Please analyze them."

UNREADABLE_IMAGE = "[A picture is in a form that you cannot read; the user sees it.]"


def add_tool_images(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    users = user_messages(parts).items()
    made = {place: urls for place, part in users if (urls := _tool_image_urls(part))}
    if not made:
        return list(parts)
    result: list[ChatPart] = []
    bare = 0  # where the last outputs begin; they get pictures once
    counts = _image_counts(rows)
    for place, part in enumerate(parts):
        urls = made.get(place, [])
        last = result[bare:] if urls else []
        if outputs := [one for one in last if isinstance(one, ToolMessage)]:
            result[bare:] = _assign_images(outputs, urls, counts)
            bare = len(result)
        else:
            result.append(part)
            bare = bare if isinstance(part, ToolMessage) else len(result)
    return result


def tool_image(url: str) -> Item:
    if readable := _readable_url(url):
        return {"type": "input_image", "detail": "auto", "image_url": readable}
    return {"type": "input_text", "text": UNREADABLE_IMAGE}


def append_images(text: str, images: Sequence[Item]) -> str | list[Item]:
    return [{"type": "input_text", "text": text}, *images] if images else text


def _tool_image_urls(message: UserMessage) -> list[str]:
    first, *images = message.content or [{}]
    if first.get("text") != _HOST_PROMPT:
        return []
    urls = [str(image.get("image_url") or "") for image in images]
    return urls if all(urls) else []


def _assign_images(
    outputs: Sequence[ToolMessage], urls: Sequence[str], counts: Mapping[str, int]
) -> list[ChatPart]:
    shares = [counts.get(output.call_id, 0) for output in outputs]
    if sum(shares) != len(urls):
        shares = [*[0] * (len(outputs) - 1), len(urls)]
    left = iter(urls)
    return [
        output._replace(
            output=append_images(
                str(output.output), [tool_image(url) for url in islice(left, share)]
            )
        )
        for output, share in zip(outputs, shares, strict=True)
    ]


def _image_counts(rows: JsonObject) -> dict[str, int]:
    outputs = (content_parts(value_at(row, "output")) for row in rows.values())
    return {
        str(item.get("call_id")): sum(
            item_type(part) == "input_image"
            for part in content_parts(item.get("output"))
        )
        for item in chain.from_iterable(outputs)
        if item.get("id") == f"fco_{item.get('call_id')}"  # as our cards have it
    }


# owui_chat.input.prefix

_MOST_CHARACTERS = 200_000


def _find_injected_context(message: UserMessage) -> JsonObject | None:
    words = message.stored.words if message.stored else ""
    texts: list[str] = [p["text"] for p in message.content if _is_input_text(p)]
    place = next((n for n, text in enumerate(texts) if words in text), None)
    size = sum(map(len, texts)) - len(words)
    if place is None or not 0 < size <= _MOST_CHARACTERS:
        return None
    whole = texts[place]
    before, _, after = whole.rpartition(words) if words else (whole, "", "")
    around = [*texts[:place], [before, after], *texts[place + 1 :]]
    return {"words": text_digest(words), "texts": around}


def _apply_injected_context(
    message: UserMessage, words: str, injected: JsonObject
) -> UserMessage:
    parts = message.content
    is_there = any(_is_input_text(part) and words in part["text"] for part in parts)
    if not is_there or injected.get("words") != text_digest(words):
        return message
    texts = (t if isinstance(t, str) else words.join(t) for t in injected["texts"])
    others = [part for part in parts if not _is_input_text(part)]
    sent = [{"type": "input_text", "text": text} for text in texts]
    return message.with_content([*sent, *others])


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"


_SENT_KEY = "sent"

_Unseal = Callable[[str, str], object]


class SentContext(NamedTuple):
    injected: JsonObject | None = None
    instructions: str | None = None
    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    turn: Turn | None = None

    def wire(self) -> dict[str, Any]:
        found = {**self._asdict(), "turn": self.turn and self.turn.wire()}
        return {key: value for key, value in found.items() if value not in (None, ())}


_NOTHING = SentContext()


def add_sent_context(value: JsonObject, sealed: str) -> dict[str, Any]:
    return {**value, _SENT_KEY: sealed} if sealed else dict(value)


def read_sent_context(chat: JsonObject, unseal: _Unseal) -> dict[str, SentContext]:
    prefix = message_key("")
    found: dict[str, SentContext] = {}
    for key, value in chat.items():
        sealed = as_mapping(value).get(_SENT_KEY)
        if key.startswith(prefix) and isinstance(sealed, str):
            owner = str(value.get("message_id") or key.removeprefix(prefix))
            with suppress(Exception):  # another version may have written it
                found[owner] = _read_context(unseal(sealed, owner))
    return found


def capture_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    instructions: str | None,
) -> SentContext:
    messages = (part for part in reversed(parts) if isinstance(part, UserMessage))
    injected = next((_find_injected_context(m) for m in messages if m.stored), None)
    if instructions is None or (first := first_instructions(parts, sent)) is None:
        return SentContext(injected, instructions)
    told, given = _lines(first), _lines(instructions)
    for one in _in_order(parts, sent):
        for line in one.gone:
            told.pop(line, None)
        told |= dict.fromkeys(one.new)
    new = tuple(line for line in given if line not in told)
    gone = tuple(line for line in told if line not in given)
    return SentContext(injected, new=new, gone=gone)


def first_instructions(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext]
) -> str | None:
    found = (one.instructions for one in _in_order(parts, sent))
    return next((one for one in found if one is not None), None)


def model_turns(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext], model: str
) -> dict[str, Turn]:
    turns: dict[str, Turn] = {}
    for stored in stored_messages(parts):
        turn = sent.get(stored.answer_id, _NOTHING).turn
        if turn and turn.model == model and (turns or turn.base):
            turns = {} if turn.base else turns
            turns[stored.answer_id] = turn
    return turns


def apply_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    items: Mapping[str, Sequence[Item]],
) -> list[ChatPart]:
    found: list[ChatPart] = []
    for part in parts:
        if isinstance(part, UserMessage) and (stored := part.stored):
            context = sent.get(stored.answer_id, _NOTHING)
            added = (*_news(context), *items.get(stored.answer_id, ()))
            found += map(UserMessage, added)
            injected = context.injected or {}
            found.append(_apply_injected_context(part, stored.words, injected))
        else:
            found.append(part)
    return found


def _news(sent: SentContext) -> list[Item]:
    lines = ["The instructions have changed."]
    if sent.new:
        lines += ["New lines:", *sent.new]
    if sent.gone:
        lines += ["Lines that no longer hold:", *sent.gone]
    changed = len(lines) > 1
    return [text_message("developer", "\n".join(lines))] if changed else []


def _in_order(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext]
) -> list[SentContext]:
    return [sent.get(one.answer_id, _NOTHING) for one in stored_messages(parts)]


def _lines(text: str) -> dict[str, None]:
    return dict.fromkeys(line for line in text.splitlines() if line.strip())


def _read_context(wire: Any) -> SentContext:
    injected, turn = wire.get("injected"), str(wire.get("turn") or "")
    return SentContext(
        {key: injected[key] for key in ("words", "texts")} if injected else None,
        wire.get("instructions"),
        tuple(wire.get("new", ())),
        tuple(wire.get("gone", ())),
        read_turn(turn) if turn else None,
    )


# owui_chat.input.directive_words

DETAILED = """
03a45b 078c8e 0d4183 0e91ef 10d840 138dce 13b536 15a9dc 163e47 17b649 18df80
29de7f 2e4b93 32c287 347147 38f3bd 390989 3998d2 4526b5 505603 57b144 5cb98f
5edd93 62c2c8 63068c 6411bb 6527f3 70d47d 76aa65 7b24ea 7c9e0a 7d7646 7e07e1
830a7a 9874ca 9a3059 9bf1c5 a13b35 a39afb a60e81 a617ed a7ea08 abfbd8 ae1911
aeece0 b0f55b b765b1 ba5901 bcd184 c69792 c80f54 cdf936 ce72b2 cea309 d48086
eed41b f6374c f87c63 fa34f8
"""

CONCISE = """
0434e0 07c416 14f978 181692 19b4d0 1e4852 2284bb 25a02f 2c7347 30ccda 36c1f1
36d7ba 39c49c 3de689 46bc29 481781 4b1a74 4c9e08 4f236a 540704 57f61e 6257c5
63d83e 6716da 6eb68c 7129e6 76bcb2 776531 7833d8 7982e9 7aab4f 7adcf1 7e3c59
891c2b 8c25e2 8edac0 94cd05 9a6477 9c7406 a1f6bd a63ebf a6fe53 a78aed a7d652
b5b614 b626eb b6aeea b6f538 c162d1 c4a122 d16f5e dee774 e46994 e8cb0d f59e1a
f7c9fe fd7fb4
"""


# owui_chat.input.directives


def words_digest(words: str) -> str:
    return hex_digest(words.strip())[:6]


def take_directive(
    parts: Sequence[ChatPart], *, is_guided: bool
) -> tuple[list[ChatPart], str]:
    users = user_messages(parts)
    question, wish = [*users][-2:] if len(users) > 1 else (0, 0)
    verbosity = _requested_verbosity(users[wish]) if wish else ""
    if not verbosity or not (is_guided or wish == question + 1):
        return list(parts), ""
    return [*parts[: question + 1], *parts[wish + 1 :]], verbosity


def _requested_verbosity(message: UserMessage) -> str:
    digest = words_digest(message_text(message.item))
    if digest in DETAILED.split():
        return "high"
    return "low" if digest in CONCISE.split() else ""


# owui_manifold.log

_LOGGER = logging.getLogger("openai_responses_manifold")

LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}

_KEPT_LINES = 2000
_LONGEST_LINE = 4000


class RunLog:
    def __init__(self, threshold: str, secrets: Iterable[str], run_id: str) -> None:
        self.run_id = run_id
        self._threshold = LOG_LEVELS[threshold]
        self._secrets = tuple(secrets)
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def hide(self, secret: str) -> None:
        self._secrets += (secret,)

    def line(self, level: str, text: str) -> None:
        one_line = redact_line(text[: 2 * _LONGEST_LINE], self._secrets)[:_LONGEST_LINE]
        time = datetime.fromtimestamp(unix_seconds(), UTC)
        with self._lock:
            self._lines.append(f"{time:%Y-%m-%d %H:%M:%S} {level:<8} {one_line}")
        if LOG_LEVELS[level] >= self._threshold:
            _write(level, f"{self.run_id} {one_line}")

    def warn(self, text: str) -> None:
        self.line("WARNING", text)

    def audit(self, line: str) -> None:
        _write("INFO", redact(line, self._secrets))

    def text(self) -> str:
        with self._lock:
            return "\n".join(self._lines)


def _write(level: str, line: str) -> None:
    number = max(LOG_LEVELS[level], logging.INFO)
    text = line if LOG_LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)


# owui_manifold.valves

_LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_Summary = Literal["auto", "concise", "detailed", "disabled"]
_Tier = Literal["auto", "default", "flex", "priority", "fast", "ultrafast"]
_Choice = Literal["inherit", "on", "off"]


def _valve(default: object, text: str, *, secret: bool = False, **limits: Any) -> Any:
    return Field(
        default=default,
        description=f"{text} {_default_sentence(default)}",
        json_schema_extra={"input": {"type": "password"}} if secret else None,
        **limits,
    )


def _default_sentence(default: object) -> str:
    if isinstance(default, bool):
        return f"Default: {'on' if default else 'off'}."
    return f"Default: `{default}`." if default != "" else "Default: empty."


class Valves(BaseModel):
    model_config = ConfigDict(allow_inf_nan=False)

    API_KEY: str = _valve(
        "",
        "Empty: the environment variable `OPENAI_API_KEY` of Open WebUI.",
        secret=True,
    )
    BASE_URL: str = _valve(
        DEFAULT_BASE_URL, "Address of the Responses API, with or without `/v1`."
    )
    ORGANIZATION: str = _valve("", "Organization to bill, if the key has several.")
    PROJECT: str = _valve("", "Project to bill, if the key has several.")
    EXTRA_HEADERS: str = _valve(
        "", 'Headers to add or replace: `{"X-Team": "blue"}`.', secret=True
    )
    AUTH: Literal["key", "bearer", "entra_id"] = _valve(
        "key",
        "How the key is sent: `key` as the server expects it, `bearer` as a bearer "
        "token. `entra_id` sends a token of Microsoft Entra ID instead.",
    )
    AUTH_SCOPE: str = _valve("", "Scope of Entra ID tokens. Empty: that of Azure.")
    FORWARD_USER_INFO: Literal["auto", "always", "never"] = _valve(
        "auto",
        "Send Open WebUI's headers about the user, if its "
        "ENABLE_FORWARD_USER_INFO_HEADERS is on; `auto`: not to OpenAI and Azure.",
    )
    COMPATIBILITY: Literal["auto", "openai", "strict"] = _valve(
        "auto",
        "`auto` and `openai` send what OpenAI knows, but not again what a server "
        "refused. `strict` sends only what every server knows.",
    )

    MODEL_ID: str = _valve(
        "gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2",
        "Models to offer, separated by commas; a name can end with an effort. `auto` "
        "lists the newest of each family, `gpt-5-auto` chooses one for each chat.",
    )
    FETCH_MODELS: bool = _valve(
        True,
        "`auto` in MODEL_ID lists only what the server offers for this key; notices "
        "use its days of shutdown.",
    )
    MODEL_OVERRIDES_JSON: str = _valve(
        "",
        'Corrections to what is known about models: `{"my-deployment": {"like": '
        '"gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = _valve(
        "gpt-6-luna",
        "Model for titles and other tasks, at its lowest effort. If empty, or "
        "unchanged at another server than OpenAI's: the chat's own.",
    )
    BACKGROUND_MODELS: str = _valve(
        "",
        "Models whose answers survive a broken connection: names or patterns "
        "(`*-pro`), separated by commas. OpenAI stores their requests and answers for "
        "30 days, which breaks zero data retention; never in `strict`.",
    )

    ENABLE_WEB_SEARCH: bool = _valve(
        False, "Offer OpenAI's web search in every chat. Searches are billed."
    )
    MAP_WEB_SEARCH: bool = _valve(
        True, "The page's Web Search switch means OpenAI's search, not Open WebUI's."
    )
    WEB_SEARCH_CONTEXT_SIZE: Literal["low", "medium", "high"] = _valve(
        "medium", "How much of the pages found the model reads. More costs more."
    )
    WEB_SEARCH_USER_LOCATION: str = _valve(
        "",
        "`city, region, country, timezone` (`Bern, BE, CH, Europe/Zurich`), or a JSON "
        "object of these.",
    )
    WEB_SEARCH_ALLOWED_DOMAINS: str = _valve(
        "", "Domains to search, with subdomains, separated by commas. Empty: all."
    )
    ENABLE_IMAGE_GENERATION: bool = _valve(
        False, "Let the model draw pictures; each is billed and stored."
    )
    IMAGE_GENERATION_OPTIONS: str = _valve(
        '{"partial_images": 2}',
        "A JSON object: `quality`, `size`, `background`, `output_format`, `model`, "
        "`partial_images` (previews, 0 to 3).",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = _valve(
        "auto",
        "How closely the model looks at attached pictures, unless the request says it. "
        "`low` costs less.",
    )
    ENABLE_CODE_INTERPRETER: bool = _valve(
        False,
        "Let the model run Python in a billed container at OpenAI. Its files are stored.",
    )
    FILE_SEARCH_VECTOR_STORES: str = _valve(
        "", "Up to two vector stores: `vs_1, vs_2`."
    )
    FILE_INPUT: Literal["off", "pdf", "all"] = _valve(
        "off",
        "Attached files that the model reads itself and whole. With `pdf` or `all` "
        "(documents), turn off the model's File Context, or Open WebUI sends their "
        "text again.",
    )
    REMOTE_MCP_SERVERS_JSON: str = _valve(
        "",
        "Servers that OpenAI calls, as a JSON list of objects: `server_label`, "
        "`server_url` or `connector_id`, `authorization`, `headers`, `allowed_tools`, "
        "`require_approval` (users are asked unless it is `never`), "
        "`server_description`.",
        secret=True,
    )

    REASONING_SUMMARY: _Summary = _valve(
        "auto",
        "OpenAI gives summaries to verified organizations only; otherwise choose "
        "`disabled`.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = _valve(
        "conversation",
        "Where the model gets its encrypted reasoning back: nowhere, within an answer, "
        "or in the whole conversation (stored in the chat).",
    )
    PERSIST_TOOL_RESULTS: bool = _valve(
        True,
        "Send tool calls and results again in later turns. Off: not, nor the reasoning "
        "before them.",
    )
    HISTORY_CARRIER: Literal["output", "markers"] = _valve(
        "output",
        "Where a chat keeps what it does not show: in Open WebUI's stored output of "
        "each answer, or under keys of its own, with lines that copies of answers "
        "show. Both are read.",
    )
    STORE_ENCRYPTION_KEY: str = _valve(
        "",
        "A long random text that protects what chats store. After a change, older "
        "chats are read only in part. Empty: the server's WEBUI_SECRET_KEY.",
        secret=True,
    )
    STABLE_INSTRUCTIONS: Literal["auto", "on", "off"] = _valve(
        "auto",
        "Keep the first instructions of a chat and send changes (a date, a memory) "
        "with the next message: reasoning and the prompt cache stay valid. `auto`: "
        "from gpt-5.6 on.",
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = _valve(
        "chat",
        "Which requests share OpenAI's prompt cache: a chat's, a user's, or as OpenAI "
        "decides. Only a hash is sent.",
    )
    PROMPT_CACHE_DIAGNOSTICS: bool = _valve(
        False,
        "Log why OpenAI's prompt cache missed, from gpt-5.6 on.",
    )
    TRUNCATION: Literal["disabled", "auto"] = _valve(
        "disabled",
        "When a chat is too long, `auto` drops its oldest messages, with reasoning and "
        "the prompt cache; `disabled` shows an error.",
    )
    COMPACTION_TOKENS: int = _valve(
        0,
        "Let OpenAI compact a chat whose input has more tokens. 0: never; not with "
        "Azure.",
        ge=0,
    )
    MAX_OUTPUT_TOKENS: int = _valve(
        0, "Limit of one answer, with reasoning. 0: that of the model.", ge=0
    )

    TOOL_EXECUTION: Literal["pipe", "open_webui"] = _valve(
        "pipe",
        "Who runs the tools: this pipe, in parallel and within limits, or Open WebUI, "
        "one by one with its lasting approvals, unless TOOL_APPROVAL has a rule for "
        "one of them.",
    )
    PARALLEL_TOOL_CALLS: bool = _valve(True, "Let the model call tools in parallel.")
    MAX_FUNCTION_CALL_LOOPS: int = _valve(
        10, "Most rounds of tool calls before the model has to answer.", ge=1
    )
    MAX_TOOL_CALLS: int = _valve(100, "Most tool calls in one answer.", ge=1)
    TOOL_TIMEOUT_SECONDS: float = _valve(
        120,
        "Time limit of a tool call, without people's time; calls made at once have "
        "five times as long together.",
        gt=0,
    )
    TOOL_TIMEOUTS: str = _valve(
        "",
        "Other limits in seconds, for tools by name or pattern: `crawl_*: 600, render: "
        "1800`. Open WebUI's sub-agents and pictures have an hour.",
    )
    TOOL_OUTPUT_CHARACTERS: int = _valve(
        100_000, "The model gets the beginning and the end of a longer output.", ge=1000
    )
    TOOL_APPROVAL: str = _valve(
        "",
        "Rules `pattern=auto`, `ask` or `deny`, separated by commas: `delete_*=ask, "
        "shell=deny`; other tools follow the chat controls. A rule holds for a tool's "
        "name in the chat and its own, without a server's id.",
    )
    AUTO_NATIVE_TOOLS: bool = _valve(
        False, "Change Function Calling of models from Legacy to Native."
    )
    ENABLE_STRICT_TOOL_CALLING: bool = _valve(
        False, "Have OpenAI enforce the schemas of tools where they are simple."
    )

    USER_MAY_CHANGE: str = _valve(
        "effort, summary, verbosity, web_search, code_interpreter, show_cost, "
        "log_level",
        "Settings that users may change, separated by commas; also `image_generation`, "
        "`service_tier` (expensive), `all`, `nothing`. Administrators change all.",
    )
    CALLER_MAY_SET: str = _valve(
        "",
        "What requests may set that is the administrator's, separated by commas: "
        "parameters, types of OpenAI's tools, fields (`mcp.server_url`); "
        "`admin:service_tier` for administrators alone.",
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = _valve(
        "off",
        "Whether users can, or must, set their own key, also for tasks. Administrators "
        "may always use this pipe's.",
    )
    USER_KEYS_GET: Literal["nothing", "headers", "all"] = _valve(
        "nothing",
        "What goes out with a user's own key: `headers` sends EXTRA_HEADERS, `all` "
        "also the remote MCP servers, with their tokens, and the vector stores.",
    )

    SHOW_COST: bool = _valve(
        False,
        "Show the cost of an answer in its last status line and usage: tokens and web "
        "searches only.",
    )
    CUSTOM_MODEL_PRICING_JSON: str = _valve(
        "",
        'US dollars per million tokens, instead of known prices: `{"my-model": '
        '{"input": 2, "cached": 0.5, "output": 8}}`.',
    )
    SERVICE_TIER: _Tier = _valve(
        "auto",
        "`flex` is slower and costs half, `fast` (or `priority`) double, `ultrafast` 3 "
        "to 6 times, if model and project have them.",
    )

    ENABLE_STREAM: bool = _valve(
        True,
        "Off: each answer comes whole, for servers or organizations that may not "
        "stream.",
    )
    MAX_RETRIES: int = _valve(
        2, "How often a request that failed before any text is sent again, 0 to 5."
    )
    MAX_RETRY_WAIT_SECONDS: float = _valve(
        60, "If the server asks for a longer wait, the error is shown.", ge=0
    )
    CONNECT_TIMEOUT_SECONDS: float = _valve(
        30, "Time limit to open a connection.", gt=0
    )
    FIRST_EVENT_TIMEOUT_SECONDS: float = _valve(
        300, "Longest wait for an answer to begin, 30 to 900."
    )
    IDLE_TIMEOUT_SECONDS: float = _valve(
        300, "Longest silence within an answer, also in reasoning, 30 to 900."
    )
    TOTAL_TIMEOUT_SECONDS: float = _valve(
        0, "Limit of an answer, without tools' and people's time. 0: none.", ge=0
    )
    VERIFY_SSL: bool = _valve(
        True,
        "Check the server's certificate. Off is for tests only: others on the network "
        "can then read the key.",
    )
    CA_BUNDLE: str = _valve(
        "", "Path of a file of certificates to trust instead of the system's."
    )
    PROXY: str = _valve(
        "",
        "Address of an HTTP proxy, also with user and password. Empty: the "
        "environment's HTTPS_PROXY and NO_PROXY.",
        secret=True,
    )

    AUDIT_LOG: bool = _valve(
        False,
        "Log one JSON line per request, success and error, without text of the chat. "
        "So does `OPENAI_GPT5_AUDIT_LOG=true` in the environment.",
    )
    LOG_LEVEL: _LogLevel = _valve(
        "INFO", "Lowest level in the server's log, which holds no key or chat text."
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        return "user" if value in ("id", "email") else value

    @field_validator("MAX_RETRIES", mode="before")
    @classmethod
    def _clamp_retries(cls, value: object) -> object:
        return clamp_number(value, 0, 5, 2)

    @field_validator(
        "FIRST_EVENT_TIMEOUT_SECONDS", "IDLE_TIMEOUT_SECONDS", mode="before"
    )
    @classmethod
    def _clamp_silence(cls, value: object) -> object:
        return clamp_number(value, 30, 900, 300)

    def effective_key(self) -> str:
        return self.API_KEY.strip() or os.environ.get("OPENAI_API_KEY", "").strip()

    def remembers_reasoning(self) -> bool:
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        return self.PERSIST_REASONING_TOKENS != "disabled"

    def writes_audit_log(self) -> bool:
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.AUDIT_LOG or by_environment == "true"


class UserValves(BaseModel):
    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = _valve(
        "inherit",
        "How long a model thinks. `max` is the most that it has; another effort that "
        "it lacks is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", _Summary] = _valve(
        "inherit", "Show a summary of the reasoning."
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = _valve(
        "inherit", "How long answers are."
    )
    WEB_SEARCH: _Choice = _valve("inherit", "Let the model search the web with OpenAI.")
    IMAGE_GENERATION: _Choice = _valve("inherit", "Let the model draw pictures.")
    CODE_INTERPRETER: _Choice = _valve("inherit", "Let the model run Python at OpenAI.")
    SERVICE_TIER: Literal["inherit", _Tier] = _valve(
        "inherit", "`flex` is cheaper and slower, `fast` and `ultrafast` cost more."
    )
    SHOW_COST: _Choice = _valve("inherit", "Show the cost of an answer.")
    LOG_LEVEL: Literal["inherit", _LogLevel] = _valve(
        "inherit",
        "What the server's log says about your chats: more than the administrator "
        "chose, never less.",
    )
    API_KEY: str = _valve(
        "",
        "Your own key for OpenAI, if allowed. It pays for your chats.",
        secret=True,
        max_length=2000,
    )
    SHOW_LOG_ON_ERROR: bool = _valve(
        False, "For administrators: show the log of a failed answer as a source."
    )


# owui_manifold.config

_Read = TypeVar("_Read")


class Config(NamedTuple):
    valves: Valves
    secrets: tuple[str, ...]
    problems: tuple[str, ...]

    own_key: str
    overrides: Mapping[str, ResolvedModel] | InvalidRequest
    remote: RemoteServers
    approval_rules: ApprovalRules
    tool_timeouts: Sequence[tuple[str, float]]
    prices: Mapping[str, ModelPrices] | InvalidRequest

    effort: str | None
    summary: str
    verbosity: str | None
    service_tier: str
    web_search: bool
    replaces_search: bool
    code_interpreter: bool
    image_generation: bool
    shows_cost: bool
    shows_log: bool
    log_level: str
    refused: Sequence[str]
    token: str = ""
    identity: Mapping[str, str] = MappingProxyType({})


def read_config(
    valves: Valves, user: JsonObject | None = None, metadata: JsonObject | None = None
) -> Config:
    host, person = metadata or {}, user or {}
    is_admin = person.get("role") == "admin"
    stored = person.get("valves")
    given = stored if isinstance(stored, UserValves) else UserValves()
    wanted, filter_error = _with_switches(given, host.get(_FILTER_KEY))
    own = _allowed_choices(wanted, valves, is_admin)
    own_key = own.API_KEY.strip() if valves.USER_API_KEYS != "off" else ""
    remote = read_servers(valves.REMOTE_MCP_SERVERS_JSON)
    rules, rules_error = read_rules(valves.TOOL_APPROVAL, PIPE_VALVES)
    timeouts, timeouts_error = read_timeouts(valves.TOOL_TIMEOUTS, PIPE_VALVES)
    prices = _read_or_error(read_prices, valves.CUSTOM_MODEL_PRICING_JSON)
    price_error = str(prices) if isinstance(prices, InvalidRequest) else ""
    problems = (rules_error, timeouts_error, _permission_error(valves), filter_error)
    allowed = _for_own_key(valves) if own_key else valves
    switches = as_mapping(host.get("features"))
    is_mapped = valves.MAP_WEB_SEARCH and bool(switches.get("web_search"))
    level = _choice(own.LOG_LEVEL, valves.LOG_LEVEL)
    searches = _choice(own.WEB_SEARCH, valves.ENABLE_WEB_SEARCH or is_mapped)
    return Config(
        valves=allowed,
        secrets=_secrets(valves, own.API_KEY.strip(), *remote.secrets),
        problems=tuple(filter(None, (*problems, price_error))),
        own_key=own_key,
        overrides=_read_or_error(read_overrides, valves.MODEL_OVERRIDES_JSON),
        remote=remote if allowed.REMOTE_MCP_SERVERS_JSON else RemoteServers(),
        approval_rules=rules,
        tool_timeouts=timeouts,
        prices=prices,
        effort=_choice(own.REASONING_EFFORT, None),
        summary=_choice(own.REASONING_SUMMARY, valves.REASONING_SUMMARY),
        verbosity=_choice(own.VERBOSITY, None),
        service_tier=_choice(own.SERVICE_TIER, valves.SERVICE_TIER),
        web_search=searches,
        replaces_search=searches and is_mapped,
        code_interpreter=_choice(own.CODE_INTERPRETER, valves.ENABLE_CODE_INTERPRETER),
        image_generation=_choice(own.IMAGE_GENERATION, valves.ENABLE_IMAGE_GENERATION),
        shows_cost=_choice(own.SHOW_COST, valves.SHOW_COST),
        shows_log=own.SHOW_LOG_ON_ERROR and is_admin,
        log_level=min(valves.LOG_LEVEL, level, key=LOG_LEVELS.__getitem__),
        refused=_refused_choices(wanted, own, valves),
    )


def _secrets(valves: Valves, *others: str) -> tuple[str, ...]:
    headers = parse_string_map(valves.EXTRA_HEADERS)
    values = [valves.EXTRA_HEADERS] if headers is None else headers.values()
    keys = (valves.effective_key(), valves.STORE_ENCRYPTION_KEY)
    return connection_secrets(values, valves.PROXY, *keys, *others)


def _read_or_error(read: Callable[[str], _Read], text: str) -> _Read | InvalidRequest:
    try:
        return read(text)
    except InvalidRequest as error:
        return error


def _choice(own: str, default: Any) -> Any:
    return {"inherit": default, "on": True, "off": False}.get(own, own)


_FILTER_KEY = "openai_responses"
_FILTER_VERSION = 1
_SWITCHES = {"web_search": "WEB_SEARCH", "code_interpreter": "CODE_INTERPRETER"}

_OTHER_FILTER_VERSION = (
    "The switches of the composer do nothing: they are of another version than this "
    "pipe. Install both from the same release."
)

_CHOICES: Mapping[str, str] = {
    "effort": "REASONING_EFFORT",
    "summary": "REASONING_SUMMARY",
    **{
        name.lower(): name
        for name in (
            *("VERBOSITY", "WEB_SEARCH", "CODE_INTERPRETER", "IMAGE_GENERATION"),
            *("SERVICE_TIER", "SHOW_COST", "LOG_LEVEL"),
        )
    },
}


def _with_switches(user: UserValves, given: object) -> tuple[UserValves, str]:
    if not isinstance(given, Mapping):
        return user, ""
    if given.get("version") != _FILTER_VERSION:
        return user, _OTHER_FILTER_VERSION
    changed = {valve: "on" for switch, valve in _SWITCHES.items() if given.get(switch)}
    if given.get("thinking") in REASONING_EFFORTS:
        changed["REASONING_EFFORT"] = str(given["thinking"])
    return user.model_copy(update=changed), ""


def _allowed_choices(user: UserValves, valves: Valves, is_admin: bool) -> UserValves:
    words = _permitted_words(valves)
    if is_admin or "all" in words:
        return user
    fields = UserValves.model_fields
    reset = {v: fields[v].default for word, v in _CHOICES.items() if word not in words}
    return user.model_copy(update=reset)


def _refused_choices(wanted: UserValves, own: UserValves, valves: Valves) -> list[str]:
    names = _CHOICES.values()
    lost = [name for name in names if getattr(wanted, name) != getattr(own, name)]
    if valves.USER_API_KEYS == "off" and wanted.API_KEY.strip():
        lost.append("API_KEY")
    return lost


def _permission_error(valves: Valves) -> str:
    known = (*_CHOICES, "all", "nothing")
    advice = f"Choose from {', '.join(known)}."
    return unknown_words("USER_MAY_CHANGE", _permitted_words(valves), known, advice)


def _permitted_words(valves: Valves) -> set[str]:
    return set(comma_list(valves.USER_MAY_CHANGE.lower()))


def comma_list(text: str) -> list[str]:
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(word for word in words if word))


def _for_own_key(valves: Valves) -> Valves:
    names = ["ORGANIZATION", "PROJECT"]
    if valves.USER_KEYS_GET != "all":
        names += ["REMOTE_MCP_SERVERS_JSON", "FILE_SEARCH_VECTOR_STORES"]
    if valves.USER_KEYS_GET == "nothing":
        names.append("EXTRA_HEADERS")
    return valves.model_copy(update=dict.fromkeys(names, ""))


OWN_KEY_PLACE = (
    "API_KEY in your settings of this pipe: the slider icon beside the chat input, or "
    "Controls > Valves."
)
_NO_OWN_KEY = f"This pipe wants an OpenAI API key of your own. Set {OWN_KEY_PLACE}"
_NO_KEY = (
    "This pipe has no API key yet. An administrator has to set API_KEY in the valves "
    "of this pipe (Admin Panel > Functions > the gear beside it)."
)
_BILLED_HEADERS = ("authorization", "api-key", "openai-organization", "openai-project")


def build_endpoint(
    valves: Valves, own_key: str = "", *, is_admin: bool = True
) -> Endpoint:
    if not own_key and valves.USER_API_KEYS == "required" and not is_admin:
        raise InvalidRequest(_NO_OWN_KEY)
    key = own_key or valves.effective_key()
    takes_token = valves.AUTH == "entra_id" and not own_key
    if not key and not takes_token:
        raise InvalidRequest(_NO_KEY)
    headers = parse_string_map(valves.EXTRA_HEADERS)
    if headers is None:
        problem = "EXTRA_HEADERS is not a JSON object of texts"
        raise valve_error(problem, '{"X-Team": "blue"}')
    billed = _BILLED_HEADERS if own_key else ()
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key="" if takes_token else key,
        token=key if valves.AUTH == "bearer" else "",
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers={k: v for k, v in headers.items() if k.lower() not in billed},
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=valves.PROXY.strip(),
        strict=valves.COMPATIBILITY == "strict",
        is_alike=valves.COMPATIBILITY == "openai",
    )


_MOST_ACCOUNTS = 1000


class AccountCapabilities(RecentTexts):
    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        super().__init__(now)
        self.shutdown_dates: Mapping[str, str] = {}
        self.dropped = Counter[str]()
        self._repairs: dict[str, tuple[Repair, ...]] = {}

    def repairs(self, endpoint: Endpoint, model: str, user: str) -> tuple[Repair, ...]:
        scopes = (
            f"{endpoint.account()} {model} {one}" for one in dict.fromkeys(("", user))
        )
        found = ((s, repair) for s in scopes for repair in self._repairs.get(s, ()))
        return tuple(repair for scope, repair in found if f"{scope} {repair}" in self)

    def learn(self, endpoint: Endpoint, model: str, user: str, repair: Repair) -> None:
        scope = f"{endpoint.account()} {model} {user}"
        if len(self._repairs) >= _MOST_ACCOUNTS:
            self._repairs.clear()
        if self.first_time(f"{scope} {repair}"):
            known = (one for one in self._repairs.get(scope, ()) if one != repair)
            self._repairs[scope] = (*known, repair)


_PRO_SILENCE = 900.0


def run_limits(valves: Valves, model: ResolvedModel) -> Limits:
    least = _PRO_SILENCE if model.pro or "-pro" in model.id else 0.0
    return Limits(
        timeouts=Timeouts(
            connect=valves.CONNECT_TIMEOUT_SECONDS,
            first_event=max(valves.FIRST_EVENT_TIMEOUT_SECONDS, least),
            idle=max(valves.IDLE_TIMEOUT_SECONDS, least),
            total=valves.TOTAL_TIMEOUT_SECONDS,
        ),
        retries=RetryPolicy(valves.MAX_RETRIES, valves.MAX_RETRY_WAIT_SECONDS),
    )


# owui_manifold.threads

_SHARE = 8

_USED_UP = (
    f"Error: The tool was not started: {_SHARE} earlier calls still run after their time "
    "limit. Tell the user to try again later, and an administrator if it lasts."
)


class UserThreads(ThreadPoolExecutor):
    def __init__(self) -> None:
        super().__init__(_SHARE, "sync-tool")
        self.abandoned = set[Future[Any]]()

    async def run(self, work: Callable[[], Any]) -> Any:
        if len(self.abandoned) >= _SHARE:
            return _USED_UP
        future = self.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.abandoned.add(future)
            future.add_done_callback(self._forget)
            raise

    def _forget(self, future: Future[Any]) -> None:
        self.abandoned.discard(future)


ToolThreads = WeakValueDictionary[str, UserThreads]


# owui_manifold.context

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]


class HostContext(NamedTuple):
    tools: Mapping[str, JsonObject]
    request: Any
    metadata: JsonObject
    event_call: EventCall | None
    event_emitter: Any


_ROWLESS_CHATS = ("temporary:", "local:", "channel:")


class Caller(NamedTuple):
    host_model: str
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    streams: bool = False
    is_admin: bool = False

    @property
    def model(self) -> str:
        return self.host_model.split(".", 1)[-1]

    @property
    def host_reads(self) -> bool:
        return bool(self.chat_id and self.message_id)

    @property
    def may_have_row(self) -> bool:
        return self.host_reads and not self.chat_id.startswith(_ROWLESS_CHATS)


def read_caller(
    body: JsonObject,
    user: JsonObject | None,
    metadata: JsonObject | None,
    task: str | None,
) -> Caller:
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


class PipeCall(NamedTuple):
    body: JsonObject
    caller: Caller
    config: Config
    state: Any
    capabilities: AccountCapabilities
    log: RunLog
    host: HostContext
    threads: ToolThreads
    user: JsonObject = MappingProxyType({})
    account: Any = None

    @property
    def valves(self) -> Valves:
        return self.config.valves

    @property
    def page(self) -> Any:
        waits = self.caller.host_reads and not self.caller.task
        return self.host.event_emitter if waits else None

    @property
    def model_id(self) -> str:
        return str(self.host.metadata.get("model_id") or self.caller.host_model)

    @property
    def messages(self) -> list[dict[str, Any]]:
        return as_list(self.body.get("messages"))

    @property
    def endpoint(self) -> Endpoint:
        config, is_admin = self.config, self.caller.is_admin
        made = build_endpoint(config.valves, config.own_key, is_admin=is_admin)
        headers = {**config.identity, **made.extra_headers}
        return replace(made, token=config.token or made.token, extra_headers=headers)

    @property
    def model(self) -> ResolvedModel:
        chosen = self.chosen_model
        is_azure = Endpoint(self.valves.BASE_URL, "").is_azure
        return (not is_azure and replacement(chosen, utc_today())) or chosen

    @property
    def chosen_model(self) -> ResolvedModel:
        model = self.resolve(self.caller.model)
        if ends := self.capabilities.shutdown_dates.get(model.id):
            return model._replace(facts=model.facts._replace(shutdown=ends))
        return model

    @property
    def facts(self) -> JsonObject:
        caller, base_url = self.caller, self.valves.BASE_URL
        told = {"user": self.user, "model": caller.model, "base_url": base_url}
        return caller._asdict() | told | {"has_own_key": bool(self.config.own_key)}

    def warn_once(self, text: str) -> None:
        if self.capabilities.first_time(text):
            self.log.warn(text)

    def resolve(self, name: str) -> ResolvedModel:
        if isinstance(self.config.overrides, InvalidRequest):
            raise self.config.overrides
        return resolve_model(name, self.config.overrides)


# owui_manifold.host

_FLOOR = (0, 11, 4)


class NewFile(NamedTuple):
    name: str
    kind: str
    content: bytes


def require_floor() -> None:
    version = _host_name("env", "VERSION")
    numbers = [int(number) for number in re.findall(r"\d+", str(version))[:3]]
    if tuple(numbers) < _FLOOR:
        floor = ".".join(map(str, _FLOOR))
        raise InvalidRequest(
            f"This pipe needs Open WebUI {floor} or newer; this server runs "
            f"{version}. An administrator has to update Open WebUI."
        )


async def read_chat(chat_id: str, user_id: str) -> JsonObject | None:
    chats = _host_name("models.chats", "Chats")
    row = await chats.get_chat_by_id_and_user_id(chat_id, user_id)
    return row.chat if row is not None and isinstance(row.chat, Mapping) else None


async def write_chat_keys(chat_id: str, values: JsonObject) -> bool:
    chats = _host_name("models.chats", "Chats")
    row = await chats.update_chat_by_id(chat_id, dict(values), touch=False)
    return row is not None


def server_secret() -> str:
    try:
        return str(_host_name("env", "WEBUI_SECRET_KEY") or "")
    except InvalidRequest:
        return ""


async def user_model(user_id: str) -> Any:
    return await _host_name("models.users", "Users").get_user_by_id(user_id)


async def identity_headers(host: HostContext, user_id: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    with suppress(InvalidRequest):  # a host that has no such headers
        if user_id and _host_name("env", "ENABLE_FORWARD_USER_INFO_HEADERS"):
            include = _host_name("utils.headers", "include_user_info_headers")
            headers = include({}, await user_model(user_id), request=host.request)
            if chat_id := host.metadata.get("chat_id"):
                name = _host_name("env", "FORWARD_SESSION_INFO_HEADER_CHAT_ID")
                headers[name] = quote(str(chat_id), ":", errors="replace")
    return headers


_ADMINISTRATION = "openai_responses_administration"


async def active_administration(request: Any) -> Any:
    if request is None:
        return None
    context = _host_name("utils.filter", "get_filter_context")(request)
    active = [name for name, _ in await context.get_active_filters()]
    if _ADMINISTRATION not in active:
        return None
    load = _host_name("utils.filter", "get_function_module")
    found = await load(request, _ADMINISTRATION)
    if getattr(found, "CONTRACT", 0) != 1:
        raise InvalidRequest("An administrator has to update this pipe and its filter.")
    found.valves = await context.get_function_valves(
        active, _ADMINISTRATION, found.Valves
    )
    return found


async def legacy_model(model_id: str) -> Any:
    row = await _host_name("models.models", "Models").get_model_by_id(model_id)
    params = row.params.model_dump() if row is not None else {}
    return row if params.get("function_calling") == "legacy" else None


async def administrator_params(model_id: str) -> dict[str, Any]:
    config = _host_name("models.config", "Config")
    stored = [await config.get("models.default_params", {}) or {}]
    row = await _host_name("models.models", "Models").get_model_by_id(model_id)
    owner = await user_model(row.user_id) if row is not None else None
    if owner is not None and owner.role == "admin":
        stored.append(row.params.model_dump())
    flat = [{**params, **(params.get("custom_params") or {})} for params in stored]
    return {key: _parsed(value) for params in flat for key, value in params.items()}


def _parsed(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


async def allowed_features(metadata: JsonObject, user: JsonObject) -> JsonObject:
    asked = as_mapping(metadata.get("features"))
    if not asked.get("web_search") or user.get("role") == "admin":
        return metadata
    about = as_mapping(value_at(metadata, "model", "info", "meta", "capabilities"))
    config = _host_name("models.config", "Config")
    has_permission = _host_name("utils.access_control", "has_permission")
    rights = await config.get("user.permissions", {})
    if (
        about.get("web_search", True)
        and await config.get("web.search.enable", False)
        and await has_permission(user.get("id"), "features.web_search", rights)
    ):
        return metadata
    return {**metadata, "features": {**asked, "web_search": False}}


async def make_native(row: Any) -> bool:
    kept = row.model_dump(include={"id", "base_model_id", "name", "meta", "is_active"})
    native = {**row.params.model_dump(), "function_calling": "native"}
    form = _host_name("models.models", "ModelForm")(**kept, params=native)
    models = _host_name("models.models", "Models")
    return await models.update_model_by_id(row.id, form) is not None


async def file_row(file_id: str, user: Any) -> Any:
    row = await _host_name("models.files", "Files").get_file_by_id(file_id)
    if row is None or user is None or not row.path:
        return None
    if row.user_id == user.id or user.role == "admin":
        return row
    may_read = _host_name("utils.access_control.files", "has_access_to_file")
    return row if await may_read(file_id, "read", user) else None


def stored_bytes(path: str) -> bytes:
    storage = _host_name("storage.provider", "Storage")
    return Path(storage.get_file(path)).read_bytes()


_LONGEST_SIDE = 2048


def scale_image(encoded: str) -> bytes:
    scaled = BytesIO()
    try:
        file = BytesIO(b64decode(encoded))
        with import_module("PIL.Image").open(file) as image:
            image.thumbnail((_LONGEST_SIDE, _LONGEST_SIDE))
            image.convert("RGB").save(scaled, "JPEG")
    except Exception:  # no Pillow, a damaged picture, too many pixels
        return b""
    return scaled.getvalue()


async def update_tool(function: Any, messages: list[Any], files: list[Any]) -> Any:
    update = _host_name("utils.tools", "get_updated_tool_function")
    fresh = {"__messages__": messages, "__files__": files}
    return await update(function=function, extra_params=fresh)


async def process_tool_result(
    host: HostContext,
    user: Any,
    name: str,
    tool: JsonObject,
    params: dict[str, Any],
    result: Any,
) -> tuple[str, list[dict[str, Any]], list[Any]]:
    build = _host_name("utils.middleware", "build_terminal_file_tool_result")
    process = _host_name("utils.middleware", "process_tool_result")
    shown = build(name, params, result, tool, host.metadata) or result
    kind, direct = tool.get("type", ""), bool(tool.get("direct"))
    text, files, embeds = await process(
        host.request, name, shown, kind, direct, host.metadata, user
    )
    if host.event_emitter is not None:
        tell = _host_name("utils.middleware", "terminal_event_handler")
        await tell(name, params, str(text or ""), host.event_emitter)
    return str(text or ""), files, embeds


def citation_sources(
    name: str, params: dict[str, Any], text: str, tool_id: str
) -> list[dict[str, Any]]:
    read = _host_name("utils.middleware", "get_citation_source_from_tool_result")
    return list(
        read(tool_name=name, tool_params=params, tool_result=text, tool_id=tool_id)
    )


async def stored_image(host: HostContext, user: Any, url: str) -> str:
    store = _host_name("utils.middleware", "store_tool_result_image")
    return str(await store(host.request, url, host.metadata, user))


async def store_file(
    request: Any, file: NewFile, place: Mapping[str, str], user: Any
) -> dict[str, Any] | None:
    upload = _host_name("routers.files", "upload_file_handler")
    refused = _host_name("routers.files", "HTTPException")
    arriving = _host_name("routers.files", "UploadFile")(
        BytesIO(file.content), filename=file.name, headers={"content-type": file.kind}
    )
    try:
        row = await upload(
            request, file=arriving, metadata=dict(place), process=False, user=user
        )
    except refused:
        return None
    if place:
        chats = _host_name("models.chats", "Chats")
        await chats.insert_chat_files(**place, file_ids=[row.id], user_id=user.id)
    url = request.app.url_path_for("get_file_content_by_id", id=row.id)
    entry = {"id": row.id, "url": str(url), "name": file.name}
    return {**entry, "content_type": file.kind}


def _host_name(module: str, name: str) -> Any:
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this pipe needs. An administrator has to update the pipe or Open WebUI."
        ) from None


# owui_manifold.files

_MOST_BYTES = 50_000_000

_TOO_LARGE = (
    "With {} the files of this chat come to more than 50 MB, and one request takes no "
    "more. Attach a smaller file, or start a new chat."
)
_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")

_Made = TypeVar("_Made")


async def _read_file(row: Any, make: Callable[[bytes], _Made]) -> _Made | None:
    try:
        return await asyncio.to_thread(lambda: make(stored_bytes(row.path)))
    except (OSError, RuntimeError):
        return None


async def _read_tool_image(address: str, user: Any) -> Item:
    match = _STORED_ADDRESS.match(address)
    row = await file_row(match[1], user) if match else None
    held = await _read_file(row, image_data_url) if row else address
    return tool_image(held or "")


async def add_documents(
    parts: Sequence[ChatPart], user: Any, wanted: str
) -> list[ChatPart]:
    result, question, left = list(parts), question_index(parts), _MOST_BYTES
    for place, part in enumerate(parts):
        if isinstance(part, UserMessage) and part.attachments:
            read = list[Item]()
            for file in part.attachments:
                found, size = await _read_document(file, user, wanted, left)
                left -= size
                if found:
                    read.append(part_or_note(found, is_asked=place == question))
            result[place] = part.with_content([*read, *part.content])
    return result


async def _read_document(
    file: Attachment, user: Any, wanted: str, left: int
) -> tuple[Item | str, int]:
    row = None if file.is_image else await file_row(file.file_id, user)
    name = file.name or getattr(row, "filename", "")
    meta = getattr(row, "meta", None) or {}
    kind = document_type(name, file.content_type or str(meta.get("content_type")))
    if file.is_image or not kind or (kind != PDF_TYPE and wanted != "all"):
        return "", 0

    def sized_part(content: bytes) -> tuple[Item, int]:
        return document_part(name, kind, content), len(content)

    part: Item | str = GONE_FILE.format(name)
    size = int(meta.get("size") or 0)
    if row and size <= left:
        part, size = await _read_file(row, sized_part) or (part, 0)
    return (part, size) if size <= left else (_TOO_LARGE.format(name), 0)


_StoreImage = Callable[[str], Awaitable[str]]


async def split_result_files(
    files: Iterable[JsonObject],
    text: str,
    store: _StoreImage,
    user: Any,
    *,
    has_row: bool,
) -> tuple[str | list[Item], dict[str, Any]]:
    images: list[Item] = []
    shown: list[JsonObject] = []
    stored: list[JsonObject] = []
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shown.append(file)
            continue
        address = await store(url) if url.startswith("data:") else url
        part = await _read_tool_image(address, user)
        is_readable = item_type(part) == "input_image"
        if is_readable:
            images.append(part)
        else:
            text += f"\n{part['text']}"
        if has_row and address.startswith("data:"):
            continue
        if is_readable:
            stored.append({"type": "input_image", "image_url": address})
        if address == url or not is_readable:
            shown.append({**file, "url": address})
    return append_images(text, images), {"files": shown, "stored": stored}


async def load_stored_images(
    records: Mapping[str, Record], parts: Sequence[ChatPart], user_id: str
) -> Mapping[str, Record]:
    wanted = stored_image_ids(parts, records)
    if not wanted:
        return records
    user = await user_model(user_id)
    pictures: dict[str, str] = {}
    for file_id in dict.fromkeys(wanted):
        row = await file_row(file_id, user)
        held = await _read_file(row, base64.b64encode) if row else None
        if held:
            pictures[file_id] = held.decode()
    return restore_images(records, pictures)


# owui_manifold.host_tools


def build_approver(call: PipeCall) -> Approver:
    host, rules = call.host, call.config.approval_rules
    mode = value_at(host.metadata, "params", "tool_approval_mode")
    if _is_builtin(host, "ask_user"):
        rules = [*rules, ("ask_user", "auto")]
    return Approver(
        rules=rules,
        default_rule="ask" if mode == "ask" else "auto",
        ask=_ask_in_page(host.event_call) if host.event_call else None,
        log=call.log.warn,
        other_names=partial(_other_names, host),
    )


def _is_builtin(host: HostContext, name: str) -> bool:
    return bool(value_at(host.tools, name, "type") == "builtin")


_SLOW = ("delegate_task", "generate_image", "edit_image")
_HOUR = 3600.0


def slow_tools(host: HostContext) -> list[tuple[str, float]]:
    return [(name, _HOUR) for name in _SLOW if _is_builtin(host, name)]


def has_ruled_tools(call: PipeCall) -> bool:
    approver = replace(build_approver(call), default_rule="auto")
    return any(approver.rule_for(name) != "auto" for name in call.host.tools)


_OWN_NAME = "function_name"


def _other_names(host: HostContext, name: str) -> list[str]:
    wrapped = host.tools.get(name, {}).get("callable")
    function = getattr(wrapped, "__function__", wrapped)
    names = [str(getattr(function, "__name__", ""))]
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if _OWN_NAME in variables:
        cells: Any = getattr(function, "__closure__", None)
        names.append(str(cells[variables.index(_OWN_NAME)].cell_contents))
    return names


_SHOWN_HALF = 2000


def _question(name: str, arguments: JsonObject) -> str:
    shown = json.dumps(arguments, ensure_ascii=False, indent=1)
    hidden = len(shown) - 2 * _SHOWN_HALF
    if hidden > 0:
        note = f" [... {hidden} characters are not shown ...] "
        shown = shown[:_SHOWN_HALF] + note + shown[-_SHOWN_HALF:]
    return f"The model wants to use {name} with:\n\n```json\n{shown}\n```"


def _ask_in_page(event_call: EventCall) -> Ask:

    async def ask(call_id: str, name: str, arguments: JsonObject) -> bool:
        data = {
            "title": "Allow this tool?",
            "message": _question(ToolNames().sent_name(name), arguments),
            "tool_call": {"id": call_id, "name": name, "arguments": dict(arguments)},
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask


_CITED = (
    "fetch_url",
    "query_chat_files",
    "query_knowledge_files",
    "view_file",
    "view_knowledge_file",
)


def _cites(name: str, metadata: JsonObject) -> bool:
    may = value_at(metadata, "model", "info", "meta", "capabilities", "citations")
    return name in _CITED and may is not False


def _is_error_text(text: str) -> bool:
    found = parse_json_object(text)
    if found is None:
        return text.strip().lower().startswith(HOST_ERROR_PREFIXES)
    refused = found.get("success") is False or found.get("ok") is False
    told = found.get("error") or (refused and found.get("message"))
    failed = str(found.get("status")).strip().lower() in ("error", "failed")
    return failed or (isinstance(told, str | Mapping | list) and bool(told))


_DISPATCHERS = (CALL_TOOL, "search_tools")


class HostTools:
    def __init__(self, call: PipeCall, names: ToolNames) -> None:
        self._call = call
        self._host = call.host
        self._names = names

    def _own_name(self, name: str) -> str:
        return self._names.own_name(name, self._host.tools)

    def parameters(self, name: str) -> JsonObject | None:
        tool = self._host.tools.get(self._own_name(name))
        if tool is None:
            return None
        spec = tool.get("spec") or {}
        try:
            json_size(spec, LARGEST_SCHEMA)
        except JsonTooLarge:
            return None
        return spec.get("parameters") or {"type": "object", "properties": {}}

    def is_interactive(self, name: str) -> bool:
        own = self._own_name(name)
        return own == "ask_user" and _is_builtin(self._host, own)

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        own, tools = self._own_name(name), self._host.tools
        if value_at(tools, own, "tool_id") != "builtin:call_tool":
            return own, arguments
        inner, params = read_call_tool(arguments) or (None, {})
        if inner not in tools or inner in _DISPATCHERS:
            return None
        return str(inner), params

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        own, account = self._own_name(name), self._call.account
        result = self._call_tool(own, arguments)
        if account:
            result = account.observe_tool(own, result, attrgetter("failed"))
        return await result

    async def _call_tool(self, own: str, arguments: dict[str, Any]) -> ToolResult:
        tool, params = self._host.tools[own], arguments
        if tool.get("type") != "mcp":
            known = (self.parameters(own) or {}).get("properties") or {}
            params = {key: params[key] for key in params if key in known}
        result = await self._result(own, tool, params)
        return await self._answer(own, tool, params, result)

    async def _result(self, name: str, tool: JsonObject, params: dict[str, Any]) -> Any:
        if tool.get("direct"):
            return await self._in_the_browser(name, tool, params)
        files = self._host.metadata.get("files") or []
        function = await update_tool(tool["callable"], self._call.messages, files)
        if tool.get("type") == "mcp":
            return await _server_result(function, params)
        bare = getattr(function, "__function__", None)
        if bare is None or inspect.iscoroutinefunction(bare):
            return await function(**params)
        work = partial(copy_context().run, _run_at_once, function, params)
        user_id, threads = self._call.caller.user_id, self._call.threads
        return await threads.setdefault(user_id, UserThreads()).run(work)

    async def _in_the_browser(
        self, name: str, tool: JsonObject, params: dict[str, Any]
    ) -> Any:
        if self._host.event_call is None:
            return {"error": "The browser that has this tool is not connected."}
        data = {
            "id": new_ulid(),
            "name": name,
            "params": params,
            "server": tool.get("server") or {},
            "session_id": self._host.metadata.get("session_id"),
        }
        return await self._host.event_call({"type": "execute:tool", "data": data})

    async def _answer(
        self, name: str, tool: JsonObject, params: dict[str, Any], result: Any
    ) -> ToolResult:
        host, caller = self._host, self._call.caller
        user = await user_model(caller.user_id)
        text, files, embeds = await process_tool_result(
            host, user, name, tool, params, result
        )
        cited = _cites(name, host.metadata) and text
        tool_id = str(tool.get("tool_id") or "")
        sources = citation_sources(name, params, text, tool_id) if cited else []
        store = partial(stored_image, host, user)
        output, card = await split_result_files(
            files, text, store, user, has_row=caller.may_have_row
        )
        card |= {"embeds": embeds, "sources": sources}
        filled = {key: value for key, value in card.items() if value}
        return ToolResult(output, _is_error_text(text), filled)


async def _server_result(
    function: Callable[..., Coroutine[Any, Any, Any]], params: JsonObject
) -> Any:
    try:
        return await function(**params)
    except Exception as error:
        if type(error) is Exception:
            return {"error": str(error)}
        raise


def _run_at_once(
    function: Callable[..., Coroutine[Any, Any, Any]], params: JsonObject
) -> Any:
    coroutine = function(**params)
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("a tool that claims to be synchronous waited")


# owui_manifold.hosted_tools

_REPLACED = {
    "web_search": ("search_web", "fetch_url"),
    "code_interpreter": ("execute_code",),
    "image_generation": ("generate_image", "edit_image"),
}

_PLACE = ("city", "region", "country", "timezone")
_MOST_STORES, _MOST_DOMAINS = 2, 100


def hosted_tools(
    config: Config, model: ResolvedModel, refused: Collection[str] = ()
) -> tuple[list[Item], set[str]]:
    usable = [
        tool
        for tool in _configured_tools(config, partial(_takes, model))
        if json_digest(tool) not in refused
    ]
    replaced = {name for tool in usable for name in _REPLACED.get(tool["type"], ())}
    kept = () if config.replaces_search else _REPLACED["web_search"]
    return usable, replaced.difference(kept)


def _configured_tools(config: Config, takes: Callable[[str], bool]) -> Iterator[Item]:
    if config.web_search and takes("web_search"):
        yield _web_search(config)
    stores = comma_list(config.valves.FILE_SEARCH_VECTOR_STORES)[:_MOST_STORES]
    servers = config.remote.tools if takes("mcp") else ()
    if stores and takes("file_search"):
        yield {"type": "file_search", "vector_store_ids": stores}
    yield from servers
    if config.code_interpreter and takes("code_interpreter"):
        yield {"type": "code_interpreter", "container": {"type": "auto"}}
    if config.image_generation and takes("image_generation"):
        yield {**_image_options(config.valves), "type": "image_generation"}


def _takes(model: ResolvedModel, kind: str) -> bool:
    if kind in CALLED_BY_NAME:
        return model.facts.functions
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def _image_options(valves: Valves) -> Item:
    options = parse_json_object(valves.IMAGE_GENERATION_OPTIONS.strip() or "{}")
    if options is None:
        problem = "IMAGE_GENERATION_OPTIONS is not a JSON object"
        raise valve_error(problem, '{"quality": "high"}')
    return options


def _web_search(config: Config) -> Item:
    tool: Item = {
        "type": "web_search",
        "search_context_size": config.valves.WEB_SEARCH_CONTEXT_SIZE,
        "user_location": {"type": "approximate", **_location(config.valves)},
    }
    addresses = comma_list(config.valves.WEB_SEARCH_ALLOWED_DOMAINS)[:_MOST_DOMAINS]
    domains = [re.split("[/:]", a.rpartition("://")[2])[0] for a in addresses]
    return {**tool, "filters": {"allowed_domains": domains}} if domains else tool


def _location(valves: Valves) -> Mapping[str, str]:
    text = valves.WEB_SEARCH_USER_LOCATION.strip()
    words = [word.strip() for word in text.split(",")]
    given = parse_json_object(text)
    if not text.startswith("{") and len(words) <= len(_PLACE):
        given = dict(zip(_PLACE, words, strict=False))
    if given is None or not all(isinstance(given.get(k, ""), str) for k in _PLACE):
        problem = "WEB_SEARCH_USER_LOCATION is neither a JSON object nor a place"
        example = "Bern, BE, CH, Europe/Zurich (city, region, country, timezone)"
        raise valve_error(problem, example)
    if len(given.get("country", "")) != 2:  # no code: it would be refused
        given["country"] = ""
    return {key: given[key] for key in _PLACE if given.get(key)}


class OfferedTools(NamedTuple):
    items: Sequence[Item] = ()
    names: ToolNames = ToolNames()
    choice: Any = None
    notice: str = ""


def called_tools(
    body: JsonObject,
    model: ResolvedModel,
    valves: Valves,
    log: Callable[[str], object] = str,
) -> list[Item]:
    specs = as_list(body.get("tools")) + as_list(body.get("extra_tools"))
    text, strict = _tools_text(specs), valves.ENABLE_STRICT_TOOL_CALLING
    is_usual = 0 < len(text) <= _LONGEST_REMEMBERED
    tools, lines = (
        _known_tools(text, strict) if is_usual else _read_tools(specs, strict)
    )
    for line in lines:
        log(line)
    return [tool for tool in tools if _takes(model, tool["type"])]


_LONGEST_REMEMBERED = 100_000


def _tools_text(specs: list[Any]) -> str:
    try:
        return json.dumps(specs)
    except (TypeError, ValueError, RecursionError):
        return ""


@lru_cache(maxsize=32)
def _known_tools(text: str, strict: bool) -> tuple[list[Item], list[str]]:
    return _read_tools(json.loads(text), strict)


def _read_tools(specs: list[Any], strict: bool) -> tuple[list[Item], list[str]]:
    lines = list[str]()
    return responses_tools(specs, strict=strict, log=lines.append), lines


_MOST_TOOLS = 128
_TOO_MANY = (
    "{} tools were left out: the API takes at most {}. Switch off tools that this chat "
    "does not need."
)
_TOOL_SEARCH: Item = {"type": "tool_search"}
_MOST_AT_ONCE = 64
_NAMESPACE_TOOLS = 9
_MOST_SEARCHED = _MOST_AT_ONCE + (_MOST_TOOLS - _MOST_AT_ONCE - 1) * _NAMESPACE_TOOLS


def tool_search(config: Config, model: ResolvedModel) -> list[Item]:
    is_strict = config.valves.COMPATIBILITY == "strict"
    return [_TOOL_SEARCH] if model.facts.appends_tools and not is_strict else []


def offer_tools(
    choice: object,
    hosted: Sequence[Item] = (),
    called: Sequence[Item] = (),
    withheld: Collection[str] = (),
    builtin: Collection[str] = (),
) -> OfferedTools:
    merged = merge_tools(hosted, called)
    others = [tool for tool in merged if tool is not _TOOL_SEARCH]
    most = _MOST_TOOLS if len(others) == len(merged) else _MOST_SEARCHED
    tools = [tool for tool in others if tool.get("name") not in withheld]
    if len(tools) > _MOST_TOOLS:
        tools.sort(key=lambda t: 0 if is_hosted_tool(t) else 1 + (t["name"] in builtin))
    lost = len(tools) - most
    notice = _TOO_MANY.format(lost, most) if lost > 0 else ""
    if not tools:
        return OfferedTools()
    known = (str(t["name"]) for t in tools[:most] if not is_hosted_tool(t))
    names = ToolNames(tuple(known))
    items = names.rename_tools(tools[:most])
    chosen = responses_tool_choice(choice, items, names)
    if len(items) > _MOST_TOOLS:
        items = [*items[:_MOST_AT_ONCE], *_searched_tools(items[_MOST_AT_ONCE:])]
    return OfferedTools(items, names, chosen, notice)


def _searched_tools(tools: Sequence[Item]) -> list[Item]:
    found = [_TOOL_SEARCH]
    ordered = sorted(tools, key=_first_word)
    for start in range(0, len(ordered), _NAMESPACE_TOOLS):
        inner = ordered[start : start + _NAMESPACE_TOOLS]
        space: Item = {
            "type": "namespace",
            "name": f"{_first_word(inner[0])}_{len(found)}",
            "description": f"Functions: {', '.join(map(tool_name, inner))}",
            "tools": [{**tool, "defer_loading": True} for tool in inner],
        }
        found.append(space)
    return found


def _first_word(tool: Item) -> str:
    return tool_name(tool).split("_")[0][:50]


# owui_manifold.models

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 60.0

OPENAI_HOST = Endpoint(DEFAULT_BASE_URL, "").host
_LIST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)
_LONGEST_LIST = 5_000_000


async def fetch_models(endpoint: Endpoint, connections: Connections) -> dict[str, str]:
    asked = connections.request(endpoint, "/models", None, Deadlines(_LIST_TIMEOUTS))
    async with asked as answer:
        return read_models(await answer.read_json(_LONGEST_LIST))


class Listing:
    def __init__(self) -> None:
        self.shutdown_dates: dict[str, str] = {}
        self._known: dict[str, dict[str, str]] = {}
        self._next_request: dict[str, float] = {}

    def usable(
        self, endpoint: Endpoint, connections: Connections
    ) -> Collection[str] | None:
        account, now = endpoint.account(), monotonic_seconds()
        if now >= self._next_request.get(account, 0.0):
            self._next_request[account] = now + _PAUSE_SECONDS
            connections.do_later(self._refresh(endpoint, connections))
        return self._known.get(account)

    async def _refresh(self, endpoint: Endpoint, connections: Connections) -> None:
        account = endpoint.account()
        with suppress(ResponsesError):  # what was known stays
            self._known[account] = found = await fetch_models(endpoint, connections)
            self.shutdown_dates.clear()
            self.shutdown_dates.update(found)
            self._next_request[account] = monotonic_seconds() + _FRESH_SECONDS


def list_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    try:
        overrides = read_overrides(valves.MODEL_OVERRIDES_JSON)
    except ResponsesError:
        overrides = {}  # the chat shows the mistake
    listed, names = comma_list(valves.MODEL_ID), list[str]()
    today, usable = utc_today().isoformat(), None
    with suppress(ResponsesError):
        endpoint = build_endpoint(valves)
        if valves.FETCH_MODELS and ("auto" in listed or endpoint.host == OPENAI_HOST):
            usable = listing.usable(endpoint, connections)
    newest = newest_models(today, usable) or newest_models(today)
    for name in listed:
        names += newest if name == "auto" else [name]
    return {name: resolve_model(name, overrides) for name in names}


# owui_manifold.rounds

_ATTRIBUTE = "openai_responses_rounds"


class DelegatedRound(NamedTuple):
    request: ResponsesRequest
    received: tuple[Item, ...]
    pending: tuple[Item, ...]
    cited: tuple[str, ...] = ()
    origin: Origin | None = None


def save_round(state: Any, message_id: str, ended: DelegatedRound) -> None:
    rounds = getattr(state, _ATTRIBUTE, {})
    setattr(state, _ATTRIBUTE, {**rounds, message_id: ended})


def load_round(state: Any, message_id: str) -> DelegatedRound | None:
    found = getattr(state, _ATTRIBUTE, {}).get(message_id)
    return found if isinstance(found, DelegatedRound) else None


def continue_round(
    ended: DelegatedRound, parts: Sequence[ChatPart]
) -> ResponsesRequest | None:
    outputs = {s.call_id: s for s in parts if isinstance(s, ToolMessage)}
    calls = {item["call_id"]: item_type(item) for item in open_calls(ended.received)}
    if not calls or not all(call_id in outputs for call_id in calls):
        return None
    answers = [tool_message_item(outputs[call_id], calls) for call_id in calls]
    return next_request(ended.request, [*ended.received, *answers])


# owui_manifold.store

_PURPOSE = "openai_responses_pipe "
_NONCE_BYTES = 12


class ChatKeys:
    def __init__(self, secret: str, user_id: str) -> None:
        self.sign = signer(secret, f"{_PURPOSE}records {user_id}") if secret else None
        self._cipher = _cipher(secret) if secret else None
        self._user_id = user_id

    def seal(self, value: object, message_id: str) -> str:
        if self._cipher is None:
            return ""
        nonce, text = os.urandom(_NONCE_BYTES), json.dumps(value).encode()
        sealed = self._cipher.encrypt(nonce, text, self._scope(message_id))
        return base64.b64encode(nonce + sealed).decode("ascii")

    def unseal(self, sealed: str, message_id: str) -> object:
        if self._cipher is None:
            return None
        try:
            whole = base64.b64decode(sealed, validate=True)
            nonce, rest = whole[:_NONCE_BYTES], whole[_NONCE_BYTES:]
            text = self._cipher.decrypt(nonce, rest, self._scope(message_id))
            return json.loads(text)
        except Exception:
            return None

    def _scope(self, message_id: str) -> bytes:
        return json.dumps([self._user_id, message_id]).encode()


def _cipher(secret: str) -> Any:
    key = derive_key(secret, f"{_PURPOSE}sent")
    try:
        return import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)
    except ImportError:
        return None


_HISTORY = "history"
_FEW = 32
_LAST_TRIES = 3


class ChatStore:
    carrier: Carrier = "markers"
    size = 0

    def __init__(self, caller: Caller, chat: JsonObject, keys: ChatKeys) -> None:
        self.messages = _messages_of(chat)
        in_answers = output_values(self.messages)
        rows = [key for key in chat if is_pipe_key(key) and key not in in_answers]
        chat = {**chat, **in_answers}
        self.records = read_records(chat, keys.sign)
        self.repairs = stored_repairs(chat[key] for key in chat if is_pipe_key(key))
        self.sent = read_sent_context(chat, keys.unseal)
        self._is_behind = False
        self._writing: asyncio.Task[None] | None = None
        self._due = 0
        self._unshown: list[StoredRecord] = []
        self._caller = caller
        self._keys = keys
        self._key = message_key(caller.message_id)
        self._untidy = {key: chat[key] for key in rows}
        self._repairs = dict.fromkeys(stored_repairs([chat.get(self._key)]))
        self._own = {
            ulid: record
            for ulid, record in self.records.items()
            if record.message_id == caller.message_id
        }

    def write_beside(self, record: Record, output_index: int | None = None) -> None:
        del output_index
        self._writing = asyncio.create_task(self._write_after(self._writing, record))

    async def _write_after(
        self, earlier: asyncio.Task[None] | None, record: Record
    ) -> None:
        if earlier:
            await earlier
        with suppress(Exception):
            await self.write(record)

    async def write(self, record: Record) -> None:
        self._own[record.ulid] = record
        self._is_behind = True
        if len(self._own) >= self._due:
            await self._write()

    def set_sent(self, sent: SentContext) -> None:
        if sent != SentContext():
            self.sent[self._caller.message_id] = sent
            self._is_behind = True

    async def flush(self) -> bool:
        await self._settle()
        for _ in range(_LAST_TRIES):
            if not self._is_behind:
                break
            await self._write()
        return not self._is_behind

    async def _settle(self) -> None:
        if self._writing:
            await asyncio.shield(self._writing)

    async def add_repair(self, repair: Repair) -> None:
        await self._settle()
        self._repairs = {**self._repairs, repair: None}
        self.repairs = tuple(dict.fromkeys((*self.repairs, repair)))
        await self._write()

    async def _write(self) -> None:
        self._due = len(self._own) + len(self._own) // _FEW
        values = await run_work(self.size, self._values)
        self._is_behind = not await write_chat_keys(self._caller.chat_id, values)
        if not self._is_behind:
            self._untidy = {}

    def _values(self) -> dict[str, Any]:
        sign = self._keys.sign
        value = self._with_sent(write_records(self._own, sign, self._repairs))
        room = MAX_STORED_KB * 1024 - stored_size(value)
        others = prune(self._untidy, self.messages, self._key, room)
        return {**others, self._key: value}

    def _with_sent(self, value: JsonObject) -> JsonObject:
        message_id = self._caller.message_id
        sent = self.sent.get(message_id)
        sealed = self._keys.seal(sent.wire(), message_id) if sent else ""
        return add_sent_context(value, sealed)

    def take_unsent(self) -> list[StoredRecord]:
        given, self._unshown = self._unshown, []
        return given

    def restore(self, parts: list[ChatPart], replaced_id: str) -> list[ChatPart]:
        outputs = stored_outputs(self.messages, self._caller.message_id, replaced_id)
        return restore_from_outputs(parts, outputs)


class _OutputStore(ChatStore):
    carrier = "output"
    _bearer = ""

    def write_beside(self, record: Record, output_index: int | None = None) -> None:
        self._give(record.ulid, {record.ulid: record}, output_index)

    async def _write(self) -> None:
        self._give(new_ulid(), {})

    def _give(
        self, ulid: str, records: Mapping[str, Record], index: int | None = None
    ) -> None:
        value = write_records(records, self._keys.sign, self._repairs)
        if self._is_behind or ulid == self._bearer:  # which may be written again
            value = {**self._with_sent(value), "message_id": self._caller.message_id}
            self._is_behind, self._bearer = False, ulid
        self._unshown.append(StoredRecord(ulid, value, index))


def chat_keys(valves: Valves, user_id: str) -> ChatKeys:
    return ChatKeys(valves.STORE_ENCRYPTION_KEY.strip() or server_secret(), user_id)


async def open_store(
    caller: Caller, valves: Valves, keys: ChatKeys
) -> ChatStore | None:
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    kept = {k: v for k, v in chat.items() if is_pipe_key(k) or k == _HISTORY}
    size = count_entries([kept, _messages_of(chat)], 3)
    store = _OutputStore if valves.HISTORY_CARRIER == "output" else ChatStore
    opened = await run_work(size, lambda: store(caller, kept, keys))
    opened.size = size
    return opened


def _messages_of(chat: JsonObject) -> JsonObject:
    return as_mapping(value_at(chat, _HISTORY, "messages"))


# owui_manifold.request

_LEAST_THRESHOLD = 1000

_BATCH_SHARE = 5


class PreparedRequest(NamedTuple):
    call: PipeCall
    request: ResponsesRequest
    endpoint: Endpoint
    origin: Origin
    limits: Limits
    store: ChatStore | None = None
    round: DelegatedRound | None = None
    toolset: Toolset | None = None
    reason: str = ""
    notices: tuple[str, ...] = ()
    sign: Sign | None = None
    cites: bool = False
    records: Mapping[str, Record] = MappingProxyType({})

    @property
    def delegates(self) -> bool:
        runs_here = self.toolset is not None and self.toolset.runs_calls
        return bool(not runs_here and self.call.caller.host_reads and self.call.state)


def offered_tools(call: PipeCall, model: ResolvedModel) -> OfferedTools:
    refused = {one.target for one in learned_repairs(call, model.id)}
    hosted, replaced = hosted_tools(call.config, model, refused)
    called = called_tools(call.body, model, call.valves, call.log.warn)
    rows = call.host.tools
    builtin = {name for name in rows if rows[name].get("type") == "builtin"}
    hosted += tool_search(call.config, model)
    return offer_tools(call.body.get("tool_choice"), hosted, called, replaced, builtin)


def _runs_calls(call: PipeCall, offered: OfferedTools) -> bool:
    tools, known = call.host.tools, offered.names.known
    ours = call.valves.TOOL_EXECUTION == "pipe"
    if call.caller.host_reads and tools:
        return (ours and bool(known)) or has_ruled_tools(call)
    return ours and bool(known) and all(name in tools for name in known)


def request_settings(
    call: PipeCall, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    config, valves, summary = call.config, call.valves, call.config.summary
    names = (model.id, model.family, call.caller.model)
    background = _is_background_model(valves, names)
    streams = call.caller.streams or background
    return Settings(
        effort=config.effort,
        summary=None if summary == "disabled" else summary,
        verbosity=config.verbosity,
        stream=streams and valves.ENABLE_STREAM,
        background=background,
        encrypted_reasoning=valves.carries_reasoning(),
        tools=tools.items,
        parallel_tool_calls=None if valves.PARALLEL_TOOL_CALLS else False,
        defaults=_default_parameters(call, tools.items),
    )


def is_as_configured(prepared: PreparedRequest) -> bool:
    call, sent = prepared.call, prepared.request
    body = {"tool_choice": sent.tool_choice, "reasoning_effort": call.model.effort}
    plain = call._replace(body=body, config=read_config(call.valves))
    model = call.resolve(sent.model)._replace(pro=call.model.pro)
    tools = OfferedTools(sent.tools or ())
    settings = request_settings(plain, tools, model)
    text = sent.instructions or ""
    built = build_request(model, text, sent.input, body, settings)
    is_changed = any(item_type(item) in APPENDED for item in sent.input)
    return sent.model_copy(update={"repairs": ()}) == built and not is_changed


def learned_repairs(call: PipeCall, model: str) -> tuple[Repair, ...]:
    return call.capabilities.repairs(call.endpoint, model, call.caller.user_id)


def _is_background_model(valves: Valves, names: Sequence[str]) -> bool:
    if valves.COMPATIBILITY == "strict":  # such servers do not store responses
        return False
    patterns = comma_list(valves.BACKGROUND_MODELS.lower())
    return any(fnmatchcase(n.lower(), p) for n in names for p in patterns)


def _default_parameters(call: PipeCall, tools: Sequence[Item]) -> dict[str, Any]:
    caller, valves, tier = call.caller, call.valves, call.config.service_tier
    threshold = max(valves.COMPACTION_TOKENS, _LEAST_THRESHOLD)
    compaction = [{"type": "compaction", "compact_threshold": threshold}]
    compacts = valves.COMPACTION_TOKENS and not call.endpoint.is_azure
    chosen = {
        **hash_ids(valves.PROMPT_CACHE_KEY, caller.user_id, caller.chat_id),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": compaction if compacts else None,
    }
    if any(map(is_hosted_tool, tools)):  # the API counts only their calls
        chosen["max_tool_calls"] = valves.MAX_TOOL_CALLS
    return given_values(chosen)


def call_toolset(call: PipeCall, offered: OfferedTools) -> Toolset:
    valves, seconds = call.valves, call.valves.TOOL_TIMEOUT_SECONDS
    return Toolset(
        HostTools(call, offered.names),
        build_approver(call),
        CallLimits(
            seconds=seconds,
            batch_seconds=_BATCH_SHARE * seconds,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
            own=[*call.config.tool_timeouts, *slow_tools(call.host)],
        ),
        call.log.warn,
        rounds=valves.MAX_FUNCTION_CALL_LOOPS,
        most_calls=valves.MAX_TOOL_CALLS,
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=_runs_calls(call, offered),
    )


def build_task_request(call: PipeCall) -> PreparedRequest:
    require_floor()
    endpoint = call.endpoint
    model = _task_model(call, endpoint)
    request = task_request(model, call.messages, call.body, call.caller.task)
    repairs = learned_repairs(call, request.model)
    request = request.model_copy(update={"repairs": repairs})
    origin = origin_at(model.family, endpoint)
    limits = run_limits(call.valves, model)
    return PreparedRequest(call, request, endpoint, origin, limits)


def _task_model(call: PipeCall, endpoint: Endpoint) -> ResolvedModel:
    wanted, valves = call.valves.TASK_MODEL.strip(), call.valves
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or endpoint.host == OPENAI_HOST):
        model = call.resolve(wanted)
        if _task_lack(endpoint, model.id) not in call.capabilities:
            return model
    return call.model


def lacks_task_model(prepared: PreparedRequest, ended: RunDone) -> bool:
    call, model = prepared.call, prepared.request.model
    if ended.trace.status not in (403, 404) or model == call.model.id:
        return False
    if call.capabilities.first_time(_task_lack(prepared.endpoint, model)):
        told = f"TASK_MODEL: the key may not use {model}; the chat's model does tasks"
        call.log.warn(told)
    return True


def _task_lack(endpoint: Endpoint, model: str) -> str:
    return f"{endpoint.account()} {model} task"


# owui_manifold.artifacts

_MOST_FETCHED = 32 * 1024**2
_MOST_FILES = 20

_NOT_STORED = "{} could not be stored in Open WebUI, for example because of its size."
_GONE = "{} could not be fetched: the container that held it has expired."
_TOO_BIG = f"{{}} was not fetched: it is larger than {_MOST_FETCHED // 1024**2} MB."
_NOT_FETCHED = "{} could not be fetched from where the code ran."


class ArtifactStore:
    def __init__(self, prepared: PreparedRequest, connections: Connections) -> None:
        self._prepared = prepared
        self._connections = connections
        self._stored: dict[str, Item | None] = {}

    async def stored(self, event: RunEvent) -> RunEvent | None:
        if isinstance(event, PartialImage):
            return event if self._prepared.call.caller.may_have_row else None
        if not isinstance(event, ItemDone) or self._prepared.call.host.request is None:
            return event
        card = await self._card(event.item)
        return event._replace(card=card) if card else event

    async def _card(self, item: Item) -> JsonObject:
        caller = self._prepared.call.caller
        host_reads = caller.host_reads
        if is_image_call(item) and host_reads and item.get("result"):
            return await self._pictures([image_url(item)])
        if is_code(item) and host_reads:
            outputs = content_parts(item.get("outputs"))
            return await self._pictures(str(part.get("url")) for part in outputs)
        cited = file_citations(item) if host_reads or caller.streams else []
        if item_type(item) == "message" and cited:
            return await self._cited(cited[:_MOST_FILES], message_text(item))
        return {}

    async def _pictures(self, urls: Iterable[str]) -> JsonObject:
        files: list[Item] = []
        notes: list[str] = []
        for url in urls:
            kind, content = await asyncio.to_thread(_read_data_url, url)
            if content:
                name = f"picture{mimetypes.guess_extension(kind) or '.png'}"
                stored = await self._store(NewFile(name, kind, content))
                files += [stored] if stored else []
                notes += [] if stored else [_NOT_STORED.format("The picture")]
        return _made_card(files=files, notes=notes)

    async def _cited(self, cited: Iterable[Item], text: str) -> JsonObject:
        files: list[Item] = []
        notes: list[str] = []
        links: dict[str, str] = {}
        patience = Timeouts(first_event=self._prepared.limits.timeouts.idle / 2)
        deadlines = Deadlines(patience)
        shown = {file["id"] for file in self._stored.values() if file}
        for citation in cited:
            name = PurePosixPath(str(citation.get("filename") or "")).name or "file"
            stored = await self._fetched(citation, name, deadlines)
            addresses = container_addresses(text, name)
            if isinstance(stored, str):
                notes.append(f"*{stored}*")
                continue
            links |= {address: str(stored["url"]) for address in addresses}
            if stored["type"] == "image":
                files += [] if stored["id"] in shown else [stored]
                shown.add(stored["id"])
            elif not addresses:
                notes.append(f"[{name}]({stored['url']})")
        return _made_card(files=files, notes=notes, links=links)

    async def _fetched(
        self, citation: Item, name: str, deadlines: Deadlines
    ) -> Item | str:
        ids = str(citation.get("container_id")), str(citation.get("file_id"))
        try:
            endpoint, connections = self._prepared.endpoint, self._connections
            content = await container_file(
                endpoint, connections, ids, _MOST_FETCHED, deadlines
            )
        except AnswerTooLarge:
            return _TOO_BIG.format(name)
        except ResponsesError as error:
            self._prepared.call.log.warn(f"no container file: {error}")
            return (_GONE if error.status == 404 else _NOT_FETCHED).format(name)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        stored = await self._store(NewFile(name, kind, content))
        return stored or _NOT_STORED.format(name)

    async def _store(self, file: NewFile) -> Item | None:
        digest = (await asyncio.to_thread(hashlib.sha256, file.content)).hexdigest()
        if digest not in self._stored:
            caller, host = self._prepared.call.caller, self._prepared.call.host
            place = {"chat_id": caller.chat_id, "message_id": caller.message_id}
            saved = place if caller.may_have_row else {}
            user = await user_model(caller.user_id)
            made = await store_file(host.request, file, saved, user)
            kind = "image" if file.kind.startswith("image/") else "file"
            self._stored[digest] = {"type": kind, **made} if made else None
        return self._stored[digest]


def _made_card(**held: object) -> JsonObject:
    return {name: value for name, value in held.items() if value}


def _read_data_url(url: str) -> tuple[str, bytes]:
    head, _, encoded = url.partition(";base64,")
    kind = head.partition("data:")[2]
    with suppress(ValueError):
        if kind.startswith("image/"):
            return kind, base64.b64decode(encoded)
    return kind, b""


# owui_manifold.callers

_LENGTHS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_TOOLS = ("tools", "extra_tools")
_TOOL_TYPES = (
    *("web_search", "web_search_preview", "file_search", "code_interpreter"),
    *("image_generation", "mcp", "shell", "apply_patch", "computer", "tool_search"),
    *("computer_use_preview", "local_shell", "namespace", "programmatic_tool_calling"),
)
_CLOSED_FIELDS = (
    *("vector_store_ids", "container", "environment", "input_image_mask"),
    *("server_url", "connector_id", "tunnel_id", "authorization", "headers"),
)

_KNOWN_WORDS = {
    *("max_output_tokens", "reasoning.mode", "reasoning.context"),
    *(*ADMINISTRATORS_KEYS, *_TOOL_TYPES),
    *(f"{kind}.{name}" for kind in _TOOL_TYPES for name in _CLOSED_FIELDS),
}


class _Permission(NamedTuple):
    opened: Collection[str]
    longest: int
    stored: JsonObject


async def permitted_call(call: PipeCall) -> PipeCall:
    caller, valves = call.caller, call.valves
    words = comma_list(valves.CALLER_MAY_SET.lower())
    opened = {_opened(word) for word in words if caller.is_admin or ":" not in word}
    longest = 0 if "max_output_tokens" in opened else valves.MAX_OUTPUT_TOKENS
    may = _Permission(opened, longest, {})
    if _permitted_body(call.body, may) == call.body:
        return call
    stored = await administrator_params(call.model_id)
    body = _permitted_body(call.body, may._replace(stored=stored))
    lost = [k for k, v in call.body.items() if v is not None and body.get(k) != v]
    is_new = call.capabilities.first_time
    if new := [name for name in lost if is_new(f"{caller.user_id}: {name}")]:
        names = ", ".join(f"{k} ({ADMINISTRATORS_KEYS.get(k, 'in part')})" for k in new)
        told = f"left out for user {caller.user_id}, see CALLER_MAY_SET: {names}"
        call.log.warn(told)
    return call._replace(body=body)


def opening_error(valves: Valves) -> str:
    words = map(_opened, comma_list(valves.CALLER_MAY_SET.lower()))
    advice = "No parameter and no type of tool has such a name."
    return unknown_words("CALLER_MAY_SET", words, _KNOWN_WORDS, advice)


def _opened(word: str) -> str:
    return word.removeprefix("admin:").strip()


def _permitted_body(body: JsonObject, may: _Permission) -> dict[str, Any]:
    stored = may.stored
    closed = [k for k in ADMINISTRATORS_KEYS if k in body and k not in may.opened]
    kept = {k: v for k, v in body.items() if k not in closed}
    kept |= {k: stored[k] for k in closed if k in stored}
    if isinstance(given := body.get("reasoning"), Mapping):
        kept["reasoning"] = _permitted_reasoning(given, may)
    tools = [tool for name in _TOOLS for tool in as_list(stored.get(name))]
    for name in _TOOLS:
        if isinstance(given := body.get(name), list):
            kept[name] = [t for t in given if _is_open(t, may.opened) or t in tools]
    return kept | {k: may.longest for k in _LENGTHS if _is_too_long(k, body, may)}


def _permitted_reasoning(given: JsonObject, may: _Permission) -> dict[str, Any]:
    free = {"effort", "summary", *(k for k in given if f"reasoning.{k}" in may.opened)}
    stored = as_mapping(may.stored.get("reasoning")).items()
    return dict(i for i in given.items() if i[0] in free or i in stored)


def _is_open(tool: object, opened: Collection[str]) -> bool:
    fields = as_mapping(tool)
    kind = str(fields.get("type", "function"))
    if kind in CALLED_BY_NAME:
        return True
    closed = [
        f"{kind}.{name}"
        for name in _CLOSED_FIELDS
        if (value := fields.get(name)) and as_mapping(value).keys() != {"type"}
    ]
    return all(word in opened for word in closed or [kind])


def _is_too_long(name: str, body: JsonObject, may: _Permission) -> bool:
    value, most = body.get(name), may.longest
    asked = clamp_number(value, 0, most + 1, 0) if most else 0
    return asked > most and value != may.stored.get(name)


# owui_manifold.report

_UNAUTHORIZED = 401
_WRONG_OWN_KEY = (
    f"The model's server does not accept your own API key. Check {OWN_KEY_PLACE}"
)
_INTERNAL_ERROR = (
    "Something in this pipe went wrong. Try again; if it lasts, give an administrator "
    "the error id."
)


_DIAGNOSIS = ("type", "reason", "cache_missed_tokens")
_LONGEST_ID = 200


def compare_cache(prepared: PreparedRequest) -> PreparedRequest:
    call, request, store = prepared.call, prepared.request, prepared.store
    asks = call.valves.PROMPT_CACHE_DIAGNOSTICS and prepared.endpoint.is_openai
    if not (asks and store and call.resolve(request.model).facts.diagnostics):
        return prepared
    row = as_mapping(store.messages.get(call.caller.message_id))
    for _ in range(2):
        row = as_mapping(store.messages.get(as_text(row.get("parentId"))))
    earlier = as_text(value_at(row, "usage", "response_id"))
    if not earlier.startswith("resp") or len(earlier) > _LONGEST_ID:
        return prepared
    options = {
        **(request.prompt_cache_options or {}),
        "comparison_response_id": earlier,
    }
    changed = request.model_copy(update={"prompt_cache_options": options})
    return prepared._replace(request=changed)


def report_request(prepared: PreparedRequest) -> None:
    request, call = prepared.request, prepared.call
    call.log.line(
        "DEBUG",
        f"request to {prepared.endpoint.host}: {request.model}, "
        f"{len(request.input)} input items, {len(request.tools or ())} tools, "
        f"stream {request.stream}, background {bool(request.background)}, "
        f"stored {bool(prepared.store)}, native {call.caller.host_reads}",
    )
    missing, errors = _missing_features(prepared)
    if missing:
        told = "left out, not known to the API or not taken by the model: "
        call.log.line("DEBUG", told + ", ".join(missing))
    for error in errors:
        call.warn_once(f"user {call.caller.user_id}: {error}")
    if call.valves.writes_audit_log():
        call.log.audit(_audited(prepared).request_line())


def report_end(prepared: PreparedRequest, ended: RunDone) -> RunDone:
    call, trace = prepared.call, ended.trace
    remark = _tools_remark(prepared, ended)
    ended = ended._replace(ending=_explained_ending(ended), remark=remark)
    if call.valves.writes_audit_log():
        audited = _audited(prepared)
        line = audited.error_line(trace.error, trace.status)
        if ended.ending.kind in ("completed", "incomplete"):
            line = audited.success_line(trace.model)
        call.log.audit(line)
    _report_removals(call, trace.removed)
    if not call.valves.PROMPT_CACHE_DIAGNOSTICS:
        ended = ended._replace(trace=trace._replace(response_id=""))
    elif trace.cache:
        told = (f"{key} {str(trace.cache.get(key))[:40]}" for key in _DIAGNOSIS)
        call.log.line("INFO", f"prompt cache: {', '.join(told)}")
    if not ended.ending.is_failure:
        used = f", {ended.usage.total} tokens" if ended.usage else ""
        call.log.line("DEBUG", f"completed{used}, request id {trace.request_id}")
        return _add_cost(prepared, ended)
    error, said = trace.error, f"{trace.subject} {trace.error.message}".strip()
    words = (error.code or ended.ending.code, error.type, error.param)
    code, group, param = map(api_word, words)
    said = server_words(call, said)
    call.log.warn(
        f"{ended.ending.kind}: HTTP {trace.status}, code {code}, type {group}, "
        f"param {param}, request id {trace.request_id}. {said}",
    )
    own_key_is_wrong = trace.status == _UNAUTHORIZED and call.config.own_key
    sentence = _WRONG_OWN_KEY if own_key_is_wrong else ended.ending.sentence
    sentence = _with_error_id(call, sentence)
    if call.caller.is_admin:
        sentence = f"{sentence} {said}".strip()
    ending = ended.ending._replace(sentence=sentence)
    return _add_cost(prepared, ended._replace(ending=ending))


_MANY_TOKENS, _SOME_TOKENS = 4000, 1000
_CHARACTERS_OF_A_TOKEN = 4


def _tools_remark(prepared: PreparedRequest, ended: RunDone) -> str:
    request, usage = prepared.request, ended.usage
    questions = sum(item.get("role") == "user" for item in request.input)
    if usage is None or prepared.round or questions > 1:
        return ""
    tools = [tool for tool in request.tools or () if tool["type"] != "namespace"]
    size = sum(len(str(tool)) for tool in tools) // _CHARACTERS_OF_A_TOKEN
    tokens = min(size * len(ended.usages), usage.input)
    if tokens <= max(_SOME_TOKENS, min(_MANY_TOKENS, usage.input / 2)):
        return ""
    count = f"{round(tokens, -2):,}"
    return f"about {count} tokens describe {len(tools)} tools"


def _explained_ending(ended: RunDone) -> Ending:
    ending, output = ended.ending, ended.output
    if any(map(_is_seen, output)) or open_calls(output) or closing_commentary(output):
        return ending
    if ending.kind == "completed":
        called = output and is_call_output(output[-1])
        return ending_of_incomplete("only_calls" if called else "no_answer")
    if ending.code == "max_output_tokens" and any(map(is_reasoning, output)):
        sentence = ending_of_incomplete("only_tokens").sentence
        return ending._replace(sentence=sentence)
    return ending


def _is_seen(item: Item) -> bool:
    if item_type(item) == "message":
        return bool(message_text(item).strip()) and not is_commentary(item)
    return has_image(item) or is_code(item)


_MOST_WORDS, _MOST_READ = 500, 5000


def server_words(call: PipeCall, words: str) -> str:
    said = redact_line(words[:_MOST_READ], call.config.secrets)[:_MOST_WORDS]
    return f"The server said: {said}" if said else ""


def report_exception(call: PipeCall, error: Exception) -> str:
    if isinstance(error, ResponsesError):
        call.log.warn(f"nothing was sent: {error}")
        return _with_error_id(call, str(error))
    call.log.line("ERROR", describe_exception(error))
    return _with_error_id(call, _INTERNAL_ERROR)


def _with_error_id(call: PipeCall, sentence: str) -> str:
    return f"{sentence} (Error id: {call.log.run_id})"


def _missing_features(prepared: PreparedRequest) -> tuple[list[str], list[str]]:
    call, config = prepared.call, prepared.call.config
    if call.caller.task:
        return [], []
    words = {"reasoning_effort": config.effort, "verbosity": config.verbosity}
    chosen = {name: word for name, word in words.items() if word}
    return unsent_parameters({**chosen, **call.body}, prepared.request)


_MOST_REASONS = 50


def _report_removals(call: PipeCall, removed: Mapping[str, int]) -> None:
    if removed:
        meant, dropped = removed.keys() <= {"turn_boundary"}, call.capabilities.dropped
        if not meant and len(dropped) < _MOST_REASONS:
            dropped.update(removed)
        counts = ", ".join(f"{count} {reason}" for reason, count in removed.items())
        told = f"the API left out earlier reasoning of the input: {counts}"
        call.log.line("DEBUG" if meant else "WARNING", told)


def _audited(prepared: PreparedRequest) -> AuditedRequest:
    payload, host = prepared.request.payload(), prepared.endpoint.host
    return AuditedRequest(payload, host, prepared.call.log.run_id)


def _add_cost(prepared: PreparedRequest, ended: RunDone) -> RunDone:
    if not prepared.call.config.shows_cost or not ended.usages:
        return ended
    cost = cost_of_responses(prepared, ended.usages, ended.output)
    return ended._replace(cost=cost)


def cost_of_responses(
    prepared: PreparedRequest, usages: Iterable[Usage], output: Iterable[Item]
) -> float | None:
    call, request = prepared.call, prepared.request
    own = call.config.prices
    if isinstance(own, InvalidRequest):
        return None
    facts = call.resolve(request.model).facts
    facts = facts._replace(prices=own.get(request.model, facts.prices))
    asked = request.service_tier or ""
    usages = [one._replace(tier=one.tier or asked) for one in usages]
    return cost_of_run(usages, facts, output, utc_today(), prepared.endpoint.host)


_HOW = (
    "Open WebUI calls tools of this model in its legacy way: before the model is asked, "
    "and without its reasoning."
)
_ADVICE = (
    " Set Function Calling to Native in the model's advanced parameters, or switch on "
    "AUTO_NATIVE_TOOLS in the valves of this pipe."
)
_DONE = " AUTO_NATIVE_TOOLS has set it to Native, from the next message on."


async def _legacy_notice(call: PipeCall) -> str:
    if value_at(call.host.metadata, "params", "function_calling") != "legacy":
        return ""
    row = await legacy_model(call.model_id)
    if row is None:
        return ""
    changed = call.valves.AUTO_NATIVE_TOOLS and await make_native(row)
    notice = _HOW + (_DONE if changed else _ADVICE)
    return notice if _tell_once(call, f"{call.model_id}: {notice}") else ""


def _valve_notices(call: PipeCall) -> list[str]:
    servers = call.config.remote
    complaints = (*servers.complaints, *call.config.problems)
    for complaint in complaints:
        call.log.warn(complaint)
    options = as_mapping(parse_json_object(call.valves.IMAGE_GENERATION_OPTIONS))
    drawing = resolve_model(as_text(options.get("model")))
    end = retirement_notice(drawing, utc_today())
    image = end and f"IMAGE_GENERATION_OPTIONS: {end}"
    every_note = (*servers.notes, opening_error(call.valves), image)
    notes = [note for note in every_note if note and _tell_once(call, note)]
    return [*(complaints if call.caller.is_admin else ()), *notes]


def _tell_once(call: PipeCall, notice: str) -> bool:
    call.warn_once(notice)
    return call.caller.is_admin and call.capabilities.first_time(f"chat: {notice}")


def _refusal_notice(call: PipeCall) -> str:
    if not call.caller.host_reads:  # nobody would see it
        return ""
    user, is_new = call.caller.user_id, call.capabilities.first_time
    names = [name for name in call.config.refused if is_new(f"{user}: {name}")]
    if not names:
        return ""
    listed = ", ".join(names)
    call.log.line("INFO", f"user {user} may not change {listed}")
    shown = listed.replace("_", " ").title()
    return f"No effect, because only administrators may change it: {shown}"


async def notices_of(prepared: PreparedRequest, ended: RunDone) -> list[str]:
    call = prepared.call
    if call.caller.task or (prepared.delegates and leaves_calls(ended)):
        return []
    retirement = retirement_notice(call.chosen_model, utc_today(), call.model)
    notices = [_refusal_notice(call), retirement, *_valve_notices(call)]
    notices.append(await _legacy_notice(call))
    if call.account:
        notices += call.account.limits.notices()
    return list(filter(None, [*notices, *prepared.notices]))


# owui_manifold.silence

_FIRST_SECONDS = 20.0
_FACTOR = 3
_NEVER = float("inf")


_SILENT = "The server has been silent for {}; the model may still be thinking."


class WaitingLines:
    def __init__(self, call: PipeCall, connections: Connections) -> None:
        self._call, self._connections = call, connections
        self._loop = asyncio.get_running_loop()
        self._since, self._due = _NEVER, _FIRST_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._is_shown = False

    def heard(self, waits: bool) -> None:
        self._since, self._due = self._loop.time() if waits else _NEVER, _FIRST_SECONDS
        self._timer = self._timer or self._loop.call_later(_FIRST_SECONDS, self._look)

    def _look(self) -> None:
        silent = max(0.0, self._loop.time() - self._since)
        if silent >= self._due:
            minutes = int(self._due // 60)
            length = f"{minutes} min" if minutes else f"{self._due:.0f} s"
            self._tell(_SILENT.format(length))
            self._due *= _FACTOR
        wait = max(1.0, self._due - silent)
        self._timer = self._loop.call_later(wait, self._look)

    def _tell(self, sentence: str) -> None:
        self._is_shown = bool(sentence)
        if emit := self._call.page:
            event = status_chunk(sentence)["event"]
            self._connections.do_later(emit(event))

    def note(self, event: RunEvent) -> list[Status]:
        is_attempt = isinstance(event, Status) and not event.repair
        is_over, self._is_shown = self._is_shown, is_attempt
        return [Status("")] if is_over and not is_attempt else []

    async def aclose(self) -> None:
        self._since = _NEVER
        if self._timer:
            self._timer.cancel()
        if self._is_shown:
            self._tell("")


# owui_manifold.spending


def check_limits(prepared: PreparedRequest) -> None:
    account, request = prepared.call.account, prepared.request
    if account:
        is_pro = (request.reasoning or {}).get("mode") == "pro"
        model, goes_on = request.model + "-pro" * is_pro, bool(prepared.round)
        has_price = cost_of_responses(prepared, [Usage()], ()) is not None
        if refused := account.limits.refusal(model, has_price, goes_on):
            raise InvalidRequest(refused)


def counted_run(prepared: PreparedRequest, connections: Connections) -> RunEvents:
    limits, counts = prepared.limits, _RunCounts(prepared)
    request, endpoint = prepared.request, prepared.endpoint
    if account := prepared.call.account:
        limits = limits._replace(spent=counts.add)
    events = run(request, endpoint, connections, limits, prepared.toolset)
    if account:
        events = counts.watch(events)
        events = account.observe_run(events, request.model, endpoint.host, event_words)
    return events


def event_words(event: RunEvent) -> tuple[str | None, ...]:
    match event:
        case TextDelta(kind="text" | "refusal"):
            return ("text",)
        case Status(repair=repair):
            return ("recovery" if repair else "retry",)
        case RunDone(ending, trace=trace):
            return "end", ending.kind, ending.code, trace.model
    return ()


class _RunCounts:
    def __init__(self, prepared: PreparedRequest) -> None:
        self._prepared = prepared
        self._counted = 0
        self._characters: int | None = 0

    def add(self, usages: Sequence[Usage], output: Sequence[Item] = ()) -> str:
        prepared, new = self._prepared, usages[self._counted :]
        self._counted, self._characters = len(usages), None
        total = reduce(add_usage, new, None) or Usage()
        counts = (len(new), total.input, total.cached, total.output)
        cost = cost_of_responses(prepared, new, output)
        account = prepared.call.account
        return str(account.count_responses(prepared.request.model, counts, cost))

    async def watch(self, events: RunEvents) -> RunEvents:
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, TextDelta):
                        self._characters = (self._characters or 0) + len(event.text)
                    yield event
        finally:
            if self._characters is not None:
                items, self._counted = self._prepared.request.input, 0
                asked = sum(len(message_text(item)) for item in items)
                self.add([Usage(asked // 4, self._characters // 4)])


# owui_manifold.answer

_NOT_WRITTEN = (
    "Open WebUI refused to store the items that this chat does not show: later turns go "
    "on without them. Its database may be locked or full."
)


async def answer_events(
    prepared: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    check_limits(prepared)
    prepared = compare_cache(prepared)
    call, recorder = prepared.call, _recorder(prepared)
    citations = Citations(_known_sources(prepared))
    report_request(prepared)
    if prepared.reason:
        yield Status(prepared.reason)
    artifacts = ArtifactStore(prepared, connections)
    repairs = _Repairs(prepared)
    lines = WaitingLines(call, connections)
    limits = prepared.limits._replace(heard=lines.heard)
    events = counted_run(prepared._replace(limits=limits), connections)
    async with aclosing(events), aclosing(lines):
        async for arrived in events:
            for line in lines.note(arrived):
                yield line
            event = await artifacts.stored(await repairs.follow(arrived))
            if event is None:
                continue
            for cited in citations.feed(event) if call.caller.host_reads else (event,):
                for shown in await _write_records(prepared, recorder, cited):
                    yield shown
            if isinstance(event, RunDone):
                _hand_over(prepared, recorder, citations, event, repairs.helped)
                yield report_end(prepared, event)
                for notice in await notices_of(prepared, event):
                    yield Status(notice)


def _known_sources(prepared: PreparedRequest) -> Sequence[str]:
    if prepared.round:
        return prepared.round.cited
    return source_keys(prepared.call.host.metadata.get("sources"))


async def _write_records(
    prepared: PreparedRequest, recorder: Recorder | None, event: CitedEvent
) -> list[AnswerEvent]:
    store, shown = prepared.store, list[AnswerEvent]()
    for recorded in recorder.feed(event) if recorder else (event,):
        if not isinstance(recorded, NewRecord | RunDone):
            shown.append(recorded)
        elif isinstance(recorded, NewRecord) and store:
            store.write_beside(*recorded)
    if isinstance(event, RunDone) and store and not await store.flush():
        prepared.call.log.warn(_NOT_WRITTEN)
    return [*shown, *(store.take_unsent() if store else ())]


def _recorder(prepared: PreparedRequest) -> Recorder | None:
    caller, store = prepared.call.caller, prepared.store
    remembers = prepared.call.valves.remembers_reasoning()
    if not store and not (remembers and caller.host_reads and not caller.task):
        return None
    scope = RecordScope(
        caller.host_model,
        caller.message_id,
        prepared.origin,
        remembers,
        cites=prepared.cites,
        delegates=prepared.delegates,
        carrier=store.carrier if store else "details",
        sign=prepared.sign,
    )
    pending = prepared.round.pending if store and prepared.round else ()
    return Recorder(scope, _new_record, pending)


def _new_record() -> tuple[str, int]:
    return new_ulid(), unix_seconds()


class _Repairs:
    def __init__(self, prepared: PreparedRequest) -> None:
        self.helped: list[Status] = []
        self._prepared = prepared
        self._tried: list[Status] = []

    async def follow(self, event: RunEvent) -> RunEvent:
        call = self._prepared.call
        if isinstance(event, Status):
            reason = server_words(call, event.reason)
            call.log.warn(f"{event.sentence} {reason}".strip())
            self._tried += [event] if event.repair else []
            return Status(event.sentence)
        if self._tried and _has_answer(event):
            await _remember(self._prepared, self._tried)
            self.helped, self._tried = self.helped + self._tried, []
        return event


def _has_answer(event: RunEvent) -> bool:
    if isinstance(event, RunDone):
        return event.ending.kind in ("completed", "incomplete")
    return not isinstance(event, ItemAdded)


async def _remember(prepared: PreparedRequest, repairs: Iterable[Status]) -> None:
    call, store, model = prepared.call, prepared.store, prepared.request.model
    for found in repairs:
        repair, is_about_all = found.repair, found.is_named
        if repair and repair.action in CHAT_ACTIONS and store:
            await store.add_repair(repair)
        elif repair and found.is_lasting:
            if repair.action not in ("field", "lower"):
                is_about_all = is_about_all and is_as_configured(prepared)
            user = "" if is_about_all else call.caller.user_id
            call.capabilities.learn(prepared.endpoint, model, user, repair)


def _hand_over(
    prepared: PreparedRequest,
    recorder: Recorder | None,
    citations: Citations,
    ended: RunDone,
    helped: Iterable[Status],
) -> None:
    if not (prepared.delegates and leaves_calls(ended)):
        return
    call = prepared.call
    within_run = call.valves.carries_reasoning()
    received = tuple(replay_output(ended.output, with_reasoning=within_run))
    pending = tuple(recorder.pending) if recorder else ()
    repairs = (*prepared.request.repairs, *(one.repair for one in helped if one.repair))
    request = prepared.request.model_copy(update={"repairs": repairs})
    origin, cited = prepared.origin, citations.keys
    ended_round = DelegatedRound(request, received, pending, cited, origin)
    save_round(call.state, call.caller.message_id, ended_round)


# owui_manifold.chat


class _Chat(NamedTuple):
    call: PipeCall
    model: ResolvedModel
    store: ChatStore | None
    round: DelegatedRound | None
    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    tools: OfferedTools
    verbosity: str = ""
    request: ResponsesRequest = ResponsesRequest(model="", input=[])

    @property
    def replaced_id(self) -> str:
        return str(self.call.host.metadata.get("regeneration_message_id") or "")


async def build_chat_request(call: PipeCall) -> PreparedRequest:
    require_floor()
    endpoint = call.endpoint
    keys = chat_keys(call.valves, call.caller.user_id)
    store = await open_store(call.caller, call.valves, keys)
    size = count_entries(call.messages, 2) + (store.size if store else 0)
    before = load_round(call.state, call.caller.message_id)
    chat, reason = await run_work(
        size, lambda: _read_messages(call, keys.sign, store, before)
    )
    origin, tools = origin_at(chat.model.family, endpoint), chat.tools
    request = continue_round(before, chat.parts) if before else None
    if request is None:
        items = await _history(chat, origin, size)
        changed = {"input": items, "instructions": chat.instructions or None}
        request = chat.request.model_copy(update=changed)
    return PreparedRequest(
        call,
        request,
        endpoint,
        origin,
        run_limits(call.valves, chat.model),
        store,
        before,
        call_toolset(call, tools),
        reason="" if before else reason,
        notices=(tools.notice, drawing_notice(chat.parts), cut_notice(chat.parts)),
        sign=keys.sign,
        cites=any(tool_kind(tool).is_cited for tool in tools.items),
        records=chat.records,
    )


def _read_messages(
    call: PipeCall,
    sign: Sign | None,
    store: ChatStore | None,
    before: DelegatedRound | None,
) -> tuple[_Chat, str]:
    instructions, parts = parse_messages(call.messages, call.valves.IMAGE_DETAIL)
    parts, records = restore_from_details(parts, sign)
    model, reason = _choose_model(call, parts, store)
    if call.account:
        lacks = (*model.facts.lacks, *call.account.limits.closed_tools())
        model = model._replace(facts=model.facts._replace(lacks=lacks))
    tools = offered_tools(call, model)
    chat = _Chat(call, model, store, before, instructions, parts, records, tools)
    for change in _PASSES:
        chat = change(chat)
    return chat, reason


def _choose_model(
    call: PipeCall, parts: Sequence[ChatPart], store: ChatStore | None
) -> tuple[ResolvedModel, str]:
    question = next(iter(user_messages(parts).values()), None)
    choice = choose_auto_model(
        call.caller.model,
        question.item if question else None,
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={r.origin.family for r in store.records.values()} if store else set(),
    )
    if choice is None:
        return call.model, ""
    model = call.resolve(choice[0])
    return model, f"{model.name} answers: {choice[1]}."


_LEFT_OUT = "a developer's message in its row was left out"


def _attach_stored(chat: _Chat) -> _Chat:
    rows = chat.store.messages if chat.store else {}
    call, metadata = chat.call, chat.call.host.metadata
    given = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(given, rows, metadata)
    if len(parts) < len(given):
        call.warn_once(f"chat {call.caller.chat_id}: {_LEFT_OUT}")
    return chat._replace(parts=attach_files(parts, rows, metadata))


def _take_directive(chat: _Chat) -> _Chat:
    if not chat.model.facts.verbosity:
        return chat
    is_guided = bool(chat.replaced_id)
    parts, verbosity = take_directive(chat.parts, is_guided=is_guided)
    return chat._replace(parts=parts, verbosity=verbosity)


def _restore_outputs(chat: _Chat) -> _Chat:
    if not chat.store:
        return chat
    parts = chat.store.restore(chat.parts, chat.replaced_id)
    return chat._replace(parts=parts, records={**chat.records, **chat.store.records})


def _build_flat(chat: _Chat) -> _Chat:
    settings = request_settings(chat.call, chat.tools, chat.model)
    items = [Item()] * len(chat.parts)
    body, facts, account = _body(chat), chat.model.facts, chat.call.account
    stored = chat.store.repairs if chat.store else ()
    request = build_request(chat.model, "", items, body, settings)
    asked = (request.reasoning or {}).get("effort") or facts.default_effort
    usable = facts.efforts or REASONING_EFFORTS if asked or facts.reasoning else ()
    if account and (effort := account.limits.other_effort(asked, usable)):
        body["reasoning"] = {**as_mapping(body.get("reasoning")), "effort": effort}
        request = build_request(chat.model, "", items, body, settings)
    repairs = (*learned_repairs(chat.call, request.model), *stored)
    if chat.round:
        repairs = chat.round.request.repairs
    return chat._replace(request=request.model_copy(update={"repairs": repairs}))


def _restore_prefix(chat: _Chat) -> _Chat:
    call, store, parts, facts = chat.call, chat.store, chat.parts, chat.model.facts
    instructions, name = chat.instructions, call.caller.message_id
    if store is None or not stored_messages(parts):
        return chat
    mode, kinds = call.valves.STABLE_INSTRUCTIONS, _appended(chat)
    is_stable = facts.appends_tools if mode == "auto" else mode == "on"
    continues = call.host.metadata.get("assistant_message_id") or chat.round
    request, turns = chat.request, model_turns(parts, store.sent, chat.request.model)
    if not continues and name not in store.sent:
        given = instructions if is_stable else None
        sent = capture_sent_context(parts, store.sent, given)
        if kinds:
            turn = record_turn(request, [*turns.values()], facts.default_effort)
            sent = sent._replace(turn=turn)
        store.set_sent(sent)
        turns = model_turns(parts, store.sent, request.model)
    items: Mapping[str, Sequence[Item]] = {}
    if name in turns:
        request, items = append_turns(request, turns, kinds)
    first = first_instructions(parts, store.sent) if is_stable else None
    return chat._replace(
        parts=apply_sent_context(parts, store.sent, items),
        instructions=instructions if first is None else first,
        request=request,
    )


def _appended(chat: _Chat) -> set[str]:
    facts, is_openai = chat.model.facts, chat.call.endpoint.is_openai
    kinds = [ADDED_TOOLS] * (is_openai and facts.appends_tools)
    kinds += [CONFIGURATION] * (is_openai and facts.appends_configuration)
    return set(kinds).difference(one.target for one in chat.request.repairs)


def _place_instructions(chat: _Chat) -> _Chat:
    if not (chat.instructions and chat.call.endpoint.is_openai):
        return chat
    first = UserMessage(text_message("developer", chat.instructions))
    return chat._replace(parts=[first, *chat.parts], instructions="")


_PASSES = (
    _attach_stored,
    _take_directive,
    _restore_outputs,
    _build_flat,
    _restore_prefix,
    _place_instructions,
)


async def _history(chat: _Chat, origin: Origin, size: int) -> list[Item]:
    parts, valves, user_id = chat.parts, chat.call.valves, chat.call.caller.user_id
    size += sum(map(image_length, parts)) >> 10
    parts = await run_work(size, partial(resolve_images, parts, scale_image))
    attachments = (p.attachments for p in parts if isinstance(p, UserMessage))
    if valves.FILE_INPUT != "off" and chat.model.facts.vision and any(attachments):
        parts = await add_documents(parts, await user_model(user_id), valves.FILE_INPUT)
    records = await load_stored_images(chat.records, parts, user_id)
    reader = origin if valves.remembers_reasoning() else None
    with_tools = valves.PERSIST_TOOL_RESULTS
    repairs = chat.store.repairs if chat.store else ()
    return await run_work(
        size,
        lambda: fit_input(
            build_input(parts, records, reader, with_tools=with_tools, repairs=repairs)
        ),
    )


def _body(chat: _Chat) -> dict[str, Any]:
    choice = chat.tools.choice
    choice = next_tool_choice(choice) if chat.round else choice
    body = {**chat.call.body, "tool_choice": choice}
    if chat.verbosity:
        body["text"] = {**as_mapping(body.get("text")), "verbosity": chat.verbosity}
    return body


# owui_manifold.checkup

_FEWEST_TOKENS = 16
_PING: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "ping"}],
}


_VERIFY = "Verify the organization at OpenAI, or"
_CHECK_ADVICE = {
    "Streaming": f"{_VERIFY} turn off ENABLE_STREAM.",
    "Summaries": f"{_VERIFY} set REASONING_SUMMARY to `disabled`.",
    "mcp": "Check REMOTE_MCP_SERVERS_JSON.",
    "file_search": "Check FILE_SEARCH_VECTOR_STORES.",
}
_TOOL_ADVICE = "Allow it in the key's project, or turn off ENABLE_{}."
_UNLISTED = (
    "It is accepted, but not listed: {}. Allow them in the key's project, or change "
    "MODEL_ID."
)
_LOST = (
    "The API left some out since the last start: {}. Look for filters that change "
    "earlier messages, and set STABLE_INSTRUCTIONS to `on`."
)


class _Diagnostics:
    def __init__(self, call: PipeCall, connections: Connections) -> None:
        self._model = call.model
        self._hosted, _ = hosted_tools(call.config, self._model)
        self._endpoint = call.endpoint
        names = comma_list(call.valves.MODEL_ID)
        listed = (call.resolve(name).id for name in names if name != "auto")
        self._listed = dict.fromkeys(listed)
        self._connections = connections
        self._dropped = call.capabilities.dropped
        self._limits = run_limits(call.valves, call.model)._replace(
            retries=RetryPolicy(0)
        )

    async def lines(self) -> AsyncGenerator[str, None]:
        place, name = self._endpoint.host, self._model.name
        yield f"The set-up of this pipe, tried with {name} at {place}:\n"
        yield await self._models_line()
        complaint = await self._complaint()
        yield _finding("A small request", "The model answers.", complaint)
        if complaint:
            return
        works = "Answers can be streamed."
        tries: list[tuple[str, str, Item]] = [("Streaming", works, {"stream": True})]
        if self._model.facts.summary:
            works = "Summaries of the reasoning can be shown."
            tries.append(("Summaries", works, {"reasoning": {"summary": "auto"}}))
        works = "The model can be given this tool."
        for tool in self._hosted:
            only = {"tools": [tool], "tool_choice": "none"}
            tries.append((tool["type"], works, only))
        for kind, works, more in tries:
            advice = _CHECK_ADVICE.get(kind) or _TOOL_ADVICE.format(kind.upper())
            name = more.get("tools", [{}])[0].get("server_label") or kind
            yield _finding(name, works, await self._complaint(**more), advice)
        counts = ", ".join(f"{n} {why}" for why, n in self._dropped.most_common(9))
        lost = counts and _LOST.format(counts)
        yield _finding("Earlier reasoning", "The API left nothing out.", lost)

    async def _models_line(self) -> str:
        try:
            usable = await fetch_models(self._endpoint, self._connections)
        except ResponsesError as error:
            what = "The list of models"
            if error.status in (404, 405, 501):
                return _finding(what, "This server lists no models.", "")
            return f"- ⚠️ **{what}**: {self._endpoint.name_server(str(error))}"
        missing = ", ".join(name for name in self._listed if name not in usable)
        if missing:
            return f"- ⚠️ **The key**: {_UNLISTED.format(missing)}"
        return _finding("The key", "It is accepted, for all models listed.", "")

    async def _complaint(self, **more: Any) -> str:
        complaint = await self._try(max_output_tokens=_FEWEST_TOKENS, **more)
        return await self._try(**more) if complaint else ""

    async def _try(self, **more: Any) -> str:
        asked = {"stream": False, **more}
        request = ResponsesRequest(model=self._model.id, input=[_PING], **asked)
        remedy, ended = "", RunDone(CUT)
        events = run(request, self._endpoint, self._connections, self._limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Status) and event.repair:
                    remedy = event.sentence
                ended = event if isinstance(event, RunDone) else ended
        answered = ended.ending.kind in ("completed", "incomplete")
        return remedy if answered else ended.ending.sentence


def _finding(what: str, works: str, complaint: str, advice: str = "") -> str:
    if not complaint:
        return f"- ✅ **{what}**: {works}"
    return f"- ❌ **{what}**: {complaint} {advice}".rstrip()


def is_check_command(call: PipeCall) -> bool:
    return call.caller.is_admin and last_words(call) == "/check"


def last_words(call: PipeCall) -> str:
    last: JsonObject = call.messages[-1] if call.messages else {}
    return as_text(last.get("content")).strip() if last.get("role") == "user" else ""


def run_diagnostics(
    call: PipeCall, connections: Connections
) -> AsyncGenerator[RunEvent, None]:
    return told_lines(_Diagnostics(call, connections).lines())


async def told_lines(
    lines: AsyncGenerator[str, None],
) -> AsyncGenerator[RunEvent, None]:
    message: Item = {"type": "message", "role": "assistant", "content": []}
    yield ItemAdded(0, message)
    text = ""
    async with aclosing(lines):
        async for line in lines:
            text += line + "\n"
            yield TextDelta(0, "text", 0, line + "\n")
    content = [{"type": "output_text", "text": text, "annotations": []}]
    whole = {**message, "content": content}
    yield ItemDone(0, whole, shown=text)
    yield RunDone(COMPLETED, output=(whole,))


# owui_manifold.failover


def at_endpoint(call: PipeCall) -> PipeCall:
    endpoints = call.account and call.account.endpoints
    if not endpoints:
        return call
    if endpoints.problem:
        raise InvalidRequest(endpoints.problem)
    config, replaced = call.config, endpoints.valves()
    if key := replaced["API_KEY"]:
        call.log.hide(key)
        config = config._replace(secrets=(*config.secrets, key))
    valves = config.valves.model_copy(update=replaced)
    return call._replace(config=config._replace(valves=valves))


async def answer_somewhere(
    prepared: PreparedRequest,
    permit: Callable[[], Awaitable[PipeCall]],
    connections: Connections,
) -> AsyncGenerator[AnswerEvent, None]:
    endpoints, before = prepared.call.account.endpoints, prepared.round
    begun, home = bool(before), before.origin if before else _last_origin(prepared)
    if home and endpoints.return_to(home.endpoint, home.account, is_same_answer=begun):
        prepared = await build_chat_request(await permit())
    while True:
        if home and (loss := endpoints.loss(home.endpoint, home.account)):
            yield Status(loss)
        held = list[AnswerEvent]()
        async with aclosing(answer_events(prepared, connections)) as events:
            async for event in events:
                if isinstance(event, RunDone) and not begun:
                    ending, status = event.ending, event.trace.status or 0
                    notice = endpoints.leave_failed(ending.kind, ending.code, status)
                    if notice:
                        break
                held.append(event)
                if not isinstance(event, StoredRecord):
                    begun = begun or not isinstance(event, Status)
                    for one in held:
                        yield one
                    held.clear()
            else:
                return
        yield Status(notice)
        prepared = await build_chat_request(await permit())


def _last_origin(prepared: PreparedRequest) -> Origin | None:
    records = prepared.records.values()
    made = [one for one in records if any(map(is_encrypted, one.payload))]
    return max(made, key=lambda one: one.ulid).origin if made else None


# owui_manifold.pipe

_NO_ENTRA = (
    "AUTH `entra_id` needs the filter openai_responses_administration. An administrator "
    "has to install it."
)
_NO_LEGACY_TOOLS = "Function Calling is Legacy, so TOOL_APPROVAL lets no tool run"


class Pipe:
    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._connections = Connections()
        self._capabilities = AccountCapabilities()
        self._listing = Listing()
        self._capabilities.shutdown_dates = self._listing.shutdown_dates
        self._threads = ToolThreads()

    def pipes(self) -> list[dict[str, str]]:
        models = list_models(self.valves, self._listing, self._connections)
        return [{"id": name, "name": model.name} for name, model in models.items()]

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
        valves = self.valves
        host = await allowed_features(__metadata__ or {}, __user__ or {})
        config = read_config(valves, __user__, host)
        call = PipeCall(
            body,
            read_caller(body, __user__, __metadata__, __task__),
            config,
            getattr(__request__, "state", None),
            self._capabilities,
            RunLog(config.log_level, config.secrets, new_ulid()[-10:]),
            HostContext(
                __tools__ or {},
                __request__,
                __metadata__ or {},
                __event_call__,
                __event_emitter__,
            ),
            self._threads,
            __user__ or {},
        )
        if call.caller.task:
            return await self._do_task(call)
        if call.caller.streams:
            return self._stream(call)
        return await self._complete(call)

    async def _stream(self, call: PipeCall) -> AsyncGenerator[Chunk, None]:
        failed, view = True, _new_view(call)
        try:
            async with aclosing(await self._answer(call)) as events:
                async for event in events:
                    for chunk in view.render(event):
                        yield chunk
                    if isinstance(event, RunDone):
                        failed = event.ending.is_failure
        except Exception as error:
            yield error_chunk(report_exception(call, error))
        if failed and call.config.shows_log and call.caller.host_reads:
            yield source_chunk("Log of this answer", call.log.text())

    async def _complete(self, call: PipeCall) -> Chunk:
        try:
            ended, items = await self._watch(call, await self._answer(call))
        except Exception as error:
            return error_chunk(report_exception(call, error))
        result = completion(ended, *_response_head(call))
        if not call.caller.host_reads:
            return result
        if ended.ending.is_failure:
            result |= error_chunk(ended.ending.sentence)
        return result | ({"output": items} if items else {})

    async def _do_task(self, call: PipeCall) -> Chunk:
        text = ""
        if call.caller.task == "function_calling" and call.config.approval_rules:
            call.log.warn(_NO_LEGACY_TOOLS)
            return task_result(text, call.caller.host_model)
        try:
            text = await self._task_text(await self._permitted(call))
        except Exception as error:
            report_exception(call, error)
        return task_result(text, call.caller.host_model)

    async def _task_text(self, call: PipeCall) -> str:
        while True:
            request = build_task_request(call)
            events = answer_events(request, self._connections)
            ended, _ = await self._watch(call, events)
            if not lacks_task_model(request, ended):
                return "" if ended.ending.is_failure else completion_text(ended)

    async def _answer(self, call: PipeCall) -> AsyncGenerator[AnswerEvent, None]:
        permitted = await self._permitted(call)
        if is_check_command(call):
            return run_diagnostics(permitted, self._connections)
        account = permitted.account
        if account and (lines := account.limits.answer(last_words(call))):
            return told_lines(lines)
        request = await build_chat_request(permitted)
        if account and account.endpoints:
            permit = partial(self._permitted, call._replace(account=account))
            return answer_somewhere(request, permit, self._connections)
        return answer_events(request, self._connections)

    async def _permitted(self, call: PipeCall) -> PipeCall:
        asked = None if call.account else call.host.request
        if administration := await active_administration(asked):
            account = await administration.begin(call.facts)
            call = call._replace(account=account)
        call = at_endpoint(call)
        config, valves, endpoint = call.config, call.valves, call.endpoint
        if valves.AUTH == "entra_id" and not config.own_key:
            if not call.account:
                raise InvalidRequest(_NO_ENTRA)
            ask = call.account.entra_token
            token, problem = await ask(valves.BASE_URL, valves.AUTH_SCOPE)
            if problem:
                raise InvalidRequest(problem)
            config = config._replace(token=token, secrets=(*config.secrets, token))
            call.log.hide(token)
        forwards = valves.FORWARD_USER_INFO
        if forwards == "always" or (forwards == "auto" and endpoint.is_gateway):
            headers = await identity_headers(call.host, call.caller.user_id)
            config = config._replace(identity=headers)
        return await permitted_call(call._replace(config=config))

    async def _watch(
        self, call: PipeCall, events: AsyncGenerator[AnswerEvent, None]
    ) -> tuple[RunDone, list[Item]]:
        ended, view = RunDone(CUT), NativeRenderer(monotonic_seconds, HostedItems)
        async with aclosing(events):
            async for event in events:
                for chunk in view.render(event):
                    if "event" in chunk and call.page:  # a status, or a source
                        await call.page(chunk["event"])
                ended = event if isinstance(event, RunDone) else ended
        return ended, view.shown.items


def _new_view(call: PipeCall) -> NativeRenderer | ChunkRenderer:
    if call.caller.host_reads:
        return NativeRenderer(monotonic_seconds, HostedItems)
    return ChunkRenderer(*_response_head(call))


def _response_head(call: PipeCall) -> tuple[str, int, str]:
    return f"chatcmpl-{new_ulid()}", unix_seconds(), call.caller.host_model
