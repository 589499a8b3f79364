"""OpenTelemetry's interface with a memory in the place of an exporter."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

Json = dict[str, Any]


class RememberedSpan(trace.NonRecordingSpan):
    """A span with what was said of it."""

    def __init__(self, name: str, inside: str, kind: Any, attributes: Json) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.inside = inside
        self.kind = kind
        self.told = dict(attributes)
        self.failed = self.ended = False

    def set_attribute(self, key: str, value: Any) -> None:
        self.told[key] = value

    def set_attributes(self, attributes: Any) -> None:
        self.told |= attributes

    def is_recording(self) -> bool:
        """Say yes: OpenTelemetry tells exceptions to such spans alone."""
        return True

    def record_exception(self, exception: BaseException, *_: Any, **__: Any) -> None:
        """Note the text of an exception, as an exporter would send it."""
        self.told["exception.message"] = str(exception)

    def set_status(self, status: Any, description: str | None = None) -> None:
        if isinstance(status, trace.Status):
            status, description = status.status_code, status.description
        self.failed = status is trace.StatusCode.ERROR
        if description is not None:
            self.told["status.description"] = description

    def end(self, end_time: int | None = None) -> None:
        """Note the end, which there is once."""
        assert not self.ended
        self.ended = True


@dataclass
class Memory:
    """The spans, and all measurements by the name of their instrument.

    `bounds` are those of the histograms.
    """

    spans: list[RememberedSpan] = field(default_factory=list)
    measured: list[tuple[str, float, Json]] = field(default_factory=list)
    bounds: dict[str, list[float]] = field(default_factory=dict)

    def values(self, name: str) -> list[float]:
        return [value for instrument, value, _ in self.measured if instrument == name]

    def start_span(
        self, name: str, kind: Any = None, attributes: Any = None
    ) -> RememberedSpan:
        """Begin a span inside the current one (Tracer)."""
        inside = getattr(trace.get_current_span(), "name", "")
        self.spans.append(RememberedSpan(name, inside, kind, attributes))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(
        self,
        name: str,
        *,
        attributes: Any,
        record_exception: bool,
        set_status_on_exception: bool,
    ) -> Iterator[RememberedSpan]:
        """Begin a span that is the current one (Tracer)."""
        span = self.start_span(name, attributes=attributes)
        with trace.use_span(
            span,
            end_on_exit=True,
            record_exception=record_exception,
            set_status_on_exception=set_status_on_exception,
        ):
            yield span

    def create_counter(self, name: str, unit: str = "") -> Any:
        """Return an instrument (Meter)."""

        def add(number: float, attributes: Any) -> None:
            self.measured.append((name, number, attributes))

        return SimpleNamespace(add=add)

    def create_histogram(
        self, name: str, unit: str = "", *, explicit_bucket_boundaries_advisory: Any
    ) -> Any:
        """Return an instrument (Meter)."""
        self.bounds[name] = explicit_bucket_boundaries_advisory

        def record(number: float, attributes: Any) -> None:
            self.measured.append((name, number, attributes))

        return SimpleNamespace(record=record)


def remember(patch: pytest.MonkeyPatch) -> Memory:
    """Let Open WebUI's telemetry be on, and return what arrives."""
    memory = Memory()
    for name in ("ENABLE_OTEL", "ENABLE_OTEL_TRACES", "ENABLE_OTEL_METRICS"):
        patch.setattr(sys.modules["open_webui.env"], name, True, raising=False)
    patch.setattr("opentelemetry.trace.get_tracer", lambda _: memory)
    patch.setattr("opentelemetry.metrics.get_meter", lambda _: memory)
    return memory
