"""Dead letters grouped by error: redriven or discarded a group at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.api.tenant_view import dead_letters as filter_of
from penstock.model.redact import hidden
from penstock.server.dashboard.job_actions import VERBS, act_of, change
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import confirm, redirect
from penstock.server.dashboard.session import Reading, Writing, read_form
from penstock.server.dependencies import CallerView
from penstock.server.problems import Problem

routes = router()

PATH = "/dead-letters"


@routes.get(PATH)
@routes.get("/live/dead-letters")
async def dead_letters(request: Request, visit: Reading) -> Response:
    return await screen(request, "dead_letters.html", "Dead letters", lambda: _groups(visit))


async def _groups(visit: CallerView) -> dict[str, Any]:
    """Load the groups, with secrets hidden."""
    names = visit.app.config.logging.hidden_names
    found = await visit.dead_groups()
    return {"groups": [replace(one, message=hidden(one.message, names)) for one in found]}


@routes.post(PATH)
async def change_group(request: Request, visit: Writing) -> Response:
    form = await read_form(request)
    act, kind, error_type = act_of(form.one("what")), form.one("kind"), form.one("error_type")
    if act == "cancel" or not kind or not error_type:
        raise Problem(422, "invalid", "say which group (kind and error_type), redrive or discard")
    if not form.confirmed:
        ask = f"{VERBS[act]} all {kind} jobs that failed with {error_type}?"
        return confirm(request, ask, form.fields, PATH)
    where = filter_of(kind, error_type, None)
    return redirect(PATH, await change(request, visit, act, where))
