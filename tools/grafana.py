"""Writes the dashboard for Grafana: `python -m tools.grafana`.

`tests/docs` checks that deploy/grafana-dashboard.json is what this would write. Every server says
the same of the queue, so figures of the queue are the maximum over servers before they are summed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

FILE = Path(__file__).parents[1] / "deploy" / "grafana-dashboard.json"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
COLUMNS = 24


class Query(NamedTuple):
    expression: str
    legend: str


class Panel(NamedTuple):
    title: str
    unit: str
    queries: tuple[Query, ...]
    about: str = ""


def one(title: str, unit: str, expression: str, legend: str = "", about: str = "") -> Panel:
    return Panel(title, unit, (Query(expression, legend),), about)


def rate(metric: str, *labels: str, where: str = "") -> str:
    """Per second, of all processes together, by these labels."""
    kept = "process, kind, outcome, stage, le"
    each = f"max by ({kept}) (rate({metric}{where}[$__rate_interval]))"
    return f"sum by ({', '.join(labels)}) ({each})"


def quantiles(metric: str, by: str, *shares: float, served: bool = False) -> tuple[Query, ...]:
    """`served`: of the servers themselves, each of which counts its own."""
    total = f"sum by (le, {by}) (rate({metric}_bucket[$__rate_interval]))"
    summed = total if served else rate(f"{metric}_bucket", "le", by)
    return tuple(
        Query(f"histogram_quantile({share:g}, {summed})", f"{{{{{by}}}}} p{100 * share:g}")
        for share in shares
    )


STATS = (
    one("Queued", "short", 'sum(max by (kind) (penstock_jobs{state="queued"}))'),
    one("Running", "short", 'sum(max by (kind) (penstock_jobs{state="running"}))'),
    one("Dead letters", "short", 'sum(max by (kind) (penstock_jobs{state="failed"}))'),
    one("Oldest queued", "s", "max(penstock_oldest_queued_seconds)"),
    one("Worker processes", "short", "max(penstock_processes)"),
    one("Breakers open", "short", "sum(max by (lane) (penstock_lane_open))"),
)
ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    (
        "Jobs",
        (
            one(
                "Completed per second",
                "ops",
                rate("penstock_jobs_finished_total", "kind", where='{outcome="completed"}'),
                "{{kind}}",
            ),
            one(
                "Runs by outcome",
                "ops",
                rate("penstock_jobs_finished_total", "outcome"),
                "{{outcome}}",
                "retry: failed, and tried again. failed: a dead letter. refused: another process "
                "had taken the job over.",
            ),
            Panel("Run time", "s", quantiles("penstock_job_run_seconds", "kind", 0.5, 0.95, 0.99)),
            Panel(
                "Wait",
                "s",
                quantiles("penstock_job_wait_seconds", "kind", 0.5, 0.95),
                "From when a job was due to its start.",
            ),
            one("Queued", "short", 'max by (kind) (penstock_jobs{state="queued"})', "{{kind}}"),
            one(
                "Age of the oldest queued job",
                "s",
                "max by (kind) (penstock_oldest_queued_seconds)",
                "{{kind}}",
            ),
            one(
                "Dead letters", "short", 'max by (kind) (penstock_jobs{state="failed"})', "{{kind}}"
            ),
            one(
                "Taken back from lost processes",
                "ops",
                rate("penstock_jobs_taken_back_total", "kind"),
                "{{kind}}",
            ),
            Panel(
                "Stages",
                "s",
                quantiles("penstock_job_stage_seconds", "stage", 0.5, 0.95),
                "Parts of runs, such as parse, mask, chunk, embed and publish of a document.",
            ),
        ),
    ),
    (
        "Lanes",
        (
            one(
                "Use of slots",
                "percentunit",
                "max by (lane) (penstock_lane_in_flight / penstock_lane_max_parallel)",
                "{{lane}}",
            ),
            one("Waiting", "short", "max by (lane) (penstock_lane_waiting)", "{{lane}}"),
            Panel(
                "Breaker open, or blocked",
                "short",
                (
                    Query("max by (lane) (penstock_lane_open) > 0", "{{lane}} open"),
                    Query("max by (lane) (penstock_lane_blocked) > 0", "{{lane}} blocked"),
                ),
            ),
        ),
    ),
    (
        "HTTP",
        (
            one(
                "Requests per second",
                "reqps",
                "sum by (status) (rate(penstock_http_requests_total[$__rate_interval]))",
                "{{status}}",
            ),
            Panel(
                "Time to answer",
                "s",
                quantiles("penstock_http_request_seconds", "route", 0.95, served=True),
            ),
            Panel(
                "Who waits",
                "short",
                (
                    Query("sum(penstock_http_long_polls)", "long polls"),
                    Query("sum(penstock_http_streams)", "streams"),
                    Query("sum(penstock_queue_callers_waiting)", "callers without a connection"),
                    Query("max(penstock_http_loop_lag_seconds)", "event loop late, s"),
                ),
            ),
        ),
    ),
    (
        "Processes",
        (
            Panel(
                "Workers",
                "short",
                (
                    Query("sum(max by (process) (penstock_process_workers))", "all"),
                    Query("sum(max by (process) (penstock_process_busy))", "busy"),
                    Query("sum(max by (process) (penstock_process_parked))", "parked jobs"),
                    Query("sum(max by (process) (penstock_process_stuck))", "stuck"),
                ),
            ),
            Panel(
                "Signs of trouble",
                "s",
                (
                    Query(
                        "max by (process) (penstock_process_heartbeat_seconds)",
                        "{{process}} heartbeat",
                    ),
                    Query(
                        "max by (process) (penstock_process_loop_lag_seconds)",
                        "{{process}} event loop",
                    ),
                ),
            ),
            one(
                "Trip to the queue",
                "s",
                "max by (process) (rate(penstock_dispatcher_trip_seconds_total[$__rate_interval])"
                " / rate(penstock_dispatcher_trips_total[$__rate_interval]))",
                "{{process}}",
            ),
        ),
    ),
)


def dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    width = COLUMNS // len(STATS)
    for n, stat in enumerate(STATS):
        panels.append(_panel(stat, "stat", n * width, 0, width, 4))
    down = 4
    for title, graphs in ROWS:
        place = {"x": 0, "y": down, "w": COLUMNS, "h": 1}
        panels.append({"type": "row", "title": title, "gridPos": place, "collapsed": False})
        down += 1
        for n, graph in enumerate(graphs):
            panels.append(_panel(graph, "timeseries", n % 3 * 8, down + n // 3 * 8, 8, 8))
        down += -(-len(graphs) // 3) * 8
    return {
        "uid": "penstock",
        "title": "Penstock",
        "tags": ["penstock"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {
            "list": [
                {
                    "name": "datasource",
                    "label": "Prometheus",
                    "type": "datasource",
                    "query": "prometheus",
                }
            ]
        },
        "panels": [{"id": n, **panel} for n, panel in enumerate(panels, 1)],
    }


def _panel(panel: Panel, kind: str, x: int, y: int, width: int, height: int) -> dict[str, Any]:
    return {
        "type": kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": width, "h": height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + n),
                "datasource": SOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for n, query in enumerate(panel.queries)
        ],
    }


def text() -> str:
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text())
