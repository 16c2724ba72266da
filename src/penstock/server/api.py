"""Builds the API around an open app."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock import __version__
from penstock.model.server import ServerConfig
from penstock.server import openapi, problems
from penstock.server.callers import Callers
from penstock.server.dashboard import routes as dashboard
from penstock.server.dashboard.pages import problem_page
from penstock.server.dependencies import Admission
from penstock.server.draining import Draining
from penstock.server.guard import Guard
from penstock.server.history import History
from penstock.server.metrics import Metrics
from penstock.server.queue_cache import QueueCache
from penstock.server.routes import (
    answers,
    budgets,
    documents,
    events,
    health,
    jobs,
    mcp,
    operators,
    schedules,
    tasks,
    tools,
    usage,
)

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

    from penstock.app import Penstock

log = logging.getLogger("penstock.server")

PURGE_SECONDS = 600.0
ABOUT = (
    "Durable jobs, lanes for every outside service, searchable documents, research, and answers."
)

SPANS_ARE_OURS: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}
"""Disables FastAPI's own spans, which contain paths, queries and exception messages; see
`Guard`."""


def build(
    app: Penstock, config: ServerConfig, draining: Draining, *, any_host: bool = False
) -> FastAPI:
    """Build the API of an app whose services are open. With `any_host` requests are answered under
    whatever name of the server."""
    api = FastAPI(
        title="Penstock",
        version=__version__,
        description=ABOUT,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
        telemetry=SPANS_ARE_OURS,
    )
    state = api.state
    state.penstock = app
    state.config = config
    state.draining = draining
    state.metrics = Metrics(app.handlers)
    state.depth = Admission(app, config.max_queued, config.max_queued_per_tenant)
    state.looks = QueueCache(app)
    state.access = app.use("keys").keys.store
    state.history = History(app)
    state.told = events.EventCache()
    state.callers = Callers(app.keys.store, config.requests_per_minute, config.anonymous)
    # Each is looked through in turn, so what is asked for most comes first.
    for_all = (jobs, documents, tasks, answers, tools, events, health)
    parts = (*for_all, schedules, operators, usage, budgets, mcp)
    routers = [part.routes for part in parts] + dashboard.ALL
    for router in routers:
        api.include_router(router)
    state.routes = [route for router in routers for route in router.routes]
    mcp.install(api)
    problems.install(api, problem_page)
    openapi.install(api)
    api.add_middleware(
        Guard,
        config=config,
        draining=draining,
        metrics=state.metrics,
        page_of=problem_page,
        any_host=any_host,
    )
    return api


@asynccontextmanager
async def working(api: FastAPI) -> AsyncIterator[None]:
    """Do inside the block what an API does beside its requests."""
    chores = [
        asyncio.create_task(_purge(api.state.penstock), name="penstock-purge"),
        asyncio.create_task(api.state.history.keep(), name="penstock-history"),
        asyncio.create_task(api.state.metrics.lag.run(), name="penstock-lag"),
    ]
    async with mcp.running(api):
        try:
            yield
        finally:
            for chore in chores:
                chore.cancel()
            await asyncio.gather(*chores, return_exceptions=True)


async def _purge(app: Penstock) -> None:
    """Delete expired responses and actions."""
    while True:
        try:
            await app.keys.store.purge(app.queue.now() - app.config.server.idempotency_seconds)
            await app.keys.store.purge_actions(app.queue.now() - app.config.server.actions_seconds)
        except Exception as error:
            log.warning("cannot delete expired answers and actions: %s", error)
        await asyncio.sleep(PURGE_SECONDS)
