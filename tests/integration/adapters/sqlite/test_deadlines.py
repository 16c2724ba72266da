"""What nobody waits for any more, SQLite does not go on with."""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.sqlite import database
from penstock.adapters.sqlite.documents import SqliteDocuments
from penstock.adapters.sqlite.documents import search as find
from penstock.adapters.sqlite.file import SqliteFile
from penstock.model.document import Hit
from penstock.ports.documents import DocumentQuery, Scope
from penstock.retrieval.search import search
from tests.conformance.document_support import (
    MODEL,
    TENANT,
    add,
    nearest,
    ref_of,
    texts,
    vector_of,
    wanted,
)
from tests.support.waiting import PATIENCE

ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
SUN = wanted(Scope(TENANT), ["sun"], vector_of("sun"))


@pytest.fixture
async def file(tmp_path: Path) -> AsyncIterator[SqliteFile]:
    file = SqliteFile(f"sqlite:///{tmp_path}/documents.db", durable=False)
    await file.open()
    yield file
    await file.close()


@pytest.fixture
async def documents(file: SqliteFile) -> AsyncIterator[SqliteDocuments]:
    documents = SqliteDocuments(file)
    await documents.open()
    await add(documents, ref_of("one"), "the sun rises")
    yield documents
    await documents.close()


class Endless:
    """Makes the full text search of the next search endless, until it is told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.times = 0
        self._loop = asyncio.get_running_loop()
        self._by_text: Callable[..., list[Hit]] = find.by_text
        monkeypatch.setattr(find, "by_text", self)

    def __call__(
        self, connection: sqlite3.Connection, wanted: DocumentQuery, documents: Sequence[int] | None
    ) -> list[Hit]:
        self.times += 1
        if self.times == 1:
            self._loop.call_soon_threadsafe(self.begun.set)
            connection.execute(ENDLESS).fetchone()
        return self._by_text(connection, wanted, documents)


async def test_cancelled_search_frees_its_thread_and_its_connection(
    documents: SqliteDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = Endless(monkeypatch)
    searching = asyncio.create_task(documents.find(SUN))
    await endless.begun.wait()
    waiting = [asyncio.create_task(documents.find(SUN)) for _ in range(3)]
    waiting[0].cancel()
    searching.cancel()
    async with asyncio.timeout(PATIENCE):
        for following in waiting[1:]:
            findings = await following
            assert (texts(findings), nearest(findings)) == (["the sun rises"],) * 2
    assert endless.times == 3, "what was cancelled while it waited is not begun"


async def test_search_ends_with_its_deadline(
    documents: SqliteDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def embed(question: str) -> bytes:
        return vector_of(question)

    endless = Endless(monkeypatch)
    with pytest.raises(TimeoutError):  # noqa: PT012
        async with asyncio.timeout(PATIENCE) as limit:
            asking = search(documents.find, "sun", Scope(TENANT), model=MODEL, embed=embed)
            searching = asyncio.ensure_future(asking)
            await endless.begun.wait()
            limit.reschedule(asyncio.get_running_loop().time() + 0.05)
            await searching
    async with asyncio.timeout(PATIENCE):
        assert texts(await documents.find(SUN)) == ["the sun rises"]


async def test_search_is_answered_before_the_ones_behind_it(
    documents: SqliteDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not together with one that came at the same moment and does not end."""
    endless = Endless(monkeypatch)
    endless.times = -1  # the second is endless
    quick, stuck = (asyncio.create_task(documents.find(SUN)) for _ in range(2))
    async with asyncio.timeout(PATIENCE):
        assert texts(await quick) == ["the sun rises"]
    stuck.cancel()


async def test_cancelled_read_of_the_queue_ends_too(file: SqliteFile) -> None:
    loop, begun = asyncio.get_running_loop(), asyncio.Event()

    def read(connection: sqlite3.Connection) -> Any:
        loop.call_soon_threadsafe(begun.set)
        return connection.execute(ENDLESS).fetchone()

    reading = asyncio.create_task(file.read(read))
    await begun.wait()
    reading.cancel()
    async with asyncio.timeout(PATIENCE):
        assert await file.read(lambda connection: connection.execute("SELECT 7").fetchone()) == (7,)


async def test_what_later_searches_need_is_not_interrupted(
    file: SqliteFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "STEPS", 10)
    reader = file.another_reader("test")
    loop, begun, left = asyncio.get_running_loop(), asyncio.Event(), threading.Event()
    loaded: list[tuple[int]] = []

    def load(connection: sqlite3.Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        left.wait()
        with reader.uninterrupted():
            loaded.append(
                connection.execute(ENDLESS.replace("FROM n)", "FROM n LIMIT 99)")).fetchone()
            )
        connection.execute(ENDLESS).fetchone()

    loading = reader.submit(load)
    await begun.wait()
    loading.cancel()
    left.set()
    async with asyncio.timeout(PATIENCE):
        await reader.stop()
    assert loaded == [(99,)]
