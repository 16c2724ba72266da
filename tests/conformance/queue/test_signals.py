"""Signals: kept for the job, taken once, and what a suspended job is queued for."""

import asyncio

import pytest

from penstock import JobContext, Penstock
from penstock.engine import waits
from penstock.errors import JobEnded, JobNotFound
from penstock.model.job import JobState
from penstock.ports.queue import JobQueue, Lease, Member, Outcome, Settlement, StepWrite
from penstock.ports.steps import SLEEP_WAIT, StepRow, signal_reason, signal_wait
from tests.conformance.support import (
    Ledger,
    add_one,
    claim,
    claim_one,
    completed,
    failed,
    get,
    handed_back,
    one,
    settle,
    until,
)
from tests.support.waiting import PATIENCE

FAR = 1e10


def row(key: str = "wait") -> StepRow:
    return StepRow(key, "wait_for:go", "hash", 1, "", None, 1, 10.5, 20.25)


def suspended(lease: Lease, signal: str | None = None, run_at: float = FAR) -> Settlement:
    reason = "sleeps" if signal is None else signal_reason(signal)
    return Settlement(
        lease,
        Outcome.SUSPENDED,
        started_at=lease.enqueued_at,
        error={"type": "Suspended", "message": reason},
        run_at=run_at,
        waits_lane=SLEEP_WAIT if signal is None else signal_wait(signal),
        signal=signal,
    )


async def begun(queue: JobQueue, member: Member) -> Lease:
    await add_one(queue)
    return await claim_one(member)


async def taken(member: Member, lease: Lease, name: str = "go", key: str = "wait") -> str | None:
    held, payload = await member.consume(lease, name, row(key))
    assert held
    return payload


