"""The job queue in Redis or Valkey."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from penstock import runtime
from penstock.adapters.life_file import runtime_folder
from penstock.adapters.listener import Listener
from penstock.adapters.queue import BaseQueue, Joining, QueueOptions
from penstock.adapters.queue_clock import QueueClock
from penstock.adapters.redis import (
    address,
    budgets,
    feed,
    figures,
    lanes,
    ledger,
    rows,
    schedules,
    steps,
)
from penstock.adapters.redis.connections import Connections
from penstock.adapters.redis.durability import Synced, check_server
from penstock.adapters.redis.member import RedisMember
from penstock.adapters.redis.scripts import given
from penstock.adapters.redis.wakeups import Wakeups
from penstock.adapters.sql.job_rows import new_job
from penstock.errors import (
    ConfigError,
    JobEnded,
    JobNotFound,
    KeyConflict,
    LogStopped,
    ParentEnded,
    QueueUnavailable,
    ScheduleChanged,
    SignalLimit,
)
from penstock.lanes import view as lane_view
from penstock.lanes.state import LaneState, own_limits
from penstock.model.budget import BudgetConfig, BudgetState
from penstock.model.change import Change
from penstock.model.job import Job, JobState
from penstock.model.lane import LaneLimits
from penstock.ports.lanes import LaneCommand, LaneInfo
from penstock.ports.ledger import Charge, Charged, UsageQuery, UsageSum
from penstock.ports.operators import DeadGroup, KindCounts, ProcessInfo
from penstock.ports.queue import CASCADE_SECONDS, FeedEntry, JobFilter, NewJobs, Stopped, Topic
from penstock.ports.steps import SECRET_BYTES, SIGNAL_LIMIT, Recorded, StepRow, signal_wait

if TYPE_CHECKING:
    from penstock.ports.backlog import Backlog

logger = logging.getLogger("penstock.redis")

IDS = 200
"""Ids asked for in one trip."""
_SAME = (
    *("tenant", "log", "parent_id", "error_type", "lane", "priority", "enqueued_after"),
    "enqueued_before",
)
"""Parts of a filter that scripts take as they are."""
CHUNK = 200
"""Jobs read or changed in one trip, so that nobody else waits long for the server."""


class RedisQueue(BaseQueue):
    """See `penstock.ports.queue.JobQueue`. As durable as the server is configured to be.

    `allow_volatile`: use a server that may forget (no append-only file, or evicts keys).
    `wait_aof`: an enqueue waits until the server's append-only file has the jobs.
    """

    def __init__(
        self,
        url: str,
        *,
        allow_volatile: bool = False,
        wait_aof: bool = False,
        **options: Unpack[QueueOptions],
    ) -> None:
        super().__init__(**options)
        self._address = address.parse(url)
        self.url = f"{self._address.shown}?namespace={self._address.namespace}"
        self._allow_volatile = allow_volatile
        self._wait_aof = wait_aof
        self.connections = Connections(self._address)
        self._wakeups = Wakeups(self.connections)
        self._synced = Synced(self.connections)
        self.clock = QueueClock()

    @property
    def folder(self) -> Path:
        """Where the processes of this machine keep their life files."""
        try:
            return runtime_folder(self._address.place)
        except OSError as error:
            raise QueueUnavailable(
                f"cannot use {error.filename}: {error.strerror}; worker processes keep a small "
                "file there (XDG_RUNTIME_DIR names another folder)"
            ) from error

    async def open(self) -> None:
        self.connections.open()
        try:
            await check_server(self.connections, self._allow_volatile, self._wait_aof)
            asked = self.clock.local()
            seconds, microseconds = await self.connections.command("TIME")
            self.clock.sample(asked, int(seconds) + int(microseconds) / 1e6)
            await self._wakeups.open()
        except BaseException:
            await self.connections.close()
            raise

    async def close(self) -> None:
        async with AsyncExitStack() as closing:  # each of them, whatever becomes of the others
            closing.push_async_callback(self.connections.close)
            closing.push_async_callback(self._synced.close)
            closing.push_async_callback(self._wakeups.close)

    async def exists(self) -> bool:
        connections = Connections(self._address)
        connections.open()
        try:
            return bool(await connections.command("EXISTS", f"{self._address.tag}:numbers"))
        finally:
            await connections.close()

    def now(self) -> float:
        return self.clock.now()

    async def enqueue(self, batch: NewJobs, conn: Any = None) -> list[Job]:
        if conn is not None:
            raise ConfigError(
                "conn= is for a queue in PostgreSQL or SQLite: Redis can be no part of your "
                "transaction. Enqueue after its commit, with key= so that doing it twice is "
                "harmless; or have the queue in your database"
            )
        names = [item.lane for item in batch.items]
        distinct = dict.fromkeys(names)
        keys = [item.key or False for item in batch.items]
        amounts = [item.amount or False for item in batch.items]
        ask: dict[str, Any] = {
            "spec": json.dumps(_spec(batch)),
            "kind": batch.kind,
            "tenant": batch.tenant,
            "priority": int(batch.priority),
            "run_at": batch.run_at,
            "deadline": batch.deadline,
            "log": batch.log,
            "parent_id": batch.parent_id,
            "parent_run": batch.parent_run,
            "attached": "1" if batch.attached else None,
            "replace_finished": batch.replace_finished,
            "data": json.dumps({"kind": batch.kind}),
            "weights": self.weights_of([batch.tenant]),
            "ids": [item.id for item in batch.items],
            "lane": names[0] if len(distinct) == 1 else None,
            "lanes": names if len(distinct) != 1 else None,
            "configs": lanes.configs(distinct, self.lane_config),
            "keys": keys if any(keys) else None,
            "amounts": amounts if any(amounts) else None,
            "records": batch.records,
            "tick": None if batch.tick is None else schedules.written(*batch.tick),
            "bursts": [item.burst for item in batch.items] if batch.bursts else None,
            "debounce": batch.debounce and batch.debounce.seconds,
            "max_wait": batch.debounce and batch.debounce.max_wait,
            "unique_for": batch.unique_for,
        }
        payloads = [item.payload for item in batch.items]
        outcome, *reply = await self.connections.call("enqueue", ask, *payloads)
        match outcome:
            case "conflict":
                raise KeyConflict(*reply)
            case "log stopped":
                raise LogStopped(*reply)
            case "parent ended":
                raise ParentEnded(*reply)
            case "unknown":
                raise JobNotFound(*reply)
            case "schedule changed":
                raise ScheduleChanged(*reply)
        await self.synced()
        now, answers, view = float(reply[0]), dict(reply[1]), reply[2]
        known = {job.id: job for job in rows.jobs(view, self.now())}
        for number, item in enumerate(batch.items, 1):
            if number not in answers:
                known[item.id] = new_job(batch, item, now)
        return [known[answers.get(n, item.id)] for n, item in enumerate(batch.items, 1)]

    def weights_of(self, tenants: Sequence[str] | None = None) -> dict[str, float] | None:
        """The weights that are not 1; of these tenants, or of all."""
        some = self.weights if tenants is None else {t: self.weights.get(t, 1.0) for t in tenants}
        return {tenant: weight for tenant, weight in some.items() if weight != 1} or None

    async def get(self, ids: Sequence[str]) -> dict[str, Job]:
        jobs: dict[str, Job] = {}
        for first in range(0, len(ids), IDS):
            some = {"ids": list(ids[first : first + IDS])}
            _, view = await self.connections.call("find", {"where": some, "limit": IDS})
            jobs.update((job.id, job) for job in rows.jobs(view, self.now()))
        return jobs

    async def finished(self, ids: Sequence[str]) -> list[str]:
        over: list[str] = []
        for first in range(0, len(ids), IDS):
            over += await self.connections.call("finished", {"ids": list(ids[first : first + IDS])})
        return over

    async def find(self, where: JobFilter, limit: int, before: str | None = None) -> list[Job]:
        found: list[Job] = []
        asked = await self._where(where)
        ask: dict[str, Any] = {"where": asked, "before": before}
        while len(found) < limit:
            ask["limit"] = min(CHUNK, limit - len(found))
            cursor, view = await self.connections.call("find", ask)
            found += rows.jobs(view, self.now())
            if not cursor:
                break
            ask |= {"cursor": float(cursor), "before": None}
        return found

    async def _where(self, where: JobFilter, states: Sequence[JobState] | None = None) -> Any:
        """The filter as scripts take it; `states` narrows its states further."""
        kinds = None if where.kind is None else [where.kind]
        if where.kind is not None and any(c in where.kind for c in "*?["):
            pattern = where.kind
            kinds = [c.kind for c in await self.counts() if fnmatchcase(c.kind, pattern)]
        wanted = states if where.states is None else where.states
        if wanted is not None and states is not None:
            wanted = [state for state in wanted if state in states]
        ask = {name: getattr(where, name) for name in _SAME}
        return given(
            ask
            | {
                "ids": None if where.ids is None else list(where.ids),
                "states": None if wanted is None else [str(state.value) for state in wanted],
                "kinds": kinds,
            }
        )

    async def cancel(self, where: JobFilter) -> list[str]:
        unfinished = [JobState.QUEUED, JobState.RUNNING]
        cancelled = await self._in_chunks("cancel", where, unfinished)
        await self.cancel_children(CASCADE_SECONDS)
        return cancelled

    async def cancel_children(self, seconds: float = math.inf) -> None:
        """Cancel the children of cancelled jobs, for about so long."""
        until = time.monotonic() + seconds
        while await self.connections.call("cascade", {}) and time.monotonic() < until:
            pass

    async def redrive(self, where: JobFilter, *, from_scratch: bool = False) -> list[str]:
        also = {"from_scratch": from_scratch}
        return await self._in_chunks("redrive", where, [JobState.FAILED], also)

    async def signal(self, job_id: str, name: str, payload: str, key: str | None) -> bool:
        ask = {"id": job_id, "name": name, "key": key, "limit": SIGNAL_LIMIT}
        ask["waits"] = signal_wait(name)
        outcome, *reply = await self.connections.call("signal", ask, payload)
        match outcome:
            case "unknown":
                raise JobNotFound(job_id)
            case "finished":
                raise JobEnded(job_id, *reply)
            case "full":
                raise SignalLimit(
                    f"job {job_id} has got {SIGNAL_LIMIT:,} signals, and takes no more"
                )
        await self.synced()
        return bool(outcome == "stored")

    async def secret(self, name: str) -> bytes:
        place = f"{self.connections.address.tag}:secrets"
        fresh = runtime.random_bytes(SECRET_BYTES).hex()
        await self.connections.command("HSETNX", place, name, fresh)
        return bytes.fromhex(await self.connections.command("HGET", place, name))

    async def steps(self, job_id: str) -> list[StepRow]:
        return await steps.read(self.connections, job_id)

    async def recorded(self, job_id: str, after: int, limit: int) -> list[Recorded]:
        ask = {"id": job_id, "after": after, "limit": limit}
        return [
            Recorded(int(float(position)), steps.read_row(key, value))
            for position, key, value in await self.connections.call("recorded", ask)
        ]

    async def last_recorded(self, ids: Sequence[str]) -> dict[str, int]:
        last: dict[str, int] = {}
        for first in range(0, len(ids), IDS):
            some = {"ids": list(ids[first : first + IDS])}
            found = await self.connections.call("last_recorded", some)
            last.update((job_id, int(float(position))) for job_id, position in found)
        return last

    async def synced(self) -> None:
        """With `wait_aof`, wait until the append-only file has what was written so far."""
        if self._wait_aof:
            await self._synced.wait()

    async def discard(self, where: JobFilter) -> list[str]:
        return await self._in_chunks("discard", where, [JobState.FAILED])

    async def _in_chunks(
        self,
        change: str,
        where: JobFilter,
        states: Sequence[JobState],
        also: Mapping[str, Any] | None = None,
    ) -> list[str]:
        changed: list[str] = []
        ask: dict[str, Any] = {"where": await self._where(where, states), "limit": CHUNK}
        ask |= also or {}
        while True:
            cursor, ids = await self.connections.call(change, ask)
            changed += ids
            if not cursor:
                return changed
            ask["cursor"] = float(cursor)

    async def counts(self, tenant: str | None = None) -> list[KindCounts]:
        return await figures.counts(self.connections, tenant)

    async def queued(self, tenant: str | None = None) -> int:
        return await figures.queued(self.connections, tenant)

    async def dead_groups(self, tenant: str | None = None) -> list[DeadGroup]:
        return await figures.dead_groups(self.connections, tenant)

    async def charge(self, charges: Sequence[Charge], *, soft: bool = False) -> Charged:
        charged = await ledger.charge(self.connections, charges)
        if not soft:
            await self.synced()
        return charged

    async def budgets(self) -> list[BudgetState]:
        return await budgets.read(self.connections, self.now())

    async def set_budget(
        self, payer: str, config: BudgetConfig | None, configured: str | None = None
    ) -> bool:
        return await budgets.store(self.connections, payer, config, configured, self.now())

    async def usage(self, query: UsageQuery) -> list[UsageSum]:
        return await ledger.usage(self.connections, query)

    @property
    def schedules(self) -> schedules.RedisSchedules:
        return schedules.RedisSchedules(self)

    async def next_schedule(self, now: float) -> float | None:
        at = await self.connections.call("next_schedule", {"now": now})
        return None if at is None else float(at)

    def callers_waiting(self) -> int:
        return self.connections.waiting

    async def work_left(self, kinds: Sequence[str] | None) -> bool:
        ask = {"kinds": None if kinds is None else list(kinds)}
        return bool(await self.connections.call("work_left", ask))

    async def processes(self) -> list[ProcessInfo]:
        found = await self.connections.call("processes", {})
        return sorted(map(rows.process, found), key=lambda info: info.joined_at)

    async def lanes(self) -> list[LaneInfo]:
        told = await self._lane_states()
        states = [told[name][0] for name in sorted(told)]
        waiting = {name: count for name, (_, count) in told.items()}
        return lane_view.infos(states, waiting, self.now())

    async def backlog(self) -> Backlog:
        from penstock.adapters.redis import backlog  # for forecasts alone

        states = [state for state, _ in (await self._lane_states()).values()]
        return await backlog.read(self.connections, states, self.now())

    async def _lane_states(self) -> dict[str, tuple[LaneState, int]]:
        """All lanes in use, and how many jobs wait in the lines of each."""
        told: dict[str, tuple[LaneState, int]] = {}
        since, known = "0", -1
        while since and len(told) > known:
            known = len(told)
            some, since = await self.connections.call("lane_rows", {"since": since})
            told.update((one[0], lanes.lane(one)) for one in some)
        return told

    async def configure(self, lanes_: Sequence[str]) -> None:
        asked = lanes.configs(lanes_, self.lane_config)
        await self.connections.call("configure", {"configs": asked})

    async def control(self, lane: str, control: LaneCommand) -> bool:
        ask = {"lane": lane, "what": control.value}
        return bool(await self.connections.call("control", ask))

    async def limit(self, lane: str, limits: LaneLimits | None) -> bool:
        ask = {"lane": lane, "given": given(own_limits(limits))}
        return bool(await self.connections.call("limit", ask))

    async def stop(self, tenant: str, log: str, *, running: bool, whole: bool = False) -> Stopped:
        ask = {"tenant": tenant, "log": log, "running": running, "whole": whole}
        stopped = Stopped(*await self.connections.call("stop", ask))
        await self.cancel_children(CASCADE_SECONDS)
        return stopped

    async def reopen(self, tenant: str, log: str) -> None:
        await self.connections.call("reopen", {"tenant": tenant, "log": log})

    async def stopped(self, logs: Sequence[tuple[str, str]]) -> list[bool]:
        return [bool(one) for one in await self.connections.call("stopped", {"logs": list(logs)})]

    async def note(self, tenant: str, log: str, what: str, data: Mapping[str, Any]) -> None:
        ask = {"tenant": tenant, "log": log, "data": json.dumps(dict(data))}
        await self.connections.call("note", {**ask, "what": json.dumps(what)[1:-1]})

    async def changes(self, tenant: str, log: str, since: int, limit: int) -> list[Change]:
        log_key = f"{self._address.tag}:log:{tenant}\n{log}"
        entries = await self.connections.command("LRANGE", log_key, since, since + limit - 1)
        changes = []
        for version, entry in enumerate(entries, since + 1):
            at, what, job_id, data = json.loads(entry)
            changes.append(Change(log, version, at, what, job_id, data))
        return changes

    async def versions(self, logs: Sequence[tuple[str, str]]) -> list[int]:
        return list(await self.connections.call("versions", {"logs": list(logs)}))

    async def feed(self, tenant: str, after: str | None, limit: int) -> list[FeedEntry]:
        return await feed.read(self.connections, tenant, after, limit, self.now())

    async def feed_end(self, tenant: str) -> str:
        return await feed.end(self.connections, tenant)

    def new_member(self, joining: Joining) -> RedisMember:
        """Nothing is handed over unasked: its inbox stays empty."""
        return RedisMember(self, joining)

    def listen(self, topic: Topic) -> Listener:
        return self._wakeups.listen(topic)

    async def _free_lost_slots(self) -> None:
        since, before = "0", ""
        while since and since != before:
            before = since
            freed, since = await self.connections.call("lost_slots", {"since": since})
            for lane, holder, ref in freed:
                logger.error(
                    "a slot of lane %s belonged to nobody (%s, %s): freed", lane, holder, ref
                )

    async def retain(self) -> None:
        """Delete completed and cancelled jobs that are past the retention, and spent logs."""
        ask = {"retention_seconds": self.retention_seconds}
        while await self.connections.call("retain", ask):
            pass
        await ledger.forget(self.connections, self.now() - self.usage_retention_seconds)
        await self._free_lost_slots()
        skip = 0
        while skip >= 0:
            skip = await self.connections.call("forget_lanes", {"skip": skip})


def _spec(batch: NewJobs) -> dict[str, Any]:
    """What the jobs of a batch have in common."""
    names = ["timeout", "max_retries", "trace"]
    if batch.debounce is None:
        names += ["log", "parent_id", "rerun_of"]
    spec = {"kind": batch.kind, "tenant": batch.tenant, "priority": int(batch.priority)}
    return given(spec | {name: getattr(batch, name) for name in names})
