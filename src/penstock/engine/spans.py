"""Trace spans of jobs: one for the enqueue, one for each run.

A run is linked to the span that enqueued its job, and not its child: it may come days later, more
than once, and many of one batch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from penstock.engine.run import Run
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, NewJob
from penstock.telemetry import tracing

SYSTEM = "penstock"


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
        "penstock.log": lease.log,
    }
    name = f"process {lease.kind}"
    with tracing.span(name, "consumer", attributes, root=True, links=[lease.trace]) as span:
        yield
        if run.ended is not None:
            span.set({"penstock.outcome": run.ended.outcome.name.lower()})
            if run.ended.error is not None and "type" in run.ended.error:
                span.fail(run.ended.error["type"])


def _about(kind: str, tenant: str, operation: str) -> dict[str, tracing.Value | None]:
    return {
        "messaging.system": SYSTEM,
        "messaging.destination.name": kind,
        "messaging.operation.name": operation,
        "messaging.operation.type": operation,
        "penstock.tenant": tenant,
    }
