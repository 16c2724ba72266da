"""Shows a job as the interface of tasks has it: a `TaskResult`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from penstock import errors
from penstock.contrib.django.interface import tasks
from penstock.model.job import Job, JobState, Record

_base = tasks(".base")
Status: Any = _base.TaskResultStatus
STATUS = {
    JobState.QUEUED: Status.READY,
    JobState.RUNNING: Status.RUNNING,
    JobState.COMPLETED: Status.SUCCESSFUL,
    JobState.FAILED: Status.FAILED,
    JobState.CANCELLED: Status.FAILED,
}


RAISED = "raised "
"""How the line in a job's log begins that names the class of an error: the record has no module."""


def task_at(path: str, alias: str, payload: dict[str, Any]) -> Any:
    """The task that a job is to run, as it was enqueued. LookupError where there is none."""
    task = import_string(path)
    if not isinstance(task, _base.Task):
        raise LookupError(f"{path} is no task: it has lost its @task")
    return task.using(backend=alias, queue_name=payload["queue_name"], priority=payload["priority"])


def result_of(job: Job, alias: str) -> Any:
    """What is known of a task by its job."""
    payload = job.payload
    runs = [record for record in job.history if record.get("process")]
    done = job.result or {}
    raised = {
        line["attempt"]: line["message"].removeprefix(RAISED)
        for line in job.lines
        if line["message"].startswith(RAISED)
    }
    result = _base.TaskResult(
        task=task_at(payload["task"], alias, payload),
        id=job.id,
        status=STATUS[job.state],
        enqueued_at=time_of(job.enqueued_at),
        started_at=time_of(job.started_at),
        last_attempted_at=time_of(job.started_at),
        finished_at=time_of(job.finished_at),
        args=payload["args"],
        kwargs=payload["kwargs"],
        backend=alias,
        errors=[_error(record, raised) for record in job.history if record.get("error")],
        worker_ids=[*(str(one["process"]) for one in runs), *([done["worker"]] if done else [])],
    )
    object.__setattr__(result, "_return_value", done.get("return_value"))
    return result


def time_of(at: float | None) -> datetime | None:
    """A time as Django's settings want it: aware, or of the local clock."""
    if at is None:
        return None
    aware = datetime.fromtimestamp(at, UTC)
    return aware if settings.USE_TZ else aware.astimezone().replace(tzinfo=None)


def _error(record: Record, raised: dict[Any, str]) -> Any:
    """An error of a run. What the engine itself has ended, as by a timeout, was raised nowhere."""
    error = record["error"]
    name = error["type"]
    ours = f"penstock.errors.{name}" if hasattr(errors, name) else "builtins.Exception"
    return _base.TaskError(
        exception_class_path=raised.get(record.get("attempt"), ours),
        traceback=record.get("traceback") or f"{name}: {error.get('message', '')}",
    )
