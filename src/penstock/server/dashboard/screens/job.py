"""One job: timeline, payload, result, actions."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.api.tenant_view import RESERVED
from penstock.model.redact import hidden_job
from penstock.ports.queue import JobFilter
from penstock.server.actions import acting, named
from penstock.server.dashboard.filters import in_path
from penstock.server.dashboard.job_actions import DESTROYS, VERBS, act_of, change
from penstock.server.dashboard.live import live
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import Flash, confirm, page, redirect
from penstock.server.dashboard.session import PageContext, Reading, Writing, read_form
from penstock.server.dashboard.timeline import WIDTH, bars, periods

routes = router()


@routes.get("/jobs/{job_id:name}")
async def job(request: Request, visit: Reading, job_id: str) -> Response:
    seen = await _seen(visit, job_id)
    return page(request, "job.html", title=f"Job {seen['job'].kind}", **seen)


@routes.get("/live/jobs/{job_id:name}")
async def job_live(request: Request, visit: Reading, job_id: str) -> Response:
    await visit.tenant_view.job(job_id)  # 404 before the stream begins

    return live(request, "parts/job.html", lambda: _seen(visit, job_id))


async def _seen(visit: PageContext, job_id: str) -> dict[str, Any]:
    found = hidden_job(
        await visit.tenant_view.job(job_id), visit.tenant_view.app.config.logging.hidden_names
    )
    life = periods(found, visit.tenant_view.app.queue.now())
    return {
        "job": found,
        "periods": life,
        "bars": bars(life),
        "width": WIDTH,
        "repeatable": not found.kind.startswith(tuple(RESERVED)),
    }


@routes.post("/jobs/{job_id:name}/change")
async def change_job(request: Request, visit: Writing, job_id: str) -> Response:
    form = await read_form(request)
    act, back = act_of(form.one("what")), f"/jobs/{in_path(job_id)}"
    await visit.tenant_view.job(job_id)
    if act in DESTROYS and not form.confirmed:
        return confirm(request, f"{VERBS[act]} this job?", form.fields, back)
    flash = await change(request, visit, act, JobFilter(ids=[job_id]))
    gone = act == "discard" and flash.kind == "good"
    return redirect("/dead-letters" if gone else back, flash)


@routes.post("/jobs/{job_id:name}/rerun")
async def rerun(request: Request, visit: Writing, job_id: str) -> Response:
    async with acting(request, visit.caller, "job.rerun", named(job_id)) as deed:
        await request.app.state.depth.check(visit.tenant_view.tenant)
        new = await visit.tenant_view.rerun(job_id)
        deed.detail["new"] = new.id
    return redirect(f"/jobs/{in_path(new.id)}", Flash("good", "New job enqueued."))
