"""Spans, gathered in memory or by a collector on loopback."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.support.counting_server import CountingServer


class Spans:
    """What has ended so far."""

    def __init__(self) -> None:
        self._kept = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self._kept))

    def all(self) -> list[ReadableSpan]:
        return list(self._kept.get_finished_spans())

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.all() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        found = self.named(name)
        assert len(found) == 1, f"{name}: {[span.name for span in self.all()]}"
        return found[0]

    def text(self) -> str:
        """All that is told, for looking for what should not be."""
        return "\n".join(span.to_json() for span in self.all())


def gathered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """For a fixture: an SDK is set up for as long as the test lasts."""
    spans = Spans()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", spans.provider)
    yield spans
    spans.provider.shutdown()


def place(span: ReadableSpan) -> tuple[int, int]:
    """Trace and span."""
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def parent(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def linked(span: ReadableSpan) -> list[tuple[int, int]]:
    return [(link.context.trace_id, link.context.span_id) for link in span.links]


def about(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


class Collector(CountingServer):
    """Takes spans over HTTP."""

    @property
    def names(self) -> set[str]:
        """Of all the spans it was sent."""
        return {span.name for span in self._spans()}

    @property
    def traces(self) -> set[str]:
        """Which traces they are of."""
        return {span.trace_id.hex() for span in self._spans()}

    def above(self, name: str) -> list[str]:
        """The names of the spans around this one, the innermost first."""
        by_id = {span.span_id: span for span in self._spans()}
        [span] = [span for span in by_id.values() if span.name == name]
        found = []
        while (span := by_id.get(span.parent_span_id)) is not None:
            found.append(span.name)
        return found

    @property
    def services(self) -> set[str]:
        return {
            attribute.value.string_value
            for request in self._requests()
            for resource in request.resource_spans
            for attribute in resource.resource.attributes
            if attribute.key == "service.name"
        }

    @property
    def text(self) -> str:
        return "\n".join(str(request) for request in self._requests())

    def _spans(self) -> Iterator[Any]:
        for request in self._requests():
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    yield from scope.spans

    def _requests(self) -> Iterator[ExportTraceServiceRequest]:
        for hit in list(self.hits):
            if hit.path == "/v1/traces":
                zipped = hit.headers.get("content-encoding") == "gzip"
                yield ExportTraceServiceRequest.FromString(
                    gzip.decompress(hit.body) if zipped else hit.body
                )
