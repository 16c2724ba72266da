"""Writes docs/proof.md, its plots and the figures in the README from results.json, chaos.json and
simulation.json, and from nothing else: `python -m benchmarks.proof`. A test checks that they are up
to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import chaos, headline, kept, simulation, step_chaos
from benchmarks.kept import Section
from benchmarks.pictures import PICTURES, Picture
from benchmarks.rendering import cells, machine_table, tally
from benchmarks.report import Result, Verdict
from benchmarks.targets import TARGETS, Answer, Wanted

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs"
PAGE, FOLDER, README = "proof.md", "proof", "../README.md"
HEAD = (
    "| Measured | Penstock | Best peer | Ratio | Verdict | Run |",
    "|---|---|---|---|---|---|",
)
NAMES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis"}
INTRODUCTION = """\
# Proof

<!-- Written by `python -m benchmarks.proof` from the JSON in benchmarks/. -->

Every performance target with the measured figure, next to the best peer in the same run. Missed
targets stay in and are marked. After them: charts, and the outcome of every injected fault on every
queue.

`make proof` measures everything again on your machine and rewrites this page. It takes more than an
hour, during which nothing else should use the CPU; if interrupted, run it again and it resumes. How
each figure was measured: the [report](../benchmarks/REPORT.md) and
[how to read it](../benchmarks/README.md)."""
MATRIX = """\
## One fault at a time

Two worker processes with four workers each and default settings get one fault while they work.
**Lost**: jobs that were accepted and never finished. **Stale**: results written by a process that
no longer held the job. The time is measured from the event in the second column until every
interrupted job is done; a frozen process costs the 15 s lease.
[test_matrix.py](../tests/chaos/test_matrix.py), run by `make chaos`, counts them;
[test_chaos.py](../tests/chaos/test_chaos.py) injects 120 random faults while 20,000 jobs run.
"""
STEPS = """\
## Steps under fire

Jobs of 20 steps (some together, some that fail and are retried) with a sleep and three waits for
signals, on four processes that are killed, ended and frozen at random; a server is restarted,
killed and cut off, too. What the called functions noted themselves is compared with the records
that the queue shows. **Again**: a recorded step called by a later holder of its job. **Stale**: a
record that is not the call of the holder it names, or was accepted from one that had lost the job.
**Changed**: a record once seen otherwise. **Signals**: not taken exactly once. A holder that has
lost its job and does not know it yet may still call a function: those calls are counted as late,
and none is recorded. [test_steps.py](../tests/chaos/test_steps.py), run by `make chaos`, counts.
"""
SIMULATION = """\
## Thousands of histories

