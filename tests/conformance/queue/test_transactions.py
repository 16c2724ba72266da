"""Steps that are a transaction: effect and record are one commit, or neither is made."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import JobContext, Penstock
from penstock.adapters.postgres.queue import PostgresQueue
from penstock.errors import ConfigError, ResultTooLarge, ValidationError
from tests.conformance.payer import INSERT, payer
from tests.conformance.queue.test_events import running
from tests.conformance.queue.test_steps import row as step_row
from tests.conformance.support import KIND, LONG, Ledger, claim_one, handed_back, new_jobs, settle
from tests.support.postgres import execute
from tests.support.waiting import PATIENCE

ROOT = Path(__file__).parents[3]


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Ledger]:
    """A PostgreSQL queue, with a table of the user's beside it."""
    ledger = Ledger("postgres", tmp_path)
    await (await ledger.open()).exists()
    execute(ledger.url, "CREATE TABLE penstock.effects (n integer PRIMARY KEY DEFERRABLE)")
    yield ledger
    execute(ledger.url, "DROP TABLE penstock.effects")
    await ledger.close()


async def opened(shared: Ledger) -> PostgresQueue:
    queue = await shared.open()
    assert isinstance(queue, PostgresQueue)
    return queue


async def effects(queue: PostgresQueue) -> list[int]:
    rows = await queue.fetch("SELECT n FROM penstock.effects ORDER BY n")
    return [n for (n,) in rows]


def app_on(queue: PostgresQueue) -> Penstock:
    made = Penstock("sqlite:///not-used.db", lease_seconds=LONG, retry_base_seconds=0.01)
    return made.on_queue(queue)


@pytest.mark.parametrize("die", ["before", "after"])
async def test_a_process_killed_around_the_commit_leaves_both_or_neither(
    shared: Ledger, die: str
) -> None:
    queue = await opened(shared)
    app = payer(queue)
    job = await app.enqueue(KIND, {"amount": 5})
    killed = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.conformance.payer", shared.url, die, cwd=ROOT
    )
    async with asyncio.timeout(PATIENCE):
        assert await killed.wait() == -signal.SIGKILL

    recorded = [step.recorded for step in await app.steps(job.id)]
    assert await effects(queue) == ([] if die == "before" else [5])
    assert recorded == ([] if die == "before" else [True])

    async with running(app):
        done = await app.wait(job.id, timeout=PATIENCE)
    assert done.result == [5, 2]  # `n` is unique: to pay twice would fail
    assert await effects(queue) == [5]


async def test_a_holder_that_lost_its_lease_commits_nothing(shared: Ledger) -> None:
    queue = await opened(shared)
    member = await shared.join(queue)
    await queue.enqueue(new_jobs())
    lease = await claim_one(member)
    insert, row = queue.database.sql(INSERT), step_row("pay")

    async def effect(conn: Any) -> Any:
        await conn.execute(insert, 1)
        await settle(member, handed_back(lease))  # meanwhile
        return row

    assert await member.transact(lease, effect) is None
    assert await effects(queue) == []
    assert await queue.steps(lease.id) == []


async def test_what_the_function_raises_undoes_the_effect_and_is_retried(shared: Ledger) -> None:
    queue = await opened(shared)
    app, insert, tries = app_on(queue), queue.database.sql(INSERT), []

    async def pay(conn: Any, amount: int) -> int:
        await conn.execute(insert, amount)
        tries.append(amount)
        if len(tries) < 3:
            raise TimeoutError("its own, not the queue's")
        return amount

    @app.job(KIND)
    async def handler(ctx: JobContext) -> list[int]:
        paid = await ctx.step("pay", pay, 7, transaction=True, retries=2, timeout=PATIENCE)
        return [paid, ctx.attempt]

    async with running(app):
        job = await app.enqueue(KIND)
        assert await app.result(job.id, timeout=PATIENCE) == [7, 1]
    assert await effects(queue) == [7]
    assert [step.attempts for step in await app.steps(job.id)] == [3]


async def test_faults_of_an_effect_are_the_jobs(shared: Ledger) -> None:
    """And not those of a queue that cannot be reached, which would be tried for ever."""
    queue = await opened(shared)
    app, insert = app_on(queue), queue.database.sql(INSERT)

    async def late(conn: Any) -> None:
        await conn.execute("SET CONSTRAINTS ALL DEFERRED")
        await conn.execute(insert, 1)

    async def careless(conn: Any) -> None:
        try:
            await conn.execute(insert, 1)
        except Exception:
            return

    async def at_once(conn: Any) -> None:
        await conn.execute(insert, 1)

    async def large(conn: Any) -> str:
        await conn.execute(insert, 2)
        return "x" * 1_048_576

    @app.job(KIND, max_retries=0)
    async def handler(ctx: JobContext) -> list[str]:
        await ctx.step("first", at_once, transaction=True)
        errors = []
        for fault in (late, careless, at_once, large):
            try:
                await ctx.step(fault.__name__, fault, transaction=True)
            except Exception as error:
                errors.append(type(error).__name__)
        return errors

    async with running(app):
        job = await app.enqueue(KIND)
        unique = "UniqueViolationError"
        errors = [unique, "InFailedSQLTransactionError", unique, ResultTooLarge.__name__]
        assert await app.result(job.id, timeout=PATIENCE) == errors
    assert await effects(queue) == [1]
    assert [step.name for step in await app.steps(job.id) if step.recorded] == ["first"]


async def test_a_job_enqueued_in_the_transaction_comes_with_it(shared: Ledger) -> None:
    queue = await opened(shared)
    app = app_on(queue)

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        async def order(conn: Any, works: bool) -> None:
            await ctx.enqueue("other", {"works": works}, conn=conn)
            if not works:
                raise ValueError("undone")

        with pytest.raises(ValueError, match="undone"):
            await ctx.step("order", order, False, transaction=True)
        await ctx.step("order", order, True, transaction=True)

    async with running(app):
        job = await app.enqueue(KIND)
        await app.result(job.id, timeout=PATIENCE)
    assert [found.payload for found in await app.jobs(kind="other")] == [{"works": True}]


async def test_other_queues_and_plain_functions_refuse_at_the_call(ledger: Ledger) -> None:
    queue = await ledger.open()
    app = Penstock("sqlite:///not-used.db", lease_seconds=LONG).on_queue(queue)
    possible = ledger.backend_name == "postgres"
    called: list[str] = []

    @app.job(KIND, max_retries=0)
    async def handler(ctx: JobContext) -> str:
        with pytest.raises(ValidationError if possible else ConfigError) as refused:
            ctx.step("pay", called.append, "paid", transaction=True)
        return str(refused.value)

    async with running(app):
        job = await app.enqueue(KIND)
        told = await app.result(job.id, timeout=PATIENCE)
    assert ("its function is async" if possible else "is for a queue in PostgreSQL") in told
    assert not called
