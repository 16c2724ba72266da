"""The actions of callers on jobs, lanes and documents. Of all tenants, so it is for
admins."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from penstock.adapters.sql.access import AccessStore
from penstock.server.dashboard.live import screen
from penstock.server.dashboard.page_route import router
from penstock.server.dashboard.pages import paging
from penstock.server.dashboard.session import Controlling
from penstock.server.dependencies import Before

routes = router()

PAGE = 50


@routes.get("/actions")
@routes.get("/live/actions")
async def actions(request: Request, visit: Controlling, before: Before = None) -> Response:
    return await screen(request, "actions.html", "Actions", lambda: _seen(request, before))


async def _seen(request: Request, before: str | None) -> dict[str, Any]:
    access: AccessStore = request.app.state.access
    found = await access.actions(PAGE + 1, before)
    return paging("actions", "/actions", found, PAGE, before)
