"""One run of a search: queries providers, merges their results, and reads pages, each by a separate
job in its lane.

The job of the search only waits for them. It keeps its slot in the lane `search`, which limits
concurrent searches, but no worker. If interrupted, it runs again and finds the same jobs; finished
work of an earlier run is not repeated.

No wait is unlimited. Pages are read as soon as all providers have responded, or some have and the
others had a head start; a provider or page that takes too long is abandoned, and reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import aclosing
from dataclasses import asdict, replace
from typing import Any

from penstock.engine.context import JobContext
from penstock.errors import LogStopped, TaskStopped, ValidationError
from penstock.model.job import Job, JobState
from penstock.model.research import PageState, ProviderReply, SearchRef, SearchState, TaskRecord
from penstock.outbound.web_address import web_address
from penstock.ports.queue import JobFilter
from penstock.ports.research import NewPage, Started
from penstock.research.job_ids import FIND, PAGE, SEARCH, SEARCH_LANE, log_of, payload_of
from penstock.research.jobs import RECORD_LIMIT, ResearchDeps
from penstock.research.status import DOCUMENTS, address_of, results_of, selected, troubles_of
from penstock.wire.tasks import Work

HEAD_START = 0.25
"""Share of the providers' time after which reading of the pages found so far starts."""


def register(tools: ResearchDeps, seconds: float, job: Callable[..., Callable[[Any], Any]]) -> None:
    @job(SEARCH, lane=SEARCH_LANE, timeout=seconds)
    async def search(ctx: JobContext, task: str, search: str, run: int) -> dict[str, Any]:
        ref = SearchRef(ctx.job.tenant, task, search)
        started = await tools.store.start(ref, run, tools.now())
        if started is None:
            return {"refused": True}
        return await SearchRun(tools, ctx, started).take()


