"""Health checks and metrics."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.errors import PenstockError
from penstock.server.answer_json import reply
from penstock.server.dependencies import AdminAccess
from penstock.server.openapi import spec
from penstock.wire.operators import Alive, Ready

routes = APIRouter(tags=["health"])

CHECK_SECONDS = 5.0


@routes.get("/healthz", **spec(Alive))
async def alive() -> Response:
    """Report that the process responds."""
    return reply(Alive())


@routes.get("/readyz", responses={200: {"model": Ready}, 503: {"model": Ready}})
async def ready(request: Request) -> Response:
    """Report whether queue and store are reachable, and the server is not stopping."""
    state = request.app.state
    checks = {"accepting": "no: stopping" if state.draining.begun else "ok"}
    for name, look in (("queue", _queue), ("store", _store)):
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                await look(request)
            checks[name] = "ok"
        except (PenstockError, TimeoutError) as error:
            checks[name] = f"no: {type(error).__name__}"
    good = all(said == "ok" for said in checks.values())
    return reply(Ready("ready" if good else "not ready", checks), 200 if good else 503)


async def _queue(request: Request) -> None:
    await request.app.state.penstock.queue.versions([("default", "")])


async def _store(request: Request) -> None:
    await request.app.state.penstock.documents.documents(limit=1)


@routes.get(
    "/metrics",
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def metrics(request: Request, tenant_view: AdminAccess) -> Response:
    """Metrics for Prometheus. They cover all tenants, so they are for admins."""
    body, kind = await request.app.state.metrics.text(tenant_view.app)
    return Response(body, media_type=kind)
