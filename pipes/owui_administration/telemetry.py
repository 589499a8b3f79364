"""Spans and metrics of runs and tools, where Open WebUI's OpenTelemetry is on.

Names are those of the semantic conventions for generative AI (docs/telemetry.md). They
hold no text of a chat, and nothing about a person. Where the host exports nothing,
nothing is imported or measured.
"""

import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from importlib import import_module
from time import monotonic
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.json_input import JsonObject
from owui_administration.host import exports_telemetry

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

Events = AsyncGenerator[Any, None]
"""The pipe's events, which only the pipe can read."""
Describe = Callable[[Any], tuple[Any, ...]]
"""Returns what an event of the pipe is: `text`, `retry`, `recovery`, nothing, or `end`,
with how the run ended, the code of the reason or None, and the model that answered."""

_NO_EXCEPTIONS = {"record_exception": False, "set_status_on_exception": False}
"""Their texts may hold what a span must not."""


def _exported(name: str) -> str:
    """Return a name that can be exported.

    One with half a character (a lone surrogate) would end the export of all spans that
    wait with it, those of others too.
    """
    return name[:_MAX_NAME].encode("utf-8", "replace").decode()


class ServerWords:
    """The words of servers that are kept apart, for all calls of the pipe."""

    def __init__(self) -> None:
        """Know none yet."""
        self._known: set[str] = set()

    def known(self, word: str) -> str:
        """Return a word, or that for all others if there are too many."""
        if word in self._known:
            return word
        if not _WORD.fullmatch(word) or len(self._known) >= _MAX_WORDS:
            return _OTHER
        self._known.add(word)
        return word


