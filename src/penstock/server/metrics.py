"""Prometheus metrics. The queue is read on demand, HTTP requests are counted."""

from __future__ import annotations

from collections import Counter as Tenants
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from penstock.engine.loop_lag import LoopLag
from penstock.server.kind_labels import KindLabels
from penstock.server.queue_metrics import DESCRIBED, look_at

if TYPE_CHECKING:
    from penstock.app import Penstock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90, 300)


class Metrics:
    def __init__(self, handled: Collection[str] = ()) -> None:
        self.streams: Tenants[str] = Tenants()
        """Open now, by tenant."""
        self._kinds = KindLabels(handled)
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
        """Name, type, labels and meaning of each."""
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
        """The whole of it, and its content type."""
        look = self._kinds.bounded(await look_at(app))
        looked_up = CollectorRegistry()
        looked_up.register(_Found([one.family(look) for one in DESCRIBED]))
        return generate_latest(self._registry) + generate_latest(looked_up), CONTENT_TYPE_LATEST


class _Found(Collector):
    """Families that are there already."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
