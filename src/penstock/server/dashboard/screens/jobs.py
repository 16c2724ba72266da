"""Jobs: filtered list, bulk actions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Depends, Query, Request
from starlette.responses import Response

from penstock.model.job import Job, JobState, Priority
from penstock.model.redact import hidden_job
from penstock.ports.queue import JobFilter
from penstock.server.dashboard.job_actions import DESTROYS, VERBS, act_of, change
from penstock.server.dashboard.live import live
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, confirm, page, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem

routes = router()

PAGE = 50
TICKED = 10_000
"""Maximum jobs selected one by one; for more, use the filter."""
RARE = ("error_type", "log", "parent", "since", "until")
UNFINISHED = {JobState.QUEUED, JobState.RUNNING}


class JobSelection:
    """The jobs that a URL selects; empty parameters are ignored."""

    def __init__(
        self,
        state: Annotated[list[JobState] | None, Query()] = None,
        kind: Annotated[str, Query(max_length=200)] = "",
        lane: Annotated[str, Query(max_length=300)] = "",
        priority: Annotated[str, Query(pattern="^(high|medium|low)?$")] = "",
        error_type: Annotated[str, Query(max_length=240)] = "",
        log: Annotated[str, Query(max_length=512)] = "",
        parent: Annotated[str, Query(max_length=64)] = "",
        since: Annotated[str, Query(max_length=40)] = "",
        until: Annotated[str, Query(max_length=40)] = "",
    ) -> None:
        self.states = state or []
        given = {"kind": kind, "lane": lane, "priority": priority, "error_type": error_type}
        given |= {"log": log, "parent": parent, "since": since, "until": until}
        self.texts = {name: text.strip() for name, text in given.items()}

    def where(self) -> JobFilter:
        texts = {name: text or None for name, text in self.texts.items()}
        return JobFilter(
            states=self.states or None,
            kind=texts["kind"],
            lane=texts["lane"],
            priority=None if texts["priority"] is None else Priority.parse(texts["priority"]),
            error_type=texts["error_type"],
            log=texts["log"],
            parent_id=texts["parent"],
            enqueued_after=_moment(texts["since"]),
            enqueued_before=_moment(texts["until"]),
        )

    def query(self, **more: str | None) -> str:
        """Format the selection as a query string."""
        given = [("state", str(state)) for state in self.states]
        given += [(name, text) for name, text in {**self.texts, **more}.items() if text]
        return "?" + urlencode(given) if given else ""

    @property
    def rare(self) -> bool:
        """Whether it uses filters that are folded at first."""
        return any(self.texts[name] for name in RARE)

    @property
    def offers(self) -> list[str]:
        """Actions available for jobs in these states."""
        states = set(self.states or JobState)
        offered = ["cancel"] if states & UNFINISHED else []
        return offered + (["redrive", "discard"] if JobState.FAILED in states else [])


def _moment(text: str | None) -> float | None:
    """Parse a time as browsers send it, in UTC."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except (ValueError, OverflowError):
        raise Problem(422, "invalid", f"{text!r} is not a time, as in 2026-11-30T12:00") from None


JobSelector = Annotated[JobSelection, Depends()]
Place = Annotated[str | None, Query(max_length=64)]


@routes.get("/jobs")
async def jobs(
    request: Request, visit: Reading, wanted: JobSelector, before: Place = None
) -> Response:
    seen = await _list(visit, wanted, None, before)
    return page(request, "jobs.html", title="Jobs", states=list(JobState), **seen)


@routes.get("/live/jobs")
async def jobs_live(
    request: Request, visit: Reading, wanted: JobSelector, top: Place = None, before: Place = None
) -> Response:
    wanted.where()  # 422 before the stream begins

    return live(request, "parts/jobs.html", lambda: _list(visit, wanted, top, before))


async def _list(
    visit: CallerView, wanted: JobSelection, top: str | None, before: str | None
) -> dict[str, Any]:
    """Load a page of the list. While it is open it starts with the job at its `top`: newer ones are
    counted but not shown, so that nothing moves while it is read."""
    where = wanted.where()
    found = await visit.jobs(where, PAGE + 1, before)
    newer, more = 0, False
    if top is not None and before is None:
        ids = [job.id for job in found]
        if top in ids:
            newer = ids.index(top)
            found = found[newer:]
            if newer and found:
                found += await visit.jobs(where, newer, found[-1].id)
        elif len(found) > PAGE:  # all on this page are newer, or it does not match any more
            older = await visit.jobs(where, PAGE + 1, top)
            if older:
                found, newer, more = older, PAGE, True
    shown = [_line(visit, job) for job in found[:PAGE]]
    first = top or (shown[0].id if shown else None)
    return {
        "jobs": shown,
        "newer": f"{newer:,} or more" if more else newer,
        "wanted": wanted,
        "first": "/jobs" + wanted.query() if before else None,
        "following": _older(wanted, shown, found),
        "address": "/live/jobs" + wanted.query(top=first, before=before),
    }


def _line(visit: CallerView, job: Job) -> Job:
    """Prepare a job for the list, with secrets hidden."""
    short = replace(job, payload={}, result=None, history=[], lines=[])
    return hidden_job(short, visit.app.config.logging.hidden_names)


def _older(wanted: JobSelection, shown: list[Job], found: list[Job]) -> str | None:
    if len(found) <= len(shown):
        return None
    return "/jobs" + wanted.query(before=shown[-1].id)


@routes.post("/jobs/change")
async def change_jobs(request: Request, visit: Writing, wanted: JobSelector) -> Response:
    """Apply an action to the selected jobs, or to all that match."""
    form = await read_form(request)
    what, _, all_of_them = form.one("what").partition("-")
    act, back = act_of(what), "/jobs" + wanted.query()
    if all_of_them:
        where, which = wanted.where(), "all matching jobs"
    else:
        ids = form.all("id")
        if not ids:
            return redirect(back, Flash("bad", "No jobs selected."))
        if len(ids) > TICKED:
            raise Problem(422, "invalid", f"over {TICKED:,} jobs selected; use filters instead")
        where, which = JobFilter(ids=ids), f"{len(ids):,} jobs"
    if (act in DESTROYS or all_of_them) and not form.confirmed:
        return confirm(request, f"{VERBS[act]} {which}?", form.fields, back)
    return redirect(back, await change(request, visit, act, where))
