"""What nobody waits for any more, the server does not go on with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database, Pool
from penstock.adapters.postgres.documents import PostgresDocuments
from penstock.errors import QueueUnavailable
from penstock.ports.documents import Scope
from penstock.retrieval.search import search
from tests.conformance.document_support import MODEL, TENANT, add, ref_of, vector_of, wanted
from tests.support.postgres import Psql, documents_at, new_url, psql
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("patient_postgres")
AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE state = 'active' AND pid <> pg_backend_pid() AND position($1 in query) > 0
"""
SUN = wanted(Scope(TENANT), ["sun"], vector_of("sun"))
SOON = 40.0
"""Less than what a statement of a search may take by itself: see `patient_postgres`."""


@asynccontextmanager
async def stuck_documents() -> AsyncIterator[tuple[PostgresDocuments, Psql]]:
    """A document store whose searches wait for a lock of the test's."""
    url = new_url()
    async with documents_at(url) as documents, psql(url) as mine, psql(url) as locking:
        await add(documents, ref_of("one"), "the sun rises")
        async with locking.connection.transaction():
            await locking.execute("LOCK TABLE penstock.chunks IN ACCESS EXCLUSIVE MODE")
            yield documents, mine


async def searching(mine: Psql) -> bool:
    return bool(await mine.fetchval(AT_WORK, f"{mine.schema}.chunks"))


async def idle(mine: Psql) -> bool:
    return not await searching(mine)


async def test_cancelled_statement_ends_on_the_server() -> None:
    url = new_url()
    pool = Pool(Database(parse(url)), "test", 2)

    async def sleep() -> None:
        async with pool.connection() as connection:
            await connection.fetch("SELECT pg_sleep(600), 'abandoned'", timeout=600)

    async with psql(url) as mine:

        async def sleeps() -> bool:
            return bool(await mine.fetchval(AT_WORK, "'abandoned'"))

        async def wakes() -> bool:
            return not await sleeps()

        task = asyncio.create_task(sleep())
        await until(sleeps, "the statement to be at work")
        task.cancel()
        began = time.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        assert time.monotonic() - began < SOON, "whoever is cancelled does not wait for the server"
        await until(wakes, "the statement to end")
    await pool.close()


async def test_cancelled_search_ends_on_the_server() -> None:
    async with stuck_documents() as (documents, mine):
        task = asyncio.create_task(documents.find(SUN))
        await until(lambda: searching(mine), "the search to be at work")
        task.cancel()
        await until(lambda: idle(mine), "the search to end", patience=SOON)
        await asyncio.gather(task, return_exceptions=True)


async def test_server_knows_when_nobody_waits_for_a_search_any_more() -> None:
    """As when whoever asked is killed, or frozen, and cannot cancel anything."""
    async with stuck_documents() as (documents, mine):
        began = time.monotonic()
        with pytest.raises(QueueUnavailable, match="did not answer in time"):
            await documents.find(SUN._replace(seconds=0.2))
        assert 0.2 < time.monotonic() - began < SOON
        assert await idle(mine)


async def test_search_ends_when_its_time_is_up() -> None:
    async def embed(question: str) -> bytes:
        return vector_of(question)

    async with stuck_documents() as (documents, mine):
        began = time.monotonic()
        end = asyncio.get_running_loop().time() + 0.3
        asked = search(documents.find, "sun", Scope(TENANT), model=MODEL, embed=embed, until=end)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asked, 0.3)
        assert time.monotonic() - began < SOON
        await until(lambda: idle(mine), "the search to end", patience=SOON)
