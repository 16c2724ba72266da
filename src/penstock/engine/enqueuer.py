"""Converts a caller's arguments to a batch that the queue can store."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from datetime import datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from penstock.engine.handlers import Handlers, check_kind, check_limits
from penstock.engine.spans import sending
from penstock.errors import ValidationError
from penstock.model.ids import is_id, new_ids
from penstock.model.job import DEFAULT_MAX_RETRIES, DEFAULT_TIMEOUT, Job, Priority, PriorityName
from penstock.model.payload import encode_payload, plain_payload
from penstock.ports.queue import (
    NO_LANE,
    UNKNOWN_LANE,
    JobQueue,
    NewJob,
    NewJobs,
    ParentRun,
    TakenOver,
)

if TYPE_CHECKING:
    from penstock.engine.bursts import Bursts

logger = logging.getLogger("penstock")

BATCH = 10_000
"""Jobs stored in one transaction at most; a longer list is stored in several."""
NAME_LIMIT = 512
ALIKE = 0.8
"""How like another a kind must be to be taken for a slip of the pen."""


When = float | datetime
"""A time: seconds since 1970, or a datetime with a time zone."""


class EnqueueOptions(TypedDict, total=False):
    """Options of `enqueue` and `enqueue_many`, of an app and of a running job."""

    priority: PriorityName | Priority
    """`medium` unless given; of a child that of its parent."""
    delay: float | None
    """Not before so many seconds have passed."""
    run_at: When | None
    """Not before."""
    deadline: When | None
    """Not after."""
    timeout: float | None
    """How long one run may take, in seconds; that of the kind unless given."""
    max_retries: int | None
    """That of the kind unless given."""
    tenant: str
    """`default` unless given; of a child that of its parent."""
    log: str | None
    """The log it reports to; of a child that of its parent unless given."""
    replace: Literal["finished"] | None
    """A key whose job failed or was cancelled starts a new job."""
    debounce: float | None
    """Seconds: starts so long after the last enqueue with this `debounce_key`, and once for all of
    them, with the latest payload."""
    debounce_key: str | Sequence[str] | None
    """What `debounce` goes by, per tenant and kind: one for all, or a list with one for each."""
    max_wait: float | None
    """Seconds from the first of these enqueues; then it starts however many come. Ten times
    `debounce` unless given."""
    unique_for: float | None
    """Seconds: an equal enqueue within them gives the first one's job, whatever became of it."""
    unique_key: str | Sequence[str] | None
    """What is equal for `unique_for`, per tenant and kind: what has this key, instead of what has
    the same payload. One for all, or a list with one for each."""
    conn: Any
    """A connection of yours to the queue's database, with a transaction open: of asyncpg, psycopg,
    SQLAlchemy or Django; for a SQLite file of sqlite3, aiosqlite, SQLAlchemy or Django. The job is
    stored if that is committed, and gone if it is not. Not on Redis."""


