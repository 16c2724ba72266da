"""Steps: recorded under a lease that stands, and kept for as long as their job."""

import asyncio
from collections.abc import Callable

import pytest

from penstock import JobContext, Penstock
from penstock.ports.queue import JobQueue, Lease, Member, StepWrite
from penstock.ports.steps import StepRow
from tests.conformance.support import (
    KIND,
    End,
    Ledger,
    add_one,
    cancel_seen,
    claim,
    claim_one,
    completed,
    failed,
    handed_back,
    one,
    released,
    retry,
    settle,
)
from tests.support.waiting import PATIENCE


def row(key: str, result: str | None = '"done"', **changes: object) -> StepRow:
    finished_at = None if result is None else 20.25
    made = StepRow(key, f"step {key}", "hash", 1, "v1", None, 1, 10.5, finished_at, result)
    return made._replace(**changes)  # type: ignore[arg-type]


async def begun(queue: JobQueue, member: Member, **options: object) -> Lease:
    """A job that runs."""
    await add_one(queue, **options)
    return await claim_one(member)


async def record(member: Member, lease: Lease, *rows: StepRow) -> list[bool]:
    return await member.record([StepWrite(lease, one) for one in rows])


async def test_a_recorded_step_reads_back_as_it_was_written(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    first = row("a", '{"text":"ä\\n\\u0000 \\"quoted\\"","n":1.25}', lane="llm", attempts=3)
    later = row("b", "null", started_at=11.0, occurrence=2, arguments="other", version="")

    assert await record(member, lease, later, first) == [True, True]

    assert await queue.steps(lease.id) == [first, later]
    assert await queue.steps("0" * 32) == []


async def test_steps_of_many_jobs_are_recorded_in_one_trip(queue: JobQueue, member: Member) -> None:
    leases = [await begun(queue, member) for _ in range(3)]

    stored = await member.record([StepWrite(lease, row("a", lease.payload)) for lease in leases])

    assert stored == [True] * 3
    for lease in leases:
        assert await queue.steps(lease.id) == [row("a", lease.payload)]


async def test_recording_again_changes_nothing(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)

    assert await record(member, lease, row("a")) == [True]
    assert await record(member, lease, row("a")) == [True]

    assert await queue.steps(lease.id) == [row("a")]


async def test_a_count_of_attempts_leaves_a_result_as_it_is(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    await record(member, lease, row("a", None, attempts=1))
    assert await queue.steps(lease.id) == [row("a", None, attempts=1)]
    await record(member, lease, row("a", "7", attempts=2))

    assert await record(member, lease, row("a", None, attempts=2)) == [True]

    (stored,) = await queue.steps(lease.id)
    assert (stored.result, stored.finished_at, stored.attempts) == ("7", 20.25, 2)


async def lost_to_a_cancel(ledger: Ledger, queue: JobQueue, member: Member, lease: Lease) -> None:
    await queue.cancel(one(lease))


async def lost_to_its_end(ledger: Ledger, queue: JobQueue, member: Member, lease: Lease) -> None:
    await settle(member, completed(lease))


async def lost_to_a_new_claim(
    ledger: Ledger, queue: JobQueue, member: Member, lease: Lease
) -> None:
    await settle(member, handed_back(lease))
    assert [again.id for again in await claim(member)] == [lease.id]


async def lost_to_a_takeover(ledger: Ledger, queue: JobQueue, member: Member, lease: Lease) -> None:
    other = await ledger.join(queue, "other")
    ledger.lapse(member)
    await other.upkeep()


LOSSES = [lost_to_a_cancel, lost_to_its_end, lost_to_a_new_claim, lost_to_a_takeover]


@pytest.mark.parametrize("lose", LOSSES)
async def test_a_holder_that_lost_its_lease_records_nothing(
    ledger: Ledger, queue: JobQueue, member: Member, lose: Callable[..., object]
) -> None:
    lease, other = await begun(queue, member), await begun(queue, member, kind=KIND)
    await record(member, lease, row("a"))
    await lose(ledger, queue, member, lease)  # type: ignore[misc]
    still_held = lose is not lost_to_a_takeover

    stored = await member.record([StepWrite(lease, row("b")), StepWrite(other, row("b"))])

    assert stored == [False, still_held]
    assert not await member.drop_steps(lease, ["a"])
    assert [step.key for step in await queue.steps(lease.id)] == ["a"]


async def test_nobody_records_for_another_member(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    other = await ledger.join(queue)

    assert await record(other, lease, row("a")) == [False]
    assert await record(member, lease._replace(id="0" * 32), row("a")) == [False]
    assert await record(member, lease._replace(token=lease.token + 1), row("a")) == [False]
    assert await queue.steps(lease.id) == []


@pytest.mark.parametrize("end", [retry, released, handed_back])
async def test_records_outlive_the_run(queue: JobQueue, member: Member, end: End) -> None:
    lease = await begun(queue, member)
    await record(member, lease, row("a"))

    await settle(member, end(lease))

    assert await queue.steps(lease.id) == [row("a")]
    again = await claim_one(member)
    assert again.token > 1  # what tells a run that there may be records
    assert await record(member, again, row("b")) == [True]
    assert [step.key for step in await queue.steps(lease.id)] == ["a", "b"]


async def test_some_steps_are_dropped(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await record(member, lease, row("a"), row("b"), row("c"))

    assert await member.drop_steps(lease, ["a", "c", "unknown"])

    assert [step.key for step in await queue.steps(lease.id)] == ["b"]


@pytest.mark.parametrize(("from_scratch", "kept"), [(False, ["a"]), (True, [])])
async def test_redrive_keeps_records_unless_from_scratch(
    queue: JobQueue, member: Member, from_scratch: bool, kept: list[str]
) -> None:
    lease = await begun(queue, member)
    await record(member, lease, row("a"))
    await settle(member, failed(lease))

    assert await queue.redrive(one(lease), from_scratch=from_scratch) == [lease.id]

    assert [step.key for step in await queue.steps(lease.id)] == kept
    assert (await claim_one(member)).token > 1


async def test_records_go_with_a_job_that_is_discarded(queue: JobQueue, member: Member) -> None:
    lease, other = await begun(queue, member), await begun(queue, member)
    await record(member, lease, row("a"))
    await record(member, other, row("a"))
    await settle(member, failed(lease))

    await queue.discard(one(lease))

    assert await queue.steps(lease.id) == []
    assert await queue.steps(other.id) == [row("a")]


async def test_records_go_with_a_job_past_its_retention(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    lease, cancelled = await begun(queue, member), await begun(queue, member)
    await record(member, lease, row("a"))
    await record(member, cancelled, row("a"))
    await queue.cancel(one(cancelled))
    await settle(member, completed(lease), cancel_seen(cancelled))
    assert await queue.steps(lease.id) == [row("a")]

    await member.upkeep()

    assert await queue.get([lease.id, cancelled.id]) == {}
    assert await queue.steps(lease.id) == await queue.steps(cancelled.id) == []


async def test_thousands_of_records_read_back(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    rows = [row(f"{n:04}", str(n), started_at=float(n)) for n in range(1500)]
    for first in range(0, len(rows), 100):
        await record(member, lease, *rows[first : first + 100])

    assert await queue.steps(lease.id) == rows


async def test_a_result_of_one_mebibyte_is_stored(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    text = '"' + "x" * (1_048_576 - 2) + '"'

    assert await record(member, lease, row("a", text)) == [True]

    (stored,) = await queue.steps(lease.id)
    assert stored.result == text


async def test_a_handler_goes_on_from_its_records(queue: JobQueue) -> None:
    called: list[int] = []

    async def double(n: int) -> int:
        called.append(n)
        return 2 * n

    app = Penstock("sqlite:///not-used.db", retry_base_seconds=0.01, lease_seconds=600.0).on_queue(
        queue
    )

    @app.job(KIND)
    async def handler(ctx: JobContext) -> list[int]:
        found = await asyncio.gather(*(ctx.step("double", double, n, retries=1) for n in range(9)))
        if ctx.attempt == 1:
            raise ConnectionError("all of them are recorded")
        return list(found)

    orchestrator = app.orchestrator()
    await orchestrator.start()
    try:
        job = await app.enqueue(KIND)
        assert await app.result(job.id, timeout=PATIENCE) == [2 * n for n in range(9)]
    finally:
        await orchestrator.stop()
    assert sorted(called) == list(range(9))
    assert {step.attempts for step in await app.steps(job.id)} == {1}
