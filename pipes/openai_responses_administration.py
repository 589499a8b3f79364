"""
title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.12.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

Do not paste this file into Open WebUI. Its editor formats what is pasted, and the server
responds to nobody for seconds meanwhile. Paste the same code, compressed, from
release/openai_responses_administration_packed.py

Built by scripts/bundle.py from pipes/; do not edit. Each module follows those that
it imports; the last one has the class Filter.
"""

import ast
import asyncio
import hashlib
import html
import json
import math
import random
import re
import secrets
import time
from asyncio import timeout
from base64 import b64encode
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache, reduce
from importlib import import_module
from inspect import signature
from itertools import islice
from math import ceil
from traceback import extract_tb
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    TypedDict,
)
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

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

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
# openai_responses.recent_texts
#
# What was said lately, and what users reported lately.
# --------------------------------------------------------------------------------------


_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, or of as many seconds, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(
        self,
        seconds: float = _DAY_SECONDS,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._now = now
        self._seconds = seconds
        self._ends: dict[int, float] = {}
        """Until when each text counts, by its hash."""

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + self._seconds
        return True


_MAX_SUBJECTS = 500
_USERS_FOR_ALL = 3


class UserReports:
    """What requests of users met lately, such as a server that fails.

    What one request met says nothing about other users: it may be about its content, or
    one bad moment. So it holds for that user, and for all once three users met it. Of
    too many subjects, the oldest are forgotten that the same user met with the fewest
    others, or of all.
    """

    def __init__(
        self,
        seconds: float = _DAY_SECONDS,
        now: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._seconds = seconds
        self._now = now
        self._ends: dict[str, dict[str, float]] = {}
        """Until when each user's report counts, by subject and user."""

    def add(self, subject: str, user_id: str) -> None:
        """Note that a user's request met `subject`; without a user, ignore it."""
        if not user_id:
            return
        users = self._ends.pop(subject, {})
        users = {user: end for user, end in users.items() if self._now() < end}
        users.pop(user_id, None)
        if len(users) >= _USERS_FOR_ALL:
            # It holds for all already, so more users need no place.
            del users[next(iter(users))]
        users[user_id] = self._now() + self._seconds
        if len(self._ends) >= _MAX_SUBJECTS:
            own = {
                known: len(met_by)
                for known, met_by in self._ends.items()
                if user_id in met_by and len(met_by) < _USERS_FOR_ALL
            }
            forgotten = min(own, key=own.__getitem__) if own else next(iter(self._ends))
            del self._ends[forgotten]
        self._ends[subject] = users

    def holds(self, subject: str, user_id: str) -> bool:
        """Say whether `subject` is to be expected for a user."""
        users = self._ends.get(subject, {})
        reporters = [user for user, end in users.items() if self._now() < end]
        return user_id in reporters or len(reporters) >= _USERS_FOR_ALL


# --------------------------------------------------------------------------------------
# openai_responses.digest
#
# Digests of texts, to compare or to name them without keeping them.
# --------------------------------------------------------------------------------------


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text.

    A text may have lone surrogates, which UTF-8 does not have.
    """
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
# openai_responses.redaction
#
# Removes secrets from text: known values, then what looks like a secret.
#
# Text that is already `[redacted]` is left alone. No rule may look back past a character
# that another rule can take, and none may end in front of a letter or digit, so a second
# pass finds nothing new. What repeats without limit is possessive, or starts with a
# character that it cannot repeat, so the time is linear.
# --------------------------------------------------------------------------------------


_REDACTED = "[redacted]"

_SHORTEST_SECRET = 6

_SPACE = r"[^\S\r\n]*+"
_NAME_ENDS = rf"""["'\\]*+{_SPACE}(?:[:=]|,(?={_SPACE}b?["'])){_SPACE}"""
_VALUE_OPENS = r"""(?:b(?=["'])|["'\\(\[])*+"""
_ASSIGNED = _NAME_ENDS + _VALUE_OPENS

_OTHER_KEYS = (
    r"(?<![A-Za-z0-9])(?:(?:xai-|gsk_|pplx-|hf_|csk-)[A-Za-z0-9]{30,}+|AIza[\w-]{30,}+)"
)
"""Keys of xAI, Groq, Perplexity, Hugging Face, Cerebras and Google. They are longer than
the words in a model's name, which may begin alike."""
_LOOKS_SECRET = re.compile(
    "|".join(
        [
            # Authorization: Bearer sk-..., {"cookie": "a=b; c=d"}
            rf"(?P<header>(?:authorization|cookies?){_ASSIGNED})"
            r"""[^\s"'\\](?:[^\r\n"'\\]|\\[^"'nr\r\n])*+""",
            # api_key=..., "client_secret": "...", Incorrect API key provided: sk-...
            r"(?P<name>(?:api[-_ ]?key(?:\ provided)?|client[-_]?secret|passw(?:or)?d|"
            r"(?:access|auth|refresh|session)[-_]?token|encrypted_content)"
            rf"""{_ASSIGNED})(?:(?<=["'])[^\r\n"'\\]++|[^\s"'\\&,;)}}\]>]++)""",
            # https://host/path?access_token=...&sig=...
            r"(?P<query>[?&][\w.-]{0,32}?(?:key|token|secret|password|signature|sig)=)"
            r"""[^\s"'\\&#;)}\]>]++""",
            # https://user:password@host
            r"(?P<scheme>://)[^\s/?#\"'<>]*@",
            # The two schemes on their own, as in a message about a header.
            r"(?P<bearer>bearer(?:\s|%20){1,4})[A-Za-z0-9._~+/=*-]{6,}+",
            r"(?P<basic>basic\s{1,4}(?-i:(?=[A-Za-z]*+[0-9+/=]|[A-Za-z]*?[a-z][A-Z])))"
            r"[A-Za-z0-9+/]{8,}+={0,2}",
            # Keys of OpenAI and GitHub, by how they begin; they may be masked with stars.
            r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_)[A-Za-z0-9_*-]{6,}+",
            _OTHER_KEYS,
            # A JSON Web Token, with its signature or without.
            r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{4,}+"
            r"(?:\.[A-Za-z0-9_-]*+)?",
            # Encrypted reasoning, and what Fernet encrypts.
            r"gAAAA[A-Za-z0-9_-]{20,}+={0,2}",
        ]
    ),
    re.IGNORECASE,
)
"""What looks like a secret.

- The value of a header goes on to the end of the line or of the quotes, that of another
  name (`name`) is one word or in quotes; then parameters of a query (`query`).
- `Basic` is a word, too: base64 has digits, or a capital inside a word.
- A JSON Web Token begins with `{"` in base64, a Fernet token with its version and the
  first bytes of a time, which are zero until 2106.
"""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `[redacted]` in place of `secrets` and of what looks like one.

    Secrets of less than six characters are ignored: usual words contain them.
    """
    known: set[str] = set()
    for secret in secrets:
        known.update(_forms(secret.strip()))
    for form in sorted(known, key=_longest_first):
        parts = [_redact_text(part, form) for part in text.split(_REDACTED)]
        text = _REDACTED.join(parts)
    parts = [_LOOKS_SECRET.sub(_keep_name, part) for part in text.split(_REDACTED)]
    return _REDACTED.join(parts)


_WHOLE_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-|sess-|gh[opsu]_|github_pat_|eyJ|gAAAA)[\w-]{20,}+"
    rf"(?:\.[\w-]++)*+|{_OTHER_KEYS}"
)


def hide_keys(text: str) -> str:
    """Return `text` with `[redacted]` in place of whole keys; nothing else changes.

    What administrators paste into the wrong setting is in messages and names. A shorter
    text may be a name: that of a deployment can begin with `sk-`.
    """
    return _WHOLE_KEY.sub(_REDACTED, text)


_LONGEST_SECRET = 6_000
"""Characters; a key has at most 2,000, which an address writes as up to three each."""


def redact_beginning(text: str, characters: int, hide: Callable[[str], str]) -> str:
    """Return at most so many `characters` of what `hide` makes of a text.

    Of a long text only the beginning is read. Where that ends half a secret may be
    left, which no rule knows, and long secrets in front of it make the text shorter: so
    the end of what was read is never shown.
    """
    read = text[: characters + 2 * _LONGEST_SECRET]
    shown = hide(read)
    if len(read) < len(text):
        shown = shown[:-_LONGEST_SECRET]
    return shown[:characters]


def _longest_first(form: str) -> tuple[int, str]:
    return -len(form), form


def _redact_text(text: str, secret: str) -> str:
    """Replace a secret in any case.

    No pattern is made of it: `re` keeps the last 512 of a process, in which the keys of
    users would stay, with some 100 kB for each long one.
    """
    folded = _fold_case(text)
    wanted = _fold_case(secret)
    pieces: list[str] = []
    done = 0
    start = folded.find(wanted)
    while start >= 0:
        pieces += [text[done:start], _REDACTED]
        done = start + len(wanted)
        start = folded.find(wanted, done)
    return "".join([*pieces, text[done:]])


def _fold_case(text: str) -> str:
    """Return a text in lower case, in which each character stays one character."""
    folded = text.lower()
    if len(folded) == len(text):
        return folded
    return "".join(sign.lower()[:1] for sign in text)


def header_secrets(value: str) -> list[str]:
    """Return a header's value and its further words, like the key after `Bearer`."""
    return [value, *value.split()[1:]]


def redact_line(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line of printable characters, for a log."""
    return _printable("\\n".join(redact(text, secrets).splitlines()))


def redact_words(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line for people, who read no `\\n`.

    Lines are joined last: some secrets end with their line.
    """
    return _printable(" ".join(redact(text, secrets).split()))


def _printable(line: str) -> str:
    # Without the quotes that `ascii` adds.
    shown = [sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line]
    return "".join(shown)


def hide_paths(text: str, roots: Iterable[str]) -> str:
    """Return `text` with only the last name of each path below one of the `roots`.

    A path ends at a space or a quotation mark, so the name of a file may lose its end.
    """
    longest_first = sorted((root for root in roots if root), key=_longest_first)
    if not longest_first:
        return text
    # A path in quotation marks has each backslash twice.
    below = "|".join(
        re.escape(root[0])
        + r"[/\\]++".join(re.escape(name) for name in re.split(r"[/\\]", root[1:]))
        for root in longest_first
    )
    # `/app` is a root, but not in https://host/app, in /application or in /app.log.
    pattern = (
        rf"(?:(?<![\w.~/\\-])|(?<=file://))(?:{below})(?![\w-]|\.\w)"
        r"(?:[/\\]++[^\s/\\\"'`<>()\[\],;:]*+)*+"
    )

    def keep_last_name(match: re.Match[str]) -> str:
        names = [name for name in re.split(r"[/\\]", match.group()) if name]
        return f"[path]/{names[-1]}"

    return re.sub(pattern, keep_last_name, text, flags=re.IGNORECASE)


def describe_exception(error: BaseException) -> str:
    """Return type and place of an exception; its text may quote a header or a prompt."""
    frames = extract_tb(error.__traceback__)
    name = type(error).__name__
    if not frames:
        return f"{name} at nowhere"
    last = frames[-1]
    return f"{name} at line {last.lineno} in {last.name}"


def _keep_name(match: re.Match[str]) -> str:
    """Return what takes the place of a match; the name in front of a value stays."""
    name = match[match.lastgroup] if match.lastgroup else ""
    end = "@" if match.lastgroup == "scheme" else ""
    return f"{name}{_REDACTED}{end}"


def _forms(secret: str) -> Iterator[str]:
    """Yield `secret` as it appears in headers, addresses, JSON, pages and base64."""
    if len(secret) < _SHORTEST_SECRET:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield quote(raw)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield quote(quote(raw, safe=""))
    yield html.escape(secret)
    yield html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield json.dumps(secret, ensure_ascii=True)[1:-1]
    as_json = json.dumps(secret, ensure_ascii=False)[1:-1]
    yield as_json
    yield as_json.replace("/", r"\/")  # PHP
    yield as_json.translate(_ESCAPES_OF_GO)
    # The password of a `Basic` header follows a user name of unknown length: only the
    # characters count that `raw` alone decides when `offset` bytes precede it.
    for offset in range(_BYTES_OF_BASE64_GROUP):
        first_bit = offset * _BITS_OF_BYTE
        end_bit = (offset + len(raw)) * _BITS_OF_BYTE
        first = math.ceil(first_bit / _BITS_OF_BASE64_CHARACTER)
        end = end_bit // _BITS_OF_BASE64_CHARACTER
        encoded = b64encode(bytes(offset) + raw).decode()[first:end]
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


_ESCAPES_OF_GO = {ord(sign): f"\\u{ord(sign):04x}" for sign in "&<>"}
"""In JSON; its pages have the marks of quotations as numbers."""
_BYTES_OF_BASE64_GROUP = 3
_BITS_OF_BYTE = 8
_BITS_OF_BASE64_CHARACTER = 6


# --------------------------------------------------------------------------------------
# openai_responses.endpoint
#
# Where requests go: address, headers, certificates and proxy.
# --------------------------------------------------------------------------------------


DEFAULT_BASE_URL = "https://api.openai.com/v1"

Compatibility = Literal["auto", "openai", "strict"]
"""`openai`: the server takes whatever OpenAI takes. `strict`: it takes only what every
server of the Responses API takes. `auto`: its address says which."""

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")
_AROUND_KEYS = (
    " \t\r\n\"'`\N{LEFT DOUBLE QUOTATION MARK}\N{RIGHT DOUBLE QUOTATION MARK}"
)
_SCHEME = "bearer "


def bare_key(text: str) -> str:
    """Return a key without what is copied with it: quotes, and `Bearer` of a header."""
    key = text.strip(_AROUND_KEYS)
    if key.lower().startswith(_SCHEME):
        key = key[len(_SCHEME) :].strip(_AROUND_KEYS)
    return key


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key of a server; an address can contain a password.

    An empty `ca_bundle` (a file) or `proxy` means what the system has set. A `token` is
    sent instead of the key, always as a bearer's; it is no part of the account.

    What a server is taken for, by its address and its `compatibility`:

                         is_openai    has_own_services    serves_openai    is_gateway
        OpenAI           yes          yes                 yes              no
        OpenAI, strict   no           no                  yes              no
        Azure            no           yes                 yes              no
        Azure, strict    no           no                  yes              no
        other            no           no                  no               yes
        other, openai    yes          yes                 yes              yes
        other, strict    no           no                  no               yes
    """

    base_url: str = field(repr=False)
    api_key: str = field(repr=False)
    organization: str = ""
    project: str = ""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    verify_ssl: bool = True
    ca_bundle: str = ""
    proxy: str = field(default="", repr=False)
    compatibility: Compatibility = "auto"
    token: str = field(default="", repr=False)

    def url(self, path: str) -> str:
        """Return the address of `path`, with Azure's `api-version`.

        Raises InvalidRequest.
        """
        address = _normalize_base_url(self.base_url) + path
        query = urlsplit(self.base_url.strip()).query
        if not query:
            return address
        separator = "&" if "?" in path else "?"
        return f"{address}{separator}{query}"

    @property
    def host(self) -> str:
        """The server's name; raises the same error as `url`."""
        return urlsplit(_normalize_base_url(self.base_url)).hostname or ""

    def name_server(self, message: str) -> str:
        """Return the `message` about OpenAI as one about this server."""
        # First, because `host` raises for an invalid address, and the message about
        # such an address has to pass.
        if "OpenAI" not in message or self._has_openai_host:
            return message
        return message.replace("OpenAI", self.host)

    @property
    def _has_openai_host(self) -> bool:
        return f".{self.host}".endswith(".openai.com")

    @property
    def sends_token_alone(self) -> bool:
        """Whether a token of this server or of whoever asks is sent, and no key."""
        return bool(self.token) and not self.api_key.strip()

    @property
    def is_strict(self) -> bool:
        """Whether requests have a form that every server accepts."""
        return self.compatibility == "strict"

    @property
    def is_openai(self) -> bool:
        """Whether it takes OpenAI's own kinds of input."""
        if self._has_openai_host and not self.is_strict:
            return True
        return self.compatibility == "openai" and not self.is_azure

    @property
    def has_own_services(self) -> bool:
        """Whether it has web search, containers and files, as OpenAI and Azure do."""
        return self.is_openai or (self.is_azure and not self.is_strict)

    @property
    def serves_openai(self) -> bool:
        """Whether its models and prices are OpenAI's, as far as anybody has said."""
        return self.is_openai or not self.is_gateway

    @property
    def is_gateway(self) -> bool:
        """Whether it is neither OpenAI's nor Azure's."""
        return not (self._has_openai_host or self.is_azure)

    @property
    def is_azure(self) -> bool:
        """Whether it is one of Azure."""
        return self.host.endswith(_AZURE_HOSTS)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no text that the server sends back.

        Some addresses have a key in their query, next to Azure's version.
        """
        headers = self.extra_headers.values()
        parts = url_parts(self.base_url.strip())
        query = parse_qsl(parts.query) if parts else ()
        keys = [value for name, value in query if name != "api-version"]
        return connection_secrets(headers, self.proxy, self.api_key, self.token, *keys)

    def account(self) -> str:
        """Return a name of the account, without the key."""
        identity = f"{self.base_url}\n{self.organization}\n{self.api_key}"
        return hex_digest(identity)

    def reasoning_scope_id(self) -> str:
        """Return an id of those who can read encrypted reasoning, without the key.

        Keys of one organization can read each other's.
        """
        identity = f"{self.host}\n{self.organization or self.api_key.strip()}"
        return hex_digest(identity)[:16]

    def headers(self) -> dict[str, str]:
        """Return the headers of a request; `extra_headers` have priority."""
        key = self.api_key.strip()
        headers: dict[str, str] = {}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        elif self.is_azure:
            headers["api-key"] = key
        else:
            headers["Authorization"] = f"Bearer {key}"
        headers["Content-Type"] = "application/json"
        if self.organization:
            headers["OpenAI-Organization"] = self.organization
        if self.project:
            headers["OpenAI-Project"] = self.project
        replaced = {name.lower() for name in self.extra_headers}
        for name in list(headers):
            if name.lower() in replaced:
                del headers[name]
        return {**headers, **self.extra_headers}


@lru_cache(maxsize=32)  # an answer asks for the server's name about twenty times
def _normalize_base_url(text: str) -> str:
    """Return an address that paths like `/responses` can be added to.

    Administrators leave out the path, or write a slash after it, or the whole address
    of the Responses API. Raises InvalidSetting.
    """
    parts = url_parts(text.strip() or DEFAULT_BASE_URL)
    if parts is None:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server is not an http or https address.",
        )
    if "@" in parts.netloc:
        raise InvalidSetting(
            "base_url",
            "The address of the model's server contains a user name or a password.",
        )
    stated_path = parts.path.rstrip("/")
    path = stated_path.removesuffix("/responses").rstrip("/")
    if not stated_path:
        is_azure = str(parts.hostname).endswith(_AZURE_HOSTS)
        path = "/openai/v1" if is_azure else "/v1"
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


def connection_secrets(
    headers: Iterable[str], proxy: str, *keys: str
) -> tuple[str, ...]:
    """Return the texts that must be in no line of a log."""
    secrets = [*keys, proxy]
    parts = url_parts(proxy.strip())
    if parts and parts.password:
        secrets.append(unquote(parts.password))
    for value in headers:
        secrets += header_secrets(value)
    return tuple(secret for secret in secrets if secret.strip())


def url_parts(text: str) -> SplitResult | None:
    """Return the parts of an http or https address, or None for anything else.

    Brackets without an address and a port that is no number are a ValueError.
    """
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return None
    return parts


def proxy_for(endpoint: Endpoint, url: str) -> str | None:
    """Return the proxy on the way to `url`, or None; its scheme may be left out."""
    stated = endpoint.proxy.strip()
    proxy = stated
    if not stated:
        # Each call reads the whole environment. If it names no proxy, one is enough.
        proxies = getproxies()
        parts = urlsplit(url)
        proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
        if not proxy:
            return None
        if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
            return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is not None:
        return address
    if stated:
        raise InvalidSetting("proxy", "The proxy is not an http or https address.")
    raise InvalidRequest(
        "The proxy that this server's environment names is not an http or https "
        "address. An administrator has to correct the environment.",
        remedy="setup",
    )


# --------------------------------------------------------------------------------------
# openai_responses.transport.entra
#
# Tokens of Microsoft Entra ID, for servers of Azure that take no key.
#
# The package `azure-identity` finds out who this server is: a managed identity, a workload
# identity, the variables `AZURE_CLIENT_ID`, `AZURE_TENANT_ID` and `AZURE_CLIENT_SECRET`,
# or a login of Azure's programs. It is looked up when it is used.
# The sign-in of another cloud is the environment's `AZURE_AUTHORITY_HOST`.
# --------------------------------------------------------------------------------------


_RENEWED_BEFORE = 300
"""Seconds before a token's end from which on another is asked for."""
_PAUSE_AFTER_FAILURE = 30
"""Seconds."""
_MAX_REASON_CHARACTERS = 300


class _EntraToken(NamedTuple):
    """A token, and how long it holds."""

    text: str = ""
    end: int = 0
    """Its last second."""
    last_moment: float = 0.0
    """The same, by a clock that nobody sets back."""

    @property
    def seconds_left(self) -> float:
        """How long it still holds, by the clock that says less."""
        left = self.last_moment - monotonic_seconds()
        return min(left, self.end - unix_seconds())


class EntraTokens:
    """The token of each scope; one at a time is asked for, in a thread."""

    def __init__(self) -> None:
        self._credential: Any = None
        self._known: dict[str, _EntraToken] = {}
        """The token of each scope."""
        self._next_try = 0
        """From when on a token that still holds may be renewed."""
        self._failure = ("", "")
        """The last one: its scope, and the reason."""
        self._lock = asyncio.Lock()

    async def token(self, scope: str) -> str:
        """Return a token that still holds for some minutes; raises InvalidRequest.

        If there is no other, the one that ends is used until then. As long as it holds,
        one request at a time waits for the next one, and none for a while after a
        failure, because Entra may take long to answer nothing.
        """
        token = self._known.get(scope) or _EntraToken()
        is_asked = self._lock.locked() or unix_seconds() < self._next_try
        if is_asked and token.seconds_left > 0:
            return token.text
        earlier = self._failure
        async with self._lock:
            token = self._known.get(scope) or _EntraToken()
            if token.seconds_left < _RENEWED_BEFORE:
                # Who waited while another request failed does not wait once more.
                failed_scope, reason = self._failure
                if self._failure is not earlier and failed_scope == scope:
                    raise InvalidRequest(reason)
                try:
                    text, end = await asyncio.to_thread(self._ask, scope)
                    # The package gives the same one again until it has ended by the clock
                    # of the day: it holds no longer than was known of it.
                    if text != token.text:
                        last_moment = monotonic_seconds() + end - unix_seconds()
                        token = _EntraToken(text, end, last_moment)
                except InvalidRequest as error:
                    if token.seconds_left <= 0:
                        self._failure = (scope, str(error))
                        raise
                    self._next_try = unix_seconds() + _PAUSE_AFTER_FAILURE
                for known, other in list(self._known.items()):
                    if other.seconds_left <= 0:  # of earlier settings
                        del self._known[known]
                self._known[scope] = token
        return token.text

    def _ask(self, scope: str) -> tuple[str, int]:
        """Return a token and its last second; raises InvalidRequest."""
        try:
            if self._credential is None:
                identity = import_module("azure.identity")
                self._credential = identity.DefaultAzureCredential()
            token = self._credential.get_token(scope)
        except ImportError:
            raise InvalidRequest(
                "Tokens of Microsoft Entra ID need the package azure-identity, which "
                "this server does not have. An administrator has to install it, or to "
                "choose another kind of authentication."
            ) from None
        except Exception as error:  # whatever the package and its network raise
            reason = redact(" ".join(str(error).split()))[:_MAX_REASON_CHARACTERS]
            raise InvalidRequest(
                "Microsoft Entra ID issued no token for this server. An administrator "
                f"has to check this server's identity.{REASON_GIVEN}{reason}"
            ) from None
        return str(token.token), int(token.expires_on)


def entra_scope(endpoint: Endpoint) -> str:
    """Return what a token for a server of Azure is asked for, by its cloud."""
    cloud = "com"
    if endpoint.is_azure:
        cloud = endpoint.host.rpartition(".azure.")[2]
    return f"https://cognitiveservices.azure.{cloud}/.default"


# --------------------------------------------------------------------------------------
# openai_responses.causes
#
# What an error of the API is about, as a word: its own code, or one of ours.
#
# Other servers, and some of OpenAI's refusals, have no code, one for many causes, or a
# wrong one; then a status, a place in the request or certain words tell the cause. The
# message for each word is in `endings`.
# --------------------------------------------------------------------------------------


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
FORBIDDEN_PROVIDERS = "forbidden_providers"
"""Our word for an account whose own settings leave no provider of a model."""
TOO_MANY_TOOLS = "too_many_tools"
"""Our word: the API's code for it is that of any list that is too long."""
NO_MEMORY = "out_of_memory"
"""Our word for a server whose computer has no room for the model."""
LOADING_MODEL = "loading_model"
"""Our word for what llama.cpp says until it can answer."""
STREAM_CUT = "stream_cut"
"""Our word for a stream that broke between a gateway and the server behind it."""
_CUT_CODES = frozenset(
    {
        "stream_read_error",  # sub2api (its issue 6506)
        "upstream_disconnect",  # Kilo's gateway, as the type
        "upstream_stream_interrupted",  # grok2api, and others
        "upstream_stream_incomplete",
        "provider_disconnected",  # macprovider
        "stream_truncated",
    }
)
"""Codes and types of gateways for that."""
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
    NO_MEMORY,
    TOO_MANY_TOOLS,
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
        "insufficient_credits",  # Helicone
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of such codes, also of those that nobody listed."""

FILE_CODES = frozenset({"unsupported_file"})
IMAGE_CODES = FILE_CODES | frozenset(
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


def is_final(error: ApiError) -> bool:
    """Say whether neither a second attempt nor a repair of the request helps."""
    return any(code in FINAL_CODES for code in _list_codes(error))


def has_no_credit(error: ApiError) -> bool:
    """Say whether an account is empty, which no wait fills."""
    code = error.code or ""
    is_known = code.endswith(_NO_CREDIT_SUFFIXES) or error.is_any_of(NO_CREDIT_CODES)
    return is_known or find_certain_cause(error) == NO_CREDIT


_REJECTED_CODE = re.compile(
    r"(?:bad|invalid|unknown|unsupported|missing)[_-]?(?:required_)?"
    r"(?:request|argument|parameter|type|value)(?:_?error|_value)?",
    re.IGNORECASE,
)
"""Codes and types that say that the request itself cannot be answered, at OpenAI and at
others (`BadRequestError` at vLLM, `InvalidParameter` at DashScope and Volcengine)."""
_SAYS_REJECTED = re.compile(r"Invalid (?:argument|parameter|request)", re.IGNORECASE)
"""The words for it without a code: xAI's of a schema."""


def failure_words(error: ApiError) -> list[str]:
    """Return the words that a message can be found by without a status."""
    words = [*_list_codes(error), _find_attachment(error)]
    names = (error.code or "", error.type or "")
    if any(map(_REJECTED_CODE.fullmatch, names)) or _SAYS_REJECTED.match(error.message):
        words.append(REJECTED)
    return words


_FIREWALL_STATUSES = (403, 429)
"""A page with one of these comes from a firewall, which knows no key; those from 500 on
come from a gateway."""
_TOO_SLOW = (504, 524)
"""Statuses of a gateway, the second one Cloudflare's, that waited for a server."""
_ABOUT_KEYS = (MISSING_SCOPE, DENIED_MODEL, UNREAD_REASONING, *NO_CREDIT_CODES)
_ABOUT_A_MODEL = re.compile(r"\b(model|deployment)\b", re.IGNORECASE)


def refusal_words(status: int, error: ApiError, *, is_streamed: bool) -> list[str]:
    """Return the words that a message can be found by, the most certain first.

    An error that `is_streamed` came from a Responses API.
    """
    if status < 400:
        return ["3"]
    if error.is_relayed and error.status:  # of the server behind a gateway
        status = error.status
    own_word = str(status)
    if error.is_page:
        page = FIREWALL_PAGE if status < 500 else GATEWAY_PAGE
        is_gateways = status >= 500 and status not in _TOO_SLOW
        is_uncertain = status in _FIREWALL_STATUSES or is_gateways
        return [page] if is_uncertain else [own_word, page]
    codes = [code for code in _list_codes(error) if code != own_word]
    if status in (401, 403) and error.param == "model":
        # LiteLLM: type `key_model_access_denied`, and others for teams and users
        # (BerriAI/litellm 39660).
        codes.append(DENIED_MODEL)
    if status == 401:
        # Only what is about keys, or is certain: a type like `server_error` tells nothing.
        about_keys = {error.code, find_certain_cause(error), *_ABOUT_KEYS}
        return [*(code for code in codes if code in about_keys), own_word]
    words = [*codes, _find_attachment(error)]
    if error.param in STRICT_LACKS:
        words.append(REFUSED_SAFEGUARD)
    if status in (400, 422) and error.param == "model":
        words.append("model_not_found")
    if status == 404:
        # Gateways send no code: "The model `x` does not exist"; Azure: "The API
        # deployment for this resource does not exist".
        if _ABOUT_A_MODEL.search(error.message):
            words.append("model_not_found")
        if is_streamed or error.is_relayed or not is_about_address(error):
            own_word = ""
    words.append(own_word)
    if status >= 500:
        words.append("5")
    return words


NO_ROUTE = "No endpoints found"
"""What OpenRouter says, with a status of 404, of the providers that are up now; others may
be tomorrow."""
_UNKNOWN_ADDRESS = "Invalid URL"
"""How OpenAI's 404 for an unknown path begins; that of an unknown response has the same
type and names no place, either."""


def is_about_address(error: ApiError) -> bool:
    """Say whether a 404 may mean that there is no Responses API."""
    if error.param or error.names_a_place or error.message.startswith(NO_ROUTE):
        return False
    is_of_the_api = error.type == "invalid_request_error"
    return not is_of_the_api or error.message.startswith(_UNKNOWN_ADDRESS)


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


_PHRASES = (
    (r"\bmissing scopes?:|insufficient permissions for this operation", MISSING_SCOPE),
    (r"country, region, or territory not supported", UNSUPPORTED_COUNTRY),
    (r"\borganization must be verified to", UNVERIFIED),
    (
        # LiteLLM's `ContextWindowExceededError`; of more than 16,384 items, or of a text
        # above 10,485,760 characters: "Invalid 'input': array too long".
        r"context (size|window|length)|ContextWindow"
        # Z.AI, Anthropic, Ollama, Bedrock; xAI, vLLM; Google; Kimi; Copilot; TGI, Z.AI.
        r"|(prompt|input) (is )?too long|maximum (prompt|model|input) length"
        r"|exceeds the maximum number of tokens|exceeded model token limit"
        r"|prompt token count of \d+ exceeds|prompt tokens \(\d+\) exceed"
        r"|`inputs` tokens \+ `max_new_tokens` must|prompt exceeds max length"
        # Anthropic, of input and output together; DashScope; TGI.
        r"|exceeds? context limit|range of input length should be"
        r"|`inputs` must have less than"
        # Volcengine; Cohere; gateways (anomalyco/opencode 27519, cita-777/metapi 582).
        r"|exceed max message tokens|too many tokens: size limit exceeded"
        r"|tokens in request more than max tokens|input token limit is \d"
        r"|'input([^\s']*(content|text))?': (array|string) too long",
        "context_length_exceeded",
    ),
    (
        r"\bmodel\b.{0,200}(does not exist|not found)"
        # Google, also behind a gateway that streams it
        r"|\bmodels/\S{1,100} is not found for API version"
        # OpenClaw quotes the name of the field.
        r"|invalid [`'\"]?model\b"
        # Snowflake, GitHub; Cloudflare; Azure; Codex's own server.
        r"|\bunknown model\b|\bno such model\b|does not work with the specified model"
        r"|model is not supported when using Codex"
        # DeepSeek; DashScope; OpenRouter.
        r"|\bsupported API model names are\b"
        r"|\bmodel [`'\"]?[\w./:-]{1,100}[`'\"]? is not supported\.?\Z"
        r"|\bunsupported model\b|is not a valid model ID\b"
        # OpenRouter; new-api; a model that only has another API, at OpenAI, Bedrock,
        # Databricks, Copilot and Ollama; also other than the one of a gateway.
        r"|no endpoints found for|no available channel for model"
        r"|not (?:supported )?in (?:the )?v1/(?:responses|chat/completions)"
        r"|support the '\S{0,20}/(?:responses|chat/completions)' API"
        r"|v1/responses is not supported for"
        r"|\bmodel( \S{1,100})? (is|does) not support(ed by)?( the)? Responses API"
        r"|not accessible via the /responses|does not support chat\b"
        # Bedrock
        r"|model identifier is invalid|with on-demand throughput isn.t supported"
        # xAI and OpenRouter, of a model that only draws.
        r"|is an image model and is therefore not available"
        r"|support the requested output modalities"
        # NVIDIA, which names a model's server and the account in place of the model.
        r"|\bhas reached its end of life\b|\AFunction '[\w-]+': Not found for account",
        "model_not_found",
    ),
    (
        # DeepSeek, Z.AI and Kimi; Anthropic; xAI, with a status of 403 or 429.
        r"insufficient (balance|credits|funds)|credit balance is too low"
        r"|doesn't have any credits|used all available credits"
        # Fireworks, with a status of 412; Cloudflare.
        r"|reaching the monthly spending limit|used up your daily free allocation"
        # OpenRouter, of a day
        r"|free-models-per-day"
        # SiliconFlow; Ollama's cloud, of hours or a week.
        r"|balance is insufficient|reached your (\w+ )?usage limit",
        NO_CREDIT,
    ),
    # Azure's API Management, of a quota that its administrator has set
    (r"\bquota will be replenished in\b", "usage_limit_reached"),
    (r"RateLimitError", "rate_limit_exceeded"),
    # LiteLLM; Azure, of other services
    (
        r"ContentPolicyViolationError|triggering Azure OpenAI's content management",
        CONTENT_FILTER,
    ),
    # Codex's own server, in a stream
    (r"\bmodel is at capacity\b", "server_is_overloaded"),
)
"""What other servers say instead of a code, and LiteLLM of the servers behind it."""

_CERTAIN_PHRASES = (
    (
        # "Request too large for ... Limit 1, Requested 30." (recorded in a stream)
        r"request too large for .{1,500}"
        r"\blimit (?P<most>\d{1,12}), requested (?P<asked>\d{1,12})",
        REQUEST_TOO_LARGE,
    ),
    # OpenAI; Google, with a status of 400; Bedrock, AWS and Google, with 403
    (
        r"\A(Incorrect API key provided|API key not valid|Bearer Token has expired"
        r"|The security token included in the request is"
        r"|Your API key was reported as leaked)",
        WRONG_KEY,
    ),
    # OpenRouter
    (r"\ANo endpoints .{1,80} data policy\b", FORBIDDEN_PROVIDERS),
    # Azure, with a status of 401: a role of Entra ID
    (r"lacks the required data action", MISSING_SCOPE),
    (r"\AAccess denied due to Virtual Network/Firewall rules", FIREWALL_PAGE),
    (
        # Azure, of a dated version in the address
        r"Responses API is enabled only for api-version|\AAPI version not supported"
        # LM Studio (lmstudio-ai/lmstudio-bug-tracker 618)
        r"|\AUnexpected endpoint or method\."
        # Shepherd Model Gateway (1.13.0), in front of Anthropic, with a status of 501
        r"|\AResponses endpoint not implemented\Z",
        NO_RESPONSES_API,
    ),
    # Bedrock, as a 403
    (r"\AYou don't have access to the model with the specified model", DENIED_MODEL),
    # As a 429: xAI (continuedev/continue 10373); Z.AI, behind a gateway (vercel/ai 9290). As
    # a 401 or 403: OpenCode's gateway (anomalyco/opencode 37161); OpenRouter, of a key
    # (gptme/gptme 1449); one-api
    (
        r"\AYour team \S{1,64} has either used all available credits or reached its"
        r"|\AInsufficient (balance|credits|funds)\b"
        r"|\ANo payment method\b|\AKey limit exceeded \(|\A该令牌额度已用尽",
        NO_CREDIT,
    ),
    (r"\ALoading model\b", LOADING_MODEL),
    # CLIProxyAPI, with the type of a wrong request (its issues 5931, 2986), also through
    # LiteLLM (earendil-works/pi 9736); sub2api (its issue 2250), LLM-Rosetta (its issue
    # 481); LiteLLM (1.106.2, 1.110.2), and aiohttp, which it quotes
    (
        r"\A(?:litellm\.\w{1,40}: )?(?:stream error: |empty_stream: )?"
        r"(?:(?:upstream )?stream (?:disconnected|closed|ended) (?:before|without)\b"
        r"|\S{1,40} closed the responses stream before any terminal event"
        r"|Response payload is not completed\b)",
        STREAM_CUT,
    ),
    # OpenAI; Groq
    (
        r"\AInvalid 'tools': array too long|\A'tools' : maximum number of items",
        TOO_MANY_TOOLS,
    ),
    # llama.cpp and vLLM, of a call that their model wrote, as a 500
    (
        r"\AFailed to parse input at pos \d|\Aunexpected tokens remaining in message",
        "output_parse_failed",
    ),
    # llama.cpp, of a chat that its model's template does not take, as a 500
    (r"\bJinja Exception: ", REJECTED),
    # As a 429, of trouble that all their users have: OpenRouter, of its own key at a
    # provider; Azure; Workers AI; new-api; Novita; Z.AI; Google. As a 502 of gateways, or in
    # a stream: Codex's own server (openai/codex 43368, 44441), xAI
    (
        r"\bis temporarily rate-limited upstream\b|system is currently experiencing high "
        r"demand\b|\bcapacity temporarily exceeded\b|上游负载已饱和"
        r"|\A(?:server overload\b|The service may be temporarily overloaded\b"
        r"|No capacity available for model\b|We're currently experiencing high demand\b"
        r"|(?:Our servers are|Selected model is|The model is)(?: currently)? "
        r"(?:overloaded|at capacity)\b)",
        "server_is_overloaded",
    ),
    # Ollama, LM Studio
    (
        r"\bmodel requires more system memory\b|\binsufficient system resources",
        NO_MEMORY,
    ),
    (
        # 403, code "The caller does not have permission to execute the specified
        # operation" (theopenco/llmgateway 1785)
        r"\AContent violates usage guidelines"
        # Anthropic, as a 400 (anthropics/claude-code 50008)
        r"|\AOutput blocked by content filtering policy"
        # DeepSeek, MiniMax, Moonshot: with the code of any refusal, or with none
        r"|\A(Content Exists Risk\b|(input|output) new_sensitive\b)"
        r"|\brequest was rejected because it was considered high risk\b"
        # LiteLLM's guardrails (`guardrail_hooks`), as a 400
        r"|\AViolated (.{1,40} )?(guardrail|moderation|content safety|tool) policy",
        CONTENT_FILTER,
    ),
    # OpenAI's 403 and 404 of an unverified organization can have `model_not_found`,
    # its 400 has `unsupported_value` (openai/codex 1982, continuedev/continue 9948)
    (r"\AYour organization must be verified to", UNVERIFIED),
)
"""Words that say more than the code: xAI's of a wrong key is `invalid-argument`."""


def find_certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says.

    A policy that is not known here is one all the same.
    """
    code = error.code or ""
    if code.endswith(_POLICY_SUFFIXES) and code not in SAFETY_STOPS:
        return "invalid_prompt"
    if error.is_any_of(_CUT_CODES):
        return STREAM_CUT
    text = error.beginning
    for phrase, code in _CERTAIN_PHRASES:
        match = re.search(phrase, text, re.IGNORECASE | re.DOTALL)
        numbers = match.groupdict() if match else {}
        # Others use up a minute's limit, too: then a small request may pass later.
        is_small = bool(numbers) and int(numbers["asked"]) <= int(numbers["most"])
        if match and not is_small:
            return code
    return None


def _list_codes(error: ApiError) -> list[str]:
    """Return the codes of an error, the most certain first."""
    text = error.beginning
    codes = [find_certain_cause(error), error.code, error.type]
    for phrase, code in _PHRASES:
        if re.search(phrase, text, re.IGNORECASE):
            codes.append(code)
    codes.sort(key=lambda code: code in CODES_FOR_ANYTHING)  # which say the least
    # "3" and "5" are words for many statuses, which no server sends.
    return [code for code in codes if code and len(code) > 1]


# --------------------------------------------------------------------------------------
# openai_responses.models.facts
#
# What is known about a model: what it accepts, its limits and its prices.
# --------------------------------------------------------------------------------------


class ModelPrices(NamedTuple):
    """US dollars for a million tokens, and how often they are paid at other tiers."""

    input: float | None
    cached: float | None
    cache_write: float | None
    output: float | None
    fast: float | None = None
    ultrafast: float | None = None
    ultrafast_until: str | None = None
    """The last day of `ultrafast`, an ISO date; then `ultrafast_later` holds."""
    ultrafast_later: float | None = None


class ImagePrices(NamedTuple):
    """US dollars for a million tokens of a model that draws."""

    text: float
    cached_text: float
    image: float
    cached_image: float
    output: float


class ModelFacts(NamedTuple):
    """What a model accepts, its limits and its prices; None where unknown.

    The defaults are for gpt-4 and for ids that say nothing (another vendor, an Azure
    deployment): a model that does not reason refuses `reasoning` and its `include` with
    a 400, and a reasoning model works without them. So they are sent only if an effort
    is asked for.
    """

    id: str = ""
    """The id in the catalog; empty if the facts are assumed."""
    reasoning: bool = False
    efforts: tuple[str, ...] = ()
    """Lowest first; empty: none, or unknown."""
    default_effort: str | None = None
    """What the API uses when none is sent."""
    sampling: str = "always"
    """Or "with_none", "never": temperature, top_p, logprobs."""
    summary: bool = False
    verbosity: bool = False
    functions: bool = True
    hosted: bool = False
    """It takes the tools that OpenAI itself runs."""
    lacks: tuple[str, ...] = ()
    """Types of such tools that it does not take."""
    vision: bool = True
    appends_tools: bool = False
    """It takes `additional_tools` items, and `allowed_tools` that name their tools."""
    appends_configuration: bool = False
    """It takes `configuration_update` items."""
    pro_mode: bool = False
    """It takes the `reasoning.mode` pro."""
    all_turns: bool = False
    """It takes the `reasoning.context` all_turns."""
    diagnostics: bool = False
    """It says why a prompt was not found in the cache."""
    long_prices: bool = False
    """Above 272,000 tokens of input the whole request costs more."""
    regional: bool = False
    """It costs 10 % more at OpenAI's hosts of a region."""
    context_window: int | None = None
    """The tokens of input and output together."""
    max_input_tokens: int | None = None
    """The tokens of input, where they are fewer than those of the window."""
    max_output_tokens: int | None = None
    shutdown: str | None = None
    """The day on which OpenAI switches the model off, an ISO date."""
    successor: str | None = None
    prices: ModelPrices | None = None
    search_fee: float | None = None
    """US dollars for a web search, where it differs from that of other models."""
    known_family: bool = True
    """False: the name says nothing, the facts are cautious."""


# o3, o4-mini
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_GPT_VERSION = re.compile(r"gpt-(?P<major>\d)(?:\.(?P<minor>\d{1,2}))?(?!\d)")
"""One digit, because Azure spells gpt-3.5 as gpt-35."""


def read_gpt_version(model_id: str) -> tuple[int, int] | None:
    """Return the version of a gpt, like (5, 4) for `gpt-5.4-mini`; else None."""
    match = _GPT_VERSION.match(model_id)
    if match is None:
        return None
    return int(match["major"]), int(match["minor"] or 0)


def assumed_facts(model_id: str) -> ModelFacts:
    """Return what is assumed of a model as long as only its id is known.

    What all models have from a version on, newer ones have, too
    (docs/reference/responses-api.md, "Unknown models"). A deployment can have any name:
    only its administrator knows its facts.
    """
    if _O_SERIES_ID.match(model_id):
        return ModelFacts(
            reasoning=True,
            efforts=("low", "medium", "high"),
            sampling="never",
            summary=True,
            hosted=True,
        )
    version = read_gpt_version(model_id)
    if version is None:
        return ModelFacts(hosted=True, known_family=False)
    if version < (5, 0):
        return ModelFacts()
    return ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=version >= (5, 4),
        long_prices=version >= (5, 4),
        regional=version >= (5, 4),
        appends_tools=version >= (5, 6),
        diagnostics=version >= (5, 6),
        appends_configuration=version >= (6, 0),
    )


# --------------------------------------------------------------------------------------
# openai_responses.models.catalog
#
# The catalog of models; generated, do not edit.
#
# Source: `scripts/catalog/models.json`, which names the source and the date of each fact.
# Edit it and run `python scripts/catalog/generate.py`; with `--check` it reports whether
# this module is current, as do the tests.
#
# Facts as of 2026-11-28. Prices are US dollars for a million tokens at the standard tier.
# A fact that is not stated is the one that is assumed of the id, else the default of
# ModelFacts. A dated snapshot has an entry only where it differs from its model.
# --------------------------------------------------------------------------------------


CATALOG_MODELS = {
    "chat-latest": ModelFacts(
        reasoning=True,
        efforts=("medium",),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=30),
    ),
    "chatgpt-image-latest": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-4.1": ModelFacts(
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=2, cached=0.5, cache_write=None, output=8, fast=1.75),
        search_fee=0.025,
    ),
    "gpt-4.1-mini": ModelFacts(
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.4, cached=0.1, cache_write=None, output=1.6),
        search_fee=0.025,
    ),
    "gpt-4o": ModelFacts(
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=2.5, cached=1.25, cache_write=None, output=10),
    ),
    "gpt-4o-mini": ModelFacts(
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.15, cached=0.075, cache_write=None, output=0.6),
        search_fee=0.025,
    ),
    "gpt-5": assumed_facts("gpt-5")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25, cached=0.125, cache_write=None, output=10, fast=2
        ),
    ),
    "gpt-5-mini": assumed_facts("gpt-5-mini")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-terra",
        prices=ModelPrices(
            input=0.25, cached=0.025, cache_write=None, output=2, fast=1.8
        ),
    ),
    "gpt-5-nano": assumed_facts("gpt-5-nano")._replace(
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        lacks=("web_search",),
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.05, cached=0.005, cache_write=None, output=0.4),
    ),
    "gpt-5-pro": assumed_facts("gpt-5-pro")._replace(
        efforts=("high",),
        default_effort="high",
        lacks=("code_interpreter",),
        context_window=400_000,
        max_output_tokens=272_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(input=15, cached=None, cache_write=None, output=120),
    ),
    "gpt-5.1": assumed_facts("gpt-5.1")._replace(
        efforts=("none", "low", "medium", "high"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25, cached=0.125, cache_write=None, output=10, fast=2
        ),
    ),
    "gpt-5.2": assumed_facts("gpt-5.2")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1.75, cached=0.175, cache_write=None, output=14, fast=2
        ),
    ),
    "gpt-5.2-pro": assumed_facts("gpt-5.2-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=21, cached=None, cache_write=None, output=168),
    ),
    "gpt-5.3-codex": assumed_facts("gpt-5.3-codex")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        verbosity=False,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(input=1.75, cached=0.175, cache_write=None, output=14),
    ),
    "gpt-5.4": assumed_facts("gpt-5.4")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2.5, cached=0.25, cache_write=None, output=15, fast=2),
    ),
    "gpt-5.4-mini": assumed_facts("gpt-5.4-mini")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.75, cached=0.075, cache_write=None, output=4.5, fast=2
        ),
    ),
    "gpt-5.4-nano": assumed_facts("gpt-5.4-nano")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6-luna",
        prices=ModelPrices(input=0.2, cached=0.02, cache_write=None, output=1.25),
    ),
    "gpt-5.4-pro": assumed_facts("gpt-5.4-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=30, cached=None, cache_write=None, output=180),
    ),
    "gpt-5.5": assumed_facts("gpt-5.5")._replace(
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="medium",
        sampling="with_none",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=30, fast=2.5),
    ),
    "gpt-5.5-pro": assumed_facts("gpt-5.5-pro")._replace(
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=30, cached=None, cache_write=None, output=180),
    ),
    "gpt-5.6-cyber": assumed_facts("gpt-5.6-cyber")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=12.5, cached=1.25, cache_write=15.625, output=75),
    ),
    "gpt-5.6-luna": assumed_facts("gpt-5.6-luna")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.2, cached=0.02, cache_write=0.25, output=1.2, fast=2
        ),
    ),
    "gpt-5.6-sol": assumed_facts("gpt-5.6-sol")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=4, cached=0.4, cache_write=5, output=20, fast=2),
    ),
    "gpt-5.6-terra": assumed_facts("gpt-5.6-terra")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2, cached=0.2, cache_write=2.5, output=12, fast=2),
    ),
    "gpt-6-astra": assumed_facts("gpt-6-astra")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10, cached=1, cache_write=12.5, output=50, fast=2, ultrafast=6
        ),
    ),
    "gpt-6-astra-law": assumed_facts("gpt-6-astra-law")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=10, cached=1, cache_write=None, output=50),
    ),
    "gpt-6-cyber": assumed_facts("gpt-6-cyber")._replace(
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=20, cached=2, cache_write=25, output=100),
    ),
    "gpt-6-luna": assumed_facts("gpt-6-luna")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.1, cached=0.01, cache_write=0.125, output=0.5, fast=2
        ),
    ),
    "gpt-6-rosalind": assumed_facts("gpt-6-rosalind")._replace(
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=15, cached=1.5, cache_write=18.75, output=75),
    ),
    "gpt-6-sol": assumed_facts("gpt-6-sol")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=2, cached=0.2, cache_write=2.5, output=10, fast=2),
    ),
    "gpt-6.1-sol": assumed_facts("gpt-6.1-sol")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2, cached=0.1, cache_write=2.5, output=10, fast=2, ultrafast=6
        ),
    ),
    "gpt-6.1-terra": assumed_facts("gpt-6.1-terra")._replace(
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        pro_mode=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=1, cached=0.05, cache_write=1.25, output=5, fast=2),
    ),
    "gpt-6.2-astra": assumed_facts("gpt-6.2-astra")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=8, cached=0.4, cache_write=10, output=40, fast=2),
    ),
    "gpt-6.2-astra-law": assumed_facts("gpt-6.2-astra-law")._replace(),
    "gpt-6.2-sol": assumed_facts("gpt-6.2-sol")._replace(
        efforts=("low", "medium", "high", "xhigh", "max"),
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.1,
            cache_write=2.5,
            output=10,
            fast=2,
            ultrafast=3,
            ultrafast_until="2027-02-28",
            ultrafast_later=6,
        ),
    ),
    "gpt-daybreak-blue-latest": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=1_050_000,
        max_input_tokens=922_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=4, cached=0.4, cache_write=5, output=20),
    ),
    "gpt-daybreak-red-latest": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=400_000,
        max_input_tokens=272_000,
        max_output_tokens=128_000,
        prices=ModelPrices(input=12.5, cached=1.25, cache_write=15.625, output=75),
    ),
    "gpt-image-1-mini": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-image-1.5": ModelFacts(
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    "gpt-rosalind-research": ModelFacts(
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        prices=ModelPrices(input=5, cached=0.5, cache_write=None, output=25),
    ),
    "o3": assumed_facts("o3")._replace(
        default_effort="medium",
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(input=2, cached=0.5, cache_write=None, output=8),
    ),
    "o3-pro": assumed_facts("o3-pro")._replace(
        default_effort="medium",
        lacks=("code_interpreter",),
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(input=20, cached=None, cache_write=None, output=80),
    ),
}
"""What is known of each model, by its id."""

