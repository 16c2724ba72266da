"""Stores new jobs."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import asyncpg

from penstock.adapters.postgres.database import Connection, Database, Pool, Transaction
from penstock.adapters.postgres.fairness import Weights, step_of
from penstock.adapters.sql.job_rows import new_job
from penstock.adapters.sql.records import lock_source, take_over
from penstock.errors import KeyConflict, LogStopped, ParentEnded
from penstock.model.job import Job
from penstock.ports.queue import NewJob, NewJobs, Topic

if TYPE_CHECKING:
    from penstock.adapters.postgres.caller import CallersTransaction

_CALL = "CALL penstock.enqueue_1({})".format(
    ", ".join([*(f"${n}" for n in range(1, 24)), "0", "NULL"])
)
_STORE_BURSTS = "SELECT penstock.store_bursts_1($1)"
_TURNS = "SELECT penstock.take_turns_1($1, $2, $3, $4, $5)"
_STORE = "SELECT penstock.store_1({})".format(", ".join(f"${n}" for n in range(1, 25)))
_NAMES = (
    *("ids", "payloads", "keys", "lines", "places", "lanes", "firsts", "step", "tenant", "kind"),
    *("priority", "run_at", "deadline", "timeout", "max_retries", "log", "parent_id", "token"),
    *("member", "attached", "replace_finished", "trace", "rerun_of"),
)
"""The arguments of store_1 but for the last, the time, as `store_for_caller_1` calls them."""
_AMOUNTS = (
    "UPDATE penstock.jobs AS j SET amount = s.amount"
    " FROM unnest($1::text[], $2::text[]) AS s (id, amount) WHERE j.id = s.id"
)
MANY = 1_000
"""Jobs without keys that take long enough to make for it to be done while they are stored."""
_SLICE = 500


class Stored(NamedTuple):
    """The result of storing a batch: the time, and for each item the id of the existing job that
    stands for it, if any."""

    at: float
    found: list[str | None] | None


class LinePositions(NamedTuple):
    """The line each item joins (by number, from 1) and its position among those that join it. None
    where all items join one line in order: that is most of what such a batch would send and the
    driver look through."""

    lanes: list[str]
    counts: list[int]
    lines: list[int] | None
    places: list[int] | None


def places_of(items: list[NewJob]) -> LinePositions:
    lanes = sorted({item.lane for item in items})
    if len(lanes) == 1:
        return LinePositions(lanes, [len(items)], None, None)
    numbers = {lane: n for n, lane in enumerate(lanes, 1)}
    counts = [0] * len(lanes)
    lines, places = [], []
    for item in items:
        number = numbers[item.lane]
        counts[number - 1] += 1
        lines.append(number)
        places.append(counts[number - 1])
    return LinePositions(lanes, counts, lines, places)


def distinct(batch: NewJobs) -> tuple[list[NewJob], dict[str, NewJob]]:
    """The items without those that repeat a key, and who has each key."""
    first: dict[str, NewJob] = {}
    items = []
    for item in batch.items:
        if item.key is not None:
            earlier = first.setdefault(item.key, item)
            if earlier is not item:
                if earlier.payload != item.payload:
                    raise KeyConflict(item.key, earlier.id)
                continue
        items.append(item)
    return items, first


def _arrays(items: list[NewJob]) -> list[list[Any] | None]:
    keys = [item.key for item in items]
    return [
        [item.id for item in items],
        [item.payload for item in items],
        None if keys.count(None) == len(keys) else keys,
    ]


def _common(batch: NewJobs) -> list[Any]:
    return [
        batch.tenant,
        batch.kind,
        int(batch.priority),
        batch.run_at,
        batch.deadline,
        batch.timeout,
        batch.max_retries,
        batch.log,
        batch.parent_id,
        *(batch.parent_run or (None, None)),
        batch.attached,
        batch.replace_finished,
        batch.trace,
        batch.rerun_of,
    ]


async def store(
    database: Database,
    connection: Connection,
    batch: NewJobs,
    items: list[NewJob],
    weights: Weights,
) -> Stored:
    """Store the items in a transaction of their own, in one round trip."""
    where, step = places_of(items), step_of(batch.tenant, weights)
    try:
        row = await connection.fetchrow(
            database.sql(_CALL),
            *_arrays(items),
            where.lines,
            where.places,
            where.lanes,
            where.counts,
            step,
            *_common(batch),
        )
    except asyncpg.PostgresError as error:
        _refuse(error)
        raise
    return Stored(*row)


async def store_in(
    database: Database,
    pool: Pool,
    caller: CallersTransaction,
    queue_id: str,
    batch: NewJobs,
    items: list[NewJob],
    weights: Weights,
) -> Stored:
    """Store the items in a caller's transaction. Their turns are taken over another connection: the
    lock on them must not wait for the end of somebody's transaction."""
    where, step = places_of(items), step_of(batch.tenant, weights)
    at, firsts = database.clock.now(), None
    if _starts_now(batch, at):
        async with pool.connection() as own:
            firsts = await _take_turns(database, own, batch, where, step)
            await own.execute(database.sql("open_lines"), where.lanes, batch.kind)
    lists = [*_arrays(items), where.lines, where.places, where.lanes, firsts, step]
    topics = ["ready"] if batch.log is None else ["ready", "finished"]
    told = {
        **dict(zip(_NAMES, [*lists, *_common(batch)], strict=True)),
        **_bursts(batch, items),
        "at": at,
        "amounts": _amounts_of(items),
        "topics": None if database.poll_only else topics,
        "queue": queue_id,
    }
    return await caller.store(told, at)


def _starts_now(batch: NewJobs, at: float) -> bool:
    return batch.debounce is None and (batch.run_at is None or batch.run_at <= at)


