"""Jobs that the clock enqueues: each tick once, however many processes there are."""

import asyncio
from tempfile import TemporaryDirectory

from penstock import JobContext, Penstock

SECONDS = 0.5


def build(folder: str, ticks: asyncio.Queue[float]) -> Penstock:
    app = Penstock(f"sqlite:///{folder}/jobs.db")

    @app.job("sweep", every=SECONDS)
    async def sweep(ctx: JobContext) -> None:
        assert ctx.tick is not None
        await ticks.put(ctx.tick)

    @app.job("report", cron="0 3 * * *", timezone="Europe/Zurich")
    async def report(ctx: JobContext) -> None: ...

    return app


async def main(folder: str) -> None:
    ticks: asyncio.Queue[float] = asyncio.Queue()
    one, other = build(folder, ticks), build(folder, ticks)  # as good as two processes
    async with one.running(), other.running(), asyncio.timeout(60):
        seen = [await ticks.get() for _ in range(4)]
    print("ticks", *seen)
    assert len(set(seen)) == 4, "each is one job"
    assert all((tick / SECONDS).is_integer() for tick in seen), "counted from 1970"


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))