class SearchRun:
    """A search in progress."""

    def __init__(self, tools: ResearchDeps, ctx: JobContext, started: Started) -> None:
        self._tools = tools
        self._ctx = ctx
        self._task = started.task
        self._search = started.search
        self._ref, self._run = started.search.ref, started.search.run
        self._answers = {one.provider: one for one in started.answers}
        self._jobs: dict[str, Job] = {}
        """Jobs in progress, by id."""
        self._finds: dict[str, str] = {}
        """Provider of each of those jobs, by id."""
        self._pages: dict[str, str] = {}
        """Key of the page that each of those jobs reads, by id."""
        self._planned: set[str] = set()
        self._over_budget = 0

    async def take(self) -> dict[str, Any]:
        ends_at, reason = self._task.ends_at, None
        left = None if ends_at is None else max(0.0, ends_at - self._tools.now())
        limit = asyncio.timeout(left)
        try:
            async with limit:
                await self._ask()
                await self._until_done()
        except LogStopped:
            # At once, or a job of the search was cancelled since: what is left is done when the
            # task is resumed.
            return {"stopped": True}
        except TimeoutError:
            if not limit.expired():
                raise
            reason = f"the time budget of {self._task.budget_seconds:g} s is used up"
            await self._tools.queue.cancel(
                JobFilter(parent_id=self._ctx.job.id, tenant=self._ref.tenant)
            )
        return await self._finish(reason)

    async def _ask(self) -> None:
        for provider in self._search.providers:
            before = self._answers.get(provider)
            if before is None or not before.done:
                job = await self._ctx.enqueue(
                    FIND, {**payload_of(self._ref, self._run), "provider": provider}
                )
                self._finds[job.id] = provider
                self._jobs[job.id] = job

    async def _until_done(self) -> None:
        tools, begun = self._tools, self._tools.now()
        asked_until = begun + tools.provider_seconds
        head_start = begun + tools.provider_seconds * HEAD_START
        read_until = begun
        while True:
            now = tools.now()
            asked = not self._finds or now >= head_start
            if asked and await self._plan():
                read_until = tools.now() + tools.page_seconds
            if not self._finds and not self._pages:
                return
            ends = [asked_until if now >= head_start else head_start] if self._finds else []
            ends += [read_until] if self._pages else []
            job = await self._next(min(ends))
            if job is not None:
                await self._ended(job)
            elif self._finds and tools.now() >= asked_until:
                await self._give_up_finds()
            elif self._pages and tools.now() >= read_until:
                await self._give_up_pages()

    async def _next(self, until: float) -> Job | None:
        """Wait for the next job to finish; None if none has by then."""
        jobs = [self._jobs[one] for one in (*self._finds, *self._pages)]
        try:
            async with (
                asyncio.timeout(max(0.0, until - self._tools.now())),
                aclosing(self._ctx.finished(jobs)) as finished,
            ):
                async for job in finished:
                    return job
        except TimeoutError:
            return None
        return None

    async def _ended(self, job: Job) -> None:
        """Handle a finished job. A completed one, and one that failed in its handler, has stored
        its outcome. One that was cancelled, or whose processes died, has not."""
        provider, key = self._finds.pop(job.id, None), self._pages.pop(job.id, None)
        if job.state is JobState.COMPLETED:
            return
        if job.state is JobState.CANCELLED:
            log = (self._ref.tenant, log_of(self._ref.task))
            if (await self._tools.queue.stopped([log]))[0]:
                raise TaskStopped(self._ref.task)
        reason = job.error["message"] if job.error else f"its job was {job.state}"
        known = await self._known()
        if provider is not None and not any(one.provider == provider for one in known.answers):
            await self._note_find(provider, reason)
        for page in known.pages:
            if page.key == key and page.state is PageState.WAITING:
                await self._note_page(page.key, reason)

    async def _note_find(self, provider: str, reason: str) -> None:
        answer = ProviderReply(
            self._ref.id, provider, (), done=False, error=reason, at=self._tools.now()
        )
        await self._tools.store.answer(self._ref, self._run, answer)

    async def _note_page(self, key: str, reason: str) -> None:
        await self._tools.store.page(
            self._ref, self._run, key, PageState.FAILED, self._tools.now(), reason=reason
        )

    async def _plan(self) -> bool:
        """Enqueue reading of the best pages that are still unread; returns whether there were
        any."""
        known = await self._known()
        lists = [one.findings for one in known.answers]
        new: dict[str, NewPage] = {}
        for work in selected(lists, self._search.limit):
            address = address_of(work.finding)
            here = DOCUMENTS in work.providers
            if address is not None and not here and address[0] not in self._planned:
                new[address[0]] = NewPage(*address)
        if not new:
            return False
        granted = await self._tools.store.grant(
            self._ref, self._run, list(new.values()), self._tools.now()
        )
        if granted is None:
            raise TaskStopped(self._ref.task)
        self._planned |= set(new)
        self._over_budget += len(granted.refused)
        waiting = [page for page in granted.pages if page.state is PageState.WAITING]
        for page in waiting:
            job = await self._ctx.enqueue(
                PAGE,
                {
                    **payload_of(self._ref, self._run),
                    "key": page.key,
                    "url": page.url,
                    "lane": await self._tools.documents.lane_of(host_of(page.url)),
                },
            )
            self._pages[job.id] = page.key
            self._jobs[job.id] = job
        return bool(waiting)

    async def _give_up_finds(self) -> None:
        seconds = self._tools.provider_seconds
        for job in await self._cancelled(self._finds):
            await self._note_find(
                self._finds[job.id], f"no answer within {seconds:g} s{_waited(job)}"
            )
        self._finds.clear()

    async def _give_up_pages(self) -> None:
        seconds = self._tools.page_seconds
        for job in await self._cancelled(self._pages):
            await self._note_page(
                self._pages[job.id], f"not read within {seconds:g} s{_waited(job)}"
            )
        self._pages.clear()

    async def _cancelled(self, ids: Iterable[str]) -> list[Job]:
        """Cancel jobs; returns those that had not finished, as they were before."""
        before = await self._tools.queue.get(list(ids))
        gone = await self._tools.queue.cancel(JobFilter(ids=list(ids), tenant=self._ref.tenant))
        return [before[one] for one in gone if one in before]

    async def _known(self) -> Started:
        """Load the search. Raises TaskStopped if this run no longer owns it."""
        started = await self._tools.store.start(self._ref, self._run, self._tools.now())
        if started is None:
            raise TaskStopped(self._ref.task)
        return started

    async def _finish(self, reason: str | None) -> dict[str, Any]:
        try:
            known = await self._known()
        except TaskStopped:
            return {"refused": True}
        if self._over_budget:
            said = f"the budget of {self._task.budget_pages} pages is used up: "
            said += f"{self._over_budget} results were not read"
            reason = f"{reason}; {said}" if reason else said
        succeeded = any(one.done or one.findings for one in known.answers)
        if not succeeded and reason is None:
            reason = "no provider answered"
        state = SearchState.COMPLETED if succeeded else SearchState.FAILED
        if not await self._tools.store.finish(
            self._ref, self._run, state, reason, self._tools.now()
        ):
            return {"refused": True}
        ended = replace(self._search, state=state, reason=reason)
        alone = TaskRecord(self._task, [ended], known.answers, known.pages)
        return {
            "query": self._search.query,
            "state": state.value,
            "reason": reason,
            "results": [_in_full(work) for work in results_of(alone).works],
            "errors": [asdict(one) for one in troubles_of(alone)],
        }


def _in_full(work: Work) -> dict[str, Any]:
    """Format results for the job's record, within its limit."""
    return asdict(replace(work, abstract=(work.abstract or "")[:RECORD_LIMIT] or None))


def host_of(url: str) -> str:
    """Return the host of a page. An invalid URL is rejected when it is fetched; here it only needs
    a lane."""
    try:
        return web_address(url).host
    except ValidationError:
        return "unknown"


def _waited(job: Job) -> str:
    if job.state is JobState.QUEUED and job.waiting_for:
        return f": waiting for {job.waiting_for}"
    return f": {job.error['message']}" if job.error else ""
