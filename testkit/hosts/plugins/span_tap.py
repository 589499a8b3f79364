"""
title: Switches telemetry on and answers with what was exported
"""

import json

from open_webui import env
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

SWITCHES = ("ENABLE_OTEL", "ENABLE_OTEL_TRACES", "ENABLE_OTEL_METRICS")


class Pipe:
    """Open WebUI's own set-up, with exporters that keep everything in memory."""

    def __init__(self) -> None:
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.is_set_up = False

    async def pipe(self, body: dict) -> str:  # type: ignore[type-arg]
        """Switch the telemetry `on` or `off`; return what was exported until now."""
        is_on = body["messages"][-1]["content"] == "on"
        for name in SWITCHES:
            setattr(env, name, is_on)
        if is_on and not self.is_set_up:
            self.is_set_up = True
            tracers = TracerProvider()
            tracers.add_span_processor(SimpleSpanProcessor(self.spans))
            trace.set_tracer_provider(tracers)
            metrics.set_meter_provider(MeterProvider([self.reader]))
        spans = [json.loads(span.to_json()) for span in self.spans.get_finished_spans()]
        measured = self.reader.get_metrics_data() if self.is_set_up else None
        return json.dumps([spans, json.loads(measured.to_json()) if measured else {}])
