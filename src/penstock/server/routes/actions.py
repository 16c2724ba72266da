"""Actions of callers on jobs, lanes and documents."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from penstock.ports.access import AccessStore
from penstock.server.answer_json import reply
from penstock.server.callers import Admin
from penstock.server.queries import Before
from penstock.wire.operators import ActionPage

routes = APIRouter(tags=["actions"])


@routes.get("/v1/actions", responses={200: {"model": ActionPage}})
async def actions(
    request: Request,
    caller: Admin,
    tenant: Annotated[str | None, Query(max_length=240)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    before: Before = None,
) -> Response:
    """The newest first, of all tenants or of one."""
    access: AccessStore = request.app.state.access
    found = await access.actions(limit, before, tenant)
    following = found[-1].id if len(found) == limit else None
    return reply(ActionPage(actions=found, next=following))
