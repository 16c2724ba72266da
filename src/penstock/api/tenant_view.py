"""A caller's view of the app, over HTTP or MCP: the one place that names the tenant in every
query."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from penstock.documents.jobs import log_of
from penstock.errors import JobNotFound, ValidationError
from penstock.model.change import Change
from penstock.model.document import Document
from penstock.model.event import JobEvent
from penstock.model.job import Job, JobState
from penstock.model.schedule import ScheduleInfo
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import DeadGroup
from penstock.ports.queue import JobFilter
from penstock.ports.steps import StepRow
from penstock.wire.jobs import ChangedJobs, Refusal

if TYPE_CHECKING:
    from penstock.answers.service import Answers
    from penstock.answers.views import AnswerView
    from penstock.app import Penstock
    from penstock.documents.service import Documents
    from penstock.forecast.forecast import Forecast
    from penstock.research.service import Research
    from penstock.wire.tasks import TaskView

RESERVED = {
    "ingest.": "adding documents",
    "research.": "research tasks",
    "answers.": "asking questions",
}
"""Kinds whose payloads name what only the library may name, such as originals; who makes them."""
INSTEAD = {
    "ingest.": "retry the document, or upload it again",
    "research.": "resume the task, or queue the search again",
    "answers.": "ask the question again",
}
"""What to do where such a job should be run again."""
LOGS = {"document:": "documents", "research:": "research tasks", "answer:": "answers"}
"""Logs that are the library's; whose they are."""
AT_ONCE = 500
"""Refusals that are explained before others have their turn."""
HOSTS = "host:"
"""Lanes whose names tell what other tenants fetch."""


What = Literal["cancel", "redrive", "discard"]


