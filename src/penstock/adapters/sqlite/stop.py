"""Logs that take no more jobs; and what is noted in a log beside its jobs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.adapters.sqlite import cascade, changes, selection
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.ports.queue import NewJobs, Stopped


def stop(tx: Transaction, tenant: str, log: str, running: bool, whole: bool) -> Stopped:
    """Close the log and cancel what of it is not finished, or, unless `running`, not begun."""
    closed = tx.execute(
        "INSERT INTO stopped_logs (tenant, log, at, whole_before) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (tenant, log, tx.now, tx.now if whole else None),
    ).rowcount
    if not whole:
        tx.execute(
            "UPDATE stopped_logs SET whole_before = NULL WHERE tenant = ? AND log = ?",
            (tenant, log),
        )
    rows = tx.execute(
        "SELECT seq, id, tenant, log, state FROM jobs"
        " WHERE tenant = ? AND log = ? AND state IN ('queued', 'running') ORDER BY seq",
        (tenant, log),
    ).fetchall()
    if running:
        ended = rows
        selection.cancel_rows(tx, ended)
    else:
        cancelled = cancel_requeued(tx, [row[0] for row in rows])
        ended = [row for row in rows if row[0] in cancelled]
        selection.announce(tx, ended, "cancelled")
    outcome = Stopped(len(ended), len(rows) - len(ended))
    if closed or ended:
        note(tx, tenant, log, "stopped", outcome._asdict())
    return outcome


def reopen(tx: Transaction, tenant: str, log: str) -> None:
    here = "DELETE FROM stopped_logs WHERE tenant = ? AND log = ?"
    if tx.execute(here, (tenant, log)).rowcount:
        note(tx, tenant, log, "resumed", {})


def note(tx: Transaction, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
    changes.append(tx, [LogEntry(tenant, log, what, "", dict(data))])


def stopped(connection: sqlite3.Connection, logs: Sequence[tuple[str, str]]) -> list[bool]:
    rows = connection.execute(
        "SELECT s.log IS NOT NULL FROM json_each(?) AS t LEFT JOIN stopped_logs AS s"
        " ON s.tenant = t.value ->> 0 AND s.log = t.value ->> 1 ORDER BY t.key",
        (json.dumps(list(logs)),),
    )
    return [bool(is_stopped) for (is_stopped,) in rows]


def refuses(tx: Transaction, batch: NewJobs) -> bool:
    """Whether the log of a batch is stopped, and they are no children of a job that may finish
    with them."""
    row = tx.execute(
        "SELECT whole_before FROM stopped_logs WHERE tenant = ? AND log = ?",
        (batch.tenant, batch.log),
    ).fetchone()
    if row is None or not batch.attached:
        return row is not None
    parent = (
        "SELECT 1 FROM jobs WHERE id = ? AND state = 'running' AND tenant = ? AND log = ?"
        " AND enqueued_at <= ?"
    )
    values = (batch.parent_id, batch.tenant, batch.log, row[0])
    return tx.execute(parent, values).fetchone() is None


def cancel_requeued(tx: Transaction, seqs: Sequence[int]) -> set[int]:
    """Of jobs that were just queued again, those whose log is stopped are cancelled instead."""
    rows = tx.execute(sql("cancel_requeued"), {"seqs": json.dumps(list(seqs)), "now": tx.now})
    cancelled = {seq for (seq,) in rows.fetchall()}
    if cancelled:
        cascade.mark(tx, list(cancelled))
    return cancelled
