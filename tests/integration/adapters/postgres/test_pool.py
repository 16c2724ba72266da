"""No connection is left open, whenever its user is cancelled and whenever the pool is closed."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock
from penstock.adapters.postgres import PostgresQueue, database
from penstock.adapters.postgres.address import parse
from penstock.adapters.postgres.database import Database, Pool, TypedConnection
from penstock.adapters.postgres.renewal import Renewal
from penstock.errors import QueueError, QueueUnavailable
from tests.support.postgres import borrow_url, give_back, new_url
from tests.support.waiting import until

pytestmark = pytest.mark.usefixtures("patient_postgres")


class Gate:
    """Stands in for a function: calls wait at it until it is opened."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self.reached, self.opened = asyncio.Event(), asyncio.Event()

    def method(self) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self.reached.set()
            await self.opened.wait()
            return await self._function(*args, **options)

        return call


@pytest.fixture
async def pool() -> AsyncIterator[Pool]:
    pool = Pool(Database(parse(new_url())), "test", 2)
    yield pool
    await pool.close()


async def two_idle(pool: Pool) -> list[Any]:
    async with pool.connection() as one, pool.connection() as other:
        return [one, other]


async def cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def use(pool: Pool) -> None:
    async with pool.connection() as connection:
        await connection.execute("SELECT 1")


async def test_connection_is_not_left_open_by_one_who_is_cancelled_while_it_is_tried(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = await two_idle(pool)
    monkeypatch.setattr(database, "TRUSTED_SECONDS", 0.0)
    gate = Gate(TypedConnection.execute)
    monkeypatch.setattr(TypedConnection, "execute", gate.method())
    using = asyncio.create_task(use(pool))
    await gate.reached.wait()
    await cancel(using)
    assert [connection.is_closed() for connection in idle].count(True) == 1
    await pool.close()
    assert all(connection.is_closed() for connection in idle)


async def test_close_that_is_cancelled_ends_every_connection(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    idle = await two_idle(pool)
    gate = Gate(TypedConnection.close)
    monkeypatch.setattr(TypedConnection, "close", gate.method())
    closing = asyncio.create_task(pool.close())
    await gate.reached.wait()
    await cancel(closing)
    assert all(connection.is_closed() for connection in idle)


async def test_pool_is_closed_when_what_was_in_use_is_given_back(pool: Pool) -> None:
    async with pool.connection() as connection:
        closing = asyncio.create_task(pool.close())
        await until(lambda: pool.waiting, "the pool to wait")
        assert await connection.fetchval("SELECT 1") == 1
        with pytest.raises(QueueError, match="not open"):
            await use(pool)
    await closing
    assert connection.is_closed()


async def test_connection_that_is_not_given_back_is_ended(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CLOSE_SECONDS", 0.0)
    async with pool.connection() as connection:
        await pool.close()
        assert connection.is_closed()


async def test_connection_that_is_made_too_late_is_ended(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "CLOSE_SECONDS", 0.0)
    made: list[Any] = []
    connect = Database.connect

    async def noted(self: Database, purpose: str) -> Any:
        made.append(await connect(self, purpose))
        return made[0]

    gate = Gate(noted)
    monkeypatch.setattr(Database, "connect", gate.method())
    using = asyncio.create_task(use(pool))
    await gate.reached.wait()
    await pool.close()
    gate.opened.set()
    with pytest.raises(QueueError, match="not open"):
        await using
    assert made[0].is_closed()


async def test_renewal_under_way_does_not_outlive_the_membership(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connecting, ended = threading.Event(), threading.Event()

    async def connect(self: Database, purpose: str) -> Any:
        connecting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(Database, "connect", connect)
    renewal = Renewal(Database(parse(new_url())), 1, "member", 60.0)
    renewing = asyncio.create_task(asyncio.to_thread(renewal.renew, {}, []))
    await asyncio.to_thread(connecting.wait)
    await asyncio.to_thread(renewal.close)
    assert ended.is_set()
    with pytest.raises(QueueUnavailable, match="has been left"):
        await renewing
    assert renewal.renew({}, []) is False


@pytest.fixture
async def queue() -> AsyncIterator[PostgresQueue]:
    url = borrow_url("pool")
    queue = PostgresQueue(url)
    await queue.open()
    yield queue
    await queue.close()
    give_back("pool", url)


async def test_membership_ends_all_its_connections_though_one_cannot_be(
    queue: PostgresQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    member: Any = await queue.join(["work"], 1, 60.0)
    (work,) = [connection for connection, _ in member._trips._idle]

    def close() -> None:
        raise RuntimeError("as nobody expects")

    monkeypatch.setattr(member._renewal, "close", close)
    with pytest.raises(RuntimeError):
        await member.leave()
    assert work.is_closed()
    assert not member._life.path.exists()


async def test_nobody_listens_after_the_end(queue: PostgresQueue) -> None:
    app = Penstock().on_queue(queue)
    async with app:
        job = await app.enqueue("work")
    with pytest.raises(QueueError, match="not open"):
        await app.wait(job.id)
    assert [task for task in asyncio.all_tasks() if task.get_name() == "penstock-wakeups"] == []
