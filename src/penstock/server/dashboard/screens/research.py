"""Research tasks: list, create."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.research.service import QUESTION_LIMIT
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import (
    Refused,
    empty,
    number,
    router,
    told,
    typed,
    whole_number,
)
from penstock.server.dashboard.pages import Flash, paging, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import Before, CallerView
from penstock.server.problems import Problem

routes = router()

PAGE = 30
FIELDS = ("question", "budget_pages", "budget_seconds")


@routes.get("/research")
@routes.get("/live/research")
async def tasks(request: Request, visit: Reading, before: Before = None) -> Response:
    return await _screen(request, visit, empty(*FIELDS), None, before)


async def _screen(
    request: Request,
    visit: CallerView,
    fields: dict[str, str],
    wrong: Problem | None,
    before: str | None = None,
) -> Response:
    look = partial(_list, visit, before)
    shown = {"typed": fields, "most": QUESTION_LIMIT}
    return await screen(request, "research.html", "Research", look, wrong, **shown)


async def _list(visit: CallerView, before: str | None) -> dict[str, Any]:
    tenant = visit.tenant
    found = await visit.research.tasks(tenant=tenant, limit=PAGE + 1, before=before)
    return paging("tasks", "/research", found, PAGE, before, cursor="task_id")


@routes.post("/research")
async def create(request: Request, visit: Writing) -> Response:
    form = await read_form(request)
    try:
        task = await visit.research.create(
            form.one("question"),
            budget_pages=whole_number(form, "budget_pages", "Pages"),
            budget_seconds=number(form, "budget_seconds", "Seconds"),
            tenant=visit.tenant,
        )
    except Refused as error:
        return await _screen(request, visit, typed(form, *FIELDS), told(error))
    said = Flash("good", "Task created. Add its searches.")
    return redirect(f"/research/{task.id}", said)
