"""Takes over the jobs of a dead or expired process."""

from __future__ import annotations

from pathlib import Path

from penstock.adapters.lease_watch import MemberLook
from penstock.adapters.life_file import Started, proven_dead, started_jobs
from penstock.adapters.sql.takeover import DIED, LAPSED, boot_id, take_back_jobs, tell
from penstock.adapters.sqlite.lanes import free_slots
from penstock.adapters.sqlite.transaction import Transaction, run


def lapsed(tx: Transaction, folder: Path, seen: MemberLook) -> None:
    """End a membership that was not renewed in time (its process is frozen or far away), if it has
    not been since."""
    row = tx.execute(
        "SELECT id, host, pid FROM processes WHERE number = ? AND life = ? AND heartbeat_at = ?",
        (seen.number, seen.life, seen.renewed),
    ).fetchone()
    if row is not None:
        member, host, pid = row
        started = started_jobs(folder / seen.life)
        tell(host, pid, LAPSED, end_membership(tx, seen.number, member, started, LAPSED))


def dead(tx: Transaction, folder: Path, seen: MemberLook) -> None:
    """End a membership if its process is provably dead."""
    number, path = seen.number, folder / seen.life
    with proven_dead(path) as is_dead:
        here = "SELECT id, boot, host, pid FROM processes WHERE number = ? AND life = ?"
        row = tx.execute(here, (number, seen.life)).fetchone()
        if is_dead and row is not None:
            # After a power loss the file may not say what it said.
            member, boot, host, pid = row
            started = started_jobs(path) if boot == boot_id() else None
            tell(host, pid, DIED, end_membership(tx, number, member, started, DIED))


def end_membership(
    tx: Transaction, number: int, member: str, started: Started | None, why: str
) -> list[tuple[str, str]]:
    """Queue or bury all that the member holds, and forget it; see `take_back_jobs`."""
    jobs = run(take_back_jobs(tx.shared, number, member, started, why))
    free_slots(tx, number)
    tx.execute("DELETE FROM processes WHERE number = ?", (number,))
    return jobs