async def test_signals_of_a_name_are_taken_in_order_each_once(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    assert await taken(member, lease) is None
    for name, payload in (("go", "1"), ("other", '"ä\\n"'), ("go", "null")):
        assert await queue.signal(lease.id, name, payload, None)

    assert await taken(member, lease, "go", "a") == "1"
    assert await taken(member, lease, "go", "b") == "null"
    assert await taken(member, lease, "go", "c") is None
    assert await taken(member, lease, "other", "d") == '"ä\\n"'

    steps = {step.key: step.result for step in await queue.steps(lease.id)}
    assert steps == {"a": "1", "b": "null", "d": '"ä\\n"'}


async def test_a_signal_before_the_first_run_is_kept(queue: JobQueue, member: Member) -> None:
    job = await add_one(queue)
    assert await queue.signal(job.id, "go", "1", None)

    assert await taken(member, await claim_one(member)) == "1"


async def test_the_same_key_is_the_same_signal(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    assert await queue.signal(lease.id, "go", "1", "k")
    assert not await queue.signal(lease.id, "go", "2", "k")
    assert await taken(member, lease, "go", "a") == "1"
    assert not await queue.signal(lease.id, "go", "3", "k")

    assert await taken(member, lease, "go", "b") is None


async def test_finished_jobs_take_no_signals(queue: JobQueue, member: Member) -> None:
    done, dead, gone = [await begun(queue, member) for _ in range(3)]
    await settle(member, completed(done), failed(dead))
    await queue.cancel(one(gone))

    for lease, state in ((done, "completed"), (dead, "failed"), (gone, "cancelled")):
        with pytest.raises(JobEnded, match=state):
            await queue.signal(lease.id, "go", "1", None)
    with pytest.raises(JobNotFound):
        await queue.signal("0" * 32, "go", "1", None)


async def test_a_known_key_is_told_so_after_the_end(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    assert await queue.signal(lease.id, "go", "1", "k")
    await settle(member, completed(lease))

    assert not await queue.signal(lease.id, "go", "1", "k")
    with pytest.raises(JobEnded):
        await queue.signal(lease.id, "go", "1", "other")


async def test_who_lost_its_lease_takes_no_signal(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await queue.signal(lease.id, "go", "1", None)
    await settle(member, handed_back(lease))
    again = await claim_one(member)

    assert await member.consume(lease, "go", row()) == (False, None)
    assert await taken(member, again) == "1"


async def test_a_suspended_job_is_queued_without_an_attempt(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)

    assert await settle(member, suspended(lease, "go")) == []

    job = await get(queue, lease.id)
    assert (job.state, job.attempts, job.releases, job.history) == (JobState.QUEUED, 0, 0, [])
    assert job.waiting_for == "the signal 'go'"
    assert await claim(member) == []


async def test_a_wait_with_a_timeout_says_until_when(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await settle(member, suspended(lease, "go", run_at=queue.now() + 3600))

    job = await get(queue, lease.id)
    assert (job.waiting_for or "").startswith("the signal 'go' until 20")


async def test_what_a_job_waited_for_is_no_message_of_it(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await settle(member, suspended(lease, "go"))
    await queue.signal(lease.id, "go", "1", None)
    again = await claim_one(member)
    assert (await get(queue, lease.id)).message == ""

    await settle(member, completed(again))

    assert (await get(queue, lease.id)).message == ""


@pytest.mark.parametrize(
    ("signal", "told"),
    [(None, "while it slept"), ("go", "while it waited for the signal 'go'")],
)
async def test_a_deadline_that_passes_says_what_the_job_waited_for(
    queue: JobQueue, member: Member, signal: str | None, told: str
) -> None:
    leases: list[Lease] = []
    for seconds in (0.3, 3.0, 60.0):  # on a busy machine it may pass before the claim
        if not leases:
            await add_one(queue, deadline=queue.now() + seconds)
            leases = await claim(member)
    (lease,) = leases
    await settle(member, suspended(lease, signal))

    async def ended() -> bool:
        assert await claim(member) == []
        return (await get(queue, lease.id)).state is JobState.FAILED

    await until(ended, "the deadline")
    error = (await get(queue, lease.id)).error
    assert error is not None
    assert (error["type"], error["message"]) == ("DeadlineExceeded", f"its deadline passed {told}")


async def test_a_sleeping_job_says_until_when(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await settle(member, suspended(lease))

    job = await get(queue, lease.id)
    assert (job.waiting_for or "").endswith("(sleeps)")
    assert await queue.signal(lease.id, "go", "1", None)  # kept; it is no reason to wake up
    assert await claim(member) == []


async def test_a_sleep_that_is_over_is_claimed_as_the_same_attempt(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    await settle(member, suspended(lease, run_at=queue.now() - 1))

    again = await claim_one(member)
    assert (again.id, again.attempts, again.releases) == (lease.id, lease.attempts, 0)


async def test_a_signal_wakes_the_job_that_waits_for_it(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await settle(member, suspended(lease, "go"))
    await queue.signal(lease.id, "other", "0", None)
    assert await claim(member) == []

    await queue.signal(lease.id, "go", "1", None)

    again = await claim_one(member)
    assert (again.id, again.attempts) == (lease.id, lease.attempts)
    assert await taken(member, again) == "1"


async def test_a_signal_that_comes_before_the_suspension_is_not_missed(
    queue: JobQueue, member: Member
) -> None:
    lease = await begun(queue, member)
    assert await taken(member, lease) is None
    await queue.signal(lease.id, "go", "1", None)

    await settle(member, suspended(lease, "go"))

    assert await taken(member, await claim_one(member)) == "1"


async def test_a_signal_and_a_suspension_at_once_miss_each_other_never(
    ledger: Ledger, queue: JobQueue, member: Member
) -> None:
    other = await ledger.open()
    leases = [await begun(queue, member) for _ in range(20)]

    await asyncio.gather(
        *(other.signal(lease.id, "go", "1", None) for lease in leases),
        settle(member, *(suspended(lease, "go") for lease in leases)),
    )

    assert sorted(lease.id for lease in await claim(member, 100)) == sorted(
        lease.id for lease in leases
    )


async def test_dropped_steps_give_their_signals_back(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await queue.signal(lease.id, "go", "1", None)
    await queue.signal(lease.id, "go", "2", None)
    assert await taken(member, lease, "go", "a") == "1"
    assert await taken(member, lease, "go", "b") == "2"

    assert await member.drop_steps(lease, ["a"])

    assert await taken(member, lease, "go", "c") == "1"
    assert await taken(member, lease, "go", "d") is None


@pytest.mark.parametrize(("from_scratch", "payload"), [(False, None), (True, "1")])
async def test_redrive_keeps_signals(
    queue: JobQueue, member: Member, from_scratch: bool, payload: str | None
) -> None:
    lease = await begun(queue, member)
    await queue.signal(lease.id, "go", "1", None)
    await taken(member, lease)
    await settle(member, failed(lease))
    await queue.redrive(one(lease), from_scratch=from_scratch)

    assert await taken(member, await claim_one(member), "go", "again") == payload


async def test_signals_go_with_their_job(queue: JobQueue, member: Member) -> None:
    lease = await begun(queue, member)
    await queue.signal(lease.id, "go", "1", "k")
    await member.record([StepWrite(lease, row()._replace(result="1"))])
    await settle(member, failed(lease))
    await queue.discard(one(lease))

    (job,) = [await add_one(queue)]
    again = await claim_one(member)
    assert again.id == job.id
    assert await taken(member, again) is None


async def test_a_suspended_job_of_a_stopped_log_is_cancelled(
    queue: JobQueue, member: Member
) -> None:
    await add_one(queue, log="paper")
    lease = await claim_one(member)
    await queue.stop("default", "paper", running=False)

    await settle(member, suspended(lease, "go"))

    assert (await get(queue, lease.id)).state is JobState.CANCELLED


async def test_a_log_is_told_of_a_suspension(queue: JobQueue, member: Member) -> None:
    await add_one(queue, log="paper")
    lease = await claim_one(member)

    await settle(member, suspended(lease, run_at=FAR))

    change = (await queue.changes("default", "paper", 0, 10))[-1]
    assert (change.what, change.data["run_at"]) == ("suspended", FAR)


async def test_a_handler_sleeps_and_waits(queue: JobQueue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waits, "SHORT_SECONDS", 0.0)
    app = Penstock("sqlite:///not-used.db", lease_seconds=600.0).on_queue(queue)
    begun: list[int] = []

    @app.job("work")
    async def handler(ctx: JobContext) -> object:
        begun.append(ctx.attempt)
        await ctx.sleep(0.05)
        assert await ctx.wait_for("never", timeout=0.05) is None
        return await ctx.wait_for("go")

    async def waiting() -> bool:
        return (await app.get(job.id)).waiting_for == "the signal 'go'"

    orchestrator = app.orchestrator()
    await orchestrator.start()
    try:
        job = await app.enqueue("work")
        await until(waiting, "the job to wait for its signal")
        assert await app.signal(job.id, "go", {"n": 1})
        assert await app.result(job.id, timeout=PATIENCE) == {"n": 1}
    finally:
        await orchestrator.stop()
    assert set(begun) == {1}  # however often it was unwound
