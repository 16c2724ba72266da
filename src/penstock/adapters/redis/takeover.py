"""Takes over the jobs of dead or expired processes.

Who is dead can only be proved on the machine it ran on, by its life file; whoever is elsewhere is
judged by its lease, which the server's clock decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

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
    lapsed: bool = False,
) -> None:
    """End a membership; with `lapsed`, only if its lease has run out. For `started` see
    lua/takeover.lua. Of one that does not end itself the log is told."""
    ask = {"member": number, "life": life, "why": why, "lapsed": lapsed}
    if started is not None:
        ask["started"] = {str(seq): mark for seq, mark in started.items()}
    ended = await connections.call("takeover", ask)
    if ended and why != STOPPED:
        host, pid, *jobs = ended
        tell(host, int(pid), why, list(zip(jobs[::2], jobs[1::2], strict=True)))


async def take_back(
    connections: Connections, folder: Path, lapsed: Sequence[tuple[str, str]]
) -> None:
    """End these memberships (number, life) if they were not renewed in time."""
    for number, life in lapsed:
        started = started_jobs(folder / life)
        await end(connections, int(number), life, started, LAPSED, lapsed=True)


async def take_over(
    connections: Connections, folder: Path, others: Sequence[tuple[str, str, str, int]]
) -> bool:
    """End the memberships (number, life, boot, lapsed) of all that are dead or lapsed; whether
    there were any."""
    found = False
    for number, life, boot, has_lapsed in others:
        with proven_dead(folder / life) as is_dead:
            if is_dead:
                # After a power loss the file may not say what it said.
                started = started_jobs(folder / life) if boot == boot_id() else None
                await end(connections, int(number), life, started, DIED)
        if has_lapsed and not is_dead:
            await take_back(connections, folder, [(number, life)])
        found = found or is_dead or bool(has_lapsed)
    return found
