"""Ends memberships of dead and expired processes: what becomes of their jobs, and stores it."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.adapters.lease_watch import MemberLook
from penstock.adapters.life_file import SUFFIX, Started, print_of, proven_dead, started_jobs
from penstock.adapters.sql import changes
from penstock.adapters.sql.dialect import Sql
from penstock.adapters.sql.lanes import LaneRows
from penstock.adapters.sql.settlement_rows import CANCELLED, LogEntry
from penstock.adapters.sql.stop import cancel_requeued
from penstock.model.job import DEFAULT_MAX_RETRIES, HISTORY_LIMIT
from penstock.ports.queue import Topic

if TYPE_CHECKING:
    from penstock.adapters.sql.queue import SqlQueue

log = logging.getLogger("penstock")

NAMED = 5
"""Jobs that the log names, of those that were taken back from one process."""
STOPPED = "it stopped"
DIED = "its process died"
LAPSED = "its lease was not renewed"
"""Why a membership ends."""


class TakenBack(NamedTuple):
    """A job whose holder is gone: queued again, or buried when its attempts are spent."""

    seq: int
    state: str
    ready: int
    attempts: int
    crashes: int
    error: dict[str, Any] | None
    finished_at: float | None
    record: dict[str, Any] | None
    entry: LogEntry | None
    """What its log is told."""
    farewell: LogEntry | None
    """What it is told instead if the log is stopped, and the job is cancelled."""


def take_back(
    row: Sequence[Any], member: str, started: Started | None, why: str, now: float
) -> TakenBack:
    """The verdict on a running job (see `held.sql` for the row).

    `started` tells which jobs of the member were running: those have spent an attempt and have a
    crash on their record. None: nobody can tell (the power failed, or the file is gone or
    elsewhere). Then a job that was already running alone is taken to be the cause, and the others
    are only marked, so that from now on they run alone and are counted exactly.
    """
    seq, job_id, kind, tenant, log, _, token, attempts, max_retries, crashes, started_at = row
    ran = crashes > 0 if started is None else started.get(seq) == (token, print_of(job_id))
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
        "finished_at": now,
        "process": member,
        "error": error,
    }
    entry = farewell = None
    if log is not None:
        data = {"kind": kind, "attempt": attempts, "error": error}
        farewell = LogEntry(tenant, log, CANCELLED, job_id, data)
        if ran:
            entry = farewell._replace(what="failed" if buried else "retry")
    return TakenBack(
        seq=seq,
        state="failed" if buried else "queued",
        ready=0 if buried else (2 if crashes or suspect else 1),
        attempts=attempts if ran else attempts - 1,
        crashes=crashes + suspect,
        error=error if ran else None,
        finished_at=now if buried else None,
        record=record if ran else None,
        entry=entry,
        farewell=farewell,
    )


async def take_back_jobs(
    tx: Sql, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all jobs that a member holds; see `take_back` for `started`. Returns what that
    was, (id, kind)."""
    backs, jobs = [], []
    for row in await tx.fetch("held", member=number):
        if row["state"] != "running":  # cancelled while it ran: only the run had still to end
            ended = "UPDATE penstock.jobs SET holder = NULL WHERE seq = :seq"
            await tx.execute(ended, seq=row["seq"])
            continue
        back = take_back(tuple(row), member, started, why, tx.now)
        await tx.execute(
            "taken_back",
            **back._asdict()
            | {
                "error": json.dumps(back.error) if back.error else None,
                "error_type": back.error["type"] if back.error else None,
                "record": json.dumps(back.record) if back.record else None,
                "history_limit": HISTORY_LIMIT,
            },
        )
        backs.append(back)
        jobs.append((row["id"], row["kind"]))
    cancelled = await cancel_requeued(tx, [back.seq for back in backs])
    told = [back.farewell if back.seq in cancelled else back.entry for back in backs]
    await changes.append(tx, [entry for entry in told if entry is not None])
    tx.wake(Topic.READY)
    tx.wake(Topic.FINISHED)
    return jobs


async def lapsed(queue: SqlQueue, seen: MemberLook, tx: Sql) -> None:
    """End a membership that was not renewed in time (its process is frozen or far away), if it has
    not been since, and unless somebody else is at it."""
    row = await tx.one(
        "SELECT id, host, pid FROM penstock.processes"
        " WHERE number = :number AND life = :life AND heartbeat_at = :renewed"
        " FOR UPDATE SKIP LOCKED",
        **seen._asdict(),
    )
    if row is not None:
        started = started_jobs(queue.folder / seen.life)
        jobs = await end_membership(queue.lane_rows(tx), seen.number, row["id"], started, LAPSED)
        tell(row["host"], row["pid"], LAPSED, jobs)


async def dead(queue: SqlQueue, seen: MemberLook, tx: Sql) -> None:
    """End a membership if its process is provably dead."""
    path = queue.folder / seen.life
    with proven_dead(path) as is_dead:
        row = await tx.one(
            "SELECT id, boot, host, pid FROM penstock.processes"
            " WHERE number = :number AND life = :life FOR UPDATE",
            **seen._asdict(),
        )
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            started = started_jobs(path) if row["boot"] == boot_id() else None
            jobs = await end_membership(queue.lane_rows(tx), seen.number, row["id"], started, DIED)
            tell(row["host"], row["pid"], DIED, jobs)


async def end_membership(
    rows: LaneRows, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all that the member holds, and forget it; see `take_back_jobs`.

    Its row goes first: whoever would claim under it, or renew it, waits for the outcome. Where
    there is none with this id, the number is another's by now, or nobody's.
    """
    mine = "DELETE FROM penstock.processes WHERE number = :number AND id = :id"
    if not await rows.tx.execute(mine, number=number, id=member):
        return []
    await rows.lock_held(number)
    jobs = await take_back_jobs(rows.tx, number, member, started, why)
    await rows.free_slots(number)
    return jobs


def found_dead(members: Sequence[MemberLook], folder: Path) -> list[MemberLook]:
    """Those whose process is dead; a cheap look before any writing."""
    found = []
    for member in members:
        with proven_dead(folder / member.life) as is_dead:
            if is_dead:
                found.append(member)
    return found


def tell(host: str, pid: int, why: str, jobs: Sequence[tuple[str, str]]) -> None:
    """Log what was taken back, (id, kind), from a process that is gone."""
    taken = "it held no jobs"
    if jobs:
        taken = f"took back {len(jobs):,} {'job' if len(jobs) == 1 else 'jobs'}: "
        taken += ", ".join(f"{job} ({kind})" for job, kind in jobs[:NAMED])
        taken += f" and {len(jobs) - NAMED:,} more" if len(jobs) > NAMED else ""
    log.warning("worker process %s %d is gone (%s); %s", host, pid, why, taken)


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