CATALOG_IMAGE_PRICES = {
    "chatgpt-image-latest": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=32
    ),
    "gpt-image-1-mini": ImagePrices(
        text=2, cached_text=0.2, image=2.5, cached_image=0.25, output=8
    ),
    "gpt-image-1.5": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=32
    ),
    "gpt-image-2": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.5-flare": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.5-sunburst": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.6-flare": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
    "gpt-image-2.6-sunburst": ImagePrices(
        text=5, cached_text=1.25, image=8, cached_image=2, output=30
    ),
}
"""By the models that draw pictures."""

CATALOG_SUCCESSORS = {
    "chatgpt-4o-latest": "gpt-5.5",
    "codex-mini-latest": "gpt-5.4-mini",
    "gpt-3.5-turbo": "gpt-5.6-terra",
    "gpt-3.5-turbo-0125": "gpt-5.6-terra",
    "gpt-3.5-turbo-1106": "gpt-5.6-terra",
    "gpt-4": "gpt-5.6-sol",
    "gpt-4-0125-preview": "gpt-5.6-sol",
    "gpt-4-0314": "gpt-5.6-sol",
    "gpt-4-0613": "gpt-5.6-sol",
    "gpt-4-1106-preview": "gpt-5.6-sol",
    "gpt-4-turbo": "gpt-5.6-sol",
    "gpt-4-turbo-preview": "gpt-5.6-sol",
    "gpt-4.1-nano": "gpt-5.6-luna",
    "gpt-4o-2024-05-13": "gpt-5.6-sol",
    "gpt-5-chat-latest": "gpt-5.5",
    "gpt-5-codex": "gpt-5.4",
    "gpt-5.1-chat-latest": "gpt-5.5",
    "gpt-5.1-codex": "gpt-6.1-sol",
    "gpt-5.1-codex-max": "gpt-5.4",
    "gpt-5.1-codex-mini": "gpt-5.4-mini",
    "gpt-5.2-chat-latest": "gpt-5.5",
    "gpt-5.2-codex": "gpt-5.4",
    "gpt-5.3-chat-latest": "gpt-5.5",
    "o1": "gpt-5.6-sol",
    "o1-pro": "gpt-5.6-sol-pro",
    "o3-deep-research": "gpt-5.4-pro",
    "o3-mini": "gpt-5.6-sol",
    "o4-mini": "gpt-5.6-terra",
    "o4-mini-deep-research": "gpt-5.4-pro",
}
"""Models that OpenAI has switched off, with what it recommends instead."""

