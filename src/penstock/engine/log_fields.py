"""What the log says of jobs: which one it is (see `penstock.logs.FIELDS`), and how runs ended."""

from __future__ import annotations

import logging
from typing import Any

from penstock.engine.context import current
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Exchange, Lease, Outcome, Settlement

log = logging.getLogger("penstock")


def of_lease(lease: Lease) -> dict[str, Any]:
    """For `extra=` where an entry is about a job that is not running just there."""
    return {
        "job": lease.id,
        "kind": lease.kind,
        "attempt": lease.attempts,
        "task": lease.task,
        "tenant": lease.tenant,
        "lane": None if lease.lane in (NO_LANE, UNKNOWN_LANE) else lease.lane,
    }


def of_running_job() -> dict[str, Any]:
    """Of the job whose handler makes the entry; empty elsewhere."""
    context = current.get()
    if context is None:
        return {}
    job = context.job
    about = {"job": job.id, "kind": job.kind, "attempt": context.attempt}
    return {**about, "task": job.task, "tenant": job.tenant, "lane": job.lane}


def tell(
    settlement: Settlement, exchange: Exchange, *, stale: bool, cancelled: bool = False
) -> None:
    """Log how a run ended, if that is worth saying. Of an error only its type."""
    lease, error = settlement.lease, settlement.error
    if stale and cancelled:
        message = "job %s (%s) was cancelled while its run ended"
        log.info(message, lease.id, lease.kind, extra=of_lease(lease))
    elif stale and settlement.outcome is not Outcome.HANDED_BACK:
        log.warning(
            "the outcome of job %s (%s, run %d) was refused: "
            "its lease had been taken over, or the queue has lost it",
            lease.id,
            lease.kind,
            lease.attempts,
            extra=of_lease(lease),
        )
    elif error is None or settlement.outcome is Outcome.RELEASED:
        return
    elif lease.ref in exchange.spared:
        message = "job %s (%s) waits for its lane: %s"
        log.info(message, lease.id, lease.kind, error["type"], extra=of_lease(lease))
    elif settlement.outcome is Outcome.FAILED:
        message = "job %s (%s) failed for good: %s"
        log.warning(message, lease.id, lease.kind, error["type"], extra=of_lease(lease))
    else:
        message = "job %s (%s) failed, run %d: %s"
        values = (lease.id, lease.kind, lease.attempts, error["type"])
        log.info(message, *values, extra=of_lease(lease))
