"""The overview: for a tenant its jobs, for an admin the whole queue."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.api.overview import overview as overview_of
from penstock.api.tenant_view import TenantView
from penstock.model.access import KeyScope
from penstock.server.answer_json import reply
from penstock.server.callers import Reader
from penstock.server.dependencies import ReadAccess
from penstock.server.queue_cache import QueueCache
from penstock.wire.operators import Overview

routes = APIRouter(tags=["overview"])


@routes.get("/v1/overview", responses={200: {"model": Overview}})
async def overview(request: Request, tenant_view: ReadAccess, caller: Reader) -> Response:
    """Jobs of the tenant by kind and state. For admins besides: worker processes, lanes in trouble,
    and what needs attention. As of a second ago; on a large queue, of some seconds."""
    admin = KeyScope.ADMIN in caller.scopes
    return reply(await seen_by(tenant_view, request.app.state.looks, admin=admin))


async def seen_by(tenant_view: TenantView, looks: QueueCache, *, admin: bool) -> Overview:
    """What the API answers and the dashboard shows."""
    now, counts = tenant_view.app.queue.now(), await looks.counts(tenant_view.tenant)
    return overview_of(tenant_view.tenant, counts, now, await looks.outlook() if admin else None)
