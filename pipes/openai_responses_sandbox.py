"""
title: Sandbox
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Lets the model run Python and shell commands, and keep files, in a sandbox.

Do not paste this file into Open WebUI. Its editor formats what is pasted, and the server
responds to nobody for seconds meanwhile. Paste the same code, compressed, from
release/openai_responses_sandbox_packed.py

Built by scripts/bundle.py from pipes/; do not edit. Each module follows those that
it imports; the last one has the class Tools.
"""

import ast
import asyncio
import errno
import hashlib
import html
import json
import logging
import math
import mimetypes
import os
import platform
import random
import re
import shutil
import signal
import stat
import struct
import sys
import tempfile
import time
from asyncio import StreamReader, StreamReaderProtocol, StreamWriter, Task
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
    suppress,
)
from datetime import UTC, date, datetime
from fnmatch import fnmatchcase
from functools import partial
from importlib import import_module
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from secrets import token_hex
from subprocess import DEVNULL, PIPE, Popen
from threading import Lock, Thread
from types import MappingProxyType
from typing import Annotated, Any, Generic, IO, Literal, NamedTuple, Protocol, TypeVar
from zipfile import BadZipFile, ZipFile

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

# --------------------------------------------------------------------------------------
# openai_responses.json_input
#
# JSON that others wrote, which may be invalid, and JSON that is sent.
# --------------------------------------------------------------------------------------


JsonObject = Mapping[str, Any]
"""One that is only read."""

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of an event or a body: each can be a whole response with its images."""
MAX_JSON_DEPTH = 128
"""Recursive code, ours and the host's, fails at some hundreds."""
_VALUE_BYTES = 32
"""About what a value takes in memory in addition to its text: `[],` becomes 64 bytes."""


def _finite_number(text: str) -> float | None:
    """Return a number; None for one that JSON can say and no reader has, as 1e999."""
    number = float(text)
    return number if math.isfinite(number) else None


FINITE_NUMBERS: Mapping[str, Any] = {
    "parse_constant": lambda _name: None,
    "parse_float": _finite_number,
}
"""For a decoder: NaN and infinite numbers become null.

Python reads and writes them, others do not: with one of a server in an item, the page
could read no event of its socket, and PostgreSQL refused to store the chat.
"""


def load_json(
    text: str | bytes | bytearray, numbers: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """Return the value of a JSON text; raises ValueError, also if it is too deep.

    `numbers` may be FINITE_NUMBERS.
    """
    with suppress(RecursionError):
        value = json.loads(text, **numbers)
        # Most texts have fewer brackets than levels are allowed, which is quick to see.
        if _count_marks(text, "[{") <= MAX_JSON_DEPTH or not is_too_deep(value):
            return value
    raise ValueError("too deep")


def _count_marks(text: str | bytes | bytearray, marks: str) -> int:
    """Return how many of the marks a JSON text has, those in its strings among them."""
    if isinstance(text, str):
        return sum(text.count(mark) for mark in marks)
    return len(text) - len(text.translate(None, marks.encode()))


def is_too_deep(value: object) -> bool:
    """Say whether a value has more levels than MAX_JSON_DEPTH."""
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value), 1))


def _levels(value: object) -> Iterator[list[Any]]:
    """Yield the objects and lists of each level that hold something.

    A value that contains itself has levels without end.
    """
    level: list[Any] = [value] if value and isinstance(value, dict | list) else []
    while level:
        yield level
        below: list[Any] = []
        for parent in level:
            for part in parent.values() if isinstance(parent, dict) else parent:
                # Most are texts: to look for them first halves the time.
                if part.__class__ is not str and part and isinstance(part, dict | list):
                    below.append(part)
        level = below


def compact_json(value: object) -> bytes:
    """Return a value as JSON in UTF-8, in a third of the time that `json` takes.

    Raises ValueError for what `json` may still write: lone surrogates, some hundred
    levels.
    """
    return _COMPACT.to_json(value)


_COMPACT = TypeAdapter[Any](
    Any, config=ConfigDict(ser_json_inf_nan="constants")
).serializer


def json_weight(text: str | bytes | bytearray) -> int:
    """Return about how many bytes a JSON text takes once it is parsed."""
    # A value comes after a comma, or is the first after an opening.
    return len(text) + _VALUE_BYTES * _count_marks(text, "[{,")


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        value = load_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def repeats_a_name(text: str) -> bool:
    """Say whether a JSON text has a name twice in an object: readers take either."""
    has_repeated = False

    def read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal has_repeated
        fields = dict(pairs)
        has_repeated = has_repeated or len(fields) < len(pairs)
        return fields

    json.loads(text, object_pairs_hook=read_object)
    return has_repeated


def parse_string_map(text: str) -> Mapping[str, str] | None:
    """Return the JSON object of texts in a text; None for anything else.

    An empty text stands for an empty object.
    """
    texts = parse_json_object(text.strip() or "{}")
    if texts is None:
        return None
    for value in texts.values():
        if not isinstance(value, str):
            return None
    return texts


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; anything else is the default."""
    value = int(value) if isinstance(value, bool) else value  # 1, as pydantic reads it
    try:
        number = float(str(value).strip())
        clamped = min(max(number, least), most)
        return int(clamped)
    except ValueError:  # no number, or NaN
        return default


_VALUE_SIZE = 10
"""What each value adds to a size; a walk takes about as long for ten characters."""
_MAX_VALUE_DEPTH = 64


class JsonTooLarge(ValueError):
    """What others sent is more than is read."""


class JsonBudget:
    """The work that may still be done on what others sent."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self, size: int) -> None:
        """Take a size away; raises JsonTooLarge if there is not so much."""
        if size > self.left:
            raise JsonTooLarge
        self.left -= size


def json_size(value: object, most: int) -> int:
    """Return the size of a JSON value: its characters, and ten for each value.

    Raises JsonTooLarge for more than `most`, and for too many levels.
    """
    size = 0
    for depth, level in enumerate(_levels([value])):
        for parent in level:
            size += _VALUE_SIZE * len(parent)
            parts = [*parent, *parent.values()] if isinstance(parent, dict) else parent
            if size <= most:  # else the texts need no look
                size += sum([len(part) for part in parts if isinstance(part, str)])
            if size > most:
                raise JsonTooLarge
        if depth >= _MAX_VALUE_DEPTH:
            raise JsonTooLarge
    return size


def matches_schema(value: object, schema: Any) -> bool:
    """Say whether a JSON value matches a schema of ours.

    A text is a pattern, a type itself, a tuple has schemas of which one matches, a list
    the schema of its values, an object the schemas of its keys; anything else is called.
    """
    match schema:
        case str():
            return isinstance(value, str) and bool(re.fullmatch(schema, value, re.S))
        case type():
            return isinstance(value, schema)
        case tuple():
            return any(matches_schema(value, option) for option in schema)
        case [schema_of_rows]:
            return isinstance(value, list) and all(
                matches_schema(row, schema_of_rows) for row in value
            )
        case dict():
            if not isinstance(value, Mapping) or not value.keys() <= schema.keys():
                return False
            return all(matches_schema(value[key], schema[key]) for key in value)
    return bool(schema(value))


def as_mapping(value: object) -> JsonObject:
    """Return a JSON object, an empty one for anything else."""
    # A dict is a Mapping, too, but to find that out takes several times as long.
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    """Return a value inside nested objects; None where one of them is missing."""
    for key in keys:
        value = as_mapping(value).get(key)
    return value


_MAX_REFERENCE_CHARACTERS = 300


def resolve_reference(root: JsonObject, reference: object) -> Any:
    """Return the part of `root` that a `$ref` names, or None.

    The reference is a JSON pointer after a `#`; `#` alone is the root (RFC 6901).
    """
    # A reference of megabytes would be split into as many steps.
    if not isinstance(reference, str) or len(reference) > _MAX_REFERENCE_CHARACTERS:
        return None
    start, *steps = reference.split("/")
    if start != "#":
        return None
    part: Any = root
    for step in steps:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(part, list):
            part = as_mapping(part).get(name)
        elif name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_seconds(value: object) -> float | None:
    """Return a time that a server names, which may be a number in a text, else None."""
    if not isinstance(value, int | float | str) or isinstance(value, bool):
        return None
    with suppress(ValueError, OverflowError):
        seconds = float(value)
        if 0 <= seconds < float("inf"):
            return seconds
    return None


def well_formed(text: str) -> str:
    """Return a text with a question mark for each half of a character.

    JSON may have them ("\\ud83d"), UTF-8 has none, so that no server can send one.
    """
    return text.encode("utf-8", "replace").decode()


# --------------------------------------------------------------------------------------
# openai_responses.clock
#
# Time and chance: what a test has to replace.
# --------------------------------------------------------------------------------------


def unix_seconds() -> int:
    """Return the seconds since 1970, as the API and the host count them."""
    return int(time.time())


def monotonic_seconds() -> float:
    """Return a time that never goes back, for measuring durations."""
    return time.monotonic()


def random_fraction() -> float:
    """Return a number from 0 to 1, to spread waits."""
    return random.random()


def utc_today() -> date:
    """Return today's date in UTC."""
    return datetime.now(UTC).date()


# --------------------------------------------------------------------------------------
# openai_responses.waits
#
# How long a server asks to wait, as it writes it, and as people are told.
# --------------------------------------------------------------------------------------


_FIRST_DATE = 1e9
_FIRST_DATE_IN_MS = 1e11
"""Numbers above are times since 1970, in 2001 and in 1973, and no waits."""


def seconds_until(reset: float) -> float:
    """Return the seconds to wait for a time that a server names in one of three ways."""
    if reset < _FIRST_DATE:
        return reset
    since_1970 = reset / 1000 if reset >= _FIRST_DATE_IN_MS else reset
    return max(0.0, since_1970 - unix_seconds())


_SECONDS_OF_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(ms|milli|d|h|m|s)[a-z]{0,8},? ?")
_WAIT_IN_WORDS = re.compile(
    r"\b(?:try again|retry|resets?) (?:in|after) "
    r"((?:\d{1,9}(?:\.\d{1,9})? ?(?:ms|milli|d|h|m|s)[a-z]{0,8},? ?){1,4})",
    re.IGNORECASE,
)


def wait_in_words(text: str) -> float | None:
    """Return the seconds that a message asks to wait, None if it names none.

    "Please try again in 6m0s." (OpenAI), "Please retry after 20 seconds." (Azure), "Your
    quota will reset after 142h40m7s." (Google's Antigravity).
    """
    match = _WAIT_IN_WORDS.search(text)
    return read_duration(match[1]) if match else None


def read_duration(text: str) -> float | None:
    """Return the seconds in a text like `6m0s`, `250ms` or `20 seconds`."""
    times = _TIME.findall(text.lower())
    if not times:
        return None
    return sum(
        float(number) * _SECONDS_OF_UNIT["ms" if unit == "milli" else unit]
        for number, unit in times
    )


_UNITS_TOLD = (("days", 86_400), ("hours", 3600), ("minutes", 60), ("seconds", 1))


def told_wait(seconds: float) -> str:
    """Return a time to wait as people say it; it is not over before."""
    for unit, size in _UNITS_TOLD:
        if seconds > size:  # so that none of them is one
            return f"{math.ceil(seconds / size)} {unit}"
    return "a moment"


# --------------------------------------------------------------------------------------
# openai_responses.errors
#
# The exceptions of this package, and the API's own error.
#
# ResponsesError
#  ├─ InvalidRequest         our own check refused it; nothing was sent
#  │   ├─ InvalidSetting     because of a field of the endpoint
#  │   └─ InvalidParameter   because of a parameter of the caller
#  ├─ ConnectionFailed       no connection, or it broke, also in the middle of an answer
#  ├─ TimedOut               the server or the run took too long
#  ├─ ResponseLost           a background response whose rest cannot be had
#  ├─ ApiRefused             an HTTP status that is no answer (from 300 on), or an error
#  │                         in its place
#  ├─ UnreadableAnswer       an answer that is not what the API sends
#  ├─ AnswerTooLarge         an answer that is not read on
#  └─ MalformedEvent         one event of a stream that cannot be read
#
# `str(error)` is our own message for users, without body, header or key. What an
# administrator has to look at is in `fault`, for a shell to say with its own names.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# owui_chat.file_names
#
# The name and the type under which a file of a model or a tool is stored.
#
# Open WebUI sends an administrator's file inline, in its own origin, with the type that
# `mimetypes` reads from the name (docs/reference/open-webui.md, "Events and stored
# files"). A script in such a page has the rights of whoever opens the link, and a name
# deceives: `mimetypes` ignores an encoding, so `report.html.gz` is `text/html`.
#
# So a list says which endings a browser only shows or downloads. A file with any other
# ending, or with none, is stored under its name with `.bin`, which is only downloaded.
# --------------------------------------------------------------------------------------


_MAX_FILE_NAME = 200
"""Characters of a foreign name that are read."""
_MAX_ENDING = 20
_MAX_BYTES = 200
"""Of a stored name: the host puts 37 in front, and its file system takes 255."""

_OFFICE = "application/vnd.openxmlformats-officedocument"
INERT_TYPES: Mapping[str, str] = {
    # Images, without SVG, which runs scripts.
    "avif": "image/avif",
    "bmp": "image/bmp",
    "gif": "image/gif",
    "heic": "image/heic",
    "ico": "image/x-icon",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "webp": "image/webp",
    # Sound and video.
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "mp3": "audio/mpeg",
    "mp4": "video/mp4",
    "ogg": "audio/ogg",
    "wav": "audio/wav",
    "webm": "video/webm",
    # Documents. Viewers of browsers keep a PDF's scripts out of the page's origin.
    "doc": "application/msword",
    "docx": f"{_OFFICE}.wordprocessingml.document",
    "epub": "application/epub+zip",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odt": "application/vnd.oasis.opendocument.text",
    "pdf": "application/pdf",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": f"{_OFFICE}.presentationml.presentation",
    "rtf": "application/rtf",
    "xls": "application/vnd.ms-excel",
    "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
    # Texts. A browser shows them as they are; `js` and `css` are parts of pages.
    "csv": "text/csv",
    "geojson": "application/geo+json",
    "ics": "text/calendar",
    "ipynb": "application/x-ipynb+json",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "log": "text/plain",
    "md": "text/markdown",
    "py": "text/x-python",
    "sql": "application/sql",
    "tex": "application/x-tex",
    "toml": "application/toml",
    "tsv": "text/tab-separated-values",
    "txt": "text/plain",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    # Data and archives, which are only downloaded.
    "7z": "application/x-7z-compressed",
    "arrow": "application/vnd.apache.arrow.file",
    "bin": "application/octet-stream",
    "db": "application/vnd.sqlite3",
    "feather": "application/vnd.apache.arrow.file",
    "h5": "application/x-hdf5",
    "npy": "application/octet-stream",
    "npz": "application/octet-stream",
    "parquet": "application/vnd.apache.parquet",
    "pkl": "application/octet-stream",
    "sqlite": "application/vnd.sqlite3",
    "stl": "model/stl",
    "tar": "application/x-tar",
    "tgz": "application/gzip",
    "zip": "application/zip",
}
"""The endings that a browser runs nothing of, with their types."""

_COMPRESSED_TYPES: Mapping[str, str] = {
    "bz2": "application/x-bzip2",
    "gz": "application/gzip",
    "xz": "application/x-xz",
}
"""Endings that `mimetypes` looks past: the type is that of the ending before."""

_IMAGE_ENDINGS: Mapping[str, str] = {
    "image/gif": "gif",
    "image/jpeg": "jpg",
    "image/png": "png",
    "image/webp": "webp",
}
"""The ending of each type of image that models and their tools generate."""

_UNFIT = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""What no file system or database takes, as NUL and the bytes of a name that is not
UTF-8; what ends a line; and what turns the direction of a line around, so that another
ending is read."""


def shorten_name(name: str) -> str:
    """Return at most 200 characters of a foreign name: its beginning and its ending.

    Whoever chooses a name chooses its length too, so this comes before anything else
    reads it.
    """
    if len(name) <= _MAX_FILE_NAME:
        return name
    return name[: _MAX_FILE_NAME - _MAX_ENDING] + name[-_MAX_ENDING:]


def stored_name(name: str) -> tuple[str, str]:
    """Return the name and the MIME type under which a file is stored.

    `name` is any text: a directory before it is left out, and a browser runs nothing
    that has the returned name.
    """
    base = shorten_name(name.replace("\\", "/").rpartition("/")[2]) or "file"
    base = _UNFIT.sub("_", base)
    surplus = len(base.encode()) - _MAX_BYTES
    if surplus > 0:  # letters may have four bytes
        head = base[:-_MAX_ENDING].encode()[:-surplus].decode(errors="ignore")
        base = head + base[-_MAX_ENDING:]
    stem, _, ending = base.lower().rpartition(".")
    if stem and ending in INERT_TYPES:
        return base, INERT_TYPES[ending]
    # What was compressed is named before: `notes.txt.gz`, or `notes.gz` for anything.
    _, dot, inner = stem.rpartition(".")
    is_inert = inner in INERT_TYPES if dot else bool(stem)
    if ending in _COMPRESSED_TYPES and is_inert:
        return base, _COMPRESSED_TYPES[ending]
    return f"{base}.bin", INERT_TYPES["bin"]


def document_name(media_type: str) -> str:
    """Return the name of a document that has only a type; most are PDFs."""
    endings = {kind: ending for ending, kind in INERT_TYPES.items()}
    return f"file.{endings.get(media_type, 'pdf')}"


def image_name(media_type: str) -> str:
    """Return the name of an image that has only a type."""
    ending = _IMAGE_ENDINGS.get(media_type)
    return f"image.{ending}" if ending else "image"


# --------------------------------------------------------------------------------------
# shells.valve_texts
#
# Valves that hold several values: lists of words, and JSON objects.
#
# A JSON object replaces many fields that are rarely changed. Its keys are checked one by
# one: a number out of its range becomes the nearest allowed one, a key with any other
# invalid value gets its default, and the others still apply.
# --------------------------------------------------------------------------------------


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas or lines, each of them once.

    Open WebUI's dialog has a field of several lines for a valve with text.
    """
    words = (word.strip() for word in text.replace("\n", ",").split(","))
    return list(dict.fromkeys(word for word in words if word))


