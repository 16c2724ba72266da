"""The spans of outbound requests."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import urlsplit

from penstock.telemetry import tracing

PORTS = {"http": 80, "https": 443}


def requesting(
    method: str, url: str, lane: str, waited: float
) -> AbstractContextManager[tracing.Span]:
    """Trace a request to another service, after waiting for its permit. Only the host of the URL is
    recorded; the rest may contain the query."""
    parts = urlsplit(url)
    return tracing.span(
        method,
        "client",
        {
            "http.request.method": method,
            "server.address": parts.hostname,
            "server.port": parts.port or PORTS.get(parts.scheme),
            "penstock.lane": lane,
            "penstock.lane.wait_seconds": round(waited, 6),
        },
    )


def naming(span: tracing.Span, options: dict[str, Any]) -> dict[str, Any]:
    """Add the span's trace context to the headers of a request."""
    if span.traceparent is None:
        return options
    headers = {**dict(options.get("headers") or {}), tracing.HEADER: span.traceparent}
    return {**options, "headers": headers}


def answered(span: tracing.Span, status: int) -> None:
    span.set({"http.response.status_code": status})
    if status >= 400:
        span.fail(str(status))
