"""
title: OpenAI Responses Administration
author: The authors of OpenAI Responses Manifold
version: 1.0.0
required_open_webui_version: 0.11.4
license: MIT
description: Limits, several accounts and telemetry for OpenAI Responses Manifold.

Built by scripts/bundle.py from pipes/; do not edit.
"""

import hashlib
import json
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from importlib import import_module
from inspect import signature
from types import MappingProxyType
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import BaseModel, ConfigDict, Field

# ==== openai_responses.clock


def monotonic_seconds() -> float:
    return time.monotonic()


def hex_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ==== openai_responses.json_input

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


# ==== openai_responses.errors


class ResponsesError(Exception): ...


class InvalidRequest(ResponsesError): ...


def valve_error(
    problem: str, example: str = "", *, place: str = "the valves"
) -> InvalidRequest:
    shown = f", for example {example}" if example else ""
    return InvalidRequest(
        f"{problem}. An administrator has to correct it in {place}{shown}."
    )


PIPE_VALVES = "the valves of this pipe"


# ==== openai_responses.endpoint

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
        problem = "BASE_URL is not an http or https address"
        raise valve_error(problem, DEFAULT_BASE_URL, place=PIPE_VALVES)
    if "@" in parts.netloc:
        raise InvalidRequest(
            "BASE_URL holds a user name or a password, which cannot be sent beside "
            "API_KEY. An administrator has to take it out in the valves of this pipe."
        )
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


# ==== openai_responses.models.catalog

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


# ==== openai_responses.models.resolve

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
    return [
        one
        for word in text.split()
        for one in (
            _expand_words(CATALOG_WORDS[word]) if word in CATALOG_WORDS else [word]
        )
    ]


def _read_traits(words: list[str]) -> dict[str, Any]:
    return {name: name in words for name in _YES_OR_NO_FACTS - {"known_family"}}


def _shown_name(model_id: str, effort: str | None) -> str:
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


# ==== owui_administration.host


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


# ==== owui_administration.endpoints

_UNREADABLE = (
    "ENDPOINTS_JSON is not a list of entries with a key each, so nothing is sent. An "
    "administrator has to correct it in the valves of the filter, for example "
    '`[{"groups": ["staff"], "api_key": "..."}]`.'
)
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

    def leave_failed(self, kind: str, code: str, status: int) -> bool:
        is_down = kind in _DOWN_KINDS or code in _DOWN_CODES
        if is_down or status in (401, 429) or status >= 500:
            account = self._entries[0].at(self._base_url).account()
            self._down[account] = monotonic_seconds() + _DOWN_SECONDS
        elif status not in (403, 404):
            return False
        if len(self._entries) == 1:
            return False
        self._entries.pop(0)
        return True

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


# ==== owui_administration.account


class Account:
    def __init__(
        self, facts: dict[str, Any], endpoints: EndpointChoice | NoEndpoint | None
    ) -> None:
        self._facts = facts
        self.endpoints = endpoints


# ==== owui_administration.filter


class Filter:
    CONTRACT = 1

    class Valves(BaseModel):
        priority: int = Field(
            default=0, description="When this filter runs, among others."
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
        self._down = dict[str, float]()

    async def begin(self, facts: dict[str, Any]) -> Account:
        text = self.valves.ENDPOINTS_JSON
        return Account(facts, await choose_endpoints(text, facts, self._down))
