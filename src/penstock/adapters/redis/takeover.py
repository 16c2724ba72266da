"""Takes over the jobs of dead or expired processes.

Who is dead can only be proved on the machine it ran on, by its life file; whoever is elsewhere is
judged by its renewals: see `LeaseWatch`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.adapters.lease_watch import LeaseWatch, MemberLook
from penstock.adapters.life_file import Started, proven_dead, started_jobs
from penstock.adapters.redis.connections import Connections
from penstock.adapters.sql.takeover import DIED, LAPSED, STOPPED, boot_id, tell


async def end(
    connections: Connections,
    number: int,
    life: str,
    started: Started | None,
    why: str,
    *,
    renewed: float | None = None,
) -> None:
    """End a membership; with `renewed`, only if it was not renewed since then. For `started` see
    lua/takeover.lua. Of one that does not end itself the log is told."""
    ask: dict[str, Any] = {"member": number, "life": life, "why": why}
    if renewed is not None:
        ask["renewed"] = renewed
    if started is not None:
        ask["started"] = {str(seq): mark for seq, mark in started.items()}
    ended = await connections.call("takeover", ask)
    if ended and why != STOPPED:
        host, pid, *jobs = ended
        tell(host, int(pid), why, list(zip(jobs[::2], jobs[1::2], strict=True)))


async def take_over(
    connections: Connections, folder: Path, others: Sequence[Sequence[str]], watch: LeaseWatch
) -> bool:
    """End the memberships of all that are dead or lapsed, of others (number, life, boot,
    heartbeat_at, lease_until); whether there were any."""
    found = False
    looks = [
        MemberLook(int(number), life, float(renewed), float(until) - float(renewed))
        for number, life, _, renewed, until in others
    ]
    lapsed = watch.lapsed(looks)
    for member, (_, life, boot, *_) in zip(looks, others, strict=True):
        path = folder / life
        with proven_dead(path) as is_dead:
            if is_dead:
                # After a power loss the file may not say what it said.
                started = started_jobs(path) if boot == boot_id() else None
                await end(connections, member.number, life, started, DIED)
        if member in lapsed and not is_dead:
            started, renewed = started_jobs(path), member.renewed
            await end(connections, member.number, life, started, LAPSED, renewed=renewed)
        found = found or is_dead or member in lapsed
    return found
