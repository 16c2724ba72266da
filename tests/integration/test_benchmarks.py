"""The benchmark harness: it measures, it reports, and it fails when a target is missed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import __main__ as harness
from benchmarks.report import AtMost, Better, Figure, Result, TimesThePeer, Verdict
from benchmarks.sizes import Sizes

ROOT = Path(__file__).parents[2]


def result(
    ours: float | None, peer: float | None = None, target: TimesThePeer | AtMost | None = None
) -> Result:
    return Result(
        "speed",
        "of things",
        "things/s",
        None if ours is None else Figure.of("penstock", [ours]),
        None if peer is None else Figure.of("peer", [peer]),
        target=target,
    )


def run_with(
    monkeypatch: pytest.MonkeyPatch, folder: Path, *results: Result, error: str | None = None
) -> int:
    def benchmark(sizes: Sizes, folder: Path) -> list[Result]:
        if error is not None:
            raise RuntimeError(error)
        return list(results)

    monkeypatch.setattr(harness, "BENCHMARKS", {"fake": benchmark})
    return harness.main(["--tiny", "--output", str(folder)])


def test_a_real_run_measures_us_and_the_peer(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, "--only", "claim", "--only", "jobs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=50,
    )
    data = json.loads((tmp_path / "results.json").read_text())
    assert {line["benchmark"] for line in data["results"]} == {
        "claim time by backlog, SQLite",
        "no-op jobs/s, SQLite",
    }, done.stderr
    assert all(line["ours"]["median"] > 0 for line in data["results"])
    assert any("huey" in line["peer"]["who"] for line in data["results"] if line["peer"])
    # Whether such small runs meet their targets is luck; that the exit code says so is not.
    missed = [line for line in data["results"] if line["verdict"] == "MISSED"]
    assert done.returncode == (1 if missed else 0)
    report = (tmp_path / "REPORT.md").read_text()
    assert "| cores |" in report
    assert report.count("**MISSED**") == len(missed)


def test_an_outage_is_measured_beside_a_plain_poller(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, "--only", "outage"], cwd=ROOT, capture_output=True, text=True, timeout=50
    )
    lines = json.loads((tmp_path / "results.json").read_text())["results"]
    tries = next(line for line in lines if line["what"].startswith("tries"))
    assert tries["peer"]["median"] > tries["ours"]["median"], done.stderr


def test_the_server_is_measured_by_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks", "--tiny", "--output", str(tmp_path)]
    done = subprocess.run(
        [*command, "--only", "http"], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    lines = json.loads((tmp_path / "results.json").read_text())["results"]
    told = {line["what"]: line["ours"] for line in lines}
    assert all(figure is not None for figure in told.values()), done.stderr
    for what in ("ready", "GET /healthz", "POST /v1/jobs", "p99 of 50 long polls", "succeed"):
        assert told[what]["median"] > 0
    assert told["documents accepted and lost"]["median"] == 0


def test_a_missed_target_fails_the_run_and_stays_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, missed = result(9, 1, TimesThePeer(6)), result(5, 1, TimesThePeer(6))
    assert run_with(monkeypatch, tmp_path, met, missed) == 1
    report = (tmp_path / "REPORT.md").read_text()
    assert "1 targets met, 1 missed" in report
    assert "**MISSED**" in report


def test_a_run_that_meets_its_targets_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    met, plain = result(9, 1, TimesThePeer(6)), result(1)
    assert run_with(monkeypatch, tmp_path, met, plain) == 0


def test_a_benchmark_that_breaks_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_with(monkeypatch, tmp_path, error="no such peer") == 1
    report = (tmp_path / "REPORT.md").read_text()
    assert "**NOT MEASURED**" in report
    assert "no such peer" in report


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        (result(6, 1, TimesThePeer(6)), Verdict.MET),
        (result(5.9, 1, TimesThePeer(6)), Verdict.MISSED),
        (result(5, None, TimesThePeer(6)), Verdict.NOT_MEASURED),
        (result(None, 1, TimesThePeer(6)), Verdict.NOT_MEASURED),
        (result(2, None, AtMost(2, "s")), Verdict.MET),
        (result(2.1, None, AtMost(2, "s")), Verdict.MISSED),
        (result(3), Verdict.NO_TARGET),
    ],
)
def test_verdict(line: Result, verdict: Verdict) -> None:
    assert line.verdict is verdict


def test_the_ratio_says_how_many_times_as_good_we_are() -> None:
    ours, peer = Figure.of("penstock", [1, 2, 9]), Figure.of("peer", [8.0])
    assert Result("b", "w", "ms", ours, peer, Better.LESS).ratio == 4
    assert Result("b", "w", "jobs/s", ours, peer, Better.MORE).ratio == 0.25
