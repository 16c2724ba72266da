"""A handler names the parts of its run; how long each took is counted with the runs."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock
from penstock.model.tally import Tally


async def main(folder: str) -> None:
    app = Penstock(f"sqlite:///{folder}/jobs.db", lease_seconds=0.6)

    @app.job("report")
    async def report(ctx: JobContext, pages: int) -> int:
        with ctx.stage("gather"):
            await asyncio.sleep(0.05)
        for _ in range(pages):
            with ctx.stage("render"):  # counted once for each page
                await asyncio.sleep(0.01)
        return pages

    async with app.running():
        await app.enqueue_many("report", [{"pages": 2}, {"pages": 3}])
        await app.drain(30)
        # Processes publish what they count with their leases, three times each.
        tally = Tally()
        while tally.count("completed") < 2:
            await asyncio.sleep(0.05)
            tally = sum((Tally.from_status(one.status) for one in await app.processes()), Tally())

    stages = tally.kinds["report"].stages
    assert {name: sum(spread.counts) for name, spread in stages.items()} == {
        "gather": 2,
        "render": 5,
    }
    for name, spread in stages.items():
        median = spread.quantile(0.5)
        assert median is not None
        print(f"{name}: {sum(spread.counts)} times, about {1000 * median:.0f} ms")


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
