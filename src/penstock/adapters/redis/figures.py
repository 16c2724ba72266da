"""Counts for operators: jobs by state, dead letters by error."""

from __future__ import annotations

from dataclasses import replace

from penstock.adapters.redis.connections import Connections
from penstock.adapters.sql.job_rows import kind_counts
from penstock.ports.operators import MAX_GROUPS, DeadGroup, KindCounts


async def counts(connections: Connections, tenant: str | None) -> list[KindCounts]:
    """How many jobs of each kind are in each state."""
    found = kind_counts(
        (kind, state, int(count), None)
        for state, kind, count in await connections.call("counts", {"tenant": tenant})
    )
    return [
        replace(one, oldest_queued_at=await _oldest(connections, one.kind, tenant))
        if "queued" in one.states
        else one
        for one in found
    ]


async def queued(connections: Connections, tenant: str | None) -> int:
    """How many jobs are queued."""
    found = await connections.call("counts", {"tenant": tenant})
    return sum(int(count) for state, _, count in found if state == "queued")


async def _oldest(connections: Connections, kind: str, tenant: str | None) -> float | None:
    """Since when a queued job could run, of the first thousand among which one can. Those of other
    tenants, and for later, before it are looked at, too, some in a call."""
    ask: dict[str, object] = {"kind": kind, "tenant": tenant}
    while True:
        found, cursor = await connections.call("oldest", ask)
        if found or not cursor:
            return float(found) if found else None
        ask["cursor"] = float(cursor)


async def dead_groups(connections: Connections, tenant: str | None) -> list[DeadGroup]:
    """Dead letters by kind and type of error. All are looked at, some in a call."""
    ask: dict[str, object] = {"tenant": tenant}
    groups: dict[tuple[str, str], DeadGroup] = {}
    while True:
        some, cursor = await connections.call("dead_groups", ask)
        for kind, error_type, count, first, last, message, newest_id in some:
            group = DeadGroup(
                kind, error_type, count, float(first), float(last), message, newest_id
            )
            known = groups.get((kind, error_type))
            groups[kind, error_type] = group if known is None else _together(known, group)
        if not cursor:
            break
        ask["cursor"] = float(cursor)
    biggest = sorted(groups.values(), key=lambda one: (-one.count, one.kind, one.error_type))
    return biggest[:MAX_GROUPS]


def _together(one: DeadGroup, other: DeadGroup) -> DeadGroup:
    newest = max(one, other, key=lambda group: group.last_at)
    return replace(
        newest, count=one.count + other.count, first_at=min(one.first_at, other.first_at)
    )
