"""`app.schedules`: schedules that are rows, made and changed while everything runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from penstock.engine.enqueuer import Enqueuer
from penstock.engine.handlers import Handler, check_kind
from penstock.engine.schedule import Schedule, catch_up_of, schedule_of
from penstock.engine.ticker import TENANT, periodic_kinds
from penstock.errors import (
    ConfigError,
    ScheduleChanged,
    ScheduleInCode,
    ScheduleNotFound,
    ValidationError,
)
from penstock.model.ids import new_id
from penstock.model.job import Job, Priority, PriorityName
from penstock.model.payload import plain_payload, read_payload
from penstock.model.schedule import ScheduleInfo
from penstock.ports.queue import JobQueue
from penstock.ports.schedules import ScheduleRow

if TYPE_CHECKING:
    from penstock.wiring.sync import SyncPenstock

P = ParamSpec("P")
T = TypeVar("T")
NAME_LIMIT = 200
PAGE = 1000
TRIES = 20
"""Changes that others get in the way of before one is given up."""

_PRIORITIES: dict[Priority, PriorityName] = {
    Priority.HIGH: "high",
    Priority.MEDIUM: "medium",
    Priority.LOW: "low",
}
Change = Callable[[ScheduleRow], ScheduleRow]


class Schedules:
    """Schedules by name, of each tenant. A worker process has to run for their ticks to be
    enqueued; it need not handle their kinds."""

    def __init__(
        self, queue: JobQueue, handlers: Mapping[str, Handler], enqueuer: Enqueuer
    ) -> None:
        self._queue = queue
        self._handlers = handlers
        self._enqueuer = enqueuer

    async def set(
        self,
        name: str,
        kind: str,
        payload: dict[str, Any] | None = None,
        *,
        cron: str | None = None,
        every: float | None = None,
        timezone: str = "UTC",
        priority: PriorityName | Priority = "medium",
        overlap: bool = False,
        catch_up: float | None = None,
        tenant: str | None = None,
    ) -> ScheduleInfo:
        """Make a schedule, or change the one of this name; what is not given is as it is by
        default. A job of the kind is enqueued at each tick: every so many seconds (1 or more,
        counted since 1970), or by a cron expression in a time zone. The other options are those of
        `@app.job`. One that is paused stays so. ValidationError says what is wrong."""
        of = _checked(name, tenant)
        try:
            check_kind(kind)
            schedule = schedule_of(name, every, cron, timezone)
            late = catch_up_of(name, catch_up)
        except ConfigError as error:
            raise ValidationError(str(error)) from None
        text = plain_payload(payload)[1]
        if (handler := self._handlers.get(kind)) is not None:
            handler.arguments.parse(text)
        else:
            self._enqueuer.warn_of(kind)
        await self._refuse_code(of, name)
        given: dict[str, Any] = {
            "kind": kind,
            "payload": text,
            "cron": None if cron is None else " ".join(cron.split()),
            "every_seconds": None if every is None else float(every),
            "timezone": timezone,
            "priority": int(Priority.parse(priority)),
            "overlap": bool(overlap),
            "catch_up": late,
        }

        def changed(row: ScheduleRow) -> ScheduleRow:
            new = replace(row, **given)
            if row.next_at is None or _timing(new) == _timing(row):
                return new
            return self._counted(new, schedule)

        return await self._change(of, name, changed, lambda: self._new(of, name, schedule, given))

    async def get(self, name: str, *, tenant: str | None = None) -> ScheduleInfo:
        """The schedule of this name. Raises ScheduleNotFound."""
        of = tenant or TENANT
        row = await self._queue.schedules.get(of, name)
        if row is not None:
            return _info(row)
        for one in await self.in_code():
            if (one.tenant, one.name) == (of, name):
                return one
        raise ScheduleNotFound(name)

    async def list(self, *, tenant: str | None = None) -> Sequence[ScheduleInfo]:
        """All schedules of a tenant, or of all, by name: rows first, then those in the code that
        worker processes have told of, or that this app has."""
        found: list[ScheduleInfo] = []
        after = None
        while len(found) % PAGE == 0:
            rows = await self._queue.schedules.page(tenant, after, PAGE)
            if not rows:
                break
            found += map(_info, rows)
            after = (rows[-1].tenant, rows[-1].name)
        return found + [one for one in await self.in_code() if tenant in (None, one.tenant)]

    async def page(self, tenant: str, after: str | None, limit: int) -> Sequence[ScheduleInfo]:
        """Rows of a tenant, by name, after that of the page before."""
        last = None if after is None else (tenant, after)
        return [_info(row) for row in await self._queue.schedules.page(tenant, last, limit)]

    async def in_code(self) -> Sequence[ScheduleInfo]:
        """Those that are options of `@app.job`. All are of the tenant `default`."""
        told = periodic_kinds(await self._queue.processes(), self._queue.now())
        known = {one.kind for one in told}
        found = [_of_code(one.kind, one.schedule, one.next, one.last) for one in told]
        for kind, handler in self._handlers.items():
            if handler.periodic is not None and kind not in known:
                found.append(_of_code(kind, str(handler.periodic.schedule), None, None))
        return sorted(found, key=lambda one: one.name)

    async def pause(self, name: str, *, tenant: str | None = None) -> ScheduleInfo:
        """Enqueue no more jobs until it is resumed; those that are there stay."""
        return await self._change(
            tenant or TENANT, name, lambda row: replace(row, next_at=None, counted_at=None)
        )

    async def resume(self, name: str, *, tenant: str | None = None) -> ScheduleInfo:
        """Go on with the next tick. Those of the time in between are not made up."""

        def resumed(row: ScheduleRow) -> ScheduleRow:
            if row.next_at is not None:
                return row
            schedule = schedule_of(name, row.every_seconds, row.cron, row.timezone)
            return self._counted(row, schedule)

        return await self._change(tenant or TENANT, name, resumed)

    async def run_now(
        self, name: str, *, tenant: str | None = None, job_id: str | None = None
    ) -> Job:
        """Enqueue a job of the schedule at once, also if it is paused. It is no tick: the next one
        comes when it would have come. `job_id` is as for `enqueue`."""
        of = tenant or TENANT
        row = await self._known(of, name)
        payload = read_payload(row.payload)
        priority = Priority(row.priority)
        return await self._enqueuer.enqueue(
            row.kind, payload, job_id=job_id, priority=priority, tenant=of
        )

    async def remove(self, name: str, *, tenant: str | None = None) -> None:
        """Delete a schedule. The jobs that it has enqueued stay. Raises ScheduleNotFound."""
        of = tenant or TENANT
        if not await self._queue.schedules.remove(of, name):
            await self._known(of, name)
            raise ScheduleNotFound(name)

    async def _known(self, tenant: str, name: str) -> ScheduleRow:
        row = await self._queue.schedules.get(tenant, name)
        if row is None:
            await self._refuse_code(tenant, name)
            raise ScheduleNotFound(name)
        return row

    async def _refuse_code(self, tenant: str, name: str) -> None:
        if any((one.tenant, one.name) == (tenant, name) for one in await self.in_code()):
            raise ScheduleInCode(name)

    async def _change(
        self,
        tenant: str,
        name: str,
        change: Change,
        new: Callable[[], ScheduleRow] | None = None,
    ) -> ScheduleInfo:
        """Write what `change` makes of a row, unless that is the same; `new` makes one if there is
        none."""
        for _ in range(TRIES):
            row = await self._queue.schedules.get(tenant, name)
            if row is None and new is not None:
                after = new()
            else:
                before = row or await self._known(tenant, name)
                after = change(before)
                if after == before:
                    return _info(before)
            stamped = replace(after, changed_at=self._queue.now(), revision=new_id())
            if await self._queue.schedules.put(stamped, None if row is None else row.revision):
                return _info(stamped)
        raise ScheduleChanged(name)

    def _counted(self, row: ScheduleRow, schedule: Schedule) -> ScheduleRow:
        now = self._queue.now()
        return replace(row, next_at=schedule.after(now), counted_at=now)

    def _new(
        self, tenant: str, name: str, schedule: Schedule, given: Mapping[str, Any]
    ) -> ScheduleRow:
        now = self._queue.now()
        row = ScheduleRow(
            tenant=tenant,
            name=name,
            next_at=None,
            counted_at=None,
            last_at=None,
            last_job=None,
            created_at=now,
            changed_at=now,
            revision="",
            **given,
        )
        return self._counted(row, schedule)


def blocking(
    method: Callable[Concatenate[Schedules, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncSchedules, P], T]:
    """A method of the schedules as one that blocks."""

    @wraps(method)
    def call(self: SyncSchedules, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self.sync.run(method(self.sync.app.schedules, *args, **kwargs))

    return call


class SyncSchedules:
    """Schedules, of an app whose methods block: `q.schedules`."""

    def __init__(self, sync: SyncPenstock) -> None:
        self.sync = sync

    set = blocking(Schedules.set)
    get = blocking(Schedules.get)
    list = blocking(Schedules.list)
    pause = blocking(Schedules.pause)
    resume = blocking(Schedules.resume)
    run_now = blocking(Schedules.run_now)
    remove = blocking(Schedules.remove)


def _checked(name: Any, tenant: Any) -> str:
    """The tenant of a new schedule."""
    of = TENANT if tenant is None else tenant
    for what, text in (("name of a schedule", name), ("tenant", of)):
        if not isinstance(text, str) or not 0 < len(text) <= NAME_LIMIT or not text.isprintable():
            raise ValidationError(f"a {what} is 1 to {NAME_LIMIT} printable characters: {text!r}")
    return of


def _timing(row: ScheduleRow) -> tuple[Any, ...]:
    return row.cron, row.every_seconds, row.timezone


def _info(row: ScheduleRow) -> ScheduleInfo:
    if row.cron is not None:
        words = f"{row.cron} ({row.timezone})"
    else:
        words = f"every {row.every_seconds:g} s"
    return ScheduleInfo(
        name=row.name,
        tenant=row.tenant,
        kind=row.kind,
        payload=read_payload(row.payload),
        schedule=words,
        cron=row.cron,
        every=row.every_seconds,
        timezone=row.timezone,
        priority=_PRIORITIES[Priority(row.priority)],
        overlap=row.overlap,
        catch_up=row.catch_up,
        paused=row.next_at is None,
        source="row",
        next_at=row.next_at,
        last_at=row.last_at,
        last_job=row.last_job,
        created_at=row.created_at,
        changed_at=row.changed_at,
    )


def _of_code(kind: str, schedule: str, next_at: float | None, last: float | None) -> ScheduleInfo:
    return ScheduleInfo(
        name=kind,
        tenant=TENANT,
        kind=kind,
        payload={},
        schedule=schedule,
        cron=None,
        every=None,
        timezone="UTC",
        priority="medium",
        overlap=False,
        catch_up=None,
        paused=False,
        source="code",
        next_at=next_at,
        last_at=last,
        last_job=None,
        created_at=None,
        changed_at=None,
    )
