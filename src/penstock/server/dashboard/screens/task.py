"""One research task: searches and live results; stop, resume, export."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, NamedTuple

from fastapi import Query, Request
from starlette.responses import Response

from penstock.model.job import Priority
from penstock.research.service import MAX_LISTED, MAX_QUERIES, MAX_RESULTS, Format
from penstock.server.actions import acting, named
from penstock.server.dashboard.filters import duration, in_path
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import Refused, router, told, typed, whole_number
from penstock.server.dashboard.pages import Flash, confirm, page, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem
from penstock.server.routes.tasks import exported
from penstock.wire.tasks import SearchView, TaskView, Trouble, Work

routes = router()

PAGE = 50
TEXT = 20_000
"""Characters of a page shown at once."""
RESULTS = 10
FIELDS = ("queries", "max_results", "priority")
FORMATS = {"markdown": "Markdown", "json": "JSON", "bibtex": "BibTeX"}
STOPS = {
    "graceful": "Stop the task? Running searches finish with their pages; it can be resumed.",
    "immediate": "Stop the task now? Running searches are discarded; it can be resumed.",
}

From = Annotated[int, Query(alias="from", ge=0, le=2**31)]


class ProviderView(NamedTuple):
    """A task's results from one provider."""

    name: str
    searches: int
    running: int
    results: int
    errors: tuple[Trouble, ...]


def providers_of(
    searches: tuple[SearchView, ...], works: tuple[Work, ...], errors: tuple[Trouble, ...]
) -> list[ProviderView]:
    names = dict.fromkeys(name for one in searches for name in one.providers)
    return [
        ProviderView(
            name,
            sum(name in one.providers for one in searches),
            sum(name in one.providers and one.state == "running" for one in searches),
            sum(name in one.providers for one in works),
            tuple(one for one in errors if one.provider == name),
        )
        for name in names
    ]


@routes.get("/research/{task_id:name}")
@routes.get("/live/research/{task_id:name}")
async def task(request: Request, visit: Reading, task_id: str, first: From = 0) -> Response:
    providers = list(visit.research.providers)
    fields = {"queries": "", "max_results": str(RESULTS), "priority": "medium"}
    return await _screen(request, visit, task_id, fields, providers, None, first)


async def _screen(
    request: Request,
    visit: CallerView,
    task_id: str,
    fields: dict[str, str],
    chosen: list[str],
    wrong: Problem | None,
    first: int = 0,
) -> Response:
    return await screen(
        request,
        "task.html",
        "Research task",
        partial(_seen, visit, task_id, first),
        wrong,
        typed=fields,
        chosen=chosen,
        providers=visit.research.known,
        priorities=[(one.name.lower(), one.name.lower()) for one in sorted(Priority)],
        limits={"queries": MAX_QUERIES, "results": MAX_RESULTS},
        formats=FORMATS,
    )


async def _seen(visit: CallerView, task_id: str, first: int) -> dict[str, Any]:
    view: TaskView = await visit.task(task_id, limit=MAX_LISTED)
    works = view.results[first : first + PAGE]
    if first + PAGE > MAX_LISTED:
        works = (await visit.task(task_id, limit=PAGE, cursor=str(first))).results
    done, _, every = view.progress.partition("/")
    here = f"/research/{in_path(task_id)}"
    return {
        "view": view,
        "here": here,
        "first": first,
        "works": works,
        "by_provider": providers_of(view.searches, view.results, view.errors),
        "counted": len(view.results),
        "done": int(done),
        "every": int(every),
        "before": f"{here}?from={max(0, first - PAGE)}#results" if first else None,
        "after": f"{here}?from={first + PAGE}#results"
        if first + PAGE < view.total_results
        else None,
        "stops": STOPS,
    }


@routes.post("/research/{task_id:name}/searches")
async def add_searches(request: Request, visit: Writing, task_id: str) -> Response:
    form = await read_form(request)
    lines = typed(form, "queries")["queries"].splitlines()
    chosen = form.all("provider")
    priority: Any = form.one("priority", "medium")  # a name that is none is refused by the service
    try:
        most = whole_number(form, "max_results", "Results per query")
        await request.app.state.depth.check(visit.tenant)
        queued = await visit.research.queue_searches(
            task_id,
            [line for line in lines if line.strip()],
            max_results=RESULTS if most is None else most,
            priority=priority,
            providers=chosen,
            tenant=visit.tenant,
        )
    except Refused as error:
        problem = told(error)
        if problem.status == 404:
            raise
        return await _screen(request, visit, task_id, typed(form, *FIELDS), chosen, problem)
    said = f"{queued.queued} {'search' if queued.queued == 1 else 'searches'} queued"
    if queued.queued:
        said += f", about {duration(queued.estimated_time)}"
    if queued.skipped:
        said += f"; {queued.skipped} skipped as duplicates"
    return redirect(f"/research/{in_path(task_id)}", Flash("good", f"{said}."))


@routes.post("/research/{task_id:name}/stop")
async def stop(request: Request, visit: Writing, task_id: str) -> Response:
    form, back = await read_form(request), f"/research/{in_path(task_id)}"
    mode: Any = form.one("mode")
    if mode not in STOPS:
        raise Problem(422, "invalid", f"mode is {' or '.join(STOPS)}")
    await visit.task(task_id, limit=0)
    if not form.confirmed:
        return confirm(request, STOPS[mode], form.fields, back)
    async with acting(request, "task.stop", named(task_id), mode=mode):
        stopped = await visit.research.stop(task_id, mode=mode, tenant=visit.tenant)
    if not stopped.resumable:
        return redirect(back, Flash("bad", f"Nothing to stop: the task is {stopped.status}."))
    said = f"Stopped: {stopped.searches_done} searches done, {stopped.searches_left}"
    said += f" left. {stopped.running} running jobs will finish." if stopped.running else " left."
    return redirect(back, Flash("good", said))


@routes.post("/research/{task_id:name}/resume")
async def resume(request: Request, visit: Writing, task_id: str) -> Response:
    await read_form(request)
    async with acting(request, "task.resume", named(task_id)):
        await request.app.state.depth.check(visit.tenant)
        resumed = await visit.research.resume(task_id, tenant=visit.tenant)
    said = f"Resumed: {resumed.queued} searches queued."
    return redirect(f"/research/{in_path(task_id)}", Flash("good", said))


@routes.get("/research/{task_id:name}/export")
async def export(request: Request, visit: Reading, task_id: str, format: Format) -> Response:
    return await exported(visit, task_id, format)


@routes.get("/research/{task_id:name}/page")
async def read_page(
    request: Request,
    visit: Reading,
    task_id: str,
    document: Annotated[str, Query(min_length=1, max_length=2000)],
    collection: Annotated[str | None, Query(min_length=1, max_length=240)] = None,
    cursor: Annotated[str | None, Query(max_length=512)] = None,
) -> Response:
    """Show the text of a page that was read for the task."""
    view = await visit.task(task_id, limit=0)
    found = await visit.research.page(
        document, collection=collection, limit=TEXT, cursor=cursor, tenant=visit.tenant
    )
    return page(request, "task_page.html", title="Page", view=view, found=found)
