"""Takes over the jobs of a dead or expired process."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from penstock.adapters.life_file import Started, proven_dead, started_jobs
from penstock.adapters.sql import changes
from penstock.adapters.sql.stop import cancel_requeued
from penstock.adapters.sql.takeover import boot_id, take_back, tell, told
from penstock.adapters.sqlite.lanes import free_slots
from penstock.adapters.sqlite.transaction import Transaction, run, sql
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.queue import Topic


def lapsed(tx: Transaction, folder: Path, me: int) -> None:
    """End every membership that was not renewed in time (its process is frozen or far away).
    Not one's own: whoever asks is alive, and its late renewal is on its way."""
    rows = tx.execute(
        "SELECT number, id, life, host, pid FROM processes WHERE lease_until < ? AND number <> ?",
        (tx.now, me),
    ).fetchall()
    for number, member, life, host, pid in rows:
        started, why = started_jobs(folder / life), "its lease was not renewed"
        tell(host, pid, why, end_membership(tx, number, member, started, why))


def dead(tx: Transaction, folder: Path, number: int, life: str) -> None:
    """End a membership if its process is provably dead."""
    path = folder / life
    with proven_dead(path) as is_dead:
        here = "SELECT id, boot, host, pid FROM processes WHERE number = ? AND life = ?"
        row = tx.execute(here, (number, life)).fetchone()
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            member, boot, host, pid = row
            started, why = started_jobs(path) if boot == boot_id() else None, "its process died"
            tell(host, pid, why, end_membership(tx, number, member, started, why))


def end_membership(
    tx: Transaction, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all that the member holds, and forget it; see `take_back` for `started`.
    Returns what that was, (id, kind)."""
    backs, jobs = [], []
    for row in tx.execute(sql("held"), {"member": number}).fetchall():
        if row[5] != "running":  # cancelled while it ran: only the run had still to end
            tx.execute("UPDATE jobs SET holder = NULL WHERE seq = ?", (row[0],))
            continue
        back = take_back(row, member, started, why, tx.now)
        tx.execute(
            sql("taken_back"),
            {
                "seq": back.seq,
                "state": back.state,
                "ready": back.ready,
                "attempts": back.attempts,
                "crashes": back.crashes,
                "error": json.dumps(back.error) if back.error else None,
                "finished_at": back.finished_at,
                "record": json.dumps(back.record) if back.record else None,
                "history_limit": HISTORY_LIMIT,
            },
        )
        backs.append(back)
        jobs.append((row[1], row[2]))
    cancelled = run(cancel_requeued(tx.shared, [back.seq for back in backs]))
    run(changes.append(tx.shared, told(backs, cancelled)))
    free_slots(tx, number)
    tx.execute("DELETE FROM processes WHERE number = ?", (number,))
    tx.wake(Topic.READY)
    tx.wake(Topic.FINISHED)
    return jobs


def suspects(
    connection: sqlite3.Connection, folder: Path, me: int, now: float
) -> list[tuple[int, str]]:
    """Other members (number, life) that are dead or lapsed; a cheap look before any writing."""
    found = []
    for member, life, lease_until in connection.execute(
        "SELECT number, life, lease_until FROM processes WHERE number <> ?", (me,)
    ):
        if lease_until < now:
            found.append((member, life))
            continue
        with proven_dead(folder / life) as is_dead:
            if is_dead:
                found.append((member, life))
    return found
