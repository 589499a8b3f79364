"""
title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

Built by scripts/bundle.py from pipes/; do not edit.
"""

import asyncio
import hashlib
import json
import re
import time
from asyncio import timeout
from base64 import b64encode
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import import_module
from inspect import signature
from itertools import islice
from time import monotonic
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple
from urllib.parse import SplitResult, quote, quote_plus, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

# openai_responses.clock


def unix_seconds() -> int:
    return int(time.time())


def monotonic_seconds() -> float:
    return time.monotonic()


def utc_today() -> date:
    return datetime.now(UTC).date()


def hex_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# openai_responses.json_input

JsonObject = Mapping[str, Any]
MAX_JSON_DEPTH = 128


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


def as_mapping(value: object) -> JsonObject:
    return value if isinstance(value, (dict, Mapping)) else {}


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


def valve_error(
    problem: str, example: str = "", *, place: str = "the valves"
) -> InvalidRequest:
    shown = f", for example {example}" if example else ""
    return InvalidRequest(
        f"{problem}. An administrator has to correct it in {place}{shown}."
    )


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


def url_parts(text: str) -> SplitResult | None:
    try:
        parts = urlsplit(text)
        sound = bool(parts.hostname) and parts.port != 0
    except ValueError:
        return None
    return parts if sound and parts.scheme in ("http", "https") else None


# openai_responses.transport.entra

_RENEWED_BEFORE = 300
_LONGEST_REASON = 300


class EntraTokens:
    def __init__(self) -> None:
        self._credential: Any = None
        self._known: dict[str, tuple[str, int]] = {}
        self._lock = asyncio.Lock()

    async def token(self, scope: str) -> str:
        async with self._lock:
            token, end = self._known.get(scope, ("", 0))
            if unix_seconds() > end - _RENEWED_BEFORE:
                try:
                    token, end = await asyncio.to_thread(self._ask, scope)
                except InvalidRequest:
                    if unix_seconds() >= end:
                        raise
                self._known[scope] = token, end
        return token

    def _ask(self, scope: str) -> tuple[str, int]:
        try:
            if self._credential is None:
                identity = import_module("azure.identity")
                self._credential = identity.DefaultAzureCredential()
            made = self._credential.get_token(scope)
        except ImportError:
            raise InvalidRequest(
                "AUTH is `entra_id`, but this server has no package azure-identity. An "
                "administrator has to install it, or to choose another AUTH."
            ) from None
        except Exception as error:  # whatever the package and its network raise
            reason = redact(" ".join(str(error).split()))[:_LONGEST_REASON]
            raise InvalidRequest(
                "Microsoft Entra ID gave this server no token. An administrator has to "
                f"look at the identity of this server. It said: {reason}"
            ) from None
        return str(made.token), int(made.expires_on)


def entra_scope(endpoint: Endpoint) -> str:
    cloud = endpoint.host.rpartition(".azure.")[2] if endpoint.is_azure else "com"
    return f"https://cognitiveservices.azure.{cloud}/.default"


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


# openai_responses.models.usage


