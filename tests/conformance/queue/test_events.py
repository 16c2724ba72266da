"""Events of jobs: recorded once, in an order that never goes back, and told to all who follow."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from penstock import JobContext, Penstock
from penstock.engine import job_events, run_records
from penstock.errors import JobNotFound, PayloadTooLarge, ValidationError
from penstock.model.event import JobEvent
from penstock.ports.queue import JobQueue, Lease, Member, StepWrite
from penstock.ports.steps import EVENT_NAME, StepRow
from tests.conformance.support import KIND, Ledger, add_one, claim_one, failed, one, retry, settle
from tests.support.waiting import PATIENCE


def row(key: str, name: str = "step", result: str | None = "1") -> StepRow:
    return StepRow(
        key, name, "hash", 1, "", None, 1, 10.5, None if result is None else 20.25, result
    )


async def record(member: Member, lease: Lease, *rows: StepRow) -> None:
    assert all(await member.record([StepWrite(lease, one) for one in rows]))


async def positions(queue: JobQueue, lease: Lease, after: int = 0) -> dict[str, int]:
    return {one.row.key: one.position for one in await queue.recorded(lease.id, after, 100)}


async def test_records_stand_in_the_order_in_which_they_were_made(
    queue: JobQueue, member: Member
) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    assert await queue.last_recorded([lease.id, "0" * 32]) == {lease.id: 0}
    await record(member, lease, row("z"), row("counted", result=None), row("a", EVENT_NAME, '"e"'))
    await record(member, lease, row("m"))

    found = await positions(queue, lease)

    assert list(found) == ["z", "a", "m"]
    assert list(found.values()) == sorted(set(found.values()))
    assert await queue.last_recorded([lease.id]) == {lease.id: found["m"]}
    assert list(await positions(queue, lease, found["z"])) == ["a", "m"]
    assert [one.row.key for one in await queue.recorded(lease.id, 0, 2)] == ["z", "a"]
    results = [one.row.result for one in await queue.recorded(lease.id, 0, 10)]
    assert results == [None, '"e"', None]  # those of steps may be large


async def test_what_is_recorded_again_keeps_its_position(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await record(member, lease, row("a"), row("b"))
    before = await positions(queue, lease)

    await record(member, lease, row("a"))
    await record(member, lease, row("a", result=None))

    assert await positions(queue, lease) == before


async def test_a_signal_that_is_taken_has_a_position(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await queue.signal(lease.id, "go", "1", None)
    await record(member, lease, row("a"))
    await member.consume(lease, "go", row("wait", "wait_for:go"))
    await record(member, lease, row("b"))

    assert list(await positions(queue, lease)) == ["a", "wait", "b"]


async def test_positions_never_go_back(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await record(member, lease, row("a"), row("b"))
    first = await positions(queue, lease)
    await settle(member, retry(lease))
    lease = await claim_one(member)
    assert await member.drop_steps(lease, ["a", "b"])
    await record(member, lease, row("a"))
    second = await positions(queue, lease)
    await settle(member, failed(lease))
    await queue.redrive(one(lease), from_scratch=True)
    lease = await claim_one(member)
    await record(member, lease, row("a"))
    third = await positions(queue, lease)

    assert list(second) == list(third) == ["a"]
    assert max(first.values()) < second["a"] < third["a"]


async def test_records_made_beside_each_other_have_positions_of_their_own(
    queue: JobQueue, member: Member
) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    for n in range(10):
        await queue.signal(lease.id, "go", str(n), None)
    await asyncio.gather(
        *(record(member, lease, row(f"{n}")) for n in range(10)),
        *(member.consume(lease, "go", row(f"w{n}")) for n in range(10)),
    )

    found = await positions(queue, lease)

    assert len(set(found.values())) == len(found) == 20


async def test_events_go_with_their_job(queue: JobQueue, member: Member) -> None:
    await add_one(queue)
    lease = await claim_one(member)
    await record(member, lease, row("a", EVENT_NAME))
    await settle(member, failed(lease))

    await queue.discard(one(lease))

    assert await queue.recorded(lease.id, 0, 10) == []
    assert await queue.last_recorded([lease.id]) == {}


@asynccontextmanager
async def running(app: Penstock) -> AsyncIterator[Penstock]:
    """Without opening the queue, which is open."""
    orchestrator = app.orchestrator()
    await orchestrator.start()
    try:
        yield app
    finally:
        await orchestrator.stop()


@pytest.fixture
def app(queue: JobQueue) -> Penstock:
    made = Penstock("sqlite:///not-used.db", retry_base_seconds=0.01, lease_seconds=600.0)
    return made.on_queue(queue)


async def followed(app: Penstock, job_id: str, after: int | None = None) -> list[JobEvent]:
    async with asyncio.timeout(PATIENCE):
        return [event async for event in app.follow(job_id, after=after)]


async def test_a_follower_is_told_what_happens_until_the_end(app: Penstock) -> None:
    seen, halfway = asyncio.Event(), asyncio.Event()

    @app.job(KIND)
    async def handler(ctx: JobContext) -> str:
        await ctx.emit({"pages": 3})
        await ctx.emit({"pages": 3})  # once more, and so twice
        await seen.wait()
        await ctx.step("read", lambda: [1])
        if ctx.attempt == 1:
            raise ConnectionError("what was emitted is not emitted again")
        await ctx.progress(0.5, "half")
        await halfway.wait()
        await ctx.emit(None)
        return "done"

    async with running(app):
        job = await app.enqueue(KIND)
        events = []
        async with asyncio.timeout(PATIENCE):
            async for event in app.follow(job.id):
                events.append(event)
                seen.set()  # told while the job runs
                if event.kind == "progress":
                    halfway.set()
    lasting = [event for event in events if event.kind != "progress"]
    assert [(event.kind, event.data) for event in lasting[:2]] == [("emitted", {"pages": 3})] * 2
    assert (lasting[2].kind, lasting[2].data["name"]) == ("step", "read")
    assert (lasting[3].kind, lasting[3].data) == ("emitted", None)
    assert lasting[4].kind == "end"
    assert lasting[4].data == {"state": "completed", "result": "done", "error": None}
    assert len(lasting) == 5
    progress = [event.data for event in events if event.kind == "progress"]
    assert progress == [{"fraction": 0.5, "message": "half"}]
    order = [event.position for event in lasting]
    assert order == sorted(set(order))
    for n, position in enumerate(order, 1):
        again = [e for e in await followed(app, job.id, position) if e.kind != "progress"]
        assert again == lasting[n:]
    assert [step.name for step in await app.steps(job.id)] == ["read"]  # events are no steps


async def test_a_follower_of_a_job_that_goes_is_told(ledger: Ledger, app: Penstock) -> None:
    with pytest.raises(JobNotFound):
        await followed(app, "0" * 32)
    member = await ledger.join(app.queue)
    await add_one(app.queue)
    lease = await claim_one(member)
    following = asyncio.create_task(followed(app, lease.id))
    await settle(member, failed(lease))
    assert [event.kind for event in await following] == ["end"]


async def test_an_event_of_a_lost_lease_is_not_emitted(app: Penstock) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()
    errors: list[str] = []

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        begun.set()
        try:
            await go_on.wait()
        except asyncio.CancelledError:
            try:
                await ctx.emit("too late")
            except Exception as error:
                errors.append(type(error).__name__)
            raise

    async with running(app):
        job = await app.enqueue(KIND)
        await begun.wait()
        await app.cancel(job.id)
        events = await followed(app, job.id)
    assert [event.kind for event in events] == ["end"]
    assert events[0].data["state"] == "cancelled"
    assert errors == ["LeaseLost"]


async def test_events_have_limits(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_records, "EVENT_LIMIT", 2)
    errors: list[Any] = []

    @app.job(KIND, max_retries=1)
    async def handler(ctx: JobContext) -> None:
        for data, error in (("x" * 262_143, PayloadTooLarge), (object(), ValidationError)):
            with pytest.raises(error) as refused:
                await ctx.emit(data)
            errors.append(str(refused.value))
        await ctx.emit("x" * 262_142)
        await ctx.emit(2)
        if ctx.attempt == 1:
            raise ConnectionError("a rerun counts them too")
        await ctx.emit(3)

    async with running(app):
        job = await app.enqueue(KIND)
        done = await app.wait(job.id, timeout=PATIENCE)
    assert done.error is not None
    assert done.error["type"] == "EventLimit"
    assert "262,145 bytes" in errors[0]
    kinds = [event.kind for event in await followed(app, job.id)]
    assert kinds == ["emitted", "emitted", "end"]


@pytest.mark.real
async def test_thousands_of_events_are_read_in_pages(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_events, "PAGE", 7)

    @app.job(KIND)
    def handler(ctx: JobContext) -> None:  # a sync one: without await
        for n in range(30):
            ctx.emit(n)

    async with running(app):
        job = await app.enqueue(KIND)
        events = await followed(app, job.id)
    assert [event.data for event in events[:-1]] == list(range(30))