CATALOG_SERVED_AS = {
    "gpt-5.6": "gpt-5.6-sol",
}
"""Ids that the API itself serves with another model.

gpt-5.6: OpenAI resolves the short id itself (openai-docs).
"""

CATALOG_ALIASES = {
    "gpt-5-auto": "gpt-6.1-sol",
}
"""Names of ours that are never sent.

gpt-5-auto: gpt-5-chat-latest, its first target, is gone; this replaces gpt-5 (openai-deprecations).
"""


# --------------------------------------------------------------------------------------
# openai_responses.models.resolve
#
# Resolves a model name to an id and to the facts about the model.
#
# The first that fits, so that a real id always has priority:
#
# 1. an id of the catalog, with or without a date at its end (the date is sent as given);
# 2. one of our names: an alias of the catalog, `gpt-5-thinking-mini`, `gpt-5.2-instant`;
# 3. one of both with an effort at its end: `o3-mini-high`, `gpt-5-thinking-minimal`;
# 4. one of these with `-pro`, in front of an effort, of a model that has the mode pro:
#    `gpt-6.1-sol-pro`, `gpt-6.1-sol-pro-high`;
# 5. one of these with `-research` at its end: `gpt-6.1-sol-research`;
# 6. any other name, with the facts of its family, or with cautious facts.
#
# Models that are described elsewhere (`overrides`) have priority over all of these.
# --------------------------------------------------------------------------------------


REASONING_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")

# gpt-5.4-2026-03-05
_SNAPSHOT_DATE = re.compile(r"-(?P<date>\d{4}-\d{2}-\d{2})$")
_THINKING_NAME = re.compile(
    r"(?P<model>gpt-\d(?:\.\d+)?)-thinking(?P<size>-mini|-nano)?$"
)
_INSTANT_NAME = re.compile(r"(?P<model>gpt-\d(?:\.\d+)?)-instant$")
# gpt-6.1-sol-pro, gpt-6.1-sol-pro-high
_PRO_NAME = re.compile(r"(?P<model>gpt-[\w.-]+)-pro(?P<effort>-[a-z]+)?$")
# openai/gpt-5.4 of OpenRouter, ft:gpt-4.1:... of OpenAI
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


CATALOG_FACTS = {
    name: CATALOG_MODELS[name]._replace(id=name) for name in CATALOG_MODELS
}
"""The facts of each model of the catalog, by id."""


class ResolvedModel(NamedTuple):
    """What a name stands for."""

    id: str
    """Sent as `model`."""
    family: str
    """Encrypted reasoning is readable inside one family."""
    effort: str | None
    """The one in the name, if any."""
    facts: ModelFacts
    name: str
    """For users."""
    pro: bool = False
    """Whether the name asks for the pro mode."""
    research: bool = False
    """Whether the name asks for research."""

    def lowest_effort(self) -> str | None:
        """Return the cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Say whether the model accepts an effort; if unknown, it may be tried."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family

    def fit_effort(self, effort: str | None) -> str | None:
        """Return an effort that is asked for as the model takes it; None for none."""
        if effort == "max" and self.facts.efforts:  # the highest of the model
            return self.facts.efforts[-1]
        return effort if effort and self.takes_effort(effort) else None


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    """Resolve any name, one of `overrides` first; an unknown one is sent as it is.

    An effort at the end of an overridden name counts if the model accepts it.
    """
    if name in overrides:
        return overrides[name]
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    in_mode = _resolve_mode(name, overrides) if len(name) <= _LONGEST_NAME else None
    if in_mode:
        return in_mode
    known = _named_model(name) or _model_with_effort(name) or (name, None)
    model_id, stated_effort = known
    shown_name = _AUTO_NAMES.get(name) or _shown_name(model_id, stated_effort)
    return ResolvedModel(
        id=model_id,
        family=_model_family(model_id),
        effort=stated_effort,
        facts=_model_facts(model_id),
        name=shown_name,
    )


_LONGEST_NAME = 200
"""Characters of a name with endings of ours: each is resolved by a call of its own."""

AUTO_MODEL = "gpt-5-auto"
_AUTO_NAMES = {AUTO_MODEL: "GPT Auto (chooses for each chat)"}
"""A name that stands for several models must not look like one of them."""
_RESEARCH = "-research"
_RESEARCH_EFFORTS = ("high", "xhigh", "max")


def _resolve_mode(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-pro` or `-research` where that is a mode and no model.

    Retired models and those of other vendors have such names, too. The effort of
    research is high if the name has none (OpenAI's guide "Web search" recommends `high`
    or `xhigh`).
    """
    if name in CATALOG_FACTS or name in CATALOG_SUCCESSORS:
        return None
    if name.endswith(_RESEARCH):
        model = resolve_model(name.removesuffix(_RESEARCH), overrides)
        if model.facts.known_family:
            effort = model.effort
            if effort not in _RESEARCH_EFFORTS and model.takes_effort("high"):
                effort = "high"
            shown = f"{model.name} Research"
            return model._replace(effort=effort, name=shown, research=True)
    match = _PRO_NAME.match(name)
    if match:
        model = resolve_model(match["model"] + (match["effort"] or ""), overrides)
        if model.facts.pro_mode:
            shown = _shown_name(f"{model.id}-pro", model.effort)
            return model._replace(name=shown, pro=True)
    return None


