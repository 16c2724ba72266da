"""The HTTP server: how soon it is ready, how fast it answers, and how it bears many at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

from benchmarks.http_asker import measure
from benchmarks.http_server import HttpServer
from benchmarks.report import AtLeast, AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from benchmarks.turns import fresh, percentile
from tests.support.load_clients import Tally, settled
from tests.support.load_clients import run as run_load

CONNECTIONS = 20
CHANGES = 3
JOB = '{"kind":"nobody.does"}'


def run(sizes: Sizes, folder: Path) -> list[Result]:
    return [*_speed(sizes, folder), *_waking(sizes, folder), *_load(sizes, fresh(folder))]


def _speed(sizes: Sizes, folder: Path) -> list[Result]:
    ready, health, jobs = [], [], []
    seconds = str(sizes.http_seconds)
    for _ in range(1 + sizes.rounds):
        with HttpServer(fresh(folder), "--no-workers") as server:
            ready.append(server.ready_seconds)
            ask = ("rate", server.url, str(CONNECTIONS), seconds)
            health.append(measure(*ask, "GET", "/healthz", ""))
            jobs.append(measure(*ask, "POST", "/v1/jobs", JOB))
    note = "From exec to 200 of /readyz, bytecode compiled."
    figure = Figure.of("penstock", ready[1:])  # the first also reads the files from disk
    closed = f"{CONNECTIONS} connections, client and server sharing the cores."
    return [
        Result("server", "ready", "s", figure, None, Better.LESS, AtMost(2, "s"), note),
        Result("server", "GET /healthz", "requests/s", Figure.of("penstock", health), note=closed),
        Result("server", "POST /v1/jobs", "jobs/s", Figure.of("penstock", jobs), note=closed),
    ]


def _waking(sizes: Sizes, folder: Path) -> list[Result]:
    polls, streams = [], []
    for _ in range(sizes.rounds):
        mine = fresh(folder)
        with HttpServer(mine) as server:
            late = measure("long_polls", server.url, str(sizes.long_polls), str(mine / "gate"))
            polls.append(percentile(late, 99))
            late = measure("streams", server.url, str(sizes.long_polls), str(CHANGES))
            streams.append(percentile(late, 99))
    count = f"{sizes.long_polls:,}"
    return [
        Result(
            "server, many wait for one change",
            f"p99 of {count} long polls",
            "ms",
            Figure.of("penstock", polls),
            None,
            Better.LESS,
            AtMost(250, "ms"),
            "From the handler's return to the whole answer at the client, which is one process.",
        ),
        Result(
            "server, many wait for one change",
            f"p99 of {count} streams",
            "ms",
            Figure.of("penstock", streams),
            None,
            Better.LESS,
            None,
            "From the change, by the queue's clock, to its event at the reader.",
        ),
    ]


def _load(sizes: Sizes, folder: Path) -> list[Result]:
    with HttpServer(folder) as server:
        run_load(server.url, sizes.load_clients, 1.0)  # everything is loaded and every cache warm
        before = server.memory()
        tally = run_load(server.url, sizes.load_clients, sizes.load_seconds)
        documents = asyncio.run(settled(server.url))
        after = server.memory()
    return [*_counts(tally, documents, sizes), *_times(tally), _memory(before, after)]


def _counts(tally: Tally, documents: dict[str, dict[str, object]], sizes: Sizes) -> list[Result]:
    name = f"server, {sizes.load_clients} clients for {sizes.load_seconds:g} s"
    good = Figure.of("penstock", [100 * tally.good / tally.asked])
    odd = tally.asked - tally.good - tally.refused
    lost = sum(
        one not in documents or documents[one]["state"] == "processing" for one in tally.documents
    )
    found = sum(bool(one["searchable"]) for one in documents.values())
    said = ", ".join(f"{status}: {count:,}" for status, count in sorted(tally.statuses.items()))
    none = AtMost(0, "")
    return [
        Result(name, "succeed", "%", good, None, Better.MORE, AtLeast(95, "%"), f"{said}."),
        Result(
            name,
            "neither answered nor refused with 429 or 503",
            "requests",
            Figure.of("penstock", [odd]),
            None,
            Better.LESS,
            none,
        ),
        Result(
            name,
            "documents accepted and lost",
            "documents",
            Figure.of("penstock", [lost]),
            None,
            Better.LESS,
            none,
            f"Of {len(tally.documents):,}; with those before it, {found:,} of {len(documents):,} "
            "are searchable, the others failed.",
        ),
        Result(
            name,
            "streams without their end",
            "streams",
            Figure.of("penstock", [tally.streams - tally.ended]),
            None,
            Better.LESS,
            none,
            f"Of {tally.streams:,}.",
        ),
    ]


def _times(tally: Tally) -> list[Result]:
    return [
        Result(
            "server under load: time to answer",
            f"{kind}, p{percent}",
            "ms",
            Figure.of("penstock", [1000 * percentile(spent, percent)]),
            None,
            Better.LESS,
            None,
            f"Of {len(spent):,}." if percent == 50 else "",
        )
        for kind, spent in sorted(tally.seconds.items())
        for percent in (50, 99)
    ]


def _memory(before: float, after: float) -> Result:
    figure = Figure.of("penstock", [after - before])
    note = f"{before:.0f} MB before, {after:.0f} MB after; what is searched is held in memory."
    return Result(
        "server under load: memory", "more than before", "MB", figure, None, Better.LESS, None, note
    )
