"""What goes on in the queue: workers, kinds, lanes, dead letters, and keys of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.doctor.case import Case
from penstock.doctor.databases import schemas
from penstock.doctor.finding import Finding, broken, ok, skipped, warning
from penstock.lanes.registry import LaneRegistry
from penstock.model.errors import PenstockError, QueueError
from penstock.model.job import JobState
from penstock.model.server import ServerConfig, is_loopback
from penstock.ports.access import AccessStore
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import KindCounts, ProcessInfo
from penstock.ports.queue import JobFilter, JobQueue
from penstock.queues import choose_queue
from penstock.store import choose_store

NEW_SECONDS = 3600.0
"""Dead letters younger than this are said to be new."""
LOOKED_AT = 1000
"""Dead letters whose age is looked at, the newest jobs first."""


async def look(case: Case) -> list[Finding]:
    if (why := await _closed(case)) is not None:
        return [skipped("work", why)]
    try:
        async with _opened(case) as (queue, access):
            return await _look(case, queue, access)
    except QueueError as error:
        return [broken("work", f"the queue cannot be used: {error}", "mend it first")]


async def _look(case: Case, queue: JobQueue, access: AccessStore | None) -> list[Finding]:
    counts, processes = await queue.counts(), await queue.processes()
    now = queue.now()
    return [
        *judge_workers(processes, counts, now),
        *judge_lanes(await queue.lanes()),
        await _dead_letters(queue, counts, now),
        await _keys(case.config.server, access),
    ]


async def _closed(case: Case) -> str | None:
    """Why the queue is not opened: to open it would change it, or fail."""
    try:
        found = await schemas(case.config.queue)
        if case.store is not None and case.store != case.config.queue:
            found += await schemas(case.store)
    except PenstockError:
        return "the queue or the store cannot be looked at"
    if any(one.missing for one in found):
        return "there is no queue, or no store, yet"
    if any(one.older or one.too_new for one in found):
        return "the schema is of another version, and the doctor changes nothing"
    return None


@asynccontextmanager
async def _opened(case: Case) -> AsyncIterator[tuple[JobQueue, AccessStore | None]]:
    config = case.config
    lanes = LaneRegistry(config.lanes)
    queue = choose_queue(config.queue, config.settings, lanes, config.tenant_weights)
    async with AsyncExitStack() as opened:
        await queue.open()
        opened.push_async_callback(queue.close)
        access = None
        if case.store is not None:
            store = choose_store(queue, config.settings, "API keys")
            await store.open()
            opened.push_async_callback(store.close)
            access = store.access()
        yield queue, access


def judge_workers(
    processes: Sequence[ProcessInfo], counts: Sequence[KindCounts], now: float
) -> list[Finding]:
    alive = [one for one in processes if one.lease_until >= now]
    waiting = {kind.kind: kind.states.get(JobState.QUEUED, 0) for kind in counts}
    waiting = {kind: number for kind, number in waiting.items() if number}
    handled = {kind for one in alive for kind in one.kinds}
    lonely = sorted(set(waiting) - handled)
    said = []
    if not any(one.kinds for one in alive):
        found = "no worker process is alive"
        if waiting:
            found += f", and {sum(waiting.values()):,} jobs are queued"
        advice = "start one: `penstock worker MODULE:APP`"
        said.append(warning("workers", found, advice) if waiting else ok("workers", found))
    elif lonely:
        named = ", ".join(f"{kind} ({waiting[kind]:,} queued)" for kind in lonely)
        found = f"no worker process handles {named}"
        said.append(warning("workers", found, "start one that does: `penstock worker MODULE:APP`"))
    for one in alive:
        who = f"process {one.pid} on {one.host}"
        if why := one.status.get("degraded"):
            found = f"{who} is degraded: {why}"
            said.append(warning("workers", found, "see that it reaches the queue"))
        if stuck := one.status.get("stuck"):
            found = f"{who} has {stuck} sync handlers that do not come back"
            said.append(warning("workers", found, "find out what they wait for; restart it"))
    return said or [ok("workers", f"{len(alive)} alive, every queued kind is handled")]


def judge_lanes(lanes: Sequence[LaneInfo]) -> list[Finding]:
    said = []
    for lane in lanes:
        part, waits = f"lane {lane.name}", f", {lane.waiting:,} jobs wait" if lane.waiting else ""
        if lane.blocked_why == "credentials":
            found = f"blocked: its service refuses the credentials{waits}"
            advice = f"set a valid key and restart workers, or `penstock lanes resume {lane.name}`"
            said.append(broken(part, found, advice))
        elif lane.blocked_why == "paused":
            found = f"paused by somebody{waits}"
            said.append(warning(part, found, f"`penstock lanes resume {lane.name}` when done"))
        elif lane.breaker == "open":
            found = f"its service cannot be reached{waits}"
            said.append(warning(part, found, "mend the service; work resumes by itself"))
    return said or [ok("lanes", f"{len(lanes)} in use, none blocked")]


async def _dead_letters(queue: JobQueue, counts: Sequence[KindCounts], now: float) -> Finding:
    total = sum(kind.states.get(JobState.FAILED, 0) for kind in counts)
    if not total:
        return ok("dead letters", "none")
    jobs = await queue.find(JobFilter(states=[JobState.FAILED]), LOOKED_AT)
    new = sum(1 for job in jobs if (job.finished_at or 0) > now - NEW_SECONDS)
    if not new:
        return ok("dead letters", f"{total:,}, none of them of the last hour")
    found = f"{total:,}, of which {new:,} came in the last hour"
    advice = "`penstock dead-letters list` says why; redrive or discard them"
    return warning("dead letters", found, advice)


async def _keys(server: ServerConfig, access: AccessStore | None) -> Finding:
    if is_loopback(server.host) and not server.require_key:
        return ok("keys", f"none is needed on {server.host}")
    if access is None:
        found = f"the server does not listen on {server.host} without, and nothing can keep one"
        return broken("keys", found, "set `store`")
    valid = sum(1 for key in await access.keys() if key.revoked_at is None)
    if valid:
        return ok("keys", f"{valid} valid")
    found = f"there is none, and the server does not listen on {server.host} without"
    return broken("keys", found, "`penstock keys create NAME` makes one")
