"""What requests use, from their permits into the ledger, on every queue."""

import asyncio
from pathlib import Path
from typing import Any

from penstock import JobContext, Penstock
from penstock.engine.charges import Charges
from penstock.engine.settler import Settler
from penstock.ports.ledger import Charged, UsageBy, UsageQuery, day_name
from penstock.ports.queue import JobQueue, Member, Want
from tests.conformance.lane_support import LANE, a_day_ahead, config_of
from tests.conformance.support import KIND, Ledger
from tests.support.waiting import PATIENCE, until

LIMITED = {"tokens_per_interval": 100_000, "interval_seconds": 600.0}
PRICES = """
prices:
  small:
    2020-01-01: {input: 9, output: 90}
    2020-06-01: {input: 2, output: 10}
    2999-01-01: {input: 1, output: 1}
  cheap:
    2020-01-01: {tokens: 0.5}
  later:
    2999-01-01: {tokens: 1}
"""


async def open_app(
    ledger: Ledger, folder: Path, **lanes: dict[str, Any]
) -> tuple[JobQueue, Penstock]:
    """The queue as another process has it, and the app."""
    await a_day_ahead()
    queue = ledger.backend.queue(ledger.url, lane_config=config_of(**lanes))
    file = folder / "penstock.yaml"
    file.write_text(PRICES)
    app = Penstock("sqlite:///not-used.db", config_file=str(file), lease_seconds=600.0)
    return await ledger.open(), app.on_queue(queue)


async def run_one(app: Penstock, **options: Any) -> str:
    async with app.running():
        job = await app.enqueue(KIND, **options)
        await app.wait(job.id, timeout=PATIENCE)
    return job.id


async def by(queue: JobQueue, by: UsageBy) -> dict[str, tuple[int, ...]]:
    """Requests, tokens, input, output, cost, of unknown price, reserved."""
    return {name: tuple(one) for name, *one in await queue.usage(UsageQuery(by))}


