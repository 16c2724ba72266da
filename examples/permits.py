"""Permits: several requests inside one job, each with the lane's leave, and no worker waiting."""

import asyncio
import time
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

LANES: dict[str, dict[str, float]] = {
    "api": {"min_interval_seconds": 0.1, "max_parallel": 2},
    "slow": {"min_interval_seconds": 1.5, "max_parallel": 1},
}

starts: list[float] = []
calls: list[float] = []
open_now = most_open = 0


async def request(n: int) -> int:
    """What would be a call of an outside service."""
    global open_now, most_open
    starts.append(time.monotonic())
    open_now += 1
    most_open = max(most_open, open_now)
    await asyncio.sleep(0.25)
    open_now -= 1
    return n


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lanes=LANES)

    @app.job("report")  # not in a lane itself: it starts at once, and asks for each request
    async def report(ctx: JobContext, pages: int) -> int:
        total = 0
        for page in range(pages):
            async with ctx.lanes.permit("api"):
                total += await request(page)
        return total

    @app.job("rare")
    async def rare(ctx: JobContext) -> None:
        # It waits for its turn here, and lends its worker to others meanwhile.
        for _ in range(2):
            async with ctx.lanes.permit("slow"):
                calls.append(time.monotonic())

    async with app.running():
        begun = time.monotonic()
        reports = await app.enqueue_many("report", [{"pages": 4}] * 3)
        rares = await app.enqueue_many("rare", [None, None])
        for job in reports:
            assert (await app.wait(job.id, timeout=30)).result == 0 + 1 + 2 + 3
        took = starts[-1] - begun
        print(f"{len(starts)} requests in {took:.1f} s, at most {most_open} at a time")
        assert most_open == 2
        assert all(start - begun > 0.099 * nth for nth, start in enumerate(starts))

        ended = [await app.wait(job.id, timeout=30) for job in rares]
        print(f"{len(calls)} calls of the slow lane in {calls[-1] - calls[0]:.1f} s, none twice")
        assert len(calls) == 4
        assert all((job.state, job.attempts, job.releases) == ("completed", 1, 0) for job in ended)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
