"""The API, put together around an app that is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock import __version__
from penstock.model.server import ServerConfig, is_loopback
from penstock.server import openapi, problems
from penstock.server.callers import Callers
from penstock.server.depth import Depth
from penstock.server.draining import Draining
from penstock.server.guard import Guard
from penstock.server.metrics import Metrics
from penstock.server.routes import (
    answers,
    documents,
    events,
    health,
    jobs,
    lanes,
    mcp,
    search,
    tasks,
)

if TYPE_CHECKING:
    from fastapi.telemetry import TelemetryConfig

    from penstock.app import Penstock

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
"""FastAPI's own tell paths, queries and what exceptions say; see `Guard`."""


def build(app: Penstock, config: ServerConfig, draining: Draining) -> FastAPI:
    """The API of an app whose corpus and access are open."""
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
    state.metrics = Metrics()
    state.depth = Depth(app, config.max_queued)
    state.access = app.access
    state.told = events.Told()
    state.callers = Callers(
        app.access,
        config.requests_per_minute,
        anonymous=is_loopback(config.host) and not config.require_key,
    )
    # Each is looked through in turn, so what is asked for most comes first.
    parts = (jobs, search, documents, tasks, answers, events, health, lanes, mcp)
    for part in parts:
        api.include_router(part.routes)
    state.routes = [route for part in parts for route in part.routes.routes]
    mcp.install(api)
    problems.install(api)
    openapi.install(api)
    api.add_middleware(Guard, config=config, draining=draining, metrics=state.metrics)
    return api
