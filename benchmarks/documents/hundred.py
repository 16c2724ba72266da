"""A hundred PDFs at once, then ten times as many: all complete, in no more memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.documents import runs
from benchmarks.documents.embedder import SECONDS, Embedder
from benchmarks.report import AtLeast, AtMost, Better, Figure, Result, Target
from benchmarks.sizes import Sizes

NAME = "PDFs of 10 pages at once"
TIMES = 10
FLAT = 1.25
"""How many times the memory ten times as many documents may take."""
WORK_SECONDS = 10.0
POINTS = 100


def run(sizes: Sizes, folder: Path) -> list[Result]:
    count = sizes.pdfs
    few = runs.write_pdfs(folder / "few", count)
    many = runs.write_pdfs(folder / "many", count * TIMES)
    with Embedder() as embedder:
        first = runs.ours(folder / "first", few, embedder)
        second = runs.ours(folder / "second", many, embedder)
    note = (
        f"About 5,000 tokens each, three languages; an embedder of {1000 * SECONDS:g} ms. "
        f"Uploaded at once: {first.rate:.1f} documents/s."
    )
    flat = (
        f"All processes: {first.peak:.0f} MB for {count}, {second.peak:.0f} MB for "
        f"{count * TIMES}, over {second.told['seconds']:.0f} s; in the second half "
        f"{second.growth:+.1f} MB a minute. {second.rate:.1f} documents/s."
    )
    least, most = AtLeast(count, "documents"), AtMost(WORK_SECONDS, "s")
    return [
        _result("completed", "documents", first.told["documents"], note, least, Better.MORE),
        _result("work on each, average", "s", first.told["work"], note, most),
        _result("accepted to searchable, p50", "s", first.median("waits"), note),
        _result("accepted to searchable, the last", "s", max(first.told["waits"]), note),
        _result(
            f"memory with {TIMES} times the documents",
            "times",
            second.peak / first.peak,
            flat,
            AtMost(FLAT, "times"),
            series={
                f"{one.told['documents']:,} documents": _course(one) for one in (first, second)
            },
        ),
        _result(
            f"completed of {TIMES} times as many",
            "documents",
            second.told["documents"],
            flat,
            AtLeast(count * TIMES, "documents"),
            Better.MORE,
        ),
    ]


def _result(
    what: str,
    unit: str,
    value: float,
    note: str = "",
    target: Target | None = None,
    better: Better = Better.LESS,
    series: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> Result:
    figure = Figure.of("penstock", [value])
    return Result(
        NAME, what, unit, figure, better=better, target=target, note=note, series=series or {}
    )


def _course(run: runs.Run) -> list[tuple[float, float]]:
    """(documents that can be found, megabytes of all processes), as often as a plot needs."""
    found = sorted(run.told["found"])
    every = max(1, len(run.memory) // POINTS)
    return [(bisect_right(found, at), megabytes) for at, megabytes in run.memory[::every]]
