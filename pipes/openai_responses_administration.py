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
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from importlib import import_module
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

from pydantic import BaseModel, Field

# ==== openai_responses.clock


def hex_digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


# ==== openai_responses.json_input

JsonObject = Mapping[str, Any]


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


# ==== owui_administration.host


def exports_telemetry() -> bool:
    try:
        traces = _host_name("env", "ENABLE_OTEL_TRACES")
        metrics = _host_name("env", "ENABLE_OTEL_METRICS")
        return bool(_host_name("env", "ENABLE_OTEL") and (traces or metrics))
    except InvalidRequest:
        return False


def _host_name(module: str, name: str) -> Any:
    try:
        return getattr(import_module(f"open_webui.{module}"), name)
    except (ImportError, AttributeError):
        raise InvalidRequest(
            f"This version of Open WebUI has no {name} in open_webui.{module}, which "
            "the filter of the administration needs. An administrator has to update it."
        ) from None


# ==== owui_administration.telemetry

_SCOPE = "openai_responses_manifold"
_LONGEST = 100
_WORD = re.compile(r"[\w.-]{1,60}", re.ASCII)
_MOST_WORDS = 50
_OTHER = "_OTHER"

_SECOND_BOUNDS = [0.01 * 2**n for n in range(14)]
_TOKEN_BOUNDS = [4**n for n in range(14)]

Events = AsyncGenerator[Any, None]
Describe = Callable[[Any], tuple[str, JsonObject]]

_NO_EXCEPTIONS = {"record_exception": False, "set_status_on_exception": False}


class Telemetry:
    def __init__(self) -> None:
        self._words: set[str] = set()

    def observe_run(
        self, events: Events, facts: JsonObject, describe: Describe
    ) -> Events:
        if not exports_telemetry():
            return events
        return _Run(self._known_word, facts, describe).observed(events)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        if not exports_telemetry():
            return await work
        name = name[:_LONGEST]
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

    def _known_word(self, word: str) -> str:
        is_new = word not in self._words
        if not _WORD.fullmatch(word) or (is_new and len(self._words) >= _MOST_WORDS):
            return _OTHER
        self._words.add(word)
        return word


def _fail(span: Any, word: str) -> None:
    span.set_attribute("error.type", word)
    span.set_status(import_module("opentelemetry.trace").StatusCode.ERROR)


class _Run:
    def __init__(
        self, known_word: Callable[[str], str], facts: JsonObject, describe: Describe
    ) -> None:
        self._trace = import_module("opentelemetry.trace")
        self._meter = import_module("opentelemetry.metrics").get_meter(_SCOPE)
        self._known_word, self._describe = known_word, describe
        self._facts = _attributes(facts)
        self._span = self._trace.get_tracer(_SCOPE).start_span(
            f"chat {facts['model']}",
            kind=self._trace.SpanKind.CLIENT,
            attributes=self._facts,
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

    def _note(self, word: str, facts: JsonObject) -> None:
        if word == "text" and not self._has_text:
            self._has_text = True
            self._record("openai_responses.time_to_first_text", self._seconds())
        elif word in ("retry", "recovery"):
            name = {"retry": "retries", "recovery": "recoveries"}[word]
            self._count(name, "1", 1)
        elif word == "end":
            self._note_end(facts)

    def _note_end(self, facts: JsonObject) -> None:
        kind, code = facts["kind"], facts["code"]
        word = self._known_word(code) if code else kind
        told: dict[str, Any] = {"gen_ai.response.finish_reasons": [word]}
        if facts["model"]:
            told["gen_ai.response.model"] = facts["model"][:_LONGEST]
        usage = as_mapping(facts["usage"])
        for side in ("input", "output") if usage else ():
            told[f"gen_ai.usage.{side}_tokens"] = usage[side]
            more = {"gen_ai.token.type": side}
            self._record("gen_ai.client.token.usage", usage[side], "{token}", more)
        if usage:
            told["gen_ai.usage.cache_read.input_tokens"] = usage["cached"]
        self._span.set_attributes(told)
        if facts["cost"]:
            self._count("cost", "{USD}", facts["cost"])
        self._error = "" if kind in ("completed", "incomplete") else word

    def _end(self) -> None:
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


def _attributes(facts: JsonObject) -> dict[str, Any]:
    is_azure = Endpoint(f"https://{facts['address']}", "").is_azure
    told: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai" if is_azure else "openai",
        "gen_ai.request.model": facts["model"],
        "server.address": facts["address"],
    }
    if facts["task"]:
        told["openai_responses.task"] = facts["task"]
    if facts["has_own_key"]:
        told["openai_responses.own_key"] = True
    return told


# ==== owui_administration.account


class Account:
    def __init__(self, facts: dict[str, Any], telemetry: Telemetry) -> None:
        self._facts = facts
        self._telemetry = telemetry

    def observe_run(
        self, events: Events, facts: dict[str, Any], describe: Describe
    ) -> Events:
        return self._telemetry.observe_run(events, self._facts | facts, describe)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        return await self._telemetry.observe_tool(name, work, has_failed)


# ==== owui_administration.filter


class Filter:
    CONTRACT = 1

    class Valves(BaseModel):
        priority: int = Field(
            default=0, description="When this filter runs, among others."
        )

    def __init__(self) -> None:
        self.valves = self.Valves()
        self._telemetry = Telemetry()

    async def begin(self, facts: dict[str, Any]) -> Account:
        return Account(facts, self._telemetry)
