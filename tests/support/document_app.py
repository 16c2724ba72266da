"""Documents in a queue's own file, with an embedder on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.model.document import Document, DocumentState
from penstock.model.step import Step
from tests.support.embedder import EmbedderServer
from tests.support.postgres import new_url, psql
from tests.support.worker_processes import Farm

SOON = 60.0
"""Seconds a document may take; five times what it should."""
LANE: dict[str, Any] = {
    "min_interval_seconds": 0.0,
    "max_parallel": 4,
    "breaker_first_seconds": 0.1,
    "breaker_cap_seconds": 1.0,
    "probe_seconds": 0.3,
    "timeout_seconds": SOON,
}
"""A request that is not answered is given up only where a test is about that."""
LEASE_SECONDS = 30.0
"""A process that stands still for seconds is not dead. One that is killed is noticed at once: its
file or its connection tells."""
BOTH = {
    "documents": "SELECT tenant, collection, id, live = generation, state, stage, progress,"
    " message, title, mime, size, source, metadata, digest, chunks, masked, error"
    " FROM penstock.documents",
    "texts": "SELECT text FROM penstock.texts",
    "chunks": 'SELECT ordinal, text, start, "end", fresh, tokens, pages, section, hash, terms,'
    " script FROM penstock.chunks ORDER BY ordinal",
    "jobs left": "SELECT kind, state FROM penstock.jobs WHERE state <> 'completed'",
}
TABLES = {
    "sqlite": BOTH
    | {
        "terms": "SELECT terms, scope FROM chunk_terms ORDER BY rowid",
        "vectors": "SELECT tenant, model, hash, vector FROM vectors ORDER BY hash",
    },
    "postgres": BOTH
    | {
        "terms": "SELECT * FROM penstock.term_counts ORDER BY lexeme",
        "counts": "SELECT name, chunks, terms FROM penstock.tenants",
        "vectors": "SELECT t.name, m.name, hash, vector::text FROM penstock.vectors AS v"
        " JOIN penstock.tenants AS t ON t.number = tenant"
        " JOIN penstock.models AS m ON m.number = model ORDER BY hash",
    },
}


class Shelf:
    """A document store, who works on it, and what is in its files."""

    def __init__(self, farm: Farm, embedder: EmbedderServer) -> None:
        self.farm = farm
        self.embedder = embedder
        farm.settings |= {
            "lease_seconds": LEASE_SECONDS,
            "config_file": embedder.config(farm.folder),
            "chunk_tokens": 50,
            "chunk_overlap": 12,
            "parsers": 1,
            "lanes": {"embedder": LANE},
        }

    @asynccontextmanager
    async def running(self, **settings: Any) -> AsyncIterator[Penstock]:
        """An app that works on documents in the test's own process."""
        app = self.farm.app("documents", **settings)
        async with app.running():
            yield app

    @property
    def store(self) -> str:
        return "sqlite" if self.farm.url.startswith("sqlite:") else "postgres"

    async def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Look into the store itself; `penstock.` stands before the name of a table."""
        if self.store == "sqlite":
            return self.farm.query(statement.replace("penstock.", ""))
        async with psql(self.farm.url) as mine:
            return [tuple(row) for row in await mine.fetch(statement)]

    async def count(self, table: str) -> int:
        ((count,),) = await self.rows(f"SELECT count(*) FROM penstock.{table}")
        return int(count)

    def blobs(self) -> list[Path]:
        return [path for path in self.farm.folder.glob("jobs.db-blobs/*/*") if path.is_file()]

    async def stored(self) -> dict[str, Any]:
        """All that matters of what is stored, past every layer under test."""
        tables = TABLES[self.store].items()
        return {name: await self.rows(statement) for name, statement in tables}


STORES = ("postgres", "sqlite")


def shelf_in(store: str, folder: Path, embedder: EmbedderServer) -> Shelf:
    """Jobs and documents in one place."""
    if store == "sqlite":
        return Shelf(Farm(folder), embedder)
    return Shelf(Farm(folder, url=new_url(), blobs=f"{folder}/jobs.db-blobs"), embedder)


async def receipts_of(app: Penstock, kind: str) -> list[Step]:
    """Every receipt of the jobs of a kind, in the order of the calls."""
    jobs = await app.jobs(kind=kind, limit=1000)
    steps = [step for job in jobs for step in await app.steps(job.id)]
    return sorted((one for one in steps if one.kind == "receipt"), key=lambda one: one.started_at)


async def completed(app: Penstock, name: str, **where: str) -> Document:
    document = await app.documents.wait(name, timeout=SOON, **where)
    assert document.state is DocumentState.COMPLETED, document
    return document


async def failed(app: Penstock, name: str) -> Document:
    document = await app.documents.wait(name, timeout=SOON)
    assert document.state is DocumentState.FAILED, document
    return document


async def found(app: Penstock, question: str) -> list[str]:
    """The texts that a search finds by their words."""
    result = await app.documents.search(question)
    return [one.text for one in result.passages if one.why.text_rank is not None]
