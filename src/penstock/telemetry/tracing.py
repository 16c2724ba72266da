"""OpenTelemetry traces, if the SDK is configured; otherwise nothing is imported.

Whoever sets up the SDK has imported its API, so this never has to. Spans tell names, ids, times and
types of errors. They never tell payloads, addresses with what is asked in them, or what an error
says: that may quote what it was about.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from opentelemetry import trace as api
    from opentelemetry.context import Context

Kind = Literal["internal", "server", "client", "producer", "consumer"]
Value = str | int | float | bool

HEADER = "traceparent"


class Span:
    """A span under way; without an SDK it takes everything and does nothing."""

    __slots__ = ("_span",)

    def __init__(self, span: api.Span | None = None) -> None:
        self._span = span

    @property
    def traceparent(self) -> str | None:
        """How others name it, in the form of the W3C."""
        if self._span is None:
            return None
        context = self._span.get_span_context()
        if not context.is_valid:
            return None
        flags = int(context.trace_flags)
        return f"00-{context.trace_id:032x}-{context.span_id:016x}-{flags:02x}"

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        if self._span is not None:
            self._span.set_attributes(_given(attributes))

    def rename(self, name: str) -> None:
        if self._span is not None:
            self._span.update_name(name)

    def fail(self, error_type: str) -> None:
        if self._span is not None:
            from opentelemetry.trace import StatusCode

            self._span.set_attribute("error.type", error_type)
            self._span.set_status(StatusCode.ERROR)


SILENT = Span()


def on() -> bool:
    """Whether spans go anywhere."""
    api = sys.modules.get("opentelemetry.trace")
    return api is not None and not isinstance(api.get_tracer_provider(), api.ProxyTracerProvider)


@contextmanager
def span(
    name: str,
    kind: Kind = "internal",
    attributes: Mapping[str, Value | None] | None = None,
    *,
    caller: Mapping[str, str] | None = None,
    root: bool = False,
    links: Sequence[str | None] = (),
) -> Iterator[Span]:
    """A span around a block, the child of the one around it. `caller`: the child of the one that
    these headers name, if they do. `root`: of none. `links` are others that led to it."""
    if not on():
        yield SILENT
        return
    from opentelemetry import context as contexts
    from opentelemetry import trace

    parent = contexts.Context() if root else _context_of(caller) if caller else None
    made = trace.get_tracer("penstock").start_span(
        name,
        context=parent,
        kind=trace.SpanKind[kind.upper()],
        attributes=_given(attributes or {}),
        links=[trace.Link(_named(link)) for link in links if link is not None],
        record_exception=False,
        set_status_on_exception=False,
    )
    ours = Span(made)
    token = contexts.attach(trace.set_span_in_context(made, parent))
    try:
        yield ours
    except BaseException as error:
        ours.fail(type(error).__name__)
        raise
    finally:
        contexts.detach(token)
        made.end()


def past(seconds: Mapping[str, float]) -> None:
    """Spans of what has just ended elsewhere, one part after another: how long each took."""
    if not on():
        return
    from opentelemetry import trace

    at = time.time_ns() - round(sum(seconds.values()) * 1e9)
    for name, took in seconds.items():
        made = trace.get_tracer("penstock").start_span(name, start_time=at)
        at += round(took * 1e9)
        made.end(at)


def current() -> Span:
    """The span around the caller."""
    api = sys.modules.get("opentelemetry.trace")
    return SILENT if api is None else Span(api.get_current_span())


def _given(attributes: Mapping[str, Value | None]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _context_of(headers: Mapping[str, str]) -> Context | None:
    """The context of a caller, without its baggage: that could hold anything."""
    if HEADER not in headers:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({HEADER: headers[HEADER]})


def _named(traceparent: str) -> api.SpanContext:
    from opentelemetry import trace

    return trace.get_current_span(_context_of({HEADER: traceparent})).get_span_context()