def takes_hosted_tool(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model takes a type of OpenAI's tools.

    Of the types that it lacks the beginnings are compared: one that lacks `web_search`
    lacks `web_search_preview`, too.
    """
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def takes_search_budget(model: ResolvedModel) -> bool:
    """Say whether a model's web search takes a `return_token_budget`.

    It is for "GPT-5+ reasoning web search runs" (OpenAI's changelog, 2026-05-11).
    """
    version = read_gpt_version(model.facts.id or model.family)
    return model.facts.reasoning and version is not None and version >= (5, 0)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    # ChatGPT's words for a model that thinks, or does not. From gpt-5.1 to 5.4 the
    # default is not to think at all.
    thinking = _THINKING_NAME.match(name)
    if thinking:
        model_id = thinking["model"] + (thinking["size"] or "")
        if model_id not in CATALOG_FACTS:
            return None
        if CATALOG_FACTS[model_id].default_effort == "none":
            return model_id, "medium"
        return model_id, None
    instant = _INSTANT_NAME.match(name)
    if instant:
        model_id = instant["model"]
        facts = CATALOG_FACTS.get(model_id)
        if facts and "none" in facts.efforts:
            return model_id, "none"
    return None


def _model_with_effort(name: str) -> tuple[str, str | None] | None:
    """Resolve a name with an effort at its end.

    gpt-5.1-codex-max was a model: a newer one of that name is not the effort max. The
    last word of a fine-tuned model is its owner's.
    """
    base, _, effort = name.rpartition("-")
    if effort not in REASONING_EFFORTS or name.startswith("ft:"):
        return None
    if base.endswith("-codex") and effort == "max":
        return None
    model_id, _ = _named_model(base) or (base, None)
    facts = _model_facts(model_id)
    is_accepted = facts.reasoning
    if facts.efforts:
        is_accepted = effort in facts.efforts
    return (model_id, effort) if is_accepted else None


def _model_family(model_id: str) -> str:
    """Return the id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    """Return the facts of an id, with or without a date, or those of its family.

    Fine-tuned models and routers have prices of their own.
    """
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    wrapped = _WRAPPED_ID.match(model_id)
    if wrapped:
        return _model_facts(wrapped[1])._replace(prices=None)
    return assumed_facts(model_id)


def successor_of(model_id: str) -> ResolvedModel | None:
    """Return what OpenAI recommends instead of a model that it has switched off."""
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_SUCCESSORS:
            return resolve_model(CATALOG_SUCCESSORS[name])
    return None


_SIZES = ("mini", "nano", "pro")


def _shown_name(model_id: str, effort: str | None) -> str:
    """Return `GPT-5.6 Sol (high)` for `gpt-5.6-sol` with effort high; other ids stay."""
    name = model_id
    notes: list[str] = []
    if read_gpt_version(model_id):
        snapshot = _SNAPSHOT_DATE.search(model_id)
        if snapshot:
            notes.append(snapshot["date"])
        _, version, *words = _SNAPSHOT_DATE.sub("", model_id).split("-")
        name = f"GPT-{version}"
        for word in words:
            if word != "latest":
                name += f" {word if word in _SIZES else word.capitalize()}"
    if effort:
        notes.append(effort)
    return f"{name} ({', '.join(notes)})" if notes else name


# --------------------------------------------------------------------------------------
# openai_responses.tool_kinds
#
# The kinds of tools that OpenAI runs, and the items that they make.
#
# `TOOL_KINDS` is the one list of them: what a caller may set, what a limit can forbid and
# what a call costs, what a request offers and what goes back follow it. What only a host
# knows is in tables of the same kinds: `TOOL_SETTINGS` of the pipe and `HOSTED_CARDS` of
# the page (cards). tests/test_tool_kinds.py fails for a kind that one of them lacks.
# --------------------------------------------------------------------------------------


class ItemKind(NamedTuple):
    """What all items of one type have in common."""

    parts: tuple[tuple[str, str], ...] = ()
    """Lists of texts that deltas grow: kind and field."""
    text: tuple[str, str] | None = None
    """The one text that deltas grow: kind and field."""
    is_encrypted: bool = False
    """Only the account and model family that made it can read it."""
    returned: Literal["always", "same_run", "never"] = "always"
    """The later requests that a hosted item goes into."""
    required: tuple[str, ...] = ()
    """Fields without which the API refuses a hosted item."""
    nullable: tuple[str, ...] = ()
    """Fields that the API demands even if they are null."""
    is_call: bool = False
    """It belongs to a call of a hosted tool."""


class ToolKind(NamedTuple):
    """A kind of tools that OpenAI runs, itself or at another server."""

    type: str
    """As the API calls it; the types of older and dated versions begin with it."""
    older_types: tuple[str, ...] = ()
    """Versions that a caller can be allowed on their own."""
    closed_fields: tuple[str, ...] = ()
    """Fields that name what belongs to somebody, or where a chat is sent."""
    items: Mapping[str, ItemKind] = MappingProxyType({})
    """The items that it makes, by their types; none if it is not offered."""
    least: Mapping[str, Any] = MappingProxyType({})
    """What the API demands in addition to the type."""
    include: str = ""
    """What a request must ask for to get all of its items."""
    refused_at_minimal: bool = False
    """It cannot be used with the effort `minimal`."""
    is_cited: bool = False
    """Answers cite what it found."""
    fee: float = 0
    """US dollars for a call, where a source says it."""
    container_fee: float = 0
    """US dollars for each container in which its calls run."""

    @property
    def types(self) -> tuple[str, ...]:
        """The names by which a caller can be allowed it."""
        return (self.type, *self.older_types)


_KINDS = (
    ToolKind(
        "web_search",
        older_types=("web_search_preview",),
        # "The following tools cannot be used with reasoning.effort 'minimal':
        # web_search." (openai/codex 3559); of the others no refusal was reported.
        items={"web_search_call": ItemKind(required=("action",), is_call=True)},
        include="web_search_call.action.sources",
        refused_at_minimal=True,
        is_cited=True,
        fee=0.01,
    ),
    ToolKind(
        "file_search",
        closed_fields=("vector_store_ids",),
        items={"file_search_call": ItemKind(required=("queries",), is_call=True)},
        refused_at_minimal=True,
        is_cited=True,
        fee=0.0025,
    ),
    ToolKind(
        "mcp",
        closed_fields=(
            "server_url",
            "connector_id",
            "tunnel_id",
            "authorization",
            "headers",
        ),
        items={
            # Without the list the API asks the server again at each request.
            "mcp_list_tools": ItemKind(required=("server_label", "tools")),
            "mcp_call": ItemKind(
                required=("server_label", "name", "arguments"),
                text=("arguments", "arguments"),
                is_call=True,
            ),
            # An approval holds for one response; without it the API would make the call
            # again.
            "mcp_approval_request": ItemKind(
                required=("id", "server_label", "name", "arguments"),
                returned="same_run",
                is_call=True,
            ),
            "mcp_approval_response": ItemKind(
                required=("approval_request_id", "approve"),
                returned="same_run",
                is_call=True,
            ),
        },
    ),
    ToolKind(
        "code_interpreter",
        closed_fields=("container",),
        items={
            "code_interpreter_call": ItemKind(
                required=("container_id",),
                nullable=("code", "outputs"),
                text=("code", "code"),
                is_call=True,
            )
        },
        least={"container": {"type": "auto"}},
        include="code_interpreter_call.outputs",
        # A container of 1 GB for 20 minutes. OpenAI may bill it by the minute, at least
        # five: this is the most (OpenAI's page of prices, by simonw/llm 1592, 2026-08).
        container_fee=0.03,
    ),
    ToolKind(
        "image_generation",
        closed_fields=("input_image_mask",),
        # The API looks it up by its id, even if the image is in it (pydantic-ai
        # 2.68.0).
        items={"image_generation_call": ItemKind(returned="never")},
        refused_at_minimal=True,
    ),
    # Known so that no caller and no limit lets them pass; nothing offers them.
    ToolKind("shell", closed_fields=("environment",)),
    ToolKind("local_shell"),
    ToolKind("apply_patch"),
    ToolKind(
        "computer",
        older_types=("computer_use_preview",),
        closed_fields=("environment",),
    ),
    ToolKind("programmatic_tool_calling"),
)
"""In the order in which a request offers them: the prompt cache depends on it.

The types are those of openai-python 3.54.0, the fees are from LiteLLM 1.109.1
(2026-11-21), what is refused at `minimal` from openai-agents.
"""

CALLED_BY_NAME = ("function", "custom")
"""Types of tools that the caller runs, and not the API."""

TOOL_KINDS: Mapping[str, ToolKind] = {kind.type: kind for kind in _KINDS}

TOOL_OF_ITEM: Mapping[str, ToolKind] = {
    name: tool for tool in _KINDS for name in tool.items
}
"""The kind of tools that makes an item, by the item's type."""

HOSTED_ITEM_KINDS: Mapping[str, ItemKind] = {
    name: tool.items[name] for name, tool in TOOL_OF_ITEM.items()
}
"""What is known of the items that tools make, by their types."""


# --------------------------------------------------------------------------------------
# openai_responses.items
#
# The API's items: their kinds, their texts, and pairs of calls and outputs.
#
# An item stays the dict that the API sent; unknown fields are sent back unchanged. What
# the API wants of them then: docs/reference/responses-api.md, "Items in later requests".
# --------------------------------------------------------------------------------------


Item = dict[str, Any]

ADDED_TOOLS = "additional_tools"
CONFIGURATION = "configuration_update"
"""Input items that change the request from their place on."""


ITEM_KINDS: Mapping[str, ItemKind] = {
    "message": ItemKind(parts=(("text", "content"),)),
    "reasoning": ItemKind(
        parts=(("summary", "summary"), ("reasoning", "content")), is_encrypted=True
    ),
    "compaction": ItemKind(is_encrypted=True),
    CONFIGURATION: ItemKind(),
    "function_call": ItemKind(text=("arguments", "arguments")),
    "function_call_output": ItemKind(),
    "custom_tool_call": ItemKind(text=("arguments", "input")),
    "custom_tool_call_output": ItemKind(),
    **HOSTED_ITEM_KINDS,
}
"""Known types of items."""

_OTHER_KIND = ItemKind()
_NO_TOOL = ToolKind("")

CALL_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
}
"""Calls that we answer, and the types of their answers."""
_CALLS = tuple(CALL_OUTPUTS)
"""A tuple compares: a stored `type` may be a list, which no set can look up."""
_OUTPUTS = tuple(CALL_OUTPUTS.values())


def item_type(item: JsonObject) -> str:
    """Return the type; a message in its short form has none."""
    kind = item.get("type")
    # The type `EasyInputMessage` of openai-python 3.54.0 has no `type`.
    if kind is None and "role" in item:
        return "message"
    return kind if isinstance(kind, str) else ""


def json_digest(value: object) -> str:
    """Return a short name for an item or a tool, the same for the same JSON value."""
    text = json.dumps(value, sort_keys=True, default=str)
    return hex_digest(text)[:32]


def tool_name(tool: JsonObject) -> str:
    """Return what names a tool: its name, its label, or its type."""
    return str(tool.get("name") or tool.get("server_label") or tool.get("type"))


def kind_of(item: JsonObject) -> ItemKind:
    """Return what is known of its type."""
    return ITEM_KINDS.get(item_type(item), _OTHER_KIND)


def maker_of(item: JsonObject) -> ToolKind:
    """Return the kind of tools that makes such items; one without a type if none does."""
    return TOOL_OF_ITEM.get(item_type(item), _NO_TOOL)


def tool_kind(tool: JsonObject) -> ToolKind:
    """Return the kind of a tool; one without a type for those that OpenAI does not run.

    The types of older and dated versions begin with that of their kind.
    """
    name = as_text(tool.get("type"))
    if name.startswith(_HOSTED_TYPES):  # most tools are functions
        for kind in TOOL_KINDS.values():
            if name.startswith(kind.type):
                return kind
    return _NO_TOOL


_HOSTED_TYPES = tuple(TOOL_KINDS)


def is_hosted_tool(tool: JsonObject) -> bool:
    """Say whether the API runs a tool, itself or on another server."""
    return tool.get("type") not in CALLED_BY_NAME


_UNBILLED_ACTIONS = ("open_page", "find_in_page")
"""Of web searches (openai-python 3.57.0, `ToolUsage`)."""


def is_billed_search(item: JsonObject) -> bool:
    """Say whether `item` is a web search that costs a fee, not a look at a page."""
    action = as_mapping(item.get("action")).get("type")
    return item_type(item) == "web_search_call" and action not in _UNBILLED_ACTIONS


def container_ids(items: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the containers in which code ran."""
    return set(_texts([item.get("container_id") for item in items]))


def is_call(item: JsonObject) -> bool:
    """Say whether our side has to answer `item`."""
    return item.get("type") in _CALLS


def is_call_output(item: JsonObject) -> bool:
    """Say whether `item` answers a call."""
    return item.get("type") in _OUTPUTS


def is_paired(item: JsonObject) -> bool:
    """Say whether `item` is one of a call and its output."""
    return is_call(item) or is_call_output(item)


def is_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is a reasoning item."""
    return item.get("type") == "reasoning"


def is_commentary(item: JsonObject) -> bool:
    """Say whether `item` is a message about the work on the answer."""
    # Models up to gpt-5.2 have no phase, and other servers none at all.
    return item.get("phase") == "commentary" and item_type(item) == "message"


def has_encrypted_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is reasoning that the model can read again."""
    return is_reasoning(item) and bool(item.get("encrypted_content"))


def has_plain_reasoning(item: JsonObject) -> bool:
    """Say whether `item` is reasoning of which its server gave the words alone.

    LiteLLM gives them as the summary, and models behind it demand them
    (docs/servers.md). Words alone of a thought that its server encrypts, and that it
    never ended, would be refused: "Item with id 'rs_...' not found".
    """
    is_plain = is_reasoning(item) and not item.get("encrypted_content")
    return is_plain and item.get("status") != "incomplete" and has_text(item)


def is_encrypted(item: JsonObject) -> bool:
    """Say whether only those who made `item` can read it."""
    return kind_of(item).is_encrypted


def is_compaction(item: JsonObject) -> bool:
    """Say whether `item` replaces all items before it."""
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    """Return `items` from the last compaction on, after instructions and added tools.

    Tools that earlier items added stay in force, and their calls have to name them.

    The API compacts at the end of a response (in all eight recordings), which may be
    one that calls tools. What waits for an answer there moves after the compaction and
    the configuration update of the API that may follow it: an answer is refused without
    its call.
    """
    # A compaction stands for all in front of it; a chat may hold several.
    indexes = [index for index, item in enumerate(items) if is_compaction(item)]
    if not indexes:
        return list(items)
    start = indexes[-1]
    end = start + 1 + count_updates(items[start + 1 :])
    # Instructions are sent as the first developer message; a compaction lacks them.
    instructions = [item for item in items[:1] if item.get("role") == "developer"]
    answered = {item.get("approval_request_id") for item in items[:start]}
    calls = {id(call) for call in open_calls(items[:start])}
    waiting: list[Item] = []
    for item in items[:start]:
        is_request = item_type(item) == "mcp_approval_request"
        if id(item) in calls or (is_request and item.get("id") not in answered):
            waiting.append(item)
    added = [item for item in items[:start] if item_type(item) == ADDED_TOOLS]
    return [*instructions, *added, *items[start:end], *waiting, *items[end:]]


def count_updates(items: Iterable[Item]) -> int:
    """Return how many configuration updates `items` begin with."""
    count = 0
    for item in items:
        if item_type(item) != CONFIGURATION:
            break
        count += 1
    return count


def text_message(role: object, text: str) -> Item:
    """Return a message with one text, in the form that the API has for its role."""
    part: Item = {"type": "input_text", "text": text}
    if role == "assistant":
        part = text_part("text", text)
    return {"type": "message", "role": role, "content": [part]}


def message_text(item: JsonObject) -> str:
    """Return the text and the refusals of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(gap + text for _, text, gap in parts_with_gaps(content))


def parts_with_gaps(content: object) -> Iterator[tuple[Item, str, str]]:
    """Yield the parts of a message, each with its text and what is in front of that.

    The texts of a message are one text, but a refusal is a paragraph of its own.
    """
    refuses = None
    for part in content_parts(content):
        text = part_text(part)
        gap = ""
        if text:
            is_refusal = part.get("type") == "refusal"
            if refuses not in (None, is_refusal):
                gap = "\n\n"
            refuses = is_refusal
        yield part, text, gap


def answer_as_text(item: Item) -> Item:
    """Return a message of the model as a text alone; any other item as it is.

    The API takes answers without the ids of their parts. Other servers want these ids,
    or no parts at all (vllm-project/vllm 33089, 45273).
    """
    if item_type(item) != "message" or item.get("role") != "assistant":
        return item
    return {"type": "message", "role": "assistant", "content": message_text(item)}


_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids begin that other servers ask for."""


def with_item_id(item: Item) -> Item:
    """Return reasoning or a call with an id, always the same for the same item."""
    prefix = _ID_PREFIXES.get(item_type(item))
    return {"id": f"{prefix}_{json_digest(item)}", **item} if prefix else item


def has_text(item: JsonObject) -> bool:
    """Say whether `item` holds a text that deltas grow."""
    return bool(message_text(item)) or any(text for _, text in item_texts(item))


def content_parts(content: object) -> list[Item]:
    """Return the objects in a content."""
    return [part for part in as_list(content) if isinstance(part, dict)]


def inner_parts(item: JsonObject) -> list[Item]:
    """Return the parts of a message or of an output."""
    return [*content_parts(item.get("content")), *content_parts(item.get("output"))]


def part_text(part: JsonObject) -> str:
    """Return the text of a content part."""
    return as_text(part.get("text") or part.get("refusal"))


ANNOTATION_PLACES = ("start_index", "end_index", "index")
"""The fields with places in the text; a file's citation has `index`. Some servers write
-1 for none."""


def move_annotations(part: Item, move: Callable[[int], int]) -> Item:
    """Return a part of a content whose annotations are at other places of its text."""
    moved: list[Item] = []
    for annotation in content_parts(part.get("annotations")):
        places: Item = {}
        for name in ANNOTATION_PLACES:
            place = annotation.get(name)
            if isinstance(place, int) and place >= 0:
                places[name] = move(place)
        moved.append({**annotation, **places})
    return {**part, "annotations": moved} if moved else part


_FILE_ANNOTATIONS = ("file_citation", "container_file_citation", "file_path")


def flat_annotation(annotation: Item) -> Item:
    """Return an annotation as the API has it: a cited page has its fields in itself.

    Chat Completions, and gateways that translate them, have these in `url_citation`
    (theopenco/llmgateway 2992). Perplexity may leave the type out.
    """
    kind = annotation.get("type")
    inner = annotation.get("url_citation")
    if kind == "url_citation" and isinstance(inner, dict):
        return {**inner, "type": kind}
    if kind not in _FILE_ANNOTATIONS and has_web_scheme(as_text(annotation.get("url"))):
        return {**annotation, "type": "url_citation"}
    return annotation


def distinct_id(wire_id: str, taken: Container[str]) -> str:
    """Return `wire_id`, with a number after it that makes it a free one.

    Thousands of items may have one id, so the first free number is not counted to.
    """
    if wire_id not in taken:
        return wire_id
    last_taken = 1
    free = 2
    while f"{wire_id}_{free}" in taken:
        last_taken = free
        free *= 2
    while free - last_taken > 1:
        middle = (last_taken + free) // 2
        if f"{wire_id}_{middle}" in taken:
            last_taken = middle
        else:
            free = middle
    return f"{wire_id}_{free}"


def open_calls(items: Sequence[Item]) -> list[Item]:
    """Return the calls without an output."""
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [
        item for item in items if is_call(item) and item.get("call_id") not in answered
    ]


def _find_pairs(items: Sequence[JsonObject]) -> dict[int, int]:
    """Return the indexes of the calls that have an output, each with that of the output.

    An output answers an earlier call of its own kind; a `call_id` counts once.
    """
    outputs: dict[int, int] = {}
    waiting: dict[str, int | None] = {}  # the index of each call; None once answered
    turn_start = 0
    for index, item in enumerate(items):
        if item.get("role") == "user":
            turn_start = index
        call_id = item.get("call_id")
        if not isinstance(call_id, str):
            continue
        kind = item.get("type")
        if kind in _CALLS:
            # A call that was stopped gets no output. Some servers give its id again to
            # a call of a later turn, which counts instead (recorded at Bedrock, whose
            # first call is always `call_0`). Of some calls only the place is known,
            # not the name: they have no pair.
            earlier = waiting.get(call_id)
            was_stopped = earlier is not None and earlier < turn_start
            if item.get("name") and (was_stopped or call_id not in waiting):
                waiting[call_id] = index
            continue
        # No such call, or it has its output already.
        call_index = waiting.get(call_id)
        if call_index is None:
            continue
        if kind == CALL_OUTPUTS[items[call_index]["type"]]:
            outputs[call_index] = index
            waiting[call_id] = None
    return outputs


def move_messages_after_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` without messages between calls and their outputs.

    They follow the last of the outputs. A call without an output moves nothing.
    """
    ordered: list[Item] = []
    moved: list[Item] = []
    outputs = _find_pairs(items)
    waiting: set[int] = set()
    """The indexes of the outputs that still come."""
    for index, item in enumerate(items):
        if waiting and item_type(item) == "message":
            moved.append(item)
            continue
        ordered.append(item)
        if index in outputs:
            waiting.add(outputs[index])
        waiting.discard(index)
        if not waiting:
            ordered += moved
            moved = []
    return ordered


def move_outputs_to_calls(items: Sequence[Item]) -> list[Item]:
    """Return `items` with each output directly after its call."""
    outputs = _find_pairs(items)
    moved = {*outputs.values()}
    ordered: list[Item] = []
    for index, item in enumerate(items):
        if index not in moved:
            ordered.append(item)
        if index in outputs:
            ordered.append(items[outputs[index]])
    return ordered


INSTRUCTING = ("system", "developer")
"""The roles of messages that tell the model what to do."""
_INPUT_ROLES = ("user", *INSTRUCTING)


def drop_orphans(items: Sequence[Item]) -> list[Item]:
    """Return `items` without half pairs, and without the reasoning that produced them.

    The API refuses all three (docs/reference/responses-api.md, "Refusals of input
    items", 5). Reasoning before several calls stays as long as one of them stays.
    """
    kept: list[Item] = []
    dangling: list[Item] = []
    """Reasoning whose product has not come yet."""
    has_lost_call = False
    outputs = _find_pairs(items)
    paired = {*outputs, *outputs.values()}
    for index, item in enumerate(items):
        kind = item.get("type")
        if is_paired(item) and index not in paired:
            has_lost_call = has_lost_call or kind in _CALLS
            continue
        # Reasoning without its product is a 400 (recorded, 986 and 1009), and its
        # product may be the lost call.
        is_no_product = kind in _OUTPUTS or kind == CONFIGURATION
        is_no_product = is_no_product or item.get("role") in _INPUT_ROLES
        if is_no_product or (has_lost_call and kind not in _CALLS):
            dangling = []
        has_lost_call = False
        if kind == "reasoning":
            dangling.append(item)
            continue
        # `item` is what the reasoning led to.
        kept += dangling
        dangling = []
        kept.append(item)
    return kept


TextPlace = tuple[str, int]
"""A kind of text and the number of its part."""


def item_texts(item: JsonObject) -> Iterator[tuple[TextPlace, str]]:
    """Yield place and text of everything in `item` that deltas grow."""
    kind = kind_of(item)
    for text_kind, field in kind.parts:
        for index, part in enumerate(as_list(item.get(field))):
            if not isinstance(part, Mapping):
                continue
            if part.get("type") == "refusal":
                yield ("refusal", index), as_text(part.get("refusal"))
            else:
                yield (text_kind, index), as_text(part.get("text"))
    if kind.text:
        text_kind, field = kind.text
        yield (text_kind, 0), as_text(item.get(field))


_TEXT_PART_TYPES = {
    "text": "output_text",
    "refusal": "refusal",
    "summary": "summary_text",
    "reasoning": "reasoning_text",
}
"""The API's types of parts, by the kinds of texts that deltas grow."""


def text_part(kind: str, text: str) -> Item:
    """Return a part with a text of a kind, as the API writes it."""
    part: Item = {"type": _TEXT_PART_TYPES[kind], _text_field(kind): text}
    if kind == "text":
        part["annotations"] = []
    return part


def _text_field(kind: str) -> str:
    return "refusal" if kind == "refusal" else "text"


def with_texts(item: Item, texts: Mapping[TextPlace, str]) -> Item:
    """Return an item with these texts at their places, the inverse of `item_texts`.

    Those whose part it lacks become new parts at the end.
    """
    changed = dict(item)
    kind = kind_of(item)
    if kind.text:
        text_kind, field = kind.text
        if (text_kind, 0) in texts:
            changed[field] = texts[text_kind, 0]
    known_places = dict(item_texts(item))
    for text_kind, field in kind.parts:
        kinds = ("text", "refusal") if text_kind == "text" else (text_kind,)
        parts = list(as_list(item.get(field)))
        for place, text in texts.items():
            own_kind, number = place
            if own_kind not in kinds:
                continue
            if place in known_places:
                parts[number] = {**parts[number], _text_field(own_kind): text}
            else:
                parts.append(text_part(own_kind, text))
            changed[field] = parts
    return changed


def json_text(value: object) -> str:
    """Return the arguments of a call, or its output, as the API has them: in a text.

    Gateways and clients give a JSON value itself, or null for none.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False)


def is_image_call(item: JsonObject) -> bool:
    """Say whether `item` is an image that the model generated."""
    return item.get("type") == "image_generation_call"


def shows_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image of any format, for whoever asked for it."""
    return is_image_call(item) and _image_label(item) is not None


def has_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image that the model can read."""
    # As input the API takes neither SVG nor moving GIF.
    return shows_image(item) and image_format(item) in ("png", "jpeg", "webp")


_DATA_URL = re.compile(r"data:image/([\w.+-]{1,40})(?:;[\w=.+-]{1,40})?;base64,", re.I)
_WEB_ADDRESS = re.compile(r"https?://[^\s\x00-\x1f\"'<>\\^`{|}]+", re.IGNORECASE)
_LONGEST_LABEL = 120
_LONGEST_ADDRESS = 4000
_MOST_PAGES = 200
"""Of a search; OpenAI's have some tens."""
_MEDIA_TYPES = {"svg": "svg+xml"}
"""The media type of RFC 6838; the API says `svg`."""


def image_result(image: object) -> str:
    """Return an image as `result` has it: base64, a data URL or an address.

    Gateways put it into objects of other APIs, and into lists (AI-Stats: `b64_json` with
    a `mime_type`, or `image_url` with a `url`).
    """
    media_type = ""
    for _ in range(_IMAGE_DEPTH):
        if isinstance(image, list):
            image = image[0] if image else None
        if not isinstance(image, dict):
            break
        media_types = [image.get(name) for name in _MEDIA_TYPE_FIELDS]
        media_type = as_text(next(filter(None, media_types), media_type))
        image = next(filter(None, map(image.get, _IMAGE_FIELDS)), None)
    result = as_text(image)
    is_bare = bool(result) and ":" not in result[:_LONGEST_LABEL]
    return f"data:{media_type};base64,{result}" if media_type and is_bare else result


_IMAGE_DEPTH = 4
_MEDIA_TYPE_FIELDS = ("mime_type", "media_type", "mimeType")
_IMAGE_FIELDS = (
    *("result", "image_url", "b64_json", "url", "data"),
    *("image", "source", "inlineData"),
)


def image_format(item: JsonObject) -> str:
    """Return the format of a generated image, in the words of the API."""
    label = _DATA_URL.match(as_text(item.get("result")))
    if label is None:
        return str(item.get("output_format") or "png")
    subtype = label[1].lower()
    return {"jpg": "jpeg", "svg+xml": "svg"}.get(subtype, subtype)


def image_url(item: JsonObject) -> str:
    """Return a generated image as a data URL, or its address; empty if it is neither.

    OpenAI gives base64, some gateways a data URL or an address of the web.
    """
    label = _image_label(item)
    return "" if label is None else f"{label}{item['result']}"


def _image_label(item: JsonObject) -> str | None:
    """Return what makes a data URL of a generated image; None if there is no image.

    Base64 has no colon, and an address is short: an image of many megabytes is not
    searched.
    """
    result = as_text(item.get("result"))
    if not result:
        return None
    if _DATA_URL.match(result) or is_web_address(result):
        return ""
    if ":" in result[:_LONGEST_LABEL]:
        return None
    subtype = image_format(item)
    return f"data:image/{_MEDIA_TYPES.get(subtype, subtype)};base64,"


def has_web_scheme(text: str) -> bool:
    """Say whether a text begins like an address of the web: not as `javascript:` does."""
    return text[:8].lower().startswith(("https://", "http://"))


def is_web_address(url: str) -> bool:
    """Say whether a text is an address of the web, as a page may load it."""
    is_short = len(url) <= _LONGEST_ADDRESS
    return is_short and _WEB_ADDRESS.fullmatch(url) is not None


def image_message(item: JsonObject) -> Item:
    """Return a generated image as an input message.

    The API would look the item itself up by an id that it never stored.
    """
    part = {"type": "input_image", "detail": "auto", "image_url": image_url(item)}
    return {"type": "message", "role": "user", "content": [part]}


def is_code(item: JsonObject) -> bool:
    """Say whether `item` is code that the API ran."""
    return item.get("type") == "code_interpreter_call"


def code_output(item: JsonObject) -> str:
    """Return what code printed, or that it failed."""
    if item.get("status") in ("failed", "incomplete"):
        return "The code did not run to its end."
    outputs = content_parts(item.get("outputs"))
    return "".join(str(part.get("logs") or "") for part in outputs)


_UNFINISHED = ("in_progress", "searching", "interpreting", "calling", "incomplete")
_ACTIONS = ("search", "open_page", "find_in_page")


def is_hosted(item: JsonObject) -> bool:
    """Say whether the API made or answered `item` itself."""
    return item_type(item) in TOOL_OF_ITEM


def is_returnable_hosted(item: JsonObject) -> bool:
    """Say whether `item` is a hosted one that a later request can contain."""
    kind = kind_of(item)
    tool = maker_of(item)
    if not tool.type or kind.returned == "never":
        return False
    if item.get("status") in _UNFINISHED:
        return False
    action = as_mapping(item.get("action")).get("type")
    if tool.type == "web_search" and action not in _ACTIONS:
        return False
    # Without the list of a server's tools the API asks the server again.
    if item_type(item) == "mcp_list_tools" and item.get("error"):
        return False
    return all(item.get(key) is not None for key in kind.required)


def is_kept_hosted(item: JsonObject) -> bool:
    """Say whether later turns send `item`, a hosted one."""
    return is_returnable_hosted(item) and kind_of(item).returned == "always"


def is_replayed(item: JsonObject, *, is_ours: bool) -> bool:
    """Say whether later turns send `item`, which an answer stored.

    `is_ours` says whether its maker is the model family, server and account that will
    read it: no other item can be decrypted, or configures the model. Unknown types are
    never sent, nor are messages that are not the model's.
    """
    kind = kind_of(item)
    if is_hosted(item):
        return is_kept_hosted(item) or has_image(item)
    if kind.is_encrypted:
        return is_ours and bool(item.get("encrypted_content"))
    # The effort may be one that this model does not have.
    if item_type(item) == CONFIGURATION and not is_ours:
        return False
    is_of_the_model = item.get("role", "assistant") == "assistant"
    return is_of_the_model and kind is not _OTHER_KIND


def drop_tool_items(items: Iterable[Item]) -> list[Item]:
    """Return `items` without calls, their outputs, and the reasoning that led to them.

    It is dropped at the end as well: reasoning without its product is refused.
    """
    kept: list[Item] = []
    for item in items:
        if is_paired(item) or kind_of(item).is_call:
            _drop_last_reasoning(kept)
        else:
            kept.append(item)
    _drop_last_reasoning(kept)
    return kept


def _drop_last_reasoning(items: list[Item]) -> None:
    while items and is_reasoning(items[-1]):
        items.pop()


def search_queries(item: JsonObject) -> list[str]:
    """Return the queries of a search."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = as_mapping(item.get("action"))
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: JsonObject) -> list[str]:
    """Return the addresses of the pages that a search found, each once, the first 200.

    The page makes links of them, so only addresses of the web are. All are in one status
    line, which the host stores and writes again with each later one.
    """
    sources = content_parts(as_mapping(item.get("action")).get("sources"))
    pages: dict[str, None] = {}
    for address in _texts([source.get("url") for source in sources]):
        if has_web_scheme(address) and len(address) <= _LONGEST_ADDRESS:
            pages[address] = None
    return list(pages)[:_MOST_PAGES]


def _texts(values: object) -> list[str]:
    """Return the texts of a list that are not empty."""
    return [value for value in as_list(values) if isinstance(value, str) and value]


# --------------------------------------------------------------------------------------
# openai_responses.models.usage
#
# The tokens that a run used, and what they cost.
#
# Costs are in US dollars, response by response: what the server says of a response, else
# by the prices of the model's facts. There, the tier that the server named and the length
# of the input count (docs/reference/responses-api.md, "Prices"). Without either the cost
# is unknown. Only a picture whose tokens the server does not tell is estimated, because a
# limit in money must not take it for nothing.
# --------------------------------------------------------------------------------------


class ImageTokens(NamedTuple):
    """What the pictures of a response took; what was cached is part of the input."""

    text: int = 0
    image: int = 0
    cached_text: int = 0
    cached_image: int = 0
    output: int = 0


class Usage(NamedTuple):
    """Counts of one response, or of several added together.

    `cached` is part of `input`, `reasoning` of `output`
    (docs/reference/responses-api.md, "Usage").
    """

    input: int = 0
    output: int = 0
    total: int = 0
    cached: int = 0
    cache_writes: int = 0
    reasoning: int = 0
    tier: str = ""
    """The service tier; a sum has none, nor the two that follow."""
    searches: int | None = None
    """Web searches that are billed; None if the server does not tell."""
    images: ImageTokens | None = None
    """What drawing took; None if the server does not tell."""
    cache_writes_12h: int = 0
    """Those of `cache_writes` that are kept for 12 hours, not for 30 minutes."""
    cost: float | None = None
    """US dollars, as the server says, with the fees for tools."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum of the counts and the costs; it has no tier, searches or images."""
    if first is None or second is None:
        return first or second
    cost = None
    if first.cost is not None and second.cost is not None:
        cost = first.cost + second.cost
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        total=first.total + second.total,
        cached=first.cached + second.cached,
        cache_writes=first.cache_writes + second.cache_writes,
        reasoning=first.reasoning + second.reasoning,
        cache_writes_12h=first.cache_writes_12h + second.cache_writes_12h,
        cost=cost,  # unknown if either is
    )


def sum_usages(usages: Iterable[Usage]) -> Usage | None:
    """Return the sum of several responses, None for none."""
    return reduce(add_usage, usages, None)


def read_usage(
    wire: object, tier: object = "", tool_usage: object = None
) -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none.

    `tool_usage` is what OpenAI's tools used in addition.
    """
    if not isinstance(wire, Mapping):
        return None

    def either(api_name: str, name: str) -> object:
        """Return a field by its name in Chat Completions, if the API's is not there.

        Gateways to its servers keep these, as does SGLang without a stream; a host adds
        some of the API's.
        """
        return wire.get(api_name) or wire.get(name)

    inputs = as_mapping(either("input_tokens_details", "prompt_tokens_details"))
    outputs = as_mapping(either("output_tokens_details", "completion_tokens_details"))
    writes = as_mapping(inputs.get("cache_write_tokens_details"))
    input_tokens = _read_count(either("input_tokens", "prompt_tokens"))
    output_tokens = _read_count(either("output_tokens", "completion_tokens"))
    total = _read_count(wire.get("total_tokens"))

    def first_of(names: Iterable[str]) -> int:
        """Return the first count of these names, in the details or next to them."""
        told = [fields.get(name) for fields in (inputs, wire) for name in names]
        return next(filter(None, map(_read_count, told)), 0)

    cached = first_of(_CACHED)
    written = first_of(_WRITTEN)
    if cached + written > input_tokens:
        # Anthropic counts apart what it reads from its cache and what it writes to it,
        # and gateways pass that on.
        input_tokens += cached + written
        total = max(total, input_tokens + output_tokens)
    searches = value_at(tool_usage, "web_search", "num_requests")
    is_count = type(searches) is int and 0 <= searches < _MAX_TOKENS
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total=total or input_tokens + output_tokens,
        cached=cached,
        cache_writes=written,
        reasoning=_read_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
        cost=_read_cost(wire),
        searches=searches if is_count else None,  # not told
        images=_read_image_tokens(value_at(tool_usage, "image_gen")),
        cache_writes_12h=_read_count(writes.get("ttl_12h_tokens")),
    )


_CACHED = (
    "cached_tokens",  # Kimi has it next to the other counts (earendil-works/pi 8119)
    "prompt_cache_hit_tokens",  # DeepSeek
    "cache_read_input_tokens",  # Anthropic, Perplexity
    "cache_read_tokens",  # caigee-cmd/cli2api 221
)
"""What was read from the cache."""
_WRITTEN = (
    "cache_write_tokens",
    "cache_creation_input_tokens",  # Anthropic, Perplexity
    "cache_creation_tokens",  # LiteLLM
)
"""What was written to it."""


def _read_image_tokens(wire: object) -> ImageTokens | None:
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    cached = as_mapping(wire.get("cached_tokens_details"))
    return ImageTokens(
        text=_read_count(inputs.get("text_tokens")),
        image=_read_count(inputs.get("image_tokens")),
        cached_text=_read_count(cached.get("cached_text_tokens")),
        cached_image=_read_count(cached.get("cached_image_tokens")),
        output=_read_count(wire.get("output_tokens")),
    )


def _read_cost(wire: JsonObject) -> float | None:
    """Return what a server says that a response costs; None if it says nothing.

    OpenRouter and LiteLLM send a number, Perplexity an object with the total. OpenRouter
    adds what the provider bills directly, if the account has a key of its own there.
    """
    cost = read_dollars(wire.get("cost"))
    if cost is None:
        return read_dollars(value_at(wire, "cost", "total_cost"))
    if wire.get("is_byok") is True:
        upstream = value_at(wire, "cost_details", "upstream_inference_cost")
        cost += read_dollars(upstream) or 0.0
    return cost


_MAX_STATED_COST = 10**6
"""More is no cost of a response."""


def read_dollars(value: object) -> float | None:
    """Return an amount of money; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value < _MAX_STATED_COST else None


_MAX_TOKENS = 10**9
"""A count above that is none: no response has it, and sums have to fit a column."""


def _read_count(value: Any) -> int:
    """Return a count of tokens; gateways write `3.0` and `"3"` as well."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return int(number) if 0 < number < _MAX_TOKENS and number.is_integer() else 0


def window_share(last: Usage | None, facts: ModelFacts) -> int:
    """Return how much of what a model takes as input a chat fills, in percent.

    `last` is that of the chat's last response: its input and output are the beginning
    of the next one. The window is for input and output together, so most models refuse
    a question long before it is full. 0 if either is unknown.
    """
    limits = (facts.max_input_tokens, facts.context_window)
    most = min((limit for limit in limits if limit), default=0)
    if last is None or not most:
        return 0
    return min(100, 100 * last.total // most)


_MILLION = 1_000_000


class Cost(NamedTuple):
    """What something costs in US dollars."""

    dollars: float
    is_estimate: bool = False


class RequestTerms(NamedTuple):
    """What in a request, in addition to the model, decides what it costs."""

    host: str = ""
    tools: Sequence[Item] = ()
    completion_window: str = ""
    """How long the answer of a background model may take."""


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    terms: RequestTerms,
) -> Cost | None:
    """Return the cost of a run: its responses, searches, pictures and containers.

    None if it is unknown. What a server says of all responses has the fees in it.
    """
    usages = list(usages)
    items = list(output)
    stated: list[float] = []
    dollars = 0.0
    for usage in usages:
        if usage.cost is not None:
            stated.append(usage.cost)
            continue
        tokens = _cost_of_tokens(usage, facts, today, terms.completion_window)
        if tokens is None:
            return None
        dollars += tokens
    if usages and len(stated) == len(usages):
        return Cost(sum(stated))
    if facts.regional and terms.host.endswith(_REGIONAL_HOST_SUFFIX):
        dollars *= _REGIONAL_FACTOR
    dollars += sum(stated)  # what a server says has its own prices in it
    fee = facts.search_fee or TOOL_KINDS["web_search"].fee
    dollars += fee * count_searches(usages, items)
    makers = map(maker_of, items)
    dollars += sum(maker.fee for maker in makers if maker.type != "web_search")
    code = _tool_options(terms.tools, "code_interpreter")
    memory = as_text(value_at(code, "container", "memory_limit"))
    fee = TOOL_KINDS["code_interpreter"].container_fee * _GIGABYTES.get(memory, 1)
    dollars += fee * len(container_ids(items))
    pictures = _cost_of_pictures(usages, items, terms.tools)
    return Cost(dollars + pictures.dollars, pictures.is_estimate)


def _tool_options(tools: Iterable[Item], kind: str) -> JsonObject:
    """Return the first tool of a type; an empty one if there is none."""
    return next((tool for tool in tools if tool.get("type") == kind), {})


_GIGABYTES = {"1g": 1, "4g": 4, "16g": 16, "64g": 64}
"""By the memory of a container of code, which its price follows."""


def count_searches(usages: Sequence[Usage], items: Sequence[Item]) -> int:
    """Return the searches that are billed.

    OpenAI counts some of them at a discount, so its own count is right; if a response
    has none, the searches of the output count.
    """
    told = [usage.searches for usage in usages if usage.searches is not None]
    if told and len(told) == len(usages):
        return sum(told)
    return sum(is_billed_search(item) for item in items)


_DRAWS_BY_DEFAULT = "gpt-image-2.6-sunburst"
"""The tool's default (openai-python 3.57.0)."""


def _cost_of_pictures(
    usages: Sequence[Usage], items: Sequence[Item], tools: Iterable[Item]
) -> Cost:
    """Return what the pictures of a run cost.

    By the tokens that the server tells; it may skip calls (openai-python 3.57.0,
    `ToolUsage`), and if it tells none, by the size and quality of each picture.
    """
    told = [usage.images for usage in usages if usage.images and usage.images.output]
    drawn = [item for item in items if is_image_call(item)]
    drawn = [item for item in drawn if item.get("status") != "failed"]
    if not told and not drawn:
        return Cost(0.0)
    model = as_text(_tool_options(tools, "image_generation").get("model"))
    # The longest name counts that fits, also with a date after it. The prices of a
    # deployment with another name are unknown: the usual ones are assumed.
    prices = CATALOG_IMAGE_PRICES[_DRAWS_BY_DEFAULT]
    for name in sorted(CATALOG_IMAGE_PRICES, key=len):
        if model.startswith(name):
            prices = CATALOG_IMAGE_PRICES[name]
    costs: list[float] = []
    for tokens in told:
        cost = max(0, tokens.text - tokens.cached_text) * prices.text
        cost += tokens.cached_text * prices.cached_text
        cost += max(0, tokens.image - tokens.cached_image) * prices.image
        cost += tokens.cached_image * prices.cached_image
        cost += tokens.output * prices.output
        costs.append(cost / _MILLION)
    if told:
        return Cost(sum(costs))
    drawn_tokens = sum(map(_picture_tokens, drawn))
    return Cost(drawn_tokens * prices.output / _MILLION, is_estimate=True)


_SQUARE = 1024 * 1024
_MOST_SQUARES = 16
_TOKENS_OF_SQUARE = {"low": 272, "medium": 1056, "high": 4160}
"""Tokens of a picture of 1024 x 1024, by its quality (OpenAI's guide "Image generation").

LiteLLM's prices for each picture of gpt-image-1.5 are these tokens at 32 dollars for a
million, for the other sizes by their area.
"""


def _picture_tokens(item: Item) -> float:
    """Return about how many tokens a picture took; an unknown quality is the highest."""
    tokens = _TOKENS_OF_SQUARE.get(
        as_text(item.get("quality")), _TOKENS_OF_SQUARE["high"]
    )
    size = re.fullmatch(r"(\d{1,9})x(\d{1,9})", as_text(item.get("size")))
    squares = int(size[1]) * int(size[2]) / _SQUARE if size else 1
    return tokens * min(squares, _MOST_SQUARES)


_REGIONAL_HOST_SUFFIX = ".api.openai.com"
_REGIONAL_FACTOR = 1.1
"""OpenAI's guide "Data residency": 10 % more at the hosts of a region."""


def describe_cost(cost: Cost) -> str:
    """Return what something costs, as users read it."""
    amount = format_money(cost.dollars)
    return f"about {amount}" if cost.is_estimate else amount


def format_money(dollars: float) -> str:
    """Return an amount with its first two digits, even if it is tiny."""
    if dollars >= 1:
        return f"${dollars:,.2f}"
    rounded = Decimal(f"{dollars:.2g}")
    return f"${rounded:f}"


_LONG_INPUT = 272_000
_LONG_INPUT_FACTOR = 2
_LONG_OUTPUT_FACTOR = 1.5
"""Above that, from gpt-5.4 on, the whole request costs more, also what was cached
(OpenAI's pages of the models; LiteLLM 1.109.1)."""


LONG_TTL_FACTOR = 2
"""Writing to the cache for 12 hours costs twice as much as for 30 minutes, with each
model of which LiteLLM 1.110.2 has both prices."""


def _cost_of_tokens(
    usage: Usage, facts: ModelFacts, today: date, completion_window: str
) -> float | None:
    """Return what a response costs; None if a price or the tier is unknown.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices = facts.prices
    if prices is None or prices.input is None or prices.output is None:
        return None
    factor = _tier_factor(usage.tier, prices, today, completion_window)
    if not factor:
        return None
    cached = prices.input if prices.cached is None else prices.cached
    written = prices.input if prices.cache_write is None else prices.cache_write
    # A token is billed as input, as read or as written, never twice (guide "Prompt
    # caching"). The counts of a server may not add up.
    uncached_tokens = max(0, usage.input - usage.cached - usage.cache_writes)
    input_cost = uncached_tokens * prices.input
    input_cost += usage.cached * cached
    input_cost += usage.cache_writes * written
    if prices.cache_write is not None:
        kept_long = min(usage.cache_writes_12h, usage.cache_writes)
        input_cost += kept_long * written * (LONG_TTL_FACTOR - 1)
    output_cost = usage.output * prices.output
    if facts.long_prices and usage.input > _LONG_INPUT:
        input_cost *= _LONG_INPUT_FACTOR
        output_cost *= _LONG_OUTPUT_FACTOR
    return factor * (input_cost + output_cost) / _MILLION


_STANDARD_TIERS = ("", "auto", "default")
"""The empty tier is that of a sum, or of a server that names none."""
_WINDOW_FACTORS = {"2h": 0.7, "8h": 0.6}
"""By the time that a background answer may take, at the standard tier: "30% below
Standard token pricing", "40% below" (OpenAI's guide "Flex processing", 2026-11)."""


def _tier_factor(
    tier: str, prices: ModelPrices, today: date, completion_window: str
) -> float | None:
    """Return how often the standard price is paid; None if it is unknown."""
    if tier in _STANDARD_TIERS:
        return _WINDOW_FACTORS.get(completion_window, 1)
    # `priority` was renamed `fast` on 2026-07-30; either may come back.
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        last_day = prices.ultrafast_until
        if last_day and today.isoformat() > last_day:
            return prices.ultrafast_later
        return prices.ultrafast
    return 0.5 if tier == "flex" else None


# --------------------------------------------------------------------------------------
# openai_responses.ulid
#
# ULIDs: 48 bits of milliseconds and 80 random bits in Crockford's alphabet.
#
# They sort by time. A package for them would have to be installed on the user's server;
# tests compare these with ulid-py.
# --------------------------------------------------------------------------------------


_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_DIGITS = 26
_RANDOM_BITS = 80
_NANOSECONDS_OF_MILLISECOND = 1_000_000


def new_ulid() -> str:
    """Return a fresh id."""
    milliseconds = time.time_ns() // _NANOSECONDS_OF_MILLISECOND
    number = (milliseconds << _RANDOM_BITS) | secrets.randbits(_RANDOM_BITS)
    digits: list[str] = []
    for _ in range(_ULID_DIGITS):
        number, digit = divmod(number, len(_CROCKFORD))
        digits.append(_CROCKFORD[digit])
    return "".join(reversed(digits))


# --------------------------------------------------------------------------------------
# owui_chat.wording
#
# How numbers, and texts of strangers, are written for people.
# --------------------------------------------------------------------------------------


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2,000 rounds`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_SHOWS_NOTHING = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0e\uffa0"
    r"\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
"""Characters that Python calls printable, and that leave no trace: joiners, fillers,
the empty pattern of Braille, variation selectors."""
_LONE_SELECTOR = re.compile(r"(?<![\u203c-\u3299\U0001f000-\U0001faff])\ufe0f")
"""The selector that makes an emoji of a symbol is common, one after each symbol."""


class _Escapes(dict[int, str]):
    """What is shown of each character of a text, by its number.

    A stranger may write megabytes of them, so each is looked at once.
    """

    def __missing__(self, number: int) -> str:
        shown = chr(number)
        if not shown.isprintable() or _SHOWS_NOTHING.match(shown):
            shown = json.dumps(shown)[1:-1]  # as JSON writes it in ASCII
        self[number] = shown
        return shown


def with_escapes(text: str, kept: str = "") -> str:
    """Return a text with escapes for what cannot be seen, or changes what is next to it.

    Some characters turn the direction of a line around, others take no room and can
    hold a text of their own; a carriage return ends a block of code in Markdown. The
    `kept` ones stay.
    """
    escapes = _Escapes({ord(character): character for character in kept})
    return _LONE_SELECTOR.sub(r"\\ufe0f", text).translate(escapes)


_MARKS_OF_MARKDOWN = re.compile(r"[`*<>]|(?<![^\W_])_|_(?![^\W_])")
"""A `_` inside of a word draws nothing: `a_b.txt`, but not `__init__.py`."""
_MARKS_OF_HOST = re.compile(r"[\\\[\]${]")
"""The host draws a formula of `\\[x\\]` and `$x$`, and a file of `{{HTML_FILE_ID_1a}}`."""


