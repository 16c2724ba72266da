"""Jobs: a list that can be narrowed down, and a page for each."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.responses import Response

from penstock.model.job import Job, JobState
from penstock.ports.queue import JobFilter
from penstock.server.dashboard.live import live
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import page, part
from penstock.server.dashboard.session import Reading, Visit

routes = router()

PAGE = 50


class Wanted:
    """Which jobs an address asks for; what is empty in it is left out."""

    def __init__(
        self,
        state: Annotated[list[JobState] | None, Query()] = None,
        kind: Annotated[str, Query(max_length=200)] = "",
        task: Annotated[str, Query(max_length=512)] = "",
        parent: Annotated[str, Query(max_length=64)] = "",
        error_type: Annotated[str, Query(max_length=240)] = "",
    ) -> None:
        self.states = state or []
        self.texts = {"kind": kind, "task": task, "parent": parent, "error_type": error_type}

    def where(self) -> JobFilter:
        texts = {name: text.strip() or None for name, text in self.texts.items()}
        return JobFilter(
            states=self.states or None,
            kind=texts["kind"],
            task=texts["task"],
            parent_id=texts["parent"],
            error_type=texts["error_type"],
        )

    def query(self, **more: str | None) -> str:
        """The same as the end of an address."""
        given = [("state", str(state)) for state in self.states]
        given += [(name, text) for name, text in {**self.texts, **more}.items() if text]
        return "?" + urlencode(given) if given else ""


Which = Annotated[Wanted, Depends()]
Place = Annotated[str | None, Query(max_length=64)]


@routes.get("/jobs")
async def jobs(request: Request, visit: Reading, wanted: Which, before: Place = None) -> Response:
    seen = await _list(visit, wanted, None, before)
    return page(request, "jobs.html", title="Jobs", states=list(JobState), **seen)


@routes.get("/live/jobs")
async def jobs_live(
    request: Request, visit: Reading, wanted: Which, top: Place = None, before: Place = None
) -> Response:
    async def render() -> str:
        return part(request, "parts/jobs.html", **await _list(visit, wanted, top, before))

    return live(request, render)


async def _list(
    visit: Visit, wanted: Wanted, top: str | None, before: str | None
) -> dict[str, Any]:
    """A page of the list. While it is open it begins with the job that was at its `top`: what is
    newer is counted and not shown, so that nothing moves under the reader's hand."""
    found = await visit.desk.jobs(wanted.where(), PAGE + 1, before)
    newer = 0
    if top is not None:
        places = [index for index, job in enumerate(found) if job.id == top]
        newer = places[0] if places else 0
        if newer:
            following = await visit.desk.jobs(wanted.where(), newer, found[-1].id)
            found = found[newer:] + following
    shown = found[:PAGE]
    first = shown[0].id if shown else None
    return {
        "jobs": shown,
        "newer": newer,
        "wanted": wanted,
        "first": "/jobs" + wanted.query() if before else None,
        "following": _older(wanted, shown, found),
        "address": "/live/jobs" + wanted.query(top=first, before=before),
    }


def _older(wanted: Wanted, shown: list[Job], found: list[Job]) -> str | None:
    if len(found) <= len(shown):
        return None
    return "/jobs" + wanted.query(before=shown[-1].id)


@routes.get("/jobs/{job_id:name}")
async def job(request: Request, visit: Reading, job_id: str) -> Response:
    seen = await visit.desk.job(job_id)
    return page(request, "job.html", title=f"Job {seen.kind}", job=seen)


@routes.get("/live/jobs/{job_id:name}")
async def job_live(request: Request, visit: Reading, job_id: str) -> Response:
    await visit.desk.job(job_id)  # 404 before the stream begins

    async def render() -> str:
        return part(request, "parts/job.html", job=await visit.desk.job(job_id))

    return live(request, render)
