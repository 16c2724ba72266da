"""`python -m benchmarks`: measure, write the report, fail when a target is missed.

What is measured replaces its section of results.json; the other sections stay. A section is
written as soon as it is there, so that an interrupted run can be taken up again with --resume.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import (
    answers,
    claim,
    cli_help,
    enqueue,
    fencing,
    head_of_line,
    http,
    idle,
    ingest_parts,
    jobs,
    kept,
    lane_use,
    latency,
    learnt_limits,
    machine,
    outage,
    outage_course,
    recovery,
    retrieval,
    steps,
    token_use,
    waiters,
)
from benchmarks.documents import hundred, search, speed
from benchmarks.kept import Section
from benchmarks.rendering import Report
from benchmarks.report import Result
from benchmarks.served import suite
from benchmarks.sizes import FULL, QUICK, TINY, Sizes

Benchmark = Callable[[Sizes, Path], list[Result]]

BENCHMARKS: dict[str, Benchmark] = {
    "jobs": jobs.run,
    "enqueue": enqueue.run,
    "latency": latency.run,
    "idle": idle.run,
    "recovery": recovery.run,
    "fencing": fencing.run,
    "claim": claim.run,
    "waiters": waiters.run,
    "lane_use": lane_use.run,
    "token_use": token_use.run,
    "learnt_limits": learnt_limits.run,
    "head_of_line": head_of_line.run,
    "outage": outage.run,
    "outage_course": outage_course.run,
    "ingest_parts": ingest_parts.run,
    "redis": suite.on_redis,
    "postgres": suite.on_postgres,
    "steps": steps.run,
    "retrieval": retrieval.run,
    "answers": answers.run,
    "ingest": speed.run,
    "ingest_pdfs": hundred.run,
    "search": search.run,
    "http": http.run,
    "cli_help": cli_help.run,
}

HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="small sizes, about 20 minutes")
    size.add_argument("--tiny", action="store_true", help="for the harness's own tests")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), metavar="NAME")
    parser.add_argument("--resume", action="store_true", help="leave out what this commit has")
    parser.add_argument("--output", type=Path, help="folder for REPORT.md and results.json")
    options = parser.parse_args(arguments)
    sizes = QUICK if options.quick else TINY if options.tiny else FULL
    # What is kept in git is measured in full, unless somebody asks for it in so many words.
    output = options.output or (HERE if sizes is FULL else HERE / "partial")

    console = Console(stderr=True)
    sections = kept.read(output)
    measured: list[Section] = []
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        facts = machine.describe(Path(folder))
        for name in options.only or BENCHMARKS:
            if options.resume and _is_there(sections.get(name), sizes, facts):
                measured.append(sections[name])
                continue
            console.print(f"[bold]{name}[/] ...", end=" ")
            start = time.monotonic()
            now = {**facts, **machine.moment()}
            results = _measure(name, sizes, Path(folder) / name)
            sections[name] = Section(name, sizes.name, now, results)
            measured.append(sections[name])
            ordered = [sections[one] for one in BENCHMARKS if one in sections]
            kept.write(output, ordered)
            Report(ordered).write(output)
            console.print(f"{time.monotonic() - start:.0f} s")
    report = Report(measured)
    report.print(Console(width=None if sys.stdout.isatty() else 160))
    console.print(f"written: {output / 'REPORT.md'}")
    return report.exit_code


def _is_there(section: Section | None, sizes: Sizes, facts: Mapping[str, str]) -> bool:
    return (
        section is not None
        and section.measured
        and (section.sizes, section.machine.get("commit")) == (sizes.name, facts.get("commit"))
    )


def _measure(name: str, sizes: Sizes, folder: Path) -> list[Result]:
    """A benchmark that breaks is a line in the report, and does not stop the others."""
    folder.mkdir()
    try:
        return BENCHMARKS[name](sizes, folder)
    except Exception as error:
        traceback.print_exc()
        return [Result(name, "could not be measured", "", None, note=f"{error!r}")]


if __name__ == "__main__":
    sys.exit(main())
