"""Periodic kinds: shared by all tenants, for admins."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from penstock.server.answer_json import reply
from penstock.server.dependencies import AdminDesk
from penstock.wire.jobs import PeriodicKinds

routes = APIRouter(tags=["jobs"])


@routes.get("/v1/periodic", responses={200: {"model": PeriodicKinds}})
async def periodic(desk: AdminDesk) -> Response:
    """The kinds that the clock enqueues, as worker processes last told: schedule, last and next
    tick, jobs of earlier ticks that are unfinished."""
    return reply(PeriodicKinds(await desk.app.periodic()))
