"""The context of a handler: its job, its deadline, and ways to report and to enqueue."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import (
    AsyncGenerator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Generic, Unpack, cast

from typing_extensions import TypeVar

from penstock import runtime
from penstock.aio import call_on, on_loop
from penstock.engine.enqueuer import EnqueueOptions, Enqueuer, ahead
from penstock.engine.handlers import Handlers
from penstock.engine.job_logger import JobLogger
from penstock.engine.parking import HasId, Parking
from penstock.engine.recording import Recording
from penstock.engine.requests import Requests
from penstock.engine.run import Run
from penstock.engine.running import Running
from penstock.engine.settler import Settler
from penstock.errors import NOT_ATTEMPTS, PenstockError, RunLater
from penstock.model.ids import child_id
from penstock.model.job import DEFAULT_MAX_RETRIES, Job, JobState, Priority, parse_history
from penstock.model.payload import encode_event, encode_payload
from penstock.ports.queue import NO_LANE, UNKNOWN_LANE, ParentRun
from penstock.telemetry import tracing
from penstock.text.normalize import storable

if TYPE_CHECKING:  # loaded by the first run that needs them: many jobs have no steps or requests
    from penstock.engine.job_lanes import JobLanes
    from penstock.engine.steps import RunSteps
    from penstock.engine.waits import RunWaits
    from penstock.outbound.fetch import JobFetch
    from penstock.outbound.http import JobHttp
    from penstock.ports.receipts import Receipts

T = TypeVar("T")
State = TypeVar("State", default=Any)


class _Noted:
    """So that `await ctx.progress(...)` and, in a sync handler, a plain call both work."""

    __slots__ = ()

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


_NOTED = _Noted()


@dataclass(slots=True, frozen=True)
class Services:
    """Services shared by the contexts of a process."""

    settler: Settler
    running: Running
    enqueuer: Enqueuer
    requests: Requests
    parking: Parking
    handlers: Handlers
    recording: Recording
    loop: asyncio.AbstractEventLoop
    state: Any = None
    """What the lifespan has yielded."""


class JobContext(Generic[State]):
    """One run's view of the engine. `JobContext[Resources]` is one whose `state` is what the app's
    lifespan yields, a `Resources`."""

    __slots__ = ("_children", "_log", "_run", "_services", "_steps")

    def __init__(self, run: Run, services: Services) -> None:
        self._run = run
        self._services = services
        self._children: Counter[tuple[str, str]] | None = None
        self._log: JobLogger | None = None
        self._steps: RunSteps | None = None

    @property
    def deadline(self) -> float:
        """When this run is interrupted, in seconds since 1970: at the job's timeout or its
        deadline. The timeout is extended while the job waits for permits."""
        return self._run.deadline

    @property
    def job(self) -> Job:
        """The job as it was claimed."""
        lease = self._run.lease
        return Job(
            id=lease.id,
            kind=lease.kind,
            payload=json.loads(lease.payload),
            state=JobState.RUNNING,
            tenant=lease.tenant,
            priority=Priority(lease.priority),
            lane=None if lease.lane in (NO_LANE, UNKNOWN_LANE) else lease.lane,
            key=lease.key,
            log=lease.log,
            parent_id=lease.parent_id,
            enqueued_at=lease.enqueued_at,
            run_at=lease.run_at,
            started_at=self._run.started_at,
            deadline=lease.deadline,
            timeout=lease.timeout,
            max_retries=lease.max_retries,
            attempts=lease.attempts,
            releases=lease.releases,
            history=parse_history(lease.history),
        )

    @property
    def state(self) -> State:
        """The value that the app's `lifespan` yielded in this process; None without one."""
        state: State = self._services.state
        return state

    @property
    def tenant(self) -> str:
        """The tenant that owns the job."""
        return self._run.lease.tenant

    @property
    def token(self) -> int:
        """The fencing token, increased by every claim of the job. A store that rejects lower
        tokens than it has seen keeps out a run that was wrongly presumed dead."""
        return self._run.lease.token

    @property
    def last_attempt(self) -> bool:
        """Whether the job becomes a dead letter if this run fails."""
        retries = self._run.lease.max_retries
        return self.attempt > (DEFAULT_MAX_RETRIES if retries is None else retries)

    @property
    def tick(self) -> float | None:
        """The time a periodic job was due, in seconds since 1970; None for other jobs."""
        lease = self._run.lease
        if lease.key is None:
            return None
        from penstock.model.tick import tick_of  # most jobs have no key

        return tick_of(lease.id, lease.kind, lease.key, lease.tenant)

    @property
    def attempt(self) -> int:
        """The number of this attempt: 1, 2, 3 ..."""
        return self._run.lease.attempts

    @property
    def cancelled(self) -> bool:
        """Whether this run should end. An async handler is also interrupted at its next await."""
        return self._run.interrupted is not None

    @property
    def lanes(self) -> JobLanes:
        """`async with ctx.lanes.permit("embedder"): ...` for each outside request."""
        return self._services.requests.lanes(self._run)

    @property
    def http(self) -> JobHttp:
        """HTTP client that takes a permit for each request, and observes this job's deadline."""
        return self._services.requests.http(self._run, lambda: self.receipts)

    @property
    def receipts(self) -> Receipts:
        """What calls of this job were answered, for a rerun to take. For clients of services;
        `ctx.http` has `record=True`."""
        return self._run_steps().receipts

    async def attempt_failed(self, error: Exception) -> None:
        """The engine's own: the handler has raised. What it was answered since the last record is
        asked anew by the next run."""
        if self._steps is not None and not isinstance(error, NOT_ATTEMPTS):
            await self._steps.receipts.make_void()

    @property
    def fetch(self) -> JobFetch:
        """`async with ctx.fetch(url, most=...) as fetched: ...` for untrusted URLs: only public
        addresses are reached, on every hop."""
        return self._services.requests.fetch(self._run, lambda: self.receipts)

    def remaining(self) -> float:
        """Seconds left until the deadline, never below 0."""
        return max(0.0, self._run.left())

    def permit_lasts(self, seconds: float) -> bool:
        """Whether a request may as well be made so much later: the permit this job was started
        with is still good then, or has been used already."""
        run = self._run
        return run.permit_used or run.member.now() + seconds <= run.lease.void_at

    def progress(self, fraction: float, message: str = "") -> Awaitable[None]:
        """Report progress from 0 to 1. Stored up to four times a second."""
        if not 0 <= fraction <= 1:
            raise ValueError(f"progress is a fraction from 0 to 1, not {fraction!r}")
        services, message = self._services, storable(message)[:1000]
        # At once: a handler may return right after.
        call_on(services.loop, services.settler.note, self._run, float(fraction), message)
        return _NOTED

    @property
    def log(self) -> JobLogger:
        """`ctx.log("%d pages", n)`, `ctx.log.warning(...)`: log lines stored with the job. At
        most 64 KiB per job; then the oldest lines are dropped."""
        if self._log is None:
            self._log = JobLogger(self._run, self._services.settler)
        return self._log

    def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        lane: str | None = None,
        retries: int = 0,
        timeout: float | None = None,
        strict: bool = False,
        transaction: bool = False,
    ) -> Any:
        """`await ctx.step("plan", make_plan, question)`: do a part of the job and record its
        result. When the job is run again, the record is returned and the function is not called.
        In a sync handler without `await`.

        A step is its name, its arguments (JSON values) and how often that pair was called in this
        run. The function may be async, or plain; from an async handler a plain one is called in a
        thread. Its result must be JSON, and is returned as JSON has it: a tuple is a list.

        `lane`: call it with a permit of this lane. `retries`: call it up to so many times more
        when it raises, with the backoff of jobs; they are spent once for all runs of the job, and
        each run tries at least once. `timeout`: seconds for one call. `strict`: raise StepMismatch
        where the record was made with other arguments.

        `transaction`: on PostgreSQL, call it with an asyncpg connection before its arguments. What
        it writes there and the record are one commit, fenced by the lease. ConfigError elsewhere.

        What raises is not recorded. LeaseLost if this run holds its job no more; StepLimit and
        ResultTooLarge for what is too much to be recorded.
        """
        from penstock.engine.step_call import invoke_here, run_in_thread

        services, run, steps = self._services, self._run, self._run_steps()
        call = steps.begin(name, function, args, lane, retries, timeout, strict, transaction)
        if on_loop(services.loop):
            return steps.under_way(steps.run(call, partial(invoke_here, call)))
        return run_in_thread(
            call, run, services.loop, lambda invoke: steps.under_way(steps.run(call, invoke))
        )

    def emit(self, data: Any) -> Any:
        """`await ctx.emit({"pages": 3})`: a durable event of this job, told to whoever follows it
        (`app.follow`). Any JSON value within 256 KiB, up to 10,000 a job. Recorded once, as a step
        is, and not emitted again by a rerun. In a sync handler without `await`."""
        text = encode_event(data)
        steps = self._run_steps()
        return self._here(steps.emit(steps.begin_event(text), text))

    def sleep(self, seconds: float | timedelta) -> Any:
        """`await ctx.sleep(3600)`: go on after so many seconds, counted from when the job first
        came here, whatever a later run says; less than 0 is 0. In a sync handler without `await`.

        For more than a second the job gives up its worker and its lease: the handler is unwound by
        `Suspended`, a BaseException, and begins again at its first line when it is time, with its
        records. No attempt is counted. Where other steps, requests or waits of the run are under
        way, the job waits as it does for other jobs, without a worker.
        """
        from penstock.engine.waits import seconds_of

        waits = self._waits()
        length = seconds_of("the length of a sleep", seconds)
        return self._here(waits.sleep(waits.begin_sleep(), length))

    def wait_for(self, name: str, *, timeout: float | timedelta | None = None) -> Any:
        """`await ctx.wait_for("approved", timeout=86_400)`: the payload of the next signal of that
        name (`app.signal`) that this job has not taken yet; None after `timeout` seconds, counted
        from when the job first came here. Either is recorded. The job gives up its worker and lease
        meanwhile, as for `sleep`."""
        from penstock.engine.waits import seconds_of

        waits = self._waits()
        length = None if timeout is None else seconds_of("the timeout of a wait", timeout)
        return self._here(waits.wait_for(waits.begin_wait_for(name), name, length))

    def ask(self, message: str, schema: Any, *, timeout: float | timedelta | None = None) -> Any:
        """`await ctx.ask("Deliver on Sunday?", Delivery, timeout=86_400)`: ask a person, and wait
        as `wait_for` does. The answer is a `Delivery`, a model or dataclass of plain fields; None
        after `timeout` seconds, or if whoever was asked declines. In a sync handler without
        `await`."""
        from penstock.engine.asks import asking_of

        asking = asking_of(message, schema)
        ask = asking.ask if on_loop(self._services.loop) else asking.ask_in_thread
        return ask(self, timeout)

    def _here(self, wait: Coroutine[Any, Any, Any]) -> Any:
        wait = self._run_steps().under_way(wait)
        return wait if on_loop(self._services.loop) else self._from_thread(wait)

    def _from_thread(self, wait: Coroutine[Any, Any, T]) -> T:
        from penstock.engine.step_call import wait_for

        result: T = wait_for(self._run, self._services.loop, wait)
        return result

    def _waits(self) -> RunWaits:
        from penstock.engine.waits import RunWaits

        services = self._services
        poll_seconds = services.recording.recorder.settings.poll_seconds
        return RunWaits(self._run, self._run_steps(), services.parking, poll_seconds)

    def _run_steps(self) -> RunSteps:
        if self._steps is None:
            from penstock.engine.steps import RunSteps

            services, run = self._services, self._run
            handler = services.handlers[run.lease.kind]
            self._steps = RunSteps(run, handler, services.recording.recorder, services.requests)
        return self._steps

    @property
    def step_key(self) -> str:
        """Inside a step: a key for it that is the same in every run, for other services to know a
        repetition by. It is unique over all jobs."""
        from penstock.engine.step_call import current_key

        key = current_key.get()
        if key is None:
            raise PenstockError("ctx.step_key is for use in the function of a step")
        return f"{self._run.lease.id}-{key}"

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """`with ctx.stage("embed"): ...`: a part of the run, measured for Prometheus and traced
        as a span. At most 10 names per kind."""
        begun = runtime.monotonic()
        try:
            with tracing.span(name):
                yield
        finally:
            self._time(name, runtime.monotonic() - begun)

    def stages_done(self, seconds: Mapping[str, float]) -> None:
        """The same for what was done elsewhere, one part after another, and has just ended."""
        tracing.past(seconds)
        for name, took in seconds.items():
            self._time(name, took)

    def _time(self, stage: str, seconds: float) -> None:
        services, kind = self._services, self._run.lease.kind
        services.loop.call_soon_threadsafe(services.running.time_stage, kind, stage, seconds)

    async def enqueue(
        self,
        kind: str,
        payload: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        detached: bool = False,
        **options: Unpack[EnqueueOptions],
    ) -> Job:
        """Enqueue a child of this job. When this job is run again, it makes no second child.

        Tenant, log and priority are the parent's unless given. The n-th child with the same
        kind and payload is the same job in every run. The options are those of `EnqueueOptions`.

        A child must be done by the parent's deadline, if that is earlier than its own, and is
        cancelled with the parent; neither if it is `detached`. A parent that completes or fails
        leaves its children alone. ParentEnded once this run is over: cancelled, timed out, or
        taken over by another process. With `debounce` it is nobody's child, because it may be the
        job of many.
        """
        keys = None if key is None else [key]
        jobs = await self.enqueue_many(kind, [payload], keys=keys, detached=detached, **options)
        return jobs[0]

    async def enqueue_many(
        self,
        kind: str,
        payloads: Sequence[dict[str, Any] | None],
        *,
        keys: Sequence[str | None] | None = None,
        detached: bool = False,
        **options: Unpack[EnqueueOptions],
    ) -> list[Job]:
        """Enqueue many children of one kind, up to 10,000 in one transaction; see `enqueue`."""
        lease = self._run.lease
        shared = options.get("debounce") is not None
        detached = detached or shared
        deadline = options.get("deadline")
        if deadline is not None:
            deadline = ahead(deadline, self._run.member.now())
        if lease.deadline is not None and not detached:
            deadline = lease.deadline if deadline is None else min(lease.deadline, deadline)
        inherited: dict[str, Any] = {"priority": Priority(lease.priority), "tenant": lease.tenant}
        if not shared:
            inherited["log"] = lease.log
        given = {name: value for name, value in options.items() if value is not None}
        all_options = cast(EnqueueOptions, {**inherited, **given, "deadline": deadline})
        return await self._services.enqueuer.enqueue_many(
            kind,
            payloads,
            keys=keys,
            ids=[self._child_id(kind, encode_payload(payload)) for payload in payloads],
            parent_id=lease.id,
            parent_run=ParentRun(lease.token, self._run.member.id),
            attached=not detached,
            **all_options,
        )

    def _child_id(self, kind: str, payload: str) -> str:
        if self._children is None:
            self._children = Counter()
        self._children[kind, payload] += 1
        return child_id(self._run.lease.id, kind, payload, self._children[kind, payload])

    def finished(self, jobs: Iterable[Job | HasId]) -> AsyncGenerator[Job, None]:
        """`async for job in ctx.finished(children): ...`: these jobs (or those that a `JobRef`
        stands for) as they end, each once, completed, failed or cancelled. JobNotFound if one is
        deleted meanwhile.

        While it waits this job keeps its lease, its deadline and the slot in its lane, but not
        its worker: another job runs in its place, and it needs one again to go on. When the
        process stops it is handed back at once; the next run enqueues the same children, and is
        told at once of those that have ended.

        Nobody may wait for jobs of its own lane: once the lane is full of jobs that wait, none
        of those they wait for can start. Give jobs that wait a lane of their own; its
        `max_parallel` says how many are under way at a time.
        """
        return self._services.parking.finished(self._run, jobs)

    def parked(self, *, timed: bool = True) -> AbstractAsyncContextManager[None]:
        """`async with ctx.parked(): ...` around a wait for something else that others bring about,
        such as a document's becoming searchable. What holds for `finished` holds for it, too.

        `timed=False`: the wait does not count toward the job's timeout, only toward its deadline.
        For turns at something that is shared: how long they take is others' doing.
        """
        return self._services.parking.parked(self._run, timed)

    def from_thread(self, awaitable: Awaitable[T]) -> T:
        """For sync handlers: run `ctx.enqueue(...)` and other async methods, and wait for the
        result. Cancelled when the run is interrupted. (What needs no waiting, as `ctx.step` in a
        thread, is returned as it is.)"""
        given: Any = awaitable
        if not isawaitable(given):
            return cast(T, given)

        async def wait() -> T:
            return await awaitable

        return self._from_thread(wait())

    def run_later(self, delay: float = 1.0, reason: str = "") -> None:
        """End this run and run again after `delay` seconds, without spending an attempt."""
        raise RunLater(delay, reason)
