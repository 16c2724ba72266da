"""What Prometheus is told. The queue is looked at when it is asked for, HTTP is counted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import generate_latest

if TYPE_CHECKING:
    from penstock.app import Penstock

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 90, 300)


class Metrics:
    def __init__(self) -> None:
        self.open_streams = 0
        self._registry = registry = CollectorRegistry()
        route = ["method", "route"]
        self._requests = Counter(
            "penstock_http_requests", "Requests answered.", [*route, "status"], registry=registry
        )
        self._seconds = Histogram(
            "penstock_http_request_seconds",
            "How long answers took to begin.",
            route,
            buckets=SECONDS,
            registry=registry,
        )
        self._streams = Gauge("penstock_http_streams", "Streams open now.", registry=registry)
        self._polls = Gauge("penstock_http_long_polls", "Long polls now.", registry=registry)
        self._jobs = Gauge(
            "penstock_jobs", "Jobs that there are.", ["kind", "state"], registry=registry
        )
        self._oldest = Gauge(
            "penstock_oldest_queued_seconds",
            "Age of the oldest queued job; 0 where there is none.",
            ["kind"],
            registry=registry,
        )
        self._processes = Gauge(
            "penstock_processes",
            "Worker processes, this one too if it has workers.",
            registry=registry,
        )
        self._lanes = {
            name: Gauge(f"penstock_lane_{name}", about, ["lane"], registry=registry)
            for name, about in (
                ("in_flight", "Requests under way."),
                ("waiting", "Jobs that wait in it."),
                ("open", "1 while its breaker is open."),
                ("blocked", "1 while it is paused or blocked."),
                ("used_today", "Starts since midnight UTC."),
            )
        }

    def described(self) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
        """Name, type, labels and meaning of each."""
        counted = (self._requests, self._seconds, self._streams, self._polls)
        looked_up = (self._jobs, self._oldest, self._processes, *self._lanes.values())
        for metric in (*counted, *looked_up):
            (family,) = metric.describe()
            name = family.name + ("_total" if family.type == "counter" else "")
            yield name, family.type, metric._labelnames, family.documentation

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    @contextmanager
    def long_poll(self) -> Iterator[None]:
        with self._polls.track_inprogress():
            yield

    @contextmanager
    def stream(self) -> Iterator[None]:
        self.open_streams += 1
        try:
            with self._streams.track_inprogress():
                yield
        finally:
            self.open_streams -= 1

    async def text(self, app: Penstock) -> tuple[bytes, str]:
        """The whole of it, and its content type."""
        counts, processes, lanes = (
            await app.counts(),
            await app.processes(),
            await app.lane_infos(),
        )
        now = time.time()
        for gauge in (self._jobs, self._oldest, *self._lanes.values()):
            gauge.clear()  # a kind or a lane that is gone is not there with its last figure
        for kind in counts:
            for state, count in kind.states.items():
                self._jobs.labels(kind.kind, str(state)).set(count)
            oldest = kind.oldest_queued_at
            self._oldest.labels(kind.kind).set(0 if oldest is None else max(0.0, now - oldest))
        self._processes.set(len(processes))
        for lane in lanes:
            figures = {
                "in_flight": lane.in_flight,
                "waiting": lane.waiting,
                "open": lane.breaker == "open",
                "blocked": lane.blocked_why is not None,
                "used_today": lane.used_today,
            }
            for name, value in figures.items():
                self._lanes[name].labels(lane.name).set(value)
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
