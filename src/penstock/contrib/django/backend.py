"""The backend of Django's tasks."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

from django.core.checks import Error
from django.db import connections, transaction

from penstock import runtime
from penstock.app import Penstock
from penstock.contrib.django.database import queue_in
from penstock.contrib.django.interface import normalized, tasks
from penstock.contrib.django.results import RAISED, Status, result_of, task_at
from penstock.engine.context import JobContext
from penstock.errors import JobNotFound, PenstockError
from penstock.model.ids import new_id
from penstock.model.job import Priority
from penstock.wiring.sync import SyncPenstock

KIND = "django."
"""The kind of a task is this and the name of its queue."""
_base, _signals = tasks(".base"), tasks(".signals")
_Base: Any = tasks(".backends.base").BaseTaskBackend


class Backend(_Base):  # type: ignore[misc]
    """Stores tasks as jobs: of the kind `django.QUEUE_NAME`, those of priority 0 as `medium`.

    OPTIONS: `queue` (a URL; else the queue is in the database), `database` (an alias, `default`;
    what is enqueued inside its `atomic` comes with its commit), `max_retries` (0), `timeout`, and
    any setting of the engine.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        given = dict(self.options)
        self._in_database = "queue" not in given or "database" in given
        """Whether a job can be part of a transaction; else it is stored after its commit."""
        self._database: str = given.pop("database", "default")
        self._queue: str | None = given.pop("queue", None)
        self._limits = {
            "max_retries": given.pop("max_retries", 0),
            "timeout": given.pop("timeout", None),
        }
        self._settings = given

    def app(self, *queue_names: str) -> Penstock:
        """A new app that has the queue, and a handler for the tasks of each of QUEUES, and of these
        besides."""
        app = Penstock(self._queue or queue_in(self._database), **self._settings)
        for name in sorted({*self.queues, *queue_names}):
            app.job(KIND + name, **self._limits)(self._run)
        return app

    @cached_property
    def _blocking(self) -> SyncPenstock:
        return self.app().sync()

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Store a task. Inside `atomic` it is there when that is committed."""
        self.validate_task(task)
        result = _base.TaskResult(
            task=task,
            id=new_id(),
            status=Status.READY,
            enqueued_at=None,
            started_at=None,
            last_attempted_at=None,
            finished_at=None,
            args=args,
            kwargs=kwargs,
            backend=self.alias,
            errors=[],
            worker_ids=[],
        )
        connection = connections[self._database]
        if self._in_database:
            self._store(result, connection if connection.in_atomic_block else None)
        elif connection.in_atomic_block:
            transaction.on_commit(partial(self._store, result), using=self._database)
        else:
            self._store(result)
        return result

    def _store(self, result: Any, conn: Any = None) -> None:
        task = result.task
        job = self._blocking.enqueue(
            KIND + task.queue_name,
            {
                "task": task.module_path,
                "args": result.args,
                "kwargs": result.kwargs,
                "queue_name": task.queue_name,
                "priority": task.priority,
            },
            job_id=result.id,
            priority=_priority(task.priority),
            run_at=task.run_after and task.run_after.timestamp(),
            conn=conn,
            **self._limits,
        )
        stored = result_of(job, self.alias)
        object.__setattr__(result, "enqueued_at", stored.enqueued_at)
        _signals.task_enqueued.send(type(self), task_result=result)

    def get_result(self, result_id: str) -> Any:
        """What has become of a task, in whatever process."""
        try:
            job = self._blocking.get(result_id)
        except JobNotFound:
            job = None
        if job is None or not job.kind.startswith(KIND):
            raise tasks(".exceptions").TaskResultDoesNotExist(result_id)
        return result_of(job, self.alias)

    def check(self, **options: Any) -> Iterable[Any]:
        try:
            self.app()
        except (PenstockError, TypeError) as error:
            return [Error(f"TASKS[{self.alias!r}]: {error}", id="penstock.E001")]
        return []

    def _run(
        self,
        ctx: JobContext,
        task: str,
        args: list[Any],
        kwargs: dict[str, Any],
        queue_name: str,
        priority: int,
    ) -> dict[str, Any]:
        """Run a task, in a thread of its own."""
        result = result_of(ctx.job, self.alias)
        worker = f"{runtime.host_name()}:{runtime.process_id()}"
        result.worker_ids.append(worker)
        _signals.task_started.send(type(self), task_result=result)
        found = task_at(task, self.alias, ctx.job.payload)
        context = [_base.TaskContext(task_result=result)] if found.takes_context else []
        try:
            value = normalized(found.call(*context, *args, **kwargs))
        except Exception as error:
            ctx.log(f"{RAISED}{type(error).__module__}.{type(error).__qualname__}")
            if ctx.job.attempts > self._limits["max_retries"]:
                object.__setattr__(result, "status", Status.FAILED)
                _signals.task_finished.send(type(self), task_result=result)
            raise
        finally:
            connections.close_all()  # those of this thread
        object.__setattr__(result, "status", Status.SUCCESSFUL)
        object.__setattr__(result, "_return_value", value)
        _signals.task_finished.send(type(self), task_result=result)
        return {"return_value": value, "worker": worker}


def _priority(priority: int) -> Priority:
    """Three bands, which is what a queue has."""
    return Priority.MEDIUM if not priority else Priority.HIGH if priority > 0 else Priority.LOW
