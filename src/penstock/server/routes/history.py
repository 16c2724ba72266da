"""The last hour, for charts."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.server.answer_json import reply
from penstock.server.dependencies import AdminAccess
from penstock.wire.operators import HistoryView

routes = APIRouter(tags=["overview"])


@routes.get("/v1/history", responses={200: {"model": HistoryView}})
async def history(request: Request, tenant_view: AdminAccess) -> Response:
    """How much ran and how long it took in the last hour, for as long as this server has been up:
    a sample every five seconds, as columns. Of all tenants together, so it is for admins."""
    return reply(request.app.state.history.view())
