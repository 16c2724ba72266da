"""Job filters as SQL conditions, and what people do to the jobs they select."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from penstock.adapters.postgres import cascade, changes
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.sql.settlement_rows import LogEntry
from penstock.model.job import HISTORY_LIMIT, JobState
from penstock.ports.queue import JobFilter, Topic

CHUNK = 1000
"""Jobs changed in one transaction, so that a large selection does not lock others out."""

_OPEN = (
    "NOT EXISTS (SELECT 1 FROM penstock.stopped_logs AS s"
    " WHERE s.tenant = jobs.tenant AND s.log = jobs.log)"
)
_STOPPED = f"SELECT EXISTS (SELECT 1 FROM penstock.jobs WHERE seq = ANY ($1) AND NOT {_OPEN})"

_IN_LANE = "lane <> '' AND lane <> '?'"
"""The condition of the index by lane."""

Change = Callable[[Transaction, JobFilter], Awaitable[list[str]]]


def condition(where: JobFilter) -> tuple[str, list[Any]]:
    """`where` as an SQL condition and its parameters."""
    parts: list[str] = []
    values: list[Any] = []

    def add(part: str, value: Any) -> None:
        values.append(value)
        parts.append(part.replace("?", f"${len(values)}"))

    if where.ids is not None:
        add("id = ANY (?)", list(where.ids))
    if where.states is not None:
        # Literals, not parameters: a partial index is used only if its condition is visible.
        names = ", ".join(f"'{JobState(state).value}'" for state in where.states)
        parts.append(f"state IN ({names or 'NULL'})")
    if where.kind is not None:
        if any(c in where.kind for c in "*?["):
            add("kind ~ ?", _pattern(where.kind))
        else:
            add("kind = ?", where.kind)
    if where.tenant is not None:
        add("tenant = ?", where.tenant)
    if where.log is not None:
        add("log = ?", where.log)
    if where.parent_id is not None:
        add("parent_id = ?", where.parent_id)
    if where.error_type is not None:
        add("error_type = ?", where.error_type)
    if where.lane is not None:
        add("lane = ?", where.lane)
        parts.append(_IN_LANE)
    if where.priority is not None:
        add("priority = ?", int(where.priority))
    if where.enqueued_after is not None:
        add("enqueued_at >= ?", where.enqueued_after)
    if where.enqueued_before is not None:
        add("enqueued_at < ?", where.enqueued_before)
    return " AND ".join(parts) or "true", values


def _pattern(glob: str) -> str:
    """A pattern such as `ingest.*` as a regular expression of PostgreSQL."""
    words = {"*": ".*", "?": ".", "[": "[", "]": "]", "-": "-", "^": "^"}
    return "^" + "".join(words.get(c, c if c.isalnum() else f"\\{c}") for c in glob) + "$"


async def cancel(tx: Transaction, where: JobFilter) -> list[str]:
    """Cancel up to CHUNK matching jobs that are not finished."""
    return await cancel_rows(tx, await _select(tx, where, "state IN ('queued', 'running')"))


async def cancel_rows(tx: Transaction, rows: list[Any]) -> list[str]:
    """Cancel jobs given by seq, id, tenant, log, state, which are locked; their ids."""
    await tx.execute(
        "UPDATE penstock.jobs SET state = 'cancelled', ready = 0, finished_at = $1"
        " WHERE seq = ANY ($2)",
        tx.now,
        [row["seq"] for row in rows],
    )
    await cascade.mark(tx, [row["seq"] for row in rows])
    if any(row["state"] == "running" for row in rows):
        tx.wake(Topic.CANCELLED)
    return await announce(tx, rows, "cancelled")


async def cancel_children(tx: Transaction) -> bool:
    """Cancel a batch of jobs whose parents were; whether there may be more to do here."""
    parents = await cascade.parents(tx)
    if not parents:
        return False
    await cancel_rows(tx, await cascade.children(tx, parents))
    await cascade.forget(tx, parents)
    return True


async def redrive(tx: Transaction, where: JobFilter) -> list[str]:
    """Queue up to CHUNK matching dead letters again, but none of a stopped log."""
    rows = await _select(tx, where, f"state = 'failed' AND {_OPEN}")
    for tenant, log in sorted({(row["tenant"], row["log"]) for row in rows if row["log"]}):
        await changes.lock(tx, tenant, log)
    if await tx.fetchval(_STOPPED, [row["seq"] for row in rows]):
        return await redrive(tx, where)  # a log was stopped meanwhile: without its jobs
    record = {"attempt": None, "outcome": "redriven", "finished_at": tx.now, "error": None}
    seqs = [row["seq"] for row in rows]
    await tx.execute("redrive", seqs, tx.now, json.dumps(record), HISTORY_LIMIT)
    if rows:
        tx.wake(Topic.READY)
    return await announce(tx, rows, "redriven")


async def discard(tx: Transaction, where: JobFilter) -> list[str]:
    """Delete up to CHUNK matching dead letters."""
    rows = await _select(tx, where, "state = 'failed'")
    seqs = [row["seq"] for row in rows]
    await tx.execute("DELETE FROM penstock.jobs WHERE seq = ANY ($1)", seqs)
    return await announce(tx, rows, "discarded")


async def _select(tx: Transaction, where: JobFilter, states: str) -> list[Any]:
    text, values = condition(where)
    return await tx.fetch(
        f"SELECT seq, id, tenant, log, state FROM penstock.jobs WHERE {states} AND {text}"
        f" ORDER BY seq LIMIT {CHUNK} FOR UPDATE",
        *values,
    )


async def announce(tx: Transaction, rows: list[Any], what: str) -> list[str]:
    """Tell the logs of jobs (as for `cancel_rows`), and who waits, what happened; their ids."""
    entries = [
        LogEntry(row["tenant"], row["log"], what, row["id"], {})
        for row in rows
        if row["log"] is not None
    ]
    await changes.append(tx, entries)
    if rows:
        tx.wake(Topic.FINISHED)
    return [row["id"] for row in rows]
