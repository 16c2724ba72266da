"""The public API of the library: `Penstock`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import isasyncgenfunction
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar, Unpack, overload
from weakref import WeakSet

from penstock.engine.enqueuer import EnqueueOptions, Enqueuer
from penstock.engine.handlers import Handler, Handlers, JobOptions
from penstock.engine.orchestrator import JobOrchestrator
from penstock.engine.waiters import JobWaiters, LogWaiters, check_timeout
from penstock.errors import (
    ConfigError,
    JobCancelled,
    JobFailed,
    JobNotFound,
    ValidationError,
    WaitTimeout,
)
from penstock.lanes.registry import LaneRegistry
from penstock.model.change import Change
from penstock.model.ids import new_id
from penstock.model.job import Job, JobState, Priority, PriorityName
from penstock.model.lane import LaneConfig
from penstock.model.payload import encode_signal
from penstock.model.step import Step
from penstock.ports.queue import FeedEntry, JobFilter, JobQueue, Stopped, Topic
from penstock.ports.steps import EVENT_NAME, StepRow, large_result, shown
from penstock.wiring.handles import (
    AsyncJobHandle,
    JobHandle,
    Registration,
    SyncJobHandle,
    handle_of,
    kind_of,
)
from penstock.wiring.home import Home
from penstock.wiring.operations import Operations
from penstock.wiring.queues import choose_queue
from penstock.wiring.settings import AppSettings

if TYPE_CHECKING:
    from penstock.answers.service import Answers
    from penstock.config import Config
    from penstock.documents.service import Documents
    from penstock.engine.feeds import Feeds
    from penstock.engine.job_events import JobEvents
    from penstock.engine.schedule import Periodic
    from penstock.engine.step_results import StepResults
    from penstock.engine.tools import AppTool, ToolOptions
    from penstock.model.event import JobEvent
    from penstock.research.service import Research
    from penstock.wiring.budgets import Budgets
    from penstock.wiring.keys import ApiKeys
    from penstock.wiring.schedules import Schedules
    from penstock.wiring.services import AppServices, Service
    from penstock.wiring.sync import SyncPenstock

Function = TypeVar("Function", bound=Callable[..., Any])
Context = TypeVar("Context")
P = ParamSpec("P")
R = TypeVar("R")

DRAIN_PAUSE = 0.02
"""Between two looks at whether work is left."""


class Penstock(Operations):
    """A queue, the handlers registered for it, and everything one can ask of it.

    `queue` is a URL: `sqlite:///jobs.db`, `postgresql://user@host/database` or
    `redis://localhost:6379/0`. Without one, PENSTOCK_QUEUE or penstock.yaml say where, else it is
    `sqlite:///penstock.db`. Any setting can be given by name. Use it with `async with`;
    registering handlers needs no open queue.

    `lifespan` is an async context manager that takes the app. Each process that runs jobs enters
    it before its first and leaves it after its last; what it yields is `ctx.state`.
    """

    def __init__(
        self,
        queue: str | None = None,
        *,
        max_workers: int | None = None,
        config_file: str | None = None,
        lanes: Mapping[str, Mapping[str, Any] | LaneConfig] | None = None,
        tenant_weights: Mapping[str, float] | None = None,
        lifespan: Callable[[Penstock], AbstractAsyncContextManager[Any]] | None = None,
        **settings: Any,
    ) -> None:
        arguments = {"queue": queue, "max_workers": max_workers, **settings}
        self._settings = chosen = AppSettings(arguments, config_file, lanes, tenant_weights)
        self.lanes = LaneRegistry({**chosen.lanes, **(lanes or {})})
        self.handlers = Handlers(settings=chosen.engine)
        self.tools: dict[str, AppTool] = {}
        """The tools registered with `tool`, by name."""
        if isasyncgenfunction(lifespan):
            raise ConfigError("write @asynccontextmanager on the lifespan: it is a generator")
        self._lifespan = lifespan
        chosen_queue = choose_queue(chosen.queue, chosen.engine, self.lanes, chosen.tenant_weights)
        self._bind(chosen_queue)

    def _bind(self, queue: JobQueue) -> None:
        """Construct what depends on the queue."""
        self.queue = queue
        self._enqueuer = Enqueuer(self.queue, self.handlers)
        self._waiters = JobWaiters(self.queue)
        self._log_waiters = LogWaiters(self.queue)
        self._feeds: Feeds | None = None
        self._events: JobEvents | None = None
        self._step_results: StepResults | None = None
        self._orchestrators: WeakSet[JobOrchestrator] = WeakSet()
        self._services: AppServices | None = None
        self._opened = 0
        self.home: Home | None = None
        """Where the app is open; None while it is closed."""
        self._sync: SyncPenstock | None = None
        self.beside: list[Callable[[], AbstractAsyncContextManager[None]]] = []
        """What is entered with its `lifespan`, too."""
        self._to_close = AsyncExitStack()

    def on_queue(self, queue: JobQueue) -> Penstock:
        """This app, its handlers and its settings, on another queue."""
        other = copy(self)
        other._bind(queue)
        return other

    @property
    def config(self) -> Config:
        """All settings, and where each comes from."""
        return self._settings.config

    @config.setter
    def config(self, config: Config) -> None:
        self._settings.config = config

    @property
    def documents(self) -> Documents:
        """The documents of an app that uses them; see `use`."""
        documents: Documents = self._service("documents")
        return documents

    @property
    def research(self) -> Research:
        """The research tasks of an app that uses them; see `use`."""
        research: Research = self._service("research")
        return research

    @property
    def answers(self) -> Answers:
        """The answers of an app that uses them; see `use`."""
        answers: Answers = self._service("answers")
        return answers

    @property
    def budgets(self) -> Budgets:
        """What tenants and tasks may spend."""
        from penstock.wiring.budgets import Budgets  # few apps have any

        return Budgets(self.queue, self._settings.engine.budgets)

    @property
    def keys(self) -> ApiKeys:
        """The API keys of an app that uses them; see `use`."""
        keys: ApiKeys = self._service("keys")
        return keys

    def _service(self, name: Service) -> Any:
        if self._services is None or name not in self._services.used:
            raise ConfigError(
                f'this app does not use {name}: call app.use("{name}") before it is opened'
            )
        return self._services.used[name]

    def use(self, *services: Service) -> Self:
        """Let the app use documents, research, answers or keys. Call it before the app is opened.

        The app then opens its store with the queue, and worker processes also run the built-in
        jobs: `ingest.*` for documents, `research.*`, `answers.*`. Research uses documents, answers
        use both; keys have no jobs. ConfigError where a setting or an extra is missing."""
        if self._services is None:
            from penstock.wiring.services import AppServices

            self._services = AppServices(
                self.queue,
                self.config,
                self.lanes,
                self.job,
                self._enqueuer.enqueue,
                self._log_waiters,
                self._orchestrators,
                lambda: self._opened > 0,
            )
        self._services.use(*services)
        return self

    @property
    def step_results(self) -> StepResults | None:
        """Where results of steps are kept that are too large for the queue; None: nowhere."""
        if self._step_results is None:
            from penstock.wiring.step_results import step_results

            self._step_results = step_results(self.queue, self.config.blobs)
        return self._step_results

    @property
    def schedules(self) -> Schedules:
        """Schedules that are made and changed while everything runs."""
        from penstock.wiring.schedules import Schedules

        return Schedules(self.queue, self.handlers, self._enqueuer)

    @property
    def feeds(self) -> Feeds:
        """The changes of all logs of a tenant, as streams."""
        if self._feeds is None:
            from penstock.engine.feeds import Feeds

            self._feeds = Feeds(self.queue, self._settings.engine)
        return self._feeds

    @overload
    def job(  # type: ignore[overload-overlap] # a plain function may return a coroutine
        self, kind: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> AsyncJobHandle[Context, P, R]: ...

    @overload
    def job(
        self, kind: Callable[Concatenate[Context, P], R], /
    ) -> SyncJobHandle[Context, P, R]: ...

    @overload
    def job(self, kind: str | None = None, **options: Unpack[JobOptions]) -> Registration: ...

    def job(self, kind: str | Callable[..., Any] | None = None, **options: Any) -> Any:
        """Register a handler: `async def handler(ctx, **payload)`, or a plain function, which
        is run in a thread. What it becomes is a `JobHandle`: still the function when it is called,
        and `await handler.enqueue(...)` stores a job. Without a `kind`, as in `@app.job`, that is
        the function's qualified name in its module: `resize`, or `Pictures.resize`.

        `backoff` says how long to wait before a retry, in seconds: always, as a list, or by a
        function of the attempt; else the settings do. `permanent` names exceptions that are not
        worth a retry. `amount` is what a job reserves of the tokens and the money that its lane
        counts, or a function of the payload. A process takes `max_per_process` jobs of the kind at
        a time; more stay in the queue, where tenants take turns. Records of steps that another
        `version` of the handler has made are discarded.

        With `every` (seconds) or `cron` ("0 3 * * *", in `timezone`, else UTC) the job is also
        enqueued by the clock, once for each tick over all worker processes of the kind;
        `ctx.tick` is its time. A tick is skipped while the job of an earlier one is unfinished,
        unless `overlap`. Of ticks that nobody was there for the newest is made up, if that is no
        more than `catch_up` seconds late (3600).
        """
        if callable(kind):
            return self.job()(kind)

        usual = self._settings.engine
        periodic: Periodic | None = None
        ticks = {
            name: options.pop(name, None) for name in ("every", "cron", "timezone", "catch_up")
        }
        overlap = options.pop("overlap", False)
        if overlap or any(one is not None for one in ticks.values()):
            from penstock.engine.schedule import make_periodic

            periodic = make_periodic(kind or "a job", overlap=overlap, **ticks)
        given = {name: option for name, option in options.items() if option is not None}
        given = {"timeout": usual.job_timeout, "max_retries": usual.max_retries, **given}

        def register(function: Any) -> Any:
            if isinstance(function, JobHandle):  # of another kind, or another app
                function = function.function
            name = kind_of(function) if kind is None else kind
            handler = Handler.of(name, function, periodic=periodic, **given)
            self.handlers.add(handler)
            return handle_of(self, handler)

        return register

    @overload
    def tool(self, name: Function, /) -> Function: ...

    @overload
    def tool(
        self, name: str | None = None, **options: Unpack[ToolOptions]
    ) -> Callable[[Function], Function]: ...

    def tool(self, name: Any = None, **options: Any) -> Any:
        """Register a function as a tool, for agents over MCP, `POST /v1/tools/NAME` and `penstock
        call`. Each call is a job of the kind `name`, the function's name unless given. The function
        takes a `JobContext` first, or none. Its signature is the schema of the arguments and of the
        result, its docstring says what it is for. The options are those of `ToolOptions`."""
        from penstock.engine.tools import register_tool

        if callable(name):
            return self.tool()(name)
        return partial(register_tool, self.tools, self.job, self.handlers, name, options)

    async def __aenter__(self) -> Self:
        # Counted, so that a function that needs the app open can say so without knowing
        # whether its caller has.
        if self.home is not None:
            self.home.check_here()
        if self._opened == 0:
            async with AsyncExitStack() as opened:  # all of it, or nothing
                opened.callback(setattr, self, "home", None)
                await self.queue.open()
                opened.push_async_callback(self.queue.close)
                if self._services is not None:
                    await opened.enter_async_context(self._services.opened())
                self._to_close = opened.pop_all()
            self.home = Home()
        self._opened += 1
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opened -= 1
        if self._opened == 0:
            # Each is closed whatever becomes of the others: the last to be named is the first.
            for part in (self._step_results, self._events, self._feeds):
                if part is not None:
                    self._to_close.push_async_callback(part.close)
            self._to_close.push_async_callback(self._log_waiters.close)
            self._to_close.push_async_callback(self._waiters.close)
            await self._to_close.aclose()

    def lifespan(
        self, *, workers: int | None = None, kinds: Sequence[str] | None = None
    ) -> Callable[[Any], AbstractAsyncContextManager[None]]:
        """A lifespan for FastAPI and Starlette: `FastAPI(lifespan=app.lifespan(workers=4))`. The
        app is open while the application runs, and so many workers run jobs in its process: as
        the settings say unless given, 0 for none."""
        from penstock.wiring.lifespan import site_lifespan

        return site_lifespan(self, workers, kinds)

    def sync(self) -> SyncPenstock:
        """The app for programs that do not await, such as scripts, Flask, Django views and
        notebooks: `with app.sync() as q: q.enqueue("resize", {"url": "x"})`. It has the same
        methods, which block; see `SyncPenstock`."""
        if self._sync is None:
            from penstock.wiring.sync import SyncPenstock

            self._sync = SyncPenstock(self)
        return self._sync

    async def enqueue(
        self,
        kind: str,
        payload: dict[str, Any] | None = None,
        *,
        key: str | None = None,
        job_id: str | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> Job:
        """Store a job; once this returns it is never lost.

        `key` makes it idempotent: the same key (per tenant and kind) gives the same job for as
        long as it is kept, another payload under it raises KeyConflict. With
        `replace="finished"` a key whose job failed or was cancelled starts a new one. `job_id`,
        32 hex digits that nobody else can have chosen, names the job itself: if it is there
        already, it is given back. The other options are those of `EnqueueOptions`.
        """
        self._check_loop()
        return await self._enqueuer.enqueue(kind, payload, key=key, job_id=job_id, **options)

    async def enqueue_many(
        self,
        kind: str,
        payloads: Sequence[dict[str, Any] | None],
        *,
        keys: Sequence[str | None] | None = None,
        **options: Unpack[EnqueueOptions],
    ) -> list[Job]:
        """Store many jobs of one kind, up to 10,000 in one transaction (or all in that of `conn`).
        `keys` has one for each, or None; the options are those of `EnqueueOptions`."""
        self._check_loop()
        return await self._enqueuer.enqueue_many(kind, payloads, keys=keys, **options)

    def _check_loop(self) -> None:
        if self.home is not None:
            self.home.check_awaited()

    async def get(self, job_id: str) -> Job:
        """Return the current state of a job. Raises JobNotFound."""
        self._check_loop()
        jobs = await self.queue.get([job_id])
        if job_id not in jobs:
            raise JobNotFound(job_id)
        return jobs[job_id]

    async def signal(
        self, job_id: str, name: str, payload: Any = True, *, key: str | None = None
    ) -> bool:
        """Tell a job something that it waits for, or will wait for, with `ctx.wait_for`. Once this
        returns it is never lost. The payload is any JSON value but null: None is what `wait_for`
        returns after its timeout. The same `key` is the same signal: False if the job has got it
        before. Raises JobNotFound, and JobEnded for a job that has finished."""
        from penstock.engine.step_call import check_text

        check_text("the name of a signal", name)
        if key is not None:
            check_text("the key of a signal", key)
        return await self.queue.signal(job_id, name, encode_signal(payload), key)

    async def steps(self, job_id: str) -> list[Step]:
        """The steps that a job has recorded or begun, in that order. Raises JobNotFound."""
        rows = await self.queue.steps(job_id)
        if not rows:
            await self.get(job_id)
        return [await self._shown(job_id, row) for row in rows if row.name != EVENT_NAME]

    async def _shown(self, job_id: str, row: StepRow) -> Step:
        if large_result(row.result) is None:
            return shown(row)
        result = await self._large_results().read(job_id, row)
        return replace(shown(row._replace(result=None)), result=result)

    def _large_results(self) -> StepResults:
        if self.step_results is None:
            raise ConfigError(
                "the results of some steps are in a blob store: set `blobs` as the worker "
                "processes have it"
            )
        return self.step_results

    async def follow(self, job_id: str, *, after: int | None = None) -> AsyncIterator[JobEvent]:
        """`async for event in app.follow(job.id): ...`: what happens in a job, from its beginning
        to its end: events that it emits, steps and waits as they are recorded, its progress, and
        its end, with which this ends too; `after=event.position` goes on from there. Raises
        JobNotFound, also if the job is deleted meanwhile."""
        if self._events is None:
            from penstock.engine.job_events import JobEvents

            self._events = JobEvents(self.queue, self.config.engine)
        async for event in self._events.follow(job_id, after):
            yield event

    async def wait(self, job_id: str, timeout: float | None = None) -> Job:
        """Wait until the job is completed, failed or cancelled, and return it. Raises
        WaitTimeout after `timeout` seconds."""
        self._check_loop()
        return await self._waiters.job(job_id, timeout)

    async def result(self, job_id: str, timeout: float | None = None) -> Any:
        """Wait for the job and return its result. Raises JobFailed if it failed, JobCancelled if
        it was cancelled, WaitTimeout after `timeout` seconds."""
        job = await self.wait(job_id, timeout)
        match job.state:
            case JobState.FAILED:
                raise JobFailed(job.id, job.kind, job.error)
            case JobState.CANCELLED:
                raise JobCancelled(job.id, job.kind, job.error)
            case _:
                return job.result

    async def jobs(
        self,
        *,
        states: Sequence[JobState | str] | None = None,
        kind: str | None = None,
        tenant: str | None = None,
        log: str | None = None,
        parent_id: str | None = None,
        lane: str | None = None,
        priority: PriorityName | Priority | None = None,
        enqueued_after: float | None = None,
        enqueued_before: float | None = None,
        limit: int = 100,
        before: str | None = None,
    ) -> list[Job]:
        """List jobs, newest first. `kind` may be a pattern such as `ingest.*`. Times are seconds
        since 1970: at or after `enqueued_after`, and before `enqueued_before`."""
        where = JobFilter(
            states=None if states is None else [JobState(state) for state in states],
            kind=kind,
            tenant=tenant,
            log=log,
            parent_id=parent_id,
            lane=lane,
            priority=None if priority is None else Priority.parse(priority),
            enqueued_after=enqueued_after,
            enqueued_before=enqueued_before,
        )
        return await self.queue.find(where, limit, before)

    async def cancel(self, job_id: str) -> Job:
        """Cancel a job and its children that are not detached. Returns its state afterwards: it
        may have finished just before."""
        await self.queue.cancel(JobFilter(ids=[job_id]))
        return await self.get(job_id)

    async def rerun(
        self, job: Job | str, *, job_id: str | None = None, from_step: str | None = None
    ) -> Job:
        """Run a job, or the one with this id, again as a new one: the same kind, payload, lane,
        priority and tenant, without its key, log and deadline. The old one, which is the new one's
        `rerun_of`, stays as it is. `job_id` names the new one, as for `enqueue`.

        `from_step`: the new job takes over what was recorded before the first record of this name;
        `name#3`: before the third. ValidationError if there is none."""
        old = await self.get(job) if isinstance(job, str) else job
        records = None
        if from_step is not None:
            from penstock.engine.from_step import records_before

            records = await records_before(self.queue, old.id, from_step)
            rows = await self.queue.steps(old.id)
            large = [row for row in rows if large_result(row.result) is not None]
            if large:
                job_id = job_id or new_id()
                await self._large_results().copy(old.id, job_id, large)
        return await self._enqueuer.rerun(old, job_id=job_id, records=records)

    async def stop_log(
        self, log: str, *, tenant: str = "default", running: bool = False, whole: bool = False
    ) -> Stopped:
        """Stop a log: it takes no more jobs, and its queued jobs are cancelled; with `running`,
        running ones too. Otherwise running jobs finish, and none is run again. Enqueueing more
        raises LogStopped until `reopen_log`. With `whole`, running jobs finish together with
        their children, including those they still enqueue."""
        if running and whole:
            raise ValidationError("give running=True or whole=True, not both")
        return await self.queue.stop(tenant, log, running=running, whole=whole)

    async def reopen_log(self, log: str, *, tenant: str = "default") -> None:
        """Let a stopped log take jobs again. Cancelled jobs have to be enqueued again."""
        await self.queue.reopen(tenant, log)

    async def changes(
        self,
        log: str,
        since: int = 0,
        *,
        tenant: str = "default",
        wait: float = 0.0,
        limit: int = 1000,
    ) -> list[Change]:
        """Entries of the log after version `since`; waits up to `wait` seconds for the first."""
        if wait > 0:
            await self._log_waiters.passed(tenant, log, since, wait)
        return await self.queue.changes(tenant, log, since, limit)

    async def feed(
        self,
        tenant: str = "default",
        after: str | None = None,
        *,
        wait: float = 0.0,
        limit: int = 1000,
    ) -> list[FeedEntry]:
        """Changes of all logs of a tenant after a position, or from the oldest kept (about an
        hour); waits up to `wait` seconds for the first. To stream them, use `feeds.follow`."""
        start = await self.queue.feed_end(tenant) if after is None and wait > 0 else after
        found = await self.queue.feed(tenant, after, limit)
        if found or wait <= 0:
            return found
        with suppress(TimeoutError):
            async with asyncio.timeout(wait), self.feeds.follow(tenant, start) as batches:
                async for batch in batches:
                    return batch[:limit]
        return []

    async def drain(self, timeout: float | None = None) -> None:
        """Wait until no job is queued (including scheduled ones) or running: of the kinds
        registered here, or of any kind if there are none. Raises WaitTimeout after `timeout`
        seconds."""
        check_timeout(timeout)
        listener = self.queue.listen(Topic.FINISHED)
        try:
            async with asyncio.timeout(timeout):
                while await self.queue.work_left(list(self.handlers) or None):
                    await listener.wait(self._settings.engine.poll_seconds)
                    await asyncio.sleep(DRAIN_PAUSE)
        except TimeoutError:
            raise WaitTimeout(f"work remained after {timeout:g} s") from None
        finally:
            listener.close()

    def orchestrator(
        self,
        *,
        kinds: Sequence[str] | None = None,
        works: bool = True,
        max_workers: int | None = None,
    ) -> JobOrchestrator:
        """An orchestrator for the registered handlers, or those whose kind matches `kinds`; for
        none with `works=False`, see `JobOrchestrator`."""
        handlers = self.handlers if kinds is None else self.handlers.matching(kinds)
        if not works:
            handlers = Handlers(settings=self._settings.engine)
        orchestrator = JobOrchestrator(
            self.queue,
            handlers,
            max_workers=max_workers,
            settings=self._settings.engine,
            enqueuer=self._enqueuer,
            chores=() if self._services is None else self._services.chores(handlers),
            works=works,
            lifespan=None if self._lifespan is None else partial(self._lifespan, self),
            step_results=lambda: self.step_results,
        )
        self._orchestrators.add(orchestrator)
        return orchestrator

    @asynccontextmanager
    async def running(
        self, *, kinds: Sequence[str] | None = None, max_workers: int | None = None
    ) -> AsyncIterator[JobOrchestrator]:
        """Run jobs in this process while the block lasts, then stop gracefully."""
        async with self:
            await self.apply_lanes()
            if self._settings.engine.budgets:
                await self.budgets.apply()
            orchestrator = self.orchestrator(kinds=kinds, max_workers=max_workers)
            await orchestrator.start()
            try:
                yield orchestrator
            finally:
                await orchestrator.stop()
