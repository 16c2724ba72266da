"""Conditions of a queue that need an operator's attention, and what to do about each.

One derivation for all who show it: `penstock status`, `GET /v1/overview`, the dashboard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from penstock.lanes.budgets import WARNED_AT, resumes, spent_of
from penstock.model.budget import BudgetState
from penstock.model.job import JobState
from penstock.ports.lanes import LaneInfo
from penstock.ports.operators import DeadGroup, KindCounts, OperableQueue, ProcessInfo
from penstock.wire.operators import Attention, Condition

BUILT_IN_KINDS = ("ingest.", "research.", "answers.")
"""How the kinds begin that every worker process handles, also one without an app."""
NAMED_GROUPS = 3
"""Groups of dead letters that are named; the others are counted."""
RECENT_SECONDS = 3600.0
"""Dead letters are growing if the last came within this time."""


class QueueOutlook(NamedTuple):
    """A queue, as its operators see it."""

    counts: list[KindCounts]
    processes: list[ProcessInfo]
    lanes: list[LaneInfo]
    dead: list[DeadGroup]
    attention: list[Attention]


async def look(queue: OperableQueue, now: float) -> QueueOutlook:
    """All that there is to see of a queue, of all tenants; `now` is on its clock."""
    counts, processes = await queue.counts(), await queue.processes()
    lanes, dead = await queue.lanes(), await queue.dead_groups()
    found = needs_attention(now, counts, processes, lanes, dead, await queue.budgets())
    return QueueOutlook(counts, processes, lanes, dead, found)


def needs_attention(
    now: float,
    counts: Sequence[KindCounts],
    processes: Sequence[ProcessInfo],
    lanes: Sequence[LaneInfo],
    dead: Sequence[DeadGroup],
    budgets: Sequence[BudgetState] = (),
) -> list[Attention]:
    """What stands still or fails, the worst first."""
    found = [one for process in processes for one in _of_process(process, now)]
    found += [one for lane in lanes for one in of_lane(lane)]
    found += [one for state in budgets for one in _of_budget(state)]
    found += [_without_worker(kind) for kind in unhandled(counts, processes, now)]
    found += _dead([group for group in dead if group.last_at > now - RECENT_SECONDS])
    return sorted(found, key=lambda one: list(Condition).index(one.what))


def gone(process: ProcessInfo, now: float) -> bool:
    """Whether it has not been heard of for longer than its lease."""
    return process.lease_until < now


def unhandled(
    counts: Iterable[KindCounts], processes: Iterable[ProcessInfo], now: float
) -> list[KindCounts]:
    """Kinds with queued jobs that no worker process handles."""
    handled = live_kinds(processes, now)
    return [
        kind for kind in counts if kind.states.get(JobState.QUEUED) and kind.kind not in handled
    ]


def live_kinds(processes: Iterable[ProcessInfo], now: float) -> set[str]:
    """The kinds that some worker process handles now."""
    return {kind for process in processes if not gone(process, now) for kind in process.kinds}


def in_trouble(lane: LaneInfo) -> bool:
    """Whether a lane starts nothing, or only a try now and then."""
    return any(one.what is not Condition.THROTTLED for one in of_lane(lane))


def _of_process(process: ProcessInfo, now: float) -> list[Attention]:
    name = f"{process.host} {process.pid}"
    if gone(process, now):
        todo = "start another if none is left; its jobs are taken over automatically"
        return [Attention(Condition.WORKER_GONE, name, process.lease_until, todo)]
    found = []
    if process.status.get("degraded"):
        todo = "check the queue's server, and the network to it"
        found.append(Attention(Condition.QUEUE_UNREACHABLE, name, None, todo))
    if stuck := process.status.get("stuck"):
        todo = (
            f"{stuck} of its {process.max_workers} workers run past their timeout in threads that "
            "cannot be stopped: restart the process if they do not return"
        )
        found.append(Attention(Condition.WORKER_STUCK, name, None, todo))
    if blocked := process.status.get("blocked"):
        found.append(_blocked(name, blocked, now))
    return found


def _blocked(process: str, blocked: dict[str, Any], now: float) -> Attention:
    job, seconds = f"job {blocked['job']} ({blocked['kind']})", blocked["seconds"]
    what, since = Condition.LOOP_BLOCKED, blocked["since"]
    told = f"{job} blocks it; no other job of the process can run"
    if seconds is not None:
        what, since = Condition.LOOP_WAS_BLOCKED, None
        ago = max(0.0, now - blocked["since"] - seconds)
        told = f"{job} blocked it for {seconds:g} s, until {ago:.0f} s ago"
    mend = "await, use asyncio.to_thread, or write its handler as a plain def"
    return Attention(what, process, since, f"{told}, at {blocked['where']}: {mend}")


def slowed(lane: LaneInfo) -> str | None:
    """How much slower than configured a lane goes after 429s, in words; None: it is not."""
    if lane.configured_spacing is None:
        return None
    now, full = starts_per_second(lane.spacing), starts_per_second(lane.configured_spacing)
    return f"slowed to {now} starts/s (configured: {full}) after repeated 429s"


def starts_per_second(spacing: float) -> str:
    """The rate of a lane whose starts are `spacing` seconds apart."""
    return f"{1 / spacing:.3g}" if spacing else "no limit"


def of_lane(lane: LaneInfo) -> list[Attention]:
    """What is wrong with a lane: one thing at most."""
    waits = f"{lane.waiting:,} {'job' if lane.waiting == 1 else 'jobs'} waiting"
    resume = f"penstock lanes resume {lane.name}"
    if lane.blocked_why == "credentials":
        todo = f"three jobs in a row were refused, {waits}: replace its credentials, then {resume}"
        return [Attention(Condition.CREDENTIALS_REJECTED, lane.name, None, todo)]
    if lane.blocked_why == "paused":
        return [Attention(Condition.PAUSED, lane.name, None, f"{waits}: to continue, {resume}")]
    if lane.blocked_why is not None:
        todo = f"{waits}, it resumes automatically; if this happens often, lower its rate"
        return [Attention(Condition.RATE_LIMITED, lane.name, None, todo)]
    if lane.breaker == "open":
        todo = (
            f"{waits}: check the service it depends on; it resumes automatically once that responds"
        )
        if lane.probe_ok:
            todo = (
                f"{waits}: its probe passes, so check the errors of its jobs "
                f"(penstock jobs list --lane {lane.name}); it resumes once a request succeeds"
            )
        return [Attention(Condition.BREAKER_OPEN, lane.name, lane.failing_since, todo)]
    if lane.per_day is not None and lane.used_today >= lane.per_day:
        todo = f"{lane.used_today:,} requests today are all it may make, {waits} for tomorrow"
        return [Attention(Condition.DAILY_LIMIT, lane.name, None, todo)]
    if how := slowed(lane):
        todo = (
            f"{how}; each 20 successes in a row make it twice as fast again: give it a lower rate, "
            f"or try at once with penstock lanes reset {lane.name}"
        )
        return [Attention(Condition.THROTTLED, lane.name, None, todo)]
    return []


def _of_budget(state: BudgetState) -> list[Attention]:
    if state.share < WARNED_AT:
        return []
    told = f"{spent_of(state)} (per {state.per})"
    if not state.reached:
        return [Attention(Condition.BUDGET_NEARLY_SPENT, state.payer, None, told)]
    again = resumes(state)
    until = f"until {again}" if again else "until it is raised"
    todo = f"{told}: what would spend is paused {until}; penstock budgets set raises it"
    return [Attention(Condition.BUDGET_REACHED, state.payer, None, todo)]


def worker_command(kind: str) -> str:
    """What starts a worker process that handles `kind`."""
    built_in = kind.startswith(BUILT_IN_KINDS)
    return "penstock worker" if built_in else "penstock worker MODULE:APP"


def _without_worker(kind: KindCounts) -> Attention:
    queued = kind.states[JobState.QUEUED]
    waits = f"{queued:,} {'job' if queued == 1 else 'jobs'} waiting"
    todo = f"{waits}: start a worker process with a handler, {worker_command(kind.kind)}"
    return Attention(Condition.KIND_WITHOUT_A_WORKER, kind.kind, kind.oldest_queued_at, todo)


def _dead(groups: Sequence[DeadGroup]) -> list[Attention]:
    """One for all of them: what to do is the same."""
    if not groups:
        return []
    largest = sorted(groups, key=lambda group: -group.count)
    named = [f"{group.kind}: {group.error_type}" for group in largest[:NAMED_GROUPS]]
    if others := len(groups) - len(named):
        named.append(f"{others} more")
    count = sum(group.count for group in groups)
    todo = (
        f"{count:,} failed permanently, the last within an hour: check the errors "
        "(penstock dead-letters groups), then redrive or discard them"
    )
    first_at = min(group.first_at for group in groups)
    return [Attention(Condition.DEAD_LETTERS, ", ".join(named), first_at, todo)]
