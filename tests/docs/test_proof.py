"""The page of proof says what was measured, all of it, and nothing else."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import chaos, kept, plots, proof, step_chaos
from benchmarks.chaos import Cell, Column
from benchmarks.pictures import PICTURES
from benchmarks.report import Verdict
from benchmarks.targets import TARGETS, Wanted
from tests.chaos.faults import FAULTS

PAGE = (proof.DOCS / proof.PAGE).read_text()
SECTIONS = kept.read(proof.HERE)


def test_page_and_pictures_are_what_would_be_written() -> None:
    for name, text in proof.files().items():
        assert (proof.DOCS / name).read_text() == text, "run: .venv/bin/python -m benchmarks.proof"
    written = {f"{proof.FOLDER}/{file.name}" for file in (proof.DOCS / proof.FOLDER).iterdir()}
    assert written <= proof.files().keys()


@pytest.mark.parametrize("wanted", TARGETS, ids=lambda wanted: wanted.what)
def test_every_target_has_its_rows(wanted: Wanted) -> None:
    """Measured or not: what is missing is said."""
    assert f"| {wanted.what} | {wanted.target} | " in PAGE
    figures = PAGE.split(f"### {wanted.what}\n")[1].split("\n### ")[0]
    assert figures.count("\n| ") >= 1 + len(wanted.answers), "a head, and a row for each answer"


def test_every_answer_names_a_benchmark_there_is() -> None:
    from benchmarks.__main__ import BENCHMARKS  # it imports every contender

    named = {answer.section for wanted in TARGETS for answer in wanted.answers}
    drawn = {section for picture in PICTURES for section in picture.sections}
    assert named | drawn <= BENCHMARKS.keys()


def test_every_missed_target_is_told() -> None:
    bad = [one for section in SECTIONS.values() for one in section.results if not one.good]
    told = PAGE.split("## Missed")[1].split("\n## ")[0]
    for result in bad:
        assert f"- {result.benchmark}, {result.what}: **" in told


def test_a_figure_that_was_not_measured_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fewer = {name: section for name, section in SECTIONS.items() if name not in ("jobs", "idle")}
    broken = replace(fewer["claim"].results[0], ours=None)
    assert broken.verdict is Verdict.NOT_MEASURED
    fewer["claim"] = replace(fewer["claim"], results=[broken])
    monkeypatch.setattr(kept, "read", lambda folder: fewer)
    files = proof.files()
    rows = [line for line in files[proof.PAGE].splitlines() if "**not measured**" in line]
    assert "| idle process | < 0.5 % CPU | 1 **not measured** |" in rows
    assert any(line.startswith("| CPU | - |") for line in rows)
    assert any(broken.what in line for line in rows)
    assert "proof/throughput.svg" not in files
    assert "`python -m benchmarks --only jobs` draws it" in files[proof.PAGE]


def test_the_matrix_has_every_fault_on_every_queue() -> None:
    columns = chaos.read()
    assert list(proof.NAMES) == sorted(columns, key=list(proof.NAMES).index)
    for column in columns.values():
        assert [cell.fault for cell in column.cells] == [fault.name for fault in FAULTS]
        assert all(cell.jobs > 0 or cell.why_not for cell in column.cells)


def test_steps_were_counted_on_every_queue() -> None:
    counted = step_chaos.read()
    assert counted.keys() == set(proof.NAMES)
    for one in counted.values():
        assert one.course.jobs == 500
        assert one.course.faultless


def test_a_step_that_was_done_again_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    course = replace(step_chaos.read()["sqlite"].course, again=3)
    machine = {"date": "some day", "load when started": "0"}
    counted = {"sqlite": step_chaos.Counted(machine, course)}
    monkeypatch.setattr(step_chaos, "read", lambda: counted)
    told = "**0 lost, 3 again, 0 stale, 0 changed, 0 signals**"
    assert told in proof.files()[proof.PAGE]


def test_what_was_lost_stands_out(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {"date": "some day", "load when started": "0"}
    cells = [
        Cell("fire", "the alarm", jobs=10, lost=1, seconds=2.0),
        Cell("flood", "-", why_not="dry"),
    ]
    monkeypatch.setattr(chaos, "read", lambda: {"sqlite": Column(machine, cells)})
    page = proof.files()[proof.PAGE]
    assert "| fire | the alarm | **10 jobs, 1 lost, 0 stale**, 2.0 s |" in page
    assert "| flood | - | dry |" in page


def test_what_chaos_counted_is_kept_beside_what_was_counted_before(tmp_path: Path) -> None:
    file = tmp_path / "chaos.json"
    one = Column({"date": "some day"}, [Cell("fire", "the alarm", jobs=10, seconds=2.0)])
    two = Column({"date": "another"}, [Cell("fire", "the alarm", why_not="no fire")])
    chaos.keep("redis", one, file)
    chaos.keep("sqlite", one, file)
    chaos.keep("redis", two, file)
    assert chaos.read(file) == {"redis": two, "sqlite": one}
    assert json.loads(file.read_text())
    of_commit = Column({"commit": "abc"}, [])
    assert of_commit.of({"commit": "abc"})
    assert not of_commit.of({"commit": "def"})
    assert not one.of({}), "where nobody knows the commit nothing was counted already"


def test_plots_stay_within_their_frame() -> None:
    svg = plots.lines("t", "x", "y", {"a": [(0, 0), (7, 40)]}, limit=50, shade=(1, 3, "away"))
    points = re.findall(r"([\d.]+),([\d.]+)", svg.split("polyline points=")[1].split('"')[1])
    assert all(0 <= float(x) <= plots.WIDTH and 0 <= float(y) <= 390 for x, y in points)
    assert ">limit 50<" in svg
