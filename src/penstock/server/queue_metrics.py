"""Prometheus metrics of the queue: read on demand, and the same from every server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from prometheus_client.core import Metric

from penstock.model.amounts import MICRO
from penstock.model.budget import BudgetState
from penstock.model.tally import BOUNDS, ENDINGS, DurationHistogram, Tally
from penstock.ports.lanes import LaneInfo
from penstock.ports.ledger import UsageSum
from penstock.ports.operators import KindCounts, ProcessInfo

if TYPE_CHECKING:
    from penstock.app import Penstock


class QueueSnapshot(NamedTuple):
    """The queue at one moment."""

    counts: Sequence[KindCounts]
    processes: Sequence[ProcessInfo]
    lanes: Sequence[LaneInfo]
    tallies: Mapping[str, Tally]
    """By process."""
    callers_waiting: int
    now: float
    models: Sequence[UsageSum] = ()
    """What was used today, by model."""
    budgets: Sequence[BudgetState] = ()


MAX_BUDGETS = 100
"""Of more, those that are spent most."""
LIMITS = (*(f"{bound:g}" for bound in BOUNDS), "+Inf")

Sample = tuple[Sequence[str], float | DurationHistogram]
"""Values of the labels, and the figure."""


class Described(NamedTuple):
    """A metric, and the source of its values."""

    name: str
    type: str
    labels: tuple[str, ...]
    about: str
    samples: Callable[[QueueSnapshot], Iterable[Sample]]

    def family(self, look: QueueSnapshot) -> Metric:
        family = Metric(self.name.removesuffix("_total"), self.about, self.type)
        for values, figure in self.samples(look):
            labels = dict(zip(self.labels, values, strict=True))
            if not isinstance(figure, DurationHistogram):
                family.add_sample(self.name, labels, float(figure))
                continue
            for bound, count in zip(LIMITS, accumulate(figure.counts), strict=True):
                family.add_sample(f"{self.name}_bucket", {**labels, "le": bound}, count)
            family.add_sample(f"{self.name}_count", labels, sum(figure.counts))
            family.add_sample(f"{self.name}_sum", labels, figure.seconds)
        return family


async def look_at(app: Penstock) -> QueueSnapshot:
    counts, processes = await app.counts(), await app.processes()
    lanes, now = await app.lane_infos(), app.queue.now()
    tallies = {process.id: Tally.from_status(process.status) for process in processes}
    today = datetime.fromtimestamp(now, UTC).date()
    models = await app.usage("model", since=today, until=today)
    waiting = app.queue.callers_waiting()
    budgets = sorted(await app.budgets.list(), key=lambda state: -state.share)[:MAX_BUDGETS]
    return QueueSnapshot(counts, processes, lanes, tallies, waiting, now, models, budgets)


def _jobs(look: QueueSnapshot) -> Iterable[Sample]:
    for kind in look.counts:
        for state, count in kind.states.items():
            yield (kind.kind, str(state)), count


def _oldest(look: QueueSnapshot) -> Iterable[Sample]:
    for kind in look.counts:
        oldest = kind.oldest_queued_at
        yield (kind.kind,), 0.0 if oldest is None else max(0.0, look.now - oldest)


def _finished(look: QueueSnapshot) -> Iterable[Sample]:
    for process, tally in look.tallies.items():
        for kind, one in tally.kinds.items():
            for ending, count in zip(ENDINGS, one.endings, strict=True):
                yield (process, kind, str(ending)), count


def _stages(look: QueueSnapshot) -> Iterable[Sample]:
    for process, tally in look.tallies.items():
        for kind, one in tally.kinds.items():
            for stage, spread in one.stages.items():
                yield (process, kind, stage), spread


def _of_kinds(figure: str) -> Callable[[QueueSnapshot], Iterable[Sample]]:
    def samples(look: QueueSnapshot) -> Iterable[Sample]:
        for process, tally in look.tallies.items():
            for kind, one in tally.kinds.items():
                yield (process, kind), getattr(one, figure)

    return samples


def _of_processes(
    figure: Callable[[ProcessInfo, float], float],
) -> Callable[[QueueSnapshot], list[Sample]]:
    return lambda look: [((one.id,), figure(one, look.now)) for one in look.processes]


def _used(
    name: str, about: str, labels: tuple[str, ...], figures: Callable[[UsageSum], Iterable[Sample]]
) -> Described:
    """A figure of what was used today, by model."""

    def samples(look: QueueSnapshot) -> Iterable[Sample]:
        for one in look.models:
            for values, figure in figures(one):
                yield (one.name, *values), figure

    return Described(f"penstock_today_{name}", "gauge", ("model", *labels), about, samples)


def _directions(one: UsageSum) -> Iterable[Sample]:
    yield ("input",), one.input_tokens
    yield ("output",), one.output_tokens
    yield ("any",), one.tokens - one.input_tokens - one.output_tokens


def _spent(look: QueueSnapshot) -> Iterable[Sample]:
    for state in look.budgets:
        yield (state.payer, "tokens"), state.tokens
        yield (state.payer, "cost"), state.cost / MICRO


def _allowed(look: QueueSnapshot) -> Iterable[Sample]:
    for state in look.budgets:
        if state.tokens_limit is not None:
            yield (state.payer, "tokens"), state.tokens_limit
        if state.cost_limit is not None:
            yield (state.payer, "cost"), state.cost_limit / MICRO


def _states(look: QueueSnapshot) -> Iterable[Sample]:
    for lane in look.lanes:
        for state in ("closed", "suspect", "open"):
            yield (lane.name, state), lane.breaker == state


KIND = ("process", "kind")
PROCESS = ("process",)
LANE = ("lane",)


def _process(name: str, about: str, status: str, type: str = "gauge") -> Described:
    """A figure that each process tells of itself in its status."""
    figure = _of_processes(lambda one, now: float(one.status.get(status, 0)))
    return Described(f"penstock_{name}", type, PROCESS, about, figure)


def _lane(name: str, about: str, figure: Callable[[LaneInfo], float]) -> Described:
    def samples(look: QueueSnapshot) -> list[Sample]:
        return [((lane.name,), figure(lane)) for lane in look.lanes]

    return Described(f"penstock_lane_{name}", "gauge", LANE, about, samples)


DESCRIBED = (
    Described(
        "penstock_jobs",
        "gauge",
        ("kind", "state"),
        "Jobs that there are. Of kinds that no process handles a hundred are told by name, and the "
        "rest as `other`.",
        _jobs,
    ),
    Described(
        "penstock_oldest_queued_seconds",
        "gauge",
        ("kind",),
        "How long the oldest queued job could have run already; 0 if none could. What is for "
        "later, or sleeps, does not count.",
        _oldest,
    ),
    Described(
        "penstock_jobs_finished_total",
        "counter",
        (*KIND, "outcome"),
        "Runs that have ended. `retry`: failed, and tried again; `failed`: a dead letter; "
        "`refused`: its lease had been taken over or it was cancelled, so it does not count.",
        _finished,
    ),
    Described(
        "penstock_job_wait_seconds",
        "histogram",
        KIND,
        "From when a job was due to its start; of runs that completed or failed.",
        _of_kinds("wait"),
    ),
    Described(
        "penstock_job_run_seconds",
        "histogram",
        KIND,
        "How long runs took; of those that completed or failed.",
        _of_kinds("run"),
    ),
    Described(
        "penstock_job_stage_seconds",
        "histogram",
        (*KIND, "stage"),
        "How long parts of runs took, such as `parse`, `mask`, `chunk`, `embed` and `publish` "
        "of a document.",
        _stages,
    ),
    Described(
        "penstock_jobs_taken_back_total",
        "counter",
        KIND,
        "Attempts that follow a crash of the previous worker process.",
        _of_kinds("taken_back"),
    ),
    Described(
        "penstock_processes",
        "gauge",
        (),
        "Worker processes, this one too if it has workers.",
        lambda look: [((), len(look.processes))],
    ),
    Described(
        "penstock_process_info",
        "gauge",
        ("process", "host", "pid"),
        "1 for each worker process.",
        lambda look: [((one.id, one.host, str(one.pid)), 1) for one in look.processes],
    ),
    Described(
        "penstock_process_heartbeat_seconds",
        "gauge",
        PROCESS,
        "Since it last renewed its leases, and what is told of it here.",
        _of_processes(lambda one, now: max(0.0, now - one.heartbeat_at)),
    ),
    Described(
        "penstock_process_workers",
        "gauge",
        PROCESS,
        "Maximum concurrent jobs of the process.",
        _of_processes(lambda one, now: one.max_workers),
    ),
    _process("process_busy", "Running jobs.", "busy"),
    _process(
        "process_parked",
        "Jobs of it that wait for others or for permits, without a worker.",
        "parked",
    ),
    _process(
        "process_stuck", "Workers whose handler goes on although its job is settled.", "stuck"
    ),
    _process("process_claimed_ahead", "Jobs claimed but not started.", "waiting"),
    _process(
        "process_degraded", "1 while it cannot reach the queue to claim and settle.", "degraded"
    ),
    _process(
        "process_loop_lag_seconds",
        "How late its event loop was, at most, of late: handlers that block it.",
        "loop_lag",
    ),
    _process(
        "dispatcher_trips_total", "Trips to the queue to settle and claim.", "trips", "counter"
    ),
    _process(
        "dispatcher_trip_seconds_total",
        "What these trips took together; over their number, the dispatcher's lag.",
        "trip_seconds",
        "counter",
    ),
    _lane(
        "in_flight",
        "Requests in flight. Of lanes that are not configured by name, as those of hosts, a "
        "hundred are told apart, and the rest together as `other`.",
        lambda lane: lane.in_flight,
    ),
    _lane(
        "max_parallel", "Requests that may be under way at a time.", lambda lane: lane.max_parallel
    ),
    Described(
        "penstock_lane_learnt_parallel",
        "gauge",
        LANE,
        "What `max_parallel` is by what was learnt, where it is `auto`.",
        lambda look: [
            ((lane.name,), lane.learnt.max_parallel) for lane in look.lanes if lane.learnt
        ],
    ),
    _lane(
        "spacing_seconds", "Between two starts now, slow-down included.", lambda lane: lane.spacing
    ),
    _lane("waiting", "Waiting jobs.", lambda lane: lane.waiting),
    _lane("open", "1 while its breaker is open.", lambda lane: lane.breaker == "open"),
    Described(
        "penstock_lane_breaker",
        "gauge",
        (*LANE, "state"),
        "1 for the state its breaker is in: `closed`, `suspect` or `open`.",
        _states,
    ),
    _lane("blocked", "1 while it is paused or blocked.", lambda lane: lane.blocked_why is not None),
    _lane("used_today", "Starts since midnight UTC.", lambda lane: lane.used_today),
    _used(
        "tokens",
        "Tokens used since midnight UTC. `any`: it was not told which they are. A hundred models "
        "are told apart, and the rest together as `other`.",
        ("direction",),
        _directions,
    ),
    _used(
        "cost",
        "Money spent since midnight UTC, of requests whose price is known.",
        (),
        lambda one: [((), one.cost / MICRO)],
    ),
    Described(
        "penstock_budget_spent",
        "gauge",
        ("payer", "of"),
        "Tokens and money that are spent or reserved of a budget in this period. Of more than a "
        "hundred budgets, those that are spent most.",
        _spent,
    ),
    Described(
        "penstock_budget_limit",
        "gauge",
        ("payer", "of"),
        "Tokens and money that may be spent.",
        _allowed,
    ),
    _used(
        "requests_unpriced",
        "Requests since midnight UTC whose price is unknown.",
        (),
        lambda one: [((), one.unpriced)],
    ),
    _used(
        "requests_reserved",
        "Requests since midnight UTC that have not told their use: what was reserved for them is "
        "counted.",
        (),
        lambda one: [((), one.reserved)],
    ),
    Described(
        "penstock_queue_callers_waiting",
        "gauge",
        (),
        "Callers of this server process that wait for a connection to the queue.",
        lambda look: [((), look.callers_waiting)],
    ),
)
