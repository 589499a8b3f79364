"""Spans and metrics of runs and tools, where Open WebUI's OpenTelemetry is on.

Names are those of the semantic conventions for generative AI (docs/telemetry.md). They
hold no text of a chat, and nothing about a person. Where the host exports nothing,
nothing is imported or measured.
"""

import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing
from importlib import import_module
from time import monotonic
from typing import Any

from openai_responses.endpoint import Endpoint
from openai_responses.json_input import JsonObject
from owui_administration.host import exports_telemetry

_SCOPE = "openai_responses_manifold"
_LONGEST = 100
_WORD = re.compile(r"[\w.-]{1,60}", re.ASCII)
_MOST_WORDS = 50
"""Words of servers that are told apart: each is a series of its own in a database."""
_OTHER = "_OTHER"
"""The conventions' word for all that are not told apart."""

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
    return name[:_LONGEST].encode("utf-8", "replace").decode()


class ServerWords:
    """The words of servers that are told apart, for all calls of the pipe."""

    def __init__(self) -> None:
        """Know none yet."""
        self._known: set[str] = set()

    def known(self, word: str) -> str:
        """Return a word, or that for all others if there are too many."""
        is_new = word not in self._known
        if not _WORD.fullmatch(word) or (is_new and len(self._known) >= _MOST_WORDS):
            return _OTHER
        self._known.add(word)
        return word


class Telemetry:
    """What the host's collector learns of one call of the pipe."""

    def __init__(self, facts: JsonObject, words: ServerWords) -> None:
        """Measure nothing yet; `facts` are those of `Filter.begin`."""
        self._facts, self._words = facts, words
        self._run: _Run | None = None

    def count(self, counts: Sequence[int], cost: float | None) -> None:
        """Add what responses of the run have used (see `Account.count_responses`)."""
        if self._run:
            self._run.used = [
                a + b for a, b in zip(self._run.used, counts, strict=True)
            ]
            self._run.cost += cost or 0

    def observe_run(
        self, events: Events, model: str, address: str, describe: Describe
    ) -> Events:
        """Return the events of a run, measured if the host exports that.

        `address` is the server's. `describe` is asked about each event.
        """
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
        """Return the result of a tool, whose time is a span inside that of its run."""
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
    """What is measured of one run.

    `used` are requests, input tokens, cached ones of them, and output tokens.
    """

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
        """Yield `events`; what is done for them belongs to the span.

        The span is the current one only while an event is awaited: between two events
        the reader goes on in its own context, and may close the run in another task.
        """
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
        """Note how the run ended."""
        word = self._words.known(code) if code else kind
        told: dict[str, Any] = {"gen_ai.response.finish_reasons": [word]}
        if model:
            told["gen_ai.response.model"] = _exported(model)
        self._span.set_attributes(told)
        self._error = "" if kind in ("completed", "incomplete") else word

    def _note_usage(self) -> None:
        """Note what the run has used; a server may have said nothing of it."""
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
    """Return what is known of a run from its beginning."""
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