def as_plain_markdown(name: str, kept: str = "") -> str:
    """Return the name of a file or a page as Markdown that shows it, and draws nothing.

    Of a longer text the `kept` characters stay: its lines.
    """
    escaped = _MARKS_OF_HOST.sub(_as_entity, with_escapes(name, kept))
    return _MARKS_OF_MARKDOWN.sub(r"\\\g<0>", escaped)


def _as_entity(mark: re.Match[str]) -> str:
    return f"&#{ord(mark[0])};"


def code_block(text: str, language: str = "") -> str:
    """Return a text as a block of code in Markdown, which it cannot end."""
    longest_run = max((len(run) for run in re.findall("`+", text)), default=0)
    fence_length = max(3, longest_run + 1)
    fence = "`" * fence_length
    return f"{fence}{language}\n{text}\n{fence}"


def value_with_escapes(value: Any) -> Any:
    """Return a JSON value whose texts have such escapes; they keep their lines and tabs.

    A number that a page cannot show becomes a text.
    """
    if isinstance(value, Mapping):
        shown: dict[str, Any] = {}
        repeats = Counter[str]()
        for name, inner in value.items():
            escaped = shown_name = value_with_escapes(str(name))
            while shown_name in shown:  # the model wrote an escape itself
                repeats[escaped] += 1
                count = repeats[escaped]
                shown_name = f"{escaped}'{count if count > 1 else ''}"
            shown[shown_name] = value_with_escapes(inner)
        return shown
    if isinstance(value, list):
        return [value_with_escapes(item) for item in value]
    if isinstance(value, str):
        return with_escapes(value, kept="\n\t")
    if isinstance(value, int) and abs(value) > _LARGEST_OF_PAGE:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


_LARGEST_OF_PAGE = 2**53 - 1
"""JavaScript rounds larger whole numbers: a page would show another one. It shows `1e999`
as null, and cannot read an event that has Python's word for it."""

CHECK_HEADING = "The setup of this pipe, "
USAGE_HEADING = "### What it cost"
NO_USAGE_HEADING = "Usage is not counted here, "
"""How the answers to commands begin; here, so that the filter need not import how chats
are parsed."""


# --------------------------------------------------------------------------------------
# shells.administration
#
# What the pipe and the filter for administrators agree on.
#
# They are installed as separate files, each with its own copy of this module, and a test
# checks both against these protocols. So only plain data goes between them, and events of
# the pipe, which the filter passes back without reading them.
# --------------------------------------------------------------------------------------


ADMINISTRATION_ID = "openai_responses_administration"
"""The id with which the filter has to be installed: the pipe finds it by that."""

ADMINISTRATION_CONTRACT = 2
"""The number of what this module describes. Files of different releases work together
as long as they have the same; whoever changes what goes between them raises it."""

MILLIONTHS = 1_000_000
"""Of a US dollar: money is counted in whole ones, here and in the filter's table."""

_PipeEvent = TypeVar("_PipeEvent")
_ToolOutcome = TypeVar("_ToolOutcome")


class CallFacts(TypedDict):
    """What the filter gets to know of one call of the pipe."""

    user_id: str
    email: str
    role: str
    """As the host calls it: `admin`, `user`."""
    model: str
    """As the pipe lists it."""
    host_model: str
    """As the host lists it, with the id of the function in front."""
    task: str
    """The name of a task of the host, or empty."""
    base_url: str
    """That of the pipe's valves."""
    has_own_key: bool
    """Whether a key of the user's own is sent."""
    user_pays: bool
    """Whether that key pays: nothing of the administrator's goes out with it."""


UNKNOWN_CALL = CallFacts(
    user_id="",
    email="",
    role="",
    model="",
    host_model="",
    task="",
    base_url="",
    has_own_key=False,
    user_pays=False,
)
"""A call about which nothing is known."""


class Purchases(NamedTuple):
    """What the money of responses bought; money is in millionths of a US dollar.

    The first two say of which requests the prices are known; counts of tokens and calls
    are those of all. What is left of `itemized_money` paid for the input. Tasks and
    agents are a view of their own: their money is in the other fields, too. The names are
    those of the filter's table.
    """

    itemized: int = 0
    """Requests."""
    itemized_money: int = 0
    input: int = 0
    """Tokens, as in `cache_writes`, `reasoning` and `answers`."""
    saved: int = 0
    """What the same tokens would have cost more without a cache."""
    cache_writes: int = 0
    reasoning: int = 0
    reasoning_money: int = 0
    answers: int = 0
    answer_money: int = 0
    searches: int = 0
    """Calls, on the web and in files."""
    search_money: int = 0
    images: int = 0
    image_money: int = 0
    containers: int = 0
    """In which Python ran."""
    container_money: int = 0
    tasks: int = 0
    """Requests, as in `agents`."""
    task_money: int = 0
    agents: int = 0
    agent_money: int = 0


NO_PURCHASES = Purchases()


class ResponseCounts(NamedTuple):
    """What responses used: requests, and tokens; `cached` is part of `input`."""

    requests: int
    input: int
    cached: int
    output: int
    bought: Purchases = NO_PURCHASES


class EventWords(NamedTuple):
    """The kind of an event of a run; for the last one also how the run ended."""

    word: Literal["", "text", "retry", "recovery", "end"] = ""
    kind: str = ""
    """The kind of the ending."""
    code: str | None = None
    """The code of the ending."""
    model: str = ""
    """The model that answered."""


SaveFile: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Takes a name and a text."""


class UsageAllowance(Protocol):
    """What the user of a call may use."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the rules alone, whoever calls; empty texts say nothing."""

    def refusal(self, model: str, has_price: bool) -> str:
        """Return why the request is not sent, or an empty text.

        `model` is the API's name, with `-pro` or `-research` for the mode.
        """

    def forbidden_tools(self) -> Sequence[str]:
        """Return the types of OpenAI's tools that are not offered."""

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the effort to send instead of one that is not allowed, or empty."""

    def notices(self) -> Sequence[str]:
        """Return the lines about what is left, if a rule wants them shown."""

    def complaints(self) -> Sequence[str]:
        """Return what is wrong with the rules or their table, if an administrator calls."""

    @property
    def is_counting(self) -> bool:
        """Whether usage is counted at all."""

    def usage_answer(
        self, text: str, save_file: SaveFile | None = None
    ) -> AsyncGenerator[str, None] | None:
        """Return the lines that answer `/usage`; None for other texts.

        `save_file` stores a text under a name for the page that reads the answer, and
        returns its address, or nothing if the host refuses it. Without it no page reads.
        """


class EndpointQueue(Protocol):
    """The entries of ENDPOINTS_JSON that may answer a call, the chosen one first."""

    @property
    def problem(self) -> str:
        """Why no entry can be used; empty if one can."""

    def valves(self) -> Mapping[str, str]:
        """Return the values that replace valves of the pipe."""

    def return_to(self, host: str, scope_id: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say if it was another one."""

    def lost_reasoning_notice(self, host: str, scope_id: str) -> str:
        """Return the notice if the entry cannot read a chat's reasoning, else empty."""

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return the notice, empty if none is."""


class EndpointTrial(NamedTuple):
    """One entry of ENDPOINTS_JSON, to be tried out."""

    model: str
    """One of those that it is for."""
    endpoints: EndpointQueue
    """It alone."""


class CallAccount(Protocol):
    """Decides about one call of the pipe, and counts its usage."""

    @property
    def limits(self) -> UsageAllowance:
        """What its user may use."""

    @property
    def endpoints(self) -> EndpointQueue | None:
        """Where it is answered; None if the valves of the pipe decide."""

    def endpoint_trials(self, models: Sequence[str]) -> Sequence[EndpointTrial]:
        """Return each entry of ENDPOINTS_JSON, whomever it is for, with a model.

        It is the first of `models` that the entry is for, or the first of all.
        """

    def count_responses(
        self, model: str, counts: ResponseCounts, cost: float | None
    ) -> str:
        """Count responses; return why the run ends, or an empty text.

        The cost is in US dollars, None if it is unknown.
        """

    def observe_run(
        self,
        events: AsyncGenerator[_PipeEvent, None],
        model: str,
        address: str,
        describe: Callable[[_PipeEvent], EventWords],
    ) -> AsyncGenerator[_PipeEvent, None]:
        """Return the events of a run, measured if the host exports telemetry.

        `address` is the server's. `describe` is called for each event.
        """

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_ToolOutcome],
        has_failed: Callable[[_ToolOutcome], bool],
    ) -> _ToolOutcome:
        """Return the result of a tool, measured if the host exports telemetry."""

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        """Return a token of Microsoft Entra ID and an empty text, or the problem."""


class Administration(Protocol):
    """The filter, while it is active."""

    async def begin(self, facts: CallFacts) -> CallAccount:
        """Return what decides about one call, and counts its usage."""


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
# owui_host.database
#
# The host's database, for what its own functions do not tell.
# --------------------------------------------------------------------------------------


_STATEMENT_SECONDS = 15
"""For SQLite's lock the host waits five."""


async def run_sql(*statements: tuple[str, object]) -> list[Sequence[object]]:
    """Run statements in one transaction of the host's database; return the last rows.

    Each comes with its values, or a list of them. `{schema}` goes in front of the
    names of tables. Raises exceptions of SQLAlchemy.
    """
    schema = host_name("env", "DATABASE_SCHEMA")
    prefix = f'"{schema}".' if schema else ""
    text = import_module("sqlalchemy").text
    open_session = host_name("internal.db", "get_async_db")
    rows: list[Sequence[object]] = []
    async with timeout(_STATEMENT_SECONDS), open_session() as session:
        for sql, values in statements:
            result = await session.execute(text(sql.format(schema=prefix)), values)
            rows = list(result.all()) if result.returns_rows else []
        await session.commit()
    return rows


# --------------------------------------------------------------------------------------
# owui_host.task_models
#
# Which models the administrators of Open WebUI chose for its tasks.
# --------------------------------------------------------------------------------------


_TASK_SETTINGS = ("task.model.default", "task.model.external")
_COMPACTION_SETTING = "chat.context_compaction.model"
TASK_MODEL_SETTINGS = (*_TASK_SETTINGS, _COMPACTION_SETTING)
"""All of them, for who looks for models that are gone."""
_MODEL_SETTINGS: Mapping[str, Sequence[str]] = {
    "title_generation": _TASK_SETTINGS,
    "follow_up_generation": _TASK_SETTINGS,
    "tags_generation": _TASK_SETTINGS,
    "emoji_generation": _TASK_SETTINGS,
    "query_generation": _TASK_SETTINGS,
    "image_prompt_generation": _TASK_SETTINGS,
    "autocomplete_generation": _TASK_SETTINGS,
    "function_calling": _TASK_SETTINGS,
    "context_compaction": (_COMPACTION_SETTING,),
}
"""The settings of the host that choose the model of a task.

They are read in routers/tasks.py:81 and utils/context_compaction.py:406 of 0.12.4. For
any other task, such as the merging of answers, the client names the model.
"""


async def chosen_task_models(task: str) -> set[str]:
    """Return the ids of the models that an administrator chose for a task.

    For a model of the workspace also the one it is made of, which the pipe is asked for.
    A setting that the host does not have chooses nothing.
    """
    config = host_name("models.config", "Config")
    models = host_name("models.models", "Models")
    chosen: set[str] = set()
    for key in _MODEL_SETTINGS.get(task, ()):
        model_id = await config.get(key, "")
        if not model_id:
            continue
        chosen.add(model_id)
        row = await models.get_model_by_id(model_id)
        base_id = getattr(row, "base_model_id", None)
        if base_id:
            chosen.add(str(base_id))
    return chosen


async def task_parameters() -> Mapping[str, Any]:
    """Return the parameters that an administrator chose for all tasks."""
    config = host_name("models.config", "Config")
    return as_mapping(await config.get("task.model.params", {}))


# --------------------------------------------------------------------------------------
# owui_host.models
#
# The models of Open WebUI, as it lists them.
# --------------------------------------------------------------------------------------


def model_entry(metadata: JsonObject, request: Any) -> JsonObject:
    """Return the host's entry of the model that answers; empty if it says nothing of one.

    `metadata["model"]` is the first one where a question goes to several models, and the
    arena where it goes to one of those. Whoever asks chooses both, so what an
    administrator says of a model is read from its own entry (docs/reference/open-webui.md,
    "Parameters and switches of a call").
    """
    model = as_mapping(metadata.get("model"))
    chosen = metadata.get("model_id")
    if not model or request is None or chosen in (None, model.get("id")):
        return model
    return as_mapping(request.app.state.MODELS.get(chosen)) or model


# --------------------------------------------------------------------------------------
# owui_administration.host
#
# What only the filter uses of Open WebUI.
#
# Each function raises HostTooOld if the host lacks a name that it needs.
# --------------------------------------------------------------------------------------


async def user_groups(user_id: str) -> set[str]:
    """Return the ids and names of a user's groups, with the groups above them.

    Open WebUI has groups inside of groups from 0.12 on.
    """
    read_groups = host_name("models.groups", "Groups").get_groups_by_member_id
    # 0.11.4 has no such parameter.
    if "include_inherited" in signature(read_groups).parameters:
        groups = await read_groups(user_id, include_inherited=True)
    else:
        groups = await read_groups(user_id)
    return {group.id for group in groups} | {group.name for group in groups}


async def has_group(name: str) -> bool:
    """Say whether a group has this id or name."""
    groups = host_name("models.groups", "Groups")
    by_id = await groups.get_group_by_id(name)
    return bool(by_id or await groups.get_group_by_name(name))


async def has_user(name: str) -> bool:
    """Say whether a user has this id or address."""
    users = host_name("models.users", "Users")
    by_id = await users.get_user_by_id(name)
    return bool(by_id or await users.get_user_by_email(name))


async def find_user_id(email: str) -> str:
    """Return the id of the user who has an address; nothing if no one has it."""
    user = await host_name("models.users", "Users").get_user_by_email(email)
    return str(user.id) if user else ""


def exports_telemetry() -> bool:
    """Say whether the host exports spans or metrics; an older one says nothing."""
    try:
        traces = host_name("env", "ENABLE_OTEL_TRACES")
        metrics = host_name("env", "ENABLE_OTEL_METRICS")
        return bool(host_name("env", "ENABLE_OTEL") and (traces or metrics))
    except HostTooOld:
        return False


async def stored_valves(filter_id: str) -> JsonObject | None:
    """Return the valves of a filter as they are stored; None if they cannot be read.

    The host gives a filter its defaults then (models/functions.py:360 of 0.12.4).
    """
    functions = host_name("models.functions", "Functions")
    stored = await functions.get_function_valves_by_ids([filter_id])
    return as_mapping(stored[filter_id]) if filter_id in stored else None


# --------------------------------------------------------------------------------------
# owui_administration.endpoints
#
# ENDPOINTS_JSON: other addresses and keys, for some groups and models.
#
# A call is answered at the first entry that is for its user and its model, and at the
# next one if that fails before an answer begins. A chat stays where its reasoning can be
# read, as long as that entry is for its user.
# --------------------------------------------------------------------------------------


_UNREADABLE = (
    "{}, so nothing is sent. An administrator has to correct it in the valves of the "
    'filter, for example `[{{"groups": ["staff"], "api_key": "..."}}]`.'
)
_SILENT = "The model's server did not answer: asking the next one."
_UNABLE = "The model's server could not answer: asking the next one."
_OTHER_ACCOUNT = (
    "The earlier reasoning of this chat belongs to another server or account."
)
DOWN_SECONDS = 60.0
"""How long an account that failed for a user is asked last."""
_SILENT_KINDS = ("unreachable", "first_event_timeout")
_DOWN_KINDS = (*_SILENT_KINDS, "unreadable")
_DOWN_CODES = ("server_error", "rate_limit_exceeded", "insufficient_quota", WRONG_KEY)
_ABOUT_ONE_REQUEST = (REQUEST_TOO_LARGE, FLEX_UNAVAILABLE)
"""Another account may have a higher limit; for other requests the server is not down."""


