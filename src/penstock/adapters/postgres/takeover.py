"""Takes over the jobs of a dead or expired process."""

from __future__ import annotations

from pathlib import Path

from penstock.adapters.lease_watch import MemberLook
from penstock.adapters.life_file import Started, proven_dead, started_jobs
from penstock.adapters.postgres.database import Transaction
from penstock.adapters.postgres.lanes import free_slots, lock_held
from penstock.adapters.sql.takeover import DIED, LAPSED, boot_id, take_back_jobs, tell

IS_MEMBER = "SELECT EXISTS (SELECT 1 FROM penstock.processes WHERE number = $1 AND id = $2)"
"""Whether a number is that of this membership: its id is what nobody else ever has."""


async def lapsed(tx: Transaction, folder: Path, seen: MemberLook) -> None:
    """End a membership that was not renewed in time (its process is frozen or far away), if it has
    not been since, and unless somebody else is at it."""
    row = await tx.one(
        "SELECT id, host, pid FROM penstock.processes"
        " WHERE number = $1 AND life = $2 AND heartbeat_at = $3 FOR UPDATE SKIP LOCKED",
        seen.number,
        seen.life,
        seen.renewed,
    )
    if row is not None:
        started = started_jobs(folder / seen.life)
        jobs = await end_membership(tx, seen.number, row["id"], started, LAPSED)
        tell(row["host"], row["pid"], LAPSED, jobs)


async def dead(tx: Transaction, folder: Path, seen: MemberLook) -> None:
    """End a membership if its process is provably dead."""
    number, path = seen.number, folder / seen.life
    with proven_dead(path) as is_dead:
        row = await tx.one(
            "SELECT id, boot, host, pid FROM penstock.processes"
            " WHERE number = $1 AND life = $2 FOR UPDATE",
            number,
            seen.life,
        )
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            started = started_jobs(path) if row["boot"] == boot_id() else None
            jobs = await end_membership(tx, number, row["id"], started, DIED)
            tell(row["host"], row["pid"], DIED, jobs)


async def end_membership(
    tx: Transaction, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all that the member holds, and forget it; see `take_back_jobs`.

    Its row goes first: whoever would claim under it, or renew it, waits for the outcome. Where
    there is none with this id, the number is another's by now, or nobody's.
    """
    mine = "DELETE FROM penstock.processes WHERE number = $1 AND id = $2"
    if not await tx.execute(mine, number, member):
        return []
    await lock_held(tx, number)
    jobs = await take_back_jobs(tx, number, member, started, why)
    await free_slots(tx, number)
    return jobs