class Enqueuer:
    """Checks and stores new jobs. Kinds known here are checked against their handler."""

    def __init__(self, queue: JobQueue, handlers: Handlers) -> None:
        self._queue = queue
        self._handlers = handlers
        self._unknown: set[str] = set()
        """Kinds that were warned of."""

    async def enqueue(
        self,
        kind: str,
        payload: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        job_id: str | None = None,
        **options: Any,
    ) -> Job:
        """Store one job, or find the one that has this key (or id)."""
        if job_id is not None and not is_id(job_id):
            raise ValidationError(f"job_id is 32 hex digits in small letters, not {job_id!r:.60}")
        keys = None if key is None else [key]
        ids = None if job_id is None else [job_id]
        return (await self.enqueue_many(kind, [payload], keys=keys, ids=ids, **options))[0]

    async def rerun(
        self, job: Job, *, job_id: str | None = None, records: TakenOver | None = None
    ) -> Job:
        """Store a copy of a job as a new one: the same kind, payload, lane, priority and
        tenant, without its key, log and deadline, with these records. What is not known here of its
        kind is what the job has."""
        options: dict[str, Any] = {"priority": job.priority, "tenant": job.tenant}
        options |= {"rerun_of": job.id, "records": records}
        if job.kind in self._handlers or job.timeout is None:
            return await self.enqueue(job.kind, job.payload, job_id=job_id, **options)
        (new_id,) = new_ids(1) if job_id is None else [job_id]
        payload = encode_payload(job.payload)
        lane = job.lane or NO_LANE
        if lane != NO_LANE and self._queue.lane_config(lane).has_amounts:
            lane = UNKNOWN_LANE  # who knows the kind knows the amount, too
        item = NewJob(new_id, payload, None, lane, job.payload)
        batch = NewJobs(
            job.kind, [item], timeout=job.timeout, max_retries=job.max_retries, **options
        )
        return (await self._queue.enqueue(batch))[0]

    async def enqueue_many(
        self,
        kind: str,
        payloads: Sequence[dict[str, Any] | None],
        *,
        keys: Sequence[str | None] | None = None,
        ids: Sequence[str] | None = None,
        priority: PriorityName | Priority = "medium",
        delay: float | None = None,
        run_at: When | None = None,
        deadline: When | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        tenant: str = "default",
        log: str | None = None,
        parent_id: str | None = None,
        parent_run: ParentRun | None = None,
        attached: bool = False,
        rerun_of: str | None = None,
        records: TakenOver | None = None,
        replace: Literal["finished"] | None = None,
        debounce: float | None = None,
        debounce_key: str | Sequence[str] | None = None,
        max_wait: float | None = None,
        unique_for: float | None = None,
        unique_key: str | Sequence[str] | None = None,
        conn: Any = None,
    ) -> list[Job]:
        """Store the jobs in one round trip per 10,000; nothing of a batch, or all of it."""
        check_kind(kind)
        if keys is not None and len(keys) != len(payloads):
            raise ValidationError(f"{len(payloads)} payloads but {len(keys)} keys")
        if replace not in (None, "finished"):
            raise ValidationError(f'replace is "finished" or None, not {replace!r}')
        for name, value in (("tenant", tenant), ("log", log), *(("key", k) for k in keys or ())):
            check_name(name, value)
        check_limits(
            "the job",
            DEFAULT_TIMEOUT if timeout is None else timeout,
            DEFAULT_MAX_RETRIES if max_retries is None else max_retries,
            ValidationError,
        )
        handler = self._handlers.get(kind)
        plain = [plain_payload(payload) for payload in payloads]
        if handler is None:
            self.warn_of(kind)
        else:
            timeout = handler.timeout if timeout is None else timeout
            max_retries = handler.max_retries if max_retries is None else max_retries
            for _, text in plain:
                handler.arguments.parse(text)
        bursts: Bursts | None = None
        about = (debounce, debounce_key, max_wait, unique_for, unique_key)
        if any(one is not None for one in about):
            from penstock.engine.bursts import OPTIONS, bursts_of

            key = next((one for one in keys or () if one is not None), None)
            besides = {"key": key, "delay": delay, "run_at": run_at, "log": log}
            options = {**dict(zip(OPTIONS, about, strict=True)), **besides}
            bursts = bursts_of([text for _, text in plain], options)
        lanes = [
            UNKNOWN_LANE if handler is None else handler.lane_of(payload) for payload, _ in plain
        ]
        amounts: list[str | None] = [None] * len(plain)
        if handler is not None and handler.amount is not None:
            from penstock.engine.amounts import amounts_of

            amounts = amounts_of(handler, plain, lanes, self._queue.lane_config)
        now = self._queue.now()
        start = _start(delay, run_at, now)
        if deadline is not None:
            # A child's may be that of its parent, which ends with it.
            inherited = parent_run is not None
            deadline = absolute("deadline", deadline) if inherited else ahead(deadline, now)
        ids = new_ids(len(plain)) if ids is None else ids
        items = [
            NewJob(job_id, text, key, lane, payload, amount)
            for job_id, (payload, text), key, lane, amount in zip(
                ids, plain, keys or [None] * len(plain), lanes, amounts, strict=True
            )
        ]
        if bursts is not None:
            items = [
                item._replace(burst=burst) for item, burst in zip(items, bursts.keys, strict=True)
            ]
        jobs: list[Job] = []
        for first in range(0, len(items), BATCH):
            whole = items[first : first + BATCH]
            some = whole if bursts is None else bursts.distinct(whole)
            batch = NewJobs(
                kind=kind,
                items=some,
                tenant=tenant,
                priority=Priority.parse(priority),
                run_at=start,
                deadline=deadline,
                timeout=timeout,
                max_retries=max_retries,
                log=log,
                parent_id=parent_id,
                parent_run=parent_run,
                attached=attached,
                rerun_of=rerun_of,
                records=records,
                replace_finished=replace == "finished",
                debounce=None if bursts is None else bursts.debounce,
                unique_for=None if bursts is None else bursts.unique_for,
            )
            with sending(kind, tenant, some) as span:
                traced = (
                    dataclasses.replace(batch, trace=span.traceparent)
                    if span.traceparent
                    else batch
                )
                stored = await self._queue.enqueue(traced, conn)
                jobs += stored if bursts is None else bursts.spread(whole, some, stored)
        return jobs

    def warn_of(self, kind: str) -> None:
        """Say once that a kind without a handler here is much like one that has one. Others are
        no mistake: their handlers are in another program."""
        if kind in self._unknown or len(self._unknown) >= BATCH:
            return
        self._unknown.add(kind)
        if near := get_close_matches(kind, self._handlers, 1, ALIKE):
            logger.warning(
                "no handler of kind %r is registered here, so its jobs wait for another process; "
                "did you mean %r?",
                kind,
                near[0],
            )


def _start(delay: Any, run_at: When | None, now: float) -> float | None:
    if delay is not None and run_at is not None:
        raise ValidationError("give either delay or run_at, not both")
    if delay is not None:
        is_number = isinstance(delay, int | float) and not isinstance(delay, bool)
        if not is_number or not 0 <= delay < 1e10:
            raise ValidationError(f"delay is a number of seconds, 0 or more, not {delay!r:.60}")
        return now + float(delay)
    return None if run_at is None else absolute("run_at", run_at)


def absolute(name: str, value: Any) -> float:
    """Seconds since 1970 of an absolute time."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValidationError(f"{name} needs a time zone: datetime.now(timezone.utc) + ...")
        return value.timestamp()
    if not isinstance(value, int | float) or isinstance(value, bool) or not 1e9 < value < 1e11:
        raise ValidationError(
            f"{name} is an absolute time (a datetime, or seconds since 1970), not {value!r}"
        )
    return float(value)


def ahead(deadline: When, now: float) -> float:
    """A deadline in seconds since 1970; ValidationError if it has passed."""
    at = absolute("deadline", deadline)
    if at <= now:
        raise ValidationError(f"the deadline has passed, {now - at:,.1f} s ago; give a later one")
    return at


def check_name(name: str, value: Any) -> None:
    """ValidationError unless it is a name that a queue can store, or None."""
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= NAME_LIMIT or not value.isprintable():
        raise ValidationError(f"{name} is 1 to {NAME_LIMIT} printable characters, not {value!r}")
