"""Looking: find, counts, processes, work left."""

import time
from typing import Any

import pytest

from penstock import runtime
from penstock.model.ids import new_id
from penstock.model.job import JobState, Priority
from penstock.ports.queue import JobFilter, JobQueue, Member
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    completed,
    failed,
    ids_of,
    one,
    settle,
)
from tests.support.waiting import until


async def test_newest_jobs_come_first(queue: JobQueue) -> None:
    jobs = await add(queue, 5) + [await add_one(queue, kind="other")]

    assert ids_of(await queue.find(JobFilter(), 100)) == ids_of(jobs)[::-1]


async def test_paging_shows_every_job_once(queue: JobQueue) -> None:
    jobs = await add(queue, 25)
    pages: list[list[str]] = []
    before = None
    while page := await queue.find(JobFilter(), 10, before):
        pages.append(ids_of(page))
        before = page[-1].id

    assert [len(page) for page in pages] == [10, 10, 5]
    assert [job_id for page in pages for job_id in page] == ids_of(jobs)[::-1]


async def test_paging_is_not_shifted_by_new_jobs(queue: JobQueue) -> None:
    jobs = await add(queue, 6)
    first = await queue.find(JobFilter(), 3)
    await add(queue, 10)

    second = await queue.find(JobFilter(), 3, first[-1].id)
    assert ids_of(first + second) == ids_of(jobs)[::-1]


async def test_every_part_of_a_filter_must_match(queue: JobQueue, member: Member) -> None:
    made = [
        await add_one(queue, kind=kind, tenant=tenant, log=log)
        for kind in ("ingest.parse", "ingest.embed", "fetch")
        for tenant in ("a", "b")
        for log in (None, "paper")
    ]
    leases = await claim(member, 100, "ingest.parse", "ingest.embed", "fetch")
    await settle(
        member, *(failed(lease, "Boom" if lease.tenant == "a" else "Bang") for lease in leases[:6])
    )
    everything = {job.id: job for job in await queue.find(JobFilter(), 100)}
    assert len(everything) == len(made)

    filters = [
        JobFilter(kind="fetch"),
        JobFilter(kind="ingest.*"),
        JobFilter(tenant="a"),
        JobFilter(log="paper"),
        JobFilter(states=[JobState.FAILED]),
        JobFilter(states=[JobState.FAILED, JobState.RUNNING], tenant="b"),
        JobFilter(error_type="Boom"),
        JobFilter(kind="ingest.*", tenant="a", log="paper"),
        JobFilter(kind="ingest.*", tenant="a", states=[JobState.FAILED], error_type="Boom"),
        JobFilter(ids=ids_of(made[2:7]), tenant="b"),
        JobFilter(kind="ingest.*", states=[JobState.COMPLETED]),
    ]
    for where in filters:
        expected = [
            job_id
            for job_id, job in everything.items()
            if (where.ids is None or job_id in where.ids)
            and (where.states is None or job.state in where.states)
            and (
                where.kind is None
                or job.kind == where.kind
                or (where.kind == "ingest.*" and job.kind.startswith("ingest."))
            )
            and (where.tenant is None or job.tenant == where.tenant)
            and (where.log is None or job.log == where.log)
            and (
                where.error_type is None
                or (job.error is not None and job.error.type == where.error_type)
            )
        ]
        assert ids_of(await queue.find(where, 100)) == expected, where


async def test_lane_priority_and_time_narrow_what_is_found_and_changed(queue: JobQueue) -> None:
    made = [
        await add_one(queue, lane=lane, priority=priority)
        for lane in ("api", "host:a.example", "", "?")
        for priority in (Priority.HIGH, Priority.LOW)
    ]
    moments = sorted(job.enqueued_at for job in made)
    api, host = made[:2], made[2:4]

    async def found(**where: Any) -> list[str]:
        return ids_of(await queue.find(JobFilter(**where), 100))[::-1]

    assert await found(lane="api") == ids_of(api)
    assert await found(lane="host:a.example", priority=Priority.LOW) == [host[1].id]
    assert await found(lane="") == await found(lane="?") == [], "no lane is no lane's name"
    assert await found(priority=Priority.HIGH) == ids_of(made[::2])
    assert await found(enqueued_after=moments[3]) == ids_of(made[3:]), "from then on"
    assert await found(enqueued_before=moments[3]) == ids_of(made[:3]), "earlier"
    between: dict[str, Any] = {"enqueued_after": moments[2], "enqueued_before": moments[5]}
    assert await found(**between) == ids_of(made[2:5])
    assert await found(lane="host:a.example", **between) == ids_of(host)

    assert await queue.cancel(JobFilter(lane="api", priority=Priority.LOW)) == [api[1].id]
    assert await queue.cancel(JobFilter(enqueued_before=moments[0])) == []
    assert await queue.cancel(JobFilter(**between)) == ids_of(made[2:5])


