"""Documents a second beside LlamaIndex's IngestionPipeline, with the same embedder.

Both start with Markdown files on disk, for which neither needs a library, and count tokens alike.
Penstock accepts each durably, parses it in a child, masks it, cuts it, embeds it and publishes it
to full text and vectors. LlamaIndex splits and embeds. The target is judged where both store what
they made, so that it survives SIGKILL and can be searched afterwards; see
`contenders/llamaindex_stores.py`. What LlamaIndex does in memory alone has a line of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.documents import runs
from benchmarks.documents.embedder import BATCH, PARALLEL, SECONDS, Embedder
from benchmarks.documents.runs import Run
from benchmarks.report import Better, Cell, Figure, Result, Target, TimesThePeer
from benchmarks.served import peers
from benchmarks.served.servers import Postgres
from benchmarks.sizes import Sizes
from penstock.documents.chunk import ChunkSettings
from penstock.documents.tokens import TOKEN

FACTOR = 2
NAME = "ingestion, documents of 10 pages"
Settings = Mapping[str, Any]

LOOP: Settings = {"asynchronous": True, "processes": None, "requests": PARALLEL, "together": None}
TWO: Settings = {**LOOP, "processes": 2, "requests": 2}
BLOCKING: Settings = {"asynchronous": False, "processes": 4, "requests": 1, "together": None}
IN_MEMORY: Mapping[str, Settings] = {
    "its event loop": LOOP,
    "2 processes of 2 requests": TWO,
    "4 processes": BLOCKING,
}
"""What is tried of LlamaIndex; the best counts. None has more than PARALLEL requests under way."""
STORED: Mapping[str, Settings] = {
    "its event loop, all documents at once": LOOP,
    "its event loop, 50 documents at a time": {**LOOP, "together": 50},
    "its event loop, 20 documents at a time": {**LOOP, "together": 20},
    "2 processes of 2 requests, all documents at once": TWO,
    "2 processes of 2 requests, 50 documents at a time": {**TWO, "together": 50},
}
"""How many documents are stored, and so lost, together is part of what is tried."""


@dataclass(slots=True, frozen=True)
class Contest:
    """Who is compared with whom."""

    where: str
    store: str | None
    """Of LlamaIndex."""
    package: str
    tried: Mapping[str, Settings]
    target: Target | None
    said: str
    """What each side has after SIGKILL."""
    url: Callable[[], str | None] = lambda: None
    """An empty place on a server for each run; None: a file."""


class Outcome(NamedTuple):
    mine: list[Run]
    theirs: list[Run]
    best: str | None
    """The setting that LlamaIndex was fastest with; None where it is not installed."""


ACCEPTED = (
    "After SIGKILL ours goes on by itself: no accepted document is lost, no stored batch embedded "
    "again."
)
IN_FILES = (
    f"{ACCEPTED} LlamaIndex has the batches of documents that were written to its document store "
    "and vector store, of JSON, which it writes whole each time and which start empty here; "
    "the rest has to be given to it again. It has no full text."
)
ON_POSTGRES = (
    f"{ACCEPTED} LlamaIndex has the batches of documents that were committed; the rest has to be "
    "given to it again. Both have an index of vectors (HNSW, half precision), ours full text too. "
    "The server's own processor time and memory are not counted."
)
NOT_STORED = "After SIGKILL LlamaIndex has nothing, so no target is judged by this."


def run(sizes: Sizes, folder: Path) -> list[Result]:
    documents = runs.write_markdown(folder / "documents", sizes.documents)
    core, target = "llama-index-core", TimesThePeer(FACTOR)
    with ExitStack() as held:
        server, embedder = held.enter_context(Postgres()), held.enter_context(Embedder())
        contests = [
            Contest("stored in files", "files", core, STORED, target, IN_FILES),
            Contest(
                "stored in PostgreSQL",
                "postgres",
                "llama-index-vector-stores-postgres",
                STORED,
                target,
                ON_POSTGRES,
                server.fresh,
            ),
            Contest("LlamaIndex in memory only", None, core, IN_MEMORY, None, NOT_STORED),
        ]
        results = []
        for number, contest in enumerate(contests):
            outcome = _hold(contest, sizes, folder / f"{number}", documents, embedder)
            results += _results(contest, outcome, sizes)
        return results


def _hold(
    contest: Contest, sizes: Sizes, folder: Path, documents: Path, embedder: Embedder
) -> Outcome:
    folder.mkdir()

    def peer(name: str, setting: str) -> Run:
        settings = {**_common(), **contest.tried[setting], "store": contest.store}
        settings["url"] = contest.url()
        return runs.llamaindex(folder / name, documents, embedder, settings)

    outcome = Outcome([], [], None)
    if contest.package in peers.versions():
        tried = {name: peer(f"try-{at}", name) for at, name in enumerate(contest.tried)}
        outcome = Outcome([], [], max(tried, key=lambda name: tried[name].rate))
    for number in range(sizes.rounds):
        where = folder / f"ours-{number}"
        outcome.mine.append(runs.ours(where, documents, embedder, contest.url()))
        if outcome.best:
            outcome.theirs.append(peer(f"peer-{number}", outcome.best))
    return outcome


def _common() -> Settings:
    chunk = ChunkSettings()
    return {
        "batch": BATCH,
        "chunk_tokens": chunk.size,
        "chunk_overlap": chunk.overlap,
        "token": TOKEN.pattern,
    }


def _results(contest: Contest, outcome: Outcome, sizes: Sizes) -> list[Result]:
    mine, theirs, best = outcome
    note = f"{contest.said} {_note(sizes, mine[-1])}"
    if best:
        note += (
            f" LlamaIndex at its best of {len(contest.tried)} settings: {best}, without its cache; "
            f"{theirs[-1].told['chunks']} chunks in {theirs[-1].asked.requests} requests."
        )
    lines: Sequence[tuple[str, str, Callable[[Run], float], Better, Target | None]] = (
        ("documents made searchable", "documents/s", _rate, Better.MORE, contest.target),
        ("processor time a document", "ms", _milliseconds, Better.LESS, None),
        ("memory of all processes at its peak", "MB", _peak, Better.LESS, None),
    )
    return [
        Result.beside(
            NAME,
            f"{what}, {contest.where}",
            unit,
            Figure.of("penstock", [figure(one) for one in mine]),
            {"LlamaIndex": _cell([figure(one) for one in theirs])},
            better,
            target,
            note,
        )
        for what, unit, figure, better, target in lines
    ]


def _rate(run: Run) -> float:
    return run.rate


def _milliseconds(run: Run) -> float:
    return run.milliseconds


def _peak(run: Run) -> float:
    return run.peak


def _cell(values: list[float]) -> Cell:
    return Figure.of("LlamaIndex", values) if values else "not measured: not installed"


def _note(sizes: Sizes, last: Run) -> str:
    return (
        f"{sizes.documents} Markdown files in three languages, chunks of 500 tokens, 128 shared; "
        f"one embedder for both, {1000 * SECONDS:g} ms a request, at most {BATCH} texts in one and "
        f"{PARALLEL} under way. Ours is masked and published to full text and vectors: "
        f"{last.told['chunks']} chunks in {last.asked.requests} requests."
    )