The engine under a virtual clock, under faults that a seed decides, judged at every commit; see
[the guide](guide-simulation.md). Its teeth: bugs that were put back one at a time, and the first
seed that finds each. `python -m tests.simulation.planted_bugs 1500` looks for them, and
[test_simulation.py](../tests/simulation/test_simulation.py) replays those seeds.
"""


def files() -> dict[str, str]:
    """The page, its plots and the README, by their path from docs/."""
    sections, columns, tried = kept.read(HERE), chaos.read(), simulation.read()
    drawn = {picture: picture.draw(sections) for picture in PICTURES}
    plots = {f"{FOLDER}/{one.name}.svg": svg for one, svg in drawn.items() if svg is not None}
    readme = headline.filled((DOCS / README).read_text(), sections)
    return {PAGE: _page(sections, columns, tried, drawn), README: readme, **plots}


def _page(
    sections: Mapping[str, Section],
    columns: Mapping[str, chaos.Column],
    tried: simulation.Tried,
    drawn: Mapping[Picture, str | None],
) -> str:
    parts = [
        INTRODUCTION,
        _targets(sections),
        _missed(sections),
        _pictures(drawn),
        _matrix(columns),
        _steps(step_chaos.read()),
        _simulation(tried),
        "\n".join(["## The machine", "", *machine_table(list(sections.values()))]),
    ]
    return "\n\n".join(parts) + "\n"


def _targets(sections: Mapping[str, Section]) -> str:
    """All targets at a glance, then a row for each figure that one asks for."""
    times: list[str] = []
    judged: list[Verdict] = []
    glance: list[str] = []
    figures: list[str] = []
    for wanted in TARGETS:
        rows, verdicts = _rows(wanted, sections, times)
        judged += verdicts
        told = _sum(verdicts) + _reservation(wanted.answers, sections)
        glance.append(f"| {wanted.what} | {wanted.target} | {told} |")
        figures += [f"### {wanted.what}", "", f"Target: {wanted.target}.", "", *HEAD, *rows, ""]
    return "\n".join(
        [
            "## Targets",
            "",
            f"**{tally(judged)}**",
            "Targets apply to full-size runs; figures from quick runs are marked.",
            "",
            "| Target | Threshold | Figures |",
            "|---|---|---|",
            *glance,
            "",
            "## Figures",
            "",
            "A dash means the figure has no target. The last column refers to this list: when it",
            "was measured, at which commit, and the load average at the start (of two cores).",
            "",
            *(f"{number}. {when}" for number, when in enumerate(times, 1)),
            "",
            *figures,
        ]
    ).rstrip()


def _rows(
    wanted: Wanted, sections: Mapping[str, Section], times: list[str]
) -> tuple[list[str], list[Verdict]]:
    """What answers a target. What nothing answers says so. New moments are added to `times`."""
    rows: list[str] = []
    verdicts: list[Verdict] = []
    for answer in wanted.answers:
        queue = f"{NAMES[answer.section]}: " if answer.section in NAMES else ""
        found = answer.found(sections)
        if not found:
            verdicts.append(Verdict.NOT_MEASURED)
            what = answer.what.replace(".*", "").replace("|", " or ")
            rows.append(f"| {queue}{what} | - | - | - | **not measured** | - |")
        for result in found:
            when = sections[answer.section].when
            if when not in times:
                times.append(when)
            verdicts.append(result.verdict)
            verdict = _verdict(result) + _reservation([answer], sections)
            told = " | ".join([queue + result.what, *cells(result)[:3], verdict])
            rows.append(f"| {told} | {times.index(when) + 1} |")
    return rows, verdicts


def _reservation(answers: Sequence[Answer], sections: Mapping[str, Section]) -> str:
    """A target is for full sizes: what was measured in others is a first look."""
    sizes = {sections[one.section].sizes for one in answers if one.section in sections} - {"full"}
    return f" ({', '.join(sorted(sizes))} sizes)" if sizes else ""


def _sum(verdicts: Sequence[Verdict]) -> str:
    counts = {
        "met": verdicts.count(Verdict.MET),
        "**missed**": verdicts.count(Verdict.MISSED),
        "**not measured**": verdicts.count(Verdict.NOT_MEASURED),
    }
    return ", ".join(f"{count} {word}" for word, count in counts.items() if count)


def _verdict(result: Result) -> str:
    words = {Verdict.MISSED: "**missed**", Verdict.NOT_MEASURED: "**not measured**"}
    return words.get(result.verdict, result.verdict.value)


def _missed(sections: Mapping[str, Section]) -> str:
    bad = [result for section in sections.values() for result in section.results if not result.good]
    lines = [f"- {one.benchmark}, {one.what}: {_verdict(one)}, {_ours(one)}" for one in bad]
    why = (
        "Why: [where the time goes](../benchmarks/README.md#where-the-time-goes-where-a-target-is-"
        "missed)."
    )
    told = [*lines, "", why] if lines else ["None."]
    return "\n".join(
        ["## Missed", "", "Every measured figure that misses its threshold:", "", *told]
    )


def _ours(result: Result) -> str:
    ours, peer, ratio, target = cells(result)
    beside = "" if peer == "-" else f" beside {peer}, {ratio}"
    return f"{ours}{beside}; target {target}"


def _pictures(drawn: Mapping[Picture, str | None]) -> str:
    lines = ["## Charts"]
    for picture, svg in drawn.items():
        lines += ["", f"### {picture.title}", ""]
        lines.append(
            f"**Not measured**: `python -m benchmarks --only {picture.sections[0]}` draws it."
            if svg is None
            else f"![{picture.title}]({FOLDER}/{picture.name}.svg)"
        )
        if picture.remark:
            lines += ["", picture.remark]
    return "\n".join(lines)


def _matrix(columns: Mapping[str, chaos.Column]) -> str:
    lines = [*MATRIX.splitlines(), ""]
    if not columns:
        return "\n".join([*lines, "**Not measured**: `make chaos` counts it."])
    order = [queue for queue in NAMES if queue in columns]
    faults: dict[str, str] = {}
    for column in columns.values():
        faults |= {cell.fault: cell.counted_from for cell in column.cells}
    lines.append(f"| Fault | Timed from | {' | '.join(NAMES[queue] for queue in order)} |")
    lines.append("|---" * (len(order) + 2) + "|")
    for fault, since in faults.items():
        told = [_cell(columns[queue], fault) for queue in order]
        lines.append(f"| {fault} | {since} | {' | '.join(told)} |")
    whens = [(NAMES[queue], columns[queue].machine) for queue in order]
    lines += ["", *(f"- {name}: {_when(facts)}" for name, facts in whens)]
    return "\n".join(lines)


def _steps(counted: Mapping[str, step_chaos.Counted]) -> str:
    lines = [*STEPS.splitlines(), ""]
    if not counted:
        return "\n".join([*lines, "**Not measured**: `make chaos` counts it."])
    lines += [
        "| Queue | Jobs | Runs | Records | Calls | Late calls | Signals | Came to |",
        "|---|---|---|---|---|---|---|---|",
    ]
    order = [queue for queue in NAMES if queue in counted]
    for queue in order:
        one = counted[queue].course
        bad = "" if one.faultless else "**"
        numbers = (one.jobs, one.runs, one.records, one.calls, one.late_calls, one.signals)
        figures = " | ".join(f"{number:,}" for number in numbers)
        came = (
            f"{bad}{one.lost} lost, {one.again} again, {one.stale} stale, {one.changed} changed, "
            f"{one.unseen} signals{bad}"
        )
        lines.append(f"| {NAMES[queue]} | {figures} | {came} |")
    lines.append("")
    for queue in order:
        one = counted[queue].course
        faults = ", ".join(f"{what} {times}" for what, times in one.faults.items())
        lines.append(
            f"- {NAMES[queue]}: seed {one.seed}; {faults}; {_when(counted[queue].machine)}"
        )
    return "\n".join(lines)


def _simulation(tried: simulation.Tried) -> str:
    lines = [*SIMULATION.splitlines(), ""]
    for queue, passed in tried.passed.items():
        where = "in a file" if queue == "file" else "on a server"
        lines.append(f"- queue {where}: {passed.seeds:,} seeds pass, code {passed.code}")
    if not tried.passed:
        lines += ["**Not measured**: `make chaos` counts the seeds that pass."]
    return "\n".join([*lines, "", *simulation.table(tried)])


def _cell(column: chaos.Column, fault: str) -> str:
    cell = next((one for one in column.cells if one.fault == fault), None)
    if cell is None:
        return "**not measured**"
    if cell.why_not:
        return cell.why_not
    bad = "**" if cell.lost or cell.stale else ""
    counted = f"{cell.jobs:,} jobs, {cell.lost} lost, {cell.stale} stale"
    return f"{bad}{counted}{bad}, {cell.seconds:.1f} s"


def _when(facts: Mapping[str, str]) -> str:
    commit = facts.get("commit", "unknown")
    return f"{facts['date']}, commit {commit}, load {facts['load when started']}"


def main() -> None:
    (DOCS / FOLDER).mkdir(exist_ok=True)
    for name, text in files().items():
        (DOCS / name).write_text(text)


if __name__ == "__main__":
    main()
