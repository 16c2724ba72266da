"""Periodic kinds: shared by all tenants, for admins."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from penstock.server.answer_json import reply
from penstock.server.dependencies import AdminAccess
from penstock.wire.jobs import PeriodicKinds

routes = APIRouter(tags=["jobs"])


@routes.get("/v1/periodic", responses={200: {"model": PeriodicKinds}})
async def periodic(tenant_view: AdminAccess) -> Response:
    """The kinds that the clock enqueues, as worker processes last told: schedule, last and next
    tick, jobs of earlier ticks that are unfinished."""
    return reply(PeriodicKinds(await tenant_view.app.periodic()))
