"""The overview: for a tenant its jobs, for an admin the whole queue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from penstock.api.attention import QueueOutlook, in_trouble, process_view, unhandled
from penstock.api.tenant_view import TenantView
from penstock.model.access import KeyScope
from penstock.model.job import JobState
from penstock.ports.operators import KindCounts
from penstock.server.answer_json import reply
from penstock.server.callers import Reader
from penstock.server.dependencies import ReadDesk
from penstock.server.operator_schemas import Overview
from penstock.server.queue_cache import QueueCache

routes = APIRouter(tags=["overview"])

FOR_ADMINS = ("processes", "lanes", "unhandled_kinds", "attention")


@routes.get("/v1/overview", responses={200: {"model": Overview}})
async def overview(request: Request, desk: ReadDesk, caller: Reader) -> Response:
    """Jobs of the tenant by kind and state. For admins besides: worker processes, lanes in trouble,
    and what needs attention. As of a second ago; on a large queue, of some seconds."""
    admin = KeyScope.ADMIN in caller.scopes
    return reply(await overview_of(desk, request.app.state.looks, admin=admin))


async def overview_of(desk: TenantView, looks: QueueCache, *, admin: bool) -> dict[str, Any]:
    """What the API answers and the dashboard shows."""
    now = desk.app.queue.now()
    counts = await looks.counts(desk.tenant)
    oldest = [one.oldest_queued_at for one in counts if one.oldest_queued_at is not None]
    seen: dict[str, Any] = {
        "tenant": desk.tenant,
        "states": _states(_sum(counts)),
        "kinds": [
            {
                "kind": one.kind,
                "states": _states(one.states),
                "oldest_queued_at": one.oldest_queued_at,
            }
            for one in counts
        ],
        "oldest_queued_seconds": max(0.0, now - min(oldest)) if oldest else None,
    }
    return seen | (_of_all(await looks.outlook(), now) if admin else dict.fromkeys(FOR_ADMINS))


def _of_all(seen: QueueOutlook, now: float) -> dict[str, Any]:
    lonely = unhandled(seen.counts, seen.processes, now)
    return {
        "processes": [process_view(one, now) for one in seen.processes],
        "lanes": [asdict(lane) for lane in seen.lanes if in_trouble(lane)],
        "unhandled_kinds": [one.kind for one in lonely],
        "attention": [asdict(one) for one in seen.attention],
    }


def _sum(counts: Iterable[KindCounts]) -> dict[JobState, int]:
    return {state: sum(one.states.get(state, 0) for one in counts) for state in JobState}


def _states(states: Mapping[JobState, int]) -> dict[str, int]:
    return {str(state): states.get(state, 0) for state in JobState}
