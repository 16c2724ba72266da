"""Receipts: rows of the steps of a job, recorded under its lease, with a secret of the queue."""

import asyncio

import pytest

from penstock import JobContext, Penstock
from penstock.ports.queue import JobQueue, Lease, Member, StepWrite
from penstock.ports.steps import SECRET_BYTES, StepRow
from tests.conformance.support import (
    KIND,
    Ledger,
    add_one,
    claim_one,
    failed,
    handed_back,
    one,
    settle,
)
from tests.support.counting_server import CountingServer
from tests.support.waiting import PATIENCE, until

DETAILS = '{"model":"größer","seconds":0.25,"tokens_in":7}'


def receipt(key: str = "a", result: str | None = '{"text":"ä\\n"}', **changes: object) -> StepRow:
    made = StepRow(key, "llm.plan", "hash", 1, "v1", "llm.plan", 1, 10.5, 20.25, result, DETAILS)
    return made._replace(**changes)  # type: ignore[arg-type]


async def begun(queue: JobQueue, member: Member) -> Lease:
    await add_one(queue)
    return await claim_one(member)


async def record(member: Member, lease: Lease, *rows: StepRow) -> list[bool]:
    return await member.record([StepWrite(lease, row) for row in rows])


async def test_a_receipt_reads_back_as_it_was_written_beside_steps(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    step = receipt("b", "7", name="step", started_at=11.0, details=None)
    large = receipt("c", None, started_at=12.0)

    assert await record(member, lease, receipt(), step, large) == [True] * 3

    assert await queue.steps(lease.id) == [receipt(), step, large]


async def test_a_receipt_that_is_void_keeps_its_answer(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    void = receipt(details='{"void":true}')
    await record(member, lease, receipt())

    assert await record(member, lease, void) == [True]

    assert await queue.steps(lease.id) == [void]


async def test_who_lost_the_lease_leaves_no_receipt_and_makes_none_void(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    await record(member, lease, receipt())
    await settle(member, handed_back(lease))

    assert await record(member, lease, receipt(details="{}"), receipt("b")) == [False, False]

    assert await queue.steps(lease.id) == [receipt()]


@pytest.mark.parametrize(("from_scratch", "kept"), [(False, 1), (True, 0)])
async def test_redrive_keeps_receipts_unless_from_scratch(
    queue: JobQueue, member: Member, from_scratch: bool, kept: int
) -> None:
    lease = await begun(queue, member)
    await record(member, lease, receipt())
    await settle(member, failed(lease))

    await queue.redrive(one(lease), from_scratch=from_scratch)

    assert len(await queue.steps(lease.id)) == kept


async def test_a_secret_is_made_once_for_all_who_ask(ledger: Ledger, queue: JobQueue) -> None:
    other = await ledger.open()

    found = await asyncio.gather(*(one.secret("a") for one in (queue, other) for _ in range(4)))

    assert len(set(found)) == 1
    assert len(found[0]) == SECRET_BYTES
    assert await queue.secret("b") != found[0]
    assert await other.secret("a") == found[0]


@pytest.mark.real
async def test_a_job_that_is_stopped_goes_on_from_its_receipts(queue: JobQueue) -> None:
    app = Penstock("sqlite:///not-used.db", retry_base_seconds=0.01, lease_seconds=600.0).on_queue(
        queue
    )
    texts: list[list[str]] = []
    with CountingServer() as server:

        @app.job(KIND)
        async def handler(ctx: JobContext) -> int:
            paths = ("/a", "/b", "/a")
            asked = [ctx.http.get(server.url(path), lane="api", record=True) for path in paths]
            texts.append([answer.text for answer in await asyncio.gather(*asked)])
            if ctx.token == 1:
                await asyncio.Event().wait()
            if ctx.attempt == 1:
                raise ConnectionError("what it was answered is of no use")
            return len(server.hits)

        job = await app.enqueue(KIND)
        first = app.orchestrator()
        await first.start()
        await until(lambda: bool(texts), "it was answered")
        await first.stop(grace=0)
        second = app.orchestrator()
        await second.start()
        try:
            # The second run asks nothing and fails, so the third one asks everything anew.
            assert await app.result(job.id, timeout=PATIENCE) == 6
        finally:
            await second.stop()
        assert len(texts) == 3
    steps = await app.steps(job.id)
    assert [step.kind for step in steps] == ["receipt"] * 6
    assert sorted(step.receipt is not None and step.receipt.void for step in steps) == [
        *([False] * 3),
        *([True] * 3),
    ]
