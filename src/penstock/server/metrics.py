"""Prometheus metrics. The queue is read on demand, HTTP requests are counted."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from penstock.engine.loop_monitor import LoopLag
from penstock.model.job import JobState
from penstock.ports.lanes import LaneInfo
from penstock.ports.ledger import UsageSum
from penstock.ports.operators import KindCounts
from penstock.server.queue_metrics import DESCRIBED, QueueSnapshot, look_at

if TYPE_CHECKING:
    from penstock.app import Penstock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90, 300)

MAX_OTHERS = 100
"""Maximum kinds with their own label that no process handles, for the lifetime of this server; and
lanes that are not configured by their names."""
OTHER = "other"
"""Label of all others."""
BREAKERS = ("closed", "suspect", "open")


class Metrics:
    def __init__(self, handled: Collection[str] = ()) -> None:
        self.streams: Tally[str] = Tally()
        """Open streams, by tenant."""
        self._kinds = KindLabels(handled)
        self._lanes = LaneLabels()
        self._models = ModelLabels()
        self._registry = registry = CollectorRegistry()
        route = ["method", "route"]
        self._requests = Counter(
            "penstock_http_requests",
            "HTTP requests answered.",
            [*route, "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "penstock_http_request_seconds",
            "Time to the first byte of a response.",
            route,
            buckets=SECONDS,
            registry=registry,
        )
        self._streams = Gauge("penstock_http_streams", "Open event streams.", registry=registry)
        self._polls = Gauge("penstock_http_long_polls", "Open long polls.", registry=registry)
        self.lag = LoopLag()
        self._lag = Gauge(
            "penstock_http_loop_lag_seconds",
            "Maximum recent event-loop lag of this server.",
            registry=registry,
        )
        self._lag.set_function(lambda: self.lag.longest)

    def described(self) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
        """List name, type, labels and description of each metric."""
        for metric in (self._requests, self._seconds, self._streams, self._polls, self._lag):
            (family,) = metric.describe()
            name = family.name + ("_total" if family.type == "counter" else "")
            yield name, family.type, metric._labelnames, family.documentation
        for one in DESCRIBED:
            yield one.name, one.type, one.labels, one.about

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    @contextmanager
    def long_poll(self) -> Iterator[None]:
        with self._polls.track_inprogress():
            yield

    @contextmanager
    def stream(self, tenant: str) -> Iterator[None]:
        self.streams[tenant] += 1
        try:
            with self._streams.track_inprogress():
                yield
        finally:
            self.streams[tenant] -= 1
            if not self.streams[tenant]:
                del self.streams[tenant]

    async def text(self, app: Penstock) -> tuple[bytes, str]:
        """Return all metrics as text, and the content type."""
        look = self._kinds.bounded(await look_at(app))
        look = look._replace(lanes=self._lanes.bounded(look.lanes, app.lanes.named()))
        look = look._replace(models=self._models.bounded(look.models))
        looked_up = CollectorRegistry()
        looked_up.register(_Found([one.family(look) for one in DESCRIBED]))
        return generate_latest(self._registry) + generate_latest(looked_up), CONTENT_TYPE_LATEST


class ModelLabels:
    """Gives a hundred models their own label, the dearest when first seen, which then keep it."""

    def __init__(self) -> None:
        self._own: set[str] = set()

    def bounded(self, models: Sequence[UsageSum]) -> Sequence[UsageSum]:
        """Combine the models without their own label into one."""
        for one in models:
            if len(self._own) < MAX_OTHERS:
                self._own.add(one.name)
        own = self._own - {OTHER}
        rest = [one for one in models if one.name not in own]
        if not rest:
            return models
        figures = (sum(figures) for figures in zip(*(one[1:] for one in rest), strict=True))
        return [*(one for one in models if one.name in own), UsageSum(OTHER, *figures)]


class _Found(Collector):
    """Existing metric families."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


class KindLabels:
    """Gives kinds that a process handles their own label, and some others: those with the most jobs
    when first seen, which then keep it."""

    def __init__(self, handled: Collection[str]) -> None:
        self._handled = handled
        self._others: set[str] = set()

    def bounded(self, look: QueueSnapshot) -> QueueSnapshot:
        """Combine the kinds without their own label into one row."""
        handled = {*self._handled, *(kind for one in look.processes for kind in one.kinds)}
        unknown = [one for one in look.counts if one.kind not in handled]
        for one in sorted(unknown, key=lambda one: -sum(one.states.values())):
            if len(self._others) < MAX_OTHERS:
                self._others.add(one.kind)
        named = handled | self._others
        rest = [one for one in unknown if one.kind not in named]
        if not rest:
            return look
        told = [one for one in look.counts if one.kind in named and one.kind != OTHER]
        same = [one for one in look.counts if one.kind in named and one.kind == OTHER]
        return look._replace(counts=[*told, _together([*same, *rest])])


def _together(counts: list[KindCounts]) -> KindCounts:
    states: Tally[JobState] = Tally()
    for one in counts:
        states.update(one.states)
    oldest = [one.oldest_queued_at for one in counts if one.oldest_queued_at is not None]
    return KindCounts(OTHER, states, min(oldest, default=None))


class LaneLabels:
    """Gives lanes that are configured by their names their own label, and some others, as patterns
    make: those with the most to do when first seen, which then keep it."""

    def __init__(self) -> None:
        self._others: set[str] = set()

    def bounded(self, lanes: Sequence[LaneInfo], named: Collection[str]) -> Sequence[LaneInfo]:
        """Combine the lanes without their own label into one."""
        made = [one for one in lanes if one.name not in named]
        for one in sorted(made, key=lambda one: -one.waiting - one.in_flight):
            if len(self._others) < MAX_OTHERS:
                self._others.add(one.name)
        own = ({*named} | self._others) - {OTHER}
        rest = [one for one in lanes if one.name not in own]
        if not rest:
            return lanes
        return [*(one for one in lanes if one.name in own), _one_lane(rest)]


def _one_lane(lanes: Sequence[LaneInfo]) -> LaneInfo:
    """The sum of what is counted, and the worst of the rest."""
    return replace(
        lanes[0],
        name=OTHER,
        spacing=max(one.spacing for one in lanes),
        max_parallel=sum(one.max_parallel for one in lanes),
        in_flight=sum(one.in_flight for one in lanes),
        waiting=sum(one.waiting for one in lanes),
        used_today=sum(one.used_today for one in lanes),
        breaker=max((one.breaker for one in lanes), key=BREAKERS.index),
        blocked_why=next((one.blocked_why for one in lanes if one.blocked_why), None),
        learnt=None,
    )
