"""
title: OpenAI Responses Manifold
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: GPT models over the Responses API, with reasoning that is remembered.

Built by scripts/bundle.py from pipes/; do not edit. Each module follows those that
it imports; the last one has the class Pipe.
"""

import asyncio
import base64
import hashlib
import hmac
import html
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
import zlib
from abc import ABC, abstractmethod
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
    AbstractAsyncContextManager,
    AbstractContextManager,
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
from itertools import accumulate, chain, groupby, islice, zip_longest
from operator import attrgetter, itemgetter
from pathlib import Path
from reprlib import repr as short_repr
from threading import Lock
from traceback import extract_tb
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Protocol,
    Self,
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

import aiohttp
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SkipValidation,
    StrictBool,
    StrictStr,
    TypeAdapter,
    ValidationError,
    field_validator,
)
from pydantic.alias_generators import to_camel

# --------------------------------------------------------------------------------------
# openai_responses.json_input
#
# JSON that others wrote, which may be invalid.
# --------------------------------------------------------------------------------------


JsonObject = Mapping[str, Any]
"""One that is only read."""

MAX_JSON_BYTES = 64 * 1024 * 1024
"""Of an event or a body: each can be a whole response with its images."""
MAX_JSON_DEPTH = 128
"""Recursive code, ours and the host's, fails at some hundreds."""
_VALUE_BYTES = 32
"""About what a value takes in memory beside its text: `[],` becomes 64 bytes."""


def load_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text; raises ValueError, also if it is too deep."""
    with suppress(RecursionError):
        value = json.loads(text)
        if not is_too_deep(value):
            return value
    raise ValueError("too deep")


def is_too_deep(value: object) -> bool:
    """Say whether a value has more levels than MAX_JSON_DEPTH."""
    return any(depth > MAX_JSON_DEPTH for depth, _ in enumerate(_levels(value)))


def _levels(value: object) -> Iterator[list[Any]]:
    """Yield the values of each level, names of objects among them.

    A value that contains itself has levels without end.
    """
    level = [value]
    while level:
        yield level
        below: list[Any] = []
        for parent in level:
            if isinstance(parent, dict):
                below += parent
                below += parent.values()
            elif isinstance(parent, list):
                below += parent
        level = below


def json_weight(text: bytes | bytearray) -> int:
    """Return about how many bytes a JSON text takes once it is parsed."""
    # A value stands behind a comma, or is the first behind an opening.
    without_openings = text.translate(None, b"[{,")
    values = len(text) - len(without_openings)
    return len(text) + _VALUE_BYTES * values


def parse_json_object(text: object) -> dict[str, Any] | None:
    """Return the JSON object of a text, None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        value = load_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def parse_string_map(text: str) -> Mapping[str, str] | None:
    """Return the JSON object of texts in a text; {} for an empty text."""
    texts = parse_json_object(text.strip() or "{}")
    if texts is None:
        return None
    for value in texts.values():
        if not isinstance(value, str):
            return None
    return texts


def clamp_number(value: object, least: int, most: int, default: int) -> int:
    """Return a number within its limits; anything else is the default."""
    try:
        number = float(str(value).strip())
        clamped = min(max(number, least), most)
        return int(clamped)
    except ValueError:  # no number, or NaN
        return default


_KILOBYTE = 1024


def count_entries(value: object, depth: int) -> int:
    """Return about how large a JSON value is: entries and kilobytes, to a depth."""
    if isinstance(value, str):
        return len(value) // _KILOBYTE
    rows = list(value.values()) if isinstance(value, Mapping) else as_list(value)
    count = len(rows)
    if depth <= 0:
        return count
    for row in rows:
        # Most values are short texts and numbers; a call for each would be half the time.
        if isinstance(row, str):
            count += len(row) // _KILOBYTE
        elif isinstance(row, (dict, list)):
            count += count_entries(row, depth - 1)
    return count


_VALUE_SIZE = 10
"""What each value adds to a size; a walk takes about as long for ten characters."""
_MAX_VALUE_DEPTH = 64


class JsonTooLarge(ValueError):
    """What others sent is more than is read."""


class JsonBudget:
    """The work that may still be done on what others sent."""

    def __init__(self, left: int) -> None:
        """Begin with the size that may be read."""
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
    size = _VALUE_SIZE
    for depth, level in enumerate(_levels(value)):
        for part in level:
            if isinstance(part, str):
                size += len(part)
            elif isinstance(part, dict | list):
                size += _VALUE_SIZE * len(part)
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
            return _rows_match(value, schema_of_rows)
        case dict():
            return _entries_match(value, schema)
    return bool(schema(value))


def _rows_match(value: object, schema: Any) -> bool:
    if not isinstance(value, list):
        return False
    return all(matches_schema(row, schema) for row in value)


def _entries_match(value: object, schemas: JsonObject) -> bool:
    """Say whether a value is an object with no other keys, and matching values."""
    if not isinstance(value, Mapping) or not value.keys() <= schemas.keys():
        return False
    return all(matches_schema(value[key], schemas[key]) for key in value)


def as_mapping(value: object) -> JsonObject:
    """Return a JSON object, an empty one for anything else."""
    return value if isinstance(value, (dict, Mapping)) else {}


def value_at(value: object, *keys: str) -> Any:
    """Return what stands in objects in each other; None where one is missing."""
    for key in keys:
        value = as_mapping(value).get(key)
    return value


def as_list(value: object) -> list[Any]:
    """Return a JSON array, an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """Return a text, an empty one for anything else."""
    return value if isinstance(value, str) else ""


# --------------------------------------------------------------------------------------
# openai_responses.errors
#
# The exceptions of this package, and the API's own error.
#
# ResponsesError
#  ├─ InvalidRequest         our own check refused it; nothing was sent
#  │   └─ InvalidSetting     because of a field of the endpoint
#  ├─ ConnectionFailed       no connection, or it broke before an answer
#  ├─ TimedOut               the server or the run took too long
#  ├─ ResponseLost           a background response whose rest cannot be had
#  ├─ ApiRefused             an HTTP status of 400 or more
#  ├─ UnreadableAnswer       an answer that is not what the API sends
#  ├─ AnswerTooLarge         an answer that is not read on
#  └─ MalformedEvent         one event of a stream that cannot be read
#
# `str(error)` is our own sentence for a person, without body, header or key. What an
# administrator has to look at is in `fault`, for a shell to say with its own names.
# --------------------------------------------------------------------------------------


_PLACE_SOMEWHERE = re.compile(r"\b(input|tools)\[\d{1,6}\]")


class SafetyNotice(NamedTuple):
    """What OpenAI's monitoring has to say about an answer that it stopped.

    A model wrote `explanation` and `advice` about the chat, for people to read: they are
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
    """Whether it was found in a text, where words of the request may stand."""

    @property
    def text(self) -> str:
        """The place and the words."""
        return f"{self.param} {self.message}"

    @property
    def names_a_place(self) -> bool:
        """Whether a place in the request is named anywhere, maybe in a quote from it."""
        return _PLACE_SOMEWHERE.search(self.text) is not None

    @property
    def status(self) -> int:
        """The HTTP status that other servers send as the code, else 0."""
        code = self.code or ""
        return int(code) if re.fullmatch("[45][0-9]{2}", code) else 0


class Failure(NamedTuple):
    """A failure before the first event.

    `status` is None without an HTTP answer, 200 if the stream began with an error.
    `retry_after` is in seconds; `should_retry` is what the server says.
    """

    status: int | None = None
    error: ApiError = ApiError()
    retry_after: float | None = None
    should_retry: bool | None = None


SettingName = Literal[
    "api_key", "base_url", "ca_bundle", "extra_headers", "proxy", "verify_ssl"
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


class ResponsesError(Exception):
    """What this package raises on purpose."""

    failure: Failure | None = None
    """Why the request may be sent again; None if it may not."""
    is_final = False
    """Whether nothing more of the response is read."""
    was_sent = False
    """Whether the server may be working on the request."""
    status = 0
    """That of HTTP, if there was an answer."""

    def __init__(self, sentence: str = "", fault: SettingFault = NO_FAULT) -> None:
        """Keep the settings that can be the cause."""
        super().__init__(sentence)
        self.fault = fault


class InvalidRequest(ResponsesError):
    """A request that is not sent."""


class InvalidSetting(InvalidRequest):
    """A field of the endpoint has a value that cannot be used."""

    def __init__(self, name: SettingName, reason: str) -> None:
        """Keep the name of the field; `reason` is a sentence that does not name it."""
        super().__init__(reason, SettingFault((name,), "certain"))


class ConnectionFailed(ResponsesError):
    """The server could not be reached, or went away before it answered."""

    failure = Failure()

    def __init__(
        self, sentence: str, *, was_sent: bool = True, fault: SettingFault = NO_FAULT
    ) -> None:
        """Note whether the server may have got the request."""
        super().__init__(sentence, fault)
        self.was_sent = was_sent


TimeoutKind = Literal["first_event_timeout", "idle_timeout", "total_timeout"]


class TimedOut(ResponsesError):
    """A time limit of the run was exceeded."""

    was_sent = True

    def __init__(self, kind: TimeoutKind) -> None:
        """Note which limit it was."""
        super().__init__("The model's server did not answer in time. Try again.")
        self.kind: TimeoutKind = kind
        self.is_final = kind == "total_timeout"
        self.failure = None if self.is_final else Failure()


class ResponseLost(ResponsesError):
    """A background response that can no longer be read."""


class UnreadableAnswer(ResponsesError):
    """The answer does not have the form of the Responses API."""


class AnswerTooLarge(ResponsesError):
    """The answer is larger than what is accepted."""

    is_final = True

    def __init__(self) -> None:
        """Use one sentence for all parts."""
        super().__init__("The model's server sent more data than is accepted.")


class MalformedEvent(ResponsesError):
    """An event of a stream cannot be read; the answer is asked for in one piece."""

    failure = Failure(error=ApiError(param="stream"), should_retry=False)


class ApiRefused(ResponsesError):
    """The API answered with an HTTP status of 400 or more, or with an error."""

    def __init__(
        self,
        sentence: str,
        failure: Failure,
        request_id: str = "",
        fault: SettingFault = NO_FAULT,
    ) -> None:
        """Keep the `failure`, its status and error, and OpenAI's id of the request."""
        super().__init__(sentence, fault)
        self.failure: Failure = failure
        self.status = failure.status or 0
        self.error = failure.error
        self.request_id = request_id


def read_api_error(wire: object) -> ApiError:
    """Return the error of a body, a response, or either form of the event.

    A gateway may hold the API's own body as a text.
    """
    # Bodies and the live event nest the error, the documented event is flat.
    while isinstance(wire, Mapping) and isinstance(wire.get("error"), Mapping):
        wire = wire["error"]
    fields = {"message": wire} if isinstance(wire, str) else as_mapping(wire)
    if isinstance(fields.get("error"), str):  # xAI: the code stands beside the words
        fields = {**fields, "message": fields["error"]}
    # FastAPI, and so vLLM, lists what does not fit its types.
    if isinstance(fields.get("detail"), list):
        fields = _read_detail(fields["detail"])
    message = as_text(fields.get("message") or fields.get("detail"))
    # OpenRouter has the API's body as a text in `metadata.raw` (tailcallhq/forgecode
    # 892), LiteLLM in its own message (BerriAI/litellm 34788). A gateway's own error
    # names no place; the API's may quote what looks like a body.
    raw = as_text(as_mapping(fields.get("metadata")).get("raw"))
    if not fields.get("param"):
        inner = _inner_error(raw) or _inner_error(message)
        if inner is not None:
            return inner._replace(is_relayed=True)
    return ApiError(
        code=_read_code(fields.get("code")),
        type=as_text(fields.get("type")) or None,
        param=as_text(fields.get("param")) or None,
        message=f"{message} {raw}".strip(),
        notice=_read_notice(fields.get("misalignment")),
    )


def _read_code(code: object) -> str | None:
    """Return the code of an error; gateways send an HTTP status as a number."""
    if isinstance(code, int) and 400 <= code < 600:
        return str(code)
    return as_text(code) or None


def _read_notice(wire: object) -> SafetyNotice:
    """Return the notice in the `misalignment` of an error, an empty one without it."""
    fields = as_mapping(wire)
    return SafetyNotice(
        explanation=as_text(fields.get("detailed_explanation")),
        advice=as_text(as_mapping(fields.get("steer")).get("message")),
        category=as_text(fields.get("error_type")),
        review_target=as_text(fields.get("review_target")),
    )


def _read_detail(rows: Iterable[object]) -> dict[str, Any]:
    """Return words and place of what FastAPI's servers found, the most exact row.

    Its `loc` is like `["body", "input", "list[Item]", 3, "Item", "id"]`: each form that
    a value could have has a row, and names of types are in between.
    """
    most_exact = max(map(as_mapping, rows), key=_length_of_location, default={})
    location = as_list(most_exact.get("loc"))
    steps = [f"[{key}]" if isinstance(key, int) else f".{key}" for key in location[1:]]
    path = "".join(step for step in steps if _PATH_STEP.fullmatch(step))
    return {"message": most_exact.get("msg"), "param": path[1:]}


_PATH_STEP = re.compile(r"\[\d+]|\.[a-z_\d]+")


def _length_of_location(row: Mapping[str, Any]) -> int:
    return len(as_list(row.get("loc")))


def _inner_error(text: str) -> ApiError | None:
    """Return the error of a body inside of a text, None if there is none."""
    begin = text.find("{", 0, _MAX_PREFIX)
    try:
        body, _ = json.JSONDecoder().raw_decode(text[:_MAX_INNER_BODY], begin)
    except (ValueError, RecursionError):
        return None
    inner = as_mapping(body).get("error")
    if not isinstance(inner, Mapping):
        return None
    error = read_api_error(inner)
    return error if error.message else None


_MAX_PREFIX = 1000
_MAX_INNER_BODY = 100_000
"""Characters of a text in which a body is looked for."""


# --------------------------------------------------------------------------------------
# openai_responses.redaction
#
# Removes secrets from text: known values, then what looks like a secret.
#
# Text that is already `[redacted]` is left alone. No rule may look behind a character
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
- A JSON Web Token begins with `{"` in base64, a Fernet token with its version and four
  bytes of a time that are zero for a while yet.
"""


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` with `[redacted]` in place of `secrets` and of what looks like one.

    Secrets of less than six characters are ignored: usual words contain them.
    """
    known = {form for secret in secrets for form in _forms(secret.strip())}
    for form in sorted(known, key=_longest_first):
        parts = [_redact_text(part, form) for part in text.split(_REDACTED)]
        text = _REDACTED.join(parts)
    parts = [_LOOKS_SECRET.sub(_keep_name, part) for part in text.split(_REDACTED)]
    return _REDACTED.join(parts)


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
    """Return a header's value and its further words, like the key behind `Bearer`."""
    return [value, *value.split()[1:]]


def redact_line(text: str, secrets: Iterable[str] = ()) -> str:
    """Return `text` redacted and as one line of printable characters, for a log."""
    line = "\\n".join(redact(text, secrets).splitlines())
    if line.isprintable():
        return line
    return "".join(_printable(character) for character in line)


def _printable(character: str) -> str:
    if character.isprintable():
        return character
    return ascii(character)[1:-1]  # without its quotes


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
    if match.lastgroup is None:
        return _REDACTED
    name = match[match.lastgroup]
    if match.lastgroup == "scheme":
        return f"{name}{_REDACTED}@"
    return f"{name}{_REDACTED}"


def _forms(secret: str) -> Iterator[str]:
    """Yield `secret` as it appears in headers, addresses, JSON and base64."""
    if len(secret) < _SHORTEST_SECRET:
        return
    raw = secret.encode("utf-8", "surrogatepass")
    yield secret
    yield quote(raw)
    yield quote(raw, safe="")
    yield quote_plus(raw)
    yield json.dumps(secret, ensure_ascii=True)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    for offset in range(_BYTES_OF_BASE64_GROUP):
        encoded = _inside_base64(raw, offset)
        yield encoded
        yield encoded.replace("+", "-").replace("/", "_")


_BYTES_OF_BASE64_GROUP = 3
_BITS_OF_BYTE = 8
_BITS_OF_BASE64_CHARACTER = 6


def _inside_base64(raw: bytes, offset: int) -> str:
    """Return the characters that `raw` alone decides when `offset` bytes precede it.

    The password of a `Basic` header follows a user name of unknown length.
    """
    encoded = b64encode(bytes(offset) + raw).decode()
    first_bit = offset * _BITS_OF_BYTE
    end_bit = (offset + len(raw)) * _BITS_OF_BYTE
    first = math.ceil(first_bit / _BITS_OF_BASE64_CHARACTER)
    end = end_bit // _BITS_OF_BASE64_CHARACTER
    return encoded[first:end]


# --------------------------------------------------------------------------------------
# openai_responses.endings
#
# How a run can end, and the sentence for each ending.
#
# `{code}`, `{param}` and `{status}` are words of the API, `{model}` is the id that was
# asked for. No text of the server is shown, because it may quote a key or a prompt.
#
# The sentences are for whoever chats. Which setting can be the cause is in FAULTS: only a
# shell knows what an administrator calls it.
# --------------------------------------------------------------------------------------


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
        "only_calls": "The model requested more tool calls than one answer may make, and "
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
        "cyber_policy": "OpenAI does not answer this, because the answer may help attack "
        "computers{code}. Rephrase the question, or start a new chat. An administrator "
        "can apply to OpenAI for access for security work.",
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
        "followed, because the key would go along.",
        WRONG_KEY: _WRONG_KEY,
        "401": _WRONG_KEY,
        "403": "This API key may not use {model}. Choose another model, or ask an "
        "administrator to change the rights of the key's project.",
        "404": "There is no Responses API at the address of the model's server.",
        "407": "The proxy in front of the model's server rejected the request.",
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
    return Ending("incomplete", code, _sentence("incomplete", ApiError(code=code)))


def ending_of_failure(kind: Literal["failed", "error"], error: ApiError) -> Ending:
    """Return the ending of a `response.failed` or an `error` event."""
    return Ending(kind, _code(error), failure_sentence(error), failure_fault(error))


_EXCEPTIONS: Mapping[type[ResponsesError], tuple[str, str]] = {
    MalformedEvent: ("malformed", ""),
    AnswerTooLarge: ("malformed", "too_large"),
    ResponseLost: ("cut", "lost"),
    UnreadableAnswer: ("unreadable", "-"),
    InvalidRequest: ("invalid", "-"),
    InvalidSetting: ("invalid", "-"),
}
"""Kind and word of the sentence; `-` stands for the exception's own."""


def ending_of_exception(error: ResponsesError, has_begun: bool) -> Ending:
    """Return the ending of a run that `error` stopped, after its first event or not."""
    if isinstance(error, TimedOut):
        return _ending_without_code(error.kind)
    if isinstance(error, ApiRefused):
        return Ending("refused", _code(error.error), str(error), error.fault)
    connection_lost = ("cut", "") if has_begun else ("unreachable", "-")
    kind, word = _EXCEPTIONS.get(type(error), connection_lost)
    if word == "-":
        return Ending(kind, sentence=str(error), fault=error.fault)
    return _ending_without_code(kind, word)


def _code(error: ApiError) -> str | None:
    """Return the word of the API that says most about the cause, to be shown."""
    return api_word(_certain_cause(error) or error.code or error.type)


def is_final(error: ApiError) -> bool:
    """Say whether neither a second attempt nor a repair of the request helps."""
    return any(word in FINAL_CODES for word in _words(error))


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
    shown = [f"{lead}: “{_quoted(text, secrets)}”" for lead, text in parts if text]
    return " ".join(shown)


def _quoted(text: str, secrets: Iterable[str]) -> str:
    """Return a text of the server as one plain line, without secrets and markup."""
    line = " ".join(redact(text[: 2 * _MAX_NOTICE], secrets).split())
    printable = "".join(letter for letter in line if letter.isprintable())
    plain = printable.translate(_MARKUP).replace("://", ": //")
    return plain if len(plain) <= _MAX_NOTICE else f"{plain[:_MAX_NOTICE]}…"


def failure_sentence(error: ApiError) -> str:
    """Return the sentence for an error after the request was accepted."""
    if error.status:
        return refusal_sentence(error.status, error)
    return _sentence("failed", error)


def failure_fault(error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an error like that."""
    return refusal_fault(error.status, error) if error.status else NO_FAULT


_REFUSAL_SENTENCES = {**SENTENCES["failed"], **SENTENCES["refused"]}


def refusal_sentence(status: int, error: ApiError) -> str:
    """Return the sentence for an HTTP status of 300 or more."""
    word = _first_known(_refusal_words(status, error), _REFUSAL_SENTENCES)
    return _REFUSAL_SENTENCES[word].format(
        code="" if word else _shown(error.code),
        param=_shown(error.param, " at {}"),
        model=ASKED_MODEL,
        status=status,
    )


def refusal_fault(status: int, error: ApiError) -> SettingFault:
    """Return the settings that can be the cause of an HTTP status of 300 or more."""
    word = _first_known(_refusal_words(status, error), _REFUSAL_SENTENCES)
    return FAULTS.get(("refused", word), NO_FAULT)


def _refusal_words(status: int, error: ApiError) -> list[str]:
    """Return the words that a sentence can be found by, the most certain first."""
    if status < 400:
        return ["3"]
    # Whatever code comes with it: the key is wrong.
    if status == 401:
        return ["401"]
    words = [word for word in _words(error) if word != str(status)]
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


def _sentence(kind: str, error: ApiError) -> str:
    """Return the sentence of a kind of ending for the cause that an error names."""
    sentences = SENTENCES[kind]
    word = _first_known(_words(error), sentences)
    return sentences[word].format(code=_shown(_code(error)))


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


def _certain_cause(error: ApiError) -> str | None:
    """Return the code that the words of an error mean, whatever its own code says."""
    text = error.message[:_MAX_SEARCHED]
    for phrase, code in _CERTAIN_PHRASES:
        if re.search(phrase, text, re.IGNORECASE | re.DOTALL):
            return code
    return None


def _words(error: ApiError) -> list[str]:
    """Return the codes of an error, the most certain first."""
    text = error.message[:_MAX_SEARCHED]
    words = [_certain_cause(error), error.code, error.type]
    for phrase, code in _PHRASES:
        if re.search(phrase, text, re.IGNORECASE):
            words.append(code)
    return [word for word in words if word]


def _shown(word: str | None, form: str = " ({})") -> str:
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


# --------------------------------------------------------------------------------------
# openai_responses.digest
#
# Digests of texts, to compare or to name them without keeping them.
# --------------------------------------------------------------------------------------


def hex_digest(text: str) -> str:
    """Return the SHA-256 of a text; a lone surrogate is none of UTF-8's characters."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# --------------------------------------------------------------------------------------
# openai_responses.tool_kinds
#
# The kinds of tools that OpenAI runs, and the items that they make.
#
# `TOOL_KINDS` is the one list of them: what a caller may set, what a limit can forbid and
# what a call costs, what a request offers and what goes back follow it. What only a host
# knows stands in tables of the same kinds: `TOOL_SETTINGS` of the pipe and
# `HOSTED_CARDS` of the page (cards). tests/test_tool_kinds.py fails for a kind that one of
# them lacks.
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
    """What the API demands beside the type."""
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

The types are those of openai-python 3.54.0, the fee is from LiteLLM 1.109.1
(2026-11-21), what is refused at `minimal` from openai-agents.
"""

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
    for kind in TOOL_KINDS.values():
        if name.startswith(kind.type):
            return kind
    return _NO_TOOL


def call_fee(item: JsonObject) -> float:
    """Return the US dollars that a call of a hosted tool costs beside its tokens."""
    return maker_of(item).fee if kind_of(item).is_call else 0


def container_ids(items: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the containers in which code ran."""
    ids = {as_text(item.get("container_id")) for item in items}
    return ids - {""}


def container_fees(items: Iterable[JsonObject]) -> float:
    """Return the US dollars of the containers in which code ran, each paid once."""
    fee = TOOL_KINDS["code_interpreter"].container_fee
    return fee * len(container_ids(items))


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
    (docs/servers.md).
    """
    is_plain = is_reasoning(item) and not item.get("encrypted_content")
    return is_plain and has_text(item)


def is_encrypted(item: JsonObject) -> bool:
    """Say whether only those who made `item` can read it."""
    return kind_of(item).is_encrypted


def is_compaction(item: JsonObject) -> bool:
    """Say whether `item` replaces all items before it."""
    return item.get("type") == "compaction" and bool(item.get("encrypted_content"))


def since_compaction(items: Sequence[Item]) -> list[Item]:
    """Return `items` from the last compaction on, behind instructions and added tools.

    Tools that earlier items added stay in force, and their calls have to name them.

    The API compacts at the end of a response (in all eight recordings), which may be
    one that calls tools. What waits for an answer there moves behind the compaction and
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
    waiting = _waiting_items(items[:start])
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


def _waiting_items(items: Sequence[Item]) -> list[Item]:
    """Return the calls and the approval requests that `items` do not answer."""
    answered = {item.get("approval_request_id") for item in items}
    calls = {id(call) for call in open_calls(items)}
    waiting: list[Item] = []
    for item in items:
        is_request = item_type(item) == "mcp_approval_request"
        if id(item) in calls or (is_request and item.get("id") not in answered):
            waiting.append(item)
    return waiting


def text_message(role: object, text: str) -> Item:
    """Return a message with one text, in the form that the API has for its role."""
    if role == "assistant":
        part: Item = {"type": "output_text", "text": text, "annotations": []}
    else:
        part = {"type": "input_text", "text": text}
    return {"type": "message", "role": role, "content": [part]}


def message_text(item: JsonObject) -> str:
    """Return the text and the refusals of a message."""
    content = item.get("content")
    if isinstance(content, str):
        return content
    return "".join(part_text(part) for part in content_parts(content))


def has_text(item: JsonObject) -> bool:
    """Say whether `item` holds a text that deltas grow."""
    return bool(message_text(item)) or any(text for _, text in item_texts(item))


def content_parts(content: object) -> list[Item]:
    """Return the objects in a content."""
    return [part for part in as_list(content) if isinstance(part, dict)]


def part_text(part: JsonObject) -> str:
    """Return the text of a content part."""
    return as_text(part.get("text") or part.get("refusal"))


def find_call_ids(items: Iterable[Item]) -> set[str]:
    """Return the ids of all calls that our side has to answer."""
    return {as_text(item.get("call_id")) for item in items if is_call(item)}


def distinct_call_id(call_id: str, taken: Container[str]) -> str:
    """Return `call_id`, with the first number behind it that makes it a free one."""
    own_id = call_id
    number = 1
    while own_id in taken:
        number += 1
        own_id = f"{call_id}_{number}"
    return own_id


def open_calls(items: Sequence[Item]) -> list[Item]:
    """Return the calls without an output."""
    answered = {item.get("call_id") for item in items if is_call_output(item)}
    return [
        item for item in items if is_call(item) and item.get("call_id") not in answered
    ]


def _find_pairs(items: Sequence[JsonObject]) -> set[int]:
    """Return the indexes of the calls that have an output, and of these outputs.

    An output answers an earlier call of its own kind; a `call_id` counts once.
    """
    paired: set[int] = set()
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
            _wait_for_output(waiting, items, index, turn_start)
            continue
        # No such call, or it has its output already.
        call_index = waiting.get(call_id)
        if call_index is None:
            continue
        if kind == CALL_OUTPUTS[items[call_index]["type"]]:
            paired |= {call_index, index}
            waiting[call_id] = None
    return paired


def _wait_for_output(
    waiting: dict[str, int | None],
    items: Sequence[JsonObject],
    index: int,
    turn_start: int,
) -> None:
    """Note the call at an index, unless its id is that of an earlier one.

    Of some calls only the place is known, not the name: they have no pair. A call
    that was stopped gets no output. Some servers give its id again to a call of a later
    turn, which counts instead (recorded at Bedrock, whose first call is always
    `call_0`).
    """
    if not items[index].get("name"):
        return
    call_id = items[index]["call_id"]
    earlier = waiting.get(call_id)
    was_stopped = earlier is not None and earlier < turn_start
    if was_stopped or call_id not in waiting:
        waiting[call_id] = index


def move_messages_behind_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` without messages between calls and their outputs.

    They follow the last of the outputs. A call without an output moves nothing.
    """
    ordered: list[Item] = []
    moved: list[Item] = []
    waiting: set[str] = set()
    paired = _find_pairs(items)
    for index, item in enumerate(items):
        if waiting and item_type(item) == "message":
            moved.append(item)
            continue
        ordered.append(item)
        if index not in paired:
            continue
        if is_call(item):
            waiting.add(item["call_id"])
        else:
            waiting.discard(item["call_id"])
        if not waiting:
            ordered += moved
            moved = []
    return ordered


_INPUT_ROLES = ("user", "system", "developer")


def drop_orphans(items: Sequence[Item]) -> list[Item]:
    """Return `items` without half pairs, and without the reasoning that produced them.

    The API refuses all three (docs/reference/responses-api.md, "Refusals of input
    items", 5). `dangling` is reasoning whose product has not come yet. Reasoning before
    several calls stays as long as one of them stays.
    """
    kept: list[Item] = []
    dangling: list[Item] = []
    has_lost_call = False
    paired = _find_pairs(items)
    for index, item in enumerate(items):
        kind = item.get("type")
        if is_paired(item) and index not in paired:
            has_lost_call = has_lost_call or kind in _CALLS
            continue
        # Reasoning without its product is a 400 (recorded, 986 and 1009), and its
        # product may be the lost call.
        if _is_no_product(item) or (has_lost_call and kind not in _CALLS):
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


def _is_no_product(item: Item) -> bool:
    """Say whether reasoning in front of `item` led to something else, or to nothing."""
    kind = item.get("type")
    if kind in _OUTPUTS or kind == CONFIGURATION:
        return True
    return item.get("role") in _INPUT_ROLES


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


def is_image_call(item: JsonObject) -> bool:
    """Say whether `item` is an image that the model generated."""
    return item.get("type") == "image_generation_call"


def has_image(item: JsonObject) -> bool:
    """Say whether `item` holds an image that the model can read."""
    is_generated = is_image_call(item) and bool(item.get("result"))
    # As input the API takes neither SVG nor moving GIF.
    return is_generated and _image_format(item) in ("png", "jpeg", "webp")


def _image_format(item: JsonObject) -> str:
    return str(item.get("output_format") or "png")


def image_url(item: JsonObject) -> str:
    """Return a generated image as a data URL."""
    subtype = _image_format(item)
    if subtype == "svg":
        # The media type of RFC 6838; the API says `svg`.
        subtype = "svg+xml"
    return f"data:image/{subtype};base64,{item['result']}"


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


def is_host_returned(item: JsonObject) -> bool:
    """Say whether `item` is a hosted one that a later request can contain.

    Without a list of a server's tools the API asks the server again.
    """
    kind = kind_of(item)
    tool = maker_of(item)
    if not tool.type or kind.returned == "never":
        return False
    if item.get("status") in _UNFINISHED:
        return False
    action = as_mapping(item.get("action")).get("type")
    if tool.type == "web_search" and action not in _ACTIONS:
        return False
    if item_type(item) == "mcp_list_tools" and item.get("error"):
        return False
    return all(item.get(key) is not None for key in kind.required)


def is_kept_hosted(item: JsonObject) -> bool:
    """Say whether later turns send `item`, a hosted one."""
    return is_host_returned(item) and kind_of(item).returned == "always"


def is_replayed(item: JsonObject, *, is_ours: bool) -> bool:
    """Say whether later turns send `item`, which an answer stored.

    Only `is_ours` can be decrypted, and configures the model. Unknown types are never
    sent, nor are messages that are not the model's.
    """
    kind = kind_of(item)
    if is_hosted(item):
        return is_kept_hosted(item) or has_image(item)
    if kind.is_encrypted:
        return is_ours and bool(item.get("encrypted_content"))
    # Its effort may be one that the other model does not have.
    if item_type(item) == CONFIGURATION and not is_ours:
        return False
    is_of_the_model = item.get("role", "assistant") == "assistant"
    return is_of_the_model and kind is not _OTHER_KIND


def drop_hosted_tool_items(items: Iterable[Item]) -> list[Item]:
    """Return `items` without calls, their outputs and their reasoning."""
    kept: list[Item] = []
    for item in items:
        if is_paired(item) or kind_of(item).is_call:
            drop_last_reasoning(kept)
        else:
            kept.append(item)
    drop_last_reasoning(kept)
    return kept


def drop_last_reasoning(items: list[Item]) -> None:
    """Take the reasoning at the end out of `items`."""
    while items and is_reasoning(items[-1]):
        items.pop()


def search_queries(item: JsonObject) -> list[str]:
    """Return the queries of a search."""
    if item_type(item) == "file_search_call":
        return _texts(item.get("queries"))
    action = as_mapping(item.get("action"))
    return _texts(action.get("queries")) or _texts([action.get("query")])


def search_pages(item: JsonObject) -> list[str]:
    """Return the addresses of the pages that a search found, each once."""
    sources = content_parts(as_mapping(item.get("action")).get("sources"))
    addresses = _texts([source.get("url") for source in sources])
    return list(dict.fromkeys(addresses))


def _texts(values: object) -> list[str]:
    """Return the texts of a list that are not empty."""
    return [value for value in as_list(values) if isinstance(value, str) and value]


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
    prefix_bound: bool = False
    """Reasoning is dropped when what preceded it changed, and `instructions` stand
    behind the input, where no cache reaches them."""
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
    max_output_tokens: int | None = None
    shutdown: str | None = None
    """The day on which OpenAI switches the model off, an ISO date."""
    successor: str | None = None
    prices: ModelPrices | None = None
    known_family: bool = True
    """False: the name says nothing, the facts are cautious."""


# --------------------------------------------------------------------------------------
# openai_responses.models.usage
#
# The tokens that a run used, and what they cost.
#
# Costs are in US dollars, by the prices of the model's facts, response
# by response: the tier that the server named and the length of the input count
# (docs/reference/responses-api.md, "Prices"). Without a price the cost is unknown, never
# estimated.
# --------------------------------------------------------------------------------------


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
    """That served the response; a sum has none."""


def add_usage(first: Usage | None, second: Usage | None) -> Usage | None:
    """Return the sum, field by field."""
    if first is None or second is None:
        return first or second
    return Usage(
        input=first.input + second.input,
        output=first.output + second.output,
        total=first.total + second.total,
        cached=first.cached + second.cached,
        cache_writes=first.cache_writes + second.cache_writes,
        reasoning=first.reasoning + second.reasoning,
    )


def read_usage(wire: object, tier: object = "") -> Usage | None:
    """Return the counts of a response's `usage`, or None if it has none."""
    if not isinstance(wire, Mapping):
        return None
    inputs = as_mapping(wire.get("input_tokens_details"))
    outputs = as_mapping(wire.get("output_tokens_details"))
    input_tokens = _count(wire.get("input_tokens"))
    output_tokens = _count(wire.get("output_tokens"))
    return Usage(
        input=input_tokens,
        output=output_tokens,
        total=_count(wire.get("total_tokens")) or input_tokens + output_tokens,
        cached=_count(inputs.get("cached_tokens")),
        cache_writes=_count(inputs.get("cache_write_tokens")),
        reasoning=_count(outputs.get("reasoning_tokens")),
        tier=as_text(tier),
    )


_MAX_TOKENS = 10**12
"""A count above that is none."""


def _count(value: object) -> int:
    if isinstance(value, int) and 0 < value < _MAX_TOKENS:
        return value
    return 0


def window_share(last: Usage | None, facts: ModelFacts) -> int:
    """Return how much of a model's context window a chat fills, in percent.

    `last` is that of the chat's last response: its input and output are the beginning
    of the next one. 0 if either is unknown.
    """
    if last is None or not facts.context_window:
        return 0
    return min(100, 100 * last.total // facts.context_window)


_MILLION = 1_000_000


def cost_of_run(
    usages: Iterable[Usage],
    facts: ModelFacts,
    output: Iterable[Item],
    today: date,
    host: str = "",
) -> float | None:
    """Return the cost of a run: its responses, searches and containers of code.

    None if it is unknown.
    """
    cost = 0.0
    for usage in usages:
        tokens = _cost_of_tokens(usage, facts, today)
        if tokens is None:
            return None
        cost += tokens
    if facts.regional and host.endswith(_REGIONAL_HOST_SUFFIX):
        cost *= _REGIONAL_FACTOR
    items = list(output)
    return cost + sum(call_fee(item) for item in items) + container_fees(items)


_REGIONAL_HOST_SUFFIX = ".api.openai.com"
_REGIONAL_FACTOR = 1.1
"""OpenAI's guide "Data residency": 10 % more at the hosts of a region."""


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


def _cost_of_tokens(usage: Usage, facts: ModelFacts, today: date) -> float | None:
    """Return what a response costs; None if a price or the tier is unknown.

    Tokens read from the cache and tokens written to it are part of the input.
    """
    prices = facts.prices
    if prices is None or prices.input is None or prices.output is None:
        return None
    factor = _tier_factor(usage.tier, prices, today)
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
    output_cost = usage.output * prices.output
    if facts.long_prices and usage.input > _LONG_INPUT:
        input_cost *= _LONG_INPUT_FACTOR
        output_cost *= _LONG_OUTPUT_FACTOR
    return factor * (input_cost + output_cost) / _MILLION


_TIER_FACTORS = {"": 1, "auto": 1, "default": 1, "flex": 0.5}
"""Factors that all models have in common; the empty tier is that of a sum, or of a
server that names none."""


def _tier_factor(tier: str, prices: ModelPrices, today: date) -> float | None:
    """Return how often the standard price is paid; None if nobody says it."""
    # `priority` was renamed `fast` on 2026-07-30; either may come back.
    if tier in ("fast", "priority"):
        return prices.fast
    if tier == "ultrafast":
        last_day = prices.ultrafast_until
        if last_day and today.isoformat() > last_day:
            return prices.ultrafast_later
        return prices.ultrafast
    return _TIER_FACTORS.get(tier)


# --------------------------------------------------------------------------------------
# openai_responses.appended
#
# Items that say at their place in a chat what fields of a request say.
#
# A chat that only grows changes its tools, its effort and its format with such items. A
# server that does not have them gets the same in the fields.
# --------------------------------------------------------------------------------------


APPENDED = frozenset({ADDED_TOOLS, CONFIGURATION})
"""The types of these items."""

_CONFIGURED = ("reasoning", "text")
"""The fields that a configuration update can change."""


def declared_tools(payload: Mapping[str, Any]) -> list[Item]:
    """Return the tools of a request and of its items, in this order."""
    tools = list(payload.get("tools") or ())
    for item in payload["input"]:
        if item_type(item) == ADDED_TOOLS:
            tools += item["tools"]
    return tools


def lower_payload(payload: Mapping[str, Any], kinds: Set[str]) -> dict[str, Any]:
    """Return a request whose own fields say what items of these `kinds` said."""
    lowered = dict(payload)
    if not kinds:
        return lowered
    lowered["input"] = [i for i in payload["input"] if item_type(i) not in kinds]
    if CONFIGURATION in kinds:
        lowered |= _configured_fields(payload)
    if ADDED_TOOLS in kinds:
        tools = declared_tools(payload)
        if tools:
            lowered["tools"] = tools
    return lowered


def _configured_fields(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that updates change, as they are behind the last update."""
    fields: dict[str, Any] = {}
    for item in payload["input"]:
        if item_type(item) != CONFIGURATION:
            continue
        for key in _CONFIGURED:
            if key in item:
                before = fields.get(key, payload.get(key, {}))
                fields[key] = {**before, **item[key]}
    return fields


# --------------------------------------------------------------------------------------
# openai_responses.models.catalog
#
# The catalog of models; generated, do not edit.
#
# Source: `scripts/catalog/models.json`, which names the source and the date of each fact.
# Edit it and run `python scripts/catalog/generate.py`; with `--check` it reports whether
# this module is current, as do the tests.
#
# Facts as of 2026-11-24. Prices are US dollars for a million tokens at the standard tier.
# A fact that is not stated has the default of ModelFacts. A dated snapshot has an entry
# only where it differs from its model.
# --------------------------------------------------------------------------------------


CATALOG_MODELS = (
    ModelFacts(
        id="chatgpt-image-latest",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-4.1",
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=2,
            cached=0.5,
            cache_write=None,
            output=8,
            fast=1.75,
        ),
    ),
    ModelFacts(
        id="gpt-4.1-mini",
        hosted=True,
        context_window=1_047_576,
        max_output_tokens=32_768,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.4,
            cached=0.1,
            cache_write=None,
            output=1.6,
        ),
    ),
    ModelFacts(
        id="gpt-4o",
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=2.5,
            cached=1.25,
            cache_write=None,
            output=10,
        ),
    ),
    ModelFacts(
        id="gpt-4o-mini",
        hosted=True,
        context_window=128_000,
        max_output_tokens=16_384,
        shutdown="2027-01-14",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.15,
            cached=0.075,
            cache_write=None,
            output=0.6,
        ),
    ),
    ModelFacts(
        id="gpt-5",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25,
            cached=0.125,
            cache_write=None,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5-mini",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-terra",
        prices=ModelPrices(
            input=0.25,
            cached=0.025,
            cache_write=None,
            output=2,
            fast=1.8,
        ),
    ),
    ModelFacts(
        id="gpt-5-nano",
        reasoning=True,
        efforts=("minimal", "low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        lacks=("web_search",),
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2026-12-11",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.05,
            cached=0.005,
            cache_write=None,
            output=0.4,
        ),
    ),
    ModelFacts(
        id="gpt-5-pro",
        reasoning=True,
        efforts=("high",),
        default_effort="high",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        lacks=("code_interpreter",),
        context_window=400_000,
        max_output_tokens=272_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(
            input=15,
            cached=None,
            cache_write=None,
            output=120,
        ),
    ),
    ModelFacts(
        id="gpt-5.1",
        reasoning=True,
        efforts=("none", "low", "medium", "high"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.25,
            cached=0.125,
            cache_write=None,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.2",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1.75,
            cached=0.175,
            cache_write=None,
            output=14,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.2-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=21,
            cached=None,
            cache_write=None,
            output=168,
        ),
    ),
    ModelFacts(
        id="gpt-5.3-codex",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        hosted=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=1.75,
            cached=0.175,
            cache_write=None,
            output=14,
        ),
    ),
    ModelFacts(
        id="gpt-5.4",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2.5,
            cached=0.25,
            cache_write=None,
            output=15,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-mini",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.75,
            cached=0.075,
            cache_write=None,
            output=4.5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-nano",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="none",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        shutdown="2027-04-01",
        successor="gpt-6-luna",
        prices=ModelPrices(
            input=0.2,
            cached=0.02,
            cache_write=None,
            output=1.25,
        ),
    ),
    ModelFacts(
        id="gpt-5.4-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=30,
            cached=None,
            cache_write=None,
            output=180,
        ),
    ),
    ModelFacts(
        id="gpt-5.5",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=5,
            cached=0.5,
            cache_write=None,
            output=30,
            fast=2.5,
        ),
    ),
    ModelFacts(
        id="gpt-5.5-pro",
        reasoning=True,
        efforts=("medium", "high", "xhigh"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        all_turns=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=30,
            cached=None,
            cache_write=None,
            output=180,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-cyber",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=12.5,
            cached=1.25,
            cache_write=15.625,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-luna",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.2,
            cached=0.02,
            cache_write=0.25,
            output=1.2,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-sol",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=4,
            cached=0.4,
            cache_write=5,
            output=20,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-5.6-terra",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.2,
            cache_write=2.5,
            output=12,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6-astra",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10,
            cached=1,
            cache_write=12.5,
            output=50,
            fast=2,
            ultrafast=6,
        ),
    ),
    ModelFacts(
        id="gpt-6-astra-law",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=10,
            cached=1,
            cache_write=None,
            output=50,
        ),
    ),
    ModelFacts(
        id="gpt-6-cyber",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
    ),
    ModelFacts(
        id="gpt-6-luna",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=0.1,
            cached=0.01,
            cache_write=0.125,
            output=0.5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6-rosalind",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=15,
            cached=1.5,
            cache_write=18.75,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-6-sol",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.2,
            cache_write=2.5,
            output=10,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.1-sol",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=2,
            cached=0.1,
            cache_write=2.5,
            output=10,
            fast=2,
            ultrafast=6,
        ),
    ),
    ModelFacts(
        id="gpt-6.1-terra",
        reasoning=True,
        efforts=("none", "low", "medium", "high", "xhigh", "max"),
        default_effort="medium",
        sampling="with_none",
        summary=True,
        verbosity=True,
        hosted=True,
        appends_tools=True,
        appends_configuration=True,
        pro_mode=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=1,
            cached=0.05,
            cache_write=1.25,
            output=5,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.2-astra",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        prefix_bound=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=8,
            cached=0.4,
            cache_write=10,
            output=40,
            fast=2,
        ),
    ),
    ModelFacts(
        id="gpt-6.2-astra-law",
        reasoning=True,
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        prefix_bound=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
    ),
    ModelFacts(
        id="gpt-6.2-sol",
        reasoning=True,
        efforts=("low", "medium", "high", "xhigh", "max"),
        sampling="never",
        summary=True,
        verbosity=True,
        hosted=True,
        prefix_bound=True,
        appends_tools=True,
        appends_configuration=True,
        all_turns=True,
        diagnostics=True,
        long_prices=True,
        regional=True,
        context_window=1_050_000,
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
    ModelFacts(
        id="gpt-daybreak-blue-latest",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=1_050_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=4,
            cached=0.4,
            cache_write=5,
            output=20,
        ),
    ),
    ModelFacts(
        id="gpt-daybreak-red-latest",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        long_prices=True,
        context_window=400_000,
        max_output_tokens=128_000,
        prices=ModelPrices(
            input=12.5,
            cached=1.25,
            cache_write=15.625,
            output=75,
        ),
    ),
    ModelFacts(
        id="gpt-image-1-mini",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-image-1.5",
        functions=False,
        vision=False,
        shutdown="2026-12-01",
        successor="gpt-image-2.6-sunburst or -flare",
    ),
    ModelFacts(
        id="gpt-rosalind-research",
        reasoning=True,
        sampling="never",
        summary=True,
        hosted=True,
        prices=ModelPrices(
            input=5,
            cached=0.5,
            cache_write=None,
            output=25,
        ),
    ),
    ModelFacts(
        id="o3",
        reasoning=True,
        efforts=("low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol",
        prices=ModelPrices(
            input=2,
            cached=0.5,
            cache_write=None,
            output=8,
        ),
    ),
    ModelFacts(
        id="o3-pro",
        reasoning=True,
        efforts=("low", "medium", "high"),
        default_effort="medium",
        sampling="never",
        summary=True,
        hosted=True,
        lacks=("code_interpreter",),
        context_window=200_000,
        max_output_tokens=100_000,
        shutdown="2026-12-11",
        successor="gpt-6.1-sol-pro",
        prices=ModelPrices(
            input=20,
            cached=None,
            cache_write=None,
            output=80,
        ),
    ),
)

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
_GPT_VERSION = re.compile(r"gpt-(?P<major>\d)(?:\.(?P<minor>\d{1,2}))?(?!\d)")
"""One digit, because Azure spells gpt-3.5 as gpt-35."""
# o3, o4-mini
_O_SERIES_ID = re.compile(r"o\d+(?:-|$)")
_THINKING_NAME = re.compile(
    r"(?P<model>gpt-\d(?:\.\d+)?)-thinking(?P<size>-mini|-nano)?$"
)
_INSTANT_NAME = re.compile(r"(?P<model>gpt-\d(?:\.\d+)?)-instant$")
# gpt-6.1-sol-pro, gpt-6.1-sol-pro-high
_PRO_NAME = re.compile(r"(?P<model>gpt-[\w.-]+)-pro(?P<effort>-[a-z]+)?$")
# openai/gpt-5.4 of OpenRouter, ft:gpt-4.1:... of OpenAI
_WRAPPED_ID = re.compile(r"(?:openai/|ft:)([^:/]+)")


CATALOG_FACTS = {facts.id: facts for facts in CATALOG_MODELS}
"""The facts of each model of the catalog, by id."""

_PLAIN_FACTS = ModelFacts()


class ResolvedModel(NamedTuple):
    """What a name stands for.

    `id` is sent as `model`, `name` is for people. Encrypted reasoning is readable
    inside one `family`. `effort`, `pro`, the mode, and `research` are what the name stood
    for.
    """

    id: str
    family: str
    effort: str | None
    facts: ModelFacts
    name: str
    pro: bool = False
    research: bool = False

    def lowest_effort(self) -> str | None:
        """Return the cheapest effort known to be accepted."""
        return self.facts.efforts[0] if self.facts.efforts else None

    def takes_effort(self, effort: str) -> bool:
        """Say whether the model accepts an effort; if unknown, it may be tried."""
        if self.facts.efforts:
            return effort in self.facts.efforts
        return self.facts.reasoning or not self.facts.known_family


def resolve_model(
    name: str, overrides: Mapping[str, ResolvedModel] = MappingProxyType({})
) -> ResolvedModel:
    """Resolve any name, one of `overrides` first; an unknown one is sent as it is.

    An effort at the end of an overridden name counts if the model accepts it.
    """
    if name in overrides:
        return overrides[name]
    researching = _researching(name, overrides)
    if researching is not None:
        return researching
    base, _, effort = name.rpartition("-")
    model = overrides.get(base)
    if model and effort in REASONING_EFFORTS and model.takes_effort(effort):
        return model._replace(effort=effort, name=f"{model.name} ({effort})")
    known = _named_model(name)
    if known is None:
        in_pro_mode = _model_in_pro_mode(name, overrides)
        if in_pro_mode is not None:
            return in_pro_mode
    model_id, stated_effort = known or _model_with_effort(name) or (name, None)
    return ResolvedModel(
        id=model_id,
        family=_model_family(model_id),
        effort=stated_effort,
        facts=_model_facts(model_id),
        name=_shown_name(model_id, stated_effort),
    )


_RESEARCH = "-research"
_RESEARCH_EFFORTS = ("high", "xhigh", "max")


def _researching(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-research` behind a known model; None for any other.

    The effort is high if the name has none (OpenAI's guide "Web search" recommends
    `high` or `xhigh`). Retired models and those of other vendors have such names, too.
    """
    if not name.endswith(_RESEARCH) or _is_models_own(name):
        return None
    model = resolve_model(name.removesuffix(_RESEARCH), overrides)
    if not model.facts.known_family:
        return None
    effort = model.effort
    if effort not in _RESEARCH_EFFORTS and model.takes_effort("high"):
        effort = "high"
    return model._replace(effort=effort, name=f"{model.name} Research", research=True)


def _is_models_own(name: str) -> bool:
    return name in CATALOG_FACTS or name in CATALOG_SUCCESSORS


def takes_search_budget(model: ResolvedModel) -> bool:
    """Say whether a model's web search takes a `return_token_budget`.

    It is for "GPT-5+ reasoning web search runs" (OpenAI's changelog, 2026-05-11).
    """
    version = _GPT_VERSION.match(model.facts.id or model.family)
    if version is None or not model.facts.reasoning:
        return False
    return int(version["major"]) >= _FIRST_WITH_BUDGET


_FIRST_WITH_BUDGET = 5


def _model_in_pro_mode(
    name: str, overrides: Mapping[str, ResolvedModel]
) -> ResolvedModel | None:
    """Resolve a name with `-pro` behind a model, where that is a mode and no model."""
    match = _PRO_NAME.match(name)
    if match is None:
        return None
    model = resolve_model(match["model"] + (match["effort"] or ""), overrides)
    if not model.facts.pro_mode:
        return None
    shown = _shown_name(f"{model.id}-pro", model.effort)
    return model._replace(name=shown, pro=True)


def _named_model(name: str) -> tuple[str, str | None] | None:
    if name in CATALOG_FACTS or _model_family(name) in CATALOG_FACTS:
        return name, None
    if name in CATALOG_ALIASES:
        return CATALOG_ALIASES[name], None
    return _thinking_or_instant(name)


def _thinking_or_instant(name: str) -> tuple[str, str | None] | None:
    """Resolve ChatGPT's words for a model that thinks, or does not.

    From gpt-5.1 to 5.4 the default is not to think at all.
    """
    thinking = _THINKING_NAME.match(name)
    if thinking:
        model_id = thinking["model"] + (thinking["size"] or "")
        if model_id not in CATALOG_FACTS:
            return None
        thinks = CATALOG_FACTS[model_id].default_effort != "none"
        return model_id, None if thinks else "medium"
    instant = _INSTANT_NAME.match(name)
    if instant:
        model_id = instant["model"]
        facts = CATALOG_FACTS.get(model_id)
        if facts and "none" in facts.efforts:
            return model_id, "none"
    return None


def _model_with_effort(name: str) -> tuple[str, str] | None:
    """Resolve a name with an effort at its end.

    gpt-5.1-codex-max was a model: a newer one of that name is not the effort max.
    """
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
    """Return the id without its date, after the redirections of the API itself."""
    undated = _SNAPSHOT_DATE.sub("", model_id)
    return CATALOG_SERVED_AS.get(undated, undated)


def _model_facts(model_id: str) -> ModelFacts:
    """Return the facts of an id, with or without a date, or those of its family.

    Fine-tuned models and routers have prices of their own. A deployment can have any
    name: only its administrator knows its facts.
    """
    for name in (model_id, _model_family(model_id)):
        if name in CATALOG_FACTS:
            return CATALOG_FACTS[name]
    wrapped = _WRAPPED_ID.match(model_id)
    if wrapped:
        return _model_facts(wrapped[1])._replace(prices=None)
    if _O_SERIES_ID.match(model_id):
        return _ASSUMED_OF_O_SERIES
    version = _GPT_VERSION.match(model_id)
    if version:
        return _facts_of_version(int(version["major"]), int(version["minor"] or 0))
    return _PLAIN_FACTS._replace(hosted=True, known_family=False)


_ASSUMED_OF_O_SERIES = ModelFacts(
    reasoning=True,
    efforts=("low", "medium", "high"),
    sampling="never",
    summary=True,
    hosted=True,
)


def _facts_of_version(major: int, minor: int) -> ModelFacts:
    """Return what is assumed of a gpt that the catalog does not have.

    What all models have from a version on, newer ones have, too
    (docs/reference/responses-api.md, "Unknown models").
    """
    version = (major, minor)
    if version < (5, 0):
        return _PLAIN_FACTS
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
        prefix_bound=version >= (6, 2),
    )


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
    notes = []
    if _GPT_VERSION.match(model_id):
        snapshot = _SNAPSHOT_DATE.search(model_id)
        if snapshot:
            notes.append(snapshot["date"])
        name = _capitalized_id(_SNAPSHOT_DATE.sub("", model_id))
    if effort:
        notes.append(effort)
    return f"{name} ({', '.join(notes)})" if notes else name


def _capitalized_id(model_id: str) -> str:
    _, version, *words = model_id.split("-")
    shown = [f"GPT-{version}"]
    for word in words:
        if word in _SIZES:
            shown.append(word)
        elif word != "latest":
            shown.append(word.capitalize())
    return " ".join(shown)


# --------------------------------------------------------------------------------------
# openai_responses.repairs.refusal
#
# What a refusal names: a place in the request, a parameter, ids, tools, efforts.
#
# The server names a place in `param`. Gateways hide it and repeat the API's words, so the
# words are read, too (docs/reference/responses-api.md, "Finding the refused part"). But
# the API quotes what it refuses: an image's address, the name of a tool, a key of a
# schema. What anybody can write into a request must not decide what is repaired, so
# nothing is believed of the words that the request itself could have said: `OwnTexts`.
# --------------------------------------------------------------------------------------


MAX_MESSAGE = 8000
"""Characters of a message that are read."""
_MAX_OWN_CHARACTERS = 64_000_000
_MAX_OWN_TEXTS = 500_000
"""Of a larger request no words are believed."""
_MAX_PATH = 200
"""Characters of a parameter's path."""
_MAX_CANDIDATES = 3
"""Places in the words that are compared with the request; one is usual."""

# input[3].content[0].image_url, tools[5].parameters
_LIST_AND_NUMBER = r"(input|tools)\[(\d{1,6})\]"
_PATH_IN_LIST = r"((?:\.\w{1,64}|\[\d{1,6}\]){0,12})"
_NAMED_PLACE = re.compile(_LIST_AND_NUMBER + _PATH_IN_LIST)
_PLACE_IN_WORDS = re.compile(r"(?<![\w.\])}/$>-])" + _LIST_AND_NUMBER + _PATH_IN_LIST)
"""Behind a name, a dot or a bracket stands the end of another path."""
_ENDS_LIKE_A_PLACE = re.compile(r"\W(?:input|tools)(?:\[\d*)?\Z")
"""A text that the server could complete: it writes a number behind a key."""
_ESCAPED = re.compile(r"(?<!\\)\\+(?:u00|x)([0-9a-fA-F]{2})")
"""Begins with the first backslash: from each of many the rest would be read again."""

_PARAMETER_IN_WORDS = re.compile(
    r"\b(?:unknown|unsupported|unrecognized|unexpected|invalid)"
    r"(?: request)? (?:parameter|argument|field|key)s?(?: supplied)?:? "
    r"[\"'`]([a-z_]{2,40}(?:\.[a-z_]{2,40})?)[\"'`]",
    re.IGNORECASE,
)
"""OpenAI's own sentences, which gateways repeat."""
_PARAMETER_IN_LOC = re.compile(
    r"'loc': \('body', '([a-z_]{2,40})'(?:, '([a-z_]{2,40})')?\)"
)
"""What pydantic writes, which servers of vLLM's kind use."""

# "Invalid schema for function 'get_weather'", "Hosted tool 'web_search' is not supported"
_QUOTED_NAME = r"[\"'`]([\w.-]{1,64})[\"'`]"
_FUNCTION_IN_WORDS = re.compile(rf"\bfunction:? {_QUOTED_NAME}", re.IGNORECASE)
_HOSTED_TOOL_IN_WORDS = re.compile(rf"\btool:? {_QUOTED_NAME}", re.IGNORECASE)
_SERVER_IN_WORDS = re.compile(rf"\bserver:? {_QUOTED_NAME}", re.IGNORECASE)
_VECTOR_STORE = re.compile(r"\bvs_[\w-]{2,128}")
_ID_IN_WORDS = re.compile(r"[\w-]{5,128}")
_QUOTED = re.compile(r"[\"'`]([\w.-]{1,64})[\"'`]")
_UNKNOWN = re.compile(
    r"unknown[ _](parameter|field|argument|key)|unrecogni[sz]ed|unexpected (field|key)"
    r"|extra_?(forbidden| inputs are not permitted| fields not permitted)"
    r"|additional properties",
    re.IGNORECASE,
)


class OwnTexts:
    """Every key and every text of a request, at every depth.

    The fields of the request itself are ours. The work is bounded: a request is walked
    once, and each of its texts is searched once for each of few candidates.
    """

    def __init__(self, payload: Mapping[str, Any]) -> None:
        """Collect the texts; a request that is too large could have said anything."""
        self._texts: list[str] = []
        self._is_complete = True
        left = _MAX_OWN_CHARACTERS
        for text in _texts_in(payload.values()):
            self._texts.append(text)
            left -= len(text)
            if left < 0 or len(self._texts) > _MAX_OWN_TEXTS:
                self._is_complete = False
                break

    def could_say(self, words: str) -> bool:
        """Say whether `words` may be a quote from the request, whole or cut off."""
        if not self._is_complete:
            return True
        return any(words in form for text in self._texts for form in _readings(text))

    def could_say_place(self, list_name: str, number: str) -> bool:
        """Say whether a place in the words may be a quote, or be completed from one."""
        if self.could_say(f"{list_name}[{number}"):
            return True
        return any(
            _ENDS_LIKE_A_PLACE.search(form[-20:])
            for text in self._texts
            for form in _readings(text)
        )

    def could_say_parameter(self, path: str) -> bool:
        """Say whether a body in the request could name `path` as its `param`.

        A longer path than those of the API makes no pattern, because `re` keeps the
        last 512 patterns in memory.
        """
        if not self._is_complete or len(path) > _MAX_PATH:
            return True
        named = re.compile(rf"param\W{{1,12}}{re.escape(path)}")
        return any(
            named.search(form)
            for text in self._texts
            if path in text
            for form in _readings(text)
        )


def _texts_in(values: Iterable[object]) -> Iterator[str]:
    """Yield all texts and keys in JSON values, without recursion."""
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, Mapping):
            yield from (str(key) for key in value)
            waiting.extend(value.values())
        elif isinstance(value, list | tuple):
            waiting.extend(value)


def _readings(text: str) -> Iterator[str]:
    """Yield a text as it is, and as a server shows it that decodes it.

    Addresses are read with their escapes, arguments of calls are JSON in a text.
    """
    yield text
    if "%" in text:
        yield unquote(text)
    if "\\" in text:
        yield _ESCAPED.sub(_unescaped, text)
    if "&" in text:
        yield html.unescape(text)


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match[1], 16))


def _open_quote(words: str) -> str:
    """Return words without their last character, which may be the server's own.

    A server may quote a text and then close the quotation, so the closing mark is not
    searched in the request.
    """
    return words[:-1]


class NamedItem(NamedTuple):
    """An item as it is sent, behind the name of the one that it was made of."""

    name: str
    item: Item


class SentRequest(NamedTuple):
    """What was sent, and what it was made of."""

    payload: dict[str, Any]
    """The body that was sent."""
    items: Sequence[NamedItem]
    """The items of its input, with their names."""
    asked: Mapping[str, Any]
    """The body before repairs."""
    repairs: Sequence[object]
    """What was done to that body (`request_repairs.Repair`), in this order."""

    @property
    def last_name(self) -> str:
        """The name of the last item."""
        return self.items[-1].name if self.items else ""


class Place(NamedTuple):
    """A place that a refusal names, and the item or tool that stands there."""

    list_name: str
    number: int
    path: str
    """What follows the number, like `.content[0].text`."""
    value: Item

    @property
    def keys(self) -> tuple[str, ...]:
        """The names in the path, without numbers."""
        return tuple(re.findall(r"\.(\w+)", self.path))

    @property
    def subject(self) -> str:
        """What the log calls it: nobody can count the items of a request."""
        named = {"type": item_type(self.value), **self.value}
        return f"{self.list_name}[{self.number}] ({tool_name(named)}):"

    @property
    def inner_tool(self) -> Item | None:
        """The tool of an item with tools, if the path leads to one."""
        match = re.match(r"\.tools\[(\d{1,6})\]", self.path)
        if match is None or item_type(self.value) != ADDED_TOOLS:
            return None
        tools = content_parts(self.value.get("tools"))
        number = int(match[1])
        return tools[number] if number < len(tools) else None


class Refusal:
    """What a server said about a request that it refused."""

    def __init__(self, error: ApiError, sent: SentRequest) -> None:
        """Read nothing yet."""
        self.error = error
        self.sent = sent
        self.words = error.message[:MAX_MESSAGE]

    @cached_property
    def _own(self) -> OwnTexts:
        return OwnTexts(self.sent.asked)

    @property
    def _param(self) -> str:
        """What the server itself names; not what a body inside of its words names."""
        if self.error.is_relayed:
            return ""
        return self.error.param or ""

    @property
    def is_unknown(self) -> bool:
        """Whether the server does not know what it names."""
        if self.error.code == "unknown_parameter":
            return True
        return bool(_UNKNOWN.search(self.words))

    @cached_property
    def place(self) -> Place | None:
        """The item or tool that is named, by `param` or by words that are its own."""
        match = _NAMED_PLACE.fullmatch(self._param) or self._place_in_words()
        if match is None:
            return None
        list_name = match[1]
        number = int(match[2])
        rows = as_list(self.sent.payload.get(list_name))
        if number >= len(rows):
            return None
        return Place(list_name, number, match[3], rows[number])

    @property
    def has_named_place(self) -> bool:
        """Whether the server's own `param` names the place."""
        return _NAMED_PLACE.fullmatch(self._param) is not None

    def _place_in_words(self) -> re.Match[str] | None:
        """Return the first place in the words that the request could not have said.

        A `param` that names something else is more certain than words.
        """
        if self._param not in ("", "input", "tools"):
            return None
        words = self.words
        if self.error.is_relayed:
            words = f"{self.error.param or ''} {words}"
        candidates: dict[tuple[str, str], re.Match[str]] = {}
        for match in _PLACE_IN_WORDS.finditer(words):
            candidates.setdefault((match[1], match[2]), match)
            if len(candidates) == _MAX_CANDIDATES:
                break
        for (list_name, number), match in candidates.items():
            if not self._own.could_say_place(list_name, number):
                return match
        return None

    @property
    def named_parameter(self) -> str:
        """The `param`, which may be the path of a parameter."""
        return self._param

    @cached_property
    def parameter(self) -> str:
        """The path of the parameter that `param` or the words name; empty for none."""
        if self._param:
            return self._param
        relayed = self.error.param or ""
        if relayed and not self._own.could_say_parameter(relayed):
            return relayed
        match = _PARAMETER_IN_WORDS.search(self.words)
        match = match or _PARAMETER_IN_LOC.search(self.words)
        if match is None or self._own.could_say(_open_quote(match[0])):
            return ""
        return ".".join(group for group in match.groups() if group)

    @property
    def tools(self) -> Iterator[Item]:
        """The tools that the words name by what they are, one after the other."""
        functions = self._names(_FUNCTION_IN_WORDS)
        kinds = self._names(_HOSTED_TOOL_IN_WORDS)
        labels = self._names(_SERVER_IN_WORDS)
        named_stores = set(_VECTOR_STORE.findall(self.words))
        if self.error.code == "invalid_value":
            # A tool's own error, as `image_generation_user_error`.
            kinds.add(str(self.error.type).removesuffix("_user_error"))
        for tool in declared_tools(self.sent.payload):
            kind = tool.get("type")
            is_named = kind in kinds or tool.get("server_label") in labels
            if kind in ("function", "custom"):
                is_named = tool.get("name") in functions
            elif kind == "file_search":
                store_ids = as_list(tool.get("vector_store_ids"))
                own_stores = {str(store_id) for store_id in store_ids}
                is_named = is_named or bool(named_stores & own_stores)
            if is_named:
                yield tool

    def _names(self, pattern: re.Pattern[str]) -> set[str]:
        """Return the names behind a noun that the request could not have said."""
        names: dict[str, str] = {}
        for match in pattern.finditer(self.words):
            names.setdefault(match[1], match[0])
            if len(names) == _MAX_CANDIDATES:
                break
        return {
            name
            for name, phrase in names.items()
            if not self._own.could_say(_open_quote(phrase))
        }

    @property
    def numbers_of_ids(self) -> Iterator[int]:
        """The numbers of the items that have an id which the words name."""
        named = set(_ID_IN_WORDS.findall(self.words))
        for number, row in enumerate(self.sent.items):
            ids = (row.item.get("id"), row.item.get("call_id"))
            if any(isinstance(own_id, str) and own_id in named for own_id in ids):
                yield number

    @property
    def quoted_words(self) -> set[str]:
        """The single words that the message quotes."""
        return set(_QUOTED.findall(self.words))


def named_subject(sent: SentRequest, error: ApiError) -> str:
    """Return the item or tool that an error names, for the log; empty for none."""
    place = Refusal(error, sent).place
    return place.subject if place else ""


# --------------------------------------------------------------------------------------
# openai_responses.repairs.chat_repairs
#
# Repairs of one chat: which of its items are left out, or sent as plain text.
#
# A chat stores them, so that its later turns do not meet the refusal again and begin with
# the same bytes. An item is named by a digest, because its place changes. What people and
# administrators wrote always stays.
# --------------------------------------------------------------------------------------


MAX_CHAT_REPAIRS = 100
"""A chat remembers no more of them; of a longer list the newest count."""

_MAX_ROWS_READ = 1000
_NAME_FORM = re.compile(r"[0-9a-f]{32}(\.\d{1,6})?")
_TYPE_FORM = re.compile(r"[a-z_]{1,64}")
_MEDIA = ("input_image", "input_file")
_MEDIA_GONE = "[An image or file was here. It could not be sent.]"
_MAX_WORDS_OF_PAIR = 20_000
"""Characters of a call or an output that is sent as words of the model."""


ItemChange = Literal["none", "plain", "leave_out"]
"""What a repair does to an item: only its words are sent, or nothing of it."""


class ChatRepair(ABC):
    """One change of the items of a chat."""

    __slots__ = ()

    is_about_chat: ClassVar = True
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the person who waits."""

    @abstractmethod
    def stored(self) -> list[str]:
        """Return the form that a chat stores; `read_chat_repairs` reads it."""

    @abstractmethod
    def change_of(self, row: NamedItem) -> ItemChange:
        """Return what becomes of an item; of calls and outputs words always stay."""

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about; empty for all items.

        What comes later may be accepted.
        """
        return ""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent, beside the repairs that it had."""
        items = sent.asked["input"]
        sent_before = name_items(items, sent.repairs)
        sent_with_this = name_items(items, [*sent.repairs, self])
        return sent_with_this != sent_before


@dataclass(frozen=True, slots=True)
class LeaveOutItem(ChatRepair):
    """One item is left out, with the reasoning in front of it.

    A call and its output become words: without them the model would call again.
    """

    name: str
    noun: str = field(default="item", compare=False)
    keeps_words: bool = field(default=False, compare=False)
    """Whether it is a call or an output."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.keeps_words:
            return f"One earlier {self.noun} was sent as plain text."
        return f"One earlier {self.noun} could not be sent again and was left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["item", self.name]

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave the one item out."""
        return "leave_out" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class SendAsText(ChatRepair):
    """The words of one item stay; images and files become a line of text."""

    name: str
    noun: str = field(default="item", compare=False)
    had_media: bool = field(default=False, compare=False)

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.had_media:
            return "An image or file could not be sent to the model and was left out."
        return f"One earlier {self.noun} was sent as plain text."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["text", self.name]

    def change_of(self, row: NamedItem) -> ItemChange:
        """Send the words of the one item."""
        return "plain" if row.name == self.name else "none"


@dataclass(frozen=True, slots=True)
class LeaveOutKind(ChatRepair):
    """All items of a type are left out, up to the item `until`."""

    kind: str
    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.kind == "code_interpreter_call":
            return "Earlier code runs are no longer available: answering without them."
        noun = self.kind.replace("_", " ")
        return f"Earlier items of the type {noun} were left out."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["kind", self.kind, self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item of the type out."""
        return "leave_out" if item_type(row.item) == self.kind else "none"


@dataclass(frozen=True, slots=True)
class LeaveOutReasoning(ChatRepair):
    """Encrypted items are left out, up to the item `until`.

    The error does not say which of them cannot be read.
    """

    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return (
            "The server could not read earlier reasoning in this chat: answering "
            "without it."
        )

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["reasoning", self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an encrypted item out."""
        return "leave_out" if is_encrypted(row.item) else "none"


@dataclass(frozen=True, slots=True)
class PlainItems(ChatRepair):
    """Only texts, calls and outputs stay, in their plainest form, up to `until`."""

    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return (
            "The server rejected this chat as it was: only its texts and tool results "
            "were sent."
        )

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["plain", self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that has no words."""
        has_words = is_paired(row.item) or _is_message_with_text(row.item)
        return "plain" if has_words or is_from_people(row.item) else "leave_out"


@dataclass(frozen=True, slots=True)
class WordsAlone(ChatRepair):
    """Only messages stay, up to `until`; of calls and outputs words stay."""

    until: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return "The server rejected this chat again: only its text was sent."

    def stored(self) -> list[str]:
        """Return the form that a chat stores."""
        return ["words", self.until]

    @property
    def last_name(self) -> str:
        """The name of the last item that it is about."""
        return self.until

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave an item out that is no message with words."""
        has_words = _is_message_with_text(row.item)
        return "plain" if has_words or is_from_people(row.item) else "leave_out"


@dataclass(frozen=True, slots=True)
class LeaveOutPlainReasoning(ChatRepair):
    """Reasoning of which only the words came is not sent again.

    It is the way of a server, not of a chat.
    """

    is_about_chat: ClassVar = False

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return "The server does not accept its own reasoning: answering without it."

    def stored(self) -> list[str]:
        """Return nothing that a chat stores."""
        return []

    def change_of(self, row: NamedItem) -> ItemChange:
        """Leave such reasoning out."""
        return "leave_out" if has_plain_reasoning(row.item) else "none"


def _is_message_with_text(item: Item) -> bool:
    return item_type(item) == "message" and bool(message_text(item))


def read_chat_repairs(rows: Sequence[object]) -> list[ChatRepair]:
    """Return the repairs of their stored form, each once; anything else is skipped.

    The owner of a chat can write anything there.
    """
    repairs: dict[ChatRepair, None] = {}
    for row in rows[-_MAX_ROWS_READ:]:
        repair = _read_chat_repair(as_list(row))
        if repair is not None:
            repairs[repair] = None
    return list(repairs)[-MAX_CHAT_REPAIRS:]


_BY_NAME = {
    "item": LeaveOutItem,
    "text": SendAsText,
    "reasoning": LeaveOutReasoning,
    "plain": PlainItems,
    "words": WordsAlone,
}
"""The repairs whose stored form is a word and the name of an item."""


def _read_chat_repair(row: list[Any]) -> ChatRepair | None:
    """Return the repair of a stored form, None for anything else."""
    if not all(isinstance(word, str) for word in row):
        return None
    match row:
        case [action, name] if action in _BY_NAME and _NAME_FORM.fullmatch(name):
            repair: ChatRepair = _BY_NAME[action](name)
            return repair
        case ["kind", kind, name] if _TYPE_FORM.fullmatch(kind) and (
            _NAME_FORM.fullmatch(name)
        ):
            return LeaveOutKind(kind, name)
    return None


def item_names(items: Iterable[Item]) -> list[str]:
    """Return the names of items: a digest, and a number where the same item comes again.

    What is appended to a chat changes no name.
    """
    counts = Counter[str]()
    names: list[str] = []
    for item in items:
        digest = json_digest(item)
        number = counts[digest]
        names.append(f"{digest}.{number}" if number else digest)
        counts[digest] += 1
    return names


class _JoinedChanges(NamedTuple):
    """What several repairs do to the items of a chat, by the names of the items."""

    left_out: Set[str]
    plain: Set[str]
    calls_as_words: Set[object]
    """The ids of the calls of which a part is left out: words stay of both parts."""

    def keep_words_of(self, item: Item) -> bool:
        """Say whether an item is a part of a call that is sent as words."""
        return is_paired(item) and item.get("call_id") in self.calls_as_words


def name_items(items: Sequence[Item], repairs: Iterable[object]) -> list[NamedItem]:
    """Return the items that are sent, each with the name of what it was made of.

    Repairs of requests are not applied here. Calls and outputs stay in pairs.
    """
    rows = _rows_of(items)
    own = [repair for repair in repairs if isinstance(repair, ChatRepair)]
    if not own:
        return rows
    changed = _apply_changes(rows, _join_changes(rows, own))
    in_pairs = {id(item) for item in drop_orphans([row.item for row in changed])}
    return [row for row in changed if id(row.item) in in_pairs]


def _apply_changes(
    rows: Iterable[NamedItem], changes: _JoinedChanges
) -> list[NamedItem]:
    """Return the items with what the repairs change; half pairs are still there."""
    sent: list[NamedItem] = []
    for row in rows:
        if changes.keep_words_of(row.item):
            _drop_last_reasoning_rows(sent)
            sent.append(row._replace(item=_words_of_pair(row.item)))
        elif row.name in changes.left_out and not is_from_people(row.item):
            _drop_last_reasoning_rows(sent)
        elif row.name in changes.plain and _has_plain_form(row.item):
            sent.append(row._replace(item=plain_item(row.item)))
        else:
            sent.append(row)
    return sent


def _rows_of(items: Sequence[Item]) -> list[NamedItem]:
    rows = zip(item_names(items), items, strict=True)
    return [NamedItem(name, item) for name, item in rows]


def _join_changes(
    rows: Sequence[NamedItem], repairs: Iterable[ChatRepair]
) -> _JoinedChanges:
    """Return what `repairs` do together; leaving an item out wins (`_apply_changes`)."""
    left_out: set[str] = set()
    plain: set[str] = set()
    for repair in repairs:
        for row in _rows_up_to(rows, repair.last_name):
            change = repair.change_of(row)
            if change == "leave_out":
                left_out.add(row.name)
            elif change == "plain":
                plain.add(row.name)
    calls_as_words: set[object] = set()
    for row in rows:
        if row.name in left_out and is_paired(row.item):
            calls_as_words.add(row.item.get("call_id"))
    return _JoinedChanges(left_out, plain, calls_as_words)


def _rows_up_to(rows: Sequence[NamedItem], last_name: str) -> Sequence[NamedItem]:
    """Return the rows up to the one with `last_name`, itself included.

    An empty name means all rows. If no row has the name, none is returned: the item is
    not in the chat any more.
    """
    if not last_name:
        return rows
    for index, row in enumerate(rows):
        if row.name == last_name:
            return rows[: index + 1]
    return ()


def _drop_last_reasoning_rows(rows: list[NamedItem]) -> None:
    while rows and is_reasoning(rows[-1].item):
        rows.pop()


def _has_plain_form(item: Item) -> bool:
    return is_paired(item) or item_type(item) == "message"


def is_from_people(item: Item) -> bool:
    """Say whether a person or the administrator wrote `item`, which always stays.

    Items without a role, such as calls, are the model's or its tools'.
    """
    return bool(item.get("role", "assistant") != "assistant")


def _words_of_pair(item: Item) -> Item:
    """Return a call or an output as words of the model."""
    if is_call(item):
        arguments = item.get("arguments") or item.get("input")
        text = f"I called {item.get('name')}: {arguments}"
    else:
        text = f"I got this result: {plain_item(item).get('output')}"
    return text_message("assistant", text[:_MAX_WORDS_OF_PAIR])


def has_media(item: Item) -> bool:
    """Say whether `item` holds an image or a file."""
    return any(
        part.get("type") in _MEDIA
        for key in ("content", "output")
        for part in content_parts(item.get(key))
    )


def plain_item(item: Item) -> Item:
    """Return a message, a call or an output with its words alone."""
    if item_type(item) == "message":
        return text_message(item.get("role"), message_text(_without_media(item)))
    bare = _without_media(item)
    if isinstance(bare.get("output"), list):
        texts = [part_text(part) for part in content_parts(bare["output"])]
        bare["output"] = "\n".join(texts)
    names = ("type", "call_id", "name", "arguments", "input", "output")
    return {key: bare[key] for key in names if key in bare}


def _without_media(item: Item) -> Item:
    changed = dict(item)
    for key in ("content", "output"):
        if isinstance(item.get(key), list):
            changed[key] = [_part_without_media(part) for part in item[key]]
    return changed


def _part_without_media(part: Any) -> Any:
    is_media = isinstance(part, dict) and part.get("type") in _MEDIA
    return {"type": "input_text", "text": _MEDIA_GONE} if is_media else part


# --------------------------------------------------------------------------------------
# openai_responses.repairs.request_repairs
#
# Repairs of requests to one model: tools, parameters and fields that are left out.
#
# They are remembered for a user or for all users (`memory`). What guards is never
# repaired away: only the parameters in `MAY_BE_LEFT_OUT` go, only fields that say nothing
# of what an item means, and a tool goes whole, because without its filters, its allowed
# tools or its approvals it would do more than its administrator permits.
# --------------------------------------------------------------------------------------


MAY_BE_LEFT_OUT = frozenset(
    {
        "access_programs",
        "context_management",
        "image",
        "include",
        "metadata",
        "parallel_tool_calls",
        "prompt_cache_key",
        "prompt_cache_options",
        "reasoning",
        "reasoning.context",
        "reasoning.effort",
        "reasoning.mode",
        "reasoning.summary",
        "service_tier",
        "stream",
        "temperature",
        "text",
        "text.verbosity",
        "top_logprobs",
        "top_p",
        "truncation",
    }
)
"""Parameters that guard nothing. Not `store`, `safety_identifier`, `instructions`,
`moderation`, `prompt_cache_retention`, the limits `max_output_tokens` and
`max_tool_calls`, nor what the person asked for: the model, the input, the format."""

_FIELDS_WITH_A_MEANING = frozenset(
    {
        "action",
        "approval_request_id",
        "approve",
        "arguments",
        "call_id",
        "code",
        "container_id",
        "content",
        "encrypted_content",
        "file_data",
        "file_id",
        "file_url",
        "filename",
        "image_url",
        "input",
        "name",
        "output",
        "queries",
        "refusal",
        "result",
        "role",
        "server_label",
        "text",
        "tools",
        "type",
    }
)
"""An item without one of them would say something else: it is left out whole."""
_ITEMS_THAT_STAY_WHOLE = APPENDED | {"mcp_approval_request", "mcp_approval_response"}
_MAX_KEYS = 6
"""Names in the path of a field that a repair remembers."""
_MAX_TYPE = 64
"""Characters of an item's type, and of a field's name in a message."""


class RequestRepair(ABC):
    """One change of a request."""

    __slots__ = ()

    is_about_chat: ClassVar = False
    """Whether a chat remembers it, and not the account."""

    @property
    @abstractmethod
    def message(self) -> str:
        """The status line for the person who waits."""

    @abstractmethod
    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the changed body; the same object if there is nothing to change."""

    def applies(self, sent: SentRequest) -> bool:
        """Say whether it changes what was sent."""
        return self.apply(sent.payload) != sent.payload


Repair = ChatRepair | RequestRepair


def refused_message(refused: str) -> str:
    """Return what a person is told of something that is left out."""
    return f"The model's server does not accept {refused}: answering without it."


@dataclass(frozen=True, slots=True)
class LeaveOutParameter(RequestRepair):
    """A parameter goes that has the refused value, or whatever value it has."""

    path: str
    value_digest: str = ""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        if self.path == "stream":
            return "The model cannot stream here: the answer arrives all at once."
        return refused_message(self.path)

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the parameter."""
        if self.path not in MAY_BE_LEFT_OUT:
            return payload
        value = value_at(payload, *self.path.split("."))
        if value is None or self._is_about_another(value):
            return payload
        if self.path == "text" and "format" in value:
            return payload  # the person asked for it
        return _with_parameter(payload, self.path, None)

    def _is_about_another(self, value: object) -> bool:
        """Say whether only another value was refused; without a digest all were."""
        return bool(self.value_digest) and self.value_digest != json_digest(value)


@dataclass(frozen=True, slots=True)
class ReplaceEffort(RequestRepair):
    """An effort that the model does not have becomes the nearest that it has."""

    refused: str
    allowed: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return f"The model does not have this effort: using {self.allowed}."

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body with the other effort."""
        if value_at(payload, "reasoning", "effort") != self.refused:
            return payload
        return _with_parameter(payload, "reasoning.effort", self.allowed)


def _with_parameter(
    payload: dict[str, Any], path: str, value: object
) -> dict[str, Any]:
    """Return a body with another value at a path of one or two names; None for none."""
    outer, _, inner = path.partition(".")
    changed = dict(payload)
    if inner:
        changed[outer] = _with_key(payload[outer], inner, value)
    else:
        changed[outer] = value
    if changed[outer] in (None, {}):
        del changed[outer]
    return changed


def _with_key(fields: Mapping[str, Any], key: str, value: object) -> dict[str, Any]:
    changed = {**fields, key: value}
    if value is None:
        del changed[key]
    return changed


@dataclass(frozen=True, slots=True)
class LeaveOutToolChoice(RequestRepair):
    """The choice of tools goes, and with it each tool that it forbids."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return refused_message("tool_choice")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the choice, offering no more than it allowed."""
        choice = payload.get("tool_choice")
        if choice is None:
            return payload
        tools = declared_tools(payload)
        if choice == "none":
            tools = []
        elif isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
            allowed = {tool_name(tool) for tool in as_list(choice.get("tools"))}
            tools = [tool for tool in tools if tool_name(tool) in allowed]
        return _with_tools(lower_payload(payload, {ADDED_TOOLS}), tools, None)


@dataclass(frozen=True, slots=True)
class LeaveOutTool(RequestRepair):
    """A tool goes whole, and a choice that may have meant it."""

    digest: str
    name: str = field(default="", compare=False)

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return refused_message(f"the tool {self.name[:64]}")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the tool, also without an item that added it."""
        declared = declared_tools(payload)
        remaining = self._without_it(declared)
        if len(remaining) == len(declared):
            return payload
        changed = dict(payload)
        if self._is_added(payload):
            changed = lower_payload(payload, {ADDED_TOOLS})
        choice = _remaining_choice(payload.get("tool_choice"), remaining)
        return _with_tools(changed, self._without_it(changed["tools"]), choice)

    def _without_it(self, tools: Sequence[Item]) -> list[Item]:
        return [tool for tool in tools if json_digest(tool) != self.digest]

    def _is_added(self, payload: Mapping[str, Any]) -> bool:
        """Say whether only an item declares the tool, not the request itself."""
        tools = as_list(payload.get("tools"))
        return len(self._without_it(tools)) == len(tools)


def _with_tools(
    payload: dict[str, Any], tools: Sequence[Item], choice: object
) -> dict[str, Any]:
    """Return a body with these tools and this choice; no empty list, no idle choice."""
    changed = {**payload, "tools": list(tools), "tool_choice": choice}
    if not tools:
        del changed["tools"]
    if choice is None or not declared_tools(changed):
        del changed["tool_choice"]
    return changed


def _remaining_choice(choice: object, tools: Sequence[Item]) -> object:
    """Return a choice among the `tools` that are left; None if it may mean another."""
    # A call may have been demanded of the tool that is gone.
    if choice == "required":
        return None
    if not isinstance(choice, Mapping):
        return choice
    names: set[object] = set()
    for tool in tools:
        names |= {tool_name(tool), tool.get("type")}
    allowed = choice.get("tools")
    if not isinstance(allowed, list):
        return choice if tool_name(choice) in names else None
    still_allowed = [tool for tool in allowed if tool_name(tool) in names]
    if not still_allowed:
        return "none"
    return {**choice, "tools": still_allowed}


@dataclass(frozen=True, slots=True)
class LeaveOutField(RequestRepair):
    """A field that a server does not know goes from all items of a type."""

    kind: str
    keys: tuple[str, ...]

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return refused_message(self.keys[-1][:_MAX_TYPE])

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body whose items do not have the field."""
        if not may_lose_field(self.kind, self.keys):
            return payload
        items = [
            _without_key(item, self.keys) if item_type(item) == self.kind else item
            for item in payload["input"]
        ]
        return {**payload, "input": items}


def may_lose_field(kind: str, keys: Sequence[str]) -> bool:
    """Say whether items of a type mean the same without the field at a path."""
    if not 0 < len(keys) <= _MAX_KEYS or len(kind) > _MAX_TYPE:
        return False
    if kind == "message" and tuple(keys) == ("type",):
        return True  # its role tells what it is
    return kind not in _ITEMS_THAT_STAY_WHOLE and keys[-1] not in _FIELDS_WITH_A_MEANING


def _without_key(value: Any, keys: Sequence[str]) -> Any:
    if isinstance(value, list):
        return [_without_key(row, keys) for row in value]
    if not isinstance(value, dict) or keys[0] not in value:
        return value
    if len(keys) > 1:
        return {**value, keys[0]: _without_key(value[keys[0]], keys[1:])}
    return {key: inner for key, inner in value.items() if key != keys[0]}


@dataclass(frozen=True, slots=True)
class LeaveOutStrict(RequestRepair):
    """No function says whether it is strict, for servers that do not know the field."""

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return refused_message("strict")

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body whose functions do not have the field."""
        changed = dict(payload)
        if payload.get("tools"):
            changed["tools"] = _not_strict(payload["tools"])
        changed["input"] = [_with_lax_tools(item) for item in payload["input"]]
        return changed


def _with_lax_tools(item: Item) -> Item:
    """Return an item in whose tools no function says whether it is strict."""
    if item_type(item) != ADDED_TOOLS:
        return item
    return {**item, "tools": _not_strict(item["tools"])}


def _not_strict(tools: Iterable[Item]) -> list[Item]:
    lax: list[Item] = []
    for tool in tools:
        if tool.get("type") == "function":
            lax.append(_without_key(tool, ("strict",)))
        else:
            lax.append(tool)
    return lax


@dataclass(frozen=True, slots=True)
class LowerItems(RequestRepair):
    """Fields of the request say what items of a type said."""

    kind: str

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return refused_message(self.kind)

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body without the items."""
        return lower_payload(payload, {self.kind} & APPENDED)


@dataclass(frozen=True, slots=True)
class MoveMessages(RequestRepair):
    """Messages between calls and their outputs stand behind the outputs.

    Recorded at DeepSeek: there an output has to follow the calls at once.
    """

    @property
    def message(self) -> str:
        """The status line for the person who waits."""
        return (
            "The model's server does not accept text between a tool call and its result: "
            "moving the text after it."
        )

    def apply(self, payload: dict[str, Any]) -> dict[str, Any]:
        """Return the body with its items in the other order."""
        return {**payload, "input": move_messages_behind_outputs(payload["input"])}


def repair_request(
    payload: dict[str, Any], repairs: Sequence[Repair]
) -> dict[str, Any]:
    """Return the body of a request with all `repairs`; `payload` itself with none."""
    if not repairs:
        return payload
    if any(isinstance(repair, ChatRepair) for repair in repairs):
        return sent_request(payload, repairs).payload
    # The names of all items take a while in a long chat, and nobody needs them here.
    lowered = lower_payload(payload, lowered_kinds(repairs))
    return _apply_all(lowered, repairs)


def sent_request(payload: dict[str, Any], repairs: Sequence[Repair]) -> SentRequest:
    """Return what is sent for a body before its repairs, with the names of its items.

    What is lowered is lowered first: tools of an item are then left out like others.
    Items are moved before they get names, so that a name stays with its item.
    """
    lowered = lower_payload(payload, lowered_kinds(repairs))
    if MoveMessages() in repairs:
        lowered = MoveMessages().apply(lowered)
    rows = name_items(lowered["input"], repairs)
    lowered["input"] = [row.item for row in rows]
    repaired = _apply_all(lowered, repairs)
    if len(repaired["input"]) < len(rows):  # a repair of tools took their items along
        rows = [row for row in rows if item_type(row.item) != ADDED_TOOLS]
    sent = zip(rows, repaired["input"], strict=True)
    items = [row._replace(item=item) for row, item in sent]
    return SentRequest(repaired, items, payload, tuple(repairs))


def _apply_all(payload: dict[str, Any], repairs: Sequence[Repair]) -> dict[str, Any]:
    for repair in repairs:
        if isinstance(repair, RequestRepair):
            payload = repair.apply(payload)
    return payload


def lowered_kinds(repairs: Iterable[Repair]) -> Set[str]:
    """Return the types of items that a server does not take."""
    return {repair.kind for repair in repairs if isinstance(repair, LowerItems)}


def refused_tools(repairs: Iterable[Repair]) -> Set[str]:
    """Return the digests of the tools that a server does not take."""
    return {repair.digest for repair in repairs if isinstance(repair, LeaveOutTool)}


def effort_of(payload: Mapping[str, Any]) -> object:
    """Return the effort that a request asks for."""
    return value_at(payload, "reasoning", "effort")


def value_digest(payload: Mapping[str, Any], path: str) -> str:
    """Return the digest of a parameter's value."""
    return json_digest(value_at(payload, *path.split(".")))


# --------------------------------------------------------------------------------------
# openai_responses.retries
#
# Which failures may pass if the same request is sent again, and how long to wait.
#
# Requests are sent again as OpenAI's Python client does it
# (docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
# retrying cannot restore.
# --------------------------------------------------------------------------------------


RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "server_error", "server_is_overloaded", "slow_down"}
)
_RETRIED_STATUS = frozenset({408, 409, 429})
_NO_CREDIT_SUFFIXES = ("_spend_limit_exceeded", "_usage_limit_exceeded")
"""Ends of the codes of a 429 that no wait removes, also of those that nobody listed."""
_FIRST_BACKOFF = 0.5
_MAX_BACKOFF = 8.0
"""Seconds, like those of OpenAI's client (`_constants.py`)."""


class RetryPolicy(NamedTuple):
    """How often to retry, and the longest wait in seconds."""

    max_retries: int = 2
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    """Return the seconds before the next attempt; None if there is none.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not is_transient(failure):
        return None
    wait = failure.retry_after
    if wait is None:
        # Up to a quarter less, so that many clients do not come back at once.
        wait = min(_FIRST_BACKOFF * 2**attempt, _MAX_BACKOFF) * (1 - 0.25 * jitter)
    return wait if wait <= policy.max_wait else None


def is_transient(failure: Failure) -> bool:
    """Say whether the same request may succeed later."""
    words = {failure.error.code, failure.error.type}
    is_out_of_credit = (failure.error.code or "").endswith(_NO_CREDIT_SUFFIXES)
    if is_out_of_credit or words & NO_CREDIT_CODES:
        return False
    # The header `x-should-retry` decides against the status, in both directions.
    if failure.should_retry is not None:
        return failure.should_retry
    # No answer, or a stream that began with an error: only words tell what it was. One
    # without any words, or of the server's own trouble, may pass.
    if failure.status in (None, 200):
        is_nameless = words == {None} and not failure.error.names_a_place
        return is_nameless or bool(words & RETRIED_CODES)
    return failure.status in _RETRIED_STATUS or failure.status >= 500


# --------------------------------------------------------------------------------------
# openai_responses.repairs.finding
#
# Finds the repair of a request that was refused.
#
# Nobody knows all that a server may refuse, so what to change is found from what the
# refusal names (`refusal`). Only few refusals name nothing and are known by their words
# (docs/reference/responses-api.md, "Refusals of input items" and "Errors"). If that does
# not suffice, the plain words of the chat are sent.
# --------------------------------------------------------------------------------------


MAX_REPAIRS = 3
"""Of one response, before plain words are sent."""

_OTHER_CAUSES = frozenset({*range(300, 400), 401, 402, 403, 407, 408, 413, 429})
"""Statuses that are not about what the request says."""
_UNREAD = "invalid_encrypted_content"
"""Of another organization, provider or deployment, or damaged (openai/codex 8145)."""
_LASTING_CODES = (
    RETRIED_CODES
    | NO_CREDIT_CODES
    | SENTENCES["failed"].keys()
    | SENTENCES["refused"].keys()
) - {*IMAGE_CODES, _UNREAD, "404"}
"""Codes whose cause no change of the request removes."""
_UNREADABLE = re.compile(
    # Reasoning without what it led to, or the other way round (continuedev/continue
    # 8933, 11994; recorded, 986).
    r"provided without its required"
    # An id that would have to be looked up (anomalyco/opencode 7724).
    r"|Items are not persisted when"
    r"|encrypted content .{0,400} could not be verified"
    # A model that does not reason (openai/openai-python 2364).
    r"|reasoning input items can only be provided",
    re.IGNORECASE | re.DOTALL,
)
_TEXT_BEFORE_OUTPUT = re.compile(r"No tool output found for (tool|function) call\b")
"""What DeepSeek says of a text between a call and its output (recorded), and of nothing
that a request lacks: calls and outputs are sent in pairs."""
_MAX_NAME = 64
"""Characters of a name that are kept for the message."""
_UNREACHED = "retrieving tool list"
"""What the API writes of a remote MCP server that may be there again soon."""


class Trial(NamedTuple):
    """A repair on trial, which is remembered if it is seen to help."""

    repair: Repair
    error: ApiError = ApiError()
    """The refusal that it answers."""
    is_named: bool = False
    """Whether the server's own `param` names what is changed, and no person wrote it."""
    is_lasting: bool = True
    """Whether later requests would be refused as well."""
    helped_at_once: bool = False
    """Whether the request with this repair was accepted."""


def may_be_repaired(failure: Failure) -> bool:
    """Say whether a failure is about what the request says."""
    codes = {failure.error.code, failure.error.type}
    return failure.status not in _OTHER_CAUSES and codes.isdisjoint(_LASTING_CODES)


def find_repair(sent: SentRequest, failure: Failure, done: int = 0) -> Trial | None:
    """Return what to try after a refusal of `sent`; None if nothing may help.

    `done` is how many repairs the same response has cost.
    """
    if not may_be_repaired(failure):
        return None
    error = failure.error
    refusal = Refusal(error, sent)
    if done < MAX_REPAIRS:
        for trial in _candidates(refusal, failure):
            if _is_worth_trying(trial.repair, sent):
                return trial._replace(error=error)
    return _plain_words(sent, error) if _may_want_plain_words(failure) else None


def last_repair(sent: SentRequest, failure: Failure) -> Trial | None:
    """Return what to try when retries did not help; None if nothing may.

    A stream that ends in an error without any name may be a refusal for good, or a
    server in trouble: so a chat does not remember it.
    """
    if failure.status != 200 or not may_be_repaired(failure):
        return None
    trial = _plain_words(sent, failure.error)
    return trial._replace(is_lasting=False) if trial else None


def _plain_words(sent: SentRequest, error: ApiError) -> Trial | None:
    """Return the trial that sends less of the chat; first the one that keeps more."""
    for repair in (PlainItems(sent.last_name), WordsAlone(sent.last_name)):
        if _is_worth_trying(repair, sent):
            return Trial(repair, error)
    return None


def _may_want_plain_words(failure: Failure) -> bool:
    """Say whether other words may be accepted; the server may as well be in trouble."""
    if failure.status is None or is_transient(failure):
        return False
    error = failure.error
    if failure.status != 404 or error.names_a_place:
        return True
    # Else it is about the address or the model, unless the API itself says otherwise.
    is_of_the_api = error.type == "invalid_request_error"
    return is_of_the_api and "model" not in error.message.lower()


def _is_worth_trying(repair: Repair, sent: SentRequest) -> bool:
    """Say whether a repair is new, and changes what was sent.

    Nor does it give back an effort that another repair took away.
    """
    if repair in sent.repairs:
        return False
    if isinstance(repair, ReplaceEffort):
        for earlier in sent.repairs:
            if isinstance(earlier, ReplaceEffort) and earlier.refused == repair.allowed:
                return False
    return repair.applies(sent)


def _candidates(refusal: Refusal, failure: Failure) -> Iterator[Trial]:
    """Yield what may help, the best first."""
    if failure.status is None:
        # A stream that could not be read: no server said anything.
        if refusal.error.param == "stream":
            yield Trial(LeaveOutParameter("stream"))
        return
    if "reasoning" in refusal.error.text.lower():
        yield Trial(LeaveOutPlainReasoning())
    for find in (
        _by_code_or_words,
        _by_place,
        _by_image_code,
        _by_id,
        _by_unreadable_reasoning,
        _by_parameter,
        _by_tool,
    ):
        yield from find(refusal)
    yield Trial(LeaveOutPlainReasoning())


def _by_code_or_words(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair for refusals whose place is not what has to be changed."""
    words = refusal.words
    kinds = {item_type(row.item) for row in refusal.sent.items}
    last = refusal.sent.last_name
    if refusal.error.code == _UNREAD:
        yield Trial(LeaveOutReasoning(last))
    # "Container is expired." names no place; "Expected container_id: cntr_..." a chat
    # met in every further turn (pydantic/pydantic-ai 7461).
    if "code_interpreter_call" in kinds and "container" in words.lower():
        yield Trial(LeaveOutKind("code_interpreter_call", last))
    if _TEXT_BEFORE_OUTPUT.search(words):
        yield Trial(MoveMessages())
    # Behind "Supported values are" stand the types that the server does take.
    refused = words.partition("upported values")[0]
    for kind in sorted(APPENDED & kinds):
        if kind in refused:
            yield Trial(LowerItems(kind))
    # Before gpt-5.6 a choice cannot name a tool that only an item declares: "Tool choice
    # 'x' not found in 'tools' parameter." (pydantic-ai 2.68.0)
    if "not found in 'tools'" in words:
        yield Trial(LowerItems(ADDED_TOOLS))
    # "Your organization must be verified to stream this model." (continuedev/continue
    # 8209)
    if "must be verified to stream" in words.lower():
        is_named = refusal.named_parameter == "stream"
        yield Trial(LeaveOutParameter("stream"), is_named=is_named)


def _by_place(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repairs of the item or the tool that is named."""
    place = refusal.place
    if place is None:
        return
    is_named = refusal.has_named_place
    tool = place.value if place.list_name == "tools" else place.inner_tool
    if tool is not None:
        if refusal.is_unknown and place.keys[-1:] == ("strict",):
            yield Trial(LeaveOutStrict(), is_named=is_named)
        yield _without_tool(refusal, tool, is_named=is_named)
        return
    yield from _without_field(refusal, place)
    yield from _without_item(refusal, place.number, is_named=is_named)


def _without_tool(refusal: Refusal, tool: Item, *, is_named: bool = False) -> Trial:
    """Return the repair of a tool; a server that is not reached may be back soon."""
    is_lasting = _UNREACHED not in refusal.words
    repair = LeaveOutTool(json_digest(tool), tool_name(tool)[:_MAX_NAME])
    return Trial(repair, is_named=is_named, is_lasting=is_lasting)


def _without_field(refusal: Refusal, place: Place) -> Iterator[Trial]:
    """Yield the repair of a field that the server does not know.

    What a person wrote may have it by that person's choice.
    """
    kind = item_type(place.value)
    if refusal.is_unknown and may_lose_field(kind, place.keys):
        is_named = refusal.has_named_place and not is_from_people(place.value)
        yield Trial(LeaveOutField(kind, place.keys), is_named=is_named)


def _without_item(
    refusal: Refusal, number: int, *, is_named: bool = False
) -> Iterator[Trial]:
    """Yield the repairs of one item; what people wrote always stays."""
    name, item = refusal.sent.items[number]
    kind = item_type(item)
    if kind in APPENDED:
        yield Trial(LowerItems(kind), is_named=is_named)
        return
    if has_plain_reasoning(item):
        yield Trial(LeaveOutPlainReasoning())
        return
    noun = kind.replace("_", " ")[:_MAX_NAME]
    if has_media(item):
        yield Trial(SendAsText(name, noun, had_media=True))
    elif kind == "message" and plain_item(item) != item:
        yield Trial(SendAsText(name, noun))
    has_left_out = any(
        isinstance(repair, LeaveOutItem) for repair in refusal.sent.repairs
    )
    if is_hosted(item) and has_left_out:  # a known type, so its name is short
        # One after the other would be refused; a long chat may have many.
        yield Trial(LeaveOutKind(kind, refusal.sent.last_name))
    if not is_from_people(item):
        yield Trial(LeaveOutItem(name, noun, keeps_words=is_paired(item)))


def _by_image_code(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of the newest image: its refusal names no place."""
    if refusal.error.code not in IMAGE_CODES:
        return
    rows = enumerate(refusal.sent.items)
    numbers = [number for number, row in rows if has_media(row.item)]
    if numbers:
        yield from _without_item(refusal, numbers[-1])


def _by_id(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repairs of the items that have an id which the server names."""
    for number in refusal.numbers_of_ids:
        yield from _without_item(refusal, number)


def _by_unreadable_reasoning(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair for encrypted reasoning that the server's words are about."""
    has_encrypted = any(is_encrypted(row.item) for row in refusal.sent.items)
    if has_encrypted and _UNREADABLE.search(refusal.words):
        yield Trial(LeaveOutReasoning(refusal.sent.last_name))


def _by_parameter(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of a parameter; one that guards stays."""
    payload = refusal.sent.payload
    is_named = refusal.named_parameter == refusal.parameter
    path = _whole_parameter(refusal.parameter)
    if path == "tool_choice":
        yield Trial(LeaveOutToolChoice(), is_named=is_named)
    if path not in MAY_BE_LEFT_OUT:
        return
    if path == "reasoning.effort" and not refusal.is_unknown:
        nearest = _nearest_effort(effort_of(payload), refusal.quoted_words)
        if nearest:
            repair = ReplaceEffort(str(effort_of(payload)), nearest)
            yield Trial(repair, is_named=is_named)
    refused_value = "" if refusal.is_unknown else value_digest(payload, path)
    yield Trial(LeaveOutParameter(path, refused_value), is_named=is_named)


def _whole_parameter(path: str) -> str:
    """Return what is left out for a place inside of a parameter, like `include[1]`.

    Only what `reasoning` and `text` hold goes on its own.
    """
    outer = re.split(r"[.\[]", path)[0]
    return path if outer in ("reasoning", "text") else outer


def _nearest_effort(asked: object, quoted: set[str]) -> str | None:
    """Return the effort that is nearest to the one that was asked for."""
    if asked not in REASONING_EFFORTS:
        return None
    wanted = REASONING_EFFORTS.index(str(asked))
    nearest = None
    least_distance = len(REASONING_EFFORTS)
    # The API lists what the model has: "Supported values are: 'low', 'medium', ..."
    for rank, effort in enumerate(REASONING_EFFORTS):
        distance = abs(rank - wanted)
        if effort in quoted and effort != asked and distance < least_distance:
            nearest = effort
            least_distance = distance
    return nearest


def _by_tool(refusal: Refusal) -> Iterator[Trial]:
    """Yield the repair of a tool that the words name by its name, label or type."""
    for tool in refusal.tools:
        yield _without_tool(refusal, tool)


# --------------------------------------------------------------------------------------
# openai_responses.requests.parameters
#
# The caller's parameters, in the names and forms of the API.
#
# Callers use the names of Chat Completions or of the API, or `enable_stream`; null means
# not given. A value that no API takes is left out, and the log says it: a chat must
# not fail because of one.
# --------------------------------------------------------------------------------------


ANSWER_KEYS = (
    "max_output_tokens",
    "temperature",
    "top_p",
    "top_logprobs",
    "tool_choice",
    "parallel_tool_calls",
    "truncation",
)
"""What shapes the caller's own answer and nothing else."""

ACCOUNT_KEYS: Mapping[str, str] = {
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
"""What concerns whoever pays for the account, and why (docs/parameters.md)."""

_KeyTree = Mapping[str, Any]
"""The keys of an object, each with those of its value; none where any value passes."""

_ANY: _KeyTree = {}
_MODE: _KeyTree = {"mode": _ANY}
_CHOSEN_TOOL: _KeyTree = {"type": _ANY, "name": _ANY, "server_label": _ANY}
_KNOWN_KEYS: Mapping[str, _KeyTree] = {
    "access_programs": {"cyber": _ANY},
    "context_management": {"type": _ANY, "compact_threshold": _ANY},
    "image": {"context_compression": _ANY},
    "moderation": {"model": _ANY, "policy": {"input": _MODE, "output": _MODE}},
    "prompt_cache_options": {
        "comparison_response_id": _ANY,
        "mode": _ANY,
        "prewarm": _ANY,
        "ttl": _ANY,
    },
    "reasoning": {"context": _ANY, "effort": _ANY, "mode": _ANY, "summary": _ANY},
    "text": {"format": _ANY, "verbosity": _ANY},
    "tool_choice": {**_CHOSEN_TOOL, "mode": _ANY, "tools": _CHOSEN_TOOL},
}
"""The keys that the API has inside of its parameters (types of openai-python 3.54.0).

No other key leaves: the API quotes an unknown one in its refusal, so whoever writes a
key would write a part of what is read to repair the request.
"""


def with_known_keys(name: str, value: object) -> Any:
    """Return the value of a parameter without keys that the API does not have."""
    return _only_keys(value, _KNOWN_KEYS.get(name, _ANY))


def _only_keys(value: object, known: _KeyTree) -> Any:
    """Return a value without unknown keys at any depth; each row of a list alike."""
    if isinstance(value, list):
        return [_only_keys(row, known) for row in value]
    if not known or not isinstance(value, Mapping):
        return value
    return {key: _only_keys(value[key], known[key]) for key in value if key in known}


_OBJECTS: Mapping[str, Mapping[str, str]] = {
    "reasoning": {"effort": "reasoning_effort", "summary": "reasoning_summary"},
    "text": {"verbosity": "verbosity", "format": "response_format"},
}
"""Fields that Chat Completions has beside the API's objects, and their names there."""

_MAX_FORMAT = 300_000
"""As `json_size` counts, like the schema of a tool. A user can store a format with a
model or a chat, and each short question then sends it."""
_ANSWER_FORMATS = ("text", "json_object", "json_schema")
_NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def read_parameters(body: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys with the API's names, and what is wrong with others.

    `reasoning` and `text` hold what Chat Completions has beside them. Keys that the API
    does not have stay. `stop` implies `truncation: "disabled"` (docs/parameters.md).
    """
    given = given_values(body)
    errors: list[str] = []
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
            value = own.pop(field, None) or beside
            if value:
                own[field] = value
        _read_values(own, f"{key}.", errors)
        given[key] = own
    return given, errors


def given_values(values: JsonObject) -> dict[str, Any]:
    """Return what is not null."""
    return {key: value for key, value in values.items() if value is not None}


def _read_values(values: dict[str, Any], prefix: str, errors: list[str]) -> None:
    """Replace values by what they mean; those without a meaning are left out.

    `prefix` is that of the names of these values, like `text.`.
    """
    for name, read in _VALUE_READERS.items():
        key = name.removeprefix(prefix)
        value = values.pop(key, None)
        if value is None:
            continue
        try:
            values[key] = read(name, value)
        except InvalidRequest as error:
            errors.append(str(error))


def read_bool(name: str, value: object) -> bool:
    """Return the value of true, false, 1 or 0, also as text; raises InvalidRequest."""
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
    """Return a word of the API, written in any case; raises InvalidRequest."""
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in _WORDS[name]:
        words = ", ".join(_WORDS[name])
        raise parameter_error(name, f"it must be one of {words}")
    return word


def _with_schema(given: dict[str, Any]) -> Any:
    """Return the `response_format` with the `json_schema` that may stand beside it."""
    form = given["response_format"]
    beside = given.pop("json_schema", None)
    if isinstance(form, str):
        form = {"type": form}
    is_bare = isinstance(form, Mapping) and form.get("json_schema") is None
    return {**form, "json_schema": beside} if is_bare else form


def _read_format(name: str, value: object) -> dict[str, Any]:
    """Return the API's flat `text.format`; Chat Completions nests the schema."""
    form = _read_object(name, value)
    try:
        json_size(form, _MAX_FORMAT)
    except JsonTooLarge:
        raise parameter_error(name, "it is too large") from None
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
    """Return the fields of a `json_schema` format.

    `strict` is always among them: the Responses API makes a schema that does not say it
    strict, and each of its properties required, while Chat Completions does not
    (recorded: 8 of 8).
    """
    read = parse_json_object(value) if isinstance(value, str) else value
    if not isinstance(read, Mapping) or not isinstance(read.get("schema"), Mapping):
        why = 'json_schema has to be a JSON object with the schema under "schema"'
        raise parameter_error(name, why)
    title = _NOT_IN_A_NAME.sub("_", str(read.get("name") or "response"))[:64]
    fields: dict[str, Any] = {"name": title, "schema": read["schema"]}
    if read.get("description"):
        fields["description"] = read["description"]
    strict = read.get("strict")
    fields["strict"] = strict is not None and read_bool("json_schema.strict", strict)
    return fields


def parameter_error(name: str, why: str) -> InvalidRequest:
    """Return the error of a parameter that cannot be sent."""
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
"""What reads a value that more than its type is known of."""


def hash_ids(kind: str, user_id: str, chat_id: str) -> dict[str, str | None]:
    """Return the parameters that name the user and, by the kind of key, the cache."""
    cache_key = None
    if kind == "chat":
        cache_key = _hash_id("chat", chat_id)
    if kind != "off":
        cache_key = cache_key or _hash_id("cache", user_id)
    return {
        "safety_identifier": _hash_id("user", user_id),
        "prompt_cache_key": cache_key,
    }


def _hash_id(kind: str, value: str) -> str | None:
    """Return a stable name for an id, which is random and cannot be guessed."""
    if not value:
        return None
    return hex_digest(f"openai_responses:{kind}:{value}")[:48]


# --------------------------------------------------------------------------------------
# openai_responses.callbacks
#
# The callback of a caller that wants to hear nothing.
# --------------------------------------------------------------------------------------


def ignore_report(_value: object) -> None:
    """Do nothing with what is reported."""


# --------------------------------------------------------------------------------------
# openai_responses.requests.strict_schema
#
# The strict form of a function's parameters.
#
# In strict mode the API makes a model keep to the schema. Every object is closed and
# every property required; optional ones become nullable, and `check_arguments` takes the
# nulls away again. The limits are those of OpenAI's guide "Structured outputs",
# "Supported schemas".
# --------------------------------------------------------------------------------------


Schema = dict[str, Any]

_JSON_TYPES = frozenset(
    {"array", "boolean", "integer", "null", "number", "object", "string"}
)


def json_types(stated: object) -> list[str]:
    """Return the types that a `type` names; none if it names anything else, too."""
    words = stated if isinstance(stated, list) else [stated]
    for word in words:
        if not isinstance(word, str) or word not in _JSON_TYPES:
            return []
    return list(dict.fromkeys(words))


class NoStrictForm(ValueError):
    """Strict mode cannot express a schema, or only with more work."""


_KEPT_IN_STRICT_MODE = frozenset(
    {
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
    }
)
"""Keywords that strict mode takes as they are."""

_DROPPED_IN_STRICT_MODE = frozenset(
    {
        "$comment",
        "$defs",
        "contentEncoding",
        "contentMediaType",
        "default",
        "definitions",
        "deprecated",
        "examples",
        "maxLength",
        "maxProperties",
        "minLength",
        "minProperties",
        "readOnly",
        "title",
        "uniqueItems",
        "writeOnly",
    }
)
"""Keywords that the guide does not list, and that only remark on values or limit them.

`default` and `minLength` are accepted all the same (recorded); of the others nobody says
it. Definitions are among them: a schema that refers to one has no strict form.
"""

_CHANGED_IN_STRICT_MODE = frozenset(
    {
        "additionalProperties",
        "anyOf",
        "const",
        "format",
        "items",
        "oneOf",
        "properties",
        "required",
        "type",
    }
)
_SIMPLE_KEYWORDS = (
    _KEPT_IN_STRICT_MODE | _DROPPED_IN_STRICT_MODE | _CHANGED_IN_STRICT_MODE
)

_STRICT_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uuid",
    }
)
_MAX_STRICT_DEPTH = 10
"""Levels of nesting (guide "Structured outputs")."""
_ROOT_DEPTH = 1


def strict_schema_form(root: Schema) -> Schema:
    """Return the strict form of a valid schema; raises NoStrictForm if it has none.

    Simple are single values, enums, arrays, objects whose properties are all listed,
    and choices of these. Whatever else narrows values down (references, `allOf`, `not`,
    conditions) is not simple, and neither is an open object. The strict form allows
    only what the schema allows, except nulls of optional properties and what violates
    keywords that strict mode does not have (`minLength`).
    """
    return _strict_form(root, _ROOT_DEPTH)


def _strict_form(node: Any, depth: int) -> Schema:
    if not isinstance(node, dict) or depth > _MAX_STRICT_DEPTH:
        raise NoStrictForm
    if not node.keys() <= _SIMPLE_KEYWORDS:
        raise NoStrictForm
    if "anyOf" in node or "oneOf" in node:
        return _strict_choice(node, depth)
    return _strict_value(node, depth)


def _strict_value(node: Schema, depth: int) -> Schema:
    """Return the strict form of a schema that is no choice."""
    strict = {key: node[key] for key in node if key in _KEPT_IN_STRICT_MODE}
    # A format that the API does not know takes the whole request down.
    if node.get("format") in _STRICT_FORMATS:
        strict["format"] = node["format"]
    # The guide has no `const`; an enum of one value is the same.
    if "const" in node:
        strict["enum"] = [node["const"]]
    types = _types_of(node, strict.get("enum"))
    strict["type"] = types[0] if len(types) == 1 else types
    if "object" in types:
        strict |= _strict_object(node, depth)
    if "array" in types:
        strict["items"] = _strict_form(node.get("items"), depth + 1)
    return strict


def _strict_choice(node: Schema, depth: int) -> Schema:
    """Return a choice; strict mode has only `anyOf`, with nothing beside it."""
    if node.keys() & {"properties", "items", "enum", "const", "required"}:
        raise NoStrictForm
    if "anyOf" in node and "oneOf" in node:
        raise NoStrictForm
    options = node["anyOf"] if "anyOf" in node else node["oneOf"]
    return _choice_of([_strict_form(option, depth + 1) for option in options], node)


def _strict_object(node: Schema, depth: int) -> Schema:
    properties = node.get("properties", {})
    required = set(node.get("required", ()))
    if not _is_closed(node, depth) or not required <= properties.keys():
        raise NoStrictForm
    # Strict mode knows no optional property: left to itself, the API would make each a
    # required one (recorded, 219 of 219), and the model would invent values.
    forms: Schema = {}
    for name, part in properties.items():
        form = _strict_form(part, depth + 1)
        forms[name] = form if name in required else _make_nullable(form)
    return {
        "properties": forms,
        "required": list(forms),
        "additionalProperties": False,
    }


def _is_closed(node: Schema, depth: int) -> bool:
    """Say whether an object may have only the properties that it lists.

    Servers seldom say so; an object that lists none, except a function's own
    parameters, is meant as a map.
    """
    if "additionalProperties" in node:
        return node["additionalProperties"] is False
    return depth == _ROOT_DEPTH or bool(node.get("properties"))


def _make_nullable(form: Schema) -> Schema:
    """Return a form that also allows null, which stands for a value left out."""
    types = form.get("type")
    if types is None or types in ("object", "array"):
        return _nullable_choice(form)
    names = types if isinstance(types, list) else [types]
    nullable = {**form, "type": names}
    if "null" not in names:
        nullable["type"] = [*names, "null"]
    # A type allows only what its enum lists, too.
    if "enum" in form and None not in form["enum"]:
        nullable["enum"] = [*form["enum"], None]
    return nullable


def _nullable_choice(form: Schema) -> Schema:
    """Return a choice between a form, or its options, and null."""
    undescribed = {key: form[key] for key in form if key != "description"}
    options = [undescribed]
    if undescribed.keys() == {"anyOf"}:
        options = undescribed["anyOf"]
    null = {"type": "null"}
    if null not in options:
        options = [*options, null]
    return _choice_of(options, form)


def _choice_of(options: list[Any], node: Schema) -> Schema:
    """Return a choice with the description of `node`."""
    choice: Schema = {"anyOf": options}
    if "description" in node:
        choice["description"] = node["description"]
    return choice


def _types_of(node: Schema, enum: list[Any] | None) -> list[str]:
    """Return the types that a node states, or those of the values that it lists."""
    if "type" in node:
        return json_types(node["type"])
    if "properties" in node:
        return ["object"]
    if enum is None:
        raise NoStrictForm
    types = [_type_of_scalar(value) for value in enum]
    return list(dict.fromkeys(types))


def _type_of_scalar(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case int():
            return "integer"
        case float():
            return "number"
    raise NoStrictForm


# --------------------------------------------------------------------------------------
# openai_responses.requests.json_schema
#
# JSON Schemas of functions, as the API takes them.
#
# Tool servers send schemas of every draft and of OpenAPI, and some that are not schemas
# at all. One that the API refuses makes every message of a chat fail. So each is copied
# once: the copy has the keywords of draft 2020-12 that have valid values, at every depth.
# Nothing is guessed; what is left out allows more than before, never something else. The
# tool's own schema stays as it is, and arguments are checked against that one.
#
# The API demands more than the draft (docs/reference/responses-api.md, "Function tools"):
#
# - The root is an object with `properties`, and not a choice.
# - An object has `properties`, an array has `items`.
# - A reference names a definition at the root.
# - A pattern is one that Python's `re` compiles, and that other engines read alike.
# --------------------------------------------------------------------------------------


LARGEST_SCHEMA = 300_000
"""The size of the largest schema that is read, as `json_size` counts it."""
MAX_STRICT_WORK = 300_000
"""The size of all schemas of a request that get a strict form."""
_MAX_STRICT_SCHEMA = 10_000
"""As `json_size` counts, ten for each value. Strict mode takes 5,000 properties, 1,000
values of enums, 120,000 characters of both, and 15,000 of one long enum (guide
"Structured outputs", "Supported schemas")."""


def function_parameters(
    schema: JsonObject, strict_left: JsonBudget | None = None
) -> tuple[Schema, bool]:
    """Return a function's parameters as the API takes them, and whether for strict mode.

    With `strict_left`, the work that may still be done, simple ones get their strict
    form; see `strict_schema_form`. Raises JsonTooLarge for a schema above
    LARGEST_SCHEMA or of more than 64 levels.
    """
    # Whoever runs a tool server chooses the size; each of its schemas is walked in each
    # request.
    json_size(schema, LARGEST_SCHEMA)
    copy = _SchemaCopy(schema)
    # Without `type: object` at the root, or with a choice there, the whole request is
    # refused (vercel/ai 7005, janhq/jan 7017).
    parameters = _object_without_choice(copy.schema)
    is_plain_object = (
        not copy.schema.keys() & _REFUSED_AT_THE_ROOT
        and schema.get("type", "object") == "object"
    )
    if strict_left is None or not copy.is_exact or not is_plain_object:
        return parameters, False
    try:
        strict_left.spend(json_size(parameters, _MAX_STRICT_SCHEMA))
        return strict_schema_form(parameters), True
    except (JsonTooLarge, NoStrictForm):
        return parameters, False


# ---------------------------------------------------------------- valid values


def is_json_value(value: object) -> bool:
    """Say whether JSON can express a value; it has no NaN and no infinity."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def is_json_number(value: object) -> bool:
    """Say whether a value is a number that JSON has."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return is_json_value(value)


def _is_schema(value: object) -> bool:
    return isinstance(value, Mapping | bool)


def _is_mapping(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, list)


def _is_filled_list(value: object) -> bool:
    return isinstance(value, list) and value != []


def _is_json_list(value: object) -> bool:
    return _is_filled_list(value) and is_json_value(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_length(value: object) -> bool:
    return type(value) is int and value >= 0


def _is_divisor(value: Any) -> bool:
    return is_json_number(value) and value > 0


_MAX_PATTERN_CHARACTERS = 500
_READ_DIFFERENTLY = re.compile(
    r"""
    \(\?(?!:)       # lookaround, flags, named groups
    | \\[1-9AZ]     # back references, anchors of Python alone
    | \[\^?\[       # sets in sets
    | -- | && | ~~ | \|\|
    | [*+?}]\+      # possessive repeats
    """,
    re.VERBOSE,
)
"""Parts of a pattern that Python, ECMAScript and Rust read differently, or refuse."""


def _is_portable_pattern(pattern: object) -> bool:
    """Say whether a pattern can be sent: the API refuses what `re` does not compile."""
    if not isinstance(pattern, str) or len(pattern) > _MAX_PATTERN_CHARACTERS:
        return False
    # gpt-5.5 and gpt-5.6 answer 400 "regex lookaround is not supported", gpt-5.4 ends
    # the stream with a bare `server_error` (anomalyco/opencode 32073, vercel/ai 20021).
    if _READ_DIFFERENTLY.search(pattern):
        return False
    try:
        # OpenAI's validator is Python's `jsonschema`: `\p{L}` "is not a 'regex'"
        # (Alishahryar1/free-claude-code 1730).
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_json_type(value: object) -> bool:
    return json_types(value) != []


_SCHEMA_KEYWORDS = frozenset(
    {
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_SCHEMA_LIST_KEYWORDS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_SCHEMA_MAP_KEYWORDS = frozenset(
    {
        "$defs",
        "definitions",
        "dependentSchemas",
        "patternProperties",
        "properties",
    }
)

_VALID_VALUES: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(_SCHEMA_KEYWORDS, _is_schema),
    **dict.fromkeys(_SCHEMA_LIST_KEYWORDS, _is_filled_list),
    **dict.fromkeys(_SCHEMA_MAP_KEYWORDS, _is_mapping),
    "$comment": _is_text,
    "const": is_json_value,
    "contentEncoding": _is_text,
    "contentMediaType": _is_text,
    "default": is_json_value,
    "deprecated": _is_flag,
    "description": _is_text,
    "enum": _is_json_list,
    "examples": _is_json_list,
    "exclusiveMaximum": is_json_number,
    "exclusiveMinimum": is_json_number,
    "format": _is_text,
    "maxContains": _is_length,
    "maxItems": _is_length,
    "maxLength": _is_length,
    "maxProperties": _is_length,
    "maximum": is_json_number,
    "minContains": _is_length,
    "minItems": _is_length,
    "minLength": _is_length,
    "minProperties": _is_length,
    "minimum": is_json_number,
    "multipleOf": _is_divisor,
    "pattern": _is_portable_pattern,
    "readOnly": _is_flag,
    "required": _is_list,
    "title": _is_text,
    "type": _is_json_type,
    "uniqueItems": _is_flag,
    "writeOnly": _is_flag,
}
"""The keywords that are sent, with the check of their values.

They are those of draft 2020-12, and `definitions`, which it still knows. Left out are
`$schema`, which is no longer true of the copy, words that give a part another name or
base (`$id`, `$anchor`, `$dynamicRef`), and `dependentRequired`, a map of lists that
nobody sends. `$ref` has a check of its own.
"""

_NEEDED_FOR_STRICT_MODE = frozenset(
    {
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "dependencies",
        "dependentRequired",
        "enum",
        "items",
        "nullable",
        "properties",
        "required",
        "type",
    }
)
"""Words without which a strict form would be a guess, if they are left out."""


# ---------------------------------------------------------------- copy


class _SchemaCopy:
    """A schema with its valid keywords; each node is read once.

    `is_exact` is false if a word was left out that strict mode would have to express.
    """

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self.is_exact = True
        self.schema = self._copy_keywords(root)

    def _copy(self, node: object) -> Schema | bool:
        """Return the copy of a node; what is not a schema allows everything."""
        if isinstance(node, bool):
            return node
        if isinstance(node, Mapping):
            return self._copy_keywords(node)
        return {}

    def _copy_keywords(self, node: JsonObject) -> Schema:
        copy: Schema = {}
        for keyword, value in node.items():
            if self._is_valid(keyword, value):
                copy[keyword] = self._copy_value(keyword, value)
            elif keyword in _NEEDED_FOR_STRICT_MODE:
                self.is_exact = False
        types = json_types(copy.get("type"))
        # An object without `properties` is refused, also without strict mode (forgecode
        # 1359), and so is an array without `items`.
        if "object" in types:
            copy.setdefault("properties", {})
        if "array" in types:
            copy.setdefault("items", {})
        return copy

    def _is_valid(self, keyword: object, value: object) -> bool:
        if keyword == "$ref":
            return self._is_definition(value)
        if not isinstance(keyword, str) or keyword not in _VALID_VALUES:
            return False
        return _VALID_VALUES[keyword](value)

    def _is_definition(self, reference: object) -> bool:
        """Say whether a reference names a definition at the root, or the root."""
        if not isinstance(reference, str) or not _DEFINITION.fullmatch(reference):
            return False
        return _is_schema(resolve_reference(self._root, reference))

    def _copy_value(self, keyword: str, value: Any) -> Any:
        if keyword in _SCHEMA_KEYWORDS:
            return self._copy(value)
        if keyword in _SCHEMA_LIST_KEYWORDS:
            return [self._copy(part) for part in value]
        if keyword in _SCHEMA_MAP_KEYWORDS:
            return self._copy_map(keyword, value)
        if keyword == "required":
            return _unique_texts(value)
        if keyword == "type" and isinstance(value, list):
            return _unique_texts(value)
        return value

    def _copy_map(self, keyword: str, parts: JsonObject) -> Schema:
        is_name: Callable[[Any], bool] = _is_text
        if keyword == "patternProperties":
            is_name = _is_portable_pattern
        return {name: self._copy(part) for name, part in parts.items() if is_name(name)}


def _unique_texts(values: list[Any]) -> list[str]:
    """Return the texts of a list, each once, as the draft wants it."""
    texts = [value for value in values if isinstance(value, str)]
    return list(dict.fromkeys(texts))


# ---------------------------------------------------------------- root

_REFUSED_AT_THE_ROOT = frozenset(
    {"$ref", "allOf", "anyOf", "const", "enum", "not", "oneOf"}
)


def _object_without_choice(root: Schema) -> Schema:
    """Return an object with all properties of the options that the root offers.

    The API refuses a choice at the root, and a model that knew none of its properties
    could not call the function.
    """
    plain = {key: root[key] for key in root if key not in _REFUSED_AT_THE_ROOT}
    return {**plain, "type": "object", "properties": _all_properties(root)}


def _all_properties(root: Schema) -> Schema:
    """Return the properties of the root and its options; those of the first count."""
    parts = joined_schemas(root, partial(schema_parts, root, choose=_choose_all))
    properties: Schema = {}
    for part in reversed(parts):
        properties.update(as_mapping(part.get("properties")))
    return properties


def _choose_all(options: list[Any]) -> list[Any]:
    return options


# ---------------------------------------------------------------- reading

_DEFINITION = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
_MAX_REFERENCE_CHARACTERS = 300


def resolve_reference(root: JsonObject, reference: object) -> Any:
    """Return the part of `root` that a `$ref` names, or None.

    The reference is a JSON pointer behind a `#`; `#` alone is the root (RFC 6901).
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
        part = _step_into(part, name)
    return part


def _step_into(part: Any, name: str) -> Any:
    if not isinstance(part, list):
        return as_mapping(part).get(name)
    if name.isdecimal() and int(name) < len(part):
        return part[int(name)]
    return None


def joined_schemas(
    node: Any, parts_of: Callable[[JsonObject], list[Any]]
) -> list[JsonObject]:
    """Return a schema and all that `parts_of` joins to it, in their order.

    Each comes once, because references may lead to the same part many times.
    """
    joined: dict[int, JsonObject] = {}
    ahead = [node]
    while ahead:
        part = ahead.pop()
        if isinstance(part, Mapping) and id(part) not in joined:
            joined[id(part)] = part
            ahead += reversed(parts_of(part))
    return list(joined.values())


def schema_parts(
    root: JsonObject, node: JsonObject, choose: Callable[[list[Any]], list[Any]]
) -> list[Any]:
    """Return what a part of a schema joins to itself; of a choice, what is chosen."""
    parts: list[Any] = []
    if "$ref" in node:
        parts.append(resolve_reference(root, node["$ref"]))
    parts += as_list(node.get("allOf"))
    parts += choose(as_list(node.get("anyOf")))
    parts += choose(as_list(node.get("oneOf")))
    return parts


# --------------------------------------------------------------------------------------
# openai_responses.requests.tools
#
# Tools in the API's form, with names that it allows.
# --------------------------------------------------------------------------------------


_ALLOWED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""Names of tools; any other is refused (openai/codex 1289)."""
_FORBIDDEN = re.compile(r"[^a-zA-Z0-9_-]")
_MAX_SHOWN_OF_NAME = 64
_STEM = 51
"""Of 64; the rest is `_` and the digest."""
_DIGEST = 12


@dataclass(frozen=True)
class ToolNames:
    """Translates the names of tools for the API and back; `known` are their own names.

    A translation depends only on the name, to be the same in later requests, unless
    another known tool has that name.
    """

    known: tuple[str, ...] = ()

    def sent_name(self, name: str) -> str:
        """Return the name that the API gets: 1 to 64 letters, digits, `_` and `-`."""
        return self._sent.get(name) or _allowed_name(name, self._sent)

    def own_name(self, called: str, others: Collection[str] = ()) -> str:
        """Return the tool's own name for the name that the model used.

        A name that neither a tool nor one of the `others` has means the only tool that
        is spelled like it.
        """
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
        # Of two with one name, the first counts.
        return {self._sent[name]: name for name in reversed(self.known)}

    @cached_property
    def _spelled(self) -> Mapping[str, str]:
        """The known names by their spelling; empty where two are spelled alike."""
        names: dict[str, str] = {}
        for name in dict.fromkeys(self.known):
            spelling = _spelling(name)
            if spelling in names:
                names[spelling] = ""  # neither of the two can be meant
            else:
                names[spelling] = name
        return names

    def rename_tools(self, tools: Iterable[Item]) -> list[Item]:
        """Return `tools` with the names that the API gets."""
        renamed: list[Item] = []
        for tool in tools:
            if is_hosted_tool(tool):
                renamed.append(tool)
            else:
                renamed.append({**tool, "name": self.sent_name(tool["name"])})
        return renamed


def _allowed_name(name: str, taken: Collection[str]) -> str:
    """Return a name that the API allows and that is not taken; it has a digest."""
    if _ALLOWED.fullmatch(name):
        return name
    stem = _FORBIDDEN.sub("_", name)[:_STEM]
    seed = name
    while True:
        seed = hex_digest(seed)
        sent = f"{stem}_{seed[:_DIGEST]}"
        if sent not in taken:
            return sent


_MODELS_PREFIX = "functions."
"""Models know functions in this namespace, and some write it."""
_MAX_CALL_ID = 64
"""Codex's own server issued longer ones, which the API refuses (hermes-agent 72006)."""


def _spelling(name: str) -> str:
    """Return what two spellings of a name have in common: case and signs do not count."""
    return _FORBIDDEN.sub("_", name.removeprefix(_MODELS_PREFIX)).lower()


def fit_calls(items: Sequence[Item]) -> list[Item]:
    """Return `items` with calls in the form that the API takes.

    A tool that an item added lies in a namespace of its own name, so its calls go back
    with that namespace. gpt-5.4 names it in the call; gpt-5.6 and gpt-6 leave it out, and
    accepted is the call with it (recordings of pydantic-ai). Any other namespace is of
    an earlier answer: tools lay in namespaces once, and are now declared without.
    """
    added = {
        as_text(tool.get("name"))
        for item in items
        if item_type(item) == ADDED_TOOLS
        for tool in content_parts(item.get("tools"))
    }
    return [clean_call(_with_own_namespace(item, added)) for item in items]


def _with_own_namespace(item: Item, added: Collection[str]) -> Item:
    """Return a call of an `added` tool with its namespace, any other call without one."""
    if not is_call(item):
        return item
    name = as_text(item.get("name"))
    namespace = name if name in added else None
    if item.get("namespace") == namespace:
        return item
    kept = {key: value for key, value in item.items() if key != "namespace"}
    return {**kept, "namespace": namespace} if namespace else kept


def clean_call(item: Item) -> Item:
    """Return an item with a name and a `call_id` that the API takes.

    Calls of other servers and models can have any. The same ones always become the
    same, so that a call, its output and its tool still fit.
    """
    name = item.get("name")
    call_id = item.get("call_id")
    changed: Item = {}
    if is_call(item) and isinstance(name, str) and not _ALLOWED.fullmatch(name):
        changed["name"] = ToolNames().sent_name(name.removeprefix(_MODELS_PREFIX))
    if isinstance(call_id, str) and not 0 < len(call_id) <= _MAX_CALL_ID:
        changed["call_id"] = f"call_{hex_digest(call_id)[:32]}"
    return {**item, **changed} if changed else item


_MODES = ("auto", "none", "required")
CALLED_BY_NAME = ("function", "custom")
"""Types of tools that the caller runs, and not the API."""

_OF_THE_API = ("allowed_callers", "async", "output_schema")
_KEYS_OF_CUSTOM = ("name", "description", "allowed_callers", "async")
_KEYS_OF_FORMAT = ("type", "definition", "syntax")
"""No other key of a caller's tool leaves: a refusal would quote it."""


_MAX_SIZE_OF_TOOLS = 500_000
"""The size of all tools of a request; about 700 usual ones."""
_NAMED_IN_LOG = 10


def responses_tools(
    specs: Sequence[JsonObject],
    *,
    strict: bool = False,
    log: Callable[[str], object] = ignore_report,
) -> list[Item]:
    """Return the tools of a chat body, or of the host, in the API's form.

    Chat Completions nests a function under `function`, the host has no `type`; the API
    needs it flat, with `parameters` and `strict`. With `strict` every function becomes
    strict whose schema allows it. Tools that are too large, alone or with those before
    them, are left out, and `log` gets a line.
    """
    size_left = JsonBudget(_MAX_SIZE_OF_TOOLS)
    strict_left = JsonBudget(MAX_STRICT_WORK)
    tools: list[Item] = []
    left_out: list[object] = []
    for spec in specs:
        try:
            size_left.spend(json_size(spec, min(size_left.left, LARGEST_SCHEMA)))
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
    """Return the quoted name of a tool for the log; the spec may be anything."""
    outer = as_mapping(spec)
    inner = as_mapping(outer.get("function") or outer.get("custom"))
    return repr(as_text(inner.get("name") or outer.get("name"))[:_MAX_SHOWN_OF_NAME])


def is_hosted_tool(tool: JsonObject) -> bool:
    """Say whether the API runs a tool, itself or on another server."""
    return tool.get("type") not in CALLED_BY_NAME


def merge_tools(*groups: Sequence[Item]) -> list[Item]:
    """Return the tools of all groups; a later one replaces an earlier one of its name.

    MCP servers are compared by label, other hosted tools by type.
    """
    tools = [tool for group in groups for tool in group]
    return list({tool_identity(tool): tool for tool in tools}.values())


def responses_tool_choice(
    choice: object, tools: Sequence[Item], names: ToolNames
) -> object:
    """Return `tool_choice` in the API's form, where a named function is not nested.

    A bare name is accepted. Raises InvalidRequest for a tool that is not among `tools`.
    """
    if choice is None or choice in _MODES:
        return choice
    if isinstance(choice, str):
        wanted = _choice_by_name(choice, tools, names)
    elif isinstance(choice, Mapping):
        wanted = _tool_choice(choice, names)
    else:
        raise InvalidRequest("The tool choice is neither a word nor a JSON object.")
    chosen = wanted["tools"] if wanted["type"] == "allowed_tools" else [wanted]
    _check_offered(chosen, tools)
    return wanted


def next_tool_choice(choice: object) -> object:
    """Return the choice after the first calls; what it forbids stays forbidden."""
    # A choice that demands a call would make the model call again and again.
    if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
        return {**choice, "mode": "auto"}
    return "none" if choice == "none" else None


def _responses_tool(spec: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    """Return one tool in the API's form; raises InvalidRequest if it has no name."""
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
    known = {key: flat[key] for key in _KEYS_OF_CUSTOM if key in flat}
    return {**known, **_custom_format(flat), "type": kind}


def _function(function: JsonObject, strict: bool, strict_left: JsonBudget) -> Item:
    own = function.get("strict")
    wanted = own if isinstance(own, bool) else strict
    parameters = as_mapping(function.get("parameters"))
    tool: Item = {"type": "function", "name": function["name"]}
    description = as_text(function.get("description"))
    if description:
        tool["description"] = description
    tool |= {key: function[key] for key in _OF_THE_API if key in function}
    strict_budget = strict_left if wanted else None
    schema, is_strict = function_parameters(parameters, strict_budget)
    # `strict` is always stated: without it the API makes the function strict, and each
    # optional property a required one (recorded, 219 of 219).
    return {**tool, "parameters": schema, "strict": is_strict}


def _custom_format(custom: JsonObject) -> Item:
    """Return the `format` of a custom tool; Chat Completions nests the grammar."""
    given = as_mapping(custom.get("format"))
    grammar = given.get("grammar")
    if isinstance(grammar, Mapping):
        given = {"type": "grammar", **grammar}
    known = {key: given[key] for key in _KEYS_OF_FORMAT if key in given}
    return {"format": known} if known else {}


def tool_identity(tool: JsonObject) -> tuple[str, object]:
    """Return what no two tools of a request have in common."""
    kind = tool.get("type")
    if kind in CALLED_BY_NAME:
        return "name", tool.get("name")
    if kind == "mcp":
        return "server", tool.get("server_label")
    return "type", kind


def _choice_by_name(choice: str, tools: Sequence[Item], names: ToolNames) -> Item:
    """Return the choice of a function, else of a hosted tool or a server."""
    sent = names.sent_name(choice)
    types = {
        tool.get("name"): tool["type"] for tool in tools if not is_hosted_tool(tool)
    }
    if sent in types:
        return {"type": types[sent], "name": sent}
    # A name that is none of a function may be that of a server, or a hosted tool's type.
    for tool in tools:
        if choice in (tool.get("type"), tool.get("server_label")):
            return {key: tool[key] for key in ("type", "server_label") if key in tool}
    return {"type": "function", "name": sent}


def _tool_choice(choice: JsonObject, names: ToolNames) -> Item:
    """Return a choice that is an object in the flat form, with the names as sent."""
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
        wanted["tools"] = [_tool_choice(inner_choice, names) for inner_choice in chosen]
    return wanted


def _check_offered(chosen: Sequence[Item], tools: Sequence[Item]) -> None:
    """Raise InvalidRequest for a choice that none of the `tools` answers to."""
    offered = {key for tool in tools for key in _choice_keys(tool)}
    for wanted in chosen:
        if _choice_keys(wanted)[0] not in offered:
            raise InvalidRequest(
                f"The tool choice asks for {tool_name(wanted)}, which this chat does not have."
            )


def _choice_keys(tool: Item) -> Sequence[tuple[str, str, str]]:
    """Return what identifies a tool in a choice, with its label and without."""
    name = "" if is_hosted_tool(tool) else as_text(tool.get("name"))
    kind = as_text(tool.get("type"))
    label = as_text(tool.get("server_label"))
    return (kind, label, name), (kind, "", name)


# --------------------------------------------------------------------------------------
# openai_responses.requests.build
#
# The fields of a request, and how they are built for a model.
#
# The caller's own keys have priority over the settings. Keys that the API does not have
# are dropped, and so are parameters that the model rejects
# (docs/reference/responses-api.md, "Parameters" and "Sampling and effort").
#
# Other servers are stricter: an unknown key or `include` is an error there, a reasoning
# item or a call needs an id, and a message of the assistant must be plain text
# (docs/reference/responses-api.md, "Other servers").
# --------------------------------------------------------------------------------------


SAMPLING = {"temperature", "top_p", "top_logprobs"}

_MAX_OUTPUT_TOKENS = 128_000
"""For models of which it is not known."""

_Positive = Annotated[int, Field(gt=0)]
_ShortText = Annotated[str, Field(max_length=64)]
_LongerText = Annotated[str, Field(max_length=512)]
_Metadata = Annotated[dict[_ShortText, _LongerText], Field(max_length=16)]
_ServiceTier = Literal[
    "auto", "default", "flex", "scale", "priority", "fast", "ultrafast"
]


class ResponsesRequest(BaseModel):
    """The body of `POST /responses`, with the API's field names and values."""

    # JSON has no NaN and no infinity.
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        arbitrary_types_allowed=True,  # repairs are no models
    )

    model: str
    input: SkipValidation[list[Item]]  # it may be very large
    instructions: str | None = None
    stream: bool = True
    store: bool = False  # the API's default keeps a response for 30 days or more
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
    """What earlier refusals showed; no field of the API."""

    def payload(self) -> dict[str, Any]:
        """Return the JSON object to send, repaired, without fields that are not set."""
        return repair_request(self._unrepaired(), self.repairs)

    def sent(self) -> SentRequest:
        """Return what is sent, with a name of each item."""
        return sent_request(self._unrepaired(), self.repairs)

    def _unrepaired(self) -> dict[str, Any]:
        """Return the fields that are set, as they are before any repair."""
        fields: dict[str, Any] = {}
        for name, value in self:
            if value is not None and name != "repairs":
                fields[name] = value
        # Names and ids of calls become what the API accepts.
        fields["input"] = fit_calls(self.input)
        return fields


_PASSED_ON = {*ANSWER_KEYS, *ACCOUNT_KEYS}
"""Keys of a caller that are sent unchanged; no others may store something, or name
something stored, at the server. `user` is deprecated."""


class Settings(NamedTuple):
    """What the administrator and the user chose; the caller's keys have priority.

    None means that nothing was chosen. `defaults` are further parameters by name.
    """

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
    """Return the request for a chat; raises InvalidRequest for one without a message.

    `body` holds the caller's keys, with the names of Chat Completions or of the API;
    values that no API takes are left out. The effort is the caller's, else the user's,
    else the one in the model's name.
    """
    if not items:
        raise InvalidRequest("There is no message to answer. Write one and send it.")
    given, _ = read_parameters(body)
    passed_on, _ = _passed_on(given)
    facts = model.facts
    effort = _effort(model, given, settings)
    effort_in_use = effort or facts.default_effort
    tools = [tool for tool in settings.tools if _takes_tool(effort_in_use, tool)]
    fields: dict[str, Any] = {
        "model": model.id,
        "input": list(items),
        "instructions": instructions or None,
        "stream": settings.stream and given.get("enable_stream", True),
        "text": _text_object(model, given, settings),
        "tools": tools or None,
        "parallel_tool_calls": settings.parallel_tool_calls,
    }
    if settings.background:
        fields["background"] = True
        fields["store"] = True  # background mode requires it
    # An unknown model reasons if an effort is set.
    with_reasoning = False
    if facts.reasoning or effort is not None:
        fields["reasoning"] = _reasoning(model, effort, given, settings)
        with_reasoning = settings.encrypted_reasoning
    fields["include"] = _include(tools, with_reasoning)
    fields |= {**settings.defaults, **passed_on}
    _keep_what_fits(fields, facts, effort_in_use)
    return ResponsesRequest(**fields)


def _keep_what_fits(
    fields: dict[str, Any], facts: ModelFacts, effort: str | None
) -> None:
    """Remove the sampling that the model rejects, and limit the length of the answer."""
    # "logprobs are not supported with reasoning models." (recorded, 630)
    if not _takes_sampling(facts.sampling, effort):
        for name in SAMPLING:
            fields.pop(name, None)
    length = fields.get("max_output_tokens")
    if length is not None:
        # Below 16, or above the model's maximum, the API refuses the request.
        longest = facts.max_output_tokens or _MAX_OUTPUT_TOKENS
        fields["max_output_tokens"] = clamp_number(length, 16, longest, longest)


def _effort(model: ResolvedModel, given: JsonObject, settings: Settings) -> str | None:
    """Return the effort that is asked for, None if the model does not take it.

    `max` means the highest of the model.
    """
    asked = given["reasoning"].get("effort") or settings.effort or model.effort
    if asked == "max" and model.facts.efforts:
        return model.facts.efforts[-1]
    return asked if asked and model.takes_effort(asked) else None


def _passed_on(given: JsonObject) -> tuple[dict[str, Any], list[str]]:
    """Return the caller's keys that the API takes, and what is wrong with others."""
    kept = {k: with_known_keys(k, given[k]) for k in given.keys() & _PASSED_ON}
    try:
        ResponsesRequest(model="", input=[], **kept)
    except ValidationError as error:
        reasons = {str(row["loc"][0]): row["msg"] for row in error.errors()}
        kept = {key: value for key, value in kept.items() if key not in reasons}
        return kept, [str(parameter_error(*entry)) for entry in reasons.items()]
    return kept, []


def _takes_tool(effort: str | None, tool: Item) -> bool:
    return effort != "minimal" or not tool_kind(tool).refused_at_minimal


def _takes_sampling(sampling: str, effort: str | None) -> bool:
    return sampling == "always" or (sampling == "with_none" and effort == "none")


def _include(tools: Sequence[Item], with_reasoning: bool) -> list[str] | None:
    """Return what the response is to hold beside its output; None for nothing."""
    wanted = ["reasoning.encrypted_content"] if with_reasoning else []
    for tool in tools:
        name = tool_kind(tool).include
        if name:
            wanted.append(name)
    return wanted or None


def _reasoning(
    model: ResolvedModel, effort: str | None, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    """Return the `reasoning` of a request; the caller's own keys have priority."""
    facts = model.facts
    # `auto` means `all_turns` on gpt-5.6 and gpt-6-astra, and the current turn before
    # (recorded). An effort of `none` has no reasoning to sum up.
    thinks = (effort or facts.default_effort) != "none"
    ours = {
        "effort": effort,
        "summary": facts.summary and thinks and settings.summary,
        "context": facts.all_turns and settings.encrypted_reasoning and "all_turns",
        "mode": model.pro and "pro",
    }
    chosen = {name: value for name, value in ours.items() if value}
    own = with_known_keys("reasoning", given["reasoning"])
    own.pop("effort", None)
    return {**chosen, **own} or None


def _text_object(
    model: ResolvedModel, given: JsonObject, settings: Settings
) -> dict[str, Any] | None:
    """Return the `text` of a request; only a model that has a verbosity gets one."""
    own: dict[str, Any] = with_known_keys("text", given["text"])
    verbosity = own.pop("verbosity", None) or settings.verbosity
    if verbosity and model.facts.verbosity:
        own["verbosity"] = verbosity
    return own or None


_READ_OTHERWISE = (
    "messages",
    "model",
    "stream",
    "enable_stream",
    "tools",
    "extra_tools",
)
"""Keys that are not parameters, or that are sent under other names."""

_MAX_PARAMETER_NAME = 40


def unsent_parameters(
    asked: JsonObject, request: ResponsesRequest
) -> tuple[list[str], list[str]]:
    """Return the caller's parameters that are not sent, like `reasoning.effort`, and a
    sentence for each value that no API takes.
    """
    given, errors = read_parameters(asked)
    # The history says nothing of parameters, and takes long to prepare.
    appended = [item for item in request.input if item_type(item) in APPENDED]
    without_history = request.model_copy(update={"input": appended})
    sent = lower_payload(without_history.payload(), APPENDED)
    passed_on, complaints = _passed_on(given)
    asked_length = passed_on.get("max_output_tokens")
    sent_length = request.max_output_tokens
    if asked_length and str(asked_length) != str(sent_length):
        error = parameter_error("max_output_tokens", f"{sent_length} is sent")
        complaints.append(str(error))
    names: list[str] = []
    for key in ("reasoning", "text"):
        for inner in given.pop(key):
            if inner not in sent.get(key, {}):
                names.append(f"{key}.{inner}")
    names += [key for key in given if key not in sent and key not in _READ_OTHERWISE]
    return sorted(name[:_MAX_PARAMETER_NAME] for name in names), errors + complaints


_OPENAI_ONLY = (
    "access_programs",
    "context_management",
    "image",
    "moderation",
    "prompt_cache_",
    "safety_identifier",
)
"""How the names begin."""

_ID_PREFIXES = {"reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
"""How the ids begin that other servers ask for."""


def strict_payload(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` for other servers: without OpenAI's own keys, items with ids."""
    kept = {k: v for k, v in payload.items() if not k.startswith(_OPENAI_ONLY)}
    return {**kept, "input": [_strict_item(item) for item in payload["input"]]}


def _strict_item(item: Item) -> Item:
    """Return an item for other servers: an answer as plain text, others with an id."""
    if item_type(item) == "message" and item.get("role") == "assistant":
        text = message_text(item)
        return {"type": "message", "role": "assistant", "content": text}
    prefix = _ID_PREFIXES.get(item_type(item))
    if prefix is None:
        return item
    return {"id": f"{prefix}_{json_digest(item)}", **item}


# --------------------------------------------------------------------------------------
# openai_responses.transport.delta_runs
#
# Runs of deltas, joined to one event before they are parsed.
#
# A server that is faster than its reader sends hundreds of deltas in one chunk. Each
# repeats 250 bytes of JSON around a word:
#
#     event: response.output_text.delta
#     data: {"type":"response.output_text.delta","sequence_number":11,"item_id":"msg_1",
#     "output_index":0,"content_index":0,"delta":" word","logprobs":[],"obfuscation":"xIR"}
#
# (without the line break in its data). A run is such an event and those directly behind
# it that are the same, byte for byte, except for the values of `delta`, `sequence_number`
# and `obfuscation`. All of them add to the same text, so the run becomes its first event
# with the texts of all. The parser reads that one with all its checks, and what it says of
# the first is true of the others. This takes a third of the time of parsing each.
#
# What might mean anything else stays as it is, for the parser: an event with an object
# inside (the `logprobs` of those who ask for some), with a backslash outside of the three
# values, with spaces between the tokens, with two types or two deltas, of another type
# than its name, or with `\u` in a text: halves of a character in two deltas would become
# one.
# --------------------------------------------------------------------------------------


# Each `*+`, `++` and `{…}+` is possessive: it gives back nothing that it matched, so that
# no text of a server makes a search slow.

_TEXT_PIECE = r'[^"\\\x00-\x1f]*+'
_TEXT_INSIDE = rf'{_TEXT_PIECE}(?:\\["\\/bfnrt]{_TEXT_PIECE})*+'
"""Between the quotation marks of a text in JSON."""
_WHOLE_NUMBER = r'(?<!"delta":)(?:0|[1-9][0-9]{0,17}+)'
"""Of up to 18 digits; not of a delta, which is a text."""

_VARYING = r'"(?:delta|sequence_number|obfuscation)":'
"""The names of what differs in a run."""
_VALUE = rf'(?:"{_TEXT_INSIDE}"|{_WHOLE_NUMBER})'
_SHARED = rf'[^"\n\\{{]*+(?:(?!{_VARYING})"[^"\n\\{{]*+)*+'
"""What all events of a run repeat, up to the next name of what differs."""

_FIRST_EVENT = (
    # Where the pattern begins with plain letters, `re` finds an event fast. It has to
    # begin a line.
    r"event:(?<!.event:) (?P<name>response\.[a-z_.]++)\n"
    rf"data: \{{(?P<begin>{_SHARED}{_VARYING}){_VALUE}"
    rf"(?:(?P<second>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?:(?P<third>{_SHARED}{_VARYING}){_VALUE})?"
    rf"(?P<end>{_SHARED}\n\n)"
)
"""An event with one to three of the names of `_VARYING`; the groups hold the rest."""
_NEXT_EVENT = (
    # `(?(second)…)` matches only if the first event has a second value.
    r"event: (?P=name)\n"
    rf"data: \{{(?P=begin){_VALUE}"
    rf"(?(second)(?P=second){_VALUE})"
    rf"(?(third)(?P=third){_VALUE})"
    r"(?P=end)"
)
_DELTA_RUN = re.compile(rf"(?P<first>{_FIRST_EVENT})(?:{_NEXT_EVENT})++")
_DELTA = re.compile(rf'"delta":"({_TEXT_INSIDE})"')


def join_delta_runs(text: str) -> str:
    """Return the text of whole events, with each run of deltas joined to one event."""
    return _DELTA_RUN.sub(_joined_run, text)


def _joined_run(run: re.Match[str]) -> str:
    """Return the first event of a run with the texts of all; else the run as it is."""
    first = run["first"]
    has_one_text = first.count('"delta":') == 1
    has_one_type = first.count('"type":') == 1 and f'"type":"{run["name"]}"' in first
    if not has_one_text or not has_one_type:
        return run[0]
    texts = _DELTA.findall(run[0])
    joined = "".join(texts)
    return first.replace(f'"delta":"{texts[0]}"', f'"delta":"{joined}"')


# --------------------------------------------------------------------------------------
# openai_responses.transport.stream
#
# The stream of a response: bytes in, typed events out.
#
# Follows the parsing rules of the HTML standard, section 9.2.6, "Interpreting an event
# stream". A line can exceed a megabyte, which is too long for aiohttp's own line reader
# (docs/reference/responses-api.md, "Stream events").
#
# The `type` alone identifies an event. Those that are not used here only show that the
# connection is alive.
# --------------------------------------------------------------------------------------


class ServerSentEvent(NamedTuple):
    """One dispatched event; `data` holds its lines joined by a newline."""

    event: str
    data: str


_LINE_BYTES = 64
"""What a line of an event takes in memory beside its text."""
_BLANK_LINE = b"\n\n"
_USUAL_EVENT = re.compile(r"^event: ([!-~]+)\ndata: (.*)\n\n", re.MULTILINE)
"""An event as OpenAI and most other servers write it."""
_USUAL_LINES = 3
"""Of such an event. If a text has no others, nothing stands between the events."""


class EventStreamDecoder:
    """Turns chunks of any size into events.

    The bytes of an unfinished line are copied once, when the line ends, so the work is
    linear in the length of the stream.
    """

    def __init__(
        self, most_bytes: int = MAX_JSON_BYTES, *, joins_deltas: bool = False
    ) -> None:
        """Start before the first byte; an event can have `most_bytes`.

        With `joins_deltas`, deltas of one text that come together may be one event, for
        readers who need the texts alone.
        """
        self._most_bytes = most_bytes
        self._joins_deltas = joins_deltas
        self._partial_line = bytearray()
        self._after_cr = False
        self._event = b""
        self._lines: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that `chunk` completes; it may begin inside of a CRLF.

        Raises AnswerTooLarge for the event after those that were returned.
        """
        if len(self._partial_line) + self._size > self._most_bytes:
            raise AnswerTooLarge
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\n" not in chunk and b"\r" not in chunk:
            self._partial_line.extend(chunk)
            return []
        return self._take(chunk)

    def close(self) -> list[ServerSentEvent]:
        """Return the event whose final blank line is missing at the end of the stream.

        The standard drops it, but without its terminal event a finished answer would
        count as cut.
        """
        return self._take(_BLANK_LINE)

    def _take(self, chunk: bytes) -> list[ServerSentEvent]:
        """Return the events that end in `chunk`.

        Those that lie in it whole are found at once; the event at each of its ends is
        read line by line.
        """
        text = b"".join((self._partial_line, chunk))
        self._partial_line = bytearray()
        if b"\r" in text:
            return self._take_lines(text)
        events: list[ServerSentEvent] = []
        if self._event or self._lines:
            first, blank_line, text = text.partition(_BLANK_LINE)
            events += self._take_lines(first + blank_line)
        whole, blank_line, last = text.rpartition(_BLANK_LINE)
        events += self._take_whole(whole + blank_line)
        events += self._take_lines(last)
        return events

    def _take_whole(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events of a text that begins and ends between two of them.

        If all of them are written as usual, no line needs a look of its own: one search
        takes a third of the time. Each is made as a plain tuple, in half the time.
        """
        decoded = text.decode("utf-8", "replace")
        if self._joins_deltas:
            decoded = join_delta_runs(decoded)
        rows = _USUAL_EVENT.findall(decoded)
        if len(rows) * _USUAL_LINES < decoded.count("\n"):
            return self._take_lines(text)
        return [tuple.__new__(ServerSentEvent, row) for row in rows]

    def _take_lines(self, text: bytes) -> list[ServerSentEvent]:
        """Return the events that end; id, retry and unknown fields are not used."""
        # Bytes are split at CR, LF and CRLF alone, as the standard wants it; text would
        # be split at U+2028 as well, which may stand inside of JSON.
        lines = text.splitlines()
        self._size += len(text) + _LINE_BYTES * len(lines)
        # A line may end with CR, LF or both; the LF may come with the next chunk.
        if text.endswith(b"\r"):
            self._after_cr = True
        elif lines and not text.endswith(b"\n"):
            self._partial_line.extend(lines.pop())
            self._size -= len(self._partial_line)
        events = []
        for line in lines:
            field, _, value = line.partition(b":")
            if field == b"data":
                self._lines.append(value.removeprefix(b" "))
            elif field == b"event":
                self._event = value.strip()
            # A blank line ends an event; without data there is none to dispatch. A line
            # that begins with a colon is a comment: its field has no name.
            elif not line:
                if self._lines:
                    events.append(self._event_of_lines())
                self._event = b""
                self._lines = []
                self._size = 0
        return events

    def _event_of_lines(self) -> ServerSentEvent:
        """Return the event whose lines were read."""
        name = self._event.decode("utf-8", "replace")
        data = b"\n".join(self._lines).decode("utf-8", "replace")
        return ServerSentEvent(name, data)


NO_CARD: JsonObject = MappingProxyType({})


class TextDelta(NamedTuple):
    """An addition to a text that grows.

    `kind` is the "text" or "refusal" of a message, the "summary" or raw "reasoning" of
    a reasoning item, the "arguments" of a call, or the "code" that the API runs. `part`
    is the content or summary index, 0 for arguments and code.
    """

    output_index: int
    kind: str
    part: int
    text: str
    item_id: str = ""


class TextDone(TextDelta):
    """A text that has ended: it replaces the deltas of the same kind and place."""


class AnnotationAdded(NamedTuple):
    """What a place in a text refers to."""

    output_index: int
    annotation: Item
    item_id: str = ""


class PartialImage(NamedTuple):
    """An image as far as it is generated.

    `image` is base64; `form` is its format, if the server tells it.
    """

    output_index: int
    image: str
    form: str
    item_id: str = ""


class ItemAdded(NamedTuple):
    """An item began; its content is still missing."""

    output_index: int
    item: Item


class ItemDone(NamedTuple):
    """The item as it counts, byte for byte.

    Its encrypted content is whole only here, not in `response.output_item.added` (types
    of openai-python 3.54.0, `response_reasoning_item_param.py`).

    `card` holds what a host shows beside it (`files`, `links`, `notes`).
    """

    output_index: int
    item: Item
    card: JsonObject = NO_CARD
    shown: str = ""
    """The text of a message as a host shows it."""


class FinalResponse(NamedTuple):
    """The end of a response, with its final snapshot.

    `status` is "completed", "incomplete" or "failed"; also "cancelled" if the response
    itself was requested.
    """

    status: str
    response: JsonObject


class StreamError(NamedTuple):
    """The request failed; no response object comes with it."""

    error: ApiError


ItemEvent = ItemAdded | TextDelta | AnnotationAdded | PartialImage | ItemDone
"""What happens to one output item.

On the wire `item_id` and `output_index` name the item, or one of them: "" and -1 stand
for none. Behind `loop.response` the index alone does, and counts over the whole run.
"""

StreamEvent = ItemEvent | FinalResponse | StreamError | None
"""None stands for all other events."""


def join_deltas(events: Iterable[StreamEvent]) -> list[StreamEvent]:
    """Return `events`, with neighboring deltas of one text joined to one delta.

    Of each delta only the text is kept, so a batch of thousands takes little memory.
    """
    joined: list[StreamEvent] = []
    for identity, neighbors in groupby(events, _text_identity):
        if identity is None:
            joined += neighbors
            continue
        index, kind, part, item_id = identity
        text = "".join(
            [delta.text for delta in neighbors if isinstance(delta, TextDelta)]
        )
        joined.append(TextDelta(index, kind, part, text, item_id))
    return joined


def _text_identity(event: StreamEvent) -> tuple[int, str, int, str] | None:
    """Return the text that a delta adds to; None for any other event."""
    if type(event) is not TextDelta:  # a TextDone is one, too
        return None
    return event.output_index, event.kind, event.part, event.item_id


_SCAN_JSON = vars(json.JSONDecoder())["scan_once"]
"""What `raw_decode` calls; without its frame it is a tenth faster."""

_END_OF_STREAM = "[DONE]"
"""Of Chat Completions; no recorded stream of OpenAI has it."""
_JSON_SPACE = " \t\n\r"
"""RFC 8259, section 2."""

_Reader = Callable[[JsonObject], StreamEvent]


def parse_event(event: ServerSentEvent) -> StreamEvent:
    """Return the typed event; raises MalformedEvent if it is not a JSON object.

    Other servers end their streams with `[DONE]`. Thousands of brackets are a
    RecursionError, no value a StopIteration.
    """
    if event.data == _END_OF_STREAM:
        return None
    text = event.data.strip(_JSON_SPACE)
    try:
        wire, end = _SCAN_JSON(text, 0)
        if end != len(text):
            raise ValueError
        if _may_be_deep(text) and is_too_deep(wire):
            raise ValueError
        read = _READERS.get(wire.get("type") or event.event)
        return read(wire) if read else None
    except _ODD_EVENT:
        raise MalformedEvent from None


def _may_be_deep(text: str) -> bool:
    """Say whether a JSON text has brackets enough to be too deep.

    A level takes two characters at least, so a delta needs no look at its depth.
    """
    if len(text) <= 2 * MAX_JSON_DEPTH:
        return False
    return text.count("[") + text.count("{") > MAX_JSON_DEPTH


_ODD_EVENT = (
    StopIteration,
    ValueError,
    RecursionError,
    KeyError,
    TypeError,
    AttributeError,
)
"""Errors of text that is not JSON, and of JSON that is not an event."""


def _checked(value: object, kind: type) -> Any:
    """Return a value of a type; raises TypeError for any other."""
    if not isinstance(value, kind):
        raise TypeError
    return value


_NO_INDEX = -1


def _index(wire: JsonObject) -> int:
    index = wire.get("output_index")
    if index is None:
        return _NO_INDEX
    return int(_checked(index, int))


def _text_reader(event: type[TextDelta], kind: str, part: str, field: str) -> _Reader:
    """Return the reader of a text in `field`, whose place is the field `part`.

    The tuple is made in half the time of the named tuple's own `__new__`.
    """
    new = partial(tuple.__new__, event)

    def read(wire: JsonObject) -> StreamEvent:
        text = wire[field]
        part_index = wire.get(part, 0)
        item_id = wire.get("item_id")
        index = wire.get("output_index")
        if index is None:
            index = _NO_INDEX
        if not isinstance(text, str):
            raise TypeError
        if not isinstance(part_index, int) or not isinstance(index, int):
            raise TypeError
        if not isinstance(item_id, str):
            item_id = ""
        return new((index, kind, part_index, text, item_id))

    return read


def _read_annotation(wire: JsonObject) -> StreamEvent:
    """Return a citation; the type allows none, the final item has all of them."""
    annotation = wire.get("annotation")
    if annotation is None:
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


def _read_item_added(wire: JsonObject) -> StreamEvent:
    return ItemAdded(_index(wire), _checked(wire["item"], dict))


def _read_item_done(wire: JsonObject) -> StreamEvent:
    return ItemDone(_index(wire), _checked(wire["item"], dict))


def _read_final(status: str, wire: JsonObject) -> StreamEvent:
    return FinalResponse(status, _checked(wire["response"], dict))


def _read_error(wire: JsonObject) -> StreamEvent:
    """Return the error; in the flat form `type` is only "error".

    The flat form is documented (types of openai-python 3.54.0), the nested one comes
    (openai/openai-dotnet 881, Effect-TS/effect 7262).
    """
    flat = {key: value for key, value in wire.items() if key != "type"}
    return StreamError(read_api_error(flat))


class _TextEvent(NamedTuple):
    """A text that grows, in the words of the wire."""

    name: str
    kind: str
    part: str
    """The field of the text's place."""
    whole: str
    """The field of the whole text, in the event that ends it."""


_PART_EVENTS = (
    _TextEvent("output_text", "text", "content_index", "text"),
    _TextEvent("refusal", "refusal", "content_index", "refusal"),
    _TextEvent("reasoning_summary_text", "summary", "summary_index", "text"),
    _TextEvent("reasoning_text", "reasoning", "content_index", "text"),
)
"""Texts of which an item has a list."""


def _text_events() -> Iterator[_TextEvent]:
    """Yield all texts that grow.

    The events of the one text of a call are named for its item and its field, as
    `function_call_arguments`; they name no place.
    """
    yield from _PART_EVENTS
    for name, kind in ITEM_KINDS.items():
        if kind.text:
            text_kind, field = kind.text
            yield _TextEvent(f"{name}_{field}", text_kind, "part", field)


def _text_readers(form: str) -> dict[str, _Reader]:
    """Return the readers of all texts that grow, by the type of their events.

    `form` says of which events: "delta" or "done".
    """
    readers: dict[str, _Reader] = {}
    for name, kind, part, whole in _text_events():
        if form == "delta":
            reader = _text_reader(TextDelta, kind, part, "delta")
        else:
            reader = _text_reader(TextDone, kind, part, whole)
        readers[f"response.{name}.{form}"] = reader
    return readers


_READERS: Mapping[str, _Reader] = {
    **_text_readers("delta"),
    **_text_readers("done"),
    "response.output_text.annotation.added": _read_annotation,
    "response.image_generation_call.partial_image": _read_partial_image,
    "response.output_item.added": _read_item_added,
    "response.output_item.done": _read_item_done,
    "response.completed": partial(_read_final, "completed"),
    "response.incomplete": partial(_read_final, "incomplete"),
    "response.failed": partial(_read_final, "failed"),
    "error": _read_error,
}


# --------------------------------------------------------------------------------------
# openai_responses.loop.events
#
# What a run reports to those who show it or record it.
#
# The events of output items are those of the stream, renumbered over the whole run.
# --------------------------------------------------------------------------------------


NO_THOUGHT: Item = {"type": "reasoning", "summary": []}
"""Ends the thought of an attempt that failed."""


class ToolOutput(NamedTuple):
    """A call got its output; `item` is the input item that gives it to the model.

    `card` is that of the tool's result.
    """

    output_index: int
    item: Item
    failed: bool = False
    card: JsonObject = NO_CARD


class ResponseDone(NamedTuple):
    """One response ended."""

    status: str


class Status(NamedTuple):
    """A status line for the person who waits.

    `trial` is the repair that is tried after a refusal. `reason` is for the log.
    `is_retry` says that the same request failed and is sent again. `is_note` says that
    the line is worth reading later: the last line counts those.
    """

    sentence: str
    trial: Trial | None = None
    reason: str = ""
    is_retry: bool = False
    is_note: bool = True


class Trace(NamedTuple):
    """What the log needs to know about the last response.

    `request_id` is OpenAI's own, `model` the one that answered, `status` that of HTTP,
    and `removed` counts the items that the API took out of the input, by reason.
    `subject` is the item or tool that the error names, with its place. `cache` is
    the server's diagnosis of the prompt cache, if it was asked for one; `response_id` is
    there if later requests are to be compared with this response.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = ApiError()
    removed: Mapping[str, int] = MappingProxyType({})
    subject: str = ""
    response_id: str = ""
    cache: JsonObject = MappingProxyType({})


class HiddenMessage(NamedTuple):
    """A message of the model that is sent again but shown to nobody."""

    output_index: int
    item: Item


class RunWork(NamedTuple):
    """What a run took that people see as several rounds.

    `seconds` are those of the model and of tools, without the time of people.
    """

    rounds: int
    tool_calls: int
    seconds: float


class RunDone(NamedTuple):
    """The last event of every run, however it ended.

    `usages` are those of all responses, `usage` their sum, `last_usage` is that of the
    last one. `output` holds the finished items of the whole run, outputs of calls among
    them. `cost` is in US dollars, None if unknown. `usage_note` explains the tokens,
    `window_share` is how full the model's context window is, in percent.
    `work` is an agent's, `metadata` what a host stores with the last line.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = Trace()
    cost: float | None = None
    usages: tuple[Usage, ...] = ()
    usage_note: str = ""
    window_share: int = 0
    work: RunWork | None = None
    metadata: JsonObject = MappingProxyType({})


class ModelAnswer(NamedTuple):
    """One answer of a model, the last thing that a provider yields.

    `request` is the one that was answered, with its repairs, `items` are the finished
    ones, each with its index in the run. `usages` are those of all attempts, `last_usage`
    that of the last one. `has_shown` says whether there is something to see.
    """

    ending: Ending
    request: ResponsesRequest
    items: tuple[tuple[int, Item], ...] = ()
    usages: tuple[Usage, ...] = ()
    last_usage: Usage | None = None
    trace: Trace = Trace()
    has_shown: bool = True

    @property
    def output(self) -> list[Item]:
        """The finished items."""
        return [item for _, item in self.items]

    @property
    def tool_calls(self) -> list[Item]:
        """The calls; those of an answer that failed are not made."""
        if self.ending.is_failure:
            return []
        return [item for item in self.output if is_call(item)]

    @property
    def is_final(self) -> bool:
        """Whether this is the answer to the user: it calls nothing."""
        return not self.tool_calls

    @property
    def text_content(self) -> str:
        """What the answer says."""
        messages = [item for item in self.output if item_type(item) == "message"]
        return "\n\n".join(message_text(message) for message in messages)


RunEvent = ItemEvent | ToolOutput | HiddenMessage | ResponseDone | Status | RunDone
RunEvents = AsyncGenerator[RunEvent, None]


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
# openai_responses.endpoint
#
# Where requests go: address, headers, certificates and proxy.
# --------------------------------------------------------------------------------------


DEFAULT_BASE_URL = "https://api.openai.com/v1"

Compatibility = Literal["auto", "openai", "strict"]
"""`openai`: the server takes whatever OpenAI takes. `strict`: it takes only what every
server of the Responses API takes. `auto`: its address says which."""

_AZURE_HOSTS = (".azure.com", ".azure.us", ".azure.cn")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address and the key of a server; an address can contain a password.

    An empty `ca_bundle` (a file) or `proxy` means what the system has set. A `token` is
    sent instead of the key, always as a bearer's; it is no part of the account.
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

    def name_server(self, sentence: str) -> str:
        """Return `sentence` about OpenAI as one about this server.

        A sentence about the address itself must not need a valid one.
        """
        if "OpenAI" not in sentence or self._is_openais:
            return sentence
        return sentence.replace("OpenAI", self.host)

    @property
    def _is_openais(self) -> bool:
        return f".{self.host}".endswith(".openai.com")

    @property
    def is_strict(self) -> bool:
        """Whether requests have a form that every server accepts."""
        return self.compatibility == "strict"

    @property
    def is_openai(self) -> bool:
        """Whether it takes OpenAI's own kinds of input."""
        if self._is_openais and not self.is_strict:
            return True
        return self.compatibility == "openai" and not self.is_azure

    @property
    def has_own_services(self) -> bool:
        """Whether it has web search, containers and files, as OpenAI and Azure do."""
        return self.is_openai or (self.is_azure and not self.is_strict)

    @property
    def is_gateway(self) -> bool:
        """Whether it is neither OpenAI's nor Azure's."""
        return not (self._is_openais or self.is_azure)

    @property
    def is_azure(self) -> bool:
        """Whether it is one of Azure."""
        return self.host.endswith(_AZURE_HOSTS)

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must be in no text that the server sends back."""
        headers = self.extra_headers.values()
        return connection_secrets(headers, self.proxy, self.api_key, self.token)

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


@lru_cache(maxsize=32)  # an answer asks for the server's name about ten times
def _normalize_base_url(text: str) -> str:
    """`/v1` may be missing, or a slash at the end; what ends in `/responses` is whole."""
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
    proxy = stated or _environment_proxy(url)
    if not proxy:
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    if url_parts(address) is not None:
        return address
    if stated:
        raise InvalidSetting("proxy", "The proxy is not an http or https address.")
    raise InvalidRequest(
        "The proxy that this server's environment names is not an http or https "
        "address. An administrator has to correct the environment."
    )


def _environment_proxy(url: str) -> str | None:
    """Return the proxy that the environment names for `url`.

    Each call reads the whole environment. If it names no proxy, one call is enough.
    """
    proxies = getproxies()
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy:
        return None
    if proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return None
    return proxy


# --------------------------------------------------------------------------------------
# openai_responses.transport.connections
#
# Pooled HTTP sessions; the only module that opens a connection.
#
# Each event loop has one session. The first run that borrows it opens it. It is closed
# when no run has used it for a while, or when its owner is gone: a host that replaces a
# client does not tell the old one. Errors of aiohttp become errors of this package here.
# --------------------------------------------------------------------------------------


_IDLE_SECONDS = 60.0
"""Shorter than the keep-alive of OpenAI's front end, so that our side closes first."""
_MAX_CONNECTIONS = 1000
"""A chat holds one connection while it streams; with fewer, busy servers would wait."""
_KEEPALIVE_SECONDS = 50.0
"""A connection that was idle for longer may be closed by the server at any time."""
_DNS_SECONDS = 300
"""OpenAI's addresses change rarely, and each look-up delays the first words."""


class _Pool:
    """The session of one event loop, lent to the active runs."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None
        self._lent = 0
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @contextmanager
    def lend(self) -> Iterator[aiohttp.ClientSession]:
        """Lend the session, opened if needed; the last return starts the idle time."""
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
        """Close the session, which no run can borrow from now on, in a task.

        Closing a connector from a timer itself warns "never awaited" on aiohttp 3.14.
        """
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self.start(self._session.close())
            self._session = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work in a task that is referenced until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Close the session when all tasks are done."""
        while self._tasks:
            await asyncio.gather(*self._tasks)
        self.close_later()
        await asyncio.gather(*self._tasks)


def _new_session() -> aiohttp.ClientSession:
    """Return a session that reads no settings of the system and keeps nothing.

    Proxies of the environment are looked up by this package, because trust_env would
    also send the contents of a .netrc file. Cookies that a gateway sets for one user
    must not be sent for another.
    """
    connector = aiohttp.TCPConnector(
        limit=_MAX_CONNECTIONS,
        keepalive_timeout=_KEEPALIVE_SECONDS,
        ttl_dns_cache=_DNS_SECONDS,
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Accept-Encoding": "identity"},
        # aiohttp inflates without a limit: 1.5 MB of gzip became 1.5 GB (tried with
        # 3.14.5).
        auto_decompress=False,
    )


class Timeouts(NamedTuple):
    """Limits in seconds; a `total` of 0 means no limit.

    `first_event` runs from sending to the first event, `idle` from one event to the
    next; a `keepalive` counts as an event. The time of tools and of people does not
    count in `total`.
    """

    connect: float = 30.0
    first_event: float = 300.0
    idle: float = 300.0
    total: float = 0.0


def _now() -> float:
    return asyncio.get_running_loop().time()


def _ignore_waiting(is_waiting: bool) -> None:
    """Do nothing: nobody shows that the server is silent."""


class Deadlines:
    """The limit that is active now, over all attempts of one run.

    `set_waiting` is called with True when a wait for the server begins, and with False
    when something else takes the time, as people who are asked.
    """

    def __init__(
        self,
        timeouts: Timeouts,
        set_waiting: Callable[[bool], object] = _ignore_waiting,
    ) -> None:
        """Start the total limit, if there is one."""
        self.timeouts = timeouts
        self._set_waiting = set_waiting
        self._end = float("inf")
        if timeouts.total:
            self._end = _now() + timeouts.total
        self.start_attempt()

    def start_attempt(self) -> None:
        """Wait for a first event from now on."""
        self._next = _now() + self.timeouts.first_event
        self._kind: TimeoutKind = "first_event_timeout"
        self._set_waiting(True)

    def event_arrived(self) -> None:
        """Wait for the next event from now on."""
        self._next = _now() + self.timeouts.idle
        self._kind = "idle_timeout"
        self._set_waiting(True)

    def allow(self, seconds: float) -> bool:
        """Say whether the total limit leaves enough time for a wait."""
        return _now() + seconds < self._end

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop the total limit for a while."""
        self._set_waiting(False)
        began = _now()
        try:
            yield
        finally:
            self._end += _now() - began

    def scope(self) -> asyncio.Timeout:
        """Return the scope for one wait; it raises TimeoutError."""
        return asyncio.timeout_at(min(self._next, self._end))

    def timeout_error(self) -> TimedOut:
        """Return the error of the limit that was exceeded."""
        if self._end <= self._next:
            return TimedOut("total_timeout")
        return TimedOut(self._kind)


_DRAIN_SECONDS = 1.0
_MAX_ERROR_BODY = 64 * 1024
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Of one response, by `json_weight`: four times 128,000 tokens with an event for each."""

_REQUEST_ID = re.compile(r"(?:req_)?[0-9a-fA-F-]{1,64}")
"""Nothing that could be a key or a word, because the log shows the id."""

_NETWORK_ERRORS = (aiohttp.ClientError, TimeoutError, OSError)


class HttpResponse:
    """A response with a good status whose body is still arriving."""

    def __init__(self, response: aiohttp.ClientResponse, deadlines: Deadlines) -> None:
        """Read nothing yet."""
        self._response = response
        self._deadlines = deadlines
        self._broke = False
        self.is_read = False
        self.is_stream = response.content_type == "text/event-stream"
        self.request_id = response.headers.get("x-request-id", "")
        if not _REQUEST_ID.fullmatch(self.request_id):
            self.request_id = ""

    async def read_any(self) -> bytes:
        """Return the part of the body that has arrived; empty at its end.

        aiohttp puts the exception in front of the bytes that arrived before it.
        """
        if self._broke:
            raise ConnectionFailed("The connection to the model's server broke.")
        content = self._response.content
        scope = self._deadlines.scope()
        try:
            async with scope:
                chunk = await content.readany()
            self.is_read = not chunk
            return chunk
        except _NETWORK_ERRORS:
            if scope.expired():
                raise self._deadlines.timeout_error() from None
            self._broke = True
        # Without the exception the reader gives out what had arrived; the next call
        # raises.
        content.set_exception(None)  # type: ignore[arg-type]
        return content.read_nowait() or await self.read_any()

    async def read_all(self, most_bytes: int) -> bytearray:
        """Return the body; raises AnswerTooLarge for more than `most_bytes`."""
        body = bytearray()
        chunk = await self.read_any()
        while chunk:
            body += chunk
            if len(body) > most_bytes:
                raise AnswerTooLarge
            chunk = await self.read_any()
        return body

    async def read_json(self, most_bytes: int = MAX_JSON_BYTES) -> Any:
        """Return the body as JSON."""
        body = await self.read_all(most_bytes)
        if json_weight(body) > MAX_ANSWER_BYTES:
            raise AnswerTooLarge
        try:
            return load_json(body)
        except ValueError:
            raise _unreadable_answer(UNREADABLE) from None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave arriving bytes with the operating system for a while.

        Otherwise the event loop wakes up for every packet although nothing is read. If
        aiohttp has stopped reading, because its buffer is full, it stays so. A body
        that has ended has no connection.
        """
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

    async def drain(self) -> bytes:
        """Read the rest after the last event, so that the connection can be reused.

        Returns its beginning: a refused stream may tell its reason there.
        """
        rest = bytearray()
        with suppress(*_NETWORK_ERRORS):
            async with asyncio.timeout(_DRAIN_SECONDS):
                async for chunk in self._response.content.iter_any():
                    if len(rest) < _MAX_ERROR_BODY:
                        rest += chunk
        return bytes(rest)

    async def response_object(self) -> JsonObject:
        """Return the body as the API's response object."""
        wire = as_mapping(await self.read_json())
        if isinstance(wire.get("output"), list):
            return wire
        if wire.get("error"):
            error = read_api_error(wire)
            failure = Failure(self._response.status, error)
            raise ApiRefused(
                failure_sentence(error),
                failure,
                self.request_id,
                failure_fault(error),
            )
        raise _unreadable_answer(UNREADABLE)

    async def refusal(self) -> ApiRefused:
        """Return the error of a response with a bad status, with or without a body."""
        status = self._response.status
        headers = self._response.headers
        error = ApiError()
        if status >= 400:
            with suppress(TimeoutError, ResponsesError):
                async with asyncio.timeout(_DRAIN_SECONDS):
                    error = read_api_error(await self.read_json(_MAX_ERROR_BODY))
        should_retry = _SHOULD_RETRY.get(headers.get("x-should-retry", "").lower())
        failure = Failure(status, error, _retry_after(headers), should_retry)
        sentence = refusal_sentence(status, error)
        fault = refusal_fault(status, error)
        return ApiRefused(sentence, failure, self.request_id, fault)


_SHOULD_RETRY = {"true": True, "false": False}
_UNITS_OF_A_SECOND = {"retry-after-ms": 1000, "retry-after": 1}
"""The headers that state a wait as a number, the more exact one first."""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server wants us to wait: a number, or a date."""
    for name, units in _UNITS_OF_A_SECOND.items():
        with suppress(ValueError):
            seconds = float(headers.get(name, "")) / units
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
"""The last is of connecting: aiohttp is given no other limit."""


_STATUS_OK = 200
_FIRST_BAD_STATUS = 300
_TOO_MANY_REQUESTS = 429
_SERVER_ERRORS = 500

_MAX_CERTIFICATES = 8
"""Files of certificates that are remembered; a client usually has one."""


class _Certificates(NamedTuple):
    """What was read of a file, and when that was changed, in nanoseconds."""

    changed: int
    context: ssl.SSLContext


class EncodedBody(NamedTuple):
    """A body that is no JSON object, and its media type."""

    content: bytes
    media_type: str


class Connections:
    """Sends requests; has one session for each event loop."""

    def __init__(self) -> None:
        """Open nothing yet."""
        self._pools: dict[asyncio.AbstractEventLoop, _Pool] = {}
        self._certificates: dict[str, _Certificates] = {}

    def __del__(self) -> None:
        """Close open sessions: the last run that referenced this object has ended."""
        for loop, pool in self._pools.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(pool.close_later)

    def _pool(self) -> _Pool:
        """Return the pool of the running loop; drop those of closed loops."""
        running = asyncio.get_running_loop()
        if running not in self._pools:
            for loop in list(self._pools):
                if loop.is_closed():
                    self._pools.pop(loop, None)  # other threads do the same
            self._pools[running] = _Pool()
        return self._pools[running]

    @asynccontextmanager
    async def request(
        self,
        endpoint: Endpoint,
        path: str,
        payload: dict[str, Any] | EncodedBody | None,
        deadlines: Deadlines,
    ) -> AsyncIterator[HttpResponse]:
        """Send `payload`, or a GET without one, and lend the answer.

        Raises ApiRefused, ConnectionFailed, TimedOut, UnreadableAnswer or
        InvalidRequest. Leaving early closes the connection, which stops the work at the
        server; to close a response that was read to its end has no effect. A
        redirection is a refusal, because the key would be sent along.
        """
        headers = endpoint.headers()
        if isinstance(payload, EncodedBody):
            body: bytes | None = payload.content
            headers["Content-Type"] = payload.media_type
        else:
            body = None if payload is None else await _encode(payload)
        url = endpoint.url(path)
        with self._pool().lend() as session:
            sent = session.request(
                "GET" if body is None else "POST",
                url,
                # aiohttp would send `api-key` and a gateway's own header to another
                # origin; it drops `Authorization` alone (client.py, 3.14.5).
                allow_redirects=False,
                data=body,
                headers=headers,
                ssl=self._trusted(endpoint),
                proxy=proxy_for(endpoint, url),
                timeout=aiohttp.ClientTimeout(sock_connect=deadlines.timeouts.connect),
            )
            with closing(await _receive(sent, endpoint, deadlines)) as response:
                answer = HttpResponse(response, deadlines)
                is_good = response.status < _FIRST_BAD_STATUS
                if body is None:  # a GET that has nothing to return has failed
                    is_good = response.status == _STATUS_OK
                if not is_good:
                    raise await answer.refusal()
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise _unreadable_answer(COMPRESSED)
                yield answer

    def _trusted(self, endpoint: Endpoint) -> ssl.SSLContext | bool:
        """Return the certificates to trust: one context a file to reuse connections.

        A file that was changed replaces what was read of it.
        """
        path = endpoint.ca_bundle
        if not (endpoint.verify_ssl and path):
            return endpoint.verify_ssl
        try:
            changed = Path(path).stat().st_mtime_ns
            known = self._certificates.get(path)
            if known is None or known.changed != changed:
                context = ssl.create_default_context(cafile=path)
                known = _Certificates(changed, context)
                if len(self._certificates) >= _MAX_CERTIFICATES:
                    self._certificates.clear()
                self._certificates[path] = known
        except (OSError, ValueError):
            raise InvalidSetting(
                "ca_bundle", "The file of certificates to trust cannot be read."
            ) from None
        return known.context

    def do_later(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work that may last longer than its run."""
        self._pool().start(work)

    async def post_quietly(self, endpoint: Endpoint, path: str) -> None:
        """Send an empty request, up to three times; ignore the result."""
        for wait in (0.0, 0.5, 2.0):
            await asyncio.sleep(wait)
            limits = Deadlines(Timeouts(connect=10, first_event=20))
            try:
                async with self.request(endpoint, path, {}, limits):
                    return
            except ResponsesError as error:
                if _is_final_status(error.status):
                    return

    async def close(self) -> None:
        """Close the session of the running loop, after the work of `do_later`."""
        await self._pool().close()


def _is_final_status(status: int) -> bool:
    """Say whether another attempt would be answered alike; 0: there was no answer."""
    if status == _TOO_MANY_REQUESTS:
        return False
    return 0 < status < _SERVER_ERRORS


_ITEMS_AT_ONCE = 1000


async def _encode(payload: JsonObject) -> bytes:
    """Return a request as JSON; others run between the pieces of a long input.

    A lone surrogate, as of a broken copy, must not stop the request. An empty request
    has no body.
    """
    if not payload:
        return b""
    items = payload["input"]
    texts: list[str] = []
    for start in range(0, len(items), _ITEMS_AT_ONCE):
        if start > 0:
            await asyncio.sleep(0)
        part = items[start : start + _ITEMS_AT_ONCE]
        list_text = json.dumps(part, ensure_ascii=False)
        texts.append(list_text[1:-1])  # without its brackets
    whole = json.dumps({**payload, "input": []}, ensure_ascii=False)
    before, opening, after = whole.partition('"input": [')
    text = "".join((before, opening, ", ".join(texts), after))
    return text.encode(errors="replace")


async def _receive(
    answer: Awaitable[aiohttp.ClientResponse], endpoint: Endpoint, deadlines: Deadlines
) -> aiohttp.ClientResponse:
    """Return the response; a line break in the key or an odd host is a ValueError."""
    scope = deadlines.scope()
    try:
        async with scope:
            return await answer
    except _NETWORK_ERRORS as error:
        if scope.expired():
            raise deadlines.timeout_error() from None
        raise _connection_failed(error, endpoint.host) from None
    except ValueError:
        raise InvalidRequest(
            "The key, the address, the proxy or a header of the model's server contains "
            "an invalid character.",
            SettingFault(("api_key", "base_url", "proxy", "extra_headers")),
        ) from None


def _connection_failed(error: Exception, host: str) -> ConnectionFailed:
    """Return our error for one of aiohttp's."""
    match error:
        case aiohttp.ClientProxyConnectionError() | aiohttp.ClientHttpProxyError():
            sentence = SENTENCES["refused"]["407"]
            fault = SettingFault(("proxy",))
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            sentence = f"The certificate of {host} is not trusted here."
            fault = SettingFault(("base_url", "ca_bundle", "verify_ssl"))
        case _:
            sentence = f"The model's server at {host} cannot be reached. Try again."
            fault = SettingFault(("base_url",), "possible")
    was_sent = not isinstance(error, _NEVER_CONNECTED)
    return ConnectionFailed(sentence, was_sent=was_sent, fault=fault)


def _unreadable_answer(ending: Ending) -> UnreadableAnswer:
    """Return the error that ends a run so."""
    return UnreadableAnswer(ending.sentence, ending.fault)


async def container_file(
    endpoint: Endpoint,
    connections: Connections,
    ids: tuple[str, str],
    most_bytes: int,
    deadlines: Deadlines,
) -> bytes:
    """Return the bytes of a file in a container; raises the same errors as `request`.

    `ids` are those of the container and of the file. More than `most_bytes` is an
    AnswerTooLarge; the rest is not read.
    """
    container, file = (quote(part, "", errors="replace") for part in ids)
    path = f"/containers/{container}/files/{file}/content"
    async with connections.request(endpoint, path, None, deadlines) as answer:
        return bytes(await answer.read_all(most_bytes))


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
# openai_responses.requests.replay
#
# Output items of earlier responses, as they are sent again.
#
# The API refuses or silently drops encrypted reasoning of another model family, server or
# organization, so the origin of an item is stored with it
# (docs/reference/responses-api.md, "Refusals of input items", 4, 10 and 11).
#
# What the model produced stays byte for byte, without ids, which the API would look up
# and not find, and without `status`, which Azure refuses on reasoning (the same section,
# 1 to 3, 6, 7 and 9). Hosted items need both. They get a new id, always the same for the
# same item: the API's own id would require the reasoning before the item, which a chat
# may have lost.
#
# The API accepts an `mcp_call` but does not show it to the model (seen live in 2026), so
# later requests contain a function call with its output instead; it is also what a host
# makes of the card. An approval belongs to one response: without it the API would make
# the call again. An approval that the model has acted on becomes a pair, too.
#
# Code that the API ran is itself within its run only: its container is dead after 20 idle
# minutes, and the chat with it (docs/reference/responses-api.md, "Hosted items again").
# --------------------------------------------------------------------------------------


class Origin(NamedTuple):
    """The model family, the server, and the account that produced an item.

    Earlier writers stored neither of the latter two.
    """

    family: str
    endpoint: str = ""
    account: str = ""

    def can_decrypt(self, maker: Self) -> bool:
        """Say whether reasoning of `maker` can be sent here."""
        same_server = maker.endpoint in ("", self.endpoint)
        same_account = maker.account in ("", self.account)
        return same_server and same_account and maker.family == self.family

    def wire(self) -> dict[str, str]:
        """Return the form in which it is stored."""
        account = {"account": self.account} if self.account else {}
        return {"family": self.family, "endpoint": self.endpoint, **account}


def origin_at(family: str, endpoint: Endpoint) -> Origin:
    """Return the origin of items of `family` from `endpoint`."""
    return Origin(family, endpoint.host, endpoint.reasoning_scope_id())


def read_origin(wire: object, model: str) -> Origin:
    """Return a stored origin, or the one that the name of the model implies."""
    fields = as_mapping(wire)
    family = fields.get("family")
    if family:
        endpoint = str(fields.get("endpoint") or "")
        account = str(fields.get("account") or "")
        return Origin(str(family), endpoint, account)
    return Origin(resolve_model(model).family)


_REMOTE_SIGN = "mcp"
"""How the ids of remote calls begin, and no others."""


def is_remote_id(call_id: str) -> bool:
    """Say whether the API made the call itself, at a remote server."""
    return call_id.startswith(_REMOTE_SIGN)


def remote_name(item: JsonObject) -> str:
    """Return the label of the server and the name of the tool, as one name."""
    return ToolNames().sent_name(f"{item.get('server_label')}_{item.get('name')}")


def remote_pair(item: JsonObject, output: str = "") -> list[Item]:
    """Return the call that `item` made or requested, with its output or error."""
    output = output or _remote_error(item) or str(item.get("output") or "")
    arguments = str(item.get("arguments") or "{}")
    return _call_pair(_remote_call_id(item), remote_name(item), arguments, output)


def refused_pair(request: JsonObject, why: str) -> list[Item]:
    """Return a call that was denied, with its output."""
    return remote_pair(request, f"Error: {why}")


def _call_pair(call_id: str, name: str, arguments: str, output: str) -> list[Item]:
    call = {"type": "function_call", "call_id": call_id, "name": name}
    return [
        {**call, "arguments": arguments},
        {"type": "function_call_output", "call_id": call_id, "output": output},
    ]


def remote_failed(item: JsonObject) -> bool:
    """Say whether an `mcp_call` failed."""
    return bool(item.get("error")) or item.get("status") == "failed"


def is_approval_request(item: JsonObject) -> bool:
    """Say whether the API asks for permission to make a call."""
    return item.get("type") == "mcp_approval_request"


def drop_settled_approvals(items: Sequence[Item]) -> list[Item]:
    """Return `items` without approvals that were acted on, or that have no answer."""
    answers = {
        item.get("approval_request_id"): item for item in items if _is_response(item)
    }
    open_ids = _open_approvals(items)
    open_items: list[Item] = []
    for item in items:
        request_id = _approval_id(item)
        if request_id is None or request_id in open_ids:
            open_items.append(item)
        elif is_approval_request(item):
            answer = answers.get(request_id, {})
            if answer.get("approve") is False:
                open_items += refused_pair(item, str(answer.get("reason") or ""))
    return open_items


def _open_approvals(items: Sequence[Item]) -> set[object]:
    """Return the ids of the approvals behind which the model has done nothing yet.

    Its call for a refused request is none of its acts: the host makes it of the card.
    """
    requests = {_remote_call_id(item) for item in items if is_approval_request(item)}
    open_ids: set[object] = set()
    for item in items:
        if _is_response(item):
            open_ids.add(item.get("approval_request_id"))
        elif not is_call_output(item) and item.get("call_id") not in requests:
            open_ids.clear()
    return open_ids


def _approval_id(item: JsonObject) -> object:
    """Return the id of a request for approval, or the one that an answer names."""
    if is_approval_request(item):
        return item["id"]
    return item.get("approval_request_id") if _is_response(item) else None


def reorder_remote_outputs(items: Sequence[Item]) -> list[Item]:
    """Return `items` with the output of each remote call directly behind it."""
    # In the host's messages all outputs of a round stand behind all of its calls.
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
    """Return `item` in the form that is sent again: without ids, status and nulls.

    `logprobs` of a message and `action.sources` of a search are removed, too.
    """
    kept = _without(item, _NEVER_REPLAYED)
    if is_hosted(item):
        return {**kept, **_required_fields(item)} if is_host_returned(item) else kept
    # "Invalid 'input[39].content': array too long. Expected an array with maximum
    # length 0" (musistudio/claude-code-router 1783, of other servers' reasoning).
    if is_encrypted(item) and kept.get("content"):
        return _without(kept, ("content",))
    if isinstance(kept.get("content"), list) and item_type(item) == "message":
        parts = content_parts(kept["content"])
        kept = {**kept, "content": [_without(part, ("logprobs",)) for part in parts]}
    return kept


def _without(fields: Item, names: Sequence[str]) -> Item:
    """Return an object without nulls and `names`: if it has none, itself."""
    if fields.keys().isdisjoint(names) and None not in fields.values():
        return fields
    return {k: v for k, v in fields.items() if k not in names and v is not None}


def replay_items(item: Item) -> list[Item]:
    """Return the items that represent `item` in later requests."""
    if item_type(item) == "mcp_call":
        return remote_pair(item)
    if has_plain_reasoning(item):  # its server wants it as it was
        return [{key: value for key, value in item.items() if value not in (None, "")}]
    return [image_message(item) if has_image(item) else strip_for_replay(item)]


_MAX_CODE_LENGTH = 20_000
_CODE_IS_GONE = "[The container of this code is gone, with its files.]"


CHANGED_LATER = {"code_interpreter_call", "image_generation_call"}
"""The types of items that later requests show as other items."""


def past_items(item: Item) -> list[Item]:
    """Return the items that represent `item` when its run is over.

    A request that names a dead container is refused. So code becomes a call with its
    output, always the same for the same item.
    """
    if has_image(item):
        return [image_message(item)]
    if not is_code(item):
        return [item]
    code = as_text(item.get("code"))
    call_id = _new_id(as_text(item.get("id")) or f"ci_{code}")
    arguments = json.dumps({"code": code[:_MAX_CODE_LENGTH]})
    text = f"{code_output(item)[:_MAX_CODE_LENGTH]}\n{_CODE_IS_GONE}"
    return _call_pair(call_id, "code_interpreter", arguments, text)


def replay_output(output: Iterable[Item], *, with_reasoning: bool) -> list[Item]:
    """Return the output of a response for the next request of its run."""
    replayed: list[Item] = []
    for item in output:
        if _goes_back(item, with_reasoning):
            replayed += replay_items(item)
    return replayed


def _goes_back(item: Item, with_reasoning: bool) -> bool:
    if is_reasoning(item):
        return with_reasoning and (
            has_encrypted_reasoning(item) or has_plain_reasoning(item)
        )
    return not is_hosted(item) or is_host_returned(item) or has_image(item)


def _required_fields(item: Item) -> Item:
    kind = kind_of(item)
    fields = {key: item.get(key) for key in kind.nullable}
    for key in ("id", "status"):
        if item.get(key):
            fields[key] = item[key]
    if fields.get("outputs"):  # images are large and only people need them
        parts = content_parts(fields["outputs"])
        fields["outputs"] = [p for p in parts if p.get("type") != "image"]
    # "Unknown parameter: 'input[n].action.sources'", although the API itself sent them
    # (pydantic-ai 2.68.0).
    if item_type(item) == "web_search_call":
        fields["action"] = _without_sources(item["action"])
    # An approval is named by the id of the request for it.
    if "id" in fields and kind.returned == "always":
        fields["id"] = _new_id(str(item["id"]))
    return fields


def _without_sources(action: JsonObject) -> Item:
    """Return the action of a search without its sources and without nulls."""
    return {
        key: value
        for key, value in action.items()
        if key != "sources" and value is not None
    }


def _new_id(own: str) -> str:
    """Return an id of the kind of `own`, always the same for the same item."""
    # An id has at most 64 characters and the prefix of its kind, else it is refused
    # (cockpit-tools 2090).
    prefix, _, rest = own.partition("_")
    if rest.startswith(_MADE_HERE):
        return own
    return f"{prefix[:8]}_{_MADE_HERE}{hex_digest(own)[:40]}"


# --------------------------------------------------------------------------------------
# openai_responses.recent_texts
#
# What was said lately, so that a log line or a notice appears once.
# --------------------------------------------------------------------------------------


_DAY_SECONDS = 86_400
_MAX_TEXTS = 5000


class RecentTexts:
    """The texts of the last day, five thousand at most.

    They are kept by their hash, because a text may be long, or secret.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        self._now = now
        self._ends: dict[int, float] = {}

    def __contains__(self, text: str) -> bool:
        """Say whether `text` was added."""
        return self._now() < self._ends.get(hash(text), 0)

    def first_time(self, text: str) -> bool:
        """Add `text`; say whether it is new."""
        if text in self:
            return False
        if len(self._ends) >= _MAX_TEXTS:
            self._ends.clear()
        self._ends[hash(text)] = self._now() + _DAY_SECONDS
        return True


# --------------------------------------------------------------------------------------
# openai_responses.repairs.memory
#
# What is remembered of refusals: for whom, how long, and how much.
#
# For all users counts only what the server itself named in a request that is as its
# administrators configured it, and what helped at once: the next request was accepted.
# What may be about a user's own choice counts for that user, and what is about the items
# of a chat for that chat, if it can store it. The rest is forgotten.
#
# Everything has a bound: a day, a number for each user and of users. A repair holds names
# and digests of limited length, never a text of a person.
# --------------------------------------------------------------------------------------


DAY_SECONDS = 86_400.0
MAX_FOR_ALL = 256
MAX_FOR_ONE_USER = 64
MAX_USERS = 500

_ALL_USERS = ""
_MAX_NAME_IN_SCOPE = 300
"""Characters; nothing is remembered of what has a longer name."""


class RepairScope(NamedTuple):
    """Whose requests a repair is about."""

    account: str
    """A digest of the address, the organization and the key."""
    model: str
    user: str = ""
    """Empty for a client that nobody knows: nothing is remembered for it alone."""


class _Entry(NamedTuple):
    """A repair that requests of an account to a model need."""

    account: str
    model: str
    repair: Repair


class RepairMemory:
    """What refusals of the last day showed of accounts and models."""

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty; `now` is a time in seconds that never goes back."""
        self._now = now
        self._ends: dict[str, dict[_Entry, float]] = {}
        """Until when each entry is remembered, by user; the oldest entry comes first."""

    def repairs(self, scope: RepairScope) -> tuple[Repair, ...]:
        """Return the repairs that requests of a scope need, each once."""
        owners = [_ALL_USERS]
        if scope.user:
            owners.append(scope.user)
        now = self._now()
        repairs: dict[Repair, None] = {}
        for owner in owners:
            for entry, end in self._ends.get(owner, {}).items():
                is_same_account = entry.account == scope.account
                is_same_model = entry.model == scope.model
                if is_same_account and is_same_model and now < end:
                    repairs[entry.repair] = None
        return tuple(repairs)

    def learn(
        self, scope: RepairScope, trial: Trial, is_as_configured: Callable[[], bool]
    ) -> None:
        """Remember what helped, for all users or for one.

        `is_as_configured` says whether the request had only what its administrators
        set; it may cost a moment, and is called only if it matters.
        """
        longest_name = max(len(name) for name in scope)
        if not trial.is_lasting or longest_name > _MAX_NAME_IN_SCOPE:
            return
        may_be_for_all = (
            trial.is_named and trial.helped_at_once and not trial.repair.is_about_chat
        )
        if may_be_for_all and is_as_configured():
            self._remember(_ALL_USERS, MAX_FOR_ALL, scope, trial.repair)
        elif scope.user:
            self._remember(scope.user, MAX_FOR_ONE_USER, scope, trial.repair)

    def _remember(
        self, owner: str, max_entries: int, scope: RepairScope, repair: Repair
    ) -> None:
        """Remember a repair for a day; if it is known, the day begins again.

        Of more than `max_entries` the oldest is forgotten.
        """
        if owner not in self._ends and len(self._ends) >= MAX_USERS:
            self._forget_a_user()
        now = self._now()
        entry = _Entry(scope.account, scope.model, repair)
        remembered = self._ends.get(owner, {}).items()
        ends = {known: end for known, end in remembered if now < end}
        ends.pop(entry, None)
        if len(ends) >= max_entries:
            oldest = next(iter(ends))
            del ends[oldest]
        ends[entry] = now + DAY_SECONDS
        self._ends[owner] = ends

    def _forget_a_user(self) -> None:
        """Forget the user who was remembered first; not what holds for all."""
        for owner in self._ends:
            if owner != _ALL_USERS:
                del self._ends[owner]
                return


def trials_that_helped(trials: Sequence[Trial]) -> list[Trial]:
    """Return the trials that were not in vain, once a request was accepted.

    A trial was in vain if the same refusal came again and something else removed it.
    Of several things of one kind, such as two images, the refusal may be the same.
    """
    helped: list[Trial] = []
    for number, trial in enumerate(trials, 1):
        if number == len(trials):
            helped.append(trial._replace(helped_at_once=True))
        elif not _was_in_vain(trial, trials[number]):
            helped.append(trial)
    return helped


def _was_in_vain(trial: Trial, following: Trial) -> bool:
    is_same_refusal = trial.error == following.error
    return is_same_refusal and type(trial.repair) is not type(following.repair)


# --------------------------------------------------------------------------------------
# openai_responses.transport.uploads
#
# Uploads files to the Files API, from where code containers get them.
#
# An uploaded file expires by itself: nothing has to be deleted, also if the host stops.
# --------------------------------------------------------------------------------------


UPLOAD_SECONDS = 86_400
"""How long an uploaded file lives: a day. The API takes an hour to 30 days (guide "API
reference", "Upload file")."""


class Upload(NamedTuple):
    """A file to upload."""

    name: str
    content: bytes


async def upload_file(
    endpoint: Endpoint, connections: Connections, file: Upload, deadlines: Deadlines
) -> str:
    """Upload a file for code containers; return the id that it gets.

    Raises the same errors as `Connections.request`.
    """
    body = _multipart_body(file, _upload_fields(endpoint))
    async with connections.request(endpoint, "/files", body, deadlines) as answer:
        file_id = as_text(as_mapping(await answer.read_json()).get("id"))
    if not file_id:
        raise UnreadableAnswer(UNREADABLE.sentence, UNREADABLE.fault)
    return file_id


def _upload_fields(endpoint: Endpoint) -> Mapping[str, str]:
    """Return the fields beside the file.

    Azure does not know the purpose `user_data`; its guide "Responses API" uses
    `assistants` instead.
    """
    return {
        "purpose": "assistants" if endpoint.is_azure else "user_data",
        "expires_after[anchor]": "created_at",
        "expires_after[seconds]": str(UPLOAD_SECONDS),
    }


def _multipart_body(file: Upload, fields: Mapping[str, str]) -> EncodedBody:
    """Return a file and its fields as `multipart/form-data` (RFC 7578)."""
    boundary = hex_digest(f"{file.name} {len(file.content)}")
    while boundary.encode() in file.content:
        boundary = hex_digest(boundary)
    lines: list[bytes] = []
    for name, value in fields.items():
        lines += [
            f"--{boundary}".encode(),
            f'Content-Disposition: form-data; name="{name}"'.encode(),
            b"",
            value.encode(),
        ]
    lines += [
        f"--{boundary}".encode(),
        f'Content-Disposition: form-data; name="file"; '
        f'filename="{_quoted_name(file.name)}"'.encode(errors="replace"),
        b"Content-Type: application/octet-stream",
        b"",
        file.content,
        f"--{boundary}--".encode(),
        b"",
    ]
    return EncodedBody(b"\r\n".join(lines), f"multipart/form-data; boundary={boundary}")


def _quoted_name(name: str) -> str:
    """Return a file's name as browsers write it into a header (HTML, "Form data")."""
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


# --------------------------------------------------------------------------------------
# openai_responses.models.choice
#
# Which models are offered, chosen by an automatic name, and retired.
#
# If nobody listed models, the newest of each family is offered. The family is the part of
# the id behind the version: `gpt-6.2-sol` and `gpt-5.6-sol` are two versions of sol.
# Models for selected customers, retired models and models with a successor are offered
# only if an administrator lists them.
#
# An automatic name is resolved by the first rule that fits:
#
# 1. A chat stays with the model that began it: its reasoning and cache belong to it.
# 2. Files, images, chosen tools, code and long questions go to the large model.
# 3. Everything else goes to the small model.
#
# Only the first message of a chat counts, so a chat always gets the same answer.
# --------------------------------------------------------------------------------------


_VERSIONED_ID = re.compile(r"gpt-(?P<version>\d+(?:\.\d+)?)(?:-(?P<family>[a-z]+))?")
_NO_CHAT = re.compile(
    r"audio|realtime|transcribe|tts|image|embedding|moderation|search|live|instruct"
    r"|gpt-3|gpt-4-|gpt-4$|computer|translate"
    r"|^(?:text-|whisper|dall-e|davinci|babbage|sora|omni-)"
)
"""Parts of the ids of models for something else than a chat, and of too old ones."""
_CLOSED_CIRCLES = frozenset({"cyber", "rosalind"})
"""Families for selected customers, whose administrators list them."""


def read_models(answer: object) -> dict[str, str]:
    """Return the ids of `GET /models`, of chat models alone, with their last days.

    The day is an ISO date, or nothing. Ids of other servers, which follow no rule of
    OpenAI's, count as chat models. The list is remembered for an hour, so it has an
    end, and so has each name.
    """
    days: dict[str, str] = {}
    for entry in as_list(as_mapping(answer).get("data")):
        row = as_mapping(entry)
        name = as_text(row.get("id"))
        day = as_text(row.get("shutdown_date"))[:_ISO_DATE_LENGTH]
        if _is_chat_model(name):
            days[name] = day if _date(day) else ""
        if len(days) >= _MAX_MODELS:
            break
    return days


_ISO_DATE_LENGTH = 10
_MAX_MODEL_ID = 200
_MAX_MODELS = 1000


def _is_chat_model(name: str) -> bool:
    if name in CATALOG_FACTS:
        return True
    has_usual_length = 0 < len(name) <= _MAX_MODEL_ID
    return has_usual_length and not _NO_CHAT.search(name)


def newest_models(today: str, usable: Collection[str] | None = None) -> list[str]:
    """Return the newest model of each family, newest first.

    `today` is an ISO date; `usable` holds the ids that the key can use, if known.
    """
    versioned = []
    for name in CATALOG_FACTS if usable is None else usable:
        match = _VERSIONED_ID.fullmatch(name)
        if match and _is_offered(match, today):
            versioned.append(match)
    newest: dict[str, re.Match[str]] = {}
    for match in sorted(versioned, key=_version):
        newest[match["family"]] = match
    newest_first = sorted(newest.values(), key=_version, reverse=True)
    return [match.string for match in newest_first]


def _is_offered(match: re.Match[str], today: str) -> bool:
    if match["family"] in _CLOSED_CIRCLES:
        return False
    facts = CATALOG_FACTS.get(match.string)
    if facts is None:
        return True
    if facts.successor:
        return False
    return facts.shutdown is None or today < facts.shutdown


def _version(match: re.Match[str]) -> tuple[tuple[int, ...], str]:
    """Return a key that sorts ids by age; a plain name comes after a longer one."""
    numbers = [int(number) for number in match["version"].split(".")]
    return tuple(numbers), match.string


_NOTICE_DAYS = 30
"""Before the last day of a model, from which on its answers say so."""


def retirement_notice(
    model: ResolvedModel, today: date, answering: ResolvedModel | None = None
) -> str:
    """Return a sentence about the end of a model if it is near.

    `answering` is the one that answered, if it was not asked for.
    """
    ending = _date(model.facts.shutdown)
    if ending is None or today < ending - timedelta(days=_NOTICE_DAYS):
        return ""
    when = "is switched off on" if today < ending else "was switched off on"
    sentence = f"{model.name} {when} {ending.isoformat()}."
    if answering and answering.id != model.id:
        return f"{sentence} {answering.name} answers instead."
    successor = model.facts.successor
    if successor:
        sentence += f" Use {resolve_model(successor).name} instead."
    return sentence


def replacement(model: ResolvedModel, today: date) -> ResolvedModel | None:
    """Return what answers for a model of the kind pro that was switched off.

    Nobody finds its successor by its name: it is the mode pro of a model without it.
    """
    ending = _date(model.facts.shutdown)
    if ending is None or today < ending:
        return None
    successor = resolve_model(model.facts.successor or "")
    return successor if successor.pro else None


def name_asked_model(sentence: str, model_id: str) -> str:
    """Return a sentence with the id that was asked for in the place of ASKED_MODEL.

    If OpenAI has switched that model off, the sentence names the successor, too.
    """
    if ASKED_MODEL not in sentence:
        return sentence
    named = sentence.replace(ASKED_MODEL, model_id)
    successor = successor_of(model_id)
    if successor is None:
        return named
    return f"{named} OpenAI has shut it down and recommends {successor.name}."


def _date(text: str | None) -> date | None:
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        return None


_AUTO_MODELS = {"gpt-5-auto": ("gpt-6.1-terra", "gpt-6.1-sol")}
"""The small and the large model for each automatic name."""

_LONG_QUESTION = 600
"""Characters from which on the large model answers."""
_ATTACHED = ("input_file", "input_image")


def choose_auto_model(
    name: str, first: JsonObject | None, tools: bool, earlier: Collection[str]
) -> tuple[str, str] | None:
    """Return the model that an automatic name means, and why; None for other names.

    `first` is the user's first message, `tools` says whether the user chose some,
    `earlier` holds the families of the models that answered in this chat.
    """
    if name not in _AUTO_MODELS:
        return None
    small, large = _AUTO_MODELS[name]
    for model in (small, large):
        if model in earlier:
            return model, "it began this chat"
    reason = _reason_for_large(first, tools)
    if reason:
        return large, reason
    return small, "the question is short, without files or tools"


def _reason_for_large(first: JsonObject | None, tools: bool) -> str:
    """Return why the large model answers; empty if the small one is enough."""
    if first is None:
        return "there is no question to judge by"
    parts: list[Item] = content_parts(first.get("content"))
    if any(part.get("type") in _ATTACHED for part in parts):
        return "something is attached to the question"
    if tools:
        return "tools are switched on"
    text = "".join(part_text(part) for part in parts)
    if "```" in text:
        return "the question holds code"
    if len(text) > _LONG_QUESTION:
        return "the question is long"
    return ""


# --------------------------------------------------------------------------------------
# openai_responses.loop.growing_parts
#
# The texts of one output item while they grow, part by part.
#
# A part is named by its kind and its `content_index` or `summary_index`. Some servers
# number parts in another way than the finished item does: Bedrock and vLLM's gpt-oss send
# `content_index` 1 for the text that ends at `content[0]` (recordings; vllm 45742), older
# vLLM gives each delta a number of its own (vllm 35184). So a part whose number the
# finished item does not have is matched by its order and by its text.
# --------------------------------------------------------------------------------------


Rest = tuple[TextPlace, str]
"""A part, and the text of it that no delta brought."""


class GrowingParts:
    """What the deltas of one item have brought so far."""

    def __init__(self) -> None:
        """Start with no text."""
        self._deltas: dict[TextPlace, list[str]] = {}
        self._unended: dict[str, dict[TextPlace, None]] = defaultdict(dict)
        """The parts of each kind whose end has not come, in their order."""

    def grow(self, part: TextPlace, text: str) -> None:
        """Take one delta."""
        deltas = self._deltas.get(part)
        if deltas is None:
            self._deltas[part] = [text]
            self._unended[part[0]][part] = None
        else:
            deltas.append(text)

    def end_part(self, part: TextPlace, text: str) -> list[Rest]:
        """Take the whole text of one part; return what is still to be shown of it."""
        unended = self._unended[part[0]]
        had_deltas = bool(unended)
        own = [part] if part in unended else []
        matched, shown = self._match(own, text)
        if shown < len(text):
            in_order, shown_in_order = self._match(unended, text)
            if shown_in_order > shown:
                matched = in_order
                shown = shown_in_order
        for other in matched:
            del unended[other]
            del self._deltas[other]
        unended.pop(part, None)
        self._deltas[part] = [text]
        return self._rest(part, text, shown, had_deltas=had_deltas)

    def end_item(self, texts: Sequence[Rest]) -> list[Rest]:
        """Take all parts of the finished item; return what is still to be shown."""
        numbered = {part for part, _ in texts}
        strays: dict[str, deque[TextPlace]] = defaultdict(deque)
        for part in self._deltas:
            if part not in numbered:
                strays[part[0]].append(part)
        rests: list[Rest] = []
        for part, text in texts:
            rests += self._end_numbered(part, text, strays[part[0]])
        return rests

    def _end_numbered(
        self, part: TextPlace, text: str, strays: deque[TextPlace]
    ) -> list[Rest]:
        """Return what is still to be shown of one part of the finished item.

        `strays` are parts of its kind whose numbers the item does not have, in their
        order. Those that this text accounts for are removed.
        """
        own = [part] if part in self._deltas else []
        had_deltas = bool(own or strays)
        matched, shown = self._match(chain(own, strays), text)
        for _ in matched[len(own) :]:
            strays.popleft()
        if strays and not own and not matched:
            strays.popleft()  # it contradicts this text, and belongs to no other
        return self._rest(part, text, shown, had_deltas=had_deltas)

    def _match(
        self, candidates: Iterable[TextPlace], text: str
    ) -> tuple[list[TextPlace], int]:
        """Return the first candidates whose deltas, joined, begin `text`.

        Returns with them how many characters of `text` they account for.
        """
        matched: list[TextPlace] = []
        shown = 0
        for candidate in candidates:
            grown = "".join(self._deltas[candidate])
            self._deltas[candidate] = [grown]  # joined once, however often it is tried
            if not text.startswith(grown, shown):
                break
            matched.append(candidate)
            shown += len(grown)
            if shown == len(text):
                break
        return matched, shown

    @staticmethod
    def _rest(
        part: TextPlace, text: str, shown: int, *, had_deltas: bool
    ) -> list[Rest]:
        """Return what is to be shown of a text of which `shown` characters are.

        A text that contradicts its deltas is corrected by the finished item alone.
        """
        contradicts_deltas = had_deltas and shown == 0
        if contradicts_deltas or shown == len(text):
            return []
        return [(part, text[shown:])]


# --------------------------------------------------------------------------------------
# openai_responses.loop.response
#
# The state machine of one response.
#
# Events in, run events out, no side effects. An item is *unknown* until an event opens
# it, then *open*, and *ended* from its `output_item.done` on:
#
#     event \ state    unknown            open              ended
#     delta            opens, shown (1)   shown             ignored
#     whole text       opens, shown (1)   the rest shown    ignored
#     added            opened             ignored           ignored
#     done             opened and ended   ended             ignored
#     final snapshot   opened and ended   ended             ignored
#     citation, sketch ignored            shown             ignored
#
# (1) Text opens a message, reasoning a reasoning item. Arguments and code are kept until
# the item is known: only the item has the name of a call (docs/reference/responses-api.md,
# "Stream events"). Events after the end of the response are ignored. A text that has
# ended is authoritative: the part that was not shown yet is shown, and the final item is
# the wire's own dict.
#
# An item is found by its ids: `item_id` of a part, `id` and `call_id` of an item. Where
# they are unknown, it is the last item that came with the same `output_index`, if the
# event can be about it: the type is the same, and it is open or the event has no id. An
# item of the final snapshot is found by its ids, else it is the first of its type that no
# other item of the snapshot is. Items are numbered as they come: other servers leave
# `output_index` out, reuse it, or change it (docs/servers.md). A call without a `call_id`
# opens when it ends, with an id of ours. Some servers number the calls of each response
# anew; such a call leaves here under an id that no earlier response has.
# --------------------------------------------------------------------------------------


class ResponseState:
    """One response, from its first event to its last.

    `_items` are the items as they were announced. A *position* is that of an item in
    this list; its index in the run is `_first` more. `_ids` has the positions by the ids
    of the wire, `_latest` by `output_index`. `_open` has the texts of the items that
    grow, `_ended` the final items, both by position. `_early` has the deltas whose item
    is not known yet, by its id, or by its `output_index` if the delta has none.
    `_growing` is the text that the last delta belongs to, and the position of its item.
    `_known_call_ids` are those of all calls so far, `_own_call_ids` the ids that calls
    leave with, by those of the wire.
    """

    def __init__(
        self, first_index: int = 0, taken_call_ids: Collection[str] = ()
    ) -> None:
        """Number items from `first_index` on.

        `taken_call_ids` are those of the calls of earlier responses.
        """
        self.ending: Ending | None = None
        self.usage: Usage | None = None
        self.refusal: ApiError | None = None
        self.event_count = 0
        self.byte_count = 0
        self.trace = Trace()
        self._first = first_index
        self._known_call_ids = set(taken_call_ids)
        self._own_call_ids: dict[str, str] = {}
        self._items: list[Item] = []
        self._ids: dict[str, int] = {}
        self._latest: dict[int, int] = {}
        self._early: dict[str | int, list[TextDelta]] = {}
        self._open: dict[int, GrowingParts] = {}
        self._growing = _NO_TEXT
        self._ended: dict[int, Item] = {}

    @property
    def items(self) -> list[tuple[int, Item]]:
        """The finished items with their indexes, in the order of the API."""
        positions = sorted(self._ended)
        return [
            (self._first + position, self._ended[position]) for position in positions
        ]

    @property
    def output(self) -> list[Item]:
        """The finished items, in the order of the API."""
        return [item for _, item in self.items]

    def feed(self, event: StreamEvent) -> list[RunEvent]:
        """Take one event and return the run events that it causes."""
        self.event_count += 1
        if self.ending:
            return self._take_reason(event)
        return self._take(event)

    def _take(self, event: StreamEvent) -> list[RunEvent]:
        match event:
            case TextDelta():
                return self._grow(event) if event.text else []
            case AnnotationAdded() | PartialImage():
                position = self._find(event.output_index, [event.item_id], _has_fields)
                if position in self._open:
                    index = self._first + position
                    return [event._replace(output_index=index, item_id="")]
            case ItemAdded(index, item):
                if not _lacks_call_id(item) and self._find_item(index, item) is None:
                    return self._start(index, item, _ids(item))
            case ItemDone(index, item):
                return self._end(self._find_item(index, item), index, item)
            case FinalResponse():
                return self._finish(event)
            case StreamError():
                self._fail("error", event.error)
        return []

    def _take_reason(self, event: StreamEvent) -> list[RunEvent]:
        """Take the second of the two events with which a stream is refused.

        OpenAI sends `error`, then `response.failed` (recorded); Azure's filter sends them
        the other way round, and only the second one has the reason.
        """
        kind = self.ending.kind if self.ending else ""
        match event:
            case StreamError() if kind == "failed":
                self._fail("failed", event.error)
            case FinalResponse(status="failed") if kind == "error":
                return self._finish(event)
        return []

    def _fail(self, kind: Literal["failed", "error"], error: ApiError) -> None:
        """End with `error`, or with what an earlier event named as the reason."""
        first = self.refusal or ApiError()
        if first != ApiError():
            notice = first.notice if any(first.notice) else error.notice
            error = first._replace(notice=notice)
        self.refusal = error
        self.trace = self.trace._replace(error=error)
        self.ending = ending_of_failure(kind, error)

    def _find(
        self, index: int, ids: Sequence[str], fits: Callable[[Item], bool]
    ) -> int | None:
        """Return the position of the item that an event is about, if it is known.

        The module says how: by its ids, else by the `output_index`.
        """
        for item_id in ids:
            position = self._ids.get(item_id)
            if position is not None and fits(self._items[position]):
                return position
        position = self._latest.get(index)
        if position is None or not fits(self._items[position]):
            return None
        has_id = any(ids)
        if has_id and position not in self._open:
            return None
        return position

    def _find_item(self, index: int, item: Item) -> int | None:
        """Return the position of an item, if it is known.

        Two calls of one `call_id` stay two; the snapshot only repeats what came.
        """
        kind = item_type(item)
        call_id = as_text(item.get("call_id"))

        def fits(known: Item) -> bool:
            if item_type(known) != kind:
                return False
            known_call_id = as_text(known.get("call_id"))
            return call_id == known_call_id or not call_id or not known_call_id

        position = self._find(index, _ids(item), fits)
        if position not in self._ended or index == _NOWHERE:
            return position
        is_same = item.get("id") in (None, self._ended[position].get("id"))
        return position if is_same else None

    def _start(self, index: int, item: Item, ids: Sequence[str]) -> list[RunEvent]:
        """Open an item, and show what came for it before it was known."""
        position = len(self._items)
        self._growing = _NO_TEXT
        self._items.append(item)
        self._open[position] = GrowingParts()
        self._ids.update(dict.fromkeys(ids, position))
        self._latest[index] = position
        shown = self._with_own_call_id(item)
        events: list[RunEvent] = [ItemAdded(self._first + position, shown)]
        names: list[str | int] = [*ids, index]
        for name in names:
            for early in self._early.pop(name, ()):
                if _can_grow(item, early.kind):
                    events += self._grow(early)
        return events

    def _grow(self, event: TextDelta) -> list[RunEvent]:
        """Show a delta; the next one of the same part needs no search for its item."""
        index = event.output_index
        kind = event.kind
        item_id = event.item_id
        last_text, position = self._growing
        events: list[RunEvent] = []
        if last_text != (index, kind, item_id):
            position = self._find(index, [item_id], lambda item: _can_grow(item, kind))
        if position is None:
            if kind not in _OPENED_BY:
                self._early.setdefault(item_id or index, []).append(event)
                return []
            position = len(self._items)
            item = {**_OPENED_BY[kind], "id": item_id or f"item_{position}"}
            events = self._start(index, item, [item_id])
        if position not in self._open:
            return events
        self._growing = ((index, kind, item_id), position)
        text_place = (kind, event.part)
        if isinstance(event, TextDone):
            rest = self._open[position].end_part(text_place, event.text)
            return events + self._deltas(position, rest)
        self._open[position].grow(text_place, event.text)
        return [*events, TextDelta(self._first + position, *text_place, event.text)]

    def _end(self, position: int | None, index: int, item: Item) -> list[RunEvent]:
        """Take the final form of an item, and show what its deltas left out."""
        if position in self._ended:
            return []
        if _lacks_call_id(item):
            item = {**item, "call_id": f"call_{new_ulid()}"}
        item = _drop_malformed_ids(item)
        events: list[RunEvent] = []
        if position is None:
            position = len(self._items)
            events = self._start(index, item, _ids(item))
        self._ids.update(dict.fromkeys(_ids(item), position))
        rests = self._open.pop(position).end_item(list(item_texts(item)))
        events += self._deltas(position, rests)
        self._growing = _NO_TEXT
        item = self._with_own_call_id(item)
        self._ended[position] = item
        return [*events, ItemDone(self._first + position, item)]

    def _with_own_call_id(self, item: Item) -> Item:
        """Return a call under an id that no earlier response has.

        Bedrock begins with `call_0` in each response (recorded by pydantic-ai), and an
        output would answer the first call of that name. The id is a function of the ids
        before it; once stored, it is sent again as it is. A call that comes twice in
        this response has one id.
        """
        call_id = as_text(item.get("call_id"))
        if not is_call(item) or not call_id:
            return item
        own_id = self._own_call_ids.get(call_id)
        if own_id is None:
            own_id = distinct_call_id(call_id, self._known_call_ids)
            self._known_call_ids.add(own_id)
            self._own_call_ids[call_id] = own_id
        return item if own_id == call_id else {**item, "call_id": own_id}

    def _deltas(
        self, position: int, rests: Iterable[tuple[TextPlace, str]]
    ) -> list[RunEvent]:
        """Return the deltas that show what the wire's own deltas did not bring."""
        index = self._first + position
        return [TextDelta(index, *text_place, text) for text_place, text in rests]

    def _finish(self, event: FinalResponse) -> list[RunEvent]:
        response = event.response
        self.usage = read_usage(response.get("usage"), response.get("service_tier"))
        self.trace = self.trace._replace(
            model=str(response.get("model") or ""),
            removed=_removals(response.get("input_transformations")),
            response_id=as_text(response.get("id")),
            cache=as_mapping(response.get("prompt_cache_diagnostics")),
        )
        if event.status == "failed":
            self._fail("failed", read_api_error(response.get("error")))
        else:
            self.ending = _ending_of(event.status, response)
        events: list[RunEvent] = []
        for position, item in self._match(content_parts(response.get("output"))):
            events += self._end(position, _NOWHERE, item)
        return [*events, ResponseDone(event.status)]

    def _match(self, items: Sequence[Item]) -> Iterator[tuple[int | None, Item]]:
        """Yield the positions of the items of the final snapshot, if they are known."""
        positions = [self._find_item(_NOWHERE, item) for item in items]
        taken = set(positions)
        unmatched: dict[str, deque[int]] = defaultdict(deque)
        for known_position, known_item in enumerate(self._items):
            if known_position not in taken:
                unmatched[item_type(known_item)].append(known_position)
        for position, item in zip(positions, items, strict=True):
            same_type = unmatched[item_type(item)]
            if position is None and same_type:
                yield same_type.popleft(), item
            else:
                yield position, item


_NO_TEXT: tuple[object, int | None] = (None, None)
"""The next delta has to search for its item."""
_NOWHERE = -2
"""An `output_index` that no event has."""

_EMPTY_MESSAGE: Item = {"type": "message", "role": "assistant", "content": []}
_OPENED_BY = {
    "text": _EMPTY_MESSAGE,
    "refusal": _EMPTY_MESSAGE,
    "summary": NO_THOUGHT,
    "reasoning": NO_THOUGHT,
}
"""Items that their texts alone open."""


def _has_fields(item: Item) -> bool:
    return bool(item)


def _drop_malformed_ids(item: Item) -> Item:
    """Return an item without ids that are not texts, because ids are keys here."""
    kept: Item = {}
    for key, value in item.items():
        is_malformed = value is not None and not as_text(value)
        if is_malformed and key.endswith("id"):
            continue
        kept[key] = value
    return kept


def _can_grow(item: Item, kind: str) -> bool:
    """Say whether deltas of a kind belong to an item of this type."""
    if kind in _OPENED_BY:
        return item_type(item) == item_type(_OPENED_BY[kind])
    text_field = kind_of(item).text
    return text_field is not None and text_field[0] == kind


def _ids(item: Item) -> list[str]:
    """Return the ids that an event can name an item by."""
    ids = (as_text(item.get("id")), as_text(item.get("call_id")))
    return [item_id for item_id in ids if item_id]


def _lacks_call_id(item: Item) -> bool:
    """Say whether `item` is a call that gets its `call_id` here, when it has ended."""
    return is_call(item) and not as_text(item.get("call_id"))


def _removals(transformations: object) -> Mapping[str, int]:
    """Return how many items the API left out of the input, by its reasons."""
    return Counter(
        api_word(str(row.get("reason"))) or "unknown"
        for row in content_parts(transformations)
        if row.get("action") == "removed"
    )


def _ending_of(status: str, response: JsonObject) -> Ending:
    """Return how a response ended that did not fail.

    One that is `cancelled` was cancelled by another client: after our own cancellation
    no answer is read.
    """
    details = as_mapping(response.get("incomplete_details"))
    if status == "incomplete":
        return ending_of_incomplete(as_text(details.get("reason")))
    if status == "cancelled":
        return ending_of_incomplete(status)
    return COMPLETED


# --------------------------------------------------------------------------------------
# openai_responses.loop.attempts
#
# One response: a request that is sent, then sent again, resumed or polled if that helps.
#
# A request is sent again only before something of its answer was shown: repaired, if the
# cause of the refusal is found, or unchanged, if waiting may help.
#
# A background response continues at the server when a connection breaks, so its stream is
# resumed behind the last event (OpenAI's guide "Background mode"). The response itself is
# requested if a stream brought nothing new, because there is no event for a cancelled
# response, and if the API refuses to resume, five minutes after the beginning.
# --------------------------------------------------------------------------------------


_THOUGHT_SHARE = 0.02
"""The part of `Limits.join_seconds` for which deltas of reasoning are joined: the answer
behind them must not wait."""


def _never_spent(_usages: Sequence[Usage], _output: Sequence[Item]) -> str:
    """Return no reason to end a run: without a budget nothing is used up."""
    return ""


class Limits(NamedTuple):
    """How a run behaves towards viewers and towards the server.

    `join_seconds` is the shortest time between two events that show more of an answer.
    `resuming` limits the requests in a row for the rest of a background response,
    `poll_seconds` is the wait while the server is still working on one.
    `most_bytes` limits one response, counted by `json_weight`. `set_waiting` is called
    with true when the server is waited for or speaks, else with false. `spent` takes the
    usages of the run so far and the output of each response; it says why the run ends
    although tools are called, or nothing. `flex_falls_back` allows the standard tier,
    which costs twice as much, where the flex tier has no capacity.
    """

    join_seconds: float = 0.05
    timeouts: Timeouts = Timeouts()
    retries: RetryPolicy = RetryPolicy()
    resuming: RetryPolicy = RetryPolicy(12)
    poll_seconds: float = 5.0
    most_bytes: int = MAX_ANSWER_BYTES
    set_waiting: Callable[[bool], object] = ignore_report
    spent: Callable[[Sequence[Usage], Sequence[Item]], str] = _never_spent
    flex_falls_back: bool = False


class Attempts:
    """The attempts at each response of a run: `request`, `response`, and the last `error`.

    This is the provider of the Responses API (`loop/run.py`). `usages` are those of all
    attempts of the run, `_call_ids` those of all its calls. For each response,
    `_retries` and `_repaired` count its attempts, and `_thought` is the thought that is
    on the page before anything else. For each attempt, `has_shown` says whether it
    showed more than that, `_thinks` whether that thought is (also) its own, and `_held`
    are its events that are not shown yet.
    """

    def __init__(
        self, endpoint: Endpoint, connections: Connections, limits: Limits
    ) -> None:
        """Start the total limit of the run."""
        self.endpoint = endpoint
        self.connections = connections
        self.limits = limits
        self.deadlines = Deadlines(limits.timeouts, limits.set_waiting)
        self.usages: list[Usage] = []
        self._call_ids: set[str] = set()

    async def generate(
        self, request: ResponsesRequest, first_index: int = 0
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send `request` and yield its events, until there is nothing more to try.

        The items of the response are numbered from `first_index`.
        """
        earlier_usages = len(self.usages)
        self.request = request
        self._call_ids |= find_call_ids(request.input)
        self._retries = 0
        self._repaired = 0
        self._thought: ItemAdded | None = None
        while True:
            self.response = ResponseState(first_index, self._call_ids)
            async with aclosing(self._attempt()) as events:
                async for event in events:
                    yield event
            status, wait = self._prepare_next_attempt()
            if status is None or not self.deadlines.allow(wait):
                break
            yield status
            self.limits.set_waiting(False)
            await asyncio.sleep(wait)
        if not self.has_shown:
            for event in (*self._end_thought(), *self._held):
                yield event
        self._end_if_used_up()
        yield ModelAnswer(
            ending=self.ending,
            request=self.request,
            items=tuple(self.response.items),
            usages=tuple(self.usages[earlier_usages:]),
            last_usage=self.response.usage,
            trace=self.trace,
            has_shown=self.has_shown,
        )

    async def _attempt(self) -> RunEvents:
        """Send the request once; yield what is shown of its answer.

        `error` then says why there is no answer, or only a part of it.
        """
        self.error: ResponsesError | None = None
        self.has_shown = False
        self._thinks = False
        self._held: list[RunEvent] = []
        try:
            async with aclosing(self._send(self.request)) as events:
                async for event in events:
                    for shown in self._visible(event):
                        yield shown
        except ResponsesError as caught:
            self.error = caught
        if self.response.usage:
            self.usages.append(self.response.usage)

    def paused(self) -> AbstractContextManager[None]:
        """Stop the total limit while tools run or people decide."""
        return self.deadlines.paused()

    def _end_if_used_up(self) -> None:
        """End a run that wants to continue but has used up what `limits.spent` counts.

        Every response counts, also one that calls nothing.
        """
        output = self.response.output
        used_up = self.limits.spent(self.usages, output)
        wants_to_continue = any(
            is_call(item) or is_approval_request(item) for item in output
        )
        if used_up and wants_to_continue:
            self.response.ending = Ending("incomplete", sentence=used_up)

    def _visible(self, event: RunEvent) -> list[RunEvent]:
        """Return what is shown now; the rest waits for the first visible event.

        What waits leaves no trace if the request is sent again. Only the beginning of a
        thought is shown at once, and once: people see that the model is at work.
        """
        if self.has_shown or isinstance(event, Status):
            return [event]
        is_first_event = not self._held
        if is_first_event and isinstance(event, ItemAdded) and is_reasoning(event.item):
            if self._thought is None:
                self._thought = event
                self._thinks = True
                return [event]
            if self._thought.output_index == event.output_index:
                # A new attempt thinks again: the thought on the page goes on.
                self._thinks = True
                return []
        self._held.append(event)
        if not _is_visible(event):
            return []
        self.has_shown = True
        shown = [*self._end_thought(), *self._held]
        self._held = []
        return shown

    def _end_thought(self) -> list[RunEvent]:
        """Return the end of a thought that only an earlier attempt began."""
        if self._thought is None or self._thinks:
            return []
        return [ItemDone(self._thought.output_index, NO_THOUGHT)]

    def count_bytes(self, chunk: bytes) -> None:
        """Count what arrived of this response; raises AnswerTooLarge."""
        self.response.byte_count += json_weight(chunk)
        if self.response.byte_count > self.limits.most_bytes:
            raise AnswerTooLarge

    @property
    def ending(self) -> Ending:
        """How the response ended."""
        ending = self.response.ending or self._ending_without_event()
        sentence = self.endpoint.name_server(ending.sentence)
        sentence = name_asked_model(sentence, self.request.model)
        notice = notice_text(self._api_error.notice, self.endpoint.secrets)
        return ending._replace(sentence=f"{sentence} {notice}".strip())

    def _ending_without_event(self) -> Ending:
        """Return the ending of a response whose stream did not say how it ends."""
        has_begun = self.response.event_count > 0
        if self.error:
            return ending_of_exception(self.error, has_begun)
        return CUT if has_begun else UNREADABLE

    @property
    def _api_error(self) -> ApiError:
        """What the API said last: as the status of its answer, or in the stream."""
        if isinstance(self.error, ApiRefused):
            return self.error.error
        return self.response.trace.error

    @property
    def trace(self) -> Trace:
        """What the log needs to know about the last answer."""
        error = self.error
        trace = self.response.trace
        if isinstance(error, ApiRefused):
            trace = Trace(error.request_id, "", error.failure.status, error.error)
        if not trace.error.names_a_place:  # most runs, and a request may be large
            return trace
        subject = named_subject(self.request.sent(), trace.error)
        return trace._replace(subject=subject)

    def _send(self, request: ResponsesRequest) -> RunEvents:
        """Return the events of one attempt, which begins when they are read."""
        payload = request.payload()
        if self.endpoint.is_strict:
            payload = strict_payload(payload)
        if request.background:
            return _Background(self).events(payload)
        return _stream_response("/responses", payload, self)

    def _prepare_next_attempt(self) -> tuple[Status | None, float]:
        """Change the request if that may help.

        Returns the status to show before the next attempt, None if there is none, and
        the seconds to wait.
        """
        failure = _retriable_failure(self.error, self.response)
        if failure is None or self.has_shown:
            return None, 0.0
        is_unrefused_background = self.request.background and not self.response.refusal
        if is_unrefused_background and _may_run_on_server(self.error):
            return None, 0.0
        if self._may_leave_flex(failure.error):
            update = {"service_tier": "default"}
            self.request = self.request.model_copy(update=update)
            return Status(_STANDARD_TIER), 0.0
        if is_final(failure.error):
            return None, 0.0
        limits = self.limits.retries
        wait = retry_wait(limits, self._retries, failure, random_fraction())
        repair_status = self._repair(failure, is_last=wait is None)
        if repair_status or wait is None:
            return repair_status, 0.0
        self._retries += 1
        seconds = f"{wait:.0f} s" if wait >= 1 else "a moment"
        sentence = f"{failure_status(failure)} Trying again in {seconds}."
        return Status(sentence, is_retry=True), wait

    def _may_leave_flex(self, error: ApiError) -> bool:
        """Say whether the standard tier may answer what the flex tier cannot."""
        is_flex = self.request.service_tier == "flex"
        allowed = self.limits.flex_falls_back
        return is_flex and allowed and error.code == FLEX_UNAVAILABLE

    def _repair(self, failure: Failure, *, is_last: bool) -> Status | None:
        """Change the request, if that may help; return the status that tells it.

        `is_last` says whether the same request is not sent again.
        """
        if not may_be_repaired(failure):
            return None
        sent = self.request.sent()
        trial = find_repair(sent, failure, self._repaired)
        if trial is None and is_last:
            trial = last_repair(sent, failure)
        if trial is None:
            return None
        subject = named_subject(sent, failure.error)
        self._repaired += 1
        repairs = (*self.request.repairs, trial.repair)
        self.request = self.request.model_copy(update={"repairs": repairs})
        reason = f"{subject} {trial.error.message}".strip()
        return Status(trial.repair.message, trial, reason)


_STANDARD_TIER = (
    "The model's server has no flex capacity: answering at the standard tier, which costs "
    "twice as much."
)
_ID = re.compile(r"[A-Za-z0-9_=-]{1,512}")
"""Ids that are safe in a path; other servers use base64 in their ids."""
_MAX_WAIT_FOR_ID = 60.0
"""Seconds that a response which nobody reads any more has to name its id."""
_FETCHING_REST = (
    "The connection to the model was lost: fetching the rest of the answer."
)


class _Background:
    """A background response, and how far it was read.

    `_response_id` is set as soon as the server has named it. `_last_sequence` is the
    number of the last event, `_last_seen_sequence` what it was when the last request
    ended; both are -1 before the first. `_error` is that of the last request,
    `_failures` counts the requests in a row that brought nothing new. `_resumable` says
    whether the API may still resume the stream, `_is_polling` whether the next request
    is for the response itself, not for its stream. `_is_cancelled` is set once, also for
    a response that does not exist any more.
    """

    def __init__(self, attempts: Attempts) -> None:
        self._attempts = attempts
        loop = asyncio.get_running_loop()
        self._response_id: asyncio.Future[str] = loop.create_future()
        self._last_sequence = -1
        self._last_seen_sequence = -1
        self._error: ResponsesError | None = None
        self._failures = 0
        self._resumable = True
        self._is_polling = False
        self._is_cancelled = False

    def is_new(self, event: ServerSentEvent) -> bool:
        """Note an event that could be read; say whether it is new.

        The event is parsed twice; a background run has few events a second.
        """
        wire = {} if event.data == "[DONE]" else json.loads(event.data)
        self.note(wire.get("response"))
        number = wire.get("sequence_number")
        if not isinstance(number, int):
            return True
        if number <= self._last_sequence:
            return False
        self._last_sequence = number
        return True

    def note(self, response: object) -> None:
        """Remember the id of a response object, if it is a valid id."""
        response_id = as_text(as_mapping(response).get("id"))
        if _ID.fullmatch(response_id) and not self._response_id.done():
            self._response_id.set_result(response_id)

    async def events(self, payload: dict[str, Any] | None) -> RunEvents:
        """Send the request, feed its response to the state, and yield its run events.

        Once the response has an id, raises only ResponseLost, and TimedOut for the total
        limit. If the caller leaves before the end, the response is cancelled, because
        it would continue to cost money without a reader.
        """
        path = "/responses"
        try:
            while True:
                async with aclosing(self._request(path, payload)) as events:
                    async for event in events:
                        yield event
                if self._is_over(self._error):
                    break
                has_news = self._last_sequence != self._last_seen_sequence
                self._last_seen_sequence = self._last_sequence
                wait = self._wait_after(self._error, has_news)
                if not self._attempts.deadlines.allow(wait):
                    raise TimedOut("total_timeout")
                if has_news:
                    yield Status(_FETCHING_REST)
                await asyncio.sleep(wait)
                path = self._next_path()
                payload = None
        finally:
            self._abandon()

    async def _request(self, path: str, payload: dict[str, Any] | None) -> RunEvents:
        """Send one request and yield its run events; `_error` says why it failed."""
        self._error = None
        part = _stream_response(path, payload, self._attempts, self)
        try:
            first = await self._first_event(part)
            async with aclosing(part) as events:
                if first is not None:
                    yield first
                async for event in events:
                    yield event
        except ResponsesError as caught:
            self._error = caught

    def _is_over(self, error: ResponsesError | None) -> bool:
        """Say whether nothing more is requested; raises `error` if it is the reason."""
        if self._attempts.response.ending:
            return True
        if error is None:
            return not self._response_id.done()
        if error.is_final or not self._response_id.done():
            raise error
        return False

    def _next_path(self) -> str:
        """Return the path of the response, or of the rest of its stream."""
        path = f"/responses/{self._response_id.result()}"
        if self._is_polling:
            return path
        return f"{path}?stream=true&starting_after={self._last_sequence}"

    async def _first_event(self, part: RunEvents) -> RunEvent | None:
        """Return the first event of `part`, None if it has none.

        A response without an id could not be cancelled, so a `part` that is left before
        is read until there is one.
        """
        if self._response_id.done():
            return await anext(part, None)
        first = asyncio.ensure_future(anext(part, None))
        try:
            return await asyncio.shield(first)
        except asyncio.CancelledError:
            self._attempts.connections.do_later(self._close(part, first))
            raise

    async def _close(self, part: RunEvents, first: asyncio.Future[Any]) -> None:
        """Wait until the response has an id, then close its stream and cancel it."""
        await asyncio.wait(
            {first, self._response_id},
            timeout=_MAX_WAIT_FOR_ID,
            return_when=asyncio.FIRST_COMPLETED,
        )
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await part.aclose()
        self._abandon()

    def _wait_after(self, error: ResponsesError | None, has_news: bool) -> float:
        """Return the seconds until the next request; raises ResponseLost.

        An answer without an end means that the server is still working on it. A stream
        that is too old to be resumed is followed by a request for the response itself.
        """
        was_polling = self._is_polling
        limits = self._attempts.limits
        if was_polling and error is None:
            self._failures = 0
            self._is_polling = not self._can_resume
            return limits.poll_seconds
        self._failures = 0 if has_news else self._failures + 1
        failure = Failure()
        if error and error.status and error.failure:
            failure = error.failure
        wait = retry_wait(limits.resuming, self._failures, failure, random_fraction())
        if wait is None and self._resumable and not was_polling:
            self._resumable = False
            wait = 0.0
        self._is_polling = not (has_news and self._can_resume)
        if wait is None:
            # The API does not know the response (any more): there is nothing to cancel.
            self._is_cancelled = error is not None and error.status == 404
            raise ResponseLost
        return wait

    @property
    def _can_resume(self) -> bool:
        """Whether the stream can be requested again behind its last event."""
        return self._resumable and self._last_sequence >= 0

    def _abandon(self) -> None:
        """Cancel the response once, unless it has ended or does not exist."""
        attempts = self._attempts
        if attempts.response.ending or self._is_cancelled:
            return
        if self._response_id.done():
            self._is_cancelled = True
            path = f"/responses/{self._response_id.result()}/cancel"
            connections = attempts.connections
            connections.do_later(connections.post_quietly(attempts.endpoint, path))


async def _stream_response(
    path: str,
    payload: dict[str, Any] | None,
    attempts: Attempts,
    background: _Background | None = None,
) -> RunEvents:
    """Send a request, feed the answer to its response, and yield its run events.

    Without a `payload` it requests a response, or the rest of its stream. A response
    that is still in progress yields nothing. Raises what `Connections.request` raises,
    AnswerTooLarge, MalformedEvent. Cancelling or closing it closes the connection.
    """
    state = attempts.response
    attempts.deadlines.start_attempt()
    async with attempts.connections.request(
        attempts.endpoint, path, payload, attempts.deadlines
    ) as answer:
        state.trace = Trace(answer.request_id, status=200)
        if not answer.is_stream:
            response = await answer.response_object()
            for event in _whole_events(response, state, background):
                yield event
            return
        reader = _StreamReader(answer, attempts, background)
        while not (answer.is_read or state.ending):
            events, malformed = await reader.read_batch()
            for event in events:
                yield event
            if malformed:
                raise malformed
            await reader.gather_deltas(events)
        for event in await reader.read_reason():
            yield event


class _StreamReader:
    """Reads one streamed answer, batch by batch, and feeds it to its response.

    A batch is what has arrived meanwhile. Reading less often makes long answers cheap:
    one pass handles all its deltas. No bytes of the wire are held between two batches.
    """

    def __init__(
        self,
        answer: HttpResponse,
        attempts: Attempts,
        background: _Background | None,
    ) -> None:
        self._answer = answer
        self._attempts = attempts
        self._background = background
        # A background response is resumed behind the number of its last event.
        self._decoder = EventStreamDecoder(joins_deltas=background is None)
        self._malformed: MalformedEvent | None = None
        self._now = asyncio.get_running_loop().time
        self._read_at = self._now()

    async def read_batch(self) -> tuple[list[RunEvent], MalformedEvent | None]:
        """Wait for bytes; return their run events, up to one that cannot be read."""
        chunk = await self._answer.read_any()
        self._attempts.count_bytes(chunk)
        self._read_at = self._now()
        batch = self._decoder.feed(chunk) if chunk else self._decoder.close()
        if batch:
            self._attempts.deadlines.event_arrived()
        return self._feed(batch)

    async def gather_deltas(self, events: Sequence[RunEvent]) -> None:
        """Wait for a moment if the last event is a delta: more of them will follow.

        The first delta after a pause is never delayed.
        """
        last = events[-1] if events else None
        if not isinstance(last, TextDelta):
            return
        share = 1.0 if last.kind in ("text", "refusal") else _THOUGHT_SHARE
        spent = self._now() - self._read_at
        seconds = self._attempts.limits.join_seconds * share - spent
        with self._answer.paused():
            await asyncio.sleep(max(0.0, seconds))

    async def read_reason(self) -> list[RunEvent]:
        """Return the run events behind the last event of a refused stream: its reason.

        Nothing else of an answer that has ended is read.
        """
        rest = await self._answer.drain()
        if self._attempts.response.refusal is None:
            return []
        batch = [*self._decoder.feed(rest), *self._decoder.close()]
        events, _ = self._feed(batch)
        return events

    def _feed(
        self, batch: Sequence[ServerSentEvent]
    ) -> tuple[list[RunEvent], MalformedEvent | None]:
        """Return the run events of `batch`, up to the first event that cannot be read."""
        self._malformed = None
        run_events: list[RunEvent] = []
        for event in join_deltas(self._parse(batch)):
            run_events += self._attempts.response.feed(event)
        return run_events, self._malformed

    def _parse(self, batch: Iterable[ServerSentEvent]) -> Iterator[StreamEvent]:
        """Yield the new events of `batch`; `_malformed` says why it ends early."""
        try:
            for wire_event in batch:
                parsed = parse_event(wire_event)
                if self._background is None or self._background.is_new(wire_event):
                    yield parsed
        except MalformedEvent as error:
            self._malformed = error


def _whole_events(
    response: JsonObject, state: ResponseState, background: _Background | None
) -> list[RunEvent]:
    """Return the run events of an answer in one piece; none while it is in progress."""
    if background is not None:
        background.note(response)
    status = str(response.get("status") or "completed")
    if status in ("queued", "in_progress"):
        return []
    return state.feed(FinalResponse(status, response))


_GATEWAY_STATUS = frozenset({408, 502, 504, *range(520, 525)})
"""Statuses of a gateway in front of the API that got no answer in time.

520 to 524 are Cloudflare's own.
"""


def _retriable_failure(
    error: ResponsesError | None, state: ResponseState
) -> Failure | None:
    """Return why a response that showed nothing may be requested again.

    A stream without any event is one that cannot be read.
    """
    if state.refusal:
        return Failure(200, state.refusal)
    if error:
        return error.failure
    if state.ending:
        return None
    if state.event_count == 0:
        return MalformedEvent.failure
    return Failure()


def _is_visible(event: RunEvent) -> bool:
    """Say whether the page draws something for an event."""
    if not isinstance(event, ItemAdded | ItemDone):
        return not isinstance(event, ResponseDone)
    return has_text(event.item) or item_type(event.item) not in ("message", "reasoning")


def _may_run_on_server(error: ResponsesError | None) -> bool:
    """Say whether the server may be working on the request in spite of `error`.

    A background response whose id is unknown continues; sent again, it would be billed
    twice. So it is sent again only if nothing arrived at the server or the API itself
    refused it. The answer of a gateway does not tell what happened behind it.
    """
    if error is None or error.was_sent:
        return True
    is_asked_to_retry = error.failure and error.failure.should_retry
    return error.status in _GATEWAY_STATUS and not is_asked_to_retry


# --------------------------------------------------------------------------------------
# openai_responses.loop.arguments
#
# Checks the arguments that a model gives a function against the function's schema.
#
# Only keywords that models get wrong are checked: types, required properties, enums,
# items and choices. The tool itself checks the others.
# --------------------------------------------------------------------------------------


_ODD_SCHEMA = (TypeError, AttributeError, ValueError)
"""Errors of reading a schema that is not valid; servers send such schemas."""

_MAX_DEPTH = 40
"""Levels of a value that are checked; deeper ones are the tool's to check."""
_MAX_WORK = 200_000
"""Characters, entries and steps that one check may read or take (`JsonBudget`).

Arguments that need more are given to the tool as they are.
"""
_STEP = 20
"""The work of a comparison in addition to what it reads."""
_MAX_SHOWN_CHOICES = 20
_MAX_SHOWN_CHARACTERS = 60
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
    """Checks values against the parts of one schema, as long as the budget lasts.

    Each value may be compared with each part, which is why there is a budget. A schema
    can refer to the same part several times, and to itself, so `errors` remembers the
    result of each comparison by path and by the identity of value and part; both must
    outlive the check. If it is `lenient`, null is allowed for every optional property.
    """

    root: JsonObject
    budget: JsonBudget
    errors: dict[tuple[str, int, int], str]
    lenient: bool = False

    def pay_for(self, value: Any, node: JsonObject, path: str = "") -> None:
        """Pay for comparing a value with a part; raises ValueError at the limit."""
        parts = (node.get(key) for key in _READ_KEYWORDS)
        size = _STEP + len(path)
        size += sum(len(part) for part in parts if isinstance(part, list | dict))
        if isinstance(value, list | dict):
            size += len(value)
            if "enum" in node or "const" in node:
                # Each choice is compared with the whole value.
                size *= json_size(value, self.budget.left)
        self.budget.spend(size)

    def error(self, value: Any, node: Any, path: str = "", depth: int = 0) -> str:
        """Return the path and the error there; empty if `value` is valid for `node`."""
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            return ""
        compared = (path, id(value), id(node))
        if compared not in self.errors:
            self.errors[compared] = ""  # a schema that refers to itself ends here
            self.errors[compared] = self._error(value, node, path, depth)
        return self.errors[compared]

    def _error(self, value: Any, node: JsonObject, path: str, depth: int) -> str:
        """Compare a value with a node that it was not compared with yet."""
        self.pay_for(value, node, path)
        if value is None and node.get("nullable") is True:
            return ""
        if "$ref" in node:
            target = resolve_reference(self.root, node["$ref"])
            return self.error(value, target, path, depth + 1)
        error = _own_error(value, node, path)
        if error:
            return error
        for child, child_node, child_path in self._inner(value, node, path):
            error = self.error(child, child_node, child_path, depth + 1)
            if error:
                return error
        options = node.get("anyOf") or node.get("oneOf") or ()
        if options and all(
            self.error(value, option, path, depth + 1) for option in options
        ):
            return f"{path or 'object'} fits none of its forms"
        return ""

    def _inner(
        self, value: Any, node: JsonObject, path: str
    ) -> Iterator[tuple[Any, Any, str]]:
        """Yield each value inside with its schema and its path."""
        items = node.get("items")
        if isinstance(value, Mapping):
            yield from self._properties(value, node, path)
        elif isinstance(value, list) and isinstance(items, Mapping):
            for index, entry in enumerate(value):
                yield entry, items, f"{path}[{index}]"
        for part in node.get("allOf") or ():
            yield value, part, path

    def _properties(
        self, value: JsonObject, node: JsonObject, path: str
    ) -> Iterator[tuple[Any, Any, str]]:
        """Yield the listed properties that an object has, with schemas and paths.

        A lenient check skips the nulls of optional ones.
        """
        properties = node.get("properties") or {}
        required = set(node.get("required") or ())
        for name in properties:
            if name not in value:
                continue
            may_be_null = self.lenient and name not in required
            if value[name] is not None or not may_be_null:
                yield value[name], properties[name], _joined(path, name)


def _own_error(value: Any, node: JsonObject, path: str) -> str:
    """Return the error of a value itself: its type, its choice, its missing keys."""
    shown_path = path or "object"
    kinds = json_types(node.get("type"))
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{shown_path} must be {_listed(kinds)}"
    allowed = [node["const"]] if "const" in node else node.get("enum")
    if isinstance(allowed, Sequence) and not _is_among(value, allowed):
        # One more than is shown: the list then says that there are others.
        first_choices = allowed[: _MAX_SHOWN_CHOICES + 1]
        words = _listed([_quote(choice) for choice in first_choices])
        return f"{shown_path} must be one of {words}"
    if not isinstance(value, Mapping):
        return ""
    return _missing_key(value, node.get("required") or (), path)


def _missing_key(value: JsonObject, required: Sequence[Any], path: str) -> str:
    for name in required:
        if name not in value:
            return f"{_joined(path, str(name))} is missing"
    return ""


def _is_among(value: Any, choices: Sequence[Any]) -> bool:
    return any(_same(value, choice) for choice in choices)


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _listed(words: Sequence[str]) -> str:
    """Return words as a list with "or"; long ones and long lists end in dots."""
    shown = [_shortened(word) for word in words[:_MAX_SHOWN_CHOICES]]
    listed = " or ".join(shown)
    return f"{listed} ..." if len(words) > _MAX_SHOWN_CHOICES else listed


def _shortened(word: str) -> str:
    if len(word) <= _MAX_SHOWN_CHARACTERS:
        return word
    return word[: _MAX_SHOWN_CHARACTERS - 3] + "..."


def _quote(value: Any) -> str:
    """Return a value as a model reads it, with the beginning of a long text."""
    if isinstance(value, str):
        return repr(value[:_MAX_SHOWN_CHARACTERS])
    return short_repr(value)


def _same(value: Any, other: Any) -> bool:
    """Compare as JSON does: true is not 1."""
    if isinstance(value, bool) is not isinstance(other, bool):
        return False
    return bool(value == other)


def check_arguments(
    arguments: object, schema: JsonObject
) -> tuple[dict[str, Any], str | None]:
    """Return the arguments to call a function with, and the error in them, if any.

    Nulls that mean "not given" are left out. A null means that if its property is
    optional and must not be null itself; in a choice, the option that the model chose
    decides. The error is a sentence for the model.
    """
    if not isinstance(arguments, Mapping):
        return {}, "The arguments must be a JSON object."
    kept = dict(arguments)
    error = ""
    with suppress(*_ODD_SCHEMA):
        json_size(schema, LARGEST_SCHEMA)  # raises ValueError for a larger one
        check = _SchemaCheck(schema, JsonBudget(_MAX_WORK), {})
        kept = _drop_nulls(arguments, schema, check, 0)
        error = check.error(kept, schema)
    complaint = f"The argument {error}." if error else None
    return kept, complaint


def _drop_nulls(value: Any, node: Any, check: _SchemaCheck, depth: int) -> Any:
    """Return a value without the nulls that mean "not given", at any depth."""
    if depth > _MAX_DEPTH or not isinstance(value, Mapping | list):
        return value
    forms = joined_schemas(node, partial(_applicable_parts, value, check))
    if isinstance(value, Mapping):
        return _drop_property_nulls(value, forms, check, depth)
    items = {"allOf": [form["items"] for form in forms if "items" in form]}
    return [_drop_nulls(entry, items, check, depth + 1) for entry in value]


def _drop_property_nulls(
    value: JsonObject, forms: Sequence[JsonObject], check: _SchemaCheck, depth: int
) -> dict[Any, Any]:
    """Return an object without nulls of optional properties that must not be null."""
    known = _known_properties(value, forms)
    required: set[str] = set()
    for form in forms:
        required |= set(form.get("required") or ())
    # With errors of its own: `known` is made here, and remembered errors hold only as
    # long as the parts that they are about.
    null_check = check._replace(errors={})
    kept: dict[Any, Any] = {}
    for name, entry in value.items():
        may_be_dropped = entry is None and name in known and name not in required
        if may_be_dropped and null_check.error(None, known[name]):
            continue
        kept[name] = _drop_nulls(entry, known.get(name), check, depth + 1)
    return kept


def _known_properties(
    value: JsonObject, forms: Sequence[JsonObject]
) -> dict[str, dict[str, list[Any]]]:
    """Return the schemas of the keys that a value has, joined over all forms."""
    known: dict[str, dict[str, list[Any]]] = {}
    for form in forms:
        properties = form.get("properties") or {}
        for name in properties:
            if name in value:
                known.setdefault(name, {"allOf": []})["allOf"].append(properties[name])
    return known


def _applicable_parts(value: Any, check: _SchemaCheck, node: JsonObject) -> list[Any]:
    """Return what a part of a schema joins to itself; of a choice, one option."""
    check.pay_for(value, node)
    return schema_parts(check.root, node, partial(_chosen_option, value, check))


def _chosen_option(value: Any, check: _SchemaCheck, options: list[Any]) -> list[Any]:
    """Return the option that a value fits; all options if it fits none."""
    lenient = check._replace(errors={}, lenient=True)
    for option in options:
        if not lenient.error(value, option):
            return [option]
    return options


# --------------------------------------------------------------------------------------
# openai_responses.loop.spending
#
# What a run may take, and what it has taken so far.
#
# If the host makes some calls and asks again with their outputs, the new run continues
# from what the earlier rounds of the same answer took. A task that a run delegates has a
# budget of its own, and counts for the run as well.
# --------------------------------------------------------------------------------------


SpentLimit = Literal["rounds", "calls", "seconds", "tokens"]
"""The limit that is reached."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of a run; 0 `seconds` or `tokens` mean no limit.

    `rounds` counts the responses that may call tools. The calls of the last one are
    refused, so that the model hears of the limit; those of an only one are made. In
    both cases one response without tools follows. `seconds` includes the model and the
    tools that run here, but not the time that people need to decide.
    """

    rounds: int = 10
    calls: int = 100
    seconds: float = 0.0
    tokens: int = 0


class EarlierSpending(NamedTuple):
    """What earlier rounds of the same answer took, in other runs."""

    rounds: int = 0
    calls: int = 0
    usage: Usage | None = None
    seconds: float = 0.0


class Spending:
    """What a run has taken so far, compared with its budget.

    `usages` has one entry for each response; all earlier rounds together are the first
    one. `usage` is the sum without earlier rounds. `last_usage` is that of the last
    response, `delegated_usage` that of tasks since it was last taken. `_parent` is the
    spending of the run that delegated this task, `_stop` the end of a run that was
    stopped. `_started_at` moves ahead by each pause: the time so far is what is between
    it and now, in seconds of the event loop's clock.
    """

    def __init__(self, budget: Budget, parent: Self | None = None) -> None:
        """Start the clock."""
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        self.last_usage: Usage | None = None
        self.usages: list[Usage] = []
        self._budget = budget
        self._parent = parent
        self._stop: RunDone | None = None
        self.delegated_usage: Usage | None = None
        self._earlier_usage: Usage | None = None
        self._now = asyncio.get_running_loop().time
        self._started_at = self._now()
        self._paused_at = 0.0
        self._pauses = 0

    def add_earlier(self, earlier: EarlierSpending) -> None:
        """Count what earlier rounds took."""
        self.rounds = earlier.rounds
        self.calls = earlier.calls
        self._earlier_usage = earlier.usage
        self._started_at -= earlier.seconds
        if earlier.usage is not None:
            self.usages.append(earlier.usage)

    def begin_round(self) -> int:
        """Count a response that is requested; return its number, from 1."""
        self.rounds += 1
        return self.rounds

    def add_response(self, usages: Iterable[Usage], last_usage: Usage | None) -> None:
        """Count the attempts at one response."""
        for usage in usages:
            self._add(usage)
            if self._parent:
                self._parent.add_delegated(usage)
        self.last_usage = last_usage

    def add_delegated(self, usage: Usage) -> None:
        """Count a response of a task."""
        self._add(usage)
        self.delegated_usage = add_usage(self.delegated_usage, usage)

    def take_delegated(self) -> Usage | None:
        """Return what tasks used since it was last taken."""
        taken = self.delegated_usage
        self.delegated_usage = None
        return taken

    def _add(self, usage: Usage) -> None:
        self.usage = add_usage(self.usage, usage)
        self.usages.append(usage)

    @property
    def total_usage(self) -> Usage:
        """The tokens of all rounds, earlier ones included."""
        return add_usage(self._earlier_usage, self.usage) or Usage()

    @property
    def own_usages(self) -> list[Usage]:
        """Those of the responses of this run, without earlier rounds."""
        if self._earlier_usage is None:
            return self.usages
        return self.usages[1:]

    @property
    def seconds(self) -> float:
        """The time so far, earlier rounds included and pauses left out."""
        now = self._paused_at if self._pauses else self._now()
        return now - self._started_at

    @property
    def seconds_left(self) -> float | None:
        """The remaining time, None without a limit."""
        if self._budget.seconds <= 0:
            return None
        return max(0.0, self._budget.seconds - self.seconds)

    @property
    def calls_left(self) -> int:
        """How many calls may still be made."""
        return max(0, self._budget.calls - self.calls)

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Count no time while a person decides.

        Calls run in parallel, so several pauses can overlap: the clock stands still from
        the beginning of the first one to the end of the last one.
        """
        if self._pauses == 0:
            self._paused_at = self._now()
        self._pauses += 1
        try:
            yield
        finally:
            self._pauses -= 1
            if self._pauses == 0:
                self._started_at += self._now() - self._paused_at

    def limit_of_round(self, number: int) -> SpentLimit | None:
        """Return the limit that keeps a response from calling tools, if any."""
        if number > self._budget.rounds:
            return "rounds"
        return self._spent_limit()

    def limit_of_calls(self, number: int) -> SpentLimit | None:
        """Return the limit that refuses the calls of a round, if any."""
        max_rounds = self._budget.rounds
        is_last_of_many = number == max_rounds and max_rounds > 1
        if is_last_of_many or number > max_rounds:
            return "rounds"
        return self._spent_limit()

    def _spent_limit(self) -> SpentLimit | None:
        """Return which of time and tokens is used up, here or in the run above a task."""
        if self._parent:
            limit = self._parent._spent_limit()
            if limit:
                return limit
        if self.seconds_left == 0:
            return "seconds"
        max_tokens = self._budget.tokens
        if max_tokens > 0 and self.total_usage.total >= max_tokens:
            return "tokens"
        return None

    def stop(self, ended: RunDone) -> None:
        """End the run, the run above it and all tasks once their running calls end."""
        if self._parent:
            self._parent.stop(ended)
        else:
            self._stop = ended

    @property
    def stopped(self) -> RunDone | None:
        """The end of a run of this answer that was stopped; then none continues."""
        return self._parent.stopped if self._parent else self._stop


# --------------------------------------------------------------------------------------
# openai_responses.loop.tools
#
# Calls of tools: who may run them, how they run, and what they return.
#
# The first approval rule that matches a tool's name applies. A rule that matches only
# another name of the tool applies as well if it is stricter, and so does each rule that
# may match a name of which only a part is known. A call that needs an approval and does
# not get one is denied.
#
# Every call gets an output. For each failure the model gets one of our messages; the text
# of an exception goes only to the log, because it may quote what the model must not see.
# --------------------------------------------------------------------------------------


Approval = Literal["auto", "ask", "deny"]
ApprovalRules = Sequence[tuple[str, Approval]]
_STRICTNESS: Sequence[Approval] = ("auto", "ask", "deny")

_Value = TypeVar("_Value")

Ask = Callable[[str, str, JsonObject], Awaitable[bool]]
"""Shows a person the id, name and arguments of a call; only True approves it."""


def _no_other_names(_name: str) -> Iterable[str]:
    return ()


def _matches_nothing(_name: str, _pattern: str) -> bool:
    return False


def _ask_about_remote(_request: JsonObject) -> Approval:
    return "ask"


@dataclass(frozen=True, slots=True)
class Approver:
    """The rules of a request, and the way to ask a person if they do not decide."""

    rules: ApprovalRules = ()
    default_rule: Approval = "auto"
    ask: Ask | None = None
    log: Callable[[str], object] = ignore_report
    other_names: Callable[[str], Iterable[str]] = _no_other_names
    """The other names of a tool."""
    may_match: Callable[[str, str], bool] = _matches_nothing
    """Whether a pattern may match a name of a tool that is not known in full."""
    remote_default: Callable[[JsonObject], Approval] = _ask_about_remote
    """What holds for a call of a remote server that no rule is about; it is described
    by the `mcp_approval_request`."""

    def rule_for(self, name: str, via: str = "") -> Approval:
        """Return the strictest rule of a tool and of `via`, which passes the call on.

        Of the rules that match `name` only the first counts, so that a rule for one
        tool can allow what a later one for many denies.
        """
        strictest = _first_match(self.rules, name) or self.default_rule
        unmatched = [rule for rule in self.rules if not fnmatchcase(name, rule[0])]
        for other_name in (via, *self.other_names(name)):
            other_rule = _first_match(unmatched, other_name) or "auto"
            strictest = max(strictest, other_rule, key=_STRICTNESS.index)
        for pattern, possible_rule in unmatched:
            if self.may_match(name, pattern):
                strictest = max(strictest, possible_rule, key=_STRICTNESS.index)
        return strictest

    async def refusal(
        self, call_id: str, name: str, arguments: JsonObject, via: str = ""
    ) -> str | None:
        """Return the message for the model if a call is denied, else None."""
        match self.rule_for(name, via):
            case "auto":
                return None
            case "deny":
                return f"The administrator does not allow {name}. Do not call it again."
        try:
            if self.ask and await self.ask(call_id, name, arguments):
                return None
        except Exception as error:  # the dialog failed, which is no approval
            self.log(f"nobody could be asked about {name}: {describe_exception(error)}")
        return f"The user did not approve this call of {name}. Continue without it."


def _first_match(rows: Iterable[tuple[str, _Value]], name: str) -> _Value | None:
    """Return the value of the first pattern that matches a name."""
    for pattern, value in rows:
        if fnmatchcase(name, pattern):
            return value
    return None


class ToolResult(NamedTuple):
    """The result of a tool: an `output` for the model, and a `card`.

    A card holds what the host shows with it (`files`, `embeds`).
    """

    output: str | list[Item]
    failed: bool = False
    card: JsonObject = NO_CARD


CallKind = Literal["limited", "question", "task"]
"""What limits a call: the limits of the toolset, nothing, or limits of its own.

A `question` waits for a person, and its time does not count for the run. A `task` makes
calls itself.
"""

Pause = Callable[[], AbstractContextManager[None]]
"""Stops the clock of a run while a person decides."""


class CallableTools(Protocol):
    """The tools of a request, by their own names or by those sent to the API."""

    def parameters(self, name: str) -> JsonObject | None:
        """Return the schema of a tool's arguments, or None for an unknown tool."""

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the own name of the tool that a call will run, and its arguments.

        A tool that passes calls on names another tool in its arguments. Returns None if
        it names none.
        """

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool."""

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; an exception counts as a failure of the tool."""


class CallLimits(NamedTuple):
    """Limits of calls: how many at once, how many seconds, how much output."""

    at_once: int = 8
    seconds: float = 120.0
    batch_seconds: float = 600.0
    characters: int = 100_000
    own: Sequence[tuple[str, float]] = ()
    """Seconds by patterns of names; the first match replaces both limits above."""

    def own_seconds(self, name: str) -> float | None:
        """Return the limit that a tool has of its own, if any."""
        return _first_match(self.own, name)


class CallTexts(NamedTuple):
    """What the model reads of a call that failed or was not made; `{tool}` is its name.

    `failed` stands for an exception, the others for the limits of a budget.
    """

    failed: str = "Error: {tool} failed. Tell the user, or try another way."
    rounds: str = (
        "Error: {tool} was not run: the limit of tool rounds is reached. Answer "
        "without it."
    )
    calls: str = (
        "Error: {tool} was not run: the limit of tool calls is reached. Answer "
        "without it."
    )
    seconds: str = (
        "Error: {tool} was not run: the time limit is reached. Answer without it."
    )
    tokens: str = (
        "Error: {tool} was not run: the limit of tokens is reached. Answer without it."
    )

    def describe(self, name: str, limit: SpentLimit) -> str:
        """Return that a limit keeps a tool from being called."""
        text: str = getattr(self, limit)
        return text.replace("{tool}", name)

    def refuse(self, call: Item, limit: SpentLimit) -> ToolResult:
        """Return the result of a call that a limit keeps from being made."""
        return ToolResult(self.describe(_name(call), limit), failed=True)


class Verdict(NamedTuple):
    """What happens to a call: it is refused, left to the host, or made here."""

    call: Item
    refusal: ToolResult | None = None
    is_left: bool = False

    @property
    def is_made(self) -> bool:
        """Whether the call runs here."""
        return self.refusal is None and not self.is_left


class Judgment(NamedTuple):
    """What happens to the calls of a response, in their order.

    A `question` is a call that the host shows to a person. With it no call is made yet,
    and none is shown: the run ends, and another one continues with the person's answer.
    """

    verdicts: Sequence[Verdict] = ()
    question: Item | None = None

    @property
    def is_open(self) -> bool:
        """Whether the host has to continue: it makes a call, or asks a person."""
        return self.question is not None or any(
            verdict.is_left for verdict in self.verdicts
        )


class CallJudge(Protocol):
    """Decides about the calls of a response before any of them is made."""

    @property
    def holds_calls(self) -> bool:
        """Whether calls are shown only after the judgment.

        A host that runs every call it sees must not see one before it is approved.
        """

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Return what happens to each of the calls, which the budget allows."""


class Toolset(NamedTuple):
    """What a run needs to answer calls and approval requests itself.

    `log` takes lines about failed tools. `carries_reasoning` says whether the model gets
    its reasoning again between its calls. Unless it `runs_calls`, calls are left to the
    host. Without a `judge` every call is made that the approver allows.
    """

    tools: CallableTools
    approver: Approver = Approver()
    limits: CallLimits = CallLimits()
    log: Callable[[str], object] = ignore_report
    budget: Budget = Budget()
    carries_reasoning: bool = True
    runs_calls: bool = True
    texts: CallTexts = CallTexts()
    judge: CallJudge | None = None


def output_item(call: Item, answer: ToolResult) -> Item:
    """Return the input item that answers `call`."""
    kind = CALL_OUTPUTS[item_type(call)]
    return {"type": kind, "call_id": call["call_id"], "output": answer.output}


def tool_error(message: str) -> ToolResult:
    """Return the result of a failed call, as a message for the model."""
    return ToolResult(f"Error: {message}", failed=True)


class _ReadyCall(NamedTuple):
    """A call that may run: its tool, and its checked arguments."""

    name: str
    arguments: dict[str, Any]
    kind: CallKind
    via: str = ""
    """The tool that was called, if that passes the call on."""


class _StartedCall(NamedTuple):
    """A call whose task runs, or waits for its turn."""

    item: Item
    task: asyncio.Task[ToolResult]
    has_own_time: bool
    """Whether the time of the batch does not count for it."""


async def run_calls(
    calls: Sequence[Item], toolset: Toolset, pause: Pause = nullcontext
) -> AsyncGenerator[tuple[Item, ToolResult], None]:
    """Run `calls` in parallel; yield each with its result, in the order of the calls.

    The order is kept because a host that stores results as they arrive would send them
    in another order in the next request. A check may take some milliseconds, so others
    run between two. When the time is over, all calls are cancelled at once, and no
    waiting one starts. Closing the generator cancels running calls.
    """
    batch = _Batch(toolset, pause)
    started: list[_StartedCall] = []
    try:
        for item in calls:
            started.append(batch.start(item))
            await asyncio.sleep(0)
        for call in started:
            await batch.wait(call)
            if not call.task.done():
                _cancel(other for other in started if not other.has_own_time)
            yield call.item, _result_of(call, toolset.limits)
    finally:
        _cancel(started)


def _result_of(call: _StartedCall, limits: CallLimits) -> ToolResult:
    """Return the result of a call; an error if the time of the batch is used up."""
    if call.task.done() and not call.task.cancelled():
        return call.task.result()
    why = f"was stopped: the tools took over {limits.batch_seconds:g} s."
    return tool_error(f"{_name(call.item)} {why}")


def _cancel(calls: Iterable[_StartedCall]) -> None:
    for call in calls:
        call.task.cancel()


class _Batch:
    """The calls of a round.

    One question is put to the person at a time, under the lock `_asking`. Meanwhile the
    time of the batch stops: `_end`, its end by the loop's clock, moves ahead.
    """

    def __init__(self, toolset: Toolset, pause: Pause) -> None:
        self._toolset = toolset
        self._pause = pause
        self._slots = asyncio.Semaphore(toolset.limits.at_once)
        self._asking = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._end = self._loop.time() + toolset.limits.batch_seconds

    def start(self, item: Item) -> _StartedCall:
        """Check a call and start its task."""
        checked = _check_call(item, self._toolset.tools)
        task = asyncio.create_task(self.answer(item["call_id"], checked))
        has_own_time = False
        if isinstance(checked, _ReadyCall):
            own_seconds = self._toolset.limits.own_seconds(checked.name)
            has_own_time = checked.kind != "limited" or bool(own_seconds)
        return _StartedCall(item, task, has_own_time)

    async def wait(self, call: _StartedCall) -> None:
        """Wait until a call is done or the time of the batch is used up."""
        task = call.task
        if call.has_own_time:
            await asyncio.wait([task])
        while not task.done():
            seconds_left = self._end - self._loop.time()
            if seconds_left > 0:
                await asyncio.wait([task], timeout=seconds_left)
            elif self._asking.locked():
                # A person is asked: wait for the answer, which moves the end.
                async with self._asking:
                    continue
            else:
                return

    async def answer(self, call_id: str, call: _ReadyCall | ToolResult) -> ToolResult:
        """Return the result of a call: ask a person if a rule says so, then run it."""
        if isinstance(call, ToolResult):
            return call
        approver = self._toolset.approver
        asks_person = approver.rule_for(call.name, call.via) == "ask"
        question_turn = self._asking if asks_person else nullcontext()
        async with question_turn:
            began = self._loop.time()
            try:
                with self._pause():
                    refusal = await approver.refusal(
                        call_id, call.name, call.arguments, call.via
                    )
            finally:
                self._end += self._loop.time() - began
        if refusal is not None:
            return tool_error(refusal)
        match call.kind:
            case "limited":
                async with self._slots:
                    return await _call_tool(call, self._toolset)
            case "question":
                with self._pause():
                    return await _call_tool(call, self._toolset)
            case "task":
                return await _call_tool(call, self._toolset)


def _check_call(call: Item, tools: CallableTools) -> _ReadyCall | ToolResult:
    """Return the call that will run, or the error for the model.

    If a tool passes calls on, its own arguments are checked, then those of the tool
    that it names.
    """
    name = _name(call)
    try:
        arguments = _arguments(call)
    except ValueError:
        why = "its arguments are not valid JSON. Send them again, whole."
        return tool_error(f"{name} was not called: {why}")
    called = _ready_call(name, arguments, tools)
    if isinstance(called, ToolResult):
        return called
    resolved = tools.resolve_call(name, called.arguments)
    if resolved is None:
        return tool_error(f"{name} was not called: it names no tool to call.")
    own_name, own_arguments = resolved
    if own_arguments is called.arguments:
        return called._replace(name=own_name, via=name)
    passed_on = _ready_call(own_name, own_arguments, tools)
    if isinstance(passed_on, ToolResult):
        return passed_on
    return passed_on._replace(via=name)


def _ready_call(
    name: str, arguments: object, tools: CallableTools
) -> _ReadyCall | ToolResult:
    """Return a call whose arguments match the tool's schema, or the error for the model."""
    schema = tools.parameters(name)
    if schema is None:
        return tool_error(f"There is no tool named {name}. Use one that is offered.")
    checked, complaint = check_arguments(arguments, schema)
    if complaint is not None:
        return tool_error(f"{name} was not called: {complaint}")
    return _ReadyCall(name, checked, tools.call_kind(name))


def _arguments(call: Item) -> object:
    """Return the arguments of a call; raises ValueError for invalid JSON."""
    if item_type(call) == "custom_tool_call":
        return {"input": call.get("input") or ""}
    text = call.get("arguments")
    if not isinstance(text, str) or not text.strip():
        return {}
    return load_json(text)


async def _call_tool(ready: _ReadyCall, toolset: Toolset) -> ToolResult:
    """Return the result of a tool.

    A tool that raises SystemExit, or cancels itself, has failed and does not end the
    run. Only the cancellation of our own task does.
    """
    name = ready.name
    limits = toolset.limits
    seconds = limits.own_seconds(name) or limits.seconds
    timeout = seconds if ready.kind == "limited" else None
    try:
        async with asyncio.timeout(timeout) as scope:
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
        return ToolResult(toolset.texts.failed.replace("{tool}", name), failed=True)


def _cap_output(output: Any, characters: int) -> Any:
    """Return the output with at most so many `characters` of each of its texts.

    A longer text keeps its beginning and its end, with a note between them.
    """
    if isinstance(output, list):
        return [_cap_part(part, characters) for part in output]
    if not isinstance(output, str) or len(output) <= characters:
        return output
    half = characters // 2
    note = f"\n[... {len(output) - 2 * half} characters are cut here ...]\n"
    return output[:half] + note + output[len(output) - half :]


def _cap_part(part: Item, characters: int) -> Item:
    """Return a part of an output, its text capped."""
    if "text" not in part:
        return part
    return {**part, "text": _cap_output(part["text"], characters)}


def _name(call: Item) -> str:
    return str(call.get("name") or "")


# --------------------------------------------------------------------------------------
# openai_responses.long_work
#
# Work on large chats, which must not hold up the server's event loop.
# --------------------------------------------------------------------------------------


_LARGE = 3000
"""Entries from which on the work takes so long that others would notice it."""
_Done = TypeVar("_Done")


async def run_work(size: int, work: Callable[[], _Done]) -> _Done:
    """Return the result of `work` on a chat with so many entries.

    A large chat takes a thread, so that the server answers others meanwhile.
    """
    if size > _LARGE:
        return await asyncio.to_thread(work)
    return work()


# --------------------------------------------------------------------------------------
# openai_responses.requests.containers
#
# The code container of a request, and the uploaded files that it begins with.
# --------------------------------------------------------------------------------------


MAX_CONTAINER_FILES = 50
"""The API takes no more (guide "Code Interpreter")."""

_CODE = "code_interpreter"


def has_new_container(tools: Sequence[Item]) -> bool:
    """Say whether code runs in a container that the API opens by itself."""
    return any(_opens_container(tool) for tool in tools)


def with_container_files(
    request: ResponsesRequest, file_ids: Sequence[str]
) -> ResponsesRequest:
    """Return a request whose new container begins with uploaded files.

    The tool stands in the request, or in an item of a later turn.
    """
    if not file_ids:
        return request
    tools = [_with_files(tool, file_ids) for tool in request.tools or ()]
    items = [_added_with_files(item, file_ids) for item in request.input]
    return request.model_copy(update={"tools": tools or None, "input": items})


def _opens_container(tool: Item) -> bool:
    container = as_mapping(tool.get("container"))
    return tool.get("type") == _CODE and container.get("type") == "auto"


def _with_files(tool: Item, file_ids: Sequence[str]) -> Item:
    if not _opens_container(tool):
        return tool
    return {**tool, "container": {**tool["container"], "file_ids": list(file_ids)}}


def _added_with_files(item: Item, file_ids: Sequence[str]) -> Item:
    if item_type(item) != ADDED_TOOLS:
        return item
    return {**item, "tools": [_with_files(tool, file_ids) for tool in item["tools"]]}


# --------------------------------------------------------------------------------------
# openai_responses.requests.turns
#
# What the turns of a chat change: tools, effort, text format. The chat only grows.
#
# A request has the tools, the effort and the format of the first turn that its model
# answered. What a later turn changed stands as an item in front of its question, now and
# in all later requests. So each request begins with the last one, for the prompt cache
# and for the newest models, which drop reasoning whose beginning changed
# (docs/reference/responses-api.md, "Changed beginnings").
# --------------------------------------------------------------------------------------


_MAX_STORED_TURN = 200_000
"""Characters: a chat's row is read and written whole."""
_MAX_UNPACKED_TURN = 900_000
"""Bytes of JSON. The tools and the format of a request are limited to 800,000. What
repeats itself packs into a thousandth, and each later question sends it unpacked."""
_MAX_DECLARED_TOOLS = 128
"""Of more the API refuses the whole request: `array_above_max_length` (Tools4AI 16)."""
_SETTINGS = (("reasoning", "effort"), ("text", "format"))
"""What a `configuration_update` can change (types of openai-python 3.54.0)."""
_UNSTATED = (None, {"type": "json_object"})
"""Values that it cannot state: its format is a text or a `json_schema`."""


class Turn(NamedTuple):
    """What one turn changed for its model, as it is stored."""

    model: str
    items: Sequence[Item] = ()
    """They stand in front of its question."""
    base: Item | None = None
    """The fields of the request if the chat begins here; then no earlier turn holds."""

    def wire(self) -> str:
        """Return the stored form; empty if it is too long.

        It is compressed on its own: the length of text compressed together with
        instructions would tell about them.
        """
        text = json.dumps(self).encode()
        if len(text) > _MAX_UNPACKED_TURN:
            return ""
        packed = b64encode(zlib.compress(text)).decode()
        return packed if len(packed) <= _MAX_STORED_TURN else ""


def read_turn(wire: str, unpacked_left: JsonBudget) -> Turn | None:
    """Return a stored turn; None for one whose tools lie in namespaces.

    Earlier versions declared many tools that way. Such a chat resets, with the
    tools as they are declared now. Raises JsonTooLarge for one that unpacks to more than
    is stored, or than is left for its chat.
    """
    unpacker = zlib.decompressobj()
    text = unpacker.decompress(b64decode(wire), _MAX_UNPACKED_TURN)
    if unpacker.unconsumed_tail:
        raise JsonTooLarge
    unpacked_left.spend(len(text))
    turn = Turn(*json.loads(text))
    tools = (turn.base or {}).get("tools", ())
    has_namespaces = any(tool.get("type") == "namespace" for tool in tools)
    return None if has_namespaces else turn


def record_turn(
    request: ResponsesRequest, earlier: Sequence[Turn], default_effort: str | None
) -> Turn | None:
    """Return what a request changes after the `earlier` turns of its model.

    None for what is too long to be stored.

    The chat resets with what cannot be appended: another schema of a tool, more
    tools than fit, an effort or a format that no update can state. Remote servers are
    not stored, because their fields can be secret.
    """
    tools = [tool for tool in request.tools or () if tool["type"] != "mcp"]
    base = {key: as_mapping(getattr(request, key)) for key, _ in _SETTINGS}
    begins = Turn(request.model, base={"tools": tools, **base})
    turn: Turn | None = None
    if earlier:
        turn = _next_turn(begins, earlier, default_effort)
    if turn is None:
        turn = begins
    return turn if turn.wire() else None


def _next_turn(
    asked: Turn, earlier: Sequence[Turn], default_effort: str | None
) -> Turn | None:
    """Return what differs from the `earlier` turns; None if items cannot state it."""
    fields = asked.base or {}
    base = earlier[0].base or {}
    items = [item for turn in earlier for item in turn.items]
    held = lower_payload({**base, "input": items}, APPENDED)
    new = _new_tools(held.get("tools", ()), fields["tools"])
    update = _changed_settings(held, fields, default_effort)
    if new is None or not _can_be_stated(update):
        return None
    stated: list[Item] = []
    if new:
        stated.append({"type": ADDED_TOOLS, "role": "developer", "tools": new})
    if update:
        stated.append({"type": CONFIGURATION, **update})
    return Turn(asked.model, stated)


def _can_be_stated(update: Item) -> bool:
    """Say whether an item can state the effort and the format of an update."""
    for settings in update.values():
        for value in settings.values():
            if value in _UNSTATED:
                return False
    return True


def _new_tools(held: Sequence[Item], asked: Sequence[Item]) -> list[Item] | None:
    """Return the tools that are not `held`; None if items cannot state the others."""
    known = {tool_identity(tool): tool for tool in held}
    new = [tool for tool in asked if tool_identity(tool) not in known]
    for tool in asked:
        old = known.get(tool_identity(tool))
        if old and _schema(old) != _schema(tool):
            return None
    return new if len(known) + len(new) <= _MAX_DECLARED_TOOLS else None


def _changed_settings(held: Item, asked: Item, default_effort: str | None) -> Item:
    """Return the effort and the format that are not those that are `held`."""
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
    """Return a request with the fields of the first turn, and the items that stand in
    front of the question of each.

    `turns` are those of its model from the last one that begins; `kinds` are the types
    of items that may be appended. In pro mode the configuration stays in the request.
    """
    # "The 'configuration_update' item type is not supported with pro or tournament
    # models." (OpenRouter, of gpt-6-astra)
    if as_mapping(request.reasoning).get("mode") == "pro":
        kinds = kinds - {CONFIGURATION}
    base = next(iter(turns.values())).base or {}
    items: dict[str, list[Item]] = {}
    added: list[Item] = []
    for name, turn in turns.items():
        items[name] = [item for item in turn.items if item_type(item) in kinds]
        added += items[name]
    fields: dict[str, Any] = {}
    if CONFIGURATION in kinds:
        fields = _first_settings(request, base)
    if ADDED_TOOLS in kinds:
        fields |= _base_tools(request, base, added)
    return request.model_copy(update=fields), items


def _base_tools(
    request: ResponsesRequest, base: Item, added: Sequence[Item]
) -> dict[str, Any]:
    """Return the tools of the `base`, and a choice among those that are still offered."""
    offered = request.tools or ()
    # A server's fields may be secret, so turns do not store it (`record_turn`).
    servers = [tool for tool in offered if tool["type"] == "mcp"]
    tools = [*servers, *base["tools"]] or None
    declared = declared_tools({"tools": tools, "input": added})
    choice = _allow(request.tool_choice, offered, declared)
    return {"tools": tools, "tool_choice": choice}


def _first_settings(request: ResponsesRequest, base: Item) -> dict[str, Any]:
    """Return the fields of a request with the effort and the format of the `base`.

    Both efforts decide whether sampling is taken.
    """
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
    """Return a choice that leaves out what is declared and not offered any more."""
    # A tool that is not offered any more stays declared: without it the beginning would
    # change. `tool_choice` is no part of the beginning (pydantic-ai 2.68.0, measured).
    identities = {tool_identity(tool) for tool in offered}
    left = [tool for tool in declared if tool_identity(tool) in identities]
    if len(left) == len(declared) or choice not in (None, "auto", "required"):
        return choice
    if not left:
        return "none"
    tools = [{key: tool[key] for key in tool if key in _CHOICE_KEYS} for tool in left]
    return {"type": "allowed_tools", "mode": choice or "auto", "tools": tools}


_CHOICE_KEYS = ("type", "name", "server_label")
"""What names a tool in `allowed_tools`."""


def _schema(tool: Item) -> Item:
    """Return what must stay the same of a declared tool: all but its description."""
    return {**tool, "description": None}


# --------------------------------------------------------------------------------------
# openai_responses.audit
#
# The lines of the audit log: JSON, without any text of a chat.
#
# The fields of an event are always in its line, null where nothing valid is known. No
# line gets a key, and all read only names, kinds and numbers.
# --------------------------------------------------------------------------------------


_OPENAI_HOST = "api.openai.com"

_API_WORD = re.compile(r"[a-z][a-z_.]{0,63}(?:\[\d{1,5}\][a-z_.]{0,64}){0,4}")
_MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}")
_LINE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_HOST_NAME = re.compile(r"[a-z0-9._:-]{1,253}")
_FORMATS = ("text", "json_object", "json_schema")


class AuditedRequest(NamedTuple):
    """A request to `host`, and the lines about it."""

    payload: JsonObject
    host: str
    request_id: str

    def request_line(self) -> str:
        """Return the line before the request is sent."""
        text_format = as_mapping(self.payload.get("text", {}).get("format"))
        response_format = text_format.get("type", "text")
        if response_format not in _FORMATS:
            response_format = None
        items = self.payload["input"]
        messages = [item for item in items if item_type(item) == "message"]
        return self._line(
            "request",
            response_format=response_format,
            stream=self.payload.get("stream", False),
            tool_count=len(self.payload.get("tools", ())),
            input_message_count=len(messages),
        )

    def success_line(self, response_model: object) -> str:
        """Return the line for an answer, complete or not."""
        model = _fitting(_MODEL_NAME, response_model)
        return self._line("success", response_model=model, status_code=200)

    def error_line(self, error: ApiError, status: int | None) -> str:
        """Return the line for a failure; `status` is None if no answer came."""
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
    """Return `value` if it has the expected form and looks like no secret."""
    if not isinstance(value, str) or not shape.fullmatch(value):
        return None
    looks_secret = redact(value) != value
    return None if looks_secret else value


# --------------------------------------------------------------------------------------
# openai_responses.loop.trials
#
# Follows the repairs of a run until the server accepts a request.
# --------------------------------------------------------------------------------------


class RunTrials:
    """The repairs on trial in a run.

    `confirmed` holds those that helped, in their order, over all responses of the run;
    `_open` those of a request that the server has not accepted yet.
    """

    def __init__(self) -> None:
        """Begin a run."""
        self.confirmed: list[Trial] = []
        self._open: list[Trial] = []

    def note(self, event: RunEvent) -> list[Trial]:
        """Note an event; return the trials that it shows to have helped."""
        if isinstance(event, Status):
            if event.trial:
                self._open.append(event.trial)
            return []
        if not self._open or not _is_of_an_answer(event):
            return []
        helped = trials_that_helped(self._open)
        self.confirmed += helped
        self._open = []
        return helped


def _is_of_an_answer(event: RunEvent) -> bool:
    """Say whether the server has accepted the request.

    A thought may begin in an answer that ends as a refusal.
    """
    if isinstance(event, RunDone):
        return event.ending.kind in ("completed", "incomplete")
    return not isinstance(event, ItemAdded)


# --------------------------------------------------------------------------------------
# openai_responses.loop.run
#
# A whole request as a stream of run events: response, calls, response.
#
# The loop knows no host: it gets frozen inputs and reports events. The agents and the
# pipe run the same loop, round by round:
#
#     a provider answers the request        loop/attempts.py: the Responses API
#     a judge decides about its calls       refused, left to the host, or made here
#     the calls that are made here run      loop/tools.py
#     their outputs are added to the input  that is the next request
#
# At a limit of the budget the calls are refused, and the model answers once more without
# tools. A run that ends with calls for the host, or with a question to a person, is
# continued by another run, which begins with the open calls.
# --------------------------------------------------------------------------------------


_IS_REPEATED = "was not run: the same call_id came twice in this response."
_INTERRUPTED = "was not run: the answer that requested it was interrupted."


class Provider(Protocol):
    """A model that answers one request after another."""

    def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, its items numbered from `first_index`, then the answer."""

    def paused(self) -> AbstractContextManager[None]:
        """Count no time while tools run or people decide."""


class RoundStarted(NamedTuple):
    """A response is requested; `may_call` says whether the model may call tools."""

    number: int
    may_call: bool


class RoundDone(NamedTuple):
    """A response is complete, and what happens to its calls is decided.

    `items` are its finished ones with their indexes; none in a round that only answers
    the calls of an earlier run. The outputs of the calls follow.
    """

    number: int
    items: tuple[tuple[int, Item], ...]
    judgment: Judgment
    usage: Usage | None
    is_failure: bool = False


RoundEvent = RoundStarted | RoundDone
RoundEvents = AsyncGenerator[RunEvent | RoundEvent, None]


async def run(
    request: ResponsesRequest,
    endpoint: Endpoint,
    connections: Connections,
    limits: Limits,
    toolset: Toolset | None = None,
) -> RunEvents:
    """Send `request` and report what happens; ends with exactly one RunDone.

    With a `toolset` that runs them, calls are answered here; otherwise they are left
    open for the caller, unless their response was interrupted. A refusal is an ending,
    not an exception. Cancelling the run, or closing the generator, closes the
    connection and cancels the tools.
    """
    attempts = Attempts(endpoint, connections, limits)
    async with aclosing(run_rounds(request, attempts, toolset)) as events:
        async for event in events:
            if not isinstance(event, RoundEvent):
                yield event


async def run_rounds(
    request: ResponsesRequest,
    provider: Provider,
    toolset: Toolset | None = None,
    spending: Spending | None = None,
    open_calls: Sequence[Item] = (),
) -> RoundEvents:
    """Let `provider` answer `request`; report its rounds as well.

    `spending` says what the run may take and has taken; without it the budget of the
    toolset counts from here. The run begins with `open_calls`, which an earlier run of
    the same answer has left; they are the last items of the request's input.
    """
    if spending is None:
        budget = toolset.budget if toolset else Budget()
        spending = Spending(budget)
    rounds = _Rounds(request, provider, toolset, spending)
    if toolset and open_calls:
        async with aclosing(rounds.resume(open_calls, toolset)) as events:
            async for event in events:
                yield event
    while rounds.request is not None:
        async with aclosing(rounds.respond(rounds.request)) as events:
            async for event in events:
                yield event
        async with aclosing(rounds.answer_calls()) as events:
            async for event in events:
                yield event
    yield rounds.build_end()


class _Rounds:
    """The rounds of a run; each is a response and the outputs of its calls.

    `request` is the next one, None at the end. `_answer` is the last response,
    `_inputs` are the input items that answer its calls, `_may_call` says whether it was
    allowed to call tools, and `_had_output` whether the run had items before it.
    `_output` and `_usages` are those of the whole run. `_held` are events of calls that
    wait for the judgment. `_was_limited` says whether a limit has kept a call from being
    made.
    """

    def __init__(
        self,
        request: ResponsesRequest,
        provider: Provider,
        toolset: Toolset | None,
        spending: Spending,
    ) -> None:
        self.request: ResponsesRequest | None = request
        self._provider = provider
        self._toolset = toolset
        self._spending = spending
        self._answer = ModelAnswer(COMPLETED, request)
        self._inputs: list[Item] = []
        self._output: list[Item] = []
        self._next_index = 0
        self._usages: list[Usage] = []
        self._had_output = False
        self._may_call = True
        self._was_limited = False
        self._held: list[RunEvent] = []

    async def respond(self, request: ResponsesRequest) -> RoundEvents:
        """Request a response; yield its events, but hold back calls for the judge.

        At a limit the model may call nothing. The tools stay in the request, because
        the prompt cache begins with them.
        """
        self.request = None
        number = self._spending.begin_round()
        limit = self._spending.limit_of_round(number)
        self._may_call = limit is None and not self._was_limited
        if request.tools and not self._may_call:
            request = request.model_copy(update={"tool_choice": "none"})
        may_call = bool(request.tools) and self._may_call
        yield RoundStarted(number, may_call)
        self._had_output = bool(self._output)
        holds_calls = may_call and self._judge_sees_calls_first()
        generated = self._provider.generate(request, self._next_index)
        async with aclosing(generated) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    self._take_answer(part)
                elif holds_calls and (self._held or _begins_call(part)):
                    self._held.append(part)
                else:
                    yield part

    def _judge_sees_calls_first(self) -> bool:
        """Say whether calls are shown only after the judgment."""
        judge = self._toolset.judge if self._toolset else None
        return judge is not None and judge.holds_calls

    def _take_answer(self, answer: ModelAnswer) -> None:
        """Count a response, and add its items to the output."""
        self._answer = answer
        self._inputs = []
        self._usages += answer.usages
        self._spending.add_response(answer.usages, answer.last_usage)
        self._output += answer.output
        for index, _ in answer.items:
            self._next_index = max(self._next_index, index + 1)

    async def answer_calls(self) -> RoundEvents:
        """Answer the calls of the last response; set the next request if there is one."""
        output = self._answer.output
        calls = [item for item in output if is_call(item)]
        approvals = [item for item in output if is_approval_request(item)]
        has_questions = bool(calls or approvals)
        is_failure = self._answer.ending.is_failure
        if self._toolset is None or is_failure or not has_questions:
            for event in self._end_unanswered(calls):
                yield event
            return
        with self._provider.paused():
            answers = self._answer_all(calls, approvals, self._toolset)
            async with aclosing(answers) as events:
                async for event in events:
                    yield event

    def _end_unanswered(self, calls: Sequence[Item]) -> Iterator[RunEvent | RoundEvent]:
        """End a response to which the run gives no answer.

        The calls of an interrupted one get outputs: nobody runs them, and the API
        refuses a call without an output in the next turn.
        """
        yield from self._release(None)
        if self._answer.ending.is_failure:
            for call in calls:
                yield self._add_output(call, _refuse(call, _INTERRUPTED))
        yield self._end_round(Judgment())

    async def _answer_all(
        self, calls: Sequence[Item], approvals: Sequence[Item], toolset: Toolset
    ) -> RoundEvents:
        """Answer approval requests, and the calls that are not left to the host.

        The API accepts the answer to an approval request only with the reasoning before
        that request, so it is sent again even where the toolset carries none.
        """
        limit = self._spending.limit_of_calls(self._spending.rounds)
        judgment = await self._judge(calls, limit, toolset)
        for event in self._release(judgment.question):
            yield event
        yield self._end_round(judgment)
        if judgment.question:
            return
        for request in approvals:
            with self._spending.pause():
                refusal = await _remote_refusal(request, toolset, limit)
            for event in self._decide(request, refusal):
                yield event
        async with aclosing(self._make_calls(judgment, toolset)) as outputs:
            async for output in outputs:
                yield output
        reasoning = toolset.carries_reasoning or bool(approvals)
        received = replay_output(self._answer.output, with_reasoning=reasoning)
        self._continue(judgment, received)

    async def resume(self, calls: Sequence[Item], toolset: Toolset) -> RoundEvents:
        """Answer the calls that an earlier run has left; the host has seen none of them.

        They were not shown while a person was asked. With another `question` they
        still are not.
        """
        self.request = None
        with self._provider.paused():
            limit = self._spending.limit_of_calls(self._spending.rounds)
            judgment = await self._judge(calls, limit, toolset)
            shown_calls = [judgment.question] if judgment.question else calls
            for call in shown_calls:
                for event in self._show_call(call):
                    yield event
            yield RoundDone(self._spending.rounds, (), judgment, None)
            async with aclosing(self._make_calls(judgment, toolset)) as outputs:
                async for output in outputs:
                    yield output
        self._continue(judgment, ())

    async def _judge(
        self, calls: Sequence[Item], limit: SpentLimit | None, toolset: Toolset
    ) -> Judgment:
        """Return what happens to the calls; the judge decides within the budget."""
        self._was_limited = self._was_limited or limit is not None
        if not toolset.runs_calls:
            return Judgment([Verdict(call, is_left=True) for call in calls])
        verdicts = self._apply_budget(calls, limit, toolset.texts)
        allowed = [verdict.call for verdict in verdicts if verdict.is_made]
        if toolset.judge is None or not allowed:
            return Judgment(verdicts)
        with self._spending.pause():  # a judge takes time only if it asks a person
            judgment = await toolset.judge.judge(allowed)
        judged = {verdict.call["call_id"]: verdict for verdict in judgment.verdicts}
        verdicts = [
            judged[verdict.call["call_id"]] if verdict.is_made else verdict
            for verdict in verdicts
        ]
        return Judgment(verdicts, judgment.question)

    def _apply_budget(
        self, calls: Sequence[Item], limit: SpentLimit | None, texts: CallTexts
    ) -> list[Verdict]:
        """Refuse calls that came twice, and those that the budget does not allow."""
        calls_left = 0 if limit else self._spending.calls_left
        verdicts: list[Verdict] = []
        allowed_ids: set[str] = set()
        for call in calls:
            refusal: ToolResult | None = None
            if call["call_id"] in allowed_ids:
                refusal = _refuse(call, _IS_REPEATED)
            elif len(allowed_ids) < calls_left:
                allowed_ids.add(call["call_id"])
            else:
                refusal = texts.refuse(call, limit or "calls")
                self._was_limited = True
            verdicts.append(Verdict(call, refusal))
        return verdicts

    def _release(self, question: Item | None) -> Iterator[RunEvent]:
        """Yield what was held back; a question takes the place of the calls."""
        held = self._held
        self._held = []
        if question is None:
            yield from held
            return
        calls = {index for index, item in self._answer.items if is_call(item)}
        ends: list[RunEvent] = []
        for event in held:
            if isinstance(event, ResponseDone):
                ends.append(event)
            elif not (isinstance(event, ItemEvent) and event.output_index in calls):
                yield event
        yield from self._show_call(question)
        yield from ends

    def _end_round(self, judgment: Judgment) -> RoundDone:
        """Return the end of the last response."""
        answer = self._answer
        return RoundDone(
            number=self._spending.rounds,
            items=answer.items,
            judgment=judgment,
            usage=reduce(add_usage, answer.usages, None),
            is_failure=answer.ending.is_failure,
        )

    async def _make_calls(
        self, judgment: Judgment, toolset: Toolset
    ) -> AsyncGenerator[ToolOutput, None]:
        """Make the calls that run here; yield all outputs in the order of the calls.

        While a person is asked, no call is made.
        """
        if judgment.question:
            return
        self._spending.calls += len(judgment.verdicts)
        made = [verdict.call for verdict in judgment.verdicts if verdict.is_made]
        timed = toolset._replace(limits=self._limit_seconds(toolset.limits))
        calls = run_calls(made, timed, self._spending.pause)
        async with aclosing(calls) as results:
            for verdict in judgment.verdicts:
                if verdict.refusal is not None:
                    yield self._add_output(verdict.call, verdict.refusal)
                elif verdict.is_made:
                    _, result = await anext(results)
                    yield self._add_output(verdict.call, result)

    def _limit_seconds(self, limits: CallLimits) -> CallLimits:
        """Return the limits of calls within the time that the budget leaves."""
        seconds_left = self._spending.seconds_left
        if seconds_left is None:
            return limits
        seconds = min(limits.batch_seconds, seconds_left)
        return limits._replace(batch_seconds=seconds)

    def _continue(self, judgment: Judgment, received: Sequence[Item]) -> None:
        """Set the next request, unless the run ends here or the host continues it.

        It is the last request with its output and the outputs of its calls.
        """
        if judgment.is_open or not self._may_call or self._spending.stopped:
            return
        items = [*received, *self._inputs]
        self.request = next_request(self._answer.request, items)

    def _show_call(self, call: Item) -> Iterator[RunEvent]:
        """Yield the events of a call that no response of this run contains."""
        index = self._add_item(call)
        yield ItemAdded(index, call)
        yield ItemDone(index, call)

    def _add_output(self, call: Item, result: ToolResult) -> ToolOutput:
        """Add the output of a call to the run, and report it."""
        item = output_item(call, result)
        self._inputs.append(item)
        return ToolOutput(self._add_item(item), item, result.failed, result.card)

    def _add_item(self, item: Item) -> int:
        """Add an item to the output of the run; return its index."""
        self._output.append(item)
        index = self._next_index
        self._next_index += 1
        return index

    def _decide(self, request: Item, refusal: str | None) -> Iterator[RunEvent]:
        """Approve a remote call, which will appear itself, or show that it is denied."""
        response: Item = {
            "type": "mcp_approval_response",
            "approval_request_id": request.get("id"),
            "approve": refusal is None,
        }
        if refusal is None:
            self._inputs.append(response)
            self._add_item(response)
            return
        self._inputs.append({**response, "reason": refusal})
        call, output = refused_pair(request, refusal)
        yield from self._show_call({**call, "id": f"fc_{call['call_id']}"})
        yield ToolOutput(self._add_item(output), output, failed=True)

    def build_end(self) -> RunDone:
        """Return the end of the run: its own, or that of a task which was stopped."""
        answer = self._answer
        ending = answer.ending
        trace = answer.trace
        stopped = self._spending.stopped
        if stopped:
            ending = stopped.ending
            trace = stopped.trace
        has_text = self._had_output or answer.has_shown
        return RunDone(
            ending=ending if has_text else ending.without_text(),
            usage=reduce(add_usage, self._usages, None),
            last_usage=answer.last_usage,
            output=tuple(self._output),
            trace=trace,
            usages=tuple(self._usages),
        )


def _begins_call(event: RunEvent) -> bool:
    """Say whether an event is the first one of a call."""
    return isinstance(event, ItemAdded) and is_call(event.item)


def _refuse(call: Item, why: str) -> ToolResult:
    """Return the result of a call that is not made."""
    return tool_error(f"{call.get('name')} {why}")


def next_request(request: ResponsesRequest, items: Iterable[Item]) -> ResponsesRequest:
    """Return the request that follows `request`: it has the new `items` in its input.

    A tool that had to be called has been called, so it is not required again.
    """
    whole = drop_settled_approvals([*request.input, *items])
    choice = next_tool_choice(request.tool_choice)
    changed = {"input": since_compaction(whole), "tool_choice": choice}
    return request.model_copy(update=changed)


async def _remote_refusal(
    request: Item, toolset: Toolset, limit: SpentLimit | None
) -> str | None:
    """Return why a remote call is denied, None if it is approved.

    A server of OpenAI's MCP tool asked for the approval, so without a rule a person
    decides, unless the server asks only because there are rules.
    """
    name = remote_name(request)
    if limit:
        return toolset.texts.describe(name, limit).removeprefix("Error: ")
    text = str(request.get("arguments") or "{}")
    arguments = parse_json_object(text)
    if arguments is None:  # the person who decides sees what is not JSON as it is
        arguments = {"arguments": text}
    default_rule = toolset.approver.remote_default(request)
    approver = replace(toolset.approver, default_rule=default_rule)
    return await approver.refusal(
        call_id=str(request.get("id")),
        name=name,
        arguments=arguments,
        via=str(request.get("name")),
    )


# --------------------------------------------------------------------------------------
# owui_chat.events
#
# The events of an answer: those of its run, with what is shown and stored of it.
#
# `citations` puts shown texts and sources into the events of a run, `storage.recorder`
# adds markers and records, and `render.native` shows the result.
# --------------------------------------------------------------------------------------


class SourceCited(NamedTuple):
    """A source to list below the answer, in the host's form."""

    source: JsonObject


class Marker(NamedTuple):
    """Text that names a record; it belongs to the event that follows.

    It stands before the text of a delta, behind commentary that ended, or alone at the
    end of the run.
    """

    text: str


class StoredRecord(NamedTuple):
    """A record to store in the answer's own output, as an item of it."""

    item: Item
    output_index: int | None = None
    """The item whose text follows the record, None for the end of the run."""


class TurnDetails(NamedTuple):
    """The entries of a response for the `reasoning_details` of its reasoning."""

    details: Sequence[Item]


CitedEvent = RunEvent | SourceCited
AnswerEvent = CitedEvent | Marker | StoredRecord | TurnDetails


# --------------------------------------------------------------------------------------
# owui_chat.code
#
# Code that the API ran, in the host's form.
#
# The host has a card for code and puts its content into the text of later turns
# (docs/reference/open-webui.md, "The stored output and the next turn"). There it takes
# the place of the stored item. The host runs only code with `attributes` (the same,
# "Rounds of tools").
#
# The page shows the code between two fences and does not show `output` (observed on
# 0.12.4). So the text of the code closes the first block and opens a second one with its
# output, which the page's last fence closes.
# --------------------------------------------------------------------------------------


CODE_CARD = "open_webui:code_interpreter"


def code_host_item(item: JsonObject) -> Item:
    """Return code and its output as the host's own item."""
    return {
        "type": CODE_CARD,
        "id": item.get("id"),
        "status": item.get("status") or "completed",
        "lang": "python",
        "code": replay_code(item, code_output(item)),
    }


def replay_code(item: JsonObject, printed: str) -> str:
    """Return code as the page shows it, with its output in a block below."""
    code = str(item.get("code") or "")
    output = printed.strip("\n").replace("```", "'''")
    if not output:
        return code
    return f"{code}\n```\n```text\n{output}"


def code_text(code: str) -> str:
    """Return what the host puts into the text of a later turn for code."""
    return f"<code_interpreter>\n{code}\n</code_interpreter>"


_MAX_DELETED = 20
"""Deleted cards of one run that are searched for: each time all texts are read."""
_BETWEEN = "\0"
"""Separates the texts of a run while they are searched as one."""


def take_out_code(
    texts: Sequence[str], items: Iterable[Item]
) -> tuple[list[str], list[Item]]:
    """Return the texts of a run without what the host inserted for code.

    It stands there in the order of the `items`. Return also the code that is not there:
    somebody has deleted its card.
    """
    whole = _BETWEEN.join(text.replace(_BETWEEN, "") for text in texts)
    pieces: list[str] = []
    deleted: list[Item] = []
    start = 0
    for item in items:
        code = code_host_item(item)["code"]
        if not code:
            continue
        inserted = code_text(code)
        position = -1
        if len(deleted) < _MAX_DELETED:
            position = whole.find(inserted, start)
        if position < 0:
            deleted.append(item)
        else:
            pieces.append(whole[start:position])
            start = position + len(inserted)
    pieces.append(whole[start:])
    remaining = "".join(pieces).split(_BETWEEN)
    cleaned = [
        before if before == after else after.strip()
        for before, after in zip(texts, remaining, strict=True)
    ]
    return cleaned, deleted


# --------------------------------------------------------------------------------------
# owui_chat.messages
#
# A chat body as Open WebUI sends it, parsed into its parts.
#
# Open WebUI sends messages in the form of Chat Completions, without their ids. Texts of
# assistant messages stay as they are here, markers included; `input.history` reads those.
# Which stored message each one is, is found from the chat's row, which holds them as a
# tree. They are paired from the end, because the host may have left out the oldest.
# --------------------------------------------------------------------------------------


class Attachment(NamedTuple):
    """A file at a message, as the host notes it there."""

    file_id: str
    name: str
    content_type: str
    is_image: bool
    """The host itself puts an image into the message."""


class StoredMessage(NamedTuple):
    """A message of the user as the chat's row holds it."""

    row: JsonObject
    answer_id: str
    """Names the answer to it in this branch of the chat; empty without one."""

    @property
    def words(self) -> str:
        """What the user wrote."""
        return as_text(self.row.get("content"))


class UserMessage(NamedTuple):
    """A message that no model wrote."""

    item: Item
    """An input message, ready to be sent."""
    stored: StoredMessage | None = None
    attachments: Sequence[Attachment] = ()

    @property
    def content(self) -> list[Item]:
        """The parts of the input message."""
        return self.item.get("content") or []

    def with_content(self, parts: Sequence[Item]) -> Self:
        """Return this message with other parts."""
        return self._replace(item={**self.item, "content": list(parts)})


class AssistantText(NamedTuple):
    """Text of an assistant's message, as the host gives it back."""

    text: str
    ulids: Sequence[str] = ()
    """Of records in front."""
    details: object = None
    """Of its records; unread."""


class ToolCall(NamedTuple):
    """A tool call of an assistant's message; the arguments of a custom one are a text."""

    call_id: str
    name: str
    arguments: str
    is_custom: bool = False


class ToolMessage(NamedTuple):
    """What a tool returned for a call: a text, or parts with images."""

    call_id: str
    output: str | list[Item]


ChatPart = UserMessage | AssistantText | ToolCall | ToolMessage


DETAILS_FIELD = "reasoning_details"


def parse_messages(
    messages: Sequence[JsonObject], detail: str = "auto"
) -> tuple[str, list[ChatPart]]:
    """Return the instructions and the parts of a chat.

    The system messages at the head are the instructions; later ones stay at their
    place. Images without a `detail` get this one. A chat that is longer than a request
    may be begins with `LEFT_OUT`, in the place of its oldest messages. Raises
    InvalidRequest for what the API cannot take.
    """
    if not all(isinstance(message, dict) for message in messages):
        raise InvalidRequest("A message of this chat is not an object with a role.")
    head = _leading_messages(messages, ("system",))
    texts = [_plain_text(message.get("content")) for message in head]
    instructions = "\n\n".join(text for text in texts if text)
    others = messages[len(head) :]
    newest = _newest(others)
    parts: list[ChatPart] = []
    if len(newest) < len(others):
        parts.append(_LEFT_OUT_PART)
    for message in newest:
        parts += _chat_parts(message, detail)
    return instructions, parts


def _leading_messages(
    messages: Sequence[JsonObject], roles: Sequence[str]
) -> list[JsonObject]:
    """Return the messages with one of these roles that stand in front of all others."""
    leading: list[JsonObject] = []
    for message in messages:
        if message.get("role") not in roles:
            break
        leading.append(message)
    return leading


_MAX_ENTRIES = 8192
"""The API takes 16,384 items (docs/reference/responses-api.md), and each message or call
may bring its reasoning."""
_ENTRIES_AT_ONCE = 2048
_INSTRUCTING = ("system", "developer")
LEFT_OUT = (
    "The oldest messages of this chat were left out: a request cannot contain them."
)
_LEFT_OUT_PART = UserMessage(text_message("developer", LEFT_OUT))


def cut_notice(parts: Sequence[ChatPart]) -> str:
    """Return `LEFT_OUT` if a chat, maybe behind its instructions, begins with it."""
    return LEFT_OUT if _LEFT_OUT_PART in parts[:2] else ""


def _newest(messages: Sequence[JsonObject]) -> Sequence[JsonObject]:
    """Return the messages that one request can hold, from a question on.

    Many go at once, so that the requests after it begin with the same bytes. What an
    administrator's filter put in front stays.
    """
    surplus = sum(_entry_count(message) for message in messages) - _MAX_ENTRIES
    if surplus <= 0:
        return messages
    steps = math.ceil(surplus / _ENTRIES_AT_ONCE)
    start = _first_question(messages, steps * _ENTRIES_AT_ONCE)
    first = _leading_messages(messages[:_ENTRIES_AT_ONCE], _INSTRUCTING)
    return [*first, *messages[max(start, len(first)) :]]


def _first_question(messages: Sequence[JsonObject], surplus: int) -> int:
    """Return the index of the first question behind `surplus` entries.

    Without one it is that of the last question, or of the last message.
    """
    last = len(messages) - 1
    entries_before = 0
    for index, message in enumerate(messages):
        if message.get("role") == "user":
            if entries_before >= surplus:
                return index
            last = index
        entries_before += _entry_count(message)
    return last


def _entry_count(message: JsonObject) -> int:
    """Return how many items of a request a message may become."""
    calls = as_list(message.get("tool_calls"))
    details = as_list(message.get(DETAILS_FIELD))
    return 1 + len(calls) + len(details)


def _chat_parts(message: JsonObject, detail: str) -> Iterator[ChatPart]:
    """Yield the parts of a message of the host; raises InvalidRequest."""
    content = message.get("content")
    match message.get("role"):
        case "user":
            yield UserMessage(_input_message("user", content, detail))
        case "system" | "developer":
            yield UserMessage(_input_message("developer", content, detail))
        case "assistant":
            text = _plain_text(content)
            details = message.get(DETAILS_FIELD)
            # An assistant message of calls alone has the text ""; its details may still
            # hold reasoning.
            if details or text.strip():
                yield AssistantText(text, details=details)
            yield from _calls(message.get("tool_calls"))
        case "tool":
            yield ToolMessage(str(message.get("tool_call_id") or ""), _output(content))
        case _:
            raise InvalidRequest(
                "A message of this chat has an unknown role. The roles are system, "
                "developer, user, assistant and tool."
            )


def _calls(tool_calls: object) -> Iterator[ToolCall]:
    for call in content_parts(tool_calls):
        call_id = str(call.get("id"))
        is_custom = "function" not in call
        called = call.get("custom" if is_custom else "function")
        if not isinstance(called, dict):
            continue
        name = str(called.get("name"))
        if is_custom:
            arguments = str(called.get("input") or "")
        else:
            arguments = str(called.get("arguments") or "{}")
        yield ToolCall(call_id, name, arguments, is_custom)


def _output(content: object) -> str | list[Item]:
    """Return a tool's output; an empty one is kept, because its call needs it."""
    if content is None:
        return ""
    if isinstance(content, list):
        return [_input_part(part, "auto") for part in content]
    return str(content)


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
            return _file_part(part.get("file"))
        case "input_file":
            return _file_part(part)
    raise InvalidRequest(
        "A message of this chat contains something other than text, an image or a file. "
        "The model cannot read it: remove it from the message and send it again."
    )


def _image_part(wire: JsonObject, default: str) -> Item:
    """Return an image; both forms keep the address and the detail."""
    inner = wire.get("image_url")
    chat_form = inner if isinstance(inner, Mapping) else {"url": inner}
    detail = chat_form.get("detail") or wire.get("detail") or default
    source = _without_null({"image_url": chat_form.get("url")})
    return {"type": "input_image", "detail": detail, **source}


_KEYS_OF_FILE = ("filename", "file_data", "file_url", "detail")


def _file_part(wire: object) -> Item:
    """Return a file.

    What costs (`prompt_cache_breakpoint`) or names a file at OpenAI (`file_id`) is not
    the caller's; a refusal would quote a key that the API does not have.
    """
    given = as_mapping(wire)
    kept = {key: given[key] for key in given if key in _KEYS_OF_FILE}
    return {"type": "input_file", **_without_null(kept)}


def _without_null(fields: Item) -> Item:
    return {key: value for key, value in fields.items() if value is not None}


def _plain_text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = [as_mapping(part) for part in as_list(content)]
    return "".join(as_text(part.get("text")) for part in parts)


def user_messages(parts: Sequence[ChatPart]) -> dict[int, UserMessage]:
    """Return the messages of the user by their places among the parts."""
    return {
        index: part
        for index, part in enumerate(parts)
        if isinstance(part, UserMessage) and part.item.get("role") == "user"
    }


def attach_stored_messages(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which each message of the user has its stored one.

    `rows` are the messages of the chat's row, by id. A developer's can only be made by
    somebody who edits the row: they are left out. Raises InvalidRequest if that is not
    possible. How to answer again is in the request alone.
    """
    users = user_messages(parts)
    if metadata.get("regeneration_message_id") and users:
        users.popitem()
    question_id = str(metadata.get("user_message_id") or "")
    answer_id = str(metadata.get("message_id") or "")
    hidden = Counter[str]()
    # Open WebUI removes the ids of messages from what it sends
    # (utils/middleware.py:1989), so only the order tells which stored message each one
    # is.
    branch = list(_stored_branch(rows, question_id, answer_id, hidden))
    result = list(parts)
    for position, stored in zip(reversed(users), branch, strict=False):
        result[position] = users[position]._replace(stored=stored)
    if not hidden:
        return result
    shown = [part for part in result if not _take_hidden(part, hidden)]
    if any(hidden.values()) or len(users) < len(branch):
        raise InvalidRequest(_HIDDEN_MESSAGE)
    return shown


def _take_hidden(part: ChatPart, hidden: Counter[str]) -> bool:
    """Say whether a part is one of the `hidden` texts of a developer, each once."""
    if not isinstance(part, UserMessage) or part.item["role"] != "developer":
        return False
    text = message_text(part.item)
    if not hidden[text]:
        return False
    hidden[text] -= 1
    return True


def stored_messages(parts: Sequence[ChatPart]) -> list[StoredMessage]:
    """Return the stored messages of a chat, in order."""
    stored: list[StoredMessage] = []
    for part in parts:
        if isinstance(part, UserMessage) and part.stored:
            stored.append(part.stored)
    return stored


_HIDDEN_MESSAGE = (
    "This chat contains a message that the page does not show and that could instruct "
    "the model. Nothing was sent: start a new chat."
)


def _stored_branch(
    rows: JsonObject, message_id: str, answer_id: str, hidden: Counter[str]
) -> Iterator[StoredMessage]:
    """Yield the user's messages from `message_id` back to the first.

    The texts of a developer are counted in `hidden`. The host merges those of the
    system into the instructions, where nobody can tell whose words they are.
    """
    for row_id, row in walk_branch(rows, message_id):
        match row.get("role"):
            case "user":
                yield StoredMessage(row, answer_id)
                answer_id = ""
            case "assistant":
                answer_id = row_id
            case "developer":
                hidden[_plain_text(row.get("content"))] += 1
            case _:
                raise InvalidRequest(_HIDDEN_MESSAGE)


def walk_branch(rows: JsonObject, tip: str) -> Iterator[tuple[str, JsonObject]]:
    """Yield the messages from `tip` back to the first, with their ids, each once."""
    seen = set[str]()
    while tip not in seen:
        row = rows.get(tip)
        if not isinstance(row, Mapping):
            return
        yield tip, row
        seen.add(tip)
        tip = str(row.get("parentId") or "")


# --------------------------------------------------------------------------------------
# owui_chat.storage.markers
#
# The marker grammar: a line in the text that names stored items and is invisible.
#
# `[openai_responses:v2:{type}:{ulid}]: #` is a link reference definition, which Markdown
# renders as nothing on a line of its own after a blank line. It is written with blank
# lines around it, whole in one chunk.
#
# The forms of earlier writers are read as well: ids of 16 or 26 characters in any case,
# with or without a query; v1 links; zero-width blocks. Lines of other pipes are removed
# from the text. White space around a marker comes from its writer or the host, not from
# the model: texts of a model that begin or end with white space are stored whole. See
# docs/reference/markers.md, "Our marker" and "Markers of earlier pipes".
# --------------------------------------------------------------------------------------


# A query has a limit, so that a hostile text is read in linear time.
# Ours has 26 characters and no query. Versions 0.8.15 to 0.9.15 of the earlier pipe had
# ids of 16, 1.0.0 also `?model=...`; the space and the `#` may have been lost.
_V2 = (
    r"\[openai_responses:v2:(?P<kind>[a-z0-9_]{2,30}):(?P<ulid>[0-9a-z]{16}"
    r"(?:[0-9a-z]{10})?)(?:\?[^\]\n]{0,500})?\]:[ \t]*\#?"
)
# 0.8.10 to 0.8.14: an empty link.
_V1 = (
    r"\[\]\(openai_responses:v1:(?P<kind1>[a-z0-9_]{2,30}):(?P<ulid1>[0-9a-z]{26})"
    r"(?:\?[^)\n]{0,500})?\)"
)
# 0.8.6 to 0.8.9: 26 characters of eight bits each, between two word joiners.
_ZERO_WIDTH = "\u2060(?P<bits>[\u200b\u200c]{208})\u2060"
# Lines of other pipes, whose items lie in tables of their own.
_FOREIGN = (
    r"(?m:^[^\S\n]*\[(?:[0-9A-Z]{20}|P:[a-z_]+|openrouter:v1:[^\]\n]+)\]:[ \t]*\#"
    r"[^\S\n]*$)"
)
_MARKER = re.compile(f"{_V2}|{_V1}|{_ZERO_WIDTH}|{_FOREIGN}", re.IGNORECASE)
_SIGNS = ("openai_responses:v", "\u2060", "]: #")
"""Without one a text has no marker, and a search for them is cheap."""
_MAX_PASSES = 5
_ZERO_BIT = "\u200b"
_ONE_BIT = "\u200c"
"""The digits of a zero-width block, eight for each character of an id."""


class MarkedText(NamedTuple):
    """A piece of text, and the id in the marker before it; empty without a marker."""

    ulid: str
    text: str


def format_marker(kind: str, ulid: str) -> str:
    """Return the marker as it is written to the text, blank lines included."""
    return f"\n\n[openai_responses:v2:{kind}:{ulid}]: #\n\n"


def split_at_markers(text: str, ulid: str = "") -> list[MarkedText]:
    """Return the pieces of `text`; at a marker they have no white space.

    `ulid` is in a marker before the text. Without a marker its ends are the model's own.
    """
    if not any(sign in text for sign in _SIGNS):
        return [MarkedText(ulid, text.strip() if ulid else text)]
    pieces: list[MarkedText] = []
    start = 0
    for match in _MARKER.finditer(text):
        pieces.append(MarkedText(ulid, text[start : match.start()].strip()))
        ulid = _marker_id(match)
        start = match.end()
    pieces.append(MarkedText(ulid, text[start:].strip()))
    return [piece for piece in pieces if piece.ulid or piece.text]


def strip_markers(text: str) -> str:
    """Return `text` as a person reads it.

    The search is repeated, because a line of another pipe may become a line of its own
    only then.
    """
    for _ in range(_MAX_PASSES):
        pieces = [piece.text for piece in split_at_markers(text)]
        if pieces == [text]:
            break
        text = "\n\n".join(piece for piece in pieces if piece)
    return text


def _marker_id(match: re.Match[str]) -> str:
    """Return the id that a marker names; empty for a line of another pipe."""
    if match["bits"]:
        return _read_bits(match["bits"]).upper()
    return (match["ulid"] or match["ulid1"] or "").upper()


def _read_bits(bits: str) -> str:
    """Return the text of a zero-width block."""
    digits = bits.replace(_ZERO_BIT, "0").replace(_ONE_BIT, "1")
    octets = [digits[start : start + 8] for start in range(0, len(digits), 8)]
    return "".join(chr(int(octet, 2)) for octet in octets)


# --------------------------------------------------------------------------------------
# owui_chat.storage.signature
#
# Signatures of what is stored in a chat, which its owner can read and change.
#
# A signature tells that this pipe, or another one with the same secret, wrote a value.
# Keys are derived from the secret with HKDF-SHA256 (RFC 5869), one for each purpose, so
# that no key can be used for anything else.
#
# A signature has two halves: of the value with its names in their order, which is quick to
# check, and of the value with sorted names, because a database may change the order.
# --------------------------------------------------------------------------------------


Sign = Callable[[object, bool], str]
"""Returns a half of the signature of a JSON value, as hexadecimal digits.

The flag says whether names are sorted.
"""

_FIELD = "signature"
_HALF = 32
"""Hexadecimal digits: 128 bits."""
_NO_SALT = bytes(32)
_ONE_BLOCK = b"\x01"
# It takes a quarter of the time of `json` (measured on a record with reasoning).
_IN_ORDER = TypeAdapter[Any](Any).serializer
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), check_circular=False)


def derive_key(secret: str, purpose: str) -> bytes:
    """Return a key of 32 bytes; without the secret nobody can derive it."""
    seed = hmac.digest(_NO_SALT, secret.encode("utf-8", "replace"), "sha256")
    return hmac.digest(seed, purpose.encode() + _ONE_BLOCK, "sha256")


def signer(secret: str, purpose: str) -> Sign:
    """Return what signs values for one purpose."""
    key = derive_key(secret, purpose)
    return partial(_signature, hmac.new(key, digestmod="sha256"))


def sign_object(
    fields: Mapping[str, Any], sign: Sign | None, *scope: object
) -> dict[str, Any]:
    """Return an object with its signature, which holds in one `scope` only."""
    bare = _without_signature(fields)
    if sign is None:
        return bare
    value = [*scope, bare]
    return {**bare, _FIELD: sign(value, False) + sign(value, True)}


def is_signed(fields: Mapping[str, Any], sign: Sign | None, *scope: object) -> bool:
    """Say whether an object has its signature; without `sign` none has.

    Earlier versions wrote the second half alone. What cannot be encoded is nothing that
    this pipe wrote.
    """
    signature = fields.get(_FIELD)
    if sign is None or not isinstance(signature, str) or not signature.isascii():
        return False
    value = [*scope, _without_signature(fields)]
    try:
        if hmac.compare_digest(sign(value, False), signature[:_HALF]):
            return True
        return hmac.compare_digest(sign(value, True), signature[-_HALF:])
    except (RecursionError, TypeError, ValueError):
        return False


def _without_signature(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name != _FIELD}


def _signature(keyed: hmac.HMAC, value: object, is_sorted: bool) -> str:
    """Return half of the signature of a JSON value."""
    signed = keyed.copy()
    signed.update(_sorted_json(value) if is_sorted else _ordered_json(value))
    return signed.hexdigest()[:_HALF]


def _ordered_json(value: object) -> bytes:
    """Return the JSON of a value with its names in their order.

    UTF-8 has no lone surrogates: a value with one is written in the other form.
    """
    try:
        return _IN_ORDER.to_json(value)
    except ValueError:
        return _sorted_json(value)


def _sorted_json(value: object) -> bytes:
    return _SORTED.encode(value).encode()


# --------------------------------------------------------------------------------------
# owui_chat.storage.records
#
# Records: what of an answer is stored in the chat, and how the chat stays small.
#
# Each assistant message has its own top-level key of the chat's JSON, because the host
# replaces a top-level key whole and several answers can be written at the same time:
#
#     "openai_responses_pipe:{message_id}":
#         {"__v": 5, "items": {ulid: record}, "repairs": [[word, name], ...]}
#
# Earlier pipes had one key, `"openai_responses_pipe": {"__v": 3, "items": {id: record}}`,
# which is read and never written (docs/reference/markers.md, "Stored items of earlier
# pipes"). A record has the same form in both, with these differences: only ours have
# `origin`, `shown` and `signature`, and in ours `payload` may be a list, the items that
# one marker names. `repairs` are those of the chat's items, which the server refused.
# Earlier pipes listed records in `dead` whose reasoning is not sent again.
#
# The owner of a chat can write anything into its row, and whoever clones a shared chat
# takes it along. So a record is signed. One without a valid signature, of an earlier
# writer or of a person, is read for what cannot harm: reasoning, which only the API can
# have encrypted, in front of texts and calls that the chat itself shows.
#
# Records of deleted messages are removed, and the oldest ones if a chat stores too much.
# A key cannot be removed from a chat, so its value is emptied; its repairs stay.
# --------------------------------------------------------------------------------------


_SEED_KEY = "openai_responses_pipe"
_PREFIX = f"{_SEED_KEY}:"
_VERSION = 5

UNSHOWN_TEXT: Item = {"type": "output_text", "annotations": []}
"""A part without text; its text is the one behind the marker."""


class Record(NamedTuple):
    """The items that one marker names, in the order of the wire.

    `model` is the host's full model id, `created_at` seconds in UTC. If the text part
    of a message in `payload` has no `text`, the text behind the marker is its text. If
    it has one, it counts as long as `shown` is the digest of the text behind the
    marker. Commentary without `shown` has no text in the chat.
    """

    ulid: str
    model: str
    created_at: int
    payload: tuple[Item, ...]
    message_id: str
    origin: Origin
    shown: str = ""

    @property
    def kind(self) -> str:
        """The type that the marker shows."""
        return str(self.payload[0]["type"]) if len(self.payload) == 1 else "items"


def text_digest(text: str) -> str:
    """Return a digest that tells whether a shown text was edited.

    White space around the text does not count, because the host strips it.
    """
    return hex_digest(text.strip())[:32]


def omit_shown_text(item: Item, shown: str) -> Item:
    """Return a message without its text, if that is all that the host returns for it.

    The host strips the ends of texts and does not know refusals or several parts.
    """
    is_returned = shown != "" and shown == shown.strip()
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts]
    if not is_returned or texts != [shown]:
        return item
    part = {name: value for name, value in parts[0].items() if name != "text"}
    return {**item, "content": [part]}


def message_key(message_id: str) -> str:
    """Return the top-level key that holds the records of one message."""
    return _PREFIX + message_id


def write_records(
    records: Mapping[str, Record], sign: Sign | None, repairs: Iterable[ChatRepair] = ()
) -> dict[str, Any]:
    """Return the JSON value for the key of one message."""
    items = {
        ulid: sign_object(_wire(record), sign, _VERSION, ulid)
        for ulid, record in records.items()
    }
    value: dict[str, Any] = {"__v": _VERSION, "items": items}
    rows = [repair.stored() for repair in repairs]
    return {**value, "repairs": rows} if rows else value


def is_pipe_key(key: str) -> bool:
    """Say whether a top-level key of a chat holds records, of any writer."""
    return key.startswith(_PREFIX) or key == _SEED_KEY


def read_records(chat: JsonObject, sign: Sign | None) -> dict[str, Record]:
    """Return every record of a chat's JSON that can be read, by id."""
    # Of a chat that was moved here from an earlier pipe both kinds of keys may be
    # there.
    values = [as_mapping(value) for key, value in chat.items() if is_pipe_key(key)]
    dead = _dead_ids(values)
    records: dict[str, Record] = {}
    for value in values:
        for ulid, wire in _wires_in(value):
            record = _read_record(ulid, wire, sign)
            if record is None:
                continue
            if ulid in dead:
                record = _without_encrypted(record)
            records[ulid] = record
    return records


def _dead_ids(values: Iterable[JsonObject]) -> set[str]:
    """Return the ids of the records whose reasoning the API can no longer read."""
    dead: set[str] = set()
    for value in values:
        dead.update(str(ulid) for ulid in as_list(value.get("dead")))
    return dead


def _without_encrypted(record: Record) -> Record:
    """Return a record without its encrypted items."""
    kept = [item for item in record.payload if not is_encrypted(item)]
    return record._replace(payload=tuple(kept))


def stored_repairs(values: Iterable[object]) -> tuple[ChatRepair, ...]:
    """Return the repairs in the values of a chat's keys, each once."""
    rows = [row for v in values for row in as_list(as_mapping(v).get("repairs"))]
    return tuple(read_chat_repairs(rows))


def _wires_in(value: object) -> Iterator[tuple[str, JsonObject]]:
    """Yield the stored records of a key's value, with their ids."""
    for ulid, wire in as_mapping(as_mapping(value).get("items")).items():
        yield str(ulid).upper(), as_mapping(wire)


def _read_record(ulid: str, wire: JsonObject, sign: Sign | None) -> Record | None:
    """Return what is used of a stored record, or None for nothing.

    Of one that we did not sign nothing is used that could instruct the model.
    """
    payload = _read_payload(wire.get("payload"))
    is_ours = is_signed(wire, sign, _VERSION, ulid)
    if not is_ours:
        payload = _keep_unsigned_safe(payload)
    if not payload:
        return None
    model = str(wire.get("model") or "")
    # The part in front of the first dot is the function's; a model's id may have dots
    # itself (functions.py:193 of Open WebUI 0.12.4).
    own_name = model.split(".", 1)[-1]
    created_at = wire.get("created_at")
    return Record(
        ulid=ulid,
        model=model,
        created_at=created_at if isinstance(created_at, int) else 0,
        payload=payload,
        message_id=str(wire.get("message_id") or ""),
        origin=read_origin(wire.get("origin"), own_name),
        shown=str(wire.get("shown") or "") if is_ours else "",
    )


def _read_payload(value: object) -> tuple[Item, ...]:
    """Return the items of a record; nothing if one of them is none."""
    rows = value if isinstance(value, list) else [value]
    items = [row for row in rows if isinstance(row, dict) and row.get("type")]
    return tuple(items) if len(items) == len(rows) else ()


def _keep_unsigned_safe(payload: Sequence[Item]) -> tuple[Item, ...]:
    """Return what is used of a payload that anybody may have written.

    The chat has the text of the last message only: it stands behind the marker.
    """
    items = [item for item in payload[:-1] if item_type(item) != "message"]
    safe = keep_unsigned_safe([*items, *payload[-1:]])
    return tuple(item for item in safe if item is not None)


def keep_unsigned_safe(items: Sequence[Item]) -> list[Item | None]:
    """Return what is used of items that anybody may have written, None for nothing.

    Reasoning stays only in front of what stays, because it belongs to its product; the
    text behind the marker stays.
    """
    safe: list[Item | None] = []
    has_product = True
    # From the end, because reasoning is worth what follows it.
    for item in reversed(items):
        kept = None
        if has_product or not is_reasoning(item):
            kept = _without_hidden_text(item)
        safe.append(kept)
        has_product = kept is not None
    safe.reverse()
    return safe


def _without_hidden_text(item: Item) -> Item | None:
    """Return an item without the words that the chat does not show, or None."""
    if has_encrypted_reasoning(item):
        sealed = str(item["encrypted_content"])
        return {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    if is_call(item):
        return {"type": item["type"], "call_id": str(item.get("call_id"))}
    is_answer = item_type(item) == "message" and item.get("role") == "assistant"
    if not is_answer or is_commentary(item):
        return None
    head: Item = {"type": "message", "role": "assistant"}
    if item.get("phase") == "final_answer":
        head["phase"] = "final_answer"
    return {**head, "content": [UNSHOWN_TEXT]}


def _wire(record: Record) -> dict[str, Any]:
    """Return the stored form of a record; one item stands alone, as in earlier pipes."""
    payload: object = list(record.payload)
    if len(record.payload) == 1:
        payload = record.payload[0]
    wire = {
        "model": record.model,
        "created_at": record.created_at,
        "payload": payload,
        "message_id": record.message_id,
        "origin": record.origin.wire(),
    }
    return {**wire, "shown": record.shown} if record.shown else wire


MAX_STORED_KB = 4096
"""In one chat, which the host reads at every answer."""
_KEPT_SHARE = 0.75
"""What is left of a chat that is too large: more, and each answer would remove something
and change the beginning of the next request."""
_STAYS = ("__v", "dead", "repairs")
"""What is left in the value of a deleted message."""


def prune(
    values: JsonObject, messages: JsonObject, own_key: str, max_characters: int
) -> dict[str, Any]:
    """Return the values to write in addition to that of `own_key`.

    `messages` are those of the chat; without any, all count as present. Answers that
    are still growing are not touched, because others write them. The remaining values
    have at most `max_characters` of JSON.
    """
    has_ended = {message_key(name): _has_ended(row) for name, row in messages.items()}
    pruned: dict[str, Any] = {}
    present: dict[str, JsonObject] = {}
    for key, value in values.items():
        # The key of earlier pipes is never written.
        if key in (own_key, _SEED_KEY) or not isinstance(value, Mapping):
            continue
        if not messages or has_ended.get(key):
            present[key] = value
        elif key not in has_ended:
            pruned[key] = _without_items(value)
    pruned |= _prune_oldest(present, max_characters)
    return {key: value for key, value in pruned.items() if value != values[key]}


def _without_items(value: JsonObject) -> dict[str, Any]:
    """Return what is left of the value of a deleted message."""
    return {name: value[name] for name in _STAYS if name in value}


def stored_size(value: object) -> int:
    """Return the number of characters that a value takes."""
    return len(json.dumps(value, separators=(",", ":")))


def _has_ended(message: object) -> bool:
    """Say whether an answer has ended; earlier hosts do not say so of all."""
    return as_mapping(message).get("done") is not False


def _prune_oldest(
    values: Mapping[str, JsonObject], max_characters: int
) -> dict[str, Any]:
    """Return the values that lose their items, the oldest first."""
    sizes = {key: stored_size(value) for key, value in values.items()}
    excess = sum(sizes.values()) - max_characters
    if excess <= 0:
        return {}
    # More goes than has to, or the next answer would remove something again, and each
    # removal changes the beginning of a request.
    excess += int(max_characters * (1 - _KEPT_SHARE))
    ages = [
        (_oldest_time(value), order, key)
        for order, (key, value) in enumerate(values.items())
        if as_mapping(value.get("items"))
    ]
    pruned: dict[str, Any] = {}
    for _, _, key in sorted(ages):
        if excess <= 0:
            break
        pruned[key] = {n: value for n, value in values[key].items() if n != "items"}
        excess -= sizes[key] - stored_size(pruned[key])
    return pruned


def _oldest_time(value: object) -> int:
    """Return when the first record of a value was written; 0 if nobody knows."""
    times = [wire.get("created_at") for _, wire in _wires_in(value)]
    return min([time for time in times if isinstance(time, int)], default=0)


# --------------------------------------------------------------------------------------
# owui_chat.input.history
#
# The input items of a chat's history.
#
# The host decides which items exist; a stored item decides their bytes. Everything
# between two user messages is one run. Inside a run a stored call is placed where the
# host has its card, with its reasoning before it. Stored items without a card are placed
# at their marker.
#
# `<details>` blocks of earlier writers, which no model wrote, are removed
# (docs/reference/markers.md, "Blocks of earlier pipes").
# --------------------------------------------------------------------------------------


_SIGN = "<details type="
_BLOCK = re.compile(
    r'<details type="(?:status|reasoning|tool_calls|code_interpreter|\w+\.reasoning)"'
    r"[^<>]*>.*?</details>\n?",
    re.DOTALL,
)


def _strip_old_blocks(text: str) -> str:
    """Return `text` without such blocks; a block that is not closed stays as text."""
    if _SIGN not in text:
        return text
    # Only the text before the last end is read, once.
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
    """Return the input of a request; without a `reader` no reasoning is sent.

    A compaction that the `repairs` leave out replaces nothing: what it stood for is
    sent again.
    Without `with_tools` runs that are over do not include what tools did. The result is
    always valid: calls and outputs come in pairs, and reasoning only with its encrypted
    content and directly before its product.
    """
    items: list[Item] = []
    run: list[AssistantPart] = []
    unused = dict(records)  # a copied marker names nothing: each record is used once
    for part in parts:
        if not isinstance(part, UserMessage):
            run.append(part)
            continue
        ended_run = _RunHistory(run, unused, reader).items()
        items += ended_run if with_tools else drop_hosted_tool_items(ended_run)
        items.append(part.item)
        run = []
    items += _RunHistory(run, unused, reader).items()
    kinds = {item.get("type") for item in items}
    if "compaction" in kinds:
        items = since_compaction(_sent_compactions(items, repairs))
    paired = drop_orphans(items)
    if kinds.isdisjoint(CHANGED_LATER):
        return paired
    # An image is an input message: inserted last, to keep reasoning next to its text.
    sent: list[Item] = []
    for item in paired:
        sent += past_items(item)
    return sent


def _sent_compactions(items: list[Item], repairs: Sequence[Repair]) -> list[Item]:
    """Return `items` without the compactions that the `repairs` leave out."""
    if not repairs:
        return items
    sent = {id(row.item) for row in name_items(items, repairs)}
    return [item for item in items if id(item) in sent or not is_compaction(item)]


def tool_message_item(returned: ToolMessage, call_types: Mapping[str, str]) -> Item:
    """Return the input item for a tool's result; `call_types` are those of calls."""
    call_id = returned.call_id
    kind = call_types.get(call_id, "function_call")
    return {"type": CALL_OUTPUTS[kind], "call_id": call_id, "output": returned.output}


AssistantPart = AssistantText | ToolCall | ToolMessage


class _PlacedCall(NamedTuple):
    """A call, and the stored items around it."""

    before: list[Item]
    item: Item
    behind: list[Item]


# An example, of a run with one call:
#
#   record A of the answer                   what the host gives back
#   --------------------------------------   ----------------------------
#   reasoning 1, call_1, reasoning 2,        call_1, the output of call_1
#   message "It rains."                      marker A, "It rains."
#
# The card of call_1 takes the items of the record up to the call, the marker takes the
# rest. So the result is reasoning 1, call_1, its output, reasoning 2, and the message in
# the model's own bytes. If the card was deleted, the marker takes all of the record, and
# `drop_orphans` removes the call with its reasoning.
class _RunHistory:
    """The items of one run, combined from the host's parts and the stored items."""

    def __init__(
        self,
        run: Sequence[AssistantPart],
        records: dict[str, Record],
        reader: Origin | None,
    ) -> None:
        """Take what the `run` names out of the `records`.

        Without what nobody at this request's server can read. A call whose card was
        deleted stays for now, because it tells which reasoning must be removed with it.
        """
        self._pieces: list[_Piece] = []
        self._items: dict[str, list[Item]] = {}
        """The items of each record, by its ULID."""
        self._shown: dict[str, str] = {}
        """The digest of the text that each record was shown with."""
        self._taken: dict[str, int] = {}
        """How many items of each record are in the result already."""
        for part in run:
            if isinstance(part, AssistantText):
                self._add_text(part, records, reader)
            else:
                self._pieces.append(part)
        self._take_out_code()

    def _add_text(
        self,
        assistant_text: AssistantText,
        records: dict[str, Record],
        reader: Origin | None,
    ) -> None:
        """Take the records that a text names out of the `records`."""
        for piece in _marked_texts(assistant_text):
            self._pieces.append(piece)
            record = records.pop(piece.ulid, None)
            if record:
                self._items[piece.ulid] = _readable_items(record, reader)
                self._shown[piece.ulid] = record.shown

    @cached_property
    def _ends(self) -> dict[str, tuple[str, int]]:
        """The record of each call, and the index behind it there, by the call's id."""
        ends: dict[str, tuple[str, int]] = {}
        for ulid, items in self._items.items():
            for end, item in enumerate(items, 1):
                if is_call(item):
                    ends[str(item.get("call_id"))] = (ulid, end)
        return ends

    def _take_out_code(self) -> None:
        """Remove the host's text for code, and code whose card was deleted."""
        codes: list[Item] = []
        for items in self._items.values():
            codes += [item for item in items if "code" in item and is_code(item)]
        if not codes:
            return
        texts = [
            piece.text if isinstance(piece, MarkedText) else ""
            for piece in self._pieces
        ]
        cleaned, deleted = take_out_code(texts, codes)
        self._replace_texts(cleaned)
        self._remove_items(deleted)

    def _replace_texts(self, texts: Sequence[str]) -> None:
        """Give the texts of the run other words; `texts` has one for each piece."""
        self._pieces = [
            MarkedText(piece.ulid, text) if isinstance(piece, MarkedText) else piece
            for piece, text in zip(self._pieces, texts, strict=True)
        ]

    def _remove_items(self, deleted: Iterable[Item]) -> None:
        """Remove these items, and no others that are equal."""
        deleted_ids = {id(item) for item in deleted}
        for ulid, items in self._items.items():
            remaining = [item for item in items if id(item) not in deleted_ids]
            self._items[ulid] = remaining

    def items(self) -> list[Item]:
        """Return the items of the run in order."""
        items: list[Item] = []
        call_types: dict[str, str] = {}
        has_remote = False
        for piece in self._pieces:
            if isinstance(piece, MarkedText):
                items += self._text(piece)
            elif isinstance(piece, ToolCall):
                call = self._call(piece)
                call_types.setdefault(piece.call_id, call.item["type"])
                items += [*call.before, call.item, *call.behind]
            else:
                items.append(tool_message_item(piece, call_types))
                has_remote |= is_remote_id(piece.call_id)
        return reorder_remote_outputs(items) if has_remote else items

    def _call(self, call: ToolCall) -> _PlacedCall:
        """Return a call in its stored bytes, between the items stored around it.

        Behind the last call of a response stands the compaction that ended it. The
        outputs came later: they are not compacted.
        """
        ulid, end = self._ends.get(call.call_id, ("", 0))
        items = self._take_items(ulid, end)
        if not items:
            return _PlacedCall([], _call_item(call), [])
        # Of a record that is not signed only the chat's own words count.
        item = items.pop()
        if not item.get("name"):
            item = _call_item(call)
        behind: list[Item] = []
        following = self._items.get(ulid, [])[end:]
        # Recorded: the API compacts behind the last item of a response (8 of 8).
        if following and is_compaction(following[0]):
            length = 1 + count_updates(following[1:])
            behind = self._take_items(ulid, end + length)
        return _PlacedCall(items, item, behind)

    def _take_items(self, ulid: str, end: int | None = None) -> list[Item]:
        """Return the items of a record that were not taken yet, up to an index."""
        items = self._items.get(ulid, [])
        start = self._taken.get(ulid, 0)
        if end is None:
            end = len(items)
        self._taken[ulid] = max(start, end)
        return items[start:end]

    def _text(self, piece: MarkedText) -> list[Item]:
        """Return the items at a marker, and the text behind it as a message.

        The message that is stored there is the model's own form of the text.
        """
        items = self._take_items(piece.ulid)
        message: Item | None = None
        if items and item_type(items[-1]) == "message":
            shown = self._shown[piece.ulid]
            if piece.text and shown and shown == text_digest(piece.text):
                return items
            # Open WebUI joins neighboring messages and drops `phase`
            # (utils/misc.py:408).
            # The host does not return the text of commentary.
            is_hidden = is_commentary(items[-1]) and message_text(items[-1])
            if shown or not is_hidden:
                message = items.pop()
        if piece.text:
            items.append(_message_item(message, piece.text))
        return items


def _readable_items(record: Record, reader: Origin | None) -> list[Item]:
    """Return what is sent of a record: a configuration is for its model alone.

    Items are stored in the form in which they are sent again.
    """
    is_ours = bool(reader and reader.can_decrypt(record.origin))
    return [item for item in record.payload if is_replayed(item, is_ours=is_ours)]


def _call_item(call: ToolCall) -> Item:
    """Return a call as the chat has it, without a stored item."""
    named = {"call_id": call.call_id, "name": call.name}
    if call.is_custom:
        return {"type": "custom_tool_call", **named, "input": call.arguments}
    return {"type": "function_call", **named, "arguments": call.arguments}


_Piece = MarkedText | ToolCall | ToolMessage


def _marked_texts(assistant_text: AssistantText) -> list[MarkedText]:
    """Return the text of a message in pieces, each behind the marker of a record."""
    ulids = assistant_text.ulids or ("",)
    in_front = [MarkedText(ulid, "") for ulid in ulids[:-1]]
    return in_front + split_at_markers(
        _strip_old_blocks(assistant_text.text), ulids[-1]
    )


def _message_item(kept: Item | None, shown: str) -> Item:
    """Return a message in the model's own bytes, unless a person edited it."""
    if kept is None:
        return text_message("assistant", shown)
    if message_text(kept).strip() == shown:
        return kept
    match kept.get("content"):
        case [{"type": "output_text"} as part]:
            edited = {**part, "text": shown}
            if "text" in part:
                edited["annotations"] = []  # their positions are no longer valid
            content = [edited]
        case _:
            content = text_message("assistant", shown)["content"]
    return {**kept, "content": content}


# --------------------------------------------------------------------------------------
# owui_chat.input.tasks
#
# Small jobs that the host gives a model: titles, tags, follow-up questions.
#
# The host names the job. Its prompt quotes the chat, markers included. The host would use
# the text of an error as the title.
# --------------------------------------------------------------------------------------


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
"""By task: the one key of the answer's JSON object that the host reads, and its schema
(docs/reference/open-webui.md, "Tasks")."""


_ANSWER_KEYS = frozenset(
    {
        "json_schema",
        "parallel_tool_calls",
        "reasoning",
        "reasoning_effort",
        "reasoning_summary",
        "response_format",
        "text",
        "tool_choice",
        "tools",
        "verbosity",
    }
)
"""What is chosen for answers, but not for tasks."""


def task_request(
    model: ResolvedModel, messages: Sequence[JsonObject], body: JsonObject, task: str
) -> ResponsesRequest:
    """Return the request for a task: short, without tools or stored reasoning.

    If the host reads the answer as JSON, the model is held to that form. Raises
    InvalidRequest.
    """
    clean_messages = [
        {**as_mapping(message), "content": _clean(value_at(message, "content"))}
        for message in messages
    ]
    instructions, parts = parse_messages(clean_messages)
    parameters = {key: body[key] for key in body if key not in _ANSWER_KEYS}
    text_format = _task_format(task, clean_messages)
    if text_format and model.facts.known_family:
        parameters["text"] = {"format": text_format}
    settings = Settings(
        effort=model.lowest_effort(), stream=False, encrypted_reasoning=False
    )
    items = build_input(parts, {}, None)
    standard = model._replace(pro=False)
    return build_request(standard, instructions, items, parameters, settings)


def _task_format(task: str, messages: Sequence[JsonObject]) -> dict[str, Any] | None:
    """Return the `text.format` of a task whose answer the host reads as JSON, or None.

    An administrator's own prompt may ask for something else, so the key must be in it.
    """
    if task not in _TASK_OBJECTS:
        return None
    key, value_schema = _TASK_OBJECTS[task]
    if not any(f'"{key}"' in str(message.get("content")) for message in messages):
        return None
    schema = {
        "type": "object",
        "properties": {key: value_schema},
        "required": [key],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "name": task, "schema": schema, "strict": True}


def task_result(text: str, model: str) -> dict[str, Any]:
    """Return the answer of a task; its text must be empty if the task failed."""
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
    }


def _clean(content: object) -> object:
    """Return a content without the markers of the quoted chat."""
    if isinstance(content, str):
        return strip_markers(content)
    if isinstance(content, list):
        return [_clean_part(part) for part in content]
    return content


def _clean_part(part: object) -> object:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": strip_markers(part["text"])}
    return part


# --------------------------------------------------------------------------------------
# owui_chat.render.chunks
#
# Chunks that Open WebUI understands in addition to an answer's text.
#
# The sums of tokens are for billing. The host's compaction reads `prompt_tokens` as the
# size of the chat, so `prompt_tokens` and `completion_tokens` are those of the last
# response (docs/reference/open-webui.md, "Usage").
#
# With `choices` in a chunk, the host ignores its `error`.
# --------------------------------------------------------------------------------------


Chunk = dict[str, Any]
Chunks = Iterator[Chunk]

METADATA_KEY = "execution_metadata"
"""The seed's name of what an agent's answer took."""


def host_usage(ended: RunDone) -> Chunk:
    """Return the field `usage` as the host stores it; empty if nothing was counted."""
    usage = ended.usage
    if usage is None:
        return {}
    newest = ended.last_usage or usage
    counts: Chunk = {
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
    # Open WebUI adds repeated usage up (utils/response.py:104), so it is sent once.
    if ended.cost is not None:
        counts["cost"] = ended.cost
    if ended.trace.response_id:
        counts["response_id"] = ended.trace.response_id
    return {"usage": counts}


def client_usage(ended: RunDone) -> Chunk:
    """Return the field `usage` for a client of Chat Completions: sums over all rounds.

    The host's form has the tokens of the last response in `prompt_tokens`, from which
    the page tells how full the context is.
    """
    field = host_usage(ended)
    if ended.usage is not None:
        sums = {
            "prompt_tokens": ended.usage.input,
            "completion_tokens": ended.usage.output,
        }
        field["usage"] |= sums
    return field


def error_chunk(message: str) -> Chunk:
    """Return the chunk that marks the answer as failed and keeps its text."""
    return {"error": {"message": message}}


def status_chunk(text: str) -> Chunk:
    """Return a status line above the answer, which the host stores.

    Without a text it hides those before it, until the next one.
    """
    status: Chunk = {"description": text, "done": True}
    if not text:
        status["hidden"] = True
    return host_event("status", status)


def closing_chunk(line: str, metadata: JsonObject) -> Chunk:
    """Return the last status line; the host stores an agent's `metadata` with it."""
    chunk = status_chunk(line)
    if metadata:
        chunk["event"]["data"] |= {"action": METADATA_KEY, METADATA_KEY: dict(metadata)}
    return chunk


def metadata_field(ended: RunDone) -> Chunk:
    """Return the field that holds an agent's metadata; empty if there is none."""
    return {METADATA_KEY: dict(ended.metadata)} if ended.metadata else {}


def source_chunk(name: str, text: str) -> Chunk:
    """Return a source below the answer that opens to show `text`."""
    source = {
        "source": {"name": name},
        "document": [text],
        "metadata": [{"source": name}],
    }
    return host_event("source", source)


def host_event(kind: str, data: JsonObject) -> Chunk:
    """Return a chunk whose event the host hands to its event emitter."""
    # A stream filter that reads `event["choices"]` raises for a chunk without it, and
    # Open WebUI then drops the chunk (observed: the whole answer was lost).
    event = {"type": kind, "data": data}
    return {"event": event, "choices": [{"index": 0, "delta": {}}]}


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


MAX_NAME_LENGTH = 200
"""Characters of a foreign name that are read; the file systems of hosts take 255 bytes.
"""
_MAX_ENDING = 20

_INERT_TYPES = MappingProxyType(
    {
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
        "docx": (
            "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
        ),
        "epub": "application/epub+zip",
        "odp": "application/vnd.oasis.opendocument.presentation",
        "ods": "application/vnd.oasis.opendocument.spreadsheet",
        "odt": "application/vnd.oasis.opendocument.text",
        "pdf": "application/pdf",
        "ppt": "application/vnd.ms-powerpoint",
        "pptx": (
            "application/vnd.openxmlformats-officedocument.presentationml.presentation"
        ),
        "rtf": "application/rtf",
        "xls": "application/vnd.ms-excel",
        "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
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
)
"""The endings that a browser runs nothing of, with their types."""

_COMPRESSED_TYPES = MappingProxyType(
    {
        "bz2": "application/x-bzip2",
        "gz": "application/gzip",
        "xz": "application/x-xz",
    }
)
"""Endings that `mimetypes` looks behind: it gives the type of the ending before them.
"""

_IMAGE_ENDINGS = MappingProxyType(
    {
        "image/gif": "gif",
        "image/jpeg": "jpg",
        "image/png": "png",
        "image/webp": "webp",
    }
)
"""The ending of each type of image that models and their tools generate."""


class StoredName(NamedTuple):
    """The name of a stored file, and its MIME type."""

    name: str
    media_type: str


def shorten_name(name: str) -> str:
    """Return at most 200 characters of a foreign name: its begin and its ending.

    Whoever chooses a name chooses its length too, so this comes before anything else
    reads it.
    """
    if len(name) <= MAX_NAME_LENGTH:
        return name
    return name[: MAX_NAME_LENGTH - _MAX_ENDING] + name[-_MAX_ENDING:]


def stored_name(name: str) -> StoredName:
    """Return the name and the type under which a file is stored.

    `name` is any text: a directory before it is left out, and a browser runs nothing
    that has the returned name.
    """
    base = shorten_name(name.replace("\\", "/").rpartition("/")[2]) or "file"
    stem, _, ending = base.lower().rpartition(".")
    if stem and ending in _INERT_TYPES:
        return StoredName(base, _INERT_TYPES[ending])
    if ending in _COMPRESSED_TYPES and _is_inert_inside(stem):
        return StoredName(base, _COMPRESSED_TYPES[ending])
    return StoredName(f"{base}.bin", _INERT_TYPES["bin"])


def _is_inert_inside(stem: str) -> bool:
    """Say whether what was compressed is inert, by its name without the last ending."""
    _, dot, inner = stem.rpartition(".")
    if not dot:
        return bool(stem)
    return inner in _INERT_TYPES


def image_name(media_type: str) -> StoredName:
    """Return the name and the type of an image that has only a type."""
    ending = _IMAGE_ENDINGS.get(media_type)
    return stored_name(f"image.{ending}" if ending else "image")


# --------------------------------------------------------------------------------------
# owui_chat.files
#
# Files that an answer made: their addresses and the lines below the text.
#
# The pipe stores images and files and adds a `card` to the finished item: the `files`
# to show, the `links` from addresses inside a container to addresses of the host, and
# `notes`, lines of Markdown below a text.
# --------------------------------------------------------------------------------------


# A sentence may end behind an address: its last character is no punctuation.
_CONTAINER_ADDRESS = re.compile(r"sandbox:/[^\s()<>\[\]\"']*[^\s()<>\[\]\"'.,;:!?]")


def file_citations(item: JsonObject) -> list[Item]:
    """Return the citations of container files in a message, one for each file."""
    citations: dict[str, Item] = {}
    for part in content_parts(item.get("content")):
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") == "container_file_citation":
                citations[str(annotation.get("file_id"))] = annotation
    return list(citations.values())


def container_addresses(text: str, name: str) -> list[str]:
    """Return the addresses in `text` of the container file with this name.

    `name` is one that `shorten_name` returned.
    """
    addresses = dict.fromkeys(_CONTAINER_ADDRESS.findall(text))
    return [address for address in addresses if _address_name(address) == name]


def _address_name(address: str) -> str:
    """Return the name of a file by its address, at most 200 characters of it."""
    return shorten_name(unquote(address).rpartition("/")[2])


def link_files(text: str, card: JsonObject) -> str:
    """Return a text with the addresses and notes of its card."""
    links = card.get("links") or {}

    def host_address(match: re.Match[str]) -> str:
        """Return the host's address of a file that was stored."""
        address = match[0]
        return str(links.get(address, address))

    linked = _CONTAINER_ADDRESS.sub(host_address, text)
    return "\n\n".join([linked, *card.get("notes", ())])


def file_lines(card: JsonObject) -> str:
    """Return the links and notes of a card, for a text that was shown without them."""
    links = card.get("links") or {}
    lines = [f"[{_address_name(address)}]({url})" for address, url in links.items()]
    lines += card.get("notes", ())
    return "".join(f"\n\n{line}" for line in lines)


# --------------------------------------------------------------------------------------
# owui_chat.citations
#
# Sources of an answer: `[n]` in its text, links, and annotations.
#
# The model writes links such as `([host](https://host/page?utm_source=openai))`. Such a
# link must be complete before it can be replaced, so text that may become one is held
# back.
#
# The page's `[n]` is the n-th distinct source of a message (docs/reference/open-webui.md,
# "Sources and citations"). So the numbers continue over all rounds of a run, and sources
# of the host's tools count as well. Links to pages of a search become numbers while the
# text grows. Sources that only annotations name are inserted when the message ends.
#
# For plain HTTP clients annotations have the form of Chat Completions.
# --------------------------------------------------------------------------------------


# What a model writes arrives in pieces, and a link must be whole to be replaced:
#
#   The lake is warm ([zuerich.ch](https://zuerich.ch/lake_(north)?utm_source=openai)).
#                    ^ from here on the text is held back until the last parenthesis
#
# The page then gets `The lake is warm [1].`, and a source. An address may have one pair
# of parentheses. All patterns have bounds, so that hostile text is read in linear time
# (tests/test_regular_expressions.py).
_TRACKED = "utm_source=openai"
_LABEL = r"[^\[\]\n]{0,300}"
_PLAIN = r"[^\s()]{0,1000}"
_URL = rf"https?://{_PLAIN}(?:\({_PLAIN}\){_PLAIN})?"

_LINK = re.compile(rf"\[({_LABEL})\]\(({_URL})\)")
"""Begins with a plain character, so that `re` skips all others fast."""
_MAX_HELD_BACK = 4000
"""Characters of what may become a link, or a tracking parameter."""

_BEGUN_LINK = rf"\[{_LABEL}(?:\](?:\({_PLAIN}(?:\({_PLAIN}(?:\){_PLAIN})?)?)?)?\Z"
_UNFINISHED_LINK = rf"{_BEGUN_LINK}|\({_BEGUN_LINK}|\(\[{_LABEL}\]\({_URL}\)\Z|\(\Z"
"""Every alternative begins with one, too."""


def _beginnings_of(text: str) -> str:
    """Return the pattern of all beginnings of a text, up to the end of the string."""
    pattern = ""
    for letter in reversed(text):
        pattern = f"(?:{letter}{pattern})?"
    return rf"{pattern}\Z"


_BEGUN_TRACKING = _beginnings_of(_TRACKED)
_UNFINISHED_TRACKING = rf"\?{_BEGUN_TRACKING}|&{_BEGUN_TRACKING}"
_TRACKING = re.compile(rf"[?&]{_TRACKED}(?![\w-])")

_OPEN_LINK = re.compile(f"{_UNFINISHED_LINK}|{_UNFINISHED_TRACKING}")
OPEN_TRACKING = re.compile(_UNFINISHED_TRACKING)
"""The end of a text that may become a tracking parameter."""


class HoldbackBuffer:
    """Holds back the end of a growing text while it may become something to replace."""

    def __init__(self, unfinished: re.Pattern[str]) -> None:
        """Hold back the end that matches `unfinished`."""
        self._unfinished = unfinished
        self._held = ""

    def feed(self, text: str) -> str:
        """Return the text that can be shown now."""
        text = self._held + text
        match = self._unfinished.search(text, max(0, len(text) - _MAX_HELD_BACK))
        end = match.start() if match else len(text)
        self._held = text[end:]
        return text[:end]

    def rest(self) -> str:
        """Return the text that was held back, at the end of the text."""
        rest = self._held
        self._held = ""
        return rest


def strip_tracking(text: str) -> str:
    """Return a text, or an address, without tracking parameters in its links."""
    if _TRACKED not in text:
        return text
    return _TRACKING.sub("", text.replace(f"?{_TRACKED}&", "?"))


class _GrowingPart(NamedTuple):
    """The part of an item that grows, by its index, and what is held back of it."""

    part: int
    buffer: HoldbackBuffer


class _Edit(NamedTuple):
    """What replaces the text from `start` to `end`."""

    start: int
    end: int
    text: str


class Citations:
    """Numbers the sources of one run; the same events give the same numbers.

    `_waiting` holds the sources that the page does not know yet.
    """

    def __init__(self, known: Iterable[str] = ()) -> None:
        """Continue after the sources that the page already has, given by their keys."""
        self._numbers = {key: number for number, key in enumerate(known, 1)}
        self._names: dict[str, str] = {}
        self._waiting = deque[str]()
        self._growing: dict[int, _GrowingPart] = {}

    def feed(self, event: RunEvent) -> Iterable[CitedEvent]:
        """Return the event with its text as it is shown, and the sources it names.

        A delta is common: it needs no generator.
        """
        if not isinstance(event, TextDelta):
            return self._feed_other(event)
        if event.kind not in ("text", "refusal"):
            return (event,)
        text = self._grow(event)
        if text != event.text:
            event = event._replace(text=text)
        return (event,)

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
                for source in sources:
                    yield SourceCited(source)
            case RunDone():
                for index in list(self._growing):
                    yield from self._rest(index)
                yield from self._sources(ended=True)
                yield event
            case _:
                yield event

    def _rest(self, index: int) -> Iterator[CitedEvent]:
        """Yield the text of an item that was held back."""
        text = self._take_held(index)
        if text:
            yield TextDelta(index, "text", 0, text)

    def _take_held(self, index: int) -> str:
        """Return the text of an item that was held back, as it is shown; end holding."""
        growing = self._growing.pop(index, None)
        if growing is None:
            return ""
        return self._linked(growing.buffer.rest())

    def _shown_text(self, ended: ItemDone) -> str:
        """Return the whole text of a message as it is shown."""
        content = ended.item.get("content")
        parts = [{"text": content}] if isinstance(content, str) else content
        text = "".join(self._shown_part(part) for part in content_parts(parts))
        return link_files(text, ended.card)

    def _sources(self, *, ended: bool) -> Iterator[CitedEvent]:
        """Yield the sources to show now, in the order of their numbers.

        While a message is growing, sources without a known name wait.
        """
        while self._waiting and (ended or self._waiting[0] in self._names):
            key = self._waiting.popleft()
            name = self._names.get(key, key)
            source = {"name": name}
            if key.startswith("http"):
                source["url"] = key
            metadata = {"source": key, "name": name}
            cited = {"source": source, "document": [name], "metadata": [metadata]}
            yield SourceCited(cited)

    def _grow(self, event: TextDelta) -> str:
        """Return what can be shown with a delta: also the rest of an earlier part."""
        index = event.output_index
        growing = self._growing.get(index)
        before = ""
        if growing is None or growing.part != event.part:
            before = self._take_held(index)
            growing = _GrowingPart(event.part, HoldbackBuffer(_OPEN_LINK))
            self._growing[index] = growing
        return before + self._linked(growing.buffer.feed(event.text))

    def _linked(self, text: str) -> str:
        """Return a text in which links to pages of a search are numbers."""
        if _TRACKED not in text:
            return text
        return strip_tracking(_apply_edits(text, self._edit_links(text, set())))

    def _edit_links(self, text: str, sources: Container[str]) -> list[_Edit]:
        """Return the numbers for links to what a search found, or to one of `sources`.

        A label with meaning stays in the text. Parentheses directly around a link go.
        """
        edits: list[_Edit] = []
        for link in _LINK.finditer(text):
            address = link[2]
            if not (_TRACKING.search(address) or address in sources):
                continue
            url = strip_tracking(address)
            label = link[1].strip()
            number = f"[{self._number(url)}]"
            start = link.start()
            end = link.end()
            names_site = "." in label and " " not in label
            # A label like `zuerich.ch` only repeats the address; any other is a part of the
            # sentence, and stays.
            if text[start - 1 : start] == "(" and text[end : end + 1] == ")":
                edits.append(_Edit(start - 1, end + 1, number))
            elif names_site:
                edits.append(_Edit(start, end, number))
            else:
                edits.append(_Edit(start, end, f"[{label}]({url}){number}"))
        return edits

    def _shown_part(self, part: Item) -> str:
        """Return the text of a part with the numbers of the sources that it cites."""
        text = part_text(part)
        annotations = content_parts(part.get("annotations"))
        if not annotations:
            return self._linked(text)
        for annotation in annotations:
            self._name(annotation)
        keys = {_key(annotation) for annotation in annotations}
        edits = self._edit_links(text, keys)
        starts = [edit.start for edit in edits]
        ends = [float("-inf"), *(edit.end for edit in edits)]
        for annotation in annotations:
            key = _key(annotation)
            start, end = _range(annotation, text)
            # The last link that begins in front of it has not ended: it is the link.
            is_link = "url" in annotation and start < ends[bisect(starts, start)]
            if key and not is_link:
                edits.append(_Edit(end, end, f"[{self._number(key)}]"))
        return strip_tracking(_apply_edits(text, _without_repeats(edits)))

    def _number(self, key: str) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._numbers) + 1
            self._waiting.append(key)
        return self._numbers[key]

    def _name(self, annotation: Item) -> None:
        """Remember the name of a source."""
        name = annotation.get("title") or annotation.get("filename")
        key = _key(annotation)
        if name and key:
            self._names[key] = shorten_name(str(name))


def source_keys(sources: object) -> list[str]:
    """Return the keys by which the page tells the host's sources apart, each once."""
    keys: list[str] = []
    for source in content_parts(sources):
        own_id = value_at(source, "source", "id")
        documents = as_list(source.get("document"))
        metadata = as_list(source.get("metadata"))
        for _, row in zip_longest(documents, metadata[: len(documents)]):
            keys.append(str(value_at(row, "source") or own_id or "N/A"))
    return list(dict.fromkeys(keys))


def _key(annotation: Item) -> str:
    """Return the key of a source; empty if the annotation is not a source."""
    match annotation.get("type"):
        case "url_citation":
            return strip_tracking(str(annotation.get("url") or ""))
        case "file_citation":
            return str(annotation.get("file_id") or annotation.get("filename") or "")
    return ""


def _range(annotation: Item, text: str) -> tuple[int, int]:
    """Return the first position of an annotation's text, and the one behind the last.

    `end_index` is documented as the last character, but it is the one behind it
    (recorded, 148 of 149). A file's `index` is the place of the citation.
    """
    start = annotation.get("start_index", annotation.get("index"))
    last = annotation.get("end_index", annotation.get("index"))
    if not isinstance(start, int) or not isinstance(last, int):
        return len(text), len(text)
    before = text[last - 1 : last]
    behind = text[last : last + 1]
    is_in_word = before.isalnum() and behind.isalnum()
    # What would cut a word, or leave the sentence's end behind it, is meant as
    # documented.
    ends_sentence = behind in (".", "!", "?") and last > start
    end = last + 1 if is_in_word or ends_sentence else last
    return min(start, len(text)), min(end, len(text))


def _apply_edits(text: str, edits: Iterable[_Edit]) -> str:
    """Return a text with the edits, in the order of their places in it."""
    pieces: list[str] = []
    done = 0
    # Where two edits overlap, what both replace is left out once.
    for edit in sorted(edits, key=_edit_place):
        pieces += [text[done : edit.start], edit.text]
        done = max(done, edit.end)
    pieces.append(text[done:])
    return "".join(pieces)


def _without_repeats(edits: Iterable[_Edit]) -> list[_Edit]:
    """Return the edits without numbers that stand directly behind the same number.

    An annotation often cites the page that the link beside it names.
    """
    kept: list[_Edit] = []
    end = 0
    number = ""
    for edit in sorted(edits, key=_edit_place):
        repeats = edit.start <= end and number.endswith(edit.text)
        if repeats:
            kept.append(edit._replace(text=""))
        else:
            kept.append(edit)
            number = edit.text
        end = max(end, edit.end)
    return kept


def _edit_place(edit: _Edit) -> tuple[int, int]:
    return edit.start, edit.end


def chat_annotations(item: Item, before: int) -> list[Item]:
    """Return the pages that a message cites, with their positions in the answer.

    `before` is where the message begins in it, counted without tracking parameters.
    """
    annotations: list[Item] = []
    for part in content_parts(item.get("content")):
        find_position = _position_finder(part_text(part))
        for annotation in content_parts(part.get("annotations")):
            if annotation.get("type") != "url_citation":
                continue
            cited = {
                "url": _key(annotation),
                "title": shorten_name(str(annotation.get("title") or "")),
                "start_index": before + find_position(annotation.get("start_index")),
                "end_index": before + find_position(annotation.get("end_index")),
            }
            annotations.append({"type": "url_citation", "url_citation": cited})
        before += find_position(None)
    return annotations


def _position_finder(text: str) -> Callable[[object], int]:
    """Return what finds a place of a text again when tracking parameters are gone.

    What is no place is the end.
    """
    matches = list(_TRACKING.finditer(text))
    starts = [match.start() for match in matches]
    removed_before = [0, *accumulate(len(match[0]) for match in matches)]

    def find(position: object) -> int:
        """Return the place in the text without tracking parameters."""
        old_position = position if isinstance(position, int) else len(text)
        return old_position - removed_before[bisect_left(starts, old_position)]

    return find


# --------------------------------------------------------------------------------------
# owui_chat.commentary
#
# Commentary of the model: how the host stores it, and when it is the answer.
# --------------------------------------------------------------------------------------


COMMENTARY_TYPE = "openai_responses:remark"
"""The type of the item that shows commentary; the host sends it to no model."""


def closing_commentary(output: Sequence[Item]) -> Item | None:
    """Return the commentary that is the last output of a run or of its last response."""
    if open_calls(output):
        return None
    for item in reversed(output):
        if is_call(item) or is_call_output(item) or is_approval_request(item):
            return None
        if item_type(item) == "message" and message_text(item).strip():
            return item if is_commentary(item) else None
    return None


# --------------------------------------------------------------------------------------
# owui_chat.render.completions
#
# Run events as Chat Completions for plain HTTP clients.
#
# They are streamed or in one piece. Open calls are for the client; they come at the end.
# Commentary is shown as reasoning, so that the text is only the answer. If a run ends
# with commentary, it is repeated as the answer.
# --------------------------------------------------------------------------------------


_GAP = "\n\n"
_FINISH_REASONS = {"max_output_tokens": "length", "content_filter": "content_filter"}


class ChunkRenderer:
    """Shows one run as growing text and reasoning, which includes commentary.

    `_length` counts the characters of the text so far. `_last_part` names the part of
    the last text of each kind, and `_commentary` has its items by their output indexes.
    """

    def __init__(self, completion_id: str, created: int, model: str) -> None:
        """Take the fields of every chunk: its id, its time in seconds, the model."""
        self.head = {
            "id": completion_id,
            "object": "chat.completion.chunk",
            "created": created,
            "model": model,
        }
        self._open_calls: dict[str, Item] = {}
        self._held = HoldbackBuffer(OPEN_TRACKING)
        self._length = 0
        self._last_part: dict[str, object] = {}
        self._commentary: dict[int, Item] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; a client without a chat stores nothing."""
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
        """Yield more reasoning, behind a blank line if another part begins."""
        gap = self._gap("reasoning", (event.output_index, event.part))
        yield from self._add_reasoning(gap + text)

    def _end_message(self, event: ItemDone) -> Chunks:
        """Yield the rest of a message, its citations and its files."""
        rest = strip_tracking(self._held.rest())
        if event.output_index in self._commentary:
            self._commentary[event.output_index] = event.item
            yield from self._add_reasoning(rest)
        else:
            yield from self._add_text(rest)
            before = self._length - len(_clean_text(event.item))
            annotations = chat_annotations(event.item, before)
            if annotations:
                yield self._chunk({"annotations": annotations})
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

    def _gap(self, kind: str, part: object) -> str:
        """Return the blank line before a text of another part than the last one."""
        before = self._last_part.get(kind, part)
        self._last_part[kind] = part
        return "" if before == part else _GAP

    def _end(self, event: RunDone) -> Chunks:
        """Yield the end of the run: open calls, a finish reason or an error, the usage."""
        yield from self._add_text(self._held.rest())
        closing = closing_commentary(event.output)
        if closing and closing in self._commentary.values():
            gap = _GAP if self._length else ""
            yield from self._add_text(gap + _clean_text(closing))
        for index, call in enumerate(self._open_calls.values()):
            tool_call = {"index": index, **chat_tool_call(call)}
            yield self._chunk({"tool_calls": [tool_call]})
        error = _error(event.ending)
        if error:
            yield error
        else:
            has_calls = bool(self._open_calls)
            yield self._chunk({}, _finish_reason(event.ending, has_calls))
        sums = {**client_usage(event), **metadata_field(event)}
        if sums:
            yield {**self.head, "choices": [], **sums}


def _chat_image(item: Item) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": image_url(item)}}


def chat_tool_call(item: dict[str, Any]) -> dict[str, Any]:
    """Return a call in the form of Chat Completions."""
    call_id = item["call_id"]
    name = item.get("name")
    if item_type(item) == "custom_tool_call":
        custom = {"name": name, "input": item.get("input") or ""}
        return {"id": call_id, "type": "custom", "custom": custom}
    function = {"name": name, "arguments": item.get("arguments") or "{}"}
    return {"id": call_id, "type": "function", "function": function}


def _error(ending: Ending) -> Chunk:
    """Return the chunk of an error; empty if an answer has a finish reason."""
    if not ending.is_failure or ending.kind == "incomplete":
        return {}
    return error_chunk(ending.sentence)


def _finish_reason(ending: Ending, has_calls: bool) -> str:
    """Return the word of Chat Completions for how an answer ended."""
    if ending.kind == "incomplete":
        return _FINISH_REASONS.get(ending.code or "", "stop")
    return "tool_calls" if has_calls else "stop"


def completion(
    ended: RunDone, completion_id: str, created: int, model: str
) -> dict[str, Any]:
    """Return the `chat.completion` of a run; only the error if it failed at once."""
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
        **client_usage(ended),
        **metadata_field(ended),
        **error,
    }


def completion_text(ended: RunDone) -> str:
    """Return the text of an answer: without commentary, unless that is all or the end."""
    return _GAP.join(_clean_text(message) for message in _answer_messages(ended))


def _answer_messages(ended: RunDone) -> list[Item]:
    """Return the messages that are the answer; commentary only if that is all."""
    messages = [item for item in ended.output if item_type(item) == "message"]
    closing = closing_commentary(ended.output)
    answer = [
        message
        for message in messages
        if not is_commentary(message) or message == closing
    ]
    return answer or messages


def _clean_text(message: Item) -> str:
    return strip_tracking(message_text(message))


def _annotations(ended: RunDone) -> list[Item]:
    """Return the citations of an answer, at their places in its whole text."""
    annotations: list[Item] = []
    before = 0
    for message in _answer_messages(ended):
        annotations += chat_annotations(message, before)
        before += len(_clean_text(message)) + len(_GAP)
    return annotations


def _message(ended: RunDone) -> dict[str, Any]:
    """Return the message of a run, with the fields that it has anything for."""
    optional = {
        "reasoning_content": _progress(ended),
        "annotations": _annotations(ended),
        "images": [_chat_image(item) for item in ended.output if has_image(item)],
        "tool_calls": [chat_tool_call(call) for call in open_calls(ended.output)],
    }
    message = {"role": "assistant", "content": completion_text(ended)}
    return message | {name: value for name, value in optional.items() if value}


def _progress(ended: RunDone) -> str:
    """Return the reasoning and commentary before the answer."""
    answer_ids = {id(message) for message in _answer_messages(ended)}
    texts: list[str] = []
    for item in ended.output:
        is_step = is_commentary(item) and id(item) not in answer_ids
        if is_step or is_reasoning(item):
            texts += [text for _, text in item_texts(item) if text]
    return strip_tracking(_GAP.join(texts))


# --------------------------------------------------------------------------------------
# owui_chat.host_tools
#
# What Open WebUI's own texts and tools mean: failed results, `call_tool`.
# --------------------------------------------------------------------------------------


CALL_TOOL = "call_tool"
"""The builtin tool that runs another one by its name."""

HOST_ERROR_PREFIXES = ("error:", "exception:", "traceback", "http error!")
"""The beginnings of results that the host marks as failed, in lower case."""

TOOL_IMAGES_PREFIX = "Here are the images from the tool results above."
"""The beginning of the user message that the host makes of the images of tools."""


def read_call_tool(arguments: JsonObject) -> tuple[Any, dict[str, Any]] | None:
    """Return the name and the arguments in a call of `call_tool`, None if invalid."""
    params = parse_json_object(arguments.get("params"))
    return None if params is None else (arguments.get("tool_name"), params)


# --------------------------------------------------------------------------------------
# owui_chat.input.attachments
#
# Images and files that people or tools attached, as input parts.
#
# The API reads PNG, JPEG, WEBP and GIFs of one frame, told by their first bytes, and
# documents by their type. The name of a document counts first, because the type that
# browsers declare differs between systems. Open WebUI keeps with a message of the user
# the files it came with, and puts only the images into what it sends
# (utils/middleware.py:2124). What cannot be sent with the message that is asked is an
# error; in place of one at an earlier message the model gets a note, so that the chat
# goes on.
#
# A chat stores images of tools by their addresses. The host reads them for the next
# request, but moves them out of the outputs into a message that no one wrote
# (utils/misc.py:393); they go back to their outputs here. The chat's row tells how many
# belong to each output of ours. Of the host's outputs, whose round goes on before it is
# stored, the last one gets them all.
# --------------------------------------------------------------------------------------


_SIGNATURE = re.compile(
    rb"(?P<png>\x89PNG\r\n\x1a\n)|(?P<jpeg>\xff\xd8\xff)|(?P<gif>GIF8)|"
    rb"(?P<webp>RIFF.{4}WEBP)",
    re.DOTALL,
)
_HEAD = 24
"""Characters of base64 that contain every signature."""
_GIF_FRAME = b"\x00\x21\xf9\x04"
"""Stands before each frame of an animated GIF."""


def _image_type(content: bytes) -> str:
    """Return the media type of an image; empty if the API cannot read it."""
    signature = _SIGNATURE.match(content)
    if signature is None:
        return ""
    if signature["gif"] and content.count(_GIF_FRAME) > 1:
        return ""  # it moves
    return f"image/{signature.lastgroup}"


def image_data_url(content: bytes) -> str:
    """Return an image as a data URL; empty if the API cannot read it."""
    media_type = _image_type(content)
    if not media_type:
        return ""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"


def _readable_url(url: str) -> str:
    """Return the address of an image with its real type; empty if unreadable.

    The API itself fetches images from the web.
    """
    if url.startswith(("https://", "http://")):
        return url
    label, _, payload = url.partition(";base64,")
    if label[:5].lower() != "data:" or len(url) > _MAX_IMAGE_URL:
        return ""
    media_type = _encoded_type(payload)
    if not media_type:
        return ""
    return f"data:{media_type};base64,{payload}"


def _encoded_type(payload: str) -> str:
    """Return the media type of an image in base64; a GIF is read completely."""
    try:
        media_type = _image_type(base64.b64decode(payload[:_HEAD]))
        if media_type == "image/gif":
            return _image_type(base64.b64decode(payload))
    except ValueError:  # no base64, or not even ASCII
        return ""
    return media_type


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
    """Return the media type of a document; empty if the API cannot read it."""
    suffix = name.rpartition(".")[2].lower()
    if suffix in _PLAIN_TEXT.split():
        return "text/plain"
    if suffix in _DOCUMENT_TYPES:
        return _DOCUMENT_TYPES[suffix]
    media_type = declared.partition(";")[0].strip().lower()
    if media_type in _DOCUMENT_TYPES.values() or media_type.startswith("text/"):
        return media_type
    return ""


def document_part(name: str, media_type: str, content: bytes) -> Item:
    """Return a document as a part of a content."""
    url = f"data:{media_type};base64,{base64.b64encode(content).decode()}"
    return {"type": "input_file", "filename": name, "file_data": url}


GONE_FILE = (
    "{} cannot be read: it is gone, or it is not yours. Remove it from the message and "
    "send it again."
)
_UNKNOWN_IMAGE = (
    "{} is in a format that the model cannot read. It reads PNG, JPEG, WEBP, and GIF "
    "without animation: convert it and send it again."
)
_LARGE_IMAGE = (
    "{} is larger than the 50 MB that the model reads, and Open WebUI could not make it "
    "smaller. Attach a smaller one, of up to 50 megapixels."
)
_SVG_AS_TEXT = (
    "The model reads {} as text and cannot see the image. Attach a PNG instead."
)
_Scale = Callable[[str], bytes]
"""Returns an image in base64 in fewer bytes, or nothing."""

_MAX_IMAGE_URL = 66_000_000
"""An image of 50 MB in base64: the limit is an assumption."""
_MAX_IMAGES = 1500
_MAX_INPUT_CHARACTERS = 512_000_000
_TOO_MUCH = (
    f"[An image or file is left out: one request takes {_MAX_IMAGES} images and "
    f"{_MAX_INPUT_CHARACTERS // 1_000_000} MB.]"
)


def attach_files(
    parts: Sequence[ChatPart], rows: JsonObject, metadata: JsonObject
) -> list[ChatPart]:
    """Return a chat in which the user's messages have the files they came with.

    `rows` are the messages of the chat's row. Without a row only the files of the last
    message are known as such; all others are put at the first one.
    """
    users = user_messages(parts)
    files: dict[int, list[Attachment]] = {}
    if rows:
        for position, user in users.items():
            if user.stored:
                files[position] = _read_attachments(user.stored.row.get("files"))
    elif users:
        own, others = _files_without_row(metadata)
        files[max(users)] = own
        files[min(users)] = [*others, *files.get(min(users), [])]
    result = list(parts)
    for position, attachments in files.items():
        result[position] = users[position]._replace(attachments=attachments)
    return result


def _read_attachments(files: object) -> list[Attachment]:
    """Return the files that came with a message; the host reads knowledge itself."""
    attachments: list[Attachment] = []
    for row in content_parts(files):
        kind = row.get("type")
        is_usable = kind in ("file", "image") and row.get("id")
        if is_usable and not row.get("knowledge"):
            name = shorten_name(str(row.get("name") or ""))
            content_type = str(row.get("content_type") or "")
            is_image = kind == "image" or content_type.startswith("image/")
            attachment = Attachment(str(row["id"]), name, content_type, is_image)
            attachments.append(attachment)
    return attachments


def resolve_images(parts: Sequence[ChatPart], scale: _Scale) -> list[ChatPart]:
    """Return a chat in which the API can read every image of a message.

    `scale` makes one smaller that is too large. Raises InvalidRequest for an unreadable
    one in the message that is asked.
    """
    question = question_index(parts)
    resolved: list[ChatPart] = []
    for position, part in enumerate(parts):
        if isinstance(part, UserMessage):
            is_asked = position == question
            resolved.append(_with_readable_images(part, scale, is_asked=is_asked))
        else:
            resolved.append(part)
    return resolved


def svg_notice(parts: Sequence[ChatPart]) -> str:
    """Return what a person is told who attached an SVG, which the host sends as a file."""
    asked = user_messages(parts).get(question_index(parts))
    files = asked.attachments if asked else ()
    names = [f.name for f in files if f.content_type.startswith("image/svg")]
    if not names:
        return ""
    return _SVG_AS_TEXT.format(", ".join(names))


def image_length(part: ChatPart) -> int:
    """Return the length of the data URLs of a message."""
    if not isinstance(part, UserMessage):
        return 0
    return sum(len(str(row.get("image_url"))) for row in part.content)


def question_index(parts: Sequence[ChatPart]) -> int:
    """Return the place of the last message of the user."""
    return max(user_messages(parts), default=-1)


def part_or_note(part: Item | str, *, is_asked: bool) -> Item:
    """Return a part, or the note that replaces it in an earlier message.

    A text says why there is no part; for the message that is asked it is raised, as
    InvalidRequest.
    """
    if not isinstance(part, str):
        return part
    if is_asked:
        raise InvalidRequest(part)
    return {"type": "input_text", "text": f"[{part}]"}


def fit_input(items: Sequence[Item]) -> list[Item]:
    """Return `items` with a note for each of the oldest images and files that are too
    many for a request.
    """
    room = _Room()
    newest_first = [_fit_item(item, room) for item in reversed(items)]
    return newest_first[::-1]


@dataclass
class _Room:
    """What a request can still take: images, and characters of images and files."""

    images: int = _MAX_IMAGES
    characters: int = _MAX_INPUT_CHARACTERS

    def take(self, content: str, *, is_image: bool) -> bool:
        """Take the room that a part needs; say whether there was enough.

        What is too much also takes its room: nothing older is sent in its place.
        """
        self.characters -= len(content)
        if is_image:
            self.images -= 1
        return self.images >= 0 and self.characters >= 0


def _fit_item(item: Item, room: _Room) -> Item:
    key = "output" if "output" in item else "content"
    rows = item.get(key)
    if not isinstance(rows, list) or not any(_file_content(row) for row in rows):
        return item
    newest_first = [_fit_part(part, room) for part in reversed(rows)]
    return {**item, key: newest_first[::-1]}


def _file_content(part: Any) -> str:
    """Return the image or file that a part holds, as a data URL; empty for none."""
    if not isinstance(part, dict):
        return ""
    return str(part.get("image_url") or part.get("file_data") or "")


def _fit_part(part: Item, room: _Room) -> Item:
    content = _file_content(part)
    if not content:
        return part
    if room.take(content, is_image=item_type(part) == "input_image"):
        return part
    return {"type": "input_text", "text": _TOO_MUCH}


def _files_without_row(
    metadata: JsonObject,
) -> tuple[list[Attachment], list[Attachment]]:
    """Return the files of the last message, and others but for a model's knowledge."""
    own = _read_attachments(value_at(metadata, "user_message", "files"))
    knowledge = value_at(metadata, "model", "info", "meta", "knowledge")
    known = {str(row.get("id")) for row in content_parts(knowledge)}
    known.update(attachment.file_id for attachment in own)
    others = [
        attachment
        for attachment in _read_attachments(metadata.get("files"))
        if attachment.file_id not in known
    ]
    return own, others


def _with_readable_images(
    message: UserMessage, scale: _Scale, *, is_asked: bool
) -> UserMessage:
    """Return a message in which the API can read every image (`resolve_images`).

    The host puts the attached images into a message in their order, without names.
    """
    images = [part for part in message.content if part.get("image_url")]
    if not images:
        return message
    names = [file.name for file in message.attachments if file.is_image]
    if len(names) != len(images):
        names = ["" for _ in images]
    remaining = iter(names)
    parts: list[Item] = []
    for part in message.content:
        readable: Item | str = part
        if part.get("image_url"):
            readable = _readable_image(part, next(remaining), scale)
        parts.append(part_or_note(readable, is_asked=is_asked))
    return message.with_content(parts)


def _readable_image(part: Item, name: str, scale: _Scale) -> Item | str:
    """Return an image that the API can read, or why there is none."""
    url = str(part["image_url"])
    is_held = url[:5].lower() == "data:"
    if is_held and len(url) > _MAX_IMAGE_URL:
        readable = image_data_url(scale(url.partition(",")[2]))
        problem = _LARGE_IMAGE
    else:
        readable = _readable_url(url)
        problem = _UNKNOWN_IMAGE if is_held else GONE_FILE
    if not readable:
        return problem.format(name or "An image")
    return {**part, "image_url": readable}


_HOST_PROMPT = f"{TOOL_IMAGES_PREFIX} Please analyze them."

UNREADABLE_IMAGE = "[An image is in a format that you cannot read; the user sees it.]"
"""Replaces an image of a tool that the API would refuse."""


def add_tool_images(parts: Sequence[ChatPart], rows: JsonObject) -> list[ChatPart]:
    """Return a chat without the host's own messages, their images at their outputs.

    `rows` are the messages of the chat's row.
    """
    urls_by_position: dict[int, list[str]] = {}
    for position, user in user_messages(parts).items():
        urls = _tool_image_urls(user)
        if urls:
            urls_by_position[position] = urls
    if not urls_by_position:
        return list(parts)
    counts = _image_counts(rows)
    result: list[ChatPart] = []
    # The outputs at the end of the result that have no images yet.
    outputs: list[ToolMessage] = []
    for position, part in enumerate(parts):
        urls = urls_by_position.get(position, [])
        if urls and outputs:
            result[-len(outputs) :] = _assign_images(outputs, urls, counts)
            outputs.clear()
            continue
        result.append(part)
        if isinstance(part, ToolMessage):
            outputs.append(part)
        else:
            outputs.clear()
    return result


def tool_image(url: str) -> Item:
    """Return an image of a tool as a part of its output."""
    readable = _readable_url(url)
    if not readable:
        return {"type": "input_text", "text": UNREADABLE_IMAGE}
    return {"type": "input_image", "detail": "auto", "image_url": readable}


def append_images(text: str, images: Sequence[Item]) -> str | list[Item]:
    """Return the output of a tool: a text, followed by images if there are any."""
    if not images:
        return text
    return [{"type": "input_text", "text": text}, *images]


def _tool_image_urls(message: UserMessage) -> list[str]:
    """Return the images of a message that the host made; of any other none."""
    content = message.content
    if not content or content[0].get("text") != _HOST_PROMPT:
        return []
    urls = [str(image.get("image_url") or "") for image in content[1:]]
    if "" in urls:
        return []
    return urls


def _assign_images(
    outputs: Sequence[ToolMessage], urls: Sequence[str], counts: Mapping[str, int]
) -> list[ChatPart]:
    """Return the outputs with the images; the last gets all if the counts differ."""
    shares = [counts.get(output.call_id, 0) for output in outputs]
    if sum(shares) != len(urls):
        shares = [0 for _ in outputs]
        shares[-1] = len(urls)
    remaining = iter(urls)
    assigned: list[ChatPart] = []
    for output, share in zip(outputs, shares, strict=True):
        images = [tool_image(url) for url in islice(remaining, share)]
        with_images = append_images(str(output.output), images)
        assigned.append(output._replace(output=with_images))
    return assigned


def _image_counts(rows: JsonObject) -> dict[str, int]:
    """Return the number of images in each output, by the ids of their calls."""
    counts: dict[str, int] = {}
    for row in rows.values():
        for item in content_parts(value_at(row, "output")):
            call_id = item.get("call_id")
            if item.get("id") == f"fco_{call_id}":  # as our cards have it
                kinds = [item_type(part) for part in content_parts(item.get("output"))]
                counts[str(call_id)] = kinds.count("input_image")
    return counts


# --------------------------------------------------------------------------------------
# owui_chat.input.directive_words
#
# What Open WebUI's page says for two wishes, in each of its languages.
#
# Written by `scripts/directives.py`: the first digits of the SHA-256 of each text.
# --------------------------------------------------------------------------------------


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


# --------------------------------------------------------------------------------------
# owui_chat.input.directives
#
# The wishes "Add Details" and "More Concise" for a new version of an answer.
#
# The page sends the words of its own language as a last user message, behind the old
# answer from 0.12 on, before that behind the question (docs/reference/open-webui.md,
# "Around the user's message"). If the model has a verbosity, that is set instead. The
# request then ends with the question and begins like the request of the old answer, so
# the prompt cache and the earlier reasoning stay valid. The old answer is not sent,
# because the new one replaces it. A wish in a person's own words is left to the model.
# --------------------------------------------------------------------------------------


def words_digest(words: str) -> str:
    """Return the key of the table for words of the page."""
    return hex_digest(words.strip())[:6]


def take_directive(
    parts: Sequence[ChatPart], *, is_guided: bool
) -> tuple[list[ChatPart], str]:
    """Return the chat up to its question, and the requested verbosity.

    Without such a wish the chat is unchanged and the verbosity empty. `is_guided` says
    that the host announced a wish, as hosts do from 0.12 on.
    """
    users = user_messages(parts)
    if len(users) < 2:
        return list(parts), ""
    question, wish = list(users)[-2:]
    verbosity = _requested_verbosity(users[wish])
    is_announced = is_guided or wish == question + 1
    if not (verbosity and is_announced):
        return list(parts), ""
    return [*parts[: question + 1], *parts[wish + 1 :]], verbosity


def _requested_verbosity(message: UserMessage) -> str:
    """Return the verbosity that a message asks for with the words of the page."""
    digest = words_digest(message_text(message.item))
    if digest in DETAILED.split():
        return "high"
    if digest in CONCISE.split():
        return "low"
    return ""


# --------------------------------------------------------------------------------------
# owui_chat.input.prefix
#
# Everything that was sent before and around earlier messages, sent again unchanged.
#
# The host makes instructions and messages anew for each request. It puts retrieved text,
# results of a search and notes about files around the words that are asked
# (utils/middleware.py:645, 1444), and later around others. What a run sent that its chat
# does not hold is stored with it, so that later requests begin with the same bytes. It is
# encrypted: the instructions are the administrator's, and whoever reads the chat's row
# must read neither them nor the memories of its owner.
#
# Stored instructions never take the place of the present ones. They hold for the model of
# the host that they were given to, because a user writes the instructions of a base model,
# and an administrator those of a model of the workspace. In each request, also in one that
# continues an answer, the present instructions are compared with those that the chat has
# sent to this model, and the difference is sent behind them.
# --------------------------------------------------------------------------------------


_MAX_CHARACTERS = 200_000
"""Of one message: a chat's row is read and written whole."""
SAME_CONTEXT = (
    "(The context is one that was given earlier in this chat, unchanged.)\n\n"
)
"""What stands in the place of text that the request has already."""
_MIN_REPEATED = 500
"""Characters from which on repeated text is replaced."""


def _find_injected_context(message: UserMessage) -> JsonObject | None:
    """Return what stands around the words; None: nothing, too much, or other words.

    `words` is the digest of the user's words, `texts` are those of the message, the one
    with the words cut around them.
    """
    words = message.stored.words if message.stored else ""
    texts: list[Any] = [p["text"] for p in message.content if _is_input_text(p)]
    size = sum(len(text) for text in texts) - len(words)
    if not 0 < size <= _MAX_CHARACTERS:
        return None
    for index, text in enumerate(texts):
        if words in text:
            texts[index] = _cut_around(words, text)
            return {"words": text_digest(words), "texts": texts}
    return None


def _cut_around(words: str, text: str) -> list[str]:
    """Return what stands in front of the last place of some words, and behind it."""
    if not words:
        return [text, ""]
    before, _, after = text.rpartition(words)
    return [before, after]


def _apply_injected_context(
    message: UserMessage, words: str, injected: JsonObject
) -> UserMessage:
    """Return a message as it was sent, unless its words are no longer those."""
    texts: list[Item] = []
    others: list[Item] = []
    for part in message.content:
        if _is_input_text(part):
            texts.append(part)
        else:
            others.append(part)
    has_words = any(words in part["text"] for part in texts)
    if not has_words or injected.get("words") != text_digest(words):
        return message
    sent: list[Item] = []
    for text in injected["texts"]:
        whole = text if isinstance(text, str) else words.join(text)
        sent.append({"type": "input_text", "text": whole})
    return message.with_content([*sent, *others])


def _is_input_text(part: Item) -> bool:
    return part.get("type") == "input_text"


_SENT_KEY = "sent"

_Unseal = Callable[[str, str], object]
"""Returns the JSON value that was encrypted for a message's id, or None."""


class NewLine(NamedTuple):
    """A line that the instructions did not have before."""

    line_index: int
    """Its place among the lines of the new instructions."""
    text: str


class SentContext(NamedTuple):
    """What one run sent beside the chat.

    `instructions` and their changes belong to `model`, the host's id of the model. The
    first run of a branch stores its instructions whole, and so does a run whose change
    cannot be stated in lines. The others store the lines that were `new` compared with
    what the branch had sent, and those that were `gone`. `turn` is what the API's model
    was asked for.
    """

    injected: JsonObject | None = None
    model: str = ""
    instructions: str | None = None
    new: tuple[NewLine, ...] = ()
    gone: tuple[str, ...] = ()
    turn: Turn | None = None

    def wire(self) -> dict[str, Any]:
        """Return the form that is encrypted, without what there is not."""
        fields = self._asdict()
        fields["model"] = self.model or None
        fields["turn"] = self.turn.wire() if self.turn else None
        return {name: fields[name] for name in fields if fields[name] not in (None, ())}


_NOTHING = SentContext()


def add_sent_context(value: JsonObject, sealed: str) -> dict[str, Any]:
    """Return the value of a message's key, with what its run sent, encrypted."""
    if not sealed:
        return dict(value)
    return {**value, _SENT_KEY: sealed}


MAX_UNPACKED_TURNS = 2_000_000
"""Bytes of all turns of a chat, which are stored compressed: a chat of any size in the
row would unpack to a thousand times as much."""


def read_sent_context(
    chat: JsonObject, unseal: _Unseal, unpacked_left: JsonBudget
) -> dict[str, SentContext]:
    """Return what a chat's JSON holds of this, by the ids of the answers.

    What was not encrypted here for its chat and message is ignored: the owner of a chat
    can write its row, but must not write instructions. Of turns that are too much
    together the newest are read; a chat without its first one resets.
    """
    prefix = message_key("")
    contexts: dict[str, SentContext] = {}
    # The keys of a row stand in the order in which they were written.
    for key, value in reversed(list(chat.items())):
        sealed = as_mapping(value).get(_SENT_KEY)
        if key.startswith(prefix) and isinstance(sealed, str):
            # In an answer's own output the key is not the key of the message.
            message_id = str(value.get("message_id") or key.removeprefix(prefix))
            with suppress(Exception):  # another version may have written it
                wire = unseal(sealed, message_id)
                contexts[message_id] = _read_context(wire, unpacked_left)
    return contexts


class SentInstructions(NamedTuple):
    """The instructions that one branch of a chat has sent to a model."""

    first: str
    """They stand at the head of the chat."""
    lines: Sequence[str]
    """Those that hold after all changes."""
    changes: Mapping[str, Item]
    """The message that stands in front of a question, by the id of its answer."""


def sent_instructions(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    model: str,
    compacted: Set[str] = frozenset(),
) -> SentInstructions | None:
    """Return what this branch has sent to `model`; None if it has sent nothing.

    Changes in front of the first instructions that are left belong to others, which are
    gone, and are not sent again. A compaction replaces the changes in front of it, so
    after the answers that are `compacted` the first instructions are what is left.
    """
    first: str | None = None
    lines: Sequence[str] = ()
    changes: dict[str, Item] = {}
    for stored in stored_messages(parts):
        answer_id = stored.answer_id
        context = sent.get(answer_id, _NOTHING)
        if context.model == model and first is None:
            first = context.instructions
            lines = _lines(first or "")
        elif context.model == model:
            changes |= _change_in_front(answer_id, context)
            lines = _changed_lines(lines, context)
        if answer_id in compacted and first is not None:
            lines = _lines(first)
    if first is None:
        return None
    return SentInstructions(first, lines, changes)


def _change_in_front(answer_id: str, context: SentContext) -> dict[str, Item]:
    """Return the message that states a change, by the id of the answer to it."""
    message = _change_message(context)
    return {answer_id: message} if message else {}


def change_instructions(
    earlier: SentInstructions | None, instructions: str, model: str
) -> SentContext:
    """Return what tells `model` how its `instructions` differ from the earlier ones.

    Lines that only moved, or that occur more often than before, cannot be stated one by
    one: then the instructions are sent whole.
    """
    whole = SentContext(model=model, instructions=instructions)
    if earlier is None:
        return whole
    present = _lines(instructions)
    old_lines = set(earlier.lines)
    present_lines = set(present)
    new = [
        NewLine(index, line)
        for index, line in enumerate(present)
        if line not in old_lines
    ]
    gone = [line for line in earlier.lines if line not in present_lines]
    each_gone = tuple(dict.fromkeys(gone))
    change = SentContext(model=model, new=tuple(new), gone=each_gone)
    # The proof that the change says it all: applied to the old lines, it has to give the
    # present ones.
    if _changed_lines(earlier.lines, change) != present:
        return whole
    if not new and not gone:
        return SentContext()
    return change


def change_notice(change: SentContext) -> UserMessage | None:
    """Return the message that states a change, or None if nothing changed."""
    message = _change_message(change)
    return UserMessage(message) if message else None


def find_injected_context(parts: Sequence[ChatPart]) -> JsonObject | None:
    """Return what stands around the message that is asked, the last one of the row."""
    for part in reversed(parts):
        if isinstance(part, UserMessage) and part.stored:
            return _find_injected_context(part)
    return None


def drop_repeated_context(
    injected: JsonObject,
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    compacted: Set[str],
) -> JsonObject:
    """Return what stands around the message that is asked, without repeated text.

    The host puts the text of a chat's files in front of every question. Text that an
    earlier question has in front of it, as it was `sent`, is not sent a second time. A
    compaction, behind the answers that are `compacted`, replaces the earlier text.
    """
    earlier_texts = _injected_texts(parts, sent, compacted)
    texts: list[Any] = []
    for text in injected["texts"]:
        if isinstance(text, list) and _is_repeated(text[0], earlier_texts):
            texts.append([SAME_CONTEXT, text[1]])
        else:
            texts.append(text)
    return {**injected, "texts": texts}


def _injected_texts(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    compacted: Set[str],
) -> list[str]:
    """Return the texts of earlier questions around which the host put something, as sent.

    The last question of the row is the one that is asked: an answer that is continued
    was sent with it before.
    """
    questions = [
        (part, part.stored)
        for part in parts
        if isinstance(part, UserMessage) and part.stored
    ]
    texts: list[str] = []
    for question, stored in questions[:-1]:
        injected = sent.get(stored.answer_id, _NOTHING).injected
        if injected:
            message = _apply_injected_context(question, stored.words, injected)
            texts += [p["text"] for p in message.content if _is_input_text(p)]
        if stored.answer_id in compacted:
            texts.clear()
    return texts


def _is_repeated(before: str, earlier_texts: Sequence[str]) -> bool:
    """Say whether an earlier text contains what stands in front of the words."""
    if len(before) < _MIN_REPEATED:
        return False
    return any(before in text for text in earlier_texts)


def model_turns(
    parts: Sequence[ChatPart], sent: Mapping[str, SentContext], model: str
) -> dict[str, Turn]:
    """Return what `model` was asked for in this branch, from where that began."""
    turns: dict[str, Turn] = {}
    for stored in stored_messages(parts):
        turn = sent.get(stored.answer_id, _NOTHING).turn
        if turn is None or turn.model != model:
            continue
        if turn.base:  # here it began anew
            turns.clear()
        if turn.base or turns:
            turns[stored.answer_id] = turn
    return turns


def apply_sent_context(
    parts: Sequence[ChatPart],
    sent: Mapping[str, SentContext],
    changes: Mapping[str, Item],
    items: Mapping[str, Sequence[Item]],
) -> list[ChatPart]:
    """Return a chat with what was around the messages when they were sent.

    `changes` of the instructions, and `items` behind them, stand in front of messages,
    by the ids of the answers.
    """
    applied: list[ChatPart] = []
    for part in parts:
        if not isinstance(part, UserMessage) or part.stored is None:
            applied.append(part)
            continue
        answer_id = part.stored.answer_id
        if answer_id in changes:
            applied.append(UserMessage(changes[answer_id]))
        applied += [UserMessage(item) for item in items.get(answer_id, ())]
        injected = sent.get(answer_id, _NOTHING).injected or {}
        applied.append(_apply_injected_context(part, part.stored.words, injected))
    return applied


def _change_message(change: SentContext) -> Item | None:
    """Return the message that tells changed instructions, or None for no change."""
    lines: list[str] = []
    if change.instructions is not None:
        lines += ["They are now:", change.instructions]
    if change.new:
        lines += ["New lines:", *(line.text for line in change.new)]
    if change.gone:
        lines += ["Lines that no longer hold:", *change.gone]
    if not lines:
        return None
    text = "\n".join(["The instructions have changed.", *lines])
    return text_message("developer", text)


def _changed_lines(lines: Sequence[str], change: SentContext) -> list[str]:
    """Return the lines of instructions after a change of them."""
    if change.instructions is not None:
        return _lines(change.instructions)
    # The old lines that still hold keep their order; each new one is put where it stands
    # in the new text, with as many old ones in front as are missing there.
    gone = set(change.gone)
    kept = [line for line in lines if line not in gone]
    changed: list[str] = []
    used = 0
    for index, text in change.new:
        before = max(index - len(changed), 0)
        changed += kept[used : used + before]
        changed.append(text)
        used += before
    return changed + kept[used:]


def _lines(text: str) -> list[str]:
    """Return the lines that are not empty; others mean nothing."""
    return [line for line in text.splitlines() if line.strip()]


def _read_context(wire: Any, unpacked_left: JsonBudget) -> SentContext:
    """Return what `wire`, which was encrypted here, says."""
    injected = wire.get("injected")
    if injected:
        injected = {"words": injected["words"], "texts": injected["texts"]}
    return SentContext(
        injected=injected or None,
        model=wire.get("model", ""),
        instructions=wire.get("instructions"),
        new=tuple(NewLine(index, text) for index, text in wire.get("new", ())),
        gone=tuple(wire.get("gone", ())),
        turn=_read_stored_turn(wire.get("turn"), unpacked_left),
    )


def _read_stored_turn(wire: object, unpacked_left: JsonBudget) -> Turn | None:
    """Return a turn, or None if there is none, or too much of it."""
    if not wire:
        return None
    try:
        return read_turn(str(wire), unpacked_left)
    except JsonTooLarge:
        return None


# --------------------------------------------------------------------------------------
# owui_chat.input.summary
#
# What Open WebUI tells of a conversation in the system prompt: nobody's instruction.
#
# It stores a summary of a long chat with the chat, where the owner of the chat can write
# any text, and an imported chat brings its own. It appends what it finds to the system
# prompt (utils/middleware.py:2163 of 0.12.4). For a model that is mentioned in a channel,
# it puts what all members wrote into the system prompt (routers/channels.py:1344). Here
# both are taken out again: the model reads them as a message of the user.
# --------------------------------------------------------------------------------------


_HEADING = "[CONVERSATION SUMMARY]\n"


def take_summary(instructions: str) -> tuple[str, str]:
    """Return the instructions without a summary, and the summary with its heading.

    The heading decides, not what is stored: Open WebUI takes a summary from a key of a
    message, from an item of an answer, or from a column that the chat's row lacks
    (utils/context_compaction.py:309, models/chat_messages.py:275). What it appended
    behind the summary goes with it: where that begins, only its owner could say.
    """
    before, heading, summary = instructions.partition(_HEADING)
    if not heading:
        return instructions, ""
    return before.rstrip("\n"), heading + summary


_THREAD_HEADING = "Here's the thread history:\n"


def take_thread(instructions: str) -> tuple[str, str]:
    """Return the instructions for a channel without its messages, and these.

    What Open WebUI says behind them goes with them.
    """
    before, heading, thread = instructions.partition(_THREAD_HEADING)
    return before.rstrip("\n"), heading + thread


# --------------------------------------------------------------------------------------
# owui_chat.storage.details_carrier
#
# Records carried by the `reasoning_details` of reasoning items.
#
# The host stores the details of a reasoning item and returns them with later requests for
# the same model, but without their places in the message (docs/reference/open-webui.md,
# "Reasoning details"). So each entry names its response and its place there:
#
#     {"type": "reasoning.encrypted", "data": ..., "item": the rest of the reasoning}
#     {"type": "openai_responses.item", "item": ..., "shown": a text, or its length}
#     {"type": "openai_responses.turn", "origin": ..., "notes": ...}
#
# The `signature` of a response's first entry holds for them all, because clients can send
# entries of their own; earlier writers signed each entry. Of others only what cannot harm
# is read (`storage.records`).
#
# A message is stored without its text if the shown text is the same. Texts get the names
# of their records, so that the history is built in one way for all carriers.
# --------------------------------------------------------------------------------------


_FORMAT = "openai-responses-v1"
_REASONING = "reasoning.encrypted"
_ITEM = "openai_responses.item"
_TURN = "openai_responses.turn"


class DetailTurn(NamedTuple):
    """A response as it came back, with its notes."""

    items: Sequence[tuple[Item, str | int]]
    """With the text that the host has for each, or its length if the item has none."""
    origin: Origin
    notes: Mapping[str, Any]


def write_details(
    name: str,
    items: Iterable[tuple[Item, str]],
    origin: Origin,
    notes: Mapping[str, Any],
    sign: Sign | None,
) -> list[Item]:
    """Return the entries of a response from its items and the text shown for each.

    `name` distinguishes the response from all others. Plain reasoning is not kept beyond
    its run.
    """
    head = {"type": _TURN, "origin": origin.wire(), "notes": dict(notes), "index": 0}
    named = {"format": _FORMAT, "turn": name}
    entries = [
        _entry(replayed, shown)
        for item, shown in items
        for replayed in replay_output([item], with_reasoning=True)
        if not has_plain_reasoning(replayed)
    ]
    carried = [
        {**entry, **named, "index": index} for index, entry in enumerate(entries, 1)
    ]
    return [sign_object({**head, **named}, sign, carried), *carried]


def read_details(details: object, sign: Sign | None) -> list[DetailTurn]:
    """Return the responses in the details of a message of the host, in order."""
    turns: dict[str, list[Item]] = {}
    for entry in content_parts(details):
        if isinstance(entry.get("index"), int):
            turns.setdefault(str(entry.get("turn")), []).append(entry)
    for turn in turns.values():
        turn.sort(key=itemgetter("index"))
    read = [_read_turn(turn, sign) for turn in turns.values()]
    return [turn for turn in read if turn is not None]


def _entry(item: Item, shown: str) -> Item:
    """Return the entry of an item; a message in its short form has no type."""
    if is_reasoning(item):
        rest = {
            name: value for name, value in item.items() if name != "encrypted_content"
        }
        return {"type": _REASONING, "data": item["encrypted_content"], "item": rest}
    typed = {"type": item_type(item), **item}
    kept = omit_shown_text(typed, shown)
    has_text = kept is typed
    return {"type": _ITEM, "item": kept, "shown": shown if has_text else len(shown)}


def _is_entry(entry: Item) -> bool:
    """Say whether an entry is a complete entry of ours."""
    if entry.get("format") != _FORMAT or not isinstance(entry.get("turn"), str):
        return False
    kind = entry.get("type")
    if kind == _TURN:
        return True
    is_whole = kind == _ITEM or (kind == _REASONING and "data" in entry)
    return is_whole and "type" in as_mapping(entry.get("item"))


def _read_turn(entries: Sequence[Item], sign: Sign | None) -> DetailTurn | None:
    """Return the response of some entries, which have one name; None for nothing."""
    head = entries[0]
    carried = entries[1:]
    if is_signed(head, sign, carried):
        items = [_carried_item(entry) for entry in carried]
        return _detail_turn(head, items, head.get("notes"))
    ours = [entry for entry in entries if _is_entry(entry)]
    if not ours:
        return None
    heads = [entry for entry in ours if entry["type"] == _TURN]
    head = heads[0] if heads else {}
    notes = head.get("notes") if is_signed(head, sign) else {}
    carried = [entry for entry in ours if entry["type"] != _TURN]
    return _detail_turn(head, _items_of_others(carried, sign), notes)


def _detail_turn(
    head: Item, items: Sequence[tuple[Item, str | int]], notes: object
) -> DetailTurn:
    origin = read_origin(head.get("origin"), "")
    return DetailTurn(items, origin, as_mapping(notes))


def _items_of_others(
    carried: Sequence[Item], sign: Sign | None
) -> list[tuple[Item, str | int]]:
    """Return what is used of entries without a common signature.

    Of an entry of somebody else the place in the shown text is used.
    """
    items = [_carried_item(entry) for entry in carried]
    safe_items = keep_unsigned_safe([item for item, _ in items])
    used: list[tuple[Item, str | int]] = []
    for entry, (item, shown), safe in zip(carried, items, safe_items, strict=True):
        if is_signed(entry, sign):
            used.append((item, shown))
        elif safe:
            used.append((safe, _length(shown) if shown else shown))
    return used


def _carried_item(entry: Item) -> tuple[Item, str | int]:
    """Return the item of an entry, and its text or the length of that."""
    item = entry["item"]
    shown = entry.get("shown")
    if entry["type"] == _REASONING:
        item = {**item, "encrypted_content": entry["data"]}
    return item, shown if isinstance(shown, str | int) else ""


def _length(shown: str | int) -> int:
    return shown if isinstance(shown, int) else len(shown)


def restore_from_details(
    parts: Iterable[ChatPart], sign: Sign | None
) -> tuple[list[ChatPart], dict[str, Record]]:
    """Return a chat whose texts name the records in its details, and those by id.

    Records without a text stand at the end of their run.
    """
    records: dict[str, Record] = {}
    restored: list[ChatPart] = []
    textless: list[AssistantText] = []
    for part in parts:
        if isinstance(part, UserMessage):  # the run of the model has ended
            restored += textless
            textless = []
        if not isinstance(part, AssistantText) or not part.details:
            restored.append(part)
            continue
        turns = read_details(part.details, sign)
        for piece in _name_records(part.text, turns, records):
            if piece.text:
                restored.append(piece)
            else:
                textless.append(piece)
    return [*restored, *textless], records


def _name_records(
    content: str, turns: Sequence[DetailTurn], records: dict[str, Record]
) -> Iterator[AssistantText]:
    """Yield the pieces of a text behind their records, which are added."""
    shown_texts = [shown for turn in turns for _, shown in turn.items if shown]
    texts = iter(_split_text(content if content.strip() else "", shown_texts))
    for turn in turns:
        for payload, shown in _payloads_of(turn):
            text = next(texts, "") if shown else ""
            record = _numbered_record(len(records), payload, turn.origin, shown)
            records[record.ulid] = record
            yield AssistantText(text, [record.ulid])
    for text in texts:
        yield AssistantText(text)


def _payloads_of(turn: DetailTurn) -> Iterator[tuple[list[Item], str | int]]:
    """Yield the items of each record of a turn, and what the page shows of it.

    A record ends with a message whose text the host shows, or with its response.
    """
    payload: list[Item] = []
    for number, (item, shown) in enumerate(turn.items, 1):
        payload.append(item)
        if shown or number == len(turn.items):
            yield payload, shown
            payload = []


def _numbered_record(
    number: int, payload: Sequence[Item], origin: Origin, shown: str | int
) -> Record:
    """Return a record of a request's own, with its number as the id."""
    return Record(
        ulid=f"{number:026d}",
        model="",
        created_at=0,
        payload=tuple(payload),
        message_id="",
        origin=origin,
        shown=text_digest(shown) if shown and isinstance(shown, str) else "",
    )


def _split_text(content: str, shown: Sequence[str | int]) -> list[str]:
    """Return the text of each shown message; the host joins them by a line's end.

    If a person changed the text so that the places do not fit, it stays in one piece.
    """
    texts: list[str] = []
    start = 0
    for text in shown[:-1]:
        length = _length(text)
        end = start + length
        # Open WebUI joins the messages of one answer by a line feed
        # (utils/misc.py:408).
        if length < 0 or content[end : end + 1] != "\n":
            return [content] if content else []
        texts.append(content[start:end])
        start = end + 1
    rest = content[start:]
    return [*texts, rest] if rest else texts


# --------------------------------------------------------------------------------------
# owui_chat.storage.output_carrier
#
# Records carried by the host's own stored output of a message.
#
# The history is built in one way for all carriers: here the texts get the markers that
# the chat does not show.
# --------------------------------------------------------------------------------------


_RECORD_TYPE = "openai_responses:kept"
_RECORD_ID = "kept_"


def record_item(ulid: str, value: JsonObject) -> Item:
    """Return a record as an item of the output; `before` is empty for the end.

    Whoever shows the answer writes the id of the message item that follows into it.
    """
    return {
        "type": _RECORD_TYPE,
        "id": f"{_RECORD_ID}{ulid}",
        "before": "",
        "kept": dict(value),
    }


class _Place(NamedTuple):
    """A place in an answer."""

    number: int
    """Of the part."""
    offset: int
    """In the text of the part."""


def output_values(messages: JsonObject) -> dict[str, Any]:
    """Return the values in the outputs of a chat's messages, in the form of its keys."""
    return {
        message_key(_item_id(item)): item.get("kept")
        for message in messages.values()
        for item in as_list(as_mapping(message).get("output"))
        if isinstance(item, dict) and item.get("type") == _RECORD_TYPE
    }


def stored_outputs(
    messages: JsonObject, last_id: str, replaced_id: str = ""
) -> dict[str, list[object]]:
    """Return the outputs of the branch that ends at `last_id`, by ids of answers.

    They are as the host stores them. Answers that follow one another are one run, with
    the id of the first. If an answer is written anew, the host appends the replaced one.
    """
    runs: dict[str, list[object]] = {}
    first_id = ""
    branch = list(walk_branch(messages, last_id))
    for answer_id, message in reversed(branch):
        if message.get("role") == "user":
            first_id = ""
            continue
        first_id = first_id or answer_id
        runs.setdefault(first_id, []).append(message.get("output"))
    if first_id:
        runs[first_id].append(value_at(messages, replaced_id, "output"))
    return runs


def restore_from_outputs(
    parts: Sequence[ChatPart], runs: Mapping[str, Sequence[object]]
) -> list[ChatPart]:
    """Return a chat whose texts name the records in its `runs`.

    An answer belongs to the stored message in front of it. One that differs from its
    run is not changed.
    """
    restored: list[ChatPart] = []
    answer: list[ChatPart] = []
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
    """Return an answer with the records in the outputs of its run."""
    run = [item for output in outputs for item in content_parts(output)]
    records = [item for item in run if item.get("type") == _RECORD_TYPE]
    if not records:
        return answer
    places = _find_places(answer, run)
    if not places.has_text and not _has_call(answer, run):
        return answer
    return _with_records(answer, records, places.by_id)


class _Places(NamedTuple):
    """Where the messages of a run stand in an answer."""

    by_id: Mapping[str, _Place]
    has_text: bool
    """Whether the answer has one of the run's texts unchanged."""


# How the host's answer is held against what it stored:
#
#   stored output                      what comes back for the next turn
#   -----------------------------      ---------------------------------
#   kept_1, before msg_1               0  AssistantText "Let me see."
#   msg_1      "Let me see."           1  ToolCall      call_1
#   call_1, output of call_1           2  ToolMessage   call_1
#   kept_2, before msg_2               3  AssistantText "It rains.\nTake a coat."
#   msg_2      "It rains."
#   kept_3, before msg_3
#   msg_3      "Take a coat."
#
# kept_1 belongs to (part 0, offset 0), kept_2 to (3, 0), kept_3 to (3, 10): behind the
# line feed. If a person edits "It rains.", kept_2 stays at the beginning of its part, and
# kept_3 has no place any more.
def _find_places(answer: Sequence[ChatPart], run: Sequence[Item]) -> _Places:
    """Return the place of each message of a run in an answer."""
    finder = _PlaceFinder(answer)
    for item in run:
        finder.follow(item)
    return _Places(finder.by_id, finder.has_text)


class _PlaceFinder:
    """Follows the items of a run through the answer that the host made of them.

    Texts are joined by line ends, and behind an output a new one begins
    (`convert_output_to_messages`). So a text has one place. If it was changed, the texts
    behind it have none, up to the next output. Commentary, which the host does not
    return, is placed behind the item before it.
    """

    def __init__(self, answer: Sequence[ChatPart]) -> None:
        self.by_id: dict[str, _Place] = {}
        self.has_text = False
        self._answer = answer
        self._outputs = {
            part.call_id: number
            for number, part in enumerate(answer)
            if isinstance(part, ToolMessage)
        }
        self._place: _Place | None = _Place(0, 0)
        """Where the next text is looked for; None up to the next output."""
        self._next_number = 0

    def follow(self, item: Item) -> None:
        """Note the place of the next item, if it has one."""
        if is_call_output(item):
            self._go_behind(item)
        elif self._place is None:
            return
        elif item.get("type") == COMMENTARY_TYPE:
            self.by_id[_item_id(item)] = self._place
        elif _host_text(item):
            start, end = _find_text(self._answer, self._place, item)
            self._place = end
            if start:
                self.by_id[_item_id(item)] = start
            if start and end:
                self.has_text = True

    def _go_behind(self, output: Item) -> None:
        """Go on behind an output, if the answer has it, but never back."""
        number = self._outputs.get(str(output.get("call_id")), -1)
        if number >= self._next_number:
            self._next_number = number + 1
            self._place = _Place(self._next_number, 0)


def _find_text(
    answer: Sequence[ChatPart], place: _Place, item: Item
) -> tuple[_Place | None, _Place | None]:
    """Return where the next text of a run begins, and where it ends.

    A changed text has no end, and begins if it is the first of its part. Code whose
    card was deleted ends where it would begin.
    """
    text = _host_text(item)
    number, offset = place
    whole = _part_text(answer, number)
    if offset and offset == len(whole):
        number += 1
        offset = 0
        whole = _part_text(answer, number)
    # Texts of messages without a tool between them are joined by a line feed
    # (utils/misc.py:408 of Open WebUI 0.12.4).
    gap = "\n" if offset else ""
    if whole.startswith(gap + text, offset):
        start = offset + len(gap)
        return _Place(number, start), _Place(number, start + len(text))
    if item.get("type") == CODE_CARD:
        return None, place
    is_first = whole != "" and offset == 0
    return (_Place(number, 0) if is_first else None), None


def _has_call(answer: Sequence[ChatPart], run: Sequence[Item]) -> bool:
    """Say whether an answer has a call of a run, or no text by which to know it."""
    if not any(isinstance(part, AssistantText) for part in answer):
        return True
    call_ids = {str(item.get("call_id")) for item in run if is_call(item)}
    calls = [part for part in answer if isinstance(part, ToolCall)]
    return any(call.call_id in call_ids for call in calls)


def _with_records(
    answer: Sequence[ChatPart], records: Iterable[Item], places: Mapping[str, _Place]
) -> list[ChatPart]:
    """Return an answer's parts, with the records at their places.

    A record whose text is gone has none.
    """
    end = _Place(len(answer), 0)
    by_number = defaultdict[int, dict[int, list[str]]](dict)
    for item in records:
        before = item.get("before")
        place = places.get(str(before)) if before else end
        if place:
            ulid = _item_id(item).removeprefix(_RECORD_ID).upper()
            by_number[place.number].setdefault(place.offset, []).append(ulid)
    restored: list[ChatPart] = []
    for number, part in enumerate(answer):
        if number in by_number:
            restored += _cut_at_records(part, by_number[number])
        else:
            restored.append(part)
    if end.number in by_number:
        restored += _cut_at_records(AssistantText(""), by_number[end.number])
    return restored


def _cut_at_records(
    part: ChatPart, ulids: Mapping[int, Sequence[str]]
) -> list[ChatPart]:
    """Return a part behind its records, which are given by their places in its text."""
    if not isinstance(part, AssistantText):
        return [AssistantText("", list(ulids.get(0, ()))), part]
    starts = sorted({0, *ulids})
    stops = [*starts[1:], None]
    pieces: list[ChatPart] = []
    for start, stop in zip(starts, stops, strict=True):
        named = list(ulids.get(start, ()))
        if start == 0:
            named += part.ulids
        pieces.append(AssistantText(part.text[start:stop].strip(), named))
    return pieces


def _part_text(answer: Sequence[ChatPart], number: int) -> str:
    """Return the text of a part; empty for another part, and behind the last one."""
    part = answer[number] if number < len(answer) else None
    return part.text if isinstance(part, AssistantText) else ""


def _host_text(item: Item) -> str:
    """Return what the host puts into the text of a later turn for a message or code."""
    if item.get("type") == CODE_CARD:
        return code_text(as_text(item.get("code")))
    if item.get("type") != "message":
        return ""
    parts = content_parts(item.get("content"))
    texts = [part.get("text") for part in parts if part.get("type") == "output_text"]
    return "".join(as_text(text) for text in texts)


def _item_id(item: Item) -> str:
    return str(item.get("id") or "")


# --------------------------------------------------------------------------------------
# owui_chat.storage.images
#
# Images that an answer made, as they are stored and sent back.
# --------------------------------------------------------------------------------------


def stored_item(event: ItemDone) -> Item:
    """Return what is kept of an item: of a stored image only where it is stored."""
    files = event.card.get("files")
    if not is_image_call(event.item) or not files:
        return event.item
    stored: Item = {"type": event.item["type"]}
    output_format = event.item.get("output_format")
    if output_format:
        stored["output_format"] = output_format
    return {**stored, "stored": files[0]["id"]}


def is_stored_image(item: JsonObject) -> bool:
    """Say whether `item` names a stored image."""
    return is_image_call(item) and isinstance(item.get("stored"), str)


def stored_image_ids(
    parts: Iterable[ChatPart], records: Mapping[str, Record]
) -> list[str]:
    """Return the ids of the stored images in the answers of a chat."""
    file_ids = _file_ids_by_record(records)
    if not file_ids:  # the texts need not be searched
        return []
    ulids: set[str] = set()
    for part in parts:
        if isinstance(part, AssistantText):
            ulids.update(part.ulids)
            ulids.update(piece.ulid for piece in split_at_markers(part.text))
    wanted: list[str] = []
    for ulid in ulids:
        wanted += file_ids.get(ulid, [])
    return wanted


def _file_ids_by_record(records: Mapping[str, Record]) -> dict[str, list[str]]:
    """Return the ids of the stored images in each record that has some."""
    file_ids: dict[str, list[str]] = {}
    for ulid, record in records.items():
        images = [item for item in record.payload if is_stored_image(item)]
        if images:
            file_ids[ulid] = [image["stored"] for image in images]
    return file_ids


def restore_images(
    records: Mapping[str, Record], images: Mapping[str, str]
) -> dict[str, Record]:
    """Return records with the stored images in them, as base64 by id.

    An image that the user may no longer read is left out.
    """
    return {
        ulid: record._replace(payload=tuple(_fill_images(record.payload, images)))
        for ulid, record in records.items()
    }


def _fill_images(payload: Iterable[Item], images: Mapping[str, str]) -> Iterator[Item]:
    for item in payload:
        if not is_stored_image(item):
            yield item
        elif item["stored"] in images:
            yield {**item, "result": images[item["stored"]]}


# --------------------------------------------------------------------------------------
# owui_chat.wording
#
# How numbers are written for people.
# --------------------------------------------------------------------------------------


def plural(count: int, noun: str) -> str:
    """Return a number with its noun: `1 round`, `2 rounds`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# --------------------------------------------------------------------------------------
# owui_chat.closing_line
#
# The last status line of an answer, of the pipe and of the agents.
# --------------------------------------------------------------------------------------


class AnswerFigures(NamedTuple):
    """What an answer took."""

    seconds: float
    is_failure: bool = False
    rounds: int = 0
    """Of an agent."""
    tool_calls: int = 0
    """Of an agent."""
    usage: Usage | None = None
    cost: float | None = None
    """US dollars; None if it is unknown or not shown."""
    notes: int = 0
    """Lines above this one: the page hides them until somebody opens them."""
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""
    usage_note: str = ""
    """What explains a large number of tokens."""
    failed_attempts: int = 0
    """How often the request was sent in vain, if it was sent again; else 0."""


def closing_line(figures: AnswerFigures) -> str:
    """Return the line: time, tokens and cost, then the rest, as far as it is known.

    A phone shows about 40 characters.
    """
    parts = [_beginning(figures)]
    if figures.usage:
        parts.append(f"{figures.usage.total:,} tokens")
    if figures.cost is not None:
        parts.append(format_money(figures.cost))
    if figures.rounds:
        parts.append(plural(figures.rounds, "round"))
    if figures.tool_calls:
        parts.append(plural(figures.tool_calls, "tool call"))
    cached_share = _cached_share(figures.usage)
    if cached_share:
        parts.append(f"{cached_share} % of the input cached")
    if figures.window_share > _NOTABLE_SHARE:
        parts.append(f"context {figures.window_share} % full")
    if figures.notes and not figures.failed_attempts:
        parts.append(plural(figures.notes, "note"))
    if figures.usage_note:
        parts.append(figures.usage_note)
    return " · ".join(parts)


_NOTABLE_SHARE = 50
"""Until then a chat can go on for long, and nobody needs to know."""


def _beginning(figures: AnswerFigures) -> str:
    """Return how an answer ended, and what that took."""
    if figures.failed_attempts:
        return f"Failed after {plural(figures.failed_attempts, 'attempt')}"
    word = "Interrupted after" if figures.is_failure else "Finished in"
    return f"{word} {_duration(figures.seconds)}"


def _duration(seconds: float) -> str:
    """Return a duration as people say it."""
    whole = round(seconds)
    if whole == 0:
        return "under a second"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s"


def _cached_share(usage: Usage | None) -> int:
    """Return how much of a run's input was cached, in percent."""
    if usage is None or not usage.input:
        return 0
    return 100 * usage.cached // usage.input


# --------------------------------------------------------------------------------------
# owui_chat.render.items
#
# The host's output items of one message, and the events that make them.
#
# The host builds these items from events. The place of an item counts over all responses
# of a run, and each event has an empty `choices` delta for stream filters that look for
# one (docs/reference/open-webui.md, "Native events" and "What a pipe yields").
#
# The page shows a call before it has an output. The host would run a call that never gets
# one, even if its arguments are incomplete, and would leave a call without a status out
# of the next turn (docs/reference/open-webui.md, "Rounds of tools").
#
# The host stores an item of unknown type unchanged and sends it to no model, and the page
# shows nothing for one without `content`. So records can be stored as items:
#
#     {"type": "openai_responses:kept", "id": "kept_{ulid}",
#      "before": id of a message item, "kept": what a message key would hold}
#
# Without an item in `before` the record belongs to the end of its message.
#
# A chunk that shows files on the page has no choice: otherwise the host would send them
# to the page twice (docs/reference/open-webui.md, "What a pipe yields").
# --------------------------------------------------------------------------------------


def call_host_item(item: Item) -> Item:
    """Return a call in the host's form; the text of a custom call is an argument."""
    # A call without a status of `completed`, `failed` or `rejected` is left out of the
    # next turn (utils/misc.py:394 of 0.12.4).
    shown = {"status": "completed", **_without_secrets(item)}
    if item_type(item) == "custom_tool_call":
        text = json.dumps({"input": shown.pop("input", "")}, ensure_ascii=False)
        shown |= {"type": "function_call", "arguments": text}
    return shown


def output_host_item(event: ToolOutput) -> Item:
    """Return a call's output with what its card shows; images by their address."""
    call_id = event.item["call_id"]
    output = event.item["output"]
    if isinstance(output, list):
        texts = [part for part in output if part.get("type") == "input_text"]
        parts = [*texts, *event.card.get("stored", ())]
    else:
        parts = [{"type": "input_text", "text": output}]
    item = {
        "type": "function_call_output",
        "id": f"fco_{call_id}",
        "call_id": call_id,
        "output": parts,
        "status": "failed" if event.failed else "completed",
    }
    for name in ("files", "embeds"):
        if name in event.card:
            item[name] = event.card[name]
    return item


def begun_host_item(item: Item) -> Item:
    """Return an item at its beginning; its texts follow as growth."""
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
    """Return a message with one text; refusals are shown as well."""
    return {
        **item,
        "type": "message",
        "role": "assistant",
        "status": item.get("status") or "completed",
        "content": [_text_part(text)],
    }


def reasoning_host_item(item: Item, seconds: int) -> Item:
    """Return reasoning with its texts as one part each, and its duration."""
    shown = {**_without_secrets(item), "status": "completed", "duration": seconds}
    for key in ("summary", "content"):
        parts = [part for part in content_parts(item.get(key)) if part_text(part)]
        if parts:
            text = "\n\n".join(part_text(part) for part in parts)
            shown[key] = [{**parts[0], "text": text}]
    return shown


def _without_secrets(item: Item) -> Item:
    """Remove fields that readers of the chat cannot use and others should not get."""
    # Open WebUI stores items as they come, and a shared chat shows the row to others.
    hidden = "encrypted_content"
    return {k: v for k, v in item.items() if k != hidden and v is not None}


def _text_part(text: str) -> Item:
    return {"type": "output_text", "text": text, "annotations": []}


_NOT_RUN = "Error: this was not run, because the answer was interrupted."

_DELTA_TYPES: Mapping[str, str] = {
    "text": "output_text.delta",
    "refusal": "output_text.delta",
    "summary": "reasoning_summary_text.delta",
    "reasoning": "reasoning_text.delta",
    "arguments": "function_call_arguments.delta",
    "code": "code.delta",
}


_FEW_FILES = 32
"""So many are shown again with each file; of more the page is told less often."""


class OutputItems:
    """Makes the events; `items` and `files` are what the host has stored so far."""

    def __init__(self) -> None:
        """Start without items."""
        self.items: list[Item] = []
        self.files: list[Item] = []
        self._turn_start = 0
        self._files_due = 0
        self._answered: set[object] = set()
        self._open_calls: dict[object, int] = {}
        self._records: dict[object, int] = {}

    def begin(self, item: Item) -> Chunk:
        """Return the event of a new item at the last place."""
        index = len(self.items)
        self.items.append(item)
        self._note_call(index, item)
        return _native("output_item.added", index, item=item)

    def _note_call(self, index: int, item: Item) -> None:
        """Remember which calls are open."""
        call_id = item.get("call_id")
        if is_call_output(item):
            self._answered.add(call_id)
            self._open_calls.pop(call_id, None)
        elif is_call(item) and call_id not in self._answered:
            self._open_calls[call_id] = index

    def end(self, index: int, item: Item) -> Chunk:
        """Return the event that replaces the item at `index`."""
        self.items[index] = item
        self._note_call(index, item)
        return _native("output_item.done", index, item=item)

    def update(self, index: int, **fields: Any) -> Chunk:
        """Return the event that changes fields of the item at `index`."""
        return self.end(index, {**self.items[index], **fields})

    def add(self, item: Item) -> Chunks:
        """Yield the events of an item that is complete at once."""
        yield self.begin(item)
        yield self.end(len(self.items) - 1, item)

    def add_marker(self, marker: str) -> Chunks:
        """Yield a separate message for a marker that no text follows."""
        index = len(self.items)
        item = message_host_item({"id": f"msg_kept_{index}"}, marker)
        yield self.begin(begun_host_item(item))
        yield self.end(index, item)

    def grow(self, index: int, kind: str, text: str) -> Chunk:
        """Return the event of more text; `kind` is that of a delta."""
        # All texts of one kind are shown as one part, so its number is 0.
        index_name = "summary_index" if kind == "summary" else "content_index"
        fields = {
            "item_id": self.items[index].get("id"),
            index_name: 0,
            "delta": text,
        }
        return _native(_DELTA_TYPES[kind], index, **fields)

    def add_files(self, card: JsonObject) -> Chunks:
        """Yield the files of a card; the page gets those of earlier cards again."""
        files = card.get("files")
        if not files:
            return
        yield host_event("files", {"files": files})
        if self.files:
            yield from self.show_files(files)
        self.files += files

    def show_files(self, more: Sequence[Item] = (), *, is_last: bool = False) -> Chunks:
        """Yield the chunk that shows files on the page only, with some `more`.

        It has all files, so if they are many, it comes less often; the last one for
        them.
        """
        count = len(self.files)
        is_due = count > _FEW_FILES if is_last else count >= self._files_due
        if not is_due:
            return
        self._files_due = count + count // _FEW_FILES
        event = host_event("chat:message:files", {"files": [*self.files, *more]})
        # With an empty list of choices Open WebUI ends there; a chunk with a choice it
        # would also send to the page as it is (utils/middleware.py:4938, 5460).
        yield {**event, "choices": []}

    def answer(self, event: ToolOutput) -> Chunks:
        """Yield the output of a call in the form in which the host would store it."""
        index = self._open_calls.get(event.item["call_id"])
        if index is not None and event.failed:
            yield self.update(index, status="failed")
        yield from self.add(output_host_item(event))

    def break_off_calls(self) -> Chunks:
        """Yield outputs for calls that a broken answer left open."""
        for index in list(self._open_calls.values()):
            yield from self.break_off(index, _NOT_RUN)

    def break_off(self, index: int, why: str) -> Chunks:
        """Yield the end of a call that got no output, and one that says why."""
        yield self.update(index, status="incomplete")
        output = {"call_id": self.items[index].get("call_id"), "output": why}
        yield from self.add(output_host_item(ToolOutput(index, output, failed=True)))

    def add_record(self, stored: StoredRecord, index: int | None) -> Chunks:
        """Yield the events of a record, which may replace an earlier one.

        `index` is that of the item whose text follows.
        """
        before = "" if index is None else self.items[index].get("id") or ""
        record = {**stored.item, "before": before}
        earlier = self._records.setdefault(record["id"], len(self.items))
        if earlier < len(self.items):
            yield self.update(earlier, kept=record["kept"])
        else:
            yield from self.add(record)

    def add_details(self, turn: TurnDetails) -> Chunks:
        """Yield the reasoning of a response again, now with its details, if any."""
        indexes = range(self._turn_start, len(self.items))
        self._turn_start = len(self.items)
        for index in indexes:
            if is_reasoning(self.items[index]):
                yield self.update(index, reasoning_details=list(turn.details))
                return


def _native(kind: str, index: int, **fields: Any) -> Chunk:
    """Return an event of the Responses API as the host takes it."""
    return {
        "type": f"response.{kind}",
        "output_index": index,
        **fields,
        "choices": [{"index": 0, "delta": {}}],
    }


# --------------------------------------------------------------------------------------
# owui_chat.render.hosted
#
# What the page shows of the items that OpenAI's own tools make.
#
# An image stands above the text, in the message's list of files. The host stores the
# `files` of an event; `chat:message:files` reaches only the open page, so nothing of an
# unfinished image is stored (docs/reference/open-webui.md, "Events and stored files").
# Of several `files` events the page would show only the last one, although the host
# stores all of them.
#
# In its older mode of tools the host takes code at the end of an answer for a request to
# run it, and calls the pipe again (the same, "Rounds of tools").
#
# The page has cards for searches on the web and in files, which show the queries. The
# pages that were found are in a status line (docs/reference/open-webui.md, "Native
# events").
#
# A call of a remote server looks like a call of the host's own tools. The host never runs
# it, because it has an output, or because it was not complete.
# --------------------------------------------------------------------------------------


class HostedItems:
    """Shows the items of one run; a type without a card is not shown."""

    def __init__(self, shown: OutputItems) -> None:
        """Take the list of items that they join."""
        self._shown = shown
        self._open: dict[int, _HostedItem] = {}

    def render(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for an event of an item."""
        index = event.output_index
        if isinstance(event, ItemAdded):
            card = HOSTED_CARDS.get(item_type(event.item))
            if card:
                self._open[index] = card(self._shown)
        if index in self._open:
            yield from self._open[index].render(event)
        if isinstance(event, ItemDone):
            self._open.pop(index, None)
            if item_type(event.item) == "mcp_list_tools":
                yield status_chunk(_list_message(event.item))

    def break_off(self, event: RunDone) -> Chunks:
        """Yield the chunks for items that the run did not end."""
        for item in self._open.values():
            yield from item.render(event)


class _HostedItem:
    """Shows one item.

    It gets the item's own events, from ItemAdded to ItemDone, and RunDone if the run
    ended before the item.
    """

    def __init__(self, shown: OutputItems) -> None:
        self._shown = shown
        self._host_index = len(shown.items)

    def render(self, event: RunEvent) -> Chunks:
        """Yield the chunks for an event."""
        raise NotImplementedError


_REFUSED = "The image was not generated: the safety system rejected it."
_FAILED = "The image could not be generated."
_BROKE_OFF = "The answer was interrupted before the image was complete."


class _ImageHostItem(_HostedItem):
    """An image: a status line, sketches, and the file at the end."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                yield status_chunk("Generating an image")
            case PartialImage():
                sketch = {"result": event.image, "output_format": event.form}
                image = {"type": "image", "url": image_url(sketch)}
                yield from self._shown.show_files([image])
            case ItemDone():
                yield from self._end(event)
                yield from self._shown.add_files(event.card)
            case _:
                yield from self._note(_BROKE_OFF)
                yield from self._shown.show_files()

    def _end(self, event: ItemDone) -> Chunks:
        """Yield that the image is there, or why it is not."""
        notes = event.card.get("notes")
        if notes:
            yield from self._note(notes[0])
        elif event.item.get("result"):
            yield status_chunk("Image generated")
        else:
            yield from self._note(_failure(event.item))

    def _note(self, message: str) -> Chunks:
        """Yield a text that the page shows and that no later turn contains."""
        number = len(self._shown.items)
        note = {
            "type": "openai_responses:note",
            "id": f"note_{number}",
            "content": [{"type": "output_text", "text": f"*{message}*"}],
        }
        yield from self._shown.add(note)


def _failure(item: Item) -> str:
    """Return why an image was not generated."""
    code = value_at(item, "error", "code")
    return _REFUSED if code == "moderation_blocked" else _FAILED


_BROKEN_CODE = "The answer was interrupted before the code had run."


class _CodeHostItem(_HostedItem):
    """Code that runs at OpenAI, with its files."""

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
                yield self._shown.grow(self._host_index, event.kind, event.text)
            case ItemDone():
                yield self._shown.end(self._host_index, code_host_item(event.item))
                yield from self._shown.add_files(event.card)
            case _:
                code = replay_code({"code": "".join(self._code)}, _BROKEN_CODE)
                yield self._shown.update(
                    self._host_index, status="incomplete", code=code
                )


class _SearchHostItem(_HostedItem):
    """A search on the web or in files, with a line of the pages that it found."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = {**event.item, "status": "in_progress"}
                yield self._shown.begin(_search_host_item(begun))
            case ItemDone():
                yield self._shown.end(self._host_index, _search_host_item(event.item))
                if search_pages(event.item):
                    yield _pages_chunk(event.item)
            case RunDone():
                yield self._shown.update(self._host_index, status="incomplete")


def _pages_chunk(item: Item) -> Chunk:
    """Return a status line that opens to the pages that a search found."""
    addresses = [strip_tracking(address) for address in search_pages(item)]
    pages = list(dict.fromkeys(addresses))
    description = f"Searched {plural(len(pages), 'site')}"
    queries = ", ".join(search_queries(item))
    if queries:
        description += f" for {queries}"
    status = {
        "action": "web_search",
        "description": description,
        "urls": pages,
        "done": True,
    }
    return host_event("status", status)


def _search_host_item(item: Item) -> Item:
    """Return a search without its results: the host would store them for nobody."""
    shown = {
        name: value
        for name, value in item.items()
        if name != "results" and value is not None
    }
    if isinstance(item.get("action"), dict):
        shown["action"] = _search_action(item["action"])
    return shown


def _search_action(action: Item) -> Item:
    """Return what a search did, without its sources and tracking."""
    shown = {name: value for name, value in action.items() if name != "sources"}
    if isinstance(shown.get("url"), str):
        shown["url"] = strip_tracking(shown["url"])
    return shown


_UNKNOWN_OUTCOME = (
    "Error: the answer was interrupted. The server may have made this call."
)


class _McpCallHostItem(_HostedItem):
    """A call of a remote server, which has its output at its end."""

    def render(self, event: RunEvent) -> Chunks:
        match event:
            case ItemAdded():
                begun = _mcp_call_host_item(event.item, "in_progress")
                yield self._shown.begin({**begun, "arguments": ""})
            case TextDelta():
                yield self._shown.grow(self._host_index, event.kind, event.text)
            case ItemDone():
                has_failed = remote_failed(event.item)
                status = "failed" if has_failed else "completed"
                card = _mcp_call_host_item(event.item, status)
                yield self._shown.end(self._host_index, card)
                _, output = remote_pair(event.item)
                answer = ToolOutput(event.output_index, output, has_failed)
                yield from self._shown.add(output_host_item(answer))
            case RunDone():
                yield from self._shown.break_off(self._host_index, _UNKNOWN_OUTCOME)


def _mcp_call_host_item(item: Item, status: str) -> Item:
    """Return a call of a remote server as one of the host's own."""
    call, _ = remote_pair(item)
    return {**call, "id": f"fc_{call['call_id']}", "status": status}


def _list_message(item: Item) -> str:
    """Return the status line about the list of a remote server's tools."""
    label = item.get("server_label")
    tools = item.get("tools")
    if item.get("error") or not isinstance(tools, list):
        return f"{label} did not list its tools: the answer continues without them."
    return f"{label} offers {plural(len(tools), 'tool')}."


HOSTED_CARDS: Mapping[str, type[_HostedItem]] = {
    "web_search_call": _SearchHostItem,
    "file_search_call": _SearchHostItem,
    "mcp_call": _McpCallHostItem,
    "code_interpreter_call": _CodeHostItem,
    "image_generation_call": _ImageHostItem,
}


# --------------------------------------------------------------------------------------
# owui_chat.render.commentary
#
# Commentary of the model, shown as progress beside the answer.
#
# The page shows the text of an item of unknown type at its place between the cards, and
# leaves it out of copies, exports, edits and reading aloud. The host sends it to no model
# (docs/reference/open-webui.md, "Native events" and "The stored output and the next
# turn"). So commentary is a quotation in an item of our own:
#
#     {"type": "openai_responses:remark", "id": ..., "content": [{"text": "> ..."}]}
#
# If a run ends with commentary, that is the answer, because there is no other.
# --------------------------------------------------------------------------------------


class Commentary:
    """Shows one message of commentary; `host_index` is that of its item.

    `_length` counts the characters of its quotation, `_stored_length` those that the
    host has stored.
    """

    def __init__(self, shown: OutputItems) -> None:
        """Begin at the next place."""
        self.host_index = len(shown.items)
        self._shown = shown
        self._quoted: list[str] = []
        self._length = 0
        self._stored_length = 0
        self._ended: ItemDone | None = None
        self._marker = ""
        self._marker_index = self.host_index

    def render(self, event: ItemEvent, marker: str) -> Chunks:
        """Yield the chunks for an event of the item; its marker comes at its end."""
        match event:
            case ItemAdded():
                yield self._shown.begin(_commentary_item(event.item, "", "in_progress"))
            case TextDelta():
                yield from self._grow(event.text)
            case ItemDone():
                yield from self._end(event, marker)
                yield from self._shown.add_files(event.card)

    def break_off(self) -> Chunks:
        """Yield the end of commentary that the run did not end."""
        if self._ended is None:
            yield self._whole("incomplete")

    def become_answer(self, closing: Item | None) -> Chunks:
        """Yield the text as a message, behind its marker, if this is `closing`."""
        if self._ended is None or self._ended.item != closing:
            return
        if self._marker:  # the message takes the marker's place, and this one is empty
            quotation = self._shown.items[self.host_index]
            emptied = _commentary_item(quotation, "", "completed")
            yield self._shown.end(self.host_index, emptied)
        head = {"id": self._shown.items[self._marker_index].get("id")}
        answer = message_host_item(head, self._marker + self._ended.shown)
        yield self._shown.end(self._marker_index, answer)

    def _grow(self, text: str) -> Chunks:
        """Yield the growth, and the whole text each time it has doubled.

        Deltas extend the text of an unknown item on the page only. The host stores an
        item when it gets it whole, and that is what is left after Stop
        (docs/reference/open-webui.md, "Native events").
        """
        if not text:
            return
        quoted = _continued_quotation(text) if self._quoted else _quotation(text)
        self._quoted.append(quoted)
        self._length += len(quoted)
        if self._length < 2 * self._stored_length:
            yield self._shown.grow(self.host_index, "text", quoted)
        else:
            yield self._whole("in_progress")

    def _whole(self, status: str) -> Chunk:
        """Return the event that gives the host the whole text so far."""
        self._stored_length = self._length
        item = self._shown.items[self.host_index]
        whole = _commentary_item(item, "".join(self._quoted), status)
        return self._shown.end(self.host_index, whole)

    def _end(self, event: ItemDone, marker: str) -> Chunks:
        """Yield the end of the item, and its marker behind it."""
        self._ended = event
        card = _commentary_item(event.item, _quotation(event.shown), "completed")
        yield self._shown.end(self.host_index, card)
        if marker:
            self._marker = marker
            self._marker_index = len(self._shown.items)
            yield from self._shown.add_marker(marker)


def _quotation(text: str) -> str:
    """Return a text as a quotation in Markdown."""
    return "> " + _continued_quotation(text) if text else ""


def _continued_quotation(text: str) -> str:
    """Return more text of a quotation that has begun."""
    return text.replace("\n", "\n> ")


def _commentary_item(item: Item, text: str, status: str) -> Item:
    """Return the host's item of commentary; the page shows none without a text."""
    return {
        "type": COMMENTARY_TYPE,
        "id": item.get("id") or "",
        "status": status,
        "content": [{"type": "output_text", "text": text}] if text else [],
    }


# --------------------------------------------------------------------------------------
# owui_chat.render.native
#
# Run events as Open WebUI's native events, and the last status line of an answer.
#
# The host builds the items that it shows and stores from events of the Responses API, so
# a run looks like Open WebUI's own and is the same after a reload. The events differ from
# the wire where the host needs it (docs/reference/open-webui.md, "Native events", "What a
# pipe yields" and "Usage"): one numbering over all responses, no `response.completed`, no
# encrypted content, and an empty `choices` delta for stream filters that look for one.
# --------------------------------------------------------------------------------------


_SHOWN_TYPES = frozenset({"message", "reasoning", *CALL_OUTPUTS})


def _end_after_code(shown: OutputItems) -> Chunks:
    """Yield an invisible item if code would be the last item of a run."""
    last = shown.items[-1] if shown.items else {}
    if last.get("type") == CODE_CARD:
        # In its older mode of tools Open WebUI takes code at the end for a request to
        # run it, and calls the pipe again, up to five times (utils/middleware.py:6117).
        end = {"type": "openai_responses:end", "id": f"end_{last['id']}"}
        yield from shown.add(end)


class HostedView(Protocol):
    """Shows the items of OpenAI's own tools, like `HostedItems`."""

    def render(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for an event of an item."""

    def break_off(self, event: RunDone) -> Chunks:
        """Yield the chunks for items that the run did not end."""


class NativeRenderer:
    """Shows one run; `shown` has what the host stored so far.

    Of each item on the page, by its output index: its place among the host's items,
    the marker in front of its text, when it began, and the part of its last text.
    """

    def __init__(
        self,
        now: Callable[[], float],
        make_hosted: Callable[[OutputItems], HostedView] | None = None,
    ) -> None:
        """Take a clock in seconds, and what shows the items of OpenAI's own tools.

        Without the latter they are not shown, and there is no last status line.
        """
        self._now = now
        self._began = now()
        self.shown = OutputItems()
        self._hosted = make_hosted(self.shown) if make_hosted else None
        self._commentary: dict[int, Commentary] = {}
        self._next_marker = ""
        self._notes = 0
        self._retries = 0
        self._host_indexes: dict[int, int] = {}
        self._markers: dict[int, str] = {}
        self._started: dict[int, float] = {}
        self._last_part: dict[int, int] = {}

    def render(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks to send; `citations` has put the shown texts into events."""
        match event:
            case TextDelta() if event.output_index in self._host_indexes:
                yield from self._grow(event)
            case ItemAdded() if _is_shown(event.item):
                yield self._start(event)
            case ItemDone() if event.output_index in self._host_indexes:
                yield from self._end(event)
            case ItemAdded() | TextDelta() | PartialImage() | ItemDone():
                yield from self._render_other(event)
            case Marker():
                self._next_marker = event.text
            case ToolOutput():
                self._retries = 0
                yield from self.shown.answer(event)
            case RunDone():
                yield from self._end_run(event)
            case _:
                yield from self._render_beside(event)

    def _render_other(self, event: ItemEvent) -> Chunks:
        """Yield the chunks for commentary and for items of OpenAI's own tools."""
        index = event.output_index
        if isinstance(event, ItemAdded) and is_commentary(event.item):
            self._commentary[index] = Commentary(self.shown)
        if index in self._commentary:
            yield from self._commentary[index].render(event, self._take_marker())
        elif self._hosted:
            yield from self._hosted.render(event)

    def _render_beside(self, event: AnswerEvent) -> Chunks:
        """Yield the chunks for events that are not items of the run."""
        match event:
            case SourceCited():
                yield host_event("source", event.source)
            case Status():
                if event.sentence and event.is_note:
                    self._notes += 1
                if event.is_retry:
                    self._retries += 1
                yield status_chunk(event.sentence)
            case StoredRecord():
                yield from self.shown.add_record(event, self._index_of(event))
            case TurnDetails():
                yield from self.shown.add_details(event)

    def _index_of(self, stored: StoredRecord) -> int | None:
        """Return the place of the item that a record belongs to; None for the end."""
        index = stored.output_index
        if index is None:
            return None
        commentary = self._commentary.get(index)
        return commentary.host_index if commentary else self._host_indexes.get(index)

    def _take_marker(self) -> str:
        """Return the marker that waits for the next text, once."""
        marker = self._next_marker
        self._next_marker = ""
        return marker

    def _end_run(self, event: RunDone) -> Chunks:
        """Yield the end of what is open, the last lines, and the usage."""
        if self._hosted:
            yield from self._hosted.break_off(event)
        for commentary in self._commentary.values():
            yield from commentary.break_off()
        closing = closing_commentary(event.output)
        for commentary in self._commentary.values():
            yield from commentary.become_answer(closing)
        has_failed = event.ending.is_failure
        if has_failed:
            # Open WebUI runs a call without an output, and calls the pipe again
            # (utils/middleware.py:5544).
            yield from self.shown.break_off_calls()
        marker = self._take_marker()
        if marker:
            yield from self.shown.add_marker(marker)
        yield from self.shown.show_files(is_last=True)
        yield from _end_after_code(self.shown)
        if self._has_closing_line(event):
            yield closing_chunk(closing_line(self._figures(event)), event.metadata)
        usage = host_usage(event)
        if usage:
            # In a chunk of its own: Open WebUI ignores `response.incomplete` with its
            # usage, and a `response.completed` would replace all items
            # (utils/response.py:714).
            yield {"choices": [{"index": 0, "delta": {}}], **usage}
        if has_failed:
            # Without choices it keeps the text and stores the error; an exception would
            # lose the text (utils/middleware.py:4939).
            yield error_chunk(event.ending.sentence)

    def _has_closing_line(self, event: RunDone) -> bool:
        """Say whether a last line is shown: of a failure only one that counts notes,
        or that has an agent's metadata.
        """
        if self._hosted is None:
            return False
        if event.ending.is_failure:
            return self._notes > 0 or bool(event.metadata)
        return not open_calls(event.output)

    def _figures(self, event: RunDone) -> AnswerFigures:
        """Return what the last line says of the run."""
        return AnswerFigures(
            seconds=self._now() - self._began,
            is_failure=event.ending.is_failure,
            rounds=event.work.rounds if event.work else 0,
            tool_calls=event.work.tool_calls if event.work else 0,
            usage=event.usage,
            cost=event.cost,
            notes=self._notes,
            window_share=event.window_share,
            usage_note=event.usage_note,
            failed_attempts=self._failed_attempts(event),
        )

    def _failed_attempts(self, event: RunDone) -> int:
        """Return how often the last request was sent in vain; 0 if it was not retried."""
        if not event.ending.is_failure or not self._retries:
            return 0
        return self._retries + 1

    def _start(self, event: ItemAdded) -> Chunk:
        """Return the beginning of an item."""
        if item_type(event.item) == "message":
            self._retries = 0  # an attempt succeeded
        self._host_indexes[event.output_index] = len(self.shown.items)
        self._started[event.output_index] = self._now()
        return self.shown.begin(begun_host_item(event.item))

    def _grow(self, event: TextDelta) -> Chunks:
        """Yield more text, behind the marker that waited for it."""
        marker = self._take_marker()
        if marker:
            self._markers[event.output_index] = marker
        text = marker + self._gap(event) + event.text
        if text:
            yield self.shown.grow(
                self._host_indexes[event.output_index], event.kind, text
            )

    def _gap(self, event: TextDelta) -> str:
        """Return the blank line between two parts of a thought.

        The page joins the parts of a summary, so all parts are shown as one.
        """
        last_part = self._last_part.get(event.output_index, event.part)
        self._last_part[event.output_index] = event.part
        is_thought = event.kind in ("summary", "reasoning")
        return "\n\n" if is_thought and event.part != last_part else ""

    def _end(self, event: ItemDone) -> Chunks:
        """Yield the end of an item, or its other form; a failed thought frees its index."""
        index = event.output_index
        host_index = self._host_indexes[index]
        match item_type(event.item):
            case _ if event.item == NO_THOUGHT:
                del self._host_indexes[index]
                item = {**self.shown.items[host_index], "type": "openai_responses:end"}
            case "message":
                text = self._markers.get(index, "") + event.shown
                item = message_host_item(event.item, text)
            case "reasoning":
                seconds = self._now() - self._started[index]
                item = reasoning_host_item(event.item, round(seconds))
            case _:
                item = call_host_item(event.item)
        yield self.shown.end(host_index, item)
        yield from self.shown.add_files(event.card)


def _is_shown(item: Item) -> bool:
    return item_type(item) in _SHOWN_TYPES and not is_commentary(item)


# --------------------------------------------------------------------------------------
# owui_chat.storage.recorder
#
# Decides what of a run is recorded, and where its marker stands.
#
# Items that the chat does not show (reasoning, the bytes of a call, searches, the `phase`
# of a message) wait until text follows. Then one record holds them, and its marker stands
# at the beginning of that text, or behind commentary, which the record holds whole.
# Reasoning that nothing followed is not stored, because the API would refuse it alone.
#
# In a chat without a row each finished response is put into the host's
# `reasoning_details`, the only place that such a chat has (docs/reference/open-webui.md,
# "Reasoning details").
# --------------------------------------------------------------------------------------


Carrier = Literal["markers", "output", "details"]


class RecordScope(NamedTuple):
    """The common fields of all records of one message, and where they are stored."""

    model: str
    message_id: str
    origin: Origin
    keeps_reasoning: bool
    cites: bool = False
    """Texts may be shown differently from what the model wrote."""
    carrier: Carrier = "markers"
    sign: Sign | None = None
    """Signs the details; None if there is no secret."""


class NewRecord(NamedTuple):
    """A record to write before the next events; it may replace one with the same id."""

    record: Record
    output_index: int | None
    """The item whose text follows the record, None for the end of the run."""


_RecorderEvent = CitedEvent | Marker | TurnDetails | NewRecord


class Recorder:
    """Collects what is recorded of one message during its run."""

    def __init__(
        self, scope: RecordScope, new_record: Callable[[], tuple[str, int]]
    ) -> None:
        """Take what gives a new record its id and time."""
        self._scope = scope
        self._new_record = new_record
        self._pending: list[tuple[int, Item]] = []
        """Items that wait for a record, in order, each with its output index."""
        self._messages: dict[int, Item] = {}
        """Messages whose text has not begun, by output index."""
        self._records: dict[int, Record] = {}
        """The records of messages that have begun, by output index."""
        self._after_message = False
        self._commentary: set[int] = set()
        """The output indexes of commentary."""
        self._last_commentary: tuple[ItemDone, Record] | None = None
        self._turn: dict[int, tuple[Item, str]] = {}
        """The items of the current response with their shown texts, by output index;
        only for the carrier `details`."""

    def feed(self, event: CitedEvent) -> Iterable[_RecorderEvent]:
        """Return the event behind the records, markers and details that precede it."""
        if isinstance(event, TextDelta) and event.output_index not in self._messages:
            return [event]
        if self._scope.carrier == "details":
            return [*self._collect_turn(event), event]
        return [*self._collect(event), event]

    def _collect(self, event: CitedEvent) -> Iterator[_RecorderEvent]:
        """Yield the records of an event, with their markers.

        The record of a message comes with its first delta, and again, changed, with its
        end if only the end shows what has to be stored. The record of commentary comes
        with its end.
        """
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
            case HiddenMessage():
                message = _stored_message(event.item)
                insort(self._pending, (event.output_index, message), key=itemgetter(0))
            case ItemDone():
                self._wait(event.output_index, stored_item(event))
            case RunDone():
                yield from self._close(event)

    def _collect_turn(self, event: CitedEvent) -> Iterator[_RecorderEvent]:
        """Yield the details of a response at its end."""
        if isinstance(event, ItemDone):
            self._turn[event.output_index] = (stored_item(event), event.shown)
        elif isinstance(event, HiddenMessage):
            self._turn[event.output_index] = (event.item, "")
        elif isinstance(event, ResponseDone | RunDone) and self._turn:
            pairs = self._take_turn()
            name, _ = self._new_record()
            details = write_details(
                name, pairs, self._scope.origin, {}, self._scope.sign
            )
            yield TurnDetails(details)

    def _take_turn(self) -> list[tuple[Item, str]]:
        """Return the items of the response that has ended, each with its shown text.

        Of commentary the host returns only the text of the closing one.
        """
        turn = [self._turn[index] for index in sorted(self._turn)]
        self._turn = {}
        closing = closing_commentary([item for item, _ in turn])
        pairs: list[tuple[Item, str]] = []
        for item, shown in turn:
            is_returned = not is_commentary(item) or item == closing
            pairs.append((item, shown if is_returned else ""))
        return pairs

    def _close(self, event: RunDone) -> Iterator[_RecorderEvent]:
        """Yield the records of the end: final commentary, and items without a text.

        The chat shows the text of final commentary as the answer.
        """
        if self._last_commentary:
            ended, record = self._last_commentary
            if ended.item == closing_commentary(event.output):
                shown = text_digest(ended.shown)
                yield NewRecord(record._replace(shown=shown), None)
        self._drop_trailing_reasoning()
        if self._pending:
            yield from self._with_marker(self._take_record(), None)

    def _drop_trailing_reasoning(self) -> None:
        """Drop reasoning that nothing followed: the API would refuse it alone."""
        while self._pending:
            _, last = self._pending[-1]
            if not is_reasoning(last):
                return
            self._pending.pop()

    def _wait(self, index: int, item: Item) -> None:
        """Insert an item at its place; parallel calls may end in another order.

        The chat returns what a remote server said: its card has it.
        """
        if not self._is_kept(item):
            return
        for replayed in replay_items(item):
            if not is_call_output(replayed):
                insort(self._pending, (index, replayed), key=itemgetter(0))

    def _is_kept(self, item: Item) -> bool:
        """Say whether an item is recorded, which the chat does not show as it is."""
        if is_call(item):
            return item.get("status") != "incomplete"
        is_update = item_type(item) == CONFIGURATION
        if has_encrypted_reasoning(item) or is_compaction(item) or is_update:
            return self._scope.keeps_reasoning
        return is_kept_hosted(item) or is_stored_image(item)

    def _begin(self, index: int, item: Item, kind: str) -> Iterator[_RecorderEvent]:
        """Yield the record of a message that begins, if it needs one.

        Without a phase the text itself is all there is to know of the message.
        """
        has_phase = bool(item.get("phase"))
        is_marked = self._scope.cites or has_phase or self._after_message
        if not self._pending and not is_marked and kind != "refusal":
            return
        if self._pending and not has_phase:
            record = self._take_record()
        else:
            unshown = {**_stored_message(item), "content": [UNSHOWN_TEXT]}
            record = self._take_record(unshown)
        self._records[index] = record
        yield from self._with_marker(record, index)

    def _amend(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        """Yield the record of an ended message, if it is not what was written.

        The host strips texts. A marker would have to stand in front of this one.
        """
        record = self._records.pop(ended.output_index, None)
        text = message_text(ended.item)
        if record is None:
            # Before Open WebUI stores an answer it strips its last message
            # (utils/middleware.py:5487); the model's own bytes have to go back.
            host_strips = text != text.strip()
            can_record = self._scope.carrier == "output" and not self._pending
            if not host_strips or not can_record:
                return
            record = self._take_record()
        amended = _with_ended_message(record, ended, text)
        if amended != record:
            yield NewRecord(amended, ended.output_index)

    def _add_commentary(self, ended: ItemDone) -> Iterator[_RecorderEvent]:
        """Yield the record of commentary, whose text the host does not return."""
        if message_text(ended.item).strip():
            self._after_message = True
            record = self._take_record(_stored_message(ended.item))
            self._last_commentary = (ended, record)
            yield from self._with_marker(record, ended.output_index)

    def _with_marker(
        self, record: Record, index: int | None
    ) -> Iterator[_RecorderEvent]:
        yield NewRecord(record, index)
        if self._scope.carrier == "markers":
            yield Marker(format_marker(record.kind, record.ulid))

    def _take_record(self, message: Item | None = None) -> Record:
        """Return a record of what is pending, and of a message if there is one."""
        ulid, created_at = self._new_record()
        payload = [item for _, item in self._pending]
        if message is not None:
            payload.append(message)
        self._pending = []
        return Record(
            ulid=ulid,
            model=self._scope.model,
            created_at=created_at,
            payload=tuple(payload),
            message_id=self._scope.message_id,
            origin=self._scope.origin,
        )


def _with_ended_message(record: Record, ended: ItemDone, text: str) -> Record:
    """Return the record of a message as its end shows it; `text` is the model's.

    A message that is all text needs no item of its own behind others.
    """
    before = [item for item in record.payload if not _is_placeholder(item)]
    kept = omit_shown_text(_stored_message(ended.item), ended.shown)
    is_plain = kept.get("content") == [UNSHOWN_TEXT] and not kept.get("phase")
    payload = before if before and is_plain else [*before, kept]
    shown = "" if ended.shown == text else text_digest(ended.shown)
    return record._replace(payload=tuple(payload), shown=shown)


def _is_placeholder(item: Item) -> bool:
    """Say whether an item stands for a message whose end is awaited."""
    return item_type(item) == "message" and item.get("content") == [UNSHOWN_TEXT]


def _stored_message(item: Item) -> Item:
    """Return a message as it is stored; its short form has no type."""
    return {**strip_for_replay(item), "type": "message"}


# --------------------------------------------------------------------------------------
# shells.valve_words
#
# Valves that hold a list of words.
# --------------------------------------------------------------------------------------


def comma_list(text: str) -> list[str]:
    """Return the words of a list separated by commas, each of them once."""
    words = (word.strip() for word in text.split(","))
    return list(dict.fromkeys(word for word in words if word))


_MAX_SHOWN_WORDS = 5
_MAX_WORD_CHARACTERS = 40
"""Both limit a message, because an administrator may paste anything."""


def unknown_words(
    valve: str, words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about unknown words of a valve; empty if all are known."""
    unknown = {word[:_MAX_WORD_CHARACTERS] for word in words}.difference(known)
    if not unknown:
        return ""
    shown = ", ".join(sorted(unknown)[:_MAX_SHOWN_WORDS])
    return f"{valve} contains unknown names: {shown}. {advice}"


# --------------------------------------------------------------------------------------
# shells.json_valve
#
# A valve that holds a JSON object with documented keys.
#
# One such valve replaces many fields that are rarely changed. Its keys are checked one by
# one: a key with an invalid value gets its default, and the others still apply.
# --------------------------------------------------------------------------------------


_Form = TypeVar("_Form", bound=BaseModel)

_MAX_QUOTED = 80
"""Characters of an administrator's text that a message repeats."""


def read_json_valve(
    valve: str, text: str, form: type[_Form]
) -> tuple[_Form, list[str]]:
    """Return the settings in the text of a valve, and what is wrong with them.

    `form` names the known keys with their types, ranges and defaults. Each problem is a
    message for administrators.
    """
    given = parse_json_object(text.strip() or "{}")
    if given is None:
        return form(), [f"{valve} is not a JSON object, so its defaults apply."]
    known = form.model_fields
    accepted: dict[str, object] = {}
    problems: list[str] = []
    for key, field in known.items():
        if key not in given:
            continue
        if _is_valid(form, key, given[key]):
            accepted[key] = given[key]
        else:
            shown = repr(given[key])[:_MAX_QUOTED]
            problems.append(
                f"{valve}: `{key}` cannot be {shown}. {field.description} Its default "
                "applies."
            )
    unknown = [key for key in given if key not in known]
    advice = f"Known keys: {', '.join(known)}."
    problem = unknown_words(valve, unknown, known, advice)
    if problem:
        problems.append(problem)
    return form.model_validate(accepted), problems


def read_expert_json(text: str, form: type[_Form]) -> tuple[_Form, list[str]]:
    """Return the settings of EXPERT_JSON, and what is wrong with them."""
    return read_json_valve("EXPERT_JSON", text, form)


def _is_valid(form: type[BaseModel], key: str, value: object) -> bool:
    """Say whether a form accepts the value of one key."""
    try:
        form.model_validate({key: value})
    except ValidationError:
        return False
    return True


# --------------------------------------------------------------------------------------
# shells.timeouts
#
# The time limits of requests that an administrator can set, for pipe and agents.
# --------------------------------------------------------------------------------------


_LONG_SILENCE = 900.0
"""In pro mode several passes make one answer, and nothing is sent in between; research
is as slow."""


class TimeoutSettings(BaseModel):
    """Keys of EXPERT_JSON that pipe and agents share, in seconds."""

    model_config = ConfigDict(allow_inf_nan=False, frozen=True)

    connect_timeout_seconds: float = Field(
        default=30, gt=0, description="Time limit to open a connection."
    )
    first_event_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest wait for an answer to begin, 30 to 900.",
    )
    idle_timeout_seconds: float = Field(
        default=300,
        ge=30,
        le=900,
        description="Longest silence within an answer, also in reasoning, 30 to 900.",
    )

    def timeouts(self, model: ResolvedModel, total: float = 0) -> Timeouts:
        """Return the limits of a request to a model; `total` is that of its answer."""
        is_slow = model.pro or model.research or "-pro" in model.id
        least = _LONG_SILENCE if is_slow else 0.0
        return Timeouts(
            connect=self.connect_timeout_seconds,
            first_event=max(self.first_event_timeout_seconds, least),
            idle=max(self.idle_timeout_seconds, least),
            total=total,
        )


# --------------------------------------------------------------------------------------
# shells.shell
#
# The two shells by their names: the rest of their messages is the same.
# --------------------------------------------------------------------------------------


class Shell(NamedTuple):
    """The names of a shell in messages."""

    noun: str
    """Like "pipe"."""
    valves_page: str
    """How an administrator gets to its valves."""

    @property
    def valves(self) -> str:
        """Where its valves are, as a part of a sentence."""
        return f"the valves of this {self.noun}"


PIPE_SHELL = Shell("pipe", "Admin Panel > Functions > the gear next to it")
PIPELINE_SHELL = Shell("pipeline", "Admin Panel > Settings > Pipelines")


# --------------------------------------------------------------------------------------
# shells.valve_messages
#
# Messages about valves for administrators, for pipe and agents.
#
# `openai_responses` names a setting by its field (`errors.SettingFault`). Here it gets the
# name of its valve, which is the same in both shells, and the page with the valves.
# --------------------------------------------------------------------------------------


HEADERS_EXAMPLE = '{"X-Team": "blue"}'

_VALVES: Mapping[SettingName, str] = {
    "api_key": "API_KEY",
    "base_url": "BASE_URL",
    "ca_bundle": "CA_BUNDLE",
    "extra_headers": "EXTRA_HEADERS",
    "proxy": "PROXY",
    "verify_ssl": "VERIFY_SSL",
}
_EXAMPLES: Mapping[SettingName, str] = {
    "base_url": DEFAULT_BASE_URL,
    "extra_headers": HEADERS_EXAMPLE,
}


def fault_advice(fault: SettingFault, shell: Shell) -> str:
    """Return what an administrator can do about a failure; empty if nothing."""
    settings = fault.settings
    if not settings:
        return ""
    valves = _join_names([_VALVES[name] for name in settings])
    match fault.certainty:
        case "certain":
            return _correct_valve(valves, shell, _EXAMPLES.get(settings[0], ""))
        case "likely":
            return f"An administrator has to check {valves} in {shell.valves}."
        case "possible":
            return f"If it lasts, an administrator has to check {valves} in {shell.valves}."


def error_message(error: ResponsesError, shell: Shell) -> str:
    """Return the message of an error, with what an administrator can do."""
    return f"{error} {fault_advice(error.fault, shell)}".strip()


def advised_ending(ending: Ending, shell: Shell) -> Ending:
    """Return an ending whose message says what an administrator can do."""
    message = f"{ending.sentence} {fault_advice(ending.fault, shell)}".strip()
    return ending._replace(sentence=message, fault=NO_FAULT)


def valve_message(problem: str, shell: Shell, example: str = "") -> str:
    """Return the message about a valve; `problem` names it and has no full stop."""
    return f"{problem}. {_correct_valve('it', shell, example)}"


def valve_error(problem: str, shell: Shell, example: str = "") -> InvalidRequest:
    """Return the error of a valve without which nothing is sent."""
    return InvalidRequest(valve_message(problem, shell, example))


def _correct_valve(valves: str, shell: Shell, example: str) -> str:
    """Return the sentence that asks an administrator to correct valves."""
    shown = f", for example {example}" if example else ""
    return f"An administrator has to correct {valves} in {shell.valves}{shown}."


def _join_names(names: list[str]) -> str:
    """Return names as a part of a sentence."""
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


# --------------------------------------------------------------------------------------
# shells.endpoint_valves
#
# Where requests go, by the valves that pipe and agents have in common.
# --------------------------------------------------------------------------------------


class EndpointValves(Protocol):
    """The valves about the server that both shells have, without secrets."""

    BASE_URL: str
    ORGANIZATION: str
    PROJECT: str
    COMPATIBILITY: Compatibility
    CA_BUNDLE: str
    VERIFY_SSL: bool


def environment_key() -> str:
    """Return the API key of the server's environment; empty without one."""
    return os.environ.get("OPENAI_API_KEY", "").strip()


def missing_key_error(shell: Shell) -> InvalidRequest:
    """Return the error of a shell whose administrator has set no key."""
    return InvalidRequest(
        f"This {shell.noun} has no API key yet. An administrator has to set API_KEY in "
        f"its valves ({shell.valves_page})."
    )


def read_headers(text: str, shell: Shell) -> Mapping[str, str]:
    """Return the headers of EXTRA_HEADERS; raises InvalidRequest."""
    headers = parse_string_map(text)
    if headers is None:
        problem = "EXTRA_HEADERS is not a JSON object of texts"
        raise valve_error(problem, shell, HEADERS_EXAMPLE)
    return headers


def endpoint_of_valves(
    valves: EndpointValves,
    *,
    api_key: str,
    proxy: str,
    headers: Mapping[str, str],
    token: str = "",
) -> Endpoint:
    """Return the endpoint of the valves.

    The secrets are arguments, because the agents' valves may hold them encrypted.
    """
    return Endpoint(
        base_url=valves.BASE_URL,
        api_key=api_key,
        token=token,
        organization=valves.ORGANIZATION.strip(),
        project=valves.PROJECT.strip(),
        extra_headers=headers,
        verify_ssl=valves.VERIFY_SSL,
        ca_bundle=valves.CA_BUNDLE.strip(),
        proxy=proxy,
        compatibility=valves.COMPATIBILITY,
    )


# --------------------------------------------------------------------------------------
# shells.answer_log
#
# The log of one answer, for pipe and agents: lines without secrets.
# --------------------------------------------------------------------------------------


LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
LOG_LEVELS = {"DEBUG": 10, "INFO": 20, "WARNING": 30, "ERROR": 40, "CRITICAL": 50}
"""The numbers that `logging` has for them."""

_MAX_LINE = 4000


class AnswerLog:
    """Writes lines from any thread; a shell's own log says where they go.

    `run_id` names the answer: it is in front of every line of the server's log, and the
    error id that people see.
    """

    def __init__(self, run_id: str, secrets: Iterable[str] = ()) -> None:
        """Begin; `secrets` are removed from every line."""
        self.run_id = run_id
        self._secrets = tuple(secrets)

    def hide(self, *secrets: str) -> None:
        """Remove these texts too from every line from now on."""
        self._secrets = (*self._secrets, *secrets)

    def redacted(self, text: str) -> str:
        """Return a text as one line without secrets."""
        return redact_line(text, self._secrets)

    def line(self, level: LogLevel, text: str) -> None:
        """Write `text` as one line.

        Long text is cut: an exception of a tool may be of any length.
        """
        one_line = self.redacted(text[: 2 * _MAX_LINE])[:_MAX_LINE]
        self._write(level, one_line)

    def note(self, text: str) -> None:
        """Write a line of level INFO."""
        self.line("INFO", text)

    def warn(self, text: str) -> None:
        """Write a line of level WARNING, which an administrator should read."""
        self.line("WARNING", text)

    def _write(self, level: LogLevel, one_line: str) -> None:
        """Write a line without secrets and line breaks to the log of the shell."""
        raise NotImplementedError


# --------------------------------------------------------------------------------------
# shells.tool_valves
#
# The valves about approvals and time limits of tools, for pipe and agents.
# --------------------------------------------------------------------------------------


_ANSWERS: Mapping[str, Approval] = {
    "": "ask",
    "auto": "auto",
    "ask": "ask",
    "deny": "deny",
}

_Parsed = TypeVar("_Parsed")

_MAX_QUOTED_ENTRY = 40
"""Characters of an entry that a message repeats."""

_PATTERN = re.compile(r"(?:[\w.*?/-]|\[[^]\s]+\])+")


class ReadRules(NamedTuple):
    """The rules of TOOL_APPROVAL, and the message about an error in them."""

    rules: ApprovalRules
    problem: str = ""


def read_rules(text: str, shell: Shell) -> ReadRules:
    """Return the rules of TOOL_APPROVAL, which are separated by commas or lines.

    A rule is `pattern=auto`, `ask` or `deny`; a pattern alone means `ask`. An entry that
    cannot be read may have been meant to deny any tool, so a person is asked about all
    calls that are not denied. `deny` alone is such an entry: it lacks its pattern.
    """
    rules: ApprovalRules
    rules, unread = _read_entries(text, "=", _read_approval)
    if not unread:
        return ReadRules(rules)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = (
        f"TOOL_APPROVAL contains {quoted}, which is not a rule, so a person is asked "
        "about every call of a tool"
    )
    asked = [(pattern, "ask" if rule == "auto" else rule) for pattern, rule in rules]
    message = valve_message(problem, shell, "`delete_*=ask`")
    return ReadRules([*asked, ("*", "ask")], message)


def _read_approval(word: str) -> Approval | None:
    """Return the approval that a word stands for; an empty one means `ask`."""
    return _ANSWERS.get(word.lower())


_DEFAULT_ENTRY = "default"
_DEFAULT_TIMEOUT = 120.0


class ReadTimeouts(NamedTuple):
    """The limits of TOOL_TIMEOUTS in seconds, and the message about an error in them."""

    default: float
    """The limit of a tool that no pattern matches."""
    by_pattern: Sequence[tuple[str, float]]
    """Limits by patterns of names."""
    problem: str = ""


def read_timeouts(text: str, shell: Shell) -> ReadTimeouts:
    """Return the limits of TOOL_TIMEOUTS; an invalid entry is skipped."""
    entries, unread = _read_entries(text, ":", _read_timeout)
    limits = dict(entries)
    default = limits.get(_DEFAULT_ENTRY, _DEFAULT_TIMEOUT)
    patterns = [entry for entry in entries if entry[0] != _DEFAULT_ENTRY]
    if not unread:
        return ReadTimeouts(default, patterns)
    quoted = repr(unread[:_MAX_QUOTED_ENTRY])
    problem = f"TOOL_TIMEOUTS contains {quoted}, which is not a time limit"
    message = valve_message(problem, shell, "`default: 120, crawl_*: 600`")
    return ReadTimeouts(default, patterns, message)


def _read_timeout(word: str) -> float | None:
    """Return seconds, up to 999999 and with up to three decimals; None for others."""
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", word):
        return None
    seconds = float(word)
    return seconds if seconds > 0 else None


def _read_entries(
    text: str, sign: str, read: Callable[[str], _Parsed | None]
) -> tuple[list[tuple[str, _Parsed]], str]:
    """Return the values by patterns of names, and the first invalid entry."""
    rows: list[tuple[str, _Parsed]] = []
    unread = ""
    for part in text.replace("\n", ",").split(","):
        entry = part.strip()
        if not entry:
            continue
        left_side, _, right_side = entry.partition(sign)
        pattern = left_side.strip()
        value = read(right_side.strip())
        is_pattern = _PATTERN.fullmatch(pattern) and pattern not in _ANSWERS
        if value is not None and is_pattern:
            rows.append((pattern, value))
        else:
            unread = unread or entry
    return rows, unread


# --------------------------------------------------------------------------------------
# shells.administration
#
# What the pipe and the filter for administrators agree on.
#
# They are installed as separate files, each with its own copy of this module, and a test
# checks both against these protocols. So only plain data goes between them, and events of
# the pipe, which the filter passes back without reading them.
# --------------------------------------------------------------------------------------


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


class ResponseCounts(NamedTuple):
    """What responses used: requests, and tokens; `cached` is part of `input`."""

    requests: int
    input: int
    cached: int
    output: int


class EventWords(NamedTuple):
    """The kind of an event of a run; for the last one also how the run ended."""

    word: Literal["", "text", "retry", "recovery", "end"] = ""
    kind: str = ""
    """The kind of the ending."""
    code: str | None = None
    """The code of the ending."""
    model: str = ""
    """The model that answered."""


class UsageAllowance(Protocol):
    """What the user of a call may use."""

    @property
    def problems(self) -> Sequence[str]:
        """What is wrong with the rules, for administrators; empty texts say nothing."""

    def refusal(self, model: str, has_price: bool) -> str:
        """Return why the request is not sent, or an empty text.

        `model` is the API's name, with `-pro` for the mode.
        """

    def forbidden_tools(self) -> Sequence[str]:
        """Return the types of OpenAI's tools that are not offered."""

    def nearest_allowed_effort(self, asked: str | None, known: Sequence[str]) -> str:
        """Return the effort to send instead of one that is not allowed, or empty."""

    def notices(self) -> Sequence[str]:
        """Return the lines about what is left, if a rule wants them shown."""

    def complaints(self) -> Sequence[str]:
        """Return what is wrong with the rules, for administrators alone."""

    def usage_answer(self, text: str) -> AsyncGenerator[str, None] | None:
        """Return the lines that answer `/usage`; None for other texts."""


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
# shells.caller
#
# Who asks, as Open WebUI says it to both shells.
# --------------------------------------------------------------------------------------


class ChatCaller(NamedTuple):
    """Who asks, and for which chat and message; empty ids are unknown."""

    host_model: str = ""
    """The host's id of the model, `{function or pipeline id}.{model}`."""
    user_id: str = ""
    chat_id: str = ""
    message_id: str = ""
    task: str = ""
    """The name of a task of the host, or empty."""
    streams: bool = False
    """Whether the host reads a stream. It takes any true value of `stream` for true
    (functions.py, 0.12.4); the administration's filter makes it a bool."""
    is_admin: bool = False

    @property
    def host_reads(self) -> bool:
        """Whether Open WebUI itself reads and stores the answer.

        True exactly if the request has a chat id and a message id. A session id only
        decides whether a dialog can be answered (docs/reference/open-webui.md, "Ids of
        a call").
        """
        return bool(self.chat_id and self.message_id)


# --------------------------------------------------------------------------------------
# shells.caller_settings
#
# The messages about `caller_may_set`: what callers may set besides their chat.
#
# The words differ: in the pipe they open what is otherwise the administrator's, in the
# agents any key of a request. The messages are the same.
# --------------------------------------------------------------------------------------


_SETTING = "caller_may_set"


def unknown_permissions(
    words: Iterable[str], known: Collection[str], advice: str
) -> str:
    """Return the message about words that have no effect; empty if there are none."""
    return unknown_words(f"EXPERT_JSON, {_SETTING},", words, known, advice)


def left_out_line(
    who: str, left_out: Mapping[str, str], is_new: Callable[[str], bool]
) -> str:
    """Return the line of the log about settings that a request may not have.

    `left_out` has the shown text of each name. Each name is logged once per caller: a
    client sends the same settings again and again.
    """
    new = [shown for name, shown in left_out.items() if is_new(f"{who}: {name}")]
    if not new:
        return ""
    return (
        f"left out of requests of {who}: {', '.join(new)} ({_SETTING} in EXPERT_JSON "
        "says what a request may set)"
    )


# --------------------------------------------------------------------------------------
# shells.compaction
#
# COMPACTION_TOKENS, for pipe and agents.
# --------------------------------------------------------------------------------------


_MIN_THRESHOLD = 1000
"""The API refuses a lower one."""


def compaction_settings(tokens: int, endpoint: Endpoint) -> list[dict[str, Any]] | None:
    """Return the `context_management` that compacts a chat above this many tokens.

    None for 0, and at Azure, which does not have it.
    """
    if tokens == 0 or endpoint.is_azure:
        return None
    threshold = max(tokens, _MIN_THRESHOLD)
    return [{"type": "compaction", "compact_threshold": threshold}]


# --------------------------------------------------------------------------------------
# shells.failures
#
# Reports an answer that failed, to people and to the log, for pipe and agents.
# --------------------------------------------------------------------------------------


def report_exception(log: AnswerLog, error: Exception, shell: Shell) -> str:
    """Log why there is no answer; return the message to show, with its error id."""
    if isinstance(error, ResponsesError):
        message = error_message(error, shell)
        log.warn(f"nothing was sent: {message}")
    else:
        message = (
            f"Something in this {shell.noun} went wrong. Try again; if the problem "
            "persists, give an administrator the error id."
        )
        log.line("ERROR", describe_exception(error))
    return with_error_id(log, message)


def report_failure(
    log: AnswerLog,
    ended: RunDone,
    shell: Shell,
    *,
    is_admin: bool,
    message: str = "",
) -> Ending:
    """Log how a run failed; return its ending with the message to show.

    Administrators also see what the server said. `message` replaces the ending's own.
    """
    trace = ended.trace
    error = trace.error
    code = api_word(error.code or ended.ending.code)
    group = api_word(error.type)
    param = api_word(error.param)
    answer = server_message(log, f"{trace.subject} {error.message}".strip())
    log.warn(
        f"{ended.ending.kind}: HTTP {trace.status}, code {code}, type {group}, "
        f"param {param}, {_ids_in_log(trace)}. {answer}",
    )
    ending = advised_ending(ended.ending, shell)
    shown = with_error_id(log, message or ending.sentence)
    if is_admin:
        shown = f"{shown} {answer}".strip()
    return ending._replace(sentence=shown)


_REVIEW_ID = re.compile(r"[\w.:-]{1,200}")


def _ids_in_log(trace: Trace) -> str:
    """Return the ids by which OpenAI's support finds an answer, for the log.

    After a safety stop the notice names a `review_target`.
    """
    notice = trace.error.notice
    ids = [f"request id {trace.request_id}"]
    if trace.response_id:
        ids.append(f"response id {trace.response_id}")
    if _REVIEW_ID.fullmatch(notice.review_target):
        ids.append(f"review target {notice.review_target}")
    category = api_word(notice.category)
    if category:
        ids.append(f"category {category}")
    return ", ".join(ids)


_MAX_SHOWN_TEXT = 500
_MAX_READ_TEXT = 5000


def server_message(log: AnswerLog, text: str) -> str:
    """Return what the server said, redacted and short, for administrators."""
    shown = log.redacted(text[:_MAX_READ_TEXT])[:_MAX_SHOWN_TEXT]
    return f"The server said: {shown}" if shown else ""


def with_error_id(log: AnswerLog, message: str) -> str:
    """Return a message with the id by which an administrator finds it in the log."""
    return f"{message} (Error id: {log.run_id})"


# --------------------------------------------------------------------------------------
# strategies.guide
#
# Guides: who the agent is, and what it remembers before a chat begins.
# --------------------------------------------------------------------------------------


class Guide(BaseModel):
    """Who the agent is, and what it remembers before a chat begins.

    `memory_policy` says how much of a chat it remembers: all, or a `sliding-window` of
    turns. In a file the keys are in camel case or snake case.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, alias_generator=to_camel
    )

    system_prompt: str
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    memory_policy: str = ""
    initial_memories: tuple[str, ...] = ()


NO_GUIDE = Guide(system_prompt="")

BUILT_IN_GUIDES: Mapping[str, Guide] = {
    "researcher": Guide(
        system_prompt="You find things out. Prefer primary and recent sources, compare "
        "at least two of them for every claim that matters, and name the source beside "
        "the claim. Separate what is established from what is disputed."
    ),
    "engineer": Guide(
        system_prompt="You are an experienced software engineer. Read before you "
        "write, change as little as solves the problem, keep to the style of what is "
        "there, and say how you checked that it works. Show code in fenced blocks.",
        temperature=0.2,
    ),
    "companion": Guide(
        system_prompt="You help with everyday questions in plain, friendly words. "
        "Answer first, then explain, and keep it short unless more is asked for.",
        memory_policy="sliding-window",
    ),
}


# --------------------------------------------------------------------------------------
# strategies.policy
#
# The system instruction: an instruction and four policy blocks, which can be replaced.
#
# Models from GPT-5.5 on follow short policies better.
# --------------------------------------------------------------------------------------


PolicyStyle = Literal["full", "lean", "auto"]
POLICY_STYLES: Sequence[PolicyStyle] = ("full", "lean", "auto")
ChosenStyle = Literal["full", "lean"]

_DEFAULT_INSTRUCTION = "You are a helpful GPT-5 agent."

_POLICY_TAGS: Mapping[str, str] = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
"""The blocks in their order, each with the tag around it."""

_FULL_POLICIES: Mapping[str, str] = {
    "persistence_policy": """\
- You are an agent: go on until the request is answered in full, then end your turn.
- Where something is open that does not change the outcome much, take the most \
reasonable assumption, go on, and name the assumption in the answer.
- When a step fails, try another way before you report that it cannot be done.
- Reading and searching need no permission. Do not delete, buy, send or publish \
anything that the user did not ask for.""",
    "context_gathering_policy": """\
- Find out what you need, then act: look as widely as the question asks, no wider.
- Begin broad, then ask a few focused questions side by side; do not repeat a search.
- Stop as soon as you can name the answer or the exact change, or when most sources \
agree.
- If a result contradicts another one, look once more at that point, then decide.""",
    "uncertainty_policy": """\
- Never make up numbers, names, quotations, addresses or sources. Say what you do not \
know.
- If a request has several meanings that lead to different results, and no tool can \
tell which is meant, ask one to three precise questions, or answer the two or three \
likeliest readings, each under its own heading.
- Tell what you found apart from what you conclude from it.""",
    "tool_preamble_policy": """\
- Before the first tool, say in one or two sentences what the goal is and how you will \
reach it.
- Between tools, say in one sentence what you learned and what comes next.
- Give the result as an answer of its own: it must be complete for a reader who has \
seen none of these notes.""",
}

_LEAN_POLICIES: Mapping[str, str] = {
    "persistence_policy": "Go on until the request is fulfilled; do not stop to "
    "propose a next step that you can take yourself.",
    "context_gathering_policy": "Gather only what decides the answer, several things "
    "at once, then act.",
    "uncertainty_policy": "Never invent facts or sources. Ask only if the answer "
    "changes the result and no tool can find it; else name your assumption.",
    "tool_preamble_policy": "Before the first tool, say in one sentence what you do.",
}

_FIRST_LEAN_VERSION = (5, 5)
"""From this version on short policies work better (docs/reference/responses-api.md,
"Short policies")."""

_GPT_PATTERN = re.compile(r"gpt-(\d)(?:\.(\d{1,2}))?(?!\d)")  # Azure spells 3.5 as 35


def build_system_instruction(
    base_instruction: str,
    prompt_policy_overrides: str = "",
    style: ChosenStyle = "full",
) -> str:
    """Return the instruction, the four blocks, then what the overrides add.

    Overrides are a JSON object that replaces blocks by their keys, or another text,
    which is added unchanged.
    """
    standard = _FULL_POLICIES if style == "full" else _LEAN_POLICIES
    texts = {**standard, **_read_policy_overrides(prompt_policy_overrides)}
    blocks = [_wrap_in_tag(texts[key], tag) for key, tag in _POLICY_TAGS.items()]
    instruction = base_instruction.strip() or _DEFAULT_INSTRUCTION
    parts = [instruction, *blocks, texts.get("extra_policy", "")]
    return "\n\n".join(part for part in parts if part.strip())


def _read_policy_overrides(text: str) -> dict[str, str]:
    """Return the changed blocks by key; unknown keys are ignored."""
    if not text.strip():
        return {}
    policies = parse_json_object(text)
    if policies is None:
        return {"extra_policy": text}
    known_keys = [*_POLICY_TAGS, "extra_policy"]
    return {
        key: policies[key] for key in known_keys if as_text(policies.get(key)).strip()
    }


def choose_style(style: PolicyStyle, family: str) -> ChosenStyle:
    """Return the style for a family of models; only newer GPTs get `lean`."""
    if style != "auto":
        return style
    match = _GPT_PATTERN.match(family)
    if match is None:
        return "full"
    version = (int(match[1]), int(match[2] or 0))
    return "lean" if version >= _FIRST_LEAN_VERSION else "full"


def _wrap_in_tag(text: str, tag: str) -> str:
    """Return a block in its tag, unless it brings the tag itself."""
    inner = text.strip()
    if inner.startswith(f"<{tag}>") and inner.endswith(f"</{tag}>"):
        return inner
    return f"<{tag}>\n{inner}\n</{tag}>"


# --------------------------------------------------------------------------------------
# strategies.parameters
#
# The parameters of a strategy: the seed's names, limits and defaults.
#
# Both strategies take the same. `model`, `instruction`, `prompt_policy_overrides`,
# `maximum_iterations` and `emit_intermediate_thoughts` are the contract of the seed
# (gpt5_dify_plugins_design, section 4.3); the others are ours.
# --------------------------------------------------------------------------------------


STRATEGY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT-5 Function Calling",
    "gpt5_react": "GPT-5 ReAct",
}
"""The strategies by their ids. They are one loop under two names (R7)."""

MAX_ITERATIONS = 30
MAX_SECONDS = 86_400
MAX_TOKENS = 100_000_000


@dataclass(frozen=True, slots=True)
class StrategyParameters:
    """What a strategy has to do.

    `maximum_iterations` counts the rounds that may call tools, 1 to 30.
    `maximum_seconds` includes the model and the tools that run here; 0 means no limit,
    as for `maximum_tokens`. At a limit the model answers with what it has.
    """

    model: str = ""
    instruction: str = ""
    prompt_policy_overrides: str = ""
    policy_style: PolicyStyle = "full"
    guide: Guide = NO_GUIDE
    maximum_iterations: int = 6
    maximum_seconds: float = 0.0
    maximum_tokens: int = 0
    emit_intermediate_thoughts: bool = True

    @property
    def rounds(self) -> int:
        """The number of rounds that may call tools, within its range."""
        return max(1, min(self.maximum_iterations, MAX_ITERATIONS))


def _find_guide(value: object) -> object:
    """Return the built-in guide that a name stands for; raises ValueError."""
    if value in ("", None):
        return NO_GUIDE
    if not isinstance(value, str):
        return value
    if value not in BUILT_IN_GUIDES:
        raise ValueError("there is no such guide")
    return BUILT_IN_GUIDES[value]


def _overrides_as_text(value: object) -> object:
    """Return policy overrides that are an object as its text."""
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return value


def _move_into_range(least: int, most: int) -> Callable[[object], int]:
    """Return what reads a number and moves it into its range (R5)."""

    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError("it must be a number")
        return clamp_number(value, least, most, least)

    return read


_Overrides = Annotated[StrictStr, BeforeValidator(_overrides_as_text)]
_ChosenGuide = Annotated[Guide, BeforeValidator(_find_guide)]
_Iterations = Annotated[int, BeforeValidator(_move_into_range(1, MAX_ITERATIONS))]
_Seconds = Annotated[int, BeforeValidator(_move_into_range(0, MAX_SECONDS))]
_Tokens = Annotated[int, BeforeValidator(_move_into_range(0, MAX_TOKENS))]
_SEED = StrategyParameters()


class StrategySettings(BaseModel):
    """The parameters as an administrator writes them, in one JSON object."""

    model: StrictStr = Field(
        default="gpt-6.1-sol",
        min_length=1,
        description="The model of an agent, by any name that MODEL_ID can have. With "
        "the switch *Agent* it is the model of the chat.",
    )
    instruction: StrictStr = Field(
        default=_SEED.instruction,
        description="What an agent is for. The system prompt of the chat follows it.",
    )
    prompt_policy_overrides: _Overrides = Field(
        default=_SEED.prompt_policy_overrides,
        description="Changed policies: a text, which is added, or an object, which "
        "replaces some of them (docs/agent.md).",
    )
    policy_style: PolicyStyle = Field(
        default=_SEED.policy_style,
        description="Length of the policies: `full`, `lean` (a sentence each), or "
        "`auto`, which depends on the model.",
    )
    guide: _ChosenGuide = Field(
        default="",
        validate_default=True,
        description="Who an agent is: `researcher`, `engineer`, `companion`, or an "
        "object with `systemPrompt`, `temperature`, `memoryPolicy` and "
        "`initialMemories`.",
    )
    maximum_iterations: _Iterations = Field(
        default=_SEED.maximum_iterations,
        description="Maximum number of rounds that may call tools, 1 to 30; then the "
        "model answers with what it has.",
    )
    maximum_seconds: _Seconds = Field(
        default=int(_SEED.maximum_seconds),
        description="Time limit of an answer and its tools, excluding time waiting "
        "for people. 0: none.",
    )
    maximum_tokens: _Tokens = Field(
        default=_SEED.maximum_tokens,
        description="Token limit of all rounds of an answer. 0: none.",
    )
    emit_intermediate_thoughts: StrictBool = Field(
        default=_SEED.emit_intermediate_thoughts,
        description="Show what the model writes between calls of tools. Off: only "
        "the answer.",
    )

    def parameters(self) -> StrategyParameters:
        """Return what a strategy works with."""
        return StrategyParameters(
            model=self.model,
            instruction=self.instruction,
            prompt_policy_overrides=self.prompt_policy_overrides,
            policy_style=self.policy_style,
            guide=self.guide,
            maximum_iterations=self.maximum_iterations,
            maximum_seconds=self.maximum_seconds,
            maximum_tokens=self.maximum_tokens,
            emit_intermediate_thoughts=self.emit_intermediate_thoughts,
        )


# --------------------------------------------------------------------------------------
# strategies.guard
#
# Checks calls before they are made: tool, arguments, and no repeated failure.
#
# The error texts are fixed (docs/reference/pipelines-server.md, "Texts for the model"),
# and a model that reads one can correct itself.
# --------------------------------------------------------------------------------------


TOOL_FAILED_TEXT = "tool invoke error: failed to execute tool"
_TOOL_REPEATED_TEXT = (
    "tool invoke error: repeated failure detected; skipped duplicate call"
)


class GuardedTools:
    """Tools whose calls are checked; a call that failed is not made again.

    These are the tools of a run and the judge of their calls.
    """

    holds_calls = False
    """Nobody is asked, so calls are shown at once."""

    def __init__(self, tools: CallableTools) -> None:
        """Start without failures."""
        self._tools = tools
        self._failed: dict[str, Item] = {}

    def refusal(self, call: Item) -> str | None:
        """Return the error text of a call that may not be made, or None."""
        name = str(call.get("name") or "")
        schema = self._tools.parameters(name)
        if schema is None:
            return f"there is not a tool named {name}"
        try:
            arguments = parse_arguments(call)
        except ValueError as error:
            return f"tool arguments parse error: {error}"
        _, invalid = check_arguments(arguments, schema)
        problem = _option_error(arguments, schema) or invalid
        if problem:
            return f"tool arguments validation error: {problem}"
        has_failed = self._signature(name, arguments) in self._failed
        return _TOOL_REPEATED_TEXT if has_failed else None

    async def judge(self, calls: Sequence[Item]) -> Judgment:
        """Refuse the calls that may not be made; all others are made here."""
        verdicts: list[Verdict] = []
        for call in calls:
            why = self.refusal(call)
            refusal = ToolResult(why, failed=True) if why else None
            verdicts.append(Verdict(call, refusal))
        return Judgment(verdicts)

    def failed_calls(self) -> list[Item]:
        """Return the calls that failed, for later rounds."""
        return list(self._failed.values())

    def record_failed_call(self, call: Item) -> None:
        """Remember a call that failed in an earlier round."""
        with suppress(ValueError):
            self._record_failure(str(call.get("name") or ""), parse_arguments(call))

    def parameters(self, name: str) -> Mapping[str, Any] | None:
        """Return the schema of a tool's arguments, None for an unknown tool."""
        return self._tools.parameters(name)

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the call that will run."""
        return self._tools.resolve_call(name, arguments)

    def call_kind(self, name: str) -> CallKind:
        """Return what limits the calls of a tool."""
        return self._tools.call_kind(name)

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool; one that raises, takes too long or is stopped has failed too."""
        if self._signature(name, arguments) in self._failed:
            return ToolResult(_TOOL_REPEATED_TEXT, failed=True)
        succeeded = False
        try:
            result = await self._tools.call(name, arguments)
            succeeded = not result.failed
        finally:
            if not succeeded:
                self._record_failure(name, arguments)
        return result

    def _record_failure(self, name: str, arguments: Mapping[str, Any]) -> None:
        """Remember a call, so that it is not made again."""
        text = json.dumps(arguments, ensure_ascii=False, default=str)
        call = {"name": name, "arguments": text}
        self._failed[self._signature(name, arguments)] = call

    def _signature(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Return a text that is equal for calls with the same checked arguments."""
        checked, _ = check_arguments(arguments, self._tools.parameters(name) or {})
        return f"{name} {json.dumps(checked, sort_keys=True, default=str)}"


def parse_arguments(call: Item) -> dict[str, Any]:
    """Return the arguments of a call; raises ValueError without a JSON object."""
    if item_type(call) == "custom_tool_call":
        return {"input": str(call.get("input") or "")}
    text = call.get("arguments")
    if not isinstance(text, str):
        raise ValueError("the arguments are not a text")
    arguments = load_json(text) if text.strip() else {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments


def _option_error(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    """Return the error of the first value that is not an option; empty without one."""
    properties = as_mapping(schema.get("properties"))
    for name, value in arguments.items():
        options = _read_options(properties.get(name))
        if not options or value is None:
            continue
        text = _option_text(value)
        if text not in options:
            return f"parameter '{name}' value {text!r} not in options {options}"
    return ""


def _read_options(node: object) -> list[str]:
    """Return the allowed values: `enum` of JSON Schema, or `options`."""
    schema = as_mapping(node)
    options = schema.get("enum") or schema.get("options")
    return [_option_text(option) for option in as_list(options)]


def _option_text(value: Any) -> str:
    """Return a value in the form in which options are compared."""
    if isinstance(value, Mapping) and "value" in value:
        return _option_text(value["value"])
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


# --------------------------------------------------------------------------------------
# strategies.context
#
# The context that a strategy gives the model to read, beside the chat.
# --------------------------------------------------------------------------------------


_TEXT_KEYS = ("content", "text", "page_content", "snippet", "document")
_NAME_KEYS = ("title", "name", "source", "file_name")
_URL_KEYS = ("url", "link", "uri")


class ContextSource(NamedTuple):
    """A text that is given to the model."""

    name: str
    text: str
    url: str = ""


def read_context(context: object) -> list[ContextSource]:
    """Return the entries of a context, each once: a text, an object, or a list."""
    rows = context if isinstance(context, list) else [context]
    unique_rows = {
        json.dumps(row, sort_keys=True, default=str): row
        for row in rows
        if row is not None
    }
    sources: dict[ContextSource, None] = {}  # in their order, each once
    for number, row in enumerate(unique_rows.values(), 1):
        source = _read_entry(f"Context {number}", row)
        if source.text.strip():
            sources[source] = None
    return list(sources)


def format_context(entries: Sequence[ContextSource]) -> str:
    """Return the entries as the model reads them."""
    if not entries:
        return ""
    texts = [
        f'<entry name="{entry.name}">\n{entry.text}\n</entry>' for entry in entries
    ]
    return "<context>\n" + "\n".join(texts) + "\n</context>"


def _read_entry(default_name: str, row: object) -> ContextSource:
    """Return an entry of a context; without a known text field all of it is the text."""
    if isinstance(row, str):
        return ContextSource(default_name, row)
    entry = as_mapping(row)
    fields = {**as_mapping(entry.get("metadata")), **entry}
    text = _first_text_field(entry, _TEXT_KEYS)
    return ContextSource(
        name=_first_text_field(fields, _NAME_KEYS) or default_name,
        text=text or json.dumps(row, ensure_ascii=False, default=str),
        url=_first_text_field(fields, _URL_KEYS),
    )


def _first_text_field(row: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """Return the first field that is a text and not blank; empty without one."""
    for key in keys:
        text = as_text(row.get(key))
        if text.strip():
            return text
    return ""


# --------------------------------------------------------------------------------------
# strategies.instructions
#
# The instructions of a strategy: who the agent is, its policies, what it may read.
# --------------------------------------------------------------------------------------


def build_strategy_instructions(
    parameters: StrategyParameters,
    style: ChosenStyle,
    system_text: str,
    sources: Sequence[ContextSource] = (),
) -> str:
    """Return the instructions of a request; `system_text` is that of the chat.

    First comes the guide, then the instruction of the parameters, then the chat's own.
    The context is the end.
    """
    texts = (parameters.guide.system_prompt, parameters.instruction, system_text)
    base = "\n\n".join(text.strip() for text in texts if text.strip())
    instruction = build_system_instruction(
        base, parameters.prompt_policy_overrides, style
    )
    context = format_context(sources)
    return f"{instruction}\n\n{context}" if context else instruction


# --------------------------------------------------------------------------------------
# strategies.limits
#
# The budget of a strategy, and the texts for the model when it is used up.
#
# The texts about rounds and failures are the seed's
# (docs/reference/pipelines-server.md, "Texts for the model").
# --------------------------------------------------------------------------------------


MAX_CALLS = 1000
"""The calls of one answer; 30 rounds of many parallel calls stay below it."""


def build_budget(parameters: StrategyParameters) -> Budget:
    """Return the limits of an answer."""
    return Budget(
        rounds=parameters.rounds,
        calls=MAX_CALLS,
        seconds=parameters.maximum_seconds,
        tokens=parameters.maximum_tokens,
    )


def build_call_texts(
    parameters: StrategyParameters, calls: int = MAX_CALLS
) -> CallTexts:
    """Return what the model reads of a call that failed or was not made.

    `calls` is how many an answer may make.
    """
    return CallTexts(
        failed=TOOL_FAILED_TEXT,
        rounds=f"Maximum iteration limit ({parameters.rounds}) reached. Cannot call "
        "tool '{tool}'. Please consider increasing the iteration limit.",
        calls=f"Call limit ({calls}) reached. Cannot call tool '{{tool}}'.",
        seconds=f"Time limit ({parameters.maximum_seconds:g} s) reached. Cannot call "
        "tool '{tool}'.",
        tokens=f"Token limit ({parameters.maximum_tokens}) reached. Cannot call tool "
        "'{tool}'.",
    )


# --------------------------------------------------------------------------------------
# strategies.memory
#
# What a strategy remembers: memories from before the chat, and a window of the chat.
# --------------------------------------------------------------------------------------


Message = Mapping[str, Any]
"""A message of a chat, as the host sends it."""

_DEFAULT_WINDOW_TURNS = 10
_WINDOW_PATTERN = re.compile(r"sliding-window(?::([1-9]\d{0,3}))?")


class _MemoryWindow(NamedTuple):
    """The messages that remain, and a note about the others."""

    messages: Sequence[Message]
    note: str = ""


def apply_memory_policy(messages: Sequence[Message], policy: str) -> _MemoryWindow:
    """Return what a memory policy leaves of a chat, in whole turns.

    A turn is a message of the user with all that follows it. System messages before the
    first turn stay. Raises InvalidRequest for an unknown policy.
    """
    window = _parse_window(policy.strip())
    starts = find_turn_starts(messages)
    if window == 0 or len(starts) <= window:
        return _MemoryWindow(messages)
    head = [
        message for message in messages[: starts[0]] if message.get("role") == "system"
    ]
    dropped = len(starts) - window
    turns = "1 earlier turn was" if dropped == 1 else f"{dropped} earlier turns were"
    return _MemoryWindow(
        [*head, *messages[starts[-window] :]],
        f"The memory holds {window} turns, so {turns} left out. The model no longer "
        "knows them, and because the beginning of the chat changed, its cached prompt "
        "and its earlier reasoning are lost.",
    )


def build_memory_items(guide: Guide) -> list[Item]:
    """Return the guide's memories as one message."""
    texts = [text.strip() for text in guide.initial_memories if text.strip()]
    if not texts:
        return []
    listed = "\n".join(f"- {text}" for text in texts)
    text = f"<memories>\n{listed}\n</memories>"
    part = {"type": "input_text", "text": text}
    return [{"type": "message", "role": "developer", "content": [part]}]


def find_turn_starts(messages: Sequence[Message]) -> list[int]:
    """Return the indexes of the messages that the user wrote.

    After tools with images the host adds a user message of its own.
    """
    starts: list[int] = []
    previous_role: object = None
    for index, message in enumerate(messages):
        role = message.get("role")
        follows_tool = previous_role == "tool"
        if role == "user" and not (follows_tool and _has_tool_images(message)):
            starts.append(index)
        previous_role = role
    return starts


def _has_tool_images(message: Message) -> bool:
    """Say whether a message is the host's own with the images of tools."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, Mapping) else first
    return as_text(text).startswith(TOOL_IMAGES_PREFIX)


def _parse_window(policy: str) -> int:
    """Return how many turns a policy keeps; 0 is all. Raises InvalidRequest."""
    if policy in ("", "all"):
        return 0
    match = _WINDOW_PATTERN.fullmatch(policy)
    if match:
        return int(match[1] or _DEFAULT_WINDOW_TURNS)
    if policy == "vector-db":
        raise InvalidRequest(
            "The guide asks for the memory policy vector-db, which would need a "
            "database that agents do not have here. An administrator has to choose "
            "sliding-window or leave the policy empty."
        )
    raise InvalidRequest(
        "The guide names an unknown memory policy. An administrator has "
        "to write sliding-window, sliding-window:20 for another number of turns, or "
        "nothing."
    )


# --------------------------------------------------------------------------------------
# strategies.metadata
#
# The figures of an answer: the seed's `execution_metadata`.
# --------------------------------------------------------------------------------------


class RunMetadata(NamedTuple):
    """The figures of an answer over all its rounds; `price` is in US dollars, 0 if
    unknown, `latency` in seconds.
    """

    strategy: str
    model: str
    ending: str
    rounds: int
    tool_calls: int
    latency: float
    price: float = 0.0
    usage: Usage = Usage()
    window_share: int = 0
    """How full the model's context window is, in percent; 0 if unknown."""

    def describe(self, notes: int = 0) -> str:
        """Return the line that people read; `notes` are the lines above it."""
        figures = AnswerFigures(
            seconds=self.latency,
            is_failure=self.ending != "completed",
            rounds=self.rounds,
            tool_calls=self.tool_calls,
            usage=self.usage if self.usage.total else None,
            cost=self.price or None,
            notes=notes,
            window_share=self.window_share,
        )
        return closing_line(figures)

    def wire(self) -> dict[str, Any]:
        """Return the JSON object that is shown and stored."""
        return {
            "strategy": self.strategy,
            "model": self.model,
            "ending": self.ending,
            "rounds": self.rounds,
            "tool_calls": self.tool_calls,
            "latency": round(self.latency, 3),
            "total_price": round(self.price, 8),
            "currency": "USD",
            "prompt_tokens": self.usage.input,
            "completion_tokens": self.usage.output,
            "total_tokens": self.usage.total,
            "cached_tokens": self.usage.cached,
            "reasoning_tokens": self.usage.reasoning,
        }


# --------------------------------------------------------------------------------------
# strategies.merged_calls
#
# Answers in which each call occurs once (R12).
#
# A call without an id or a name is dropped. A call that arrives twice counts once, in its
# last form, at its first place.
# --------------------------------------------------------------------------------------


class MergingProvider:
    """A provider whose answers have each call once."""

    def __init__(self, provider: Provider) -> None:
        """Take the answers of another provider."""
        self._provider = provider

    async def generate(
        self, request: ResponsesRequest, first_index: int
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Yield what happens, without the calls that are dropped, then the answer."""
        calls = _MergedCalls()
        async with aclosing(self._provider.generate(request, first_index)) as parts:
            async for part in parts:
                if isinstance(part, ModelAnswer):
                    yield part._replace(items=calls.merge(part.items))
                    continue
                event = calls.check(part)
                if event is not None:
                    yield event

    def paused(self) -> AbstractContextManager[None]:
        """Count no time while tools run or people decide."""
        return self._provider.paused()


class _MergedCalls:
    """The calls of one answer, by their ids."""

    def __init__(self) -> None:
        self._indexes: dict[str, int] = {}
        self._dropped: set[int] = set()

    def check(self, event: RunEvent) -> RunEvent | None:
        """Return the event to pass on, None for one of a dropped call."""
        if not isinstance(event, ItemEvent):
            return event
        match event:
            case ItemAdded() if is_call(event.item):
                return self._begin(event)
            case ItemDone() if is_call(event.item):
                index = self._find(event.item)
                return None if index is None else event._replace(output_index=index)
        return None if event.output_index in self._dropped else event

    def merge(self, items: Sequence[tuple[int, Item]]) -> tuple[tuple[int, Item], ...]:
        """Return the items of the answer, each call once."""
        merged: dict[int, Item] = {}
        for index, item in items:
            first_index = self._find(item) if is_call(item) else index
            if first_index is not None:
                merged[first_index] = item
        return tuple(sorted(merged.items()))

    def _begin(self, event: ItemAdded) -> ItemAdded | None:
        """Return the event of a new call; None for one that is dropped."""
        call_id = str(event.item.get("call_id") or "")
        if call_id and event.item.get("name") and call_id not in self._indexes:
            self._indexes[call_id] = event.output_index
            return event
        self._dropped.add(event.output_index)
        return None

    def _find(self, call: Item) -> int | None:
        """Return the index under which a call is shown; None if it is dropped."""
        if not call.get("name"):
            return None
        return self._indexes.get(str(call.get("call_id")))


# --------------------------------------------------------------------------------------
# strategies.shown_parts
#
# Parts of a message, as they are shown: thoughts in the form of reasoning, and texts.
# --------------------------------------------------------------------------------------


@dataclass(slots=True)
class ShownPart:
    """A part of a message, with an index and an id of its own."""

    index: int
    id: str
    is_thought: bool
    text: str = ""

    def start_event(self) -> ItemAdded:
        """Return the start event."""
        return ItemAdded(self.index, self._item("in_progress", ""))

    def add_text(self, text: str) -> TextDelta:
        """Add more text; return its event."""
        self.text += text
        kind: Literal["summary", "text"] = "summary" if self.is_thought else "text"
        return TextDelta(self.index, kind, 0, text)

    def end_event(self) -> ItemDone:
        """Return the end event, which contains the type and the whole text again."""
        return ItemDone(self.index, self._item("completed", self.text.rstrip()))

    def events(self, text: str) -> Iterator[RunEvent]:
        """Yield the whole part at once."""
        yield self.start_event()
        if text:
            yield self.add_text(text)
        yield self.end_event()

    def _item(self, status: str, text: str) -> Item:
        """Return the reasoning or the message that the part is shown as."""
        if self.is_thought:
            return {
                "id": f"rs_{self.id}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": text}] if text else [],
                "status": status,
            }
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }


def announcement(call: Item) -> str:
    """Return the thought of a round that calls a tool without a word."""
    if call.get("name") == "ask_user":
        return "I have a question."
    return f"I am going to use {call.get('name')}."


# --------------------------------------------------------------------------------------
# strategies.think_tags
#
# Think tags in a text: what stands in them is a thought of the model.
#
# A tag in backticks is plain text. A thought that is never closed ends with the text.
# --------------------------------------------------------------------------------------


_TAG = re.compile(r"(?<!`)<(/?)think>", re.ASCII | re.IGNORECASE)
_TAG_START = re.compile(r"</?(?:t(?:h(?:i(?:nk?)?)?)?)?\Z", re.ASCII | re.IGNORECASE)
"""The end of a text that may be the beginning of a tag."""


class TextSpan(NamedTuple):
    """A part of a text, inside or outside of think tags."""

    is_thought: bool
    text: str


class ThinkTagParser:
    """Splits a text that comes in pieces at its think tags.

    `_is_thought` says whether the text stands inside a tag now. `_held` is the end of
    the text so far that may be the beginning of a tag, `_previous` the one character
    before it.
    """

    def __init__(self) -> None:
        """Begin outside of any tag."""
        self._is_thought = False
        self._previous = ""
        self._held = ""

    def feed(self, text: str, *, at_end: bool = False) -> list[TextSpan]:
        """Return the spans that are certain now; the end of a text is certain."""
        # The character before says whether a tag stands in backticks.
        start = len(self._previous)
        text = self._previous + self._held + text
        end = len(text)
        if not at_end:
            partial_tag = _TAG_START.search(text, start)
            if partial_tag:
                end = partial_tag.start()
        spans: list[TextSpan] = []
        for tag in _TAG.finditer(text, start):
            spans.append(TextSpan(self._is_thought, text[start : tag.start()]))
            start = tag.end()
            is_closing = bool(tag[1])
            self._is_thought = not is_closing
        spans.append(TextSpan(self._is_thought, text[start:end]))
        self._previous = text[:end][-1:]
        self._held = text[end:]
        return _join_spans(spans)


def _join_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """Return spans without empty ones; neighbors of one kind are one."""
    with_text = [span for span in spans if span.text]
    joined: list[TextSpan] = []
    for is_thought, neighbors in groupby(with_text, attrgetter("is_thought")):
        text = "".join(span.text for span in neighbors)
        joined.append(TextSpan(is_thought, text))
    return joined


def parse_spans(text: str) -> list[TextSpan]:
    """Return the spans of a whole text."""
    return ThinkTagParser().feed(text, at_end=True)


def answer_text(text: str) -> str:
    """Return a text without its thoughts; blank lines behind one are no part of it."""
    spans = parse_spans(text)
    if not any(span.is_thought for span in spans):
        return text
    return "".join(span.text for span in spans if not span.is_thought).lstrip()


# --------------------------------------------------------------------------------------
# strategies.shown_thoughts
#
# Shows an agent's thoughts beside messages that stay items of their own (R14).
#
# Where a host stores each message of the model with its record, a message cannot become
# another item, as in `strategies.thoughts`. So it keeps its place and its own text, and
# only what is shown of it changes:
#
#     text in think tags                  a thought in front of the message, or nothing
#     a response that calls a tool        a thought that names the tool, or nothing
#     without a word
# --------------------------------------------------------------------------------------


_READ_KINDS = ("text", "refusal", "summary", "reasoning")
"""The kinds of deltas that people read."""


@dataclass(slots=True)
class _GrowingMessage:
    """A message that has not ended.

    `added` is its beginning, which waits for the first text of the answer: a thought
    that comes before stands in front of the message. `has_begun` says whether it was
    shown, `has_text` whether text of the answer was, `has_thought` whether the model has
    written one, and `thought` is the one that is open on the page.
    """

    added: ItemAdded
    parser: ThinkTagParser = field(default_factory=ThinkTagParser)
    has_begun: bool = False
    has_text: bool = False
    has_thought: bool = False
    thought: ShownPart | None = None


class ShownThoughts:
    """Shows one answer over all its responses.

    Thoughts have negative indexes, so that all others stay those of the run: records
    are stored by them. Of the current response, `_has_called` says whether it calls a
    tool, and `_has_words` whether it brought text that people read. `_messages` are
    those that have not ended, by their indexes.
    """

    def __init__(self, *, are_shown: bool) -> None:
        """Start before the first response."""
        self._are_shown = are_shown
        self._thought_count = 0
        self._has_called = False
        self._has_words = False
        self._messages: dict[int, _GrowingMessage] = {}
        self._announced: dict[str, Item] = {}
        """The thoughts that name a tool, by the ids of their calls."""

    def show(self, event: CitedEvent) -> Iterator[CitedEvent]:
        """Yield the events that replace an event."""
        match event:
            case ItemAdded():
                yield from self._begin(event)
            case TextDelta() if event.output_index in self._messages:
                yield from self._grow(self._messages[event.output_index], event)
            case ItemDone() if event.output_index in self._messages:
                yield from self._end(event)
            case ResponseDone() | RunDone():
                yield from self._end_response()
                yield event
            case _:
                self._note_words(event)
                yield event

    def _begin(self, event: ItemAdded) -> Iterator[CitedEvent]:
        """Yield the beginning of an item; that of a message waits."""
        for message in self._messages.values():
            yield from _begin_message(message)
        if item_type(event.item) == "message":
            self._messages[event.output_index] = _GrowingMessage(event)
            return
        if is_call(event.item):
            yield from self._announce(event.item)
        yield event

    def _announce(self, call: Item) -> Iterator[CitedEvent]:
        """Yield a thought about the first call of a response without a word."""
        is_silent = not (self._has_called or self._has_words)
        self._has_called = True
        if self._are_shown and is_silent:
            call_id = str(call.get("call_id"))
            thought = self._new_thought(call_id)
            yield from thought.events(announcement(call))
            self._announced[call_id] = thought.end_event().item

    def _grow(self, message: _GrowingMessage, event: TextDelta) -> Iterator[CitedEvent]:
        """Yield more text of a message."""
        self._note_words(event)
        if event.kind != "text":
            yield from _begin_message(message)
            yield event
            return
        yield from self._show_spans(message, message.parser.feed(event.text))

    def _end(self, event: ItemDone) -> Iterator[CitedEvent]:
        """Yield the rest of a message, and its end with the text of the answer."""
        message = self._messages.pop(event.output_index)
        yield from self._close(message)
        yield from _begin_message(message)
        if not message.has_text and message_text(event.item):
            # Whoever records the message does it at its first text.
            yield TextDelta(event.output_index, "text", 0, "")
        yield event._replace(shown=answer_text(event.shown))

    def _end_response(self) -> Iterator[CitedEvent]:
        """Yield what is left of messages that were interrupted."""
        for message in self._messages.values():
            yield from self._close(message)
            yield from _begin_message(message)
        self._messages = {}
        self._has_called = False
        self._has_words = False

    def _close(self, message: _GrowingMessage) -> Iterator[CitedEvent]:
        """Yield text that could have been the beginning of a tag, and end a thought."""
        last_spans = message.parser.feed("", at_end=True)
        yield from self._show_spans(message, last_spans)
        yield from _end_thought(message)

    def _show_spans(
        self, message: _GrowingMessage, spans: Sequence[TextSpan]
    ) -> Iterator[CitedEvent]:
        """Yield the spans of a message: thoughts if they are shown, and texts."""
        for span in spans:
            if not span.is_thought:
                yield from _end_thought(message)
                yield from _show_text(message, span.text)
                continue
            message.has_thought = True
            if self._are_shown:
                yield from self._show_thought(message, span.text)

    def _show_thought(
        self, message: _GrowingMessage, text: str
    ) -> Iterator[CitedEvent]:
        """Yield more of a thought, or a new one without the blank lines before it."""
        if message.thought is None:
            text = text.lstrip()
            if not text:
                return
            owner = str(message.added.item.get("id") or "msg")
            message.thought = self._new_thought(owner)
            yield message.thought.start_event()
        yield message.thought.add_text(text)

    def finish(self, event: AnswerEvent) -> AnswerEvent:
        """Return an event whose messages are without thoughts, for whoever shows it.

        Whoever records the messages needs the model's own texts, so this comes later.
        """
        if isinstance(event, ItemDone):
            return event._replace(item=_answer_item(event.item))
        return event

    def whole(self, ended: RunDone) -> RunDone:
        """Return the end of a run with its output as it is shown."""
        output: list[Item] = []
        for item in ended.output:
            output += self._shown_items(item)
        return ended._replace(output=tuple(output))

    def _shown_items(self, item: Item) -> Iterator[Item]:
        """Yield an item of a whole answer, behind its thought if that is shown."""
        if is_call(item):
            announced = self._announced.get(str(item.get("call_id")))
            if announced:
                yield announced
        elif self._are_shown:
            yield from _thought_items(item)
        yield _answer_item(item)

    def _new_thought(self, owner: str) -> ShownPart:
        """Return a thought that belongs to an item."""
        self._thought_count += 1
        number = self._thought_count
        return ShownPart(-number, f"{owner}_{number}", is_thought=True)

    def _note_words(self, event: CitedEvent) -> None:
        """Remember that a response has something to read."""
        if not isinstance(event, TextDelta) or event.kind not in _READ_KINDS:
            return
        if event.text.strip():
            self._has_words = True


def _begin_message(message: _GrowingMessage) -> Iterator[CitedEvent]:
    """Yield the beginning of a message, if it still waits."""
    if not message.has_begun:
        message.has_begun = True
        yield message.added


def _show_text(message: _GrowingMessage, text: str) -> Iterator[CitedEvent]:
    """Yield more of the answer; blank lines behind a thought are no part of it."""
    if message.has_thought and not message.has_text:
        text = text.lstrip()
    if not text:
        return
    message.has_text = True
    yield from _begin_message(message)
    yield TextDelta(message.added.output_index, "text", 0, text)


def _end_thought(message: _GrowingMessage) -> Iterator[CitedEvent]:
    """Yield the end of the thought that is open, if there is one."""
    if message.thought:
        yield message.thought.end_event()
        message.thought = None


def _thought_items(item: Item) -> Iterator[Item]:
    """Yield the thoughts of a message, as one reasoning item."""
    if not _has_tags(item):
        return
    spans = parse_spans(message_text(item))
    texts = [span.text.strip() for span in spans if span.is_thought]
    if any(texts):
        thought = ShownPart(-1, str(item.get("id") or "msg"), is_thought=True)
        thought.add_text("\n\n".join(text for text in texts if text))
        yield thought.end_event().item


def _answer_item(item: Item) -> Item:
    """Return a message without its thoughts; any other item as it is."""
    if not _has_tags(item):
        return item
    parts = [_answer_part(part) for part in content_parts(item.get("content"))]
    return {**item, "content": parts}


def _has_tags(item: Item) -> bool:
    return item_type(item) == "message" and "think>" in message_text(item).lower()


def _answer_part(part: Item) -> Item:
    """Return a part of a message without thoughts; its citations keep their words."""
    text = as_text(part.get("text"))
    answer = {**part, "text": answer_text(text)} if text else part
    annotations = content_parts(part.get("annotations"))
    if not annotations:
        return answer
    moved = [_move_annotation(annotation, text) for annotation in annotations]
    return {**answer, "annotations": moved}


def _move_annotation(annotation: Item, text: str) -> Item:
    """Return an annotation of `text` with its indexes in the answer.

    An index moves by the characters of the thoughts before it.
    """
    moved = dict(annotation)
    for name in ("start_index", "end_index"):
        index = annotation.get(name)
        if isinstance(index, int):
            moved[name] = len(answer_text(text[:index]))
    return moved


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
            "WebUI."
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


class NewFile(NamedTuple):
    """A file to store."""

    name: str
    media_type: str
    content: bytes


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
    return StoredFile(
        path=row.path,
        name=str(row.filename or ""),
        media_type=str(facts.get("content_type") or ""),
        size=int(facts.get("size") or 0),
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
    request: Any, file: NewFile, message: Mapping[str, str], user: HostUser
) -> dict[str, Any] | None:
    """Store a file for a user; return its entry in a message's list of files.

    The file is linked with the saved `message`, whose `chat_id` and `message_id` it
    has; it is empty if there is none. None: the host refused the file, for example for
    its size (docs/reference/open-webui.md, "Events and stored files").
    """
    upload = host_name("routers.files", "upload_file_handler")
    refused = host_name("routers.files", "HTTPException")
    arriving = host_name("routers.files", "UploadFile")(
        BytesIO(file.content),
        filename=file.name,
        headers={"content-type": file.media_type},
    )
    try:
        row = await upload(
            request, file=arriving, metadata=dict(message), process=False, user=user
        )
    except refused:
        return None
    if message:
        chats = host_name("models.chats", "Chats")
        await chats.insert_chat_files(**message, file_ids=[row.id], user_id=user.id)
    url = request.app.url_path_for("get_file_content_by_id", id=row.id)
    return {
        "type": "image" if file.media_type.startswith("image/") else "file",
        "id": row.id,
        "url": str(url),
        "name": file.name,
        "content_type": file.media_type,
    }


# --------------------------------------------------------------------------------------
# owui_manifold.call.uploads
#
# Which files were uploaded lately, so that a chat uploads each of them once.
# --------------------------------------------------------------------------------------


_KEPT_SECONDS = UPLOAD_SECONDS - 3600
"""An answer that is being written still needs the file."""
_MAX_UPLOADS = 5000


class UploadKey(NamedTuple):
    """A file of a chat, as one account has it."""

    account: str
    user_id: str
    chat_id: str
    file_id: str
    """The host's."""
    path: str
    """Where the host stores it: a new one if it was replaced."""
    size: int
    name: str


def files_refused(account: str) -> str:
    """Return what `AccountCapabilities` remembers of an account without a Files API."""
    return f"{account}: no files"


class UploadMemory:
    """The uploads that are still there; of too many the oldest are forgotten.

    They are known to this process alone: another one, or a restart, uploads again.
    """

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        self._now = now
        self._uploads: dict[UploadKey, tuple[float, str]] = {}

    def find(self, key: UploadKey) -> str:
        """Return the API's id of a file; empty if it has to be uploaded."""
        end, file_id = self._uploads.get(key, (0.0, ""))
        return file_id if self._now() < end else ""

    def add(self, key: UploadKey, file_id: str) -> None:
        """Remember that a file was just uploaded."""
        if len(self._uploads) >= _MAX_UPLOADS:
            del self._uploads[next(iter(self._uploads))]
        self._uploads[key] = (self._now() + _KEPT_SECONDS, file_id)

    def forget(self, key: UploadKey) -> None:
        """Let the next request upload a file again."""
        self._uploads.pop(key, None)


# --------------------------------------------------------------------------------------
# owui_manifold.call.capabilities
#
# What all calls of the pipe remember for a day about keys and models.
# --------------------------------------------------------------------------------------


_MAX_REASONS = 50
_MAX_REASON_CHARACTERS = 64
"""The reasons come from the server, so both are limited."""


class AccountCapabilities(RecentTexts):
    """Shutdown dates, confirmed repairs, left-out items, and notices that were shown."""

    def __init__(self, now: Callable[[], float] = monotonic_seconds) -> None:
        """Start empty."""
        super().__init__(now)
        self.shutdown_dates: Mapping[str, str] = {}
        self.repairs = RepairMemory(now)
        self.uploads = UploadMemory(now)
        self.dropped = Counter[str]()
        """How often the API left items out of the input, by its reasons."""

    def count_dropped(self, removed: Mapping[str, int]) -> None:
        """Count what the API left out of an input."""
        for reason, count in removed.items():
            name = reason[:_MAX_REASON_CHARACTERS]
            if name in self.dropped or len(self.dropped) < _MAX_REASONS:
                self.dropped[name] += count


# --------------------------------------------------------------------------------------
# owui_manifold.call.agent
#
# Which calls an agent answers, and with which parameters.
#
# A strategy is listed like a model, under its own name in MODEL_ID. What answers then is
# the model of AGENT_JSON, so its facts, limits and prices count. The switch "Agent" of the
# composer makes an agent of the model that the chat has.
# --------------------------------------------------------------------------------------


_DISPLAY_NAMES: Mapping[str, str] = {
    "gpt5_function_calling": "GPT agent (plans, uses tools)",
    "gpt5_react": "GPT agent (ReAct)",
}
"""What the list of models shows, by the names in MODEL_ID."""

_STRATEGY_OF_SWITCH = "gpt5_function_calling"

COSTLY_PARAMETERS = ("maximum_iterations", "maximum_seconds", "maximum_tokens")
"""What a request may lower, but raise only if an administrator allows it."""

_CALLER_PARAMETERS = [name for name in StrategySettings.model_fields if name != "model"]
"""What a request may state: custom parameters of a model of the workspace."""


class AgentMode(NamedTuple):
    """How an agent answers a call."""

    strategy: str
    parameters: StrategyParameters
    is_listed: bool
    """Whether it was chosen as a model; else the switch is on."""


class ReadAgent(NamedTuple):
    """What AGENT_JSON says, and what is wrong with it, for administrators."""

    parameters: StrategyParameters
    problems: tuple[str, ...]


@lru_cache(maxsize=8)
def read_agent_parameters(text: str) -> ReadAgent:
    """Return the parameters of AGENT_JSON; what cannot be read has its default."""
    settings, problems = read_json_valve("AGENT_JSON", text, StrategySettings)
    return ReadAgent(settings.parameters(), tuple(problems))


def add_agents(
    models: Mapping[str, ResolvedModel], parameters: StrategyParameters
) -> dict[str, ResolvedModel]:
    """Return the administrator's models with the agents: names for their model.

    An entry of an agent's name among the `models` counts as far as it says how the agent
    is called.
    """
    model = resolve_model(parameters.model, models)
    agents: dict[str, ResolvedModel] = {}
    for strategy, name in _DISPLAY_NAMES.items():
        renamed = models.get(strategy)
        shown_name = renamed.name if renamed else name
        agents[strategy] = model._replace(name=shown_name)
    return {**models, **agents}


def find_agent(
    model: str, parameters: StrategyParameters, *, is_switched: bool
) -> AgentMode | None:
    """Return how an agent answers a call of `model`; None if none does."""
    strategy = _strategy_of(model)
    if strategy:
        return AgentMode(strategy, parameters, is_listed=True)
    if is_switched:
        return AgentMode(_STRATEGY_OF_SWITCH, parameters, is_listed=False)
    return None


def answering_name(model: str, parameters: StrategyParameters) -> str:
    """Return the name of the model that answers, the one of AGENT_JSON for an agent.

    Rules about models are about this one: the name of an agent evades none.
    """
    strategy = _strategy_of(model)
    if not strategy:
        return model
    return parameters.model + model.removeprefix(strategy)


def _strategy_of(model: str) -> str:
    """Return the strategy that a name stands for, if any; it can end with an effort."""
    strategy, _, effort = model.partition("-")
    is_name = strategy in STRATEGY_NAMES and effort in ("", *REASONING_EFFORTS)
    return strategy if is_name else ""


def stated_parameters(body: JsonObject) -> dict[str, Any]:
    """Return the parameters of an agent that a request states, as far as they are valid."""
    stated: dict[str, Any] = {}
    for name in _CALLER_PARAMETERS:
        if body.get(name) is None:
            continue
        try:
            settings = StrategySettings.model_validate({name: body[name]})
        except ValidationError:
            continue
        stated[name] = getattr(settings, name)
    return stated


def with_stated_parameters(
    agent: AgentMode, stated: Mapping[str, Any], raisable: Collection[str]
) -> AgentMode:
    """Return an agent with what a request states.

    Of the limits only the `raisable` ones can be higher than those of AGENT_JSON.
    """
    changes = dict(stated)
    for name in COSTLY_PARAMETERS:
        if name in changes and name not in raisable:
            most = getattr(agent.parameters, name)
            changes[name] = _lower_limit(changes[name], most)
    return agent._replace(parameters=replace(agent.parameters, **changes))


def _lower_limit(asked: float, most: float) -> float:
    """Return the lower one of two limits, of which 0 is none."""
    limits = [limit for limit in (asked, most) if limit > 0]
    return min(limits, default=0)


# --------------------------------------------------------------------------------------
# owui_manifold.call.expert
#
# The keys of EXPERT_JSON and of WEB_SEARCH_OPTIONS, with their ranges and defaults.
#
# They are lower case, as keys of JSON objects are; the valves themselves are upper case.
# docs/settings.md is generated from the descriptions.
# --------------------------------------------------------------------------------------


class ExpertSettings(TimeoutSettings):
    """What EXPERT_JSON can hold: settings that hardly any server needs to change."""

    total_timeout_seconds: float = Field(
        default=0,
        ge=0,
        description="Time limit of an answer, excluding tools and approvals. 0: none.",
    )
    max_retries: int = Field(
        default=2,
        ge=0,
        le=5,
        description="How often a request that failed before any text is retried, "
        "0 to 5.",
    )
    max_retry_wait_seconds: float = Field(
        default=60,
        ge=0,
        description="Longest wait before a retry that a server may ask for. If it asks "
        "for more, the error is shown.",
    )
    flex_falls_back: bool = Field(
        default=False,
        description="Answer at the standard tier, at twice the price, if the `flex` "
        "tier has no capacity. Off: the answer ends with a message.",
    )
    caller_may_set: str = Field(
        default="",
        description="What requests may set although it is reserved for administrators, "
        "separated by commas: parameters, types of OpenAI's tools, fields "
        "(`mcp.server_url`); `admin:service_tier` opens a name for administrators' "
        "requests only (docs/parameters.md).",
    )
    user_keys_get: Literal["nothing", "headers", "all"] = Field(
        default="nothing",
        description="What is sent along with a user's own key: `headers` sends "
        "EXTRA_HEADERS, `all` also the remote MCP servers, with their tokens, and the "
        "vector stores.",
    )
    fetch_models: bool = Field(
        default=True,
        description="Ask the server which models it offers: for `auto` in MODEL_ID, "
        "and for notices about models that will be shut down.",
    )
    stable_instructions: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Keep the first instructions of a chat and send changes (a date, a "
        "memory) with the next message, so that reasoning and the prompt cache stay "
        "valid. `auto`: from gpt-5.6 on.",
    )
    strict_tool_calling: bool = Field(
        default=False,
        description="Have OpenAI enforce the schemas of tools that are simple enough.",
    )
    prompt_cache_diagnostics: bool = Field(
        default=False,
        description="Log why OpenAI's prompt cache missed, from gpt-5.6 on.",
    )
    entra_scope: str = Field(
        default="",
        description="Scope of Microsoft Entra ID tokens. If empty, Azure's own scope "
        "is used.",
    )
    audit_log: bool = Field(
        default=False,
        description="Log one JSON line for each request, success and error, without "
        "text of the chat. `OPENAI_GPT5_AUDIT_LOG=true` in the environment does the "
        "same.",
    )

    def writes_audit_log(self) -> bool:
        """Say whether the audit log is on, by setting or by environment."""
        by_environment = os.environ.get("OPENAI_GPT5_AUDIT_LOG", "").strip().lower()
        return self.audit_log or by_environment == "true"


class WebSearchOptions(BaseModel):
    """What WEB_SEARCH_OPTIONS can hold, by the API's names."""

    model_config = ConfigDict(frozen=True)

    search_context_size: Literal["low", "medium", "high"] = Field(
        default="medium",
        description="How much of the pages found the model reads; more is more "
        "expensive.",
    )
    user_location: str | dict[str, str] = Field(
        default="",
        description="Where people are: `city, region, country, timezone` (`Bern, BE, "
        "CH, Europe/Zurich`), or an object of these.",
    )
    allowed_domains: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="The only domains to search, with their subdomains; at most 100.",
    )
    blocked_domains: tuple[str, ...] = Field(
        default=(),
        max_length=100,
        description="Domains to exclude; at most 100. Results have contained their "
        "pages nevertheless.",
    )
    external_web_access: bool = Field(
        default=True,
        description="Whether pages are read live. Off: only from OpenAI's cache.",
    )
    return_token_budget: Literal["default", "unlimited"] = Field(
        default="default",
        description="How much text a search may return; `unlimited` is for long "
        "research and is more expensive.",
    )


# --------------------------------------------------------------------------------------
# owui_manifold.call.model_valves
#
# The valves that correct what is known about models, and their prices.
# --------------------------------------------------------------------------------------


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


_YES_OR_NO_FACTS = tuple(
    name for name, fact in ModelFacts()._asdict().items() if isinstance(fact, bool)
)

_OVERRIDE_FORMS = {
    **dict.fromkeys(_YES_OR_NO_FACTS, bool),
    "context_window": _is_count,
    "default_effort": str,
    "efforts": ["|".join(REASONING_EFFORTS)],
    "lacks": [str],
    "like": str,
    "max_output_tokens": _is_count,
    "name": str,
    "sampling": "always|with_none|never",
    "shutdown": str,
    "successor": str,
}
"""The facts that an entry can have, with the form of each."""


@lru_cache(maxsize=8)
def read_overrides(text: str) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_OVERRIDES_JSON; raises InvalidRequest.

    An entry takes the facts of the model in `like`, or of its family, and replaces some
    of them: `{"my-gpt": {"like": "gpt-5.2", "vision": false}}`.
    """
    table = parse_json_object(text.strip() or "{}")
    if table is None:
        problem = "MODEL_OVERRIDES_JSON is not a JSON object"
        raise valve_error(problem, PIPE_SHELL, '{"my-gpt": {"like": "gpt-5.2"}}')
    return {model: _read_override(model, row) for model, row in table.items()}


def _read_override(model_id: str, row: object) -> ResolvedModel:
    """Return the model that an entry describes; raises InvalidRequest."""
    if not isinstance(row, Mapping):
        raise _entry_error(model_id, "is not a JSON object")
    for key, value in row.items():
        if not matches_schema({key: value}, _OVERRIDE_FORMS):
            raise _entry_error(model_id, f"has a wrong {str(key)[:40]}")
    facts = dict(row)
    like = facts.pop("like", "")
    name = facts.pop("name", "")
    for key in facts.keys() & {"efforts", "lacks"}:
        facts[key] = tuple(facts[key])
    model = resolve_model(like or model_id)
    if like:
        model = ResolvedModel(model_id, model_id, None, model.facts, model_id)
    return model._replace(facts=model.facts._replace(**facts), name=name or model.name)


def _entry_error(model: str, what: str) -> InvalidRequest:
    return valve_error(f"MODEL_OVERRIDES_JSON: the entry {model} {what}", PIPE_SHELL)


_MAX_PRICE = 1_000_000


def _is_price(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value < _MAX_PRICE


_PRICES = {
    "input": _is_price,
    "cached": _is_price,
    "cache_write": _is_price,
    "output": _is_price,
    "fast": _is_price,
    "ultrafast": _is_price,
}
"""The prices and factors that an administrator can state."""


def read_prices(text: str) -> dict[str, ModelPrices]:
    """Return the prices of CUSTOM_MODEL_PRICING_JSON by model id.

    Raises InvalidRequest.
    """
    table = parse_json_object(text.strip() or "{}")
    wrong = [model for model, row in (table or {}).items() if not _are_prices(row)]
    if table is None or wrong:
        model = f" for {wrong[0]}" if wrong else ""
        raise valve_error(
            f"CUSTOM_MODEL_PRICING_JSON has no valid prices{model}",
            PIPE_SHELL,
            '{"my-model": {"input": 2, "output": 8}}',
        )
    return {
        model: ModelPrices(**dict.fromkeys(_PRICES) | row)
        for model, row in table.items()
    }


def _are_prices(row: Any) -> bool:
    return matches_schema(row, _PRICES) and {"input", "output"} <= row.keys()


# --------------------------------------------------------------------------------------
# owui_manifold.call.remote_servers
#
# Remote MCP servers, from REMOTE_MCP_SERVERS_JSON to tools of a request.
#
# A description that cannot be used leaves out only its server. No message quotes a
# value, because any value may be a secret.
# --------------------------------------------------------------------------------------


_SERVER_LABEL = "[A-Za-z][A-Za-z0-9_-]{0,63}"
_SOME_TEXT = r".*\S.*"
_TOOL_FILTER = {"tool_names": [_SOME_TEXT], "read_only": bool}


def _is_address(value: object) -> bool:
    is_one_word = isinstance(value, str) and value.split() == [value]
    return is_one_word and url_parts(str(value)) is not None


def _are_headers(value: object) -> bool:
    return isinstance(value, Mapping) and matches_schema([*value.values()], [str])


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
"""The keys that are sent, each with its form and the words for valid values."""

_NO_SECRETS = {"type", *_SERVER_FIELDS} - {"server_url", "authorization", "headers"}
"""Keys whose values are never secret."""


class RemoteServers(NamedTuple):
    """The servers that can be offered, and messages for an administrator.

    `complaints` say why a server is left out, `notes` which fields are not sent.
    `secrets` holds every text that may be secret.
    """

    tools: tuple[Item, ...] = ()
    complaints: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def read_servers(text: str) -> RemoteServers:
    """Return the servers of the valve: a JSON list, or a single JSON object."""
    try:
        rows = _load_rows(text)
    except ValueError as error:
        complaint = _servers_error(str(error))
        return RemoteServers(complaints=(complaint,), secrets=(text,))
    tools: dict[str, Item] = {}
    complaints: list[str] = []
    notes: list[str] = []
    secrets: list[str] = []
    for number, row in enumerate(rows, 1):
        fields = given_values(as_mapping(row))
        secrets += _secrets_of(fields)
        label = fields.get("server_label")
        is_label = matches_schema(label, _SERVER_LABEL)
        name = str(label) if is_label else f"server {number}"
        complaint = _server_error(row, fields, tools) or ""
        if complaint:
            problem = f"{name} is left out, because {complaint}"
            complaints.append(_servers_error(problem))
            continue
        tools[name.lower()] = _tool_of(fields)
        unknown = sorted(fields.keys() - {*_SERVER_FIELDS, "type"})
        if unknown:
            names = ", ".join(unknown)
            notes.append(_servers_error(f"keys of {name} are not sent: {names}"))
    return RemoteServers(
        tuple(tools.values()), tuple(complaints), tuple(notes), tuple(secrets)
    )


def _secrets_of(fields: JsonObject) -> list[str]:
    """Return every text of a description that may be secret."""
    hidden = [value for key, value in fields.items() if key not in _NO_SECRETS]
    return _secret_values(hidden)


def _tool_of(fields: JsonObject) -> Item:
    """Return the tool of a request that a valid description stands for."""
    known = {key: fields[key] for key in _SERVER_FIELDS if key in fields}
    return {"type": "mcp", **known}


def _load_rows(text: str) -> list[object]:
    """Return the descriptions in the text of the valve; raises ValueError.

    A number of thousands of digits, or nesting without an end, is refused like any
    other text that is not JSON.
    """
    try:
        given = json.loads(text) if text.strip() else []
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"it is not JSON ({place})") from None
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    return given if isinstance(given, list) else [given]


def _servers_error(problem: str) -> str:
    return (
        f"REMOTE_MCP_SERVERS_JSON: {problem}. An administrator can correct it in "
        f"{PIPE_SHELL.valves}; until then, chats continue without it."
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
        return "it is not a JSON object"
    if "server_label" not in fields:
        return "it has no server_label"
    for key, (form, expected) in _SERVER_FIELDS.items():
        if key in fields and not matches_schema(fields[key], form):
            return f"its {key} is not {expected}"
    if fields["server_label"].lower() in before:
        return "its server_label is not its own"
    targets = [key for key in ("server_url", "connector_id") if key in fields]
    if len(targets) != 1:
        return "it needs a server_url or a connector_id, one of them"
    if "connector_id" in fields and "authorization" not in fields:
        return "a connector needs an authorization"
    return None


# --------------------------------------------------------------------------------------
# owui_manifold.call.valves
#
# What an administrator can set, and what a user can.
# --------------------------------------------------------------------------------------


_LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
_Summary = Literal["auto", "concise", "detailed", "disabled"]
_Tier = Literal["auto", "default", "flex", "priority", "fast", "ultrafast"]
_Choice = Literal["inherit", "on", "off"]


def _valve(default: object, text: str, *, secret: bool = False, **limits: Any) -> Any:
    """Return the field of a valve; the page shows `Default` instead of its default."""
    return Field(
        default=default,
        description=f"{text} {_default_sentence(default)}",
        json_schema_extra={"input": {"type": "password"}} if secret else None,
        **limits,
    )


def _default_sentence(default: object) -> str:
    """Return the last sentence of a description."""
    if isinstance(default, bool):
        return f"Default: {'on' if default else 'off'}."
    return f"Default: `{default}`." if default != "" else "Default: empty."


class Valves(BaseModel):
    """Settings of the administrator, in the order of the page."""

    model_config = ConfigDict(allow_inf_nan=False)

    # The first day
    API_KEY: str = _valve(
        "",
        "An OpenAI API key. If empty, `OPENAI_API_KEY` of Open WebUI's environment is "
        "used.",
        secret=True,
    )
    BASE_URL: str = _valve(
        DEFAULT_BASE_URL, "Address of the Responses API, with or without `/v1`."
    )
    MODEL_ID: str = _valve(
        "gpt-6.1-sol, gpt-6.1-sol-high, gpt-6.1-terra, gpt-6-luna, gpt-5.2, "
        "gpt5_function_calling",
        "Models to offer, separated by commas; a name can end with an effort. `auto` "
        "lists the newest of each family, `gpt-5-auto` chooses one for each chat. "
        "`gpt5_function_calling` and `gpt5_react` are agents (AGENT_JSON).",
    )
    ENABLE_WEB_SEARCH: bool = _valve(
        False, "Offer OpenAI's web search in every chat. Searches are billed."
    )
    ENABLE_CODE_INTERPRETER: bool = _valve(
        False,
        "Let the model run Python in a billed container at OpenAI, with the files of the "
        "chat. Its own files are stored.",
    )
    ENABLE_IMAGE_GENERATION: bool = _valve(
        False, "Let the model generate images; each is billed and stored."
    )
    USER_MAY_CHANGE: str = _valve(
        "effort, summary, verbosity, web_search, code_interpreter, agent, show_cost, "
        "log_level",
        "Settings that users may change, separated by commas; also `image_generation`, "
        "`service_tier` (expensive), `all`, `nothing`. Administrators can change all.",
    )
    SHOW_COST: bool = _valve(
        False,
        "Show users the cost of an answer in its last status line and in its usage: "
        "tokens, web searches and Python's containers only. Administrators always see "
        "it, unless their own settings say otherwise.",
    )

    # Key and server
    AUTH: Literal["key", "bearer", "entra_id"] = _valve(
        "key",
        "How the key is sent: `key` as the server expects it, `bearer` as a bearer "
        "token. `entra_id` sends a token of Microsoft Entra ID instead.",
    )
    ORGANIZATION: str = _valve("", "Organization to bill, if the key has several.")
    PROJECT: str = _valve("", "Project to bill, if the key has several.")
    EXTRA_HEADERS: str = _valve(
        "",
        'Headers to add or replace, as a JSON object: `{"X-Team": "blue"}`.',
        secret=True,
    )
    USER_API_KEYS: Literal["off", "allowed", "required"] = _valve(
        "off",
        "Whether users can, or must, set a key of their own, also for tasks. "
        "Administrators can always use this pipe's key.",
    )
    COMPATIBILITY: Literal["auto", "openai", "strict"] = _valve(
        "auto",
        "`auto` and `openai` send what OpenAI supports, and drop what the server "
        "rejects. `strict` sends only what every server supports.",
    )
    FORWARD_USER_INFO: Literal["auto", "always", "never"] = _valve(
        "auto",
        "Send Open WebUI's headers about the user, if its "
        "ENABLE_FORWARD_USER_INFO_HEADERS is on. `auto`: not to OpenAI and Azure.",
    )
    PROXY: str = _valve(
        "",
        "Address of an HTTP proxy; it may include user and password. If empty, "
        "HTTPS_PROXY and NO_PROXY of the environment are used.",
        secret=True,
    )
    CA_BUNDLE: str = _valve(
        "",
        "Path of a file with the certificates to trust. If empty, the system's are "
        "used.",
    )
    VERIFY_SSL: bool = _valve(
        True,
        "Check the server's certificate. Turn this off for tests only: others on the "
        "network can then read the key.",
    )

    # Models
    MODEL_OVERRIDES_JSON: str = _valve(
        "",
        'Corrections to what the pipe knows about models: `{"my-deployment": {"like": '
        '"gpt-5.2", "name": "Our GPT"}}`.',
    )
    TASK_MODEL: str = _valve(
        "gpt-6-luna",
        "Model for titles and other tasks, at its lowest effort. If it is empty, or "
        "still the default at a server other than OpenAI's, the chat's own model is "
        "used.",
    )
    BACKGROUND_MODELS: str = _valve(
        "",
        "Models whose answers survive a broken connection: names or patterns "
        "(`*-pro`), separated by commas. OpenAI stores their requests and answers for "
        "30 days, which breaks zero data retention. Never used in `strict`.",
    )
    SERVICE_TIER: _Tier = _valve(
        "auto",
        "`flex` is slower and costs half, `fast` (or `priority`) twice, `ultrafast` 3 "
        "to 6 times as much, if the model and the project have them.",
    )
    MAX_OUTPUT_TOKENS: int = _valve(
        0,
        "Token limit of one answer, including reasoning. 0: the model's own limit.",
        ge=0,
    )
    ENABLE_STREAM: bool = _valve(
        True,
        "Stream answers. Turn this off for servers that cannot stream, or "
        "organizations that may not.",
    )
    CUSTOM_MODEL_PRICING_JSON: str = _valve(
        "",
        'US dollars per million tokens, instead of known prices: `{"my-model": '
        '{"input": 2, "cached": 0.5, "output": 8}}`.',
    )

    # Agents
    AGENT_JSON: str = _valve(
        "",
        "A JSON object of what the agents do (docs/agent.md lists its keys): "
        '`{"model": "gpt-6.1-sol", "maximum_iterations": 12}`. It also applies to the '
        "switch *Agent*, except for `model`.",
    )

    # OpenAI's tools
    MAP_WEB_SEARCH: bool = _valve(
        True,
        "The page's Web Search switch turns on OpenAI's search instead of Open WebUI's.",
    )
    WEB_SEARCH_OPTIONS: str = _valve(
        "",
        "A JSON object: `search_context_size`, `user_location`, `allowed_domains`, "
        "`blocked_domains`, `external_web_access`, `return_token_budget`. Example: "
        '`{"allowed_domains": ["who.int"], "user_location": {"country": "CH"}}`.',
    )
    IMAGE_GENERATION_OPTIONS: str = _valve(
        '{"partial_images": 2}',
        "A JSON object: `quality`, `size`, `background`, `output_format`, `model`, "
        "`partial_images` (previews, 0 to 3).",
    )
    IMAGE_DETAIL: Literal["auto", "low", "high"] = _valve(
        "auto",
        "How closely the model looks at attached images, unless the request says "
        "otherwise. `low` costs less.",
    )
    FILE_SEARCH_VECTOR_STORES: str = _valve(
        "",
        "Up to two vector stores for OpenAI's file search: `vs_1, vs_2`.",
    )
    FILE_INPUT: Literal["off", "pdf", "all"] = _valve(
        "off",
        "Attached files that are sent to the model whole, instead of the text that Open "
        "WebUI retrieves from them: PDFs, or `all` documents.",
    )
    REMOTE_MCP_SERVERS_JSON: str = _valve(
        "",
        "Servers that OpenAI calls, as a JSON list of objects: `server_label`, "
        "`server_url` or `connector_id`, `authorization`, `headers`, `allowed_tools`, "
        "`require_approval` (users are asked unless it is `never`), "
        "`server_description`.",
        secret=True,
    )

    # Open WebUI's tools
    TOOL_APPROVAL: str = _valve(
        "",
        "Rules `pattern=auto`, `ask` or `deny`, separated by commas: `delete_*=ask, "
        "shell=deny`; other tools follow the chat controls. A rule applies both to a "
        "tool's name in the chat and to its own name without a server's id.",
    )
    TOOL_TIMEOUTS: str = _valve(
        "default: 120",
        "Time limits of tool calls in seconds, excluding time waiting for approval, by "
        "name or pattern: `default: 120, crawl_*: 600`. Parallel calls share five "
        "times the default. Open WebUI's sub-agents and images time out after one "
        "hour.",
    )
    TOOL_OUTPUT_CHARACTERS: int = _valve(
        100_000,
        "Longest tool output that the model gets; the middle of a longer one is left "
        "out.",
        ge=1000,
    )
    PARALLEL_TOOL_CALLS: bool = _valve(True, "Let the model call tools in parallel.")
    MAX_FUNCTION_CALL_LOOPS: int = _valve(
        10,
        "Maximum number of rounds of tool calls before the model has to answer.",
        ge=1,
    )
    MAX_TOOL_CALLS: int = _valve(
        100, "Maximum number of tool calls in one answer.", ge=1
    )
    AUTO_NATIVE_TOOLS: bool = _valve(
        False,
        "Switch models whose Function Calling is set to Legacy to Native.",
    )

    # Reasoning and history
    REASONING_SUMMARY: _Summary = _valve(
        "auto",
        "Detail of the reasoning summaries. OpenAI gives them to verified "
        "organizations only; otherwise choose `disabled`.",
    )
    PERSIST_REASONING_TOKENS: Literal["disabled", "response", "conversation"] = _valve(
        "conversation",
        "How long the model gets its encrypted reasoning back: not at all, within one "
        "answer, or in the whole conversation (stored in the chat).",
    )
    PERSIST_TOOL_RESULTS: bool = _valve(
        True,
        "Send tool calls and results again in later turns. If off, neither they nor "
        "the reasoning before them are sent.",
    )
    HISTORY_CARRIER: Literal["output", "markers"] = _valve(
        "output",
        "Where hidden chat data is stored: `output` in Open WebUI's stored output of "
        "each answer, `markers` under the pipe's own keys, with lines in the text that "
        "copies of answers contain. Both are always read.",
    )
    STORE_ENCRYPTION_KEY: str = _valve(
        "",
        "A long random text that protects hidden chat data. If you change it, older "
        "chats can be read only in part. If empty, the server's WEBUI_SECRET_KEY is "
        "used.",
        secret=True,
    )
    PROMPT_CACHE_KEY: Literal["chat", "user", "off"] = _valve(
        "chat",
        "Which requests share OpenAI's prompt cache: those of a chat, those of a user, "
        "or `off`, as OpenAI decides. Only a hash is sent.",
    )
    TRUNCATION: Literal["disabled", "auto"] = _valve(
        "disabled",
        "When a chat is too long, `auto` drops its oldest messages, with reasoning and "
        "the prompt cache; `disabled` shows an error.",
    )
    COMPACTION_TOKENS: int = _valve(
        0,
        "Let OpenAI compact a chat whose input has more tokens than this. 0: never. "
        "Not available on Azure.",
        ge=0,
    )

    # Log and the rest
    LOG_LEVEL: _LogLevel = _valve(
        "INFO",
        "Lowest level in the server's log, which contains no key and no chat text.",
    )
    EXPERT_JSON: str = _valve(
        "",
        "A JSON object of rarely needed settings, such as timeouts, retries and the "
        "audit log (docs/settings.md lists them): "
        '`{"max_retries": 3}`.',
    )

    @field_validator("PROMPT_CACHE_KEY", mode="before")
    @classmethod
    def _rename_cache_keys(cls, value: object) -> object:
        """Read stored words of earlier pipes of this name: both stood for the user."""
        return "user" if value in ("id", "email") else value

    def effective_key(self) -> str:
        """Return the key to use; empty if there is none.

        As the default of the field, that of the environment would stand in the schema
        of the page.
        """
        return self.API_KEY.strip() or environment_key()

    def remembers_reasoning(self) -> bool:
        """Say whether reasoning is stored in the chat, for later turns."""
        return self.PERSIST_REASONING_TOKENS == "conversation"

    def carries_reasoning(self) -> bool:
        """Say whether reasoning is sent again between the tool rounds of an answer."""
        return self.PERSIST_REASONING_TOKENS != "disabled"


class UserValves(BaseModel):
    """Settings of a user; `inherit` leaves the choice to the administrator or model."""

    REASONING_EFFORT: Literal[
        "inherit", "none", "minimal", "low", "medium", "high", "xhigh", "max"
    ] = _valve(
        "inherit",
        "How long a model thinks. `max` is the highest effort that it has; any other "
        "effort that it lacks is not sent.",
    )
    REASONING_SUMMARY: Literal["inherit", _Summary] = _valve(
        "inherit", "Show a summary of the reasoning."
    )
    VERBOSITY: Literal["inherit", "low", "medium", "high"] = _valve(
        "inherit", "How long answers are."
    )
    WEB_SEARCH: _Choice = _valve("inherit", "Let the model search the web with OpenAI.")
    IMAGE_GENERATION: _Choice = _valve(
        "inherit", "Let the model generate images (if allowed)."
    )
    CODE_INTERPRETER: _Choice = _valve("inherit", "Let the model run Python at OpenAI.")
    SERVICE_TIER: Literal["inherit", _Tier] = _valve(
        "inherit",
        "`flex` is cheaper and slower, `fast` and `ultrafast` cost more (if allowed).",
    )
    SHOW_COST: _Choice = _valve("inherit", "Show the cost of an answer.")
    LOG_LEVEL: Literal["inherit", _LogLevel] = _valve(
        "inherit",
        "Log level of your chats; it can be more detailed than the administrator's, "
        "never less.",
    )
    API_KEY: str = _valve(
        "",
        "Your own key for OpenAI (if allowed). It pays for your chats.",
        secret=True,
        max_length=2000,
    )
    SHOW_LOG_ON_ERROR: bool = _valve(
        False, "For administrators: show the log of a failed answer as a source."
    )


class ToolSetting(NamedTuple):
    """What offers a kind of OpenAI's tools."""

    valve: str
    """The administrator's: a switch, or what the tool works with."""
    user_valve: str = ""
    """The user's own switch; empty if there is none."""
    replaced: tuple[str, ...] = ()
    """Open WebUI's own tools for the same purpose."""

    @property
    def is_switch(self) -> bool:
        """Whether the administrator's valve says nothing but on or off."""
        return bool(self.user_valve)


TOOL_SETTINGS: Mapping[str, ToolSetting] = {
    "web_search": ToolSetting(
        "ENABLE_WEB_SEARCH", "WEB_SEARCH", ("search_web", "fetch_url")
    ),
    "file_search": ToolSetting("FILE_SEARCH_VECTOR_STORES"),
    "mcp": ToolSetting("REMOTE_MCP_SERVERS_JSON"),
    "code_interpreter": ToolSetting(
        "ENABLE_CODE_INTERPRETER", "CODE_INTERPRETER", ("execute_code",)
    ),
    "image_generation": ToolSetting(
        "ENABLE_IMAGE_GENERATION",
        "IMAGE_GENERATION",
        ("generate_image", "edit_image"),
    ),
}
"""By the kinds of tools that are offered (openai_responses/tool_kinds.py)."""

TOOL_SWITCHES: Mapping[str, str] = {
    kind: setting.user_valve
    for kind, setting in TOOL_SETTINGS.items()
    if setting.is_switch
}
"""The users' switches: words of USER_MAY_CHANGE, and of the composer's filters."""


# --------------------------------------------------------------------------------------
# owui_manifold.call.config
#
# The valves as they apply to one call: they are read once, into a `Config`.
#
# The switches of the composer come from the companion filter, in
# `__metadata__["openai_responses"]`: `version`, kinds of tools like `web_search` (true),
# `agent` (true), `thinking` (an effort).
# --------------------------------------------------------------------------------------


_Read = TypeVar("_Read")
_Source = TypeVar("_Source")


class Config(NamedTuple):
    """What applies to one call; a user's choice replaces the administrator's."""

    valves: Valves
    expert: ExpertSettings
    """What EXPERT_JSON says."""
    secrets: tuple[str, ...]
    """Texts that must appear in no log and no chat."""
    problems: tuple[str, ...]
    """Messages for administrators; the call works without what they name."""

    own_key: str
    """The user's own API key, if the administrator permits one."""
    overrides: Mapping[str, ResolvedModel] | InvalidRequest
    """The administrator's models and the agents; an error refuses the call
    (`resolve_call`)."""
    remote: RemoteServers
    approval_rules: ApprovalRules
    tool_seconds: float
    """The time limit of a tool call that no pattern of TOOL_TIMEOUTS fits."""
    tool_timeouts: Sequence[tuple[str, float]]
    """Seconds by patterns of names."""
    prices: Mapping[str, ModelPrices] | InvalidRequest
    """The administrator's own, if they can be read."""

    effort: str | None
    summary: str
    verbosity: str | None
    service_tier: str
    tool_kinds: frozenset[str]
    """The kinds of OpenAI's tools to offer."""
    replaces_search: bool
    """Whether the page's switch means OpenAI's search instead of the host's."""
    shows_cost: bool
    shows_log: bool
    log_level: str
    agent: StrategyParameters
    """What AGENT_JSON says."""
    wants_agent: bool
    """Whether the switch makes the chat's model an agent."""
    refused: Sequence[str]
    """Settings that the user chose and may not change."""


def read_config(
    valves: Valves, user: JsonObject | None = None, metadata: JsonObject | None = None
) -> Config:
    """Read the valves for a call of `user`, the host's `__user__`.

    A user's lines of the log cannot be hidden from the administrator.
    """
    host = metadata or {}
    person = user or {}
    is_admin = person.get("role") == "admin"
    wishes = _read_wishes(valves, person, host.get(_FILTER_KEY))
    own = wishes.allowed
    parsed = _parse_valves(valves)
    allowed = valves
    if wishes.own_key:
        allowed = _for_own_key(valves, parsed.expert.user_keys_get)
    switches = as_mapping(host.get("features"))
    is_mapped = valves.MAP_WEB_SEARCH and bool(switches.get("web_search"))
    level = _choice(own.LOG_LEVEL, valves.LOG_LEVEL)
    tool_kinds = _offered_kinds(own, allowed, is_mapped)
    return Config(
        valves=allowed,
        expert=parsed.expert,
        secrets=_secrets(valves, own.API_KEY.strip(), *parsed.remote.secrets),
        problems=_list_problems(valves, parsed, wishes.problem),
        own_key=wishes.own_key,
        overrides=_read_or_error(named_models, valves),
        remote=parsed.remote if allowed.REMOTE_MCP_SERVERS_JSON else RemoteServers(),
        approval_rules=parsed.rules.rules,
        tool_seconds=parsed.timeouts.default,
        tool_timeouts=parsed.timeouts.by_pattern,
        prices=parsed.prices,
        effort=_choice(own.REASONING_EFFORT, None),
        summary=_choice(own.REASONING_SUMMARY, valves.REASONING_SUMMARY),
        verbosity=_choice(own.VERBOSITY, None),
        service_tier=_choice(own.SERVICE_TIER, valves.SERVICE_TIER),
        tool_kinds=tool_kinds,
        replaces_search=is_mapped and "web_search" in tool_kinds,
        shows_cost=_choice(own.SHOW_COST, valves.SHOW_COST or is_admin),
        shows_log=own.SHOW_LOG_ON_ERROR and is_admin,
        log_level=min(valves.LOG_LEVEL, level, key=LOG_LEVELS.__getitem__),
        agent=parsed.agent.parameters,
        wants_agent=wishes.agent,
        refused=wishes.refused,
    )


class _ParsedValves(NamedTuple):
    """The valves that hold more than one value each."""

    expert: ExpertSettings
    expert_problems: Sequence[str]
    remote: RemoteServers
    rules: ReadRules
    timeouts: ReadTimeouts
    prices: Mapping[str, ModelPrices] | InvalidRequest
    agent: ReadAgent


def _parse_valves(valves: Valves) -> _ParsedValves:
    """Read the valves that hold JSON, rules or lists; each has its own problems."""
    expert, expert_problems = read_expert_json(valves.EXPERT_JSON, ExpertSettings)
    return _ParsedValves(
        expert=expert,
        expert_problems=expert_problems,
        remote=read_servers(valves.REMOTE_MCP_SERVERS_JSON),
        rules=read_rules(valves.TOOL_APPROVAL, PIPE_SHELL),
        timeouts=read_timeouts(valves.TOOL_TIMEOUTS, PIPE_SHELL),
        prices=_read_or_error(read_prices, valves.CUSTOM_MODEL_PRICING_JSON),
        agent=read_agent_parameters(valves.AGENT_JSON),
    )


def _list_problems(
    valves: Valves, parsed: _ParsedValves, switch_problem: str
) -> tuple[str, ...]:
    """Return what is wrong with valves and switches, as messages."""
    prices = parsed.prices
    problems = (
        parsed.rules.problem,
        parsed.timeouts.problem,
        _permission_error(valves),
        switch_problem,
        *parsed.agent.problems,
        str(prices) if isinstance(prices, InvalidRequest) else "",
        *parsed.expert_problems,
    )
    return tuple(problem for problem in problems if problem)


def named_models(valves: Valves) -> dict[str, ResolvedModel]:
    """Return the administrator's models and the agents, by the names in MODEL_ID.

    Raises InvalidRequest.
    """
    overrides = read_overrides(valves.MODEL_OVERRIDES_JSON)
    return add_agents(overrides, read_agent_parameters(valves.AGENT_JSON).parameters)


def read_expert_settings(valves: Valves) -> ExpertSettings:
    """Return what EXPERT_JSON says, outside of a call."""
    expert, _ = read_expert_json(valves.EXPERT_JSON, ExpertSettings)
    return expert


def _secrets(valves: Valves, *others: str) -> tuple[str, ...]:
    headers = parse_string_map(valves.EXTRA_HEADERS)
    values = [valves.EXTRA_HEADERS] if headers is None else headers.values()
    keys = (valves.effective_key(), valves.STORE_ENCRYPTION_KEY)
    return connection_secrets(values, valves.PROXY, *keys, *others)


def _read_or_error(
    read: Callable[[_Source], _Read], source: _Source
) -> _Read | InvalidRequest:
    """Return what a valve says, or its error: only calls that need it are refused."""
    try:
        return read(source)
    except InvalidRequest as error:
        return error


def _offered_kinds(own: UserValves, valves: Valves, is_mapped: bool) -> frozenset[str]:
    """Return the kinds of OpenAI's tools that valves and user want.

    `is_mapped` says that the page's own switch for searches means OpenAI's.
    """
    offered = set[str]()
    for kind, setting in TOOL_SETTINGS.items():
        is_on = bool(getattr(valves, setting.valve))
        if kind == "web_search":
            is_on = is_on or is_mapped
        if setting.is_switch:
            is_on = _choice(getattr(own, setting.user_valve), is_on)
        if is_on:
            offered.add(kind)
    return frozenset(offered)


def _choice(own: str, default: Any) -> Any:
    """Return what a user chose, or the default for `inherit`."""
    return {"inherit": default, "on": True, "off": False}.get(own, own)


_FILTER_KEY = "openai_responses"
_FILTER_VERSION = 1

_OTHER_FILTER_VERSION = (
    "The switches next to the chat input have no effect: their version differs from "
    "this pipe's. Install both from the same release."
)

_CHOICES: Mapping[str, str] = {
    "effort": "REASONING_EFFORT",
    "summary": "REASONING_SUMMARY",
    "verbosity": "VERBOSITY",
    **TOOL_SWITCHES,
    "service_tier": "SERVICE_TIER",
    "show_cost": "SHOW_COST",
    "log_level": "LOG_LEVEL",
}
"""The words of USER_MAY_CHANGE, with the user valve that each allows."""

_AGENT_WORD = "agent"
"""The word for the switch that no user valve stands for."""


class _Wishes(NamedTuple):
    """What a user chose, in the user valves and with the composer's switches."""

    allowed: UserValves
    """Without the choices that the user may not make."""
    own_key: str
    """The user's own API key, if the administrator permits one."""
    agent: bool
    """Whether the chat's model is to be an agent."""
    refused: Sequence[str]
    """The names of the choices that the user may not make."""
    problem: str
    """The message about switches that cannot be read."""


def _read_wishes(valves: Valves, person: JsonObject, switches: object) -> _Wishes:
    """Return what a user chose and may choose.

    `switches` is what the companion filter wrote into the metadata.
    """
    is_admin = person.get("role") == "admin"
    stored = person.get("valves")
    given = stored if isinstance(stored, UserValves) else UserValves()
    switched = _read_switches(given, switches)
    allowed = _allowed_choices(switched.user, valves, is_admin)
    may_use_agent = is_admin or _is_permitted(_AGENT_WORD, valves)
    return _Wishes(
        allowed=allowed,
        own_key=allowed.API_KEY.strip() if valves.USER_API_KEYS != "off" else "",
        agent=switched.agent and may_use_agent,
        refused=_refused_choices(switched, allowed, valves, may_use_agent),
        problem=switched.problem,
    )


class _Switched(NamedTuple):
    """A user's settings with the composer's switches."""

    user: UserValves
    agent: bool = False
    problem: str = ""
    """The message about switches that cannot be read."""


def _read_switches(user: UserValves, given: object) -> _Switched:
    """Return a user's settings with the composer's switches."""
    if not isinstance(given, Mapping):
        return _Switched(user)
    if given.get("version") != _FILTER_VERSION:
        return _Switched(user, problem=_OTHER_FILTER_VERSION)
    changed = {valve: "on" for kind, valve in TOOL_SWITCHES.items() if given.get(kind)}
    if given.get("thinking") in REASONING_EFFORTS:
        changed["REASONING_EFFORT"] = str(given["thinking"])
    return _Switched(user.model_copy(update=changed), bool(given.get(_AGENT_WORD)))


def _is_permitted(word: str, valves: Valves) -> bool:
    """Say whether users may change what a word stands for."""
    return bool({word, "all"} & _permitted_words(valves))


def _allowed_choices(user: UserValves, valves: Valves, is_admin: bool) -> UserValves:
    """Return a user's settings without those that they may not change."""
    words = _permitted_words(valves)
    if is_admin or "all" in words:
        return user
    fields = UserValves.model_fields
    reset = {v: fields[v].default for word, v in _CHOICES.items() if word not in words}
    return user.model_copy(update=reset)


def _refused_choices(
    switched: _Switched, own: UserValves, valves: Valves, may_use_agent: bool
) -> list[str]:
    """Return the settings in which a user's wish and permission differ."""
    wanted = switched.user
    names = _CHOICES.values()
    lost = [name for name in names if getattr(wanted, name) != getattr(own, name)]
    if valves.USER_API_KEYS == "off" and wanted.API_KEY.strip():
        lost.append("API_KEY")
    if switched.agent and not may_use_agent:
        lost.append("AGENT")
    return lost


def _permission_error(valves: Valves) -> str:
    known = (*_CHOICES, _AGENT_WORD, "all", "nothing")
    advice = f"Choose from {', '.join(known)}."
    return unknown_words("USER_MAY_CHANGE", _permitted_words(valves), known, advice)


def _permitted_words(valves: Valves) -> set[str]:
    return set(comma_list(valves.USER_MAY_CHANGE.lower()))


def _for_own_key(valves: Valves, user_keys_get: str) -> Valves:
    """Return the valves without what a user's own key does not get."""
    names = ["ORGANIZATION", "PROJECT"]
    if user_keys_get != "all":
        names += ["REMOTE_MCP_SERVERS_JSON", "FILE_SEARCH_VECTOR_STORES"]
    if user_keys_get == "nothing":
        names.append("EXTRA_HEADERS")
    return valves.model_copy(update=dict.fromkeys(names, ""))


OWN_KEY_PLACE = (
    "API_KEY in your settings of this pipe: the slider icon next to the chat input, or "
    "Controls > Valves."
)
_NO_OWN_KEY = f"This pipe needs your own OpenAI API key. Set {OWN_KEY_PLACE}"
_BILLED_HEADERS = ("authorization", "api-key", "openai-organization", "openai-project")


def build_endpoint(
    valves: Valves, own_key: str = "", *, is_admin: bool = True
) -> Endpoint:
    """Return where requests go, with a user's own key if there is one.

    Headers that name an account are not sent with that key. Raises InvalidRequest for
    unusable valves.
    """
    if not own_key and valves.USER_API_KEYS == "required" and not is_admin:
        raise InvalidRequest(_NO_OWN_KEY)
    key = own_key or valves.effective_key()
    takes_token = valves.AUTH == "entra_id" and not own_key
    if not key and not takes_token:
        raise missing_key_error(PIPE_SHELL)
    headers = read_headers(valves.EXTRA_HEADERS, PIPE_SHELL)
    billed = _BILLED_HEADERS if own_key else ()
    return endpoint_of_valves(
        valves,
        api_key="" if takes_token else key,
        token=key if valves.AUTH == "bearer" else "",
        proxy=valves.PROXY.strip(),
        headers={k: v for k, v in headers.items() if k.lower() not in billed},
    )


def run_limits(expert: ExpertSettings, model: ResolvedModel) -> Limits:
    """Return the limits of a run."""
    return Limits(
        timeouts=expert.timeouts(model, expert.total_timeout_seconds),
        retries=RetryPolicy(expert.max_retries, expert.max_retry_wait_seconds),
        flex_falls_back=expert.flex_falls_back,
    )


# --------------------------------------------------------------------------------------
# owui_manifold.call.log
#
# The pipe's lines in the server's log; the newest of each run are kept in memory.
# --------------------------------------------------------------------------------------


_LOGGER = logging.getLogger("openai_responses_manifold")

_KEPT_LINES = 2000


class RunLog(AnswerLog):
    """The log of one run; can be used from other threads."""

    def __init__(self, threshold: str, secrets: Iterable[str], run_id: str) -> None:
        """Start empty; lines from `threshold` on are written to the server's log."""
        super().__init__(run_id, secrets)
        self._threshold = LOG_LEVELS[threshold]
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._lock = Lock()

    def _write(self, level: LogLevel, one_line: str) -> None:
        """Keep a line with its time in UTC; write it too if its level is high enough."""
        time = datetime.fromtimestamp(unix_seconds(), UTC)
        with self._lock:
            self._lines.append(f"{time:%Y-%m-%d %H:%M:%S} {level:<8} {one_line}")
        if LOG_LEVELS[level] >= self._threshold:
            _write_to_server(level, f"{self.run_id} {one_line}")

    def audit(self, line: str) -> None:
        """Write a line of the audit log, which has its own valve."""
        _write_to_server("INFO", redact(line, self._secrets))

    def text(self) -> str:
        """Return the newest lines, oldest first."""
        with self._lock:
            return "\n".join(self._lines)


def _write_to_server(level: LogLevel, line: str) -> None:
    """Hand `line` to the handlers of the server.

    The logger's level belongs to the server and to other copies of the pipe, so it is
    not changed: the record goes to the handlers directly. Those of Open WebUI drop
    levels below INFO, so a DEBUG line is sent as INFO and says that it is DEBUG.
    """
    number = max(LOG_LEVELS[level], logging.INFO)
    text = line if LOG_LEVELS[level] == number else f"{level} {line}"
    record = _LOGGER.makeRecord(_LOGGER.name, number, "pipe", 0, text, (), None)
    _LOGGER.handle(record)


# --------------------------------------------------------------------------------------
# owui_manifold.host.context
#
# What Open WebUI passes to a call beside the chat.
# --------------------------------------------------------------------------------------


EventCall = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends an event to the page of the caller, and returns its answer."""

EventEmitter = Callable[[JsonObject], Coroutine[Any, Any, None]]
"""Sends an event to the page of the caller; the host stores some of them."""


class HostContext(NamedTuple):
    """What the host passes beside the chat."""

    tools: Mapping[str, JsonObject]
    request: Any
    metadata: JsonObject
    event_call: EventCall | None
    event_emitter: EventEmitter | None

    def is_builtin(self, name: str) -> bool:
        """Say whether a tool is one of the host's own."""
        return bool(value_at(self.tools, name, "type") == "builtin")


# --------------------------------------------------------------------------------------
# owui_manifold.host.threads
#
# Threads of each user, for tools that are not coroutines.
#
# A thread cannot be stopped: a tool that hangs keeps it after its time limit. In one pool
# a single person could take the threads of all.
# --------------------------------------------------------------------------------------


_MAX_THREADS = 8
"""Of one user; an answer runs as many calls at once."""

_USED_UP = (
    f"Error: The tool was not started: {_MAX_THREADS} earlier calls are still running after "
    "their time limit. Tell the user to try again later, and to tell an administrator "
    "if the problem persists."
)


class UserThreads(ThreadPoolExecutor):
    """The threads of one user; `abandoned` calls run on after their time limit."""

    def __init__(self) -> None:
        """Start no thread yet."""
        super().__init__(_MAX_THREADS, "sync-tool")
        self.abandoned = set[Future[Any]]()

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return the result of `work`; an error if abandoned calls hold all threads."""
        if len(self.abandoned) >= _MAX_THREADS:
            return _USED_UP
        future = self.submit(work)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self.abandoned.add(future)
            future.add_done_callback(self._forget)
            raise

    def _forget(self, future: Future[Any]) -> None:
        """Free the thread of an abandoned call.

        As the future's callback it keeps this object alive in the weak mapping.
        """
        self.abandoned.discard(future)


ToolThreads = WeakValueDictionary[str, UserThreads]
"""By user, as long as a call of theirs runs."""


# --------------------------------------------------------------------------------------
# owui_manifold.call.context
#
# One call of the pipe, in two stages: as it arrives, and once it has been checked.
# --------------------------------------------------------------------------------------


_CHANNEL = "channel:"
_ROWLESS_CHATS = ("temporary:", "local:", _CHANNEL)
"""Prefixes of chat ids without a row: temporary chats (old and new) and channels."""


class Caller(ChatCaller):
    """Who asks the pipe, and for which chat and message."""

    @property
    def model(self) -> str:
        """The model as the administrator listed it, without the function's id."""
        return self.host_model.split(".", 1)[-1]

    @property
    def is_in_channel(self) -> bool:
        """Whether the model was mentioned in a channel."""
        return self.chat_id.startswith(_CHANNEL)

    @property
    def may_have_row(self) -> bool:
        """Whether the chat can have a row of its own in the database."""
        return self.host_reads and not self.chat_id.startswith(_ROWLESS_CHATS)


def read_caller(
    body: JsonObject,
    user: JsonObject | None,
    metadata: JsonObject | None,
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


def page_emitter(caller: Caller, host: HostContext) -> EventEmitter | None:
    """Return what sends events beside the answer; None if no page shows them."""
    if caller.host_reads and not caller.task:
        return host.event_emitter
    return None


class PipeCall(NamedTuple):
    """One call of the pipe as it arrives, and what it shares with others."""

    body: JsonObject
    caller: Caller
    config: Config
    capabilities: AccountCapabilities
    log: RunLog
    host: HostContext
    threads: ToolThreads
    """Where tools run that are not coroutines."""
    user: JsonObject = MappingProxyType({})
    """The host's `__user__`."""
    account: CallAccount | None = None
    """What the administration's filter decides about the call, if it is active."""


class CheckedCall(NamedTuple):
    """A call that may be answered, with its endpoint and model.

    Settings that cannot be used have raised InvalidRequest by now (`check_call`).
    """

    body: JsonObject
    """Only what the caller may set."""
    messages: list[dict[str, Any]]
    """Those of the body; none if it has no list of them."""
    caller: Caller
    config: Config
    endpoint: Endpoint
    """Where its requests go."""
    model: ResolvedModel
    """What answers it."""
    chosen_model: ResolvedModel
    """The requested model, which the API may have shut down."""
    model_id: str
    """The host's id of the model that was chosen, maybe one of its workspace."""
    model_name: str
    """The name in MODEL_ID or AGENT_JSON of the model that answers."""
    overrides: Mapping[str, ResolvedModel]
    """The administrator's models and the agents, by their names."""
    capabilities: AccountCapabilities
    log: RunLog
    host: HostContext
    threads: ToolThreads
    account: CallAccount | None
    agent: AgentMode | None
    """How an agent answers, if one does."""

    @property
    def valves(self) -> Valves:
        """The administrator's settings."""
        return self.config.valves

    def warn_once(self, text: str) -> None:
        """Write a line in the log, once a day."""
        if self.capabilities.first_time(text):
            self.log.warn(text)

    def resolve(self, name: str) -> ResolvedModel:
        """Return a model with the administrator's overrides."""
        return resolve_model(name, self.overrides)


def resolve_call(call: PipeCall, endpoint: Endpoint) -> CheckedCall:
    """Return a call with the model that answers it at an endpoint.

    Raises InvalidRequest for unusable overrides. Azure ends its models on other days
    than OpenAI.
    """
    caller = call.caller
    overrides = call.config.overrides
    if isinstance(overrides, InvalidRequest):
        raise overrides
    parameters = call.config.agent
    chosen = resolve_model(caller.model, overrides)
    agent = None
    if not caller.task:
        switched = call.config.wants_agent
        agent = find_agent(caller.model, parameters, is_switched=switched)
    ends = call.capabilities.shutdown_dates.get(chosen.id)
    if ends:
        chosen = chosen._replace(facts=chosen.facts._replace(shutdown=ends))
    successor = None if endpoint.is_azure else replacement(chosen, utc_today())
    return CheckedCall(
        body=call.body,
        messages=as_list(call.body.get("messages")),
        caller=caller,
        config=call.config,
        endpoint=endpoint,
        model=successor or chosen,
        chosen_model=chosen,
        model_id=str(call.host.metadata.get("model_id") or caller.host_model),
        model_name=answering_name(caller.model, parameters),
        overrides=overrides,
        capabilities=call.capabilities,
        log=call.log,
        host=call.host,
        threads=call.threads,
        account=call.account,
        agent=agent,
    )


# --------------------------------------------------------------------------------------
# owui_manifold.host.callables
#
# The functions of the host's tools: how it wraps them, and how they run.
#
# Every assumption about a function that is not ours is made here.
# --------------------------------------------------------------------------------------


HostFunction = Callable[..., Coroutine[Any, Any, Any]]
"""A tool's function as the host wraps it: async, even if the tool never waits."""

_OWN_NAME = "function_name"
"""The host's variable in the function of a server's tool: its name on the server."""


def function_names(wrapped: object) -> list[str]:
    """Return the names that a tool's function has: its own, and that on a server."""
    function = getattr(wrapped, "__function__", wrapped)
    names = [str(getattr(function, "__name__", ""))]
    variables = getattr(getattr(function, "__code__", None), "co_freevars", ())
    if _OWN_NAME in variables:
        cells: Any = getattr(function, "__closure__", None)
        names.append(str(cells[variables.index(_OWN_NAME)].cell_contents))
    return names


def is_blocking(function: HostFunction) -> bool:
    """Say whether a function does its work without waiting.

    The host wraps sync tools in coroutine functions that never wait; on the event loop
    they would block every chat.
    """
    bare = getattr(function, "__function__", None)
    return bare is not None and not inspect.iscoroutinefunction(bare)


def run_at_once(function: HostFunction, params: JsonObject) -> Any:
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


async def call_server(function: HostFunction, params: JsonObject) -> Any:
    """Return the result of an MCP server, or its error for the model.

    The host raises the server's own error as a bare Exception (utils/mcp/client.py).
    Other exceptions are not from the server and may not be shown to the model.
    """
    try:
        return await function(**params)
    except Exception as error:
        if type(error) is Exception:
            return {"error": str(error)}
        raise


# --------------------------------------------------------------------------------------
# owui_manifold.host.open_webui
#
# What only the pipe uses of Open WebUI.
#
# Each function raises HostTooOld if the host lacks a name that it needs.
# --------------------------------------------------------------------------------------


_FLOOR = (0, 11, 4)
"""From this version on `Chats.update_chat_by_id` patches the top-level keys of a chat;
before, it replaced the whole chat (docs/reference/open-webui.md, "The chat's row")."""


def require_floor() -> None:
    """Raise InvalidRequest if Open WebUI is too old."""
    version = host_name("env", "VERSION")
    numbers = [int(number) for number in re.findall(r"\d+", str(version))[:3]]
    if tuple(numbers) < _FLOOR:
        floor = ".".join(map(str, _FLOOR))
        raise InvalidRequest(
            f"This pipe needs Open WebUI {floor} or newer; this server runs "
            f"{version}. An administrator has to update Open WebUI."
        )


async def read_chat(chat_id: str, user_id: str) -> JsonObject | None:
    """Return the JSON of a user's own chat; None if there is no such row."""
    chats = host_name("models.chats", "Chats")
    row = await chats.get_chat_by_id_and_user_id(chat_id, user_id)
    return row.chat if row is not None and isinstance(row.chat, Mapping) else None


async def write_chat_keys(chat_id: str, values: JsonObject) -> bool:
    """Replace top-level keys of a chat's JSON; say whether the host stored them.

    Without `touch` the chat keeps its time, and with it its place in the list.
    """
    chats = host_name("models.chats", "Chats")
    row = await chats.update_chat_by_id(chat_id, dict(values), touch=False)
    return row is not None


def server_secret() -> str:
    """Return the server's own secret; empty without one.

    Then the chat works without what needs a secret.
    """
    try:
        return str(host_name("env", "WEBUI_SECRET_KEY") or "")
    except HostTooOld:
        return ""


async def identity_headers(host: HostContext, user_id: str) -> dict[str, str]:
    """Return the headers that the host's own connections send about a user, if any."""
    headers: dict[str, str] = {}
    with suppress(HostTooOld):  # a host that has no such headers
        if user_id and host_name("env", "ENABLE_FORWARD_USER_INFO_HEADERS"):
            include = host_name("utils.headers", "include_user_info_headers")
            headers = include({}, await user_model(user_id), request=host.request)
            chat_id = host.metadata.get("chat_id")
            if chat_id:
                name = host_name("env", "FORWARD_SESSION_INFO_HEADER_CHAT_ID")
                headers[name] = quote(str(chat_id), ":", errors="replace")
    return headers


ADMINISTRATION = "openai_responses_administration"


async def active_administration(request: Any) -> Administration | None:
    """Return the filter that decides about calls of the pipe; None if none is active."""
    if request is None:
        return None
    context = host_name("utils.filter", "get_filter_context")(request)
    active = [name for name, _ in await context.get_active_filters()]
    if ADMINISTRATION not in active:
        return None
    load = host_name("utils.filter", "get_function_module")
    filter_module = await load(request, ADMINISTRATION)
    if getattr(filter_module, "CONTRACT", 0) != 1:
        raise InvalidRequest("An administrator has to update this pipe and its filter.")
    # The context reads the valves of all filters once, so it has to know all of them.
    filter_module.valves = await context.get_function_valves(
        active, ADMINISTRATION, filter_module.Valves
    )
    administration: Administration = filter_module
    return administration


class InstalledFunction(NamedTuple):
    """A function of Open WebUI that comes with this pipe, or is it."""

    id: str
    title: str
    version: str
    is_active: bool


_AUTHOR = "The authors of OpenAI Responses Manifold"


async def installed_functions() -> list[InstalledFunction]:
    """Return this pipe and its filters, as they are installed."""
    functions = host_name("models.functions", "Functions")
    rows = [
        *await functions.get_functions_by_type("pipe"),
        *await functions.get_functions_by_type("filter"),
    ]
    installed: list[InstalledFunction] = []
    for row in rows:
        manifest = as_mapping(row.meta.manifest)
        if manifest.get("author") == _AUTHOR:
            title = str(manifest.get("title"))
            version = str(manifest.get("version"))
            function = InstalledFunction(row.id, title, version, bool(row.is_active))
            installed.append(function)
    return installed


_TASK_MODELS = (
    "task.model.default",
    "task.model.external",
    "chat.context_compaction.model",
)


async def missing_task_models(request: Any) -> list[str]:
    """Return the models that an administrator chose for tasks and that are gone.

    The host takes those that clients name instead.
    """
    config = host_name("models.config", "Config")
    models = request.app.state.MODELS
    chosen = [await config.get(key, "") for key in _TASK_MODELS]
    return [model for model in dict.fromkeys(chosen) if model and model not in models]


async def is_legacy_model(model_id: str) -> bool:
    """Say whether the function calling of a stored model is legacy."""
    row = await host_name("models.models", "Models").get_model_by_id(model_id)
    params = row.params.model_dump() if row is not None else {}
    return bool(params.get("function_calling") == "legacy")


async def administrator_params(model_id: str) -> dict[str, Any]:
    """Return the parameters that administrators stored for all models and for one.

    If no administrator owns the model, its own are left out.
    """
    config = host_name("models.config", "Config")
    stored = [await config.get("models.default_params", {}) or {}]
    row = await host_name("models.models", "Models").get_model_by_id(model_id)
    owner = await user_model(row.user_id) if row is not None else None
    if owner is not None and owner.role == "admin":
        stored.append(row.params.model_dump())
    flat = [{**params, **(params.get("custom_params") or {})} for params in stored]
    return {key: _parsed(value) for params in flat for key, value in params.items()}


def _parsed(value: object) -> object:
    """Return a custom parameter as the host sends it: JSON is read."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


async def allowed_features(metadata: JsonObject, user: JsonObject) -> JsonObject:
    """Return the metadata, without web search if the user may not use it.

    `features` comes from the client and is not checked by the host for a pipe
    (docs/reference/open-webui.md, "Parameters and switches of a call").
    """
    requested = as_mapping(metadata.get("features"))
    if not requested.get("web_search") or user.get("role") == "admin":
        return metadata
    about = as_mapping(value_at(metadata, "model", "info", "meta", "capabilities"))
    config = host_name("models.config", "Config")
    has_permission = host_name("utils.access_control", "has_permission")
    rights = await config.get("user.permissions", {})
    if (
        about.get("web_search", True)
        and await config.get("web.search.enable", False)
        and await has_permission(user.get("id"), "features.web_search", rights)
    ):
        return metadata
    return {**metadata, "features": {**requested, "web_search": False}}


async def make_native(model_id: str) -> bool:
    """Set the function calling of a model to native; say whether the host did it.

    Nothing else of its row changes: without grants the host keeps the existing ones.
    """
    models = host_name("models.models", "Models")
    row = await models.get_model_by_id(model_id)
    if row is None:
        return False
    kept = row.model_dump(include={"id", "base_model_id", "name", "meta", "is_active"})
    native = {**row.params.model_dump(), "function_calling": "native"}
    form = host_name("models.models", "ModelForm")(**kept, params=native)
    return await models.update_model_by_id(row.id, form) is not None


class RetrievedText(NamedTuple):
    """What the host wrote into a chat of all its sources, and what is to stay of it."""

    sources: str
    with_template: str
    kept: str
    """Empty if nothing stays."""
    kept_with_template: str


async def retrieved_text(
    sources: list[Any], kept: list[Any], question: str
) -> RetrievedText:
    """Return the text of `sources`, as the host wrote it, and that of the `kept` ones.

    These keep their numbers. `question` is for templates that repeat it.
    """
    build = host_name("utils.middleware", "get_source_context")
    fill = host_name("utils.task", "rag_template")
    template = await host_name("models.config", "Config").get("rag.template")
    numbers: dict[str, int] = {}
    whole_text = str(build(sources, numbers)).strip()
    kept_text = str(build(kept, numbers)).strip()
    return RetrievedText(
        sources=whole_text,
        with_template=str(await fill(template, whole_text, question)),
        kept=kept_text,
        kept_with_template=str(await fill(template, kept_text, question)),
    )


_MAX_SIDE_PIXELS = 2048
"""The API itself scales larger pictures down to about that."""

_MAX_PIXELS = 50_000_000
"""Of a picture that is decoded: each takes four bytes, and more for its scaled copy. A
few megabytes of PNG can hold any number; Pillow itself refuses only above 179 million."""
_SCALED_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
"""What the API reads. Pillow has decoders for many more, and runs a program for some."""


def scale_image(encoded: str) -> bytes:
    """Return a picture, given in base64, as a smaller JPEG; blocks.

    Empty if the host's library cannot read it, or if it has too many pixels.
    """
    scaled = BytesIO()
    try:
        file = BytesIO(b64decode(encoded))
        # Only the header is read here; the pixels are decoded by what follows.
        with import_module("PIL.Image").open(file, formats=_SCALED_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                return b""
            image.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
            image.convert("RGB").save(scaled, "JPEG")
    except Exception:  # no Pillow, a damaged picture, too many pixels
        return b""
    return scaled.getvalue()


async def update_tool(
    function: HostFunction, messages: list[Any], files: list[Any]
) -> HostFunction:
    """Return a tool's function with the current messages and files of the chat."""
    update = host_name("utils.tools", "get_updated_tool_function")
    fresh = {"__messages__": messages, "__files__": files}
    updated: HostFunction = await update(function=function, extra_params=fresh)
    return updated


async def process_tool_result(
    host: HostContext,
    user: HostUser | None,
    name: str,
    tool: JsonObject,
    params: dict[str, Any],
    result: Any,
) -> tuple[str, list[dict[str, Any]], list[Any]]:
    """Return a tool's result as text, its files and its embeds, as the host does.

    The page is told about the result of a terminal tool.
    """
    build = host_name("utils.middleware", "build_terminal_file_tool_result")
    process = host_name("utils.middleware", "process_tool_result")
    shown = build(name, params, result, tool, host.metadata) or result
    kind = tool.get("type", "")
    direct = bool(tool.get("direct"))
    text, files, embeds = await process(
        host.request, name, shown, kind, direct, host.metadata, user
    )
    if host.event_emitter is not None:
        tell = host_name("utils.middleware", "terminal_event_handler")
        await tell(name, params, str(text or ""), host.event_emitter)
    return str(text or ""), files, embeds


def citation_sources(
    name: str, params: dict[str, Any], text: str, tool_id: str
) -> list[dict[str, Any]]:
    """Return the sources that a result of the host's own tools names."""
    read = host_name("utils.middleware", "get_citation_source_from_tool_result")
    return list(
        read(tool_name=name, tool_params=params, tool_result=text, tool_id=tool_id)
    )


async def stored_image(host: HostContext, user: HostUser | None, url: str) -> str:
    """Store a tool's picture; return the address of the file."""
    store = host_name("utils.middleware", "store_tool_result_image")
    return str(await store(host.request, url, host.metadata, user))


# --------------------------------------------------------------------------------------
# owui_manifold.call.callers
#
# What a caller may set; the rest is the administrator's (docs/parameters.md).
#
# A body holds side by side what a client sent, what a user chose on the page, what
# filters added and what is stored with the model.
# --------------------------------------------------------------------------------------


_LENGTHS = ("max_output_tokens", "max_tokens", "max_completion_tokens")
_TOOLS = ("tools", "extra_tools")
_CLOSED_FIELDS = {name for kind in TOOL_KINDS.values() for name in kind.closed_fields}
"""Fields that are closed in every tool: the API may get to know one in another kind."""


def _tool_words() -> Iterator[str]:
    """Yield the words that open tools: types, and fields as `type.field`."""
    for kind in TOOL_KINDS.values():
        for name in kind.types:
            yield name
            for field in kind.closed_fields:
                yield f"{name}.{field}"


_KNOWN_WORDS = {
    "max_output_tokens",
    "reasoning.mode",
    "reasoning.context",
    *ACCOUNT_KEYS,
    *COSTLY_PARAMETERS,
    *_tool_words(),
}


class _Permission(NamedTuple):
    """What one caller may set."""

    opened: Collection[str]
    """What `caller_may_set` opens for this caller."""
    max_tokens: int
    """MAX_OUTPUT_TOKENS, or 0 for no limit."""
    stored: JsonObject
    """The parameters that an administrator stored with the model; they may be sent."""


async def permitted_call(call: CheckedCall) -> CheckedCall:
    """Return the call without what its caller may not set; the log says it once."""
    caller = call.caller
    opened = _opened_for(call)
    is_limited = "max_output_tokens" not in opened
    max_tokens = call.valves.MAX_OUTPUT_TOKENS if is_limited else 0
    may = _Permission(opened, max_tokens, {})
    if _permitted_body(call.body, may) == call.body:
        return call
    stored = await administrator_params(call.model_id)
    body = _permitted_body(call.body, may._replace(stored=stored))
    shown: dict[str, str] = {}
    for key, value in call.body.items():
        if value is not None and body.get(key) != value:
            shown[key] = f"{key} ({ACCOUNT_KEYS.get(key, 'in part')})"
    who = f"user {caller.user_id}"
    line = left_out_line(who, shown, call.capabilities.first_time)
    if line:
        call.log.warn(line)
    return call._replace(body=body)


async def permitted_agent(call: CheckedCall) -> CheckedCall:
    """Return the call with what its caller may set of an agent.

    A model of the workspace states it in its custom parameters.
    """
    if call.agent is None:
        return call
    stated = stated_parameters(call.body)
    if not stated:
        return call
    stored = stated_parameters(await administrator_params(call.model_id))
    raisable = _opened_for(call)
    for name, value in stated.items():
        if name in stored and stored[name] == value:
            raisable.add(name)
    agent = with_stated_parameters(call.agent, stated, raisable)
    return call._replace(agent=agent)


def opening_error(expert: ExpertSettings) -> str:
    """Return the message about words of `caller_may_set` that name nothing, if any."""
    words = map(_opened, comma_list(expert.caller_may_set.lower()))
    advice = "No parameter and no type of tool has such a name."
    return unknown_permissions(words, _KNOWN_WORDS, advice)


def _opened_for(call: CheckedCall) -> set[str]:
    """Return what `caller_may_set` opens for the caller."""
    words = comma_list(call.config.expert.caller_may_set.lower())
    is_admin = call.caller.is_admin
    return {_opened(word) for word in words if is_admin or ":" not in word}


def _opened(word: str) -> str:
    """Return what a word of `caller_may_set` opens."""
    return word.removeprefix("admin:").strip()


def _permitted_body(body: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return a body with what its caller may set."""
    kept = _permitted_keys(body, may)
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping):
        kept["reasoning"] = _permitted_reasoning(reasoning, may)
    for name in _TOOLS:
        given = body.get(name)
        if isinstance(given, list):
            kept[name] = _permitted_tools(given, may)
    for name in _LENGTHS:
        if _is_too_long(name, body, may):
            kept[name] = may.max_tokens
    return kept


def _permitted_keys(body: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return a body without the administrator's keys, unless the model has them."""
    kept = dict(body)
    for key in ACCOUNT_KEYS:
        if key not in body or key in may.opened:
            continue
        del kept[key]
        if key in may.stored:
            kept[key] = may.stored[key]
    return kept


def _permitted_reasoning(given: JsonObject, may: _Permission) -> dict[str, Any]:
    """Return the reasoning settings that a caller may set."""
    stored = as_mapping(may.stored.get("reasoning"))
    kept: dict[str, Any] = {}
    for key, value in given.items():
        is_open = key in ("effort", "summary") or f"reasoning.{key}" in may.opened
        if is_open or (key in stored and stored[key] == value):
            kept[key] = value
    return kept


def _permitted_tools(given: Iterable[object], may: _Permission) -> list[object]:
    """Return the tools that a caller may offer, or that are stored with the model."""
    stored = [tool for name in _TOOLS for tool in as_list(may.stored.get(name))]
    return [tool for tool in given if _is_open(tool, may.opened) or tool in stored]


def _is_open(tool: object, opened: Collection[str]) -> bool:
    """Say whether a caller may offer a tool: it runs it, or its type is opened.

    A new container, `{"type": "auto"}`, is nobody's.
    """
    fields = as_mapping(tool)
    kind = str(fields.get("type", "function"))
    if kind in CALLED_BY_NAME:
        return True
    closed = []
    for name in _CLOSED_FIELDS:
        value = fields.get(name)
        if value and as_mapping(value).keys() != {"type"}:
            closed.append(f"{kind}.{name}")
    return all(word in opened for word in closed or [kind])


def _is_too_long(name: str, body: JsonObject, may: _Permission) -> bool:
    """Say whether a caller asks for more tokens than MAX_OUTPUT_TOKENS allows."""
    if may.max_tokens == 0:
        return False
    value = body.get(name)
    requested = clamp_number(value, 0, may.max_tokens + 1, 0)
    return requested > may.max_tokens and value != may.stored.get(name)


# --------------------------------------------------------------------------------------
# owui_manifold.call.research
#
# Models whose name ends in `-research`: they search the web for long.
#
# One request does it: the web search without a limit on what it returns, a high effort,
# and a ceiling. OpenAI's tools are all that it has, because each round of other tools
# would begin the ceiling anew.
# --------------------------------------------------------------------------------------


RESEARCH_TOOL_CALLS = 60
"""The searches, page views and other calls of one answer."""
RESEARCH_OUTPUT_TOKENS = 64_000
"""Of one answer, with its reasoning."""

_NO_MODEL = "{} cannot research: the model does not take long web searches."
_NO_SERVER = "{} cannot research: the server has no web search of OpenAI."
_NO_SEARCH = "{} cannot research: you may not use web search."
_BEGINNING = (
    f"Research takes several minutes: at most {RESEARCH_TOOL_CALLS} searches and "
    f"{RESEARCH_OUTPUT_TOKENS:,} tokens of reasoning and answer."
)
_SET_BY_NAME = (
    "max_completion_tokens",
    "max_output_tokens",
    "max_tokens",
    "max_tool_calls",
    "reasoning_effort",
)


def check_research(call: CheckedCall) -> None:
    """Raise InvalidRequest, with a message, for a model that cannot research here."""
    model = call.model
    if not model.research or call.caller.task:
        return
    if not call.endpoint.has_own_services:
        raise InvalidRequest(_NO_SERVER.format(model.name))
    is_lacking = "web_search".startswith(model.facts.lacks)
    if is_lacking or not model.facts.hosted or not takes_search_budget(model):
        raise InvalidRequest(_NO_MODEL.format(model.name))
    if call.account and "web_search" in call.account.limits.forbidden_tools():
        raise InvalidRequest(_NO_SEARCH.format(model.name))


def research_beginning(model: ResolvedModel) -> str:
    """Return the line with which an answer begins; empty if nothing is researched."""
    return _BEGINNING if model.research else ""


def research_body(body: JsonObject, model: ResolvedModel) -> dict[str, Any]:
    """Return the caller's keys without those that the ending of the name decides."""
    if not model.research:
        return dict(body)
    kept = {key: value for key, value in body.items() if key not in _SET_BY_NAME}
    given = body.get("reasoning")
    reasoning = dict(given) if isinstance(given, dict) else {}
    return {**kept, "reasoning": {**reasoning, "effort": model.effort}}


def research_ceiling(valves: Valves) -> dict[str, int]:
    """Return the ceiling of an answer; lower limits of the administrator hold."""
    tokens = RESEARCH_OUTPUT_TOKENS
    if valves.MAX_OUTPUT_TOKENS:
        tokens = min(tokens, valves.MAX_OUTPUT_TOKENS)
    return {
        "max_output_tokens": tokens,
        "max_tool_calls": min(RESEARCH_TOOL_CALLS, valves.MAX_TOOL_CALLS),
    }


# --------------------------------------------------------------------------------------
# owui_manifold.call.checking
#
# Decides whether and where a call is answered: the one place that refuses a call.
#
# The administration's filter may choose the endpoint. It also fetches the tokens of
# Microsoft Entra ID.
# --------------------------------------------------------------------------------------


_NO_ENTRA = (
    "AUTH `entra_id` needs the filter openai_responses_administration. An administrator "
    "has to install it."
)


async def check_call(call: PipeCall) -> CheckedCall:
    """Return the call with its endpoint and model, without what it may not set.

    A call that already has an account goes to the endpoint that the account chooses now:
    after a failure that is the next one. Raises InvalidRequest for what an administrator
    or the caller has to change.
    """
    if call.account is None:
        call = await _with_account(call)
    return await _check_at(call, call.account.endpoints if call.account else None)


async def _check_at(call: PipeCall, endpoints: EndpointQueue | None) -> CheckedCall:
    """Return the call with what it may set, answered at the first of the endpoints."""
    if endpoints:
        call = _at_endpoint(call, endpoints)
    config = call.config
    is_admin = call.caller.is_admin
    endpoint = build_endpoint(config.valves, config.own_key, is_admin=is_admin)
    if config.valves.AUTH == "entra_id" and not config.own_key:
        call, endpoint = await _with_entra_token(call, endpoint)
    endpoint = await _with_identity(call, endpoint)
    checked = resolve_call(call, endpoint)
    check_research(checked)
    return await permitted_agent(await permitted_call(checked))


async def _with_account(call: PipeCall) -> PipeCall:
    """Return the call with its account at the administration's filter, if active."""
    administration = await active_administration(call.host.request)
    if administration is None:
        return call
    return call._replace(account=await administration.begin(call_facts(call)))


def call_facts(call: PipeCall) -> CallFacts:
    """Return what the administration's filter is told of a call."""
    return CallFacts(
        user_id=call.caller.user_id,
        email=as_text(call.user.get("email")),
        role=as_text(call.user.get("role")),
        model=answering_name(call.caller.model, call.config.agent),
        host_model=call.caller.host_model,
        task=call.caller.task,
        base_url=call.config.valves.BASE_URL,
        has_own_key=bool(call.config.own_key),
        user_pays=_user_pays(call),
    )


class EndpointCheck(NamedTuple):
    """An entry of ENDPOINTS_JSON that is to be tried out."""

    call: CheckedCall | None
    """Goes to this entry; None if nothing can be sent."""
    problem: str = ""
    """Why nothing can be sent."""


async def calls_to_each_endpoint(
    arrived: PipeCall, call: CheckedCall
) -> list[EndpointCheck]:
    """Return a call to each entry of ENDPOINTS_JSON, also of other groups and models.

    `call` is what became of `arrived`. A check with a key of one's own is about that key.
    """
    if call.account is None or arrived.config.own_key:
        return []
    names = comma_list(call.valves.MODEL_ID)
    models = [call.caller.model, *(name for name in names if name != "auto")]
    function_id = call.caller.host_model.split(".", 1)[0]
    checks: list[EndpointCheck] = []
    for trial in call.account.endpoint_trials(models):
        caller = call.caller._replace(host_model=f"{function_id}.{trial.model}")
        own = arrived._replace(account=call.account, caller=caller)
        try:
            checks.append(EndpointCheck(await _check_at(own, trial.endpoints)))
        except InvalidRequest as error:
            checks.append(EndpointCheck(None, str(error)))
    return checks


def _user_pays(call: PipeCall) -> bool:
    """Say whether a user's own key pays for a call.

    Whoever has the administrator's headers may be served without a valid key, and so
    may anybody at a gateway. A key for Azure belongs to whoever owns the resource.
    """
    config = call.config
    if not config.own_key:
        return False
    endpoint = build_endpoint(config.valves, config.own_key)
    is_openais = not endpoint.is_gateway and not endpoint.is_azure
    return is_openais and not endpoint.extra_headers


def _at_endpoint(call: PipeCall, endpoints: EndpointQueue) -> PipeCall:
    """Return the call with the valves of its endpoint; raises InvalidRequest."""
    if endpoints.problem:
        raise InvalidRequest(endpoints.problem)
    config = call.config
    replaced = dict(endpoints.valves())
    key = replaced["API_KEY"]
    if key:
        call.log.hide(key)
        config = config._replace(secrets=(*config.secrets, key))
    scope = replaced.pop("ENTRA_SCOPE", "")
    expert = config.expert.model_copy(update={"entra_scope": scope})
    valves = config.valves.model_copy(update=replaced)
    return call._replace(config=config._replace(valves=valves, expert=expert))


async def _with_entra_token(
    call: PipeCall, endpoint: Endpoint
) -> tuple[PipeCall, Endpoint]:
    """Return call and endpoint with a token of Entra ID; raises InvalidRequest."""
    if call.account is None:
        raise InvalidRequest(_NO_ENTRA)
    config = call.config
    base_url = config.valves.BASE_URL
    scope = config.expert.entra_scope
    token, problem = await call.account.entra_token(base_url, scope)
    if problem:
        raise InvalidRequest(problem)
    call.log.hide(token)
    config = config._replace(secrets=(*config.secrets, token))
    return call._replace(config=config), replace(endpoint, token=token)


async def _with_identity(call: PipeCall, endpoint: Endpoint) -> Endpoint:
    """Return the endpoint with headers that tell the server who asks, if it may know.

    EXTRA_HEADERS have priority over them.
    """
    forwards = call.config.valves.FORWARD_USER_INFO
    if forwards == "always" or (forwards == "auto" and endpoint.is_gateway):
        identity = await identity_headers(call.host, call.caller.user_id)
        headers = {**identity, **endpoint.extra_headers}
        return replace(endpoint, extra_headers=headers)
    return endpoint


# --------------------------------------------------------------------------------------
# owui_manifold.call.models
#
# The models that the pipe lists.
#
# Every page load lists the models, so the list is answered from memory. The models of a
# key are fetched in the background; the last result stays until a newer one arrives, also
# if the server cannot be reached.
# --------------------------------------------------------------------------------------


_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 60.0
"""How long a request keeps the next one away, until it has succeeded."""

OPENAI_HOST = Endpoint(DEFAULT_BASE_URL, "").host
_LIST_TIMEOUTS = Timeouts(connect=10, first_event=20, total=30)
_MAX_LIST_BYTES = 5_000_000


async def fetch_models(endpoint: Endpoint, connections: Connections) -> dict[str, str]:
    """Return the chat models of `GET /models`, with their last days if they have one.

    Raises ResponsesError.
    """
    asked = connections.request(endpoint, "/models", None, Deadlines(_LIST_TIMEOUTS))
    async with asked as answer:
        return read_models(await answer.read_json(_MAX_LIST_BYTES))


class Listing:
    """The models that the key of the valves can use, as far as they are known.

    One account is remembered: that of the valves when the models were last listed.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.shutdown_dates: dict[str, str] = {}
        self._account = ""
        self._known: dict[str, str] | None = None
        self._next_request = 0.0

    def usable(
        self, endpoint: Endpoint, connections: Connections
    ) -> Collection[str] | None:
        """Return the known models, None before the first answer; refresh old ones."""
        account = endpoint.account()
        now = monotonic_seconds()
        if account != self._account:
            self._account = account
            self._known = None
            self._next_request = 0.0
        if now >= self._next_request:
            self._next_request = now + _PAUSE_SECONDS
            connections.do_later(self._refresh(endpoint, connections))
        return self._known

    async def _refresh(self, endpoint: Endpoint, connections: Connections) -> None:
        """Fetch the models; after an error the known ones stay."""
        with suppress(ResponsesError):
            models = await fetch_models(endpoint, connections)
            if endpoint.account() != self._account:  # the valves were changed meanwhile
                return
            self._known = models
            self.shutdown_dates.clear()
            self.shutdown_dates.update(models)
            self._next_request = monotonic_seconds() + _FRESH_SECONDS


def list_models(
    valves: Valves, listing: Listing, connections: Connections
) -> dict[str, ResolvedModel]:
    """Return the models of MODEL_ID by the names that are listed, in their order.

    `auto` stands for the newest of each family that the key can use, or of each known
    family if the server's list has no model that we know, like Azure's. A name that an
    administrator wrote stays, whatever the server lists: it fails when it is used.
    """
    try:
        models = named_models(valves)
    except ResponsesError:  # the chat shows the error
        models = add_agents({}, read_agent_parameters(valves.AGENT_JSON).parameters)
    listed = comma_list(valves.MODEL_ID)
    names = list[str]()
    today = utc_today().isoformat()
    usable = None
    with suppress(ResponsesError):
        endpoint = build_endpoint(valves)
        fetches = read_expert_settings(valves).fetch_models
        if fetches and ("auto" in listed or endpoint.host == OPENAI_HOST):
            usable = listing.usable(endpoint, connections)
    newest = newest_models(today, usable) or newest_models(today)
    for name in listed:
        if name == "auto":
            names += newest
        else:
            names.append(name)
    return {name: resolve_model(name, models) for name in names}


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.remote_rules
#
# The rules of TOOL_APPROVAL for remote MCP servers, whose tools OpenAI calls.
#
# With `require_approval: never` OpenAI makes a call without telling anybody first. So
# where a rule may be about a tool of such a server, OpenAI is told to ask each time, and
# what no rule is about is answered here as the server's description says.
# --------------------------------------------------------------------------------------


_UNASKED = "never"


def put_under_rules(tool: Item, rules: ApprovalRules) -> Item:
    """Return a tool of a request; a remote server asks if a rule may be about it."""
    if tool.get("type") != "mcp" or not _may_have_rule(tool, rules):
        return tool
    return {**tool, "require_approval": "always"}


def _may_have_rule(server: Item, rules: ApprovalRules) -> bool:
    """Say whether a rule may keep back a call of a server's tools.

    Their names are only known if the description lists them.
    """
    if all(answer == "auto" for _, answer in rules):
        return False
    names = _tool_names(server.get("allowed_tools"))
    if names is None:
        return True
    approver = Approver(rules)
    for name in names:
        request = {"server_label": server.get("server_label"), "name": name}
        if approver.rule_for(remote_name(request), name) != "auto":
            return True
    return False


def _tool_names(chosen: object) -> Sequence[str] | None:
    """Return the names in a list or a filter of tools; None if it does not name them."""
    if isinstance(chosen, list):
        return [str(name) for name in chosen]
    names = as_mapping(chosen).get("tool_names")
    return [str(name) for name in names] if isinstance(names, list) else None


def rule_without_rules(servers: Sequence[JsonObject], request: JsonObject) -> Approval:
    """Return what holds for a remote call that no rule is about.

    `servers` are as they are described: the last of a label counts. A filter may also
    choose tools that only read, which nobody here can know.
    """
    label = request.get("server_label")
    setting: object = None
    for server in servers:
        if server.get("server_label") == label:
            setting = server.get("require_approval")
    if setting == _UNASKED:
        return "auto"
    unasked = _tool_names(as_mapping(setting).get(_UNASKED)) or ()
    return "auto" if request.get("name") in unasked else "ask"


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.hosted_tools
#
# The tools that a request offers: OpenAI's own, the host's, and those of filters.
# --------------------------------------------------------------------------------------


_PLACE_NAMES = ("city", "region", "country", "timezone")
_COUNTRY_CODE = 2
"""Letters of a country's code (ISO 3166-1)."""
_MAX_STORES = 2
"""More are refused, and with them the request (docs/reference/responses-api.md)."""


def hosted_tools(
    config: Config, model: ResolvedModel, refused: Collection[str] = ()
) -> tuple[list[Item], set[str]]:
    """Return OpenAI's tools of a request, and the names of the host's they replace.

    Open WebUI's tools for the same purpose go: offering both would be ambiguous. Those
    for a tool stay whose digest is among the `refused` ones. The order is always the
    same, because the prompt cache depends on it. Raises InvalidRequest for unusable
    valves.
    """
    usable = [
        tool
        for tool in _configured_tools(config, model)
        if json_digest(tool) not in refused
    ]
    replaced: set[str] = set()
    for tool in usable:
        kind = tool["type"]
        if kind != "web_search" or config.replaces_search:
            replaced.update(TOOL_SETTINGS[kind].replaced)
    return usable, replaced


def _configured_tools(config: Config, model: ResolvedModel) -> Iterator[Item]:
    """Yield the tools that are switched on and that a model takes."""
    for name, kind in TOOL_KINDS.items():
        is_on = name in config.tool_kinds or _is_researched(model, name)
        if not is_on or not _takes(model, name):
            continue
        build = _BUILDERS.get(name)
        if build:
            yield from build(config, model)
        else:
            yield {"type": name, **kind.least}


def _is_researched(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model has a kind of tools because it researches."""
    return model.research and kind == "web_search"


def _takes(model: ResolvedModel, kind: str) -> bool:
    """Say whether a model takes a type of tools.

    Of the types that it lacks the beginnings are compared: `web_search_preview` is a web
    search, too.
    """
    if kind in CALLED_BY_NAME:
        return model.facts.functions
    return model.facts.hosted and not kind.startswith(model.facts.lacks)


def _file_search(config: Config, _model: ResolvedModel) -> Sequence[Item]:
    """Return the search in the stores of the valve, if it names any."""
    stores = comma_list(config.valves.FILE_SEARCH_VECTOR_STORES)[:_MAX_STORES]
    return [{"type": "file_search", "vector_store_ids": stores}] if stores else []


def _remote_servers(config: Config, _model: ResolvedModel) -> Sequence[Item]:
    """Return a tool for each server."""
    rules = config.approval_rules
    return [put_under_rules(server, rules) for server in config.remote.tools]


def _image_generation(config: Config, _model: ResolvedModel) -> Sequence[Item]:
    """Return the tool with the options of IMAGE_GENERATION_OPTIONS."""
    text = config.valves.IMAGE_GENERATION_OPTIONS.strip()
    options = parse_json_object(text or "{}")
    if options is None:
        problem = "IMAGE_GENERATION_OPTIONS is not a JSON object"
        raise valve_error(problem, PIPE_SHELL, '{"quality": "high"}')
    return [{**options, "type": "image_generation"}]


def _web_search(config: Config, model: ResolvedModel) -> Sequence[Item]:
    """Return the web search with the options of WEB_SEARCH_OPTIONS.

    A model that researches has an unlimited budget for what searches return; one that
    knows no budget gets none.

    A location with only its type keeps the API from assuming the United States
    (docs/reference/responses-api.md, "Hosted tools"). Raises InvalidRequest for options
    that cannot be read: a search without the administrator's filters must not run.
    """
    options, problems = _search_options(config)
    if problems:
        raise valve_error(problems[0].rstrip("."), PIPE_SHELL, _SEARCH_EXAMPLE)
    tool: Item = {
        "type": "web_search",
        "search_context_size": options.search_context_size,
        "user_location": {"type": "approximate", **_location(options.user_location)},
    }
    filters: dict[str, list[str]] = {}
    allowed = _domains(options.allowed_domains)
    if allowed:
        filters["allowed_domains"] = allowed
    blocked = _domains(options.blocked_domains)
    if blocked:
        filters["blocked_domains"] = blocked
    if filters:
        tool["filters"] = filters
    if not options.external_web_access:
        tool["external_web_access"] = False
    budget = "unlimited" if model.research else options.return_token_budget
    if budget != "default" and takes_search_budget(model):
        tool["return_token_budget"] = budget
    return [tool]


def _search_options(config: Config) -> tuple[WebSearchOptions, list[str]]:
    """Return the options of the web search, and what is wrong with them."""
    text = config.valves.WEB_SEARCH_OPTIONS
    options, problems = read_json_valve(_SEARCH_VALVE, text, WebSearchOptions)
    return options, list(problems)


def unused_search_budget(config: Config, model: ResolvedModel) -> str:
    """Return the note that a model's search has no budget, if one is set.

    The filters of an administrator are always sent: what rejects them gets no search.
    """
    options, _ = _search_options(config)
    is_set = options.return_token_budget != "default"
    is_searching = "web_search" in config.tool_kinds
    if is_set and is_searching and not takes_search_budget(model):
        return (
            f"{_SEARCH_VALVE}: {model.name} has no `return_token_budget`. It is not "
            "sent."
        )
    return ""


_SEARCH_VALVE = "WEB_SEARCH_OPTIONS"
_SEARCH_EXAMPLE = '{"allowed_domains": ["who.int"], "user_location": "Bern, BE, CH"}'


def _domains(addresses: Sequence[str]) -> list[str]:
    """Return the domains of addresses: the API takes domains only, people paste more."""
    domains: list[str] = []
    for address in addresses:
        without_scheme = address.strip().rpartition("://")[2]
        domain = re.split("[/:]", without_scheme)[0]
        if domain:
            domains.append(domain)
    return domains


def _location(setting: str | Mapping[str, str]) -> dict[str, str]:
    """Return a location by the API's names, from an object or from words in their order.

    A country that is no code of two letters would be refused, so it is left out. Raises
    InvalidRequest for more than four words.
    """
    if isinstance(setting, str):
        words = [word.strip() for word in setting.split(",")]
        if len(words) > len(_PLACE_NAMES):
            problem = f"{_SEARCH_VALVE}: `user_location` has more than four words"
            raise valve_error(problem, PIPE_SHELL, _SEARCH_EXAMPLE)
        setting = dict(zip(_PLACE_NAMES, words, strict=False))
    location = {name: setting[name] for name in _PLACE_NAMES if setting.get(name)}
    if len(location.get("country", "")) != _COUNTRY_CODE:
        location.pop("country", None)
    return location


_BUILDERS: Mapping[str, Callable[[Config, ResolvedModel], Sequence[Item]]] = {
    "web_search": _web_search,
    "file_search": _file_search,
    "mcp": _remote_servers,
    "image_generation": _image_generation,
}
"""What builds a kind of tools from the valves; the others have no options."""


class OfferedTools(NamedTuple):
    """Tools in the API's form, with the functions' own names and `tool_choice`."""

    items: Sequence[Item] = ()
    names: ToolNames = ToolNames()
    choice: Any = None
    notice: str = ""
    """What the person who asked is told, if anything."""


def called_tools(
    body: JsonObject,
    model: ResolvedModel,
    expert: ExpertSettings,
    log: Callable[[str], object] = ignore_report,
    rules: ApprovalRules = (),
) -> list[Item]:
    """Return the host's tools of a chat, then those that filters added.

    `log` is told of those that are too large. Raises InvalidRequest for a tool without
    a name.
    """
    specs = as_list(body.get("tools")) + as_list(body.get("extra_tools"))
    text = _tools_text(specs)
    strict = expert.strict_tool_calling
    if text and len(text) <= _MAX_REMEMBERED:
        tools, log_lines = _known_tools(text, strict)
    else:
        tools, log_lines = _read_tools(specs, strict)
    for line in log_lines:
        log(line)
    taken = [tool for tool in tools if _takes(model, tool["type"])]
    return [put_under_rules(tool, rules) for tool in taken]


_MAX_REMEMBERED = 50_000
"""Characters of tools that are remembered: those of some fifty usual ones."""


def _tools_text(specs: list[Any]) -> str:
    """Return the text of tools; an empty one if some are no JSON, or too deep."""
    try:
        return json.dumps(specs)
    except (TypeError, ValueError, RecursionError):
        return ""


@lru_cache(maxsize=16)
def _known_tools(text: str, strict: bool) -> tuple[list[Item], list[str]]:
    """Read the tools of a JSON text, which most requests of a server have in common.

    Requests share the tools that are returned, so nobody may change them.
    """
    return _read_tools(json.loads(text), strict)


def _read_tools(specs: list[Any], strict: bool) -> tuple[list[Item], list[str]]:
    """Return tools in the API's form, and lines for the log."""
    log_lines: list[str] = []
    tools = responses_tools(specs, strict=strict, log=log_lines.append)
    return tools, log_lines


_MAX_TOOLS = 128
"""Longer lists are refused (docs/reference/responses-api.md, "Function tools")."""
_TOO_MANY = (
    "Left out: {left_out} of this chat's {count} tools, because the API takes at most "
    "{most}. Switch off tools that this chat does not need."
)


def offer_tools(
    choice: object,
    hosted: Sequence[Item] = (),
    called: Sequence[Item] = (),
    withheld: Collection[str] = (),
    builtin: Collection[str] = (),
) -> OfferedTools:
    """Return the tools of a chat: OpenAI's, then the others, and the choice.

    One of the others replaces OpenAI's of the same kind; the `withheld` ones are left
    out. `builtin` are the names of Open WebUI's own.
    Raises InvalidRequest for a choice that names no tool.
    """
    merged = merge_tools(hosted, called)
    tools = [tool for tool in merged if tool.get("name") not in withheld]
    if not tools:
        return OfferedTools()
    kept = _first_tools(tools, builtin)
    own_names = [str(tool["name"]) for tool in kept if not is_hosted_tool(tool)]
    names = ToolNames(tuple(own_names))
    items = names.rename_tools(kept)
    chosen = responses_tool_choice(choice, items, names)
    return OfferedTools(items, names, chosen, _too_many_notice(len(tools)))


def _first_tools(tools: list[Item], builtin: Collection[str]) -> list[Item]:
    """Return as many tools as the API takes; fewer stay as they are.

    Of more, OpenAI's come first, because they are few and an administrator switched them
    on; then those that people attached or filters added; then the `builtin` ones. Each
    group keeps its order.
    """
    if len(tools) <= _MAX_TOOLS:
        return tools
    hosted = [tool for tool in tools if is_hosted_tool(tool)]
    functions = [tool for tool in tools if not is_hosted_tool(tool)]
    attached = [tool for tool in functions if tool["name"] not in builtin]
    own = [tool for tool in functions if tool["name"] in builtin]
    return [*hosted, *attached, *own][:_MAX_TOOLS]


def _too_many_notice(count: int) -> str:
    """Return what a person is told of `count` tools; nothing if all are offered."""
    left_out = count - _MAX_TOOLS
    if left_out <= 0:
        return ""
    return _TOO_MANY.format(left_out=left_out, count=count, most=_MAX_TOOLS)


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.agent
#
# What the request of an agent has that the one of a plain model has not.
#
# All of it is here: the instructions with the policies, the memories, and the tools with
# their guard and their budget. The model of a listed agent is that of AGENT_JSON
# (`call/agent.py`); the rounds run in `run/agent.py`.
#
# With the switch, the policies are instructions like any others: from gpt-5.6 on a chat
# that has begun gets them in a developer message in front of the question, and what it
# was sent before stays (`owui_chat/input/prefix.py`). When the switch is off again, the
# next question says which lines no longer hold.
# --------------------------------------------------------------------------------------


_TASK_LIST = (
    "- For work of several steps write the steps with `create_tasks` before the first "
    "one. Mark each with `update_task` when you begin it and when it is done: the user "
    "watches this list."
)
_SUB_AGENTS = (
    "- Give parts of the work that do not need each other to sub-agents with "
    "`delegate_task`, several in one response. A sub-agent sees nothing of this chat: "
    "tell it all that it needs."
)
_QUESTIONS = (
    "- If only the user can decide something that changes the result, ask with "
    "`ask_user`, once, before you do the work that depends on it."
)
_HOST_POLICIES: Mapping[str, str] = {
    "create_tasks": _TASK_LIST,
    "delegate_task": _SUB_AGENTS,
    "ask_user": _QUESTIONS,
}
"""What an agent is told of Open WebUI's own tools, if it is offered them."""


def check_agent_model(agent: AgentMode, model: ResolvedModel) -> None:
    """Raise InvalidRequest if the model of a listed agent cannot call tools."""
    if agent.is_listed and not model.facts.functions:
        problem = f"AGENT_JSON: the model {model.id} cannot call tools"
        raise valve_error(problem, PIPE_SHELL, '{"model": "gpt-6.1-sol"}')


def agent_instructions(
    call: CheckedCall,
    agent: AgentMode,
    model: ResolvedModel,
    system_prompt: str,
    tools: OfferedTools,
) -> str:
    """Return the instructions of an agent: who it is, what it does, the policies."""
    parameters = agent.parameters
    style = choose_style(parameters.policy_style, model.family)
    policy = build_strategy_instructions(parameters, style, system_prompt)
    offered = {str(tool.get("name")) for tool in tools.items}
    builtin = {name for name in offered if call.host.is_builtin(name)}
    return "\n\n".join(filter(None, [policy, _host_policy(builtin)]))


def _host_policy(builtin: Collection[str]) -> str:
    """Return the block about those of Open WebUI's own tools that are offered."""
    lines = [line for name, line in _HOST_POLICIES.items() if name in builtin]
    if not lines:
        return ""
    return "\n".join(["<host_tools>", *lines, "</host_tools>"])


def remembered_messages(
    agent: AgentMode | None, messages: Sequence[Message]
) -> tuple[Sequence[Any], str]:
    """Return what the memory policy leaves of a chat, and what to say about it.

    Raises InvalidRequest for an unknown policy.
    """
    if agent is None:
        return messages, ""
    window = apply_memory_policy(messages, agent.parameters.guide.memory_policy)
    return window.messages, window.note


def agent_memories(agent: AgentMode) -> list[ChatPart]:
    """Return what an agent remembers from before the chat, as the chat's beginning."""
    items = build_memory_items(agent.parameters.guide)
    return [UserMessage(item) for item in items]


def agent_defaults(agent: AgentMode) -> dict[str, Any]:
    """Return the parameters that hold unless the request has its own."""
    temperature = agent.parameters.guide.temperature
    return {} if temperature is None else {"temperature": temperature}


def agent_toolset(call: CheckedCall, agent: AgentMode, toolset: Toolset) -> Toolset:
    """Return the tools of a chat under the guard and the budget of an agent.

    A call that failed is not made again with the same arguments.
    """
    tools = GuardedTools(toolset.tools)
    calls = call.valves.MAX_TOOL_CALLS
    budget = build_budget(agent.parameters)
    return toolset._replace(
        tools=tools,
        judge=tools,
        budget=replace(budget, calls=calls),
        texts=build_call_texts(agent.parameters, calls),
    )


# --------------------------------------------------------------------------------------
# owui_manifold.store.keys
#
# The keys of a chat: what is stored is signed, and in part encrypted.
#
# They come from STORE_ENCRYPTION_KEY or the server's own secret. What is encrypted is
# bound to its user, chat and message, so that a copy in another chat, or a clone of a
# shared one, does not open. Encryption is AES-GCM of the package `cryptography`, which every
# Open WebUI has. It is imported when it is used, so a server without it still loads the
# pipe, and stores less.
# --------------------------------------------------------------------------------------


_PURPOSE = "openai_responses_pipe "
_NONCE_BYTES = 12


class ChatKeys:
    """Signs what is stored for one user, and encrypts what is stored in one chat."""

    def __init__(self, secret: str, user_id: str, chat_id: str) -> None:
        """Derive the keys; without a secret nothing is signed or encrypted."""
        self.sign = signer(secret, f"{_PURPOSE}records {user_id}") if secret else None
        self._cipher = _cipher(secret) if secret else None
        self._user_id = user_id
        self._chat_id = chat_id

    def seal(self, value: object, message_id: str) -> str:
        """Return a JSON value encrypted for a message of the chat.

        Empty if that is impossible.
        """
        if self._cipher is None:
            return ""
        nonce = os.urandom(_NONCE_BYTES)
        text = json.dumps(value).encode()
        sealed = self._cipher.encrypt(nonce, text, self._scope(message_id))
        return base64.b64encode(nonce + sealed).decode("ascii")

    def unseal(self, sealed: str, message_id: str) -> object:
        """Return the value that was encrypted for a message; None for anything else.

        What is not ours, or was changed, raises exceptions of the package's own.
        """
        if self._cipher is None:
            return None
        try:
            whole = base64.b64decode(sealed, validate=True)
            nonce = whole[:_NONCE_BYTES]
            rest = whole[_NONCE_BYTES:]
            text = self._cipher.decrypt(nonce, rest, self._scope(message_id))
            return json.loads(text)
        except Exception:
            return None

    def _scope(self, message_id: str) -> bytes:
        """Return what a value is bound to: a client chooses the ids of its messages."""
        return json.dumps([self._user_id, self._chat_id, message_id]).encode()


def _cipher(secret: str) -> Any:
    key = derive_key(secret, f"{_PURPOSE}sent")
    try:
        return import_module("cryptography.hazmat.primitives.ciphers.aead").AESGCM(key)
    except ImportError:
        return None


def chat_keys(valves: Valves, caller: Caller) -> ChatKeys:
    """Return the keys for the caller's chat on this server."""
    secret = valves.STORE_ENCRYPTION_KEY.strip() or server_secret()
    return ChatKeys(secret, caller.user_id, caller.chat_id)


# --------------------------------------------------------------------------------------
# owui_manifold.store.stored_chat
#
# What the row of a chat holds when an answer begins.
# --------------------------------------------------------------------------------------


_HISTORY = "history"
_COUNTED_LEVELS = 3
"""Levels of the row that are counted: down to the texts and lists in a message."""
_BYTES_OF_AN_ENTRY = 200
"""Of the tools and settings of a turn."""


class StoredChat(NamedTuple):
    """A chat as the host stores it, with what earlier answers recorded."""

    messages: JsonObject
    """The host's messages, by id."""
    records: dict[str, Record]
    repairs: tuple[ChatRepair, ...]
    """What refusals of this chat showed."""
    sent: dict[str, SentContext]
    """What earlier runs sent in addition, by the ids of the answers."""
    answer_repairs: tuple[ChatRepair, ...]
    """Those of the `repairs` that earlier runs of this answer stored."""
    row_values: JsonObject
    """The values in keys of the row; those in answers are the host's to remove."""
    size: int
    """About how many entries the chat has, with what was packed in it."""


async def read_stored_chat(caller: Caller, keys: ChatKeys) -> StoredChat | None:
    """Return what is stored of the caller's own chat, or None if it has no row."""
    if not caller.may_have_row:
        return None
    chat = await read_chat(caller.chat_id, caller.user_id)
    if chat is None:
        return None
    read_keys = [key for key in chat if is_pipe_key(key) or key == _HISTORY]
    read_part = {key: chat[key] for key in read_keys}
    size = count_entries([read_part, _messages_of(chat)], _COUNTED_LEVELS)
    return await run_work(
        size, lambda: _parse_chat(read_part, keys, caller.message_id, size)
    )


def _parse_chat(
    chat: JsonObject, keys: ChatKeys, message_id: str, size: int
) -> StoredChat:
    """Return what a chat holds in keys of its row and in its answers."""
    messages = _messages_of(chat)
    in_answers = output_values(messages)
    everything = {**chat, **in_answers}
    values = {key: value for key, value in everything.items() if is_pipe_key(key)}
    in_row = {key: value for key, value in values.items() if key not in in_answers}
    own_value = values.get(message_key(message_id))
    unpacked_left = JsonBudget(MAX_UNPACKED_TURNS)
    sent = read_sent_context(values, keys.unseal, unpacked_left)
    unpacked = MAX_UNPACKED_TURNS - unpacked_left.left
    return StoredChat(
        messages=messages,
        records=read_records(values, keys.sign),
        repairs=stored_repairs(values.values()),
        sent=sent,
        answer_repairs=stored_repairs([own_value]),
        row_values=in_row,
        size=size + unpacked // _BYTES_OF_AN_ENTRY,
    )


def _messages_of(chat: JsonObject) -> JsonObject:
    """Return the messages of a chat as the host stores them, by their ids."""
    return as_mapping(value_at(chat, _HISTORY, "messages"))


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.cache_comparison
#
# Has OpenAI compare a request with that of the answer before it.
#
# The response then says why the prompt cache missed (`prompt_cache_diagnostics`).
# --------------------------------------------------------------------------------------


_MAX_ID_LENGTH = 200


def with_cache_comparison(
    call: CheckedCall, request: ResponsesRequest, stored: StoredChat | None
) -> ResponsesRequest:
    """Return a request that names the response before it, if that is wanted and known.

    Other servers refuse the field.
    """
    if stored is None or not call.endpoint.is_openai:
        return request
    if not call.config.expert.prompt_cache_diagnostics:
        return request
    earlier = _earlier_response_id(stored, call.caller.message_id)
    if not earlier or not call.resolve(request.model).facts.diagnostics:
        return request
    options = {
        **(request.prompt_cache_options or {}),
        "comparison_response_id": earlier,
    }
    return request.model_copy(update={"prompt_cache_options": options})


def _earlier_response_id(stored: StoredChat, answer_id: str) -> str:
    """Return the id of the response before an answer, or nothing.

    The host has that answer in front of this one's question, with the id in its usage.
    """
    answer = as_mapping(stored.messages.get(answer_id))
    question = as_mapping(stored.messages.get(as_text(answer.get("parentId"))))
    earlier = as_mapping(stored.messages.get(as_text(question.get("parentId"))))
    response_id = as_text(value_at(earlier, "usage", "response_id"))
    if not response_id.startswith("resp") or len(response_id) > _MAX_ID_LENGTH:
        return ""
    return response_id


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.files
#
# The host's files that a chat names: documents for the model, and pictures it drew.
#
# They are read with the rights of the current user.
# --------------------------------------------------------------------------------------


_MAX_DOCUMENT_BYTES = 50_000_000
"""The limit for all documents of one request."""

_TOO_LARGE = (
    "With {} the files of this chat exceed 50 MB, the limit of one request. Attach a "
    "smaller file, or start a new chat."
)


async def add_documents(
    parts: Sequence[ChatPart], user: HostUser | None, wanted: str
) -> list[ChatPart]:
    """Return a chat with the documents that the model reads itself.

    They stand in front, where later changes do not reach them. `wanted` is `pdf` or
    `all`. Raises InvalidRequest for one that cannot be sent with the message that is
    asked.
    """
    result = list(parts)
    question = question_index(parts)
    left = _MAX_DOCUMENT_BYTES
    for index, part in enumerate(parts):
        if isinstance(part, UserMessage) and part.attachments:
            read = list[Item]()
            for file in part.attachments:
                document, size = await _read_document(file, user, wanted, left)
                left -= size
                if document:
                    is_asked = index == question
                    read.append(part_or_note(document, is_asked=is_asked))
            result[index] = part.with_content([*read, *part.content])
    return result


def document_ids(parts: Sequence[ChatPart], wanted: str) -> set[str]:
    """Return the host's ids of the documents that `add_documents` adds.

    A document whose message tells neither name nor type is not known before it is read.
    """
    ids = set[str]()
    for message in user_messages(parts).values():
        for file in message.attachments:
            kind = _wanted_type(file.name, file.content_type, wanted)
            if kind and not file.is_image:
                ids.add(file.file_id)
    return ids


def _wanted_type(name: str, declared: str, wanted: str) -> str:
    """Return the type of a document that the model gets; empty for other files."""
    kind = document_type(name, declared)
    return kind if kind == PDF_TYPE or wanted == "all" else ""


async def _read_document(
    file: Attachment, user: HostUser | None, wanted: str, left: int
) -> tuple[Item | str, int]:
    """Return a document and its size; or why it cannot be sent, and nothing if it is
    not for the model.
    """
    if file.is_image:
        return "", 0
    stored = await readable_file(file.file_id, user)
    name = file.name
    declared = file.content_type
    if stored:
        name = name or shorten_name(stored.name)
        declared = declared or stored.media_type
    kind = _wanted_type(name, declared, wanted)
    if not kind:
        return "", 0

    def sized_part(content: bytes) -> tuple[Item, int]:
        return document_part(name, kind, content), len(content)

    part: Item | str = GONE_FILE.format(name)
    size = stored.size if stored else 0
    if stored and size <= left:
        # The host may not know the size. One byte more tells that the file is longer.
        document = await read_file(stored, sized_part, left + 1)
        part, size = document or (part, 0)
    return (part, size) if size <= left else (_TOO_LARGE.format(name), 0)


async def load_stored_images(
    records: Mapping[str, Record], parts: Sequence[ChatPart], user_id: str
) -> Mapping[str, Record]:
    """Return a chat's records with the pictures that its answers name.

    Pictures that the user may not read, or that no longer exist, are left out.
    """
    wanted = stored_image_ids(parts, records)
    if not wanted:
        return records
    user = await user_model(user_id)
    pictures: dict[str, str] = {}
    for file_id in dict.fromkeys(wanted):
        file = await readable_file(file_id, user)
        held = await read_file(file, base64.b64encode)
        if held:
            pictures[file_id] = held.decode()
    return restore_images(records, pictures)


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.python_files
#
# The files of a chat that code gets: they are in its container at the first call.
#
# They are chosen here, with the rights of the current user; `run/uploads.py` uploads them.
# --------------------------------------------------------------------------------------


MAX_FILE_BYTES = 64 * 1024**2
MAX_TOTAL_BYTES = 256 * 1024**2
"""The API takes 512 MB for a file; each is in memory while it is uploaded."""

_LARGER_FILE = f"larger than {MAX_FILE_BYTES // 1024**2} MB"
_LARGER_TOTAL = f"all files together exceed {MAX_TOTAL_BYTES // 1024**2} MB"
_MORE_FILES = f"Python gets at most {MAX_CONTAINER_FILES} files"


class PythonFile(NamedTuple):
    """A file of the chat, and its name in the container."""

    file_id: str
    stored: StoredFile
    name: str


class PythonFiles(NamedTuple):
    """The files that code gets, and the line about those that it does not."""

    files: Sequence[PythonFile] = ()
    notice: str = ""


async def choose_python_files(
    parts: Sequence[ChatPart], user: HostUser | None
) -> PythonFiles:
    """Return the files of a chat for its code, in their order, each once.

    Raises InvalidRequest for one at the message that is asked which `user` may not
    read; one at an earlier message is left out.
    """
    files: dict[str, PythonFile] = {}
    reasons: dict[str, str] = {}
    for attachment, is_asked in _attached_once(parts):
        stored = await _find_stored(attachment, user, is_asked=is_asked)
        if stored is None:
            continue
        chosen = list(files.values())
        reason = _reason_against(stored, chosen)
        if reason:
            reasons[attachment.name or stored.name] = reason
        else:
            name = _own_name(attachment, stored, [file.name for file in chosen])
            files[attachment.file_id] = PythonFile(attachment.file_id, stored, name)
    return PythonFiles(tuple(files.values()), _notice(reasons))


def _attached_once(parts: Sequence[ChatPart]) -> Iterator[tuple[Attachment, bool]]:
    """Yield each file of a chat once, and whether it is at the message that is asked."""
    question = question_index(parts)
    seen = set[str]()
    for index, message in user_messages(parts).items():
        for attachment in message.attachments:
            if attachment.file_id not in seen:
                seen.add(attachment.file_id)
                yield attachment, index == question


async def _find_stored(
    attachment: Attachment, user: HostUser | None, *, is_asked: bool
) -> StoredFile | None:
    """Return a file that `user` may read, or None.

    Raises InvalidRequest if there is none at the message that is asked. For an image
    the host itself does: it puts it into the message, or says that it is gone.
    """
    stored = await readable_file(attachment.file_id, user)
    if stored is None and is_asked and not attachment.is_image:
        raise InvalidRequest(GONE_FILE.format(attachment.name))
    return stored


def name_python_files(
    parts: Sequence[ChatPart], files: Sequence[PythonFile], *, at_question_only: bool
) -> list[ChatPart]:
    """Return a chat whose question says which files the code has.

    In a chat with a row, what a question said is stored with it and sent again. Without
    a row, each message says it again: it names the files up to it.
    """
    result = list(parts)
    names = {file.file_id: file.name for file in files}
    question = question_index(parts)
    named: list[str] = []
    for index, message in user_messages(parts).items():
        for attachment in message.attachments:
            name = names.get(attachment.file_id)
            if name and name not in named:
                named.append(name)
        if named and (index == question or not at_question_only):
            result[index] = _with_note(message, named)
    return result


def _with_note(message: UserMessage, names: Sequence[str]) -> UserMessage:
    """Return a message that begins with the names of the files in the container.

    The API puts an id in front of some names (`container.file.path` in its reference).
    """
    text = (
        f"[Files in the folder /mnt/data of the python tool: {', '.join(names)}. An id "
        "may stand in front of a name there.]"
    )
    note = {"type": "input_text", "text": text}
    return message.with_content([note, *message.content])


def _reason_against(stored: StoredFile, chosen: Sequence[PythonFile]) -> str:
    """Return why a file is not copied; empty if it is."""
    if stored.size > MAX_FILE_BYTES:
        return _LARGER_FILE
    if len(chosen) >= MAX_CONTAINER_FILES:
        return _MORE_FILES
    total = stored.size + sum(file.stored.size for file in chosen)
    return _LARGER_TOTAL if total > MAX_TOTAL_BYTES else ""


def _notice(reasons: dict[str, str]) -> str:
    """Return the line about the files that are not copied, if any."""
    if not reasons:
        return ""
    listed = [f"{name} ({reason})" for name, reason in reasons.items()]
    return f"Not copied to Python: {', '.join(listed)}."


def _own_name(attachment: Attachment, stored: StoredFile, taken: Sequence[str]) -> str:
    """Return the name of a file, with a number if another one has it."""
    path = (attachment.name or stored.name).replace("\\", "/")
    words = path.rpartition("/")[2].split()  # a line break could begin an instruction
    name = shorten_name(" ".join(words)) or "file"
    stem = name
    ending = ""
    dot_index = name.rfind(".")
    if dot_index > 0:
        stem = name[:dot_index]
        ending = name[dot_index:]
    number = 2
    unique = name
    while unique in taken:
        unique = f"{stem} ({number}){ending}"
        number += 1
    return unique


# --------------------------------------------------------------------------------------
# owui_manifold.host.approvals
#
# Asks people for approval of a tool's call, in the host's own dialog.
# --------------------------------------------------------------------------------------


def build_approver(
    host: HostContext, rules: ApprovalRules, log: Callable[[str], object]
) -> Approver:
    """Return who decides about the calls of a request.

    The rules of TOOL_APPROVAL come first; other tools follow the host's own mode. The
    host's `ask_user` needs no approval, because it only asks a question.
    """
    mode = value_at(host.metadata, "params", "tool_approval_mode")
    if host.is_builtin("ask_user"):
        rules = [*rules, ("ask_user", "auto")]
    return Approver(
        rules=rules,
        default_rule="ask" if mode == "ask" else "auto",
        ask=_ask_in_page(host.event_call) if host.event_call else None,
        log=log,
        other_names=partial(_other_names, host),
    )


def _other_names(host: HostContext, name: str) -> list[str]:
    """Return the names that a tool has or may have had.

    It has one in its toolkit or on its server. The host puts an id in front of a name
    that another tool has, and of all names of an MCP server
    (docs/reference/open-webui.md, "Tools of the host"), which it cuts if they are long. A
    rule for the longer name holds on when the chat has no other tool of that name: a
    user chooses the tools.
    """
    tool = host.tools.get(name, {})
    names = function_names(tool.get("callable"))
    # `server:openapi:ID|names`, or the id of a toolkit.
    own_id = str(tool.get("tool_id") or "").rpartition(":")[2].partition("|")[0]
    if not own_id:  # an MCP server's tool has no id, but its connection (0.12)
        own_id = str(getattr(tool.get("client"), "server_name", ""))
    if own_id:
        names += [f"{own_id}_{own_name}" for own_name in {name, *names}]
    return names


def _question(name: str, arguments: JsonObject) -> str:
    """Return the question about a call as Markdown.

    It shows all arguments, however long they are: nobody approves what they cannot read.
    Arguments cannot end the code block: no line of their JSON begins with backticks.
    """
    shown = json.dumps(arguments, ensure_ascii=False, indent=1)
    return (
        f"The model wants to use {name} with:\n\n"
        f"{_SCROLLING_BLOCK}\n\n```json\n{shown}\n```\n\n</div>"
    )


_SCROLLING_BLOCK = '<div style="max-height: 50vh; overflow: auto">'
"""What holds the arguments in the message.

The dialog of 0.11.4 neither scrolls nor shrinks: a long call would push its own
beginning and the buttons off the screen. The card of 0.12 scrolls by itself.
"""
_MAX_WAITING_MS = 240_000
"""The longest time that Open WebUI waits for an answer to its approval card.

From 0.12 on it stops after 120 s unless the event asks for more, and shortens what is
above 240 s (`socket/main.py`, `get_event_call`). 0.11.4 has no such limit and does not
read the field.
"""


def _ask_in_page(event_call: EventCall) -> Ask:
    """Return the way to show the host's approval card.

    An older host shows the message alone, so it holds the arguments. Without an answer
    the host returns an object, so only True is an approval
    (docs/reference/open-webui.md, "Dialogs").
    """

    async def ask(call_id: str, name: str, arguments: JsonObject) -> bool:
        data = {
            "title": "Allow this tool?",
            "message": _question(ToolNames().sent_name(name), arguments),
            "tool_call": {"id": call_id, "name": name, "arguments": dict(arguments)},
            "timeout_ms": _MAX_WAITING_MS,
        }
        return await event_call({"type": "confirmation", "data": data}) is True

    return ask


# --------------------------------------------------------------------------------------
# owui_manifold.host.result_files
#
# The files of a tool's result, split between the model, the chat and the page.
# --------------------------------------------------------------------------------------


StoreImage = Callable[[str], Awaitable[str]]
"""Stores a picture, given as a data URL; returns its address."""

_STORED_ADDRESS = re.compile(r"/api/v1/files/([^/?#]+)/content")
"""The address of a stored picture in a chat."""


class _Picture(NamedTuple):
    """A picture of a result, as the model gets it."""

    url: str
    """As it came."""
    address: str
    """As it is shown: of the stored file, if the host stored it."""
    part: Item
    """An image, or a text that says why there is none."""

    @property
    def is_readable(self) -> bool:
        """Whether the model sees it."""
        return item_type(self.part) == "input_image"

    @property
    def is_on_card(self) -> bool:
        """Whether the card shows it beside the output."""
        return self.address == self.url or not self.is_readable

    def fits(self, has_row: bool) -> bool:
        """Say whether it can be written: a row holds no picture whole."""
        return not (has_row and self.address.startswith("data:"))


async def split_result_files(
    files: Iterable[JsonObject],
    text: str,
    store: StoreImage,
    user: HostUser | None,
    *,
    has_row: bool,
) -> tuple[str | list[Item], dict[str, Any]]:
    """Return the output of a tool with its pictures, and the files of its card.

    A picture that came with an address is shown on the card, too
    (docs/reference/open-webui.md, "Tools of the host"). A picture that could not be
    stored is not written to a chat's row.
    """
    pictures: list[_Picture] = []
    shown: list[JsonObject] = []
    for file in files:
        url = str(file.get("url") or "")
        if file.get("type") != "image" or not url:
            shown.append(file)
            continue
        picture = await _read_picture(url, store, user)
        pictures.append(picture)
        if picture.is_on_card and picture.fits(has_row):
            shown.append({**file, "url": picture.address})
    stored = _stored_images(pictures, has_row=has_row)
    return _build_output(text, pictures), {"files": shown, "stored": stored}


def _build_output(text: str, pictures: Iterable[_Picture]) -> str | list[Item]:
    """Return a tool's text with its pictures, or with why they cannot be read."""
    images: list[Item] = []
    for picture in pictures:
        if picture.is_readable:
            images.append(picture.part)
        else:
            text += f"\n{picture.part['text']}"
    return append_images(text, images)


def _stored_images(pictures: Iterable[_Picture], *, has_row: bool) -> list[Item]:
    """Return the pictures as the chat keeps them: by address."""
    return [
        {"type": "input_image", "image_url": picture.address}
        for picture in pictures
        if picture.is_readable and picture.fits(has_row)
    ]


async def _read_picture(url: str, store: StoreImage, user: HostUser | None) -> _Picture:
    """Return a picture at an address, which is stored if it came whole."""
    address = await store(url) if url.startswith("data:") else url
    return _Picture(url, address, await _read_image(address, user))


async def _read_image(address: str, user: HostUser | None) -> Item:
    """Return a tool's picture in the same bytes as the next turn will read it."""
    match = _STORED_ADDRESS.match(address)
    file = await readable_file(match[1], user) if match else None
    held = await read_file(file, image_data_url) if file else address
    return tool_image(held or "")


# --------------------------------------------------------------------------------------
# owui_manifold.host.tools
#
# Runs Open WebUI's tools as the host does.
#
# Functions, OpenAPI and MCP servers and builtin tools are callables; tools of the browser
# run through the event call (docs/reference/open-webui.md, "Tools of the host"). Results
# pass through the host's own functions, so that files, embeds, sources and terminals look
# the same.
# --------------------------------------------------------------------------------------


_LONG_RUNNING = ("delegate_task", "generate_image", "edit_image")
_HOUR = 3600.0


def long_running_tools(host: HostContext) -> list[tuple[str, float]]:
    """Return the time limits of the host's tools that may take minutes by design."""
    return [(name, _HOUR) for name in _LONG_RUNNING if host.is_builtin(name)]


_OF_TASK_LIST = ("create_tasks", "update_task")
"""Builtin tools that read the list of a chat's tasks and write it again.

Open WebUI runs the calls of a response one by one, all but `delegate_task`. Here they
run at once, and one would undo what another has marked (tools/builtin.py, `update_task`
of 0.12.4).
"""
_CITED = (
    "fetch_url",
    "query_chat_files",
    "query_knowledge_files",
    "view_file",
    "view_knowledge_file",
)
"""Builtin tools whose results name sources, as in the host."""


def _cites(name: str, metadata: JsonObject) -> bool:
    """Say whether a tool's result names sources, as far as the model may have any."""
    may = value_at(metadata, "model", "info", "meta", "capabilities", "citations")
    return name in _CITED and may is not False


def _is_error_text(text: str) -> bool:
    """Say whether a result reports an error."""
    result = parse_json_object(text)
    if result is None:
        return text.strip().lower().startswith(HOST_ERROR_PREFIXES)
    if str(result.get("status")).strip().lower() in ("error", "failed"):
        return True
    error = result.get("error")
    is_refused = result.get("success") is False or result.get("ok") is False
    if is_refused and not error:
        error = result.get("message")
    return isinstance(error, str | Mapping | list) and bool(error)


_DISPATCHERS = (CALL_TOOL, "search_tools")
"""Builtin tools that call others; they cannot call each other."""


class ToolUser(NamedTuple):
    """For whom tools run, and in which chat."""

    user_id: str
    messages: list[dict[str, Any]]
    """Those of the chat, in the host's form."""
    has_row: bool
    """Whether the chat has a row in the database."""
    threads: ToolThreads
    account: CallAccount | None
    """What measures the tools, if the administration's filter is active."""


class HostTools:
    """The tools of one request, by the names that the model was given."""

    def __init__(self, host: HostContext, user: ToolUser, names: ToolNames) -> None:
        """Run the tools that the host passed with a call."""
        self._host = host
        self._user = user
        self._names = names
        self._task_list = asyncio.Lock()

    def _own_name(self, name: str) -> str:
        """Return the host's name of a tool, by the name that the model was given."""
        return self._names.own_name(name, self._host.tools)

    def parameters(self, name: str) -> JsonObject | None:
        """Return the schema of a tool's arguments, or None for no such tool.

        One that is too large to be offered cannot be called by its name, either.
        """
        tool = self._host.tools.get(self._own_name(name))
        if tool is None:
            return None
        spec = tool.get("spec") or {}
        try:
            json_size(spec, LARGEST_SCHEMA)
        except JsonTooLarge:
            return None
        return spec.get("parameters") or {"type": "object", "properties": {}}

    def call_kind(self, name: str) -> CallKind:
        """Return `question` for the tool of the host that asks a person."""
        own = self._own_name(name)
        is_question = own == "ask_user" and self._host.is_builtin(own)
        return "question" if is_question else "limited"

    def resolve_call(
        self, name: str, arguments: dict[str, Any]
    ) -> tuple[str, dict[str, Any]] | None:
        """Return the tool that a call will run, resolved as in the host.

        It is resolved before anybody is asked, so the approved tool is what runs.
        """
        own = self._own_name(name)
        tools = self._host.tools
        if value_at(tools, own, "tool_id") != "builtin:call_tool":
            return own, arguments
        inner, params = read_call_tool(arguments) or (None, {})
        if inner not in tools or inner in _DISPATCHERS:
            return None
        return str(inner), params

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool and return its result for the model and for the page.

        MCP servers check their own arguments.
        """
        own = self._own_name(name)
        account = self._user.account
        work = self._call_tool(own, arguments)
        if account is None:
            return await work
        return await account.observe_tool(own, work, attrgetter("failed"))

    async def _call_tool(self, own: str, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool with the arguments that its schema names."""
        tool = self._host.tools[own]
        params = arguments
        if tool.get("type") != "mcp":
            known = (self.parameters(own) or {}).get("properties") or {}
            params = {key: params[key] for key in params if key in known}
        async with self._turn_of(own):
            result = await self._result(own, tool, params)
        return await self._answer(own, tool, params, result)

    def _turn_of(self, own: str) -> AbstractAsyncContextManager[object]:
        """Return what a call waits for: earlier ones about the same list of tasks."""
        is_about_list = own in _OF_TASK_LIST and self._host.is_builtin(own)
        return self._task_list if is_about_list else nullcontext()

    async def _result(self, name: str, tool: JsonObject, params: dict[str, Any]) -> Any:
        """Run a tool where it has to run.

        A thread that exceeds its limit cannot be stopped; it keeps its place until it
        ends.
        """
        if tool.get("direct"):
            return await self._in_the_browser(name, tool, params)
        files = self._host.metadata.get("files") or []
        function = await update_tool(tool["callable"], self._user.messages, files)
        if tool.get("type") == "mcp":
            return await call_server(function, params)
        if not is_blocking(function):
            return await function(**params)
        work = partial(copy_context().run, run_at_once, function, params)
        user_id = self._user.user_id
        threads = self._user.threads.setdefault(user_id, UserThreads())
        return await threads.run(work)

    async def _in_the_browser(
        self, name: str, tool: JsonObject, params: dict[str, Any]
    ) -> Any:
        """Return the result of a tool that runs in the browser."""
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
        """Return a result as the host would store and show it."""
        host = self._host
        user = await user_model(self._user.user_id)
        text, files, embeds = await process_tool_result(
            host, user, name, tool, params, result
        )
        cited = _cites(name, host.metadata) and text
        tool_id = str(tool.get("tool_id") or "")
        sources = citation_sources(name, params, text, tool_id) if cited else []
        store = partial(stored_image, host, user)
        output, card = await split_result_files(
            files, text, store, user, has_row=self._user.has_row
        )
        card |= {"embeds": embeds, "sources": sources}
        filled = {key: value for key, value in card.items() if value}
        return ToolResult(output, _is_error_text(text), filled)


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.request
#
# What a request has beside the chat: tools, settings, parameters.
# --------------------------------------------------------------------------------------


_BATCH_SHARE = 5
"""Calls made at once run in parallel, but not all of them."""


class PreparedRequest(NamedTuple):
    """One request, and where its answer is stored."""

    call: CheckedCall
    request: ResponsesRequest
    origin: Origin
    limits: Limits
    toolset: Toolset | None = None
    """Without it no calls are answered here."""
    keys: ChatKeys | None = None
    """Sign and encrypt what the chat itself carries."""
    stored: StoredChat | None = None
    """The chat's row; None if nothing is stored."""
    sent: SentContext | None = None
    """What the row gets as sent beside the chat; None: it stays as it is."""
    records: Mapping[str, Record] = MappingProxyType({})
    """What earlier answers of the chat stored."""
    reason: str = ""
    """Why this model was chosen: the answer begins with it."""
    notices: tuple[str, ...] = ()
    """What the person who asked has to know or to do, if anything: the answer ends
    with it.
    """
    cites: bool = False
    """Whether its tools give sources."""
    python_files: Sequence[PythonFile] = ()
    """The files of the chat that its code gets."""


def offered_tools(call: CheckedCall, model: ResolvedModel) -> OfferedTools:
    """Return the tools that a model is offered, and the choice among them."""
    refused = refused_tools(learned_repairs(call, model.id))
    hosted, replaced = hosted_tools(call.config, model, refused)
    config = call.config
    called: Sequence[Item] = ()
    if not model.research:
        called = called_tools(
            call.body, model, config.expert, call.log.warn, config.approval_rules
        )
    builtin = {name for name in call.host.tools if call.host.is_builtin(name)}
    return offer_tools(call.body.get("tool_choice"), hosted, called, replaced, builtin)


def _runs_calls(call: CheckedCall, offered: OfferedTools) -> bool:
    """Say whether calls are run here.

    Those of Open WebUI's own chats always are; a call of a tool that it does not have
    is answered with an error. A plain client runs its own functions, and if it has one
    that Open WebUI does not have, all calls of the chat are left to it.
    """
    if call.caller.host_reads:
        return True
    return all(name in call.host.tools for name in offered.names.known)


def request_settings(
    call: CheckedCall, tools: OfferedTools, model: ResolvedModel
) -> Settings:
    """Return the settings of a request."""
    config = call.config
    valves = call.valves
    summary = config.summary
    names = (model.id, model.family, call.caller.model, call.model_name)
    background = _is_background_model(valves, names)
    ceiling = research_ceiling(valves) if model.research else {}
    # Without a stream a background answer has no encrypted reasoning.
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
        defaults={**_default_parameters(call, tools.items), **ceiling},
    )


def is_as_configured(prepared: PreparedRequest) -> bool:
    """Say whether a chat's request has only what the administrator's valves set.

    Tools of the chat, what was appended to it and a key of their own may be a user's
    choice.
    """
    call = prepared.call
    sent = prepared.request
    if call.config.own_key:
        return False
    if any(item_type(item) in APPENDED for item in sent.input):
        return False
    body = {"reasoning_effort": call.model.effort}
    plain = call._replace(body=body, config=read_config(call.valves))
    model = call.resolve(sent.model)._replace(
        pro=call.model.pro, research=call.model.research
    )
    hosted, _ = hosted_tools(plain.config, model, refused_tools(sent.repairs))
    settings = request_settings(plain, offer_tools(None, hosted), model)
    text = sent.instructions or ""
    built = build_request(model, text, sent.input, body, settings)
    return sent.model_copy(update={"repairs": ()}) == built


def learned_repairs(call: CheckedCall, model: str) -> tuple[Repair, ...]:
    """Return what earlier refusals showed of a model."""
    return call.capabilities.repairs.repairs(repair_scope(call, model))


def repair_scope(call: CheckedCall, model: str) -> RepairScope:
    """Return whose requests a repair is about."""
    return RepairScope(call.endpoint.account(), model, call.caller.user_id)


def _is_background_model(valves: Valves, names: Sequence[str]) -> bool:
    """Say whether BACKGROUND_MODELS names a model, by one of its names."""
    if valves.COMPATIBILITY == "strict":  # such servers do not store responses
        return False
    patterns = comma_list(valves.BACKGROUND_MODELS.lower())
    return any(fnmatchcase(n.lower(), p) for n in names for p in patterns)


def _default_parameters(call: CheckedCall, tools: Sequence[Item]) -> dict[str, Any]:
    """Return parameters of the API; the caller's own replace them.

    The same chat and user always get the same values, because the prompt cache and,
    from gpt-6.2 on, encrypted reasoning depend on them
    (docs/reference/responses-api.md, "Changed beginnings").
    """
    caller = call.caller
    valves = call.valves
    tier = call.config.service_tier
    compaction = compaction_settings(valves.COMPACTION_TOKENS, call.endpoint)
    chosen = {
        **hash_ids(valves.PROMPT_CACHE_KEY, caller.user_id, caller.chat_id),
        "service_tier": tier if tier != "auto" else None,
        "truncation": valves.TRUNCATION if valves.TRUNCATION != "disabled" else None,
        "max_output_tokens": valves.MAX_OUTPUT_TOKENS or None,
        "context_management": compaction,
    }
    if any(map(is_hosted_tool, tools)):  # the API counts only their calls
        chosen["max_tool_calls"] = valves.MAX_TOOL_CALLS
    return given_values(chosen)


def call_toolset(call: CheckedCall, offered: OfferedTools) -> Toolset:
    """Return what runs the calls here, unless a plain client has to."""
    valves = call.valves
    seconds = call.config.tool_seconds
    return Toolset(
        HostTools(call.host, tool_user(call), offered.names),
        _approver(call),
        CallLimits(
            seconds=seconds,
            batch_seconds=_BATCH_SHARE * seconds,
            characters=valves.TOOL_OUTPUT_CHARACTERS,
            own=[*call.config.tool_timeouts, *long_running_tools(call.host)],
        ),
        call.log.warn,
        budget=Budget(
            # One round more in which the model hears of the limit.
            rounds=valves.MAX_FUNCTION_CALL_LOOPS + 1,
            calls=valves.MAX_TOOL_CALLS,
        ),
        carries_reasoning=valves.carries_reasoning(),
        runs_calls=_runs_calls(call, offered),
    )


def _approver(call: CheckedCall) -> Approver:
    """Return who decides about the calls of a chat, also about those that OpenAI makes."""
    approver = build_approver(call.host, call.config.approval_rules, call.log.warn)
    given = as_list(call.body.get("tools")) + as_list(call.body.get("extra_tools"))
    servers = [*call.config.remote.tools, *map(as_mapping, given)]
    return replace(approver, remote_default=partial(rule_without_rules, servers))


def tool_user(call: CheckedCall) -> ToolUser:
    """Return for whom the tools of a call run."""
    caller = call.caller
    return ToolUser(
        user_id=caller.user_id,
        messages=call.messages,
        has_row=caller.may_have_row,
        threads=call.threads,
        account=call.account,
    )


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.retrieved_text
#
# Leaves the host's retrieved text of a file out, if the file itself is sent.
#
# Open WebUI retrieves text from the files of the whole chat for each question, and puts it
# in front of the question, or behind the instructions (`RAG_SYSTEM_CONTEXT`). With a file
# that the model or its code gets whole, the model would read parts of it a second time,
# and answer from them. The text of everything else stays: knowledge, notes, pages, chats.
# --------------------------------------------------------------------------------------


async def without_retrieved_text(
    parts: Sequence[ChatPart],
    instructions: str,
    metadata: JsonObject,
    whole_files: Collection[str],
) -> tuple[list[ChatPart], str]:
    """Return a chat and its instructions without the retrieved text of some files.

    `whole_files` are the host's ids of the files that are sent themselves.
    """
    result = list(parts)
    sources = content_parts(metadata.get("sources"))
    kept = [source for source in sources if not _is_of_file(source, whole_files)]
    if len(kept) == len(sources):
        return result, instructions
    index = question_index(parts)
    question = result[index]
    if not isinstance(question, UserMessage):
        return result, instructions
    words = question.stored.words if question.stored else ""
    asked = as_text(metadata.get("base_user_prompt")) or words
    text = await retrieved_text(sources, kept, asked)
    parts_of_question = [_without_text(part, text) for part in question.content]
    result[index] = question.with_content(parts_of_question)
    return result, _replaced(instructions, text)


def _is_of_file(source: JsonObject, whole_files: Collection[str]) -> bool:
    """Say whether a source is one of the files; a collection may have the same file."""
    is_file = value_at(source, "source", "type") == "file"
    return is_file and value_at(source, "source", "id") in whole_files


def _without_text(part: Item, text: RetrievedText) -> Item:
    if part.get("type") != "input_text":
        return part
    return {**part, "text": _replaced(part["text"], text)}


def _replaced(words: str, text: RetrievedText) -> str:
    """Return words with what is kept of the retrieved text.

    Around all of it the host has put the administrator's template, which goes with it.
    If the template has changed meanwhile, as one with the time in it does, only the
    sources are replaced.
    """
    if text.with_template and text.with_template in words:
        before, _, after = words.rpartition(text.with_template)
        if text.kept:
            return f"{before}{text.kept_with_template}{after}"
        if before.endswith("\n"):
            return f"{before[:-1]}{after}"
        return f"{before}{after.removeprefix(_NEW_LINE)}"
    if text.sources and text.sources in words:
        before, _, after = words.rpartition(text.sources)
        return f"{before}{text.kept}{after}"
    return words


_NEW_LINE = "\n"
"""The host puts one between the text and the question."""


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.chat
#
# Builds the request for a chat, in passes over its parts.
#
# The model, if its name leaves the choice to the pipe; the history as input, with the
# prefix as it was sent before; the tools; the settings; default parameters.
# --------------------------------------------------------------------------------------


class _Chat(NamedTuple):
    """A chat between two passes."""

    call: CheckedCall
    model: ResolvedModel
    stored: StoredChat | None
    instructions: str
    parts: list[ChatPart]
    records: Mapping[str, Record]
    tools: OfferedTools
    verbosity: str = ""
    summary: str = ""
    """What Open WebUI tells of the conversation that it leaves out."""
    memory_note: str = ""
    """What the person is told about turns that an agent does not remember."""
    request: ResponsesRequest = ResponsesRequest(model="", input=[])
    """As it would be if the chat began with it, and later as it is sent."""
    python: PythonFiles = PythonFiles()
    sent: SentContext | None = None
    """What this run sends beside the chat; None: what an earlier run sent holds on."""

    @property
    def replaced_id(self) -> str:
        """The message that this answer replaces, or nothing."""
        return str(self.call.host.metadata.get("regeneration_message_id") or "")

    @property
    def continues(self) -> bool:
        """Whether the answer has begun and is continued."""
        return bool(self.call.host.metadata.get("assistant_message_id"))

    def find_compacted(self) -> set[str]:
        """Return the answers behind which a compaction replaced what came before."""
        return {
            record.message_id
            for record in self.records.values()
            if any(is_compaction(item) for item in record.payload)
        }

    @property
    def is_stable(self) -> bool:
        """Whether instructions stay as first given (`stable_instructions`)."""
        mode = self.call.config.expert.stable_instructions
        return self.model.facts.appends_tools if mode == "auto" else mode == "on"


async def build_chat_request(call: CheckedCall) -> PreparedRequest:
    """Return the request for a chat; raises InvalidRequest for what cannot be sent."""
    require_floor()
    keys = chat_keys(call.valves, call.caller)
    stored = await read_stored_chat(call.caller, keys)
    size = count_entries(call.messages, 2) + (stored.size if stored else 0)
    chat, reason = await run_work(size, lambda: _read_messages(call, keys.sign, stored))
    chat = await _with_whole_files(chat)
    chat = await run_work(size, partial(_apply_passes, chat))
    origin = origin_at(chat.model.family, call.endpoint)
    tools = chat.tools
    items = await _history(chat, origin, size)
    changed = {"input": items, "instructions": chat.instructions or None}
    request = chat.request.model_copy(update=changed)
    return PreparedRequest(
        call,
        with_cache_comparison(call, request, stored),
        origin,
        run_limits(call.config.expert, chat.model),
        _toolset(call, tools),
        keys=keys,
        stored=stored,
        sent=chat.sent,
        records=chat.records,
        reason=reason,
        notices=(
            tools.notice,
            chat.memory_note,
            svg_notice(chat.parts),
            cut_notice(chat.parts),
            chat.python.notice,
        ),
        cites=any(tool_kind(tool).is_cited for tool in tools.items),
        python_files=chat.python.files,
    )


def _read_messages(
    call: CheckedCall, sign: Sign | None, stored: StoredChat | None
) -> tuple[_Chat, str]:
    """Return the chat as it is to be sent, and why its model was chosen, if known."""
    messages, memory_note = remembered_messages(call.agent, call.messages)
    instructions, parts = parse_messages(messages, call.valves.IMAGE_DETAIL)
    instructions, summary = _take_conversation(call, instructions)
    parts, records = restore_from_details(parts, sign)
    model, reason = _choose_model(call, parts, stored)
    if call.account:
        lacks = (*model.facts.lacks, *call.account.limits.forbidden_tools())
        model = model._replace(facts=model.facts._replace(lacks=lacks))
    tools = offered_tools(call, model)
    if call.agent:
        check_agent_model(call.agent, model)
        instructions = agent_instructions(call, call.agent, model, instructions, tools)
    chat = _Chat(call, model, stored, instructions, parts, records, tools)
    chat = chat._replace(memory_note=memory_note, summary=summary)
    return _attach_stored(chat), reason


def _take_conversation(call: CheckedCall, instructions: str) -> tuple[str, str]:
    """Return the instructions without what the host tells there of the conversation.

    It tells it in chats of its page only; other clients write their own instructions.
    """
    if call.caller.is_in_channel:
        return take_thread(instructions)
    if call.caller.host_reads:
        return take_summary(instructions)
    return instructions, ""


def _apply_passes(chat: _Chat) -> _Chat:
    """Return a chat whose messages have their files, after all passes over it."""
    for change in _PASSES:
        chat = change(chat)
    return chat


def _toolset(call: CheckedCall, tools: OfferedTools) -> Toolset:
    """Return what runs the calls of a chat."""
    toolset = call_toolset(call, tools)
    return agent_toolset(call, call.agent, toolset) if call.agent else toolset


def _choose_model(
    call: CheckedCall, parts: Sequence[ChatPart], stored: StoredChat | None
) -> tuple[ResolvedModel, str]:
    """Return the model, and the sentence that says why it was chosen, if any."""
    question = next(iter(user_messages(parts).values()), None)
    records = stored.records.values() if stored else ()
    choice = choose_auto_model(
        call.model_name,
        question.item if question else None,
        tools=bool(call.host.metadata.get("tool_ids")),
        earlier={record.origin.family for record in records},
    )
    if choice is None:
        return call.model, research_beginning(call.model)
    model = call.resolve(choice[0])
    return model, f"{model.name} answers: {choice[1]}."


_LEFT_OUT = "a developer's message in its row was left out"


def _attach_stored(chat: _Chat) -> _Chat:
    """Give the parts what the host stores of them."""
    rows = chat.stored.messages if chat.stored else {}
    call = chat.call
    metadata = call.host.metadata
    given = add_tool_images(chat.parts, rows)
    parts = attach_stored_messages(given, rows, metadata)
    if len(parts) < len(given):
        call.warn_once(f"chat {call.caller.chat_id}: {_LEFT_OUT}")
    return chat._replace(parts=attach_files(parts, rows, metadata))


async def _with_whole_files(chat: _Chat) -> _Chat:
    """Choose the files that code gets; leave out what the host retrieved of them.

    The same holds for documents that the model gets whole.
    """
    call = chat.call
    whole = set[str]()
    if _sends_documents(chat):
        whole = document_ids(chat.parts, call.valves.FILE_INPUT)
    if _code_gets_files(chat):
        user = await user_model(call.caller.user_id)
        python = await choose_python_files(chat.parts, user)
        has_row = bool(stored_messages(chat.parts))
        parts = name_python_files(chat.parts, python.files, at_question_only=has_row)
        chat = chat._replace(parts=parts, python=python)
        whole.update(file.file_id for file in python.files)
    parts, instructions = await without_retrieved_text(
        chat.parts, chat.instructions, call.host.metadata, whole
    )
    return chat._replace(parts=parts, instructions=instructions)


def _sends_documents(chat: _Chat) -> bool:
    """Say whether the model gets documents whole, if the chat has any."""
    return chat.call.valves.FILE_INPUT != "off" and chat.model.facts.vision


def _code_gets_files(chat: _Chat) -> bool:
    """Say whether code runs in a container of OpenAI or Azure, and the chat has files."""
    endpoint = chat.call.endpoint
    if not endpoint.has_own_services or chat.tools.choice == "none":
        return False
    if files_refused(endpoint.account()) in chat.call.capabilities:
        return False
    if not has_new_container(chat.tools.items):
        return False
    return any(user.attachments for user in user_messages(chat.parts).values())


def _take_directive(chat: _Chat) -> _Chat:
    """Take a wish for the length of this answer out of the question."""
    if not chat.model.facts.verbosity:
        return chat
    is_guided = bool(chat.replaced_id)
    parts, verbosity = take_directive(chat.parts, is_guided=is_guided)
    return chat._replace(parts=parts, verbosity=verbosity)


def _restore_outputs(chat: _Chat) -> _Chat:
    """Put the stored outputs of earlier answers in the place of their text."""
    stored = chat.stored
    if stored is None:
        return chat
    message_id = chat.call.caller.message_id
    outputs = stored_outputs(stored.messages, message_id, chat.replaced_id)
    parts = restore_from_outputs(chat.parts, outputs)
    return chat._replace(parts=parts, records={**chat.records, **stored.records})


def _build_flat(chat: _Chat) -> _Chat:
    """Build the request as if the chat began now, without its input."""
    settings = request_settings(chat.call, chat.tools, chat.model)
    # The input follows in a later pass; here it only counts whether there is any.
    items: list[Item] = [{} for _ in chat.parts]
    body = _body(chat)
    stored = chat.stored.repairs if chat.stored else ()
    request = build_request(chat.model, "", items, body, settings)
    effort = _other_allowed_effort(chat, request)
    if effort:
        body["reasoning"] = {**as_mapping(body.get("reasoning")), "effort": effort}
        request = build_request(chat.model, "", items, body, settings)
    repairs = (*learned_repairs(chat.call, request.model), *stored)
    return chat._replace(request=request.model_copy(update={"repairs": repairs}))


def _other_allowed_effort(chat: _Chat, request: ResponsesRequest) -> str:
    """Return the effort that the limits of the account allow instead of the request's.

    Empty if there are none, or if they allow what is asked for.
    """
    account = chat.call.account
    if account is None:
        return ""
    facts = chat.model.facts
    asked = (request.reasoning or {}).get("effort") or facts.default_effort
    usable: Sequence[str] = ()
    if asked or facts.reasoning:
        usable = facts.efforts or REASONING_EFFORTS
    return account.limits.nearest_allowed_effort(asked, usable)


def _restore_prefix(chat: _Chat) -> _Chat:
    """Keep the instructions and the chat as they were sent before.

    What is sent for the first time stands in `sent`.
    """
    call = chat.call
    parts = chat.parts
    if chat.stored is None or not stored_messages(parts):
        return chat
    sent = dict(chat.stored.sent)
    if not chat.continues:
        # An earlier run of the same message does not count: a client chooses the ids.
        sent.pop(call.caller.message_id, None)
        sent_now = _sent_now(chat, sent)
        chat = chat._replace(sent=sent_now)
        if sent_now != SentContext():
            sent[call.caller.message_id] = sent_now
    request, items = _with_turns(chat, sent)
    earlier = _sent_instructions(chat, sent)
    changes = earlier.changes if earlier else {}
    prefix = apply_sent_context(parts, sent, changes, items)
    chat = chat._replace(parts=prefix, request=request)
    if earlier is None:
        return chat
    # What changed since an answer began is told at its end: it is no question.
    change = change_instructions(earlier, chat.instructions, call.model_id)
    notice = change_notice(change)
    if notice:
        prefix.append(notice)
    return chat._replace(instructions=earlier.first)


def _sent_now(chat: _Chat, earlier: Mapping[str, SentContext]) -> SentContext:
    """Return what this run sends beside the chat, compared with earlier answers."""
    facts = chat.model.facts
    sent = SentContext()
    if chat.is_stable:
        known = _sent_instructions(chat, earlier)
        sent = change_instructions(known, chat.instructions, chat.call.model_id)
    turn = None
    if _appended(chat):
        turns = model_turns(chat.parts, earlier, chat.request.model)
        turn = record_turn(chat.request, [*turns.values()], facts.default_effort)
    injected = find_injected_context(chat.parts)
    if injected:
        compacted = chat.find_compacted()
        injected = drop_repeated_context(injected, chat.parts, earlier, compacted)
    return sent._replace(injected=injected, turn=turn)


def _sent_instructions(
    chat: _Chat, sent: Mapping[str, SentContext]
) -> SentInstructions | None:
    """Return what the chat has told its model; None where it gets all of it anew."""
    if not chat.is_stable:
        return None
    return sent_instructions(
        chat.parts, sent, chat.call.model_id, chat.find_compacted()
    )


def _with_turns(
    chat: _Chat, sent: Mapping[str, SentContext]
) -> tuple[ResponsesRequest, Mapping[str, Sequence[Item]]]:
    """Return the request as its model's first turn had it, and what later ones added."""
    turns = model_turns(chat.parts, sent, chat.request.model)
    if chat.call.caller.message_id not in turns:
        return chat.request, {}
    return append_turns(chat.request, turns, _appended(chat))


def _appended(chat: _Chat) -> set[str]:
    """Return the types of items that its model and server take."""
    if not chat.call.endpoint.is_openai:
        return set()
    facts = chat.model.facts
    kinds = set[str]()
    if facts.appends_tools:
        kinds.add(ADDED_TOOLS)
    if facts.appends_configuration:
        kinds.add(CONFIGURATION)
    return kinds - lowered_kinds(chat.request.repairs)


def _place_memories(chat: _Chat) -> _Chat:
    """Let the chat begin with what an agent remembers from before it."""
    agent = chat.call.agent
    if agent is None:
        return chat
    return chat._replace(parts=[*agent_memories(agent), *chat.parts])


def _place_summary(chat: _Chat) -> _Chat:
    """Let the chat begin with what the host tells of the conversation before it."""
    if not chat.summary:
        return chat
    first = UserMessage(text_message("user", chat.summary))
    return chat._replace(parts=[first, *chat.parts])


def _place_instructions(chat: _Chat) -> _Chat:
    """Let the input begin with the instructions, where a server takes that."""
    if not (chat.instructions and chat.call.endpoint.is_openai):
        return chat
    first = UserMessage(text_message("developer", chat.instructions))
    return chat._replace(parts=[first, *chat.parts], instructions="")


_PASSES = (
    _take_directive,
    _restore_outputs,
    _build_flat,
    _restore_prefix,
    _place_summary,
    _place_memories,
    _place_instructions,
)
"""What is done to a parsed chat, in this order; directives are no part of a prefix."""


async def _history(chat: _Chat, origin: Origin, size: int) -> list[Item]:
    """Return the input of a chat's history, with its files."""
    parts = chat.parts
    valves = chat.call.valves
    user_id = chat.call.caller.user_id
    size += sum(map(image_length, parts)) // 1024
    parts = await run_work(size, partial(resolve_images, parts, scale_image))
    has_attachments = any(
        part.attachments for part in parts if isinstance(part, UserMessage)
    )
    if _sends_documents(chat) and has_attachments:
        parts = await add_documents(parts, await user_model(user_id), valves.FILE_INPUT)
    records = await load_stored_images(chat.records, parts, user_id)
    reader = origin if valves.remembers_reasoning() else None
    with_tools = valves.PERSIST_TOOL_RESULTS
    repairs = chat.stored.repairs if chat.stored else ()
    return await run_work(
        size,
        lambda: fit_input(
            build_input(parts, records, reader, with_tools=with_tools, repairs=repairs)
        ),
    )


def _body(chat: _Chat) -> dict[str, Any]:
    """Return the caller's keys; a wish for this one answer has priority over them."""
    given = research_body(chat.call.body, chat.model)
    body = {**given, "tool_choice": chat.tools.choice}
    if chat.call.agent:
        body = {**agent_defaults(chat.call.agent), **body}
    if chat.verbosity:
        body["text"] = {**as_mapping(body.get("text")), "verbosity": chat.verbosity}
    return body


# --------------------------------------------------------------------------------------
# owui_manifold.prepare.tasks
#
# The request of a task: titles, tags and the like, without tools or stored items.
# --------------------------------------------------------------------------------------


def build_task_request(call: CheckedCall) -> PreparedRequest:
    """Return the request for a title, tags or the like; raises InvalidRequest."""
    require_floor()
    model = task_model(call)
    request = task_request(model, call.messages, call.body, call.caller.task)
    repairs = learned_repairs(call, request.model)
    request = request.model_copy(update={"repairs": repairs})
    origin = origin_at(model.family, call.endpoint)
    limits = run_limits(call.config.expert, model)
    return PreparedRequest(call, request, origin, limits)


def task_model(call: CheckedCall) -> ResolvedModel:
    """Return the model for tasks: the valve's, or the chat's own.

    A server other than OpenAI's may not have the default model.
    """
    valves = call.valves
    wanted = valves.TASK_MODEL.strip()
    chosen = "TASK_MODEL" in valves.model_fields_set
    if wanted and (chosen or call.endpoint.host == OPENAI_HOST):
        model = call.resolve(wanted)
        if _task_lack(call.endpoint, model.id) not in call.capabilities:
            return model
    return call.model


def lacks_task_model(prepared: PreparedRequest, ended: RunDone) -> bool:
    """Say whether the key may not use TASK_MODEL; later tasks get the chat's model."""
    call = prepared.call
    model = prepared.request.model
    # OpenAI answers 400 for an unknown id, 404 for one that it has switched off.
    is_missing = ended.ending.code == "model_not_found"
    is_refused = is_missing or ended.trace.status in (403, 404)
    is_stopped = ended.ending.code in SAFETY_STOPS
    if not is_refused or is_stopped or model == call.model.id:
        return False
    if call.capabilities.first_time(_task_lack(call.endpoint, model)):
        call.log.warn(
            f"TASK_MODEL: the key may not use {model}; the chat's model does tasks"
        )
    return True


def _task_lack(endpoint: Endpoint, model: str) -> str:
    """Return the text that remembers that a key may not use a model for tasks."""
    return f"{endpoint.account()} {model} task"


# --------------------------------------------------------------------------------------
# owui_manifold.present.costs
#
# What responses cost.
# --------------------------------------------------------------------------------------


def cost_of_responses(
    prepared: PreparedRequest, usages: Iterable[Usage], output: Iterable[Item]
) -> float | None:
    """Return what responses with this output cost; None if it cannot be known.

    Other servers do not say which tier served a response: it is the one asked for.
    """
    call = prepared.call
    request = prepared.request
    own = call.config.prices
    if isinstance(own, InvalidRequest):
        return None
    facts = call.resolve(request.model).facts
    facts = facts._replace(prices=own.get(request.model, facts.prices))
    asked = request.service_tier or ""
    usages = [usage._replace(tier=usage.tier or asked) for usage in usages]
    return cost_of_run(usages, facts, output, utc_today(), call.endpoint.host)


# --------------------------------------------------------------------------------------
# owui_manifold.present.report
#
# Reports the request and the end of a run, to the log and to the user.
# --------------------------------------------------------------------------------------


_UNAUTHORIZED = 401
_WRONG_OWN_KEY = (
    f"The model's server does not accept your own API key. Check {OWN_KEY_PLACE}"
)


def report_request(prepared: PreparedRequest) -> None:
    """Log that a request is about to be sent, without any of its text."""
    request = prepared.request
    call = prepared.call
    call.log.line(
        "DEBUG",
        f"request to {prepared.call.endpoint.host}: {request.model}, "
        f"{len(request.input)} input items, {len(request.tools or ())} tools, "
        f"stream {request.stream}, background {bool(request.background)}, "
        f"stored {bool(prepared.stored)}, native {call.caller.host_reads}",
    )
    missing, errors = _missing_features(prepared)
    if missing:
        reason = "left out, not known to the API or not taken by the model"
        call.log.line("DEBUG", f"{reason}: {', '.join(missing)}")
    for error in errors:
        call.warn_once(f"user {call.caller.user_id}: {error}")
    if call.config.expert.writes_audit_log():
        call.log.audit(_audited(prepared).request_line())


_DIAGNOSIS = ("type", "reason", "cache_missed_tokens")
"""What is logged of why the prompt cache missed."""


def report_end(prepared: PreparedRequest, ended: RunDone) -> RunDone:
    """Log how a run ended; return it with its cost, a failure with its error id."""
    call = prepared.call
    trace = ended.trace
    facts = call.resolve(prepared.request.model).facts
    ended = ended._replace(
        ending=_explained_ending(ended),
        usage_note=_usage_note(prepared, ended),
        window_share=window_share(ended.last_usage, facts),
    )
    _audit_end(prepared, ended)
    _report_removals(call, trace.removed)
    if ended.ending.is_failure:
        ended = ended._replace(ending=_reported_failure(call, ended))
    else:
        used = f", {ended.usage.total} tokens" if ended.usage else ""
        call.log.line("DEBUG", f"completed{used}, request id {trace.request_id}")
    if not call.config.expert.prompt_cache_diagnostics:
        ended = ended._replace(trace=trace._replace(response_id=""))
    elif trace.cache:
        details = (f"{key} {str(trace.cache.get(key))[:40]}" for key in _DIAGNOSIS)
        call.log.note(f"prompt cache: {', '.join(details)}")
    return _add_metadata(prepared, _add_cost(prepared, ended))


def _audit_end(prepared: PreparedRequest, ended: RunDone) -> None:
    """Write a run's end to the audit log, if that is on."""
    call = prepared.call
    if not call.config.expert.writes_audit_log():
        return
    audited = _audited(prepared)
    if ended.ending.kind in ("completed", "incomplete"):
        line = audited.success_line(ended.trace.model)
    else:
        line = audited.error_line(ended.trace.error, ended.trace.status)
    call.log.audit(line)


def _reported_failure(call: CheckedCall, ended: RunDone) -> Ending:
    """Log a failure; return it with the message to show."""
    is_unauthorized = ended.trace.status == _UNAUTHORIZED
    key_is_wrong = is_unauthorized or ended.ending.code == WRONG_KEY
    own_key_is_wrong = key_is_wrong and call.config.own_key
    return report_failure(
        call.log,
        ended,
        PIPE_SHELL,
        is_admin=call.caller.is_admin,
        message=_WRONG_OWN_KEY if own_key_is_wrong else "",
    )


_MIN_TOOL_TOKENS = 1000
"""Fewer are never mentioned."""
_MANY_TOOL_TOKENS = 4000
"""More are always mentioned; in between, if they are more than half of the input."""
_CHARACTERS_OF_A_TOKEN = 4


def _usage_note(prepared: PreparedRequest, ended: RunDone) -> str:
    """Return the note that tools explain many input tokens of a chat's first answer.

    Only administrators can do something about it, and read it once in a chat.
    """
    call = prepared.call
    if not call.caller.is_admin:
        return ""
    request = prepared.request
    usage = ended.usage
    questions = sum(item.get("role") == "user" for item in request.input)
    if usage is None or questions > 1:
        return ""
    tools = request.tools or ()
    size = sum(len(str(tool)) for tool in tools) // _CHARACTERS_OF_A_TOKEN
    # Each response of the run has read the tools again.
    tokens = min(size * len(ended.usages), usage.input)
    notable = min(_MANY_TOOL_TOKENS, usage.input / 2)
    if tokens <= max(_MIN_TOOL_TOKENS, notable):
        return ""
    if not call.capabilities.first_time(f"tools of {call.caller.chat_id}"):
        return ""
    count = f"{round(tokens, -2):,}"
    return f"about {count} tokens describe {len(tools)} tools"


def _explained_ending(ended: RunDone) -> Ending:
    """Return how a run ended; if nothing is shown of its answer, with the reason."""
    ending = ended.ending
    output = ended.output
    if any(map(_is_seen, output)) or open_calls(output) or closing_commentary(output):
        return ending
    if ending.kind == "completed":
        ends_with_call = output and is_call_output(output[-1])
        reason = "only_calls" if ends_with_call else "no_answer"
        return ending_of_incomplete(reason)
    if ending.code == "max_output_tokens" and any(map(is_reasoning, output)):
        sentence = ending_of_incomplete("only_tokens").sentence
        return ending._replace(sentence=sentence)
    return ending


def _is_seen(item: Item) -> bool:
    """Say whether the page shows an item as an answer."""
    if item_type(item) == "message":
        return bool(message_text(item).strip()) and not is_commentary(item)
    return has_image(item) or is_code(item)


def _missing_features(prepared: PreparedRequest) -> tuple[list[str], list[str]]:
    """Return what the caller or the user chose and is not sent, and errors in it."""
    call = prepared.call
    config = call.config
    if call.caller.task:
        return [], []
    words = {"reasoning_effort": config.effort, "verbosity": config.verbosity}
    chosen = {name: word for name, word in words.items() if word}
    return unsent_parameters({**chosen, **call.body}, prepared.request)


def _report_removals(call: CheckedCall, removed: Mapping[str, int]) -> None:
    """Log which items the API left out of the input.

    With the reason `turn_boundary` it only drops the reasoning of past turns, as
    documented.
    """
    if not removed:
        return
    is_intended = removed.keys() <= {"turn_boundary"}
    if not is_intended:
        call.capabilities.count_dropped(removed)
    counts = ", ".join(f"{count} {reason}" for reason, count in removed.items())
    level: LogLevel = "DEBUG" if is_intended else "WARNING"
    call.log.line(level, f"the API left out earlier reasoning of the input: {counts}")


def _audited(prepared: PreparedRequest) -> AuditedRequest:
    """Return what the audit log writes about a request."""
    payload = prepared.request.payload()
    host = prepared.call.endpoint.host
    return AuditedRequest(payload, host, prepared.call.log.run_id)


def _add_cost(prepared: PreparedRequest, ended: RunDone) -> RunDone:
    """Return the end of a run with its cost, if it is shown and can be known."""
    if not prepared.call.config.shows_cost or not ended.usages:
        return ended
    cost = cost_of_responses(prepared, ended.usages, ended.output)
    return ended._replace(cost=cost)


def _add_metadata(prepared: PreparedRequest, ended: RunDone) -> RunDone:
    """Return the end of an agent's run with its metadata; the cost only if it is shown."""
    if ended.work is None:
        return ended
    metadata = log_metadata(prepared, ended, ended.work)
    shown = metadata._replace(price=ended.cost or 0.0)
    return ended._replace(metadata=shown.wire())


def log_metadata(
    prepared: PreparedRequest, ended: RunDone, work: RunWork
) -> RunMetadata:
    """Log what an agent's answer took, and return it."""
    agent = prepared.call.agent
    cost = cost_of_responses(prepared, ended.usages, ended.output)
    metadata = RunMetadata(
        strategy=agent.strategy if agent else "",
        model=prepared.request.model,
        ending=ended.ending.kind,
        rounds=work.rounds,
        tool_calls=work.tool_calls,
        latency=work.seconds,
        price=cost or 0.0,
        usage=ended.usage or Usage(),
        window_share=ended.window_share,
    )
    _log_metadata(prepared.call.log, metadata)
    return metadata


def refused_metadata(call: PipeCall, error: Exception) -> RunMetadata | None:
    """Log what an agent's answer took that was refused before its run, and return it.

    None if no agent was to answer, or if something else went wrong.
    """
    if call.caller.task or not isinstance(error, ResponsesError):
        return None
    config = call.config
    name = call.caller.model
    agent = find_agent(name, config.agent, is_switched=config.wants_agent)
    if agent is None:
        return None
    overrides = config.overrides if isinstance(config.overrides, Mapping) else {}
    model = resolve_model(answering_name(name, config.agent), overrides)
    metadata = RunMetadata(
        strategy=agent.strategy,
        model=model.id,
        ending=ending_of_exception(error, has_begun=False).kind,
        rounds=0,
        tool_calls=0,
        latency=0.0,
    )
    _log_metadata(call.log, metadata)
    return metadata


def _log_metadata(log: RunLog, metadata: RunMetadata) -> None:
    log.note(f"{METADATA_KEY} {json.dumps(metadata.wire())}")


# --------------------------------------------------------------------------------------
# owui_manifold.present.views
#
# The forms of an answer: native events, chunks for plain clients, one whole result.
# --------------------------------------------------------------------------------------


def stream_view(caller: Caller) -> NativeRenderer | ChunkRenderer:
    """Return what renders a stream for its reader: Open WebUI or a plain client."""
    if caller.host_reads:
        return page_view()
    return ChunkRenderer(*_response_head(caller))


def readable_chunk(chunk: Chunk, caller: Caller) -> Chunk:
    """Return a chunk in a form that its reader shows: in a channel, an error as text.

    There Open WebUI drops errors of a stream, and the answer would be empty
    (socket/main.py:1369 of 0.12.4).
    """
    if not caller.is_in_channel:
        return chunk
    message = value_at(chunk, "error", "message")
    if not message:
        return chunk
    delta = {"content": f"\n\n{message}"}
    return {"choices": [{"index": 0, "delta": delta}]}


def page_view() -> NativeRenderer:
    """Return what renders an answer for Open WebUI."""
    return NativeRenderer(monotonic_seconds, HostedItems)


def whole_result(caller: Caller, ended: RunDone, items: list[Item]) -> Chunk:
    """Return the whole answer at once; Open WebUI also gets the output items.

    The page shows no finish_reason, so an answer that ended early gets a message.
    """
    result = completion(ended, *_response_head(caller))
    if not caller.host_reads:
        return result
    if "usage" in result:
        result |= host_usage(ended)
    if ended.ending.is_failure:
        result |= error_chunk(ended.ending.sentence)
    if items:
        result |= {"output": items}
    return result


def metadata_chunk(
    view: NativeRenderer | ChunkRenderer, metadata: RunMetadata
) -> Chunk:
    """Return what an agent's answer took, for an answer that did not begin."""
    if isinstance(view, ChunkRenderer):
        return {**view.head, "choices": [], METADATA_KEY: metadata.wire()}
    return closing_chunk(metadata.describe(), metadata.wire())


def _response_head(caller: Caller) -> tuple[str, int, str]:
    """Return the id, the time and the model that a result or its chunks carry."""
    return f"chatcmpl-{new_ulid()}", unix_seconds(), caller.host_model


# --------------------------------------------------------------------------------------
# owui_manifold.present.notices
#
# Notices above an answer.
#
# They are about models with legacy function calling, models that will be shut down,
# settings that cannot be read or have no effect, and the administration's limits.
# --------------------------------------------------------------------------------------


_LEGACY_TOOLS = (
    "Open WebUI runs this model's tools in its legacy way: before it asks the model, "
    "and without its reasoning."
)
_HOW_TO_CHANGE = (
    " Set Function Calling to Native in the model's advanced parameters, or switch on "
    "AUTO_NATIVE_TOOLS in the valves of this pipe."
)
_IS_CHANGED = " AUTO_NATIVE_TOOLS has set it to Native, from the next message on."


async def _legacy_notice(call: CheckedCall) -> str:
    """Return the notice about legacy function calling, once, for administrators."""
    if value_at(call.host.metadata, "params", "function_calling") != "legacy":
        return ""
    if not await is_legacy_model(call.model_id):
        return ""
    changed = call.valves.AUTO_NATIVE_TOOLS and await make_native(call.model_id)
    notice = f"{_LEGACY_TOOLS}{_IS_CHANGED if changed else _HOW_TO_CHANGE}"
    is_shown = _is_first_notice(call, f"{call.model_id}: {notice}")
    return notice if is_shown else ""


def _valve_complaints(call: CheckedCall) -> list[str]:
    """Log errors in valves; return those that leave something out, the worst last.

    Administrators see them at every answer, nobody else does. An unreadable rule for
    approvals is the worst; `Config.problems` begins with it.
    """
    complaints = (*call.config.problems, *call.config.remote.complaints)
    for complaint in complaints:
        call.log.warn(complaint)
    if not call.caller.is_admin:
        return []
    return list(reversed(complaints))


def _valve_notes(call: CheckedCall) -> list[str]:
    """Return what has no effect in valves: once in the log, once for administrators."""
    servers = call.config.remote
    options = as_mapping(parse_json_object(call.valves.IMAGE_GENERATION_OPTIONS))
    drawing = resolve_model(as_text(options.get("model")))
    retirement = retirement_notice(drawing, utc_today())
    image_note = f"IMAGE_GENERATION_OPTIONS: {retirement}" if retirement else ""
    every_note = (
        *servers.notes,
        opening_error(call.config.expert),
        image_note,
        unused_search_budget(call.config, call.model),
    )
    return [note for note in every_note if note and _is_first_notice(call, note)]


def _is_first_notice(call: CheckedCall, notice: str) -> bool:
    """Log a notice once; say whether to show it, once, to an administrator."""
    call.warn_once(notice)
    return call.caller.is_admin and call.capabilities.first_time(f"chat: {notice}")


def refusal_notice(call: CheckedCall) -> str:
    """Return the notice about a user's own settings without effect, once each.

    It stands above the last line of the answer, which tells more.
    """
    if call.caller.task:
        return ""
    if not call.caller.host_reads:  # no page shows it
        return ""
    user = call.caller.user_id
    is_new = call.capabilities.first_time
    names = [name for name in call.config.refused if is_new(f"{user}: {name}")]
    if not names:
        return ""
    listed = ", ".join(names)
    call.log.line("INFO", f"user {user} may not change {listed}")
    shown = listed.replace("_", " ").title()
    return f"No effect, because only administrators may change it: {shown}"


async def notices_of(prepared: PreparedRequest) -> list[str]:
    """Return the notices to show behind the answer's last line; tasks have none.

    The page shows only the last one, so the most serious one comes last.
    """
    call = prepared.call
    if call.caller.task:
        return []
    notices = [*_valve_notes(call), await _legacy_notice(call)]
    if call.account:
        notices += call.account.limits.notices()
    notices.append(retirement_notice(call.chosen_model, utc_today(), call.model))
    notices += prepared.notices
    if call.account:
        notices += call.account.limits.complaints()
    notices += _valve_complaints(call)
    return [notice for notice in notices if notice]


# --------------------------------------------------------------------------------------
# owui_manifold.run.agent
#
# An agent's answer: rounds of the loop, until the question is answered.
#
# A round is a response of the model with its calls. The tools and their approvals are
# those of any chat (`prepare/agent.py` adds the guard and the budget). What is added here
# is what is shown between the tools, and `execution_metadata` at the end.
# --------------------------------------------------------------------------------------


_STOPPED = Ending("cancelled")


def hides_thoughts(call: CheckedCall) -> bool:
    """Say whether an agent answers that shows nothing but its answer."""
    agent = call.agent
    return agent is not None and not agent.parameters.emit_intermediate_thoughts


class IntermediateTexts:
    """Decides what is shown of the texts of an agent.

    The answer is the text of the round that calls no tool. If the others are not shown,
    text that may become one of them is held back until that is known: a model that names
    the phase of its messages says it at their beginning, with others a call tells. What
    is hidden is sent to the model again.

    Of the current round, `_may_call` says whether the model may call tools,
    `_has_called` whether it has, and `_has_answer` whether a message is known to be the
    answer. `_hidden` are the hidden messages of the whole run.
    """

    def __init__(self, *, are_shown: bool) -> None:
        """Start before the first round."""
        self._are_shown = are_shown
        self._may_call = False
        self._has_called = False
        self._has_answer = False
        self._held: dict[int, list[RunEvent]] = {}
        """The events of each message that is held back, by its index."""
        self._hidden: list[Item] = []

    def show(self, event: RunEvent | RoundEvent) -> Iterator[RunEvent]:
        """Yield what is shown of an event; rounds themselves are not."""
        match event:
            case RoundStarted():
                self._may_call = event.may_call
                self._has_called = False
                self._has_answer = False
            case RoundDone():
                return
            case _ if self._are_shown:
                yield event
            case ItemAdded() if is_call(event.item):
                self._has_called = True
                yield from self._hide(self._held)
                yield event
            case ItemAdded() if event.item.get("phase") == "final_answer":
                self._has_answer = True
                yield from self._hide(self._held)
                yield event
            case ResponseDone():
                yield from self._release()
                yield event
            case RunDone():
                yield from self._release()
                yield event._replace(output=self._shown_items(event.output))
            case _:
                is_held = self._hold(event)
                if not is_held:
                    yield event

    def _hold(self, event: RunEvent) -> bool:
        """Hold an event back if it belongs to a message that may be hidden.

        Returns whether it is held.
        """
        if not isinstance(event, ItemEvent):
            return False
        begins = isinstance(event, ItemAdded) and item_type(event.item) == "message"
        if begins and self._may_call:
            self._held[event.output_index] = []
        if event.output_index not in self._held:
            return False
        self._held[event.output_index].append(event)
        return True

    def _release(self) -> Iterator[RunEvent]:
        """Yield what is left at the end of a response.

        Commentary is the answer only if there is no other.
        """
        for events in self._held.values():
            if not _is_commentary_message(events):
                self._has_answer = True
        for index, events in list(self._held.items()):
            is_step = _is_commentary_message(events) and self._has_answer
            if self._has_called or is_step:
                yield from self._hide([index])
            else:
                yield from events
        self._held = {}

    def _hide(self, indexes: Iterable[int]) -> Iterator[RunEvent]:
        """Yield the messages at `indexes` as hidden ones, if they are complete."""
        for index in list(indexes):  # a copy: hidden messages leave `_held`
            last = self._held[index][-1]
            if isinstance(last, ItemDone):
                del self._held[index]
                self._hidden.append(last.item)
                yield HiddenMessage(index, last.item)

    def _shown_items(self, output: Sequence[Item]) -> tuple[Item, ...]:
        """Return the output of a run without what is hidden."""
        hidden = {id(item) for item in self._hidden}
        return tuple(item for item in output if id(item) not in hidden)


def _is_commentary_message(events: Sequence[RunEvent]) -> bool:
    """Say whether the events are those of commentary."""
    first = events[0]
    return isinstance(first, ItemAdded) and is_commentary(first.item)


async def run_agent(
    prepared: PreparedRequest,
    toolset: Toolset,
    limits: Limits,
    connections: Connections,
) -> RunEvents:
    """Run round after round; ends with exactly one RunDone, which says what they took.

    Of an answer that is stopped the log and the page are told, too.
    """
    spending = Spending(toolset.budget)
    attempts = Attempts(prepared.call.endpoint, connections, limits)
    rounds = run_rounds(
        prepared.request,
        MergingProvider(attempts),
        toolset,
        spending,
    )
    texts = IntermediateTexts(are_shown=not hides_thoughts(prepared.call))
    has_ended = False
    try:
        async with aclosing(_shown_events(rounds, texts)) as events:
            async for event in events:
                if isinstance(event, RunDone):
                    has_ended = True
                    yield event._replace(work=_work(spending))
                else:
                    yield event
    finally:
        if not has_ended:
            _report_stop(prepared, spending, connections)


async def _shown_events(rounds: RoundEvents, texts: IntermediateTexts) -> RunEvents:
    """Yield what people see of the rounds."""
    async with aclosing(rounds) as events:
        async for event in events:
            for shown in texts.show(event):
                yield shown


def _work(spending: Spending) -> RunWork:
    return RunWork(spending.rounds, spending.calls, spending.seconds)


def _report_stop(
    prepared: PreparedRequest, spending: Spending, connections: Connections
) -> None:
    """Tell the log and the page what an answer took that is stopped.

    Nothing is awaited here, because the run is being closed.
    """
    work = _work(spending)
    ended = RunDone(
        _STOPPED,
        usage=spending.usage,
        usages=tuple(spending.usages),
        work=work,
    )
    call = prepared.call
    metadata = log_metadata(prepared, ended, work)
    if not call.config.shows_cost:
        metadata = metadata._replace(price=0.0)
    emit = page_emitter(call.caller, call.host)
    if emit:
        chunk = closing_chunk(metadata.describe(), metadata.wire())
        connections.do_later(emit(chunk["event"]))


# --------------------------------------------------------------------------------------
# owui_manifold.run.silence
#
# Status lines that apply only while an answer is awaited: a silence, a new attempt.
#
# The line about a silent server goes to the page directly: during a silence the stream has
# no event to yield. One timer serves a whole answer, however often the server speaks.
# --------------------------------------------------------------------------------------


_FIRST_SECONDS = 20.0
_FACTOR = 3
"""Each further line comes after a silence three times as long as the one before."""
_NEVER = float("inf")


_SILENT = "The server has been silent for {}; the model may still be thinking."
_RESPONDED = "The server responded"


class WaitingLines:
    """Shows on the page what it waits for, and that the wait is over."""

    def __init__(self, emit: EventEmitter | None, connections: Connections) -> None:
        """Wait for nothing yet; without `emit` there is no page."""
        self._emit = emit
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._since = _NEVER
        self._due = _FIRST_SECONDS
        self._timer: asyncio.TimerHandle | None = None
        self._is_shown = False
        self._has_responded = False
        self._has_stored_line = False

    def set_waiting(self, is_waiting: bool) -> None:
        """Note whether the server is awaited from now on."""
        self._since = self._loop.time() if is_waiting else _NEVER
        self._due = _FIRST_SECONDS
        if self._timer is None:
            self._timer = self._loop.call_later(_FIRST_SECONDS, self._look)

    def _look(self) -> None:
        """Show a line if the silence is long enough; look again later."""
        silent = max(0.0, self._loop.time() - self._since)
        if silent >= self._due:
            minutes = int(self._due // 60)
            length = f"{minutes} min" if minutes else f"{self._due:.0f} s"
            self._show(_SILENT.format(length))
            self._due *= _FACTOR
        wait = max(1.0, self._due - silent)
        self._timer = self._loop.call_later(wait, self._look)

    def _show(self, message: str) -> None:
        """Send a line to the page; an empty one hides the last."""
        self._is_shown = bool(message)
        if self._emit:
            event = status_chunk(message)["event"]
            self._connections.do_later(self._emit(event))

    def note(self, event: RunEvent) -> list[Status]:
        """Return the line that replaces the last one, if `event` ends its wait.

        The page leaves out the text of a hidden line, but draws its bullet in the opened
        history (StatusHistory of 0.12.4). So a line is hidden only where none follows.
        """
        if isinstance(event, Status) and not event.trial:
            self._is_shown = True
            self._has_stored_line = True
            return []
        if isinstance(event, RunDone):
            return self._note_end(event)
        if not self._is_shown:
            return []
        self._is_shown = False
        self._has_responded = True
        return [Status(_RESPONDED, is_note=False)]

    def _note_end(self, end: RunDone) -> list[Status]:
        """Return what hides the lines of a failure that has no last line."""
        was_shown = self._is_shown or self._has_responded
        self._is_shown = False
        if was_shown and end.ending.is_failure and not self._has_stored_line:
            return [Status("")]
        return []

    async def aclose(self) -> None:
        """Hide what is still shown, as after a stop."""
        self._since = _NEVER
        if self._timer:
            self._timer.cancel()
        if self._is_shown:
            self._show("")


# --------------------------------------------------------------------------------------
# owui_manifold.run.spending
#
# What the administration's filter gets to know of each run: events and usage.
# --------------------------------------------------------------------------------------


def check_limits(prepared: PreparedRequest) -> None:
    """Raise InvalidRequest if a limit forbids the request.

    Limits count the pro mode and research as models of their own.
    """
    call = prepared.call
    account = call.account
    request = prepared.request
    if account:
        is_pro = (request.reasoning or {}).get("mode") == "pro"
        model = f"{request.model}-pro" if is_pro else request.model
        if call.model.research and not call.caller.task:
            model = f"{model}-research"
        has_price = cost_of_responses(prepared, [Usage()], ()) is not None
        refusal = account.limits.refusal(model, has_price)
        if refusal:
            raise InvalidRequest(refusal)


def counted_run(
    prepared: PreparedRequest, limits: Limits, connections: Connections
) -> RunEvents:
    """Return the events of a run; with an account it is counted and observed."""
    request = prepared.request
    endpoint = prepared.call.endpoint
    account = prepared.call.account
    if account is None:
        return _run(prepared, limits, connections)
    counts = _RunCounts(prepared, account)
    events = _run(prepared, limits._replace(spent=counts.add), connections)
    events = counts.watch(events)
    return account.observe_run(events, request.model, endpoint.host, event_words)


def _run(
    prepared: PreparedRequest, limits: Limits, connections: Connections
) -> RunEvents:
    """Return the events of a run: of an agent, or of a plain model."""
    call = prepared.call
    toolset = prepared.toolset
    if call.agent and toolset:
        return run_agent(prepared, toolset, limits, connections)
    return run(prepared.request, call.endpoint, connections, limits, toolset)


def event_words(event: RunEvent) -> EventWords:
    """Return what the filter gets to know of an event."""
    match event:
        case TextDelta(kind="text" | "refusal"):
            return EventWords("text")
        case Status(trial=trial):
            return EventWords("recovery" if trial else "retry")
        case RunDone(ending, trace=trace):
            return EventWords("end", ending.kind, ending.code, trace.model)
    return EventWords()


_CHARACTERS_PER_TOKEN = 4
"""About so many, in English."""


class _RunCounts:
    """Counts the responses of a run.

    The API reports no usage of a response that is stopped, so it is estimated from the
    texts; hidden reasoning is not known.
    """

    def __init__(self, prepared: PreparedRequest, account: CallAccount) -> None:
        self._prepared = prepared
        self._account = account
        self._counted = 0
        """Responses whose usage was counted."""
        self._containers = set[str]()
        """The ids of the containers of code that were counted."""
        self._characters: int | None = 0
        """The text received of the current response; None between two responses."""

    def add(self, usages: Sequence[Usage], output: Sequence[Item] = ()) -> str:
        """Count the responses that are new; return why the run ends, or nothing."""
        prepared = self._prepared
        new = usages[self._counted :]
        self._counted = len(usages)
        self._characters = None
        total = reduce(add_usage, new, None) or Usage()
        counts = ResponseCounts(
            requests=len(new),
            input=total.input,
            cached=total.cached,
            output=total.output,
        )
        cost = cost_of_responses(prepared, new, self._unpaid(output))
        return self._account.count_responses(prepared.request.model, counts, cost)

    def _unpaid(self, output: Sequence[Item]) -> list[Item]:
        """Return the output without code in a container that was counted before."""
        unpaid = [i for i in output if i.get("container_id") not in self._containers]
        self._containers.update(container_ids(unpaid))
        return unpaid

    async def watch(self, events: RunEvents) -> RunEvents:
        """Yield the events; count a response that is stopped before its end."""
        try:
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, TextDelta):
                        self._characters = (self._characters or 0) + len(event.text)
                    yield event
        finally:
            if self._characters is not None:
                self._add_stopped(self._characters)

    def _add_stopped(self, received: int) -> None:
        """Count a response that was stopped after this many characters."""
        items = self._prepared.request.input
        sent = sum(len(message_text(item)) for item in items)
        estimate = Usage(
            input=sent // _CHARACTERS_PER_TOKEN,
            output=received // _CHARACTERS_PER_TOKEN,
        )
        self._counted = 0  # `add` expects the usages of a whole run
        self.add([estimate])


# --------------------------------------------------------------------------------------
# owui_manifold.run.uploads
#
# Uploads the files of a chat for its code, before the request is sent.
# --------------------------------------------------------------------------------------


_NOT_COPIED = "{} could not be copied to Python. Turn off Python for this message. {}"
_NO_FILES = (
    "This API key cannot upload files for Python, or its server takes none. Send the "
    "message again: Open WebUI then reads {}."
)
_NO_FILES_STATUSES = (401, 403, 404, 405, 501)
"""A key can lack the permission (scope `api.files.write`), a gateway the address."""


class _ChatFile(NamedTuple):
    """A file that the code of a request gets."""

    file: PythonFile
    key: UploadKey
    known_id: str
    """The API's id of an earlier upload; empty if the file has to be uploaded."""


class ChatUploads:
    """The files of one request that its code gets; each is uploaded once a day."""

    def __init__(self, prepared: PreparedRequest, connections: Connections) -> None:
        """Look up which files were uploaded before; upload nothing yet."""
        self._prepared = prepared
        self._connections = connections
        self._memory = prepared.call.capabilities.uploads
        self._files: list[_ChatFile] = []
        for file in prepared.python_files:
            key = _upload_key(file, prepared.call)
            self._files.append(_ChatFile(file, key, self._memory.find(key)))

    def status_line(self) -> str:
        """Return what is shown while files are uploaded; empty if all of them are."""
        new = [file for file in self._files if not file.known_id]
        return f"Copying {plural(len(new), 'file')} to Python" if new else ""

    async def request_with_files(self) -> PreparedRequest:
        """Return the request with the uploaded files in its container.

        Raises InvalidRequest for a file that cannot be read or uploaded.
        """
        ids: list[str] = []
        for chat_file in self._files:
            file_id = chat_file.known_id
            if not file_id:
                file_id = await self._upload(chat_file.file, chat_file.key)
            if file_id:
                ids.append(file_id)
        request = with_container_files(self._prepared.request, ids)
        return self._prepared._replace(request=request)

    def forget(self) -> None:
        """Let the next request upload the files again.

        A request that failed may have named a file that is gone.
        """
        for chat_file in self._files:
            self._memory.forget(chat_file.key)

    async def _upload(self, file: PythonFile, key: UploadKey) -> str:
        """Return the id of a file that was just uploaded; empty for an empty file.

        The API refuses an empty one.
        """
        content = await read_file(file.stored, bytes, MAX_FILE_BYTES + 1)
        if content is None:
            raise InvalidRequest(GONE_FILE.format(file.name))
        if len(content) > MAX_FILE_BYTES:
            raise InvalidRequest(_NOT_COPIED.format(file.name, "It is too large."))
        if not content:
            return ""
        endpoint = self._prepared.call.endpoint
        deadlines = Deadlines(self._prepared.limits.timeouts)
        upload = Upload(file.name, content)
        try:
            file_id = await upload_file(endpoint, self._connections, upload, deadlines)
        except ResponsesError as error:
            if error.status in _NO_FILES_STATUSES:
                refused = files_refused(endpoint.account())
                self._prepared.call.capabilities.first_time(refused)
                raise InvalidRequest(_NO_FILES.format(file.name)) from None
            sentence = _NOT_COPIED.format(file.name, error)
            raise InvalidRequest(sentence, error.fault) from None
        self._memory.add(key, file_id)
        return file_id


def _upload_key(file: PythonFile, call: CheckedCall) -> UploadKey:
    """Return what names a file of a chat among all uploads."""
    return UploadKey(
        account=call.endpoint.account(),
        user_id=call.caller.user_id,
        chat_id=call.caller.chat_id,
        file_id=file.file_id,
        path=file.stored.path,
        size=file.stored.size,
        name=file.name,
    )


# --------------------------------------------------------------------------------------
# owui_manifold.store.writers
#
# Where the records of an answer are written: the chat's row, or the answer itself.
# --------------------------------------------------------------------------------------


_FEW = 32
"""Up to so many records of one message, each is written at once; then in groups.

Each write holds all records of the message: writing each of a thousand at once would
write half a million.
"""
_LAST_TRIES = 3
"""Attempts at the end of an answer; in each the host waits five seconds for SQLite."""
_NOT_WRITTEN = (
    "Open WebUI could not store this chat's hidden data: later turns continue without "
    "it. Its database may be locked or full."
)


class StoredAnswer(NamedTuple):
    """The answer that records belong to."""

    chat_id: str
    message_id: str
    chat: StoredChat
    keys: ChatKeys
    sent: SentContext | None = None
    """What its run sends beside the chat; None keeps what an earlier run sent."""

    def kept_sent(self) -> SentContext | None:
        """Return what is to be stored as sent; None for nothing."""
        if self.sent is None:
            return self.chat.sent.get(self.message_id)
        if self.sent == SentContext():
            return None
        return self.sent

    def changes_sent(self) -> bool:
        """Say whether what is stored as sent has to be written."""
        if self.sent is None:
            return False
        return self.message_id in self.chat.sent or self.sent != SentContext()

    def with_sent(self, value: JsonObject) -> dict[str, Any]:
        """Return the value of the answer's key, with what its run sends."""
        sent = self.kept_sent()
        sealed = self.keys.seal(sent.wire(), self.message_id) if sent else ""
        return add_sent_context(value, sealed)


class RecordWriter(Protocol):
    """Stores the records of one answer; what it returns has to be shown."""

    carrier: Carrier

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Take a record; it may replace one with the same id."""

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Store what made this chat acceptable to the server, for later turns."""

    async def finish(self) -> list[StoredRecord]:
        """Store what is not stored yet."""


class RowWriter:
    """Writes into the key of the answer's message in the chat's row.

    The first write also cleans up the values of older messages, `_stale_values`.
    `_is_behind` says whether something is not stored yet, `_due` how many records the
    answer must have for the next write, and `_writing` is the last write that was begun
    in the background; it waits for those before it.
    """

    carrier: Carrier = "markers"

    def __init__(self, answer: StoredAnswer, log: RunLog) -> None:
        """Begin with the records that earlier runs of the answer stored."""
        self._answer = answer
        self._log = log
        self._key = message_key(answer.message_id)
        self._records = {
            ulid: record
            for ulid, record in answer.chat.records.items()
            if record.message_id == answer.message_id
        }
        self._repairs = answer.chat.answer_repairs
        self._stale_values = answer.chat.row_values
        self._is_behind = answer.changes_sent()
        self._writing: asyncio.Task[None] | None = None
        self._due = 0

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Store a record in the background; its marker in the text says where it belongs.

        The text does not wait for it, and a stop does not end it. `finish` waits for it,
        and writes what could not be stored because of an error.
        """
        self._writing = asyncio.create_task(
            self._write_after(self._writing, new.record)
        )
        return []

    async def _write_after(
        self, earlier: asyncio.Task[None] | None, record: Record
    ) -> None:
        """Store a record once the `earlier` ones are; `finish` repeats what fails."""
        if earlier:
            await earlier
        with suppress(Exception):
            await self.write(record)

    async def write(self, record: Record) -> None:
        """Store `record`; if the host refuses it, it waits for the next write.

        Its marker is shown anyway, because later it would have another place. A marker
        that names nothing in the end is removed when it is read. As each write has all
        records of the message, some of many wait, too.
        """
        self._records[record.ulid] = record
        self._is_behind = True
        if len(self._records) >= self._due:
            await self._write()

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Store a repair at once, with the records."""
        await self._settle()
        self._repairs = _with_newest(self._repairs, repair)
        await self._write()
        return []

    async def finish(self) -> list[StoredRecord]:
        """Store everything that is not stored yet; the log says if that failed.

        It is tried several times: another process may hold SQLite's lock for longer
        than the host waits, and the answer has been shown by now.
        """
        await self._settle()
        for _ in range(_LAST_TRIES):
            if not self._is_behind:
                return []
            await self._write()
        if self._is_behind:
            self._log.warn(_NOT_WRITTEN)
        return []

    async def _settle(self) -> None:
        """Wait for the writes that have begun."""
        if self._writing:
            await asyncio.shield(self._writing)

    async def _write(self) -> None:
        """Write the whole value of the answer, and note whether the host took it."""
        self._due = len(self._records) + len(self._records) // _FEW
        values = await run_work(self._answer.chat.size, self._values)
        self._is_behind = not await write_chat_keys(self._answer.chat_id, values)
        if not self._is_behind:
            self._stale_values = {}

    def _values(self) -> dict[str, Any]:
        """Return the keys to write: the answer's, and those that are cleaned up."""
        sign = self._answer.keys.sign
        value = write_records(self._records, sign, self._repairs)
        value = self._answer.with_sent(value)
        characters_left = MAX_STORED_KB * 1024 - stored_size(value)
        messages = self._answer.chat.messages
        cleaned = prune(self._stale_values, messages, self._key, characters_left)
        return {**cleaned, self._key: value}


class OutputWriter:
    """Writes no row: records go into the answer's own output.

    `_is_behind` says whether what was sent still has to be stored.
    """

    carrier: Carrier = "output"

    def __init__(self, answer: StoredAnswer) -> None:
        """Begin with the repairs that earlier runs of the answer stored."""
        self._answer = answer
        self._repairs = answer.chat.answer_repairs
        self._is_behind = answer.changes_sent()
        self._context_record_id = ""
        """The record that holds what was sent."""

    def add(self, new: NewRecord) -> list[StoredRecord]:
        """Return the item of a record, at the place of the text that follows."""
        ulid = new.record.ulid
        return [self._item(ulid, {ulid: new.record}, new.output_index)]

    async def add_repair(self, repair: ChatRepair) -> list[StoredRecord]:
        """Return an item that holds the repairs."""
        self._repairs = _with_newest(self._repairs, repair)
        return [self._item(new_ulid(), {})]

    async def finish(self) -> list[StoredRecord]:
        """Return an item of what was sent, if no record holds it."""
        return [self._item(new_ulid(), {})] if self._is_behind else []

    def _item(
        self, ulid: str, records: Mapping[str, Record], index: int | None = None
    ) -> StoredRecord:
        """Return the item that holds `records`, the repairs, and once what was sent.

        `index` is that of the output item in front of which it stands; None means the
        end of the answer.
        """
        value = write_records(records, self._answer.keys.sign, self._repairs)
        # The record that holds what was sent may be written again, and keeps it.
        if self._is_behind or ulid == self._context_record_id:
            message_id = self._answer.message_id
            value = {**self._answer.with_sent(value), "message_id": message_id}
            self._is_behind = False
            self._context_record_id = ulid
        return StoredRecord(record_item(ulid, value), index)


def _with_newest(
    repairs: tuple[ChatRepair, ...], newest: ChatRepair
) -> tuple[ChatRepair, ...]:
    """Return `repairs` with one more, each once, without the oldest of too many."""
    if newest in repairs:
        return repairs
    return (*repairs, newest)[-MAX_CHAT_REPAIRS:]


# --------------------------------------------------------------------------------------
# owui_manifold.store.answer_records
#
# The records of one answer: its events go in, what is shown comes out.
# --------------------------------------------------------------------------------------


class AnswerRecords:
    """Records one answer, and hands its records to a writer.

    Without a writer the chat has no row: what is recorded travels in the events.
    Without a recorder nothing is.
    """

    def __init__(self, recorder: Recorder | None, writer: RecordWriter | None) -> None:
        """Start before the first event."""
        self._recorder = recorder
        self._writer = writer

    async def take(self, event: CitedEvent) -> list[AnswerEvent]:
        """Return what is shown for an event: the event too, but for the run's end.

        Records follow the text that they belong to: nobody waits for them. At the end
        of the run all of them are stored, as far as the host allows it.
        """
        shown = list[AnswerEvent]()
        stored = list[StoredRecord]()
        recorded_events = self._recorder.feed(event) if self._recorder else (event,)
        for recorded in recorded_events:
            if not isinstance(recorded, NewRecord | RunDone):
                shown.append(recorded)
            elif isinstance(recorded, NewRecord) and self._writer:
                stored += self._writer.add(recorded)
        if isinstance(event, RunDone) and self._writer:
            stored += await self._writer.finish()
        return [*shown, *stored]

    async def add_repair(self, repair: ChatRepair) -> Sequence[StoredRecord]:
        """Return what is shown for a repair that later turns of the chat need."""
        return await self._writer.add_repair(repair) if self._writer else ()


# --------------------------------------------------------------------------------------
# owui_manifold.store.artifacts
#
# Stores the images and files of a run in the host before they are shown.
#
# An event goes in; the same event with a `card` comes out.
# --------------------------------------------------------------------------------------


_MAX_FETCHED = 32 * 1024**2
"""Bytes of one file of a container; it is in memory until the host has stored it."""
_MAX_FILES = 20
"""Files of one text."""

_NOT_STORED = "{} could not be stored in Open WebUI, for example because of its size."
_GONE = "{} could not be fetched: the container that held it has expired."
_TOO_BIG = f"{{}} was not fetched: it is larger than {_MAX_FETCHED // 1024**2} MB."
_NOT_FETCHED = "{} could not be fetched from where the code ran."


class ArtifactStore:
    """Stores the pictures and files of one run, each content once."""

    def __init__(
        self, call: CheckedCall, connections: Connections, patience: Timeouts
    ) -> None:
        """Store files for the current user, at the message that is being written.

        `patience` holds for fetching the files of one text from a container.
        """
        self._call = call
        self._connections = connections
        self._patience = patience
        self._stored: dict[str, Item | None] = {}
        """The entries of stored files by the digests of their contents; None for what
        the host refused."""

    async def stored(self, event: RunEvent) -> RunEvent | None:
        """Return `event` with what was stored for it; None for what is not shown.

        Partial images replace each other only in saved chats; in temporary ones the
        page would show all of them.
        """
        if isinstance(event, PartialImage):
            return event if self._call.caller.may_have_row else None
        if not isinstance(event, ItemDone) or self._call.host.request is None:
            return event
        card = await self._card(event.item)
        return event._replace(card=card) if card else event

    async def _card(self, item: Item) -> JsonObject:
        """Return what to show with an item.

        Plain clients get images inside the answer, not on a card, and cited files only
        in a stream, where their addresses stand below the text.
        """
        caller = self._call.caller
        host_reads = caller.host_reads
        if is_image_call(item) and host_reads and item.get("result"):
            return await self._pictures([image_url(item)])
        if is_code(item) and host_reads:
            outputs = content_parts(item.get("outputs"))
            return await self._pictures(str(part.get("url")) for part in outputs)
        cited = file_citations(item) if host_reads or caller.streams else []
        if item_type(item) == "message" and cited:
            return await self._cited(cited[:_MAX_FILES], message_text(item))
        return {}

    async def _pictures(self, urls: Iterable[str]) -> JsonObject:
        """Return the card of images that came whole, as data URLs."""
        files: list[Item] = []
        notes: list[str] = []
        for url in urls:
            kind, content = await asyncio.to_thread(_read_data_url, url)
            if content:
                stored = await self._store(image_name(kind), content)
                if stored:
                    files.append(stored)
                else:
                    notes.append(_NOT_STORED.format("The image"))
        return _filled_card(files=files, notes=notes)

    async def _cited(self, cited: Iterable[Item], text: str) -> JsonObject:
        """Return the card of a text that names files in a container."""
        files: list[Item] = []
        notes: list[str] = []
        links: dict[str, str] = {}
        deadlines = Deadlines(self._patience)
        shown_ids = {file["id"] for file in self._stored.values() if file}
        for citation in cited:
            name = _file_name(citation)
            stored = await self._fetched(citation, name, deadlines)
            addresses = container_addresses(text, name)
            if isinstance(stored, str):
                notes.append(f"*{stored}*")
                continue
            links |= {address: str(stored["url"]) for address in addresses}
            is_image = stored["type"] == "image"
            if is_image and stored["id"] not in shown_ids:
                files.append(stored)
                shown_ids.add(stored["id"])
            elif not is_image and not addresses:
                notes.append(f"[{name}]({stored['url']})")
        return _filled_card(files=files, notes=notes, links=links)

    async def _fetched(
        self, citation: Item, name: str, deadlines: Deadlines
    ) -> Item | str:
        """Return a stored file of a container, or why there is none."""
        container_and_file = (
            str(citation.get("container_id")),
            str(citation.get("file_id")),
        )
        try:
            content = await container_file(
                self._call.endpoint,
                self._connections,
                container_and_file,
                _MAX_FETCHED,
                deadlines,
            )
        except AnswerTooLarge:
            return _TOO_BIG.format(name)
        except ResponsesError as error:
            self._call.log.warn(f"no container file: {error}")
            return (_GONE if error.status == 404 else _NOT_FETCHED).format(name)
        stored = await self._store(stored_name(name), content)
        return stored or _NOT_STORED.format(name)

    async def _store(self, name: StoredName, content: bytes) -> Item | None:
        """Store a file; the same content is stored and shown once in a run.

        It belongs to the person who asked. If the host names nobody, or somebody whom
        it no longer knows, nothing is stored: there is no other owner.
        """
        digest = (await asyncio.to_thread(hashlib.sha256, content)).hexdigest()
        if digest not in self._stored:
            caller = self._call.caller
            host = self._call.host
            message = {"chat_id": caller.chat_id, "message_id": caller.message_id}
            saved = message if caller.may_have_row else {}
            user = await user_model(caller.user_id) if caller.user_id else None
            if user is None:
                return None
            file = NewFile(name.name, name.media_type, content)
            self._stored[digest] = await store_file(host.request, file, saved, user)
        return self._stored[digest]


def _file_name(citation: Item) -> str:
    """Return the name of a cited file, without a directory and at most 200 characters.

    `rpartition`, because `pathlib` reads each part of a path.
    """
    path = str(citation.get("filename") or "")
    return shorten_name(path.rpartition("/")[2]) or "file"


def _filled_card(**parts: object) -> JsonObject:
    """Return a card without its empty parts."""
    return {name: value for name, value in parts.items() if value}


def _read_data_url(url: str) -> tuple[str, bytes]:
    """Return the type and the bytes of a picture; no bytes for any other address."""
    head, _, encoded = url.partition(";base64,")
    kind = head.partition("data:")[2]
    with suppress(ValueError):
        if kind.startswith("image/"):
            return kind, base64.b64decode(encoded)
    return kind, b""


# --------------------------------------------------------------------------------------
# owui_manifold.run.answer
#
# Runs a prepared request and yields its events, with the markers of stored items.
# --------------------------------------------------------------------------------------


async def answer_events(
    prepared: PreparedRequest, connections: Connections
) -> AsyncGenerator[AnswerEvent, None]:
    """Run a request and yield its events.

    For Open WebUI they have the shown texts, with their markers and records; other
    clients get the model's texts. What a marker names is stored beside the text, and at
    the latest before the end. Repairs are remembered when it is known that they helped;
    their reason is for the log alone.
    """
    check_limits(prepared)
    uploads = ChatUploads(prepared, connections)
    copying = uploads.status_line()
    if copying:
        yield Status(copying)
    prepared = await uploads.request_with_files()
    call = prepared.call
    answer = _Answer(prepared, connections)
    report_request(prepared)
    if prepared.reason:
        yield Status(prepared.reason)
    lines = WaitingLines(page_emitter(call.caller, call.host), connections)
    limits = prepared.limits._replace(set_waiting=lines.set_waiting)
    events = counted_run(prepared, limits, connections)
    async with aclosing(events), aclosing(lines):
        async for event in events:
            for line in lines.note(event):
                yield line
            for shown in await answer.shown(event):
                yield shown
            if isinstance(event, RunDone):
                end = _end_answer(prepared, answer.whole(event), uploads)
                async with aclosing(end) as last_events:
                    async for last_event in last_events:
                        yield last_event


async def _end_answer(
    prepared: PreparedRequest, ended: RunDone, uploads: ChatUploads
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the end of a run with its report, and the notices about it."""
    if ended.ending.is_failure:
        uploads.forget()
    refusal = refusal_notice(prepared.call)
    if refusal:
        yield Status(refusal)
    yield report_end(prepared, ended)
    for notice in await notices_of(prepared):
        yield Status(notice)


class _Answer:
    """What becomes of the events of one run, and what is stored of them."""

    def __init__(self, prepared: PreparedRequest, connections: Connections) -> None:
        call = prepared.call
        self._prepared = prepared
        self._trials = RunTrials()
        # Nobody reads the stream while a file is fetched: it takes half of its patience.
        patience = Timeouts(first_event=prepared.limits.timeouts.idle / 2)
        self._artifacts = ArtifactStore(call, connections, patience)
        self._citations = Citations(source_keys(call.host.metadata.get("sources")))
        self._thoughts: ShownThoughts | None = None
        if call.agent:
            self._thoughts = ShownThoughts(are_shown=not hides_thoughts(call))
        self._records = _answer_records(prepared)

    async def shown(self, event: RunEvent) -> list[AnswerEvent]:
        """Return what is shown for an event: the event too, but for the run's end."""
        repaired = await self._remember(self._trials.note(event))
        stored = await self._artifacts.stored(self._without_reason(event))
        shown = list[AnswerEvent]()
        if stored is not None:
            for cited in self._cited(stored):
                shown += await self._records.take(cited)
        if self._thoughts:
            shown = [self._thoughts.finish(each) for each in shown]
        return [*shown, *repaired]

    def whole(self, ended: RunDone) -> RunDone:
        """Return the end of the run with its output as it is shown."""
        return self._thoughts.whole(ended) if self._thoughts else ended

    def _cited(self, event: RunEvent) -> Iterable[CitedEvent]:
        """Return an event with its sources; plain clients get the model's own texts."""
        cited: Iterable[CitedEvent] = (event,)
        if self._prepared.call.caller.host_reads:
            cited = self._citations.feed(event)
        if self._thoughts is None:
            return cited
        return chain.from_iterable(map(self._thoughts.show, cited))

    def _without_reason(self, event: RunEvent) -> RunEvent:
        """Log what happens before an answer; return the event as people see it."""
        if not isinstance(event, Status):
            return event
        call = self._prepared.call
        reason = server_message(call.log, event.reason)
        call.log.warn(f"{event.sentence} {reason}".strip())
        return Status(event.sentence, is_retry=event.is_retry)

    async def _remember(self, confirmed: Sequence[Trial]) -> list[StoredRecord]:
        """Remember what made a request acceptable: for its chat, or for its server.

        Returns what is shown for those of the chat.
        """
        prepared = self._prepared
        call = prepared.call
        scope = repair_scope(call, prepared.request.model)
        has_row = prepared.stored is not None
        shown = list[StoredRecord]()
        for trial in confirmed:
            repair = trial.repair
            if has_row and isinstance(repair, ChatRepair) and repair.is_about_chat:
                if trial.is_lasting:
                    shown += await self._records.add_repair(repair)
            else:
                configured = partial(is_as_configured, prepared)
                call.capabilities.repairs.learn(scope, trial, configured)
        return shown


def _answer_records(prepared: PreparedRequest) -> AnswerRecords:
    """Return what records an answer; where nothing can be stored, nothing is."""
    call = prepared.call
    caller = call.caller
    writer = _record_writer(prepared)
    remembers = call.valves.remembers_reasoning()
    if not writer and not (remembers and caller.host_reads and not caller.task):
        return AnswerRecords(None, None)
    scope = RecordScope(
        caller.host_model,
        caller.message_id,
        prepared.origin,
        remembers,
        cites=prepared.cites or call.agent is not None,
        carrier=writer.carrier if writer else "details",
        sign=prepared.keys.sign if prepared.keys else None,
    )
    return AnswerRecords(Recorder(scope, _new_record), writer)


def _record_writer(prepared: PreparedRequest) -> RecordWriter | None:
    """Return what writes the records of an answer; None if its chat has no row."""
    if prepared.stored is None or prepared.keys is None:
        return None
    call = prepared.call
    answer = StoredAnswer(
        chat_id=call.caller.chat_id,
        message_id=call.caller.message_id,
        chat=prepared.stored,
        keys=prepared.keys,
        sent=prepared.sent,
    )
    if call.valves.HISTORY_CARRIER == "output":
        return OutputWriter(answer)
    return RowWriter(answer, call.log)


def _new_record() -> tuple[str, int]:
    """Return the id of a new record, and the time in Unix seconds."""
    return new_ulid(), unix_seconds()


# --------------------------------------------------------------------------------------
# owui_manifold.run.setup_check
#
# What `/check` says about the set-up around the pipe: filters, rules, task models.
# --------------------------------------------------------------------------------------


_ADMINISTRATION_TITLE = "OpenAI Responses Administration"


def finding(what: str, works: str, complaint: str, advice: str = "") -> str:
    """Return the line about a piece of the set-up."""
    if not complaint:
        return f"- ✅ **{what}**: {works}"
    return f"- ❌ **{what}**: {complaint} {advice}".rstrip()


async def setup_lines(call: CheckedCall) -> list[str]:
    """Return what can keep users from their answers and no request shows."""
    valves = [*call.config.remote.complaints, *call.config.problems]
    valves += _agent_problems(call)
    lines = [finding("Valves", "All of them are valid.", " ".join(valves))]
    if call.account:
        rules = [problem for problem in call.account.limits.problems if problem]
        works = "The rules of USER_LIMITS_JSON are valid."
        lines.append(finding("Limits", works, " ".join(rules)))
    if call.host.request is None:
        return lines
    try:
        functions = await installed_functions()
        missing = await missing_task_models(call.host.request)
    except Exception as error:
        reason = f"Open WebUI did not say ({describe_exception(error)})."
        return [*lines, finding("Filters", "", reason)]
    works = "They have the same version as the pipe."
    lines.append(finding("Filters", works, " ".join(_filter_problems(functions))))
    if missing:
        names = ", ".join(missing)
        gone = f"Open WebUI has no {names}, so the models that clients name do tasks."
        advice = "Choose others in Open WebUI's settings."
        lines.append(finding("Open WebUI's task models", "", gone, advice))
    return lines


def _agent_problems(call: CheckedCall) -> list[str]:
    """Return why the agents that MODEL_ID lists do not answer."""
    problems: list[str] = []
    for name in comma_list(call.valves.MODEL_ID):
        agent = find_agent(name, call.config.agent, is_switched=False)
        if agent is None:
            continue
        try:
            check_agent_model(agent, call.resolve(name))
        except InvalidRequest as error:
            problems.append(str(error))
    return list(dict.fromkeys(problems))


def _filter_problems(functions: Sequence[InstalledFunction]) -> list[str]:
    """Return what is wrong with the functions that came with the pipe."""
    problems: list[str] = []
    versions = {function.version for function in functions}
    if len(versions) > 1:
        named = ", ".join(f"{f.title} {f.version}" for f in functions)
        problems.append(f"Their versions differ: {named}. Install one release.")
    for function in functions:
        if function.title != _ADMINISTRATION_TITLE:
            continue
        if function.id != ADMINISTRATION:
            problems.append(
                f"The id of {function.title} has to be {ADMINISTRATION}: no limits "
                "apply."
            )
        elif not function.is_active:
            problems.append(f"{function.title} is switched off: no limits apply.")
    return problems


# --------------------------------------------------------------------------------------
# owui_manifold.run.checkup
#
# The `/check` command: tests an administrator's setup and says what works.
#
# An administrator sends `/check` to any model of the pipe. The answer is written here; its
# findings come from small requests like those of a chat.
# --------------------------------------------------------------------------------------


_MIN_TOKENS = 16
"""The smallest `max_output_tokens` that OpenAI accepts."""
_MAX_SHOWN_REASONS = 9
_PING: Item = {
    "type": "message",
    "role": "user",
    "content": [{"type": "input_text", "text": "ping"}],
}

_VERIFY = "Verify the organization at OpenAI, or"
_TASK_ADVICE = "Until it does, the chat's own model writes titles and tags."
_UNLISTED = (
    "It is accepted, but not listed: {}. Allow them in the key's project, or change "
    "MODEL_ID."
)
_LOST = (
    "The API left some out since the last start: {}. Look for filters that change "
    "earlier messages, and set `stable_instructions` in EXPERT_JSON to `on`."
)


def _tool_advice(kind: str) -> str:
    """Return what to do about a kind of OpenAI's tools that is refused."""
    setting = TOOL_SETTINGS[kind]
    if setting.is_switch:
        return f"Allow it in the key's project, or turn off {setting.valve}."
    return f"Check {setting.valve}."


class _Feature(NamedTuple):
    """What a small request tests."""

    title: str
    works: str
    """The message if the request succeeds."""
    fields: Item
    """The fields of the request that use it."""
    advice: str
    """What an administrator can do if it fails."""


class _Diagnostics:
    """Tests one model of the pipe at its server, feature by feature.

    Nothing is retried: the failures are what an administrator wants to see. `_hosted`
    are the tools of OpenAI that a chat would get, `_listed` the ids of the models that
    MODEL_ID lists, each once, and `_dropped` counts the items that the API left out of
    requests since the start, by reason.
    """

    def __init__(
        self,
        call: CheckedCall,
        connections: Connections,
        endpoints: Sequence[EndpointCheck] = (),
    ) -> None:
        self._call = call
        self._endpoints = endpoints
        self._model = call.model
        self._hosted, _ = hosted_tools(call.config, self._model)
        self._endpoint = call.endpoint
        names = comma_list(call.valves.MODEL_ID)
        listed_ids = [call.resolve(name).id for name in names if name != "auto"]
        self._listed = dict.fromkeys(listed_ids)
        self._connections = connections
        self._dropped = call.capabilities.dropped
        self._limits = run_limits(call.config.expert, call.model)._replace(
            retries=RetryPolicy(0)
        )

    async def lines(self) -> AsyncGenerator[str, None]:
        """Yield the findings, one line each."""
        host = self._endpoint.host
        yield f"The setup of this pipe, tested with {self._model.name} at {host}:\n"
        for line in await setup_lines(self._call):
            yield line
        yield await self._models_line()
        complaint = await self._complaint()
        yield finding("A small request", "The model answers.", complaint)
        if complaint:
            return
        for feature in self._features():
            complaint = await self._complaint(**feature.fields)
            yield finding(feature.title, feature.works, complaint, feature.advice)
        async for line in self._endpoint_lines():
            yield line
        yield self._reasoning_line()

    def _features(self) -> Iterator[_Feature]:
        """Yield what a chat with this model would use."""
        yield _Feature(
            "Streaming",
            "Answers can be streamed.",
            {"stream": True},
            f"{_VERIFY} turn off ENABLE_STREAM.",
        )
        if self._model.facts.summary:
            yield _Feature(
                "Summaries",
                "Summaries of the reasoning can be shown.",
                {"reasoning": {"summary": "auto"}},
                f"{_VERIFY} set REASONING_SUMMARY to `disabled`.",
            )
        model_for_tasks = task_model(self._call)
        if model_for_tasks.id != self._model.id:
            yield _Feature(
                "TASK_MODEL",
                f"{model_for_tasks.name} answers.",
                {"model": model_for_tasks.id},
                _TASK_ADVICE,
            )
        for tool in self._hosted:
            kind = tool["type"]
            yield _Feature(
                tool.get("server_label") or kind,
                "The model can be given this tool.",
                {"tools": [tool], "tool_choice": "none"},
                _tool_advice(kind),
            )

    async def _endpoint_lines(self) -> AsyncGenerator[str, None]:
        """Yield what each entry of ENDPOINTS_JSON says to a small request."""
        for number, check in enumerate(self._endpoints, 1):
            what = f"Entry {number} of ENDPOINTS_JSON"
            if check.call is None:
                yield finding(what, "", check.problem)
                continue
            model = check.call.model.name
            works = f"{model} answers at {check.call.endpoint.host}."
            other = _Diagnostics(check.call, self._connections)
            yield finding(what, works, await other._complaint())

    def _reasoning_line(self) -> str:
        """Return what the API left out of earlier requests, by its reasons."""
        commonest = self._dropped.most_common(_MAX_SHOWN_REASONS)
        counts = ", ".join(f"{count} {reason}" for reason, count in commonest)
        complaint = _LOST.format(counts) if counts else ""
        return finding("Earlier reasoning", "The API left nothing out.", complaint)

    async def _models_line(self) -> str:
        """Return whether the key is accepted, and for which models."""
        try:
            usable = await fetch_models(self._endpoint, self._connections)
        except ResponsesError as error:
            what = "The list of models"
            # Other servers of this API need not have the endpoint.
            if error.status in (404, 405, 501):
                return finding(what, "This server lists no models.", "")
            complaint = self._endpoint.name_server(error_message(error, PIPE_SHELL))
            return f"- ⚠️ **{what}**: {complaint}"
        missing = ", ".join(name for name in self._listed if name not in usable)
        if missing:
            return f"- ⚠️ **The key**: {_UNLISTED.format(missing)}"
        return finding("The key", "It is accepted for all listed models.", "")

    async def _complaint(self, **fields: Any) -> str:
        """Return why a small request with these fields fails; empty if it succeeds.

        An answer that ends at the token limit has succeeded. A repair that a chat would
        make silently counts as a failure. Other servers refuse so low a limit, or fail
        when a call does not fit in it, so a second request has none.
        """
        complaint = await self._try(max_output_tokens=_MIN_TOKENS, **fields)
        if not complaint:
            return ""
        return await self._try(**fields)

    async def _try(self, **fields: Any) -> str:
        """Send one request; return why it fails, or the repair that it needed.

        Returns an empty text if it succeeds without a repair.
        """
        all_fields = {"model": self._model.id, "stream": False, **fields}
        request = ResponsesRequest(input=[_PING], **all_fields)
        repair = ""
        ended = RunDone(CUT)
        events = run(request, self._endpoint, self._connections, self._limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Status) and event.trial:
                    repair = event.sentence
                if isinstance(event, RunDone):
                    ended = event
        if ended.ending.kind in ("completed", "incomplete"):
            return repair
        return advised_ending(ended.ending, PIPE_SHELL).sentence


_CHECK = "/check"
_CHECK_TITLE = '{"title": "Setup check"}'
"""In the form that the host reads."""
_TASKS_ABOUT_ANSWERS = frozenset(
    {"title_generation", "tags_generation", "follow_up_generation"}
)


def is_check_command(call: CheckedCall) -> bool:
    """Say whether an administrator asks for a check; others talk to the model."""
    return call.caller.is_admin and last_user_text(call) == _CHECK


def command_task_text(call: CheckedCall) -> str | None:
    """Return what answers a task about the answer to a command; None for other tasks.

    Nobody pays for the title of a `/check` or `/usage`. Without a text the host takes
    the command as the title, and leaves out tags and follow-ups. The chat itself is in
    the host's `task_body`; the task's prompt quotes it, but anybody can write a quote.
    """
    if call.caller.task not in _TASKS_ABOUT_ANSWERS:
        return None
    rows = as_list(value_at(call.host.metadata, "task_body", "messages"))
    messages = [as_mapping(row) for row in rows]
    user_texts = [
        message.get("content") for message in messages if message.get("role") == "user"
    ]
    command = as_text(user_texts[-1]).strip() if user_texts else ""
    if command == _CHECK and call.caller.is_admin:
        is_title = call.caller.task == "title_generation"
        return _CHECK_TITLE if is_title else ""
    if call.account and call.account.limits.usage_answer(command):
        return ""
    return None


def last_user_text(call: CheckedCall) -> str:
    """Return the text of the message to answer; empty if that is not the user's."""
    last: JsonObject = call.messages[-1] if call.messages else {}
    return as_text(last.get("content")).strip() if last.get("role") == "user" else ""


def run_diagnostics(
    call: CheckedCall,
    connections: Connections,
    endpoints: Sequence[EndpointCheck] = (),
) -> AsyncGenerator[RunEvent, None]:
    """Return the findings of a check; raises InvalidRequest for unusable settings.

    `endpoints` are the entries of ENDPOINTS_JSON.
    """
    return stream_lines(_Diagnostics(call, connections, endpoints).lines())


async def stream_lines(
    lines: AsyncGenerator[str, None],
) -> AsyncGenerator[RunEvent, None]:
    """Yield lines as the text of an answer, as soon as each is there."""
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


# --------------------------------------------------------------------------------------
# owui_manifold.run.failover
#
# Answers a call at one of several endpoints, which the administration's filter has.
#
# If one fails before its answer begins, the next one is tried. A chat stays at the endpoint
# that can read its encrypted reasoning.
# --------------------------------------------------------------------------------------


async def answer_with_failover(
    prepared: PreparedRequest,
    endpoints: EndpointQueue,
    check: Callable[[], Awaitable[CheckedCall]],
    connections: Connections,
) -> AsyncGenerator[AnswerEvent, None]:
    """Yield the answer of the first endpoint that begins one; raises InvalidRequest.

    `prepared` is for the first of the `endpoints`; `check` returns the call for the one
    that the queue has chosen since.
    """
    origin = _last_origin(prepared)
    if origin and endpoints.return_to(origin.endpoint, origin.account):
        prepared = await build_chat_request(await check())
    while True:
        if origin:
            notice = endpoints.lost_reasoning_notice(origin.endpoint, origin.account)
            if notice:
                yield Status(notice)
        attempt = _Attempt(endpoints)
        answer = attempt.events(answer_events(prepared, connections))
        async with aclosing(answer) as events:
            async for event in events:
                yield event
        if not attempt.failure_notice:
            return
        yield Status(attempt.failure_notice)
        prepared = await build_chat_request(await check())


class _Attempt:
    """The answer of one endpoint, or its failure before the answer begins."""

    def __init__(self, endpoints: EndpointQueue) -> None:
        self._endpoints = endpoints
        self.failure_notice = ""
        """What to say before the next endpoint is asked; empty if this one answered."""

    async def events(
        self, answer: AsyncGenerator[AnswerEvent, None]
    ) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the events of an answer, but not the end of one that failed at once.

        Records wait for the next other event, so that those of a failure are not stored.
        A status line is shown at once, but begins no answer.
        """
        has_begun = False
        held: list[AnswerEvent] = []
        async with aclosing(answer) as events:
            async for event in events:
                if isinstance(event, RunDone) and not has_begun:
                    self.failure_notice = self._choose_next(event)
                    if self.failure_notice:
                        return
                held.append(event)
                if isinstance(event, StoredRecord):
                    continue
                if not isinstance(event, Status):
                    has_begun = True
                for held_event in held:
                    yield held_event
                held.clear()

    def _choose_next(self, ended: RunDone) -> str:
        """Choose the next endpoint if this one failed; return what to say, or nothing."""
        ending = ended.ending
        status = ended.trace.status or 0  # 0: there was no HTTP answer
        return self._endpoints.mark_failed(ending.kind, ending.code, status)


def _last_origin(prepared: PreparedRequest) -> Origin | None:
    """Return which server and account wrote the last reasoning of a chat."""
    records = prepared.records.values()
    encrypted = {
        record.ulid: record
        for record in records
        if any(is_encrypted(item) for item in record.payload)
    }
    if not encrypted:
        return None
    newest = max(encrypted)  # ULIDs sort by time
    return encrypted[newest].origin


# --------------------------------------------------------------------------------------
# owui_manifold.pipe
#
# How a request is handled, from Open WebUI's call to the last chunk.
# --------------------------------------------------------------------------------------


_NO_LEGACY_TOOLS = "Function Calling is Legacy, so TOOL_APPROVAL lets no tool run"


class Pipe:
    """OpenAI's models in Open WebUI, one for each entry of MODEL_ID."""

    Valves = Valves
    UserValves = UserValves

    def __init__(self) -> None:
        """Open and start nothing: the host creates a Pipe at every upload."""
        self.valves = self.Valves()
        self._connections = Connections()
        self._capabilities = AccountCapabilities()
        self._listing = Listing()
        self._capabilities.shutdown_dates = self._listing.shutdown_dates
        self._threads = ToolThreads()

    def pipes(self) -> list[dict[str, str]]:
        """Return the models to list."""
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
        """Answer a chat: chunks if the caller streams, else one complete result.

        The host replaces `self.valves` at every call.
        """
        user = __user__ or {}
        metadata = __metadata__ or {}
        allowed = await allowed_features(metadata, user)
        config = read_config(self.valves, user, allowed)
        call = PipeCall(
            body=body,
            caller=read_caller(body, user, metadata, __task__),
            config=config,
            capabilities=self._capabilities,
            log=RunLog(config.log_level, config.secrets, new_ulid()[-10:]),
            host=HostContext(
                tools=__tools__ or {},
                request=__request__,
                metadata=metadata,
                event_call=__event_call__,
                event_emitter=__event_emitter__,
            ),
            threads=self._threads,
            user=user,
        )
        if call.caller.task:
            return await self._do_task(call)
        if call.caller.streams:
            return self._stream(call)
        return await self._complete(call)

    async def _stream(self, call: PipeCall) -> AsyncGenerator[Chunk, None]:
        """Yield the answer in the form that the reader of the stream understands.

        Nothing is raised: the host would drop the text that was shown
        (docs/reference/open-webui.md, "Errors and Stop").
        """
        failed = True
        view = stream_view(call.caller)
        try:
            async with aclosing(await self._answer(call)) as events:
                async for event in events:
                    for chunk in view.render(event):
                        yield readable_chunk(chunk, call.caller)
                    if isinstance(event, RunDone):
                        failed = event.ending.is_failure
        except Exception as error:
            metadata = refused_metadata(call, error)
            if metadata:
                yield metadata_chunk(view, metadata)
            message = report_exception(call.log, error, PIPE_SHELL)
            yield readable_chunk(error_chunk(message), call.caller)
        if failed and call.config.shows_log and call.caller.host_reads:
            yield source_chunk("Log of this answer", call.log.text())

    async def _complete(self, call: PipeCall) -> Chunk:
        """Return the whole answer at once, with the output items for the host.

        The host would show the text of an exception.
        """
        emit = page_emitter(call.caller, call.host)
        try:
            ended, items = await self._watch(await self._answer(call), emit)
        except Exception as error:
            result = error_chunk(report_exception(call.log, error, PIPE_SHELL))
            metadata = refused_metadata(call, error)
            if metadata:
                result[METADATA_KEY] = metadata.wire()
                if emit:
                    await emit(metadata_chunk(page_view(), metadata)["event"])
            return result
        return whole_result(call.caller, ended, items)

    async def _do_task(self, call: PipeCall) -> Chunk:
        """Return a title, tags or the like; an empty text if that failed.

        A failed title must not make the chat fail. With rules for approvals the host's
        task `function_calling` gets no answer: in its legacy mode the host would run the
        tools without them.
        """
        text = ""
        if call.caller.task == "function_calling" and call.config.approval_rules:
            call.log.warn(_NO_LEGACY_TOOLS)
            return task_result(text, call.caller.host_model)
        try:
            text = await self._task_text(await check_call(call))
        except Exception as error:
            report_exception(call.log, error, PIPE_SHELL)
        return task_result(text, call.caller.host_model)

    async def _task_text(self, call: CheckedCall) -> str:
        """Return a task's text; without access to TASK_MODEL the chat's model writes it."""
        known_text = command_task_text(call)
        if known_text is not None:
            return known_text
        while True:
            request = build_task_request(call)
            events = answer_events(request, self._connections)
            ended, _ = await self._watch(events)
            if not lacks_task_model(request, ended):
                return "" if ended.ending.is_failure else completion_text(ended)

    async def _answer(self, arrived: PipeCall) -> AsyncGenerator[AnswerEvent, None]:
        """Return the events of an answer: of the model, of `/check` or of `/usage`."""
        call = await check_call(arrived)
        if is_check_command(call):
            endpoints = await calls_to_each_endpoint(arrived, call)
            return run_diagnostics(call, self._connections, endpoints)
        account = call.account
        lines = account.limits.usage_answer(last_user_text(call)) if account else None
        if lines:
            return stream_lines(lines)
        request = await build_chat_request(call)
        if account and account.endpoints:
            check_again = partial(check_call, arrived._replace(account=account))
            return answer_with_failover(
                request, account.endpoints, check_again, self._connections
            )
        return answer_events(request, self._connections)

    async def _watch(
        self,
        events: AsyncGenerator[AnswerEvent, None],
        emit: EventEmitter | None = None,
    ) -> tuple[RunDone, list[Item]]:
        """Read `events`; return their end and the items for the host.

        What only a page shows, like a status or a source, is emitted meanwhile.
        """
        ended = RunDone(CUT)
        view = page_view()
        async with aclosing(events):
            async for event in events:
                for chunk in view.render(event):
                    if emit and "event" in chunk:
                        await emit(chunk["event"])
                if isinstance(event, RunDone):
                    ended = event
        return ended, view.shown.items