async def test_dead_letters_are_redriven_and_discarded_by_lane_and_time(
    queue: JobQueue, member: Member
) -> None:
    jobs = [await add_one(queue) for _ in range(3)]
    await settle(member, *map(failed, await claim(member)))

    assert await queue.redrive(JobFilter(lane="api")) == []
    assert await queue.discard(JobFilter(priority=Priority.HIGH)) == []
    after = JobFilter(enqueued_after=jobs[2].enqueued_at)
    assert await queue.redrive(after) == [jobs[2].id]
    before = JobFilter(enqueued_before=jobs[1].enqueued_at)
    assert await queue.discard(before) == [jobs[0].id]


async def test_empty_lists_match_nothing(queue: JobQueue) -> None:
    await add_one(queue)

    assert await queue.find(JobFilter(ids=[]), 10) == []
    assert await queue.find(JobFilter(states=[]), 10) == []
    assert await queue.cancel(JobFilter(ids=[])) == []


async def test_filter_values_are_not_patterns_or_code(queue: JobQueue) -> None:
    await add_one(queue, tenant="a", log="t")

    assert await queue.find(JobFilter(tenant="*"), 10) == []
    assert await queue.find(JobFilter(log="%"), 10) == []
    assert await queue.find(JobFilter(tenant="a' OR '1'='1"), 10) == []
    assert await queue.find(JobFilter(kind="WORK"), 10) == []


async def test_counts_per_kind_and_state(queue: JobQueue, member: Member) -> None:
    before = time.time()
    await add(queue, 5)
    await add(queue, 2, kind="later", run_at=time.time() + 100)
    a, b, c = await claim(member, 3)
    await settle(member, completed(a), failed(b))
    await queue.cancel(one((await queue.find(JobFilter(kind="later"), 1))[0]))

    later, work = await queue.counts()

    assert (later.kind, work.kind) == ("later", "work")
    assert later.states == {JobState.QUEUED: 1, JobState.CANCELLED: 1}
    assert work.states == {
        JobState.QUEUED: 2,
        JobState.RUNNING: 1,
        JobState.COMPLETED: 1,
        JobState.FAILED: 1,
    }
    assert work.oldest_queued_at is not None
    assert before - 0.1 <= work.oldest_queued_at <= time.time() + 0.1
    await settle(member, completed(c), *map(completed, await claim(member)))
    assert (await queue.counts())[1].oldest_queued_at is None


async def test_queued_jobs_are_counted_also_those_for_later(
    queue: JobQueue, member: Member
) -> None:
    assert await queue.queued() == await queue.queued("a") == 0
    await add(queue, 4, tenant="a")
    await add(queue, 2, tenant="b", lane="slow")
    await add(queue, 3, tenant="b", kind="later", run_at=time.time() + 100)
    leases = await claim(member, 2)
    await settle(member, completed(leases[0]))
    await queue.cancel(one((await queue.find(JobFilter(kind="later"), 1))[0]))

    for tenant in ("a", "b", None):
        counts = await queue.counts(tenant)
        queued = sum(one.states.get(JobState.QUEUED, 0) for one in counts)
        assert await queue.queued(tenant) == queued
    assert await queue.queued() == 6
    assert await queue.queued("nobody") == 0


async def test_counts_of_a_tenant_are_its_own(queue: JobQueue, member: Member) -> None:
    others = await add(queue, 3, tenant="a")
    first = await add_one(queue, tenant="b")
    await add(queue, 2, tenant="b")
    await add_one(queue, tenant="b", kind="other", run_at=time.time() + 100)
    await queue.cancel(one(others[0]))
    while leases := await claim(member, 1):
        end = failed if leases[0].tenant == "b" else completed
        await settle(member, end(leases[0]))
        if leases[0].tenant == "b":
            break

    other, work = await queue.counts("b")
    assert (other.kind, other.states) == ("other", {JobState.QUEUED: 1})
    assert work.states == {JobState.QUEUED: 2, JobState.FAILED: 1}
    assert work.oldest_queued_at is not None
    assert work.oldest_queued_at >= first.enqueued_at
    (mine,) = await queue.counts("a")
    assert mine.states[JobState.CANCELLED] == 1
    assert sum(mine.states.values()) == 3
    assert await queue.counts("nobody") == []
    every = {one.kind: one.states for one in await queue.counts()}
    for state in JobState:
        told = work.states.get(state, 0) + mine.states.get(state, 0)
        assert every["work"].get(state, 0) == told, state


