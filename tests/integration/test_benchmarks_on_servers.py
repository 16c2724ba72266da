"""Benchmarks on a server: contenders in processes of their own, and peers that are not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.contenders.served import Served
from benchmarks.kept import Section
from benchmarks.rendering import Report
from benchmarks.report import Better, Figure, Result, TimesThePeer, Verdict
from benchmarks.served import death, peers, speed, takeover
from benchmarks.served.arena import Arena
from benchmarks.served.servers import Valkey
from benchmarks.sizes import TINY

ROOT = Path(__file__).parents[2]
ABSENT = Served("absent", "no_such_module", missing="not installed")
BROKEN = Served("broken", "no_such_module")


@pytest.fixture(scope="module")
def server() -> Iterator[Valkey]:
    with Valkey() as server:
        yield server


@pytest.fixture
def arena(server: Valkey, tmp_path: Path) -> Arena:
    return Arena(server, peers.penstock(), [ABSENT, BROKEN], TINY, tmp_path)


def test_we_are_measured_where_peers_cannot_be(arena: Arena) -> None:
    result = speed.jobs(arena, factor=4)
    assert result.ours is not None
    assert result.ours.value > 0
    assert result.peers["absent"] == "not measured: not installed"
    assert "no_such_module" in str(result.peers["broken"])
    assert result.verdict is Verdict.NOT_MEASURED


def test_connections_and_recovery_are_counted(arena: Arena) -> None:
    connections = death.connections(arena, 5)
    all_done, undone = death.recovery(arena)
    assert connections.ours is not None
    assert connections.ours.value >= 1
    assert all_done.ours is not None
    assert all_done.ours.value > 0
    assert undone.ours is not None
    assert undone.ours.value == 0


def test_a_late_write_is_looked_for_while_another_holds_the_job(arena: Arena) -> None:
    result = takeover.late_writes(arena, after_the_end=False)
    assert result.ours is not None
    assert result.ours.value == 0


def test_a_process_on_another_host_takes_over_when_the_lease_is_over(arena: Arena) -> None:
    leased = replace(arena.ours, base=arena.ours.leased)  # a second instead of 15
    result = death.elsewhere(replace(arena, ours=leased))
    assert result.ours is not None, result.note
    assert 0.5 < result.ours.value < 15, "the lock of the dead proves nothing to it"


def test_a_run_without_peers_names_each_of_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, "--only", "head_of_line"],
        cwd=ROOT,
        env={**os.environ, "PENSTOCK_BENCH_PYTHON": str(tmp_path / "nothing")},
        capture_output=True,
        text=True,
        timeout=110,
    )
    data = json.loads((tmp_path / "results.json").read_text())["head_of_line"]
    cells = [line["peers"]["SAQ"] for line in data["results"] if "peers" in line]
    assert cells == ["not measured: not installed"], done.stderr
    assert data["machine"]["saq"] == "not installed"
    assert "not measured: not installed" in (tmp_path / "REPORT.md").read_text()


def beside(**others: float | str) -> Result:
    cells = {
        name: value if isinstance(value, str) else Figure.of(name, [value])
        for name, value in others.items()
    }
    ours = Figure.of("penstock", [12.0])
    return Result.beside("b", "speed", "jobs/s", ours, cells, Better.MORE, TimesThePeer(4))


def test_the_best_of_several_peers_counts() -> None:
    assert beside(one=2, two=3).ratio == 4
    assert beside(one=2, two=3).verdict is Verdict.MET
    assert beside(one=2, two=4).verdict is Verdict.MISSED


def test_a_target_is_not_measured_while_a_peer_is_not() -> None:
    assert beside(one=2, two="not measured: no such file").verdict is Verdict.NOT_MEASURED


def test_every_peer_has_a_column() -> None:
    machine = {"date": "today", "load when started": "0"}
    section = Section("b", "tiny", machine, [beside(one=2, two="not installed")])
    report = Report([section]).markdown()
    assert "| what | penstock | one | two | ratio | target |  |" in report
    assert "| speed, jobs/s | 12 | 2 | not installed | 6x one | >= 4x the peer |" in report