def fits_pattern(name: str, patterns: Iterable[str]) -> bool:
    """Say whether a name fits one of the patterns, like `gpt-5*`, in any case."""
    lower = name.lower()
    return any(fnmatchcase(lower, pattern.lower()) for pattern in patterns)


_MAX_SHOWN_WORDS = 5
_MAX_WORD_CHARACTERS = 40
"""Both limit a message, because an administrator may paste anything."""


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about unknown words of a valve; empty if all are known."""
    unknown = sorted(set(words).difference(known))[:_MAX_SHOWN_WORDS]
    if not unknown:
        return ""
    shown = ", ".join(word[:_MAX_WORD_CHARACTERS] for word in unknown)
    return f"{valve} contains unknown names: {shown}. {advice}"


_Form = TypeVar("_Form", bound=BaseModel)

_MAX_QUOTED = 80
"""Characters of an administrator's text that a message repeats."""


def read_json_valve(
    valve: str,
    text: str,
    form: type[_Form],
    consequence: str = "",
) -> tuple[_Form, Sequence[str]]:
    """Return the settings in the text of a valve, and what is wrong with them.

    `form` names the known keys with their types, ranges and defaults. Each problem is a
    message for administrators; `consequence` is what follows from an invalid value, if
    not that the default applies.
    """
    given = parse_json_object(text.strip() or "{}")
    if given is None:
        mistake = json_mistake(text) or "is not a JSON object"
        effect = f". {consequence}" if consequence else ", so its defaults apply."
        return form(), (f"{valve} {mistake}{effect}",)
    known = form.model_fields
    accepted: dict[str, object] = {}
    problems: list[str] = []
    for key, field in known.items():
        if key not in given:
            continue
        try:
            form.model_validate({key: given[key]})
            accepted[key] = given[key]
            continue
        except ValidationError as error:
            detail = error.errors()[0]
            bound, nearest = _nearest_allowed(error)
        effect = consequence or "Its default applies."
        if nearest is not None:
            accepted[key] = nearest
            advice = f"The {bound} is {nearest:g}, which applies."
        elif detail["type"] == "literal_error":
            advice = f"Choose {_allowed_words(detail['ctx'])}. {effect}"
        else:
            advice = f"{field.description} {effect}"
        shown = repr(given[key])[:_MAX_QUOTED]
        problems.append(f"{valve}: `{key}` cannot be {shown}. {advice}")
    advice = f"Known keys: {', '.join(known)}."
    problem = unknown_words(valve, given, known, advice)
    if problem:
        problems.append(problem)
    return form.model_validate(accepted), tuple(problems)


def json_mistake(text: str) -> str:
    """Return that a text is not JSON, and where; empty if it is JSON.

    The text is not quoted, because it may hold secrets.
    """
    try:
        load_json(text)
    except json.JSONDecodeError as error:
        return f"is not JSON (line {error.lineno}, column {error.colno})"
    except ValueError:  # a number of thousands of digits, or nesting without an end
        return "is not JSON"
    return ""


_PLAIN_NAME = re.compile("[A-Za-z_]{1,40}")


_LISTED_KEYS = re.compile(r" (?:\(known keys: [^():]*+\)|Known keys: [^.:]*+\.)")
"""Both forms of the list that is shown with an unknown key. No key has the signs with
which a list begins, so that many beginnings take linear work."""


def without_known_keys(message: str) -> str:
    """Return a message for those who cannot correct a valve, without the list of its keys."""
    return _LISTED_KEYS.sub("", message)


def unknown_key(key: str, known: Iterable[str]) -> str:
    """Return the message about a key that an entry cannot have.

    It is named only if it has nothing but letters: a secret may be in its place, and
    users read why no answer comes.
    """
    named = f"`{key}` " if _PLAIN_NAME.fullmatch(key) else ""
    return f"the key {named}is unknown (known keys: {', '.join(known)})"


def describe_mistake(error: ValidationError, form: type[BaseModel]) -> str:
    """Return what is wrong with an entry of a JSON list; its values are not quoted.

    They may be secrets.
    """
    mistake = error.errors(include_url=False, include_input=False)[0]
    if not mistake["loc"]:
        return "it is not a JSON object"
    key = str(mistake["loc"][0])[:_MAX_QUOTED]
    match mistake["type"]:
        case "extra_forbidden":
            return unknown_key(key, form.model_fields)
        case "missing":
            return f"`{key}` is missing"
        case "literal_error":
            return f"`{key}` has to be {_allowed_words(mistake['ctx'])}"
        case "greater_than_equal":
            return f"`{key}` has to be at least {mistake['ctx']['ge']:g}"
    return f"`{key}` has a wrong value ({mistake['msg'].lower()})"


def _allowed_words(details: Mapping[str, Any]) -> str:
    """Return the words of which a value has to be one, from the details of a mistake."""
    # An empty word is what a missing key has, which nobody writes.
    return str(details["expected"]).removeprefix("'', ")


def _nearest_allowed(error: ValidationError) -> tuple[str, float | None]:
    """Return the bound that a number exceeds, and its name; None for other mistakes."""
    for detail in error.errors():
        if detail["input"] != detail["input"]:  # not a number, which JSON may say
            break
        bounds = detail.get("ctx", {})
        match detail["type"]:
            case "greater_than_equal":
                return "least", float(bounds["ge"])
            case "less_than_equal":
                return "most", float(bounds["le"])
    return "", None


# --------------------------------------------------------------------------------------
# sandbox.processes
#
# Child processes, in any event loop.
#
# asyncio leaves the start of a process to its loop and to the policy of the whole server:
# uvloop knows neither `process_group` nor `user`, and before Python 3.14 a plain loop
# under uvloop's policy cannot start any. So a process is started here without the loop,
# which only reads and writes its pipes; a thread waits for its end.
# --------------------------------------------------------------------------------------


_AS_IT_IS = nullcontext[None]()


