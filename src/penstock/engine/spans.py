"""The spans of jobs: one where it is enqueued, one for each run, one for each request of a run.

A run is linked to the span that enqueued its job, and not its child: it may come days later, more
than once, and many of one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from urllib.parse import urlsplit

from penstock.engine.run import Run
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, NewJob
from penstock.telemetry import tracing

SYSTEM = "penstock"
PORTS = {"http": 80, "https": 443}


def sending(
    kind: str, tenant: str, items: Sequence[NewJob]
) -> AbstractContextManager[tracing.Span]:
    """Around the storing of jobs."""
    one = items[0].id if len(items) == 1 else None
    return tracing.span(
        f"send {kind}",
        "producer",
        {
            **_about(kind, tenant, "send"),
            "messaging.message.id": one,
            "messaging.batch.message_count": len(items) if one is None else None,
        },
    )


@contextmanager
def processing(run: Run) -> Iterator[None]:
    """Around a run, to the end of its handler."""
    lease = run.lease
    attributes = {
        **_about(lease.kind, lease.tenant, "process"),
        "messaging.message.id": lease.id,
        "penstock.job.attempt": lease.attempts,
        "penstock.job.wait_seconds": round(max(0.0, run.started_at - lease.run_at), 6),
        "penstock.lane": None if lease.lane in (NO_LANE, UNKNOWN_LANE) else lease.lane,
        "penstock.task": lease.task,
    }
    name = f"process {lease.kind}"
    with tracing.span(name, "consumer", attributes, root=True, links=[lease.trace]) as span:
        yield
        if run.ended is not None:
            span.set({"penstock.outcome": run.ended.outcome.name.lower()})
            if run.ended.error is not None and "type" in run.ended.error:
                span.fail(run.ended.error["type"])


def requesting(
    method: str, url: str, lane: str, waited: float
) -> AbstractContextManager[tracing.Span]:
    """Around a request to another service, for which a permit was waited for. Of its address only
    the host is told: the rest may be what is asked."""
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
    """The options of a request with the span it belongs to among its headers."""
    if span.traceparent is None:
        return options
    headers = {**dict(options.get("headers") or {}), tracing.HEADER: span.traceparent}
    return {**options, "headers": headers}


def answered(span: tracing.Span, status: int) -> None:
    span.set({"http.response.status_code": status})
    if status >= 400:
        span.fail(str(status))


def _about(kind: str, tenant: str, operation: str) -> dict[str, tracing.Value | None]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": kind,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "penstock.tenant": tenant,
    }
