"""What an operator sees of a queue, and does about it: what needs attention, why jobs failed, a job
run again, a lane with other limits while jobs run."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.api.attention import look

LANES = {"shop": {"min_interval_seconds": 0.0, "max_parallel": 1}}


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lanes=LANES)
    at_once = most = 0

    @app.job("order", lane="shop")
    async def order(ctx: JobContext, item: str) -> str:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.05)
        at_once -= 1
        return f"{item} ordered"

    @app.job("bill", max_retries=0)
    async def bill(ctx: JobContext, amount: int) -> None:
        raise ValueError(f"{amount} is too much")

    async with app:
        await app.enqueue_many("bill", [{"amount": n} for n in (100, 200)])
        (job,) = await app.enqueue_many("order", [{"item": "tea"}])
        seen = await look(app.queue, app.queue.now())
        for one in seen.attention:
            print(f"{one.what}: {one.subject}; {one.todo}")
        assert {one.what for one in seen.attention} == {"kind without a worker"}

    async with app.running():
        await app.drain(timeout=30)
        (group,) = await app.dead_groups()
        print(f"{group.count} of {group.kind} failed with {group.error_type}: {group.message}")
        assert (group.kind, group.error_type, group.count) == ("bill", "ValueError", 2)

        again = await app.rerun(job.id)  # a new job; its rerun_of is the old one
        done = await app.wait(again.id, timeout=30)
        assert (done.result, done.rerun_of) == ("tea ordered", job.id)
        assert most == 1

        lane = await app.limit_lane("shop", {"max_parallel": 4})
        await app.enqueue_many("order", [{"item": "cups"}] * 12)
        await app.drain(timeout=30)
        print(f"{lane.name}: {lane.max_parallel} at a time now, {most} seen")
        assert 1 < most <= 4
        assert not (await app.limit_lane("shop", None)).overridden


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
