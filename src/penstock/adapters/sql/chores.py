"""Work that a claim does first: fail overdue jobs, and adopt jobs of kinds that were unknown."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from penstock.adapters.sql import changes
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.errors import describe
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, Topic, Want
from penstock.ports.steps import SLEEP_WAIT, awaited_signal, signal_reason
from penstock.text.normalize import is_storable

STAGE_LIMIT = 1000
ADOPT_LIMIT = 1000
Placed = tuple[int, str, int, str]
"""A job that joins a line: seq, lane, band, tenant."""


async def fail_overdue(tx: Sql) -> None:
    """Fail queued jobs whose deadline has passed."""
    waits: dict[str | None, list[int]] = {}
    for seq, wait in await tx.fetch("overdue", now=tx.now, limit=STAGE_LIMIT):
        waits.setdefault(wait, []).append(seq)
    for wait, seqs in waits.items():
        message = f"its deadline passed {_meanwhile(wait)}"
        error = {"type": "DeadlineExceeded", "message": message, "retryable": False}
        await fail(tx, seqs, error)


def _meanwhile(wait: str | None) -> str:
    """What a queued job did at its deadline, by what it has in place of a lane it waits for."""
    signal = awaited_signal(wait)
    if signal is not None:
        return f"while it waited for {signal_reason(signal)}"
    return "while it slept" if wait == SLEEP_WAIT else "before it could start"


async def adopt(
    tx: Sql, want: Want, line_up: Callable[[Sequence[Placed]], Awaitable[None]]
) -> None:
    """Fill in jobs of our kinds that were enqueued where the kind was unknown, and let them join
    the lines they belong to."""
    for kind, defaults in want.kinds.items():
        rows = await tx.fetch("unknown", kind=kind, unknown=UNKNOWN_LANE, limit=ADOPT_LIMIT)
        if not rows:
            continue
        await tx.execute(
            "adopt",
            seqs=[row["seq"] for row in rows],
            timeout=defaults.timeout,
            max_retries=defaults.max_retries,
        )
        placed, amounts = [], []
        for seq, band, tenant, payload in rows:
            try:
                lane = NO_LANE if defaults.lane_of is None else defaults.lane_of(payload)
                if defaults.amount_of is not None:
                    amounts.append((seq, defaults.amount_of(payload)))
            except Exception as error:  # whatever the user's function raises, only this job fails
                await fail(tx, [seq], without_lane(error))
                continue
            placed.append((seq, lane, band, tenant))
        await line_up(placed)
        if amounts:
            from penstock.adapters.sql.amounts import adopt as adopt_amounts

            await adopt_amounts(tx, amounts)


def without_lane(error: Exception) -> dict[str, Any]:
    """The error of a job from whose payload no lane can be computed."""
    described = describe(error, retryable=False)
    message = f"its lane cannot be computed from the payload: {described['message']}"
    return described | {"message": message}


async def fail(
    tx: Sql, seqs: Sequence[int], error: dict[str, Any], statement: str = "refuse"
) -> None:
    """Fail jobs that were not run: `statement` stores the error, and returns id, tenant and log."""
    record = {"attempt": None, "outcome": "failed", "finished_at": tx.now, "error": error}
    rows: list[Row] = await tx.fetch(
        statement,
        seqs=list(seqs),
        now=tx.now,
        error=json.dumps(error),
        error_type=error["type"],
        record=json.dumps(record),
        history_limit=HISTORY_LIMIT,
    )
    entries = [
        LogEntry(tenant, log, "failed", job_id, {"error": error})
        for job_id, tenant, log in rows
        if log is not None and all(map(is_storable, (job_id, tenant, log)))
    ]
    await changes.append(tx, entries)
    if rows:
        tx.wake(Topic.FINISHED)
