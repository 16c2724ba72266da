"""Checks of the queue: workers, kinds, lanes, dead letters, and API keys."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from penstock.api import attention
from penstock.api.attention import QueueOutlook
from penstock.doctor.context import Case
from penstock.doctor.databases import schemas
from penstock.doctor.diagnosis import Diagnosis, Status, broken, ok, skipped
from penstock.errors import PenstockError, QueueError
from penstock.lanes.registry import LaneRegistry
from penstock.model.job import JobState
from penstock.model.server import Anonymous, ServerConfig
from penstock.ports.access import AccessStore
from penstock.ports.queue import JobQueue
from penstock.wire.operators import Condition
from penstock.wiring.queues import choose_queue
from penstock.wiring.stores import choose_store

WORKERS, LANES, DEAD_LETTERS = "workers", "lanes", "dead letters"
PARTS = dict.fromkeys(Condition, LANES) | {
    Condition.QUEUE_UNREACHABLE: WORKERS,
    Condition.KIND_WITHOUT_A_WORKER: WORKERS,
    Condition.LOOP_BLOCKED: WORKERS,
    Condition.LOOP_WAS_BLOCKED: WORKERS,
    Condition.WORKER_STUCK: WORKERS,
    Condition.WORKER_GONE: WORKERS,
    Condition.DEAD_LETTERS: DEAD_LETTERS,
}
"""Component of each condition that needs attention."""


async def look(case: Case) -> list[Diagnosis]:
    if (why := await _closed(case)) is not None:
        return [skipped("work", why)]
    try:
        async with _opened(case) as (queue, access):
            return await _look(case, queue, access)
    except QueueError as error:
        return [broken("work", f"the queue cannot be used: {error}", "fix it first")]


async def _look(case: Case, queue: JobQueue, access: AccessStore | None) -> list[Diagnosis]:
    outlook = await attention.look(queue, queue.now())
    return [*judge(outlook, queue.now()), await _keys(case.config.server, access)]


def judge(outlook: QueueOutlook, now: float) -> list[Diagnosis]:
    """Report what needs attention, as `penstock status` does, or that nothing does."""
    said = [
        Diagnosis(
            PARTS[one.what],
            Status.BROKEN if one.what == "credentials rejected" else Status.WARNING,
            f"{one.what}: {one.subject}",
            one.todo,
        )
        for one in outlook.attention
    ]
    alive = sum(not attention.gone(one, now) for one in outlook.processes)
    dead = sum(kind.states.get(JobState.FAILED, 0) for kind in outlook.counts)
    fine = {
        WORKERS: f"{alive} worker processes, every queued kind is handled",
        LANES: f"{len(outlook.lanes)} in use, none in trouble",
        DEAD_LETTERS: f"{dead:,}, none in the last hour" if dead else "none",
    }
    told = {finding.part for finding in said}
    return said + [ok(part, found) for part, found in fine.items() if part not in told]


async def _closed(case: Case) -> str | None:
    """Explain why the queue is not opened: opening would change it, or fail."""
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
    queue = choose_queue(config.queue, config.engine, lanes, config.tenant_weights)
    async with AsyncExitStack() as opened:
        await queue.open()
        opened.push_async_callback(queue.close)
        access = None
        if case.store is not None:
            store = choose_store(queue, config, "API keys")
            await store.open()
            opened.push_async_callback(store.close)
            access = store.access()
        yield queue, access


async def _keys(server: ServerConfig, access: AccessStore | None) -> Diagnosis:
    match server.anonymous:
        case Anonymous.OWN_USER:
            return ok("keys", f"none is needed on {server.host} by the user who runs the server")
        case Anonymous.ALL:
            return ok("keys", f"none is needed on {server.host}, by anybody who reaches it")
    if access is None:
        found = f"the server does not listen on {server.host} without, and nothing can keep one"
        return broken("keys", found, "set `store`")
    valid = sum(1 for key in await access.keys() if key.revoked_at is None)
    if valid:
        return ok("keys", f"{valid} valid")
    found = f"there is none, and the server does not listen on {server.host} without"
    return broken("keys", found, "`penstock keys create NAME`")
