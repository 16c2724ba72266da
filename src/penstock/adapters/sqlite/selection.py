"""Job filters as SQL conditions, and what people do to the jobs they select."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite import cascade, changes
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.model.job import HISTORY_LIMIT, JobState
from penstock.ports.queue import JobFilter, Topic

CHUNK = 1000
"""Jobs changed in one transaction, so that a large selection does not lock others out."""

_OPEN = (
    "NOT EXISTS (SELECT 1 FROM stopped_logs AS s WHERE s.tenant = jobs.tenant AND s.log = jobs.log)"
)


def condition(where: JobFilter) -> tuple[str, list[Any]]:
    """`where` as an SQL condition and its parameters."""
    parts: list[str] = []
    values: list[Any] = []

    def add(part: str, value: Any) -> None:
        parts.append(part)
        values.append(value)

    if where.ids is not None:
        add("id IN (SELECT value FROM json_each(?))", json.dumps(list(where.ids)))
    if where.states is not None:
        # Literals, not parameters: a partial index is used only if its condition is visible.
        names = ", ".join(f"'{JobState(state).value}'" for state in where.states)
        parts.append(f"state IN ({names})" if "," in names else f"state = {names or 'NULL'}")
    if where.kind is not None:
        add("kind GLOB ?" if any(c in where.kind for c in "*?[") else "kind = ?", where.kind)
    if where.tenant is not None:
        add("tenant = ?", where.tenant)
    if where.log is not None:
        add("log = ?", where.log)
    if where.parent_id is not None:
        add("parent_id = ?", where.parent_id)
    if where.error_type is not None:
        add("error ->> 'type' = ?", where.error_type)
    if where.lane is not None:
        # The condition of the index, word for word.
        add("lane = ? AND lane NOT IN ('', '?')", where.lane)
    if where.priority is not None:
        add("priority = ?", int(where.priority))
    if where.enqueued_after is not None:
        add("enqueued_at >= ?", where.enqueued_after)
    if where.enqueued_before is not None:
        add("enqueued_at < ?", where.enqueued_before)
    return " AND ".join(parts) or "true", values


def cancel(tx: Transaction, where: JobFilter) -> list[str]:
    """Cancel up to CHUNK matching jobs that are not finished."""
    return cancel_rows(tx, _select(tx, where, "state IN ('queued', 'running')"))


def cancel_rows(tx: Transaction, rows: list[Any]) -> list[str]:
    """Cancel jobs given by seq, id, tenant, log, state; their ids."""
    seqs = json.dumps([row[0] for row in rows])
    tx.execute(
        "UPDATE jobs SET state = 'cancelled', ready = 0, finished_at = ?"
        " WHERE seq IN (SELECT value FROM json_each(?))",
        (tx.now, seqs),
    )
    cascade.mark(tx, [row[0] for row in rows])
    if any(row[4] == "running" for row in rows):
        tx.wake(Topic.CANCELLED)
    return announce(tx, rows, "cancelled")


def cancel_children(tx: Transaction) -> bool:
    """Cancel a batch of jobs whose parents were; whether there are more."""
    parents = cascade.parents(tx)
    cancel_rows(tx, cascade.children(tx, parents))
    cascade.forget(tx, parents)
    return cascade.pending(tx.connection)


def redrive(tx: Transaction, where: JobFilter) -> list[str]:
    """Queue up to CHUNK matching dead letters again, but none of a stopped log."""
    rows = _select(tx, where, f"state = 'failed' AND {_OPEN}")
    for row in rows:
        record = {"attempt": None, "outcome": "redriven", "finished_at": tx.now, "error": None}
        tx.execute(
            sql("redrive"),
            {
                "seq": row[0],
                "now": tx.now,
                "record": json.dumps(record),
                "history_limit": HISTORY_LIMIT,
            },
        )
    if rows:
        tx.wake(Topic.READY)
    return announce(tx, rows, "redriven")


def discard(tx: Transaction, where: JobFilter) -> list[str]:
    """Delete up to CHUNK matching dead letters."""
    rows = _select(tx, where, "state = 'failed'")
    seqs = json.dumps([row[0] for row in rows])
    tx.execute("DELETE FROM jobs WHERE seq IN (SELECT value FROM json_each(?))", (seqs,))
    return announce(tx, rows, "discarded")


def _select(tx: Transaction, where: JobFilter, states: str) -> list[Any]:
    text, values = condition(where)
    return tx.execute(
        f"SELECT seq, id, tenant, log, state FROM jobs WHERE {states} AND {text}"
        f" ORDER BY seq LIMIT {CHUNK}",
        values,
    ).fetchall()


def announce(tx: Transaction, rows: list[Any], what: str) -> list[str]:
    """Tell the logs of jobs (as for `cancel_rows`), and who waits, what happened; their ids."""
    entries = [
        LogEntry(tenant, log, what, job_id, {})
        for _, job_id, tenant, log, _ in rows
        if log is not None
    ]
    changes.append(tx, entries)
    if rows:
        tx.wake(Topic.FINISHED)
    return [row[1] for row in rows]


def work_left(connection: sqlite3.Connection, kinds: list[str] | None) -> bool:
    """Whether any job (of these kinds) is queued, running, or still being stopped."""
    if kinds is not None:
        row = connection.execute(sql("work_left"), {"kinds": json.dumps(kinds)}).fetchone()
    else:
        row = connection.execute(
            "SELECT EXISTS (SELECT 1 FROM jobs WHERE ready > 0)"
            " OR EXISTS (SELECT 1 FROM jobs WHERE state = 'queued' AND ready = 0)"
            " OR EXISTS (SELECT 1 FROM jobs WHERE holder IS NOT NULL)"
        ).fetchone()
    return bool(row[0])
