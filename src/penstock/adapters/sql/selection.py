"""Job filters as SQL conditions, and what people do to the jobs they select.

A cancel notes, in its own transaction, which of its jobs have attached children that are not
finished. These are then cancelled a batch at a time, by whoever cancelled the parents or, later, by
any process's upkeep; so a large family locks nobody out, and a kill leaves none of it behind.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from penstock.adapters.sql import changes
from penstock.adapters.sql.dialect import Row, Sql
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.model.job import HISTORY_LIMIT, JobState
from penstock.ports.queue import JobFilter, Topic

CHUNK = 1000
"""Jobs changed in one transaction, so that a large selection does not lock others out."""
CHILDREN = 500
"""Children cancelled in one transaction."""


def condition(where: JobFilter) -> tuple[str, dict[str, Any]]:
    """`where` as an SQL condition and its values."""
    equal = ("tenant", "log", "parent_id")
    values: dict[str, Any] = {name: getattr(where, name) for name in equal}
    parts = [f"{name} = :{name}" for name in equal if values[name] is not None]

    def add(part: str, **given: Any) -> None:
        parts.append(part)
        values.update(given)

    if where.ids is not None:
        add("id = ANY (:ids)", ids=list(where.ids))
    if where.states is not None:
        # Literals, not values: a partial index is used only if its condition is visible.
        names = ", ".join(f"'{JobState(state).value}'" for state in where.states)
        add(f"state IN ({names})" if "," in names else f"state = {names or 'NULL'}")
    if where.kind is not None and any(c in where.kind for c in "*?["):
        add("{of_kinds}", glob=where.kind, pattern=_pattern(where.kind))
    elif where.kind is not None:
        add("kind = :kind", kind=where.kind)
    if where.error_type is not None:
        add("{error_type} = :error_type", error_type=where.error_type)
    if where.lane is not None:
        add("lane = :lane AND {in_lane}", lane=where.lane)
    if where.priority is not None:
        add("priority = :priority", priority=int(where.priority))
    if where.enqueued_after is not None:
        add("enqueued_at >= :after", after=where.enqueued_after)
    if where.enqueued_before is not None:
        add("enqueued_at < :until", until=where.enqueued_before)
    return " AND ".join(parts) or "true", values


def _pattern(glob: str) -> str:
    """A pattern such as `ingest.*` as a regular expression of PostgreSQL."""
    words = {"*": ".*", "?": ".", "[": "[", "]": "]", "-": "-", "^": "^"}
    return "^" + "".join(words.get(c, c if c.isalnum() else f"\\{c}") for c in glob) + "$"


async def cancel(tx: Sql, where: JobFilter) -> list[str]:
    """Cancel up to CHUNK matching jobs that are not finished."""
    return await cancel_rows(tx, await _select(tx, where, "{unfinished}"))


async def cancel_rows(tx: Sql, rows: list[Row]) -> list[str]:
    """Cancel jobs (rows of `job_ref`), which are locked; their ids."""
    seqs = [row["seq"] for row in rows]
    await tx.execute("cancel_jobs", seqs=seqs, now=tx.now)
    await mark_cascades(tx, seqs)
    if any(row["state"] == "running" for row in rows):
        tx.wake(Topic.CANCELLED)
    return await announce(tx, rows, "cancelled")


async def mark_cascades(tx: Sql, seqs: Sequence[int]) -> None:
    """Note that the children of these jobs, which were just cancelled, are to be, too."""
    if seqs:
        await tx.execute("mark_cascades", seqs=list(seqs))


async def cancel_children(tx: Sql) -> bool:
    """Cancel a batch of jobs whose parents were; whether there may be more to do here."""
    parents = [job_id for (job_id,) in await tx.fetch("cascade_parents", limit=CHILDREN)]
    if not parents:
        return False
    await cancel_rows(tx, await tx.fetch("cascade_children", parents=parents, limit=CHILDREN))
    await tx.execute("forget_cascades", parents=parents)
    return True


async def redrive(tx: Sql, where: JobFilter, *, from_scratch: bool = False) -> list[str]:
    """Queue up to CHUNK matching dead letters again, but none of a stopped log. `from_scratch`:
    drop what was recorded of their steps."""
    rows = await _select(tx, where, "state = 'failed' AND {open_log}")
    seqs = [row["seq"] for row in rows]
    for tenant, log in sorted({(row["tenant"], row["log"]) for row in rows if row["log"]}):
        await changes.lock(tx, tenant, log)
    if await tx.one("any_closed", seqs=seqs) is not None:
        return await redrive(
            tx, where, from_scratch=from_scratch
        )  # a log was stopped meanwhile: without its jobs
    record = {"attempt": None, "outcome": "redriven", "finished_at": tx.now, "error": None}
    history = {"record": json.dumps(record), "history_limit": HISTORY_LIMIT}
    await tx.execute("redrive_jobs", seqs=seqs, now=tx.now, **history)
    if from_scratch:
        await tx.execute("drop_all_steps", seqs=seqs)
        await tx.execute("untake_all_signals", seqs=seqs)
    if rows:
        tx.wake(Topic.READY)
    return await announce(tx, rows, "redriven")


async def discard(tx: Sql, where: JobFilter) -> list[str]:
    """Delete up to CHUNK matching dead letters."""
    rows = await _select(tx, where, "state = 'failed'")
    await tx.execute("discard_jobs", seqs=[row["seq"] for row in rows])
    return await announce(tx, rows, "discarded")


async def _select(tx: Sql, where: JobFilter, states: str) -> list[Row]:
    text, values = condition(where)
    return await tx.fetch(
        f"SELECT {{job_ref}} FROM penstock.jobs WHERE {states} AND {text}"
        f" ORDER BY seq LIMIT {CHUNK} FOR UPDATE",
        **values,
    )


async def announce(tx: Sql, rows: list[Row], what: str) -> list[str]:
    """Tell the logs of jobs (rows of `job_ref`), and who waits, what happened; their ids."""
    entries = [
        LogEntry(row["tenant"], row["log"], what, row["id"], {})
        for row in rows
        if row["log"] is not None
    ]
    await changes.append(tx, entries)
    if rows:
        tx.wake(Topic.FINISHED)
    return [row["id"] for row in rows]