async def test_every_use_is_in_the_ledger_with_its_price(ledger: Ledger, tmp_path: Path) -> None:
    queue, app = await open_app(ledger, tmp_path, api=LIMITED, free={}, cheap={})

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        permit = ctx.lanes.permit
        async with permit(LANE, tokens=5000, model="small") as one:
            one.used(input_tokens=100, output_tokens=10)
        async with permit("free", model="small-2025-08-07") as one:
            one.used(input_tokens=1000, output_tokens=1)
        async with permit("cheap", model="nobody") as one:
            one.used(tokens=7)
        async with permit("free", model="small") as one:
            one.used(tokens=50)  # which are which is not told: there is no price
        async with permit("free", model="later") as one:
            one.used(tokens=60)
        async with permit("free") as one:
            one.used(tokens=1, cost=0.5)
        async with permit("free"):
            pass  # nothing is told, and nothing was reserved
        ctx.lanes.used(input_tokens=3, output_tokens=4, model="small")

    job = await run_one(app, tenant="anna", log="notes")
    assert await by(queue, "model") == {
        "": (1, 1, 0, 0, 500_000, 0, 0),
        "small": (3, 167, 103, 14, 300 + 46, 1, 0),
        "small-2025-08-07": (1, 1001, 1000, 1, 2010, 0, 0),
        "nobody": (1, 7, 0, 0, 4, 0, 0),
        "later": (1, 60, 0, 0, 0, 1, 0),
    }
    whole = (7, 1236, 1103, 15, 502_360, 2, 0)
    for what, name in (("tenant", "anna"), ("task", "notes"), ("job", job), ("kind", KIND)):
        assert await by(queue, what) == {name: whole}  # type: ignore[arg-type]
    assert (await by(queue, "lane")).keys() == {LANE, "free", "cheap", ""}
    assert list(await by(queue, "day")) == [day_name(int(queue.now() // 86400))]


async def test_a_start_is_charged_and_what_was_not_made_is_not(
    ledger: Ledger, tmp_path: Path
) -> None:
    queue, app = await open_app(ledger, tmp_path, api=LIMITED)

    @app.job(KIND, lane=LANE, amount={"input_tokens": 400, "output_tokens": 100})
    async def handler(ctx: JobContext, used: int | None = None) -> None:
        if used is not None:
            ctx.lanes.used(input_tokens=used, model="small")
            ctx.lanes.used(input_tokens=9 * used)  # it is settled once

    await run_one(app, payload={"used": 5})
    assert await by(queue, "lane") == {LANE: (1, 5, 5, 0, 10, 0, 0)}
    await run_one(app, payload={"used": 0})
    assert await by(queue, "lane") == {LANE: (1, 5, 5, 0, 10, 0, 0)}
    await run_one(app)
    assert await by(queue, "lane") == {LANE: (2, 505, 405, 100, 10, 1, 1)}


async def test_a_run_that_ends_in_the_middle_is_charged_what_it_has_reserved(
    ledger: Ledger, tmp_path: Path
) -> None:
    queue, app = await open_app(ledger, tmp_path, api={}, cheap={})
    begun = asyncio.Event()

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        async with ctx.lanes.permit("cheap", tokens=1000):
            begun.set()
            await asyncio.Event().wait()

    async with app.running():
        job = await app.enqueue(KIND)
        async with asyncio.timeout(PATIENCE):
            await begun.wait()
        await app.cancel(job.id)
    assert await by(queue, "lane") == {"cheap": (1, 1000, 0, 0, 500, 0, 1)}


async def test_use_is_told_by_who_has_lost_the_lease(ledger: Ledger, tmp_path: Path) -> None:
    queue, app = await open_app(ledger, tmp_path, api={})
    members: list[Member] = []
    helper = await ledger.join(queue, "other")

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        async with ctx.lanes.permit(LANE, tokens=1000) as permit:
            permit.used(tokens=7)
            while members:
                ledger.lapse(members.pop())
                await helper.upkeep()

    async with app.running() as orchestrator:
        members.append(orchestrator._engine.membership.member)
        job = await app.enqueue(KIND)
        await app.wait(job.id, timeout=PATIENCE)
    assert (await by(queue, "job"))[job.id] == (2, 14, 0, 0, 0, 2, 0)


async def test_jobs_claimed_where_the_process_joins_again_during_a_charge_are_run(
    ledger: Ledger, tmp_path: Path, monkeypatch: Any
) -> None:
    queue, app = await open_app(ledger, tmp_path, api={})
    helper = await ledger.join(queue, "other")

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        async with ctx.lanes.permit(LANE, tokens=1000) as permit:
            permit.used(tokens=7)

    async with app.running() as orchestrator:
        engine = orchestrator._engine
        membership, room, charge = engine.membership, engine.dispatcher.room, app.queue.charge
        first, want = membership.member, room.want

        def want_at_any_time() -> Want:
            engine.claims.likely = True
            return want()

        async def charge_after_joining_again(charges: Any, *, soft: bool = False) -> Charged:
            if membership.member is first and asyncio.current_task() is engine.dispatcher.task:
                ledger.lapse(first)
                await helper.upkeep()
                engine.events.lapsed.set()
                await until(lambda: membership.member is not first, "another membership")
            charged: Charged = await charge(charges, soft=soft)
            return charged

        monkeypatch.setattr(room, "want", want_at_any_time)
        monkeypatch.setattr(app.queue, "charge", charge_after_joining_again)
        job = await app.enqueue(KIND)
        assert (await app.wait(job.id, timeout=PATIENCE)).attempts == 2


async def test_queue_that_cannot_be_reached_loses_no_charge(
    ledger: Ledger, tmp_path: Path, monkeypatch: Any
) -> None:
    from penstock.errors import QueueUnavailable

    queue, app = await open_app(ledger, tmp_path, api={})
    charge, calls = app.queue.charge, 0

    async def sometimes(charges: Any, *, soft: bool = False) -> Charged:
        nonlocal calls
        calls += 1
        if calls % 2:
            raise QueueUnavailable("gone")
        charged: Charged = await charge(charges, soft=soft)
        if calls % 4:
            raise QueueUnavailable("the answer is lost")
        return charged

    monkeypatch.setattr(app.queue, "charge", sometimes)

    @app.job(KIND)
    async def handler(ctx: JobContext) -> None:
        for _ in range(5):
            async with ctx.lanes.permit(LANE, tokens=1000) as permit:
                permit.used(input_tokens=10, cost=0.001)

    await run_one(app)
    assert await by(queue, "lane") == {LANE: (5, 50, 50, 0, 5000, 0, 0)}


async def test_nothing_is_charged_where_nothing_is_told(
    ledger: Ledger, tmp_path: Path, monkeypatch: Any
) -> None:
    _, app = await open_app(ledger, tmp_path, api={})
    asked: list[Any] = []
    monkeypatch.setattr(app.queue, "charge", asked.append)
    monkeypatch.setattr(Settler, "charge", lambda *_: asked.append(1))
    monkeypatch.setattr(Charges, "reserve", lambda *_: asked.append(2))

    @app.job(KIND, lane=LANE)
    async def handler(ctx: JobContext) -> None:
        async with ctx.lanes.permit(LANE):
            pass

    await run_one(app)
    assert asked == []