class ChildProcess:
    """A process that leads a session and a group; each pipe that was asked for."""

    def __init__(self, command: Sequence[str], options: Mapping[str, Any]) -> None:
        """Start it, and wait for its end in a thread; raises OSError or ValueError."""
        self._process = Popen(command, start_new_session=True, bufsize=0, **options)
        self.pid = self._process.pid
        self.stdin: StreamWriter | None = None
        self.stdout: StreamReader | None = None
        self.stderr: StreamReader | None = None
        self._reaping = Lock()
        self._ended = asyncio.Event()
        self._opened: list[asyncio.BaseTransport] = []
        loop = asyncio.get_running_loop()
        Thread(target=self._wait, args=(loop,), name="child", daemon=True).start()

    @property
    def returncode(self) -> int | None:
        """The exit status; None while it runs."""
        return self._process.returncode

    async def wait(self) -> None:
        """Wait until it has ended."""
        await self._ended.wait()

    def kill_group(self) -> None:
        """End it with all that it started, unless it has ended.

        The kernel gives its number to another process once it is reaped.
        """
        with self._reaping:
            if self._process.returncode is None:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)

    def lower_share(self) -> None:
        """Give its session a third of the share of others, unless it has ended.

        Raises BlockingIOError if the kernel takes no change now.
        """
        with self._reaping:
            if self._process.returncode is None:
                # Some kernels have no such file.
                with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
                    Path(f"/proc/{self.pid}/autogroup").write_text("5")

    def close(self) -> None:
        """Close the pipes."""
        for transport in self._opened:
            transport.close()

    async def connect(self) -> None:
        """Open the pipes; if that fails or is cancelled, end the process."""
        process = self._process
        all_pipes = (process.stdin, process.stdout, process.stderr)
        pipes = [pipe for pipe in all_pipes if pipe]  # those that are not yet opened
        try:
            if process.stdin:
                self.stdin = await self._open_writer(pipes.pop(0))
            if process.stdout:
                self.stdout = await self._open_reader(pipes.pop(0))
            if process.stderr:
                self.stderr = await self._open_reader(pipes.pop(0))
        except BaseException:
            self.kill_group()
            self.close()
            for pipe in pipes:
                pipe.close()
            await self.wait()
            raise

    def _wait(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait in a thread until the process has ended."""
        with suppress(ChildProcessError):  # the server lets the kernel reap
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        with self._reaping:
            self._process.wait()
        with suppress(RuntimeError):  # the loop is closed: no one waits any more
            loop.call_soon_threadsafe(self._ended.set)

    async def _open_reader(self, pipe: IO[bytes]) -> StreamReader:
        """Return a stream of what the process writes into a pipe."""
        reader = StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            partial(StreamReaderProtocol, reader), pipe
        )
        self._opened.append(transport)
        return reader

    async def _open_writer(self, pipe: IO[bytes]) -> StreamWriter:
        """Return a stream to what the process reads from a pipe."""
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.connect_write_pipe(
            partial(StreamReaderProtocol, StreamReader()), pipe
        )
        self._opened.append(transport)
        return StreamWriter(transport, protocol, None, loop)


async def start_process(
    *command: str,
    starting: AbstractContextManager[None] = _AS_IT_IS,
    **options: Any,
) -> ChildProcess:
    """Start a process, in a context that ends then; raises OSError or ValueError."""
    with starting:
        child = ChildProcess(command, options)
    await child.connect()
    return child


# --------------------------------------------------------------------------------------
# sandbox.backend
#
# Limits of a sandbox, and what makes one.
# --------------------------------------------------------------------------------------


MEBIBYTE = 1024 * 1024


class SandboxLimits(NamedTuple):
    """The limits of one run; sizes are in bytes.

    `memory` is for all processes of a run together, `processes` counts threads as well.
    The workspace and the folder for temporary files have `disk` each, a single file at
    most `file`; a workspace keeps `files` files and folders. `output` limits what is
    printed, the result, and a file that is read; `returned_files` are handed out.
    """

    seconds: float = 30.0
    memory: int = 512 * MEBIBYTE
    processes: int = 32
    disk: int = 64 * MEBIBYTE
    file: int = 32 * MEBIBYTE
    files: int = 1_000
    output: int = 50_000
    returned_files: int = 10


class SharedLimits(NamedTuple):
    """What the users of one server share, whatever the limits of their runs are.

    `runs` and `runs_per_user` are simultaneous. A workspace is removed `idle_seconds`
    after its last use; where there are too many, whoever has the most loses the one
    that was not used for the longest time.
    """

    runs: int = 4
    runs_per_user: int = 2
    workspaces: int = 50
    workspaces_per_user: int = 20
    idle_seconds: float = 3600.0


WRITABLE_FOLDERS = ("/work", "/tmp")
"""Each may hold `disk` bytes."""
NOBODY_UID = 65534
"""The user that runs are handed to; the kernel gives it no rights at all."""
RUN_ENVIRONMENT = {"HOME": "/tmp", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""The environment of a run; libraries of numbers would start a thread per core."""


class SandboxUnavailable(Exception):
    """No sandbox works here; the text is for an administrator."""


def find_program(name: str) -> str:
    """Return the path of a program; raises SandboxUnavailable."""
    path = shutil.which(name)
    if path is None:
        raise SandboxUnavailable(f"{name} is not installed")
    return path


class SandboxProcess(Protocol):
    """One sandbox with one program in it, which reads stdin and answers on stdout."""

    process: ChildProcess

    def measure_memory(self) -> int:
        """Return the bytes that its processes hold, 0 if something else limits them."""

    async def kill(self) -> None:
        """End all that runs in it."""

    def close(self) -> None:
        """Close the descriptors."""


class SandboxBackend(Protocol):
    """A way to make sandboxes."""

    @property
    def name(self) -> str:
        """What an administrator calls it."""

    async def start(self, program: str, limits: SandboxLimits) -> SandboxProcess:
        """Start a program in a sandbox; raises SandboxUnavailable."""


# --------------------------------------------------------------------------------------
# sandbox.bubblewrap
#
# Bubblewrap: empty namespaces around a Python interpreter.
#
# The sandbox sees nothing of the host but the interpreter, its standard library and the
# system's libraries, read-only. Packages that are installed there are hidden: where Open
# WebUI is one of them, its database may lie among them. Bubblewrap gets no environment
# variables, because the code could read them. A server that runs as root starts the run
# as user nobody, because the kernel does not limit the number of root's processes. The
# first process inside is identified by an open folder in `/proc`: unlike a process id, it
# is never reused. The server's interpreter may lie in a home folder that no other user
# can read; then the system's is used.
#
# A filter refuses system calls in the gaps of namespaces: what holds memory that cannot
# be counted, belongs to no namespace, or acts on the whole host. What is left is counted:
# the memory of processes, the files, and what the kernel keeps for sockets, pipes, locks
# and mappings.
# --------------------------------------------------------------------------------------


_INODE_BYTES = 2560
"""What an empty file or folder costs the kernel at most (measured with Linux 6.18); bwrap
has no option that limits their number."""
_MEMORY_FIELDS = ("RssAnon:", "RssShmem:", "VmSwap:", "VmPTE:")
"""What a process holds of memory; the pages of files could be dropped at any time. The
last is what the kernel keeps to find the pages: a mapping far from others takes two
pages of it, also if it holds nothing."""
_BUFFER_BYTES = {
    "pipe": 64 * 1024,
    "socket": 3 * 212_992 // 2,
    "/proc": 128 * 1024,
}
"""What an open file holds: a pipe or a socket that nobody reads (pipe(7); socket(7),
wmem_default: a message is taken as long as there is room, and has at most half of it),
and a file of `/proc` that lists as many locks as we allow (seq_file)."""
_MAX_MAPS_CHARACTERS = 128 * 1024
_BYTES_PER_MAPS_CHARACTER = 5
"""What the kernel holds for a mapping, by its line in `/proc/<process>/maps`."""
_MAX_MAPPINGS_BYTES = 65_530 * 400
"""Of a process with more lines than we read: it has no more (vm.max_map_count)."""
_HELD_ENTRY_BYTES = 256
_HELD_ENTRIES = (b"lock:", b"tfd:")
"""Of an open file in `/proc`: its locks, and what an epoll watches."""
_MAX_HELD_ENTRIES = 1_000
"""No program needs so many; nothing else limits the locks."""
_FILES_SHARE = 20
"""Open files are not read for more than a part of this size of the time: code could keep
half a core of the server busy with 2,000 of them."""


class _BubblewrapProcess:
    """One run; bubblewrap writes the id of the first process inside to a pipe."""

    def __init__(self, process: ChildProcess, info_pipe: int) -> None:
        """Watch `process`; `info_pipe` is read when it is needed."""
        self.process = process
        self._info_descriptor = info_pipe
        self._info = b""
        self._first_descriptor: int | None = None
        self._opening = Lock()  # a thread measures while the run may be ended
        self._files_bytes = 0
        """What its open files held when they were last read."""
        self._files_due = 0.0
        """When they are read again."""
        os.set_blocking(info_pipe, False)

    def measure_memory(self) -> int:
        """Return the memory of the processes and of empty files.

        Raises PermissionError if the kernel does not let us look.
        """
        with suppress(FileNotFoundError, ProcessLookupError, BlockingIOError):
            first = self._open_first_process()
            if not os.path.samestat(os.stat("root", dir_fd=first), os.stat("/")):
                root = f"/proc/self/fd/{first}/root"
                began = time.monotonic()
                if began >= self._files_due:
                    self._files_bytes = _measure_open_files(root)
                    ended = time.monotonic()
                    self._files_due = ended + _FILES_SHARE * (ended - began)
                return self._files_bytes + _measure_root(root)
        return 0  # not begun, or over

    async def kill(self) -> None:
        """End the first process; the kernel ends all others in its namespace."""
        try:
            signal.pidfd_send_signal(self._open_first_process(), signal.SIGKILL)
        except (BlockingIOError, FileNotFoundError, ProcessLookupError):
            self.process.kill_group()  # nothing runs inside yet, or any more

    def close(self) -> None:
        """Close the descriptors."""
        os.close(self._info_descriptor)
        if self._first_descriptor is not None:
            os.close(self._first_descriptor)

    def _open_first_process(self) -> int:
        """Return a descriptor of the first process's folder."""
        with self._opening:
            if self._first_descriptor is None:
                self._info += os.read(self._info_descriptor, 4096)
                number = "none"
                with suppress(ValueError):  # it is not all written yet
                    number = json.loads(self._info)["child-pid"]
                self._first_descriptor = os.open(
                    f"/proc/{number}", os.O_RDONLY | os.O_DIRECTORY
                )
            return self._first_descriptor


def _measure_root(root: str) -> int:
    """Return the bytes that processes and files below the root of a sandbox hold.

    Without what open files hold. Raises PermissionError if the kernel does not let us
    look.
    """
    size = 0
    for threads in _list_threads(root):
        memory = 0
        for folder in threads:
            # All threads have the same memory, but the first may have ended.
            with _unless_it_ended(folder):
                memory = memory or _read_memory(folder)
        size += memory
    for name in WRITABLE_FOLDERS:  # what files need in addition to their content
        with suppress(FileNotFoundError):
            filesystem = os.statvfs(f"{root}{name}")
            size += (filesystem.f_files - filesystem.f_ffree) * _INODE_BYTES
    return size


def _measure_open_files(root: str) -> int:
    """Return the bytes that the kernel keeps for open files of a sandbox."""
    entries = 0
    buffers: set[str] = set()
    for threads in _list_threads(root):
        for folder in threads:  # each may have open files of its own
            with _unless_it_ended(folder):
                entries += _read_open_files(folder, buffers)
            if entries > _MAX_HELD_ENTRIES:
                return sys.maxsize
    size = sum(_BUFFER_BYTES[name.partition(":[")[0]] for name in buffers)
    return size + entries * _HELD_ENTRY_BYTES


def _list_threads(root: str) -> Iterator[list[str]]:
    """Yield the folders of each process's threads."""
    for number in filter(str.isdigit, os.listdir(f"{root}/proc")):
        tasks = f"{root}/proc/{number}/task"
        threads: list[str] = []
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            threads = os.listdir(tasks)
        yield [f"{tasks}/{thread}" for thread in threads]


@contextmanager
def _unless_it_ended(folder: str) -> Iterator[None]:
    """Ignore what cannot be read of a thread that has just ended: it holds nothing.

    Until somebody waits for it, its folder belongs to root.
    """
    try:
        yield
    except (FileNotFoundError, ProcessLookupError):
        pass
    except PermissionError:
        with suppress(FileNotFoundError, ProcessLookupError):
            if _read_resident(folder):
                raise


def _read_memory(folder: str) -> int:
    """Return the bytes that a thread's process holds, by its folder in `/proc`."""
    resident = _read_resident(folder)
    if not resident:
        return 0
    with open(f"{folder}/maps", "rb") as maps:
        characters = len(maps.read(_MAX_MAPS_CHARACTERS))
    if characters == _MAX_MAPS_CHARACTERS:
        return resident + _MAX_MAPPINGS_BYTES
    return resident + characters * _BYTES_PER_MAPS_CHARACTER


def _read_resident(folder: str) -> int:
    """Return the bytes of a thread's memory that are its own; 0 if it has ended."""
    with open(f"{folder}/status", encoding="utf-8", errors="replace") as lines:
        kilobytes = [
            int(line.split()[1]) for line in lines if line.startswith(_MEMORY_FIELDS)
        ]
    return 1024 * sum(kilobytes)


def _read_open_files(folder: str, buffers: set[str]) -> int:
    """Add the pipes and sockets that a thread has open; return the number of `_HELD_ENTRIES`.

    They are read for each file. The list in `/proc/locks` is not: whoever reads it
    stops each lock of the host for 10 ms.
    """
    entries = 0
    for number in os.listdir(f"{folder}/fd"):
        with suppress(FileNotFoundError):  # it is closed by now
            name = os.readlink(f"{folder}/fd/{number}")
            if name.partition(":[")[0] in _BUFFER_BYTES:
                buffers.add(name)
            elif name.startswith("/proc/"):
                buffers.add(f"/proc:[{folder}/{number}")
            else:
                with open(f"{folder}/fdinfo/{number}", "rb") as info:
                    entries += sum(line.startswith(_HELD_ENTRIES) for line in info)
    return entries


_ISOLATION_OPTIONS = (
    "--unshare-user --unshare-all --disable-userns --as-pid-1 --die-with-parent "
    "--clearenv --cap-drop ALL --hostname sandbox --proc /proc "
    "--ro-bind /dev/null /proc/cmdline "
    "--symlink /proc/self/fd /dev/fd --symlink /tmp /dev/shm"
)
_HOST_DISKS = "/proc/fs"
"""It names servers of files and their users; `/proc/cmdline` may hold keys, too."""
_HOST_LOCKS = "/proc/locks"
"""Whoever reads it holds up the locks of all files of the host: in a loop, each lock took
13 times as long."""
_DEVICES = ("null", "random", "urandom")
"""Not `zero`: mapped, it is the shared memory that the filter refuses."""
_PROGRAM_PATHS = ("/usr/bin", "/etc/alternatives")
"""Programs, and the links that Debian chooses some of them by."""
_LIBRARY_FOLDERS = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_READ_ONLY_PATHS = ("/etc/ld.so.cache", "/usr/share/zoneinfo")
_STANDARD_LIBRARY = re.compile(r"python3\.\d+t?")
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""Where pip and Debian install packages, next to the modules of the standard library."""


class BubblewrapBackend:
    """Makes sandboxes in which a given interpreter runs."""

    def __init__(
        self, python: Path, packages: str = "", *, with_programs: bool = False
    ) -> None:
        """`packages` is the folder of installed packages, if there are any.

        With `with_programs` a shell and the system's programs are there, too.
        """
        self.name = f"bubblewrap with {python}"
        self._python = python
        self._packages = packages
        self._with_programs = with_programs

    async def start(self, program: str, limits: SandboxLimits) -> _BubblewrapProcess:
        """Start a sandbox; raises SandboxUnavailable."""
        bwrap = find_program("bwrap")
        if os.stat(bwrap).st_mode & stat.S_ISUID:
            raise SandboxUnavailable(
                "bwrap is setuid root, which gives it more privileges than it needs"
            )
        command = [bwrap, *self._options(limits)]
        user = NOBODY_UID if os.geteuid() == 0 else None
        with (
            _open_seccomp_filter(platform.machine()) as rules,
            _open_pipe() as (info_pipe, info_end),
        ):
            command += ["--seccomp", str(rules), "--info-fd", str(info_end)]
            process = await start_process(
                *command,
                str(self._python),
                "-I",
                "-c",
                program,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env={},
                pass_fds=(rules, info_end),
                starting=_dropping_crashes(),
                user=user,
                group=user,
                extra_groups=None if user is None else [],
            )
            try:
                await _let_others_first(process)
            except BaseException:  # nobody else knows it yet
                process.kill_group()
                process.close()
                await process.wait()
                raise
            return _BubblewrapProcess(process, os.dup(info_pipe))

    def _options(self, limits: SandboxLimits) -> Iterator[str]:
        """Yield the contents of the sandbox; the last option makes its root read-only."""
        yield from _ISOLATION_OPTIONS.split()
        for name in _DEVICES:
            yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
        if os.path.isdir(_HOST_DISKS):
            yield from ("--tmpfs", _HOST_DISKS, "--remount-ro", _HOST_DISKS)
        if os.path.exists(_HOST_LOCKS):
            yield from ("--ro-bind", "/dev/null", _HOST_LOCKS)
        yield from ("--remount-ro", "/proc")
        for name in _READ_ONLY_PATHS:
            yield from ("--ro-bind-try", name, name)
        yield from _folder_options(_LIBRARY_FOLDERS)
        if self._with_programs:
            for name in _PROGRAM_PATHS:
                yield from ("--ro-bind-try", name, name)
            yield from _folder_options(("/bin",))
        prefix = self._python.parent.parent
        if prefix != Path("/usr"):
            yield from _interpreter_options(prefix)
        yield from ("--ro-bind", str(self._python), str(self._python))
        # An empty folder hides each folder of packages.
        hidden = {
            path.resolve()
            for folder in (*_LIBRARY_FOLDERS, f"{prefix}/lib", f"{prefix}/lib64")
            for name in _PACKAGE_FOLDERS
            for path in Path(folder).glob(f"*/{name}")
        }
        for path in sorted(hidden):
            yield from ("--tmpfs", str(path), "--remount-ro", str(path))
        for name in WRITABLE_FOLDERS:
            yield from ("--size", str(limits.disk), "--tmpfs", name)
        if self._packages:
            yield from ("--ro-bind", self._packages, "/packages")
        for name, value in RUN_ENVIRONMENT.items():
            yield from ("--setenv", name, value)
        yield from ("--chdir", "/work", "--remount-ro", "/")


def find_interpreters() -> list[Path]:
    """Return the interpreters that a run could use: the server's, the system's."""
    own = Path(sys.base_prefix, "bin", f"python3.{sys.version_info.minor}")
    system = shutil.which("python3", path="/usr/local/bin:/usr/bin")
    candidates = [own]
    if system:
        candidates.append(Path(system))
    interpreters: list[Path] = []
    for path in candidates:
        if path.exists() and path.resolve() not in interpreters:
            interpreters.append(path.resolve())
    return interpreters


def _folder_options(folders: Iterable[str]) -> Iterator[str]:
    """Yield the options for /lib and the like: links into /usr on most systems."""
    for folder in folders:
        path = Path(folder)
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.is_dir():
            yield from ("--ro-bind", str(path), str(path))


def _interpreter_options(prefix: Path) -> Iterator[str]:
    """Yield the options for the standard library of an interpreter below `prefix`.

    The shared libraries next to it are there, too: those of conda's modules are not the
    system's. Nothing else is, as anything may be installed below such a folder.
    """
    for folder in (prefix / "lib", prefix / "lib64"):
        if folder.is_symlink():
            yield from ("--symlink", os.readlink(folder), str(folder))
            continue
        for path in sorted(folder.glob("*")):
            is_shared = ".so" in path.suffixes and path.is_file()
            if not is_shared and not _STANDARD_LIBRARY.fullmatch(path.name):
                continue
            if path.is_symlink():  # what it leads to is there if it is one of these
                yield from ("--symlink", os.readlink(path), str(path))
            else:
                yield from ("--ro-bind", str(path), str(path))


_SHARE_TRIES = 30
"""With three, the last of four runs that began at once kept the whole share."""
_SHARE_PAUSE_SECONDS = 0.1


async def _let_others_first(process: ChildProcess) -> None:
    """Give the session of a run a third of the share of the processors that others have.

    Linux divides them among sessions (sched(7), autogroups), however nice their
    processes are. It takes such a change of users ten times a second.
    """
    for _ in range(_SHARE_TRIES):
        with suppress(BlockingIOError):
            process.lower_share()
            return
        await asyncio.sleep(_SHARE_PAUSE_SECONDS)


_limiting = Lock()


@contextmanager
def _dropping_crashes() -> Iterator[None]:
    """Start processes whose crashes the kernel drops, and does not hand to its handler.

    Only a limit of one byte means that (fs/coredump.c): with 0, which code could set
    later, the handler of the host would run as root, as often as code crashes. The filter
    keeps code from that; so the limit is inherited from the server, for a moment.
    """
    resource = import_module("resource")  # Windows has none, but must load this module
    with _limiting:
        before = resource.getrlimit(resource.RLIMIT_CORE)
        with suppress(ValueError):  # the server itself may have no more than 0
            resource.setrlimit(resource.RLIMIT_CORE, (1, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_CORE, before)


@contextmanager
def _open_pipe() -> Iterator[tuple[int, int]]:
    """Lend the two ends of a pipe: the one to read, the one to write."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            os.close(end)


@contextmanager
def _open_seccomp_filter(machine: str) -> Iterator[int]:
    """Lend a descriptor from which bubblewrap reads the filter of system calls."""
    program = _build_seccomp_filter(machine)
    reading, writing = os.pipe()
    try:
        os.write(writing, program)  # it fits into a pipe
        os.close(writing)
        yield reading
    finally:
        os.close(reading)


_REFUSED_CALLS = {
    # Memory that cannot be counted.
    "shmget": (29, 194),
    "socket": (41, 198),  # a listener's queue of clients that have closed theirs
    "sendmsg": (46, 211),  # open files on their way
    "bind": (49, 200),
    "setsockopt": (54, 208),  # larger buffers
    "semget": (64, 190),
    "msgget": (68, 186),
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "vmsplice": (278, 75),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "sendmmsg": (307, 269),
    "seccomp": (317, 277),
    "setxattr": (188, 5),  # lists of rights, which no file system counts
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "memfd_create": (319, 279),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),  # its calls are not filtered either
    "landlock_create_ruleset": (444, 444),
    "memfd_secret": (447, 447),
    # A share of the processors as large as that of the server.
    "setsid": (112, 157),
    # Other processes, keys of no namespace, the log and the disks of the host.
    "ptrace": (101, 117),
    "syslog": (103, 116),
    "sync": (162, 81),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "perf_event_open": (298, 241),
    "syncfs": (306, 267),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "bpf": (321, 280),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),  # MADV_PAGEOUT, of itself, too
}
"""The numbers of the calls that are refused, one of each machine in `_ARCHITECTURES`."""

