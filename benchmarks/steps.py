"""Jobs with steps beside DBOS, on SQLite and PostgreSQL, and ours on Redis as well; and what jobs
without steps cost since there are any."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.compare import checked_out
from benchmarks.processes import ROOT
from benchmarks.report import AtMost, Better, Figure, Result, Target, TimesThePeer
from benchmarks.served import peers
from benchmarks.served.servers import Postgres, Valkey
from benchmarks.sizes import Sizes
from benchmarks.turns import percentile

JOBS = 100
BEFORE_STEPS = "e186aebf~1"
"""The newest commit without them."""
LATE_SECONDS = 1.0
PATIENCE = 900.0
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "sqlite": [
        {"pool": 1, "threads": False, "wal": True},
        {"pool": 20, "threads": False, "wal": True},
        {"pool": 1, "threads": True, "wal": True},
        {"pool": 20, "threads": False, "wal": False},
    ],
    "postgres": [
        {"pool": 20, "threads": False},
        {"pool": 20, "threads": True},
        {"pool": 100, "threads": True},
    ],
}
"""Of DBOS, each tried in each round; the best counts."""
NO_DBOS_ON = "DBOS has no queue on Redis."

Fresh = Callable[[], str]


def run(sizes: Sizes, folder: Path) -> list[Result]:
    numbers = count(1)
    with Postgres() as postgres, Valkey() as valkey:
        places: dict[str, Fresh] = {
            "sqlite": lambda: f"sqlite:///{folder / f'steps-{next(numbers)}.db'}",
            "postgres": postgres.fresh,
            "redis": valkey.fresh,
        }
        return [
            result
            for queue, fresh in places.items()
            for result in _Bench(queue, fresh, sizes).results()
        ]


class _Bench:
    """One store. `fresh` makes an empty place in it."""

    def __init__(self, queue: str, fresh: Fresh, sizes: Sizes) -> None:
        self._queue = queue
        self._fresh = fresh
        self._sizes = sizes
        self._name = f"steps on {NAMES[queue]}"
        self._settings = SETTINGS.get(queue, [])

    def results(self) -> list[Result]:
        return [
            self._together(),
            *self._alone(),
            self._resume(),
            *self._asleep(),
            self._without_steps(),
        ]

    def _together(self) -> Result:
        steps = self._sizes.steps

        def ours() -> float:
            return float(_ours("together", self._fresh(), jobs=JOBS, steps=steps)[0])

        def theirs(settings: dict[str, Any]) -> float:
            asked = {"jobs": JOBS, "steps": self._sizes.peer_steps, **settings}
            return float(_dbos("together", self._fresh(), **asked)[0])

        mine, peer, note = self._beside(ours, theirs, max)
        told = (
            f"{steps} no-op steps of each job, {self._sizes.peer_steps} with DBOS; one process "
            f"that starts the jobs and runs them. DBOS's clock stops at its last step. {note}"
        )
        what = f"steps/s, {JOBS} jobs at a time"
        target = TimesThePeer(10) if peer else None
        return self._result(what, "steps/s", mine, peer, Better.MORE, target, told)

    def _alone(self) -> list[Result]:
        steps = self._sizes.lone_steps
        bare: list[float] = []
        ratios: list[float] = []

        def ours() -> float:
            mine, commits = _ours("alone", self._fresh(), steps=steps)
            bare.append(percentile(commits, 50))
            ratios.append(percentile(mine, 50) / bare[-1])
            return percentile(mine, 50)

        def theirs(settings: dict[str, Any]) -> float:
            return percentile(_dbos("alone", self._fresh(), steps=steps // 4, **settings), 50)

        mine, peer, note = self._beside(ours, theirs, min)
        commit = Figure.of("a bare commit", bare)
        told = (
            f"One job, {steps} steps one after another. A bare durable commit of one row, in turns "
            f"with the steps, takes {commit.value:.2f} ms [{commit.low:.2f} .. {commit.high:.2f}]. "
            f"{note}"
        )
        ratio = Figure.of("penstock", ratios)
        return [
            self._result("p50 of a step of one job", "ms", mine, peer, Better.LESS, None, told),
            self._result(
                "p50 of a step, in bare commits",
                "x",
                ratio,
                None,
                Better.LESS,
                AtMost(1.2, "x"),
                "The same runs: each run's p50 against that of its own bare commits.",
            ),
        ]

    def _resume(self) -> Result:
        records = self._sizes.records
        runs = [_ours("resume", self._fresh(), records=records)[0] for _ in self._rounds()]
        what = f"resume of a job with {records:,} records"
        note = "From the first line of the run until the last record has been returned."
        ours = Figure.of("penstock", runs)
        return self._result(what, "s", ours, None, Better.LESS, AtMost(1.0, "s"), note)

    def _asleep(self) -> list[Result]:
        sizes = self._sizes
        asked: dict[str, Any] = {"jobs": sizes.sleepers, "woken": 50, "seconds": sizes.idle_seconds}
        share, *late = _ours("asleep", self._fresh(), **asked)
        what = f"{sizes.sleepers:,} sleeping jobs"
        step = 100 / os.sysconf("SC_CLK_TCK") / sizes.idle_seconds
        return [
            self._result(
                f"{what}: CPU of the worker process",
                "%",
                Figure.of("penstock", [share]),
                None,
                Better.LESS,
                AtMost(0.5, "%"),
                f"Of one core, over {sizes.idle_seconds:g} s, in steps of {step:.2g} %.",
            ),
            self._result(
                f"{what}: the latest of {len(late)} wake-ups",
                "s",
                Figure("penstock", max(late), min(late), max(late), len(late)),
                None,
                Better.LESS,
                AtMost(LATE_SECONDS, "s"),
                "Others beside them, whose sleeps end within 5 s: the median is "
                f"{statistics.median(late) * 1000:.1f} ms.",
            ),
        ]

    def _without_steps(self) -> Result:
        """Its ratio is to the commit before steps, in place of a peer."""
        jobs = self._sizes.jobs
        now: list[float] = []
        then: list[float] = []
        with checked_out(BEFORE_STEPS) as tree:
            for number in range(2 * self._sizes.rounds):
                sides: list[tuple[Path, list[float]]] = [(tree, then), (ROOT, now)]
                for place, rates in sides if number % 2 else sides[::-1]:
                    rates += _ours("noops", self._fresh(), source=place / "src", jobs=jobs)
        note = (
            f"{jobs:,} jobs, enqueued before; a process of this code and one of {BEFORE_STEPS} "
            f"take turns, {len(now)} times each. The ratio of the medians counts."
        )
        return self._result(
            "no-op jobs/s, beside the commit before there were steps",
            "jobs/s",
            Figure.of("penstock", now),
            Figure.of("penstock without steps", then),
            Better.MORE,
            TimesThePeer(0.98),
            note,
        )

    def _beside(
        self,
        ours: Callable[[], float],
        theirs: Callable[[dict[str, Any]], float],
        pick: Callable[..., tuple[dict[str, Any], Figure]],
    ) -> tuple[Figure, Figure | None, str]:
        """Ours and the best of DBOS, in turns; and what is to be told of DBOS."""
        mine: list[float] = []
        found: list[list[float]] = [[] for _ in self._settings]
        for _ in self._rounds():
            mine.append(ours())
            for settings, values in zip(self._settings, found, strict=True):
                values.append(theirs(settings))
        figure = Figure.of("penstock", mine)
        if not self._settings:
            return figure, None, NO_DBOS_ON
        figures = [Figure.of("DBOS", values) for values in found]
        best, peer = pick(zip(self._settings, figures, strict=True), key=lambda one: one[1].value)
        version = peers.versions().get("dbos", "not installed")
        tried = "; ".join(
            f"{_words(settings)}: {one.value:.3g}"
            for settings, one in zip(self._settings, figures, strict=True)
        )
        note = f"DBOS {version}, best with {_words(best)} (tried, medians: {tried})."
        return figure, peer, note

    def _rounds(self) -> range:
        return range(self._sizes.rounds)

    def _result(
        self,
        what: str,
        unit: str,
        ours: Figure,
        peer: Figure | None,
        better: Better,
        target: Target | None,
        note: str,
    ) -> Result:
        return Result(self._name, what, unit, ours, peer, better, target, note)


def _words(settings: dict[str, Any]) -> str:
    how = "threads" if settings["threads"] else "asyncio"
    journal = {None: "", True: ", WAL", False: ", rollback journal"}[settings.get("wal")]
    return f"{how}, {settings['pool']} connections{journal}"


def _ours(measure: str, url: str, *, source: Path = ROOT / "src", **asked: Any) -> Any:
    """What the program of ours measured, with the code in `source`."""
    path = f"{source}{os.pathsep}{ROOT}"
    return _told(sys.executable, "steps_penstock", {"measure": measure, "url": url, **asked}, path)


def _dbos(measure: str, url: str, **asked: Any) -> Any:
    """The same of the peer."""
    return _told(peers.PYTHON, "steps_dbos", {"measure": measure, "url": url, **asked}, str(ROOT))


def _told(python: str, module: str, asked: dict[str, Any], path: str) -> Any:
    command = [python, "-m", f"benchmarks.contenders.{module}", json.dumps(asked)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE
    )
    if done.returncode:
        raise RuntimeError(f"{module}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])
