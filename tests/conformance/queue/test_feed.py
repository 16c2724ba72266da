"""The feed of a tenant: the changes of all its logs in one order that a reader can resume."""

import asyncio
from collections.abc import Sequence

import pytest

from penstock.errors import ValidationError
from penstock.model.change import Change
from penstock.ports.queue import FeedEntry, JobFilter, JobQueue, Member, Progress, Topic
from tests.conformance.support import (
    Ledger,
    add,
    add_one,
    claim,
    claim_one,
    completed,
    failed,
    settle,
    until,
)
from tests.support.waiting import PATIENCE

ALL = 10_000
LOGS = ("paper", "book", "Übung 試験", "a.b-c_d=")


async def feed(
    queue: JobQueue, tenant: str = "default", after: str | None = None
) -> list[FeedEntry]:
    return await queue.feed(tenant, after, ALL)


def by_log(entries: Sequence[FeedEntry]) -> dict[str, list[Change]]:
    logs: dict[str, list[Change]] = {}
    for entry in entries:
        logs.setdefault(entry.change.log, []).append(entry.change)
    return logs


async def live_a_little(queue: JobQueue, member: Member) -> int:
    """Jobs of several logs enqueued, run, failed and cancelled; how many changes that is."""
    for log in LOGS:
        await add(queue, 3, log=log)
    leases = await claim(member, 8)
    await member.exchange([], [Progress(lease, 0.5, "half way") for lease in leases[:2]], None)
    await settle(member, *map(completed, leases[:5]), *map(failed, leases[5:]))
    await queue.cancel(JobFilter(tenant="default", log=LOGS[-1]))
    return 12 + 2 + 8 + 3


async def readable(queue: JobQueue, count: int) -> list[FeedEntry]:
    """The feed once `count` entries can be read: on PostgreSQL another test's transaction may
    hold them back for a moment."""

    async def enough() -> list[FeedEntry]:
        entries = await feed(queue)
        return entries if len(entries) >= count else []

    return await until(enough, f"{count} entries")


async def test_feed_holds_what_the_logs_hold_each_in_its_order(
    queue: JobQueue, member: Member
) -> None:
    count = await live_a_little(queue, member)

    entries = await readable(queue, count)

    assert by_log(entries) == {
        log: await queue.changes("default", log, 0, ALL) for log in sorted(LOGS)
    }
    assert len(entries) == count
    positions = [entry.position for entry in entries]
    assert len(set(positions)) == count
    assert all(p.isascii() and p.isprintable() and " " not in p for p in positions)


async def test_feed_goes_on_after_every_position(queue: JobQueue, member: Member) -> None:
    entries = await readable(queue, await live_a_little(queue, member))

    for number, entry in enumerate(entries, 1):
        assert await feed(queue, after=entry.position) == entries[number:]
        assert await queue.feed("default", entry.position, 2) == entries[number : number + 2]
    assert await queue.feed("default", None, 3) == entries[:3]


async def test_feed_is_the_same_for_whoever_reads_it(ledger: Ledger, queue: JobQueue) -> None:
    await add(queue, 5, log="paper")
    await add(queue, 5, log="book")
    other = await ledger.open()

    entries = await readable(queue, 10)

    assert await readable(other, 10) == entries
    assert await feed(other, after=entries[3].position) == entries[4:]


async def test_feeds_of_tenants_are_apart(queue: JobQueue) -> None:
    await add(queue, 2, log="paper", tenant="a")
    await add(queue, 3, log="paper", tenant="b")
    await add(queue, 1, log="paper")
    (mine,) = await readable(queue, 1)

    assert mine.change.log == "paper"
    assert [entry.change.version for entry in await feed(queue, "a")] == [1, 2]
    assert [entry.change.version for entry in await feed(queue, "b")] == [1, 2, 3]
    assert await feed(queue, "c") == []
    (last,) = await queue.feed("b", (await feed(queue, "b"))[1].position, ALL)
    assert last.change.version == 3


