"""The overview of a queue: jobs by kind and state; for operators also processes, lanes, trouble."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from penstock.api.attention import QueueOutlook, gone, in_trouble, of_lane, unhandled
from penstock.model.job import JobState
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import KindCounts, ProcessInfo
from penstock.wire.operators import LaneView, Overview, ProcessView
from penstock.wire.view import made

ProcessState = Literal["running", "draining", "degraded", "gone"]


def process_state(process: ProcessInfo, now: float) -> ProcessState:
    if gone(process, now):
        return "gone"
    if process.status.get("draining"):
        return "draining"
    return "degraded" if process.status.get("degraded") else "running"


def process_view(process: ProcessInfo, now: float) -> ProcessView:
    status, blocked = process.status, process.status.get("blocked") or {}
    return made(
        ProcessView,
        process,
        state=process_state(process, now),
        busy=status.get("busy", 0),
        parked=status.get("parked", 0),
        stuck=status.get("stuck", 0),
        blocked_by=blocked.get("job"),
        blocked_seconds=blocked.get("seconds"),
    )


def lane_view(lane: LaneInfo) -> LaneView:
    return made(
        LaneView,
        lane,
        starts_per_second=1 / lane.spacing if lane.spacing else None,
        trouble=next((one.what for one in of_lane(lane)), None),
    )


def overview(
    tenant: str | None, counts: Sequence[KindCounts], now: float, all_of_it: QueueOutlook | None
) -> Overview:
    """The jobs in `counts`, which are those of a tenant, and what operators see of the queue."""
    oldest = [one.oldest_queued_at for one in counts if one.oldest_queued_at is not None]
    jobs = Overview(
        tenant=tenant,
        states={state: sum(one.states.get(state, 0) for one in counts) for state in JobState},
        kinds=[
            replace(one, states={state: one.states.get(state, 0) for state in JobState})
            for one in counts
        ],
        oldest_queued_seconds=max(0.0, now - min(oldest)) if oldest else None,
    )
    if all_of_it is None:
        return jobs
    return replace(
        jobs,
        processes=[process_view(one, now) for one in all_of_it.processes],
        lanes=[lane_view(lane) for lane in all_of_it.lanes if in_trouble(lane)],
        unhandled_kinds=[one.kind for one in unhandled(all_of_it.counts, all_of_it.processes, now)],
        attention=all_of_it.attention,
    )
