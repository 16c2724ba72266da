"""Log fields and messages of jobs: which job (see `penstock.telemetry.logs.FIELDS`), and how
its runs ended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from penstock.engine.run import current
from penstock.model.redact import hidden
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Exchange, Lease, Outcome, Settlement
from penstock.text.error_text import in_words

log = logging.getLogger("penstock")

MAX_SAID = 1000
"""Characters of an error in the log."""


def of_lease(lease: Lease) -> dict[str, Any]:
    """For `extra=` where an entry is about a job that is not running just there."""
    return {
        "job": lease.id,
        "kind": lease.kind,
        "attempt": lease.attempts,
        "log": lease.log,
        "tenant": lease.tenant,
        "lane": None if lease.lane in (NO_LANE, UNKNOWN_LANE) else lease.lane,
    }


def of_running_job() -> dict[str, Any]:
    """Of the job whose handler makes the entry; empty elsewhere."""
    run = current.get()
    return {} if run is None else of_lease(run.lease)


def tell(
    settlement: Settlement,
    exchange: Exchange,
    *,
    stale: bool,
    quotes: bool,
    names: Sequence[str],
    cancelled: bool = False,
) -> None:
    """Log how a run ended, if that is worth saying: type, message and place of its error, and at
    DEBUG the traceback. Unless it `quotes`, only type and place. Secrets are hidden as they are
    where people look at jobs, also under `names`."""
    lease, error = settlement.lease, settlement.error
    if stale and cancelled:
        message = "job %s (%s) was cancelled while its run ended"
        log.info(message, lease.id, lease.kind, extra=of_lease(lease))
        return
    if stale and settlement.outcome is not Outcome.HANDED_BACK:
        log.warning(
            "the outcome of job %s (%s, run %d) was refused: "
            "its lease had been taken over, or the queue has lost it",
            lease.id,
            lease.kind,
            lease.attempts,
            extra=of_lease(lease),
        )
        return
    if error is None or settlement.outcome in (Outcome.RELEASED, Outcome.SUSPENDED):
        return
    if not quotes:
        error = {name: error[name] for name in ("type", "place") if name in error}
    said = on_one_line(in_words(hidden(error, names), places=True), MAX_SAID)
    if quotes and settlement.traceback and log.isEnabledFor(logging.DEBUG):
        said += "\n" + hidden(settlement.traceback.rstrip(), names)
    if lease.ref in exchange.spared:
        message = "job %s (%s) is waiting for its lane: %s"
        log.info(message, lease.id, lease.kind, said, extra=of_lease(lease))
    elif settlement.outcome is Outcome.FAILED:
        message = "job %s (%s) failed permanently: %s"
        log.warning(message, lease.id, lease.kind, said, extra=of_lease(lease))
    else:
        message = "job %s (%s) failed, run %d: %s"
        values = (lease.id, lease.kind, lease.attempts, said)
        log.info(message, *values, extra=of_lease(lease))


def on_one_line(text: str, most: int) -> str:
    """`text` without line ends and what a terminal would obey, at most so many characters."""
    line = "".join(c if c.isprintable() else " " for c in text[: most + 1])
    return line if len(line) <= most else line[:most] + "..."