class TenantView:
    """The app, as one tenant sees it. What belongs to others is not there."""

    def __init__(self, app: Penstock, tenant: str) -> None:
        self.app = app
        self.tenant = tenant

    @property
    def documents(self) -> Documents:
        return self.app.documents

    @property
    def research(self) -> Research:
        return self.app.research

    @property
    def answers(self) -> Answers:
        return self.app.answers

    # Jobs

    async def enqueue(self, kind: str, payload: dict[str, Any], **options: Any) -> Job:
        _refuse_reserved(kind)
        for start, owner in LOGS.items():
            if (options.get("log") or "").startswith(start):
                raise ValidationError(f"logs called {start}... are those of {owner}")
        return await self.app.enqueue(kind, payload, tenant=self.tenant, **options)

    async def job(self, job_id: str) -> Job:
        found = (await self.app.queue.get([job_id])).get(job_id)
        return self._own(found, job_id)

    async def wait(self, job_id: str, seconds: float) -> Job:
        """The job, which is known to be the tenant's, once it is finished."""
        return self._own(await self.app.wait(job_id, seconds), job_id)

    def _own(self, job: Job | None, job_id: str) -> Job:
        if job is None or job.tenant != self.tenant:
            raise JobNotFound(job_id)
        return job

    async def jobs(self, where: JobFilter, limit: int, before: str | None) -> list[Job]:
        return await self.app.queue.find(self._mine(where), limit, before)

    async def cancel(self, job_id: str) -> Job:
        await self.app.queue.cancel(self._mine(JobFilter(ids=[job_id])))
        return await self.job(job_id)

    async def forecast(
        self,
        kind: str | None,
        changes: Sequence[str],
        workers: int | None,
        processes: int | None,
        *,
        hosts: bool,
    ) -> Forecast:
        """Of the jobs of the tenant, among those of all; with `hosts` other limits of lanes of
        hosts can be asked about, too."""
        from penstock.forecast.what_if import not_in_use, parse_changes

        asked = parse_changes(changes)
        for lane in asked:
            if lane.startswith(HOSTS) and not hosts:
                raise not_in_use(lane)
        return await self.app.forecast(
            kind=kind,
            tenant=self.tenant,
            changes=asked,
            workers=workers,
            processes=processes,
        )

    async def signal(self, job_id: str, name: str, payload: Any, key: str | None) -> bool:
        await self.job(job_id)
        return await self.app.signal(job_id, name, payload, key=key)

    async def steps(self, job_id: str) -> list[StepRow]:
        """What a job, which is known to be the tenant's, has recorded or begun; events too."""
        return await self.app.queue.steps(job_id)

    def follow(self, job_id: str, after: int) -> AsyncIterator[JobEvent]:
        """The events of a job, which is known to be the tenant's."""
        return self.app.follow(job_id, after=after)

    async def told(self, job: Job, after: int) -> bool:
        """Whether whoever has read so far has been told of the end of a job."""
        last = await self.app.queue.last_recorded([job.id])
        return job.state.finished and after > last.get(job.id, 0)

    async def redrive(self, where: JobFilter) -> list[str]:
        return await self.app.queue.redrive(self._mine(where))

    async def change(self, what: What, where: JobFilter) -> ChangedJobs:
        """Do it to all that match, and say why not to those that were named by id."""
        queue, mine = self.app.queue, self._mine(where)
        changes = {"cancel": queue.cancel, "redrive": queue.redrive, "discard": queue.discard}
        ids = await changes[what](mine)
        left = set(where.ids or ()) - set(ids)
        found = await queue.get(list(left))
        named = [job_id for job_id in dict.fromkeys(where.ids or ()) if job_id in left]
        refused: list[Refusal] = []
        for number, one in enumerate(named, 1):
            refused.append(Refusal(one, await self._why_not(what, found.get(one))))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)  # for all others
        return ChangedJobs(len(ids), ids, refused)

    async def _why_not(self, what: str, job: Job | None) -> str:
        if job is None or job.tenant != self.tenant:
            return "there is no such job"
        if what == "cancel" and job.state.finished:
            return f"it is already {job.state}"
        if what != "cancel" and job.state is not JobState.FAILED:
            return f"it is {job.state}, not a dead letter"
        if what == "redrive" and job.log is not None:
            (stopped,) = await self.app.queue.stopped([(job.tenant, job.log)])
            if stopped:
                return f"its log {job.log} is stopped; reopen it first"
        return "it does not match the rest of the filter"

    async def rerun(
        self, job_id: str, *, new_id: str | None = None, from_step: str | None = None
    ) -> Job:
        """Run a job again as a new one; see `Penstock.rerun`. ValidationError for kinds that only
        the library makes jobs of."""
        job = await self.job(job_id)
        for start, maker in RESERVED.items():
            if job.kind.startswith(start):
                instead = INSTEAD.get(start, "that makes a new one")
                raise ValidationError(f"jobs of kind {job.kind!r} are made by {maker}: {instead}")
        return await self.app.rerun(job, job_id=new_id, from_step=from_step)

    async def dead_groups(self) -> list[DeadGroup]:
        return await self.app.dead_groups(self.tenant)

    def _mine(self, where: JobFilter) -> JobFilter:
        return replace(where, tenant=self.tenant)

    # Schedules

    async def schedules(
        self, after: str | None, limit: int, *, code: bool
    ) -> tuple[Sequence[ScheduleInfo], str | None]:
        """A page of the tenant's schedules, and the name after which the next one begins; on the
        first page with those in the `code`, which belong to the tenant `default`."""
        found = await self.app.schedules.page(self.tenant, after, limit)
        following = found[-1].name if len(found) == limit else None
        if code and after is None:
            in_code = await self.app.schedules.in_code()
            found = [*found, *(one for one in in_code if one.tenant == self.tenant)]
        return found, following

    async def schedule(self, name: str) -> ScheduleInfo:
        return await self.app.schedules.get(name, tenant=self.tenant)

    async def set_schedule(self, name: str, kind: str, **options: Any) -> ScheduleInfo:
        _refuse_reserved(kind)
        return await self.app.schedules.set(name, kind, tenant=self.tenant, **options)

    async def pause_schedule(self, name: str) -> ScheduleInfo:
        return await self.app.schedules.pause(name, tenant=self.tenant)

    async def resume_schedule(self, name: str) -> ScheduleInfo:
        return await self.app.schedules.resume(name, tenant=self.tenant)

    async def run_schedule(self, name: str, job_id: str | None = None) -> Job:
        return await self.app.schedules.run_now(name, tenant=self.tenant, job_id=job_id)

    async def remove_schedule(self, name: str) -> None:
        await self.app.schedules.remove(name, tenant=self.tenant)

    # Lanes

    async def lanes(self, *, hosts: bool) -> list[LaneInfo]:
        """Shared by all tenants and seen by all, but for those of `hosts`, which are for admins."""
        seen = await self.app.lane_infos()
        return seen if hosts else [lane for lane in seen if not lane.name.startswith(HOSTS)]

    # Documents

    async def document(self, document_id: str, collection: str) -> Document:
        return await self.documents.get(document_id, collection=collection, tenant=self.tenant)

    async def job_of(self, document: Document) -> Job | None:
        """The newest job that is there for a document."""
        found = await self.jobs(JobFilter(log=log_of(document.ref)), 1, None)
        return found[0] if found else None

    async def cancel_document(self, document: Document) -> None:
        """End what is being done with a document; it has failed then, and can be tried again."""
        await self.app.queue.cancel(self._mine(JobFilter(log=log_of(document.ref))))

    # Research tasks

    async def task(self, task_id: str, **options: Any) -> TaskView:
        return await self.research.status(task_id, tenant=self.tenant, **options)

    # Answers

    async def answer(self, answer_id: str, **options: Any) -> AnswerView:
        return await self.answers.get(answer_id, tenant=self.tenant, **options)

    # Logs

    async def changes(self, log: str, since: int, limit: int, *, wait: float = 0.0) -> list[Change]:
        return await self.app.changes(log, since, tenant=self.tenant, wait=wait, limit=limit)

    async def version(self, log: str) -> int:
        (newest,) = await self.app.queue.versions([(self.tenant, log)])
        return newest

    async def at_work(self, log: str) -> bool:
        """Whether a job of a log is left to do."""
        unfinished = JobFilter(log=log, states=[JobState.QUEUED, JobState.RUNNING])
        return bool(await self.jobs(unfinished, 1, None))


def _refuse_reserved(kind: str) -> None:
    for start, maker in RESERVED.items():
        if kind.startswith(start):
            raise ValidationError(f"jobs of kind {kind!r} are made by {maker}")


DEAD = (JobState.FAILED,)


def dead_letters(
    kind: str | None, error_type: str | None, log: str | None, ids: Sequence[str] | None = None
) -> JobFilter:
    return JobFilter(ids=ids, states=DEAD, kind=kind, error_type=error_type, log=log)