async def test_the_oldest_of_a_tenant_is_found_behind_many_of_others(queue: JobQueue) -> None:
    await add(queue, 1500, tenant="a")
    job = await add_one(queue, tenant="b")

    (counts,) = await queue.counts("b")
    assert counts.oldest_queued_at == pytest.approx(job.enqueued_at)


async def test_what_is_for_later_does_not_count_as_oldest(queue: JobQueue) -> None:
    await add_one(queue, kind="later", run_at=time.time() + 100)
    (later,) = await queue.counts()
    assert later.oldest_queued_at is None
    before = time.time()
    await add_one(queue, kind="later", tenant="a")
    for tenant in (None, "a"):
        (later,) = await queue.counts(tenant)
        assert later.oldest_queued_at is not None
        assert before - 0.1 <= later.oldest_queued_at <= time.time() + 0.1


async def test_oldest_counts_from_when_it_could_run(queue: JobQueue) -> None:
    due = time.time() + 0.5
    job = await add_one(queue, run_at=due)

    async def is_due() -> bool:
        return (await queue.counts())[0].oldest_queued_at is not None

    await until(is_due, "the job to be due")
    (counts,) = await queue.counts()
    assert counts.oldest_queued_at is not None
    assert counts.oldest_queued_at == pytest.approx(due, abs=0.01)
    assert counts.oldest_queued_at > job.enqueued_at


async def test_processes_are_listed_with_what_they_last_said(
    ledger: Ledger, queue: JobQueue
) -> None:
    before = time.time()
    first = await ledger.join(queue, "a", "b", max_workers=3, lease_seconds=50)
    second = await ledger.join(await ledger.open(), "c")

    one_info, two_info = await queue.processes()

    assert (one_info.id, two_info.id) == (first.id, second.id)
    assert (list(one_info.kinds), one_info.max_workers, one_info.pid) == (
        ["a", "b"],
        3,
        runtime.process_id(),
    )
    assert before - 0.1 <= one_info.joined_at <= time.time() + 0.1
    assert one_info.lease_until >= before + 50
    assert first.renew({"busy": 2, "draining": True}, [])
    renewed = (await queue.processes())[0]
    assert dict(renewed.status) == {"busy": 2, "draining": True}
    assert renewed.heartbeat_at >= one_info.heartbeat_at
    await ledger.leave(first)
    assert [info.id for info in await queue.processes()] == [second.id]


async def test_work_left_follows_the_jobs_of_the_kinds_asked_for(
    queue: JobQueue, member: Member
) -> None:
    assert not await queue.work_left(None)
    await add_one(queue, kind="other", run_at=time.time() + 100)
    assert await queue.work_left(None)
    assert not await queue.work_left(["work"])

    await add_one(queue)
    assert await queue.work_left(["work", "more"])
    lease = await claim_one(member)
    assert await queue.work_left(["work"])
    await settle(member, completed(lease))
    assert not await queue.work_left(["work"])
    assert not await queue.work_left([])
    assert await queue.work_left(["other"])


async def test_finished_tells_which_need_no_more_waiting(queue: JobQueue, member: Member) -> None:
    queued, running, done, dead, cancelled = await add(queue, 5)
    await queue.cancel(one(cancelled))
    leases = {lease.id: lease for lease in await claim(member)}
    await settle(member, completed(leases[done.id]), failed(leases[dead.id]))
    missing = new_id()

    ids = [queued.id, running.id, done.id, dead.id, cancelled.id, missing]
    assert sorted(await queue.finished(ids)) == sorted([done.id, dead.id, cancelled.id, missing])


async def test_queued_job_says_what_it_waits_for(ledger: Ledger, queue: JobQueue) -> None:
    job = await add_one(queue, kind="rare")
    scheduled = await add_one(queue, kind="rare", run_at=time.time() + 100)
    found = await queue.get([job.id, scheduled.id])
    assert "rare" in (found[job.id].waiting_for or "")
    assert "time" in (found[scheduled.id].waiting_for or "")

    member = await ledger.join(queue, "rare")
    assert (await queue.get([job.id]))[job.id].waiting_for == "a worker"
    await claim_one(member, "rare")
    assert (await queue.get([job.id]))[job.id].waiting_for is None