class Telemetry:
    """What the host's collector learns of one call of the pipe."""

    def __init__(self, facts: JsonObject, words: ServerWords) -> None:
        """Measure nothing yet; `facts` are those of `Filter.begin`."""
        self._facts = facts
        self._words = words
        self._run: _Run | None = None

    def count(self, counts: tuple[int, int, int, int], cost: float | None) -> None:
        """Add what responses of the run have used (see `Account.count_responses`)."""
        if self._run:
            self._run.add_usage(counts, cost or 0)

    def observe_run(
        self, events: Events, model: str, address: str, describe: Describe
    ) -> Events:
        """Return the events of a run, measured if the host exports that.

        `address` is the server's. `describe` is asked about each event.
        """
        if not exports_telemetry():
            return events
        attributes = _run_attributes(self._facts, model, address)
        self._run = _Run(self._words, attributes, describe)
        return self._run.observed(events)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        """Return the result of a tool, whose time is a span inside that of its run."""
        if not exports_telemetry():
            return await work
        # A model writes the name of the tool that it calls.
        name = _exported(name)
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": name,
        }
        tracer = import_module("opentelemetry.trace").get_tracer(_SCOPE)
        with tracer.start_as_current_span(
            f"execute_tool {name}", attributes=attributes, **_NO_EXCEPTIONS
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
    """Mark a span as failed; `word` says why."""
    span.set_attribute("error.type", word)
    span.set_status(import_module("opentelemetry.trace").StatusCode.ERROR)


class _Run:
    """What is measured of one run."""

    def __init__(
        self, words: ServerWords, attributes: dict[str, Any], describe: Describe
    ) -> None:
        self._trace = import_module("opentelemetry.trace")
        self._meter = import_module("opentelemetry.metrics").get_meter(_SCOPE)
        self._words = words
        self._describe = describe
        self._attributes = attributes
        self._requests = 0
        self._input_tokens = 0
        self._cached_tokens = 0
        self._output_tokens = 0
        self._cost = 0.0
        self._span = self._trace.get_tracer(_SCOPE).start_span(
            f"chat {attributes['gen_ai.request.model']}",
            kind=self._trace.SpanKind.CLIENT,
            attributes=attributes,
        )
        self._began = monotonic()
        self._has_text = False
        self._error = "cancelled"

    def add_usage(self, counts: tuple[int, int, int, int], cost: float) -> None:
        """Add what responses have used (see `Account.count_responses`)."""
        requests, input_tokens, cached_tokens, output_tokens = counts
        self._requests += requests
        self._input_tokens += input_tokens
        self._cached_tokens += cached_tokens
        self._output_tokens += output_tokens
        self._cost += cost

    async def observed(self, events: Events) -> Events:
        """Yield `events`; what is done for them belongs to the span.

        The span is the current one only while an event is awaited: between two events
        the reader goes on in its own context, and may close the run in another task.
        """
        try:
            async with aclosing(events):
                while True:
                    event = await self._next(events)
                    if event is None:
                        break
                    self._note(*self._describe(event))
                    yield event
        except Exception as error:
            self._error = type(error).__name__
            raise
        finally:
            self._end()

    async def _next(self, events: Events) -> Any:
        """Return the next event, None at the end; it belongs to the span."""
        with self._trace.use_span(self._span, **_NO_EXCEPTIONS):
            return await anext(events, None)

    def _note(self, word: str = "", *more: Any) -> None:
        """Note an event, in the words of `Describe`."""
        match word:
            case "text" if not self._has_text:
                self._has_text = True
                self._record("openai_responses.time_to_first_text", self._seconds())
            case "retry":
                self._count("retries", "1", 1)
            case "recovery":
                self._count("recoveries", "1", 1)
            case "end":
                self._note_end(*more)

    def _note_end(self, kind: str, code: str | None, model: str) -> None:
        """Note how the run ended."""
        word = self._words.known(code) if code else kind
        self._span.set_attribute("gen_ai.response.finish_reasons", [word])
        if model:
            self._span.set_attribute("gen_ai.response.model", _exported(model))
        self._error = "" if kind in ("completed", "incomplete") else word

    def _note_usage(self) -> None:
        """Note what the run has used."""
        cached = self._cached_tokens
        self._span.set_attribute("gen_ai.usage.cache_read.input_tokens", cached)
        tokens = {"input": self._input_tokens, "output": self._output_tokens}
        for kind, count in tokens.items():
            self._span.set_attribute(f"gen_ai.usage.{kind}_tokens", count)
            more = {"gen_ai.token.type": kind}
            self._record("gen_ai.client.token.usage", count, "{token}", more)
        if self._cost:
            self._count("cost", "{USD}", self._cost)

    def _end(self) -> None:
        """Note the end; a server may have said nothing of what was used."""
        if self._requests or self._input_tokens or self._output_tokens:
            self._note_usage()
        if self._error:
            self._attributes["error.type"] = self._error
            _fail(self._span, self._error)
        self._record("gen_ai.client.operation.duration", self._seconds())
        self._span.end()

    def _seconds(self) -> float:
        return monotonic() - self._began

    def _count(self, name: str, unit: str, number: float) -> None:
        counter = self._meter.create_counter(f"openai_responses.{name}", unit)
        counter.add(number, self._attributes)

    def _record(
        self, name: str, number: float, unit: str = "s", more: JsonObject | None = None
    ) -> None:
        bounds = _SECOND_BOUNDS if unit == "s" else _TOKEN_BOUNDS
        histogram = self._meter.create_histogram(
            name, unit, explicit_bucket_boundaries_advisory=bounds
        )
        histogram.record(number, {**self._attributes, **(more or {})})


def _run_attributes(facts: JsonObject, model: str, address: str) -> dict[str, Any]:
    """Return what is known of a run from its beginning."""
    is_azure = Endpoint(f"https://{address}", "").is_azure
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "azure.ai.openai" if is_azure else "openai",
        "gen_ai.request.model": _exported(model),
        "server.address": address,
    }
    if facts["task"]:
        attributes["openai_responses.task"] = facts["task"]
    if facts["has_own_key"]:
        attributes["openai_responses.own_key"] = True
    return attributes