_WHOLE_WORD = 0xFFFFFFFF
_REFUSED_ARGUMENTS = {
    # Anonymous memory that is shared, of which a single page that is left keeps all;
    # huge pages, which the host has set apart for others.
    "mmap": ((9, 222), 3, ((0x21, 0x21), (0x40000, 0x40000))),
    # F_SETLEASE, F_NOTIFY, F_SETPIPE_SZ
    "fcntl": ((72, 25), 1, tuple((_WHOLE_WORD, call) for call in (1024, 1026, 1031))),
    # PR_SET_SECCOMP, PR_SCHED_CORE, PR_FUTEX_HASH
    "prctl": ((157, 167), 0, tuple((_WHOLE_WORD, call) for call in (22, 62, 78))),
    # RLIMIT_CORE, which `_dropping_crashes` has set.
    "setrlimit": ((160, 164), 0, ((_WHOLE_WORD, 4),)),
    "prlimit64": ((302, 261), 1, ((_WHOLE_WORD, 4),)),
    # POSIX_FADV_DONTNEED, MADV_PAGEOUT, RWF_DONTCACHE: the next read of a file is one of
    # the disk.
    "fadvise64": ((221, 223), 3, ((_WHOLE_WORD, 4),)),
    "madvise": ((28, 233), 2, ((_WHOLE_WORD, 21),)),
    "preadv2": ((327, 286), 5, ((0x80, 0x80),)),
}
"""Calls that are refused with certain values: the numbers, which argument, and its bits
that are compared with which value."""
_DIRECT = (0x4000, 0x10000)
"""O_DIRECT of each machine, with which each read of a file of the host is one of its disk:
in a loop, a write of the server took 800 times as long."""
_DIRECT_CALLS = {
    "open": ((2, None), 1, None),
    "openat": ((257, 56), 2, None),
    "fcntl": ((72, 25), 2, 4),  # F_SETFL
}
"""Calls that are refused with this flag: the numbers, in which argument it is, and the
value of the argument in front of it, if that counts."""
_OPENAT2 = 437
"""Not there, on both machines: a filter cannot read its flags."""
_SOCKETPAIR = (53, 199)
"""Refused unless it is of AF_UNIX: asyncio needs one, and its buffers are counted."""
_FIRST_UNKNOWN_CALL = 463
"""From here on they are newer than this list (Linux 6.13), on both machines."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # linux/audit.h
_X32_CALL_BIT = 0x40000000
"""x86_64 has every call a second time from here on."""
_UNIX_SOCKETS = 1

# linux/bpf_common.h: load a word; keep bits of it; jump if equal, if at least; return.
_LOAD = 0x20
_AND = 0x54
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_RETURN = 0x06
# linux/seccomp.h: offsets in seccomp_data, then what a filter returns.
_CALL_NUMBER = 0
_ARCHITECTURE = 4
_DESCRIPTOR_ARGUMENTS = 16
_ARGUMENT_BYTES = 8
_KILL = 0x80000000
_REFUSE = 0x00050000 | errno.EPERM
_NOT_THERE = 0x00050000 | errno.ENOSYS
_PASS = 0x7FFF0000


def _build_seccomp_filter(machine: str) -> bytes:
    """Return the filter for a machine as `uname` names it; raises SandboxUnavailable."""
    if machine not in _ARCHITECTURES:
        raise SandboxUnavailable(f"there is no system call filter for {machine}")
    column = list(_ARCHITECTURES).index(machine)
    refuse = _encode_instruction(_RETURN, _REFUSE)
    accept = _encode_instruction(_RETURN, _PASS)
    steps = [
        _encode_instruction(_LOAD, _ARCHITECTURE),
        _encode_instruction(_IF_EQUAL, _ARCHITECTURES[machine], skip_if=1),
        # The calls of another machine have other numbers.
        _encode_instruction(_RETURN, _KILL),
        _encode_instruction(_LOAD, _CALL_NUMBER),
        _encode_instruction(_IF_AT_LEAST, _X32_CALL_BIT, skip_unless=1),
        refuse,
        _encode_instruction(_IF_EQUAL, _OPENAT2, skip_if=1),
        _encode_instruction(_IF_AT_LEAST, _FIRST_UNKNOWN_CALL, skip_unless=1),
        _encode_instruction(_RETURN, _NOT_THERE),
    ]
    for numbers in _REFUSED_CALLS.values():
        number = numbers[column]
        if number is not None:
            steps += [_encode_instruction(_IF_EQUAL, number, skip_unless=1), refuse]
    for numbers, argument, command in _DIRECT_CALLS.values():
        number = numbers[column]
        if number is None:
            continue
        checks = [
            *_load_argument(argument, _DIRECT[column]),
            _encode_instruction(_IF_EQUAL, _DIRECT[column], skip_unless=1),
            refuse,
        ]
        if command is not None:
            checks = [
                *_load_argument(argument - 1, _WHOLE_WORD),
                _encode_instruction(_IF_EQUAL, command, skip_unless=len(checks)),
                *checks,
            ]
        checks.append(_encode_instruction(_LOAD, _CALL_NUMBER))
        steps.append(_encode_instruction(_IF_EQUAL, number, skip_unless=len(checks)))
        steps += checks
    for call_numbers, argument, values in _REFUSED_ARGUMENTS.values():
        checks = []
        for bits, value in values:
            checks += [
                *_load_argument(argument, bits),
                _encode_instruction(_IF_EQUAL, value, skip_unless=1),
                refuse,
            ]
        checks.append(accept)
        number = call_numbers[column]
        steps.append(_encode_instruction(_IF_EQUAL, number, skip_unless=len(checks)))
        steps += checks
    steps += [
        _encode_instruction(_IF_EQUAL, _SOCKETPAIR[column], skip_unless=3),
        _encode_instruction(_LOAD, _DESCRIPTOR_ARGUMENTS),
        _encode_instruction(_IF_EQUAL, _UNIX_SOCKETS, skip_if=1),
        refuse,
        accept,
    ]
    return b"".join(steps)


def _load_argument(argument: int, bits: int) -> list[bytes]:
    """Return what loads some bits of an argument of the call."""
    place = _DESCRIPTOR_ARGUMENTS + argument * _ARGUMENT_BYTES
    return [_encode_instruction(_LOAD, place), _encode_instruction(_AND, bits)]


def _encode_instruction(
    code: int, operand: int, skip_if: int = 0, skip_unless: int = 0
) -> bytes:
    """Return one `struct sock_filter`."""
    return struct.pack("=HBBI", code, skip_if, skip_unless, operand)


# --------------------------------------------------------------------------------------
# sandbox.containers
#
# Sandboxes made by Docker or Podman.
# --------------------------------------------------------------------------------------


_CLIENT_VARIABLES = ("PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR")
"""What the client needs to find its daemon; none of it goes into the container."""
_CLIENT_EXIT_SECONDS = 1.0
_ISOLATED_RUN = (
    "run --rm --interactive --pull never --network none --read-only --cap-drop ALL "
    "--security-opt no-new-privileges --ipc none --log-driver none --hostname sandbox "
    "--workdir /work"
)


class _ContainerProcess:
    """One container; the daemon limits its memory."""

    def __init__(self, process: ChildProcess, remove: tuple[str, ...]) -> None:
        """`process` is the client; `remove` is the command that ends the container."""
        self.process = process
        self._remove_command = remove

    def measure_memory(self) -> int:
        return 0

    async def kill(self) -> None:
        """End the container, which would outlive its client."""
        with suppress(TimeoutError):  # the client of one that has answered ends soon
            async with asyncio.timeout(_CLIENT_EXIT_SECONDS):
                await self.process.wait()
        if self.process.returncode is None:
            removing = await start_process(
                *self._remove_command,
                stdout=DEVNULL,
                stderr=DEVNULL,
                env=_client_environment(),
            )
            await removing.wait()
        self.process.kill_group()

    def close(self) -> None:
        """Do nothing: it has no descriptors of its own."""


class ContainerBackend:
    """Makes sandboxes with `docker` or `podman`."""

    def __init__(self, client: str, image: str, packages: str = "") -> None:
        """Use a local image with a `python3` in it; nothing is pulled."""
        self.name = client
        self._image = image
        self._packages = packages

    async def start(self, program: str, limits: SandboxLimits) -> _ContainerProcess:
        """Start a container; raises SandboxUnavailable."""
        path = find_program(self.name)
        name = f"sandbox-{token_hex(8)}"
        command = [path, *_ISOLATED_RUN.split(), "--name", name]
        if self._packages:
            command += ["--volume", f"{self._packages}:/packages:ro"]
        # Files in a tmpfs count as memory here.
        memory = str(limits.memory + len(WRITABLE_FOLDERS) * limits.disk)
        command += ["--user", f"{NOBODY_UID}:{NOBODY_UID}"]
        command += ["--pids-limit", str(limits.processes + 1)]
        command += ["--memory", memory, "--memory-swap", memory]
        options = f"rw,exec,nosuid,nodev,size={limits.disk},mode=700"
        owner = f"uid={NOBODY_UID},gid={NOBODY_UID}"
        for folder in WRITABLE_FOLDERS:
            command += ["--tmpfs", f"{folder}:{options},{owner}"]
        for variable, value in RUN_ENVIRONMENT.items():
            command += ["--env", f"{variable}={value}"]
        if self.name == "podman":  # it would hand the server's proxies on
            command.append("--http-proxy=false")
        command += [self._image, "python3", "-I", "-c", program]
        process = await start_process(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=PIPE,
            env=_client_environment(),
        )
        return _ContainerProcess(process, (path, "rm", "--force", name))


def _client_environment() -> dict[str, str]:
    return {name: os.environ[name] for name in _CLIENT_VARIABLES if name in os.environ}


# --------------------------------------------------------------------------------------
# sandbox.program
#
# Source text of the program that runs inside the sandbox.
#
# It is text because it runs in another interpreter that has none of our modules. It reads
# one JSON line with the operation, then the stored workspace, then the bytes of a file to
# receive. It answers with one JSON line, then the new workspace if it may have changed.
# What it answers is not trusted.
#
# A workspace is a JSON line (kind, path, mode, size or link target of each entry, folders
# before what is in them), then the bytes of the files. `unpack` restores it and returns
# the stamps of its files. `Survey` reads the new one, and `changed` returns path, place in
# the archive and size of each file whose stamp is another, except for what programs cache
# for themselves (`CACHES`, bytecode): it is kept, but it is no result.
#
# A `ChildJob` is a child process with three pipes: stdout, stderr, and `RESULT`. `wait`
# returns the limit that it exceeds, or nothing. `finish` ends all processes but the first
# and returns the child's status and outputs. `execute` runs the code like an interactive
# shell: the value of a last expression is the result. It imports modules of the workspace
# and of the packages that the server has installed.
# --------------------------------------------------------------------------------------


SANDBOX_PROGRAM = r'''"""What a run does inside the sandbox."""

import _ast
import errno
import json
import os
import resource
import select
import signal
import stat
import sys
import time
from collections.abc import Callable
from io import BufferedReader, BufferedWriter

WORK = "/work"
PACKAGES = "/packages"
CHUNK_BYTES = 1 << 18
MAX_PATH_BYTES = 1000
FULL = (errno.ENOSPC, errno.EFBIG)
MAX_DROPPED = 20
RESULT = 3
RESERVE_BYTES = 1 << 22
NO_MODULE = (
    "An administrator can add packages to the folder `wheels` of SANDBOX_OPTIONS."
)
NO_SPACE = "Remove files, or let an administrator raise `disk_mb` in SANDBOX_OPTIONS."
CACHES = frozenset(
    [
        ".cache",
        ".config",
        ".ipynb_checkpoints",
        ".local",
        ".matplotlib",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
    ]
)
Stamp = tuple[int, int, int]


class Refused(Exception):
    """An operation is not done; the text says why."""


def unpack(source: BufferedReader) -> dict[str, Stamp]:
    stamps = {}
    for kind, path, mode, rest in json.loads(source.readline()):
        full_path = os.path.join(WORK, path)
        if kind == "folder":
            os.mkdir(full_path)
        elif kind == "link":
            os.symlink(rest, full_path)
        else:
            with open(full_path, "wb") as file:
                copy(source, file, rest)
            os.chmod(full_path, mode)
            stamps[path] = stamp(os.lstat(full_path))
    return stamps


def copy(source: BufferedReader, target: BufferedWriter, size: int) -> None:
    for done in range(0, size, CHUNK_BYTES):
        target.write(source.read(min(CHUNK_BYTES, size - done)))


def stamp(status: os.stat_result) -> Stamp:
    return status.st_ino, status.st_size, status.st_ctime_ns


def kind_of(status: os.stat_result) -> str:
    kinds = {stat.S_IFDIR: "folder", stat.S_IFREG: "file", stat.S_IFLNK: "link"}
    return kinds.get(stat.S_IFMT(status.st_mode), "other")


class Survey:
    """The contents of the workspace."""

    def __init__(self, limits: dict) -> None:
        self.limits = limits
        self.manifest: list[tuple] = []
        self.stamps: dict[str, Stamp] = {}
        self.dropped: list[str] = []
        self.size = 0
        folders = [""]
        while folders:
            folders += self.read_folder(folders.pop())

    def read_folder(self, folder: str) -> list[str]:
        os.chmod(os.path.join(WORK, folder), 0o700)
        inner = []
        with os.scandir(os.path.join(WORK, folder)) as entries:
            for entry in entries:
                path = os.path.join(folder, entry.name)
                status = entry.stat(follow_symlinks=False)
                self.add_entry(path, status)
                if kind_of(status) == "folder":
                    inner.append(path)
        return inner

    def add_entry(self, path: str, status: os.stat_result) -> None:
        full_path = os.path.join(WORK, path)
        kind = kind_of(status)
        if kind == "folder":
            self.manifest.append((kind, path, 0, 0))
        elif kind == "link":
            self.manifest.append((kind, path, 0, os.readlink(full_path)))
        elif kind == "file":
            mode = status.st_mode & 0o777 | 0o600
            self.stamps[path] = stamp(status)
            os.chmod(full_path, mode)
            self.manifest.append((kind, path, mode, status.st_size))
            self.size += status.st_size
        else:
            self.dropped.append(path)
        max_files = self.limits["files"]
        if len(self.manifest) > max_files:
            raise Refused(f"it holds more than {max_files} files and folders")
        max_bytes = self.limits["disk"]
        if self.size > max_bytes:
            raise Refused(f"its files have more than {max_bytes} bytes")
        if len(os.fsencode(path)) > MAX_PATH_BYTES:
            raise Refused("a path in it is too long")

    def changed(self, before: dict[str, Stamp]) -> list[tuple[str, int, int]]:
        changed = []
        offset = 0
        for kind, path, _, size in self.manifest:
            if kind == "file":
                if self.stamps[path] != before.get(path) and not is_cached(path):
                    changed.append((path, offset, size))
                offset += size
        return sorted(changed)

    def write(self, target: BufferedWriter) -> None:
        target.write(encode_line(self.manifest))
        for kind, path, _, size in self.manifest:
            if kind == "file":
                with open(os.path.join(WORK, path), "rb") as file:
                    copy(file, target, size)


def is_cached(path: str) -> bool:
    *folders, name = path.split("/")
    return name.endswith((".pyc", ".pyo")) or not CACHES.isdisjoint(folders)


def encode_line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def resolve_path(path: str, follow: bool = True) -> str:
    if "\0" in path:
        raise Refused("A path has no zero bytes.")
    full_path = os.path.normpath(os.path.join(WORK, path))
    if follow:
        real = os.path.realpath(full_path)
    else:  # the link itself is meant
        folder, name = os.path.split(full_path)
        real = os.path.join(os.path.realpath(folder), name)
    if os.path.commonpath((WORK, real)) != WORK:
        raise Refused(f"{path!r} is not in the workspace.")
    return real


def list_folder(request: dict) -> dict:
    with os.scandir(resolve_path(request["path"])) as entries:
        by_name = {entry.name: entry for entry in entries}
    listed = []
    for name in sorted(by_name)[: request["limits"]["files"]]:
        status = by_name[name].stat(follow_symlinks=False)
        kind = kind_of(status)
        row: dict = {"name": name, "kind": kind}
        if kind == "file":
            row["size"] = status.st_size
        listed.append(row)
    return {"listed": listed, "more": len(by_name) - len(listed)}


def read_file(request: dict) -> dict:
    limit = request["limits"]["output"]
    full_path = resolve_path(request["path"])
    with open(full_path, "rb") as file:  # a FIFO would block, but none was kept
        size = os.fstat(file.fileno()).st_size
        content = file.read(limit)
    whole = size <= limit
    try:
        text = content.decode("utf-8", "strict" if whole else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return {"given": os.path.relpath(full_path, WORK), "size": size}
    return {"text": text, "whole": whole, "size": size}


def write_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    os.makedirs(os.path.dirname(full_path), exist_ok=True)
    content = request["content"].encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Wrote {len(content)} bytes."}


def edit_file(request: dict) -> dict:
    full_path = resolve_path(request["path"])
    old, new = request["old"], request["new"]
    with open(full_path, "rb") as file:
        text = file.read().decode("utf-8")
    if not old:
        raise Refused("The passage to replace is empty.")
    if old not in text and "\r\n" in text:  # a model does not see how lines end
        old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
    first = text.find(old)
    if first < 0:
        raise Refused("The passage does not occur in the file. Read the file first.")
    if text.find(old, first + 1) >= 0:
        raise Refused("The passage occurs more than once. Give more text around it.")
    changed = text[:first] + new + text[first + len(old) :]
    content = changed.encode("utf-8", "replace")
    with open(full_path, "wb") as file:
        file.write(content)
    return {"done": f"Replaced the passage. The file has {len(content)} bytes now."}


def receive_file(request: dict) -> dict:
    stem, ending = os.path.splitext(request["path"])
    name = request["path"]
    number = 2
    while os.path.lexists(os.path.join(WORK, name)):  # it must not replace another
        name = f"{stem} ({number}){ending}"
        number += 1
    with open(resolve_path(name), "wb") as file:
        copy(request["source"], file, request["size"])
    return {"done": name}


def make_folder(request: dict) -> dict:
    os.makedirs(resolve_path(request["path"]), exist_ok=True)
    return {"done": "The folder is there."}


def remove(request: dict) -> dict:
    full_path = resolve_path(request["path"], follow=False)
    if full_path == WORK:
        raise Refused("The workspace itself stays; name what is in it.")
    if os.path.isdir(full_path) and not os.path.islink(full_path):
        remove_folder(full_path)
    else:
        os.remove(full_path)
    return {"done": "Removed."}


def remove_folder(folder: str) -> None:
    for parent, folders, files in os.walk(folder, topdown=False):
        for name in files:
            os.remove(os.path.join(parent, name))
        for name in folders:
            inner = os.path.join(parent, name)
            if os.path.islink(inner):
                os.remove(inner)
            else:
                os.rmdir(inner)
    os.rmdir(folder)


class ChildJob:
    """A child process with its three pipes."""

    def __init__(self, job: Callable[[], int], limit: int) -> None:
        self.limit = limit
        pipes = [os.pipe() for _ in range(3)]
        self.child = os.fork()
        if self.child == 0:
            run_job(job, [writing for _, writing in pipes])
        for _, writing in pipes:
            os.close(writing)
        self.outputs = {reading: bytearray() for reading, _ in pipes}
        self.open_pipes = set(self.outputs)

    def wait(self, deadline: float) -> str:
        ending = os.pidfd_open(self.child)
        poll = select.poll()
        for descriptor in (ending, *self.outputs):
            poll.register(descriptor, select.POLLIN)
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if not ready:
                return "seconds"
            for descriptor in self.open_pipes.intersection(ready):
                if not self.read_pipe(descriptor):
                    poll.unregister(descriptor)
            if any(len(written) > self.limit for written in self.outputs.values()):
                return "output"
            if ending in ready:
                return ""

    def read_pipe(self, descriptor: int) -> bool:
        piece = os.read(descriptor, CHUNK_BYTES)
        self.outputs[descriptor] += piece
        if not piece:
            self.open_pipes.discard(descriptor)
        return bool(piece)

    def finish(self) -> tuple[int, list[str]]:
        status = -1
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass
        try:
            while True:
                child, code = os.wait()
                if child == self.child:
                    status = code
        except ChildProcessError:
            pass
        for descriptor in list(self.open_pipes):  # nobody is left to write: this ends
            written = self.outputs[descriptor]
            while len(written) <= self.limit and self.read_pipe(descriptor):
                pass
        texts = [bytes(written[: self.limit]) for written in self.outputs.values()]
        return status, [text.decode("utf-8", "replace") for text in texts]


def run_job(job: Callable[[], int], pipes: list[int]) -> None:
    for number, pipe in enumerate(pipes, 1):
        os.dup2(pipe, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.closerange(4, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.set_inheritable(RESULT, False)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    try:
        status = job()
    except (OSError, ValueError) as error:  # a command that no process can be given
        raise SystemExit(str(error)) from None
    raise SystemExit(status)


def run_code(request: dict) -> dict:
    return run_child(lambda: execute(request), request["limits"])


def run_shell(request: dict) -> dict:
    return run_child(lambda: execute_command(request["command"]), request["limits"])


def run_child(job: Callable[[], int], limits: dict) -> dict:
    deadline = time.monotonic() + limits["seconds"]
    running = ChildJob(job, limits["output"])
    stopped = running.wait(deadline)
    status, (output, complaints, result) = running.finish()
    return {
        "stdout": output,
        "stderr": complaints,
        "result": result,
        "status": 0 if stopped else os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }


def execute(request: dict) -> int:
    module = type(sys)("__main__")
    sys.modules["__main__"] = module
    sys.argv[:] = ["code"]
    sys.path[:] = [WORK, *sys.path, PACKAGES]
    sys.dont_write_bytecode = True  # it would be among the files that were written
    reserve = bytearray(RESERVE_BYTES)  # to report an error of code that took the rest
    try:
        tree = compile(request["code"], "code", "exec", _ast.PyCF_ONLY_AST)
        assert isinstance(tree, _ast.Module)
        last = tree.body[-1] if tree.body else None
        if isinstance(last, _ast.Expr):
            tree.body.pop()
        exec(compile(tree, "code", "exec"), module.__dict__)
        if isinstance(last, _ast.Expr):
            expression = compile(_ast.Expression(last.value), "code", "eval")
            value = eval(expression, module.__dict__)
            write_result(value, request["limits"]["output"])
    except Exception as error:
        del reserve
        print_error(error, request["code"])
        return 1
    return 0


def execute_command(command: str) -> int:
    variables = {**os.environ, "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
    variables["PYTHONPATH"] = PACKAGES
    os.execve("/bin/sh", ["sh", "-c", command], variables)


def print_error(error: Exception, code: str) -> None:
    import linecache
    import traceback

    linecache.cache["code"] = (len(code), None, code.splitlines(True), "code")
    frames = error.__traceback__
    while frames and frames.tb_frame.f_code.co_filename != "code":
        frames = frames.tb_next
    traceback.print_exception(type(error), error, frames)
    if isinstance(error, ModuleNotFoundError):
        sys.stderr.write(NO_MODULE)
    elif isinstance(error, OSError) and error.errno in FULL:
        sys.stderr.write(NO_SPACE)


def write_result(value: object, limit: int) -> None:
    if value is None:
        return
    text = ""
    try:
        text = json.dumps({"json": value}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        pass  # an error of `repr` is the code's own, without this one
    text = text or json.dumps({"repr": repr(value)})
    if len(text) > limit:  # a character of the repr may take twelve in JSON
        text = json.dumps({"repr": repr(value)[: limit // 12] + "..."})
    with open(RESULT, "w") as target:
        target.write(text)


def set_limits(limits: dict) -> None:
    for name, limit in (
        ("AS", limits["memory"]),
        ("FSIZE", limits["file"]),
        ("NPROC", limits["processes"] + 1),
        ("NOFILE", 64),
        ("SIGPENDING", 64),
        ("MSGQUEUE", 0),
        ("MEMLOCK", 0),
        ("CORE", 1),  # with 0, the kernel still hands a crash to the host's handler
    ):
        if name == "NPROC" and not has_own_users():
            continue
        kind = getattr(resource, "RLIMIT_" + name)
        try:
            _, hard_limit = resource.getrlimit(kind)
        except OSError:  # the last one is set already, and the filter keeps it
            continue
        lowest = limit
        if hard_limit != resource.RLIM_INFINITY:
            lowest = min(limit, hard_limit)
        resource.setrlimit(kind, (lowest, lowest))


def has_own_users() -> bool:
    """Say whether the kernel counts the processes of this run alone.

    Those of all containers of a server have one user. A container has its own limit.
    """
    with open("/proc/self/uid_map") as users:
        return users.read().split()[2:] == ["1"]


def describe(request: dict) -> dict:
    import ctypes

    with open("/proc/self/status") as status:
        lines = dict(line.rstrip("\n").split(":\t", 1) for line in status)
    with open("/proc/net/dev") as devices:
        names = [line.partition(":")[0].strip() for line in devices if ":" in line]
    new_user_namespace = 0x10000000
    return {
        "capabilities": int(lines["CapBnd"], 16) | int(lines["CapEff"], 16),
        "no_new_privileges": lines["NoNewPrivs"],
        "filtered": lines["Seccomp"],
        "user": os.getuid(),
        "networks": names,
        "namespaces": ctypes.CDLL(None).unshare(new_user_namespace) == 0,
        "seen": [name for name, place in request["private"].items() if sees(*place)],
    }


def sees(path: str, device: int, number: int) -> bool:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:  # it is there, and only its permissions keep it
        return True
    return (status.st_dev, status.st_ino) == (device, number)


OPERATIONS = {
    "describe": (describe, False),
    "run": (run_code, True),
    "list": (list_folder, False),
    "read": (read_file, False),
    "write": (write_file, True),
    "edit": (edit_file, True),
    "shell": (run_shell, True),
    "receive": (receive_file, True),
    "mkdir": (make_folder, True),
    "remove": (remove, True),
}


def main() -> int:
    if os.getpid() != 1:  # all other processes that it can see are ended
        raise SystemExit("This runs as the first process of a sandbox alone.")
    if os.getpgrp() != 1:  # else code could stop what watches us from outside, too
        os.setpgid(0, 0)
    os.nice(15)  # the server comes first, also if code takes this process over
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one that code could send us
    source = os.fdopen(0, "rb", closefd=False)
    target = os.fdopen(1, "wb", closefd=False)
    request = json.loads(source.readline())
    set_limits(request["limits"])
    try:
        before = unpack(source)
    except Exception as error:  # code can have written it, if it took us over
        is_full = isinstance(error, OSError) and error.errno in FULL
        return send(target, {"damaged": "full" if is_full else "invalid"})
    request["source"] = source
    operation, writes = OPERATIONS[request["operation"]]
    answer = run_operation(operation, request)
    if "given" in answer:
        before.pop(answer["given"], None)  # it is handed out as if it were new
    elif not writes or "refused" in answer:
        return send(target, answer)
    limits = request["limits"]
    try:
        survey = Survey(limits)
    except (Refused, OSError) as error:
        return send(target, {**answer, "unkept": str(error)})
    changed = survey.changed(before)
    returned = limits["returned_files"]
    answer["dropped"] = survey.dropped[:MAX_DROPPED]
    answer["changed"] = changed[:returned]
    answer["not_shown"] = len(changed[returned:])
    return send(target, answer, survey)


def run_operation(operation: Callable[[dict], dict], request: dict) -> dict:
    try:
        return operation(request)
    except Refused as error:
        return {"refused": str(error)}
    except OSError as error:
        return {"refused": f"{error.strerror}."}
    except UnicodeDecodeError:
        return {"refused": "The file is not text."}
    except ValueError:
        return {"refused": "That is no path."}


def send(target: BufferedWriter, answer: dict, survey: "Survey | None" = None) -> int:
    target.write(encode_line(answer))
    if survey is not None:
        survey.write(target)
    target.flush()
    return 0


if __name__ == "__main__":
    os._exit(main())
'''
"""What `python -c` runs."""


# --------------------------------------------------------------------------------------
# sandbox.runs
#
# One run in the sandbox, whose memory and time are watched.
#
# The reply is not trusted: code that broke out of its own process may have written it.
# Numbers are checked, names are never used as paths on the host, and the archive is only
# ever unpacked inside a sandbox. A backend is used only after a first run showed that it
# confines code as required; there is no weaker fallback.
# --------------------------------------------------------------------------------------


_MAX_JSON_CHARACTER_BYTES = 12
"""The bytes of JSON that one character may take, as a pair of surrogates."""


class SandboxReplyMissing(Exception):
    """The sandbox ended without a valid answer; the text is its error output."""


class FileSlice(NamedTuple):
    """The place of a file that the code wrote, inside a reply."""

    name: str
    start: int
    size: int


class SandboxReply(NamedTuple):
    """A valid answer; `archive` is where the workspace begins, if it is there."""

    answer: Mapping[str, Any]
    archive: int | None
    changed: tuple[FileSlice, ...] = ()


def _max_line_bytes(limits: SandboxLimits) -> int:
    """Return how long the JSON line of an answer may be: three outputs, and names."""
    return 3 * _MAX_JSON_CHARACTER_BYTES * limits.output + 4 * MEBIBYTE


_REPLY_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""A text in a JSON line, also one that does not end."""
_ROW_BYTES = 100
"""Of a file that is listed, without its texts, each of which counts as a byte."""
_MORE_ROWS = 100
_ENTRY_BYTES = 32 * 1024
"""Of a file in the line of a workspace: its path, and where a link leads to, each byte
as an escape of six."""


