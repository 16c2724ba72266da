"""Taking back what a dead or lapsed process held."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

from penstock.adapters.life import SUFFIX, proven_dead, started_jobs
from penstock.adapters.sqlite import changes
from penstock.adapters.sqlite.database import Transaction, sql
from penstock.adapters.sqlite.lanes import free_slots
from penstock.model.job import DEFAULT_MAX_RETRIES, HISTORY_LIMIT
from penstock.ports.queue import Topic


def lapsed(tx: Transaction, folder: Path, me: int) -> None:
    """End every membership that was not renewed in time (its process is frozen or far away).
    Not one's own: whoever asks is alive, and its late renewal is on its way."""
    rows = tx.execute(
        "SELECT number, id, life FROM processes WHERE lease_until < ? AND number <> ?",
        (tx.now, me),
    ).fetchall()
    for number, member, life in rows:
        started = started_jobs(folder / life)
        end_membership(tx, number, member, started, "its lease was not renewed")


def dead(tx: Transaction, folder: Path, number: int, life: str) -> None:
    """End a membership if its process is provably dead."""
    path = folder / life
    with proven_dead(path) as is_dead:
        row = tx.execute("SELECT id, boot FROM processes WHERE number = ?", (number,)).fetchone()
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            started = started_jobs(path) if row[1] == boot_id() else None
            end_membership(tx, number, row[0], started, "its process died")


def end_membership(
    tx: Transaction, number: int, member: str, started: Mapping[int, int] | None, why: str
) -> None:
    """Queue or bury all that the member holds, and forget it.

    `started` tells which of its jobs were running (seq to token): those have spent an attempt
    and have a crash on their record. None: nobody can tell (the power failed, or the file is
    gone). Then a job that was already running alone is taken to be the cause, and the others
    are only marked, so that from now on they run alone and are counted exactly.
    """
    for row in tx.execute(sql("held"), {"member": number}).fetchall():
        seq, job_id, kind, tenant, task, state, token = row[:7]
        attempts, max_retries, crashes, started_at = row[7:]
        if state != "running":  # cancelled while it ran: only the run had still to end
            tx.execute("UPDATE jobs SET holder = NULL WHERE seq = ?", (seq,))
            continue
        ran = crashes > 0 if started is None else started.get(seq) == token
        suspect = ran or started is None
        retries = DEFAULT_MAX_RETRIES if max_retries is None else max_retries
        buried = ran and attempts > retries
        error = {
            "type": "WorkerLost",
            "message": f"the worker process running it was lost: {why}",
            "retryable": not buried,
        }
        record = {
            "attempt": attempts,
            "outcome": "failed" if buried else "lost",
            "started_at": started_at,
            "finished_at": tx.now,
            "process": member,
            "error": error,
        }
        tx.execute(
            sql("taken_back"),
            {
                "seq": seq,
                "state": "failed" if buried else "queued",
                "ready": 0 if buried else (2 if crashes or suspect else 1),
                "attempts": attempts if ran else attempts - 1,
                "crashes": crashes + suspect,
                "error": json.dumps(error) if ran else None,
                "finished_at": tx.now if buried else None,
                "record": json.dumps(record) if ran else None,
                "history_limit": HISTORY_LIMIT,
            },
        )
        if task is not None and ran:
            what = "failed" if buried else "retry"
            data = {"kind": kind, "attempt": attempts, "error": error}
            changes.append(tx, [changes.Entry(tenant, task, what, job_id, data)])
    free_slots(tx, number)
    tx.execute("DELETE FROM processes WHERE number = ?", (number,))
    tx.wake(Topic.READY)
    tx.wake(Topic.FINISHED)


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


def boot_id() -> str:
    """Names this run of the machine; '' where the system does not tell."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def sweep_files(folder: Path, known: set[str]) -> None:
    """Remove life files of dead processes that no membership names any more."""
    for path in folder.glob(f"*{SUFFIX}"):
        if path.name not in known:
            with proven_dead(path) as is_dead:
                if is_dead:
                    path.unlink(missing_ok=True)
