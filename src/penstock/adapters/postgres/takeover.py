"""Takes over the jobs of a dead or expired process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.adapters.life_file import Started, proven_dead, started_jobs
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.lanes import free_slots, lock_held
from penstock.adapters.sql import changes
from penstock.adapters.sql.stop import cancel_requeued
from penstock.adapters.sql.takeover import boot_id, take_back, tell, told
from penstock.model.job import HISTORY_LIMIT
from penstock.ports.queue import Topic

IS_MEMBER = "SELECT EXISTS (SELECT 1 FROM penstock.processes WHERE number = $1 AND id = $2)"
"""Whether a number is that of this membership: its id is what nobody else ever has."""
LAPSED = "SELECT number, life FROM penstock.processes WHERE lease_until < $1 AND number <> $2"
"""Memberships that were not renewed in time (their process is frozen or far away). Not one's
own: whoever asks is alive, and its late renewal is on its way."""


async def lapsed(tx: Transaction, folder: Path, number: int, life: str) -> None:
    """End a membership if it has lapsed, unless somebody else is at it."""
    row = await tx.one(
        "SELECT id, host, pid FROM penstock.processes"
        " WHERE number = $1 AND life = $2 AND lease_until < $3 FOR UPDATE SKIP LOCKED",
        number,
        life,
        tx.now,
    )
    if row is not None:
        started, why = started_jobs(folder / life), "its lease was not renewed"
        jobs = await end_membership(tx, number, row["id"], started, why)
        tell(row["host"], row["pid"], why, jobs)


async def dead(tx: Transaction, folder: Path, number: int, life: str) -> None:
    """End a membership if its process is provably dead."""
    path = folder / life
    with proven_dead(path) as is_dead:
        row = await tx.one(
            "SELECT id, boot, host, pid FROM penstock.processes"
            " WHERE number = $1 AND life = $2 FOR UPDATE",
            number,
            life,
        )
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            started = started_jobs(path) if row["boot"] == boot_id() else None
            why = "its process died"
            jobs = await end_membership(tx, number, row["id"], started, why)
            tell(row["host"], row["pid"], why, jobs)


async def end_membership(
    tx: Transaction, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all that the member holds, and forget it; see `take_back` for `started`.
    Returns what that was, (id, kind).

    Its row goes first: whoever would claim under it, or renew it, waits for the outcome. Where
    there is none with this id, the number is another's by now, or nobody's.
    """
    mine = "DELETE FROM penstock.processes WHERE number = $1 AND id = $2"
    if not await tx.execute(mine, number, member):
        return []
    await lock_held(tx, number)
    backs, jobs = [], []
    for row in await tx.fetch("held", number):
        if row["state"] != "running":  # cancelled while it ran: only the run had still to end
            await tx.execute("UPDATE penstock.jobs SET holder = NULL WHERE seq = $1", row["seq"])
            continue
        back = take_back(tuple(row), member, started, why, tx.now)
        await tx.execute(
            "taken_back",
            back.seq,
            back.state,
            back.ready,
            back.attempts,
            back.crashes,
            json.dumps(back.error) if back.error else None,
            back.error["type"] if back.error else None,
            back.finished_at,
            json.dumps(back.record) if back.record else None,
            HISTORY_LIMIT,
        )
        backs.append(back)
        jobs.append((row["id"], row["kind"]))
    cancelled = await cancel_requeued(tx, [back.seq for back in backs])
    await changes.append(tx, told(backs, cancelled))
    await free_slots(tx, number)
    tx.wake(Topic.READY)
    tx.wake(Topic.FINISHED)
    return jobs


def suspects(rows: Sequence[Any], folder: Path, me: int, now: float) -> list[tuple[int, str]]:
    """Other members (number, life) that are dead or lapsed; a cheap look before any writing."""
    found = []
    for row in rows:
        number, life = row["number"], row["life"]
        if number == me:
            continue
        if row["lease_until"] < now:
            found.append((number, life))
            continue
        with proven_dead(folder / life) as is_dead:
            if is_dead:
                found.append((number, life))
    return found