def _is_quickly_read(line: bytes, limits: SandboxLimits) -> bool:
    """Say whether a line has no more than texts, and the rows of an answer.

    While the server reads it, nobody else is answered: 6 MB of `[],[],...` or of digits
    take two seconds.
    """
    most = _ROW_BYTES * (limits.files + _MORE_ROWS)
    size = end = 0
    for text in _REPLY_TEXT.finditer(line):
        size += text.start() - end + 1
        end = text.end()
        if size > most:
            return False
    return size + len(line) - end <= most


def _read_reply(path: Path, limits: SandboxLimits) -> SandboxReply | None:
    """Return the answer in a file, or None for anything else."""
    with path.open("rb") as file:
        line = file.readline(_max_line_bytes(limits))
        if not _is_quickly_read(line, limits):
            return None
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(answer, dict):
            return None
        archive = file.tell()
        # The line of the workspace may be as long as all that is written.
        most = archive + _ENTRY_BYTES * (limits.files + 1)
        while (piece := file.readline(_READ_BYTES)) and not piece.endswith(b"\n"):
            if file.tell() > most:
                return None
        begin = file.tell()
        end = path.stat().st_size
    has_archive = begin > archive
    changed = answer.get("changed")
    slices: list[FileSlice] = []
    left = end - begin
    for entry in changed if isinstance(changed, list) else ():
        match entry:
            case [str(name), int(offset), int(size)]:
                is_inside = offset >= 0 and size >= 0 and begin + offset + size <= end
                # Files have no byte in common: together they are no more than all.
                if is_inside and size <= left:
                    slices.append(FileSlice(name, begin + offset, size))
                    left -= size
    returned = tuple(slices[: limits.returned_files])
    return SandboxReply(answer, archive if has_archive else None, returned)


_REPLY_GRACE_SECONDS = 10.0
"""The sandbox stops the code by itself, then answers; after this we do not wait."""
_MEMORY_CHECK_SECONDS = 0.05
"""How often the memory is read: what two cores can fill in that time goes beyond."""
_READ_BYTES = 256 * 1024
_STDERR_BYTES = 2_000


class RunStopped(Exception):
    """The sandbox was stopped before it answered; the text says why."""


class WorkspaceArchive(NamedTuple):
    """A stored workspace: where it begins in which file."""

    path: Path
    start: int


PrivatePaths = Mapping[str, Path]
"""What only the server may read, by what an administrator calls it."""


_EXPECTED_CONFINEMENT = {
    "capabilities": 0,
    "no_new_privileges": "1",
    "filtered": "2",  # by a program: prctl(2), PR_GET_SECCOMP
    "networks": ["lo"],
    "namespaces": False,
    "seen": [],
}
"""What the program in a sandbox has to see there."""


class Sandbox:
    """Runs requests in the sandboxes of a backend."""

    def __init__(self, backend: SandboxBackend, limits: SandboxLimits) -> None:
        self._backend = backend
        self._limits = limits
        self._processes: set[SandboxProcess] = set()
        self._endings: set[Task[None]] = set()
        """The ends of runs that are under way."""
        self._is_stopped = False

    async def run(
        self,
        request: Mapping[str, Any],
        archive: WorkspaceArchive | None,
        spool: Path,
        content: bytes = b"",
    ) -> SandboxReply:
        """Return the answer, which `spool` stores; the sandbox is gone then.

        `content` is that of a file to receive, whose `size` the request says.
        Raises RunStopped, SandboxReplyMissing, or SandboxUnavailable.
        """
        fields = {**request, "limits": self._limits._asdict()}
        line = json.dumps(fields).encode() + b"\n"
        process = await self._backend.start(SANDBOX_PROGRAM, self._limits)
        self._processes.add(process)
        run = _SandboxRun(process, self._limits)
        try:
            if self._is_stopped:
                raise SandboxReplyMissing("it was closed")
            await run.communicate(_list_request(line, archive, content), spool)
        finally:
            self._processes.discard(process)
            # A call can be cancelled again while its run ends, as after its time and
            # by Stop: the end goes on all the same, or a process would stay.
            ending = asyncio.create_task(run.end())
            self._endings.add(ending)
            ending.add_done_callback(self._endings.discard)
            try:
                await asyncio.shield(ending)
            finally:
                await asyncio.wait({ending})
        reply = _read_reply(spool, self._limits)
        if reply is None:
            raise SandboxReplyMissing(run.stderr_text())
        return reply

    async def check_confinement(self, spool: Path, private: PrivatePaths) -> None:
        """Do a first run; raises SandboxUnavailable unless it confines as required.

        A sandbox in which any of the `private` paths can be seen confines nothing.
        """
        # By device and number a sandbox tells a path from one of the same name in a
        # container's image.
        places: dict[str, tuple[str, int, int]] = {}
        for name, path in private.items():
            with suppress(OSError):  # it is not there
                status = path.stat()
                places[name] = (str(path.resolve()), status.st_dev, status.st_ino)
        request = {"operation": "describe", "private": places}
        try:
            reply = await self.run(request, None, spool)
        except OSError as error:
            raise SandboxUnavailable(f"it does not start: {error.strerror}") from None
        except RunStopped as stopped:
            reason = f"a first run was stopped, because {stopped}"
            raise SandboxUnavailable(reason) from None
        except SandboxReplyMissing as silent:
            reason = str(silent) or "a first run gave no answer"
            raise SandboxUnavailable(reason) from None
        match reply.answer:
            case {"seen": [_, *_] as seen}:
                raise SandboxUnavailable(
                    f"code in it could read {', '.join(map(str, seen))} of the server, "
                    "which must not lie among programs or libraries"
                )
        gaps = [
            name
            for name, value in _EXPECTED_CONFINEMENT.items()
            if reply.answer.get(name) != value
        ]
        if not reply.answer.get("user"):
            gaps.append("user")
        if gaps:
            raise SandboxUnavailable(f"it does not confine {', '.join(gaps)}")

    async def stop(self) -> None:
        """End all that runs or begins; callers get SandboxReplyMissing."""
        self._is_stopped = True
        while self._processes:  # not closed yet, so they can be killed
            await self._processes.pop().kill()