class EndpointEntry(BaseModel):
    """Whom and what it is for, and what it has in the place of valves.

    No `groups` mean everybody, None the valve.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    groups: list[str] = []
    models: list[str] = ["*"]
    base_url: str | None = None
    compatibility: Literal["auto", "openai", "strict"] | None = None
    api_key: str = ""
    organization: str = ""
    project: str = ""
    auth: Literal["key", "bearer", "entra_id"] = "key"
    entra_scope: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether it has a key, or needs none; raises InvalidRequest for its address."""
        has_secret = self.auth == "entra_id" or bool(self.key)
        return has_secret and bool(self.at("").host)

    @property
    def key(self) -> str:
        """The key that is sent: none where a token takes its place."""
        return "" if self.auth == "entra_id" else bare_key(self.api_key)

    def is_for(self, groups: Collection[str], models: Collection[str]) -> bool:
        """Say whether it is for a member of `groups` and a model with these names."""
        is_for_model = any(fits_pattern(model, self.models) for model in models)
        is_for_user = not self.groups or any(name in groups for name in self.groups)
        return is_for_model and is_for_user

    def at(self, base_url: str) -> Endpoint:
        """Return its server and account; `base_url` is that of the valves."""
        address = base_url if self.base_url is None else self.base_url
        return Endpoint(address, self.key, self.organization.strip())

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe, with nothing of another account."""
        valves: dict[str, str] = {}
        for name, value in self:
            # The texts have the names of valves. The lists say whom the entry is for,
            # and without an own `base_url` or `compatibility` the valve holds.
            if isinstance(value, str):
                valves[name.upper()] = value
        valves["API_KEY"] = self.key
        # Headers may hold another key, and vector stores belong to another account.
        valves["EXTRA_HEADERS"] = ""
        valves["FILE_SEARCH_VECTOR_STORES"] = ""
        return valves


@lru_cache(maxsize=8)
def read_endpoints(text: str) -> tuple[Sequence[EndpointEntry], str]:
    """Return the entries of a JSON list, and what is wrong in it, if anything.

    An entry that cannot be read may keep chats from a server, so it is not passed over:
    then there are no entries. Their values are not told: those may be keys.
    """
    text = text if text.strip() else "[]"
    if mistake := json_mistake(text):
        return (), f"ENDPOINTS_JSON {mistake}"
    rows = load_json(text)
    if rows in ({}, ""):  # empty, too
        rows = []
    if not isinstance(rows, list):
        return (), "ENDPOINTS_JSON is not a list"
    entries: list[EndpointEntry] = []
    for number, row in enumerate(rows, 1):
        try:
            entry = EndpointEntry.model_validate(row)
            mistake = "" if entry.is_complete else "`api_key` is missing"
        except ValidationError as error:
            mistake = describe_mistake(error, EndpointEntry)
        except InvalidRequest as error:
            mistake = str(error).rstrip(".").replace("The address", "the address")
        if mistake:
            return (), f"Entry {number} of ENDPOINTS_JSON: {mistake}"
        entries.append(entry)
    return entries, ""


class EndpointChoice:
    """Where one call is answered: the first of the entries that are left."""

    def __init__(
        self,
        entries: Sequence[EndpointEntry],
        base_url: str,
        failures: UserReports,
        user_id: str,
        problem: str = "",
    ) -> None:
        """Take the entries for a user's call; those that failed lately are the last.

        `failures` are those of accounts, by the users who met them.
        """
        self.problem = problem
        """Why nothing can be sent; then there are no entries."""
        self._base_url = base_url
        self._failures = failures
        self._user_id = user_id
        self._entries = sorted(entries, key=self._is_down)

    def valves(self) -> dict[str, str]:
        """Return what replaces valves of the pipe."""
        return self._entries[0].valves()

    def return_to(self, host: str, scope_id: str) -> bool:
        """Choose the entry that wrote a chat's reasoning; say whether that is another.

        One that failed lately is not chosen. Earlier records name neither a server nor
        an account.
        """
        chosen, *others = self._entries
        if self._can_read(chosen, host, scope_id):
            return False
        for entry in others:
            if self._can_read(entry, host, scope_id) and not self._is_down(entry):
                self._entries.remove(entry)
                self._entries.insert(0, entry)
                return True
        return False

    def lost_reasoning_notice(self, host: str, scope_id: str) -> str:
        """Return what to say if the entry cannot read a chat's reasoning, or nothing."""
        if self._can_read(self._entries[0], host, scope_id):
            return ""
        return _OTHER_ACCOUNT

    def mark_failed(self, kind: str, code: str | None, status: int) -> str:
        """Choose the next entry after a failure; return what to say, or nothing.

        A server that has not got the model may have others. A refusal of the request
        would be the same anywhere, and what was stopped for its safety must go on
        nowhere else.
        """
        # Whoever asks elsewhere works around what OpenAI's monitoring stopped (guide
        # "Safety checks: misalignment monitoring").
        if code in SAFETY_STOPS:
            return ""
        is_about_request = code in _ABOUT_ONE_REQUEST
        is_down = kind in _DOWN_KINDS or code in _DOWN_CODES
        is_refusing = status in (401, 429) or status >= 500
        is_missing = code == "model_not_found" or status in (403, 404)
        if (is_down or is_refusing) and not is_about_request:
            # Other requests to the same account would fail as well.
            account = self._entries[0].at(self._base_url).account()
            self._failures.add(account, self._user_id)
        elif not (is_missing or is_about_request):
            return ""
        if len(self._entries) == 1:
            return ""
        self._entries.pop(0)
        return _SILENT if kind in _SILENT_KINDS else _UNABLE

    def _is_down(self, entry: EndpointEntry) -> bool:
        account = entry.at(self._base_url).account()
        return self._failures.holds(account, self._user_id)

    def _can_read(self, entry: EndpointEntry, host: str, scope_id: str) -> bool:
        """Say whether an entry can read what a server and an account encrypted."""
        endpoint = entry.at(self._base_url)
        try:
            is_same_server = host in ("", endpoint.host)
        except InvalidRequest:  # that of the valves; the pipe tells it if it is chosen
            return False
        is_same_account = scope_id in ("", endpoint.reasoning_scope_id())
        return is_same_server and is_same_account


def endpoint_trials(
    text: str, base_url: str, models: Sequence[str]
) -> list[EndpointTrial]:
    """Return each entry of ENDPOINTS_JSON (see `CallAccount.endpoint_trials`)."""
    trials: list[EndpointTrial] = []
    for entry in read_endpoints(text)[0]:
        # The first model that the entry is for, or the first of all, if there is any.
        model = models[0] if models else ""
        for listed in models:
            if entry.is_for(entry.groups, _model_names(listed)):
                model = listed
                break
        choice = EndpointChoice([entry], base_url, UserReports(), "")
        trials.append(EndpointTrial(model, choice))
    return trials


def _model_names(model: str) -> set[str]:
    """Return the names of a model that an entry can state: as listed, and the API's."""
    return {model, resolve_model(model).id}


async def choose_endpoints(
    text: str, facts: CallFacts, failures: UserReports
) -> EndpointChoice | None:
    """Return where a call is answered; None where the valves of the pipe say it.

    A user's own key goes to the address of the valves alone.
    """
    entries, mistake = read_endpoints(text)
    base_url = facts["base_url"]
    user_id = facts["user_id"]
    if mistake:
        problem = _UNREADABLE.format(mistake)
        return EndpointChoice([], base_url, failures, user_id, problem)
    if facts["has_own_key"]:
        return None
    groups: set[str] = set()
    if any(entry.groups for entry in entries):
        groups = await user_groups(user_id)
    names = _model_names(facts["model"])
    usable = [entry for entry in entries if entry.is_for(groups, names)]
    if not usable:
        return None
    return EndpointChoice(usable, base_url, failures, user_id)


# --------------------------------------------------------------------------------------
# owui_administration.rules
#
# The rules of USER_LIMITS_JSON: whom they name, and how much they allow in a period.
#
# Every rule that names a user holds, so the strictest wins. A rule with `last` ends the
# list for those it names. Periods are those of UTC; a week begins on Monday.
# --------------------------------------------------------------------------------------


_MAX_COLUMN = 2**63 - 1
"""What a column of the table holds; a tenth more of some numbers is no float."""


class LimitRule(BaseModel):
    """Whom a rule names, how much they may use in each period, and what.

    No names mean everybody, None no limit. With `show` answers tell what is left.
    """

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    user: str = ""
    group: str = ""
    role: Literal["", "user", "admin"] = ""
    money: Annotated[float, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0, le=_MAX_COLUMN)] | None = None
    per: Literal["", "day", "week", "month"] = ""
    models: list[str] | None = None
    efforts: list[str] | None = None
    tools: list[str] | None = None
    show: bool = False
    last: bool = False


class UnreadableRule(LimitRule):
    """A rule with a mistake; it blocks those whom it surely names."""

    mistake: str


_MAX_NAMED = 9
"""Rules that the message names."""


@lru_cache(maxsize=8)
def read_limits(text: str) -> tuple[Sequence[LimitRule] | None, str]:
    """Return the rules of USER_LIMITS_JSON, and the message about errors in them.

    None: nothing is to be counted. A rule that cannot be read stays, and names as few
    users as it surely names.
    """
    if not text.strip():
        return None, ""
    rules: list[LimitRule]
    mistakes: list[str] = []
    whole = json_mistake(text)
    if whole:
        rules = [_unreadable_rule(None, whole)]
        mistakes.append(f"USER_LIMITS_JSON {whole}.")
    else:
        rows = load_json(text)
        rules = []
        for number, row in enumerate(rows if isinstance(rows, list) else [rows], 1):
            mistake = ""
            try:
                rule = LimitRule.model_validate(row)
                has_amount = rule.money is not None or rule.tokens is not None
                if has_amount and not rule.per:
                    mistake = "`per` is missing (day, week or month)"
            except ValidationError as error:
                mistake = describe_mistake(error, LimitRule)
            if mistake:
                rule = _unreadable_rule(row, mistake)
                mistakes.append(f"Rule {number} of USER_LIMITS_JSON: {mistake}.")
            rules.append(rule)
    if not mistakes:
        return rules, ""
    named = " ".join(mistakes[:_MAX_NAMED])
    whom = "Users" if whole else "Users that such a rule names"
    problem = (
        f"{named} {whom} get no answers. An administrator has to "
        "correct it in the valves of the filter, for example "
        '`[{"role": "user", "money": 5, "per": "month"}]`.'
    )
    return rules, problem


def _unreadable_rule(row: object, mistake: str) -> UnreadableRule:
    """Return a rule that blocks those whom it surely names."""
    given = as_mapping(row)
    role = given.get("role")
    return UnreadableRule(
        user=as_text(given.get("user")),
        group=as_text(given.get("group")),
        role=role if role in ("user", "admin") else "",
        mistake=mistake,
    )


def rules_of(
    rules: Sequence[LimitRule],
    names: Collection[str],
    groups: Collection[str],
    role: str,
) -> list[LimitRule]:
    """Return the rules that name a user, who has these `names` and is in `groups`."""
    own_names = {name.lower() for name in names}
    own_rules: list[LimitRule] = []
    for rule in rules:
        is_user = not rule.user or rule.user.lower() in own_names
        is_member = not rule.group or rule.group in groups
        if is_user and is_member and rule.role in ("", role):
            own_rules.append(rule)
            if rule.last:
                break
    return own_rules


PERIODS = {"day": "today", "week": "this week", "month": "this month"}
PERIOD_DAYS = {"day": 1, "week": 7, "month": 31}


def period_start(per: str, today: date) -> date:
    """Return the first day of the period that `today` is in."""
    match per:
        case "month":
            return today.replace(day=1)
        case "week":
            return today - timedelta(today.weekday())
    return today


def next_start(per: str, today: date) -> date:
    """Return the first day of the period after the one that `today` is in."""
    next_day = period_start(per, today) + timedelta(PERIOD_DAYS[per])
    return period_start(per, next_day)


def longest_ago(today: date) -> str:
    """Return the first day of which a limit may ask."""
    return min(period_start(per, today) for per in PERIODS).isoformat()


# --------------------------------------------------------------------------------------
# owui_administration.usage_table
#
# What users have used, in tables of our own in the host's database.
#
# A row counts what one user had of one model on one day, so nothing is lost with a chat
# that is deleted. One statement adds to it: servers that count at once lose nothing. What
# could not be written is kept, and written with the next answer.
#
# The first table is that of version 1.0.0, whose statements name no columns: one more
# column, and a server that was not updated could neither write nor read it. So what the
# money bought is in a second table, with the same key.
#
# A commit that gets no answer may have been made, and to make it again would count twice.
# So each transaction also notes its number in a third table, where the next one looks.
# --------------------------------------------------------------------------------------


_AnswerEvent = TypeVar("_AnswerEvent")


class UsageRow(NamedTuple):
    """What a user had of a model on a day; the names are those of the table.

    `cached` is part of `input`. Money is in millionths of a US dollar.
    """

    user_id: str
    day: str
    model: str
    requests: int
    input: int
    cached: int
    output: int
    money: int


_KEY = UsageRow._fields[:3]
_COUNTS = UsageRow._fields[3:]
_USAGE = "{schema}openai_responses_usage"
_PURCHASES = "{schema}openai_responses_purchases"
_WRITERS = "{schema}openai_responses_usage_writers"


def _create(table: str, counts: Sequence[str]) -> str:
    """Return the statement that makes a table."""
    columns = [
        *(f"{name} TEXT" for name in _KEY),
        *(f"{name} BIGINT" for name in counts),
    ]
    key = ", ".join(_KEY)
    return (
        f"CREATE TABLE IF NOT EXISTS {table} "
        f"({', '.join(columns)}, PRIMARY KEY ({key}))"
    )


def _add(table: str, counts: Sequence[str]) -> str:
    """Return the statement that adds to a row.

    SQLite and PostgreSQL, the databases of Open WebUI, share this form.
    """
    names = (*_KEY, *counts)
    sums = ", ".join(f"{name} = old.{name} + excluded.{name}" for name in counts)
    return (
        f"INSERT INTO {table} AS old ({', '.join(names)}) "
        f"VALUES ({', '.join(f':{name}' for name in names)}) "
        f"ON CONFLICT ({', '.join(_KEY)}) DO UPDATE SET {sums}"
    )


def _sums(counts: Sequence[str]) -> str:
    return ", ".join(f"SUM({name}) AS {name}" for name in counts)


_CREATE_ALL: Sequence[tuple[str, object]] = (
    (_create(_USAGE, _COUNTS), {}),
    (_create(_PURCHASES, Purchases._fields), {}),
    (
        f"CREATE TABLE IF NOT EXISTS {_WRITERS} (id TEXT PRIMARY KEY, written BIGINT)",
        {},
    ),
)
_NOTE_NUMBER = (
    f"INSERT INTO {_WRITERS} AS old (id, written) VALUES (:id, :number) "
    "ON CONFLICT (id) DO UPDATE SET written = excluded.written"
)
# It changes nothing, but waits for a transaction that still holds the row.
_AWAIT_WRITER = (
    f"INSERT INTO {_WRITERS} AS old (id, written) VALUES (:id, 0) "
    "ON CONFLICT (id) DO UPDATE SET written = old.written"
)
_LAST_NUMBER = f"SELECT written FROM {_WRITERS} WHERE id = :id"
_ADD_USAGE = _add(_USAGE, _COUNTS)
_ADD_PURCHASES = _add(_PURCHASES, Purchases._fields)
_ROWS_OF_USER = (
    f"SELECT {', '.join((*_KEY, *_COUNTS))} FROM {_USAGE} "
    "WHERE user_id = :user_id AND day >= :day"
)
_ROWS_OF_DAYS = (
    f"SELECT '', day, model, {_sums(_COUNTS)} FROM {_USAGE} WHERE day >= :day "
    "GROUP BY day, model"
)
# By the model first: SQLite would else read the table in the order of its key, which
# takes three times as long as to sort it.
_ROWS_OF_ALL = (
    f"WITH sums AS (SELECT user_id, model, {_sums(_COUNTS)} FROM {_USAGE} "
    "WHERE day >= :day GROUP BY model, user_id) "
    f"SELECT COALESCE(email, user_id), '', model, {', '.join(_COUNTS)} "
    'FROM sums LEFT JOIN {schema}"user" ON id = user_id '
    "ORDER BY SUM(money) OVER (PARTITION BY user_id) DESC, user_id, money DESC "
    "LIMIT :most"
)
"""With the addresses of users as far as they exist, the most expensive first."""
_OF_USER = "AND user_id = :user_id"
_PURCHASES_OF = (
    f"SELECT {_sums(Purchases._fields)} FROM {_PURCHASES} WHERE day >= :day "
)
_SAVED_OF = f"SELECT day, SUM(saved) FROM {_PURCHASES} WHERE day >= :day "
"""Two statements: to sort all columns by day takes longer than both."""
_NOT_COUNTED = "Usage is not counted: Open WebUI's database reports {}."


_MAX_DUE = 10_000
"""Rows that wait for the database."""
_LONGEST_MODEL = 200
"""Characters of a model's name. A key of PostgreSQL has at most 2,704 bytes."""


def sum_purchases(purchases: Iterable[Purchases]) -> Purchases:
    """Return what several purchases come to."""
    columns = zip(*purchases, strict=True)
    return Purchases(*(sum(column) for column in columns))


class KnownRows(list[UsageRow]):
    """The rows of a user that an answer of theirs knows."""

    def __init__(self, user_id: str) -> None:
        super().__init__()
        self.user_id = user_id
        self._places: dict[tuple[str, str], int] = {}

    def take(self, row: UsageRow) -> None:
        """Take what another answer had: all of a model and a day is one row.

        Each of many answers at once would else keep, and add up, the rows of all.
        """
        place = self._places.setdefault((row.day, row.model), len(self))
        if place < len(self):
            self[place] = _added(self[place], row)
        else:
            self.append(row)


_Rows = dict[tuple[str, str, str], tuple[UsageRow, Purchases]]
"""By user, day and model."""


class UsageTable:
    """The tables, and what is still to be added to them."""

    def __init__(self) -> None:
        self._id = new_ulid()
        self._number = 0
        """Of the last transaction that added something."""
        self._unsure: list[tuple[UsageRow, Purchases]] = []
        """What it added, until the database has said that it did."""
        self.problem = ""
        self._due: _Rows = {}
        self._read = set[str]()
        """The users whose rows are read now."""
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        """Who may read the rows of a user."""
        self.under_way = Counter[str]()
        """How many answers of a user are under way, of those with a limit."""
        self._writer: asyncio.Task[None] | None = None
        self._known = WeakValueDictionary[int, KnownRows]()
        """What each answer that is under way knows, by its `id`."""

    def add(self, row: UsageRow, bought: Purchases = NO_PURCHASES) -> None:
        """Add a row soon, and what its money bought; no one waits for it.

        The user's other answers know it at once.
        """
        for known in [*self._known.values()]:
            has_row = bool(known) and known[-1] is row  # its own answer has added it
            if known.user_id == row.user_id and not has_row:
                known.take(row)
        # A database refuses some characters and long keys, and with the row all that is
        # written with it. Another server names its models as it likes.
        storable = well_formed(row.model[:_LONGEST_MODEL]).replace("\0", "?")
        if storable != row.model:
            row = row._replace(model=storable)
        self._add_due(row, bought)
        self._start_writer()

    def _start_writer(self) -> asyncio.Task[None]:
        """Return the task that writes what is due, a new one if none is at work."""
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return self._writer

    def _add_due(self, row: UsageRow, bought: Purchases) -> None:
        """Keep a row until it is written, in one with what the user had before.

        So a database that fails for days costs a row for each user, model and day. The
        oldest of too many rows goes.
        """
        _merge(self._due, row, bought)
        if len(self._due) > _MAX_DUE:
            oldest = next(iter(self._due))
            del self._due[oldest]

    async def _write(self) -> None:
        """Write what is due; what comes meanwhile is written by the next task.

        The rows of a user wait while that user's are read.
        """
        try:
            if self._unsure:  # was the last transaction made? If not, it is due
                writer = {"id": self._id}
                [[written]] = await _run_with_tables(
                    (_AWAIT_WRITER, writer), (_LAST_NUMBER, writer)
                )
                unsure = self._unsure
                self._unsure = []
                if written != self._number:
                    for row, bought in unsure:
                        self._add_due(row, bought)
        except Exception as error:
            self.problem = _NOT_COUNTED.format(type(error).__name__)
            return
        self.problem = ""
        keys = self._keys_to_write()
        if not keys:
            return
        # In one order: two servers never wait for each other's rows.
        due = sorted(self._due.pop(key) for key in keys)
        usage = [row._asdict() for row, _ in due]
        purchases: list[dict[str, object]] = []
        for row, bought in due:
            if any(bought):
                key = {"user_id": row.user_id, "day": row.day, "model": row.model}
                purchases.append({**key, **bought._asdict()})
        self._number += 1
        self._unsure = due
        number = {"id": self._id, "number": self._number}
        additions: list[tuple[str, object]] = [
            (_NOTE_NUMBER, number),
            (_ADD_USAGE, usage),
        ]
        if purchases:
            additions.append((_ADD_PURCHASES, purchases))
        try:
            await _run_with_tables(*additions)
        except Exception as error:
            self.problem = _NOT_COUNTED.format(type(error).__name__)
            return
        self._unsure = []
        if self._keys_to_write():
            self._writer = asyncio.create_task(self._write())

    def _unwritten(self) -> list[tuple[UsageRow, Purchases]]:
        """Return what is not in the tables, as far as this server knows."""
        rows = dict(self._due)
        for row, bought in self._unsure:
            _merge(rows, row, bought)
        return [*rows.values()]

    def _keys_to_write(self) -> list[tuple[str, str, str]]:
        return [key for key in self._due if key[0] not in self._read]

    async def while_under_way(
        self, user_id: str, events: AsyncGenerator[_AnswerEvent, None]
    ) -> AsyncGenerator[_AnswerEvent, None]:
        """Yield the events of an answer, which is under way until they end."""
        self.under_way[user_id] += 1
        try:
            async with aclosing(events):
                async for event in events:
                    yield event
        finally:
            self.under_way -= Counter([user_id])  # without those who have none left

    async def flush(self) -> None:
        """Wait until what is due now was written, or could not be.

        Others may always add more, so what comes meanwhile is not waited for.
        """
        await asyncio.wait([self._start_writer()])
        # That one may have begun before; then the next one has what was due.
        if self._writer and not self._writer.done():
            await asyncio.wait([self._writer])

    async def user_rows(self, user_id: str, since: str) -> list[UsageRow]:
        """Return the rows of a user from a day on, and those that are added later.

        What could not be written yet counts, too.
        """
        rows = KnownRows(user_id)
        async with self._reading(user_id):
            rows += await self._select(_ROWS_OF_USER, user_id=user_id, day=since)
            for row, _ in self._unwritten():
                if row.user_id == user_id and row.day >= since:
                    rows.append(row)
            self._known[id(rows)] = rows
        return rows

    async def day_rows(self, since: str) -> list[UsageRow]:
        """Return what all users together had of each model on each day from one on."""
        await self.flush()
        return await self._select(_ROWS_OF_DAYS, day=since)

    async def all_rows(self, since: str, most: int) -> list[UsageRow]:
        """Return what each user had of each model from a day on, up to `most` rows.

        The users who cost the most come first.
        """
        await self.flush()
        return await self._select(_ROWS_OF_ALL, day=since, most=most)

    async def purchases(
        self, since: str, user_id: str = ""
    ) -> tuple[Purchases, dict[str, int]]:
        """Return what was bought from a day on, and what a cache saved on each day.

        By a user, with what could not be written yet; or by all.
        """
        values = {"day": since, **({"user_id": user_id} if user_id else {})}
        whose = _OF_USER if user_id else ""
        by_day = f"{_SAVED_OF}{whose} GROUP BY day"
        async with self._reading(user_id):
            [sums] = await _run_with_tables((_PURCHASES_OF + whose, values))
            rows = await _run_with_tables((by_day, values))
            due = [
                (row.day, purchases)
                for row, purchases in self._unwritten()
                if row.user_id == user_id and row.day >= since
            ]
        bought = Purchases(*(_whole_number(count) for count in sums))
        saved = {str(day): _whole_number(money) for day, money in rows}
        for day, purchases in due:
            bought = sum_purchases((bought, purchases))
            saved[day] = saved.get(day, 0) + purchases.saved
        return bought, saved

    @asynccontextmanager
    async def _reading(self, user_id: str) -> AsyncGenerator[None, None]:
        """Hold back what is added for a user: each row is either stored or still due."""
        # One after the other: somebody who asks without a pause would never be written.
        turn = self._turns.setdefault(user_id, asyncio.Lock())
        async with turn:
            await self.flush()
            self._read.add(user_id)
            try:
                if self._writer:  # it may have begun with rows of this user
                    await asyncio.wait([self._writer])
                yield
            finally:
                self._read.remove(user_id)
                if self._due and not self.problem:
                    self._start_writer()

    async def _select(self, sql: str, **values: object) -> list[UsageRow]:
        """Return rows of the first table."""
        rows = await _run_with_tables((sql, values))
        width = len(_KEY)
        return [
            UsageRow._make((*map(str, row[:width]), *map(_whole_number, row[width:])))
            for row in rows
        ]


def _merge(rows: _Rows, row: UsageRow, bought: Purchases) -> None:
    """Put a row at the end, in one with an earlier row of the same key."""
    key = (row.user_id, row.day, row.model)
    if key in rows:
        earlier, earlier_bought = rows.pop(key)
        row = _added(earlier, row)
        bought = sum_purchases((earlier_bought, bought))
    rows[key] = row, bought


def _added(earlier: UsageRow, row: UsageRow) -> UsageRow:
    """Return a row with the counts of an earlier one of the same key."""
    counts = {name: getattr(earlier, name) + getattr(row, name) for name in _COUNTS}
    return row._replace(**counts)


_LOST_RACES = ("IntegrityError", "ProgrammingError")
"""SQLAlchemy's errors for a table that another session has just made."""


async def _run_with_tables(*statements: tuple[str, object]) -> list[Sequence[object]]:
    """Run statements on the tables, which are made if they do not exist.

    In PostgreSQL `IF NOT EXISTS` fails in one of two sessions that make a table at the
    same time. The other one has committed by then, so the second try finds the table.
    Workers meet there, and so do modules of one worker: Open WebUI 0.12.4 loads a filter
    once for each question that arrives before the first load is done
    (utils/plugin.py:407). Only the last of them is asked again.
    """
    try:
        return await run_sql(*_CREATE_ALL, *statements)
    except Exception as error:
        if type(error).__name__ not in _LOST_RACES:
            raise
    return await run_sql(*_CREATE_ALL, *statements)


def _whole_number(value: object) -> int:
    """Return a count of the database; sums of PostgreSQL are decimals, of nothing None."""
    return int(value) if isinstance(value, int | Decimal) else 0


# --------------------------------------------------------------------------------------
# owui_administration.usage_picture
#
# Pictures of what was used, as blocks that Open WebUI draws: `vega-lite`.
#
# The page has drawn them since 0.6.33 (`renderVegaVisualization`, src/lib/utils/index.ts):
# once, without a container whose size a picture could take, so its width depends on that
# of the window. Colors of the page are taken where they are `currentColor`. Nothing is
# fetched: the data is in the block.
# --------------------------------------------------------------------------------------


_COLORS = (
    "#275AB6",
    "#D07427",
    "#8CCA75",
    "#80447A",
    "#00CCFC",
    "#A72120",
    "#E7B300",
    "#8739FF",
)
"""Any two, and the last color, differ by 25 or more (CIE 1976), also for people who lack
one kind of cones (Machado et al. 2009); each is seen on white and on black."""
_COLOR_OF_OTHERS = "#999999"
_MOST_USERS = 10
_MOST_BARS = 92
"""Above that many days a bar is a week."""
_MOST_LABELS = 5
_DAY_MS = 86_400_000
_TEXT = "currentColor"
_CONFIG = {
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": _TEXT,
        "domainColor": _TEXT,
        "tickColor": _TEXT,
        "gridColor": _TEXT,
        "gridOpacity": 0.15,
        "labelFontSize": 12,
    },
    "legend": {
        "labelColor": _TEXT,
        "labelFontSize": 12,
        "symbolType": "square",
        "labelLimit": 150,
    },
    "title": {
        "color": _TEXT,
        "subtitleColor": _TEXT,
        "fontSize": 14,
        "subtitleFontSize": 12,
        "anchor": "start",
        "frame": "bounds",
        # Buttons of the page lie on the right above the picture.
        "offset": 16,
    },
}