def format_money(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars >= 1 else f"${Decimal(f'{dollars:.2g}'):f}"


# owui_administration.host


class HostTooOld(RuntimeError): ...


def _host_name(module: str, name: str) -> Any:
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise HostTooOld(
            f"This Open WebUI has no {module}.{name}, which the filter needs. An "
            "administrator has to update Open WebUI."
        ) from None


async def user_groups(user_id: str) -> set[str]:
    groups = _host_name("models.groups", "Groups")
    knows = signature(groups.get_groups_by_member_id).parameters.keys()
    above = dict.fromkeys(knows & {"include_inherited"}, True)
    found = await groups.get_groups_by_member_id(user_id, **above)
    return {name for group in found for name in (group.id, group.name)}


async def has_group(name: str) -> bool:
    groups = _host_name("models.groups", "Groups")
    by_id = await groups.get_group_by_id(name)
    return bool(by_id or await groups.get_group_by_name(name))


async def has_user(name: str) -> bool:
    users = _host_name("models.users", "Users")
    by_id = await users.get_user_by_id(name)
    return bool(by_id or await users.get_user_by_email(name))


async def has_task_model() -> bool:
    config = _host_name("models.config", "Config")
    return bool(await config.get("task.model.external", ""))


_DATABASE_SECONDS = 15


async def run_sql(*statements: tuple[str, object]) -> list[Any]:
    schema = _host_name("env", "DATABASE_SCHEMA")
    prefix = f'"{schema}".' if schema else ""
    text = import_module("sqlalchemy").text
    open_session = _host_name("internal.db", "get_async_db")
    async with timeout(_DATABASE_SECONDS), open_session() as session:
        for sql, values in statements:
            done = await session.execute(text(sql.format(schema=prefix)), values)
        rows = list(done.all()) if done.returns_rows else []
        await session.commit()
    return rows


def exports_telemetry() -> bool:
    try:
        traces = _host_name("env", "ENABLE_OTEL_TRACES")
        metrics = _host_name("env", "ENABLE_OTEL_METRICS")
        return bool(_host_name("env", "ENABLE_OTEL") and (traces or metrics))
    except HostTooOld:
        return False


# owui_administration.endpoints

_UNREADABLE = (
    "ENDPOINTS_JSON is not a list of entries with a key each, so nothing is sent. An "
    "administrator has to correct it in the valves of the filter, for example "
    '`[{"groups": ["staff"], "api_key": "..."}]`.'
)
_ASKS_NEXT = (
    "The server did not answer. The next one that an administrator named is asked."
)
_OTHER_ACCOUNT = "The earlier reasoning of this chat is at another server or account."
_DOWN_SECONDS = 60.0
_DOWN_KINDS = ("unreachable", "unreadable", "first_event_timeout")
_DOWN_CODES = ("server_error", "rate_limit_exceeded", "insufficient_quota")


class EndpointEntry(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    groups: list[str] = []
    models: list[str] = ["*"]
    base_url: str | None = None
    compatibility: Literal["auto", "openai", "strict"] | None = None
    api_key: str = ""
    organization: str = ""
    project: str = ""
    auth: Literal["key", "bearer", "entra_id"] = "key"
    auth_scope: str = ""

    @property
    def is_complete(self) -> bool:
        return bool(self.at("").host and (self.auth == "entra_id" or self.key))

    @property
    def key(self) -> str:
        return "" if self.auth == "entra_id" else self.api_key.strip()

    def is_for(self, groups: Collection[str], models: Collection[str]) -> bool:
        is_named = any(fnmatchcase(m, one) for m in models for one in self.models)
        return is_named and bool(not self.groups or {*groups}.intersection(self.groups))

    def at(self, base_url: str) -> Endpoint:
        address = base_url if self.base_url is None else self.base_url
        return Endpoint(address, self.key, self.organization.strip())

    def valves(self) -> dict[str, str]:
        given = {name.upper(): text for name, text in self if isinstance(text, str)}
        unset = {"EXTRA_HEADERS": "", "FILE_SEARCH_VECTOR_STORES": ""}
        return {**given, "API_KEY": self.key, **unset}


@lru_cache(maxsize=8)
def read_endpoints(text: str) -> Sequence[EndpointEntry] | None:
    try:
        entries = [*map(EndpointEntry.model_validate, load_json(text.strip() or "[]"))]
        return entries if all(one.is_complete for one in entries) else None
    except (ValueError, TypeError, InvalidRequest):
        return None


class EndpointChoice:
    def __init__(
        self, entries: Sequence[EndpointEntry], base_url: str, down: dict[str, float]
    ) -> None:
        self.problem = ""
        self._base_url = base_url
        self._down = down
        self._entries = sorted(entries, key=self._is_down)

    def valves(self) -> dict[str, str]:
        return self._entries[0].valves()

    def return_to(self, host: str, owner: str, *, is_same_answer: bool) -> bool:
        if self._reads(self._entries[0], host, owner):
            return False
        for one in self._entries[1:]:
            is_usable = is_same_answer or not self._is_down(one)
            if is_usable and self._reads(one, host, owner):
                self._entries.remove(one)
                self._entries.insert(0, one)
                return True
        return False

    def loss(self, host: str, owner: str) -> str:
        return "" if self._reads(self._entries[0], host, owner) else _OTHER_ACCOUNT

    def leave_failed(self, kind: str, code: str, status: int) -> str:
        is_down = kind in _DOWN_KINDS or code in _DOWN_CODES
        if is_down or status in (401, 429) or status >= 500:
            account = self._entries[0].at(self._base_url).account()
            self._down[account] = monotonic_seconds() + _DOWN_SECONDS
        elif status not in (403, 404):
            return ""
        if len(self._entries) == 1:
            return ""
        self._entries.pop(0)
        return _ASKS_NEXT

    def _is_down(self, entry: EndpointEntry) -> bool:
        account = entry.at(self._base_url).account()
        return monotonic_seconds() < self._down.get(account, 0)

    def _reads(self, entry: EndpointEntry, host: str, owner: str) -> bool:
        here = entry.at(self._base_url)
        return host in ("", here.host) and owner in ("", here.owner())


class NoEndpoint:
    problem = _UNREADABLE


async def choose_endpoints(
    text: str, facts: JsonObject, down: dict[str, float]
) -> EndpointChoice | NoEndpoint | None:
    entries = read_endpoints(text)
    if entries is None:
        return NoEndpoint()
    if not entries or facts.get("has_own_key"):
        return None
    user_id = str(as_mapping(facts.get("user")).get("id") or "")
    has_groups = any(entry.groups for entry in entries)
    groups = await user_groups(user_id) if has_groups else ()
    model = str(facts.get("model"))
    names = {model, resolve_model(model).id}
    found = [entry for entry in entries if entry.is_for(groups, names)]
    return EndpointChoice(found, str(facts.get("base_url")), down) if found else None


# owui_administration.rules


class LimitRule(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    user: str = ""
    group: str = ""
    role: Literal["", "user", "admin"] = ""
    money: Annotated[float, Field(ge=0)] | None = None
    tokens: Annotated[int, Field(ge=0)] | None = None
    per: Literal["", "day", "week", "month"] = ""
    models: list[str] | None = None
    efforts: list[str] | None = None
    tools: list[str] | None = None
    show: bool = False
    last: bool = False
    unreadable: bool = False


@lru_cache(maxsize=8)
def read_limits(text: str) -> tuple[Sequence[LimitRule] | None, str]:
    if not text.strip():
        return None, ""
    try:
        rows = load_json(text)
    except ValueError:
        rows = None
    rules = [_read_rule(row) for row in (rows if isinstance(rows, list) else [rows])]
    unread = [str(place) for place, rule in enumerate(rules, 1) if rule.unreadable]
    if not unread:
        return rules, ""
    return rules, (
        f"Rule {', '.join(unread[:9])} of USER_LIMITS_JSON cannot be read, so users that "
        "it names get no answers. An administrator has to correct it in the valves of "
        'the filter, for example `[{"role": "user", "money": 5, "per": "month"}]`.'
    )


def _read_rule(row: object) -> LimitRule:
    try:
        rule = LimitRule.model_validate(row)
        if rule.per or (rule.money is None and rule.tokens is None):
            return rule
    except ValidationError:
        pass
    given = as_mapping(row)
    named = {k: v for k in ("user", "group") if isinstance(v := given.get(k), str)}
    role = given["role"] if given.get("role") in ("user", "admin") else ""
    return LimitRule.model_validate({**named, "role": role, "unreadable": True})


def rules_of(
    rules: Sequence[LimitRule],
    names: Collection[str],
    groups: Collection[str],
    role: str,
) -> list[LimitRule]:
    found = list[LimitRule]()
    for rule in rules:
        is_named = rule.user.lower() in ("", *map(str.lower, names))
        if is_named and rule.group in ("", *groups) and rule.role in ("", role):
            found.append(rule)
            if rule.last:
                break
    return found


PERIODS = {"day": "today", "week": "this week", "month": "this month"}
PERIOD_DAYS = {"day": 1, "week": 7, "month": 31}


def period_start(per: str, today: date) -> date:
    if per == "month":
        return today.replace(day=1)
    return today - timedelta(today.weekday() if per == "week" else 0)


def next_start(per: str, today: date) -> date:
    next_day = period_start(per, today) + timedelta(PERIOD_DAYS[per])
    return period_start(per, next_day)


def longest_ago(today: date) -> str:
    return min(period_start(per, today) for per in PERIODS).isoformat()


# owui_administration.usage_table


class UsageRow(NamedTuple):
    user_id: str
    day: str
    model: str
    requests: int
    input: int
    cached: int
    output: int
    money: int


_TABLE = "{schema}openai_responses_usage"
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {_TABLE} (user_id TEXT, day TEXT, model TEXT, "
    "requests BIGINT, input BIGINT, cached BIGINT, output BIGINT, money BIGINT, "
    "PRIMARY KEY (user_id, day, model))"
)
_COUNTS = UsageRow._fields[3:]
_ADD = (
    f"INSERT INTO {_TABLE} AS old VALUES "
    "(:user_id, :day, :model, :requests, :input, :cached, :output, :money) "
    "ON CONFLICT (user_id, day, model) DO UPDATE SET "
    + ", ".join(f"{name} = old.{name} + excluded.{name}" for name in _COUNTS)
)
OWN_ROWS = f"SELECT * FROM {_TABLE} WHERE user_id = :user_id AND day >= :day"
ALL_ROWS = (
    f"SELECT COALESCE(email, user_id), '', model, SUM({'), SUM('.join(_COUNTS)}) "
    f'FROM {_TABLE} LEFT JOIN {{schema}}"user" ON id = user_id WHERE day >= :day '
    "GROUP BY email, user_id, model ORDER BY SUM(money) DESC LIMIT :most"
)
_NOT_COUNTED = "What users use is not counted: Open WebUI's database answers {}."


class UsageTable:
    def __init__(self) -> None:
        self.problem = ""
        self._due: list[UsageRow] = []
        self._writer: asyncio.Task[None] | None = None

    def add(self, *rows: UsageRow) -> None:
        self._due += rows
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())

    async def _write(self) -> None:
        while rows := sorted(self._due):  # in one order: servers never wait crosswise
            self._due, self.problem = [], ""
            try:
                await run_sql((_CREATE, {}), (_ADD, [row._asdict() for row in rows]))
            except Exception as error:
                self._due += rows
                self.problem = _NOT_COUNTED.format(type(error).__name__)
                return

    async def flush(self) -> None:
        self.add()
        if self._writer:
            await asyncio.wait([self._writer])

    async def rows(self, sql: str, **values: object) -> list[UsageRow]:
        await self.flush()
        found = await run_sql((_CREATE, {}), (sql, values))
        due = [row for row in self._due if row.user_id == values.get("user_id")]
        return [*(UsageRow(*row[:3], *map(int, row[3:])) for row in found), *due]


# owui_administration.usage_command

_COMMAND = re.compile(r"/usage(?: +(\d{1,3})d)?( +csv)?")
_MOST_SHOWN, _MOST_LISTED = 100, 5000
_SUMS = ("US dollars", "requests", "input tokens", "cached input", "output tokens")
_RULE = ("---", *["---:"] * len(_SUMS))


def read_command(words: str) -> tuple[int, bool] | None:
    found = _COMMAND.fullmatch(words)
    return (int(found[1] or 30), bool(found[2])) if found else None


class UsageReport:
    def __init__(self, table: UsageTable, user: JsonObject, today: date) -> None:
        self._table = table
        self._user = user
        self._today = today

    async def lines(
        self, days: int, as_csv: bool, left: Sequence[str]
    ) -> AsyncGenerator[str, None]:
        own: list[_Cells] = [("Your use (UTC)", *_SUMS), _RULE]
        own += map(_sums, (await self._own_rows()).items())
        yield "\n".join(map(_line, own))
        yield "".join(f"\n- {line}" for line in left)
        if self._user.get("role") != "admin":
            return
        since = (self._today - timedelta(days - 1)).isoformat()
        rows = await self._table.rows(ALL_ROWS, day=since, most=_MOST_LISTED)
        cells: list[_Cells] = [(f"All users since {since}", *_SUMS), _RULE]
        cells += [_sums((f"{row.user_id}, {row.model}", [row])) for row in rows]
        if as_csv:
            del cells[1]
            yield "\n".join(["```csv", *(map(_csv_line, cells)), "```"])
        else:
            yield "\n".join(map(_line, cells[: _MOST_SHOWN + 2]))

    async def _own_rows(self) -> dict[str, list[UsageRow]]:
        user_id, day = str(self._user.get("id")), longest_ago(self._today)
        rows = await self._table.rows(OWN_ROWS, user_id=user_id, day=day)
        groups: dict[str, list[UsageRow]] = {}
        for period, name in PERIODS.items():
            start = period_start(period, self._today).isoformat()
            groups[name] = [row for row in rows if row.day >= start]
        for row in groups["this month"]:
            groups.setdefault(f"this month, {row.model}", []).append(row)
        return groups


_Cells = Sequence[str | int]


def _sums(group: tuple[str, Iterable[UsageRow]]) -> _Cells:
    name, rows = group
    columns = zip(*(row[3:] for row in rows), strict=True)
    *counts, money = list(map(sum, columns)) or [0] * len(_SUMS)
    return name, f"{money / 1e6:.4f}", *counts


_NOT_PLAIN = re.compile(r"[^\w.,:/@+=*()' -]")


def _line(cells: _Cells) -> str:
    texts = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
    return f"| {' | '.join(_NOT_PLAIN.sub(' ', text) for text in texts)} |"


def _csv_line(cells: _Cells) -> str:
    cleaned = (_NOT_PLAIN.sub(" ", str(cell)).lstrip("=+-@ ") for cell in cells)
    return ",".join(f'"{cell}"' for cell in cleaned)


# owui_administration.limits

_OVERDRAFT = 1.1
_HOSTED_TYPES = (
    *("web_search", "file_search", "code_interpreter", "image_generation", "mcp"),
    *("shell", "local_shell", "apply_patch", "computer", "programmatic_tool_calling"),
)
_NOT_READ = (
    "A rule of USER_LIMITS_JSON about you cannot be read. Tell an administrator."
)
_NO_PRICE = (
    "Your use is limited in money, and the price of {} is not known. An administrator "
    "has to set it in CUSTOM_MODEL_PRICING_JSON."
)


class _Budget(NamedTuple):
    rule: LimitRule
    most: float
    used: float
    text: Callable[[float], str]


@dataclass
class UserLimits:
    rules: Sequence[LimitRule] = ()
    rows: list[UsageRow] = field(default_factory=list)
    facts: JsonObject = field(default_factory=dict)
    table: UsageTable | None = None
    problems: Sequence[str] = ()
    today: date = field(default_factory=utc_today)
    refused: str = ""
    is_given_model: bool = False

    @property
    def _user(self) -> JsonObject:
        user: JsonObject = self.facts.get("user") or {}
        return user

    @property
    def is_admin(self) -> bool:
        return self._user.get("role") == "admin"

    @property
    def _counts(self) -> bool:
        return self.table is not None and not self.facts.get("has_own_key")

    @property
    def has_amounts(self) -> bool:
        return any(rule.per for rule in self.rules)

    def refusal(self, model: str, has_price: bool, goes_on: bool) -> str:
        if not self.is_admin and any(r.unreadable for r in self.rules):
            return _NOT_READ
        has_money = any(rule.money is not None for rule in self.rules)
        if self._counts and has_money and not has_price:
            return _NO_PRICE.format(model)
        used_up = self._used_up(_OVERDRAFT if goes_on else 1)
        return used_up or self.refused or self._wrong_model(model)

    def _wrong_model(self, model: str) -> str:
        names, listed = [model.lower()], str(self.facts.get("model"))
        resolved = resolve_model(listed)
        if resolved.pro or model != f"{resolved.id}-pro":
            names.append(listed.lower())
        for known in () if self.is_given_model else self._lists("models"):
            if not any(fnmatchcase(name, p.lower()) for name in names for p in known):
                listed = ", ".join(known) or "none"
                return f"{model} is not for you. You may use: {listed}."
        return ""

    def _lists(self, name: str) -> list[list[str]]:
        lists = (getattr(rule, name) for rule in self.rules)
        return [one for one in lists if one is not None]

    def closed_tools(self) -> list[str]:
        tools = self._lists("tools")
        return [one for one in _HOSTED_TYPES if not all(one in t for t in tools)]

    def other_effort(self, asked: str | None, known: Sequence[str]) -> str:
        allowed = self._lists("efforts")
        usable = [one for one in known if all(one in some for some in allowed)]
        if not known or not allowed or asked in usable:
            return ""
        if not usable:
            self.refused = "This model has no effort that you may use. Choose another."
            return ""
        rank = [*known, asked].index
        lower = [one for one in usable if rank(one) < rank(asked)]
        return lower[-1] if lower else usable[0]

    def count(
        self, model: str, counts: tuple[int, int, int, int], cost: float | None
    ) -> str:
        if self._counts and self.table and counts[0]:
            user_id, day = str(self._user.get("id")), self.today.isoformat()
            row = UsageRow(user_id, day, model, *counts, round((cost or 0) * 1e6))
            self.rows.append(row)
            self.table.add(row)
        return self._used_up(_OVERDRAFT)

    def _budgets(self) -> Iterator[_Budget]:
        for rule in self.rules if self._counts else ():
            start = period_start(rule.per, self.today).isoformat()
            rows = [row for row in self.rows if row.day >= start]
            if rule.money is not None:
                used = sum(row.money for row in rows) / 1e6
                yield _Budget(rule, rule.money, used, format_money)
            if rule.tokens is not None:
                used = sum(row.input + row.output for row in rows)
                yield _Budget(rule, rule.tokens, used, "{:,.0f} tokens".format)

    def _used_up(self, share: float) -> str:
        reached = [one for one in self._budgets() if one.used >= one.most * share]
        if not reached:
            return ""
        longest = max(reached, key=lambda one: PERIOD_DAYS[one.rule.per])
        rule, most, used, text = longest
        return (
            f"Your limit of {text(most)} a {rule.per} is used up: {text(used)} so far. "
            f"It begins anew on {next_start(rule.per, self.today)} at 00:00 UTC."
        )

    def notices(self) -> list[str]:
        uncounted = self.table.problem if self.table else ""
        problems = (*self.problems, uncounted) if self.is_admin else ()
        return [*filter(None, problems), *self._left(all_rules=False)]

    def _left(self, *, all_rules: bool) -> list[str]:
        return [
            f"{text(max(0, most - used))} of {text(most)} left {PERIODS[rule.per]}"
            for rule, most, used, text in self._budgets()
            if rule.show or all_rules
        ]

    def answer(self, words: str) -> AsyncGenerator[str, None] | None:
        asked = read_command(words) if self.table else None
        if asked is None or self.table is None:
            return None
        report = UsageReport(self.table, self._user, self.today)
        return report.lines(*asked, self._left(all_rules=True))


async def read_user_limits(
    text: str, facts: JsonObject, table: UsageTable
) -> UserLimits:
    every, problem = read_limits(text)
    if every is None:
        return UserLimits(facts=facts)
    user, today = facts.get("user") or {}, utc_today()
    user_id, names = str(user.get("id")), {str(user.get(k)) for k in ("id", "email")}
    groups = await user_groups(user_id) if any(rule.group for rule in every) else ()
    rules = rules_of(every, names, groups, str(user.get("role")))
    rows = list[UsageRow]()
    if any(rule.per for rule in rules) and not facts.get("has_own_key"):
        rows = await table.rows(OWN_ROWS, user_id=user_id, day=longest_ago(today))
    given = await _is_given_model(str(facts.get("task") or ""))
    return UserLimits(rules, rows, facts, table, [problem], today, is_given_model=given)


async def _is_given_model(task: str) -> bool:
    return task not in ("", "moa_response_generation") and await has_task_model()


# owui_administration.telemetry

_SCOPE = "openai_responses_manifold"
_LONGEST = 100
_WORD = re.compile(r"[\w.-]{1,60}", re.ASCII)
_MOST_WORDS = 50
_OTHER = "_OTHER"

_SECOND_BOUNDS = [0.01 * 2**n for n in range(14)]
_TOKEN_BOUNDS = [4**n for n in range(14)]

Events = AsyncGenerator[Any, None]
Describe = Callable[[Any], tuple[Any, ...]]

_NO_EXCEPTIONS = {"record_exception": False, "set_status_on_exception": False}


def _exported(name: str) -> str:
    return name[:_LONGEST].encode("utf-8", "replace").decode()


class ServerWords:
    def __init__(self) -> None:
        self._known: set[str] = set()

    def known(self, word: str) -> str:
        is_new = word not in self._known
        if not _WORD.fullmatch(word) or (is_new and len(self._known) >= _MOST_WORDS):
            return _OTHER
        self._known.add(word)
        return word


class Telemetry:
    def __init__(self, facts: JsonObject, words: ServerWords) -> None:
        self._facts, self._words = facts, words
        self._run: _Run | None = None

    def count(self, counts: Sequence[int], cost: float | None) -> None:
        if self._run:
            self._run.used = [
                a + b for a, b in zip(self._run.used, counts, strict=True)
            ]
            self._run.cost += cost or 0

    def observe_run(
        self, events: Events, model: str, address: str, describe: Describe
    ) -> Events:
        if not exports_telemetry():
            return events
        facts = _attributes(self._facts, model, address)
        self._run = _Run(self._words, facts, describe)
        return self._run.observed(events)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        if not exports_telemetry():
            return await work
        name = _exported(name)
        facts = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}
        tracer = import_module("opentelemetry.trace").get_tracer(_SCOPE)
        with tracer.start_as_current_span(
            f"execute_tool {name}", attributes=facts, **_NO_EXCEPTIONS
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
    span.set_attribute("error.type", word)
    span.set_status(import_module("opentelemetry.trace").StatusCode.ERROR)


class _Run:
    def __init__(
        self, words: ServerWords, facts: dict[str, Any], describe: Describe
    ) -> None:
        self.used, self.cost = [0, 0, 0, 0], 0.0
        self._trace = import_module("opentelemetry.trace")
        self._meter = import_module("opentelemetry.metrics").get_meter(_SCOPE)
        self._words, self._describe = words, describe
        self._facts = facts
        self._span = self._trace.get_tracer(_SCOPE).start_span(
            f"chat {facts['gen_ai.request.model']}",
            kind=self._trace.SpanKind.CLIENT,
            attributes=facts,
        )
        self._began = monotonic()
        self._has_text = False
        self._error = "cancelled"

    async def observed(self, events: Events) -> Events:
        try:
            async with aclosing(events):
                while (event := await self._next(events)) is not None:
                    self._note(*self._describe(event))
                    yield event
        except Exception as error:
            self._error = type(error).__name__
            raise
        finally:
            self._end()

    async def _next(self, events: Events) -> Any:
        with self._trace.use_span(self._span, **_NO_EXCEPTIONS):
            return await anext(events, None)

    def _note(self, word: str = "", *more: Any) -> None:
        if word == "text" and not self._has_text:
            self._has_text = True
            self._record("openai_responses.time_to_first_text", self._seconds())
        elif word in ("retry", "recovery"):
            name = {"retry": "retries", "recovery": "recoveries"}[word]
            self._count(name, "1", 1)
        elif word == "end":
            self._note_end(*more)

    def _note_end(self, kind: str, code: str | None, model: str) -> None:
        word = self._words.known(code) if code else kind
        told: dict[str, Any] = {"gen_ai.response.finish_reasons": [word]}
        if model:
            told["gen_ai.response.model"] = _exported(model)
        self._span.set_attributes(told)
        self._error = "" if kind in ("completed", "incomplete") else word

    def _note_usage(self) -> None:
        _, given, cached, made = self.used
        self._span.set_attribute("gen_ai.usage.cache_read.input_tokens", cached)
        for kind, count in (("input", given), ("output", made)):
            self._span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
            more = {"gen_ai.token.type": kind}
            self._record("gen_ai.client.token.usage", count, "{token}", more)
        if self.cost:
            self._count("cost", "{USD}", self.cost)

    def _end(self) -> None:
        if any(self.used):
            self._note_usage()
        if self._error:
            self._facts["error.type"] = self._error
            _fail(self._span, self._error)
        self._record("gen_ai.client.operation.duration", self._seconds())
        self._span.end()

    def _seconds(self) -> float:
        return monotonic() - self._began

    def _count(self, name: str, unit: str, number: float) -> None:
        counter = self._meter.create_counter(f"openai_responses.{name}", unit)
        counter.add(number, self._facts)

    def _record(
        self, name: str, number: float, unit: str = "s", more: JsonObject | None = None
    ) -> None:
        bounds = _SECOND_BOUNDS if unit == "s" else _TOKEN_BOUNDS
        histogram = self._meter.create_histogram(
            name, unit, explicit_bucket_boundaries_advisory=bounds
        )
        histogram.record(number, {**self._facts, **(more or {})})


def _attributes(facts: JsonObject, model: str, address: str) -> dict[str, Any]:
    is_azure = Endpoint(f"https://{address}", "").is_azure
    told: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai" if is_azure else "openai",
        "gen_ai.request.model": _exported(model),
        "server.address": address,
    }
    if facts["task"]:
        told["openai_responses.task"] = facts["task"]
    if facts["has_own_key"]:
        told["openai_responses.own_key"] = True
    return told


# owui_administration.account


class Account(NamedTuple):
    limits: UserLimits
    telemetry: Telemetry
    tokens: EntraTokens
    endpoints: EndpointChoice | NoEndpoint | None = None

    def count_responses(
        self, model: str, counts: tuple[int, int, int, int], cost: float | None
    ) -> str:
        self.telemetry.count(counts, cost)
        return self.limits.count(model, counts, cost)

    def observe_run(
        self, events: Events, model: str, address: str, describe: Describe
    ) -> Events:
        return self.telemetry.observe_run(events, model, address, describe)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        return await self.telemetry.observe_tool(name, work, has_failed)

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        scope = scope.strip() or entra_scope(Endpoint(base_url, ""))
        try:
            return await self.tokens.token(scope), ""
        except InvalidRequest as error:
            return "", str(error)


# owui_administration.agent


class LimitReached(Exception): ...


def agent_names(model: JsonObject, request: Any) -> tuple[str, str] | None:
    base_id = as_mapping(model.get("info")).get("base_model_id")
    if base_id:
        model = as_mapping(request.app.state.MODELS.get(base_id)) if request else {}
    if "pipeline" not in model:
        return None
    name = str(model.get("id"))
    return name, name.split(".", 1)[-1]


def usage_row(user_id: object, model: str, usage: JsonObject) -> UsageRow:
    given = _number(usage, "input_tokens") or _number(usage, "prompt_tokens")
    made = _number(usage, "output_tokens") or _number(usage, "completion_tokens")
    cached = _number(as_mapping(usage.get("input_tokens_details")), "cached_tokens")
    money = round(min(_number(usage, "cost"), 1e6) * 1e6)
    counts = (1, int(given), int(cached), int(made), money)
    return UsageRow(str(user_id), utc_today().isoformat(), model, *counts)


def _number(counts: Mapping[str, Any], name: str) -> float:
    value = counts.get(name)
    return value if isinstance(value, int | float) and 0 < value < 10**12 else 0


# owui_administration.names

_SECONDS = 60.0
_MOST_NAMES = 100
_MOST_TOLD = 9


class NameCheck:
    def __init__(self) -> None:
        self._texts = ("", "")
        self._until = 0.0
        self._problem = ""

    async def problem(self, limits: str, endpoints: str) -> str:
        texts, now = (limits, endpoints), monotonic_seconds()
        if texts != self._texts or now > self._until:
            self._problem = await _find_problem(*texts)
            self._texts, self._until = texts, now + _SECONDS
        return self._problem


async def _find_problem(limits: str, endpoints: str) -> str:
    rules, entries = read_limits(limits)[0] or (), read_endpoints(endpoints) or ()
    users = dict.fromkeys(rule.user for rule in rules if rule.user)
    groups = dict.fromkeys(rule.group for rule in rules if rule.group)
    groups |= dict.fromkeys(name for entry in entries for name in entry.groups)
    unknown = [n for n in islice(groups, _MOST_NAMES) if not await has_group(n)]
    unknown += [n for n in islice(users, _MOST_NAMES) if not await has_user(n)]
    if not unknown:
        return ""
    return (
        f"The valves of the filter name {', '.join(unknown[:_MOST_TOLD])}, but Open "
        "WebUI has no such group or user. These rules hold for nobody; whoever signs "
        "up with such an address gets its rules."
    )


# owui_administration.filter

_FILTER_ID = "openai_responses_administration"
_OTHER_ID = (
    "The id of this filter is {}, so the pipe does not find it, and limits do not hold. "
    "Install it with the id " + _FILTER_ID + "."
)
_NOT_KNOWN = (
    "What you have used cannot be read now (Open WebUI's database answers {}), so "
    "nothing is sent. Try again; if it lasts, tell an administrator."
)

_NO_STREAM = (
    "Your use is limited, and what this model uses is only counted with a stream. Send "
    "the request with `stream`."
)


class Filter:
    CONTRACT = 1

    class Valves(BaseModel):
        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )
        USER_LIMITS_JSON: str = Field(
            default="",
            description="What users may use, as a JSON list of rules (docs/limits.md): "
            '`[{"group": "students", "money": 5, "per": "month"}]`. `[]` only counts, '
            "for `/usage`; empty: nothing is counted.",
        )
        ENDPOINTS_JSON: str = Field(
            default="",
            description="Other addresses and keys for some groups and models, as a JSON "
            "list of which the first that fits is used (docs/gateways.md): "
            '`[{"groups": ["staff"], "base_url": "https://eu.api.openai.com/v1", '
            '"api_key": "..."}]`.',
            json_schema_extra={"input": {"type": "password"}},
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._usage = UsageTable()
        self._words = ServerWords()
        self._down = dict[str, float]()
        self._tokens = EntraTokens()
        self._names = NameCheck()

    async def begin(self, facts: dict[str, Any]) -> Account:
        valves = self.valves
        limits = await read_user_limits(valves.USER_LIMITS_JSON, facts, self._usage)
        endpoints = await choose_endpoints(valves.ENDPOINTS_JSON, facts, self._down)
        if limits.is_admin:
            texts = (valves.USER_LIMITS_JSON, valves.ENDPOINTS_JSON)
            limits.problems = (*limits.problems, await self._names.problem(*texts))
        return Account(limits, Telemetry(facts, self._words), self._tokens, endpoints)

    async def inlet(
        self,
        body: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __model__: dict[str, Any] | None = None,
        __request__: Any = None,
        __id__: str = _FILTER_ID,
        __event_emitter__: Any = None,
    ) -> dict[str, Any]:
        user = __user__ or {}
        if __id__ != _FILTER_ID and user.get("role") == "admin" and __event_emitter__:
            told = {"type": "warning", "content": _OTHER_ID.format(__id__)}
            await __event_emitter__({"type": "notification", "data": told})
        if names := agent_names(__model__ or {}, __request__):
            limits = await self._agent_limits({"user": user, "model": names[1]})
            refused = limits.refusal(names[0], has_price=True, goes_on=False)
            if limits.has_amounts and not body.get("stream"):
                refused = refused or _NO_STREAM
            if refused:
                raise LimitReached(refused)
        return body

    async def _agent_limits(self, facts: dict[str, Any]) -> UserLimits:
        try:
            text = self.valves.USER_LIMITS_JSON
            return await read_user_limits(text, facts, self._usage)
        except Exception as error:
            kind = type(error).__name__
            raise LimitReached(_NOT_KNOWN.format(kind)) from None

    def stream(
        self,
        event: dict[str, Any],
        __user__: dict[str, Any] | None = None,
        __model__: dict[str, Any] | None = None,
        __request__: Any = None,
    ) -> dict[str, Any]:
        usage = event.get("usage")
        if isinstance(usage, dict) and self.valves.USER_LIMITS_JSON.strip():
            names = agent_names(__model__ or {}, __request__)
            if names:
                user_id = (__user__ or {}).get("id")
                self._usage.add(usage_row(user_id, names[1], usage))
        return event