class _SandboxRun:
    """One request to a sandbox that runs, and its answer."""

    def __init__(self, sandbox: SandboxProcess, limits: SandboxLimits) -> None:
        child = sandbox.process
        assert child.stdin
        assert child.stdout
        assert child.stderr
        self._process = sandbox
        self._limits = limits
        self._stdin = child.stdin
        self._stdout = child.stdout
        self._stderr = child.stderr
        self._stderr_text = b""
        self._tasks: list[Task[None]] = []
        self._measurer = ThreadPoolExecutor(1, "sandbox-memory")
        self._measuring: asyncio.Future[int] | None = None
        self._stderr_task = asyncio.create_task(self._read_stderr())

    async def communicate(self, request: Iterable[bytes], spool: Path) -> None:
        """Send the request, watch until the answer is complete; raises RunStopped."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.seconds + _REPLY_GRACE_SECONDS
        reading = asyncio.create_task(self._read_stdout(spool))
        sending = asyncio.create_task(_send_request(self._stdin, request))
        self._tasks = [reading, sending]
        await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        while not reading.done():
            if loop.time() > deadline:
                raise RunStopped(f"it did not end within {self._limits.seconds:g} s")
            # Code can make much to read of its memory; so a thread reads, and none that
            # others need.
            measure = self._process.measure_memory
            self._measuring = loop.run_in_executor(self._measurer, measure)
            try:
                size = await asyncio.shield(self._measuring)
            except PermissionError:
                raise RunStopped("its memory cannot be read on this server") from None
            if size > self._limits.memory:
                raise RunStopped(
                    f"its processes and files held more than {self._limits.memory} "
                    "bytes of memory"
                )
            await asyncio.wait({reading}, timeout=_MEMORY_CHECK_SECONDS)
        reading.result()

    async def _read_stdout(self, spool: Path) -> None:
        """Store the answer in a file; raises RunStopped if it is too long."""
        bytes_left = _max_line_bytes(self._limits) + self._limits.disk + 16 * MEBIBYTE
        with spool.open("wb") as file:
            while piece := await self._stdout.read(_READ_BYTES):
                bytes_left -= file.write(piece)
                if bytes_left < 0:
                    raise RunStopped("it wrote more than fits into the workspace")

    async def _read_stderr(self) -> None:
        """Keep the beginning; the sandbox waits if there is more."""
        while len(self._stderr_text) < _STDERR_BYTES:
            piece = await self._stderr.read(_STDERR_BYTES)
            if not piece:
                return
            self._stderr_text += piece

    async def end(self) -> None:
        """End the sandbox, and wait until it is gone."""
        if self._measuring is not None:  # it uses what is closed below
            await asyncio.wait({self._measuring})
        self._measurer.shutdown(wait=False)
        try:
            await self._process.kill()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._stdin.close()
            await self._stderr_task  # there may be a word that we have not read
            # The process counts as ended only when its pipes are empty.
            await asyncio.gather(_drain(self._stdout), _drain(self._stderr))
            await self._process.process.wait()
        finally:
            self._process.close()

    def stderr_text(self) -> str:
        """Return the sandbox's error output, for the log.

        Code may have written it. So it is one line, with nothing that a terminal obeys.
        """
        text = " ".join(self._stderr_text.decode("utf-8", "replace").split())
        return "".join(sign if sign.isprintable() else "?" for sign in text)


def _list_request(
    line: bytes, archive: WorkspaceArchive | None, content: bytes
) -> Iterator[bytes]:
    """Yield the pieces of a request: its line, the stored workspace, a file."""
    yield line
    if archive is None:
        yield b"[]\n"
    else:
        with archive.path.open("rb") as file:
            file.seek(archive.start)
            while piece := file.read(_READ_BYTES):
                yield piece
    for start in range(0, len(content), _READ_BYTES):
        yield content[start : start + _READ_BYTES]


async def _send_request(stdin: StreamWriter, request: Iterable[bytes]) -> None:
    """Send a request, no faster than it is read."""
    with suppress(ConnectionError):  # it ended without listening
        for piece in request:
            stdin.write(piece)
            await stdin.drain()
        stdin.close()


async def _drain(stream: StreamReader) -> None:
    while await stream.read(_READ_BYTES):
        pass


# --------------------------------------------------------------------------------------
# sandbox.queues
#
# Who may run when: the runs of a server, and those of each of its users.
# --------------------------------------------------------------------------------------


class _UserQueue:
    """The runs of one user: those that are under way, and those that wait."""

    def __init__(self, max_runs: int, max_calls: int) -> None:
        self.turns = asyncio.Semaphore(max_runs)
        self.files = asyncio.Semaphore(max_runs)
        self.places = asyncio.Semaphore(max_calls)
        self.members = 0


class RunQueue:
    """Lets as many runs begin as the server and the user may have at once.

    A user waits behind their own runs first. So each user has no more than
    `runs_per_user` in the line of the server, however many calls they make.
    """

    def __init__(self, limits: SharedLimits) -> None:
        self._limits = limits
        self._server_turns = asyncio.Semaphore(limits.runs)
        self._users: dict[str, _UserQueue] = {}

    @asynccontextmanager
    async def take_place(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until one more call of `user` may borrow a workspace.

        Each call without a chat has a new one, and each looks at all that there are: 400
        at once blocked the event loop for four seconds.
        """
        with self._join(user) as queue:
            async with queue.places:
                yield

    @asynccontextmanager
    async def take_turn(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until a run of `user` may begin; it ends with the context."""
        with self._join(user) as queue:
            async with queue.turns, self._server_turns:
                yield

    @asynccontextmanager
    async def hold_file(self, user: str) -> AsyncGenerator[None, None]:
        """Wait until one more file of `user` may be in memory, for a run that gets it.

        Else all would be there that wait for their turn. It is no turn: to read a file
        may take long, and others can run meanwhile.
        """
        with self._join(user) as queue:
            async with queue.files:
                yield

    @contextmanager
    def _join(self, user: str) -> Iterator[_UserQueue]:
        """Lend the queue of a user, which is there as long as somebody needs it."""
        queue = self._users.get(user)
        if queue is None:
            limits = self._limits
            queue = _UserQueue(limits.runs_per_user, limits.workspaces_per_user)
            self._users[user] = queue
        queue.members += 1
        try:
            yield queue
        finally:
            queue.members -= 1
            if queue.members == 0:
                del self._users[user]


# --------------------------------------------------------------------------------------
# sandbox.workspaces
#
# The workspaces of the chats, in a temporary folder.
#
# They outlive a change of the limits: only `SharedLimits` belong to the pool.
#
# The server never unpacks an archive, so links and strange names exist only inside
# sandboxes. The folder is locked while its server lives; the kernel releases the lock
# however the server ends, and the next server removes unlocked folders.
# --------------------------------------------------------------------------------------


_ROOT_PREFIX = "sandbox-workspaces-"


class _WorkspaceRoot:
    """A new folder that only its owner can read."""

    def __init__(self) -> None:
        """Create it; remove those of our own user that no server has any more."""
        parent = Path(tempfile.gettempdir())
        for folder in parent.glob(f"{_ROOT_PREFIX}*"):
            with suppress(OSError):  # in use, or another server has just removed it
                if folder.lstat().st_uid == os.geteuid():
                    lock = lock_folder(folder)
                    remove_folder(folder)
                    os.close(lock)
        made = Path(tempfile.mkdtemp(prefix="new-", dir=parent))
        self._lock = lock_folder(made)
        # Under this name it would be swept, had it no lock yet.
        self.path = made.rename(parent / (_ROOT_PREFIX + made.name))

    def close(self) -> None:
        """Remove it with its contents."""
        remove_folder(self.path)
        os.close(self._lock)


def lock_folder(folder: Path) -> int:
    """Return a locked descriptor of a folder; raises OSError if it is locked."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl = import_module("fcntl")  # Windows has none, but must load this module
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


class SandboxClosed(Exception):
    """The tools were closed; there are no workspaces any more."""


class WorkspaceKey(NamedTuple):
    """Names a workspace: that of a user in a chat.

    Whoever knows the key can use the workspace. Without a chat each call has a new one.
    """

    user: str
    chat: str


class SandboxFile(NamedTuple):
    """A file that a run wrote: `path` is where its bytes are.

    It stays there until later runs of the chat have returned more than a workspace
    holds, or until the workspace is removed. `name` is for display only.
    """

    name: str
    media_type: str
    path: Path


_MAX_REMEMBERED_FILES = 1000
"""Files of one chat, handed out or received: empty ones would need no disk."""


class Workspace:
    """What one chat keeps."""

    def __init__(self, folder: Path) -> None:
        """Begin empty, in an existing folder."""
        self.archive: WorkspaceArchive | None = None
        self.lock = asyncio.Lock()
        self.borrowers = 0
        self.received: dict[str, None] = {}
        """The ids of the attached files that were put into it, oldest first."""
        self._folder = folder
        self._numbers = count(1)
        self._files: list[Path] = []

    def add_received(self, file_id: str) -> None:
        """Remember that an attached file was put into it."""
        self.received[file_id] = None
        if len(self.received) > _MAX_REMEMBERED_FILES:
            del self.received[next(iter(self.received))]

    def _new_path(self) -> Path:
        return self._folder / str(next(self._numbers))

    @contextmanager
    def open_spool(self) -> Iterator[Path]:
        """Lend a path for a reply; the file is removed unless it is stored."""
        path = self._new_path()
        try:
            yield path
        finally:
            if self.archive is None or self.archive.path != path:
                path.unlink(missing_ok=True)

    def store_archive(self, spool: Path, reply: SandboxReply) -> None:
        """Replace the stored workspace by the reply's, if it has one."""
        if reply.archive is not None:
            self.clear()
            self.archive = WorkspaceArchive(spool, reply.archive)

    def clear(self) -> None:
        """Forget the stored workspace.

        One that an earlier call stored is kept elsewhere, and is removed by whoever
        keeps it: a server that is killed in this call must not lose it.
        """
        if self.archive is not None and self.archive.path.parent == self._folder:
            self.archive.path.unlink()
        self.archive = None

    def export_files(
        self, spool: Path, parts: Iterable[FileSlice], max_bytes: int
    ) -> tuple[SandboxFile, ...]:
        """Copy files that a run wrote, each to its own path.

        Of all that were handed out, the newest stay, up to `max_bytes`.
        """
        files = []
        for part in parts:
            path = self._new_path()
            left = part.size
            try:
                with spool.open("rb") as source, path.open("wb") as target:
                    source.seek(part.start)
                    while left:
                        left -= target.write(source.read(min(left, MEBIBYTE)))
            except OSError:  # a full disk must not keep the beginning, too
                path.unlink(missing_ok=True)
                raise
            self._files.append(path)
            name = printable_name(part.name)
            media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
            files.append(SandboxFile(name, media_type, path))
        sizes = [path.stat().st_size for path in self._files]
        while sum(sizes) > max_bytes or len(sizes) > _MAX_REMEMBERED_FILES:
            sizes.pop(0)
            self._files.pop(0).unlink()
        return tuple(files)

    def remove(self) -> None:
        """Remove it with the files that were handed out."""
        remove_folder(self._folder)


class Workspaces(Protocol):
    """Keeps the workspaces of all chats."""

    @property
    def runs(self) -> RunQueue:
        """Says which run may begin."""

    def acquire(self, key: WorkspaceKey) -> AbstractAsyncContextManager[Workspace]:
        """Lend a chat's workspace; without a chat a new one."""

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it."""


class WorkspacePool:
    """The workspaces of all chats, each lent to one run at a time.

    `runs` says which run may begin.
    """

    def __init__(self, limits: SharedLimits | None = None) -> None:
        self._limits = limits or SharedLimits()
        self.runs = RunQueue(self._limits)
        self._root: _WorkspaceRoot | None = None
        self._workspaces: dict[WorkspaceKey, Workspace] = {}
        """The least recently used first."""
        self._timers: dict[WorkspaceKey, asyncio.TimerHandle] = {}
        """Of the workspaces that nobody uses now."""
        self._is_closed = False

    @asynccontextmanager
    async def acquire(self, key: WorkspaceKey) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one. Raises SandboxClosed."""
        if not key.chat:
            key = key._replace(chat=token_hex(16))
        if self._is_closed:
            raise SandboxClosed
        if key in self._timers:
            self._timers.pop(key).cancel()
        workspace = self._workspaces.pop(key, None)
        if workspace is None:
            workspace = Workspace(Path(tempfile.mkdtemp(dir=self._open_root())))
        self._workspaces[key] = workspace  # the last of all: it was used last
        workspace.borrowers += 1
        try:
            async with workspace.lock:
                if self._is_closed:
                    raise SandboxClosed
                yield workspace
        finally:
            workspace.borrowers -= 1
            if not workspace.borrowers and not self._is_closed:
                # From now on it is idle; there may be too many such.
                self._timers[key] = asyncio.get_running_loop().call_later(
                    self._limits.idle_seconds, self._remove, key
                )
                while surplus := self._find_surplus():
                    self._remove(surplus)

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""
        return key in self._workspaces

    def _open_root(self) -> Path:
        self._root = self._root or _WorkspaceRoot()
        return self._root.path

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it.

        Raises OSError or BadZipFile.
        """
        root = self._open_root()
        root.chmod(0o711)  # runs have another user if the server is root
        folder = Path(tempfile.mkdtemp(prefix="packages-", dir=root))
        await asyncio.to_thread(_unpack_wheels, wheels, folder)
        return folder

    def _find_surplus(self) -> WorkspaceKey | None:
        """Return the workspace to remove next; None if there are not too many.

        Whoever has the most loses the one that was not used for the longest time, so
        that the chats of one user cannot push out those of others.
        """
        limits = self._limits
        counts = Counter(key.user for key in self._workspaces)
        idle = [key for key in self._workspaces if key in self._timers]
        for key in idle:
            if counts[key.user] > limits.workspaces_per_user:
                return key
        if not idle or len(self._workspaces) <= limits.workspaces:
            return None
        most = max(counts[key.user] for key in idle)
        return next(key for key in idle if counts[key.user] == most)

    def _remove(self, key: WorkspaceKey) -> None:
        self._timers.pop(key).cancel()
        self._workspaces.pop(key).remove()

    async def close(self) -> None:
        """Remove all workspaces, once those that are lent have come back."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        for workspace in self._workspaces.values():
            async with workspace.lock:
                pass
        self._workspaces.clear()
        if self._root is not None:
            self._root.close()
            self._root = None


def remove_folder(folder: Path) -> None:
    """Remove a folder with its contents; what cannot be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)


def _unpack_wheels(wheels: Path, folder: Path) -> None:
    """Install wheels as pip does, without their scripts."""
    for wheel in wheels.iterdir():  # a folder that is missing is an error
        if wheel.suffix == ".whl":
            with ZipFile(wheel) as archive:
                archive.extractall(folder)
    for part in folder.glob("*.data/*lib"):  # purelib and platlib
        shutil.copytree(part, folder, dirs_exist_ok=True)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)  # whatever the umask of the server


_MAX_NAME_LENGTH = 200
"""Characters of a name that is shown; its end tells more than its begin."""


def printable_name(name: str) -> str:
    """Return the last part of a path in a form that can be shown."""
    last = name.rsplit("/", 1)[-1][-_MAX_NAME_LENGTH:]
    return "".join(sign if sign.isprintable() else "_" for sign in last) or "file"


# --------------------------------------------------------------------------------------
# sandbox.tools
#
# The tools of the sandbox: descriptions for the model, calls, results.
#
# The tools are offered only if a working sandbox was found.
# --------------------------------------------------------------------------------------


class OfferedFile(NamedTuple):
    """A file that the user attached to the chat.

    `read` returns its content, or the message that says why there is none.
    """

    id: str
    name: str
    read: Callable[[], Awaitable[bytes | str]]


_MOST_OFFERED = 50
"""Attached files that a workspace receives."""
_MAX_NAME_BYTES = 240
"""A folder takes 255 in a name, and two files of one name get a number."""


class _SandboxCallFailed(Exception):
    """A call has no result; the text says why, for the model."""


_RUN_DESCRIPTION = (
    "Runs Python code in a sandbox without network. Each run is a fresh process: only "
    "files in the workspace, which is the current folder, outlive it. What the user "
    "attached is there, by name. Its modules can be imported{0}. Returns JSON with "
    "what was printed (stdout, stderr), the value of the last expression (result), and "
    "the files that were written, which the user is shown. The workspace is the folder "
    "/work. It lives as long as the chat is used and is shared by all tools whose names "
    "begin with python_ or sandbox_."
)
_CODE = {"code": {"type": "string", "description": "The Python code."}}
_PATH = {
    "path": {
        "type": "string",
        "description": "A path in the workspace, like plots/a.png.",
    }
}
_CONTENT = {
    "content": {"type": "string", "description": "The whole new text of the file."}
}
_TOOLS = {
    "python_execute": (_RUN_DESCRIPTION, _CODE),
    "sandbox_fs_list": ("Lists a folder of the workspace.", _PATH),
    "sandbox_fs_read": (
        "Reads a text file of the workspace; any other file is shown to the user.",
        _PATH,
    ),
    "sandbox_fs_write": (
        "Writes a text file in the workspace, with the folders above it.",
        {**_PATH, **_CONTENT},
    ),
    "sandbox_fs_mkdir": (
        "Makes a folder in the workspace, with those above it.",
        _PATH,
    ),
    "sandbox_fs_remove": (
        "Removes a file of the workspace, or a folder with all that it holds.",
        _PATH,
    ),
}
_NEEDED_TEXTS: Mapping[str, Mapping[str, Any]] = {
    **{name: properties for name, (_, properties) in _TOOLS.items()},
    # What can be called although `specs` does not offer it: its caller describes it.
    "shell_execute": {"command": {}},
    "sandbox_fs_edit": {**_PATH, "old": {}, "new": {}},
}
"""The arguments of each tool, which are all texts."""
_RUN_OPERATIONS = {"python_execute": "run", "shell_execute": "shell"}


_STOP_MESSAGES = {
    "seconds": "The code was stopped: it did not end within {0.seconds:g} s.",
    "output": "The code was stopped: it printed more than {0.output} bytes.",
}


class SandboxResult(NamedTuple):
    """The answer of a tool: a text for the model, files for the host to store."""

    text: str
    failed: bool = False
    files: tuple[SandboxFile, ...] = ()


def _build_sandbox_result(
    reply: SandboxReply, files: tuple[SandboxFile, ...], limits: SandboxLimits
) -> SandboxResult:
    """Return the tool's answer for a reply; raises _SandboxCallFailed."""
    answer = reply.answer
    notes = " ".join(_list_notes(answer, limits))
    match answer:
        case {"refused": str(reason)}:
            raise _SandboxCallFailed(reason)
        case {"damaged": "full"}:
            raise _SandboxCallFailed(
                "The files of this chat no longer fit into the workspace, because an "
                "administrator has lowered its limits. It is empty now. Call again."
            )
        case {"damaged": _}:
            raise _SandboxCallFailed(
                "An earlier run damaged the workspace, which is empty now. Call again."
            )
        case {"stdout": _, "stderr": _, "result": _, "status": int(status)}:
            failed = bool(status or answer.get("stopped"))
            text = _describe_run(reply, notes, limits, failed=failed)
            return SandboxResult(text, failed, files)
        case {"listed": list(listed)}:
            return SandboxResult(f"{_dump_json(listed)} {notes}".strip())
        case {"text": str(text)}:
            return SandboxResult(f"{text}\n\n{notes}" if notes else text)
        case {"given": _, "size": size}:
            text = "It is not text, and files of a cache are not given to the user."
            if files:
                text = f"It is not text; the user gets the file of {size} bytes."
            return SandboxResult(text, files=files)
        case {"done": str(done)}:
            failed = "unkept" in answer
            return SandboxResult(notes if failed else done, failed)
    raise _SandboxCallFailed("The sandbox returned an invalid answer.")


_LONGER_RESULT = 100
"""Characters by which a result may be longer than an output: a name, and three dots."""


def _describe_run(
    reply: SandboxReply, notes: str, limits: SandboxLimits, *, failed: bool
) -> str:
    """Return what the model reads of a run, as JSON.

    By the `status` Open WebUI's pipes see that a run failed, and draw no green tick.
    """
    answer = reply.answer
    # The program writes the value of the last expression as JSON, or its repr.
    value = None
    result = str(answer["result"] or "null")
    if len(result) > limits.output + _LONGER_RESULT:  # code has taken the program over
        result = "null"
    with suppress(ValueError, RecursionError):
        written = json.loads(result)
        if isinstance(written, dict):
            value = written.get("json", written.get("repr"))
    report: dict[str, Any] = {"status": "failed"} if failed else {}
    report |= {
        "stdout": answer["stdout"],
        "stderr": answer["stderr"],
        "result": value,
        "files": [part.name for part in reply.changed],
    }
    if notes:
        report["note"] = notes
    return _dump_json(report)


def _list_notes(answer: Mapping[str, Any], limits: SandboxLimits) -> Iterator[str]:
    """Yield a message for each unexpected event."""
    stopped = answer.get("stopped")
    if stopped:
        yield _STOP_MESSAGES.get(str(stopped), "The code was stopped.").format(limits)
    status = answer.get("status")
    if isinstance(status, int) and status < 0:
        yield f"The code was ended by signal {-status}."
    if "unkept" in answer:
        yield (
            f"Nothing in the workspace was kept, because {answer['unkept']}: it is as "
            "it was before."
        )
    dropped = answer.get("dropped")
    if dropped:
        yield f"Neither files nor folders, and not kept: {_dump_json(dropped)}."
    if answer.get("whole") is False:
        yield f"[The file continues: it has {answer.get('size')} bytes.]"
    unlisted = answer.get("more")
    if unlisted:
        yield f"{unlisted} more are not listed."
    hidden = answer.get("not_shown")
    if hidden:
        yield f"{hidden} more files are not shown."


def _make_storable(text: str) -> str:
    """Return a text without halves of characters, which no server stores or sends.

    Names of files and values of code may have them.
    """
    return text.encode("utf-8", "replace").decode()


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_PROBE_PAUSE_SECONDS = 300.0
"""Each search takes a second or two, for which a question waits."""
_CONTAINER_IMAGE = "python:3.12-slim"


def list_backends(packages: str) -> Iterator[SandboxBackend]:
    """Yield the backends in the order in which they are tried."""
    for python in find_interpreters():
        yield BubblewrapBackend(python, packages)
    for client in ("docker", "podman"):
        yield ContainerBackend(client, _CONTAINER_IMAGE, packages)


class SandboxTools:
    """The tools of one server, with one setting of their limits.

    `problems` says why there is no sandbox, or what it lacks, for an administrator.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        limits: SandboxLimits | None = None,
        wheels: str = "",
        log: Callable[[str], object] = lambda _line: None,
        make_backends: Callable[[str], Iterable[SandboxBackend]] = list_backends,
        private: PrivatePaths | None = None,
    ) -> None:
        """`workspaces` outlive these tools.

        `wheels` is the folder of packages that code can import, if there is one. A
        sandbox in which code could see any of the `private` paths is not used.
        """
        self.missing = ""
        """What the server lacks for a sandbox, once that is known."""
        self._workspaces = workspaces
        self._limits = limits or SandboxLimits()
        self._wheels = wheels
        self._log = log
        self._make_backends = make_backends
        self._private = private or {}
        self._packages = ""
        self._packages_folder: Path | None = None
        self._problems: dict[str, str] = {}
        """By what they are about: the wheels, or the sandbox."""
        self._probe_lock = asyncio.Lock()
        self._next_probe = 0.0
        """When a sandbox is looked for, by the event loop's clock."""
        self._sandbox: Sandbox | None = None
        self._compiling: list[ChildProcess] = []
        self._is_closed = False

    async def specs(self) -> list[dict[str, Any]]:
        """Return the tools' descriptions; none without a sandbox.

        The first call looks for a sandbox, and if there is none, a call some minutes
        later; the log says once why.
        """
        if await self._find_sandbox() is None:
            return []
        specs: list[dict[str, Any]] = []
        for name, (about, properties) in _TOOLS.items():
            parameters = {
                "type": "object",
                "properties": dict(properties),
                "required": list(properties),
                "additionalProperties": False,
            }
            description = about.format(self._packages)
            specs.append(
                {"name": name, "description": description, "parameters": parameters}
            )
        return specs

    @property
    def problems(self) -> list[str]:
        """What is wrong with the sandbox and its packages, as far as it is known."""
        return list(self._problems.values())

    @property
    def max_file_bytes(self) -> int:
        """The largest file that a workspace can receive."""
        return self._limits.file

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat still has its workspace."""
        return self._workspaces.has_workspace(key)

    async def call(
        self, key: WorkspaceKey, name: str, arguments: Mapping[str, Any]
    ) -> SandboxResult:
        """Run a tool; cancelling the call ends the run."""

        async def work(sandbox: Sandbox, workspace: Workspace) -> SandboxResult:
            if name not in _NEEDED_TEXTS:
                raise _SandboxCallFailed(f"There is no tool named {name}.")
            request = {needed: arguments.get(needed) for needed in _NEEDED_TEXTS[name]}
            for needed, value in request.items():
                if not isinstance(value, str):
                    raise _SandboxCallFailed(f"{name} needs {needed}, a text.")
            operation = _RUN_OPERATIONS.get(name, name.removeprefix("sandbox_fs_"))
            request["operation"] = operation
            return await self._run(sandbox, request, workspace, key.user)

        return await self._answer(key, work)

    async def receive(
        self, key: WorkspaceKey, files: Sequence[OfferedFile]
    ) -> list[str]:
        """Put files into the workspace, each once.

        Returns what the model has to know: which are missing, or have another name. A
        chat can name any number of files, and each that is new takes a run: only the
        last ones count.
        """
        if not files:
            return []
        if not key.chat:  # this workspace would not be that of the call
            return [
                "Attached files are not in the workspace, because this call belongs to "
                "no chat."
            ]
        notes: list[str] = []
        if len(files) > _MOST_OFFERED:
            notes.append(
                f"Only the last {_MOST_OFFERED} of {len(files)} attached files are in "
                "the workspace."
            )

        async def work(sandbox: Sandbox, workspace: Workspace) -> SandboxResult:
            for file in files[-_MOST_OFFERED:]:
                if file.id in workspace.received:
                    continue
                try:
                    name = await self._receive_file(sandbox, workspace, key.user, file)
                    if name != file.name:
                        notes.append(
                            f"The attached {file.name} is named {name} in the "
                            "workspace."
                        )
                except _SandboxCallFailed as error:
                    notes.append(f"{file.name} is not in the workspace. {error}")
            return SandboxResult("")

        result = await self._answer(key, work)
        if result.failed:
            notes.append(f"Attached files are not in the workspace. {result.text}")
        return [_make_storable(line) for line in notes]

    async def _receive_file(
        self,
        sandbox: Sandbox,
        workspace: Workspace,
        user: str,
        file: OfferedFile,
    ) -> str:
        """Put a file into the workspace; return its name there, which may be another.

        Raises _SandboxCallFailed.
        """
        path = printable_name(file.name)[-80:]
        path = path.encode()[-_MAX_NAME_BYTES:].decode("utf-8", "ignore")
        async with self._workspaces.runs.hold_file(user):
            content = await file.read()
            if isinstance(content, str):
                raise _SandboxCallFailed(content)
            request = {
                "operation": "receive",
                "path": path,
                "size": len(content),
                "id": file.id,
            }
            name, failed, _ = await self._run(
                sandbox, request, workspace, user, content
            )
        if failed:
            raise _SandboxCallFailed(name)
        return name

    async def _answer(
        self,
        key: WorkspaceKey,
        work: Callable[[Sandbox, Workspace], Awaitable[SandboxResult]],
    ) -> SandboxResult:
        """Do some work in a workspace; what stops it is the result, for the model."""
        try:
            sandbox = await self._find_sandbox()
            if sandbox is None:
                raise _SandboxCallFailed("There is no sandbox on this server.")
            place = self._workspaces.runs.take_place(key.user)
            async with place, self._workspaces.acquire(key) as workspace:
                return await work(sandbox, workspace)
        except _SandboxCallFailed as error:
            reason = str(error)
        except SandboxClosed:
            reason = "The sandbox was closed."
        except RunStopped as stopped:
            reason = (
                f"The run was stopped, because {stopped}. The workspace is as it was."
            )
        except (SandboxUnavailable, SandboxReplyMissing, OSError) as error:
            self._log(f"A run in the sandbox gave no answer: {error}")
            reason = "The run ended without an answer."
        return SandboxResult(_make_storable(f"Error: {reason}"), failed=True)

    async def close(self) -> None:
        """End what runs, and remove the packages."""
        self._is_closed = True
        for process in self._compiling:
            process.kill_group()
            await process.wait()
        if self._sandbox is not None:
            await self._sandbox.stop()
        if self._packages_folder is not None:
            remove_folder(self._packages_folder)

    async def _run(
        self,
        sandbox: Sandbox,
        request: dict[str, Any],
        workspace: Workspace,
        user: str,
        content: bytes = b"",
    ) -> SandboxResult:
        """Run a request in its turn, keep the new workspace.

        Raises SandboxClosed, and what `Sandbox.run` does.
        """
        async with self._workspaces.runs.take_turn(user):
            if self._is_closed:
                raise SandboxClosed
            with workspace.open_spool() as spool:
                reply = await sandbox.run(request, workspace.archive, spool, content)
                # The user gets the files that a run wrote, or the one that was read.
                returns_files = not reply.answer.keys().isdisjoint(("stdout", "given"))
                returned = reply.changed if returns_files else ()
                copying = asyncio.create_task(
                    asyncio.to_thread(
                        workspace.export_files, spool, returned, self._limits.disk
                    )
                )
                try:
                    files = await asyncio.shield(copying)
                finally:  # the thread of a cancelled call still reads the spool
                    await asyncio.wait({copying})
                workspace.store_archive(spool, reply)
                if "id" in request and reply.archive is not None:
                    workspace.add_received(request["id"])
                if "damaged" in reply.answer:
                    workspace.clear()
                    workspace.received.clear()
                result = _build_sandbox_result(reply, files, self._limits)
                return result._replace(text=_make_storable(result.text))

    async def _find_sandbox(self) -> Sandbox | None:
        """Return the sandbox, which the first call looks for; None without one.

        A server may be short of processes, or restart its daemon of containers, at the
        moment of that call. So what was not found is looked for again.
        """
        loop = asyncio.get_running_loop()
        async with self._probe_lock:
            is_due = self._sandbox is None and loop.time() >= self._next_probe
            if is_due and not self._is_closed:
                await self._install_packages()
                backends = self._make_backends(str(self._packages_folder or ""))
                of_no_chat = WorkspaceKey("", "")
                async with self._workspaces.acquire(of_no_chat) as workspace:
                    with workspace.open_spool() as spool:
                        self._sandbox = await self._probe_backends(backends, spool)
                self._next_probe = loop.time() + _PROBE_PAUSE_SECONDS
        return self._sandbox

    async def _install_packages(self) -> None:
        """Install the packages, once; the first use has to wait for it."""
        if self._packages_folder is not None or not self._wheels:
            return
        try:
            folder = await self._workspaces.install(Path(self._wheels))
        except (OSError, BadZipFile) as error:
            problem = f"The wheels of SANDBOX_OPTIONS cannot be installed: {error}"
            self._report("wheels", problem)
            return
        self._problems.pop("wheels", None)
        self._packages_folder = folder
        packages = sorted(
            path.name.partition("-")[0] for path in folder.glob("*.dist-info")
        )
        self._packages = f", also the packages {', '.join(packages)[:1000]}"
        for python in find_interpreters():
            command = (str(python), "-I", "-m", "compileall", "-qq", str(folder))
            self._compiling.append(await start_process(*command, env={}))

    async def _probe_backends(
        self, backends: Iterable[SandboxBackend], spool: Path
    ) -> Sandbox | None:
        """Return the first sandbox that confines; log the reasons if there is none."""
        reasons = []
        missing_parts: dict[str, None] = {}
        for backend in backends:
            sandbox = Sandbox(backend, self._limits)
            try:
                await sandbox.check_confinement(spool, self._private)
                self._problems.pop("sandbox", None)
                self.missing = ""
                return sandbox
            except SandboxUnavailable as missing:
                reasons.append(f"{backend.name}: {missing}")
                missing_parts[str(missing)] = None
        self.missing = "; ".join(missing_parts)
        why = "; ".join(reasons)
        self._report("sandbox", f"The tools of the sandbox are not offered: {why}.")
        return None

    def _report(self, about: str, problem: str) -> None:
        """Tell an administrator, above an answer, and once in the log."""
        if self._problems.get(about) != problem:
            self._log(problem)
        self._problems[about] = problem


# --------------------------------------------------------------------------------------
# sandbox.options
#
# The settings of a sandbox, as administrators write them.
# --------------------------------------------------------------------------------------


class SandboxOptions(BaseModel):
    """What SANDBOX_OPTIONS can hold."""

    model_config = ConfigDict(frozen=True)

    seconds: int = Field(
        default=30, ge=1, le=600, description="Time limit of one run, 1 to 600."
    )
    memory_mb: int = Field(
        default=512,
        ge=64,
        le=16_384,
        description="Memory of one run, for all its processes, 64 to 16384.",
    )
    disk_mb: int = Field(
        default=64,
        ge=1,
        le=1024,
        description="Space for the files of one chat, 1 to 1024.",
    )
    wheels: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default="",
        description="Folder of wheels whose packages can be imported.",
    )


def build_sandbox_limits(options: SandboxOptions, output: int) -> SandboxLimits:
    """Return the limits of a run; `output` is in bytes."""
    disk = options.disk_mb * MEBIBYTE
    return SandboxLimits(
        seconds=options.seconds,
        memory=options.memory_mb * MEBIBYTE,
        disk=disk,
        file=disk,
        output=output,
    )


# --------------------------------------------------------------------------------------
# sandbox.sandboxes
#
# The sandbox of the options that hold now, and those of earlier options.
#
# A call ends in the sandbox in which it began. So the sandbox of earlier options stays
# until its last call has ended; then it is closed, and its packages are removed. All share
# the limit of the server's runs.
# --------------------------------------------------------------------------------------


_Options = TypeVar("_Options", bound=Hashable)


class Sandboxes(Generic[_Options]):
    """Lends the sandbox of some options to each call."""

    def __init__(
        self,
        make: Callable[[_Options, WorkspacePool], SandboxTools],
        shared: WorkspacePool,
    ) -> None:
        """`shared` has the queue of all runs, and the packages of all sandboxes."""
        self._make = make
        self._shared = shared
        self._sandboxes: dict[_Options, SandboxTools] = {}
        self._calls = Counter[_Options]()
        self._newest: _Options | None = None

    @asynccontextmanager
    async def lend(self, options: _Options) -> AsyncGenerator[SandboxTools, None]:
        """Lend the sandbox of these options, which are those that hold now."""
        if options not in self._sandboxes:
            self._sandboxes[options] = self._make(options, self._shared)
        self._newest = options
        self._calls[options] += 1
        try:
            yield self._sandboxes[options]
        finally:
            self._calls[options] -= 1
            for earlier in list(self._sandboxes):
                if earlier != self._newest and not self._calls[earlier]:
                    del self._calls[earlier]
                    closed = self._sandboxes.pop(earlier, None)
                    if closed:  # not by another call that ended meanwhile
                        await closed.close()

    async def close(self) -> None:
        """Close all of them, whatever runs there."""
        while self._sandboxes:
            _, sandbox = self._sandboxes.popitem()
            await sandbox.close()


# --------------------------------------------------------------------------------------
# owui_host.lookup
#
# The only module that imports `open_webui`.
#
# Names are looked up when they are used. If an older host lacks one, whoever needed it
# gets a message, and the plugin still loads.
# --------------------------------------------------------------------------------------


class HostTooOld(InvalidRequest):
    """This Open WebUI lacks a name that the plugin needs."""


def host_name(module: str, name: str) -> Any:
    """Return a name of a module in `open_webui`; raises HostTooOld without one."""
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise HostTooOld(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "this plugin needs. An administrator has to update the plugin or Open "
            "WebUI.",
            remedy="setup",
        ) from None


# --------------------------------------------------------------------------------------
# owui_host.users
#
# The users of Open WebUI.
# --------------------------------------------------------------------------------------


class HostUser(Protocol):
    """The host's model of a user, which its functions need whole."""

    id: str
    role: str


async def user_model(user_id: str) -> HostUser | None:
    """Return a user, or None for somebody whom the host does not know."""
    user: HostUser | None
    user = await host_name("models.users", "Users").get_user_by_id(user_id)
    return user


# --------------------------------------------------------------------------------------
# owui_host.files
#
# The files that Open WebUI stores: read with a user's rights, stored for a user.
#
# Each function raises HostTooOld if the host lacks a name that it needs.
# --------------------------------------------------------------------------------------


class StoredFile(NamedTuple):
    """A file that the host stores; the `path` is for its storage."""

    path: str
    name: str
    media_type: str
    size: int
    """In bytes; 0 if the host does not say."""
    has_text: bool = False
    """Whether the host has read or heard a text in it."""


async def readable_file(file_id: str, user: HostUser | None) -> StoredFile | None:
    """Return a stored file that `user` may read by the host's rules, or None.

    Administrators may read all files, as in `get_file_content_by_id` of the host
    (routers/files.py, 0.12.4).
    """
    row = await host_name("models.files", "Files").get_file_by_id(file_id)
    if row is None or user is None or not row.path:
        return None
    if row.user_id != user.id and user.role != "admin":
        may_read = host_name("utils.access_control.files", "has_access_to_file")
        if not await may_read(file_id, "read", user):
            return None
    facts = as_mapping(row.meta)
    size = facts.get("size")
    return StoredFile(
        path=row.path,
        name=row.filename,
        media_type=as_text(facts.get("content_type")),
        size=size if isinstance(size, int) else 0,
        has_text=bool(as_mapping(row.data).get("content")),
    )


_WHOLE = -1
"""As many bytes as there are, for `read` of an open file."""

_Made = TypeVar("_Made")


async def read_file(
    file: StoredFile | None, make: Callable[[bytes], _Made], most_bytes: int = _WHOLE
) -> _Made | None:
    """Return the result of `make` for a file's bytes; None if the host lost the file.

    Of a longer file it gets the first `most_bytes`. Both run on a thread, because the
    file may be large and its storage remote. The storages of the host raise an OSError
    or a RuntimeError.
    """
    if file is None:
        return None
    storage = host_name("storage.provider", "Storage")

    def read() -> _Made:
        with Path(storage.get_file(file.path)).open("rb") as stored:
            content = stored.read(most_bytes)
        return make(content)

    try:
        return await asyncio.to_thread(read)
    except (OSError, RuntimeError):
        return None


async def store_file(
    request: Any,
    name: str,
    content: bytes,
    place: Mapping[str, str],
    user: HostUser,
) -> dict[str, Any] | None:
    """Store a file for a user; return its entry in a message's list of files.

    A model or its code chose the `name`. It becomes one whose file no browser runs, here
    and nowhere else: whoever stores a file goes through this function.

    The `place` decides who else may read the file: whoever may read the saved message
    of a `chat_id` and a `message_id`, or the members of the channel of a `channel_id`;
    nobody if it is empty. None: the host refused the file, for example for its size
    (docs/reference/open-webui.md, "Events and stored files").
    """
    upload = host_name("routers.files", "upload_file_handler")
    refused = host_name("routers.files", "HTTPException")
    name, media_type = stored_name(name)
    arriving = host_name("routers.files", "UploadFile")(
        BytesIO(content), filename=name, headers={"content-type": media_type}
    )
    try:
        row = await upload(
            request, file=arriving, metadata=dict(place), process=False, user=user
        )
    except refused:
        return None
    # The host itself links a file with the channel that its metadata name.
    if "chat_id" in place:
        chats = host_name("models.chats", "Chats")
        await chats.insert_chat_files(**place, file_ids=[row.id], user_id=user.id)
    url = request.app.url_path_for("get_file_content_by_id", id=row.id)
    return {
        "type": "image" if media_type.startswith("image/") else "file",
        "id": row.id,
        "url": str(url),
        "name": name,
        "content_type": media_type,
    }


# --------------------------------------------------------------------------------------
# owui_sandbox.host
#
# What only the sandbox uses of Open WebUI.
#
# Each function raises HostTooOld if the host lacks a name that it needs.
# --------------------------------------------------------------------------------------


def data_folder() -> Path:
    """Return the folder in which the server keeps its data."""
    return Path(host_name("env", "DATA_DIR"))


def private_paths() -> dict[str, Path]:
    """Return what only the server may read, by what an administrator calls it.

    Without DATA_DIR, `pip install open-webui` puts all but the last two into the folder
    of the packages. The key is that of `open-webui serve` (`__init__.py`, 0.12.4).
    """
    paths = {
        "DATA_DIR": data_folder(),
        "STATIC_DIR": Path(host_name("env", "STATIC_DIR")),
        "UPLOAD_DIR": Path(host_name("config", "UPLOAD_DIR")),
        "CACHE_DIR": Path(host_name("config", "CACHE_DIR")),
        ".env": Path(host_name("env", "BASE_DIR"), ".env"),
        ".webui_secret_key": Path.cwd() / ".webui_secret_key",
    }
    kind, _, database = str(host_name("env", "DATABASE_URL")).partition(":///")
    if kind.startswith("sqlite"):
        paths["DATABASE_URL"] = Path(database)
    return paths


async def find_saved_message(
    chat_id: str, message_id: str, user_id: str
) -> dict[str, str]:
    """Return `chat_id` and `message_id` if the user has this chat, else nothing.

    Temporary chats, channels and plain API calls have no row.
    """
    if not chat_id or not message_id:
        return {}
    chats = host_name("models.chats", "Chats")
    if await chats.get_chat_by_id_and_user_id(chat_id, user_id) is None:
        return {}
    return {"chat_id": chat_id, "message_id": message_id}


async def add_to_message(
    message: Mapping[str, str], entries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Put files below a saved message; return all files that it has then.

    Open WebUI 0.12.4 does so for its own pictures (tools/builtin.py, generate_image):
    the page replaces a message's files by those of an event.
    """
    if not message:
        return entries
    chats = host_name("models.chats", "Chats")
    stored: list[dict[str, Any]] | None
    stored = await chats.add_message_files_by_id_and_message_id(
        message["chat_id"], message["message_id"], entries
    )
    return stored or entries


# --------------------------------------------------------------------------------------
# owui_sandbox.calls
#
# A call of a tool: the workspace that it uses, and where its files go.
# --------------------------------------------------------------------------------------


EmitEvent = Callable[[dict[str, Any]], Awaitable[None]]
"""Sends an event to the page of whoever asked."""


class SandboxCall(NamedTuple):
    """Who calls, from which chat, as Open WebUI says it."""

    user_id: str
    chat_id: str
    message_id: str
    attached: tuple[tuple[str, str], ...]
    """The ids and names of files."""
    request: Any
    emit: EmitEvent | None

    @property
    def key(self) -> WorkspaceKey:
        """The workspace of the chat; without chat or user each call has a new one."""
        if not self.user_id:
            return WorkspaceKey("", "")
        return WorkspaceKey(self.user_id, self.chat_id)


def read_sandbox_call(
    user: Mapping[str, Any] | None,
    metadata: Mapping[str, Any] | None,
    request: Any,
    emit: EmitEvent | None,
) -> SandboxCall:
    """Return the call that Open WebUI's reserved parameters describe."""
    known = metadata or {}
    files = known.get("files")
    attached: list[tuple[str, str]] = []
    for file in files if isinstance(files, list) else ():
        match file:  # notes and collections are skipped
            case {"type": "file", "id": str(file_id), "name": str(name)}:
                attached.append((file_id, name))
    return SandboxCall(
        user_id=str((user or {}).get("id") or ""),
        chat_id=str(known.get("chat_id") or ""),
        message_id=str(known.get("message_id") or ""),
        attached=tuple(attached),
        request=request,
        emit=emit,
    )


async def receive_attached(sandbox: SandboxTools, call: SandboxCall) -> list[str]:
    """Put the attached files into the workspace, each once; return what is missing."""
    offered: list[OfferedFile] = []
    for file_id, name in call.attached:
        read = partial(
            _read_attached_file, file_id, call.user_id, sandbox.max_file_bytes
        )
        offered.append(OfferedFile(file_id, name, read))
    return await sandbox.receive(call.key, offered)


async def _read_attached_file(
    file_id: str, user_id: str, max_bytes: int
) -> bytes | str:
    """Return the content of a file, or why there is none."""
    try:
        stored = await readable_file(file_id, await user_model(user_id))
        if stored is not None and stored.size > max_bytes:
            return _too_large_message(max_bytes)
        # The host may not know the size. One byte more tells that the file is longer.
        content = await read_file(stored, bytes, max_bytes + 1)
    except HostTooOld as missing:
        return str(missing)
    except Exception as error:  # the host's database is away
        return f"It cannot be read: Open WebUI reports a {type(error).__name__}."
    if content is None:
        return "It cannot be read."
    if len(content) > max_bytes:
        return _too_large_message(max_bytes)
    return content


def _too_large_message(max_bytes: int) -> str:
    megabytes = max_bytes // MEBIBYTE
    return f"It is larger than {megabytes} MB, the limit of a workspace."


async def give_files(call: SandboxCall, files: Sequence[SandboxFile]) -> list[str]:
    """Store files for whoever asked, and show them; return what could not be done."""
    if not files:
        return []
    if call.request is None or call.emit is None:
        return ["There is no page that could show files to the user."]
    entries: list[dict[str, Any]] = []
    refused: list[str] = []
    try:
        user = await user_model(call.user_id)
        message = await find_saved_message(call.chat_id, call.message_id, call.user_id)
        for file in files:
            entry = None
            if user is not None:
                content = await asyncio.to_thread(file.path.read_bytes)
                entry = await store_file(
                    call.request, file.name, content, message, user
                )
            if entry is None:
                refused.append(file.name)
            else:
                entries.append(entry)
        if entries:
            shown = await add_to_message(message, entries)
            await call.emit({"type": "chat:message:files", "data": {"files": shown}})
    except HostTooOld as missing:
        return [f"The user does not see the files. {missing}"]
    except Exception as error:  # the host's database or its storage is away
        kind = type(error).__name__
        return [f"The user does not see the files. Open WebUI reports a {kind}."]
    if refused:
        names = ", ".join(refused)
        return [f"Open WebUI did not store {names}, so the user does not see it."]
    return []


# --------------------------------------------------------------------------------------
# owui_sandbox.stored_workspaces
#
# The workspaces of the chats, in a folder that outlives the server's processes.
#
# Open WebUI loads a tool anew whenever its text changes, and in each of its workers. So
# nothing about a workspace is kept in memory: `<folder>/<user>/<chat>/archive.<start>` is
# the packed workspace, which begins at the byte `start` of that file, and `received`
# names the attached files that were put into it. Names of users and chats are hashed, so
# no id of theirs becomes a path. Whoever uses a workspace holds a lock on its folder,
# which the kernel releases however the process ends.
#
# A run works in a folder of its own next to the archive, where the files that it returns
# stay until `discard_files`.
# --------------------------------------------------------------------------------------


_LOCK_SECONDS = 0.05
"""How often a call looks whether the workspace of its chat is free."""
_ABANDONED_SECONDS = 600.0
"""Files that a run returned are read at once; a killed server leaves them."""
_ARCHIVE = "archive."
_RUN = "run-"
_RECEIVED = "received"
"""The ids of the attached files that were put into the workspace, as a JSON list."""


class StoredWorkspaces:
    """Lends each workspace to one run at a time, in all processes of the server."""

    def __init__(
        self, folder: Path, limits: SharedLimits, shared: WorkspacePool
    ) -> None:
        """`shared` has the queue of this process's runs, and their packages."""
        self._shared = shared
        self.runs = shared.runs
        self._folder = folder
        self._limits = limits

    @asynccontextmanager
    async def acquire(self, key: WorkspaceKey) -> AsyncGenerator[Workspace, None]:
        """Lend a chat's workspace; without a chat a new one, which is then removed."""
        is_temporary = not key.chat
        if is_temporary:
            key = key._replace(chat=token_hex(16))
        folder = self._path_of(key)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._remove_surplus(except_for=folder)
        # Another process may hold it, and nothing tells when it lets go.
        while (lock := _try_lock(folder)) is None:  # noqa: ASYNC110
            await asyncio.sleep(_LOCK_SECONDS)
        try:
            for path in folder.glob(f"{_RUN}*"):  # what a killed server left
                with suppress(FileNotFoundError):  # another process removed it
                    if path.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
                        remove_folder(path)
            run_folder = Path(tempfile.mkdtemp(prefix=_RUN, dir=folder))
            workspace = Workspace(run_folder)
            # A server that was killed when it replaced an archive has left both.
            archives = list(folder.glob(f"{_ARCHIVE}*"))
            if archives:
                path = max(archives, key=lambda archive: archive.stat().st_mtime_ns)
                start = int(path.name.removeprefix(_ARCHIVE))
                workspace.archive = WorkspaceArchive(path, start)
            workspace.received = _read_received(folder)
            has_returned = False
            try:
                yield workspace
                has_returned = True
            finally:
                # The server may be killed at any line. So the old archive is there until
                # the new one is, and no file counts as received before its archive.
                archive = workspace.archive
                kept: Path | None = None
                if archive is not None:
                    kept = archive.path
                    if kept.parent == run_folder:  # it is that of this run
                        kept = kept.rename(folder / f"{_ARCHIVE}{archive.start}")
                _remove_archives(folder, except_for=kept)
                if workspace.received != _read_received(folder):
                    received = run_folder / _RECEIVED
                    received.write_text(json.dumps(list(workspace.received)), "utf-8")
                    received.rename(folder / _RECEIVED)
                if has_returned:
                    _remove_if_empty(run_folder)
                else:  # nobody will read what it has returned
                    remove_folder(run_folder)
                if is_temporary:
                    _remove_archives(folder)
                    (folder / _RECEIVED).unlink(missing_ok=True)
                    _remove_if_empty(folder)
                    _remove_if_empty(folder.parent)
        finally:
            os.close(lock)

    def has_workspace(self, key: WorkspaceKey) -> bool:
        """Say whether a chat has a workspace, which may be empty."""
        return bool(key.chat) and self._path_of(key).is_dir()

    async def install(self, wheels: Path) -> Path:
        """Unpack wheels into a new folder, which all runs can read; return it."""
        return await self._shared.install(wheels)

    def _path_of(self, key: WorkspaceKey) -> Path:
        return self._folder / _folder_name(key.user) / _folder_name(key.chat)

    def _remove_surplus(self, except_for: Path) -> None:
        """Remove workspaces whose time is over, and the oldest of too many."""
        folders: list[tuple[float, Path]] = []
        for folder in self._folder.glob("*/*"):
            with suppress(FileNotFoundError):  # another process has just removed it
                folders.append((folder.stat().st_mtime, folder))
        expired = time.time() - self._limits.idle_seconds
        by_user: dict[Path, list[Path]] = {}
        for last_used, folder in sorted(folders):
            if last_used < expired and folder != except_for:
                _remove_unless_locked(folder)
            else:
                by_user.setdefault(folder.parent, []).append(folder)
        # Whoever has the most loses the one that was not used for the longest time, so
        # that the chats of one user cannot push out those of others.
        too_many: list[Path] = []
        for own in by_user.values():
            while len(own) > self._limits.workspaces_per_user:
                too_many.append(own.pop(0))
        while sum(map(len, by_user.values())) > self._limits.workspaces:
            largest = max(by_user.values(), key=len)
            too_many.append(largest.pop(0))
        for folder in too_many:
            if folder != except_for:
                _remove_unless_locked(folder)


def discard_files(files: Iterable[SandboxFile]) -> None:
    """Remove files that a run returned, and its folders once they are empty."""
    for file in files:
        file.path.unlink(missing_ok=True)
        run_folder, chat_folder, user_folder, *_ = file.path.parents
        for folder in (run_folder, chat_folder, user_folder):
            _remove_if_empty(folder)


def _folder_name(host_id: str) -> str:
    """Return the name of the folder of a user or a chat."""
    return hashlib.sha256(host_id.encode("utf-8", "replace")).hexdigest()[:32]


def _try_lock(folder: Path) -> int | None:
    """Return a locked descriptor of a folder, which is created if needed.

    None: somebody else holds the lock.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError, BlockingIOError):
        lock = lock_folder(folder)
        # Another call may have removed it between its creation and the lock.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), folder.stat()):
                return lock
        os.close(lock)
    return None


def _read_received(folder: Path) -> dict[str, None]:
    try:
        ids = json.loads((folder / _RECEIVED).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # none yet, or half of one: a full disk
        return {}
    return dict.fromkeys(ids)


def _remove_archives(folder: Path, except_for: Path | None = None) -> None:
    for path in folder.glob(f"{_ARCHIVE}*"):
        if path != except_for:
            path.unlink()


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):  # something is in it, or it is gone
        folder.rmdir()


def _remove_unless_locked(folder: Path) -> None:
    """Remove the workspace of a chat that no run uses."""
    with suppress(OSError):
        lock = lock_folder(folder)
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)
        _remove_if_empty(folder.parent)


# --------------------------------------------------------------------------------------
# owui_sandbox.tools
#
# The tools that Open WebUI offers to the model.
# --------------------------------------------------------------------------------------


_FOLDER = "openai_responses_sandbox"
"""Where the workspaces are, in the server's data folder."""
_SECONDS_PER_HOUR = 3600.0
_LOG = logging.getLogger("openai_responses_sandbox")


class StoredSandboxOptions(SandboxOptions):
    """What SANDBOX_OPTIONS of this tool can hold."""

    hours: int = Field(
        default=24,
        ge=1,
        le=720,
        description="How long the files of a chat are kept after their last use, 1 to "
        "720.",
    )


class SandboxValves(BaseModel):
    """The settings that an administrator sees."""

    SANDBOX_OPTIONS: str = Field(
        default="",
        description="A JSON object: `seconds` and `memory_mb` of one run, `disk_mb` of "
        "one chat, `hours` that its files are kept, `wheels` (a folder of packages to "
        'import). Example: `{"seconds": 60, "wheels": "/srv/wheels"}`.',
    )


class Tools:
    """Runs code, and works on files, in the workspace of the chat that calls.

    Open WebUI offers each public method as a tool: its docstring is the description
    that the model reads.
    """

    Valves = SandboxValves

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._sandboxes = Sandboxes(_make_sandbox, WorkspacePool())

    async def python_execute(
        self,
        code: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Run Python code in a sandbox without network access. Each run is a fresh
        process; the files in the current folder (/work, the workspace of this chat)
        outlive it, and its modules can be imported. What the user attached is there,
        by name. Returns JSON with what was printed (stdout, stderr), the value of the
        last expression (result), and the files that were written, which the user is
        shown.

        :param code: The Python code.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "python_execute", {"code": code})

    async def shell_execute(
        self,
        command: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Run a shell command (sh) in a sandbox without network access, in the
        workspace of this chat (/work). Returns JSON with stdout, stderr, and the
        files that were written, which the user is shown.

        :param command: The command, like: grep -n total *.csv | head
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "shell_execute", {"command": command})

    async def sandbox_fs_list(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """List a folder of this chat's workspace.

        :param path: A path in the workspace, like plots; the whole workspace is ".".
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_list", {"path": path})

    async def sandbox_fs_read(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Read a text file of this chat's workspace; any other file is shown to the
        user.

        :param path: A path in the workspace, like data/a.csv.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_read", {"path": path})

    async def sandbox_fs_write(
        self,
        path: str,
        content: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Write a text file in this chat's workspace, with the folders above it.

        :param path: A path in the workspace, like src/main.py.
        :param content: The whole new text of the file.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(
            call, "sandbox_fs_write", {"path": path, "content": content}
        )

    async def sandbox_fs_edit(  # noqa: PLR0913, PLR0917 (four are Open WebUI's)
        self,
        path: str,
        old: str,
        new: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Replace one passage of a text file in this chat's workspace. The passage
        must occur exactly once.

        :param path: A path in the workspace, like src/main.py.
        :param old: The exact passage, with its spaces and line breaks.
        :param new: The text that replaces it.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(
            call, "sandbox_fs_edit", {"path": path, "old": old, "new": new}
        )

    async def sandbox_fs_mkdir(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Create a folder in this chat's workspace, with those above it.

        :param path: A path in the workspace, like plots.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_mkdir", {"path": path})

    async def sandbox_fs_remove(
        self,
        path: str,
        __user__: dict[str, Any] | None = None,
        __metadata__: dict[str, Any] | None = None,
        __request__: Any = None,
        __event_emitter__: Any = None,
    ) -> str:
        """Remove a file of this chat's workspace, or a folder with all that it holds.

        :param path: A path in the workspace, like plots/old.png.
        """
        call = read_sandbox_call(__user__, __metadata__, __request__, __event_emitter__)
        return await self._run(call, "sandbox_fs_remove", {"path": path})

    async def _run(
        self, call: SandboxCall, name: str, arguments: Mapping[str, Any]
    ) -> str:
        """Run a tool; return what the model reads."""
        if sys.platform != "linux":
            return "Error: The sandbox does not run on this server: it needs Linux."
        try:
            async with self._sandboxes.lend(self.valves.SANDBOX_OPTIONS) as sandbox:
                notes = await receive_attached(sandbox, call)
                result = await sandbox.call(call.key, name, arguments)
                lacking = sandbox.missing
        except HostTooOld as missing:
            return f"Error: The sandbox does not run on this server: {missing}"
        if lacking:
            return (
                f"Error: The sandbox does not run on this server: {lacking}. "
                "An administrator can change that; some minutes later it is used."
            )
        try:
            notes += await give_files(call, result.files)
        finally:
            discard_files(result.files)
        return "\n".join([result.text, *notes])


def _make_sandbox(text: str, shared: WorkspacePool) -> SandboxTools:
    """Return a sandbox with the options of the valve; raises HostTooOld."""
    options, problems = read_json_valve("SANDBOX_OPTIONS", text, StoredSandboxOptions)
    for problem in problems:
        _LOG.warning(problem)
    limits = SharedLimits(idle_seconds=options.hours * _SECONDS_PER_HOUR)
    return SandboxTools(
        StoredWorkspaces(data_folder() / _FOLDER, limits, shared),
        build_sandbox_limits(options, SandboxLimits().output),
        options.wheels,
        _LOG.warning,
        _list_bubblewraps,
        private_paths(),
    )


def _list_bubblewraps(packages: str) -> Iterator[SandboxBackend]:
    """Yield the backends: the system's programs are in each, for shell commands."""
    for python in find_interpreters():
        yield BubblewrapBackend(python, packages, with_programs=True)
