"""What Prometheus is told of real work: all that the reference names, and nothing shrinks."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
from prometheus_client.parser import text_string_to_metric_families

from penstock import Penstock
from penstock.ports.ledger import DAY, Charge, Payer
from tests.support.serve_process import Host
from tests.support.waiting import until

PAGE = (Path(__file__).parents[3] / "docs" / "reference-metrics.md").read_text()
ROWS = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \|", PAGE, re.MULTILINE)
TOLD = {name: kind for name, kind, _ in ROWS}
"""The type of each metric of the reference."""
LABELS = {name: set(re.findall(r"\w+", labels)) for name, _, labels in ROWS}
Figures = dict[tuple[str, frozenset[tuple[str, str]]], float]


async def read(client: httpx.AsyncClient) -> tuple[Figures, dict[str, str]]:
    """Every sample, and the type of each family."""
    answer = await client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    families = list(text_string_to_metric_families(answer.text))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    figures = {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }
    return figures, {family.name: family.type for family in families}


def of(figures: Figures, name: str, **labels: str) -> list[float]:
    wanted = labels.items()
    return [value for (one, its), value in figures.items() if one == name and wanted <= set(its)]


def growing(figures: Figures) -> Iterator[tuple[str, frozenset[tuple[str, str]]]]:
    """What may never go backwards, by the types in the reference."""
    ends = {"counter": ("",), "histogram": ("_bucket", "_count", "_sum")}
    names = {name + end for name, kind in TOLD.items() for end in ends.get(kind, ())}
    return (key for key in figures if key[0] in names)


async def spend(host: Host) -> None:
    """Something, today and tomorrow."""
    async with Penstock(host.cli.url) as app:
        now = app.queue.now()
        days = (("1", now), ("2", now + DAY))
        charges = [Charge(name, at, Payer("a"), "llm", "m", 3, 2, 0, 5) for name, at in days]
        await app.queue.charge(charges)
        await app.budgets.set("tenant:a", cost=5.00, per="day")


async def test_metrics_tell_of_real_work_and_never_go_backwards(host: Host) -> None:
    host.others["lease_seconds"] = 9.0  # the tally is told three times in it
    host.others["lanes"] = {"embedder": {"max_parallel": "auto"}}
    served = host.serve()
    async with served.client() as client:
        await client.put("/v1/index/a", json={"text": "The turbine turns."})
        await client.get("/v1/jobs/nobody")
        await spend(host)

        async def counted() -> tuple[Figures, dict[str, str]] | None:
            figures, types = await read(client)
            done = of(figures, "penstock_jobs_finished_total", kind="ingest.embed")
            return (figures, types) if sum(done) else None

        before, types = await until(counted, "the tally of a document")
        for name, kind in TOLD.items():
            assert types.pop(name.removesuffix("_total")) == kind, name
            assert of(before, name + ("_count" if kind == "histogram" else "")), name
        assert not {name for name in types if not name.endswith("_created")}
        for name, labels in before:
            of_family = re.sub(r"_(bucket|count|sum)$", "", name)
            if (known := LABELS.get(name, LABELS.get(of_family))) is not None:
                assert {label for label, _ in labels} - {"le"} == known, name
        assert of(before, "penstock_http_requests_total", route="/v1/jobs/{job_id}") == [1.0]
        done = {"kind": "ingest.parse", "outcome": "completed"}
        assert of(before, "penstock_jobs_finished_total", **done) == [1.0]
        assert of(before, "penstock_jobs_finished_total", outcome="refused") == [0.0, 0.0]
        for kind in ("ingest.parse", "ingest.embed"):
            assert of(before, "penstock_job_run_seconds_count", kind=kind) == [1.0]
            assert of(before, "penstock_job_wait_seconds_count", kind=kind) == [1.0]
            [seconds] = of(before, "penstock_job_run_seconds_sum", kind=kind)
            assert 0 < seconds < 60
        for stage in ("parse", "mask", "chunk", "embed", "publish"):
            assert of(before, "penstock_job_stage_seconds_count", stage=stage) == [1.0], stage
        assert of(before, "penstock_processes") == [1.0]
        assert of(before, "penstock_process_degraded") == [0.0]
        assert 0 <= of(before, "penstock_process_heartbeat_seconds")[0] < 60
        assert of(before, "penstock_process_workers")[0] >= 1
        assert of(before, "penstock_dispatcher_trips_total")[0] >= 2
        assert of(before, "penstock_lane_breaker", lane="embedder", state="closed") == [1.0]
        assert of(before, "penstock_queue_callers_waiting")[0] < 10
        assert of(before, "penstock_jobs", state="completed", kind="ingest.parse") == [1.0]

        for n in range(3):
            await client.put(f"/v1/index/{n}", json={"text": f"Sluice number {n}."})

        async def four() -> Figures | None:
            figures, _ = await read(client)
            done = of(figures, "penstock_jobs_finished_total", kind="ingest.embed")
            return figures if sum(done) >= 4 else None

        after = await until(four, "the tally of three more")
        shrunk = [key for key in growing(before) if after[key] < before[key]]
        assert not shrunk
        assert len(list(growing(before))) > 100
    served.stop()
