"""The parts of ingestion: what masking finds and where it cries wolf, and how fast each part is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.report import AtMost, Better, Figure, Result
from benchmarks.sizes import Sizes
from penstock.documents.chunk import chunk
from penstock.documents.mask import mask
from penstock.documents.parse.pool import ParserPool
from tests.support import documents
from tests.support.pii import LANGUAGES, figures, handwritten_negatives, labelled

MEGABYTE = 1_000_000


def run(sizes: Sizes, folder: Path) -> list[Result]:
    return [*_finding(), *_speed(sizes.rounds), _pdf(sizes.rounds)]


def _finding() -> list[Result]:
    found = figures()
    results = []
    for language in LANGUAGES:
        values = sum(count for (_, of), count in found.all.items() if of == language)
        missed = values - sum(count for (_, of), count in found.found.items() if of == language)
        results.append(
            Result(
                "masking",
                f"values missed, {language}",
                "values",
                Figure.of("penstock", [missed]),
                better=Better.LESS,
                target=AtMost(0, "values"),
                note=f"Of {values} of all kinds, each masked whole and as what it is.",
            )
        )
    alarms = Figure.of("penstock", [found.alarms_per_10_000_tokens])
    note = f"On {found.negative_tokens:,} tokens of hard negatives."
    unit = "per 10,000 tokens"
    target = AtMost(1, unit)
    results.append(Result("masking", "false alarms", unit, alarms, None, Better.LESS, target, note))
    return results


def _speed(rounds: int) -> list[Result]:
    line = "\n".join([*(one.text for one in labelled()), *handwritten_negatives()])
    hard = line * (MEGABYTE // len(line.encode()) + 1)
    prose = "\n\n".join(documents.SENTENCES)
    prose *= MEGABYTE // len(prose.encode()) + 1
    return [
        Result("ingest parts", what, "MB/s", Figure.of("penstock", _rates(work, text, rounds)))
        for what, work, text in (
            ("masking, prose in three languages", mask, prose),
            ("masking, the labelled set", mask, hard),
            ("chunking, prose in three languages", chunk, prose),
        )
    ]


def _rates(work: Callable[[str], object], text: str, rounds: int) -> list[float]:
    size = len(text.encode()) / MEGABYTE
    rates = []
    for _ in range(rounds):
        start = time.perf_counter()
        work(text)
        rates.append(size / (time.perf_counter() - start))
    return rates


def _pdf(rounds: int) -> Result:
    data = documents.pdf(pages=50, lines=50)

    async def measure() -> list[float]:
        spent = []
        async with ParserPool(size=1) as pool:
            await pool.parse(documents.pdf(pages=1))  # the child starts and loads PDFium
            for _ in range(rounds):
                start = time.perf_counter()
                parsed = await pool.parse(data)
                spent.append(1000 * (time.perf_counter() - start))
                assert len(parsed.pages) == 50
        return spent

    figure = Figure.of("penstock", asyncio.run(measure()))
    note = "In a child that is there already; 50 lines a page."
    return Result(
        "ingest parts", "parsing a PDF of 50 pages", "ms", figure, None, Better.LESS, None, note
    )