Layer = dict[str, Any]
"""A part of a specification of Vega-Lite."""


def day_picture(
    rows: Sequence[UsageRow], saved: Mapping[str, int], since: date, today: date
) -> str:
    """Return the picture of the money of each day, by model; empty if there is none.

    `saved` is what the cache saved on a day; a line shows the sum of both.
    """
    named, others = _models_by_money(rows)
    if not named:
        return ""
    scale = {"domain": list(named), "range": list(_COLORS[: len(named)])}
    if others:
        scale["domain"].append(plural(others, "other model"))
        scale["range"].append(_COLOR_OF_OTHERS)

    # What each model cost at each place, and what all of it would be without the cache.
    days = (today - since).days + 1
    step = 1 if days <= _MOST_BARS else 7
    bars = Counter[tuple[int, int]]()
    whole = Counter[int]()
    for row in rows:
        place = (date.fromisoformat(row.day) - since).days // step
        rank = named.index(row.model) if row.model in named else len(named)
        bars[place, rank] += row.money
        whole[place] += row.money
    for day, money in saved.items():
        whole[(date.fromisoformat(day) - since).days // step] += money

    start = (since - date(1970, 1, 1)).days * _DAY_MS
    x = _day_axis(start, days)
    y = _money_axis(max(whole.values()))
    width = step * _DAY_MS
    from_place = {"calculate": f"{start} + {width} * datum.place", "as": "from"}
    lines = [
        f"{place},{rank},{_dollars(money)}"
        for (place, rank), money in sorted(bars.items())
        if money
    ]
    layers = [_bars(lines, from_place, width, x, y, scale)]
    title = {"text": f"US dollars a {'day' if step == 1 else 'week'}"}
    if any(money > 0 for money in saved.values()):
        title["subtitle"] = "The line: without the prompt cache"
        last = (days - 1) // step
        lines = [f"{place},{_dollars(whole[place])}" for place in range(last + 1)]
        lines.append(f"{last + 1},{_dollars(whole[last])}")
        layers.append(_outline(lines, from_place, x, y))
    return _block(
        {
            "title": title,
            "width": 560,
            "height": 200,
            "params": [_width(270, 560), {"name": "names", "value": scale["domain"]}],
            "layer": layers,
        }
    )


def _models_by_money(rows: Sequence[UsageRow]) -> tuple[list[str], int]:
    """Return the models that cost the most, and how many others cost something.

    The former have their own colors, all others share one.
    """
    money_of_models = Counter[str]()
    for row in rows:
        money_of_models[row.model] += row.money
    most = money_of_models.most_common(len(_COLORS))
    named = [name for name, money in most if money]
    paid = sum(money > 0 for money in money_of_models.values())
    return named, paid - len(named)


def _day_axis(start: int, days: int) -> Layer:
    """Return the axis of so many days, with labels of a few; `start` is in milliseconds."""
    end = start + days * _DAY_MS
    every = ceil(days / _MOST_LABELS)
    ticks = [start + day * _DAY_MS + _DAY_MS // 2 for day in range(0, days, every)]
    return {
        "field": "from",
        "type": "temporal",
        "title": None,
        "scale": {"type": "utc", "domain": [start, end], "nice": False},
        "axis": {"format": "%-d %b", "values": ticks, "grid": False},
    }


def _money_axis(most: int) -> Layer:
    """Return the axis of money, with the digits that its numbers need."""
    number = "$,.0f" if most >= 5 * MILLIONTHS else "$.2f"
    if most < MILLIONTHS // 20:
        number = "$.4f"
    return {
        "field": "dollars",
        "type": "quantitative",
        "title": None,
        "axis": {"format": number, "tickCount": 5},
    }


def _bars(
    lines: Sequence[str],
    from_place: Layer,
    width: int,
    x: Layer,
    y: Layer,
    scale: Layer,
) -> Layer:
    """Return the layer of the money by model, one bar for each `width` of milliseconds."""
    return {
        "data": _inline_csv("place,rank,dollars", lines),
        "transform": [
            from_place,
            {"calculate": f"datum.from + {width} * 0.85", "as": "to"},
            {"calculate": "names[datum.rank]", "as": "model"},
            {
                "stack": "dollars",
                "groupby": ["place"],
                "sort": [{"field": "rank"}],
                "as": ["low", "high"],
            },
        ],
        # Not a bar: Vega-Lite takes one with two places on x for a horizontal one.
        "mark": {"type": "rect", "clip": True},  # the last week may not be over
        "encoding": {
            "x": x,
            "x2": {"field": "to"},
            "y": {**y, "field": "low"},
            "y2": {"field": "high"},
            "color": {
                "field": "model",
                "type": "nominal",
                "title": None,
                "scale": scale,
                "legend": {
                    "orient": "bottom",
                    "columns": {"expr": "width < 400 ? 2 : 4"},
                },
            },
        },
    }


def _outline(lines: Sequence[str], from_place: Layer, x: Layer, y: Layer) -> Layer:
    """Return the layer of what all would cost without the cache."""
    return {
        "data": _inline_csv("place,dollars", lines),
        "transform": [from_place],
        "mark": {
            "type": "line",
            "interpolate": "step-after",
            "color": _TEXT,
            "strokeWidth": 1.5,
            "clip": True,
        },
        "encoding": {"x": x, "y": y},
    }


def user_picture(rows: Sequence[UsageRow], all_money: int) -> str:
    """Return the picture of the money of each user; empty if fewer than two cost any.

    `rows` have the users who cost the most; what is left of `all_money` is told above:
    its bar would make all others small.
    """
    money_of_users = Counter[str]()
    for row in rows:
        money_of_users[row.user_id] += row.money
    most = money_of_users.most_common(_MOST_USERS)
    top = [(name, money) for name, money in most if money > 0]
    if len(top) < 2:
        return ""
    title = {"text": "US dollars by user"}
    rest = all_money - sum(money for _, money in top)
    if rest > 0:
        title["subtitle"] = f"All others: ${rest / MILLIONTHS:,.2f}"
    digits = 2 if top[0][1] >= MILLIONTHS // 20 else 4
    values = [
        {
            "user": name,
            "dollars": money / MILLIONTHS,
            "label": f"${money / MILLIONTHS:,.{digits}f}",
        }
        for name, money in top
    ]
    limit = {"expr": "width < 300 ? 120 : 240"}
    y = {
        "field": "user",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"domain": False, "ticks": False, "labelLimit": limit},
    }
    x = {"field": "dollars", "type": "quantitative", "title": None, "axis": None}
    return _block(
        {
            "title": title,
            "width": 420,
            "height": {"step": 20},
            "params": [_width(140, 420)],
            "data": {"values": values},
            "encoding": {"y": y, "x": x},
            "layer": [
                {"mark": {"type": "bar", "color": _COLORS[0]}},
                {
                    "mark": {"type": "text", "align": "left", "dx": 4, "color": _TEXT},
                    "encoding": {"text": {"field": "label"}},
                },
            ],
        }
    )


def _width(on_phone: int, else_: int) -> dict[str, str]:
    """Return the width of a picture; Vega takes a signal of this name for it."""
    return {"name": "width", "expr": f"windowSize()[0] < 700 ? {on_phone} : {else_}"}


def _inline_csv(head: str, lines: Sequence[str]) -> dict[str, Any]:
    """Return data in the form that takes the least room in a chat."""
    parse = dict.fromkeys(head.split(","), "number")
    return {
        "values": "\n".join((head, *lines)),
        "format": {"type": "csv", "parse": parse},
    }


def _dollars(money: int) -> str:
    return f"{money / MILLIONTHS:.4f}".rstrip("0").rstrip(".")


def _block(picture: dict[str, Any]) -> str:
    """Return the block of code that the page draws."""
    whole = {"background": "transparent", "config": _CONFIG, **picture}
    return f"```vega-lite\n{json.dumps(whole, separators=(',', ':'))}\n```"


# --------------------------------------------------------------------------------------
# owui_administration.usage_command
#
# The `/usage` command: what the models of this server cost, and what that bought.
#
# Users see what they have used. Administrators see all users, or one: `/usage`,
# `/usage 90d`, `/usage ann@school.example`, `/usage csv`. No model is asked.
# --------------------------------------------------------------------------------------


_COMMAND = "/usage"
_DAYS = re.compile(r"([1-9]\d{0,2})d", re.ASCII)
_USUAL_DAYS = 30
_MAX_SHOWN = 100
"""Lines of a table."""
_MAX_READ = 1000
"""Users with their models, after a table and a picture of the dearest."""
_MAX_LISTED = 5000
"""Lines of the CSV in a chat."""
_MAX_IN_FILE = 100_000
_SUMS = ("US dollars", "requests", "input tokens", "cached input", "output tokens")
"""The dollars first: a phone shows the first columns."""
_WEEK = 7
_FEW_REQUESTS = 20
"""The share of a week with fewer of them is chance."""

_UNKNOWN_WORD = (
    "`/usage` does not know the word “{}”. It knows:\n\n"
    "- `/usage`: the last 30 days\n"
    "- `/usage 90d`: as many days as you say, up to 999\n"
    "- `/usage csv`: a file for a spreadsheet; also `/usage 90d csv`\n"
    "- `/usage ann@school.example`: what one user has used (administrators)"
)
_OWN_ALONE = "Only administrators see what other users have used."
_NO_USER = "Open WebUI has no user with the address {}."
_NOTHING = "Nothing was counted in these days."
_WORDS = (
    "A request is one call of a model: an answer can take several. A token is about four "
    "letters. The input is all that the model reads: the whole chat each time. Cached "
    "input is a part of it that the model's server still had, and costs less."
)
_NOT_STORED = "Open WebUI did not store the file, so here is its beginning:\n"


_Cells = Sequence[str | int]
"""A line of a table."""


class UsageCommand(NamedTuple):
    """What a `/usage` asks for."""

    days: int = _USUAL_DAYS
    as_csv: bool = False
    address: str = ""
    """Of the user it is about."""
    unknown: str = ""
    """The first word that says nothing."""


def read_command(text: str) -> UsageCommand | None:
    """Return what a `/usage` asks for; None for other texts."""
    first, *words = text.lower().split() or [""]
    if first != _COMMAND:
        return None
    command = UsageCommand()
    for word in words:
        days = _DAYS.fullmatch(word)
        if days:
            command = command._replace(days=int(days[1]))
        elif word == "csv":
            command = command._replace(as_csv=True)
        elif "@" in word:
            command = command._replace(address=word)
        else:
            return UsageCommand(unknown=word[:40])
    return command


class UsageReport:
    """What `/usage` tells a user, and an administrator of all.

    `save_file` stores a file for the page; without one a program reads the answer.
    """

    def __init__(
        self,
        table: UsageTable,
        facts: CallFacts,
        today: date,
        save_file: SaveFile | None = None,
    ) -> None:
        self._table = table
        self._facts = facts
        self._today = today
        self._save_file = save_file

    async def lines(
        self, command: UsageCommand, left: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        """Yield the lines of the answer; raises what the database raises.

        `left` are the lines about what the user may still use.
        """
        yield f"{USAGE_HEADING}\n"
        if command.unknown:
            yield _UNKNOWN_WORD.format(_plain(command.unknown))
            return
        is_admin = self._facts["role"] == "admin"
        user_id = self._facts["user_id"]
        is_own = command.address in {"", self._facts["email"].lower()}
        if not is_own and not is_admin:
            yield _OWN_ALONE
            return
        if not is_own:
            user_id = await find_user_id(command.address)
            if not user_id:
                yield _NO_USER.format(_plain(command.address))
                return
        since = self._today - timedelta(command.days - 1)
        if is_admin and not command.address:
            part = self._of_all(since, as_csv=command.as_csv)
        else:
            part = self._of_user(user_id, command, since)
        async with aclosing(part):
            async for line in part:
                yield line
        if command.as_csv and self._save_file:
            return
        if is_own:  # each period, and each model this month
            first = longest_ago(self._today)
            own_rows = await self._table.user_rows(self._facts["user_id"], first)
            groups: dict[str, list[UsageRow]] = {}
            for period, name in PERIODS.items():
                start = period_start(period, self._today).isoformat()
                groups[name] = [row for row in own_rows if row.day >= start]
            for row in groups["this month"]:
                groups.setdefault(f"this month, {row.model}", []).append(row)
            yield "\n" + _table(("Your use (UTC)", *_SUMS), _sums_of(groups))
            yield "".join(f"\n- {line}" for line in left)
        yield f"\n{_WORDS}"

    async def _of_all(self, since: date, *, as_csv: bool) -> AsyncGenerator[str, None]:
        """Yield what all users had since a day."""
        day = since.isoformat()
        yield f"All users, {_days_text(since, self._today)}.\n"
        if as_csv:
            most = _MAX_IN_FILE if self._save_file else _MAX_LISTED
            rows = await self._table.all_rows(day, most)
            cells = [(row.user_id, row.model, *_numbers([row])) for row in rows]
            yield await self._csv_lines(
                ("user", "model"), cells, f"All users since {day}"
            )
            return
        rows = await self._table.all_rows(day, _MAX_READ)
        days = await self._table.day_rows(day)
        bought, saved = await self._table.purchases(day)
        yield self._day_picture(days, saved, since)
        for line in _summary(days, bought, self._today):
            yield line
        if self._save_file:
            yield user_picture(_cleaned(rows), sum(row.money for row in days))
        yield _purchase_table(bought, days)
        sums = _sums_of({f"{row.user_id}, {row.model}": [row] for row in rows})
        if sums:
            yield "\n" + _table((f"All users since {day}", *_SUMS), sums[:_MAX_SHOWN])

    async def _of_user(
        self, user_id: str, command: UsageCommand, since: date
    ) -> AsyncGenerator[str, None]:
        """Yield what one user had since a day."""
        day = since.isoformat()
        rows = await self._table.user_rows(user_id, day)
        bought, saved = await self._table.purchases(day, user_id)
        who = _plain(command.address) or "You"
        yield f"{who}, {_days_text(since, self._today)}.\n"
        if command.as_csv:
            rows.sort()
            cells = [(row.day, row.model, *_numbers([row])) for row in rows]
            title = f"{who} since {day}"
            yield await self._csv_lines(("day", "model"), cells, title)
            return
        yield self._day_picture(rows, saved, since)
        for line in _summary(rows, bought, self._today):
            yield line
        yield _purchase_table(bought, rows)
        if command.address:
            models: dict[str, list[UsageRow]] = {}
            for row in rows:
                models.setdefault(row.model, []).append(row)
            yield "\n" + _table((f"{who} since {day}", *_SUMS), _sums_of(models))

    def _day_picture(
        self, rows: Sequence[UsageRow], saved: dict[str, int], since: date
    ) -> str:
        """Return the picture of the days, for a page."""
        if not self._save_file:
            return ""
        return day_picture(_cleaned(rows), saved, since, self._today)

    async def _csv_lines(
        self, keys: Sequence[str], rows: Sequence[_Cells], title: str
    ) -> str:
        """Return the link to a file of CSV; for programs the text itself.

        Programs get the columns of version 1.0.0.
        """
        joined = [
            (", ".join(map(str, row[: len(keys)])), *row[len(keys) :]) for row in rows
        ]
        lines = map(_csv_line, [(title, *_SUMS), *joined[:_MAX_LISTED]])
        as_text = "\n".join(["```csv", *lines, "```"])
        if not self._save_file:
            return as_text
        name = f"usage-{self._today.isoformat()}.csv"
        content = "\n".join(map(_csv_line, [(*keys, *_SUMS), *rows]))
        address = await self._save_file(name, f"{content}\n")
        if not address:
            return f"{_NOT_STORED}\n{as_text}"
        return f"[{name}]({address}): {plural(len(rows), 'line')} for a spreadsheet."


def _summary(rows: Sequence[UsageRow], parts: Purchases, today: date) -> Iterator[str]:
    """Yield what is said about rows below their picture."""
    requests = sum(row.requests for row in rows)
    if not requests:
        yield _NOTHING
        return
    money = sum(row.money for row in rows)
    yield f"\n**{_money(money)}** for {plural(requests, 'request')}.\n"
    read = sum(row.input for row in rows)
    if read:
        # Some servers leave what was cached out of the input.
        cached = min(sum(row.cached for row in rows), read)
        line = (
            f"**{100 * cached / read:.0f}%** of the input came from the prompt cache."
        )
        if not parts.itemized:
            line += " How much that saved is not known."
        elif parts.saved:
            amount = _money(abs(parts.saved))
            if parts.saved < 0:
                line += f" Writing to the cache cost {amount} more than it saved"
            else:
                line += f" That saved {amount}"
                if parts.cache_writes:
                    line += ", after the cost of writing to the cache"
            if parts.itemized < requests:
                line += f" (known for {parts.itemized:,} of {requests:,} requests)"
            line += "."
        yield f"{line}\n"
    fallen = _fallen_share(rows, today)
    if fallen:
        yield f"⚠️ {fallen}\n"


def _fallen_share(rows: Sequence[UsageRow], today: date) -> str:
    """Return the message about a share of cached input that fell and stays low.

    Weeks end today: the share of the newest is still a third below that of the week
    before the fall.
    """
    weeks: dict[int, list[UsageRow]] = {}
    for row in rows:
        age = (today - date.fromisoformat(row.day)).days // _WEEK
        weeks.setdefault(age, []).append(row)
    shares: dict[int, float] = {}
    for age, week in weeks.items():
        read = sum(row.input for row in week)
        if read and sum(row.requests for row in week) >= _FEW_REQUESTS:
            shares[age] = sum(row.cached for row in week) / read
    for age in sorted(shares):
        before = shares.get(age + 1, 0)
        if shares[age] * 3 < before * 2 and shares.get(0, shares[age]) * 3 < before * 2:
            start = today - timedelta(_WEEK * (age + 1) - 1)
            return (
                f"In the week from {_day_text(start)} only {100 * shares[age]:.0f}% of "
                f"the input came from the cache, compared with {100 * before:.0f}% in "
                "the week before. Something changes the beginning of the requests: "
                "docs/history.md of the pipe says what could."
            )
    return ""


def _purchase_table(parts: Purchases, all_rows: Sequence[UsageRow]) -> str:
    """Return the table of what the money bought; nothing if that is not known.

    What is not itemized was counted by version 1.0.0, or its prices are not known.
    """
    if not any(parts):
        return ""
    requests = sum(row.requests for row in all_rows)
    money = sum(row.money for row in all_rows)
    named = (
        parts.reasoning_money
        + parts.answer_money
        + parts.search_money
        + parts.image_money
        + parts.container_money
    )
    rows: list[_Cells] = []

    def add(name: str, count: int, unit: str, amount: int) -> None:
        if count:
            rows.append((name, plural(count, unit), f"{amount / MILLIONTHS:.4f}"))

    add("Reading the chats", parts.input, "token", parts.itemized_money - named)
    add("Reasoning", parts.reasoning, "token", parts.reasoning_money)
    add("Answers", parts.answers, "token", parts.answer_money)
    add("Searches", parts.searches, "call", parts.search_money)
    add("Images", parts.images, "call", parts.image_money)
    add("Python", parts.containers, "container", parts.container_money)
    rest = requests - parts.itemized
    add("Not itemized", rest, "request", money - parts.itemized_money)
    add("All", requests, "request", money)
    add("of these: titles and other tasks", parts.tasks, "request", parts.task_money)
    add("of these: agents", parts.agents, "request", parts.agent_money)
    return "\n" + _table(("What the money bought", "how much", "US dollars"), rows)


def _sums_of(groups: Mapping[str, Sequence[UsageRow]]) -> list[_Cells]:
    """Return a line for each name: what its rows come to."""
    return [(name, *_numbers(rows)) for name, rows in groups.items()]


def _numbers(rows: Sequence[UsageRow]) -> tuple[str | int, ...]:
    """Return the cells of what rows come to."""
    dollars = sum(row.money for row in rows) / MILLIONTHS
    return (
        f"{dollars:.4f}",
        sum(row.requests for row in rows),
        sum(row.input for row in rows),
        sum(row.cached for row in rows),
        sum(row.output for row in rows),
    )


def _money(amount: int) -> str:
    """Return an amount as a bursar writes it."""
    dollars = amount / MILLIONTHS
    return f"${dollars:,.2f}" if dollars >= 0.01 or not amount else f"${dollars:.4f}"


def _day_text(day: date) -> str:
    return f"{day.day} {day:%B}"


def _days_text(first: date, last: date) -> str:
    if first == last:
        return f"{_day_text(last)} {last.year} (UTC)"
    year = "" if first.year == last.year else f" {first.year}"
    return f"{_day_text(first)}{year} to {_day_text(last)} {last.year} (UTC)"


def _table(head: _Cells, rows: Sequence[_Cells]) -> str:
    """Return a table in Markdown; numbers are on the right, and have commas."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    lines: list[str] = []
    for cells in (head, rule, *rows):
        texts = [
            f"{cell:,}" if isinstance(cell, int) else _plain(cell) for cell in cells
        ]
        lines.append(f"| {' | '.join(texts)} |")
    return "\n".join(lines)


_NOT_PLAIN = re.compile(r"[^\w.,:/@+=*()' -]")
"""Whoever signs up writes an address: it must be neither Markdown nor a new line."""
_IN_LINKS = re.compile(r"(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""A place in each address of which a page makes a link by itself."""


def _plain(text: str) -> str:
    """Return a text that means nothing to a page."""
    return _IN_LINKS.sub(" ", _NOT_PLAIN.sub(" ", text))


def _cleaned(rows: Iterable[UsageRow]) -> list[UsageRow]:
    """Return rows whose names can be drawn."""
    return [
        row._replace(user_id=_plain(row.user_id)[:60], model=_plain(row.model)[:60])
        for row in rows
    ]


def _csv_line(cells: _Cells) -> str:
    """Return a line of CSV; a spreadsheet takes some beginnings for a formula."""
    cleaned = (_plain(str(cell)).lstrip("=+-@ ") for cell in cells)
    return ",".join(f'"{cell}"' for cell in cleaned)


# --------------------------------------------------------------------------------------
# owui_administration.limits
#
# What the user of one call may use, and has used.
# --------------------------------------------------------------------------------------


_OVERDRAFT = 1.1
"""The share of a limit at which an answer ends that began below it."""
_MOST_AT_ONCE = 50
"""The answers that a limit is enough for, one of which may take so much of it."""
_NOT_READ = (
    "A rule about your usage is invalid, so you get no answers. An administrator has to "
    "correct USER_LIMITS_JSON."
)
_NO_PRICE = (
    "Your usage is limited in money, and the price of {} is not known. An "
    "administrator has to set it in CUSTOM_MODEL_PRICING_JSON."
)
_USED_UP = "Your limit of {limit} is used up: {used} so far. It resets on {start} at 00:00 UTC."
_MANY_AT_ONCE = (
    "of your answers under way may use up your limit of {limit}. Ask again when one is "
    "complete."
)
_NO_EFFORT = "This model has no effort that you may use. Choose another."


class _Budget(NamedTuple):
    """What a rule allows in its period, and what of it is used."""

    rule: LimitRule
    limit: float
    used: float
    as_text: Callable[[float], str]
    """Writes an amount, in dollars or tokens."""


@dataclass
class UserLimits:
    """What the rules allow the user of one call; without rules, everything."""

    rules: Sequence[LimitRule] = ()
    rows: list[UsageRow] = field(default_factory=list)
    """What was counted before, as far as a rule asks for it."""
    facts: CallFacts = field(default_factory=UNKNOWN_CALL.copy)
    table: UsageTable | None = None
    """Takes what is counted; None if nothing is."""
    problems: Sequence[str] = ()
    """What is wrong with the rules, for administrators."""
    today: date = field(default_factory=utc_today)
    effort_refusal: str = ""
    """Why no effort of the model may be used, once that is known."""
    has_given_model: bool = False
    """Whether an administrator chose the model: the one for tasks."""

    @property
    def is_admin(self) -> bool:
        """Whether an administrator asks."""
        return self.facts["role"] == "admin"

    @property
    def _is_counted(self) -> bool:
        """Whether the call costs the administrator: a user's own key may not."""
        return self.table is not None and not self.facts["user_pays"]

    @property
    def has_amounts(self) -> bool:
        """Whether a rule limits money or tokens."""
        return any(rule.per for rule in self.rules)

    def refusal(self, model: str, has_price: bool) -> str:
        if not self.is_admin and any(
            isinstance(rule, UnreadableRule) for rule in self.rules
        ):
            return _NOT_READ
        has_money = any(rule.money is not None for rule in self.rules)
        if self._is_counted and has_money and not has_price:
            return _NO_PRICE.format(model)
        under_way = self.table.under_way[self.facts["user_id"]] if self.table else 0
        reached = self._reached_limit(1) or self._reached_limit(
            1 - under_way / _MOST_AT_ONCE, f"{under_way} {_MANY_AT_ONCE}"
        )
        if reached:
            return reached
        if self.effort_refusal or self.has_given_model:
            return self.effort_refusal
        # A rule can name the model as the API does, or as the pipe lists it. But a caller
        # who asks for the mode pro has another model than the listed one.
        listed = self.facts["model"]
        resolved = resolve_model(listed)
        names = [model]
        asks_for_pro = model == f"{resolved.id}-pro" and not resolved.pro
        if not asks_for_pro:
            names.append(listed)
        for rule in self.rules:
            if rule.models is None:
                continue
            if not any(fits_pattern(name, rule.models) for name in names):
                allowed = ", ".join(map(_model_name, rule.models)) or "none"
                return (
                    f"{_model_name(model)} is not available to you. "
                    f"You may use: {allowed}."
                )
        return ""

    def forbidden_tools(self) -> list[str]:
        allowed = [rule.tools for rule in self.rules if rule.tools is not None]
        return [kind for kind in TOOL_KINDS if not _is_in_all(kind, allowed)]

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the next lower effort of those that the model knows, in their order.

        Else it is the lowest that is allowed. An effort that the model does not know
        counts as the highest.
        """
        allowed = [rule.efforts for rule in self.rules if rule.efforts is not None]
        usable = [effort for effort in known if _is_in_all(effort, allowed)]
        if not known or not allowed or asked in usable:
            return ""
        if not usable:
            self.effort_refusal = _NO_EFFORT
            return ""
        rank = known.index(asked) if asked in known else len(known)
        lower = [effort for effort in usable if known.index(effort) < rank]
        return lower[-1] if lower else usable[0]

    def count(self, model: str, counts: ResponseCounts, cost: float | None) -> str:
        """Count responses; return why the run ends, or an empty text."""
        if self._is_counted and self.table and counts.requests:
            row = UsageRow(
                user_id=self.facts["user_id"],
                day=self.today.isoformat(),
                model=model,
                requests=counts.requests,
                input=counts.input,
                cached=counts.cached,
                output=counts.output,
                money=round((cost or 0) * MILLIONTHS),
            )
            self.rows.append(row)
            self.table.add(row, counts.bought)
        return self._reached_limit(_OVERDRAFT)

    def _budgets(self) -> Iterator[_Budget]:
        """Yield what each rule limits; nothing where the call is not counted."""
        if not self._is_counted:
            return
        for rule in self.rules:
            start = period_start(rule.per, self.today).isoformat()
            rows = [row for row in self.rows if row.day >= start]
            if rule.money is not None:
                money = sum(row.money for row in rows) / MILLIONTHS
                yield _Budget(rule, rule.money, money, format_money)
            if rule.tokens is not None:
                tokens = sum(row.input + row.output for row in rows)
                yield _Budget(rule, rule.tokens, tokens, "{:,.0f} tokens".format)

    def _reached_limit(self, share: float, message: str = _USED_UP) -> str:
        """Return the message about a limit that is reached, or nothing.

        It is reached with this `share` of it. Of several the one with the longest
        period is named.
        """
        reached: list[_Budget] = []
        for budget in self._budgets():
            # A limit of 0 is reached from the beginning: it forbids.
            if budget.used >= budget.limit * share:
                reached.append(budget)
        if not reached:
            return ""
        rule, limit, used, as_text = max(
            reached, key=lambda budget: PERIOD_DAYS[budget.rule.per]
        )
        return message.format(
            limit=f"{as_text(limit)} a {rule.per}",
            used=as_text(used),
            start=next_start(rule.per, self.today),
        )

    def notices(self) -> list[str]:
        return self._remaining_lines(all_rules=False)

    def complaints(self) -> list[str]:
        if not self.is_admin:
            return []
        problems = list(self.problems)
        if self.table:
            problems.append(self.table.problem)
        return [problem for problem in problems if problem]

    def _remaining_lines(self, *, all_rules: bool) -> list[str]:
        """Return what is left of each limit: of all, or of those to be shown."""
        lines: list[str] = []
        for rule, limit, used, as_text in self._budgets():
            if rule.show or all_rules:
                left = as_text(max(0, limit - used)).removesuffix(" tokens")
                lines.append(f"{left} of {as_text(limit)} left {PERIODS[rule.per]}")
        return lines

    @property
    def is_counting(self) -> bool:
        return self.table is not None

    def usage_answer(
        self, text: str, save_file: SaveFile | None = None
    ) -> AsyncGenerator[str, None] | None:
        command = read_command(text)
        if self.table is None or command is None:
            return None
        report = UsageReport(self.table, self.facts, self.today, save_file)
        return report.lines(command, self._remaining_lines(all_rules=True))


def _model_name(model: str) -> str:
    """Return the name by which people choose a model; a pattern as it is."""
    return model if set("*?[") & set(model) else resolve_model(model).name


def _is_in_all(word: str, lists: Sequence[Sequence[str]]) -> bool:
    return all(word in allowed for allowed in lists)


async def read_user_limits(
    text: str, facts: CallFacts, table: UsageTable
) -> UserLimits:
    """Return what the user of a call may use, by the rules in `text`.

    Raises what the host's database raises.
    """
    all_rules, problem = read_limits(text)
    if all_rules is None:
        return UserLimits(facts=facts)
    today = utc_today()
    user_id = facts["user_id"]
    names = {user_id, facts["email"]}
    groups: set[str] = set()
    if any(rule.group for rule in all_rules):
        groups = await user_groups(user_id)
    rules = rules_of(all_rules, names, groups, facts["role"])
    rows: list[UsageRow] = []
    if any(rule.per for rule in rules) and not facts["user_pays"]:
        rows = await table.user_rows(user_id, longest_ago(today))
    # Where no one chose a model for a task, or the chosen one no longer exists, the host
    # takes the model that the client names.
    given_models = await chosen_task_models(facts["task"])
    return UserLimits(
        rules=rules,
        rows=rows,
        facts=facts,
        table=table,
        problems=[problem],
        today=today,
        has_given_model=facts["host_model"] in given_models,
    )


# --------------------------------------------------------------------------------------
# owui_administration.telemetry
#
# Spans and metrics of runs and tools, where Open WebUI's OpenTelemetry is on.
#
# Names are those of the semantic conventions for generative AI (docs/telemetry.md). They
# hold no text of a chat, and nothing about a person. Where the host exports nothing,
# nothing is imported or measured.
# --------------------------------------------------------------------------------------


_SCOPE = "openai_responses_manifold"
_MAX_NAME = 100
"""Characters of a name that is exported."""
_WORD = re.compile(r"[\w.-]{1,60}", re.ASCII)
_MAX_WORDS = 50
"""Words of servers that are kept apart: each is a series of its own in a database."""
_OTHER = "_OTHER"
"""The conventions' word for all others."""

_SECOND_BOUNDS = [0.01 * 2**n for n in range(14)]
_TOKEN_BOUNDS = [4**n for n in range(14)]
"""Bounds of histograms, as the conventions advise."""

_RunEvent = TypeVar("_RunEvent")
"""The pipe's events, which only the pipe can read."""
_ToolAnswer = TypeVar("_ToolAnswer")
_Attributes = dict[str, str | bool]


def _make_tracer() -> Any:
    return import_module("opentelemetry.trace").get_tracer(_SCOPE)


def _exportable_name(name: str) -> str:
    """Return a name that can be exported: not too long, and without lone surrogates.

    Half a character would end the export of all spans that wait with it, those of
    others too.
    """
    return well_formed(name[:_MAX_NAME])


class ServerWords:
    """The words of servers that are kept apart, for all calls of the pipe."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def known_or_other(self, word: str) -> str:
        """Return a word, or that for all others if there are too many."""
        if word in self._known:
            return word
        if not _WORD.fullmatch(word) or len(self._known) >= _MAX_WORDS:
            return _OTHER
        self._known.add(word)
        return word


class Telemetry:
    """What the host's collector learns of one call of the pipe."""

    def __init__(self, facts: CallFacts, words: ServerWords) -> None:
        self._facts = facts
        self._words = words
        self._run: _Run | None = None

    def count(self, counts: ResponseCounts, cost: float | None) -> None:
        if self._run:
            self._run.used.append(counts)
            self._run.cost += cost or 0

    def observe_run(
        self,
        events: AsyncGenerator[_RunEvent, None],
        model: str,
        address: str,
        describe: Callable[[_RunEvent], EventWords],
    ) -> AsyncGenerator[_RunEvent, None]:
        """Return the events of a run, measured if the host exports that.

        `address` is the server's. `describe` is asked about each event.
        """
        if not exports_telemetry():
            return events
        in_url = f"[{address}]" if ":" in address else address  # of IPv6
        is_azure = Endpoint(f"https://{in_url}", "").is_azure
        attributes: _Attributes = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "azure.ai.openai" if is_azure else "openai",
            "gen_ai.request.model": _exportable_name(model),
            "server.address": address,
        }
        if self._facts["task"]:
            attributes["openai_responses.task"] = self._facts["task"]
        if self._facts["user_pays"]:
            attributes["openai_responses.own_key"] = True
        self._run = _Run(self._words, attributes)
        return self._run.observe(events, describe)

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_ToolAnswer],
        has_failed: Callable[[_ToolAnswer], bool],
    ) -> _ToolAnswer:
        """Return the result of a tool, whose time is a span inside that of its run."""
        if not exports_telemetry():
            return await work
        # A model writes the name of the tool that it calls.
        name = _exportable_name(name)
        attributes: _Attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
        }
        with _make_tracer().start_as_current_span(
            f"execute_tool {name}",
            attributes=attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            try:
                result = await work
            except BaseException as error:
                _fail(span, type(error).__name__)
                raise
            if has_failed(result):
                _fail(span, "tool_error")
        return result


def _fail(span: Any, word: str) -> None:
    """Mark a span of OpenTelemetry as failed; `word` says why."""
    span.set_attribute("error.type", word)
    span.set_status(import_module("opentelemetry.trace").StatusCode.ERROR)


class _Run:
    """What is measured of one run."""

    def __init__(self, words: ServerWords, attributes: _Attributes) -> None:
        self._meter = import_module("opentelemetry.metrics").get_meter(_SCOPE)
        self._words = words
        self._attributes = attributes
        self.used: list[ResponseCounts] = []
        """What its responses have used."""
        self.cost = 0.0
        """In US dollars, as far as it is known."""
        self._span = _make_tracer().start_span(
            f"chat {attributes['gen_ai.request.model']}",
            kind=import_module("opentelemetry.trace").SpanKind.CLIENT,
            attributes=attributes,
        )
        self._began = monotonic_seconds()
        self._has_text = False
        self._error = "cancelled"

    async def observe(
        self,
        events: AsyncGenerator[_RunEvent, None],
        describe: Callable[[_RunEvent], EventWords],
    ) -> AsyncGenerator[_RunEvent, None]:
        """Yield `events`; what is done for them belongs to the span.

        The span is the current one only while an event is awaited: between two events
        the reader goes on in its own context, and may close the run in another task.
        """
        use_span = import_module("opentelemetry.trace").use_span
        # Texts of exceptions may hold what a span must not.
        hidden = {"record_exception": False, "set_status_on_exception": False}
        try:
            async with aclosing(events):
                while True:
                    with use_span(self._span, **hidden):
                        event = await anext(events, None)
                    if event is None:
                        break
                    self._note(describe(event))
                    yield event
        except Exception as error:
            self._error = type(error).__name__
            raise
        finally:
            self._end()

    def _note(self, words: EventWords) -> None:
        match words.word:
            case "text" if not self._has_text:
                self._has_text = True
                self._record("openai_responses.time_to_first_text", self._seconds())
            case "retry":
                self._count("retries", "1", 1)
            case "recovery":
                self._count("recoveries", "1", 1)
            case "end":
                word = words.kind
                if words.code:
                    word = self._words.known_or_other(words.code)
                self._span.set_attribute("gen_ai.response.finish_reasons", [word])
                if words.model:
                    model = _exportable_name(words.model)
                    self._span.set_attribute("gen_ai.response.model", model)
                is_error = words.kind not in ("completed", "incomplete")
                self._error = word if is_error else ""

    def _end(self) -> None:
        """Note the end, and what was used, if the server has said that."""
        used = self.used
        if any(counts.requests for counts in used):
            cached = sum(counts.cached for counts in used)
            self._span.set_attribute("gen_ai.usage.cache_read.input_tokens", cached)
            read = sum(counts.input for counts in used)
            written = sum(counts.output for counts in used)
            for kind, count in (("input", read), ("output", written)):
                self._span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
                more = {"gen_ai.token.type": kind}
                self._record("gen_ai.client.token.usage", count, "{token}", more)
            if self.cost:
                self._count("cost", "{USD}", self.cost)
        if self._error:
            self._attributes["error.type"] = self._error
            _fail(self._span, self._error)
        self._record("gen_ai.client.operation.duration", self._seconds())
        self._span.end()

    def _seconds(self) -> float:
        return monotonic_seconds() - self._began

    def _count(self, name: str, unit: str, number: float) -> None:
        counter = self._meter.create_counter(f"openai_responses.{name}", unit)
        counter.add(number, self._attributes)

    def _record(
        self,
        name: str,
        number: float,
        unit: str = "s",
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        bounds = _SECOND_BOUNDS if unit == "s" else _TOKEN_BOUNDS
        histogram = self._meter.create_histogram(
            name, unit, explicit_bucket_boundaries_advisory=bounds
        )
        histogram.record(number, {**self._attributes, **more})


# --------------------------------------------------------------------------------------
# owui_administration.account
#
# One call of the pipe, as the administration sees it.
# --------------------------------------------------------------------------------------


_Event = TypeVar("_Event")
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class Account:
    """What decides about one call of the pipe (`CallAccount`)."""

    limits: UserLimits
    telemetry: Telemetry
    tokens: EntraTokens
    endpoints: EndpointChoice | None = None
    """None where the valves of the pipe say where it is answered."""
    endpoints_text: str = ""
    """ENDPOINTS_JSON."""

    def endpoint_trials(self, models: Sequence[str]) -> list[EndpointTrial]:
        base_url = self.limits.facts["base_url"]
        return endpoint_trials(self.endpoints_text, base_url, models)

    def count_responses(
        self, model: str, counts: ResponseCounts, cost: float | None
    ) -> str:
        """Count responses; an unknown cost counts as none."""
        self.telemetry.count(counts, cost)
        return self.limits.count(model, counts, cost)

    def observe_run(
        self,
        events: AsyncGenerator[_Event, None],
        model: str,
        address: str,
        describe: Callable[[_Event], EventWords],
    ) -> AsyncGenerator[_Event, None]:
        events = self.telemetry.observe_run(events, model, address, describe)
        limits = self.limits
        if limits.table and limits.has_amounts:
            return limits.table.while_under_way(limits.facts["user_id"], events)
        return events

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_Outcome],
        has_failed: Callable[[_Outcome], bool],
    ) -> _Outcome:
        return await self.telemetry.observe_tool(name, work, has_failed)

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        """Return a token, or the problem; without a `scope` it is that of the server."""
        token_scope = scope.strip() or entra_scope(Endpoint(base_url, ""))
        try:
            token = await self.tokens.token(token_scope)
        except InvalidRequest as error:
            return "", str(error)
        return token, ""


