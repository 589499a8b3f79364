"""Spans and metrics of runs and tools, where Open WebUI's OpenTelemetry is on.

Names are those of the semantic conventions for generative AI (docs/telemetry.md). They
hold no text of a chat, and nothing about a person. Where the host exports nothing,
nothing is imported or measured.
"""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeVar

from openai_responses.clock import monotonic_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.json_input import well_formed
from owui_administration.host import exports_telemetry
from shells.administration import CallFacts, EventWords, ResponseCounts

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