def _amounts_of(items: list[NewJob]) -> list[str | None] | None:
    amounts = [item.amount for item in items]
    return amounts if any(amounts) else None


def _bursts(batch: NewJobs, items: list[NewJob]) -> dict[str, Any]:
    """What `store_bursts_1` takes besides; nothing of a batch without bursts."""
    if not batch.bursts:
        return {}
    seconds, max_wait = batch.debounce or (None, None)
    known = {"debounce": seconds, "max_wait": max_wait, "unique_for": batch.unique_for}
    return {"bursts": [item.burst for item in items], **known}


async def store_bursts(
    database: Database,
    pool: Pool,
    queue_id: str,
    batch: NewJobs,
    items: list[NewJob],
    weights: Weights,
) -> Stored:
    """Store a batch with bursts in a transaction of its own."""
    where, step = places_of(items), step_of(batch.tenant, weights)
    at, firsts = database.clock.now(), None
    if _starts_now(batch, at):
        async with pool.connection() as own:
            firsts = await _take_turns(database, own, batch, where, step)
    lists = [*_arrays(items), where.lines, where.places, where.lanes, firsts, step]
    told = {
        **dict(zip(_NAMES, [*lists, *_common(batch)], strict=True)),
        **_bursts(batch, items),
        "at": at,
        "amounts": _amounts_of(items),
        "queue": queue_id,
    }
    text = json.dumps(told, ensure_ascii=False)

    async def store(tx: Transaction) -> Stored:
        answer = json.loads(await tx.fetchval(_STORE_BURSTS, text))
        if "refused" in answer:
            refuse(answer["refused"], answer["detail"], answer["hint"])
        tx.wake(Topic.READY)
        if batch.log is not None:
            tx.wake(Topic.FINISHED)
        return Stored(at, answer["found"])

    return await pool.write(store)


def _amounts(
    items: list[NewJob], found: list[str | None] | None
) -> tuple[list[str], list[str]] | None:
    """The jobs that were stored and reserve something, and what that is; None: there are none."""
    new = zip(items, found or [None] * len(items), strict=True)
    some = [(item.id, item.amount) for item, old in new if old is None and item.amount is not None]
    return ([one for one, _ in some], [amount for _, amount in some]) if some else None


async def store_with_more(
    database: Database,
    pool: Pool,
    batch: NewJobs,
    items: list[NewJob],
    weights: Weights,
) -> Stored:
    """Store jobs together with what they reserve, the records that one takes over, or the tick of a
    schedule. Unlike a caller's transaction this one is short, so it makes the lines that its jobs
    join."""
    records, at, firsts = batch.records, database.clock.now(), None
    where, step = places_of(items), step_of(batch.tenant, weights)
    if batch.run_at is None or batch.run_at <= at:
        async with pool.connection() as own:  # in a transaction of its own, as for any job
            firsts = await _take_turns(database, own, batch, where, step)
    lists = [*_arrays(items), where.lines, where.places, where.lanes, firsts, step]

    async def store(tx: Transaction) -> Stored:
        if batch.tick is not None:
            from penstock.adapters.sql.schedules import move

            await move(tx, batch.tick)
        source = None if records is None else await lock_source(tx, records)
        try:
            found = await tx.fetchval(_STORE, *lists, *_common(batch), at)
        except asyncpg.PostgresError as error:
            _refuse(error)
            raise
        if amounts := _amounts(items, found):
            await tx.execute(_AMOUNTS, *amounts)
        if source is not None and records is not None and found is None:
            await take_over(tx, source, records, items[0].id)
        tx.wake(Topic.READY)
        if batch.log is not None:
            tx.wake(Topic.FINISHED)
        return Stored(at, found)

    return await pool.write(store)


async def _take_turns(
    database: Database, own: Connection, batch: NewJobs, where: LinePositions, step: float
) -> list[float]:
    of_tenant = (int(batch.priority), batch.tenant)
    firsts: list[float] = await own.fetchval(
        database.sql(_TURNS), where.lanes, *of_tenant, where.counts, step
    )
    return firsts


def _refuse(error: asyncpg.PostgresError) -> None:
    refuse(error.sqlstate, error.detail, error.hint)


def refuse(code: str | None, detail: str, hint: str) -> None:
    """Raise the refusal that a function of the queue has told by this code, if it is one."""
    match code:
        case "PK001":
            raise KeyConflict(detail, hint) from None
        case "PK002":
            raise LogStopped(detail) from None
        case "PK003":
            raise ParentEnded(detail) from None


async def drawn_up(batch: NewJobs, items: list[NewJob]) -> list[Job]:
    """The jobs of a batch but for their time, made while the server stores them. In between, what
    it is to store has to be sent."""
    jobs: list[Job] = []
    for n in range(0, len(items), _SLICE):
        jobs += [new_job(batch, item, 0.0) for item in items[n : n + _SLICE]]
        await asyncio.sleep(0)
    return jobs


def jobs_of(
    batch: NewJobs,
    items: list[NewJob],
    first: dict[str, NewJob],
    stored: Stored,
    old: dict[str, Job],
    drafts: list[Job] | None = None,
) -> list[Job]:
    """The job of each item of the batch, in order, new or already there."""
    if stored.found is None and not first:
        if drafts is None:
            return [new_job(batch, item, stored.at) for item in items]
        for job in drafts:
            job.enqueued_at, job.run_at = stored.at, max(job.run_at, stored.at)
        return drafts
    by_id = {
        item.id: new_job(batch, item, stored.at) if found is None else old[found]
        for item, found in zip(items, stored.found or [None] * len(items), strict=True)
    }
    return [by_id[(first[item.key] if item.key is not None else item).id] for item in batch.items]