# --------------------------------------------------------------------------------------
# owui_administration.agent
#
# Models of a Pipelines server, where the agent pipeline runs.
#
# The pipe asks the filter for its own models. For these Open WebUI calls the filter: its
# `inlet` before the question, its `stream` for each event of the answer.
# --------------------------------------------------------------------------------------


class LimitReached(Exception):
    """A question is refused; the host shows the message in the chat."""


def agent_facts(user: JsonObject, model: str) -> CallFacts:
    """Return the facts of a question to an agent; `user` is the host's `__user__`."""
    return {
        **UNKNOWN_CALL,
        "user_id": as_text(user.get("id")),
        "email": as_text(user.get("email")),
        "role": as_text(user.get("role")),
        "model": model,
    }


def find_agent_model(model: JsonObject, request: Any) -> str:
    """Return the model of a Pipelines server that the host asks; empty for others.

    It is the id as the host lists it, with the server's in front.
    `model` is the host's `__model__`. One of the workspace has only the id of its base,
    which the application that has got the `request` knows.
    """
    base_id = value_at(model, "info", "base_model_id")
    if base_id:
        if request is None:
            return ""
        model = as_mapping(request.app.state.MODELS.get(base_id))
    if "pipeline" not in model:
        return ""
    return str(model.get("id"))


def listed_name(model_id: str) -> str:
    """Return the name by which a Pipelines server lists a model."""
    return model_id.split(".", 1)[-1]


def is_legacy(metadata: JsonObject) -> bool:
    """Say whether the host chooses the tools of a chat in a request of its own.

    That is a task of the same model, for which the host calls no filter
    (utils/middleware.py:1044 of 0.12.4).
    """
    return bool(value_at(metadata, "params", "function_calling") == "legacy")


_FLAG = TypeAdapter(bool)


def wants_stream(body: JsonObject) -> bool:
    """Say whether a request asks for a stream.

    Open WebUI takes every text for a yes (`form_data.get("stream")`, 0.12.4), also
    "false"; a Pipelines server lets pydantic read the field, and streams if there is
    none. Only an answer with a stream shows the filter its usage, so whatever is not
    plainly a yes is a no, and the filter tells it to both of them.
    """
    try:
        return _FLAG.validate_python(body.get("stream"))
    except ValidationError:
        return False


def usage_row(user_id: object, model: str, usage: JsonObject) -> UsageRow:
    """Return what an answer reports, in the API's names or those of Chat Completions.

    A cost that is not reported counts as none.
    """
    counts = read_usage(usage) or Usage()
    return UsageRow(
        user_id=as_text(user_id),
        day=utc_today().isoformat(),
        model=model,
        requests=1,
        input=counts.input,
        cached=counts.cached,
        output=counts.output,
        money=round((counts.cost or 0) * MILLIONTHS),
    )


# --------------------------------------------------------------------------------------
# owui_administration.names
#
# Names in the rules that Open WebUI does not know, for administrators.
#
# A mistyped group would be a rule that silently holds for no one. An address that no
# one has is worse: whoever signs up with it gets its rule.
# --------------------------------------------------------------------------------------


_CHECK_SECONDS = 60.0
_MAX_LOOKED_UP = 100
"""Of users, and of groups: each is one or two questions to the database."""
_MAX_SHOWN_NAMES = 9


class NameCheck:
    """Looks names up when an administrator asks, at most once a minute."""

    def __init__(self) -> None:
        self._texts = ("", "")
        self._until = 0.0
        self._problem = ""

    async def problem(self, limits: str, endpoints: str) -> str:
        """Return the message about names in the two valves, or nothing.

        It is advice: a database that cannot be asked says nothing about the names.
        """
        texts = (limits, endpoints)
        now = monotonic_seconds()
        if texts == self._texts and now <= self._until:
            return self._problem
        users: list[str] = []
        groups: list[str] = []
        for rule in read_limits(limits)[0] or ():
            users.append(rule.user)
            groups.append(rule.group)
        for entry in read_endpoints(endpoints)[0]:
            groups += entry.groups
        unknown: list[str] = []
        try:
            for names, is_known in ((groups, has_group), (users, has_user)):
                named = dict.fromkeys(name for name in names if name)
                for name in list(named)[:_MAX_LOOKED_UP]:
                    if not await is_known(name):
                        unknown.append(name)
        except Exception:  # whatever the host's database raises
            return ""
        self._problem = ""
        if unknown:
            shown = ", ".join(unknown[:_MAX_SHOWN_NAMES])
            self._problem = (
                f"Open WebUI has no group or user named {shown}, but the valves of the "
                "filter have rules for them. These apply to nobody until somebody signs "
                "up with such an address."
            )
        self._texts = texts
        self._until = now + _CHECK_SECONDS
        return self._problem


# --------------------------------------------------------------------------------------
# owui_administration.filter
#
# The filter that the pipe asks before each of its calls. The two are files of their own,
# so only plain data goes between them: texts, numbers, lists and dicts.
# --------------------------------------------------------------------------------------


_OTHER_ID = (
    "The id of this filter is {}, so the pipe does not find it, and limits do not "
    "apply. Install it with the id " + ADMINISTRATION_ID + "."
)
_NOT_KNOWN = (
    "Your usage cannot be read at the moment (Open WebUI's database reports {}), so "
    "nothing is sent. Try again; if the problem persists, tell an administrator."
)

_NO_SETTINGS = (
    "The limits cannot be read at the moment, so nothing is sent. Try again; if the "
    "problem persists, tell an administrator."
)
_NO_STREAM = (
    "Your usage is limited, and this model's usage is counted only in a stream. Send "
    "the request with `stream`."
)
_LEGACY = (
    "Your usage is limited, and with Function Calling set to Legacy a part of this "
    "model's usage is not counted. Set it to Native in the chat's controls."
)


EventEmitter = Callable[[JsonObject], Awaitable[object]]
"""The host's: it sends an event to the page."""


class Filter:
    """Decides for the pipe what a user may use, and where it is asked for.

    The pipe finds it by its id, `openai_responses_administration`, while it is active.
    """

    CONTRACT = ADMINISTRATION_CONTRACT
    """The number of what goes between the filter and the pipe, which knows one."""

    class Valves(BaseModel):
        """Settings of the administrator."""

        priority: int = Field(
            default=0, description="Filters with a lower number run earlier."
        )
        USER_LIMITS_JSON: str = Field(
            default="",
            description="What users may use, as a JSON list of rules (docs/limits.md): "
            '`[{"group": "students", "money": 5, "per": "month"}]`. `[]` sets no '
            "limits, but counts for `/usage`. If empty, nothing is counted.",
        )
        ENDPOINTS_JSON: str = Field(
            default="",
            description="Other addresses and keys for some groups and models, as a JSON "
            "list; the first entry that matches is used (docs/gateways.md): "
            '`[{"groups": ["staff"], "base_url": "https://eu.api.openai.com/v1", '
            '"api_key": "..."}]`.',
            json_schema_extra={"input": {"type": "password"}},
        )

    def __init__(self) -> None:
        """Open nothing: the host makes a Filter at every upload."""
        self.valves = self.Valves()
        self._usage = UsageTable()
        self._words = ServerWords()
        self._failures = UserReports(DOWN_SECONDS)
        self._tokens = EntraTokens()
        self._names = NameCheck()

    async def begin(self, facts: CallFacts) -> Account:
        """Return what decides about one call of the pipe, and takes its usage."""
        rules = self.valves.USER_LIMITS_JSON
        entries = self.valves.ENDPOINTS_JSON
        try:
            limits = await read_user_limits(rules, facts, self._usage)
            endpoints = await choose_endpoints(entries, facts, self._failures)
            if limits.is_admin:
                unknown_names = await self._names.problem(rules, entries)
                limits.problems = (*limits.problems, unknown_names)
        except HostTooOld as missing:
            # The pipe knows another class of that name: it refuses the call by the words.
            limits = UserLimits(facts=facts)
            endpoints = EndpointChoice(
                [], facts["base_url"], self._failures, facts["user_id"], str(missing)
            )
        telemetry = Telemetry(facts, self._words)
        return Account(limits, telemetry, self._tokens, endpoints, entries)

    async def inlet(  # noqa: PLR0913, PLR0917 - the host passes these, by name
        self,
        body: JsonObject,
        __user__: JsonObject | None = None,
        __model__: JsonObject | None = None,
        __request__: Any = None,
        __metadata__: JsonObject | None = None,
        __id__: str = ADMINISTRATION_ID,
        __event_emitter__: EventEmitter | None = None,
    ) -> JsonObject:
        """Refuse a question to the agent pipeline above a limit.

        The pipe asks for its own questions. What is raised is shown in the chat. Whether
        the answer streams is settled here for all who read the body later.
        """
        body = {**body, "stream": wants_stream(body)}
        user = __user__ or {}
        if (
            __id__ != ADMINISTRATION_ID
            and user.get("role") == "admin"
            and __event_emitter__
        ):
            warning = {"type": "warning", "content": _OTHER_ID.format(__id__)}
            await __event_emitter__({"type": "notification", "data": warning})
        model = find_agent_model(__model__ or {}, __request__)
        if not model:
            return body
        facts = agent_facts(user, listed_name(model))
        limits = await self._agent_limits(facts, __id__)
        refusal = limits.refusal(model, has_price=True)
        if not refusal and limits.has_amounts and not body["stream"]:
            refusal = _NO_STREAM
        if not refusal and limits.has_amounts and is_legacy(__metadata__ or {}):
            refusal = _LEGACY
        if refusal:
            # An inlet that raises ends the question: Open WebUI shows the text in the
            # chat.
            raise LimitReached(refusal)
        return body

    async def _agent_limits(self, facts: CallFacts, filter_id: str) -> UserLimits:
        """Return what the user of an agent may use; raises LimitReached."""
        try:
            rules = self.valves.USER_LIMITS_JSON
            stored = {} if rules.strip() else await stored_valves(filter_id)
            if stored is None or as_text(stored.get("USER_LIMITS_JSON")).strip():
                raise LimitReached(_NO_SETTINGS)  # the host could not read the valves
            return await read_user_limits(rules, facts, self._usage)
        except LimitReached:
            raise
        except Exception as error:
            # Its text may hold values of a statement, and would be shown.
            kind = type(error).__name__
            raise LimitReached(_NOT_KNOWN.format(kind)) from None

    def stream(
        self,
        event: JsonObject,
        __user__: JsonObject | None = None,
        __model__: JsonObject | None = None,
        __request__: Any = None,
        __metadata__: JsonObject | None = None,
    ) -> JsonObject:
        """Count what an answer of the agent pipeline reports.

        In an arena `__model__` is the arena, whichever model answers.
        """
        # Stream filters see every chunk; few of them report usage.
        usage = event.get("usage")
        if not isinstance(usage, dict) or not self.valves.USER_LIMITS_JSON.strip():
            return event
        metadata = {"model": __model__, **(__metadata__ or {})}
        model = find_agent_model(model_entry(metadata, __request__), __request__)
        if model:
            user_id = (__user__ or {}).get("id")
            row = usage_row(user_id, listed_name(model), usage)
            # The prices of its parts are not reported.
            self._usage.add(row, Purchases(agents=1, agent_money=row.money))
        return event