async def test_jobs_without_a_task_are_not_in_the_feed(queue: JobQueue, member: Member) -> None:
    await add(queue, 2)
    await settle(member, *map(completed, await claim(member)))
    await add_one(queue, log="paper")

    assert [entry.change.log for entry in await readable(queue, 1)] == ["paper"]


async def test_end_is_after_all_there_is_and_before_all_that_comes(queue: JobQueue) -> None:
    empty = await queue.feed_end("default")
    await add(queue, 2, log="paper")
    entries = await readable(queue, 2)
    end = await queue.feed_end("default")
    assert await feed(queue, after=end) == []
    await add(queue, 1, log="another")
    entries = await readable(queue, 3)

    assert await feed(queue, after=end) == entries[2:]
    assert await feed(queue, after=empty) == entries
    assert entries[2].change.log == "another"


MALFORMED = [
    "",
    "x",
    "0",
    "s",
    "s-1",
    "s1 ",
    "p1",
    "p1.2",
    "p1.1.%%%",
    "p1.1.AA==",
    "p1.1./w",
    "r1",
]
FAR = ["s999999999", "p999999999999.1.cGFwZXI=", "r999999999999999-0"]


@pytest.mark.parametrize("position", [*MALFORMED, *FAR, "s" + "9" * 100, "r١-١", "s1\n"])
async def test_position_of_no_feed_is_refused(queue: JobQueue, position: str) -> None:
    await add(queue, 2, log="paper")

    with pytest.raises(ValidationError):
        await feed(queue, after=position)


async def test_position_of_another_kind_of_queue_is_refused(
    ledger: Ledger, queue: JobQueue
) -> None:
    await add(queue, 2, log="paper")
    own = {"postgres": "p", "sqlite": "s", "simulated": "s"}.get(ledger.backend_name, "r")
    for position in ("s1", "p1.1.cGFwZXI=", "r1-1"):
        if position.startswith(own):
            await feed(queue, after=position)
        else:
            with pytest.raises(ValidationError):
                await feed(queue, after=position)


async def test_upkeep_forgets_nothing_that_is_young(ledger: Ledger, queue: JobQueue) -> None:
    member = await ledger.join(queue)
    await live_a_little(queue, member)
    before = await readable(queue, 25)
    await member.upkeep()

    assert await feed(queue) == before


async def test_log_that_begins_anew_is_not_taken_for_the_one_before(ledger: Ledger) -> None:
    queue = await ledger.open(retention_seconds=0.0)
    member = await ledger.join(queue)
    await add_one(queue, log="paper")
    await settle(member, completed(await claim_one(member)))
    old = await readable(queue, 2)
    await member.upkeep()
    assert await queue.versions([("default", "paper")]) == [0]
    new = await add_one(queue, log="paper")

    async def news() -> list[FeedEntry]:
        return await feed(queue, after=old[-1].position)

    (entry,) = await until(news, "the entry of the new log")
    assert (entry.change.version, entry.change.job_id) == (1, new.id)
    jobs = [entry.change.job_id for entry in await feed(queue)]
    assert jobs.count(new.id) == 1


async def test_reader_that_keeps_up_with_many_writers_skips_nothing(
    ledger: Ledger, queue: JobQueue
) -> None:
    queues = [queue, await ledger.open(), await ledger.open()]
    members = [await ledger.join(each) for each in queues]
    total = 3 * 12 * 3

    async def write(each: JobQueue, member: Member, number: int) -> None:
        for n in range(12):
            await add(each, 2, log=f"log{n % 4}", kind=f"kind{number}")
            await settle(member, completed(await claim_one(member, f"kind{number}")))

    seen: list[FeedEntry] = []

    async def read() -> None:
        reader = await ledger.open()
        wakeup = reader.listen(Topic.FINISHED)
        while len(seen) < total:
            seen.extend(await reader.feed("default", seen[-1].position if seen else None, 7))
            await wakeup.wait(0.02)
        wakeup.close()

    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(write(queues[n], members[n], n) for n in range(3)), read())

    assert seen == await readable(queue, total)
    for log, changes in by_log(seen).items():
        assert [change.version for change in changes] == list(range(1, len(changes) + 1)), log
        assert changes == await queue.changes("default", log, 0, ALL)
