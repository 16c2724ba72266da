"""Signals to jobs: stored for the job, and taken by it, under the lock of its row."""

from __future__ import annotations

from penstock.adapters.sql.dialect import Sql
from penstock.errors import JobEnded, JobNotFound, SignalLimit
from penstock.model.job import JobState
from penstock.ports.queue import Lease, Topic
from penstock.ports.steps import SIGNAL_LIMIT, Consumed, StepRow, signal_wait


async def signal(tx: Sql, job_id: str, name: str, payload: str, key: str | None) -> bool:
    """Store a signal, and let a job that waits for it run; False: one of the same key is there."""
    job = await tx.one("lock_job", id=job_id)
    if job is None:
        raise JobNotFound(job_id)
    seq = job["seq"]
    # First of all: who sends it again, not knowing that it has arrived, is told so at any time.
    if key is not None and await tx.one("known_signal", seq=seq, key=key) is not None:
        return False
    if JobState(job["state"]).finished:
        raise JobEnded(job_id, job["state"])
    (last,) = await tx.one("last_signal", seq=seq)
    if last >= SIGNAL_LIMIT:
        raise SignalLimit(f"job {job_id} has got {SIGNAL_LIMIT:,} signals, and takes no more")
    values = {"seq": seq, "name": name, "key": key, "payload": payload, "now": tx.now}
    await tx.execute("add_signal", number=last + 1, **values)
    if job["state"] == "queued" and not job["ready"] and job["waits_lane"] == signal_wait(name):
        await tx.execute("wake_suspended", seq=seq, now=tx.now)
        tx.wake(Topic.READY)
    return True


async def consume(
    tx: Sql, number: int, member: str, lease: Lease, name: str, row: StepRow
) -> Consumed:
    """Give the oldest signal of a name to a wait, whose record it becomes; see `Member.consume`."""
    fence = {"seq": lease.seq, "id": lease.id, "token": lease.token}
    if await tx.one("lock_held", **fence, member=number, member_id=member) is None:
        return Consumed(False, None)
    found = await tx.one("next_signal", seq=lease.seq, name=name)
    if found is None:
        return Consumed(True, None)
    await tx.execute("take_signal", seq=lease.seq, number=found["number"], key=row.key)
    values = row._replace(result=found["payload"])._asdict()
    await tx.execute("record_taken", seq=lease.seq, token=lease.token, **values)
    return Consumed(True, found["payload"])
