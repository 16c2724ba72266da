"""Lane operations that are not hot: operators' commands, probes, upkeep."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Protocol

from penstock.adapters.sql import changes
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.settlement_rows import CANCELLED, LogEntry
from penstock.adapters.sql.stop import cancel_requeued
from penstock.lanes import breaker, view
from penstock.lanes.breaker import Spared
from penstock.lanes.limits import repace
from penstock.lanes.state import APART, CONFIGURED, COUNTED, DAY, KNOWN, OWN, LaneState, own_limits
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.queue import Topic

log = logging.getLogger("penstock.lanes")
States = dict[str, LaneState]
COLUMNS = [field.name for field in fields(LaneState) if field.name not in COUNTED]
STATE = [name for name in COLUMNS if name not in (*CONFIGURED, *APART)]
"""Columns that are written whenever a lane is saved."""
STATE_AND_KNOWN = [*STATE, *KNOWN]
"""And of lanes in which amounts were used, or which have learnt something."""
LEARNT = {"max_parallel": ", learnt_parallel"}
IN_FORCE = ", ".join(
    f"coalesce({OWN[name]}{LEARNT.get(name, '')}, {name})" if name in OWN else name
    for name in COLUMNS
)
"""What is read of a lane: an operator's limits, or what it has learnt, instead of the configured
ones."""
FAR = 10_000
"""How many of the jobs ahead of one are counted."""
IDLE_LANE_SECONDS = 3600.0
LONG_IDLE_SECONDS = 3 * DAY
"""Where amounts are counted: of a day, or a window of a day, everything is over by then."""


class LaneRows(Protocol):
    """The lanes of one transaction, or of a snapshot to read from."""

    @property
    def tx(self) -> Sql: ...

    async def look(self, names: Sequence[str] | None) -> States:
        """Lanes and their parents as they stand; None: all of them."""
        ...

    async def lock(self, names: Sequence[str]) -> States:
        """Lanes and their parents, for this transaction to change. Trials whose slot is gone,
        because whoever made them is, have ended."""
        ...

    async def save(self, lanes: Iterable[LaneState]) -> None: ...

    async def take_slots(self, holder: int, slots: Sequence[tuple[str, int]]) -> None:
        """Store slots (lane, ref) of a holder."""
        ...

    async def lock_held(self, holder: int) -> None:
        """Lock the lanes in which a member has slots, before anything else that is its."""
        ...

    async def free_slots(self, holder: int) -> None:
        """Give back all slots of a holder and wake who waits."""
        ...

    async def wake_waiting(self, lane: str) -> None:
        """A slot of the lane is free: let a line that waits for it be looked at again."""
        ...


def family(states: Mapping[str, LaneState], name: str) -> list[LaneState]:
    """The lane and, if it has one, its parent; empty when nobody configured it."""
    lane = states.get(name)
    if lane is None:
        return []
    parent = None if lane.parent is None else states.get(lane.parent)
    return [lane] if parent is None else [lane, parent]


async def wake_lane(tx: Sql, lane: str) -> None:
    """Something changed: look at the lines of the lane and its children now."""
    await tx.execute("wake_jobs", lane=lane, now=tx.now)
    await tx.execute("wake_lines", lane=lane)
    tx.wake(Topic.READY)


async def return_attempts(tx: Sql, failures: Sequence[Spared]) -> None:
    """Failures that turn out to be their lane's have spent no attempt, not even the last one: a
    job that they ended is queued again. One that runs again goes on, with fewer attempts spent, and
    one that has run again stays what that has made of it: a dead letter, or asleep."""
    entries = []
    for seq, token, count in sorted(failures):
        failed = {"seq": seq, "token": token, "count": count}
        if await tx.execute("return_attempts_running", **failed):
            continue
        row = await tx.one("return_attempts", now=tx.now, **failed)
        if row is None:
            await tx.execute("return_attempts_since", **failed)
            continue
        tx.wake(Topic.READY)
        tenant, log, job_id, kind, attempts = row
        if log is not None:
            # Nobody else has it locked if it had failed: the lock of its log keeps a stop away.
            await changes.lock(tx, tenant, log)
            what = CANCELLED if await cancel_requeued(tx, [seq]) else "released"
            data = {"kind": kind, "attempt": attempts, "run_at": tx.now}
            entries.append(LogEntry(tenant, log, what, job_id, data))
    await changes.append(tx, entries)


async def infos(rows: LaneRows) -> list[LaneInfo]:
    states = await rows.look(None)
    waiting = {row[0]: row[1] for row in await rows.tx.fetch("count_waiting")}
    return view.infos(list(states.values()), waiting, rows.tx.now)


async def why_waiting(rows: LaneRows, jobs: Sequence[Row]) -> dict[int, str]:
    """By seq, what keeps jobs (rows of `job_columns`) in the lines of lanes from starting."""
    states = await rows.look(sorted({job["lane"] for job in jobs}))
    places = {name: [job[name] for job in jobs] for name in ("seq", "lane", "band", "turn")}
    ahead = {row[0]: row[1] for row in await rows.tx.fetch("ahead", **places, far=FAR)}
    return {
        seq: view.why_waiting(lane, family(states, lane), ahead[seq], rows.tx.now)
        for seq, lane in zip(places["seq"], places["lane"], strict=True)
    }


async def control(rows: LaneRows, name: str, what: LaneCommand) -> bool:
    """False when there is no such lane; so with `limit`."""
    lane = (await rows.lock([name])).get(name)
    if lane is None:
        return False
    view.control(lane, what)
    await rows.save([lane])
    await wake_lane(rows.tx, name)
    return True


async def limit(rows: LaneRows, name: str, limits: LaneLimits | None) -> bool:
    lane = (await rows.lock([name])).get(name)
    if lane is None:
        return False
    await rows.tx.execute("limit", name=name, **own_limits(limits))
    changed = (await rows.lock([name]))[name]
    repace(changed, lane.pace, rows.tx.now)
    await rows.save([changed])
    await wake_lane(rows.tx, name)
    return True


async def take_probes(tx: Sql) -> list[tuple[str, str]]:
    """The lanes (name, where) this process is to probe now; nobody else does meanwhile."""
    suspicion = breaker.SUSPICION_SECONDS
    found = [tuple(row) for row in await tx.fetch("take_probes", now=tx.now, suspicion=suspicion)]
    await tx.execute("note_probes", now=tx.now, names=[name for name, _ in found])
    return found


async def note_probe(rows: LaneRows, name: str, ok: bool) -> None:
    """What the probe found."""
    lane = (await rows.lock([name])).get(name)
    if lane is None:
        return
    retry_at = lane.retry_at
    await return_attempts(rows.tx, breaker.probed(lane, ok, rows.tx.now).spared)
    await rows.save([lane])
    if lane.retry_at < retry_at:
        await wake_lane(rows.tx, name)


async def try_at_once(rows: LaneRows) -> None:
    """A process starts: what it needs may be back, so one try is made without waiting."""
    tx = rows.tx
    found = await tx.fetch("to_try", now=tx.now, blocked=breaker.CREDENTIALS)
    changed = {}
    for lane in (await rows.lock([name for (name,) in found])).values():
        if lane.open and lane.retry_at > tx.now:
            lane.retry_at = tx.now
            changed[lane.name] = lane
        if lane.blocked_why == breaker.CREDENTIALS:
            # It may have come with new credentials: one more refusal blocks the lane again.
            lane.blocked_until, lane.blocked_why = 0.0, None
            lane.refusers = breaker.PARDONED
            changed[lane.name] = lane
    await rows.save(changed.values())
    for name in changed:
        await wake_lane(tx, name)


async def set_back(rows: LaneRows) -> None:
    """Mend what was written at a time which is still to come, because the clock was set back; see
    `breaker.set_back`."""
    await rows.lock([name for (name,) in await rows.tx.fetch("lanes_ahead")])
    if await rows.tx.execute("set_lines_back", now=rows.tx.now):
        rows.tx.wake(Topic.READY)


async def forget_lanes(rows: LaneRows) -> None:
    """Delete what lanes no longer need.

    Every slot belongs to a live membership, and a job's to its lease. This must never find one that
    does not; if it does, the lane must not stay short of it."""
    tx = rows.tx
    for lane, holder, ref in await tx.fetch("lost_slots"):
        log.error("a slot of lane %s belonged to nobody (member %d, %d): freed", lane, holder, ref)
        await rows.wake_waiting(lane)
    # A provider's day may begin when UTC's is nearly over: hence yesterday.
    yesterday = int(tx.now // DAY) - 1
    idle, long_idle = tx.now - IDLE_LANE_SECONDS, tx.now - LONG_IDLE_SECONDS
    values = {"idle": idle, "long_idle": long_idle, "now": tx.now, "yesterday": yesterday}
    await tx.execute("forget_lanes", **values)
    await tx.execute("forget_turns")
